// Plots of a report: lines over time in SVG, with a cross-hair that tells the numbers, and lines that can be switched off.
"use strict";
const COLOURS = ["#3a5d9c", "#d5432f", "#3f9b6f", "#e0a93b", "#8d6a9f", "#3f9bbf", "#5b6770", "#b5838d"];
const SVG = "http://www.w3.org/2000/svg";

function make(tag, attributes, parent) {
  const node = document.createElementNS(SVG, tag);
  for (const name in attributes) node.setAttribute(name, attributes[name]);
  if (parent) parent.appendChild(node);
  return node;
}

function ticks(low, high, count) {
  const rough = (high - low) / count, power = Math.pow(10, Math.floor(Math.log10(rough)));
  const step = [1, 2, 5, 10].map((k) => k * power).find((s) => s >= rough);
  const found = [];
  for (let x = Math.ceil(low / step - 1e-9) * step; x <= high + 1e-9 * step; x += step) found.push(Math.abs(x) < 1e-9 * step ? 0 : x);
  return found;
}

const tell = (x) => (x === null ? "–" : x !== 0 && (Math.abs(x) < 1e-3 || Math.abs(x) >= 1e5) ? x.toExponential(3) : String(+x.toPrecision(5)));

function draw(figure, chart) {
  const W = 640, H = 260, left = 66, right = 12, top = 10, bottom = 34;
  const svg = make("svg", { viewBox: `0 0 ${W} ${H}`, role: "img" }, figure);
  const legend = figure.appendChild(document.createElement("div"));
  legend.className = "legend";
  const time = chart.time, hidden = new Set();
  let span = [time[0], time[time.length - 1]];
  if (span[0] === span[1]) span = [span[0] - 0.5, span[1] + 0.5];

  function paint() {
    svg.textContent = "";
    const shown = chart.lines.filter((line) => !hidden.has(line.name));
    const inside = time.map((t) => t >= span[0] && t <= span[1]);
    let values = shown.flatMap((line) => line.values.filter((v, i) => v !== null && inside[i] && (!chart.log || v > 0)));
    let low = Math.min(...values), high = Math.max(...values);
    if (!values.length) [low, high] = chart.log ? [0.1, 1] : [0, 1];
    if (chart.log) [low, high] = [Math.log10(low), Math.log10(high)];
    if (!chart.log && low > 0 && low < 0.5 * high) low = 0;
    if (low === high) [low, high] = [low - (Math.abs(low) || 1) * 0.5, high + (Math.abs(high) || 1) * 0.5];
    const scale = (v) => (chart.log ? Math.log10(v) : v);
    const x = (t) => left + ((t - span[0]) / (span[1] - span[0])) * (W - left - right);
    const y = (v) => H - bottom - ((scale(v) - low) / (high - low)) * (H - top - bottom);
    for (const v of ticks(low, high, 5)) {
      const level = H - bottom - ((v - low) / (high - low)) * (H - top - bottom);
      make("line", { x1: left, x2: W - right, y1: level, y2: level, class: "grid" }, svg);
      make("text", { x: left - 6, y: level + 4, "text-anchor": "end" }, svg).textContent = chart.log ? tell(Math.pow(10, v)) : tell(v);
    }
    for (const t of ticks(span[0], span[1], 8)) {
      make("line", { x1: x(t), x2: x(t), y1: H - bottom, y2: H - bottom + 4, class: "axis" }, svg);
      make("text", { x: x(t), y: H - bottom + 16, "text-anchor": "middle" }, svg).textContent = tell(t);
    }
    make("line", { x1: left, x2: W - right, y1: H - bottom, y2: H - bottom, class: "axis" }, svg);
    make("text", { x: W - right, y: H - 3, "text-anchor": "end" }, svg).textContent = "time [s]";
    for (const line of shown) {
      let path = "", pen = "M";
      line.values.forEach((v, i) => {
        if (v === null || (chart.log && v <= 0) || !inside[i]) return (pen = "M");
        path += `${pen}${x(time[i]).toFixed(2)},${y(v).toFixed(2)}`;
        pen = "L";
      });
      make("path", { d: path, class: "line", stroke: line.colour }, svg);
      if (time.length < 3) line.values.forEach((v, i) => v !== null && make("circle", { cx: x(time[i]), cy: y(v), r: 3, fill: line.colour }, svg));
    }
    const hair = make("line", { y1: top, y2: H - bottom, class: "hair", visibility: "hidden" }, svg), note = make("text", { y: top + 10, class: "note" }, svg);
    const band = make("rect", { y: top, height: H - top - bottom, class: "band" }, svg);
    let from = null;
    const where = (event) => {
      const box = svg.getBoundingClientRect();
      const at = ((event.clientX - box.left) / box.width) * W;
      return Math.min(span[1], Math.max(span[0], span[0] + ((at - left) / (W - left - right)) * (span[1] - span[0])));
    };
    svg.onmousemove = (event) => {
      const t = where(event);
      let best = 0;
      time.forEach((value, i) => { if (Math.abs(value - t) < Math.abs(time[best] - t)) best = i; });
      hair.setAttribute("x1", x(time[best]));
      hair.setAttribute("x2", x(time[best]));
      hair.setAttribute("visibility", "visible");
      const late = x(time[best]) > W / 2;
      note.setAttribute("x", x(time[best]) + (late ? -6 : 6));
      note.setAttribute("text-anchor", late ? "end" : "start");
      note.textContent = `t = ${tell(time[best])} s`;
      for (const line of chart.lines) line.told.textContent = ` ${tell(line.values[best])}`;
      if (from !== null) {
        band.setAttribute("x", Math.min(x(from), x(t)));
        band.setAttribute("width", Math.abs(x(t) - x(from)));
      }
    };
    svg.onmouseleave = () => { note.textContent = ""; for (const line of chart.lines) line.told.textContent = ""; hair.setAttribute("visibility", "hidden"); };
    svg.onmousedown = (event) => { from = where(event); event.preventDefault(); };
    svg.onmouseup = (event) => {
      const t = where(event);
      if (from !== null && Math.abs(t - from) > 0.01 * (span[1] - span[0])) span = [Math.min(from, t), Math.max(from, t)];
      from = null;
      paint();
    };
    svg.ondblclick = () => { span = [time[0], time[time.length - 1]]; paint(); };
  }

  chart.lines.forEach((line, i) => {
    line.colour = COLOURS[i % COLOURS.length];
    const button = legend.appendChild(document.createElement("button"));
    button.type = "button";
    button.textContent = line.name + (line.unit ? ` [${line.unit}]` : "");
    button.style.setProperty("--colour", line.colour);
    line.told = button.appendChild(document.createElement("b"));
    button.onclick = () => {
      hidden.has(line.name) ? hidden.delete(line.name) : hidden.add(line.name);
      button.classList.toggle("off");
      paint();
    };
  });
  paint();
}

for (const chart of JSON.parse(document.getElementById("charts").textContent)) {
  const figure = document.getElementById("plots").appendChild(document.createElement("figure"));
  figure.appendChild(document.createElement("figcaption")).textContent = chart.title;
  draw(figure, chart);
}

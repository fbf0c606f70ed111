"""The report of a run as one page: what was run, pictures, plots, warnings in plain words. It loads nothing from elsewhere."""

import base64
import csv
import html
import io
import json
import math
from importlib.resources import files as resources
from pathlib import Path

import numpy as np

from .. import errors
from ..files.trajectory import Trajectory
from ..run import words
from ..run.recording import whole
from ..signatures import File
from . import colours
from .stage import Stage, camera, over_time

STYLE = """
:root { color-scheme: light; --ink: #2b343b; --faint: #77838d; --line: #dde2e7; }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); max-width: 1000px; margin: 2rem auto; padding: 0 1rem; background: #fff; }
h1 { font-size: 1.5rem; margin: 0 0 .2rem; } h2 { font-size: 1.1rem; margin: 2rem 0 .6rem; }
.about { color: var(--faint); margin: 0 0 1rem; }
table { border-collapse: collapse; width: 100%; } td, th { text-align: left; vertical-align: top; padding: .2rem .8rem .2rem 0; border-bottom: 1px solid var(--line); }
th { font-weight: 500; color: var(--faint); white-space: nowrap; width: 1%; }
.warnings { list-style: none; padding: 0; } .warnings li { background: #fdf3e1; border-left: 4px solid #e0a93b; padding: .5rem .8rem; margin: .4rem 0; }
.fine { background: #eaf4ee; border-left: 4px solid #3f9b6f; padding: .5rem .8rem; }
.pictures { display: grid; grid-template-columns: repeat(auto-fit, minmax(280px, 1fr)); gap: .8rem; }
figure { margin: 0; } figure img, figure svg { width: 100%; height: auto; display: block; } figcaption { color: var(--faint); font-size: .85rem; }
#plots { display: grid; grid-template-columns: repeat(auto-fit, minmax(430px, 1fr)); gap: 1.4rem; }
#plots figcaption { font-weight: 600; color: var(--ink); font-size: .95rem; }
svg text { font-size: 11px; fill: var(--faint); } svg .note { fill: var(--ink); font-weight: 600; }
svg .grid { stroke: var(--line); } svg .axis { stroke: var(--faint); } svg .line { fill: none; stroke-width: 1.8; } svg .hair { stroke: var(--faint); stroke-dasharray: 3 3; }
svg .band { fill: #3a5d9c22; }
.legend button { font: inherit; font-size: .82rem; border: 0; background: none; cursor: pointer; padding: 0 .6rem 0 0; color: var(--ink); }
.legend button::before { content: ""; display: inline-block; width: .9em; height: .25em; margin-right: .4em; vertical-align: middle; background: var(--colour); }
.legend button.off { color: #b4bcc3; text-decoration: line-through; } details summary { cursor: pointer; color: var(--faint); }
"""
UNITS = {
    "speed": "m/s",
    "overlap": "m",
    "pressure": "Pa",
    "flow": "kg/s",
    "force": "N",
    "torque": "N m",
    "power": "W",
    "temperature": "K",
    "heat": "J",
    "heat_flow": "W",
}


def report(
    folder: File, path: File | None = None, *, pictures: bool = True, size: tuple[int, int] = (720, 540)
) -> Path:
    """Write the report of the run in `folder` to `path` (report.html in it) as one HTML page that needs nothing else; return the path.

    pictures: the first, middle and last frame, size (width, height) in pixels; left out, with a word, where nothing can be drawn.
    """
    folder = errors.path_of(folder, "report: the first argument must be the folder of a run")
    path = errors.path_of(
        folder / "report.html" if path is None else path, "report: path must be that of a page to be written"
    )
    if not (folder / "trajectory.h5").is_file():
        raise FileNotFoundError(f"no trajectory in {str(folder)!r}; give the folder of a run")
    with Trajectory(folder / "trajectory.h5") as run:
        if not len(run) or not run.groups:
            raise ValueError(f"{str(folder)!r} has no frames yet; wait for the first one or run longer")
        plan, numbers = words.stored(folder / "run.json"), words.stored(folder / "report.json")
        scene = run.attributes
        made = numbers.get("made") or scene.get("made", {})  # of a run that was killed the file of frames has it
        series, spent = run.series(), _timing(folder / "timing.csv")
        shots, excuse = _pictures(run, size) if pictures else ([], "")
        doubts = warnings(run, numbers, plan, series)
    title = words.title(plan, scene) or made.get("method", "") + " run"
    parts = [
        f"<h1>{_text(title)}</h1>",
        f'<p class="about">{_text(folder.resolve().name)}: {_text(_summary(numbers, series, plan))}</p>',
        "<h2>Warnings</h2>" if doubts else "",
        "<ul class=warnings>" + "".join(f"<li>{_text(doubt)}</li>" for doubt in doubts) + "</ul>"
        if doubts
        else '<p class="fine">Nothing to warn of.</p>',
        "<h2>Pictures</h2>",
        '<div class="pictures">' + "".join(shots) + "</div>" if shots else f"<p>{_text(excuse)}</p>",
        "<h2>Over time</h2><p class=about>Move over a plot to read numbers, drag to zoom, double-click to go back, click a name to hide it.</p>",
        '<div id="plots"></div>',
        "<h2>What was run</h2>",
        _table(words.about(plan, made, scene)),
        "<h2>Numbers</h2>",
        _table(words.rows(numbers)) if numbers else "<p>The run did not end, so there is no summary.</p>",
    ]
    # In a script element only "</" could end it early.
    data = json.dumps(charts(series, spent, numbers)).replace("</", "<\\/")
    script = resources("clast.view").joinpath("plots.js").read_text(encoding="utf-8")
    page = (
        f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>{_text(title)}</title><style>{STYLE}</style></head><body>'
        + "\n".join(part for part in parts if part)
        + f'<script type="application/json" id="charts">{data}</script><script>{script}</script></body></html>\n'
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    whole(path, page)
    return path


def charts(series, spent, numbers):
    """What is plotted: [{title, time, lines: [{name, unit, values}], log}], with None where there is no number."""
    time = series["time"]
    rest = {name: column for name, column in series.items() if name not in ("time", "step")}
    made = []

    def chart(title, names, unit="", log=False, columns=rest, at=time):
        lines = [
            {"name": label, "unit": unit, "values": _plain(columns[name])}
            for name, label in names.items()
            if name in columns
        ]
        if lines:
            made.append({"title": title, "time": _plain(at), "lines": lines, "log": log})
        for name in names:
            rest.pop(name, None)

    chart("Energies", {name: name for name in words.ENERGIES}, "J")
    lost = ("normal", "shear", "sliding", "rolling", "twisting", "dampers", "limits", "numerical", "undivided")
    chart("Energy lost so far", {f"ledger_{name}": words.LEDGER[name].removesuffix(" [J]") for name in lost}, "J")
    kept = ("work", "motors", "through", "stabilisation", "dissipated", "turnover", "error", "start")
    chart("Balance of energy", {f"ledger_{name}": words.LEDGER[name].removesuffix(" [J]") for name in kept}, "J")
    chart("Contacts", {"contacts": "contacts that carry a force"})
    chart("Coordination number", {"coordination": "contacts of a free body"})
    gates = sorted(name.removesuffix("_mass") for name in rest if name.endswith("_mass"))
    flows = {f"{gate}_flow": _rate(time, rest[f"{gate}_mass"]) for gate in gates}
    chart("Mass flow", {f"{gate}_flow": gate.replace("_", " ") for gate in gates}, "kg/s", columns=flows)
    chart("Mass that went through", {f"{gate}_mass": gate.replace("_", " ") for gate in gates}, "kg")
    chart("Bodies that went through", {f"{gate}_count": gate.replace("_", " ") for gate in gates})
    if words.has_solver(rest):
        steps, iterations = rest.pop("steps"), rest.pop("iterations")
        chart("Solver: residual", {"residual": "of the last step", "worst": "worst so far"}, "m/s", log=True)
        done = np.diff(steps, prepend=0.0)
        each = {"each": np.diff(iterations, prepend=0.0) / np.where(done > 0.0, done, np.nan)}
        chart("Solver: iterations a step", {"each": "iterations"}, columns=each)
        chart("Solver: steps that missed the tolerance", {"missed": "steps so far"})
        chart("Solver: energy that parting overlaps added", {"stabilisation": "at most, so far"}, "J")
        if "open" in rest and np.any(rest["open"] > 0.0):
            chart("Joints: how far open", {"open": "at most, so far"}, "m", log=True)
        rest.pop("open", None)
    for name in list(rest):
        if name.endswith("_x"):  # of three components
            stem = name.removesuffix("_x")
            chart(stem, {f"{stem}_{axis}": axis for axis in "xyz"}, UNITS.get(stem.partition(":")[0], ""))
        elif name in rest:
            chart(name, {name: name}, UNITS.get(name.partition(":")[0], ""))
    if spent and len(spent["time"]) > 1:
        steps = np.diff(spent["step"])
        each = {
            name: np.diff(column) / np.where(steps > 0, steps, np.nan) * 1000.0
            for name, column in spent.items()
            if name not in ("time", "step")
        }
        names = {name: words.STAGES.get(name, name) for name in each}
        chart("Wall time of a step by stage", names, "ms", columns=each, at=spent["time"][1:])
    return made


def warnings(run, numbers, plan, series):
    """What a careful reader should know of a run, one sentence or two each."""
    told = []
    last = float(series["time"][-1])
    if not numbers:
        until = f" of {plan['until']:g} s" if "until" in plan else ""
        told.append(
            f"The run did not end: its last frame is at {last:.6g} s{until}. Go on with: clast run --resume, or clast.resume."
        )
    elif "until" in plan and numbers["time"] < plan["until"] * (1.0 - 1e-9) - numbers["dt"]:
        told.append(f"The run was stopped at {numbers['time']:.6g} s, before its end at {plan['until']:g} s.")
    solver = numbers.get("solver") or {}
    if solver.get("missed"):
        share = 100.0 * solver["missed"] / solver["steps"]
        told.append(
            f"The solver missed its tolerance in {solver['missed']:,} of {solver['steps']:,} steps ({share:.2g} %), the worst residual was "
            f"{solver['worst']:.2g} m/s. Where that matters, allow more iterations or take a smaller time step."
        )
    size = _smallest(run)
    if numbers and math.isfinite(size) and numbers["deepest"] > 0.05 * size:
        told.append(
            f"At the end two bodies overlap by {numbers['deepest']:.2g} m, {100.0 * numbers['deepest'] / size:.0f} % of the smallest radius. "
            "Contacts are that soft: a higher stiffness (young) or a smaller time step makes them harder."
        )
    if numbers.get("crossings"):
        told.append(
            f"{numbers['crossings']:,} times two triangulated bodies had surfaces that crossed; they were pushed apart. Give them a larger "
            "epsilon, or slow them down."
        )
    if numbers.get("coincident"):
        told.append(
            f"{numbers['coincident']:,} times two spheres had one centre; nothing tells how to part them, and they were parted along z."
        )
    about = run.attributes
    moved = any(about.get(name) for name in ("drives", "inlets", "outlets", "motors", "springs"))
    total = series.get("total")
    if total is not None and not moved and len(total) > 1:
        scale = np.nanmax(np.abs(series["kinetic"])) + np.nanmax(
            np.abs(np.diff(series["potential"], prepend=series["potential"][0]))
        )
        grown = float(np.nanmax(total) - total[0])
        if scale > 0.0 and grown > 0.01 * scale:
            told.append(
                f"Nothing drives this scene, and yet its energy grew by {grown:.3g} J, {100.0 * grown / scale:.1f} % of the kinetic energy. Take a "
                "smaller time step."
            )
    if len(series["time"]) < 5:
        told.append(f"There are only {len(series['time'])} frames; more of them (--every) show more.")
    return told


def _smallest(run):
    """Radius [m] of the smallest particle of the last frame, that of the ball of its volume; infinite if there is none."""
    stage = Stage.of(run[len(run) - 1], run.groups, walls=False)
    return float(stage.size.min()) if len(stage.size) else math.inf


def _pictures(run, size):
    """Figures of the first, middle and last frame, and why there are none."""
    from . import render

    shots = []
    try:
        stages = [Stage.of(run[index], run.groups, walls=False) for index in (len(run) // 2, len(run) - 1)]
        eye = camera(over_time(run, run.groups), size)
        limits = colours.limits(stages, "speed")
        for index in sorted({0, len(run) // 2, len(run) - 1}):
            frame = run[index]
            image = render(frame, None, tables=run.groups, size=size, camera=eye, limits=limits, quality=1)
            data = io.BytesIO()
            image.convert("RGB").save(data, "JPEG", quality=88)
            code = base64.b64encode(data.getvalue()).decode()
            shots.append(
                f'<figure><img alt="" src="data:image/jpeg;base64,{code}"><figcaption>t = {frame.time:.4g} s</figcaption></figure>'
            )
    except errors.Unavailable as fault:
        return [], f"There are no pictures: {fault}"
    return shots, ""


def _summary(numbers, series, plan):
    time = f"{series['time'][-1]:.4g} s simulated"
    if not numbers:
        return time
    wall = sum(numbers["seconds"].values())
    return f"{numbers['bodies']:,} bodies, {time} in {numbers['steps']:,} steps of {numbers['dt']:.3g} s, {wall:.3g} s of wall time"


def _table(rows):
    return (
        "<table>"
        + "".join(f"<tr><th>{_text(name)}</th><td>{_text(words.written(value))}</td></tr>" for name, value in rows)
        + "</table>"
    )


def _rate(time, mass):
    """Rate of change (k,) [kg/s]; that of the first frame is not known."""
    step = np.diff(time)
    return np.concatenate([[np.nan], np.diff(mass) / np.where(step > 0.0, step, np.nan)])


def _timing(path):
    """Columns of timing.csv by name; empty where there is none, or a killed run left half a line."""
    if not path.is_file():
        return {}
    with path.open(encoding="utf-8", newline="") as file:
        head, *rows = csv.reader(file)
    rows = [row for row in rows if len(row) == len(head)]
    return {name: np.array([float(row[k]) for row in rows]) for k, name in enumerate(head)}


def _plain(column):
    return [float(x) if math.isfinite(x) else None for x in np.asarray(column, dtype=float)]


def _text(value):
    return html.escape(str(value))

"""Write docs/gallery.md: for each ready scene its picture, where its program is, and how long it runs on this machine.

The time is that of a short run, without compiling, times the number of steps of the whole; a scene that fills while it runs is looked at when a
tenth of the time that it may take here has passed.
"""

import argparse
import inspect
import json
import time
from pathlib import Path

from clast.run.progress import duration
from clast.scenes import SCENES

ROOT = Path(__file__).resolve().parents[1]
TIMES = ROOT / "benchmarks" / "results" / "gallery.json"


def measure(name, seconds):
    """Steps, and wall seconds of a step, of a ready scene after a warm start."""
    ready = SCENES[name]()
    sim = ready.simulation()
    sim.step(5)
    count = sim.steps
    began = time.perf_counter()
    while time.perf_counter() - began < seconds:
        sim.step(5)
    return {
        "bodies": len(sim.bodies.number),
        "until": ready.until,
        "dt": sim.dt,
        "steps": round(ready.until / sim.dt),
        "second": (time.perf_counter() - began) / (sim.steps - count),
    }


def page(times):
    """The gallery as Markdown."""
    parts = [
        "# Gallery",
        "",
        "Every ready scene with its picture, its whole program and how long its run takes. `clast run NAME` runs it, `clast view NAME` shows it before it runs; "
        "[ready scenes](scenes.md) says more about each. The programs use a few helpers of the same folder (`add_box`, `add_funnel`).",
        "",
        "Times are of a short look at each scene's beginning on two cores that had other work to do, times the number of its steps (`benchmarks/gallery.py`): dense "
        "states take longer than the beginning of a scene that fills while it runs. Kernels are compiled before, once.",
    ]
    for name, function in SCENES.items():
        file = Path(inspect.getsourcefile(function)).name
        told = times.get(name)
        parts += [
            "",
            f"## {name}",
            "",
            f"![{name}](images/scene-{name}.png)",
            "",
            inspect.getdoc(function).split("\n\n")[0].replace("\n", " "),
        ]
        if told:
            total = told["steps"] * told["second"]
            parts += [
                "",
                f"{told['until']:g} s in {told['steps']:,} steps of {told['dt']:.2g} s; about {duration(total)} on two cores, {told['second'] * 1000.0:.2g} ms a step.",
            ]
        # The site puts the program in place of the mark, as it is when the site is built (docs/site/hooks.py).
        parts += [
            "",
            f"```sh\nclast run {name}\n```",
            "",
            f"Its program is in [{file}](../src/clast/scenes/{file}).",
            "",
            f"<!-- program {function.__name__} of {file} -->",
        ]
    return "\n".join(parts) + "\n"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--seconds",
        type=float,
        default=2.0,
        help="how long to look at each scene; 0 writes the page from what was measured",
    )
    parser.add_argument("names", nargs="*", help="scenes to measure; all if left out")
    asked = parser.parse_args()
    times = json.loads(TIMES.read_text()) if TIMES.exists() else {}
    for name in (asked.names or SCENES) if asked.seconds > 0.0 else ():
        times[name] = measure(name, asked.seconds)
        print(name, times[name], flush=True)
        TIMES.write_text(json.dumps(times, indent=1) + "\n")
    (ROOT / "docs" / "gallery.md").write_text(page(times), encoding="utf-8")

"""Write docs/gallery.md: for each ready scene its picture, where its program is, and how long `clast run NAME` took on this machine.

A run is the whole command as a user types it, frames and files included, with one thread and with its kernels compiled before. Its time is that of the
processor: other work on the machine does not count. A run that takes longer than `--limit` is interrupted, and the page tells how far it came.
"""

import argparse
import inspect
import json
import os
import platform
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from clast.run.progress import duration
from clast.scenes import SCENES

ROOT = Path(__file__).resolve().parents[1]
COMPILED = 0.5  # [s] of compiling that a run may tell of and count as one that found its kernels
TIMES = ROOT / "benchmarks" / "results" / "gallery.json"


def command(name, folder, *more):
    """A run of a ready scene as a process of its own."""
    words = f"-m clast run {name} --threads 1 --overwrite --quiet --output".split()
    return subprocess.Popen([sys.executable, *words, str(folder), *more], stdout=subprocess.DEVNULL)


def spent(process):
    """Processor time [s] of a process so far."""
    fields = Path(f"/proc/{process.pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def measure(name, limit):
    """Steps, and processor seconds, of the whole run of a ready scene or of as much of it as fits into `limit` [s]."""
    ready = SCENES[name]()
    told, used = run_whole(name, ready, limit)
    if told["compiling"] > COMPILED:  # some kernels were first asked for late in the run: the next one finds them
        told, used = run_whole(name, ready, limit)
    return {
        "bodies": told["bodies"],
        "until": ready.until,
        "reached": told["time"],
        "dt": told["dt"],
        "steps": told["steps"],
        "processor": round(used.ru_utime + used.ru_stime, 1),
        "date": time.strftime("%Y-%m-%d"),
        "machine": f"{platform.machine()}, {os.cpu_count()} cores",
    }


def run_whole(name, ready, limit):
    """What the run told, and what the system tells about its process."""
    with tempfile.TemporaryDirectory() as folder:
        run = Path(folder) / name
        if command(name, run, "--until", str(ready.until / 1000.0)).wait():  # compiles
            raise SystemExit(f"clast run {name} failed")
        process, asked = command(name, run), False
        while True:
            ended, status, used = os.wait4(process.pid, os.WNOHANG)
            if ended:
                break
            if spent(process) > limit and not asked:
                process.send_signal(signal.SIGINT)  # once: a second one would end it without its numbers
                asked = True
            time.sleep(1.0)
        process.returncode = os.waitstatus_to_exitcode(status)
        return json.loads((run / "report.json").read_text()), used


def tell(told):
    """One line about the run time of a scene."""
    steps = f"{told['steps']:,} steps of {told['dt']:.2g} s"
    if told["reached"] >= told["until"] - told["dt"]:
        return f"Run time: {duration(told['processor'])} for {told['until']:g} s of simulated time, {steps}."
    return (
        f"Run time: {told['reached']:.3g} s of simulated time took {duration(told['processor'])}, {steps}; the run goes on to {told['until']:g} s and was not "
        "measured to its end."
    )


def page(times):
    """The gallery as Markdown."""
    parts = [
        "# Gallery",
        "",
        "Every ready scene with its picture, its whole program and how long its run takes. `clast run NAME` runs it, `clast view NAME` shows it before it runs; "
        "[ready scenes](scenes.md) says more about each. The programs use a few helpers of the same folder (`add_box`, `add_funnel`).",
        "",
        "Run times are those of the whole command with one thread, files included, kernels compiled before (`benchmarks/gallery.py`). They are processor times, "
        "taken in November 2026 on a virtual machine with two cores (x86-64) that had other work to do.",
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
            parts += ["", tell(told)]
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
        "--limit",
        type=float,
        default=300.0,
        help="processor time of a run [s]; 0 writes the page from what was measured",
    )
    parser.add_argument("names", nargs="*", help="scenes to measure; all if left out")
    asked = parser.parse_args()
    times = json.loads(TIMES.read_text()) if TIMES.exists() else {}
    for name in (asked.names or SCENES) if asked.limit > 0.0 else ():
        times[name] = measure(name, asked.limit)
        print(name, times[name], flush=True)
        TIMES.write_text(json.dumps(times, indent=1) + "\n")
    (ROOT / "docs" / "gallery.md").write_text(page(times), encoding="utf-8")

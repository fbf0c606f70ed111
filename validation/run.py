"""Run all programs of this folder, one after the other; go on where it was stopped.

    make validate                          # what has not run since its code changed; hours
    python validation/run.py laws joints   # only these
    python validation/run.py --again       # all of them

Each program writes its own tables and pictures in docs. Which have run, with a hash of the package and of the program, how long each took and how it
ended stands in build/validation.json; its output in build/validation/NAME.log.
"""

import argparse
import hashlib
import json
import os
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
STATE, LOGS = ROOT / "build" / "validation.json", ROOT / "build" / "validation"


def programs():
    """Names of all programs, the quickest first."""
    order = (
        "laws",
        "single_impacts",
        "joints",
        "two_particles",
        "patches",
        "impacts",
        "complementarity",
        "polyhedra",
        "meshes",
    )
    found = [path.stem for path in sorted(HERE.glob("*.py")) if path.stem != "run"]
    return [name for name in order if name in found] + [name for name in found if name not in order]


def code_of(name):
    """A hash of the program and of the package."""
    text = hashlib.sha256((HERE / f"{name}.py").read_bytes())
    for path in sorted((ROOT / "src" / "clast").rglob("*.py")):
        text.update(path.read_bytes())
    return text.hexdigest()[:16]


def kept_of(store, name):
    """What a program of several cases has kept in a file, {case: row}, with this code: what other code gave is run again."""
    found = json.loads(store.read_text()) if store.exists() else {}
    return found.get("cases", {}) if found.get("code") == code_of(name) else {}


def keep(store, name, kept):
    """Keep the cases that have been run."""
    store.parent.mkdir(exist_ok=True)
    beside = store.with_suffix(".new")
    beside.write_text(json.dumps({"code": code_of(name), "cases": kept}, indent=1))
    os.replace(beside, store)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", choices=[[], *programs()], help="only these")
    parser.add_argument("--again", action="store_true", help="also those that have run with this code")
    chosen = parser.parse_args()
    state = json.loads(STATE.read_text()) if STATE.exists() else {}
    LOGS.mkdir(parents=True, exist_ok=True)
    names = chosen.names or programs()
    failed = []
    for number, name in enumerate(names, 1):
        code, last = code_of(name), state.get(name, {})
        if last.get("code") == code and last.get("passed") and not chosen.again:
            print(f"{number}/{len(names)} {name}: has run, {last['seconds']:.0f} s", flush=True)
            continue
        before = f", {last['seconds']:.0f} s the last time" if "seconds" in last else ""
        print(f"{number}/{len(names)} {name}: running{before}; {LOGS / name}.log", flush=True)
        begin = time.monotonic()
        with (LOGS / f"{name}.log").open("w") as log:
            ended = subprocess.run(
                [sys.executable, HERE / f"{name}.py"], stdout=log, stderr=subprocess.STDOUT, cwd=ROOT, check=False
            )
        seconds = time.monotonic() - begin
        state[name] = {"code": code, "passed": ended.returncode == 0, "seconds": seconds}
        beside = STATE.with_suffix(".new")
        beside.write_text(json.dumps(state, indent=1))
        os.replace(beside, STATE)
        print(
            f"    {'done' if ended.returncode == 0 else f'ended with {ended.returncode}'}, {seconds:.0f} s", flush=True
        )
        if ended.returncode:
            failed.append(name)
    if failed:
        sys.exit(f"failed: {', '.join(failed)}; see {LOGS}")


if __name__ == "__main__":
    main()

"""Joints, springs and an actuator against eighteen recorded runs of ADAMS; writes the table of docs/joints.md.

    python validation/joints.py                 # all cases, 5 s each at dt = 5e-4 s
    python validation/joints.py --write         # and put the table into docs/joints.md
    python validation/joints.py --steps 10      # a longer step: 10 a hundredth of a second

The mechanisms and what they are compared with are in tests/physics/adams.py.
"""

import argparse
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests" / "physics"))

import adams  # noqa: E402

import clast  # noqa: E402

DATA = ROOT.parent / "shared" / "data"
BEGIN, END = "<!-- table: adams -->", "<!-- end of table -->"
HEAD = (
    "| case | position [m] | velocity [m/s] | spin [rad/s] | force [N] | torque [N m] | largest force [N] | violation |"
)


def measure(case, steps):
    """One row of the table as numbers, and the seconds it took."""
    began = time.perf_counter()
    sim = clast.Simulation(case.build(), clast.Complementarity(), dt=0.01 / steps)
    found, worst = adams.record(case, sim, steps, 501)
    missed = adams.errors(case, found, DATA)
    force = max(value for name, value in missed.items() if name.startswith("Rforce"))
    torque = max((value for name, value in missed.items() if name.startswith("Rtorque")), default=None)
    largest = max(abs(case.reference(DATA, name)).max() for name in missed if name.startswith("Rforce"))
    numbers = [missed["Pos"], missed["Vel"], missed["Avel"], force, torque, largest, worst]
    return numbers, time.perf_counter() - began


def line(name, numbers):
    shown = ["" if value is None else f"{value:.1e}" for value in numbers]
    shown[5] = f"{numbers[5]:.4g}"
    return f"| {name} | {' | '.join(shown)} |"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="cases; default all")
    parser.add_argument("--steps", type=int, default=20, help="steps in a hundredth of a second")
    parser.add_argument("--write", action="store_true", help="put the table into docs/joints.md")
    options = parser.parse_args()
    if not DATA.is_dir():
        sys.exit(f"needs the recorded runs in {DATA}")
    lines = [HEAD, "|---" * 8 + "|"]
    for name in options.names or adams.CASES:
        numbers, seconds = measure(adams.CASES[name], options.steps)
        lines.append(line(name, numbers))
        print(f"{lines[-1]} {seconds:.0f} s", flush=True)
    if options.write:
        page = ROOT / "docs" / "joints.md"
        before, rest = page.read_text(encoding="utf-8").split(BEGIN)
        after = rest.split(END)[1]
        page.write_text(before + BEGIN + "\n" + "\n".join(lines) + "\n" + END + after, encoding="utf-8")


if __name__ == "__main__":
    main()

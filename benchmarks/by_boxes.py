"""More contacts than memory holds: spheres at random, counted box by box; time and memory against their number.

    python benchmarks/by_boxes.py 1000000 10000000 --density 4

`--density`: the mean number of spheres whose centre is within a diameter of a given one, so the contacts are half of that times
the spheres. On the smallest number the count is compared with that of `find_contacts` in the same run.
"""

import argparse
import resource
import subprocess
import sys
import time

import numpy as np
from common import ROOT  # noqa: F401 the code beside these files is what is measured

import clast


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("counts", nargs="+", type=int, help="numbers of spheres")
    parser.add_argument("--density", type=float, default=4.0, help="mean number of spheres that touch one")
    parser.add_argument("--memory", type=float, default=2.0**30, help="of a box [bytes]")
    parser.add_argument("--check", action="store_true", help="compare with find_contacts")
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        return measure(given.counts[0], given.density, given.memory, given.check)
    print(
        f"{'spheres':>13} {'boxes':>6} {'contacts':>15} {'expected':>15} {'scene [s]':>10} {'contacts [s]':>13} {'peak [GB]':>10}"
    )
    for k, count in enumerate(sorted(given.counts)):
        # A process each: the peak of one must not be that of the one before.
        command = [sys.executable, __file__, str(count), "--one", "--density", str(given.density)]
        command += ["--memory", str(given.memory)] + (["--check"] if given.check or k == 0 else [])
        subprocess.run(command, check=True)
    return None


def measure(count, density, memory, check):
    """Print one row."""
    list(clast.contacts_by_boxes(spheres(1000, density)))  # compiled, or loaded
    began = time.perf_counter()
    scene = spheres(count, density)
    made = time.perf_counter()
    boxes, contacts = 0, 0
    for found in clast.contacts_by_boxes(scene, memory=memory, sort=False):
        boxes, contacts = boxes + 1, contacts + len(found.gap)
    done = time.perf_counter()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9
    expected = 0.5 * density * count
    print(
        f"{count:13,} {boxes:6} {contacts:15,} {expected:15,.0f} {made - began:10.1f} {done - made:13.1f} {peak:10.2f}",
        flush=True,
    )
    if check:
        whole = len(clast.find_contacts(scene, sort=False).gap)
        print(
            f"{'':13} find_contacts finds {whole:,}: {'the same' if whole == contacts else 'NOT the same'}", flush=True
        )


def spheres(count, density):
    """Spheres of radius 0.5 m at random in a periodic box, so that every one touches `density` others on the average."""
    edge = float((4.0 / 3.0 * np.pi * count / density) ** (1.0 / 3.0))
    scene = clast.Scene(world=((0, 0, 0), (edge, edge, edge)), periodic=(True, True, True))
    rng = np.random.default_rng(1)
    scene.add(clast.Sphere(0.5), position=rng.random((count, 3)) * edge)
    return scene


if __name__ == "__main__":
    main()

"""More contacts than memory holds: spheres at random, counted box by box; time and memory against their number.

    python benchmarks/by_boxes.py 1000000 10000000 --density 4 --figure docs/images/by_boxes.png

`--density`: the mean number of spheres whose centre is within a diameter of a given one, so the contacts are half of that times
the spheres. The contacts between the spheres of a corner are compared with those of `find_contacts`, to the bit.
"""

import argparse
import json
import resource
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
from common import ROOT  # noqa: F401 the code beside these files is what is measured

import clast
from clast.tables import GEOMETRY

TELLS = 30.0  # [s] between lines about how far it is, on the standard error
HEAD = f"{'spheres':>13} {'boxes':>6} {'contacts':>15} {'scene [s]':>10} {'contacts [s]':>13} {'a second':>11} {'scene [GB]':>10} {'boxes [GB]':>10} {'peak [GB]':>10}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("counts", nargs="+", type=int, help="numbers of spheres")
    parser.add_argument("--density", type=float, default=4.0, help="mean number of spheres that touch one")
    parser.add_argument("--memory", type=float, default=2.0**30, help="of a box [bytes]")
    parser.add_argument("--part", type=float, default=2e4, help="spheres, about, in the corner that is compared")
    parser.add_argument("--figure", type=Path, help="a picture of time and memory")
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        return measure(given.counts[0], given.density, given.memory, given.part)
    print(HEAD)
    rows = []
    for count in sorted(given.counts):
        # A process each: the peak of one must not be that of the one before.
        command = [sys.executable, __file__, str(count), "--one", "--density", str(given.density)]
        command += ["--memory", str(given.memory), "--part", str(given.part)]
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
        rows.append(json.loads(done.splitlines()[-1]))
        print(*done.splitlines()[:-1], sep="\n", flush=True)
    if given.figure:
        draw(given.figure, rows, given.memory)
    return None


def measure(count, density, memory, part):
    """Print one row, and the same as JSON."""
    list(clast.contacts_by_boxes(spheres(1000, density), sort=False))  # compiled, or loaded
    bare = resident("VmRSS")
    began = time.perf_counter()
    scene = spheres(count, density)
    made = time.perf_counter()
    held = resident("VmRSS")
    Path("/proc/self/clear_refs").write_text("5", encoding="utf-8")  # the peak is that of what follows
    boxes, contacts = 0, 0
    corner, reach = corner_of(scene, part)
    told = {name: [] for name in GEOMETRY}
    told_at = made
    for found in clast.contacts_by_boxes(scene, memory=memory, sort=False):
        boxes, contacts = boxes + 1, contacts + len(found.gap)
        if time.perf_counter() - told_at > TELLS:  # a hundred million spheres take minutes
            told_at = time.perf_counter()
            expected = 0.5 * density * count
            print(
                f"{count:,}: {boxes} boxes, {contacts:,} contacts, about {contacts / expected:.0%}",
                file=sys.stderr,
                flush=True,
            )
        # By where it is first: to look both bodies up took half as long as to find the contacts.
        inside = np.flatnonzero(found.point[:, 0] <= reach)
        inside = inside[corner[found.pair[inside]].all(1)]
        for name in GEOMETRY:
            told[name].append(getattr(found, name)[inside])
        del found, inside
    done = time.perf_counter()
    peak = resident("VmHWM")
    row = {
        "spheres": count,
        "boxes": boxes,
        "contacts": contacts,
        "scene_s": made - began,
        "contacts_s": done - made,
        "scene_gb": held - bare,
        "boxes_gb": peak - held,
        "peak_gb": max(peak, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9),
    }
    print(
        f"{count:13,} {boxes:6} {contacts:15,} {made - began:10.1f} {done - made:13.1f} {contacts / (done - made):11,.0f} "
        f"{row['scene_gb']:10.2f} {row['boxes_gb']:10.2f} {row['peak_gb']:10.2f}"
    )
    compare(scene, corner, {name: np.concatenate(columns) for name, columns in told.items()})
    print(json.dumps(row))


def corner_of(scene, part):
    """Which bodies, by their numbers, are in a corner of the box that holds about `part` of them: (n,) bool; and how far along x [m] their contacts are
    at the most: the point of a contact lies between both centres, or between one and the image of the other."""
    edge = scene.world[1][0] * min(part / len(scene.bodies.number), 1.0) ** (1.0 / 3.0)
    return (scene.bodies.position <= edge).all(1), edge + 1.0


def compare(scene, corner, told):
    """Say whether the contacts of a corner are those of `find_contacts`, to the bit."""
    some = clast.Scene(world=scene.world, periodic=scene.periodic)
    number = np.flatnonzero(corner)
    some.add(clast.Sphere(0.5), position=scene.bodies.position[corner])
    whole = clast.find_contacts(some, sort=True)
    order = np.lexsort((told["pair"][:, 1], told["pair"][:, 0]))
    same = np.array_equal(number[whole.pair], told["pair"][order])
    same = same and all(np.array_equal(getattr(whole, k), told[k][order]) for k in GEOMETRY[1:])
    print(f"{'':13} find_contacts of {len(number):,}: {len(whole.gap):,}, {'the same' if same else 'NOT the same'}")


def resident(name):
    """Memory of this process by that name, VmRSS or VmHWM [GB]."""
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    return next(float(line.split()[1]) for line in lines if line.startswith(name)) * 1024 / 1e9


def spheres(count, density):
    """Spheres of radius 0.5 m at random in a periodic box, so that every one touches `density` others on the average."""
    edge = float((4.0 / 3.0 * np.pi * count / density) ** (1.0 / 3.0))
    scene = clast.Scene(world=((0, 0, 0), (edge, edge, edge)), periodic=(True, True, True))
    position = np.random.default_rng(1).random((count, 3))
    position *= edge
    scene.add(clast.Sphere(0.5), position=position)
    return scene


def draw(path, rows, memory):
    """Time and memory against contacts."""
    import matplotlib.pyplot as plt

    contacts = np.array([row["contacts"] for row in rows])
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
    left.loglog(contacts, [row["contacts_s"] for row in rows], "o-")
    left.loglog(contacts, rows[-1]["contacts_s"] * contacts / contacts[-1], ":", color="grey", label="as the contacts")
    left.set(xlabel="contacts", ylabel="time [s]")
    left.legend()
    right.loglog(contacts, [row["scene_gb"] for row in rows], "s-", label="scene")
    right.loglog(contacts, [row["boxes_gb"] for row in rows], "o-", label="beside it, box by box")
    right.loglog(contacts, contacts * 84 / 1e9, ":", color="grey", label="all contacts would be")
    right.axhline(memory / 1e9, ls="--", color="grey", lw=0.8, label="allowed for a box")
    right.set(xlabel="contacts", ylabel="memory [GB]")
    right.legend(fontsize=8)
    figure.savefig(path, dpi=120)


if __name__ == "__main__":
    main()

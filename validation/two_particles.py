"""Two triangulated particles meet and part: when the three spacetrees compare them, beside what Krestenitis (2017) reports.

K. Krestenitis, In grid multi-scale parallel discrete element method for non-spherical particle dynamics (2017), appendix B: two
particles of 126 triangles in a unit cube, 15,000 steps of 0.1 ms, 3,944 comparisons of triangles when they are compared.

    python validation/two_particles.py             # three minutes; writes the table of docs/spacetree.md
    python validation/two_particles.py --quick     # every tenth step; writes nothing

The ready scene `two-particles` runs once; then each spacetree looks at the two bodies in every step, with the unit cube as its
root and no margin. The paper gives neither shapes nor places nor speeds, so the steps are others; the order of events is
the same.
"""

import argparse
from pathlib import Path

import numpy as np

from clast import scenes
from clast.broad.spacetree import VARIANTS, Spacetree
from clast.tables import Box, Shapes

PAGE = Path(__file__).resolve().parents[1] / "docs" / "spacetree.md"
STEPS = 15_000
TRIANGLES = 58 * 68
FREE = Box(np.zeros(3), np.zeros(3), np.zeros(3), False)
# Vertices, first and last step with comparisons, and the step of the contact.
PUBLISHED = {
    "regular": ("1,032", "6,335", "12,503", "9,541"),
    "adaptive": ("747, at times 980", "8,557", "10,415", "9,539"),
    "reluctant": ("498, 980, 747, 498", "6,334 to 6,338 and 8,557", "10,452", "9,541"),
}


def fly(every):
    """Places of the two bodies in every step (steps,2,3) [m], their radii, the first and the last step in contact."""
    simulation = scenes.two_particles().simulation()
    free = np.isfinite(simulation.bodies.mass)
    radius = simulation.scene.shapes().radius[:2]
    places, touching = [], []
    for step in range(STEPS + 1):
        if step:
            simulation.step(1)
        places.append(simulation.bodies.position[free].copy())
        if abs(step - 9541) < 100 and len(simulation.contacts().gap) and simulation.contacts().gap.min() < 0.0:
            touching.append(step)
    return np.array(places)[::every], radius, touching[0], touching[-1]


def watch(variant, places, radius):
    """Vertices of the grid and comparisons of bodies in each of these steps."""
    tree = Spacetree(variant, ((0.0, 0.0, 0.0), 1.0))
    rows = np.arange(2, dtype=np.int32)
    counted = []
    for place in places:
        shapes = Shapes(rows.astype(np.int64), rows, rows * 0, rows.astype(np.int8) * 0, place, radius)
        tree(shapes, rows, FREE, 0.0)
        counted.append((tree.counters.vertices, tree.counters.comparisons))
    return np.array(counted).T


def runs(values):
    """What a series was, one after the other, with the first index of each."""
    first = np.concatenate([[0], np.flatnonzero(np.diff(values)) + 1])
    return [(int(k), int(values[k])) for k in first]


def main():
    """Run it and say what came out."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="look at every tenth step; writes nothing")
    quick = parser.parse_args().quick
    every = 10 if quick else 1
    places, radius, touch, part = fly(every)
    lines = [
        "| grid | vertices | first step compared | touch | last step compared | steps compared | comparisons of triangles in all |",
        "|---|---|---:|---:|---:|---:|---:|",
    ]
    work = {}
    for variant in VARIANTS:
        vertices, compared = watch(variant, places, radius)
        steps = np.flatnonzero(compared) * every
        work[variant] = len(steps) * every
        print(variant, "vertices from step:", ", ".join(f"{k * every}: {v}" for k, v in runs(vertices)))
        print(variant, "comparisons from step:", ", ".join(f"{k * every}: {v * TRIANGLES}" for k, v in runs(compared)))
        seen = list(dict.fromkeys(f"{v:,}" for _, v in runs(vertices)))
        lines.append(
            f"| {variant} | {', '.join(seen)} | {steps[0]:,} | {touch:,} to {part:,} | {steps[-1]:,} "
            f"| {work[variant]:,} | {int(compared.sum()) * every * TRIANGLES:,} |"
        )
        theirs = PUBLISHED[variant]
        lines.append(f"| *published* | {theirs[0]} | {theirs[1]} | {theirs[3]} | {theirs[2]} | | |")
    text = "\n".join(lines)
    print(text)
    if not work["adaptive"] < work["regular"] or not work["reluctant"] < work["regular"]:
        raise SystemExit("the adaptive grids compare in as many steps as the regular one")
    if not quick:
        page = PAGE.read_text(encoding="utf-8")
        before, rest = page.split("<!-- two particles -->\n")
        after = rest.split("<!-- /two particles -->")[1]
        PAGE.write_text(f"{before}<!-- two particles -->\n{text}\n<!-- /two particles -->{after}", encoding="utf-8")


if __name__ == "__main__":
    main()

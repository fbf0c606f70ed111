"""Every particle with every particle and wall at very many random poses: numbers, unit normals, as much room along the normal as is told.

    python tests/campaign/matrix.py                     # 100,000 poses a pair, all pairs; hours on one core
    python tests/campaign/matrix.py --count 2000        # a minute
    python tests/campaign/matrix.py --with capsule      # pairs with this shape only

Prints a line for each pair and ends with 1 if something is wrong. tests/agree/test_matrix.py has the small version and the references.
"""

import argparse
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "agree"))
from test_matrix import HALOS, KNOWN, PAIRS, PARTICLES, in_sheet, poses, separation  # the references stand there

import clast
from clast.kernels.vec import rotation_matrices

BATCH = 20_000  # poses at a time
# Pairs that no support functions tell of, or not everywhere: a drum is not convex, and deep in the edge of a sheet there may be no contact.
BARE = [pair for pair in PAIRS if pair not in KNOWN] + [
    ((name, shape), ("drum", clast.Cylinder(2.0))) for name, shape in PARTICLES.items()
]


def look(one, two, count, seed):
    """Poses that are not numbers, whose normal is no unit vector, and whose normal has other room than the gap: how many of each."""
    a, b = poses(one, two, count, seed)
    found = clast.distance(one[1], a, two[1], b)
    finite = np.isfinite(found.gap) & np.isfinite(found.normal).all(1) & np.isfinite(found.first).all(1)
    unit = np.abs(np.linalg.norm(found.normal, axis=1) - 1.0) < 1e-12
    halo = HALOS.get(one[0], 0.0) + HALOS.get(two[0], 0.0)
    # Surfaces of triangles that cross have no distance.
    asked = np.nonzero(found.gap + halo > (1e-7 if halo or in_sheet(one, two) else -np.inf))[0]
    first, second = rotation_matrices(a[1]), rotation_matrices(b[1])
    off = 0
    for k in asked:
        room = separation(one, two, found.normal[k][None], b[0][k], first[k], second[k])[0]
        off += not abs(room - found.gap[k] - halo) < 2e-9
    return int((~finite).sum()), int((~unit).sum()), off, len(asked)


def look_bare(one, two, count, seed):
    """Contact points that are not numbers, whose normal is no unit vector, then 0, and poses without a contact: how many of each."""
    (x, q), (y, r) = poses(one, two, count, seed)
    scene = clast.Scene()
    first = scene.add(one[1], position=x, orientation=q, motion="fixed")
    second = scene.add(two[1], position=0.5 * y if two[0] == "drum" else y, orientation=r, motion="fixed")
    found = clast.find_contacts(scene, pairs=np.stack([first, second], axis=1), margin=np.inf)
    finite = np.isfinite(found.gap) & np.isfinite(found.normal).all(1) & np.isfinite(found.point).all(1)
    unit = np.abs(np.linalg.norm(found.normal, axis=1) - 1.0) < 1e-12
    return int((~finite).sum()), int((~unit).sum()), 0, count - len(np.unique(found.pair[:, 0]))


def code_of():
    """The commit of the sources, told beside what was measured on them."""
    told = subprocess.run(
        ["git", "rev-parse", "--short=7", "HEAD"], cwd=Path(__file__).parent, capture_output=True, text=True
    )
    return told.stdout.strip() or "unknown"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=100_000, help="poses of each pair")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--with", dest="shapes", nargs="*", help="pairs that have one of these shapes")
    options = parser.parse_args()
    wrong, commit = 0, code_of()
    for one, two in [*KNOWN, *BARE]:
        bare = (one, two) in BARE
        if options.shapes and not {one[0], two[0]} & set(options.shapes):
            continue
        began, sums = time.perf_counter(), np.zeros(4, int)
        for first in range(0, options.count, BATCH):
            sums += (look_bare if bare else look)(one, two, min(BATCH, options.count - first), options.seed + first)
        wrong += int(sums[:3].sum())
        print(
            f"{one[0]:>12} {two[0]:<12} {options.count} poses: not numbers {sums[0]}, no unit normal {sums[1]}, "
            + (f"without a contact {sums[3]}, " if bare else f"other room {sums[2]} of {sums[3]}, ")
            + f"{time.perf_counter() - began:.1f} s, {commit}",
            flush=True,
        )
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

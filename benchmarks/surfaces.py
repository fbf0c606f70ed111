"""Triangulated particles: least distances, comparisons of triangles, contacts; trees against brute force, and coal.

    python benchmarks/surfaces.py                 # a few minutes on two cores
    python benchmarks/surfaces.py --only distance # or comparisons, or contacts
    python benchmarks/surfaces.py --quick         # fewer pairs
    python benchmarks/polyhedra.py --install      # coal, in the peers' environment (.bench-venv)

Prints tables and keeps every number in results/surfaces-<machine>.json.

distance      least distance of two equal balls of triangles in any orientation, gaps of 0.02 to 0.5 radii: clast on one core
              through `find_contacts(pairs=, margin=inf)`, brute force over all triangles in the same process on the first
              pairs, and coal on one core, in turn.
comparisons   pairs of triangles that are measured for two balls with an overlap, of all that there are.
contacts      touching pairs of random lumps: candidates and contacts a pair, and how long each method takes.
"""

import argparse
import json
import subprocess
import time

import numba
import numpy as np
from common import RESULTS, ROOT, cache, machine, median
from ellipsoids import PEERS, console, show, turns

import clast
from clast.broad.search import periodic_box
from clast.narrow.mesh_candidates import find_candidates
from clast.narrow.mesh_distance import nearest_triangles
from clast.narrow.mesh_pose import make_setting
from clast.narrow.triangle_lanes import METHODS
from clast.scene.stacking import make_trees

LEVELS = (2, 3, 4, 5)  # 20 * 4^level triangles


def trees_of(scene):
    """The triangles of all particles, with their trees of boxes."""
    return make_trees(scene.parts, scene.hulls, scene.surfaces)


def ball(level):
    """A ball of triangles of radius 1."""
    from trimesh.creation import icosphere

    sphere = icosphere(subdivisions=level)
    return clast.Mesh(np.asarray(sphere.vertices), np.asarray(sphere.faces))


def placed(shapes, count, low, high, seed=0):
    """Pairs of random shapes, centres low to high apart: scene, body numbers (n,2)."""
    rng = np.random.default_rng(seed)
    _, orientation = turns(rng, 2 * count)
    way = rng.normal(size=(count, 3))
    way *= (rng.uniform(low, high, count) / np.linalg.norm(way, axis=1))[:, None]
    place = np.zeros((count, 2, 3))
    place[:, :, 0] = 10.0 * np.arange(count)[:, None]
    place[:, 1] += way
    scene = clast.Scene()
    numbers = np.empty(2 * count, np.int64)
    which = rng.integers(len(shapes), size=2 * count)
    for k, shape in enumerate(shapes):
        chosen = which == k
        numbers[chosen] = scene.add(shape, position=place.reshape(-1, 3)[chosen], orientation=orientation[chosen])
    return scene, numbers.reshape(-1, 2)


def timed(function, times=5):
    """Median seconds of a call, after one that may compile, and what it returns."""
    function()
    seconds = []
    for _ in range(times):
        began = time.perf_counter()
        answer = function()
        seconds.append(time.perf_counter() - began)
    return median(seconds), answer


def rows_of(scene, numbers):
    """The tables of a scene and pairs of bodies as rows of Shapes."""
    bodies = scene.bodies
    shapes = scene.shapes(bodies)
    row = np.empty(bodies.number.max() + 1, np.int32)
    row[bodies.number[shapes.body]] = np.arange(len(shapes.body))
    return (bodies, shapes, scene.parts, scene.meshes, scene.hulls), row[numbers]


def coal(shape, scene, numbers):
    """Distances by coal and its seconds, or None where it is not installed."""
    if not PEERS.exists() or subprocess.run([PEERS, "-c", "import coal"], capture_output=True).returncode:
        return None
    from clast.kernels.vec import rotation_matrices

    bodies = scene.bodies
    source, target = cache() / "surfaces.npz", cache() / "surfaces-distances.npz"
    turn = rotation_matrices(bodies.orientation)[numbers]
    position = bodies.position[numbers]
    np.savez(source, vertices=shape.vertices, triangles=shape.triangles, turn=turn, position=position)
    command = [PEERS, ROOT / "benchmarks" / "surface_peers.py", source, target]
    subprocess.run(command, check=True, capture_output=True)
    return np.load(target)


def distance(quick):
    """Least distances a second on one core."""
    rows = []
    threads = numba.get_num_threads()
    clast.kernels.backend.set_threads(1)
    for level in LEVELS:
        shape = ball(level)
        count, few = (200, 2) if quick else (1000, 4)
        scene, numbers = placed([shape], count, 2.02, 2.5)
        seconds, found = timed(lambda: clast.find_contacts(scene, pairs=numbers, margin=np.inf))  # noqa: B023
        tables, pair = rows_of(scene, numbers)
        looked = nearest_triangles(tables, trees_of(scene), pair, periodic_box(scene)).looked.mean()
        row = {"triangles": len(shape.triangles), "pairs": count, "clast [1/s]": count / seconds, "measured": looked}
        if level < 4:
            head = numbers[:few]
            slow, same = timed(lambda: clast.find_contacts(scene, pairs=head, margin=np.inf, tree=False), 1)  # noqa: B023
            assert np.array_equal(same.gap, found.gap[:few])
            row["brute force [1/s]"] = few / slow
            row["times brute force"] = count / seconds / row["brute force [1/s]"]
        theirs = coal(shape, scene, numbers)
        if theirs is not None:
            row["coal [1/s]"] = count / float(theirs["seconds"])
            row["times coal"] = count / seconds / row["coal [1/s]"]
            row["largest difference"] = float(np.abs(found.gap + 2.0 * shape.epsilon - theirs["distance"]).max())
        rows.append(row)
        console.print(row)
    clast.kernels.backend.set_threads(threads)
    return rows


def comparisons(quick):
    """Pairs of triangles that are measured for two balls 2.01 radii apart, all contacts and the least distance."""
    rows = []
    for level in LEVELS:
        shape = ball(level)
        scene, numbers = placed([shape], 1, 2.01, 2.01)
        tables, pair = rows_of(scene, numbers)
        box = periodic_box(scene)
        candidates = find_candidates(make_setting(tables, trees_of(scene), pair, box), trees_of(scene), 0.0)
        seconds, found = timed(lambda: clast.find_contacts(scene, pairs=numbers))  # noqa: B023
        rows.append(
            {
                "triangles": len(shape.triangles),
                "all pairs": len(shape.triangles) ** 2,
                "measured for contacts": len(candidates.first),
                "for the distance": int(nearest_triangles(tables, trees_of(scene), pair, box).looked[0]),
                "contacts": len(found.gap),
                "contacts [ms]": 1e3 * seconds,
            }
        )
        console.print(rows[-1])
    return rows


def contacts(quick):
    """All contacts of touching lumps, by method and by brute force over all triangles."""
    count = 200 if quick else 2000
    lumps = [clast.Mesh.random(32, seed=k) for k in range(10)]
    scene, numbers = placed(lumps, 5 * count, 1.4, 1.8)
    gap = clast.find_contacts(scene, pairs=numbers, margin=np.inf).gap
    # Halos overlap and triangles do not cross.
    numbers = numbers[(gap < 0.0) & (gap > -1.9 * min(lump.epsilon for lump in lumps))][:count]
    tables, pair = rows_of(scene, numbers)
    setting = make_setting(tables, trees_of(scene), pair, periodic_box(scene))
    each = len(find_candidates(setting, trees_of(scene), 0.0).first) / len(pair)
    head = numbers[: len(numbers) // 10]
    slow, _ = timed(lambda: clast.find_contacts(scene, pairs=head, tree=False), 3)
    brute = len(head) / slow
    rows = []
    for name in METHODS:
        seconds, found = timed(lambda: clast.find_contacts(scene, pairs=numbers, narrow=name))  # noqa: B023
        rows.append(
            {
                "method": name,
                "pairs": len(numbers),
                "triangles": len(lumps[0].triangles),
                "candidates a pair": each,
                "contacts a pair": len(found.gap) / len(numbers),
                "pairs [1/s]": len(numbers) / seconds,
                "all triangles [1/s]": brute,
                "ratio": len(numbers) / seconds / brute,
            }
        )
        console.print(rows[-1])
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer pairs; nothing is stored")
    parser.add_argument(
        "--only", choices=("distance", "comparisons", "contacts"), help="one part; the others stay as stored"
    )
    options = parser.parse_args()
    path = RESULTS / f"surfaces-{machine()}.json"
    results = json.loads(path.read_text()) if path.exists() else {}
    for name, function in (("distance", distance), ("comparisons", comparisons), ("contacts", contacts)):
        if options.only in (None, name):
            results[name] = function(options.quick)
            if not options.quick:
                path.parent.mkdir(exist_ok=True)
                path.write_text(json.dumps(results, indent=1) + "\n")
    show(results)


if __name__ == "__main__":
    main()

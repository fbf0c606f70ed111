"""How long a user waits: import, the first step with stored kernels, and the first step of a fresh installation.

    python benchmarks/start.py
    python benchmarks/start.py --compilation    # processor seconds of compiling two small scenes, and small steps

The warm start must compile nothing; that is counted, not timed, and the script fails if it is not so. Compilation is
told as processor seconds of one thread, cold and over the same start with stored kernels; the ratio holds on a busy machine too.
"""

import argparse
import json
import os
import sys
import tempfile
import time

from common import child, clast_here, median, quiet


def worker():
    """Import, build a scene of a thousand spheres between walls and take one step, in this process."""
    start = time.perf_counter()
    import clast

    for name in clast.__all__:  # modules are imported when their names are first used
        getattr(clast, name)

    imported = time.perf_counter() - start
    import numpy as np
    from common import STEP, walled

    side = 10
    lattice = np.stack(np.meshgrid(*[np.arange(side)] * 3, indexing="ij"), axis=-1).reshape(-1, 3)
    scene = walled((lattice + 0.5) * 5.9e-3, np.full(side**3, 3e-3), (side * 5.9e-3, side * 5.9e-3))
    start = time.perf_counter()
    simulation = clast.Simulation(scene, clast.DEM(law="hertz"), dt=STEP)
    simulation.step(1)
    first = time.perf_counter() - start
    from clast.kernels import backend

    return {"import": imported, "first_step": first, "compiled": backend.compiled()}


def on_a_plane(kind, count):
    """A simulation of so many spheres or cubes, in layers on a plane, nearly touching."""
    import numpy as np

    import clast

    side = round((count / 3.0) ** 0.5) if count > 27 else 3
    index = np.arange(count)
    place = np.stack([index % side, index // side % side, index // side**2], axis=1)
    shape = clast.Sphere(0.01) if kind == "spheres" else clast.Polyhedron.box(0.02, 0.02, 0.02)
    scene = clast.Scene()
    scene.add(clast.Plane())
    scene.add(shape, position=(place + 0.5) * 0.02002)
    return clast.Simulation(scene)


def compiling(kind):
    """Processor seconds of this process, and of those that it began, from its start to two steps of a small scene, all told."""
    on_a_plane(kind, 300 if kind == "spheres" else 27).step(2)
    from clast.kernels import backend

    return {"seconds": sum(os.times()[:4]), "compiled": len(backend.compiled())}


def stepping(repeats):
    """A step of 10 and of 1,000 spheres at rest [us], medians."""
    found = {}
    for count in (10, 1000):
        sim, times = on_a_plane("spheres", count), []
        sim.step(2000)
        for _ in range(10 * repeats):
            start = time.perf_counter()
            sim.step(200)
            times.append((time.perf_counter() - start) / 200 * 1e6)
        found[str(count)] = median(times)
    return found


def compilation(repeats=5):
    """Processor seconds of a cold and of a warm start on one thread, their ratio, and steps of few spheres [us]."""
    found = {}
    for kind in ("spheres", "cubes"):
        with tempfile.TemporaryDirectory() as folder:
            alone = {"NUMBA_CACHE_DIR": folder, "NUMBA_NUM_THREADS": "1", "CLAST_WORKERS": "0"}
            cold = child("start.py", "--compiling", kind, **alone)
            warm = [child("start.py", "--compiling", kind, **alone) for _ in range(repeats)]
        seconds = median([w["seconds"] for w in warm])
        found[kind] = {
            "cold": cold["seconds"],
            "compiled": cold["compiled"],
            "warm": seconds,
            "warm_compiled": sum(w["compiled"] for w in warm),
            "cold_over_warm": cold["seconds"] / seconds,
        }
    found["step"] = child("start.py", "--stepping", "--repeats", repeats)
    return found


def empty():
    """Time to import numpy and numba alone, in this process: what clast cannot go below."""
    start = time.perf_counter()
    import numba  # noqa: F401
    import numpy  # noqa: F401

    return {"import": time.perf_counter() - start}


def run(repeats=5):
    """Medians over processes [s] and the number of kernels compiled in a cold and in a warm start."""
    here, reason = clast_here()
    if not here:
        return {"skipped": f"clast does not import here: {reason}"}
    child("start.py", "--worker")  # stores the kernels, so that the next start is warm
    quiet()
    with tempfile.TemporaryDirectory() as folder:
        cold = child("start.py", "--worker", NUMBA_CACHE_DIR=folder)
        again = child("start.py", "--worker", NUMBA_CACHE_DIR=folder)
    warm, bare = [], []
    for _ in range(repeats):
        bare.append(child("start.py", "--empty"))
        warm.append(child("start.py", "--worker"))
    fresh = [name for w in (again, *warm) for name in w["compiled"]]
    if fresh:
        raise SystemExit(f"a warm start must compile nothing, but it compiled {', '.join(sorted(set(fresh)))}")
    if not cold["compiled"]:
        raise SystemExit("a cold start compiled nothing: the counter does not count, or the cache is somewhere else")
    return {
        "import": median([w["import"] for w in warm]),
        "import_numpy_numba": median([b["import"] for b in bare]),
        "warm_first_step": median([w["first_step"] for w in warm]),
        "cold_first_step": cold["first_step"],
        "cold_compiled": len(cold["compiled"]),
        "warm_compiled": len(fresh),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--empty", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--compilation", action="store_true", help="processor seconds of compiling, and small steps")
    parser.add_argument("--compiling", choices=("spheres", "cubes"), help=argparse.SUPPRESS)
    parser.add_argument("--stepping", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.compiling or options.stepping:
        print(json.dumps(compiling(options.compiling) if options.compiling else stepping(options.repeats)))
        return
    if options.worker or options.empty:
        print(json.dumps(worker() if options.worker else empty()))
        return
    json.dump((compilation if options.compilation else run)(options.repeats), sys.stdout, indent=2)
    print()


if __name__ == "__main__":
    main()

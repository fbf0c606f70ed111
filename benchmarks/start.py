"""How long a user waits: import, first steps of a fresh installation and with stored kernels, small steps, tests.

    python benchmarks/start.py                  # import, warm and cold first step of a thousand spheres
    python benchmarks/start.py --table          # every row of the table of starts; --wheel FILE and --tests add theirs
    python benchmarks/start.py --compilation    # processor seconds of compiling two small scenes, and small steps

The warm start must compile nothing; that is counted, not timed, and the script fails if it is not so. Wall times mean something on a
quiet machine only, and how many cores others used stands beside them. Compilation is told as processor seconds too, of all
processes that took part; `--compilation` has one thread alone, whose ratio to the same start with stored kernels holds on a busy machine.
"""

import argparse
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from common import ROOT, Others, child, clast_here, environment, median, quiet


def thousand_spheres():
    """A thousand spheres between walls."""
    import numpy as np
    from common import STEP, walled

    import clast

    side = 10
    lattice = np.stack(np.meshgrid(*[np.arange(side)] * 3, indexing="ij"), axis=-1).reshape(-1, 3)
    scene = walled((lattice + 0.5) * 5.9e-3, np.full(side**3, 3e-3), (side * 5.9e-3, side * 5.9e-3))
    return clast.Simulation(scene, clast.DEM(law="hertz"), dt=STEP)


def drum_of_cubes():
    """Cubes that touch each other, a drum with closed ends, and a blade given as a mesh."""
    import numpy as np

    import clast

    edge, radius, length = 0.01, 0.06, 0.0403
    scene = clast.Scene()
    scene.add(clast.Cylinder(radius, length, axis=(0, 1, 0)), spin=(0, 3.0, 0), motion="driven")
    for side in (-1.0, 1.0):
        scene.add(clast.Plane(normal=(0, -side, 0)), position=(0, 0.5 * side * length, 0))
    corners = np.array([(-0.01, -0.02, 0), (0.01, -0.02, 0), (0.01, 0.02, 0), (-0.01, 0.02, 0)], float)
    blade = clast.MeshWall(corners, [(0, 1, 2), (0, 2, 3)])
    scene.add(blade, position=(0, 0, -0.0402), spin=(0, 3.0, 0), motion="driven")
    place = np.stack(np.meshgrid(np.arange(-3, 4), np.arange(-2, 2), np.arange(4), indexing="ij"), axis=-1)
    position = (place.reshape(-1, 3) + (0.0, 0.5, 0.5)) * 0.01001 + (0.0, 0.0, -0.0402)
    scene.add(clast.Polyhedron.box(edge, edge, edge), position=position)
    return clast.Simulation(scene)


BUILDERS = {"spheres": thousand_spheres, "cubes": drum_of_cubes}


def worker(kind):
    """Import, build a scene and take one step, in this process."""
    start = time.perf_counter()
    import clast

    for name in clast.__all__:  # modules are imported when their names are first used
        getattr(clast, name)

    imported = time.perf_counter() - start
    sim = BUILDERS[kind]()
    start = time.perf_counter()
    sim.step(1)
    first = time.perf_counter() - start
    from clast.kernels import backend

    used = sum(os.times()[:4])
    return {"import": imported, "first_step": first, "processor": used, "compiled": backend.compiled()}


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


def stepping(repeats, counts=(10, 1000, 4000)):
    """A step of 10, of 1,000 and of 4,000 spheres at rest [us]: medians, and the least; and the threading layer."""
    import numba

    found = {}
    for count in counts:
        sim, times = on_a_plane("spheres", count), []
        sim.step(2000)
        for _ in range(10 * repeats):
            start = time.perf_counter()
            sim.step(100)
            times.append((time.perf_counter() - start) / 100 * 1e6)
        found[str(count)] = {"median": median(times), "least": min(times)}
    return found | {"layer": numba.threading_layer()}


def crowd(kind, repeats=10):
    """A step of so many bodies on one thread, the least [us]."""
    sim = on_a_plane(kind, 4000 if kind == "spheres" else 300)
    sim.step(200)
    least = min(timed(sim) for _ in range(repeats))
    return {"least": least}


def timed(sim, steps=20):
    """Processor time of a step [us]."""
    start = time.process_time()
    sim.step(steps)
    return (time.process_time() - start) / steps * 1e6


def level(rounds=3):
    """Steps with kernels for the level of the wheel over those with the machine's own, least of some processes taken in turn."""
    text = (ROOT / "Makefile").read_text()
    words = dict(word.split("=", 1) for word in re.search(r"^LEVEL := (.*)$", text, re.M)[1].split())
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        for kind in ("spheres", "cubes"):
            least = {"own": [], "level": []}
            for _ in range(rounds):
                for name, extra in (("own", {}), ("level", words)):
                    place = {"NUMBA_CACHE_DIR": f"{folder}/{name}", "NUMBA_NUM_THREADS": "1"}
                    least[name].append(child("start.py", "--crowd", kind, **place, **extra)["least"])
            found[kind] = (min(least["own"]), min(least["level"]))
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


def run(repeats=5):
    """Medians over processes [s] and the number of kernels compiled in a cold and in a warm start."""
    here, reason = clast_here()
    if not here:
        return {"skipped": f"clast does not import here: {reason}"}
    child("start.py", "--worker", "spheres")  # stores the kernels, so that the next start is warm
    quiet()
    with tempfile.TemporaryDirectory() as folder:
        cold = child("start.py", "--worker", "spheres", NUMBA_CACHE_DIR=folder)
        again = child("start.py", "--worker", "spheres", NUMBA_CACHE_DIR=folder)
    warm = []
    for _ in range(repeats):
        warm.append(child("start.py", "--worker", "spheres"))
    fresh = [name for w in (again, *warm) for name in w["compiled"]]
    if fresh:
        raise SystemExit(f"a warm start must compile nothing, but it compiled {', '.join(sorted(set(fresh)))}")
    if not cold["compiled"]:
        raise SystemExit("a cold start compiled nothing: the counter does not count, or the cache is somewhere else")
    return {
        "import": median([importing(IMPORTS[0]) for _ in range(repeats)]),
        "import_all_names": median([w["import"] for w in warm]),
        "import_numpy_numba": median([importing(IMPORTS[2]) for _ in range(repeats)]),
        "warm_first_step": median([w["first_step"] for w in warm]),
        "cold_first_step": cold["first_step"],
        "cold_compiled": len(cold["compiled"]),
        "warm_compiled": len(fresh),
    }


# The table of starts.


def tell(what, text, others):
    """One row; others: cores that other processes used meanwhile."""
    print(f"{what:<44} {text}   [others: {others.cores} cores]", flush=True)


def seconds_of(found):
    """A start as text."""
    return (
        f"first step {found['first_step']:.2f} s wall, {found['processor']:.1f} processor s from the start of Python, "
        f"{len(found['compiled'])} kernels compiled"
    )


def table(repeats, wheel, tests):
    """Measure and print one row after the other."""
    quiet()
    for kind, what in (("spheres", "1,000 spheres"), ("cubes", "cubes in a drum, mesh blade")):
        with tempfile.TemporaryDirectory() as folder:
            with Others() as others:
                cold = child("start.py", "--worker", kind, NUMBA_CACHE_DIR=folder)
            tell(f"{what}, sources, cold", seconds_of(cold), others)
            with Others() as others:
                warm = [child("start.py", "--worker", kind, NUMBA_CACHE_DIR=folder) for _ in range(repeats)]
            best = min(warm, key=lambda one: one["first_step"])
            tell(f"{what}, warm, best of {repeats}", seconds_of(best), others)
            if best["compiled"]:
                raise SystemExit(f"a warm start must compile nothing, but it compiled {best['compiled']}")
        if wheel is not None:
            with Others() as others:
                found = from_wheel(wheel, kind)
            tell(f"{what}, from the wheel", seconds_of(found), others)
    with Others() as others:
        everything = [child("start.py", "--worker", "spheres")["import"] for _ in range(repeats)]
        alone, used, floor = ([importing(code) for _ in range(repeats)] for code in IMPORTS)
    words = f"with Scene and Simulation {min(used):.3f} s, with all that its names load {min(everything):.3f} s"
    tell("import clast", f"{min(alone):.3f} s; {words}; numpy and numba alone {min(floor):.3f} s", others)
    layers = ["default"] + (["tbb"] if importlib.util.find_spec("tbb") else [])
    for layer in layers:
        with Others() as others:
            found = child("start.py", "--stepping", "--repeats", repeats, NUMBA_THREADING_LAYER=layer)
        used = found.pop("layer")
        words = [f"{count}: {t['median']:.0f} us (least {t['least']:.0f})" for count, t in found.items()]
        tell(f"a step of so many spheres, {layer} ({used})", ", ".join(words), others)
    if len(layers) == 1:
        print("no TBB library is here: only the layer that is taken was timed", flush=True)
    with Others() as others:
        found = level()
    words = [f"{kind} {own:.0f} us, {fixed:.0f} us ({fixed / own:.3f})" for kind, (own, fixed) in found.items()]
    tell("a step by the machine's own kernels and the wheel's", "; ".join(words), others)
    with Others() as others:
        plain, whole = checking()
    tell("clast check; clast check --compile", f"{plain:.1f} s; {whole:.0f} s wall, empty cache", others)
    with Others() as others:
        first, second, unlike = edit_of_a_law()
    tell("edit of one law", f"{first} kernels before; {second} again with that law, {unlike} with another", others)
    if tests:
        for name, options in (("quick tests", []), ("all tests", ["-m", ""])):
            with Others() as others:
                took, said = fresh_tests(options)
            tell(f"{name}, fresh clone", f"{took:.0f} s wall: {said}", others)


# Nothing of numba is imported before the first of clast's names is used.
IMPORTS = ("import clast", "import clast; clast.Scene; clast.Simulation", "import numpy, numba")


def importing(what):
    """Wall time [s] of imports in a new process."""
    code = f"import time; t = time.perf_counter(); {what}; print(time.perf_counter() - t)"
    return float(subprocess.run([sys.executable, "-c", code], env=environment(), capture_output=True, text=True).stdout)


def from_wheel(wheel, kind):
    """A first step where nothing but the wheel is there."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        command = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target", str(place / "here"), wheel]
        subprocess.run(command, check=True)
        for name in ("start.py", "common.py"):  # away from the sources, which they would take
            (place / "benchmarks").mkdir(exist_ok=True)
            shutil.copy(ROOT / "benchmarks" / name, place / "benchmarks")
        done = subprocess.run(
            [sys.executable, str(place / "benchmarks" / "start.py"), "--worker", kind],
            env=os.environ | {"PYTHONPATH": str(place / "here"), "NUMBA_CACHE_DIR": str(place / "cache")},
            capture_output=True,
            text=True,
            check=True,
        )
    return json.loads(done.stdout.strip().splitlines()[-1])


def checking():
    """Wall time [s] of `clast check` and of `clast check --compile` with an empty cache."""
    with tempfile.TemporaryDirectory() as folder:
        took = []
        for options in ([], ["--compile"]):
            start = time.perf_counter()
            command = [sys.executable, "-m", "clast", "check", *options]
            surroundings = environment(NUMBA_CACHE_DIR=folder)
            surroundings.pop("CLAST_WORKERS", None)
            subprocess.run(command, env=surroundings, check=True, stdout=subprocess.DEVNULL)
            took.append(time.perf_counter() - start)
    return took


LAW = """
import clast
from clast.kernels import backend
scene = clast.Scene()
scene.add(clast.Plane())
scene.add(clast.Sphere(0.01), position=[(0, 0, 0.0099), (0.0199, 0, 0.0099)])
clast.Simulation(scene, clast.DEM(law="{law}")).step(2)
print(len(backend.compiled()))
"""


def edit_of_a_law():
    """Kernels compiled for a few spheres by the law hertz; then after an edit of that law; and by the law linear, whose kernels were there."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "clast"
        shutil.copytree(ROOT / "src" / "clast", copy, ignore=shutil.ignore_patterns("__pycache__"))

        def compiled(law):
            surroundings = os.environ | {
                "PYTHONPATH": folder,
                "NUMBA_CACHE_DIR": f"{folder}/cache",
                "CLAST_WORKERS": "0",
            }
            command = [sys.executable, "-c", LAW.format(law=law)]
            done = subprocess.run(command, env=surroundings, capture_output=True, text=True, check=True)
            return int(done.stdout)

        first = compiled("hertz")
        compiled("linear")
        file = copy / "dem" / "laws.py"
        text = file.read_text()
        head, mark, tail = text.partition("def hertz(")
        changed = head + mark + tail.replace("4.0 / 3.0", "4.0 / 3.0 * 1.0000001", 1)
        if changed == text:
            raise SystemExit("the law hertz does not look as this script expects")
        file.write_text(changed)
        return first, compiled("hertz"), compiled("linear")


def fresh_tests(options):
    """(wall time [s], last line) of the tests in a fresh clone with empty caches."""
    with tempfile.TemporaryDirectory() as folder:
        clone = f"{folder}/clast"
        subprocess.run(["git", "clone", "-q", str(ROOT), clone], check=True)
        surroundings = os.environ | {"PYTHONPATH": f"{clone}/src", "NUMBA_CACHE_DIR": f"{folder}/cache"}
        command = [sys.executable, "-m", "pytest", "-q", "-n", "auto", "--dist", "loadgroup", *options]
        start = time.perf_counter()
        done = subprocess.run(command, cwd=clone, env=surroundings, capture_output=True, text=True)
        return time.perf_counter() - start, done.stdout.strip().splitlines()[-1]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--table", action="store_true", help="every row of the table of starts")
    parser.add_argument("--wheel", metavar="FILE", help="also from this wheel, see `make wheel`")
    parser.add_argument("--tests", action="store_true", help="also the tests of a fresh clone, quick and all; an hour")
    parser.add_argument("--worker", choices=BUILDERS, help=argparse.SUPPRESS)
    parser.add_argument("--compilation", action="store_true", help="processor seconds of compiling, and small steps")
    parser.add_argument("--compiling", choices=("spheres", "cubes"), help=argparse.SUPPRESS)
    parser.add_argument("--stepping", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--crowd", choices=("spheres", "cubes"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.table:
        table(options.repeats, options.wheel, options.tests)
        return
    if options.compiling or options.stepping:
        print(json.dumps(compiling(options.compiling) if options.compiling else stepping(options.repeats)))
        return
    if options.crowd:
        print(json.dumps(crowd(options.crowd)))
        return
    if options.worker:
        print(json.dumps(worker(options.worker)))
        return
    json.dump((compilation if options.compilation else run)(options.repeats), sys.stdout, indent=2)
    print()


if __name__ == "__main__":
    main()

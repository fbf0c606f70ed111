"""Triangulated particles: steps of 10,000 lumps of 60 triangles, flying and at rest, level of threads by level.

    python benchmarks/granulate.py                     # about ten minutes on two cores
    python benchmarks/granulate.py --only flying       # or settled
    python benchmarks/granulate.py --quick             # 1,000 lumps
    python benchmarks/granulate.py --compile           # only make sure that all kernels are compiled

Prints tables and keeps every number in results/granulate-<machine>.json.

flying   the ready scene `granulate` as it is: lumps of sizes 1:3 fill 15 % of a unit cube and fly about.
settled  lumps of the same sizes at rest on a floor, periodic on the sides: 400 are settled once, then laid side by side.

One process takes blocks of steps in turn, with one thread, with all threads in one level alone, and with all in all levels:
*cells* (broad phase and lists), *pairs* (everything that runs over pairs of bodies: candidates, what is active, sites),
*batches* (64 pairs of triangles at a time), *bodies* (kicks and turns). Then the four ways to measure triangles in turn.
"""

import argparse
import contextlib
import dataclasses
import json
import math
import time

import numba
import numpy as np
from common import RESULTS, Others, cache, machine, median
from rich.console import Console

import clast
from clast.kernels import backend
from clast.narrow.triangle_lanes import METHODS
from clast.scenes import granulate

console = Console(width=150, highlight=False)
TILE, KINDS = 400, 200  # lumps that are settled once, and how many of them differ
RADIUS = 0.005  # of the smallest [m]; the largest has three times that
POINTS = 32  # corners of a lump, which has 60 triangles
ROCK = clast.Material(density=2500.0, young=1e8, friction=0.5, restitution=0.3)
STEP = 1e-5  # of the settled ones [s]

LEVELS = ("cells", "pairs", "batches", "bodies")
FOLDERS = {  # which level the row functions of a module belong to
    "clast.narrow.mesh_points": "batches",
    "clast.narrow.mesh_candidates": "pairs",
    "clast.narrow.mesh_pose": "pairs",
    "clast.narrow.mesh_inside": "pairs",
    "clast.narrow.mesh_slots": "pairs",
    "clast.dem.history": "pairs",
    "clast.dem.forces": "pairs",
    "clast.motion.integrate": "bodies",
}


def level_of(kernel):
    """The level of threads that a kernel belongs to."""
    return FOLDERS.get(kernel.row.__module__, "cells")


class Levels:
    """Takes the place of the CPU's launch: all threads for kernels of the chosen levels, one for others; sums seconds."""

    def __init__(self, chosen):
        self.chosen, self.seconds, self.kernels = chosen, dict.fromkeys(LEVELS, 0.0), {}

    def __call__(self, kernel, count, arguments):
        level = level_of(kernel)
        numba.set_num_threads(numba.config.NUMBA_NUM_THREADS if level in self.chosen else 1)
        began = time.perf_counter()
        plain_launch(kernel, count, arguments)
        spent = time.perf_counter() - began
        numba.set_num_threads(1)
        self.seconds[level] += spent
        self.kernels[kernel.row.__name__] = self.kernels.get(kernel.row.__name__, 0.0) + spent


plain_launch = backend.CPU.launch


@contextlib.contextmanager
def threads_for(chosen):
    """Within this block only the chosen levels run in parallel; hands out the Levels."""
    levels = Levels(chosen)
    backend.CPU.launch = staticmethod(levels)
    numba.set_num_threads(1)
    try:
        yield levels
    finally:
        backend.CPU.launch = staticmethod(plain_launch)
        numba.set_num_threads(numba.config.NUMBA_NUM_THREADS)


def flying(count):
    """The ready scene."""
    return granulate(count=count).simulation()


def lumps():
    """The different lumps of the settled block."""
    return [clast.Mesh.random(POINTS, seed=k, radius=RADIUS) for k in range(KINDS)]


def floor(x, y):
    """A scene with a floor, periodic on the sides."""
    scene = clast.Scene(world=((0.0, 0.0, -RADIUS), (x, y, 2.0)), periodic=(True, True, False))
    scene.add(clast.Plane((0, 0, 1)), material=ROCK)
    return scene


def tile():
    """The settled block, made once: side [m], positions, orientations and size factors of its lumps."""
    path = cache() / f"lumps-{TILE}.npz"
    if path.exists():
        kept = np.load(path)
        return float(kept["side"]), kept["position"], kept["orientation"], kept["scale"]
    side = 0.15
    scene = floor(side, side)
    shapes = [shape for _, shape in zip(range(TILE), lumps() * (TILE // KINDS + 1), strict=False)]
    scene.fill(
        shapes,
        count=TILE,
        box=((0, 0, 0), (side, side, 0.35)),
        scale=(1.0, 3.0),
        velocity=(0, 0, -0.3),
        material=ROCK,
        seed=1,
    )
    sim = clast.Simulation(scene, clast.DEM(law="hertz"), dt=STEP)
    sim.run(until=0.5)
    bodies = sim.bodies
    order = np.argsort(bodies.number)
    rows = order[np.isfinite(bodies.mass[order])]
    np.savez(
        path, side=side, position=bodies.position[rows], orientation=bodies.orientation[rows], scale=bodies.scale[rows]
    )
    return tile()


def settled(count):
    """At least `count` lumps at rest."""
    side, position, orientation, scale = tile()
    tiles = -(-count // TILE)
    across = next(k for k in range(int(tiles**0.5), 0, -1) if tiles % k == 0)
    steps = np.array([(i * side, j * side, 0.0) for i in range(across) for j in range(tiles // across)])
    scene = floor(across * side, tiles // across * side)
    shapes = (lumps() * (TILE // KINDS + 1))[:TILE]
    scene.add(
        shapes * tiles,
        position=(position[None] + steps[:, None]).reshape(-1, 3),
        orientation=np.tile(orientation, (tiles, 1)),
        scale=np.tile(scale, tiles),
        material=ROCK,
    )
    return clast.Simulation(scene, clast.DEM(law="hertz"), dt=STEP)


def measure(make, count, rounds, steps):
    """What a step costs: with one thread, with all in one level alone, with all in all; and by four ways to measure triangles."""
    sim = make(count)
    count = int(np.isfinite(sim.bodies.mass).sum())
    sim.step(20)
    choices = {"none": (), **{level: (level,) for level in LEVELS}, "all": LEVELS}
    seconds = {name: [] for name in choices}
    spent_in = {name: {level: [] for level in LEVELS} for name in choices}
    kernels, lists, looked, known = {}, sim.state.rebuilds, [], len(backend.compiled())
    with Others() as others:
        for _ in range(rounds):
            for name, chosen in choices.items():
                with threads_for(chosen) as levels:
                    began = time.perf_counter()
                    sim.step(steps)
                    seconds[name].append((time.perf_counter() - began) / steps)
                for level, spent in levels.seconds.items():
                    spent_in[name][level].append(spent / steps)
                if name == "none":
                    for kernel, spent in levels.kernels.items():
                        kernels[kernel] = kernels.get(kernel, 0.0) + spent / (rounds * steps)
                looked.append(len(sim.state.candidates.active.slot))
    whole = {name: median(values) for name, values in seconds.items()}
    within = {name: {level: median(values) for level, values in own.items()} for name, own in spent_in.items()}
    table = []
    for level in LEVELS:
        alone = within["none"][level]
        table.append(
            {
                "threads in": level,
                "share of a step": alone / whole["none"],
                "its speed-up": alone / within[level][level],
                "the same with all": alone / within["all"][level],
                "speed-up of a step": whole["none"] / whole[level],
            }
        )
    rest = {name: whole[name] - sum(within[name].values()) for name in choices}
    table.append({"threads in": "Python and NumPy", "share of a step": rest["none"] / whole["none"]})
    about = {
        "lumps": count,
        "particle-steps/s, one thread": count / whole["none"],
        "all threads": count / whole["all"],
        "speed-up": whole["none"] / whole["all"],
        "Python, all threads": rest["all"] / whole["all"],
        "pairs in the list": len(sim.state.candidates.listed.rows),
        "triangle pairs a step": float(np.mean(looked)),
        "points": len(sim.contacts().gap),
        "steps a list": rounds * steps * len(choices) / max(1, sim.state.rebuilds - lists),
        "others' cores": others.cores,
        "kernels compiled meanwhile": len(backend.compiled()) - known,
    }
    slowest = sorted(((spent / whole["none"], name) for name, spent in kernels.items()), reverse=True)[:8]
    return {
        "about": about,
        "levels": table,
        "kernels, share with one thread": {name: share for share, name in slowest},
        "ways": ways(sim, rounds, steps),
    }


def ways(sim, rounds, steps):
    """Seconds a step by the four ways to measure triangles, over those of "brute", all threads."""
    seconds = {name: [] for name in METHODS}
    before, batches = sim.stepper.method, {name: [] for name in METHODS}
    for name in METHODS:
        choose(sim, name)
        sim.step(2)
    for _ in range(rounds):
        for name in METHODS:
            choose(sim, name)
            with threads_for(LEVELS) as levels:
                began = time.perf_counter()
                sim.step(steps)
                seconds[name].append((time.perf_counter() - began) / steps)
            batches[name].append(levels.seconds["batches"] / steps)
    choose(sim, before.narrow)
    return [
        {
            "narrow": name,
            "seconds of a step": median(seconds[name]) / median(seconds["brute"]),
            "of batches": median(batches[name]) / median(batches["brute"]) if median(batches["brute"]) else math.nan,
        }
        for name in METHODS
    ]


def choose(sim, narrow):
    """Let the next steps of a simulation measure triangles in this way."""
    sim.stepper.method = dataclasses.replace(sim.stepper.method, narrow=narrow)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer lumps, nothing kept")
    parser.add_argument("--only", choices=("flying", "settled"), help="one part; the others stay as stored")
    parser.add_argument("--compile", action="store_true", help="compile and settle what is needed, measure nothing")
    options = parser.parse_args()
    path = RESULTS / f"granulate-{machine()}.json"
    results = json.loads(path.read_text()) if path.exists() else {}
    for name, make, steps in (("flying", flying, 100), ("settled", settled, 10)):
        if options.only not in (None, name):
            continue
        if options.compile:
            sim = make(TILE)
            sim.step(2)
            for way in METHODS:
                choose(sim, way)
                sim.step(2)
            continue
        result = measure(make, 1_000 if options.quick else 10_000, 3 if options.quick else 6, steps)
        console.print(name)
        for title in ("about", "kernels, share with one thread"):
            for what, value in result[title].items():
                console.print(f"  {what}: {value:,.4g}")
        for title in ("levels", "ways"):
            for row in result[title]:
                console.print(
                    "  " + ", ".join(f"{k}: {v:.3g}" if isinstance(v, float) else str(v) for k, v in row.items())
                )
        if not options.quick:
            results[name] = result
            path.parent.mkdir(exist_ok=True)
            path.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()

"""A step of this checkout against that of another one, in turn on one core: what an edit costs, also on a busy machine.

    git worktree add --detach ../before HEAD~5
    python benchmarks/against.py ../before                      # spheres, ellipsoids, cubes, lumps, flying lumps and hard spheres
    python benchmarks/against.py ../before --only cubes --rounds 60

Two processes hold the same scene, settled but for the ready scene `granulate`, and take a few steps each, one after the other, many times; processor time counts. Above 1
this checkout is quicker: by the fastest turns, by the median of the ratios, and by the sums of all but the slowest fifth of the turns. The fastest are
those without a new neighbour list; the sums have as many lists as the steps need. The two disturb each other's caches, so the
median is the harder judge of code that reads more memory.
"""

import argparse
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve()
KINDS = {"spheres": (20, 25, 20000), "ellipsoids": (12, 14, 4000), "cubes": (10, 12, 4000), "lumps": (10, 8, 3000)}
KINDS["hard"] = (20, 12, 100)  # bodies along x and y, layers, steps to settle
FLYING = "granulate"  # 10,000 lumps that fly about, see `clast.scenes`


def simulation(kind):
    """A settled box of particles of this kind."""
    import clast

    if kind == FLYING:
        from clast.scenes import granulate

        sim = granulate(count=10_000).simulation()
        sim.step(60)
        return sim
    stone = clast.Material(density=2500.0, young=1e7, friction=0.5, restitution=0.3)
    wide, high, steps = KINDS[kind]
    random = np.random.default_rng(1)
    shape, pitch = {
        "spheres": lambda: (clast.Sphere(0.01), 0.021),
        "hard": lambda: (clast.Sphere(0.01), 0.021),
        "ellipsoids": lambda: (clast.Ellipsoid(0.012, 0.010, 0.008), 0.025),
        "cubes": lambda: (clast.Polyhedron.box(0.016, 0.016, 0.016), 0.03),
        "lumps": lambda: (clast.Mesh.random(60, radius=0.01, seed=2), 0.03),
    }[kind]()
    place = np.stack(np.meshgrid(*map(np.arange, (wide, wide, high)), indexing="ij"), -1).reshape(-1, 3) + 0.5
    turn = random.normal(size=(len(place), 4))
    if kind == "spheres":
        # Columns of a lattice would stand for long, and neighbours beside each other be listed or not by a hair's breadth of margin.
        place += random.uniform(-0.02, 0.02, place.shape)
    scene = clast.Scene()
    scene.add(clast.Plane(), material=stone)
    for x, y in ((1, 0), (-1, 0), (0, 1), (0, -1)):
        corner = ((x < 0) * wide * pitch, (y < 0) * wide * pitch, 0.0)
        scene.add(clast.Plane(normal=(x, y, 0)), position=corner, material=stone)
    scene.add(shape, position=pitch * place, orientation=turn, material=stone)
    sim = clast.Simulation(scene, clast.Complementarity() if kind == "hard" else clast.DEM())
    sim.step(steps)
    return sim


def work(kind):
    """Take as many steps as each line of the input says; tell the processor time of a step [us]."""
    sim = simulation(kind)
    print("ready", flush=True)
    for line in sys.stdin:
        began = time.process_time()
        sim.step(int(line))
        print((time.process_time() - began) / int(line) * 1e6, flush=True)


def duel(kind, other, rounds, core):
    """Processor times [us] of a step in each round, of the other checkout and of this one."""
    sides = []
    for root in (other, HERE.parents[1]):
        env = os.environ | {"PYTHONPATH": str(root / "src"), "NUMBA_NUM_THREADS": "1"}
        command = [sys.executable, str(HERE), str(other), "--work", kind]
        sides.append(
            subprocess.Popen(command, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=root)
        )
        if hasattr(os, "sched_setaffinity"):
            os.sched_setaffinity(sides[-1].pid, {core})
    for side in sides:
        if side.stdout.readline().strip() != "ready":
            raise SystemExit(f"{kind}: {side.args} ended before it was ready")
    times = [[], []]
    for turn in range(rounds):
        for k in (0, 1) if turn % 2 else (1, 0):
            sides[k].stdin.write("20\n" if kind in ("spheres", "ellipsoids", "cubes", FLYING) else "6\n")
            sides[k].stdin.flush()
            times[k].append(float(sides[k].stdout.readline()))
    for side in sides:
        side.stdin.close()
    return times


def most(times):
    """Sum of all but the slowest fifth: what else ran on the machine counts less."""
    return sum(sorted(times)[: len(times) - len(times) // 5])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("other", type=Path, help="folder of the other checkout")
    parser.add_argument("--only", choices=[*KINDS, FLYING], action="append", help="which scenes; all unless said")
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--core", type=int, default=0, help="the core that both run on")
    parser.add_argument("--work", choices=[*KINDS, FLYING], help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.work:
        work(given.work)
        return
    if not (given.other / "src" / "clast").is_dir():
        parser.error(f"{given.other} is no checkout of clast: there is no src/clast in it")
    print(
        "| scene | other [us] | this [us] | ratio, fastest | ratio, median | ratio, sums |\n|---|---:|---:|---:|---:|---:|"
    )
    for kind in given.only or [*KINDS, FLYING]:
        other, this = duel(kind, given.other.resolve(), given.rounds, given.core)
        median = statistics.median(a / b for a, b in zip(other, this, strict=True))
        told = f"| {kind} | {min(other):.0f} | {min(this):.0f} | {min(other) / min(this):.3f} | {median:.3f}"
        print(f"{told} | {most(other) / most(this):.3f} |", flush=True)


if __name__ == "__main__":
    main()

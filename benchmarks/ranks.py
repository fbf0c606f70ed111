"""Many processes: memory of each, and two processes of one thread against one process of two threads.

mpirun -n 2 python benchmarks/ranks.py memory                # a million spheres; also with -n 4, and without mpirun
mpirun -n 2 python benchmarks/ranks.py steps --speed 2       # 97,000 spheres thrown at each other, in turns
mpirun -n 2 python benchmarks/ranks.py steps --settled --count 1000000
mpirun -n 4 python benchmarks/ranks.py drum                  # a drum of 100,000: how evenly work is divided
mpirun -n 7 python benchmarks/ranks.py bits --count 100      # every ready scene, small: whether all processes have the bits of one
mpirun -n 7 python benchmarks/ranks.py bits --count 60 --steps 200 --touching 1   # the same from when bodies touch on
"""

import argparse
import gc
import hashlib
import os
import shutil
import statistics
import tempfile
import time
from pathlib import Path

os.environ.setdefault("NUMBA_NUM_THREADS", "2")

import numba
import numpy as np
from common import STEP, packing, walled  # the code beside these files is what is measured

import clast
from clast.mpi import balance, domain, team
from clast.mpi.cuts import Cuts
from clast.scenes import SCENES
from clast.tables import FREE

LOOK = 50  # steps between two looks at whether bodies touch
GLASS = clast.Material(density=2500, young=1e7, poisson=0.25, friction=0.5, restitution=0.5)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("what", choices=["memory", "steps", "drum", "bits"])
    parser.add_argument("--count", type=int, help="spheres")
    parser.add_argument("--speed", type=float, default=0.02, help="[m/s], of the spheres of `steps`")
    parser.add_argument(
        "--settled", action="store_true", help="steps: the packings of dem.py at rest, 10000, 100000 or 1000000"
    )
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--steps", type=int, default=40, help="in a turn")
    parser.add_argument("--filled", action="store_true", help="memory: spheres of Scene.fill, not of arrays")
    parser.add_argument("--scenes", nargs="*", default=list(SCENES), help="bits: names of ready scenes")
    parser.add_argument("--hard", action="store_true", help="bits: by hard contacts, also where a scene takes forces")
    parser.add_argument(
        "--touching", type=float, help="bits: from a state with so many contacts a body on, which one process makes"
    )
    parser.add_argument("--until", type=float, default=1.0, help="bits: [s] of simulated time for that, at the most")
    parser.add_argument("--fixed", action="store_true", help="drum: space is not cut anew")
    given = parser.parse_args()
    everyone = team.find()
    if given.what == "memory":
        told = memory(given.count or 1_000_000, filled if given.filled else lattice)
    elif given.what == "steps":
        told = steps(everyone, given.count or 97_000, given.speed, given.turns, given.steps, given.settled)
    elif given.what == "bits":
        told = bits(everyone, given.scenes, given.count or 100, given.steps, given.hard, given.touching, given.until)
    else:
        told = drum(given.count or 100_000, given.steps, given.fixed)
    lines = list(told)
    if everyone is None or everyone.rank == 0:
        print(*lines, sep="\n", flush=True)


def lattice(count, speed):
    """A dense lattice of spheres that touch a little, with speeds [m/s] in all directions."""
    side = round(count ** (1.0 / 3.0))
    axis = np.arange(side) * 0.0099
    scene = clast.Scene(gravity=(0, 0, 0))
    scene.add(
        clast.Sphere(0.005), position=np.stack(np.meshgrid(axis, axis, axis), axis=-1).reshape(-1, 3), material=GLASS
    )
    bodies = scene.bodies
    bodies.velocity[:] = np.random.default_rng(1).normal(0.0, speed, bodies.velocity.shape)
    return scene


def filled(count, speed):
    """The same as a filling that no process has whole; all with one speed."""
    side = round(count ** (1.0 / 3.0))
    scene, box = clast.Scene(gravity=(0, 0, 0)), ((0, 0, 0), (0.01 * side,) * 3)
    scene.fill(clast.Sphere(0.005), count=side**3, box=box, method="lattice", velocity=(speed, 0, 0), material=GLASS)
    return scene


def resident(name):
    """Memory of this process by that name, VmRSS or VmHWM [MB]."""
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    return next(float(line.split()[1]) for line in lines if line.startswith(name)) * 1024 / 1e6


def memory(count, make):
    """Memory of each process without a scene, with all steps going on, and at the most."""
    small = clast.Simulation(lattice(1000, 0.02))
    small.step(3)  # libraries and kernels are there
    del small
    gc.collect()
    bare = resident("VmRSS")
    sim = clast.Simulation(make(count, 0.02))
    gc.collect()
    made = resident("VmHWM")
    sim.step(5)
    gc.collect()
    mine = {"bare": bare, "made": made - bare, "steps": resident("VmRSS") - bare, "peak": resident("VmHWM") - bare}
    ranks = [mine] if sim.team is None else sim.team.everywhere(mine)
    ghosts = [0] if sim.team is None else sim.team.everywhere(sim.state.ghosts)
    yield f"{count:,} spheres, {len(ranks)} processes, ghosts {ghosts}"
    for name in mine:
        each = [one[name] for one in ranks]
        yield f"{name:6} [MB] " + " ".join(f"{x:7.0f}" for x in each) + f"  sum {sum(each):7.0f}"


def steps(everyone, count, speed, turns, many, rest):
    """Time of steps, wall and processor, of all processes with one thread each and of the first with two threads, in turns."""
    numba.set_num_threads(1)

    def make():
        if rest:
            spheres, sides = packing(count)
            return clast.Simulation(walled(spheres[:, :3], spheres[:, 3], sides), clast.DEM(law="hertz"), dt=STEP)
        return clast.Simulation(lattice(count, speed))

    shared = make()
    shared.step(10)
    alone, began = None, time.process_time()
    if everyone.rank == 0:
        with team.alone():
            numba.set_num_threads(2)
            alone = make()
            alone.step(10)
    # This is no work of the processes: taken for it, space would be cut anew, and many bodies would go to the other one.
    everyone.idle += time.process_time() - began
    spent = {"threads": [], "processes": []}
    before = [sim.state.rebuilds if sim else 0 for sim in (alone, shared)]
    for _ in range(turns):
        everyone.rest()
        if alone is not None:
            numba.set_num_threads(2)
            began = time.perf_counter(), time.process_time()
            with team.alone():
                alone.step(many)
            spent["threads"].append((time.perf_counter() - began[0], time.process_time() - began[1]))
            everyone.idle += spent["threads"][-1][1]  # see above
        everyone.rest()
        numba.set_num_threads(1)
        worked, began = sum(shared.stepper.ranks()["worked"]), time.perf_counter()
        shared.step(many)
        wall = time.perf_counter() - began
        spent["processes"].append((wall, sum(shared.stepper.ranks()["worked"]) - worked))
    if alone is None:
        return []
    lists = [sim.state.rebuilds - was for sim, was in zip((alone, shared), before, strict=True)]
    # The mean, not the median: lists are made in few of the turns.
    wall, busy = (
        {name: statistics.mean(one[k] for one in each) * 1e3 / many for name, each in spent.items()} for k in (0, 1)
    )
    ratios = [one[0] / two[0] for one, two in zip(*spent.values(), strict=True)]
    return [
        f"{count:,} spheres, {'settled' if rest else f'at {speed:g} m/s'}, {turns} turns of {many} steps; lists {lists[0]} and {lists[1]}, cuts {shared.stepper.domain.recut}",
        "two threads over processes, turn by turn: " + ", ".join(f"{ratio:.2f}" for ratio in ratios),
        f"wall [ms a step]: two threads {wall['threads']:.1f}, {everyone.size} processes {wall['processes']:.1f}, ratio {wall['threads'] / wall['processes']:.2f}",
        f"processors, without waiting [ms a step]: {busy['threads']:.1f} and {busy['processes']:.1f}, ratio {busy['threads'] / busy['processes']:.2f}",
    ]


def drum(count, many, fixed):
    """Busiest over mean processor time of the processes of a drum, over spells of steps."""
    if fixed:
        balance.UNEVEN = np.inf
    sim = SCENES["drum"](count=count).simulation()
    for _ in range(10):
        before = np.array(sim.stepper.ranks()["worked"]) if sim.steps else 0.0
        sim.step(many)
        worked = np.array(sim.stepper.ranks()["worked"]) - before
        free = int((sim.bodies.motion == FREE).sum())
        yield f"t {sim.time:.4f} s, {free:,} bodies, busiest over mean {worked.max() / worked.mean():.3f}, cuts {sim.stepper.domain.recut}"


def cut_anywhere(self, seconds):
    """In place of `Domain.balance`: now and then space is cut somewhere else, so that bodies go from process to process."""
    rng = np.random.default_rng(self.state.rebuilds)
    if rng.random() < 0.5:
        points = self.team.join(self.state.bodies.position[: self.state.own])
        self.cuts = Cuts(self.team.size, self.state.box, points, rng.random(len(points)) ** 4)
        self.recut += 1
    return True


def digest(sim):
    """A number that changes with the last bit of any body, contact, number of the solver or joint."""
    made = hashlib.sha256(repr((sim.stepper.describe(), sim.stepper.elastic_energy())).encode())
    joints = (sim.reactions, sim.pulls) if getattr(sim.stepper, "joints", None) is not None else ()
    for table in (sim.bodies, sim.contacts(), *joints):
        for column in table:
            made.update(np.ascontiguousarray(column).tobytes())
    return made.hexdigest()


def crowded(make, much, until, path):
    """Let one process take steps until there are `much` contacts a body that moves, `until` [s] of simulated time at the most, and save that; returns the simulation."""
    sim = make()
    while sim.time < until:
        sim.step(LOOK)
        if sim.touching() >= much * max((sim.bodies.motion == FREE).sum(), 1):
            break
    sim.save(path)
    return clast.resume(path)


def bits(everyone, names, count, many, hard, much, until):
    """Of ready scenes with so many bodies the first of `many` steps at which what all processes tell is not what one does; much, until: see `crowded`, or None from the start on."""
    domain.Domain.balance = cut_anywhere
    path = everyone.first_says(Path(tempfile.mkdtemp()) / "start.h5")
    for name in names:

        def make(name=name):
            ready = SCENES[name](**({} if name == "two-particles" else {"count": count}))
            if not hard:
                return clast.Simulation(ready.scene, ready.method, dt=ready.dt)
            return clast.Simulation(ready.scene, clast.Complementarity(iterations=10), dt=1e-3)

        def run(sim, wanted):
            for k in range(many):
                sim.stepper._due = k % 10 == 5  # a list of pairs, and perhaps other cuts: at rest there would be none
                sim.step()
                if k < len(wanted) and digest(sim) != wanted[k]:
                    return k + 1
            return 0

        wanted, fault = [], None
        if everyone.rank == 0:
            with team.alone():
                try:
                    sim = make() if much is None else crowded(make, much, until, path)
                    for _ in range(many):
                        sim.step()
                        wanted.append(digest(sim))
                except (clast.errors.ClastError, TypeError, ValueError) as wrong:
                    fault = str(wrong)
        everyone.rest()
        wanted, fault = everyone.first_says((wanted, fault))
        if fault:
            yield f"{name}: one process: {fault}"
            continue
        try:
            sim = make() if much is None else clast.resume(path)
        except (clast.errors.ClastError, ValueError) as wrong:
            yield f"{name}: {wrong}"
            continue
        began = sim.time
        wrong, ranks = run(sim, wanted), sim.stepper.ranks()
        told = (
            f"other bits at step {wrong}"
            if wrong
            else f"the bits of one process at each of {many} steps from t = {began:.3g} s on"
        )
        touching, bodies = sim.touching(), int((sim.bodies.motion == FREE).sum())
        line = f"{name}: {told}; {bodies} bodies, {sum(ranks['moved'])} times one moved, {sum(ranks['ghosts'])} ghosts, {touching} contacts"
        if everyone.rank == 0:
            print(line, flush=True)
    everyone.rest()
    if everyone.rank == 0:
        shutil.rmtree(path.parent)
    yield "done"


if __name__ == "__main__":
    main()

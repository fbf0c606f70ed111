"""Run by `mpirun -n 2` from test_ranks: what goes wrong on one process, told as JSON; with `die`, `stop` or `memory` and a folder, one
process is killed, told to stop or refused memory in a run there; with `last` the run goes on until it is killed; with `leave` one process or all
come to their end."""

import errno
import io
import json
import os
import resource
import shutil
import signal
import sys
import tempfile
import time
from contextlib import redirect_stderr
from pathlib import Path

import numpy as np

import clast
from clast import files
from clast.errors import ClastError, Diverged
from clast.files import checkpoint
from clast.kernels import ahead, watch
from clast.mpi import team

SAND = clast.Material(density=2600, young=1e6, poisson=0.25, friction=0.5, restitution=0.3)


def few(count=8, shift=0.0, speed=0.0):
    """Spheres in a row along x; the last has a speed [m/s] along it."""
    scene = clast.Scene(gravity=(0, 0, 0), world=((-1, -1, -1), (1, 1, 1)))
    position = np.zeros((count, 3))
    position[:, 0] = 0.1 * np.arange(count) + shift
    velocity = np.zeros((count, 3))
    velocity[-1, 0] = speed
    scene.add(clast.Sphere(0.02), position=position, velocity=velocity, material=SAND)
    return scene


def halved():
    """Clumps in a row, of which the two in the middle, on two sides of the cut, have balls with one centre."""
    scene = clast.Scene(gravity=(0, 0, 0))
    place = np.zeros((4, 3))
    place[:, 0] = -0.5, 0.0, 0.0625, 0.5625
    scene.add(clast.Clump([(-0.03125, 0, 0), (0.03125, 0, 0)], [0.03125, 0.03125]), position=place, material=SAND)
    return scene


def fault(function):
    """What it raises, as text."""
    try:
        function()
    except (ClastError, ValueError, OSError) as wrong:
        return f"{type(wrong).__name__}: {wrong}"
    return "nothing"


def leaves(*method, **options):
    clast.Simulation(few(speed=20.0), *method, **options).step(2000)


def hard(**options):
    return clast.Complementarity(**options)


def pulled():
    """A spring of the last two bodies, which another process has than the first, asks a function that fails after a while."""
    scene = few()
    scene.spring(6, 7, force=lambda length, rate, time: 0.0 if time < 0.0045 else np.nan)
    scene.join(0, 1, "ball", at=(0.05, 0.0, 0.0))
    clast.Simulation(scene, hard(), dt=1e-3).step(20)


def drained():
    """An outlet takes one of two joined bodies."""
    scene = few(speed=1.0)
    scene.join(6, 7, "slider", axis=(1.0, 0.0, 0.0))
    scene.outlet(box=((0.75, -1.0, -1.0), (1.0, 1.0, 1.0)))
    clast.Simulation(scene, hard(), dt=1e-3).step(200)


def emptied_group(first):
    """An outlet takes the first of two joined bodies, of which the lower number says whose they are, or both at once."""
    scene = few()
    scene.bodies.velocity[:2, 0] = -1.0
    scene.join(0, 1, "slider", axis=(1.0, 0.0, 0.0))
    scene.outlet(box=((-1.0, -1.0, -1.0), (-0.05, 1.0, 1.0)) if first else ((-1.0, -1.0, -1.0), (0.105, 1.0, 1.0)))
    clast.Simulation(scene, hard(), dt=1e-3).step(200)


def other_material(friction):
    scene = few()
    scene.add(clast.Plane(), position=(0, 0, -0.5), material=clast.Material(friction=friction))
    return scene


def emptied():
    """One of two balls flies to the other: no body is left to a process, and no wall."""
    scene = clast.Scene(gravity=(0, 0, 0))
    place, velocity = [(-1, 0, 0), (1, 0, 0)], [(30, 0, 0), (0, 0, 0)]
    scene.add(clast.Sphere(0.05), position=place, velocity=velocity, material=SAND)
    sim = clast.Simulation(scene, hard(), dt=5e-3)
    sim.step(30)
    return sim.bodies.position.tolist()


def too_fast():
    """The last body goes farther than a tile in a step."""
    clast.Simulation(few(speed=3000.0), dt=1e-4).step(3)


def goes_on():
    sim = clast.Simulation(few())
    sim.step(3)
    return sim.steps


def begins_badly(rank):
    """The first forces go wrong on one process; then they are computed again."""
    sim = clast.Simulation(few())

    def wrong(dt):
        raise Diverged("no forces")

    if rank == 1:
        sim.stepper._forces = wrong
    told = fault(sim.step)
    vars(sim.stepper).pop("_forces", None)
    sim.step(3)
    return [told, sim.steps, sim.bodies.number.tolist()]


def bed(*method, **options):
    """Spheres that hardly move, of which those on one side touch each other; turned a little, so that no two are equally far along an axis."""
    scene = clast.Scene(gravity=(0, 0, 0))
    grid = np.stack(np.meshgrid(*[np.arange(4.0)] * 3, indexing="ij"), -1).reshape(-1, 3)
    place = np.concatenate([0.0208 * grid, 0.05 * grid + (0.1, 0.0, 0.0)])
    place += 0.03 * place[:, [1, 2, 0]] + 0.07 * place[:, [2, 0, 1]] * (1.0, 0.0, 0.0)
    scene.add(clast.Sphere(0.0105), position=place, material=SAND)
    return clast.Simulation(scene, *method, **options)


def rests(steps, *method, **options):
    """Lists and cuts of a bed in so many steps, what the busiest process works then over the mean, and where bodies are; the clock of each process goes
    by its bodies and contact points."""
    sim = bed(*method, **options)
    if sim.team is None:
        sim.step(steps)
        return sim.bodies.position.tolist()
    sim.step()
    stepper, work = sim.stepper, [0.0, 0.0]
    stepper._worked = lambda: work[0]
    stepper._start_clocks()
    for _ in range(steps - 1):
        before = work[0]
        sim.step()
        work[0] += 1e-3 * (stepper.state.own + 2.0 * stepper.domain._points().sum())
        work[1] = work[0] - before
    each = sim.team.everywhere(work[1])
    return [sim.state.rebuilds, stepper.domain.recut, max(each) / np.mean(each)], sim.bodies.position.tolist()


def waits(everyone):
    """How long [s] each call says that this process waited, where the other comes later, and how many bytes it says were sent."""
    told = {}
    for name, call in {
        "everywhere": lambda: everyone.everywhere(1),
        "gather": lambda: everyone.gather(1),
        "join": lambda: everyone.join(np.zeros(3)),
        "sum": lambda: everyone.sum(np.zeros(3)),
        "first_says": lambda: everyone.first_says(1),
        "hand_round": lambda: everyone.hand_round({}),
        "rest": everyone.rest,
    }.items():
        everyone.rest()
        if everyone.rank == (0 if name == "first_says" else 1):
            time.sleep(0.1)
        before, sent = everyone.waited, everyone.sent
        call()
        told[name] = [everyone.waited - before, everyone.sent - sent]
    return told


def counts_bytes(folder):
    """Steps and bytes that two simulations tell of, one after the other, and one that goes on with the second; and bytes a step in the words of that."""
    told = []
    for _ in range(2):
        sim = clast.Simulation(few(), dt=1e-4)
        sim.step(20)
        told.append([sim.stepper.ranks()[name] for name in ("steps", "bytes")])
    sim.save(folder / "bytes.h5")
    sim = clast.resume(folder / "bytes.h5")
    sim.step(5)
    report = sim.report()
    line = next(line for line in str(report).splitlines() if line.startswith("exchange"))
    return told, [report.ranks["steps"], report.ranks["bytes"], line.split()[1]]


def looks(radius=0.02, **how):
    """Contacts of a few spheres, box after box."""
    scene = clast.Scene()
    scene.add(clast.Sphere(radius), position=0.03 * np.arange(30.0).reshape(-1, 3))
    return [len(box.gap) for box in clast.contacts_by_boxes(scene, **how)]


def comes_late(everyone):
    """What a process says that is alone for a while where all are to call a function."""
    said, before = io.StringIO(), team.LONG
    team.LONG = 0.05
    if everyone.rank == 1:
        time.sleep(0.3)
    with redirect_stderr(said):
        everyone.meet("find_contacts")
    team.LONG = before
    return said.getvalue()


def asks_late(rank):
    sim = clast.Simulation(few())
    sim.step(2)
    sim.step(2 + rank)


def came():
    """Bodies that each process says came from others, where one flies to the second."""
    scene = clast.Scene(gravity=(0, 0, 0))
    place, velocity = [(-1, 0, 0), (1, 0, 0)], [(30, 0, 0), (0, 0, 0)]
    scene.add(clast.Sphere(0.05), position=place, velocity=velocity, material=SAND)
    sim = clast.Simulation(scene, hard(), dt=5e-3)
    sim.step(8)
    return sim.stepper.ranks()["moved"]


def stopped(function):
    """What it says when it is interrupted."""
    try:
        function()
    except KeyboardInterrupt as stop:
        return str(stop)
    return "nothing"


def stops_compiling(rank, folder):
    """The first process is told to stop while it compiles for all; the run goes on from what was saved."""

    def compile_now(rehearse):
        os.kill(os.getpid(), signal.SIGTERM)
        while True:
            watch.heed()

    before, ahead.compile_now = ahead.compile_now, compile_now
    told = stopped(lambda: clast.Simulation(few()).run(until=0.01, output=folder, progress=False))
    ahead.compile_now = before
    sim = clast.resume(folder)
    fresh = sim.stepper.fresh
    sim.step(3)
    return [told.replace(str(folder), "FOLDER"), fresh, sim.steps]


def stops_twice(rank):
    """One process is told to stop; the next run does not stop for that."""
    sim = clast.Simulation(few(), dt=1e-4)

    def strike(sim, stopping):
        if rank == 1 and sim.steps == 5:
            os.kill(os.getpid(), signal.SIGTERM)

    told = stopped(lambda: sim.run(until=0.001, every=0.0002, progress=False, between=strike))
    at = sim.steps
    sim.run(until=0.001, every=0.0002, progress=False)  # a frame is due at once
    return ["at t = " in told, at, sim.steps]


def counts(rank):
    """What one process has counted, in the report of all."""
    sim = clast.Simulation(few())
    sim.step()
    sim.stepper.coincident, sim.stepper.crossings = rank + 1, rank
    told = sim.report()
    return [told.coincident, told.crossings]


def fills_the_disk(folder):
    """The disk is full when the first piece of a checkpoint has been written."""
    sim = clast.Simulation(few())
    sim.step(3)
    sim.save(folder / "full.h5")
    sim.step(3)
    before = checkpoint.write_pieces

    def write(parent, table):
        next(table.pieces())
        raise OSError(errno.ENOSPC, "no space left")

    checkpoint.write_pieces = write
    told = fault(lambda: sim.save(folder / "full.h5"))
    checkpoint.write_pieces = before
    return [told, clast.resume(folder / "full.h5").steps]


def writes(folder):
    """How many files this process writes of a grid and of the frames of a run."""
    clast.Simulation(few(), dt=1e-4).run(until=0.001, output=folder, progress=False)
    calls, before = [], files._whole
    files._whole = lambda path, *_: calls.append(str(path))
    files.save_grid(folder / "grid.vti", (0, 0, 0), (1, 1, 1), {"one": np.ones((2, 2, 2))})
    files.export(folder, folder / "frames.dump")
    files._whole = before
    return len(calls)


def main():
    everyone = team.find()
    rank = everyone.rank
    folder = Path(everyone.first_says(tempfile.mkdtemp() if rank == 0 else None))
    with team.alone():
        alone, fast, hard_alone = fault(leaves), fault(too_fast), fault(lambda: leaves(hard(), dt=1e-3))
        empty, apart = emptied(), fault(lambda: clast.Simulation(halved(), hard(), dt=1e-3).start())
        pulls, drains = fault(pulled), fault(drained)
        beds = rests(70, dt=1e-5), rests(60, hard(), dt=1e-5)
        empties = [fault(lambda: emptied_group(True)), fault(lambda: emptied_group(False))]
    found = {
        "still": [*rests(70, dt=1e-5), beds[0]],
        "still hard": [*rests(60, hard(), dt=1e-5), beds[1]],
        "waits": waits(everyone),
        "bytes": counts_bytes(folder),
        "came": came(),
        "until": fault(lambda: clast.Simulation(few()).run(until=0.001 * (1 + rank), progress=False)),
        "record": fault(lambda: clast.Simulation(few()).run(until=0.01, record=["speed"] * rank, progress=False)),
        "steps": fault(lambda: clast.Simulation(few()).step(2 + rank)),
        "other boxes": fault(lambda: looks(margin=0.01 * rank)),
        "other option": fault(lambda: looks(**({"sort": False} if rank else {}))),
        "other radius": fault(lambda: looks(0.02 + 0.001 * rank)),
        "own share": looks(share=(0, 1)) if rank == 0 else [],
        "late": comes_late(everyone),
        "later steps": fault(lambda: asks_late(rank)),
        "centres alone": apart,
        "centres": fault(lambda: clast.Simulation(halved(), hard(), dt=1e-3).start()),
        "shared": fault(leaves),
        "fast": [fault(too_fast), fast],
        "after": goes_on(),
        "hard alone": hard_alone,
        "hard": fault(lambda: leaves(hard(), dt=1e-3)),
        "solver": fault(lambda: clast.Simulation(few(), hard(solver="jacobi"), dt=1e-3)),
        "coulomb": fault(lambda: clast.Simulation(few(), hard(coulomb=True), dt=1e-3)),
        "pulled": [fault(pulled), pulls],
        "drained": [fault(drained), drains],
        "lowest gone": [fault(lambda: emptied_group(True)), empties[0]],
        "both gone": [fault(lambda: emptied_group(False)), empties[1]],
        "ledger": fault(lambda: clast.Simulation(few(), hard(ledger=True), dt=1e-3)),
        "sleep": fault(lambda: clast.Simulation(few(), hard(sleep="auto"), dt=1e-3)),
        "few": fault(lambda: clast.Simulation(few(1)).step()),
        "empty": [emptied(), empty],
        "one asks": len(clast.find_contacts(few(), margin=0.1).gap) if rank == 0 else 7,
        "materials": fault(lambda: clast.Simulation(other_material(0.1 * rank), dt=1e-4).step()),
        "options": fault(lambda: clast.Simulation(few(), hard(warm=rank == 0), dt=1e-3).step()),
        "differ": fault(lambda: clast.Simulation(few(shift=0.01 * rank)).step()),
        "versions": fault(
            lambda: everyone.compare("versions differ", {"numba": f"1.{rank}"}, "install the same everywhere")
        ),
        "write": fault(
            lambda: clast.Simulation(few()).run(until=0.01, output=Path(__file__) / "there", progress=False)
        ),
        "first": begins_badly(rank),
        "compiling": stops_compiling(rank, folder / "stopped"),
        "stop": stops_twice(rank),
        "counts": counts(rank),
        "full": fills_the_disk(folder),
        "writes": writes(folder / "files"),
    }
    everywhere = everyone.everywhere(found)
    if rank == 0:
        shutil.rmtree(folder)
        print(json.dumps({"alone": alone} | {name: [told[name] for told in everywhere] for name in found}))


def die(folder):
    sim = clast.Simulation(few(), dt=1e-4)

    def strike(sim, stopping):
        if sim.team.rank == 1 and sim.steps == 25:
            os.kill(os.getpid(), signal.SIGKILL)

    sim.run(until=0.01, every=0.001, output=Path(folder) / "run", progress=False, between=strike)


def starve(folder):
    """One process is refused memory."""
    sim = clast.Simulation(few(), dt=1e-4)

    def strike(sim, stopping):
        if sim.team.rank == 1 and sim.steps == 25:
            resource.setrlimit(resource.RLIMIT_AS, (2**30, 2**30))
            np.ones(2**28)

    sim.run(until=0.01, every=0.001, output=Path(folder) / "run", progress=False, between=strike)


def last(folder):
    """A run without an end, that says who its processes are."""
    Path(folder, f"{os.getpid()}.pid").touch()
    sim = clast.Simulation(few(), dt=1e-4)
    sim.run(until=1e4, every=0.001, output=Path(folder) / "run", progress=False)


def stop_alone(folder):
    """One process is told to stop while it compiles a kernel that the others have."""
    sim = clast.Simulation(few(), dt=1e-4)
    collide = sim.stepper._collide

    def compiles():
        if sim.team.rank == 1 and sim.steps == 25:
            raise watch.Stopped
        collide()

    sim.stepper._collide = compiles
    sim.run(until=0.01, every=0.001, output=Path(folder) / "run", progress=False)


def leave(how):
    """One process leaves while the other takes steps; or all do, one after the other."""
    sim = clast.Simulation(few(), dt=1e-4)
    sim.step()
    if how == "all":
        time.sleep(1.5 * sim.team.rank)
        sys.exit()
    if sim.team.rank == 1:
        if how == "raise":
            raise SystemExit(3)
        sys.exit({"code": 3, "words": "no such file", "zero": 0}[how])
    sim.step(10**8)


if __name__ == "__main__":
    {"leave": leave, "die": die, "stop": stop_alone, "memory": starve, "last": last}[sys.argv[1]](sys.argv[2]) if len(
        sys.argv
    ) > 1 else main()

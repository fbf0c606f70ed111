"""Run by `mpirun -n 4` from test_ranks: the same scenes on one process and on several, and what came of them as JSON."""

import hashlib
import json
import pickle
import sys
from contextlib import contextmanager, nullcontext
from pathlib import Path

import h5py
import numpy as np
from mpi4py import MPI

import clast
from clast.files import Trajectory, checkpoint, trajectory
from clast.mpi import contacts, pieces, team
from clast.run.recording import Record, recording
from clast.scene import lots
from clast.scenes import SCENES
from clast.tables import FREE

HEAT = {"conductivity": 40.0, "heat_capacity": 3.0}  # so that it is quick, but does not shorten the step
SOFT = clast.Material(density=2600, young=1e5, poisson=0.25, friction=0.5, restitution=0.3, **HEAT)
STONE = clast.Material(density=2600, young=1e7, poisson=0.25, friction=0.5, restitution=0.3, **HEAT)
EDGE = 0.1
EVERY = 10  # steps from state to state
RECORD = ("contacts", "speed", "overlap", "bodies", "coordination")  # beside what frames have always


def stir(scene, speed, seed=1):
    """Give all free bodies speeds [m/s] in all directions, so that they cross from tile to tile."""
    bodies, rng = scene.bodies, np.random.default_rng(seed)
    free = bodies.motion == FREE
    bodies.velocity[free] = rng.normal(0.0, speed, (free.sum(), 3))
    bodies.spin[free] = rng.normal(0.0, 10.0 * speed, (free.sum(), 3))


def stand_sides(scene, material):
    """Four planes around a square with a side of EDGE."""
    for axis in range(2):
        for side in (1.0, -1.0):
            normal, place = np.zeros(3), np.zeros(3)
            normal[axis], place[axis] = side, 0.0 if side > 0.0 else EDGE
            scene.add(clast.Plane(normal=normal), position=place, material=material)


def box(speed=16.0, spin=0.0):
    """Spheres that fly about between five planes, one of which is hot, moves, and tilts with a spin [rad/s] about y."""
    scene = clast.Scene(gravity=(0, 0, -9.81))
    moving = {"velocity": (0.0, 0.0, 0.5), "spin": (0.0, spin, 0.0), "motion": "driven"}
    scene.add(clast.Plane(), material=STONE, temperature=400.0, **moving)
    stand_sides(scene, STONE)
    room, hot = ((0, 0, 0.01), (EDGE, EDGE, EDGE)), 250.0 + 2.0 * (7 * np.arange(100) % 100)
    scene.fill(clast.Sphere(0.006), count=100, scale=(0.7, 1.1), box=room, material=STONE, seed=2, temperature=hot)
    stir(scene, speed)
    return clast.Simulation(scene, clast.DEM(margin=0.002))


def counted():
    """Hot and cold spheres of a lattice that press on each other for long, with a ledger of energies."""
    scene, rng = clast.Scene(), np.random.default_rng(4)
    scene.add(clast.Plane(), position=(0, 0, -0.0059), material=STONE, temperature=400.0)
    place = 0.0118 * np.stack(np.meshgrid(*[np.arange(5.0)] * 3, indexing="ij"), -1).reshape(-1, 3)
    scene.add(clast.Sphere(0.006), position=place, material=STONE, temperature=rng.uniform(250.0, 450.0, len(place)))
    stir(scene, 0.1)
    return clast.Simulation(scene, clast.DEM(ledger=True))


def table():
    """Slow spheres over a plane that tilts fast: how far its surface moves decides when the list is made anew, and depends on how far
    away the bodies of a process are."""
    return box(speed=0.5, spin=-30.0)


def filled():
    """Spheres of a filling that is kept as its recipe, between the planes of `box`, hotter from layer to layer, and one behind them."""
    scene, rng = clast.Scene(gravity=(0, 0, -9.81)), np.random.default_rng(6)
    scene.add(clast.Plane(), material=STONE)
    stand_sides(scene, STONE)
    start = {"velocity": rng.normal(0.0, 8.0, (150, 3)), "temperature": np.linspace(250.0, 350.0, 150)}
    about = {"method": "lattice", "jitter": 0.2, "scale": (0.7, 1.1), "seed": 4, **start}
    scene.fill(clast.Sphere(0.006), count=150, box=((0, 0, 0.01), (EDGE, EDGE, EDGE)), material=STONE, **about)
    scene.add(clast.Sphere(0.006), position=(0.05, 0.05, 0.2), velocity=(0, 0, -8.0), material=SOFT)
    return clast.Simulation(scene, clast.DEM(margin=0.002))


def flow():
    """Spheres that an inlet pours and an outlet takes, with one that is ten times as large."""
    scene = clast.Scene(gravity=(0, 0, -9.81))
    scene.add(clast.Plane(), material=SOFT)
    scene.add(clast.Sphere(0.03), position=(0.0, 0.0, 0.035), velocity=(1.0, 0.0, -1.0), material=SOFT)
    low, high = (-0.06, -0.06, 0.04), (0.06, 0.06, 0.08)
    options = {"box": (low, high), "velocity": (0, 0, -4.0), "scale": (0.8, 1.2), "material": SOFT, "seed": 3}
    scene.inlet(clast.Sphere(0.003), rate=12000.0, temperature=400.0, **options)
    scene.outlet(box=((-1.0, -1.0, -1.0), (-0.03, 1.0, 0.02)))
    return clast.Simulation(scene, clast.DEM(margin=0.001))


def shapes():
    """A particle of every shape, thrown towards the middle of a turning drum."""
    scene = SCENES["all-shapes"](count=140).scene
    stir(scene, 3.0)
    bodies = scene.bodies
    free = bodies.motion == FREE
    bodies.velocity[free] -= 60.0 * bodies.position[free]
    return clast.Simulation(scene, clast.DEM(margin=0.0003, penetration="push"))


# How a scene is made, its steps, the numbers of processes, and from how many to how many it is saved and goes on.
SAVED = ((2, 3), (3, 1))
MADE = {
    "box": (box, 40, (2, 3, 4), SAVED),
    "counted": (counted, 40, (2, 3), ((2, 3),)),
    "table": (table, 80, (3,), ()),
    "filled": (filled, 20, (3,), ((3, 2),)),
    "flow": (flow, 80, (2, 3), SAVED),
    "shapes": (shapes, 200, (2, 3, 4), SAVED),
}


def digest(contacts):
    """A number that changes with the last bit of any contact."""
    made = hashlib.sha256()
    for column in contacts:
        made.update(np.ascontiguousarray(column).tobytes())
    return made.hexdigest()


def looked_at(world, everyone):
    """Contacts of a scene without a simulation: of one process, and of several that have divided it."""
    scene = clast.Scene()
    rng = np.random.default_rng(5)
    scene.add(clast.Sphere(1.0), position=rng.random((4000, 3)) * 20.0, scale=rng.uniform(0.2, 0.6, 4000))
    scene.add(clast.Clump([(0.0, 0.0, 0.0), (0.9, 0.0, 0.0)], [0.6, 0.5]), position=rng.random((300, 3)) * 20.0)
    scene.add(clast.Sphere(3.0), position=[(5.0, 5.0, 3.0), (12.0, 5.0, 3.0)])
    scene.add(clast.Plane(normal=(0, 0, 1)))
    with team.alone():
        found = {"1": digest(clast.find_contacts(scene, margin=0.1))}
    few, contacts.FEW = contacts.FEW, 100
    for size in (2, 3, 4):
        part = world.Split(0 if world.rank < size else 1)
        if world.rank < size:
            with team.using(part):
                whole = clast.find_contacts(scene, margin=0.1, sort=False)
                mine = sum(len(box.gap) for box in clast.contacts_by_boxes(scene, margin=0.1, memory=1e6))
                found[str(size)] = digest(whole)
                found[f"parts {size}"] = [len(whole.gap), part.allgather(mine)]
        everyone.rest()
    contacts.FEW = few
    return found


def state_of(sim):
    """A number that changes with the last bit of any body or contact, and what was counted."""
    bodies, touching = sim.bodies, sim.contacts()
    counted = [len(bodies.number), len(touching.gap), sim.touching(), sim.removed, *sim.poured]
    energy = [sim.stepper.elastic_energy(), *(flow.mass for flow in sim.flows.outlets)]
    crossings = int(sim.stepper.counted()["crossings"])
    numbers = bodies.number[:40].tolist() if sim.scene.warm else []
    flows = [clast.measure.heat_flow(sim, number) for number in numbers]
    balance = [] if sim.stepper.ledger is None else list(sim.ledger().as_dict().values())
    return [digest((*bodies, *touching)), counted, energy, crossings, sim.stepper.describe(), *flows, *balance]


def tables_in(path):
    """Of a folder: a number that changes with the last bit of any table of its checkpoint, and the sum of its frame, of all that this holds."""
    groups, _ = checkpoint.read(path / "checkpoint.h5")
    sums = {name: digest(groups[name][key] for key in sorted(groups[name])) for name in groups}
    with Trajectory(path / "trajectory.h5") as frames:
        (frame,) = frames  # whose sum is checked, block after block of its columns as if they were whole
        assert len(frame.columns["number"]) and set(RECORD) <= {*frame.scalars, "contacts"}
    with h5py.File(path / "trajectory.h5") as file:
        return sums | {"frame": file["frames/00000000"].attrs["sha256"].decode()}


def told(sim, steps, every):
    """States of a simulation on its way, so many steps."""
    states = []
    for k in range(steps):
        sim.step()
        if (k + 1) % every == 0:
            states.append(state_of(sim))
    return states


@contextmanager
def in_pieces():
    """Within the block processes bring no table together whole."""
    join, everywhere = team.Team.join, team.Team.everywhere

    def few(self, array):
        assert len(array) < 2  # numbers of this process
        return join(self, array)

    def short(self, value):
        assert len(pickle.dumps(value)) < 2000
        return everywhere(self, value)

    team.Team.join, team.Team.everywhere = few, short
    try:
        yield
    finally:
        team.Team.join, team.Team.everywhere = join, everywhere


@contextmanager
def never_whole(few=60):
    """Within the block no process puts all bodies of a scene into its memory, but for a few."""
    whole = lots.Store.whole

    def look(self):
        assert self.count < few
        return whole(self)

    lots.Store.whole = look
    try:
        yield
    finally:
        lots.Store.whole = whole


def halves(sim, steps, every, path):
    """The same; half way a frame and a checkpoint are written into the folder `path`, and a report is made."""
    states = told(sim, steps // 2, every)
    team.first_does(lambda: path.mkdir())
    with in_pieces(), recording(sim, path, Record(sim, RECORD), None, text=False) as write:
        write(sim)
        sim.save(path / "checkpoint.h5")
        sim.report()
    return states + told(sim, steps - steps // 2, every)


def main(names, folder, made=MADE, every=EVERY, look=False, **again):
    """made: as MADE; look: also at contacts without a simulation; again: what `clast.resume` is to be told."""
    pieces.PIECE = trajectory.ROWS = lots.BLOCK = 30  # so that there are many
    world, result, everyone = MPI.COMM_WORLD, {}, team.find()
    for name in names:
        make, steps, sizes, ways = made[name]
        with team.alone():
            saved = Path(folder) / f"{name}1"
            result[name] = {"1": halves(make(), steps, every, saved) if world.rank == 0 else None}
        everyone.rest()
        for size in sizes:
            part = world.Split(0 if world.rank < size else 1)
            if world.rank < size:
                with team.using(part):
                    with never_whole() if name == "filled" else nullcontext():
                        sim = make()
                    result[name][str(size)] = halves(sim, steps, every, Path(folder) / f"{name}{size}")
                    ranks = sim.stepper.ranks()
                    result[name][f"lists {size}"] = sim.state.rebuilds
                    result[name][f"moved {size}"] = [sum(ranks["moved"]), sum(ranks["ghosts"])]
            everyone.rest()
        # What n processes saved goes on with another number of them, and without.
        for saved, size in ways:
            part = world.Split(0 if world.rank < size else 1)
            if world.rank < size:
                with team.using(part):
                    with never_whole() if size > 1 else nullcontext():
                        sim = clast.resume(Path(folder) / f"{name}{saved}", **again.get(name, {}))
                    result[name][f"{saved} to {size}"] = told(sim, steps - steps // 2, every)
            everyone.rest()
        if world.rank == 0:
            result[name]["saved"] = [tables_in(Path(folder) / f"{name}{size}") for size in (1, *sizes)]
    if look:
        result["contacts"] = looked_at(world, everyone)
    if world.rank == 0:
        print(json.dumps(result))


if __name__ == "__main__":
    main(sys.argv[2:], sys.argv[1], look=True)

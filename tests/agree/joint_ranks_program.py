"""Run by `mpirun -n 4` from test_joint_ranks: joined bodies among hard contacts on one process and on several, and what came of them as JSON."""

import math
import sys
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import ranks_program
from hard_ranks_program import cut_anywhere
from mpi4py import MPI
from ranks_program import digest, main, state_of
from ranks_program import stir as shake
from test_hard_bits import GRAIN, ROUGH, STEP

import clast
from clast.mpi import team
from clast.mpi.domain import Domain
from clast.scenes import SCENES

FOLDER = Path(sys.argv[1]) if len(sys.argv) > 1 else Path()
EVERY = 2  # steps from state to state
EDGE = 0.12
FUNCTIONS = {
    ("joint", 8): lambda time: 0.02 + 0.2 * time,
    ("motor", 0): lambda time: 30.0 * math.cos(20.0 * time),
    ("motor", 3): lambda time: 0.01 * math.sin(40.0 * time),
    ("spring", 3): lambda length, rate, time: 30.0 * (length - 0.02) + 0.01 * rate + 0.02 * math.sin(50.0 * time),
}


def told(sim):
    """The state of a simulation, with what joints and springs do, and how many groups went on their own and how many touched something."""
    joints = sim.stepper.joints
    touching = sim.stepper.everywhere((joints.touching & joints.here)[None]).any(0)
    joined = digest((*sim.reactions, sim.violation, *sim.pulls))
    return [*state_of(sim), joined, [int((~touching).sum()), int(touching.sum())]]


def machine():
    """Mechanisms of every sort that are thrown through balls, over the edges of a periodic world: groups that touch something in some steps and go on their own
    in others, with motors, limits, springs, and functions of the user."""
    scene = clast.Scene(world=((-EDGE, -EDGE, -0.1), (EDGE, EDGE, 0.4)), periodic=(True, True, False))
    scene.add(clast.Plane(), material=ROUGH)
    box = ((-EDGE, -EDGE, 0.003), (EDGE, EDGE, 0.05))
    scene.fill(clast.Sphere(0.005), count=130, scale=(0.7, 1.3), box=box, material=GRAIN, seed=1)
    shake(scene, 1.0)

    def row(count, start, velocity):
        place = np.array(start) + 0.02 * np.arange(count)[:, None] * (1.0, 0.0, 0.0)
        return scene.add(clast.Sphere(0.008), position=place, velocity=velocity, material=ROUGH), place

    # Joints 0 to 3, motor 0: a crank that the world holds, and a rod; what it slides on.
    (crank, rod, slide), place = row(3, (0.02, 0.05, 0.09), (0.0, 0.0, 0.0))
    axis = (0.0, 1.0, 0.0)
    hinge = scene.join(None, crank, "hinge", at=place[0] - (0.01, 0.0, 0.0), axis=axis)
    scene.join(crank, rod, "hinge", at=place[1] - (0.01, 0.0, 0.0), axis=axis)
    scene.join(rod, slide, "ball", at=place[2] - (0.01, 0.0, 0.0))
    scene.join(None, slide, "slider", axis=(1.0, 0.0, 0.0))
    scene.motor(hinge, spin=FUNCTIONS["motor", 0])
    # Joints 4 to 7, motor 1: an arm whose hinges have limits and a weak motor flies through the balls.
    arm, place = row(5, (-0.1, -0.09, 0.02), (2.0, 2.0, -0.5))
    for a, b, at in zip(arm, arm[1:], place[1:] - (0.01, 0.0, 0.0)):
        scene.join(a, b, "hinge", at=at, axis=axis, limits=(-0.05, 0.1))
    scene.motor(5, spin=20.0, most=1e-3)
    scene.torsion(6, stiffness=0.01, damping=1e-4)  # spring 0
    # Joints 8 and 9, motors 2 and 3: what changes its length, and what a position drives, flies high above all.
    high, place = row(3, (0.08, 0.1, 0.2), (4.0, -3.0, 1.0))
    scene.join(high[0], high[1], "distance", length=FUNCTIONS["joint", 8])
    slider = scene.join(high[1], high[2], "slider", axis=(1.0, 0.0, 0.0))
    scene.motor(slider, force=0.01)
    # Springs 1 to 3: balls that hang together by springs alone, one of them on the world.
    soft, _ = row(4, (-0.1, 0.03, 0.03), (1.0, -3.0, 0.0))
    scene.spring(soft[0], soft[1], stiffness=200.0, damping=0.02)
    scene.spring(soft[1], soft[2], stiffness=20.0, damping=0.5)
    scene.spring(soft[2], soft[3], force=FUNCTIONS["spring", 3])
    scene.spring(None, high[1], from_=(0.1, 0.1, 0.3), stiffness=5.0)
    # Joint 10, motor 3: a pair that touches nothing, driven along by a function.
    pair, _ = row(2, (-0.05, -0.1, 0.3), (-5.0, 4.0, 1.0))
    scene.motor(scene.join(*pair, "slider", axis=(1.0, 0.0, 0.0)), position=FUNCTIONS["motor", 3])
    # Joint 11: a driven body drags another over the floor.
    hook = scene.add(clast.Sphere(0.008), position=(0.0, -0.03, 0.02), motion="driven", velocity=(0.0, 1.0, 0.0))
    (dragged,), _ = row(1, (0.0, -0.05, 0.012), (0.0, 1.0, 0.0))
    scene.join(*hook, dragged, "distance")
    return clast.Simulation(scene, clast.Complementarity(iterations=5, ledger=False), dt=0.4 * STEP)


def begin(name, count, steps):
    """One process takes the first steps of a ready scene with so many pebbles, until what is joined lies on them; few iterations, because each takes messages, which on few
    cores are slow."""
    with team.alone():
        if MPI.COMM_WORLD.rank == 0:
            sim = clast.Simulation(
                SCENES[name](count=count).scene, clast.Complementarity(iterations=10, ledger=False), dt=5e-3
            )
            sim.step(steps)
            sim.save(FOLDER / f"{name}.h5")
    team.find().rest()


def ready(name):
    """That scene, which goes on from there."""
    return lambda: clast.resume(FOLDER / f"{name}.h5")


# Steps: twice a multiple of EVERY, because half of them are taken before a checkpoint.
MADE = {
    "machine": (machine, 16, (2, 3, 4), ((2, 3), (3, 1))),
    "chain": (ready("chain-on-gravel"), 8, (3,), ((3, 2),)),
    "vehicle": (ready("tracked-vehicle"), 4, (4,), ((4, 1),)),
}

if __name__ == "__main__":
    begin("chain-on-gravel", 60, 55)
    begin("tracked-vehicle", 60, 12)
    Domain.balance = cut_anywhere
    ranks_program.state_of = told
    ranks_program.in_pieces = nullcontext  # joints are whole on every process, and so is what is told of them
    main(sys.argv[2:], sys.argv[1], MADE, every=EVERY, machine={"functions": FUNCTIONS})

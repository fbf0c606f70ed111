"""Run by `mpirun -n 4` from test_hard_ranks: hard contacts on one process and on several, and what came of them as JSON."""

import sys

import numpy as np
from ranks_program import EDGE, SAVED, main, stand_sides
from ranks_program import stir as shake
from test_hard_bits import BRICK, GRAIN, STEP, busy, rough, stir

import clast
from clast.dvi import long_waves, overlaps
from clast.mpi.cuts import Cuts
from clast.mpi.domain import Domain
from clast.scenes import SCENES
from clast.tables import FREE

ITERATIONS = 6
EVERY = 2  # steps from state to state


def cut_anywhere(self, seconds):
    """In place of `Domain.balance`: now and then space is cut somewhere else, not where clocks say."""
    rng = np.random.default_rng(self.state.rebuilds)
    if rng.random() < 0.4:
        points = self.team.join(self.state.bodies.position[: self.state.own])
        self.cuts = Cuts(self.team.size, self.state.box, points, rng.random(len(points)) ** 4)
        self.recut += 1
    return True


def simulate(scene, dt=STEP):
    return clast.Simulation(scene, clast.Complementarity(iterations=ITERATIONS, ledger=False), dt=dt)


def pile():
    """Balls that fly about in a box, a few so fast that they are stopped on their way; with the coarse space of tall piles."""
    scene = clast.Scene(gravity=(0, 0, -9.81))
    scene.add(clast.Plane(), material=GRAIN, velocity=(0.0, 0.0, 0.2), spin=(0.0, 0.3, 0.0), motion="driven")
    stand_sides(scene, GRAIN)
    box = ((0, 0, 0.01), (EDGE, EDGE, 0.07))
    scene.fill(clast.Sphere(0.006), count=150, scale=(0.7, 1.1), box=box, material=GRAIN, seed=2)
    shake(scene, 1.5)
    free = np.flatnonzero(scene.bodies.motion == FREE)
    scene.bodies.velocity[free[:5]] *= 20.0
    long_waves.TALL, long_waves.CELL = 0.0, 8.0
    return simulate(scene)


def pouring():
    return simulate(busy())


def repeating():
    return simulate(rough())


def heap():
    """Boxes and balls that are thrown together on a floor."""
    scene = clast.Scene()
    scene.add(clast.Plane(), material=GRAIN)
    box = ((-0.02, -0.02, 0.005), (0.02, 0.02, 0.04))
    scene.fill(BRICK, count=25, box=box, material=GRAIN, seed=4)
    scene.fill(clast.Sphere(0.004), count=15, box=box, material=GRAIN, seed=2)
    shake(scene, 0.7)
    return simulate(scene)


def shapes():
    """A particle of every shape, thrown towards the middle of a turning drum."""
    scene = SCENES["all-shapes"](count=70).scene
    shake(scene, 0.5)
    bodies = scene.bodies
    free = bodies.motion == FREE
    bodies.velocity[free] -= 20.0 * bodies.position[free]
    return simulate(scene, 5e-4)


# Steps: twice a multiple of EVERY, because half of them are taken before a checkpoint.
MADE = {
    "pile": (pile, 16, (2, 3, 4), SAVED),
    "pouring": (pouring, 16, (3,), ((3, 2), (3, 1))),
    "repeating": (repeating, 12, (3,), ((3, 2),)),
    "heap": (heap, 20, (2, 3), SAVED),
    "shapes": (shapes, 40, (2, 3, 4), SAVED),
}

if __name__ == "__main__":
    Domain.balance, overlaps.ITERATIONS = cut_anywhere, 4
    main(sys.argv[2:], sys.argv[1], MADE, every=EVERY, repeating={"drives": {2: stir}})

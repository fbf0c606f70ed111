"""Wear of a mesh wall against the way that a body slides."""

import math

import numpy as np
import pytest

import clast
from clast import measure

RUBBER = clast.Material(density=1000.0, young=1e6, poisson=0.25, friction=0.3, restitution=0.1)
SIZE = 2.0


def floor_with(shape, floor=(0.0, 0.0, 0.0), **body):
    """A simulation of one body over a square of two triangles that moves with velocity floor, and the number of the square."""
    scene = clast.Scene()
    corner = SIZE * np.array([(-1.0, -1.0, 0.0), (1.0, -1.0, 0.0), (1.0, 1.0, 0.0), (-1.0, 1.0, 0.0)])
    wall = scene.add(clast.MeshWall(corner, [(0, 1, 2), (0, 2, 3)]), material=RUBBER, velocity=floor)[0]
    scene.add(shape, material=RUBBER, **body)
    return clast.Simulation(scene), wall


@pytest.mark.parametrize(("floor", "body"), [(0.0, 0.5), (0.5, 0.0)])
def test_a_body_that_slides_to_rest_wears_off_what_its_energy_tells(floor, body):
    # Three balls in one clump cannot roll. They slide from speed v to rest over v^2 / (2 mu g) under their weight, so that
    # V = k m g v^2 / (2 mu g) = k E / mu; whether they move or the floor under them is all the same.
    feet = [(0.03 * math.cos(a), 0.03 * math.sin(a), 0.0) for a in (0.5, 0.5 + 2.094395, 0.5 + 4.18879)]
    table, speed = clast.Clump(feet, [0.03] * 3), 0.5
    sim, wall = floor_with(table, (0.0, floor, 0.0), position=(0.3, -0.8, 0.03), velocity=(0.0, body, 0.0))
    mass = float(sim.bodies.mass[1])
    wear = measure.Wear(sim, wall, coefficient=1e-9)
    while sim.time < 1.2 * speed / (0.3 * 9.81):
        sim.step(10)
        wear.update()
    assert np.linalg.norm(sim.bodies.velocity[1] - sim.bodies.velocity[0]) < 0.02 * speed
    assert wear.volume.sum() == pytest.approx(1e-9 * 0.5 * mass * speed**2 / 0.3, rel=0.03)
    assert wear.volume[0] > 0.0 == wear.volume[1]  # all of it where y < x
    assert wear.area == pytest.approx([0.5 * (2.0 * SIZE) ** 2] * 2) and wear.depth == pytest.approx(
        wear.volume / wear.area
    )


def test_a_ball_that_falls_straight_wears_off_nothing():
    sim, wall = floor_with(clast.Sphere(0.03), position=(0.3, -0.8, 0.031))
    wear, touched = measure.Wear(sim, wall, coefficient=1e-9), 0
    for _ in range(100):
        sim.step(5)
        wear.update()
        touched += sim.touching()
    assert touched > 10 and wear.volume.max() < 1e-30

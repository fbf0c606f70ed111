"""Wear of a mesh wall against the way that a body slides."""

import math

import numpy as np
import pytest

import clast
from clast import measure


def test_a_block_that_slides_to_rest_wears_off_what_its_energy_tells():
    # Three balls in one clump cannot roll. They slide from speed v to rest over v^2 / (2 mu g) under their weight, so that
    # V = k m g v^2 / (2 mu g) = k E / mu.
    rubber = clast.Material(density=1000.0, young=1e6, poisson=0.25, friction=0.3, restitution=0.1)
    scene = clast.Scene()
    size = 2.0
    corner = np.array([(-size, -size, 0), (size, -size, 0), (size, size, 0), (-size, size, 0)], float)
    floor = scene.add(clast.MeshWall(corner, [(0, 1, 2), (0, 2, 3)]), material=rubber)[0]
    feet = [(0.03 * math.cos(a), 0.03 * math.sin(a), 0.0) for a in (0.5, 0.5 + 2.094395, 0.5 + 4.18879)]
    table = clast.Clump(feet, [0.03] * 3)
    speed = 0.5
    scene.add(table, position=(0.3, -0.8, 0.03), velocity=(0.0, speed, 0.0), material=rubber)
    sim = clast.Simulation(scene)
    mass = float(sim.bodies.mass[1])
    wear = measure.Wear(sim, floor, coefficient=1e-9)
    while sim.time < 1.2 * speed / (0.3 * 9.81):
        sim.step(10)
        wear.update()
    assert np.linalg.norm(sim.bodies.velocity[1]) < 0.02 * speed
    assert wear.volume.sum() == pytest.approx(1e-9 * 0.5 * mass * speed**2 / 0.3, rel=0.03)
    assert wear.area == pytest.approx([0.5 * (2 * size) ** 2] * 2) and wear.depth == pytest.approx(
        wear.volume / wear.area
    )
    assert wear.volume[0] > 0.0  # it starts and slides where y < x

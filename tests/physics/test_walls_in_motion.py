"""Walls that move by themselves and carry bodies along."""

import math

import numpy as np
import pytest

import clast

G = 9.81
RADIUS = 0.01
ROCK = clast.Material(young=1e8, friction=0.3, restitution=0.3)


@pytest.mark.parametrize("kind", ["plane", "quad"])
def test_sphere_on_a_belt(kind):
    """Friction mu g takes the sphere along until its contact point has the speed of the belt: 2/7 of it."""
    speed = 0.4
    scene = clast.Scene(gravity=(0, 0, -G))
    shape = clast.Plane() if kind == "plane" else clast.Quad([(-1, -1, 0), (1, -1, 0), (1, 1, 0), (-1, 1, 0)])
    scene.add(shape, velocity=(speed, 0, 0), material=ROCK)
    scene.add(clast.Sphere(RADIUS), position=(0.01, 0.02, RADIUS), material=ROCK)
    sim = clast.Simulation(scene, clast.DEM())
    rolling = 2.0 * speed / (7.0 * 0.3 * G)
    sim.step(math.ceil(0.9 * rolling / sim.dt))
    assert sim.bodies.velocity[1, 0] == pytest.approx(0.3 * G * sim.time, rel=2e-2)
    sim.step(math.ceil(0.5 * rolling / sim.dt))
    assert sim.bodies.velocity[1, 0] == pytest.approx(2.0 / 7.0 * speed, rel=1e-3)
    assert sim.bodies.velocity[1, 0] - RADIUS * sim.bodies.spin[1, 1] == pytest.approx(speed, rel=1e-3)


def test_sled_on_a_belt_reaches_its_speed():
    """A body that cannot roll is accelerated by mu g and then carried."""
    speed = 0.3
    sled = clast.Clump([(-0.01, -0.01, 0), (-0.01, 0.01, 0), (0.01, -0.01, 0), (0.01, 0.01, 0)], [0.0105] * 4)
    scene = clast.Scene(gravity=(0, 0, -G))
    scene.add(clast.Plane(), velocity=(speed, 0, 0), material=ROCK)
    scene.add(sled, position=(0, 0, 0.01049), material=ROCK)
    sim = clast.Simulation(scene, clast.DEM())
    time = speed / (0.3 * G)
    sim.step(math.ceil(0.3 * time / sim.dt))
    before, start = sim.bodies.velocity[1, 0], sim.time
    sim.step(math.ceil(0.5 * time / sim.dt))
    assert (sim.bodies.velocity[1, 0] - before) / (sim.time - start) == pytest.approx(0.3 * G, rel=1e-2)
    sim.step(math.ceil(time / sim.dt))
    assert sim.bodies.velocity[1, 0] == pytest.approx(speed, rel=1e-4)


def test_bodies_in_an_oscillating_box_follow():
    """A box that swings slowly takes its load along; a floor that throws harder than g lets it fly."""
    drive = clast.Oscillation(amplitude=(0.0, 0.0, 0.002), frequency=8.0, phase=0.5 * math.pi)  # 0.52 g, from rest
    sim = shaken(drive)
    worst = 0.0
    for _ in range(100):
        sim.step(math.ceil(0.005 / sim.dt))
        bodies = sim.bodies
        worst = max(worst, np.abs(bodies.position[1:, 2] - bodies.position[0, 2] - RADIUS).max())
    exact = 0.002 * (math.cos(2 * math.pi * 8.0 * sim.time) - 1.0)
    assert sim.bodies.position[0, 2] == pytest.approx(exact, abs=1e-12)
    assert worst < 1e-3 * RADIUS
    sim = shaken(clast.Oscillation(amplitude=(0.0, 0.0, 0.004), frequency=12.0))  # 2.3 g
    highest = 0.0
    for _ in range(50):
        sim.step(math.ceil(0.005 / sim.dt))
        bodies = sim.bodies
        highest = max(highest, (bodies.position[1:, 2] - bodies.position[0, 2] - RADIUS).max())
    assert highest > 0.1 * RADIUS


def shaken(drive):
    """Four spheres at rest on a floor that is about to shake."""
    scene = clast.Scene(gravity=(0, 0, -G))
    scene.add(clast.Plane(), drive=drive, material=ROCK)
    place = [(0.03 * k, 0.0, RADIUS) for k in range(4)]
    scene.add(clast.Sphere(RADIUS), position=place, material=ROCK)
    return clast.Simulation(scene, clast.DEM())


def test_a_side_wall_pushes_with_its_own_speed():
    """A frictionless sphere in front of an elastic piston leaves with twice the piston's speed."""
    material = clast.Material(young=1e8, friction=0.0, restitution=1.0)
    scene = clast.Scene(gravity=(0, 0, 0))
    scene.add(clast.Plane((1, 0, 0)), velocity=(0.25, 0, 0), material=material)
    scene.add(clast.Sphere(RADIUS), position=(RADIUS + 1e-4, 0, 0), material=material)
    sim = clast.Simulation(scene, clast.DEM())
    sim.step(math.ceil(0.01 / sim.dt))
    assert sim.bodies.velocity[1, 0] == pytest.approx(0.5, rel=1e-4)


def test_a_function_drives_as_its_oscillation_does():
    """The same motion given as a function and in closed form moves the load in the same way."""
    omega, amplitude = 2 * math.pi * 8.0, 0.002

    def drive(time):
        return (0.0, 0.0, amplitude * omega * math.cos(omega * time)), (0.0, 0.0, 0.0)

    first = shaken(clast.Oscillation(amplitude=(0.0, 0.0, amplitude), frequency=8.0))
    second = shaken(drive)
    for sim in (first, second):
        sim.step(math.ceil(0.1 / sim.dt))
    assert second.bodies.position == pytest.approx(first.bodies.position, abs=1e-8)

"""A gas of elastic spheres: what must be conserved is."""

import math

import numpy as np
import pytest

import clast
from clast import measure

RADIUS = 0.005
SPEED = 0.5


def rock(friction, restitution=1.0):
    return clast.Material(density=2500, young=1e8, poisson=0.25, friction=friction, restitution=restitution)


def contact_time(material, speed):
    """Duration [s] of a Hertz impact of two equal spheres (Johnson 1985, section 11.4)."""
    young = material.young / (2.0 * (1.0 - material.poisson**2))
    mass = 0.5 * material.density * 4.0 / 3.0 * math.pi * RADIUS**3
    return 2.8683 * (mass**2 / (0.5 * RADIUS * young**2 * speed)) ** 0.2


def gas(law, friction, walls, seed):
    """Twelve spheres with random velocities and spins, in a periodic box or between walls."""
    random = np.random.default_rng(seed)
    size = 0.05
    material = rock(friction)
    if walls:
        scene = clast.Scene(gravity=(0, 0, 0))
        for axis in range(3):
            for side, at in ((1.0, 0.0), (-1.0, size)):
                normal, place = np.zeros(3), np.zeros(3)
                normal[axis], place[axis] = side, at
                scene.add(clast.Plane(tuple(normal)), position=place, material=material)
    else:
        scene = clast.Scene(gravity=(0, 0, 0), world=((0, 0, 0), (size,) * 3), periodic=(True,) * 3)
    grid = np.array([(x, y, z) for x in range(3) for y in range(2) for z in range(2)], float)
    place = 0.01 + 0.014 * grid
    velocity = random.normal(size=(12, 3))
    velocity *= SPEED / np.sqrt((velocity**2).sum(1).mean())
    spin = random.normal(size=(12, 3)) * SPEED / RADIUS * (friction > 0)
    scene.add(clast.Sphere(RADIUS), position=place, velocity=velocity, spin=spin, material=material)
    # The mean relative speed is higher than SPEED: a fiftieth of the contact time at twice that.
    return clast.Simulation(scene, clast.DEM(law=law), dt=contact_time(material, 2 * SPEED) / 50)


def energy_drift(sim, steps):
    """Largest deviation of the total energy from the beginning, relative, seen at 100 times."""
    start, worst, touched = measure.energy(sim)["total"], 0.0, 0
    for _ in range(100):
        sim.step(steps // 100)
        worst = max(worst, abs(measure.energy(sim)["total"] / start - 1.0))
        touched += sim.touching()
    assert touched > 0
    return worst


@pytest.mark.parametrize("walls", [False, True], ids=["periodic", "walls"])
def test_energy_of_a_frictionless_gas(walls):
    assert energy_drift(gas("hertz", 0.0, walls, 1), 20_000) < 5e-4


@pytest.mark.slow
@pytest.mark.parametrize("walls", [False, True], ids=["periodic", "walls"])
def test_energy_of_a_frictionless_gas_over_a_million_steps(walls):
    assert energy_drift(gas("hertz", 0.0, walls, 1), 1_000_000) < 5e-4


@pytest.mark.parametrize("friction", [0.0, 0.5])
@pytest.mark.parametrize("law", ["hertz", "linear"])
def test_momentum_of_a_periodic_gas(law, friction):
    sim = gas(law, friction, False, 2)
    start = measure.momentum(sim)[0]
    scale = np.abs(sim.bodies.mass[:, None] * sim.bodies.velocity).sum()
    energy = measure.energy(sim)["total"]
    sim.step(8_000)
    assert np.abs(measure.momentum(sim)[0] - start).max() < 1e-12 * scale
    if friction > 0:
        assert measure.energy(sim)["total"] < energy  # friction only takes energy away


@pytest.mark.parametrize("rolling", [0.0, 0.1])
@pytest.mark.parametrize("friction", [0.0, 0.5])
def test_momenta_of_a_collapsing_cloud(friction, rolling):
    """Spheres and clumps that fall together in free space: nothing but their own contacts acts."""
    random = np.random.default_rng(3)
    material = clast.Material(young=1e8, friction=friction, restitution=0.7, rolling_friction=rolling)
    scene = clast.Scene(gravity=(0, 0, 0))
    grid = np.array([(x, y, z) for x in range(3) for y in range(3) for z in range(3)], float) - 1.0
    place = 0.013 * grid + random.uniform(-5e-4, 5e-4, grid.shape)
    velocity = -60.0 * place
    spin = random.normal(size=place.shape) * 50.0
    rod = clast.Clump([(-0.003, 0, 0), (0.003, 0, 0)], [0.003, 0.004])
    for shape, rows in ((clast.Sphere(RADIUS), slice(0, 14)), (rod, slice(14, 27))):
        scene.add(shape, position=place[rows], velocity=velocity[rows], spin=spin[rows], material=material)
    sim = clast.Simulation(scene, clast.DEM())
    linear, angular = measure.momentum(sim)
    bodies = sim.bodies
    scale = np.abs(bodies.mass[:, None] * bodies.velocity).sum()
    turning = np.abs(np.cross(bodies.position, bodies.mass[:, None] * bodies.velocity)).sum()
    turning += np.abs(bodies.inertia[:, None] * bodies.spin).sum()
    met = set()
    for _ in range(100):
        sim.step(30)
        met |= {tuple(pair) for pair in sim.contacts().pair.tolist()}
    assert len(met) > 20
    after = measure.momentum(sim)
    assert np.abs(after[0] - linear).max() < 1e-12 * scale
    assert np.abs(after[1] - angular).max() < 1e-12 * turning

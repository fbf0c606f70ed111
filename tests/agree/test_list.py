"""The list of pairs is never too old: whatever the scene, it holds every contact that a fresh search finds."""

from pathlib import Path

import numpy as np
import pytest
from roads import keys

from clast import (
    DEM,
    Clump,
    Cylinder,
    Ellipsoid,
    Material,
    Oscillation,
    Plane,
    Scene,
    Simulation,
    Sphere,
    find_contacts,
    load_mesh,
)
from clast.tables import FREE

SOFT = Material(density=2500.0, young=1e6, friction=0.4, restitution=0.9)
WAND = Clump([(0.0, 0.0, 0.0), (0.012, 0.0, 0.0), (0.024, 0.0, 0.0)], [0.008, 0.006, 0.008])
HEAVY = Material(density=1e9, young=1e6, friction=0.4, restitution=0.9)
BOX = ((-0.1, -0.1, 0.0), (0.1, 0.1, 0.2))


def closed(scene):
    """Walls of planes around BOX."""
    for axis in range(3):
        for side in (0, 1):
            normal = np.zeros(3)
            normal[axis] = 1.0 - 2.0 * side
            position = np.zeros(3)
            position[axis] = BOX[side][axis]
            scene.add(Plane(normal=tuple(normal)), position=tuple(position), material=SOFT)


def gas(scene, count, speed, seed=1, shape=None, spin=0.0):
    """Fast bodies in random directions."""
    rng = np.random.default_rng(seed)
    inner = (np.array(BOX[0]) + 0.001, np.array(BOX[1]) - 0.001)
    shape = Sphere(0.006) if shape is None else shape
    probe = Scene()
    probe.fill(shape, count=count, box=inner, seed=seed)
    bodies = probe.bodies
    turn = rng.normal(size=(count, 3))
    scene.add(
        shape,
        position=bodies.position,
        orientation=bodies.orientation,
        velocity=speed * rng.normal(size=(count, 3)),
        spin=spin * turn / np.linalg.norm(turn, axis=1, keepdims=True),
        material=SOFT,
    )


def rest(scene, count):
    """Spheres so heavy that walls pass through them: only the motion of the walls can make the list too old."""
    scene.fill(Sphere(0.006), count=count, box=(np.array(BOX[0]) + 0.001, np.array(BOX[1]) - 0.001), material=HEAVY)


def fast_gas():
    scene = Scene()
    closed(scene)
    gas(scene, 150, 4.0)
    return scene


def periodic_gas():
    scene = Scene(gravity=(0.0, 0.0, 0.0), world=BOX, periodic=(True, True, True))
    gas(scene, 200, 4.0)
    return scene


def spinning_clumps():
    scene = Scene(world=BOX, periodic=(True, True, False))
    scene.add(Plane(), material=SOFT)
    scene.add(Plane(normal=(0.0, 0.0, -1.0)), position=(0.0, 0.0, 0.2), material=SOFT)
    gas(scene, 40, 1.0, shape=WAND, spin=1500.0)
    return scene


def spinning_ellipsoids():
    """Long ellipsoids that come into contact by turning, not by moving; some near walls of every kind."""
    scene = Scene(gravity=(0.0, 0.0, 0.0))
    closed(scene)
    gas(scene, 100, 0.6, seed=4, shape=Ellipsoid(0.017, 0.004, 0.003), spin=300.0)
    scene.add(Cylinder(0.01, 0.1, inside=False), position=(0.0, 0.0, 0.1), spin=(0.0, 100.0, 0.0), material=SOFT)
    return scene


def rotor():
    """A mesh that turns fast about a point away from its origin, while nothing else moves much."""
    scene = Scene(gravity=(0.0, 0.0, 0.0))
    mesh = load_mesh(Path(__file__).parents[1] / "data" / "meshes" / "stairs.obj")
    size = 0.12 / float(np.ptp(mesh.vertices, axis=0).max())
    middle = size * mesh.vertices.mean(axis=0)
    scene.add(
        mesh,
        position=(0.0, 0.0, 0.1) - middle,
        scale=size,
        material=SOFT,
        spin=(20.0, 60.0, 150.0),
        pivot=(0.0, 0.0, 0.1),
    )
    closed(scene)
    rest(scene, 150)
    return scene


def shakers():
    """Walls of every kind that oscillate, also in a direction in which others turn."""
    scene = Scene(gravity=(0.0, 0.0, 0.0))
    closed(scene)
    scene.add(Plane(), position=(0.0, 0.0, 0.01), material=SOFT, drive=Oscillation((0.0, 0.0, 0.02), 60.0))
    scene.add(
        Cylinder(0.02, 0.1, inside=False),
        position=(0.0, 0.0, 0.1),
        material=SOFT,
        drive=Oscillation((0.05, 0.0, 0.0), 40.0),
    )
    scene.add(Cylinder(0.015, 0.12, inside=False), position=(0.0, 0.05, 0.15), material=SOFT, spin=(0.0, 90.0, 90.0))
    scene.add(
        Sphere(0.02),
        position=(0.05, 0.05, 0.1),
        material=SOFT,
        drive=Oscillation((0.0, 0.05, 0.0), 50.0),
        motion="driven",
    )
    scene.add(WAND, position=(-0.05, 0.05, 0.1), material=SOFT, motion="driven", spin=(0.0, 0.0, 200.0))
    rest(scene, 120)
    return scene


def rocking_plane():
    """A plane that turns about a far point: what has no end sweeps through everything."""
    scene = Scene(gravity=(0.0, 0.0, 0.0))
    closed(scene)
    rock = lambda time: ((0.0, 0.0, 0.0), (0.0, -8.0 * np.cos(60.0 * time), 0.0))  # noqa: E731
    scene.add(Plane(), position=(-0.5, 0.0, 0.02), material=SOFT, drive=rock)
    rest(scene, 120)
    return scene


SCENES = [fast_gas, periodic_gas, spinning_clumps, spinning_ellipsoids, rotor, shakers, rocking_plane]


def same_contacts(sim):
    """Compare the contacts from the list with those of a fresh search; returns how many there are."""
    listed, fresh = sim.contacts(), find_contacts(sim.scene)
    bodies = sim.bodies
    free = bodies.number[bodies.motion == FREE]
    # Two bodies that are not free do not push each other; a touch of rounding may be seen by one road only.
    real = np.isin(fresh.pair, free).any(1) & (fresh.gap < -1e-13)
    certain = listed.gap < -1e-13
    assert np.array_equal(keys(listed)[certain], keys(fresh)[real])
    assert np.allclose(listed.gap[certain], fresh.gap[real], rtol=0.0, atol=1e-14)
    return int(certain.sum())


@pytest.mark.parametrize("margin", [None, 2e-4])
@pytest.mark.parametrize("make", SCENES)
def test_list_is_fresh(make, margin):
    scene = make()
    # Some walls go through what lies in their way.
    sim = Simulation(scene, DEM(margin=margin, penetration="push"), dt=1e-4)
    rng = np.random.default_rng(0)
    seen = 0
    for _ in range(60):
        sim.step(int(rng.integers(1, 12)))
        seen += same_contacts(sim)
    assert seen > 100
    assert sim.state.rebuilds > 2


def test_list_is_kept_where_nothing_comes_nearer():
    """A drum that turns about its own axis needs no new list."""
    scene = Scene()
    scene.add(Cylinder(0.1, axis=(0.0, 1.0, 0.0)), spin=(0.0, 300.0, 0.0), material=SOFT)
    scene.add(Sphere(0.01), position=(0.0, 0.0, 0.0), material=SOFT)
    sim = Simulation(scene, dt=1e-4)
    sim.step(50)
    assert sim.state.rebuilds == 1

"""Bodies of many shapes in one scene: rabbits among cubes, rings that stand still, turn or fly among rocks, a vehicle on rocks, by forces and by hard
contacts."""

from pathlib import Path

import numpy as np
import pytest

import clast
from clast import Material, Mesh, Plane, Polyhedron, Scene, Simulation
from clast.scenes import tracked_vehicle

STONE = Material(density=2500.0, young=1e7, friction=0.4, restitution=0.2)
RABBIT = Path(__file__).resolve().parents[3] / "shared/data/meshes/parry_tests/low_poly_bunny.obj"
BOTH = pytest.mark.parametrize("hard", [False, True], ids=["dem", "hard"])


def ring(radius):
    from trimesh.creation import torus

    made = torus(0.72 * radius, 0.28 * radius, major_sections=12, minor_sections=8)
    return Mesh(made.vertices, made.faces, epsilon=0.1 * radius)


def hare(radius):
    """A lump with two ears, concave between them: the surface of an ellipsoid that bulges there."""
    from trimesh.creation import icosphere

    ball = icosphere(subdivisions=2)
    vertices = np.array(ball.vertices) * (0.6, 0.45, 0.5)
    for side in (-1.0, 1.0):
        ear = np.array([0.35 * side, 0.0, 0.94])
        near = np.exp(-20.0 * ((np.array(ball.vertices) - ear) ** 2).sum(1))
        vertices += near[:, None] * (0.25 * side, 0.0, 0.8)
    size = radius / np.linalg.norm(vertices, axis=1).max()
    return Mesh(size * vertices, ball.faces, epsilon=0.05 * radius)


def simulation(scene, hard):
    method = clast.Complementarity(tolerance=1e-4, iterations=200) if hard else clast.DEM()
    return Simulation(scene, method, dt=1e-3 if hard else "auto")


def among_cubes(rabbit, hard):
    """Four rabbits and eight cubes, all within balls of 1 cm, fall into a box of planes."""
    scene = Scene(gravity=(0, 0, -9.81))
    scene.add(Plane(), material=STONE)
    for x, y in ((1, 0), (-1, 0), (0, 1), (0, -1)):
        scene.add(Plane(normal=(x, y, 0)), position=(-0.023 * x, -0.023 * y, 0), material=STONE)
    cube = Polyhedron.box(0.011, 0.011, 0.011)
    place = [(0.0111 * x, 0.0111 * y, 0.012 + 0.0215 * z) for z in range(3) for x in (-1, 1) for y in (-1, 1)]
    turn = np.random.default_rng(3).normal(size=(12, 4))
    turn /= np.linalg.norm(turn, axis=1)[:, None]
    rabbits = []
    for k in range(12):
        one = scene.add(rabbit if k % 3 == 0 else cube, position=place[k], orientation=turn[k], material=STONE)[0]
        rabbits += [int(one)] if k % 3 == 0 else []
    sim = simulation(scene, hard)
    sim.run(until=0.25, progress=False)
    bodies, found = sim.bodies, sim.contacts()
    free = np.isfinite(bodies.mass)
    assert sim.stepper.crossings == 0
    assert bodies.position[free, 2].min() > 0.003 and np.abs(bodies.position[free, :2]).max() < 0.023
    assert bodies.position[free, 2].max() < 0.045  # they have fallen into each other's gaps
    walls, one, two = (np.isin(found.pair, which) for which in (np.nonzero(~free)[0], rabbits, rabbits))
    assert (one.any(axis=1) & ~(walls | two).all(axis=1) & ~walls.any(axis=1)).any()  # a rabbit on a cube
    weight = 9.81 * bodies.mass[free].sum()
    assert 0.5 * (bodies.mass[free, None] * bodies.velocity[free] ** 2).sum() < 0.02 * weight * 0.01


@BOTH
def test_hares_lie_among_cubes(hard):
    among_cubes(hare(0.01), hard)


@pytest.mark.skipif(not RABBIT.exists(), reason="the mesh is not beside the checkout")
def test_rabbits_lie_among_cubes():
    mesh = clast.load_mesh(RABBIT, shape="mesh")
    size = 0.01 / np.linalg.norm(mesh.vertices, axis=1).max()
    among_cubes(Mesh(size * mesh.vertices, mesh.triangles, epsilon=5e-4), True)


@BOTH
def test_rings_that_stand_still_or_turn_carry_and_throw_others(hard):
    """A rock and a ring rest on a ring that is fixed; those on one that turns are taken along."""
    scene = Scene(gravity=(0, 0, -9.81))
    large = ring(0.03)
    scene.add(large, motion="fixed", material=STONE)
    scene.add(large, position=(0.2, 0, 0), motion="driven", spin=(0, 0, 6.0), material=STONE)
    numbers = []
    for x in (0.0, 0.2):
        numbers += scene.add(ring(0.026), position=(x, 0, 0.0165 + 0.006), material=STONE).tolist()
        numbers += scene.add(Polyhedron.box(0.012, 0.05, 0.012), position=(x, 0, 0.0405), material=STONE).tolist()
    sim = simulation(scene, hard)
    sim.run(until=0.3, progress=False)
    bodies = sim.bodies
    assert sim.stepper.crossings == 0
    still, taken = numbers[:2], numbers[2:]
    assert (bodies.position[numbers, 2] > 0.01).all()  # all of them are up there
    assert np.abs(bodies.spin[still]).max() < 0.5 and np.abs(bodies.velocity[still]).max() < 0.02
    assert (bodies.spin[taken, 2] > 3.0).all()


@pytest.mark.slow
def test_the_vehicle_drives_on_ellipsoids_and_rocks():
    sim = tracked_vehicle(count=850, bed="rocks").simulation()
    chassis = next(
        k for k, mass in enumerate(sim.bodies.mass) if mass == sim.bodies.mass[np.isfinite(sim.bodies.mass)].max()
    )
    start = sim.bodies.position[chassis]
    sim.run(until=1.5, progress=False)
    way = sim.bodies.position[chassis] - start
    assert way[0] > 0.2 and np.abs(way[1:]).max() < 0.15  # it sinks in by 0.1 m
    assert float(np.max(sim.violation)) < 1e-6

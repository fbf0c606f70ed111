"""Triangulated particles with hard contacts, among polyhedra and spheres: no bit changes, and a cube is a cube however it is given."""

import math

import numpy as np
import pytest
from roads import differences, measure_all_triangles, on_threads, state
from test_hard_bits import launch_on_all, two_threads
from trimesh.creation import box

import clast
from clast import Complementarity, Material, Mesh, Oscillation, Plane, Polyhedron, Scene, Simulation, Sphere
from clast.dvi import stepper as hard
from clast.kernels import backend

GRAIN = Material(density=2500.0, friction=0.5, restitution=0.2)
LUMP = Mesh.random(16, (0.6, 1.0), seed=3, radius=0.006)
BRICK = Polyhedron.box(0.009, 0.006, 0.004)
STEP = 1e-3
STEPS = 90
DOWN = (0.0, 0.0, -0.7)  # [m/s]: contacts are there soon


def heap():
    """Lumps, boxes and spheres in a heap on a floor that shakes."""
    scene = Scene()
    scene.add(Plane(), material=GRAIN, drive=Oscillation((0.0, 0.0, 0.0005), 20.0))
    room = ((-0.02, -0.02, 0.007), (0.02, 0.02, 0.1))
    scene.fill(LUMP, count=12, box=room, material=GRAIN, velocity=DOWN, seed=4)
    scene.fill(BRICK, count=8, box=room, material=GRAIN, velocity=DOWN, seed=6)
    scene.fill(Sphere(0.004), count=6, box=room, material=GRAIN, velocity=DOWN, seed=2)
    return scene


def start(broad="bins"):
    return Simulation(heap(), Complementarity(iterations=30, broad=broad), dt=STEP)


@pytest.fixture(scope="module")
def plain():
    """The state after all steps, taken in one go."""
    sim = start()
    sim.step(STEPS)
    assert len(sim.stepper.constraints.gap) > 20
    return state(sim)


@two_threads
def test_threads(plain, monkeypatch):
    monkeypatch.setattr(hard, "CHUNK", 8)
    monkeypatch.setattr(backend.CPU, "launch", staticmethod(launch_on_all))
    with on_threads(2):
        sim = start()
        sim.step(STEPS)
    assert differences(plain, state(sim)) == []


def test_restarts(plain, tmp_path):
    sim = start()
    for at in (0, 37, 64, 80):
        sim.step(at - sim.steps)
        sim.save(tmp_path / "checkpoint.h5")
        sim = clast.resume(tmp_path / "checkpoint.h5")
    sim.step(STEPS - sim.steps)
    assert differences(plain, state(sim)) == []


def test_triangles_that_are_not_measured_do_not_touch(plain, monkeypatch):
    """All candidates measured in every step: the same bits."""
    measure_all_triangles(monkeypatch)
    sim = start()
    sim.step(STEPS)
    assert differences(plain, state(sim)) == []


def test_broad_phases(plain):
    sim = start("all-pairs")
    sim.step(STEPS)
    assert differences(plain, state(sim)) == []


def cube(shape, gravity, steps, friction=0.4):
    """A cube of edge 0.1 m on a plane under this gravity, after so many steps of 1 ms."""
    rough = Material(density=1000.0, friction=friction, restitution=0.0)
    scene = Scene(gravity=gravity)
    scene.add(Plane(), material=rough)
    halo = getattr(shape, "epsilon", 0.0)
    scene.add(shape, position=(0.0, 0.0, 0.05 + halo), material=rough)
    sim = Simulation(scene, Complementarity(tolerance=1e-8, iterations=2000), dt=1e-3)
    sim.step(steps)
    return sim


def as_mesh(cuts):
    """A cube of 12 * 4^cuts triangles."""
    made = box((0.1, 0.1, 0.1))
    for _ in range(cuts):
        made = made.subdivide()
    return Mesh(made.vertices, made.faces, epsilon=1e-3)


CUBES = {"polyhedron": Polyhedron.box(0.1, 0.1, 0.1), "12 triangles": as_mesh(0), "192 triangles": as_mesh(2)}


@pytest.mark.parametrize("name", CUBES)
def test_cube_at_rest_carries_its_weight(name):
    sim = cube(CUBES[name], (0.0, 0.0, -9.81), 100)
    contacts = sim.contacts()
    assert contacts.force.sum(0) == pytest.approx([0.0, 0.0, 9.81], abs=1e-4)  # of the solver: 1e-8 in velocity
    assert np.abs(sim.bodies.velocity).max() < 1e-6
    moment = np.cross(contacts.point - sim.bodies.position[1], contacts.force).sum(0)
    assert np.abs(moment).max() < 1e-5


@pytest.mark.parametrize("name", CUBES)
def test_cube_slides_as_coulomb_says(name):
    """On a slope of 0.9 of the angle of friction it stays; on one of 30 degrees it goes at g (sin - mu cos)."""
    angle = 0.9 * math.atan(0.4)
    sim = cube(CUBES[name], (9.81 * math.sin(angle), 0.0, -9.81 * math.cos(angle)), 100)
    assert abs(sim.bodies.velocity[1, 0]) < 1e-6
    angle, steps = math.radians(30.0), 200
    sim = cube(CUBES[name], (9.81 * math.sin(angle), 0.0, -9.81 * math.cos(angle)), steps)
    wanted = 9.81 * (math.sin(angle) - 0.4 * math.cos(angle)) * steps * 1e-3
    assert sim.bodies.velocity[1, 0] == pytest.approx(wanted, rel=0.01)

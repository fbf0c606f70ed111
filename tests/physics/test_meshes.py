"""Triangulated particles in motion: collisions, rest, friction, rings on rods, and what happens beyond the halo."""

import dataclasses
import math

import numpy as np
import pytest
import trimesh

import clast
from clast import DEM, Material, Mesh, Plane, Scene, Simulation, Sphere
from clast.measure import energy, momentum

ELASTIC = Material(density=2000.0, halo_stiffness=2e4, halo_damping=0.0, name="elastic")
STONE = Material(density=2000.0, stiffness=2e4, friction=0.5, restitution=0.2, name="stone")


def made(shape, epsilon=None):
    """A Mesh of a trimesh body."""
    return Mesh(shape.vertices, shape.faces, epsilon=epsilon)


def box(x, y, z, epsilon=None):
    return made(trimesh.creation.box((x, y, z)), epsilon)


def ball(level, radius=0.05, epsilon=2e-3):
    return made(trimesh.creation.icosphere(level, radius), epsilon)


def two_lumps():
    """Two lumps that meet off centre."""
    scene = Scene(gravity=(0, 0, 0))
    one, two = (Mesh.random(points, seed=seed, radius=0.05, epsilon=2e-3) for points, seed in ((31, 1), (36, 2)))
    scene.add(one, position=(-0.06, 0, 0), velocity=(0.5, 0, 0), spin=(1, 2, 3), material=ELASTIC)
    scene.add(two, position=(0.06, 0.02, 0.01), velocity=(-0.5, 0, 0), spin=(0, 1, 0), material=ELASTIC)
    return Simulation(scene, DEM(law="halo", integrator="symplectic"), dt=2e-5)


def test_a_bounce_keeps_energy_and_momenta():
    sim = two_lumps()
    before, (linear, angular) = energy(sim)["total"], momentum(sim)
    most = 0
    while sim.time < 0.15:
        sim.step(10)
        most = max(most, len(sim.contacts().gap))
    assert most > 0
    assert len(sim.contacts().gap) == 0
    after = momentum(sim)
    size = float(np.abs(sim.bodies.mass).sum())
    assert np.abs(after[0] - linear).max() < 1e-12 * size
    assert np.abs(after[1] - angular).max() < 1e-12 * size * 0.1
    assert sim.bodies.velocity[1, 0] > sim.bodies.velocity[0, 0]
    assert abs(energy(sim)["total"] / before - 1.0) < 1e-3


def test_a_fine_ball_rebounds_as_a_sphere_does():
    """An oblique collision without friction, of two spheres and of two triangulated ones with the halo as their skin."""
    smooth = Material(density=2000.0, stiffness=2e4, friction=0.0, restitution=1.0)

    def after(shape, turn=(1.0, 0.0, 0.0, 0.0)):
        scene = Scene(gravity=(0, 0, 0))
        scene.add(shape, position=(-0.036, 0, 0), velocity=(0.5, 0, 0), material=smooth)
        scene.add(shape, position=(0.06, 0.03, 0.01), orientation=turn, material=smooth)
        sim = Simulation(scene, DEM(law="linear"), dt=4e-5)
        sim.step(600)
        assert len(sim.contacts().gap) == 0  # they have parted
        return sim.bodies.velocity

    truth = after(Sphere(0.05))
    assert np.linalg.norm(truth[1]) > 0.1
    turns = (1.0, 0.0, 0.0, 0.0), (0.5, 0.5, 0.1, -0.7)
    turns = [np.array(turn) / np.linalg.norm(turn) for turn in turns]
    errors = [
        np.mean([np.linalg.norm(after(ball(level, 0.048), turn) - truth) for turn in turns]) for level in (2, 3, 4)
    ]
    assert errors[0] > 1.5 * errors[1] > 1.5 * 1.5 * errors[2]
    assert errors[2] < 0.012


def test_a_lump_at_rest_weighs_what_it_weighs():
    scene = Scene()
    scene.add(Plane(), material=STONE)
    scene.add(Mesh.random(30, seed=5, radius=0.05), position=(0, 0, 0.05), material=STONE)
    sim = Simulation(scene, DEM(law="linear"), dt=2e-4)
    sim.step(10000)
    contacts = sim.contacts()
    assert len(contacts.gap) >= 3
    weight = 9.81 * sim.bodies.mass[1]
    assert contacts.force[:, 2].sum() == pytest.approx(weight, rel=1e-3)
    assert np.abs(sim.bodies.velocity).max() < 1e-3
    # Its points share one spring, which sees the mean of their overlaps by what they bear.
    mean = np.average(contacts.gap, weights=contacts.force[:, 2])
    assert mean == pytest.approx(-weight / STONE.stiffness, rel=2e-3)


@pytest.mark.parametrize("part", [0.9, 1.1])
def test_a_brick_holds_below_the_angle_of_friction_and_slides_above(part):
    slope = math.atan(0.5) * part
    scene = Scene(gravity=(9.81 * math.sin(slope), 0, -9.81 * math.cos(slope)))
    scene.add(Plane(), material=STONE)
    brick = box(0.1, 0.08, 0.03)
    scene.add(brick, position=(0, 0, 0.015 + 0.9 * brick.epsilon), material=STONE)
    sim = Simulation(scene, DEM(law="linear"), dt=1e-4)
    sim.step(3000)
    start, speed = sim.bodies.position[1, 0], sim.bodies.velocity[1, 0]
    sim.step(3000)
    if part < 1.0:
        assert abs(sim.bodies.position[1, 0] - start) < 1e-6
    else:
        pull = 9.81 * (math.sin(slope) - 0.5 * math.cos(slope))
        assert sim.bodies.velocity[1, 0] - speed == pytest.approx(0.3 * pull, rel=0.02)


def test_surfaces_that_cross_are_reported():
    scene = Scene(gravity=(0, 0, 0))
    scene.add(box(0.1, 0.1, 0.1), material=STONE)
    scene.add(box(0.1, 0.1, 0.1), position=(0.09, 0.03, 0.02), material=STONE)
    with pytest.raises(clast.Penetrated, match=r"body 0 .* and body 1 .* cross.*epsilon"):
        Simulation(scene, DEM(law="linear"), dt=1e-4).step()


def test_faces_that_just_touch_part_along_their_normal():
    scene = Scene()
    scene.add(box(0.1, 0.1, 0.1), position=[(0, 0, 0), (0, 0, 0.1)], material=STONE)
    contacts = clast.find_contacts(scene)
    assert len(contacts.gap) > 0
    assert contacts.gap == pytest.approx(-2.0 * box(0.1, 0.1, 0.1).epsilon, rel=1e-8)
    assert contacts.normal == pytest.approx(np.tile([0.0, 0.0, 1.0], (len(contacts.gap), 1)), abs=1e-12)


def test_a_body_inside_another_is_reported():
    scene = Scene(gravity=(0, 0, 0))
    scene.add(box(0.1, 0.1, 0.1), material=STONE)
    scene.add(box(0.02, 0.02, 0.02), position=(0.01, 0.0, 0.01), material=STONE)
    with pytest.raises(clast.Penetrated, match=r"body 0 .* and body 1 .* inside"):
        Simulation(scene, DEM(law="linear"), dt=1e-4).step()


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_bodies_that_cross_can_be_pushed_apart(sign):
    scene = Scene(gravity=(0, 0, 0))
    scene.add(box(0.1, 0.1, 0.1), material=STONE)
    scene.add(box(0.1, 0.1, 0.1), position=(sign * 0.098, sign * 0.03, sign * 0.02), material=STONE)
    sim = Simulation(scene, DEM(law="linear", penetration="push"), dt=1e-4)
    sim.step(1500)
    assert sim.report().crossings > 0
    assert sign * (sim.bodies.position[1, 0] - sim.bodies.position[0, 0]) > 0.1


@pytest.mark.parametrize("penetration", ["raise", "push"])
def test_a_sphere_with_its_centre_inside_is_reported(penetration):
    """Pushed along the way to the nearest face it would go farther in."""
    scene = Scene(gravity=(0, 0, 0))
    scene.add(box(0.1, 0.1, 0.1), motion="fixed", material=STONE)
    scene.add(Sphere(0.01), position=(0, 0, 0.049), material=STONE)
    with pytest.raises(clast.Penetrated, match=r"body 0 .* and body 1 "):
        Simulation(scene, DEM(law="linear", penetration=penetration), dt=1e-4).step()


def test_large_bodies_do_not_make_small_meshes_look_far():
    """The margin of candidates is that of the smaller mesh of a pair, not of the scene."""
    scene = Scene(gravity=(0, 0, 0))
    scene.add(Sphere(1.0), position=[(3.0 * k, 5.0, 0.0) for k in range(3)], material=STONE)
    fine = ball(3, radius=0.01, epsilon=1e-4)
    scene.add(fine, position=[(0, 0, 0), (0.0201, 0, 0)], material=STONE)
    sim = Simulation(scene, DEM(law="linear"), dt=1e-6)
    sim.step()
    assert 0 < sim.state.candidates.known.used.sum() < 0.02 * len(fine.triangles) ** 2


@pytest.mark.slow
@pytest.mark.parametrize("rolling", [0.0, 0.2])
def test_a_ring_hangs_on_a_rod(rolling):
    """Let go beside its lowest place, a ring rolls to and fro on the rod and does not slip: nothing takes its energy but the damping
    of contacts as corners come down, and nothing adds to it. With rolling friction it comes to rest."""
    scene = Scene()
    rod = made(trimesh.creation.cylinder(0.01, 0.3, sections=24), epsilon=1e-3)
    ring = made(trimesh.creation.torus(0.05, 0.012, major_sections=32, minor_sections=12), epsilon=1e-3)
    quarter = (math.sqrt(0.5), math.sqrt(0.5), 0, 0)
    stone = dataclasses.replace(STONE, rolling_friction=rolling)
    scene.add(rod, orientation=quarter, motion="fixed", material=stone)  # along y
    scene.add(ring, position=(0.004, 0, -0.02), orientation=quarter, material=stone)
    sim = Simulation(scene, DEM(law="linear"), dt=5e-5)
    sim.step(2000)  # it has fallen on the rod
    totals, speeds = [], []
    for _ in range(290):
        sim.step(200)
        totals.append(energy(sim)["total"])
        speeds.append(np.abs(sim.bodies.velocity[1]).max())
    x, _, z = sim.bodies.position[1]
    assert z == pytest.approx(-(0.05 - 0.012 - 0.01), abs=3e-3)
    assert abs(x) < 0.01
    assert max(totals[100:]) < max(totals[:100])
    if rolling > 0.0:
        assert max(speeds[-100:]) < 0.25 * max(
            speeds[:20]
        )  # what is left is elastic: the spring of rolling friction has no damping
    else:
        assert 0.035 < max(speeds[-100:]) < max(speeds[:100])  # it swings on

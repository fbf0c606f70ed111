"""Triangulated particles against polyhedra: the same as against a mesh of the same faces, but for the halo that a polyhedron has not."""

import numpy as np
import pytest

import clast
from clast import Material, Mesh, Polyhedron, Scene, find_contacts

STONE = Material(density=2500.0)
LUMP = Mesh.random(30, seed=1, radius=1.0, epsilon=0.02)
ROCK = Polyhedron.random(faces=14, seed=3, radius=0.8)
HALO = 0.03
AS_MESH = Mesh(*ROCK.surface(), epsilon=HALO)


def poses(count, seed):
    """Random places and orientations (count,3), (count,4) of the second body about the first."""
    rng = np.random.default_rng(seed)
    way = rng.normal(size=(count, 3))
    way *= (rng.uniform(0.9, 2.2, count) / np.linalg.norm(way, axis=1))[:, None]
    turn = rng.normal(size=(count, 4))
    return way, turn / np.linalg.norm(turn, axis=1)[:, None]


def nearest(second, way, turn, swap=False):
    """Gap and normal of the deepest contact of LUMP with a second shape at each pose; 40 m from pair to pair."""
    scene = Scene()
    places = 40.0 * np.arange(len(way))[:, None] * np.array([1.0, 0.0, 0.0])
    first = lambda: scene.add(LUMP, position=places, material=STONE)  # noqa: E731
    other = lambda: scene.add(second, position=places + way, orientation=turn, material=STONE)  # noqa: E731
    one, two = (other(), first())[::-1] if swap else (first(), other())
    found = find_contacts(scene, pairs=np.stack([one, two], axis=1), margin=np.inf)
    return found.gap, found.normal, found.pair


def test_gap_and_normal_are_those_of_its_faces():
    way, turn = poses(300, 4)
    gap, normal, _ = nearest(ROCK, way, turn)
    other, direction, _ = nearest(AS_MESH, way, turn)
    apart = other > -HALO  # triangles that cross have no distance
    assert apart.sum() > 150
    # The centre of mass of the mesh is summed otherwise than that of the polyhedron, so the last digits differ.
    np.testing.assert_allclose(gap[apart], other[apart] + HALO, atol=1e-12)
    np.testing.assert_allclose(normal[apart], direction[apart], atol=1e-9)


def test_the_order_of_bodies_does_not_matter():
    way, turn = poses(100, 5)
    gap, normal, _ = nearest(ROCK, way, turn)
    other, direction, _ = nearest(ROCK, way, turn, swap=True)
    apart = gap > -0.01
    np.testing.assert_array_equal(gap[apart], other[apart])
    np.testing.assert_array_equal(normal[apart], -direction[apart])


@pytest.mark.parametrize(
    "method", [clast.DEM(), clast.Complementarity(tolerance=1e-8, iterations=2000)], ids=["dem", "dvi"]
)
def test_a_box_rests_on_a_mesh(method):
    """A box on a fixed block of 768 triangles: the contact carries its weight, and nothing moves."""
    from trimesh.creation import box

    block = box((0.4, 0.4, 0.1)).subdivide().subdivide().subdivide()
    table = Mesh(block.vertices, block.faces, epsilon=2e-3)
    wood = Material(density=700.0, young=1e7, friction=0.4, restitution=0.1)
    scene = Scene()
    scene.add(table, material=wood, motion="fixed")
    scene.add(Polyhedron.box(0.1, 0.1, 0.1), position=(0.01, 0.02, 0.1021), material=wood)
    soft = isinstance(method, clast.DEM)
    sim = clast.Simulation(scene, method, dt="auto" if soft else 1e-3)
    sim.run(until=0.5, progress=False)
    contacts = sim.contacts()
    assert contacts.force.sum(0) == pytest.approx([0.0, 0.0, 0.7 * 9.81], abs=1e-3)
    assert np.abs(sim.bodies.velocity).max() < 1e-4
    assert len(contacts.gap) >= 3


def slab(width, height):
    """A box as a mesh of 12 triangles, whose top is at half its height."""
    from trimesh.creation import box

    made = box((width, width, height))
    return Mesh(made.vertices, made.faces, epsilon=2e-3)


def test_points_of_a_small_box_on_large_triangles_stay_apart():
    """What is one and the same point is told by the shortest edge of both, not of the mesh alone."""
    scene = Scene()
    scene.add(slab(2.0, 2.0), material=STONE, motion="fixed")
    turn = (np.cos(0.005), np.sin(0.004), np.sin(0.003), 0.0)  # a little askew: corners have depths of their own
    scene.add(Polyhedron.box(0.2, 0.2, 0.2), position=(0.03, 0.02, 1.101), orientation=turn, material=STONE)
    found = find_contacts(scene, margin=0.01)
    assert len(found.gap) >= 2
    apart = np.linalg.norm(found.point[:, None] - found.point, axis=2)
    assert apart.max() > 0.1


def test_a_polyhedron_that_crosses_a_mesh_can_be_pushed_out():
    """Not taken for one that lies inside because a corner does."""
    scene = Scene(gravity=(0.0, 0.0, 0.0))
    scene.add(slab(0.4, 0.1), material=STONE, motion="fixed")
    scene.add(Polyhedron.box(0.1, 0.1, 0.1), position=(0.0, 0.0, 0.099), material=STONE)
    sim = clast.Simulation(scene, clast.DEM(penetration="push"))
    sim.step(2)
    assert sim.stepper.crossings > 0

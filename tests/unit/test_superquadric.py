"""Superquadrics: volume, inertia and support in closed form, and what they have in common with ellipsoids, balls and boxes."""

import math

import numpy as np
import pytest

import clast
from clast import Compound, Cylinder, Ellipsoid, Mesh, Plane, Polyhedron, Scene, Simulation, Sphere, Superquadric, files
from clast.files.trajectory import Trajectory
from clast.narrow.superquadric_flat import triangle_separation
from clast.scenefile import load
from clast.shapes import union
from clast.view.stage import Stage

SOME = [(0.4, 0.6), (1.4, 0.2), (0.1, 0.1), (1.9, 1.9), (0.3, 1.7), (1.0, 0.1)]


def random_turns(count, seed):
    q = np.random.default_rng(seed).normal(size=(count, 4))
    return q / np.linalg.norm(q, axis=1)[:, None]


@pytest.mark.parametrize("e", SOME)
def test_volume_and_inertia_are_those_of_points_inside(e):
    """A lattice of 160 points a side counts a smooth body to about 1e-3."""
    shape = Superquadric(1.0, 0.7, 0.5, *e)
    line = (np.arange(160) + 0.5) / 80.0 - 1.0
    x = np.stack(np.meshgrid(line, line, line, indexing="ij"), axis=-1).reshape(-1, 3)
    flat = np.abs(x[:, 0]) ** (2.0 / e[1]) + np.abs(x[:, 1]) ** (2.0 / e[1])
    inside = x[flat ** (e[1] / e[0]) + np.abs(x[:, 2]) ** (2.0 / e[0]) < 1.0] * shape.axes
    assert shape.volume == pytest.approx(8.0 * shape.axes.prod() * len(inside) / len(x), rel=5e-3)
    second = inside.T @ inside / len(inside)
    np.testing.assert_allclose(shape.inertia, np.trace(second) * np.eye(3) - second, atol=5e-3)


def test_with_exponents_1_it_is_the_ellipsoid():
    one, two = Superquadric(1.0, 0.7, 0.5, 1.0, 1.0), Ellipsoid(1.0, 0.7, 0.5)
    assert one.volume == pytest.approx(two.volume, rel=1e-15)
    np.testing.assert_allclose(one.inertia, two.inertia, atol=1e-15)
    assert Superquadric(1, 1, 1, 1, 1).round


@pytest.mark.parametrize("e", SOME)
def test_no_point_of_the_surface_is_beyond_the_support(e):
    shape = Superquadric(1.0, 0.7, 0.5, *e)
    corner, _ = shape.surface(subdivisions=5)
    n = random_turns(300, 2)[:, :3]
    n /= np.linalg.norm(n, axis=1)[:, None]
    far = (n @ corner.T).max(axis=1)
    assert (far <= shape.support(n) + 1e-12).all()
    assert (far > shape.support(n) - 0.03).all()
    part = shape.parts()
    assert np.linalg.norm(corner, axis=1).max() <= part.reach[0]


PARTNERS = {
    "sphere": Sphere(0.6),
    "ellipsoid": Ellipsoid(0.8, 0.5, 0.4),
    "polyhedron": Polyhedron.random(faces=12, seed=1, radius=0.8),
    "mesh": Mesh(*Polyhedron.random(faces=10, seed=2, radius=0.8).surface(), epsilon=0.02),
    "plane": Plane(),
    "rod": Cylinder(0.4, 1.2, inside=False),
    "endless rod": Cylinder(0.4, inside=False),
    "shell": Cylinder(2.0),
    "quad": clast.Quad([(-0.7, -0.5, 0), (0.7, -0.5, 0), (0.7, 0.5, 0), (-0.7, 0.5, 0)]),
}


@pytest.mark.parametrize("name", PARTNERS)
def test_contacts_are_those_of_the_ellipsoid_with_exponents_1(name):
    """Two roads: common normals and closed forms of ellipsoids, support functions here."""
    rng = np.random.default_rng(5)
    way = rng.normal(size=(60, 3))
    way *= (rng.uniform(0.9, 1.6, 60) / np.linalg.norm(way, axis=1))[:, None]
    if name == "plane":
        way[:, 2] = np.abs(way[:, 2])
    poses = (way, random_turns(60, 6)), (np.zeros((60, 3)), random_turns(60, 7) if name != "plane" else (1.0, 0, 0, 0))
    other = PARTNERS[name]
    one = clast.distance(Superquadric(0.9, 0.6, 0.5, 1.0, 1.0), poses[0], other, poses[1])
    two = clast.distance(Ellipsoid(0.9, 0.6, 0.5), poses[0], other, poses[1])
    # Of sheets that an ellipsoid is deep in, each road has its own way out.
    same = two.gap > (-0.02 if name in ("mesh", "quad") else -0.3)
    assert same.sum() > 20
    np.testing.assert_allclose(one.gap[same], two.gap[same], atol=1e-9)
    np.testing.assert_allclose(one.normal[same], two.normal[same], atol=1e-6)


def test_no_direction_is_a_shorter_way_out_of_a_triangle_than_the_one_told():
    """Of triangles deep inside, where each side of the superquadric may be the nearest, and of some that touch it or are apart."""
    random = np.random.default_rng(3)
    n = random.normal(size=(20_000, 3))
    n /= np.linalg.norm(n, axis=1)[:, None]
    for e in ((0.5, 0.7), (1.4, 0.3)):
        shape = Superquadric(0.5, 0.4, 0.3, *e)
        duals = (2.0 / (2.0 - e[0]), 2.0 / (2.0 - e[1]))
        reach = shape.support(n)
        for at in (0.0, 0.0, 0.0, 0.0, 0.0, 0.2, 0.2, 0.5, 0.8):
            corners = random.normal(scale=0.3, size=(3, 3)) + at
            told, way, _ = triangle_separation(
                *(tuple(map(float, x)) for x in corners), (0.5, 0.4, 0.3), duals, math.inf
            )
            assert ((corners @ n.T).min(0) - reach).max() <= told + 1e-9
            along = shape.support(np.array([way]))[0]
            assert told == pytest.approx((corners @ np.array(way)).min() - along, abs=1e-12)


@pytest.mark.parametrize("method", [clast.DEM(), clast.Complementarity()], ids=["dem", "hard"])
def test_a_superquadric_rests_on_a_floor_with_its_weight(method):
    scene = Scene()
    scene.add(Plane())
    scene.add(Superquadric(0.02, 0.015, 0.01, 0.8, 0.9), position=(0, 0, 0.0101))
    sim = Simulation(scene, method, dt="auto" if isinstance(method, clast.DEM) else 1e-3)
    sim.run(until=1.0)
    assert sim.bodies.force[1, 2] == pytest.approx(9.81 * sim.bodies.mass[1], rel=0.02)
    assert sim.bodies.position[1, 2] == pytest.approx(0.01, abs=2e-4)


def test_a_compound_has_superquadrics_and_the_mass_of_the_union(monkeypatch):
    monkeypatch.setattr(union, "LINES", 160)  # in place of 500: chords of superquadrics are searched for
    block = Superquadric(1.0, 1.0, 1.0, 0.3, 0.3)
    made = Compound([block, (block, (0.0, 0.0, 3.0), (0.5, 0.5, 0.5, 0.5))])
    assert made.volume == pytest.approx(2.0 * block.volume, rel=1e-14)
    assert Compound([block, block]).volume == pytest.approx(block.volume, rel=1e-4)


def test_scene_files_have_superquadrics(tmp_path):
    path = tmp_path / "pill.toml"
    text = (
        '[[bodies]]\nkind = "superquadric"\naxes = [0.02, 0.01, 0.01]\nexponents = [0.4, 0.7]\nposition = [0, 0, 1]\n'
    )
    path.write_text(text)
    np.testing.assert_array_equal(load(path).scene.parts.power, [[0.4, 0.7]])
    path.write_text(text.replace("0.4", "2.5"))
    with pytest.raises(clast.SceneError, match="e1 of a superquadric must be from 0.1 to 1.9, got 2.5"):
        load(path)


@pytest.mark.parametrize(
    ("numbers", "told"),
    [
        ((1, 1, 1, 0.05, 1), "e1 of a superquadric must be from 0.1"),
        ((1, 1, 0, 1, 1), "c of a superquadric must be finite"),
    ],
)
def test_what_makes_no_superquadric_is_told(numbers, told):
    with pytest.raises(ValueError, match=told):
        Superquadric(*numbers)


def test_pictures_and_files_tell_the_radius_of_the_ball_with_its_volume(tmp_path):
    shape, scene = Superquadric(0.03, 0.02, 0.01, 0.3, 0.5), Scene()
    scene.add(shape, scale=2.0)
    expected = 2.0 * (0.75 * shape.volume / np.pi) ** (1.0 / 3.0)
    assert Stage.of(scene, None).size == pytest.approx([expected], rel=1e-12)
    with Trajectory(tmp_path / "trajectory.h5", "w") as frames:
        frames.header(scene.describe()[0])
        frames.append(0.0, 0, scene.bodies)
    path = files.export(tmp_path / "trajectory.h5", tmp_path / "run.dump")
    assert files.load_spheres(path).radius == pytest.approx([expected], rel=1e-6)  # frames are in single precision

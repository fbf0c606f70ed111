"""Superquadrics: volume, inertia and support in closed form, and what they have in common with ellipsoids, balls and boxes."""

import math

import numpy as np
import pytest

import clast
from clast import Compound, Cylinder, Ellipsoid, Mesh, Plane, Polyhedron, Scene, Simulation, Sphere, Superquadric, files
from clast.files.trajectory import Trajectory
from clast.kernels.vec import rotation_matrices
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


def test_around_a_tube_that_ends_it_is_the_ellipsoid_with_exponents_1():
    """From inside, from outside, over the ends and over the rims; every pose has a gap."""
    rng = np.random.default_rng(6)
    place, turn, tube = rng.uniform(-0.15, 0.15, (400, 3)), random_turns(400, 8), Cylinder(0.05, 0.1)
    for size in ((0.02, 0.012, 0.008), (0.2, 0.1, 0.05), (0.08, 0.01, 0.01)):
        one = clast.distance(Superquadric(*size, 1.0, 1.0), (place, turn), tube, (0, 0, 0))
        two = clast.distance(Ellipsoid(*size), (place, turn), tube, (0, 0, 0))
        same = two.gap > -(size[2] ** 2) / size[0]
        assert same.sum() > 150
        np.testing.assert_allclose(one.gap[same], two.gap[same], atol=1e-9 * size[2])
        np.testing.assert_allclose(one.normal[same], two.normal[same], atol=1e-6)


def test_from_outside_a_tube_and_over_its_ends_a_ball_has_closed_forms():
    places = [(0.08, 0, 0), (0.05, 0, 0.0605), (0, 0, 0.2), (0.055, 0, 0.053), (0, 0, 0.03), (0.045, 0, 0.051)]
    found = clast.distance(Superquadric(0.01, 0.01, 0.01, 1.0, 1.0), places, Cylinder(0.05, 0.1), (0, 0, 0))
    from_rim = np.hypot(0.005, 0.003), np.hypot(0.005, 0.001)
    gaps = [0.02, 0.0005, np.hypot(0.05, 0.15) - 0.01, from_rim[0] - 0.01, 0.04, from_rim[1] - 0.01]
    np.testing.assert_allclose(found.gap, gaps, atol=1e-14)
    np.testing.assert_allclose(found.normal[:2], [(-1, 0, 0), (0, 0, -1)], atol=1e-12)


@pytest.mark.parametrize("e", [(0.4, 0.6), (0.2, 1.0), (1.5, 0.7)])
def test_the_gap_to_a_tube_that_ends_is_the_least_over_its_sheet(e):
    """Points of the sheet, by the distance of a tiny ball; next to the nearest of them the sheet is nearer by at most half their distance."""
    rng = np.random.default_rng(9)
    shape, tube = Superquadric(0.5, 0.3, 0.25, *e), Cylinder(1.0, 1.5)
    angle, up = (g.ravel() for g in np.meshgrid(np.linspace(0.0, 2.0 * np.pi, 121), np.linspace(-0.75, 0.75, 31)))
    sheet = np.stack([np.cos(angle), np.sin(angle), up], axis=1)
    place, turn = rng.uniform(-1.5, 1.5, (40, 3)), random_turns(40, 10)
    gap = clast.distance(shape, (place, turn), tube, (0, 0, 0)).gap
    for k in range(40):
        if gap[k] > 0.0:
            least = clast.distance(shape, (place[k], turn[k]), Sphere(1e-12), sheet).gap.min()
            assert least - 0.04 < gap[k] <= least + 1e-9
            if abs(least - gap[k]) > 1e-3:
                near = clast.distance(shape, (place[k], turn[k]), tube, (0, 0, 0))
                assert clast.distance(shape, (place[k], turn[k]), Sphere(1e-12), near.second).gap == pytest.approx(
                    gap[k], abs=1e-9
                )
    assert (gap > 0.0).sum() > 15


@pytest.mark.parametrize("e", [(1.0, 1.0), (0.5, 0.5), (1.3, 0.8)])
def test_past_the_rim_of_a_tube_the_gap_has_no_steps(e):
    rng, shape, tube = np.random.default_rng(4), Superquadric(0.3, 0.2, 0.1, *e), Cylinder(1.0, 1.0)
    step = 0.002
    for turn in random_turns(4, 11):
        reach = float(shape.support(rotation_matrices(turn[None])[0][:1])[0])
        for x in (1.0 - reach - 0.01, 1.0 + reach - 0.005):
            path = np.stack([np.full(400, x), np.zeros(400), rng.uniform(0.0, step) + step * np.arange(400)], axis=1)
            gap = clast.distance(shape, (path, turn), tube, (0, 0, 0)).gap
            assert (np.abs(np.diff(gap)) <= 1.001 * step).all()


def test_a_tablet_thrown_at_the_outside_of_a_tube_or_dropped_on_its_rim_is_thrown_back():
    stone = clast.Material(density=2500.0, young=1e7, friction=0.0, restitution=1.0)
    for place, way in (((0.08, 0.0, 0.01), (-0.5, 0.0, 0.0)), ((0.05, 0.0, 0.07), (0.0, 0.0, -0.5))):
        scene = Scene(gravity=(0, 0, 0))
        scene.add(Cylinder(0.05, 0.1), material=stone)
        body = scene.add(Superquadric(0.012, 0.012, 0.006, 0.5, 1.0), position=place, velocity=way, material=stone)[0]
        sim = Simulation(scene)
        sim.run(until=0.1, progress=False)
        assert sim.bodies.velocity[body] @ np.array(way) < -0.5 * 0.25
        assert (sim.bodies.position[body] - place) @ np.array(way) < 0.0  # it came back


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


@pytest.mark.parametrize("e", [(0.5, 0.7), (1.5, 0.3), (1.9, 1.9)])
def test_the_nearest_triangle_is_the_same_whether_all_are_measured_or_the_others_are_given_up(e):
    """Apart, touching and deep: within a finite margin all triangles are measured to the end."""
    rng, many = np.random.default_rng(8), 60
    rock, tablet = clast.Mesh.random(40, radius=0.4, seed=1), clast.Superquadric(0.5, 0.4, 0.3, *e)
    places = 20.0 * np.arange(many)[:, None] * (1.0, 0.0, 0.0)
    q = rng.normal(size=(many, 4))
    scene = clast.Scene()
    one = scene.add(tablet, position=places + rng.normal(scale=0.5, size=(many, 3)), orientation=q)
    two = scene.add(rock, position=places)
    pairs = np.stack([one, two], axis=1)
    nearest = clast.find_contacts(scene, pairs=pairs, margin=np.inf)
    every = clast.find_contacts(scene, pairs=pairs, margin=5.0)
    first = np.unique(every.pair[:, 0], return_index=True)[1]  # the deepest of each pair
    assert (nearest.gap < 0.0).sum() > 15 and (nearest.gap > 0.0).sum() > 15
    np.testing.assert_array_equal(nearest.gap, every.gap[first])
    np.testing.assert_array_equal(nearest.normal, every.normal[first])

"""Capsules: what they are in closed form, where they touch, how they roll and rest, and how they are drawn."""

import numpy as np
import pytest

import clast
from clast import Capsule, Compound, Ellipsoid, Material, Plane, Polyhedron, Quad, Scene, Simulation, Sphere
from clast.files import vtk
from clast.kernels.vec import rotation_matrices

ROD = Capsule(0.3, 1.1)
STONE = Material(density=2500.0, young=1e7, friction=0.5, restitution=0.5)
SMALL = Capsule(0.01, 0.03)
LYING = (np.sqrt(0.5), 0.0, np.sqrt(0.5), 0.0)  # its axis along x


def test_volume_and_inertia_are_those_of_its_slices():
    """Discs of radius r(z), each with moments r^2 / 4 across and r^2 / 2 along, summed by Gauss's rule over the tube and both caps."""
    x, w = np.polynomial.legendre.leggauss(40)
    volume, across, along = 0.0, 0.0, 0.0
    for low, high in ((-0.85, -0.55), (-0.55, 0.55), (0.55, 0.85)):
        z, weight = 0.5 * (high - low) * x + 0.5 * (high + low), 0.5 * (high - low) * w
        r2 = 0.09 - np.maximum(np.abs(z) - 0.55, 0.0) ** 2
        volume += (weight * np.pi * r2).sum()
        across += (weight * np.pi * r2 * (0.25 * r2 + z * z)).sum()
        along += (weight * np.pi * r2 * 0.5 * r2).sum()
    assert ROD.volume == pytest.approx(volume, rel=1e-13)
    np.testing.assert_allclose(ROD.inertia, np.diag([across, across, along]) / volume, rtol=1e-12, atol=1e-15)


def random_poses(count, seed, far):
    rng = np.random.default_rng(seed)
    q = rng.normal(size=(count, 4))
    return rng.uniform(-far, far, (count, 3)), q / np.linalg.norm(q, axis=1)[:, None]


def axis_ends(place, turn, length):
    way = 0.5 * length * rotation_matrices(turn)[:, :, 2]
    return place - way, place + way


def from_segment(p, a, b):
    """Distance of points p (n,3) from segments (n,3) to (n,3), and the nearest points."""
    u = b - a
    t = np.clip(((p - a) * u).sum(1) / (u * u).sum(1), 0.0, 1.0)
    x = a + t[:, None] * u
    return np.linalg.norm(p - x, axis=1), x


def test_gap_and_points_with_a_ball_are_in_closed_form():
    place, turn = random_poses(300, 1, 1.5)
    found = clast.distance(ROD, (place, turn), Sphere(0.2), (0.0, 0.0, 0.0))
    distance, x = from_segment(np.zeros((300, 3)), *axis_ends(place, turn, 1.1))
    np.testing.assert_allclose(found.gap, distance - 0.5, atol=1e-14)
    np.testing.assert_allclose(found.normal, -x / distance[:, None], atol=1e-9)
    np.testing.assert_allclose(found.second, 0.2 * x / distance[:, None], atol=1e-9)
    np.testing.assert_allclose(np.linalg.norm(found.first - x, axis=1), 0.3, atol=1e-12)  # on its own surface


def test_gap_of_two_is_the_distance_of_their_axes():
    """Alternating between the two segments comes to the nearest points: distance is convex; and both points are on the surfaces."""
    place, turn = random_poses(300, 2, 1.5)
    other, tilt = random_poses(300, 3, 0.5)
    found = clast.distance(ROD, (place, turn), Capsule(0.1, 0.7), (other, tilt))
    one, two = axis_ends(place, turn, 1.1), axis_ends(other, tilt, 0.7)
    x = place
    for _ in range(20000):
        _, y = from_segment(x, *two)
        distance, x = from_segment(y, *one)
    np.testing.assert_allclose(found.gap, distance - 0.4, atol=1e-8)
    apart = distance > 0.01
    np.testing.assert_allclose(from_segment(found.first, *one)[0][apart], 0.3, atol=1e-9)
    np.testing.assert_allclose(from_segment(found.second, *two)[0][apart], 0.1, atol=1e-9)


def test_two_whose_axes_cross_are_told_a_way_out():
    found = clast.distance(ROD, (0, 0, 0), ROD, ((0, 0, 0.1), LYING))
    assert found.gap[0] == pytest.approx(-0.6, abs=1e-8)
    assert np.linalg.norm(found.normal[0]) == pytest.approx(1.0) and np.isfinite(found.first).all()


def test_side_by_side_it_touches_along_its_length():
    """The ends of both rest on each other's side, not one point somewhere."""
    scene = Scene()
    scene.add(SMALL, position=(0, 0, 0))
    scene.add(SMALL, position=(0.0199, 0, 0.01))
    found = clast.find_contacts(scene)
    np.testing.assert_allclose(found.gap, -1e-4, atol=1e-15)
    assert found.point[:, 2].min() == pytest.approx(-0.005) and found.point[:, 2].max() == pytest.approx(0.015)


@pytest.mark.parametrize("hard", [False, True], ids=["dem", "hard"])
@pytest.mark.parametrize("floor", ["plane", "quad", "polyhedron"])
def test_it_rests_on_both_ends_and_rolls_as_it_must(floor, hard):
    """Across a slope it rests if its axis points down it; else it rolls, by g sin a / (1 + k^2 / r^2), k its radius of gyration."""
    side, angle = 0.2, np.radians(8.0)
    square = [(-side, -side, 0), (side, -side, 0), (side, side, 0), (-side, side, 0)]
    ground = {"plane": Plane(), "quad": Quad(square), "polyhedron": Polyhedron.box(0.4, 0.4, 0.1)}[floor]
    scene = Scene(gravity=(9.81 * np.sin(angle), 0.0, -9.81 * np.cos(angle)))
    scene.add(ground, position=(0, 0, -0.05 if floor == "polyhedron" else 0), motion="fixed", material=STONE)
    down = scene.add(SMALL, position=(-0.05, 0.1, 0.01), orientation=LYING, material=STONE)[0]
    across = scene.add(
        SMALL, position=(-0.05, -0.1, 0.01), orientation=(np.sqrt(0.5), np.sqrt(0.5), 0, 0), material=STONE
    )[0]
    method = clast.Complementarity(tolerance=1e-8, iterations=2000) if hard else clast.DEM()
    sim = Simulation(scene, method, dt=5e-4 if hard else "auto")
    sim.run(until=0.1, progress=False)
    early = sim.bodies.velocity[across, 0]
    sim.run(until=0.2, progress=False)
    bodies = sim.bodies
    weight = 9.81 * np.cos(angle) * bodies.mass[down]
    assert bodies.force[down, 2] == pytest.approx(weight, rel=2e-3)
    assert np.abs(bodies.velocity[down]).max() < 1e-4 and np.abs(bodies.spin[down]).max() < 0.02
    mine = sim.contacts()
    mine = (mine.pair == down).any(axis=1) & (mine.gap < 1e-6)
    assert mine.sum() == 2
    slower = 1.0 + SMALL.inertia[2, 2] / SMALL.radius**2
    assert bodies.velocity[across, 0] - early == pytest.approx(0.1 * 9.81 * np.sin(angle) / slower, rel=0.01)
    assert bodies.velocity[across, 0] == pytest.approx(SMALL.radius * bodies.spin[across, 1], rel=0.01)


@pytest.mark.parametrize("hard", [False, True], ids=["dem", "hard"])
def test_it_rebounds_with_the_restitution_of_its_material(hard):
    """Upright on its end and lying on its side."""
    scene = Scene(gravity=(0, 0, 0))
    scene.add(Plane(), material=STONE)
    scene.add(SMALL, position=(0, 0, 0.0251), velocity=(0, 0, -0.5), material=STONE)
    scene.add(SMALL, position=(0.1, 0, 0.0101), orientation=LYING, velocity=(0, 0, -0.5), material=STONE)
    method = clast.Complementarity(tolerance=1e-6, iterations=2000) if hard else clast.DEM()
    sim = Simulation(scene, method, dt=1e-4 if hard else "auto")
    sim.run(until=0.01, progress=False)
    np.testing.assert_allclose(sim.bodies.velocity[1:, 2] / 0.5, 0.5, atol=0.01)


def test_surface_is_closed_and_on_it():
    vertices, triangles = ROD.surface()
    a, b = np.array([[0.0, 0.0, -0.55]]), np.array([[0.0, 0.0, 0.55]])
    np.testing.assert_allclose(from_segment(vertices, a, b)[0], 0.3, atol=1e-12)
    skin = clast.Mesh(vertices, triangles)  # refuses what is open or inside out
    assert skin.volume == pytest.approx(ROD.volume, rel=0.01)
    np.testing.assert_allclose(ROD.bounds(), [[-0.3, -0.3, -0.85], [0.3, 0.3, 0.85]], atol=1e-12)


def test_pictures_show_its_skin_among_those_of_meshes(tmp_path):
    """Not the triangles without area that it is measured by; saved and taken up again it is the same."""
    scene = Scene()
    scene.add(clast.Mesh(*Polyhedron.box(1, 1, 1).surface()), position=(5, 0, 0))
    scene.add(ROD, position=(0, 0, 1), scale=2.0, orientation=LYING)
    told = vtk.particles(scene.bodies, scene.molds, scene.parts, scene.hulls, scene.surfaces)
    drawn = vtk.skins(told.centre, told.orientation, scene.bodies.scale, told.surface, scene.surfaces)
    mine = drawn.vertices[drawn.loop[np.repeat(drawn.owner == 1, 3)]]
    np.testing.assert_allclose([mine.min(axis=0), mine.max(axis=0)], [[-1.7, -0.6, 0.4], [1.7, 0.6, 1.6]], atol=1e-9)
    assert (drawn.owner == 0).sum() == 12
    sim = Simulation(scene, clast.DEM())
    sim.step(5)
    sim.save(tmp_path / "one.h5")
    np.testing.assert_array_equal(clast.resume(tmp_path / "one.h5").bodies.position, sim.bodies.position)


def test_filling_places_them_closer_than_the_balls_around_them():
    scene = Scene()
    scene.fill(SMALL, count=28, box=((0, 0, 0), (0.12, 0.12, 0.12)), seed=1)
    assert clast.find_contacts(scene).gap.min(initial=0.0) >= 0.0
    around = 4.0 / 3.0 * np.pi * 0.025**3
    assert 28 * around > 0.12**3  # as balls there is no room for them


@pytest.mark.parametrize(("radius", "length"), [(0.0, 1.0), (1.0, -1.0), ("x", 1.0), (1.0, np.inf)])
def test_wrong_sizes_are_refused(radius, length):
    with pytest.raises((ValueError, TypeError), match="of a capsule must be"):
        Capsule(radius, length)


def test_deep_in_an_ellipsoid_or_rock_it_still_has_numbers():
    place, turn = random_poses(400, 5, 1.0)
    for other in (Ellipsoid(1.0, 0.6, 0.4), Polyhedron.random(faces=14, seed=3, radius=0.9), ROD):
        found = clast.distance(ROD, (place, turn), other, (0.0, 0.0, 0.0))
        assert all(np.isfinite(column).all() for column in found[:4])
        np.testing.assert_allclose(np.linalg.norm(found.normal, axis=1), 1.0, atol=1e-9)


TILTED = np.array([0.8, 0.3, -0.4, 0.33]) / np.linalg.norm([0.8, 0.3, -0.4, 0.33])


def test_two_in_one_line_are_a_longer_one():
    """What overlaps is measured along lines, of which a capsule tells where they are inside."""
    axis = rotation_matrices(TILTED[None])[0][:, 2]
    made = Compound([(Capsule(0.3, 1.0), -0.2 * axis, TILTED), (Capsule(0.3, 1.0), 0.2 * axis, TILTED)])
    whole, overlap = Capsule(0.3, 1.4), Capsule(0.3, 0.6).volume
    assert made.volume == pytest.approx(whole.volume, abs=1e-4 * overlap)
    turn = rotation_matrices(TILTED[None])[0]
    np.testing.assert_allclose(made.inertia, turn @ whole.inertia @ turn.T, atol=1e-4)
    np.testing.assert_allclose(made.origin, 0.0, atol=1e-4)


@pytest.mark.parametrize("way", [(0.0, 0.0, 1.0), (1.0, 0.0, 0.0), (0.48, 0.6, 0.64)])
def test_lines_are_inside_where_their_points_are(way):
    start, t = np.random.default_rng(3).uniform(-1.0, 1.0, (60, 3)), np.linspace(-2.5, 2.5, 2001)
    low, high = ROD.chords(start, np.array(way))
    x = start[:, None] + t[None, :, None] * np.array(way)
    inside = np.hypot(np.hypot(x[..., 0], x[..., 1]), np.maximum(np.abs(x[..., 2]) - 0.55, 0.0)) < 0.3
    told = (t > low[:, None]) & (t < high[:, None])
    near = np.minimum(np.abs(t - low[:, None]), np.abs(t - high[:, None])) < 1e-9
    assert inside.any() and not (told != inside)[~near].any()


@pytest.mark.parametrize(
    "other", [Sphere(0.2), Polyhedron.box(0.5, 0.6, 0.4), ROD, Plane()], ids=["sphere", "box", "capsule", "plane"]
)
def test_a_part_of_a_compound_is_where_it_would_be_by_itself(other):
    """A stick with a knob: the gap is the least of its parts', each as a body of its own."""
    made = Compound([(ROD, (0.2, -0.1, 0.3), TILTED), (Sphere(0.4), (0.1, 0.5, -0.6))])
    x, q = random_poses(40, 2, 1.2)
    found, least = clast.distance(made, (x, q), other, (0.0, 0.0, 0.0)), np.full(len(x), np.inf)
    for shape, offset, turn in made.pieces:
        place = x + np.einsum("nij,j->ni", rotation_matrices(q), offset)
        both = vtk.part_orientation(q, {"turn": turn[None]}, np.zeros(len(x), int))
        least = np.minimum(least, clast.distance(shape, (place, both), other, (0.0, 0.0, 0.0)).gap)
    np.testing.assert_allclose(found.gap, least, atol=1e-12)


@pytest.mark.parametrize("method", [clast.DEM(), clast.Complementarity()], ids=["dem", "hard"])
def test_alone_in_a_compound_it_falls_and_rolls_as_by_itself(method):
    ends = []
    for shape, turn in ((SMALL, LYING), (Compound([(SMALL, (0.0, 0.0, 0.0), LYING)]), (1.0, 0.0, 0.0, 0.0))):
        scene = Scene(gravity=(0.0, 0.0, -9.81))
        scene.add(Plane(), material=STONE)
        scene.add(shape, position=(0.0, 0.0, 0.012), orientation=turn, velocity=(0.05, 0.2, 0.0), material=STONE)
        sim = Simulation(scene, method, dt=1e-5 if isinstance(method, clast.DEM) else 1e-3)
        sim.run(until=0.05, progress=False)
        bodies = sim.scene.bodies
        ends.append(np.concatenate([bodies.position[1], bodies.velocity[1], bodies.spin[1]]))
    assert np.abs(ends[0][6:]).max() > 1.0
    np.testing.assert_allclose(ends[1], ends[0], atol=1e-9)


def test_a_tilted_part_is_drawn_tilted(tmp_path):
    made = Compound([(ROD, (0.2, -0.1, 0.3), TILTED), (Sphere(0.4), (0.1, 0.5, -0.6))])
    scene = Scene()
    scene.add(made, orientation=LYING)
    clast.save(tmp_path / "stick.vtp", scene)
    skin = vtk.skins(np.zeros((1, 3)), np.array([LYING]), np.ones(1), [0], scene.surfaces).vertices
    axis = rotation_matrices(np.array([LYING]))[0] @ rotation_matrices(TILTED[None])[0][:, 2]
    distance, _ = from_segment(skin, *np.broadcast_arrays(skin * 0.0 - 0.55 * axis, skin * 0.0 + 0.55 * axis)[:2])
    np.testing.assert_allclose(distance, 0.3, atol=1e-12)


def test_on_the_axis_of_a_tube_it_is_as_far_from_the_rim_or_the_wall_as_anywhere_beside():
    """Exactly there no side of the tube is the nearest; without a direction the distance had been that along the axis, or less than nothing."""
    heights = (0.2, 0.05, 0.03, -0.2)
    places = [(0.0, 0.0, z) for z in heights]
    found = clast.distance(clast.Capsule(0.01, 1e-6), places, clast.Cylinder(0.05, 0.1), (0, 0, 0))
    past = [max(abs(z) - 0.5e-6 - 0.05, 0.0) for z in heights]
    np.testing.assert_allclose(found.gap, np.hypot(0.05, past) - 0.01, atol=1e-12)
    np.testing.assert_allclose(np.linalg.norm(found.normal, axis=1), 1.0, atol=1e-12)
    endless = clast.distance(clast.Capsule(0.01, 0.02), (0, 0, 0), clast.Cylinder(0.05), (0, 0, 0))
    assert endless.gap[0] == pytest.approx(0.04)
    assert np.linalg.norm(endless.normal[0]) == pytest.approx(1.0)

"""Sphere centres against walls: closed forms, triangulated planes, folds and corners, and brute force on meshes."""

import math
from pathlib import Path

import numpy as np
import pytest
from scipy.spatial import Delaunay
from scipy.spatial.transform import Rotation

import clast
from clast.kernels.backend import func
from clast.narrow.sphere_walls import sphere_cylinder, sphere_plane, sphere_triangle
from clast.scenefile import load
from clast.shapes import MeshWall, Quad, load_mesh

MESHES = Path(__file__).resolve().parents[2].parent / "shared" / "data" / "meshes"


@func
def scan(centres, meshes, count, row, distance, normal, feature):
    """All contacts of each centre with all triangles: how many, and the last one found (or rows from `row`)."""
    found = 0
    for i in range(len(centres)):
        c = (centres[i, 0], centres[i, 1], centres[i, 2])
        for t in range(len(meshes.triangle)):
            status, d, n, f = sphere_triangle(c, meshes, t)
            if status:
                count[i] += 1
                if found < len(row):
                    row[found] = i
                    distance[found] = d
                    normal[found, 0] = n[0]
                    normal[found, 1] = n[1]
                    normal[found, 2] = n[2]
                    feature[found] = f
                found += 1
    return found


def contacts(wall, centres):
    """Count per centre, and for all contacts: row of the centre, distance, normal, feature."""
    centres = np.ascontiguousarray(centres, dtype=float)
    count = np.zeros(len(centres), np.int64)
    room = 20 * len(centres) + 20
    row, distance = np.zeros(room, np.int64), np.zeros(room)
    normal, feature = np.zeros((room, 3)), np.zeros(room, np.int64)
    found = scan(centres, wall.mesh, count, row, distance, normal, feature)
    assert found <= room
    return count, row[:found], distance[:found], normal[:found], feature[:found]


def closest_points(c, corners):
    """The point of each triangle (t,3,3) nearest to c, by trying its plane, its sides and its corners."""
    candidates = [corners[:, k] for k in range(3)]
    for k in range(3):
        a, b = corners[:, k], corners[:, (k + 1) % 3]
        u = np.einsum("tx,tx->t", c - a, b - a) / np.einsum("tx,tx->t", b - a, b - a)
        candidates.append(a + np.clip(u, 0, 1)[:, None] * (b - a))
    a = corners[:, 0]
    e, f = corners[:, 1] - a, corners[:, 2] - a
    gram = np.stack([np.stack([(e * e).sum(1), (e * f).sum(1)], 1), np.stack([(e * f).sum(1), (f * f).sum(1)], 1)], 1)
    right = np.stack([((c - a) * e).sum(1), ((c - a) * f).sum(1)], 1)
    u, v = np.linalg.solve(gram, right[..., None])[..., 0].T
    inside = (u >= 0) & (v >= 0) & (u + v <= 1)
    candidates.append(np.where(inside[:, None], a + u[:, None] * e + v[:, None] * f, corners[:, 0]))
    candidates = np.stack(candidates, 1)
    best = np.argmin(np.linalg.norm(candidates - c, axis=2), axis=1)
    return candidates[np.arange(len(corners)), best]


def local_minima(c, corners, tolerance):
    """Points of the union of triangles where the distance to c has a local minimum, without any topology.

    A point is one if it is the nearest point of every triangle that contains it.
    """
    points = closest_points(c, corners)
    kept = []
    for x in points:
        containing = np.linalg.norm(closest_points(x, corners) - x, axis=1) < tolerance
        if (np.linalg.norm(points[containing] - x, axis=1) < tolerance).all():
            if not any(np.linalg.norm(x - y) < tolerance for y in kept):
                kept.append(x)
    return np.array(kept)


def assert_same_minima(wall, centres, tolerance=1e-8):
    _, row, distance, normal, _ = contacts(wall, centres)
    corners = wall.vertices[wall.triangles]
    for i, c in enumerate(centres):
        points = c + distance[row == i, None] * normal[row == i]
        expected = local_minima(c, corners, tolerance)
        assert len(points) == len(expected), f"centre {c}: found {points}, expected {expected}"
        gap = np.linalg.norm(points[:, None] - expected[None], axis=2)
        assert gap.min(axis=1).max() < tolerance and gap.min(axis=0).max() < tolerance


# Planes and cylinders.


def test_plane_distance_is_signed_and_points_into_the_matter():
    n = np.array([1.0, 2.0, -2.0]) / 3.0
    for height in (2.0, 0.0, -0.5):
        status, distance, normal, feature = sphere_plane(tuple(height * n + np.array([2.0, -1.0, 0.0])), tuple(n))
        assert (status, feature) == (1, 0)
        assert distance == pytest.approx(height, abs=1e-15)
        np.testing.assert_allclose(normal, -n)


def cylinder_points(axis, rho, angle, z):
    a = np.cross(axis, [0.3, 0.5, -0.8])
    a /= np.linalg.norm(a)
    return rho * (np.cos(angle) * a + np.sin(angle) * np.cross(axis, a)) + z * np.asarray(axis)


@pytest.mark.parametrize("axis", [(0.0, 0.0, 1.0), (1.0, 0.0, 0.0), (2 / 3, -1 / 3, 2 / 3)])
def test_cylinder_distance_reaches_the_surface_along_the_normal(axis):
    radius, half = 1.0, 0.75
    rng = np.random.default_rng(5)
    for _ in range(500):
        rho, z = rng.uniform(0, 2), rng.uniform(-2, 2)
        c = cylinder_points(axis, rho, rng.uniform(0, 6.3), z)
        for half_length in (half, np.inf):
            for sense in (1.0, -1.0):
                status, d, n, feature = sphere_cylinder(tuple(c), axis, radius, half_length, sense)
                assert (status, feature) == (1, 0)
                assert np.linalg.norm(n) == pytest.approx(1.0, abs=1e-14)
                end = c + d * np.asarray(n)
                end_z = end @ axis
                end_rho = np.linalg.norm(end - end_z * np.asarray(axis))
                past = max(abs(z) - half_length, 0.0)
                if sense > 0:
                    assert end_rho == pytest.approx(radius, abs=1e-13) and abs(end_z) <= half_length + 1e-13
                    expected = radius - rho if half_length == np.inf else np.hypot(radius - rho, past)
                else:
                    on_mantle = abs(end_rho - radius) < 1e-13 and abs(end_z) <= half_length + 1e-13
                    on_end = abs(abs(end_z) - half_length) < 1e-13 and end_rho <= radius + 1e-13
                    assert on_mantle or on_end
                    inside = rho < radius and abs(z) < half_length
                    expected = np.hypot(max(rho - radius, 0), past)
                    expected = -min(radius - rho, half_length - abs(z)) if inside else expected
                assert d == pytest.approx(expected, abs=1e-13)


@pytest.mark.parametrize("axis", [(0.0, 0.0, 1.0), (0.0, 1.0, 0.0), (1.0, 0.0, 0.0)])
def test_cylinder_on_its_axis_and_on_its_surface_has_a_unit_normal(axis):
    for rho, z in [(0.0, 0.0), (0.0, 0.1), (1.0, 0.0), (1.0, 0.5), (0.5, 0.5)]:
        for half, sense in [(np.inf, 1.0), (0.5, 1.0), (np.inf, -1.0), (0.5, -1.0)]:
            c = rho * np.roll(axis, 1) + z * np.asarray(axis)
            _, d, n, _ = sphere_cylinder(tuple(c), axis, 1.0, half, sense)
            assert np.isfinite(d)
            assert np.linalg.norm(n) == pytest.approx(1.0, abs=1e-14)


def test_solid_cylinder_pushes_outward_on_both_sides_of_its_surface():
    for rho in (0.999, 1.001):
        _, _, n, _ = sphere_cylinder((rho, 0.0, 0.0), (0.0, 0.0, 1.0), 1.0, 5.0, -1.0)
        np.testing.assert_allclose(n, (-1.0, 0.0, 0.0))
    for z in (0.499, 0.501):
        _, _, n, _ = sphere_cylinder((0.2, 0.0, -z), (0.0, 0.0, 1.0), 1.0, 0.5, -1.0)
        np.testing.assert_allclose(n, (0.0, 0.0, 1.0))


# Triangulated planes.


def grid(n, seed=None):
    """A square [0,1]^2 of 2 n^2 triangles, with random diagonals and windings if a seed is given."""
    rng = np.random.default_rng(seed)
    x = np.linspace(0, 1, n + 1)
    points = np.stack(np.meshgrid(x, x, indexing="ij"), -1).reshape(-1, 2)
    triangles = []
    for i in range(n):
        for j in range(n):
            a, b, c, d = i * (n + 1) + j, (i + 1) * (n + 1) + j, (i + 1) * (n + 1) + j + 1, i * (n + 1) + j + 1
            first = seed is None or rng.random() < 0.5
            pair = [[a, b, c], [a, c, d]] if first else [[a, b, d], [b, c, d]]
            triangles += [t[::-1] if seed is not None and rng.random() < 0.5 else t for t in pair]
    return points, np.array(triangles)


def delaunay(kind):
    rng = np.random.default_rng(7)
    inner = rng.random((60, 2)) if kind == "random" else np.stack([rng.random(60), 0.5 + 1e-4 * rng.random(60)], 1)
    points = np.vstack([inner, [[0, 0], [1, 0], [1, 1], [0, 1]]])
    return points, Delaunay(points).simplices


FLAT = {
    "regular": lambda: grid(6),
    "mixed windings": lambda: grid(6, seed=1),
    "random": lambda: delaunay("random"),
    "slivers": lambda: delaunay("slivers"),
}
TURNS = {
    "level": Rotation.identity(),
    "tilted": Rotation.from_rotvec([0.3, -0.7, 0.4]),
    "upright": Rotation.from_rotvec([np.pi / 2, 0, 0]),
}


def over_plane(points, triangles, seed):
    """Places over the inside of the square: anywhere, on edges, on vertices, and a rounding error away from them."""
    rng = np.random.default_rng(seed)
    ends = points[triangles[:, [0, 1, 1, 2, 2, 0]].reshape(-1, 2)]
    u = rng.random((len(ends), 1))
    on_edges = np.vstack([ends[:, 0] + u * (ends[:, 1] - ends[:, 0]), ends.mean(axis=1)])
    exact = np.vstack([on_edges, np.repeat(points, 5, axis=0)])
    close = [exact + size * rng.normal(size=exact.shape) for size in (1e-17, 1e-16, 1e-13, 1e-11, 1e-10, 1e-9, 1e-6)]
    places = np.vstack([rng.random((3000, 2)), exact, *close])
    return places[((places > 1e-3) & (places < 1 - 1e-3)).all(axis=1)]


@pytest.mark.parametrize("turn", TURNS)
@pytest.mark.parametrize("kind", FLAT)
def test_triangulated_plane_gives_exactly_one_contact_like_a_plane(kind, turn):
    points, triangles = FLAT[kind]()
    turn = TURNS[turn]
    wall = MeshWall(turn.apply(np.column_stack([points, np.zeros(len(points))])), triangles)
    places = over_plane(points, triangles, seed=2)
    rng = np.random.default_rng(3)
    for height in (0.05, -0.05, 1.0, rng.uniform(0.001, 0.3, len(places))):
        z = np.broadcast_to(height, len(places))
        count, _, distance, normal, _ = contacts(wall, turn.apply(np.column_stack([places, z])))
        assert (count == 1).all(), (np.bincount(count), places[count != 1][:3])
        np.testing.assert_allclose(distance, np.abs(z), rtol=0, atol=1e-12)
        down = turn.apply([0.0, 0.0, -1.0])
        np.testing.assert_allclose(normal, np.sign(z)[:, None] * down, rtol=0, atol=1e-6 if kind == "slivers" else 1e-7)


def test_plane_with_single_precision_vertices_gives_one_contact_almost_everywhere():
    points, triangles = grid(10, seed=4)
    turn = TURNS["tilted"]
    vertices = turn.apply(np.column_stack([points, np.zeros(len(points))])).astype(np.float32)
    wall = MeshWall(vertices, triangles)
    # Straight over the folds, where two of the slightly different planes meet.
    places = over_plane(points, triangles, seed=5)
    z = np.full(len(places), 0.05)
    count, _, distance, _, _ = contacts(wall, turn.apply(np.column_stack([places, z])))
    assert count.min() == 1
    at_vertex = np.linalg.norm(places[:, None] - points[None], axis=2).min(axis=1) < 1e-6
    assert (count[~at_vertex] == 1).all()
    np.testing.assert_allclose(distance, 0.05, atol=2e-7)


def test_boundary_of_a_plane_is_felt_around_its_rim_and_corners():
    points, triangles = grid(4, seed=1)
    wall = MeshWall(np.column_stack([points, np.zeros(len(points))]), triangles)
    rng = np.random.default_rng(6)
    x = rng.uniform(-0.5, 1.5, (4000, 3))
    exact = np.array([[0, 0, 0.3], [1, 1, 0.3], [0, 0.25, 0.3], [-0.2, 0.25, 0.1], [1, 0.3, 0.1], [1.2, 1.2, 0.0]])
    x = np.vstack([x, exact, exact + 1e-16, exact - 1e-13, exact + 1e-11])
    count, _, distance, normal, _ = contacts(wall, x)
    nearest = np.column_stack([np.clip(x[:, :2], 0, 1), np.zeros(len(x))])
    assert (count == 1).all()
    np.testing.assert_allclose(x + distance[:, None] * normal, nearest, atol=1e-9)


# Folds and corners.


def fold(angle):
    """Two squares that meet along y at z = 0, each falling by `angle` (rising if negative), cut into triangles."""
    c, s = np.cos(angle), -np.sin(angle)
    vertices = [[-c, 0, s], [-c, 1, s], [0, 0, 0], [0, 1, 0], [c, 0, s], [c, 1, s]]
    return MeshWall(vertices, [[0, 2, 3], [0, 3, 1], [2, 4, 5], [5, 3, 2]])


def test_ridge_gives_exactly_one_contact():
    wall = fold(np.pi / 6)
    rng = np.random.default_rng(8)
    x = np.column_stack([rng.uniform(-0.3, 0.3, 2000), rng.uniform(0.1, 0.9, 2000), rng.uniform(0.3, 0.6, 2000)])
    x[::4, 0] = 0.0
    count, _, distance, _, feature = contacts(wall, x)
    assert (count == 1).all()
    on_ridge = np.abs(x[:, 0]) < np.tan(np.pi / 6) * x[:, 2]
    assert ((feature >= 1) & (feature <= 3))[on_ridge].all()
    np.testing.assert_allclose(distance[on_ridge], np.hypot(x[:, 0], x[:, 2])[on_ridge], atol=1e-14)


def test_valley_gives_two_faces():
    wall = fold(-np.pi / 4)
    rng = np.random.default_rng(9)
    x = np.column_stack([rng.uniform(-0.1, 0.1, 500), rng.uniform(0.1, 0.9, 500), rng.uniform(0.2, 0.5, 500)])
    x[::4, 0] = 0.0
    count, row, distance, normal, feature = contacts(wall, x)
    assert (count == 2).all() and (feature == 0).all()
    side = np.sign(normal[:, 0])
    np.testing.assert_allclose(distance, (x[row, 2] - side * x[row, 0]) / np.sqrt(2), atol=1e-14)
    # From below the same fold is a ridge.
    below = x * [1, 1, -1]
    assert (contacts(wall, below)[0] == 1).all()


@pytest.mark.parametrize("angle", [4e-4, 1e-5, 1e-8, -4e-4, -1e-5, -1e-8])
def test_nearly_flat_folds_count_as_one_surface_with_continuous_distance(angle):
    wall = fold(angle)
    x = np.column_stack([np.linspace(-1.5, 1.5, 4001) * abs(angle), np.full(4001, 0.37), np.ones(4001)])
    count, _, distance, _, _ = contacts(wall, x)
    assert (count == 1).all()
    assert np.abs(np.diff(distance)).max() <= 2.0 * abs(angle) * (x[1, 0] - x[0, 0]) + 1e-15


def cube():
    corner = np.array([[i, j, k] for i in (0, 1) for j in (0, 1) for k in (0, 1)], dtype=float)
    quads = [[0, 1, 3, 2], [4, 6, 7, 5], [0, 4, 5, 1], [2, 3, 7, 6], [0, 2, 6, 4], [1, 5, 7, 3]]
    return MeshWall(corner, [t for a, b, c, d in quads for t in ([a, b, c], [a, c, d])])


def pyramid():
    base = [[1, 0, 0], [0, 1, 0], [-1, 0, 0], [0, -1, 0]]
    return MeshWall([*base, [0, 0, 0.7]], [[0, 1, 4], [1, 2, 4], [4, 2, 3], [3, 0, 4]])


def test_top_of_a_pyramid_gives_one_contact_at_the_vertex():
    rng = np.random.default_rng(10)
    x = np.vstack([[[0, 0, 1.2]], [[0, 0, 0.75]], [[0, 0, 0.7]], rng.normal(size=(300, 3)) * 0.05 + [0, 0, 1.2]])
    count, _, distance, _, feature = contacts(pyramid(), x)
    assert (count == 1).all() and (feature >= 4).all()
    np.testing.assert_allclose(distance, np.linalg.norm(x - [0, 0, 0.7], axis=1), atol=1e-15)


def test_cube_gives_one_contact_from_outside_and_six_from_inside():
    rng = np.random.default_rng(11)
    x = rng.uniform(-1, 2, (5000, 3))
    # Straight over faces, diagonals, edges and corners, where decisions are equal.
    special = rng.choice([-0.5, 0.0, 0.5, 1.0, 1.5], (2000, 3))
    x = np.vstack([x, special])
    inside = ((x > 0) & (x < 1)).all(axis=1)
    surface = ((x >= 0) & (x <= 1)).all(axis=1) & ~inside
    count, row, distance, _, _ = contacts(cube(), x)
    assert (count[inside] == 6).all()
    # From outside a far face is a local minimum too, but it is farther by the thickness of the cube.
    outside = np.linalg.norm(x - np.clip(x, 0, 1), axis=1)
    near = distance < outside[row] + 0.3
    assert (np.bincount(row[near], minlength=len(x))[~inside & ~surface] == 1).all()
    keep = near & ~inside[row]
    np.testing.assert_allclose(distance[keep & ~surface[row]], outside[row][keep & ~surface[row]], atol=1e-14)
    assert (np.bincount(row[distance == 0.0], minlength=len(x))[surface] == 1).all()


@pytest.mark.parametrize("shape", [cube, pyramid, lambda: fold(0.9), lambda: fold(-0.9)])
def test_contacts_are_the_local_minima_of_the_distance(shape):
    rng = np.random.default_rng(12)
    assert_same_minima(shape(), rng.uniform(-1.5, 1.5, (200, 3)))


def test_contacts_are_the_local_minima_where_three_walls_share_an_edge():
    vertices = [[0, 0, 0], [0, 1, 0], [1, 0.5, 0], [-1, 0.5, 0.2], [0, 0.4, 1], [0.1, 0.5, -1]]
    wall = MeshWall(vertices, [[0, 1, 2], [1, 0, 3], [0, 1, 4], [0, 1, 5], [2, 4, 5]])
    assert_same_minima(wall, np.random.default_rng(13).uniform(-1, 1, (300, 3)))


@pytest.mark.skipif(not MESHES.exists(), reason="no reference data")
@pytest.mark.parametrize(
    "name",
    [
        "mujoco/cube_cup.obj",
        "parry_tests/stairs.obj",
        "chrono_rocks/curiosity_rock1.obj",
        "mercury_stl/RotatingDrum.stl",
    ],
)
def test_contacts_are_the_local_minima_on_meshes_from_files(name):
    check_minima_of_file(MESHES / name)


@pytest.mark.parametrize("name", ["cup.obj", "stairs.obj", "flange.stl", "torus.obj", "two_boxes_and_one_edge.stl"])
def test_contacts_are_the_local_minima_on_own_meshes(name, own_data):
    check_minima_of_file(own_data / "meshes" / name)


def check_minima_of_file(path):
    wall = load_mesh(path)
    low, high = wall.vertices.min(axis=0), wall.vertices.max(axis=0)
    rng = np.random.default_rng(14)
    centres = rng.uniform(low - 0.2 * (high - low), high + 0.2 * (high - low), (40, 3))
    assert_same_minima(wall, centres, tolerance=1e-7 * np.ptp(wall.vertices, axis=0).max())


def test_winding_and_order_of_triangles_change_nothing():
    wall = pyramid()
    rng = np.random.default_rng(15)
    x = rng.uniform(-1, 1, (300, 3))
    order = rng.permutation(len(wall.triangles))
    turned = np.array([wall.triangles[t][:: rng.choice([1, -1])] for t in order])
    one, two = contacts(wall, x), contacts(MeshWall(wall.vertices, turned), x)
    np.testing.assert_array_equal(one[0], two[0])
    for i in range(len(x)):
        a = x[i] + one[2][one[1] == i, None] * one[3][one[1] == i]
        b = x[i] + two[2][two[1] == i, None] * two[3][two[1] == i]
        np.testing.assert_allclose(np.sort(a, axis=0), np.sort(b, axis=0), atol=1e-14)


def test_quad_is_felt_from_both_sides_and_once_over_its_diagonal():
    wall = Quad([[0, 0, 0], [2, 0, 0], [2, 1, 0], [0, 1, 0]])
    u = np.linspace(0.05, 0.95, 37)
    x = np.column_stack([2 * u, u, np.where(np.arange(37) % 2, 0.25, -0.25)])
    count, _, distance, normal, _ = contacts(wall, x)
    assert (count == 1).all()
    np.testing.assert_allclose(distance, 0.25, atol=1e-15)
    np.testing.assert_allclose(normal[:, 2], -np.sign(x[:, 2]), atol=1e-15)


@pytest.mark.parametrize("turn", [0, 1, 2])
def test_centre_on_the_wall_has_a_unit_normal(turn):
    x = np.array([[0.3, 0.2, 0.0], [0.0, 0.5, 0.0], [0.0, 0.0, 0.0], [0.5, 0.5, 0.0]])
    wall = Quad(np.roll([[0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0]], turn, axis=1))
    count, _, distance, normal, _ = contacts(wall, np.roll(x, turn, axis=1))
    assert (count == 1).all()
    assert (distance == 0.0).all()
    np.testing.assert_allclose(np.linalg.norm(normal, axis=1), 1.0)


def test_pair_functions_also_run_as_plain_python():
    assert getattr(sphere_plane, "py_func", sphere_plane)((0.0, 0.0, 2.0), (0.0, 0.0, 1.0))[1] == 2.0
    plain = getattr(sphere_triangle, "py_func", sphere_triangle)
    assert plain((0.2, 0.1, 0.5), Quad([[0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0]]).mesh, 0)[:2] == (1, 0.5)


def test_a_cone_holds_a_sphere_at_the_distance_of_its_side():
    """In the middle of a facet to rounding, at its edges by what facets are outside of the cone; and a scene file has it."""
    cone = clast.Cone(1.0, 0.2, 1.0)
    slope = math.atan(0.8)
    z, r = 0.5, 0.45
    wanted = (0.2 + 0.8 * z - r) * math.cos(slope) - 0.05
    for k, off in ((0.5, 1e-12), (3.5, 1e-12), (2.0, 5.4e-4)):
        angle = 2.0 * math.pi * k / 96
        place = (r * math.cos(angle), r * math.sin(angle), z)
        found = clast.distance(clast.Sphere(0.05), place, cone, (0.0, 0.0, 0.0))
        assert wanted - 1e-12 <= found.gap[0] <= wanted + off
        x, y = found.normal[0, :2] @ [[math.cos(angle), -math.sin(angle)], [math.sin(angle), math.cos(angle)]]
        assert (x, y) == pytest.approx((math.cos(slope), 0.0), abs=1e-6 if off < 1e-6 else 0.04)
    assert len(clast.Cone(1.0, 0.0, 1.0, axis=(0, 1, 0), segments=8).triangles) == 8
    with pytest.raises(ValueError, match="a cone needs finite radius"):
        clast.Cone(1.0, -0.2, 1.0)


def test_a_scene_file_has_cones(tmp_path):
    path = tmp_path / "hopper.toml"
    path.write_text(
        '[[walls]]\nkind = "cone"\nradius = 0.1\noutlet = 0.02\nheight = 0.1\nsegments = 12\n[[bodies]]\nposition = [0, 0, 1]\nradius = 0.01\n'
    )
    assert len(load(path).scene.meshes.triangle) == 24

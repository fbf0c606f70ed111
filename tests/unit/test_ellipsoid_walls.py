"""Ellipsoids against planes and triangles: closed forms, spheres, flat meshes, and minimisation over whole meshes."""

import numpy as np
import pytest
from scipy.spatial import ConvexHull, Delaunay
from scipy.spatial.transform import Rotation

from clast.kernels.backend import func
from clast.narrow.ellipsoid_point import farthest_in_shadow, nearest_in_shadow, nearest_in_space, support
from clast.narrow.ellipsoid_walls import ellipsoid_plane, ellipsoid_triangle, triangle_bound
from clast.narrow.sphere_walls import sphere_plane, sphere_triangle
from clast.shapes import MeshWall
from clast.shapes.ellipsoid_form import own_axes

SIZES = {
    "triaxial": (0.1, 0.07, 0.05),
    "needle": (0.1, 0.001, 0.001),
    "disc": (0.1, 0.1, 0.001),
    "blade": (0.1, 0.01, 0.001),
}


def least(size):
    """Smallest radius of curvature."""
    return min(size) ** 2 / max(size)


def quaternions(rotation):
    """(n,4) w x y z."""
    return np.roll(rotation.as_quat(), 1, axis=-1)


def extent(rotation, size, n):
    """h (k,) and M n / h (k,3) in plain numpy."""
    u = rotation.inv().apply(np.tile(n, (len(rotation), 1))) * size
    h = np.linalg.norm(u, axis=1)
    return h, rotation.apply(u * size) / h[:, None]


@func
def scan(centres, turns, size, meshes, count, found):
    """All contacts of each ellipsoid with all triangles; rows of `found`: ellipsoid, gap, normal, feature, triangle."""
    k = 0
    for i in range(len(centres)):
        c = (centres[i, 0], centres[i, 1], centres[i, 2])
        q = (turns[i, 0], turns[i, 1], turns[i, 2], turns[i, 3])
        for t in range(len(meshes.triangle)):
            status, gap, n, feature = ellipsoid_triangle(c, q, size, meshes, t)
            if status:
                count[i] += 1
                found[k, 0] = i
                found[k, 1] = gap
                found[k, 2] = n[0]
                found[k, 3] = n[1]
                found[k, 4] = n[2]
                found[k, 5] = feature
                found[k, 6] = t
                k += 1
    return k


def contacts(wall, centres, turns, size):
    """Count per ellipsoid, and for all contacts: row of the ellipsoid, gap, normal, feature, triangle."""
    centres = np.ascontiguousarray(np.atleast_2d(centres), dtype=float)
    turns = np.ascontiguousarray(np.broadcast_to(turns, (len(centres), 4)), dtype=float)
    count = np.zeros(len(centres), np.int64)
    found = np.zeros((len(centres) * len(wall.triangles), 7))
    found = found[: scan(centres, turns, tuple(map(float, size)), wall.mesh, count, found)]
    return count, found[:, 0].astype(int), found[:, 1], found[:, 2:5], found[:, 5].astype(int), found[:, 6].astype(int)


@func
def sphere_scan(centres, meshes, found):
    k = 0
    for i in range(len(centres)):
        for t in range(len(meshes.triangle)):
            c = (centres[i, 0], centres[i, 1], centres[i, 2])
            status, distance, n, feature = sphere_triangle(c, meshes, t)
            if status:
                found[k, 0] = i
                found[k, 1] = distance
                found[k, 2] = n[0]
                found[k, 3] = n[1]
                found[k, 4] = n[2]
                found[k, 5] = feature
                found[k, 6] = t
                k += 1
    return k


# A point against an ellipsoid.


def signed_distance(p, size):
    """Of a point in the ellipsoid's own axes, by bisection with long numbers."""
    p, s = np.abs(np.asarray(p, np.longdouble)), np.asarray(size, np.longdouble)
    low, high = -(s.min() ** 2), s.max() * (np.linalg.norm(p.astype(float)) + 2 * s.max())
    for _ in range(200):
        t = 0.5 * (low + high)
        outside = np.sum((s * p / (t + s**2)) ** 2) > 1.0
        low, high = (t, high) if outside else (low, t)
    x = s**2 * p / (high + s**2)
    return float(np.sign(high) * np.sqrt(np.sum((p - x) ** 2)))


@pytest.mark.parametrize("size", SIZES.values(), ids=SIZES)
def test_point_distance_agrees_with_bisection(size):
    rng = np.random.default_rng(1)
    for _ in range(200):
        turn = Rotation.random(random_state=rng)
        own = rng.normal(size=3) * size * rng.choice([0.2, 1.0, 3.0, 100.0])
        axes = own_axes(tuple(quaternions(turn)))
        gap, n = nearest_in_space(tuple(turn.apply(own)), axes, size)
        assert gap == pytest.approx(signed_distance(own, size), abs=1e-15 * (1 + np.abs(own).max()))
        assert np.linalg.norm(n) == pytest.approx(1.0, abs=1e-14)
        h, arm = support(axes, size, n)
        np.testing.assert_allclose(arm + gap * np.array(n), turn.apply(own), atol=2e-13 * (0.1 + np.abs(own).max()))


def test_point_at_the_centre_leaves_through_the_thin_side():
    axes = own_axes((1.0, 0.0, 0.0, 0.0))
    for size in [(3.0, 2.0, 1.0), (3.0, 1.0, 1.0), (3.0, 3.0, 1.0), (1.0, 1.0, 1.0)]:
        for p in [(0.0, 0.0, 0.0), (0.1, 0.0, 0.0), (-0.1, 0.1, 0.0)]:
            gap, n = nearest_in_space(p, axes, size)
            assert np.isfinite(gap) and -1.0 <= gap <= -0.8 and np.linalg.norm(n) == pytest.approx(1.0)
    np.testing.assert_allclose(nearest_in_space((0.0, 0.0, 0.0), axes, (3.0, 2.0, 1.0))[1], (0, 0, 1), atol=1e-15)


@pytest.mark.parametrize("size", SIZES.values(), ids=SIZES)
def test_shadow_distances_agree_with_all_directions(size):
    rng = np.random.default_rng(2)
    angle = np.linspace(0.0, 2 * np.pi, 40001)
    for _ in range(10):
        turn = Rotation.random(random_state=rng)
        p, q, _ = Rotation.random(random_state=rng).as_matrix()
        d = rng.normal(size=3) * 0.1
        n = np.cos(angle)[:, None] * p + np.sin(angle)[:, None] * q
        h = np.linalg.norm((n @ turn.as_matrix()) * size, axis=1)
        for function, sampled in ((nearest_in_shadow, n @ d - h), (farthest_in_shadow, n @ d + h)):
            value, m = function(tuple(d), own_axes(tuple(quaternions(turn))), size, tuple(p), tuple(q))
            assert sampled.max() - 1e-15 <= value <= sampled.max() + 1e-6
            assert np.abs(n[sampled.argmax()] - m).max() < 3e-3


# Planes.


def test_plane_gap_of_turned_ellipsoids():
    n = np.array([1.0, 2.0, -2.0]) / 3.0
    rng = np.random.default_rng(3)
    for turn in Rotation.random(20, random_state=rng):
        size = (0.3, 0.2, 0.1)
        c = rng.normal(size=3)
        status, gap, normal, feature = ellipsoid_plane(tuple(c), tuple(quaternions(turn)), size, tuple(n))
        h = np.sqrt(n @ turn.as_matrix() @ np.diag(np.square(size)) @ turn.as_matrix().T @ n)
        assert (status, feature) == (1, 0)
        assert gap == pytest.approx(c @ n - h, abs=1e-15)
        np.testing.assert_allclose(normal, -n)
        ball = ellipsoid_plane(tuple(c), tuple(quaternions(turn)), (0.3, 0.3, 0.3), tuple(n))
        assert ball[1] == pytest.approx(sphere_plane(tuple(c), tuple(n))[1] - 0.3, abs=1e-15)


# Triangles.


def grid(n, seed):
    """A square [0,1]^2 of 2 n^2 triangles, with random diagonals and windings."""
    rng = np.random.default_rng(seed)
    x = np.linspace(0, 1, n + 1)
    points = np.stack(np.meshgrid(x, x, indexing="ij"), -1).reshape(-1, 2)
    triangles = []
    for i in range(n):
        for j in range(n):
            a, b, c, d = i * (n + 1) + j, (i + 1) * (n + 1) + j, (i + 1) * (n + 1) + j + 1, i * (n + 1) + j + 1
            pair = [[a, b, c], [a, c, d]] if rng.random() < 0.5 else [[a, b, d], [b, c, d]]
            triangles += [t[::-1] if rng.random() < 0.5 else t for t in pair]
    return points, np.array(triangles)


def delaunay():
    rng = np.random.default_rng(7)
    points = np.vstack([rng.random((60, 2)), [[0, 0], [1, 0], [1, 1], [0, 1]]])
    return points, Delaunay(points).simplices


def bumpy(seed, height):
    points, triangles = grid(3, seed)
    return MeshWall(np.c_[points, height * np.random.default_rng(seed).normal(size=len(points))], triangles)


def cube():
    corners = np.array([[x, y, z] for x in (0, 1) for y in (0, 1) for z in (0, 1)], float)
    return MeshWall(corners, ConvexHull(corners).simplices)


def square():
    return MeshWall([[0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0]], [[0, 1, 2], [0, 2, 3]])


MESHES = {"bumpy": lambda: bumpy(2, 0.1), "rough": lambda: bumpy(5, 0.3), "cube": cube, "square": square}


@pytest.mark.parametrize("mesh", MESHES.values(), ids=MESHES)
def test_spheres_touch_meshes_as_spheres_do(mesh):
    wall = mesh()
    rng = np.random.default_rng(4)
    centres = np.r_[rng.uniform(-0.5, 1.5, (300, 3)), rng.uniform(0, 1, (200, 3)) * (1, 1, 0.3)]
    turns = quaternions(Rotation.random(len(centres), random_state=rng))
    _, row, gap, normal, feature, triangle = contacts(wall, centres, turns, (0.3, 0.3, 0.3))
    expected = np.zeros((len(centres) * len(wall.triangles), 7))
    expected = expected[: sphere_scan(centres, wall.mesh, expected)]
    np.testing.assert_array_equal(np.c_[row, feature, triangle], expected[:, [0, 5, 6]])
    np.testing.assert_allclose(gap, expected[:, 1] - 0.3, atol=1e-13)
    np.testing.assert_allclose(normal, expected[:, 2:5], atol=1e-13)
    assert set(feature) == set(range(7)) or wall.triangles.shape[0] < 20


def places(points, triangles, seed):
    """Over the inside of the square: anywhere, on edges, on vertices, and a little away from them."""
    rng = np.random.default_rng(seed)
    special = np.r_[points, 0.5 * (points[triangles[:, 0]] + points[triangles[:, 1]])]
    special = special[(np.abs(special - 0.5) < 0.35).all(1)]
    near = [special + scale * rng.normal(size=special.shape) for scale in (1e-16, 1e-13, 1e-11, 1e-9, 1e-6)]
    return np.vstack([rng.uniform(0.25, 0.75, (200, 2)), special, *near])


@pytest.mark.parametrize("size", [*SIZES.values(), (0.05, 0.05, 0.05)], ids=[*SIZES, "sphere"])
@pytest.mark.parametrize("mesh", [lambda: grid(6, 1), delaunay], ids=["grid", "random"])
def test_flat_mesh_is_a_plane_with_one_contact_everywhere(mesh, size):
    points, triangles = mesh()
    rng = np.random.default_rng(8)
    foot = places(points, triangles, 9)
    count = len(foot)
    poses = {
        "any": Rotation.random(count, random_state=rng),
        "aligned": Rotation.concatenate([Rotation.identity()] * count),
        "upright": Rotation.from_rotvec(np.tile([0.0, 0.5 * np.pi, 0.0], (count, 1))),
    }
    for tilt in (Rotation.identity(), Rotation.from_rotvec([0.3, -0.7, 0.4])):
        wall = MeshWall(tilt.apply(np.c_[points, np.zeros(len(points))]), triangles)
        for name, turn in poses.items():
            h, arm = extent(turn, size, (0.0, 0.0, -1.0))
            # Shallow and deep, also just where the depth is the smallest radius of curvature.
            expected = rng.choice([0.02, 1e-3, 0.0, -0.5 * least(size), -least(size), -1e-3, -0.01], count)
            expected = np.maximum(expected, -0.9 * h)
            centre = np.c_[foot - arm[:, :2], expected + h]
            found = contacts(wall, tilt.apply(centre), quaternions(tilt * turn), size)
            assert (found[0] == 1).all(), (
                f"{name}: {np.flatnonzero(found[0] != 1)[:5]} have {found[0][found[0] != 1][:5]}"
            )
            np.testing.assert_allclose(found[2], expected, atol=1e-15)
            np.testing.assert_allclose(tilt.inv().apply(found[3]), np.tile([0, 0, -1.0], (count, 1)), atol=1e-6)


@func
def least_on_triangle(a, b, c, centre, axes, size, where):
    """Least signed distance of a triangle's points, by ternary search within ternary search: it is convex."""
    low, high = 0.0, 1.0
    best = 1e300
    for _ in range(64):
        value = (0.0, 0.0)
        for side in range(2):
            u = low + (high - low) * (1 + side) / 3.0
            bottom, top = 0.0, 1.0 - u
            here = 1e300
            for _ in range(64):
                v1, v2 = bottom + (top - bottom) / 3.0, top - (top - bottom) / 3.0
                f1 = at_barycentric(u, v1, a, b, c, centre, axes, size)
                f2 = at_barycentric(u, v2, a, b, c, centre, axes, size)
                if f1 < best:
                    best = f1
                    where[0], where[1] = u, v1
                if f2 < best:
                    best = f2
                    where[0], where[1] = u, v2
                here = min(here, f1, f2)
                bottom, top = (bottom, v2) if f1 <= f2 else (v1, top)
            value = (here, value[1]) if side == 0 else (value[0], here)
        third = (high - low) / 3.0
        low, high = (low, high - third) if value[0] <= value[1] else (low + third, high)
    return best


@func
def at_barycentric(u, v, a, b, c, centre, axes, size):
    w = 1.0 - u - v
    d = (
        w * a[0] + u * b[0] + v * c[0] - centre[0],
        w * a[1] + u * b[1] + v * c[1] - centre[1],
        w * a[2] + u * b[2] + v * c[2] - centre[2],
    )
    return nearest_in_space(d, axes, size)[0]


def distance_to_triangle(x, corners):
    """Of a point from each triangle (t,3,3), zero inside."""
    a, b, c = corners[:, 0], corners[:, 1], corners[:, 2]
    weights = (np.linalg.pinv(np.stack([b - a, c - a], axis=2)) @ (x - a)[:, :, None])[:, :, 0]  # least squares
    inside = (weights.min(1) > -1e-4) & (weights.sum(1) < 1 + 1e-4)
    normal = np.cross(b - a, c - a)
    height = np.abs(np.sum(normal * (x - a), 1)) / np.linalg.norm(normal, axis=1)
    return np.where(inside, height, 1.0)


@pytest.mark.parametrize(
    "size", [(0.35, 0.25, 0.15), (0.5, 0.02, 0.02), (0.4, 0.4, 0.02)], ids=["egg", "needle", "disc"]
)
@pytest.mark.parametrize("mesh", [lambda: bumpy(5, 0.3), cube, square], ids=["rough", "cube", "square"])
def test_contacts_are_the_local_minima_of_the_signed_distance(mesh, size):
    wall = mesh()
    corners = wall.vertices[wall.triangles]
    rng = np.random.default_rng(10)
    checked = 0
    for _ in range(25):
        c, turn = rng.uniform(-0.3, 1.3, 3), Rotation.random(random_state=rng)
        q = tuple(quaternions(turn))
        axes = own_axes(q)
        minima, points = [], []
        for a, b, d in corners:
            where = np.zeros(2)
            minima.append(least_on_triangle(tuple(a), tuple(b), tuple(d), tuple(c), axes, size, where))
            points.append(a + where[0] * (b - a) + where[1] * (d - a))
        minima, points = np.array(minima), np.array(points)
        if minima.min() < -0.9 * least(size):
            continue
        checked += 1
        expected = []
        for value, x in zip(minima, points, strict=True):
            around = distance_to_triangle(x, corners) < 1e-5
            if (minima[around] > value - 1e-9).all() and not any(np.linalg.norm(x - y) < 1e-4 for _, y in expected):
                expected.append((value, x))
        _, _, gap, normal, _, _ = contacts(wall, c, q, size)
        found = [np.array(support(axes, size, tuple(n))[1]) + c + g * n for g, n in zip(gap, normal, strict=True)]
        assert len(found) == len(expected), f"centre {c}, turn {q}: found {gap}, expected {expected}"
        for value, x in expected:
            k = np.argmin([np.linalg.norm(x - y) for y in found])
            assert np.linalg.norm(x - found[k]) < 1e-4
            assert gap[k] == pytest.approx(value, abs=1e-11)
    assert checked >= 5


def test_gap_and_normal_are_continuous_across_edges_and_corners():
    wall = cube()
    rng = np.random.default_rng(11)
    for size in [(0.3, 0.2, 0.1), (0.3, 0.02, 0.02), (0.3, 0.3, 0.02)]:
        for _ in range(20):
            turn = Rotation.random(random_state=rng)
            h, _ = extent(Rotation.concatenate([turn]), size, (0.0, 0.0, -1.0))
            # From over the middle of the top over an edge or a corner, far out and around.
            heading = rng.uniform(0, 2 * np.pi)
            step = np.linspace(0.0, 1.2, 4001)
            centres = np.c_[
                0.5 + step * np.cos(heading), 0.5 + step * np.sin(heading), np.full(4001, 1.0 + h[0] + 0.01)
            ]
            count, row, gap, normal, feature, _ = contacts(wall, centres, quaternions(turn), size)
            assert (count > 0).all() and gap.min() > 0.0
            # Farther faces of the box have contacts of their own.
            nearest = np.lexsort((gap, row))[np.r_[0, np.cumsum(count)[:-1]]]
            gap, normal, feature = gap[nearest], normal[nearest], feature[nearest]
            assert np.abs(np.diff(gap)).max() < 1.01 * (step[1] - step[0])
            assert len(set(feature)) >= 2
            # Over a smooth surface a normal turns no faster than the centre moves, over the least radius.
            assert np.linalg.norm(np.diff(normal, axis=0), axis=1).max() < 1.01 * (step[1] - step[0]) / least(size)


@pytest.mark.parametrize("mesh", MESHES.values(), ids=MESHES)
def test_turning_or_mirroring_everything_changes_nothing(mesh):
    wall = mesh()
    rng = np.random.default_rng(12)
    centres = rng.uniform(-0.2, 1.2, (300, 3))
    size = (0.3, 0.2, 0.05)
    pose = Rotation.random(300, random_state=rng)
    plain = contacts(wall, centres, quaternions(pose), size)
    turn = Rotation.random(random_state=rng)
    turned = contacts(
        MeshWall(turn.apply(wall.vertices), wall.triangles), turn.apply(centres), quaternions(turn * pose), size
    )
    np.testing.assert_array_equal(plain[5], turned[5])
    np.testing.assert_allclose(plain[2], turned[2], atol=1e-13)
    np.testing.assert_allclose(turn.apply(plain[3]), turned[3], atol=1e-11)
    flip = np.array([1.0, 1.0, -1.0])
    mirrored = flip[:, None] * pose.as_matrix() * np.array([-1.0, -1.0, 1.0])
    mirrored[:, :, 2] *= np.sign(np.linalg.det(mirrored))[:, None]
    found = contacts(
        MeshWall(flip * wall.vertices, wall.triangles),
        flip * centres,
        quaternions(Rotation.from_matrix(mirrored)),
        size,
    )
    np.testing.assert_allclose(plain[2], found[2], atol=1e-13)
    np.testing.assert_allclose(flip * plain[3], found[3], atol=1e-11)


def test_needle_beside_a_sheet_does_not_touch_it():
    # It leans over the sheet, passes the edge outside and ends below: its tip is under the sheet, not in it.
    wall = square()
    size = (1.0, 0.01, 0.01)
    turn = Rotation.from_euler("y", -np.pi / 2 - 0.3)
    along = turn.apply([1.0, 0.0, 0.0])
    assert along[2] > 0.9 and along[0] < -0.2
    for off in (0.05, 0.02, 0.011):
        for shift in (-0.5, 0.0, 0.5):
            centre = np.array([1.0, 0.4, 0.0]) + shift * along + off * np.array([along[2], 0.0, -along[0]])
            count, _, gap, _, feature, _ = contacts(wall, centre, quaternions(turn), size)
            thin = 0.01 * np.sqrt(1 - shift**2)
            assert count[0] == 1 and 1 <= feature[0] <= 3
            assert gap[0] == pytest.approx(off - thin, abs=1e-4)


def test_needle_that_leans_far_over_a_sheet_does_not_touch_it():
    # The sheet has two squares; the tip is over the one that the needle does not pass.
    x = [0.0, 0.0, 0.5, 0.5, 1.0, 1.0]
    wall = MeshWall(np.c_[x, [0, 1] * 3, np.zeros(6)], [[0, 2, 3], [0, 3, 1], [2, 4, 5], [2, 5, 3]])
    turn = Rotation.from_euler("y", -np.pi / 2 - 0.8)
    along = turn.apply([1.0, 0.0, 0.0])
    centre = np.array([1.0, 0.4, 0.0]) - 0.2 * along + 0.02 * np.array([along[2], 0.0, -along[0]])
    tip = centre + along
    assert tip[0] < 0.5 and tip[2] > 0.5 and centre[2] < 0.0
    count, _, gap, _, feature, _ = contacts(wall, centre, quaternions(turn), (1.0, 0.01, 0.01))
    assert count[0] == 1 and 1 <= feature[0] <= 3
    assert gap[0] == pytest.approx(0.02 - 0.01 * np.sqrt(1 - 0.2**2), abs=1e-4)


@pytest.mark.parametrize("size", [(0.3, 0.3, 0.3), (0.3, 0.2, 0.1), (0.3, 0.3, 0.01)], ids=["sphere", "egg", "disc"])
def test_fold_of_nearly_flat_neighbours_has_one_contact(size):
    slope = 0.02
    wall = MeshWall([[0, -1, 0], [0, 1, 0], [1, 0, slope], [-1, 0, slope]], [[0, 1, 2], [0, 1, 3]])
    turn = Rotation.from_euler("x", 0.02)
    for x in np.linspace(-0.1, 0.1, 41):
        count, _, gap, normal, feature, _ = contacts(wall, (x, 0.0, 0.3), quaternions(turn), size)
        assert (count[0], feature[0]) == (1, 0)
        n = np.array([[slope, 0.0, -1.0], [-slope, 0.0, -1.0]]) / np.hypot(slope, 1.0)
        expected = -(n @ (x, 0.0, 0.3)) - np.linalg.norm(turn.inv().apply(n) * size, axis=1)
        assert gap[0] == pytest.approx(expected.min(), abs=1e-15)
        assert np.abs(normal[0] - n[expected.argmin()]).max() < 1e-15 or abs(x) < 1e-12


def test_needle_through_a_sheet_near_its_edge_leaves_over_the_edge():
    wall = square()
    size = (1.0, 0.01, 0.01)
    turn = Rotation.from_euler("y", np.pi / 2)
    gaps = []
    for x in np.linspace(0.97, 1.03, 601):
        count, _, gap, normal, _, _ = contacts(wall, (x, 0.4, 0.3), quaternions(turn), size)
        assert count[0] == 1
        assert np.abs(normal[0] - (-1.0, 0.0, 0.0)).max() < 0.01
        gaps.append(gap[0])
    assert np.abs(np.diff(gaps)).max() < 1.01e-4
    assert gaps[0] < -0.03 and gaps[-1] > 0.01


def test_no_gap_is_below_the_cheap_bound():
    wall = bumpy(2, 0.1)
    rng = np.random.default_rng(13)
    size = (0.1, 0.05, 0.01)
    centres, turns = rng.uniform(-0.2, 1.2, (300, 3)), quaternions(Rotation.random(300, random_state=rng))
    _, row, gap, _, _, triangle = contacts(wall, centres, turns, size)
    bound = np.array(
        [
            triangle_bound(tuple(centres[i]), tuple(turns[i]), size, wall.mesh, int(t))
            for i, t in zip(row, triangle, strict=True)
        ]
    )
    apart = bound > 0.0
    assert apart.sum() > 100 and (gap[apart] > bound[apart] - 1e-13).all()
    assert (bound[gap < 0.0] <= 1e-13).all()

"""Ellipsoids against cylinders: closed forms, spheres, search over all directions and places, and fine meshes."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from clast.kernels.backend import func
from clast.narrow.ellipsoid_cylinder import ellipsoid_cylinder
from clast.narrow.ellipsoid_point import nearest_in_space
from clast.narrow.ellipsoid_walls import ellipsoid_triangle
from clast.narrow.sphere_walls import sphere_cylinder
from clast.shapes import MeshWall
from clast.shapes.ellipsoid_form import own_axes

HOLLOW, SOLID = 1.0, -1.0
SIZES = {"egg": (0.5, 0.3, 0.2), "needle": (0.5, 0.005, 0.005), "disc": (0.5, 0.5, 0.005), "large": (1.0, 0.6, 0.3)}
Z = (0.0, 0.0, 1.0)
NO_TURN = (1.0, 0.0, 0.0, 0.0)


def quaternion(rotation):
    return tuple(np.roll(rotation.as_quat(), 1))


def least(size):
    return min(size) ** 2 / max(size)


def random_axis(rng):
    axis = rng.normal(size=3)
    return tuple(axis / np.linalg.norm(axis))


def test_spheres_touch_cylinders_as_spheres_do():
    rng = np.random.default_rng(1)
    for _ in range(500):
        axis, c, radius = random_axis(rng), tuple(rng.uniform(-2, 2, 3)), rng.uniform(0.01, 1.5)
        q = quaternion(Rotation.random(random_state=rng))
        for half in (0.75, np.inf):
            for sense in (HOLLOW, SOLID):
                status, gap, normal, feature = ellipsoid_cylinder(c, q, (radius,) * 3, axis, 1.0, half, sense)
                expected = sphere_cylinder(c, axis, 1.0, half, sense)
                assert (status, feature) == (expected[0], expected[3])
                assert gap == pytest.approx(expected[1] - radius, abs=1e-13)
                np.testing.assert_allclose(normal, expected[2], atol=1e-12)


def test_aligned_ellipsoids_in_closed_form():
    size = (0.3, 0.2, 0.1)
    for half in (5.0, np.inf):
        _, gap, n, _ = ellipsoid_cylinder((0.5, 0.0, 0.2), NO_TURN, size, Z, 1.0, half, HOLLOW)
        assert gap == pytest.approx(0.2, abs=1e-15)
        np.testing.assert_allclose(n, (1.0, 0.0, 0.0), atol=1e-15)
        _, gap, n, _ = ellipsoid_cylinder((0.0, -1.5, 0.2), NO_TURN, size, Z, 1.0, half, SOLID)
        assert gap == pytest.approx(0.3, abs=1e-15)
        np.testing.assert_allclose(n, (0.0, 1.0, 0.0), atol=1e-15)
    _, gap, n, _ = ellipsoid_cylinder((0.1, -1.3, 0.2), NO_TURN, size, Z, 1.0, 5.0, HOLLOW)  # beside the sheet
    assert 0.09 < gap < 0.11 and n[1] > 0.9
    _, gap, n, _ = ellipsoid_cylinder((0.3, 0.2, -0.9), NO_TURN, size, Z, 1.0, 0.5, SOLID)
    assert gap == pytest.approx(0.3, abs=1e-15)
    np.testing.assert_allclose(n, (0.0, 0.0, 1.0), atol=1e-15)
    # Deep inside, the way out through the nearer end.
    _, gap, n, _ = ellipsoid_cylinder((0.1, 0.1, 0.4), NO_TURN, size, Z, 1.0, 0.5, SOLID)
    assert gap == pytest.approx(-0.2, abs=1e-15)
    np.testing.assert_allclose(n, (0.0, 0.0, -1.0), atol=1e-15)


def test_ellipse_in_a_tube_touches_at_its_farthest_point():
    rng = np.random.default_rng(2)
    angle = np.linspace(0, 2 * np.pi, 200001)
    for _ in range(50):
        a, b = rng.uniform(0.1, 0.6, 2)
        c = rng.uniform(-0.4, 0.4, 2)
        _, gap, n, _ = ellipsoid_cylinder((c[0], c[1], 3.0), NO_TURN, (a, b, 0.2), Z, 1.0, np.inf, HOLLOW)
        far = np.hypot(c[0] + a * np.cos(angle), c[1] + b * np.sin(angle)).max()
        assert far - 1e-15 <= 1.0 - gap <= far + 1e-9
        # Centred, two places are equally far; one of them is taken.
    _, gap, n, _ = ellipsoid_cylinder((0.0, 0.0, 0.0), NO_TURN, (0.5, 0.7, 0.2), Z, 1.0, np.inf, HOLLOW)
    assert gap == pytest.approx(0.3, abs=1e-15) and abs(n[1]) == pytest.approx(1.0)


def over_all_directions(c, turn, size, axis, radius, half, start):
    """Greatest of n.(x - c) - h(n) over sampled and then refined unit n, for a solid cylinder."""

    def value(n):
        along = n @ axis
        across = np.linalg.norm(n - along[:, None] * axis, axis=1)
        return -(n @ c) - np.linalg.norm((n @ turn) * size, axis=1) - radius * across - half * np.abs(along)

    rng = np.random.default_rng(3)
    found = value(start)
    best = -np.inf
    for i in np.argsort(-found)[:3]:
        n, here, spread = start[i], found[i], 0.05
        while spread > 1e-9:
            tried = n + spread * rng.normal(size=(100, 3))
            tried /= np.linalg.norm(tried, axis=1)[:, None]
            values = value(tried)
            k = values.argmax()
            if values[k] > here:
                n, here = tried[k], values[k]
            else:
                spread *= 0.4
        best = max(best, here)
    return best, value


@pytest.mark.parametrize("size", SIZES.values(), ids=SIZES)
def test_solid_cylinder_gap_is_the_least_way_out_over_all_directions(size):
    rng = np.random.default_rng(4)
    start = rng.normal(size=(20000, 3))
    start /= np.linalg.norm(start, axis=1)[:, None]
    for k in range(40):
        axis, turn, c = np.array(random_axis(rng)), Rotation.random(random_state=rng), rng.uniform(-1.4, 1.4, 3)
        half = (0.75, 0.1)[k % 2]
        _, gap, n, _ = ellipsoid_cylinder(tuple(c), quaternion(turn), size, tuple(axis), 1.0, half, SOLID)
        expected, value = over_all_directions(c, turn.as_matrix(), size, axis, 1.0, half, start)
        assert value(np.array([n]))[0] == pytest.approx(gap, abs=1e-13)
        assert gap > expected - 1e-8
        assert gap < expected + 1e-4  # sampling stays a little below, in narrow ridges of needles


@func
def least_on_sheet(angle, height, c, q, size, p, r, axis):
    """Least signed distance over places of a cylinder of radius 1, and its row."""
    axes = own_axes(q)
    best, row = 1e300, 0
    for i in range(len(angle)):
        x, y, z = np.cos(angle[i]), np.sin(angle[i]), height[i]
        d = (
            x * p[0] + y * r[0] + z * axis[0] - c[0],
            x * p[1] + y * r[1] + z * axis[1] - c[1],
            x * p[2] + y * r[2] + z * axis[2] - c[2],
        )
        gap = nearest_in_space(d, axes, size)[0]
        if gap < best:
            best, row = gap, i
    return best, row


@pytest.mark.parametrize("size", SIZES.values(), ids=SIZES)
def test_hollow_cylinder_gap_is_the_least_over_the_sheet(size):
    rng = np.random.default_rng(5)
    checked = 0
    around, up = (g.ravel() for g in np.meshgrid(np.linspace(0, 2 * np.pi, 181), np.linspace(-1, 1, 41)))
    fine = [g.ravel() for g in np.meshgrid(np.linspace(-1, 1, 11), np.linspace(-1, 1, 11))]
    for k in range(40):
        axis, q, c = random_axis(rng), quaternion(Rotation.random(random_state=rng)), tuple(rng.uniform(-1.4, 1.4, 3))
        half = (0.75, 0.1)[k % 2]
        _, gap, _, _ = ellipsoid_cylinder(c, q, size, axis, 1.0, half, HOLLOW)
        p = np.cross(axis, (0.3, 0.5, -0.8))
        p /= np.linalg.norm(p)
        frame = tuple(p), tuple(np.cross(axis, p)), axis
        best, row = least_on_sheet(around, half * up, c, q, size, *frame)
        angle, height, spread = around[row], half * up[row], 1.0
        while spread > 1e-7:
            angles, heights = (
                angle + 0.05 * spread * fine[0],
                np.clip(height + 0.1 * half * spread * fine[1], -half, half),
            )
            value, row = least_on_sheet(angles, heights, c, q, size, *frame)
            if value < best:
                best, angle, height = value, angles[row], heights[row]
            spread *= 0.7
        if best > -least(size):
            checked += 1
            assert gap == pytest.approx(best, abs=1e-9)
    assert checked >= 10


def test_needle_that_leans_out_of_a_tube_touches_with_its_lower_end():
    low, high = np.array([-0.995, 0.0, 0.0]), np.array([1.2, 0.0, 1.0])
    along = (high - low) / np.linalg.norm(high - low)
    size = (0.5 * np.linalg.norm(high - low), 0.02, 0.02)
    turn = Rotation.from_euler("y", -np.arctan2(along[2], along[0]))
    _, gap, n, _ = ellipsoid_cylinder(tuple(0.5 * (low + high)), quaternion(turn), size, Z, 1.0, 0.5, HOLLOW)
    angle = np.linspace(0, 2 * np.pi, 100001)
    points = 0.5 * (low + high) + turn.apply(np.c_[size[0] * np.cos(angle), 0 * angle, size[2] * np.sin(angle)])
    assert gap == pytest.approx(1.0 + points[:, 0].min(), abs=1e-8)
    np.testing.assert_allclose(n, (-1.0, 0.0, 0.0), atol=1e-12)


@func
def deepest_in_mesh(c, q, size, meshes):
    """Gap, and its normal, of the nearest contact with any triangle."""
    best, normal = 1e300, (0.0, 0.0, 0.0)
    for t in range(len(meshes.triangle)):
        status, gap, n, _ = ellipsoid_triangle(c, q, size, meshes, t)
        if status and gap < best:
            best, normal = gap, n
    return best, normal


def test_fine_mesh_of_a_tube_agrees_with_the_tube():
    facets, half = 720, 2.0
    angle = 2 * np.pi * np.arange(facets) / facets
    ring = np.c_[np.cos(angle), np.sin(angle)]
    vertices = np.vstack([np.c_[ring, np.full(facets, -half)], np.c_[ring, np.full(facets, half)]])
    i, j = np.arange(facets), (np.arange(facets) + 1) % facets
    wall = MeshWall(vertices, np.vstack([np.c_[i, j, j + facets], np.c_[i, j + facets, i + facets]]))
    sagitta = 1 - np.cos(np.pi / facets)
    rng = np.random.default_rng(6)
    for size in [(0.3, 0.2, 0.1), (0.6, 0.6, 0.02), (0.7, 0.02, 0.02)]:
        for _ in range(30):
            q, c = quaternion(Rotation.random(random_state=rng)), tuple(rng.uniform(-0.25, 0.25, 3))
            _, gap, n, _ = ellipsoid_cylinder(c, q, size, Z, 1.0, half, HOLLOW)
            meshed, m = deepest_in_mesh(c, q, size, wall.mesh)
            assert gap - sagitta - 1e-12 <= meshed <= gap + 1e-12
            if gap > -least(size):
                assert np.abs(np.array(n) - m).max() < 0.1


@pytest.mark.parametrize("sense", [HOLLOW, SOLID])
@pytest.mark.parametrize("size", [(0.3, 0.2, 0.1), (0.3, 0.01, 0.01), (0.3, 0.3, 0.01)], ids=["egg", "needle", "disc"])
def test_gap_is_continuous_around_the_end(size, sense):
    rng = np.random.default_rng(7)
    for _ in range(30):
        turn = Rotation.random(random_state=rng)
        h = np.linalg.norm(turn.inv().apply([1.0, 0.0, 0.0]) * size)
        # Along the mantle from outside or inside and past the end, and then over it.
        x = 1.0 + (h + 0.01 if sense == SOLID else -h - 0.01)
        path = np.r_[
            np.c_[np.full(2001, x), np.zeros(2001), np.linspace(0.0, 1.2, 2001)],
            np.c_[np.linspace(x, 0.0, 2001), np.zeros(2001), np.full(2001, 1.2)],
        ]
        q = quaternion(turn)
        gaps = np.array([ellipsoid_cylinder(tuple(c), q, size, Z, 1.0, 0.5, sense)[1] for c in path])
        moved = np.linalg.norm(np.diff(path, axis=0), axis=1)
        shallow = np.minimum(gaps[1:], gaps[:-1]) > -least(size)
        assert (np.abs(np.diff(gaps)) <= 1.0001 * moved + 1e-12)[shallow].all()
        assert shallow.mean() > 0.4


def test_turning_everything_changes_nothing():
    rng = np.random.default_rng(8)
    for size in SIZES.values():
        for _ in range(50):
            axis, pose, c = random_axis(rng), Rotation.random(random_state=rng), rng.uniform(-1.3, 1.3, 3)
            turn = Rotation.random(random_state=rng)
            for half in (0.5, np.inf):
                for sense in (HOLLOW, SOLID):
                    _, gap, n, _ = ellipsoid_cylinder(tuple(c), quaternion(pose), size, axis, 1.0, half, sense)
                    _, other, m, _ = ellipsoid_cylinder(
                        tuple(turn.apply(c)), quaternion(turn * pose), size, tuple(turn.apply(axis)), 1.0, half, sense
                    )
                    assert other == pytest.approx(gap, abs=1e-12)
                    np.testing.assert_allclose(turn.apply(n), m, atol=1e-6)

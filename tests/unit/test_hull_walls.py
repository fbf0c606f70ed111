"""Convex polyhedra against planes and cylinders: closed forms, all corners by brute force, paths without jumps."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from clast.narrow.polyhedron_cylinder import hull_cylinder
from clast.narrow.polyhedron_plane import CANDIDATES, WIDTH, add_point, hull_plane, keep_four
from clast.narrow.polyhedron_sphere import hull_ball
from clast.shapes.polyhedron import Polyhedron

DOWN = (0.0, 0.0, -1.0)
X, Y, Z = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)


def rock(seed, points=25):
    """A random rock: the hull of points on a sphere."""
    x = np.random.default_rng(seed).normal(size=(points, 3))
    return Polyhedron(x / np.linalg.norm(x, axis=1)[:, None])


CUBE = Polyhedron.box(1.0, 1.0, 1.0)
SOLIDS = {
    "box": Polyhedron.box(1.0, 0.7, 0.4),
    "octahedron": Polyhedron(np.vstack([np.eye(3), -np.eye(3)])),
    "rock": rock(1),
}


def plane(solid, n, height, margin=0.0, k=1.0):
    """Contact points (c,8)."""
    work = np.full(WIDTH, np.nan)
    count = hull_plane(0, k, solid.hull, tuple(map(float, n)), height, margin, work)
    return work[: 8 * count].reshape(-1, 8)


def cylinder(solid, c, axis, radius, half_length, sense, margin=0.0, k=1.0):
    """Contact points (c,8)."""
    work = np.full(WIDTH, np.nan)
    where = tuple(map(float, c)), tuple(map(float, axis))
    count = hull_cylinder(0, k, solid.hull, *where, radius, half_length, sense, margin, work)
    return work[: 8 * count].reshape(-1, 8)


def rows(array):
    """Rows in a fixed order, to compare sets of points."""
    array = np.round(np.asarray(array, dtype=float), 9) + 0.0
    return array[np.lexsort(array.T)]


def reduced(points, gaps):
    """Which four of the points (c,3) are kept, written a second time in plain numpy."""
    keep = [int(np.argmin(gaps))]
    a = points[keep[0]]
    keep.append(int(np.argmax(np.linalg.norm(points - a, axis=1))))
    b = points[keep[1]]
    keep.append(int(np.argmax(np.linalg.norm(np.cross(b - a, points - a), axis=1))))
    c = points[keep[2]]
    n = np.cross(b - a, c - a)
    added = [np.cross(v - u, points - u) @ -n for u, v in ((a, b), (b, c), (c, a))]
    keep.append(int(np.argmax(np.max(added, axis=0))))
    return keep


class TestReduction:
    def test_twelve_points_of_a_disc(self):
        angle = np.random.default_rng(0).uniform(0, 2 * np.pi, 12)
        points = np.stack([np.cos(angle), 0.6 * np.sin(angle), 0.1 * np.cos(3 * angle)], 1)
        gaps = np.linspace(-0.1, -0.2, 12) + 0.05 * np.sin(9 * angle)
        work, count = np.zeros(WIDTH), 0
        for i, p in enumerate(points):
            count = add_point(work, count, 1.0, tuple(p), gaps[i], DOWN, float(i))
        assert keep_four(work, count, 1.0) == 4
        assert work[7:32:8].tolist() == reduced(points, gaps)

    def test_the_deepest_of_very_many_stays(self):
        random = np.random.default_rng(1)
        points, gaps = random.normal(size=(5 * CANDIDATES, 3)), random.uniform(-1, 0, 5 * CANDIDATES)
        work, count = np.zeros(WIDTH), 0
        for i, p in enumerate(points):
            count = add_point(work, count, 1.0, tuple(p), gaps[i], DOWN, float(i))
            assert count <= CANDIDATES
        assert keep_four(work, count, 1.0) == 4
        assert work[7] == np.argmin(gaps)

    @pytest.mark.parametrize(
        ("points", "kept"),
        [
            ([(0, 0, 0)] * 6, 1),
            ([(0, 0, 0), (0, 0, 1e-10), (1, 0, 0)], 2),
            ([(x, 0, 0) for x in (0, 1, 2, 3, 4)], 2),
            ([(0, 0, 0), (1, 0, 0), (0, 1, 0), (0.2, 0.2, 0), (0.1, 0.3, 0)], 3),
            ([(0, 0, 0), (1, 0, 0), (2, 0, 0)], 3),
        ],
    )
    def test_points_that_add_nothing(self, points, kept):
        work, count = np.zeros(WIDTH), 0
        for p in points:
            count = add_point(work, count, 1.0, tuple(map(float, p)), -0.1, DOWN, 0.0)
        assert keep_four(work, count, 1.0) == kept


class TestPlane:
    def test_cube_on_face_edge_and_corner(self):
        flat = plane(CUBE, DOWN, 0.98, k=2.0)
        assert rows(flat[:, :3]) == pytest.approx(rows([(x, y, -1) for x in (-1, 1) for y in (-1, 1)]))
        assert flat[:, 3] == pytest.approx(-0.02)
        edge = plane(CUBE, np.array([1.0, 0.0, 1.0]) / np.sqrt(2), np.sqrt(0.5) - 0.01)
        assert rows(edge[:, :3]) == pytest.approx(rows([(0.5, y, 0.5) for y in (-0.5, 0.5)]))
        assert edge[:, 3] == pytest.approx(-0.01)
        point = plane(CUBE, np.ones(3) / np.sqrt(3), np.sqrt(0.75) - 0.01)
        assert point == pytest.approx(np.array([[0.5, 0.5, 0.5, -0.01, *np.ones(3) / np.sqrt(3), 29]]))

    @pytest.mark.parametrize("name", SOLIDS)
    def test_corners_by_brute_force(self, name):
        solid, random = SOLIDS[name], np.random.default_rng(2)
        for _ in range(100):
            n = random.normal(size=3)
            n /= np.linalg.norm(n)
            height, margin = random.uniform(0.0, 1.2), random.choice([0.0, 0.1])
            found = plane(solid, n, height, margin, k=1.1)
            gaps = height - 1.1 * solid.vertices @ n
            near = np.flatnonzero(gaps <= margin)
            assert len(found) == min(len(near), 4)
            if len(near):
                which = (found[:, 7].astype(int) - 1) // 4
                assert found[0, 3] == pytest.approx(gaps.min())
                assert found[:, 3] == pytest.approx(gaps[which])
                assert found[:, :3] == pytest.approx(1.1 * solid.vertices[which])
                assert found[:, 4:7] == pytest.approx(np.tile(n, (len(found), 1)))
                if len(near) > 4:
                    assert which.tolist() == near[reduced(1.1 * solid.vertices[near], gaps[near])].tolist()

    def test_behind_the_plane_all_is_pushed_back(self):
        assert plane(CUBE, DOWN, -3.0)[0, 3] == pytest.approx(-3.5)


class TestInsideShell:
    @pytest.mark.parametrize("half_length", [2.0, np.inf])
    def test_cube_in_a_drum(self, half_length):
        """Its four lower corners, each with its own radial normal."""
        found = cylinder(CUBE, (0, 0, 0.3), Y, 0.9, half_length, 1.0)
        far = np.hypot(0.5, 0.8)
        assert found[:, 3] == pytest.approx(0.9 - far)
        assert rows(found[:, :3]) == pytest.approx(rows([(x, y, -0.5) for x in (-0.5, 0.5) for y in (-0.5, 0.5)]))
        assert found[:, 4] == pytest.approx(found[:, 0] / far)
        assert found[:, 6] == pytest.approx(-0.8 / far)

    @pytest.mark.parametrize("name", SOLIDS)
    def test_corners_by_brute_force(self, name):
        solid, random = SOLIDS[name], np.random.default_rng(3)
        axis = np.array([0.48, 0.6, 0.64])
        for c in random.uniform(-0.6, 0.6, size=(60, 3)):
            found = cylinder(solid, c, axis, 1.0, np.inf, 1.0, margin=0.05)
            p = solid.vertices - c
            across = p - np.outer(p @ axis, axis)
            gaps = 1.0 - np.linalg.norm(across, axis=1)
            assert len(found) == min((gaps <= 0.05).sum(), 4)
            if len(found):
                which = (found[:, 7].astype(int) - 1) // 4
                assert found[0, 3] == pytest.approx(gaps.min())
                assert found[:, 3] == pytest.approx(gaps[which])
                assert found[:, 4:7] == pytest.approx(across[which] / (1.0 - gaps[which])[:, None])

    def test_endless_shell_pulls_back_and_finite_shell_does_not(self):
        assert cylinder(CUBE, (5, 0, 0), Z, 1.0, np.inf, 1.0)[0, 3] < -4.0
        assert len(cylinder(CUBE, (5, 0, 0), Z, 1.0, 3.0, 1.0)) == 0

    def test_beyond_the_open_end_nothing(self):
        assert len(cylinder(CUBE, (0.45, 0, -2.0), Z, 0.9, 1.0, 1.0)) == 0
        assert len(cylinder(CUBE, (0.45, 0, 0), Z, 0.9, 1.0, 1.0)) > 0


class TestOutside:
    @pytest.mark.parametrize(("half_length", "sense"), [(np.inf, -1.0), (3.0, -1.0), (3.0, 1.0)])
    def test_cube_across_a_rod_touches_along_a_line(self, half_length, sense):
        found = cylinder(CUBE, (0, 0, -0.69), X, 0.2, half_length, sense)
        assert rows(found[:, :3]) == pytest.approx(rows([(-0.5, 0, -0.5), (0.5, 0, -0.5)]), abs=1e-9)
        assert found[:, 3] == pytest.approx(-0.01)
        assert found[:, 4:7] == pytest.approx(np.tile(DOWN, (2, 1)))

    def test_end_of_a_rod_below_a_cube(self):
        found = cylinder(CUBE, (-0.8, 0.1, -0.69), X, 0.2, 1.0, -1.0)
        assert rows(found[:, :3]) == pytest.approx(rows([(-0.5, 0.1, -0.5), (0.2, 0.1, -0.5)]))
        assert found[:, 3] == pytest.approx(-0.01)
        assert found[:, 4:7] == pytest.approx(np.tile(DOWN, (2, 1)))

    @pytest.mark.parametrize("sense", [1.0, -1.0])
    def test_cube_on_the_end_of_a_thin_post_or_tube(self, sense):
        found = cylinder(CUBE, (0, 0, -1.49), Z, 0.2, 1.0, sense)
        assert len(found) == 4
        assert np.hypot(found[:, 0], found[:, 1]) == pytest.approx(0.2)
        assert found[:, :2].sum(0) == pytest.approx(0.0, abs=1e-12)
        assert found[:, 3] == pytest.approx(-0.01)
        assert found[:, 4:7] == pytest.approx(np.tile(DOWN, (4, 1)))

    def test_cube_on_a_wide_end(self):
        found = cylinder(CUBE, (0, 0, -1.49), Z, 2.0, 1.0, -1.0)
        assert rows(found[:, :3]) == pytest.approx(rows([(x, y, -0.5) for x in (-0.5, 0.5) for y in (-0.5, 0.5)]))
        assert found[:, 3] == pytest.approx(-0.01)

    def test_cube_half_on_an_end(self):
        """Two points where the edge crosses the rim, seen along the normal, and the rim below the face."""
        found = cylinder(CUBE, (0.5, 0, -1.49), Z, 0.2, 1.0, -1.0)
        assert rows(found[:, :3]) == pytest.approx(rows([(0.5, -0.2, -0.5), (0.5, 0.2, -0.5), (0.3, 0, -0.5)]))
        assert found[:, 3] == pytest.approx(-0.01)

    @pytest.mark.parametrize("name", SOLIDS)
    def test_mantle_by_sampling_of_the_edges(self, name):
        """While the axis is outside, the nearest point of a convex body to it lies on an edge."""
        solid, random = SOLIDS[name], np.random.default_rng(4)
        s = np.linspace(0, 1, 801)[:, None, None]
        ends = solid.vertices[solid.hull.edge]
        points = (ends[:, 0] + s * (ends[:, 1] - ends[:, 0])).reshape(-1, 3)
        for turn in Rotation.random(40, random_state=5):
            axis = turn.apply(X)
            c = turn.apply([0.0, 0.0, solid.hull.outer[0] * 0.9 + 0.2]) + random.normal(scale=0.1, size=3)
            across = points - c - np.outer((points - c) @ axis, axis)
            distance = np.linalg.norm(across, axis=1).min()
            found = cylinder(solid, c, axis, distance + 0.02, np.inf, -1.0)
            assert found[0, 3] == pytest.approx(-0.02, abs=1e-5)
            assert len(cylinder(solid, c, axis, distance - 1e-3, np.inf, -1.0)) == 0

    @pytest.mark.parametrize(("sense", "jump"), [(-1.0, 0.0), (1.0, 0.003)])
    def test_gap_of_the_deepest_point_has_no_jump(self, sense, jump):
        """A tilted cube slides off the end of a post. Where its edge comes off the rim of a tube, a small jump is known."""
        axis = Rotation.from_rotvec([0.03, 0.02, 0.01]).apply(Z)
        path = np.linspace([0.0, 0.0, -1.49], [0.9, 0.3, -1.49], 1500)
        gaps = [g[0, 3] if len(g) else 0.0 for g in (cylinder(CUBE, c, axis, 0.4, 1.0, sense) for c in path)]
        assert min(gaps) < -0.02
        assert np.abs(np.diff(gaps)).max() < jump + 2.0 * np.linalg.norm(path[1] - path[0])

    def test_no_contact_without_overlap_and_contact_with_it(self):
        """Against points sampled in the solid cylinder."""
        random = np.random.default_rng(6)
        r, a, z = (
            np.sqrt(random.uniform(0, 1, 40000)),
            random.uniform(0, 2 * np.pi, 40000),
            random.uniform(-1, 1, 40000),
        )
        r[::2], z[::4] = 1.0, np.sign(z[::4])  # half of them on the mantle, a quarter on the ends
        cloud = np.stack([0.3 * r * np.cos(a), 0.3 * r * np.sin(a), 0.5 * z], 1)
        met = 0
        for i, turn in enumerate(Rotation.random(120, random_state=7)):
            solid = list(SOLIDS.values())[i % 3]
            c = random.normal(size=3)
            c *= random.uniform(0.5, 1.3) / np.linalg.norm(c)
            inside = (turn.apply(cloud) + c) @ solid.hull.normal - solid.hull.offset
            depth = -inside.max(1).min()
            found = cylinder(solid, c, turn.apply(Z), 0.3, 0.5, -1.0)
            if 0.0 < depth < 0.15:
                met += 1
                assert len(found)
            elif depth < -0.02:
                assert len(found) == 0
        assert met > 10


@pytest.mark.parametrize("height", [0.1, 0.065, 0.058, -0.2])
def test_over_the_open_end_of_a_tube_a_box_is_as_far_as_its_corners_are_from_the_rim(height):
    """Its lower corners lie under 45 degrees, at half of a diagonal from the axis."""
    (point, *_) = cylinder(Polyhedron.box(0.014, 0.014, 0.014), (0, 0, -height), Z, 0.05, 0.05, 1.0, margin=np.inf)
    aside, up = 0.05 - 0.007 * np.sqrt(2.0), abs(height) - 0.007 - 0.05
    assert point[3] == pytest.approx(np.hypot(aside, up), abs=1e-12)
    n = np.array([aside / np.sqrt(2.0), aside / np.sqrt(2.0), up]) / np.hypot(aside, up)
    np.testing.assert_allclose(np.abs(point[4:7]), np.abs(n), atol=1e-9)


@pytest.mark.parametrize(
    "solid", [rock(1), Polyhedron.box(1.0, 0.7, 0.4), Polyhedron.box(3.0, 0.25, 0.2)], ids=["rock", "box", "bar"]
)
def test_apart_from_a_tube_that_ends_the_distance_is_the_least_over_its_sheet(solid):
    """The distance of points of the sheet, by the nearest place of the polyhedron's surface; next to the nearest the sheet is nearer by 0.03 at the most."""
    rng = np.random.default_rng(12)
    angle, up = (g.ravel() for g in np.meshgrid(np.linspace(0.0, 2.0 * np.pi, 181), np.linspace(-0.8, 0.8, 33)))
    checked = 0
    for _ in range(25):
        c, axis = rng.uniform(-2.5, 2.5, 3), rng.normal(size=3)
        axis /= np.linalg.norm(axis)
        p = np.cross(axis, (0.3, 0.5, -0.8))
        p /= np.linalg.norm(p)
        ring = 1.5 * (np.cos(angle)[:, None] * p + np.sin(angle)[:, None] * np.cross(axis, p))
        least = min(
            hull_ball(0, 1.0, solid.hull, tuple(x), 0.0, np.inf)[1] for x in (c + ring + up[:, None] * axis).tolist()
        )
        if least > 0.03:
            (point, *_) = cylinder(solid, c, axis, 1.5, 0.8, 1.0, margin=np.inf)
            assert least - 0.03 < point[3] <= least + 1e-9
            # The place of the sheet that is told is on it, and as far as is told.
            x = point[:3] + point[3] * point[4:7]
            along = (x - c) @ axis
            assert np.linalg.norm(x - c - along * axis) == pytest.approx(1.5, abs=1e-9)
            assert abs(along) < 0.8 + 1e-9
            assert hull_ball(0, 1.0, solid.hull, tuple(x), 0.0, np.inf)[1] == pytest.approx(point[3], abs=1e-9)
            near = cylinder(solid, c, axis, 1.5, 0.8, 1.0, margin=1.01 * point[3])
            assert near[0, 3] == pytest.approx(point[3], abs=1e-12)
            checked += 1
    assert checked > 8

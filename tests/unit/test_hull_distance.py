"""The distance of two polyhedra: pairs built around a known answer, brute force over all features, and its proof."""

import itertools
import math

import numpy as np
import pytest

from clast.kernels.vec import rotation_matrices
from clast.narrow import polyhedron_distance as road
from clast.scene.stacking import join_molds, make_mold
from clast.shapes.polyhedron import Polyhedron

STRAIGHT = ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))


def sphere_points(rng, count):
    points = rng.normal(size=(count, 3))
    return points / np.linalg.norm(points, axis=1)[:, None]


def family(seed=0):
    """Polyhedra of every sort: regular, needles, plates, slivers, many faces."""
    rng = np.random.default_rng(seed)
    return {
        "cube": Polyhedron.box(1.0, 1.0, 1.0),
        "needle": Polyhedron.box(3.0, 0.01, 0.02),
        "plate": Polyhedron.box(1.0, 1.2, 0.001),
        "tetrahedron": Polyhedron(rng.normal(size=(4, 3))),
        "rock": Polyhedron(sphere_points(rng, 14) * [1.0, 0.8, 0.6]),
        "sliver": Polyhedron(sphere_points(rng, 10) * [1.0, 0.3, 0.003]),
        "round": Polyhedron(sphere_points(rng, 202)),
    }


FAMILY = family()
NAMES = list(FAMILY)
HULLS = join_molds([make_mold(shape) for shape in FAMILY.values()])[3]


def rows(matrix):
    return tuple(tuple(float(x) for x in row) for row in matrix)


def vector(x):
    return tuple(float(c) for c in x)


def random_turn(rng):
    q = rng.normal(size=(1, 4))
    return rotation_matrices(q / np.linalg.norm(q))[0]


def random_feature(rng, shape, kind):
    """A point (3,) of a random corner, edge or face of a polyhedron, a unit normal (3,) there, and a direction in it."""
    hull, corners = shape.hull, shape.vertices
    if kind == "face":
        f = rng.integers(len(shape.faces))
        used = corners[shape.faces[f]]
        return rng.dirichlet(np.ones(len(used))) @ used, hull.normal[:, f], used[1] - used[0]
    edge = rng.integers(len(hull.edge))
    ends, normals = corners[hull.edge[edge]], hull.normal[:, hull.edge_face[edge]]
    if kind == "edge":
        n = normals @ rng.uniform(0.05, 1.0, 2)
        return rng.dirichlet(np.ones(2)) @ ends, n / np.linalg.norm(n), ends[1] - ends[0]
    corner = hull.edge[edge, 0]
    at = [f for f, face in enumerate(shape.faces) if corner in face]
    n = hull.normal[:, at] @ rng.uniform(0.05, 1.0, len(at))
    return corners[corner], n / np.linalg.norm(n), ends[1] - ends[0]


def frame(n, along):
    """Rows of a right-handed frame: n, the part of `along` at right angles to it, and the third."""
    u = along - along @ n * n
    u /= np.linalg.norm(u)
    return np.array([n, u, np.cross(n, u)])


def known_pair(rng, one, two, kinds, gap, parallel):
    """A pair with this distance: two features face to face along a common normal, on which no body reaches farther.

    Returns size factors, turn, d, and the normal. parallel: the edges of both lie side by side.
    """
    ka, kb = rng.uniform(0.3, 2.0, 2)
    x, n, e = random_feature(rng, one, kinds[0])
    y, m, f = random_feature(rng, two, kinds[1])
    own = frame(-m, f)
    roll = 0.0 if parallel else rng.uniform(0.0, 2.0 * math.pi)
    c, s = math.cos(roll), math.sin(roll)
    turn = frame(n, e).T @ np.array([[1, 0, 0], [0, c, -s], [0, s, c]]) @ own
    return ka, kb, turn, ka * x + gap * n - kb * turn @ y, n


def least_over_features(one, two):
    """Distance by brute force in long double: all corners with triangles and all edges with edges.

    one, two: corners (v,3), and faces as lists of corner rows.
    """
    (a, faces_a), (b, faces_b) = ((np.asarray(x, np.longdouble), f) for x, f in (one, two))
    best = min(corners_to_triangles(a, b[fans(faces_b)]), corners_to_triangles(b, a[fans(faces_a)]))
    p, p1 = (a[ends_of(faces_a)[:, None, k]] for k in range(2))
    q, q1 = (b[ends_of(faces_b)[None, :, k]] for k in range(2))
    e, f, r = p1 - p, q1 - q, q - p
    for x, start, edge in ((p, q, f), (p1, q, f), (q, p, e), (q1, p, e)):
        t = np.clip(((x - start) * edge).sum(-1) / (edge**2).sum(-1), 0.0, 1.0)
        best = min(best, np.sqrt(((x - start - t[..., None] * edge) ** 2).sum(-1)).min())
    m = np.cross(e, f)
    square = (m**2).sum(-1)
    crossing = square > 1e-32 * (e**2).sum(-1) * (f**2).sum(-1)
    square = np.where(crossing, square, 1.0)
    s, t = (np.cross(r, f) * m).sum(-1) / square, (np.cross(r, e) * m).sum(-1) / square
    crossing &= (s >= 0) & (s <= 1) & (t >= 0) & (t <= 1)
    return float(min(best, np.where(crossing, np.abs((r * m).sum(-1)) / np.sqrt(square), np.inf).min()))


def fans(faces):
    return np.concatenate([np.stack([np.full(len(f) - 2, f[0]), f[1:-1], f[2:]], 1) for f in faces])


def ends_of(faces):
    return np.unique(np.sort(np.concatenate([np.stack([f, np.roll(f, -1)], 1) for f in faces]), axis=1), axis=0)


def corners_to_triangles(corner, triangle):
    """Least distance of corners (v,3) above triangles (t,3,3)."""
    a, b, c = (triangle[None, :, k] - corner[:, None] for k in range(3))
    m = np.cross(b - a, c - a)
    above = [(m * np.cross(x, y)).sum(-1) >= 0.0 for x, y in ((a, b), (b, c), (c, a))]
    height = np.abs((a * m).sum(-1)) / np.sqrt((m**2).sum(-1))
    return np.where(np.logical_and.reduce(above), height, np.inf).min()


def outside(hull, scale, x):
    """How far x (3,) is outside a hull [m], by its half-spaces."""
    return (hull.normal.T @ x - scale * hull.offset).max()


def check(answer, gap, n, one, two, ka, kb, turn, d, tolerance=1e-12):
    """The gap is the one wanted, the normal is the only one, and the points are on both bodies."""
    size = ka * one.hull.outer[0] + kb * two.hull.outer[0]
    found, normal, foot = answer[0], np.array(answer[1]), np.array(answer[2])
    assert abs(found - gap) <= tolerance * size + 1e-15 * np.linalg.norm(d)
    assert abs(np.linalg.norm(normal) - 1.0) < 1e-14
    # A distance near its least leaves the direction uncertain to the root of rounding, and a short one all the more.
    assert np.linalg.norm(normal - n) <= 5e-8 + 1e-13 * (size + np.linalg.norm(d)) / gap
    assert outside(one.hull, ka, foot) <= 1e-13 * size + 1e-15 * np.linalg.norm(d)
    partner = turn.T @ (foot + gap * n - d)
    assert outside(two.hull, kb, partner) <= (1e-12 * size if gap < 1.0 else 2e-8 * gap)


ROADS = {"descent": road.hull_distance, "features": road.distance_by_features}


@pytest.mark.parametrize("parallel", [False, True], ids=["any roll", "parallel"])
@pytest.mark.parametrize("gap", [1e-9, 1e-5, 0.3, 1e4])
@pytest.mark.parametrize("kinds", list(itertools.product(("corner", "edge", "face"), repeat=2)), ids="-".join)
def test_a_known_distance_is_found_between_all_features(kinds, gap, parallel):
    rng = np.random.default_rng(7)
    for a, b in itertools.product(range(len(NAMES)), repeat=2):
        one, two = FAMILY[NAMES[a]], FAMILY[NAMES[b]]
        ka, kb, turn, d, n = known_pair(rng, one, two, kinds, gap, parallel)
        for start in (n, d / np.linalg.norm(d), sphere_points(rng, 1)[0], -n):
            answer = road.hull_distance(a, ka, b, kb, rows(turn), vector(d), HULLS, vector(start))
            check(answer, gap, n, one, two, ka, kb, turn, d)
        if max(a, b) < len(NAMES) - 1:
            *answer, touch = road.distance_by_features(a, ka, b, kb, rows(turn), vector(d), HULLS, vector(start))
            check(answer, gap, n, one, two, ka, kb, turn, d)
            assert not touch


@pytest.mark.parametrize("name", ROADS)
@pytest.mark.parametrize("start", [(0.0, 0.0, 1.0), (0.6, 0.0, 0.8), (0.0, 0.0, -1.0)])
def test_closed_forms_of_two_cubes(name, start):
    """Half-edges 1 and 0.5: face to face, edge to edge, corner to corner, a corner in the middle of a face."""
    a, b = NAMES.index("cube"), NAMES.index("cube")

    def measure(turn, d):
        return ROADS[name](a, 2.0, b, 1.0, turn, d, HULLS, start)[:2]

    for d, gap, n in (
        ((0.2, 0.1, 2.0), 0.5, (0, 0, 1)),
        ((0.2, -2.5, 2.5), math.sqrt(2.0), (0, -math.sqrt(0.5), math.sqrt(0.5))),
        ((3.5, 3.5, 3.5), math.sqrt(12.0), (math.sqrt(1 / 3), math.sqrt(1 / 3), math.sqrt(1 / 3))),
    ):
        found, normal = measure(STRAIGHT, d)
        assert found == pytest.approx(gap, rel=1e-15)
        np.testing.assert_allclose(normal, n, rtol=0.0, atol=1e-15)
    # The diagonal of the small cube along z: its lowest corner is half of sqrt(3) below its centre.
    up = np.array([1.0, 1.0, 1.0]) / math.sqrt(3.0)
    side = np.array([1.0, -1.0, 0.0]) / math.sqrt(2.0)
    found, normal = measure(rows([side, np.cross(up, side), up]), (0.1, 0.2, 2.0))
    assert found == pytest.approx(1.0 - 0.5 * math.sqrt(3.0), rel=1e-14)
    np.testing.assert_allclose(normal, (0, 0, 1), rtol=0.0, atol=1e-15)


def test_brute_force_finds_the_same_distance():
    rng = np.random.default_rng(3)
    for k in range(60):
        a, b = rng.integers(len(NAMES), size=2) if k else (len(NAMES) - 1, len(NAMES) - 1)
        one, two = FAMILY[NAMES[a]], FAMILY[NAMES[b]]
        ka, kb = rng.uniform(0.2, 2.0, 2)
        turn = np.eye(3) if k % 4 == 0 else random_turn(rng)
        size = ka * one.hull.outer[0] + kb * two.hull.outer[0]
        start = sphere_points(rng, 1)[0]
        d = rng.uniform(1.0, 1.5) * size * start
        gap = least_over_features((ka * one.vertices, one.faces), (d + kb * two.vertices @ turn.T, two.faces))
        for function in ROADS.values():
            found = function(a, ka, b, kb, rows(turn), vector(d), HULLS, vector(start))[0]
            assert abs(found - gap) <= 1e-14 * size


def test_the_descent_brings_its_own_proof():
    """Bounds from both sides meet at rounding, so that the slow road is for what nobody has seen yet."""
    rng = np.random.default_rng(4)
    for _ in range(300):
        a, b = rng.integers(len(NAMES), size=2)
        one, two = FAMILY[NAMES[a]], FAMILY[NAMES[b]]
        kinds = rng.choice(["corner", "edge", "face"], 2)
        ka, kb, turn, d, _ = known_pair(rng, one, two, kinds, 10.0 ** rng.uniform(-7.0, 1.0), rng.random() < 0.5)
        start = sphere_points(rng, 1)[0]
        high, low, _, _, touch = road.descend(a, ka, b, kb, rows(turn), vector(d), HULLS, vector(start))
        assert not touch
        assert high - low <= 0.1 * road.CERTAIN * (ka * one.hull.outer[0] + kb * two.hull.outer[0])


def test_of_corners_equally_far_the_first_is_taken():
    cube = NAMES.index("cube")
    top = np.nonzero(FAMILY["cube"].vertices[:, 2] > 0.0)[0]
    assert road.farthest_corner(HULLS, cube, (0.0, 0.0, 1.0)) == HULLS.vertex_start[cube] + top[0]


def test_the_nearest_point_of_a_triangle():
    """No step along a side or towards the middle leads nearer to the origin."""
    rng = np.random.default_rng(6)
    for _ in range(200):
        corner = rng.normal(size=(3, 3)) + 0.5 * rng.normal(size=3)
        distance, n, *share = road.nearest_on_triangle(*(vector(x) for x in corner))
        v = share @ corner
        assert min(share) >= 0.0
        assert sum(share) == pytest.approx(1.0, rel=1e-15)
        assert distance == pytest.approx(np.linalg.norm(v), rel=1e-12)
        np.testing.assert_allclose(distance * np.array(n), v, rtol=0.0, atol=1e-12)
        assert (corner @ v).min() >= v @ v - 1e-12


def test_edges_that_are_nearly_parallel():
    """Two long edges at any small angle, crossing in their middles or past their ends, a known height apart."""
    rng = np.random.default_rng(5)
    for angle in 10.0 ** np.arange(-16.0, 0.0):
        for height in (1e-9, 1e-3, 1.0):
            turn = random_turn(rng)
            x, y = turn @ [1.0, 0.0, 0.0], turn @ [math.cos(angle), math.sin(angle), 0.0]
            n = turn @ [0.0, 0.0, 1.0]
            middle = rng.uniform(-0.9, 0.9, 2)
            p = rng.normal(size=3)
            q = p + middle[0] * x + height * n - middle[1] * y
            found, normal, foot = road.nearest_of_edges(vector(p - x), vector(p + x), vector(q - y), vector(q + y))
            assert abs(found - height) <= 2e-15
            assert abs(np.array(normal) @ n) >= 1.0 - 1e-12 or height < 1e-6
            assert np.linalg.norm(np.cross(np.array(foot) - p, x)) <= 1e-14


def test_bodies_that_touch_or_overlap_say_so():
    cube = NAMES.index("cube")
    for d, start in (
        ((0.0, 0.0, 1.0), (0.0, 0.0, 1.0)),  # face on face
        ((1.0, 1.0, 1.0), (0.6, 0.0, 0.8)),  # corner on corner
        ((0.3, 1.0, 1.0), (0.0, 1.0, 0.0)),  # edge on edge
    ):
        gap, n, foot = road.hull_distance(cube, 1.0, cube, 1.0, STRAIGHT, d, HULLS, start)
        assert gap == 0.0
        assert n == start
        assert np.abs(foot).max() == 0.5
    rng = np.random.default_rng(11)
    for a, b in itertools.product(range(len(NAMES)), repeat=2):
        one, two = FAMILY[NAMES[a]], FAMILY[NAMES[b]]
        ka, kb, turn, d, n = known_pair(rng, one, two, ("corner", "face"), -1e-9, False)
        least = -1e-9 - 1e-15
        for start in (n, sphere_points(rng, 1)[0]):
            gap, normal, _ = road.hull_distance(a, ka, b, kb, rows(turn), vector(d), HULLS, vector(start))
            assert gap <= 0.0
            # No direction parts them by less than the least.
            assert gap >= least if start is n else gap <= 0.0
        deep = vector(0.1 * ka * one.vertices[0])
        assert road.descend(a, ka, b, kb, rows(turn), deep, HULLS, (1.0, 0.0, 0.0))[4]
        assert road.hull_distance(a, ka, b, kb, rows(turn), deep, HULLS, (1.0, 0.0, 0.0))[0] < 0.0
        assert road.distance_by_features(a, ka, b, kb, rows(turn), deep, HULLS, (1.0, 0.0, 0.0))[3]


def test_features_that_nearly_coincide_do_not_spoil_a_good_direction():
    rng = np.random.default_rng(8)
    cube = NAMES.index("cube")
    for _ in range(20):
        ka, kb, turn, d, n = known_pair(rng, FAMILY["cube"], FAMILY["cube"], ("corner", "corner"), 1e-15, False)
        given = cube, ka, cube, kb, rows(turn), vector(d), HULLS
        _, normal, _, _ = road.distance_by_features(*given, vector(n))
        along = [np.dot(x, road.outermost(*given, vector(x))[:3]) for x in (normal, n)]
        assert along[0] >= along[1]


def test_where_the_descent_has_no_proof_all_features_are_measured(monkeypatch):
    """Plain Python, with a descent that stops after its first step: the answer must not change."""
    plain = {}
    for name, value in vars(road).items():
        plain[name] = getattr(value, "py_func", value)
    for name in ("hull_distance", "descend", "distance_by_features"):
        monkeypatch.setattr(road, name, plain[name])
    rng = np.random.default_rng(2)
    asked = []
    monkeypatch.setattr(
        road, "distance_by_features", lambda *given: asked.append(1) or plain["distance_by_features"](*given)
    )
    cube, rock = NAMES.index("cube"), NAMES.index("tetrahedron")
    one, two = FAMILY["cube"], FAMILY["tetrahedron"]
    ka, kb, turn, d, n = known_pair(rng, one, two, ("edge", "edge"), 0.1, False)
    given = cube, ka, rock, kb, rows(turn), vector(d), HULLS, vector(sphere_points(rng, 1)[0])
    check(road.hull_distance(*given), 0.1, n, one, two, ka, kb, turn, d)
    assert not asked
    monkeypatch.setattr(road, "STEPS", 1)
    check(road.hull_distance(*given), 0.1, n, one, two, ka, kb, turn, d)
    assert asked

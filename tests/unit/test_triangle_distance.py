"""The distance of two triangles: proofs from both sides for every kind of pair, rational arithmetic, and four methods."""

import itertools
import json
from decimal import Decimal, localcontext
from fractions import Fraction

import numba
import numpy as np
import pytest

import clast
from clast.kernels.vec import rotation_matrices
from clast.narrow import triangle_lanes, triangle_penalty
from clast.narrow.triangle_triangle import triangle_triangle

METHODS = list(triangle_lanes.METHODS)
EXACT = 1e-12  # of the size


# Pairs of every kind


def normal(rng, *shape):
    return rng.normal(size=shape)


def scales(rng, count, low, high=0.0):
    """Numbers whose logarithms are uniform."""
    return 10.0 ** rng.uniform(low, high, count)


def slivers(rng, n):
    """Triangles of any height down to rounding: needles with one short edge and caps with none, any corner first."""
    t = normal(rng, n, 3, 3)
    along = t[:, 0] + rng.uniform(0.0, 1.0, (n, 1)) * (t[:, 1] - t[:, 0])
    foot = np.where(rng.uniform(size=(n, 1)) < 0.5, along, t[:, 0])
    t[:, 2] = foot + scales(rng, n, -17, -1)[:, None] * normal(rng, n, 3)
    turn = (np.arange(3) + rng.integers(0, 3, (n, 1))) % 3
    return np.take_along_axis(t, turn[..., None], 1)


def through(rng, a, b):
    """b moved so that a point of a, often on its edge or a corner, is a point of b."""
    weight = rng.dirichlet((1, 1, 1), (2, len(a)))
    kind = rng.integers(0, 3, len(a))
    weight[0, kind == 0] = (1, 0, 0)
    weight[0, kind == 1, 2] = 0.0
    weight /= weight.sum(-1, keepdims=True)
    p, q = (np.einsum("ni,nij->nj", w, t) for w, t in zip(weight, (a, b), strict=True))
    return a, b + (p - q)[:, None]


def beside(rng, a, b, low=-16):
    """b moved along the shortest way until it is between 10^low and 0.1 m away."""
    distance, p, q = clast.triangle_distance(a, b)
    way = (p - q) / np.where(distance > 0.0, distance, 1.0)[:, None]
    return a, b + (way * (distance - scales(rng, len(a), low, -1))[:, None])[:, None]


def flat(rng, n, height):
    """Triangles in two planes at right angles to z, and the same in any direction."""
    a, b = normal(rng, n, 3, 3), normal(rng, n, 3, 3) + normal(rng, n, 1, 3)
    a[..., 2], b[..., 2] = 0.0, height
    turn = rotation_matrices(normal(rng, n, 4) / 2.0)
    turn[: n // 2] = np.eye(3)
    return np.einsum("nij,nkj->nki", turn, a), np.einsum("nij,nkj->nki", turn, b)


def edges(rng, n):
    """Two edges that all but coincide or cross at an angle down to rounding."""
    a, b = normal(rng, n, 3, 3), normal(rng, n, 3, 3)
    edge = a[:, 1] - a[:, 0]
    middle = a[:, 0] + rng.uniform(0.1, 0.9, (n, 1)) * edge + scales(rng, n, -16)[:, None] * normal(rng, n, 3)
    other = edge * rng.uniform(0.3, 3.0, (n, 1)) + scales(rng, n, -14, -1)[:, None] * normal(rng, n, 3)
    s = rng.uniform(0.0, 1.0, (n, 1))
    b[:, 0], b[:, 1] = middle - s * other, middle + (1.0 - s) * other
    return a, b


def faces(rng, n):
    """The second triangle all but in the plane of the first."""
    a = normal(rng, n, 3, 3)
    weight = rng.uniform(-1.0, 1.0, (n, 3, 3))
    weight[:, :, 2] = 1.0 - weight[:, :, 0] - weight[:, :, 1]
    return a, np.einsum("nij,njk->nik", weight, a) + scales(rng, n, -16)[:, None, None] * normal(rng, n, 3, 3)


def degenerate(rng, n):
    """Segments, points and corners in a row."""
    a, b = normal(rng, n, 3, 3), normal(rng, n, 3, 3) + normal(rng, n, 1, 3)
    for t in (a, b):
        kind = rng.integers(0, 6, n)
        t[kind == 0, 1] = t[kind == 0, 0]
        t[kind == 1, 2] = t[kind == 1, 0]
        t[kind == 2, 2] = t[kind == 2, 1]
        t[kind == 3] = t[kind == 3][:, :1]
        t[kind == 4, 2] = 0.25 * t[kind == 4, 0] + 0.75 * t[kind == 4, 1]
    return a, b


def shared(rng, n):
    """Neighbours in a mesh: one or two common corners."""
    a, b = normal(rng, n, 3, 3), normal(rng, n, 3, 3)
    b[:, 0] = a[:, 1]
    b[: n // 2, 1] = a[: n // 2, 0]
    return a, b


FAMILIES = {
    "any": lambda rng, n: (normal(rng, n, 3, 3), normal(rng, n, 3, 3) + 2.0 * normal(rng, n, 1, 3)),
    "crossing": lambda rng, n: (normal(rng, n, 3, 3), normal(rng, n, 3, 3)),
    "near": lambda rng, n: beside(rng, *FAMILIES["any"](rng, n)),
    "parallel": lambda rng, n: flat(rng, n, scales(rng, n, -16)[:, None]),
    "coplanar": lambda rng, n: flat(rng, n, 0.0),
    "lattice": lambda rng, n: tuple(rng.integers(0, 4, (2, n, 3, 3)).astype(float)),
    "shared": shared,
    "edges": edges,
    "faces": faces,
    "slivers": lambda rng, n: (slivers(rng, n), slivers(rng, n) + normal(rng, n, 1, 3)),
    "near slivers": lambda rng, n: beside(rng, slivers(rng, n), slivers(rng, n) + 2.0 * normal(rng, n, 1, 3)),
    "crossing slivers": lambda rng, n: through(rng, slivers(rng, n), slivers(rng, n)),
    "sliver through face": lambda rng, n: through(rng, slivers(rng, n), normal(rng, n, 3, 3)),
    "degenerate": degenerate,
    "near degenerate": lambda rng, n: beside(rng, *degenerate(rng, n)),
    "small": lambda rng, n: (scales(rng, n, -6)[:, None, None] * normal(rng, n, 3, 3), normal(rng, n, 3, 3)),
    "grains": lambda rng, n: (1e-5 * normal(rng, n, 3, 3), 1e-5 * (normal(rng, n, 3, 3) + normal(rng, n, 1, 3))),
    "mountains": lambda rng, n: (1e5 * normal(rng, n, 3, 3), 1e5 * (normal(rng, n, 3, 3) + normal(rng, n, 1, 3))),
}


def family(name, n, seed=0):
    return FAMILIES[name](np.random.default_rng([seed, *name.encode()]), n)


def longest(a, b):
    """The longest edge of each pair (n,)."""
    return max_of(np.linalg.norm(np.roll(t, 1, 1) - t, axis=2).max(1) for t in (a, b))


def max_of(columns):
    return np.maximum.reduce(list(columns))


# Proofs: no distance is below the extent between two triangles along any direction, and none is above that of two points.


def dot(a, b):
    return (a * b).sum(-1)


def unit(d):
    most = np.abs(d).max(-1, keepdims=True)
    d = d / np.where(most > 0.0, most, 1.0)
    return d / np.sqrt(np.maximum(dot(d, d), 1e-300))[..., None]


def upright(e, w):
    """What is left of w without its part along e, right to rounding for vectors that are all but parallel."""
    return np.cross(e, np.cross(w, e)) / np.where(dot(e, e) > 0.0, dot(e, e), 1.0)[:, None]


def least_distance(a, b):
    """A distance (n,) [m] that two triangles have at least: the best of all directions that can be the shortest way."""
    a, b = a.astype(np.longdouble), b.astype(np.longdouble)
    u, v = np.roll(a, -1, 1) - a, np.roll(b, -1, 1) - b
    directions = []
    for e in (u, v):
        directions += [np.cross(e[:, k], upright(e[:, k], e[:, (k + 1) % 3])) for k in range(3)]
    for i, j in itertools.product(range(3), range(3)):
        directions.append(np.cross(u[:, i], upright(u[:, i], v[:, j])))
        directions.append(b[:, j] - a[:, i])
        directions.append(upright(u[:, i], b[:, j] - a[:, i]))
        directions.append(upright(v[:, j], b[:, j] - a[:, i]))
    best = np.zeros(len(a), np.longdouble)
    for d in directions:
        n = unit(d)[:, None]
        x, y = dot(a - a[:, :1], n), dot(b - a[:, :1], n)
        best = max_of([best, y.min(1) - x.max(1), x.min(1) - y.max(1)])
    return best


def off_triangle(p, t):
    """A distance (n,) [m] that points have at most from their triangles."""
    p, t = p.astype(np.longdouble), t.astype(np.longdouble)
    found = []
    for k in range(3):
        u, v, w = t[:, (k + 1) % 3] - t[:, k], t[:, (k + 2) % 3] - t[:, k], p - t[:, k]
        square = np.where(dot(u, u) > 0.0, dot(u, u), 1.0)
        x, slant, f = dot(w, u) / square, dot(v, u) / square, upright(u, v)
        y = np.clip(dot(w, f) / np.where(dot(f, f) > 0.0, dot(f, f), 1.0), 0.0, 1.0)
        for height in (y, np.zeros_like(y)):
            at = np.clip(x - slant * height, 0.0, 1.0 - height) + slant * height
            found.append(w - at[:, None] * u - height[:, None] * f)
    return np.sqrt(np.minimum.reduce([dot(r, r) for r in found]))


def errors(a, b, answer):
    """How much each answer may be wrong, proved from both sides, of the size: distance, points on the triangles."""
    distance, p, q = answer
    size = max_of([longest(a, b), distance, np.full(len(a), 1e-30)])
    way = p.astype(np.longdouble) - q
    apart = np.sqrt(dot(way, way))
    low = least_distance(a, b)
    wrong = max_of([apart - low, distance - low, low - distance, abs(apart - distance)])
    return wrong / size, max_of([off_triangle(p, a), off_triangle(q, b)]) / size


@pytest.mark.parametrize("name", FAMILIES)
def test_brute_force_is_exact_for_every_kind_of_pair(name):
    a, b = family(name, 640)
    wrong, off = errors(a, b, clast.triangle_distance(a, b))
    assert wrong.max() < EXACT
    assert off.max() < EXACT


@pytest.mark.slow
def test_brute_force_is_exact_for_a_million_pairs():
    for name, seed in itertools.product(FAMILIES, range(3)):
        a, b = family(name, 20_000, seed=1 + seed)
        wrong, off = errors(a, b, clast.triangle_distance(a, b))
        assert wrong.max() < EXACT
        assert off.max() < EXACT


def exact_distance(a, b):
    """The distance of two triangles in rational arithmetic: the least over all pairs of corners, edges and faces."""

    def inner(x, y):
        return sum(i * j for i, j in zip(x, y, strict=True))

    def solve(matrix, right):
        rows = [[*row, value] for row, value in zip(matrix, right, strict=True)]
        for c in range(len(rows)):
            pivot = next((k for k in range(c, len(rows)) if rows[k][c] != 0), None)
            if pivot is None:
                return None
            rows[c], rows[pivot] = rows[pivot], rows[c]
            for k in range(len(rows)):
                if k != c and rows[k][c] != 0:
                    factor = rows[k][c] / rows[c][c]
                    rows[k] = [x - factor * y for x, y in zip(rows[k], rows[c], strict=True)]
        return [row[-1] / row[k] for k, row in enumerate(rows)]

    a, b = ([[Fraction(float(x)) for x in corner] for corner in t] for t in (a, b))
    parts = [chosen for count in (1, 2, 3) for chosen in itertools.combinations(range(3), count)]
    best = None
    for of_a, of_b in itertools.product(parts, parts):
        p, q = a[of_a[0]], b[of_b[0]]
        ways = [[x - y for x, y in zip(a[i], p, strict=True)] for i in of_a[1:]]
        ways += [[y - x for x, y in zip(b[i], q, strict=True)] for i in of_b[1:]]
        d = [x - y for x, y in zip(p, q, strict=True)]
        weight = solve([[inner(x, y) for y in ways] for x in ways], [-inner(x, d) for x in ways])
        inside = len(of_a) - 1
        if weight is None or min(weight, default=0) < 0 or max(sum(weight[:inside]), sum(weight[inside:])) > 1:
            continue
        for w, way in zip(weight, ways, strict=True):
            d = [x + w * y for x, y in zip(d, way, strict=True)]
        best = inner(d, d) if best is None else min(best, inner(d, d))
    with localcontext() as context:
        context.prec = 40
        return float((Decimal(best.numerator) / Decimal(best.denominator)).sqrt())


@pytest.mark.parametrize("name", ["any", "lattice", "edges", "faces", "crossing slivers", "near slivers", "degenerate"])
def test_brute_force_agrees_with_rational_arithmetic(name):
    a, b = family(name, 6, seed=5)
    exact = np.array([exact_distance(x, y) for x, y in zip(a, b, strict=True)])
    assert abs(clast.triangle_distance(a, b)[0] - exact).max() < 1e-14


def check_stored(a, b, stored):
    """Brute force meets stored distances to rounding, every method within its tolerance."""
    assert abs(clast.triangle_distance(a, b)[0] - stored).max() < EXACT
    for method in METHODS:
        distance = clast.triangle_distance(a, b, method=method, tolerance=1e-7)[0]
        assert (abs(distance - stored) / longest(a, b)).max() < 1e-7


def test_the_stored_pairs(own_data):
    pairs = json.loads((own_data / "triangle_pairs.json").read_text())
    a, b, stored = (np.array([pair[key] for pair in pairs]) for key in ("a", "b", "distance"))
    assert len(stored) == 66
    check_stored(a, b, stored)


def test_the_published_pairs(reference_data):
    pairs = json.loads((reference_data / "collision" / "triangle_pairs.json").read_text())
    a, b, stored = (np.array([pair[key] for pair in pairs]) for key in ("T1", "T2", "brute"))
    assert len(stored) == 200
    check_stored(a, b, stored)


# The other methods


@pytest.mark.parametrize("method", METHODS[1:])
def test_every_method_keeps_the_tolerance(method):
    for name in FAMILIES:
        a, b = family(name, 320, seed=2)
        exact = clast.triangle_distance(a, b)[0]
        for tolerance in (1e-3, 1e-6, 1e-10, 0.0):
            distance, p, q = clast.triangle_distance(a, b, method=method, tolerance=tolerance)
            size = max_of([longest(a, b), distance])
            assert (abs(distance - exact) <= (tolerance + EXACT) * size).all(), (name, tolerance)
            assert (off_triangle(p, a) <= EXACT * size).all(), name
            assert (off_triangle(q, b) <= EXACT * size).all(), name
            assert abs(np.linalg.norm(p - q, axis=1) - distance).max() <= EXACT * size.max(), name


def test_newtons_method_alone_is_within_the_tolerance_where_it_says_so():
    lane = np.empty((triangle_lanes.ROWS, triangle_lanes.LANES))
    tolerance, moving = 1e-6, []
    for name in FAMILIES:
        a, b = family(name, triangle_lanes.LANES, seed=3)
        exact, size = clast.triangle_distance(a, b)[0], longest(a, b)
        lane[:9], lane[9:18] = a.reshape(-1, 9).T, b.reshape(-1, 9).T
        triangle_penalty.start_lanes(lane)
        moving.append([])
        for _ in range(8):
            triangle_penalty.newton_lanes(lane)
            triangle_penalty.prove_lanes(lane, tolerance)
            done = lane[triangle_penalty.MOVES] == 0.0
            distance = np.sqrt(lane[triangle_penalty.ANSWER])
            assert (abs(distance - exact)[done] <= tolerance * size[done]).all(), name
            moving[-1].append(int((~done).sum()))
    # It does prove pairs, most of the ordinary ones within four steps, and does not claim all of them.
    assert moving[0][3] < 16
    assert sum(row[3] for row in moving) > 100
    assert all(later <= earlier for row in moving for earlier, later in itertools.pairwise(row))


def test_without_a_tolerance_every_method_is_brute_force():
    a, b = family("near", 500)
    exact = clast.triangle_distance(a, b)
    for method in METHODS[1:]:
        for one, other in zip(exact, clast.triangle_distance(a, b, method=method, tolerance=0.0), strict=True):
            assert abs(one - other).max() < 1e-15


@pytest.mark.parametrize("method", ["brute", "penalty", "hybrid-pairs"])
def test_bits_depend_neither_on_neighbours_nor_on_threads(method):
    a, b = (np.concatenate(column) for column in zip(*(family(name, 50) for name in FAMILIES), strict=True))
    order = np.random.default_rng(0).permutation(len(a))[:-7]
    threads = numba.get_num_threads()
    try:
        numba.set_num_threads(numba.config.NUMBA_NUM_THREADS)
        answer = clast.triangle_distance(a, b, method=method)
        numba.set_num_threads(1)
        again = clast.triangle_distance(a[order], b[order], method=method)
    finally:
        numba.set_num_threads(threads)
    for one, other in zip(answer, again, strict=True):
        assert np.array_equal(one[order], other)


# Answers that are known


def test_one_pair_at_a_time_gives_the_same():
    for name in ("any", "crossing", "slivers", "degenerate"):
        a, b = family(name, 40)
        distance, p, q = clast.triangle_distance(a, b)
        for k in range(len(a)):
            square, at, to, crossing = triangle_triangle(*(tuple(x) for x in a[k]), *(tuple(x) for x in b[k]))
            assert abs(np.sqrt(square) - distance[k]) < 1e-15
            assert max(abs(at - p[k]).max(), abs(to - q[k]).max()) < 1e-14
            assert crossing == 0.0 or (distance[k] == 0.0 and (p[k] == q[k]).all())


FLOOR = [[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]


@pytest.mark.parametrize(
    ("other", "distance", "p", "q"),
    [
        ([[0.2, 0.2, 0.5], [0.2, 0.3, 1.0], [0.3, 0.2, 1.0]], 0.5, (0.2, 0.2, 0.0), (0.2, 0.2, 0.5)),
        ([[2.0, 0.0, 0.0], [3.0, 0.0, 0.0], [2.0, -1.0, 0.0]], 1.0, (1.0, 0.0, 0.0), (2.0, 0.0, 0.0)),
        ([[0.5, -0.3, 0.4], [0.5, -0.3, -0.4], [0.5, -1.0, 0.0]], 0.3, (0.5, 0.0, 0.0), (0.5, -0.3, 0.0)),
        ([[0.5, 0.5, 0.3]] * 3, 0.3, (0.5, 0.5, 0.0), (0.5, 0.5, 0.3)),
        # Through the face along x = 0.2, y from 0.1 to 0.3: the middle of what both have in common.
        ([[0.2, 0.1, -1.0], [0.2, 0.3, -1.0], [0.2, 0.2, 1.0]], 0.0, (0.2, 0.2, 0.0), (0.2, 0.2, 0.0)),
    ],
)
def test_pairs_whose_answer_is_plain(other, distance, p, q):
    for method in METHODS:
        found = clast.triangle_distance([FLOOR], [other], method=method)
        assert found[0][0] == pytest.approx(distance, abs=2e-6)
        assert found[1][0] == pytest.approx(p, abs=2e-6)
        assert found[2][0] == pytest.approx(q, abs=2e-6)


def test_triangles_that_lie_in_each_other_are_not_apart():
    a = np.array([FLOOR] * 3)
    inside, across = a[0] * 0.2 + [0.1, 0.1, 0.0], a[0] * [1.0, -1.0, 1.0] + [0.0, 0.5, 0.0]
    distance, p, q = clast.triangle_distance(a, [inside, across, FLOOR])
    assert distance.max() < 1e-15
    assert np.array_equal(p, q)


def test_only_pairs_that_cross_are_marked_in_the_end():
    lane = np.zeros((triangle_lanes.ROWS, triangle_lanes.LANES))
    a, b = family("crossing", triangle_lanes.LANES)
    lane[:9], lane[9:18] = a.reshape(-1, 9).T, b.reshape(-1, 9).T
    exact = clast.triangle_distance(a, b)
    result = np.full((triangle_lanes.RESULT, triangle_lanes.LANES), 7.0)
    result[7] = np.where(np.arange(triangle_lanes.LANES) < 60, triangle_penalty.MAYBE, triangle_penalty.APART)
    triangle_lanes.cross_lanes(lane, result)
    crossing = (exact[0] == 0.0) & (np.arange(triangle_lanes.LANES) < 60)
    assert 10 < crossing.sum() < 50
    assert np.array_equal(result[7], crossing)
    assert np.array_equal(result[0], np.where(crossing, 0.0, 7.0))
    assert np.allclose(result[1:4, crossing].T, exact[1][crossing], atol=1e-14)


def test_no_pairs():
    distance, p, q = clast.triangle_distance(np.empty((0, 3, 3)), np.empty((0, 3, 3)))
    assert distance.shape == (0,)
    assert p.shape == q.shape == (0, 3)


@pytest.mark.parametrize(
    ("arguments", "options", "error", "message"),
    [
        (
            ([FLOOR], [FLOOR]),
            {"method": "hybrid"},
            ValueError,
            "unknown method of triangle_distance 'hybrid'; did you mean",
        ),
        (([FLOOR], [FLOOR, FLOOR]), {}, ValueError, "a has 1 triangles and b has 2; give as many"),
        ((FLOOR, [FLOOR]), {}, ValueError, r"a must have shape \(n, 3, 3\).* got \(3, 3\); use a\[None\]"),
        (([FLOOR], np.zeros((1, 9))), {}, ValueError, r"b must have shape \(n, 3, 3\).* got \(1, 9\)"),
        (([FLOOR], "here"), {}, TypeError, "b must be numbers .* got str"),
        (([FLOOR], [FLOOR]), {"tolerance": -1.0}, ValueError, "tolerance must be a number of 0 or more, got -1.0"),
        (([FLOOR], [FLOOR]), {"tolerance": "low"}, TypeError, "tolerance must be a number, got 'low'"),
    ],
)
def test_wrong_arguments_are_named(arguments, options, error, message):
    with pytest.raises(error, match=message):
        clast.triangle_distance(*arguments, **options)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1e60])
def test_coordinates_that_are_no_numbers_are_named(value):
    a, b = (np.array(column) for column in family("any", 70))
    b[66, 1, 2] = value
    with pytest.raises(
        ValueError, match=rf"b\[66, 1, 2\] is {value}; every coordinate must be a number".replace("+", r"\+")
    ):
        clast.triangle_distance(a, b)

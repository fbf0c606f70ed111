"""The common normal of two ellipsoids: closed forms, a proof that nothing is better, and bits that do not move."""

import math

import numpy as np
import pytest
from scipy.optimize import brentq

from clast.narrow import common_normal as opm
from clast.shapes import ellipsoid_form as forms


def rotations(rng, count):
    """Random rotation matrices (n,3,3) and their quaternions (n,4)."""
    q = rng.normal(size=(count, 4))
    q /= np.linalg.norm(q, axis=1)[:, None]
    w, x, y, z = q.T
    rows = [
        [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
        [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
        [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
    ]
    return np.moveaxis(np.array(rows), 2, 0), q


def six(matrix):
    """Symmetric matrices (n,3,3) as forms (n,6)."""
    places = (0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2)
    return np.stack([matrix[:, i, j] for i, j in places], axis=1)


def forms_of(turn, size):
    return six(np.einsum("nij,nj,nkj->nik", turn, size**2, turn))


def shortest_radius(size):
    return size.min(axis=1) ** 2 / np.maximum(size.max(axis=1), 1e-300)


def support(m, n):
    """h of each form (n,6) in each direction (k,3): (n,k)."""
    x, y, z = n.T
    square = np.stack([x * x, y * y, z * z, 2 * x * y, 2 * x * z, 2 * y * z])
    return np.sqrt(np.maximum(m @ square, 0.0))


SIZES = {
    "ordinary": lambda rng, n: (rng.uniform(0.1, 1.0, (n, 3)), rng.uniform(0.1, 1.0, (n, 3))),
    "needles": lambda rng, n: (np.tile([1.0, 0.01, 0.01], (n, 1)), np.tile([0.02, 0.7, 0.007], (n, 1))),
    "discs": lambda rng, n: (np.tile([1.0, 1.0, 0.01], (n, 1)), np.tile([0.01, 0.6, 0.8], (n, 1))),
    "needle and disc": lambda rng, n: (np.tile([1.0, 0.01, 0.01], (n, 1)), np.tile([1.0, 0.9, 0.01], (n, 1))),
    "small in large": lambda rng, n: (rng.uniform(0.3, 1.0, (n, 3)), rng.uniform(3e-4, 1e-3, (n, 3))),
    "nearly round": lambda rng, n: (1.0 + 1e-5 * rng.normal(size=(n, 3)), 0.3 + 1e-6 * rng.normal(size=(n, 3))),
    "sphere": lambda rng, n: (rng.uniform(0.1, 1.0, (n, 3)), np.full((n, 3), 0.4)),
    "point": lambda rng, n: (rng.uniform(0.1, 1.0, (n, 3)), np.zeros((n, 3))),
}


def pairs(kind, count, seed=1, reach=1.2):
    """Pairs of one kind, a sixth of them apart, down to concentric: d, m1, m2, least, and their size."""
    rng = np.random.default_rng(seed)
    first, second = SIZES[kind](rng, count)
    m1, m2 = forms_of(rotations(rng, count)[0], first), forms_of(rotations(rng, count)[0], second)
    u = rng.normal(size=(count, 3))
    u /= np.linalg.norm(u, axis=1)[:, None]
    edge = np.array(
        [support(m1[i : i + 1], u[i : i + 1])[0, 0] + support(m2[i : i + 1], u[i : i + 1])[0, 0] for i in range(count)]
    )
    d = u * (edge * rng.uniform(0.0, reach, count))[:, None]
    d[::50] = 0.0
    return d, m1, m2, shortest_radius(first) + shortest_radius(second), first.max(axis=1) + second.max(axis=1)


def value(d, m1, m2, n):
    """F(n) of each pair at its own normal (n,3)."""
    own = [
        support(m1[i : i + 1], n[i : i + 1])[0, 0] + support(m2[i : i + 1], n[i : i + 1])[0, 0] for i in range(len(d))
    ]
    return (n * d).sum(axis=1) - own


def spread(count):
    """Unit vectors (count,3) all over the sphere."""
    k = np.arange(count)
    z = 1.0 - (2 * k + 1) / count
    r, angle = np.sqrt(1.0 - z * z), math.pi * (3.0 - math.sqrt(5.0)) * k
    return np.stack([r * np.cos(angle), r * np.sin(angle), z], axis=1)


TABLE = {  # Pazouki et al. 2012, Table 1: semi-axes of both along the axes of the world, d, gap, direction
    1: ((3, 1, 2), (6, 2, 4), (0, 0, 0), -3.0, (0, 1, 0)),
    2: ((1, 3, 2), (12, 4, 8), (0, 0, 0), -7.0, (0, 1, 0)),
    3: ((3, 1, 2), (3, 1, 2), (5.8, 0, 0), -0.2, (1, 0, 0)),
    4: ((1, 3, 2), (3, 1, 2), (4.2, 0, 0), 0.2, (1, 0, 0)),
    5: ((1, 3, 2), (3, 1, 2), (3.8, 0, 0), -0.2, (1, 0, 0)),
    6: ((3, 1, 2), (3, 1, 2), (6.0, 0, 0), 0.0, (1, 0, 0)),
}


@pytest.mark.parametrize("case", TABLE)
def test_poses_of_table_1(case):
    first, second, d, gap, direction = TABLE[case]
    a, b = np.array([first], float), np.array([second], float)
    one = np.eye(3)[None]
    normal, found = opm.common_normals(
        np.array([d], float), forms_of(one, a), forms_of(one, b), shortest_radius(a) + shortest_radius(b)
    )
    assert found[0] == pytest.approx(gap, abs=1e-12)
    sign = -1.0 if d == (0, 0, 0) and normal[0] @ direction < 0.0 else 1.0
    np.testing.assert_allclose(sign * normal[0], direction, atol=1e-12)


@pytest.mark.parametrize("kind", SIZES)
def test_gap_is_f_at_the_normal_and_no_direction_is_better(kind):
    d, m1, m2, least, size = pairs(kind, 400)
    normal, gap = opm.common_normals(d, m1, m2, least)
    np.testing.assert_allclose(np.linalg.norm(normal, axis=1), 1.0, rtol=1e-14)
    np.testing.assert_allclose(value(d, m1, m2, normal), gap, atol=1e-14 * size.max())
    n = spread(2000)
    every = d @ n.T - support(m1, n) - support(m2, n)
    assert np.all(every.max(axis=1) <= gap + 1e-12 * size)


@pytest.mark.parametrize("kind", ["ordinary", "needles", "discs", "needle and disc", "point"])
def test_deep_pairs_are_climbed_from_everywhere_without_finding_better(kind):
    d, m1, m2, least, size = pairs(kind, 60, seed=5, reach=1.0)
    _, gap = opm.common_normals(d, m1, m2, least)
    for i in range(len(d)):
        pose = tuple(d[i]), tuple(m1[i]), tuple(m2[i])
        best = max(opm.climb(*pose, tuple(n))[1] for n in spread(100))
        assert best <= gap[i] + 1e-12 * size[i]


def test_spheres_and_points_have_closed_forms():
    rng = np.random.default_rng(3)
    r1, r2 = rng.uniform(0.1, 1.0, 100), np.where(np.arange(100) % 2, rng.uniform(0.1, 1.0, 100), 0.0)
    ball = np.array([1.0, 1.0, 1.0, 0.0, 0.0, 0.0])
    d = rng.normal(size=(100, 3)) * 10.0 ** rng.uniform(-9, 1, (100, 1))
    d[::10] = 0.0
    normal, gap = opm.common_normals(d, np.outer(r1**2, ball), np.outer(r2**2, ball), r1 + r2)
    distance = np.linalg.norm(d, axis=1)
    np.testing.assert_allclose(gap, distance - r1 - r2, atol=1e-14)
    apart = distance > 0.0
    np.testing.assert_allclose(normal[apart], d[apart] / distance[apart, None], atol=1e-6)
    np.testing.assert_allclose(
        normal[distance > 1e-3], (d / np.maximum(distance, 1e-9)[:, None])[distance > 1e-3], atol=1e-11
    )


def test_a_point_in_an_ellipsoid_is_as_deep_as_the_root_of_its_equation_says():
    """The nearest surface point is x_i = a_i^2 p_i / (a_i^2 + t) with the t above -c^2 that puts it on the surface."""
    rng = np.random.default_rng(4)
    for _ in range(40):
        a, p = rng.uniform(0.2, 1.0, 3), rng.normal(size=3)
        p *= rng.uniform(0.05, 0.95) / math.sqrt(((p / a) ** 2).sum())
        t = brentq(
            lambda t, a=a, p=p: ((a * p / (a**2 + t)) ** 2).sum() - 1.0, -(a.min() ** 2) * (1 - 1e-12), 0.0, xtol=1e-15
        )
        depth = np.linalg.norm(a**2 * p / (a**2 + t) - p)
        form = forms_of(np.eye(3)[None], a[None])
        _, gap = opm.common_normals(p[None], form, np.zeros((1, 6)), shortest_radius(a[None]))
        assert gap[0] == pytest.approx(-depth, abs=1e-12)


def test_swapping_the_bodies_gives_the_mirror_image():
    for kind in ("ordinary", "needle and disc", "small in large"):
        d, m1, m2, least, _ = pairs(kind, 300, seed=2)
        normal, gap = opm.common_normals(d, m1, m2, least)
        mirrored, same = opm.common_normals(-d, m2, m1, least)
        assert np.array_equal(gap, same)
        apart = np.abs(d).max(axis=1) > 0.0
        assert np.array_equal(normal[apart], -mirrored[apart])


def test_a_pair_gets_the_same_bits_in_any_lane_and_company():
    d, m1, m2, least, _ = pairs("ordinary", 5 * opm.LANES + 3, seed=7)
    normal, gap = opm.common_normals(d, m1, m2, least)
    order = np.random.default_rng(1).permutation(len(d))[: 3 * opm.LANES + 5]
    again, other = opm.common_normals(d[order], m1[order], m2[order], least[order])
    assert np.array_equal(gap[order], other)
    assert np.array_equal(normal[order], again)


def test_one_pair_alone_gets_what_lanes_give():
    for kind in SIZES:
        d, m1, m2, least, size = pairs(kind, 60, seed=8)
        _, gap = opm.common_normals(d, m1, m2, least)
        for i in range(len(d)):
            n, alone = opm.common_normal(tuple(d[i]), tuple(m1[i]), tuple(m2[i]), least[i])
            assert alone == pytest.approx(gap[i], abs=1e-14 * size[i])
            assert math.hypot(*n) == pytest.approx(1.0, abs=1e-14)


def block_of(d, m1, m2, least, start):
    """Lanes that hold the first pairs, with a start where one is given."""
    lane = np.full((opm.ROWS, opm.LANES), np.nan)
    used = len(d)
    lane[opm.D : opm.D + 3, :used] = d.T
    lane[opm.M1 : opm.M1 + 6, :used] = m1.T
    lane[opm.M2 : opm.M2 + 6, :used] = m2.T
    lane[opm.LEAST, :used] = least
    lane[opm.STATE, :used] = 0.0 if start is None else 1.0
    if start is not None:
        lane[opm.N : opm.N + 3, :used] = start.T
    return lane


def test_a_start_near_or_far_from_the_answer_leads_to_it_and_is_never_believed_where_it_does_not():
    rng = np.random.default_rng(11)
    d, m1, m2, least, size = (column[1:] for column in pairs("ordinary", opm.LANES, seed=9))
    normal, gap = opm.common_normals(d, m1, m2, least)
    for start in (normal, -normal, normal + 0.01 * rng.normal(size=normal.shape), rng.normal(size=normal.shape)):
        start = start / np.linalg.norm(start, axis=1)[:, None]
        lane = block_of(d, m1, m2, least, start)
        opm.solve_lanes(lane, len(d))
        sure = lane[opm.STATE, : len(d)] == 1.0
        np.testing.assert_allclose(lane[opm.GAP, : len(d)][sure], gap[sure], atol=1e-14)
        if start is normal:
            assert sure.sum() > 0.5 * len(d)


def test_a_start_is_used_and_a_stationary_point_that_is_no_maximum_is_refused():
    ball = np.array([[1.0, 1.0, 1.0, 0.0, 0.0, 0.0]])
    for sign, state in ((1.0, 1.0), (-1.0, 0.0)):
        lane = block_of(np.array([[0.0, 0.0, 1.5]]), ball, ball, np.array([2.0]), np.array([[0.0, 0.0, sign]]))
        opm.solve_lanes(lane, 1)
        assert lane[opm.STATE, 0] == state
    n, gap = opm.common_normal_from((0.0, 0.0, 1.5), tuple(ball[0]), tuple(ball[0]), 2.0, (0.0, 0.0, -1.0))
    np.testing.assert_allclose((*n, gap), (0.0, 0.0, 1.0, -0.5), atol=1e-12)


def test_nearly_coincident_centres_do_not_mislead():
    """An oblate and a prolate spheroid with one axis: the answer is along it or across it, whichever is less deep."""
    rng = np.random.default_rng(15)
    count = 200
    turn = rotations(rng, count)[0]
    first, second = rng.uniform(0.2, 1.0, (count, 2)), rng.uniform(0.2, 1.0, (count, 2))
    m1, m2 = forms_of(turn, first[:, [0, 0, 1]]), forms_of(turn, second[:, [0, 0, 1]])
    least = shortest_radius(first) + shortest_radius(second)
    d = 1e-12 * rng.normal(size=(count, 3))
    _, gap = opm.common_normals(d, m1, m2, least)
    # F lies between its values on the axis and across it, unless the sum bulges inwards between them: then it is more.
    ends = -(first + second).min(axis=1)
    slant = np.linspace(0.0, 0.5 * math.pi, 2001)[:, None]
    between = [np.hypot(np.cos(slant) * s[:, 1], np.sin(slant) * s[:, 0]) for s in (first, second)]
    np.testing.assert_allclose(gap, -(between[0] + between[1]).min(axis=0), atol=1e-6)
    assert np.all(gap >= ends - 1e-11)


def test_where_the_outer_ellipsoid_says_no_the_reflection_is_better_and_the_inner_one_never_says_yes():
    d, m1, m2, least, size = pairs("ordinary", 300, seed=12, reach=0.9)
    _, gap = opm.common_normals(d, m1, m2, least)
    refused = believed = 0
    for i in range(len(d)):
        pose = tuple(d[i]), tuple(m1[i]), tuple(m2[i])
        for n in spread(12):
            n, f = opm.climb(*pose, tuple(n))
            best = f > gap[i] - 1e-10 * size[i]
            wrong, other = opm.reflection(*pose, n, f)
            if opm.proved(*pose, n, f):
                assert best
                believed += 1
            if wrong and f < gap[i] - 1e-6:
                assert value(d[i : i + 1], m1[i : i + 1], m2[i : i + 1], np.array([other]))[0] > f
                refused += 1
    assert believed > 1000
    assert refused > 20


def test_lengths_in_any_unit_give_the_same_answer():
    d, m1, m2, least, _ = pairs("ordinary", 100, seed=13)
    normal, gap = opm.common_normals(d, m1, m2, least)
    for unit in (2.0**-40, 2.0**40):
        again, scaled = opm.common_normals(unit * d, unit**2 * m1, unit**2 * m2, unit * least)
        assert np.array_equal(scaled, unit * gap)
        assert np.array_equal(again, normal)


def test_form_support_and_radii():
    rng = np.random.default_rng(14)
    turn, q = rotations(rng, 20)
    size = rng.uniform(0.1, 1.0, (20, 3))
    for i in range(20):
        m = forms.form(tuple(q[i]), tuple(size[i]))
        np.testing.assert_allclose(m, forms_of(turn[i : i + 1], size[i : i + 1])[0], atol=1e-15)
        assert forms.least_curvature(tuple(size[i])) == pytest.approx(size[i].min() ** 2 / size[i].max())
        # At the end of axis k the principal radii of curvature are the squares of the others over this one.
        for k in range(3):
            n, t, u = (tuple(turn[i, :, j % 3]) for j in (k, k + 1, k + 2))
            assert forms.support(m, n) == pytest.approx(size[i, k])
            tt, tu, uu = forms.radii(m, n, t, u)
            others = size[i, (k + 1) % 3] ** 2 / size[i, k], size[i, (k + 2) % 3] ** 2 / size[i, k]
            np.testing.assert_allclose((tt, tu, uu), (others[0], 0.0, others[1]), atol=1e-13)
    for n in (*spread(50), (0.0, 0.0, 1.0), (0.0, 0.0, -1.0)):
        frame = np.array([*forms.tangents(tuple(n)), n])
        np.testing.assert_allclose(frame @ frame.T, np.eye(3), atol=1e-15)

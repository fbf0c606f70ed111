"""Nearest points of friction cones: closed forms, and the properties that make a point the nearest one."""

import math

import numpy as np
import pytest

from clast.dvi.projections import height_of, project3, project6, solve3
from clast.kernels.vec import matrix_vector

UP = (0.0, 0.0, 1.0)


def unit(rng):
    n = rng.normal(size=3)
    return n / np.linalg.norm(n)


def inside(rng, normal, limits):
    """A random point of the cone, often on its surface: six numbers."""
    mu, tension, roll, twist = limits
    if mu < 0.0:
        return np.concatenate([rng.uniform(-tension, tension) * normal, np.zeros(3)])
    height = rng.exponential() * 2.0
    directions = rng.normal(size=(2, 3))
    across = [d - d.dot(normal) * normal for d in directions]
    across = [a / np.linalg.norm(a) for a in across]
    part = np.minimum(rng.uniform(0.0, 1.5, 3), 1.0) * height
    return np.concatenate(
        [
            (height - tension) * normal + mu * part[0] * across[0],
            roll * part[1] * across[1] + twist * part[2] * rng.choice([-1.0, 1.0]) * normal,
        ]
    )


def outside_by(x, normal, limits):
    """How far beyond its limits a point of six numbers is."""
    mu, tension, roll, twist = limits
    a, spin = x[:3].dot(normal), x[3:].dot(normal)
    slide = np.linalg.norm(x[:3] - a * normal)
    if mu < 0.0:
        return max(abs(a) - tension, slide, np.linalg.norm(x[3:]))
    height = a + tension
    tumble = np.linalg.norm(x[3:] - spin * normal)
    return max(-height, slide - mu * height, tumble - roll * height, abs(spin) - twist * height)


def weighted(x, y, normal, ratio):
    """The scalar product with weight 1 along the normal and `ratio` for all the rest."""
    return ratio * x.dot(y) + (1.0 - ratio) * x[:3].dot(normal) * y[:3].dot(normal)


def nearest(x, normal, limits, ratio):
    if limits[2:] == (0.0, 0.0):
        return np.concatenate([project3(tuple(x[:3]), tuple(normal), limits[0], limits[1], ratio), np.zeros(3)])
    return np.concatenate(project6(tuple(x[:3]), tuple(x[3:]), tuple(normal), *limits, ratio))


LIMITS = [
    (0.5, 0.0, 0.0, 0.0),
    (0.0, 0.0, 0.0, 0.0),
    (1.2, 0.7, 0.0, 0.0),
    (-1.0, 0.6, 0.0, 0.0),
    (0.5, 0.0, 0.1, 0.02),
    (0.4, 0.3, 0.7, 0.0),
    (0.0, 0.0, 0.3, 0.2),
    (-1.0, 0.6, 0.1, 0.1),
]


def test_inside_polar_and_surface_as_by_hand():
    assert project3((0.1, 0.2, 1.0), UP, 0.5, 0.0, 1.0) == (0.1, 0.2, 1.0)
    assert project3((0.3, 0.0, -1.0), UP, 0.5, 0.0, 1.0) == (0.0, 0.0, 0.0)
    # On the line from the apex at slope mu, the foot of the perpendicular: height (1 + 0.5 * 3) / (1 + 0.25) = 2.
    assert project3((3.0, 0.0, 1.0), UP, 0.5, 0.0, 1.0) == pytest.approx((1.0, 0.0, 2.0), abs=1e-15)
    # The same with tangents that weigh four times as much: (1 + 4 * 0.5 * 3) / (1 + 4 * 0.25) = 3.5.
    assert project3((3.0, 0.0, 1.0), UP, 0.5, 0.0, 4.0) == pytest.approx((1.75, 0.0, 3.5), abs=1e-15)


def test_without_friction_only_the_normal_part_is_left():
    assert project3((3.0, -2.0, 1.0), UP, 0.0, 0.0, 1.0) == (0.0, 0.0, 1.0)
    assert project3((0.0, 0.0, -1.0), UP, 0.0, 0.0, 1.0) == (0.0, 0.0, 0.0)


def test_cohesion_moves_the_apex():
    assert project3((0.0, 0.0, -0.5), UP, 0.5, 0.7, 1.0) == (0.0, 0.0, -0.5)
    assert project3((0.0, 0.0, -2.0), UP, 0.5, 0.7, 1.0) == (0.0, 0.0, -0.7)


def test_a_bound_on_both_sides():
    for a, expected in ((5.0, 2.0), (-5.0, -2.0), (1.5, 1.5)):
        assert project3((0.3, 0.0, a), UP, -1.0, 2.0, 1.0) == pytest.approx((0.0, 0.0, expected), abs=0)


@pytest.mark.parametrize("ratio", [1.0, 3.5, 0.02])
@pytest.mark.parametrize("limits", LIMITS, ids=str)
def test_no_point_of_the_cone_is_nearer(limits, ratio):
    """p is nearest to x exactly if it lies in the cone and no point k of it has (x - p).(k - p) > 0."""
    rng = np.random.default_rng(3)
    for _ in range(60):
        normal = unit(rng)
        x = rng.normal(size=6) * rng.choice([0.1, 1.0, 10.0], size=6)
        if limits[2:] == (0.0, 0.0):
            x[3:] = 0.0
        p = nearest(x, normal, limits, ratio)
        assert outside_by(p, normal, limits) < 1e-13
        for _ in range(40):
            k = inside(rng, normal, limits)
            assert outside_by(k, normal, limits) < 1e-13
            assert weighted(x - p, k - p, normal, ratio) < 1e-12
        # Its own multiples from the apex are points of the cone, too.
        apex = np.concatenate([-limits[1] * normal, np.zeros(3)])
        if limits[0] >= 0.0:
            assert abs(weighted(x - p, p - apex, normal, ratio)) < 1e-11


@pytest.mark.parametrize("limits", LIMITS, ids=str)
def test_projections_stay_and_bring_together(limits):
    rng = np.random.default_rng(4)
    for _ in range(100):
        normal = unit(rng)
        x, y = rng.normal(size=(2, 6)) * 3.0
        if limits[2:] == (0.0, 0.0):
            x[3:] = y[3:] = 0.0
        p, q = nearest(x, normal, limits, 1.0), nearest(y, normal, limits, 1.0)
        assert np.abs(nearest(p, normal, limits, 1.0) - p).max() < 1e-14
        assert np.linalg.norm(p - q) <= np.linalg.norm(x - y) * (1.0 + 1e-14)


def test_an_impulse_inside_is_not_touched_at_all():
    rng = np.random.default_rng(5)
    for _ in range(100):
        normal = unit(rng)
        x = tuple(0.9 * inside(rng, normal, (0.5, 0.0, 0.0, 0.0))[:3] + 0.1 * normal)
        assert project3(x, tuple(normal), 0.5, 0.0, 2.0) == x


def test_four_steps_find_the_height_for_any_order_of_kinks():
    """Against bisection of the derivative; about one draw in 200 needs all four steps."""
    rng = np.random.default_rng(10)
    x, c = 10.0 ** rng.uniform(-2.0, 2.0, (4000, 3)), 10.0 ** rng.uniform(-2.0, 1.0, (4000, 3))
    top, ratio = rng.normal(size=4000) * 10.0, 10.0 ** rng.uniform(-1.0, 2.0, 4000)
    low, high = np.zeros(4000), np.full(4000, 1e5)
    for _ in range(100):
        middle = 0.5 * (low + high)
        beyond = np.maximum(x - c * middle[:, None], 0.0)
        rising = middle - top - ratio * (c * beyond).sum(axis=1) > 0.0
        low, high = np.where(rising, low, middle), np.where(rising, middle, high)
    found = [height_of(h, *np.column_stack([a, b]).ravel(), r) for h, a, b, r in zip(top, x, c, ratio, strict=True)]
    assert np.abs(np.array(found) - low).max() < 1e-9 * low.max()
    assert np.abs(np.array(found) / np.maximum(low, 1e-9) - 1.0)[low > 1e-6].max() < 1e-9


def test_six_numbers_without_rolling_are_three():
    rng = np.random.default_rng(6)
    for _ in range(50):
        normal, x = unit(rng), rng.normal(size=3)
        force, couple = project6(tuple(x), (0.0, 0.0, 0.0), tuple(normal), 0.5, 0.1, 0.3, 0.2, 1.0)
        assert force == pytest.approx(project3(tuple(x), tuple(normal), 0.5, 0.1, 1.0), abs=1e-14)
        assert couple == (0.0, 0.0, 0.0)


def test_a_cone_of_its_own_is_solved():
    """The impulse that one cone's problem returns has a velocity in the dual cone, and they do no work together."""
    rng = np.random.default_rng(7)
    for _ in range(50):
        half = rng.normal(size=(3, 3))
        block = half @ half.T + 0.3 * np.eye(3)
        normal, u, mu = unit(rng), rng.normal(size=3), 0.6
        along = normal @ block @ normal
        across = (np.trace(block) - along) / 2.0
        rows = tuple(map(tuple, block))
        x = solve3((0.0, 0.0, 0.0), tuple(u), rows, tuple(normal), mu, 0.0, along, across, 500)
        after = u + np.array(matrix_vector(rows, x))
        un = after.dot(normal)
        assert outside_by(np.concatenate([x, np.zeros(3)]), normal, (mu, 0.0, 0.0, 0.0)) < 1e-14
        assert mu * math.sqrt(max(after.dot(after) - un * un, 0.0)) <= un + 1e-7
        assert abs(after.dot(x)) < 1e-7

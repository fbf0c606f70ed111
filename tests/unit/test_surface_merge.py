"""Contact points that are one: greedy by depth."""

import numpy as np

from clast.narrow.mesh_merge import merge_points
from clast.narrow.mesh_points import MeasuredPoints


def merged(gap, point, reach, limit=0.0, first=0, last=None, flat=0):
    """kept (k,) of candidates of one manifold, rows first up to last; flat: of corners and crossings."""
    none = np.zeros(len(gap), np.int8)
    points = MeasuredPoints(
        np.asarray(gap, float),
        np.asarray(point, float),
        np.zeros((len(gap), 3)),
        none,
        none + np.asarray(flat, np.int8),
    )
    kept = np.full(len(gap), 9, np.int8)
    merge_points(first, len(gap) if last is None else last, points, limit, reach, kept)
    return kept.tolist()


def line(*x):
    """Points on a line."""
    return np.column_stack([x, np.zeros(len(x)), np.zeros(len(x))])


def test_deepest_first():
    """The deepest stays, the first of equals; what is near a kept one goes, what is near only such stays."""
    assert merged([-1.0, -3.0, -2.0], line(0.0, 0.9, 1.8), 1.0) == [0, 1, 0]
    assert merged([-1.0, -3.0, -2.0], line(-0.1, 0.9, 1.8), 1.0) == [1, 1, 0]
    assert merged([-1.0, -1.0, -1.0], line(0.0, 0.5, 1.0), 0.7) == [1, 0, 1]
    assert merged([-1.0, 0.0, np.inf, np.nan], line(0.0, 5.0, 9.0, 12.0), 1.0) == [1, 0, 0, 0]
    assert merged([-1.0, 0.5], line(0.0, 5.0), 1.0, limit=1.0) == [1, 1]


def test_corners_and_crossings_stay():
    """They go only where they are told twice; other points near them go as before."""
    assert merged([-1.0, -3.0, -2.0], line(0.0, 0.5, 0.9), 1.0, flat=1) == [1, 1, 1]
    assert merged([-1.0, -3.0, -2.0], line(0.501, 0.5, 0.9), 1.0, flat=1) == [0, 1, 1]
    assert merged([-1.0, -3.0, -2.0], line(0.0, 0.5, 0.9), 1.0, flat=[0, 1, 0]) == [0, 1, 0]


def test_against_a_plain_loop():
    """The same as sorting by depth and keeping what is not near a kept one."""
    rng = np.random.default_rng(0)
    gap, point = rng.uniform(-1.0, 0.2, 300), rng.uniform(0.0, 1.0, (300, 3))
    kept = []
    for k in np.argsort(gap, kind="stable"):
        if gap[k] < 0.0 and all(np.linalg.norm(point[k] - point[j]) >= 0.2 for j in kept):
            kept.append(k)
    expected = np.zeros(300, int)
    expected[kept] = 1
    assert merged(gap, point, 0.2) == expected.tolist()


def test_points_of_other_manifolds_are_not_touched():
    """Neither those before nor those behind, however near they are."""
    kept = merged([-5.0, -2.0, -3.0, -6.0], line(0.0, 0.1, 0.2, 0.3), 1.0, first=1, last=3)
    assert kept == [9, 0, 1, 9]

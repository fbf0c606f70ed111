"""Contact points that are one: greedy by depth."""

import numpy as np

from clast.narrow.mesh_merge import merge_site
from clast.narrow.mesh_points import Spots
from clast.tables import MESH, TRIANGLE, Shapes


def merged(gap, point, reach, limit=0.0, start=None, kind=MESH, body=None):
    """kept (k,) of candidates of pairs of shape 0 with shapes 1, 2, ...: one site."""
    start = np.array([0, len(gap)] if start is None else start)
    pairs = len(start) - 1
    body = np.arange(1, 2) if body is None else np.asarray(body)
    kinds = np.array([MESH, *[kind] * pairs], np.int8)
    empty = np.zeros(pairs + 1, np.int32)
    shapes = Shapes(empty, np.concatenate([[0], body]).astype(np.int32), empty, kinds, np.zeros((pairs + 1, 3)), empty)
    pair = np.column_stack([np.zeros(pairs), np.arange(1, pairs + 1)]).astype(np.int32)
    spots = Spots(
        np.asarray(gap, float), np.asarray(point, float), np.zeros((len(gap), 3)), np.zeros(len(gap), np.int8)
    )
    kept = np.full(len(gap), 9, np.int8)
    merge_site(0, pairs, int(body[0]), shapes, pair, start, spots, limit, reach, kept)
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


def test_triangles_of_one_wall_are_one_site():
    """Those of another wall between them are not touched."""
    kept = merged([-1.0, -2.0, -3.0], line(0.0, 0.1, 0.2), 1.0, start=[0, 1, 2, 3], kind=TRIANGLE, body=[1, 2, 1])
    assert kept == [0, 9, 1]

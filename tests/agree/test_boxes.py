"""The broad phase by boxes against all pairs, filtered by the same boxes."""

import numba
import numpy as np
import pytest
from test_cuda import Threads

from clast.broad import boxes as stages
from clast.broad.all_pairs import all_pairs
from clast.broad.bins import bins
from clast.broad.boxes import boxes
from clast.kernels import backend
from clast.tables import SPHERE, Box, Shapes

FREE = Box(np.zeros(3), np.zeros(3), np.zeros(3), False)


def periodic_world(low, length, axes=(True, True, True)):
    length = np.where(axes, length, 0.0)
    inverse = np.divide(1.0, length, out=np.zeros(3), where=length > 0.0)
    return Box(np.broadcast_to(np.asarray(low, float), 3).copy(), length, inverse, True)


def shapes_of(centre, radius, seed=0):
    """Lone shapes whose numbers have nothing to do with their rows."""
    centre = np.ascontiguousarray(centre, float).reshape(-1, 3)
    n = len(centre)
    radius = np.broadcast_to(np.asarray(radius, float), n).copy()
    number = np.random.default_rng(seed).permutation(n).astype(np.int64)
    rows = np.arange(n, dtype=np.int32)
    return Shapes(number, rows, np.zeros(n, np.int32), np.full(n, SPHERE, np.int8), centre, radius)


def tags(shapes):
    return np.arange(len(shapes.radius), dtype=np.int32)


def listed(pairs):
    """The pairs in one order, after checking that none comes twice."""
    pairs = pairs[np.lexsort((pairs[:, 1], pairs[:, 0]))]
    assert len(np.unique(pairs, axis=0)) == len(pairs)
    return pairs


def expected(shapes, tag, box, margin, extent):
    pairs = all_pairs(shapes, tag, box, margin)
    if extent is not None:
        d = shapes.centre[pairs[:, 1]] - shapes.centre[pairs[:, 0]]
        d = d - box.length * np.trunc(d * box.inverse + np.where(d >= 0.0, 0.5, -0.5))
        pairs = pairs[(np.abs(d) <= extent[pairs[:, 0]] + margin + extent[pairs[:, 1]]).all(1)]
    return listed(pairs)


def check(shapes, box=FREE, margin=0.0, extent=None, tag=None):
    tag = tags(shapes) if tag is None else tag
    found = boxes(shapes, tag, box, margin, extent)
    assert found.dtype == np.int32
    assert np.all(shapes.number[found[:, 0]] < shapes.number[found[:, 1]])
    assert np.array_equal(listed(found), expected(shapes, tag, box, margin, extent))
    return found


def flat_boxes(rng, radius):
    """Half widths as ellipsoids of that largest semi-axis have them: one nearly the radius, others down to a hundredth."""
    extent = radius[:, None] * 10.0 ** rng.uniform(-2.0, 0.0, (len(radius), 3))
    extent[np.arange(len(radius)), rng.integers(0, 3, len(radius))] = 0.98 * radius
    return extent


def clouds():
    rng = np.random.default_rng(3)
    random = rng.random((400, 3)) * 12.0
    return {
        "random": (random, 1.0),
        "sizes 1:1000": (rng.random((700, 3)) * 6.0, 10.0 ** rng.uniform(-3.0, 0.0, 700)),
        "clusters": (np.concatenate([rng.normal(c, 0.7, (60, 3)) for c in rng.random((5, 3)) * 80.0]), 0.5),
        "one centre": (np.repeat(random[:40], 3, axis=0), 0.3),
        "all in one place": (np.zeros((30, 3)), 0.5),
        "strays": (np.concatenate([random[:200], [[1e6, -3.0, 2.0], [-3e9, 0.0, 0.0], [1e6, -3.5, 2.0]]]), 0.8),
        "huge among small": (np.concatenate([random, [[6.0, 6.0, 6.0]]]), np.append(np.full(400, 0.01), 9.0)),
        "flat": (random * (1.0, 1.0, 0.0), 0.4),
        "points": (np.repeat(random[:50], 2, axis=0), 0.0),
        "points far off": (1e3 + np.repeat(random[:50], 2, axis=0), 1e-30),
        "on borders": (np.stack(np.meshgrid(*[np.arange(7.0)] * 3), -1).reshape(-1, 3), 0.5),
        "two": (np.array([[0.0, 0.0, 0.0], [1.9, 0.0, 0.0]]), 1.0),
        "one": (np.zeros((1, 3)), 1.0),
        "none": (np.zeros((0, 3)), 1.0),
        "endless": (np.zeros((4, 3)), np.inf),
        "some endless": (random[:100], np.where(np.arange(100) % 9 == 0, np.inf, 1.0)),
    }


@pytest.mark.parametrize("name", clouds())
def test_free(name):
    shapes = shapes_of(*clouds()[name])
    for margin in (0.0, 0.25, 5.0):
        check(shapes, margin=margin)
        check(shapes, margin=margin, extent=flat_boxes(np.random.default_rng(1), shapes.radius))


def test_touching_boxes_on_borders_are_all_there():
    shapes = shapes_of(*clouds()["on borders"])
    assert len(check(shapes)) == 3 * 7 * 7 * 6


@pytest.mark.parametrize("length", [1.0, 1.05, 1.6, 2.2, 3.3, 9.0, 1e4])
@pytest.mark.parametrize("axes", [(True, True, True), (True, False, True), (False, True, False)])
def test_periodic(length, axes):
    """Worlds of one, two, three and many bins, and bodies outside them, which are images of others inside."""
    rng = np.random.default_rng(int(10 * length))
    size = np.array([length, 1.3 * length, length])
    box = periodic_world(-0.4 * length, size, axes)
    position = rng.random((250, 3)) * size - 0.4 * length
    position[::3] += size * rng.integers(-2, 3, (84, 3))
    position[:5] = -0.4 * length
    position[5:9, 0] = 0.6 * length
    radius = rng.uniform(0.02, 0.24, 250)
    radius[::50] = 0.7 * length
    shapes = shapes_of(position, radius)
    for margin in (0.0, 0.1):
        check(shapes, box, margin)
        check(shapes, box, margin, flat_boxes(rng, shapes.radius))


def test_shapes_of_one_tag_make_no_pair():
    rng = np.random.default_rng(2)
    shapes = shapes_of(rng.random((300, 3)) * 5.0, rng.uniform(0.2, 0.6, 300))
    tag = rng.integers(0, 3, 300).astype(np.int32)
    found = check(shapes, tag=tag)
    assert len(found) > 50 and np.all(tag[found[:, 0]] != tag[found[:, 1]])


def test_more_pairs_than_expected_are_all_found():
    rng = np.random.default_rng(5)
    shapes = shapes_of(rng.random((900, 3)), 0.4)
    assert len(check(shapes)) > 2 * stages.GUESS * 900


def entries(shapes, box=FREE):
    """How often a shape stands in a bin, in all and at most."""
    grid, order, body, bounded = stages.sort_boxes(shapes, tags(shapes), box, 0.0, None)
    edges = (*box.length.tolist(), *box.inverse.tolist())
    _, member = stages.fill_bins(grid, order, body, bounded, edges, 0.0)
    return len(member), len(grid.radius) * 8


def test_huge_bodies_do_not_fill_the_memory():
    rng = np.random.default_rng(6)
    radius = np.full(20_000, 0.001)
    radius[:20] = 1.0
    shapes = shapes_of(rng.random((20_000, 3)), radius)
    total, most = entries(shapes)
    assert most <= 32
    assert total < 4.0 * 20_000 * most / 8
    assert np.array_equal(listed(boxes(shapes, tags(shapes), FREE, 0.0)), listed(bins(shapes, tags(shapes), FREE, 0.0)))


def test_a_stray_body_costs_nothing():
    rng = np.random.default_rng(7)
    centre = rng.random((3000, 3))
    alone, _ = entries(shapes_of(centre, 0.03))
    together, _ = entries(shapes_of(np.concatenate([centre, [[1e6, 1e6, 1e6]]]), 0.03))
    assert together < 1.5 * alone


@pytest.mark.parametrize("box", [FREE, periodic_world(0.0, np.full(3, 60.0))], ids=["free", "periodic"])
def test_same_rows_in_the_same_order_for_any_number_of_threads(box):
    rng = np.random.default_rng(8)
    shapes = shapes_of(rng.random((20_000, 3)) * 60.0, rng.uniform(0.1, 2.0, 20_000))
    extent = flat_boxes(rng, shapes.radius)
    before = numba.get_num_threads()
    results = []
    for threads in (1, numba.config.NUMBA_NUM_THREADS):
        numba.set_num_threads(threads)
        results.append(boxes(shapes, tags(shapes), box, 0.1, extent))
    numba.set_num_threads(before)
    assert len(results[0]) > 1000
    assert np.array_equal(*results)


def test_the_path_of_a_cuda_device_finds_the_same():
    rng = np.random.default_rng(9)
    shapes = shapes_of(rng.random((800, 3)) * 9.0, rng.uniform(0.01, 0.8, 800))
    box = periodic_world(0.0, np.full(3, 9.0), (True, False, True))
    extent = flat_boxes(rng, shapes.radius)
    with backend.use(Threads()):
        found = boxes(shapes, tags(shapes), box, 0.05, extent)
    assert np.array_equal(listed(found), expected(shapes, tags(shapes), box, 0.05, extent))

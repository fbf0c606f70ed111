"""What a spacetree is: levels, vertices, ancestors and counters against the definitions, written out in plain Python."""

import copy
import itertools

import numpy as np
import pytest

from clast.broad.spacetree import VARIANTS, Spacetree
from clast.broad.spacetree_counts import Counters, count_adaptive, count_regular
from clast.tables import SPHERE, Box, Shapes

FREE = Box(np.zeros(3), np.zeros(3), np.zeros(3), False)
UNIT = ((0.0, 0.0, 0.0), 1.0)
CORNERS = list(itertools.product((0, 1), repeat=3))


def run(variant, centre, diameter, margin=0.0, cube=UNIT):
    """The tree after a search among lone bodies."""
    centre = np.ascontiguousarray(centre, float).reshape(-1, 3)
    n = len(centre)
    radius = 0.5 * np.broadcast_to(np.asarray(diameter, float), n)
    rows = np.arange(n, dtype=np.int32)
    shapes = Shapes(rows.astype(np.int64), rows, np.zeros(n, np.int32), np.full(n, SPHERE, np.int8), centre, radius)
    tree = Spacetree(variant, cube)
    tree(shapes, rows, FREE, margin)
    return tree


def finest(diameter, margin=0.0):
    """The finest level of the unit cube with cells wider than this."""
    level = 0
    while 3.0 ** -(level + 1) > diameter + margin:
        level += 1
    return level


def vertex(centre, level):
    return tuple(int(np.floor(x * 3**level + 0.5)) for x in centre)


def adjacent(v, level):
    """The cells that touch a vertex, inside the cube."""
    cells = (tuple(i - c for i, c in zip(v, corner)) for corner in CORNERS)
    return {cell for cell in cells if all(0 <= i < 3**level for i in cell)}


def meet(centre, level, a, b):
    """Whether the vertices of bodies a and b share a cell, after that of the finer one was put into the coarser grid."""
    if level[a] < level[b]:
        a, b = b, a
    step = 3 ** (level[a] - level[b])
    cells = {tuple(i // step for i in cell) for cell in adjacent(vertex(centre[a], level[a]), level[a])}
    return bool(cells & adjacent(vertex(centre[b], level[b]), level[b]))


def grid_of(centre, level):
    """All cells, and all vertices of all cells, of a grid cut around each body down to its level."""
    cells = {(0, (0, 0, 0))}
    for place, deepest in zip(centre, level):
        for k in range(deepest):
            for cell in adjacent(vertex(place, k), k):
                for child in itertools.product(range(3), repeat=3):
                    cells.add((k + 1, tuple(3 * i + c for i, c in zip(cell, child))))
    return cells, {(k, tuple(i + c for i, c in zip(cell, corner))) for k, cell in cells for corner in CORNERS}


def cloud(seed=1, count=25):
    rng = np.random.default_rng(seed)
    centre = rng.random((count, 3))
    centre[:3] = (0.0, 1.0, 0.5), (1.0, 1.0, 1.0), (0.499, 0.501, 0.5)
    return centre, 10.0 ** rng.uniform(-2.5, -0.6, count)


def test_a_regular_grid_has_all_cells_down_to_the_level_of_the_largest_body():
    tree = run("regular", [(0.2, 0.5, 0.5), (0.8, 0.5, 0.5)], (0.1, 0.02))
    assert tree.counters == Counters(3, 1 + 27 + 729, 8 + 64 + 1000, 0)
    assert run("regular", [(0.45, 0.5, 0.5), (0.55, 0.5, 0.5)], (0.1, 0.02)).counters.comparisons == 1
    assert run("regular", [(0.2, 0.5, 0.5), (0.8, 0.5, 0.5)], (0.1, 0.02), margin=0.02).counters.levels == 2


@pytest.mark.parametrize("margin", [0.0, 0.03])
def test_an_adaptive_grid_is_cut_around_each_body_and_compares_with_ancestors(margin):
    for seed in range(3):
        centre, diameter = cloud(seed)
        level = [finest(d, margin) for d in diameter]
        assert len(set(level)) >= 3
        cells, vertices = grid_of(centre, level)
        pairs = sum(meet(centre, level, a, b) for a, b in itertools.combinations(range(len(level)), 2))
        tree = run("adaptive", centre, diameter, margin)
        assert tree.counters == Counters(max(level) + 1, len(cells), len(vertices), pairs)
        assert tree.comparisons == pairs


def let_down(centre, diameter):
    """Level by level: who fits on the next and shares a cell with another who has come this far goes on."""
    level = [0] * len(diameter)
    for k in range(10):
        here = [i for i in range(len(level)) if level[i] == k]
        for i in here:
            company = any(meet(centre, [k] * len(level), i, j) for j in here if j != i)
            level[i] += int(company and finest(diameter[i]) > k)
    return level


def test_a_reluctant_grid_is_cut_only_where_bodies_are_together():
    for seed in range(3):
        centre, diameter = cloud(seed, 40)
        level = let_down(centre, diameter)
        own = [finest(d) for d in diameter]
        assert any(a < b for a, b in zip(level, own)) and any(a == b for a, b in zip(level, own))
        cells, vertices = grid_of(centre, level)
        pairs = sum(meet(centre, level, a, b) for a, b in itertools.combinations(range(len(level)), 2))
        tree = run("reluctant", centre, diameter)
        assert tree.counters == Counters(max(level) + 1, len(cells), len(vertices), pairs)


def test_a_lone_small_body_stays_on_the_coarse_grid():
    assert run("reluctant", (0.5, 0.5, 0.5), 0.001).counters == Counters(1, 1, 8, 0)
    assert run("adaptive", (0.5, 0.5, 0.5), 0.001).counters.levels == finest(0.001) + 1
    far = run("reluctant", [(0.1, 0.5, 0.5), (0.9, 0.5, 0.5)], (0.1, 0.02)).counters
    near = run("reluctant", [(0.45, 0.5, 0.5), (0.52, 0.5, 0.5)], (0.1, 0.02)).counters
    assert far == Counters(2, 28, 72, 0)
    assert near == run("adaptive", [(0.45, 0.5, 0.5), (0.52, 0.5, 0.5)], (0.1, 0.02)).counters
    assert (near.levels, near.comparisons) == (4, 1)


def test_cells_of_a_periodic_root_share_their_outer_vertices():
    wrap, cells = np.array([True, False, True]), np.array([2, 1, 1])
    assert count_regular(2, wrap, cells) == (2, 2 + 54, 2 * 2 * 1 + 6 * 4 * 3)
    # A body on vertex 1, 1, 0 of the second level: the cells around vertex 0, 0, 0 of the root, which are all there are.
    level, key = np.array([1], np.int8), np.array([1 | 1 << 21])
    assert count_adaptive(2, wrap, cells, level, key) == count_regular(2, wrap, cells)


def test_copies_count_for_themselves_and_a_new_one_has_counted_nothing():
    tree = Spacetree()
    assert tree.counters == Counters(0, 0, 0, 0)
    tree = run("adaptive", [(0.5, 0.5, 0.5), (0.52, 0.5, 0.5)], 0.1)
    other = copy.copy(tree)
    assert other.counters.comparisons == 1
    rows = np.zeros(0, np.int32)
    nobody = Shapes(rows.astype(np.int64), rows, rows, rows.astype(np.int8), np.zeros((0, 3)), np.zeros(0))
    other(nobody, rows, FREE, 0.0)
    assert other.counters == Counters(1, 1, 8, 0)
    assert tree.counters.comparisons == 1


def test_an_unknown_variant_is_refused_by_name():
    with pytest.raises(ValueError, match="adaptive"):
        Spacetree("adaptve")


@pytest.mark.parametrize("variant", VARIANTS)
def test_a_position_that_is_no_number_is_told(variant):
    with pytest.raises(ValueError, match="not a number"):
        run(variant, [(np.inf, 0.0, 0.0), (0.0, 0.0, 0.0)], 0.1)

"""Broad phase by a spacetree: a cube cut into three along each axis, again and again; shapes hang on the vertices of its cells.

A shape lives on the finest level whose cells are as wide as its diameter and the margin, in the list of the vertex next to
its centre. It meets the lists of its own vertex and of the vertices that share a cell with it, and on coarser levels the
lists of its ancestors: the vertices of the cells in which the cells around its own vertex lie.

That misses nothing. In units of the coarser cell, let the finer one be 1/s wide, s a power of three. The centre of the finer
shape is at most 1/(2s) from its vertex a, that of the coarser at most 1/2 from its vertex b, and centres of shapes within
the margin are at most (1/s + 1)/2 apart, so a and b are less than 1 + 1/s apart along each axis. As b - a is a multiple of
1/s they are at most 1 apart: b belongs to a cell that touches a. This holds for s = 1 too, and for any level on which a
shape fits, be it the finest or not.

Lists of one level are sorted by vertex. Where a level has many more vertices than shapes they are folded onto a table of
blocks, and a key tells whose list it is; so memory grows with the shapes, not with the room between them.
"""

from typing import NamedTuple

import numpy as np

from ..errors import pick
from ..kernels import backend, primitives
from ..kernels.backend import kernel
from .bins import pair_row
from .spacetree_counts import Counters, count_adaptive, count_regular
from .spacetree_rows import (
    CLASSES,
    DIGITS,
    begin_row,
    class_end,
    crowd_row,
    drop_row,
    gather_row,
    key_row,
    level_row,
    next_row,
    search_row,
    survey_row,
    take_row,
)

VARIANTS = ("regular", "adaptive", "reluctant")
DEEPEST = 13  # levels below the root, at most: so many that a vertex has a number of 21 bits along each axis
GUESS = 6  # pairs per shape that a first search has room for
CROWD = 16.0  # shapes in one list, on average over shapes, above which lists are made of fewer vertices
SHARE = 4.0  # lists per shape, at most
TYPICAL = 0.95  # share of the shapes, from the smallest on, that fit into cells of some level as closely as possible
UNFOLDED = 62  # bits of an index that is not folded


class Tree(NamedTuple):
    """The levels of the spacetree, the root first, and where the lists of their vertices are found."""

    limit: np.ndarray  # (l,) [m], largest radius on the level
    origin: np.ndarray  # (3,) [m]
    inverse: np.ndarray  # (l,3) [1/m], cells per length
    vertices: np.ndarray  # (l,3) int64, vertices along the axes
    wrap: np.ndarray  # (3,) bool, the last vertex neighbours the first
    first: np.ndarray  # (l+1,) int64, number of the level's first list; a level without shapes has none
    grain: np.ndarray  # (l,) int64, vertices along an axis that share a list, as a power of two
    lists: np.ndarray  # (l,3) int64, lists along the axes
    folded: np.ndarray  # (l,) bool, vertices far from each other share a list too
    bits: np.ndarray  # (l,3) int64, lists along the axes as a power of two, where folded
    spread: np.ndarray  # (l,3) int64, bits by which tables are moved before they are laid onto each other


class Lists(NamedTuple):
    """The shapes in the order of the lists."""

    shape: np.ndarray  # (s,) int32, row of Shapes
    key: np.ndarray  # (s,) int64, number of the vertex on its level
    level: np.ndarray  # (s,) int8
    tag: np.ndarray  # (s,) int32, shapes with equal tags make no pair
    start: np.ndarray  # (lists+1,) int32


def survey(shapes):
    """Lowest and highest centre (3,) [m], largest and smallest radius [m], number of shapes in each class of sizes."""
    device = backend.DEVICE[-1]
    n = len(shapes.radius)
    chunk = device.chunk * 16
    chunks = max(1, (n + chunk - 1) // chunk)
    found = device.empty((chunks, 8 + CLASSES), np.float64)
    kernel(survey_row, grain=2)(chunks, chunk, shapes.centre, shapes.radius, found)
    found = device.to_host(found)
    low, high, sizes = found[:, 0:3].min(0), found[:, 3:6].max(0), found[:, 8:].sum(0)
    if not sizes.any():
        low, high = np.zeros(3), np.zeros(3)
    if not np.all(np.isfinite(high) & np.isfinite(low)):
        raise ValueError("a shape's position is not a number; look at scene.bodies.position")
    return low, high, float(found[:, 6].max()), float(found[:, 7].min()), sizes


def radius_of_share(found, share):
    """A radius [m] that so large a share of the shapes does not exceed."""
    largest, sizes = found[2], np.cumsum(found[-1])
    return min(class_end(int(np.searchsorted(sizes, share * sizes[-1]))), largest)


def choose_root(found, box, width, typical, fold):
    """Edge of the root [m]: a power of three of the width that suits a typical radius, so that cells fit most shapes closely."""
    low, high, largest, _, _ = found
    edge = width(typical) * (1.0 + 1e-9)
    if fold is not None:
        while edge > width(fold):
            edge /= 3.0
        edge *= 3.0**DEEPEST
        least = 2.0 * width(largest)
    elif box.periodic:
        while 3.0 * edge <= box.length[box.length > 0.0].min():
            edge *= 3.0
        least = width(largest)
    else:
        least = max(float((high - low).max()), width(largest))
    while edge < least:
        edge *= 3.0
    return edge


def cut(found, box, margin, cube, typical, fold):
    """The levels, from the sizes and places of the shapes. fold: smallest radius that matters among strays, or None.

    Returns the tree without lists, the cells (3,) of the root level, and whether smaller shapes would want finer levels.
    """
    low, high, largest, smallest, _ = found
    periodic = box.length > 0.0
    origin = np.where(periodic, box.low, low)
    far = float(np.max(np.maximum(np.maximum(high - origin, origin - low), box.length)))

    def width(radius):
        # A whisker wider than needed, so that rounding never puts partners two vertices apart.
        return (2.0 * radius + margin) * (1.0 + 1e-8) + 1e-15 * far + 1e-300

    root = choose_root(found, box, width, typical, fold)
    if cube is not None and fold is None and not box.periodic:
        origin, root = np.array(cube[0], float), float(cube[1])
    cells = np.where(periodic, np.maximum(np.floor(box.length / root), 1.0), np.ceil((high - low) / root))
    if cube is not None or fold is not None or not periodic.any():
        cells = np.where(periodic, cells, 1.0)
    cells = np.maximum(cells, 1.0)
    edge = np.where(periodic, np.where(periodic, box.length, 1.0) / cells, root)
    wrap = periodic | (fold is not None)
    levels, more = 1, False
    while width(min(smallest, largest)) <= edge.min() / 3.0**levels:
        if levels > DEEPEST or np.max(cells * 3.0**levels + 1.0) > 2.0**DIGITS:
            more = True
            break
        levels += 1
    grow = 3.0 ** np.arange(levels)[:, None]
    inverse = grow / edge
    limit = 0.5 * ((edge.min() / grow[:, 0] - 1e-15 * far) / (1.0 + 1e-8) - margin)
    limit[0] = np.inf
    # Along a free axis only up to the highest centre: a flat world gets a flat grid.
    last = np.maximum(np.floor((high - origin) * inverse + 0.5), 0.0) + 1.0
    vertices = np.where(wrap, cells * grow, np.minimum(last, cells * grow + 1.0)).astype(np.int64)
    none, empty = np.zeros(levels, np.int64), np.zeros((levels, 3), np.int64)
    first = np.zeros(levels + 1, np.int64)
    tree = Tree(limit, origin, inverse, vertices, wrap, first, none, empty, none > 0, empty, empty)
    return tree, cells.astype(np.int64), more


def make_lists(tree, population, finer):
    """The tree with lists for so many shapes on each level, where the kernels run, and the number of all lists.

    A list holds the shapes of a block of vertices, so large that there are at most SHARE lists a shape. finer (l,) int64:
    halve the blocks so many times and fold the table instead, where shapes are crowded in a small part of the room.
    """
    levels = len(tree.limit)
    lists, grain = tree.vertices.copy(), np.zeros(levels, np.int64)
    bits, spread = np.full((levels, 3), UNFOLDED, np.int64), np.zeros((levels, 3), np.int64)
    for level in range(levels):
        most = SHARE * population[level] + 64.0
        while population[level] and np.prod((lists[level] - 1 >> grain[level]) + 1.0) > most:
            grain[level] += 1
        grain[level] = max(grain[level] - finer[level], 0)
        lists[level] = (lists[level] - 1 >> grain[level]) + 1
        while population[level] and np.prod(lists[level].astype(float)) > most:
            axis = int(np.argmax(lists[level]))
            bits[level, axis] = int(lists[level, axis] - 1).bit_length() - 1
            lists[level, axis] = 1 << bits[level, axis]
            spread[level, axis] = lists[level, axis] - 1
    size = [int(np.prod(lists[level])) if population[level] else 0 for level in range(levels)]
    first = np.concatenate([[0], np.cumsum(size)]).astype(np.int64)
    folded = (bits < UNFOLDED).any(1)
    tree = tree._replace(first=first, grain=grain, lists=lists, folded=folded, bits=bits, spread=spread)
    return Tree(*(backend.DEVICE[-1].to_device(np.ascontiguousarray(column)) for column in tree)), int(first[-1])


def finest_levels(shapes, tree):
    """The finest level of each shape (s,) int8 and how many there are on each (l+1,); the last are unbounded."""
    device = backend.DEVICE[-1]
    n = len(shapes.radius)
    chunk = device.chunk * 16
    chunks = max(1, (n + chunk - 1) // chunk)
    level, tally = device.empty(n, np.int8), device.empty((chunks, len(tree.limit) + 1), np.int32)
    kernel(level_row, grain=2)(chunks, chunk, shapes.radius, device.to_device(tree.limit), level, tally)
    return level, device.to_host(tally).sum(0, dtype=np.int64)


def crowd(tree, start, population):
    """Shapes in one list, on average over the shapes of each level (l,)."""
    device = backend.DEVICE[-1]
    first = device.to_host(tree.first)
    chunk = device.chunk * 16
    found = np.zeros(len(first) - 1)
    for level in np.nonzero(population[: len(found)])[0]:
        low, high = int(first[level]), int(first[level + 1])
        tasks = (high - low + chunk - 1) // chunk
        squares = device.empty(tasks, np.float64)
        kernel(crowd_row, grain=2)(tasks, chunk, low, high, start, squares)
        found[level] = device.to_host(squares).sum() / population[level]
    return found


def hang(rows, shapes, level, tree, population):
    """Sort some rows of Shapes into lists; population (l+1,): how many of them on each level.

    Returns the tree with its lists, the keys of the rows, where the lists start, the order, and how many shapes share a
    list on the fullest level.
    """
    device = backend.DEVICE[-1]
    finer = np.zeros(len(tree.limit), np.int64)
    while True:
        planted, lists = make_lists(tree, population, finer)
        key, place = device.empty(len(rows), np.int64), device.empty(len(rows), np.int32)
        kernel(key_row)(len(rows), rows, shapes.centre, level, planted, key, place)
        start, order = primitives.group(place, lists + 1)
        sharing = crowd(planted, start, population)
        crowded = (sharing > CROWD) & (device.to_host(planted.grain) > 0)
        if not crowded.any():
            return planted, key, start, order, float(sharing.max())
        finer += crowded


def let_down(shapes, tree, finest, population):
    """Levels of the reluctant grid: a shape stays on a level where it is alone; returns them and how many on each.

    Level by level from the root: those who are together on one level go down together and look around again.
    """
    device = backend.DEVICE[-1]
    n, levels = len(finest), len(tree.limit)
    rows, level = device.empty(n, np.int32), device.empty(n, np.int8)
    kernel(begin_row)(n, levels, finest, rows, level)
    active = n - int(population[levels])
    held = np.zeros(levels + 1, np.int64)
    held[levels] = population[levels]
    for k in range(levels):
        here, key, start, order, _ = hang(rows, shapes, level, tree, np.where(np.arange(levels) == k, active, 0))
        sorted_key, goes = device.empty(active, np.int64), device.zeros(len(rows), np.int8)
        kernel(take_row)(active, order, key, sorted_key)
        kernel(drop_row)(active, k, rows, order, sorted_key, start, here, finest, level, goes)
        place = primitives.scan(goes)
        going = int(device.to_host(place[-1:])[0])
        held[k] = active - going
        chosen = device.empty(going, np.int32)
        kernel(next_row)(len(rows), rows, place, chosen)
        rows, active = chosen, going
        if not active:
            break
    return level, held


class Spacetree:
    """A broad phase: called like `bins`, it finds the same pairs. After each call it holds what it took.

    variant: "regular", all shapes on the level of the largest; "adaptive", each on the finest level that fits it;
    "reluctant", on a coarser one where it is alone. cube: low corner (3,) and edge [m] of the root in a world that is not
    periodic; without it a cube around all centres, up to three times as wide, so that most shapes fit their cells closely.

    `counters` are those of the last call, `comparisons` the one of them that costs nothing to know; `lists` is the number of
    lists and `crowd` how many shapes share one, on average over the shapes of the fullest level. A copy (`copy.copy`)
    counts for itself.
    """

    def __init__(self, variant="adaptive", cube=None):
        self.variant = pick("spacetree", variant, {name: name for name in VARIANTS})
        self.cube = cube
        self.comparisons, self.lists, self.crowd = 0, 0, 0.0
        self._grid, self._counters = None, None

    @property
    def counters(self):
        """Counters of the last call. Cells and vertices are counted when they are asked for, which takes a while."""
        if self._grid is None:
            return Counters(0, 0, 0, 0)
        if self._counters is None:
            device = backend.DEVICE[-1]
            levels, wrap, cells, level, key = self._grid
            if self.variant == "regular":
                counted = count_regular(levels, wrap, cells)
            else:
                counted = count_adaptive(levels, wrap, cells, device.to_host(level), device.to_host(key))
            self._counters = Counters(*counted, self.comparisons)
        return self._counters

    def __call__(self, shapes, tag, box, margin):
        """Pairs of bounded shapes whose bounding spheres are nearer than margin [m]: (p,2) int32 rows of Shapes.

        The shape with the lower number comes first. tag (s,) int32: shapes with equal tags make no pair.
        """
        device = backend.DEVICE[-1]
        margin = float(margin)
        tree, ball, order, bounded = self._plant(shapes, tag, box, margin)
        chunk = device.chunk
        chunks = (bounded + chunk - 1) // chunk
        count, total = device.empty(bounded, np.int32), device.empty(chunks, np.int64)
        looked = device.empty(chunks, np.int64)
        edges = (*box.length.tolist(), *box.inverse.tolist())
        arguments = chunk, tree, ball, order, edges, margin
        search = kernel(search_row, grain=2, PERIODIC=bool(box.periodic))
        # One search is enough when every chunk finds room; if one does not, the exact sizes are known for a second.
        room = np.arange(chunks + 1) * (GUESS * chunk)
        while True:
            space = device.to_device(room)
            partner = device.empty(int(room[-1]), np.int32)
            search(chunks, *arguments, space, partner, count, total, looked)
            needed = device.to_host(total)
            if np.all(needed <= np.diff(room)):
                break
            room = np.concatenate([[0], np.cumsum(needed)])
        self.comparisons = int(device.to_host(looked).sum())
        pairs = device.empty((int(needed.sum()), 2), np.int32)
        start = primitives.scan(count)
        kernel(pair_row, grain=2)(chunks, chunk, space, start, partner, order.shape, shapes.number, pairs)
        return pairs

    def _plant(self, shapes, tag, box, margin):
        """Hang all shapes onto the tree: returns it, the shapes in the order of the lists, and how many are bounded."""
        device = backend.DEVICE[-1]
        n = len(shapes.radius)
        found = survey(shapes)
        typical = found[2] if self.variant == "regular" else radius_of_share(found, TYPICAL)
        tree, cells, more = cut(found, box, margin, self.cube, typical, None)
        tree, level, key, start, order, bounded = self._levels(shapes, tree, found)
        if more and self.crowd > CROWD:
            # A stray makes the root so large that the finest cells are wider than most shapes: fold the world.
            small = typical if self.variant == "regular" else radius_of_share(found, 0.01)
            tree, cells, _ = cut(found, box, margin, self.cube, typical, small)
            tree, level, key, start, order, bounded = self._levels(shapes, tree, found)
        ball, sorted_level = device.empty((n, 4), np.float64), device.empty(n, np.int8)
        sorted_key, sorted_tag = device.empty(n, np.int64), device.empty(n, np.int32)
        arguments = order, shapes.centre, shapes.radius, level, key, tag
        kernel(gather_row)(n, *arguments, ball, sorted_level, sorted_key, sorted_tag)
        wrap = device.to_host(tree.wrap)
        self._grid, self._counters = (len(tree.limit), wrap, cells, sorted_level, sorted_key), None
        return tree, ball, Lists(order, sorted_key, sorted_level, sorted_tag, start), bounded

    def _levels(self, shapes, tree, found):
        """Levels and lists of all shapes for one choice of the root."""
        device = backend.DEVICE[-1]
        if self.variant == "regular":
            fitting = int(np.nonzero(tree.limit >= found[2])[0][-1]) + 1
            tree = Tree(*(c if k in (1, 4) else c[:fitting] for k, c in enumerate(tree)))
        level, population = finest_levels(shapes, tree)
        if self.variant == "reluctant":
            level, population = let_down(shapes, tree, level, population)
        n, levels = len(shapes.radius), len(tree.limit)
        rows = device.empty(n, np.int32)
        kernel(begin_row)(n, levels, level, rows, device.empty(n, np.int8))
        tree, key, start, order, self.crowd = hang(rows, shapes, level, tree, population)
        self.lists = len(start) - 2
        return tree, level, key, start, order, n - int(population[levels])


SPACETREES = {"spacetree": Spacetree(), **{f"spacetree-{variant}": Spacetree(variant) for variant in VARIANTS}}

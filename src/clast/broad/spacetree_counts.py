"""How many cells and vertices a spacetree has: all that exist on all levels, whether or not a shape hangs on them.

A vertex is a place and a level. A shape on some level makes the cells around its vertex's forebears be cut on every level above:
the eight that touch the vertex next to it there. Cutting a cell into 27 makes 8 new vertices inside, 4 on each face,
2 on each edge, and those at its corners; faces, edges and corners that cells share count once.
"""

from typing import NamedTuple

import numpy as np

from .spacetree_rows import DIGITS, LAST


class Counters(NamedTuple):
    """What one search took."""

    levels: int  # with the root
    cells: int  # on all levels
    vertices: int  # on all levels
    comparisons: int  # pairs of shapes whose bounding spheres were tested


def count_regular(levels, wrap, cells) -> tuple[int, int, int]:
    """Levels, cells and vertices if all cells (3,) of the root are cut on all levels but the last."""
    along = [[int(cells[a]) * 3**level for a in range(3)] for level in range(levels)]
    count = sum(x * y * z for x, y, z in along)
    corners = [[n + (0 if wrap[a] else 1) for a, n in enumerate(level)] for level in along]
    return levels, count, sum(x * y * z for x, y, z in corners)


def numbered(place, size):
    """Places (n,3) as whole numbers."""
    return place[:, 0] + size[0] * (place[:, 1] + size[1] * place[:, 2])


def distinct(place, size, wrap):
    """Each place (n,3) of those within 0 to size once; places outside are left out or, where it wraps, come in again."""
    place = np.where(wrap, place % size, place)
    place = place[((place >= 0) & (place < size)).all(1)]
    number = np.unique(numbered(place, size))
    return np.column_stack([number % size[0], number // size[0] % size[1], number // (size[0] * size[1])])


def moved(place, steps):
    """All places (n,3) moved by each of the steps (m,3)."""
    return (place[:, None, :] + np.asarray(steps)[None, :, :]).reshape(-1, 3)


def pieces(cell, size, wrap):
    """The number of distinct vertices that cutting these cells (n,3) makes; size (3,): cells along the axes."""
    total = 8 * len(cell)
    for kind in np.ndindex(2, 2, 2):
        # kind tells along which axes the piece is a point: one axis for a face, two for an edge, three for a corner.
        flat = np.array(kind)
        if not flat.any():
            continue
        ends = [step for step in np.ndindex(2, 2, 2) if not ((np.array(step) == 1) & (flat == 0)).any()]
        most = size + np.where((flat == 1) & ~wrap, 1, 0)
        total += 2 ** int(3 - flat.sum()) * len(distinct(moved(cell, ends), most, wrap))
    return total


def count_adaptive(levels, wrap, cells, level, key) -> tuple[int, int, int]:
    """Levels, cells and vertices if cells are cut around each shape down to its level.

    cells (3,): of the root; level (s,) and vertex of each shape, 21 bits along an axis in key (s,); a level of `levels`
    stands for a shape without end.
    """
    wrap = np.asarray(wrap)
    bounded = level < levels
    levels = int(level[bounded].max()) + 1 if bounded.any() else 1
    count, corners = int(np.prod(cells)), int(np.prod(cells + np.where(wrap, 0, 1)))
    above = np.zeros((0, 3), np.int64)
    for k in range(levels - 1, 0, -1):
        number = np.unique(key[level == k])
        held = np.column_stack([number >> digit & LAST for digit in (0, DIGITS, 2 * DIGITS)])
        size = cells * 3 ** (k - 1)
        # The vertex next to a vertex on the level above.
        above = distinct((np.concatenate([held, above]) + 1) // 3, size + np.where(wrap, 0, 1), wrap)
        cell = distinct(moved(above, [(-x, -y, -z) for x, y, z in np.ndindex(2, 2, 2)]), size, wrap)
        count += 27 * len(cell)
        corners += pieces(cell, size, wrap)
    return levels, count, corners

"""Which process moves which bodies: space is cut in two, each half in two, until there is a tile for each process.

A cut halves the work, not the bodies: points have weights. Outer tiles have no end, so that every place is in one tile. Results do not
depend on where cuts are.
"""

import numpy as np

from ..broad.near import image
from ..kernels.backend import kernel

ROUNDING = 1.0 + 1e-8  # of squares, so that rounding does not lose a body


class Cuts:
    """Tiles of space, one for each of `size` processes: `owner` tells who has a place, `near` who is near a tile.

    box: the periodic Box of the world.
    """

    def __init__(self, size, box, points, weight):
        """points (n,3) [m] with weights (n,): a sample of what is to be divided."""
        self.size, self.box = size, box
        self.axis, self.place = np.zeros(max(size - 1, 0), np.int64), np.zeros(max(size - 1, 0))
        # Children of each cut: another cut, or -1 - rank.
        self.child = np.zeros((max(size - 1, 0), 2), np.int64)
        self.low, self.high = np.full((size, 3), -np.inf), np.full((size, 3), np.inf)
        self._made = 0
        weight = np.asarray(weight, float)
        self._cut(0, size, np.asarray(points, float), weight, np.full(3, -np.inf), np.full(3, np.inf))
        for axis in np.flatnonzero(box.length > 0.0):
            self.low[:, axis] = np.maximum(self.low[:, axis], box.low[axis])
            self.high[:, axis] = np.minimum(self.high[:, axis], box.low[axis] + box.length[axis])

    def _cut(self, first, count, points, weight, low, high):
        """Divide the points among `count` processes from rank `first` on; returns the number of the cut, or -1 - rank."""
        if count == 1:
            self.low[first], self.high[first] = low, high
            return -1 - first
        cut, half = self._made, count // 2
        self._made += 1
        span = np.ptp(points, axis=0) if len(points) else np.ones(3)
        axis = int(np.argmax(span))
        order = np.argsort(points[:, axis], kind="stable")
        heap = np.cumsum(weight[order])
        at = int(np.searchsorted(heap, heap[-1] * half / count)) if len(heap) else 0
        at = min(max(at, 0), max(len(points) - 2, 0))
        x = points[order, axis]
        # Between two bodies: then none stands on the cut.
        place = 0.5 * (x[at] + x[at + 1]) if len(x) > 1 else float(x[0]) if len(x) else 0.0
        self.axis[cut], self.place[cut] = axis, place
        below = points[:, axis] < place
        middle = high.copy(), low.copy()
        middle[0][axis], middle[1][axis] = place, place
        self.child[cut, 0] = self._cut(first, half, points[below], weight[below], low, middle[0])
        self.child[cut, 1] = self._cut(first + half, count - half, points[~below], weight[~below], middle[1], high)
        return cut

    def owner(self, position):
        """Rank (n,) of the process in whose tile each position (n,3) [m] is."""
        rank = np.zeros(len(position), np.int32)
        if self.size > 1:
            kernel(owner_row)(len(position), position, self.axis, self.place, self.child, rank)
        return rank

    def near(self, position, reach, rank, wide):
        """Which bodies, with centres (n,3) [m] and reaches (n,) [m], are nearer than `wide` [m] to the tile of a rank: (n,) bool; a reach of
        -inf is near nothing."""
        near = np.empty(len(position), np.bool_)
        tile = (*self.low[rank].tolist(), *self.high[rank].tolist(), float(wide))
        kernel(near_row)(len(position), position, reach, tile, tuple(self.box.length.tolist()), near)
        return near


def owner_row(i, position, axis, place, child, rank):
    """Go down from cut to cut, see Cuts, to the tile of position i."""
    at = 0
    while at >= 0:
        at = child[at, 1 if position[i, axis[at]] >= place[at] else 0]
    rank[i] = -1 - at


def near_row(i, position, reach, tile, length, near):
    """Whether body i reaches to within tile[6] [m] of a tile, lower corner and upper corner, over the edges of the periodic box too."""
    square = 0.0
    for k in range(3):
        x, low, high = position[i, k], tile[k], tile[3 + k]
        away = max(low - x, x - high, 0.0)
        if length[k] > 0.0:
            # An image of a place on the other side of the box may be nearer.
            away = min(away, max(low - (x - length[k]), 0.0), max(x + length[k] - high, 0.0))
        square += away * away
    far = reach[i] + tile[6]
    near[i] = far >= 0.0 and square <= far * far * ROUNDING


def meets_row(i, position, reach, others, margin, edges, near):
    """Whether body i reaches to within a margin [m] of any of `others` (k,4): centres and reaches [m]; near (n,): also those that are it already."""
    for k in range(len(others)):
        if near[i]:
            break
        square = 0.0
        for j in range(3):
            d = image(position[i, j] - others[k, j], edges[j], edges[3 + j])
            square += d * d
        far = reach[i] + others[k, 3] + margin
        near[i] = far >= 0.0 and square <= far * far * ROUNDING

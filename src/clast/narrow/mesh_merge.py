"""Contact points that are one and the same: where an edge or a corner touches, all triangles around it report it.

Of all points of a *site* the deepest is kept first, and a point is kept only if no kept one is nearer to it than the
shortest edge of the two meshes. A site is a pair of shapes; the triangles of one wall body are one site together.
"""

from ..kernels.backend import func
from ..tables import TRIANGLE

OPEN = 2  # not decided yet


@func
def same_site(p, low, high, body, shapes, pair):
    """Whether pair p belongs to the site of pairs low up to high with a body: see `merge_site`."""
    t = pair[p, 1]
    return shapes.body[t] == body and (high == low + 1 or shapes.kind[t] == TRIANGLE)


@func
def merge_site(low, high, body, shapes, pair, start, spots, limit, reach, kept):
    """Write kept (k,) int8, 1 or 0, for all candidates of one site.

    The site is pair `low` if high is low + 1; else those of the pairs low up to high whose second shape is a triangle of
    the wall in row `body` of Bodies. start (p+1,): as in Candidates. Only points with a gap below limit [m] are kept. reach
    [m]: how near two points are one.
    """
    square = reach * reach
    left = 0
    for p in range(low, high):
        if same_site(p, low, high, body, shapes, pair):
            for k in range(start[p], start[p + 1]):
                near = spots.gap[k] < limit
                kept[k] = OPEN if near else 0
                left += 1 if near else 0
    while left > 0:
        # The deepest that is open; of several the first.
        best, deepest = -1, limit
        for p in range(low, high):
            if same_site(p, low, high, body, shapes, pair):
                for k in range(start[p], start[p + 1]):
                    if kept[k] == OPEN and spots.gap[k] < deepest:
                        best, deepest = k, spots.gap[k]
        kept[best] = 1
        left -= 1
        x, y, z = spots.point[best, 0], spots.point[best, 1], spots.point[best, 2]
        for p in range(low, high):
            if same_site(p, low, high, body, shapes, pair):
                for k in range(start[p], start[p + 1]):
                    if kept[k] == OPEN:
                        dx, dy, dz = spots.point[k, 0] - x, spots.point[k, 1] - y, spots.point[k, 2] - z
                        if dx * dx + dy * dy + dz * dz < square:
                            kept[k] = 0
                            left -= 1

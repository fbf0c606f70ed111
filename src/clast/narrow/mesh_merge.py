"""Contact points that are one and the same: where an edge or a corner touches, all triangles around it report it.

Of all points of a manifold the deepest is kept first, and a point is kept only if no kept one is nearer to it than the
shortest edge of the two meshes. Corners on faces and crossings of sides, by which flat faces rest on each other, are all kept
but for those that are told several times. A manifold is a pair of shapes; the triangles of one wall body are one manifold together.
"""

from ..kernels.backend import func

OPEN = 2  # not decided yet
SAME = 0.02  # of the shortest edge: corners and crossings that are nearer are one


@func
def merge_points(first, last, points, limit, reach, kept):
    """Write kept (k,) int8, 1 or 0, for the candidates of one manifold, rows first up to last of MeasuredPoints.

    Only points with a gap below limit [m] are kept. reach [m]: how near two points are one.
    """
    wide, narrow = reach * reach, SAME * SAME * reach * reach
    left = 0
    for k in range(first, last):
        near = points.gap[k] < limit
        kept[k] = OPEN if near else 0
        left += 1 if near else 0
    while left > 0:
        # The deepest that is open; of several the first.
        best, deepest = -1, limit
        for k in range(first, last):
            if kept[k] == OPEN and points.gap[k] < deepest:
                best, deepest = k, points.gap[k]
        kept[best] = 1
        left -= 1
        x, y, z = points.point[best, 0], points.point[best, 1], points.point[best, 2]
        for k in range(first, last):
            if kept[k] == OPEN:
                dx, dy, dz = points.point[k, 0] - x, points.point[k, 1] - y, points.point[k, 2] - z
                if dx * dx + dy * dy + dz * dz < (narrow if points.flat[k] != 0 else wide):
                    kept[k] = 0
                    left -= 1

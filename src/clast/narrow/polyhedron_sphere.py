"""A ball against a convex polyhedron: the exact signed distance of its centre, and where the polyhedron is touched.

Everything is in the axes of the polyhedron, about its centre, in metres. Outside, the nearest point of a convex body is
unique; it lies on a face whose plane has the centre above it, on its rim or inside it. Inside, the way out leads through
the nearest face.
"""

import math

import numpy as np

from ..kernels.backend import func, part
from ..kernels.vec import dot, scale, sub
from .polyhedron_plane import corner, face_normal

# Types of the feature number, 4 * (which) + type: a face; a corner; a side of a face, counted through all loops.
FACE = 0
CORNER = 1
SIDE = 2


@func
def highest_face(h, k, hulls, c):
    """The face over which c is highest, a column of hulls.normal, and that height [m], negative inside."""
    normal = hulls.normal
    best, most = hulls.face_start[h], -math.inf
    for i in range(hulls.face_start[h], hulls.face_start[h + 1]):
        f = np.uintp(i)
        height = c[0] * normal[0, f] + c[1] * normal[1, f] + c[2] * normal[2, f] - k * hulls.offset[f]
        if height > most:
            best, most = i, height
    return best, most


@func
def nearest_on_side(hulls, k, a, b, c):
    """Nearest point to c of the straight line between corners a and b, and where it is: 0 at a, 1 at b."""
    one = corner(hulls, k, a)
    along = sub(corner(hulls, k, b), one)
    u = min(max(dot(sub(c, one), along) / dot(along, along), 0.0), 1.0)
    return (one[0] + u * along[0], one[1] + u * along[1], one[2] + u * along[2]), u


@part
def nearest_outside(h, k, hulls, c, limit):
    """The nearest point to a c outside, its squared distance [m^2] and feature; the square is inf if beyond limit [m]."""
    side = hulls.side
    first = hulls.loop_start[hulls.face_start[h]]
    best = limit * limit * (1.0 + 1e-12)
    found = False
    point = c
    feature = 0
    for i in range(hulls.face_start[h], hulls.face_start[h + 1]):
        f = np.uintp(i)
        n = face_normal(hulls, f)
        height = dot(n, c) - k * hulls.offset[f]
        # A face below which c lies cannot hold the nearest point, and nothing on a face is nearer than its plane.
        if height > 0.0 and height * height < best:
            above = True
            start, end = hulls.loop_start[f], hulls.loop_start[i + 1]
            for j in range(start, end):
                s = np.uintp(j)
                if side[0, s] * c[0] + side[1, s] * c[1] + side[2, s] * c[2] > k * hulls.side_offset[s]:
                    above = False
                    a = np.uintp(hulls.loop[s])
                    b = np.uintp(hulls.loop[np.uintp(j + 1 if j + 1 < end else start)])
                    place, u = nearest_on_side(hulls, k, a, b, c)
                    way = sub(c, place)
                    square = dot(way, way)
                    if square < best:
                        best, point, found = square, place, True
                        which = a if u <= 0.0 else b
                        at_corner = u <= 0.0 or u >= 1.0
                        feature = (
                            4 * (np.int64(which) - hulls.vertex_start[h]) + CORNER
                            if at_corner
                            else 4 * (j - first) + SIDE
                        )
            if above:
                # Straight above the inside of a face: no other point of a convex body is as near.
                return sub(c, scale(height, n)), height * height, 4 * (i - hulls.face_start[h]) + FACE
    return point, best if found else math.inf, feature


@part
def hull_ball(h, k, hulls, c, radius, margin):
    """Hull h at size factor k against a ball: (found 0 or 1, gap [m], n, point [m], feature).

    c: the ball's centre from the polyhedron's centre, in its axes [m]. gap is negative when overlapping, n the unit normal
    from the polyhedron to the ball, point the touched point of the polyhedron's surface. Nothing is found if gap > margin.
    Exact for every place of the centre; inside the polyhedron the nearest face counts, the lowest of equals.
    """
    zero = (0.0, 0.0, 0.0)
    limit = radius + margin
    around = k * hulls.outer[h] + limit
    if dot(c, c) > around * around:
        return 0, 0.0, zero, zero, 0
    f, height = highest_face(h, k, hulls, c)
    if height > limit:
        return 0, 0.0, zero, zero, 0
    if height <= 0.0:
        n = face_normal(hulls, f)
        return 1, height - radius, n, sub(c, scale(height, n)), 4 * (f - hulls.face_start[h]) + FACE
    point, square, feature = nearest_outside(h, k, hulls, c, limit)
    distance = math.sqrt(square)
    if not distance <= limit:
        return 0, 0.0, zero, zero, 0
    way = sub(c, point)
    # So near to a surface that the way has no direction left, the face has one.
    n = scale(1.0 / distance, way) if distance > 1e-12 * k * hulls.outer[h] else face_normal(hulls, f)
    return 1, distance - radius, n, point, feature

"""A convex polyhedron against walls: the plane, and the choice of four contact points that all walls share.

Everything is in the axes of the polyhedron, about its centre, in metres: corner v of hull h at size factor k is at
k * vertex. Contact points are written into `work`, eight numbers each, the deepest first:

    0, 1, 2   point on the surface of the polyhedron [m]
    3         gap [m], negative when overlapping
    4, 5, 6   unit normal from the polyhedron to the wall
    7         feature number, 4 * (which feature) + VERTEX_FACE or EDGE_EDGE

Candidates are gathered in the columns from SCRATCH on (`add_point`) and then reduced to at most four (`keep_four`).
"""

import math

import numpy as np

from ..kernels.backend import func, part
from ..kernels.vec import cross, dot, sub
from .polyhedron_polyhedron import POINT, VERTEX_FACE

SCRATCH = 4 * POINT  # first column of the candidates
CANDIDATES = 32  # room for that many; if there are more, four of them are kept and the count goes on from there
WIDTH = SCRATCH + POINT * CANDIDATES  # columns that `work` needs for walls

SAME = 1e-9  # points nearer than this fraction of the outer radius are one


@func
def corner(hulls, k, v):
    """Corner v, a column of hulls.vertex, at size factor k."""
    return (k * hulls.vertex[0, v], k * hulls.vertex[1, v], k * hulls.vertex[2, v])


@func
def face_normal(hulls, f):
    """Outward unit normal of face f, a column of hulls.normal."""
    return (hulls.normal[0, f], hulls.normal[1, f], hulls.normal[2, f])


@func
def point_at(work, column):
    """The vector that stands in three columns."""
    return (work[column], work[column + 1], work[column + 2])


@func
def put_point(work, column, point, gap, n, feature):
    """One contact point into eight columns from `column` on."""
    work[column] = point[0]
    work[column + 1] = point[1]
    work[column + 2] = point[2]
    work[column + 3] = gap
    work[column + 4] = n[0]
    work[column + 5] = n[1]
    work[column + 6] = n[2]
    work[column + 7] = feature


@func
def copy_point(work, source, target):
    """Eight columns from `source` to `target`."""
    for j in range(POINT):
        work[target + j] = work[source + j]


@part
def add_point(work, count, size, point, gap, n, feature):
    """One more candidate after `count` of them; how many there are now. size [m]: the outer radius."""
    if count == CANDIDATES:
        count = keep_four(work, count, size)
        for i in range(count):
            copy_point(work, POINT * i, SCRATCH + POINT * i)
    put_point(work, SCRATCH + POINT * count, point, gap, n, feature)
    return count + 1


@func
def square_between(work, one, two):
    """Squared distance of the points in columns `one` and `two` [m^2]."""
    d = sub(point_at(work, one), point_at(work, two))
    return dot(d, d)


@func
def deepest(work, count):
    """Which candidate has the least gap; the first of equals."""
    best = 0
    for i in range(1, count):
        if work[SCRATCH + POINT * i + 3] < work[SCRATCH + POINT * best + 3]:
            best = i
    return best


@func
def keep_all(work, count, first, same):
    """All candidates that do not coincide, candidate `first` in front: how many."""
    copy_point(work, SCRATCH + POINT * first, 0)
    kept = 1
    for i in range(count):
        new = i != first
        for j in range(kept):
            new = new and square_between(work, SCRATCH + POINT * i, POINT * j) > same
        if new:
            copy_point(work, SCRATCH + POINT * i, POINT * kept)
            kept += 1
    return kept


@part
def farthest_from(work, count):
    """The candidate farthest from the first kept point, and the squared distance [m^2]."""
    best, most = 0, -1.0
    for i in range(count):
        square = square_between(work, SCRATCH + POINT * i, 0)
        if square > most:
            best, most = i, square
    return best, most


@part
def widest_triangle(work, count):
    """The candidate that makes the largest triangle with the two kept points, and its squared double area [m^4]."""
    a = point_at(work, 0)
    side = sub(point_at(work, POINT), a)
    best, most = 0, -1.0
    for i in range(count):
        n = cross(side, sub(point_at(work, SCRATCH + POINT * i), a))
        square = dot(n, n)
        if square > most:
            best, most = i, square
    return best, most


@part
def most_added(work, count):
    """The candidate that adds most to the triangle of the three kept points, and twice that area [m^2]."""
    a, b, c = point_at(work, 0), point_at(work, POINT), point_at(work, 2 * POINT)
    n = cross(sub(b, a), sub(c, a))
    length = math.sqrt(dot(n, n))
    best, most = 0, 0.0
    for i in range(count):
        p = point_at(work, SCRATCH + POINT * i)
        # Beyond one side of the triangle, a point adds the triangle that it makes with that side.
        one = -dot(cross(sub(b, a), sub(p, a)), n)
        two = -dot(cross(sub(c, b), sub(p, b)), n)
        three = -dot(cross(sub(a, c), sub(p, c)), n)
        added = max(one, two, three) / length
        if added > most:
            best, most = i, added
    return best, most


@part
def keep_four(work, count, size):
    """Write up to four of `count` candidates as contact points, the deepest first; how many.

    The deepest; the farthest from it; the one that makes the largest triangle with these; the one that adds most to it.
    Of equals the first. Points that coincide within SAME of the size [m] count once; of more than four points on one
    line only the two ends are kept.
    """
    if count == 0:
        return 0
    first = deepest(work, count)
    tolerance = SAME * size
    if count <= 4:
        return keep_all(work, count, first, tolerance * tolerance)
    copy_point(work, SCRATCH + POINT * first, 0)
    second, square = farthest_from(work, count)
    if not square > tolerance * tolerance:
        return 1
    copy_point(work, SCRATCH + POINT * second, POINT)
    third, area = widest_triangle(work, count)
    if not area > tolerance * tolerance * square:
        return 2
    copy_point(work, SCRATCH + POINT * third, 2 * POINT)
    fourth, added = most_added(work, count)
    if not added > tolerance * math.sqrt(square):
        return 3
    copy_point(work, SCRATCH + POINT * fourth, 3 * POINT)
    return 4


@part
def hull_plane(h, k, hulls, n, height, margin, work):
    """Corners of hull h at size factor k against a plane: how many contact points were written, 0 to 4.

    n: unit, from the polyhedron into the matter of the plane. height [m]: of the polyhedron's centre above the plane.
    Only corners can touch a plane, each with its own gap = height - k n . v; more than four are reduced.
    """
    size = k * hulls.outer[h]
    if height - size > margin:
        return 0
    start = hulls.vertex_start[h]
    end = hulls.vertex_start[h + 1]
    vertex = hulls.vertex
    limit = (height - margin) / k
    count = np.int64(0)  # a bare 0 has a type of its own, for which all that is called would be compiled again
    for i in range(start, end):
        v = np.uintp(i)
        along = n[0] * vertex[0, v] + n[1] * vertex[1, v] + n[2] * vertex[2, v]
        if along >= limit:
            gap = height - k * along
            if gap <= margin:
                count = add_point(work, count, size, corner(hulls, k, v), gap, n, 4.0 * (i - start) + VERTEX_FACE)
    return keep_four(work, count, size)

"""A convex polyhedron against one triangle of a triangulated particle: distance, nearest points, or that they cross.

Everything is in the axes of the polyhedron, about its centre, in metres. Both are convex and apart, so the distance is the
least over corners of the triangle with the polyhedron, corners of the polyhedron over the triangle, and edges with sides.
"""

import math

import numpy as np

from ..kernels.backend import func, part
from ..kernels.vec import add, cross, dot, normalize, scale, sub
from .ellipsoid_triangle import within
from .polyhedron_distance import nearest_of_edges
from .polyhedron_plane import corner, face_normal
from .polyhedron_polyhedron import reach_along
from .polyhedron_sphere import highest_face, nearest_outside

FAR, APART, CROSSING = 0, 1, 2


@func
def face_separation(h, k, hulls, p, r, s, m):
    """The greatest separation over the normals of faces and the normal m of the triangle: (s [m], n from the hull)."""
    best, n = -math.inf, m
    for i in range(hulls.face_start[h], hulls.face_start[h + 1]):
        f = np.uintp(i)
        w = face_normal(hulls, f)
        here = min(dot(w, p), dot(w, r), dot(w, s)) - k * hulls.offset[f]
        if here > best:
            best, n = here, w
    first, last = hulls.vertex_start[h], hulls.vertex_start[h + 1]
    for side in (1.0, -1.0):
        w = scale(side, m)
        here = min(dot(w, p), dot(w, r), dot(w, s)) - k * reach_along(hulls.vertex, first, last, w)
        if here > best:
            best, n = here, w
    return best, n


@func
def passes_through(a, b, p, r, s, m):
    """Whether the line from a to b goes through the triangle with normal m, and where."""
    one, two = dot(m, sub(a, p)), dot(m, sub(b, p))
    x = add(a, scale(one / (one - two) if one != two else 0.0, sub(b, a)))
    apart = (one > 0.0 and two > 0.0) or (one < 0.0 and two < 0.0)
    return not apart and within(x, p, r, s, m), x


@func
def side_inside(h, k, hulls, a, b):
    """Whether some of the line from a to b is inside hull h, and the middle of that."""
    enter, leave = 0.0, 1.0
    for i in range(hulls.face_start[h], hulls.face_start[h + 1]):
        f = np.uintp(i)
        n = face_normal(hulls, f)
        one, two = dot(n, a) - k * hulls.offset[f], dot(n, b) - k * hulls.offset[f]
        if one > 0.0 and two > 0.0:
            leave = -1.0
        elif one > 0.0:
            enter = max(enter, one / (one - two))
        elif two > 0.0:
            leave = min(leave, one / (one - two))
    return enter <= leave, add(a, scale(0.5 * (enter + leave), sub(b, a)))


@part
def hull_facet(h, k, hulls, p, r, s, margin):
    """Hull h at size factor k against the triangle with corners p, r, s [m]: (status, distance [m], n, point [m]).

    status FAR: farther apart than margin, and nothing else is told. APART: distance of the two, n the unit normal from the hull
    to the triangle, point the nearest point of the hull; that of the triangle is a distance away along n. CROSSING: distance is
    that along n, negative, the best over the faces of the hull and that of the triangle: a way out, though not always the least; and
    point is one that both have in common.
    """
    zero = (0.0, 0.0, 0.0)
    m = normalize(cross(sub(r, p), sub(s, p)))
    level, start = face_separation(h, k, hulls, p, r, s, m)
    if level > margin:
        return FAR, 0.0, zero, zero
    least, n, point = math.inf, start, zero
    met, common = False, zero
    for j in range(3):
        x = p if j == 0 else (r if j == 1 else s)
        face, height = highest_face(h, k, hulls, x)
        if height <= 0.0:
            met, common = True, x
        elif height < least:
            place, square, _ = nearest_outside(h, k, hulls, x, least)
            if square < least * least:
                least, point = math.sqrt(square), place
                far = least > 1e-12 * k * hulls.outer[h]
                n = scale(1.0 / least, sub(x, place)) if far else face_normal(hulls, np.uintp(face))
    for i in range(hulls.vertex_start[h], hulls.vertex_start[h + 1]):
        x = corner(hulls, k, np.uintp(i))
        height = dot(m, sub(x, p))
        if abs(height) < least and within(x, p, r, s, m):
            least, point, n = abs(height), x, scale(-1.0 if height >= 0.0 else 1.0, m)
    # No point of an edge is nearer to the triangle than both its ends are along `start`.
    low = min(dot(start, p), dot(start, r), dot(start, s))
    for i in range(hulls.edge_start[h], hulls.edge_start[h + 1]):
        e = np.uintp(i)
        a = corner(hulls, k, np.uintp(hulls.edge[e, 0]))
        b = corner(hulls, k, np.uintp(hulls.edge[e, 1]))
        if low - max(dot(start, a), dot(start, b)) < least:
            through, x = passes_through(a, b, p, r, s, m)
            if through and not met:
                met, common = True, x
            for j in range(3):
                x = p if j == 0 else (r if j == 1 else s)
                y = r if j == 0 else (s if j == 1 else p)
                gap, w, foot = nearest_of_edges(a, b, x, y)
                if gap < least:
                    least, n, point = gap, w, foot
    for j in range(3):
        if level <= 0.0 and not met:
            met, common = side_inside(
                h, k, hulls, p if j == 0 else (r if j == 1 else s), r if j == 0 else (s if j == 1 else p)
            )
    if met and level <= 0.0:
        return CROSSING, level, start, common
    if least > margin:
        return FAR, 0.0, zero, zero
    return APART, least, n, point

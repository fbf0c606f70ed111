"""A superquadric against a convex polyhedron or a triangle: the best of faces, edges and corners, which are all that can be.

Everything is in the axes of the superquadric, about its centre: see `superquadric_support`. Every separation is a bound of the signed
distance from below, and one of those that are looked at is the greatest.
"""

import math

import numpy as np

from ..kernels.backend import func
from ..kernels.vec import add, cross, dot, norm, normalize, scale, sub
from ..shapes.superquadric import inside_ball, norm2
from .ellipsoid_triangle import across as any_across
from .mesh_cylinder import point_nearest
from .polyhedron_plane import corner, face_normal
from .polyhedron_polyhedron import reach_along
from .superquadric_support import (
    around_edge,
    climb,
    climb_above,
    highest,
    inward,
    least_bend,
    outward,
    point_like,
    reach,
    side_normal,
)

CORNERS = 4  # corners that are tried one after the other
FACING = 1e-10  # of the size: points this near are one


@func
def apart_along(n, d, m, h, k, hulls, size, e):
    """How far a superquadric and hull h at size factor k, centre at d, turned by matrix m, are apart along unit n [m]."""
    back = inward(m, n)
    back = (-back[0], -back[1], -back[2])
    far = reach_along(hulls.vertex, hulls.vertex_start[h], hulls.vertex_start[h + 1], back)
    return dot(n, d) - reach(n, size, e)[0] - k * far


@func
def nearest_corner(n, d, m, h, k, hulls):
    """The corner of the hull that comes first along n, and its number."""
    back = inward(m, n)
    nearest, least = hulls.vertex_start[h], math.inf
    for i in range(hulls.vertex_start[h], hulls.vertex_start[h + 1]):
        height = dot(back, corner(hulls, k, np.uintp(i)))
        if height < least:
            nearest, least = i, height
    return add(d, outward(m, corner(hulls, k, np.uintp(nearest)))), nearest


@func
def faces(n, f, x, size, e):
    """Whether the point of the superquadric with unit normal n is f [m] before x: then that is their distance, if there is one top."""
    miss = sub(add(reach(n, size, e)[1], scale(f, n)), x)
    return norm(miss) <= FACING * (size[0] + size[1] + size[2])


@func
def one_top(n, x, size, e):
    """Uphill to the separation of a superquadric from the point x, while it has one top: (n, s [m]); from several starts where one does not lead there."""
    w = normalize(x) if dot(x, x) > 0.0 else n
    w = w if dot(w, x) - reach(w, size, e)[0] > dot(n, x) - reach(n, size, e)[0] else n
    w, up = climb(w, x, size, e, point_like())
    if faces(w, up, x, size, e):
        return w, up
    return highest(n, x, size, e, point_like(), -math.inf)


@func
def point_bound(x, least, size, e):
    """At least the separation [m] of a superquadric with a ball of radius `least` inside from anything that holds the point x.

    A point at level l of the norm that is 1 on the surface has the surface at x / l; and if l < 1, the ball of radius (1 - l) least about it is inside.
    """
    level = norm2(
        norm2(abs(x[0]) / size[0], abs(x[1]) / size[1], e[1] / (e[1] - 1.0)), abs(x[2]) / size[2], e[0] / (e[0] - 1.0)
    )
    return -(1.0 - level) * least if level < 1.0 else norm(x) * (1.0 - 1.0 / level)


@func
def edge_bound(x, way, least, size, e):
    """The same of the edge from x along way, by its point nearest to the centre."""
    along = min(max(-dot(x, way) / dot(way, way), 0.0), 1.0)
    return point_bound(add(x, scale(along, way)), least, size, e)


@func
def by_corners(n, best, d, m, h, k, hulls, size, e, shallow):
    """The best separation above `best` that corners of the hull offer from n on: (s [m], n, corner, whether that is the distance, the last
    two corners).

    The corner that is nearest along n is climbed to; where it is still the nearest then, its distance is that of the hull. Where the nearest one is
    that before the last again, their edge or what is around it is nearer than both. Below `shallow` [m] a corner may have several tops.
    """
    other = point_like()
    top, at = n, d
    one, two = -1, -1
    for _ in range(CORNERS):
        x, i = nearest_corner(n, d, m, h, k, hulls)
        if i == one:
            break
        one, two = two, i
        if best > shallow:
            n, up = one_top(n, x, size, e)
        else:
            n, up = highest(n, x, size, e, other, -math.inf)
        f = apart_along(n, d, m, h, k, hulls, size, e)
        if f > best:
            best, top, at = f, n, x
        if not up - f > 1e-14 * (size[0] + size[1] + size[2]):
            return best, top, at, f == best, (one, two)
    return best, top, at, False, (one, two)


@func
def shared(hulls, i, last):
    """How many of two corners are ends of edge i."""
    a, b = hulls.edge[i, 0], hulls.edge[i, 1]
    return (1 if last[0] in (a, b) else 0) + (1 if last[1] in (a, b) else 0)


@func
def by_edges(n, best, y, d, m, h, k, hulls, size, e, shallow, last):
    """The best separation above `best` that edges of the hull offer: (s [m], n, point of the edge, whether that is the distance).

    Edges at the last two corners (2,) that were tried come first. While there is one top, that is above `shallow` [m], an edge is the nearest of all
    where the superquadric faces its inside and nothing of the hull is before it.
    """
    least = inside_ball(size, e)
    count = hulls.edge_start[h + 1] - hulls.edge_start[h]
    for j in range(3 * count):
        i = np.uintp(hulls.edge_start[h] + j % count)
        if shared(hulls, i, last) != 2 - j // count:
            continue
        x = add(d, outward(m, corner(hulls, k, np.uintp(hulls.edge[i, 0]))))
        way = sub(add(d, outward(m, corner(hulls, k, np.uintp(hulls.edge[i, 1])))), x)
        if edge_bound(x, way, least, size, e) > best:
            p = outward(m, face_normal(hulls, np.uintp(hulls.edge_face[i, 0])))
            q = outward(m, face_normal(hulls, np.uintp(hulls.edge_face[i, 1])))
            p, q = (-p[0], -p[1], -p[2]), (-q[0], -q[1], -q[2])
            cosine = min(max(dot(p, q), -1.0), 1.0)
            w = around_edge(x, p, normalize(sub(q, scale(cosine, p))), math.acos(cosine), size, e)
            f = apart_along(w, d, m, h, k, hulls, size, e)
            if f > best:
                along = min(max(dot(sub(reach(w, size, e)[1], x), way) / dot(way, way), 0.0), 1.0)
                best, n, y = f, w, add(x, scale(along, way))
                if best > shallow and faces(n, f, y, size, e):
                    return best, n, y, True
    return best, n, y, False


@func
def each_corner(n, best, y, d, m, h, k, hulls, size, e):
    """The best separation above `best` of all corners of the hull: (s [m], n, corner).

    A corner outside has one top, to which any direction leads; one inside has a top at each side of the superquadric.
    """
    least, other = inside_ball(size, e), point_like()
    for i in range(hulls.vertex_start[h], hulls.vertex_start[h + 1]):
        x = add(d, outward(m, corner(hulls, k, np.uintp(i))))
        if point_bound(x, least, size, e) > best:
            for j in range(8):
                # The sides towards the corner are nearest to it.
                w = (
                    math.copysign(1.0 / size[0] if j & 1 else 0.0, x[0]),
                    math.copysign(1.0 / size[1] if j & 2 else 0.0, x[1]),
                    math.copysign(1.0 / size[2] if j & 4 else 0.0, x[2]),
                )
                w, up = climb_above(n if j == 0 else normalize(w), x, size, e, other, best)
                if up > best:
                    f = apart_along(w, d, m, h, k, hulls, size, e)
                    if f > best:
                        best, n, y = f, w, x
                if up > 0.0:
                    break
    return best, n, y


@func
def within_face(y, face, k, hulls):
    """Whether a point y of the plane of a face is within it."""
    inside = True
    for j in range(hulls.loop_start[face], hulls.loop_start[face + 1]):
        i = np.uintp(j)
        over = hulls.side[0, i] * y[0] + hulls.side[1, i] * y[1] + hulls.side[2, i] * y[2]
        inside = inside and over <= k * hulls.side_offset[i]
    return inside


@func
def hull_separation(d, m, h, k, hulls, size, e, margin):
    """The greatest separation [m] of a superquadric and hull h at size factor k, centre at d, turned by matrix m, n from the
    superquadric to the hull, and the point of the hull; a greater separation than margin may be any above it."""
    best, n, face = -math.inf, (1.0, 0.0, 0.0), hulls.face_start[h]
    for i in range(hulls.face_start[h], hulls.face_start[h + 1]):
        f = np.uintp(i)
        w = outward(m, face_normal(hulls, f))
        s = -dot(w, d) - k * hulls.offset[f] - reach(w, size, e)[0]
        if s > best:
            best, n, face = s, (-w[0], -w[1], -w[2]), i
            if s > margin:
                return best, n, d
    # Where the face has the point below the superquadric, no direction around is better; and no other at all while the overlap is
    # less than all radii of curvature, for without a rim of that thickness the two were apart, and then there is one top only.
    y = add(reach(n, size, e)[1], scale(best, n))
    shallow = -least_bend(size, e)
    if best > shallow and within_face(inward(m, sub(y, d)), face, k, hulls):
        return best, n, y
    f, w, x, sure, last = by_corners(n, best, d, m, h, k, hulls, size, e, shallow)
    if f > best:
        best, n, y = f, w, x
    if best > shallow and sure:
        return best, n, y
    best, n, y, sure = by_edges(n, best, y, d, m, h, k, hulls, size, e, shallow, last)
    if sure:
        return best, n, y
    if best < 0.0:
        # Of bodies that overlap each side of the superquadric may have a top of its own; those much deeper are left out.
        for i in range(26):
            w = side_normal(i, size)
            if apart_along(w, d, m, h, k, hulls, size, e) > 3.0 * best:
                for _ in range(CORNERS):
                    x, _ = nearest_corner(w, d, m, h, k, hulls)
                    w, up = climb_above(w, x, size, e, point_like(), best)
                    f = apart_along(w, d, m, h, k, hulls, size, e)
                    if f > best:
                        best, n, y = f, w, x
                    if not up - f > 1e-14 * (size[0] + size[1] + size[2]):
                        break
    return each_corner(n, best, y, d, m, h, k, hulls, size, e)


@func
def corners_from(k, p, r, s):
    """The corners of a triangle in turn from the k-th on."""
    if k == 0:
        return p, r, s
    return (r, s, p) if k == 1 else (s, p, r)


@func
def above_triangle(n, p, r, s, size, e):
    """How far a superquadric and a triangle are apart along unit n."""
    return min(dot(n, p), dot(n, r), dot(n, s)) - reach(n, size, e)[0]


@func
def first_corner(n, p, r, s):
    """The corner of a triangle that comes first along n."""
    a, b, c = dot(n, p), dot(n, r), dot(n, s)
    return p if a <= b and a <= c else (r if b <= c else s)


@func
def corners_uphill(n, p, r, s, size, e, least):
    """Uphill from n to the tops of the corners that come first, as far as these are above `least` [m]: (n, separation [m] along it, corner), the
    best on the way."""
    best, top, at = -math.inf, n, p
    for _ in range(CORNERS):
        x = first_corner(n, p, r, s)
        n, up = climb_above(n, x, size, e, point_like(), least)
        f = above_triangle(n, p, r, s, size, e)
        if f > best:
            best, top, at = f, n, x
        if not up - f > 1e-14 * (size[0] + size[1] + size[2]):
            break
    return top, best, at


@func
def triangle_bound(p, r, s, size, e):
    """No more than the separation [m] of a superquadric and a triangle: the better of its face and of the way to its nearest point."""
    m = cross(sub(r, p), sub(s, p))
    best = -math.inf
    if dot(m, m) > 0.0:
        m = normalize(m)
        best = above_triangle(m if dot(m, p) >= 0.0 else (-m[0], -m[1], -m[2]), p, r, s, size, e)
    nearest = point_nearest((0.0, 0.0, 0.0), p, r, s)
    return max(best, above_triangle(normalize(nearest), p, r, s, size, e)) if dot(nearest, nearest) > 0.0 else best


@func
def triangle_separation(p, r, s, size, e, limit):
    """The greatest separation [m] of a superquadric and the triangle p, r, s, a sheet, n from the superquadric to it, and the point of it.

    As soon as a direction shows that it is above `limit` [m], it is told as it is along that one.
    """
    # The axis of a capsule is a triangle without area, its last two corners are one: it has no face, and its side there and back are both halves around it.
    area = norm(sub(s, r)) > 0.0
    m = normalize(cross(sub(r, p), sub(s, p))) if area else any_across(sub(r, p))
    m = m if dot(m, p) >= 0.0 else (-m[0], -m[1], -m[2])
    best, n = above_triangle(m, p, r, s, size, e), m
    if best > limit:
        return best, n, p
    nearest = point_nearest((0.0, 0.0, 0.0), p, r, s)
    if dot(nearest, nearest) > 0.0:
        w = normalize(nearest)
        f = above_triangle(w, p, r, s, size, e)
        if f > limit:
            return f, w, nearest
    y = add(reach(n, size, e)[1], scale(best, n))
    inside = True
    for k in range(3):
        a, b, c = corners_from(k, p, r, s)
        out = cross(m, sub(b, a))
        out = out if dot(out, sub(c, a)) <= 0.0 else (-out[0], -out[1], -out[2])
        inside = inside and dot(out, sub(y, a)) <= 0.0
    # Deeper than half its shortest half-axis no simulation goes on: only there may an edge be the way out from amid the triangle. Above
    # it a triangle is a part of a surface, of which edges amid flat places are no edges.
    deep = -0.5 * min(size[0], size[1], size[2])
    if area and inside and best > deep:
        return best, n, y
    least, other = inside_ball(size, e), point_like()
    shallow = -least_bend(size, e)
    # While there is one top, a corner that is still first along its own best direction is nearest, or an edge that is.
    if best > shallow:
        x = first_corner(normalize(nearest), p, r, s)
        w, _ = one_top(n, x, size, e)
        f = above_triangle(w, p, r, s, size, e)
        if f > best:
            best, n, y = f, w, x
            if best > limit or faces(n, f, y, size, e):
                return best, n, y
    for k in range(3):
        a, b, c = corners_from(k, p, r, s)
        if (not area and norm(sub(b, a)) == 0.0) or not edge_bound(a, sub(b, a), least, size, e) > best:
            continue
        out = normalize(cross(m, sub(b, a)))
        out = out if dot(out, sub(c, a)) >= 0.0 or not area else (-out[0], -out[1], -out[2])
        w = around_edge(a, m, out, math.pi, size, e)
        f = above_triangle(w, p, r, s, size, e)
        if f > best:
            way = sub(b, a)
            along = min(max(dot(sub(reach(w, size, e)[1], a), way) / dot(way, way), 0.0), 1.0)
            best, n, y = f, w, add(a, scale(along, way))
            if best > limit or (best > shallow and faces(n, f, y, size, e)):
                return best, n, y
    for k in range(3):
        x, _, _ = corners_from(k, p, r, s)
        if point_bound(x, least, size, e) > best:
            w, _ = highest(n, x, size, e, other, best)
            f = above_triangle(w, p, r, s, size, e)
            if f > best:
                best, n, y = f, w, x
                if best > limit:
                    return best, n, y
    if best < deep:
        # As of hulls, each side of the superquadric may have a top of its own.
        for i in range(26):
            w = side_normal(i, size)
            if above_triangle(w, p, r, s, size, e) > 3.0 * best:
                w, f, x = corners_uphill(w, p, r, s, size, e, best)
                if f > best:
                    best, n, y = f, w, x
                    if best > limit:
                        break
    return best, n, y

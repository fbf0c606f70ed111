"""An ellipsoid against one triangle of a triangulated particle: signed distance and where they are nearest.

A triangle is a flat convex body without a side of its own: the signed distance is the greatest separation s(n) over all unit n, as in
`ellipsoid_polyhedron`, positive while the two are apart. What is looked at are the normal of the triangle, the best n of its
sides and of its corners. Contacts with wall triangles, which know their neighbours, are in `ellipsoid_walls`.
"""

import math

from ..kernels.backend import func
from ..kernels.vec import add, cross, dot, norm, normalize, scale, sub
from ..shapes.ellipsoid_form import own_axes
from .ellipsoid_point import nearest_in_shadow, nearest_in_space, stretched, support


@func
def separation(p, r, s, axes, size, n):
    """How far an ellipsoid about the origin and a triangle are apart along unit n, from the triangle to the ellipsoid [m]."""
    u = stretched(axes, size, n)
    return -max(dot(n, p), dot(n, r), dot(n, s)) - math.sqrt(dot(u, u))


@func
def across(u):
    """A unit vector at right angles to u, which may be zero."""
    x, y, z = abs(u[0]), abs(u[1]), abs(u[2])
    axis = (1.0, 0.0, 0.0) if x <= y and x <= z else ((0.0, 1.0, 0.0) if y <= z else (0.0, 0.0, 1.0))
    t = cross(u, axis)
    return normalize(t) if dot(t, t) > 0.0 else (0.0, 0.0, 1.0)


@func
def place_on_side(y, p, r):
    """The point of the side from p to r that is nearest to y."""
    u = sub(r, p)
    t = min(max(dot(sub(y, p), u) / dot(u, u), 0.0), 1.0)
    return add(p, scale(t, u))


@func
def within(y, p, r, s, m):
    """Whether y is over the inside of the triangle with normal m (any length), corners in the sense of m."""
    one = dot(cross(sub(r, p), sub(y, p)), m)
    two = dot(cross(sub(s, r), sub(y, r)), m)
    three = dot(cross(sub(p, s), sub(y, s)), m)
    return min(one, two, three) >= 0.0


@func
def triangle_ellipsoid(p, r, s, c, q, size):
    """Triangle with corners p, r, s against an ellipsoid: (gap [m], n, point [m]).

    c: the ellipsoid's centre; unit quaternion q turns its own axes into those in which all is given; size: its semi-axes [m]. gap:
    distance of the surfaces, negative where they cross, and then the least way out as long as this is shorter than the smallest
    radius of curvature. n: unit, from the triangle to the ellipsoid. point: of the triangle, nearest to the ellipsoid; that of
    the ellipsoid is a gap away along n.
    """
    axes = own_axes(q)
    p, r, s = sub(p, c), sub(r, c), sub(s, c)
    # The axis of a capsule is a triangle without area, its last two corners are one: it has no face, and any plane through it will do.
    area = norm(sub(s, r)) > 0.0
    m = normalize(cross(sub(r, p), sub(s, p))) if area else across(sub(r, p))
    n = m if dot(m, p) <= 0.0 else (-m[0], -m[1], -m[2])
    gap = separation(p, r, s, axes, size, n)
    _, arm = support(axes, size, n)
    y = (-arm[0], -arm[1], -arm[2])
    point = sub(y, scale(gap, n))
    if area and gap >= 0.0 and within(y, p, r, s, m):
        return gap, n, add(c, point)
    for k in range(3):
        a = p if k == 0 else (r if k == 1 else s)
        b = r if k == 0 else (s if k == 1 else p)
        if not area and norm(sub(b, a)) == 0.0:
            continue
        _, w = nearest_in_shadow(a, axes, size, m, normalize(cross(sub(b, a), m)))
        w = (-w[0], -w[1], -w[2])
        other = separation(p, r, s, axes, size, w)
        if other > gap:
            _, arm = support(axes, size, w)
            gap, n, point = other, w, place_on_side((-arm[0], -arm[1], -arm[2]), a, b)
    for k in range(3):
        a = p if k == 0 else (r if k == 1 else s)
        _, w = nearest_in_space(a, axes, size)
        w = (-w[0], -w[1], -w[2])
        other = separation(p, r, s, axes, size, w)
        if other > gap:
            gap, n, point = other, w, a
    return gap, n, add(c, point)

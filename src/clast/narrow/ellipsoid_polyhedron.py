"""An ellipsoid against a convex polyhedron: signed distance, normal and the one point where they touch.

Everything is in the axes of the polyhedron, about its centre, in metres, as in `polyhedron_sphere`. Two convex bodies: the
signed distance is the greatest separation s(n) = n . c - h(n) - (reach of the polyhedron along n) over all unit n, h the support of
the ellipsoid. What is looked at are the normals of faces, for each edge the best n at right angles to it if it lies between
its two faces, and the best n of corners: the signed distances of a plane, a line and a point from the ellipsoid, from its near side
and, where both overlap, from its far side. Every s(n) is a bound from below, and one of these is the greatest: the distance, or the
least way out at any depth.
"""

import math

import numpy as np

from ..broad.near import asleep
from ..kernels.backend import func, kernel
from ..kernels.kinds import turn_of
from ..kernels.launch import same
from ..kernels.vec import (
    add,
    cross,
    dot,
    load4,
    matrix_vector,
    norm,
    normalize,
    quat_multiply,
    rotate,
    scale,
    sub,
    unrotate,
)
from ..shapes.ellipsoid_form import load_form, own_axes
from .curvature import wall_radius
from .ellipsoid_point import far_in_shadow, far_in_space, nearest_in_shadow, nearest_in_space, stretched, support
from .ellipsoids import between
from .polyhedra import ball_radius, conjugate
from .polyhedron_plane import corner, face_normal
from .polyhedron_polyhedron import above, reach_along
from .polyhedron_sphere import CORNER, FACE, SIDE
from .superquadric_flat import within_face

MANY = 63  # corners of a polyhedron that are told apart as bits of a set


@func
def separation(h, k, hulls, c, axes, size, n):
    """How far an ellipsoid and hull h are apart along unit n, from the hull to the ellipsoid [m]."""
    u = stretched(axes, size, n)
    reach = k * reach_along(hulls.vertex, hulls.vertex_start[h], hulls.vertex_start[h + 1], n)
    return dot(n, c) - math.sqrt(dot(u, u)) - reach


@func
def face_separation(h, k, hulls, c, axes, size, limit):
    """The greatest separation over the normals of faces, ends with the first above limit: (s [m], n, face)."""
    best, n, face = -math.inf, (0.0, 0.0, 0.0), hulls.face_start[h]
    for i in range(hulls.face_start[h], hulls.face_start[h + 1]):
        f = np.uintp(i)
        m = face_normal(hulls, f)
        height = dot(m, c) - k * hulls.offset[f]
        if height > best:
            u = stretched(axes, size, m)
            s = height - math.sqrt(dot(u, u))
            if s > best:
                best, n, face = s, m, i
                if s > limit:
                    break
    return best, n, face


@func
def corner_bit(v, h, hulls):
    """A corner of hull h as one bit of a set; all from MANY on are one."""
    return np.uint64(1) << np.uint64(min(v - hulls.vertex_start[h], MANY))


@func
def edge_separation(h, k, hulls, c, axes, size, better, start):
    """The edge with the greatest separation above `better` [m], and which corners may have more: (edge or -1, s, n, corners as bits).

    start: unit, the best n so far. Neither a ball about the centre that lies in the ellipsoid nor its deepest point along `start` is farther away than the
    ellipsoid itself: an edge with less room to one of them is not looked at, nor a corner whose faces all have the deep point below them by more.
    """
    ball = min(size[0], size[1], size[2])
    deep = sub(c, support(axes, size, start)[1])
    found, best, n, corners = -1, better, (0.0, 0.0, 0.0), np.uint64(0)
    for i in range(hulls.edge_start[h], hulls.edge_start[h + 1]):
        e = np.uintp(i)
        f, g = np.uintp(hulls.edge_face[e, 0]), np.uintp(hulls.edge_face[e, 1])
        one, two = face_normal(hulls, f), face_normal(hulls, g)
        deep_f, deep_g = dot(one, deep) - k * hulls.offset[f], dot(two, deep) - k * hulls.offset[g]
        # Any n between the two normals is a sum of them by parts of at least 1 together.
        if not max(deep_f, deep_g) > min(best, 0.0):
            continue
        corners |= corner_bit(hulls.edge[e, 0], h, hulls) | corner_bit(hulls.edge[e, 1], h, hulls)
        cosine, inverse = hulls.edge_bend[e, 0], hulls.edge_bend[e, 1]
        high_f, high_g = dot(one, c) - k * hulls.offset[f], dot(two, c) - k * hulls.offset[g]
        near = above(high_f, high_g, cosine, inverse, best + ball)
        if near and above(deep_f, deep_g, cosine, inverse, best):
            p = corner(hulls, k, np.uintp(hulls.edge[e, 0]))
            u = normalize(sub(corner(hulls, k, np.uintp(hulls.edge[e, 1])), p))
            beside = cross(u, one)
            s, m = nearest_in_shadow(sub(p, c), axes, size, one, beside)
            if s > best and best < 0.0 and not (dot(m, beside) < 0.0 and dot(m, cross(two, u)) < 0.0):
                s, m = far_in_shadow(sub(p, c), axes, size, one, beside)
            if s > best and dot(m, beside) < 0.0 and dot(m, cross(two, u)) < 0.0:
                found, best, n = i, s, (-m[0], -m[1], -m[2])
    return found, best, n, corners


@func
def too_deep(d, axes, size, depth):
    """Whether a point inside at d from the centre is as deep as minus `depth` times the shortest semi-axis at the least: an ellipsoid 1 - level times as
    large is inside about it, and so is a ball."""
    u = matrix_vector(axes, d)
    x, y, z = u[0] / size[0], u[1] / size[1], u[2] / size[2]
    level = 1.0 + depth
    return level > 0.0 and x * x + y * y + z * z <= level * level


@func
def corner_separation(h, k, hulls, c, axes, size, better, start, corners):
    """The corner with the greatest separation above `better` [m]: (corner or -1, s, n). start: unit, the best n so far; corners: see
    `edge_separation`.

    Of corners outside the ellipsoid only the nearest can be touched, but for the far side of a body that is thinner than both are deep in each other; those
    farther back along `start` are not looked at while both may be apart.
    """
    u = stretched(axes, size, start)
    level = dot(start, c) - math.sqrt(dot(u, u))
    ball = min(size[0], size[1], size[2])
    found, best, n = -1, better, start
    nearest, least, way = -1, math.inf, start
    for i in range(hulls.vertex_start[h], hulls.vertex_start[h + 1]):
        x = corner(hulls, k, np.uintp(i))
        if corners & corner_bit(i, h, hulls) != np.uint64(0) and (best < 0.0 or level - dot(start, x) < least):
            if best < 0.0 and too_deep(sub(x, c), axes, size, best / ball):
                continue
            gap, m = nearest_in_space(sub(x, c), axes, size)
            if gap > 0.0 and gap < least:
                nearest, least, way = i, gap, (-m[0], -m[1], -m[2])
            for j in range(2):
                if gap <= 0.0 and gap > best:
                    m = (-m[0], -m[1], -m[2])
                    s = separation(h, k, hulls, c, axes, size, m)
                    if s > best:
                        found, best, n = i, s, m
                # That way may lead through the polyhedron, when the one through the far side does not.
                gap, m = far_in_space(sub(x, c), axes, size) if j == 0 and best < 0.0 else (-math.inf, m)
    if nearest >= 0:
        s = separation(h, k, hulls, c, axes, size, way)
        if s > best:
            found, best, n = nearest, s, way
    return found, best, n


@func
def along_edge(edge, k, hulls, y):
    """How far along an edge the point y is, 0 at its start and 1 at its end."""
    p = corner(hulls, k, np.uintp(hulls.edge[np.uintp(edge), 0]))
    u = sub(corner(hulls, k, np.uintp(hulls.edge[np.uintp(edge), 1])), p)
    return dot(sub(y, p), u) / dot(u, u)


@func
def hull_ellipsoid(h, k, hulls, c, q, size, margin):
    """Hull h at size factor k against an ellipsoid: (found 0 or 1, gap [m], n, point [m], feature).

    c: the ellipsoid's centre from the polyhedron's centre, in its axes [m]; unit quaternion q turns the ellipsoid's own axes into
    those of the polyhedron; size: its semi-axes [m]. gap is negative when overlapping, n the unit normal from the polyhedron to the
    ellipsoid, point the touched point of the polyhedron's surface; that of the ellipsoid is a gap away along n. Nothing is found if
    gap > margin. feature: 4 * (face) + FACE, 4 * (corner) + CORNER or 4 * (edge) + SIDE, each counted within its hull.
    """
    zero = (0.0, 0.0, 0.0)
    if norm(c) - k * hulls.outer[h] - max(size[0], size[1], size[2]) > margin:
        return 0, 0.0, zero, zero, 0
    axes = own_axes(q)
    gap, n, which = face_separation(h, k, hulls, c, axes, size, margin)
    if gap > margin:
        return 0, 0.0, zero, zero, 0
    # While both overlap by less than all radii of curvature there is one way out: the face, if the ellipsoid is above its inside, else the edge.
    least, most = min(size[0], size[1], size[2]), max(size[0], size[1], size[2])
    shallow = -least * least / most
    if gap > shallow:
        x = sub(sub(c, support(axes, size, n)[1]), scale(gap, n))
        if within_face(x, which, k, hulls):
            return 1, gap, n, x, 4 * (which - hulls.face_start[h]) + FACE
    edge, s, m, corners = edge_separation(h, k, hulls, c, axes, size, gap, n)
    v, t = -1, -1.0
    if edge >= 0:
        gap, n = s, m
        t = along_edge(edge, k, hulls, sub(c, support(axes, size, n)[1]))
    if not (gap > shallow and 0.0 <= t <= 1.0):
        v, s, m = corner_separation(h, k, hulls, c, axes, size, gap, n, corners)
    if v >= 0:
        gap, n = s, m
    if gap > margin:
        return 0, 0.0, zero, zero, 0
    if v >= 0:
        return 1, gap, n, corner(hulls, k, np.uintp(v)), 4 * (v - hulls.vertex_start[h]) + CORNER
    if edge >= 0:
        p = corner(hulls, k, np.uintp(hulls.edge[np.uintp(edge), 0]))
        u = sub(corner(hulls, k, np.uintp(hulls.edge[np.uintp(edge), 1])), p)
        return 1, gap, n, add(p, scale(min(max(t, 0.0), 1.0), u)), 4 * (edge - hulls.edge_start[h]) + SIDE
    y = sub(c, support(axes, size, n)[1])
    return 1, gap, n, sub(y, scale(gap, n)), 4 * (which - hulls.face_start[h]) + FACE


def points_row(k, where, bodies, shapes, parts, hulls, forms, pairs, points, edges, margin):
    """The contact point of the k-th pair of a list, an ellipsoid and a polyhedron in either order, with a gap up to margin [m].

    where: first pair, pairs before the first slot.
    """
    first, spheres = where
    p = first + k
    a, b = pairs.shape[p, 0], pairs.shape[p, 1]
    if asleep(p, a, b, spheres, pairs, margin):
        return
    c = pairs.slot[p - spheres]
    swap = parts.feature[shapes.part[a]] < 0
    s, t = (b, a) if swap else (a, b)
    body, other, part = shapes.body[s], shapes.body[t], shapes.part[t]
    q = load4(bodies.orientation, body)
    centre = unrotate(q, between(s, t, shapes.centre, edges))
    turn = quat_multiply(conjugate(q), turn_of(t, bodies, shapes, parts))
    size = scale(bodies.scale[other], (parts.size[part, 0], parts.size[part, 1], parts.size[part, 2]))
    hull = parts.feature[shapes.part[s]]
    found, gap, n, x, feature = hull_ellipsoid(hull, bodies.scale[body], hulls, centre, turn, size, margin)
    touches = found == 1 and gap <= margin
    points.gap[c] = gap if touches else np.inf
    points.count[p - spheres] = 1 if touches else 0
    if touches:
        n = rotate(q, n)
        arm = add(rotate(q, x), scale(0.5 * gap, n))
        if swap:
            arm = add(arm, between(a, b, shapes.centre, edges))
        one, two = ball_radius(s, bodies, shapes, parts), wall_radius(load_form(forms, t), n)
        points.radius[c], points.feature[c] = one * two / (one + two), feature
        for i in range(3):
            points.normal[c, i] = -n[i] if swap else n[i]
            points.arm[c, i] = arm[i]


def find_points(look, rows, margin):
    """Contact points of pairs of a list; see `clast.narrow.dispatch`."""
    first, count = rows
    there = look.there
    tables = there.bodies, there.shapes, there.parts, there.hulls, there.forms, look.pairs, look.points
    find = kernel(points_row, grain=16)
    find(count, same(first, look.spheres_count), *tables, look.edges, margin)

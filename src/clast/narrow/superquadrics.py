"""A superquadric against any other shape: signed distance, normal and the one point where they touch.

Everything is found in the axes of the superquadric, about its centre. Against smooth bodies the greatest separation is climbed to from several
directions; against flat ones it is the best of faces, edges and corners: see `superquadric_support`.
"""

import math

import numpy as np

from ..broad.near import asleep, local_centre
from ..kernels.backend import func, kernel
from ..kernels.kinds import turn_of
from ..kernels.launch import same
from ..kernels.vec import (
    add,
    dot,
    load,
    load4,
    quat_matrix,
    quat_multiply,
    rotate,
    scale,
    sub,
    unrotate,
)
from ..shapes.superquadric import FLATTEST, SHARPEST
from ..tables import CYLINDER, PLANE, TRIANGLE
from .ellipsoids import between
from .polyhedra import ball_radius, conjugate
from .sphere_walls import sphere_triangle
from .superquadric_cylinder import rod_separation, shell_separation
from .superquadric_flat import hull_separation, triangle_separation
from .superquadric_support import (
    across,
    greatest,
    inward,
    outward,
    radii,
    reach,
)


@func
def duals(parts, row):
    """2 / (2 - e1) and 2 / (2 - e2) of a part; spheres and ellipsoids have exponents 1."""
    one, two = parts.power[row, 0], parts.power[row, 1]
    return (2.0 / (2.0 - (one if one > 0.0 else 1.0)), 2.0 / (2.0 - (two if two > 0.0 else 1.0)))


@func
def sizes(factor, parts, row):
    """Half-axes (3,) [m] of a sphere, an ellipsoid or a superquadric."""
    a, b, c = parts.size[row, 0], parts.size[row, 1], parts.size[row, 2]
    return (factor * a, factor * (b if b > 0.0 else a), factor * (c if b > 0.0 else a))


@func
def bent(n, size, e):
    """Radius [m] that stands for the curvature at the point with unit normal n in laws: that of Gauss, within limits."""
    t, u = across(n)
    tt, tu, uu = radii(n, t, u, size, e)
    low, high = min(size[0], size[1], size[2]), max(size[0], size[1], size[2])
    return min(max(math.sqrt(max(tt * uu - tu * tu, 0.0)), SHARPEST * low), FLATTEST * high)


@func
def write_point(c, p, found, gap, n, arm, radius, points):
    """Write the point of pair p, counted behind those of spheres, into slot c, if it was found."""
    points.gap[c] = gap if found else np.inf
    points.count[p] = 1 if found else 0
    if found:
        points.radius[c] = radius
        points.feature[c] = 0
        for i in range(3):
            points.normal[c, i] = n[i]
            points.arm[c, i] = arm[i]


@func
def write_pair(where, swap, away, gap, n, x, q, radius, points):
    """Write the point of a pair of particles; where: slot, row; n and the point x in the axes of the superquadric, turned by q.

    radius [m]: of curvature, reduced; swap: the superquadric is the second, away (3,) from the first.
    """
    arm, m = rotate(q, x), rotate(q, n)
    if swap:
        arm, m = add(arm, away), (-m[0], -m[1], -m[2])
    write_point(where[0], where[1], True, gap, m, arm, radius, points)


@func
def second_first(a, b, shapes, parts, away):
    """Whether the second of two shapes is the superquadric; of two superquadrics, whether it is the lower along x, y or z, so that
    the answer does not depend on their order."""
    mine, its = parts.power[shapes.part[a], 0] > 0.0, parts.power[shapes.part[b], 0] > 0.0  # others have no exponents
    if mine != its:
        return its
    x = away[0] if away[0] != 0.0 else (away[1] if away[1] != 0.0 else away[2])
    return x < 0.0


def smooth_row(k, where, bodies, shapes, parts, pairs, points, edges, margin):
    """The contact point of the k-th pair of a list, a superquadric and a sphere, an ellipsoid or a superquadric in either order, with a
    gap up to margin [m]; where: first pair, pairs before the first slot."""
    p = where[0] + k
    a, b = pairs.shape[p, 0], pairs.shape[p, 1]
    if asleep(p, a, b, where[1], pairs, margin):
        return
    c = pairs.slot[p - where[1]]
    away = between(a, b, shapes.centre, edges)
    swap = second_first(a, b, shapes, parts, away)
    s, t = (b, a) if swap else (a, b)
    q = turn_of(s, bodies, shapes, parts)
    d = unrotate(q, (-away[0], -away[1], -away[2]) if swap else away)
    size, e = sizes(bodies.scale[shapes.body[s]], parts, shapes.part[s]), duals(parts, shapes.part[s])
    its, dual = sizes(bodies.scale[shapes.body[t]], parts, shapes.part[t]), duals(parts, shapes.part[t])
    m = quat_matrix(quat_multiply(conjugate(q), turn_of(t, bodies, shapes, parts)))
    gap, n = greatest(d, size, e, (its, dual, m, (0.0, 0.0, 1.0), (0.0, 0.0)), margin)
    if gap <= margin:
        one, two = bent(n, size, e), bent(inward(m, n), its, dual)
        # On the sharper of the two the point is known better: on a flat side it may be anywhere.
        x = add(reach(n, size, e)[1], scale(0.5 * gap, n))
        if two < one:
            x = sub(sub(d, outward(m, reach(inward(m, n), its, dual)[1])), scale(0.5 * gap, n))
        write_pair((c, p - where[1]), swap, away, gap, n, x, q, one * two / (one + two), points)
    else:
        write_point(c, p - where[1], False, gap, n, n, 0.0, points)


def hull_row(k, where, bodies, shapes, parts, hulls, pairs, points, edges, margin):
    """The same of a superquadric and a polyhedron."""
    p = where[0] + k
    a, b = pairs.shape[p, 0], pairs.shape[p, 1]
    if asleep(p, a, b, where[1], pairs, margin):
        return
    c = pairs.slot[p - where[1]]
    swap = second_first(a, b, shapes, parts, (0.0, 0.0, 0.0))
    s, t = (b, a) if swap else (a, b)
    q = turn_of(s, bodies, shapes, parts)
    d = unrotate(q, between(s, t, shapes.centre, edges))
    size, e = sizes(bodies.scale[shapes.body[s]], parts, shapes.part[s]), duals(parts, shapes.part[s])
    m = quat_matrix(quat_multiply(conjugate(q), load4(bodies.orientation, shapes.body[t])))
    hull, factor = parts.feature[shapes.part[t]], bodies.scale[shapes.body[t]]
    gap, n, y = hull_separation(d, m, hull, factor, hulls, size, e, margin)
    if gap <= margin:
        away = between(a, b, shapes.centre, edges)
        one, two = bent(n, size, e), ball_radius(t, bodies, shapes, parts)
        x = sub(y, scale(0.5 * gap, n))
        write_pair((c, p - where[1]), swap, away, gap, n, x, q, one * two / (one + two), points)
    else:
        write_point(c, p - where[1], False, gap, n, n, 0.0, points)


# Whether superquadric s touches wall w, gap [m], n and the point of the wall, in the axes and units of the wall and of the superquadric; a gap
# above `limit` need not be exact. Which of these a kernel gets depends on the walls of a scene.


@func
def flat_touch(c, turn, size, e, parts, row, meshes, limit):
    """Against a plane."""
    n = unrotate(turn, load(parts.axis, row))
    n = (-n[0], -n[1], -n[2])
    far, x = reach(n, size, e)
    gap = dot(sub(c, load(parts.offset, row)), load(parts.axis, row)) - far
    return True, gap, n, add(x, scale(gap, n))


@func
def bent_touch(c, turn, size, e, parts, row, meshes, limit):
    """Against a plane or a cylinder."""
    if parts.kind[row] == PLANE:
        return flat_touch(c, turn, size, e, parts, row, meshes, limit)
    d = unrotate(turn, sub(load(parts.offset, row), c))
    axis = unrotate(turn, load(parts.axis, row))
    radius, half = parts.size[row, 0], parts.size[row, 1]
    found = True
    if parts.size[row, 2] > 0.0:
        found, gap, n = shell_separation(d, axis, radius, half, size, e, limit)
    else:
        gap, n = rod_separation(d, axis, radius, half, size, e)
    return found, gap, n, add(reach(n, size, e)[1], scale(gap, n))


@func
def sheet_touch(c, turn, size, e, parts, row, meshes, limit):
    """Against a plane or a triangle."""
    if parts.kind[row] == PLANE:
        return flat_touch(c, turn, size, e, parts, row, meshes, limit)
    t = parts.feature[row]
    x = unrotate(turn, sub(load(meshes.vertex, meshes.triangle[t, 0]), c))
    y = unrotate(turn, sub(load(meshes.vertex, meshes.triangle[t, 1]), c))
    z = unrotate(turn, sub(load(meshes.vertex, meshes.triangle[t, 2]), c))
    gap, n, x = triangle_separation(x, y, z, size, e, limit)
    if gap > limit:
        return False, gap, n, x
    # A sphere that touches the superquadric from inside at its point sees the triangle, and what is around it, as this does.
    radius = max(size[0], size[1], size[2])
    inner = sub(x, scale(radius + gap, n))
    status, distance, _, _ = sphere_triangle(add(c, rotate(turn, inner)), meshes, t)
    return status == 1 and abs(distance - radius - gap) <= 1e-7 * radius, gap, n, x


@func
def any_touch(c, turn, size, e, parts, row, meshes, limit):
    """Against any wall."""
    if parts.kind[row] == TRIANGLE:
        return sheet_touch(c, turn, size, e, parts, row, meshes, limit)
    return bent_touch(c, turn, size, e, parts, row, meshes, limit)


wall_touch = any_touch  # bound to the kernel


def touch_for(parts):
    """The function for the walls that there are in Parts."""
    cylinders, triangles = bool((parts.kind == CYLINDER).any()), bool((parts.kind == TRIANGLE).any())
    return ((flat_touch, sheet_touch), (bent_touch, any_touch))[cylinders][triangles]


def wall_row(k, where, bodies, shapes, parts, meshes, box, pairs, points, margin):
    """The contact point of the k-th pair of a list, a superquadric and a wall, with a gap up to margin [m]."""
    p = where[0] + k
    s, w = pairs.shape[p, 0], pairs.shape[p, 1]
    wall, row = shapes.body[w], shapes.part[s]
    factor = bodies.scale[wall]
    q = turn_of(s, bodies, shapes, parts)
    turn = quat_multiply(conjugate(load4(bodies.orientation, wall)), q)
    size, e = sizes(bodies.scale[shapes.body[s]] / factor, parts, row), duals(parts, row)
    centre, part = local_centre(s, w, bodies, shapes, box), shapes.part[w]
    found, gap, n, x = wall_touch(centre, turn, size, e, parts, part, meshes, margin / factor)
    gap *= factor
    arm = sub(scale(factor, x), scale(0.5 * gap, n))
    found = found and gap <= margin
    c = pairs.slot[p - where[1]]
    write_point(c, p - where[1], found, gap, rotate(q, n), rotate(q, arm), factor * bent(n, size, e), points)


def find_points(look, rows, margin):
    """Contact points of pairs of a list with smooth bodies; see `clast.narrow.dispatch`."""
    first, count = rows
    there, where = look.there, same(first, look.spheres_count)
    find = kernel(smooth_row, grain=16)
    find(count, where, there.bodies, there.shapes, there.parts, look.pairs, look.points, look.edges, margin)


def find_hull_points(look, rows, margin):
    """The same with polyhedra."""
    first, count = rows
    there, where = look.there, same(first, look.spheres_count)
    find = kernel(hull_row, grain=16)
    tables = there.bodies, there.shapes, there.parts, there.hulls
    find(count, where, *tables, look.pairs, look.points, look.edges, margin)


def find_wall_points(look, rows, margin):
    """The same with walls."""
    first, count = rows
    there, where = look.there, same(first, look.spheres_count)
    find = kernel(wall_row, grain=16, wall_touch=look.once("superquadric_walls", lambda: touch_for(look.parts)))
    tables = there.bodies, there.shapes, there.parts, there.meshes, there.box
    find(count, where, *tables, look.pairs, look.points, margin)

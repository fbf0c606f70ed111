"""A particle against one wall: (status, gap [m], unit normal from the particle to the wall, feature).

Contacts with a gap above margin [m] may be left out (status 0). Which of these functions a kernel gets depends on what a
scene has, so that nothing is compiled for nothing.
"""

import numpy as np

from ..broad.near import local_centre
from ..kernels.backend import func, kernel
from ..kernels.kinds import turn_of
from ..kernels.vec import load, load4, quat_multiply, rotate, scale, sub
from ..shapes.ellipsoid_form import load_form
from ..tables import ELLIPSOID, PLANE, TRIANGLE
from .curvature import wall_radius
from .ellipsoid_cylinder import ellipsoid_cylinder
from .ellipsoid_walls import ellipsoid_plane, ellipsoid_triangle, triangle_bound
from .ellipsoids import middle_arm
from .sphere_walls import sphere_cylinder, sphere_plane, sphere_triangle


@func
def ball_smooth(s, w, bodies, shapes, parts, meshes, box, margin):
    """Sphere s against plane or cylinder w."""
    part, body = np.uintp(shapes.part[w]), np.uintp(shapes.body[w])
    c = sub(local_centre(s, w, bodies, shapes, box), load(parts.offset, part))
    axis = load(parts.axis, part)
    if parts.kind[part] == PLANE:
        status, distance, n, feature = sphere_plane(c, axis)
    else:
        status, distance, n, feature = sphere_cylinder(
            c, axis, parts.size[part, 0], parts.size[part, 1], parts.size[part, 2]
        )
    gap = distance * bodies.scale[body] - shapes.radius[s]
    return status, gap, rotate(load4(bodies.orientation, body), n), feature


@func
def ball_any(s, w, bodies, shapes, parts, meshes, box, margin):
    """Sphere s against any wall w."""
    part = shapes.part[w]
    if parts.kind[part] != TRIANGLE:
        return ball_smooth(s, w, bodies, shapes, parts, meshes, box, margin)
    body = shapes.body[w]
    c = local_centre(s, w, bodies, shapes, box)
    status, distance, n, feature = sphere_triangle(c, meshes, parts.feature[part])
    gap = distance * bodies.scale[body] - shapes.radius[s]
    return status, gap, rotate(load4(bodies.orientation, body), n), feature


@func
def seen_from(s, w, bodies, shapes, parts):
    """The ellipsoid s in the axes and units of the body of wall w: its orientation and half-axes."""
    body, wall = shapes.body[s], shapes.body[w]
    q = load4(bodies.orientation, wall)
    q = quat_multiply((q[0], -q[1], -q[2], -q[3]), turn_of(s, bodies, shapes, parts))
    ratio = bodies.scale[body] / bodies.scale[wall]
    part = shapes.part[s]
    size = (ratio * parts.size[part, 0], ratio * parts.size[part, 1], ratio * parts.size[part, 2])
    return q, size


@func
def particle_smooth(s, w, bodies, shapes, parts, meshes, box, margin):
    """Sphere or ellipsoid s against plane or cylinder w."""
    if shapes.kind[s] != ELLIPSOID:
        return ball_smooth(s, w, bodies, shapes, parts, meshes, box, margin)
    part = shapes.part[w]
    body = shapes.body[w]
    q, size = seen_from(s, w, bodies, shapes, parts)
    c = sub(local_centre(s, w, bodies, shapes, box), load(parts.offset, part))
    axis = load(parts.axis, part)
    if parts.kind[part] == PLANE:
        status, gap, n, feature = ellipsoid_plane(c, q, size, axis)
    else:
        status, gap, n, feature = ellipsoid_cylinder(
            c, q, size, axis, parts.size[part, 0], parts.size[part, 1], parts.size[part, 2]
        )
    return status, gap * bodies.scale[body], rotate(load4(bodies.orientation, body), n), feature


@func
def particle_any(s, w, bodies, shapes, parts, meshes, box, margin):
    """Sphere or ellipsoid s against any wall w."""
    part = shapes.part[w]
    if parts.kind[part] != TRIANGLE:
        return particle_smooth(s, w, bodies, shapes, parts, meshes, box, margin)
    if shapes.kind[s] != ELLIPSOID:
        return ball_any(s, w, bodies, shapes, parts, meshes, box, margin)
    body = shapes.body[w]
    q, size = seen_from(s, w, bodies, shapes, parts)
    c = local_centre(s, w, bodies, shapes, box)
    # Most triangles near a particle do not touch it, and a bound tells so in a twentieth of the time.
    t = parts.feature[part]
    if triangle_bound(c, q, size, meshes, t) * bodies.scale[body] > margin:
        return 0, 0.0, (0.0, 0.0, 0.0), 0
    status, gap, n, feature = ellipsoid_triangle(c, q, size, meshes, t)
    return status, gap * bodies.scale[body], rotate(load4(bodies.orientation, body), n), feature


def touch_for(ellipsoids, triangles):
    """The function for a scene that has ellipsoids or not, and triangle walls or not."""
    return {
        (False, False): ball_smooth,
        (False, True): ball_any,
        (True, False): particle_smooth,
        (True, True): particle_any,
    }[bool(ellipsoids), bool(triangles)]


wall_touch = ball_any  # bound to the kernel
ELLIPSOIDS = False


def points_row(k, first, spheres, bodies, shapes, parts, meshes, forms, box, pairs, points, margin):
    """The contact point of pair first + k of a list, a sphere or an ellipsoid and a wall, with a gap up to margin [m]."""
    # Unsigned numbers are not tested for being negative.
    p, q = np.uintp(first + k), np.uintp(first + k - spheres)
    c, s, w = np.uintp(pairs.slot[q]), np.uintp(pairs.shape[p, 0]), np.uintp(pairs.shape[p, 1])
    status, gap, n, feature = wall_touch(s, w, bodies, shapes, parts, meshes, box, margin)
    touches = status == 1 and gap <= margin
    points.gap[c] = gap if touches else np.inf
    points.count[q] = 1 if touches else 0
    if touches:
        r = shapes.radius[s]
        arm, radius = scale(r + 0.5 * gap, n), r
        if ELLIPSOIDS and shapes.kind[s] == ELLIPSOID:
            m = load_form(forms, s)
            arm, radius = middle_arm(m, n, gap), wall_radius(m, n)
        points.radius[c] = radius
        points.feature[c] = feature
        for i in range(3):
            points.normal[c, i] = n[i]
            points.arm[c, i] = arm[i]


def points_kernel(look):
    """The kernel for what the shapes of a list are."""
    touch = touch_for(look.ellipsoids, len(look.meshes.triangle) > 0)
    return kernel(points_row, grain=128, wall_touch=touch, ELLIPSOIDS=look.ellipsoids)


def find_points(look, rows, margin):
    """Contact points of pairs of a list; see `clast.narrow.dispatch`."""
    first, count = rows
    there = look.there
    find = look.once("round_walls", lambda: points_kernel(look))
    tables = there.bodies, there.shapes, there.parts, there.meshes
    find(count, first, look.spheres_count, *tables, there.forms, there.box, look.pairs, look.points, margin)

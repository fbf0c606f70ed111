"""The form of an ellipsoid: the symmetric matrix M = A R^2 A^T, with what follows from it.

A form is six numbers (xx, yy, zz, xy, xz, yz) [m^2] in world axes. The support of the ellipsoid is h(n) = sqrt(n.M n), its
surface point with outward unit normal n is p = M n / h from the centre. A sphere is M = r^2 I, a point M = 0.
"""

import math

import numpy as np

from ..kernels import backend
from ..kernels.backend import func, kernel
from ..kernels.kinds import is_particle, turn_of
from ..kernels.vec import dot
from ..tables import ELLIPSOID

TINY = 1e-300  # keeps roots and quotients of zero finite

# Columns of `forms` (s,8): M = A R^2 A^T (xx, yy, zz, xy, xz, yz) [m^2], the smallest radius of curvature [m], the
# smallest half-axis [m].
LEAST_RADIUS = 6
LEAST_AXIS = 7


@func
def own_axes(q):
    """Rows of the matrix that turns vectors into the axes of a body with unit quaternion q."""
    w, x, y, z = q
    return (
        (1.0 - 2.0 * (y * y + z * z), 2.0 * (x * y + w * z), 2.0 * (x * z - w * y)),
        (2.0 * (x * y - w * z), 1.0 - 2.0 * (x * x + z * z), 2.0 * (y * z + w * x)),
        (2.0 * (x * z + w * y), 2.0 * (y * z - w * x), 1.0 - 2.0 * (x * x + y * y)),
    )


@func
def form(q, size):
    """The form M of an ellipsoid [m^2]: unit quaternion q (4,), semi-axes size (3,) [m] along the body's own axes."""
    a, b, c = size[0] * size[0], size[1] * size[1], size[2] * size[2]
    (ux, uy, uz), (vx, vy, vz), (wx, wy, wz) = own_axes(q)
    return (
        a * ux * ux + b * vx * vx + c * wx * wx,
        a * uy * uy + b * vy * vy + c * wy * wy,
        a * uz * uz + b * vz * vz + c * wz * wz,
        a * ux * uy + b * vx * vy + c * wx * wy,
        a * ux * uz + b * vx * vz + c * wx * wz,
        a * uy * uz + b * vy * vz + c * wy * wz,
    )


@func
def times(m, v):
    """The form m times the vector v."""
    return (
        m[0] * v[0] + m[3] * v[1] + m[4] * v[2],
        m[3] * v[0] + m[1] * v[1] + m[5] * v[2],
        m[4] * v[0] + m[5] * v[1] + m[2] * v[2],
    )


@func
def support(m, n):
    """How far [m] the ellipsoid of form m reaches from its centre in the unit direction n."""
    return math.sqrt(max(0.0, dot(n, times(m, n))))


@func
def least_curvature(size):
    """The smallest radius of curvature [m] of an ellipsoid with these semi-axes (3,) [m]: c^2/a."""
    longest = max(size[0], max(size[1], size[2]))
    shortest = min(size[0], min(size[1], size[2]))
    return shortest * shortest / longest


@func
def tangents(n):
    """Two unit vectors at right angles to the unit vector n and to each other (Duff et al. 2017)."""
    sign = 1.0 if n[2] >= 0.0 else -1.0
    a = -1.0 / (sign + n[2])
    b = n[0] * n[1] * a
    return (1.0 + sign * n[0] * n[0] * a, sign * b, -sign * n[0]), (b, sign + n[1] * n[1] * a, -n[1])


@func
def combine(t, u, a, b):
    """The vector a t + b u."""
    return (a * t[0] + b * u[0], a * t[1] + b * u[1], a * t[2] + b * u[2])


@func
def section(m, p, t, u):
    """The matrix M - p p^T on the tangents t, u: (tt, tu, uu); p = M n / h."""
    mt, mu = times(m, t), times(m, u)
    a, b = dot(t, p), dot(u, p)
    return dot(t, mt) - a * a, dot(t, mu) - a * b, dot(u, mu) - b * b


@func
def radii(m, n, t, u):
    """The radii of curvature [m] at normal n as a matrix (tt, tu, uu) on the tangents t, u (unit, at right angles).

    Its eigenvalues are the principal radii; a point has zeros.
    """
    v = times(m, n)
    i = 1.0 / math.sqrt(max(dot(n, v), TINY))
    tt, tu, uu = section(m, (i * v[0], i * v[1], i * v[2]), t, u)
    return i * tt, i * tu, i * uu


@func
def mean_form(m1, m2, n):
    """W = M1/h1 + M2/h2 at the unit vector n, the points p = M n / h of both, and 1/h of both."""
    v1, v2 = times(m1, n), times(m2, n)
    i1 = 1.0 / math.sqrt(max(dot(n, v1), TINY))
    i2 = 1.0 / math.sqrt(max(dot(n, v2), TINY))
    w = (
        m1[0] * i1 + m2[0] * i2,
        m1[1] * i1 + m2[1] * i2,
        m1[2] * i1 + m2[2] * i2,
        m1[3] * i1 + m2[3] * i2,
        m1[4] * i1 + m2[4] * i2,
        m1[5] * i1 + m2[5] * i2,
    )
    return w, (v1[0] * i1, v1[1] * i1, v1[2] * i1), (v2[0] * i2, v2[1] * i2, v2[2] * i2), i1, i2


@func
def adjugate(m):
    """The inverse of a form times its determinant."""
    return (
        m[1] * m[2] - m[5] * m[5],
        m[0] * m[2] - m[4] * m[4],
        m[0] * m[1] - m[3] * m[3],
        m[4] * m[5] - m[3] * m[2],
        m[3] * m[5] - m[4] * m[1],
        m[3] * m[4] - m[0] * m[5],
    )


def form_row(c, chunk, bodies, shapes, parts, forms):
    """The forms of one chunk of shapes where they are now; zero for what is not a sphere or an ellipsoid."""
    for row in range(c * chunk, min(len(shapes.kind), (c + 1) * chunk)):
        s = np.uintp(row)
        m = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
        least, axis = 0.0, 0.0
        body, part = np.uintp(shapes.body[s]), np.uintp(shapes.part[s])
        if shapes.kind[s] == ELLIPSOID:
            k = bodies.scale[body]
            size = (k * parts.size[part, 0], k * parts.size[part, 1], k * parts.size[part, 2])
            m = form(turn_of(s, bodies, shapes, parts), size)
            least, axis = least_curvature(size), min(size[0], size[1], size[2])
        elif is_particle(shapes.kind[s]) and parts.size[part, 0] > 0.0:
            r = shapes.radius[s]
            m = (r * r, r * r, r * r, 0.0, 0.0, 0.0)
            least, axis = r, r
        for i in range(6):
            forms[s, i] = m[i]
        forms[s, 6], forms[s, 7] = least, axis


def make_forms(tables):
    """Forms (s,8) of all shapes; see LEAST_RADIUS and LEAST_AXIS for the last two columns."""
    forms = backend.DEVICE[-1].empty((len(tables[1].kind), 8), np.float64)
    update_forms(tables, forms)
    return forms


def update_forms(tables, forms):
    """Bring the forms to where the shapes are now."""
    bodies, shapes, parts = tables[:3]
    chunk = backend.DEVICE[-1].chunk
    kernel(form_row, grain=4)((len(shapes.kind) + chunk - 1) // chunk, chunk, bodies, shapes, parts, forms)


def width_row(s, shapes, forms, extent):
    """Half widths of the box around one shape (eq. 12); of what is no ellipsoid, of the box around its ball."""
    for i in range(3):
        extent[s, i] = math.sqrt(forms[s, i]) if shapes.kind[s] == ELLIPSOID else shapes.radius[s]


def has_ellipsoids(kind):
    """Whether there is an ellipsoid among shapes of these kinds (s,), whose box is narrower than that of its ball."""
    return bool((kind == ELLIPSOID).any())


def half_widths(tables):
    """Half widths (s,3) [m] of the boxes around all shapes, along the axes of the world."""
    extent = backend.DEVICE[-1].empty((len(tables[1].kind), 3), np.float64)
    kernel(width_row)(len(extent), tables[1], make_forms(tables), extent)
    return extent


@func
def load_form(forms, s):
    """M of shape s."""
    return (forms[s, 0], forms[s, 1], forms[s, 2], forms[s, 3], forms[s, 4], forms[s, 5])

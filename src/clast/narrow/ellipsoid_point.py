"""A point against an ellipsoid, in space and in the shadow along a direction: the base of contacts with walls.

An ellipsoid is given by its axes, a matrix of three rows that turns vectors of the wall's axes into its own (see `ellipsoid_form.own_axes`),
and its semi-axes `size` [m]. All results are exact to rounding also for needles and discs of 1:100: nothing here squares
what it later has to tell apart.
"""

import math

from ..kernels.backend import func
from ..kernels.vec import add, dot, matrix_vector, scale

# Coordinates of the point below this fraction of the semi-axis count as this fraction. Then no denominator vanishes where
# several directions are equally near, and one of them is taken.
FLOOR = 1e-30
STEPS = 40  # of a million points, most took 2 to 6 and none more than 16


@func
def turned_back(axes, v):
    """v from the ellipsoid's own axes into those of the wall."""
    return add(add(scale(v[0], axes[0]), scale(v[1], axes[1])), scale(v[2], axes[2]))


@func
def stretched(axes, size, n):
    """n in the ellipsoid's own axes, each times the semi-axis: its length is the extent of the ellipsoid along n."""
    u = matrix_vector(axes, n)
    return (size[0] * u[0], size[1] * u[1], size[2] * u[2])


@func
def support(axes, size, n):
    """Extent h [m] along unit n, and the vector from the centre to the point with outward normal n."""
    u = stretched(axes, size, n)
    h = math.sqrt(dot(u, u))
    return h, scale(1.0 / h, turned_back(axes, (size[0] * u[0], size[1] * u[1], size[2] * u[2])))


@func
def greatest_radius(size):
    """Greatest radius of curvature of an ellipsoid."""
    most = max(size[0], size[1], size[2])
    return most * most / min(size[0], size[1], size[2])


@func
def foot_on_plane(c, axes, size, n, distance):
    """Gap and foot of an ellipsoid on a plane at this distance >= 0 from its centre along unit n.

    The foot is below the ellipsoid's outermost point. Far inside the plane that may lie outside the ellipsoid (below the
    tip of a leaning needle), where the wall may have ended: then the foot is drawn towards the centre of the section.
    """
    u = matrix_vector(axes, n)
    v = (size[0] * u[0], size[1] * u[1], size[2] * u[2])
    w = (u[0] / size[0], u[1] / size[1], u[2] / size[2])
    square = dot(v, v)
    h = math.sqrt(square)
    arm = scale(1.0 / h, turned_back(axes, (size[0] * v[0], size[1] * v[1], size[2] * v[2])))
    depth = h - distance
    # The foot is within the section if lean * depth <= h + distance.
    lean = dot(w, w) * square - 1.0
    within = depth <= 0.0 or lean * depth * h * h <= (h + distance) * distance * distance
    stay = 1.0 if within else math.sqrt((h + distance) / (lean * depth)) * distance / h
    # From the centre of the section, arm * distance / h, to the point below the outermost one.
    along_arm = distance / h + stay * depth / h if not within else 1.0
    return -depth, add(c, add(scale(along_arm, arm), scale(-stay * depth, n)))


@func
def secular_root(w0, w1, w2, d0, d1, d2):
    """The tau > 0 with sum of (w / (tau + d))^2 = 1; all d >= 0, one of them 0 with w > 0, all w >= 0.

    The inverse of the root of the sum grows with tau and is concave, so Newton's method climbs to the zero from below
    and never passes it; it is also nearly straight, so few steps are needed.
    """
    tau = max(w0 - d0, w1 - d1, w2 - d2)
    for _ in range(STEPS):
        i0, i1, i2 = 1.0 / (tau + d0), 1.0 / (tau + d1), 1.0 / (tau + d2)
        y0, y1, y2 = w0 * i0, w1 * i1, w2 * i2
        square = y0 * y0 + y1 * y1 + y2 * y2
        slope = y0 * y0 * i0 + y1 * y1 * i1 + y2 * y2 * i2
        step = (math.sqrt(square) - 1.0) * square / slope
        tau += step
        if not step > 1e-15 * tau:
            break
    return tau


@func
def lifted(p, s):
    """|p|, or a hair above zero relative to s."""
    return max(abs(p), FLOOR * s)


@func
def nearest_in_space(d, axes, size):
    """Greatest of n.d - h(n) over all unit n, and that n: signed distance of the point at d from the centre [m]."""
    p = matrix_vector(axes, d)
    a, b, c = size
    least = min(a, b, c)
    p0, p1, p2 = lifted(p[0], a), lifted(p[1], b), lifted(p[2], c)
    d0, d1, d2 = (a - least) * (a + least), (b - least) * (b + least), (c - least) * (c + least)
    tau = secular_root(a * p0, b * p1, c * p2, d0, d1, d2)
    n0, n1, n2 = p0 / (tau + d0), p1 / (tau + d1), p2 / (tau + d2)
    inverse = 1.0 / math.sqrt(n0 * n0 + n1 * n1 + n2 * n2)
    n0, n1, n2 = inverse * n0, inverse * n1, inverse * n2
    h = math.sqrt((a * n0) ** 2 + (b * n1) ** 2 + (c * n2) ** 2)
    gap = n0 * p0 + n1 * p1 + n2 * p2 - h
    own = (math.copysign(n0, p[0]), math.copysign(n1, p[1]), math.copysign(n2, p[2]))
    return gap, turned_back(axes, own)


@func
def shadow(axes, size, p, q):
    """Principal semi-axes (two numbers) and directions (two unit vectors) of the shadow on the plane of unit p and q.

    One turn makes the stretched directions perpendicular; their lengths are then exact also where the shadow is thin.
    """
    u, v = stretched(axes, size, p), stretched(axes, size, q)
    mixed = dot(u, v)
    half = 0.5 * (dot(v, v) - dot(u, u))
    root = abs(half) + math.sqrt(half * half + mixed * mixed)
    t = (mixed if half >= 0.0 else -mixed) / (root if root > 0.0 else 1.0)
    cosine = 1.0 / math.sqrt(1.0 + t * t)
    sine = t * cosine
    first = add(scale(cosine, p), scale(-sine, q))
    second = add(scale(sine, p), scale(cosine, q))
    u, v = add(scale(cosine, u), scale(-sine, v)), add(scale(sine, u), scale(cosine, v))
    return math.sqrt(dot(u, u)), math.sqrt(dot(v, v)), first, second


@func
def extreme_in_shadow(d, axes, size, p, q, sense):
    """The greatest of n.d + sense h(n) over unit n in the plane of unit p and q, and that n; sense is 1.0 or -1.0."""
    a, b, first, second = shadow(axes, size, p, q)
    x, y = dot(d, first), dot(d, second)
    edge = max(a, b) if sense > 0.0 else min(a, b)
    p0, p1 = lifted(x, a), lifted(y, b)
    d0, d1 = sense * (edge - a) * (edge + a), sense * (edge - b) * (edge + b)
    tau = secular_root(a * p0, b * p1, 0.0, d0, d1, 1.0)
    n0, n1 = p0 / (tau + d0), p1 / (tau + d1)
    inverse = 1.0 / math.sqrt(n0 * n0 + n1 * n1)
    n0, n1 = inverse * n0, inverse * n1
    far = n0 * p0 + n1 * p1 + sense * math.sqrt((a * n0) ** 2 + (b * n1) ** 2)
    return far, add(scale(math.copysign(n0, x), first), scale(math.copysign(n1, y), second))


@func
def nearest_in_shadow(d, axes, size, p, q):
    """The same as `nearest_in_space` over unit n in the plane of unit p and q only: distance of a straight line."""
    return extreme_in_shadow(d, axes, size, p, q, -1.0)


@func
def farthest_in_shadow(d, axes, size, p, q):
    """How far the shadow of an ellipsoid with centre d on the plane of unit p and q reaches from the origin [m], and the
    unit n to there. Of two equally far places one is taken.
    """
    return extreme_in_shadow(d, axes, size, p, q, 1.0)

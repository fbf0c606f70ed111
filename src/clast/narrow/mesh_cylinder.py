"""A triangle of a particle against a cylinder: solid, or the rims and the outside of a shell that ends.

All points are relative to the cylinder's centre, lengths in metres; `axis` is unit, half_length may be infinite for a solid one.

A triangle and a solid cylinder are convex. What is nearest is a corner or an edge of the triangle, by the slope of the distance
along the edge, which never falls; or its face, above which then lies the point of the cylinder that is farthest against
the face's normal. From inside a shell only vertices of a particle touch the mantle; a rim is a circle, and its
nearest point to a triangle is within the angle under which the axis sees the triangle.
"""

import math

from ..kernels.backend import func, part
from ..kernels.vec import add, cross, dot, norm, normalize, scale, sub
from .sphere_walls import sphere_cylinder

HALVINGS = 54  # of the interval on an edge: down to rounding
SAMPLES = 16  # points of a rim that are tried first
SECTIONS = 40  # golden sections after that
GOLDEN = 0.6180339887498949
PARALLEL = 1e-12  # sine or cosine below which a face is along the axis or at right angles to it
ENTERED = 1e-12  # of the radius: an edge this near to the cylinder goes into it
PIERCED = 1e-6  # of the halo: a rim this near to a triangle goes through it


@func
def split(x, axis):
    """The part of x at right angles to the axis, and the length along it."""
    along = dot(x, axis)
    return sub(x, scale(along, axis)), along


@func
def in_solid(x, axis, radius, half_length):
    """The point of a solid cylinder that is nearest to x; x itself if it is inside."""
    across, along = split(x, axis)
    off = norm(across)
    ratio = 1.0 if off <= radius else radius / off
    return add(scale(min(max(along, -half_length), half_length), axis), scale(ratio, across))


@func
def from_solid(across, along, radius, half_length):
    """The distance of a point from a solid cylinder."""
    x, y = max(across - radius, 0.0), max(abs(along) - half_length, 0.0)
    return math.sqrt(x * x + y * y)


@func
def from_shell(across, along, radius, half_length):
    """The distance of a point from a shell."""
    x, y = across - radius, max(abs(along) - half_length, 0.0)
    return math.sqrt(x * x + y * y)


@func
def from_rims(across, along, radius, half_length):
    """The distance of a point from the nearer rim."""
    x, y = across - radius, abs(along) - half_length
    return math.sqrt(x * x + y * y)


@func
def within(centre, axis, radius, half_length):
    """Whether a particle with this centre is inside a shell that ends, between its rims."""
    across, along = split(centre, axis)
    return norm(across) < radius and abs(along) <= half_length


@func
def ball_near(x, size, centre, axis, radius, half_length, sense, reach):
    """Whether triangles in the ball of radius `size` about x may be within reach of the cylinder; centre: the particle's."""
    across, along = split(x, axis)
    off = norm(across)
    if sense < 0.0:
        distance = from_solid(off, along, radius, half_length)
    elif within(centre, axis, radius, half_length):
        distance = from_rims(off, along, radius, half_length)
    else:
        distance = from_shell(off, along, radius, half_length)
    return distance * (1.0 - 1e-12) <= size + reach


@part
def edge_nearest(a, b, axis, radius, half_length):
    """The point of the edge ab that is nearest to a solid cylinder; where it enters if it goes through."""
    u = sub(b, a)
    low, high = 0.0, 1.0
    if dot(sub(b, in_solid(b, axis, radius, half_length)), u) < 0.0:
        return b
    if dot(sub(a, in_solid(a, axis, radius, half_length)), u) >= 0.0:
        return a
    for _ in range(HALVINGS):
        s = 0.5 * (low + high)
        x = add(a, scale(s, u))
        if dot(sub(x, in_solid(x, axis, radius, half_length)), u) < 0.0:
            low = s
        else:
            high = s
    return add(a, scale(high, u))


@part
def point_nearest(p, a, b, c):
    """The point of the triangle abc that is nearest to p."""
    u, v, w = sub(b, a), sub(c, a), sub(p, a)
    uw, vw = dot(u, w), dot(v, w)
    if uw <= 0.0 and vw <= 0.0:
        return a
    wb = sub(p, b)
    ub, vb = dot(u, wb), dot(v, wb)
    if ub >= 0.0 and vb <= ub:
        return b
    third = uw * vb - ub * vw
    if third <= 0.0 and uw >= 0.0 and ub <= 0.0:
        return add(a, scale(uw / (uw - ub), u))
    wc = sub(p, c)
    uc, vc = dot(u, wc), dot(v, wc)
    if vc >= 0.0 and uc <= vc:
        return c
    second = uc * vw - uw * vc
    if second <= 0.0 and vw >= 0.0 and vc <= 0.0:
        return add(a, scale(vw / (vw - vc), v))
    first = ub * vc - uc * vb
    if first <= 0.0 and vb - ub >= 0.0 and uc - vc >= 0.0:
        return add(b, scale((vb - ub) / ((vb - ub) + (uc - vc)), sub(c, b)))
    total = 1.0 / (first + second + third)
    return add(a, add(scale(second * total, u), scale(third * total, v)))


@func
def above(x, a, b, c, n):
    """Whether x stands over the inside of the triangle abc with unit normal n."""
    return (
        dot(cross(sub(b, a), sub(x, a)), n) >= 0.0
        and dot(cross(sub(c, b), sub(x, b)), n) >= 0.0
        and dot(cross(sub(a, c), sub(x, c)), n) >= 0.0
    )


@part
def solid_distance(a, b, c, n, axis, radius, half_length):
    """A triangle with unit normal n against a solid cylinder: distance and nearest points of both; 0 where they cross."""
    x = edge_nearest(a, b, axis, radius, half_length)
    y = in_solid(x, axis, radius, half_length)
    best = norm(sub(y, x))
    for k in range(2):
        x1 = edge_nearest(b if k == 0 else c, c if k == 0 else a, axis, radius, half_length)
        y1 = in_solid(x1, axis, radius, half_length)
        d = norm(sub(y1, x1))
        if d < best:
            best, x, y = d, x1, y1
    if best <= ENTERED * radius:
        return 0.0, x, y
    if dot(n, n) == 0.0:
        return best, x, y  # the axis of a capsule, which has no face
    # The point of the cylinder that is farthest towards the plane of the face, as its own centre sees it.
    height = -dot(a, n)
    down = scale(-1.0 if height >= 0.0 else 1.0, n)
    across, along = split(down, axis)
    tilt = norm(across)
    middle, level = split(scale(1.0 / 3.0, add(a, add(b, c))), axis)
    off = norm(middle)
    radial = scale(radius / tilt if tilt > PARALLEL else 0.0, across)
    if tilt <= PARALLEL:
        # Flat on an end: where the triangle is.
        radial = scale(1.0 if off <= radius else radius / off, middle)
    end = half_length if along > 0.0 else -half_length
    if abs(along) <= PARALLEL:
        end = min(max(level, -half_length), half_length)
    if math.isinf(end):
        # An endless cylinder goes through the plane, and its axis too.
        pierced = scale(dot(a, n) / dot(axis, n), axis)
        return (0.0 if above(pierced, a, b, c, n) else best), x, y
    q = add(scale(end, axis), radial)
    over = abs(height) - dot(q, down)
    if over > 0.0:
        foot = add(q, scale(over, down))
        if over < best and above(foot, a, b, c, n):
            return over, foot, q
    else:
        # Through the plane of the face: somewhere between this point and the centre.
        pierced = scale(abs(height) / dot(q, down), q)
        if above(pierced, a, b, c, n):
            return 0.0, pierced, pierced
    return best, x, y


@func
def rim_point(theta, one, two, middle, radius):
    """The point of a rim at an angle."""
    return add(middle, add(scale(radius * math.cos(theta), one), scale(radius * math.sin(theta), two)))


@func
def rim_square(theta, one, two, middle, radius, a, b, c):
    """The squared distance of a point of a rim from a triangle."""
    y = rim_point(theta, one, two, middle, radius)
    d = sub(y, point_nearest(y, a, b, c))
    return dot(d, d)


@part
def rim_distance(a, b, c, axis, radius, level):
    """A triangle against the circle about the axis at a level along it: distance and nearest points of both."""
    middle = scale(level, axis)
    p, _ = split(a, axis)
    q, _ = split(b, axis)
    r, _ = split(c, axis)
    centre = scale(1.0 / 3.0, add(p, add(q, r)))
    some = cross(axis, (1.0 if abs(axis[0]) < 0.6 else 0.0, 0.0 if abs(axis[0]) < 0.6 else 1.0, 0.0))
    off = norm(centre)
    one = normalize(centre) if off > 1e-9 * radius else normalize(some)
    two = cross(axis, one)
    u = math.atan2(dot(p, two), dot(p, one))
    v = math.atan2(dot(q, two), dot(q, one))
    w = math.atan2(dot(r, two), dot(r, one))
    low, high = min(u, v, w), max(u, v, w)
    if high - low >= math.pi or off <= 1e-9 * radius:
        low, high = -math.pi, math.pi
    step = (high - low) / SAMPLES
    best, least = low, math.inf
    for i in range(SAMPLES + 1):
        square = rim_square(low + i * step, one, two, middle, radius, a, b, c)
        if square < least:
            best, least = low + i * step, square
    low, high = best - step, best + step
    s, t = high - GOLDEN * (high - low), low + GOLDEN * (high - low)
    at_s = rim_square(s, one, two, middle, radius, a, b, c)
    at_t = rim_square(t, one, two, middle, radius, a, b, c)
    for _ in range(SECTIONS):
        if at_s < at_t:
            high, t, at_t = t, s, at_s
            s = high - GOLDEN * (high - low)
            at_s = rim_square(s, one, two, middle, radius, a, b, c)
        else:
            low, s, at_s = s, t, at_t
            t = low + GOLDEN * (high - low)
            at_t = rim_square(t, one, two, middle, radius, a, b, c)
    theta = 0.5 * (low + high)
    theta = theta if rim_square(theta, one, two, middle, radius, a, b, c) <= least else best
    y = rim_point(theta, one, two, middle, radius)
    x = point_nearest(y, a, b, c)
    return norm(sub(y, x)), x, y


@part
def triangle_cylinder(a, b, c, n, centre, axis, radius, half_length, sense, halo):
    """A triangle with unit normal n against a cylinder: distance, point of the triangle, direction to the cylinder, crossing.

    centre: of the particle; inside a shell only its rims are looked at here. halo [m]: of the particle.
    """
    inside = sense > 0.0 and within(centre, axis, radius, half_length)
    distance, x, y = math.inf, a, a
    if not inside:
        distance, x, y = solid_distance(a, b, c, n, axis, radius, half_length)
    if sense > 0.0:
        across, along = split(y, axis)
        # A shell has no ends: within the opening there is nothing but its rims.
        if inside or distance <= 0.0 or norm(across) < radius * (1.0 - 1e-12):
            distance, x, y = rim_distance(a, b, c, axis, radius, half_length)
            other, x1, y1 = rim_distance(a, b, c, axis, radius, -half_length)
            if other < distance:
                distance, x, y = other, x1, y1
            distance = 0.0 if distance <= PIERCED * halo else distance
    crossing = distance <= 0.0
    toward = normalize(sub(y, x))
    if crossing:
        _, _, toward, _ = sphere_cylinder(x, axis, radius, half_length, -1.0)
    return distance, x, toward, crossing


@part
def vertex_shell(x, centre, axis, radius, half_length):
    """A vertex x against a shell: distance and direction to it; centre: of the particle.

    Beyond an endless shell the distance is negative, and so it is beyond one that ends, seen from the particle's centre if that
    is between the rims. Past a rim it is the distance from the rim.
    """
    across, along = split(x, axis)
    off = norm(across)
    # On the axis every direction is as near as any other: one at right angles to it.
    x_is_short = abs(axis[0]) < 0.6
    some = cross(axis, (1.0 if x_is_short else 0.0, 0.0 if x_is_short else 1.0, 0.0))
    distance, n = radius - off, normalize(across if off > 0.0 else some)
    if half_length < math.inf:
        inner, level = split(centre, axis)
        outside = norm(inner) > radius
        outside = distance < 0.0 if abs(level) > half_length else outside
        distance, n = (-distance, scale(-1.0, n)) if outside else (distance, n)
        past = abs(along) - half_length
        if past > 0.0:
            way = add(scale(distance, n), scale(-past if along > 0.0 else past, axis))
            distance, n = norm(way), normalize(way)
    return distance, n

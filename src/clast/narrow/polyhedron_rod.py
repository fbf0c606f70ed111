"""A convex polyhedron against a solid cylinder with flat ends. Axes, units and the answer are those of `polyhedron_plane`.

Two convex bodies: their signed distance is the greatest separation s(n) = n . c - (reach of the cylinder along -n) -
(reach of the polyhedron along n) over all unit n. Every s(n) is a bound from below, so the greatest of all that are
looked at is never above the answer, and it is the answer once the right n is among them. These are, for

    faces        their normals, and both senses of the axis
    edges        the best n between the normals of the two faces of each: where it crosses the rim or the mantle
    corners      apart, the way from the nearest one; overlapping, the way to the axis from the one nearest to it

The depth is the least way out, hence the same from both bodies and without jumps; all points of a contact have its normal, and
their own depth along it.
"""

import math

import numpy as np

from ..kernels.backend import func, part
from ..kernels.vec import add, cross, dot, norm, normalize, scale, sub
from .polyhedron_plane import SCRATCH, add_point, corner, face_normal, keep_four
from .polyhedron_polyhedron import EDGE_EDGE, POINT, VERTEX_FACE, above, column, farthest_along, reach_along
from .sphere_walls import sphere_cylinder

PARALLEL = 1e-12  # squared sine below which an edge has no nearest point to the axis
LEVEL = 0.98  # cosine between a face and the normal of contact above which the rim may lie on the face
AS_DEEP = 1e-8  # of the outer radius: points within this of the deepest are as deep
WITHIN = 1e-9  # of the outer radius: what is so little beyond an end, a mantle or a face is on it
CELLS = 4  # parts of a smooth piece of an arc in which a best direction is sought
STEPS = 60  # of the search for it; most take 5
HAIR = 1e-13  # an angle [rad] that is none, but tells two sides of a place apart


@func
def roots(a, b, c):
    """The real solutions of a x^2 + 2 b x + c = 0, the lower first; nan if there are none, inf where a is zero."""
    root = math.sqrt(max(b * b - a * c, 0.0))
    q = -(b + (root if b >= 0.0 else -root))
    one = q / a if a != 0.0 else math.inf
    two = c / q if q != 0.0 else one
    real = b * b - a * c >= 0.0
    return (min(one, two) if real else math.nan), (max(one, two) if real else math.nan)


@func
def from_axis(p, axis):
    """The part of p at right angles to the axis, and the one along it."""
    along = dot(p, axis)
    return sub(p, scale(along, axis)), along


@func
def rod_reach(n, axis, radius, half_length):
    """How far a cylinder reaches from its centre along unit n [m]."""
    across, along = from_axis(n, axis)
    return radius * norm(across) + half_length * abs(along)


@func
def hull_reach(h, k, hulls, n):
    """How far hull h at size factor k reaches from its centre along n [m]."""
    return k * reach_along(hulls.vertex, hulls.vertex_start[h], hulls.vertex_start[h + 1], n)


@func
def rod_foot(n, c, axis, radius, half_length):
    """The point of a cylinder that is farthest along -n; in the middle of a line or an end if there are many."""
    across, along = from_axis(n, axis)
    off = norm(across)
    up = 0.0 if abs(along) < WITHIN else (-half_length if along > 0.0 else half_length)
    out = 0.0 if off < WITHIN else -radius / off
    return add(c, add(scale(up, axis), scale(out, across)))


# The best direction of a corner, and between the normals of the two faces at an edge.


@func
def nearest_corner(h, k, hulls, c, axis, radius, half_length, start):
    """The corner with the least signed distance [m] from the cylinder, n there, and the corner; `start`: unit, a likely n.

    A corner that lies farther back along `start` than the nearest one so far is not looked at.
    """
    level = dot(start, c) - rod_reach(start, axis, radius, half_length)
    best, n, found = math.inf, start, hulls.vertex_start[h]
    for i in range(hulls.vertex_start[h], hulls.vertex_start[h + 1]):
        x = corner(hulls, k, np.uintp(i))
        if level - dot(start, x) < best:
            _, gap, m, _ = sphere_cylinder(sub(x, c), axis, radius, half_length, -1.0)
            if gap < best:
                best, n, found = gap, m, i
    return best, n, found


@part
def on_arc(angle, a, b, first, second, along, radius, half_length):
    """s(n) and its slope for the n at this angle on an arc.

    a, b: the way from the edge to the cylinder's centre along the beginning of the arc and at right angles to it; first, second:
    the same for the axis, and along its part along the edge.
    """
    cosine, sine = math.cos(angle), math.sin(angle)
    c = cosine * first + sine * second
    r = sine * first - cosine * second
    across = math.sqrt(along * along + r * r)
    turn = r * c / across if across > 0.0 else 0.0
    end = half_length if c >= 0.0 else -half_length
    return (
        cosine * a + sine * b - radius * across - end * c,
        cosine * b - sine * a - radius * turn + end * r,
    )


@part
def highest_between(low, low_slope, high, high_slope, a, b, first, second, along, radius, half_length):
    """The local maximum of s(n) between two angles with slopes above and below zero: s and the angle.

    Regula falsi with halved weights (Illinois), every third step a bisection.
    """
    small = 1e-12 * (abs(a) + abs(b) + radius + half_length)
    value, x = -math.inf, low
    for step in range(STEPS):
        x = (low * high_slope - high * low_slope) / (high_slope - low_slope)
        if step % 3 == 2 or not (low < x and x < high):
            x = 0.5 * (low + high)
        value, slope = on_arc(x, a, b, first, second, along, radius, half_length)
        if abs(slope) <= small or not high - low > 1e-15:
            break
        if slope > 0.0:
            low, low_slope, high_slope = x, slope, 0.5 * high_slope
        else:
            high, high_slope, low_slope = x, slope, 0.5 * low_slope
    return value, x


@part
def best_on_arc(most, a, b, first, second, along, radius, half_length):
    """The greatest s(n) at an angle between 0 and `most`, and the angle; -inf if there is none. Arguments as in `on_arc`.

    s is smooth but for two places: a peak where n is at right angles to the axis, and where n is nearest to it, which is one if the
    edge is at right angles to the axis. Between these s has one local maximum at most.
    """
    best, place = -math.inf, 0.0
    level, upright = math.atan2(-first, second) % math.pi, math.atan2(second, first) % math.pi
    one, two = min(level, upright, most), min(max(level, upright), most)
    low = HAIR
    _, low_slope = on_arc(low, a, b, first, second, along, radius, half_length)
    for i in range(3 * CELLS):
        piece = i // CELLS
        begin = 0.0 if piece == 0 else (one if piece == 1 else two)
        end = one if piece == 0 else (two if piece == 1 else most)
        # A hair before the end of a piece and a hair behind its beginning slopes are those of its own side.
        step = (end - begin) / CELLS
        high = begin + (i % CELLS + 1) * step - (HAIR if i % CELLS == CELLS - 1 else 0.0)
        if i % CELLS == 0 and piece > 0 and step > 0.0:
            _, slope = on_arc(begin + HAIR, a, b, first, second, along, radius, half_length)
            if low_slope > 0.0 and slope <= 0.0:
                value, _ = on_arc(begin, a, b, first, second, along, radius, half_length)
                if value > best:
                    best, place = value, begin
            low, low_slope = begin + HAIR, slope
        if high > low:
            _, slope = on_arc(high, a, b, first, second, along, radius, half_length)
            if low_slope > 0.0 and slope <= 0.0:
                value, x = highest_between(low, low_slope, high, slope, a, b, first, second, along, radius, half_length)
                if value > best:
                    best, place = value, x
            low, low_slope = high, slope
    return best, place


@func
def best_edge(h, k, hulls, c, axis, radius, half_length, better):
    """The edge with the greatest s(n) above `better` for an n between its faces: (edge or -1, s [m], n)."""
    # A ball inside the cylinder, near to the polyhedron: no s(n) is above that of the ball.
    ball = min(radius, half_length)
    shift = min(max(-dot(c, axis), ball - half_length), half_length - ball)
    centre = add(c, scale(shift, axis))
    found, best, n = -1, better, axis
    for i in range(hulls.edge_start[h], hulls.edge_start[h + 1]):
        e = np.uintp(i)
        f, g = np.uintp(hulls.edge_face[e, 0]), np.uintp(hulls.edge_face[e, 1])
        one, other = face_normal(hulls, f), face_normal(hulls, g)
        cosine = hulls.edge_bend[e, 0]
        high_f = dot(one, centre) - k * hulls.offset[f]
        high_g = dot(other, centre) - k * hulls.offset[g]
        if above(high_f, high_g, cosine, hulls.edge_bend[e, 1], best + ball):
            p = corner(hulls, k, np.uintp(hulls.edge[e, 0]))
            u = normalize(sub(corner(hulls, k, np.uintp(hulls.edge[e, 1])), p))
            two = cross(u, one)
            most = math.atan2(dot(two, other), cosine)
            w = sub(c, p)
            s, angle = best_on_arc(
                most, dot(w, one), dot(w, two), dot(axis, one), dot(axis, two), dot(axis, u), radius, half_length
            )
            if s > best:
                found, best = i, s
                n = add(scale(math.cos(angle), one), scale(math.sin(angle), two))
    return found, best, n


@func
def nearest_to_axis(h, k, hulls, c, axis):
    """The unit n from the corner nearest to the axis towards the axis, and the corner; some n if it lies on the axis."""
    first = hulls.vertex_start[h]
    best, n, found = math.inf, axis, first
    for i in range(first, hulls.vertex_start[h + 1]):
        way, _ = from_axis(sub(c, corner(hulls, k, np.uintp(i))), axis)
        square = dot(way, way)
        if square < best:
            best, n, found = square, way, i
    n = normalize(n)
    # Close to the axis the way has lost digits and is not quite at right angles to it.
    n = normalize(sub(n, scale(dot(n, axis), axis)))
    return (n if dot(n, n) > 0.5 else axis), found


@func
def place_across(p, u, n, c, axis, radius, half_length):
    """Where on the edge from p along u a cylinder touches with normal n, 0 to 1: at its rim, or where it crosses the mantle."""
    y = rod_foot(n, c, axis, radius, half_length)
    t = dot(sub(y, p), u) / dot(u, u)
    beside = cross(axis, n)
    steep = dot(u, beside)
    if abs(dot(n, axis)) < WITHIN and steep * steep > PARALLEL * dot(u, u):
        t = dot(sub(c, p), beside) / steep
    return min(max(t, 0.0), 1.0)


# The points of a contact.


@func
def enters(x, n, axis, radius, half_length, near):
    """Where the line from x along n enters a cylinder about the origin [m], inf if it passes by; near [m] is on it."""
    w, a = from_axis(x, axis)
    across, b = from_axis(n, axis)
    square = dot(across, across)
    wide, long = radius + near, half_length + near
    off = dot(w, w) - wide * wide
    low, high = -math.inf, math.inf
    if square > PARALLEL:
        low, high = roots(square, dot(w, across), off)
    elif off > 0.0:
        low = math.nan
    if abs(b) > 1e-6:
        first, last = (-long - a) / b, (long - a) / b
        low, high = max(low, min(first, last)), min(high, max(first, last))
    elif abs(a) > long:
        low = math.nan
    return low if low <= high else math.inf


@part
def touching_point(x, n, gap, c, axis, radius, half_length, margin, size, feature, work, count):
    """Point x of the polyhedron as a candidate with its gap along n, if it has one: how many there are now."""
    near = WITHIN * size
    here = enters(sub(x, c), n, axis, radius, half_length, near)
    if here <= margin and here < math.inf:
        here = gap if here <= gap + AS_DEEP * size else here
        count = add_point(work, count, size, x, here, n, feature)
    return count


@part
def edge_points(p, u, feature, n, gap, c, axis, radius, half_length, margin, size, work, count):
    """Points of the edge from p along u as candidates: how many there are now.

    Across the mantle the one nearest to the axis and those over the ends; on an end those where the edge crosses the rim.
    """
    w, a = from_axis(sub(p, c), axis)
    across, b = from_axis(u, axis)
    square, mixed = dot(across, across), dot(w, across)
    on_end = abs(dot(n, axis)) > 0.5
    low, high = math.nan, math.nan
    if on_end:
        low, high = roots(square, mixed, dot(w, w) - radius * radius)
    elif b != 0.0:
        low, high = (-half_length - a) / b, (half_length - a) / b
    middle = -mixed / square if not on_end and square > PARALLEL * dot(u, u) else -1.0
    for j in range(3):
        s = low if j == 0 else (high if j == 1 else middle)
        if s > 0.0 and s < 1.0:
            x = add(p, scale(s, u))
            count = touching_point(x, n, gap, c, axis, radius, half_length, margin, size, feature, work, count)
    return count


@func
def rim_points(h, k, hulls, i, n, gap, c, axis, radius, half_length, margin, work, count):
    """Points of the rims that lie on face i as candidates: how many there are now.

    Of each rim the place deepest below the face; three more at right angles where the face lies nearly flat on the end.
    """
    size = k * hulls.outer[h]
    m = face_normal(hulls, np.uintp(i))
    across, along = from_axis(m, axis)
    tilt = norm(across)
    off, _ = from_axis(c, axis)
    x_is_short = abs(axis[0]) < 0.6
    some = normalize(cross(axis, (1.0 if x_is_short else 0.0, 0.0 if x_is_short else 1.0, 0.0)))
    some = normalize(off) if dot(off, off) > 1e-12 * size * size else some
    one = scale(-1.0 / tilt, across) if tilt > 1e-6 else some
    two = cross(axis, one)
    first = hulls.face_start[h]
    feature = 4.0 * (hulls.vertex_start[h + 1] - hulls.vertex_start[h] + i - first) + VERTEX_FACE
    for j in range(8):
        up = 1.0 if j < 4 else -1.0
        turn = j % 4
        if up * along <= 0.2 and (turn == 0 or tilt < 0.5):
            side = one if turn % 2 == 0 else two
            y = add(c, add(scale(up * half_length, axis), scale(radius if turn < 2 else -radius, side)))
            x = sub(y, scale(dot(m, y) - k * hulls.offset[np.uintp(i)], m))
            over = -math.inf
            for other in range(first, hulls.face_start[h + 1]):
                f = np.uintp(other)
                over = max(over, dot(face_normal(hulls, f), x) - k * hulls.offset[f])
            if over <= WITHIN * size:
                count = touching_point(x, n, gap, c, axis, radius, half_length, margin, size, feature, work, count)
    return count


@func
def rod_points(h, k, hulls, n, gap, c, axis, radius, half_length, margin, work):
    """Points of the polyhedron on a cylinder, once normal and gap are known, as candidates: how many."""
    size = k * hulls.outer[h]
    first = hulls.vertex_start[h]
    count = np.int64(0)  # a bare 0 has a type of its own, for which all that is called would be compiled again
    for i in range(first, hulls.vertex_start[h + 1]):
        x = corner(hulls, k, np.uintp(i))
        feature = 4.0 * (i - first) + VERTEX_FACE
        count = touching_point(x, n, gap, c, axis, radius, half_length, margin, size, feature, work, count)
    first = hulls.edge_start[h]
    for i in range(first, hulls.edge_start[h + 1]):
        e = np.uintp(i)
        p = corner(hulls, k, np.uintp(hulls.edge[e, 0]))
        u = sub(corner(hulls, k, np.uintp(hulls.edge[e, 1])), p)
        feature = 4.0 * (i - first) + EDGE_EDGE
        count = edge_points(p, u, feature, n, gap, c, axis, radius, half_length, margin, size, work, count)
    for i in range(hulls.face_start[h], hulls.face_start[h + 1]):
        if dot(n, face_normal(hulls, np.uintp(i))) > LEVEL:
            count = rim_points(h, k, hulls, i, n, gap, c, axis, radius, half_length, margin, work, count)
    return count


@func
def flat_separation(h, k, hulls, c, axis, radius, half_length, margin):
    """The greatest s(n) over the normals of faces and both senses of the axis: (s [m], n, face or -1); ends above margin."""
    best, n, face = -math.inf, axis, -1
    for i in range(hulls.face_start[h], hulls.face_start[h + 1]):
        f = np.uintp(i)
        m = face_normal(hulls, f)
        s = dot(m, c) - k * hulls.offset[f] - rod_reach(m, axis, radius, half_length)
        if s > best:
            best, n, face = s, m, i
            if s > margin:
                return best, n, face
    up = -1.0 if dot(c, axis) > 0.0 else 1.0
    for _ in range(2):
        m = scale(-up, axis)
        s = dot(m, c) - half_length - hull_reach(h, k, hulls, m)
        if s > best:
            best, n, face = s, m, -1
        up = -up
    return best, n, face


@part
def hull_rod(h, k, hulls, c, axis, radius, half_length, margin, work):
    """Hull h at size factor k against a solid cylinder: how many contact points were written, 0 to 4.

    c: the cylinder's centre [m]; axis: unit; radius and half_length [m], the latter may be infinite. The first point has the signed
    distance of the two, exact to rounding, and all have its normal.
    """
    size = k * hulls.outer[h]
    # What lies farther along than this is neither touched nor a way out.
    half_length = min(half_length, abs(dot(c, axis)) + 4.0 * (size + radius))
    gap, n, face = flat_separation(h, k, hulls, c, axis, radius, half_length, margin)
    if gap > margin:
        return 0
    point, feature = (0.0, 0.0, 0.0), 0.0
    if face >= 0:
        y = rod_foot(n, c, axis, radius, half_length)
        point = sub(y, scale(dot(n, y) - k * hulls.offset[np.uintp(face)], n))
        corners = hulls.vertex_start[h + 1] - hulls.vertex_start[h]
        feature = 4.0 * (corners + face - hulls.face_start[h]) + VERTEX_FACE
    else:
        v = farthest_along(hulls.vertex, hulls.vertex_start[h], hulls.vertex_start[h + 1], n)
        point, feature = scale(k, column(hulls.vertex, v)), 4.0 * (v - hulls.vertex_start[h]) + VERTEX_FACE
    near, m, v = nearest_corner(h, k, hulls, c, axis, radius, half_length, n)
    if near <= 0.0:
        # Of corners inside only the one nearest to the axis can be pushed out along a way of its own.
        m, v = nearest_to_axis(h, k, hulls, c, axis)
    s = dot(m, c) - rod_reach(m, axis, radius, half_length) - hull_reach(h, k, hulls, m)
    if s > gap:
        gap, n, point = s, m, corner(hulls, k, np.uintp(v))
        feature = 4.0 * (v - hulls.vertex_start[h]) + VERTEX_FACE
    edge, s, m = best_edge(h, k, hulls, c, axis, radius, half_length, gap)
    if edge >= 0:
        gap, n, feature = s, m, 4.0 * (edge - hulls.edge_start[h]) + EDGE_EDGE
        p = corner(hulls, k, np.uintp(hulls.edge[np.uintp(edge), 0]))
        u = sub(corner(hulls, k, np.uintp(hulls.edge[np.uintp(edge), 1])), p)
        point = add(p, scale(place_across(p, u, n, c, axis, radius, half_length), u))
    if gap > margin:
        return 0
    count = rod_points(h, k, hulls, n, gap, c, axis, radius, half_length, margin, work)
    for i in range(count):
        if work[SCRATCH + POINT * i + 3] <= gap:
            return keep_four(work, count, size)
    return keep_four(work, add_point(work, count, size, point, gap, n, feature), size)

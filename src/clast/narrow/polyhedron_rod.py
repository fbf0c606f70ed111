"""A convex polyhedron against a solid cylinder with flat ends. Axes, units and the answer are those of `polyhedron_plane`.

Two convex bodies: their signed distance is the greatest separation s(n) = n . c - (reach of the cylinder along -n) -
(reach of the polyhedron along n) over all unit n. Every s(n) is a bound from below, so the greatest of all that are
looked at is never above the answer, and it is the answer once the right n is among them:

    apart        the normals of faces, the axis, and the direction in which the nearest of all edges has its distance
    overlapping  the normals of faces, the axis, the way to the axis from the corner nearest to it, and for each edge the best n
                 between the normals of its two faces: where it crosses the rim or lies across the mantle

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
CLOSE = 1e-3  # of the outer radius: bodies nearer than this are looked at as if they overlapped, too
CELLS = 4  # parts of a smooth piece of an arc in which a best direction is sought
STEPS = 100  # of the search for a zero; where values jump there, it takes them all


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


@func
def between_zeros(step, low, low_value, high, high_value):
    """Where to look next for a zero between two places with values of opposite signs.

    Regula falsi with halved weights (Illinois), every second step a bisection: values may jump at the zero.
    """
    x = (low * high_value - high * low_value) / (high_value - low_value)
    return x if step % 2 == 1 and low < x and x < high else 0.5 * (low + high)


# Apart: the distance of a point of an edge from a convex body is a convex function of its place on the edge.


@part
def nearest_on_edge(p, u, axis, radius, half_length):
    """Least signed distance [m] of the points p + s u, 0 <= s <= 1, from a solid cylinder about the origin; n and s there."""
    low, high = 0.0, 1.0
    _, gap, n, _ = sphere_cylinder(p, axis, radius, half_length, -1.0)
    low_slope = -dot(n, u)
    if low_slope >= 0.0:
        return gap, n, low
    _, gap, n, _ = sphere_cylinder(add(p, u), axis, radius, half_length, -1.0)
    high_slope = -dot(n, u)
    if high_slope <= 0.0:
        return gap, n, high
    s = 0.5
    for step in range(STEPS):
        s = between_zeros(step, low, low_slope, high, high_slope)
        _, gap, n, _ = sphere_cylinder(add(p, scale(s, u)), axis, radius, half_length, -1.0)
        slope = -dot(n, u)
        if slope == 0.0 or not high - low > 1e-15:
            break
        if slope < 0.0:
            low, low_slope, high_slope = s, slope, 0.5 * high_slope
        else:
            high, high_slope, low_slope = s, slope, 0.5 * low_slope
    return gap, n, s


@part
def nearest_edge(h, k, hulls, c, axis, radius, half_length, start):
    """The edge with the least signed distance from the cylinder: distance [m], n, point; `start`: unit, a likely n.

    An edge that lies farther back along `start` than the nearest one so far is not looked at.
    """
    level = dot(start, c) - rod_reach(start, axis, radius, half_length)
    best, n, point, which = math.inf, start, start, hulls.edge_start[h]
    for i in range(hulls.edge_start[h], hulls.edge_start[h + 1]):
        e = np.uintp(i)
        p = corner(hulls, k, np.uintp(hulls.edge[e, 0]))
        q = corner(hulls, k, np.uintp(hulls.edge[e, 1]))
        if level - max(dot(start, p), dot(start, q)) < best:
            u = sub(q, p)
            gap, m, s = nearest_on_edge(sub(p, c), u, axis, radius, half_length)
            if gap < best:
                best, n, point, which = gap, m, add(p, scale(s, u)), i
    return best, n, point, which


# Overlapping: the best direction between the normals of the two faces at an edge.


@func
def on_arc(angle, w, one, two, axis, along, radius, half_length):
    """s(n) and its slope for the unit n at this angle from `one` towards `two`; along: the axis' part along the edge."""
    cosine, sine = math.cos(angle), math.sin(angle)
    first, second = dot(axis, one), dot(axis, two)
    c = cosine * first + sine * second
    r = sine * first - cosine * second
    across = math.sqrt(along * along + r * r)
    turn = r * c / across if across > 0.0 else 0.0
    rise = cosine * dot(w, one) + sine * dot(w, two)
    slope = cosine * dot(w, two) - sine * dot(w, one)
    end = half_length if c >= 0.0 else -half_length
    return rise - radius * across - end * c, slope - radius * turn + end * r


@part
def best_on_arc(w, one, two, most, axis, along, radius, half_length):
    """The greatest s(n) and its angle, over angles from 0 to `most` from `one` towards `two`, both left out; -inf if none.

    w: from the edge to the cylinder's centre. s is smooth but for two places: where n is at right angles to the axis and where it
    is nearest to it. Between these it has one local maximum at most.
    """
    first, second = dot(axis, one), dot(axis, two)
    best, place = -math.inf, 0.0
    level = math.atan2(-first, second) % math.pi
    upright = math.atan2(second, first) % math.pi
    a, b = min(level, upright, most), min(max(level, upright), most)
    low = 0.0
    _, low_slope = on_arc(low, w, one, two, axis, along, radius, half_length)
    for i in range(3 * CELLS + 1):
        piece = i // CELLS
        begin = 0.0 if piece == 0 else (a if piece == 1 else b)
        end = a if piece == 0 else (b if piece == 1 else most)
        high = begin + (end - begin) * ((i % CELLS + 0.5) / CELLS) if piece < 3 else most
        if not high > low:
            continue
        _, slope = on_arc(high, w, one, two, axis, along, radius, half_length)
        if low_slope > 0.0 and slope < 0.0:
            left, left_slope, right, right_slope = low, low_slope, high, slope
            value, x = -math.inf, low
            for step in range(STEPS):
                x = between_zeros(step, left, left_slope, right, right_slope)
                value, here = on_arc(x, w, one, two, axis, along, radius, half_length)
                if here == 0.0 or not right - left > 1e-15:
                    break
                if here > 0.0:
                    left, left_slope, right_slope = x, here, 0.5 * right_slope
                else:
                    right, right_slope, left_slope = x, here, 0.5 * left_slope
            if value > best:
                best, place = value, x
        low, low_slope = high, slope
    return best, place


@part
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
            s, angle = best_on_arc(sub(c, p), one, two, most, axis, dot(axis, u), radius, half_length)
            if s > best:
                found, best = i, s
                n = add(scale(math.cos(angle), one), scale(math.sin(angle), two))
    return found, best, n


@part
def best_corner(h, k, hulls, c, axis, radius):
    """The corner nearest to the axis: s(n) [m] for the n from it to the axis, n, and the corner."""
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
    s = dot(n, c) - radius - hull_reach(h, k, hulls, n) if dot(n, n) > 0.5 else -math.inf
    return s, n, found


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
def edge_points(h, k, hulls, i, n, gap, c, axis, radius, half_length, margin, work, count):
    """Points of edge i as candidates: how many there are now.

    Across the mantle the one nearest to the axis and those over the ends; on an end those where the edge crosses the rim.
    """
    size = k * hulls.outer[h]
    e = np.uintp(i)
    p = sub(corner(hulls, k, np.uintp(hulls.edge[e, 0])), c)
    u = sub(sub(corner(hulls, k, np.uintp(hulls.edge[e, 1])), c), p)
    feature = 4.0 * (i - hulls.edge_start[h]) + EDGE_EDGE
    w, a = from_axis(p, axis)
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
            x = add(add(p, scale(s, u)), c)
            count = touching_point(x, n, gap, c, axis, radius, half_length, margin, size, feature, work, count)
    return count


@part
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


@part
def rod_points(h, k, hulls, n, gap, c, axis, radius, half_length, margin, work):
    """Points of the polyhedron on a cylinder, once normal and gap are known, as candidates: how many."""
    size = k * hulls.outer[h]
    first = hulls.vertex_start[h]
    count = 0
    for i in range(first, hulls.vertex_start[h + 1]):
        x = corner(hulls, k, np.uintp(i))
        feature = 4.0 * (i - first) + VERTEX_FACE
        count = touching_point(x, n, gap, c, axis, radius, half_length, margin, size, feature, work, count)
    for i in range(hulls.edge_start[h], hulls.edge_start[h + 1]):
        count = edge_points(h, k, hulls, i, n, gap, c, axis, radius, half_length, margin, work, count)
    for i in range(hulls.face_start[h], hulls.face_start[h + 1]):
        if dot(n, face_normal(hulls, np.uintp(i))) > LEVEL:
            count = rim_points(h, k, hulls, i, n, gap, c, axis, radius, half_length, margin, work, count)
    return count


@part
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
    near, m, x, edge = nearest_edge(h, k, hulls, c, axis, radius, half_length, n)
    if near > 0.0:
        s = dot(m, c) - rod_reach(m, axis, radius, half_length) - hull_reach(h, k, hulls, m)
        if s > gap:
            gap, n, point, feature = s, m, x, 4.0 * (edge - hulls.edge_start[h]) + EDGE_EDGE
    if gap > margin:
        return 0
    # The direction between two points that nearly coincide is mostly rounding: also where both are just apart.
    if gap <= CLOSE * size:
        s, m, v = best_corner(h, k, hulls, c, axis, radius)
        if s > gap:
            gap, n, point = s, m, corner(hulls, k, np.uintp(v))
            feature = 4.0 * (v - hulls.vertex_start[h]) + VERTEX_FACE
        edge, s, m = best_edge(h, k, hulls, c, axis, radius, half_length, gap)
        if edge >= 0:
            gap, n, feature = s, m, 4.0 * (edge - hulls.edge_start[h]) + EDGE_EDGE
            p = corner(hulls, k, np.uintp(hulls.edge[np.uintp(edge), 0]))
            u = sub(corner(hulls, k, np.uintp(hulls.edge[np.uintp(edge), 1])), p)
            y = rod_foot(n, c, axis, radius, half_length)
            t = dot(sub(y, p), u) / dot(u, u)
            point = add(p, scale(min(max(t, 0.0), 1.0), u))
    if gap > margin:
        return 0
    count = rod_points(h, k, hulls, n, gap, c, axis, radius, half_length, margin, work)
    for i in range(count):
        if work[SCRATCH + POINT * i + 3] <= gap:
            return keep_four(work, count, size)
    return keep_four(work, add_point(work, count, size, point, gap, n, feature), size)

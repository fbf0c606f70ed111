"""A superquadric against a cylinder, solid or hollow, in the axes of the superquadric and about its centre.

A solid cylinder is convex: side, ends and rim. A hollow one that ends is a thin sheet, felt from the side of the superquadric's centre, as
ellipsoids do (`ellipsoid_cylinder`):

    its mantle, where the place at which the superquadric touches it, or is cut by it, is between the rims
    else its rims: of all their points the nearest, or that which lies deepest. Every point of a rim has a signed distance from the superquadric, the greatest of
    n . x - h(n), whose slope along the rim is that of n

The two are equal where the place comes to a rim, so that the gap has no step there. Deep in the mantle a way out over a rim may be the shorter one.
"""

import math

from ..kernels.backend import func
from ..kernels.vec import add, cross, dot, norm, normalize, scale, sub
from ..shapes.superquadric import norm2
from .superquadric_support import (
    NO_TURN,
    across,
    around_edge,
    climb,
    greatest,
    least_bend,
    point_like,
    reach,
    value,
)

SHELL = 32  # directions in which a shell is looked for
RIM = 48  # parts of a rim, of which those are looked at closer that may be nearest: with 16, two places at the edge of one that is boxy were one
FINE = 1e-12  # of a turn: a place on a rim that is known to that is known


@func
def rod_separation(d, axis, radius, half, size, e):
    """The greatest separation [m] of a superquadric and a solid cylinder about d, and n from the superquadric to it."""
    u = sub(d, scale(dot(d, axis), axis))
    u = normalize(u) if dot(u, u) > 0.0 else across(axis)[0]
    p = cross(axis, u)
    side = n = around_edge(d, (-p[0], -p[1], -p[2]), u, math.pi, size, e)
    if half == math.inf:
        return dot(n, d) - reach(n, size, e)[0] - radius, n
    other = (0.0, 0.0, 0.0), (2.0, 2.0), NO_TURN, axis, (radius, half)
    best, _ = value(n, d, size, e, other)
    sign = 1.0 if dot(d, axis) >= 0.0 else -1.0
    end = scale(sign, axis)
    f, _ = value(end, d, size, e, other)
    if f > best:
        best, n = f, end
    # Where the superquadric faces the inside of the side or of an end, no direction around is better, and while there is one top none at all.
    x = sub(reach(n, size, e)[1], d)
    up = dot(x, axis)
    faces = norm(sub(x, scale(up, axis))) <= radius if dot(n, axis) != 0.0 and n == end else abs(up) <= half
    shallow = -least_bend(size, e)
    if best > shallow and faces:
        return best, n
    if best > shallow:
        # Else it is the rim: uphill from the best of a few directions, to where the shortest way is along n.
        top, w = -math.inf, n
        for k in range(6):
            start = normalize(
                add(scale(0.25 * (1 + k % 3), end if k < 3 else scale(-1.0, end)), scale(0.25 * (3 - k % 3), side))
            )
            f, _ = value(start, d, size, e, other)
            if f > top:
                top, w = f, start
        w, f = climb(w, d, size, e, other)
        _, way = value(w, d, size, e, other)
        if f >= best and norm(cross(w, way)) <= 1e-9 * (size[0] + size[1] + size[2]):
            return f, w
    # The rim, from several sides: where the side or an end begins there is an edge on which climbing ends.
    for k in range(12):
        end = scale(sign if k % 6 < 3 else -sign, axis)
        start = add(scale(0.25 * (1 + k % 3), end), scale(0.25 * (3 - k % 3), side if k < 6 else u))
        w, f = climb(normalize(start), d, size, e, other)
        if f > best:
            best, n = f, w
    return best, n


@func
def level(x, size, e):
    """The norm whose unit ball a superquadric is, of a point (3,) [m]: below 1 inside."""
    one, two = e[0] / (e[0] - 1.0), e[1] / (e[1] - 1.0)
    return norm2(norm2(abs(x[0] / size[0]), abs(x[1] / size[1]), two), abs(x[2] / size[2]), one)


@func
def foot_on(w, wall, size, e):
    """Where a plane at right angles to unit w, `wall` [m] from the centre, is touched or cut: the outermost point along w, or below it the point of the cut.

    A long body that leans over a rim has its outermost point far inside the tube, where it is cut it is above the rim: the foot is drawn towards the middle of the
    cut, and is there where the plane goes through the centre.
    """
    h, x = reach(w, size, e)
    if h <= wall:
        return x
    wall = max(wall, 0.0)
    middle = scale(wall / h, x)  # in the cut, as bodies are convex
    aside = sub(scale((h - wall) / h, x), scale(h - wall, w))  # from there to below the outermost point
    if wall == 0.0:
        return middle
    far = scale(h / wall, aside)
    low, high = 0.0, 1.0
    if level(add(middle, far), size, e) <= 1.0:
        low = 1.0
    else:
        for _ in range(50):
            t = 0.5 * (low + high)
            low, high = (t, high) if level(add(middle, scale(t, far)), size, e) <= 1.0 else (low, t)
    return add(middle, scale(low, aside))


# Rims. A frame is (axis, p, q): three unit vectors at right angles; the place on a rim is the angle from p towards q.


@func
def on_rim(t, d, frame, radius, height):
    """The place of a rim at this height at the angle t (3,), and its direction from the axis."""
    axis, p, q = frame
    radial = add(scale(math.cos(t), p), scale(math.sin(t), q))
    return add(d, add(scale(height, axis), scale(radius, radial))), radial


@func
def at_rim(t, d, frame, radius, height, size, e):
    """Gap [m], n and the slope of the gap along the rim at one place."""
    place, radial = on_rim(t, d, frame, radius, height)
    gap, n = greatest(place, size, e, point_like(), math.inf)
    return gap, n, radius * dot(n, cross(frame[0], radial))


@func
def across_rim(t, d, frame, radius, height, size, e):
    """Gap [m] and n at one place of a rim, among all n at right angles to it."""
    place, radial = on_rim(t, d, frame, radius, height)
    best, n = -math.inf, radial
    for side in range(2):
        sign = 1.0 if side == 0 else -1.0
        m = around_edge(place, scale(sign, radial), scale(sign, frame[0]), math.pi, size, e)
        gap = dot(m, place) - reach(m, size, e)[0]
        if gap > best:
            best, n = gap, m
    return best, n


@func
def settle(low, low_slope, high, high_slope, d, frame, radius, height, size, e):
    """Gap, n and place between low (slope < 0) and high (slope > 0) where the slope along the rim vanishes: regula falsi with halved weights
    (Illinois), every third step a bisection."""
    t = 0.5 * (low + high)
    gap, n, slope = at_rim(t, d, frame, radius, height, size, e)
    for step in range(100):
        if slope == 0.0 or not abs(high - low) > FINE:
            break
        if slope < 0.0:
            low, low_slope = t, slope
            high_slope = high_slope if step % 3 == 0 else 0.5 * high_slope
        else:
            high, high_slope = t, slope
            low_slope = low_slope if step % 3 == 0 else 0.5 * low_slope
        t = (low * high_slope - high * low_slope) / (high_slope - low_slope)
        if step % 3 == 2 or not (low < t and t < high):
            t = 0.5 * (low + high)
        gap, n, slope = at_rim(t, d, frame, radius, height, size, e)
    return gap, n, t


@func
def nearest_on_rim(d, frame, radius, height, size, e, limit):
    """Least gap [m] over a whole rim, and n; infinite if it is above limit [m].

    Where the rim cuts deep into the superquadric, the shortest way out at the deepest place may lead along the rim and would meet it again: there the
    way out across the rim is taken.
    """
    axis = frame[0]
    middle = add(d, scale(height, axis))
    along = dot(middle, axis)
    off = norm(sub(middle, scale(along, axis)))
    if math.sqrt((off - radius) ** 2 + along * along) - norm(size) > limit:
        return math.inf, axis
    turn = 2.0 * math.pi / RIM
    t = math.atan2(-dot(middle, frame[2]), -dot(middle, frame[1]))
    best, normal, slope = at_rim(t, d, frame, radius, height, size, e)
    start, before, before_slope = t, best, slope
    for k in range(RIM):
        high = start + (k + 1) * turn
        place, _ = on_rim(high, d, frame, radius, height)
        if norm(place) - norm(size) - turn * radius > best:
            # Neither there nor between there and the places beside it.
            before, before_slope = math.inf, 1.0
            continue
        gap, n, slope = at_rim(high, d, frame, radius, height, size, e)
        if gap < best:
            best, normal, t = gap, n, high
        # In between it is less by half of the way at the most.
        if before_slope < 0.0 and slope > 0.0 and 0.5 * (before + gap - turn * radius) < best:
            gap_here, n, here = settle(high - turn, before_slope, high, slope, d, frame, radius, height, size, e)
            if gap_here < best:
                best, normal, t = gap_here, n, here
        before, before_slope = gap, slope
    if best < -least_bend(size, e):
        return across_rim(t, d, frame, radius, height, size, e)
    return best, normal


@func
def nearer_rim(gap, n, d, frame, radius, half, size, e, limit):
    """The gap [m] and n of the nearer rim, if that is less than gap, or above that and limit [m]."""
    for side in range(2):
        height = half if side == 0 else -half
        other, m = nearest_on_rim(d, frame, radius, height, size, e, min(gap, limit))
        if other < gap:
            gap, n = other, m
    return gap, n


@func
def over_rim(gap, n, foot, d, frame, radius, half, size, e):
    """Deep in the mantle: the gap [m] and n of the way out over one of the rims, if that is shorter. foot: see `foot_on`."""
    x = sub(foot, d)
    t = math.atan2(dot(x, frame[2]), dot(x, frame[1]))
    for side in range(2):
        up = 1.0 if side == 0 else -1.0
        other, m = across_rim(t, d, frame, radius, up * half, size, e)
        if other > gap and up * dot(m, frame[0]) <= 0.0:
            gap, n = other, m
    return gap, n


@func
def shell_separation(d, axis, radius, half, size, e, limit):
    """The gap [m] of a superquadric and a hollow cylinder about d, and n; a gap above limit [m] need not be exact.

    An endless one holds what is inside, however far it is pressed through; one that ends is a sheet with rims, see above.
    """
    p, q = across(axis)
    frame = axis, p, q
    off = sub(d, scale(dot(d, axis), axis))
    best, n, foot = math.inf, p, p
    holds = False  # whether the farthest place in the mantle, of all, is between the rims
    if half == math.inf or norm(off) < radius:
        far = -math.inf
        turn = 2.0 * math.pi / SHELL
        # Each top of the samples around the axis may be the highest: of those before the last one, two heights.
        before, last = math.inf, math.inf
        for k in range(SHELL + 2):
            w = add(scale(math.cos(k * turn), p), scale(math.sin(k * turn), q))
            f = reach(w, size, e)[0] - dot(w, d)
            if last > before and last >= f:
                low, high = (k - 2) * turn, k * turn
                for _ in range(48):
                    t = 0.5 * (low + high)
                    c, s = math.cos(t), math.sin(t)
                    w = add(scale(c, p), scale(s, q))
                    slope = dot(sub(reach(w, size, e)[1], d), sub(scale(c, q), scale(s, p)))
                    low, high = (t, high) if slope > 0.0 else (low, t)
                w = normalize(w)
                top = reach(w, size, e)[0] - dot(w, d)
                x = foot_on(w, dot(w, d) + radius, size, e) if half < math.inf else w
                between = half == math.inf or abs(dot(sub(x, d), axis)) <= half
                if top > far:
                    far, holds = top, between
                if between and radius - top < best:
                    best, n, foot = radius - top, w, x
            before, last = last, f
    else:
        u = normalize(off)
        side = cross(axis, u)
        w = around_edge(d, (-side[0], -side[1], -side[2]), u, math.pi, size, e)
        wall = dot(w, d) - radius
        x = foot_on(w, wall, size, e)
        holds = abs(dot(sub(x, d), axis)) <= half
        if holds:
            best, n, foot = wall - reach(w, size, e)[0], w, x
    if half < math.inf:
        if not holds:
            best, n = nearer_rim(best, n, d, frame, radius, half, size, e, limit)
        elif best < -least_bend(size, e):
            best, n = over_rim(best, n, foot, d, frame, radius, half, size, e)
    return best < math.inf, best, n

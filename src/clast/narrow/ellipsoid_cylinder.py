"""An ellipsoid against a cylinder: endless or finite, hollow or solid. Conventions as in ellipsoid_walls.py."""

import math

from ..kernels.backend import func
from ..kernels.vec import add, cross, dot, norm, normalize, scale, sub
from ..shapes.ellipsoid_form import least_curvature, own_axes
from .ellipsoid_point import (
    farthest_in_shadow,
    foot_on_plane,
    nearest_in_shadow,
    nearest_in_space,
    shadow,
    stretched,
    support,
)

RIM_SAMPLES = 16  # places on a rim from which the nearest one is sought


@func
def across(axis):
    """Two unit vectors at right angles to the unit vector `axis` and to each other."""
    x_is_short = abs(axis[0]) < 0.6
    other = (1.0 if x_is_short else 0.0, 0.0 if x_is_short else 1.0, 0.0)
    p = normalize(cross(axis, other))
    return p, cross(axis, p)


@func
def ellipsoid_cylinder(c, q, size, axis, radius, half_length, sense):
    """Against a cylinder about the origin along `axis` (unit); half_length may be infinite.

    sense +1: hollow, open at both ends. An endless shell is one-sided: the gap is that of an ellipsoid inside, however far
    it is pressed through. A finite one is a thin sheet that ends at its rims and is felt from the side of the centre.
    sense -1: solid with flat ends; the gap is the least depth over all ways out.
    Only the deepest point counts, also where an ellipsoid flatter than a hollow cylinder touches it at two places.
    """
    axes = own_axes(q)
    p, r = across(axis)
    if sense > 0.0 and half_length == math.inf:
        far, n = farthest_in_shadow(c, axes, size, p, r)
        return 1, radius - far, n, 0
    if sense > 0.0:
        gap, n = against_sheet(c, axes, size, (axis, p, r), radius, half_length)
    else:
        gap, n = against_solid(c, axes, size, (axis, p, r), radius, half_length)
    return 1, gap, n, 0


# Rims. A frame is (axis, p, r): three unit vectors at right angles; the place on a rim is the angle from p towards r.


@func
def at_rim(angle, c, axes, size, frame, radius, height):
    """Gap, normal and slope of the gap along the rim, at one place of the rim at this height."""
    axis, p, r = frame
    cosine, sine = math.cos(angle), math.sin(angle)
    place = add(scale(height, axis), add(scale(radius * cosine, p), scale(radius * sine, r)))
    gap, n = nearest_in_space(sub(place, c), axes, size)
    return gap, n, cosine * dot(n, r) - sine * dot(n, p)


@func
def settle(low, low_slope, high, high_slope, c, axes, size, frame, radius, height):
    """Gap, normal and place between low (slope < 0) and high (slope > 0) where the slope along the rim vanishes.

    Regula falsi with halved weights (Illinois), every third step a bisection.
    """
    middle = 0.5 * (low + high)
    gap, n, slope = at_rim(middle, c, axes, size, frame, radius, height)
    for step in range(100):
        if slope == 0.0 or not abs(high - low) > 1e-15 * (1.0 + abs(middle)):
            break
        if slope < 0.0:
            low = middle
            low_slope = slope
            high_slope = high_slope if step % 3 == 0 else 0.5 * high_slope
        else:
            high = middle
            high_slope = slope
            low_slope = low_slope if step % 3 == 0 else 0.5 * low_slope
        middle = (low * high_slope - high * low_slope) / (high_slope - low_slope)
        if step % 3 == 2 or not (low < middle and middle < high):
            middle = 0.5 * (low + high)
        gap, n, slope = at_rim(middle, c, axes, size, frame, radius, height)
    return gap, n, middle


@func
def across_rim(angle, c, axes, size, frame, radius, height):
    """Gap and normal at one place of a rim, among the normals at right angles to it."""
    axis, p, r = frame
    radial = add(scale(math.cos(angle), p), scale(math.sin(angle), r))
    place = add(scale(height, axis), scale(radius, radial))
    return nearest_in_shadow(sub(place, c), axes, size, radial, axis)


@func
def nearest_on_rim(c, axes, size, frame, radius, height):
    """Least gap and its normal over a whole rim, from either side: several places may be locally nearest.

    Where the rim cuts deep into the ellipsoid, the shortest way out at the deepest place may lead along the rim and
    would meet it again: there the way out across the rim is taken.
    """
    turn = 2.0 * math.pi / RIM_SAMPLES
    place = math.atan2(dot(c, frame[2]), dot(c, frame[1]))
    best, normal, slope = at_rim(place, c, axes, size, frame, radius, height)
    start = place
    before_slope = slope
    for k in range(RIM_SAMPLES):
        high = start + (k + 1) * turn
        gap, n, slope = at_rim(high, c, axes, size, frame, radius, height)
        if gap < best:
            best = gap
            normal = n
            place = high
        if before_slope < 0.0 and slope > 0.0:
            gap, n, middle = settle(high - turn, before_slope, high, slope, c, axes, size, frame, radius, height)
            if gap < best:
                best = gap
                normal = n
                place = middle
        before_slope = slope
    if best < -least_curvature(size):
        return across_rim(place, c, axes, size, frame, radius, height)
    return best, normal


@func
def nearest_on_disc_edge(c, axes, size, frame, radius, height, start):
    """Least gap and its normal over the edge of a disc that has no nearer point inside.

    The gap is a convex function in space: at every place of the edge its slope says on which side the least is.
    """
    gap, n, slope = at_rim(start, c, axes, size, frame, radius, height)
    if slope == 0.0:
        other, m, slope = at_rim(start + 0.5 * math.pi, c, axes, size, frame, radius, height)
        if other >= gap:
            return gap, n
        start += 0.5 * math.pi
        gap = other
        n = m
    down = -1.0 if slope > 0.0 else 1.0
    here = start
    here_slope = slope
    step = 0.05
    for _ in range(8):
        there = here + down * step
        gap, n, there_slope = at_rim(there, c, axes, size, frame, radius, height)
        if there_slope * down >= 0.0:
            break
        here = there
        here_slope = there_slope
        step *= 2.0
    if there_slope == 0.0:
        return gap, n
    if down > 0.0:
        gap, n, _ = settle(here, here_slope, there, there_slope, c, axes, size, frame, radius, height)
    else:
        gap, n, _ = settle(there, there_slope, here, here_slope, c, axes, size, frame, radius, height)
    return gap, n


@func
def solid_gap(n, c, axes, size, frame, radius, half_length):
    """n.(x - c) - h(n) for the point x of a solid cylinder that comes first along n."""
    axis, p, r = frame
    u = stretched(axes, size, n)
    x, y = dot(n, p), dot(n, r)
    return -dot(n, c) - math.sqrt(dot(u, u)) - radius * math.sqrt(x * x + y * y) - half_length * abs(dot(n, axis))


@func
def best_over_rim(angle, c, axes, size, frame, radius, half_length, up):
    """The best of a few normals that point at the rim at one angle from outside, and its gap."""
    axis, p, r = frame
    radial = add(scale(math.cos(angle), p), scale(math.sin(angle), r))
    _, n = across_rim(angle, c, axes, size, frame, radius, up * half_length)
    best = -math.inf
    if dot(n, radial) < 0.0 and up * dot(n, axis) < 0.0:
        best = solid_gap(n, c, axes, size, frame, radius, half_length)
    for k in range(3):
        tilt = (k + 1) * 0.125 * math.pi
        m = add(scale(-math.cos(tilt), radial), scale(-up * math.sin(tilt), axis))
        gap = solid_gap(m, c, axes, size, frame, radius, half_length)
        if gap > best:
            best = gap
            n = m
    return best, n


@func
def climb(gap, n, c, axes, size, frame, radius, half_length):
    """Nearest local maximum of `solid_gap` from unit n on, by Newton's method with a shift that keeps it uphill."""
    axis, _, _ = frame
    for _ in range(50):
        along = dot(n, axis)
        level = sub(n, scale(along, axis))
        flat = norm(level)
        if not (flat > 0.0 and along != 0.0):
            break
        t = scale(1.0 / flat, cross(axis, level))
        b = cross(n, t)
        h, arm = support(axes, size, n)
        place = sub(scale(-radius / flat, level), scale(half_length if along > 0.0 else -half_length, axis))
        way = sub(place, add(c, arm))
        x, y = dot(way, t), dot(way, b)
        u, v = stretched(axes, size, t), stretched(axes, size, b)
        at, ab = dot(arm, t), dot(arm, b)
        tt = (dot(u, u) - at * at) / h + radius / flat + gap
        bb = (dot(v, v) - ab * ab) / h + gap
        tb = (dot(u, v) - at * ab) / h
        middle, half = 0.5 * (tt + bb), 0.5 * (tt - bb)
        lowest = middle - math.sqrt(half * half + tb * tb)
        shift = max(0.0, 1e-3 * (abs(tt) + abs(bb)) - 2.0 * lowest) if lowest <= 0.0 else 0.0
        tt += shift
        bb += shift
        inverse = 1.0 / (tt * bb - tb * tb)
        step_t, step_b = (bb * x - tb * y) * inverse, (tt * y - tb * x) * inverse
        # Not past the normals of the end and of the mantle, where the slope jumps.
        longest = max(1.0, math.sqrt(step_t * step_t + step_b * step_b) / (0.7 * min(flat, abs(along))))
        better = False
        for k in range(12):
            f = 0.5**k / longest
            m = normalize(add(n, add(scale(f * step_t, t), scale(f * step_b, b))))
            there = solid_gap(m, c, axes, size, frame, radius, half_length)
            if there > gap:
                better = True
                break
        if not better:
            break
        gap = there
        n = m
    return gap, n


@func
def way_out_over_rim(c, axes, size, frame, radius, half_length, up):
    """Gap and normal of the shortest way out of a solid cylinder over its upper (up = 1) or lower (-1) rim."""
    turn = 2.0 * math.pi / RIM_SAMPLES
    before, _ = best_over_rim(-turn, c, axes, size, frame, radius, half_length, up)
    here, n = best_over_rim(0.0, c, axes, size, frame, radius, half_length, up)
    best = -math.inf
    normal = n
    for k in range(RIM_SAMPLES):
        after, m = best_over_rim((k + 1) * turn, c, axes, size, frame, radius, half_length, up)
        if here >= before and here >= after:
            gap, n = climb(here, n, c, axes, size, frame, radius, half_length)
            if gap > best:
                best = gap
                normal = n
        before = here
        here = after
        n = m
    return best, normal


@func
def against_solid(c, axes, size, frame, radius, half_length):
    """Gap and normal against a solid cylinder."""
    axis, p, r = frame
    gap, n = nearest_in_shadow(scale(-1.0, c), axes, size, p, r)
    gap -= radius
    if half_length == math.inf:
        return gap, n
    deep = -least_curvature(size)
    _, arm = support(axes, size, n)
    height = dot(add(c, arm), axis)
    if abs(height) <= half_length and gap > deep:
        return gap, n
    mantle_holds = abs(height) <= half_length
    along = dot(c, axis)
    end = 1.0 if along >= 0.0 else -1.0
    up = end if mantle_holds else (1.0 if height >= 0.0 else -1.0)
    towards_end = scale(-end, axis)
    h, arm = support(axes, size, towards_end)
    end_gap = abs(along) - half_length - h
    foot = add(c, arm)
    x, y = dot(foot, p), dot(foot, r)
    end_holds = x * x + y * y <= radius * radius and up * along >= half_length
    if end_holds and end_gap > deep:
        return end_gap, towards_end
    if end_gap > gap:
        gap = end_gap
        n = towards_end
    _, m = nearest_on_disc_edge(c, axes, size, frame, radius, up * half_length, math.atan2(y, x))
    other = solid_gap(m, c, axes, size, frame, radius, half_length)
    if other > gap:
        gap = other
        n = m
    if gap > deep:
        return gap, n
    for side in range(2):
        up = 1.0 if side == 0 else -1.0
        other, m = way_out_over_rim(c, axes, size, frame, radius, half_length, up)
        if other > gap:
            gap = other
            n = m
    return gap, n


@func
def other_end(n, c, axes, size, frame):
    """The normal of the second place where an ellipsoid reaches far from the axis, opposite to the farthest one.

    Each step goes to the point that lies farthest in the direction of the last; the distance from the axis only grows.
    """
    axis, p, r = frame
    a, b, first, second = shadow(axes, size, p, r)
    long = first if a >= b else second
    m = scale(-1.0 if dot(n, long) >= 0.0 else 1.0, long)
    for _ in range(60):
        _, arm = support(axes, size, m)
        point = add(c, arm)
        after = normalize(sub(point, scale(dot(point, axis), axis)))
        step = sub(after, m)
        m = after
        if dot(step, step) < 1e-30:
            break
    return m


@func
def way_out_over_end(gap, n, foot, c, axes, size, frame, radius, half_length):
    """Of an ellipsoid deep in a sheet: gap and normal of the way out over one of its rims, if it is shorter."""
    axis, p, r = frame
    angle = math.atan2(dot(foot, r), dot(foot, p))
    for side in range(2):
        up = 1.0 if side == 0 else -1.0
        other, m = across_rim(angle, c, axes, size, frame, radius, up * half_length)
        if other > gap and up * dot(m, axis) <= 0.0:
            gap = other
            n = m
    return gap, n


@func
def against_sheet(c, axes, size, frame, radius, half_length):
    """Gap and normal against a finite hollow cylinder, from the side of the ellipsoid's centre."""
    axis, p, r = frame
    across_axis = sub(c, scale(dot(c, axis), axis))
    inside = norm(across_axis) < radius
    if inside:
        _, n = farthest_in_shadow(c, axes, size, p, r)
        gap, foot = foot_on_plane(c, axes, size, n, max(radius - dot(n, c), 0.0))
    else:
        _, n = nearest_in_shadow(scale(-1.0, c), axes, size, p, r)
        gap, foot = foot_on_plane(c, axes, size, n, max(-dot(n, c) - radius, 0.0))
    if abs(dot(foot, axis)) <= half_length:
        if gap < -least_curvature(size):
            gap, n = way_out_over_end(gap, n, foot, c, axes, size, frame, radius, half_length)
        return gap, n
    gap, n = nearest_on_rim(c, axes, size, frame, radius, half_length)
    other, m = nearest_on_rim(c, axes, size, frame, radius, -half_length)
    if other < gap:
        gap = other
        n = m
    if inside:
        _, m = farthest_in_shadow(c, axes, size, p, r)
        m = other_end(m, c, axes, size, frame)
        other, foot = foot_on_plane(c, axes, size, m, max(radius - dot(m, c), 0.0))
        if abs(dot(foot, axis)) <= half_length and other < gap:
            gap = other
            n = m
    return gap, n

"""The distance of a convex polyhedron from the rim of a hollow cylinder, a circle, while the two are apart.

Every place of the circle has a distance from the polyhedron, whose slope along the circle is that of the way between them: the least one is between two places
where the slope changes its sign. All in the axes of the polyhedron and about its centre, in metres.
"""

import math

from ..kernels.backend import func
from ..kernels.vec import add, cross, dot, normalize, scale
from .polyhedron_sphere import hull_ball

PLACES = 48  # of a rim that are tried
FINE = 1e-13  # of a turn: a place that is known to that is known
HALVINGS = 150


@func
def frame_of(middle, axis):
    """Two unit vectors at right angles to the axis and to each other: the first towards the polyhedron."""
    along = dot(middle, axis)
    toward = add(scale(-1.0, middle), scale(along, axis))
    x_is_short = abs(axis[0]) < 0.6
    some = cross(axis, (1.0 if x_is_short else 0.0, 0.0 if x_is_short else 1.0, 0.0))
    one = normalize(toward if dot(toward, toward) > 1e-24 * dot(middle, middle) else some)
    return one, cross(axis, one)


@func
def place_at(t, middle, one, two, radius):
    """The place of the rim at angle t."""
    return add(middle, add(scale(radius * math.cos(t), one), scale(radius * math.sin(t), two)))


@func
def at_place(t, middle, one, two, radius, h, k, hulls):
    """At angle t: the signed distance, unit n to the rim, the polyhedron's point, its feature, the slope of the distance along the rim."""
    _, gap, n, point, feature = hull_ball(h, k, hulls, place_at(t, middle, one, two, radius), 0.0, math.inf)
    slope = math.cos(t) * dot(n, two) - math.sin(t) * dot(n, one)
    return gap, n, point, feature, slope


@func
def settle(low, low_slope, high, high_slope, middle, one, two, radius, h, k, hulls):
    """The same where the slope vanishes between low (slope < 0) and high (slope > 0): regula falsi with halved weights (Illinois), every third step
    a bisection, for slopes jump where another feature of the polyhedron is nearest."""
    t = 0.5 * (low + high)
    found = at_place(t, middle, one, two, radius, h, k, hulls)
    for step in range(HALVINGS):
        slope = found[4]
        if slope == 0.0 or not high - low > FINE:
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
        found = at_place(t, middle, one, two, radius, h, k, hulls)
    return found


@func
def rim_distance(h, k, hulls, middle, axis, radius, limit):
    """The distance [m] of hull h at size factor k from the rim about `middle`, unit n to the rim, the polyhedron's point and its feature; infinite if above
    limit [m], zero or less if the rim is found to be in the polyhedron."""
    size = k * hulls.outer[h]
    one, two = frame_of(middle, axis)
    along = dot(middle, axis)
    off = abs(dot(middle, one)) - radius
    gap, n, point, feature = math.inf, axis, middle, 0
    if math.sqrt(off * off + along * along) - size > limit:
        return gap, n, point, feature
    turn = 2.0 * math.pi / PLACES
    best = limit
    before, before_slope = math.inf, 1.0
    for i in range(PLACES + 1):
        t = i * turn
        x = place_at(t, middle, one, two, radius)
        if math.sqrt(dot(x, x)) - size - turn * radius > best:
            # Neither there nor between there and the places beside it.
            before, before_slope = math.inf, 1.0
            continue
        found = at_place(t, middle, one, two, radius, h, k, hulls)
        here, slope = found[0], found[4]
        if here <= best:
            gap, n, point, feature, _ = found
            best = here
        # In between it is less by half of the way at the most.
        if before_slope < 0.0 and slope > 0.0 and 0.5 * (before + here - turn * radius) < best:
            found = settle(t - turn, before_slope, t, slope, middle, one, two, radius, h, k, hulls)
            if found[0] <= best:
                gap, n, point, feature, _ = found
                best = found[0]
        if best <= 0.0:
            break
        before, before_slope = here, slope
    return gap, n, point, feature

"""Nearest points of friction cones, in world axes: the one nonlinear operation of every cone solver.

A contact's impulse x = a n + t has the normal part a along the unit normal n and the tangential part t. The cone is

    |t| <= mu (a + tension),  a >= -tension

with the apex at a = -tension: cohesion shifts the cone, tension = 0 is dry friction. mu = 0 leaves the normal part only
(a joint's limit, a frictionless contact). mu < 0 stands for a bound on both sides, |a| <= tension and t = 0 (a motor
that can push and pull so hard and no more).

With rolling and spinning friction an impulse has six numbers: x and a couple divided by a length. The couple's part
across the normal is bounded by roll (a + tension), its part along the normal by twist (a + tension).

"Nearest" is measured with weight 1 along the normal and weight `ratio` across it and in the couple. A different weight
along the normal is a stretch of the axis of the cone, so the nearest point has the same closed form; solvers use it to
scale the two parts of a contact separately. With ratio = 1 it is the orthogonal projection.
"""

import math

from ..backend import func, fused
from ..vec import add, dot, matrix_vector, scale, sub


@func
def project3(x, normal, mu, tension, ratio):
    """The point of the cone nearest to the impulse x (3,) [N s]; normal: unit vector, tension [N s], ratio: weight."""
    a = dot(x, normal)
    across = sub(x, scale(a, normal))
    if mu < 0.0:
        return scale(min(max(a, -tension), tension), normal)
    height = a + tension
    slide = math.sqrt(dot(across, across))
    if height >= 0.0 and slide <= mu * height:
        return x
    height = max((height + ratio * mu * slide) / (1.0 + ratio * mu * mu), 0.0)
    # Without a tangential part, or without friction, nothing is left to keep in proportion.
    kept = mu * height / slide if slide > 0.0 else 0.0
    return add(scale(height - tension, normal), scale(kept, across))


@fused
def select3(x, normal, mu, tension, ratio):
    """`project3` as selects between values that are all computed, for loops that become vector instructions."""
    a = dot(x, normal)
    across = sub(x, scale(a, normal))
    height = a + tension
    slide = math.sqrt(dot(across, across))
    level = max((height + ratio * mu * slide) / (1.0 + ratio * mu * mu), 0.0)
    kept = mu * level / max(slide, 1e-300)
    inside = height >= 0.0 and slide <= mu * height
    along = (height if inside else level) - tension
    kept = 1.0 if inside else kept
    bounded = mu < 0.0
    along = min(max(a, -tension), tension) if bounded else along
    kept = 0.0 if bounded else kept
    return add(scale(along, normal), scale(kept, across))


@func
def height_of(height, slide, mu, rolling, roll, spinning, twist, ratio):
    """Height m >= 0 above the apex of the nearest point: minimises (m - height)^2 + ratio sum_k max(0, x_k - c_k m)^2.

    The derivative is a rising, concave function of m with three kinks. Newton's method from the left end never
    overshoots its root and passes at least one kink a step: four steps are exact.
    """
    m = (height + ratio * (mu * slide + roll * rolling + twist * spinning)) / (
        1.0 + ratio * (mu * mu + roll * roll + twist * twist)
    )
    for _ in range(3):
        c1 = mu if slide > mu * m else 0.0
        c2 = roll if rolling > roll * m else 0.0
        c3 = twist if spinning > twist * m else 0.0
        m = (height + ratio * (c1 * slide + c2 * rolling + c3 * spinning)) / (
            1.0 + ratio * (c1 * c1 + c2 * c2 + c3 * c3)
        )
    return max(m, 0.0)


@func
def project6(x, couple, normal, mu, tension, roll, twist, ratio):
    """The nearest point of a cone with rolling and spinning friction: impulse and couple/length, each (3,) [N s]."""
    a = dot(x, normal)
    if mu < 0.0:
        return scale(min(max(a, -tension), tension), normal), (0.0, 0.0, 0.0)
    across = sub(x, scale(a, normal))
    slide = math.sqrt(dot(across, across))
    spin = dot(couple, normal)
    tumble = sub(couple, scale(spin, normal))
    rolling = math.sqrt(dot(tumble, tumble))
    height = a + tension
    if height >= 0.0 and slide <= mu * height and rolling <= roll * height and abs(spin) <= twist * height:
        return x, couple
    m = height_of(height, slide, mu, rolling, roll, abs(spin), twist, ratio)
    slid = mu * m / slide if slide > mu * m else 1.0
    rolled = roll * m / rolling if rolling > roll * m else 1.0
    spun = twist * m / abs(spin) if abs(spin) > twist * m else 1.0
    return (
        add(scale(m - tension, normal), scale(slid, across)),
        add(scale(spun * spin, normal), scale(rolled, tumble)),
    )


@func
def descend3(x, u, normal, along, across):
    """x - along u_n n - across u_t: a step against the velocity u (3,) [m/s]; along, across: steps [kg]."""
    a = dot(u, normal)
    return sub(sub(x, scale(along * a, normal)), scale(across, sub(u, scale(a, normal))))


@func
def solve3(x, u, block, normal, mu, tension, along, across, steps):
    """One cone's own problem: the impulse in the cone that minimises the energy if all other impulses stay.

    x (3,) [N s] and u (3,) [m/s]: impulse and velocity now; block: what an impulse adds to the velocity, three rows of
    three [1/kg]; along, across: its diagonal along the normal and the mean of the others. Projected gradient, at most
    `steps` steps; where the block is diagonal in the contact's frame, as between spheres, the first is exact.
    """
    largest = 1.0
    first = 0.0
    for _ in range(steps):
        y = descend3(x, u, normal, 1.0 / (largest * along), 1.0 / (largest * across))
        y = project3(y, normal, mu, tension, across / along)
        d = sub(y, x)
        v = matrix_vector(block, d)
        dn = dot(d, normal)
        length = along * dn * dn + across * max(dot(d, d) - dn * dn, 0.0)
        curvature = dot(d, v)
        if curvature > 1.0001 * largest * length:
            largest = 1.01 * curvature / length
            continue
        x = y
        u = add(u, v)
        first = max(first, length)
        if length <= 1e-20 * first:
            break
    return x

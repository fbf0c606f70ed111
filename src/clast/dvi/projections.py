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

from ..kernels.backend import fused
from ..kernels.vec import add, dot, matrix_vector, scale, sub


@fused
def project3(x, normal, mu, tension, ratio):
    """The point of the cone nearest to the impulse x (3,) [N s]; normal: unit vector, tension [N s], ratio: weight.

    Selects instead of branches, so that a loop over contacts becomes vector instructions.
    """
    a = dot(x, normal)
    across = sub(x, scale(a, normal))
    slide = math.sqrt(dot(across, across))
    height = a + tension
    inside = (mu >= 0.0) & (height >= 0.0) & (slide <= mu * height)
    m = (height + ratio * mu * slide) / (1.0 + ratio * mu * mu)
    m = m if m > 0.0 else 0.0
    # Without a tangential part, or without friction, nothing is left to keep in proportion.
    kept = mu * m / (slide if slide > 0.0 else 1.0)
    kept = kept if mu > 0.0 else 0.0
    along = m - tension if mu >= 0.0 else clamp(a, tension)
    return (
        x[0] if inside else along * normal[0] + kept * across[0],
        x[1] if inside else along * normal[1] + kept * across[1],
        x[2] if inside else along * normal[2] + kept * across[2],
    )


@fused
def clamp(a, most):
    """The number between -most and most nearest to a."""
    a = a if a < most else most
    return a if a > -most else -most


@fused
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
    return m if m > 0.0 else 0.0


@fused
def shrink(length, most):
    """The factor that makes a vector of this length no longer than `most`."""
    return most / length if length > most else 1.0


@fused
def project6(x, couple, normal, mu, tension, roll, twist, ratio):
    """The nearest point of a cone with rolling and spinning friction: impulse and couple/length, each (3,) [N s]."""
    a = dot(x, normal)
    across = sub(x, scale(a, normal))
    slide = math.sqrt(dot(across, across))
    spin = dot(couple, normal)
    tumble = sub(couple, scale(spin, normal))
    rolling = math.sqrt(dot(tumble, tumble))
    m = height_of(a + tension, slide, mu, rolling, roll, abs(spin), twist, ratio)
    dry = mu >= 0.0
    along = m - tension if dry else clamp(a, tension)
    slid = shrink(slide, mu * m) if dry else 0.0
    rolled = shrink(rolling, roll * m) if dry else 0.0
    spun = spin * shrink(abs(spin), twist * m) if dry else 0.0
    return (
        add(scale(along, normal), scale(slid, across)),
        add(scale(spun, normal), scale(rolled, tumble)),
    )


@fused
def descend3(x, u, normal, along, across):
    """x - along u_n n - across u_t: a step against the velocity u (3,) [m/s]; along, across: steps [kg]."""
    a = dot(u, normal)
    return sub(sub(x, scale(along * a, normal)), scale(across, sub(u, scale(a, normal))))


@fused
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

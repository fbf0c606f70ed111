"""Normal forces as means over a step, for restitution that comes out as it is asked for with few steps a contact.

A force that is computed at the beginning of a step acts until the next one is. So a contact begins and ends up to a step too late, and dashpots see
velocities that are half a step old; at dt="auto" restitutions are up to 4e-2 off for it. Functions of one contact, see `clast.dem.composed`.
"""

from ..kernels.backend import fused


@fused
def in_step(overlap, rate, dt):
    """Where the law is asked within a step, and for which share of the step: overlap [m], share.

    A force acts from the middle of the step before it to the middle of the one behind. A contact that begins or ends within a step, one whose overlap is
    below what it changes by, is there for a part of that time alone, and is on the average at half of the depth that it has at the
    end of that part.
    """
    way = abs(rate) * dt
    ends = overlap < way
    share = overlap / max(way, 1e-300) + 0.5
    return 0.5 * (overlap + 0.5 * way) if ends else overlap, share if ends else 1.0


@fused
def without_lag(dashpot, mass, dt):
    """The dashpot [N s/m] that acts as this one would if velocities were not half a step old.

    A velocity of before, v + F dt / (2 m), makes force and dashpot stronger by 1 / (1 - c dt / (2 m)) for a contact that is alone, and the fraction of
    critical damping by the root of that: c (sqrt(1 + g^2) - g), g = c dt / (4 m), makes up for it, here as c / (1 + g + g^2 / 2). A contact at rest
    has no such velocity and keeps its force.
    """
    g = 0.25 * dashpot * dt
    return dashpot * mass * mass / (mass * mass + g * (mass + 0.5 * g))


@fused
def not_below_zero(force, slope, rate, dt):
    """The force, or nothing where it would pull, as a mean over the step: while it falls through zero it pushes for a part of it. slope [N/m]: of the spring."""
    half = 0.5 * slope * max(-rate, 0.0) * dt
    pushes = max(force + half, 0.0)
    return force if force >= half else pushes * pushes / max(4.0 * half, 1e-300)

"""Normal forces as means over a step, for restitution that comes out as it is asked for with few steps a contact.

A force that is computed at a place acts from half a step before it to half a step behind. So a contact begins and ends up to a step too late, and dashpots see
velocities that are half a step old; at dt="auto" restitutions would be up to 4e-2 off for it. The functions here are of one contact whose spring goes with the power p of the
overlap and whose dashpot with the power q: 3/2 and 1/4 of Hertz with Tsuji's dashpot, 1 and 0 of a linear one. Contacts that last, or are at rest, have the force of the law.
"""

from typing import NamedTuple

from ..kernels.backend import fused


class Whole(NamedTuple):
    """Where a law is asked for the mean over a step, and what its answers are multiplied by."""

    overlap: float  # [m]
    share: float  # of the step in which the contact is there
    spring: float  # mean of the spring's force over the whole step, over that at `overlap`
    dashpot: float  # mean of the dashpot over the share of the step, over that at `overlap`
    steep: float  # mean of the spring's slope over the share of the step, times the square of that, over the slope at `overlap`


@fused
def in_step(overlap, rate, kick, dt, p, q):
    """The Whole of a contact; kick [m/s]: by how much its force will slow it down in this step.

    One that begins or ends within a step, whose overlap is below what it changes by, is there for a part of it alone: the law is asked at its deepest, and the mean of x^p from 0
    to there is 1 / (p + 1) of that. The steps behind are samples in the middle, off by a 24th of the slope with which they begin (Euler and Maclaurin); this is
    made up for here. How it begins is known from the velocity before, how it ends from that to come.
    """
    way = max(rate, min(kick, -rate) - rate) * dt
    ends = overlap < way
    way = way if ends else overlap  # what follows is not used then, and finite
    deepest = overlap + 0.5 * way
    per = 1.0 / max(way * deepest, 1e-300)
    share, square = deepest * deepest * per, (way * way * per) * (way * way * per)
    spring, dashpot = share * (1.0 / (p + 1.0) - p / 24.0 * square), 1.0 / (q + 1.0) - q / 24.0 * square
    steep = share * share / p
    return Whole(
        deepest if ends else overlap,
        share if ends else 1.0,
        spring if ends else 1.0,
        dashpot if ends else 1.0,
        steep if ends else 1.0,
    )


@fused
def without_lag(dashpot, stiffness, mass, dt, p, q):
    """The dashpot [N s/m] that acts as this one would if velocities were not half a step old; stiffness [N/m]: force of the spring over overlap.

    A velocity of before, v + F dt / (2 m), makes forces stronger by 1 + c dt / (2 m), for a contact that is alone. A spring that is stiffer by so much, more so where the
    dashpot is strong, asks for another dashpot; over all of a contact c / (1 + g + g^2), g = c dt / (4 m) (p + 1) / (p + 1 + q), makes up for it to the second order. The last term
    is that of springs, quicker by k dt^2 / (24 m) in steps. A contact at rest has no such velocity and keeps its force.
    """
    g = 0.25 * (p + 1.0) / (p + 1.0 + q) * dashpot * dt
    # Not more than linear where dashpots stop what moves within a step: they must not become weaker there.
    most = g * (mass + min(g, mass))
    return dashpot * mass * mass / (mass * (mass - p / 24.0 * stiffness * dt * dt) + most)


@fused
def not_below_zero(force, spring, steep, rate):
    """The force, or nothing where it would pull, as a mean over the step: while it falls through zero it pushes for a part of it.

    spring [N]: the part of it that is the spring's; steep [N s/m]: by how much it falls in half a step, over the rate. In the steps before samples in the middle are off as in `in_step`, in all by a
    12th of that fall where dashpots end the contact; it is taken off over two steps.
    """
    half = min(steep * max(-rate, 0.0), spring)
    pushes = max(force + half, 0.0)
    per = 1.0 / max(4.0 * half * spring, 1e-300)
    mean = force if force >= half else pushes * pushes * (spring * per)
    return mean - max(min(force, 4.0 * half - force), 0.0) * (1.0 / 24.0) * (1.0 - 4.0 * half * force * per)


@fused
def push(whole, spring, stiffness, dashpot, rate, mass, dt, p, q):
    """Normal force [N] of spring [N], its stiffness [N/m], force over overlap, and dashpot [N s/m], all at `whole.overlap`; it may pull."""
    c = whole.share * without_lag(whole.dashpot * dashpot, stiffness, mass, dt, p, q)
    return whole.spring * spring + min(c, mass * (1.0 / max(dt, 1e-300))) * rate


@fused
def push_only(whole, spring, stiffness, dashpot, rate, mass, dt, p, q):
    """The same where tension is cut off. Where a force vanishes the dashpot is as strong as the spring, and takes q of the p by which that falls."""
    force = push(whole, spring, stiffness, dashpot, rate, mass, dt, p, q)
    return not_below_zero(force, whole.spring * spring, 0.5 * (p - q) * whole.steep * stiffness * dt, rate)

"""What answers sliding, rolling and twisting of a contact: springs with a friction limit.

Shear is a function (touch, mix, dt, spring, dashpot [N s/m], limit [N]) -> shear force on b (3,) [N], slip (3,) [m]. A resistance is one (rolling angle
(3,) [rad], spin of b against a (3,) [rad/s], pressure: normal force [N], normal (3,), overlap [m], reduced radius [m], kept, mix, dt) -> couple on b
(3,) [N m], rolling angle (3,) [rad], kept; of what the law keeps its own numbers are the last. A normal force below zero pulls, and an overlap
below zero is a gap: springs with a limit have no couple there.
"""

import math

from ..kernels.backend import fused
from .laws import coulomb, roll, turn


@fused
def slid(slip, touch, dt):
    """The slip after this step."""
    x, y, z = slip
    return x + touch.slide[0] * dt, y + touch.slide[1] * dt, z + touch.slide[2] * dt


@fused
def mindlin(touch, mix, dt, spring, dashpot, limit):
    """Mindlin without slip: the force stays when the area grows and falls with it when it shrinks (Thornton et al. 2013).

    So the slip is shortened under growing load: a stiffer spring of the same length would be energy from nothing.
    """
    overlap = max(touch.overlap, 0.0)
    before = max(0.0, min(overlap, overlap - touch.rate * dt))
    slip = slid(turn(touch.slip, touch.normal, before, overlap), touch, dt)
    return coulomb(slip, touch.slide, spring.shear, dashpot, limit)


@fused
def fading(touch, mix, dt, spring, dashpot, limit):
    """A spring whose slip falls with the overlap, so that a contact that opens holds no shear: for a stiffness that does not."""
    overlap = max(touch.overlap, 0.0)
    before = max(overlap, overlap - touch.rate * dt)
    slip = slid(turn(touch.slip, touch.normal, overlap * overlap, before * before), touch, dt)
    return coulomb(slip, touch.slide, spring.shear, dashpot, limit)


@fused
def rescaled(touch, mix, dt, spring, dashpot, limit):
    """The present stiffness times the slip so far, cut off at the friction limit (Cundall and Strack 1979; Silbert et al. 2001)."""
    slip = slid(turn(touch.slip, touch.normal, 1.0, 1.0), touch, dt)
    return coulomb(slip, touch.slide, spring.shear, dashpot, limit)


@fused
def frictionless(touch, mix, dt, spring, dashpot, limit):
    """No shear force."""
    return (0.0, 0.0, 0.0), (0.0, 0.0, 0.0)


# Rolling.


@fused
def rolls_on_spring(turned, turning, pressure, n, overlap, radius, kept, mix, dt):
    """An elastic-plastic spring, see `clast.dem.laws.roll`; none where the contact pulls."""
    couple, turned = roll(turned, turning, max(pressure, 0.0), n, overlap, radius, mix, dt)
    return couple, turned, kept


@fused
def across(turning, n):
    """The part of a spin across the normal (3,) [rad/s], and its size."""
    along = turning[0] * n[0] + turning[1] * n[1] + turning[2] * n[2]
    x, y, z = turning[0] - along * n[0], turning[1] - along * n[1], turning[2] - along * n[2]
    return (x, y, z), math.sqrt(x * x + y * y + z * z)


@fused
def rolls_by_constant(turned, turning, pressure, n, overlap, radius, kept, mix, dt):
    """A constant couple mu_r R F against rolling (Ai et al. 2011, model A; Zhou et al. 1999): bodies at rest tremble under it."""
    (x, y, z), size = across(turning, n)
    couple = -mix.rolling * radius * max(pressure, 0.0) / max(size, 1e-300)
    return (couple * x, couple * y, couple * z), turned, kept


@fused
def rolls_viscous(turned, turning, pressure, n, overlap, radius, kept, mix, dt):
    """A couple mu_r R F w / w_0 with the rolling speed w, w_0 = 1 rad/s (Ai et al. 2011, model B): it slows and never holds."""
    (x, y, z), _ = across(turning, n)
    couple = -mix.rolling * radius * max(pressure, 0.0)
    return (couple * x, couple * y, couple * z), turned, kept


@fused
def rolls_freely(turned, turning, pressure, n, overlap, radius, kept, mix, dt):
    """No couple."""
    return (0.0, 0.0, 0.0), turned, kept


# Bound to `twists`: what answers rolling.
rolling = rolls_freely


def twists(turned, turning, pressure, n, overlap, radius, kept, mix, dt):
    """A torsion spring under a limit, beside rolling: k = k_t a^2 / 2, a^2 = R d, at most mu_s R F.

    The spring is that of Marshall (2009, section 3.4); his limit follows from friction and the area, this one has a number of its own, mu_s =
    spinning_friction. k_t is the stiffness in shear. Keeps the angle of twist, a number, because the normal may turn.
    """
    couple, turned, kept = rolling(turned, turning, pressure, n, overlap, radius, kept, mix, dt)
    area = radius * max(overlap, 0.0)
    stiffness = 0.5 * 8.0 * mix.shear * math.sqrt(area) * area
    twist = kept[-1] + (turning[0] * n[0] + turning[1] * n[1] + turning[2] * n[2]) * dt
    most = mix.spinning_friction * radius * max(pressure, 0.0)
    twist *= min(1.0, most / max(stiffness * abs(twist), 1e-300))
    size = -stiffness * twist
    couple = (couple[0] + size * n[0], couple[1] + size * n[1], couple[2] + size * n[2])
    return couple, turned, kept[:-1] + (twist,)


def resistance(law, rolling):
    """What answers rolling and twisting for a `laws.Law`; rolling: whether anything does."""
    return (rolls_on_spring if law.resist is None else law.resist) if rolling else rolls_freely

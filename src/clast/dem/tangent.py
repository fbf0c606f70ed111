"""What answers sliding, rolling and twisting of a contact: springs with a friction limit.

Shear is a function (touch, mix, dt, spring, dashpot [N s/m], limit [N]) -> shear force on b (3,) [N], slip (3,) [m], what it keeps. A resistance is one (rolling angle
(3,) [rad], spin of b against a (3,) [rad/s], pressure: normal force [N], normal (3,), overlap [m], reduced radius [m], kept, mix, dt) -> couple on b
(3,) [N m], rolling angle (3,) [rad], kept; of what the law keeps its own numbers are the last. A normal force below zero pulls, and an overlap
below zero is a gap: springs with a limit have no couple there.
"""

import functools
import math

from ..kernels.backend import bind, fused, made_by
from .laws import coulomb, hertz_grip, roll, turn


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
    force, slip = coulomb(slip, touch.slide, spring.shear, dashpot, limit)
    return force, slip, ()


@fused
def fading(touch, mix, dt, spring, dashpot, limit):
    """A spring whose slip falls with the overlap, so that a contact that opens holds no shear: for a stiffness that does not."""
    overlap = max(touch.overlap, 0.0)
    before = max(overlap, overlap - touch.rate * dt)
    slip = slid(turn(touch.slip, touch.normal, overlap * overlap, before * before), touch, dt)
    force, slip = coulomb(slip, touch.slide, spring.shear, dashpot, limit)
    return force, slip, ()


@fused
def rescaled(touch, mix, dt, spring, dashpot, limit):
    """The present stiffness times the slip so far, cut off at the friction limit (Cundall and Strack 1979; Silbert et al. 2001)."""
    slip = slid(turn(touch.slip, touch.normal, 1.0, 1.0), touch, dt)
    force, slip = coulomb(slip, touch.slide, spring.shear, dashpot, limit)
    return force, slip, ()


@fused
def frictionless(touch, mix, dt, spring, dashpot, limit):
    """No shear force."""
    return (0.0, 0.0, 0.0), (0.0, 0.0, 0.0), ()


@fused
def secant(touch, mix, dt, spring, dashpot, limit):
    """The present stiffness times the slip so far, under friction of the spring's force alone; the dashpot acts while the contact sticks.

    The form that meets the curves of tests 6 and 8 of Chung and Ooi (2011), with the dashpots of Tsuji et al. (1992). A contact whose normal dashpot pulls
    still has the friction of its spring.
    """
    x, y, z = slid(turn(touch.slip, touch.normal, 1.0, 1.0), touch, dt)
    k, most = spring.shear, mix.friction * max(0.0, spring.force + spring.pull)
    force = k * math.sqrt(x * x + y * y + z * z)
    factor = min(1.0, most / max(force, 1e-300))
    c = dashpot if force <= most else 0.0
    x, y, z = factor * x, factor * y, factor * z
    u, v, w = touch.slide
    return (-(k * x + c * u), -(k * y + c * v), -(k * z + c * w)), (x, y, z), ()


@fused
def incremental(touch, mix, dt, spring, dashpot, limit):
    """The force grows by the present stiffness times what the contact slips in a step, whatever the load does (in increments, as Cundall and Strack 1979).

    A contact that slips while it is stiff and back while it is soft gains energy: of use to compare with programs that have it. Keeps the stiffness
    of the step before [N/m].
    """
    k = max(spring.shear, 1e-300)
    part = touch.kept.grip / k
    slip = slid(turn(touch.slip, touch.normal, part * part, 1.0), touch, dt)
    force, slip = coulomb(slip, touch.slide, k, dashpot, limit)
    return force, slip, (k,)


@fused
def thornton(touch, mix, dt, spring, dashpot, limit):
    """The force stays when the contact stiffens and falls when it softens; where spring and dashpot together are above the limit the spring itself is drawn to it.

    The form that meets the curves of Thornton et al. (2013), linear and of Hertz and Mindlin: a contact that slides has no dashpot, and one that sticks again begins with the whole
    friction in its spring. Keeps the stiffness of the step before [N/m].
    """
    k = max(spring.shear, 1e-300)
    part = min(1.0, touch.kept.grip / k)
    x, y, z = slid(turn(touch.slip, touch.normal, part * part, 1.0), touch, dt)
    u, v, w = (
        k * x + dashpot * touch.slide[0],
        k * y + dashpot * touch.slide[1],
        k * z + dashpot * touch.slide[2],
    )
    size = math.sqrt(u * u + v * v + w * w)
    factor, slides = min(1.0, limit / max(size, 1e-300)), size > limit
    u, v, w = factor * u, factor * v, factor * w
    return (-u, -v, -w), (u / k, v / k, w / k) if slides else (x, y, z), (k,)


REST = 1e-200  # [s], the step of a contact whose force at rest is asked for is shorter


@fused
def root_squared(x):
    """x^(2/3), nothing below zero."""
    return math.exp(math.log(max(x, 1e-300)) * 2.0 / 3.0)


@fused
def eased(part, moved, whole):
    """The part of the limit `whole` [N] that is used after a displacement with the force `moved` [N] if nothing slipped, from `part` on.

    dT/d(slip) = k (1 - T / whole)^(1/3) in closed form: Mindlin's curve at constant load.
    """
    left = max(root_squared(1.0 - part) - 2.0 * moved / (3.0 * whole), 0.0)
    return 1.0 - left * math.sqrt(left)


@fused
def micro_slip(touch, mix, dt, spring, dashpot, limit):
    """Mindlin and Deresiewicz (1953) in steps (Thornton and Yin 1991): the contact slips from its rim inwards before it slides.

    dT = k theta d(slip) + mu (1 - theta) dN, theta^3 = 1 - |T - P| / (c mu N): P = 0 and c = 1 when the contact is loaded for the first time, P the force
    at the last turn and c = 2 behind it, until T is as far from P as twice P, or as the turn before: then the curve is again that of the first
    loading (one loop is remembered). With dT < mu dN nothing slips. What is not used of mu dN stays for later, `spare`, and is used up with
    theta^3 = 1 - q / (q + mu N - T), q what has been used of it: exact when the load comes first, and after a load in one direction. Under falling
    load T gives way by mu dN. The curves of constant load are integrated in closed form, so that a step may be long; sideways of T - P the stiffness is k, up to
    the limit. Keeps P [N] (turning_x, turning_y, turning_z), how far T may go from it (span), spare, q (used), mu N (load) and k [N/m] (grip), the
    last two of the step before.
    """
    n, kept = touch.normal, touch.kept
    rests = dt < REST
    k, most = max(spring.shear, 1e-300), max(limit, 1e-300)
    (sx, sy, sz), grip = turn(touch.slip, n, 1.0, 1.0), kept.grip
    tx, ty, tz = grip * sx, grip * sy, grip * sz
    px, py, pz = turn((kept.turning_x, kept.turning_y, kept.turning_z), n, 1.0, 1.0)
    dx, dy, dz = touch.slide[0] * dt, touch.slide[1] * dt, touch.slide[2] * dt
    span, spare, used = kept.span, kept.spare, kept.used
    # The direction in which the contact is being loaded, and how far it is.
    x, y, z = tx - px, ty - py, tz - pz
    far, way = math.sqrt(x * x + y * y + z * z), math.sqrt(dx * dx + dy * dy + dz * dz)
    begins = far <= 1e-14 * most
    turns = not begins and x * dx + y * dy + z * dz < 0.0
    if turns:
        px, py, pz = tx, ty, tz
        span = far if span > 0.0 else 2.0 * far
        spare, used = 0.0, 0.0
    fresh = turns or begins
    over = 1.0 / max(way if fresh else far, 1e-300)
    x, y, z = (dx * over, dy * over, dz * over) if fresh else (x * over, y * over, z * over)
    far = 0.0 if fresh else far
    # Forces along that direction from here on. What the load has changed: room to stick, or so much less of it.
    grown = limit - kept.load
    along = dx * x + dy * y + dz * z
    stuck = min(max(grown, 0.0), k * along)
    used = used if k * along > grown else 0.0
    spare += grown - stuck
    back = min(max(-spare, 0.0), 0.5 * far if span > 0.0 else far)
    spare = max(spare, 0.0)
    moved = k * along - stuck + back
    whole = max(used + most - (tx * x + ty * y + tz * z + stuck - back), 1e-300)
    begun = used / whole
    ended = min(eased(begun, moved, whole), (used + spare) / whole)
    # The displacement that this took.
    gone = min(1.5 * whole * (root_squared(1.0 - begun) - root_squared(1.0 - ended)), moved)
    more = ended * whole - used
    spare = max(spare - more, 0.0)
    empty = spare <= 1e-14 * most
    used = 0.0 if empty else ended * whole
    moved = moved - gone if empty else 0.0
    shift = stuck + more - back if span > 0.0 else 0.0  # by which P goes away from T
    px, py, pz = px - shift * x, py - shift * y, pz - shift * z
    span += 2.0 * shift
    whole = 2.0 * most if span > 0.0 else most
    part = min(max(far + stuck + more - back + shift, 0.0) / whole, 1.0)
    far = eased(part, moved, whole) * whole
    # Where the loop closes the curve of the first loading goes on within the step.
    closes = 0.0 < span <= far * (1.0 + 1e-12)
    shut = min(span / whole, 1.0)
    moved -= 1.5 * whole * (root_squared(1.0 - part) - root_squared(1.0 - shut))
    far = min(far, span) if closes else far
    there = (px * x + py * y + pz * z + far) / most
    far += (eased(min(max(there, 0.0), 1.0), max(moved, 0.0), most) - there) * most if closes else 0.0
    tx = px + far * x + k * (dx - along * x)
    ty = py + far * y + k * (dy - along * y)
    tz = pz + far * z + k * (dz - along * z)
    size = math.sqrt(tx * tx + ty * ty + tz * tz)
    # Without a step nothing slips at the rim: the force is that of the slip so far, and nothing is learned.
    tx, ty, tz = (k * sx, k * sy, k * sz) if rests else (tx, ty, tz)
    size = math.sqrt(tx * tx + ty * ty + tz * tz) if rests else size
    slides = size >= limit * (1.0 - 1e-12)
    factor = limit / max(size, 1e-300) if slides else 1.0
    tx, ty, tz = factor * tx, factor * ty, factor * tz
    again = slides or closes or span <= 0.0
    px, py, pz = (0.0, 0.0, 0.0) if again else (px, py, pz)
    x, y, z = tx + dashpot * touch.slide[0], ty + dashpot * touch.slide[1], tz + dashpot * touch.slide[2]
    cut = min(1.0, limit / max(math.sqrt(x * x + y * y + z * z), 1e-300))
    after = (px, py, pz, 0.0 if again else span, spare, used, limit, k)
    before = (kept.turning_x, kept.turning_y, kept.turning_z, kept.span, kept.spare, kept.used, kept.load, kept.grip)
    return (-cut * x, -cut * y, -cut * z), (tx / k, ty / k, tz / k), before if rests else after


# Rolling.


@fused
def rolls_on_spring(turned, turning, pressure, n, overlap, radius, kept, mix, dt):
    """An elastic-plastic spring, see `clast.dem.laws.roll`; none where the contact pulls."""
    couple, turned = roll(turned, turning, max(pressure, 0.0), n, overlap, radius, mix, dt)
    return couple, turned, kept


@functools.cache
def rolling_spring(grip):
    """`rolls_on_spring` with a spring that is measured by this stiffness, see `laws.Law.grip`."""
    if grip is hertz_grip:
        return rolls_on_spring
    made = fused(bind(rolls_on_spring, roll=fused(bind(roll, grip=grip))))
    return made_by(made, rolling_spring, grip)


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
    return (rolling_spring(law.grip) if law.resist is None else law.resist) if rolling else rolls_freely

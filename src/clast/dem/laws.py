"""Contact laws: what one contact answers to overlap and motion. A law is a function of one contact.

A law takes a `Touch` and a `Mix` and returns the normal force [N], the shear force on b [N] and the slip [m] to
remember, and, if it keeps more (`Law.keeps`), a tuple of these numbers. It never pulls: where damping would, the force is cut off, and the damping constant is chosen so that the
coefficient of restitution still comes out as asked for. The laws "blaze" and "halo" take their constants as they are given.
"""

import functools
import math
from typing import NamedTuple

import numpy as np

from ..kernels.backend import bind, fused, made_by
from ..kernels.tuples import record
from . import whole_steps


class Touch(NamedTuple):
    """One contact, as a law sees it. The normal points from a to b."""

    overlap: float  # [m], positive
    rate: float  # [m/s], growth of the overlap
    normal: tuple  # (3,) unit
    slide: tuple  # (3,) [m/s], tangential velocity of b against a at the contact point
    slip: tuple  # (3,) [m], tangential displacement so far
    mass: float  # [kg], effective: 1 / (1/m_a + 1/m_b + (r_a x n).J_a^-1 (r_a x n) + the same of b), what the bodies weigh for a push along n
    radius: float  # [m], reduced
    kept: tuple = ()  # the numbers that the law keeps beside the slip, by the names of `Law.keeps`; zero when the contact begins


class Mix(NamedTuple):
    """The combined material of a contact: what laws need that say nothing else. The laws "blaze" and "halo" keep their own numbers in some of the columns."""

    young: float  # [Pa], effective modulus E*; blaze: K_r [N/m^1.5]
    shear: float  # [Pa], effective shear modulus G*
    stiffness: float  # [N/m] for the linear law; zero: E* times the reduced radius; blaze: K_T [N s/m]; halo: k_repulsive [N/m]
    damping: float  # dimensionless, from the coefficient of restitution; blaze: K_D [N s/m^1.5]; halo: k_damp [N s/m]
    friction: float
    rolling: float  # rolling friction, a fraction of the reduced radius
    ratio: float  # sqrt(G* / E*); blaze: the least normal force [N], 0 or far below


@fused
def turn(slip, n, part, whole):
    """Turn a remembered tangential vector into the present tangent plane, its length times sqrt(part / whole)."""
    x, y, z = slip
    before = x * x + y * y + z * z
    along = x * n[0] + y * n[1] + z * n[2]
    x, y, z = x - along * n[0], y - along * n[1], z - along * n[2]
    after = x * x + y * y + z * z
    factor = math.sqrt(part * before / max(whole * after, 1e-300))
    return x * factor, y * factor, z * factor


@fused
def swing(slip, n, before, half):
    """A remembered tangential vector turned with its contact: by the least rotation that takes `before` (3,), along the normal of the step before, to n, and about n.

    half: the spin of the pair about n times half of the step. Where the pair turns as a whole, about any axis, this is its rotation: the swing of the normal, 2 s, and a twist t about it with
    tan(t / 2) = w . n / |w| tan(|w| dt / 2), here up to the third power of the angles.
    """
    x, y, z = slip
    length = math.sqrt(before[0] * before[0] + before[1] * before[1] + before[2] * before[2])
    reach = before[0] * n[0] + before[1] * n[1] + before[2] * n[2]
    per = 1.0 / max(length + reach, 0.01 * length + 1e-300)
    along = (x * n[0] + y * n[1] + z * n[2]) * per
    x -= along * (before[0] + length * n[0])
    y -= along * (before[1] + length * n[1])
    z -= along * (before[2] + length * n[2])
    tangent = half * (1.0 + (half * half + (length - reach) * per) * (1.0 / 3.0))
    sine = 2.0 * tangent / (1.0 + tangent * tangent)
    cosine = 1.0 - sine * tangent
    return (
        cosine * x + sine * (n[1] * z - n[2] * y),
        cosine * y + sine * (n[2] * x - n[0] * z),
        cosine * z + sine * (n[0] * y - n[1] * x),
    )


@fused
def coulomb(slip, slide, stiffness, dashpot, limit):
    """Spring and dashpot in the tangent plane under a friction limit; a sliding spring is shortened with its force."""
    x = stiffness * slip[0] + dashpot * slide[0]
    y = stiffness * slip[1] + dashpot * slide[1]
    z = stiffness * slip[2] + dashpot * slide[2]
    factor = min(1.0, limit / max(math.sqrt(x * x + y * y + z * z), 1e-300))
    return (-factor * x, -factor * y, -factor * z), (factor * slip[0], factor * slip[1], factor * slip[2])


@fused
def strongest(mass, dt):
    """The strongest dashpot [N s/m] for a mass [kg] and a step [s]: it stops what moves within the step.

    Velocities are half a step old, so v becomes v (1 - c dt / m): a stronger one reverses the motion, and from c dt / m = 2 on
    every impact would come out faster than it came in. At dt="auto" this is met by restitutions near 0 alone.
    """
    return mass * (1.0 / max(dt, 1e-300))


@fused
def hertz(touch, mix, dt):
    """Hertz normal force with Mindlin shear (Johnson 1985, eq. 4.23 and 7.42) and the damping of Tsuji (1992), as means over the step (`clast.dem.whole_steps`)."""
    p, q = 1.5, 0.25
    a = math.sqrt(touch.radius * touch.overlap)  # radius of the contact area
    kick = 4.0 / 3.0 * mix.young * a * touch.overlap * dt / touch.mass
    whole = whole_steps.in_step(touch.overlap, touch.rate, kick, dt, p, q)
    k = 4.0 / 3.0 * mix.young * math.sqrt(touch.radius * whole.overlap)
    c, most = mix.damping * math.sqrt(touch.mass * k), strongest(touch.mass, dt)
    normal = whole_steps.push_only(whole, k * whole.overlap, k, c, touch.rate, touch.mass, dt, p, q)
    # The shear force stays when the contact area grows and falls with it when it shrinks (Thornton et al. 2013), so
    # the slip is shortened under growing load: a stiffer spring of the same length would be energy from nothing.
    before = max(0.0, min(touch.overlap, touch.overlap - touch.rate * dt))
    x, y, z = turn(touch.slip, touch.normal, before, touch.overlap)
    slip = (x + touch.slide[0] * dt, y + touch.slide[1] * dt, z + touch.slide[2] * dt)
    # The shear dashpot has the same damping as the normal one: c_t / sqrt(k_t) = c / sqrt(dF/d overlap).
    c = min(whole.share * whole.dashpot * (2.0 * mix.ratio * c), most)
    force, slip = coulomb(slip, touch.slide, 8.0 * mix.shear * a, c, mix.friction * normal)
    return normal, force, slip


@fused
def linear(touch, mix, dt):
    """Linear spring and dashpot, shear stiffness in Mindlin's ratio (Cundall and Strack 1979), as means over the step (`clast.dem.whole_steps`)."""
    p, q = 1.0, 0.0
    k = mix.stiffness if mix.stiffness > 0.0 else mix.young * touch.radius
    whole = whole_steps.in_step(touch.overlap, touch.rate, k * touch.overlap * dt / touch.mass, dt, p, q)
    c, most = 2.0 * mix.damping * math.sqrt(touch.mass * k), strongest(touch.mass, dt)
    normal = whole_steps.push_only(whole, k * whole.overlap, k, c, touch.rate, touch.mass, dt, p, q)
    # The slip falls with the spring's normal force, so that a contact that opens holds no shear.
    before = max(touch.overlap, touch.overlap - touch.rate * dt)
    x, y, z = turn(touch.slip, touch.normal, touch.overlap * touch.overlap, before * before)
    slip = (x + touch.slide[0] * dt, y + touch.slide[1] * dt, z + touch.slide[2] * dt)
    shear, c = 4.0 * mix.ratio * mix.ratio * k, min(whole.share * whole.dashpot * (2.0 * mix.ratio * c), most)
    force, slip = coulomb(slip, touch.slide, shear, c, mix.friction * normal)
    return normal, force, slip


@fused
def hertz_at_rest(overlap, radius, mix):
    """Normal force [N] of Hertz contacts at rest, and their stiffness in shear [N/m]."""
    a = math.sqrt(radius * overlap)
    return 4.0 / 3.0 * mix.young * a * overlap, 8.0 * mix.shear * a


@fused
def linear_at_rest(overlap, radius, mix):
    """The same of linear contacts."""
    k = mix.stiffness if mix.stiffness > 0.0 else mix.young * radius
    return k * overlap, 4.0 * mix.ratio * mix.ratio * k


@fused
def blaze(touch, mix, dt):
    """The law of Govender et al. (2015), in a form that keeps the energy of a collision at any step.

    Normal force K_r d^1.5 + K_D d^0.5 d', shear force min(mu |F_N|, K_T |v_T|) against the sliding velocity, no memory.
    The start of a contact is a kink in d^1.5, at which a step of Verlet makes an error of up to 1 % of the speed however
    high its order. So the force is a mean over the step before and the step after (a discrete gradient): between
    neighbouring overlaps a and b the spring holds 2/5 K_r (a b)^(5/4), and the force on the way from `last` over the
    present overlap to `next` is the difference of the two energies over the way. `next` follows from the
    motion of these two bodies alone; the dashpots take the velocity in the middle. Zero without overlap, d^1.5 for dt = 0.
    """
    overlap, rate = touch.overlap, touch.rate
    per_mass = dt / touch.mass
    root = math.sqrt(overlap)
    front = 0.8 * mix.young * overlap * math.sqrt(root)
    dashpot = mix.damping * root
    drag = 0.5 * dashpot * per_mass
    last = overlap - rate * dt
    # Without the spring the overlap would be `free`; the spring takes `push` times its force off.
    free = overlap + rate * dt * (1.0 - drag) / (1.0 + drag)
    push = dt * per_mass / (1.0 + drag)
    slope = 1.0 / (1.0 + 0.125 * push * mix.young * root)
    after = free - push * mix.young * overlap * root
    # Newton's method with the slope of a slow contact: six rounds are exact to rounding up to ten steps a contact.
    for _ in range(6):
        after -= slope * (after - free + push * front * chord(after, last))
    spring = front * chord(after, last)
    middle = (rate - 0.5 * per_mass * spring) / (1.0 + drag)
    normal = max(mix.ratio, spring + dashpot * middle)
    return normal, viscous(touch.slide, mix, normal, per_mass), (0.0, 0.0, 0.0)


@fused
def blaze_plain(touch, mix, dt):
    """The law of Govender et al. (2015) as it is written: K_r d^1.5 + K_D d^0.5 d' and min(mu |F_N|, K_T |v_T|)."""
    root = math.sqrt(touch.overlap)
    normal = max(mix.ratio, mix.young * touch.overlap * root + mix.damping * root * touch.rate)
    return normal, viscous(touch.slide, mix, normal, 0.0), (0.0, 0.0, 0.0)


@fused
def halo(touch, mix, dt):
    """Spring and dashpot on the halo of triangulated particles (Krestenitis 2017, eq. 5): no friction, no memory.

    Force k_repulsive (epsilon - |n|) + k_damp times the closing speed, never below zero; |n| is the distance of the contact point
    to either surface, half of the gap between them, so that epsilon - |n| is half of the overlap of the two halos. The
    speed is that of the bodies at the contact point.
    """
    normal = max(0.0, 0.5 * mix.stiffness * touch.overlap + mix.damping * touch.rate)
    return normal, (0.0, 0.0, 0.0), (0.0, 0.0, 0.0)


@fused
def chord(a, b):
    """Slope of the chord of x^(5/4), zero for x < 0, from a to b."""
    above, below = max(a, 0.0), max(b, 0.0)
    p, q = math.sqrt(math.sqrt(above)), math.sqrt(math.sqrt(below))
    # (p^5 - q^5) / (p^4 - q^4) without the difference; where one is outside, there is a difference.
    inside = (p * p * p * p + p * q * (p * p + p * q + q * q) + q * q * q * q) / max((p + q) * (p * p + q * q), 1e-300)
    away = a - b
    across = (above * p - below * q) / (away if away != 0.0 else 1.0)
    return inside if min(a, b) > 0.0 else across


@fused
def viscous(slide, mix, normal, per_mass):
    """Shear force on b: K_T times the sliding velocity in the middle of the step, at most mu times the normal force."""
    drag = mix.stiffness / (1.0 + 0.5 * mix.stiffness * per_mass)
    speed = math.sqrt(slide[0] * slide[0] + slide[1] * slide[1] + slide[2] * slide[2])
    drag = min(drag, mix.friction * abs(normal) / max(speed, 1e-300))
    return -drag * slide[0], -drag * slide[1], -drag * slide[2]


@fused
def hertz_grip(overlap, radius, mix):
    """Stiffness [N/m] by which a spring against rolling is measured: of a Hertz contact in shear, 8 G* sqrt(R d)."""
    return 8.0 * mix.shear * math.sqrt(radius * max(overlap, 0.0))


@fused
def linear_grip(overlap, radius, mix):
    """The same of the linear law: 4 G*/E* k; none at a gap."""
    k = mix.stiffness if mix.stiffness > 0.0 else mix.young * radius
    return 4.0 * mix.ratio * mix.ratio * k if overlap > 0.0 else 0.0


@fused
def blaze_grip(overlap, radius, mix):
    """The same of the law "blaze", which has no spring in shear: K_r d^0.5, its normal force over the overlap."""
    return mix.young * math.sqrt(max(overlap, 0.0))


grip = hertz_grip  # bound to `roll`


@fused
def roll(turned, turning, normal_force, n, overlap, radius, mix, dt):
    """Rolling resistance as an elastic-plastic spring k R^2 (Ai et al. 2011, model C without viscosity), k the stiffness of the contact in shear.

    turned (3,) [rad] is the remembered rolling angle, turning (3,) [rad/s] the spin of b against a; an overlap below zero is a gap. Returns the
    couple on b [N m] and the angle to remember.
    """
    # A spring of another stiffness than the law's would be one that dt="auto" knows nothing of.
    stiffness = grip(overlap, radius, mix)
    along = turning[0] * n[0] + turning[1] * n[1] + turning[2] * n[2]
    x, y, z = turn(turned, n, 1.0, 1.0)
    x += (turning[0] - along * n[0]) * dt
    y += (turning[1] - along * n[1]) * dt
    z += (turning[2] - along * n[2]) * dt
    k = stiffness * radius * radius
    return coulomb((x, y, z), (0.0, 0.0, 0.0), k, 0.0, mix.rolling * radius * normal_force)


three = hertz  # bound to `keep_nothing`: a law with three results


def keep_nothing(touch, mix, dt):
    """The answer of a law that keeps the slip alone, as kernels want it."""
    normal, shear, slip = three(touch, mix, dt)
    return normal, shear, slip, ()


@functools.cache
def without(function):
    """A law that keeps the slip alone and returns three things, in the form of those that keep more."""
    return made_by(fused(bind(keep_nothing, three=function)), without, function)


def hertz_damping(restitution):
    """Tsuji's damping constant for a coefficient of restitution, with tension cut off: sqrt(5) times the fraction of critical damping of a linear contact.

    With y = sqrt(2 U / m), U the energy of the spring, and a time that runs with F / sqrt(2 U m) the motion of a Hertz contact with Tsuji's dashpot is that of a linear one, and
    its force vanishes at the same y.
    """
    return math.sqrt(5.0) * linear_damping(restitution)


def linear_damping(restitution):
    """Fraction of critical damping of a linear contact for a coefficient of restitution, with tension cut off.

    Schwager and Poeschel (2007): the contact ends when the force vanishes, not when the overlap does.
    """
    e = float(np.clip(restitution, 1e-3, 1.0))
    low, high = 0.0, 50.0
    for _ in range(200):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if linear_restitution(middle) > e else (low, middle)
    return 0.5 * (low + high)


def linear_restitution(z):
    """Coefficient of restitution of a linear contact with the fraction z of critical damping, tension cut off."""
    if z < 1.0:
        w = math.sqrt(1.0 - z * z)
        return math.exp(-z / w * (math.atan2(2.0 * z * w, 2.0 * z * z - 1.0)))
    if z == 1.0:
        return math.exp(-2.0)
    w = math.sqrt(z * z - 1.0)
    return math.exp(-z / w * math.log((z + w) / (z - w)))


def hertz_energy(overlap, slip, radius, mix, kept):
    """Elastic energy [J] of Hertz contacts: arrays in, array out; slip is its length [m], mix and kept have columns (c,) by name."""
    overlap = np.maximum(overlap, 0.0)
    a = np.sqrt(radius * overlap)
    return 8.0 / 15.0 * mix.young * a * overlap**2 + 4.0 * mix.shear * a * slip**2


def linear_energy(overlap, slip, radius, mix, kept):
    """Elastic energy [J] of linear contacts; arguments as for `hertz_energy`."""
    k = np.where(mix.stiffness > 0.0, mix.stiffness, mix.young * radius)
    return 0.5 * k * (np.maximum(overlap, 0.0) ** 2 + 4.0 * mix.ratio**2 * slip**2)


def blaze_energy(overlap, slip, radius, mix, kept):
    """Elastic energy [J] of contacts of the law "blaze"; arguments as for `hertz_energy`."""
    return 0.4 * mix.young * overlap**2.5


def halo_energy(overlap, slip, radius, mix, kept):
    """Elastic energy [J] of contacts of the law "halo"; arguments as for `hertz_energy`."""
    return 0.25 * mix.stiffness * overlap**2


class Law(NamedTuple):
    """A law with what is needed to set it up."""

    function: object  # (touch, mix, dt) -> normal force, shear force, slip, and a tuple of the numbers in `keeps` if there are any
    damping: object  # coefficient of restitution -> the number `damping`; None: the law has other numbers for it
    energy: object  # (overlap, slip, radius, mix, kept) -> elastic energy [J], arrays; None: not known
    hertzian: bool  # stiffness grows with the overlap; decides how the time step is chosen
    shares: bool  # points of one area of contact share its stiffness; else each point has a spring of its own
    keeps: tuple = ()  # names of the numbers that it keeps from step to step beside the slip
    needs: tuple = (
        Mix._fields
    )  # names of the numbers that it needs of the two materials, see `clast.dem.method.DERIVED`
    reach: float = 0.0  # [m], the largest gap at which it acts, whatever the materials
    reaches: tuple = ()  # functions (mix, radius [m]) -> gaps [m] at which it acts
    stiffness: object = None  # (mix, reduced radius [m]) -> the largest stiffness [N/m], for the time step
    resist: object = None  # what answers rolling and twisting, see `clast.dem.tangent`; None: a spring with a limit
    grip: object = hertz_grip  # (overlap, reduced radius, mix) -> stiffness [N/m] by which that is measured
    turns: bool = False  # that is more than rolling friction
    flags: tuple = ()  # of `keeps`, those that are yes or no: the points of an area say yes together, see `clast.dem.history.inherit_area`
    composed: bool = False  # the function has four results though it may keep nothing
    weighs: bool = True  # it asks for the mass of a contact
    account: float = 0.0  # the power of the overlap with which its energy grows, where accounts are kept (`clast.dem.conserving`); else 0
    told: tuple = ()  # of `keeps`, those that it never asks for again: new points need not take them up
    at_rest: object = None  # (overlap, radius, mix) -> force of the spring at rest [N] and stiffness in shear [N/m]; None: known from the law itself alone

    @property
    def mix(self):
        """The class of what it gets of the two materials."""
        return Mix if self.needs == Mix._fields else record("Mix", self.needs)

    @property
    def kept(self):
        """The class of `Touch.kept`."""
        return record("Kept", self.keeps) if self.keeps else None

    @property
    def answer(self):
        """The function with four results, as kernels want it."""
        return self.function if self.keeps or self.composed else without(self.function)


LAWS = {
    "hertz": Law(hertz, hertz_damping, hertz_energy, True, True, at_rest=hertz_at_rest),
    "linear": Law(
        linear,
        linear_damping,
        linear_energy,
        False,
        True,
        stiffness=lambda mix, radius: np.where(mix.stiffness > 0.0, mix.stiffness, mix.young * radius),
        grip=linear_grip,
        at_rest=linear_at_rest,
    ),
    "blaze": Law(blaze, None, blaze_energy, False, True, grip=blaze_grip),
    "halo": Law(halo, None, halo_energy, False, False, weighs=False),
}

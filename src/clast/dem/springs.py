"""What answers the overlap of a contact: springs, elastic, plastic or with a range, and the dashpots beside them.

A spring is a function (touch, mix, dt) -> `Spring`, a dashpot one (touch, mix, spring) -> dashpot constants [N s/m] of the normal and of the shear
direction. Any of them can be combined with any shear and cohesion, see `clast.dem.composed`. Overlaps below zero are gaps; d is the overlap.
"""

import math
from typing import NamedTuple

from ..kernels.backend import fused


class Spring(NamedTuple):
    """What a spring answers."""

    force: float  # [N], positive where it pushes
    stiffness: float  # [N/m], by which dashpots are measured: force over overlap of an elastic spring
    shear: float  # [N/m], of the contact in shear
    pull: float  # [N], by which the pressure on the contact area is more than the force, for friction
    kept: tuple  # what it keeps


@fused
def hertz(touch, mix, dt):
    """Hertz: F = 4/3 E* sqrt(R d) d, in shear 8 G* sqrt(R d) (Johnson 1985, eq. 4.23 and 7.42)."""
    overlap = max(touch.overlap, 0.0)
    a = math.sqrt(touch.radius * overlap)
    k = 4.0 / 3.0 * mix.young * a
    return Spring(k * overlap, k, 8.0 * mix.shear * a, 0.0, ())


@fused
def linear_stiffness(touch, mix):
    """[N/m], the one that is given, or E* times the reduced radius."""
    return mix.stiffness if mix.stiffness > 0.0 else mix.young * touch.radius


@fused
def linear(touch, mix, dt):
    """Linear: F = k d, in shear 4 G*/E* k, which is Mindlin's ratio (Cundall and Strack 1979)."""
    overlap = max(touch.overlap, 0.0)
    k = linear_stiffness(touch, mix)
    touching = 1.0 if touch.overlap > 0.0 else 0.0
    return Spring(k * overlap, touching * k, touching * 4.0 * mix.ratio * mix.ratio * k, 0.0, ())


@fused
def granular(touch, mix, dt):
    """Linear by numbers: F = k_n d, in shear k_t (Silbert et al. 2001 with f = 1; Cundall and Strack 1979)."""
    overlap = max(touch.overlap, 0.0)
    touching = 1.0 if touch.overlap > 0.0 else 0.0
    return Spring(mix.k_n * overlap, touching * mix.k_n, touching * mix.k_t, 0.0, ())


@fused
def granular_hertz(touch, mix, dt):
    """Springs by numbers times f = sqrt(d / D): F = f k_n d, in shear f k_t (Silbert et al. 2001, eq. 1 and 2).

    D is the diameter of two equal spheres, 4 times the reduced radius.
    """
    overlap = max(touch.overlap, 0.0)
    f = math.sqrt(overlap / (4.0 * touch.radius))
    return Spring(f * mix.k_n * overlap, f * mix.k_n, f * mix.k_t, 0.0, ())


@fused
def walton_braun(touch, mix, dt):
    """Plastic loading, stiffer unloading: F = k1 d up to the peak p, below it k2 (d - d0), d0 = (1 - k1/k2) p (Walton and Braun 1986).

    k1 is the stiffness of the linear law, k2 = k1 / e^2 with the coefficient of restitution e, which every impact then has. Keeps p.
    """
    overlap = max(touch.overlap, 0.0)
    k1 = linear_stiffness(touch, mix)
    k2 = k1 / max(mix.restitution * mix.restitution, 1e-4)
    peak = max(touch.kept.peak, overlap)
    force = max(0.0, k2 * (overlap - (1.0 - k1 / k2) * peak))
    return Spring(force, k1, 4.0 * mix.ratio * mix.ratio * k1, 0.0, (peak,))


@fused
def luding(touch, mix, dt):
    """Plasticity and adhesion, piecewise linear (Luding 2008, section 3.1).

    Loading k1 d; unloading and reloading k2 (d - d0) with d0 = (1 - k1/k2) p below the peak p; never less than -k_c d. k2 grows from k1 to k_p as the
    peak goes to p* = k_p / (k_p - k1) phi 2 R, beyond which the contact is elastic. Along the branch -k_c d the peak is unlearned so that a
    reloading starts from where it is. Friction acts under F + k_c d. Keeps p.
    k1 = stiffness, k_p = plastic_stiffness, k_c = cohesive_stiffness [N/m], phi = plasticity_depth.
    """
    d = max(touch.overlap, 0.0)
    k1, kp, kc = mix.stiffness, mix.plastic_stiffness, mix.cohesive_stiffness
    most = kp / (kp - k1) * mix.plasticity_depth * 2.0 * touch.radius
    slope = (kp - k1) / most  # of k2 over the peak
    peak = min(max(touch.kept.peak, d), most)
    k2 = k1 + slope * peak
    force = k2 * d - (k2 - k1) * peak
    # The peak whose unloading branch meets -k_c d at this overlap; k2 changes with it.
    unlearned = 0.5 * d + math.sqrt(0.25 * d * d + (k1 + kc) * d / slope)
    adheres = force < -kc * d
    peak = unlearned if adheres else peak
    force = -kc * d if adheres else force
    return Spring(force, k1, 4.0 * mix.ratio * mix.ratio * k1, kc * d, (peak,))


@fused
def eepa_pull(peak, radius, young, plasticity, adhesion):
    """Of a contact that was loaded to this peak [m]: d_p^(3/2) [m^1.5] where its force would vanish, d_m^(3/2) where it pulls most, and that pull [N]."""
    k2 = 4.0 / 3.0 * young * math.sqrt(radius) / (1.0 - plasticity)
    plastic = plasticity * peak * math.sqrt(peak)
    flat = math.exp(math.log(max(plastic, 1e-300)) * 2.0 / 3.0)
    a = math.sqrt(max(2.0 * radius * flat - flat * flat, 0.0))
    pull = min(1.5 * math.pi * adhesion * a, 0.5 * k2 * plastic)
    return plastic, plastic - pull / k2, pull


@fused
def eepa(touch, mix, dt):
    """Edinburgh's elasto-plastic adhesive law (Morrissey 2013; Thakur et al. 2014), of the power n = 3/2.

    Loading -f0 + k1 d^n, k1 = 4/3 E* sqrt(R); unloading and reloading -f0 + k2 (d^n - d_p^n) with k2 = k1 / (1 - lambda) and d_p^n = lambda p^n below
    the peak p; never less than -f0 - k_adh d^chi. The strongest pull beside f0 is 3/2 pi w a, a^2 = 2 R d_p - d_p^2 being the flat
    that stays, at the most half of k2 d_p^n, a limit of this package's own; k_adh follows from it when the peak is made. Along the last branch the peak is unlearned, so that
    reloading starts with k2 from where it is. Friction acts under F + f0 + k_adh d^chi. In shear 8 G* sqrt(R d).
    lambda = plasticity_ratio, f0 = pull_off [N], w = adhesion [J/m^2], chi = adhesion_exponent. Keeps p and k_adh [N/m^chi].
    """
    d = max(touch.overlap, 0.0)
    k1 = 4.0 / 3.0 * mix.young * math.sqrt(touch.radius)
    k2 = k1 / (1.0 - mix.plasticity_ratio)
    peak = max(touch.kept.peak, d)
    plastic, least, pull = eepa_pull(peak, touch.radius, mix.young, mix.plasticity_ratio, mix.adhesion)
    chi = mix.adhesion_exponent
    fresh = touch.kept.peak <= d
    weakest = max(math.exp(math.log(max(least, 1e-300)) * 2.0 / 3.0 * chi), 1e-300)
    adhering = pull / weakest if fresh else touch.kept.adhering
    loaded = d * math.sqrt(d)
    force = k2 * (loaded - plastic)
    hold = adhering * math.exp(math.log(max(d, 1e-300)) * chi)
    adheres = force < -hold
    # The peak whose unloading branch passes here.
    unlearned = math.exp(math.log(max((loaded + hold / k2) / max(mix.plasticity_ratio, 1e-300), 1e-300)) * 2.0 / 3.0)
    peak = min(peak, unlearned) if adheres else peak
    force = -hold if adheres else force
    touching = 1.0 if touch.overlap > 0.0 else 0.0
    a = math.sqrt(touch.radius * d)
    shear = 8.0 * mix.shear * a
    return Spring(
        force - touching * mix.pull_off,
        4.0 / 3.0 * mix.young * a,
        shear,
        hold + touching * mix.pull_off,
        (peak, adhering),
    )


@fused
def soft(touch, mix, dt):
    """A soft repulsive potential with a range: U = w (1 - h / s)^2 for a gap h below s, F = 2 w / s (1 - h / s).

    w = well_depth [J], s = well_width [m]. Overlaps are gaps below zero. No friction beyond what the force allows.
    """
    inside = max(0.0, 1.0 + touch.overlap / mix.well_width)
    k = 2.0 * mix.well_depth / (mix.well_width * mix.well_width)
    return Spring(k * mix.well_width * inside, k if inside > 0.0 else 0.0, 0.0, 0.0, ())


LJ_CUT = 2.5  # where the Lennard-Jones potential is cut off, in widths
LJ_LEAST = 0.3  # and below which its force grows no more
LJ_STIFF = 72.0 / 2.0 ** (1.0 / 3.0)  # U'' s^2 / w where the force vanishes, at r = 2^(1/6) s


@fused
def lennard_jones(touch, mix, dt):
    """A well of depth w around touch: U = 4 w ((s/r)^12 - (s/r)^6), r = s + h for the gap h, cut off at r = 2.5 s (Lennard-Jones 1931).

    w = well_depth [J], s = well_width [m]; attracts from h = 0.12 s on, repels below. The force at the cut, 0.016 of the strongest pull, is
    left off.
    """
    r = max(mix.well_width - touch.overlap, LJ_LEAST * mix.well_width)
    x = mix.well_width / r
    x2 = x * x
    x6 = x2 * x2 * x2
    inside = 1.0 if r < LJ_CUT * mix.well_width else 0.0
    force = inside * 24.0 * mix.well_depth / r * (2.0 * x6 * x6 - x6)
    return Spring(force, 0.0, 0.0, 0.0, ())


# By what springs against rolling are measured, see `clast.dem.laws.roll`, where that is neither Hertz's nor the linear law's.


@fused
def granular_grip(overlap, radius, mix):
    """k_t [N/m]; none at a gap."""
    return mix.k_t if overlap > 0.0 else 0.0


@fused
def granular_hertz_grip(overlap, radius, mix):
    """f k_t [N/m], f = sqrt(d / D)."""
    return mix.k_t * math.sqrt(max(overlap, 0.0) / (4.0 * radius))


@fused
def luding_grip(overlap, radius, mix):
    """4 G*/E* k1 [N/m]; none at a gap."""
    return 4.0 * mix.ratio * mix.ratio * mix.stiffness if overlap > 0.0 else 0.0


@fused
def soft_grip(overlap, radius, mix):
    """2 w / s^2 [N/m], the stiffness of the potential: it has none in shear."""
    return 2.0 * mix.well_depth / (mix.well_width * mix.well_width)


@fused
def lennard_jones_grip(overlap, radius, mix):
    """57 w / s^2 [N/m], the stiffness at the bottom of the well: it has none in shear."""
    return LJ_STIFF * mix.well_depth / (mix.well_width * mix.well_width)


# Dashpots.


@fused
def by_restitution(touch, mix, spring):
    """c = alpha sqrt(m k) (Tsuji et al. 1992); alpha follows from the coefficient of restitution, for a linear spring twice the fraction of
    critical damping.

    With damping="tsuji" this is the formula as it was published: the contact pulls until the bodies part. At dt="auto" the restitution is then off by up to
    0.013 at some of the places in the step where contacts begin, because no step knows whether the pull lasts into the next; damping="thornton", which
    cuts tension off, keeps it to 0.001.
    """
    c = mix.damping * math.sqrt(touch.mass * spring.stiffness)
    return c, 2.0 * mix.ratio * c


@fused
def kuwabara_kono(touch, mix, spring):
    """Viscous spheres: F = 4/3 E* sqrt(R) (d^(3/2) + 3/2 A d^(1/2) d') (Kuwabara and Kono 1987; Brilliantov et al. 1996).

    A = dissipation [s]. Restitution falls with the speed: 1 - e ~ v^(1/5).
    """
    c = 1.5 * mix.dissipation * spring.stiffness
    return c, 2.0 * mix.ratio * c


@fused
def govender(touch, mix, spring):
    """F = K_D d^(1/2) d' (Govender et al. 2015, eq. 7); K_D = blaze_damping [N s/m^1.5]."""
    c = mix.blaze_damping * math.sqrt(max(touch.overlap, 0.0))
    return c, 2.0 * mix.ratio * c


@fused
def granular_damping(touch, mix, spring):
    """f gamma_n m and f gamma_t m, m the effective mass, f as in the spring (Silbert et al. 2001); gamma_n, gamma_t [1/s]."""
    f = spring.stiffness / mix.k_n
    return f * mix.gamma_n * touch.mass, f * mix.gamma_t * touch.mass


@fused
def undamped(touch, mix, spring):
    """No dashpots."""
    return 0.0, 0.0

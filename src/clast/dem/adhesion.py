"""What holds a contact together: adhesion of elastic surfaces, cohesion by area, liquid bridges.

JKR is a spring (see `clast.dem.springs`), because the area of contact follows from both. The others are attractions beside a spring: functions
(touch, mix, dt) -> pull [N], what they keep.
"""

import math

from ..kernels.backend import fused
from .springs import Spring

LEAST = 1e-30  # [J/m^2], of JKR: none would be an area without a scale
ROUNDS = 3  # of Newton's method behind the closed form


@fused
def jkr_radius(overlap, radius, young, adhesion):
    """Radius of the area of contact [m] at this overlap [m], on the stable branch.

    The closed form of the quartic a^4 - 2 R d a^2 - 2 pi w R^2 / E* a + R^2 d^2 = 0 (Parteli et al. 2014), in units of
    (2 pi w R^2 / E*)^(1/3) for the area, and Newton's method on d(a), which takes away the rounding of the differences.
    """
    unit = math.exp(math.log(2.0 * math.pi * adhesion * radius * radius / young) / 3.0)
    # (z^2 - q)^2 = z with q = R d / unit^2; u, the square of the sum of the two real roots, has u^3 - 4 q u^2 - 1 = 0.
    q = radius * overlap / (unit * unit)
    cubed = 64.0 * q * q * q / 27.0
    cube = math.exp(math.log(cubed + 0.5 + math.sqrt(max(cubed + 0.25, 0.0))) / 3.0)
    u = cube + 16.0 * q * q / (9.0 * cube) + 4.0 * q / 3.0
    s = math.sqrt(u)
    z = 0.5 * (s + math.sqrt(max(4.0 * q - u + 2.0 / s, 0.0)))
    for _ in range(ROUNDS):
        root = math.sqrt(z)
        slope = 2.0 * z - 0.5 / root
        # Where the slope vanishes the contact is about to open, and the closed form is as good as it gets.
        z -= (z * z - root - q) / slope if slope > 1e-3 else 0.0
    return z * unit


@fused
def jkr_gap(radius, young, adhesion):
    """Gap [m] at which a contact that is pulled apart opens: 3 a^2 / R, a^3 = pi w R^2 / (8 E*) (Johnson et al. 1971)."""
    a3 = math.pi * adhesion * radius * radius / (8.0 * young)
    return 3.0 * math.exp(math.log(max(a3, 1e-300)) * 2.0 / 3.0) / radius


@fused
def jkr(touch, mix, dt):
    """Johnson, Kendall and Roberts (1971): F = 4 E* a^3 / (3 R) - sqrt(8 pi w E* a^3), d = a^2 / R - sqrt(2 pi w a / E*).

    w = adhesion [J/m^2], the work of adhesion. A contact begins when surfaces touch and holds until the gap `jkr_gap`; the strongest pull is
    1.5 pi w R. In shear 8 G* a; friction acts under F + 2 * 1.5 pi w R (Thornton 1991). Keeps whether it holds.
    """
    w = max(mix.adhesion, LEAST)
    opens = -jkr_gap(touch.radius, mix.young, w)
    holds = touch.overlap > 0.0 or (touch.kept.joined > 0.0 and touch.overlap > opens)
    a = jkr_radius(max(touch.overlap, opens), touch.radius, mix.young, w)
    k = 4.0 / 3.0 * mix.young * a
    force = k * a * a / touch.radius - math.sqrt(8.0 * math.pi * w * mix.young * a * a * a)
    on = 1.0 if holds else 0.0
    return Spring(on * force, on * k, on * 8.0 * mix.shear * a, on * 3.0 * math.pi * w * touch.radius, (on,))


@fused
def dmt(touch, mix, dt):
    """Derjaguin, Muller and Toporov (1975): 2 pi w R while surfaces touch; w = adhesion [J/m^2]. Keeps nothing."""
    return (2.0 * math.pi * mix.adhesion * touch.radius if touch.overlap > 0.0 else 0.0), ()


@fused
def by_area(touch, mix, dt):
    """Cohesion by area: C pi R d, the area of a Hertz contact times C = cohesion_density [Pa]. Keeps nothing."""
    return mix.cohesion_density * math.pi * touch.radius * max(touch.overlap, 0.0), ()


@fused
def rupture(volume, angle, radius):
    """Gap [m] at which a bridge of this volume [m^3] breaks: (1 + theta / 2) (V^(1/3) + 0.1 V^(2/3) / R) (Willett et al. 2000, eq. 15)."""
    third = math.exp(math.log(max(volume, 1e-300)) / 3.0)
    return (1.0 + 0.5 * angle) * (third + 0.1 * third * third / radius)


@fused
def capillary(touch, mix, dt):
    """A liquid bridge: 2 pi R sigma cos(theta) / (1 + 1.05 S + 2.5 S^2), S = h / sqrt(V / R), h the gap (Willett et al. 2000, eq. 12).

    R is the radius of two equal spheres, or twice the reduced radius (Derjaguin's approximation). sigma = surface_tension [N/m], theta =
    contact_angle [rad], V = bridge_volume [m^3]. The bridge forms when surfaces touch and breaks at `rupture`. Keeps whether it is there.
    """
    radius = 2.0 * touch.radius
    gap = max(-touch.overlap, 0.0)
    there = touch.overlap > 0.0 or (
        touch.kept.bridge > 0.0 and gap < rupture(mix.bridge_volume, mix.contact_angle, radius)
    )
    s = gap / math.sqrt(max(mix.bridge_volume, 1e-300) / radius)
    pull = 2.0 * math.pi * radius * mix.surface_tension * math.cos(mix.contact_angle) / (1.0 + 1.05 * s + 2.5 * s * s)
    return (pull if there else 0.0), (1.0 if there else 0.0,)


@fused
def nothing(touch, mix, dt):
    """No attraction."""
    return 0.0, ()

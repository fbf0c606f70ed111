"""Bonds: solid bridges between bodies that carry tension, shear, bending and twist, and break.

A bond is a beam between the centres of two bodies, felt at their contact point (Potyondy and Cundall 2004): per unit of stretch, slip, bend and
twist it answers with E A / L, G A / L, E I / L and G J / L, I = pi r^4 / 4, J = 2 I, and with a viscosity beside each. For two spheres of
equal size the length L is the distance of their centres and the radius r is `bond_size` times theirs; in general L is four reduced radii and r
is bond_size times two. All that are nearer than `bond_gap` when a simulation starts are bonded, but for pairs of materials without a bond_strength. A bond breaks, for ever, when the largest
tension -F/A + |M| r / I exceeds bond_strength or the largest shear |T|/A + |M_t| r / J exceeds bond_shear_strength; then the contact law acts.
"""

import math

import numpy as np

from ..kernels.backend import fused
from .laws import hertz, turn

NEEDS = (
    *("bond_young", "bond_shear", "bond_size", "bond_gap", "bond_viscosity"),  # [Pa], [Pa], 1, [m], [s]
    *("bond_strength", "bond_shear_strength"),  # [Pa]
)
KEEPS = ("rest", "tension", "shearing", "bond", "twist")

free = hertz  # bound to `bonded`: the law of contacts without a bond
rolling = hertz  # bound to `bends`: their resistance to rolling


@fused
def area_of(radius, mix):
    """Radius [m], cross-section [m^2] and length [m] of a bond."""
    r = mix.bond_size * 2.0 * radius
    return r, math.pi * r * r, 4.0 * radius


def bonded(touch, mix, dt):
    """The force of a bond, or of the contact law where there is none."""
    normal, shear, slip, kept = free(touch, mix, dt)
    # A simulation computes the forces at its very beginning with a step of no length.
    able = mix.bond_strength > 0.0 and touch.overlap > -mix.bond_gap
    begins = dt == 0.0 and touch.kept.bond == 0.0 and able
    bond = 1.0 if begins else touch.kept.bond
    rest = touch.overlap if begins else touch.kept.rest
    _, area, length = area_of(touch.radius, mix)
    k, kt = mix.bond_young * area / length, mix.bond_shear * area / length
    x, y, z = turn(touch.slip, touch.normal, 1.0, 1.0)
    x, y, z = x + touch.slide[0] * dt, y + touch.slide[1] * dt, z + touch.slide[2] * dt
    push = k * (touch.overlap - rest + mix.bond_viscosity * touch.rate)
    tx = -kt * (x + mix.bond_viscosity * touch.slide[0])
    ty = -kt * (y + mix.bond_viscosity * touch.slide[1])
    tz = -kt * (z + mix.bond_viscosity * touch.slide[2])
    there = bond > 0.0
    normal = push if there else normal
    shear = (tx if there else shear[0], ty if there else shear[1], tz if there else shear[2])
    slip = (x if there else slip[0], y if there else slip[1], z if there else slip[2])
    shearing = math.sqrt(tx * tx + ty * ty + tz * tz) / area
    return normal, shear, slip, kept + (rest, -push / area, shearing, bond, touch.kept.twist)


def bends(turned, turning, pressure, n, overlap, radius, kept, mix, dt):
    """The couple of a bond, and whether it breaks; or the resistance to rolling where there is none."""
    couple, rolled, _ = rolling(turned, turning, pressure, n, overlap, radius, kept, mix, dt)
    tension, shearing, bond, twist = kept[-4], kept[-3], kept[-2], kept[-1]
    r, area, length = area_of(radius, mix)
    moment = 0.25 * area * r * r  # I
    kb, kt = mix.bond_young * moment / length, 2.0 * mix.bond_shear * moment / length
    along = turning[0] * n[0] + turning[1] * n[1] + turning[2] * n[2]
    wx, wy, wz = turning[0] - along * n[0], turning[1] - along * n[1], turning[2] - along * n[2]
    x, y, z = turn(turned, n, 1.0, 1.0)
    x, y, z = x + wx * dt, y + wy * dt, z + wz * dt
    twist = twist + along * dt
    v = mix.bond_viscosity
    mx, my, mz = -kb * (x + v * wx), -kb * (y + v * wy), -kb * (z + v * wz)
    mt = -kt * (twist + v * along)
    there = bond > 0.0
    bending = math.sqrt(mx * mx + my * my + mz * mz) * r / moment
    breaks = tension + bending > mix.bond_strength or shearing + 0.5 * abs(mt) * r / moment > mix.bond_shear_strength
    couple = (
        mx + mt * n[0] if there else couple[0],
        my + mt * n[1] if there else couple[1],
        mz + mt * n[2] if there else couple[2],
    )
    turned = (x if there else rolled[0], y if there else rolled[1], z if there else rolled[2])
    return couple, turned, kept[:-2] + (0.0 if breaks else bond, twist if there else 0.0)


def turned_energy(angle, radius, mix, kept):
    """Energy [J] that bonds which hold have in bending and twist, arrays; angle (c,) [rad]: by which they are bent."""
    r = mix.bond_size * 2.0 * radius
    per_length = 0.25 * np.pi * r**4 / (4.0 * radius)  # I / L
    bent = 0.5 * mix.bond_young * angle**2 + mix.bond_shear * kept.twist**2
    return np.where(kept.bond > 0.0, per_length * bent, 0.0)

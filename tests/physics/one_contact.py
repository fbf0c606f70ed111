"""One contact under a law, as plain Python: for tests of laws against closed forms."""

import math

import numpy as np

import clast
from clast.dem import laws, tangent

RADIUS, MASS = 0.01, 0.004
UP = (0.0, 0.0, 1.0)
NONE = (0.0, 0.0, 0.0)


class One:
    """One contact with a prescribed motion under a law."""

    def __init__(self, numbers, **options):
        self.law = clast.DEM(**options).recipe
        given = {"young": 1e7, "shear": 4e6, "ratio": math.sqrt(0.4), "friction": 0.5, "rolling": 0.0, "damping": 0.0}
        given |= {"stiffness": 0.0, "restitution": 0.5, "spinning_friction": 0.0} | numbers
        self.mix = self.law.mix(*(given[name] for name in self.law.needs))
        self.slip, self.kept, self.angle = NONE, (0.0,) * len(self.law.keeps), NONE

    def at(self, overlap, rate=0.0, slide=NONE, normal=UP, dt=0.0):
        """Normal force [N] and shear force [N]; dt: of the step that ends here."""
        kept = self.law.kept(*self.kept) if self.law.keeps else ()
        touch = laws.Touch(overlap, rate, normal, slide, self.slip, MASS, RADIUS, kept)
        force, shear, self.slip, self.kept = self.law.answer(touch, self.mix, dt)
        return force, shear

    def named(self, name):
        return self.kept[self.law.keeps.index(name)]

    def energy(self, *overlaps):
        """Elastic energies [J] at these overlaps without slip."""
        count = len(overlaps)
        rows = self.law.mix(*(np.full(count, value) for value in self.mix))
        kept = self.law.kept(*(np.full(count, value) for value in self.kept)) if self.law.keeps else ()
        return tuple(self.law.energy(np.array(overlaps), np.zeros(count), np.full(count, RADIUS), rows, kept))

    def turn(self, turning, pressure, overlap, dt, normal=UP):
        """Couple [N m]."""
        couple, self.angle, self.kept = tangent.resistance(self.law, True)(
            self.angle, turning, pressure, normal, overlap, RADIUS, self.kept, self.mix, dt
        )
        return couple


def impact(one, speed, dt):
    """Rebound speed [m/s] of a reduced mass, by velocity Verlet with the rate at the end of each step."""
    x, v, force = 0.0, speed, 0.0
    for _ in range(10_000_000):
        v -= 0.5 * dt * force / MASS
        x += dt * v
        if x <= 0.0:
            return -v
        spring, _ = one.at(x, v, dt=dt)
        # The dashpot sees the velocity at the end of the step: two rounds are enough.
        force = one.at(x, v - 0.5 * dt * spring / MASS, dt=dt)[0]
        v -= 0.5 * dt * force / MASS
    raise AssertionError

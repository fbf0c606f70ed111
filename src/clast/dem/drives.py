"""What driven bodies do in every step: the account of energy of a run that does not ask what contacts lose by what.

It costs nothing where nobody drives. What was put in and what bodies and contacts have are known then, and so is what was lost, as their difference: one number, which has the
errors of the time step in it. `clast.dem.ledger` tells losses apart, and so has a balance to close.
"""

from typing import Any

import numpy as np

from ..kernels import sums
from ..kernels.backend import func, kernel
from ..kernels.launch import same
from ..kernels.reached import stored
from ..kernels.rows import PER_MASS, REACH, centre_at, spin_at, velocity_at
from ..kernels.vec import add, cross, dot, load, scale, sub
from ..motion.book import Book
from ..tables import DRIVEN


@func
def given(row, rows, force, torque):
    """Power [W] of the body of a row, if it is driven, on which a force and a torque (3,) act."""
    if rows[row, PER_MASS] > 0.0:
        return 0.0
    return -dot(force, velocity_at(rows, row)) - dot(torque, spin_at(rows, row))


def drive_row(k, listed, own, balls, rows, body, pairs, spheres, wrench, powers):
    """Power [W] that driven bodies give to one of the listed pairs (k,) of the neighbour list; own: bodies before the first ghost, of whose pairs another process tells; balls: pairs of
    spheres; body (s,): column of Shapes."""
    p = np.uintp(listed[k])
    s, t = np.uintp(pairs.shape[p, 0]), np.uintp(pairs.shape[p, 1])
    a, b = np.uintp(body[s]), np.uintp(body[t])
    powers[k] = 0.0
    if a >= own:
        return
    if p >= balls:
        q = p - np.uintp(balls)
        force = load(wrench.force, q)
        one = (-wrench.moment[q, 0, 0], -wrench.moment[q, 0, 1], -wrench.moment[q, 0, 2])
        two = (wrench.moment[q, 1, 0], wrench.moment[q, 1, 1], wrench.moment[q, 1, 2])
    else:
        force, couple = load(spheres.action, p), (0.0, 0.0, 0.0)
        turning = (spheres.action[p, 3], spheres.action[p, 4], spheres.action[p, 5])
        if len(spheres.couple) > 0:
            couple = load(spheres.couple, p)
        one = sub(scale(-rows[s, REACH], turning), couple)
        two = add(scale(-rows[t, REACH], turning), couple)
        one = sub(one, cross(sub(centre_at(rows, s), centre_at(rows, a)), force))
        two = add(two, cross(sub(centre_at(rows, t), centre_at(rows, b)), force))
    powers[k] = given(a, rows, scale(-1.0, force), one) + given(b, rows, force, two)


def fall_row(i, rows, mass, along, powers):
    """What gravity gives to a free body: its power [W] along directions in which the world repeats, as if it drove it."""
    powers[i] = mass[i] * dot(velocity_at(rows, i), along) if rows[i, PER_MASS] > 0.0 else 0.0


@stored()
def sum_of(terms, limit, rows):
    """The sum of terms (n,), which does not depend on their order: in the first of rows (2,PARTS) as `clast.kernels.sums` has it, and as a number; limit: a power of two that most are below, or 0."""
    rows[:] = 0.0
    for first in range(0, len(terms), sums.CHUNK):
        rows[1] = 0.0
        for i in range(first, min(first + sums.CHUNK, len(terms))):
            if abs(terms[i]) < limit:
                rows[1, 0] += sums.cut(terms[i], limit)
            else:
                sums.add_outlier(terms[i], rows[1])
        sums.halve(rows[1], limit)
        rows[0] += rows[1]
    return sums.total(rows[0])


class Works(Book):
    """What driven bodies have done since the start."""

    divided = False
    stabilisation = motors = gross = 0.0  # [J]

    def __init__(self, along):
        """along (3,) [m/s^2]: gravity in directions in which the world repeats, where places tell no height."""
        super().__init__()
        self.along = tuple(map(float, along))
        self.work = 0.0  # [J]
        self.power = 0.0  # [W], of driven bodies at the last step
        self.fall = 0.0  # [W], of gravity, in it
        self.team: Any = None  # the processes that share the run, see `clast.mpi.team`
        self._list: Any = None  # of pairs that the list below was made from
        self._pairs, self._powers = np.zeros(0, np.int64), np.zeros(0)  # those with a driven body, and what it gives
        self._rows = np.zeros((2, sums.PARTS))
        self._driving, self._falling = kernel(drive_row, grain=256), kernel(fall_row, grain=256)

    def _total(self, powers, last):
        """The sum of powers (k,) [W] of all processes, the same in any order; last: the one before, which tells how large they are."""
        found = sum_of(powers, sums.limit_above(abs(last)), self._rows)
        if self.team is not None:
            return float(sums.totals(np.sum(self.team.everywhere(self._rows[:1].copy()), axis=0))[0])
        return found

    def note(self, state, dt):
        """Add what was done in the step of dt [s] whose forces are known and have not moved bodies yet."""
        if state.driven:  # on all processes or on none
            if self._list is not state.pairs:
                self._list = state.pairs
                driven = (state.bodies.motion == DRIVEN)[state.shapes.body]
                self._pairs = np.flatnonzero(driven[state.pairs.shape].any(1))
                self._powers = np.empty(len(self._pairs))  # the same each time: then the launch is the same, and known
            tables = state.rows, state.shapes.body, state.pairs, state.spheres, state.wrench
            (own,) = same(state.own)
            self._driving(len(self._pairs), self._pairs, own, state.spheres_count, *tables, self._powers)
            power = self._total(self._powers, self.power)
            self.work += 0.5 * dt * (self.power + power)
            self.power = power
        if any(self.along):
            powers = np.empty(state.own)
            self._falling(len(powers), state.rows, state.bodies.mass, self.along, powers)
            # Bodies have moved with these velocities.
            self.fall = self._total(powers, self.fall)
            self.work += dt * self.fall

    def begin(self, state, energies, dt):
        super().begin(state, energies, dt)
        self.note(state, 0.0)

    def losses(self, now):
        """What was lost [J], by nothing that is known."""
        return [0.0] * 8, 0.0

    def remember(self):
        """What a checkpoint holds."""
        return {"numbers": np.array([self.work, self.power, self.fall, *self.numbers()])}

    def recall(self, kept):
        """Go on from what `remember` gave."""
        self.work, self.power, self.fall, *numbers = map(float, kept["numbers"])
        self.take_up(numbers)

"""What contacts lose: normal and shear dashpots, sliding, rolling and twisting, told apart at every contact and in every step.

Over a step velocity Verlet kicks a body with the force at its place before and after it, with half a step each: whatever the forces, it does the work F . v dt about every
moment, v the velocity between the two kicks that bodies have at whole steps. So of each contact, with the relative velocity v of its bodies where they touch,

    normal dashpot   (N - F_s) v_n, F_s the normal force of the same contact at rest
    shear dashpot    -(T + k s) . v, with the shear force T on the second body, the slip s that is remembered and the stiffness k in shear; where T is as large as
                     friction allows, this is lost by sliding
    springs          F_s v_n + k s . v, which is held or lost by
    sliding          (k1 s1 + k2 s2) / 2 . (s1 + v' dt - s2) + (k1 - k2) s1 . s2 / 2 in a step: what of the motion v' dt did not become slip, and what a
                     spring loses that becomes softer; 1, 2: before and after the step
    rolling          the couple across the normal times the turning, twisting the one along it; what their springs hold is counted with them

are powers, added up over time: whether they close the balance of energies is seen from that. What springs took in and neither hold nor
lost by sliding is the error of the time step, and of points that share a stiffness; but laws that keep numbers of their own (plastic ones, adhesion, bridges, bonds) mean to
lose energy along the normal, and there it counts as lost. Of bonds the dashpots along the normal and in shear count as such; their springs, and all that they do in bending and
twist, are one account, of which what they took in and do not hold is lost by bonds: by those that broke, and by what bending and twist damp.

A law with a ledger is the same law, which keeps four numbers before its own: F_s, k, what it lost by sliding, and whether it slides. So they stay with their
contact through new neighbour lists and in checkpoints.
"""

import functools
import math
from typing import Any

import numpy as np

from ..kernels.backend import bind, fused, kernel, made_by
from ..kernels.launch import same
from ..kernels.rows import COLUMNS
from ..kernels.tuples import filler
from ..motion.book import Book
from . import bonds, laws
from .composed import SHEARS, TWISTINGS
from .laws import Touch, turn
from .powers import (
    BENT,
    BLOCK,
    BONDED,
    DASHPOT,
    DIGITS,
    DRAG,
    DRIVEN,
    GROSS,
    LOST,
    POINTS_BLOCK,
    PRESSED,
    ROLLING,
    SHEARED,
    SLIDING,
    TWISTING,
    WIDTH,
    add_blocks,
    add_step,
    choose_units,
    room,
    tell_balls,
    tell_falling,
    tell_points,
)

# [N], [N/m], lost in the last step [J], 1 or 0; of a point that shares a stiffness those of the whole area.
KEEPS = ("ledger_spring", "ledger_stiffness", "ledger_slid", "ledger_slides")
TOLD = "ledger_spring", "ledger_slid"  # of these, what no step asks for again; nor for the last, without bonds
LOSSES = (
    *("normal", "shear", "sliding", "rolling", "twisting", "bonds"),
    *("dampers", "limits"),  # of joints alone
)

# What laws keep of shear and twisting; what else they keep is of springs that may lose energy.
ACROSS = {name for part in (*SHEARS.values(), *TWISTINGS.values()) for name in part.keeps}

SHORT = 1e-300  # [s], a step of a contact at rest: not 0, at which bonds are made
SMALL = 1e-9  # part of the slip at which the stiffness in shear is asked for, where friction does not limit it
LIMIT = 1.0 - 1e-9  # part of the most that friction allows from which on a contact slides


@fused
def by_number(mix):
    """The coefficient of friction of a law that has one."""
    return mix.friction


@fused
def unlimited(mix):
    """That of a law which needs none."""
    return math.inf


@fused
def by_slip(held, slip, kept):
    """The stiffness [N/m] of a spring that answers a small part of the slip with the force `held` (3,) [N]."""
    along = held[0] * slip[0] + held[1] * slip[1] + held[2] * slip[2]
    return -along / max(SMALL * (slip[0] * slip[0] + slip[1] * slip[1] + slip[2] * slip[2]), 1e-300)


AT_BOND = bonds.KEEPS.index("bond") - len(bonds.KEEPS)  # they are the last that a law keeps
GRIP = 0  # bound to `by_grip`: place of the number `grip` among those that the law keeps


def by_grip(held, slip, kept):
    """That of a law whose shear is no spring: it keeps the stiffness by which its slip is its force."""
    return kept[GRIP]


@fused
def by_bond(kept):
    """Whether a bond acts, of a law with bonds."""
    return kept[AT_BOND] > 0.0


@fused
def unbonded(kept):
    """The same of other laws."""
    return False


# Bound to `accounted` and the two ways to `rest`.
again: Any
rest: Any
plain, again, friction, stiffness, holds = laws.hertz, None, by_number, by_slip, unbonded
form = laws.hertz_at_rest


def by_law(touch, slip, kept, mix):
    """Normal force [N] and stiffness in shear [N/m] of the springs of a contact, of a law that is asked once more, at rest."""
    small = (SMALL * slip[0], SMALL * slip[1], SMALL * slip[2])
    still = Touch(touch.overlap, 0.0, touch.normal, (0.0, 0.0, 0.0), small, touch.mass, touch.radius, again(kept))
    spring, held, _, _ = plain(still, mix, SHORT)
    return spring, stiffness(held, slip, kept)


def by_form(touch, slip, kept, mix):
    """The same of a law that tells them."""
    return form(touch.overlap, touch.radius, mix)


rest = by_form


def accounted(touch, mix, dt):
    """The answer of a law, which keeps what its springs do besides."""
    normal, shear, slip, kept = plain(touch, mix, dt)
    spring, k = rest(touch, slip, kept, mix)
    x, y, z = slip
    k1 = touch.kept.ledger_stiffness
    a, b, c = turn(touch.slip, touch.normal, 1.0, 1.0)
    slid = (k1 * a + k * x) * (a + touch.slide[0] * dt - x) + (k1 * b + k * y) * (b + touch.slide[1] * dt - y)
    slid += (k1 * c + k * z) * (c + touch.slide[2] * dt - z) + (k1 - k) * (a * x + b * y + c * z)
    most = LIMIT * friction(mix) * max(normal, 0.0)
    square = shear[0] * shear[0] + shear[1] * shear[1] + shear[2] * shear[2]
    slides = 1.0 if k <= 0.0 or square >= most * most else 0.0
    bond = holds(kept)
    # A bond does not slide, and what it held in shear when it broke was not lost by sliding.
    slid = 0.0 if bond or touch.kept.ledger_slides == BONDED else 0.5 * slid
    return normal, shear, slip, (spring, k, slid, BONDED if bond else slides) + kept


@functools.cache
def _answer(plain, form, record, friction, grip, holds):
    """A law of four results with a ledger; form: see `clast.dem.laws.Law.at_rest`; record: class of what it keeps then; friction: `by_number` or `unlimited`; grip:
    place of the number by which its slip is its force among those that it keeps, -1 if there is none; holds: `by_bond` or `unbonded`."""
    if form is None:
        stiffness = fused(bind(by_grip, GRIP=grip)) if grip >= 0 else by_slip
        rest = fused(bind(by_law, plain=plain, again=filler(record, len(KEEPS)), stiffness=stiffness))
    else:
        rest = fused(bind(by_form, form=form))
    made = fused(bind(accounted, plain=plain, rest=rest, friction=friction, holds=holds))
    return made_by(made, _answer, plain, form, record, friction, grip, holds)


def built_in(law):
    """The numbers that a law keeps whose names have the meaning that the parts of built-in laws give them: none of a user's own law."""
    return law.keeps if law.composed else ()


def with_ledger(law):
    """The Law that keeps what its springs do."""
    made, known = law._replace(keeps=KEEPS + law.keeps, composed=True), built_in(law)
    # Bonds shear beyond what friction allows, and do not slide.
    friction = by_number if "friction" in law.needs and "bond" not in known else unlimited
    grip = known.index("grip") if "grip" in known else -1
    holds = by_bond if "bond" in known else unbonded
    told = TOLD if "bond" in known else (*TOLD, KEEPS[-1])
    return made._replace(told=told, function=_answer(law.answer, law.at_rest, made.kept, friction, grip, holds))


def may_lose(law):
    """Whether the springs of a Law may lose energy along the normal: where it keeps numbers, other than those of shear, twisting and bonds."""
    return bool({*law.keeps} - {*ACROSS, *bonds.KEEPS}.intersection(built_in(law)))


class Ledger(Book):
    """What contacts have lost since the start, and what driven bodies have done."""

    def __init__(self, plastic, bonded, along):
        """plastic: see `may_lose`; bonded: whether the law has bonds; along (3,) [m/s^2]: gravity in directions in which the world repeats, where places tell no height."""
        super().__init__()
        self.plastic, self.bonded, self.along = plastic, bonded, tuple(map(float, along))
        self.falls = bool(along.any())
        self.sums = np.zeros(WIDTH)  # [J], columns as in `clast.dem.powers`
        self.powers = np.zeros(WIDTH)  # [W], at the last step
        self.digits = np.zeros(WIDTH, np.int64)  # by which the units of sums are chosen
        self.ledge = np.full(WIDTH, np.ldexp(1.5, 52 - DIGITS))
        self.then = np.zeros((0, COLUMNS))
        self._told = np.zeros((3, WIDTH))
        self._out: tuple = (np.zeros((0, WIDTH)),) * 3
        self._falling = kernel(tell_falling, grain=4)
        self.team: Any = None  # the processes that share the run, see `clast.mpi.team`

    def bind(self, turns, parts):
        """Compose the kernels of a scene: whether contacts have couples, and whether spheres may be parts of bodies."""
        self._balls = kernel(tell_balls, grain=4, allocates=True, TURNS=turns, PARTS=parts)
        self._points = kernel(tell_points, grain=4, allocates=True, TURNS=turns)

    def moment(self, bodies):
        """Rows (n,12) of so many bodies, for what they are like when a step ends, see `clast.motion.integrate.Watch`."""
        if len(self.then) != bodies:
            self.then = np.zeros((bodies, COLUMNS))
        return self.then

    def see(self, state):
        """Take bodies as they are at present."""
        self.moment(len(state.bodies.number))[:] = state.rows[: len(state.bodies.number)]

    def _room(self, blocks, each=0):
        """Room for what `each` contacts do, the largest of each block, and sums; the same arrays each time: then launches are the same, and known."""
        if each or len(self._out[1]) != blocks:
            out = tuple(np.zeros((rows, WIDTH)) for rows in (each, blocks, blocks))
            if each:
                return out
            self._out = out
        return self._out

    def _tell_balls(self, state, per_dt, out, each=0):
        count, at = state.spheres_count, state.spheres.memory.shape[1] - state.kept
        tables = self.then, state.rows, state.shapes.body, state.pairs.shape, state.spheres, state.edges
        where = same(count, each, state.own, at)
        self._balls(room(count, BLOCK), where, per_dt, *tables, self.ledge, out)

    def _tell_points(self, state, per_dt, out, each=0, first=0):
        count = len(state.pairs.shape) - state.spheres_count
        tables = self.then, state.rows, state.shapes.body, state.pairs, state.points, state.history, state.edges
        where = same(count, each, state.own, state.spheres_count, first)
        self._points(room(count, POINTS_BLOCK), where, per_dt, *tables, self.ledge, out)

    def _sum(self, state, per_dt):
        """Find the sums of what all contacts do at present, `told`."""
        balls, count = room(state.spheres_count, BLOCK), len(state.pairs.shape) - state.spheres_count
        points = room(count, POINTS_BLOCK)
        falling = room(state.own, BLOCK) if self.falls else 0
        out = self._room(balls + points + falling)
        if balls:
            self._tell_balls(state, per_dt, out)
        if points:
            self._tell_points(state, per_dt, out, first=balls)
        if falling:
            where = same(state.own, balls + points)
            self._falling(falling, where, self.then, state.bodies.mass, self.along, self.ledge, out)
        add_blocks(*out[1:], self.ledge, self._told)
        if self.team is not None:  # all that is added is a whole number of units: the order does not matter
            told, self._told[0] = self._told, self.team.largest(*self._told[0])
            told[1:] = np.sum(self.team.everywhere(told[1:].copy()), axis=0)

    def note(self, state, dt, part=1.0):
        """Add what was lost and done in the step of dt [s] that has ended, or in a part of it; bodies are as `then` tells."""
        (per_dt,) = same(1.0 / dt)  # the same object each time, as all that a launch is to know again
        self._sum(state, per_dt)
        if choose_units(self._told[0], self.digits, self.ledge):
            self._sum(state, per_dt)
        add_step(self._told, self.powers, self.sums, part * dt)

    def dissipation(self, state, dt):
        """Power [W] that each pair of spheres and each slot dissipates at present, two arrays; without what plastic springs lose."""
        self.see(state)
        count, slots = len(state.pairs.shape) - state.spheres_count, len(state.points.gap)
        balls = self._room(room(state.spheres_count, BLOCK), max(state.spheres_count, 1))
        points = self._room(room(count, POINTS_BLOCK), max(slots, 1))
        self._tell_balls(state, 1.0 / dt, balls, 1)
        self._tell_points(state, 1.0 / dt, points, 1)
        parts = [DASHPOT, DRAG, SLIDING, ROLLING, TWISTING, LOST]
        lost = (table[:rows, parts].sum(1) for (table, *_), rows in ((balls, state.spheres_count), (points, slots)))
        return tuple(lost)

    def begin(self, state, energies, dt):
        super().begin(state, energies, dt)
        self.see(state)
        self.note(state, dt, 0.0)

    def losses(self, now):
        """What was lost [J], by LOSSES, and numerically; now: present energies."""
        sums, slid = self.sums, float(self.sums[SLIDING] + self.sums[LOST])
        normal, shear, ahead, _ = self.since(now)
        pressed, sheared = sums[PRESSED] - normal, sums[SHEARED] + sums[BENT] - shear - sums[LOST]
        by_normal, by_bonds, numerical = sums[DASHPOT], 0.0, ahead
        if self.plastic:
            by_normal += pressed
        elif self.bonded:
            by_bonds += pressed
        else:
            numerical += pressed
        if self.bonded:
            by_bonds += sheared
        else:
            numerical += sheared
        lost = by_normal, sums[DRAG], slid, sums[ROLLING], sums[TWISTING], by_bonds, 0.0, 0.0
        return [float(x) for x in lost], float(numerical)

    @property
    def work(self):
        """Work [J] of driven bodies, and of gravity along directions in which the world repeats."""
        return float(self.sums[DRIVEN])

    stabilisation = motors = 0.0  # [J]

    @property
    def gross(self):
        """What contacts took in and gave back [J]."""
        return float(self.sums[GROSS])

    def remember(self):
        """What a checkpoint holds."""
        told = {"sums": self.sums, "powers": self.powers, "digits": self.digits}
        return told | {"numbers": np.array(self.numbers())}

    def recall(self, kept):
        """Go on from what `remember` gave."""
        for name in ("sums", "powers", "digits"):
            mine = getattr(self, name)
            mine[: len(kept[name])] = kept[name]  # checkpoints had fewer columns
        self.ledge[:] = np.ldexp(1.5, 52 + self.digits - DIGITS)
        self.take_up(kept["numbers"])

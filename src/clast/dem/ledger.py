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

from ..broad.near import image, repeats
from ..kernels.backend import bind, func, fused, kernel, made_by
from ..kernels.rows import PER_MASS, REACH, centre_at, spin_at, velocity_at
from ..kernels.tuples import filler
from ..kernels.vec import add, cross, dot, load, load4, norm, scale, sub
from ..motion.book import Book
from . import bonds, laws
from .composed import SHEARS, TWISTINGS
from .laws import Touch, turn
from .partners import away_of

# [N], [N/m], lost in the last step [J], 1 or 0; of a point that shares a stiffness those of the whole area.
KEEPS = ("ledger_spring", "ledger_stiffness", "ledger_slid", "ledger_slides")
# Powers [W] of a contact; SLIDING: beside springs; GROSS: of the whole force, whatever its sign; DRIVEN: that driven bodies give; and the
# energy [J] that was lost by springs that slide.
# BENT: of bonds, in place of ROLLING and TWISTING.
DASHPOT, DRAG, SLIDING, PRESSED, SHEARED, GROSS, ROLLING, TWISTING, DRIVEN, LOST, BENT = range(11)
WIDTH = 11
BONDED = 2.0  # in place of whether a contact slides: it is a bond that acts
LOSSES = (
    *("normal", "shear", "sliding", "rolling", "twisting", "bonds"),
    *("dampers", "limits"),  # of joints alone
)

# What laws keep of shear and twisting; what else they keep is of springs that may lose energy.
ACROSS = {name for part in (*SHEARS.values(), *TWISTINGS.values()) for name in part.keeps}

SHORT = 1e-300  # [s], a step of a contact at rest: not 0, at which bonds are made
SMALL = 1e-9  # part of the slip at which the stiffness in shear is asked for, where friction does not limit it
BLOCK = 512  # rows a task
LIMIT = 1.0 - 1e-9  # part of the most that friction allows from which on a contact slides
# Sums are the same in any order because all that is added is rounded to one unit: so many binary digits below the largest of a column, of the step before where that
# still fits. 2^20 contacts as large as the largest fit.
DIGITS, LOW, HIGH = 30, -4, 2


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


# Bound to `accounted`.
again: Any
plain, again, friction, stiffness, holds = laws.hertz, None, by_number, by_slip, unbonded


def accounted(touch, mix, dt):
    """The answer of a law, which keeps what its springs do besides."""
    normal, shear, slip, kept = plain(touch, mix, dt)
    small = (SMALL * slip[0], SMALL * slip[1], SMALL * slip[2])
    rest = Touch(touch.overlap, 0.0, touch.normal, (0.0, 0.0, 0.0), small, touch.mass, touch.radius, again(kept))
    spring, held, _, _ = plain(rest, mix, SHORT)
    x, y, z = slip
    k, k1 = stiffness(held, slip, kept), touch.kept.ledger_stiffness
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
def _answer(plain, record, friction, grip, holds):
    """A law of four results with a ledger; record: class of what it keeps then; friction: `by_number` or `unlimited`; grip: place of the number by which its
    slip is its force among those that it keeps, -1 if there is none; holds: `by_bond` or `unbonded`."""
    stiffness = fused(bind(by_grip, GRIP=grip)) if grip >= 0 else by_slip
    again = filler(record, len(KEEPS))
    made = fused(bind(accounted, plain=plain, again=again, friction=friction, stiffness=stiffness, holds=holds))
    return made_by(made, _answer, plain, record, friction, grip, holds)


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
    return made._replace(function=_answer(law.answer, made.kept, friction, grip, holds))


def may_lose(law):
    """Whether the springs of a Law may lose energy along the normal: where it keeps numbers, other than those of shear, twisting and bonds."""
    return bool({*law.keeps} - {*ACROSS, *bonds.KEEPS}.intersection(built_in(law)))


# What contacts do in a moment, bodies at the velocities between the two kicks.


@func
def tell(found, i, v, n, turning, force, couple, slip, kept):
    """Write what a contact does into row i: the velocity v (3,) of b against a where they touch, normal, spin of b against a, force and couple on b, slip, and
    what KEEPS has of it, for its share."""
    spring, k, slid, slides = kept
    opening = dot(v, n)
    normal = dot(force, n)
    sheared = k * dot(slip, v)
    worked = dot(force, v)
    dragged = normal * opening - worked - sheared
    about = dot(turning, n) * dot(couple, n)
    found[i, DASHPOT] = (spring - normal) * opening
    found[i, DRAG], found[i, SLIDING] = (0.0, dragged) if slides == 1.0 else (dragged, 0.0)
    found[i, PRESSED], found[i, SHEARED] = -spring * opening, sheared
    found[i, GROSS], found[i, LOST] = abs(worked + dot(couple, turning)), slid
    bond = slides == BONDED
    found[i, ROLLING], found[i, TWISTING] = (0.0, 0.0) if bond else (about - dot(couple, turning), -about)
    found[i, BENT] = -dot(couple, turning) if bond else 0.0


@func
def driven_power(row, rows, arm, force, couple):
    """Power [W] that the body of a row gives to what acts on it with a force at an arm (3,) and a couple, if it is driven: nobody moves it by force."""
    if rows[row, PER_MASS] > 0.0:
        return 0.0
    return -dot(force, add(velocity_at(rows, row), cross(spin_at(rows, row), arm))) - dot(couple, spin_at(rows, row))


@func
def add_row(found, i, block, ledge, top, total):
    """Add row i, rounded, to the sums of a block. The rounding is that of a sum with `ledge`, 1.5 2^52 units."""
    for j in range(WIDTH):
        x = found[i, j]
        top[block, j] = max(top[block, j], abs(x))
        total[block, j] += (x + ledge[j]) - ledge[j]


@func
def clear(block, top, total):
    """No sums yet."""
    for j in range(WIDTH):
        top[block, j], total[block, j] = 0.0, 0.0


def tell_balls(block, count, each, own, at, rows, body, pair, spheres, edges, ledge, out):
    """What pairs of spheres do, a block of them: sums, and if `each` is 1 what each does. own: bodies before the first ghost, of whose pairs another process tells where
    they are the first; at: column of their memory from which on KEEPS stands; body (s,): column of Shapes; ledge: see `add_row`; out: room for what they do, the largest, and sums."""
    found, top, total = out
    memory, action, couples = spheres.memory, spheres.action, len(spheres.couple) > 0
    clear(block, top, total)
    for p in range(block * BLOCK, min(count, (block + 1) * BLOCK)):
        force, kept = load(action, p), (memory[p, at], memory[p, at + 1], memory[p, at + 2], memory[p, at + 3])
        i = p if each == 1 else block
        # Where a dashpot outweighs the spring a contact has no force, but a spring that loses what it holds; a bond that is only twisted has none either.
        if kept[3] != BONDED and kept[0] == 0.0 and force[0] == 0.0 and force[1] == 0.0 and force[2] == 0.0:
            continue
        s, t = pair[p, 0], pair[p, 1]
        a, b = body[s], body[t]
        if a >= own:
            continue
        d = sub(centre_at(rows, t), centre_at(rows, s))
        if repeats(edges):
            d = (image(d[0], edges[0], edges[3]), image(d[1], edges[1], edges[4]), image(d[2], edges[2], edges[5]))
        part = 1.0 / (rows[s, REACH] + rows[t, REACH])
        one, two = scale(rows[s, REACH] * part, d), scale(-rows[t, REACH] * part, d)
        if a != s:
            one = add(sub(centre_at(rows, s), centre_at(rows, a)), one)
        if b != t:
            two = add(sub(centre_at(rows, t), centre_at(rows, b)), two)
        n = scale(1.0 / max(norm(d), 1e-300), d)
        couple = load(spheres.couple, p) if couples else (0.0, 0.0, 0.0)
        v = sub(add(velocity_at(rows, b), cross(spin_at(rows, b), two)), velocity_at(rows, a))
        v, turning = sub(v, cross(spin_at(rows, a), one)), sub(spin_at(rows, b), spin_at(rows, a))
        tell(found, i, v, n, turning, force, couple, load(memory, p), kept)
        found[i, DRIVEN] = driven_power(a, rows, one, scale(-1.0, force), scale(-1.0, couple))
        found[i, DRIVEN] += driven_power(b, rows, two, force, couple)
        add_row(found, i, block, ledge, top, total)


def tell_points(block, count, each, own, spheres, rows, body, pairs, points, history, edges, ledge, out):
    """The same of contact points of a block of pairs; spheres: pairs before the first."""
    found, top, total = out
    couples = len(points.couple) > 0
    clear(block, top, total)
    for q in range(block * BLOCK, min(count, (block + 1) * BLOCK)):
        if points.count[q] == 0:
            continue
        s, t = pairs.shape[q + spheres, 0], pairs.shape[q + spheres, 1]
        a, b = body[s], body[t]
        if a >= own:
            continue
        away = away_of(s, t, a, b, rows, edges, repeats(edges))
        for c in range(pairs.slot[q], pairs.slot[q + 1]):
            if history.live[c] != 1:
                continue
            i = c if each == 1 else block
            one = add(sub(centre_at(rows, s), centre_at(rows, a)), load(points.arm, c))
            two = sub(one, away)
            v = sub(add(velocity_at(rows, b), cross(spin_at(rows, b), two)), velocity_at(rows, a))
            v, turning = sub(v, cross(spin_at(rows, a), one)), sub(spin_at(rows, b), spin_at(rows, a))
            force, couple = load(points.force, c), load(points.couple, c) if couples else (0.0, 0.0, 0.0)
            part, (spring, k, slid, slides) = history.share[c], load4(history.kept, c)
            kept = part * spring, part * k, part * slid, slides
            tell(found, i, v, load(points.normal, c), turning, force, couple, load(history.slip, c), kept)
            found[i, DRIVEN] = driven_power(a, rows, one, scale(-1.0, force), scale(-1.0, couple))
            found[i, DRIVEN] += driven_power(b, rows, two, force, couple)
            add_row(found, i, block, ledge, top, total)


def tell_falling(block, each, rows, mass, along, ledge, out):
    """What gravity gives to free bodies: its power [W] along directions in which the world repeats, as if it drove them."""
    found, top, total = out
    clear(block, top, total)
    for i in range(WIDTH):
        found[block, i] = 0.0
    for row in range(block * BLOCK, min(len(mass), (block + 1) * BLOCK)):
        if rows[row, PER_MASS] > 0.0:
            found[block, DRIVEN] = mass[row] * dot(velocity_at(rows, row), along)
            add_row(found, block, block, ledge, top, total)


def blocks_of(rows):
    """Tasks for so many rows."""
    return (rows + BLOCK - 1) // BLOCK


class Ledger(Book):
    """What contacts have lost since the start, and what driven bodies have done."""

    def __init__(self, plastic, bonded, along):
        """plastic: see `may_lose`; bonded: whether the law has bonds; along (3,) [m/s^2]: gravity in directions in which the world repeats, where places tell no height."""
        super().__init__()
        self.plastic, self.bonded, self.along = plastic, bonded, along
        self.sums = np.zeros(WIDTH)  # [J], columns as above
        self.powers = np.zeros(WIDTH)  # [W], at the last step
        # Binary exponents of the largest of each column, by which the unit of a sum is chosen.
        self.digits = np.zeros(WIDTH, np.int64)
        self._room: dict = {}  # by the kernel: its number of blocks, and room for what it writes
        self.team: Any = None  # the processes that share the run, see `clast.mpi.team`

    def _launch(self, row, rows, each, *given):
        """Call a kernel for blocks of rows; what each does, the largest of each block, and sums."""
        blocks, many = blocks_of(rows), each if each else blocks_of(rows)
        known = self._room.get(row)
        if each or known is None or len(known[1]) != blocks:
            known = tuple(np.zeros((k, WIDTH)) for k in (many, blocks, blocks))
        if not each:  # the same arrays each time: then the launch is the same, and known
            self._room[row] = known
        kernel(row, grain=4)(blocks, *given, np.ldexp(1.5, 52 + self.digits - DIGITS), known)
        return known

    def _tell_balls(self, state, each=False):
        balls, at = state.spheres_count, state.spheres.memory.shape[1] - state.kept
        tables = state.rows, state.shapes.body, state.pairs.shape, state.spheres, state.edges
        return self._launch(tell_balls, balls, balls if each else 0, balls, int(each), state.own, at, *tables)

    def _tell_points(self, state, each=False):
        pairs, slots = len(state.pairs.shape) - state.spheres_count, len(state.points.gap)
        tables = state.rows, state.shapes.body, state.pairs, state.points, state.history, state.edges
        first = pairs, int(each), state.own, state.spheres_count
        return self._launch(tell_points, pairs, slots if each else 0, *first, *tables)

    def _sums(self, state):
        """The sums (11,) of what all contacts do at present."""
        told = [self._tell_balls(state), self._tell_points(state)]
        if self.along.any():
            mass, along = state.bodies.mass[: state.own], tuple(map(float, self.along))
            told.append(self._launch(tell_falling, len(mass), 0, 0, state.rows, mass, along))
        top = np.max([largest.max(0, initial=0.0) for _, largest, _ in told], axis=0)
        sums = np.sum([total.sum(0) for _, _, total in told], axis=0)
        if self.team is not None:  # all that is added is a whole number of units: the order does not matter
            top, sums = np.array(self.team.largest(*top)), np.sum(self.team.everywhere(sums), axis=0)
        return top, sums

    def note(self, state, dt):
        """Add what was lost and done in the step of dt [s] that has been ended."""
        top, powers = self._sums(state)
        digits = np.frexp(top)[1]
        off = digits - self.digits
        if ((top > 0.0) & ((off < LOW) | (off > HIGH))).any():
            self.digits = np.where(top > 0.0, digits, self.digits)
            powers = self._sums(state)[1]
        self.sums += 0.5 * dt * (self.powers + powers)
        self.sums[LOST] += powers[LOST] - 0.5 * dt * (self.powers[LOST] + powers[LOST])
        self.powers = powers

    def dissipation(self, state, dt):
        """Power [W] that each pair of spheres and each slot dissipates at present, two arrays; without what plastic springs lose."""
        parts = [DASHPOT, DRAG, SLIDING, ROLLING, TWISTING]
        tables = self._tell_balls(state, True)[0], self._tell_points(state, True)[0]
        return tuple(table[:, parts].sum(1) + table[:, LOST] / dt for table in tables)

    def begin(self, state, energies):
        super().begin(state, energies)
        self.note(state, 0.0)

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
        self.take_up(kept["numbers"])

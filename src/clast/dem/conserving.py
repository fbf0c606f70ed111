"""Contacts that give back what they took in: for each two bodies that touch, an account of the energy that they hold.

Forces that never pull, do not depend on the number of points of an area and do not jump when a point comes or goes have no potential, see
`clast.dem.history`; and the points of an area are others all at once where another face or pair of edges becomes the shortest way out. So the energy U of the law at
the overlaps that points share is not what the bodies did to the contact: the work that forces do in a step is half of that at the last place and half of that at this
one, with the velocity at which the bodies moved in between. The account compares the two. Let D be the one overlap that has the energy of all points. By
the forces of the last step D would be D' half a step later; by the forces of this step it was D'' half a step ago. Where forces are the gradient of the energy and
smooth, both agree to the third order of the step. Where they do not, all forces of the two bodies are multiplied by U(D') / U(D'') from
then on: the contact holds what it held before, neither more nor less, whatever its points.

A contact that lasts must not keep for good what its factor was when it began: a pile would stay too soft or too stiff. So the factor forgets itself, by a clock
that is the contact's own: its phase, which in every step grows by dt times the angular frequency of the two bodies on their contact. A collision is over after about pi, at
any step, stiffness and size; one in which a body rocks from corner to corner after a few times as much. Up to LASTS nothing is forgotten, so that the errors of impacts
fall with the step; from then on one part in e over FORGETS.

Lone points need no account: their overlap is a function of the places alone. But the radius in the law must not change where bodies turn, so it is that of the
balls which stand for the two bodies, not that of curvature.
"""

import math
from typing import NamedTuple

import numpy as np

from ..kernels.backend import func, kernel
from ..kernels.rows import spin_at, velocity_at
from ..kernels.vec import add, cross, dot, scale, sub
from .history import ARM, LIGHTNESS, NORMAL, OVERLAP, RADIUS, SHARE, vector
from .laws import Touch
from .partners import away_of, moving_row

LASTS, FORGETS = 20.0, 100.0  # phases: until a contact is one that lasts, and over which it then forgets
MOST = 4.0  # times by which forces are changed at the most, up or down

# Columns of an account, the same at all points of two bodies: the one overlap [m] that has their energy, what forces are multiplied by, and how the
# overlap changes; how long the contact has lasted, as a phase
DEPTH, FACTOR = 0, 1
SHIFT, TURN_A, TURN_B = 2, 5, 8  # with the velocity of b against a, and with the spins of a and of b [m]
AGE = 11


class Account(NamedTuple):
    """What two bodies that touch have taken in, see above."""

    depth: float
    factor: float
    shift: tuple
    turn_a: tuple
    turn_b: tuple
    age: float


@func
def load_account(rows, c):
    """The account in row c of a table (c,12)."""
    return Account(
        rows[c, DEPTH],
        rows[c, FACTOR],
        (rows[c, SHIFT], rows[c, SHIFT + 1], rows[c, SHIFT + 2]),
        (rows[c, TURN_A], rows[c, TURN_A + 1], rows[c, TURN_A + 2]),
        (rows[c, TURN_B], rows[c, TURN_B + 1], rows[c, TURN_B + 2]),
        rows[c, AGE],
    )


@func
def put_account(rows, c, account):
    """Write an account into row c of a table (c,12)."""
    rows[c, DEPTH], rows[c, FACTOR], rows[c, AGE] = account.depth, account.factor, account.age
    for i in range(3):
        rows[c, SHIFT + i], rows[c, TURN_A + i] = account.shift[i], account.turn_a[i]
        rows[c, TURN_B + i] = account.turn_b[i]


@func
def rate_of(account, v, wa, wb):
    """How fast [m/s] the overlap of an account grows at velocity v (3,) of b against a and spins wa, wb (3,)."""
    return dot(account.turn_a, wa) - dot(account.turn_b, wb) - dot(account.shift, v)


@func
def draw_up(begin, end, away, near, power):
    """The account of the points in rows begin to end of near, with the factor 1 and no age; away (3,) [m]: from the centre of the first body to that of the
    second."""
    energy = 0.0
    shift, turn_a, turn_b = (0.0, 0.0, 0.0), (0.0, 0.0, 0.0), (0.0, 0.0, 0.0)
    for row in range(begin, end):
        k = np.uintp(row)
        n, x = vector(near, k, NORMAL), vector(near, k, ARM)
        # Over what the law has as a constant for all points.
        push = near[k, SHARE] * near[k, RADIUS] ** (power - 2.0)
        push *= near[k, OVERLAP] ** (power - 1.0)
        energy += push * near[k, OVERLAP]
        shift = add(shift, scale(push, n))
        turn_a, turn_b = add(turn_a, scale(push, cross(x, n))), add(turn_b, scale(push, cross(sub(x, away), n)))
    depth = energy ** (1.0 / power)
    per = depth / energy if energy > 0.0 else 0.0
    return Account(depth, 1.0, scale(per, shift), scale(per, turn_a), scale(per, turn_b), 0.0)


@func
def phase_of(begin, end, near, mix, dt, power, acts):
    """By how much a step brings the contact of the points in rows begin to end of near on: dt times its angular frequency, at its deepest point.

    Asked of the law, which knows the stiffness of the materials; mix: theirs, acts: see `clast.dem.forces.Acts`.
    """
    k = np.uintp(begin)
    for row in range(begin, end):
        k = np.uintp(row) if near[np.uintp(row), OVERLAP] > near[k, OVERLAP] else k
    overlap, lightness, still = near[k, OVERLAP], near[k, LIGHTNESS], (0.0, 0.0, 0.0)
    if not (overlap > 0.0 and lightness > 0.0):
        return 0.0
    touch = Touch(
        overlap, 0.0, vector(near, k, NORMAL), still, still, 1.0 / lightness, near[k, RADIUS], acts.kept_of(near, k)
    )
    force, _, _, _ = acts.law(touch, mix, dt)
    # The points share the stiffness (power - 1) F / overlap of this one, as one spring.
    return dt * math.sqrt((power - 1.0) * force / overlap * lightness)


@func
def factor_of(then, now, v, wa, wb, dt, power, forgotten):
    """What forces are multiplied by, from the accounts of the last step and of this, velocity v (3,) of b against a, spins (3,) of both.

    forgotten: which part of what the factor differs from one is forgotten in this step.
    """
    ahead = then.depth + 0.5 * dt * rate_of(then, v, wa, wb)
    back = now.depth - 0.5 * dt * rate_of(now, v, wa, wb)
    factor = then.factor
    if ahead > 0.0 and back > 0.0:
        factor *= (ahead / back) ** power
    factor += (1.0 - factor) * forgotten
    return min(max(factor, 1.0 / MOST), MOST)


@func
def balance(begin, end, former, p, lists, tables, mixes, edges, dt, acts, about):
    """Multiply the shares of the points in rows begin to end of near, all of two bodies, so that the contact holds what it held, and keep the account.

    former: a slot that the two had in the step before, or -1; p: one of their pairs; what they weigh at the points must be known.
    """
    rows, _, shapes, pairs, _, history, _, near, _ = tables
    s, t = np.uintp(pairs.shape[np.uintp(p), 0]), np.uintp(pairs.shape[np.uintp(p), 1])
    a, b = moving_row(s, shapes, about.parts), moving_row(t, shapes, about.parts)
    away = away_of(s, t, a, b, rows, edges, about.periodic)
    now = draw_up(begin, end, away, near, about.account)
    if former >= 0:
        then = load_account(history.account, np.uintp(former))
        v = sub(velocity_at(rows, b), velocity_at(rows, a))
        mix = acts.mix_of(mixes, 0 if about.uniform else pairs.mix[np.uintp(p)])
        phase = phase_of(begin, end, near, mix, dt, about.account, acts)
        age = min(then.age + phase, 2.0 * LASTS)
        forgotten = 1.0 - math.exp(-phase / FORGETS) if age > LASTS else 0.0
        factor = factor_of(then, now, v, spin_at(rows, a), spin_at(rows, b), dt, about.account, forgotten)
        now = Account(now.depth, factor, now.shift, now.turn_a, now.turn_b, age)
    for row in range(begin, end):
        k = np.uintp(row)
        near[k, SHARE] *= now.factor
        put_account(history.account, np.uintp(lists[0][k]), now)


@func
def no_account(begin, end, former, p, lists, tables, mixes, edges, dt, acts, about):
    """In place of `balance` where nobody keeps account."""


def radius_row(q, spheres, bodies, shapes, parts, pairs, points):
    """Give all points of pair q the reduced radius of the balls that stand for its two shapes; a wall has none."""
    if points.count[q] > 0:
        s, t = pairs.shape[q + spheres, 0], pairs.shape[q + spheres, 1]
        one = bodies.scale[shapes.body[s]] * parts.ball[shapes.part[s]]
        two = bodies.scale[shapes.body[t]] * parts.ball[shapes.part[t]]
        radius = one * two / (one + two) if two > 0.0 else one
        for c in range(pairs.slot[q], pairs.slot[q + 1]):
            points.radius[c] = radius


def even_radii(state):
    """Give the contact points of a State radii that do not depend on where its bodies touch."""
    bodies, shapes, parts = state.kernel_tables[:3]
    count = len(state.pairs.shape) - state.spheres_count
    kernel(radius_row)(count, state.spheres_count, bodies, shapes, parts, state.pairs, state.points)

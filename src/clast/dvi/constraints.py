"""Hard contacts: the buffers of all contacts of one step, and the passes over contacts and over bodies.

The names are those of Negrut et al. 2010: gamma is the impulse of a contact, D^T v the velocity of one body against the
other there, b the bias, and eta the step 1 / size. Impulses are kept in world axes: with the same friction in all
directions no tangents are needed, D is the way an impulse at a point acts on a body, and nothing is assembled.

A contact pass reads the velocities of two bodies and writes one row of its own; a body pass adds up what the contacts of a
body do to it, in the order of the contacts. Both take chunks of rows; the chunks are of fixed size.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from ..broad.near import image, repeats
from ..kernels import primitives
from ..kernels.backend import func, kernel
from ..kernels.rows import PER_INERTIA, PER_MASS, SPIN, VELOCITY, centre_at, put_vector, spin_at, velocity_at
from ..kernels.vec import add, cross, dot, load, scale, sub
from ..motion.rotation import inverse_at, per_mass_of_turning, turn_of
from .projections import project3, project6

CHUNK = 256  # rows a task
WIDTH = 64  # contacts in lanes
BESIDE = 1e-9  # part of what a push along the normal does above which it counts as one beside the centre
SWIFT = 0.5  # part of its size that a body may go in a step and still be left to contacts that were foreseen

# Bound to the kernels: what the scene has. Only the row functions see what is bound; functions they call are told.
COUPLES = False  # rolling or spinning friction: cones of width 6
SOFT = False  # some contacts are compliant


class Mixes(NamedTuple):
    """Combined materials, one row per pair of materials."""

    friction: np.ndarray  # (m,)
    restitution: np.ndarray  # (m,)
    rolling_friction: np.ndarray  # (m,)
    spinning_friction: np.ndarray  # (m,)
    cohesion: np.ndarray  # (m,) [N]
    compliance: np.ndarray  # (m,) [m/N]


class Step(NamedTuple):
    """What the constraints of a step are made with."""

    dt: float  # [s]
    slack: float  # [m], contacts wider open than this, now and at the end of the step, take no part
    stabilisation: float  # part of an overlap that a step takes away
    recovery: float  # [m/s], at the most
    threshold: float  # [m/s], slower impacts do not rebound
    gravity: tuple  # (3,) [m/s^2]
    edges: tuple  # (6,) lengths of the periodic box [m] and their inverses


class Near(NamedTuple):
    """Contact points within reach, in the order of the bodies' rows, whatever the order of the neighbour list."""

    slot: np.ndarray  # (k,) int64, rows of ContactPoints
    pair: np.ndarray  # (k,) int32, rows of Pairs


class Constraints(NamedTuple):
    """One row per contact point that takes part in the step, in the order of Near."""

    body: np.ndarray  # (c,2) int32, rows of Bodies
    slot: np.ndarray  # (c,) int64, row of ContactPoints
    pair: np.ndarray  # (c,) int32, row of Pairs
    normal: np.ndarray  # (c,3) unit, from the first to the second body
    point: np.ndarray  # (c,3) [m], middle of the gap
    arm: np.ndarray  # (c,6) [m], from the centre of each body to the point of its own surface
    gap: np.ndarray  # (c,) [m], at the start of the step
    bias: np.ndarray  # (c,) [m/s], b of eq. (10): gap over time step, limited, or what restitution asks for
    limit: np.ndarray  # (c,2) friction and largest pull [N s], or (c,4) with rolling and spinning friction
    size: np.ndarray  # (c,2) [1/kg], diagonal of the own block of D^T M^-1 D: along the normal, mean of the rest
    soft: np.ndarray  # (c,) [1/kg], compliance over the square of the time step; (0,) if all contacts are rigid
    length: np.ndarray  # (c,) [m], what couples are divided by


def empty_constraints(count, couples=False, soft=False):
    """Constraints with room for `count` rows; what a scene does not have takes no room and no time."""
    return Constraints(
        body=np.empty((count, 2), np.int32),
        slot=np.empty(count, np.int64),
        pair=np.empty(count, np.int32),
        normal=np.empty((count, 3)),
        point=np.empty((count, 3)),
        arm=np.empty((count, 6)),
        gap=np.empty(count),
        bias=np.empty(count),
        limit=np.empty((count, 4 if couples else 2)),
        size=np.empty((count, 2)),
        soft=np.empty(count if soft else 0),
        length=np.empty(count),
    )


# Which contact points there are.


def count_row(j, order, many, count):
    """Contact points of the j-th pair in the order of the rows of bodies, pair order[j] of the list."""
    count[j] = many[order[j]]


def near_row(j, order, start, slot, gap, near):
    """Write the contact points of that pair."""
    p, k = order[j], start[j]
    for c in range(slot[p], slot[p + 1]):
        if k < start[j + 1] and gap[c] < np.inf:
            near.slot[k], near.pair[k] = c, p
            k += 1


def find_near(pairs, points, order):
    """Near, of the pairs (p,) of the list in this order."""
    count = np.empty(len(order), np.int32)
    kernel(count_row)(len(order), order, points.count, count)
    start = primitives.scan(count)
    near = Near(np.empty(int(start[-1]), np.int64), np.empty(int(start[-1]), np.int32))
    kernel(near_row)(len(order), order, start, pairs.slot, points.gap, near)
    return near


@func
def arm_of(i, x, rows, edges, periodic):
    """From the centre of body i to the point x, to the nearest image of it."""
    d = sub(x, centre_at(rows, i))
    if periodic:
        d = (image(d[0], edges[0], edges[3]), image(d[1], edges[1], edges[4]), image(d[2], edges[2], edges[5]))
    return d


@func
def arms_of(a, b, x, n, gap, rows, edges, periodic):
    """From the centres of two bodies to the points of their surfaces that are to meet, s_A and s_B of the paper."""
    half = scale(0.5 * gap, n)
    return arm_of(a, sub(x, half), rows, edges, periodic), arm_of(b, add(x, half), rows, edges, periodic)


@func
def opening(a, b, p, q, rows):
    """Velocity of body b at its arm q against body a at its arm p: D^T v of eq. (15)."""
    va = add(velocity_at(rows, a), cross(spin_at(rows, a), p))
    vb = add(velocity_at(rows, b), cross(spin_at(rows, b), q))
    return sub(vb, va)


# Preprocessing: which of the measured contacts take part, and what they are like.


@func
def world_point(s, c, rows, points):
    """Contact point c of shape s, the first of its pair, in the world [m]."""
    return add(centre_at(rows, s), load(points.arm, c))


def keep_chunk(c, chunk, step, rows, shape_body, span, pairs, mixes, points, near, keep):
    """Which contact points of a chunk may be closed at the end of the step, at the velocities that bodies have.

    Sliding contacts are lifted by the friction coefficient times the way they slide in one step (the price of the
    cone problem), so these count as near. Open contacts of bodies that go far, see `Nearby._look_ahead`, are left out: the normal
    that they have now is not the one with which the bodies will meet, if they meet at all.
    """
    dt = step.dt
    for row in range(c * chunk, min(len(near.slot), (c + 1) * chunk)):
        i, p = np.uintp(near.slot[np.uintp(row)]), np.uintp(near.pair[np.uintp(row)])
        s = np.uintp(pairs.shape[p, 0])
        a, b = np.uintp(shape_body[s]), np.uintp(shape_body[np.uintp(pairs.shape[p, 1])])
        n, gap = load(points.normal, i), points.gap[i]
        arms = arms_of(a, b, world_point(s, i, rows, points), n, gap, rows, step.edges, repeats(step.edges))
        u = opening(a, b, arms[0], arms[1], rows)
        falls = (1.0 if rows[b, PER_MASS] > 0.0 else 0.0) - (1.0 if rows[a, PER_MASS] > 0.0 else 0.0)
        normal = dot(u, n)
        t = sub(u, scale(normal, n))
        slide = mixes.friction[np.uintp(pairs.mix[p])] * math.sqrt(dot(t, t))
        ahead = gap + dt * (normal + dt * falls * dot(step.gravity, n) - slide)
        size = min(span[a], span[b])
        afar = 0.0 < size < np.inf and gap > step.slack and dt * math.sqrt(dot(u, u)) > SWIFT * size
        keep[np.uintp(row)] = 1 if min(gap, ahead) <= step.slack and not afar else 0


def build_chunk(c, chunk, step, rows, inverse, shape_body, ball, held, pairs, mixes, points, near, constraints):
    """Fill one chunk of Constraints from the contact points in `near`, those that take part.

    held (n,): which bodies joints hold, or (0,); their overlaps are parted by velocities, those of others by moving bodies, see `clast.dvi.overlaps`.
    """
    dt = step.dt
    per_step = 1.0 / dt
    for row in range(c * chunk, min(len(near.slot), (c + 1) * chunk)):
        i = np.uintp(row)
        k, p = np.uintp(near.slot[i]), np.uintp(near.pair[i])
        s, t = np.uintp(pairs.shape[p, 0]), np.uintp(pairs.shape[p, 1])
        a, b = np.uintp(shape_body[s]), np.uintp(shape_body[t])
        n, x, gap = load(points.normal, k), world_point(s, k, rows, points), points.gap[k]
        m = np.uintp(pairs.mix[p])
        one, two = arms_of(a, b, x, n, gap, rows, step.edges, repeats(step.edges))
        u = dot(opening(a, b, one, two, rows), n)
        bias, restitution, compliance = gap * per_step, mixes.restitution[m], mixes.compliance[m]
        if compliance == 0.0 and gap < 0.0:
            by_speed = len(held) > 0 and (held[a] != 0 or held[b] != 0)
            bias = max(step.stabilisation * bias, -step.recovery) if by_speed else 0.0
        if restitution > 0.0 and u < -step.threshold and gap + dt * u < 0.0:
            # What the step's gravity takes from a rebound comes off at once, or the rise during the step would be a gift.
            falls = (1.0 if rows[b, PER_MASS] > 0.0 else 0.0) - (1.0 if rows[a, PER_MASS] > 0.0 else 0.0)
            bias = min(bias, restitution * u - dt * falls * dot(step.gravity, n))
        soft = compliance * per_step * per_step
        # Against a wall the reduced radius is that of the particle.
        length = ball[s] * ball[t] / (ball[s] + ball[t]) if ball[t] > 0.0 else ball[s]
        constraints.body[i, 0], constraints.body[i, 1] = a, b
        constraints.slot[i], constraints.pair[i] = k, p
        for j in range(3):
            constraints.normal[i, j] = n[j]
            constraints.point[i, j] = x[j]
            constraints.arm[i, j], constraints.arm[i, 3 + j] = one[j], two[j]
        constraints.gap[i], constraints.bias[i], constraints.length[i] = gap, bias, length
        constraints.limit[i, 0] = mixes.friction[m]
        constraints.limit[i, 1] = mixes.cohesion[m] * dt if gap <= step.slack else 0.0
        if SOFT:
            constraints.soft[i] = soft
        if COUPLES:
            constraints.limit[i, 2], constraints.limit[i, 3] = mixes.rolling_friction[m], mixes.spinning_friction[m]
        constraints.size[i, 0], constraints.size[i, 1] = block_size(
            a, b, one, two, n, length, soft, rows, inverse, COUPLES
        )


@func
def own_share(i, r, n, rows, inverse):
    """What body i adds to the block of a contact at its arm r: along the normal n, its trace [1/kg], and the trace of its inverse
    inertia [1/(kg m^2)]."""
    along = rows[i, PER_MASS] + per_mass_of_turning(r, n, inverse_at(i, rows, inverse))
    spin = inverse[i, 0] + inverse[i, 1] + inverse[i, 2] if len(inverse) > 0 else 3.0 * rows[i, PER_INERTIA]
    return along, 3.0 * rows[i, PER_MASS] + spin * dot(r, r) - dot(r, turn_of(i, r, rows, inverse)), spin


@func
def block_size(a, b, one, two, n, length, soft, rows, inverse, couples):
    """Diagonal of the contact's own block of D^T M^-1 D [1/kg]: along the normal, and the mean of the rest."""
    along, whole, spin = own_share(a, one, n, rows, inverse)
    along_b, whole_b, spin_b = own_share(b, two, n, rows, inverse)
    along, rest = along + along_b, whole + whole_b - along - along_b
    if couples:
        return along + soft, (rest + length * length * (spin + spin_b)) / 5.0
    return along + soft, 0.5 * rest


# The iteration: bodies take impulses up, contacts see velocities.


def body_chunk(c, chunk, rows, inverse, free, start, entry, arm, length, impulse):
    """Velocities of one chunk of bodies under the impulses of all their contacts: eq. (14).

    free (n,6): velocity and spin without contacts; start, entry: contacts of a body, 2 * contact + side.
    """
    for row in range(c * chunk, min(len(free), (c + 1) * chunk)):
        i = np.uintp(row)
        per_mass = rows[i, PER_MASS]
        if per_mass == 0.0:
            continue
        fx, fy, fz = 0.0, 0.0, 0.0
        tx, ty, tz = 0.0, 0.0, 0.0
        for at in range(start[i], start[i + np.uintp(1)]):
            e = entry[np.uintp(at)]
            k = np.uintp(e >> 1)
            sign = 1.0 if e & 1 else -1.0
            gx, gy, gz = sign * impulse[k, 0], sign * impulse[k, 1], sign * impulse[k, 2]
            own = np.uintp(3 * (e & 1))
            ax, ay, az = arm[k, own], arm[k, own + np.uintp(1)], arm[k, own + np.uintp(2)]
            fx += gx
            fy += gy
            fz += gz
            tx += ay * gz - az * gy
            ty += az * gx - ax * gz
            tz += ax * gy - ay * gx
            if COUPLES:
                lever = sign * length[k]
                tx += lever * impulse[k, 3]
                ty += lever * impulse[k, 4]
                tz += lever * impulse[k, 5]
        w = turn_of(i, (tx, ty, tz), rows, inverse)
        put_vector(
            rows, i, VELOCITY, (free[i, 0] + per_mass * fx, free[i, 1] + per_mass * fy, free[i, 2] + per_mass * fz)
        )
        put_vector(rows, i, SPIN, (free[i, 3] + w[0], free[i, 4] + w[1], free[i, 5] + w[2]))


@func
def arms(i, constraints):
    """Arms (3,) [m] of constraint i, of the first and of the second body."""
    arm = constraints.arm
    return (arm[i, 0], arm[i, 1], arm[i, 2]), (arm[i, 3], arm[i, 4], arm[i, 5])


def contact_chunk(c, chunk, rows, constraints, shift, impulse, out):
    """u = D^T v + b of one chunk of contacts, with the compliance and the shift of the Coulomb correction."""
    for row in range(c * chunk, min(len(constraints.bias), (c + 1) * chunk)):
        i = np.uintp(row)
        a, b = np.uintp(constraints.body[i, 0]), np.uintp(constraints.body[i, 1])
        n = load(constraints.normal, i)
        one, two = arms(i, constraints)
        u = opening(a, b, one, two, rows)
        along = constraints.bias[i] + shift[i]
        if SOFT:
            along += constraints.soft[i] * (impulse[i, 0] * n[0] + impulse[i, 1] * n[1] + impulse[i, 2] * n[2])
        out[i, 0], out[i, 1], out[i, 2] = u[0] + along * n[0], u[1] + along * n[1], u[2] + along * n[2]
        if COUPLES:
            for j in range(3):
                out[i, 3 + j] = constraints.length[i] * (rows[b, SPIN + j] - rows[a, SPIN + j])


def relax_block(block, rows, constraints, shift, omega, relaxation, impulse):
    """The step of the fixed point iteration for one block of contacts, eq. (12), in place.

    gamma <- relaxation P(gamma - omega eta u) + (1 - relaxation) gamma; u is not stored. Velocities are gathered 64
    contacts at a time into lanes, over which the projection runs as vector instructions; without couples, that is.
    """
    k: Any
    lane = np.empty((14, WIDTH))
    first, last = block * CHUNK, min(len(shift), (block + 1) * CHUNK)
    if COUPLES:
        for row in range(first, last):
            relax_one(np.uintp(row), rows, constraints, shift, omega, relaxation, impulse, SOFT)
        return
    for start in range(first, last, WIDTH):
        used = min(WIDTH, last - start)
        gather(start, used, rows, constraints, shift, impulse, lane, SOFT)
        for k in range(WIDTH):
            n = (lane[3, k], lane[4, k], lane[5, k])
            u = (lane[0, k], lane[1, k], lane[2, k])
            g = (lane[6, k], lane[7, k], lane[8, k])
            along = dot(u, n)
            ahead, across = omega / lane[12, k], omega / lane[13, k]
            target = sub(g, add(scale(ahead * (along + lane[9, k]) - across * along, n), scale(across, u)))
            new = project3(target, n, lane[10, k], lane[11, k], lane[13, k] / lane[12, k])
            for m in range(3):
                lane[6 + m, k] = relaxation * new[m] + (1.0 - relaxation) * g[m]
        for j in range(used):
            k, i = np.uintp(j), np.uintp(start + j)
            impulse[i, 0], impulse[i, 1], impulse[i, 2] = lane[6, k], lane[7, k], lane[8, k]


@func
def gather(start, used, rows, constraints, shift, impulse, lane, soft):
    """Write what the projection needs of so many contacts from `start` on into the lanes.

    A function of its own, because the row that makes the lanes counts references to all arrays of a table at every look into it.
    """
    for j in range(used):
        k, i = np.uintp(j), np.uintp(start + j)
        n = load(constraints.normal, i)
        one, two = arms(i, constraints)
        a, b = np.uintp(constraints.body[i, 0]), np.uintp(constraints.body[i, 1])
        lane[0, k], lane[1, k], lane[2, k] = opening(a, b, one, two, rows)
        lane[3, k], lane[4, k], lane[5, k] = n
        lane[6, k], lane[7, k], lane[8, k] = impulse[i, 0], impulse[i, 1], impulse[i, 2]
        lane[9, k] = constraints.bias[i] + shift[i]
        if soft:
            lane[9, k] += constraints.soft[i] * (n[0] * impulse[i, 0] + n[1] * impulse[i, 1] + n[2] * impulse[i, 2])
        lane[10, k], lane[11, k] = constraints.limit[i, 0], constraints.limit[i, 1]
        lane[12, k], lane[13, k] = constraints.size[i, 0], constraints.size[i, 1]
    for j in range(used, WIDTH):
        for m in range(14):
            lane[m, j] = 1.0


@func
def relax_one(i, rows, constraints, shift, omega, relaxation, impulse, is_soft):
    """The same for one contact with couples."""
    a, b = np.uintp(constraints.body[i, 0]), np.uintp(constraints.body[i, 1])
    n = load(constraints.normal, i)
    one, two = arms(i, constraints)
    u = opening(a, b, one, two, rows)
    g, couple = (impulse[i, 0], impulse[i, 1], impulse[i, 2]), (impulse[i, 3], impulse[i, 4], impulse[i, 5])
    turn = sub(spin_at(rows, b), spin_at(rows, a))
    extra = constraints.bias[i] + shift[i]
    if is_soft:
        extra += constraints.soft[i] * dot(g, n)
    spin = scale(constraints.length[i], turn)
    new, turned = answer(i, g, couple, u, spin, n, extra, omega, constraints, True)
    for j in range(3):
        impulse[i, j] = relaxation * new[j] + (1.0 - relaxation) * g[j]
        impulse[i, 3 + j] = relaxation * turned[j] + (1.0 - relaxation) * couple[j]


@func
def answer(i, g, couple, u, spin, n, extra, omega, constraints, couples):
    """Impulse and couple of contact i after a step against its velocity u, with `extra` along the normal, and its spin."""
    limit, size = constraints.limit, constraints.size
    along = dot(u, n)
    ahead, across = omega / size[i, 0], omega / size[i, 1]
    target = sub(g, add(scale(ahead * (along + extra) - across * along, n), scale(across, u)))
    ratio = size[i, 1] / size[i, 0]
    if couples:
        wanted = sub(couple, scale(across, spin))
        return project6(target, wanted, n, limit[i, 0], limit[i, 1], limit[i, 2], limit[i, 3], ratio)
    return project3(target, n, limit[i, 0], limit[i, 1], ratio), couple


# Gauss-Seidel: contacts of one colour share no free body, so each may change the velocities of its two bodies at once. This
# is the one place where a row writes what is not its own.


def sweep_row(k, order, rows, inverse, constraints, shift, impulse):
    """One contact takes the impulse that its own block asks for, and its bodies take the change up.

    The constraints stand in the order of the colours; shift and impulse in their own, contact order[k].
    """
    k, i = np.uintp(k), np.uintp(order[np.uintp(k)])
    a, b = np.uintp(constraints.body[k, 0]), np.uintp(constraints.body[k, 1])
    n, length = load(constraints.normal, k), constraints.length[k]
    one, two = arms(k, constraints)
    u = opening(a, b, one, two, rows)
    g = (impulse[i, 0], impulse[i, 1], impulse[i, 2])
    couple = spin = (0.0, 0.0, 0.0)
    if COUPLES:
        couple = (impulse[i, 3], impulse[i, 4], impulse[i, 5])
        spin = scale(length, sub(spin_at(rows, b), spin_at(rows, a)))
    extra = constraints.bias[k] + shift[i]
    if SOFT:
        extra += constraints.soft[k] * dot(g, n)
    # The block of two balls is diagonal, and the full step is exact. Others, cubes too, which are turned by what presses beside their centre, have a largest
    # eigenvalue up to their width, 3 or 6, times the mean of the diagonal; below two over that the energy falls whatever the block.
    omega = 1.0
    beside, also = cross(one, n), cross(two, n)
    turned_by = rows[a, PER_INERTIA] * dot(beside, beside) + rows[b, PER_INERTIA] * dot(also, also)
    clumps = len(inverse) > 0 or turned_by > BESIDE * constraints.size[k, 0]
    if clumps or COUPLES:
        omega = 0.3 if clumps and COUPLES else 0.6
    new, turned = answer(k, g, couple, u, spin, n, extra, omega, constraints, COUPLES)
    impulse[i, 0], impulse[i, 1], impulse[i, 2] = new
    if COUPLES:
        impulse[i, 3], impulse[i, 4], impulse[i, 5] = turned
    change, change_couple = sub(new, g), scale(length, sub(turned, couple))
    push(a, -1.0, one, change, change_couple, rows, inverse)
    push(b, 1.0, two, change, change_couple, rows, inverse)


@func
def push(i, sign, arm, change, couple, rows, inverse):
    """Give body i the impulse at its arm, and the couple."""
    if rows[i, PER_MASS] > 0.0:
        torque = add(cross(arm, change), couple)
        w = turn_of(i, scale(sign, torque), rows, inverse)
        for j in range(3):
            rows[i, VELOCITY + j] += sign * rows[i, PER_MASS] * change[j]
            rows[i, SPIN + j] += w[j]

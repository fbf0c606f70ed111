"""Joints as rows of equations: what each joint demands, the factorisation of all of them, and the multipliers.

A joint has up to six rows. Row r has a violation Psi [m or rad], a Jacobian J (12,) of the velocity and spin of body a and of
body b, and a rate dPsi/dt at rest [m/s or rad/s], which motors make. The multipliers of J v = -rate follow from the matrix
S = J M^-1 J^T, a sparse symmetric matrix of blocks of 6 x 6 numbers, one row of blocks per joint. Rows a joint does not have
are zero in J and one on the diagonal of S.

Joints that hang together through free bodies make a group. One row of these kernels is one group: it writes the rows of its own
joints and its own free bodies and nothing else. Within a group everything runs in the order of elimination, in one thread.
"""

import math
from typing import NamedTuple

import numpy as np

from ..broad.near import image
from ..kernels.backend import func, part
from ..kernels.vec import (
    add,
    cross,
    dot,
    load,
    load4,
    load_matrix,
    matrix_vector,
    norm,
    quat_matrix,
    quat_multiply,
    rotate,
    scale,
    sub,
    unrotate,
)
from ..motion.rotation import tumble

ROWS = 6  # of a joint, at the most
COMPLIANCE = 1e-10  # added to the diagonal of S, relative to it: closed loops demand some things twice
PASSES = 6  # of refinement, at the most; they take the compliance out again
ACCURACY = 1e-12  # of J v = -rate, relative to what it was before
CLOSED = 1e-11  # [m or rad], below this a joint counts as closed
NEWTON = 40  # steps towards closed joints, at the most


class Assembly(NamedTuple):
    """All joints in the order of elimination, group after group, and the bodies they join, one *slot* each."""

    # Bodies; the last slot is the world.
    position: np.ndarray  # (k,3) [m]
    orientation: np.ndarray  # (k,4)
    velocity: np.ndarray  # (k,6) velocity [m/s] and spin [rad/s] in world axes
    next_position: np.ndarray  # (k,3) [m], at the end of the step
    next_orientation: np.ndarray  # (k,4)
    next_spin: np.ndarray  # (k,3) [rad/s]
    lightness: np.ndarray  # (k,) [1/kg], zero for bodies that are not free
    inertia: np.ndarray  # (k,3,3) [m^2], per mass, in body axes
    inverse: np.ndarray  # (k,3,3) [1/m^2], its inverse
    # Joints.
    slot: np.ndarray  # (j,2) int32
    held: np.ndarray  # (j,2) bool
    locked: np.ndarray  # (j,6) bool
    point: np.ndarray  # (j,2,3) [m]
    frame: np.ndarray  # (j,2,4)
    rise: np.ndarray  # (j,) [m]
    motor: np.ndarray  # (j,2) bool
    goal: np.ndarray  # (j,3) length [m], angle [rad], travel [m] that a joint or motor imposes
    goal_rate: np.ndarray  # (j,3) their rates
    rows: np.ndarray  # (j,) int8, how many rows the joint has
    coordinate: np.ndarray  # (j,2) angle about z [rad], counted over full turns, and travel along z or distance [m]
    violation: np.ndarray  # (j,6)
    rate: np.ndarray  # (j,6)
    jacobian: np.ndarray  # (j,6,12)
    response: np.ndarray  # (j,6,12) M^-1 J^T: the change of the two velocities by a unit of impulse
    impulse: np.ndarray  # (j,6) multipliers so far [N s or N m s]
    right: np.ndarray  # (j,6) right-hand side, then solution
    # Groups and the factor of S.
    group_start: np.ndarray  # (g+1,) int32, joints of a group
    slot_start: np.ndarray  # (g+1,) int32, into group_slot
    group_slot: np.ndarray  # (k,) int32, the free bodies of a group
    column_start: np.ndarray  # (j+1,) int32, into block_row and block: the diagonal block, then those below
    block_row: np.ndarray  # (b,) int32
    block: np.ndarray  # (b,6,6)
    diagonal: np.ndarray  # (j,6) of S
    target_start: np.ndarray  # (j+1,) int32, into target
    target: np.ndarray  # (t,) int32, the blocks that a column changes when it is eliminated
    worst: np.ndarray  # (g,) largest violation that the last aim left [m or rad]


@func
def column(m, k):
    """Column k of a matrix."""
    return (m[0][k], m[1][k], m[2][k])


@func
def wrapped(angle):
    """The angle between -pi and pi."""
    return angle - 2.0 * math.pi * math.floor(angle / (2.0 * math.pi) + 0.5)


@func
def write_row(jacobian, j, r, axis, turn_a, turn_b):
    """Row r of joint j: the axis of the force, and of what it turns a and b about."""
    for k in range(3):
        jacobian[j, r, k] = -axis[k]
        jacobian[j, r, 3 + k] = -turn_a[k]
        jacobian[j, r, 6 + k] = axis[k]
        jacobian[j, r, 9 + k] = turn_b[k]


class Told(NamedTuple):
    """Columns of Assembly that tell what joints demand."""

    slot: np.ndarray
    held: np.ndarray
    locked: np.ndarray
    point: np.ndarray
    frame: np.ndarray
    rise: np.ndarray
    motor: np.ndarray
    goal: np.ndarray


@func
def told(t):
    """What the joints of an Assembly demand; `demands` is a call, to which the whole table would be hundreds of numbers."""
    return Told(t.slot, t.held, t.locked, t.point, t.frame, t.rise, t.motor, t.goal)


@part
def demands(j, edges, position, orientation, told, coordinate, violation, jacobian):
    """Violation and Jacobian of all rows of joint j, and its free coordinates, with the bodies at these poses."""
    slot, held, locked, point, frame, rise, motor, goal = told
    a, b = slot[j, 0], slot[j, 1]
    qa, qb = load4(orientation, a), load4(orientation, b)
    fa, fb = quat_multiply(qa, load4(frame[j], 0)), quat_multiply(qb, load4(frame[j], 1))
    axes, other = quat_matrix(fa), quat_matrix(fb)
    ra, rb = rotate(qa, load(point[j], 0)), rotate(qb, load(point[j], 1))
    arm = add(sub(load(position, b), load(position, a)), rb)
    d = sub(arm, ra)
    near = (
        image(d[0], edges[0], edges[3]),
        image(d[1], edges[1], edges[4]),
        image(d[2], edges[2], edges[5]),
    )
    arm = add(arm, sub(near, d))
    d = near
    zero = (0.0, 0.0, 0.0)
    x, y, z = column(axes, 0), column(axes, 1), column(axes, 2)
    r = 0
    if not held[j, 0]:
        for k in range(3):
            if locked[j, k]:
                axis = column(axes, k)
                violation[j, r] = dot(axis, d)
                write_row(jacobian, j, r, axis, cross(arm, axis), cross(rb, axis))
                r += 1
        turns = int(locked[j, 3]) + int(locked[j, 4]) + int(locked[j, 5])
        if turns == 3:
            e = quat_multiply((fa[0], -fa[1], -fa[2], -fa[3]), fb)
            sign = 1.0 if e[0] >= 0.0 else -1.0
            w, i, k, m = sign * e[0], sign * e[1], sign * e[2], sign * e[3]
            violation[j, r], violation[j, r + 1], violation[j, r + 2] = 2.0 * i, 2.0 * k, 2.0 * m
            turn = matrix_vector(axes, (w, m, -k))
            write_row(jacobian, j, r, zero, turn, turn)
            turn = matrix_vector(axes, (-m, w, i))
            write_row(jacobian, j, r + 1, zero, turn, turn)
            turn = matrix_vector(axes, (k, -i, w))
            write_row(jacobian, j, r + 2, zero, turn, turn)
            r += 3
        elif turns == 2:
            # The free axis as b has it stays at right angles to the two others as a has them.
            free = 0 if not locked[j, 3] else (1 if not locked[j, 4] else 2)
            first, second = column(axes, (free + 1) % 3), column(axes, (free + 2) % 3)
            kept = column(other, free)
            violation[j, r], violation[j, r + 1] = -dot(second, kept), dot(first, kept)
            turn = cross(second, kept)
            write_row(jacobian, j, r, zero, turn, turn)
            turn = cross(kept, first)
            write_row(jacobian, j, r + 1, zero, turn, turn)
            r += 2
        elif turns == 1:
            # The two other axes, one as a has it and one as b has it, stay at right angles.
            lock = 0 if locked[j, 3] else (1 if locked[j, 4] else 2)
            first, second = column(axes, (lock + 1) % 3), column(other, (lock + 2) % 3)
            violation[j, r] = -dot(first, second)
            turn = cross(first, second)
            write_row(jacobian, j, r, zero, turn, turn)
            r += 1
        side = column(other, 0)
        angle = math.atan2(dot(side, y), dot(side, x))
        coordinate[j, 0] += wrapped(angle - coordinate[j, 0])
        coordinate[j, 1] = dot(z, d)
        if motor[j, 0]:
            violation[j, r] = wrapped(angle - goal[j, 1])
            write_row(jacobian, j, r, zero, z, z)
            r += 1
        if motor[j, 1]:
            violation[j, r] = dot(z, d) - goal[j, 2]
            write_row(jacobian, j, r, z, cross(arm, z), cross(rb, z))
            r += 1
    else:
        length = norm(d)
        axis = scale(1.0 / max(length, 1e-300), d)
        coordinate[j, 1] = length
        violation[j, r] = length - goal[j, 0]
        write_row(jacobian, j, r, axis, cross(arm, axis), cross(rb, axis))
        r += 1
        if held[j, 1]:
            violation[j, r] = dot(z, d) - rise[j]
            write_row(jacobian, j, r, z, cross(arm, z), cross(rb, z))
            r += 1
    for rest in range(r, ROWS):
        violation[j, rest] = 0.0
        for k in range(12):
            jacobian[j, rest, k] = 0.0


@func
def rates(j, t):
    """What the goals of joint j add to the rates of its rows."""
    last = t.rows[j] - 1
    for r in range(ROWS):
        t.rate[j, r] = 0.0
    if t.held[j, 0]:
        t.rate[j, 0] = -t.goal_rate[j, 0]
    else:
        if t.motor[j, 1]:
            t.rate[j, last] = -t.goal_rate[j, 2]
            last -= 1
        if t.motor[j, 0]:
            t.rate[j, last] = -t.goal_rate[j, 1]


@func
def responses(j, t):
    """M^-1 J^T of joint j."""
    for side in range(2):
        s, at = t.slot[j, side], 6 * side
        light = t.lightness[s]
        q, inverse = load4(t.orientation, s), load_matrix(t.inverse, s)
        for r in range(ROWS):
            turn = (t.jacobian[j, r, at + 3], t.jacobian[j, r, at + 4], t.jacobian[j, r, at + 5])
            if light > 0.0:
                turn = scale(light, rotate(q, matrix_vector(inverse, unrotate(q, turn))))
            else:
                turn = (0.0, 0.0, 0.0)
            for k in range(3):
                t.response[j, r, at + k] = light * t.jacobian[j, r, at + k]
                t.response[j, r, at + 3 + k] = turn[k]


@func
def fill_block(b, i, j, t):
    """Block b of S: what a unit of impulse of the rows of joint j does to the rows of joint i."""
    for r in range(ROWS):
        for c in range(ROWS):
            t.block[b, r, c] = 0.0
    for side in range(2):
        for other in range(2):
            if t.slot[i, side] == t.slot[j, other] and t.lightness[t.slot[i, side]] > 0.0:
                at, there = 6 * side, 6 * other
                for r in range(ROWS):
                    for c in range(ROWS):
                        total = 0.0
                        for k in range(6):
                            total += t.jacobian[i, r, at + k] * t.response[j, c, there + k]
                        t.block[b, r, c] += total


@func
def factor_diagonal(b, j, rows, block, diagonal):
    """Cholesky factor of the diagonal block of joint j, in place, below and on the diagonal."""
    for c in range(rows):
        pivot = block[b, c, c]
        for k in range(c):
            pivot -= block[b, c, k] * block[b, c, k]
        # What is demanded twice leaves a pivot of nothing but the compliance and rounding.
        pivot = math.sqrt(max(pivot, 0.5 * COMPLIANCE * diagonal[j, c]))
        block[b, c, c] = pivot
        for r in range(c + 1, rows):
            total = block[b, r, c]
            for k in range(c):
                total -= block[b, r, k] * block[b, c, k]
            block[b, r, c] = total / pivot


@func
def eliminate(j, t):
    """Take the rows of joint j out of the equations of those that come later in its group."""
    first, last = t.column_start[j], t.column_start[j + 1]
    rows = t.rows[j]
    factor_diagonal(first, j, rows, t.block, t.diagonal)
    for b in range(first + 1, last):
        for r in range(t.rows[t.block_row[b]]):
            for c in range(rows):
                total = t.block[b, r, c]
                for k in range(c):
                    total -= t.block[b, r, k] * t.block[first, c, k]
                t.block[b, r, c] = total / t.block[first, c, c]
    entry = t.target_start[j]
    for b in range(first + 1, last):
        below = t.rows[t.block_row[b]]
        for d in range(first + 1, b + 1):
            beside, goal = t.rows[t.block_row[d]], t.target[entry]
            entry += 1
            for r in range(below):
                for c in range(beside):
                    total = 0.0
                    for k in range(rows):
                        total += t.block[b, r, k] * t.block[d, c, k]
                    t.block[goal, r, c] -= total


def prepare_group(g, t, active, edges):
    """Rows of all joints of a group at the present poses, and the factor of their S."""
    begin, end = t.group_start[g], t.group_start[g + 1]
    if not active[g]:
        end = begin
    for j in range(begin, end):
        demands(j, edges, t.position, t.orientation, told(t), t.coordinate, t.violation, t.jacobian)
        rates(j, t)
        responses(j, t)
    for j in range(begin, end):
        first = t.column_start[j]
        for b in range(first, t.column_start[j + 1]):
            fill_block(b, t.block_row[b], j, t)
        for r in range(t.rows[j]):
            t.diagonal[j, r] = max(t.block[first, r, r], 1e-300)
            t.block[first, r, r] += COMPLIANCE * t.diagonal[j, r]
    for j in range(begin, end):
        eliminate(j, t)


@func
def substitute(begin, end, t):
    """Solve S right = right for the joints of a group with the factor that is there."""
    for j in range(begin, end):
        first, rows = t.column_start[j], t.rows[j]
        for r in range(rows):
            total = t.right[j, r]
            for k in range(r):
                total -= t.block[first, r, k] * t.right[j, k]
            t.right[j, r] = total / t.block[first, r, r]
        for b in range(first + 1, t.column_start[j + 1]):
            i = t.block_row[b]
            for r in range(t.rows[i]):
                total = 0.0
                for c in range(rows):
                    total += t.block[b, r, c] * t.right[j, c]
                t.right[i, r] -= total
    for back in range(end - begin):
        j = end - 1 - back
        first, rows = t.column_start[j], t.rows[j]
        for b in range(first + 1, t.column_start[j + 1]):
            i = t.block_row[b]
            for c in range(rows):
                total = 0.0
                for r in range(t.rows[i]):
                    total += t.block[b, r, c] * t.right[i, r]
                t.right[j, c] -= total
        for up in range(rows):
            c = rows - 1 - up
            total = t.right[j, c]
            for r in range(c + 1, rows):
                total -= t.block[first, r, c] * t.right[j, r]
            t.right[j, c] = total / t.block[first, c, c]


@func
def apply(begin, end, t):
    """Give the impulses in `right` to the bodies, and add them to those so far."""
    for j in range(begin, end):
        for side in range(2):
            s, at = t.slot[j, side], 6 * side
            if t.lightness[s] > 0.0:
                for r in range(t.rows[j]):
                    for k in range(6):
                        t.velocity[s, k] += t.response[j, r, at + k] * t.right[j, r]
        for r in range(t.rows[j]):
            t.impulse[j, r] += t.right[j, r]


def solve_group(g, t, active):
    """Impulses after which the velocities of a group obey its joints; groups that are not active are left alone."""
    begin, end = t.group_start[g], t.group_start[g + 1]
    if active[g] and end > begin:
        start = 0.0
        for turn in range(PASSES):
            worst = 0.0
            for j in range(begin, end):
                a, b = t.slot[j, 0], t.slot[j, 1]
                for r in range(t.rows[j]):
                    total = t.rate[j, r]
                    for k in range(6):
                        total += t.jacobian[j, r, k] * t.velocity[a, k] + t.jacobian[j, r, 6 + k] * t.velocity[b, k]
                    t.right[j, r] = -total
                    worst = max(worst, abs(total))
            if turn == 0:
                start = worst
            if worst <= ACCURACY * start:
                break
            substitute(begin, end, t)
            apply(begin, end, t)


def aim_group(g, t, active, edges, dt, most, scratch):
    """Change the velocities of a group along the present rows so that a drift over dt closes its joints.

    most: steps of Newton's method; with none, the violations at the end of the drift are found and nothing is changed.
    scratch (j,6,12): for Jacobians that nobody needs.
    """
    begin, end = t.group_start[g], t.group_start[g + 1]
    if active[g]:
        before = np.inf
        for turn in range(most + 1):
            for entry in range(t.slot_start[g], t.slot_start[g + 1]):
                s = t.group_slot[entry]
                v, w = load(t.velocity, s), (t.velocity[s, 3], t.velocity[s, 4], t.velocity[s, 5])
                x = add(load(t.position, s), scale(dt, v))
                q, w = tumble(load4(t.orientation, s), w, load_matrix(t.inertia, s), load_matrix(t.inverse, s), dt)
                t.next_position[s, 0], t.next_position[s, 1], t.next_position[s, 2] = x
                t.next_spin[s, 0], t.next_spin[s, 1], t.next_spin[s, 2] = w
                for k in range(4):
                    t.next_orientation[s, k] = q[k]
            worst = 0.0
            for j in range(begin, end):
                demands(j, edges, t.next_position, t.next_orientation, told(t), t.coordinate, t.violation, scratch)
                for r in range(t.rows[j]):
                    worst = max(worst, abs(t.violation[j, r]))
                    t.right[j, r] = -t.violation[j, r] / dt
            t.worst[g] = worst
            # Where rounding is all that is left, more steps change nothing.
            if turn == most or worst <= CLOSED or (turn > 3 and worst >= before and worst < 1e3 * CLOSED):
                break
            before = worst
            substitute(begin, end, t)
            apply(begin, end, t)

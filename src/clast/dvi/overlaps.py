"""Overlaps are taken away by moving bodies, not by giving them speed (split impulses).

A push that is a part of the velocity problem leaves its speed in the bodies and its impulse in the warm start, where it adds up from
step to step. With p the part of a long wave's error that the solver leaves in a step and b the part of an overlap that is pushed away, the velocity
of the wave, w, and its gap, x, go from step to step as

    w' = p (2 w - w_before) - (1 - p) b x / dt,    x' = x + dt w'

which grows without bound unless 1 - p > b / ((2 + b)(1 + 2 b)): for b = 0.2, unless a step solves 6.5 % of every wave. With b = 0 it falls
by sqrt(p) a step, whatever p is. So velocities know nothing of overlaps, and a second, frictionless problem that begins at zero and is
forgotten afterwards moves bodies apart, as little as possible in the sum of mass times square of the way.
"""

import copy
import math

import numpy as np

from ..kernels.backend import kernel
from ..kernels.rows import CENTRE, PER_INERTIA, PER_MASS, SPIN, SPINS, VELOCITIES, VELOCITY
from ..kernels.vec import dot, load, load4, quat_exponential, quat_multiply, scale, sub
from ..motion.rotation import near_unit
from . import solvers
from .constraints import CHUNK, arms, opening
from .others import ALONE, order_free

SLOP = 1e-3  # overlaps up to this part of a typical radius are left alone: contacts that rest neither open nor close
DEEP = 5e-3  # deeper ones are looked after in every step, others in every fourth
EVERY = 4
STUCK = 0.99  # part of the largest friction below which a contact did not slide
ITERATIONS = 20
PART = 0.1  # of the error at the start: the tolerance of the solve, which a thousandth of it ends sooner

# Bound to the kernels: what the scene has.
SOFT = False  # some contacts are compliant
COUPLES = False  # rolling or spinning friction


def push_chunk(c, chunk, step, slop, rows, constraints, bias):
    """bias (c,) [m/s] of one chunk of contacts: what bodies may come nearer (above 0) or must part (below) within the step, beside the way
    that their velocities take them."""
    for row in range(c * chunk, min(len(bias), (c + 1) * chunk)):
        i = np.uintp(row)
        a, b = np.uintp(constraints.body[i, 0]), np.uintp(constraints.body[i, 1])
        one, two = arms(i, constraints)
        speed = dot(opening(a, b, one, two, rows), load(constraints.normal, i))
        # The room that is left at the end of the step.
        room = (constraints.gap[i] + slop) / step.dt + speed
        if room < 0.0:
            room = max(step.stabilisation * room, -step.recovery)
            if SOFT and constraints.soft[i] > 0.0:
                room = 0.0
        bias[i] = room


def shift_chunk(c, chunk, dt, rows, pushed, orientation):
    """Move one chunk of bodies by the velocities in `pushed` (s,12) times the time step."""
    for row in range(c * chunk, min(len(orientation), (c + 1) * chunk)):
        i = np.uintp(row)
        if rows[i, PER_MASS] == 0.0:
            continue
        w = (pushed[i, SPIN], pushed[i, SPIN + 1], pushed[i, SPIN + 2])
        for j in range(3):
            rows[i, CENTRE + j] += dt * pushed[i, VELOCITY + j]
        if dot(w, w) > 0.0:
            q = near_unit(quat_multiply(quat_exponential(scale(dt, w)), load4(orientation, i)))
            orientation[i, 0], orientation[i, 1], orientation[i, 2], orientation[i, 3] = q


def hold_chunk(c, chunk, slop, slow, impulse, rows, constraints):
    """Take the bias from those of a chunk of contacts that stuck in the last step and have opened by less than the slop."""
    for row in range(c * chunk, min(len(impulse), (c + 1) * chunk)):
        i = np.uintp(row)
        if not (0.0 < constraints.gap[i] < slop and constraints.bias[i] > 0.0):
            continue
        if SOFT and constraints.soft[i] > 0.0:
            continue
        n, g = load(constraints.normal, i), load(impulse, i)
        pressed = dot(g, n)
        across = sub(g, scale(pressed, n))
        if not (pressed > 0.0 and math.sqrt(dot(across, across)) < STUCK * constraints.limit[i, 0] * pressed):
            continue
        if COUPLES:
            # What rolls or spins against friction is lifted as well as what slides.
            couple = (impulse[i, 3], impulse[i, 4], impulse[i, 5])
            spin, roll, twist = dot(couple, n), constraints.limit[i, 2], constraints.limit[i, 3]
            tumble = sub(couple, scale(spin, n))
            if roll > 0.0 and not math.sqrt(dot(tumble, tumble)) < STUCK * roll * pressed:
                continue
            if twist > 0.0 and not abs(spin) < STUCK * twist * pressed:
                continue
        a, b = np.uintp(constraints.body[i, 0]), np.uintp(constraints.body[i, 1])
        one, two = arms(i, constraints)
        if abs(dot(opening(a, b, one, two, rows), n)) < slow:
            constraints.bias[i] = 0.0


def hold(constraints, impulse, rows, size, slow):
    """Let contacts that stuck in the last step and have opened by less than the slop stay as they are, in place on their bias.

    Otherwise a contact that a small error has opened closes within the step, its bodies fall on each other, and the pile shivers on.
    impulse (c,width) [N s]: of the last step; rows (s,12): velocities before this one; slow [m/s]: what opens or closes faster rebounds or falls.
    """
    has = {"COUPLES": impulse.shape[1] == 6, "SOFT": len(constraints.soft) > 0}
    chunks = (len(impulse) + CHUNK - 1) // CHUNK
    kernel(hold_chunk, grain=4, **has)(chunks, CHUNK, SLOP * size, slow, impulse, rows, constraints)


def due(gap, size, soft, number, others=ALONE):
    """Whether overlaps are to be looked after in step `number`; gap (c,) [m], soft (c,): of compliant contacts, or (0,)."""
    hard = gap[soft == 0.0] if len(soft) else gap
    (deepest,) = others.largest(-float(hard.min(initial=0.0)))
    return deepest > DEEP * size or (deepest > SLOP * size and number % EVERY == 0)


def part_overlaps(cones, step, size, soft, orientation, workspace, held, by_speed):
    """Move bodies that overlap at the end of the step apart; returns the energy that this took [J] and the iterations.

    cones: BodyCones of the step, solved; step: Step; size [m]: a typical radius; orientation (n,4) of the bodies, in place; held (n,): bodies that joints
    hold, which stay where they are, or (0,); by_speed (c,): contacts of these.
    """
    constraints, rows, n, others = cones.constraints, cones.rows, len(cones.free), cones.others
    chunks = (cones.count + CHUNK - 1) // CHUNK
    bias = np.empty(cones.count)
    kernel(push_chunk, grain=4, SOFT=soft)(chunks, CHUNK, step, SLOP * size, rows, constraints, bias)
    bias[by_speed] = np.maximum(bias[by_speed], 0.0)
    (square,) = order_free(others, np.square(np.minimum(bias[: cones.told], 0.0)))
    if square == 0.0:
        return 0.0, 0
    pushed = rows.copy()
    pushed[:, VELOCITIES] = pushed[:, SPINS] = 0.0
    push = copy.copy(cones)
    push.joints = None
    if len(held):
        stays = np.flatnonzero(held)
        pushed[stays, PER_MASS] = pushed[stays, PER_INERTIA] = 0.0
        push.inverse = cones.inverse.copy()
        push.inverse[stays[stays < len(push.inverse)]] = 0.0
    push.limit, push.pulls = np.zeros_like(constraints.limit), False
    push.constraints = constraints._replace(bias=bias, limit=push.limit)
    push.rows, push.free, push.shift = pushed, np.zeros((n, 6)), np.zeros(cones.count)
    push.typical = 0.0  # there is no pressure yet that could be wrong as a whole
    curvature = workspace.curvature
    impulse = np.zeros((cones.count, cones.width))
    tolerance = PART * math.sqrt(square) / cones.norm
    found = solvers.solve(push, impulse, tolerance=tolerance, iterations=ITERATIONS, workspace=workspace)
    workspace.curvature = curvature
    kernel(shift_chunk, grain=4)((n + CHUNK - 1) // CHUNK, CHUNK, step.dt, rows, pushed, orientation[:n])
    free = rows[:n, PER_MASS] > 0.0
    lift = -(pushed[:n, VELOCITIES][free] * np.array(step.gravity)).sum(1) / rows[:n, PER_MASS][free]
    return max(step.dt * order_free(others, lift)[0], 0.0), found.iterations

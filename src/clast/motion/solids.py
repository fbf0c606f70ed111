"""Forces of pairs with an ellipsoid: the common normal followed from step to step, and the law at it.

The memory of such a pair holds, after slip and rolling angle, the last normal (3) and whether it touched (1). The last
normal is tried first: where it parts the two bodies nothing touches, and that costs one look. A pair that touched starts
Newton's method there; one that begins to touch starts afresh, so that the result does not depend on when the pair
came into the list.
"""

import math

import numpy as np

from ..backend import func
from ..contact.common_normal import GAP, LANES, LEAST, ROWS, STATE, N, solve_lanes
from ..contact.solids import LEAST_RADIUS, between, load_form, put_lane, settle, surface_point
from ..vec import add, cross, dot, load, scale, sub
from . import laws
from .curvature import contact_radius, wall_radius
from .dem import mix_of, roll_pair
from .laws import Mix, Touch

BLOCK = 256  # pairs a task

# Bound to each kernel, as in `clast.motion.dem`.
law = laws.hertz
ROLLING = False
PERIODIC = False
UNIFORM = False

# Rows of the second set of lanes, which the law reads and writes.
VELOCITY, SPIN_A, SPIN_B, SLIP, LIGHTNESS, MIX = 0, 3, 6, 9, 12, 13
FORCE, POINT, NORMAL_FORCE, RADIUS = 0, 3, 6, 7
LAW_ROWS = 20


@func
def touch_solids(d, m1, m2, n, gap, v, wa, wb, slip, lightness, mix, dt, law):
    """Answer of one pair: normal force, force on b, slip, arm from the centre of a to the contact point, radius.

    d (3,): from centre a to centre b; v (3,): velocity of centre b against a; wa, wb (3,): spins; lightness: sum of 1/mass.
    """
    arm = surface_point(m1, n)
    arm = (arm[0] + 0.5 * gap * n[0], arm[1] + 0.5 * gap * n[1], arm[2] + 0.5 * gap * n[2])
    v = sub(add(v, cross(wb, sub(arm, d))), cross(wa, arm))
    opening = dot(v, n)
    slide = sub(v, scale(opening, n))
    radius = contact_radius(m1, m2, n)
    touch = Touch(max(-gap, 0.0), -opening, n, slide, slip, 1.0 / lightness, radius)
    normal, shear, slip = law(touch, mix, dt)
    # Selected, not multiplied by zero: a law may have no answer where nothing touches.
    on = gap < 0.0
    normal = normal if on else 0.0
    force = (
        normal * n[0] + shear[0] if on else 0.0,
        normal * n[1] + shear[1] if on else 0.0,
        normal * n[2] + shear[2] if on else 0.0,
    )
    return normal, force, (slip[0] if on else 0.0, slip[1] if on else 0.0, slip[2] if on else 0.0), arm, radius


@func
def parted(d, m1, m2, n):
    """Whether the plane at right angles to n parts the two ellipsoids for certain; never for n = 0."""
    u1 = m1[0] * n[0] * n[0] + m1[1] * n[1] * n[1] + m1[2] * n[2] * n[2]
    u1 += 2.0 * (m1[3] * n[0] * n[1] + m1[4] * n[0] * n[2] + m1[5] * n[1] * n[2])
    u2 = m2[0] * n[0] * n[0] + m2[1] * n[1] * n[1] + m2[2] * n[2] * n[2]
    u2 += 2.0 * (m2[3] * n[0] * n[1] + m2[4] * n[0] * n[2] + m2[5] * n[1] * n[2])
    along = dot(n, d)
    return along * (1.0 - 1e-12) > math.sqrt(max(u1, 0.0)) + math.sqrt(max(u2, 0.0))


@func
def forget(p, pairs, rolling):
    """Contact p does not touch: no force, no slip; its last normal stays."""
    for i in range(6):
        pairs.action[p, i] = 0.0
    for i in range(6 if rolling else 3):
        pairs.memory[p, i] = 0.0
    if rolling:
        for i in range(3):
            pairs.couple[p, i] = 0.0
    pairs.memory[p, (6 if rolling else 3) + 3] = 0.0


@func
def finish(p, k, lane, more, rows, pairs, mixes, dt, rolling):
    """Write the answer in lane k to contact p."""
    first = 6 if rolling else 3
    for i in range(6):
        pairs.action[p, i] = more[FORCE + i, k]
    for i in range(3):
        pairs.memory[p, i] = more[SLIP + i, k]
        pairs.memory[p, first + i] = lane[N + i, k]
    pairs.memory[p, first + 3] = 1.0 if lane[GAP, k] < 0.0 else 0.0
    if rolling:
        a, b = pairs.shape[p, 0], pairs.shape[p, 1]
        turning = (rows[b, 8] - rows[a, 8], rows[b, 9] - rows[a, 9], rows[b, 10] - rows[a, 10])
        n = (lane[N, k], lane[N + 1, k], lane[N + 2, k])
        roll_pair(p, turning, more[NORMAL_FORCE, k], -lane[GAP, k], more[RADIUS, k], n, pairs, mixes, dt)


def solid_block(block, first, count, rows, forms, pairs, mixes, edges, dt):
    """Forces of a block of pairs, rows first to first + count of the list."""
    pair, memory = pairs.shape, pairs.memory
    remembered = 6 if ROLLING else 3
    waiting = np.empty(BLOCK, np.int64)
    # Made by np.empty, whose strides the compiler knows; of np.ones it does not, and makes no vector instructions.
    lane = np.empty((ROWS, LANES))
    more = np.empty((LAW_ROWS, LANES))
    for i in range(LAW_ROWS):
        for k in range(LANES):
            more[i, k] = 1.0
    mix = mix_of(mixes, 0)
    begin = first + block * BLOCK
    found = 0
    for p in range(begin, min(begin + BLOCK, first + count)):
        a, b = np.uintp(pair[p, 0]), np.uintp(pair[p, 1])
        d = between(a, b, rows, edges, PERIODIC)
        n = (memory[p, remembered], memory[p, remembered + 1], memory[p, remembered + 2])
        if parted(d, load_form(forms, a), load_form(forms, b), n):
            forget(p, pairs, ROLLING)
        else:
            waiting[found] = p
            found += 1
    for at in range(0, found, LANES):
        used = min(LANES, found - at)
        for k in range(used):
            p = np.uintp(waiting[at + k])
            a, b = np.uintp(pair[p, 0]), np.uintp(pair[p, 1])
            put_lane(lane, k, between(a, b, rows, edges, PERIODIC), a, b, forms)
            lane[LEAST, k] = forms[a, LEAST_RADIUS] + forms[b, LEAST_RADIUS]
            lane[STATE, k] = memory[p, remembered + 3]
            for i in range(3):
                lane[N + i, k] = memory[p, remembered + i]
                more[VELOCITY + i, k] = rows[b, 4 + i] - rows[a, 4 + i]
                more[SPIN_A + i, k] = rows[a, 8 + i]
                more[SPIN_B + i, k] = rows[b, 8 + i]
                more[SLIP + i, k] = memory[p, i]
            more[LIGHTNESS, k] = rows[a, 7] + rows[b, 7]
            if not UNIFORM:
                m = np.uintp(pairs.mix[p])
                for i in range(7):
                    more[MIX + i, k] = mixes[m, i]
        solve_lanes(lane, used)
        for k in range(used):
            if lane[STATE, k] == 0.0:
                p = waiting[at + k]
                n, gap = settle(pair[p, 0], pair[p, 1], rows, forms, edges, PERIODIC)
                lane[N, k], lane[N + 1, k], lane[N + 2, k] = n
                lane[GAP, k] = gap
        for k in range(LANES):
            if not UNIFORM:
                mix = Mix(more[13, k], more[14, k], more[15, k], more[16, k], more[17, k], more[18, k], more[19, k])
            normal, force, slip, arm, radius = touch_solids(
                (lane[0, k], lane[1, k], lane[2, k]),
                (lane[3, k], lane[4, k], lane[5, k], lane[6, k], lane[7, k], lane[8, k]),
                (lane[9, k], lane[10, k], lane[11, k], lane[12, k], lane[13, k], lane[14, k]),
                (lane[N, k], lane[N + 1, k], lane[N + 2, k]),
                lane[GAP, k],
                (more[0, k], more[1, k], more[2, k]),
                (more[3, k], more[4, k], more[5, k]),
                (more[6, k], more[7, k], more[8, k]),
                (more[9, k], more[10, k], more[11, k]),
                more[LIGHTNESS, k],
                mix,
                dt,
                law,
            )
            more[0, k], more[1, k], more[2, k] = force
            more[3, k], more[4, k], more[5, k] = arm
            more[9, k], more[10, k], more[11, k] = slip
            more[NORMAL_FORCE, k], more[RADIUS, k] = normal, radius
        for k in range(used):
            p = np.uintp(waiting[at + k])
            a = np.uintp(pair[p, 0])
            for i in range(3):
                more[POINT + i, k] += rows[a, i]
            finish(p, k, lane, more, rows, pairs, mixes, dt, ROLLING)


def solid_row(k, first, count, rows, forms, pairs, mixes, edges, dt):
    """Force of one pair, for a CUDA grid: the same functions as `solid_block`, each pair from the start."""
    p = first + k
    a, b = pairs.shape[p, 0], pairs.shape[p, 1]
    d = between(a, b, rows, edges, PERIODIC)
    n, gap = settle(a, b, rows, forms, edges, PERIODIC)
    v = (rows[b, 4] - rows[a, 4], rows[b, 5] - rows[a, 5], rows[b, 6] - rows[a, 6])
    wa, wb = (rows[a, 8], rows[a, 9], rows[a, 10]), (rows[b, 8], rows[b, 9], rows[b, 10])
    slip = (pairs.memory[p, 0], pairs.memory[p, 1], pairs.memory[p, 2])
    mix = mix_of(mixes, pairs.mix[p])
    lightness = rows[a, 7] + rows[b, 7]
    normal, force, slip, arm, radius = touch_solids(
        d, load_form(forms, a), load_form(forms, b), n, gap, v, wa, wb, slip, lightness, mix, dt, law
    )
    first = 6 if ROLLING else 3
    for i in range(3):
        pairs.action[p, i] = force[i]
        pairs.action[p, 3 + i] = rows[a, i] + arm[i]
        pairs.memory[p, i] = slip[i]
        pairs.memory[p, first + i] = n[i]
    pairs.memory[p, first + 3] = 1.0 if gap < 0.0 else 0.0
    if ROLLING:
        roll_pair(p, sub(wb, wa), normal, -gap, radius, n, pairs, mixes, dt)


def radius_row(p, balls, free_pairs, shapes, forms, pairs, normal, radius):
    """Reduced radius [m] of contact p of the list, at its normal: see `contact_radius`."""
    a, b = pairs.shape[p, 0], pairs.shape[p, 1]
    n = load(normal, p)
    if p < balls:
        radius[p] = shapes.radius[a] * shapes.radius[b] / (shapes.radius[a] + shapes.radius[b])
    elif p < free_pairs:
        radius[p] = contact_radius(load_form(forms, a), load_form(forms, b), n)
    else:
        radius[p] = wall_radius(load_form(forms, a), n)

"""Forces of pairs with an ellipsoid: the common normal followed from step to step, and the law at it.

The memory of such a pair holds, after slip and rolling angle, the last normal (3) and whether it touched (1). The last
normal is tried first: where it parts the two bodies nothing touches, and that costs one look. A pair that touched starts
Newton's method there; one that begins to touch starts afresh, so that the result does not depend on when the pair
came into the list.
"""

import math

import numpy as np

from ..kernels.backend import func, fused
from ..kernels.vec import add, cross, dot, load, scale, sub
from ..narrow.common_normal import GAP, LANES, LEAST, ROWS, STATE, N, common_normal_from, lane_forms, solve_lanes
from ..narrow.ellipsoids import between, put_lane, settle, surface_point
from ..shapes.ellipsoid_form import LEAST_RADIUS, load_form
from . import laws
from .curvature import contact_radius, wall_radius
from .laws import Mix, Touch
from .sphere_pairs import mix_of, roll_pair

BLOCK = 256  # pairs a task

# Bound to each kernel, as in `clast.dem.sphere_pairs`.
law = laws.hertz
ROLLING = False
PERIODIC = False
UNIFORM = False

# Rows of the lanes after those of the common normal, which the law reads, and those that it writes. All are in one array:
# with two, the compiler cannot tell that writing to one leaves the other alone, and makes no vector instructions.
VELOCITY, SPIN_A, SPIN_B, SLIP, LIGHTNESS, MIX = ROWS, ROWS + 3, ROWS + 6, ROWS + 9, ROWS + 12, ROWS + 13
FORCE, POINT, NORMAL_FORCE, RADIUS = ROWS, ROWS + 3, ROWS + 6, ROWS + 7
ALL_ROWS = ROWS + 20


@fused
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
    x, y, z = shear[0] if on else 0.0, shear[1] if on else 0.0, shear[2] if on else 0.0
    force = (normal * n[0] + x, normal * n[1] + y, normal * n[2] + z)
    slip = (slip[0] if on else 0.0, slip[1] if on else 0.0, slip[2] if on else 0.0)
    return normal, force, slip, arm, radius


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
def finish(p, k, lane, rows, pairs, mixes, dt, rolling):
    """Write the answer in lane k to contact p."""
    first = 6 if rolling else 3
    for i in range(6):
        pairs.action[p, i] = lane[FORCE + i, k]
    for i in range(3):
        pairs.memory[p, i] = lane[SLIP + i, k]
        pairs.memory[p, first + i] = lane[N + i, k]
    pairs.memory[p, first + 3] = 1.0 if lane[GAP, k] < 0.0 else 0.0
    if rolling:
        a, b = pairs.shape[p, 0], pairs.shape[p, 1]
        turning = (rows[b, 8] - rows[a, 8], rows[b, 9] - rows[a, 9], rows[b, 10] - rows[a, 10])
        n = (lane[N, k], lane[N + 1, k], lane[N + 2, k])
        roll_pair(p, turning, lane[NORMAL_FORCE, k], -lane[GAP, k], lane[RADIUS, k], n, pairs, mixes, dt)


def solid_block(block, first, count, rows, forms, pairs, mixes, edges, dt):
    """Forces of a block of pairs, rows first to first + count of the list."""
    pair, memory = pairs.shape, pairs.memory
    remembered = 6 if ROLLING else 3
    waiting = np.empty(BLOCK, np.int64)
    # Made by np.empty, whose strides the compiler knows; of np.ones it does not, and makes no vector instructions.
    lane = np.empty((ALL_ROWS, LANES))
    for i in range(ALL_ROWS):
        for k in range(LANES):
            lane[i, k] = 1.0
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
                lane[VELOCITY + i, k] = rows[b, 4 + i] - rows[a, 4 + i]
                lane[SPIN_A + i, k] = rows[a, 8 + i]
                lane[SPIN_B + i, k] = rows[b, 8 + i]
                lane[SLIP + i, k] = memory[p, i]
            lane[LIGHTNESS, k] = rows[a, 7] + rows[b, 7]
            if not UNIFORM:
                m = np.uintp(pairs.mix[p])
                for i in range(7):
                    lane[MIX + i, k] = mixes[m, i]
        solve_lanes(lane, used)
        for k in range(used):
            if lane[STATE, k] == 0.0:
                d, m1, m2 = lane_forms(lane, k)
                n = (lane[N, k], lane[N + 1, k], lane[N + 2, k])
                n, lane[GAP, k] = common_normal_from(d, m1, m2, lane[LEAST, k], n)
                lane[N, k], lane[N + 1, k], lane[N + 2, k] = n
        for k in range(LANES):
            if not UNIFORM:
                mix = Mix(
                    lane[MIX, k],
                    lane[MIX + 1, k],
                    lane[MIX + 2, k],
                    lane[MIX + 3, k],
                    lane[MIX + 4, k],
                    lane[MIX + 5, k],
                    lane[MIX + 6, k],
                )
            d, m1, m2 = lane_forms(lane, k)
            normal, force, slip, arm, radius = touch_solids(
                d,
                m1,
                m2,
                (lane[N, k], lane[N + 1, k], lane[N + 2, k]),
                lane[GAP, k],
                (lane[VELOCITY, k], lane[VELOCITY + 1, k], lane[VELOCITY + 2, k]),
                (lane[SPIN_A, k], lane[SPIN_A + 1, k], lane[SPIN_A + 2, k]),
                (lane[SPIN_B, k], lane[SPIN_B + 1, k], lane[SPIN_B + 2, k]),
                (lane[SLIP, k], lane[SLIP + 1, k], lane[SLIP + 2, k]),
                lane[LIGHTNESS, k],
                mix,
                dt,
                law,
            )
            lane[FORCE, k], lane[FORCE + 1, k], lane[FORCE + 2, k] = force
            lane[POINT, k], lane[POINT + 1, k], lane[POINT + 2, k] = arm
            lane[SLIP, k], lane[SLIP + 1, k], lane[SLIP + 2, k] = slip
            lane[NORMAL_FORCE, k], lane[RADIUS, k] = normal, radius
        for k in range(used):
            p = np.uintp(waiting[at + k])
            a = np.uintp(pair[p, 0])
            for i in range(3):
                lane[POINT + i, k] += rows[a, i]
            finish(p, k, lane, rows, pairs, mixes, dt, ROLLING)


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


def radius_row(k, rows, balls, free_pairs, shapes, forms, pairs, normal, radius):
    """Reduced radius [m] of contact k, pair rows[k] of the list, at its normal: see `contact_radius`."""
    p = rows[k]
    a, b = pairs.shape[p, 0], pairs.shape[p, 1]
    n = load(normal, k)
    if p < balls:
        radius[k] = shapes.radius[a] * shapes.radius[b] / (shapes.radius[a] + shapes.radius[b])
    elif p < free_pairs:
        radius[k] = contact_radius(load_form(forms, a), load_form(forms, b), n)
    else:
        radius[k] = wall_radius(load_form(forms, a), n)

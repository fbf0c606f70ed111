"""Spheres with spheres: from places to forces in one pass, the fast road beside that of contact points.

Contacts of spheres with spheres are worked off in lanes: 64 pairs are gathered into local arrays and the law runs over
them in one loop that the compiler turns into vector instructions. The width is fixed, so a pair gets the same bits
wherever it stands in the list. The CUDA grid takes the same scalar functions one pair at a time.
"""

import math
from typing import Any

import numpy as np

from ..broad.near import image
from ..kernels import backend
from ..kernels.backend import func, fused, kernel
from ..kernels.rows import PER_MASS, REACH, SPIN, VELOCITY, spin_at, velocity_at
from ..kernels.tuples import reader, writer
from ..kernels.vec import add, dot, load, normalize, scale, sub
from ..motion.rotation import inverse_at, per_mass_of_turning
from ..tables import SIDE_BY_SIDE
from . import laws, tangent
from .laws import Touch

WIDTH = SIDE_BY_SIDE
BLOCK = 8 * WIDTH  # pairs a task: making the lanes once for 512 pairs costs nothing
# How far apart along z [m] spheres with one centre are taken to be, so that they have a normal and part.
ASIDE = 1e-150
NEARLY = 1.0 + 1e-9  # of the square of the distance at which spheres touch: rounding does not let one sleep that does

# Rows of the lanes behind what the pair is: the normal force, the numbers that the law keeps, and the material.
PRESSURE, KEPT = 15, 16
SLIP, ANGLE = 0, 3  # columns of memory; behind them what the law keeps


def acts(law, rolling):
    """What is bound to a kernel for a `laws.Law`: what acts, and how its numbers are read and written."""
    count, kept, first = len(law.needs), len(law.keeps), ANGLE + 3 if rolling else ANGLE
    return {
        "law": law.answer,
        "resist": tangent.resistance(law, rolling),
        "mix_of": reader(law.mix, count),
        "lane_mix": reader(law.mix, count, KEPT + kept, True),
        "kept_of": reader(law.kept, kept, first),
        "lane_kept": reader(law.kept, kept, KEPT, True),
        "lane_keep": writer(kept, KEPT, True),
        "numbers_of": reader(None, kept, first),
        "keep": writer(kept, first),
        "KEEPS": kept,
        "NEEDS": count,
    }


# Bound to the kernel by `compose`: what acts, and what the scene has.
law, resist, mix_of, lane_mix, kept_of, lane_kept, lane_keep, numbers_of, keep, KEEPS, NEEDS = acts(
    laws.LAWS["hertz"], True
).values()
ROLLING = False  # some pair of materials has rolling friction
PERIODIC = False
UNIFORM = False  # one material
PARTS = False  # spheres may be parts of bodies, whose centres their normals pass by


@fused
def touch_balls(d, v, roll_speed, memory, of_both, mix, dt, beyond, law):
    """Answer of one pair of spheres.

    d (3,): from centre a to centre b; v (3,): velocity of centre b against a; roll_speed (3,): spin of a times its radius
    plus the same of b; memory: slip, what the law keeps; of_both: sum and product of the radii, one over what they weigh there. The contact point
    divides the line between the centres as the radii do, so the arms are the radii times one factor. beyond [m]: the largest gap at
    which the law acts.
    Returns overlap, normal, normal force, force on b, slip, what the law keeps, and normal x force times that factor: the torque on either
    sphere is this times minus its radius.
    """
    slip, kept = memory
    reach, product, lightness = of_both
    distance = math.sqrt(d[0] * d[0] + d[1] * d[1] + d[2] * d[2])
    inverse = 1.0 / max(distance, 1e-300)
    n = (d[0] * inverse, d[1] * inverse, d[2] * inverse)
    overlap = reach - distance
    per_reach = 1.0 / reach
    arm = distance * per_reach
    w = (arm * roll_speed[0], arm * roll_speed[1], arm * roll_speed[2])
    x = v[0] - (w[1] * n[2] - w[2] * n[1])
    y = v[1] - (w[2] * n[0] - w[0] * n[2])
    z = v[2] - (w[0] * n[1] - w[1] * n[0])
    opening = x * n[0] + y * n[1] + z * n[2]
    slide = (x - opening * n[0], y - opening * n[1], z - opening * n[2])
    # The slip turns with the line between the centres, and about it with the mean spin, by the radii.
    half = 0.5 * dt * per_reach * (roll_speed[0] * n[0] + roll_speed[1] * n[1] + roll_speed[2] * n[2])
    slip = laws.swing(slip, n, (d[0] - dt * v[0], d[1] - dt * v[1], d[2] - dt * v[2]), half)
    touch = Touch(max(overlap, -beyond), -opening, n, slide, slip, 1.0 / lightness, product * per_reach, kept)
    normal, shear, slip, kept = law(touch, mix, dt)
    # Selected, not multiplied by zero: a law may have no answer where nothing touches.
    touching = overlap > -beyond
    normal = normal if touching else 0.0
    x, y, z = shear[0] if touching else 0.0, shear[1] if touching else 0.0, shear[2] if touching else 0.0
    force = (normal * n[0] + x, normal * n[1] + y, normal * n[2] + z)
    slip = (slip[0] if touching else 0.0, slip[1] if touching else 0.0, slip[2] if touching else 0.0)
    # Only the shear force has a torque; the normal force points at both centres.
    torque = (arm * (n[1] * z - n[2] * y), arm * (n[2] * x - n[0] * z), arm * (n[0] * y - n[1] * x))
    return overlap, n, normal, force, slip, kept, torque


@func
def lightness_of_parts(s, t, d, body, rows, inverse):
    """One over what the bodies of the spheres s and t weigh [1/kg] where these touch; d (3,) [m]: from one centre to the other, along which
    it does not matter where."""
    a, b, n = np.uintp(body[s]), np.uintp(body[t]), normalize(d)
    one, two = sub(load(rows, s), load(rows, a)), sub(load(rows, t), load(rows, b))
    turning = per_mass_of_turning(one, n, inverse_at(a, rows, inverse))
    return rows[a, PER_MASS] + rows[b, PER_MASS] + (turning + per_mass_of_turning(two, n, inverse_at(b, rows, inverse)))


@func
def none_near(first, used, rows, pair, edges, beyond, periodic):
    """Whether none of so many pairs of spheres, of which this is the first, is within reach."""
    near = 0
    for j in range(used):
        p = np.uintp(first + j)
        a, b = np.uintp(pair[p, 0]), np.uintp(pair[p, 1])
        square, reach = 0.0, rows[a, REACH] + rows[b, REACH] + beyond
        for i in range(3):
            d = rows[b, i] - rows[a, i]
            if periodic:
                d = image(d, edges[i], edges[3 + i])
            square += d * d
        near += 0 if square > NEARLY * reach * reach else 1
    return near == 0


def ball_block(block, count, rows, body, inverse, pairs, spheres, mixes, edges, dt, beyond, coincident):
    """Forces of a block of pairs of spheres, 64 at a time; coincident (blocks,): how many of them have one centre; body (s,): column of
    Shapes; inverse: see `clast.motion.rotation`, read where spheres are parts.

    Arrays are taken out of their tables once, and rows are counted in unsigned numbers, which numba does not test for
    being negative. Two cores, packing of 10,000: 12 ns a pair. Leaving single pairs that do not touch out of the
    lanes was slower: the branch costs more than the idle lanes. But the list has those that touch first, so that 64 at a time sleep.
    """
    k: Any
    pair, pair_mix, memory, action, idle = pairs.shape, pairs.mix, spheres.memory, spheres.action, spheres.idle
    lane = np.empty((KEPT + KEEPS + NEEDS, WIDTH))
    mix = mix_of(mixes, 0)
    same = 0
    for first in range(block * BLOCK, min(count, (block + 1) * BLOCK), WIDTH):
        used, group = min(WIDTH, count - first), np.uintp(first // WIDTH)
        if idle[group] == 1 and none_near(first, used, rows, pair, edges, beyond, PERIODIC):
            continue
        for j in range(used):
            k, p = np.uintp(j), np.uintp(first + j)
            a, b = np.uintp(pair[p, 0]), np.uintp(pair[p, 1])
            ra, rb = rows[a, REACH], rows[b, REACH]
            for i in range(3):
                d = rows[b, i] - rows[a, i]
                if PERIODIC:
                    d = image(d, edges[i], edges[3 + i])
                lane[i, k] = d
                lane[3 + i, k] = rows[b, VELOCITY + i] - rows[a, VELOCITY + i]
                lane[6 + i, k] = ra * rows[a, SPIN + i] + rb * rows[b, SPIN + i]
                lane[9 + i, k] = memory[p, i]
            if lane[0, k] == 0.0 and lane[1, k] == 0.0 and lane[2, k] == 0.0:
                lane[2, k] = ASIDE
                same += 1
            lane[12, k] = ra + rb
            lane[13, k] = ra * rb
            lane[14, k] = rows[a, PER_MASS] + rows[b, PER_MASS]
            if PARTS:
                d = lane[0, k], lane[1, k], lane[2, k]
                # Most listed pairs do not touch.
                if dot(d, d) < (ra + rb + beyond) * (ra + rb + beyond):
                    lane[14, k] = lightness_of_parts(a, b, d, body, rows, inverse)
            if not UNIFORM:
                m = np.uintp(pair_mix[p])
                for i in range(NEEDS):
                    lane[KEPT + KEEPS + i, k] = mixes[m, i]
            for i in range(KEEPS):
                lane[KEPT + i, k] = memory[p, (ANGLE + 3 if ROLLING else ANGLE) + i]
        for k in range(used, WIDTH):
            for i in range(KEPT + KEEPS + NEEDS):
                lane[i, k] = 1.0
        for k in range(WIDTH):
            if not UNIFORM:
                mix = lane_mix(lane, k)
            overlap, n, normal, f, slip, kept, torque = touch_balls(
                (lane[0, k], lane[1, k], lane[2, k]),
                (lane[3, k], lane[4, k], lane[5, k]),
                (lane[6, k], lane[7, k], lane[8, k]),
                ((lane[9, k], lane[10, k], lane[11, k]), lane_kept(lane, k)),
                (lane[12, k], lane[13, k], lane[14, k]),
                mix,
                dt,
                beyond,
                law,
            )
            lane[0, k], lane[1, k], lane[2, k] = f
            lane[3, k], lane[4, k], lane[5, k] = torque
            lane[9, k], lane[10, k], lane[11, k] = slip
            lane_keep(lane, k, kept)
            if ROLLING or KEEPS > 0:
                lane[6, k], lane[7, k], lane[8, k] = n
                lane[PRESSURE, k] = normal
            lane[12, k] = overlap
        touching = 0
        for k in range(used):
            touching += 1 if lane[12, k] > -beyond else 0
        idle[group] = 1 if touching == 0 else 0
        for j in range(used):
            k, p = np.uintp(j), np.uintp(first + j)
            for i in range(6):
                action[p, i] = lane[i, k]
            for i in range(3):
                memory[p, i] = lane[9 + i, k]
            for i in range(KEEPS):
                memory[p, (ANGLE + 3 if ROLLING else ANGLE) + i] = lane[KEPT + i, k] if lane[12, k] > -beyond else 0.0
            if ROLLING:
                n = (lane[6, k], lane[7, k], lane[8, k])
                a, b = np.uintp(pair[p, 0]), np.uintp(pair[p, 1])
                radius = rows[a, REACH] * rows[b, REACH] / (rows[a, REACH] + rows[b, REACH])
                turning = sub(spin_at(rows, b), spin_at(rows, a))
                mix = mix_of(mixes, pair_mix[p])
                on = lane[12, k] > -beyond
                kept = roll_pair(
                    p,
                    turning,
                    (lane[PRESSURE, k], lane[12, k], radius, on),
                    n,
                    numbers_of(memory, p),
                    spheres,
                    mix,
                    dt,
                    resist,
                )
                if on:
                    keep(memory, p, kept)
    coincident[block] = same


@func
def roll_pair(p, turning, pressed, n, kept, spheres, mix, dt, resist):
    """Resistance of contact p to rolling and twisting: writes its couple on b and the rolling angle it remembers, and returns what the law keeps.

    pressed: normal force [N], overlap [m], reduced radius [m], whether it acts.
    """
    memory = spheres.memory
    normal, overlap, radius, on = pressed
    turned = (memory[p, ANGLE], memory[p, ANGLE + 1], memory[p, ANGLE + 2])
    couple, turned, kept = resist(turned, turning, normal, n, overlap, radius, kept, mix, dt)
    for i in range(3):
        spheres.couple[p, i] = couple[i] if on else 0.0
        memory[p, ANGLE + i] = turned[i] if on else 0.0
    return kept


def ball_row(p, rows, body, inverse, pairs, spheres, mixes, edges, dt, beyond):
    """Force of one pair of spheres; the same numbers as `ball_block`, one pair at a time, for a CUDA grid."""
    a, b = pairs.shape[p, 0], pairs.shape[p, 1]
    ra, rb = rows[a, REACH], rows[b, REACH]
    d = sub(load(rows, b), load(rows, a))
    if PERIODIC:
        d = (image(d[0], edges[0], edges[3]), image(d[1], edges[1], edges[4]), image(d[2], edges[2], edges[5]))
    if d[0] == 0.0 and d[1] == 0.0 and d[2] == 0.0:
        d = (0.0, 0.0, ASIDE)
    v = sub(velocity_at(rows, b), velocity_at(rows, a))
    wa, wb = spin_at(rows, a), spin_at(rows, b)
    slip = load(spheres.memory, p)
    mix = mix_of(mixes, pairs.mix[p])
    roll_speed = add(scale(ra, wa), scale(rb, wb))
    lightness = rows[a, PER_MASS] + rows[b, PER_MASS]
    if PARTS:
        lightness = lightness_of_parts(a, b, d, body, rows, inverse)
    of_both = ra + rb, ra * rb, lightness
    overlap, n, normal, f, slip, kept, torque = touch_balls(
        d, v, roll_speed, (slip, kept_of(spheres.memory, p)), of_both, mix, dt, beyond, law
    )
    for i in range(3):
        spheres.action[p, i] = f[i]
        spheres.action[p, 3 + i] = torque[i]
        spheres.memory[p, i] = slip[i]
    on = overlap > -beyond
    if ROLLING:
        pressed = normal, overlap, ra * rb / (ra + rb), on
        kept = roll_pair(p, sub(wb, wa), pressed, n, kept, spheres, mix, dt, resist)
    keep(spheres.memory, p, kept)
    if not on:
        for i in range(KEEPS):
            spheres.memory[p, (ANGLE + 3 if ROLLING else ANGLE) + i] = 0.0


def compose(law, rolling, periodic, uniform, parts):
    """The kernel of pairs of spheres for a `laws.Law`."""
    on_cpu = backend.DEVICE[-1] is backend.CPU
    return kernel(
        ball_block if on_cpu else ball_row,
        fastmath=("contract", "nsz"),
        grain=4,
        allocates=on_cpu,
        **acts(law, rolling),
        ROLLING=rolling,
        PERIODIC=periodic,
        UNIFORM=uniform,
        PARTS=parts,
    )


def apply(ball_kernel, state, inverse, mixes, edges, dt):
    """Forces of all pairs of spheres of a State; inverse: see `clast.motion.rotation`; returns how many of them have one centre, which the CPU alone counts."""
    count = state.spheres_count
    tables = state.there.rows, state.there.shapes.body, inverse, state.pairs, state.spheres, mixes
    if state.device is not backend.CPU:
        ball_kernel(count, *tables, edges, dt, state.beyond)
        return 0
    blocks = (count + BLOCK - 1) // BLOCK
    if len(state.coincident) != blocks:
        state.coincident = np.zeros(blocks, np.int64)
    # The same array each time: then the launch is the same, and known. NumPy's sum takes 3 us, also of one number.
    ball_kernel(blocks, count, *tables, edges, dt, state.beyond, state.coincident)
    same = int(state.coincident.sum()) if blocks > 20 else sum(state.coincident.tolist())
    if same and state.ghosts:  # each pair is counted by one process
        way = np.diff(state.rows[state.pairs.shape[:count], :3], axis=1)[:, 0]
        way -= state.box.length * np.round(way * state.box.inverse)
        same = len(state.told(np.flatnonzero((way == 0.0).all(1))))
    return same

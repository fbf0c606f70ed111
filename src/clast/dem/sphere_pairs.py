"""Spheres with spheres: from places to forces in one pass, the fast road beside that of contact points.

Contacts of spheres with spheres are worked off in lanes: 64 pairs are gathered into local arrays and the law runs over
them in one loop that the compiler turns into vector instructions. The width is fixed, so a pair gets the same bits
wherever it stands in the list. The CUDA grid takes the same scalar functions one pair at a time.
"""

import math

import numpy as np

from ..broad.near import image
from ..kernels import backend
from ..kernels.backend import func, fused, kernel
from ..kernels.rows import PER_MASS, REACH, SPIN, VELOCITY, spin_at, velocity_at
from ..kernels.vec import add, load, scale, sub
from . import laws
from .laws import Mix, Touch, mix_of

WIDTH = 64
BLOCK = 8 * WIDTH  # pairs a task: making the lanes once for 512 pairs costs nothing
# How far apart along z [m] spheres with one centre are taken to be, so that they have a normal and part.
ASIDE = 1e-150

# Bound to the kernel by `compose`: the law, and what the scene has.
law = laws.hertz
ROLLING = False  # some pair of materials has rolling friction
PERIODIC = False
UNIFORM = False  # one material


@fused
def touch_balls(d, v, roll_speed, slip, reach, product, lightness, mix, dt, law):
    """Answer of one pair of spheres.

    d (3,): from centre a to centre b; v (3,): velocity of centre b against a; roll_speed (3,): spin of a times its radius
    plus the same of b; reach, product: sum and product of the radii; lightness: sum of 1/mass. The contact point
    divides the line between the centres as the radii do, so the arms are the radii times one factor.
    Returns overlap, normal, normal force, force on b, slip, and normal x force times that factor: the torque on either
    sphere is this times minus its radius.
    """
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
    touch = Touch(max(overlap, 0.0), -opening, n, slide, slip, 1.0 / lightness, product * per_reach)
    normal, shear, slip = law(touch, mix, dt)
    # Selected, not multiplied by zero: a law may have no answer where nothing touches.
    touching = overlap > 0.0
    normal = normal if touching else 0.0
    x, y, z = shear[0] if touching else 0.0, shear[1] if touching else 0.0, shear[2] if touching else 0.0
    force = (normal * n[0] + x, normal * n[1] + y, normal * n[2] + z)
    slip = (slip[0] if touching else 0.0, slip[1] if touching else 0.0, slip[2] if touching else 0.0)
    # Only the shear force has a torque; the normal force points at both centres.
    torque = (arm * (n[1] * z - n[2] * y), arm * (n[2] * x - n[0] * z), arm * (n[0] * y - n[1] * x))
    return overlap, n, normal, force, slip, torque


def ball_block(block, count, rows, pairs, spheres, mixes, edges, dt, coincident):
    """Forces of a block of pairs of spheres, 64 at a time; coincident (blocks,): how many of them have one centre.

    Arrays are taken out of their tables once, and rows are counted in unsigned numbers, which numba does not test for
    being negative. Two cores, packing of 10,000: 12 ns a pair. Leaving pairs that do not touch out of the lanes was
    slower: the branch costs more than the idle lanes.
    """
    pair, pair_mix, memory, action = pairs.shape, pairs.mix, spheres.memory, spheres.action
    lane = np.empty((23, WIDTH))
    mix = mix_of(mixes, 0)
    same = 0
    for first in range(block * BLOCK, min(count, (block + 1) * BLOCK), WIDTH):
        used = min(WIDTH, count - first)
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
            if not UNIFORM:
                m = np.uintp(pair_mix[p])
                for i in range(7):
                    lane[15 + i, k] = mixes[m, i]
        for k in range(used, WIDTH):
            for i in range(23):
                lane[i, k] = 1.0
        for k in range(WIDTH):
            if not UNIFORM:
                mix = Mix(lane[15, k], lane[16, k], lane[17, k], lane[18, k], lane[19, k], lane[20, k], lane[21, k])
            overlap, n, normal, f, slip, torque = touch_balls(
                (lane[0, k], lane[1, k], lane[2, k]),
                (lane[3, k], lane[4, k], lane[5, k]),
                (lane[6, k], lane[7, k], lane[8, k]),
                (lane[9, k], lane[10, k], lane[11, k]),
                lane[12, k],
                lane[13, k],
                lane[14, k],
                mix,
                dt,
                law,
            )
            lane[0, k], lane[1, k], lane[2, k] = f
            lane[3, k], lane[4, k], lane[5, k] = torque
            lane[9, k], lane[10, k], lane[11, k] = slip
            if ROLLING:
                lane[6, k], lane[7, k], lane[8, k] = n
                lane[12, k] = overlap
                lane[22, k] = normal
        for j in range(used):
            k, p = np.uintp(j), np.uintp(first + j)
            for i in range(6):
                action[p, i] = lane[i, k]
            for i in range(3):
                memory[p, i] = lane[9 + i, k]
            if ROLLING:
                n = (lane[6, k], lane[7, k], lane[8, k])
                a, b = np.uintp(pair[p, 0]), np.uintp(pair[p, 1])
                radius = rows[a, REACH] * rows[b, REACH] / (rows[a, REACH] + rows[b, REACH])
                turning = sub(spin_at(rows, b), spin_at(rows, a))
                roll_pair(p, turning, lane[22, k], lane[12, k], radius, n, pair_mix[p], spheres, mixes, dt)
    coincident[block] = same


@func
def roll_pair(p, turning, normal, overlap, radius, n, row, spheres, mixes, dt):
    """Rolling resistance of contact p: its couple on b and the rolling angle it remembers; row: of its combined material."""
    mix = mix_of(mixes, row)
    turned = (spheres.memory[p, 3], spheres.memory[p, 4], spheres.memory[p, 5])
    stiffness = 8.0 * mix.shear * math.sqrt(radius * max(overlap, 0.0))
    couple, turned = laws.roll(turned, turning, normal, n, stiffness, radius, mix, dt)
    keep = 1.0 if overlap > 0.0 else 0.0
    for i in range(3):
        spheres.couple[p, i] = keep * couple[i]
        spheres.memory[p, 3 + i] = keep * turned[i]


def ball_row(p, rows, pairs, spheres, mixes, edges, dt):
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
    slip = (spheres.memory[p, 0], spheres.memory[p, 1], spheres.memory[p, 2])
    mix = mix_of(mixes, pairs.mix[p])
    roll_speed = add(scale(ra, wa), scale(rb, wb))
    overlap, n, normal, f, slip, torque = touch_balls(
        d, v, roll_speed, slip, ra + rb, ra * rb, rows[a, PER_MASS] + rows[b, PER_MASS], mix, dt, law
    )
    for i in range(3):
        spheres.action[p, i] = f[i]
        spheres.action[p, 3 + i] = torque[i]
        spheres.memory[p, i] = slip[i]
    if ROLLING:
        roll_pair(p, sub(wb, wa), normal, overlap, ra * rb / (ra + rb), n, pairs.mix[p], spheres, mixes, dt)


def compose(law, rolling, periodic, uniform):
    """The kernel of pairs of spheres for a law."""
    on_cpu = backend.DEVICE[-1] is backend.CPU
    return kernel(
        ball_block if on_cpu else ball_row,
        fastmath=("contract", "nsz"),
        grain=4,
        allocates=on_cpu,
        law=law,
        ROLLING=rolling,
        PERIODIC=periodic,
        UNIFORM=uniform,
    )


def apply(ball_kernel, state, mixes, edges, dt):
    """Forces of all pairs of spheres of a State; returns how many of them have one centre, which the CPU alone counts."""
    count = state.spheres_count
    tables = state.there.rows, state.pairs, state.spheres, mixes
    if state.device is not backend.CPU:
        ball_kernel(count, *tables, edges, dt)
        return 0
    blocks = (count + BLOCK - 1) // BLOCK
    coincident = np.zeros(blocks, np.int64)
    ball_kernel(blocks, count, *tables, edges, dt, coincident)
    same = int(coincident.sum())
    if same and state.ghosts:  # each pair is counted by one process
        way = np.diff(state.rows[state.pairs.shape[:count], :3], axis=1)[:, 0]
        way -= state.box.length * np.round(way * state.box.inverse)
        same = len(state.told(np.flatnonzero((way == 0.0).all(1))))
    return same

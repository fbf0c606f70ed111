"""Forces of contact points: the law at every point that touches, whatever the shapes, and what pairs do to their bodies.

Points that touch are gathered 64 at a time into local arrays, over which the law runs as vector instructions. The width is
fixed and lanes do not know of each other, so a point gets the same bits wherever it stands.
"""

import math

import numpy as np

from ..broad.near import image
from ..kernels import backend
from ..kernels.backend import func, fused, kernel
from ..kernels.vec import add, cross, dot, load, scale, sub
from ..tables import FIRST_WALL
from . import laws
from .laws import Mix, Touch, mix_of

WIDTH = 64
BLOCK = 256  # pairs a task

# Bound to the kernel: the law, and what the scene has.
law = laws.hertz
ROLLING = False
PERIODIC = False
UNIFORM = False  # one material

# Rows of the lanes: what the law reads, and in the same array, so that the compiler makes vector instructions, what it writes.
VELOCITY, SPIN_A, SPIN_B, ARM, AWAY, NORMAL, SLIP, ANGLE = 0, 3, 6, 9, 12, 15, 18, 21
OVERLAP, LIGHTNESS, RADIUS, SHARE, MIX = 24, 25, 26, 27, 28
ROWS = 35
FORCE, COUPLE = VELOCITY, SPIN_A


@fused
def answer(v, wa, wb, arm, away, n, overlap, slip, lightness, radius, mix, dt, law):
    """Answer of a contact point: normal force, force on b, slip.

    v (3,): velocity of the centre of b against that of a; wa, wb (3,): spins; arm (3,): from the centre of a to the point;
    away (3,): from the centre of a to that of b; lightness: sum of 1/mass.
    """
    v = sub(add(v, cross(wb, sub(arm, away))), cross(wa, arm))
    opening = dot(v, n)
    slide = sub(v, scale(opening, n))
    touch = Touch(overlap, -opening, n, slide, slip, 1.0 / lightness, radius)
    normal, shear, slip = law(touch, mix, dt)
    return normal, add(scale(normal, n), shear), slip


@fused
def rolling_couple(angle, wa, wb, n, normal, overlap, radius, mix, dt):
    """Rolling resistance of a contact point: couple on b [N m], and the rolling angle to remember."""
    stiffness = 8.0 * mix.shear * math.sqrt(radius * overlap)
    return laws.roll(angle, sub(wb, wa), normal, n, stiffness, radius, mix, dt)


@func
def between(a, b, o, i, rows, edges, periodic):
    """From the centre of shape a along axis i to that of row o, shape b itself or the body of that wall, or to its image."""
    d = rows[o, i] - rows[a, i]
    if periodic:
        # The image nearest to the wall piece itself, which may lie far from its body's origin.
        near = rows[b, i] - rows[a, i]
        d = image(d, edges[i], edges[3 + i]) if o == b else d + (image(near, edges[i], edges[3 + i]) - near)
    return d


@func
def moving_row(b, shapes):
    """The row that tells how shape b moves: its own, or that of its body for a wall, whose pieces stay behind between lists."""
    return shapes.body[b] if shapes.kind[b] >= FIRST_WALL else b


@func
def gather(k, c, p, rows, shapes, pairs, points, history, mixes, edges, lane, about, lone):
    """Write what the law reads of slot c of pair p into lane k; about: as in `work_off`."""
    periodic, rolling, uniform = about
    # Unsigned numbers are not tested for being negative.
    k, c, p = np.uintp(k), np.uintp(c), np.uintp(p)
    a, s = np.uintp(pairs.shape[p, 0]), np.uintp(pairs.shape[p, 1])
    b = np.uintp(moving_row(s, shapes))
    for i in range(3):
        lane[AWAY + i, k] = between(a, s, b, i, rows, edges, periodic)
        lane[VELOCITY + i, k] = rows[b, 4 + i] - rows[a, 4 + i]
        lane[SPIN_A + i, k] = rows[a, 8 + i]
        lane[SPIN_B + i, k] = rows[b, 8 + i]
        lane[ARM + i, k] = points.arm[c, i]
        lane[NORMAL + i, k] = points.normal[c, i]
    if lone:
        # The point of a manifold that has one slot takes up its own history and shares with none.
        lives = history.live[c] == 1
        points.share[c], points.overlap[c] = 1.0, -points.gap[c]
        for i in range(3):
            points.slip[c, i] = history.slip[c, i] if lives else 0.0
            if rolling:
                points.angle[c, i] = history.angle[c, i] if lives else 0.0
    for i in range(3):
        lane[SLIP + i, k] = points.slip[c, i]
        if rolling:
            lane[ANGLE + i, k] = points.angle[c, i]
    lane[OVERLAP, k] = points.overlap[c]
    lane[LIGHTNESS, k] = rows[a, 7] + rows[b, 7]
    lane[RADIUS, k] = points.radius[c]
    lane[SHARE, k] = points.share[c]
    if not uniform:
        m = np.uintp(pairs.mix[p])
        for i in range(7):
            lane[MIX + i, k] = mixes[m, i]


@func
def vector(lane, row, k):
    """Three rows of lane k."""
    return (lane[row, k], lane[row + 1, k], lane[row + 2, k])


@func
def put(lane, row, k, v):
    """Write a vector into three rows of lane k."""
    lane[row, k], lane[row + 1, k], lane[row + 2, k] = v


@func
def scatter(k, c, lane, points, history, rolling, lone):
    """Write the answer in lane k to slot c, and what it remembers."""
    k, c = np.uintp(k), np.uintp(c)
    for i in range(3):
        points.force[c, i] = lane[FORCE + i, k]
        history.slip[c, i] = lane[SLIP + i, k]
        if not lone:
            history.arm[c, i] = lane[ARM + i, k]
            history.normal[c, i] = lane[NORMAL + i, k]
        if rolling:
            points.couple[c, i] = lane[COUPLE + i, k]
            history.angle[c, i] = lane[ANGLE + i, k]
    history.live[c] = 1


@func
def add_up(q, spheres, rows, shapes, pairs, points, history, wrench, edges, periodic, rolling):
    """The wrench of pair q, counted behind those of spheres, from its points; slots that are not in use forget."""
    if points.count[q] == 0 and wrench.live[q] == 0:
        return
    force, moment, back = (0.0, 0.0, 0.0), (0.0, 0.0, 0.0), (0.0, 0.0, 0.0)
    a, s = pairs.shape[q + spheres, 0], pairs.shape[q + spheres, 1]
    away = (
        between(a, s, s, 0, rows, edges, periodic),
        between(a, s, s, 1, rows, edges, periodic),
        between(a, s, s, 2, rows, edges, periodic),
    )
    for row in range(pairs.slot[q], pairs.slot[q + 1]):
        c = np.uintp(row)
        if points.gap[c] < 0.0:
            f = load(points.force, c)
            force = add(force, f)
            arm = load(points.arm, c)
            moment, back = add(moment, cross(arm, f)), add(back, cross(sub(arm, away), f))
            if rolling:
                moment, back = add(moment, load(points.couple, c)), add(back, load(points.couple, c))
        elif history.live[c] == 1:
            history.live[c] = 0
    wrench.live[q] = 1 if points.count[q] > 0 else 0
    for i in range(3):
        wrench.force[q, i] = force[i]
        wrench.moment[q, 0, i] = moment[i]
        wrench.moment[q, 1, i] = back[i]


@func
def put_wrench(k, q, lane, wrench, rolling):
    """Write what the one point of pair q does, in lane k, to its wrench."""
    k, q = np.uintp(k), np.uintp(q)
    f, arm = vector(lane, FORCE, k), vector(lane, ARM, k)
    moment, back = cross(arm, f), cross(sub(arm, vector(lane, AWAY, k)), f)
    if rolling:
        moment, back = add(moment, vector(lane, COUPLE, k)), add(back, vector(lane, COUPLE, k))
    wrench.live[q] = 1
    for i in range(3):
        wrench.force[q, i] = f[i]
        wrench.moment[q, 0, i] = moment[i]
        wrench.moment[q, 1, i] = back[i]


@func
def work_off(
    first,
    last,
    lone,
    lane,
    waiting,
    spheres,
    rows,
    shapes,
    pairs,
    points,
    history,
    wrench,
    mixes,
    edges,
    dt,
    law,
    about,
):
    """Forces of all points of the pairs first to last; about: whether there are periodic axes, rolling friction, one material.

    lone: every manifold has one slot, whose history is looked up here and whose wrench is written at once.

    A function of its own, because the row that makes the lanes counts references to all arrays of a table at every look into
    it: forces of 3,000 points took 320 us there.
    """
    periodic, rolling, uniform = about
    waiting, whose = waiting
    mix = mix_of(mixes, 0)
    slot, gap, many = pairs.slot, points.gap, points.count
    used, q, c = 0, first, slot[first]
    while q < last or used > 0:
        # The next points that touch, until the lanes are full or the block is at its end.
        while q < last and used < WIDTH:
            # Most pairs of a list do not touch.
            if c == slot[q + 1] or many[q] == 0:
                if lone and many[q] == 0:
                    add_up(q, spheres, rows, shapes, pairs, points, history, wrench, edges, periodic, rolling)
                q += 1
                c = slot[q]
            else:
                if gap[c] < 0.0:
                    waiting[used], whose[used] = c, q
                    gather(used, c, q + spheres, rows, shapes, pairs, points, history, mixes, edges, lane, about, lone)
                    used += 1
                c += 1
        if used > 0:
            for k in range(used, WIDTH):
                for i in range(ROWS):
                    lane[i, k] = 1.0
            for k in range(WIDTH):
                if not uniform:
                    mix = Mix(
                        lane[MIX, k],
                        lane[MIX + 1, k],
                        lane[MIX + 2, k],
                        lane[MIX + 3, k],
                        lane[MIX + 4, k],
                        lane[MIX + 5, k],
                        lane[MIX + 6, k],
                    )
                n, wa, wb = vector(lane, NORMAL, k), vector(lane, SPIN_A, k), vector(lane, SPIN_B, k)
                normal, force, slip = answer(
                    vector(lane, VELOCITY, k),
                    wa,
                    wb,
                    vector(lane, ARM, k),
                    vector(lane, AWAY, k),
                    n,
                    lane[OVERLAP, k],
                    vector(lane, SLIP, k),
                    lane[LIGHTNESS, k],
                    lane[RADIUS, k],
                    mix,
                    dt,
                    law,
                )
                put(lane, FORCE, k, scale(lane[SHARE, k], force))
                put(lane, SLIP, k, slip)
                if rolling:
                    angle = vector(lane, ANGLE, k)
                    couple, angle = rolling_couple(angle, wa, wb, n, normal, lane[OVERLAP, k], lane[RADIUS, k], mix, dt)
                    put(lane, COUPLE, k, scale(lane[SHARE, k], couple))
                    put(lane, ANGLE, k, angle)
            for k in range(used):
                scatter(k, waiting[k], lane, points, history, rolling, lone)
                if lone:
                    put_wrench(k, whose[k], lane, wrench, rolling)
            used = 0
    for q in range(last if lone else first, last):
        add_up(q, spheres, rows, shapes, pairs, points, history, wrench, edges, periodic, rolling)


def force_block(block, begin, count, lone, spheres, rows, shapes, pairs, points, history, wrench, mixes, edges, dt):
    """Forces of all points of a block of the pairs begin to begin + count behind those of spheres."""
    lane, waiting = np.empty((ROWS, WIDTH)), (np.empty(WIDTH, np.int64), np.empty(WIDTH, np.int64))
    first, last = begin + block * BLOCK, min(begin + count, begin + (block + 1) * BLOCK)
    about = (PERIODIC, ROLLING, UNIFORM)
    work_off(
        first,
        last,
        lone,
        lane,
        waiting,
        spheres,
        rows,
        shapes,
        pairs,
        points,
        history,
        wrench,
        mixes,
        edges,
        dt,
        law,
        about,
    )


def force_row(k, begin, count, lone, spheres, rows, shapes, pairs, points, history, wrench, mixes, edges, dt):
    """The same for one pair, one point at a time, for a CUDA grid; what `lone` tells is of no use there."""
    q = begin + k
    p = q + spheres
    a, s = pairs.shape[p, 0], pairs.shape[p, 1]
    b = moving_row(s, shapes)
    mix = mix_of(mixes, pairs.mix[p])
    v = (rows[b, 4] - rows[a, 4], rows[b, 5] - rows[a, 5], rows[b, 6] - rows[a, 6])
    wa, wb = (rows[a, 8], rows[a, 9], rows[a, 10]), (rows[b, 8], rows[b, 9], rows[b, 10])
    away = (
        between(a, s, b, 0, rows, edges, PERIODIC),
        between(a, s, b, 1, rows, edges, PERIODIC),
        between(a, s, b, 2, rows, edges, PERIODIC),
    )
    for c in range(pairs.slot[q], pairs.slot[q + 1]):
        if points.gap[c] < 0.0:
            n, arm, overlap, radius = load(points.normal, c), load(points.arm, c), points.overlap[c], points.radius[c]
            lightness = rows[a, 7] + rows[b, 7]
            normal, force, slip = answer(
                v, wa, wb, arm, away, n, overlap, load(points.slip, c), lightness, radius, mix, dt, law
            )
            for i in range(3):
                points.force[c, i] = points.share[c] * force[i]
                history.slip[c, i] = slip[i]
                history.arm[c, i] = arm[i]
                history.normal[c, i] = n[i]
            history.live[c] = 1
            if ROLLING:
                angle = load(points.angle, c)
                couple, angle = rolling_couple(angle, wa, wb, n, normal, overlap, radius, mix, dt)
                for i in range(3):
                    points.couple[c, i] = points.share[c] * couple[i]
                    history.angle[c, i] = angle[i]
    add_up(q, spheres, rows, shapes, pairs, points, history, wrench, edges, PERIODIC, ROLLING)


def compose(law, rolling, periodic, uniform):
    """The kernel of contact points for a law."""
    on_cpu = backend.DEVICE[-1] is backend.CPU
    return kernel(
        force_block if on_cpu else force_row,
        fastmath=("contract", "nsz"),
        grain=4,
        allocates=on_cpu,
        law=law,
        ROLLING=rolling,
        PERIODIC=periodic,
        UNIFORM=uniform,
    )


def is_lone(state, family):
    """Whether every manifold of a family has one slot, whatever the neighbour list: on the CPU a shorter way."""
    walled = family.walls and len(state.meshes.triangle) > 0
    return state.device is backend.CPU and family.slots == 1 and not walled


def apply(force_kernel, state, mixes, edges, dt):
    """Forces of all contact points of a State, and the wrench of each pair."""
    tables = state.there.rows, state.there.shapes, state.pairs, state.points, state.history, state.wrench
    for r in state.ranges:
        tasks = (r.length + BLOCK - 1) // BLOCK if state.device is backend.CPU else r.length
        about = r.first - state.spheres_count, r.length, is_lone(state, r.family), state.spheres_count
        force_kernel(tasks, *about, *tables, mixes, edges, dt)

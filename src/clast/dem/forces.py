"""Forces of contact points: the law at every point that touches, whatever the shapes, and what pairs do to their bodies.

Points that touch are gathered 64 at a time into local arrays, over which the law runs as vector instructions. The width is
fixed and lanes do not know of each other, so a point gets the same bits wherever it stands.
"""

import math

import numpy as np

from ..broad.near import image
from ..kernels import backend
from ..kernels.backend import func, fused, kernel
from ..kernels.kinds import is_wall
from ..kernels.launch import same
from ..kernels.rows import PER_MASS, SPIN, VELOCITY, spin_at, velocity_at
from ..kernels.vec import add, cross, dot, scale, sub
from . import history as remembered
from . import laws
from .history import bring_near, take_up, take_up_area
from .laws import Mix, Touch, mix_of

WIDTH = 64
BLOCK = 256  # manifolds a task

# Bound to the kernel: the law, and what the scene has.
law = laws.hertz
ROLLING = False
PERIODIC = False
UNIFORM = False  # one material
POWER = 1.5  # with which the law's normal force grows, by which points share a stiffness; 0: they do not

# Rows of the lanes: what the law reads, and in the same array, so that the compiler makes vector instructions, what it writes.
RELATIVE, SPIN_A, SPIN_B, ARM, AWAY, NORMAL, SLIP, ANGLE = 0, 3, 6, 9, 12, 15, 18, 21
OVERLAP, LIGHTNESS, RADIUS, SHARE, CENTRE, MIX = 24, 25, 26, 27, 28, 31
ROWS = 38
FORCE, COUPLE, MOMENT, BACK = RELATIVE, SPIN_A, SPIN_B, AWAY


@fused
def respond(overlap, rate, n, slide, slip, lightness, radius, mix, dt, law):
    """The law at a contact point whose overlap grows at `rate`: normal force, shear force, slip."""
    return law(Touch(overlap, rate, n, slide, slip, 1.0 / lightness, radius), mix, dt)


@fused
def answer(v, spins, arms, centre, n, overlap, slip, lightness, radius, mix, dt, law):
    """Answer of a contact point: the pressure that limits friction [N], force on b, slip.

    v (3,): velocity of the centre of b against that of a; spins, arms (2,3): of a and of b, arms from the centre to the point;
    centre (3,): from the point to the centre of pressure of its area; lightness: sum of 1/mass.
    """
    v = sub(add(v, cross(spins[1], arms[1])), cross(spins[0], arms[0]))
    opening = dot(v, n)
    slide = sub(v, scale(opening, n))
    # Shear is answered under the pressure of the whole area, which knows nothing of its rocking.
    whole = opening + dot(cross(sub(spins[1], spins[0]), centre), n)
    normal, _, _ = respond(overlap, -opening, n, slide, slip, lightness, radius, mix, dt, law)
    pressure, shear, slip = respond(overlap, -whole, n, slide, slip, lightness, radius, mix, dt, law)
    return pressure, add(scale(normal, n), shear), slip


@fused
def rolling_couple(angle, wa, wb, n, pressure, overlap, radius, mix, dt):
    """Rolling resistance of a contact point: couple on b [N m], and the rolling angle to remember."""
    stiffness = 8.0 * mix.shear * math.sqrt(radius * overlap)
    return laws.roll(angle, sub(wb, wa), pressure, n, stiffness, radius, mix, dt)


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
    # One type on both sides, or the compiler would make a float of the row.
    return np.uintp(shapes.body[b]) if is_wall(shapes.kind[b]) else np.uintp(b)


@func
def gather(k, c, p, h, tables, near, mixes, edges, lane, about, family):
    """Write what the law reads of slot c of pair p, row h of near, into lane k; the others as in `work_off`."""
    rows, shapes, pairs, points, history, _ = tables
    periodic, rolling, uniform, _ = about
    lone, _, walls = family
    # Unsigned numbers are not tested for being negative.
    k, c, p, h = np.uintp(k), np.uintp(c), np.uintp(p), np.uintp(h)
    a, s = np.uintp(pairs.shape[p, 0]), np.uintp(pairs.shape[p, 1])
    b = np.uintp(shapes.body[s]) if walls else s
    for i in range(3):
        lane[AWAY + i, k] = between(a, s, b, i, rows, edges, periodic)
        lane[RELATIVE + i, k] = rows[b, VELOCITY + i] - rows[a, VELOCITY + i]
        lane[SPIN_A + i, k] = rows[a, SPIN + i]
        lane[SPIN_B + i, k] = rows[b, SPIN + i]
    lane[LIGHTNESS, k] = rows[a, PER_MASS] + rows[b, PER_MASS]
    if lone:
        # The point of a manifold that has one slot takes up its own history and shares with none.
        lives = history.live[c] == 1
        for i in range(3):
            lane[ARM + i, k] = points.arm[c, i]
            lane[NORMAL + i, k] = points.normal[c, i]
            lane[SLIP + i, k] = history.slip[c, i] if lives else 0.0
            if rolling:
                lane[ANGLE + i, k] = history.angle[c, i] if lives else 0.0
        lane[RADIUS, k], lane[SHARE, k], lane[OVERLAP, k] = points.radius[c], 1.0, -points.gap[c]
    else:
        for i in range(3):
            lane[ARM + i, k] = near[h, remembered.ARM + i]
            lane[NORMAL + i, k] = near[h, remembered.NORMAL + i]
            lane[SLIP + i, k] = near[h, remembered.SLIP + i]
            lane[CENTRE + i, k] = near[h, remembered.CENTRE + i]
            if rolling:
                lane[ANGLE + i, k] = near[h, remembered.ANGLE + i]
        lane[RADIUS, k] = near[h, remembered.RADIUS]
        lane[SHARE, k], lane[OVERLAP, k] = near[h, remembered.SHARE], near[h, remembered.OVERLAP]
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
def scatter(k, c, q, lane, points, history, wrench, rolling, lone):
    """Write the answer in lane k to slot c, what it remembers, and what it does to the bodies of pair q."""
    k, c, q = np.uintp(k), np.uintp(c), np.uintp(q)
    for i in range(3):
        points.force[c, i] = lane[FORCE + i, k]
        history.slip[c, i] = lane[SLIP + i, k]
        if not lone:
            history.arm[c, i] = lane[ARM + i, k]
            history.normal[c, i] = lane[NORMAL + i, k]
        if rolling:
            points.couple[c, i] = lane[COUPLE + i, k]
            history.angle[c, i] = lane[ANGLE + i, k]
        if lone:
            wrench.force[q, i] = lane[FORCE + i, k]
            wrench.moment[q, 0, i] = lane[MOMENT + i, k]
            wrench.moment[q, 1, i] = lane[BACK + i, k]
        else:
            wrench.force[q, i] += lane[FORCE + i, k]
            wrench.moment[q, 0, i] += lane[MOMENT + i, k]
            wrench.moment[q, 1, i] += lane[BACK + i, k]
    history.share[c], points.overlap[c] = lane[SHARE, k], lane[OVERLAP, k]
    history.live[c] = 1


@func
def count_points(first, last, pairs, points):
    """Points in use of the manifolds first to last."""
    many = 0
    for q in range(pairs.manifold[first], pairs.manifold[last]):
        many += points.count[np.uintp(q)]
    return many


@func
def forget(q, pairs, points, history, wrench):
    """Take the wrench of pair q back, and what slots remember that are not in use any more."""
    q = np.uintp(q)
    for i in range(3):
        wrench.force[q, i] = 0.0
        wrench.moment[q, 0, i] = 0.0
        wrench.moment[q, 1, i] = 0.0
    if wrench.live[q] == 1:
        for row in range(pairs.slot[q], pairs.slot[q + np.uintp(1)]):
            c = np.uintp(row)
            if history.live[c] == 1 and not points.gap[c] < 0.0:
                history.live[c] = 0
    wrench.live[q] = 1 if points.count[q] > 0 else 0


@func
def match(first, last, family, waiting, whose, near, pairs, points, history, wrench, power, rolling):
    """List the points in use of the manifolds first to last and their pairs: how many; near: what they share and take up."""
    lone, shares, _ = family
    manifold, slot, many, live = pairs.manifold, pairs.slot, points.count, wrench.live
    found = 0
    if lone:
        # A manifold is a pair with one slot. No branches that the processor cannot foresee; the list has room for one more.
        for row in range(manifold[first], manifold[last]):
            q = np.uintp(row)
            waiting[np.uintp(found)], whose[np.uintp(found)] = slot[q], row
            found += many[q]
            if live[q] != many[q]:
                forget(row, pairs, points, history, wrench)
        return found
    for row in range(manifold[first], manifold[last]):
        q = np.uintp(row)
        c, end, left = slot[q], slot[q + np.uintp(1)], many[q]
        while left > 0 and c < end:
            if points.gap[np.uintp(c)] < 0.0:
                waiting[np.uintp(found)], whose[np.uintp(found)] = c, row
                found += 1
                left -= 1
            c += 1
    area = shares and power > 0.0
    bring_near(found, waiting, area, points, history, near)
    begin = 0
    for m in range(first, last):
        low, high = manifold[np.uintp(m)], manifold[np.uintp(m + 1)]
        end = begin
        while end < found and whose[np.uintp(end)] < high:
            end += 1
        every = slot[np.uintp(low)], slot[np.uintp(high)]
        if area:
            take_up_area(begin, end, every, near, history, power, rolling)
        else:
            for k in range(begin, end):
                take_up(k, waiting[k], every, near, history, rolling)
        begin = end
        for q in range(low, high):
            if many[np.uintp(q)] > 0 or live[np.uintp(q)] == 1:
                forget(q, pairs, points, history, wrench)
    return found


@func
def work_off(first, last, family, work, spheres, tables, mixes, edges, dt, law, about):
    """Forces of all points of the manifolds first to last; about: whether there are periodic axes, rolling friction, one
    material, and the power with which the law's normal force grows.

    family: whether every manifold has one slot (lone), which takes up its own history and shares with none; whether points
    stand for one area of contact and share its stiffness; whether the second shapes are walls.

    A function of its own, because the row that makes the lanes counts references to all arrays of a table at every look into
    it: forces of 3,000 points took 320 us there.
    """
    _, rolling, uniform, power = about
    _, _, pairs, points, history, wrench = tables
    lane, waiting, whose, near = work
    lone = family[0]
    found = match(first, last, family, waiting, whose, near, pairs, points, history, wrench, power, rolling)
    mix = mix_of(mixes, 0)
    if lone:
        # A point that is alone is the centre of pressure.
        for k in range(WIDTH):
            put(lane, CENTRE, k, (0.0, 0.0, 0.0))
    for at in range(0, found, WIDTH):
        used = min(WIDTH, found - at)
        for k in range(used):
            c, q = waiting[at + k], whose[at + k]
            gather(k, c, q + spheres, at + k, tables, near, mixes, edges, lane, about, family)
        if at == 0:
            # Later on these lanes hold points that have been worked off, which does no harm either.
            for k in range(used, WIDTH):
                for i in range(ROWS):
                    lane[i, k] = 1.0
                if lone:
                    put(lane, CENTRE, k, (0.0, 0.0, 0.0))
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
            arm = vector(lane, ARM, k)
            arms = (arm, sub(arm, vector(lane, AWAY, k)))
            v, slip, overlap = vector(lane, RELATIVE, k), vector(lane, SLIP, k), lane[OVERLAP, k]
            centre, lightness, radius = vector(lane, CENTRE, k), lane[LIGHTNESS, k], lane[RADIUS, k]
            pressure, force, slip = answer(v, (wa, wb), arms, centre, n, overlap, slip, lightness, radius, mix, dt, law)
            force = scale(lane[SHARE, k], force)
            moment, back = cross(arms[0], force), cross(arms[1], force)
            if rolling:
                angle = vector(lane, ANGLE, k)
                couple, angle = rolling_couple(angle, wa, wb, n, pressure, overlap, radius, mix, dt)
                couple = scale(lane[SHARE, k], couple)
                moment, back = add(moment, couple), add(back, couple)
                put(lane, COUPLE, k, couple)
                put(lane, ANGLE, k, angle)
            put(lane, FORCE, k, force)
            put(lane, SLIP, k, slip)
            put(lane, MOMENT, k, moment)
            put(lane, BACK, k, back)
        for k in range(used):
            scatter(k, waiting[at + k], whose[at + k], lane, points, history, wrench, rolling, lone)


def force_block(block, where, family, rows, shapes, pairs, points, history, wrench, mixes, edges, dt):
    """Forces of all points of a block of manifolds; where: the first of them, how many, pairs before the first slot."""
    begin, count, spheres = where
    first, last = begin + block * BLOCK, min(begin + count, begin + (block + 1) * BLOCK)
    many = count_points(first, last, pairs, points)
    near = np.empty((0 if family[0] else many, remembered.COLUMNS))
    work = (np.empty((ROWS, WIDTH)), np.empty(many + 1, np.int64), np.empty(many + 1, np.int64), near)
    tables = (rows, shapes, pairs, points, history, wrench)
    work_off(first, last, family, work, spheres, tables, mixes, edges, dt, law, (PERIODIC, ROLLING, UNIFORM, POWER))


def force_row(k, where, family, rows, shapes, pairs, points, history, wrench, scratch, mixes, edges, dt):
    """The same for one manifold, one point at a time, for a CUDA grid; scratch: waiting, whose, near, with a row for each slot."""
    begin, _, spheres = where
    waiting, whose, near = scratch
    m = begin + k
    low, high = pairs.slot[pairs.manifold[m]], pairs.slot[pairs.manifold[m + 1]]
    waiting, whose, near = waiting[low:high], whose[low:high], near[low:high]
    found = match(m, m + 1, family, waiting, whose, near, pairs, points, history, wrench, POWER, ROLLING)
    for h in range(found):
        c, q = waiting[h], whose[h]
        p = q + spheres
        a, s = pairs.shape[p, 0], pairs.shape[p, 1]
        b = moving_row(s, shapes)
        mix = mix_of(mixes, pairs.mix[p])
        v = sub(velocity_at(rows, b), velocity_at(rows, a))
        wa, wb = spin_at(rows, a), spin_at(rows, b)
        away = (
            between(a, s, b, 0, rows, edges, PERIODIC),
            between(a, s, b, 1, rows, edges, PERIODIC),
            between(a, s, b, 2, rows, edges, PERIODIC),
        )
        arm, n, slip = (
            remembered.vector(near, h, remembered.ARM),
            remembered.vector(near, h, remembered.NORMAL),
            remembered.vector(near, h, remembered.SLIP),
        )
        share, overlap, radius = near[h, remembered.SHARE], near[h, remembered.OVERLAP], near[h, remembered.RADIUS]
        lightness = rows[a, PER_MASS] + rows[b, PER_MASS]
        arms = (arm, sub(arm, away))
        centre = remembered.vector(near, h, remembered.CENTRE)
        pressure, force, slip = answer(v, (wa, wb), arms, centre, n, overlap, slip, lightness, radius, mix, dt, law)
        force = scale(share, force)
        moment, back = cross(arms[0], force), cross(arms[1], force)
        if ROLLING:
            angle = remembered.vector(near, h, remembered.ANGLE)
            couple, angle = rolling_couple(angle, wa, wb, n, pressure, overlap, radius, mix, dt)
            couple = scale(share, couple)
            moment, back = add(moment, couple), add(back, couple)
            for i in range(3):
                points.couple[c, i] = couple[i]
                history.angle[c, i] = angle[i]
        for i in range(3):
            points.force[c, i] = force[i]
            history.slip[c, i] = slip[i]
            history.arm[c, i] = arm[i]
            history.normal[c, i] = n[i]
            wrench.force[q, i] += force[i]
            wrench.moment[q, 0, i] += moment[i]
            wrench.moment[q, 1, i] += back[i]
        history.share[c], points.overlap[c] = share, overlap
        history.live[c] = 1


def compose(law, rolling, periodic, uniform, power):
    """The kernel of contact points for a law; power: with which its normal force grows, see `clast.dem.laws.Law`."""
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
        POWER=power,
    )


def is_lone(state, family):
    """Whether every manifold of a family has one slot, whatever the neighbour list: on the CPU a shorter way."""
    walled = family.walls and len(state.meshes.triangle) > 0
    return state.device is backend.CPU and family.slots == 1 and not walled


def apply(force_kernel, state, mixes, edges, dt):
    """What contact points of a State remember and share, their forces, and the wrench of each pair."""
    device, slots = state.device, len(state.points.gap)
    tables = state.there.rows, state.there.shapes, state.pairs, state.points, state.history, state.wrench
    on_cpu, scratch = device is backend.CPU, ()
    if not on_cpu and state.ranges:
        lists = device.empty(slots, np.int64), device.empty(slots, np.int64)
        scratch = *lists, device.empty((slots, remembered.COLUMNS), np.float64)
    for r in state.ranges:
        family = same(is_lone(state, r.family), r.family.shares, r.family.walls)
        where = same(r.manifold, r.manifolds, state.spheres_count)
        if on_cpu:
            force_kernel((r.manifolds + BLOCK - 1) // BLOCK, where, family, *tables, mixes, edges, dt)
        else:
            force_kernel(r.manifolds, where, family, *tables, scratch, mixes, edges, dt)

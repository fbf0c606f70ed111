"""The two passes of an iteration on hard contacts: contacts step against the velocities of their bodies, bodies add up the impulses.

Numbers of 64 contacts stand side by side, arms in the order in which bodies read them. What is summed up on the way does not depend on any order (`clast.kernels.sums`).
"""

import math
from typing import NamedTuple

import numpy as np

from ..kernels.backend import fused
from ..kernels.rows import PER_INERTIA, PER_MASS
from ..kernels.sums import LARGEST, LIMITS, PARTS, SHIFT, WINDOWS, add_outlier, cut, halve, high_half
from ..kernels.vec import add, cross, dot, scale, sub
from ..motion.rotation import symmetric_vector
from .constraints import CHUNK, WIDTH
from .projections import project3, project6

# Where the numbers of a contact stand in a block of `Lanes.contact`: rows of WIDTH numbers. Unsigned, because numba tests signed ones for being negative, and
# then loops over lanes do not become vector instructions.
ROW = np.uintp(WIDTH)
NORMAL, ONE, TWO, BIAS, PER_SIZE, PER_REST, FRICTION = (np.uintp(WIDTH * row) for row in (0, 3, 6, 9, 10, 11, 12))
ROWS = 13
# The same of rolling and spinning friction,
LENGTH, ROLL, TWIST = (np.uintp(WIDTH * row) for row in (0, 1, 2))
COUPLE_ROWS = 3
# and of what a part of the work keeps for itself: velocities of both bodies, impulses and couples;
VELOCITY_A, SPIN_A, VELOCITY_B, SPIN_B, IMPULSE, COUPLE = (np.uintp(WIDTH * row) for row in (0, 3, 6, 9, 12, 15))
SEEN_ROWS = 18
# new impulses and couples, what is summed, how near that is to the limits, and the sums; then those of outliers, `sums.WINDOWS` rows each.
NEW, TURNED, TERM, NEAR, SUM, FAR = (np.uintp(WIDTH * row) for row in (0, 3, 6, 10, 11, 16))
TERMS = 4  # of a contact: slope, length, miss, curvature of what is compliant
SUMS = 5  # the same, then that of slopes without signs; behind them the one of bodies: energy
SLOPE, STRETCH, MISS, SOFT, GROSS, ENERGY = range(SUMS + 1)
SLOPE_ROW, STRETCH_ROW, MISS_ROW, SOFT_ROW, GROSS_ROW = (np.uintp(WIDTH * row) for row in range(SUMS))
WINDOWS_ROW = np.uintp(WIDTH * WINDOWS)
MADE_ROWS = 16 + SUMS * WINDOWS
BLOCKS = CHUNK // WIDTH  # of lanes a chunk


class Lanes(NamedTuple):
    """What a contact pass reads and writes beside impulses; b = ceil(c / WIDTH) blocks, the last one filled up with contacts of nothing.

    Where there are many contacts the time of a pass is that of reading and writing them: so no number stands here that follows from others.
    """

    body: np.ndarray  # (b*WIDTH,2) int32, rows of bodies
    contact: np.ndarray  # (b*ROWS*WIDTH,) numbers of the contacts, block after block, row after row
    change: np.ndarray  # (b*width*WIDTH,) float32 [N s], of the impulses in the last iteration: single precision, because it only tells where to go on
    seen: np.ndarray  # (parts*SEEN_ROWS*WIDTH,)
    made: np.ndarray  # (parts*MADE_ROWS*WIDTH,)
    limit: np.ndarray  # (6,) see `clast.kernels.sums`; 0: nothing is known yet
    sums: np.ndarray  # (chunks,2*SUMS) halves of the sums below the limits
    outlying: np.ndarray  # (chunks,SUMS*2*WINDOWS) and of the others,
    outliers: np.ndarray  # (chunks,) int8, if there are any


class Graph(NamedTuple):
    """What a body pass reads and writes beside velocities."""

    free: np.ndarray  # (n,8) velocity and spin without contacts [m/s, rad/s], one over mass and over inertia
    inverse: np.ndarray  # (n,6) or (0,6)
    start: np.ndarray  # (n+1,) first entry of each body
    entry: np.ndarray  # (e,) contacts of a body: 2 * contact + side
    arm: np.ndarray  # (e,3) [m], arms in the order of entries, turned round for the first body of a contact
    sums: np.ndarray  # (chunks,PARTS)


def lay_block(block, constraints, shift, body, contact, tension, soft, couple):
    """Numbers of one block of contacts side by side."""
    count = len(shift)
    for j in range(WIDTH):
        real = block * WIDTH + j < count
        row, i = np.uintp(block * WIDTH + j), np.uintp(min(block * WIDTH + j, count - 1))
        at = np.uintp(block * ROWS * WIDTH + j)
        body[row, 0], body[row, 1] = (constraints.body[i, 0], constraints.body[i, 1]) if real else (0, 0)
        for m in range(3):
            to = at + np.uintp(m * WIDTH)
            contact[to + NORMAL] = constraints.normal[i, m] if real else 0.0
            contact[to + ONE] = constraints.arm[i, m] if real else 0.0
            contact[to + TWO] = constraints.arm[i, 3 + m] if real else 0.0
        contact[at + BIAS] = constraints.bias[i] + shift[i] if real else 0.0
        contact[at + PER_SIZE] = 1.0 / constraints.size[i, 0] if real else 1.0
        contact[at + PER_REST] = 1.0 / constraints.size[i, 1] if real else 1.0
        contact[at + FRICTION] = constraints.limit[i, 0] if real else 0.0
        if tension is not None:
            tension[row] = constraints.limit[i, 1] if real else 0.0
        if soft is not None:
            soft[row] = constraints.soft[i] if real else 0.0
        if couple is not None:
            at = np.uintp(block * COUPLE_ROWS * WIDTH + j)
            couple[at + LENGTH] = constraints.length[i] if real else 0.0
            couple[at + ROLL] = constraints.limit[i, 2] if real else 0.0
            couple[at + TWIST] = constraints.limit[i, 3] if real else 0.0


def lay_entries(c, chunk, entry, constraints, arm, lever):
    """Arms of one chunk of entries; what acts on the first body of a contact is the impulse turned round."""
    for row in range(c * chunk, min(len(arm), (c + 1) * chunk)):
        at = np.uintp(row)
        k, side = np.uintp(entry[at] >> 1), entry[at] & 1
        sign = 1.0 if side else -1.0
        for m in range(3):
            arm[at, m] = sign * constraints.arm[k, np.uintp(3 * side + m)]
        if lever is not None:
            lever[at] = sign * constraints.length[k]


def lay_bodies(c, chunk, rows, given, free):
    """Velocities (n,6) of one chunk of bodies without contacts, and what one over their mass and inertia is: free (n,8)."""
    for row in range(c * chunk, min(len(free), (c + 1) * chunk)):
        i = np.uintp(row)
        for j in range(6):
            free[i, j] = given[i, j]
        free[i, 6], free[i, 7] = rows[i, PER_MASS], rows[i, PER_INERTIA]


@fused
def vector(lane, at):
    """Three rows of lanes as a vector; at: the place in the first."""
    return (lane[at], lane[at + ROW], lane[at + ROW + ROW])


@fused
def put(lane, at, x):
    """A vector into three rows of lanes."""
    lane[at] = x[0]
    lane[at + ROW] = x[1]
    lane[at + ROW + ROW] = x[2]


@fused
def step_block(momentum, step, contact, first, tension, soft, couple, seen, change, own, limit, made):
    """Contacts of one block step against the velocities of their bodies: see `contact_part`; first, own: where the block begins in `contact` and in
    `change`. What is stored has an array of its own, or the loop would not become vector instructions."""
    many = first // np.uintp(ROWS)
    per_slope, per_length, per_miss, per_soft = (
        1.0 / limit[GROSS],
        1.0 / limit[STRETCH],
        1.0 / limit[MISS],
        1.0 / limit[SOFT],
    )
    for j in range(WIDTH):
        k = np.uintp(j)
        at, to = first + k, own + k
        n, one, two = vector(contact, at + NORMAL), vector(contact, at + ONE), vector(contact, at + TWO)
        mu, pull = contact[at + FRICTION], 0.0
        if tension is not None:
            pull = tension[many + k]
        size, rest = 1.0 / contact[at + PER_SIZE], 1.0 / contact[at + PER_REST]
        ahead, across = step * contact[at + PER_SIZE], step * contact[at + PER_REST]
        ratio = rest * contact[at + PER_SIZE]
        wa, wb = vector(seen, k + SPIN_A), vector(seen, k + SPIN_B)
        u = sub(add(vector(seen, k + VELOCITY_B), cross(wb, two)), add(vector(seen, k + VELOCITY_A), cross(wa, one)))
        g = vector(seen, k + IMPULSE)
        y = add(g, scale(momentum, vector(change, to)))
        bias = contact[at + BIAS]
        if soft is not None:
            bias += soft[many + k] * dot(y, n)
        u = add(u, scale(bias, n))
        target = sub(y, add(scale((ahead - across) * dot(u, n), n), scale(across, u)))
        slope, length, miss = 0.0, 0.0, 0.0
        if couple is None:
            new = project3(target, n, mu, pull, ratio)
        else:
            also = many * np.uintp(COUPLE_ROWS) + k
            lever, roll, twist = couple[also + LENGTH], couple[also + ROLL], couple[also + TWIST]
            g6 = vector(seen, k + COUPLE)
            y6 = add(g6, scale(momentum, vector(change, to + TURNED)))
            spin = scale(lever, sub(wb, wa))
            new, turned = project6(target, sub(y6, scale(across, spin)), n, mu, pull, roll, twist, ratio)
            d6, e6 = sub(turned, g6), sub(turned, y6)
            slope, length, miss = dot(spin, d6), rest * dot(d6, d6), rest * rest * dot(e6, e6)
            put(made, k + TURNED, turned)
        d, e = sub(new, g), sub(new, y)
        dn, en = dot(d, n), dot(e, n)
        put(made, k + NEW, new)
        slope += dot(u, d)
        length += rest * dot(d, d) + (size - rest) * dn * dn
        miss += rest * rest * (dot(e, e) - en * en) + size * size * en * en
        put(made, k + TERM, (slope, length, miss))
        near = math.fabs(slope) * per_slope + length * per_length + miss * per_miss
        if soft is not None:
            bent = soft[many + k] * dn * dn
            made[k + TERM + ROW + ROW + ROW] = bent
            near += bent * per_soft
        made[k + NEAR] = near


@fused
def add_lanes(made, row, limit):
    """Add the terms of a block in a row, without what is cut off, to the sums. A function of its own for each row, because a loop over rows would not become
    vector instructions."""
    shift = SHIFT * limit
    for j in range(WIDTH):
        k = row + np.uintp(j)
        made[SUM + k] += (made[TERM + k] + shift) - shift


@fused
def put_off(made, window, limit):
    """Cut what is left of outliers, in the row NEAR, and add it to the sums of a window."""
    shift = SHIFT * limit
    for j in range(WIDTH):
        k = np.uintp(j)
        rest = made[NEAR + k]
        part = (rest + shift) - shift
        made[NEAR + k] = rest - part
        made[FAR + window + k] += part


@fused
def take_row(made, row, to, limit, positive):
    """Add what is not below the limit of the terms of a block in a row to sums of outliers, without signs if positive; else it is taken from the terms."""
    for j in range(WIDTH):
        k = np.uintp(j)
        x = made[TERM + row + k]
        size = math.fabs(x)
        value = size if positive else x
        rest = 0.0 if size < limit else value
        made[NEAR + k] = rest if math.fabs(rest) < LARGEST else math.inf
    if not positive:
        for j in range(WIDTH):
            k = TERM + row + np.uintp(j)
            x = made[k]
            made[k] = x if math.fabs(x) < limit else 0.0
    put_off(made, to, LIMITS[0])
    put_off(made, to + ROW, LIMITS[1])
    put_off(made, to + ROW + ROW, LIMITS[2])
    put_off(made, to + ROW + ROW + ROW, LIMITS[3])
    put_off(made, to + ROW + ROW + ROW + ROW, LIMITS[4])


@fused
def take_outliers(limit, soft, made):
    """Add what is not below its limit of the terms of a block to the sums of outliers, and take it from the terms."""
    take_row(made, SLOPE_ROW, WINDOWS_ROW * GROSS_ROW // ROW, limit[GROSS], True)  # while they are there
    take_row(made, SLOPE_ROW, SLOPE_ROW, limit[SLOPE], False)
    take_row(made, STRETCH_ROW, WINDOWS_ROW * STRETCH_ROW // ROW, limit[STRETCH], False)
    take_row(made, MISS_ROW, WINDOWS_ROW * MISS_ROW // ROW, limit[MISS], False)
    if soft is not None:
        take_row(made, SOFT_ROW, WINDOWS_ROW * SOFT_ROW // ROW, limit[SOFT], False)


@fused
def sum_lanes(lane, at):
    """The sum of WIDTH numbers that are added without an error, and so in any order; they are written over."""
    half = WIDTH
    while half > 8:
        half //= 2
        for j in range(half):
            lane[at + np.uintp(j)] += lane[at + np.uintp(half + j)]
    total = 0.0
    for j in range(half):
        total += lane[at + np.uintp(j)]
    return total


@fused
def close_chunk(chunk, outliers, lanes, made):
    """Write the sums of a chunk of contacts in halves."""
    for s in range(SUMS):
        whole = sum_lanes(made, SUM + np.uintp(s * WIDTH))
        high = high_half(whole, lanes.limit[s])
        lanes.sums[chunk, 2 * s], lanes.sums[chunk, 2 * s + 1] = high, whole - high
    lanes.outliers[chunk] = 1 if outliers else 0
    if outliers:
        for s in range(SUMS):
            for w in range(WINDOWS):
                whole = sum_lanes(made, FAR + np.uintp((s * WINDOWS + w) * WIDTH))
                high, at = high_half(whole, LIMITS[w]), 2 * (s * WINDOWS + w)
                lanes.outlying[chunk, at], lanes.outlying[chunk, at + 1] = high, whole - high


@fused
def contact_part(p, parts, momentum, step, counted, lanes, tension, soft, couple, velocity, impulse):
    """One part of the contacts steps against the velocities (n,8) of bodies at y: new impulses (c,width), in place, and their change.

    step: in units of one over the size of a contact; counted: so many of the first contacts are summed up, the others are those of other processes. Sums of
    a chunk: u.d, the same without signs, d.d weighted with size, the square of the miss (y - new) size [m/s],
    and what compliance adds to d.W d, with d = new - now.
    """
    count, width = len(impulse), 3 if couple is None else 6
    chunks, blocks = len(lanes.sums), (count + WIDTH - 1) // WIDTH
    seen, made, change = lanes.seen[p * SEEN_ROWS * WIDTH :], lanes.made[p * MADE_ROWS * WIDTH :], lanes.change
    limit = lanes.limit
    for chunk in range(p * chunks // parts, (p + 1) * chunks // parts):
        for m in range(SUMS * WIDTH):
            made[SUM + np.uintp(m)] = 0.0
        for m in range(TERMS * WIDTH):
            made[TERM + np.uintp(m)] = 0.0
        outliers = False
        for block in range(chunk * BLOCKS, min((chunk + 1) * BLOCKS, blocks)):
            used = min(WIDTH, count - block * WIDTH)
            for j in range(used):
                i, k = np.uintp(block * WIDTH + j), np.uintp(j)
                a, b = np.uintp(lanes.body[i, 0]), np.uintp(lanes.body[i, 1])
                for m in range(6):
                    seen[k + np.uintp(m * WIDTH)] = velocity[a, m]
                    seen[k + VELOCITY_B + np.uintp(m * WIDTH)] = velocity[b, m]
                for m in range(width):
                    seen[k + IMPULSE + np.uintp(m * WIDTH)] = impulse[i, m]
            for j in range(used, WIDTH):
                for m in range(SEEN_ROWS):
                    seen[np.uintp(m * WIDTH + j)] = 0.0
            first, own = np.uintp(block * ROWS * WIDTH), np.uintp(block * width * WIDTH)
            step_block(momentum, step, lanes.contact, first, tension, soft, couple, seen, change, own, limit, made)
            for j in range(max(counted - block * WIDTH, 0), WIDTH):
                for m in range(TERMS + 1):
                    made[TERM + np.uintp(m * WIDTH + j)] = 0.0
            beyond = 0
            for j in range(WIDTH):
                beyond += 0 if made[NEAR + np.uintp(j)] < 1.0 else 1
            if beyond > 0:
                if not outliers:
                    for m in range(SUMS * WINDOWS * WIDTH):
                        made[FAR + np.uintp(m)] = 0.0
                outliers = True
                take_outliers(limit, soft, made)
            shift = SHIFT * limit[SLOPE]
            for j in range(WIDTH):
                k = np.uintp(j)
                part = (made[TERM + k] + shift) - shift
                made[SUM + k] += part
                made[SUM + GROSS_ROW + k] += math.fabs(part)
            add_lanes(made, STRETCH_ROW, limit[STRETCH])
            add_lanes(made, MISS_ROW, limit[MISS])
            if soft is not None:
                add_lanes(made, SOFT_ROW, limit[SOFT])
            for m in range(width * WIDTH):
                k = np.uintp(m)
                change[own + k] = made[NEW + k] - seen[IMPULSE + k]
            for j in range(used):
                i, k = np.uintp(block * WIDTH + j), np.uintp(j)
                for m in range(width):
                    impulse[i, m] = made[NEW + k + np.uintp(m * WIDTH)]
        close_chunk(chunk, outliers, lanes, made)


@fused
def return_part(p, parts, change, impulse):
    """One part of the impulses (c,width) as they were before the last iteration, up to the last digits of the change; nothing where they are no numbers."""
    count, width = impulse.shape
    for i in range(p * count // parts, (p + 1) * count // parts):
        fine = True
        for m in range(width):
            at = (i // WIDTH * width + m) * WIDTH + i % WIDTH
            impulse[i, m] -= change[at]
            change[at] = 0.0
            fine = fine and math.isfinite(impulse[i, m])
        for m in range(width):
            impulse[i, m] = impulse[i, m] if fine else 0.0


@fused
def body_part(p, parts, momentum, limit, graph, lever, impulse, velocity, ahead):
    """Velocities (n,8) of one part of the bodies under the impulses, in place, and where momentum carries them from those before, `ahead`.

    Sums of a chunk: the impulse of the change times the change of velocity, d.W d; limit (6,): see Lanes.
    """
    free, start, entry, arm, sums = graph.free, graph.start, graph.entry, graph.arm, graph.sums
    chunks, most = len(sums), limit[ENERGY]
    for chunk in range(p * chunks // parts, (p + 1) * chunks // parts):
        for m in range(PARTS):
            sums[chunk, m] = 0.0
        small = 0.0
        for row in range(chunk * CHUNK, min(len(free), (chunk + 1) * CHUNK)):
            i = np.uintp(row)
            per_mass = free[i, 6]
            if per_mass == 0.0 or start[i] == start[i + np.uintp(1)]:
                for j in range(6):
                    velocity[i, j] = ahead[i, j] = free[i, j]
                continue
            fx, fy, fz = 0.0, 0.0, 0.0
            tx, ty, tz = 0.0, 0.0, 0.0
            for place in range(start[i], start[i + np.uintp(1)]):
                at = np.uintp(place)
                e = entry[at]
                k = np.uintp(e >> 1)
                sign = 1.0 if e & 1 else -1.0
                gx, gy, gz = impulse[k, 0], impulse[k, 1], impulse[k, 2]
                ax, ay, az = arm[at, 0], arm[at, 1], arm[at, 2]
                fx += sign * gx
                fy += sign * gy
                fz += sign * gz
                tx += ay * gz - az * gy
                ty += az * gx - ax * gz
                tz += ax * gy - ay * gx
                if lever is not None:
                    tx += lever[at] * impulse[k, 3]
                    ty += lever[at] * impulse[k, 4]
                    tz += lever[at] * impulse[k, 5]
            w = spin_from(i, (tx, ty, tz), free, graph.inverse)
            new = (free[i, 0] + per_mass * fx, free[i, 1] + per_mass * fy, free[i, 2] + per_mass * fz)
            spin = (free[i, 3] + w[0], free[i, 4] + w[1], free[i, 5] + w[2])
            change = sub(new, (velocity[i, 0], velocity[i, 1], velocity[i, 2]))
            turn = sub(spin, (velocity[i, 3], velocity[i, 4], velocity[i, 5]))
            for j in range(3):
                velocity[i, j], velocity[i, 3 + j] = new[j], spin[j]
            if momentum > 0.0:
                for j in range(3):
                    ahead[i, j] = new[j] + momentum * change[j]
                    ahead[i, 3 + j] = spin[j] + momentum * turn[j]
            # What changes the velocity by this much: the impulse now less that before, which is not kept.
            energy = dot(change, change) / per_mass + spin_energy(i, turn, free, graph.inverse)
            if energy < most:
                small += cut(energy, most)
            else:
                add_outlier(energy, sums[chunk])
        sums[chunk, 0] = small
        halve(sums[chunk], most)


@fused
def spin_from(i, torque, free, inverse):
    """J^-1 torque of body i."""
    if len(inverse) > 0:
        return symmetric_vector(
            (inverse[i, 0], inverse[i, 1], inverse[i, 2], inverse[i, 3], inverse[i, 4], inverse[i, 5]), torque
        )
    return scale(free[i, 7], torque)


@fused
def spin_energy(i, w, free, inverse):
    """w . J w of body i, J the inertia whose inverse is known (twice the energy of this spin)."""
    if len(inverse) > 0:
        a, b, c, d, e, f = inverse[i, 0], inverse[i, 1], inverse[i, 2], inverse[i, 3], inverse[i, 4], inverse[i, 5]
        p, q, r = b * c - f * f, e * f - c * d, d * f - b * e
        s, t, o = a * c - e * e, d * e - a * f, a * b - d * d
        x, y, z = w
        square = p * x * x + s * y * y + o * z * z + 2.0 * (q * x * y + r * x * z + t * y * z)
        return square / (a * p + d * q + e * r)
    return dot(w, w) / free[i, 7]

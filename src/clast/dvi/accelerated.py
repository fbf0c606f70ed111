"""Accelerated projected gradient on the contacts of bodies, with two passes an iteration and no velocity of a contact stored.

Nesterov's method asks for velocities where momentum has carried the impulses, y = g + m (g - g_old). Bodies are fewer than contacts, so it is their
velocities that are carried on: a pass over contacts reads them and writes the new impulses over the old ones, a pass over bodies adds
these up and carries the velocities on. Everything that steers the iteration is summed on the way.

What the passes read is laid out for them once a solve: numbers of 64 contacts side by side, arms in the order in which bodies read them. All iterations
are one call of compiled code, which hands both passes to the threads.
"""

import math
import time
from typing import NamedTuple

import numba
import numpy as np

from ..kernels import backend
from ..kernels.ahead import plain_spread
from ..kernels.backend import Pace, bind, fused, kernel
from ..kernels.reached import stored
from ..kernels.rows import PER_INERTIA, PER_MASS
from ..kernels.spread import spread
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
# new impulses and couples, what is summed, and the sums.
NEW, TURNED, TERM, SUM = (np.uintp(WIDTH * row) for row in (0, 3, 6, 10))
MADE_ROWS = 14
SUMS = 4  # of contacts: slope, length, miss, curvature of what is compliant
# What contacts miss together along a pile or a tower shows in none of them, and an error that is left in every step moves what should rest. So a
# solve does this part of the iterations that it may, and no fewer than so many and no more than so many of them, unless the error is a small part of the
# tolerance. Bodies at rest then come closer to the solution from step to step, until there is nothing left to do. 1,000 balls ended at 4e-6 m/s after 3 s with
# 20 and with 30; with 12 they went on at 2e-5 to 2e-4 m/s.
LEAST, FEWEST, MOST = 0.3, 20, 60
EXACT = 1e-3
BLOCKS = CHUNK // WIDTH  # of lanes a chunk; sums are by chunk, so that they do not depend on how the work is divided
PARTS = 8  # of the work a thread: one that is held up leaves the others with little to wait for
ALONE = 512  # contacts up to which a second thread costs more than it helps


class Lanes(NamedTuple):
    """What a contact pass reads and writes beside impulses; b = ceil(c / WIDTH) blocks, the last one filled up with contacts of nothing.

    Where there are many contacts the time of a pass is that of reading and writing them: so no number stands here that follows from others.
    """

    body: np.ndarray  # (b*WIDTH,2) int32, rows of bodies
    contact: np.ndarray  # (b*ROWS*WIDTH,) numbers of the contacts, block after block, row after row
    change: np.ndarray  # (b*width*WIDTH,) float32 [N s], of the impulses in the last iteration: single precision, because it only tells where to go on
    seen: np.ndarray  # (parts*SEEN_ROWS*WIDTH,)
    made: np.ndarray  # (parts*MADE_ROWS*WIDTH,)
    sums: np.ndarray  # (chunks,4)


class Graph(NamedTuple):
    """What a body pass reads and writes beside velocities."""

    free: np.ndarray  # (n,8) velocity and spin without contacts [m/s, rad/s], one over mass and over inertia
    inverse: np.ndarray  # (n,6) or (0,6)
    start: np.ndarray  # (n+1,) first entry of each body
    entry: np.ndarray  # (2c,) contacts of a body: 2 * contact + side
    arm: np.ndarray  # (2c,3) [m], arms in the order of entries, turned round for the first body of a contact
    sums: np.ndarray  # (chunks,)


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
def step_block(momentum, step, contact, first, tension, soft, couple, seen, change, own, made):
    """Contacts of one block step against the velocities of their bodies: see `contact_part`; first, own: where the block begins in `contact` and in
    `change`. What is stored has an array of its own, or the loop would not become vector instructions."""
    many = first // np.uintp(ROWS)
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
        if soft is not None:
            made[k + TERM + ROW + ROW + ROW] = soft[many + k] * dn * dn


@fused
def contact_part(p, parts, momentum, step, lanes, tension, soft, couple, velocity, impulse):
    """One part of the contacts steps against the velocities (n,8) of bodies at y: new impulses (c,width), in place, and their change.

    step: in units of one over the size of a contact. Sums of a chunk: u.d, d.d weighted with size, the square of the miss (y - new) size [m/s],
    and what compliance adds to d.W d, with d = new - now.
    """
    count, width = len(impulse), 3 if couple is None else 6
    chunks, blocks = len(lanes.sums), (count + WIDTH - 1) // WIDTH
    seen, made, change = lanes.seen[p * SEEN_ROWS * WIDTH :], lanes.made[p * MADE_ROWS * WIDTH :], lanes.change
    for chunk in range(p * chunks // parts, (p + 1) * chunks // parts):
        for m in range(SUMS * WIDTH):
            made[SUM + np.uintp(m)] = made[TERM + np.uintp(m)] = 0.0
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
            step_block(momentum, step, lanes.contact, first, tension, soft, couple, seen, change, own, made)
            for m in range(SUMS * WIDTH):
                made[SUM + np.uintp(m)] += made[TERM + np.uintp(m)]
            for m in range(width * WIDTH):
                k = np.uintp(m)
                change[own + k] = made[NEW + k] - seen[IMPULSE + k]
            for j in range(used):
                i, k = np.uintp(block * WIDTH + j), np.uintp(j)
                for m in range(width):
                    impulse[i, m] = made[NEW + k + np.uintp(m * WIDTH)]
        for m in range(SUMS):
            total = 0.0
            for j in range(WIDTH):
                total += made[SUM + np.uintp(m * WIDTH + j)]
            lanes.sums[chunk, m] = total


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
def body_part(p, parts, momentum, graph, lever, impulse, velocity, ahead):
    """Velocities (n,8) of one part of the bodies under the impulses, in place, and where momentum carries them from those before, `ahead`.

    Sums of a chunk: the impulse of the change times the change of velocity, d.W d.
    """
    free, start, entry, arm, sums = graph.free, graph.start, graph.entry, graph.arm, graph.sums
    chunks = len(sums)
    for chunk in range(p * chunks // parts, (p + 1) * chunks // parts):
        energy = 0.0
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
            energy += dot(change, change) / per_mass + spin_energy(i, turn, free, graph.inverse)
        sums[chunk] = energy


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


@stored(_nrt=False, error_model="numpy", no_cfunc_wrapper=True)
def iterate(threads, parts, goal, largest, lanes, graph, options, impulse, velocity, ahead):
    """Iterate from the impulses (c,width), in place, until the miss of the contacts is small; returns iterations, the largest curvature, and whether the
    last iteration stands or was taken back.

    goal: tolerance and exact tolerance [m/s], both times the root of the number of contacts, fewest and most iterations; options: tension, soft,
    couple and lever, each an array or None; velocity, ahead: (n,8), written over. Restarts where momentum points uphill (O'Donoghue & Candes 2015). The step is one over the largest curvature met; a step that was much too
    long is taken back.
    """
    tolerance, exact, fewest, most = goal
    tension, soft, couple, lever = options
    spread(body_part, 0, parts, threads, (parts, 0.0, graph, lever, impulse, velocity, ahead))
    where = velocity  # at y
    theta, momentum, used, longest, stands = 1.0, 0.0, 0, 0.0, True
    while used < most:
        about = (parts, momentum, 1.0 / largest, lanes, tension, soft, couple, where, impulse)
        spread(contact_part, 0, parts, threads, about)
        used += 1
        slope, length, miss, curvature = 0.0, 0.0, 0.0, 0.0
        for c in range(len(lanes.sums)):
            slope += lanes.sums[c, 0]
            length += lanes.sums[c, 1]
            miss += lanes.sums[c, 2]
            curvature += lanes.sums[c, 3]
        next_theta = 0.5 * theta * (math.sqrt(theta * theta + 4.0) - theta)
        carried = theta * (1.0 - theta) / (theta * theta + next_theta)
        if slope > 0.0:
            # A restart is also the moment to forget curvature that is no longer met.
            next_theta, carried = 1.0, 0.0
        spread(body_part, 0, parts, threads, (parts, carried, graph, lever, impulse, velocity, ahead))
        for c in range(len(graph.sums)):
            curvature += graph.sums[c]
        # Where a step changed nothing but last digits, so does the change of velocity.
        longest = max(longest, length)
        met = curvature / length if length > 1e-18 * longest else 0.0
        fine = math.isfinite(met) and math.isfinite(slope) and math.isfinite(length) and math.isfinite(miss)
        stands = fine and met <= 1.5 * largest
        if not stands:
            largest *= min(1.05 * met / largest, 4.0) if fine else 4.0
            spread(return_part, 0, parts, threads, (parts, lanes.change, impulse))
            spread(body_part, 0, parts, threads, (parts, 0.0, graph, lever, impulse, velocity, ahead))
            theta, momentum, where = 1.0, 0.0, velocity
            continue
        if met > max(largest, 1.0 + 1e-6):  # a step that is exact for a contact alone stays so
            largest, next_theta, carried = 1.05 * met, 1.0, 0.0
        elif slope > 0.0:
            largest = max(0.95 * largest, 1.0)  # no less than that of a single contact
        where = ahead if carried > 0.0 else velocity
        theta, momentum = next_theta, carried
        left = largest * math.sqrt(miss)
        if left <= (tolerance if used >= fewest else exact):
            break
    return used, largest, stands


class Buffers:
    """Arrays of a solve, kept from step to step: new ones for millions of contacts would cost as much as some iterations."""

    def __init__(self):
        self.arrays, self.paces = {}, {}

    def get(self, name, *shape, dtype=np.float64):
        """An array of this shape with anything in it."""
        size = math.prod(shape)
        kept = self.arrays.get(name)
        if kept is None or len(kept) < size:
            kept = self.arrays[name] = np.zeros(size + size // 8, dtype)
        return kept[:size].reshape(shape)


def descend(cones, impulse, tolerance, iterations, largest, buffers):
    """Iterate from impulses inside the cones, in place, until the miss of the contacts is small: see `iterate` for what is returned.

    Where the last iteration was taken back impulses are inside the cones up to rounding only.
    """
    constraints, count, n, get = cones.constraints, cones.count, len(cones.free), buffers.get
    chunks, bodies = (count + CHUNK - 1) // CHUNK, (n + CHUNK - 1) // CHUNK
    blocks, parts = (count + WIDTH - 1) // WIDTH, PARTS * numba.get_num_threads()
    # What a scene does not have takes no time.
    tension = get("tension", blocks * WIDTH) if constraints.limit[:, 1].any() else None
    soft = get("soft", blocks * WIDTH) if len(constraints.soft) else None
    couple, lever = None, None
    if cones.width == 6:
        couple, lever = get("couple", blocks * COUPLE_ROWS * WIDTH), get("lever", 2 * count)
    lanes = Lanes(
        get("body", blocks * WIDTH, 2, dtype=np.int32),
        get("contact", blocks * ROWS * WIDTH),
        get("change", blocks * cones.width * WIDTH, dtype=np.float32),
        get("seen", parts * SEEN_ROWS * WIDTH),
        get("made", parts * MADE_ROWS * WIDTH),
        get("sums", chunks, SUMS),
    )
    arm, free = get("arm", 2 * count, 3), get("free", n, 8)
    graph = Graph(free, cones.inverse, cones.start, cones.entry, arm, get("energy", bodies))
    velocity, ahead = get("velocity", n, 8), get("ahead", n, 8)
    kernel(lay_block, grain=16)(blocks, constraints, cones.shift, lanes.body, lanes.contact, tension, soft, couple)
    kernel(lay_entries, grain=4)((2 * count + CHUNK - 1) // CHUNK, CHUNK, cones.entry, constraints, arm, lever)
    kernel(lay_bodies, grain=4)(bodies, CHUNK, cones.rows, cones.free, free)
    lanes.change[:] = velocity[:] = 0.0
    fewest = min(max(math.ceil(LEAST * iterations), FEWEST), MOST)
    goal = tolerance * cones.norm, EXACT * tolerance * cones.norm, fewest, iterations
    pace = buffers.paces.setdefault(count.bit_length(), Pace())
    threads, began = pace.choose() if count > ALONE else 1, time.perf_counter()
    about = lanes, graph, (tension, soft, couple, lever), impulse, velocity, ahead
    run = bind(iterate.py_func, spread=plain_spread) if backend.SIMULATED else iterate
    used, largest, stands = run(threads, parts, goal, largest, *about)
    if count > ALONE:
        pace.note(threads, (time.perf_counter() - began) / max(used, 1))
    return used, largest, stands

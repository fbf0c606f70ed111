"""Accelerated projected gradient on the contacts of bodies, with two passes an iteration and no velocity of a contact stored.

Nesterov's method asks for velocities where momentum has carried the impulses, y = g + m (g - g_old). Bodies are fewer than contacts, so it is their
velocities that are carried on: a pass over contacts reads them and writes the new impulses over the old ones, a pass over bodies adds
these up and carries the velocities on. Everything that steers the iteration is summed on the way.

What the passes read is laid out for them once a solve (`clast.dvi.lanes`). All iterations
are one call of compiled code, which hands both passes to the threads. Where several processes share the contacts, each iteration takes one message to
each neighbour, of the velocities of bodies that it has as ghosts, and one reduction of the sums.
"""

import math
import time

import numba
import numpy as np

from ..kernels import backend
from ..kernels.ahead import plain_spread
from ..kernels.backend import Pace, bind, kernel, within
from ..kernels.reached import stored
from ..kernels.spread import spread, tell
from ..kernels.sums import PARTS, WINDOWS, next_limit, total
from .constraints import CHUNK, WIDTH
from .lanes import (
    COUPLE_ROWS,
    ENERGY,
    GROSS,
    MADE_ROWS,
    MISS,
    ROWS,
    SEEN_ROWS,
    SLOPE,
    SOFT,
    STRETCH,
    SUMS,
    Graph,
    Lanes,
    body_part,
    contact_part,
    lay_block,
    lay_bodies,
    lay_entries,
    return_part,
)

# What contacts miss together along a pile or a tower shows in none of them, and an error that is left in every step moves what should rest. So a
# solve does this part of the iterations that it may, and no fewer than so many and no more than so many of them, unless the error is a small part of the
# tolerance. Bodies at rest then come closer to the solution from step to step, until there is nothing left to do. 1,000 balls ended at 4e-6 m/s after 3 s with
# 20 and with 30; with 12 they went on at 2e-5 to 2e-4 m/s.
LEAST, FEWEST, MOST = 0.3, 20, 60
EXACT = 1e-3
SHARES = 8  # of the work a thread: one that is held up leaves the others with little to wait for
ALONE = 512  # contacts up to which a second thread costs more than it helps


# What processes that share the contacts are told, see `clast.mpi.hard`: that these are to be met, or added up.
VELOCITY, AHEAD, ADD = range(3)


@within
def add_up(lanes, graph, sums):
    """The sums (6,PARTS) of all chunks."""
    sums[:] = 0.0
    for c in range(len(lanes.sums)):
        for s in range(SUMS):
            sums[s, 0] += lanes.sums[c, 2 * s]
            sums[s, 1] += lanes.sums[c, 2 * s + 1]
        if lanes.outliers[c]:
            for s in range(SUMS):
                for m in range(2 * WINDOWS):
                    sums[s, 2 + m] += lanes.outlying[c, 2 * WINDOWS * s + m]
    for c in range(len(graph.sums)):
        for m in range(PARTS):
            sums[ENERGY, m] += graph.sums[c, m]


@within
def guess_limits(sums, limit):
    """Limits (6,) for the terms of the next iteration from the sums of the last."""
    for s in range(STRETCH, ENERGY + 1):
        limit[s] = next_limit(total(sums[s]), limit[s])
    limit[SLOPE] = limit[GROSS]


@stored(_nrt=False, error_model="numpy", no_cfunc_wrapper=True)
def iterate(threads, parts, goal, largest, counted, meet, lanes, graph, options, impulse, velocity, ahead, sums):
    """Iterate from the impulses (c,width), in place, until the miss of the contacts is small; returns iterations, the largest curvature, and whether the
    last iteration stands or was taken back.

    goal: tolerance and exact tolerance [m/s], both times the root of the number of contacts, fewest and most iterations; counted: see `contact_part`; meet: address of
    a function that tells other processes what is to be done, 0 without them; options: tension, soft,
    couple and lever, each an array or None; velocity, ahead: (n,8), sums (6,PARTS), written over. Restarts where momentum points uphill (O'Donoghue & Candes 2015). The step is one over the largest curvature met; a step that was much too
    long is taken back.
    """
    tolerance, exact, fewest, most = goal
    tension, soft, couple, lever = options
    spread(body_part, 0, parts, threads, (parts, 0.0, lanes.limit, graph, lever, impulse, velocity, ahead))
    if meet != 0:
        tell(meet, VELOCITY)
    where = velocity  # at y
    theta, momentum, used, longest, stands = 1.0, 0.0, 0, 0.0, True
    while used < most:
        about = (parts, momentum, 1.0 / largest, counted, lanes, tension, soft, couple, where, impulse)
        spread(contact_part, 0, parts, threads, about)
        used += 1
        next_theta = 0.5 * theta * (math.sqrt(theta * theta + 4.0) - theta)
        carried = theta * (1.0 - theta) / (theta * theta + next_theta)
        spread(body_part, 0, parts, threads, (parts, carried, lanes.limit, graph, lever, impulse, velocity, ahead))
        add_up(lanes, graph, sums)
        if meet != 0:
            tell(meet, ADD)
        slope, length, miss = total(sums[SLOPE]), total(sums[STRETCH]), total(sums[MISS])
        curvature = total(sums[SOFT]) + total(sums[ENERGY])
        guess_limits(sums, lanes.limit)
        if slope > 0.0:
            # A restart is also the moment to forget curvature that is no longer met.
            next_theta, carried = 1.0, 0.0
        # Where a step changed nothing but last digits, so does the change of velocity.
        longest = max(longest, length)
        met = curvature / length if length > 1e-18 * longest else 0.0
        fine = math.isfinite(met) and math.isfinite(slope) and math.isfinite(length) and math.isfinite(miss)
        stands = fine and met <= 1.5 * largest
        if not stands:
            largest *= min(1.05 * met / largest, 4.0) if fine else 4.0
            spread(return_part, 0, parts, threads, (parts, lanes.change, impulse))
            spread(body_part, 0, parts, threads, (parts, 0.0, lanes.limit, graph, lever, impulse, velocity, ahead))
            if meet != 0:
                tell(meet, VELOCITY)
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
        if meet != 0:
            tell(meet, AHEAD if carried > 0.0 else VELOCITY)
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
    constraints, count, own, get = cones.constraints, len(impulse), len(cones.free), buffers.get
    n = len(cones.rows) if cones.others.many else own
    chunks, bodies, entries = (count + CHUNK - 1) // CHUNK, (own + CHUNK - 1) // CHUNK, len(cones.entry)
    blocks, parts = (count + WIDTH - 1) // WIDTH, SHARES * numba.get_num_threads()
    # What a scene does not have takes no time.
    tension = get("tension", blocks * WIDTH) if cones.pulls else None
    soft = get("soft", blocks * WIDTH) if len(constraints.soft) else None
    couple, lever = None, None
    if cones.width == 6:
        couple, lever = get("couple", blocks * COUPLE_ROWS * WIDTH), get("lever", entries)
    sums = np.empty((SUMS + 1, PARTS))
    lanes = Lanes(
        get("body", blocks * WIDTH, 2, dtype=np.int32),
        get("contact", blocks * ROWS * WIDTH),
        get("change", blocks * cones.width * WIDTH, dtype=np.float32),
        get("seen", parts * SEEN_ROWS * WIDTH),
        get("made", parts * MADE_ROWS * WIDTH),
        np.zeros(SUMS + 1),
        get("sums", chunks, 2 * SUMS),
        get("outlying", chunks, SUMS * 2 * WINDOWS),
        get("outliers", chunks, dtype=np.int8),
    )
    if soft is None:
        lanes.limit[SOFT] = 1.0  # of zeros
    arm, free = get("arm", entries, 3), get("free", own, 8)
    graph = Graph(free, cones.inverse, cones.start, cones.entry, arm, get("energy", bodies, PARTS))
    velocity, ahead = get("velocity", n, 8), get("ahead", n, 8)
    kernel(lay_block, grain=16)(blocks, constraints, cones.shift, lanes.body, lanes.contact, tension, soft, couple)
    kernel(lay_entries, grain=4)((entries + CHUNK - 1) // CHUNK, CHUNK, cones.entry, constraints, arm, lever)
    kernel(lay_bodies, grain=4)(bodies, CHUNK, cones.rows, cones.free, free)
    lanes.change[:] = velocity[:] = 0.0
    fewest = min(max(math.ceil(LEAST * iterations), FEWEST), MOST)
    goal = tolerance * cones.norm, EXACT * tolerance * cones.norm, fewest, iterations
    pace = buffers.paces.setdefault(count.bit_length(), Pace())
    threads, began = pace.choose() if count > ALONE else 1, time.perf_counter()
    about = lanes, graph, (tension, soft, couple, lever), impulse, velocity, ahead, sums
    run = bind(iterate.py_func, spread=plain_spread) if backend.SIMULATED else iterate
    with cones.others.meeting(velocity, ahead, sums) as meet:
        used, largest, stands = run(threads, parts, goal, largest, cones.told, meet, *about)
    if count > ALONE:
        pace.note(threads, (time.perf_counter() - began) / max(used, 1))
    return used, largest, stands

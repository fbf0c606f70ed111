"""The list of pairs that a simulation keeps from step to step, and the memory of contacts carried to a new list."""

import numpy as np

from ..kernels import backend, primitives
from ..kernels.backend import func, kernel
from ..tables import FREE, Pairs


def mix_row(p, bodies, shapes, materials, pair, mix):
    """The combined material of one pair."""
    a, b = shapes.body[pair[p, 0]], shapes.body[pair[p, 1]]
    mix[p] = bodies.material[a] * materials + bodies.material[b]


def owner_row(e, free_pairs, bodies, shapes, pair, owner):
    """The body that entry e adds its force to: both bodies of a pair of particles, then the particles at walls."""
    p = e >> 1 if e < 2 * free_pairs else e - free_pairs
    side = e & 1 if e < 2 * free_pairs else 0
    body = shapes.body[pair[p, side]]
    owner[e] = body if bodies.motion[body] == FREE else len(bodies.motion)


@func
def comes_after(e, f, pair, number):
    """Whether entry e = 2 * pair + side of a body stands behind its entry f: by own shape, then by the partner."""
    p, a, q, b = e >> 1, e & 1, f >> 1, f & 1
    own, other = number[pair[p, a]], number[pair[p, 1 - a]]
    mine, theirs = number[pair[q, b]], number[pair[q, 1 - b]]
    return own > mine or (own == mine and other > theirs)


def order_row(i, free_pairs, shapes, pair, start, entry):
    """Order the entries of one body by its own shape and then by the partner's number, and make them 2 * pair + side.

    Sums then do not depend on where bodies stand in memory, nor on which broad phase found the pairs or when. Shell's
    sort: as good as insertion for the few entries of most bodies, and not quadratic for one that touches thousands.
    """
    number = shapes.number
    first, last = start[i], start[i + 1]
    for k in range(first, last):
        e = entry[k]
        entry[k] = e if e < 2 * free_pairs else 2 * (e - free_pairs)
    step = 1
    while step < (last - first) // 9:
        step = 3 * step + 1
    while step > 0:
        for k in range(first + step, last):
            moving = entry[k]
            j = k
            while j >= first + step and comes_after(entry[j - step], moving, pair, number):
                entry[j] = entry[j - step]
                j -= step
            entry[j] = moving
        step //= 3


def wall_row(k, order, walls, shapes, start, sorted_walls):
    """Copy the wall pairs of one shape in the order of the walls' numbers."""
    for at in range(start[k], start[k + 1]):
        w = walls[order[at], 1]
        j = at
        while j > start[k] and shapes.number[sorted_walls[j - 1, 1]] > shapes.number[w]:
            sorted_walls[j, 1] = sorted_walls[j - 1, 1]
            j -= 1
        sorted_walls[j, 1] = w
        sorted_walls[at, 0] = k


def carry_row(
    c, chunk, free, number, pair, start, entry, former, old_number, old_pair, old_start, old_entry, old_memory, memory
):
    """Give the pairs of one chunk of bodies the memory that the same two shapes had in the old list.

    Entries stand in the same order in both lists, so one walk along both finds all. A pair of two free bodies is
    looked after by its first.
    """
    for row in range(c * chunk, min(len(former), (c + 1) * chunk)):
        i = np.uintp(row)
        if former[i] < 0:
            continue
        was = np.uintp(former[i])
        at, end = old_start[was], old_start[was + np.uintp(1)]
        for k in range(start[i], start[i + np.uintp(1)]):
            e = entry[np.uintp(k)]
            p, side = np.uintp(e >> 1), np.uintp(e & 1)
            mine, theirs = np.uintp(pair[p, side]), np.uintp(pair[p, np.uintp(1) - side])
            if side == 1 and free[np.uintp(pair[p, 0])]:
                continue
            own, other = number[mine], number[theirs]
            while at < end:
                e = old_entry[np.uintp(at)]
                q, side = np.uintp(e >> 1), np.uintp(e & 1)
                old_own = old_number[np.uintp(old_pair[q, side])]
                old_other = old_number[np.uintp(old_pair[q, np.uintp(1) - side])]
                if old_own > own or (old_own == own and old_other >= other):
                    if old_own == own and old_other == other:
                        for j in range(memory.shape[1]):
                            memory[p, j] = old_memory[q, j]
                        at += 1
                    break
                at += 1


def make_pairs(tables, free, free_pairs, walls, materials, width, couples, old=None):
    """The list of pairs, ready for forces.

    free (s,) bool: shapes of free bodies; free_pairs (p,2), walls (q,2): rows of Shapes; materials: number of
    materials; width: columns of memory; couples: whether contacts have couples.
    old: None, or (Pairs, its shapes' numbers, former row of each body or -1) to carry memory over from.
    """
    device = backend.DEVICE[-1]
    bodies, shapes = tables[0], tables[1]
    n, s, count = len(bodies.mass), len(shapes.radius), len(free_pairs)
    pair, wall_start = free_pairs, device.zeros(1, np.int32)
    if len(walls):
        start, order = primitives.group(device.column(walls, 0), s)
        sorted_walls = device.empty(walls.shape, np.int32)
        kernel(wall_row)(s, order, walls, shapes, start, sorted_walls)
        pair = device.concatenate(free_pairs, sorted_walls)
        begins = device.to_host(start)
        begins = begins[:-1][np.diff(begins) > 0]
        wall_start = device.to_device((np.append(begins, len(walls)) + count).astype(np.int32))
    total = len(pair)
    mix = device.empty(total, np.int32)
    kernel(mix_row)(total, bodies, shapes, materials, pair, mix)
    owner = device.empty(count + total, np.int32)
    kernel(owner_row)(count + total, count, bodies, shapes, pair, owner)
    start, entry = primitives.group(owner, n + 1)
    kernel(order_row)(n, count, shapes, pair, start, entry)
    memory = device.zeros((total, width), np.float64)
    if old is not None:
        before, old_number, former = old
        chunk = device.chunk
        kernel(carry_row, grain=4)(
            (n + chunk - 1) // chunk,
            chunk,
            free,
            shapes.number,
            pair,
            start,
            entry,
            former,
            old_number,
            before.shape,
            before.start,
            before.entry,
            before.memory,
            memory,
        )
    action = device.zeros((total, 6), np.float64)
    couple = device.zeros((total if couples else 0, 3), np.float64)
    return Pairs(pair, mix, memory, action, couple, wall_start, start, entry)

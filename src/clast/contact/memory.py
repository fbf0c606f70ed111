"""The list of pairs that a simulation keeps from step to step, and the memory of contacts carried to a new list."""

import numpy as np

from .. import backend, primitives
from ..backend import kernel
from ..tables import FREE, Pairs


def static_row(p, balls, bodies, shapes, materials, pair, mass, radius, mix):
    """Reduced mass and radius and the combined material of one pair: what does not change while the list lasts."""
    sa, sb = pair[p, 0], pair[p, 1]
    a, b = shapes.body[sa], shapes.body[sb]
    mass[p] = 1.0 / (1.0 / bodies.mass[a] + 1.0 / bodies.mass[b])
    ra = shapes.radius[sa]
    radius[p] = ra * shapes.radius[sb] / (ra + shapes.radius[sb]) if p < balls else ra
    mix[p] = bodies.material[a] * materials + bodies.material[b]


def owner_row(e, balls, bodies, shapes, pair, owner):
    """The body that entry e adds its force to: both bodies of a pair of spheres, then the spheres at walls."""
    p = e >> 1 if e < 2 * balls else e - balls
    side = e & 1 if e < 2 * balls else 0
    body = shapes.body[pair[p, side]]
    owner[e] = body if bodies.motion[body] == FREE else len(bodies.motion)


def order_row(i, balls, shapes, pair, start, entry):
    """Order the entries of one body by its own shape and then by the partner's number, and make them 2 * pair + side.

    Sums then do not depend on where bodies stand in memory, nor on which broad phase found the pairs or when.
    """
    number = shapes.number
    for k in range(start[i], start[i + 1]):
        e = entry[k]
        moving = e if e < 2 * balls else 2 * (e - balls)
        own, other = number[pair[moving >> 1, moving & 1]], number[pair[moving >> 1, 1 - (moving & 1)]]
        j = k
        while j > start[i]:
            before = entry[j - 1]
            mine, theirs = number[pair[before >> 1, before & 1]], number[pair[before >> 1, 1 - (before & 1)]]
            if mine < own or (mine == own and theirs < other):
                break
            entry[j] = before
            j -= 1
        entry[j] = moving


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


def carry_row(p, shapes, pair, former, old_number, old_pair, old_start, old_entry, old_memory, memory):
    """Give one pair the memory that the same two shapes had in the old list."""
    width = memory.shape[1]
    for i in range(width):
        memory[p, i] = 0.0
    sa, sb = pair[p, 0], pair[p, 1]
    a, b = shapes.number[sa], shapes.number[sb]
    row = former[shapes.body[sa]]
    mine = sa
    if row < 0 or old_start[row] == old_start[row + 1]:
        # A body that is not free has no entries of its own: look from the other side.
        row = former[shapes.body[sb]]
        mine = sb
    if row < 0:
        return
    own = shapes.number[mine]
    other = b if mine == sa else a
    for at in range(old_start[row], old_start[row + 1]):
        e = old_entry[at]
        q, side = e >> 1, e & 1
        if old_number[old_pair[q, side]] == own and old_number[old_pair[q, 1 - side]] == other:
            for i in range(width):
                memory[p, i] = old_memory[q, i]
            return


def make_pairs(tables, balls, walls, materials, width, old=None):
    """The list of pairs, ready for forces.

    balls (p,2), walls (q,2): rows of Shapes; materials: number of materials; width: columns of memory.
    old: None, or (Pairs, its shapes' numbers, former row of each body or -1) to carry memory over from.
    Returns Pairs and the number of sphere pairs, which come first.
    """
    device = backend.DEVICE[-1]
    bodies, shapes = tables[0], tables[1]
    n, s, count = len(bodies.mass), len(shapes.radius), len(balls)
    pair, wall_start = balls, device.zeros(1, np.int32)
    if len(walls):
        start, order = primitives.group(device.column(walls, 0), s)
        sorted_walls = device.empty(walls.shape, np.int32)
        kernel(wall_row)(s, order, walls, shapes, start, sorted_walls)
        pair = device.concatenate(balls, sorted_walls)
        begins = device.to_host(start)
        begins = begins[:-1][np.diff(begins) > 0]
        wall_start = device.to_device((np.append(begins, len(walls)) + count).astype(np.int32))
    total = len(pair)
    mass, radius = device.empty(total, np.float64), device.empty(total, np.float64)
    mix = device.empty(total, np.int32)
    kernel(static_row)(total, count, bodies, shapes, materials, pair, mass, radius, mix)
    owner = device.empty(count + total, np.int32)
    kernel(owner_row)(count + total, count, bodies, shapes, pair, owner)
    start, entry = primitives.group(owner, n + 1)
    kernel(order_row)(n, count, shapes, pair, start, entry)
    memory = device.zeros((total, width), np.float64)
    if old is not None:
        before, old_number, former = old
        kernel(carry_row)(
            total, shapes, pair, former, old_number, before.shape, before.start, before.entry, before.memory, memory
        )
    action = device.zeros((total, 6), np.float64)
    couple = device.zeros((total if width > 3 else 0, 3), np.float64)
    return Pairs(pair, mass, radius, mix, memory, action, couple, wall_start, start, entry), count

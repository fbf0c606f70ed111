"""The neighbour list that a simulation keeps from step to step, and the history of contacts carried to a new list."""

import numpy as np

from ..kernels import backend, primitives
from ..kernels.backend import func, kernel
from ..kernels.kinds import is_wall
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
def names_of(e, pair, number):
    """Numbers of the own shape and of the partner of a body's entry e = 2 * pair + side."""
    p, side = np.uintp(e >> 1), np.uintp(e & 1)
    return number[np.uintp(pair[p, side])], number[np.uintp(pair[p, np.uintp(1) - side])]


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
            moving = entry[np.uintp(k)]
            own, other = names_of(moving, pair, number)
            j = k
            while j >= first + step:
                before = entry[np.uintp(j - step)]
                mine, theirs = names_of(before, pair, number)
                if mine < own or (mine == own and theirs <= other):
                    break
                entry[np.uintp(j)] = before
                j -= step
            entry[np.uintp(j)] = moving
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


def carry_row(c, chunk, free, number, pairs, former, old_number, old, old_memory, memory, behind, was):
    """Find the pairs of one chunk of bodies in the old list: the same two shapes.

    Their rows of memory are copied; was (q,): row in the old list of pairs behind those of spheres, both counted from
    there; behind: how many those are, now and in the old list. Entries stand in the same order in both lists, so one walk
    along both finds all. A pair of two free bodies is
    looked after by its first.
    """
    spheres, old_spheres = behind
    pair, start, entry = pairs.shape, pairs.start, pairs.entry
    old_pair, old_start, old_entry = old.shape, old.start, old.entry
    for row in range(c * chunk, min(len(former), (c + 1) * chunk)):
        i = np.uintp(row)
        if former[i] < 0:
            continue
        before = np.uintp(former[i])
        at, end = old_start[before], old_start[before + np.uintp(1)]
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
                        if p < len(memory):
                            for j in range(memory.shape[1]):
                                memory[p, j] = old_memory[q, j]
                        if p >= spheres and len(was) > 0:
                            was[p - np.uintp(spheres)] = np.int64(q) - old_spheres
                        at += 1
                    break
                at += 1


def carry(bodies, shapes, free, pairs, spheres, memory, old, was):
    """Find the pairs of the old list again, see `carry_row`.

    old: (Pairs, its shapes' numbers, former row of each body or -1, its memory, its number of pairs of spheres).
    """
    before, old_number, former, old_memory, old_spheres = old
    n, chunk = len(bodies.mass), backend.DEVICE[-1].chunk
    kernel(carry_row, grain=4)(
        (n + chunk - 1) // chunk,
        chunk,
        free,
        shapes.number,
        pairs,
        former,
        old_number,
        before,
        old_memory,
        memory,
        (spheres, old_spheres),
        was,
    )


def begins_row(k, first, shares, shapes, pair, flag):
    """Whether pair k of a family, whose first is `first`, begins a manifold. Where points stand for areas (shares), all pairs of the same two
    bodies are one; else each pair of particles, and all of one shape with one wall body."""
    p = first + k
    a, b = pair[p, 0], pair[p, 1]
    new = k == 0
    if not new:
        c, d = pair[p - 1, 0], pair[p - 1, 1]
        new = shapes.body[a] != shapes.body[c] or shapes.body[b] != shapes.body[d]
        if not shares:
            new = new or a != c or not is_wall(shapes.kind[b])
    flag[k] = 1 if new else 0


def manifold_row(q, start, manifold):
    """Write where the manifold that pair q begins, does so."""
    if start[q + 1] > start[q]:
        manifold[start[q]] = q
    if q == len(start) - 2:
        manifold[start[q + 1]] = q + 1


def find_manifolds(shapes, pair, spheres, families):
    """First pairs (m+1,) int32 of the manifolds of the pairs behind those of spheres, counted from there.

    families: of each that has pairs there (first pair, pairs, whether its points stand for areas), in their order.
    """
    device = backend.DEVICE[-1]
    count = len(pair) - spheres
    if count == 0:
        return device.zeros(1, np.int32)
    flag = device.empty(count, np.int8)
    for first, length, shares in families:
        kernel(begins_row)(length, first, shares, shapes, pair, flag[first - spheres : first - spheres + length])
    start = primitives.scan(flag)
    manifold = device.empty(int(device.to_host(start[-1:])[0]) + 1, np.int32)
    kernel(manifold_row)(count, start, manifold)
    return manifold


def sort_walls(shapes, walls):
    """Pairs (q,2) of particles with walls, grouped by particle, then in the order of the walls' numbers."""
    device = backend.DEVICE[-1]
    start, order = primitives.group(device.column(walls, 0), len(shapes.radius))
    ordered = device.empty(walls.shape, np.int32)
    kernel(wall_row)(len(shapes.radius), order, walls, shapes, start, ordered)
    return ordered


def sort_by_bodies(shapes, pairs, apart):
    """Pairs (q,2) with those of the same two bodies side by side, in the order of the numbers of their shapes, and apart (q,) or None
    with them."""
    device = backend.DEVICE[-1]
    pairs, number, body = (device.to_host(array) for array in (pairs, shapes.number, shapes.body))
    one, two = pairs[:, 0], pairs[:, 1]
    order = np.lexsort((number[two], number[one], body[two], body[one]))
    return device.to_device(pairs[order]), None if apart is None else device.to_device(device.to_host(apart)[order])


def join_gaps(count, gaps):
    """Column `apart` of Pairs; gaps: of each family behind the spheres (its first pair, counted from there, gaps (q,))."""
    device = backend.DEVICE[-1]
    apart = np.full(count, -np.inf)
    for first, gap in gaps:
        apart[first : first + len(gap)] = device.to_host(gap)
    return device.to_device(apart)


def make_pairs(tables, particles, walls, materials, whole, apart):
    """The neighbour list without slots and manifolds.

    particles: lists of pairs (p,2) of rows of Shapes by family, spheres with spheres first; walls: particles with walls by
    family; materials: number of materials; whole (f,): of which families the pairs of the same two bodies must stand side by
    side, though bodies may have several parts; apart: of each family how far apart its pairs are (p,) [m], or None, brought
    into the order of the list. Returns Pairs and where each family begins, and the last ends (f+1,).
    """
    device = backend.DEVICE[-1]
    bodies, shapes = tables[0], tables[1]
    n = len(bodies.mass)
    lists = [*particles, *(sort_walls(shapes, pairs) if len(pairs) else pairs for pairs in walls)]
    for k, one in enumerate(whole):
        if one and len(lists[k]):
            lists[k], apart[k] = sort_by_bodies(shapes, lists[k], apart[k])
    first = np.concatenate([[0], np.cumsum([len(pairs) for pairs in lists])]).tolist()
    pair = lists[0]
    for more in lists[1:]:
        pair = device.concatenate(pair, more) if len(more) else pair
    count, total = first[len(particles)], len(pair)
    mix = device.zeros(total, np.int32)
    if materials > 1:  # zeros that nobody writes take no memory
        kernel(mix_row)(total, bodies, shapes, materials, pair, mix)
    owner = device.empty(count + total, np.int32)
    kernel(owner_row)(count + total, count, bodies, shapes, pair, owner)
    start, entry = primitives.group(owner, n + 1)
    kernel(order_row)(n, count, shapes, pair, start, entry)
    slots, manifolds = device.zeros(1, np.int64), device.zeros(1, np.int32)
    far = device.zeros(0, np.float64)
    return Pairs(pair, mix, slots, manifolds, start, entry, far, far), first


@func
def copy_history(d, source, c, target):
    """Copy row d of one History to row c of another."""
    target.live[c] = source.live[d]
    if source.live[d] == 1:
        for i in range(3):
            target.arm[c, i] = source.arm[d, i]
        if len(target.slip) > 0:
            target.share[c] = source.share[d]
            for i in range(3):
                target.slip[c, i] = source.slip[d, i]
                target.normal[c, i] = source.normal[d, i]
        if len(target.angle) > 0:
            for i in range(3):
                target.angle[c, i] = source.angle[d, i]
        for i in range(target.kept.shape[1]):
            target.kept[c, i] = source.kept[d, i]
        if len(target.account) > 0:
            for i in range(target.account.shape[1]):
                target.account[c, i] = source.account[d, i]
        if len(target.impulse) > 0:
            for i in range(target.impulse.shape[1]):
                target.impulse[c, i] = source.impulse[d, i]


def move_slots_row(q, was, old_slot, old_points, old, slot, points, history, live):
    """Give the slots of pair q what those of pair was[q] of another list remember, and what was seen there last; live (q,):
    see Wrench."""
    o = was[q]
    if o < 0:
        return
    many = min(slot[q + 1] - slot[q], old_slot[o + 1] - old_slot[o])
    for j in range(many):
        c, d = slot[q] + j, old_slot[o] + j
        if old.live[d] == 1:
            copy_history(d, old, c, history)
            live[q] = 1
            if len(points.force) > 0:  # what acted last, for those who ask before it is found anew
                points.overlap[c] = old_points.overlap[d]
                for i in range(3):
                    points.force[c, i] = old_points.force[d, i]
        elif j > 0:  # the first slot of shapes that are apart knows where they were seen to be
            points.gap[c] = np.inf
            continue
        points.gap[c] = old_points.gap[d]
        for i in range(3):
            points.normal[c, i] = old_points.normal[d, i]

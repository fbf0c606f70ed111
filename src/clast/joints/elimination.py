"""In what order joints are eliminated, and what that fills in: found once, by the joints and bodies alone, not by poses."""

import heapq

import numpy as np


def connected(count, links):
    """Group of each of `count` things, (count,) int64, numbered in the order of their first member; links: (a, b) pairs."""
    parent = list(range(count))

    def root(i):
        while parent[i] != i:
            parent[i] = parent[parent[i]]
            i = parent[i]
        return i

    for a, b in links:
        a, b = root(a), root(b)
        parent[max(a, b)] = min(a, b)
    roots = np.array([root(i) for i in range(count)], dtype=np.int64)
    return np.unique(roots, return_inverse=True)[1].astype(np.int64)


def grouped(pairs, free):
    """Group of each of some bodies (k,), -1 of those that are not free, and how many groups there are; pairs (l,2): who hangs together with whom, which passes on through free
    bodies only, free (k,) bool. Groups are numbered in the order of their first body."""
    group = connected(len(free), [(a, b) for a, b in pairs.tolist() if free[a] and free[b]])
    names = np.unique(group[free])
    return np.where(free, np.searchsorted(names, group), -1), len(names)


def order_of(neighbours):
    """An order of elimination that fills in little: always the one with the fewest neighbours left, then the first.

    neighbours: list of sets; used up. Returns the order, and for each in it the set of those it still met.
    """
    heap = [(len(near), i) for i, near in enumerate(neighbours)]
    heapq.heapify(heap)
    order, met, done = [], [], [False] * len(neighbours)
    while heap:
        degree, i = heapq.heappop(heap)
        if done[i] or degree != len(neighbours[i]):
            continue
        done[i] = True
        near = neighbours[i]
        order.append(i)
        met.append(near)
        for k in near:
            neighbours[k] |= near
            neighbours[k] -= {i, k}
            heapq.heappush(heap, (len(neighbours[k]), k))
    return order, met


def pattern(order, met):
    """Columns of blocks of the factor: column_start, block_row, target_start, target as in `joint_rows.Assembly`.

    order, met: what `order_of` returned, of several groups put together.
    """
    place = {i: p for p, i in enumerate(order)}
    columns = [[p, *sorted(place[k] for k in near)] for p, near in enumerate(met)]
    start = np.cumsum([0, *map(len, columns)])
    where = {(row, p): start[p] + e for p, rows in enumerate(columns) for e, row in enumerate(rows)}
    target_start, target = [0], []
    for rows in columns:
        below = rows[1:]
        target += [where[row, other] for e, row in enumerate(below) for other in below[: e + 1]]
        target_start.append(len(target))
    rows = [row for column in columns for row in column]
    return tuple(np.array(values, dtype=np.int32) for values in (start, rows, target_start, target))


def eliminate_by_group(slots, free, owner, groups):
    """The order of elimination of all joints, group after group, and for each the joints it still meets.

    slots (j,2): the two bodies of each joint; free: mask of bodies; owner (j,): the group of each joint.
    """
    order, met = [], []
    at: list[list[int]] = [[] for _ in free]  # joints at each free body
    for j, pair in enumerate(slots.tolist()):
        for s in pair:
            if free[s]:
                at[s].append(j)
    members = np.argsort(owner, kind="stable")
    start = np.searchsorted(owner[members], np.arange(groups + 1))
    for g in range(groups):
        mine = members[start[g] : start[g + 1]].tolist()
        local = {j: i for i, j in enumerate(mine)}
        near = [{local[k] for s in slots[j].tolist() if free[s] for k in at[s]} - {local[j]} for j in mine]
        chain, meets = order_of(near)
        order += [mine[i] for i in chain]
        met += [{mine[i] for i in one} for one in meets]
    return order, met

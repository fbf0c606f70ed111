"""Warm start: contacts begin with the impulse of the step before, found by pair and, where two bodies have many points, by the nearest."""

import numpy as np

from ..kernels.backend import func
from ..motion.slots import find_named, find_slots, name_pairs, place_of
from ..narrow.mesh_slots import renew

PATCHES = False  # bound to the kernels: two bodies may have more than one contact


@func
def square_distance(c, d, points, history):
    """Square of the distance between contact point c and where slot d had one in the last step [m^2]."""
    total = 0.0
    for j in range(3):
        way = points.arm[c, j] - history.arm[d, j]
        total += way * way
    return total


@func
def manifold_of(p, manifold):
    """The first pair of the manifold that pair p belongs to, and the first behind it."""
    low, high = 0, len(manifold) - 1
    while high - low > 1:
        middle = (low + high) // 2
        if manifold[middle] <= p:
            low = middle
        else:
            high = middle
    return manifold[low], manifold[low + 1]


@func
def is_nearest(row, slot, begin, end, first, last, constraints, pairs, points, history):
    """Whether no contact of the same shape in the pairs begin to end is nearer to where `slot` was than row; of equals the one whose slot comes first."""
    own, shape = constraints.slot[row], pairs.shape[constraints.pair[row], 0]
    least = square_distance(own, slot, points, history)
    for q in range(begin, end):
        if pairs.shape[q, 0] == shape:
            for k in range(first[q], last[q]):
                other = constraints.slot[k]
                square = square_distance(other, slot, points, history)
                if square < least or (square == least and other < own):
                    return False
    return True


def recall_chunk(c, chunk, first, last, constraints, pairs, points, history, impulse):
    """Give the contacts of a chunk the impulses that they had in the last step; zero to those that are new.

    Every contact point of the last step gives its impulse to the nearest one that its two bodies have now, so that no part of it is lost or there twice. Points
    of several triangles of a wall go together: a polyhedron that touches a quad has points on both of its triangles, and on one of them
    as soon as it overlaps. Arms begin at the centre of a shape, so of a point that goes on to another part of a first body it is lost.
    first, last: contacts of each pair, (p,); (0,) unless pairs have several points.
    """
    for row in range(c * chunk, min(len(constraints.gap), (c + 1) * chunk)):
        i = np.uintp(row)
        for j in range(impulse.shape[1]):
            impulse[i, j] = 0.0
        if PATCHES:
            p = constraints.pair[i]
            begin, end = manifold_of(p, pairs.manifold)
            for q in range(begin, end):
                if pairs.shape[q, 0] == pairs.shape[p, 0]:
                    for slot in range(pairs.slot[q], pairs.slot[q + 1]):
                        if history.live[slot] == 1:
                            about = constraints, pairs, points, history
                            if is_nearest(row, slot, begin, end, first, last, *about):
                                for j in range(impulse.shape[1]):
                                    impulse[i, j] += history.impulse[slot, j]
        elif history.live[constraints.slot[i]] == 1:
            for j in range(impulse.shape[1]):
                impulse[i, j] = history.impulse[constraints.slot[i], j]


def remember_chunk(c, chunk, constraints, points, impulse, history):
    """Write the impulses of one chunk of contacts into the history of their slots."""
    for row in range(c * chunk, min(len(constraints.gap), (c + 1) * chunk)):
        i = np.uintp(row)
        slot = np.uintp(constraints.slot[i])
        history.live[slot] = 1
        for j in range(impulse.shape[1]):
            history.impulse[slot, j] = impulse[i, j]
        if PATCHES:
            for j in range(3):
                history.arm[slot, j] = points.arm[slot, j]


def remember(state, chosen=None):
    """What contacts remember, named by body number and part, in an order that has nothing to do with rows: {"contacts": columns}.

    chosen: None for all that this process tells of, or a function that tells of rows of the neighbour list (k,) which are meant, (k,) bool.
    """
    slot = np.nonzero(state.history.live)[0]
    row = np.searchsorted(state.pairs.slot, slot, side="right") - 1
    if chosen is not None or state.ghosts:
        meant = np.isin(row, state.told(np.unique(row))) if chosen is None else chosen(row)
        slot, row = slot[meant], row[meant]
    body, part = name_pairs(state, row)
    place = place_of(state, slot, row)
    order = in_order(body, part, place)
    kept = {"body": body[order], "part": part[order], "place": place[order]}
    return {"contacts": kept | {"impulse": state.history.impulse[slot[order]], "arm": state.history.arm[slot[order]]}}


def in_order(body, part, place):
    """The order in which contacts stand in checkpoints: of bodies (k,2), parts (k,2) and places (k,2)."""
    return np.lexsort((place[:, 1], place[:, 0], part[:, 1], body[:, 1], part[:, 0], body[:, 0]))


def recall(state, groups, reach, among=None):
    """Give the contacts of a neighbour list what `remember` kept; reach [m]: how far apart two may be that touch; among: rows of the list (k,) that may be meant, or None."""
    kept = groups["contacts"]
    if state.triangulated:
        renew(state, reach)
    # Two that flew apart so fast that the list is not made for them any more touch no more.
    among = np.arange(len(state.pairs.shape)) if among is None else among
    row = find_named(state, kept["body"], kept["part"], among)
    listed = np.flatnonzero(row >= 0)
    slot = find_slots(state, row[listed], kept["place"][listed])
    slot, found = slot[slot >= 0], listed[slot >= 0]
    state.history.live[slot] = 1
    state.history.impulse[slot], state.history.arm[slot] = kept["impulse"][found], kept["arm"][found]

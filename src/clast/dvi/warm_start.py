"""Warm start: contacts begin with the impulse of the step before, found by pair and, where a pair has many, by the nearest point."""

import numpy as np

from ..kernels.backend import func
from ..motion.slots import find_named, find_slots, name_pairs, place_of
from ..narrow.mesh_slots import renew

PATCHES = False  # bound to the kernels: pairs with more than one contact


@func
def square_distance(c, d, points, history):
    """Square of the distance between contact point c and where slot d had one in the last step [m^2]."""
    total = 0.0
    for j in range(3):
        way = points.arm[c, j] - history.arm[d, j]
        total += way * way
    return total


@func
def is_nearer(row, step, slot, least, constraints, points, history):
    """Whether no contact of the same pair before (step -1) or behind (+1) row `row` is nearer to where `slot` was."""
    p, other = constraints.pair[row], row + step
    while 0 <= other < len(constraints.pair) and constraints.pair[other] == p:
        square = square_distance(constraints.slot[other], slot, points, history)
        if square < least or (square == least and other < row):
            return False
        other += step
    return True


def recall_chunk(c, chunk, constraints, pairs, points, history, impulse):
    """Give the contacts of a chunk the impulses that they had in the last step; zero to those that are new.

    Every contact point of the last step gives its impulse to the nearest one that its pair of shapes has now, so that no part of it is lost or there twice. Of
    a point that goes on to another triangle of a wall, or to another part of a body, it is lost.
    """
    for row in range(c * chunk, min(len(constraints.gap), (c + 1) * chunk)):
        i = np.uintp(row)
        for j in range(impulse.shape[1]):
            impulse[i, j] = 0.0
        if PATCHES:
            own, p = constraints.slot[i], constraints.pair[i]
            for slot in range(pairs.slot[p], pairs.slot[p + 1]):
                if history.live[slot] == 1:
                    least = square_distance(own, slot, points, history)
                    mine = is_nearer(row, -1, slot, least, constraints, points, history)
                    if mine and is_nearer(row, 1, slot, least, constraints, points, history):
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

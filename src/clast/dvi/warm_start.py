"""Warm start: contacts begin with the impulse of the step before, found by pair and, where a pair has many, by the nearest point."""

import numpy as np

from ..kernels.backend import func

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

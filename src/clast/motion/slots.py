"""Names of pairs and contact points that outlive their rows, for files and for bodies that go to another process."""

import numpy as np

from ..tables import MESH


def name_pairs(state, rows):
    """Numbers of the bodies (k,2) and of the parts within them (k,2) of these rows of the neighbour list."""
    shape = state.device.to_host(state.pairs.shape)[rows]
    body = state.shapes.body[shape]
    return state.bodies.number[body], state.shapes.number[shape] - state.label[body]


def find_named(state, number, part, among=None):
    """Rows (k,) of the neighbour list of pairs that `name_pairs` named, all of which must be there; among: rows to look at, and -1 for
    pairs that are not there."""
    shape, partial = state.device.to_host(state.pairs.shape), among is not None
    rows = among if partial else np.arange(len(shape))
    row = np.argsort(state.bodies.number, kind="stable")
    if len(number) == 0 or (partial and len(rows) == 0):
        return np.full(len(number), -1)
    body = row[np.minimum(np.searchsorted(state.bodies.number, number, sorter=row), max(len(row) - 1, 0))]
    key = state.label[body] + part
    listed = state.shapes.number[shape[rows]]
    wide = state.next_label
    names, wanted = listed[:, 0] * wide + listed[:, 1], key[:, 0] * wide + key[:, 1]
    order = np.append(np.argsort(names), len(names))
    names = np.append(names, -1)
    at = order[np.searchsorted(names[:-1], wanted, sorter=order[:-1])]
    there = (names[at] == wanted) & (state.bodies.number[body] == number).all(1)
    if not partial and not there.all():
        raise ValueError("the contacts in the checkpoint do not fit its bodies; the file was made by another version")
    return np.where(there, np.append(rows, -1)[at], -1)


def place_of(state, slot, row):
    """What tells the slots (c,) of one pair apart (c,2): their number within it, or their two triangles."""
    begin = state.device.to_host(state.pairs.slot)[row - state.spheres_count]
    place = np.stack([slot - begin, np.zeros(len(slot), np.int64)], axis=1)
    if state.triangulated:
        shape = state.pairs.shape[row]
        mesh = (state.shapes.kind[shape] == MESH).any(1)
        triangles = state.candidates.triangles
        place[mesh] = np.stack([triangles.first[slot[mesh]], triangles.second[slot[mesh]]], axis=1)
    return place


def find_slots(state, rows, place):
    """Slots (c,) of the pairs in these rows of the neighbour list by what `place_of` told; -1 for triangles that are no candidates."""
    begin = state.device.to_host(state.pairs.slot)
    slot = begin[rows - state.spheres_count] + place[:, 0]
    if state.triangulated:
        mesh = (state.shapes.kind[state.pairs.shape[rows]] == MESH).any(1)
        triangles = state.candidates.triangles
        every = np.arange(len(triangles.first))
        pair = np.searchsorted(begin, every, side="right") - 1
        listed = np.stack([pair, triangles.first, triangles.second], axis=1)
        wanted = np.stack([rows - state.spheres_count, *place.T], axis=1)[mesh]
        _, number = np.unique(np.concatenate([listed, wanted]), axis=0, return_inverse=True)
        number = number.reshape(-1)
        at = np.full(number.max(initial=-1) + 1, -1)
        # The first of equals: slots that hold nothing all look alike.
        at[number[: len(every)][::-1]] = every[::-1]
        slot[mesh] = at[number[len(every) :]]
    return slot

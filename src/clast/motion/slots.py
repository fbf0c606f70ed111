"""Names of contact points that outlive their slots, for files: what tells the points of one pair apart."""

import numpy as np

from ..tables import MESH


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

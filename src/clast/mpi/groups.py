"""Bodies that hang together through joints and springs: a group of them is moved by one process, that in whose tile its body with the lowest number is."""

import numpy as np

from ..joints.elimination import grouped
from ..tables import FREE


class Groups:
    """The groups of a scene that joins bodies.

    numbers (m,): of the free bodies in groups, sorted; first (m,): which of these is the first of the same group; start (m,3) [m]: where that is at the start.
    """

    def __init__(self, scene):
        held = np.array([(one.a, one.b) for one in (*scene.joints, *scene.springs)], np.int64).reshape(-1, 2)
        numbers = np.unique(held[held >= 0])
        free, place = np.zeros(len(numbers) + 1, bool), np.zeros((len(numbers), 3))
        for block in scene.blocks() if len(numbers) else ():
            rows = np.flatnonzero(np.isin(block.number, numbers))
            at = np.searchsorted(numbers, block.number[rows])
            free[at], place[at] = block.motion[rows] == FREE, block.position[rows]
        slots = np.where(held >= 0, np.searchsorted(numbers, held), len(numbers))
        group, _ = grouped(slots, free)
        mine = free[:-1]
        self.numbers = numbers[mine]
        _, first, again = np.unique(group[:-1][mine], return_index=True, return_inverse=True)
        self.first = first[again]
        self.start = place[mine][self.first]

    def __len__(self):
        return len(self.numbers)

    def _find(self, number):
        """Rows of free bodies with these numbers (n,) that are in groups, and where they stand in `numbers`."""
        at = np.minimum(np.searchsorted(self.numbers, number), len(self) - 1)
        rows = np.flatnonzero(self.numbers[at] == number)
        return rows, at[rows]

    def homes_at_start(self, number, position):
        """Places (n,3) [m] whose tiles tell who moves free bodies with these numbers (n,), which are at `position` (n,3) [m] when a simulation is made."""
        if not len(self):
            return position
        rows, at = self._find(number)
        made = np.array(position)
        made[rows] = self.start[at]
        return made

    def homes(self, number, position):
        """The same at any time, of bodies among which all of a group are or none."""
        if not len(self):
            return position
        rows, at = self._find(number)
        place, made = np.zeros((len(self), 3)), np.array(position)
        place[at] = position[rows]
        made[rows] = place[self.first[at]]
        return made

"""What the ledgers of both methods share: the energies at the start, and those of bodies that come and go."""

from typing import Any


class Book:
    """Keeps account of energies since the start; `clast.measure.ledger` makes a balance of it.

    A method adds sums of its own, work [J] of driven bodies, gross [J] that contacts took in and gave back, stabilisation [J] that parting overlaps added,
    losses, remember and recall.
    """

    divided = True  # losses are told apart

    def __init__(self):
        self.through = 0.0  # [J], that came with bodies through inlets less what went through outlets
        self.start: Any = None  # [J], `clast.measure.Stored.parts` at the start, the last ones without what passed through; None before

    def begin(self, state, energies, dt):
        """A simulation starts with these energies; dt [s]: its step."""
        self.start = energies

    def pass_through(self, before, after):
        """Bodies came or went; before, after: energies as at the start."""
        self.through += after[0] - before[0]
        self.start = self.start[0], *(old + new - was for old, new, was in zip(self.start[1:], after[1:], before[1:]))

    def since(self, now):
        """By how much the present energies but the first are more than at the start, without what passed through."""
        return [there - then for there, then in zip(now[1:], self.start[1:], strict=True)]

    def numbers(self):
        """What of this a checkpoint holds."""
        return [self.through, *(self.start or ())]

    def take_up(self, numbers):
        """Go on from what `numbers` gave."""
        self.through, *start = map(float, numbers)
        self.start = tuple(start) or None

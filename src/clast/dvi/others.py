"""What processes that share a run by hard contacts do together, where there is one only; `clast.mpi.hard` has the same for many."""

import math
from contextlib import contextmanager

import numpy as np

from ..kernels.sums import add_up, limit_above, totals


class Alone:
    """Nobody else: what is the case here is so everywhere."""

    many = False

    def largest(self, *numbers):
        """The largest of each number over all processes."""
        return numbers

    def add(self, rows):
        """The sums of all processes of rows that may be added in any order, see `clast.kernels.sums`, or of whole numbers."""
        return rows

    def meet(self, rows):
        """Give bodies that another process moves the velocities that they have there, in `rows` (s,12)."""

    @contextmanager
    def meeting(self, velocity, ahead, sums):
        """Within the block there is a function of C at this address that meets or adds up these arrays, see `clast.dvi.accelerated`; 0: nothing to do."""
        yield 0


ALONE = Alone()


def order_free(others, *columns):
    """The sums of columns of terms (n,), those of all processes, the same whoever has which."""
    most = [float(np.abs(terms).max(initial=0.0)) for terms in columns]
    most = others.largest(*(x if x < math.inf else math.inf for x in most))
    rows = np.stack([add_up(terms, limit_above(x)) for terms, x in zip(columns, most, strict=True)])
    return totals(others.add(rows)).tolist()

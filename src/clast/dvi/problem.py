"""The cone problem of a step as solvers see it: contacts between bodies, never assembled."""

import functools
import math

import numpy as np

from ..kernels import primitives
from ..kernels.backend import kernel
from ..kernels.reached import stored
from ..kernels.rows import PER_MASS
from . import accelerated
from . import constraints as blocks
from .constraints import CHUNK, Constraints
from .others import ALONE

COLOURS = 63  # contacts that find none of so many colours free are worked off one after the other


@stored()
def colour_contacts(body, free, bodies):
    """A colour for each contact, such that no two of one colour share a free body; the first that is not used yet.

    body (c,2): rows of bodies; free (n,): whether a body can move. One after the other, because the result must not
    depend on the number of threads; it takes about as long as one sweep. Colour COLOURS means: on its own.
    """
    used = np.zeros(bodies, np.uint64)
    colour = np.empty(len(body), np.int32)
    one = np.uint64(1)
    for i in range(len(body)):
        a, b = body[i, 0], body[i, 1]
        taken = (used[a] if free[a] else np.uint64(0)) | (used[b] if free[b] else np.uint64(0))
        c = 0
        while c < COLOURS and (taken >> np.uint64(c)) & one:
            c += 1
        colour[i] = c
        if c < COLOURS:
            if free[a]:
                used[a] |= one << np.uint64(c)
            if free[b]:
                used[b] |= one << np.uint64(c)
    return colour


def bounds_row(k, pair, first, last):
    """Where the contacts of a pair of shapes begin and end, which stand side by side: contact k, if it is the first or the last of them."""
    p = pair[k]
    if k == 0 or pair[k - 1] != p:
        first[p] = k
    if k == len(pair) - 1 or pair[k + 1] != p:
        last[p] = k + 1


def many_row(i, pairs, first, last, count):
    """Number of contacts of body i."""
    count[i] = 0
    for at in range(pairs.start[i], pairs.start[i + 1]):
        p = pairs.entry[at] >> 1
        count[i] += last[p] - first[p]


def entries_row(i, pairs, first, last, start, entry):
    """Contacts of body i, 2 * contact + side, in the order in which the neighbour list has its pairs: that of the partners' numbers."""
    to = start[i]
    for at in range(pairs.start[i], pairs.start[i + 1]):
        p, side = pairs.entry[at] >> 1, pairs.entry[at] & 1
        for k in range(first[p], last[p]):
            entry[to] = 2 * k + side
            to += 1


def contacts_of_pairs(pairs, pair):
    """Where the contacts of so many pairs begin and end, two (p,); pair (c,): the row of Pairs of each contact."""
    first, last = np.zeros(pairs, np.int32), np.zeros(pairs, np.int32)
    kernel(bounds_row)(len(pair), pair, first, last)
    return first, last


def contacts_of_bodies(bodies, pairs, pair):
    """The contacts of the first so many bodies: start (bodies+1,), entry (e,), see `entries_row`; pair (c,): the row of Pairs of each contact."""
    first, last = contacts_of_pairs(len(pairs.shape), pair)
    count = np.empty(bodies, np.int32)
    kernel(many_row)(bodies, pairs, first, last, count)
    start = primitives.scan(count).astype(np.int32)
    entry = np.empty(int(start[-1]), np.int32)
    kernel(entries_row)(bodies, pairs, first, last, start, entry)
    return start, entry


class BodyCones:
    """The contacts of bodies as a cone problem u = D^T M^-1 D gamma + q; see `clast.dvi.solvers` for the members.

    constraints: Constraints of contacts between the Pairs of a list; rows (s,12): see `clast.motion.state`, whose velocities are those of the last impulse asked for;
    inverse (n,6): inverse inertia, or (0,6) for balls; free (n,6): velocity and spin without contacts, filled in before
    anything is asked. has: constants for the kernels of `clast.dvi.constraints`. joints: None, or a function (rows,
    fresh) that restores joints in the velocities of bodies; fresh: they know of no impulse of a joint yet. typical [m]: radius
    of a body, 0 if piles of them are to be solved without their long waves. others: see `clast.dvi.others`; with other processes `free` is of the bodies that
    this one moves, the first so many, and told says how many of the first contacts it counts: each is counted once.
    """

    def __init__(
        self, constraints, pairs, rows, inverse, free, has, width, joints=None, typical=0.0, others=ALONE, told=None
    ):
        self.constraints, self.rows, self.inverse, self.free = constraints, rows, inverse, free
        self.has, self.width, self.joints, self.typical, self.others = has, width, joints, typical, others
        self.count = len(constraints.gap)
        self.told = self.count if told is None else told
        self.normal, self.limit, self.size = constraints.normal, constraints.limit, constraints.size
        self.shift = np.zeros(self.count)
        pair = constraints.pair[: self.told]
        again = pair[1:] == pair[:-1]  # those of a pair stand side by side
        several = np.append(again, False) | np.append(False, again) if len(pair) else again
        counted = np.array([self.told, np.count_nonzero(several), np.count_nonzero(self.limit[: self.told, 1])])
        # Contacts of all processes, and how many of them are of pairs that touch at several points.
        self.total, self.patched, pulling = others.add(counted).tolist()
        self.pulls = pulling > 0
        self.norm = math.sqrt(max(self.total, 1))
        self.start, self.entry = contacts_of_bodies(len(free), pairs, constraints.pair)
        self._bodies = kernel(blocks.body_chunk, grain=4, **has)
        self._contacts = kernel(blocks.contact_chunk, grain=4, **has)

    @functools.cached_property
    def rho(self):
        """One over the mean of the diagonal of each block [kg]: what the residual is measured with."""
        rest = self.width - 1
        return self.width / (self.size[:, 0] + rest * self.size[:, 1])

    def begin(self, impulse):
        """Velocities of the bodies under these impulses (c,width) [N s]."""
        constraints, n = self.constraints, len(self.free)
        chunks = (n + CHUNK - 1) // CHUNK
        shared = self.rows, self.inverse, self.free, self.start, self.entry, constraints.arm, constraints.length
        self._bodies(chunks, CHUNK, *shared, impulse)
        if self.joints is not None:
            self.joints(self.rows, True)
        self.others.meet(self.rows)

    def velocity(self, impulse, out):
        """Velocity of each contact, with its bias, under these impulses: out (c,width) [m/s]."""
        self.begin(impulse)
        chunks = (self.count + CHUNK - 1) // CHUNK
        self._contacts(chunks, CHUNK, self.rows, self.constraints, self.shift, impulse, out)

    def descend(self, impulse, tolerance, iterations, largest, buffers):
        """See `clast.dvi.accelerated.descend`; not where joints have to be restored in between."""
        return accelerated.descend(self, impulse, tolerance, iterations, largest, buffers)

    def relax(self, impulse, omega, relaxation):
        """One step of the fixed point iteration, eqs. (12) to (14), in place: contacts, then bodies; `begin` comes first."""
        chunks = (self.count + CHUNK - 1) // CHUNK
        relax = kernel(blocks.relax_block, grain=4, fastmath=("contract", "nsz"), allocates=True, **self.has)
        relax(chunks, self.rows, self.constraints, self.shift, omega, relaxation, impulse)
        self.begin(impulse)

    @functools.cached_property
    def _colours(self):
        """Contacts in the order of their colours, and the first of each colour; then each on its own."""
        colour = colour_contacts(self.constraints.body, self.rows[:, PER_MASS] > 0.0, len(self.rows))
        start, order = primitives.group(colour, COLOURS + 1)
        single = np.arange(start[COLOURS], self.count + 1)
        start = np.concatenate([start[:COLOURS], single])
        # Copies in the order of colours: a sweep reads them one after the other.
        coloured = Constraints(*(column[order] if len(column) else column for column in self.constraints))
        return start[np.append(np.diff(start) > 0, True)].astype(np.int64), order, coloured

    def sweep(self, impulse):
        """One Gauss-Seidel pass over all contacts, colour by colour, in place; `begin` comes before the first."""
        first, order, coloured = self._colours
        kernel(blocks.sweep_row, grain=256, phased=True, **self.has)(
            first, order, self.rows, self.inverse, coloured, self.shift, impulse
        )
        if self.joints is not None:
            self.joints(self.rows, False)

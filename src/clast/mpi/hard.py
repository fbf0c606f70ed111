"""Hard contacts on many processes: the steps of `clast.dvi.stepper`, each process with its own bodies, all walls and ghosts.

The owner of a body computes all its contacts, so one across a cut is iterated on both sides, from the same numbers and with the same bits. In each iteration
ghosts get the velocities that their owners have found, and the few sums that steer it are added up over all processes, in a way that depends on no order
(`clast.kernels.sums`). The process that owns the first body of a contact counts it.
"""

import ctypes
from contextlib import contextmanager
from copy import copy
from types import SimpleNamespace

import numpy as np

from ..dvi import warm_start
from ..dvi.accelerated import ADD, AHEAD, VELOCITY
from ..dvi.stepper import Hard
from ..tables import FREE
from .joints import RankedJoints
from .stepper import Divided, contacts_table

CALLED = ctypes.CFUNCTYPE(None, ctypes.c_int64)
MANY = 10**7  # swift bodies times bodies above which nobody looks who is near whom: all take part


class Others:
    """See `clast.dvi.others.Alone`; what the processes of a Team do together."""

    many = True

    def __init__(self, team, domain):
        self.team, self.domain = team, domain
        self._rooms = {}  # what is sent, by columns
        self._lists = None  # of ghosts that the rooms are for

    def largest(self, *numbers):
        """See Alone."""
        return self.team.largest(*numbers)

    def add(self, rows):
        """See Alone."""
        return self.team.sum(rows)

    def meet(self, rows):
        """Rows (n,k) of bodies that others have as ghosts go there, and theirs come: one message to each that has some."""
        team, domain, began = self.team, self.domain, self.team.begin()
        if self._lists is not domain.going:
            self._rooms, self._lists = {}, domain.going
        width = rows.shape[1]
        if width not in self._rooms:
            self._rooms[width] = [np.empty((len(own), width)) for _, own, *_ in domain.going]
        requests = [team.comm.Irecv(rows[first:last], rank, tag=4) for rank, first, last in domain.coming]
        for (rank, own, *_), room in zip(domain.going, self._rooms[width], strict=True):
            np.take(rows, own, axis=0, out=room)
            requests.append(team.comm.Isend(room, rank, tag=4))
            team.sent += room.nbytes
        team.messages += len(domain.going)
        team.MPI.Request.Waitall(requests)
        team.wait(began)

    @contextmanager
    def meeting(self, velocity, ahead, sums):
        """See Alone."""
        faults: list[BaseException] = []
        wanted = {
            VELOCITY: lambda: self.meet(velocity),
            AHEAD: lambda: self.meet(ahead),
            ADD: lambda: np.copyto(sums, self.add(sums)),
        }

        def called(what):
            # Compiled code cannot raise: it comes to its end, alone, and then it is said.
            if not faults:
                try:
                    wanted[what]()
                except BaseException as fault:
                    faults.append(fault)

        function = CALLED(called)
        yield ctypes.cast(function, ctypes.c_void_p).value
        if faults:
            raise faults[0]


class RankedHard(Divided, Hard):
    """Takes the steps of a simulation by impulses, on many processes."""

    def __init__(self, scene, method, device, box, dt, team, survey):
        for there, what in (
            (method.solver != "apgd", f"solver={method.solver!r}"),
            (method.coulomb, "coulomb=True"),
            (method.sleep is not None, "sleep="),
            (method.ledger, "ledger=True"),
        ):
            if there:
                raise ValueError(
                    f"Simulation: {team.size} processes share no run with {what}; start one process, or leave that out"
                )
        self.memory = SimpleNamespace(
            remember=warm_start.remember,
            recall=lambda state, kept, among: warm_start.recall(state, kept, self.reach, among),
        )
        super().__init__(scene, method, device, box, dt, team, survey)
        self.others = Others(self.team, self.domain)
        if self.plain:
            self.domain.larger = self._larger

    def _larger(self, bodies):
        """How much larger [m] the list takes these Bodies, (n,), see `_grow`."""
        return self._grown(*self._ahead_of(bodies, self._held(bodies)))

    def _make_joints(self):
        return RankedJoints(self.scene, self.box, self) if self.scene.joints or self.scene.springs else None

    def make_list(self, sort, grow=None):
        """See Nearby."""
        self.renew(grow)

    def involved(self, before, swift):
        """See Swept: bodies of all processes that may be in the way of swift ones, the same everywhere."""
        state, domain, team = self.state, self.domain, self.team
        bodies, own = state.bodies, state.own
        free = bodies.motion[:own] == FREE
        reach = domain.reach[bodies.mold[:own]] * bodies.scale[:own]
        way = bodies.position[:own] - before[:own, :3]
        way -= state.box.length * np.round(way * state.box.inverse)
        # A way that is longer than half of the box is not told by its ends.
        length = np.maximum(np.linalg.norm(way, axis=1), self.dt * np.linalg.norm(bodies.velocity[:own], axis=1))
        rows = np.flatnonzero(swift[:own] & free)
        table = np.column_stack([before[rows, :3] + 0.5 * way[rows], 0.5 * length[rows] + reach[rows]])
        table = team.join(table)
        far = reach + length + self.slack + 2.0 * state.size
        near = free.copy()
        if team.largest(len(table) * own)[0] < MANY:
            near = swift[:own] & free
            for *middle, radius in table:
                d = before[:own, :3] - middle
                d -= state.box.length * np.round(d * state.box.inverse)
                near |= free & (np.einsum("ni,ni->n", d, d) <= (far + radius) ** 2)
        records, there = domain.gather(np.flatnonzero(near), np.column_stack([before, swift]))
        field = copy(state)
        field.there, field.ghosts, field.label = SimpleNamespace(**vars(state.there)), 0, records["label"]
        field.place(domain.bodies_of(records))
        numbers = np.argsort(bodies.number[:own], kind="stable")
        mine = np.full(len(records), -1)
        if own:
            at = np.minimum(np.searchsorted(bodies.number[:own], records["number"], sorter=numbers), own - 1)
            mine = np.where(bodies.number[numbers[at]] == records["number"], numbers[at], -1)
        return field, np.ascontiguousarray(there[:, :7]), there[:, 7] > 0.0, mine

    # What all processes tell together.

    def sorting(self, contacts):
        return [contacts.pair, contacts.shape, contacts.feature]

    def remember(self):
        """See Hard; the table of contacts stays where its rows are, and no order in memory is that of all bodies."""
        kept = super().remember()
        del kept["order"]
        return kept | {"contacts": contacts_table(self.team, kept["contacts"])}

    def recall(self, groups, steps):
        """See Hard; each process keeps what it has the bodies of."""
        joints = self._carry_on(groups, steps)
        if self.team.rank:
            self.ended = 0, self.ended[1]  # it is added up
        self._rebuild(sort=True)
        if self.joints is not None:
            self._recall_joints(joints)
        self.memory.recall(self.state, self.kept_here(groups, "contacts"), None)
        self.fresh = False
        self._start_clocks()

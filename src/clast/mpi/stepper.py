"""Smooth contacts on many processes: the steps of `clast.dem.stepper`, with bodies that go from one process to the next."""

import math
import time as clock
import zlib
from typing import Any

import numpy as np

from ..dem import results
from ..dem.stepper import Smooth
from ..errors import ClastError, Unavailable
from ..kernels import backend
from ..tables import Contacts, some_bodies
from .domain import Domain, about, joined


class Ranked(Smooth):
    """Takes the steps of a simulation whose bodies are divided among the processes of a Team.

    What decides for all, whether the list is too old and whether something went wrong, is agreed by one small reduction in a step; no number of
    the state goes through it.
    """

    def __init__(self, scene, method, device, box, dt, team):
        if device is not backend.CPU:
            raise Unavailable(f"Simulation: {team.size} processes share a run on the CPU only; leave device='cuda' out")
        super().__init__(scene, method, device, box, dt)
        self.team = team
        if self.ledger is not None:
            self.ledger.team = team
        self.domain: Any = None  # before the first step every process has all bodies
        self.fault: ClastError | None = None  # what went wrong here, and is not yet known to others
        self._heard = False, False
        self._counted = 0.0  # of `_worked`, at the last look
        self._began = 0.0, 0.0, 0.0  # wall time, `_worked` and waiting [s] when steps began
        self._tuned, self.state.tuned = self.state.tuned, False

    def start(self):
        """See Smooth; before that, bodies are divided."""
        if self.fresh:
            if self.domain is None:  # after a start that failed they are divided already
                self._divide()
            super().start()
            self._start_clocks()

    def _divide(self):
        state = self.state
        free = int((state.bodies.mass < math.inf).sum())
        if self.team.size > max(free, 1) and not self.scene.inlets:
            raise ClastError(
                f"{self.team.size} processes are more than the {free} bodies that move; start {max(free, 1)} at the most"
            )
        every = 0
        for column in state.bodies:
            every = zlib.crc32(np.ascontiguousarray(column).view(np.uint8), every)
        checked = {"bodies": len(state.bodies.number), "a time step of": self.dt, "the checksum": f"{every:08x}"}
        self.team.compare(
            "the processes describe different scenes", checked, "take the same seeds and files everywhere"
        )
        self.domain = Domain(self.team, state)

    def rebuild(self):
        """Make the list of pairs anew; bodies go to the process in whose tile they are."""
        state = self.state
        if self._tuned and state.pairs is not None:
            state.tune()
            state.margin = self.team.largest(state.margin)[0]
        if not self.fresh and self.domain.balance(self._worked() - self._counted):
            self._counted = self._worked()
        self.domain.rebuild()

    def _start_clocks(self):
        """What was spent until now was no work of steps."""
        self._counted = self._worked()
        self._began = clock.perf_counter(), self._counted, self.team.waited

    def _worked(self):
        """Processor time [s] of this process in which it did not wait for others; wall time would tell of whoever else uses the machine."""
        return clock.process_time() - self.team.idle

    def meet_ghosts(self):
        self.domain.meet()
        if self.heat is not None:
            self.domain.even_temperatures()

    def farthest(self, far, walls):
        """See Smooth; the processes agree."""
        return self.agree(far, walls)

    # Faults are raised on all processes at the same time: nobody waits for one that has left.

    def agree(self, *numbers):
        """The largest of each number over all processes; raises what any of them has found wrong."""
        stop, look = self.listen
        # It is the first process that has a clock for looking at the run.
        look = look() if self.team.rank == 0 else False
        *numbers, wrong, stop, look = self.team.largest(*numbers, self.fault is not None, stop(), look)
        self._heard = bool(stop), bool(look)
        if wrong:
            faults, self.fault = self.team.everywhere(self.fault), None
            raise next(fault for fault in faults if fault is not None)
        return numbers

    def listening(self, stop, look):
        self._heard = False, False  # what an earlier run was told does not count
        return super().listening(stop, look)

    def all_stop(self):
        return self.team.all_stop()

    def heard(self):
        """See Stepper; as of the end of the last step."""
        return self._heard

    def together(self, check):
        self._kept(check)
        self.agree()

    def _kept(self, function, *arguments):
        """Call it; what it finds wrong is told when the processes agree."""
        try:
            function(*arguments)
        except ClastError as fault:
            self.fault = fault if self.fault is None else self.fault

    def _move(self):
        self._kept(super()._move)

    def _check_speed(self):
        self._kept(super()._check_speed)

    def _collide(self):
        self._kept(super()._collide)

    def finish(self):
        super().finish()
        began = clock.perf_counter()
        self.agree()
        self.seconds["pairs"] += clock.perf_counter() - began

    # What all processes tell together, the same on each.

    def everywhere(self, rows):
        return self.team.join(rows)

    def own(self):
        return len(self.state.bodies.number) - self.state.ghosts

    def bodies(self):
        return super().bodies() if self.domain is None else self.domain.everybody()

    def admit(self, bodies):
        """See Stepper; all processes number all that come, and keep what is in the own tile."""
        label = self.state.new_labels(bodies)
        mine = self.domain.cuts.owner(bodies.position) == self.team.rank
        self.state.insert(some_bodies(bodies, mine), label[mine])

    def around(self, low, high):
        return self.domain.around(low, high)

    def ranks(self):
        """Of each process: bodies, ghosts, bytes and messages sent; since steps began the wall time [s], the processor time without waiting, and the wall
        time of waiting."""
        began, worked, waited = self._began
        mine = {
            "bodies": int((self.state.bodies.mass[: self.own()] < math.inf).sum()),
            "ghosts": self.state.ghosts,
            "moved": self.domain.moved,
            "cuts": self.domain.recut,
            "bytes": self.team.sent,
            "messages": self.team.messages,
            "seconds": clock.perf_counter() - began,
            "worked": self._worked() - worked,
            "waited": self.team.waited - waited,
        }
        everywhere = self.team.everywhere(mine)
        return {name: [told[name] for told in everywhere] for name in mine}

    def contacts(self):
        mine = super().contacts()
        both = Contacts(*(self.team.join(column) for column in mine))
        order = np.lexsort((both.gap, both.shape[:, 1], both.shape[:, 0], both.pair[:, 1], both.pair[:, 0]))
        return Contacts(*(column[order] for column in both))

    def touching(self):
        return sum(self.team.everywhere(super().touching()))

    def springs(self, slip=True):
        return self.team.join(super().springs(slip))

    def heat_flows(self):
        return tuple(self.team.join(column) for column in super().heat_flows())

    def remember(self):
        parts = self.team.everywhere(results.remember(self.state))
        kept = joined(parts)
        for name in ("spheres", "points"):
            body, part = kept[name]["body"].T, kept[name]["part"].T
            place = kept[name]["place"].T[::-1] if name == "points" else ()
            order = np.lexsort((*place, part[1], body[1], part[0], body[0]))
            for group in (name, "history") if name == "points" else (name,):
                kept[group] = {key: column[order] if len(column) else column for key, column in kept[group].items()}
        return {**kept, **self.carried()}

    def counted(self):
        """See Stepper; of all processes."""
        mine = super().counted()
        return {name: np.array(sum(self.team.everywhere(int(value)))) for name, value in mine.items()}

    def recount(self, counted):
        """See Stepper; the first process keeps what was counted before."""
        super().recount(counted if self.team.rank == 0 else dict.fromkeys(counted, 0))

    def recall(self, groups, steps):
        """See Smooth; each process keeps what it has the bodies of."""
        self.steps = steps
        self.carry_on(groups)
        with backend.use(self.device):
            self._divide()
            self.rebuild()
            here = self.state.bodies.number[: self.domain.own][self.state.bodies.mass[: self.domain.own] < math.inf]
            results.recall(self.state, about({name: groups[name] for name in ("spheres", "points", "history")}, here))
        self.fresh = False
        self._start_clocks()

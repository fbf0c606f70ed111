"""Smooth contacts on many processes: the steps of `clast.dem.stepper`, with bodies that go from one process to the next; and what hard contacts share with them."""

import math
import time as clock
from collections.abc import Callable
from itertools import zip_longest
from types import SimpleNamespace
from typing import Any

import numpy as np

from ..dem import results
from ..dem.stepper import Smooth
from ..errors import ClastError, Unavailable
from ..kernels import backend, sums
from ..motion.stepper import Stepper
from ..narrow.contacts import select
from ..scene.stacking import particle_radii
from ..tables import FREE, Contacts, some_bodies
from . import pieces
from .balance import Losses
from .domain import Domain, about, joined
from .pieces import Gathered
from .survey import median

# Groups of a checkpoint that are read in pieces or, as the order that bodies had in the memory of one process, not at all.
LOOK = 32  # steps between two looks at who works how long
# [s] of processor time a body, and beside that: what a new list with other tiles costs before one has been timed. Spheres took 0.5 to 0.9 us each
# where few went to others.
ANEW, ANEW_FOR_NONE = 1e-6, 3e-3
DIVIDED = ("bodies", "spheres", "points", "history", "contacts", "order")


class Divided(Stepper):
    """The part of a stepper whose bodies are divided among the processes of a Team; before that of the method among its bases.

    What decides for all, whether the list is too old and whether something went wrong, is agreed by small reductions; no number of
    the state goes through them.
    """

    memory: Any = results  # remember and recall what contacts do
    sorting: Callable[[Contacts], list]  # columns in the order of which Contacts stand, the most important one first

    def __init__(self, scene, method, device, box, dt, team, survey):
        if device is not backend.CPU:
            raise Unavailable(f"Simulation: {team.size} processes share a run on the CPU only; leave device='cuda' out")
        self.team, self.survey, self.cuts, self._asked = team, survey, None, dt
        super().__init__(scene, method, device, box, dt)  # type: ignore[call-arg]
        self.domain: Any = Domain(team, self.state, self.cuts, self.memory, survey.groups)
        self.survey = None
        self.fault: Exception | None = None  # what went wrong here, and is not yet known to others
        if self.ledger is not None:
            self.ledger.team = team
        self._heard = False, False
        self._counted = 0.0  # of `_worked`, at the last look of `Domain.balance`
        self._seen_work = self._fine = 0.0  # the same, when processes last told each other, and when work was last even
        self._losses, self._due = Losses(), False  # whether a list is to be made for another cut
        self._anew: float | None = None  # [s], processor time that a list took
        self._began: dict = {}  # what `_clocks` told when steps began

    def start(self):
        """See the stepper of the method."""
        if self.fresh:
            super().start()
            self._start_clocks()

    def chosen(self, state):
        """See Stepper: those in the own tile, and all that are not free."""
        team, survey, free = self.team, self.survey, self.survey.free
        if self.team.size > max(free, 1) and not self.scene.inlets:
            raise ClastError(
                f"{self.team.size} processes are more than the {free} bodies that move; start {max(free, 1)} at the most"
            )
        options = [value for value in vars(self.method).values() if isinstance(value, bool | int | float | str)]
        about = {"a time step of": self._asked, "a method with options": repr(options)}
        about |= {"bodies": survey.count, "bodies with the checksum": f"{survey.checksum:08x}"}
        team.compare_scenes(about, *self.scene.describe(bodies=False))
        self.cuts = survey.cuts(team.size, self.box)
        bodies, label = survey.own(self.cuts, team.rank, state.new_labels)
        # Who is not free is on every process, and counts once.
        told = (bodies.motion == FREE) | (team.rank == 0)
        told = SimpleNamespace(mold=bodies.mold[told], scale=bodies.scale[told], motion=bodies.motion[told])
        radii, largest = particle_radii(told, state.molds, state.parts)
        return bodies, label, median(team, radii), team.largest(largest)[0]

    def renew(self, grow=None):
        """Make the list of pairs anew; bodies go to the process in whose tile they are. grow: see State.rebuild."""
        began, cuts = self._worked(), self.domain.recut
        since = self._fine if self._due else self._counted
        self.domain.due, self._due = self._due, False
        looked = not self.fresh and self.domain.balance(began - since)
        self.domain.rebuild(grow)
        if looked:
            self._counted = self._worked()
        if self.domain.recut > cuts:  # bodies went, and times of before tell nothing
            self._seen_work = self._fine = self._counted
        if not self.fresh:  # kernels are loaded with the first
            self._anew = self._worked() - began

    def uneven(self):
        """See Stepper."""
        return self._due

    def _start_clocks(self):
        """What was spent until now was no work of steps."""
        self._counted = self._seen_work = self._fine = self._worked()
        self._began = self._clocks()

    def _clocks(self):
        """What goes on counting: steps, bytes and messages sent, times [s]. Other simulations of the program count there too, so one tells of differences."""
        team = self.team
        told = {"steps": self.steps, "bytes": team.sent, "messages": team.messages}
        return told | {"seconds": clock.perf_counter(), "worked": self._worked(), "waited": team.waited}

    def _worked(self):
        """Processor time [s] of this process in which it did not wait for others; wall time would tell of whoever else uses the machine."""
        return clock.process_time() - self.team.idle

    def meet_ghosts(self):
        self.domain.meet()

    def farthest(self, far, walls):
        """See the stepper of the method; the processes agree. At some steps all times of work go along, each in a place of its own, where others tell 0."""
        if self.fresh or (self.steps + 1) % LOOK:
            return self.agree(far, walls)
        now, work = self._worked(), [0.0] * self.team.size
        work[self.team.rank], self._seen_work = max(now - self._seen_work, 0.0), now
        anew = self._anew
        if anew is None:
            anew = ANEW * self.state.own + ANEW_FOR_NONE
        far, walls, anew, *work = self.agree(far, walls, anew, *work)
        self._due |= self._losses.add(work, anew)
        if self._losses.even:
            self._fine = now
        return far, walls

    # Faults are raised on all processes at the same time: nobody waits for one that has left.

    def agree(self, *numbers):
        """The largest of each number over all processes; raises what any of them has found wrong."""
        stop, look = self.listen
        # It is the first process that has a clock for looking at the run.
        look = look() if self.team.rank == 0 else False
        told = self.fault is not None, stop(), look, self.left, -self.left
        *numbers, wrong, stop, look, most, least = self.team.largest(*numbers, *told)
        self._heard = bool(stop), bool(look)
        if most + least != 0.0:
            asked = self.team.everywhere(self.left)
            other = next(rank for rank, left in enumerate(asked) if left != asked[0])
            raise ClastError(
                f"Simulation.step: rank 0 asks for {asked[0]} more steps, rank {other} for {asked[other]}; ask for as many on all processes"
            )
        if wrong:
            faults, self.fault = self.team.everywhere(self.fault), None
            raise next(fault for fault in faults if fault is not None)
        return numbers

    def listening(self, stop, look):
        self._heard = False, False  # what an earlier run was told does not count
        return super().listening(stop, look)

    def all_stop(self):
        return self.team.all_stop()

    def same_run(self, **asked):
        """See Stepper."""
        self.team.compare("Simulation: the processes ask for different runs", asked, "ask for the same on all")

    def heard(self):
        """See Stepper; as of the end of the last step."""
        return self._heard

    def together(self, check):
        self.attempt(check)
        self.agree()

    def attempt(self, function, *arguments):
        """See Stepper; it is told when the processes agree."""
        try:
            return function(*arguments)
        except (ClastError, ValueError) as fault:
            self.fault = fault if self.fault is None else self.fault
        return None

    def _move(self, *given):
        self.attempt(super()._move, *given)

    # What all processes tell together, the same on each.

    def everywhere(self, rows):
        return self.team.join(rows)

    def bodies(self):
        return self.domain.everybody()

    def share(self):
        return self.domain.share()

    def shared_contacts(self):
        return super().contacts()

    def contacts(self):
        both = Contacts(*(self.team.join(column) for column in self.shared_contacts()))
        return select(both, pieces.order_of(self.sorting(both)))

    def total(self, *columns):
        parts = self.team.everywhere([sums.exact_parts(column) for column in columns])
        return [sums.exact(np.concatenate(column)) for column in zip(*parts, strict=True)]

    # Tables for files whose rows stay where they are: Gathered.

    def table(self, names=None):
        bodies = self.share()
        columns = {name: getattr(bodies, name) for name in names or bodies._fields}
        return Gathered(self.team, bodies.number, [bodies.number], columns)

    def contact_table(self, contacts, columns):
        return Gathered(self.team, contacts.pair[:, 0], self.sorting(contacts), columns)

    def admit(self, bodies):
        """See Stepper; all processes number all that come, and keep what is in the own tile."""
        self.name_contacts()
        label = self.state.new_labels(bodies)
        mine = self.domain.cuts.owner(bodies.position) == self.team.rank
        self.state.insert(some_bodies(bodies, mine), label[mine])

    def around(self, low, high):
        return self.domain.around(low, high)

    def ranks(self):
        """Of each process: bodies, ghosts, bodies that came from others; since steps began in this simulation their number, bytes and messages sent,
        the wall time [s], the processor time without waiting, and the wall time of waiting."""
        passed = {name: value - self._began.get(name, value) for name, value in self._clocks().items()}
        mine = {
            "bodies": int((self.state.bodies.mass[: self.state.own] < math.inf).sum()),
            "ghosts": self.state.ghosts,
            "moved": self.domain.moved,
            "cuts": self.domain.recut,
        } | passed
        everywhere = self.team.everywhere(mine)
        return {name: [told[name] for told in everywhere] for name in mine}

    def counted(self):
        """See Stepper; of all processes."""
        mine = super().counted()
        return {name: np.array(sum(self.team.everywhere(int(value)))) for name, value in mine.items()}

    def recount(self, counted):
        """See Stepper; the first process keeps what was counted before."""
        super().recount(counted if self.team.rank == 0 else dict.fromkeys(counted, 0))

    def touching(self):
        return sum(self.team.everywhere(super().touching()))

    def kept_here(self, groups, *names):
        """What contacts of bodies remember that this process moves: of groups of a checkpoint with these names, which are read piece by piece."""
        here, found = self.moving(), []
        for some in zip_longest(*(groups[name].pieces(pieces.PIECE) for name in names)):
            piece = {name: table for name, table in zip(names, some, strict=True) if table is not None}
            found.append(about(piece, here))
        return joined(found)

    def moving(self):
        """Numbers of the bodies that this process moves."""
        bodies, own = self.state.bodies, self.state.own
        return bodies.number[:own][bodies.mass[:own] < math.inf]


class Ranked(Divided, Smooth):
    """Takes the steps of a simulation by forces, on many processes."""

    def __init__(self, scene, method, device, box, dt, team, survey):
        super().__init__(scene, method, device, box, dt, team, survey)
        self._tuned, self.state.tuned = self.state.tuned, False

    def rebuild(self):
        state = self.state
        self._around, self._seen = None, ()  # as Smooth
        if self._tuned and state.pairs is not None:
            state.tune()
            state.margin = self.team.largest(state.margin)[0]
        self.renew()

    def meet_ghosts(self):
        super().meet_ghosts()
        if self.heat is not None:
            self.domain.even_temperatures()

    def _check_speed(self):
        self.attempt(super()._check_speed)

    def _collide(self):
        self.attempt(super()._collide)
        if self._divides:
            self.finish()  # others must learn how fast bodies are then

    def _keep_account(self):
        if self._divides:
            began = clock.perf_counter()
            with self.on_device:
                self.meet_ghosts()
            own, all_ = self.state.own, len(self.state.bodies.number)
            self.ledger.then[own:] = self.state.rows[own:all_]
            self.seconds["pairs"] += clock.perf_counter() - began
            super()._keep_account()

    def finish(self):
        super().finish()
        began = clock.perf_counter()
        self.agree()
        self.seconds["pairs"] += clock.perf_counter() - began

    def sorting(self, contacts):
        return [contacts.pair, contacts.shape, contacts.gap]

    def heat_flows(self):
        self.domain.even_temperatures()  # they have changed since ghosts met
        return tuple(self.team.join(column) for column in super().heat_flows())

    def remember(self):
        """See Smooth; the tables of contacts stay where their rows are."""
        kept = results.remember(self.state)
        tables = {name: contacts_table(self.team, kept[name]) for name in ("spheres", "points")}
        tables["history"] = contacts_table(self.team, kept["points"], kept["history"])
        return {**tables, **self.carried()}

    def recall(self, groups, steps):
        """See Smooth; each process keeps what it has the bodies of."""
        self.steps = steps
        self.carry_on(groups)
        with backend.use(self.device):
            self.rebuild()
            results.recall(self.state, self.kept_here(groups, "spheres", "points", "history"))
        self.fresh = False
        self._start_clocks()


def contacts_table(team, named, columns=None):
    """A table of contacts whose rows stay where they are: Gathered. named: body, part and perhaps place of each, in the order of which it is sorted; columns: of the
    table, if they are others."""
    body, part = named["body"], named["part"]
    sorting = [body[:, 0], part[:, 0], body[:, 1], part[:, 1], *([named["place"]] if "place" in named else [])]
    return Gathered(team, body[:, 0], sorting, named if columns is None else columns)

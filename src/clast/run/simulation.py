"""A simulation: one step, many steps, frames, runs that can be stopped and continued."""

import math
import time as clock
import weakref
from collections.abc import Callable, Iterator, Mapping
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import measure
from ..broad.search import periodic_box
from ..dem.method import DEM
from ..dvi.method import Complementarity
from ..errors import ClastError, Unavailable, is_number, path_of, pick
from ..files import checkpoint
from ..joints.reactions import Reactions
from ..joints.springs import Pulls
from ..kernels import ahead, backend, watch
from ..measure.ledger import taken_along
from ..mpi import team
from ..mpi.stepper import DIVIDED
from ..mpi.survey import Survey
from ..scene import clearance, inputs
from ..scene.filling import Newcomers
from ..scene.scene import Scene
from ..scene.solids import make_solids
from ..scene.stacking import lone_parts
from ..signatures import Device, File, Floats, Functions, Motion, Recorded, Step, Whole
from ..tables import FREE, Bodies, Contacts, is_particle, rows_in, some_bodies
from . import runner
from .choice import METHODS, stepper_of
from .flows import Flows
from .recording import Record
from .rehearsal import few, rehearse
from .report import Report

PERIOD = 1e-3  # [s], about how often inlets and outlets are looked after
SHORTEST = 1e-18  # [s], no contact between bodies is that short
LONGEST = 10**13  # steps, more than a year of them


class Simulation:
    """A scene in motion.

    scene: Scene; it belongs to the simulation from now on, and `scene.bodies` shows the present state.
    method: DEM(...) or Complementarity(...). dt [s], or "auto": with DEM a fixed fraction of what the stiffest contact
    allows, with Complementarity a fixed fraction of the time a body takes to fall by its own size. device: "cpu" or "cuda".

    Where several processes share the run (`mpirun`, docs/scaling.md), each has a part of the bodies; what the simulation tells is the same on all of
    them, and all must ask for it.

    flows: what went through the inlets and outlets, `flows.outlets[0].mass` say; see `clast.run.flows.Flow`.
    """

    def __init__(
        self, scene: Scene, method: DEM | Complementarity | None = None, *, dt: Step = "auto", device: Device = "cpu"
    ) -> None:
        method = DEM() if method is None else method
        if not isinstance(scene, Scene):
            raise TypeError(f"Simulation: the first argument must be a clast.Scene, got {scene!r}")
        if scene.source is not None:
            raise ValueError(
                "Simulation: the scene belongs to another simulation, which moves its bodies; build a scene for each, "
                "or save a checkpoint and clast.resume it"
            )
        if type(method) not in METHODS:
            raise TypeError(
                f"Simulation: the method must be clast.DEM(...) or clast.Complementarity(...), got {method!r}"
            )
        if scene.count == 0 and not scene.inlets:
            raise ValueError("Simulation: the scene is empty; add bodies with scene.add or scene.fill first")
        if isinstance(method, DEM) and (scene.joints or scene.springs):
            raise ValueError("Simulation: joints and springs need clast.Complementarity(...); DEM has none")
        if scene.warm and not isinstance(method, DEM):
            raise ValueError("Simulation: heat is conducted by clast.DEM(...) alone; leave temperatures out")
        if not isinstance(dt, str) and (isinstance(dt, bool) or not is_number(dt)):
            raise TypeError(f"Simulation: dt must be a number of seconds or 'auto', got {dt!r}")
        if not isinstance(dt, str) and 0.0 < float(dt) < SHORTEST:
            raise ValueError(f"Simulation: dt = {dt:g} s is shorter than any contact; take dt='auto'")
        self.device = find_device(device)
        if self.device is not backend.CPU and len(scene.hulls.ball):
            raise Unavailable("Simulation: polyhedra move on the CPU only; leave device='cuda' out")
        meshed = len(scene.surfaces.ball) > 0
        if self.device is not backend.CPU and meshed:
            raise Unavailable("Simulation: triangulated particles move on the CPU only; leave device='cuda' out")
        if self.device is not backend.CPU and method.ledger:
            raise Unavailable("Simulation: a ledger is kept on the CPU only; leave device='cuda' out")
        if self.device is not backend.CPU and scene.warm:
            raise Unavailable("Simulation: heat is conducted on the CPU only; leave device='cuda' out")
        self.scene, self.method = scene, method
        self._compiled = watch.seconds()
        self.box = periodic_box(scene)
        self.team = team.find()  # the processes that share the run, or None
        self._few = None  # by which kernels are found, when each process has its own bodies alone
        chosen = stepper_of(method, self.team is not None)
        self.stepper = (
            chosen(scene, method, self.device, self.box, dt) if self.team is None else self._share(chosen, dt)
        )
        self.dt, self.state, self.seconds = self.stepper.dt, self.stepper.state, self.stepper.seconds
        self.flows = Flows(scene, self.dt)
        for number, drive in scene.drives.items():
            bind = getattr(drive.function, "bind", None)
            if bind is not None:  # a Servo looks at contacts
                bind(self, number)
        self._check_periods()
        self._every = max(1, round(PERIOD / self.dt))
        self._looked = False
        self._torn = False  # a step was interrupted half way
        self._solids = None  # by which inlets keep bodies apart, made when asked
        self._prepared = False  # what to do where kernels are missing has been said
        self.clock, self.glanced = clock.perf_counter, 0.0
        # Steps since the simulation was made or resumed, without those in which kernels were compiled; `seconds` is the
        # time they took.
        self.counted = 0
        self.every = None  # [s], time between the frames of the last run
        if self.team is not None:
            # A rehearsal would ask for all bodies, which one process cannot without the others.
            ahead.each_when_reached()
        scene.hand_over(SimpleNamespace(bodies=lambda: self.bodies))

    dt: float  # [s]
    seconds: dict[str, float]  # [s], wall time of steps by what it went into

    if TYPE_CHECKING:

        def view(self, **options: Any) -> Any:
            """Show it in the browser, see `clast.view.show`; the package adds it, rooms below this one know how."""

    def _share(self, chosen, dt):
        """The stepper of a process that has a part of the bodies: the scene shows but an outline of them while it is made."""
        survey = Survey(self.scene)
        survey.stand_in()
        try:
            if self.team.rank == 0:
                self._few = few(self.scene)
            given = self.scene, self.method, self.device, self.box, dt, self.team, survey
            return chosen(*given)
        finally:
            self.scene.source = None

    @property
    def steps(self) -> int:
        """Steps taken."""
        return self.stepper.steps

    @property
    def time(self) -> float:
        """Simulated time [s]."""
        return self.stepper.time

    @property
    def compiling(self) -> float:
        """Wall time [s] that kernels have been compiled for since the simulation was made; no part of `seconds`."""
        return watch.seconds() - self._compiled

    @property
    def removed(self) -> int:
        """Bodies that outlets have taken out."""
        return sum(flow.count for flow in self.flows.outlets)

    @property
    def poured(self) -> list[int]:
        """Bodies that each inlet has let in, a list."""
        return [flow.count for flow in self.flows.inlets]

    @property
    def bodies(self) -> Bodies:
        """Bodies sorted by number, a copy of the present state."""
        return self.stepper.bodies()

    def step(self, count: Whole = 1) -> None:
        """Take `count` steps."""
        count = inputs.whole("Simulation.step", "count", count)
        try:
            self.stepper.left = count
            self.start()
            for k in range(count):
                self.stepper.left = count - k
                self._pour_and_drain()
                self._timed(self.stepper.step)
            self._timed(self.stepper.finish, 0)
        finally:
            self.stepper.left = 0

    def _timed(self, function, steps=1):
        """Call it; a call in which something was compiled tells nothing about speed, and neither counts nor takes time."""
        if self._torn:
            raise ClastError(
                "Simulation: its last step was interrupted half way; make it anew, or go on from a checkpoint by clast.resume"
            )
        before, compiled = tuple(self.seconds.values()), watch.seconds()
        try:
            function()
        except KeyboardInterrupt:
            self._torn = True
            raise
        if watch.seconds() == compiled:
            self.counted += steps
        else:
            self.seconds.update(zip(self.seconds, before, strict=True))

    def start(self) -> None:
        """What the first step needs to know; no time passes. Later calls do nothing."""
        first = not self._looked
        if first:
            self.stepper.together(self._check_centres)
        self._prepare()
        self.stepper.start()
        if first and self.team is not None and not lone_parts(self.state.molds, self.state.parts).all():
            self.stepper.together(self._check_centres)  # with parts of bodies that others move, which came as ghosts
        self._looked = True
        if self.stepper.ledger is not None and self.stepper.ledger.start is None:
            self.stepper.ledger.begin(self.state, measure.stored(self).parts, self.dt)

    def _prepare(self):
        """Say what to do where kernels are missing; later calls do nothing."""
        if self._prepared:
            return
        if self.team is not None:
            # One compiles, the others load what it has made.
            self.team.first_while_others_rest(
                lambda: ahead.compile_now(lambda: rehearse(self._few, self.method, self.dt))
            )
            self._few = None
        elif self.device is backend.CPU:
            own = weakref.ref(self)
            ahead.when_missing(lambda: [] if (sim := own()) is None else rehearse(sim.scene, sim.method, sim.dt))
        self._prepared = True

    def _pour_and_drain(self):
        """Inlets and outlets, looked after at fixed steps so that stopping and continuing changes nothing."""
        scene, state = self.scene, self.state
        if not (scene.inlets or scene.outlets) or self.steps % self._every:
            return
        self.stepper.finish()
        state.fetch()
        book, came = self.stepper.ledger, 0.0
        whole = book is not None and not book.divided
        before = None if book is None or whole else measure.stored(self).parts
        with backend.use(self.device):
            gone, changed = np.zeros(self.state.own, bool), False
            own = slice(0, len(gone))
            for outlet, flow in zip(scene.outlets, self.flows.outlets, strict=True):
                # Where outlets overlap, the first one counts.
                taken = outlet.holds(state.bodies.position[own]) & (state.bodies.motion[own] == FREE) & ~gone
                masses = self.stepper.everywhere(state.bodies.mass[own][taken])
                flow.note(self.steps, masses)
                gone |= taken
                changed |= len(masses) > 0
            if changed and whole:
                came -= taken_along(self, some_bodies(state.bodies, np.flatnonzero(gone)), everywhere=True)
            if gone.any():
                self.stepper.name_contacts()
                state.remove(np.nonzero(gone)[0])
            for k, inlet in enumerate(scene.inlets):
                owed = inlet.total(self.time) - self.flows.inlets[k].count
                if owed > 0:
                    poured = self._pour(k, inlet, owed)
                    changed |= poured is not None
                    came += taken_along(self, poured) if poured is not None and whole else 0.0
            if changed:
                self.stepper.rebuild()
        if changed and before is not None:
            book.pass_through(before, measure.stored(self).parts)
        elif whole:
            book.through += came

    def _pour(self, k, inlet, owed):
        """Let in as many of the bodies that are due as find room, and give them; None if there are none. The rest stays due."""
        scene = self.scene
        low, high = np.array(inlet.low), np.array(inlet.high)
        bodies, shapes = self.stepper.around(low, high)
        known = clearance.known_balls(shapes, low, high, self.box.length)
        # In a fixed order, so that the same bodies enter at the same places after a restart.
        order = np.argsort(shapes.number[known.shape], kind="stable")
        known = clearance.Known(*(column[order] for column in known))
        if self._solids is None:
            self._solids = make_solids(scene.parts, scene.hulls, scene.surfaces)
        first = scene.molds.first[inlet.mold]
        last = first + scene.molds.count[inlet.mold]

        def newcomers(orientation, scale, radius):
            parts = np.full(len(scale), first, np.int64), np.full(len(scale), last, np.int64)
            given = known, bodies, shapes, clearance.no_walls(low)
            return Newcomers.of(self._solids, parts, orientation, scale, radius, *given)

        flow = self.flows.inlets[k]
        position, scale, orientation, placed = inlet.place(flow.count, owed, known, newcomers, attempt=self.steps)
        if placed:
            poured = self.scene.pour(inlet, position, scale, orientation)
            self.stepper.admit(poured)
            flow.note(self.steps, poured.mass)
            return poured
        return None

    # What may be wrong.

    def _check_periods(self):
        need = 4.0 * self.state.largest + 2.0 * self.stepper.widest
        for axis, length in zip("xyz", self.box.length, strict=True):
            if 0.0 < length < need:
                raise ValueError(
                    f"Simulation: the world is {length:.4g} m long in periodic direction {axis}, but the largest particle "
                    f"needs {need:.4g} m so that it does not meet two images of one partner; enlarge the world"
                )

    def _check_centres(self):
        """Solid bodies with one centre have no direction in which to part; a sphere in the middle of a ring is no such case."""
        state, scene = self.state, self.scene
        shapes, bodies = state.shapes, state.bodies
        solid = is_particle(shapes.kind) & (rows_in("surfaces", shapes.kind, state.parts.feature[shapes.part]) < 0)
        rows = np.flatnonzero(solid)
        rows = rows[np.lexsort((shapes.number[rows], *shapes.centre[rows].T))]
        one, two = rows[:-1], rows[1:]
        same = (shapes.centre[one] == shapes.centre[two]).all(1) & (shapes.body[one] != shapes.body[two])
        body = np.stack([shapes.body[one[same]], shapes.body[two[same]]], axis=1)
        body = body[(bodies.motion[body] == FREE).any(1)]
        apart = set(map(tuple, np.sort(scene.apart, axis=1).tolist()))
        for a, b in body:
            if tuple(sorted((int(bodies.number[a]), int(bodies.number[b])))) not in apart:
                raise ValueError(
                    f"Simulation: {self.stepper.name(a)} and {self.stepper.name(b)} have the same centre "
                    f"{bodies.position[a].tolist()}, so nothing says how to part them; move one of them"
                )

    # Results.

    def contacts(self) -> Contacts:
        """The contacts of the present state: Contacts with slip and force, sorted by pair, then shape."""
        self.start()
        return self.stepper.contacts()

    @property
    def reactions(self) -> Reactions:
        """What joints do at present, one row per joint: see `clast.joints.reactions.Reactions`."""
        return self._joints("reactions").reactions

    @property
    def violation(self) -> Floats:
        """How far each joint is from where it should be, (j,) [m] or [rad]; below 1e-9 unless something is wrong."""
        return self._joints("violation").violation

    @property
    def pulls(self) -> Pulls:
        """What springs do at present, one row per spring: see `clast.joints.springs.Pulls`."""
        return self._joints("pulls").pulls

    def _joints(self, name):
        joints = getattr(self.stepper, "joints", None)
        if joints is None:
            raise ValueError(
                f"Simulation.{name}: the scene has no joints or springs; add them with scene.join or scene.spring"
            )
        self.start()
        return joints

    def report(self) -> Report:
        """Numbers of the run so far: times, speed, contacts, energies, momentum."""
        return Report.of(self)

    def ledger(self) -> measure.Balance:
        """Where energy came from and went to since the start: see `clast.measure.Balance`."""
        return measure.ledger(self)

    def touching(self) -> int:
        """Number of contacts that carry a force."""
        self.start()
        return self.stepper.touching()

    def kinetic_energy(self) -> float:
        """Energy of the motion of all free bodies [J], spin included as if they were balls; cheap."""
        self.state.fetch()
        bodies, own = self.state.bodies, self.state.own
        free = np.flatnonzero(bodies.motion[:own] == FREE)
        fast = np.einsum("ni,ni->n", bodies.velocity[free], bodies.velocity[free])
        turning = np.einsum("ni,ni->n", bodies.spin[free], bodies.spin[free])
        mine = 0.5 * float(bodies.mass[free] @ fast + bodies.inertia[free] @ turning)
        return float(self.stepper.everywhere(np.array([mine])).sum())

    def check_times(self, until: float, every: float) -> tuple[float, float]:
        """End and time between frames [s] as numbers that a run can follow."""
        until = inputs.number("Simulation.run", "until", until, above=0.0)
        every = inputs.number("Simulation.run", "every", every, above=0.0)
        if every < self.dt:
            raise ValueError(
                f"Simulation: every = {every:g} s is shorter than a step of {self.dt:.3g} s; take at least that"
            )
        if until > LONGEST * self.dt:
            raise ValueError(
                f"Simulation: until = {until:g} s is {until / self.dt:.2g} steps of {self.dt:.3g} s, too many"
            )
        return until, every

    def check_record(self, names: Recorded) -> None:
        """Refuse quantities that `run` could not keep by these names."""
        Record(self, names)

    def frames(self, *, until: float, every: float, between: Callable[[], object] | None = None) -> Iterator[int]:
        """Run until a time [s]; yields the number of each frame, one every `every` seconds, the first at the start.

        between: function called after every step; when it returns True the frames end early.
        """
        until, every = self.check_times(until, every)
        self.stepper.same_run(until=until, every=every)
        last = round(until / self.dt)
        # The first frame that is due now or later, by the same rounding by which it is due.
        frame = max(0, math.floor(self.steps * self.dt / every) - 1)
        while round(frame * every / self.dt) < self.steps:
            frame += 1
        while True:
            due = min(round(frame * every / self.dt), last)
            self.start()
            while self.steps < due:
                self.step()
                if between is not None and between():
                    return
            yield frame
            if self.steps >= last:
                return
            frame += 1

    def run(
        self,
        *,
        until: float,
        every: float | None = None,
        output: File | None = None,
        progress: bool = True,
        record: Recorded = (),
        text: bool = False,
        between: Callable[..., object] | None = None,
    ) -> Report:
        """Run until a time [s]; with `output`, write a frame and a checkpoint into that folder every `every` seconds.

        record: names of further quantities that frames and `series.csv` keep, ["coordination", "flow:outlet", "torque:0"] say, see
        `clast.run.recording`; "contacts" keeps contact points of frames however many they are; a function of the simulation that returns a
        number is kept by its name. text: write a text file with places and radii of all particles at each frame. between: function
        called after every step with the simulation and a function that tells whether the run is asked to stop; it may wait.

        Ctrl-C or SIGTERM finishes the step, writes a checkpoint and raises KeyboardInterrupt; `clast.resume(folder)`
        goes on and gives the same bits as a run that was never stopped.
        """
        options = {"progress": progress, "record": record, "text": text, "between": between}
        return runner.run(self, until=until, every=every, output=output, **options)

    def save(self, path: File) -> None:
        """Write a checkpoint that `clast.resume` goes on from, to the bit."""
        runner.write_checkpoint(self, path_of(path, "Simulation.save: the first argument must be the path of a file"))


def resume(
    path: File,
    *,
    law: Callable | None = None,
    drives: Mapping[int, Motion] | None = None,
    functions: Functions | None = None,
    device: Device = "cpu",
) -> Simulation:
    """The simulation that was saved at `path`, a checkpoint or the folder of a run; it goes on with the same bits.

    law: the function, if the contact law was the user's own; drives: {body number: function} likewise; functions: those of
    joints, motors and springs, {("joint" | "motor" | "spring", number): function}.
    """
    path = path_of(path, "resume: the first argument must be the path of a checkpoint or of the folder of a run")
    # What contacts remember is the most of it: of several processes each takes what its own bodies have, piece by piece.
    later = DIVIDED if team.find() is not None else ()
    groups, saved = checkpoint.read(path / "checkpoint.h5" if path.is_dir() else path, later)
    numbers = saved["simulation"]
    scene = Scene.rebuild(groups, saved, drives=drives, functions=functions)
    method = runner.method_of(path, numbers, law)
    sim = Simulation(scene, method, dt=numbers["dt"], device=device)
    if not numbers.get("begun", True):  # it was stopped before anything was computed
        return sim
    if sim.team is not None:
        sim._prepare()
    sim.flows.recall(groups["flows"])
    sim.stepper.recall(groups, numbers["steps"])
    sim.every = numbers.get("every")
    sim._looked = True  # what happens on the way is parted and counted
    return sim


def find_device(name):
    """The device of that name, or an error that says why not."""
    pick("device", name, {"cpu": None, "cuda": None})
    if name == "cpu":
        return backend.CPU
    from ..kernels import cuda

    return cuda.find()

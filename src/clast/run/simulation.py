"""A simulation: one step, many steps, frames, runs that can be stopped and continued."""

import math
import time as clock
import weakref
from numbers import Real
from pathlib import Path
from types import SimpleNamespace

import numpy as np

from ..broad.search import periodic_box
from ..dem.method import DEM
from ..dem.stepper import Smooth
from ..dvi.method import Complementarity
from ..dvi.stepper import Hard
from ..errors import Unavailable, pick
from ..files import checkpoint
from ..kernels import ahead, backend
from ..scene import clearance
from ..scene.scene import Scene
from ..tables import FREE, Bodies, is_particle
from . import runner
from .rehearsal import rehearse
from .report import Report

STEPPERS = {DEM: Smooth, Complementarity: Hard}
PERIOD = 1e-3  # [s], about how often inlets and outlets are looked after


class Simulation:
    """A scene in motion.

    scene: Scene; it belongs to the simulation from now on, and `scene.bodies` shows the present state.
    method: DEM(...) or Complementarity(...). dt [s], or "auto": with DEM a fixed fraction of what the stiffest contact
    allows, with Complementarity a fixed fraction of the time a body takes to fall by its own size. device: "cpu" or "cuda".
    """

    def __init__(self, scene, method=None, *, dt="auto", device="cpu"):
        method = DEM() if method is None else method
        if not isinstance(scene, Scene):
            raise TypeError(f"Simulation: the first argument must be a clast.Scene, got {scene!r}")
        if type(method) not in STEPPERS:
            raise TypeError(
                f"Simulation: the method must be clast.DEM(...) or clast.Complementarity(...), got {method!r}"
            )
        if len(scene.bodies.number) == 0 and not scene.inlets:
            raise ValueError("Simulation: the scene is empty; add bodies with scene.add or scene.fill first")
        if isinstance(method, DEM) and (scene.joints or scene.springs):
            raise ValueError("Simulation: joints and springs need clast.Complementarity(...); DEM has none")
        if not isinstance(dt, str) and (isinstance(dt, bool) or not isinstance(dt, Real)):
            raise TypeError(f"Simulation: dt must be a number of seconds or 'auto', got {dt!r}")
        self.device = find_device(device)
        if self.device is not backend.CPU and len(scene.hulls.ball):
            raise Unavailable("Simulation: polyhedra move on the CPU only; leave device='cuda' out")
        meshed = len(scene.surfaces.ball) > 0
        if self.device is not backend.CPU and meshed:
            raise Unavailable("Simulation: triangulated particles move on the CPU only; leave device='cuda' out")
        self.scene, self.method = scene, method
        self.removed = 0
        self.poured = [0] * len(scene.inlets)
        self.box = periodic_box(scene)
        self.stepper = STEPPERS[type(method)](scene, method, self.device, self.box, dt)
        self.dt, self.state, self.seconds = self.stepper.dt, self.stepper.state, self.stepper.seconds
        self._check_periods()
        self._every = max(1, round(PERIOD / self.dt))
        self._prepared = False  # what to do where kernels are missing has been said
        self.clock, self.glanced = clock.perf_counter, 0.0
        self.counted = 0  # steps since the simulation was made or resumed; `seconds` is the time they took
        scene.hand_over(SimpleNamespace(bodies=lambda: self.bodies))

    @property
    def steps(self):
        """Steps taken."""
        return self.stepper.steps

    @property
    def time(self):
        """Simulated time [s]."""
        return self.stepper.time

    @property
    def bodies(self):
        """Bodies sorted by number, a copy of the present state."""
        self.state.fetch()
        order = np.argsort(self.state.bodies.number, kind="stable")
        return Bodies(*(column[order] for column in self.state.bodies))

    def step(self, count=1):
        """Take `count` steps."""
        self.start()
        for _ in range(count):
            self._pour_and_drain()
            self.stepper.step()
            self.counted += 1
        self.stepper.finish()

    def start(self):
        """What the first step needs to know; no time passes. Later calls do nothing."""
        if not self._prepared and self.device is backend.CPU:
            own = weakref.ref(self)
            ahead.when_missing(lambda: [] if (sim := own()) is None else rehearse(sim.scene, sim.method, sim.dt))
        self._prepared = True
        self.stepper.start()

    def _pour_and_drain(self):
        """Inlets and outlets, looked after at fixed steps so that stopping and continuing changes nothing."""
        scene, state = self.scene, self.state
        if not (scene.inlets or scene.outlets) or self.steps % self._every:
            return
        self.stepper.finish()
        state.fetch()
        with backend.use(self.device):
            gone = np.zeros(len(state.bodies.number), bool)
            for outlet in scene.outlets:
                gone |= outlet.holds(state.bodies.position) & (state.bodies.motion == FREE)
            changed = bool(gone.any())
            if changed:
                self.removed += int(gone.sum())
                state.remove(np.nonzero(gone)[0])
            for k, inlet in enumerate(scene.inlets):
                owed = inlet.total(self.time) - self.poured[k]
                if owed > 0:
                    changed |= self._pour(k, inlet, owed)
            if changed:
                self.stepper.rebuild()

    def _pour(self, k, inlet, owed):
        """Let in as many of the bodies that are due as find room; the rest stays due."""
        shapes = self.state.shapes
        balls = np.nonzero(is_particle(shapes.kind))[0]
        # In a fixed order, so that the same bodies enter at the same places after a restart.
        balls = balls[np.argsort(shapes.number[balls], kind="stable")]
        there = SimpleNamespace(kind=shapes.kind[balls], centre=shapes.centre[balls], radius=shapes.radius[balls])
        known = clearance.known_balls(there, np.array(inlet.low), np.array(inlet.high), self.box.length)
        position, scale, orientation, placed = inlet.place(self.poured[k], owed, *known, attempt=self.steps)
        if placed:
            self.state.insert(self.scene.pour(inlet, position, scale, orientation))
            self.poured[k] += placed
        return placed > 0

    # What may be wrong.

    def _check_periods(self):
        state = self.state
        largest = float(state.shapes.radius[is_particle(state.shapes.kind)].max(initial=0.0))
        largest = max([largest, *(inlet.reach * inlet.sizes.largest for inlet in self.scene.inlets)])
        need = 4.0 * largest + 2.0 * self.stepper.widest
        for axis, length in zip("xyz", self.box.length, strict=True):
            if 0.0 < length < need:
                raise ValueError(
                    f"Simulation: the world is {length:.4g} m long in periodic direction {axis}, but the largest particle "
                    f"needs {need:.4g} m so that it does not meet two images of one partner; enlarge the world"
                )

    # Results.

    def contacts(self):
        """The contacts of the present state: Contacts with slip and force, sorted by pair, then shape."""
        self.start()
        return self.stepper.contacts()

    @property
    def reactions(self):
        """What joints do at present, one row per joint: see `clast.joints.reactions.Reactions`."""
        return self._joints("reactions").reactions

    @property
    def violation(self):
        """How far each joint is from where it should be, (j,) [m] or [rad]; below 1e-9 unless something is wrong."""
        return self._joints("violation").violation

    @property
    def pulls(self):
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

    def report(self):
        """Numbers of the run so far: times, speed, contacts, energies, momentum."""
        return Report.of(self)

    def touching(self):
        """Number of contacts that carry a force."""
        self.start()
        return self.stepper.touching()

    def kinetic_energy(self):
        """Energy of the motion of all free bodies [J], spin included as if they were balls; cheap."""
        self.state.fetch()
        bodies = self.state.bodies
        free = bodies.motion == FREE
        fast = np.einsum("ni,ni->n", bodies.velocity, bodies.velocity)[free]
        turning = np.einsum("ni,ni->n", bodies.spin, bodies.spin)[free]
        return 0.5 * float(bodies.mass[free] @ fast + bodies.inertia[free] @ turning)

    def frames(self, *, until, every, between=None):
        """Run until a time [s]; yields the number of each frame, one every `every` seconds, the first at the start.

        between: function called after every step; when it returns True the frames end early.
        """
        for value, place in ((until, "until"), (every, "every")):
            if not 0.0 < float(value) < math.inf:
                raise ValueError(f"Simulation: {place} = {value} must be above 0 s")
        if every < self.dt:
            raise ValueError(
                f"Simulation: every = {every:g} s is shorter than a step of {self.dt:.3g} s; take at least that"
            )
        last = round(until / self.dt)
        frame = math.ceil(self.steps * self.dt / every - 1e-6)
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

    def run(self, *, until, every=None, output=None, progress=True):
        """Run until a time [s]; with `output`, write a frame and a checkpoint into that folder every `every` seconds.

        Ctrl-C or SIGTERM finishes the step, writes a checkpoint and raises KeyboardInterrupt; `clast.resume(folder)`
        goes on and gives the same bits as a run that was never stopped.
        """
        return runner.run(self, until=until, every=every, output=output, progress=progress)

    def save(self, path):
        """Write a checkpoint that `clast.resume` goes on from, to the bit."""
        runner.write_checkpoint(self, path)


def resume(path, *, law=None, drives=None, functions=None, device="cpu"):
    """The simulation that was saved at `path`, a checkpoint or the folder of a run; it goes on with the same bits.

    law: the function, if the contact law was the user's own; drives: {body number: function} likewise; functions: those of
    joints, motors and springs, {("joint" | "motor" | "spring", number): function}.
    """
    path = Path(path)
    groups, saved = checkpoint.read(path / "checkpoint.h5" if path.is_dir() else path)
    numbers = saved["simulation"]
    scene = Scene.rebuild(groups, saved, drives=drives, functions=functions)
    method = runner.method_of(path, numbers, law)
    sim = Simulation(scene, method, dt=numbers["dt"], device=device)
    sim.removed, sim.poured = numbers["removed"], list(numbers["poured"])
    sim.stepper.recall(groups, numbers["steps"])
    return sim


def find_device(name):
    """The device of that name, or an error that says why not."""
    pick("device", name, {"cpu": None, "cuda": None})
    if name == "cpu":
        return backend.CPU
    from ..kernels import cuda

    return cuda.find()

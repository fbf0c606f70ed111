"""A simulation: one step, many steps, frames, runs that can be stopped and continued."""

import math
import time as clock
import warnings
from pathlib import Path
from types import SimpleNamespace

import numpy as np

from . import backend, clearance, drives, running
from .backend import kernel
from .contact.narrow import refuse_mixture
from .contact.pairs import BROAD, periodic_box
from .contact.touch import touch_for
from .errors import Diverged, Escaped, Unavailable, pick
from .files import checkpoint
from .motion import dem, hulls, integrate, solids
from .motion.dem import DEM
from .motion.state import State, place_parts
from .report import Report
from .results import contacts_of
from .scene import Scene
from .tables import FREE, POLYHEDRON, Bodies, is_particle

AUTO = 0.15  # dt="auto" as a fraction of the critical step
WARN = 0.35  # above this fraction of the critical step a warning is given; above 1 the step is refused
PERIOD = 1e-3  # [s], about how often inlets and outlets are looked after


class Simulation:
    """A scene in motion.

    scene: Scene; it belongs to the simulation from now on, and `scene.bodies` shows the present state.
    method: DEM(...). dt [s], or "auto": a fixed fraction of what the stiffest contact allows. device: "cpu" or "cuda".
    """

    def __init__(self, scene, method=None, *, dt="auto", device="cpu"):
        method = DEM() if method is None else method
        if not isinstance(scene, Scene):
            raise TypeError(f"Simulation: the first argument must be a clast.Scene, got {scene!r}")
        if not isinstance(method, DEM):
            raise TypeError(f"Simulation: the method must be clast.DEM(...), got {method!r}")
        if len(scene.bodies.number) == 0 and not scene.inlets:
            raise ValueError("Simulation: the scene is empty; add bodies with scene.add or scene.fill first")
        refuse_mixture("Simulation", scene.parts)
        self.device = find_device(device)
        if self.device is not backend.CPU and (scene.parts.kind == POLYHEDRON).any():
            raise Unavailable("Simulation: polyhedra move on the CPU only; leave device='cuda' out")
        self.scene, self.method = scene, method
        self.critical, self.stiffest = method.critical_step(scene)
        self.dt = self._choose_step(dt)
        self.steps, self.removed = 0, 0
        self.poured = [0] * len(scene.inlets)
        self.seconds = dict.fromkeys(("bodies", "pairs", "contacts"), 0.0)
        self.box = periodic_box(scene)
        self.mixes = method.mixes(scene)
        rolling = bool((self.mixes[:, 5] > 0.0).any())
        with backend.use(self.device):
            self.state = State(scene, self.box, BROAD[method.broad], rolling, method.margin)
            self._check_periods()
            self._bind(rolling)
        self.clock, self.glanced = clock.perf_counter, 0.0
        self.counted = 0  # steps since the simulation was made or resumed; `seconds` is the time they took
        self._fresh = True  # forces of the present positions are not there yet
        self._open = False  # forces are there, but the step that they end is not ended yet
        scene.hand_over(SimpleNamespace(bodies=lambda: self.bodies))

    @property
    def time(self):
        """Simulated time [s]."""
        return self.steps * self.dt

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
            self._move()
            self._find_pairs()
            self._collide()
            self.steps += 1
            self.counted += 1
        self._finish()

    def start(self):
        """Forces at the very beginning, which the first kick needs; no time passes. Later calls do nothing."""
        if self._fresh:
            with backend.use(self.device):
                self.state.rebuild()
                self._forces(0.0)
                self._advance(self._kernels.finish, 0.0)
            self._fresh = False

    def _move(self):
        """End the step before, if that is still to be done, and move all bodies to the end of this one."""
        began = clock.perf_counter()
        with backend.use(self.device):
            self._advance(self._kernels.through if self._open else self._kernels.move, self.dt)
        self._drive((self.steps + 1) * self.dt)
        if self.device.peak(self._status) > 0:
            self._complain()
        self.seconds["bodies"] += clock.perf_counter() - began

    def _finish(self):
        """End the step: add up the forces of every body in a fixed order, and kick with them."""
        if self._open:
            began = clock.perf_counter()
            with backend.use(self.device):
                self._advance(self._kernels.finish, self.dt)
            self._open = False
            self.seconds["bodies"] += clock.perf_counter() - began

    def _advance(self, kernel, dt):
        state, chunk = self.state, self.device.chunk
        chunks, there = (len(state.bodies.mass) + chunk - 1) // chunk, state.there
        if len(self._moved) != chunks:
            self._moved, self._status = self.device.zeros(chunks, np.float64), self.device.zeros(chunks, np.int8)
        kernel(
            chunks,
            chunk,
            there.bodies,
            there.rows,
            there.molds,
            there.inverses,
            state.pairs,
            state.balls,
            self.scene.gravity,
            dt,
            self.kicks,
            self._world,
            self._edges,
            state.reference,
            there.turned_from,
            there.swing,
            self._moved,
            self._status,
        )

    def _find_pairs(self):
        """Make the list of pairs anew if a body may have moved out of it."""
        state, began = self.state, clock.perf_counter()
        with backend.use(self.device):
            far = math.sqrt(self.device.peak(self._moved))
            if state.has_parts:
                bodies, shapes, parts = state.kernel_tables[:3]
                far = max(far, place_parts(bodies, shapes, parts, self.box, state.there.rows, state.reference))
            state.since += 1
            # Two bodies may have come towards each other, or a body and a wall.
            if far + max(far, state.walls_moved()) >= state.margin:
                self._check_speed(far)
                state.rebuild()
            else:
                state.follow()
        self.seconds["pairs"] += clock.perf_counter() - began

    def _collide(self):
        """Forces of all contacts."""
        began = clock.perf_counter()
        with backend.use(self.device):
            self._forces(self.dt)
        self._open = True
        self.seconds["contacts"] += clock.perf_counter() - began

    def _forces(self, dt):
        state = self.state
        balls = state.balls
        there = state.there
        arguments = there.bodies, there.shapes, there.rows, state.pairs, self._mixes, self._edges, dt
        if self.device is backend.CPU:
            blocks = (balls + dem.BLOCK - 1) // dem.BLOCK
            self._kernels.balls(blocks, balls, *arguments)
        else:
            self._kernels.balls(balls, *arguments)
        if state.solids:
            blocks = (state.solids + solids.BLOCK - 1) // solids.BLOCK if self.device is backend.CPU else state.solids
            self._kernels.solids(
                blocks, balls, state.solids, there.rows, there.forms, state.pairs, self._mixes, self._edges, dt
            )
        if len(state.pairs.mix) > balls + state.solids + state.patches and not state.only_polyhedra:
            width = dem.WIDTH if self.device is backend.CPU else 1
            chunks = (len(state.pairs.wall_start) + width - 2) // width
            self._kernels.walls(chunks, *state.kernel_tables, there.forms, state.pairs, self._mixes, there.box, dt)
        if state.polyhedra:
            hulls.collide(self._kernels.hulls, state, self._mixes, self._edges, dt)

    def _bind(self, rolling):
        """Compose the kernels of this scene: the law, and only what the scene has."""
        scene = self.scene
        molds = self.state.molds
        used = np.unique(self.state.bodies.mold) if not scene.inlets else np.arange(len(molds.round))
        clumps = bool((~molds.round[used] & (molds.volume[used] > 0.0)).any())
        ellipsoids = self.state.ellipsoids
        polyhedra = self.state.polyhedra
        has = {"CLUMPS": clumps, "SOLIDS": ellipsoids or polyhedra}
        has |= {"PERIODIC": self.box.periodic, "COUPLES": rolling or polyhedra}
        law = self.method.recipe.function
        triangles = len(self.state.meshes.triangle) > 0
        on_cpu = self.device is backend.CPU
        # A thread of a CUDA grid takes one sphere.
        width = {} if on_cpu else {"WIDTH": 1}
        pairs = {"fastmath": ("contract", "nsz"), "grain": 4, "allocates": on_cpu, "law": law}
        pairs |= {"UNIFORM": len(self.mixes) == 1, "PERIODIC": has["PERIODIC"], "ROLLING": rolling}
        self._kernels = SimpleNamespace(
            move=kernel(integrate.advance_row, grain=4, SUM=False, MOVE=True, **has),
            through=kernel(integrate.advance_row, grain=4, SUM=True, MOVE=True, **has),
            finish=kernel(integrate.advance_row, grain=4, SUM=True, MOVE=False, **has),
            balls=kernel(dem.ball_block if on_cpu else dem.ball_row, **pairs),
            solids=kernel(solids.solid_block if on_cpu else solids.solid_row, **pairs),
            walls=kernel(
                dem.wall_row,
                grain=2,
                law=law,
                wall_touch=touch_for(ellipsoids, triangles),
                TRIANGLES=triangles,
                ELLIPSOIDS=ellipsoids,
                SOLIDS=has["SOLIDS"],
                ROLLING=rolling,
                **width,
            ),
            hulls=hulls.compose(self.state, law, rolling, has["PERIODIC"]),
        )
        self._mixes = self.device.to_device(self.mixes)
        self.kicks = integrate.INTEGRATORS[self.method.integrator]
        self._edges = (*self.box.length.tolist(), *self.box.inverse.tolist())
        low, high = scene.world or ((-math.inf,) * 3, (math.inf,) * 3)
        self._world = (*map(float, low), *map(float, high))
        self._moved, self._status = self.device.zeros(0, np.float64), self.device.zeros(0, np.int8)
        self._every = max(1, round(PERIOD / self.dt))

    def _drive(self, time):
        """Put driven bodies where their drive says they are at `time`."""
        bodies = self.state.bodies
        for row in self.state.driven:
            drive = self.scene.drives[int(bodies.number[row])]
            if drive.function is None:
                pose = drives.pose(drive, time)
            else:
                pose = drives.advance(drive, bodies.position[row], bodies.orientation[row], time - self.dt, self.dt)
            bodies.position[row], bodies.orientation[row], bodies.velocity[row], bodies.spin[row] = pose
        self.state.send_driven()

    def _pour_and_drain(self):
        """Inlets and outlets, looked after at fixed steps so that stopping and continuing changes nothing."""
        scene, state = self.scene, self.state
        if not (scene.inlets or scene.outlets) or self.steps % self._every:
            return
        self._finish()
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
                state.rebuild()

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

    def _choose_step(self, dt):
        if isinstance(dt, str):
            pick("time step", dt, {"auto": None})
            if not math.isfinite(self.critical):
                raise ValueError("Simulation: dt='auto' needs free bodies or inlets; give dt in seconds")
            return AUTO * self.critical
        dt = float(dt)
        if not 0.0 < dt < math.inf:
            raise ValueError(f"Simulation: dt = {dt} must be above 0 s, or 'auto'")
        who = "what an inlet pours" if self.stiffest is None else f"body {self.stiffest}"
        what = f"dt = {dt:.3g} s; {who} allows {self.critical:.3g} s at the most"
        if dt > self.critical:
            raise ValueError(
                f"Simulation: {what}; take dt='auto' ({AUTO * self.critical:.3g} s), a lower stiffness or larger bodies"
            )
        if dt > WARN * self.critical:
            warnings.warn(
                f"{what}, and contacts are followed well up to {WARN * self.critical:.3g} s; "
                f"dt='auto' would take {AUTO * self.critical:.3g} s",
                stacklevel=3,
            )
        return dt

    def _check_periods(self):
        state = self.state
        largest = float(state.shapes.radius[is_particle(state.shapes.kind)].max(initial=0.0))
        largest = max([largest, *(inlet.reach * inlet.sizes.largest for inlet in self.scene.inlets)])
        need = 4.0 * largest + 2.0 * state.margin
        for axis, length in zip("xyz", self.box.length, strict=True):
            if 0.0 < length < need:
                raise ValueError(
                    f"Simulation: the world is {length:.4g} m long in periodic direction {axis}, but the largest particle "
                    f"needs {need:.4g} m so that it does not meet two images of one partner; enlarge the world"
                )

    def _check_speed(self, far):
        """A body that crosses its own size in one step would pass through others unseen."""
        if self.state.since > 1:
            return
        self.state.fetch()
        bodies = self.state.bodies
        speed = np.linalg.norm(bodies.velocity, axis=1) * (bodies.motion == FREE)
        row = int(np.argmax(speed))
        if speed[row] * self.dt > self.state.size:
            raise Diverged(
                f"{self._name(row)} at t = {self.time + self.dt:.6g} s: speed {speed[row]:.3g} m/s is "
                f"{speed[row] * self.dt:.3g} m in one step, farther than a typical radius {self.state.size:.3g} m; "
                f"{self._cause()}"
            )

    def _complain(self):
        self.state.fetch()
        bodies, time = self.state.bodies, self.time + self.dt
        free = bodies.motion == FREE
        columns = bodies.position, bodies.velocity, bodies.spin
        wrong = free & ~np.logical_and.reduce([np.isfinite(column).all(1) for column in columns])
        # Finite, but its square is not: nothing can follow that.
        fast = free & (np.abs(np.hstack(columns)) > 1e150).any(1)
        if wrong.any() or fast.any():
            row = int(np.argmax(wrong if wrong.any() else fast))
            what = "its state is not a number" if wrong.any() else "it is faster than numbers can follow"
            raise Diverged(f"{self._name(row)} at t = {time:.6g} s: {what}; {self._cause()}")
        low, high = np.array(self._world[:3]), np.array(self._world[3:])
        out = free & ~((bodies.position >= low) & (bodies.position <= high)).all(1)
        row = int(np.argmax(out))
        speed = float(np.linalg.norm(bodies.velocity[row]))
        where = ", ".join(f"{x:.4g}" for x in bodies.position[row])
        raise Escaped(
            f"{self._name(row)} at t = {time:.6g} s: left the world at ({where}) m with {speed:.3g} m/s; "
            f"likely a gap in the walls or too small a world; {self._cause()}"
        )

    def _cause(self):
        return (
            f"dt = {self.dt:.3g} s is {self.dt / self.critical:.2g} of what the stiffest contact allows "
            f"({self.critical:.3g} s)"
            if math.isfinite(self.critical)
            else f"dt = {self.dt:.3g} s"
        )

    def _name(self, row):
        bodies = self.state.bodies
        return f"body {int(bodies.number[row])} ({self.scene.names[bodies.mold[row]]})"

    # Results.

    def contacts(self):
        """The contacts of the present state: Contacts with slip and force, sorted by pair, then shape."""
        return contacts_of(self)

    def report(self):
        """Numbers of the run so far: times, speed, contacts, energies, momentum."""
        return Report.of(self)

    def touching(self):
        """Number of contacts that carry a force."""
        self.start()
        return int(np.count_nonzero(self.device.to_host(self.state.pairs.action)[:, :3].any(1)))

    def kinetic_energy(self):
        """Energy of the motion of all free bodies [J], spin included as if they were balls; cheap."""
        self.state.fetch()
        bodies = self.state.bodies
        free = bodies.motion == FREE
        fast = np.einsum("ni,ni->n", bodies.velocity, bodies.velocity)[free]
        turning = np.einsum("ni,ni->n", bodies.spin, bodies.spin)[free]
        return 0.5 * float(bodies.mass[free] @ fast + bodies.inertia[free] @ turning)

    def take_up(self):
        """Forces and memory of contacts have been put back as they were saved: nothing is to be started."""
        self._fresh = False

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
        return running.run(self, until=until, every=every, output=output, progress=progress)

    def save(self, path):
        """Write a checkpoint that `clast.resume` goes on from, to the bit."""
        running.write_checkpoint(self, path)


def resume(path, *, law=None, drives=None, device="cpu"):
    """The simulation that was saved at `path`, a checkpoint or the folder of a run; it goes on with the same bits.

    law: the function, if the contact law was the user's own; drives: {body number: function} likewise.
    """
    path = Path(path)
    groups, saved = checkpoint.read(path / "checkpoint.h5" if path.is_dir() else path)
    numbers = saved["simulation"]
    scene = Scene.rebuild(groups, saved, drives=drives)
    if numbers["law"].startswith("function ") and law is None:
        raise ValueError(f"{path}: the contact law was the {numbers['law']}, which a file cannot hold; pass law=")
    method = DEM(
        law=numbers["law"] if law is None else law,
        integrator=numbers["integrator"],
        margin=numbers["margin"],
        broad=numbers["broad"],
        attraction=numbers.get("attraction", False),
        conserving=numbers.get("conserving", True),
    )
    sim = Simulation(scene, method, dt=numbers["dt"], device=device)
    sim.steps, sim.removed, sim.poured = numbers["steps"], numbers["removed"], list(numbers["poured"])
    running.recall(sim, groups["contacts"])
    return sim


def find_device(name):
    """The device of that name, or an error that says why not."""
    pick("device", name, {"cpu": None, "cuda": None})
    if name == "cpu":
        return backend.CPU
    from . import gpu

    return gpu.find()

"""Smooth contacts: how a simulation takes a step by contact forces (DEM)."""

import math
import time as clock
import warnings
from copy import copy
from operator import is_
from types import SimpleNamespace
from typing import Any

import numpy as np

from ..broad.search import BROAD
from ..errors import Diverged, Penetrated, pick
from ..kernels import backend
from ..kernels.backend import kernel
from ..kernels.rows import COLUMNS
from ..motion import integrate
from ..motion.placing import place_parts
from ..motion.rotation import inverse_chunk
from ..motion.state import State
from ..motion.stepper import Stepper
from ..narrow.dispatch import find_points
from ..tables import FREE, SPHERE, is_particle, is_thin, is_wall, rows_in
from . import bonds, forces, results, sphere_pairs
from .conserving import even_radii
from .drives import Works
from .heat import Heat
from .ledger import Ledger, built_in, may_lose, with_ledger

AUTO = 0.15  # dt="auto" as a fraction of the critical step
WARN = 0.35  # above this fraction of the critical step a warning is given; above 1 the step is refused
STAGES = ("bodies", "pairs", "contacts")
HALF = 0.5  # of how deep a body can be in a thin wall and still be pushed out the right way: deeper than that, the run stops


class Smooth(Stepper):
    """Takes the steps of a simulation by forces that grow with the overlap of bodies."""

    _kernels: SimpleNamespace
    _inverse: Any  # arrays, where kernels run: this one, how far bodies moved, and whether something went wrong
    _moved: Any
    _status: Any
    _nobody: Any  # asks what bodies are like between two steps

    def __init__(self, scene, method, device, box, dt):
        super().__init__(scene, method, device, box)
        self.critical, self.stiffest = self.method.critical_step(self.scene)
        self.heat: Any = Heat(scene) if scene.warm else None  # conducts it, where bodies have temperatures
        self.dt = self._choose_step(dt)
        self.seconds = dict.fromkeys(STAGES, 0.0)
        self.mixes = self.method.mixes(self.scene)
        self.rolling = self.method.rolls(self.mixes)
        for words in self.method.idle(self.mixes):
            warnings.warn(words, stacklevel=2)
        # What contacts lose is kept with them where asked for.
        law, self.ledger = self.method.recipe, None
        along = np.where(box.length > 0.0, scene.gravity, 0.0)
        if self.method.ledger is None and device is backend.CPU and self.method.integrator == "verlet":
            self.ledger = Works(along)
        elif self.method.ledger:
            self.ledger = Ledger(may_lose(law), "bond" in built_in(law), along)
            if law.energy is None:
                warnings.warn(
                    f"DEM: the law {self.method.name} tells no energy, so that a ledger counts what its contacts hold as lost numerically; "
                    "give clast.law(energy=...)",
                    stacklevel=2,
                )
            law = with_ledger(law)
        self.law = law
        self._divides = bool(self.method.ledger)  # what contacts lose is told apart
        with self.on_device:
            search = copy(BROAD[self.method.broad])
            about = {
                "kept": len(law.keeps),
                "beyond": self.method.reach(self.scene, self.mixes),
                "accounts": law.account > 0.0,
            }
            self.state = State(self.scene, self.box, search, self.rolling, self.method.margin, self.chosen, **about)
            self._bind()
        self._around: Any = None  # Space and Watch of the last step
        self._seen: tuple = ()  # what they hold
        self.fresh = True  # forces of the present positions are not there yet
        self._open = False  # forces are there, but the step that they end is not ended yet

    @property
    def widest(self):
        """How far apart [m] shapes in the list of pairs may be."""
        return self.state.margin

    def step(self):
        """One step: move the bodies, see which are near, and compute the forces at the new places."""
        self._move()
        self._find_pairs()
        self._collide()
        if self.ledger is not None and not self._divides:
            with self.on_device:
                self.attempt(self.ledger.note, self.state, self.dt)
        self.steps += 1

    def _keep_account(self):
        """Note what contacts lost in the step that has ended: it shows at the velocities that bodies had then."""
        if self._divides:
            began = clock.perf_counter()
            with self.on_device:
                self.ledger.note(self.state, self.dt)
            self.seconds["contacts"] += clock.perf_counter() - began

    def start(self):
        """Forces at the very beginning, which the first kick needs; no time passes. Later calls do nothing."""
        if self.fresh:
            with self.on_device:
                self.rebuild()
                self.together(self._first_forces)
            self.fresh = False

    def _first_forces(self):
        self._forces(0.0)
        self._advance(self._kernels.finish, 0.0)

    def _move(self):
        """End the step before, if that is still to be done, and move all bodies to the end of this one."""
        began = clock.perf_counter()
        with self.on_device:
            self._advance(self._kernels.through if self._open else self._kernels.move, self.dt)
        if self._open:
            self.seconds["bodies"] += clock.perf_counter() - began
            self._keep_account()  # before anything else moves
            began = clock.perf_counter()
        self.drive(self.poses((self.steps + 1) * self.dt))
        if self.device.peak(self._status) > 0:
            self.complain()
        self.seconds["bodies"] += clock.perf_counter() - began

    def finish(self):
        """End the step: add up the forces of every body in a fixed order, and kick with them."""
        if self._open:
            began = clock.perf_counter()
            with self.on_device:
                self._advance(self._kernels.finish, self.dt)
            self._open = False
            self.seconds["bodies"] += clock.perf_counter() - began
            self._keep_account()

    def _advance(self, stage, dt):
        kernel, kicks = stage
        state, chunk = self.state, self.device.chunk
        there = state.there
        chunks = (len(there.moving.mass) + chunk - 1) // chunk
        if len(self._moved) != chunks:
            self._moved, self._status = self.device.zeros(chunks, np.float64), self.device.zeros(chunks, np.int8)
        acting = state.pairs, state.spheres, state.wrench
        space = self.scene.gravity, self.world, state.edges
        then = self._nobody if not self._divides else self.ledger.moment(len(state.bodies.number))
        watch = state.reference, there.turned_from, state.pairs.far, self._moved, self._status, then
        # The same objects while nothing in them changes: then the launch is the same, and known.
        if self._around is None or not all(map(is_, space + watch, self._seen)):
            self._around, self._seen = (integrate.Space(*space), integrate.Watch(*watch)), space + watch
        kernel(chunks, chunk, there.moving, there.rows, there.inertias, *acting, dt, kicks, *self._around)

    def _find_pairs(self):
        """Make the list of pairs anew if a body may have moved out of it."""
        state, began = self.state, clock.perf_counter()
        with self.on_device:
            self.meet_ghosts()
            far = math.sqrt(self.device.peak(self._moved))
            if state.has_parts:
                bodies, shapes, parts = state.kernel_tables[:3]
                there = state.there
                moved = state.reference, there.turned_from, state.pairs.far
                far = max(far, place_parts(bodies, shapes, parts, self.box, there.rows, *moved))
            far, walls = self.farthest(far, state.walls_moved())
            state.since += 1
            # Two bodies may have come towards each other, or a body and a wall.
            state.closed = far + max(far, walls)
            if far > min(self._least, state.size):
                self._check_speed()
            if state.closed >= state.margin - state.beyond or self.uneven():
                self.rebuild()
            else:
                state.follow()
        self.seconds["pairs"] += clock.perf_counter() - began

    # What several processes that share a run do otherwise, see `clast.mpi.stepper`.

    def meet_ghosts(self):
        """Bring bodies that other processes move to where these have moved them; there are none."""

    def farthest(self, far, walls):
        """How far [m] any body and any wall may have moved since the list was made, for all processes; far, walls: for this one, which
        sees the surface of a wall without end as far as its own bodies are."""
        return far, walls

    def _collide(self):
        """Forces of all contacts."""
        began = clock.perf_counter()
        with self.on_device:
            self._forces(self.dt)
        self._open = True
        self.seconds["contacts"] += clock.perf_counter() - began

    def _forces(self, dt):
        """Contact points, what they remember, and what the law answers."""
        state = self.state
        crossing = find_points(state, results.reach_of(state), self.method.narrow, self.method.tolerance)
        if state.accounts:
            even_radii(state)
        if self._thin:
            self._look_through_walls(dt)
        acting = state, self._turn_inertias(), self._mixes, state.edges, dt
        self.coincident += sphere_pairs.apply(self._kernels.spheres, *acting)
        forces.apply(self._kernels.points, (self._parts, self._eccentric), *acting)
        if self.heat is not None and dt > 0.0:
            self._conduct(dt)
        if state.triangulated:
            self.look_for_crossings(
                crossing, self.method.penetration == "push", self.time + (0.0 if self.fresh else self.dt)
            )

    def _conduct(self, dt):
        """Let heat flow through all contacts."""
        wrong = self.heat.spread(self.state, dt)
        if wrong is not None:
            raise Diverged(
                f"{self.name(wrong)} at t = {self.time + dt:.6g} s: conducts so well that it would go past the temperatures around it in a step of "
                f"{dt:.3g} s; take a shorter one or a lower conductivity"
            )

    def heat_flows(self):
        """Numbers of the bodies of pairs that conduct heat (k,2), and what flows into the second (k,) [W]."""
        return self.heat.told(self.state)

    def _turn_inertias(self):
        """Inverse inertia (n,6) [1/(kg m^2)] of every body in world axes, see `turn_of`; (0,6) where all that matter are round."""
        state, there, chunk = self.state, self.state.there, self.device.chunk
        if self._uneven:
            count = len(state.bodies.number)
            if len(self._inverse) != count:
                self._inverse = self.device.empty((count, 6), np.float64)
            chunks = (count + chunk - 1) // chunk
            self._kernels.inverse(chunks, chunk, there.bodies, there.rows, there.inertias.inverse, self._inverse)
        return self._inverse

    def _bind(self):
        """Compose the kernels of this scene: the law, and only what the scene has."""
        scene = self.scene
        molds = self.state.molds
        bodies = scene.bodies  # of all processes
        used = np.unique(bodies.mold) if not scene.inlets else np.arange(len(molds.round))
        used = used[molds.volume[used] > 0.0]
        clumps, state = bool((~molds.round[used]).any()), self.state
        apart = (molds.count[used] > 1) | state.parts.offset[molds.first[used]].any(1)
        self._parts = bool(apart.any())  # some body has parts with centres of their own
        # The normals of spheres about the centre of their body go through it.
        balls = ~is_particle(state.parts.kind) | (state.parts.kind == SPHERE)
        self._eccentric = self.law.weighs and (self._parts or not balls.all())
        # By all molds: outlets may have removed the last body that is not round before a checkpoint.
        self._uneven = self._eccentric and bool((~molds.round & (molds.volume > 0.0)).any())
        self._inverse = self.device.zeros((0, 6), np.float64)
        law, uniform = self.law, len(self.mixes) == 1
        move, through, finish = integrate.compose(self.method.integrator, clumps, self._parts)
        self._kernels = SimpleNamespace(
            move=move,
            through=through,
            finish=finish,
            spheres=sphere_pairs.compose(law, self.rolling, bool(self.box.periodic), uniform, self._parts),
            points=forces.compose(law, self.rolling, uniform),
            inverse=kernel(inverse_chunk, grain=4),
        )
        if self._divides:
            self.ledger.bind(self.rolling, self._parts)
        # How deep each mold can be in a thin wall, and the least of all; triangulated ones tell by themselves when surfaces cross.
        surface = rows_in("surfaces", state.parts.kind, state.parts.feature)
        deep = np.where(is_wall(state.parts.kind) | (surface >= 0), np.inf, state.parts.deep)
        self._deep = np.minimum.reduceat(deep, molds.first) if len(deep) else deep
        sizes = [inlet.sizes.smallest for inlet in scene.inlets]
        small = min([float(bodies.scale[bodies.motion == FREE].min(initial=np.inf)), *sizes])
        self._least = float(self._deep[used].min(initial=np.inf)) * small
        seen = self.device is backend.CPU and self.method.penetration == "raise"
        self._thin = seen and bool(is_thin(state.parts).any())
        self._mixes = self.device.to_device(self.mixes)
        self._moved, self._status = self.device.zeros(0, np.float64), self.device.zeros(0, np.int8)
        self._nobody = self.device.zeros((0, COLUMNS), np.float64)

    def _look_through_walls(self, dt):
        """A body whose middle goes through a thin wall would be pushed out on the other side.

        The gap tells no side. But nobody goes farther than its depth in a step, see `_check_speed`, so it is seen near the wall before.
        """
        state = self.state
        for r in state.ranges:
            if not r.family.walls or r.family.slots == 0:
                continue
            first = r.first - state.spheres_count
            slots = slice(int(state.pairs.slot[first]), int(state.pairs.slot[first + r.length]))
            if not state.points.gap[slots].min(initial=0.0) < -HALF * self._least:
                continue
            rows = np.searchsorted(state.pairs.slot, np.arange(slots.start, slots.stop), side="right") - 1
            pair = state.pairs.shape[rows + state.spheres_count]
            body = state.shapes.body[pair]
            deep = state.parts.deep[state.shapes.part[pair[:, 0]]] * state.bodies.scale[body[:, 0]]
            lost = is_thin(state.parts)[state.shapes.part[pair[:, 1]]] & (state.points.gap[slots] < -HALF * deep)
            if lost.any():
                one, two = body[int(np.argmax(lost))]
                speed = float(np.linalg.norm(state.bodies.velocity[one] - state.bodies.velocity[two]))
                raise Penetrated(
                    f"{self.name(one)} and {self.name(two)} at t = {self.time + dt:.6g} s: one is deep in the other, a thin wall, and "
                    f"would come out on the other side, at {speed:.3g} m/s; take a stiffer material or slow them down; {self.cause()}"
                )

    def rebuild(self):
        """Make the list of pairs anew because bodies have moved out of it, came or went."""
        self._around, self._seen = None, ()  # they would keep what the old list was made from in memory
        self.state.rebuild()

    def remember(self):
        """What contacts remember and do, for a checkpoint: tables by name."""
        return {**results.remember(self.state), **self.carried()}

    def carried(self):
        """Numbers beside the tables that go from step to step, for a checkpoint: what was counted, and how far contacts reach, which follows from
        the bodies that were there at the start."""
        kept = {"counted": self.counted(), "reach": {"beyond": np.array(self.state.beyond)}}
        return kept if self.ledger is None else {**kept, "ledger": self.ledger.remember()}

    def carry_on(self, groups):
        """Go on from what `carried` gave."""
        self.recount(groups["counted"])
        if self.ledger is not None and "ledger" in groups:
            self.ledger.recall(groups["ledger"])
        if "reach" in groups:  # checkpoints were without it
            self.state.reach_to(max(self.state.beyond, float(groups["reach"]["beyond"])))

    def recall(self, groups, steps):
        """Make the neighbour list of a simulation that goes on after so many steps, and give its contacts what `remember`
        kept."""
        self.steps = steps
        self.carry_on(groups)
        with self.on_device:
            self.state.rebuild()
            results.recall(self.state, groups)
        self.fresh = False

    def contacts(self):
        """See Simulation.contacts."""
        told = None if not self._divides else {"dissipation": self.ledger.dissipation(self.state, self.dt)}
        return results.contacts_of(self.state, self.method.recipe.keeps, told)

    def elastic_energy(self):
        """Energy [J] stored in the springs of all contacts; an exact sum, the same in any order of memory."""
        return self.total(self.springs())[0]

    def normal_energy(self):
        """The part of it [J] that contacts hold along their normals."""
        return self.total(self.springs(slip=False))[0]

    def springs(self, slip=True):
        """Energy [J] stored in each contact, (c,); zero for a law that tells none. slip: with that in shear."""
        overlap, slid, radius, mix, share, kept = results.springs_of(self.state)
        law = self.law
        if law.energy is None:
            return np.zeros(len(overlap))
        kept = law.kept(*kept.T) if law.keeps else ()
        numbers = law.mix(*self.mixes[mix].T)
        energy = law.energy(overlap, slid if slip else 0.0 * slid, radius, numbers, kept)
        if slip and "bond" in built_in(self.method.recipe):
            energy = energy + bonds.turned_energy(results.angles_of(self.state), radius, numbers, kept)
        return share * energy

    def describe(self):
        """What Report tells beyond what it tells of all simulations: nothing."""
        return {}

    def touching(self):
        """Number of pairs that carry a force."""
        return results.touching(self.state)

    def _choose_step(self, dt):
        if isinstance(dt, str):
            pick("time step", dt, {"auto": None})
            if not math.isfinite(self.critical):
                raise ValueError("Simulation: dt='auto' needs free bodies or inlets; give dt in seconds")
            return min(AUTO * self.critical, math.inf if self.heat is None else self.heat.longest)
        dt = float(dt)
        if not 0.0 < dt < math.inf:
            raise ValueError(f"Simulation: dt = {dt} must be above 0 s, or 'auto'")
        who = "what an inlet pours" if self.stiffest is None else f"body {self.stiffest}"
        what = f"dt = {dt:.3g} s; {who} allows {self.critical:.3g} s at the most"
        if dt > self.critical:
            raise ValueError(
                f"Simulation: {what}; take dt='auto' ({AUTO * self.critical:.3g} s), a lower stiffness or larger bodies"
            )
        if self.heat is not None and dt > self.heat.longest:
            who = "what an inlet pours" if self.heat.quickest is None else f"body {self.heat.quickest}"
            raise ValueError(
                f"Simulation: dt = {dt:.3g} s; {who} conducts heat too well for more than {self.heat.longest:.3g} s; take that or dt='auto', a lower "
                "conductivity or larger bodies"
            )
        if dt > WARN * self.critical:
            warnings.warn(
                f"{what}, and contacts are followed well up to {WARN * self.critical:.3g} s; "
                f"dt='auto' would take {AUTO * self.critical:.3g} s",
                stacklevel=3,
            )
        return dt

    def _check_speed(self):
        """A body that crosses its own size in one step would pass through others unseen."""
        self.state.fetch()
        bodies = self.state.bodies
        speed = np.linalg.norm(bodies.velocity, axis=1) * (bodies.motion == FREE)
        if not (speed * self.dt).max(initial=0.0) > min(self._least, self.state.size):
            return
        deep = np.minimum(self._deep[bodies.mold] * bodies.scale, self.state.size)
        row = int(np.argmax(speed / deep))
        if speed[row] * self.dt > deep[row]:
            raise Diverged(
                f"{self.name(row)} at t = {self.time + self.dt:.6g} s: speed {speed[row]:.3g} m/s is "
                f"{speed[row] * self.dt:.3g} m in one step, farther than a typical radius {deep[row]:.3g} m; "
                f"{self.cause()}"
            )

    def remedy(self, crossing):
        """What else a message about bodies that the halo did not keep apart tells to do; crossing: pushing would help."""
        other = ", or let DEM(penetration='push') part them" if crossing else ""
        return f" or a stiffer material, or slow them down{other}"

    def cause(self):
        """What a message about a state that went wrong says of the time step."""
        return (
            f"dt = {self.dt:.3g} s is {self.dt / self.critical:.2g} of what the stiffest contact allows "
            f"({self.critical:.3g} s)"
            if math.isfinite(self.critical)
            else f"dt = {self.dt:.3g} s"
        )

"""Hard contacts: how a simulation takes a step by complementarity (DVI).

A step of Negrut et al. 2010, algorithm 1: contacts within reach, buffers, the cone problem, and the new positions. Bodies
that touch nothing are kicked by half of their forces before and half after they move, which makes free flight exact to
second order; the others as eqs. (4) to (8) say.
"""

import math
import time as clock
from copy import copy
from types import SimpleNamespace
from typing import Any

import numpy as np

from ..broad.search import BROAD
from ..errors import Unavailable, pick
from ..kernels import backend
from ..kernels.backend import kernel
from ..kernels.rows import CENTRES, SPINS, VELOCITIES
from ..motion.integrate import Space, Watch
from ..motion.rotation import inverse_chunk, rotation_between
from ..motion.state import State
from ..narrow.contacts import lower_first, select
from ..narrow.dispatch import families_of, find_points
from ..tables import FREE, TRIANGLE, empty_contacts, is_wall
from . import constraints as blocks
from . import method as complementarity
from . import solvers, warm_start
from .constraints import CHUNK, Near, Step, empty_constraints, find_near
from .jointed import Jointed
from .neighbours import Nearby
from .others import ALONE, order_free
from .overlaps import due, hold, part_overlaps
from .problem import BodyCones, contacts_of_pairs
from .sweeping import Swept

DEEP = 0.05  # part of a typical radius by which a contact that was left out may overlap at the end of a step
SLACK = 0.005  # contacts wider open than this part of a typical radius, now and at the end of the step, are left out
NOBODY = np.empty(0, np.int32)
STAGES = ("pairs", "contacts", "solver", "bodies")


class Hard(Nearby, Swept, Jointed):
    """Takes the steps of a simulation by impulses that keep bodies from overlapping."""

    def __init__(self, scene, method, device, box, dt):
        super().__init__(scene, method, device, box)
        if self.device is not backend.CPU:
            raise Unavailable("Simulation: Complementarity runs on the CPU only; leave device='cuda' out")
        self.seconds = dict.fromkeys(STAGES, 0.0)
        self.mixes = self.method.mixes(scene)
        self.couples = bool((self.mixes.rolling_friction > 0.0).any() or (self.mixes.spinning_friction > 0.0).any())
        self.soft = bool((self.mixes.compliance > 0.0).any())
        self.width = 6 if self.couples else 3
        search = copy(BROAD[self.method.broad])
        self.state = State(scene, self.box, search, False, None, self.chosen, impulse=self.width)
        self.state.tuned = False
        self.joints = self._make_joints()
        self.dt = self._choose_step(dt)
        self._bind()
        self.constraints, self.impulse = empty_constraints(0), np.empty((0, self.width))
        self.others = ALONE  # processes that share the run, see `clast.dvi.others`
        self.held, self.by_speed = np.zeros(0, np.int8), np.zeros(0, bool)
        self.near: Any = None  # contact points within reach
        self.kept: Any = None  # which of them (c,) take part
        self.told = 0  # of them, the first so many, are counted here: all but those that another process counts
        self.named: Any = None  # whose the constraints are, once their rows have gone
        self.ended = 0, 0.0  # contacts with a force and elastic energy [J] of the last step before a restart
        self.solution: Any = None  # of the last step
        self.workspace = solvers.Workspace()
        self.tally = {"steps": 0, "iterations": 0, "missed": 0, "worst": 0.0, "stabilisation": 0.0, "open": 0.0}
        self.residual = 0.0  # of the last step [m/s]
        self._moved, self._status = np.zeros(0), np.zeros(0, np.int8)
        self.fresh = True

    def step(self):
        """One step: contacts within reach, their impulses, new positions, and who is near whom then."""
        poses = self._look_at_drives(self._begin_drives())
        self._touch()
        self._solve()
        self._look_again()
        self._count()
        self._part()
        self._move(poses)
        self._find_pairs()
        self.steps += 1

    def start(self):
        """The list of pairs at the very beginning; no time passes. Later calls do nothing."""
        if self.fresh:
            self._rebuild(sort=True)
            self.fresh = False
            if self.joints is not None:
                self.together(self._begin_joints)

    def finish(self):
        """A step ends by itself."""

    def remember(self):
        """What contacts remember, and numbers beside the tables that go from step to step, for a checkpoint.

        carried: the solver's first step length, the typical radius of those that were there at the start, what reports
        tell of the last step and of all steps, and joints.
        """
        own = np.zeros(0) if self.joints is None else self.joints.state()
        ended = self.touching(), self._pressed_energy(), *self.tally.values()
        carried = np.concatenate([[self.workspace.curvature, self.state.size, *ended], own])
        return {
            **warm_start.remember(self.state),
            "order": {"number": self.state.bodies.number},
            "solver": {"residual": np.array(self.residual), "carried": carried},
        }

    def recall(self, groups, steps):
        """Make the neighbour list of a simulation that goes on after so many steps, with bodies in the order that they had in memory if one process
        had them, and give its contacts what `remember` kept."""
        state = self.state
        own = self._carry_on(groups, steps)
        if "order" in groups:
            state.permute(np.searchsorted(state.bodies.number, groups["order"]["number"]).astype(np.int32))
        self._rebuild(sort="order" not in groups)
        if self.joints is not None:
            self._recall_joints(own)
        warm_start.recall(state, groups, self.reach)
        self.fresh = False

    def _carry_on(self, groups, steps):
        """Take the numbers up that a checkpoint has beside the tables; returns those of joints."""
        self.steps, carried = steps, groups["solver"]["carried"]
        self.workspace.curvature, self.state.size, touching, elastic, *rest = (float(x) for x in carried)
        self.ended = int(touching), elastic
        whole = ("steps", "iterations", "missed")
        self.tally = {k: int(v) if k in whole else v for k, v in zip(self.tally, rest, strict=False)}
        self.residual = float(groups["solver"]["residual"])
        self._measure_against(self.state.size)
        return np.asarray(carried)[4 + len(self.tally) :]

    def rebuild(self):
        """Make the list of pairs anew because bodies came or went."""
        self._rebuild(sort=False)

    # The parts of a step.

    def _begin_drives(self):
        """Give driven bodies the mean velocity of the step; returns where they will be at its end."""
        bodies, poses = self.state.bodies, list(self.poses((self.steps + 1) * self.dt))
        for row, (position, orientation, _, _) in poses:
            bodies.velocity[row] = (np.array(position) - bodies.position[row]) / self.dt
            bodies.spin[row] = rotation_between(bodies.orientation[row], orientation) / self.dt
        return poses

    def _touch(self):
        """Contacts that may be closed at the end of the step, and their buffers."""
        began, state = clock.perf_counter(), self.state
        crossing = find_points(state, self.reach)
        if state.triangulated:
            self.together(lambda: self.look_for_crossings(crossing, False, self.time))
        self.near = find_near(state.pairs, state.points, self.order)
        self._notice()
        self._fill(self._closing(self.slack, self.scene.gravity))
        self.seconds["contacts"] += clock.perf_counter() - began

    def _step(self, slack, gravity):
        """What constraints are made with."""
        gravity = tuple(float(g) for g in gravity)
        return Step(self.dt, slack, self.method.stabilisation, self.recovery, self.threshold, gravity, self.state.edges)

    def _closing(self, slack, gravity):
        """Rows (c,) of Near that may be nearer than slack [m] at the end of the step."""
        state, near = self.state, self.near
        keep = np.empty(len(near.slot), np.int8)
        chunks = (len(keep) + CHUNK - 1) // CHUNK
        about = state.rows, state.shapes.body, self.span, state.pairs, self.mixes, state.points
        self._kernels.keep(chunks, CHUNK, self._step(slack, gravity), *about, near, keep)
        return np.nonzero(keep)[0].astype(np.int32)

    def _fill(self, kept):
        """Constraints of these rows of Near."""
        state = self.state
        if self.clumps:
            n = len(state.bodies.number)
            self.inverse = np.empty((n, 6))
            self._kernels.inverse(
                (n + CHUNK - 1) // CHUNK, CHUNK, state.bodies, state.rows, state.inverses, self.inverse
            )
        self.constraints = empty_constraints(len(kept), self.couples, self.soft)
        self.kept, self.named, self.told = kept, None, self._told(kept)
        chunks, step = (len(kept) + CHUNK - 1) // CHUNK, self._step(self.slack, self.scene.gravity)
        about = state.rows, self.inverse, state.shapes.body, self.ball, self.held, state.pairs, self.mixes, state.points
        chosen = Near(self.near.slot[kept], self.near.pair[kept])
        self._kernels.build(chunks, CHUNK, step, *about, chosen, self.constraints)
        self.by_speed = np.zeros(len(kept), bool)
        if len(self.held):
            self.by_speed = self.held[self.constraints.body].any(1)

    def _told(self, kept):
        """How many of these rows of Near this process counts, the first ones, see `State.told`."""
        return len(self.state.told(self.near.pair[kept]))

    def _look_again(self):
        """Solve once more with the contacts that nobody saw coming: bodies struck within the step may run into others."""
        state, near = self.state, self.near
        if self.joints is not None:
            return
        kept, found = self.kept, self._closing(-DEEP * state.size, (0.0, 0.0, 0.0))
        # Only what the list of pairs holds for certain, or results would depend on when it was made.
        body = state.shapes.body[state.pairs.shape[near.pair[found]]]
        sure = self.ahead[body].sum(1) + np.where((state.bodies.motion[body] == FREE).all(1), 0.0, self.sweep)
        found = found[state.points.gap[near.slot[found]] <= self.slack + sure]
        missed = np.setdiff1d(found, kept, assume_unique=True)
        if self.others.largest(len(missed))[0]:
            n = len(state.bodies.number)
            state.rows[:n, VELOCITIES], state.rows[:n, SPINS] = self.before[:, :3], self.before[:, 3:]
            iterations = self.solution.iterations
            self._fill(np.sort(np.concatenate([kept, missed])))
            self._solve()
            self.solution = self.solution._replace(iterations=iterations + self.solution.iterations)

    def _solve(self):
        """Impulses of all contacts; the velocities of the bodies are those at the end of the step afterwards."""
        began, state, method = clock.perf_counter(), self.state, self.method
        constraints, rows, n, every = self.constraints, state.rows, self.state.own, len(state.bodies.number)
        free, none = np.empty((n, 6)), np.empty((0, 3))
        self.before = np.hstack([rows[:every, VELOCITIES], rows[:every, SPINS]])
        joints, loads = self.joints, (none, none)
        restore = None if joints is None else joints.restore
        shared = {"joints": restore, "typical": state.size, "others": self.others, "told": self.told}
        cones = BodyCones(constraints, state.pairs, rows, self.inverse, free, self._inner, self.width, **shared)
        self.cones = cones
        self.touched = whole = np.diff(cones.start) > 0
        if joints is not None:
            whole = joints.begin(rows, whole)
            loads = (self.attempt(joints.forces, rows) if joints.pulling else None) or loads
        self.kick = np.where(whole, 1.0, 0.5)
        self._kernels.kick(
            self._chunks(), CHUNK, rows, self.inverse, self.scene.gravity, self.dt, self.kick, *loads, free
        )
        self.free = free
        self.impulse = np.zeros((len(constraints.gap), self.width))
        chunks = (len(constraints.gap) + CHUNK - 1) // CHUNK
        if method.warm:
            self.recall_impulses(self.impulse)
        layers, remembered = self._measure_pile()
        cold = method.warm and not remembered
        bias = constraints.bias[self.by_speed]
        hold(constraints, self.impulse, rows, state.size, 0.05 * self.threshold)
        constraints.bias[self.by_speed] = bias
        self.solution = solvers.solve(
            cones,
            self.impulse,
            solver=method.solver,
            tolerance=self._tolerance(layers),
            iterations=complementarity.iterations_for(method, cones.total, joints is not None, cones.patched, cold),
            workspace=self.workspace,
            **self.method.options,
        )
        self.impulse = self.solution.impulse
        if cones.total == 0:
            cones.begin(self.impulse)  # the solver had nothing to do, but forces act all the same
        if joints is not None:
            self.attempt(joints.aim, rows, self.dt)
        self._forget()
        self._kernels.remember(chunks, CHUNK, constraints, state.points, self.impulse, state.history)
        self.seconds["solver"] += clock.perf_counter() - began

    def recall_impulses(self, impulse):
        """Write the impulses (c,width) [N s] that the constraints remember of the last step."""
        state, constraints = self.state, self.constraints
        first = last = NOBODY
        if self.patches:
            first, last = contacts_of_pairs(len(state.pairs.shape), constraints.pair)
        about = constraints, state.pairs, state.points, state.history
        self._kernels.recall((len(impulse) + CHUNK - 1) // CHUNK, CHUNK, first, last, *about, impulse)

    # What is done otherwise where bodies sleep, see `clast.dvi.sleeping`.

    def _notice(self):
        """Before contacts are chosen: who must wake; nobody sleeps."""

    def _forget(self):
        """Before contacts remember their impulses: those of the step before go."""
        self.state.history.live[:] = 0

    def _count(self):
        """Keep the book of what the solver did."""
        tally, solution = self.tally, self.solution
        tally["steps"] += 1
        tally["iterations"] += solution.iterations
        tally["missed"] += not solution.converged
        self.residual = float(solution.residual)
        tally["worst"] = max(tally["worst"], self.residual)
        if self.joints is None:
            return
        gap = self.constraints.gap[: self.told]
        apart = (gap < 0.0) & self.by_speed[: self.told]
        apart = np.nonzero(apart & (self.constraints.soft[: self.told] == 0.0) if self.soft else apart)[0]
        pressed = np.einsum("ci,ci->c", self.impulse[apart, :3], self.constraints.normal[apart])
        speed = np.minimum(-self.method.stabilisation * gap[apart] / self.dt, self.recovery)
        tally["stabilisation"] += order_free(self.others, pressed * speed)[0]

    def _part(self):
        """Move bodies apart that overlap; those that joints hold have been given the speed, because a shift would open their joints."""
        state, gap = self.state, self.constraints.gap
        gap = np.where(self.by_speed, 0.0, gap) if self.joints is not None else gap
        if due(gap, state.size, self.constraints.soft, self.steps, self.others):
            began, step = clock.perf_counter(), self._step(self.slack, self.scene.gravity)
            about = state.bodies.orientation, self.workspace, self.held, self.by_speed
            energy, _ = part_overlaps(self.cones, step, state.size, self.soft, *about)
            self.tally["stabilisation"] += energy
            self.seconds["solver"] += clock.perf_counter() - began

    def _move(self, poses):
        """Move all bodies to the end of the step."""
        began, state = clock.perf_counter(), self.state
        chunks, swift = self._chunks(), self._swift()
        before = None if swift is None else np.hstack([state.bodies.position, state.bodies.orientation])
        if len(self._moved) != chunks:
            self._moved, self._status = np.zeros(chunks), np.zeros(chunks, np.int8)
        space = Space(self.scene.gravity, self.world, state.edges)
        watch = Watch(state.reference, state.there.turned_from, state.pairs.far, self._moved, self._status)
        about = state.bodies, state.rows, state.there.inertias, self.free, self.kick, self.dt
        self._kernels.drift(chunks, CHUNK, *about, space, watch)
        self.drive(poses)
        if self.joints is not None:
            self.attempt(self.joints.advance, state.rows, state.bodies, self.dt)
        stopped = swift is not None and self._stop_short(before, swift)
        if self.joints is not None:
            self._end_joints()
        if self._wrong(stopped):
            self.complain()
        self.seconds["bodies"] += clock.perf_counter() - began

    def _wrong(self, stopped):
        """Whether some body's state is not a number or has left the world; stopped: some are not where the kernel put them."""
        if self.joints is None and not stopped:
            return self._status.max(initial=0) > 0
        # Groups that touch nothing, and bodies that were stopped, have gone another way since the status was written.
        bodies, world = self.state.bodies, np.array(self.world)
        free = bodies.motion == FREE
        state = np.hstack([bodies.position, bodies.velocity, bodies.spin])[free]
        inside = (state[:, :3] >= world[:3]) & (state[:, :3] <= world[3:])
        return not (inside.all() and (np.abs(state) < 1e150).all())

    def _chunks(self):
        return (self.state.own + CHUNK - 1) // CHUNK

    def _bind(self):
        """Compose the kernels of this scene: only what it has."""
        state = self.state
        molds = state.molds
        # By all molds if bodies come and go: a restart must not find another kind of scene.
        steady = not (self.scene.inlets or self.scene.outlets)
        used = np.unique(self.scene.bodies.mold) if steady else np.arange(len(molds.round))
        self.clumps = bool((~molds.round[used] & (molds.volume[used] > 0.0)).any())
        self.solids = state.turning
        self.plain = not self.solids and bool((molds.count[used] == 1)[molds.volume[used] > 0.0].all())
        self._inner = {"COUPLES": self.couples, "SOFT": self.soft}
        meets = families_of(state.parts)
        self.patches = any(family.slots != 1 for family in meets) or TRIANGLE in state.parts.kind
        memory = {"PATCHES": self.patches}

        def chunked(row, **bound):
            return kernel(row, grain=4, **bound)

        self._kernels = SimpleNamespace()
        self._kernels.keep = chunked(blocks.keep_chunk)
        self._kernels.build = chunked(blocks.build_chunk, **self._inner)
        self._kernels.recall = chunked(warm_start.recall_chunk, **memory)
        self._kernels.remember = chunked(warm_start.remember_chunk, **memory)
        self._kernels.inverse = chunked(inverse_chunk)
        self._kernels.kick = chunked(complementarity.kick_chunk)
        self._kernels.drift = chunked(complementarity.drift_chunk)
        reach = np.where(np.isfinite(state.parts.reach), state.parts.reach, 0.0)
        reach += np.linalg.norm(state.parts.offset, axis=1)
        self.outer = np.array([reach[f : f + k].max() for f, k in zip(molds.first, molds.count, strict=True)])
        lever = np.linalg.norm(state.parts.offset, axis=1) + state.parts.swing
        self.lever = np.array([lever[f : f + k].max() for f, k in zip(molds.first, molds.count, strict=True)])
        deep = np.where(is_wall(state.parts.kind), np.inf, state.parts.deep)
        self.deep = np.array([deep[f : f + k].min() for f, k in zip(molds.first, molds.count, strict=True)])
        self.inverse = np.empty((0, 6))  # of balls the rows know it
        self.friction = float(self.mixes.friction.max(initial=0.0))
        self._measure_against(state.size)

    def _measure_against(self, size):
        """What counts as near, slow and deep in a scene of bodies of this radius [m]."""
        method, gravity = self.method, math.sqrt(sum(g * g for g in self.scene.gravity))
        self.slack = max(SLACK * size, 2.0 * gravity * self.dt**2)
        self.threshold = 2.0 * gravity * self.dt if method.threshold is None else float(method.threshold)
        fall = math.sqrt(gravity * size) if gravity > 0.0 else 0.1 * size / self.dt
        self.recovery = 0.2 * fall if method.recovery is None else float(method.recovery)

    def _measure_pile(self):
        """How many bodies of typical size lie on top of each other where bodies touch, and whether any contact remembers an impulse."""
        state, gravity, n = self.state, np.array(self.scene.gravity, float), self.state.own
        pull = float(np.linalg.norm(gravity))
        place = state.rows[:n, CENTRES][self.touched & (state.bodies.motion[:n] == FREE)]
        height = (place * (gravity / pull if pull > 0.0 else gravity)).sum(1)
        ends = float(height.max(initial=-math.inf)), float((-height).max(initial=-math.inf))
        high, low, remembered = self.others.largest(*ends, self.impulse.any())
        return max(high + low, 0.0) / (2.0 * state.size), bool(remembered)

    def _tolerance(self, layers):
        """The residual [m/s] at which a solve ends: errors of contacts add up along the height of a pile, so each may have that part of the error of a
        body which is one over the number of layers."""
        tolerance, least = self.method.tolerance, 1.0
        if tolerance == "auto":
            pull = math.hypot(*self.scene.gravity)
            tolerance = complementarity.PART * (pull * self.dt if pull > 0.0 else 0.01 * self.state.size / self.dt)
            least = complementarity.LAYERS
        return float(tolerance) / max(least, layers)

    def _choose_step(self, dt):
        gravity = math.sqrt(sum(g * g for g in self.scene.gravity))
        if isinstance(dt, str):
            pick("time step", dt, {"auto": None})
            if gravity == 0.0:
                raise ValueError("Simulation: dt='auto' with Complementarity needs gravity; give dt in seconds")
            return complementarity.FALL * math.sqrt(2.0 * self.state.size / gravity)
        dt = float(dt)
        if not 0.0 < dt < math.inf:
            raise ValueError(f"Simulation: dt = {dt} must be above 0 s, or 'auto'")
        return dt

    # What is asked of a step.

    def remedy(self, crossing):
        """What else a message about bodies that the halo did not keep apart tells to do."""
        return ", slow them down or take a smaller dt"

    def cause(self):
        """What a message about a state that went wrong says of the time step."""
        return f"dt = {self.dt:.3g} s"

    def touching(self):
        """Number of contacts that carry a force."""
        return self.ended[0] if self.kept is None else int(np.count_nonzero(self.impulse[: self.told].any(1)))

    def contacts(self):
        """See Simulation.contacts; gaps are those at the start of the last step, whose forces these are.

        Before the first step after a restart gaps are those of the moment, and forces those that contact points remember.
        """
        state, impulse = self.state, self.impulse
        if self.kept is None:
            find_points(state, self.reach)
            self.near = find_near(state.pairs, state.points, self.order)
            self._fill(np.arange(len(self.near.slot), dtype=np.int32))
            self.kept, count = None, len(self.constraints.gap)
            impulse = np.zeros((count, self.width))
            self.recall_impulses(impulse)
        self.name_contacts()
        pair, shape, feature, swap = self.named
        constraints = self.constraints
        rows = np.nonzero((impulse.any(1) | (constraints.gap <= 0.0))[: self.told])[0]
        # The list has walls second; here the lower number comes first, and normal and force follow.
        sign = np.where(swap[rows], -1.0, 1.0)[:, None]
        found = empty_contacts(len(rows))._replace(
            pair=pair[rows],
            shape=shape[rows],
            point=constraints.point[rows],
            normal=sign * constraints.normal[rows],
            gap=constraints.gap[rows],
            feature=feature[rows],
            force=sign * impulse[rows, :3] / self.dt,
        )
        key = found.feature, found.shape[:, 1], found.shape[:, 0], found.pair[:, 1], found.pair[:, 0]
        return select(found, np.lexsort(key))

    def name_contacts(self):
        """Keep whose the constraints are (bodies' numbers, parts, features, whether turned round) before their rows go."""
        state, constraints = self.state, self.constraints
        if self.named is None and state.pairs is not None:
            listed, swap = lower_first(state.shapes, state.pairs.shape[constraints.pair])
            body = state.shapes.body[listed]
            part = (state.shapes.number[listed] - state.label[body]).astype(np.int32)
            self.named = state.bodies.number[body], part, state.points.feature[constraints.slot], swap

    def elastic_energy(self):
        """Energy [J] stored in compliant contacts and in the springs of joints that have a stiffness."""
        return self._pressed_energy() + (0.0 if self.joints is None else self.joints.elastic_energy)

    def _pressed_energy(self):
        """Energy [J] stored in compliant contacts: half of the compliance times the square of the normal force."""
        if self.kept is None:
            return self.ended[1]
        if not self.soft:
            return 0.0
        impulse, constraints = self.impulse[: self.told], self.constraints
        pressed = np.einsum("ci,ci->c", impulse[:, :3], constraints.normal[: self.told])
        return 0.5 * order_free(self.others, constraints.soft[: self.told] * pressed**2)[0]

    def describe(self):
        """What Report tells of the solver."""
        tally = dict(self.tally)
        if self.joints is None:
            del tally["open"]
        return {"solver": self.method.solver, **tally, "residual": self.residual}

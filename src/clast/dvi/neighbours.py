"""Who is near whom: the list of pairs of a simulation by hard contacts, and when it must be made again."""

import math
import time as clock

import numpy as np

from ..broad.search import turned
from ..kernels import primitives
from ..kernels.rows import CENTRES
from ..motion.placing import place_parts
from ..motion.state import ball_radii
from ..tables import FREE, is_wall
from .constraints import SWIFT
from .shared import Shared

STILL = 0.05  # part of a typical radius that a wall may go in a step and count as one that stands
ROOM = 0.1  # what the list sees beyond what can touch within a step, as a part of a typical radius
SORT = 64  # steps after which bodies are sorted again: at fixed steps, so that a restart changes nothing


class Nearby(Shared):
    """The part of `clast.dvi.stepper.Hard` that looks after the list of pairs."""

    @property
    def widest(self):
        """How far apart [m] shapes in the list of pairs may be at the most."""
        return self.slack + (3.0 + ROOM) * self.state.size

    def _find_pairs(self):
        """Make the list of pairs anew if a body may have moved out of it."""
        began, state = clock.perf_counter(), self.state
        state.since += 1
        self.meet_ghosts()
        self._look_ahead()
        sort, outgrown = (self.steps + 1) % SORT == 0, self._outgrown()
        if sort or outgrown or self.uneven():
            self._rebuild(sort)
        else:
            state.follow()
        self.seconds["pairs"] += clock.perf_counter() - began

    def _outgrown(self):
        """Whether the list may miss what can touch within a step: two bodies may have come towards each other, or a body and a wall."""
        far, walls = self.farthest(self._moved_out(), self.state.walls_moved() + self.sweep - self.swept)
        return far + max(far, walls) >= ROOM * self.state.size

    # What several processes that share a run do otherwise, see `clast.mpi.hard`.

    def meet_ghosts(self):
        """Bring bodies that other processes move to where these have moved them; there are none."""

    def farthest(self, far, walls):
        """How far [m] bodies and walls have gone beyond the list, for all processes; far, walls: for this one."""
        return far, walls

    def make_list(self, sort, grow=None):
        """Make the list of pairs anew, see State.rebuild."""
        self.state.rebuild(sort=sort, grow=grow)

    def _look_ahead(self):
        """How far [m] bodies may go within a step at the velocities that they have: ahead (n,) each, sweep: the walls,
        reach: how far apart two may be that can touch.

        A sliding contact is held open by friction times its way. A free body goes ahead by a typical radius at the most, unless joints hold
        it: what moves farther than that is followed on its way (`clast.dvi.sweeping`). span (n,) [m]: the size of bodies that go so far in a
        step that the normals of contacts seen from afar tell nothing; infinite for others, and -1 for driven bodies that go far.
        """
        state = self.state
        bodies = state.bodies
        walls, held = self._wall_speed(), self._held(bodies)
        self.ahead, self.way = self._ahead_of(bodies, held)
        self.sweep = (1.0 + self.friction) * self.dt * walls
        self.span = np.full(len(self.way), np.inf)
        extent, free = np.minimum(self.outer[bodies.mold] * bodies.scale, state.size), bodies.motion == FREE
        most = float(self.ahead.max(initial=0.0))
        self.most, swift = self.others.largest(most, (self.way > SWIFT * extent).any())
        if swift:
            self.span = np.where(free & ~held & (self._goes() > SWIFT * extent), extent, np.inf)
            if walls * self.dt > STILL * state.size:
                self.span[[wall.row for wall in state.walls]] = -1.0
        self.reach = self.slack + self.most + max(self.most, self.sweep)

    def _ahead_of(self, bodies, held):
        """How far [m] each of these Bodies may go within a step, (n,), a typical radius at the most unless it is held (n,), and its way (n,) [m]."""
        speed = np.sqrt(np.einsum("ni,ni->n", bodies.velocity, bodies.velocity))
        free, part, size = bodies.motion == FREE, (1.0 + self.friction) * self.dt, self.state.size
        if self.solids or self.clumps:
            spin = np.sqrt(np.einsum("ni,ni->n", bodies.spin, bodies.spin))
            speed += np.where(free, self.outer[bodies.mold] * bodies.scale * spin, 0.0)
        ahead = np.where(free, np.where(held, part * speed, np.minimum(part * speed, size)), 0.0)
        return ahead, np.where(free, speed, 0.0) * self.dt

    def _wall_speed(self):
        """How fast [m/s] the surface of any driven wall comes nearer to something at the most."""
        state, walls = self.state, 0.0
        for wall in state.walls:
            # The surface of a plane or cylinder that turns about its axis comes no nearer to anything.
            spin, axis = state.bodies.spin[wall.row], wall.axis
            across = spin if axis is None else np.cross(spin, turned(state.bodies.orientation[wall.row].tolist(), axis))
            speed = float(np.linalg.norm(state.bodies.velocity[wall.row]))
            if across.any():
                speed += self._reach_of(wall) * float(np.linalg.norm(across))
            walls = max(walls, speed)
        return walls

    def _reach_of(self, wall):
        """How far [m] from its origin a wall may meet bodies. Of one without an end it is as far as they are now, whenever the list was made."""
        if not wall.endless:
            return wall.reach
        state = self.state
        centre, here = state.rows[: len(state.bodies.number), CENTRES], state.bodies.position[wall.row]
        ends = np.array(self.others.largest(*centre.max(0), *(-centre).max(0)))
        away = np.maximum(np.abs(-ends[3:] - here), np.abs(ends[:3] - here))
        return float(np.linalg.norm(away)) + self.widest

    def _look_at_drives(self, poses):
        """Make the list of pairs anew if it is too short for a drive that goes faster in this step than it did when the step before ended; returns
        the poses of driven bodies at its end with the rows that these have then."""
        state = self.state
        if state.walls and (1.0 + self.friction) * self.dt * self._wall_speed() > self.sweep:
            self._look_ahead()
            if self._outgrown():
                numbers = [int(state.bodies.number[row]) for row, _ in poses]
                self._rebuild(sort=False)
                rows = {int(state.bodies.number[row]): row for row in state.driven}
                return [(rows[number], pose) for number, (_, pose) in zip(numbers, poses, strict=True)]
        return poses

    def _goes(self):
        """How far [m] points of each body go in a step at the velocities that it has, (n,)."""
        bodies = self.state.bodies
        way = np.sqrt(np.einsum("ni,ni->n", bodies.velocity, bodies.velocity))
        if self.solids or self.clumps:
            way += self.lever[bodies.mold] * bodies.scale * np.sqrt(np.einsum("ni,ni->n", bodies.spin, bodies.spin))
        return self.dt * way

    def _moved_out(self):
        """By how much [m] a body's way since the list was made and what it may go in a step exceed what the list allows."""
        state = self.state
        if self.plain:
            n = len(state.bodies.number)
            d = state.rows[:n, CENTRES] - state.reference[:n]
            d -= self.box.length * np.round(d * self.box.inverse)
            far = np.sqrt(np.einsum("ni,ni->n", d, d)) + self.ahead - self.grown
            return float(far[state.bodies.motion == FREE].max(initial=0.0))
        far = math.sqrt(self._moved.max(initial=0.0))
        if state.has_parts:
            bodies, shapes, parts = state.kernel_tables[:3]
            moved = state.reference, state.there.turned_from
            far = max(far, place_parts(bodies, shapes, parts, self.box, state.rows, *moved))
        return far + self.most - self.grown

    def _rebuild(self, sort):
        """Make the list of pairs, wide enough for what can touch within the next steps, and put it in order."""
        state = self.state
        self.name_contacts()
        state.remember_walls()
        self._look_ahead()
        self.swept = self.sweep
        state.margin = self.slack + ROOM * state.size + self.sweep
        if self.plain:
            # Each sphere is taken as large as it needs: one that is fast does not make the list of all others long.
            self.make_list(sort, self._grow)
        else:
            self.grown = self.most
            state.margin += 2.0 * self.grown
            self.make_list(sort)
            self._look_ahead()  # bodies stand in other rows
        if self.joints is not None:
            self.joints.renew(state.bodies, state.own)
            self.together(self.joints.look_for_all)
            self.held = (self._held(state.bodies) & (state.bodies.motion == FREE)).astype(np.int8)
        shapes = state.shapes
        # In the order of rows, whatever the order in which the broad phase met them.
        order = np.arange(len(state.pairs.shape), dtype=np.int32)
        for column in (1, 0):
            order = order[primitives.group(np.ascontiguousarray(state.pairs.shape[order, column]), len(shapes.kind))[1]]
        if state.ghosts:  # what another process tells of comes last
            told = state.shapes.body[state.pairs.shape[order, 0]] < self.state.own
            order = np.concatenate([order[told], order[~told]])
        if self.joints is not None and len(self.joints.apart):
            order = order[~self._joined(state.pairs.shape[order], state)]
        self.order = order
        self.ball = ball_radii(state)

    def _grow(self):
        """How much larger [m] shapes are taken for the list: what they go ahead in a step, and two more steps' way."""
        self.state.remember_walls()  # bodies may stand in other rows than before
        self._look_ahead()
        shapes = self.state.shapes
        self.grown = self._grown(self.ahead, self.way)
        return np.where(is_wall(shapes.kind), 0.0, self.grown[shapes.body])

    def _grown(self, ahead, way):
        return np.maximum(np.minimum(ahead + 2.0 * way, self.state.size), ahead)

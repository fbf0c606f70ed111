"""Who is near whom: the list of pairs of a simulation by hard contacts, and when it must be made again."""

import math
import time as clock

import numpy as np

from ..broad.search import turned
from ..kernels import primitives
from ..kernels.rows import CENTRES
from ..motion.state import ball_radii, place_parts
from ..tables import FREE, is_wall
from .constraints import SWIFT

STILL = 0.05  # part of a typical radius that a wall may go in a step and count as one that stands
ROOM = 0.1  # what the list sees beyond what can touch within a step, as a part of a typical radius
SORT = 64  # steps after which bodies are sorted again: at fixed steps, so that a restart changes nothing


class Nearby:
    """The part of `clast.dvi.stepper.Hard` that looks after the list of pairs."""

    @property
    def widest(self):
        """How far apart [m] shapes in the list of pairs may be at the most."""
        return self.slack + (3.0 + ROOM) * self.state.size

    def _find_pairs(self):
        """Make the list of pairs anew if a body may have moved out of it."""
        began, state = clock.perf_counter(), self.state
        state.since += 1
        self._look_ahead()
        sort = (self.steps + 1) % SORT == 0
        if sort or self._outgrown():
            self._rebuild(sort)
        self.seconds["pairs"] += clock.perf_counter() - began

    def _outgrown(self):
        """Whether the list may miss what can touch within a step: two bodies may have come towards each other, or a body and a wall."""
        far = self._moved_out()
        return far + max(far, self.state.walls_moved() + self.sweep - self.swept) >= ROOM * self.state.size

    def _look_ahead(self):
        """How far [m] bodies may go within a step at the velocities that they have: ahead (n,) each, sweep: the walls,
        reach: how far apart two may be that can touch.

        A sliding contact is held open by friction times its way. A free body goes ahead by a typical radius at the most, unless joints hold
        it: what moves farther than that is followed on its way (`clast.dvi.sweeping`). span (n,) [m]: the size of bodies that go so far in a
        step that the normals of contacts seen from afar tell nothing; infinite for others, and -1 for driven bodies that go far.
        """
        state = self.state
        bodies = state.bodies
        speed = np.sqrt(np.einsum("ni,ni->n", bodies.velocity, bodies.velocity))
        if self.solids or self.clumps:
            spin = np.sqrt(np.einsum("ni,ni->n", bodies.spin, bodies.spin))
            speed += np.where(bodies.motion == FREE, self.outer[bodies.mold] * bodies.scale * spin, 0.0)
        walls, part = self._wall_speed(), (1.0 + self.friction) * self.dt
        free = bodies.motion == FREE
        held = self._held()
        self.ahead = np.where(free, np.where(held, part * speed, np.minimum(part * speed, state.size)), 0.0)
        self.way = np.where(free, speed, 0.0) * self.dt
        self.sweep = part * walls
        self.span = np.full(len(speed), np.inf)
        extent = np.minimum(self.outer[bodies.mold] * bodies.scale, state.size)
        if (self.way > SWIFT * extent).any():
            self.span = np.where(free & ~held & (self._goes() > SWIFT * extent), extent, np.inf)
            if walls * self.dt > STILL * state.size:
                self.span[[wall.row for wall in state.walls]] = -1.0
        most = float(self.ahead.max(initial=0.0))
        self.reach = self.slack + most + max(most, self.sweep)

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
        away = np.maximum(np.abs(centre.min(0) - here), np.abs(centre.max(0) - here))
        return float(np.linalg.norm(away)) + self.widest

    def _look_at_drives(self):
        """Make the list of pairs anew if it is too short for a drive that goes faster in this step than it did when the step before ended."""
        if self.state.walls and (1.0 + self.friction) * self.dt * self._wall_speed() > self.sweep:
            self._look_ahead()
            if self._outgrown():
                self._rebuild(sort=False)

    def _held(self):
        """Which bodies (n,) joints or springs hold: they go with others, and cannot be stopped on their way."""
        number = self.state.bodies.number
        return np.zeros(len(number), bool) if self.joints is None else np.isin(number, self.joints.numbers)

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
        return far + float(self.ahead.max(initial=0.0)) - self.grown

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
            state.rebuild(sort=sort, grow=self._grow)
        else:
            self.grown = float(self.ahead.max(initial=0.0))
            state.margin += 2.0 * self.grown
            state.rebuild(sort=sort)
            self._look_ahead()  # bodies stand in other rows
        if self.joints is not None:
            self.joints.renew(state.bodies)
        shapes = state.shapes
        # In the order of rows, whatever the order in which the broad phase met them.
        order = np.arange(len(state.pairs.shape), dtype=np.int32)
        for column in (1, 0):
            order = order[primitives.group(np.ascontiguousarray(state.pairs.shape[order, column]), len(shapes.kind))[1]]
        if self.joints is not None and len(self.joints.apart):
            order = order[~self._joined(state.pairs.shape[order])]
        self.order = order
        self.ball = ball_radii(state)

    def _grow(self):
        """How much larger [m] shapes are taken for the list: what they go ahead in a step, and two more steps' way."""
        self.state.remember_walls()  # bodies may stand in other rows than before
        self._look_ahead()
        shapes, size = self.state.shapes, self.state.size
        self.grown = np.maximum(np.minimum(self.ahead + 2.0 * self.way, size), self.ahead)
        return np.where(is_wall(shapes.kind), 0.0, self.grown[shapes.body])

    def _joined(self, pairs):
        """Which of these pairs of shapes (p,2) are of two bodies that are joined and must not collide."""
        number = self.state.bodies.number[self.state.shapes.body[pairs]]
        number.sort(axis=1)
        apart, wide = self.joints.apart, int(self.scene.next_number) + 1
        return np.isin(number[:, 0] * wide + number[:, 1], apart[:, 0] * wide + apart[:, 1])

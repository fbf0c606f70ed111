"""Joints within a step by hard contacts: what `clast.joints` is asked for, and when."""

import numpy as np

from ..errors import Diverged
from ..joints.reactions import watch
from ..joints.system import JointSystem
from .shared import Shared


class Jointed(Shared):
    """The part of `clast.dvi.stepper.Hard` that looks after joints, springs and motors."""

    def _make_joints(self):
        """The JointSystem of the scene, or None if nothing is joined."""
        return JointSystem(self.scene, self.box) if self.scene.joints or self.scene.springs else None

    def _begin_joints(self):
        """Joints as they are at the very beginning."""
        joints, state = self.joints, self.state
        joints.prepare(state.rows, state.bodies, 0.0, self.dt)
        joints.settle(state.rows, joints.here)
        joints.check()

    def _recall_joints(self, kept):
        """Joints as they were when the last step before a restart ended; kept: what `JointSystem.state` gave."""
        joints, state = self.joints, self.state
        joints.restore_state(kept)
        joints.time, joints.dt = self.time, self.dt
        self.together(lambda: joints.take_up(state.rows, state.bodies, joints.here, held=True))

    def _end_joints(self):
        """All joints as they are at the end of the step."""
        joints, state = self.joints, self.state
        self.attempt(joints.prepare, state.rows, state.bodies, (self.steps + 1) * self.dt, self.dt)
        self.attempt(joints.settle, state.rows, joints.touching)
        opened, trouble = watch(joints, state.size)
        self.tally["open"] = max(self.tally["open"], self.others.largest(opened)[0])
        if trouble:
            raise Diverged(f"t = {self.time + self.dt:.6g} s: {trouble}; {self.cause()}")

    def _held(self, bodies):
        """Which of these Bodies (n,) joints or springs hold: they go with others, and cannot be stopped on their way."""
        none = self.joints is None
        return np.zeros(len(bodies.number), bool) if none else np.isin(bodies.number, self.joints.numbers)

    def _joined(self, pairs, state):
        """Which of these pairs of shapes (p,2) of a State are of two bodies that are joined and must not collide."""
        if self.joints is None or not len(self.joints.apart):
            return np.zeros(len(pairs), bool)
        number = state.bodies.number[state.shapes.body[pairs]]
        number.sort(axis=1)
        apart, wide = self.joints.apart, int(self.scene.next_number) + 1
        return np.isin(number[:, 0] * wide + number[:, 1], apart[:, 0] * wide + apart[:, 1])

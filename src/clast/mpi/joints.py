"""Joints on many processes: each moves whole groups of bodies that hang together, and has tables of all, so that what it finds of its own has the bits of one process."""

from typing import Any

import numpy as np

from ..joints.reactions import Reactions
from ..joints.springs import Pulls
from ..joints.system import JointSystem, refuse_without


class RankedJoints(JointSystem):
    """All joints, springs and motors of a scene; those of groups that other processes move stand as they were when these were here, and nobody looks at them."""

    def __init__(self, scene, box, stepper):
        super().__init__(scene, box)
        self.somewhere: Any = None  # which bodies that are held some process has
        self.stepper, self.team = stepper, stepper.team

    def renew(self, bodies, own):
        """See JointSystem; groups that come and go with their bodies bring what they know."""
        first = self.table is None
        super().renew(bodies, own)
        before = self.here
        lowest = self.table.group_slot[self.table.slot_start[:-1]]
        self.here = self.rows[lowest] >= 0
        self.somewhere = self.team.sum((self.rows >= 0).astype(np.int64)) > 0
        if not first:
            self._hand_over(before & ~self.here)
            came = self.here & ~before
            if came.any():
                self.take_up(self.stepper.state.rows, bodies, came)

    def members(self, bodies):
        """See JointSystem; of all processes."""
        domain, slots = self.stepper.domain, np.isin(bodies.number[: self.stepper.state.own], self.numbers)
        free = np.isfinite(bodies.mass[: len(slots)])
        records, _ = domain.gather(np.flatnonzero(slots & free))
        refuse_without(self.numbers[~np.isin(self.numbers, records["number"])])
        return domain.bodies_of(records[np.searchsorted(records["number"], self.numbers)])

    def look_for_all(self):
        """See JointSystem; of all processes."""
        refuse_without(self.numbers[~self.somewhere])

    def _kept_tables(self):
        """What is known beside where bodies are: arrays whose rows are joints in the order of the assembly, motors, and groups."""
        efforts = np.array([self.pressed[2].get(k, np.nan) for k in range(len(self.goals.travelled))])
        joints = np.hstack([self.table.coordinate, self.felt, *self.pressed[:2]])
        motors = np.column_stack([self.goals.travelled, efforts])
        return joints, motors, np.column_stack([self.touching, self.known]).astype(float)

    def _hand_over(self, leaving):
        """Tell of groups (g,) that go to another process, and hear of those that come."""
        group = self.joint_group
        motor = np.array([group[self.place[motor.joint]] for motor in self.scene.motors], np.int64)
        kept = self._kept_tables()
        rows = [np.flatnonzero(leaving[of]) for of in (group, motor, np.arange(self.group_count))]
        # One message for the three tables: which of them, which row, what it says.
        told = np.zeros((sum(map(len, rows)), 2 + kept[0].shape[1]))
        first = 0
        for sort, (mine, table) in enumerate(zip(rows, kept, strict=True)):
            part = told[first : first + len(mine)]
            part[:, 0], part[:, 1], part[:, 2 : 2 + table.shape[1]] = sort, mine, table[mine]
            first += len(mine)
        told = self.team.join(told)
        joints, motors, groups = (told[told[:, 0] == sort, 1:] for sort in range(3))
        at, start = joints[:, 0].astype(np.int64), 1
        for column in (self.table.coordinate, self.felt, *self.pressed[:2]):
            column[at] = joints[:, start : start + column.shape[1]]
            start += column.shape[1]
        for k, travelled, effort in motors[:, :3].tolist():
            self.goals.travelled[int(k)] = travelled
            self.pressed[2].update({} if np.isnan(effort) else {int(k): effort})
        at = groups[:, 0].astype(np.int64)
        self.touching[at], self.known[at] = groups[:, 1] > 0.0, groups[:, 2] > 0.0

    # What is asked of all processes together.

    def _whole(self, mine, columns):
        """Arrays of which each process has the rows `mine` (n,), with the rows of all."""
        rows, made = np.flatnonzero(mine), []
        order = self.team.join(rows)
        for column in columns:
            whole = np.array(column)
            whole[order] = self.team.join(np.ascontiguousarray(column[rows]))
            made.append(whole)
        return made

    @property
    def _mine(self):
        """Joints of groups that this process moves, in the order of adding."""
        return self.here[self.joint_group][self.place]

    @property
    def _pulled(self):
        """The same of springs."""
        return self.here[self.springs.group()] if len(self.springs) else np.zeros(0, bool)

    def _asked(self, ask):
        """What ask() returns, which may ask functions of a user: what one raises on one process all do."""
        found: list[Any] = []
        self.stepper.together(lambda: found.append(ask()))
        return found[0]

    @property
    def reactions(self):
        """See JointSystem."""
        own: Any = super()
        return Reactions(*self._whole(self._mine, self._asked(lambda: own.reactions)))

    @property
    def pulls(self):
        """See JointSystem."""
        own: Any = super()
        return Pulls(*self._whole(self._pulled, self._asked(lambda: own.pulls)))

    @property
    def violation(self):
        """See JointSystem."""
        return self._whole(self._mine, [super().violation])[0]

    def energies(self):
        """See JointSystem."""
        return self._whole(self._pulled, [super().energies()])[0]

    def state(self):
        """See JointSystem."""
        mine = self.here[self.joint_group]
        motors = np.array([mine[self.place[motor.joint]] for motor in self.scene.motors], np.bool_)
        felt = np.where(self.known[self.joint_group][:, None], self.felt, np.nan)
        (travelled,) = self._whole(motors, [self.goals.travelled])
        of_joints = self._whole(mine, [self.table.coordinate, felt, *self._pressing()])
        (touching,) = self._whole(self.here, [self.touching.astype(float)])
        return np.concatenate([part.reshape(-1) for part in (travelled, *of_joints, touching)])

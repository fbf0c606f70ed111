"""Joints on many processes: each moves whole groups of bodies that hang together, and has tables of all, so that what it finds of its own has the bits of one process."""

import numpy as np

from ..joints.reactions import Reactions
from ..joints.springs import Pulls
from ..joints.system import JointSystem, refuse_without


class RankedJoints(JointSystem):
    """All joints, springs and motors of a scene; those of groups that other processes move stand as they were when these were here, and nobody looks at them."""

    def __init__(self, scene, box, stepper):
        super().__init__(scene, box)
        self.stepper, self.team = stepper, stepper.team

    def renew(self, bodies, own):
        """See JointSystem; groups that come and go with their bodies bring what they know."""
        first = self.table is None
        super().renew(bodies, own)
        before = self.here
        lowest = self.table.group_slot[self.table.slot_start[:-1]]
        self.here = self.rows[lowest] >= 0
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

    def _known(self):
        """What is known of joints beside where bodies are: arrays whose rows are joints in the order of the assembly, and arrays whose rows are motors."""
        efforts = np.array([self.pressed[2].get(k, np.nan) for k in range(len(self.goals.travelled))])
        group = self.joint_group
        flags = np.stack([self.touching[group], self.known[group]], 1).astype(float)
        return [self.table.coordinate, self.felt, *self.pressed[:2], flags], [self.goals.travelled, efforts]

    def _hand_over(self, leaving):
        """Tell of groups (g,) that go to another process, and hear of those that come."""
        of_joints, of_motors = self._known()
        motor = np.array([self.place[motor.joint] for motor in self.scene.motors], np.int64)
        mine = np.flatnonzero(leaving[self.joint_group])
        moved = np.flatnonzero(leaving[self.joint_group[motor]])
        told = np.hstack([mine[:, None], *(column[mine] for column in of_joints)])
        driven = np.column_stack([moved, *(column[moved] for column in of_motors)])
        wide = told.shape[1]
        table = np.zeros((len(told) + len(driven), wide + 1))  # one message for both
        table[: len(told), :wide], table[len(told) :, : driven.shape[1]] = told, driven
        table[len(told) :, wide] = 1.0
        table = self.team.join(table)
        told, driven = table[table[:, wide] == 0.0], table[table[:, wide] == 1.0]
        rows, at = told[:, 0].astype(np.int64), 1
        for column in of_joints[:-1]:
            column[rows] = told[:, at : at + column.shape[1]]
            at += column.shape[1]
        group = self.joint_group[rows]
        self.touching[group], self.known[group] = told[:, at] > 0.0, told[:, at + 1] > 0.0
        for k, travelled, effort in driven[:, :3].tolist():
            self.goals.travelled[int(k)] = travelled
            if not np.isnan(effort):
                self.pressed[2][int(k)] = effort

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

    @property
    def reactions(self):
        """See JointSystem."""
        return Reactions(*self._whole(self._mine, super().reactions))

    @property
    def pulls(self):
        """See JointSystem."""
        return Pulls(*self._whole(self._pulled, super().pulls))

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
        motors = np.array([mine[self.place[motor.joint]] for motor in self.scene.motors], bool)
        felt = np.where(self.known[self.joint_group][:, None], self.felt, np.nan)
        (travelled,) = self._whole(motors, [self.goals.travelled])
        of_joints = self._whole(mine, [self.table.coordinate, felt, *self.pressed[:2]])
        (touching,) = self._whole(self.here, [self.touching.astype(float)])
        return np.concatenate([part.reshape(-1) for part in (travelled, *of_joints, touching)])

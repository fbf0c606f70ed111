"""What joints, motors and springs do to the bodies that they hold, for the ledger of energies.

Impulses P on a body change its kinetic energy by P . (v + v') / 2, v and v' its velocities before and after all impulses of a stage of a step, exactly. So a row of a joint with the
impulse p does the work p J (v + v') / 2: a row that a motor moves that of the motor, all others nothing but the error of the step. What rows and springs do to a driven body comes from its drive.
"""

import functools
from contextlib import contextmanager

import numpy as np

from ..scene import drives

# [J]: work of motors and imposed lengths, of springs with their dampers on bodies, of joints, which is numerical, of limits, of drives through joints and springs, of gravity on joined bodies; and
# what springs and motors took in and gave back, whatever its sign.
MOTORS, SPRINGS, JOINTS, LIMITS, DRIVES, PULL, GROSS = range(7)
COUNT = 7


class Account:
    """Adds up what a JointSystem does; down (3,) [m/s^2]: gravity in directions that do not repeat, along: in those that do."""

    def __init__(self, system, down, along):
        self.system, self.down, self.along = system, down, along
        self.sums = np.zeros(COUNT)

    @functools.cached_property
    def moved(self):
        """Rows (j,6) that a motor moves, the last ones of a joint, or a length that is a function of time."""
        system, t = self.system, self.system.table
        behind = t.rows[:, None] - np.arange(t.impulse.shape[1])
        moved = (behind > 0) & (behind <= t.motor.sum(1)[:, None])
        moved[system.place[[k for k, _ in system.goals.lengths]], 0] = True
        return moved

    def begin(self):
        """A stage of a step begins: velocities and impulses before it."""
        t = self.system.table
        self.velocity, self.impulse = t.velocity.copy(), t.impulse.copy()

    def end(self, groups, time, part, alone=False):
        """The stage has ended, in which forces have acted for `part` [s] on these groups (g,) from `time` on; the Jacobians, tensions and rows of springs are those of the stage. alone: driven
        bodies have the velocities of `time`, not the mean of the step that contacts see."""
        system = self.system
        t, sums = system.table, self.sums
        mean = 0.5 * (self.velocity + t.velocity)
        for slot, drive in system.driven if alone else ():
            rates = drives.pose(drive, time)[2:] if drive.function is None else drives.rates(drive.function, time)
            mean[slot] = np.concatenate(rates)
        mine = groups[system.joint_group] if len(system) else np.zeros(0, bool)
        self._rows(mean, t.slot, t.jacobian, (t.impulse - self.impulse) * mine[:, None])
        member = (system.slot_group >= 0) & groups[np.maximum(system.slot_group, 0)]
        if part == 0.0:
            return
        mass = 1.0 / t.lightness[member]
        sums[PULL] += part * float(mass @ (mean[member, :3] @ self.down))
        sums[DRIVES] += part * float(mass @ (mean[member, :3] @ self.along))
        springs = system.springs
        if len(springs):
            acts = groups[np.maximum(system.slot_group[springs.slots].max(1), 0)]
            both = mean[springs.slots]
            give = -springs.tension[:, None] * springs.row * acts[:, None]
            power = (give * both.reshape(len(give), 12)).sum(1)
            sums[SPRINGS] += part * power.sum()
            sums[GROSS] += part * abs(power).sum()
            sums[DRIVES] -= part * self._held(springs.slots, give, both)
        for j, row in system.pushes(time):
            if mine[j]:
                both = mean[t.slot[j]]
                power = float(row @ both.reshape(12))
                sums[MOTORS] += part * power
                sums[GROSS] += part * abs(power)
                sums[DRIVES] -= part * self._held(t.slot[j][None], row[None], both[None])

    def stops(self, stops):
        """The rows of limits and of motors of limited strength gave their impulses in this stage."""
        if not len(stops):
            return
        t = self.system.table
        both = 0.5 * (self.velocity + t.velocity)[t.slot[stops.joint]]
        give = stops.impulse[:, None] * stops.row
        work = (give * both.reshape(len(give), 12)).sum(1)
        strong = np.array([motor is not None for motor in stops.motor])
        self.sums[MOTORS] += work[strong].sum()
        self.sums[LIMITS] += work[~strong].sum()
        self.sums[GROSS] += abs(work).sum()
        self.sums[DRIVES] -= self._held(t.slot[stops.joint], give, both)

    def _rows(self, mean, slot, jacobian, impulse):
        """Rows of joints gave these impulses (j,6) at these mean velocities (k,6)."""
        both = mean[slot]
        work = impulse * np.einsum("jrk,jk->jr", jacobian, both.reshape(len(slot), 12))
        moved = self.moved
        self.sums[MOTORS] += work[moved].sum()
        self.sums[GROSS] += abs(work[moved]).sum()
        self.sums[JOINTS] += work[~moved].sum()
        self.sums[DRIVES] -= self._held(slot, np.einsum("jr,jrk->jk", impulse, jacobian), both)

    def _held(self, slot, give, both):
        """What impulses or forces give (j,12) do to bodies in these slots (j,2) that nobody can push, at velocities both (j,2,6)."""
        held = self.system.table.lightness[slot] == 0.0
        return float((give.reshape(-1, 2, 6) * both * held[:, :, None]).sum())


@contextmanager
def counted(system, groups, time, part):
    """Within the block velocities of these groups (g,) of a JointSystem change by impulses, and by forces that act for `part` [s] from `time` on."""
    if system.account is None:
        yield
        return
    system.account.begin()
    yield
    system.account.end(groups, time, part, alone=True)

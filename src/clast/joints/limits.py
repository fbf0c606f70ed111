"""Limits of joints and motors of limited strength: rows that hold only in one direction, or only up to a force.

There are few, so they are solved after the joints, group by group, which know nothing of each other, as a small complementarity problem in their impulses z:
low <= z <= high, and the velocity w = L v + bias is zero where z lies between, positive at low, negative at high. The joints
stay obeyed, because the response U of the velocities to a unit of z is taken with all joints in place.
"""

import math
from typing import NamedTuple

import numpy as np

SOFT = 0.2  # part of an overshoot that is taken back in a step
SWEEPS = 200


class Part(NamedTuple):
    """Rows of one group, and what they do with all its joints in place."""

    rows: np.ndarray  # (k,) of Stops
    slots: np.ndarray  # (m,) free bodies of the group
    joints: np.ndarray  # (n,) of the assembly
    change: np.ndarray  # (k,m,6) U, of the velocities of these bodies, per unit of z
    reaction: np.ndarray  # (k,n,6) what joints do meanwhile
    matrix: np.ndarray  # (k,k) L U


class Stops:
    """The limits and limited motors of a scene. system: the JointSystem."""

    def __init__(self, system):
        self.system = system
        limits = system.joints.limits
        self.limited = np.flatnonzero(np.isfinite(limits).any(1)).tolist()
        self.clear()

    def clear(self):
        """No row is near."""
        self.joint = np.zeros(0, np.int64)  # (k,) place in the assembly
        self.row = np.zeros((0, 12))
        self.bias, self.low, self.high, self.impulse = np.zeros(0), np.zeros(0), np.zeros(0), np.zeros(0)
        self.parts = []  # of each group that has any its rows, see Part
        self.motor = []

    def __len__(self):
        return len(self.bias)

    def find(self, t, time, dt):
        """The rows that may act within a step of length dt from `time`; returns a mask of the groups that have any."""
        system = self.system
        held = np.zeros(system.group_count, bool)
        if not self.limited and not system.goals.bounded:
            return held
        found = [*self.near_limits(t, dt), *self.strong_motors(t, time, dt)]
        self.clear()
        if found:
            joint, row, bias, low, high, motor = zip(*found, strict=True)
            self.motor = list(motor)
            self.joint, self.row = np.array(joint), np.array(row)
            self.bias, self.low, self.high = np.array(bias), np.array(low), np.array(high)
            self.impulse = np.zeros(len(found))
            group = system.joint_group[self.joint]
            self.parts = [self.respond(t, g, np.flatnonzero(group == g)) for g in np.unique(group).tolist()]
            held[group] = True
        return held

    def near_limits(self, t, dt):
        """Rows of limits that may be reached within a step, as `find` takes them."""
        system = self.system
        for k in self.limited:
            j = int(system.place[k])
            if not system.here[system.joint_group[j]]:
                continue
            # The angle of a hinge, the shift of a slider or cylinder.
            which = 1 if system.scene.joints[k].slides else 0
            row = system.coordinate_row(j, which)
            speed = float(row @ np.concatenate([t.velocity[t.slot[j, 0]], t.velocity[t.slot[j, 1]]]))
            for limit, sign in zip(system.joints.limits[k].tolist(), (1.0, -1.0), strict=True):
                gap = sign * (t.coordinate[j, which] - limit)
                if gap < 2.0 * abs(speed) * dt + 1e-3:
                    yield j, sign * row, (gap if gap > 0.0 else SOFT * gap) / dt, 0.0, math.inf, None

    def strong_motors(self, t, time, dt):
        """Rows of motors of limited strength, as `find` takes them."""
        system = self.system
        for k, motor in system.goals.bounded:
            j, which = int(system.place[motor.joint]), 0 if motor.turning else 1
            if not system.here[system.joint_group[j]]:
                continue
            goal, rate = system.goals.target(k, motor, time, dt, 1e-3 * dt)
            if motor.what in ("spin", "speed"):
                bias = -rate
            else:
                bias = (t.coordinate[j, which] - goal) / dt
            yield j, system.coordinate_row(j, which), bias, -motor.most * dt, motor.most * dt, k

    def respond(self, t, group, rows):
        """What these rows of a group do: Part."""
        system = self.system
        kept = t.velocity.copy(), t.impulse.copy(), t.rate.copy()
        slots = t.group_slot[t.slot_start[group] : t.slot_start[group + 1]]
        joints = np.arange(t.group_start[group], t.group_start[group + 1])
        alone = np.arange(system.group_count) == group
        change, reaction = np.zeros((len(rows), len(slots), 6)), np.zeros((len(rows), len(joints), 6))
        a, b = t.slot[self.joint[rows]].T
        matrix = np.zeros((len(rows), len(rows)))
        t.rate[:] = 0.0
        for k, i in enumerate(rows.tolist()):
            load, j = np.zeros_like(t.velocity), self.joint[i]
            load[t.slot[j, 0]] += self.row[i, :6]
            load[t.slot[j, 1]] += self.row[i, 6:]
            t.velocity[:] = system.accelerations(load)
            t.impulse[:] = 0.0
            system.solve_slots(alone)
            change[k], reaction[k] = t.velocity[slots], t.impulse[joints]
            matrix[:, k] = (self.row[rows] * np.concatenate([t.velocity[a], t.velocity[b]], axis=1)).sum(1)
        t.velocity[:], t.impulse[:], t.rate[:] = kept
        return Part(rows, slots, joints, change, reaction, matrix)

    def solve(self, t, fresh):
        """Impulses of all rows, in place in the velocities of slots. fresh: those velocities know of none yet."""
        if fresh:
            self.impulse[:] = 0.0
        for part in self.parts:
            rows, start = part.rows, self.impulse[part.rows]
            a, b = t.slot[self.joint[rows]].T
            both = np.concatenate([t.velocity[a], t.velocity[b]], axis=1)
            speed = (self.row[rows] * both).sum(1) + self.bias[rows]
            new = box_problem(part.matrix, speed - part.matrix @ start, self.low[rows], self.high[rows], start)
            step, self.impulse[rows] = new - start, new
            t.velocity[part.slots] += np.tensordot(step, part.change, 1)
            t.impulse[part.joints] += np.tensordot(step, part.reaction, 1)

    def wrenches(self, dt, count):
        """What the rows do to body b of their joints per time, (count,6) about b's centre, and per motor {motor: effort}."""
        total = np.zeros((count, 6))
        for j, row, z in zip(self.joint.tolist(), self.row, self.impulse, strict=True):
            total[j] += z / dt * row[6:]
        return total, {k: float(z) / dt for k, z in zip(self.motor, self.impulse, strict=True) if k is not None}


def box_problem(matrix, q, low, high, start):
    """z with low <= z <= high and w = matrix z + q: zero between, not negative at low, not positive at high."""
    z = np.clip(start, low, high)
    size = np.maximum(matrix.diagonal(), 1e-300)
    for _ in range(1 if len(z) == 1 else SWEEPS):
        before = z.copy()
        for i in range(len(z)):
            z[i] = min(max(z[i] - (matrix[i] @ z + q[i]) / size[i], low[i]), high[i])
        if abs(z - before).max() <= 1e-14 * abs(z).max():
            break
    return z

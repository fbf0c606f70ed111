"""Limits of joints and motors of limited strength: rows that hold only in one direction, or only up to a force.

There are few, so they are solved after the joints, group by group, as a small complementarity problem in their impulses z:
low <= z <= high, and the velocity w = L v + bias is zero where z lies between, positive at low, negative at high. The joints
stay obeyed, because the response U of the velocities to a unit of z is taken with all joints in place.
"""

import math

import numpy as np

SOFT = 0.2  # part of an overshoot that is taken back in a step
SWEEPS = 200


class Stops:
    """The limits and limited motors of a scene. system: the JointSystem."""

    def __init__(self, system):
        self.system = system
        limits = system.joints.limits
        self.limited = np.flatnonzero(np.isfinite(limits).any(1)).tolist()
        self.clear(0)

    def clear(self, count):
        """No row is near."""
        self.joint = np.zeros(0, np.int64)  # (k,) place in the assembly
        self.row = np.zeros((0, 12))
        self.bias, self.low, self.high, self.impulse = np.zeros(0), np.zeros(0), np.zeros(0), np.zeros(0)
        self.change = np.zeros((0, count, 6))  # U
        self.reaction = np.zeros((0, 0, 6))  # what joints do meanwhile, per unit of z
        self.matrix = np.zeros((0, 0))
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
        self.clear(len(t.lightness))
        if found:
            joint, row, bias, low, high, motor = zip(*found, strict=True)
            self.motor = list(motor)
            self.joint, self.row = np.array(joint), np.array(row)
            self.bias, self.low, self.high = np.array(bias), np.array(low), np.array(high)
            self.impulse = np.zeros(len(found))
            self.respond(t)
            held[np.searchsorted(t.group_start, self.joint, side="right") - 1] = True
        return held

    def near_limits(self, t, dt):
        """Rows of limits that may be reached within a step, as `find` takes them."""
        system = self.system
        for k in self.limited:
            j = int(system.place[k])
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
            goal, rate = system.goals.target(k, motor, time, dt, 1e-3 * dt)
            if motor.what in ("spin", "speed"):
                bias = -rate
            else:
                bias = (t.coordinate[j, which] - goal) / dt
            yield j, system.coordinate_row(j, which), bias, -motor.most * dt, motor.most * dt, k

    def respond(self, t):
        """U and what joints do, for each row."""
        system, count = self.system, len(self.bias)
        kept = t.velocity.copy(), t.impulse.copy(), t.rate.copy()
        self.change = np.zeros((count, *t.velocity.shape))
        self.reaction = np.zeros((count, *t.impulse.shape))
        t.rate[:] = 0.0
        for i, j in enumerate(self.joint.tolist()):
            load = np.zeros_like(t.velocity)
            load[t.slot[j, 0]] += self.row[i, :6]
            load[t.slot[j, 1]] += self.row[i, 6:]
            t.velocity[:] = system.accelerations(load)
            t.impulse[:] = 0.0
            system.solve_slots(system.everyone)
            self.change[i], self.reaction[i] = t.velocity, t.impulse
        t.velocity[:], t.impulse[:], t.rate[:] = kept
        a, b = t.slot[self.joint].T
        self.matrix = np.array([(self.row * np.concatenate([u[a], u[b]], axis=1)).sum(1) for u in self.change]).T

    def solve(self, t, fresh):
        """Impulses of all rows, in place in the velocities of slots. fresh: those velocities know of none yet."""
        if not len(self):
            return
        if fresh:
            self.impulse[:] = 0.0
        a, b = t.slot[self.joint].T
        speed = (self.row * np.concatenate([t.velocity[a], t.velocity[b]], axis=1)).sum(1) + self.bias
        new = box_problem(self.matrix, speed - self.matrix @ self.impulse, self.low, self.high, self.impulse)
        step = new - self.impulse
        self.impulse = new
        t.velocity[:] += np.tensordot(step, self.change, 1)
        t.impulse[:] += np.tensordot(step, self.reaction, 1)

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

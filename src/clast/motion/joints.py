"""Joints in motion: the bodies they hold together keep their velocities, and where they go, within what the joints allow.

One step of length h for bodies that touch nothing is the second-order scheme RATTLE (Andersen 1983), here with rotations:

    v += h/2 M^-1 f                  `forces`, `solve`: J v = -rate
    v += M^-1 J^T lambda             `aim`: so that the drift ends with closed joints, Psi = 0
    drift: x += h v, free rotation
    J, S at the new poses            `prepare`
    v += h/2 M^-1 f                  `forces(ahead=True)`
    v += M^-1 J^T lambda             `end`: J v = -rate

Bodies that touch others take the whole kick and the impulses of contacts before `aim`; `end` leaves them alone.

Reactions of bodies that touch nothing are those of the present moment: with Psi'' the second derivative of the violation along
the free motion, lambda = -S^-1 (J M^-1 f + Psi''). The multipliers of a half step would be wrong by a term of order h.
Reactions of bodies that touch others are the impulses of the step divided by its length.
"""

from typing import NamedTuple

import numpy as np

from .. import drives
from ..backend import kernel
from ..tables import BY_AXES, DRIVEN, FREE, ROD
from ..vec import rotation_matrices
from . import joint_rows
from .elimination import connected, order_of, pattern
from .joint_rows import NEWTON, ROWS, Assembly
from .springs import SpringSystem

DELTA = 1e-3  # part of a step over which the rate of a user's function is taken
GLANCE = 0.2  # part of a step over which the curvature of the free motion is taken


class Reactions(NamedTuple):
    """What joints do to their body b, one row per joint in the order of adding; body a gets the opposite."""

    force: np.ndarray  # (j,3) [N], world axes
    torque: np.ndarray  # (j,3) [N m], world axes, about the joint's point on b
    point: np.ndarray  # (j,3) [m], the joint's point on b
    local_force: np.ndarray  # (j,3) [N], in the axes of the joint as a has them
    local_torque: np.ndarray  # (j,3) [N m]
    effort: np.ndarray  # (j,2) torque [N m] and force [N] of motors that impose a motion; contained in the above
    coordinate: np.ndarray  # (j,2) angle about z [rad] and shift along z or distance [m]


class LimitRows(NamedTuple):
    """Limits that may be reached within a step: jacobian . velocities + bias >= 0, held by an impulse >= 0."""

    body: np.ndarray  # (k,2) int64, rows of Bodies; -1 is the world
    jacobian: np.ndarray  # (k,12)
    bias: np.ndarray  # (k,) [rad/s] or [m/s], distance to the limit over the step
    joint: np.ndarray  # (k,) int64, number of the joint


class JointSystem:
    """All joints, springs and motors of a scene while it moves. box: the periodic world, tables.Box."""

    def __init__(self, scene, box):
        self.joints, springs = scene.joint_tables()
        self.scene = scene
        self.apart = scene.apart
        self.edges = (*box.length.tolist(), *box.inverse.tolist())
        self.springs = SpringSystem(scene, springs, self)
        self.lengths = [(k, joint.function) for k, joint in enumerate(scene.joints) if joint.function is not None]
        self.drivers = [(k, motor) for k, motor in enumerate(scene.motors) if motor.imposing]
        self.pushers = [motor for motor in scene.motors if not motor.imposing]
        self.goal = np.zeros((len(self.joints.kind), 3))
        self.goal[:, 0] = self.joints.length
        self.travelled = np.zeros(len(scene.motors))  # what motors of spin and speed have gone so far
        self.coordinate = np.zeros((len(self.joints.kind), 2))
        self.numbers = np.unique(np.concatenate([self.joints.body.reshape(-1), springs.body.reshape(-1)]))
        self.numbers = self.numbers[self.numbers >= 0]
        self._kernels = {
            name: kernel(getattr(joint_rows, f"{name}_group"), grain=2) for name in ("prepare", "solve", "aim")
        }
        self.table = None
        self.time, self.dt = 0.0, 0.0  # of the last `prepare`
        self._reactions = None  # of the present moment, if they have been asked for

    def __len__(self):
        return len(self.joints.kind)

    # Where bodies stand in memory.

    def renew(self, bodies):
        """Take note of the rows in which the bodies stand now; the first time, set everything up."""
        order = np.argsort(bodies.number, kind="stable")
        place = np.searchsorted(bodies.number, self.numbers, sorter=order)
        found = order[np.minimum(place, len(order) - 1)]
        if len(self.numbers) and not (bodies.number[found] == self.numbers).all():
            gone = self.numbers[bodies.number[found] != self.numbers]
            raise ValueError(
                f"body {gone[0]} is gone, but a joint or spring holds it; keep outlets away from joined bodies"
            )
        self.rows = found
        if self.table is None:
            self._assemble(bodies)
        self.count = len(bodies.number)
        self.groups = np.full(self.count, -1, np.int32)
        self.groups[self.rows] = np.where(self.table.lightness[:-1] > 0.0, self.slot_group[:-1], -1)
        self.driven = [
            (slot, int(row), self.scene.drives[int(bodies.number[row])])
            for slot, row in enumerate(self.rows)
            if bodies.motion[row] == DRIVEN and int(bodies.number[row]) in self.scene.drives
        ]

    def _assemble(self, bodies):
        """Slots, groups, the order of elimination, and all arrays."""
        world = len(self.numbers)
        slots = np.where(self.joints.body >= 0, np.searchsorted(self.numbers, self.joints.body), world)
        pulled = np.where(self.springs.table.body >= 0, np.searchsorted(self.numbers, self.springs.table.body), world)
        rows = self.rows
        free = np.append(bodies.motion[rows] == FREE, False)
        links = [(a, b) for a, b in np.concatenate([slots, pulled]).tolist() if free[a] and free[b]]
        group = connected(world + 1, links)
        # Groups of free bodies only, counted from 0.
        names = np.unique(group[free])
        group = np.where(free, np.searchsorted(names, group), -1)
        self.slot_group, self.group_count = group.astype(np.int32), len(names)
        owner = np.where(free[slots[:, 0]], group[slots[:, 0]], group[slots[:, 1]])
        order, met = eliminate_by_group(slots, free, owner, self.group_count)
        self.order = np.array(order, dtype=np.int64)  # row of Joints of each joint in the assembly
        column_start, block_row, target_start, target = pattern(order, met)
        table, chosen = self.joints, self.order
        members = [np.flatnonzero(group == g) for g in range(self.group_count)]
        j, k = len(order), world + 1
        scale = np.append(bodies.scale[rows] ** 2, 1.0)
        inertia, inverse = np.tile(np.eye(3), (k, 1, 1)), np.tile(np.eye(3), (k, 1, 1))
        mold = bodies.mold[rows[free[:-1]]]
        inertia[free] = self.scene.molds.inertia[mold] * scale[free, None, None]
        inverse[free] = np.linalg.inv(inertia[free])
        lightness = np.zeros(k)
        lightness[free] = 1.0 / bodies.mass[rows[free[:-1]]]
        turn = np.zeros((k, 4))
        turn[:, 0] = 1.0
        turning = table.locked.sum(1) + table.motor.sum(1) + (table.kind != BY_AXES) + (table.kind == ROD)
        self.table = Assembly(
            position=np.zeros((k, 3)),
            orientation=turn,
            velocity=np.zeros((k, 6)),
            next_position=np.zeros((k, 3)),
            next_orientation=turn.copy(),
            lightness=lightness,
            inertia=inertia,
            inverse=inverse,
            slot=np.ascontiguousarray(slots[chosen], dtype=np.int32),
            kind=table.kind[chosen],
            locked=table.locked[chosen],
            point=table.point[chosen],
            frame=table.frame[chosen],
            rise=table.rise[chosen],
            motor=table.motor[chosen],
            goal=self.goal[chosen],
            goal_rate=np.zeros((j, 3)),
            rows=turning[chosen].astype(np.int8),
            coordinate=self.coordinate[chosen],
            violation=np.zeros((j, ROWS)),
            rate=np.zeros((j, ROWS)),
            jacobian=np.zeros((j, ROWS, 12)),
            response=np.zeros((j, ROWS, 12)),
            impulse=np.zeros((j, ROWS)),
            right=np.zeros((j, ROWS)),
            group_start=np.searchsorted(owner[chosen], np.arange(self.group_count + 1)).astype(np.int32),
            slot_start=np.cumsum([0, *map(len, members)]).astype(np.int32),
            group_slot=np.concatenate([*members, np.zeros(0, np.int64)]).astype(np.int32),
            column_start=column_start,
            block_row=block_row,
            block=np.zeros((len(block_row), ROWS, ROWS)),
            diagonal=np.zeros((j, ROWS)),
            target_start=target_start,
            target=target,
            worst=np.zeros(self.group_count),
        )
        self.inverse_order = np.argsort(self.order)
        self.everyone = np.ones(self.group_count, bool)
        self.touching = ~self.everyone
        self.pressed = np.zeros((j, ROWS))  # impulses over time of the last step
        self._scratch = np.zeros((j, ROWS, 12))
        self.springs.place(pulled)
        self.kicked = np.zeros((k, 6))  # velocities when the step began
        self.gained = np.zeros((k, 6))  # by the first kick of the step

    # One step, piece by piece.

    def prepare(self, bodies, time, dt):
        """Equations of all joints at the present poses, time [s], and their factorisation; for steps of length dt."""
        t = self.table
        t.position[:-1] = bodies.position[self.rows]
        t.orientation[:-1] = bodies.orientation[self.rows]
        self.time, self.dt, self._reactions = time, dt, None
        if not len(self):
            return
        self._set_goals(time, 0.0, dt)
        self._kernels["prepare"](self.group_count, t, self.edges)

    def begin(self):
        """Forget the impulses of the last step."""
        self.table.impulse[:] = 0.0

    def solve(self, velocity, groups=None):
        """Change velocities (n,6) in place so that they obey the joints; groups: mask (g,), default all.

        velocity: of all bodies, velocity [m/s] then spin [rad/s] in world axes.
        """
        if len(self):
            self.table.velocity[:-1] = velocity[self.rows]
            self._kernels["solve"](self.group_count, self.table, self.everyone if groups is None else groups)
            velocity[self.rows] = self.table.velocity[:-1]

    def aim(self, velocity, dt):
        """Change velocities (n,6) in place so that a drift over dt closes all joints.

        The drift must be x += dt v and, for the rotation, `clast.motion.integrate.tumble`. Returns the largest violation
        that is left, [m] or [rad].
        """
        t = self.table
        t.velocity[:-1] = velocity[self.rows]
        worst = 0.0
        if len(self):
            self._look_ahead(dt, dt)
            self._kernels["aim"](self.group_count, t, self.everyone, self.edges, dt, NEWTON, self._scratch)
            velocity[self.rows] = t.velocity[:-1]
            worst = float(t.worst.max(initial=0.0))
            for k, motor in self.drivers:
                if motor.what in ("spin", "speed"):
                    self.travelled[k] = self._gone(k, motor, self.time, dt)
        np.subtract(t.velocity, self.kicked, out=self.gained)
        return worst

    def end(self, velocity, dt, touching=None):
        """The end of a step: velocities (n,6) obey the joints at their new poses, and reactions can be read.

        touching: mask (g,) of groups that took a whole kick and the impulses of contacts at the start; default none.
        """
        t = self.table
        self.touching = ~self.everyone if touching is None else touching
        t.velocity[:-1] = velocity[self.rows]
        self._reactions = None
        if len(self):
            self.pressed = t.impulse / dt
            self.solve(velocity, ~self.touching)

    def forces(self, bodies, velocity, time, *, ahead=False):
        """Force [N] and torque [N m] about the centre of mass, (n,3) each, of springs, dampers and motors of force.

        ahead: at the end of a step, where the second kick is still to come; dampers then see the velocity after it, as far as
        the first kick tells.
        """
        t = self.table
        force, torque = np.zeros((self.count, 3)), np.zeros((self.count, 3))
        t.velocity[:-1] = velocity[self.rows]
        if not ahead:
            self.kicked[:] = t.velocity
        if len(self.springs) or self.pushers:
            t.position[:-1] = bodies.position[self.rows]
            t.orientation[:-1] = bodies.orientation[self.rows]
            rates = t.velocity + self.gained if ahead else t.velocity
            load = np.zeros((len(t.lightness), 6))
            self.springs.pull(t, rates, time, self.edges, load)
            self._push(time, load)
            force[self.rows], torque[self.rows] = load[:-1, :3], load[:-1, 3:]
        return force, torque

    def limit_rows(self, dt):
        """The limits that could be reached within this step at twice the present speed, as LimitRows."""
        t, limits = self.table, self.joints.limits[self.order]
        near = []
        for j in np.flatnonzero(np.isfinite(limits).any(1)).tolist():
            which = 0 if not t.locked[j, 5] and t.locked[j, 3] else 1
            value = t.coordinate[j, which]
            row = self._coordinate_row(j, which)
            a, b = t.slot[j]
            speed = row @ np.concatenate([t.velocity[a], t.velocity[b]])
            reach = 2.0 * abs(speed) * dt + 1e-3
            for limit, sign in ((limits[j, 0], 1.0), (limits[j, 1], -1.0)):
                gap = sign * (value - limit)
                if gap < reach:
                    near.append((self._row_of(a), self._row_of(b), sign * row, gap / dt, self.order[j]))
        return LimitRows(
            body=np.array([one[:2] for one in near], dtype=np.int64).reshape(-1, 2),
            jacobian=np.array([one[2] for one in near], dtype=float).reshape(-1, 12),
            bias=np.array([one[3] for one in near], dtype=float),
            joint=np.array([one[4] for one in near], dtype=np.int64),
        )

    @property
    def reactions(self):
        """Reactions of all joints at the end of the last step, in the order of adding."""
        if self._reactions is None:
            self._reactions = self._read(self._present_multipliers())
        return self._reactions

    @property
    def violation(self):
        """Largest violation of each joint at the poses of the last `prepare`, [m] or [rad], (j,), in the order of adding."""
        return abs(self.table.violation).max(1, initial=0.0)[self.inverse_order]

    # What must survive a restart.

    def state(self):
        """Arrays that a restart needs: {"coordinate": (j,2), "travelled": (m,)}."""
        return {"coordinate": self.table.coordinate[self.inverse_order], "travelled": self.travelled.copy()}

    def restore(self, state):
        """Take up what `state` returned."""
        self.coordinate[:] = state["coordinate"]
        self.travelled[:] = state["travelled"]
        if self.table is not None:
            self.table.coordinate[:] = self.coordinate[self.order]

    # Goals of motors and actuators.

    def _look_ahead(self, ahead, dt):
        """Goals, and poses of bodies that are not free, at a time `ahead` from now."""
        t = self.table
        self._set_goals(self.time, ahead, dt)
        t.next_position[:] = t.position
        t.next_orientation[:] = t.orientation
        if ahead:
            for slot, _, drive in self.driven:
                t.next_position[slot], t.next_orientation[slot] = driven_pose(
                    drive, t.position[slot], t.orientation[slot], self.time, ahead
                )

    def _set_goals(self, time, ahead, dt):
        """Write what actuators and motors impose at time + ahead, and its rate."""
        if not self.lengths and not self.drivers:
            return
        t, delta, when = self.table, DELTA * dt, time + ahead
        for k, function in self.lengths:
            j = self.inverse_order[k]
            t.goal[j, 0] = function(when)
            t.goal_rate[j, 0] = (function(when + delta) - function(when - delta)) / (2.0 * delta)
        for k, motor in self.drivers:
            j, column = self.inverse_order[motor.joint], 1 if motor.turning else 2
            if motor.what in ("spin", "speed"):
                t.goal[j, column] = self._gone(k, motor, time, ahead)
                t.goal_rate[j, column] = motor.value if motor.function is None else motor.function(when)
            elif motor.function is not None:
                t.goal[j, column] = motor.function(when)
                t.goal_rate[j, column] = (motor.function(when + delta) - motor.function(when - delta)) / (2.0 * delta)

    def _gone(self, k, motor, time, ahead):
        """What a motor of spin or speed has gone at time + ahead: closed form, or one step by the midpoint rule."""
        if motor.function is None:
            return motor.value * (time + ahead)
        return self.travelled[k] + ahead * motor.function(time + 0.5 * ahead)

    def _push(self, time, load):
        """Forces and torques of motors, added to load (k,6)."""
        t = self.table
        for motor in self.pushers:
            j = self.inverse_order[motor.joint]
            value = motor.value if motor.function is None else float(motor.function(time))
            row = value * self._coordinate_row(j, 0 if motor.turning else 1)
            a, b = t.slot[j]
            load[a] += row[:6]
            load[b] += row[6:]

    def _coordinate_row(self, j, which):
        """The row (12,) that gives the rate of the angle (0) or shift (1) of joint j of the assembly."""
        t = self.table
        a, b = t.slot[j]
        turns = rotation_matrices(t.orientation[[a, b]])
        z = turns[0] @ rotation_matrices(t.frame[j, :1])[0][:, 2]
        zero = np.zeros(3)
        if which == 0:
            return np.concatenate([zero, -z, zero, z])
        ra, rb = turns[0] @ t.point[j, 0], turns[1] @ t.point[j, 1]
        return np.concatenate([-z, -np.cross(ra + t.coordinate[j, 1] * z, z), z, np.cross(rb, z)])

    def _row_of(self, slot):
        return -1 if slot == len(self.rows) else int(self.rows[slot])

    def _present_multipliers(self):
        """Forces and torques (j,6) of all rows at the present moment, in the order of the assembly."""
        t, delta = self.table, GLANCE * self.dt
        if not len(self):
            return np.zeros((0, ROWS))
        kept = t.velocity.copy(), t.impulse.copy(), t.rate.copy(), t.violation.copy()
        bend = np.zeros_like(t.violation)
        for ahead, weight in ((delta, 1.0), (-delta, 1.0), (0.0, -2.0)):
            self._look_ahead(ahead, self.dt)
            self._kernels["aim"](self.group_count, t, self.everyone, self.edges, ahead, 0, self._scratch)
            bend += weight * t.violation
        load = np.zeros((len(t.lightness), 6))
        self.springs.pull(t, t.velocity, self.time, self.edges, load)
        self._push(self.time, load)
        turns = rotation_matrices(t.orientation)
        inverse = np.einsum("kxy,kyz,kwz->kxw", turns, t.inverse, turns)
        free = t.lightness > 0.0
        t.velocity[:, :3] = t.lightness[:, None] * load[:, :3] + np.where(free[:, None], self.scene.gravity, 0.0)
        t.velocity[:, 3:] = t.lightness[:, None] * np.einsum("kxy,ky->kx", inverse, load[:, 3:])
        t.rate[:] = bend / delta**2
        t.impulse[:] = 0.0
        self._kernels["solve"](self.group_count, t, self.everyone)
        force = np.where(np.repeat(self.touching, np.diff(t.group_start))[:, None], self.pressed, t.impulse)
        t.velocity[:], t.impulse[:], t.rate[:], t.violation[:] = kept
        return force

    def _read(self, force):
        """Reactions from the forces and torques of rows (j,6), in the order of the assembly."""
        t, back = self.table, self.inverse_order
        total = np.einsum("jr,jrk->jk", force, t.jacobian[:, :, 6:])
        a, b = t.slot[:, 0], t.slot[:, 1]
        turn_b = rotation_matrices(t.orientation[b])
        arm = np.einsum("jxy,jy->jx", turn_b, t.point[:, 1])
        torque = total[:, 3:] - np.cross(arm, total[:, :3])
        axes = np.einsum("jxy,jyz->jxz", rotation_matrices(t.orientation[a]), rotation_matrices(t.frame[:, 0]))
        effort = np.zeros((len(a), 2))
        last = np.arange(len(a)), t.rows.astype(np.int64) - 1
        effort[:, 1] = np.where(t.motor[:, 1], force[last], 0.0)
        before = last[0], last[1] - t.motor[:, 1]
        effort[:, 0] = np.where(t.motor[:, 0], force[before], 0.0)
        return Reactions(
            force=total[back, :3],
            torque=torque[back],
            point=(t.position[b] + arm)[back],
            local_force=np.einsum("jxy,jx->jy", axes, total[:, :3])[back],
            local_torque=np.einsum("jxy,jx->jy", axes, torque)[back],
            effort=effort[back],
            coordinate=t.coordinate[back],
        )


def eliminate_by_group(slots, free, owner, groups):
    """The order of elimination of all joints, group after group, and for each the joints it still meets.

    slots (j,2); free: mask of slots; owner (j,): the group of each joint.
    """
    order, met = [], []
    at = [[] for _ in free]  # joints at each free body
    for j, pair in enumerate(slots.tolist()):
        for s in pair:
            if free[s]:
                at[s].append(j)
    members = np.argsort(owner, kind="stable")
    start = np.searchsorted(owner[members], np.arange(groups + 1))
    for g in range(groups):
        mine = members[start[g] : start[g + 1]].tolist()
        local = {j: i for i, j in enumerate(mine)}
        near = [{local[k] for s in slots[j].tolist() if free[s] for k in at[s]} - {local[j]} for j in mine]
        chain, meets = order_of(near)
        order += [mine[i] for i in chain]
        met += [{mine[i] for i in one} for one in meets]
    return order, met


def driven_pose(drive, position, orientation, time, dt):
    """Position and orientation of a driven body at time + dt."""
    if drive.function is None:
        return drives.pose(drive, time + dt)[:2]
    return drives.advance(drive, tuple(position), tuple(orientation), time, dt)[:2]

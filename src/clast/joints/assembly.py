"""The tables of a JointSystem, made once: which bodies are in which slot, which joints make a group, and in what order they are eliminated."""

import numpy as np

from ..tables import FREE
from .elimination import eliminate_by_group, grouped, pattern
from .rows import ROWS, Assembly


def assemble(system, bodies):
    """Set up slots, groups, the order of elimination and all arrays of a JointSystem; bodies: Bodies in its slots, in their order."""
    table, world = system.joints, len(system.numbers)
    slots = np.where(table.body >= 0, np.searchsorted(system.numbers, table.body), world)
    pulled = system.springs.place(system.numbers, world)
    free = np.append(bodies.motion == FREE, False)
    group, system.group_count = grouped(np.concatenate([slots, pulled]), free)
    system.slot_group = group.astype(np.int32)
    owner = np.where(free[slots[:, 0]], group[slots[:, 0]], group[slots[:, 1]])
    order, met = eliminate_by_group(slots, free, owner, system.group_count)
    system.order = chosen = np.array(order, dtype=np.int64)  # row of Joints of each joint in the assembly
    system.place = np.argsort(chosen)  # the other way round
    system.joint_group = owner[chosen]
    column_start, block_row, target_start, target = pattern(order, met)
    members = [np.flatnonzero(group == g) for g in range(system.group_count)]
    j, k = len(order), world + 1
    inertia, lightness = np.tile(np.eye(3), (k, 1, 1)), np.zeros(k)
    mine = free[:-1]
    inertia[free] = system.scene.molds.inertia[bodies.mold[mine]] * (bodies.scale[mine] ** 2)[:, None, None]
    lightness[free] = 1.0 / bodies.mass[mine]
    turn = np.tile([1.0, 0.0, 0.0, 0.0], (k, 1))
    demanded = table.locked.sum(1) + table.motor.sum(1) + table.held.sum(1)
    goal = np.zeros((j, 3))
    goal[:, 0] = table.length[chosen]
    system.table = Assembly(
        position=np.zeros((k, 3)),
        orientation=turn,
        velocity=np.zeros((k, 6)),
        next_position=np.zeros((k, 3)),
        next_orientation=turn.copy(),
        next_spin=np.zeros((k, 3)),
        lightness=lightness,
        inertia=inertia,
        inverse=np.linalg.inv(inertia),
        slot=np.ascontiguousarray(slots[chosen], dtype=np.int32),
        held=table.held[chosen],
        locked=table.locked[chosen],
        point=table.point[chosen],
        frame=table.frame[chosen],
        rise=table.rise[chosen],
        motor=table.motor[chosen],
        goal=goal,
        goal_rate=np.zeros((j, 3)),
        rows=demanded[chosen].astype(np.int8),
        coordinate=np.zeros((j, 2)),
        violation=np.zeros((j, ROWS)),
        rate=np.zeros((j, ROWS)),
        jacobian=np.zeros((j, ROWS, 12)),
        response=np.zeros((j, ROWS, 12)),
        impulse=np.zeros((j, ROWS)),
        right=np.zeros((j, ROWS)),
        group_start=np.searchsorted(system.joint_group, np.arange(system.group_count + 1)).astype(np.int32),
        slot_start=np.cumsum([0, *map(len, members)]).astype(np.int32),
        group_slot=np.concatenate([*members, np.zeros(0, np.int64)]).astype(np.int32),
        column_start=column_start,
        block_row=block_row,
        block=np.zeros((len(block_row), ROWS, ROWS)),
        diagonal=np.zeros((j, ROWS)),
        target_start=target_start,
        target=target,
        worst=np.zeros(system.group_count),
    )
    system.scratch = np.zeros((j, ROWS, 12))
    system.here = np.ones(system.group_count, bool)  # groups that this process moves
    system.touching = ~system.here  # groups that took the whole kick in this step
    system.held = ~system.here  # groups that stand at a limit or have a motor of limited strength
    system.felt = np.zeros((j, ROWS))  # forces of rows in the last step of groups that touch nothing,
    system.known = ~system.here  # of groups that have taken one
    system.arm = np.sqrt((system.table.point**2).sum(2))  # (j,2) [m]
    system.least = np.linalg.eigvalsh(inertia)[:, 0]  # (k,) [m^2], smallest moment of inertia per mass
    system.start = np.zeros((k, 6))  # velocities when the step began
    system.pressed = np.zeros((j, ROWS)), np.zeros((j, 6)), {}  # of groups that touch: see `reactions`

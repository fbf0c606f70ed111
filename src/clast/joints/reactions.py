"""What joints do to the bodies they hold.

Reactions in groups that touch nothing are those of the present moment: with Psi'' the second derivative of the violations along
the free motion, lambda = -S^-1 (J M^-1 f + Psi''). The multipliers of a half step would be wrong by a term of order h.
Reactions in groups that touch something are the impulses of the last step divided by its length.
"""

from typing import NamedTuple

import numpy as np

from .springs import cross, turns_of

GLANCE = 0.2  # part of a step over which the curvature of the free motion is taken
OPEN = 1e-2  # violation, as a part of a typical radius or in rad, from which a joint does not hold
FASTEST = 1e9  # [m/s or rad/s], what no machine reaches


class Reactions(NamedTuple):
    """What joints do to their body b, one row per joint in the order of adding; body a gets the opposite."""

    force: np.ndarray  # (j,3) [N], world axes
    torque: np.ndarray  # (j,3) [N m], world axes, about `point`
    point: np.ndarray  # (j,3) [m], the joint's point on b
    local_force: np.ndarray  # (j,3) [N], in the axes of the joint as a has them
    local_torque: np.ndarray  # (j,3) [N m]
    effort: np.ndarray  # (j,2) torque [N m] and force [N] of motors that impose a motion; contained in the above
    coordinate: np.ndarray  # (j,2) angle about z [rad] and shift along z or distance [m]


def present_forces(system):
    """Forces and torques (j,6) of all rows in the order of the assembly."""
    t, delta = system.table, GLANCE * system.dt
    if not len(system):
        return np.zeros((0, 6))
    kept = t.velocity.copy(), t.impulse.copy(), t.rate.copy(), t.violation.copy(), t.coordinate.copy()
    bend = system.glance(delta) + system.glance(-delta) - 2.0 * system.glance(0.0)
    load = system._loads(system.time, t.velocity)
    t.velocity[:] = system.accelerations(load)
    t.velocity[t.lightness > 0.0, :3] += system.scene.gravity
    t.rate[:] = bend / delta**2
    t.impulse[:] = 0.0
    system.solve_slots(system.here)
    force = np.where(system.touching[system.joint_group][:, None], system.pressed[0], t.impulse)
    t.velocity[:], t.impulse[:], t.rate[:], t.violation[:], t.coordinate[:] = kept
    return force


def read(system, force):
    """Reactions from the forces and torques of rows (j,6), in the order of the assembly."""
    t, place = system.table, system.place
    _, extra, efforts = system.pressed
    total = np.einsum("jr,jrk->jk", force, t.jacobian[:, :, 6:])
    total += np.where(system.touching[system.joint_group][:, None], extra, 0.0)
    a, b = t.slot[:, 0], t.slot[:, 1]
    arm = np.einsum("jxy,jy->jx", turns_of(t.orientation[b]), t.point[:, 1])
    torque = total[:, 3:] - cross(arm, total[:, :3])
    axes = np.einsum("jxy,jyz->jxz", turns_of(t.orientation[a]), turns_of(t.frame[:, 0]))
    effort = np.zeros((len(a), 2))
    last = t.rows.astype(np.int64) - 1
    every = np.arange(len(a))
    effort[:, 1] = np.where(t.motor[:, 1], force[every, last], 0.0)
    effort[:, 0] = np.where(t.motor[:, 0], force[every, last - t.motor[:, 1]], 0.0)
    for k, value in efforts.items():
        motor = system.scene.motors[k]
        effort[place[motor.joint], 0 if motor.turning else 1] = value
    return Reactions(
        force=total[place, :3],
        torque=torque[place],
        point=(t.position[b] + arm)[place],
        local_force=np.einsum("jxy,jx->jy", axes, total[:, :3])[place],
        local_torque=np.einsum("jxy,jx->jy", axes, torque)[place],
        effort=effort[place],
        coordinate=t.coordinate[place],
    )


def watch(system, size):
    """How far joints are open at the end of a step [m], and what went wrong, if anything. size [m]: typical radius.

    A turn counts as the way of the surface of a typical body.
    """
    t = system.table
    fast = ~(abs(t.velocity[:-1]) < FASTEST).all(1)
    if fast.any():
        number = system.numbers[int(np.argmax(fast))]
        return np.inf, f"body {number} exploded; a spring's or motor's function may be too stiff for the step"
    opened = (abs(t.violation) * np.where(in_metres(t), 1.0, size)).max(1, initial=0.0)
    opened[~system.here[system.joint_group]] = 0.0
    worst = float(opened.max(initial=0.0))
    if worst <= OPEN * size:
        return worst, None
    k = int(system.order[int(np.argmax(opened))])
    told = f"joint {k} ({system.scene.joints[k].kind}) is open by {worst:.3g} m"
    return worst, f"{told}; joints, motors or drives demand what cannot be, or the step is too long"


def in_metres(t):
    """Which rows of joints (j,6) are shifts; the others are turns. t: Assembly."""
    every = np.arange(t.violation.shape[1])
    shifts = np.where(t.held[:, 0], len(every), t.locked[:, :3].sum(1))
    return (every < shifts[:, None]) | (t.motor[:, 1:] & (every == t.rows[:, None] - 1))

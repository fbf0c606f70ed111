"""Free rotation of a body that is not round: its angular momentum stays, its spin does not."""

from ..kernels.backend import func
from ..kernels.vec import (
    SMALL,
    add,
    cross,
    dot,
    matrix_vector,
    quat_exponential,
    quat_multiply,
    rotate,
    scale,
    unrotate,
)


@func
def near_unit(q):
    """A quaternion that is a unit quaternion up to rounding, made so again without a root or a division."""
    s = 1.5 - 0.5 * (q[0] * q[0] + q[1] * q[1] + q[2] * q[2] + q[3] * q[3])
    return (s * q[0], s * q[1], s * q[2], s * q[3])


@func
def spin_of(q, momentum, inverse):
    """Spin that goes with an angular momentum at orientation q, both in world axes."""
    return rotate(q, matrix_vector(inverse, unrotate(q, momentum)))


@func
def free_turn(momentum, inverse, dt, exponential):
    """Rotation vector (3,) [rad], in body axes, of a body that turns freely for a time dt.

    momentum (3,): its angular momentum in body axes at the start. A fourth-order Lie group method (Munthe-Kaas 1999),
    whose error per step is of order (spin dt)^5. In body axes the momentum turns the other way as the body turns, which
    costs half of what the same method costs in world axes.
    """
    k1 = scale(dt, matrix_vector(inverse, momentum))
    k2 = scale(dt, matrix_vector(inverse, unrotate(exponential(scale(0.5, k1)), momentum)))
    u = add(scale(0.5, k2), scale(0.125, cross(k1, k2)))
    k3 = scale(dt, matrix_vector(inverse, unrotate(exponential(u), momentum)))
    k4 = scale(dt, matrix_vector(inverse, unrotate(exponential(k3), momentum)))
    u = scale(1.0 / 6.0, add(add(k1, scale(2.0, add(k2, k3))), k4))
    return add(u, scale(1.0 / 12.0, cross(k1, k4)))


@func
def turn_freely(q, momentum, inverse, dt, exponential):
    """New orientation and spin of a body with this angular momentum, in its own axes, after one step of free rotation.

    The angular momentum stays what it is to rounding. exponential: `quat_exponential`, or its series for small angles.
    """
    turn = exponential(free_turn(momentum, inverse, dt, exponential))
    after = near_unit(quat_multiply(q, turn))
    return after, rotate(after, matrix_vector(inverse, unrotate(turn, momentum)))


@func
def tumble(q, w, inertia, inverse, dt):
    """Free rotation of a body that is not round over one step: new orientation and spin."""
    return turn_freely(q, matrix_vector(inertia, unrotate(q, w)), inverse, dt, quat_exponential)


@func
def turns_little(momentum, inverse, dt):
    """Whether all turns that `turn_freely` looks at are small for certain."""
    square = 0.0
    for i in range(3):
        square += dot(inverse[i], inverse[i])
    # A hundredth less: the last turn is longer than those that it is made of by a twelfth of their square.
    return dt * dt * square * dot(momentum, momentum) < 0.99 * 4.0 * SMALL

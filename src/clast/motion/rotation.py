"""Free rotation of a body that is not round: its angular momentum stays, its spin does not."""

import math

import numpy as np

from ..kernels.backend import func
from ..kernels.rows import PER_INERTIA, PER_MASS
from ..kernels.vec import (
    SMALL,
    add,
    cross,
    dot,
    load4,
    load_matrix,
    matrix_vector,
    quat_exponential,
    quat_matrix,
    quat_multiply,
    rotate,
    scale,
    symmetric_vector,
    unrotate,
)

FAR = 1.0  # [rad], a turn from which on a step is divided
STRIDE = 0.5  # [rad], of its parts: the energy of free rotation then changes by some 1e-3 in 2,000 rad
MOST = 400  # parts; of what turns 30 times in a step nobody knows how it stands at the end, so the rest of the turns is left out


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
def farthest_turn(momentum, inverse, dt):
    """Square of a turn [rad^2] that a body with this angular momentum cannot exceed in a time dt."""
    square = 0.0
    for i in range(3):
        square += dot(inverse[i], inverse[i])
    return dt * dt * square * dot(momentum, momentum)


@func
def turn_far(q, momentum, inverse, dt):
    """`turn_freely` for turns of any size, divided into parts where they are large.

    In one part of many radians the spin would come out along any axis: of the same momentum, but with several times the energy, which contacts
    would then hand on. A body in a hard impact at hundreds of metres a second turns so.
    """
    turn = math.sqrt(farthest_turn(momentum, inverse, dt))
    if not turn > FAR:
        return turn_freely(q, momentum, inverse, dt, quat_exponential)
    parts = int(math.ceil(min(turn / STRIDE, MOST)))
    step = min(dt, dt * STRIDE * MOST / turn) / parts
    for _ in range(parts):
        part = quat_exponential(free_turn(momentum, inverse, step, quat_exponential))
        q, momentum = near_unit(quat_multiply(q, part)), unrotate(part, momentum)
    return q, rotate(q, matrix_vector(inverse, momentum))


@func
def tumble(q, w, inertia, inverse, dt):
    """Free rotation of a body that is not round over one step: new orientation and spin."""
    return turn_far(q, matrix_vector(inertia, unrotate(q, w)), inverse, dt)


@func
def turns_little(momentum, inverse, dt):
    """Whether all turns that `turn_freely` looks at are small for certain."""
    # A hundredth less: the last turn is longer than those that it is made of by a twelfth of their square.
    return farthest_turn(momentum, inverse, dt) < 0.99 * 4.0 * SMALL


# How bodies answer torques and pushes. inverse (n,6): xx, yy, zz, xy, xz, yz of the inverse inertia in world axes [1/(kg m^2)], (0,6) if all bodies are round.


@func
def inverse_at(i, rows, inverse):
    """The inverse inertia of body i as six numbers."""
    if len(inverse) > 0:
        return (inverse[i, 0], inverse[i, 1], inverse[i, 2], inverse[i, 3], inverse[i, 4], inverse[i, 5])
    per_inertia = rows[i, PER_INERTIA]
    return (per_inertia, per_inertia, per_inertia, 0.0, 0.0, 0.0)


@func
def turn_of(i, torque, rows, inverse):
    """J^-1 torque of body i."""
    if len(inverse) > 0:
        return symmetric_vector(inverse_at(i, rows, inverse), torque)
    return scale(rows[i, PER_INERTIA], torque)


@func
def per_mass_of_turning(r, n, inverse):
    """What its turning adds to one over the mass of a body [1/kg] for a push along n (3,), unit, at the arm r (3,) [m]: (r x n) . J^-1 (r x n); inverse:
    six numbers."""
    lever = cross(r, n)
    return dot(lever, symmetric_vector(inverse, lever))


@func
def world_inverse(q, inverse):
    """Inverse inertia in world axes, six numbers, of one in body axes (3,3), at orientation q."""
    x, y, z = quat_matrix(q)
    a, b, c = matrix_vector(inverse, x), matrix_vector(inverse, y), matrix_vector(inverse, z)
    return (dot(x, a), dot(y, b), dot(z, c), dot(x, b), dot(x, c), dot(y, c))


def inverse_chunk(c, chunk, bodies, rows, inverses, inverse):
    """Inverse inertia of one chunk of bodies in world axes."""
    for row in range(c * chunk, min(len(inverse), (c + 1) * chunk)):
        i = np.uintp(row)
        per_size = rows[i, PER_MASS] / (bodies.scale[i] * bodies.scale[i])
        values = world_inverse(load4(bodies.orientation, i), load_matrix(inverses, bodies.mold[i]))
        for j in range(6):
            inverse[i, j] = per_size * values[j]


def rotation_between(before, after):
    """Rotation vector (3,) [rad], world axes, that turns one orientation (4,) into the other."""
    w, x, y, z = (float(c) for c in before)
    a, b, c, d = (float(v) for v in after)
    q = np.array(
        [
            a * w + b * x + c * y + d * z,
            b * w - a * x + d * y - c * z,
            c * w - a * y + b * z - d * x,
            d * w - a * z + c * x - b * y,
        ]
    )
    q *= 1.0 if q[0] >= 0.0 else -1.0
    sine = float(np.linalg.norm(q[1:]))
    return q[1:] * (2.0 * math.atan2(sine, float(q[0])) / sine if sine > 0.0 else 2.0)

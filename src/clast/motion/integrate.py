"""From forces to motion: kicks, drift and turning.

One step is: kick with the old forces, drift, kick with the old forces, new forces, kick with the new forces. The three
kicks are fractions of the time step and make the integrator:

    verlet        1/2, 0, 1/2    velocity Verlet, second order (default)
    symplectic      1, 0, 0      symplectic Euler, first order
    explicit        0, 1, 0      explicit Euler, first order, gains energy
"""

import math

import numpy as np

from ..broad.near import image
from ..kernels.backend import func
from ..kernels.vec import (
    add,
    cross,
    load,
    load4,
    load_matrix,
    matrix_vector,
    quat_exponential,
    quat_multiply,
    rotate,
    scale,
    sub,
    unrotate,
)
from ..tables import FREE

INTEGRATORS = {"verlet": (0.5, 0.0, 0.5), "symplectic": (1.0, 0.0, 0.0), "explicit": (0.0, 1.0, 0.0)}

# Bound to the kernels: what the scene has.
CLUMPS = False  # some body is not round
SOLIDS = False  # some body is neither a sphere nor made of spheres
PERIODIC = False
COUPLES = False  # contacts of spheres have couples
POINTS = True  # there are contacts other than of spheres
SUM = True
MOVE = True

# What `advance_row` reports about a chunk of bodies.
FINE = 0
NOT_A_NUMBER = 1
OUTSIDE = 2


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
def free_turn(momentum, inverse, dt):
    """Rotation vector (3,) [rad], in body axes, of a body that turns freely for a time dt.

    momentum (3,): its angular momentum in body axes at the start. A fourth-order Lie group method (Munthe-Kaas 1999),
    whose error per step is of order (spin dt)^5. In body axes the momentum turns the other way as the body turns, which
    costs half of what the same method costs in world axes.
    """
    k1 = scale(dt, matrix_vector(inverse, momentum))
    k2 = scale(dt, matrix_vector(inverse, unrotate(quat_exponential(scale(0.5, k1)), momentum)))
    u = add(scale(0.5, k2), scale(0.125, cross(k1, k2)))
    k3 = scale(dt, matrix_vector(inverse, unrotate(quat_exponential(u), momentum)))
    k4 = scale(dt, matrix_vector(inverse, unrotate(quat_exponential(k3), momentum)))
    u = scale(1.0 / 6.0, add(add(k1, scale(2.0, add(k2, k3))), k4))
    return add(u, scale(1.0 / 12.0, cross(k1, k4)))


@func
def tumble(q, w, inertia, inverse, dt):
    """Free rotation of a body that is not round over one step: new orientation and spin.

    The angular momentum stays what it is to rounding.
    """
    momentum = matrix_vector(inertia, unrotate(q, w))
    turn = quat_exponential(free_turn(momentum, inverse, dt))
    after = near_unit(quat_multiply(q, turn))
    return after, rotate(after, matrix_vector(inverse, unrotate(turn, momentum)))


@func
def wrap(x, low, length):
    """x moved into the periodic box, if it left it on one side."""
    if length > 0.0:
        if x < low:
            x += length
        elif x >= low + length:
            x -= length
    return x


def advance_row(
    c,
    chunk,
    bodies,
    rows,
    molds,
    inverses,
    pairs,
    spheres,
    wrench,
    gravity,
    dt,
    kicks,
    world,
    edges,
    reference,
    turned_from,
    swing,
    moved,
    status,
):
    """Advance one chunk of bodies: end a step, begin the next, or both at once.

    SUM ends a step: the contact forces of a body are added in the order of its partners' numbers, and kick it. MOVE
    begins one: kicks with the old forces, drift and turning; then `moved` and `status` tell how far the farthest body
    of the chunk is from its reference [m^2] and whether all is well. Between two steps both are done in one pass,
    because memory is read once then; arrays are taken out of their tables once a chunk, which halves the time again.

    Pairs of spheres, the first of the list, act as SpherePairs says, all others as Wrench does. A turn of a solid moves its surface by no more than swing (m,) of its mold at size
    factor 1 [m] times the angle since turned_from (n,4): the difference of the longest and the shortest half-axis of an
    ellipsoid, sqrt(outer^2 - inner^2) of a polyhedron.
    """
    orientation, forces, torques = bodies.orientation, bodies.force, bodies.torque
    start, entry, pair, action, couple = pairs.start, pairs.entry, pairs.shape, spheres.action, spheres.couple
    force, moment, balls = wrench.force, wrench.moment, len(spheres.action)
    before, after, last = kicks[0] * dt, kicks[1] * dt, kicks[2] * dt
    farthest = 0.0
    state = FINE
    for row in range(c * chunk, min(len(orientation), (c + 1) * chunk)):
        i = np.uintp(row)
        per_mass, per_inertia = rows[i, 7], rows[i, 11]
        if per_mass == 0.0:
            continue
        x = (rows[i, 0], rows[i, 1], rows[i, 2])
        v = (rows[i, 4], rows[i, 5], rows[i, 6])
        w = (rows[i, 8], rows[i, 9], rows[i, 10])
        tumbling = False
        if CLUMPS:
            tumbling = not molds.round[bodies.mold[i]]
            inverse = load_matrix(inverses, bodies.mold[i])
            per_size = per_mass / (bodies.scale[i] * bodies.scale[i])
        if SUM:
            fx, fy, fz = 0.0, 0.0, 0.0
            tx, ty, tz = 0.0, 0.0, 0.0
            radius = rows[i, 3]
            for at in range(start[i], start[i + np.uintp(1)]):
                e = entry[np.uintp(at)]
                p = np.uintp(e >> 1)
                sign = 1.0 if e & 1 else -1.0
                if POINTS and p >= balls:
                    k = p - np.uintp(balls)
                    gx, gy, gz = sign * force[k, 0], sign * force[k, 1], sign * force[k, 2]
                    fx += gx
                    fy += gy
                    fz += gz
                    side = np.uintp(e & 1)
                    tx += sign * moment[k, side, 0]
                    ty += sign * moment[k, side, 1]
                    tz += sign * moment[k, side, 2]
                    if CLUMPS:
                        # Moments are about the centre of the part.
                        s = np.uintp(pair[p, side])
                        ax, ay, az = rows[s, 0] - x[0], rows[s, 1] - x[1], rows[s, 2] - x[2]
                        tx += ay * gz - az * gy
                        ty += az * gx - ax * gz
                        tz += ax * gy - ay * gx
                    continue
                gx, gy, gz = sign * action[p, 0], sign * action[p, 1], sign * action[p, 2]
                fx += gx
                fy += gy
                fz += gz
                if CLUMPS:
                    s = np.uintp(pair[p, np.uintp(e & 1)])
                    ax, ay, az = rows[s, 0] - x[0], rows[s, 1] - x[1], rows[s, 2] - x[2]
                    tx += ay * gz - az * gy - rows[s, 3] * action[p, 3]
                    ty += az * gx - ax * gz - rows[s, 3] * action[p, 4]
                    tz += ax * gy - ay * gx - rows[s, 3] * action[p, 5]
                else:
                    tx -= radius * action[p, 3]
                    ty -= radius * action[p, 4]
                    tz -= radius * action[p, 5]
                if COUPLES:
                    tx += sign * couple[p, 0]
                    ty += sign * couple[p, 1]
                    tz += sign * couple[p, 2]
            f, torque = (fx, fy, fz), (tx, ty, tz)
        else:
            f, torque = load(forces, i), load(torques, i)
        a = (f[0] * per_mass + gravity[0], f[1] * per_mass + gravity[1], f[2] * per_mass + gravity[2])
        if tumbling:
            turning = scale(per_size, spin_of(load4(orientation, i), torque, inverse))
        else:
            turning = scale(per_inertia, torque)
        if SUM:
            v = add(v, scale(last, a))
            w = add(w, scale(last, turning))
        if MOVE:
            v = add(v, scale(before, a))
            w = add(w, scale(before, turning))
            x = add(x, scale(dt, v))
            q = load4(orientation, i)
            if tumbling:
                q, w = tumble(q, w, load_matrix(molds.inertia, bodies.mold[i]), inverse, dt)
            else:
                q = near_unit(quat_multiply(quat_exponential(scale(dt, w)), q))
            v = add(v, scale(after, a))
            w = add(w, scale(after, turning))
            d = sub(x, load(reference, i))
            if PERIODIC:
                x = (
                    wrap(x[0], world[0], edges[0]),
                    wrap(x[1], world[1], edges[1]),
                    wrap(x[2], world[2], edges[2]),
                )
                d = (image(d[0], edges[0], edges[3]), image(d[1], edges[1], edges[4]), image(d[2], edges[2], edges[5]))
            far = d[0] * d[0] + d[1] * d[1] + d[2] * d[2]
            if SOLIDS:
                # Twice the chord between two quaternions is the angle, up to 5 % for chords below 1/2.
                o = load4(turned_from, i)
                e = (q[0] - o[0], q[1] - o[1], q[2] - o[2], q[3] - o[3])
                chord = math.sqrt(e[0] * e[0] + e[1] * e[1] + e[2] * e[2] + e[3] * e[3])
                far = math.sqrt(far) + bodies.scale[i] * swing[bodies.mold[i]] * min(1.0, 2.1 * chord)
                far *= far
            fast = w[0] * w[0] + w[1] * w[1] + w[2] * w[2]
            if not (far < np.inf and fast < np.inf):
                state = NOT_A_NUMBER
            elif not (world[0] <= x[0] <= world[3] and world[1] <= x[1] <= world[4] and world[2] <= x[2] <= world[5]):
                state = max(state, OUTSIDE)
            farthest = max(farthest, far)
            rows[i, 0], rows[i, 1], rows[i, 2] = x
            orientation[i, 0], orientation[i, 1], orientation[i, 2], orientation[i, 3] = q
        else:
            forces[i, 0], forces[i, 1], forces[i, 2] = f
            torques[i, 0], torques[i, 1], torques[i, 2] = torque
        rows[i, 4], rows[i, 5], rows[i, 6] = v
        rows[i, 8], rows[i, 9], rows[i, 10] = w
    if MOVE:
        moved[c] = farthest
        status[c] = state


def place_row(c, chunk, first, bodies, shapes, parts, rows, reference, moved, edges):
    """Put one chunk of the shapes from row `first` on where their bodies have gone; report as `advance_row` does."""
    farthest = 0.0
    for s in range(first + c * chunk, min(len(shapes.body), first + (c + 1) * chunk)):
        body = shapes.body[s]
        offset = rotate(load4(bodies.orientation, body), load(parts.offset, shapes.part[s]))
        offset = scale(bodies.scale[body], offset)
        x = add(load(bodies.position, body), offset)
        w = load(bodies.spin, body)
        v = add(load(bodies.velocity, body), cross(w, offset))
        rows[s, 0], rows[s, 1], rows[s, 2] = x
        rows[s, 4], rows[s, 5], rows[s, 6] = v
        rows[s, 8], rows[s, 9], rows[s, 10] = w
        if len(reference) > 0 and bodies.motion[body] == FREE:
            d = sub(x, load(reference, s))
            if PERIODIC:
                d = (image(d[0], edges[0], edges[3]), image(d[1], edges[1], edges[4]), image(d[2], edges[2], edges[5]))
            farthest = max(farthest, d[0] * d[0] + d[1] * d[1] + d[2] * d[2])
    moved[c] = farthest

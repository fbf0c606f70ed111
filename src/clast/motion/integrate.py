"""From forces to motion: kicks, drift and turning.

One step is: kick with the old forces, drift, kick with the old forces, new forces, kick with the new forces. The three
kicks are fractions of the time step and make the integrator:

    verlet        1/2, 0, 1/2    velocity Verlet, second order (default)
    symplectic      1, 0, 0      symplectic Euler, first order
    explicit        0, 1, 0      explicit Euler, first order, gains energy
"""

import numpy as np

from ..backend import func
from ..contact.near import image
from ..tables import FREE
from ..vec import (
    add,
    cross,
    load,
    load4,
    load_matrix,
    matrix_vector,
    quat_exponential,
    quat_multiply,
    quat_normalize,
    rotate,
    scale,
    sub,
    unrotate,
)

INTEGRATORS = {"verlet": (0.5, 0.0, 0.5), "symplectic": (1.0, 0.0, 0.0), "explicit": (0.0, 1.0, 0.0)}

# Bound to the kernels: what the scene has.
CLUMPS = False  # some body is not round
PERIODIC = False
ROLLING = False

# What `move_row` reports about a chunk of bodies.
FINE = 0
NOT_A_NUMBER = 1
OUTSIDE = 2


@func
def spin_up(q, torque, inverse, factor):
    """Change of the spin of a body that is not round by torque times a time over its inertia [rad/s]."""
    return scale(factor, rotate(q, matrix_vector(inverse, unrotate(q, torque))))


@func
def spin_of(q, momentum, inverse):
    """Spin that goes with an angular momentum at orientation q, both in world axes."""
    return rotate(q, matrix_vector(inverse, unrotate(q, momentum)))


@func
def tumble(q, w, inertia, inverse, dt):
    """Free rotation of a body that is not round over one step: new orientation and spin.

    The angular momentum stays what it is to rounding; the orientation follows by a fourth-order Lie group
    method (Munthe-Kaas 1999), whose error per step is of order (spin dt)^5.
    """
    momentum = rotate(q, matrix_vector(inertia, unrotate(q, w)))
    k1 = scale(dt, spin_of(q, momentum, inverse))
    k2 = scale(dt, spin_of(quat_multiply(quat_exponential(scale(0.5, k1)), q), momentum, inverse))
    u = sub(scale(0.5, k2), scale(0.125, cross(k1, k2)))
    k3 = scale(dt, spin_of(quat_multiply(quat_exponential(u), q), momentum, inverse))
    k4 = scale(dt, spin_of(quat_multiply(quat_exponential(k3), q), momentum, inverse))
    u = scale(1.0 / 6.0, add(add(k1, scale(2.0, add(k2, k3))), k4))
    u = sub(u, scale(1.0 / 12.0, cross(k1, k4)))
    q = quat_normalize(quat_multiply(quat_exponential(u), q))
    return q, spin_of(q, momentum, inverse)


def move_row(c, chunk, bodies, molds, inverses, gravity, dt, before, after, world, edges, reference, moved, status):
    """Move one chunk of bodies by one step with the forces they have; report how far they are from their reference."""
    position, velocity, spin, orientation = bodies.position, bodies.velocity, bodies.spin, bodies.orientation
    farthest = 0.0
    state = FINE
    for i in range(c * chunk, min(len(bodies.mass), (c + 1) * chunk)):
        if bodies.motion[i] != FREE:
            continue
        per_mass = 1.0 / bodies.mass[i]
        per_inertia = 1.0 / bodies.inertia[i]
        v = load(velocity, i)
        w = load(spin, i)
        f = load(bodies.force, i)
        torque = load(bodies.torque, i)
        a = (f[0] * per_mass + gravity[0], f[1] * per_mass + gravity[1], f[2] * per_mass + gravity[2])
        v = (v[0] + before * dt * a[0], v[1] + before * dt * a[1], v[2] + before * dt * a[2])
        x = (position[i, 0] + dt * v[0], position[i, 1] + dt * v[1], position[i, 2] + dt * v[2])
        q = load4(orientation, i)
        mold = bodies.mold[i]
        if CLUMPS and not molds.round[mold]:
            inertia = load_matrix(molds.inertia, mold)
            inverse = load_matrix(inverses, mold)
            per = per_mass / (bodies.scale[i] * bodies.scale[i])
            w = add(w, spin_up(q, torque, inverse, before * dt * per))
            q, w = tumble(q, w, inertia, inverse, dt)
            w = add(w, spin_up(q, torque, inverse, after * dt * per))
        else:
            w = add(w, scale(before * dt * per_inertia, torque))
            q = quat_normalize(quat_multiply(quat_exponential(scale(dt, w)), q))
            w = add(w, scale(after * dt * per_inertia, torque))
        v = (v[0] + after * dt * a[0], v[1] + after * dt * a[1], v[2] + after * dt * a[2])
        if PERIODIC:
            x = (
                wrap(x[0], world[0], edges[0], edges[3]),
                wrap(x[1], world[1], edges[1], edges[4]),
                wrap(x[2], world[2], edges[2], edges[5]),
            )
        d = sub(x, load(reference, i))
        if PERIODIC:
            d = (image(d[0], edges[0], edges[3]), image(d[1], edges[1], edges[4]), image(d[2], edges[2], edges[5]))
        far = d[0] * d[0] + d[1] * d[1] + d[2] * d[2]
        turn = w[0] * w[0] + w[1] * w[1] + w[2] * w[2]
        if not (far < np.inf and turn < np.inf):
            state = NOT_A_NUMBER
        elif not (
            world[0] <= x[0] <= world[3] and world[1] <= x[1] <= world[4] and world[2] <= x[2] <= world[5]
        ):
            state = max(state, OUTSIDE)
        farthest = max(farthest, far)
        for k in range(3):
            position[i, k] = x[k]
            velocity[i, k] = v[k]
            spin[i, k] = w[k]
        for k in range(4):
            orientation[i, k] = q[k]
    moved[c] = farthest
    status[c] = state


@func
def wrap(x, low, length, inverse):
    """x moved into the periodic box by a whole number of lengths."""
    if length > 0.0:
        if x < low:
            x += length
        elif x >= low + length:
            x -= length
    return x


def place_row(c, chunk, first, bodies, shapes, parts, reference, moved, edges):
    """Put one chunk of the shapes from row `first` on where their bodies have gone; report as `move_row` does."""
    farthest = 0.0
    for s in range(first + c * chunk, min(len(shapes.body), first + (c + 1) * chunk)):
        body = shapes.body[s]
        offset = rotate(load4(bodies.orientation, body), load(parts.offset, shapes.part[s]))
        x = add(load(bodies.position, body), scale(bodies.scale[body], offset))
        for k in range(3):
            shapes.centre[s, k] = x[k]
        if bodies.motion[body] == FREE:
            d = sub(x, load(reference, s))
            if PERIODIC:
                d = (image(d[0], edges[0], edges[3]), image(d[1], edges[1], edges[4]), image(d[2], edges[2], edges[5]))
            farthest = max(farthest, d[0] * d[0] + d[1] * d[1] + d[2] * d[2])
    moved[c] = farthest


def finish_row(i, bodies, molds, inverses, pairs, gravity, dt, last, edges):
    """Sum the contact forces of one body in the order of its partners' numbers, and kick it."""
    if bodies.motion[i] != FREE:
        return
    x, y, z = bodies.position[i, 0], bodies.position[i, 1], bodies.position[i, 2]
    fx, fy, fz = 0.0, 0.0, 0.0
    tx, ty, tz = 0.0, 0.0, 0.0
    for at in range(pairs.start[i], pairs.start[i + 1]):
        entry = pairs.entry[at]
        p = entry >> 1
        sign = 1.0 if entry & 1 else -1.0
        gx, gy, gz = sign * pairs.force[p, 0], sign * pairs.force[p, 1], sign * pairs.force[p, 2]
        if gx != 0.0 or gy != 0.0 or gz != 0.0:
            ax, ay, az = pairs.point[p, 0] - x, pairs.point[p, 1] - y, pairs.point[p, 2] - z
            if PERIODIC:
                ax = image(ax, edges[0], edges[3])
                ay = image(ay, edges[1], edges[4])
                az = image(az, edges[2], edges[5])
            fx += gx
            fy += gy
            fz += gz
            tx += ay * gz - az * gy
            ty += az * gx - ax * gz
            tz += ax * gy - ay * gx
            if ROLLING:
                tx += sign * pairs.couple[p, 0]
                ty += sign * pairs.couple[p, 1]
                tz += sign * pairs.couple[p, 2]
    bodies.force[i, 0], bodies.force[i, 1], bodies.force[i, 2] = fx, fy, fz
    bodies.torque[i, 0], bodies.torque[i, 1], bodies.torque[i, 2] = tx, ty, tz
    per_mass = 1.0 / bodies.mass[i]
    bodies.velocity[i, 0] += last * dt * (fx * per_mass + gravity[0])
    bodies.velocity[i, 1] += last * dt * (fy * per_mass + gravity[1])
    bodies.velocity[i, 2] += last * dt * (fz * per_mass + gravity[2])
    mold = bodies.mold[i]
    if CLUMPS and not molds.round[mold]:
        inverse = load_matrix(inverses, mold)
        per = per_mass / (bodies.scale[i] * bodies.scale[i])
        w = spin_up(load4(bodies.orientation, i), (tx, ty, tz), inverse, last * dt * per)
    else:
        w = scale(last * dt / bodies.inertia[i], (tx, ty, tz))
    bodies.spin[i, 0] += w[0]
    bodies.spin[i, 1] += w[1]
    bodies.spin[i, 2] += w[2]

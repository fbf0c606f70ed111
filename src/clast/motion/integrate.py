"""From forces to motion: kicks, drift and turning.

One step is: kick with the old forces, drift, kick with the old forces, new forces, kick with the new forces. The three
kicks are fractions of the time step and make the integrator:

    verlet        1/2, 0, 1/2    velocity Verlet, second order (default)
    symplectic      1, 0, 0      symplectic Euler, first order
    explicit        0, 1, 0      explicit Euler, first order, gains energy
"""

import math
from typing import Any, NamedTuple

import numpy as np

from ..broad.near import image, repeats
from ..kernels import backend
from ..kernels.backend import func, kernel
from ..kernels.rows import (
    CENTRE,
    COLUMNS,
    PER_INERTIA,
    PER_MASS,
    REACH,
    SPIN,
    VELOCITY,
    centre_at,
    put_vector,
    spin_at,
    velocity_at,
)
from ..kernels.vec import (
    SMALL,
    add,
    cross,
    dot,
    lane_quaternion,
    lane_vector,
    load,
    load4,
    load_matrix,
    matrix_vector,
    put_lane_quaternion,
    put_lane_vector,
    quat_exponential,
    quat_exponential_small,
    quat_multiply,
    rotate,
    scale,
    sub,
    unrotate,
)
from ..tables import FREE
from .rotation import near_unit, spin_of, tumble, turn_far, turn_freely, turns_little

INTEGRATORS = {"verlet": (0.5, 0.0, 0.5), "symplectic": (1.0, 0.0, 0.0), "explicit": (0.0, 1.0, 0.0)}

# Bound to the kernels. What else a scene has they see by themselves, once a chunk: a kernel for each mix of it would be compiled for each.
CLUMPS = False  # some body is not round


class Inertias(NamedTuple):
    """How bodies turn, one row per mold."""

    round: np.ndarray  # (m,) bool, as in Molds
    inertia: np.ndarray  # (m,3,3) [m^2], as in Molds
    inverse: np.ndarray  # (m,3,3) [1/m^2], its inverse; zero for walls
    swing: np.ndarray  # (m,) [m], how far the surface moves at the most when the body turns by one radian


class Space(NamedTuple):
    """What all bodies move in."""

    gravity: tuple  # (3,) [m/s^2]
    world: tuple  # (6,) [m], lowest and highest corner
    edges: tuple  # (6,) lengths of the periodic box [m] and their inverses


class Kicks(NamedTuple):
    """The integrator, what of a step is done, and with which bodies: numbers, not bound to kernels, so that one kernel does all."""

    before: float  # fractions of the time step: the kick before the drift
    between: float  # after it, still with the old forces
    after: float  # with the new forces
    ends: bool  # add up the contact forces and end a step
    begins: bool  # begin the next: kick, drift and turn
    parts: bool  # some body has parts with centres of their own


class Watch(NamedTuple):
    """Where bodies were when the neighbour list was made, and how far they have come."""

    reference: np.ndarray  # (s,3) [m]
    turned_from: np.ndarray  # (n,4) orientations; (0,4) where turning moves no surface
    far: np.ndarray  # column of Pairs
    moved: np.ndarray  # (c,) [m^2], of the farthest body of a chunk
    status: np.ndarray  # (c,) int8, FINE, OUTSIDE or NOT_A_NUMBER
    then: np.ndarray = np.empty(
        (0, COLUMNS)
    )  # (n,12), rows as they are when a step ends, for a ledger; (0,12) where nobody asks


# What `advance_row` reports about a chunk of bodies.
FINE = 0
NOT_A_NUMBER = 1
OUTSIDE = 2


@func
def wrap(x, low, length):
    """x moved into the periodic box, if it left it on one side."""
    if length > 0.0:
        if x < low:
            x += length
        elif x >= low + length:
            x -= length
    return x


@func
def add_up(i, x, radius, start, entry, pair, rows, spheres, wrench, parts):
    """Force and torque of all contacts of the body in row i, in the order of its partners' numbers; parts: see Kicks.

    Pairs of spheres, the first of the list, act as SpherePairs says, all others as Wrench does.
    """
    action, couple = spheres
    force, moment, balls, couples = wrench[0], wrench[1], len(action), len(couple) > 0
    fx, fy, fz = 0.0, 0.0, 0.0
    tx, ty, tz = 0.0, 0.0, 0.0
    for at in range(start[i], start[i + np.uintp(1)]):
        e = entry[np.uintp(at)]
        p = np.uintp(e >> 1)
        sign = 1.0 if e & 1 else -1.0
        if p >= balls:
            k = p - np.uintp(balls)
            gx, gy, gz = sign * force[k, 0], sign * force[k, 1], sign * force[k, 2]
            fx += gx
            fy += gy
            fz += gz
            side = np.uintp(e & 1)
            tx += sign * moment[k, side, 0]
            ty += sign * moment[k, side, 1]
            tz += sign * moment[k, side, 2]
            continue
        gx, gy, gz = sign * action[p, 0], sign * action[p, 1], sign * action[p, 2]
        fx += gx
        fy += gy
        fz += gz
        if parts:
            s = np.uintp(pair[p, np.uintp(e & 1)])
            ax, ay, az = rows[s, 0] - x[0], rows[s, 1] - x[1], rows[s, 2] - x[2]
            tx += ay * gz - az * gy - rows[s, REACH] * action[p, 3]
            ty += az * gx - ax * gz - rows[s, REACH] * action[p, 4]
            tz += ax * gy - ay * gx - rows[s, REACH] * action[p, 5]
        else:
            tx -= radius * action[p, 3]
            ty -= radius * action[p, 4]
            tz -= radius * action[p, 5]
        if couples:
            tx += sign * couple[p, 0]
            ty += sign * couple[p, 1]
            tz += sign * couple[p, 2]
    return (fx, fy, fz), (tx, ty, tz)


@func
def wrapped(x, start, world, edges, periodic):
    """A place moved into the periodic box, and the square of its distance from where it started [m^2]."""
    d = sub(x, start)
    if periodic:
        x = (wrap(x[0], world[0], edges[0]), wrap(x[1], world[1], edges[1]), wrap(x[2], world[2], edges[2]))
        d = (image(d[0], edges[0], edges[3]), image(d[1], edges[1], edges[4]), image(d[2], edges[2], edges[5]))
    return x, d[0] * d[0] + d[1] * d[1] + d[2] * d[2]


@func
def swung(far, q, o, reach):
    """The square of the distance that the surface of a solid has moved [m^2]: far with what a turn from o to q adds.

    reach [m]: how far its surface moves at the most when it turns by one radian.
    """
    # Twice the chord between two quaternions is the angle, up to 5 % for chords below 1/2.
    e = (q[0] - o[0], q[1] - o[1], q[2] - o[2], q[3] - o[3])
    chord = math.sqrt(e[0] * e[0] + e[1] * e[1] + e[2] * e[2] + e[3] * e[3])
    far = math.sqrt(far) + reach * min(1.0, 2.1 * chord)
    return far * far


@func
def tell(told, s, far):
    """Note in `Pairs.far` that the surface of shape s has moved by the square root of far [m^2]: the most that it ever has since the list was
    made, so that a pair that was looked at once is looked at until there is a new list."""
    if len(told) > 0:
        told[s] = max(told[s], math.sqrt(far))


@func
def keep_moment(then, rows, first, used, lane):
    """Write the rows of the bodies from `first` on as they are between two steps: those of moving ones from the lanes."""
    for j in range(used):
        i, k = np.uintp(first + j), np.uintp(j)
        for m in range(COLUMNS):
            then[i, m] = rows[i, m]
        if rows[i, PER_MASS] > 0.0:
            put_vector(then, i, CENTRE, lane_vector(lane, PLACE, k))
            put_vector(then, i, VELOCITY, lane_vector(lane, SPEED, k))
            put_vector(then, i, SPIN, lane_vector(lane, TURNS, k))


@func
def judge(state, x, w, far, world):
    """The status of a chunk with one more body in it."""
    fast = w[0] * w[0] + w[1] * w[1] + w[2] * w[2]
    if not (far < np.inf and fast < np.inf):
        return NOT_A_NUMBER
    if not (world[0] <= x[0] <= world[3] and world[1] <= x[1] <= world[4] and world[2] <= x[2] <= world[5]):
        return max(state, OUTSIDE)
    return state


def advance_row(c, chunk, bodies, rows, inertias, pairs, spheres, wrench, dt, kicks, space, watch):
    """Advance one chunk of bodies: end a step, begin the next, or both at once.

    kicks.ends: the contact forces of a body are added in the order of its partners' numbers, and kick it. kicks.begins:
    kicks with the old forces, drift and turning; then `moved` and `status` tell how far the farthest body
    of the chunk is from its reference [m^2] and whether all is well. Between two steps both are done in one pass,
    because memory is read once then; arrays are taken out of their tables once a chunk, which halves the time again.

    A turn of a solid moves its surface by no more than swing (m,) of its mold at size factor 1 [m] times the angle since
    turned_from (n,4): the difference of the longest and the shortest half-axis of an ellipsoid, sqrt(outer^2 - inner^2) of a
    polyhedron.
    """
    gravity, world, edges = space.gravity, space.world, space.edges
    reference, turned_from, swing = watch.reference, watch.turned_from, inertias.swing
    orientation, forces, torques = bodies.orientation, bodies.force, bodies.torque
    start, entry, pair = pairs.start, pairs.entry, pairs.shape
    acting, wrenches = (spheres.action, spheres.couple), (wrench.force, wrench.moment)
    before, after, last = kicks.before * dt, kicks.between * dt, kicks.after * dt
    ends, begins = kicks.ends, kicks.begins
    periodic, solids = repeats(edges), len(turned_from) > 0
    farthest, told = 0.0, watch.far
    state = FINE
    for row in range(c * chunk, min(len(orientation), (c + 1) * chunk)):
        i = np.uintp(row)
        per_mass, per_inertia = rows[i, PER_MASS], rows[i, PER_INERTIA]
        if per_mass == 0.0:
            continue
        x = centre_at(rows, i)
        v = velocity_at(rows, i)
        w = spin_at(rows, i)
        tumbling = False
        if CLUMPS:
            tumbling = not inertias.round[bodies.mold[i]]
            inverse = load_matrix(inertias.inverse, bodies.mold[i])
            per_size = per_mass / (bodies.scale[i] * bodies.scale[i])
        if ends:
            f, torque = add_up(i, x, rows[i, REACH], start, entry, pair, rows, acting, wrenches, kicks.parts)
        else:
            f, torque = load(forces, i), load(torques, i)
        a = (f[0] * per_mass + gravity[0], f[1] * per_mass + gravity[1], f[2] * per_mass + gravity[2])
        if tumbling:
            turning = scale(per_size, spin_of(load4(orientation, i), torque, inverse))
        else:
            turning = scale(per_inertia, torque)
        if ends:
            v = add(v, scale(last, a))
            w = add(w, scale(last, turning))
        if begins:
            v = add(v, scale(before, a))
            w = add(w, scale(before, turning))
            x = add(x, scale(dt, v))
            q = load4(orientation, i)
            if tumbling:
                q, w = tumble(q, w, load_matrix(inertias.inertia, bodies.mold[i]), inverse, dt)
            else:
                q = near_unit(quat_multiply(quat_exponential(scale(dt, w)), q))
            v = add(v, scale(after, a))
            w = add(w, scale(after, turning))
            x, far = wrapped(x, load(reference, i), world, edges, periodic)
            if solids:
                far = swung(far, q, load4(turned_from, i), bodies.scale[i] * swing[bodies.mold[i]])
            state = judge(state, x, w, far, world)
            farthest = max(farthest, far)
            tell(told, i, far)
            put_vector(rows, i, CENTRE, x)
            orientation[i, 0], orientation[i, 1], orientation[i, 2], orientation[i, 3] = q
        else:
            forces[i, 0], forces[i, 1], forces[i, 2] = f
            torques[i, 0], torques[i, 1], torques[i, 2] = torque
        put_vector(rows, i, VELOCITY, v)
        put_vector(rows, i, SPIN, w)
    if begins:
        watch.moved[c] = farthest
        watch.status[c] = state


# On the CPU bodies stand side by side, a body in a lane, and loops over the lanes become vector instructions.
WIDTH = 32
PLACE, SPEED, TURNS, POSE, PULL, TWIST = 0, 3, 6, 9, 13, 16  # x, v, w, q, acceleration and angular acceleration
LANE_ROWS = 19
# Of bodies that are not round, which take 500 operations to turn.
MOMENTUM, INVERSE, QUATERNION, SPIN_AFTER, WAITS = 0, 3, 12, 16, 19
TURN_ROWS = 20


@func
def kick_lanes(lane, step):
    """Kick all bodies for a time `step` [s]."""
    for k in range(WIDTH):
        put_lane_vector(lane, SPEED, k, add(lane_vector(lane, SPEED, k), scale(step, lane_vector(lane, PULL, k))))
        put_lane_vector(lane, TURNS, k, add(lane_vector(lane, TURNS, k), scale(step, lane_vector(lane, TWIST, k))))


@func
def drift_lanes(lane, dt):
    """Move all bodies, without turning them, for a time dt [s]."""
    for k in range(WIDTH):
        put_lane_vector(lane, PLACE, k, add(lane_vector(lane, PLACE, k), scale(dt, lane_vector(lane, SPEED, k))))


@func
def spin_lanes(lane, used, orientation, first, dt):
    """Turn all bodies, which are round, for a time dt [s]; the first of them stands in row `first` of orientation."""
    fast = 0
    for k in range(WIDTH):
        turn = scale(dt, lane_vector(lane, TURNS, k))
        fast += 1 if 0.25 * dot(turn, turn) >= SMALL else 0
        q = near_unit(quat_multiply(quat_exponential_small(turn), lane_quaternion(lane, POSE, k)))
        put_lane_quaternion(lane, POSE, k, q)
    if fast > 0:  # these need sine and cosine, which are no vector instructions
        for k in range(used):
            turn = scale(dt, lane_vector(lane, TURNS, k))
            if 0.25 * dot(turn, turn) >= SMALL:
                q = near_unit(quat_multiply(quat_exponential(turn), load4(orientation, first + k)))
                put_lane_quaternion(lane, POSE, k, q)


@func
def tumble_lanes(lane, turning, used, mold, first, inertias, dt):
    """Turn all bodies, of which some are not round, for a time dt [s]; the first of them stands in row `first` of mold. turning: more lanes, for those."""
    k: Any
    waiting = 0
    for j in range(used):
        k, m = np.uintp(j), np.uintp(mold[first + j])
        w, q = lane_vector(lane, TURNS, k), lane_quaternion(lane, POSE, k)
        turning[WAITS, k] = 0.0
        if inertias.round[m]:
            put_lane_quaternion(lane, POSE, k, near_unit(quat_multiply(quat_exponential(scale(dt, w)), q)))
            continue
        inverse = load_matrix(inertias.inverse, m)
        momentum = matrix_vector(load_matrix(inertias.inertia, m), unrotate(q, w))
        if not turns_little(momentum, inverse, dt):
            q, w = turn_far(q, momentum, inverse, dt)
            put_lane_quaternion(lane, POSE, k, q)
            put_lane_vector(lane, TURNS, k, w)
            continue
        waiting += 1
        turning[WAITS, k] = 1.0
        put_lane_vector(turning, MOMENTUM, k, momentum)
        for i in range(3):
            put_lane_vector(turning, INVERSE + 3 * i, k, inverse[i])
        put_lane_quaternion(turning, QUATERNION, k, q)
    if waiting == 0:
        return
    for k in range(WIDTH):
        inverse = (
            lane_vector(turning, INVERSE, k),
            lane_vector(turning, INVERSE + 3, k),
            lane_vector(turning, INVERSE + 6, k),
        )
        q, momentum = lane_quaternion(turning, QUATERNION, k), lane_vector(turning, MOMENTUM, k)
        q, w = turn_freely(q, momentum, inverse, dt, quat_exponential_small)
        put_lane_quaternion(turning, QUATERNION, k, q)
        put_lane_vector(turning, SPIN_AFTER, k, w)
    for k in range(used):
        if turning[WAITS, k] > 0.0:
            put_lane_quaternion(lane, POSE, k, lane_quaternion(turning, QUATERNION, k))
            put_lane_vector(lane, TURNS, k, lane_vector(turning, SPIN_AFTER, k))


def advance_block(c, chunk, bodies, rows, inertias, pairs, spheres, wrench, dt, kicks, space, watch):
    """`advance_row`, the same numbers, with bodies side by side."""
    gravity, world, edges = space.gravity, space.world, space.edges
    reference, turned_from, swing = watch.reference, watch.turned_from, inertias.swing
    orientation, forces, torques, mold = bodies.orientation, bodies.force, bodies.torque, bodies.mold
    start, entry, pair = pairs.start, pairs.entry, pairs.shape
    acting, wrenches = (spheres.action, spheres.couple), (wrench.force, wrench.moment)
    periodic, solids = repeats(edges), len(turned_from) > 0
    farthest, told = 0.0, watch.far
    state = FINE
    lane = np.ones((LANE_ROWS, WIDTH))
    turning = np.ones((TURN_ROWS if CLUMPS else 0, WIDTH))
    end = min(len(orientation), (c + 1) * chunk)
    for first in range(c * chunk, end, WIDTH):
        used = min(WIDTH, end - first)
        for j in range(used):
            i, k = np.uintp(first + j), np.uintp(j)
            per_mass = rows[i, PER_MASS]
            if per_mass == 0.0:
                continue
            x, q = centre_at(rows, i), load4(orientation, i)
            if kicks.ends:
                f, torque = add_up(i, x, rows[i, REACH], start, entry, pair, rows, acting, wrenches, kicks.parts)
            else:
                f, torque = load(forces, i), load(torques, i)
            if not kicks.begins:
                forces[i, 0], forces[i, 1], forces[i, 2] = f
                torques[i, 0], torques[i, 1], torques[i, 2] = torque
            put_lane_vector(lane, PLACE, k, x)
            put_lane_vector(lane, SPEED, k, velocity_at(rows, i))
            put_lane_vector(lane, TURNS, k, spin_at(rows, i))
            put_lane_quaternion(lane, POSE, k, q)
            a = (f[0] * per_mass + gravity[0], f[1] * per_mass + gravity[1], f[2] * per_mass + gravity[2])
            put_lane_vector(lane, PULL, k, a)
            turned = scale(rows[i, PER_INERTIA], torque)
            if CLUMPS:
                m = np.uintp(mold[i])
                if not inertias.round[m]:
                    per_size = per_mass / (bodies.scale[i] * bodies.scale[i])
                    turned = scale(per_size, spin_of(q, torque, load_matrix(inertias.inverse, m)))
            put_lane_vector(lane, TWIST, k, turned)
        if kicks.ends:
            kick_lanes(lane, kicks.after * dt)
            if len(watch.then) > 0:
                keep_moment(watch.then, rows, first, used, lane)
        if kicks.begins:
            kick_lanes(lane, kicks.before * dt)
            drift_lanes(lane, dt)
            if CLUMPS:
                tumble_lanes(lane, turning, used, mold, first, inertias, dt)
            else:
                spin_lanes(lane, used, orientation, first, dt)
            kick_lanes(lane, kicks.between * dt)
        for j in range(used):
            i, k = np.uintp(first + j), np.uintp(j)
            if rows[i, PER_MASS] == 0.0:
                continue
            w = lane_vector(lane, TURNS, k)
            put_vector(rows, i, VELOCITY, lane_vector(lane, SPEED, k))
            put_vector(rows, i, SPIN, w)
            if kicks.begins:
                x, far = wrapped(lane_vector(lane, PLACE, k), load(reference, i), world, edges, periodic)
                q = lane_quaternion(lane, POSE, k)
                if solids:
                    far = swung(far, q, load4(turned_from, i), bodies.scale[i] * swing[mold[i]])
                state, farthest = judge(state, x, w, far, world), max(farthest, far)
                tell(told, i, far)
                put_vector(rows, i, CENTRE, x)
                orientation[i, 0], orientation[i, 1], orientation[i, 2], orientation[i, 3] = q
    if kicks.begins:
        watch.moved[c] = farthest
        watch.status[c] = state


def compose(integrator, clumps, parts):
    """(kernel, kicks) that begin a step, that end one and begin the next, and that end one; clumps: some bodies are not round; parts: see Kicks."""
    on_cpu = backend.DEVICE[-1] is backend.CPU
    move = kernel(advance_block if on_cpu else advance_row, grain=4, allocates=on_cpu, CLUMPS=clumps)
    stages = (False, True), (True, True), (True, False)
    return tuple((move, Kicks(*INTEGRATORS[integrator], *stage, parts)) for stage in stages)


def place_row(c, chunk, first, bodies, shapes, parts, rows, reference, turned_from, told, moved, edges):
    """Put one chunk of the shapes from row `first` on where their bodies have gone; report as `advance_row` does."""
    farthest, periodic = 0.0, repeats(edges)
    for s in range(first + c * chunk, min(len(shapes.body), first + (c + 1) * chunk)):
        body = shapes.body[s]
        offset = rotate(load4(bodies.orientation, body), load(parts.offset, shapes.part[s]))
        offset = scale(bodies.scale[body], offset)
        x = add(load(bodies.position, body), offset)
        w = load(bodies.spin, body)
        v = add(load(bodies.velocity, body), cross(w, offset))
        put_vector(rows, s, CENTRE, x)
        put_vector(rows, s, VELOCITY, v)
        put_vector(rows, s, SPIN, w)
        if len(reference) > 0 and bodies.motion[body] == FREE:
            d = sub(x, load(reference, s))
            if periodic:
                d = (image(d[0], edges[0], edges[3]), image(d[1], edges[1], edges[4]), image(d[2], edges[2], edges[5]))
            far = d[0] * d[0] + d[1] * d[1] + d[2] * d[2]
            swing = parts.swing[shapes.part[s]]
            if swing > 0.0:
                far = swung(far, load4(bodies.orientation, body), load4(turned_from, body), bodies.scale[body] * swing)
            farthest = max(farthest, far)
            tell(told, s, far)
    moved[c] = farthest

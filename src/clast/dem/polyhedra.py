"""Forces of contacts with a polyhedron: up to four points that share one stiffness, and one slip.

A patch of points answers with the sum of the law at each of them, times its share d_i / sum of d_j max(0, n_i . n_j)^2, d the
overlap: the force of a patch does not depend on how many points it has, and a point that leaves takes no force with it.
The points of a patch slip together: what is remembered is one slip of the patch's middle and one angle about its normal,
so that it does not matter which points stand for it from step to step, and a patch sticks as long as one of its points
does. The memory of a pair holds, after slip and rolling angle, the last normal (3), in the axes of the world, and that
angle (1). While bodies are apart the last normal is tried first: where it parts them nothing touches.

Rolling friction is for what rolls: it acts between a polyhedron and a sphere, not between edges and faces.
"""

import math

import numpy as np

from ..broad.near import image
from ..kernels.backend import func, kernel
from ..kernels.vec import add, cross, dot, load, load4, normalize, rotate, scale, sub
from ..narrow.ellipsoids import between
from ..narrow.polyhedra import hull_any, hull_sphere, second_in_first, sphere_points_for, wall_points_for
from ..narrow.polyhedron_manifold import contact_points
from ..narrow.polyhedron_polyhedron import POINT, get, parted, put, separation, work_width
from ..tables import POLYHEDRON, SPHERE
from . import laws
from .laws import Touch
from .sphere_pairs import mix_of, remembers, roll_pair

BLOCK = 64  # pairs a task
COUNT = 4 * POINT  # column of `store`: how many points
POINTLIKE = 1e-6  # a patch narrower than this fraction of the radius has no angle
SHARE = 7  # column of a point in `work`: the feature number first, then its share

# Bound to each kernel, as in `clast.dem.sphere_pairs`.
law = laws.hertz
ROLLING = False
PERIODIC = False
sphere_points = hull_sphere
wall_points = hull_any


@func
def to_world(work, count, q, x):
    """Bring points from the axes of a polyhedron at x, turned by q, to the world, on the surface of the other body."""
    order_points(work, count)
    for i in range(count):
        n = rotate(q, get(work, POINT * i + 4))
        point = add(x, rotate(q, get(work, POINT * i)))
        put(work, POINT * i, add(point, scale(work[POINT * i + 3], n)))
        put(work, POINT * i + 4, n)


@func
def flat_to_world(work, count, q, x):
    """The same for a patch with one normal, of two particles: points in the middle of the gap; and shares of the points."""
    order_points(work, count)
    n = rotate(q, get(work, 4))
    total = 0.0
    for i in range(count):
        point = add(x, rotate(q, get(work, POINT * i)))
        put(work, POINT * i, add(point, scale(0.5 * work[POINT * i + 3], n)))
        put(work, POINT * i + 4, n)
        total += max(-work[POINT * i + 3], 0.0)
    for i in range(count):
        work[POINT * i + SHARE] = max(-work[POINT * i + 3], 0.0) / max(total, 1e-300)


@func
def turn_over(v, n, m):
    """A vector at right angles to n, turned along with n into m, both unit."""
    return sub(v, scale(dot(m, v) / max(1.0 + dot(n, m), 1e-9), add(n, m)))


@func
def order_points(work, count):
    """Bring points in the axes of a polyhedron into an order that its mirror image has too: by gap, then by distance.

    Sums then round alike on both sides of a mirror, whatever the numbers of corners and faces.
    """
    for i in range(1, count):
        j = i
        while j > 0 and comes_before(work, POINT * j, POINT * (j - 1)):
            swap_vectors(work, POINT * j, POINT * (j - 1))
            swap_vectors(work, POINT * j + 4, POINT * (j - 1) + 4)
            gap = work[POINT * j + 3]
            work[POINT * j + 3] = work[POINT * (j - 1) + 3]
            work[POINT * (j - 1) + 3] = gap
            j -= 1


@func
def swap_vectors(work, one, two):
    """Exchange two vectors."""
    x, y = get(work, one), get(work, two)
    put(work, one, y)
    put(work, two, x)


@func
def comes_before(work, one, two):
    """Whether the point at `one` comes before that at `two`."""
    if work[one + 3] != work[two + 3]:
        return work[one + 3] < work[two + 3]
    x, y = get(work, one), get(work, two)
    return dot(x, x) < dot(y, y)


@func
def press(work, count, flat, xa, va, wa, xb, vb, wb, slip, twist, mass, radius, mix, dt, law):
    """Answer of a patch of points in the world, with shares: (where, normal, force on b, couple on b, slip, twist).

    x, v, w: centre, velocity and spin of the two bodies, b being where the normals point to; the couple is about `where`.
    flat: all normals are the same.
    """
    middle, normal, whole = (0.0, 0.0, 0.0), (0.0, 0.0, 0.0), 0.0
    for i in range(count):
        share = work[POINT * i + SHARE]
        middle = add(middle, scale(share, get(work, POINT * i)))
        normal = add(normal, scale(share, get(work, POINT * i + 4)))
        whole += share
    middle = get(work, 0) if count == 1 else scale(1.0 / max(whole, 1e-300), middle)
    normal = get(work, 4) if flat else normalize(normal)
    slip = laws.turn(slip, normal, 1.0, 1.0)
    force, couple, after = (0.0, 0.0, 0.0), (0.0, 0.0, 0.0), (0.0, 0.0, 0.0)
    turned, width, longest, left = 0.0, 0.0, 0.0, 0.0
    for i in range(count):
        share = work[POINT * i + SHARE]
        if share > 0.0:
            x, n = get(work, POINT * i), get(work, POINT * i + 4)
            r = sub(x, middle)
            v = sub(add(vb, cross(wb, sub(x, xb))), add(va, cross(wa, sub(x, xa))))
            opening = dot(v, n)
            own = add(slip, scale(twist, cross(normal, r)))
            if not flat:
                own = turn_over(own, normal, n)
            slide = sub(v, scale(opening, n))
            touch = Touch(-work[POINT * i + 3], -opening, n, slide, own, mass, radius)
            pressing, shear, kept = law(touch, mix, dt)
            f = scale(share, add(scale(pressing, n), shear))
            force, couple = add(force, f), add(couple, cross(r, f))
            own = add(own, scale(dt, slide))
            # How much of its slip the law leaves to a point; of points that hardly slip it says nothing.
            length, part_left = dot(own, own), dot(kept, kept)
            if length > 1e-4 * longest:
                ratio = part_left / max(length, 1e-300)
                left = ratio if longest < 1e-4 * length else max(left, ratio)
            longest = max(longest, length)
            if not flat:
                own = turn_over(own, n, normal)
            after = add(after, scale(share, own))
            turned += share * dot(normal, cross(r, own))
            width += share * dot(r, r)
    # The points slip together, so the patch sticks as long as one of them does: the rigid slip nearest to those of the points,
    # their mean and the mean turn, shortened as that of the point which keeps most. A point does not turn.
    left = math.sqrt(min(left, 1.0))
    slip = scale(left / max(whole, 1e-300), after)
    wide = width > whole * (POINTLIKE * radius) ** 2
    return middle, normal, force, couple, slip, left * turned / width if wide else 0.0


@func
def remember(p, sign, where, normal, force, couple, slip, twist, pairs, rolling):
    """Write the answer of contact p; sign -1 where the list has the two shapes the other way round."""
    first = 6 if rolling else 3
    for i in range(3):
        pairs.action[p, i] = sign * force[i]
        pairs.action[p, 3 + i] = where[i]
        pairs.couple[p, i] = sign * couple[i]
        pairs.memory[p, i] = sign * slip[i]
        pairs.memory[p, first + i] = sign * normal[i]
    pairs.memory[p, first + 3] = twist


@func
def forget(p, pairs, rolling):
    """Contact p does not touch: no force, no slip; its last normal stays.

    Memory that was never written to costs nothing, so zeros are not written again.
    """
    clear = True
    for i in range(6):
        clear = clear and pairs.action[p, i] == 0.0
    for i in range(6 if rolling else 3):
        clear = clear and pairs.memory[p, i] == 0.0
    if clear:
        return
    for i in range(6):
        pairs.action[p, i] = 0.0
    for i in range(3):
        pairs.couple[p, i] = 0.0
    for i in range(6 if rolling else 3):
        pairs.memory[p, i] = 0.0
    pairs.memory[p, (6 if rolling else 3) + 3] = 0.0


@func
def touch_hulls(p, bodies, shapes, parts, hulls, pairs, edges, periodic, rolling, work, sphere_points):
    """Contact points of pair p of the list in the axes of its polyhedron, the first if both are: how many.

    Where two polyhedra are apart, the normal of the plane that parts them is remembered.
    """
    a, b = pairs.shape[p, 0], pairs.shape[p, 1]
    if shapes.kind[a] == SPHERE or shapes.kind[b] == SPHERE:
        s, t = (b, a) if shapes.kind[a] == SPHERE else (a, b)
        return sphere_points(s, t, bodies, shapes, parts, hulls, edges, periodic, 0.0, work)
    first = 6 if rolling else 3
    ha, hb = parts.feature[shapes.part[a]], parts.feature[shapes.part[b]]
    ka, kb = bodies.scale[shapes.body[a]], bodies.scale[shapes.body[b]]
    q = load4(bodies.orientation, shapes.body[a])
    n = (pairs.memory[p, first], pairs.memory[p, first + 1], pairs.memory[p, first + 2])
    # A pair that touched touches again, most likely.
    if pairs.action[p, 0] == 0.0 and pairs.action[p, 1] == 0.0 and pairs.action[p, 2] == 0.0:
        d = between(a, b, shapes.centre, edges, periodic)
        if parted(ha, ka, q, hb, kb, load4(bodies.orientation, shapes.body[b]), d, n, hulls):
            return 0
    turn, d = second_in_first(a, b, bodies, shapes, edges, periodic)
    s, n, kind, one, two = separation(ha, ka, hb, kb, turn, d, hulls, 0.0, work)
    if s >= 0.0:
        n = rotate(q, n)
        for i in range(3):
            pairs.memory[p, first + i] = n[i]
        return 0
    return contact_points(ha, ka, hb, kb, turn, d, s, n, kind, one, two, hulls, 0.0, work)


@func
def hull_pair(
    p, bodies, shapes, rows, parts, hulls, pairs, mixes, edges, dt, work, law, rolling, periodic, sphere_points
):
    """Force of pair p of the list, two particles of which one is a polyhedron."""
    count = touch_hulls(p, bodies, shapes, parts, hulls, pairs, edges, periodic, rolling, work, sphere_points)
    if count == 0:
        forget(p, pairs, rolling)
        return
    a, b = pairs.shape[p, 0], pairs.shape[p, 1]
    swap = shapes.kind[a] != POLYHEDRON
    sign = -1.0 if swap else 1.0
    s, t = (b, a) if swap else (a, b)
    xs, xt = load(shapes.centre, s), load(shapes.centre, t)
    if periodic:
        away = sub(xt, xs)
        xt = (
            xs[0] + image(away[0], edges[0], edges[3]),
            xs[1] + image(away[1], edges[1], edges[4]),
            xs[2] + image(away[2], edges[2], edges[5]),
        )
    flat_to_world(work, count, load4(bodies.orientation, shapes.body[s]), xs)
    first = 6 if rolling else 3
    slip = (sign * pairs.memory[p, 0], sign * pairs.memory[p, 1], sign * pairs.memory[p, 2])
    own, other = ball_radius(s, bodies, shapes, parts, hulls), ball_radius(t, bodies, shapes, parts, hulls)
    where, n, force, couple, slip, twist = press(
        work,
        count,
        True,
        xs,
        (rows[s, 4], rows[s, 5], rows[s, 6]),
        (rows[s, 8], rows[s, 9], rows[s, 10]),
        xt,
        (rows[t, 4], rows[t, 5], rows[t, 6]),
        (rows[t, 8], rows[t, 9], rows[t, 10]),
        slip,
        pairs.memory[p, first + 3],
        1.0 / (rows[s, 7] + rows[t, 7]),
        own * other / (own + other),
        mix_of(mixes, pairs.mix[p]),
        dt,
        law,
    )
    remember(p, sign, where, n, force, couple, slip, twist, pairs, rolling)
    if rolling and shapes.kind[t] == SPHERE:
        turning = (rows[b, 8] - rows[a, 8], rows[b, 9] - rows[a, 9], rows[b, 10] - rows[a, 10])
        roll_pair(p, turning, dot(force, n), -work[3], own * other / (own + other), n, pairs, mixes, dt)


@func
def ball_radius(s, bodies, shapes, parts, hulls):
    """Radius [m] of the ball of the same volume, which stands for a polyhedron in a contact law; of a sphere its own."""
    if shapes.kind[s] == SPHERE:
        return shapes.radius[s]
    return bodies.scale[shapes.body[s]] * hulls.ball[parts.feature[shapes.part[s]]]


def hull_block(block, first, count, bodies, shapes, rows, parts, hulls, pairs, mixes, edges, dt, width):
    """Forces of a block of pairs, rows first to first + count of the list."""
    work = np.empty(width)
    begin = first + block * BLOCK
    for p in range(begin, min(begin + BLOCK, first + count)):
        hull_pair(
            p, bodies, shapes, rows, parts, hulls, pairs, mixes, edges, dt, work, law, ROLLING, PERIODIC, sphere_points
        )


def hull_wall_block(block, bodies, shapes, parts, meshes, hulls, pairs, mixes, box, dt, width, largest):
    """Forces of a block of particles with all walls near them, for those that are polyhedra.

    largest: walls near one particle at the most. Points of all walls of one body share the stiffness, so that it does
    not matter into how many triangles a floor is cut.
    """
    work, store = np.empty(width), np.empty((largest, 4 * POINT + 1))
    for g in range(block * BLOCK, min(len(pairs.wall_start) - 1, (block + 1) * BLOCK)):
        first, last = pairs.wall_start[g], pairs.wall_start[g + 1]
        s = pairs.shape[first, 0]
        if shapes.kind[s] == POLYHEDRON:
            find_points(first, last, bodies, shapes, parts, meshes, hulls, pairs, box, work, store, wall_points)
            share_walls(first, last, shapes, pairs, store)
            press_walls(first, last, bodies, shapes, parts, hulls, pairs, mixes, box, dt, work, store, law, ROLLING)


@func
def find_points(first, last, bodies, shapes, parts, meshes, hulls, pairs, box, work, store, wall_points):
    """Write the points of one polyhedron with the walls of pairs first to last of the list to store: 32 columns, how many."""
    s = pairs.shape[first, 0]
    q, x = load4(bodies.orientation, shapes.body[s]), load(shapes.centre, s)
    for p in range(first, last):
        count = wall_points(s, pairs.shape[p, 1], bodies, shapes, parts, meshes, hulls, box, 0.0, work)
        # The wall does not give way: the contact point is on its surface.
        to_world(work, count, q, x)
        for i in range(POINT * count):
            store[p - first, i] = work[i]
        store[p - first, COUNT] = count


@func
def share_walls(first, last, shapes, pairs, store):
    """Write the share of each point among all points with walls of the same body."""
    for p in range(first, last):
        wall = shapes.body[pairs.shape[p, 1]]
        for i in range(int(store[p - first, COUNT])):
            at = POINT * i
            total = 0.0
            for r in range(last - first):
                if shapes.body[pairs.shape[first + r, 1]] == wall:
                    for j in range(int(store[r, COUNT])):
                        along = store[p - first, at + 4] * store[r, POINT * j + 4]
                        along += store[p - first, at + 5] * store[r, POINT * j + 5]
                        along += store[p - first, at + 6] * store[r, POINT * j + 6]
                        along = max(0.0, along)
                        total += max(-store[r, POINT * j + 3], 0.0) * along * along
            store[p - first, at + SHARE] = max(-store[p - first, at + 3], 0.0) / max(total, 1e-300)


@func
def press_walls(first, last, bodies, shapes, parts, hulls, pairs, mixes, box, dt, work, store, law, rolling):
    """Forces of one polyhedron with the walls of pairs first to last of the list, from its points."""
    s = pairs.shape[first, 0]
    a = shapes.body[s]
    for p in range(first, last):
        if store[p - first, COUNT] == 0.0 and remembers(pairs, p):
            hand_over(p, first, last, shapes, pairs, store)
    for p in range(first, last):
        count = int(store[p - first, COUNT])
        if count == 0:
            forget(p, pairs, rolling)
            continue
        for i in range(POINT * count):
            work[i] = store[p - first, i]
        w = pairs.shape[p, 1]
        b = shapes.body[w]
        xb = load(bodies.position, b)
        if box.periodic:
            # The image of the wall that was looked at.
            away = sub(load(shapes.centre, s), load(shapes.centre, w))
            xb = (
                xb[0] + away[0] - image(away[0], box.length[0], box.inverse[0]),
                xb[1] + away[1] - image(away[1], box.length[1], box.inverse[1]),
                xb[2] + away[2] - image(away[2], box.length[2], box.inverse[2]),
            )
        where, n, force, couple, slip, twist = press(
            work,
            count,
            False,
            load(shapes.centre, s),
            load(bodies.velocity, a),
            load(bodies.spin, a),
            xb,
            load(bodies.velocity, b),
            load(bodies.spin, b),
            (pairs.memory[p, 0], pairs.memory[p, 1], pairs.memory[p, 2]),
            pairs.memory[p, (6 if rolling else 3) + 3],
            bodies.mass[a],
            ball_radius(s, bodies, shapes, parts, hulls),
            mix_of(mixes, pairs.mix[p]),
            dt,
            law,
        )
        remember(p, 1.0, where, n, force, couple, slip, twist, pairs, rolling)


@func
def hand_over(p, first, last, shapes, pairs, store):
    """Give the memory of contact p, which ended, to a contact of the same two bodies that begins now.

    So a corner that slides from one triangle of a mesh to the next takes its slip along.
    """
    wall = shapes.body[pairs.shape[p, 1]]
    for other in range(first, last):
        begins = store[other - first, COUNT] > 0.0 and not remembers(pairs, other)
        if begins and shapes.body[pairs.shape[other, 1]] == wall:
            for i in range(pairs.memory.shape[1]):
                pairs.memory[other, i] = pairs.memory[p, i]
                pairs.memory[p, i] = 0.0
            return


def compose(state, law, rolling, periodic):
    """The kernels of pairs and of walls for what a State has."""
    options = {"grain": 2, "allocates": True, "law": law, "ROLLING": rolling}
    return (
        kernel(hull_block, PERIODIC=periodic, sphere_points=sphere_points_for(state.parts), **options),
        kernel(hull_wall_block, wall_points=wall_points_for(state.parts), **options),
    )


def collide(kernels, state, mixes, edges, dt):
    """Forces of all contacts with a polyhedron, by the kernels of `compose`."""
    between_particles, at_walls = kernels
    there, pairs, width = state.there, state.pairs, work_width(state.hulls)
    first, count = state.balls + state.solids, state.patches
    if count:
        tables = there.bodies, there.shapes, there.rows, there.parts, there.hulls, pairs, mixes, edges
        between_particles((count + BLOCK - 1) // BLOCK, first, count, *tables, dt, width)
    groups = len(pairs.wall_start) - 1
    if groups:
        largest = int(np.diff(pairs.wall_start).max())
        tables = *state.kernel_tables, pairs, mixes, there.box
        at_walls((groups + BLOCK - 1) // BLOCK, *tables, dt, width, largest)

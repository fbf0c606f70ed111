"""Smooth contact forces: from pairs to the force of every contact.

Contacts of spheres with spheres are worked off in lanes: 64 pairs are gathered into local arrays and the law runs over
them in one loop that the compiler turns into vector instructions. The width is fixed, so a pair gets the same bits
wherever it stands in the list. The CUDA grid takes the same scalar functions one pair at a time.
"""

import math

import numpy as np

from ..broad.near import image
from ..kernels.backend import func, fused
from ..kernels.vec import add, cross, dot, load, scale, sub
from ..narrow.ellipsoids import surface_point
from ..narrow.round_walls import ball_any
from ..shapes.ellipsoid_form import load_form
from ..tables import ELLIPSOID, MESH, POLYHEDRON, TRIANGLE
from . import laws
from .curvature import wall_radius
from .laws import Mix, Touch

WIDTH = 64
BLOCK = 8 * WIDTH  # pairs a task: making the lanes once for 512 pairs costs nothing

# Bound to each kernel by `clast.run.simulation`: the law, and what the scene has.
law = laws.hertz
ROLLING = False  # some pair of materials has rolling friction
PERIODIC = False
UNIFORM = False  # one material
TRIANGLES = False  # walls of triangles
ELLIPSOIDS = False
SOLIDS = False  # actions of walls hold points
wall_touch = ball_any


@fused
def touch_balls(d, v, roll_speed, slip, reach, product, lightness, mix, dt, law):
    """Answer of one pair of spheres.

    d (3,): from centre a to centre b; v (3,): velocity of centre b against a; roll_speed (3,): spin of a times its radius
    plus the same of b; reach, product: sum and product of the radii; lightness: sum of 1/mass. The contact point
    divides the line between the centres as the radii do, so the arms are the radii times one factor.
    Returns overlap, normal, normal force, force on b, slip, and normal x force times that factor: the torque on either
    sphere is this times minus its radius.
    """
    distance = math.sqrt(d[0] * d[0] + d[1] * d[1] + d[2] * d[2])
    inverse = 1.0 / max(distance, 1e-300)
    n = (d[0] * inverse, d[1] * inverse, d[2] * inverse)
    overlap = reach - distance
    per_reach = 1.0 / reach
    arm = distance * per_reach
    w = (arm * roll_speed[0], arm * roll_speed[1], arm * roll_speed[2])
    x = v[0] - (w[1] * n[2] - w[2] * n[1])
    y = v[1] - (w[2] * n[0] - w[0] * n[2])
    z = v[2] - (w[0] * n[1] - w[1] * n[0])
    opening = x * n[0] + y * n[1] + z * n[2]
    slide = (x - opening * n[0], y - opening * n[1], z - opening * n[2])
    touch = Touch(max(overlap, 0.0), -opening, n, slide, slip, 1.0 / lightness, product * per_reach)
    normal, shear, slip = law(touch, mix, dt)
    # Selected, not multiplied by zero: a law may have no answer where nothing touches.
    touching = overlap > 0.0
    normal = normal if touching else 0.0
    x, y, z = shear[0] if touching else 0.0, shear[1] if touching else 0.0, shear[2] if touching else 0.0
    force = (normal * n[0] + x, normal * n[1] + y, normal * n[2] + z)
    slip = (slip[0] if touching else 0.0, slip[1] if touching else 0.0, slip[2] if touching else 0.0)
    # Only the shear force has a torque; the normal force points at both centres.
    torque = (arm * (n[1] * z - n[2] * y), arm * (n[2] * x - n[0] * z), arm * (n[0] * y - n[1] * x))
    return overlap, n, normal, force, slip, torque


@func
def mix_of(table, row):
    """The combined material in one row of the table."""
    return Mix(table[row, 0], table[row, 1], table[row, 2], table[row, 3], table[row, 4], table[row, 5], table[row, 6])


def ball_block(block, count, bodies, shapes, rows, pairs, mixes, edges, dt):
    """Forces of a block of pairs of spheres, 64 at a time.

    Arrays are taken out of their tables once, and rows are counted in unsigned numbers, which numba does not test for
    being negative. Two cores, packing of 10,000: 12 ns a pair. Leaving pairs that do not touch out of the lanes was
    slower: the branch costs more than the idle lanes.
    """
    pair, memory, action, pair_mix = pairs.shape, pairs.memory, pairs.action, pairs.mix
    lane = np.empty((23, WIDTH))
    mix = mix_of(mixes, 0)
    for first in range(block * BLOCK, min(count, (block + 1) * BLOCK), WIDTH):
        used = min(WIDTH, count - first)
        for j in range(used):
            k, p = np.uintp(j), np.uintp(first + j)
            a, b = np.uintp(pair[p, 0]), np.uintp(pair[p, 1])
            ra, rb = rows[a, 3], rows[b, 3]
            for i in range(3):
                d = rows[b, i] - rows[a, i]
                if PERIODIC:
                    d = image(d, edges[i], edges[3 + i])
                lane[i, k] = d
                lane[3 + i, k] = rows[b, 4 + i] - rows[a, 4 + i]
                lane[6 + i, k] = ra * rows[a, 8 + i] + rb * rows[b, 8 + i]
                lane[9 + i, k] = memory[p, i]
            lane[12, k] = ra + rb
            lane[13, k] = ra * rb
            lane[14, k] = rows[a, 7] + rows[b, 7]
            if not UNIFORM:
                m = np.uintp(pair_mix[p])
                for i in range(7):
                    lane[15 + i, k] = mixes[m, i]
        for k in range(used, WIDTH):
            for i in range(23):
                lane[i, k] = 1.0
        for k in range(WIDTH):
            if not UNIFORM:
                mix = Mix(lane[15, k], lane[16, k], lane[17, k], lane[18, k], lane[19, k], lane[20, k], lane[21, k])
            overlap, n, normal, f, slip, torque = touch_balls(
                (lane[0, k], lane[1, k], lane[2, k]),
                (lane[3, k], lane[4, k], lane[5, k]),
                (lane[6, k], lane[7, k], lane[8, k]),
                (lane[9, k], lane[10, k], lane[11, k]),
                lane[12, k],
                lane[13, k],
                lane[14, k],
                mix,
                dt,
                law,
            )
            lane[0, k], lane[1, k], lane[2, k] = f
            lane[3, k], lane[4, k], lane[5, k] = torque
            lane[9, k], lane[10, k], lane[11, k] = slip
            if ROLLING:
                lane[6, k], lane[7, k], lane[8, k] = n
                lane[12, k] = overlap
                lane[22, k] = normal
        for j in range(used):
            k, p = np.uintp(j), np.uintp(first + j)
            for i in range(6):
                action[p, i] = lane[i, k]
            for i in range(3):
                memory[p, i] = lane[9 + i, k]
            if ROLLING:
                n = (lane[6, k], lane[7, k], lane[8, k])
                a, b = np.uintp(pair[p, 0]), np.uintp(pair[p, 1])
                radius = rows[a, 3] * rows[b, 3] / (rows[a, 3] + rows[b, 3])
                turning = (rows[b, 8] - rows[a, 8], rows[b, 9] - rows[a, 9], rows[b, 10] - rows[a, 10])
                roll_pair(p, turning, lane[22, k], lane[12, k], radius, n, pairs, mixes, dt)


@func
def roll_pair(p, turning, normal, overlap, radius, n, pairs, mixes, dt):
    """Rolling resistance of contact p: its couple on b and the rolling angle it remembers."""
    mix = mix_of(mixes, pairs.mix[p])
    turned = (pairs.memory[p, 3], pairs.memory[p, 4], pairs.memory[p, 5])
    stiffness = 8.0 * mix.shear * math.sqrt(radius * max(overlap, 0.0))
    couple, turned = laws.roll(turned, turning, normal, n, stiffness, radius, mix, dt)
    keep = 1.0 if overlap > 0.0 else 0.0
    for i in range(3):
        pairs.couple[p, i] = keep * couple[i]
        pairs.memory[p, 3 + i] = keep * turned[i]


def ball_row(p, bodies, shapes, rows, pairs, mixes, edges, dt):
    """Force of one pair of spheres; the same numbers as `ball_block`, one pair at a time, for a CUDA grid."""
    a, b = pairs.shape[p, 0], pairs.shape[p, 1]
    ra, rb = rows[a, 3], rows[b, 3]
    d = sub(load(rows, b), load(rows, a))
    if PERIODIC:
        d = (image(d[0], edges[0], edges[3]), image(d[1], edges[1], edges[4]), image(d[2], edges[2], edges[5]))
    v = (rows[b, 4] - rows[a, 4], rows[b, 5] - rows[a, 5], rows[b, 6] - rows[a, 6])
    wa, wb = (rows[a, 8], rows[a, 9], rows[a, 10]), (rows[b, 8], rows[b, 9], rows[b, 10])
    slip = (pairs.memory[p, 0], pairs.memory[p, 1], pairs.memory[p, 2])
    mix = mix_of(mixes, pairs.mix[p])
    roll_speed = add(scale(ra, wa), scale(rb, wb))
    overlap, n, normal, f, slip, torque = touch_balls(
        d, v, roll_speed, slip, ra + rb, ra * rb, rows[a, 7] + rows[b, 7], mix, dt, law
    )
    for i in range(3):
        pairs.action[p, i] = f[i]
        pairs.action[p, 3 + i] = torque[i]
        pairs.memory[p, i] = slip[i]
    if ROLLING:
        roll_pair(p, sub(wb, wa), normal, overlap, ra * rb / (ra + rb), n, pairs, mixes, dt)


def wall_row(c, bodies, shapes, parts, meshes, hulls, forms, pairs, mixes, box, dt):
    """Forces of 64 particles with all walls near them.

    The gap and normal of each pair stand in its action until its force does: the touch is a large function, and written in
    one place it is compiled once.
    """
    for g in range(c * WIDTH, min(len(pairs.wall_start) - 1, (c + 1) * WIDTH)):
        first, last = pairs.wall_start[g], pairs.wall_start[g + 1]
        s = pairs.shape[first, 0]
        if SOLIDS and (shapes.kind[s] == POLYHEDRON or shapes.kind[s] == MESH):
            continue  # `clast.dem.polyhedra` and `clast.dem.meshes` look after these
        for p in range(first, last):
            status, gap, n, feature = wall_touch(s, pairs.shape[p, 1], bodies, shapes, parts, meshes, box, 0.0)
            pairs.action[p, 0] = gap if status == 1 else np.inf
            for i in range(3):
                pairs.action[p, 1 + i] = n[i]
        if TRIANGLES:
            for p in range(first, last):
                kind = parts.kind[shapes.part[pairs.shape[p, 1]]]
                if kind == TRIANGLE and pairs.action[p, 0] >= 0.0 and remembers(pairs, p):
                    hand_over(p, first, last, shapes, pairs)
        for p in range(first, last):
            gap, n = pairs.action[p, 0], (pairs.action[p, 1], pairs.action[p, 2], pairs.action[p, 3])
            if gap < 0.0:
                touch_wall(p, gap, n, bodies, shapes, forms, pairs, mixes, box, dt, law, ROLLING, ELLIPSOIDS, SOLIDS)
            else:
                for i in range(6):
                    pairs.action[p, i] = 0.0
                for i in range(pairs.memory.shape[1]):
                    pairs.memory[p, i] = 0.0
                if ROLLING:
                    for i in range(3):
                        pairs.couple[p, i] = 0.0


@func
def touch_wall(p, gap, n, bodies, shapes, forms, pairs, mixes, box, dt, law, rolling, ellipsoids, solids):
    """Force of contact p of a particle with a wall in direction n."""
    s, w = pairs.shape[p, 0], pairs.shape[p, 1]
    a, b = shapes.body[s], shapes.body[w]
    overlap = -gap
    r = shapes.radius[s]
    distance = r + gap
    # The wall does not give way: the contact point is on its surface.
    q = add(load(shapes.centre, s), scale(distance, n))
    if ellipsoids and shapes.kind[s] == ELLIPSOID:
        m = load_form(forms, s)
        q = add(load(shapes.centre, s), add(surface_point(m, n), scale(gap, n)))
        r = wall_radius(m, n)
    va = add(load(bodies.velocity, a), cross(load(bodies.spin, a), sub(q, load(bodies.position, a))))
    arm = sub(q, load(bodies.position, b))
    if box.periodic:
        # The image of the wall that `wall_touch` looked at.
        away = sub(load(shapes.centre, s), load(shapes.centre, w))
        arm = (
            arm[0] + image(away[0], box.length[0], box.inverse[0]) - away[0],
            arm[1] + image(away[1], box.length[1], box.inverse[1]) - away[1],
            arm[2] + image(away[2], box.length[2], box.inverse[2]) - away[2],
        )
    vb = add(load(bodies.velocity, b), cross(load(bodies.spin, b), arm))
    v = sub(vb, va)
    opening = dot(v, n)
    slide = sub(v, scale(opening, n))
    slip = (pairs.memory[p, 0], pairs.memory[p, 1], pairs.memory[p, 2])
    touch = Touch(overlap, -opening, n, slide, slip, bodies.mass[a], r)
    normal, shear, slip = law(touch, mix_of(mixes, pairs.mix[p]), dt)
    # Torque on the sphere over minus its radius, as for two spheres; or where the force acts.
    where = q if solids else scale(distance / r, cross(n, shear))
    for i in range(3):
        pairs.action[p, i] = normal * n[i] + shear[i]
        pairs.action[p, 3 + i] = where[i]
        pairs.memory[p, i] = slip[i]
    if rolling:
        turning = sub(load(bodies.spin, b), load(bodies.spin, a))
        roll_pair(p, turning, normal, overlap, r, n, pairs, mixes, dt)


@func
def remembers(pairs, p):
    """Whether contact p has slipped."""
    return pairs.memory[p, 0] != 0.0 or pairs.memory[p, 1] != 0.0 or pairs.memory[p, 2] != 0.0


@func
def hand_over(p, first, last, shapes, pairs):
    """Give the memory of contact p, which ended, to a contact of the same two bodies that begins now.

    So a particle that rolls from one triangle of a mesh to the next takes its slip along.
    """
    wall = shapes.body[pairs.shape[p, 1]]
    for other in range(first, last):
        same = shapes.body[pairs.shape[other, 1]] == wall
        if same and pairs.action[other, 0] < 0.0 and not remembers(pairs, other):
            for i in range(pairs.memory.shape[1]):
                pairs.memory[other, i] = pairs.memory[p, i]
                pairs.memory[p, i] = 0.0
            return

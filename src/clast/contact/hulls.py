"""Contacts of shapes of which one is a polyhedron: which of them are near, and all their points, for many pairs at once.

Points are found in the axes of a polyhedron; see `clast.contact.hull_pair` for how they stand in `work`.
"""

import math

import numpy as np

from .. import backend, primitives
from ..backend import func, kernel, part
from ..tables import FIRST_WALL, PLANE, POLYHEDRON, TRIANGLE
from ..vec import (
    add,
    load,
    load4,
    matrix_vector,
    quat_matrix,
    quat_multiply,
    rotate,
    scale,
    sub,
    transposed,
    unrotate,
)
from .hull_ball import hull_ball
from .hull_cylinder import hull_cylinder
from .hull_distance import hull_distance
from .hull_pair import POINT, contact_points, get, parted, put, separation, work_width
from .hull_triangle import hull_triangle
from .hull_walls import hull_plane
from .near import image
from .solids import between, keep_row

BLOCK = 64  # pairs a task

# Bound to the kernels: what the scene has.
PERIODIC = False
triangle_touch = hull_triangle  # or `no_triangle`, so that nothing is compiled for nothing


@func
def conjugate(q):
    """The turn back."""
    return (q[0], -q[1], -q[2], -q[3])


@func
def second_in_first(a, b, bodies, shapes, edges, periodic):
    """How shape b lies in the axes of shape a's body: matrix of its turn, way from centre to centre."""
    body_a, body_b = shapes.body[a], shapes.body[b]
    q = load4(bodies.orientation, body_a)
    turn = quat_matrix(quat_multiply(conjugate(q), load4(bodies.orientation, body_b)))
    return turn, unrotate(q, between(a, b, shapes.centre, edges, periodic))


@part
def hull_hull(a, b, bodies, shapes, parts, hulls, edges, periodic, margin, work):
    """Points of two polyhedra a and b in the axes of a: how many, 0 if they are farther apart than margin [m]."""
    ha, hb = parts.feature[shapes.part[a]], parts.feature[shapes.part[b]]
    ka, kb = bodies.scale[shapes.body[a]], bodies.scale[shapes.body[b]]
    turn, d = second_in_first(a, b, bodies, shapes, edges, periodic)
    s, n, kind, one, two = separation(ha, ka, hb, kb, turn, d, hulls, margin, work)
    if s > margin:
        return 0
    if s > 0.0:
        gap, m, x = hull_distance(ha, ka, hb, kb, turn, d, hulls, n)
        if gap > margin:
            return 0
        # Where a face or a pair of edges is nearest, its patch of points is there; a corner is one point.
        if gap > s + 1e-9 * (ka * hulls.outer[ha] + kb * hulls.outer[hb]):
            put(work, 0, x)
            work[3] = gap
            put(work, 4, m)
            work[7] = 0.0
            return 1
    return contact_points(ha, ka, hb, kb, turn, d, s, n, kind, one, two, hulls, margin, work)


@part
def hull_sphere(a, b, bodies, shapes, parts, hulls, edges, periodic, margin, work):
    """The point of polyhedron a and sphere b in the axes of a: 1, or 0 if they are farther apart than margin [m]."""
    body = shapes.body[a]
    q = load4(bodies.orientation, body)
    c = unrotate(q, between(a, b, shapes.centre, edges, periodic))
    found, gap, n, x, feature = hull_ball(
        parts.feature[shapes.part[a]], bodies.scale[body], hulls, c, shapes.radius[b], margin
    )
    put(work, 0, x)
    work[3] = gap
    put(work, 4, n)
    work[7] = feature
    return 1 if found == 1 and gap <= margin else 0


@part
def no_triangle(h, k, hulls, meshes, t, q, shift, size, margin, work):
    """In place of `hull_triangle` where a scene has no triangles."""
    return 0


@part
def hull_wall(s, w, bodies, shapes, parts, meshes, hulls, box, margin, work, triangle_touch):
    """Points of polyhedron s and wall w in the axes of s: how many."""
    body, wall = shapes.body[s], shapes.body[w]
    part_row = shapes.part[w]
    h, k, size = parts.feature[shapes.part[s]], bodies.scale[body], bodies.scale[wall]
    q, turn = load4(bodies.orientation, body), load4(bodies.orientation, wall)
    d = sub(load(bodies.position, wall), load(shapes.centre, s))
    if box.periodic:
        # The image nearest to the wall piece itself, which may lie far from its body's origin.
        away = sub(load(shapes.centre, w), load(shapes.centre, s))
        for_image = (
            image(away[0], box.length[0], box.inverse[0]) - away[0],
            image(away[1], box.length[1], box.inverse[1]) - away[1],
            image(away[2], box.length[2], box.inverse[2]) - away[2],
        )
        d = add(d, for_image)
    d = unrotate(q, d)
    turn = quat_multiply(conjugate(q), turn)
    if parts.kind[part_row] == TRIANGLE:
        return triangle_touch(h, k, hulls, meshes, parts.feature[part_row], turn, d, size, margin, work)
    c = add(d, scale(size, rotate(turn, load(parts.offset, part_row))))
    axis = rotate(turn, load(parts.axis, part_row))
    if parts.kind[part_row] == PLANE:
        # The plane's normal points to the side of the bodies.
        height = -(c[0] * axis[0] + c[1] * axis[1] + c[2] * axis[2])
        return hull_plane(h, k, hulls, (-axis[0], -axis[1], -axis[2]), height, margin, work)
    radius, half, sense = size * parts.size[part_row, 0], size * parts.size[part_row, 1], parts.size[part_row, 2]
    return hull_cylinder(h, k, hulls, c, axis, radius, half, sense, margin, work)


def touch_for(meshes):
    """The function for triangles, or the one for none."""
    return hull_triangle if len(meshes.triangle) else no_triangle


# Which pairs of a list are near enough to keep.


def near_block(block, bodies, shapes, parts, hulls, pair, edges, margin, width, near):
    """Whether pairs of a block are within the margin; may err towards yes."""
    work = np.empty(width)
    for p in range(block * BLOCK, min(len(near), (block + 1) * BLOCK)):
        near[p] = is_near(p, bodies, shapes, parts, hulls, pair, edges, margin, work, PERIODIC)


def near_row(p, bodies, shapes, parts, hulls, pair, edges, margin, work, near):
    """The same for one pair, for a CUDA grid."""
    near[p] = is_near(p, bodies, shapes, parts, hulls, pair, edges, margin, work[p], PERIODIC)


@func
def is_near(p, bodies, shapes, parts, hulls, pair, edges, margin, work, periodic):
    """Whether the separation of pair p is within the margin: 1 or 0."""
    a, b = pair[p, 0], pair[p, 1]
    if shapes.kind[a] == POLYHEDRON and shapes.kind[b] == POLYHEDRON:
        ha, hb = parts.feature[shapes.part[a]], parts.feature[shapes.part[b]]
        ka, kb = bodies.scale[shapes.body[a]], bodies.scale[shapes.body[b]]
        turn, d = second_in_first(a, b, bodies, shapes, edges, periodic)
        s, n, kind, one, two = separation(ha, ka, hb, kb, turn, d, hulls, margin, work)
        return 1 if s <= margin else 0
    if shapes.kind[a] != POLYHEDRON:
        a, b = b, a
    return hull_sphere(a, b, bodies, shapes, parts, hulls, edges, periodic, margin, work)


def near_hulls(tables, pair, box, margin):
    """Those of the pairs (p,2) of which one is a polyhedron that may be within the margin [m], in their order."""
    device = backend.DEVICE[-1]
    bodies, shapes, parts, _, hulls = tables
    count = len(pair)
    near = device.empty(count, np.int8)
    edges = (*box.length.tolist(), *box.inverse.tolist())
    width = work_width(hulls)
    if device is backend.CPU:
        search = kernel(near_block, grain=2, allocates=True, PERIODIC=bool(box.periodic))
        search((count + BLOCK - 1) // BLOCK, bodies, shapes, parts, hulls, pair, edges, float(margin), width, near)
    else:
        work = device.empty((count, width), np.float64)
        search = kernel(near_row, PERIODIC=bool(box.periodic))
        search(count, bodies, shapes, parts, hulls, pair, edges, float(margin), work, near)
    start = primitives.scan(near)
    kept = device.empty((int(device.to_host(start[-1:])[0]), 2), np.int32)
    kernel(keep_row)(count, pair, start, kept)
    return kept


# All points of listed pairs.


def spot_block(block, bodies, shapes, parts, meshes, hulls, box, edges, margin, pair, rows, width, found, spots):
    """Contact points of a block of pairs rows[k], in the world: how many, and (k,32) as in `work`.

    Normals point from the first to the second shape of the pair, and points are in the middle of the overlap or gap.
    """
    work = np.empty(width)
    for k in range(block * BLOCK, min(len(rows), (block + 1) * BLOCK)):
        a, b = pair[rows[k], 0], pair[rows[k], 1]
        swap = shapes.kind[a] != POLYHEDRON
        s, t = (b, a) if swap else (a, b)
        if shapes.kind[t] >= FIRST_WALL:
            count = hull_wall(s, t, bodies, shapes, parts, meshes, hulls, box, margin, work, triangle_touch)
        elif shapes.kind[t] == POLYHEDRON:
            count = hull_hull(s, t, bodies, shapes, parts, hulls, edges, PERIODIC, margin, work)
        else:
            count = hull_sphere(s, t, bodies, shapes, parts, hulls, edges, PERIODIC, margin, work)
        found[k] = count
        q, x = load4(bodies.orientation, shapes.body[s]), load(shapes.centre, s)
        sign = -1.0 if swap else 1.0
        for i in range(count):
            n = rotate(q, get(work, POINT * i + 4))
            point = add(x, rotate(q, get(work, POINT * i)))
            gap = work[POINT * i + 3]
            for j in range(3):
                spots[k, POINT * i + j] = point[j] + 0.5 * gap * n[j]
                spots[k, POINT * i + 4 + j] = sign * n[j]
            spots[k, POINT * i + 3] = gap
            spots[k, POINT * i + 7] = work[POINT * i + 7]


def measure_hulls(tables, box, margin, pair, rows):
    """Contact points of the pairs rows (k,) of pair (p,2), of which one is a polyhedron: how many (k,), and spots (k,32)."""
    bodies, shapes, parts, meshes, hulls = tables
    found, spots = np.zeros(len(rows), np.int64), np.empty((len(rows), 4 * POINT))
    edges = (*box.length.tolist(), *box.inverse.tolist())
    has = {"PERIODIC": bool(box.periodic), "triangle_touch": touch_for(meshes)}
    kernel(spot_block, grain=2, allocates=True, **has)(
        (len(rows) + BLOCK - 1) // BLOCK,
        bodies,
        shapes,
        parts,
        meshes,
        hulls,
        box,
        edges,
        float(margin),
        pair,
        rows,
        work_width(hulls),
        found,
        spots,
    )
    return found, spots

"""Contact points of shapes of which one is a polyhedron, for many pairs at once, four slots a pair.

Points are found in the axes of a polyhedron; see `clast.narrow.polyhedron_polyhedron` for how they stand in `work`.
"""

import math

import numpy as np

from ..broad.near import asleep, image
from ..kernels.backend import func, kernel, part
from ..kernels.launch import same
from ..kernels.vec import add, dot, load, load4, quat_matrix, quat_multiply, rotate, scale, sub, unrotate
from ..tables import CYLINDER, PLANE, POLYHEDRON, TRIANGLE
from .box_box import APART, AXES, ROWS, lane_pose, part_boxes, put_boxes
from .ellipsoids import between
from .order import comes_second
from .polyhedron_cylinder import hull_cylinder
from .polyhedron_distance import hull_distance
from .polyhedron_manifold import box_size, contact_points
from .polyhedron_plane import hull_plane
from .polyhedron_polyhedron import FACE_FIRST, POINT, boxes_apart, get, parted, put, separation, work_width
from .polyhedron_sphere import hull_ball
from .polyhedron_triangle import hull_triangle

BLOCK = 64  # pairs a task


@func
def conjugate(q):
    """The turn back."""
    return (q[0], -q[1], -q[2], -q[3])


@func
def second_in_first(a, b, bodies, shapes, edges):
    """How shape b lies in the axes of shape a's body: matrix of its turn, way from centre to centre."""
    body_a, body_b = shapes.body[a], shapes.body[b]
    q = load4(bodies.orientation, body_a)
    turn = quat_matrix(quat_multiply(conjugate(q), load4(bodies.orientation, body_b)))
    return turn, unrotate(q, between(a, b, shapes.centre, edges))


@func
def hulls_of(a, b, tables):
    """Rows of Hulls of the polyhedra a and b, and their size factors."""
    bodies, shapes, parts, _ = tables
    rows = parts.feature[shapes.part[a]], parts.feature[shapes.part[b]]
    return *rows, bodies.scale[shapes.body[a]], bodies.scale[shapes.body[b]]


@func
def wait_in_lane(k, a, b, tables, edges, lane):
    """Write polyhedra a and b into lane k if both are boxes: whether they are."""
    bodies, shapes, _, hulls = tables
    ha, hb, ka, kb = hulls_of(a, b, tables)
    if not (hulls.box[ha, 0] > 0.0 and hulls.box[hb, 0] > 0.0):
        return False
    qa, qb = load4(bodies.orientation, shapes.body[a]), load4(bodies.orientation, shapes.body[b])
    way, tolerance = between(a, b, shapes.centre, edges), FACE_FIRST * (ka * hulls.outer[ha] + kb * hulls.outer[hb])
    put_boxes(lane, k, qa, qb, way, box_size(ha, ka, hulls), box_size(hb, kb, hulls), tolerance)
    return True


@func
def hull_hull(a, b, sign, c, at, tables, points, edges, margin, asks, room, distance):
    """Points of two polyhedra a and b in the axes of a, with slots from c on: how many, 0 if they are farther apart than margin [m].

    sign: -1 where normals in slots lead from b to a, else 1. at: where two boxes stand in the lanes, else -1; room: work and lanes.

    asks: (keeps, rough), see `Listed`. keeps: while they are apart, the first slot keeps the normal of the plane that parts them, which is tried first;
    not of boxes, which are told apart sooner.
    rough: one point with the gap alone, which may be too small.
    distance: `hull_distance`, or `no_distance` where gaps above zero need not be exact.
    """
    bodies, shapes, parts, hulls = tables
    keeps, rough = asks
    work, lane = room
    if at >= 0:
        k = np.uintp(at)
        if lane[APART, k] > margin:
            return 0
        if rough:
            work[3] = lane[APART, k]
            return 1
    ha, hb, ka, kb = hulls_of(a, b, tables)
    if at >= 0:
        k = np.uintp(at)
        turn, d = lane_pose(lane, k)
        found = boxes_apart(ha, hb, turn, d, lane[APART, k], lane[AXES, k], hulls)
    else:
        q = load4(bodies.orientation, shapes.body[a])
        # A pair that touched touches again, most likely.
        if keeps and not points.gap[c] < 0.0:
            d = between(a, b, shapes.centre, edges)
            n = scale(sign, load(points.normal, c))
            if parted(ha, ka, q, hb, kb, load4(bodies.orientation, shapes.body[b]), d, n, hulls):
                return 0
        turn, d = second_in_first(a, b, bodies, shapes, edges)
        found = separation(ha, ka, hb, kb, turn, d, hulls, margin, work)
        if found[0] > margin:
            if keeps:
                n = rotate(q, found[1])
                for i in range(3):
                    points.normal[c, i] = sign * n[i]
            return 0
    s, n = found[0], found[1]
    if rough:
        work[3] = s
        return 1
    gap, m, x = s, n, n
    if s > 0.0:
        gap, m, x = distance(ha, ka, hb, kb, turn, d, hulls, n)
        gap = max(gap, s)
        if gap > margin:
            return 0
        # Where a face or a pair of edges is nearest, its patch of points is there; a corner is one point.
        if gap > s + 1e-9 * (ka * hulls.outer[ha] + kb * hulls.outer[hb]):
            put(work, 0, x)
            work[3] = gap
            put(work, 4, m)
            work[7] = 0.0
            return 1
    count = contact_points(ha, ka, hb, kb, turn, d, found, hulls, margin, work)
    if s > 0.0:
        # A patch of needles may miss the nearest place, and s may be below the distance by what faces are preferred.
        if abs(work[3] - gap) > 1e-12 * (ka * hulls.outer[ha] + kb * hulls.outer[hb]):
            put(work, 0, x)
            work[3] = gap
            put(work, 4, m)
        for i in range(1, count):
            work[POINT * i + 3] = max(work[POINT * i + 3], gap)
    return count


@part  # not within the loop over pairs, most of which are of two polyhedra: 1 to 2 % of a step of cubes
def hull_sphere(a, b, bodies, shapes, parts, hulls, edges, margin, work):
    """The point of polyhedron a and sphere b in the axes of a: 1, or 0 if they are farther apart than margin [m]."""
    body = shapes.body[a]
    q = load4(bodies.orientation, body)
    c = unrotate(q, between(a, b, shapes.centre, edges))
    found, gap, n, x, feature = hull_ball(
        parts.feature[shapes.part[a]], bodies.scale[body], hulls, c, shapes.radius[b], margin
    )
    put(work, 0, x)
    work[3] = gap
    put(work, 4, n)
    work[7] = feature
    return 1 if found == 1 and gap <= margin else 0


@func
def wall_pose(s, w, bodies, shapes, box):
    """How the body of wall w lies in the axes of shape s's body: quaternion of its turn, way to its origin."""
    body, wall = shapes.body[s], shapes.body[w]
    q = load4(bodies.orientation, body)
    d = sub(load(bodies.position, wall), load(shapes.centre, s))
    if box.periodic:
        # The image nearest to the wall piece itself, which may lie far from its body's origin.
        away = sub(load(shapes.centre, w), load(shapes.centre, s))
        d = (
            d[0] + image(away[0], box.length[0], box.inverse[0]) - away[0],
            d[1] + image(away[1], box.length[1], box.inverse[1]) - away[1],
            d[2] + image(away[2], box.length[2], box.inverse[2]) - away[2],
        )
    return quat_multiply(conjugate(q), load4(bodies.orientation, wall)), unrotate(q, d)


@func
def no_distance(ha, ka, hb, kb, turn, d, hulls, start):
    """In place of `hull_distance`, which is large, where only overlaps count: the separation is bound enough."""
    return -math.inf, start, d


# Points of polyhedron s and wall w in the axes of s: how many. Which of these functions a kernel gets depends on what a
# scene has, so that nothing is compiled for nothing.


@func
def hull_flat(s, w, bodies, shapes, parts, meshes, hulls, box, margin, work):
    """Against a plane."""
    turn, d = wall_pose(s, w, bodies, shapes, box)
    row, body = shapes.part[w], shapes.body[s]
    c = add(d, scale(bodies.scale[shapes.body[w]], rotate(turn, load(parts.offset, row))))
    axis = rotate(turn, load(parts.axis, row))
    # The plane's normal points to the side of the bodies.
    n = (-axis[0], -axis[1], -axis[2])
    return hull_plane(parts.feature[shapes.part[s]], bodies.scale[body], hulls, n, dot(c, n), margin, work)


@func
def hull_smooth(s, w, bodies, shapes, parts, meshes, hulls, box, margin, work):
    """Against a plane or a cylinder."""
    row = shapes.part[w]
    if parts.kind[row] == PLANE:
        return hull_flat(s, w, bodies, shapes, parts, meshes, hulls, box, margin, work)
    turn, d = wall_pose(s, w, bodies, shapes, box)
    size, body = bodies.scale[shapes.body[w]], shapes.body[s]
    c = add(d, scale(size, rotate(turn, load(parts.offset, row))))
    axis = rotate(turn, load(parts.axis, row))
    radius, half, sense = size * parts.size[row, 0], size * parts.size[row, 1], parts.size[row, 2]
    h, k = parts.feature[shapes.part[s]], bodies.scale[body]
    return hull_cylinder(h, k, hulls, c, axis, radius, half, sense, margin, work)


@func
def hull_mesh(s, w, bodies, shapes, parts, meshes, hulls, box, margin, work):
    """Against a plane or a triangle."""
    row = shapes.part[w]
    if parts.kind[row] == PLANE:
        return hull_flat(s, w, bodies, shapes, parts, meshes, hulls, box, margin, work)
    turn, d = wall_pose(s, w, bodies, shapes, box)
    h, k, size = parts.feature[shapes.part[s]], bodies.scale[shapes.body[s]], bodies.scale[shapes.body[w]]
    return hull_triangle(h, k, hulls, meshes, parts.feature[row], turn, d, size, margin, work)


@func
def hull_any(s, w, bodies, shapes, parts, meshes, hulls, box, margin, work):
    """Against any wall."""
    if parts.kind[shapes.part[w]] == TRIANGLE:
        return hull_mesh(s, w, bodies, shapes, parts, meshes, hulls, box, margin, work)
    return hull_smooth(s, w, bodies, shapes, parts, meshes, hulls, box, margin, work)


def wall_points_for(parts):
    """The function for the walls that there are in Parts."""
    cylinders, triangles = bool((parts.kind == CYLINDER).any()), bool((parts.kind == TRIANGLE).any())
    return {
        (False, False): hull_flat,
        (True, False): hull_smooth,
        (False, True): hull_mesh,
        (True, True): hull_any,
    }[cylinders, triangles]


# Bound to the kernels: what the scene has.
wall_points = hull_any
distance = hull_distance


@func
def order_points(work, count):
    """Bring points in the axes of a polyhedron into an order that its mirror image has too: by gap, then by distance.

    Sums then round alike on both sides of a mirror, whatever the numbers of corners and faces.
    """
    for i in range(1, count):
        j = i
        while j > 0 and comes_before(work, POINT * j, POINT * (j - 1)):
            for k in range(POINT):
                mine = work[POINT * j + k]
                work[POINT * j + k] = work[POINT * (j - 1) + k]
                work[POINT * (j - 1) + k] = mine
            j -= 1


@func
def comes_before(work, one, two):
    """Whether the point at `one` comes before that at `two`."""
    if work[one + 3] != work[two + 3]:
        return work[one + 3] < work[two + 3]
    x, y = get(work, one), get(work, two)
    return dot(x, x) < dot(y, y)


@func
def ball_radius(s, bodies, shapes, parts):
    """Radius [m] that stands for shape s in a contact law."""
    return bodies.scale[shapes.body[s]] * parts.ball[shapes.part[s]]


@func
def write_points(c, count, q, away, sign, radius, work, points):
    """Write points in the axes of a polyhedron turned by q into the four slots from c on; the others are not in use.

    away (3,) [m]: from the centre of the first shape to that of the polyhedron; sign -1 where this is the second.
    """
    order_points(work, count)
    for i in range(4):
        points.gap[c + i] = work[POINT * i + 3] if i < count else np.inf
    own = n = (0.0, 0.0, 0.0)
    for i in range(count):
        # Most often the points of a pair have one normal.
        m = get(work, POINT * i + 4)
        if m[0] != own[0] or m[1] != own[1] or m[2] != own[2]:
            own, n = m, rotate(q, m)
        arm = add(away, add(rotate(q, get(work, POINT * i)), scale(0.5 * work[POINT * i + 3], n)))
        points.radius[c + i] = radius
        points.feature[c + i] = int(work[POINT * i + 7])
        for j in range(3):
            points.arm[c + i, j] = arm[j]
            points.normal[c + i, j] = sign * n[j]


@func
def clear(c, points):
    """Take the four slots from c on out of use; the first is in use if any is."""
    if points.gap[c] < np.inf:
        for i in range(4):
            points.gap[c + i] = np.inf


@func
def look_up(where, tables, pairs, edges, margin, listed, lane):
    """List the pairs that are not asleep, with whether their shapes are taken in the other order, and where they stand in the lanes or -1: how many.

    where: first pair, the pair behind the last, pairs before the first slot; listed (3,b).
    """
    shapes = tables[1]
    first, last, spheres = where
    found, boxes = 0, 0
    for p in range(first, last):
        a, b = pairs.shape[p, 0], pairs.shape[p, 1]
        if asleep(p, a, b, spheres, pairs, margin):
            continue
        swap, at = shapes.kind[a] != POLYHEDRON, -1
        if shapes.kind[a] == shapes.kind[b]:
            swap = comes_second(a, b, shapes, between(a, b, shapes.centre, edges))
            if wait_in_lane(np.uintp(boxes), b if swap else a, a if swap else b, tables, edges, lane):
                at, boxes = boxes, boxes + 1
        listed[0, found], listed[1, found], listed[2, found] = p, 1 if swap else 0, at
        found += 1
    part_boxes(lane, boxes)
    return found


@func
def pair_points(where, tables, pairs, points, edges, margin, asks, listed, room, distance):
    """Contact points of pairs of particles; where, listed: see `look_up`; room: work and lanes.

    A function of its own, because the row that makes `work` counts references to all arrays of a table at every look into it.
    """
    bodies, shapes, parts, hulls = tables
    spheres, rough, work = where[2], asks[1], room[0]
    for k in range(look_up(where, tables, pairs, edges, margin, listed, room[1])):
        p, swap, at = listed[0, k], listed[1, k] == 1, listed[2, k]
        a, b = pairs.shape[p, 0], pairs.shape[p, 1]
        c = pairs.slot[p - spheres]
        s, t, sign = (b, a, -1.0) if swap else (a, b, 1.0)
        if shapes.kind[a] == shapes.kind[b]:
            found = hull_hull(s, t, sign, c, at, tables, points, edges, margin, asks, room, distance)
        else:
            found = hull_sphere(s, t, bodies, shapes, parts, hulls, edges, margin, work)
        points.count[p - spheres] = found
        if rough:
            points.gap[c] = work[3] if found > 0 else np.inf
            continue
        if found == 0:
            clear(c, points)
            continue
        away = between(a, b, shapes.centre, edges) if swap else (0.0, 0.0, 0.0)
        one, two = ball_radius(s, bodies, shapes, parts), ball_radius(t, bodies, shapes, parts)
        q = load4(bodies.orientation, shapes.body[s])
        write_points(c, found, q, away, sign, one * two / (one + two), work, points)


def points_block(block, where, bodies, shapes, parts, hulls, pairs, points, edges, margin, asks, width):
    """Contact points of a block of pairs of particles; where: first pair, pairs, pairs before the first slot."""
    first, count, spheres = where
    begin = first + block * BLOCK
    mine = (begin, min(begin + BLOCK, first + count), spheres)
    listed = np.empty((3, BLOCK), np.int64)
    room = (np.empty(width), np.empty((ROWS, BLOCK)))
    tables = (bodies, shapes, parts, hulls)
    pair_points(mine, tables, pairs, points, edges, margin, asks, listed, room, distance)


@func
def wall_pair_points(where, tables, box, pairs, points, margin, work, wall_points):
    """The same with walls."""
    bodies, shapes, parts, meshes, hulls = tables
    first, last, spheres = where
    for p in range(first, last):
        s, w = pairs.shape[p, 0], pairs.shape[p, 1]
        found = wall_points(s, w, bodies, shapes, parts, meshes, hulls, box, margin, work)
        points.count[p - spheres] = found
        if found == 0:
            clear(pairs.slot[p - spheres], points)
            continue
        radius = ball_radius(s, bodies, shapes, parts)
        q = load4(bodies.orientation, shapes.body[s])
        write_points(pairs.slot[p - spheres], found, q, (0.0, 0.0, 0.0), 1.0, radius, work, points)


def wall_points_block(block, where, bodies, shapes, parts, meshes, hulls, box, pairs, points, margin, width):
    """The same with walls."""
    first, count, spheres = where
    begin = first + block * BLOCK
    mine = (begin, min(begin + BLOCK, first + count), spheres)
    work = np.empty(width)
    wall_pair_points(mine, (bodies, shapes, parts, meshes, hulls), box, pairs, points, margin, work, wall_points)


def find_points(look, rows, margin):
    """Contact points of pairs of a list, of particles; see `clast.narrow.dispatch`."""
    first, count = rows
    there = look.there
    find = kernel(
        points_block,
        grain=2,
        allocates=True,
        distance=hull_distance if look.exact else no_distance,
    )
    tables = there.bodies, there.shapes, there.parts, there.hulls, look.pairs, look.points
    where, blocks = same(first, count, look.spheres_count), (count + BLOCK - 1) // BLOCK
    width = look.once("work_width", lambda: work_width(look.hulls))
    find(blocks, where, *tables, look.edges, margin, same(look.keeps, look.rough), width)


def find_wall_points(look, rows, margin):
    """The same for pairs with walls."""
    first, count = rows
    walls = look.once("wall_points", lambda: wall_points_for(look.parts))
    find = kernel(wall_points_block, grain=2, allocates=True, wall_points=walls)
    there = look.there
    tables = there.bodies, there.shapes, there.parts, there.meshes, there.hulls, there.box, look.pairs, look.points
    where, blocks = same(first, count, look.spheres_count), (count + BLOCK - 1) // BLOCK
    find(blocks, where, *tables, margin, look.once("work_width", lambda: work_width(look.hulls)))

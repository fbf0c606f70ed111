"""Which triangles of two surfaces may touch: descent of their trees of boxes.

For each pair of a list the trees are descended together, in the axes of the mesh of the pair (see `surface_pose`), down to
*meetings* of two leaves; then the triangles of each meeting are tested one by one. Which of two boxes is split depends on the
number of triangles below them alone, so that the order of candidates is the same wherever the bodies are, whatever the
margin. What has no tree is taken in bunches: the vertices of the mesh 16 at a time, which a plane or a shell may touch.
"""

import math
from typing import NamedTuple

import numpy as np

from .. import primitives
from ..backend import FUSE, func, kernel
from ..tables import CYLINDER, MESH, PLANE, TRIANGLE
from ..vec import dot, load, sub
from .surface_pose import AXIS, BALL, HALF, HALO, RADIUS, SENSE, SIZE, TURN, WAY, make_poses, mesh_first
from .triangle_lanes import LANES, RESULT, ROWS, brute_lanes

STACK = 512  # more than the depth of two trees, whose halves differ by one triangle at most
BUNCH = 16  # candidates of a meeting at most: two leaves of four triangles, or as many vertices
PAIRS = 4  # pairs a task
BLOCK = 64  # meetings a task
BARE = -1  # in place of the second triangle where the partner has none
RIM = -2  # a triangle against a shell that ends

EXACT = False  # bound to the kernels


class Candidates(NamedTuple):
    """Triangles that may touch, of all pairs of a list: pair p owns rows start[p] up to start[p + 1]."""

    start: np.ndarray  # (p+1,) int64
    first: (
        np.ndarray
    )  # (k,) int32, triangle of the mesh, a column of Surfaces.corner; vertex, a column of Surfaces.vertex,
    # where the partner is a plane or a shell and `second` is BARE
    second: np.ndarray  # (k,) int32, triangle of the other mesh; row of Meshes.triangle of a wall; BARE; RIM


# The descent.


@func
def axis_square(d, x, y):
    """Squared length by which intervals of half widths x and y, d apart, miss each other."""
    apart = max(abs(d) - x - y, 0.0)
    return apart * apart


@func
def node_box(surfaces, k, size):
    """Middle and half widths of the box of node k."""
    box = surfaces.box
    half = 0.5 * size
    return (
        (half * (box[0, k] + box[3, k]), half * (box[1, k] + box[4, k]), half * (box[2, k] + box[5, k])),
        (half * (box[3, k] - box[0, k]), half * (box[4, k] - box[1, k]), half * (box[5, k] - box[2, k])),
    )


@func
def load_turn(pose, p):
    """The matrix of a pose."""
    return (
        (pose[p, TURN], pose[p, TURN + 1], pose[p, TURN + 2]),
        (pose[p, TURN + 3], pose[p, TURN + 4], pose[p, TURN + 5]),
        (pose[p, TURN + 6], pose[p, TURN + 7], pose[p, TURN + 8]),
    )


@func
def load_way(pose, p):
    """Where the partner is."""
    return (pose[p, WAY], pose[p, WAY + 1], pose[p, WAY + 2])


@func
def load_axis(pose, p):
    """The axis of a plane or cylinder."""
    return (pose[p, AXIS], pose[p, AXIS + 1], pose[p, AXIS + 2])


@func
def placed(m, way, x):
    """The point x of the partner in the axes of the mesh."""
    return (
        way[0] + (m[0][0] * x[0] + m[0][1] * x[1] + m[0][2] * x[2]),
        way[1] + (m[1][0] * x[0] + m[1][1] * x[1] + m[1][2] * x[2]),
        way[2] + (m[2][0] * x[0] + m[2][1] * x[1] + m[2][2] * x[2]),
    )


@func
def two_boxes_square(d, a, b, m, other):
    """A bound from below on the squared distance of two boxes, d from the middle of the first to that of the second.

    a, b: their half widths, those of the second in its own axes at size factor 1. m: turn of the second with its size
    factor `other`. The faces of both are looked at, edges against edges are not.
    """
    square = 0.0
    for i in range(3):
        square += axis_square(d[i], a[i], abs(m[i][0]) * b[0] + abs(m[i][1]) * b[1] + abs(m[i][2]) * b[2])
    turned = 0.0
    for i in range(3):
        along = m[0][i] * d[0] + m[1][i] * d[1] + m[2][i] * d[2]
        reach = abs(m[0][i]) * a[0] + abs(m[1][i]) * a[1] + abs(m[2][i]) * a[2]
        turned += axis_square(along, other * other * b[i], reach)
    return max(square, turned / (other * other))


@func
def splits_first(surfaces, a, b):
    """Whether node a is split rather than node b; at least one has children."""
    if surfaces.child[a] < 0:
        return False
    if surfaces.child[b] < 0:
        return True
    return surfaces.last[a] - surfaces.first[a] >= surfaces.last[b] - surfaces.first[b]


@func
def descend_two(root, stem, surfaces, size, other, m, way, threshold, stack, at, fill, one, two):
    """Leaves below nodes root and stem that may be nearer than threshold [m]: how many; written from row `at` if fill."""
    found = 0
    limit = threshold * threshold
    top = 2
    stack[0], stack[1] = root, stem
    while top > 0:
        top -= 2
        a, b = stack[top], stack[top + 1]
        middle, half = node_box(surfaces, a, size)
        centre, width = node_box(surfaces, b, 1.0)
        if two_boxes_square(sub(placed(m, way, centre), middle), half, width, m, other) <= limit:
            if surfaces.child[a] < 0 and surfaces.child[b] < 0:
                if fill:
                    one[at + found], two[at + found] = a, b
                found += 1
            else:
                into = splits_first(surfaces, a, b)
                child = surfaces.child[a] if into else surfaces.child[b]
                stack[top], stack[top + 1] = (child + 1, b) if into else (a, child + 1)
                stack[top + 2], stack[top + 3] = (child, b) if into else (a, child)
                top += 4
    return found


@func
def descend_one(root, surfaces, size, low, high, threshold, stack, at, fill, one, two):
    """Leaves below root that may be nearer than threshold [m] to the box from low to high: as `descend_two`."""
    found = 0
    limit = threshold * threshold
    top = 1
    stack[0] = root
    while top > 0:
        top -= 1
        a = stack[top]
        square = 0.0
        for i in range(3):
            apart = max(size * surfaces.box[i, a] - high[i], low[i] - size * surfaces.box[i + 3, a], 0.0)
            square += apart * apart
        if square <= limit:
            child = surfaces.child[a]
            if child < 0:
                if fill:
                    one[at + found], two[at + found] = a, BARE
                found += 1
            else:
                stack[top], stack[top + 1] = child + 1, child
                top += 2
    return found


@func
def wall_corner(meshes, t, k, m, way):
    """Corner k of wall triangle t in the axes of the mesh."""
    return placed(m, way, load(meshes.vertex, meshes.triangle[t, k]))


@func
def lowest(a, b, c):
    """The smallest coordinates of three points."""
    return (min(a[0], b[0], c[0]), min(a[1], b[1], c[1]), min(a[2], b[2], c[2]))


@func
def highest(a, b, c):
    """The largest coordinates of three points."""
    return (max(a[0], b[0], c[0]), max(a[1], b[1], c[1]), max(a[2], b[2], c[2]))


@func
def cylinder_bounds(pose, p):
    """The box around the cylinder of pair p: its lowest and highest corner."""
    centre, axis = load_way(pose, p), load_axis(pose, p)
    radius, half = pose[p, RADIUS], pose[p, HALF]
    reach = (0.0, 0.0, 0.0)
    if half < math.inf:
        reach = (half * abs(axis[0]), half * abs(axis[1]), half * abs(axis[2]))
    else:
        reach = (
            math.inf if axis[0] != 0.0 else 0.0,
            math.inf if axis[1] != 0.0 else 0.0,
            math.inf if axis[2] != 0.0 else 0.0,
        )
    x = reach[0] + radius * math.sqrt(max(1.0 - axis[0] * axis[0], 0.0))
    y = reach[1] + radius * math.sqrt(max(1.0 - axis[1] * axis[1], 0.0))
    z = reach[2] + radius * math.sqrt(max(1.0 - axis[2] * axis[2], 0.0))
    return (centre[0] - x, centre[1] - y, centre[2] - z), (centre[0] + x, centre[1] + y, centre[2] + z)


@func
def bunches(s, surfaces, at, fill, one, two):
    """All vertices of surface s in bunches: how many."""
    first, last = surfaces.vertex_start[s], surfaces.vertex_start[s + 1]
    count = (last - first + BUNCH - 1) // BUNCH
    if fill:
        for i in range(count):
            one[at + i], two[at + i] = first + BUNCH * i, BARE
    return count


def descend_block(block, shapes, parts, meshes, surfaces, pair, pose, margin, start, owner, one, two, count):
    """Meetings of a block of pairs: counted, or written where start says."""
    stack = np.empty(STACK, np.int32)
    fill = len(start) > 0
    for p in range(block * PAIRS, min(len(pair), (block + 1) * PAIRS)):
        s, t, _ = mesh_first(p, pair, shapes)
        surface, row = parts.feature[shapes.part[s]], shapes.part[t]
        root = surfaces.node_start[surface]
        kind = shapes.kind[t]
        size, threshold = pose[p, SIZE], pose[p, HALO] + margin
        m, way = load_turn(pose, p), load_way(pose, p)
        at = start[p] if fill else 0
        found = 0
        if kind == MESH:
            stem = surfaces.node_start[parts.feature[row]]
            other = math.sqrt(m[0][0] * m[0][0] + m[1][0] * m[1][0] + m[2][0] * m[2][0])
            found = descend_two(root, stem, surfaces, size, other, m, way, threshold, stack, at, fill, one, two)
        elif touches_vertices(kind, p, pose):
            found = bunches(surface, surfaces, at, fill, one, two)
            if kind == CYLINDER and pose[p, HALF] < math.inf:
                low, high = cylinder_bounds(pose, p)
                rims = descend_one(root, surfaces, size, low, high, threshold, stack, at + found, fill, one, two)
                if fill:
                    for i in range(at + found, at + found + rims):
                        two[i] = RIM
                found += rims
        else:
            low, high = way, way
            if kind == TRIANGLE:
                f = parts.feature[row]
                x, y, z = (
                    wall_corner(meshes, f, 0, m, way),
                    wall_corner(meshes, f, 1, m, way),
                    wall_corner(meshes, f, 2, m, way),
                )
                low, high = lowest(x, y, z), highest(x, y, z)
            elif kind == CYLINDER:
                low, high = cylinder_bounds(pose, p)
            reach = threshold + pose[p, BALL]
            found = descend_one(root, surfaces, size, low, high, reach, stack, at, fill, one, two)
        if fill:
            for i in range(at, at + found):
                owner[i] = p
        else:
            count[p] = found


# The triangles of a meeting.


@func
def own_corner(surfaces, size, t, k):
    """Corner k of triangle t of the mesh."""
    corner, i = surfaces.corner, 3 * k
    return (size * corner[i, t], size * corner[i + 1, t], size * corner[i + 2, t])


@func
def put_corners(target, row, i, a, b, c):
    """Write a triangle into column i of an array, from this row on."""
    for k in range(3):
        target[row + k, i], target[row + 3 + k, i], target[row + 6 + k, i] = a[k], b[k], c[k]


@func
def partner_triangles(kind, b, row, parts, meshes, surfaces, m, way, leaf):
    """Write the triangles of the partner in a meeting into columns of leaf (9,4): how many. A sphere is its centre."""
    if kind == MESH:
        first, last = surfaces.first[b], surfaces.last[b]
        for j in range(last - first):
            t = first + j
            put_corners(
                leaf,
                0,
                j,
                placed(m, way, own_corner(surfaces, 1.0, t, 0)),
                placed(m, way, own_corner(surfaces, 1.0, t, 1)),
                placed(m, way, own_corner(surfaces, 1.0, t, 2)),
            )
        return last - first
    if kind == TRIANGLE:
        t = parts.feature[row]
        put_corners(
            leaf,
            0,
            0,
            wall_corner(meshes, t, 0, m, way),
            wall_corner(meshes, t, 1, m, way),
            wall_corner(meshes, t, 2, m, way),
        )
    else:
        put_corners(leaf, 0, 0, way, way, way)
    return 1


@func
def triangles_near(lane, i, leaf, j, limit):
    """Whether the boxes around triangle i of lane and j of leaf are nearer than the root of limit."""
    square = 0.0
    for k in range(3):
        low = min(lane[k, i], lane[3 + k, i], lane[6 + k, i])
        high = max(lane[k, i], lane[3 + k, i], lane[6 + k, i])
        down = min(leaf[k, j], leaf[3 + k, j], leaf[6 + k, j])
        up = max(leaf[k, j], leaf[3 + k, j], leaf[6 + k, j])
        apart = max(down - high, low - up, 0.0)
        square += apart * apart
    return square <= limit


@func
def touches_vertices(kind, p, pose):
    """Whether the partner is one that vertices of the mesh touch: a plane or a shell."""
    return kind == PLANE or (kind == CYLINDER and pose[p, SENSE] > 0.0)


@func
def vertex_near(surfaces, v, kind, p, pose, limit):
    """Whether vertex v of the mesh may be within limit [m] of the plane or shell of pair p, or beyond it."""
    size = pose[p, SIZE]
    axis = load_axis(pose, p)
    d = (
        size * surfaces.vertex[0, v] - pose[p, WAY],
        size * surfaces.vertex[1, v] - pose[p, WAY + 1],
        size * surfaces.vertex[2, v] - pose[p, WAY + 2],
    )
    along = dot(d, axis)
    if kind == PLANE:
        return along <= limit
    across = math.sqrt(max(dot(d, d) - along * along, 0.0))
    if pose[p, HALF] == math.inf:
        return pose[p, RADIUS] - across <= limit * (1.0 + 1e-12)
    return abs(along) <= pose[p, HALF] and abs(pose[p, RADIUS] - across) <= limit * (1.0 + 1e-12)


@func
def lane_triangle(surfaces, size, t, lane, used):
    """Write triangle t of the mesh into column `used` of lane."""
    put_corners(
        lane,
        0,
        used,
        own_corner(surfaces, size, t, 0),
        own_corner(surfaces, size, t, 1),
        own_corner(surfaces, size, t, 2),
    )


def sift_block(block, shapes, parts, meshes, surfaces, pair, pose, margin, owner, one, two, mask):
    """Which candidates of a block of meetings stay, as bits: bit 4 i + j for triangles i and j of the leaves; bit i for
    vertex i of a bunch, bit 4 i for triangle i where the partner is no leaf."""
    lane, result = np.empty((ROWS, LANES)), np.empty((RESULT, LANES))
    leaf = np.empty((9, 4))
    whose, which, bound = np.empty(LANES, np.int64), np.empty(LANES, np.int64), np.empty(LANES)
    lane[:] = 0.0
    used = 0
    final = min(len(mask), (block + 1) * BLOCK)
    for e in range(block * BLOCK, final + 1):
        if EXACT and (e == final or used > LANES - BUNCH - 1):
            brute_lanes(lane, 0.0, result)
            for k in range(used):
                if result[0, k] <= bound[k]:
                    mask[whose[k]] |= 1 << which[k]
            used = 0
        if e < final:
            mask[e] = 0
            p, a = owner[e], one[e]
            s, t, _ = mesh_first(p, pair, shapes)
            kind = shapes.kind[t]
            threshold = pose[p, HALO] + margin
            if touches_vertices(kind, p, pose) and two[e] == BARE:
                last = surfaces.vertex_start[parts.feature[shapes.part[s]] + 1]
                for i in range(min(BUNCH, last - a)):
                    if vertex_near(surfaces, a + i, kind, p, pose, threshold):
                        mask[e] |= 1 << i
            elif kind == CYLINDER:
                for i in range(surfaces.last[a] - surfaces.first[a]):
                    mask[e] |= 1 << (4 * i)
            else:
                size, limit = pose[p, SIZE], threshold + pose[p, BALL]
                many = partner_triangles(
                    kind, two[e], shapes.part[t], parts, meshes, surfaces, load_turn(pose, p), load_way(pose, p), leaf
                )
                # A little more than the limit: the distance found later is a root and has its own rounding.
                limit = limit * limit * (1.0 + 1e-12)
                for i in range(surfaces.last[a] - surfaces.first[a]):
                    for j in range(many):
                        lane_triangle(surfaces, size, surfaces.first[a] + i, lane, used)
                        if triangles_near(lane, used, leaf, j, limit):
                            bit = 4 * i + j
                            if EXACT:
                                for k in range(9):
                                    lane[9 + k, used] = leaf[k, j]
                                whose[used], which[used], bound[used] = e, bit, limit
                                used += 1
                            else:
                                mask[e] |= 1 << bit


def bits_row(e, mask, many):
    """How many candidates a meeting has."""
    x = mask[e]
    count = 0
    while x != 0:
        x &= x - 1
        count += 1
    many[e] = count


def list_row(p, shapes, parts, surfaces, pair, pose, meeting, one, two, mask, row, start, first, second):
    """Write the candidates of pair p, one meeting after the other."""
    _, t, _ = mesh_first(p, pair, shapes)
    kind = shapes.kind[t]
    at = row[meeting[p]]
    start[p] = at
    for e in range(meeting[p], meeting[p + 1]):
        vertices = touches_vertices(kind, p, pose) and two[e] == BARE
        for bit in range(BUNCH):
            if (mask[e] >> bit) & 1:
                first[at], second[at] = one[e] + bit, two[e]
                if not vertices:
                    first[at] = surfaces.first[one[e]] + bit // 4
                if kind == MESH:
                    second[at] = surfaces.first[two[e]] + bit % 4
                elif kind == TRIANGLE:
                    second[at] = parts.feature[shapes.part[t]]
                at += 1


def find_candidates(tables, surfaces, pair, box, margin, exact=False):
    """Candidates of listed pairs (p,2), rows of Shapes, each with a triangulated particle: all that may be nearer than their
    halo and margin [m] together.

    margin=inf: every triangle with every triangle. exact: triangles are measured here, and only those stay that are near
    enough; otherwise their boxes tell.
    """
    bodies, shapes, parts, meshes, _ = tables
    count = len(pair)
    pose = make_poses(tables, surfaces, pair, box)
    found = np.empty(count, np.int32)
    nothing, none = np.empty(0, np.int32), np.empty(0, np.int64)
    descend = kernel(descend_block, grain=2, allocates=True)
    blocks = (count + PAIRS - 1) // PAIRS
    given = shapes, parts, meshes, surfaces, pair, pose, float(margin)
    descend(blocks, *given, none, nothing, nothing, nothing, found)
    meeting = primitives.scan(found)
    many = int(meeting[-1])
    owner, one, two = (np.empty(many, np.int32) for _ in range(3))
    descend(blocks, *given, meeting, owner, one, two, found)
    mask, bits = np.empty(many, np.int32), np.empty(many, np.int32)
    exact = exact and math.isfinite(margin)
    sift = kernel(sift_block, grain=2, allocates=True, fastmath=FUSE, EXACT=exact)
    sift((many + BLOCK - 1) // BLOCK, *given, owner, one, two, mask)
    kernel(bits_row)(many, mask, bits)
    row = primitives.scan(bits)
    total = int(row[-1])
    start, first, second = np.empty(count + 1, np.int64), np.empty(total, np.int32), np.empty(total, np.int32)
    start[count] = total
    kernel(list_row)(count, shapes, parts, surfaces, pair, pose, meeting, one, two, mask, row, start, first, second)
    return Candidates(start, first, second)

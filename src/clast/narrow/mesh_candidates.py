"""Which triangles of two surfaces may touch: descent of their trees of boxes.

For each pair of a list the trees are descended together, in the axes of the mesh of the pair (see `mesh_pose`), down to
*meetings* of two leaves; then the triangles of each meeting are tested one by one. Which of two boxes is split depends on the
number of triangles below them alone, so that the order of candidates is the same wherever the bodies are, whatever the
margin. What has no tree is taken in bunches: the vertices of the mesh 16 at a time, which a plane or a shell may touch.

Two triangles are one candidate, of which the nearest points count. Where they may come to lie flat on each other, the corners of each over
the other and the crossings of their sides are further candidates, for a face rests on all of them.
"""

import math
from typing import NamedTuple

import numpy as np

from ..kernels import primitives
from ..kernels.backend import func, kernel
from ..kernels.vec import dot, norm, normalize, sub
from ..shapes.outline import CORNER, SIDE
from .mesh_pose import BALL, HALF, HALO, OWN, RADIUS, SENSE, SHEET, SIZE, TREE, WAY
from .mesh_tree import (
    BARE,
    RIM,
    STACK,
    cylinder_near,
    descend_cylinder,
    descend_one,
    descend_two,
    highest,
    load_axis,
    load_turn,
    load_way,
    lowest,
    placed,
    wall_corner,
)

BUNCH = 16  # candidates of a meeting at most: two leaves of four triangles, or as many vertices
PAIRS = 4  # pairs a task
BLOCK = 64  # meetings a task
# Meetings that are written before it is known how many there are, of a pair and of all; of pairs with more the trees are descended twice.
ROOM, ROOM_FOR_ALL = 64, 2**22
# Cosine between normals of triangles whose corners and sides touch, and of those that may come to that before they are looked for again:
# until then two bodies turn by less than a fifth of a radian against each other, see `mesh_slots.MARGIN`.
FLAT, FACING = 0.9952, 0.955
SHIFT = 27  # of the feature within `second`
TRIANGLE_BITS = (1 << SHIFT) - 1


class Candidates(NamedTuple):
    """Triangles that may touch, of all pairs of a list: pair p owns rows start[p] up to start[p + 1]."""

    start: np.ndarray  # (p+1,) int64
    first: (
        np.ndarray
    )  # (k,) int32, triangle of the mesh, a column of Surfaces.corner; vertex, a column of Surfaces.vertex,
    # where the partner is a plane or a shell and `second` is BARE
    second: (
        np.ndarray
    )  # (k,) int32, triangle of the other mesh; row of Meshes.triangle of a wall; BARE; RIM. Of two triangles the
    # bits from SHIFT on tell the feature: 0 all of both, 1 to 3 a corner of the first over the second, 4 to 6 one of the
    # second over the first, 7 to 15 side i of the first across side j of the second, 7 + 3 i + j


@func
def bunches(s, surfaces, at, room, one, two):
    """All vertices of surface s in bunches: how many; the first `room` of them are written from row `at` on."""
    first, last = surfaces.vertex_start[s], surfaces.vertex_start[s + 1]
    count = (last - first + BUNCH - 1) // BUNCH
    for i in range(min(count, room)):
        one[at + i], two[at + i] = first + BUNCH * i, BARE
    return count


def descend_block(block, pose, who, sheets, surfaces, margin, few, start, one, two, count):
    """Meetings of a block of pairs: counted, and the first `few` of each written; or, of pairs that have more, all written where start says."""
    stack = np.empty(STACK, np.int32)
    again = len(start) > 0
    for p in range(block * PAIRS, min(len(pose), (block + 1) * PAIRS)):
        if again and count[p] <= few:
            continue
        surface, tree, sheet = who[p, OWN], who[p, TREE], who[p, SHEET]
        root = surfaces.node_start[surface]
        size, threshold = pose[p, SIZE], pose[p, HALO] + margin[p]
        m, way = load_turn(pose, p), load_way(pose, p)
        at, room = (start[p], count[p]) if again else (few * p, few)
        found = 0
        if tree >= 0:
            stem = surfaces.node_start[tree]
            found = descend_two(root, stem, surfaces, size, m, way, threshold, stack, at, room, one, two)
        elif pose[p, SENSE] != 0.0:
            shell = touches_vertices(p, pose)
            if shell:
                found = bunches(surface, surfaces, at, room, one, two)
            if pose[p, RADIUS] > 0.0 and not (shell and pose[p, HALF] == math.inf):
                code = RIM if shell else BARE
                at, room = at + found, room - found
                found += descend_cylinder(root, surfaces, p, pose, threshold, code, stack, at, room, one, two)
        else:
            low, high = way, way
            if sheet >= 0:
                x = wall_corner(sheets, sheet, 0, m, way)
                y = wall_corner(sheets, sheet, 1, m, way)
                z = wall_corner(sheets, sheet, 2, m, way)
                low, high = lowest(x, y, z), highest(x, y, z)
            reach = threshold + pose[p, BALL]
            found = descend_one(root, surfaces, size, low, high, reach, stack, at, room, one, two)
        count[p] = found


def gather_row(p, few, count, start, some_one, some_two, owner, one, two):
    """The meetings of pair p in their place: those that the first descent wrote, if it had room for all."""
    for i in range(count[p]):
        owner[start[p] + i] = p
        if count[p] <= few:
            one[start[p] + i], two[start[p] + i] = some_one[few * p + i], some_two[few * p + i]


# The triangles of a meeting.


@func
def own_corner(surfaces, size, t, k):
    """Corner k of triangle t of the mesh."""
    corner, i = surfaces.corner, 3 * k
    return (size * corner[i, t], size * corner[i + 1, t], size * corner[i + 2, t])


@func
def around(surfaces, size, t):
    """Middle and radius of a ball around triangle t of the mesh."""
    a, b, c = own_corner(surfaces, size, t, 0), own_corner(surfaces, size, t, 1), own_corner(surfaces, size, t, 2)
    x = ((a[0] + b[0] + c[0]) / 3.0, (a[1] + b[1] + c[1]) / 3.0, (a[2] + b[2] + c[2]) / 3.0)
    return x, max(norm(sub(a, x)), norm(sub(b, x)), norm(sub(c, x)))


@func
def put_corners(target, row, i, a, b, c):
    """Write a triangle into column i of an array, from this row on."""
    for k in range(3):
        target[row + k, i], target[row + 3 + k, i], target[row + 6 + k, i] = a[k], b[k], c[k]


@func
def leaf_triangles(b, surfaces, m, way, leaf):
    """Write the triangles of leaf b of the tree of another mesh into columns of leaf (9,4): how many."""
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


@func
def partner_triangles(p, b, who, sheets, surfaces, m, way, leaf):
    """Write the triangles of the partner in a meeting of pair p into columns of leaf (9,4): how many. A sphere is its
    centre."""
    if who[p, TREE] >= 0:
        return leaf_triangles(b, surfaces, m, way, leaf)
    sheet = who[p, SHEET]
    if sheet >= 0:
        put_corners(
            leaf,
            0,
            0,
            wall_corner(sheets, sheet, 0, m, way),
            wall_corner(sheets, sheet, 1, m, way),
            wall_corner(sheets, sheet, 2, m, way),
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
def touches_vertices(p, pose):
    """Whether the partner is one that vertices of the mesh touch: a plane or a shell."""
    return pose[p, SENSE] > 0.0


@func
def vertex_near(surfaces, v, p, pose, limit):
    """Whether vertex v of the mesh may be within limit [m] of the plane or shell of pair p, or beyond it."""
    size = pose[p, SIZE]
    axis = load_axis(pose, p)
    d = (
        size * surfaces.vertex[0, v] - pose[p, WAY],
        size * surfaces.vertex[1, v] - pose[p, WAY + 1],
        size * surfaces.vertex[2, v] - pose[p, WAY + 2],
    )
    along = dot(d, axis)
    if pose[p, RADIUS] == 0.0:
        return along <= limit
    across = math.sqrt(max(dot(d, d) - along * along, 0.0))
    if pose[p, HALF] == math.inf:
        return pose[p, RADIUS] - across <= limit * (1.0 + 1e-12)
    return abs(along) <= pose[p, HALF] + limit and abs(pose[p, RADIUS] - across) <= limit * (1.0 + 1e-12)


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


def sift_block(block, pose, who, sheets, surfaces, margin, owner, one, two, mask):
    """Which candidates of a block of meetings stay, as bits: bit 4 i + j for triangles i and j of the leaves; bit i for
    vertex i of a bunch, bit 4 i for triangle i where the partner is no leaf."""
    own, leaf = np.empty((9, 4)), np.empty((9, 4))
    for e in range(block * BLOCK, min(len(mask), (block + 1) * BLOCK)):
        mask[e] = 0
        p, a = owner[e], one[e]
        threshold = pose[p, HALO] + margin[p]
        if touches_vertices(p, pose) and two[e] == BARE:
            last = surfaces.vertex_start[who[p, OWN] + 1]
            for i in range(min(BUNCH, last - a)):
                if vertex_near(surfaces, a + i, p, pose, threshold):
                    mask[e] |= 1 << i
        elif pose[p, RADIUS] > 0.0:
            for i in range(surfaces.last[a] - surfaces.first[a]):
                x, reach = around(surfaces, pose[p, SIZE], surfaces.first[a] + i)
                if cylinder_near(x, reach, p, pose, threshold):
                    mask[e] |= 1 << (4 * i)
        else:
            m, way = load_turn(pose, p), load_way(pose, p)
            many = partner_triangles(p, two[e], who, sheets, surfaces, m, way, leaf)
            # A little more than the limit: the distance found later is a root and has its own rounding.
            limit = threshold + pose[p, BALL]
            limit = limit * limit * (1.0 + 1e-12)
            for i in range(surfaces.last[a] - surfaces.first[a]):
                lane_triangle(surfaces, pose[p, SIZE], surfaces.first[a] + i, own, i)
                for j in range(many):
                    if triangles_near(own, i, leaf, j, limit):
                        mask[e] |= 1 << (4 * i + j)


def bits_row(e, mask, many):
    """How many candidates a meeting has."""
    x = mask[e]
    count = 0
    while x != 0:
        x &= x - 1
        count += 1
    many[e] = count


def list_row(p, pose, who, leaf, meeting, one, two, mask, row, start, first, second):
    """Write the candidates of pair p, one meeting after the other; leaf: first triangle of each node."""
    at = row[meeting[p]]
    start[p] = at
    for e in range(meeting[p], meeting[p + 1]):
        vertices = touches_vertices(p, pose) and two[e] == BARE
        for bit in range(BUNCH):
            if (mask[e] >> bit) & 1:
                first[at], second[at] = one[e] + bit, two[e]
                if not vertices:
                    first[at] = leaf[one[e]] + bit // 4
                if who[p, TREE] >= 0:
                    second[at] = leaf[two[e]] + bit % 4
                elif who[p, SHEET] >= 0:
                    second[at] = who[p, SHEET]
                at += 1


# Corners and sides of triangles that face each other.


@func
def mesh_normal(surfaces, t):
    """Outward normal of triangle t of a mesh."""
    return (surfaces.normal[0, t], surfaces.normal[1, t], surfaces.normal[2, t])


@func
def partner_normal(p, g, who, sheets, surfaces, m):
    """Unit normal of triangle g of the partner in pair p, in the axes of the mesh."""
    zero = (0.0, 0.0, 0.0)
    n = (
        mesh_normal(surfaces, g)
        if who[p, TREE] >= 0
        else (sheets.normal[g, 0], sheets.normal[g, 1], sheets.normal[g, 2])
    )
    return normalize(placed(m, zero, n))


@func
def face_each_other(p, f, g, who, sheets, surfaces, m, cosine):
    """Whether triangle f of the mesh looks at triangle g of its partner; a wall is felt from both sides."""
    up = dot(mesh_normal(surfaces, f), partner_normal(p, g, who, sheets, surfaces, m))
    return up < -cosine or (who[p, SHEET] >= 0 and up > cosine)


@func
def feature_stands_out(code, one, two):
    """Whether a feature is made by corners and sides that stand out; one, two: outline of the two triangles."""
    if code == 0:
        return True
    if code <= 3:
        return one & (CORNER << (code - 1)) != 0
    if code <= 6:
        return two & (CORNER << (code - 4)) != 0
    i, j = (code - 7) // 3, (code - 7) % 3
    return one & (SIDE << i) != 0 and two & (SIDE << j) != 0


def features_row(p, pose, who, sheets, surfaces, start, first, second, begin, one, two, count):
    """All candidates of pair p with their features: counted, or written where begin says."""
    fill = len(begin) > 0
    at = begin[p] if fill else 0
    flat = who[p, TREE] >= 0 or who[p, SHEET] >= 0
    m = load_turn(pose, p)
    for k in range(start[p], start[p + 1]):
        f, g = first[k], second[k]
        many = 1
        mine, its = 0, 0
        if flat and face_each_other(p, f, g, who, sheets, surfaces, m, FACING):
            many = 16
            mine, its = surfaces.outline[f], (surfaces.outline[g] if who[p, TREE] >= 0 else sheets.outline[g])
        for code in range(many):
            if feature_stands_out(code, mine, its):
                if fill:
                    one[at], two[at] = f, (g + (code << SHIFT) if code > 0 else g)
                at += 1
    if not fill:
        count[p] = at


def with_features(setting, surfaces, candidates):
    """Candidates, and those of corners and sides that their triangles have for each other."""
    pairs = len(candidates.start) - 1
    if len(candidates.first) == 0 or not (setting.who[:, TREE : SHEET + 1] >= 0).any():
        return candidates
    count, none, nothing = np.empty(pairs, np.int32), np.empty(0, np.int64), np.empty(0, np.int32)
    run = kernel(features_row, grain=16)
    run(pairs, *setting, surfaces, *candidates, none, nothing, nothing, count)
    begin = primitives.scan(count)
    total = int(begin[-1])
    if total == len(candidates.first):
        return candidates
    one, two = np.empty(total, np.int32), np.empty(total, np.int32)
    run(pairs, *setting, surfaces, *candidates, begin, one, two, count)
    return Candidates(begin, one, two)


def find_candidates(setting, surfaces, margin, features=True):
    """Candidates of the pairs (p,) of a Setting: all that may be nearer than their halo and margin [m] together, a number or (p,).

    margin=inf: every triangle with every triangle. features=False: without corners and sides of triangles that face each other.
    """
    count = len(setting.pose)
    margin = np.broadcast_to(np.asarray(margin, float), count).copy()
    found = np.empty(count, np.int32)
    descend = kernel(descend_block, grain=2, allocates=True)
    blocks = (count + PAIRS - 1) // PAIRS
    given = *setting, surfaces, margin
    few = min(ROOM, ROOM_FOR_ALL // max(count, 1))
    some = np.empty(few * count, np.int32), np.empty(few * count, np.int32)
    descend(blocks, *given, few, np.empty(0, np.int64), *some, found)
    meeting = primitives.scan(found)
    many = int(meeting[-1])
    owner, one, two = (np.empty(many, np.int32) for _ in range(3))
    if (found > few).any():
        descend(blocks, *given, few, meeting, one, two, found)
    kernel(gather_row, grain=64)(count, few, found, meeting, *some, owner, one, two)
    mask, bits = np.empty(many, np.int32), np.empty(many, np.int32)
    sift = kernel(sift_block, grain=2, allocates=True)
    sift((many + BLOCK - 1) // BLOCK, *given, owner, one, two, mask)
    kernel(bits_row)(many, mask, bits)
    row = primitives.scan(bits)
    total = int(row[-1])
    start, first, second = np.empty(count + 1, np.int64), np.empty(total, np.int32), np.empty(total, np.int32)
    start[count] = total
    listed = meeting, one, two, mask, row, start, first, second
    kernel(list_row)(count, setting.pose, setting.who, surfaces.first, *listed)
    made = Candidates(start, first, second)
    return with_features(setting, surfaces, made) if features else made

"""How far candidates are apart: triangles with triangles 64 at a time, vertices with planes and shells in closed form.

The flat list of candidates is cut into blocks regardless of the pairs they belong to, so that all lanes are full. Lanes do
not know of each other: what is found for a candidate does not depend on what else is in the list.
"""

import math
from typing import NamedTuple

import numpy as np

from ..kernels.backend import FUSE, func, kernel
from ..kernels.vec import add, dot, load, norm, normalize, rotate, scale, sub, unrotate
from ..shapes.superquadric import reach_of
from .ellipsoid_triangle import across, triangle_ellipsoid
from .mesh_candidates import (
    FLAT,
    SHIFT,
    TRIANGLE_BITS,
    face_each_other,
    mesh_normal,
    own_corner,
    partner_normal,
    put_corners,
)
from .mesh_cylinder import point_nearest, triangle_cylinder, vertex_shell
from .mesh_pose import (
    BALL,
    FACING,
    HALF,
    HALO,
    LEAN,
    OVAL,
    PLACE,
    POWER,
    RADIUS,
    SENSE,
    SHEET,
    SIGN,
    SIZE,
    TILT,
    TREE,
)
from .mesh_tree import BARE, load_axis, load_turn, load_way, placed, wall_corner
from .superquadric_flat import triangle_bound, triangle_separation
from .triangle_lanes import LANES, METHODS, RESULT, ROWS, brute_lanes

CLOSE = 1e-9  # triangles that are nearer than this part of the halo count as crossing
UPRIGHT = 1e-3  # sine of the angle up to which a shortest way is at right angles to a face or a side
OPPOSED = 1e-6  # squared length of the difference of two unit normals below which they do not tell a direction

ALL, NEAREST, OUT = 0, 1, 2  # what is asked of the triangles of a pair, see `measure_candidates`
OPEN = 2  # of `crossing`: not decided yet
HAIR = 1e-12  # of the size
FOOT = 1e-9  # cosine by which a way to a triangle may differ from its normal, for it to be over the triangle

METHOD = brute_lanes  # bound to the kernel: how triangles are measured


class MeasuredPoints(NamedTuple):
    """What was measured of candidates, one row each."""

    gap: np.ndarray  # (k,) [m], distance of the surfaces less the halo
    point: np.ndarray  # (k,3) [m], world, middle of the shortest way from one to the other
    normal: np.ndarray  # (k,3) unit, world, from the first shape of the pair to the second
    crossing: np.ndarray  # (k,) int8, 1 where the surfaces go through each other and the normal is only a way out
    flat: np.ndarray  # (k,) int8, 1 for a corner or a crossing of sides, which is a point of its own


def empty_measured(count):
    """MeasuredPoints with room for `count` candidates."""
    crossing, flat = np.empty(count, np.int8), np.empty(count, np.int8)
    return MeasuredPoints(np.empty(count), np.empty((count, 3)), np.empty((count, 3)), crossing, flat)


@func
def pair_of(start, row):
    """The pair that owns a row of candidates."""
    low, high = 0, len(start) - 1
    while high - low > 1:
        middle = (low + high) // 2
        if start[middle] <= row:
            low = middle
        else:
            high = middle
    return low


@func
def feature_of(second):
    """The triangle of the partner in `Candidates.second`, and the feature."""
    return (second & TRIANGLE_BITS, second >> SHIFT) if second >= 0 else (second, 0)


@func
def turned_corners(i, a, b, c):
    """Three corners from the i-th on."""
    if i == 0:
        return a, b, c
    return (b, c, a) if i == 1 else (c, a, b)


@func
def feature_corners(code, whose, a, b, c):
    """The first (0) or second (1) triangle a, b, c of a candidate, or what the feature is of it: a corner or a side, as a triangle."""
    over = code - 3 * whose
    if 1 <= over <= 3 and code <= 6:
        a, b, c = turned_corners(over - 1, a, b, c)
        return a, a, a
    if code >= 7:
        a, b, c = turned_corners((code - 7) // 3 if whose == 0 else (code - 7) % 3, a, b, c)
        return a, b, b
    return a, b, c


@func
def own_corners(surfaces, size, f):
    """The corners of triangle f of the mesh."""
    return own_corner(surfaces, size, f, 0), own_corner(surfaces, size, f, 1), own_corner(surfaces, size, f, 2)


@func
def fill_lane(k, p, f, second, who, sheets, surfaces, pose, lane):
    """Write the two triangles of a candidate into column k of lane; a sphere is its centre, others are nothing."""
    g, code = feature_of(second)
    zero = (0.0, 0.0, 0.0)
    a, b, c = zero, zero, zero
    smooth = pose[p, SENSE] != 0.0
    if who[p, TREE] >= 0:
        m, way = load_turn(pose, p), load_way(pose, p)
        a = placed(m, way, own_corner(surfaces, 1.0, g, 0))
        b = placed(m, way, own_corner(surfaces, 1.0, g, 1))
        c = placed(m, way, own_corner(surfaces, 1.0, g, 2))
    elif who[p, SHEET] >= 0:
        m, way = load_turn(pose, p), load_way(pose, p)
        a, b, c = (
            wall_corner(sheets, g, 0, m, way),
            wall_corner(sheets, g, 1, m, way),
            wall_corner(sheets, g, 2, m, way),
        )
    elif not smooth:
        a = load_way(pose, p)
        b, c = a, a
    put_corners(lane, 9, k, *feature_corners(code, 1, a, b, c))
    if smooth:
        put_corners(lane, 0, k, zero, zero, zero)
    else:
        put_corners(lane, 0, k, *feature_corners(code, 0, *own_corners(surfaces, pose[p, SIZE], f)))


@func
def way_out(p, f, g, who, sheets, surfaces, pose):
    """A direction from the mesh to its partner where their triangles f and g cross, from the normals of both, and how much
    they look at each other: 0, alike, to 2, face to face."""
    n = mesh_normal(surfaces, f)
    zero = (0.0, 0.0, 0.0)
    m = load_turn(pose, p)
    other = zero
    if who[p, TREE] >= 0:
        other = normalize(sub(placed(m, zero, mesh_normal(surfaces, g)), zero))
    elif who[p, SHEET] >= 0:
        # A sheet is felt from both sides: that of the particle's centre counts.
        other = normalize(placed(m, zero, load(sheets.normal, g)))
        corner = wall_corner(sheets, g, 0, m, load_way(pose, p))
        other = scale(-1.0 if dot(other, corner) > 0.0 else 1.0, other)
    d = sub(n, other)
    square = dot(d, d)
    if dot(n, n) == 0.0 and dot(other, other) == 0.0:
        n = across(load_way(pose, p))  # axes of two capsules, which have no sides
    return (normalize(d) if square > OPPOSED else n), math.sqrt(square)


@func
def at_triangles(p, f, g, who, sheets, surfaces, pose, square, x, y, crossing):
    """Gap, point, normal and crossing of two triangles, from their squared distance and nearest points x and y."""
    ball, halo = pose[p, BALL], pose[p, HALO]
    distance = math.sqrt(square)
    # What is left of a distance by rounding has no direction.
    apart = distance > CLOSE * halo
    # Of points that are very near the difference is rounded otherwise than the distance.
    n = normalize(sub(y, x))
    d = distance - ball
    gap = d - halo
    if not apart:
        n, opposed = way_out(p, f, g, who, sheets, surfaces, pose)
        # Of all triangles that cross at a place, those that look at each other are deepest, by a hair.
        gap -= CLOSE * opposed * halo
    return gap, add(x, scale(0.5 * d, n)), n, crossing or d <= 0.0 or not apart


@func
def lane_side(lane, row, k):
    """Unit direction of the side that stands as a triangle in column k of lane."""
    return normalize(
        (lane[row + 3, k] - lane[row, k], lane[row + 4, k] - lane[row + 1, k], lane[row + 5, k] - lane[row + 2, k])
    )


@func
def feature_touches(k, p, f, second, who, sheets, surfaces, pose, lane, n):
    """Whether the shortest way n of a feature is one between faces: a corner has its foot within the other triangle, sides cross."""
    g, code = feature_of(second)
    m = load_turn(pose, p)
    if not face_each_other(p, f, g, who, sheets, surfaces, m, FLAT):
        return False
    up = dot(n, mesh_normal(surfaces, f))
    other = dot(n, partner_normal(p, g, who, sheets, surfaces, m))
    other = -abs(other) if who[p, SHEET] >= 0 else other
    if code <= 3:
        return other < UPRIGHT * UPRIGHT - 1.0 and up > 0.5
    if code <= 6:
        return up > 1.0 - UPRIGHT * UPRIGHT and other < -0.5
    level = abs(dot(n, lane_side(lane, 0, k))) < UPRIGHT and abs(dot(n, lane_side(lane, 9, k))) < UPRIGHT
    return level and up > 0.5 and other < -0.5


@func
def at_feature(k, p, f, second, who, sheets, surfaces, pose, lane, found, near):
    """Gap, point and normal of a feature; infinite if it does not touch, or only may, where `near` is not asked for."""
    square, x, y = found
    distance, halo = math.sqrt(square), pose[p, HALO]
    apart = distance > CLOSE * halo
    n = normalize(sub(y, x))
    touches = apart and feature_touches(k, p, f, second, who, sheets, surfaces, pose, lane, n)
    return (distance - halo if touches or near else math.inf), add(x, scale(0.5 * distance, n)), n


@func
def at_plane(p, v, surfaces, pose):
    """The same for vertex v and a plane, which is a half-space: it touches at any depth."""
    size, axis = pose[p, SIZE], load_axis(pose, p)
    x = (size * surfaces.vertex[0, v], size * surfaces.vertex[1, v], size * surfaces.vertex[2, v])
    height = dot(sub(x, load_way(pose, p)), axis)
    return height - pose[p, HALO], add(x, scale(-0.5 * height, axis)), scale(-1.0, axis), False


@func
def at_shell(p, v, surfaces, pose):
    """The same for vertex v and a shell."""
    size, way = pose[p, SIZE], load_way(pose, p)
    x = (size * surfaces.vertex[0, v], size * surfaces.vertex[1, v], size * surfaces.vertex[2, v])
    d, n = vertex_shell(sub(x, way), scale(-1.0, way), load_axis(pose, p), pose[p, RADIUS], pose[p, HALF])
    return d - pose[p, HALO], add(x, scale(0.5 * d, n)), n, d <= 0.0 and pose[p, HALF] < math.inf


@func
def at_cylinder(p, f, surfaces, pose):
    """The same for triangle f and a cylinder."""
    size, way, axis = pose[p, SIZE], load_way(pose, p), load_axis(pose, p)
    d, x, n, crossing = triangle_cylinder(
        sub(own_corner(surfaces, size, f, 0), way),
        sub(own_corner(surfaces, size, f, 1), way),
        sub(own_corner(surfaces, size, f, 2), way),
        mesh_normal(surfaces, f),
        scale(-1.0, way),
        axis,
        pose[p, RADIUS],
        pose[p, HALF],
        pose[p, SENSE],
        pose[p, HALO],
    )
    return d - pose[p, HALO], add(add(x, way), scale(0.5 * d, n)), n, crossing


@func
def put_point(row, p, pose, points, gap, point, n, crossing, flat):
    """Write what was found for a candidate, in the world."""
    q = (pose[p, FACING], pose[p, FACING + 1], pose[p, FACING + 2], pose[p, FACING + 3])
    point = add(point, scale(pose[p, LEAN], n))
    point = add((pose[p, PLACE], pose[p, PLACE + 1], pose[p, PLACE + 2]), rotate(q, point))
    n = scale(pose[p, SIGN], rotate(q, n))
    points.gap[row] = gap
    points.crossing[row], points.flat[row] = (1 if crossing else 0), (1 if flat else 0)
    for i in range(3):
        points.point[row, i] = point[i]
        points.normal[row, i] = n[i]


def measure_block(block, pose, who, sheets, surfaces, start, first, second, tolerance, near, points):
    """Points of LANES candidates, but for those of cylinders; near: features that may touch later, too."""
    lane, result = np.empty((ROWS, LANES)), np.empty((RESULT, LANES))
    begin = block * LANES
    used = min(LANES, len(first) - begin)
    whose = np.empty(LANES, np.int64)
    p = pair_of(start, begin)
    for k in range(LANES):
        # The last block repeats its last candidate.
        row = begin + min(k, used - 1)
        while start[p + 1] <= row:
            p += 1
        whose[k] = p
        fill_lane(k, p, first[row], second[row], who, sheets, surfaces, pose, lane)
    METHOD(lane, tolerance, result)
    for k in range(used):
        row, p = begin + k, whose[k]
        bent = pose[p, RADIUS] > 0.0
        x, y = (result[1, k], result[2, k], result[3, k]), (result[4, k], result[5, k], result[6, k])
        f, g = first[row], second[row]
        if pose[p, SENSE] != 0.0 and not bent:
            gap, point, n, crossing = at_plane(p, f, surfaces, pose)
            flat = True
        elif g > TRIANGLE_BITS:
            gap, point, n = at_feature(k, p, f, g, who, sheets, surfaces, pose, lane, (result[0, k], x, y), near)
            crossing, flat = False, True
        else:
            gap, point, n, crossing = at_triangles(
                p, f, g, who, sheets, surfaces, pose, result[0, k], x, y, result[7, k] > 0.0
            )
            flat = False
        if not bent:
            put_point(row, p, pose, points, gap, point, n, crossing, flat)


def round_row(p, pose, surfaces, start, first, second, points):
    """Points of pair p if its partner is a cylinder: a kernel of its own, for scenes that have one."""
    if pose[p, RADIUS] > 0.0:
        for row in range(start[p], start[p + 1]):
            vertex = pose[p, SENSE] > 0.0 and second[row] == BARE
            if vertex:
                gap, point, n, crossing = at_shell(p, first[row], surfaces, pose)
            else:
                gap, point, n, crossing = at_cylinder(p, first[row], surfaces, pose)
            put_point(row, p, pose, points, gap, point, n, crossing, vertex)


def oval_row(p, pose, surfaces, start, first, points):
    """Points of pair p if its partner is an ellipsoid: a kernel of its own, for scenes that have one."""
    if pose[p, OVAL] > 0.0 and pose[p, POWER] == 0.0:
        size, q = load_oval(pose, p)
        own, way = pose[p, SIZE], load_way(pose, p)
        for row in range(start[p], start[p + 1]):
            a, b, c = own_corners(surfaces, own, first[row])
            d, n, x = triangle_ellipsoid(a, b, c, way, q, size)
            put_point(row, p, pose, points, d - pose[p, HALO], add(x, scale(0.5 * d, n)), n, d <= 0.0, False)


@func
def load_oval(pose, p):
    """Semi-axes and turn of the ellipsoid or superquadric of pair p."""
    return (
        (pose[p, OVAL], pose[p, OVAL + 1], pose[p, OVAL + 2]),
        (pose[p, TILT], pose[p, TILT + 1], pose[p, TILT + 2], pose[p, TILT + 3]),
    )


@func
def seen_from(p, f, q, pose, surfaces):
    """The corners of triangle f of the mesh in the axes of its partner, a superquadric turned by q."""
    a, b, c = own_corners(surfaces, pose[p, SIZE], f)
    way = load_way(pose, p)
    return unrotate(q, sub(a, way)), unrotate(q, sub(b, way)), unrotate(q, sub(c, way))


@func
def open_row(first, last, points, limit):
    """Of rows that are not measured yet, for which `crossing` is OPEN, the one with the least gap, up to limit; or -1."""
    least, best = -1, limit
    for row in range(first, last):
        if points.crossing[row] == OPEN and (points.gap[row] < best or (least < 0 and points.gap[row] <= best)):
            least, best = row, points.gap[row]
    return least


def power_row(p, nearest, pose, surfaces, start, first, points):
    """Points of pair p if its partner is a superquadric: a kernel of its own, for scenes that have one.

    Where the nearest triangle alone is asked for, those come first that two directions tell the least of, and all others are given up as soon as
    one direction shows them to be farther: their gap is infinite.
    """
    if pose[p, POWER] > 0.0:
        size, q = load_oval(pose, p)
        e = (2.0 / (2.0 - pose[p, POWER]), 2.0 / (2.0 - pose[p, POWER + 1]))
        begin, end, best = start[p], start[p + 1], math.inf
        hair = HAIR * (
            size[0] + size[1] + size[2]
        )  # two triangles at an edge are as near as each other, but for rounding
        for row in range(begin, end):
            a, b, c = seen_from(p, first[row], q, pose, surfaces)
            points.gap[row] = triangle_bound(a, b, c, size, e) if nearest else -math.inf
            points.crossing[row] = OPEN
        row = open_row(begin, end, points, best)
        while row >= 0:
            a, b, c = seen_from(p, first[row], q, pose, surfaces)
            d, n, x = triangle_separation(a, b, c, size, e, best + hair)
            middle = add(load_way(pose, p), rotate(q, sub(x, scale(0.5 * d, n))))
            put_point(row, p, pose, points, d - pose[p, HALO], middle, scale(-1.0, rotate(q, n)), d <= 0.0, False)
            if nearest and d < best:
                best, far = d, reach_of(n, size, e)[0]
                for k in range(begin, end):
                    if points.crossing[k] == OPEN:
                        a, b, c = seen_from(p, first[k], q, pose, surfaces)
                        points.gap[k] = max(points.gap[k], min(dot(n, a), dot(n, b), dot(n, c)) - far)
            row = open_row(begin, end, points, best + hair)
        for k in range(begin, end):
            if points.crossing[k] == OPEN:
                points.gap[k], points.crossing[k] = math.inf, 0


@func
def reach_along(n, q, power, size):
    """How far an ellipsoid or superquadric, turned by q, reaches from its centre along unit n [m]."""
    u = unrotate(q, n)
    if power[0] > 0.0:
        return reach_of(u, size, (2.0 / (2.0 - power[0]), 2.0 / (2.0 - power[1])))[0]
    return norm((size[0] * u[0], size[1] * u[1], size[2] * u[2]))


def out_row(p, pose, surfaces, start, first, points):
    """How far an ellipsoid or superquadric, the partner of pair p with its centre inside the mesh, is from having gone out through each triangle.

    As of a sphere: as far as its centre is from the nearest point, plus its reach that way. Triangles over which its centre is not, but for
    the nearest, are no way out: they are infinitely far.
    """
    if pose[p, OVAL] > 0.0:
        size, q = load_oval(pose, p)
        power, way = (pose[p, POWER], pose[p, POWER + 1]), load_way(pose, p)
        nearest, least = -1, math.inf
        for row in range(start[p], start[p + 1]):
            a, b, c = own_corners(surfaces, pose[p, SIZE], first[row])
            m = mesh_normal(surfaces, first[row])
            x = point_nearest(way, a, b, c)
            d = norm(sub(x, way))
            if d < least:
                nearest, least = row, d
            n = normalize(sub(x, way)) if d > 0.0 else m
            gap = d + reach_along(n, q, power, size)
            put_point(
                row, p, pose, points, gap - pose[p, HALO], sub(x, scale(0.5 * gap, n)), scale(-1.0, n), False, False
            )
            points.crossing[row] = 0 if dot(n, m) > 1.0 - FOOT else OPEN
        for row in range(start[p], start[p + 1]):
            if points.crossing[row] == OPEN:
                points.crossing[row] = 0
                points.gap[row] = points.gap[row] if row == nearest else math.inf


def measure_candidates(setting, surfaces, candidates, narrow, tolerance, points, near=False, every=ALL):
    """Fill in MeasuredPoints, one row for each of the Candidates of the pairs (p,) of a Setting.

    narrow: name of a method in `triangle_lanes.METHODS`; tolerance: what it aims at, relative to the longest edge. near: of corners and
    sides, also those that may touch when bodies have moved. every: ALL, or NEAREST where of each pair the least gap alone counts, or OUT where meshes
    hold the centres of ellipsoids and superquadrics: what is told of these is how far they are from being out.
    """
    count = len(candidates.first)
    if count == 0:
        return
    pairs = len(setting.pose)
    measure = kernel(measure_block, grain=4, allocates=True, fastmath=FUSE, METHOD=METHODS[narrow])
    blocks = (count + LANES - 1) // LANES
    measure(blocks, *setting, surfaces, *candidates, float(tolerance), near, points)
    if (setting.pose[:, RADIUS] > 0.0).any():
        kernel(round_row, grain=16)(pairs, setting.pose, surfaces, *candidates, points)
    ovals, powers = setting.pose[:, OVAL] > 0.0, setting.pose[:, POWER] > 0.0
    if every == OUT:
        if ovals.any():
            kernel(out_row, grain=16)(pairs, setting.pose, surfaces, *candidates[:2], points)
        return
    if (ovals & ~powers).any():
        kernel(oval_row, grain=16)(pairs, setting.pose, surfaces, *candidates[:2], points)
    if powers.any():
        kernel(power_row, grain=16)(pairs, every == NEAREST, setting.pose, surfaces, *candidates[:2], points)

"""Do two bodies overlap? Convex parts by their support functions, for placing bodies before there is a simulation.

A part is the sum of a superquadric, the hull of some points and a ball, each of which may be nothing: a sphere is a point and a ball, an
ellipsoid a superquadric, a polyhedron its corners, a capsule two points and a ball. A triangulated particle counts as the convex hull of its vertices, with
its halo. That two parts are apart is said only where a direction was found along which they are: in doubt they overlap.
"""

import math
from typing import NamedTuple

import numpy as np

from ..kernels.backend import func, within
from ..kernels.reached import stored
from ..kernels.vec import add, cross, dot, load, load4, rotate, scale, sub, unrotate
from ..shapes.superquadric import inside_ball, reach_of
from ..tables import rows_in

STEPS = 40  # of the search for a direction between two parts
RIM = 64  # directions in which a part is looked at within a shell


class Solids(NamedTuple):
    """One row per row of Parts, in the axes of its body at size factor 1; those of walls are not used."""

    size: np.ndarray  # (p,3) [m], half-axes of the superquadric; zeros if there is none
    dual: np.ndarray  # (p,2) 2 / (2 - e) of its exponents
    ball: np.ndarray  # (p,) [m]
    start: np.ndarray  # (p+1,) int64, into point
    point: np.ndarray  # (k,3) [m], about the offset of the part
    offset: np.ndarray  # (p,3) [m], as in Parts
    turn: np.ndarray  # (p,4) as in Parts
    core: np.ndarray  # (p,) [m], radius of a ball about the offset that is inside


class Items(NamedTuple):
    """What is kept apart: parts low up to high of Solids as one body, whose parts are where they are in its axes less `base`."""

    turn: np.ndarray  # (b,4) unit quaternion
    factor: np.ndarray  # (b,) size factor
    base: np.ndarray  # (b,3) [m], at size factor 1
    low: np.ndarray  # (b,) int64
    high: np.ndarray  # (b,) int64
    core: np.ndarray  # (b,) [m], radius of a ball about the centre that is inside


class Keep(NamedTuple):
    """All that must be known to keep bodies apart by their true shapes."""

    solids: Solids
    items: Items
    sheets: Solids  # the triangles of the walls, in the world, and a point


def wall_solids(corner):
    """Solids of triangles with corners (t,3,3) [m], and of a point behind them."""
    count = len(corner) + 1
    start = np.append(3 * np.arange(count), 3 * len(corner) + 1)
    point = np.concatenate([corner.reshape(-1, 3), np.zeros((1, 3))])
    none, turn = np.zeros((count, 3)), np.tile([1.0, 0.0, 0.0, 0.0], (count, 1))
    return Solids(none, np.full((count, 2), 2.0), np.zeros(count), start, point, none, turn, np.zeros(count))


def make_solids(parts, hulls, surfaces):
    """Solids of all Parts."""
    from scipy.spatial import ConvexHull

    count = len(parts.kind)
    hull, surface = (rows_in(name, parts.kind, parts.feature) for name in ("hulls", "surfaces"))
    smooth = parts.size[:, 1] > 0.0
    ball, points = np.where(smooth, 0.0, parts.size[:, 0]), []
    core = np.where(smooth, 0.0, parts.size[:, 0])
    power = np.where(parts.power > 0.0, parts.power, 1.0)
    dual = 2.0 / (2.0 - power)
    for p in range(count):
        point = np.zeros((1, 3))
        if hull[p] >= 0:
            point = hulls.vertex[:, slice(*hulls.vertex_start[hull[p] : hull[p] + 2])].T
            core[p] = hulls.inner[hull[p]]
        elif surface[p] >= 0:
            vertex = surfaces.vertex[:, slice(*surfaces.vertex_start[surface[p] : surface[p] + 2])].T
            corners = np.sort(ConvexHull(vertex).vertices) if len(vertex) > 2 else slice(None)  # a capsule has two
            point, ball[p] = vertex[corners], surfaces.epsilon[surface[p]]
            core[p] = surfaces.inner[surface[p]]
        elif smooth[p]:
            core[p] = getattr(inside_ball, "py_func", inside_ball)(parts.size[p], dual[p])
        points.append(point)
    start = np.concatenate([[0], np.cumsum([len(point) for point in points], dtype=np.int64)])
    size = np.where(smooth[:, None], parts.size, 0.0)
    return Solids(size, dual, ball, start, np.concatenate([np.zeros((0, 3)), *points]), parts.offset, parts.turn, core)


def with_box(solids, half):
    """Solids and, behind them, a box with half widths (3,) [m]."""
    corner = half * np.array([(x, y, z) for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)], dtype=float)
    none, ahead = np.zeros((1, 3)), np.array([[1.0, 0.0, 0.0, 0.0]])
    start = np.array([len(solids.point) + 8])
    box = Solids(none, np.full((1, 2), 2.0), np.zeros(1), start, corner, none, ahead, half.min(keepdims=True))
    return Solids(*(np.concatenate(pair) for pair in zip(solids, box, strict=True)))


def is_ball(solids):
    """Which parts are balls (p,) bool."""
    one = np.diff(solids.start) == 1
    return one & (solids.size[:, 0] == 0.0) & ~solids.point[solids.start[:-1]].any(axis=1)


def body_items(solids, low, high, turn, factor):
    """Items for whole bodies: parts low (n,) up to high (n,), turns (n,4) and size factors (n,)."""
    ranges, row = np.unique(np.stack([low, high]), axis=1, return_inverse=True)
    row, core = row.reshape(-1), np.array([_core(solids, a, b) for a, b in ranges.T])
    turn = np.ascontiguousarray(np.broadcast_to(turn, (len(low), 4)))
    return Items(turn, factor, np.zeros((len(low), 3)), low.astype(np.int64), high.astype(np.int64), factor * core[row])


def _core(solids, low, high):
    """Radius [m] of a ball about the centre of a body that is inside one of its parts."""
    inside = solids.core[low:high] - np.linalg.norm(solids.offset[low:high], axis=1)
    return max(float(inside.max()), 0.0)


def part_items(solids, part, turn, factor):
    """Items for parts (n,) one by one, as shapes stand in the world."""
    base = solids.offset[part]
    return Items(turn, factor, base, part.astype(np.int64), part.astype(np.int64) + 1, factor * solids.core[part])


def join_items(*items):
    """Items one after the other."""
    return Items(*(np.ascontiguousarray(np.concatenate(column)) for column in zip(*items, strict=True)))


def widths(solids, items) -> tuple[np.ndarray, np.ndarray]:
    """How far items reach down and up the axes of the world from their centre: (n,3), (n,3) [m]."""
    down, up = np.empty((len(items.factor), 3)), np.empty((len(items.factor), 3))
    _widths(solids, items, down, up)
    return down, up


@func
def part_centre(solids, items, k, p):
    """Where part p of item k is, from the centre of the item."""
    return rotate(load4(items.turn, k), scale(items.factor[k], sub(load(solids.offset, p), load(items.base, k))))


@within
def farthest(solids, p, q, factor, n):
    """The point of part p, turned by q, at this size factor, that is farthest along n, from the part's own centre [m]."""
    n = unrotate(q, n)
    best, most = np.int64(0), -math.inf
    for i in range(solids.start[p], solids.start[p + 1]):
        height = dot(load(solids.point, i), n)
        if height > most:
            best, most = np.int64(i), height
    x = load(solids.point, best)
    if solids.size[p, 0] > 0.0:
        own = load4(solids.turn, p)
        _, y = reach_of(unrotate(own, n), load(solids.size, p), (solids.dual[p, 0], solids.dual[p, 1]))
        x = add(x, rotate(own, y))
    length = math.sqrt(dot(n, n))
    x = add(x, scale(solids.ball[p] / (length if length > 0.0 else 1.0), n))
    return rotate(q, scale(factor, x))


@stored()
def _widths(solids, items, down, up):
    for k in range(len(items.factor)):
        q = load4(items.turn, k)
        for axis in range(3):
            down[k, axis], up[k, axis] = -math.inf, -math.inf
        for p in range(items.low[k], items.high[k]):
            c = part_centre(solids, items, k, p)
            for axis in range(3):
                n = (1.0 if axis == 0 else 0.0, 1.0 if axis == 1 else 0.0, 1.0 if axis == 2 else 0.0)
                up[k, axis] = max(up[k, axis], c[axis] + farthest(solids, p, q, items.factor[k], n)[axis])
                n = (-n[0], -n[1], -n[2])
                down[k, axis] = max(down[k, axis], -c[axis] - farthest(solids, p, q, items.factor[k], n)[axis])


@func
def nearest_of_triangle(a, b, c):
    """Weights of the corners for the point of a triangle that is nearest to the origin (Ericson 2005, 5.1.5)."""
    ab, ac = sub(b, a), sub(c, a)
    d1, d2 = -dot(ab, a), -dot(ac, a)
    if d1 <= 0.0 and d2 <= 0.0:
        return 1.0, 0.0, 0.0
    d3, d4 = -dot(ab, b), -dot(ac, b)
    if d3 >= 0.0 and d4 <= d3:
        return 0.0, 1.0, 0.0
    vc = d1 * d4 - d3 * d2
    if vc <= 0.0 and d1 >= 0.0 and d3 <= 0.0:
        v = d1 / (d1 - d3) if d1 > d3 else 0.0
        return 1.0 - v, v, 0.0
    d5, d6 = -dot(ab, c), -dot(ac, c)
    if d6 >= 0.0 and d5 <= d6:
        return 0.0, 0.0, 1.0
    vb = d5 * d2 - d1 * d6
    if vb <= 0.0 and d2 >= 0.0 and d6 <= 0.0:
        w = d2 / (d2 - d6) if d2 > d6 else 0.0
        return 1.0 - w, 0.0, w
    va = d3 * d6 - d5 * d4
    if va <= 0.0 and d4 - d3 >= 0.0 and d5 - d6 >= 0.0:
        w = (d4 - d3) / ((d4 - d3) + (d5 - d6)) if (d4 - d3) + (d5 - d6) > 0.0 else 0.0
        return 0.0, 1.0 - w, w
    total = va + vb + vc
    return va / total, vb / total, vc / total


@func
def outside_of(a, b, c, d):
    """Whether the origin is beyond triangle a, b, c as seen from d."""
    n = cross(sub(b, a), sub(c, a))
    side = dot(n, sub(d, a))
    return -dot(n, a) * side < 0.0 or side == 0.0


@func
def combined(u, a, v, b, w, c):
    """u a + v b + w c."""
    return add(scale(u, a), add(scale(v, b), scale(w, c)))


@within
def apart(solids, p, q, factor, others, r, turn, size, d, axis, bar):
    """Whether part p of solids, turned by q, and part r of others, d (3,) [m] from its centre, are apart.

    The method of Gilbert, Johnson and Keerthi on the difference of the two, until some direction parts them. A cylinder with this unit axis and
    bar = (radius, half length) [m] is added to the second one.
    """
    ahead = d if dot(d, d) > 0.0 else (1.0, 0.0, 0.0)
    a = b = c = e = (0.0, 0.0, 0.0)
    count = 0
    for _ in range(STEPS):
        back = (-ahead[0], -ahead[1], -ahead[2])
        w = add(d, farthest(others, r, turn, size, back))
        if bar[0] > 0.0:
            up = dot(back, axis)
            side = sub(back, scale(up, axis))
            flat = math.sqrt(dot(side, side))
            w = add(w, scale(bar[0] / (flat if flat > 0.0 else 1.0), side))
            w = add(w, scale(math.copysign(bar[1], up), axis))
        w = sub(w, farthest(solids, p, q, factor, ahead))
        # What rounding may do to w is far below this.
        if dot(ahead, w) > 1e-12 * math.sqrt(dot(ahead, ahead)) * (abs(w[0]) + abs(w[1]) + abs(w[2])):
            return True
        a, b, c, e = w, a, b, c
        count += 1
        if count == 1:
            ahead = a
        elif count == 2:
            x, y, _ = nearest_of_triangle(a, b, b)
            ahead = add(scale(x, a), scale(y, b))
            count = 1 if y == 0.0 else 2
        else:
            best, x, y, z = math.inf, 1.0, 0.0, 0.0
            if count == 3:
                x, y, z = nearest_of_triangle(a, b, c)
            else:
                inside = True
                s, t, u = b, c, e
                for k in range(3):
                    # The three faces at the newest corner; the fourth was left behind.
                    s, t, u = (b, c, e) if k == 0 else ((c, e, b) if k == 1 else (e, b, c))
                    if outside_of(a, s, t, u):
                        inside = False
                        i, j, g = nearest_of_triangle(a, s, t)
                        v = combined(i, a, j, s, g, t)
                        if dot(v, v) < best:
                            best, x, y, z = dot(v, v), i, j, g
                            m, o = s, t
                if inside:
                    return False
                b, c = m, o
            ahead = combined(x, a, y, b, z, c)
            # Only the corners that carry the nearest point stay.
            count = 1
            if y > 0.0:
                count = 2
            if z > 0.0:
                b, c = (b, c) if y > 0.0 else (c, b)
                count = 3 if y > 0.0 else 2
            if x == 0.0:
                a, b, count = b, c, count - 1
        if not dot(ahead, ahead) > 0.0:
            return False
    return False


@within
def items_apart(solids, items, k, m, d):
    """Whether items k and m, d (3,) [m] from the first to the second, are apart."""
    square = dot(d, d)
    core = items.core[k] + items.core[m]
    if square < core * core:
        return False
    q, turn = load4(items.turn, k), load4(items.turn, m)
    for p in range(items.low[k], items.high[k]):
        c = part_centre(solids, items, k, p)
        for r in range(items.low[m], items.high[m]):
            way = sub(add(d, part_centre(solids, items, m, r)), c)
            where = solids, r, turn, items.factor[m], way
            if not apart(solids, p, q, items.factor[k], *where, (0.0, 0.0, 1.0), (0.0, 0.0)):
                return False
    return True


@within
def above_plane(solids, items, k, x, normal):
    """Whether item k with its centre at x, from a point of a plane, is above it."""
    q = load4(items.turn, k)
    down = (-normal[0], -normal[1], -normal[2])
    for p in range(items.low[k], items.high[k]):
        low = add(add(x, part_centre(solids, items, k, p)), farthest(solids, p, q, items.factor[k], down))
        if dot(low, normal) < 0.0:
            return False
    return True


@within
def within_shell(solids, items, k, x, axis, radius):
    """Whether item k with its centre at x, from a point of the axis, is inside a tube that has no end: so it is if a polygon around each
    cross-section of it is."""
    q = load4(items.turn, k)
    side = (1.0, 0.0, 0.0) if abs(axis[0]) < 0.7 else (0.0, 1.0, 0.0)
    u = cross(axis, side)
    u = scale(1.0 / math.sqrt(dot(u, u)), u)
    v = cross(axis, u)
    most = radius * math.cos(math.pi / RIM)
    for p in range(items.low[k], items.high[k]):
        centre = add(x, part_centre(solids, items, k, p))
        for j in range(RIM):
            angle = 2.0 * math.pi * j / RIM
            n = add(scale(math.cos(angle), u), scale(math.sin(angle), v))
            if dot(add(centre, farthest(solids, p, q, items.factor[k], n)), n) > most:
                return False
    return True


@within
def clear_of_rod(keep, k, x, axis, radius, half):
    """Whether item k with its centre at x, from the middle of a solid cylinder, is apart from it."""
    solids, items, sheets = keep
    q, point = load4(items.turn, k), len(sheets.ball) - 1
    # An endless one is as long as is needed.
    half = min(half, 1e3 * (math.sqrt(dot(x, x)) + radius))
    for p in range(items.low[k], items.high[k]):
        centre = add(x, part_centre(solids, items, k, p))
        way = (-centre[0], -centre[1], -centre[2])
        where = sheets, point, (1.0, 0.0, 0.0, 0.0), 1.0, way
        if not apart(solids, p, q, items.factor[k], *where, axis, (radius, half)):
            return False
    return True


@within
def clear_of_triangle(keep, k, x, t):
    """Whether item k with its centre at x is apart from triangle t of the walls."""
    solids, items, sheets = keep
    q = load4(items.turn, k)
    for p in range(items.low[k], items.high[k]):
        centre = add(x, part_centre(solids, items, k, p))
        where = sheets, t, (1.0, 0.0, 0.0, 0.0), 1.0, (-centre[0], -centre[1], -centre[2])
        if not apart(solids, p, q, items.factor[k], *where, (0.0, 0.0, 1.0), (0.0, 0.0)):
            return False
    return True

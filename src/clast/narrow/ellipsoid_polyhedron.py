"""An ellipsoid against a convex polyhedron: signed distance, normal and the one point where they touch.

Everything is in the axes of the polyhedron, about its centre, in metres, as in `polyhedron_sphere`. Two convex bodies: the
signed distance is the greatest separation s(n) = n . c - h(n) - (reach of the polyhedron along n) over all unit n, h the support of
the ellipsoid. What is looked at are the normals of faces, for each edge the best n at right angles to it if it lies between
its two faces, and the best n of corners: the signed distances of a plane, a line and a point from the ellipsoid, from its near side
and, where both overlap, from its far side. Every s(n) is a bound from below, and one of these is the greatest: the distance, or the
least way out at any depth.
"""

import math

import numpy as np

from ..broad.near import asleep
from ..kernels.backend import func, kernel, search
from ..kernels.kinds import turn_of
from ..kernels.launch import same
from ..kernels.vec import add, dot, load4, norm, quat_multiply, rotate, scale, sub, unrotate
from ..shapes.ellipsoid_form import load_form, own_axes
from .curvature import wall_radius
from .ellipsoid_point import stretched, support
from .ellipsoid_ways import (
    END,
    FAR,
    LANES,
    NEAR,
    ONE,
    ROOM,
    START,
    TWO,
    lane,
    put_lane,
    repeat_first,
    ways_of_corners,
    ways_of_edges,
)
from .ellipsoids import between
from .polyhedra import ball_radius, conjugate
from .polyhedron_plane import corner, face_normal
from .polyhedron_polyhedron import heights, highest, list_edges, list_high_edges, reach_along
from .polyhedron_sphere import CORNER, FACE, SIDE
from .superquadric_flat import within_face

BLOCK = 16  # pairs a task
# Columns of `work` behind the lanes: heights of the ellipsoid's centre over the faces, then of its deepest point; edges that are looked at; corners.
HEIGHTS = ROOM


def work_width(hulls):
    """Columns of `work` that an ellipsoid with any of these hulls needs."""
    faces = int(np.diff(hulls.face_start).max(initial=0))
    edges = int(np.diff(hulls.edge_start).max(initial=0))
    return HEIGHTS + 2 * faces + edges + int(np.diff(hulls.vertex_start).max(initial=0))


@func
def separation(h, k, hulls, c, axes, size, n):
    """How far an ellipsoid and hull h are apart along unit n, from the hull to the ellipsoid [m]."""
    u = stretched(axes, size, n)
    reach = k * reach_along(hulls.vertex, hulls.vertex_start[h], hulls.vertex_start[h + 1], n)
    return dot(n, c) - math.sqrt(dot(u, u)) - reach


@func
def face_separation(h, k, hulls, c, axes, size, work):
    """The greatest separation over the normals of faces: (s [m], n, face); heights of c over the faces stay in work."""
    first = hulls.face_start[h]
    count = hulls.face_start[h + 1] - first
    heights(hulls.normal, hulls.offset, first, count, k, c, work, HEIGHTS)
    face_gaps(hulls.normal, first, count, axes, size, work, HEIGHTS, HEIGHTS + count)
    f = highest(work, HEIGHTS + count, count)
    return work[np.uintp(HEIGHTS + count + f)], face_normal(hulls, np.uintp(first + f)), first + f


@search
def face_gaps(normal, first, count, axes, size, work, high, at):
    """Write what the ellipsoid leaves of the heights at `high` over `count` faces from `first` on to work from `at` on."""
    for i in range(count):
        f = np.uintp(first + i)
        u = stretched(axes, size, (normal[0, f], normal[1, f], normal[2, f]))
        work[np.uintp(at + i)] = work[np.uintp(high + i)] - math.sqrt(dot(u, u))


@func
def edge_separation(h, k, hulls, c, axes, size, better, start, shallow, work):
    """The edge with the greatest separation above `better` [m]: (edge or -1, s, n).

    start: unit, the best n so far. Neither a ball about the centre that lies in the ellipsoid nor its deepest point along `start` is farther away than the
    ellipsoid itself: an edge with less room to one of them is not looked at. shallow [m]: above it there is no way out through the far side.
    """
    first = hulls.face_start[h]
    faces = hulls.face_start[h + 1] - first
    deep = sub(c, support(axes, size, start)[1])
    heights(hulls.normal, hulls.offset, first, faces, k, deep, work, HEIGHTS + faces)
    at = HEIGHTS + 2 * faces
    found, best, n = -1, better, start
    count = list_edges(h, hulls, best, min(size[0], size[1], size[2]), work, HEIGHTS, HEIGHTS + faces, at)
    for block in range(0, count, LANES):
        used = min(LANES, count - block)
        for j in range(used):
            e, i = np.uintp(work[np.uintp(at + block + j)]), np.uintp(j)
            put_lane(work, START, i, corner(hulls, k, np.uintp(hulls.edge[e, 0])))
            put_lane(work, END, i, corner(hulls, k, np.uintp(hulls.edge[e, 1])))
            put_lane(work, ONE, i, face_normal(hulls, np.uintp(hulls.edge_face[e, 0])))
            put_lane(work, TWO, i, face_normal(hulls, np.uintp(hulls.edge_face[e, 1])))
        repeat_first(work, used, 12)
        ways_of_edges(c, axes, size, best <= shallow, work)
        for j in range(used):
            i = np.uintp(j)
            if work[NEAR + i] > best:
                m = lane(work, NEAR + LANES, i)
                found, best, n = int(work[np.uintp(at + block + j)]), work[NEAR + i], (-m[0], -m[1], -m[2])
    return found, best, n


@func
def list_corners(h, hulls, least, work, deep_at, at):
    """Write the corners of hull h at faces with a height above `least` at deep_at to work behind the edges from `at` on: where, and how many."""
    first, corners = hulls.vertex_start[h], hulls.vertex_start[h + 1] - hulls.vertex_start[h]
    where, count = at + hulls.edge_start[h + 1] - hulls.edge_start[h], 0
    for i in range(corners):
        work[np.uintp(where + i)] = -1.0
    for i in range(list_high_edges(h, hulls, least, work, deep_at, at)):
        e = np.uintp(work[np.uintp(at + i)])
        for end in range(2):
            v = hulls.edge[e, np.uintp(end)]
            work[np.uintp(where + v - first)] = v
    for i in range(corners):
        v = work[np.uintp(where + i)]
        work[np.uintp(where + count)] = v
        count += 1 if v >= 0.0 else 0
    return where, count


@func
def corner_separation(h, k, hulls, c, axes, size, better, start, shallow, work):
    """The corner with the greatest separation above `better` [m]: (corner or -1, s, n). start: unit, the best n so far; shallow: see `edge_separation`.

    Corners whose faces all have the deepest point along `start` below them by more are not looked at. Of corners outside the ellipsoid only the nearest
    can be touched, but for the far side of a body that is thinner than both are deep in each other.
    """
    first = hulls.face_start[h]
    faces = hulls.face_start[h + 1] - first
    deep = sub(c, support(axes, size, start)[1])
    heights(hulls.normal, hulls.offset, first, faces, k, deep, work, HEIGHTS + faces)
    found, best, n = -1, better, start
    nearest, least, way = -1, math.inf, start
    at, count = list_corners(h, hulls, min(best, 0.0), work, HEIGHTS + faces, HEIGHTS + 2 * faces)
    for block in range(0, count, LANES):
        used = min(LANES, count - block)
        for j in range(used):
            put_lane(work, START, np.uintp(j), corner(hulls, k, np.uintp(work[np.uintp(at + block + j)])))
        repeat_first(work, used, 3)
        far = best <= shallow
        ways_of_corners(c, axes, size, far, work)
        for j in range(used):
            i, v = np.uintp(j), int(work[np.uintp(at + block + j)])
            gap, m = work[NEAR + i], lane(work, NEAR + LANES, i)
            if gap > 0.0 and gap < least:
                nearest, least, way = v, gap, (-m[0], -m[1], -m[2])
            for _ in range(2 if far else 1):
                if gap <= 0.0 and gap > best:
                    m = (-m[0], -m[1], -m[2])
                    s = separation(h, k, hulls, c, axes, size, m)
                    if s > best:
                        found, best, n = v, s, m
                # That way may lead through the polyhedron, when the one through the far side does not.
                gap, m = work[FAR + i], lane(work, FAR + LANES, i)
    if nearest >= 0:
        s = separation(h, k, hulls, c, axes, size, way)
        if s > best:
            found, best, n = nearest, s, way
    return found, best, n


@func
def along_edge(edge, k, hulls, y):
    """How far along an edge the point y is, 0 at its start and 1 at its end."""
    p = corner(hulls, k, np.uintp(hulls.edge[np.uintp(edge), 0]))
    u = sub(corner(hulls, k, np.uintp(hulls.edge[np.uintp(edge), 1])), p)
    return dot(sub(y, p), u) / dot(u, u)


@func
def hull_ellipsoid(h, k, hulls, c, q, size, margin, work):
    """Hull h at size factor k against an ellipsoid: (found 0 or 1, gap [m], n, point [m], feature).

    c: the ellipsoid's centre from the polyhedron's centre, in its axes [m]; unit quaternion q turns the ellipsoid's own axes into
    those of the polyhedron; size: its semi-axes [m]. gap is negative when overlapping, n the unit normal from the polyhedron to the
    ellipsoid, point the touched point of the polyhedron's surface; that of the ellipsoid is a gap away along n. Nothing is found if
    gap > margin. work: room, see `work_width`. feature: 4 * (face) + FACE, 4 * (corner) + CORNER or 4 * (edge) + SIDE, each counted within its hull.
    """
    zero = (0.0, 0.0, 0.0)
    if norm(c) - k * hulls.outer[h] - max(size[0], size[1], size[2]) > margin:
        return 0, 0.0, zero, zero, 0
    axes = own_axes(q)
    gap, n, which = face_separation(h, k, hulls, c, axes, size, work)
    if gap > margin:
        return 0, 0.0, zero, zero, 0
    # While both overlap by less than all radii of curvature there is one way out: the face, if the ellipsoid is above its inside, else the edge.
    least, most = min(size[0], size[1], size[2]), max(size[0], size[1], size[2])
    shallow = -least * least / most
    if gap > shallow:
        x = sub(sub(c, support(axes, size, n)[1]), scale(gap, n))
        if within_face(x, which, k, hulls):
            return 1, gap, n, x, 4 * (which - hulls.face_start[h]) + FACE
    edge, s, m = edge_separation(h, k, hulls, c, axes, size, gap, n, shallow, work)
    v, t = -1, -1.0
    if edge >= 0:
        gap, n = s, m
        t = along_edge(edge, k, hulls, sub(c, support(axes, size, n)[1]))
    if not (gap > shallow and 0.0 <= t <= 1.0):
        v, s, m = corner_separation(h, k, hulls, c, axes, size, gap, n, shallow, work)
    if v >= 0:
        gap, n = s, m
    if gap > margin:
        return 0, 0.0, zero, zero, 0
    if v >= 0:
        return 1, gap, n, corner(hulls, k, np.uintp(v)), 4 * (v - hulls.vertex_start[h]) + CORNER
    if edge >= 0:
        p = corner(hulls, k, np.uintp(hulls.edge[np.uintp(edge), 0]))
        u = sub(corner(hulls, k, np.uintp(hulls.edge[np.uintp(edge), 1])), p)
        return 1, gap, n, add(p, scale(min(max(t, 0.0), 1.0), u)), 4 * (edge - hulls.edge_start[h]) + SIDE
    y = sub(c, support(axes, size, n)[1])
    return 1, gap, n, sub(y, scale(gap, n)), 4 * (which - hulls.face_start[h]) + FACE


@func
def pair_points(where, tables, pairs, points, edges, margin, work):
    """Contact points of pairs, an ellipsoid and a polyhedron in either order, with a gap up to margin [m].

    where: first pair, the pair behind the last, pairs before the first slot. A function of its own, as in `polyhedra`.
    """
    bodies, shapes, parts, hulls, forms = tables
    first, last, spheres = where
    for p in range(first, last):
        a, b = pairs.shape[p, 0], pairs.shape[p, 1]
        if asleep(p, a, b, spheres, pairs, margin):
            continue
        c = pairs.slot[p - spheres]
        swap = parts.feature[shapes.part[a]] < 0
        s, t = (b, a) if swap else (a, b)
        body, other, part = shapes.body[s], shapes.body[t], shapes.part[t]
        q = load4(bodies.orientation, body)
        centre = unrotate(q, between(s, t, shapes.centre, edges))
        turn = quat_multiply(conjugate(q), turn_of(t, bodies, shapes, parts))
        size = scale(bodies.scale[other], (parts.size[part, 0], parts.size[part, 1], parts.size[part, 2]))
        hull = parts.feature[shapes.part[s]]
        found, gap, n, x, feature = hull_ellipsoid(hull, bodies.scale[body], hulls, centre, turn, size, margin, work)
        touches = found == 1 and gap <= margin
        points.gap[c] = gap if touches else np.inf
        points.count[p - spheres] = 1 if touches else 0
        if touches:
            n = rotate(q, n)
            arm = add(rotate(q, x), scale(0.5 * gap, n))
            if swap:
                arm = add(arm, between(a, b, shapes.centre, edges))
            one, two = ball_radius(s, bodies, shapes, parts), wall_radius(load_form(forms, t), n)
            points.radius[c], points.feature[c] = one * two / (one + two), feature
            for i in range(3):
                points.normal[c, i] = -n[i] if swap else n[i]
                points.arm[c, i] = arm[i]


def points_block(block, where, bodies, shapes, parts, hulls, forms, pairs, points, edges, margin, width):
    """Contact points of a block of pairs; where: first pair, pairs, pairs before the first slot."""
    first, count, spheres = where
    begin = first + block * BLOCK
    mine = (begin, min(begin + BLOCK, first + count), spheres)
    pair_points(mine, (bodies, shapes, parts, hulls, forms), pairs, points, edges, margin, np.empty(width))


def find_points(look, rows, margin):
    """Contact points of pairs of a list; see `clast.narrow.dispatch`."""
    first, count = rows
    there = look.there
    tables = there.bodies, there.shapes, there.parts, there.hulls, there.forms, look.pairs, look.points
    find = kernel(points_block, grain=2, allocates=True)
    where, blocks = same(first, count, look.spheres_count), (count + BLOCK - 1) // BLOCK
    find(blocks, where, *tables, look.edges, margin, look.once("ellipsoid_width", lambda: work_width(look.hulls)))

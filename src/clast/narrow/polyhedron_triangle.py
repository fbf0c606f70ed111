"""A convex polyhedron against one triangle of a mesh wall. Axes, units and the answer are those of `hull_walls`.

A mesh is a thin sheet felt from both sides; the side on which the polyhedron's centre lies counts. What touches is

    corners of the polyhedron behind the face and over its inside;
    edges of the mesh that stick out towards the polyhedron, or where the sheet ends, crossing edges of the polyhedron;
    corners of the mesh that stick out, inside the polyhedron, with the least way out through a face.

While the two are apart, every place where the distance has a local minimum is a contact: besides these, corners of the
polyhedron over edges of the mesh, and its edges and corners over corners of the mesh. The least gap is the distance but for folds
below `NEARLY_FLAT`, over which a corner has its height above the nearer face.

Each contact is reported by one triangle: a corner of the polyhedron by the triangle it is over, an edge and a corner of the
mesh by their owners. Over a flat or nearly flat mesh the points are therefore those of a plane, and its inner edges are
not felt. All decisions about shared edges are taken from the same numbers, bit for bit, by all triangles that share them.

In a valley that is no longer nearly flat a corner touches both faces, as it would touch two planes. A corner touches a face only if
the straight way to it from the polyhedron's centre leads through the sheet: else it got behind around an end or ridge.

Of one triangle alone and of a quad a polyhedron that overlaps it has a least way out, see `polyhedron_sheet`: none of this is asked then.
"""

import math

import numpy as np

from ..kernels.backend import func, part
from ..kernels.vec import add, dot, load, norm, rotate, scale, sub, unrotate
from .polyhedron_plane import add_point, corner, face_normal, keep_four
from .polyhedron_polyhedron import EDGE_EDGE, VERTEX_FACE
from .polyhedron_sheet import hull_sheet
from .polyhedron_sphere import FACE, highest_face, nearest_outside
from .sheet_edges import (
    DEEPER,
    NEAREST,
    ON_CORNER,
    RISES,
    another_leaves_sooner,
    any_sticks_out,
    best_crossing,
    edge_leaves_sooner,
    inside_part,
    last_in_line,
    least_face_depths,
    nearly_flat,
    pointed,
    rises_from_edge,
    rises_from_vertex,
    sticks_out,
    vertex_at,
    way_out,
)
from .sphere_walls import height_over_side, over_plane
from .triangle_sides import came_through, over_inside


@part
def corners_touch(h, k, hulls, meshes, t, side, n, height, c, q, shift, size, margin, work):
    """Corners of the polyhedron as candidates: how many. n and height are those of `hull_plane`."""
    outer = k * hulls.outer[h]
    first = hulls.vertex_start[h]
    vertex = hulls.vertex
    limit = (height - margin) / k
    count = np.int64(0)  # a bare 0 has a type of its own, for which all that is called would be compiled again
    for i in range(first, hulls.vertex_start[h + 1]):
        v = np.uintp(i)
        along = n[0] * vertex[0, v] + n[1] * vertex[1, v] + n[2] * vertex[2, v]
        if along >= limit:
            gap = height - k * along
            x = corner(hulls, k, v)
            p = scale(1.0 / size, unrotate(q, sub(x, shift)))
            tolerance = ON_CORNER * outer / size
            if gap <= margin and over_inside(p, c, gap < 0.0, meshes, t, side, tolerance):
                if not gap < 0.0 or came_through(p, c, -gap / size, meshes, t, side, tolerance):
                    count = add_point(work, count, outer, x, gap, n, 4.0 * (i - first) + VERTEX_FACE)
    return count


@func
def uncertain(distance, outer):
    """How far a direction between two points at this distance [m] may be off, with `NEAREST` on top."""
    return NEAREST + 1e-14 * outer / max(distance, 1e-300)


@part
def corner_over_edge(h, k, hulls, meshes, e, a, b, q):
    """The corner of the polyhedron nearest to edge e of the mesh, from a to b, if it is over its inside and nothing around the
    two is nearer: (corner or -1, gap, normal).
    """
    outer = k * hulls.outer[h]
    u = sub(b, a)
    square = dot(u, u)
    found, best, n = -1, math.inf, u
    for i in range(hulls.vertex_start[h], hulls.vertex_start[h + 1]):
        w = sub(a, corner(hulls, k, np.uintp(i)))
        g = -dot(w, u) / square
        if g > 0.0 and g < 1.0:
            way = add(w, scale(g, u))
            far = dot(way, way)
            if far < best:
                found, best, n = i, far, way
    if found < 0 or not best > 0.0 or nearly_flat(meshes, e):
        return -1, best, n
    gap = math.sqrt(best)
    n = scale(1.0 / gap, n)
    slack = uncertain(gap, outer)
    reach = dot(n, corner(hulls, k, np.uintp(found))) + slack * outer
    for i in range(hulls.vertex_start[h], hulls.vertex_start[h + 1]):
        if dot(n, corner(hulls, k, np.uintp(i))) > reach:
            return -1, gap, n
    return (found if rises_from_edge(unrotate(q, n), meshes, e, slack) else -1), gap, n


@part
def edge_touches(h, k, hulls, meshes, e, j, c, q, shift, size, margin, work, count):
    """Edge e of the mesh, side j of its owner, after `count` candidates: how many now.

    One point where it crosses an edge of the polyhedron, and those where it enters or leaves the polyhedron, as deep as they
    are along the same normal: together the ends of a line contact. Edges in one line are one, and that one tells of it which has
    the crossing: into how many a ridge is divided has no influence.
    """
    outer = k * hulls.outer[h]
    one, two = meshes.edge[e, 0], meshes.edge[e, 1]
    a, b = vertex_at(meshes, one, q, shift, size), vertex_at(meshes, two, q, shift, size)
    u = sub(b, a)
    near = min(max(-dot(a, u) / dot(u, u), 0.0), 1.0)
    if norm(add(a, scale(near, u))) - outer > margin:
        return count
    may, low, high = inside_part(h, k, hulls, a, b, margin)
    if not may:
        return count
    found, gap, n, s, g, apart = best_crossing(h, k, hulls, meshes, e, a, b, q)
    if margin > 0.0 and apart and (found < 0 or gap <= 0.0):
        v, gap, n = corner_over_edge(h, k, hulls, meshes, e, a, b, q)
        if v >= 0 and gap <= margin:
            first = hulls.vertex_start[h]
            faces = hulls.face_start[h + 1] - hulls.face_start[h]
            feature = 4.0 * (4 * (hulls.vertex_start[h + 1] - first) + 3 * faces + 3 * (v - first) + j) + VERTEX_FACE
            count = add_point(work, count, outer, corner(hulls, k, np.uintp(v)), gap, n, feature)
        return count
    if not apart:
        begin = last_in_line(c, meshes, one, e, q, shift, size, outer)
        end = last_in_line(c, meshes, two, e, q, shift, size, outer)
        if begin != one or end != two:
            # All edges of the line go by the same numbers: from its lower vertex to its higher.
            one, two = min(begin, end), max(begin, end)
            here, there = (a, b) if begin < end else (b, a)
            a, b = vertex_at(meshes, one, q, shift, size), vertex_at(meshes, two, q, shift, size)
            u = sub(b, a)
            _, low, high = inside_part(h, k, hulls, a, b, margin)
            found, gap, n, s, g, apart = best_crossing(h, k, hulls, meshes, e, a, b, q)
            place = min(max(g, low), high)
            before = here != a and place < dot(sub(here, a), u) / dot(u, u)
            if before or (there != b and place >= dot(sub(there, a), u) / dot(u, u)):
                return count
    if found < 0 or (gap <= 0.0 if apart else not low < high) or gap > margin:
        return count
    feature = 4.0 * (3 * (found - hulls.edge_start[h]) + j) + EDGE_EDGE
    if not apart:
        # Where an end of the line dips into the polyhedron, its corner may know a shorter way out. And where the nearest crossing would press the sheet
        # into the polyhedron, the next one may lie beyond it: at the open end of a tube a box was told to be as deep as it is wide. Then the edge leaves
        # through the nearest face.
        first = one if low <= 0.0 and pointed(c, meshes, one) else -1
        last = two if high >= 1.0 and pointed(c, meshes, two) else -1
        for v in (first, last):
            if v >= 0 and another_leaves_sooner(h, k, hulls, meshes, v, e, c, q, shift, size, gap):
                return count
        of_vertex, of_edge, face = least_face_depths(h, k, hulls, meshes, e, (first, last), a, b, low, high, q)
        if -gap > of_vertex + ON_CORNER * outer:
            return count
        if -gap > DEEPER * of_edge + ON_CORNER * outer:
            if count > 0:  # corners of the polyhedron feel the sheet
                return count
            n = face_normal(hulls, np.uintp(face))
            x, y = add(a, scale(low, u)), add(a, scale(high, u))
            x = x if dot(n, x) < dot(n, y) else y
            return add_point(work, count, outer, add(x, scale(of_edge, n)), -of_edge, n, feature)
    v = corner(hulls, k, np.uintp(hulls.edge[found, 0]))
    point = add(v, scale(s, sub(corner(hulls, k, np.uintp(hulls.edge[found, 1])), v)))
    count = add_point(work, count, outer, point, gap, n, feature)
    if not apart:
        for place in (low, high):
            if place > 0.0 and place < 1.0 and abs(place - g) * norm(u) > ON_CORNER * outer:
                x = add(a, scale(place, u))
                depth = way_out(h, k, hulls, x, n)
                if depth > ON_CORNER * outer:
                    count = add_point(work, count, outer, add(x, scale(depth, n)), -depth, n, feature)
    return count


@part
def vertex_apart(h, k, hulls, meshes, v, x, j, c, q, margin, work, count):
    """Vertex v of the mesh, at x outside the polyhedron, after `count` candidates: how many now."""
    outer = k * hulls.outer[h]
    point, square, which = nearest_outside(h, k, hulls, x, margin)
    gap = math.sqrt(square)
    if not (gap <= margin and gap > 0.0 and gap < math.inf):
        return count
    n = scale(1.0 / gap, sub(x, point))
    m = unrotate(q, n)
    if which % 4 == FACE:
        speaks = rises_from_vertex(m, meshes, v, RISES) and pointed(c, meshes, v)
    else:
        # On its way along a straight ridge, the corner adds nothing to what the edges say only below a face.
        speaks = rises_from_vertex(m, meshes, v, uncertain(gap, outer)) and any_sticks_out(c, meshes, v)
    if not speaks:
        return count
    corners = hulls.vertex_start[h + 1] - hulls.vertex_start[h]
    faces = hulls.face_start[h + 1] - hulls.face_start[h]
    if which % 4 == FACE:
        number = corners + 3 * (which // 4) + j
    else:
        number = 7 * corners + 3 * faces + 3 * which + j
    return add_point(work, count, outer, point, gap, n, 4.0 * number + VERTEX_FACE)


@part
def vertex_touches(h, k, hulls, meshes, v, j, c, q, shift, size, margin, work, count):
    """Vertex v of the mesh, corner j of its owner, after `count` candidates: how many now."""
    outer = k * hulls.outer[h]
    x = vertex_at(meshes, v, q, shift, size)
    if norm(x) - outer > margin:
        return count
    _, most = highest_face(h, k, hulls, x)
    if most > margin:
        return count
    if most > 0.0:
        return vertex_apart(h, k, hulls, meshes, v, x, j, c, q, margin, work, count)
    if not pointed(c, meshes, v):
        return count
    face, gap = -1, -math.inf
    for i in range(hulls.face_start[h], hulls.face_start[h + 1]):
        f = np.uintp(i)
        n = face_normal(hulls, f)
        height = dot(n, x) - k * hulls.offset[f]
        if height > gap and rises_from_vertex(unrotate(q, n), meshes, v, RISES):
            face, gap = i, height
    if face < 0 or edge_leaves_sooner(h, k, hulls, meshes, v, c, q, shift, size, gap):
        return count
    n = face_normal(hulls, face)
    corners = hulls.vertex_start[h + 1] - hulls.vertex_start[h]
    feature = 4.0 * (corners + 3 * (face - hulls.face_start[h]) + j) + VERTEX_FACE
    return add_point(work, count, outer, sub(x, scale(gap, n)), gap, n, feature)


@part
def hull_triangle(h, k, hulls, meshes, t, q, shift, size, margin, work):
    """Hull h at size factor k against triangle t of a mesh: how many contact points were written, 0 to 4.

    A point x of the mesh is at shift + size * rotate(q, x) in the axes of the polyhedron [m].
    """
    outer = k * hulls.outer[h]
    c = scale(-1.0 / size, unrotate(q, shift))
    reach = (outer + margin) / size
    signed = over_plane(c, meshes, t)
    if abs(signed) > reach:
        return 0
    for j in range(3):
        if height_over_side(c, meshes, t, j) < -reach:
            return 0
    found = hull_sheet(h, k, hulls, meshes, t, c, q, shift, size, margin, work)
    if found >= 0:
        return found
    side = 1.0 if signed >= 0.0 else -1.0
    n = rotate(q, scale(-side, load(meshes.normal, t)))
    height = abs(signed) * size
    vertex = hulls.vertex
    most = -math.inf
    for i in range(hulls.vertex_start[h], hulls.vertex_start[h + 1]):
        v = np.uintp(i)
        most = max(most, n[0] * vertex[0, v] + n[1] * vertex[1, v] + n[2] * vertex[2, v])
    if height - k * most > margin:
        return 0
    count = corners_touch(h, k, hulls, meshes, t, side, n, height, c, q, shift, size, margin, work)
    for j in range(3):
        e = meshes.side[t, j]
        if meshes.edge_owner[e] == t and sticks_out(c, meshes, e):
            count = edge_touches(h, k, hulls, meshes, e, j, c, q, shift, size, margin, work, count)
    for j in range(3):
        v = meshes.triangle[t, j]
        if meshes.vertex_owner[v] == t:
            count = vertex_touches(h, k, hulls, meshes, v, j, c, q, shift, size, margin, work, count)
    return keep_four(work, count, outer)

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
"""

import math

import numpy as np

from ..kernels.backend import func, part
from ..kernels.vec import add, cross, dot, load, norm, rotate, scale, sub, unrotate
from .polyhedron_plane import add_point, corner, face_normal, keep_four
from .polyhedron_polyhedron import EDGE_EDGE, VERTEX_FACE
from .polyhedron_sphere import FACE, highest_face, nearest_outside
from .sphere_walls import NEARLY_FLAT, height_over_side, over_plane
from .triangle_sides import came_through, inward, over_inside, sharing, side_of

# Two neighbours whose planes differ by less than 0.001 rad are one plane, and their edge is never felt: 1 - 0.001^2 / 2.
FLAT = 1.0 - 5e-7
# Directions from the polyhedron in which an edge or a corner of the mesh may be felt, as a cosine. A little more than the mesh
# allows for: else a face lying flat on a plate would gain and lose points at its end with every rounding of its tilt.
RISES = 0.2
ON_CORNER = 1e-9  # of the outer radius: what stands so near to a corner of the mesh is left to the corner's owner
PARALLEL = 1e-12  # squared sine between two edges below which they do not cross
NEAREST = 1e-9  # the same cosine where the two are apart and a contact is the nearest place around it
# The way out of an edge does not count if it is so many times as long as the edge is deep below a face through which it may leave: a corner that lies in a
# trough touches at its end.
DEEPER = 1.25
STRAIGHT = 0.9999  # cosine above which two edges at a corner of the mesh are one straight line
IN_LINE = 1e-5  # sine below which they are one edge: the numbers of a file have seven digits


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


# Edges and corners of the mesh.


@func
def sticks_out(c, meshes, e):
    """Whether edge e is the end of the sheet, or a ridge as seen from c."""
    if sharing(meshes, e) != 2:
        return True
    row = meshes.edge_start[e]
    t, u = meshes.edge_side[row, 0], meshes.edge_side[row + 1, 0]
    one = inward(meshes, t, meshes.edge_side[row, 1])
    two = inward(meshes, u, meshes.edge_side[row + 1, 1])
    # Seen from within a valley both triangles have the other rising; over a ridge one of them at least has it falling.
    falls = side_of(c, meshes, t) * dot(two, load(meshes.normal, t)) < 0.0
    falls = falls or side_of(c, meshes, u) * dot(one, load(meshes.normal, u)) < 0.0
    return falls and dot(one, two) > -FLAT


@func
def rises_from_edge(n, meshes, e, slack):
    """Whether no triangle at edge e leads from it against n (in the axes of the mesh), that is, into the polyhedron."""
    for row in range(meshes.edge_start[e], meshes.edge_start[e + 1]):
        if dot(n, inward(meshes, meshes.edge_side[row, 0], meshes.edge_side[row, 1])) < -slack:
            return False
    return True


@func
def inside_part(h, k, hulls, a, b, margin):
    """The part of the line from a to b inside the polyhedron, from 0 at a to 1 at b; whether it may touch at all."""
    low, high = 0.0, 1.0
    for i in range(hulls.face_start[h], hulls.face_start[h + 1]):
        f = np.uintp(i)
        n = face_normal(hulls, f)
        one = dot(n, a) - k * hulls.offset[f]
        two = dot(n, b) - k * hulls.offset[f]
        if one > margin and two > margin:
            return False, low, high
        if one > 0.0 and two > 0.0:
            high = -1.0
        elif one > 0.0:
            low = max(low, one / (one - two))
        elif two > 0.0:
            high = min(high, one / (one - two))
    return True, low, high


@part
def best_crossing(h, k, hulls, meshes, e, a, b, q):
    """The edge of the polyhedron through which the line from a to b, edge e of the mesh, has the least way out.

    (edge or -1, gap, normal, place on the polyhedron's edge, place on the line; whether the endless line is outside).
    Seen along the line the polyhedron is a polygon; its sides are the edges between a face towards and one away.
    """
    u = sub(b, a)
    square = dot(u, u)
    found, best, most = -1, -math.inf, -math.inf
    normal, on_edge, on_line = u, 0.0, 0.0
    for i in range(hulls.edge_start[h], hulls.edge_start[h + 1]):
        j = np.uintp(i)
        one = face_normal(hulls, np.uintp(hulls.edge_face[j, 0]))
        two = face_normal(hulls, np.uintp(hulls.edge_face[j, 1]))
        if dot(one, u) * dot(two, u) <= 0.0:
            v = corner(hulls, k, np.uintp(hulls.edge[j, 0]))
            along = sub(corner(hulls, k, np.uintp(hulls.edge[j, 1])), v)
            d = cross(along, u)
            length = dot(along, along)
            steep = dot(d, d)
            if steep > PARALLEL * square * length:
                d = scale((1.0 if dot(d, add(one, two)) >= 0.0 else -1.0) / math.sqrt(steep), d)
                w = sub(a, v)
                gap = dot(d, w)
                most = max(most, gap)
                if gap > best:
                    # Where the two lines are nearest to each other.
                    x, y, mixed = dot(along, w), dot(u, w), dot(along, u)
                    s = (x * square - mixed * y) / steep
                    g = (mixed * x - length * y) / steep
                    if (
                        s >= 0.0
                        and s <= 1.0
                        and g >= 0.0
                        and g <= 1.0
                        and rises_from_edge(unrotate(q, d), meshes, e, RISES)
                    ):
                        found, best, normal, on_edge, on_line = i, gap, d, s, g
    return found, best, normal, on_edge, on_line, most > 0.0


@func
def way_out(h, k, hulls, x, n):
    """How far it is from x inside the polyhedron to its surface along n [m]."""
    least = math.inf
    for i in range(hulls.face_start[h], hulls.face_start[h + 1]):
        f = np.uintp(i)
        m = face_normal(hulls, f)
        slope = dot(m, n)
        if slope > 1e-12:
            least = min(least, (k * hulls.offset[f] - dot(m, x)) / slope)
    return least


@func
def from_vertex(meshes, v, e):
    """Unit vector from vertex v along its edge e."""
    low = meshes.edge[e, 0]
    way = sub(load(meshes.vertex, meshes.edge[e, 1] if low == v else low), load(meshes.vertex, v))
    return scale(1.0 / norm(way), way)


@part
def rises_from_vertex(n, meshes, v, slack):
    """Whether no edge at vertex v leads from it against n (in the axes of the mesh), that is, into the polyhedron."""
    for row in range(meshes.vertex_start[v], meshes.vertex_start[v + 1]):
        if dot(n, from_vertex(meshes, v, meshes.vertex_edge[row])) < -slack:
            return False
    return True


@func
def least_face_depths(h, k, hulls, meshes, e, ends, a, b, low, high, q):
    """The least depth [m] below one face of a part of edge e of the mesh, or of the line it is in: of the faces through which a vertex may leave, and
    of those through which the edge may.

    The part lies inside the polyhedron, from `low` to `high` of the way from a to b; ends: the vertices at a and b that may have
    their say, else -1.
    """
    u = sub(b, a)
    one, two = add(a, scale(low, u)), add(a, scale(high, u))
    of_vertex, of_edge = math.inf, math.inf
    for i in range(hulls.face_start[h], hulls.face_start[h + 1]):
        f = np.uintp(i)
        n = face_normal(hulls, f)
        depth = k * hulls.offset[f] - min(dot(n, one), dot(n, two))
        if depth < of_vertex:
            m = unrotate(q, n)
            rises = ends[0] >= 0 and rises_from_vertex(m, meshes, ends[0], RISES)
            if rises or (ends[1] >= 0 and rises_from_vertex(m, meshes, ends[1], RISES)):
                of_vertex = depth
            elif depth < of_edge and rises_from_edge(m, meshes, e, RISES):
                of_edge = depth
    return of_vertex, of_edge


@func
def uncertain(distance, outer):
    """How far a direction between two points at this distance [m] may be off, with `NEAREST` on top."""
    return NEAREST + 1e-14 * outer / max(distance, 1e-300)


@func
def nearly_flat(meshes, e):
    """Whether the two triangles at edge e are nearly in one plane."""
    row = meshes.edge_start[e]
    one = inward(meshes, meshes.edge_side[row, 0], meshes.edge_side[row, 1])
    last = meshes.edge_start[e + 1] - 1
    two = inward(meshes, meshes.edge_side[last, 0], meshes.edge_side[last, 1])
    return last == row + 1 and dot(one, two) <= -NEARLY_FLAT


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
def pointed(c, meshes, v):
    """Whether vertex v of the mesh sticks out towards c; between two edges in one line it adds nothing to what these report."""
    count = 0
    for row in range(meshes.vertex_start[v], meshes.vertex_start[v + 1]):
        e = meshes.vertex_edge[row]
        if sticks_out(c, meshes, e):
            count += 1
            way = from_vertex(meshes, v, e)
            for other in range(meshes.vertex_start[v], row):
                o = meshes.vertex_edge[other]
                if dot(way, from_vertex(meshes, v, o)) < -STRAIGHT and sticks_out(c, meshes, o):
                    return False
    return count > 0


@func
def vertex_at(meshes, v, q, shift, size):
    """Vertex v of the mesh in the axes of the polyhedron [m]."""
    return add(shift, scale(size, rotate(q, load(meshes.vertex, v))))


@part
def last_in_line(c, meshes, v, e, q, shift, size, reach):
    """The last vertex of the straight line of edges that stick out and go on from edge e over its end v, or the first of them
    that is farther than reach [m] from the polyhedron's centre."""
    going = True
    while going and norm(vertex_at(meshes, v, q, shift, size)) <= reach:
        back, going = from_vertex(meshes, v, e), False
        for row in range(meshes.vertex_start[v], meshes.vertex_start[v + 1]):
            o = meshes.vertex_edge[row]
            way = from_vertex(meshes, v, o)
            bend = cross(back, way)
            if dot(back, way) < 0.0 and dot(bend, bend) < IN_LINE * IN_LINE and sticks_out(c, meshes, o):
                v, e, going = meshes.edge[o, 0] + meshes.edge[o, 1] - v, o, True
                break
    return v


@part
def another_leaves_sooner(h, k, hulls, meshes, v, e, c, q, shift, size, gap):
    """Whether another edge than e that sticks out at vertex v of the mesh is less deep in the polyhedron than `gap` [m], below zero, and leads the whole
    corner out."""
    for row in range(meshes.vertex_start[v], meshes.vertex_start[v + 1]):
        o = meshes.vertex_edge[row]
        if o != e and sticks_out(c, meshes, o):
            a = vertex_at(meshes, meshes.edge[o, 0], q, shift, size)
            b = vertex_at(meshes, meshes.edge[o, 1], q, shift, size)
            may, low, high = inside_part(h, k, hulls, a, b, 0.0)
            if may and low < high:
                found, depth, n, _, _, apart = best_crossing(h, k, hulls, meshes, o, a, b, q)
                if found >= 0 and not apart and depth > gap + ON_CORNER * k * hulls.outer[h]:
                    if rises_from_vertex(unrotate(q, n), meshes, v, NEAREST):
                        return True
    return False


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
    if not apart:
        # Where an end of the line dips into the polyhedron, its corner may know a shorter way out. And where the nearest crossing would press the sheet
        # into the polyhedron, the next one may lie beyond it: at the open end of a tube a box was told to be as deep as it is wide.
        first = one if low <= 0.0 and pointed(c, meshes, one) else -1
        last = two if high >= 1.0 and pointed(c, meshes, two) else -1
        for v in (first, last):
            if v >= 0 and another_leaves_sooner(h, k, hulls, meshes, v, e, c, q, shift, size, gap):
                return count
        of_vertex, of_edge = least_face_depths(h, k, hulls, meshes, e, (first, last), a, b, low, high, q)
        if -gap > min(of_vertex, DEEPER * of_edge) + ON_CORNER * outer:
            return count
    feature = 4.0 * (3 * (found - hulls.edge_start[h]) + j) + EDGE_EDGE
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


@func
def any_sticks_out(c, meshes, v):
    """Whether an edge at vertex v of the mesh sticks out towards c."""
    for row in range(meshes.vertex_start[v], meshes.vertex_start[v + 1]):
        if sticks_out(c, meshes, meshes.vertex_edge[row]):
            return True
    return False


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
def edge_leaves_sooner(h, k, hulls, meshes, v, c, q, shift, size, gap):
    """Whether an edge at vertex v of the mesh is less deep in the polyhedron than `gap` [m], below zero.

    Then that edge leads the vertex out too, or the sheet beside it does, which corners of the polyhedron feel. At the end of a sheet that is a valley, an
    edge of the polyhedron that presses into the valley has no face through which the vertex could leave but one across the end, as far away as the
    polyhedron is long.
    """
    rounding = ON_CORNER * k * hulls.outer[h]
    for row in range(meshes.vertex_start[v], meshes.vertex_start[v + 1]):
        e = meshes.vertex_edge[row]
        a = vertex_at(meshes, meshes.edge[e, 0], q, shift, size)
        b = vertex_at(meshes, meshes.edge[e, 1], q, shift, size)
        may, low, high = inside_part(h, k, hulls, a, b, 0.0)
        if may and low < high:
            _, of_edge = least_face_depths(h, k, hulls, meshes, e, (-1, -1), a, b, low, high, q)
            if -gap > DEEPER * of_edge + rounding:
                return True
            if sticks_out(c, meshes, e):
                found, depth, _, _, _, apart = best_crossing(h, k, hulls, meshes, e, a, b, q)
                if found >= 0 and not apart and depth > gap + rounding:
                    return True
    return False


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

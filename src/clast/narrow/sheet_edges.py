"""Edges and corners of a mesh wall beside a convex polyhedron: which of them stick out, and how they leave it. See `polyhedron_triangle`."""

import math

import numpy as np

from ..kernels.backend import func, part
from ..kernels.vec import add, cross, dot, load, norm, rotate, scale, sub, unrotate
from .polyhedron_plane import corner, face_normal
from .sphere_walls import NEARLY_FLAT
from .triangle_sides import inward, sharing, side_of

# Two neighbours whose planes differ by less than 0.001 rad are one plane, and their edge is never felt: 1 - 0.001^2 / 2.
FLAT = 1.0 - 5e-7
# Directions from the polyhedron in which an edge or a corner of the mesh may be felt, as a cosine. A little more than the mesh
# allows for: else a face lying flat on a plate would gain and lose points at its end with every rounding of its tilt.
RISES = 0.2
ON_CORNER = 1e-9  # of the outer radius: what stands so near to a corner of the mesh is left to the corner's owner
PARALLEL = 1e-12  # squared sine between two edges below which they do not cross
NEAREST = 1e-9  # the same cosine where the two are apart and a contact is the nearest place around it
# The way out of an edge does not count if it is so many times as long as the edge is deep below a face through which it may leave: a corner that lies in a
# trough touches at its end, and an edge leaves through that face.
DEEPER = 1.25
STRAIGHT = 0.9999  # cosine above which two edges at a corner of the mesh are one straight line
IN_LINE = 1e-5  # sine below which they are one edge: the numbers of a file have seven digits


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
def any_sticks_out(c, meshes, v):
    """Whether an edge at vertex v of the mesh sticks out towards c."""
    for row in range(meshes.vertex_start[v], meshes.vertex_start[v + 1]):
        if sticks_out(c, meshes, meshes.vertex_edge[row]):
            return True
    return False


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
def from_vertex(meshes, v, e):
    """Unit vector from vertex v along its edge e."""
    low = meshes.edge[e, 0]
    way = sub(load(meshes.vertex, meshes.edge[e, 1] if low == v else low), load(meshes.vertex, v))
    return scale(1.0 / norm(way), way)


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


@func
def rises_from_edge(n, meshes, e, slack):
    """Whether no triangle at edge e leads from it against n (in the axes of the mesh), that is, into the polyhedron."""
    for row in range(meshes.edge_start[e], meshes.edge_start[e + 1]):
        if dot(n, inward(meshes, meshes.edge_side[row, 0], meshes.edge_side[row, 1])) < -slack:
            return False
    return True


@part
def rises_from_vertex(n, meshes, v, slack):
    """Whether no edge at vertex v leads from it against n (in the axes of the mesh), that is, into the polyhedron."""
    for row in range(meshes.vertex_start[v], meshes.vertex_start[v + 1]):
        if dot(n, from_vertex(meshes, v, meshes.vertex_edge[row])) < -slack:
            return False
    return True


@func
def nearly_flat(meshes, e):
    """Whether the two triangles at edge e are nearly in one plane."""
    row = meshes.edge_start[e]
    one = inward(meshes, meshes.edge_side[row, 0], meshes.edge_side[row, 1])
    last = meshes.edge_start[e + 1] - 1
    two = inward(meshes, meshes.edge_side[last, 0], meshes.edge_side[last, 1])
    return last == row + 1 and dot(one, two) <= -NEARLY_FLAT


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
def least_face_depths(h, k, hulls, meshes, e, ends, a, b, low, high, q):
    """The least depth [m] below one face of a part of edge e of the mesh, or of the line it is in: of the faces through which a vertex may leave, and
    of those through which the edge may, and which of these it is (or -1).

    The part lies inside the polyhedron, from `low` to `high` of the way from a to b; ends: the vertices at a and b that may have
    their say, else -1.
    """
    u = sub(b, a)
    one, two = add(a, scale(low, u)), add(a, scale(high, u))
    of_vertex, of_edge, face = math.inf, math.inf, -1
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
                # What pierces a plate is nowhere deeper than the plate is thick, and not out when it is moved along itself by so much.
                way = scale((1.0 + ON_CORNER) * depth + ON_CORNER * k * hulls.outer[h], n)
                may, begin, end = inside_part(h, k, hulls, add(a, way), add(b, way), 0.0)
                if not (may and begin < end):
                    of_edge, face = depth, i
    return of_vertex, of_edge, face


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
            _, of_edge, _ = least_face_depths(h, k, hulls, meshes, e, (-1, -1), a, b, low, high, q)
            if -gap > DEEPER * of_edge + rounding:
                return True
            if sticks_out(c, meshes, e):
                found, depth, _, _, _, apart = best_crossing(h, k, hulls, meshes, e, a, b, q)
                if found >= 0 and not apart and depth > gap + rounding:
                    return True
    return False

"""A convex polyhedron that overlaps a thin flat sheet: one triangle, or two that make a convex four-sided one, a quad.

Such a sheet is a convex set, so that the two have a least way out: the greatest separation over both normals of the sheet, the faces of the
polyhedron, and the pairs of an edge of it and a side of the sheet. It does not jump while the two move, also where the polyhedron hangs
over an end of the sheet. What touches is the patch that belongs to this direction, and nothing in it is deeper than the least way out.

Axes, units and the answer are those of `hull_triangle`. A sheet is (corners, m, height): four corners in order around m, of which two are one for a
triangle; m its unit normal away from the polyhedron's centre; height [m] of the centre before it.
"""

import math

import numpy as np

from ..kernels.backend import func, part
from ..kernels.vec import add, cross, dot, load, norm, rotate, scale, sub
from .polyhedron_manifold import STEEP, face_beside, face_towards
from .polyhedron_outline import WITHIN
from .polyhedron_plane import add_point, corner, face_normal, keep_four
from .polyhedron_polyhedron import EDGE_EDGE, FACE_FIRST, PARALLEL, VERTEX_FACE, farthest_along, support
from .sheet_edges import vertex_at
from .sphere_walls import height_over_side, over_plane
from .triangle_sides import inward, neighbour, sharing

FLAT = 1.0 - 1e-11  # cosine: two triangles that differ by less than 4.5e-6 rad are one plane, as those of a quad are
FAR = 2.0  # outer radii from all sides of the sheet: no direction but its normals is a shorter way out there
SHEET, FACE, EDGES = 0, 1, 2  # what the least way out is at right angles to
ALONG = 1e-6  # cosine below which a face lies along the direction, so that nothing lies over it
REACH = 1.0 - 1e-9  # of the reach: a triangle that is so near is in every list of those that may touch


@func
def joined(meshes, t):
    """How many sides of triangle t other triangles have too, and the row of edge_side of one of these; 3 where several meet at one side."""
    count, row = 0, 0
    for j in range(3):
        e = meshes.side[t, j]
        if sharing(meshes, e) > 2:
            return 3, row
        if sharing(meshes, e) == 2:
            count, row = count + 1, neighbour(meshes, e, t)
    return count, row


@part
def flat_sheet(meshes, t):
    """The flat convex sheet that triangle t is, alone or with one more: its first triangle, or -1 if it is none, and rows of its corners.

    The same numbers from both triangles.
    """
    v = (meshes.triangle[t, 0], meshes.triangle[t, 1], meshes.triangle[t, 2], meshes.triangle[t, 2])
    count, row = joined(meshes, t)
    if count == 0:
        return t, v
    first = min(t, meshes.edge_side[row, 0])
    if count > 1 or joined(meshes, meshes.edge_side[row, 0])[0] > 1:
        return -1, v
    _, row = joined(meshes, first)
    second, i = meshes.edge_side[row, 0], meshes.edge_side[row, 1]
    j = meshes.edge_side[neighbour(meshes, meshes.side[second, i], second), 1]
    v = (
        meshes.triangle[first, j],
        meshes.triangle[second, (i + 2) % 3],
        meshes.triangle[first, (j + 1) % 3],
        meshes.triangle[first, (j + 2) % 3],
    )
    x = load(meshes.vertex, v[1])
    flat = dot(inward(meshes, first, j), inward(meshes, second, i)) < -FLAT
    for k in range(3):
        flat = flat and (k == j or height_over_side(x, meshes, first, k) > 0.0)
    return (first if flat else -1), v


@part
def reaches(c, meshes, t, reach):
    """Whether triangle t is within reach of c, in the axes of the mesh."""
    inside = abs(over_plane(c, meshes, t)) <= reach
    square = math.inf
    for j in range(3):
        inside = inside and height_over_side(c, meshes, t, j) >= 0.0
        a = load(meshes.vertex, meshes.triangle[t, j])
        u = sub(load(meshes.vertex, meshes.triangle[t, (j + 1) % 3]), a)
        w = sub(c, a)
        way = sub(w, scale(min(max(dot(w, u) / dot(u, u), 0.0), 1.0), u))
        square = min(square, dot(way, way))
    return inside or square <= reach * reach


@func
def side(sheet, i):
    """Where side i of the sheet begins, and the way to its end."""
    corners = sheet[0]
    a = corners[i]
    return a, sub(corners[i + 1 if i < 3 else 0], a)


@func
def lowest(sheet, n):
    """The least n . x of the corners of the sheet."""
    corners = sheet[0]
    return min(min(dot(n, corners[0]), dot(n, corners[1])), min(dot(n, corners[2]), dot(n, corners[3])))


@part
def over_sheet(y, sheet, near):
    """Whether y, in the plane of the sheet, lies within its sides, or by less than `near` [m] outside."""
    for i in range(4):
        a, u = side(sheet, i)
        if dot(cross(sheet[1], u), sub(y, a)) < -near * norm(u):
            return False
    return True


@part
def sheet_separation(h, k, hulls, sheet, limit):
    """The greatest separation of hull h and the sheet: (s [m], n, what it is at right angles to, face or edge, side of the sheet).

    Of equals the side on which the centre lies comes first. The search ends with the first above `limit`.
    """
    _, m, height = sheet
    better = FACE_FIRST * k * hulls.outer[h]
    best, way, kind, one, two = height - support(h, k, m, hulls), m, SHEET, -1, -1
    if best > limit:
        return best, way, kind, one, two
    back = (-m[0], -m[1], -m[2])
    s = -height - support(h, k, back, hulls)
    if s > best + better:
        best, way = s, back
    far = True
    for i in range(4):
        a, u = side(sheet, i)
        far = far and -dot(cross(m, u), a) >= FAR * k * hulls.outer[h] * norm(u)
    if far:
        return best, way, kind, one, two
    for i in range(hulls.face_start[h], hulls.face_start[h + 1]):
        f = np.uintp(i)
        w = face_normal(hulls, f)
        s = lowest(sheet, w) - k * hulls.offset[f]
        if s > best + better:
            best, way, kind, one = s, w, FACE, i
            if s > limit:
                return best, way, kind, one, two
    for i in range(4):
        a, u = side(sheet, i)
        least = PARALLEL * dot(u, u)
        inner = cross(m, u)
        for j in range(hulls.edge_start[h], hulls.edge_start[h + 1]):
            e = np.uintp(j)
            f = face_normal(hulls, np.uintp(hulls.edge_face[e, 0]))
            g = face_normal(hulls, np.uintp(hulls.edge_face[e, 1]))
            if dot(f, u) * dot(g, u) < 0.0:
                v = corner(hulls, k, np.uintp(hulls.edge[e, 0]))
                along = sub(corner(hulls, k, np.uintp(hulls.edge[e, 1])), v)
                d = cross(along, u)
                square = dot(d, d)
                sign = 1.0 if dot(d, add(f, g)) > 0.0 else -1.0
                # Towards the inside of the sheet: only there the side is what it has nearest.
                if square > least * dot(along, along) and sign * dot(d, inner) > 0.0:
                    d = scale(sign / math.sqrt(square), d)
                    s = dot(d, sub(a, v))
                    if s > best + better:
                        best, way, kind, one, two = s, d, EDGES, j, i
                        if s > limit:
                            return best, way, kind, one, two
    return best, way, kind, one, two


@part
def corners_over(h, k, hulls, sheet, n, face, least, margin, work, count):
    """Corners of the polyhedron, of this face if it is not -1, that the sheet is over along n, after `count` candidates: how many now."""
    outer = k * hulls.outer[h]
    _, m, height = sheet
    steep = dot(m, n)
    first, last = hulls.vertex_start[h], hulls.vertex_start[h + 1]
    if face >= 0:
        first, last = hulls.loop_start[face], hulls.loop_start[face + 1]
    for i in range(first, last):
        v = hulls.loop[i] if face >= 0 else i
        x = corner(hulls, k, np.uintp(v))
        gap = (height - dot(m, x)) / steep
        if gap <= margin and over_sheet(add(x, scale(gap, n)), sheet, WITHIN * outer):
            feature = 4.0 * (v - hulls.vertex_start[h]) + VERTEX_FACE
            count = add_point(work, count, outer, x, max(gap, least), n, feature)
    return count


@part
def sides_over(h, k, hulls, sheet, n, face, level, least, margin, work, count):
    """Ends of those parts of the sheet's sides that are over this face along n, level being the cosine between the two, after `count` candidates: how
    many now."""
    outer = k * hulls.outer[h]
    w = face_normal(hulls, np.uintp(face))
    for i in range(4):
        a, u = side(sheet, i)
        # Along n on the plane of the face.
        gap, rise = (dot(w, a) - k * hulls.offset[face]) / level, dot(w, u) / level
        a, u = sub(a, scale(gap, n)), sub(u, scale(rise, n))
        low, high = 0.0, 1.0
        for j in range(hulls.loop_start[face], hulls.loop_start[face + 1]):
            t = (hulls.side[0, j], hulls.side[1, j], hulls.side[2, j])
            room, slope = k * hulls.side_offset[j] + WITHIN * outer - dot(t, a), dot(t, u)
            if slope > 0.0:
                high = min(high, room / slope)
            elif slope < 0.0:
                low = max(low, room / slope)
            elif room < 0.0:
                high = -1.0
        if low <= high:
            feature = 4.0 * (4 * (face - hulls.face_start[h]) + i) + EDGE_EDGE
            for place in (low, high):
                if gap + place * rise <= margin:
                    count = add_point(
                        work, count, outer, add(a, scale(place, u)), max(gap + place * rise, least), n, feature
                    )
    return count


@part
def crossing(k, hulls, e, a, u):
    """The point of edge e of the polyhedron that is nearest to the line from a along u."""
    v = corner(hulls, k, np.uintp(hulls.edge[e, 0]))
    along = sub(corner(hulls, k, np.uintp(hulls.edge[e, 1])), v)
    w, d = sub(a, v), cross(along, u)
    s = (dot(along, w) * dot(u, u) - dot(u, w) * dot(along, u)) / dot(d, d)
    return add(v, scale(min(max(s, 0.0), 1.0), along))


@part
def sheet_points(h, k, hulls, sheet, found, margin, work):
    """Write the points where the two touch, from what `sheet_separation` found, and return how many: 1 to 4.

    Along the direction of the least way out: corners of the polyhedron that the sheet is over, and ends of the sheet's sides over the face that looks
    there. Where an edge crosses a side these stand for an area only if sheet or face are nearly at right angles to the direction.
    """
    least, n, kind, one, two = found
    outer = k * hulls.outer[h]
    steep, count = dot(sheet[1], n), np.int64(0)
    if kind == SHEET:
        face = face_towards(h, n, hulls)
        level = dot(n, face_normal(hulls, np.uintp(face)))
    elif kind == FACE:
        face, level = one, 1.0
    else:
        face, level = face_beside(one, n, hulls)
    flat = level > (STEEP if kind == EDGES else ALONG)
    if kind == SHEET or (kind == EDGES and abs(steep) > STEEP):
        count = corners_over(h, k, hulls, sheet, n, -1, least, margin, work, count)
    elif flat and abs(steep) > ALONG:
        count = corners_over(h, k, hulls, sheet, n, face, least, margin, work, count)
    if flat:
        count = sides_over(h, k, hulls, sheet, n, face, level, least, margin, work, count)
    if kind == EDGES:
        a, u = side(sheet, two)
        faces = hulls.face_start[h + 1] - hulls.face_start[h]
        feature = 4.0 * (4 * (faces + one - hulls.edge_start[h]) + two) + EDGE_EDGE
        count = add_point(work, count, outer, crossing(k, hulls, one, a, u), least, n, feature)
    elif count == 0:
        # By rounding nothing is over the other.
        x = corner(
            hulls, k, np.uintp(farthest_along(hulls.vertex, hulls.vertex_start[h], hulls.vertex_start[h + 1], n))
        )
        count = add_point(work, count, outer, x, least, n, VERTEX_FACE)
    return keep_four(work, count, outer)


@part
def hull_sheet(h, k, hulls, meshes, t, c, q, shift, size, margin, work):
    """Hull h at size factor k against the flat sheet of which triangle t of a mesh is a part, arguments as those of `hull_triangle`: how many contact
    points were written, or -1 if triangle t is in no such sheet, or the two do not overlap.

    c: the polyhedron's centre in the axes of the mesh. All points are told by one triangle, the first if it is within reach of the polyhedron, so
    that it is in every list of those that may touch.
    """
    first, rows = flat_sheet(meshes, t)
    if first < 0:
        return -1
    signed = over_plane(c, meshes, first)
    m = rotate(q, scale(-1.0 if signed >= 0.0 else 1.0, load(meshes.normal, first)))
    one, three = vertex_at(meshes, rows[0], q, shift, size), vertex_at(meshes, rows[2], q, shift, size)
    two, four = vertex_at(meshes, rows[1], q, shift, size), vertex_at(meshes, rows[3], q, shift, size)
    turns = dot(m, cross(sub(three, one), sub(four, two))) > 0.0
    sheet = ((one, two, three, four) if turns else (one, four, three, two)), m, abs(signed) * size
    found = sheet_separation(h, k, hulls, sheet, margin)
    if found[0] > margin:
        return 0
    if found[0] >= 0.0:
        return -1
    near = reaches(c, meshes, first, REACH * (k * hulls.outer[h] + margin) / size)
    if rows[2] != rows[3] and near != (t == first):
        return 0
    return sheet_points(h, k, hulls, sheet, found, margin, work)

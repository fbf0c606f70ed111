"""The points where two convex polyhedra touch, once it is known which of their features do.

Two faces, or an edge and a face, touch in a patch: the face of one that lies over the face of the other, cut off at its outline, up to
four of its corners. Everything is as in `clast.narrow.polyhedron_polyhedron`.
"""

import math

import numpy as np

from ..kernels.backend import func
from ..kernels.vec import add, cross, dot, matrix_vector, scale, sub, transposed
from .box_box import face_of, rolled, unrolled
from .polyhedron_outline import WITHIN, common_outline, copy_four, drop_doubles, drop_straight, keep_near
from .polyhedron_polyhedron import EDGE_EDGE, POINT, SCRATCH, VERTEX_FACE, column, farthest_along, get, put

STEEP = 0.98  # cosine between a face and the normal of crossed edges below which the face is not looked at
CROSSING = 1e-6  # corners nearer to the crossing of two edges than this fraction of the size are the crossing


@func
def contact_points(ha, ka, hb, kb, turn, d, found, hulls, margin, work):
    """Write the points where the two touch, from what `separation` found, and return how many: 1 to 4.

    Each is on the surface of a; points farther apart than margin [m] are left out, the deepest never.

    A face has what the face of the other towards it has over it. Where edges cross, the crossing is a point, and if a face beside one of the
    edges is nearly at right angles to the normal, so are the ends of what the other has over it: of its face if that is nearly so too, and
    else of its edge. A box that lies on another a little askew is held as one that lies flat, and an edge that lies over a
    face is held at both ends, not now here, now there.
    """
    s, n, kind, one, two = found
    back = transposed(turn)
    w = matrix_vector(back, n)
    to_a = (-w[0], -w[1], -w[2])
    crossed = kind == EDGE_EDGE
    level, back_level = 1.0, 1.0
    if crossed:
        face, level = face_beside(one, n, hulls)
        other, back_level = face_beside(two, to_a, hulls)
        in_b = not level > STEEP
        edges = hulls.edge_start[hb + 1] - hulls.edge_start[hb]
        feature = 4 * ((one - hulls.edge_start[ha]) * edges + two - hulls.edge_start[hb]) + EDGE_EDGE
    else:
        in_b = one < 0
        faces = hulls.face_start[ha + 1] - hulls.face_start[ha]
        feature = 4 * (faces + two if in_b else one) + VERTEX_FACE
        towards = face_towards(ha if in_b else hb, n if in_b else to_a, hulls)
        face = towards if in_b else hulls.face_start[ha] + one
        other = hulls.face_start[hb] + two if in_b else towards
    # Of the face that is looked at and of the other body: everything in the axes of the former.
    k, ko, pose, way, edge = ka, kb, turn, d, two
    if in_b:
        away = matrix_vector(back, d)
        k, ko, pose, way, edge = kb, ka, back, (-away[0], -away[1], -away[2]), one
        face, other, level, back_level = other, face, back_level, level
    here, count = SCRATCH, 0
    if back_level > STEEP and level > STEEP:
        if hulls.box[ha, 0] > 0.0 and hulls.box[hb, 0] > 0.0:
            first, second = (hb, ha) if in_b else (ha, hb)
            size, far = box_size(first, k, hulls), box_size(second, ko, hulls)
            here, count = box_outline(size, face, far, other, pose, way, 1.0 / level, hulls, margin, work)
        else:
            here, count = common_outline(k, face, ko, other, pose, way, 1.0 / level, hulls, margin, work)
    elif level > STEEP:
        count = edge_over_face(k, face, ko, edge, pose, way, 1.0 / level, hulls, margin, work)
    if count == 0 and not crossed:
        h, into = (ha, n) if in_b else (hb, to_a)
        x = column(hulls.vertex, farthest_along(hulls.vertex, hulls.vertex_start[h], hulls.vertex_start[h + 1], into))
        x = add(way, scale(ko, matrix_vector(pose, x)))
        put(work, here, x)
        work[here + 3] = dot(column(hulls.normal, face), x) - k * hulls.offset[face]
        count = 1
    kept = 0
    crossing = nearest_of_edges(one, ka, two, kb, turn, d, hulls) if crossed else n
    near = CROSSING * (ka * hulls.outer[ha] + kb * hulls.outer[hb])
    for i in range(count):
        x, gap = get(work, here + 4 * i), work[here + 4 * i + 3]
        if crossed:
            # Nothing is deeper than the crossing; corners that are lie beside the face, seen along n.
            gap = max(gap, s + 1e-9 * abs(s))
        # To the surface of a in its axes.
        x = add(d, matrix_vector(turn, x)) if in_b else sub(x, scale(gap, n))
        u = sub(x, crossing)
        if not crossed or dot(u, u) > near * near:
            put(work, here + 4 * kept, x)
            work[here + 4 * kept + 3] = gap
            kept += 1
    if crossed:
        put(work, here + 4 * kept, crossing)
        work[here + 4 * kept + 3] = s
        kept += 1
    count = spread(kept, n, work, here)
    for i in range(count):
        put(work, POINT * i + 4, n)
        work[POINT * i + 7] = feature
    return count


@func
def face_beside(e, n, hulls):
    """Of the two faces at edge e the one that faces n more, and the cosine."""
    f, g = hulls.edge_face[e, 0], hulls.edge_face[e, 1]
    one, two = dot(n, column(hulls.normal, f)), dot(n, column(hulls.normal, g))
    return f if one >= two else g, max(one, two)


@func
def nearest_of_edges(one, ka, two, kb, turn, d, hulls):
    """The point of edge `one` of a that is nearest to the line of edge `two` of b (eqs. 4 and 5 of the paper).

    Counted from the middle of both edges, so that it does not matter which end comes first.
    """
    first, second = column(hulls.vertex, hulls.edge[one, 0]), column(hulls.vertex, hulls.edge[one, 1])
    p, u = scale(0.5 * ka, add(first, second)), scale(ka, sub(second, first))
    first, second = column(hulls.vertex, hulls.edge[two, 0]), column(hulls.vertex, hulls.edge[two, 1])
    q = add(d, scale(0.5 * kb, matrix_vector(turn, add(first, second))))
    v = scale(kb, matrix_vector(turn, sub(second, first)))
    w = sub(p, q)
    uu, vv, uv = dot(u, u), dot(v, v), dot(u, v)
    t = (uv * dot(v, w) - vv * dot(u, w)) / max(uu * vv - uv * uv, 1e-300)
    return add(p, scale(min(max(t, -0.5), 0.5), u))


@func
def face_towards(h, n, hulls):
    """Of the faces at the corner of hull h that is farthest along n, the one that faces n most."""
    if hulls.box[h, 0] > 0.0:
        x, y, z = abs(n[0]), abs(n[1]), abs(n[2])
        axis = 0 if x >= y and x >= z else (1 if y >= z else 2)
        return hulls.face_start[h] + face_of(h, axis, n[axis] > 0.0, hulls)
    corner = column(hulls.vertex, farthest_along(hulls.vertex, hulls.vertex_start[h], hulls.vertex_start[h + 1], n))
    near = WITHIN * hulls.outer[h]
    best, face = -2.0, hulls.face_start[h]
    for f in range(hulls.face_start[h], hulls.face_start[h + 1]):
        m = column(hulls.normal, f)
        turned = dot(m, n)
        if turned > best and dot(m, corner) >= hulls.offset[f] - near:
            best, face = turned, f
    return face


@func
def edge_over_face(k, face, ke, e, turn, d, per_height, hulls, margin, work):
    """Ends of the part of edge e of b over `face` of a, written as in `common_outline`: how many of them are within the margin.

    Counted from the middle of the edge, so that it does not matter which end comes first.
    """
    first, second = column(hulls.vertex, hulls.edge[e, 0]), column(hulls.vertex, hulls.edge[e, 1])
    middle = add(d, scale(0.5 * ke, matrix_vector(turn, add(first, second))))
    along = scale(ke, matrix_vector(turn, sub(second, first)))
    n, height = column(hulls.normal, face), k * hulls.offset[face]
    low, high = -0.5, 0.5
    for side in range(hulls.loop_start[face], hulls.loop_start[face + 1]):
        m = column(hulls.side, side)
        inside = k * hulls.side_offset[side] + WITHIN * height - dot(m, middle)
        slope = dot(m, along)
        t = inside / slope if slope != 0.0 else (np.inf if inside >= 0.0 else -np.inf)
        high = min(high, t) if slope >= 0.0 else high
        low = max(low, t) if slope < 0.0 else low
    count = 0
    for end in range(2):
        x = add(middle, scale(low if end == 0 else high, along))
        gap = per_height * (dot(n, x) - height)
        if low <= high and gap <= margin:
            put(work, SCRATCH + 4 * count, x)
            work[SCRATCH + 4 * count + 3] = gap
            count += 1
    return count


@func
def box_size(h, k, hulls):
    """Half-widths (3,) [m] of box h at size factor k."""
    return (k * hulls.box[h, 0], k * hulls.box[h, 1], k * hulls.box[h, 2])


@func
def box_outline(xa, face, xb, other, turn, d, per_height, hulls, margin, work):
    """The same as `common_outline` for two boxes with half-widths xa, xb (3,) [m]: along the axes of a, that of the face last, face `other` is a
    parallelogram over a rectangle about zero."""
    n, m = column(hulls.normal, face), column(hulls.normal, other)
    axis = 0 if n[0] != 0.0 else (1 if n[1] != 0.0 else 2)
    sign, size = n[0] + n[1] + n[2], rolled(xa, axis)
    centre, back = rolled(d, axis), transposed(turn)
    x, y, z = (
        scale(xb[0], rolled(back[0], axis)),
        scale(xb[1], rolled(back[1], axis)),
        scale(xb[2], rolled(back[2], axis)),
    )
    here, there = SCRATCH, SCRATCH + 4 * 9
    # How far the face reaches, and how far that part of it which is within the margin.
    reach, part = (0.0, 0.0), (0.0, 0.0)
    for i in range(4):
        one, two = 1.0 if i == 0 or i == 3 else -1.0, 1.0 if i < 2 else -1.0
        sx = m[0] if m[0] != 0.0 else one
        sy = m[1] if m[1] != 0.0 else (one if m[0] != 0.0 else two)
        sz = m[2] if m[2] != 0.0 else two
        corner = add(centre, add(add(scale(sx, x), scale(sy, y)), scale(sz, z)))
        put(work, here + 4 * i, corner)
        work[np.uintp(here + 4 * i + 3)] = per_height * (sign * corner[2] - size[2])
        reach = wider(reach, corner)
    for i in range(4):
        p, q = here + 4 * i, here + 4 * (i + 1 if i < 3 else 0)
        gap, after = work[np.uintp(p + 3)], work[np.uintp(q + 3)]
        if gap <= margin:
            part = wider(part, get(work, p))
        if (gap <= margin) != (after <= margin):
            part = wider(
                part, add(get(work, p), scale((margin - gap) / (after - gap), sub(get(work, q), get(work, p))))
            )
    count = 4
    near = WITHIN * size[2]
    limit = (size[0] + near, size[1] + near)
    if part[0] > limit[0] or part[1] > limit[1]:
        # The worst is cut first: mirror images stay mirror images, as in `common_outline`.
        worst = 0 if reach[0] - limit[0] >= reach[1] - limit[1] else 1
        for turn_of in range(2):
            c = worst if turn_of == 0 else 1 - worst
            if (reach[0] if c == 0 else reach[1]) > (limit[0] if c == 0 else limit[1]):
                count = clip_both(c, limit[0] if c == 0 else limit[1], count, work, here, there)
                here, there = there, here
        if count > 4:
            count = drop_doubles(count, work, here, there)
            count = drop_straight(count, (0.0, 0.0, 1.0), work, there, here)
    count = keep_near(count, margin, work, here)
    for i in range(count):
        put(work, here + 4 * i, unrolled(get(work, here + 4 * i), axis))
    return here, count


@func
def wider(reach, x):
    """The larger of how far something reaches along two axes, and of x."""
    return (max(reach[0], abs(x[0])), max(reach[1], abs(x[1])))


@func
def clip_both(c, limit, count, work, here, there):
    """Cut the polygon of `count` corners off where component c is beyond limit or -limit; the rest is written to `there`."""
    kept = 0
    before = here + 4 * (count - 1)
    last = work[np.uintp(before + c)]
    for i in range(count):
        after = here + 4 * i
        now = work[np.uintp(after + c)]
        # Where it comes in on the way from one corner to the next, then where it goes out.
        if abs(last) > limit:
            side = math.copysign(limit, last)
            if abs(now) <= limit or now * last < 0.0:
                write_cut(before, after, c, side, work, there + 4 * kept)
                kept += 1
        if abs(now) > limit:
            side = math.copysign(limit, now)
            if abs(last) <= limit or now * last < 0.0:
                write_cut(before, after, c, side, work, there + 4 * kept)
                kept += 1
        else:
            copy_four(work, after, there + 4 * kept)
            kept += 1
        before, last = after, now
    return kept


@func
def write_cut(one, two, c, side, work, at):
    """Write the point between the corners at `one` and `two` whose component c is `side`: the same whichever comes first."""
    last, now = work[np.uintp(one + c)], work[np.uintp(two + c)]
    of_one, of_two = abs(now - side), abs(side - last)
    per_both = 1.0 / (of_one + of_two)
    for j in range(4):
        here = of_one * work[np.uintp(one + j)] + of_two * work[np.uintp(two + j)]
        work[np.uintp(at + j)] = side if j == c else per_both * here


@func
def spread(count, n, work, here):
    """Choose four of `count` points at `here` that keep the patch's width, the deepest first, and write them as the answer.

    The deepest, the farthest from it, and on either side of the line between these two the farthest.
    """
    first = 0
    for i in range(1, count):
        first = i if work[here + 4 * i + 3] < work[here + 4 * first + 3] else first
    p = get(work, here + 4 * first)
    if count > 4:
        most, second = -1.0, first
        for i in range(count):
            x = sub(get(work, here + 4 * i), p)
            far = dot(x, x)
            second = i if far > most else second
            most = max(most, far)
        across = cross(n, sub(get(work, here + 4 * second), p))
        low, high, third, fourth = 0.0, 0.0, -1, -1
        least = 1e-9 * most
        for i in range(count):
            far = dot(across, sub(get(work, here + 4 * i), p))
            if far > max(high, least):
                high, third = far, i
            if far < min(low, -least):
                low, fourth = far, i
        write_point(first, 0, work, here)
        write_point(second, 1, work, here)
        kept = 2
        if third >= 0:
            write_point(third, kept, work, here)
            kept += 1
        if fourth >= 0:
            write_point(fourth, kept, work, here)
            kept += 1
        return kept
    write_point(first, 0, work, here)
    kept = 1
    for i in range(count):
        if i != first:
            write_point(i, kept, work, here)
            kept += 1
    return kept


@func
def write_point(i, to, work, here):
    """Copy point i at `here` to the answer."""
    copy_four(work, here + 4 * i, POINT * to)

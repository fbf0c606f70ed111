"""The points where two convex polyhedra touch, once it is known which of their features do.

Two faces, or an edge and a face, touch in a patch: the face of one that lies over the face of the other, cut off at its outline, up to
four of its corners. Everything is as in `clast.narrow.polyhedron_polyhedron`.
"""

import numpy as np

from ..kernels.backend import func
from ..kernels.vec import add, cross, dot, matrix_vector, scale, sub, transposed
from .box_box import face_of
from .polyhedron_polyhedron import EDGE_EDGE, POINT, SCRATCH, VERTEX_FACE, column, farthest_along, get, highest, put

STEEP = 0.98  # cosine between a face and the normal of crossed edges below which the face is not looked at
CROSSING = 1e-6  # corners nearer to the crossing of two edges than this fraction of the size are the crossing
SAME = 1e-6  # corners nearer to each other than this fraction of the next side are one
STRAIGHT = 1e-6  # sine of the angle below which the outline of a patch does not turn at a corner
WITHIN = 1e-12  # what lies this fraction of the size outside an outline counts as inside


@func
def contact_points(ha, ka, hb, kb, turn, d, found, hulls, margin, work):
    """Write the points where the two touch, from what `separation` found, and return how many: 1 to 4.

    Each is on the surface of a; points farther apart than margin [m] are left out, the deepest never.
    """
    _, n, kind, one, two = found
    if kind == EDGE_EDGE:
        size = ka * hulls.outer[ha] + kb * hulls.outer[hb]
        count = edge_patch(ka, kb, turn, d, found, size, hulls, margin, work)
        edges = hulls.edge_start[hb + 1] - hulls.edge_start[hb]
        feature = 4 * ((one - hulls.edge_start[ha]) * edges + two - hulls.edge_start[hb]) + EDGE_EDGE
    elif one >= 0:
        face = hulls.face_start[ha] + one
        feature = 4 * one + VERTEX_FACE
        count = face_patch(ha, ka, face, hb, kb, turn, d, n, hulls, margin, work)
    else:
        back = transposed(turn)
        m, away = matrix_vector(back, n), matrix_vector(back, d)
        m, away = (-m[0], -m[1], -m[2]), (-away[0], -away[1], -away[2])
        face = hulls.face_start[hb] + two
        feature = 4 * (hulls.face_start[ha + 1] - hulls.face_start[ha] + two) + VERTEX_FACE
        count = face_patch(hb, kb, face, ha, ka, back, away, m, hulls, margin, work)
    for i in range(count):
        x = get(work, POINT * i)
        if kind == VERTEX_FACE and one < 0:
            put(work, POINT * i, add(d, matrix_vector(turn, x)))
        else:
            # The corners belong to b; a's surface is a gap away.
            put(work, POINT * i, sub(x, scale(work[POINT * i + 3], n)))
        put(work, POINT * i + 4, n)
        work[POINT * i + 7] = feature
    return count


@func
def edge_patch(ka, kb, turn, d, found, size, hulls, margin, work):
    """Points of b where an edge of it crosses an edge of a: where they cross, and if a face beside one of the edges is nearly at
    right angles to the normal, corners of what the face beside the other has over it. A box that lies on another a little
    askew is held as one that lies flat, and an edge that lies over a face is held at both ends, not now here, now there.
    """
    s, n, _, one, two = found
    crossing = add(nearest_of_edges(one, ka, two, kb, turn, d, hulls), scale(s, n))
    face, level = face_beside(one, n, hulls)
    back = transposed(turn)
    w = matrix_vector(back, n)
    other, back_level = face_beside(two, (-w[0], -w[1], -w[2]), hulls)
    here, kept = SCRATCH, 0
    if max(level, back_level) > STEEP:
        if level > STEEP:
            here, count = common_outline(ka, face, kb, other, turn, d, 1.0 / level, hulls, margin, work)
        else:
            away = matrix_vector(back, d)
            away = (-away[0], -away[1], -away[2])
            here, count = common_outline(kb, other, ka, face, back, away, 1.0 / back_level, hulls, margin, work)
            for i in range(count):
                # From points of a in the axes of b to points of b in the axes of a.
                x = add(d, matrix_vector(turn, get(work, here + 4 * i)))
                put(work, here + 4 * i, add(x, scale(work[here + 4 * i + 3], n)))
        near = CROSSING * size
        for i in range(count):
            x = sub(get(work, here + 4 * i), crossing)
            if dot(x, x) > near * near:
                copy_four(work, here + 4 * i, here + 4 * kept)
                # Nothing is deeper than the crossing; corners that are lie beside the face, seen along n.
                work[here + 4 * kept + 3] = max(work[here + 4 * kept + 3], s + 1e-9 * abs(s))
                kept += 1
    put(work, here + 4 * kept, crossing)
    work[here + 4 * kept + 3] = s
    return spread(kept + 1, n, work, here)


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
def face_patch(h, k, face, hb, kb, turn, d, n, hulls, margin, work):
    """Corners of the part of b's face that lies over `face` of hull h and not above it by more than the margin; at most 4.

    Everything in the axes of h, n being the normal of the face. Writes points of b and their gaps; returns how many, at
    least one.
    """
    w = matrix_vector(transposed(turn), n)
    back = (-w[0], -w[1], -w[2])
    other = face_towards(hb, back, hulls)
    here, count = common_outline(k, face, kb, other, turn, d, 1.0, hulls, margin, work)
    if count == 0:
        x = column(hulls.vertex, farthest_along(hulls.vertex, hulls.vertex_start[hb], hulls.vertex_start[hb + 1], back))
        x = add(d, scale(kb, matrix_vector(turn, x)))
        put(work, 0, x)
        work[3] = dot(n, x) - k * hulls.offset[face]
        return 1
    return spread(count, n, work, here)


@func
def common_outline(k, face, kb, other, turn, d, per_height, hulls, margin, work):
    """The part of face `other` of b over `face` of a: where in work its corners stand, and how many are within the margin.

    Four numbers each, point of b and gap: its height over the face times per_height.
    """
    start, end = hulls.loop_start[face], hulls.loop_start[face + 1]
    first, last = hulls.loop_start[other], hulls.loop_start[other + 1]
    here, there = SCRATCH, SCRATCH + 4 * (end - start + last - first + 1)
    n, height = column(hulls.normal, face), k * hulls.offset[face]
    count = 0
    for i in range(first, last):
        x = add(d, scale(kb, matrix_vector(turn, column(hulls.vertex, hulls.loop[i]))))
        put(work, here + 4 * count, x)
        work[here + 4 * count + 3] = per_height * (dot(n, x) - height)
        count += 1
    # How far the face sticks out over each side; the worst is cut first, so that where the count of sides begins has no
    # influence, not even on the last bit: mirror images stay mirror images.
    near = WITHIN * height
    beyond = there + 4 * (end - start + last - first + 1)
    for side in range(start, end):
        m, limit = column(hulls.side, side), k * hulls.side_offset[side] + near
        most = -1.0
        for i in range(count):
            most = max(most, dot(m, get(work, here + 4 * i)) - limit)
        work[beyond + side - start] = most
    while True:
        worst = highest(work, beyond, end - start)
        if not work[beyond + worst] > 0.0:
            break
        work[beyond + worst] = 0.0
        side = start + worst
        count = clip(column(hulls.side, side), k * hulls.side_offset[side] + near, count, work, here, there)
        here, there = there, here
    if count > 4:
        count = drop_doubles(count, work, here, there)
        count = drop_straight(count, n, work, there, here)
    kept = 0
    for i in range(count):
        if work[here + 4 * i + 3] <= margin:
            copy_four(work, here + 4 * i, here + 4 * kept)
            kept += 1
    return here, kept


@func
def drop_doubles(count, work, here, there):
    """Write the corners of the polygon to `there`, of two that coincide the one farther from the middle; how many stay."""
    kept = 0
    for i in range(count):
        x = get(work, here + 4 * i)
        before = get(work, here + 4 * (i - 1 if i > 0 else count - 1))
        after = get(work, here + 4 * (i + 1 if i + 1 < count else 0))
        u, v = sub(x, before), sub(after, x)
        uu, vv, own = dot(u, u), dot(v, v), dot(x, x)
        least = SAME * SAME * max(uu, vv)
        if not ((uu <= least and own < dot(before, before)) or (vv <= least and own <= dot(after, after))):
            copy_four(work, here + 4 * i, there + 4 * kept)
            kept += 1
    return kept


@func
def drop_straight(count, n, work, here, there):
    """Write the corners of the polygon at which it turns to `there`; returns how many.

    Where sides of both outlines lie on one line, rounding decides whether and where one cuts the other, and such points would
    change the patch from step to step. Each corner is judged by its neighbours as they are.
    """
    kept = 0
    for i in range(count):
        x = get(work, here + 4 * i)
        u = sub(x, get(work, here + 4 * (i - 1 if i > 0 else count - 1)))
        v = sub(get(work, here + 4 * (i + 1 if i + 1 < count else 0)), x)
        turning = dot(n, cross(u, v))
        if turning * turning > STRAIGHT * STRAIGHT * dot(u, u) * dot(v, v):
            copy_four(work, here + 4 * i, there + 4 * kept)
            kept += 1
    return kept


@func
def clip(m, limit, count, work, here, there):
    """Cut the polygon of `count` corners off where m . x is above the limit; the rest is written to `there`."""
    kept = 0
    before = count - 1
    last = dot(m, get(work, here + 4 * before)) - limit
    for i in range(count):
        now = dot(m, get(work, here + 4 * i)) - limit
        if (now > 0.0) != (last > 0.0):
            # From inside to outside, whichever comes first.
            inside, outside = (before, i) if now > 0.0 else (i, before)
            t = min(last, now) / (min(last, now) - max(last, now))
            for j in range(4):
                one, two = work[here + 4 * inside + j], work[here + 4 * outside + j]
                work[there + 4 * kept + j] = one + t * (two - one)
            kept += 1
        if now <= 0.0:
            copy_four(work, here + 4 * i, there + 4 * kept)
            kept += 1
        before, last = i, now
    return kept


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


@func
def copy_four(work, source, target):
    """Copy a point and its gap."""
    put(work, target, get(work, source))
    work[np.uintp(target + 3)] = work[np.uintp(source + 3)]

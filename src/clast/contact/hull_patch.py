"""The points where two convex polyhedra touch, once it is known which of their features do.

Two faces, or an edge and a face, touch in a patch: the face of one that lies over the face of the other, cut off at its outline, up to
four of its corners. Everything is as in `clast.contact.hull_pair`.
"""

from ..backend import func
from ..vec import add, cross, dot, matrix_vector, scale, sub, transposed
from .hull_box import face_of
from .hull_pair import EDGE_EDGE, POINT, SCRATCH, VERTEX_FACE, column, farthest_along, get, put

WITHIN = 1e-12  # what lies this fraction of the size outside an outline counts as inside


@func
def contact_points(ha, ka, hb, kb, turn, d, s, n, kind, one, two, hulls, margin, work):
    """Write the points where the two touch, from what `separation` found, and return how many: 1 to 4.

    Each is on the surface of a; points farther apart than margin [m] are left out, the deepest never.
    """
    if kind == EDGE_EDGE:
        edges = hulls.edge_start[hb + 1] - hulls.edge_start[hb]
        which = (one - hulls.edge_start[ha]) * edges + two - hulls.edge_start[hb]
        put(work, 0, nearest_of_edges(one, ka, two, kb, turn, d, hulls))
        work[3] = s
        put(work, 4, n)
        work[7] = 4 * which + EDGE_EDGE
        return 1
    faces_a = hulls.face_start[ha + 1] - hulls.face_start[ha]
    if one >= 0:
        count = face_patch(ha, ka, one, hb, kb, turn, d, n, hulls, margin, work)
        for i in range(count):
            # The corners belong to b; a's surface is a gap away.
            put(work, POINT * i, sub(get(work, POINT * i), scale(work[POINT * i + 3], n)))
    else:
        back = transposed(turn)
        away = matrix_vector(back, d)
        m = matrix_vector(back, n)
        m, away = (-m[0], -m[1], -m[2]), (-away[0], -away[1], -away[2])
        count = face_patch(hb, kb, two, ha, ka, back, away, m, hulls, margin, work)
        for i in range(count):
            put(work, POINT * i, add(d, matrix_vector(turn, get(work, POINT * i))))
    for i in range(count):
        put(work, POINT * i + 4, n)
        work[POINT * i + 7] = 4 * (one if one >= 0 else faces_a + two) + VERTEX_FACE
    return count


@func
def nearest_of_edges(one, ka, two, kb, turn, d, hulls):
    """The point of edge `one` of a that is nearest to the line of edge `two` of b (eqs. 4 and 5 of the paper)."""
    p = scale(ka, column(hulls.vertex, hulls.edge[one, 0]))
    u = sub(scale(ka, column(hulls.vertex, hulls.edge[one, 1])), p)
    first, second = column(hulls.vertex, hulls.edge[two, 0]), column(hulls.vertex, hulls.edge[two, 1])
    q = add(d, scale(kb, matrix_vector(turn, first)))
    v = scale(kb, matrix_vector(turn, sub(second, first)))
    w = sub(p, q)
    uu, vv, uv = dot(u, u), dot(v, v), dot(u, v)
    t = (uv * dot(v, w) - vv * dot(u, w)) / max(uu * vv - uv * uv, 1e-300)
    return add(p, scale(min(max(t, 0.0), 1.0), u))


@func
def face_towards(h, k, n, hulls):
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

    Everything in the axes of h. Writes points of b and their gaps; returns how many, at least one.
    """
    w = matrix_vector(transposed(turn), n)
    back = (-w[0], -w[1], -w[2])
    other = face_towards(hb, kb, back, hulls)
    here, there = (
        SCRATCH,
        SCRATCH
        + 4
        * (
            hulls.loop_start[face + 1 + hulls.face_start[h]]
            - hulls.loop_start[face + hulls.face_start[h]]
            + hulls.loop_start[other + 1]
            - hulls.loop_start[other]
        ),
    )
    height = k * hulls.offset[hulls.face_start[h] + face]
    count = 0
    for i in range(hulls.loop_start[other], hulls.loop_start[other + 1]):
        x = add(d, scale(kb, matrix_vector(turn, column(hulls.vertex, hulls.loop[i]))))
        put(work, here + 4 * count, x)
        work[here + 4 * count + 3] = dot(n, x) - height
        count += 1
    near = WITHIN * (k * hulls.outer[h] + kb * hulls.outer[hb])
    f = hulls.face_start[h] + face
    for side in range(hulls.loop_start[f], hulls.loop_start[f + 1]):
        m, limit = column(hulls.side, side), k * hulls.side_offset[side] + near
        outside = False
        for i in range(count):
            outside = outside or dot(m, get(work, here + 4 * i)) > limit
        if outside:
            count = clip(m, limit, count, work, here, there)
            here, there = there, here
    kept = 0
    for i in range(count):
        if work[here + 4 * i + 3] <= margin:
            for j in range(4):
                work[here + 4 * kept + j] = work[here + 4 * i + j]
            kept += 1
    if kept == 0:
        x = column(hulls.vertex, farthest_along(hulls.vertex, hulls.vertex_start[hb], hulls.vertex_start[hb + 1], back))
        x = add(d, scale(kb, matrix_vector(turn, x)))
        put(work, 0, x)
        work[3] = dot(n, x) - height
        return 1
    return spread(kept, n, work, here)


@func
def clip(m, limit, count, work, here, there):
    """Cut the polygon of `count` corners off where m . x is above the limit; the rest is written to `there`."""
    kept = 0
    before = count - 1
    last = dot(m, get(work, here + 4 * before)) - limit
    for i in range(count):
        now = dot(m, get(work, here + 4 * i)) - limit
        if (now > 0.0) != (last > 0.0):
            t = last / (last - now)
            for j in range(4):
                one, two = work[here + 4 * before + j], work[here + 4 * i + j]
                work[there + 4 * kept + j] = one + t * (two - one)
            kept += 1
        if now <= 0.0:
            for j in range(4):
                work[there + 4 * kept + j] = work[here + 4 * i + j]
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
    for j in range(4):
        work[POINT * to + j] = work[here + 4 * i + j]

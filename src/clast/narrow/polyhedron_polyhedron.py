"""Two convex polyhedra: the plane that parts them or the least way out, and the points where they touch.

The least translation that separates two overlapping polyhedra is at right angles to a face of one of them or to an edge
of each (Minkowski difference; Govender et al. 2015 search the same two types). All of these are considered, but most are ruled
out by a bound that costs one number per face: the height H of the other body's centre over it. A ball of radius
`inner` about that centre lies in the body, so no direction n can have a separation above n . (way to the centre) - inner.

Everything is in the axes of the first body, about its centre, in metres; `turn` (3,3) and d (3,) bring a corner v of the second,
at size factor k, to d + k turn v. `work` is one row r of room to write in: contact points first (`POINT`), then scratch.
"""

import math

import numpy as np

from ..kernels.backend import func, search
from ..kernels.vec import add, cross, dot, matrix_vector, scale, sub, transposed, unrotate
from .box_box import box_normal, edge_of, face_of, reach

VERTEX_FACE = 1  # types of contact: a feature number is 4 * (which feature) + type
EDGE_EDGE = 2

# Columns of a point in `work`: point (3), gap, normal (3), feature number; four points.
POINT = 8
EDGES = 32  # then the edges of the second body that are looked at together

# An edge-edge contact must be better than a face by this fraction of the size: the same answer, but parallel faces and edges
# that differ by rounding alone do not take turns.
FACE_FIRST = 1e-10
PARALLEL = 1e-12  # squared sine between two edges below which they have no common normal
CHUNK = 32  # edges of the second body at a time
STEP = np.uintp(CHUNK)
SCRATCH = EDGES + 13 * CHUNK
TINY = 1e-300
NEVER = -1e300


def work_width(hulls):
    """Columns of `work` that any pair of these hulls needs."""
    faces = int(np.diff(hulls.face_start).max(initial=0))
    edges = int(np.diff(hulls.edge_start).max(initial=0))
    corners = int(np.diff(hulls.loop_start).max(initial=0))
    return SCRATCH + 4 * faces + 2 * edges + 24 * (corners + 4)


@func
def column(table, i):
    """Column i of a (3,n) array as a vector."""
    k = np.uintp(i)
    return (table[0, k], table[1, k], table[2, k])


@search
def reach_along(vertex, first, last, n):
    """The largest n . v of the corners first to last."""
    most = also = -math.inf
    # Two at a time, because each comparison waits for the one before.
    for i in range(first, last - 1, 2):
        v, w = np.uintp(i), np.uintp(i + 1)
        one = n[0] * vertex[0, v] + n[1] * vertex[1, v] + n[2] * vertex[2, v]
        two = n[0] * vertex[0, w] + n[1] * vertex[1, w] + n[2] * vertex[2, w]
        most = one if one > most else most
        also = two if two > also else also
    v = np.uintp(last - 1)
    one = n[0] * vertex[0, v] + n[1] * vertex[1, v] + n[2] * vertex[2, v]
    most = one if one > most else most
    return most if most > also else also


@func
def farthest_along(vertex, first, last, n):
    """The corner with the largest n . v, the first of several."""
    most, corner, also, other = -math.inf, first, -math.inf, first
    # Two at a time, as above.
    for i in range(first, last - 1, 2):
        v, w = np.uintp(i), np.uintp(i + 1)
        one = n[0] * vertex[0, v] + n[1] * vertex[1, v] + n[2] * vertex[2, v]
        two = n[0] * vertex[0, w] + n[1] * vertex[1, w] + n[2] * vertex[2, w]
        corner = i if one > most else corner
        most = one if one > most else most
        other = i + 1 if two > also else other
        also = two if two > also else also
    if (last - first) % 2 == 1:
        v = np.uintp(last - 1)
        one = n[0] * vertex[0, v] + n[1] * vertex[1, v] + n[2] * vertex[2, v]
        corner = last - 1 if one > most else corner
        most = one if one > most else most
    return other if also > most or (also == most and other < corner) else corner


@search
def heights(normal, offset, first, count, k, d, work, at):
    """Write the height of the point d over `count` faces from `first` on to work from `at` on."""
    for i in range(count):
        f = np.uintp(first + i)
        work[np.uintp(at + i)] = d[0] * normal[0, f] + d[1] * normal[1, f] + d[2] * normal[2, f] - k * offset[f]


@func
def highest(work, at, count):
    """The first of the largest of `count` numbers from `at` on."""
    best, which, also, other = -math.inf, 0, -math.inf, 0
    # Two at a time, because each comparison waits for the one before.
    for i in range(0, count - 1, 2):
        one, two = work[np.uintp(at + i)], work[np.uintp(at + i + 1)]
        which = i if one > best else which
        best = one if one > best else best
        other = i + 1 if two > also else other
        also = two if two > also else also
    if count % 2 == 1:
        one = work[np.uintp(at + count - 1)]
        which = count - 1 if one > best else which
        best = one if one > best else best
    return other if also > best or (also == best and other < which) else which


@func
def list_high_edges(h, hulls, least, work, deep_at, at):
    """Write the edges of hull h of whose two faces one has a height above `least` at deep_at to work from `at` on; returns how many.

    Lists are made without branches, which the processor could not foresee.
    """
    start, count = hulls.face_start[h], 0
    for edge in range(hulls.edge_start[h], hulls.edge_start[h + 1]):
        e = np.uintp(edge)
        f, g = hulls.edge_face[e, 0] - start, hulls.edge_face[e, 1] - start
        work[np.uintp(at + count)] = edge
        count += 1 if max(work[np.uintp(deep_at + f)], work[np.uintp(deep_at + g)]) > least else 0
    return count


@func
def list_edges(h, hulls, better, inner, work, centre_at, deep_at, at):
    """Write the edges of hull h that may have a separation above `better` to work from `at` on; returns how many.

    No direction n has a separation above n . u - inner, u being the way from the edge to the other body's centre, nor above n . u
    with the way u to any of its points: a deep corner is taken. u . n is known for the normals of the two faces that meet
    at the edge, the heights at centre_at and deep_at; if `better` is not positive, one of the latter must be above it.
    """
    start = hulls.face_start[h]
    faces, bend = hulls.edge_face, hulls.edge_bend
    # First by the deep corner, which leaves few.
    some = list_high_edges(h, hulls, min(better, 0.0), work, deep_at, at)
    count = 0
    for i in range(some):
        e = np.uintp(work[np.uintp(at + i)])
        f, g = np.uintp(faces[e, 0] - start), np.uintp(faces[e, 1] - start)
        cosine, inverse = bend[e, 0], bend[e, 1]
        here, deep = np.uintp(centre_at), np.uintp(deep_at)
        near = above(work[here + f], work[here + g], cosine, inverse, better + inner)
        if better > 0.0:
            near = near & above(work[deep + f], work[deep + g], cosine, inverse, better)
        work[np.uintp(at + count)] = work[np.uintp(at + i)]
        count += 1 if near else 0
    return count


@func
def above(one, two, cosine, inverse, least):
    """Whether n . u is above `least` for some direction n between two normals, from u . normal of both and their angle.

    Either the projection of u lies between the normals, or one of them is the best.
    """
    between = (one > cosine * two) & (two > cosine * one)
    square = (one * one + two * two - 2.0 * cosine * one * two) * inverse
    return (between & (square > least * abs(least))) | (max(one, two) > least)


@search
def cross_edges(along, n0, n1, p, work, count):
    """Separations of one edge of a with `count` edges of b (`put_edge`), written behind them.

    along (3,), n0, n1 (3,), p (3,): the edge, the normals of its faces, its first corner. The two are a face of the Minkowski
    difference where their arcs of normals cross; elsewhere the separation is minus infinity. Selects and no branches: this is the
    innermost loop, and `count` is a multiple of four.
    """
    least = PARALLEL * (along[0] * along[0] + along[1] * along[1] + along[2] * along[2])
    for i in range(count):
        # Columns at a constant distance: the compiler sees that what is written is never read again.
        j = np.uintp(EDGES + i)
        ux, uy, uz = work[j + 3 * STEP], work[j + 4 * STEP], work[j + 5 * STEP]
        m0 = along[0] * work[j + 6 * STEP] + along[1] * work[j + 7 * STEP] + along[2] * work[j + 8 * STEP]
        m1 = along[0] * work[j + 9 * STEP] + along[1] * work[j + 10 * STEP] + along[2] * work[j + 11 * STEP]
        k0 = n0[0] * ux + n0[1] * uy + n0[2] * uz
        k1 = n1[0] * ux + n1[1] * uy + n1[2] * uz
        x = along[1] * uz - along[2] * uy
        y = along[2] * ux - along[0] * uz
        z = along[0] * uy - along[1] * ux
        square = x * x + y * y + z * z
        apart = x * (work[j] - p[0]) + y * (work[j + STEP] - p[1]) + z * (work[j + 2 * STEP] - p[2])
        # The common normal points out of a: to the side of n0 and n1.
        outward = x * (n0[0] + n1[0]) + y * (n0[1] + n1[1]) + z * (n0[2] + n1[2])
        apart = (apart if outward > 0.0 else -apart) / math.sqrt(square + TINY)
        crossing = (m0 * m1 < 0.0) & (k0 * k1 < 0.0) & (m0 * k1 < 0.0)
        wide = square > least * (ux * ux + uy * uy + uz * uz)
        work[j + 12 * STEP] = apart if crossing & wide else NEVER


@func
def face_separation(ha, ka, hb, kb, turn, d, hulls, limit, work):
    """The largest separation over the faces of both: (s, n, face of a or -1, face of b or -1).

    The search ends with the first above `limit`. In work from SCRATCH on stay, for every face of a, then of b, the height of the
    other's centre over it; then, in the same order, that of a deep corner of the other.
    """
    vertex, normal, offset = hulls.vertex, hulls.normal, hulls.offset
    a0, a1 = hulls.vertex_start[ha], hulls.vertex_start[ha + 1]
    b0, b1 = hulls.vertex_start[hb], hulls.vertex_start[hb + 1]
    first_a, first_b = hulls.face_start[ha], hulls.face_start[hb]
    faces_a, faces_b = hulls.face_start[ha + 1] - first_a, hulls.face_start[hb + 1] - first_b
    inner_a, inner_b = ka * hulls.inner[ha], kb * hulls.inner[hb]
    back = transposed(turn)
    away = matrix_vector(back, d)
    away = (-away[0], -away[1], -away[2])
    at_a, at_b = SCRATCH, SCRATCH + faces_a
    deep_at_a, deep_at_b = at_b + faces_b, at_b + faces_b + faces_a
    two = -1

    # Faces of a. The one that b's centre is highest above comes first; the corner of b that is deepest under it then rules
    # out most of the others, because no face can part the two by more than its height over that.
    heights(normal, offset, first_a, faces_a, ka, d, work, at_a)
    one = highest(work, at_a, faces_a)
    n = column(normal, first_a + one)
    w = matrix_vector(back, n)
    deep = farthest_along(vertex, b0, b1, (-w[0], -w[1], -w[2]))
    best = work[at_a + one] + kb * dot(w, column(vertex, deep))
    if best > limit:
        return best, n, one, two
    deep_b = add(d, scale(kb, matrix_vector(turn, column(vertex, deep))))
    heights(normal, offset, first_a, faces_a, ka, deep_b, work, deep_at_a)
    likely = one
    for f in range(faces_a):
        if f != likely and min(work[at_a + f] - inner_b, work[deep_at_a + f]) > best:
            m = column(normal, first_a + f)
            w = matrix_vector(back, m)
            s = work[at_a + f] - kb * reach_along(vertex, b0, b1, (-w[0], -w[1], -w[2]))
            if s > best:
                best, n, one = s, m, f
                if s > limit:
                    return best, n, one, two
    # Faces of b, in its own axes.
    better = best + FACE_FIRST * (ka * hulls.outer[ha] + kb * hulls.outer[hb])
    heights(normal, offset, first_b, faces_b, kb, away, work, at_b)
    likely = highest(work, at_b, faces_b)
    m = matrix_vector(turn, column(normal, first_b + likely))
    deep = farthest_along(vertex, a0, a1, (-m[0], -m[1], -m[2]))
    s = work[at_b + likely] + ka * dot(m, column(vertex, deep))
    if s > better:
        best, better, n, one, two = s, s, (-m[0], -m[1], -m[2]), -1, likely
        if s > limit:
            return best, n, one, two
    deep_a = add(away, scale(ka, matrix_vector(back, column(vertex, deep))))
    heights(normal, offset, first_b, faces_b, kb, deep_a, work, deep_at_b)
    for f in range(faces_b):
        if f != likely and min(work[at_b + f] - inner_a, work[deep_at_b + f]) > better:
            m = matrix_vector(turn, column(normal, first_b + f))
            s = work[at_b + f] - ka * reach_along(vertex, a0, a1, (-m[0], -m[1], -m[2]))
            if s > better:
                best, better, n, one, two = s, s, (-m[0], -m[1], -m[2]), -1, f
                if s > limit:
                    return best, n, one, two
    return best, n, one, two


@func
def separation(ha, ka, hb, kb, turn, d, hulls, limit, work):
    """The largest separation of the two over all faces and pairs of edges: (s, n, type, feature a, feature b).

    s [m] is negative where they overlap and then the least way out; positive, it is a lower bound of their distance, and the
    search ends with the first above `limit`. n (3,): unit, from a to b. type: VERTEX_FACE with the face (counted within its hull)
    as feature a, or as feature b if it belongs to b (the other is -1); EDGE_EDGE with both edges (rows of Hulls.edge).
    """
    tolerance = FACE_FIRST * (ka * hulls.outer[ha] + kb * hulls.outer[hb])
    best, n, one, two = face_separation(ha, ka, hb, kb, turn, d, hulls, limit, work)
    kind = VERTEX_FACE
    if best > limit:
        return best, n, kind, one, two
    # Pairs of edges whose arcs of normals cross; only these are faces of the Minkowski difference.
    vertex, normal = hulls.vertex, hulls.normal
    faces_a = hulls.face_start[ha + 1] - hulls.face_start[ha]
    faces = faces_a + hulls.face_start[hb + 1] - hulls.face_start[hb]
    better = best + tolerance
    list_a = SCRATCH + 2 * faces
    count_a = list_edges(ha, hulls, better, kb * hulls.inner[hb], work, SCRATCH, SCRATCH + faces, list_a)
    if count_a == 0:
        return best, n, kind, one, two
    list_b, at_b = list_a + count_a, SCRATCH + faces_a
    count_b = list_edges(hb, hulls, better, ka * hulls.inner[ha], work, at_b, at_b + faces, list_b)
    for block in range(0, count_b, CHUNK):
        used = min(CHUNK, count_b - block)
        padded = (used + 3) // 4 * 4  # what stands beyond `used` is never looked at
        for j in range(used):
            put_edge(int(work[list_b + block + j]), kb, turn, d, hulls, work, EDGES + j)
        for i in range(count_a):
            e = int(work[list_a + i])
            p = column(vertex, hulls.edge[e, 0])
            along = sub(column(vertex, hulls.edge[e, 1]), p)
            n0, n1 = column(normal, hulls.edge_face[e, 0]), column(normal, hulls.edge_face[e, 1])
            cross_edges(along, n0, n1, scale(ka, p), work, padded)
            s, found = better, -1
            for j in range(used):
                here = work[np.uintp(EDGES + 12 * CHUNK + j)]
                found = j if here > s else found
                s = here if here > s else s
            if found >= 0:
                m = cross(along, get_edge(work, EDGES + found + 3 * CHUNK))
                n = scale((1.0 if dot(m, add(n0, n1)) > 0.0 else -1.0) / math.sqrt(dot(m, m)), m)
                best, better, kind, one, two = s, s, EDGE_EDGE, e, int(work[list_b + block + found])
                if best > limit:
                    return best, n, kind, one, two
    return best, n, kind, one, two


@func
def boxes_apart(ha, hb, turn, d, s, axes, hulls):
    """The same as `separation` for two boxes, from what `part_boxes` found of them: s [m] and axes."""
    n, i, j = box_normal(axes, turn, d)
    kind, one, two = VERTEX_FACE, -1, -1
    w = matrix_vector(transposed(turn), n)
    if i >= 0 and j >= 0:
        kind, one, two = EDGE_EDGE, edge_of(ha, i, n, hulls), edge_of(hb, j, (-w[0], -w[1], -w[2]), hulls)
    elif i >= 0:
        one = face_of(ha, i, n[i] > 0.0, hulls)
    else:
        two = face_of(hb, j, w[j] < 0.0, hulls)
    return s, n, kind, one, two


@func
def put_edge(e, k, turn, d, hulls, work, at):
    """Write edge e of b in the axes of a: its first corner, its direction, the normals of its faces, one number every CHUNK."""
    v = column(hulls.vertex, hulls.edge[e, 0])
    start = add(d, scale(k, matrix_vector(turn, v)))
    along = matrix_vector(turn, sub(column(hulls.vertex, hulls.edge[e, 1]), v))
    m0 = matrix_vector(turn, column(hulls.normal, hulls.edge_face[e, 0]))
    m1 = matrix_vector(turn, column(hulls.normal, hulls.edge_face[e, 1]))
    for i in range(3):
        work[at + i * CHUNK] = start[i]
        work[at + (3 + i) * CHUNK] = along[i]
        work[at + (6 + i) * CHUNK] = m0[i]
        work[at + (9 + i) * CHUNK] = m1[i]


@func
def get_edge(work, at):
    """Read a vector that `put_edge` wrote."""
    return (work[at], work[at + CHUNK], work[at + 2 * CHUNK])


# Places are counted in unsigned numbers, which numba does not test for being negative.
ONE = np.uintp(1)
TWO = np.uintp(2)


@func
def put(work, at, v):
    """Write a vector."""
    i = np.uintp(at)
    work[i], work[i + ONE], work[i + TWO] = v


@func
def get(work, at):
    """Read a vector."""
    i = np.uintp(at)
    return (work[i], work[i + ONE], work[i + TWO])


@func
def support(h, k, n, hulls):
    """How far polyhedron h at size factor k reaches from its centre along n [m], n in its own axes."""
    if hulls.box[h, 0] > 0.0:
        return k * reach((hulls.box[h, 0], hulls.box[h, 1], hulls.box[h, 2]), n[0], n[1], n[2])
    return k * reach_along(hulls.vertex, hulls.vertex_start[h], hulls.vertex_start[h + 1], n)


@func
def parted(ha, ka, qa, hb, kb, qb, d, n, hulls):
    """Whether the plane at right angles to n parts the two for certain; never for n = 0.

    n and d (3,), from centre to centre, in the axes of the world; qa, qb: orientations.
    """
    u, w = unrotate(qa, n), unrotate(qb, n)
    both = support(ha, ka, u, hulls) + support(hb, kb, (-w[0], -w[1], -w[2]), hulls)
    return dot(n, d) * (1.0 - 1e-12) > both

"""The distance of two convex polyhedra that do not overlap, with a proof: Gilbert, Johnson and Keerthi's method.

Everything in the axes of A about its centre. A corner of A is ka * vertex, one of B is d + kb * (turn @ vertex). All
differences of a corner of B and one of A span a convex body, and its point v nearest to the origin is what is wanted.
It is found from above: the nearest point of a simplex of at most four such differences, each with λ >= 0, has a length
that is never below the distance. And from below: for every unit n the extent between both bodies along n is never above
it. Where the two do not meet within CERTAIN of the size, every pair of features is measured instead.

A point of a simplex is (x, y, z, i, j): the difference [m] and the corners of A and B (columns of `Hulls.vertex`).
"""

import math

from ..kernels.backend import func, part
from ..kernels.vec import add, cross, dot, matrix_vector, norm, normalize, scale, sub

STEPS = 100  # of ten million pairs of up to 400 faces none took more than 23; two were left without a proof
CERTAIN = 1e-11  # of the size of the bodies: bounds nearer to each other than this prove the distance
CONTAINED = 1e-13  # of the size of the bodies: a simplex this near to the origin proves that they touch
ROUNDING = 2e-16  # of size and distance: bounds nearer to each other than this cannot be brought nearer
NOISE = 2e-15  # of size and distance: what rounding may add to the difference of the bounds
FLAT = 1e-28  # square of the sine below which two edges have no normal of their own
FAR = 1e300


@func
def corner_a(hulls, i, ka):
    """Corner i of A [m]."""
    return (ka * hulls.vertex[0, i], ka * hulls.vertex[1, i], ka * hulls.vertex[2, i])


@func
def corner_b(hulls, j, kb, turn, d):
    """Corner j of B [m]."""
    v = matrix_vector(turn, (hulls.vertex[0, j], hulls.vertex[1, j], hulls.vertex[2, j]))
    return (d[0] + kb * v[0], d[1] + kb * v[1], d[2] + kb * v[2])


@func
def turned_back(turn, v):
    """v from the axes of A into those of B: the columns of turn times v."""
    return (
        turn[0][0] * v[0] + turn[1][0] * v[1] + turn[2][0] * v[2],
        turn[0][1] * v[0] + turn[1][1] * v[1] + turn[2][1] * v[2],
        turn[0][2] * v[0] + turn[1][2] * v[1] + turn[2][2] * v[2],
    )


@part
def farthest_corner(hulls, h, u):
    """The corner of hull h that is farthest along u, in the hull's axes; the lowest of those equally far."""
    first, last = hulls.vertex_start[h], hulls.vertex_start[h + 1]
    best, most = first, -FAR
    for i in range(first, last):
        height = u[0] * hulls.vertex[0, i] + u[1] * hulls.vertex[1, i] + u[2] * hulls.vertex[2, i]
        if height > most:
            best, most = i, height
    return best


@func
def outermost(ha, ka, hb, kb, turn, d, hulls, n):
    """The difference that is farthest against n, as a point of a simplex; its part along n is the extent between both."""
    i = farthest_corner(hulls, ha, n)
    back = turned_back(turn, n)
    j = farthest_corner(hulls, hb, (-back[0], -back[1], -back[2]))
    p = sub(corner_b(hulls, j, kb, turn, d), corner_a(hulls, i, ka))
    return (p[0], p[1], p[2], i, j)


@func
def nearest_on_segment(p, q):
    """Distance of the origin from the segment pq, unit direction to the nearest point (or zero), and its λ for p, q."""
    e = sub(q, p)
    square = dot(e, e)
    t = -dot(p, e) / (square if square > 0.0 else 1.0)
    t = min(max(t, 0.0), 1.0)
    v = (p[0] + t * e[0], p[1] + t * e[1], p[2] + t * e[2])
    if t == 1.0:
        v = (q[0], q[1], q[2])
    elif t > 0.0:
        # What rounding has left along the edge would tilt a short v.
        v = sub(v, scale(dot(v, e) / square, e))
    return norm(v), normalize(v), 1.0 - t, t


@part
def nearest_on_triangle(p, q, r):
    """Distance of the origin from the triangle pqr, unit direction to the nearest point, and its λ for p, q, r."""
    pq, qr, rp = sub(q, p), sub(r, q), sub(p, r)
    m = cross(pq, qr)
    square = dot(m, m)
    if square > FLAT * dot(pq, pq) * dot(qr, qr):
        a, b, c = dot(m, cross(q, qr)), dot(m, cross(r, rp)), dot(m, cross(p, pq))
        if a > 0.0 and b > 0.0 and c > 0.0:
            total = 1.0 / (a + b + c)
            a, b, c = a * total, b * total, c * total
            v = mixed(a, p, b, q, c, r)
            # The normal of the triangle does not suffer from a short v.
            side = 1.0 if dot(m, v) >= 0.0 else -1.0
            return norm(v), scale(side / math.sqrt(square), m), a, b, c
    best, n, a, b = nearest_on_segment(p, q)
    c = 0.0
    other, n1, s, t = nearest_on_segment(q, r)
    if other < best:
        best, n, a, b, c = other, n1, 0.0, s, t
    other, n1, s, t = nearest_on_segment(r, p)
    if other < best:
        best, n, a, b, c = other, n1, t, 0.0, s
    return best, n, a, b, c


@func
def mixed(a, p, b, q, c, r):
    """a p + b q + c r."""
    return (
        a * p[0] + b * q[0] + c * r[0],
        a * p[1] + b * q[1] + c * r[1],
        a * p[2] + b * q[2] + c * r[2],
    )


@func
def enclosed(p, q, r, s, small):
    """Whether the tetrahedron pqrs has a point nearer to the origin than small, proven by its λ."""
    rs, pq = cross(r, s), cross(p, q)
    a, b, c, e = dot(q, rs), -dot(p, rs), dot(s, pq), -dot(r, pq)
    total = a + b + c + e
    inverse = 1.0 / (total if total != 0.0 else 1.0)
    a, b, c, e = a * inverse, b * inverse, c * inverse, e * inverse
    v = add(mixed(a, p, b, q, c, r), (e * s[0], e * s[1], e * s[2]))
    return min(a, b, c, e) >= 0.0 and total != 0.0 and norm(v) <= small


@part
def nearest_on_simplex(w, count, p, q, r, small):
    """Distance of the origin from the simplex of w and the first `count` of p, q, r, the direction to the nearest point,
    its λ, and the second and third corner they belong to; the first is w.

    Only what meets at w is looked at: the rest was left behind when w was found. Zero where the origin is inside.
    """
    if count == 1:
        best, n, a, b = nearest_on_segment(w, p)
        return best, n, a, b, 0.0, p, p
    best, n, a, b, c = nearest_on_triangle(w, p, q)
    second, third = p, q
    if count == 3:
        for k in range(2):
            x = p if k == 0 else q
            other, n1, a1, b1, c1 = nearest_on_triangle(w, x, r)
            if other < best:
                best, n, a, b, c, second, third = other, n1, a1, b1, c1, x, r
        if enclosed(w, p, q, r, small):
            best = 0.0
    return best, n, a, b, c, second, third


@func
def known(w, count, p, q, r):
    """Whether w is one of the first `count` points p, q, r."""
    return (
        (w[3] == p[3] and w[4] == p[4])
        or (count > 1 and w[3] == q[3] and w[4] == q[4])
        or (count > 2 and w[3] == r[3] and w[4] == r[4])
    )


@func
def without_zeros(a, b, c, p, q, r):
    """Corners and λ of a triangle with those of λ = 0 last, and how many are not."""
    if b == 0.0:
        b, c, q, r = c, b, r, q
    if a == 0.0:
        a, b, c, p, q, r = b, c, a, q, r, p
    count = (1 if a > 0.0 else 0) + (1 if b > 0.0 else 0) + (1 if c > 0.0 else 0)
    return count, a, b, c, p, q, r


@func
def load_column(table, i):
    """Column i of a (3,n) table as a vector."""
    return (table[0, i], table[1, i], table[2, i])


@func
def above_face(hulls, f, x):
    """Height of x over face f, at size factor 1; negative if x is not above the face itself."""
    height = dot(load_column(hulls.normal, f), x) - hulls.offset[f]
    for k in range(hulls.loop_start[f], hulls.loop_start[f + 1]):
        if dot(load_column(hulls.side, k), x) > hulls.side_offset[k]:
            height = -1.0
    return height


@func
def inside_part(hulls, h, x, y):
    """Whether some of the segment xy, at size factor 1, is inside hull h."""
    enter, leave = 0.0, 1.0
    for f in range(hulls.face_start[h], hulls.face_start[h + 1]):
        n = load_column(hulls.normal, f)
        begin, end = dot(n, x) - hulls.offset[f], dot(n, y) - hulls.offset[f]
        if begin > 0.0 and end > 0.0:
            return False
        if begin > 0.0:
            enter = max(enter, begin / (begin - end))
        elif end > 0.0:
            leave = min(leave, begin / (begin - end))
    return enter <= leave


@func
def place_on(p, e, x):
    """Where on the segment from p along e the point nearest to x is, 0 to 1."""
    return min(max(dot(sub(x, p), e) / dot(e, e), 0.0), 1.0)


@part
def nearest_of_edges(p, p1, q, q1):
    """Distance of the segments p p1 and q q1, unit direction from the first to the second, nearest point of the first."""
    e, f, r = sub(p1, p), sub(q1, q), sub(q, p)
    # One of the nearest points is an end,
    best, n, _, _ = nearest_on_segment(r, sub(q1, p))
    foot = p
    other, n1, _, _ = nearest_on_segment(sub(q, p1), sub(q1, p1))
    if other < best:
        best, n, foot = other, n1, p1
    for k in range(2):
        end = q if k == 0 else q1
        s = place_on(p, e, end)
        x = add(p, scale(s, e))
        v = sub(end, x)
        if norm(v) < best:
            best, n, foot = norm(v), normalize(v), x
    # or the edges cross. Of nearly parallel ones s is uncertain; with the t that belongs to it the distance is not.
    m = cross(e, f)
    square = dot(m, m)
    if square > FLAT * dot(e, e) * dot(f, f):
        s = min(max(dot(cross(r, f), m) / square, 0.0), 1.0)
        x = add(p, scale(s, e))
        t = place_on(q, f, x)
        v = sub(add(q, scale(t, f)), x)
        gap = norm(v)
        if gap < best:
            best, n, foot = gap, normalize(v), x
            # Between the ends v is along m; which of the two is more exact depends on the distance and the angle.
            if min(s, t) > 0.0 and max(s, t) < 1.0 and square > gap * gap * max(dot(e, e), dot(f, f)):
                n = scale((1.0 if dot(m, v) >= 0.0 else -1.0) / math.sqrt(square), m)
    return best, n, foot


@part
def distance_by_features(ha, ka, hb, kb, turn, d, hulls, start):
    """Distance, n and nearest point of A as in `hull_distance`, from all corners with faces and edges with edges; and
    whether an edge of one body reaches into the other, when n is start.

    Of two normals that belong to the same distance, the one along which the bodies are farther apart is taken: the
    direction between two points that nearly coincide is mostly rounding.
    """
    back = turned_back(turn, d)
    low, n, foot = FAR, start, (0.0, 0.0, 0.0)
    for f in range(hulls.face_start[ha], hulls.face_start[ha + 1]):
        for j in range(hulls.vertex_start[hb], hulls.vertex_start[hb + 1]):
            x = corner_b(hulls, j, kb, turn, d)
            gap = ka * above_face(hulls, f, scale(1.0 / ka, x))
            if 0.0 <= gap < low:
                low, n = gap, load_column(hulls.normal, f)
                foot = sub(x, scale(gap, n))
    for f in range(hulls.face_start[hb], hulls.face_start[hb + 1]):
        for i in range(hulls.vertex_start[ha], hulls.vertex_start[ha + 1]):
            x = corner_a(hulls, i, ka)
            gap = kb * above_face(hulls, f, scale(1.0 / kb, sub(turned_back(turn, x), back)))
            if 0.0 <= gap < low:
                low, n = gap, scale(-1.0, matrix_vector(turn, load_column(hulls.normal, f)))
                foot = x
    touch = False
    for i in range(hulls.edge_start[ha], hulls.edge_start[ha + 1]):
        p, p1 = corner_a(hulls, hulls.edge[i, 0], ka), corner_a(hulls, hulls.edge[i, 1], ka)
        x = scale(1.0 / kb, sub(turned_back(turn, p), back))
        y = scale(1.0 / kb, sub(turned_back(turn, p1), back))
        touch = touch or inside_part(hulls, hb, x, y)
        for j in range(hulls.edge_start[hb], hulls.edge_start[hb + 1]):
            q = corner_b(hulls, hulls.edge[j, 0], kb, turn, d)
            q1 = corner_b(hulls, hulls.edge[j, 1], kb, turn, d)
            gap, n1, foot1 = nearest_of_edges(p, p1, q, q1)
            if gap < low:
                low, n, foot = gap, n1, foot1
    for j in range(hulls.edge_start[hb], hulls.edge_start[hb + 1]):
        q = scale(1.0 / ka, corner_b(hulls, hulls.edge[j, 0], kb, turn, d))
        q1 = scale(1.0 / ka, corner_b(hulls, hulls.edge[j, 1], kb, turn, d))
        touch = touch or inside_part(hulls, ha, q, q1)
    along = dot(n, outermost(ha, ka, hb, kb, turn, d, hulls, n))
    if along < dot(start, outermost(ha, ka, hb, kb, turn, d, hulls, start)):
        n = start
    return low, n, foot, touch


@part
def descend(ha, ka, hb, kb, turn, d, hulls, start):
    """Bounds of the distance from above and below, n and the point of A that belong to them, and whether A and B touch.

    The bound from below is the extent along n; n is the best of all directions that were tried, `start` among them.
    """
    size = ka * hulls.outer[ha] + kb * hulls.outer[hb]
    p = outermost(ha, ka, hb, kb, turn, d, hulls, start)
    low, n = dot(start, p), start
    q, r = p, p
    count, a, b, c = 1, 1.0, 0.0, 0.0
    high, ahead = norm(p), normalize(p)
    touch = high <= CONTAINED * size
    rounding = ROUNDING * (size + norm(d))
    for _ in range(STEPS):
        if touch:
            break
        w = outermost(ha, ka, hb, kb, turn, d, hulls, ahead)
        extent = dot(ahead, w)
        if extent > low:
            low, n = extent, ahead
        if known(w, count, p, q, r) or high - extent <= rounding:
            break
        nearer, turned, a1, b1, c1, q1, r1 = nearest_on_simplex(w, count, p, q, r, CONTAINED * size)
        if not nearer < high:
            break
        high, ahead = nearer, turned
        count, a, b, c, p, q, r = without_zeros(a1, b1, c1, w, q1, r1)
        touch = high <= CONTAINED * size
    foot = mixed(a, corner_a(hulls, p[3], ka), b, corner_a(hulls, q[3], ka), c, corner_a(hulls, r[3], ka))
    return high, low, n, foot, touch


@part
def hull_distance(ha, ka, hb, kb, turn, d, hulls, start):
    """Distance [m] of hulls ha and hb (rows of Hulls, size factors ka, kb), unit normal n from A to B, nearest point of A.

    turn: three rows, from the axes of B into those of A; d (3,) [m]: from the centre of A to that of B, in the axes of A;
    start (3,): unit, the best direction known so far from A to B. The point is in the axes of A, relative to its centre.
    Bodies that touch or overlap have a gap <= 0: the extent between them along n, the best direction that was tried.
    The gap is exact to rounding; n, and the point over the gap, may be off by the root of rounding, 2e-8.
    """
    size = ka * hulls.outer[ha] + kb * hulls.outer[hb]
    high, low, n, foot, touch = descend(ha, ka, hb, kb, turn, d, hulls, start)
    if not touch and high - max(low, 0.0) > CERTAIN * size + NOISE * norm(d):
        high, n, foot, touch = distance_by_features(ha, ka, hb, kb, turn, d, hulls, n)
    if touch:
        high = min(dot(n, outermost(ha, ka, hb, kb, turn, d, hulls, n)), 0.0)
    return high, n, foot

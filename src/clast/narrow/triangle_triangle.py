"""The distance of two triangles and the points where they are nearest, by measuring all pairs of their features.

Triangle A has corners a0 a1 a2, B has b0 b1 b2. Where the triangles do not cross, the shortest way runs between two edges
or between a corner and the inside of a face: nine and six cases. Where they cross, an edge of one pierces the other,
and the distance is zero.

The cases are selects between values that are computed on both sides, without a branch, so that a loop over them becomes
vector instructions. All points that are compared lie on both triangles, so no answer is ever too small; what rounding
can do is to miss the best point. That is why lines and faces are measured at right angles to one edge: what is left of
a vector without its part along the edge is exact to rounding of the coordinates, also for edges that are all but
parallel and for slivers, where the usual normal equations lose half the digits.
"""

from ..kernels.backend import fused, part

FAR = 1e300
TINY = 1e-300  # keeps what is divided by from being zero; far below the square of any length
TOUCHING = 1e-28  # square distance, of the squares of edges, below which p - q has no direction
# Square of the sine at corner 0 below which a face has no normal of its own; its edges are then as good as the face.
FLAT = 1e-26


@fused
def cut(x):
    """x, not below 0 and not above 1."""
    x = x if x > 0.0 else 0.0
    return x if x < 1.0 else 1.0


@fused
def inner(a, b):
    """Scalar product; fused."""
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


@fused
def outer(a, b):
    """Vector product; fused."""
    return (a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0])


@fused
def less(a, b):
    """a - b."""
    return (a[0] - b[0], a[1] - b[1], a[2] - b[2])


@fused
def along(a, s, u):
    """a + s u; fused."""
    return (a[0] + s * u[0], a[1] + s * u[1], a[2] + s * u[2])


@fused
def choose(first, a, b):
    """The vector a if first, else b."""
    return (a[0] if first else b[0], a[1] if first else b[1], a[2] if first else b[2])


@fused
def nearer(one, other):
    """The nearer of two candidates (square distance, two vectors); the second only if it is strictly nearer."""
    near = other[0] < one[0]
    return ((other[0] if near else one[0]), choose(near, other[1], one[1]), choose(near, other[2], one[2]))


@fused
def inverse_square(u):
    """1 / u.u [1/m^2], large for u = 0."""
    return 1.0 / (inner(u, u) + TINY)


@fused
def beside_edge(w, u, over):
    """Where the point w [m] is, seen from an edge that begins at the origin: x along it (1 at its end), and the rest of w."""
    x = inner(w, u) * over
    return x, along(w, -x, u)


@fused
def edge_edges(a, u, uu, b0, b1, b2, v0, v1, v2, vv0, vv1, vv2):
    """The nearest of the three edges of B to the edge a + s u of A: (square distance, point of A, from there to B).

    v0 v1 v2 [m] are the edges of B that begin at b0 b1 b2; uu and vv [1/m^2] the inverse squares of lengths. The three run
    side by side, because a chain of results that wait for each other leaves a processor idle. Also returns where
    the corners of B are beside the edge, see `beside_edge`.
    """
    w0, w1, w2 = less(b0, a), less(b1, a), less(b2, a)
    (x0, g0), (x1, g1), (x2, g2) = beside_edge(w0, u, uu), beside_edge(w1, u, uu), beside_edge(w2, u, uu)
    # Seen along u: where the edges of B pass nearest to the line; from there the nearest point of the edge of A, and from
    # that the nearest of the edge of B. Of parallel edges the choice begins at the start of the second.
    e0, e1, e2 = less(g1, g0), less(g2, g1), less(g0, g2)
    n0, n1, n2 = -inner(g0, e0), -inner(g1, e1), -inner(g2, e2)
    m0, m1, m2 = inner(e0, e0) + TINY, inner(e1, e1) + TINY, inner(e2, e2) + TINY
    t0, t1, t2 = cut(n0 / m0), cut(n1 / m1), cut(n2 / m2)
    s0, s1, s2 = cut(x0 + t0 * (x1 - x0)), cut(x1 + t1 * (x2 - x1)), cut(x2 + t2 * (x0 - x2))
    r0, r1, r2 = along(w0, -s0, u), along(w1, -s1, u), along(w2, -s2, u)
    t0, t1, t2 = cut(-inner(r0, v0) * vv0), cut(-inner(r1, v1) * vv1), cut(-inner(r2, v2) * vv2)
    d0, d1, d2 = along(r0, t0, v0), along(r1, t1, v1), along(r2, t2, v2)
    q0, q1, q2 = inner(d0, d0), inner(d1, d1), inner(d2, d2)
    near = q1 < q0
    q0, s0, d0 = (q1 if near else q0), (s1 if near else s0), choose(near, d1, d0)
    near = q2 < q0
    q0, s0, d0 = (q2 if near else q0), (s2 if near else s0), choose(near, d2, d0)
    return (q0, along(a, s0, u), d0), (x0, g0, x1, g1, x2, g2)


@fused
def above_face(x, g, f, over, slant, corner, best):
    """The corner as a candidate (square distance, corner, from the face to it), if it is above the inside of the face.

    x, g: where it is beside the edge of the face that begins at corner 0; slant and f: where corner 2 is; over: the inverse
    square of f.
    """
    y = inner(g, f) * over
    s = x - slant * y
    d = along(g, -y, f)
    square = inner(d, d)
    near = (y >= 0.0) & (s >= 0.0) & (s + y <= 1.0) & (square < best[0])
    return (square if near else best[0]), choose(near, corner, best[1]), choose(near, d, best[2])


@fused
def above_corners(places, u, v, uu, c0, c1, c2, best):
    """The best of three corners above a face and what was there."""
    x0, g0, x1, g1, x2, g2 = places
    slant, f = beside_edge(v, u, uu)
    over = inverse_square(f)
    best = above_face(x0, g0, f, over, slant, c0, best)
    best = above_face(x1, g1, f, over, slant, c1, best)
    return above_face(x2, g2, f, over, slant, c2, best)


@fused
def features(a0, a1, a2, b0, b1, b2):
    """The nearest pair of features: square distance [m^2], points p and q [m], and whether the triangles may cross.

    They cannot where a plane at right angles to p - q goes between them.
    """
    u0, u1, u2 = less(a1, a0), less(a2, a1), less(a0, a2)
    v0, v1, v2 = less(b1, b0), less(b2, b1), less(b0, b2)
    uu0, uu1, uu2 = inverse_square(u0), inverse_square(u1), inverse_square(u2)
    vv0, vv1, vv2 = inverse_square(v0), inverse_square(v1), inverse_square(v2)
    best, places = edge_edges(a0, u0, uu0, b0, b1, b2, v0, v1, v2, vv0, vv1, vv2)
    other, _ = edge_edges(a1, u1, uu1, b0, b1, b2, v0, v1, v2, vv0, vv1, vv2)
    best = nearer(best, other)
    other, _ = edge_edges(a2, u2, uu2, b0, b1, b2, v0, v1, v2, vv0, vv1, vv2)
    square, p, d = nearer(best, other)
    # Corners of B above the face of A, where q is the corner and p is below it.
    square, q, d = above_corners(places, u0, less(a2, a0), uu0, b0, b1, b2, (square, along(p, 1.0, d), d))
    x0, g0 = beside_edge(less(a0, b0), v0, vv0)
    x1, g1 = beside_edge(less(a1, b0), v0, vv0)
    x2, g2 = beside_edge(less(a2, b0), v0, vv0)
    # Corners of A above the face of B: p is the corner, and the way goes from q to p.
    back = (square, less(q, d), (-d[0], -d[1], -d[2]))
    square, p, d = above_corners((x0, g0, x1, g1, x2, g2), v0, less(b2, b0), vv0, a0, a1, a2, back)
    # How far A is from B along that way, times its length: the nearest corner of A and the farthest of B, from a0.
    near = min(min(inner(d, u0), -inner(d, u2)), 0.0)
    far = max(max(inner(d, less(b0, a0)), inner(d, less(b1, a0))), inner(d, less(b2, a0)))
    size = inner(u0, u0) + inner(u2, u2) + inner(v0, v0) + inner(v2, v2)
    return square, p, less(p, d), (near <= far) | (square <= TOUCHING * size)


@fused
def pierce(start, v, hi, hj, u, uu, f, over, slant, first, total):
    """Sum of the points where edges pierce faces and their number, with that of the edge start + r v, if it does.

    start [m] from corner 0 of the face, hi and hj: heights of the two ends above it, first [m] corner 0 of the face. Whether
    the point is inside is asked of the point itself as it is rounded: of an edge almost in the plane r is uncertain.
    """
    c = along(start, hi / (hi - hj + TINY), v)
    x, g = beside_edge(c, u, uu)
    y = inner(g, f) * over
    s = x - slant * y
    through = ((hi > 0.0) != (hj > 0.0)) & (y >= 0.0) & (s >= 0.0) & (s + y <= 1.0)
    return (
        total[0] + (first[0] + c[0] if through else 0.0),
        total[1] + (first[1] + c[1] if through else 0.0),
        total[2] + (first[2] + c[2] if through else 0.0),
        total[3] + (1.0 if through else 0.0),
    )


@fused
def pierce_face(t0, t1, t2, c0, c1, c2, first, total):
    """`pierce` for the three edges of the triangle c and the face t; first [m]: its corner 0 from where points are counted."""
    u, v = less(t1, t0), less(t2, t0)
    uu = inverse_square(u)
    slant, f = beside_edge(v, u, uu)
    square = inner(f, f)
    over = 1.0 / (square + TINY)
    # Of a sliver u x v is only roughly at right angles to u, and a plane that tilts misses what is far along u.
    n = outer(u, f)
    n = n if square > FLAT * inner(v, v) else (0.0, 0.0, 0.0)
    w0, w1, w2 = less(c0, t0), less(c1, t0), less(c2, t0)
    h0, h1, h2 = inner(w0, n), inner(w1, n), inner(w2, n)
    total = pierce(w0, less(c1, c0), h0, h1, u, uu, f, over, slant, first, total)
    total = pierce(w1, less(c2, c1), h1, h2, u, uu, f, over, slant, first, total)
    return pierce(w2, less(c0, c2), h2, h0, u, uu, f, over, slant, first, total)


@part
def crossing_point(a0, a1, a2, b0, b1, b2):
    """Whether two triangles cross, and the middle [m] of the points where edges of one pierce the other."""
    total = pierce_face(b0, b1, b2, a0, a1, a2, less(b0, a0), (0.0, 0.0, 0.0, 0.0))
    total = pierce_face(a0, a1, a2, b0, b1, b2, (0.0, 0.0, 0.0), total)
    crossing = total[3] > 0.0
    return crossing, along(a0, 1.0 / (total[3] if crossing else 1.0), total)


@fused
def triangle_triangle(a0, a1, a2, b0, b1, b2):
    """The distance of two triangles.

    a0 to b2: corners (x, y, z) [m]; they may coincide, so that a triangle is a segment or a point. Returns the square
    distance [m^2], the nearest points p of the first and q of the second, and 1.0 if the triangles cross, else 0.0.
    Where they cross the distance is zero and p = q is the middle of the points where edges pierce faces.
    """
    square, p, q, maybe = features(a0, a1, a2, b0, b1, b2)
    flag = 0.0
    if maybe:
        crossing, c = crossing_point(a0, a1, a2, b0, b1, b2)
        if crossing:
            square, p, q, flag = 0.0, c, c, 1.0
    return square, p, q, flag

"""The distance of two triangles and the points where they are nearest, by measuring all pairs of their features.

Triangle A has corners a0 a1 a2 and edges u0 = a1 - a0, u1 = a2 - a1, u2 = a0 - a2; B has b0 b1 b2 and v0 v1 v2. Where the
triangles do not cross, the shortest way runs between two edges or between a corner and the inside of a face: nine and
six cases. Where they cross, an edge of one pierces the other, and the distance is zero.

Everything is a select between values that are computed on both sides, without a branch, so that a loop over these
functions becomes vector instructions. All points that are compared lie on both triangles, so no answer is ever too
small; what rounding can do is to miss the best point. That is why the nearest points of two lines come from vector
products, and points in a face from an orthogonal frame: both stay exact to rounding of the coordinates for edges that
are all but parallel and for slivers, where the usual normal equations lose half the digits.
"""

from ..backend import fused

FAR = 1e300
TINY = 1e-300  # keeps what is divided by from being zero; far below the square of any length
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
    """a + s u."""
    return (a[0] + s * u[0], a[1] + s * u[1], a[2] + s * u[2])


@fused
def choose(first, a, b):
    """The vector a if first, else b."""
    return (a[0] if first else b[0], a[1] if first else b[1], a[2] if first else b[2])


@fused
def one_of_three(k, a, b, c):
    """The vector a, b or c for k = 0, 1, 2."""
    return choose(k < 0.5, a, choose(k < 1.5, b, c))


@fused
def edge_edge(w, u, v, uu, vv, m, n):
    """The least square distance of the segments s u and w + t v, and s and t in 0..1.

    w [m] from the start of the first to that of the second, uu and vv [1/m^2] inverse squares of their lengths, m = w x u
    and n = u x v [m^2]. Of parallel segments that run past each other the choice begins at t = 0.
    """
    t = cut(inner(m, n) / (inner(n, n) + TINY))
    s = cut(inner(along(w, t, v), u) * uu)
    r = along(w, -s, u)
    t = cut(-inner(r, v) * vv)
    d = along(r, t, v)
    return inner(d, d), s, t


@fused
def frame(u, v, uu):
    """A right-angled frame in the face with edges u = corner 1 - corner 0 and v = corner 2 - corner 0.

    uu [1/m^2]: inverse square of u. Returns the normal n [m^2, zero for a face without area], f [m] at right angles to u
    up to corner 2, and what a vector is multiplied by for its coordinates along u and f; corner 2 is at (slant, 1).
    """
    f = outer(outer(u, v), u)
    f = (f[0] * uu, f[1] * uu, f[2] * uu)
    # Of a sliver u x v is only roughly at right angles to u, and a plane that tilts misses what is far along u.
    n = outer(u, f)
    square = inner(f, f)
    some = 1.0 if square > FLAT * inner(v, v) else 0.0
    over = 1.0 / (square + TINY)
    to_u = (u[0] * uu, u[1] * uu, u[2] * uu)
    to_f = (f[0] * over, f[1] * over, f[2] * over)
    return (some * n[0], some * n[1], some * n[2]), f, to_u, to_f, inner(v, to_u)


@fused
def above_face(w, u, f, to_u, to_f, slant):
    """The square distance of the point w from the face (FAR if it is not above its inside) and its coordinates x and y.

    w [m] from corner 0 of the face; the nearest point is corner 0 + x u + y f.
    """
    x, y = inner(w, to_u), inner(w, to_f)
    s = x - slant * y
    inside = (y >= 0.0) & (s >= 0.0) & (s + y <= 1.0)
    d = along(along(w, -x, u), -y, f)
    square = inner(d, d)
    return (square if inside else FAR), x, y


@fused
def pierce(start, v, hi, hj, to_u, to_f, slant, first, total):
    """Sum of the points where edges pierce faces and their number, with that of the edge start + r v, if it does.

    start [m] from corner 0 of the face, hi and hj: heights of the two ends above it, first [m] corner 0 of the face. Whether
    the point is inside is asked of the point itself as it is rounded: of an edge almost in the plane r is uncertain.
    """
    c = along(start, hi / (hi - hj + TINY), v)
    x, y = inner(c, to_u), inner(c, to_f)
    s = x - slant * y
    through = ((hi > 0.0) != (hj > 0.0)) & (y >= 0.0) & (s >= 0.0) & (s + y <= 1.0)
    return (
        total[0] + (first[0] + c[0] if through else 0.0),
        total[1] + (first[1] + c[1] if through else 0.0),
        total[2] + (first[2] + c[2] if through else 0.0),
        total[3] + (1.0 if through else 0.0),
    )


@fused
def better(square, s, t, k, best):
    """The nearer of two candidates (square distance, s, t, number); the earlier one where they are as near."""
    near = square < best[0]
    return (
        square if near else best[0],
        s if near else best[1],
        t if near else best[2],
        k if near else best[3],
    )


@fused
def triangle_triangle(a0, a1, a2, b0, b1, b2):
    """The distance of two triangles.

    a0 to b2: corners (x, y, z) [m]; they may coincide, so that a triangle is a segment or a point. Returns the square
    distance [m^2], the nearest points p of the first and q of the second, and 1.0 if the triangles cross, else 0.0.
    Where they cross the distance is zero and p = q is the middle of the points where edges pierce faces.
    """
    u0, u1, u2 = less(a1, a0), less(a2, a1), less(a0, a2)
    v0, v1, v2 = less(b1, b0), less(b2, b1), less(b0, b2)
    uu0, uu1, uu2 = 1.0 / (inner(u0, u0) + TINY), 1.0 / (inner(u1, u1) + TINY), 1.0 / (inner(u2, u2) + TINY)
    vv0, vv1, vv2 = 1.0 / (inner(v0, v0) + TINY), 1.0 / (inner(v1, v1) + TINY), 1.0 / (inner(v2, v2) + TINY)
    w00, w01, w02 = less(b0, a0), less(b1, a0), less(b2, a0)
    w10, w11, w12 = less(b0, a1), less(b1, a1), less(b2, a1)
    w20, w21, w22 = less(b0, a2), less(b1, a2), less(b2, a2)

    square, s, t = edge_edge(w00, u0, v0, uu0, vv0, outer(w00, u0), outer(u0, v0))
    best = (square, s, t, 0.0)
    square, s, t = edge_edge(w01, u0, v1, uu0, vv1, outer(w01, u0), outer(u0, v1))
    best = better(square, s, t, 1.0, best)
    square, s, t = edge_edge(w02, u0, v2, uu0, vv2, outer(w02, u0), outer(u0, v2))
    best = better(square, s, t, 2.0, best)
    square, s, t = edge_edge(w10, u1, v0, uu1, vv0, outer(w10, u1), outer(u1, v0))
    best = better(square, s, t, 3.0, best)
    square, s, t = edge_edge(w11, u1, v1, uu1, vv1, outer(w11, u1), outer(u1, v1))
    best = better(square, s, t, 4.0, best)
    square, s, t = edge_edge(w12, u1, v2, uu1, vv2, outer(w12, u1), outer(u1, v2))
    best = better(square, s, t, 5.0, best)
    square, s, t = edge_edge(w20, u2, v0, uu2, vv0, outer(w20, u2), outer(u2, v0))
    best = better(square, s, t, 6.0, best)
    square, s, t = edge_edge(w21, u2, v1, uu2, vv1, outer(w21, u2), outer(u2, v1))
    best = better(square, s, t, 7.0, best)
    square, s, t = edge_edge(w22, u2, v2, uu2, vv2, outer(w22, u2), outer(u2, v2))
    best = better(square, s, t, 8.0, best)
    i = (1.0 if best[3] > 2.5 else 0.0) + (1.0 if best[3] > 5.5 else 0.0)
    j = best[3] - 3.0 * i
    p = along(one_of_three(i, a0, a1, a2), best[1], one_of_three(i, u0, u1, u2))
    q = along(one_of_three(j, b0, b1, b2), best[2], one_of_three(j, v0, v1, v2))

    # Corners of A above the face of B, seen from b0, whose second edge is -v2.
    n, f, to_u, to_f, slant = frame(v0, less(b2, b0), vv0)
    w0, w1, w2 = less(a0, b0), less(a1, b0), less(a2, b0)
    h0, h1, h2 = inner(w0, n), inner(w1, n), inner(w2, n)
    square, x0, y0 = above_face(w0, v0, f, to_u, to_f, slant)
    face = (square, x0, y0, 0.0)
    square, x1, y1 = above_face(w1, v0, f, to_u, to_f, slant)
    face = better(square, x1, y1, 1.0, face)
    square, x2, y2 = above_face(w2, v0, f, to_u, to_f, slant)
    face = better(square, x2, y2, 2.0, face)
    near = face[0] < best[0]
    least = face[0] if near else best[0]
    p = choose(near, one_of_three(face[3], a0, a1, a2), p)
    q = choose(near, along(along(b0, face[1], v0), face[2], f), q)
    # Where edges of A go through it, from a0.
    total = (0.0, 0.0, 0.0, 0.0)
    total = pierce(w0, u0, h0, h1, to_u, to_f, slant, w00, total)
    total = pierce(w1, u1, h1, h2, to_u, to_f, slant, w00, total)
    total = pierce(w2, u2, h2, h0, to_u, to_f, slant, w00, total)

    # Corners of B above the face of A.
    n, f, to_u, to_f, slant = frame(u0, less(a2, a0), uu0)
    h0, h1, h2 = inner(w00, n), inner(w01, n), inner(w02, n)
    square, x0, y0 = above_face(w00, u0, f, to_u, to_f, slant)
    face = (square, x0, y0, 0.0)
    square, x1, y1 = above_face(w01, u0, f, to_u, to_f, slant)
    face = better(square, x1, y1, 1.0, face)
    square, x2, y2 = above_face(w02, u0, f, to_u, to_f, slant)
    face = better(square, x2, y2, 2.0, face)
    near = face[0] < least
    least = face[0] if near else least
    p = choose(near, along(along(a0, face[1], u0), face[2], f), p)
    q = choose(near, one_of_three(face[3], b0, b1, b2), q)
    total = pierce(w00, v0, h0, h1, to_u, to_f, slant, (0.0, 0.0, 0.0), total)
    total = pierce(w01, v1, h1, h2, to_u, to_f, slant, (0.0, 0.0, 0.0), total)
    total = pierce(w02, v2, h2, h0, to_u, to_f, slant, (0.0, 0.0, 0.0), total)

    crossing = total[3] > 0.0
    c = along(a0, 1.0 / (total[3] if crossing else 1.0), total)
    p, q = choose(crossing, c, p), choose(crossing, c, q)
    return (0.0 if crossing else least), p, q, (1.0 if crossing else 0.0)

"""The common normal of two ellipsoids (OpM): their exact signed distance, over two angles.

An ellipsoid enters by its form M = A R^2 A^T, a symmetric matrix as six numbers (xx, yy, zz, xy, xz, yz) [m^2] in world
axes: its support is h(n) = sqrt(n.M n). A sphere is M = r^2 I, a point M = 0. With d = p2 - p1 the signed distance is

    gap = max over unit n of F(n),   F(n) = n.d - h1(n) - h2(n).

With W = M1/h1 + M2/h2 the gradient of F is d - W n, the vector between the points with opposite normals. Newton's method
runs on the plane at right angles to the current n, so that no direction is a pole. It finds a local maximum. That is the
only one if gap > -least, least being the smallest sum of radii of curvature. Deeper overlaps are judged by two ellipsoids
that touch the sum body E1 + E2 where n does: one around it, one within it. If n is not the answer for the outer one it is
not the answer, and a reflection of n is better; if n is the answer for the inner one it is the answer. What remains open
is searched from many directions.
"""

import math

import numpy as np

from ..backend import func, kernel, part
from ..vec import dot, normalize

LANES = 16  # pairs side by side
# Rows of a block of lanes: d, M1, M2, least, normal, gap, state; then what only the solver uses.
D, M1, M2, LEAST, N, GAP, STATE, STEP, DONE, ROWS = 0, 3, 9, 15, 16, 19, 20, 21, 24, 25
ITERATIONS = 16  # in lanes; shallow pairs take 4 on average
PATIENCE = 100  # for one pair alone
BUDGET = 4000  # groups of squares a face in the search
TINY = 1e-300
ROUNDING = 4e-16  # of the size of the terms of F: below it one F is not better than another
NEAR = 1e-7  # a step [rad] this short is the last: the next one would be its square
LONGEST = 0.7  # step [rad]
BLOCK = 32 * LANES  # pairs a task


@func
def form(q, size):
    """The form M of an ellipsoid [m^2]: unit quaternion q (4,), semi-axes size (3,) [m] along the body's own axes."""
    w, x, y, z = q[0], q[1], q[2], q[3]
    a, b, c = size[0] * size[0], size[1] * size[1], size[2] * size[2]
    ux, uy, uz = 1.0 - 2.0 * (y * y + z * z), 2.0 * (x * y + w * z), 2.0 * (x * z - w * y)
    vx, vy, vz = 2.0 * (x * y - w * z), 1.0 - 2.0 * (x * x + z * z), 2.0 * (y * z + w * x)
    wx, wy, wz = 2.0 * (x * z + w * y), 2.0 * (y * z - w * x), 1.0 - 2.0 * (x * x + y * y)
    return (
        a * ux * ux + b * vx * vx + c * wx * wx,
        a * uy * uy + b * vy * vy + c * wy * wy,
        a * uz * uz + b * vz * vz + c * wz * wz,
        a * ux * uy + b * vx * vy + c * wx * wy,
        a * ux * uz + b * vx * vz + c * wx * wz,
        a * uy * uz + b * vy * vz + c * wy * wz,
    )


@func
def times(m, v):
    """The form m times the vector v."""
    return (
        m[0] * v[0] + m[3] * v[1] + m[4] * v[2],
        m[3] * v[0] + m[1] * v[1] + m[5] * v[2],
        m[4] * v[0] + m[5] * v[1] + m[2] * v[2],
    )


@func
def support(m, n):
    """How far [m] the ellipsoid of form m reaches from its centre in the unit direction n."""
    return math.sqrt(max(0.0, dot(n, times(m, n))))


@func
def least_curvature(size):
    """The smallest radius of curvature [m] of an ellipsoid with these semi-axes (3,) [m]: c^2/a."""
    longest = max(size[0], max(size[1], size[2]))
    shortest = min(size[0], min(size[1], size[2]))
    return shortest * shortest / longest


@func
def tangents(n):
    """Two unit vectors at right angles to the unit vector n and to each other (Duff et al. 2017)."""
    sign = 1.0 if n[2] >= 0.0 else -1.0
    a = -1.0 / (sign + n[2])
    b = n[0] * n[1] * a
    return (1.0 + sign * n[0] * n[0] * a, sign * b, -sign * n[0]), (b, sign + n[1] * n[1] * a, -n[1])


@func
def combine(t, u, a, b):
    """The vector a t + b u."""
    return (a * t[0] + b * u[0], a * t[1] + b * u[1], a * t[2] + b * u[2])


@func
def section(m, p, t, u):
    """The matrix M - p p^T on the tangents t, u: (tt, tu, uu); p = M n / h."""
    mt, mu = times(m, t), times(m, u)
    a, b = dot(t, p), dot(u, p)
    return dot(t, mt) - a * a, dot(t, mu) - a * b, dot(u, mu) - b * b


@func
def radii(m, n, t, u):
    """The radii of curvature [m] at normal n as a matrix (tt, tu, uu) on the tangents t, u (unit, at right angles).

    Its eigenvalues are the principal radii; a point has zeros.
    """
    v = times(m, n)
    i = 1.0 / math.sqrt(max(dot(n, v), TINY))
    tt, tu, uu = section(m, (i * v[0], i * v[1], i * v[2]), t, u)
    return i * tt, i * tu, i * uu


@func
def mean_form(m1, m2, n):
    """W = M1/h1 + M2/h2 at the unit vector n, the points p = M n / h of both, and 1/h of both."""
    v1, v2 = times(m1, n), times(m2, n)
    i1 = 1.0 / math.sqrt(max(dot(n, v1), TINY))
    i2 = 1.0 / math.sqrt(max(dot(n, v2), TINY))
    w = (
        m1[0] * i1 + m2[0] * i2,
        m1[1] * i1 + m2[1] * i2,
        m1[2] * i1 + m2[2] * i2,
        m1[3] * i1 + m2[3] * i2,
        m1[4] * i1 + m2[4] * i2,
        m1[5] * i1 + m2[5] * i2,
    )
    return w, (v1[0] * i1, v1[1] * i1, v1[2] * i1), (v2[0] * i2, v2[1] * i2, v2[2] * i2), i1, i2


@func
def ascent(d, m1, m2, n):
    """F at the unit vector n, the size of its terms, Newton's step towards larger F, its length^2 and promised gain.

    The eigenvalues of the Hessian are taken positive, so that the step leads up everywhere.
    """
    w, p, q, i1, i2 = mean_form(m1, m2, n)
    along, reach = dot(n, d), dot(n, p) + dot(n, q)
    f, size = along - reach, abs(along) + reach
    g = (d[0] - (p[0] + q[0]), d[1] - (p[1] + q[1]), d[2] - (p[2] + q[2]))
    t, u = tangents(n)
    wt, wu = times(w, t), times(w, u)
    pt, pu, qt, qu = dot(t, p), dot(u, p), dot(t, q), dot(u, q)
    a = dot(t, wt) - (i1 * pt * pt + i2 * qt * qt) + f
    b = dot(t, wu) - (i1 * pt * pu + i2 * qt * qu)
    c = dot(u, wu) - (i1 * pu * pu + i2 * qu * qu) + f
    gt, gu = dot(t, g), dot(u, g)
    # The eigenvalues are middle -+ radius; the inverse of |B| has the same axes.
    middle, half = 0.5 * (a + c), 0.5 * (a - c)
    radius = max(math.sqrt(half * half + b * b), 1e-30 * size + TINY)
    floor = 1e-13 * size + TINY
    low, high = max(abs(middle - radius), floor), max(abs(middle + radius), floor)
    inverse = 0.5 / (low * high * radius)
    mean, turn = (low + high) * radius * inverse, (low - high) * inverse
    st = mean * gt + turn * (half * gt + b * gu)
    su = mean * gu + turn * (b * gt - half * gu)
    shorten = LONGEST / max(math.sqrt(st * st + su * su), LONGEST)
    st, su = st * shorten, su * shorten
    return f, size, combine(t, u, st, su), st * st + su * su, gt * st + gu * su


@func
def first_guess(d, m1, m2):
    """A unit vector near the common normal: (W + max(F, 0) I)^-1 d with W and F of the direction of d."""
    square = dot(d, d)
    apart = square > TINY
    i = 1.0 / math.sqrt(square if apart else 1.0)
    e = (d[0] * i if apart else 1.0, d[1] * i, d[2] * i)
    w, p, q, i1, i2 = mean_form(m1, m2, e)
    f = max(dot(e, d) - dot(e, p) - dot(e, q), 0.0)
    g = times(adjugate((w[0] + f, w[1] + f, w[2] + f, w[3], w[4], w[5])), e)
    square = dot(g, g)
    good = square > TINY
    i = 1.0 / math.sqrt(square if good else 1.0)
    return (g[0] * i if good else e[0], g[1] * i if good else e[1], g[2] * i if good else e[2])


@func
def adjugate(m):
    """The inverse of a form times its determinant."""
    return (
        m[1] * m[2] - m[5] * m[5],
        m[0] * m[2] - m[4] * m[4],
        m[0] * m[1] - m[3] * m[3],
        m[4] * m[5] - m[3] * m[2],
        m[3] * m[5] - m[4] * m[1],
        m[3] * m[4] - m[0] * m[5],
    )


@func
def advance(d, m1, m2, n, f, s, done):
    """One trial n + s: kept with a new Newton step if F grew, else the step is cut to a quarter.

    Returns n, f, s, done (0 or 1); of a pair that is done, what it was given.
    """
    trial = normalize((n[0] + s[0], n[1] + s[1], n[2] + s[2]))
    value, size, step, square, gain = ascent(d, m1, m2, trial)
    better = value >= f - ROUNDING * size
    near = square < NEAR * NEAR
    settled = (near or gain < ROUNDING * size) if better else dot(s, s) < 16.0 * NEAR * NEAR
    going = done == 0.0
    take = going and better
    cut = 0.25 if going else 1.0
    # The last step needs no root to stay on the sphere.
    last, shrink = (1.0, 1.0 - 0.5 * square) if near else (0.0, 1.0)
    kept = (
        shrink * (trial[0] + last * step[0]),
        shrink * (trial[1] + last * step[1]),
        shrink * (trial[2] + last * step[2]),
    )
    n = (kept[0] if take else n[0], kept[1] if take else n[1], kept[2] if take else n[2])
    s = (step[0] if take else cut * s[0], step[1] if take else cut * s[1], step[2] if take else cut * s[2])
    f = (value + 0.5 * last * gain) if take else f
    return n, f, s, (1.0 if settled else 0.0) if going else done


@func
def proved(d, m1, m2, n, f):
    """Whether the local maximum n of F is the answer for an ellipsoid within E1 + E2 that touches its surface there.

    On the plane at right angles to n, N = M - p p^T of each. The sum body contains an ellipsoid with the form P P^T + T,
    P = p1 + p2, T = N1 + N2 + 2 G, G the geometric mean of N1 and N2 (the inner approximations of Kurzhanski and Valyi 1997,
    of which this is one). Its centre -d is as deep in it as in the sum body where P P^T + T + F (h1 + h2) I >= 0.
    """
    w, p, q, i1, i2 = mean_form(m1, m2, n)
    t, u = tangents(n)
    a1, b1, c1 = section(m1, p, t, u)
    a2, b2, c2 = section(m2, q, t, u)
    r1, r2 = math.sqrt(max(a1 * c1 - b1 * b1, 0.0)), math.sqrt(max(a2 * c2 - b2 * b2, 0.0))
    ga, gb, gc = r2 * a1 + r1 * a2, r2 * b1 + r1 * b2, r2 * c1 + r1 * c2
    s = 2.0 * math.sqrt(r1 * r2 / max(ga * gc - gb * gb, TINY))
    along, dt, du = dot(n, d), dot(t, d), dot(u, d)
    lower = f * (dot(n, p) + dot(n, q))
    a = along * (a1 + a2 + s * ga + lower) + f * dt * dt
    b = along * (b1 + b2 + s * gb) + f * dt * du
    c = along * (c1 + c2 + s * gc + lower) + f * du * du
    return (a + c > 0.0) & (a * c - b * b > 1e-9 * (a + c) * (a + c))


@func
def reflection(d, m1, m2, n, f):
    """Whether the local maximum n of F cannot be the answer, and a unit vector that is better.

    W + F I must be positive. If e.(W + F I) e < 0, the mirror image of n in the plane across e has a larger F.
    """
    w, p, q, i1, i2 = mean_form(m1, m2, n)
    t, u = tangents(n)
    a, b, c = dot(t, times(w, t)) + f, dot(t, times(w, u)), dot(u, times(w, u)) + f
    dt, du = dot(t, d), dot(u, d)
    i = 1.0 / max(a * c - b * b, TINY)
    x, y = i * (c * dt - b * du), i * (a * du - b * dt)
    e = combine(t, u, -x, -y)
    k = 2.0 / (1.0 + dot(e, e))
    wrong = dot(n, d) < dt * x + du * y
    return wrong, normalize(((1.0 - k) * n[0] - k * e[0], (1.0 - k) * n[1] - k * e[1], (1.0 - k) * n[2] - k * e[2]))


@func
def lane_forms(lane, k):
    """d, M1 and M2 of lane k."""
    return (
        (lane[D, k], lane[D + 1, k], lane[D + 2, k]),
        (lane[M1, k], lane[M1 + 1, k], lane[M1 + 2, k], lane[M1 + 3, k], lane[M1 + 4, k], lane[M1 + 5, k]),
        (lane[M2, k], lane[M2 + 1, k], lane[M2 + 2, k], lane[M2 + 3, k], lane[M2 + 4, k], lane[M2 + 5, k]),
    )


@func
def climb_lanes(lane):
    """Bring N of every lane that is not DONE to a local maximum of F; GAP is F there, DONE 0 where that took too long."""
    for turn in range(ITERATIONS):
        for k in range(LANES):
            d, m1, m2 = lane_forms(lane, k)
            n = (lane[N, k], lane[N + 1, k], lane[N + 2, k])
            s = (lane[STEP, k], lane[STEP + 1, k], lane[STEP + 2, k])
            n, f, s, done = advance(d, m1, m2, n, lane[GAP, k], s, lane[DONE, k])
            lane[N, k], lane[N + 1, k], lane[N + 2, k] = n
            lane[STEP, k], lane[STEP + 1, k], lane[STEP + 2, k] = s
            lane[GAP, k] = f
            lane[DONE, k] = done
        count = 0.0
        for k in range(LANES):
            count += lane[DONE, k]
        if count == LANES:
            break


@func
def solve_lanes(lane, used):
    """Common normals of the first `used` pairs of a block of lanes (ROWS, LANES); see the names of its rows.

    In: D, M1, M2 and LEAST = c1^2/a1 + c2^2/a2; where STATE is 1 also a unit vector in N to start from, else STATE is 0.
    Out: N and GAP, and STATE 1 where they are proved to be the answer. Where STATE is 0 call `common_normal`.
    What a pair gets does not depend on its lane or on the other lanes.
    """
    for k in range(used, LANES):
        for i in range(ROWS):
            lane[i, k] = 1.0
    for k in range(LANES):
        d, m1, m2 = lane_forms(lane, k)
        x, y, z, warm = lane[N, k], lane[N + 1, k], lane[N + 2, k], lane[STATE, k] == 1.0
        g = first_guess(d, m1, m2)
        lane[N, k] = x if warm else g[0]
        lane[N + 1, k] = y if warm else g[1]
        lane[N + 2, k] = z if warm else g[2]
        lane[STEP, k], lane[STEP + 1, k], lane[STEP + 2, k] = 0.0, 0.0, 0.0
        lane[GAP, k] = -math.inf
        lane[DONE, k] = 0.0
    for k in range(used, LANES):
        lane[DONE, k] = 1.0
    climb_lanes(lane)
    for k in range(LANES):
        d, m1, m2 = lane_forms(lane, k)
        n, f = (lane[N, k], lane[N + 1, k], lane[N + 2, k]), lane[GAP, k]
        sure = (f > -lane[LEAST, k]) | proved(d, m1, m2, n, f)
        lane[STATE, k] = lane[DONE, k] if sure else 0.0


@part
def climb(d, m1, m2, n):
    """The local maximum of F that is reached from the unit vector n, and F there."""
    f, s, done = -math.inf, (0.0, 0.0, 0.0), 0.0
    for turn in range(PATIENCE):
        n, f, s, done = advance(d, m1, m2, n, f, s, done)
        if done == 1.0:
            break
    return n, f


@part
def improve(d, m1, m2, n, f):
    """From the local maximum n of F to a better one while its reflection is better."""
    for turn in range(8):
        wrong, other = reflection(d, m1, m2, n, f)
        if not wrong:
            break
        other, value = climb(d, m1, m2, other)
        if value <= f:
            break
        n, f = other, value
    return n, f


@func
def patch(face, u, v):
    """The unit vector through the point (u, v) of a face of the cube [-1, 1]^3: 0, 1, 2 for x, y, z = 1; and its scale."""
    i = 1.0 / math.sqrt(1.0 + u * u + v * v)
    a, b = i * u, i * v
    return (
        i if face == 0 else (b if face == 1 else a),
        a if face == 0 else (i if face == 1 else b),
        b if face == 0 else (a if face == 1 else i),
    )


@func
def bound(d, m1, m2, n, r):
    """The larger of F(n) and F(-n), and what F cannot exceed within the angle r of n or -n, for F < 0 everywhere.

    F is concave, so F(m) <= m.g for all m, g = d -+ P its gradient at n or -n, P = p1 + p2.
    """
    v1, v2 = times(m1, n), times(m2, n)
    i1 = 1.0 / math.sqrt(max(dot(n, v1), TINY))
    i2 = 1.0 / math.sqrt(max(dot(n, v2), TINY))
    p = (v1[0] * i1 + v2[0] * i2, v1[1] * i1 + v2[1] * i2, v1[2] * i1 + v2[2] * i2)
    along, reach = dot(n, d), dot(n, p)
    square, mixed = dot(d, d) + dot(p, p), 2.0 * dot(d, p)
    one, two = along - reach, -along - reach
    slope_one = math.sqrt(max(square - mixed - one * one, 0.0))
    slope_two = math.sqrt(max(square + mixed - two * two, 0.0))
    less = 1.0 - 0.5 * r * r
    return max(one, two), max(one * less + slope_one * r, two * less + slope_two * r)


@func
def survey(d, m1, m2, face, i, j, width, gap):
    """Which of the 4 x 4 squares with their first corner at (i, j), in units of the width of one, may hold an F above gap.

    Returns two sets of bits: the squares that may, and those whose centre does.
    """
    may, does = 0, 0
    half = 0.5 * width
    for k in range(16):
        u, v = width * (i + k % 4) + half - 1.0, width * (j + k // 4) + half - 1.0
        n = patch(face, u, v)
        x, y = max(abs(u) - half, 0.0), max(abs(v) - half, 0.0)
        # Seen from the centre, a length on the face is at most 1 / sqrt(1 + x^2 + y^2) of itself as an angle.
        r = width * math.sqrt(0.5 / (1.0 + x * x + y * y))
        f, most = bound(d, m1, m2, n, r)
        may |= (1 << k) if most > gap else 0
        does |= (1 << k) if f > gap else 0
    return may, does


@func
def lowest(bits):
    """The number of the lowest bit that is set, of 16."""
    k = 0
    while k < 15 and not bits & (1 << k):
        k += 1
    return k


@part
def search(d, m1, m2, n, gap):
    """The global maximum of F, negative everywhere, and where; n with F = gap is a local maximum, the better the faster.

    Branch and bound on three faces of a cube, opposite directions taken together; each square is divided 4 x 4 until none
    of its directions can be better than the best found, or it is 1/128 wide, where only the best maximum's own
    neighbourhood or one as good is left.
    """
    slack = 1e-13 * (support(m1, n) + support(m2, n))
    climbs = 0
    for face in range(3):
        level, i, j, todo, width = 0, 0, 0, 0, 0.5
        for turn in range(BUDGET):
            may, does = survey(d, m1, m2, face, 4 * i, 4 * j, width, gap + slack)
            if level == 3:
                does, may = may, 0
            while does and climbs < 32:
                k = lowest(does)
                does ^= 1 << k
                c = patch(face, width * (4 * i + k % 4 + 0.5) - 1.0, width * (4 * j + k // 4 + 0.5) - 1.0)
                c = c if dot(c, d) >= 0.0 else (-c[0], -c[1], -c[2])
                if dot(c, n) < 0.99:
                    other, f = climb(d, m1, m2, c)
                    climbs += 1
                    if f > gap:
                        n, gap = other, f
            todo |= may << (16 * level)
            while level > 0 and not (todo >> (16 * level)) & 65535:
                level, i, j, width = level - 1, i // 4, j // 4, 4.0 * width
            bits = (todo >> (16 * level)) & 65535
            if not bits:
                break
            k = lowest(bits)
            todo ^= 1 << (16 * level + k)
            level, i, j, width = level + 1, 4 * i + k % 4, 4 * j + k // 4, 0.25 * width
    return n, gap


@part
def common_normal(d, m1, m2, least):
    """The common normal (3,) of two ellipsoids, from 1 to 2, their gap [m], and status 1.

    d (3,) [m] from the centre of 1 to the centre of 2, forms m1 and m2 (6,) [m^2], least = c1^2/a1 + c2^2/a2 [m].
    """
    n, gap = climb(d, m1, m2, first_guess(d, m1, m2))
    if gap <= -least and not proved(d, m1, m2, n, gap):
        n, gap = improve(d, m1, m2, n, gap)
        n, gap = search(d, m1, m2, n, gap)
    return n, gap, 1


def normal_block(block, count, d, m1, m2, least, normal, gap):
    """Common normals of one block of pairs."""
    lane = np.empty((ROWS, LANES))
    for first in range(block * BLOCK, min(count, (block + 1) * BLOCK), LANES):
        used = min(LANES, count - first)
        for k in range(used):
            p = first + k
            for i in range(3):
                lane[D + i, k] = d[p, i]
            for i in range(6):
                lane[M1 + i, k] = m1[p, i]
                lane[M2 + i, k] = m2[p, i]
            lane[LEAST, k] = least[p]
            lane[STATE, k] = 0.0
        solve_lanes(lane, used)
        for k in range(used):
            n, f = (lane[N, k], lane[N + 1, k], lane[N + 2, k]), lane[GAP, k]
            if lane[STATE, k] == 0.0:
                e, a, b = lane_forms(lane, k)
                n, f, status = common_normal(e, a, b, lane[LEAST, k])
            for i in range(3):
                normal[first + k, i] = n[i]
            gap[first + k] = f


def common_normals(d, m1, m2, least):
    """Common normals (n,3) and gaps (n,) [m] of n pairs: d (n,3) [m], forms m1, m2 (n,6) [m^2], least (n,) [m]."""
    count = len(d)
    normal, gap = np.empty((count, 3)), np.empty(count)
    rows = (count + BLOCK - 1) // BLOCK
    kernel(normal_block, allocates=True, grain=2)(rows, count, d, m1, m2, least, normal, gap)
    return normal, gap

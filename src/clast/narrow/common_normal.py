"""The common normal of two ellipsoids (OpM): their exact signed distance, over two angles.

An ellipsoid enters by its form M (`ellipsoid_form`), its support being h(n) = sqrt(n.M n). With d = p2 - p1 the signed
distance is

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

from ..kernels.backend import func, kernel
from ..kernels.vec import dot, normalize
from ..shapes.ellipsoid_form import TINY, adjugate, combine, mean_form, section, support, tangents, times

LANES = 16  # pairs side by side
# Rows of a block of lanes: d, M1, M2, least, normal, gap, state; then what only the solver uses.
D, M1, M2, LEAST, N, GAP, STATE, STEP, DONE, ROWS = 0, 3, 9, 15, 16, 19, 20, 21, 24, 25
ITERATIONS = 16  # in lanes; shallow pairs take 4 on average
PATIENCE = 100  # for one pair alone
BUDGET = 300  # groups of squares that the search looks at before it is content with coarser ones
SPECK = 1e-100  # keeps the inverse of a product of three finite
ROUNDING = 4e-16  # of the size of the terms of F: below it one F is not better than another
NEAR = 1e-7  # a step [rad] this short is the last: the next one would be its square
CLOSE = 1e-5  # [rad] up to here the last step is taken even if F does not gain by it
LONGEST = 0.7  # step [rad]
SQUARE_ROOT_HALF = math.sqrt(0.5)
COSINE, SINE = math.cos(0.4), math.sin(0.4)
BLOCK = 32 * LANES  # pairs a task
# The squares of a group of 4 x 4: what numba makes of k % 4 and 1 << k is no vector instruction.
COLUMN, LINE, BIT = np.arange(16) % 4 * 1.0, np.arange(16) // 4 * 1.0, 1 << np.arange(16)


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
    radius = max(math.sqrt(half * half + b * b), 1e-30 * size + SPECK)
    floor = 1e-13 * size + SPECK
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
    f = max(dot(e, d) - (dot(e, p) + dot(e, q)), 0.0)
    g = times(adjugate((w[0] + f, w[1] + f, w[2] + f, w[3], w[4], w[5])), e)
    square = dot(g, g)
    good = square > TINY
    i = 1.0 / math.sqrt(square if good else 1.0)
    return (g[0] * i if good else e[0], g[1] * i if good else e[1], g[2] * i if good else e[2])


@func
def advance(d, m1, m2, n, f, s, done):
    """One trial n + s: kept with a new Newton step if F grew, else the step is cut to a quarter.

    Returns n, f, s, done (0 or 1); of a pair that is done, what it was given.
    """
    trial = normalize((n[0] + s[0], n[1] + s[1], n[2] + s[2]))
    value, size, step, square, gain = ascent(d, m1, m2, trial)
    better = value >= f - ROUNDING * size
    # A longer step is the last too where F cannot tell its end from its start; the direction still gains by it.
    flat = gain < ROUNDING * size
    near = square < (CLOSE * CLOSE if flat else NEAR * NEAR)
    settled = (near or flat) if better else dot(s, s) < 16.0 * NEAR * NEAR
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
def unique(gap, least):
    """Whether a local maximum of F is the only one, because the sum body consists of balls of radius least [m].

    A little deeper the rest of F is at most 0, so that no other maximum can be better by more than that little. Without it,
    two spheres with one centre would not do.
    """
    return gap > -(1.0 + 1e-10) * least


@func
def inner_form(m1, m2, n):
    """Ellipsoids within E1 + E2 that touch its surface at the point P = p1 + p2 with normal n: the forms P P^T + T.

    On the tangents t, u of n, T = N + 2 cos(x) G + 2 sin(x) K for any angle x: the inner approximations of Kurzhanski and
    Valyi (1997). With N1 = M1 - p1 p1^T and N2 alike, N = N1 + N2, G is the geometric mean of N1 and N2 and K the symmetric
    part of sqrt(det N1) J N1^-1 G, J a quarter turn. Returns N, G, K as (tt, tu, uu), h1 + h2, t, u.
    """
    w, p, q, i1, i2 = mean_form(m1, m2, n)
    t, u = tangents(n)
    a1, b1, c1 = section(m1, p, t, u)
    a2, b2, c2 = section(m2, q, t, u)
    r1, r2 = math.sqrt(max(a1 * c1 - b1 * b1, 0.0)), math.sqrt(max(a2 * c2 - b2 * b2, 0.0))
    a, b, c = r2 * a1 + r1 * a2, r2 * b1 + r1 * b2, r2 * c1 + r1 * c2
    s = math.sqrt(r1 * r2 / max(a * c - b * b, TINY))
    a, b, c = s * a, s * b, s * c
    i = 1.0 / max(r1, TINY)
    skew = (i * (a * b1 - b * a1), 0.5 * i * (c1 * a - a1 * c), i * (b * c1 - c * b1))
    return (a1 + a2, b1 + b2, c1 + c2), (a, b, c), skew, dot(n, p) + dot(n, q), t, u


@func
def proved(d, m1, m2, n, f):
    """Whether the local maximum n of F is the answer for one of three inner ellipsoids, and so for the pair.

    That is where P P^T + T + F (h1 + h2) I is positive; its part across n is divided out (Schur). One angle proves 88.9 %
    of random pairs deeper than least, three 90.9 %, all 91.5 %.
    """
    whole, mean, skew, h, t, u = inner_form(m1, m2, n)
    along, dt, du = dot(n, d), dot(t, d), dot(u, d)
    a = along * (whole[0] + f * h) + f * dt * dt
    b = along * whole[1] + f * dt * du
    c = along * (whole[2] + f * h) + f * du * du
    x, y = 2.0 * COSINE * along, 2.0 * SINE * along
    ma, mb, mc = a + x * mean[0], b + x * mean[1], c + x * mean[2]
    ka, kb, kc = y * skew[0], y * skew[1], y * skew[2]
    z = 2.0 * along
    return (along > 1e-12 * h) & (
        positive(a + z * mean[0], b + z * mean[1], c + z * mean[2])
        | positive(ma + ka, mb + kb, mc + kc)
        | positive(ma - ka, mb - kb, mc - kc)
    )


@func
def positive(a, b, c):
    """Whether both eigenvalues of the matrix (a b, b c) are positive beyond doubt."""
    return (a + c > 0.0) & (a * c - b * b > 1e-9 * (a + c) * (a + c))


@func
def safe_cap(d, m1, m2, n, f):
    """Cosine and sine of an angle around the local maximum n of F < 0 within which nothing is better than n.

    For the inner ellipsoid, with l the smaller eigenvalue of T and x the tangent of half the angle, nothing is better where
    F n.d x^2 - 2 F |d - n n.d| x - (l + F (h1 + h2)) <= 0 from 0 up to x. The angle is 0 if that fails at n itself.
    """
    whole, mean, skew, h, t, u = inner_form(m1, m2, n)
    a, b, c = whole[0] + 2.0 * mean[0], whole[1] + 2.0 * mean[1], whole[2] + 2.0 * mean[2]
    dt, du = dot(t, d), dot(u, d)
    half = 0.5 * (a - c)
    room = 0.5 * (a + c) - math.sqrt(half * half + b * b) + f * h
    side, along = -f * math.sqrt(dt * dt + du * du), -f * dot(n, d)
    x = max(room, 0.0) / max(side + math.sqrt(max(side * side - along * room, 0.0)), SPECK)
    x = min(x, 1.0)
    i = 1.0 / (1.0 + x * x)
    return (1.0 - x * x) * i, 2.0 * x * i


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
    for _ in range(ITERATIONS):
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
    Out: N and GAP, and STATE 1 where they are proved to be the answer. Where STATE is 0 call `common_normal_from`.
    What a pair gets does not depend on its lane or on the other lanes.
    """
    for k in range(used, LANES):
        for i in range(ROWS):
            lane[i, k] = 1.0
    # Most blocks of a simulation are warm and shallow throughout: they are spared the guess and the proof.
    cold, deep = 0.0, 0.0
    for k in range(LANES):
        cold += 1.0 - lane[STATE, k]
    if cold > 0.0:
        for k in range(LANES):
            d, m1, m2 = lane_forms(lane, k)
            x, y, z, warm = lane[N, k], lane[N + 1, k], lane[N + 2, k], lane[STATE, k] == 1.0
            g = first_guess(d, m1, m2)
            lane[N, k] = x if warm else g[0]
            lane[N + 1, k] = y if warm else g[1]
            lane[N + 2, k] = z if warm else g[2]
    for k in range(LANES):
        lane[STEP, k], lane[STEP + 1, k], lane[STEP + 2, k] = 0.0, 0.0, 0.0
        lane[GAP, k] = -math.inf
        lane[DONE, k] = 0.0
    for k in range(used, LANES):
        lane[GAP, k], lane[DONE, k] = 0.0, 1.0
    climb_lanes(lane)
    for k in range(LANES):
        shallow = unique(lane[GAP, k], lane[LEAST, k])
        lane[STATE, k] = lane[DONE, k] if shallow else 0.0
        deep += 0.0 if shallow else 1.0
    if deep > 0.0:
        for k in range(LANES):
            d, m1, m2 = lane_forms(lane, k)
            sure = proved(d, m1, m2, (lane[N, k], lane[N + 1, k], lane[N + 2, k]), lane[GAP, k])
            lane[STATE, k] = max(lane[STATE, k], lane[DONE, k] if sure else 0.0)


@func
def climb(d, m1, m2, n):
    """The local maximum of F that is reached from the unit vector n, and F there."""
    f, s, done = -math.inf, (0.0, 0.0, 0.0), 0.0
    for _ in range(PATIENCE):
        n, f, s, done = advance(d, m1, m2, n, f, s, done)
        if done == 1.0:
            break
    return n, f


@func
def improve(d, m1, m2, n, f):
    """From the local maximum n of F to a better one while its reflection is better."""
    for _ in range(8):
        wrong, other = reflection(d, m1, m2, n, f)
        if not wrong:
            break
        other, value = climb(d, m1, m2, other)
        if value <= f:
            break
        n, f = other, value
    return n, f


@func
def patch(face, u, v, i):
    """The vector (1, u, v) times i, its 1 in the place of x, y or z for face 0, 1 or 2 of the cube [-1, 1]^3."""
    a, b = i * u, i * v
    return (
        i if face == 0 else (b if face == 1 else a),
        a if face == 0 else (i if face == 1 else b),
        b if face == 0 else (a if face == 1 else i),
    )


@func
def survey(d, m1, m2, least, face, i, j, width, n, gap, cosine, sine):
    """Which of 4 x 4 squares of a face, from (i, j) in units of their width, may hold a direction with F above gap < 0.

    Each square stands for its directions c and their opposites. F is concave and so below its tangents, and the more so as a
    ball of radius least is a summand of E1 + E2: with g the gradient at the centre of a square, within an angle r of it,
    F <= (F + least) cos r + |g - F c| sin r - least. Nothing above gap is within the angle of the cosine and sine from n.
    Returns two sets of bits: the squares that may, and those whose centre does.
    """
    may, does = 0, 0
    half, dd = 0.5 * width, dot(d, d)
    left, low = width * i + half - 1.0, width * j + half - 1.0
    for k in range(16):
        u, v = left + width * COLUMN[k], low + width * LINE[k]
        e = 1.0 / math.sqrt(1.0 + u * u + v * v)
        c = patch(face, u, v, e)
        # Seen from the centre of the cube half a diagonal is the largest where the square is nearest.
        r = SQUARE_ROOT_HALF * width * e * (1.0 + half * (abs(u) + abs(v)))
        v1, v2 = times(m1, c), times(m2, c)
        i1 = 1.0 / math.sqrt(max(dot(c, v1), TINY))
        i2 = 1.0 / math.sqrt(max(dot(c, v2), TINY))
        p = (v1[0] * i1 + v2[0] * i2, v1[1] * i1 + v2[1] * i2, v1[2] * i1 + v2[2] * i2)
        along, reach = dot(c, d), dot(c, p)
        square, mixed = dd + dot(p, p), 2.0 * dot(d, p)
        one, two = along - reach, -along - reach
        # Without a root: where rise <= r slope.
        bend, square_r = 0.5 * r * r, r * r
        rise_one, rise_two = gap - one + (one + least) * bend, gap - two + (two + least) * bend
        under_one = square_r * (square - mixed - one * one) < rise_one * rise_one
        under_two = square_r * (square + mixed - two * two) < rise_two * rise_two
        nearness, safe = dot(c, n), cosine + r * sine
        out_one = ((rise_one > 0.0) & under_one) | (nearness > safe)
        out_two = ((rise_two > 0.0) & under_two) | (-nearness > safe)
        may |= 0 if out_one & out_two else BIT[k]
        does |= BIT[k] if max(one, two) > gap else 0
    return may, does


@func
def lowest(bits):
    """The number of the lowest bit that is set, of 16."""
    k = 0
    while k < 15 and not bits & (1 << k):
        k += 1
    return k


@func
def search(d, m1, m2, least, n, gap):
    """The global maximum of F, negative everywhere, and where; n with F = gap is a local maximum, the better the faster.

    Branch and bound on three faces of a cube. A square that may hold something better is divided 4 x 4, four times at most;
    what is then left is as good as n to 2e-5 of the gap, and Newton decides.
    """
    slack = 1e-13 * (support(m1, n) + support(m2, n))
    cosine, sine = safe_cap(d, m1, m2, n, gap)
    idle, cost = 0, 0
    for face in range(3):
        level, i, j, todo, width = 0, 0, 0, 0, 0.5
        while True:
            cost += 1
            may, does = survey(d, m1, m2, least, face, 4 * i, 4 * j, width, n, gap + slack, cosine, sine)
            if level == 3 or (level == 2 and cost > BUDGET):
                does, may = does | (may if idle < 8 else 0), 0
            while does:
                k = lowest(does)
                does ^= 1 << k
                u, v = width * (4 * i + k % 4 + 0.5) - 1.0, width * (4 * j + k // 4 + 0.5) - 1.0
                c = patch(face, u, v, 1.0 / math.sqrt(1.0 + u * u + v * v))
                c = c if dot(c, d) >= 0.0 else (-c[0], -c[1], -c[2])
                if dot(c, n) < 0.9999:
                    other, f = climb(d, m1, m2, c)
                    idle += 1
                    if f > gap + slack:
                        n, gap, idle = other, f, 0
                        cosine, sine = safe_cap(d, m1, m2, n, gap)
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


@func
def common_normal(d, m1, m2, least):
    """The common normal (3,) of two ellipsoids, from 1 to 2, and their gap [m].

    d (3,) [m] from the centre of 1 to the centre of 2, forms m1 and m2 (6,) [m^2], least = c1^2/a1 + c2^2/a2 [m].
    """
    return common_normal_from(d, m1, m2, least, first_guess(d, m1, m2))


@func
def common_normal_from(d, m1, m2, least, n):
    """What `common_normal` finds, started from the unit vector n; a good start is faster and changes nothing else."""
    n, gap = climb(d, m1, m2, n)
    if not unique(gap, least):
        n, gap = improve(d, m1, m2, n, gap)
        if not unique(gap, least) and not proved(d, m1, m2, n, gap):
            n, gap = search(d, m1, m2, least, n, gap)
            n, gap = improve(d, m1, m2, n, gap)
    return n, gap


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
                n, f = common_normal_from(e, a, b, lane[LEAST, k], n)
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

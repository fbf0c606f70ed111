"""Whether two ellipsoids touch, from their characteristic equation (ChM): NO, YES, or MAYBE where rounding decides.

With Q1, Q2 the 4x4 matrices of the ellipsoids, g(xi) = det(xi Q1 + Q2) = xi^4 + b3 xi^3 + b2 xi^2 + b1 xi + b0 after
division by its first coefficient. They are apart if and only if g has two positive roots, that is, if g is negative
somewhere at xi > 0; then it is so at zeta3, the largest root of g', a cubic with a closed form. With the forms
M = A R^2 A^T and d from centre to centre the same g is, but for a positive factor and without any inverse,

    g(xi) = (1 + xi) det(M1 + xi M2) - xi d . adj(M1 + xi M2) d.

The sign of g(zeta3) drowns in rounding for needles, discs and sizes far apart. So the root is only a proposal:
l = xi / (1 + xi) gives S = (1-l) M1 + l M2 and n = S^-1 d, and this n is a witness that can be checked by itself,
however wrong the root may be.

- n.d > h1(n) + h2(n), h^2 = n.M n: the plane across n parts them. This is implied by g < 0 and holds more often.
- (1-l) h1(n) <= 1 and l h2(n) <= 1: the point (1-l) M1 n, seen from centre 1, lies in both of them.

Each is checked with a bound of its rounding added to the side that makes it harder. Near contact the two meet at the
maximum over l of s(l) = l (1-l) d.S^-1 d (Perram and Wertheim 1985), which is concave; s = 1 where they touch, and s > 1
where g < 0. Pairs that the root does not settle take Newton steps towards that maximum.
"""

import math

import numpy as np

from ..kernels import backend
from ..kernels.backend import func, kernel
from ..shapes.ellipsoid_form import adjugate, times

NO, YES, MAYBE = 0, 1, 2
LANES = 64  # pairs side by side
ANSWER = 15  # the row of the lanes that gets the answer
ROWS = 34  # rows of the lanes: 0-2 d, 3-8 M1, 9-14 M2, the answer, and working space
GROUP = 8  # lanes that take further steps together: whole vectors, with nothing left over
STEPS = 12  # Newton steps after the root, at most
NEAR = 0.1  # 1 - s(zeta3) up to which zeta3 is near the maximum of s
BLOCK = 4096  # pairs a task

EPSILON = 2.220446049250313e-16
FORM = 32.0 * EPSILON  # error of a form, in parts of its trace: 16 from making it, the rest from using it
PLACE = 8.0 * EPSILON  # error of a scalar product or a sum of vectors, in parts of the sum of magnitudes


@func
def third(x):
    """cos(acos(x) / 3) for -1 <= x <= 1, to 4e-9: a polynomial in cos(acos(x) / 2), in which it is smooth."""
    w = math.sqrt(max(0.5 + 0.5 * x, 0.0))
    p = 0.00365411963223 - 0.000626045339499 * w
    p = -0.0102375084324 + p * w
    p = 0.019600321025 + p * w
    p = -0.031925412185 + p * w
    p = 0.0532793508602 + p * w
    p = -0.111094492769 + p * w
    p = 0.577349661398 + p * w
    return 0.500000003733 + p * w


@func
def largest_root(a2, a1, a0):
    """zeta3, the largest root of zeta^3 + a2 zeta^2 + a1 zeta + a0, if all three are real; -1 otherwise (rule a2)."""
    p = a2 * a2 * (1.0 / 9.0) - a1 * (1.0 / 3.0)
    q = a2 * (a2 * a2 * (1.0 / 27.0) - a1 * (1.0 / 6.0)) + 0.5 * a0
    # chi of the paper is 108 (q^2 - p^3).
    chi = q * q - p * p * p
    half = math.sqrt(p if p > 0.0 else 0.0)
    cube = p * half
    cosine = -q / (cube if cube > 0.0 else 1.0)
    zeta3 = 2.0 * half * third(min(max(cosine, -1.0), 1.0)) - a2 * (1.0 / 3.0)
    return zeta3 if chi < 0.0 else -1.0


@func
def mixed_adjugate(m, n):
    """The part of adj(m + x n) that is linear in x."""
    return (
        m[1] * n[2] + n[1] * m[2] - 2.0 * m[5] * n[5],
        m[0] * n[2] + n[0] * m[2] - 2.0 * m[4] * n[4],
        m[0] * n[1] + n[0] * m[1] - 2.0 * m[3] * n[3],
        m[4] * n[5] + n[4] * m[5] - m[3] * n[2] - n[3] * m[2],
        m[3] * n[5] + n[3] * m[5] - m[4] * n[1] - n[4] * m[1],
        m[3] * n[4] + n[3] * m[4] - m[5] * n[0] - n[5] * m[0],
    )


@func
def inner(m, n):
    """The trace of the product of two symmetric matrices."""
    return m[0] * n[0] + m[1] * n[1] + m[2] * n[2] + 2.0 * (m[3] * n[3] + m[4] * n[4] + m[5] * n[5])


@func
def divided(m, by):
    """Symmetric matrix m times the number `by`."""
    return (by * m[0], by * m[1], by * m[2], by * m[3], by * m[4], by * m[5])


@func
def proposal(d, m1, m2):
    """The share l in (0, 1) of the second ellipsoid to begin with.

    Where the rules of the paper say "apart", it is that of zeta3, which then proves it. Where they say "in contact",
    and not only just, it is that of two spheres: the maximum of s, which proves it, is nearer to that.
    """
    # Each form is divided by its trace t, d by the root of t1 + t2, and xi by t1 / t2: nothing here is then far from
    # one, whatever the sizes, except what the shapes themselves make small.
    t1, t2 = m1[0] + m1[1] + m1[2], m2[0] + m2[1] + m2[2]
    inverse = 1.0 / (t1 + t2)
    w1, w2 = t1 * inverse, t2 * inverse
    n1, n2 = divided(m1, 1.0 / t1), divided(m2, 1.0 / t2)
    xx, yy, zz = d[0] * d[0] * inverse, d[1] * d[1] * inverse, d[2] * d[2] * inverse
    dd = (xx, yy, zz, d[0] * d[1] * inverse, d[0] * d[2] * inverse, d[1] * d[2] * inverse)
    adj1, adj2 = adjugate(n1), adjugate(n2)
    # det(n1 + x n2) = d0 + d1 x + d2 x^2 + d3 x^3
    d0 = n1[0] * adj1[0] + n1[3] * adj1[3] + n1[4] * adj1[4]
    d3 = n2[0] * adj2[0] + n2[3] * adj2[3] + n2[4] * adj2[4]
    d1, d2 = inner(adj1, n2), inner(adj2, n1)
    # b0 > 0 always (rule a1): both determinants have the same sign.
    scale = 1.0 / (w1 * d3)
    b3 = (w2 * d3 + w1 * d2 - inner(adj2, dd)) * scale
    b2 = (w2 * d2 + w1 * d1 - inner(mixed_adjugate(n1, n2), dd)) * scale
    b1 = (w2 * d1 + w1 * d0 - inner(adj1, dd)) * scale
    b0 = w2 * d0 * scale
    zeta3 = largest_root(0.75 * b3, 0.5 * b2, 0.25 * b1)
    share = zeta3 * w1 / (w2 + zeta3 * w1)
    balls = math.sqrt(w1) / (math.sqrt(w1) + math.sqrt(w2))
    g = (((zeta3 + b3) * zeta3 + b2) * zeta3 + b1) * zeta3 + b0
    whole = (w2 + w1 * zeta3) * (((d3 * zeta3 + d2) * zeta3 + d1) * zeta3 + d0) * scale
    # Rules (a3) and (b): if g(zeta2) and g(zeta3) have different signs, or zeta2 < 0 and the root beyond it is positive,
    # then g(zeta3) < 0, and the other way round. g = (1 - s) whole. What is not a number fails.
    return share if zeta3 > 0.0 and g < NEAR * whole and share < 1.0 else balls


@func
def witness(d, m1, m2, share):
    """The answer that the share l gives, and the l of a Newton step towards the maximum of s."""
    k = 1.0 - share
    s = (
        k * m1[0] + share * m2[0],
        k * m1[1] + share * m2[1],
        k * m1[2] + share * m2[2],
        k * m1[3] + share * m2[3],
        k * m1[4] + share * m2[4],
        k * m1[5] + share * m2[5],
    )
    # S = L D L^T: unlike the adjugate it leaves a residual as small as rounding allows.
    i0 = 1.0 / s[0]
    l10, l20 = s[3] * i0, s[4] * i0
    p1 = s[1] - l10 * s[3]
    i1 = 1.0 / p1
    e = s[5] - l10 * s[4]
    l21 = e * i1
    p2 = s[2] - l20 * s[4] - l21 * e
    i2 = 1.0 / p2
    y1 = d[1] - l10 * d[0]
    z = (d[2] - l20 * d[0] - l21 * y1) * i2
    y = y1 * i1 - l21 * z
    n = (d[0] * i0 - l10 * y - l20 * z, y, z)
    v1, v2 = times(m1, n), times(m2, n)
    square1 = n[0] * v1[0] + n[1] * v1[1] + n[2] * v1[2]
    square2 = n[0] * v2[0] + n[1] * v2[1] + n[2] * v2[2]
    # Upper bounds of both supports.
    t1, t2 = m1[0] + m1[1] + m1[2], m2[0] + m2[1] + m2[2]
    nn = n[0] * n[0] + n[1] * n[1] + n[2] * n[2]
    h1, h2 = math.sqrt(square1 + FORM * t1 * nn), math.sqrt(square2 + FORM * t2 * nn)
    x, y, z = n[0] * d[0], n[1] * d[1], n[2] * d[2]
    along = x + y + z
    apart = along - PLACE * (abs(x) + abs(y) + abs(z)) > (h1 + h2) * (1.0 + PLACE)
    # What is left of d - S n moves the common point. By S^-1 it becomes a change of n, whose h is below `left`; the trace
    # of S^-1, doubled for its own error, is above 1 / (smallest eigenvalue of S).
    r0 = abs(d[0] - k * v1[0] - share * v2[0])
    r1 = abs(d[1] - k * v1[1] - share * v2[1])
    r2 = abs(d[2] - k * v1[2] - share * v2[2])
    far = abs(d[0]) + abs(d[1]) + abs(d[2])
    residual = r0 + r1 + r2 + PLACE * far + FORM * (k * t1 + share * t2) * math.sqrt(nn)
    corner = l10 * l21 - l20
    trace = i0 + i1 * (1.0 + l10 * l10) + i2 * (1.0 + l21 * l21 + corner * corner)
    left = residual * math.sqrt(2.0 * trace)
    # Beyond that condition number the factors of S say nothing.
    definite = s[0] > 0.0 and p1 > 0.0 and p2 > 0.0 and (k * t1 + share * t2) * trace < 1e12
    most = 1.0 - PLACE - left
    common = definite and k * h1 <= most and share * h2 <= most
    # s' and s'' at l; the slope of d.S^-1 d is square1 - square2, its curvature 2 w.S^-1 w with w = (M2 - M1) n.
    w0, w1, w2 = v2[0] - v1[0], v2[1] - v1[1], v2[2] - v1[2]
    w1 -= l10 * w0
    w2 -= l20 * w0 + l21 * w1
    bend = w0 * w0 * i0 + w1 * w1 * i1 + w2 * w2 * i2
    first = k * k * square1 - share * share * square2
    second = 2.0 * (share * k * bend + (k - share) * (square1 - square2) - along)
    step = share - first / (second if second < 0.0 else -1.0)
    # The maximum lies on the side that s' points to; a step never takes more than nine tenths of the way to the end.
    step = min(max(step, 0.1 * share), 1.0 - 0.1 * k)
    return NO if apart else YES if common else MAYBE, step


@func
def separated(d, m1, m2):
    """Whether two ellipsoids touch: NO (they are apart), YES (they share a point), MAYBE (rounding decides).

    d: vector from centre 1 to centre 2 [m]; m1, m2: forms (xx, yy, zz, xy, xz, yz) [m^2]. NO and YES are certain even if
    every entry of a form is wrong by 16 parts in 2^52 of its trace.
    """
    answer, share = witness(d, m1, m2, proposal(d, m1, m2))
    for _ in range(STEPS):
        if answer != MAYBE:
            break
        answer, share = witness(d, m1, m2, share)
    return answer


@func
def form_of(lane, row, k):
    """The form of lane k whose six entries begin at `row`."""
    return (lane[row, k], lane[row + 1, k], lane[row + 2, k], lane[row + 3, k], lane[row + 4, k], lane[row + 5, k])


@func
def characteristic_lanes(lane, used):
    """Whether two ellipsoids touch, LANES pairs at a time: the same answers as `separated`.

    lane (ROWS, LANES): rows 0-2 d [m], 3-8 form of the first [m^2], 9-14 of the second, which are kept; the answer is
    written to row 15 (ANSWER), the rest is working space. used: lanes that hold a pair; the others are filled here.
    """
    for k in range(used, LANES):
        for i in range(15):
            lane[i, k] = 1.0 if 3 <= i < 6 or 9 <= i < 12 else 0.0
    for k in range(LANES):
        d, m1, m2 = (lane[0, k], lane[1, k], lane[2, k]), form_of(lane, 3, k), form_of(lane, 9, k)
        lane[15, k], lane[31, k] = witness(d, m1, m2, proposal(d, m1, m2))
    # The few pairs that are still open are copied to the front of the working space, with their lane number in row 32.
    count = 0
    for k in range(used):
        if lane[15, k] == MAYBE:
            for i in range(15):
                lane[16 + i, count] = lane[i, k]
            lane[31, count], lane[32, count] = lane[31, k], k
            count += 1
    for k in range(count, min(count + GROUP, LANES)):
        for i in range(16, 32):
            lane[i, k] = 1.0 if i != 31 else 0.5
    for _ in range(STEPS):
        for k in range((count + GROUP - 1) // GROUP * GROUP):
            d, m1, m2 = (lane[16, k], lane[17, k], lane[18, k]), form_of(lane, 19, k), form_of(lane, 25, k)
            lane[33, k], lane[31, k] = witness(d, m1, m2, lane[31, k])
        left = 0
        for k in range(count):
            if lane[33, k] == MAYBE:
                for i in range(16, 33):
                    lane[i, left] = lane[i, k]
                left += 1
            else:
                lane[15, int(lane[32, k])] = lane[33, k]
        count = left


def characteristic_block(block, d, m1, m2, answer):
    """The answers of one block of pairs, LANES at a time."""
    lane = np.empty((ROWS, LANES))
    count = len(answer)
    for first in range(block * BLOCK, min(count, (block + 1) * BLOCK), LANES):
        used = min(LANES, count - first)
        for k in range(used):
            for i in range(3):
                lane[i, k] = d[first + k, i]
            for i in range(6):
                lane[3 + i, k] = m1[first + k, i]
                lane[9 + i, k] = m2[first + k, i]
        characteristic_lanes(lane, used)
        for k in range(used):
            answer[first + k] = int(lane[ANSWER, k])


def characteristic_row(p, d, m1, m2, answer):
    """The answer of one pair, for a CUDA grid."""
    answer[p] = separated(
        (d[p, 0], d[p, 1], d[p, 2]),
        (m1[p, 0], m1[p, 1], m1[p, 2], m1[p, 3], m1[p, 4], m1[p, 5]),
        (m2[p, 0], m2[p, 1], m2[p, 2], m2[p, 3], m2[p, 4], m2[p, 5]),
    )


def characteristic(d, m1, m2):
    """Whether pairs of ellipsoids touch: (n,) int8 of NO, YES, MAYBE.

    d (n,3) [m] from the first centre to the second; m1, m2 (n,6) forms xx, yy, zz, xy, xz, yz [m^2].
    """
    device = backend.DEVICE[-1]
    count = len(d)
    answer = device.empty(count, np.int8)
    if device is backend.CPU:
        blocks = kernel(characteristic_block, grain=2, allocates=True, fastmath=("contract", "nsz"))
        blocks((count + BLOCK - 1) // BLOCK, d, m1, m2, answer)
    else:
        kernel(characteristic_row)(count, d, m1, m2, answer)
    return answer

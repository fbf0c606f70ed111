"""The distance of two triangles by Newton's method on a penalty function, 64 pairs side by side, with a proof of the error.

A point of each triangle is p = a0 + x0 (a1 - a0) + x1 (a2 - a0) and q = b0 + x2 (b1 - b0) + x3 (b2 - b0). Newton's method
looks for the least of |p - q|^2 plus a penalty for each of the six limits x0, x1, x2, x3 >= 0, x0 + x1 <= 1, x2 + x3 <= 1
that a point violates. The function is quadratic between its kinks, so a step that meets no new kink is the last one. Its
second derivative is singular where both triangles are parallel, and always in one direction; a small multiple of
the unit matrix is added. All of it is in units of the longest edge.

The points are then moved onto the triangles. Their distance is never below the true one; and the extent between the two
triangles along p - q is never above it. So a pair whose two bounds are within the tolerance of each other is proved, and
of every other one it is known that it is not.

Rows of a lane from 18 on are used here: the square of the longest edge, ten entries of the second derivative, four
coordinates, 1.0 while a lane still moves, else 0.0, and the eight rows of the answer. They are in one array with
the corners, because the compiler then knows that none of them overlap.
"""

import math

from ..kernels.backend import fused
from .triangle_triangle import TINY, along, inner, less

LANES = 64  # pairs side by side
SIZE, HESSIAN, X, MOVES, ANSWER = 18, 19, 29, 33, 34
ROWS = 45  # the last three are needed in triangle_lanes

PENALTY = 1e8  # of a limit; larger is more exact until rounding of the factor, 1e-16 of it, comes near to DAMPING
DAMPING = 1e-6  # added to the diagonal; smaller takes fewer steps but fails for parallel faces
ROUNDING = 2e-15  # of size and distance: what rounding may add to the difference of the bounds

# The last row of the answer.
APART, MAYBE, UNPROVED = 0.0, 1.0, 2.0


@fused
def corner(lane, i, k):
    """The point in rows i to i + 2 of lane k."""
    return (lane[i, k], lane[i + 1, k], lane[i + 2, k])


@fused
def edges(lane, k):
    """w = a0 - b0, and how p - q changes with each of the four coordinates."""
    a, b = corner(lane, 0, k), corner(lane, 9, k)
    return (
        less(a, b),
        less(corner(lane, 3, k), a),
        less(corner(lane, 6, k), a),
        less(b, corner(lane, 12, k)),
        less(b, corner(lane, 15, k)),
    )


@fused
def start_lanes(lane):
    """What Newton's method needs, and the middle of both triangles to begin with."""
    for k in range(LANES):
        _, u, v, s, t = edges(lane, k)
        uu, vv, ss, tt = inner(u, u), inner(v, v), inner(s, s), inner(t, t)
        uv, st = inner(u, v), inner(s, t)
        # Squares of the third edges, u - v and s - t.
        size = max(max(max(uu, vv), uu + vv - 2.0 * uv), max(max(ss, tt), ss + tt - 2.0 * st)) + TINY
        least = DAMPING * size
        lane[18, k] = size
        lane[19, k], lane[20, k], lane[21, k], lane[22, k] = uu + least, uv, inner(u, s), inner(u, t)
        lane[23, k], lane[24, k], lane[25, k] = vv + least, inner(v, s), inner(v, t)
        lane[26, k], lane[27, k], lane[28, k] = ss + least, st, tt + least
        for i in range(4):
            lane[29 + i, k] = 1.0 / 3.0
        lane[33, k] = 1.0


@fused
def newton_lanes(lane):
    """One step of Newton's method in all lanes that still move."""
    for k in range(LANES):
        w, u, v, s, t = edges(lane, k)
        x0, x1, x2, x3 = lane[29, k], lane[30, k], lane[31, k], lane[32, k]
        stiff = PENALTY * lane[18, k]
        d = along(along(along(along(w, x0, u), x1, v), x2, s), x3, t)
        over, beyond = x0 + x1 - 1.0, x2 + x3 - 1.0
        k0, k1, k2 = (stiff if x0 < 0.0 else 0.0), (stiff if x1 < 0.0 else 0.0), (stiff if over > 0.0 else 0.0)
        k3, k4, k5 = (stiff if x2 < 0.0 else 0.0), (stiff if x3 < 0.0 else 0.0), (stiff if beyond > 0.0 else 0.0)
        g0, g1 = inner(u, d) + k0 * x0 + k2 * over, inner(v, d) + k1 * x1 + k2 * over
        g2, g3 = inner(s, d) + k3 * x2 + k5 * beyond, inner(t, d) + k4 * x3 + k5 * beyond
        h00, h01, h02, h03 = lane[19, k] + (k0 + k2), lane[20, k] + k2, lane[21, k], lane[22, k]
        h11, h12, h13 = lane[23, k] + (k1 + k2), lane[24, k], lane[25, k]
        h22, h23, h33 = lane[26, k] + (k3 + k5), lane[27, k] + k5, lane[28, k] + (k4 + k5)
        # Elimination of a symmetric matrix whose pivots the damping keeps above zero.
        i0 = 1.0 / h00
        l1, l2, l3 = h01 * i0, h02 * i0, h03 * i0
        h11, h12, h13 = h11 - l1 * h01, h12 - l1 * h02, h13 - l1 * h03
        h22, h23, h33 = h22 - l2 * h02, h23 - l2 * h03, h33 - l3 * h03
        i1 = 1.0 / h11
        m2, m3 = h12 * i1, h13 * i1
        h22, h23, h33 = h22 - m2 * h12, h23 - m2 * h13, h33 - m3 * h13
        i2 = 1.0 / h22
        n3 = h23 * i2
        z1 = g1 - l1 * g0
        z2 = g2 - l2 * g0 - m2 * z1
        z3 = g3 - l3 * g0 - m3 * z1 - n3 * z2
        d3 = z3 / (h33 - n3 * h23)
        d2 = z2 * i2 - n3 * d3
        d1 = z1 * i1 - m2 * d2 - m3 * d3
        d0 = g0 * i0 - l1 * d1 - l2 * d2 - l3 * d3
        # A product in place of a choice: it leaves lanes that are done as they are, to the bit.
        move = lane[33, k]
        lane[29, k], lane[30, k], lane[31, k], lane[32, k] = (
            x0 - move * d0,
            x1 - move * d1,
            x2 - move * d2,
            x3 - move * d3,
        )


@fused
def within(x, y):
    """The coordinates of a point of the triangle near (x, y)."""
    x, y = max(x, 0.0), max(y, 0.0)
    shrink = 1.0 / max(x + y, 1.0)
    return x * shrink, y * shrink


@fused
def prove_lanes(lane, tolerance):
    """Points on the triangles, their square distance, and what is proved of it, as the answer.

    tolerance: largest difference of the bounds, relative to the longest edge. The last row of the answer: APART if the pair is
    proved and certainly does not cross, MAYBE if it is proved to be nearer than the tolerance, UNPROVED. The last ones
    go on moving.
    """
    for k in range(LANES):
        w, u, v, s, t = edges(lane, k)
        x0, x1 = within(lane[29, k], lane[30, k])
        x2, x3 = within(lane[31, k], lane[32, k])
        d = along(along(along(along(w, x0, u), x1, v), x2, s), x3, t)
        square = inner(d, d)
        # Extents along d times its length: the nearest corner of A and the farthest of B, both from b0.
        near = inner(w, d) + min(min(inner(u, d), inner(v, d)), 0.0)
        far = -min(min(inner(s, d), inner(t, d)), 0.0)
        low = near - far
        length, size = math.sqrt(square), math.sqrt(lane[18, k])
        proved = square - max(low, 0.0) + ROUNDING * (size + length) * length <= tolerance * size * length
        lane[34, k] = square
        lane[35, k], lane[36, k], lane[37, k] = along(along(corner(lane, 0, k), x0, u), x1, v)
        lane[38, k], lane[39, k], lane[40, k] = along(along(corner(lane, 9, k), -x2, s), -x3, t)
        state = APART if low > ROUNDING * (size + length) * length else MAYBE
        lane[41, k] = state if proved else UNPROVED
        lane[33, k] = 0.0 if proved else 1.0

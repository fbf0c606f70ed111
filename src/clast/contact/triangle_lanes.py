"""Distances of 64 pairs of triangles side by side: the same answers as one pair at a time, in vector instructions.

All methods have one signature, name(lane, tolerance, result):

lane (18 or more rows, LANES) [m]: corners of the first triangle (rows 0-8: x y z of the first, second, third corner) and
of the second (rows 9-17). All columns must hold numbers, those that are not in use too.
result (8 or more rows, LANES): row 0 the square distance [m^2], 1-3 the nearest point p of the first, 4-6 q of the second [m],
7 is 1.0 where the triangles cross, else 0.0.

The caller makes both with np.empty of constant shape in the row function itself: only then does the compiler know the
distance of two rows, and makes vector instructions of the loops in here.
"""

from ..backend import fused
from .triangle_pair import triangle_triangle

LANES = 64  # pairs side by side
ROWS = 18  # of a lane
RESULT = 8  # rows of a result
SQUARE, P, Q, CROSSING = 0, 1, 4, 7


@fused
def corner(lane, i, k):
    """The point in rows i to i + 2 of lane k."""
    return (lane[i, k], lane[i + 1, k], lane[i + 2, k])


@fused
def brute_lanes(lane, tolerance, result):
    """All pairs of features of each pair of triangles; the tolerance is not needed."""
    for k in range(LANES):
        square, p, q, crossing = triangle_triangle(
            corner(lane, 0, k),
            corner(lane, 3, k),
            corner(lane, 6, k),
            corner(lane, 9, k),
            corner(lane, 12, k),
            corner(lane, 15, k),
        )
        result[0, k] = square
        result[1, k], result[2, k], result[3, k] = p
        result[4, k], result[5, k], result[6, k] = q
        result[7, k] = crossing

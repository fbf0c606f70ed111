"""Distances of 64 pairs of triangles side by side: the same answers as one pair at a time, in vector instructions.

All methods have one signature, name(lane, tolerance, result):

lane (18 or more rows, LANES) [m]: corners of the first triangle (rows 0-8: x y z of the first, second, third corner) and
of the second (rows 9-17). All columns must hold numbers, those that are not in use too.
result (8 or more rows, LANES): row 0 the square distance [m^2], 1-3 the nearest point p of the first, 4-6 q of the second [m],
7 is 1.0 where the triangles cross, else 0.0.

The caller makes both with np.empty of constant shape in the row function itself: only then does the compiler know the
distance of two rows, and makes vector instructions of the loops in here.
"""

from ..backend import func, fused, part
from .triangle_pair import crossing_point, features

LANES = 64  # pairs side by side
ROWS = 18  # of a lane
RESULT = 8  # rows of a result
SQUARE, P, Q, CROSSING = 0, 1, 4, 7


@fused
def corner(lane, i, k):
    """The point in rows i to i + 2 of lane k."""
    return (lane[i, k], lane[i + 1, k], lane[i + 2, k])


@fused
def corners(lane, k):
    """The six corners of the pair in lane k."""
    return (
        corner(lane, 0, k),
        corner(lane, 3, k),
        corner(lane, 6, k),
        corner(lane, 9, k),
        corner(lane, 12, k),
        corner(lane, 15, k),
    )


@fused
def brute_lanes(lane, tolerance, result):
    """All pairs of features of each pair of triangles; the tolerance is not needed."""
    for k in range(LANES):
        a0, a1, a2, b0, b1, b2 = corners(lane, k)
        square, p, q, maybe = features(a0, a1, a2, b0, b1, b2)
        result[0, k] = square
        result[1, k], result[2, k], result[3, k] = p
        result[4, k], result[5, k], result[6, k] = q
        result[7, k] = 1.0 if maybe else 0.0
    cross_lanes(lane, result)


@part
def cross_lanes(lane, result):
    """Look for a crossing where it may be; few are, so one after the other.

    The compiler would make masked vector instructions of a plain loop, for all lanes and slower than all the rest; it does
    not of a search for the next one.
    """
    k = next_marked(result, 0)
    while k < LANES:
        a0, a1, a2, b0, b1, b2 = corners(lane, k)
        crossing, c = crossing_point(a0, a1, a2, b0, b1, b2)
        result[7, k] = 0.0
        if crossing:
            result[0, k] = 0.0
            result[1, k], result[2, k], result[3, k] = c
            result[4, k], result[5, k], result[6, k] = c
            result[7, k] = 1.0
        k = next_marked(result, k + 1)


@func
def next_marked(result, k):
    """The first lane from k on with a mark in row 7, or LANES."""
    while k < LANES and result[7, k] == 0.0:
        k += 1
    return k

"""Distances of 64 pairs of triangles side by side: four methods, all in vector instructions and with one signature.

brute measures all pairs of features. The others run Newton's method on a penalty function first (`triangle_penalty`), which
proves the error of each pair, and differ in what they do with pairs that are not proved within the tolerance:

penalty          goes on with Newton's method, up to MOST steps, then measures what is left by brute force
hybrid-pairs     after STEPS steps measures those pairs by brute force
hybrid-batches   after STEPS steps measures the whole batch of 64 by brute force if there is such a pair

name(lane, tolerance, result):

lane (ROWS, LANES): rows 0-8 corners of the first triangle (x y z of the first, second, third corner) [m], 9-17 of the
second; the other rows are used by the methods. All columns must hold numbers, those that are not in use too.
tolerance: largest error of the distance, relative to the longest edge of the two triangles; brute has none.
result (RESULT, LANES): row 0 the square distance [m^2], 1-3 the nearest point p of the first, 4-6 q of the second [m],
7 is 1.0 where the triangles cross, else 0.0.

The caller makes both with np.empty of constant shape in the row function itself: only then does the compiler know the
distance of two rows, and makes vector instructions of the loops in here. A lane does not depend on the others, but
for hybrid-batches, where a pair in a batch with a hard one is measured more exactly.
"""

from ..kernels.backend import func, fused, part
from .triangle_penalty import ANSWER, APART, MAYBE, MOVES, UNPROVED, corner, newton_lanes, prove_lanes, start_lanes
from .triangle_penalty import LANES as LANES
from .triangle_penalty import ROWS as ROWS
from .triangle_triangle import crossing_point, features

RESULT = 8  # rows of a result
GROUP = 16  # pairs side by side where brute force replaces single answers
WHERE = 36  # row with the lanes that are replaced
STEPS = 4  # of Newton's method before the error is looked at
MORE = 2  # between two looks
MOST = 8  # pairs that are not proved by then hardly ever are


@fused
def corners(lane, i, k):
    """The six corners in rows i to i + 17 of lane k."""
    return (
        corner(lane, i, k),
        corner(lane, i + 3, k),
        corner(lane, i + 6, k),
        corner(lane, i + 9, k),
        corner(lane, i + 12, k),
        corner(lane, i + 15, k),
    )


@func
def next_marked(table, row, k):
    """The first lane from k on that is not zero in this row, or LANES."""
    while k < LANES and table[row, k] == 0.0:
        k += 1
    return k


@func
def put(result, k, square, p, q, state):
    """Write an answer into lane k."""
    result[0, k] = square
    result[1, k], result[2, k], result[3, k] = p
    result[4, k], result[5, k], result[6, k] = q
    result[7, k] = state


@part
def cross_lanes(lane, result):
    """Pairs marked MAYBE in row 7 of result, one after the other: whether they cross.

    Few are marked. The compiler would make masked vector instructions of a plain loop over the lanes, slower than all the
    rest; it does not of a search for the next one.
    """
    k = next_marked(result, 7, 0)
    while k < LANES:
        a0, a1, a2, b0, b1, b2 = corners(lane, 0, k)
        crossing, c = crossing_point(a0, a1, a2, b0, b1, b2)
        result[7, k] = 0.0
        if crossing:
            put(result, k, 0.0, c, c, 1.0)
        k = next_marked(result, 7, k + 1)


@fused
def measure_lane(lane, i, k, answer):
    """All pairs of features of the pair in rows i to i + 17 of lane k; marked MAYBE where the triangles may cross."""
    a0, a1, a2, b0, b1, b2 = corners(lane, i, k)
    square, p, q, maybe = features(a0, a1, a2, b0, b1, b2)
    lane[answer, k] = square
    lane[answer + 1, k], lane[answer + 2, k], lane[answer + 3, k] = p
    lane[answer + 4, k], lane[answer + 5, k], lane[answer + 6, k] = q
    lane[answer + 7, k] = MAYBE if maybe else APART


@fused
def replace_lanes(lane, result):
    """Pairs marked UNPROVED in row 7 of result by brute force: put side by side first, then GROUP at a time."""
    count = 0
    for k in range(LANES):
        lane[WHERE, count] = k
        count += 1 if result[7, k] == UNPROVED else 0
    for c in range((count + GROUP - 1) // GROUP * GROUP):
        # The last group is filled up with any pair.
        k = int(lane[WHERE, c]) if c < count else 0
        for i in range(18):
            lane[18 + i, c] = lane[i, k]
    for first in range(0, count, GROUP):
        for j in range(GROUP):
            measure_lane(lane, 18, first + j, 37)
    for c in range(count):
        k = int(lane[WHERE, c])
        for i in range(RESULT):
            result[i, k] = lane[37 + i, c]


@fused
def measure_lanes(lane):
    """All pairs of features of each pair."""
    for k in range(LANES):
        measure_lane(lane, 0, k, ANSWER)


@fused
def answer_lanes(lane, result):
    """Hand over the answers as they are, marks too."""
    for i in range(RESULT):
        for k in range(LANES):
            result[i, k] = lane[ANSWER + i, k]


@fused
def try_penalty(lane, tolerance):
    """STEPS steps of Newton's method and what they prove; whether all is proved."""
    start_lanes(lane)
    for _ in range(STEPS):
        newton_lanes(lane)
    prove_lanes(lane, tolerance)
    return next_marked(lane, MOVES, 0) == LANES


@fused
def brute_lanes(lane, tolerance, result):
    """All pairs of features; the tolerance is not needed."""
    measure_lanes(lane)
    answer_lanes(lane, result)
    cross_lanes(lane, result)


@fused
def penalty_lanes(lane, tolerance, result):
    """Newton's method until all pairs are proved, at most MOST steps; then brute force for those that are not."""
    start_lanes(lane)
    step, until = 0, STEPS
    while step < until:
        newton_lanes(lane)
        step += 1
        if step == until:
            prove_lanes(lane, tolerance)
            if step < MOST and next_marked(lane, MOVES, 0) < LANES:
                until += MORE
    answer_lanes(lane, result)
    replace_lanes(lane, result)
    cross_lanes(lane, result)


@fused
def hybrid_pairs_lanes(lane, tolerance, result):
    """STEPS steps of Newton's method; then brute force for each pair that is not proved."""
    try_penalty(lane, tolerance)
    answer_lanes(lane, result)
    replace_lanes(lane, result)
    cross_lanes(lane, result)


@fused
def hybrid_batches_lanes(lane, tolerance, result):
    """STEPS steps of Newton's method; then brute force for all pairs if there is one that is not proved."""
    if not try_penalty(lane, tolerance):
        measure_lanes(lane)
    answer_lanes(lane, result)
    cross_lanes(lane, result)


METHODS = {
    "brute": brute_lanes,
    "penalty": penalty_lanes,
    "hybrid-pairs": hybrid_pairs_lanes,
    "hybrid-batches": hybrid_batches_lanes,
}

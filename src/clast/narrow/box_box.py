"""Two boxes: the same answer as for any two polyhedra, from their half-widths in a few dozen products.

A box is its own mirror image, so along any direction it reaches the sum of its half-widths times the components: no corner is
looked at. 3 + 3 normals of faces and 9 common normals of edges are all there is (Gottschalk et al. 1996). Which of them parts two boxes most is found
for many side by side.
"""

import math
from typing import Any

import numpy as np

from ..kernels.backend import func
from ..kernels.vec import (
    cross,
    dot,
    lane_vector,
    put_lane_vector,
    quat_matrix,
    quat_multiply,
    rotate,
    scale,
    transposed,
)

NARROW = 1e-12  # squared sine between two edges below which they have no common normal


@func
def reach(size, a, b, c):
    """How far a box with half-widths `size` reaches along a direction with components a, b, c in its axes."""
    return size[0] * abs(a) + size[1] * abs(b) + size[2] * abs(c)


@func
def unit_axis(i, sign):
    """The unit vector along axis i, times sign."""
    return (sign if i == 0 else 0.0, sign if i == 1 else 0.0, sign if i == 2 else 0.0)


# Columns of two boxes that are looked at side by side: orientations of both (4, 4), way from the first to the second in the world (3) [m],
# half-widths of both (3, 3) [m], by how much a pair of edges must be better than a face [m]; then what is found of them: how the second
# lies in the axes of the first, (9) and (3) [m], the largest separation [m], and along which axes.
FIRST, SECOND, WORLD, WIDTH_A, WIDTH_B, TOLERANCE, TURN, WAY, APART, AXES = 0, 4, 8, 11, 14, 17, 18, 27, 30, 31
ROWS = 32
LANES = 16  # boxes a time
NONE = 3  # in place of an axis: 4 * (axis of a) + axis of b


@func
def put_boxes(lane, k, qa, qb, way, xa, xb, tolerance):
    """Write two boxes into lane k."""
    for i in range(4):
        lane[FIRST + i, k], lane[SECOND + i, k] = qa[i], qb[i]
    for i in range(3):
        lane[WORLD + i, k], lane[WIDTH_A + i, k], lane[WIDTH_B + i, k] = way[i], xa[i], xb[i]
    lane[TOLERANCE, k] = tolerance


@func
def lane_pose(lane, k):
    """How the second box lies in the axes of the first in lane k: matrix of its turn, way from centre to centre."""
    return (lane_vector(lane, TURN, k), lane_vector(lane, TURN + 3, k), lane_vector(lane, TURN + 6, k)), lane_vector(
        lane, WAY, k
    )


@func
def part_boxes(lane, used):
    """The pose, the largest separation and its axes in the first lanes, 16 at a time, without branches.

    One axis: the normal of a face; both: the common normal of two edges along them, which must be better than a face by the tolerance.
    """
    k: Any
    for k in range(used, (used + LANES - 1) // LANES * LANES):
        for row in range(TURN):
            lane[row, np.uintp(k)] = 1.0  # harmless where nobody waits
    for base in range(0, used, LANES):
        for i in range(LANES):
            k = np.uintp(base + i)
            q = (lane[FIRST, k], -lane[FIRST + 1, k], -lane[FIRST + 2, k], -lane[FIRST + 3, k])
            p = (lane[SECOND, k], lane[SECOND + 1, k], lane[SECOND + 2, k], lane[SECOND + 3, k])
            turn, d = quat_matrix(quat_multiply(q, p)), rotate(q, lane_vector(lane, WORLD, k))
            s, axes = box_separation(
                lane_vector(lane, WIDTH_A, k), lane_vector(lane, WIDTH_B, k), turn, d, lane[TOLERANCE, k]
            )
            put_lane_vector(lane, TURN, k, turn[0])
            put_lane_vector(lane, TURN + 3, k, turn[1])
            put_lane_vector(lane, TURN + 6, k, turn[2])
            put_lane_vector(lane, WAY, k, d)
            lane[APART, k], lane[AXES, k] = s, axes


@func
def box_separation(xa, xb, turn, d, tolerance):
    """The largest separation [m] of two boxes, and its axes, see NONE.

    xa, xb (3,): half-widths [m]; turn, d: how b lies in the axes of a. Written out: the compiler does not make vector instructions of short loops.
    """
    back = transposed(turn)
    found = face_gap(abs(d[0]) - xa[0] - reach(xb, *turn[0]), 4.0 * 0 + NONE, (-math.inf, 0.0))
    found = face_gap(abs(d[1]) - xa[1] - reach(xb, *turn[1]), 4.0 * 1 + NONE, found)
    found = face_gap(abs(d[2]) - xa[2] - reach(xb, *turn[2]), 4.0 * 2 + NONE, found)
    first, axes = found
    found = first + tolerance, axes
    found = face_gap(abs(dot(back[0], d)) - xb[0] - reach(xa, *back[0]), 4.0 * NONE + 0, found)
    found = face_gap(abs(dot(back[1], d)) - xb[1] - reach(xa, *back[1]), 4.0 * NONE + 1, found)
    found = face_gap(abs(dot(back[2], d)) - xb[2] - reach(xa, *back[2]), 4.0 * NONE + 2, found)
    face = first if found[1] == axes else found[0]
    axes = found[1]
    found = face + tolerance, axes
    found = edge_gap(
        0, 0, (xa[1], xa[2]), (xb[1], xb[2]), (turn[1][0], turn[2][0]), (turn[0][1], turn[0][2]), (d[1], d[2]), found
    )
    found = edge_gap(
        0, 1, (xa[1], xa[2]), (xb[2], xb[0]), (turn[1][1], turn[2][1]), (turn[0][2], turn[0][0]), (d[1], d[2]), found
    )
    found = edge_gap(
        0, 2, (xa[1], xa[2]), (xb[0], xb[1]), (turn[1][2], turn[2][2]), (turn[0][0], turn[0][1]), (d[1], d[2]), found
    )
    found = edge_gap(
        1, 0, (xa[2], xa[0]), (xb[1], xb[2]), (turn[2][0], turn[0][0]), (turn[1][1], turn[1][2]), (d[2], d[0]), found
    )
    found = edge_gap(
        1, 1, (xa[2], xa[0]), (xb[2], xb[0]), (turn[2][1], turn[0][1]), (turn[1][2], turn[1][0]), (d[2], d[0]), found
    )
    found = edge_gap(
        1, 2, (xa[2], xa[0]), (xb[0], xb[1]), (turn[2][2], turn[0][2]), (turn[1][0], turn[1][1]), (d[2], d[0]), found
    )
    found = edge_gap(
        2, 0, (xa[0], xa[1]), (xb[1], xb[2]), (turn[0][0], turn[1][0]), (turn[2][1], turn[2][2]), (d[0], d[1]), found
    )
    found = edge_gap(
        2, 1, (xa[0], xa[1]), (xb[2], xb[0]), (turn[0][1], turn[1][1]), (turn[2][2], turn[2][0]), (d[0], d[1]), found
    )
    found = edge_gap(
        2, 2, (xa[0], xa[1]), (xb[0], xb[1]), (turn[0][2], turn[1][2]), (turn[2][0], turn[2][1]), (d[0], d[1]), found
    )
    return (face if found[1] == axes else found[0]), found[1]


@func
def face_gap(s, axes, found):
    """The better of a separation [m] along these axes and of what was found."""
    return (s if s > found[0] else found[0]), (axes if s > found[0] else found[1])


@func
def edge_gap(i, j, a, b, r, s, d, found):
    """The better of the separation [m] of edges along axis i of the first box and axis j of the second and of what was found: (separation, axes).

    Along the two axes after i or j: half-widths a, b; r, components of the second's axis j in the first; s, of the first's axis i in the second; d, of the
    way from centre to centre.
    """
    better, axes = found
    gap = abs(d[1] * r[0] - d[0] * r[1]) - (a[0] * abs(r[1]) + a[1] * abs(r[0]) + b[0] * abs(s[1]) + b[1] * abs(s[0]))
    square = r[0] * r[0] + r[1] * r[1]
    wide = square > NARROW
    # Dividing by the sine of their angle, which is below 1, makes a negative separation smaller still.
    true = gap / math.sqrt(square if wide else 1.0)
    is_better = wide & (gap > better) & (true > better)
    return (true if is_better else better), (4.0 * i + j if is_better else axes)


@func
def box_normal(axes, turn, d):
    """What `box_separation` found: normal (3,) from a to b, axis of a or -1, axis of b or -1."""
    one, two = int(axes) // 4, int(axes) % 4
    back = transposed(turn)
    if two == NONE:
        return unit_axis(one, 1.0 if component(d, one) >= 0.0 else -1.0), one, -1
    axis = back[0] if two == 0 else (back[1] if two == 1 else back[2])
    if one == NONE:
        return scale(1.0 if dot(axis, d) >= 0.0 else -1.0, axis), -1, two
    m = cross(unit_axis(one, 1.0), axis)
    return scale((1.0 if dot(m, d) >= 0.0 else -1.0) / math.sqrt(dot(m, m)), m), one, two


@func
def face_of(h, axis, positive, hulls):
    """The face of box h at the end of an axis, counted within its hull."""
    return hulls.box_face[h, 2 * axis + (1 if positive else 0)]


@func
def edge_of(h, axis, n, hulls):
    """The edge of box h along an axis that is farthest along n, in its axes: a row of Hulls.edge."""
    second, third = n[(axis + 1) % 3], n[(axis + 2) % 3]
    return hulls.box_edge[h, 4 * axis + (2 if second >= 0.0 else 0) + (1 if third >= 0.0 else 0)]


@func
def component(v, i):
    """Component i of a vector, by selects: an index would send the vector through memory."""
    return v[0] if i == 0 else (v[1] if i == 1 else v[2])


@func
def rolled(v, i):
    """The components of a vector along the two axes after i, and along i."""
    return (component(v, (i + 1) % 3), component(v, (i + 2) % 3), component(v, i))


@func
def unrolled(v, i):
    """The vector whose `rolled` components these are."""
    return (component(v, (2 - i) % 3), component(v, (3 - i) % 3), component(v, (4 - i) % 3))

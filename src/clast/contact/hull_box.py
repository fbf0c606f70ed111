"""Two boxes: the same answer as for any two polyhedra, from their half-widths in a few dozen products.

A box is its own mirror image, so along any direction it reaches the sum of its half-widths times the components: no corner is
looked at. 3 + 3 normals of faces and 9 common normals of edges are all there is (Gottschalk et al. 1996).
"""

import math

from ..backend import func
from ..vec import cross, dot, matrix_vector, transposed

NARROW = 1e-12  # squared sine between two edges below which they have no common normal


@func
def reach(size, a, b, c):
    """How far a box with half-widths `size` reaches along a direction with components a, b, c in its axes."""
    return size[0] * abs(a) + size[1] * abs(b) + size[2] * abs(c)


@func
def unit_axis(i, sign):
    """The unit vector along axis i, times sign."""
    return (sign if i == 0 else 0.0, sign if i == 1 else 0.0, sign if i == 2 else 0.0)


@func
def box_separation(xa, xb, turn, d, limit, tolerance):
    """The largest separation of two boxes: (s, n, axis of a or -1, axis of b or -1).

    xa, xb (3,): half-widths [m]; turn, d: how b lies in the axes of a. n (3,): unit, from a to b. One axis: the normal of a face;
    both: the common normal of two edges along them, which must be better than a face by `tolerance` [m]. The search ends with the
    first separation above `limit`.
    """
    best, n, one, two = -math.inf, (0.0, 0.0, 0.0), -1, -1
    for i in range(3):
        row = turn[i]
        s = abs(d[i]) - xa[i] - reach(xb, row[0], row[1], row[2])
        if s > best:
            best, one = s, i
    n = unit_axis(one, 1.0 if d[one] >= 0.0 else -1.0)
    if best > limit:
        return best, n, one, two
    back = transposed(turn)
    better = best + tolerance
    for j in range(3):
        axis = back[j]
        along = dot(axis, d)
        s = abs(along) - xb[j] - reach(xa, axis[0], axis[1], axis[2])
        if s > better:
            sign = 1.0 if along >= 0.0 else -1.0
            best, better, n, one, two = s, s, (sign * axis[0], sign * axis[1], sign * axis[2]), -1, j
    if best > limit:
        return best, n, one, two
    better = best + tolerance
    for i in range(3):
        own = unit_axis(i, 1.0)
        for j in range(3):
            m = cross(own, back[j])
            along = dot(m, d)
            w = matrix_vector(back, m)
            s = abs(along) - reach(xa, m[0], m[1], m[2]) - reach(xb, w[0], w[1], w[2])
            # Dividing by the length of m, which is below 1, makes a negative separation smaller still.
            if s > better:
                square = dot(m, m)
                if square > NARROW:
                    length = math.sqrt(square)
                    s /= length
                    if s > better:
                        f = (1.0 if along >= 0.0 else -1.0) / length
                        best, better, n, one, two = s, s, (f * m[0], f * m[1], f * m[2]), i, j
                        if s > limit:
                            return best, n, one, two
    return best, n, one, two


@func
def face_of(h, axis, positive, hulls):
    """The face of box h at the end of an axis, counted within its hull."""
    return hulls.box_face[h, 2 * axis + (1 if positive else 0)]


@func
def edge_of(h, axis, n, hulls):
    """The edge of box h along an axis that is farthest along n, in its axes: a row of Hulls.edge."""
    second, third = n[(axis + 1) % 3], n[(axis + 2) % 3]
    return hulls.box_edge[h, 4 * axis + (2 if second >= 0.0 else 0) + (1 if third >= 0.0 else 0)]

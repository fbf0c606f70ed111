"""Two boxes: the same answer as for any two polyhedra, from their half-widths in a few dozen products.

A box is its own mirror image, so along any direction it reaches the sum of its half-widths times the components: no corner is
looked at. 3 + 3 normals of faces and 9 common normals of edges are all there is (Gottschalk et al. 1996).
"""

import math

from ..kernels.backend import func
from ..kernels.vec import cross, dot, scale, transposed

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
    """The largest separation of two boxes: (s [m], n, axis of a or -1, axis of b or -1).

    xa, xb (3,): half-widths [m]; turn, d: how b lies in the axes of a. n (3,): unit, from a to b. One axis: the normal of a face;
    both: the common normal of two edges along them, which must be better than a face by `tolerance` [m]. The search ends with faces
    if one of them has more than `limit`.
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
    pair = -1
    pair, better = edge_gap(
        0, 0, xa[1], xa[2], xb[1], xb[2], turn[1][0], turn[2][0], turn[0][1], turn[0][2], d[1], d[2], pair, better
    )
    pair, better = edge_gap(
        0, 1, xa[1], xa[2], xb[2], xb[0], turn[1][1], turn[2][1], turn[0][2], turn[0][0], d[1], d[2], pair, better
    )
    pair, better = edge_gap(
        0, 2, xa[1], xa[2], xb[0], xb[1], turn[1][2], turn[2][2], turn[0][0], turn[0][1], d[1], d[2], pair, better
    )
    pair, better = edge_gap(
        1, 0, xa[2], xa[0], xb[1], xb[2], turn[2][0], turn[0][0], turn[1][1], turn[1][2], d[2], d[0], pair, better
    )
    pair, better = edge_gap(
        1, 1, xa[2], xa[0], xb[2], xb[0], turn[2][1], turn[0][1], turn[1][2], turn[1][0], d[2], d[0], pair, better
    )
    pair, better = edge_gap(
        1, 2, xa[2], xa[0], xb[0], xb[1], turn[2][2], turn[0][2], turn[1][0], turn[1][1], d[2], d[0], pair, better
    )
    pair, better = edge_gap(
        2, 0, xa[0], xa[1], xb[1], xb[2], turn[0][0], turn[1][0], turn[2][1], turn[2][2], d[0], d[1], pair, better
    )
    pair, better = edge_gap(
        2, 1, xa[0], xa[1], xb[2], xb[0], turn[0][1], turn[1][1], turn[2][2], turn[2][0], d[0], d[1], pair, better
    )
    pair, better = edge_gap(
        2, 2, xa[0], xa[1], xb[0], xb[1], turn[0][2], turn[1][2], turn[2][0], turn[2][1], d[0], d[1], pair, better
    )
    if pair >= 0:
        best, one, two = better, pair // 3, pair % 3
        m = cross(unit_axis(one, 1.0), back[two])
        n = scale((1.0 if dot(m, d) >= 0.0 else -1.0) / math.sqrt(dot(m, m)), m)
    return best, n, one, two


@func
def edge_gap(i, j, a1, a2, b1, b2, r1, r2, s1, s2, d1, d2, pair, better):
    """The better of what is there and the separation of edges along axis i of a and axis j of b: (3 i + j, s) or as given.

    1 and 2 stand for the two axes after i or j: half-widths a, b; r, components of b's axis j in a's; s, of a's axis i in b's;
    d, of the way from centre to centre.
    """
    s = abs(d2 * r1 - d1 * r2) - (a1 * abs(r2) + a2 * abs(r1) + b1 * abs(s2) + b2 * abs(s1))
    # Dividing by the sine of their angle, which is below 1, makes a negative separation smaller still.
    if s > better:
        square = r1 * r1 + r2 * r2
        if square > NARROW:
            s /= math.sqrt(square)
            if s > better:
                return 3 * i + j, s
    return pair, better


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

"""How far triangulated particles reach along a direction, and the direction along which two of them are farthest apart.

Of two bodies that bulge, the nearest triangles are those that reach farthest towards each other along the direction between their
convex hulls; of others that direction still tells that most triangles are not. The direction comes from Gilbert, Johnson
and Keerthi's method, as in `hull_distance`; the tree of boxes finds the farthest corner along a direction.
"""

import math

from ..kernels.backend import func, part
from ..kernels.vec import dot, norm, normalize, sub
from .mesh_candidates import own_corner
from .mesh_tree import placed
from .polyhedron_distance import known, nearest_on_simplex, without_zeros

STEPS = 30  # of the method; what is found by then is as true as any direction
CONTAINED = 1e-13  # of the size of the bodies: a simplex this near to the origin shows that their hulls touch
CERTAIN = 1e-12  # of the size of the bodies: a direction this near to the best one will do


@func
def seen_from_partner(m, n):
    """The vector n in the axes of the partner, times its size factor."""
    return (
        m[0][0] * n[0] + m[1][0] * n[1] + m[2][0] * n[2],
        m[0][1] * n[0] + m[1][1] * n[1] + m[2][1] * n[2],
        m[0][2] * n[0] + m[1][2] * n[1] + m[2][2] * n[2],
    )


@func
def height_of(target, row, i, n):
    """The three corners of the triangle in column i along n."""
    return (
        target[row, i] * n[0] + target[row + 1, i] * n[1] + target[row + 2, i] * n[2],
        target[row + 3, i] * n[0] + target[row + 4, i] * n[1] + target[row + 5, i] * n[2],
        target[row + 6, i] * n[0] + target[row + 7, i] * n[1] + target[row + 8, i] * n[2],
    )


@func
def tree(surfaces):
    """What the two functions below read of Surfaces: whole tables would take longer to hand over than to search."""
    return surfaces.box, surfaces.child, surfaces.first, surfaces.last, surfaces.corner


@func
def box_height(box, k, n):
    """How far the box of node k reaches along n, in the axes of its particle at size factor 1."""
    x = n[0] * (box[3, k] if n[0] > 0.0 else box[0, k])
    y = n[1] * (box[4, k] if n[1] > 0.0 else box[1, k])
    return x + y + n[2] * (box[5, k] if n[2] > 0.0 else box[2, k])


@func
def triangle_height(corner, t, n):
    """How far triangle t reaches along n."""
    up = height_of(corner, 0, t, n)
    return max(up[0], up[1], up[2])


@part
def top_triangle(box, children, first, last, corner, root, n, stack, floor):
    """The triangle of a surface that reaches farthest along n, and how far [m at size factor 1].

    stack: room for the nodes that wait, from row `floor` on.
    """
    best, most = -1, -math.inf
    top = floor + 1
    stack[floor] = root
    while top > floor:
        top -= 1
        k = stack[top]
        child = children[k]
        if child < 0:
            for t in range(first[k], last[k]):
                height = triangle_height(corner, t, n)
                if height > most:
                    best, most = t, height
        elif box_height(box, k, n) > most:
            low, high = box_height(box, child, n), box_height(box, child + 1, n)
            up = child if low >= high else child + 1
            if min(low, high) > most:
                stack[top] = 2 * child + 1 - up
                top += 1
            if max(low, high) > most:
                stack[top] = up
                top += 1
    return best, most


@part
def above(box, children, first, last, corner, root, n, least, stack, floor, some):
    """The triangles that reach above `least` along n, written to some: how many; more than it has room for if too many."""
    count = 0
    top = floor + 1
    stack[floor] = root
    while top > floor and count <= len(some):
        top -= 1
        k = stack[top]
        child = children[k]
        if child >= 0:
            if box_height(box, k, n) > least:
                stack[top], stack[top + 1] = child + 1, child
                top += 2
        else:
            for t in range(first[k], last[k]):
                if triangle_height(corner, t, n) > least:
                    if count < len(some):
                        some[count] = t
                    count += 1
    return count


@func
def top_corner(surfaces, t, n):
    """The corner of triangle t that is farthest along n: 0, 1 or 2."""
    up = height_of(surfaces.corner, 0, t, n)
    k = 1 if up[1] > up[0] else 0
    return 2 if up[2] > up[k] else k


@func
def outermost(surfaces, root, stem, size, m, way, n, stack, floor):
    """The difference of a corner of the partner and one of the mesh that is farthest against n, with their numbers."""
    back = seen_from_partner(m, (-n[0], -n[1], -n[2]))
    t, _ = top_triangle(*tree(surfaces), root, n, stack, floor)
    u, _ = top_triangle(*tree(surfaces), stem, back, stack, floor)
    i, j = top_corner(surfaces, t, n), top_corner(surfaces, u, back)
    d = sub(placed(m, way, own_corner(surfaces, 1.0, u, j)), own_corner(surfaces, size, t, i))
    return (d[0], d[1], d[2], 3 * t + i, 3 * u + j)


@func
def widest_direction(surfaces, root, stem, size, m, way, length, stack, floor):
    """The unit direction from the mesh to its partner along which they are farthest apart, and how far [m].

    length [m]: size of both. Zero or less where their convex hulls overlap; the direction is then any.
    """
    zero = (0.0, 0.0, 0.0, -1, -1)
    p, q, r = zero, zero, zero
    count = 0
    ahead = normalize(way)
    high, low, best = math.inf, -math.inf, ahead
    for _ in range(STEPS):
        w = outermost(surfaces, root, stem, size, m, way, ahead, stack, floor)
        extent = dot(ahead, w)
        if extent > low:
            low, best = extent, ahead
        if count == 0:
            p, q, r, count = w, w, w, 1
            high, ahead = norm(w), normalize(w)
        else:
            if known(w, count, p, q, r) or high - extent <= CERTAIN * length:
                break
            nearer, turned, a, b, c, q1, r1 = nearest_on_simplex(w, count, p, q, r, CONTAINED * length)
            if not nearer < high:
                break
            high, ahead = nearer, turned
            count, a, b, c, p, q, r = without_zeros(a, b, c, w, q1, r1)
        if high <= CONTAINED * length:
            break
    return best, low


@func
def heights(surfaces, root, stem, size, way, n, turned, stack, floor):
    """How far the mesh reaches along n, and where its partner begins [m]; turned: n as the partner sees it."""
    _, most = top_triangle(*tree(surfaces), root, n, stack, floor)
    _, back = top_triangle(*tree(surfaces), stem, (-turned[0], -turned[1], -turned[2]), stack, floor)
    return size * most, dot(way, n) - back


@func
def in_slab(surfaces, root, stem, size, way, n, turned, slab, few, stack, floor, lists):
    """Triangles of the mesh that reach above the lower end of the slab (2,) [m] along n and of its partner that reach below the
    upper one: how many of each, written to the two lists; -1 if they make more than `few` pairs."""
    low, high = slab
    some, others = lists
    one = above(*tree(surfaces), root, n, low / size, stack, floor, some)
    two = 0
    if one <= len(some):
        back = (-turned[0], -turned[1], -turned[2])
        two = above(*tree(surfaces), stem, back, dot(way, n) - high, stack, floor, others)
    return (-1, -1) if one > len(some) or two > len(others) or one * two > few else (one, two)

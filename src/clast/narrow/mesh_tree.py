"""Trees of boxes around the triangles of a particle: bounds on distances, and descent to the leaves that are near."""

import math

from ..kernels.backend import func
from ..kernels.vec import load, norm, sub
from .mesh_cylinder import ball_near
from .mesh_pose import AXIS, HALF, RADIUS, SENSE, SIZE, TURN, WAY

BARE = -1  # in place of the second triangle where the partner has none
RIM = -2  # a triangle against a shell that ends
STACK = 512  # more than the depth of two trees, whose halves differ by one triangle at most


@func
def axis_square(d, x, y):
    """Squared length by which intervals of half widths x and y, d apart, miss each other."""
    apart = max(abs(d) - x - y, 0.0)
    return apart * apart


@func
def node_box(surfaces, k, size):
    """Middle and half widths of the box of node k."""
    box = surfaces.box
    half = 0.5 * size
    return (
        (half * (box[0, k] + box[3, k]), half * (box[1, k] + box[4, k]), half * (box[2, k] + box[5, k])),
        (half * (box[3, k] - box[0, k]), half * (box[4, k] - box[1, k]), half * (box[5, k] - box[2, k])),
    )


@func
def load_turn(pose, p):
    """The matrix of a pose."""
    return (
        (pose[p, TURN], pose[p, TURN + 1], pose[p, TURN + 2]),
        (pose[p, TURN + 3], pose[p, TURN + 4], pose[p, TURN + 5]),
        (pose[p, TURN + 6], pose[p, TURN + 7], pose[p, TURN + 8]),
    )


@func
def load_way(pose, p):
    """Where the partner is."""
    return (pose[p, WAY], pose[p, WAY + 1], pose[p, WAY + 2])


@func
def load_axis(pose, p):
    """The axis of a plane or cylinder."""
    return (pose[p, AXIS], pose[p, AXIS + 1], pose[p, AXIS + 2])


@func
def placed(m, way, x):
    """The point x of the partner in the axes of the mesh."""
    return (
        way[0] + (m[0][0] * x[0] + m[0][1] * x[1] + m[0][2] * x[2]),
        way[1] + (m[1][0] * x[0] + m[1][1] * x[1] + m[1][2] * x[2]),
        way[2] + (m[2][0] * x[0] + m[2][1] * x[1] + m[2][2] * x[2]),
    )


@func
def two_boxes_square(d, a, b, m, other):
    """A bound from below on the squared distance of two boxes, d from the middle of the first to that of the second.

    a, b: their half widths, those of the second in its own axes at size factor 1. m: turn of the second with its size
    factor `other`. The faces of both are looked at, edges against edges are not.
    """
    square = 0.0
    for i in range(3):
        square += axis_square(d[i], a[i], abs(m[i][0]) * b[0] + abs(m[i][1]) * b[1] + abs(m[i][2]) * b[2])
    turned = 0.0
    for i in range(3):
        along = m[0][i] * d[0] + m[1][i] * d[1] + m[2][i] * d[2]
        reach = abs(m[0][i]) * a[0] + abs(m[1][i]) * a[1] + abs(m[2][i]) * a[2]
        turned += axis_square(along, other * other * b[i], reach)
    return max(square, turned / (other * other))


@func
def splits_first(surfaces, a, b):
    """Whether node a is split rather than node b; at least one has children."""
    if surfaces.child[a] < 0:
        return False
    if surfaces.child[b] < 0:
        return True
    return surfaces.last[a] - surfaces.first[a] >= surfaces.last[b] - surfaces.first[b]


@func
def descend_two(root, stem, surfaces, size, m, way, threshold, stack, at, room, one, two):
    """Leaves below nodes root and stem that may be nearer than threshold [m]: how many; the first `room` of them are written from row `at` on."""
    other = math.sqrt(m[0][0] * m[0][0] + m[1][0] * m[1][0] + m[2][0] * m[2][0])  # size factor of the partner
    found = 0
    limit = threshold * threshold
    top = 2
    stack[0], stack[1] = root, stem
    while top > 0:
        top -= 2
        a, b = stack[top], stack[top + 1]
        middle, half = node_box(surfaces, a, size)
        centre, width = node_box(surfaces, b, 1.0)
        if two_boxes_square(sub(placed(m, way, centre), middle), half, width, m, other) <= limit:
            if surfaces.child[a] < 0 and surfaces.child[b] < 0:
                if found < room:
                    one[at + found], two[at + found] = a, b
                found += 1
            else:
                into = splits_first(surfaces, a, b)
                child = surfaces.child[a] if into else surfaces.child[b]
                stack[top], stack[top + 1] = (child + 1, b) if into else (a, child + 1)
                stack[top + 2], stack[top + 3] = (child, b) if into else (a, child)
                top += 4
    return found


@func
def descend_one(root, surfaces, size, low, high, threshold, stack, at, room, one, two):
    """Leaves below root that may be nearer than threshold [m] to the box from low to high: as `descend_two`."""
    found = 0
    limit = threshold * threshold
    top = 1
    stack[0] = root
    while top > 0:
        top -= 1
        a = stack[top]
        square = 0.0
        for i in range(3):
            apart = max(size * surfaces.box[i, a] - high[i], low[i] - size * surfaces.box[i + 3, a], 0.0)
            square += apart * apart
        if square <= limit:
            child = surfaces.child[a]
            if child < 0:
                if found < room:
                    one[at + found], two[at + found] = a, BARE
                found += 1
            else:
                stack[top], stack[top + 1] = child + 1, child
                top += 2
    return found


@func
def wall_corner(sheets, t, k, m, way):
    """Corner k of wall triangle t in the axes of the mesh."""
    return placed(m, way, load(sheets.vertex, sheets.triangle[t, k]))


@func
def lowest(a, b, c):
    """The smallest coordinates of three points."""
    return (min(a[0], b[0], c[0]), min(a[1], b[1], c[1]), min(a[2], b[2], c[2]))


@func
def highest(a, b, c):
    """The largest coordinates of three points."""
    return (max(a[0], b[0], c[0]), max(a[1], b[1], c[1]), max(a[2], b[2], c[2]))


@func
def descend_cylinder(root, surfaces, p, pose, reach, code, stack, at, room, one, two):
    """Leaves below root that may be within reach [m] of the cylinder of pair p: as `descend_two`; code: written to two."""
    found = 0
    top = 1
    stack[0] = root
    while top > 0:
        top -= 1
        a = stack[top]
        middle, half = node_box(surfaces, a, pose[p, SIZE])
        if cylinder_near(middle, norm(half), p, pose, reach):
            child = surfaces.child[a]
            if child < 0:
                if found < room:
                    one[at + found], two[at + found] = a, code
                found += 1
            else:
                stack[top], stack[top + 1] = child + 1, child
                top += 2
    return found


@func
def cylinder_near(x, size, p, pose, reach):
    """Whether what is in the ball of radius size about x may be within reach [m] of the cylinder of pair p."""
    way = load_way(pose, p)
    centre = (-way[0], -way[1], -way[2])
    given = load_axis(pose, p), pose[p, RADIUS], pose[p, HALF], pose[p, SENSE]
    return ball_near(sub(x, way), size, centre, *given, reach)

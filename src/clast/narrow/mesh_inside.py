"""Whether a point lies inside a triangulated particle, and one body wholly inside another.

A ray along x goes through an odd number of triangles if it starts inside. Where it meets an edge or a corner exactly, it
counts as shifted a little along y, and along z by much less: both triangles at the edge see the same numbers then, and one
of them has the ray.
"""

import math

import numpy as np

from ..kernels.backend import func, kernel
from ..kernels.vec import sub
from .mesh_pose import BALL, HALF, OWN, SENSE, SIZE, TREE, make_setting
from .mesh_tree import STACK, load_turn, load_way, placed

PAIRS = 64  # a task


@func
def left_of(y, z, a, b):
    """Whether (y, z) lies to the left of the way from a to b (points (y, z)); the same for both directions of an edge."""
    turned = a[0] > b[0] or (a[0] == b[0] and a[1] > b[1])
    low, high = (b, a) if turned else (a, b)
    along, up = high[0] - low[0], high[1] - low[1]
    side = along * (z - low[1]) - up * (y - low[0])
    # On the line: shifted along y, which changes the side by -up times the shift; then along z, by `along`.
    left = side > 0.0 or (side == 0.0 and (up < 0.0 or (up == 0.0 and along > 0.0)))
    return left != turned


@func
def behind_ray(surfaces, t, x):
    """Whether the ray from x along +x goes through triangle t."""
    corner = surfaces.corner
    a, b, c = (corner[1, t], corner[2, t]), (corner[4, t], corner[5, t]), (corner[7, t], corner[8, t])
    one, two, three = left_of(x[1], x[2], a, b), left_of(x[1], x[2], b, c), left_of(x[1], x[2], c, a)
    if one != two or two != three:
        return False
    # Where the plane of the triangle is on the ray.
    n = (surfaces.normal[0, t], surfaces.normal[1, t], surfaces.normal[2, t])
    height = n[0] * (corner[0, t] - x[0]) + n[1] * (corner[1, t] - x[1]) + n[2] * (corner[2, t] - x[2])
    return height * n[0] > 0.0


@func
def inside(surfaces, root, x, stack):
    """Whether x (axes of the particle at size factor 1) lies inside the surface with this root."""
    box = surfaces.box
    for i in range(3):
        if x[i] < box[i, root] or x[i] > box[i + 3, root]:
            return False
    odd = False
    top = 1
    stack[0] = root
    while top > 0:
        top -= 1
        k = stack[top]
        beside = x[1] < box[1, k] or x[1] > box[4, k] or x[2] < box[2, k] or x[2] > box[5, k]
        if not beside and x[0] <= box[3, k]:
            child = surfaces.child[k]
            if child >= 0:
                stack[top], stack[top + 1] = child + 1, child
                top += 2
            else:
                for t in range(surfaces.first[k], surfaces.last[k]):
                    if behind_ray(surfaces, t, x):
                        odd = not odd
    return odd


@func
def taken_back(m, way, x):
    """The point x of the mesh in the axes of its partner at size factor 1; m: turn with the partner's size factor."""
    d = sub(x, way)
    square = m[0][0] * m[0][0] + m[1][0] * m[1][0] + m[2][0] * m[2][0]
    return (
        (m[0][0] * d[0] + m[1][0] * d[1] + m[2][0] * d[2]) / square,
        (m[0][1] * d[0] + m[1][1] * d[1] + m[2][1] * d[2]) / square,
        (m[0][2] * d[0] + m[1][2] * d[1] + m[2][2] * d[2]) / square,
    )


@func
def some_corner(surfaces, surface, size):
    """A point on a surface."""
    t = surfaces.triangle_start[surface]
    return (size * surfaces.corner[0, t], size * surfaces.corner[1, t], size * surfaces.corner[2, t])


def inside_block(block, pose, who, surfaces, result):
    """Whether one shape of each pair of a block is inside the other."""
    stack = np.empty(STACK, np.int32)
    for p in range(block * PAIRS, min(len(pose), (block + 1) * PAIRS)):
        surface, tree = who[p, OWN], who[p, TREE]
        root, size = surfaces.node_start[surface], pose[p, SIZE]
        way = load_way(pose, p)
        solid = pose[p, SENSE] < 0.0 and pose[p, HALF] < math.inf
        held = False
        if tree >= 0 or pose[p, BALL] > 0.0 or solid:
            x = way
            if tree >= 0:
                m = load_turn(pose, p)
                x = placed(m, way, some_corner(surfaces, tree, 1.0))
                y = taken_back(m, way, some_corner(surfaces, surface, size))
                held = inside(surfaces, surfaces.node_start[tree], y, stack)
            held = held or inside(surfaces, root, (x[0] / size, x[1] / size, x[2] / size), stack)
        result[p] = held


def contained(tables, surfaces, pair, box):
    """Which of the listed pairs (p,2), each with a triangulated particle, have one shape wholly inside the other: (p,) bool.

    Of surfaces that do not cross. A sphere or solid cylinder counts as inside if its centre is; one around a particle is no
    matter of this, its candidates tell. Nothing is ever inside a plane, a shell or a wall of triangles.
    """
    result = np.empty(len(pair), np.bool_)
    setting = make_setting(tables, surfaces, pair, box)
    blocks = (len(pair) + PAIRS - 1) // PAIRS
    kernel(inside_block, grain=2, allocates=True)(blocks, setting.pose, setting.who, surfaces, result)
    return result

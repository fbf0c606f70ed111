"""The least distance of two triangulated particles, for many pairs at once.

Both trees are descended together, the nearer boxes first, and boxes that are farther apart than triangles already found are
left out. Triangles are measured 64 at a time; the distance of two of their corners bounds the least distance until then.
"""

import math
from typing import NamedTuple

import numpy as np

from ..kernels.backend import FUSE, func, kernel
from ..kernels.vec import dot, normalize, sub
from .mesh_candidates import BUNCH, lane_triangle, leaf_triangles, own_corner, put_corners, triangles_near
from .mesh_hull import height_of, heights, in_slab, seen_from_partner, widest_direction
from .mesh_pose import OWN, SIZE, TREE, make_setting
from .mesh_tree import STACK, load_turn, load_way, node_box, placed, splits_first, two_boxes_square
from .triangle_lanes import LANES, RESULT, ROWS, brute_lanes

PAIRS = 4  # pairs a task
SLAB = 64  # triangles of one particle that are taken against all such of the other
FEW = 512  # pairs of them
SLACK = 1e-9  # of the size of both: what reaches as far as the farthest


class Nearest(NamedTuple):
    """The nearest triangles of pairs of triangulated particles."""

    first: np.ndarray  # (p,) int32, triangle of the first, a column of Surfaces.corner
    second: np.ndarray  # (p,) int32, of the second
    looked: np.ndarray  # (p,) int64, pairs of triangles that were measured


@func
def bound(surfaces, a, b, size, other, m, way, n, turned):
    """A bound from below on the squared distance of nodes a and b, by their faces and along the unit vector n.

    turned: n in the axes of the partner, times its size factor.
    """
    middle, half = node_box(surfaces, a, size)
    centre, width = node_box(surfaces, b, 1.0)
    d = sub(placed(m, way, centre), middle)
    reach = abs(n[0]) * half[0] + abs(n[1]) * half[1] + abs(n[2]) * half[2]
    reach += abs(turned[0]) * width[0] + abs(turned[1]) * width[1] + abs(turned[2]) * width[2]
    apart = max(dot(d, n) - reach, 0.0)
    return max(apart * apart, two_boxes_square(d, half, width, m, other))


@func
def lane_partner(surfaces, g, m, way, lane, used):
    """Write triangle g of the partner into column `used` of lane."""
    put_corners(
        lane,
        9,
        used,
        placed(m, way, own_corner(surfaces, 1.0, g, 0)),
        placed(m, way, own_corner(surfaces, 1.0, g, 1)),
        placed(m, way, own_corner(surfaces, 1.0, g, 2)),
    )


@func
def corner_square(lane, i, leaf, j):
    """The squared distance of the first corners of two triangles."""
    x, y, z = lane[0, i] - leaf[0, j], lane[1, i] - leaf[1, j], lane[2, i] - leaf[2, j]
    return x * x + y * y + z * z


def nearest_block(block, pose, who, surfaces, nearest):
    """The nearest triangles of a block of pairs."""
    lane, result = np.empty((ROWS, LANES)), np.empty((RESULT, LANES))
    leaf, floor = np.empty((9, 4)), np.empty(4)
    one, two = np.empty(LANES, np.int32), np.empty(LANES, np.int32)
    stack, height = np.empty(3 * STACK, np.int32), np.empty(STACK)
    some, others = np.empty(SLAB, np.int32), np.empty(SLAB, np.int32)
    lists = (some, others)
    lane[:] = 0.0
    for p in range(block * PAIRS, min(len(pose), (block + 1) * PAIRS)):
        size = pose[p, SIZE]
        m, way = load_turn(pose, p), load_way(pose, p)
        other = math.sqrt(m[0][0] * m[0][0] + m[1][0] * m[1][0] + m[2][0] * m[2][0])
        own, far = who[p, OWN], who[p, TREE]
        root, stem = surfaces.node_start[own], surfaces.node_start[far]
        length = size * surfaces.outer[own] + other * surfaces.outer[far]
        slack = SLACK * length
        stack[0], stack[1] = root, stem
        height[0] = 0.0
        best, ceiling = math.inf, math.inf
        nearest.first[p], nearest.second[p] = -1, -1
        looked = 0
        top, used = 1, 0
        # First what reaches farthest along the direction between the convex hulls, then all that can be nearer, and if that
        # is much, the descent.
        w, apart = widest_direction(surfaces, root, stem, size, m, way, length, stack, 2)
        back = seen_from_partner(m, w)
        n, turned = w, back
        most, least, ahead, left = 0.0, 0.0, 1, 0
        slabs = 2
        if apart > 0.0:
            most, least = heights(surfaces, root, stem, size, way, w, back, stack, 2)
            slabs = 0
        while top > 0 or used > 0 or left > 0:
            if left == 0 and used == 0 and slabs < 2:
                reach = slack if slabs == 0 else math.sqrt(best) - (least - most)
                if slabs == 1 and reach <= slack:
                    top = 0
                else:
                    slab = (most - reach, least + reach)
                    ahead, behind = in_slab(surfaces, root, stem, size, way, w, back, slab, FEW, stack, 2, lists)
                    left = max(ahead * behind, 0)
                    if slabs == 1 and ahead >= 0:
                        top = 0
                slabs = 2 if left == 0 and slabs == 0 else slabs + 1
            elif (
                (top == 0 and left == 0)
                or used > LANES - BUNCH - 1
                or (used > 0 and left == 0 and (slabs == 1 or best == math.inf))
            ):
                brute_lanes(lane, 0.0, result)
                looked += used
                found = -1
                for k in range(used):
                    if result[0, k] < best:
                        best, found = result[0, k], k
                if found >= 0:
                    nearest.first[p], nearest.second[p] = one[found], two[found]
                    n = normalize(
                        (
                            result[4, found] - result[1, found],
                            result[5, found] - result[2, found],
                            result[6, found] - result[3, found],
                        )
                    )
                    turned = seen_from_partner(m, n)
                ceiling = min(ceiling, best)
                used = 0
            elif left > 0:
                while left > 0 and used < LANES:
                    left -= 1
                    f, g = some[left % ahead], others[left // ahead]
                    one[used], two[used] = f, g
                    lane_triangle(surfaces, size, f, lane, used)
                    lane_partner(surfaces, g, m, way, lane, used)
                    used += 1
            else:
                top -= 1
                a, b = stack[2 * top], stack[2 * top + 1]
                if height[top] < ceiling or best == math.inf:
                    if surfaces.child[a] < 0 and surfaces.child[b] < 0:
                        many = leaf_triangles(b, surfaces, m, way, leaf)
                        for j in range(many):
                            low = height_of(leaf, 0, j, n)
                            floor[j] = min(low[0], low[1], low[2])
                        for i in range(surfaces.last[a] - surfaces.first[a]):
                            f = surfaces.first[a] + i
                            for j in range(many):
                                lane_triangle(surfaces, size, f, lane, used)
                                up = height_of(lane, 0, used, n)
                                miss = max(floor[j] - max(up[0], up[1], up[2]), 0.0)
                                if miss * miss <= ceiling and triangles_near(lane, used, leaf, j, ceiling):
                                    for k in range(9):
                                        lane[9 + k, used] = leaf[k, j]
                                    one[used], two[used] = f, surfaces.first[b] + j
                                    ceiling = min(ceiling, corner_square(lane, used, leaf, j))
                                    used += 1
                    else:
                        into = splits_first(surfaces, a, b)
                        child = surfaces.child[a] if into else surfaces.child[b]
                        a0, b0 = (child, b) if into else (a, child)
                        a1, b1 = (child + 1, b) if into else (a, child + 1)
                        low = bound(surfaces, a0, b0, size, other, m, way, n, turned)
                        high = bound(surfaces, a1, b1, size, other, m, way, n, turned)
                        # The nearer one lies on top.
                        if high < low:
                            a0, b0, a1, b1 = a1, b1, a0, b0
                            low, high = high, low
                        if high < ceiling:
                            stack[2 * top], stack[2 * top + 1], height[top] = a1, b1, high
                            top += 1
                        if low < ceiling:
                            stack[2 * top], stack[2 * top + 1], height[top] = a0, b0, low
                            top += 1
        nearest.looked[p] = looked


def nearest_triangles(tables, surfaces, pair, box):
    """The nearest triangles of listed pairs (p,2) of triangulated particles, rows of Shapes."""
    count = len(pair)
    setting = make_setting(tables, surfaces, pair, box)
    nearest = Nearest(np.empty(count, np.int32), np.empty(count, np.int32), np.empty(count, np.int64))
    kernel(nearest_block, grain=2, allocates=True, fastmath=FUSE)(
        (count + PAIRS - 1) // PAIRS, setting.pose, setting.who, surfaces, nearest
    )
    return nearest

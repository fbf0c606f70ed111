"""Ways out of an ellipsoid for corners and edges of a polyhedron, eight at a time: to its near side, and through its far side.

The near way is what `ellipsoid_point` says of one point or one line; the far one, across the shortest axis, is a second local maximum of n.d - h(n), if there
is one. They stand side by side in the first columns of `work`, one number every LANES, and loops over them become vector instructions: with
a polyhedron of 24 faces an ellipsoid took 3.2 us one after the other and takes 1.5 so.
"""

import math

import numpy as np

from ..kernels.backend import func
from ..kernels.vec import add, cross, dot, matrix_vector, normalize, scale, sub
from .ellipsoid_point import STEPS, lifted, shadow, turned_back

LANES = 8
CLOSE = 1e-10  # a step of Newton's method by this fraction of the root is the last: it squares what is left
# Columns: what is given, a point or both ends of an edge (3, 3) [m] and the normals of the faces that meet there (3, 3); the problem in principal axes,
# semi-axes (3) [m], place (3) [m], differences of squares of semi-axes (3) [m^2], semi-axis times place (3) [m^2]; principal directions in the plane of an edge (3, 3), and the
# directions into its two faces (3, 3).
START, END, ONE, TWO, AXES, PLACE, BEYOND, WEIGHT, FIRST, SECOND, BESIDE, ACROSS = (LANES * 3 * i for i in range(12))
# What is found: the nearest way out, the way through the far side, signed distance [m] and unit vector (1, 3) each; the roots of both, and whether they are
# still climbed to.
NEAR, FAR, NEAR_TAU, NEAR_GOING, FAR_TAU, FAR_GOING = (LANES * i for i in (36, 40, 44, 45, 46, 47))
ROOM = LANES * 48
STEP = np.uintp(LANES)


@func
def lane(work, at, i):
    """The vector of lane i whose first column is `at`."""
    k = np.uintp(at) + i
    return (work[k], work[k + STEP], work[k + 2 * STEP])


@func
def put_lane(work, at, i, v):
    """Write a vector into lane i."""
    k = np.uintp(at) + i
    work[k], work[k + STEP], work[k + 2 * STEP] = v


@func
def repeat_first(work, used, columns):
    """Write what the first lane was given into those that nobody uses."""
    for j in range(used, LANES):
        for column in range(columns):
            k = np.uintp(LANES * column)
            work[k + np.uintp(j)] = work[k]


@func
def start_roots(work):
    """Where both roots of all lanes are climbed to from, and what that takes."""
    for j in range(LANES):
        i = np.uintp(j)
        a, p, d = lane(work, AXES, i), lane(work, PLACE, i), lane(work, BEYOND, i)
        w = (a[0] * lifted(p[0], a[0]), a[1] * lifted(p[1], a[1]), a[2] * lifted(p[2], a[2]))
        put_lane(work, WEIGHT, i, w)
        work[NEAR_TAU + i], work[NEAR_GOING + i] = max(w[0] - d[0], w[1] - d[1], w[2] - d[2]), 1.0
        own = w[0] if d[0] == 0.0 else (w[1] if d[1] == 0.0 else w[2])
        work[FAR_TAU + i], work[FAR_GOING + i] = -own, 1.0


@func
def near_step(work, i):
    """A step of `ellipsoid_point.secular_root`, which says why the method climbs to it: 1 if there is more to do, else 0."""
    w, d, tau = lane(work, WEIGHT, i), lane(work, BEYOND, i), work[NEAR_TAU + i]
    i0, i1, i2 = 1.0 / (tau + d[0]), 1.0 / (tau + d[1]), 1.0 / (tau + d[2])
    y0, y1, y2 = w[0] * i0, w[1] * i1, w[2] * i2
    square = y0 * y0 + y1 * y1 + y2 * y2
    slope = y0 * y0 * i0 + y1 * y1 * i1 + y2 * y2 * i2
    step = (math.sqrt(square) - 1.0) * square / slope
    on = work[NEAR_GOING + i] > 0.0
    after = tau + step if on else tau
    on = on & (step > CLOSE * after)
    work[NEAR_TAU + i], work[NEAR_GOING + i] = after, 1.0 if on else 0.0
    return 1 if on else 0


@func
def far_step(work, i):
    """A step to the greatest tau < 0 with sum of (w / (tau + d))^2 = 1, or 0 if there is none before the next d: 1 if there is more to do, else 0.

    Towards 0 the sum grows and is convex, so Newton's method comes down to the zero from the side of 0 and never passes it.
    """
    w, d, tau = lane(work, WEIGHT, i), lane(work, BEYOND, i), work[FAR_TAU + i]
    i0, i1, i2 = 1.0 / (tau + d[0]), 1.0 / (tau + d[1]), 1.0 / (tau + d[2])
    y0, y1, y2 = w[0] * i0, w[1] * i1, w[2] * i2
    slope = -2.0 * (y0 * y0 * i0 + y1 * y1 * i1 + y2 * y2 * i2)
    step = (y0 * y0 + y1 * y1 + y2 * y2 - 1.0) / slope
    last = -min(positive(d[0]), positive(d[1]), positive(d[2]))
    on = work[FAR_GOING + i] > 0.0
    # Before the next pole, or there is none.
    there = (tau > last) & (last > -math.inf) & (slope > 0.0)
    after = (tau - step if there else 0.0) if on else tau
    after = after if after > last else 0.0
    on = on & there & (step > -CLOSE * after)
    work[FAR_TAU + i], work[FAR_GOING + i] = after, 1.0 if on else 0.0
    return 1 if on else 0


@func
def find_roots(work, far):
    """The roots of all lanes; far: those of the far side too, in the same loop, because each step waits for its divisions."""
    start_roots(work)
    for _ in range(STEPS):
        going = 0
        if far:
            for j in range(LANES):
                going += near_step(work, np.uintp(j)) + far_step(work, np.uintp(j))
        else:
            for j in range(LANES):
                going += near_step(work, np.uintp(j))
        if going == 0:
            break


@func
def positive(d):
    """d if it is above zero, else infinity."""
    return d if d > 0.0 else math.inf


@func
def write_ways(work, root, at):
    """Signed distance and unit vector in principal axes from the root at `root`, to `at`; no far way where it is zero."""
    for j in range(LANES):
        i = np.uintp(j)
        a, x, d, tau = lane(work, AXES, i), lane(work, PLACE, i), lane(work, BEYOND, i), work[np.uintp(root) + i]
        p0, p1, p2 = lifted(x[0], a[0]), lifted(x[1], a[1]), lifted(x[2], a[2])
        n0, n1, n2 = p0 / (tau + d[0]), p1 / (tau + d[1]), p2 / (tau + d[2])
        inverse = 1.0 / math.sqrt(n0 * n0 + n1 * n1 + n2 * n2)
        n0, n1, n2 = inverse * n0, inverse * n1, inverse * n2
        h = math.sqrt((a[0] * n0) ** 2 + (a[1] * n1) ** 2 + (a[2] * n2) ** 2)
        gap = n0 * p0 + n1 * p1 + n2 * p2 - h
        k = np.uintp(at) + i
        work[k] = gap if tau != 0.0 else -math.inf
        work[k + STEP] = n0 * math.copysign(1.0, x[0])
        work[k + 2 * STEP] = n1 * math.copysign(1.0, x[1])
        work[k + 3 * STEP] = n2 * math.copysign(1.0, x[2])


@func
def find_ways(work, far):
    """The ways out of all lanes; far: those through the far side too."""
    find_roots(work, far)
    write_ways(work, NEAR_TAU, NEAR)
    if far:
        write_ways(work, FAR_TAU, FAR)


@func
def ways_of_corners(c, axes, size, far, work):
    """The ways out for points START (3) [m]: NEAR and, if asked for, FAR, unit vectors from the ellipsoid's centre outward in the axes of START.

    c, axes, size: centre [m], axes and semi-axes of the ellipsoid, as in `ellipsoid_point`.
    """
    least = min(size[0], size[1], size[2])
    for j in range(LANES):
        i = np.uintp(j)
        put_lane(work, AXES, i, size)
        put_lane(work, PLACE, i, matrix_vector(axes, sub(lane(work, START, i), c)))
        put_lane(
            work,
            BEYOND,
            i,
            (
                (size[0] - least) * (size[0] + least),
                (size[1] - least) * (size[1] + least),
                (size[2] - least) * (size[2] + least),
            ),
        )
    find_ways(work, far)
    for j in range(LANES):
        i = np.uintp(j)
        put_lane(work, NEAR + LANES, i, turned_back(axes, lane(work, NEAR + LANES, i)))
        if far:
            put_lane(work, FAR + LANES, i, turned_back(axes, lane(work, FAR + LANES, i)))


@func
def ways_of_edges(c, axes, size, far, work):
    """The way out for edges from START to END [m] of a polyhedron whose faces have the normals ONE and TWO: NEAR, or -inf if none lies between these.

    far: where the near side has none between them, the far one is looked at.
    """
    for j in range(LANES):
        i = np.uintp(j)
        p, one, two = lane(work, START, i), lane(work, ONE, i), lane(work, TWO, i)
        u = normalize(sub(lane(work, END, i), p))
        beside = cross(u, one)
        a, b, first, second = shadow(axes, size, one, beside)
        d, least = sub(p, c), min(a, b)
        put_lane(work, AXES, i, (a, b, 1.0))
        put_lane(work, PLACE, i, (dot(d, first), dot(d, second), 0.0))
        put_lane(work, BEYOND, i, ((a - least) * (a + least), (b - least) * (b + least), math.inf))
        put_lane(work, FIRST, i, first)
        put_lane(work, SECOND, i, second)
        put_lane(work, BESIDE, i, beside)
        put_lane(work, ACROSS, i, cross(two, u))
    find_ways(work, far)
    for j in range(LANES):
        i = np.uintp(j)
        gap, m = between_faces(NEAR, i, work)
        if far:
            other, w = between_faces(FAR, i, work)
            nearer = gap > -math.inf
            gap, m = (gap if nearer else other), select(nearer, m, w)
        work[NEAR + i] = gap
        put_lane(work, NEAR + LANES, i, m)


@func
def select(condition, one, two):
    """A vector if the condition holds, else another."""
    return (
        one[0] if condition else two[0],
        one[1] if condition else two[1],
        one[2] if condition else two[2],
    )


@func
def between_faces(at, i, work):
    """The way out at `at` of lane i in the axes of the polyhedron, -inf if it does not lie between the normals of both faces."""
    n = lane(work, at + LANES, i)
    m = add(scale(n[0], lane(work, FIRST, i)), scale(n[1], lane(work, SECOND, i)))
    inside = (dot(m, lane(work, BESIDE, i)) < 0.0) & (dot(m, lane(work, ACROSS, i)) < 0.0)
    gap = work[np.uintp(at) + i]
    return gap if inside else -math.inf, m

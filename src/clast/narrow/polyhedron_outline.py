"""The part of a face of one polyhedron over a face of another: a convex polygon within the outline of another.

Everything is as in `clast.narrow.polyhedron_polyhedron`; a corner is four numbers, point of the second body and gap. Sides of the polygon are cut off
side by side, each from its own two corners: where the count of corners begins has no influence, and mirror images stay mirror images.
"""

import numpy as np

from ..kernels.backend import func
from ..kernels.vec import add, cross, dot, matrix_vector, scale, sub
from .polyhedron_polyhedron import EDGES, SCRATCH, column, get, put

SAME = 1e-6  # corners nearer to each other than this fraction of the next side are one
STRAIGHT = 1e-6  # sine of the angle below which the outline of a patch does not turn at a corner
WITHIN = 1e-12  # what lies this fraction of the size outside an outline counts as inside
BEYOND = 1e-9  # a corner this fraction of a side outside the polygon is not one of their common part

# Columns of sides of the polygon that are looked at together, where edges stood before: both ends (3, 3), then what is found: where a side comes in
# and goes out, as a fraction of its length, and over which side of the outline.
LANES = 8
FROM, TO, ENTRY, EXIT, ENTRY_SIDE, EXIT_SIDE = (EDGES + LANES * i for i in (0, 3, 6, 7, 8, 9))
STEP = np.uintp(LANES)


@func
def common_outline(k, face, kb, other, turn, d, per_height, hulls, margin, work):
    """The part of face `other` of b over `face` of a: where in work its corners stand, and how many are within the margin.

    Four numbers each, point of b and gap: its height over the face times per_height.
    """
    start, end = hulls.loop_start[face], hulls.loop_start[face + 1]
    first, last = hulls.loop_start[other], hulls.loop_start[other + 1]
    count = last - first
    here, there = SCRATCH, SCRATCH + 4 * (end - start + 2 * count)
    n, height = column(hulls.normal, face), k * hulls.offset[face]
    low, high = np.inf, -np.inf
    for i in range(count):
        x = add(d, scale(kb, matrix_vector(turn, column(hulls.vertex, hulls.loop[first + i]))))
        gap = per_height * (dot(n, x) - height)
        put(work, here + 4 * i, x)
        work[np.uintp(here + 4 * i + 3)] = gap
        low, high = min(low, gap), max(high, gap)
    if low > margin:
        return here, 0
    # The height of the other face over a point of this one.
    m = matrix_vector(turn, column(hulls.normal, other))
    slope = per_height / min(dot(m, n), -1e-30)
    plane = (n, scale(slope, m), slope * (dot(m, d) + kb * hulls.offset[other]), low, high, per_height)
    count = walk(start, end, k, WITHIN * height, count, plane, hulls, work, here, there)
    here, there = there, here
    if count > 4:
        count = drop_doubles(count, work, here, there)
        count = drop_straight(count, n, work, there, here)
    return here, keep_near(count, margin, work, here)


@func
def walk(start, end, k, near, count, plane, hulls, work, here, there):
    """Write the common part of the outline start to end and of the polygon of `count` corners at `here` to `there`: how many corners it has.

    Along the polygon: what is inside of each side, and where it goes out and comes back in over another side, the corners of the outline between.
    """
    kept, left, came = 0, -1, -1
    for i in range(count):
        j = i % LANES
        if j == 0:
            put_sides(i, count, work, here)
            cut_sides(start, end, k, near, hulls, work)
        entry, out = work[np.uintp(ENTRY + j)], work[np.uintp(EXIT + j)]
        if entry > out:
            continue
        one, two = here + 4 * i, here + 4 * (i + 1 if i + 1 < count else 0)
        if entry > 0.0:
            side = int(work[np.uintp(ENTRY_SIDE + j)])
            if left >= 0:
                kept = corners_between(left, side, start, end, k, count, plane, hulls, work, here, there, kept)
            elif came < 0:
                came = side
            left = -1
            write_cut(one, two, column(hulls.side, side), k * hulls.side_offset[side] + near, work, there + 4 * kept)
        else:
            copy_four(work, one, there + 4 * kept)
        kept += 1
        if out < 1.0:
            left = int(work[np.uintp(EXIT_SIDE + j)])
            if out > entry:
                side = column(hulls.side, left)
                write_cut(one, two, side, k * hulls.side_offset[left] + near, work, there + 4 * kept)
                kept += 1
    if left >= 0 or kept == 0:
        kept = corners_between(left, came, start, end, k, count, plane, hulls, work, here, there, kept)
    return kept


@func
def put_sides(first, count, work, here):
    """Write the sides from `first` on of the polygon of `count` corners at `here` into the columns."""
    for j in range(LANES):
        i = first + j if first + j < count else 0
        p, q = get(work, here + 4 * i), get(work, here + 4 * (i + 1 if i + 1 < count else 0))
        for c in range(3):
            work[np.uintp(FROM + LANES * c + j)], work[np.uintp(TO + LANES * c + j)] = p[c], q[c]


@func
def cut_sides(start, end, k, near, hulls, work):
    """Where the sides in the columns run inside of the outline start to end: nowhere if they come in behind where they go out."""
    for j in range(LANES):
        i = np.uintp(j)
        work[ENTRY + i], work[EXIT + i], work[ENTRY_SIDE + i], work[EXIT_SIDE + i] = 0.0, 1.0, -1.0, -1.0
    for side in range(start, end):
        m, limit, this = column(hulls.side, side), k * hulls.side_offset[side] + near, float(side)
        # Selects and no branches, and places at a constant distance: this becomes vector instructions.
        for j in range(LANES):
            i = np.uintp(FROM + j)
            last = m[0] * work[i] + m[1] * work[i + STEP] + m[2] * work[i + 2 * STEP] - limit
            now = m[0] * work[i + 3 * STEP] + m[1] * work[i + 4 * STEP] + m[2] * work[i + 5 * STEP] - limit
            crosses = (last > 0.0) != (now > 0.0)
            t = last / (last - now if crosses else 1.0)
            entry = (t if crosses else 2.0) if last > 0.0 else 0.0
            out = t if crosses & (now > 0.0) else 1.0
            later, sooner = entry > work[i + 6 * STEP], out < work[i + 7 * STEP]
            work[i + 6 * STEP] = entry if later else work[i + 6 * STEP]
            work[i + 7 * STEP] = out if sooner else work[i + 7 * STEP]
            work[i + 8 * STEP] = this if later else work[i + 8 * STEP]
            work[i + 9 * STEP] = this if sooner else work[i + 9 * STEP]


@func
def write_cut(one, two, m, limit, work, at):
    """Write the point between the corners at `one` and `two` where m . x is `limit`: the same whichever comes first."""
    of_two, of_one = abs(dot(m, get(work, one)) - limit), abs(dot(m, get(work, two)) - limit)
    per_both = 1.0 / (of_one + of_two)
    for j in range(4):
        work[np.uintp(at + j)] = per_both * (of_one * work[np.uintp(one + j)] + of_two * work[np.uintp(two + j)])


@func
def corners_between(left, came, start, end, k, count, plane, hulls, work, here, there, kept):
    """Write corners of the outline start to end behind the `kept` ones at `there`: how many there are then.

    Those on the way from side `left`, where the polygon goes out, to side `came`, all where these are unknown (-1); seen from outside of the face the
    polygon runs clockwise. Where two outlines nearly meet, rounding may name sides that are not in this order: corners must lie within the polygon too.
    """
    n, slope, level, low, high, per_height = plane
    side = left if left >= 0 else start
    for _ in range(end - start):
        if side == came:
            break
        c = scale(k, column(hulls.vertex, hulls.loop[side]))
        inside = True
        for i in range(count):
            p = get(work, here + 4 * i)
            u = sub(get(work, here + 4 * (i + 1 if i + 1 < count else 0)), p)
            inside = inside & (dot(n, cross(u, sub(c, p))) <= BEYOND * dot(u, u))
        if inside:
            gap = min(max(level - dot(slope, c), low), high)
            put(work, there + 4 * kept, add(c, scale(gap / per_height, n)))
            work[np.uintp(there + 4 * kept + 3)] = gap
            kept += 1
        side = side - 1 if side > start else end - 1
    return kept


@func
def drop_doubles(count, work, here, there):
    """Write the corners of the polygon to `there`, of two that coincide the one farther from the middle; how many stay."""
    kept = 0
    for i in range(count):
        x = get(work, here + 4 * i)
        before = get(work, here + 4 * (i - 1 if i > 0 else count - 1))
        after = get(work, here + 4 * (i + 1 if i + 1 < count else 0))
        u, v = sub(x, before), sub(after, x)
        uu, vv, own = dot(u, u), dot(v, v), dot(x, x)
        least = SAME * SAME * max(uu, vv)
        if not ((uu <= least and own < dot(before, before)) or (vv <= least and own <= dot(after, after))):
            copy_four(work, here + 4 * i, there + 4 * kept)
            kept += 1
    return kept


@func
def drop_straight(count, n, work, here, there):
    """Write the corners of the polygon at which it turns to `there`; returns how many.

    Where sides of both outlines lie on one line, rounding decides whether and where one cuts the other, and such points would
    change the patch from step to step. Each corner is judged by its neighbours as they are.
    """
    kept = 0
    for i in range(count):
        x = get(work, here + 4 * i)
        u = sub(x, get(work, here + 4 * (i - 1 if i > 0 else count - 1)))
        v = sub(get(work, here + 4 * (i + 1 if i + 1 < count else 0)), x)
        turning = dot(n, cross(u, v))
        if turning * turning > STRAIGHT * STRAIGHT * dot(u, u) * dot(v, v):
            copy_four(work, here + 4 * i, there + 4 * kept)
            kept += 1
    return kept


@func
def keep_near(count, margin, work, here):
    """Leave out those of `count` points at `here` that are farther away than the margin; how many stay."""
    kept = 0
    for i in range(count):
        if work[here + 4 * i + 3] <= margin:
            copy_four(work, here + 4 * i, here + 4 * kept)
            kept += 1
    return kept


@func
def copy_four(work, source, target):
    """Copy a point and its gap."""
    put(work, target, get(work, source))
    work[np.uintp(target + 3)] = work[np.uintp(source + 3)]

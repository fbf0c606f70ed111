"""Pairs with at least one ellipsoid: the exact gap of many pairs at once, and their contact points from step to step.

Three levels (Pazouki et al. 2012): the pairs come from a broad phase; boxes and, if asked for, the yes/no test of the
characteristic equation (ChM) drop most that are apart; the common normal (OpM) gives the gap of the rest. A block of
pairs goes through one level after the other, so that the lanes of each are full.
"""

import math

import numpy as np

from ..broad.near import asleep, image, repeats
from ..kernels import backend
from ..kernels.backend import func, fused, kernel
from ..kernels.vec import dot
from ..shapes.ellipsoid_form import LEAST_AXIS, LEAST_RADIUS, adjugate, load_form, times
from .characteristic import ANSWER, NO, characteristic_lanes
from .characteristic import LANES as CHM_LANES
from .characteristic import ROWS as CHM_ROWS
from .common_normal import GAP, LANES, LEAST, ROWS, STATE, N, common_normal, common_normal_from, lane_forms, solve_lanes
from .curvature import contact_radius

BLOCK = 256  # pairs a task

CHM = False  # bound to the kernels


@func
def between(a, b, centre, edges):
    """From the centre of shape a to that of shape b, or to its nearest periodic image."""
    d = (centre[b, 0] - centre[a, 0], centre[b, 1] - centre[a, 1], centre[b, 2] - centre[a, 2])
    if repeats(edges):
        d = (image(d[0], edges[0], edges[3]), image(d[1], edges[1], edges[4]), image(d[2], edges[2], edges[5]))
    return d


@func
def boxes_apart(d, a, b, forms, margin):
    """Whether the boxes around shapes a and b (eq. 12), d apart, are farther from each other than the margin."""
    apart = False
    for i in range(3):
        apart = apart or abs(d[i]) > np.sqrt(forms[a, i]) + np.sqrt(forms[b, i]) + margin
    return apart


@func
def put_lane(lane, k, d, a, b, forms):
    """Write what the common normal starts from into lane k."""
    for i in range(3):
        lane[i, k] = d[i]
    for i in range(6):
        lane[3 + i, k] = forms[a, i]
        lane[9 + i, k] = forms[b, i]


@func
def signed(n, d):
    """n, or -n where both are the answer because the centres coincide: the one whose largest component is positive."""
    same = d[0] == 0.0 and d[1] == 0.0 and d[2] == 0.0
    x, y, z = abs(n[0]), abs(n[1]), abs(n[2])
    largest = n[0] if x >= y and x >= z else (n[1] if y >= z else n[2])
    sign = -1.0 if same and largest < 0.0 else 1.0
    return (sign * n[0], sign * n[1], sign * n[2])


@func
def surface_point(m, n):
    """From the centre to the point of the surface with outward normal n (A-13)."""
    u = times(m, n)
    h = math.sqrt(max(dot(n, u), 1e-300))
    return (u[0] / h, u[1] / h, u[2] / h)


@func
def contains(d, outer, inner):
    """Whether the ellipsoid `outer` contains the whole of `inner`, d (3,) [m] from centre to centre either way."""
    within = True
    for i in range(3):
        within = within and abs(d[i]) + math.sqrt(inner[i]) <= math.sqrt(outer[i])
    return within and least_reach(d, outer, inner) <= 1.0


@func
def least_reach(d, outer, inner):
    """The least t + d.(outer - inner / t)^-1 d over 0 < t <= 1 where that matrix is positive definite.

    It is at most 1 if and only if the inner ellipsoid lies in the outer one (S-lemma; Polik and Terlaky 2007). The
    function is convex in t, and infinite where the matrix is not positive definite, so thirds of the interval close in.
    """
    low, high = 0.0, 1.0
    best = reach_at(1.0, d, outer, inner)
    for _ in range(80):
        first, second = low + (high - low) / 3.0, high - (high - low) / 3.0
        a, b = reach_at(first, d, outer, inner), reach_at(second, d, outer, inner)
        best = min(best, a, b)
        # Both infinite: the matrix is definite for large t only.
        if a > b or a == math.inf:
            low = first
        else:
            high = second
    return best


@func
def reach_at(t, d, outer, inner):
    """See `least_reach`; infinite where the matrix is not positive definite."""
    i = 1.0 / t
    x, y, z = outer[0] - i * inner[0], outer[1] - i * inner[1], outer[2] - i * inner[2]
    u, v, w = outer[3] - i * inner[3], outer[4] - i * inner[4], outer[5] - i * inner[5]
    minor = x * y - u * u
    a = adjugate((x, y, z, u, v, w))
    det = x * a[0] + u * a[3] + v * a[4]
    definite = x > 0.0 and minor > 0.0 and det > 0.0
    return t + dot(d, times(a, d)) / det if definite else math.inf


@func
def inner_centre(d, m1, m2):
    """Where one ellipsoid contains the other, the centre of the inner one, which belongs to both: whether it does, and from the
    centre of the first to there."""
    if contains(d, m1, m2):
        return True, d
    return contains(d, m2, m1), (0.0, 0.0, 0.0)


# Contact points. A slot may keep its last normal. That is tried first then: where it parts the two bodies nothing touches, which costs
# one look. A pair that touched starts Newton's method there; one that begins to touch starts afresh, so that the result does not
# depend on when the pair came into the list.

# Rows of the lanes after those of the common normal. All are in one array: with two, the compiler cannot tell that writing
# to one leaves the other alone, and makes no vector instructions.
ARM, RADIUS, ROOM = ROWS, ROWS + 3, ROWS + 4
ALL_ROWS = ROWS + 5


@func
def parted(d, m1, m2, n):
    """Whether the plane at right angles to n parts the two ellipsoids for certain; never for n = 0."""
    u1 = m1[0] * n[0] * n[0] + m1[1] * n[1] * n[1] + m1[2] * n[2] * n[2]
    u1 += 2.0 * (m1[3] * n[0] * n[1] + m1[4] * n[0] * n[2] + m1[5] * n[1] * n[2])
    u2 = m2[0] * n[0] * n[0] + m2[1] * n[1] * n[1] + m2[2] * n[2] * n[2]
    u2 += 2.0 * (m2[3] * n[0] * n[1] + m2[4] * n[0] * n[2] + m2[5] * n[1] * n[2])
    along = dot(n, d)
    return along * (1.0 - 1e-12) > math.sqrt(max(u1, 0.0)) + math.sqrt(max(u2, 0.0))


@fused
def middle_arm(m, n, gap):
    """From the centre of an ellipsoid to the middle of the overlap or gap at its surface point with outward normal n."""
    arm = surface_point(m, n)
    return (arm[0] + 0.5 * gap * n[0], arm[1] + 0.5 * gap * n[1], arm[2] + 0.5 * gap * n[2])


@func
def room_inside(d, m1, m2):
    """Below zero if the boxes around two ellipsoids, d (3,) [m] apart, tell that neither contains the other."""
    x = abs(math.sqrt(m1[0]) - math.sqrt(m2[0])) - abs(d[0])
    y = abs(math.sqrt(m1[1]) - math.sqrt(m2[1])) - abs(d[1])
    z = abs(math.sqrt(m1[2]) - math.sqrt(m2[2])) - abs(d[2])
    least = x if x < y else y
    return least if least < z else z


@func
def put_inside(lane, k):
    """Mend what lane k says of two ellipsoids with one centre, or of which one contains the other."""
    d, m1, m2 = lane_forms(lane, k)
    lane[N, k], lane[N + 1, k], lane[N + 2, k] = signed((lane[N, k], lane[N + 1, k], lane[N + 2, k]), d)
    inside, centre = inner_centre(d, m1, m2)
    if inside:
        lane[ARM, k], lane[ARM + 1, k], lane[ARM + 2, k] = centre


@func
def drop_apart(waiting, count, lane, rows, forms, pair, edges, margin):
    """Those of the waiting pairs that the characteristic equation does not tell apart (ChM): how many, the first of `waiting`."""
    left = 0
    for at in range(0, count, CHM_LANES):
        used = min(CHM_LANES, count - at)
        for j in range(used):
            p = waiting[at + j]
            a, b = np.uintp(pair[p, 0]), np.uintp(pair[p, 1])
            put_lane(lane, j, between(a, b, rows, edges), a, b, forms)
            # Scaled by this much about its centre, an ellipsoid contains all that is within half the margin of it.
            wide_a, wide_b = 1.0 + 0.5 * margin / forms[a, LEAST_AXIS], 1.0 + 0.5 * margin / forms[b, LEAST_AXIS]
            for i in range(6):
                lane[3 + i, j] *= wide_a * wide_a
                lane[9 + i, j] *= wide_b * wide_b
        characteristic_lanes(lane, used)
        for j in range(used):
            waiting[left] = waiting[at + j]
            left += 0 if lane[ANSWER, j] == NO else 1
    return left


def points_block(block, first, count, spheres, rows, forms, pairs, points, edges, margin, keeps):
    """Contact points of a block of pairs, rows first to first + count of the list, with a gap up to margin [m].

    spheres: pairs before the first slot; keeps: slots know the normal and gap of the last step.
    """
    pair, slot, normal, gap, arm, radius = pairs.shape, pairs.slot, points.normal, points.gap, points.arm, points.radius
    many = points.count
    waiting = np.empty(BLOCK, np.int64)
    # Made by np.empty, whose strides the compiler knows; of np.ones it does not, and makes no vector instructions.
    lane = np.empty((ALL_ROWS, LANES))
    for i in range(ALL_ROWS):
        for k in range(LANES):
            lane[i, k] = 1.0
    begin = first + block * BLOCK
    found = 0
    for p in range(begin, min(begin + BLOCK, first + count)):
        a, b = np.uintp(pair[p, 0]), np.uintp(pair[p, 1])
        if asleep(p, a, b, spheres, pairs, margin):
            continue
        c = np.uintp(slot[p - spheres])
        d = between(a, b, rows, edges)
        if keeps:
            # A pair that touched touches again, most likely.
            n = (normal[c, 0], normal[c, 1], normal[c, 2])
            apart = not gap[c] < 0.0 and parted(d, load_form(forms, a), load_form(forms, b), n)
        else:
            apart = boxes_apart(d, a, b, forms, margin)
        if apart:
            gap[c] = np.inf
            many[p - spheres] = 0
        else:
            waiting[found] = p
            found += 1
    if CHM:
        before = found
        found = drop_apart(waiting, before, np.empty((CHM_ROWS, CHM_LANES)), rows, forms, pair, edges, margin)
        if found < before:
            mark_apart(begin, min(begin + BLOCK, first + count), spheres, waiting, found, slot, gap, many)
    for at in range(0, found, LANES):
        used = min(LANES, found - at)
        for k in range(used):
            p = waiting[at + k]
            a, b = np.uintp(pair[p, 0]), np.uintp(pair[p, 1])
            c = np.uintp(slot[p - spheres])
            put_lane(lane, k, between(a, b, rows, edges), a, b, forms)
            lane[LEAST, k] = forms[a, LEAST_RADIUS] + forms[b, LEAST_RADIUS]
            lane[STATE, k] = 1.0 if keeps and gap[c] < 0.0 else 0.0
            for i in range(3):
                lane[N + i, k] = normal[c, i]
        solve_lanes(lane, used)
        for k in range(used):
            if lane[STATE, k] == 0.0:
                d, m1, m2 = lane_forms(lane, k)
                n = (lane[N, k], lane[N + 1, k], lane[N + 2, k])
                n, lane[GAP, k] = common_normal_from(d, m1, m2, lane[LEAST, k], n)
                lane[N, k], lane[N + 1, k], lane[N + 2, k] = n
        for k in range(LANES):
            d, m1, m2 = lane_forms(lane, k)
            n = (lane[N, k], lane[N + 1, k], lane[N + 2, k])
            lane[ARM, k], lane[ARM + 1, k], lane[ARM + 2, k] = middle_arm(m1, n, lane[GAP, k])
            lane[RADIUS, k] = contact_radius(m1, m2, n)
            lane[ROOM, k] = room_inside(d, m1, m2)
        for k in range(used):
            p = waiting[at + k]
            c = np.uintp(slot[p - spheres])
            touches = lane[GAP, k] <= margin
            gap[c], radius[c] = lane[GAP, k] if touches else np.inf, lane[RADIUS, k]
            many[p - spheres] = 1 if touches else 0
            if lane[ROOM, k] >= 0.0:
                put_inside(lane, k)
            for i in range(3):
                normal[c, i] = lane[N + i, k]
                arm[c, i] = lane[ARM + i, k]


@func
def mark_apart(begin, end, spheres, waiting, found, slot, gap, many):
    """Take the slots of all pairs begin to end out of use that do not wait."""
    j = 0
    for p in range(begin, end):
        if j < found and waiting[j] == p:
            j += 1
        else:
            gap[slot[p - spheres]] = np.inf
            many[p - spheres] = 0


def points_row(k, first, count, spheres, rows, forms, pairs, points, edges, margin, keeps):
    """The contact point of one pair, for a CUDA grid: the same functions as `points_block`, each pair from the start."""
    p = first + k
    a, b = pairs.shape[p, 0], pairs.shape[p, 1]
    if asleep(p, a, b, spheres, pairs, margin):
        return
    c = pairs.slot[p - spheres]
    d = between(a, b, rows, edges)
    points.gap[c] = np.inf
    points.count[p - spheres] = 0
    if boxes_apart(d, a, b, forms, margin):
        return
    m1, m2 = load_form(forms, a), load_form(forms, b)
    n, gap = common_normal(d, m1, m2, forms[a, LEAST_RADIUS] + forms[b, LEAST_RADIUS])
    n = signed(n, d)
    if gap <= margin:
        inside, arm = inner_centre(d, m1, m2)
        if not inside:
            arm = middle_arm(m1, n, gap)
        points.gap[c], points.count[p - spheres] = gap, 1
        points.radius[c] = contact_radius(m1, m2, n)
        for i in range(3):
            points.normal[c, i] = n[i]
            points.arm[c, i] = arm[i]


def find_points(look, rows, margin):
    """Contact points of pairs of a list; see `clast.narrow.dispatch`."""
    first, count = rows
    device, there = look.device, look.there
    on_cpu = device is backend.CPU
    find = kernel(
        points_block if on_cpu else points_row,
        fastmath=("contract", "nsz"),
        grain=4,
        allocates=on_cpu,
        CHM=look.chm and margin < math.inf,
    )
    about = first, count, look.spheres_count, there.rows, there.forms, look.pairs, look.points
    find((count + BLOCK - 1) // BLOCK if on_cpu else count, *about, look.edges, margin, look.keeps)

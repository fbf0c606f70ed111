"""Pairs with at least one ellipsoid: the exact gap of many pairs at once, and their contact points from step to step.

Three levels (Pazouki et al. 2012): the pairs come from a broad phase; boxes and, if asked for, the yes/no test of the
characteristic equation (ChM) drop most that are apart; the common normal (OpM) gives the gap of the rest. A block of
pairs goes through one level after the other, so that the lanes of each are full.
"""

import math

import numpy as np

from ..broad.near import image
from ..kernels import backend, primitives
from ..kernels.backend import func, fused, kernel, part
from ..kernels.vec import dot
from ..shapes.ellipsoid_form import LEAST_AXIS, LEAST_RADIUS, adjugate, load_form, times
from .characteristic import ANSWER, NO, characteristic_lanes
from .characteristic import LANES as CHM_LANES
from .characteristic import ROWS as CHM_ROWS
from .common_normal import GAP, LANES, LEAST, ROWS, STATE, N, common_normal, common_normal_from, lane_forms, solve_lanes
from .curvature import contact_radius

BLOCK = 256  # pairs a task

PERIODIC = False  # bound to the kernels
CHM = False


@func
def between(a, b, centre, edges, periodic):
    """From the centre of shape a to that of shape b, or to its nearest periodic image."""
    d = (centre[b, 0] - centre[a, 0], centre[b, 1] - centre[a, 1], centre[b, 2] - centre[a, 2])
    if periodic:
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


def gap_block(block, centre, forms, pair, edges, margin, normal, gap):
    """Normals and gaps of a block of pairs; the gap is infinite where it is certain to be above the margin."""
    first, last = block * BLOCK, min(len(gap), (block + 1) * BLOCK)
    waiting = np.empty(BLOCK, np.int64)
    count = 0
    for p in range(first, last):
        a, b = np.uintp(pair[p, 0]), np.uintp(pair[p, 1])
        gap[p] = np.inf
        waiting[count] = p
        count += 0 if boxes_apart(between(a, b, centre, edges, PERIODIC), a, b, forms, margin) else 1
    if CHM:
        lane = np.empty((CHM_ROWS, CHM_LANES))
        candidates, count = count, 0
        for at in range(0, candidates, CHM_LANES):
            used = min(CHM_LANES, candidates - at)
            for j in range(used):
                p = waiting[at + j]
                a, b = np.uintp(pair[p, 0]), np.uintp(pair[p, 1])
                put_lane(lane, j, between(a, b, centre, edges, PERIODIC), a, b, forms)
                # Scaled by this much about its centre, an ellipsoid contains all that is within half the margin of it.
                wide_a, wide_b = 1.0 + 0.5 * margin / forms[a, LEAST_AXIS], 1.0 + 0.5 * margin / forms[b, LEAST_AXIS]
                for i in range(6):
                    lane[3 + i, j] *= wide_a * wide_a
                    lane[9 + i, j] *= wide_b * wide_b
            characteristic_lanes(lane, used)
            for j in range(used):
                waiting[count] = waiting[at + j]
                count += 0 if lane[ANSWER, j] == NO else 1
    lane = np.empty((ROWS, LANES))
    for at in range(0, count, LANES):
        used = min(LANES, count - at)
        for j in range(used):
            p = waiting[at + j]
            a, b = np.uintp(pair[p, 0]), np.uintp(pair[p, 1])
            put_lane(lane, j, between(a, b, centre, edges, PERIODIC), a, b, forms)
            lane[LEAST, j] = forms[a, LEAST_RADIUS] + forms[b, LEAST_RADIUS]
            lane[STATE, j] = 0.0
        solve_lanes(lane, used)
        for j in range(used):
            p = waiting[at + j]
            n, g = (lane[N, j], lane[N + 1, j], lane[N + 2, j]), lane[GAP, j]
            if lane[STATE, j] == 0.0:
                d, m1, m2 = lane_forms(lane, j)
                n, g = common_normal_from(d, m1, m2, lane[LEAST, j], n)
            gap[p] = g
            normal[p, 0], normal[p, 1], normal[p, 2] = signed(n, (lane[0, j], lane[1, j], lane[2, j]))


@func
def settle(a, b, centre, forms, edges, periodic):
    """Normal and gap of one pair, whatever its pose."""
    d = between(a, b, centre, edges, periodic)
    least = forms[a, LEAST_RADIUS] + forms[b, LEAST_RADIUS]
    return common_normal(d, load_form(forms, a), load_form(forms, b), least)


@func
def signed(n, d):
    """n, or -n where both are the answer because the centres coincide: the one whose largest component is positive."""
    same = d[0] == 0.0 and d[1] == 0.0 and d[2] == 0.0
    x, y, z = abs(n[0]), abs(n[1]), abs(n[2])
    largest = n[0] if x >= y and x >= z else (n[1] if y >= z else n[2])
    sign = -1.0 if same and largest < 0.0 else 1.0
    return (sign * n[0], sign * n[1], sign * n[2])


def gap_row(p, centre, forms, pair, edges, margin, normal, gap):
    """Normal and gap of one pair, for a CUDA grid."""
    a, b = pair[p, 0], pair[p, 1]
    gap[p] = np.inf
    if not boxes_apart(between(a, b, centre, edges, PERIODIC), a, b, forms, margin):
        n, gap[p] = settle(a, b, centre, forms, edges, PERIODIC)
        normal[p, 0], normal[p, 1], normal[p, 2] = signed(n, between(a, b, centre, edges, PERIODIC))


def measure_solids(centre, forms, pair, box, margin, *, chm):
    """Normals (p,3) and gaps (p,) [m] of pairs (p,2) of shapes; a gap that is certain to be above the margin is inf."""
    device = backend.DEVICE[-1]
    n = len(pair)
    normal, gap = device.empty((n, 3), np.float64), device.empty(n, np.float64)
    edges = (*box.length.tolist(), *box.inverse.tolist())
    arguments = centre, forms, pair, edges, float(margin), normal, gap
    if device is backend.CPU:
        fast = kernel(
            gap_block, fastmath=("contract", "nsz"), grain=2, allocates=True, PERIODIC=bool(box.periodic), CHM=bool(chm)
        )
        fast((n + BLOCK - 1) // BLOCK, *arguments)
    else:
        kernel(gap_row, PERIODIC=bool(box.periodic))(n, *arguments)
    return normal, gap


def near_row(p, gap, margin, near):
    """Whether a pair is within the margin."""
    near[p] = 1 if gap[p] <= margin else 0


def keep_row(p, pair, start, kept):
    """Copy a pair that is kept."""
    if start[p + 1] > start[p]:
        kept[start[p], 0] = pair[p, 0]
        kept[start[p], 1] = pair[p, 1]


def near_solids(centre, forms, pair, box, margin):
    """Those of the pairs (p,2) whose gap is within the margin [m], in their order."""
    device = backend.DEVICE[-1]
    _, gap = measure_solids(centre, forms, pair, box, margin, chm=False)
    near = device.empty(len(pair), np.int8)
    kernel(near_row)(len(pair), gap, float(margin), near)
    start = primitives.scan(near)
    kept = device.empty((int(device.to_host(start[-1:])[0]), 2), np.int32)
    kernel(keep_row)(len(pair), pair, start, kept)
    return kept


def near_pairs(state, pair):
    """Those of the pairs (p,2) that stay in the neighbour list of a State."""
    return near_solids(state.there.shapes.centre, state.there.forms, pair, state.box, state.margin)


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


@part
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
def contact_arm(d, m1, m2, n, gap):
    """From the centre of the first ellipsoid to the contact point: half way between the two surface points.

    Where one ellipsoid contains the other it is the centre of the inner one, which belongs to both.
    """
    if contains(d, m1, m2):
        return d
    if contains(d, m2, m1):
        return (0.0, 0.0, 0.0)
    arm = surface_point(m1, n)
    return (arm[0] + 0.5 * gap * n[0], arm[1] + 0.5 * gap * n[1], arm[2] + 0.5 * gap * n[2])


# Contact points of the neighbour list, from step to step. A slot keeps its last normal. That is tried first: where it parts the
# two bodies nothing touches, which costs one look. A pair that touched starts Newton's method there; one that begins to
# touch starts afresh, so that the result does not depend on when the pair came into the list.

# Rows of the lanes after those of the common normal. All are in one array: with two, the compiler cannot tell that writing
# to one leaves the other alone, and makes no vector instructions.
ARM, RADIUS = ROWS, ROWS + 3
ALL_ROWS = ROWS + 4


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
    """From the centre of an ellipsoid to the middle of the overlap at its surface point with outward normal n."""
    arm = surface_point(m, n)
    return (arm[0] + 0.5 * gap * n[0], arm[1] + 0.5 * gap * n[1], arm[2] + 0.5 * gap * n[2])


def points_block(block, first, count, spheres, rows, forms, pairs, points, edges):
    """Contact points of a block of pairs, rows first to first + count of the list; spheres: pairs before the first slot."""
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
        c = np.uintp(slot[p - spheres])
        n = (normal[c, 0], normal[c, 1], normal[c, 2])
        # A pair that touched touches again, most likely.
        touched = gap[c] < 0.0
        if not touched and parted(between(a, b, rows, edges, PERIODIC), load_form(forms, a), load_form(forms, b), n):
            gap[c] = np.inf
            many[p - spheres] = 0
        else:
            waiting[found] = p
            found += 1
    for at in range(0, found, LANES):
        used = min(LANES, found - at)
        for k in range(used):
            p = waiting[at + k]
            a, b = np.uintp(pair[p, 0]), np.uintp(pair[p, 1])
            c = np.uintp(slot[p - spheres])
            put_lane(lane, k, between(a, b, rows, edges, PERIODIC), a, b, forms)
            lane[LEAST, k] = forms[a, LEAST_RADIUS] + forms[b, LEAST_RADIUS]
            lane[STATE, k] = 1.0 if gap[c] < 0.0 else 0.0
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
            _, m1, m2 = lane_forms(lane, k)
            n = (lane[N, k], lane[N + 1, k], lane[N + 2, k])
            lane[ARM, k], lane[ARM + 1, k], lane[ARM + 2, k] = middle_arm(m1, n, lane[GAP, k])
            lane[RADIUS, k] = contact_radius(m1, m2, n)
        for k in range(used):
            c = np.uintp(slot[waiting[at + k] - spheres])
            gap[c], radius[c] = lane[GAP, k], lane[RADIUS, k]
            many[waiting[at + k] - spheres] = 1 if lane[GAP, k] < 0.0 else 0
            for i in range(3):
                normal[c, i] = lane[N + i, k]
                arm[c, i] = lane[ARM + i, k]


def points_row(k, first, count, spheres, rows, forms, pairs, points, edges):
    """The contact point of one pair, for a CUDA grid: the same functions as `points_block`, each pair from the start."""
    p = first + k
    a, b = pairs.shape[p, 0], pairs.shape[p, 1]
    c = pairs.slot[p - spheres]
    n, gap = settle(a, b, rows, forms, edges, PERIODIC)
    arm = middle_arm(load_form(forms, a), n, gap)
    points.gap[c] = gap
    points.count[p - spheres] = 1 if gap < 0.0 else 0
    points.radius[c] = contact_radius(load_form(forms, a), load_form(forms, b), n)
    for i in range(3):
        points.normal[c, i] = n[i]
        points.arm[c, i] = arm[i]


def find_points(state, first, count, edges):
    """Contact points of the pairs first to first + count of the neighbour list of a State."""
    device, there = state.device, state.there
    on_cpu = device is backend.CPU
    find = kernel(
        points_block if on_cpu else points_row,
        fastmath=("contract", "nsz"),
        grain=4,
        allocates=on_cpu,
        PERIODIC=bool(state.box.periodic),
    )
    tasks = (count + BLOCK - 1) // BLOCK if on_cpu else count
    find(tasks, first, count, state.spheres_count, there.rows, there.forms, state.pairs, state.points, edges)

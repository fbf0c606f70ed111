"""A convex polyhedron against a cylinder: drum, tube or rod. Axes, units and the answer are those of `polyhedron_plane`.

Solid cylinders are convex and have a file of their own, `polyhedron_rod`; the rest is about shells. Inside a shell only
corners can touch it, as inside any convex room. From outside, what touches is

    corners of the polyhedron, with the way out of the mantle at each;
    edges, at their point nearest to the axis, and where they cross a rim;
    the rims, where they dip below faces of the polyhedron.

Exact: all contacts inside a shell; the distance while the two are apart, from a rim by `polyhedron_rim`; outside, the deepest point on the mantle as long as the axis
does not pierce the polyhedron. Not exact: a rim within the polyhedron is represented by the point that lies deepest below each face and three more at right angles;
where an edge comes off the rim the depth may jump by a part of itself; a tube that pierces a polyhedron through two faces, deeper than its own diameter, is not felt.
"""

import math

import numpy as np

from ..kernels.backend import func, part
from ..kernels.vec import add, cross, dot, norm, normalize, scale, sub
from .polyhedron_plane import SCRATCH, add_point, corner, face_normal, keep_four
from .polyhedron_polyhedron import EDGE_EDGE, POINT, VERTEX_FACE
from .polyhedron_rim import rim_distance
from .polyhedron_rod import PARALLEL, from_axis, hull_rod, roots
from .polyhedron_sphere import FACE
from .sphere_walls import sphere_cylinder

# Where the matter of a rim may lie, seen from the polyhedron, as a cosine. A little more than a right angle: else a face that lies
# flat on an end would gain and lose points with every rounding of its tilt.
RISES = 0.2
UPRIGHT = 0.5  # sine of a face's tilt to an end below which more than its deepest rim point is looked at


@func
def pierces(start, p, axis, radius, half_length):
    """Whether the straight way from start to p leads through the mantle of a finite shell."""
    w, a = from_axis(start, axis)
    u, b = from_axis(sub(p, start), axis)
    low, high = roots(dot(u, u), dot(w, u), dot(w, w) - radius * radius)
    s = low if low > 0.0 else high
    return s <= 1.0 and abs(a + s * b) <= half_length


@func
def touch_at(p, start, axis, radius, half_length, inside):
    """Gap [m] and normal of a point p of the polyhedron; inf if the wall is not there. All relative to the cylinder."""
    _, gap, n, _ = sphere_cylinder(p, axis, radius, math.inf, 1.0)
    if not inside:
        gap, n = -gap, scale(-1.0, n)
    if half_length < math.inf:
        there = abs(dot(p, axis)) <= half_length
        if gap < 0.0:
            there = pierces(start, p, axis, radius, half_length)
        gap = gap if there else math.inf
    return gap, n


@func
def may_touch(p, axis, radius, half_length, inside, margin):
    """A cheap test: whether p can have a gap up to margin."""
    along = dot(p, axis)
    square = dot(p, p) - along * along
    if inside:
        least = max(radius - margin, 0.0) * (1.0 - 1e-12)
        return square >= least * least
    most = (radius + margin) * (1.0 + 1e-12)
    return square <= most * most and abs(along) <= half_length + margin


@part
def corners_touch(h, k, hulls, c, axis, radius, half_length, inside, margin, work):
    """Corners of the polyhedron as candidates: how many."""
    size = k * hulls.outer[h]
    first = hulls.vertex_start[h]
    start = scale(-1.0, c)
    count = np.int64(0)  # a bare 0 has a type of its own, for which all that is called would be compiled again
    for i in range(first, hulls.vertex_start[h + 1]):
        v = np.uintp(i)
        x = corner(hulls, k, v)
        p = sub(x, c)
        if may_touch(p, axis, radius, half_length, inside, margin):
            gap, n = touch_at(p, start, axis, radius, half_length, inside)
            if gap <= margin and gap < math.inf:
                count = add_point(work, count, size, x, gap, n, 4.0 * (i - first) + VERTEX_FACE)
    return count


@func
def on_mantle(p, u, start, axis, radius, half_length, margin):
    """Where an edge from p along u is nearest to the axis, with gap and normal; gap inf if the mantle is not there."""
    w, a = from_axis(p, axis)
    across, b = from_axis(u, axis)
    square = dot(across, across)
    s = -dot(w, across) / square if square > PARALLEL * dot(u, u) else -1.0
    gap = math.inf
    n = axis
    if s > 0.0 and s < 1.0:
        x = add(p, scale(s, u))
        if may_touch(x, axis, radius, half_length, False, margin) and abs(a + s * b) <= half_length:
            # Below the rim of a shell an edge may be nearer to the mantle than to the rim it came over.
            _, out, _, _ = sphere_cylinder(x, axis, radius, math.inf, 1.0)
            nearer = half_length - abs(a + s * b) >= out
            gap, n = touch_at(x, start, axis, radius, math.inf if nearer else half_length, False)
    return s, gap, n


@part
def crosses_rim(p, u, up, axis, radius, half_length, inside, deep, least, margin, work, count, size, c, feature):
    """Where an edge from p along u crosses the rim `up` of a shell from above: candidates, how many now."""
    w, a = from_axis(p, axis)
    across, b = from_axis(u, axis)
    square = dot(across, across)
    low, high = roots(square, dot(w, across), dot(w, w) - radius * radius)
    # From outside, an edge that cuts off a short piece of the rim has a shorter way out across it: `on_mantle`.
    s = -dot(w, across) / square if square > 0.0 else 0.0
    if not inside and half_length - up * (a + s * b) >= radius - norm(add(w, scale(s, across))):
        return count
    for i in range(2):
        s = low if i == 0 else high
        below = up * (a + s * b) - half_length
        if s > 0.0 and s < 1.0 and below <= margin and below >= -deep:
            x = add(p, scale(s, u))
            radial, _ = from_axis(x, axis)
            n = cross(u, cross(axis, radial))
            n = normalize(n) if dot(n, n) > PARALLEL * dot(u, u) * radius * radius else scale(-up, axis)
            n = scale(-1.0, n) if up * dot(n, axis) > 0.0 else n
            gap = -below * up * dot(n, axis)
            if gap <= margin and not 0.0 <= gap < least:
                count = add_point(work, count, size, add(x, c), gap, n, feature)
    return count


@part
def edges_touch(h, k, hulls, c, axis, radius, half_length, inside, least, margin, work, count):
    """Edges of the polyhedron as candidates after `count` of them: how many now. least: see `rims_apart`."""
    size = k * hulls.outer[h]
    first = hulls.edge_start[h]
    start = scale(-1.0, c)
    above = dot(start, axis)
    up = 1.0 if above >= 0.0 else -1.0
    over_rim = abs(above) > half_length
    for i in range(first, hulls.edge_start[h + 1]):
        e = np.uintp(i)
        p = sub(corner(hulls, k, np.uintp(hulls.edge[e, 0])), c)
        u = sub(sub(corner(hulls, k, np.uintp(hulls.edge[e, 1])), c), p)
        feature = 4.0 * (i - first) + EDGE_EDGE
        if not inside:
            s, gap, n = on_mantle(p, u, start, axis, radius, half_length, margin)
            if gap <= margin and gap < math.inf:
                x = add(add(p, scale(s, u)), c)
                count = add_point(work, count, size, x, gap, n, feature)
        if over_rim:
            deep = k * hulls.inner[h]
            count = crosses_rim(
                p, u, up, axis, radius, half_length, inside, deep, least, margin, work, count, size, c, feature
            )
    return count


@func
def rim_apart(h, k, hulls, middle, axis, radius, margin):
    """Whether one face has the whole circle about `middle` above it, by more than margin."""
    for i in range(hulls.face_start[h], hulls.face_start[h + 1]):
        f = np.uintp(i)
        n = face_normal(hulls, f)
        across, _ = from_axis(n, axis)
        if dot(n, middle) - k * hulls.offset[f] - radius * norm(across) > margin:
            return True
    return False


@func
def out_through(h, k, hulls, x, axis, up):
    """The face through which the rim point x has the least way out, -1 if none, its height over it and over all [m]."""
    best, most, over = -1, -math.inf, -math.inf
    for i in range(hulls.face_start[h], hulls.face_start[h + 1]):
        f = np.uintp(i)
        n = face_normal(hulls, f)
        height = dot(n, x) - k * hulls.offset[f]
        over = max(over, height)
        if height > most and up * dot(n, axis) <= RISES:
            best, most = i, height
    return best, most, over


@part
def rim_touches(h, k, hulls, c, axis, radius, half_length, up, least, margin, work, count):
    """Points of the rim `up` that dip below faces of the polyhedron, after `count` candidates: how many now. least: see `rims_apart`."""
    middle = add(c, scale(up * half_length, axis))
    if rim_apart(h, k, hulls, middle, axis, radius, margin):
        return count
    size = k * hulls.outer[h]
    first = hulls.face_start[h]
    corners = hulls.vertex_start[h + 1] - hulls.vertex_start[h]
    off, _ = from_axis(middle, axis)
    x_is_short = abs(axis[0]) < 0.6
    some = normalize(cross(axis, (1.0 if x_is_short else 0.0, 0.0 if x_is_short else 1.0, 0.0)))
    some = normalize(off) if dot(off, off) > 1e-12 * size * size else some
    for i in range(first, hulls.face_start[h + 1]):
        n = face_normal(hulls, np.uintp(i))
        across, along = from_axis(n, axis)
        tilt = norm(across)
        if up * along <= RISES and dot(n, middle) - k * hulls.offset[np.uintp(i)] - radius * tilt <= margin:
            one = scale(-1.0 / tilt, across) if tilt > 1e-6 else some
            two = cross(axis, one)
            for j in range(4 if tilt < UPRIGHT else 1):
                side = one if j % 2 == 0 else two
                x = add(middle, scale(radius if j < 2 else -radius, side))
                best, height, over = out_through(h, k, hulls, x, axis, up)
                # The deepest point below a face may have a shorter way out beside it; outside only the face below counts.
                own = best == i or (best >= 0 and j == 0 and tilt > 1e-6 and tilt < UPRIGHT)
                if own and height <= margin and (over <= 0.0 or over == height) and not 0.0 <= height < least:
                    m = face_normal(hulls, np.uintp(best))
                    point = sub(x, scale(height, m))
                    feature = 4.0 * (corners + best - first) + VERTEX_FACE
                    count = add_point(work, count, size, point, height, m, feature)
    return count


@func
def rims_apart(h, k, hulls, c, axis, radius, half_length, margin):
    """Of the nearer rim: distance [m], unit n to it, the polyhedron's point and its feature.

    Infinite above the margin; minus infinity where a rim goes into the polyhedron, which then has ways out. A height over a face is less than the distance where the foot
    is beside the face: while the two are apart no candidate of a rim may be nearer than this.
    """
    gap, n, point, feature = math.inf, axis, c, 0
    for up in (1.0, -1.0):
        middle = add(c, scale(up * half_length, axis))
        other, m, x, which = rim_distance(h, k, hulls, middle, axis, radius, min(gap, margin))
        if other < gap:
            gap, n, point, feature = other, m, x, which
    return (gap if gap > 0.0 else -math.inf), n, point, feature


@part
def add_rim(h, k, hulls, gap, n, point, feature, work, count):
    """The nearest point of a rim as a candidate after `count` of them, unless one is as near: how many now; arguments as from `rims_apart`."""
    size = k * hulls.outer[h]
    for i in range(count):
        if work[SCRATCH + POINT * i + 3] <= gap + 1e-12 * size:
            return count
    corners = hulls.vertex_start[h + 1] - hulls.vertex_start[h]
    which = np.int64(feature)
    number = 4.0 * (corners + which // 4) + VERTEX_FACE if which % 4 == FACE else 4.0 * (which // 4) + EDGE_EDGE
    return add_point(work, count, size, point, gap, n, number)


@part
def hull_cylinder(h, k, hulls, c, axis, radius, half_length, sense, margin, work):
    """Hull h at size factor k against a cylinder: how many contact points were written, 0 to 4.

    c: the cylinder's centre [m]; axis: unit; radius and half_length [m], the latter may be infinite.
    sense +1: hollow, open at both ends. An endless shell holds what is inside, so that corners outside are pushed back
    however far they are; a finite one is a thin sheet felt from both sides, and the side of the polyhedron's centre counts.
    Each point has its own normal: radial on the mantle, that of a face at a rim. What is exact and what is not stands at the top
    of this file. sense -1: solid with flat ends, see `hull_rod`.
    """
    size = k * hulls.outer[h]
    away, along = from_axis(scale(-1.0, c), axis)
    distance = norm(away)
    if sense < 0.0:
        around = size + margin
        if distance - radius > around or abs(along) - half_length > around:
            return 0
        return hull_rod(h, k, hulls, c, axis, radius, half_length, margin, work)
    endless = half_length == math.inf
    inside = endless or distance < radius
    if abs(along) - half_length - size > margin:
        return 0
    if (radius - distance if inside else distance - radius) - size > margin:
        return 0
    count = corners_touch(h, k, hulls, c, axis, radius, half_length, inside, margin, work)
    rims = not endless and abs(along) + size + margin >= half_length
    least, n, point, feature = -math.inf, axis, c, 0
    # Of those that overlap alone nothing above zero is asked.
    if rims and margin > 0.0:
        least, n, point, feature = rims_apart(h, k, hulls, c, axis, radius, half_length, margin)
    if rims or not inside:
        count = edges_touch(h, k, hulls, c, axis, radius, half_length, inside, least, margin, work, count)
    if rims:
        for up in (1.0, -1.0):
            count = rim_touches(h, k, hulls, c, axis, radius, half_length, up, least, margin, work, count)
        if 0.0 < least <= margin:
            count = add_rim(h, k, hulls, least, n, point, feature, work, count)
    return keep_four(work, count, size)

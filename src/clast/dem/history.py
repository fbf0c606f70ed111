"""What contact points remember from step to step, and how the points of one manifold share a stiffness.

All points of one particle with one body form a manifold. Points of one area of contact slip together: of what they
remember the nearest rigid motion is taken, a shift and a turn about the normal, and a point has the slip that this gives where it
is. So it does not matter which points stand for an area from step to step: the shear force stays when shares of the stiffness
go from point to point, and a particle that slides from one triangle of a mesh to the next, or whose corners of contact change,
takes its slip along. Points that are areas of their own keep their slip, and one that begins takes that of the nearest
point which ended, if that was near and looked the same way. Slip is a length, and points share the stiffness, so handing
one slip to two points makes no force from nothing.

Points of one area of contact answer with their share f(d_i) / sum of f(d_j) max(0, n_i . n_j)^2, d the overlap and f(d) the power of
it with which the law's normal force grows, of the law at the overlap max over j of d_j max(0, n_i . n_j): the force does
not depend on how many points stand for the area, a point that comes or goes brings or takes no force, and an area of n
points that rocks is as stiff as n springs side by side, each with an n-th of the stiffness. Friction and rolling resistance are
limited by the pressure on the area as a whole, at its centre of pressure: a corner that lifts while a box rocks, and presses no
more for a moment, does not lose the slip of the area.
"""

import math

import numpy as np

from ..kernels.backend import func
from ..kernels.vec import add, cross, dot, load, scale, sub

ALIKE = 0.5  # cosine between two normals above which a point may take up the slip of the other
SAME_AREA = 0.9  # cosine between two normals above which points slip together
POINTLIKE = 1e-4  # an area narrower than this fraction of the radius does not turn
STAYS = 0.01  # a point that moved by less than this part of its radius is the same


# Points are brought side by side before they are compared: columns.
ARM, NORMAL, GAP, RADIUS = 0, 3, 6, 7  # of the point
SLIP, ANGLE, SHARE, OVERLAP = 8, 11, 14, 15  # what it takes up, and what it shares
STAYED = 16  # the distance from where its slot was in the step before [m^2]; infinite if that was not in use
CENTRE = 17  # from the point to the centre of pressure of its area
COLUMNS = 20


@func
def vector(near, k, column):
    """Three columns of row k."""
    return (near[k, column], near[k, column + 1], near[k, column + 2])


@func
def bring_near(count, waiting, area, points, history, near):
    """Write what is known of the first slots in the list `waiting` into the rows of near, one below the other.

    area: the points stand for one area, and what their own slots remember is not looked at. Short loops without branches: the
    processor then waits for many places in memory at a time.
    """
    for row in range(count):
        k = np.uintp(row)
        c = np.uintp(waiting[k])
        for i in range(3):
            near[k, ARM + i] = points.arm[c, i]
            near[k, NORMAL + i] = points.normal[c, i]
        near[k, GAP] = points.gap[c]
        near[k, RADIUS] = points.radius[c]
    if area:
        return
    for row in range(count):
        k = np.uintp(row)
        c = np.uintp(waiting[k])
        for i in range(3):
            near[k, SLIP + i] = history.slip[c, i]
    for row in range(count):
        k = np.uintp(row)
        c = np.uintp(waiting[k])
        way = sub(load(history.arm, c), vector(near, k, ARM))
        near[k, STAYED] = dot(way, way) if history.live[c] == 1 else np.inf


@func
def weigh(overlap, power):
    """How much a point with this overlap [m] bears."""
    return overlap * math.sqrt(overlap) if power == 1.5 else (overlap if power == 1.0 else overlap**power)


@func
def share(n, begin, end, near, power):
    """Of the points of a manifold, rows begin to end, that look along n: what they bear together, the deepest overlap [m], and
    their centre of pressure (3,) [m]."""
    whole, deepest, centre = 0.0, 0.0, (0.0, 0.0, 0.0)
    for row in range(begin, end):
        j = np.uintp(row)
        along = max(0.0, dot(n, vector(near, j, NORMAL)))
        weight = weigh(-near[j, GAP], power) * along * along
        whole += weight
        deepest = max(deepest, -near[j, GAP] * along)
        centre = add(centre, scale(weight, vector(near, j, ARM)))
    return whole, deepest, scale(1.0 / whole, centre)


@func
def turned(v, n, m):
    """A vector at right angles to n, turned along with n into m, both unit."""
    return sub(v, scale(dot(m, v) / (1.0 + dot(n, m)), add(n, m)))


@func
def rigid_slip(n, at, radius, slots, history, rolling):
    """The rigid motion across n that is nearest to the slips which slots of a manifold remember that looked along n: how much of the
    stiffness they had, slip (3,) [m] of their middle, the middle (3,) [m], turn about n, mean rolling angle (3,).

    at (3,) [m]: a place near them, about which turns are added up; radius [m]: the width of the contact is compared with it; slots: the first
    of the manifold, and behind its last.
    """
    whole, width, turn = 0.0, 0.0, 0.0
    middle, slip, angle = (0.0, 0.0, 0.0), (0.0, 0.0, 0.0), (0.0, 0.0, 0.0)
    for row in range(slots[0], slots[1]):
        d = np.uintp(row)
        if history.live[d] == 1:
            m = load(history.normal, d)
            weight = history.share[d] * max(0.0, dot(n, m) - SAME_AREA)
            if weight > 0.0:
                own = turned(load(history.slip, d), m, n)
                arm = sub(load(history.arm, d), at)
                across = cross(n, arm)
                whole += weight
                middle, slip = add(middle, scale(weight, arm)), add(slip, scale(weight, own))
                turn += weight * dot(across, own)
                width += weight * dot(across, across)
                if rolling:
                    angle = add(angle, scale(weight, load(history.angle, d)))
    if whole == 0.0:
        return whole, slip, middle, turn, angle
    part = 1.0 / whole
    middle, slip, angle = scale(part, middle), scale(part, slip), scale(part, angle)
    across = cross(n, middle)
    # About the middle, from what was added up about `at`.
    turn, width = turn * part - dot(across, slip), width * part - dot(across, across)
    turn = turn / width if width > (POINTLIKE * radius) ** 2 else 0.0
    return whole, slip, add(at, middle), turn, angle


@func
def source(arm, n, reach, begin, end, history):
    """The nearest slot of those in use in the step before whose history a point at `arm` with normal n can take up, or -1."""
    best, least = -1, reach * reach
    for row in range(begin, end):
        d = np.uintp(row)
        if history.live[d] == 1 and dot(n, load(history.normal, d)) > ALIKE:
            way = sub(load(history.arm, d), arm)
            square = dot(way, way)
            if square < least:
                best, least = row, square
    return best


@func
def put(near, k, column, v):
    """Write a vector into three columns of row k."""
    near[k, column], near[k, column + 1], near[k, column + 2] = v


@func
def inherit(k, o, near, history, rolling):
    """Give row k of near what slot o remembers, nothing if that is -1."""
    for i in range(3):
        near[k, SLIP + i] = history.slip[np.uintp(o), i] if o >= 0 else 0.0
        if rolling:
            near[k, ANGLE + i] = history.angle[np.uintp(o), i] if o >= 0 else 0.0


@func
def take_up_area(begin, end, slots, near, history, power, rolling):
    """Complete the rows begin to end of near, a manifold whose points stand for one area: what they share and take up.

    slots: the first of the manifold, and behind its last; power: with which the law's normal force grows.
    """
    last = (0.0, 0.0, 0.0)
    whole, deepest, centre = 1.0, 0.0, last
    known, slip, middle, turn, angle = 0.0, last, last, 0.0, last
    for row in range(begin, end):
        k = np.uintp(row)
        n, arm = vector(near, k, NORMAL), vector(near, k, ARM)
        # Most areas are flat: their points have one normal, and one answer.
        if n[0] != last[0] or n[1] != last[1] or n[2] != last[2]:
            whole, deepest, centre = share(n, begin, end, near, power)
            known, slip, middle, turn, angle = rigid_slip(n, arm, near[k, RADIUS], slots, history, rolling)
            last = n
        near[k, SHARE], near[k, OVERLAP] = weigh(-near[k, GAP], power) / whole, deepest
        put(near, k, CENTRE, sub(centre, arm))
        if known > 0.0:
            put(near, k, SLIP, add(slip, scale(turn, cross(n, sub(arm, middle)))))
            if rolling:
                put(near, k, ANGLE, angle)
        else:
            inherit(k, source(arm, n, near[k, RADIUS], slots[0], slots[1], history), near, history, rolling)


@func
def take_up(row, c, slots, near, history, rolling):
    """Complete a row of near, that of slot c, which is an area of its own: what the point takes up.

    slots: the first of its manifold, and behind its last.
    """
    k = np.uintp(row)
    near[k, SHARE], near[k, OVERLAP] = 1.0, -near[k, GAP]
    put(near, k, CENTRE, (0.0, 0.0, 0.0))
    reach, o = near[k, RADIUS], np.int64(c)
    if not near[k, STAYED] < STAYS * STAYS * reach * reach and slots[1] > slots[0] + 1:
        o = source(vector(near, k, ARM), vector(near, k, NORMAL), reach, slots[0], slots[1], history)
    elif near[k, STAYED] == np.inf:
        o = -1
    if o != c or rolling:
        inherit(k, o, near, history, rolling)

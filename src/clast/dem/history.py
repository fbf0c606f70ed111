"""What contact points remember from step to step, and how the points of one manifold share a stiffness.

All points of one particle with one body form a manifold. A point that begins takes the slip and the rolling angle of the
nearest point that the manifold had in the step before, if that was near and looked the same way. So a particle that rolls
or slides from one triangle of a mesh to the next, or whose corners of contact change, takes its slip along; and it does not
matter which points stand for a patch from step to step. Slip is a length, and points share the stiffness, so
handing one slip to two points makes no force from nothing.

Points of one area of contact answer with their share d_i / sum of d_j max(0, n_i . n_j)^2, d the overlap, of the law at the
overlap max over j of d_j max(0, n_i . n_j): the force does not depend on how many points stand for the area, and a point
that comes or goes brings or takes no force.
"""

import numpy as np

from ..kernels.backend import func
from ..kernels.vec import dot, load, sub

ALIKE = 0.5  # cosine between two normals above which a point may take up the slip of the other
STAYS = 0.01  # a point that moved by less than this part of its radius is the same


# Points are brought side by side before they are compared: columns.
ARM, NORMAL, GAP, RADIUS = 0, 3, 6, 7  # of the point
SLIP, ANGLE, SHARE, OVERLAP = 8, 11, 14, 15  # what it takes up, and what it shares
STAYED = 16  # the distance from where its slot was in the step before [m^2]; infinite if that was not in use
COLUMNS = 17


@func
def vector(near, k, column):
    """Three columns of row k."""
    return (near[k, column], near[k, column + 1], near[k, column + 2])


@func
def bring_near(count, waiting, points, history, near):
    """Write what is known of the first slots in the list `waiting` into the rows of near, one below the other.

    Short loops without branches: the processor then waits for many places in memory at a time.
    """
    for row in range(count):
        k = np.uintp(row)
        c = np.uintp(waiting[k])
        for i in range(3):
            near[k, ARM + i] = points.arm[c, i]
            near[k, NORMAL + i] = points.normal[c, i]
        near[k, GAP] = points.gap[c]
        near[k, RADIUS] = points.radius[c]
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
def share(k, begin, end, near):
    """The share of point k in the stiffness of its manifold, and the overlap [m] that its law sees."""
    n = vector(near, k, NORMAL)
    whole, deepest = 0.0, 0.0
    for row in range(begin, end):
        j = np.uintp(row)
        along = max(0.0, dot(n, vector(near, j, NORMAL)))
        whole -= near[j, GAP] * along * along
        deepest = max(deepest, -near[j, GAP] * along)
    return -near[k, GAP] / whole, deepest


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
def take_up(row, c, begin, end, slots, shares, near, history, shared, rolling):
    """Complete a row of near, that of slot c: what the point shares and takes up.

    begin to end: rows of its manifold; slots: the first of the manifold, and behind its last; shares: its points stand for
    one area; shared: the law has a stiffness that points share.
    """
    k = np.uintp(row)
    near[k, SHARE], near[k, OVERLAP] = 1.0, -near[k, GAP]
    if shared and shares and end > begin + 1:
        near[k, SHARE], near[k, OVERLAP] = share(k, begin, end, near)
    reach, o = near[k, RADIUS], np.int64(c)
    if not near[k, STAYED] < STAYS * STAYS * reach * reach and slots[1] > slots[0] + 1:
        o = source(vector(near, k, ARM), vector(near, k, NORMAL), reach, slots[0], slots[1], history)
    elif near[k, STAYED] == np.inf:
        o = -1
    if o != c:
        for i in range(3):
            near[k, SLIP + i] = history.slip[np.uintp(o), i] if o >= 0 else 0.0
    if rolling:
        for i in range(3):
            near[k, ANGLE + i] = history.angle[np.uintp(o), i] if o >= 0 else 0.0

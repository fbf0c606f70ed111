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

from ..kernels.backend import func, kernel
from ..kernels.vec import dot, load, sub

ALIKE = 0.5  # cosine between two normals above which a point may take up the slip of the other
STAYS = 0.01  # a point that moved by less than this part of its radius is the same

SHARED = True  # bound to the kernel: the law has a stiffness that points share
ROLLING = False


@func
def share(c, begin, end, gap, normal):
    """The share of point c in the stiffness of its manifold, and the overlap [m] that its law sees."""
    n = load(normal, c)
    whole, deepest = 0.0, 0.0
    for row in range(begin, end):
        d = np.uintp(row)
        if gap[d] < 0.0:
            along = max(0.0, dot(n, load(normal, d)))
            whole -= gap[d] * along * along
            deepest = max(deepest, -gap[d] * along)
    return -gap[c] / whole, deepest


@func
def source(c, begin, end, points, history):
    """The slot whose history point c takes up; -1 if there is none."""
    n, arm = load(points.normal, c), load(points.arm, c)
    reach = points.radius[c]
    if history.live[c] == 1:
        way = sub(load(history.arm, c), arm)
        if dot(way, way) < STAYS * STAYS * reach * reach:
            return c
    best, least = -1, reach * reach
    for d in range(begin, end):
        if history.live[d] == 1 and dot(n, load(history.normal, d)) > ALIKE:
            way = sub(load(history.arm, d), arm)
            square = dot(way, way)
            if square < least:
                best, least = d, square
    return best


def manifold_row(k, first, shares, pairs, points, history):
    """Share, slip and rolling angle of all points of manifold first + k; shares: its points stand for one area."""
    m = first + k
    low, high = pairs.manifold[m], pairs.manifold[m + 1]
    many = 0
    for q in range(low, high):
        many += points.count[q]
    if many == 0:
        return
    begin, end = pairs.slot[low], pairs.slot[high]
    gap = points.gap
    for row in range(begin, end):
        c = np.uintp(row)
        if gap[c] < 0.0:
            part, overlap = 1.0, -gap[c]
            if SHARED and shares and end > begin + 1:
                part, overlap = share(c, begin, end, gap, points.normal)
            points.share[c], points.overlap[c] = part, overlap
            if end == begin + 1:
                o = row if history.live[c] == 1 else -1
            else:
                o = source(row, begin, end, points, history)
            for i in range(3):
                points.slip[c, i] = history.slip[o, i] if o >= 0 else 0.0
            if ROLLING:
                for i in range(3):
                    points.angle[c, i] = history.angle[o, i] if o >= 0 else 0.0


def match(state, first, count, shares, shared, rolling):
    """Manifolds first to first + count of a State: what their points remember and share."""
    kernel(manifold_row, grain=256, SHARED=shared, ROLLING=rolling)(
        count, first, shares, state.pairs, state.points, state.history
    )

"""Two spheres: their contact point. Forces between spheres are found without it, in one pass: `clast.dem.sphere_pairs`."""

import math

import numpy as np

from ..kernels.backend import kernel
from .ellipsoids import between


def points_row(k, first, spheres, rows, radius, pairs, points, edges, margin):
    """The contact point of pair first + k of a list, with a gap up to margin [m]; rows (s,3+): centres [m]; spheres: pairs before
    the first slot."""
    p = first + k
    a, b = np.uintp(pairs.shape[p, 0]), np.uintp(pairs.shape[p, 1])
    c = np.uintp(pairs.slot[p - spheres])
    d = between(a, b, rows, edges)
    square = d[0] * d[0] + d[1] * d[1] + d[2] * d[2]
    reach = radius[a] + radius[b]
    # The same test as in the broad phase.
    if not square <= (reach + margin) * (reach + margin):
        points.gap[c] = np.inf
        points.count[p - spheres] = 0
        return
    distance = math.sqrt(square)
    # Two spheres with one centre may be parted in any direction.
    apart = distance > 0.0
    inverse = 1.0 / (distance if apart else 1.0)
    n = (d[0] * inverse, d[1] * inverse, d[2] * inverse if apart else 1.0)
    gap = distance - reach
    points.gap[c], points.radius[c] = gap, radius[a] * radius[b] / reach
    points.count[p - spheres] = 1 if gap < np.inf else 0
    for i in range(3):
        points.normal[c, i] = n[i]
        points.arm[c, i] = radius[a] * n[i] + 0.5 * gap * n[i]


def apart_row(p, rows, radius, pair, edges, per_class, classes, key, gap):
    """How far apart [m] the two spheres of a pair are, and its class by that, 0 for those that touch; per_class [1/m]."""
    a, b = np.uintp(pair[p, 0]), np.uintp(pair[p, 1])
    d = between(a, b, rows, edges)
    gap[p] = math.sqrt(d[0] * d[0] + d[1] * d[1] + d[2] * d[2]) - (radius[a] + radius[b])
    key[p] = min(int(gap[p] * per_class), classes - 1) if gap[p] > 0.0 else 0


def find_points(look, rows, margin):
    """Contact points of pairs of a list; see `clast.narrow.dispatch`."""
    first, count = rows
    there = look.there
    about = first, look.spheres_count, there.rows, there.shapes.radius, look.pairs, look.points
    kernel(points_row)(count, *about, look.edges, margin)

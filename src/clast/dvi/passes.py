"""One pass over all cones: what a solver must know about its last step, and the trial of the next.

The numbers of 64 cones at a time are put side by side into a local array, over which the arithmetic runs as vector
instructions; the width is fixed, so results do not depend on where a cone stands. Two cores, 3.5 million cones: half the
time of a loop over cones. Sums are kept lane by lane and added in a fixed order.
"""

from typing import Any

import numpy as np

from ..kernels.backend import fused, kernel
from ..kernels.vec import add, dot, scale, sub
from .projections import descend3, project3, project6

LANES = 64
CHUNK = 4 * LANES  # cones a task; fixed, so that sums do not depend on the number of threads
NONE = np.empty((0, 0))
SUMS = 5  # curvature, length, slope, speed, square (see `measure` and `miss`)
NOTHING, STEP, RESIDUAL = 0, 1, 2  # what a pass adds up: nothing, what it must know of the last step, also the residual
SIX = False  # bound to the kernel: cones have six numbers

# Rows of the lanes: normal, limits, size, rho; impulse g, velocity u, their changes d and v; the sums; what each cone adds to them.
N, LIMIT, SIZE, RHO = 0, 3, 7, 9
G, U, D, V = 10, 16, 22, 28
ADDED = 34
TERM = ADDED + SUMS
ROWS = TERM + SUMS


@fused
def take(lane, row, k):
    """Three rows of a lane as a vector."""
    return (lane[row, k], lane[row + 1, k], lane[row + 2, k])


@fused
def put(lane, row, k, x):
    """A vector into three rows of a lane."""
    lane[row, k] = x[0]
    lane[row + 1, k] = x[1]
    lane[row + 2, k] = x[2]


@fused
def measure(lane, k, six):
    """Add to the sums: d.v (curvature), |d|^2 weighted with size (length), d.u (slope), |v|^2 with 1/size (speed)."""
    n = take(lane, N, k)
    d = take(lane, D, k)
    v = take(lane, V, k)
    dn = dot(d, n)
    vn = dot(v, n)
    curvature = dot(d, v)
    slope = dot(d, take(lane, U, k))
    dd = dot(d, d)
    vv = dot(v, v)
    if six:
        d = take(lane, D + 3, k)
        v = take(lane, V + 3, k)
        curvature += dot(d, v)
        slope += dot(d, take(lane, U + 3, k))
        dd += dot(d, d)
        vv += dot(v, v)
    along = lane[SIZE, k]
    across = lane[SIZE + 1, k]
    lane[TERM, k] = curvature
    lane[TERM + 1, k] = across * dd + (along - across) * dn * dn
    lane[TERM + 2, k] = slope
    lane[TERM + 3, k] = vv / across + (1.0 / along - 1.0 / across) * vn * vn
    for i in range(SUMS - 1):
        lane[ADDED + i, k] += lane[TERM + i, k]


@fused
def nearest(lane, k, x, couple, ratio, six):
    """The nearest point of the lane's cone; without `six` the couple is passed through."""
    n = take(lane, N, k)
    mu = lane[LIMIT, k]
    tension = lane[LIMIT + 1, k]
    if six:
        return project6(x, couple, n, mu, tension, lane[LIMIT + 2, k], lane[LIMIT + 3, k], ratio)
    return project3(x, n, mu, tension, ratio), couple


@fused
def miss(lane, k, six):
    """Add to the residual's square: |g - P(g - rho u)|^2 / rho^2."""
    rho = lane[RHO, k]
    g = take(lane, G, k)
    g6 = take(lane, G + 3, k)
    x = sub(g, scale(rho, take(lane, U, k)))
    x6 = sub(g6, scale(rho, take(lane, U + 3, k)))
    p, p6 = nearest(lane, k, x, x6, 1.0, six)
    p = sub(g, p)
    square = dot(p, p)
    if six:
        p6 = sub(g6, p6)
        square += dot(p6, p6)
    lane[TERM + SUMS - 1, k] = square / (rho * rho)
    lane[ADDED + SUMS - 1, k] += lane[TERM + SUMS - 1, k]


@fused
def aim(lane, k, momentum, step, relaxation, six):
    """The trial P(y - step u_y / size) with y = g + momentum d, in place of the impulse g.

    The velocity u_y = u + momentum v needs no product with W, which is linear. relaxation: how far to go from g to the
    trial, 1 for all the way.
    """
    n = take(lane, N, k)
    along = lane[SIZE, k]
    across = lane[SIZE + 1, k]
    g = take(lane, G, k)
    g6 = take(lane, G + 3, k)
    y = add(g, scale(momentum, take(lane, D, k)))
    w = add(take(lane, U, k), scale(momentum, take(lane, V, k)))
    y = descend3(y, w, n, step / along, step / across)
    y6 = g6
    if six:
        w6 = add(take(lane, U + 3, k), scale(momentum, take(lane, V + 3, k)))
        y6 = sub(add(g6, scale(momentum, take(lane, D + 3, k))), scale(step / across, w6))
    y, y6 = nearest(lane, k, y, y6, across / along, six)
    if relaxation != 1.0:
        y = add(g, scale(relaxation, sub(y, g)))
        y6 = add(g6, scale(relaxation, sub(y6, g6)))
    put(lane, G, k, y)
    if six:
        put(lane, G + 3, k, y6)


def pass_block(c, tables, now, old, u_now, u_old, momentum, step, relaxation, look, trial, sums, terms):
    """Sums (chunks,5) over one chunk of cones about the last step, old to now, and the trial of the next (`aim`).

    tables: normal, limit, size, rho. step < 0: no trial. look: NOTHING, STEP or RESIDUAL, which costs a projection; terms: what the last so many sums add up, (SUMS,c) or
    (1,c), or nothing if nobody asks.
    """
    k: Any
    normal, limit, size, rho = tables
    width = 6 if SIX else 3
    count = normal.shape[0]
    lane = np.empty((ROWS, LANES))
    for k in range(LANES):
        for i in range(ADDED, ROWS):
            lane[i, k] = 0.0
    for first in range(c * CHUNK, min(count, (c + 1) * CHUNK), LANES):
        used = min(LANES, count - first)
        for j in range(used):
            # Unsigned numbers, which numba does not test for being negative.
            k, p = np.uintp(j), np.uintp(first + j)
            for i in range(3):
                lane[N + i, k] = normal[p, i]
            for i in range(4 if SIX else 2):
                lane[LIMIT + i, k] = limit[p, i]
            lane[SIZE, k] = size[p, 0]
            lane[SIZE + 1, k] = size[p, 1]
            if look == RESIDUAL:
                lane[RHO, k] = rho[p]
            for i in range(width):
                g = now[p, i]
                u = u_now[p, i]
                lane[G + i, k] = g
                lane[U + i, k] = u
                lane[D + i, k] = g - old[p, i]
                lane[V + i, k] = u - u_old[p, i]
        for k in range(used, LANES):
            for i in range(ADDED):
                lane[i, k] = 0.0
            lane[SIZE, k] = 1.0
            lane[SIZE + 1, k] = 1.0
            lane[RHO, k] = 1.0
        if look >= STEP:
            for k in range(LANES):
                measure(lane, k, SIX)
        if look == RESIDUAL:
            for k in range(LANES):
                miss(lane, k, SIX)
        for i in range(len(terms) if look >= STEP else 0):
            for j in range(used):
                terms[i, np.uintp(first + j)] = lane[TERM + SUMS - len(terms) + i, np.uintp(j)]
        if step >= 0.0:
            for k in range(LANES):
                aim(lane, k, momentum, step, relaxation, SIX)
            for j in range(used):
                k, p = np.uintp(j), np.uintp(first + j)
                for i in range(width):
                    trial[p, i] = lane[G + i, k]
    for i in range(SUMS):
        total = 0.0
        for k in range(LANES):
            total += lane[ADDED + i, k]
        sums[c, i] = total


def pass_kernel(width):
    """The kernel of `pass_block` for cones of 3 or 6 numbers; call it with the number of chunks."""
    return kernel(pass_block, fastmath=("contract", "nsz"), grain=2, allocates=True, SIX=width == 6)


def chunks(count):
    """Tasks for so many cones."""
    return (count + CHUNK - 1) // CHUNK

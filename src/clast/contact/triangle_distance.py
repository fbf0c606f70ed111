"""The distance of many pairs of triangles (`clast.triangle_distance`)."""

import numpy as np

from ..backend import FUSE, kernel
from .triangle_lanes import LANES, RESULT, ROWS, brute_lanes

METHOD = brute_lanes  # bound to the kernel


def distance_block(block, a, b, tolerance, distance, p, q):
    """Distances of LANES pairs."""
    lane, result = np.empty((ROWS, LANES)), np.empty((RESULT, LANES))
    first = block * LANES
    used = min(LANES, len(distance) - first)
    for k in range(LANES):
        # The last block repeats its last pair.
        row = np.uintp(first + min(k, used - 1))
        for i in range(9):
            lane[i, k] = a[row, i]
            lane[9 + i, k] = b[row, i]
    METHOD(lane, tolerance, result)
    for k in range(used):
        row = np.uintp(first + k)
        distance[row] = np.sqrt(result[0, k])
        for i in range(3):
            p[row, i] = result[1 + i, k]
            q[row, i] = result[4 + i, k]


def measure(a, b, tolerance, method):
    n = len(a)
    distance, p, q = np.empty(n), np.empty((n, 3)), np.empty((n, 3))
    kernel(distance_block, fastmath=FUSE, grain=16, allocates=True, METHOD=method)(
        (n + LANES - 1) // LANES, a.reshape(n, 9), b.reshape(n, 9), tolerance, distance, p, q
    )
    return distance, p, q

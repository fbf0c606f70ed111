"""Broad phase by testing all pairs: count, scan, fill. The reference for every other broad phase."""

import numpy as np

from ..kernels import backend, primitives
from ..kernels.backend import kernel
from .near import image


def test_row(i, shapes, tag, edges, margin, start, pairs, count):
    """Partners of shape i among those with a higher row: counted, or written where start says."""
    found = 0
    for j in range(i + 1, len(shapes.radius)):
        dx = image(shapes.centre[j, 0] - shapes.centre[i, 0], edges[0], edges[3])
        dy = image(shapes.centre[j, 1] - shapes.centre[i, 1], edges[1], edges[4])
        dz = image(shapes.centre[j, 2] - shapes.centre[i, 2], edges[2], edges[5])
        reach = shapes.radius[i] + shapes.radius[j] + margin
        if reach < np.inf and dx * dx + dy * dy + dz * dz <= reach * reach and tag[i] != tag[j]:
            if len(start) > 0:
                swap = shapes.number[i] > shapes.number[j]
                pairs[start[i] + found, 0] = j if swap else i
                pairs[start[i] + found, 1] = i if swap else j
            found += 1
    if len(start) == 0:
        count[i] = found


def all_pairs(shapes, tag, box, margin):
    """Pairs of bounded shapes whose bounding spheres are nearer than margin [m]: (p,2) int32 rows of Shapes.

    The shape with the lower number comes first. tag (s,) int32: shapes with equal tags make no pair.
    """
    device = backend.DEVICE[-1]
    n = len(shapes.radius)
    count = device.empty(n, np.int32)
    arguments = shapes, tag, (*box.length.tolist(), *box.inverse.tolist()), float(margin)
    pairs = device.empty((0, 2), np.int32)
    kernel(test_row)(n, *arguments, device.empty(0, np.int64), pairs, count)
    start = primitives.scan(count)
    pairs = device.empty((int(device.to_host(start[-1:])[0]), 2), np.int32)
    kernel(test_row)(n, *arguments, start, pairs, count)
    return pairs

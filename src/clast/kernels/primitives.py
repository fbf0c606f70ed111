"""Prefix sum and grouping by key, in a fixed order whatever the number of threads.

The loops here are written with prange themselves: they run over chunks, not rows.
"""

import numpy as np
from numba import prange

from . import backend
from .reached import stored

CHUNK = 16384  # elements a task; fixed, so that the order of work does not depend on the number of threads


@stored(parallel=True)
def _scan(count, start):
    n = count.shape[0]
    chunks = (n + CHUNK - 1) // CHUNK
    total = np.zeros(chunks + 1, np.int64)
    for c in prange(chunks):
        s = 0
        for i in range(c * CHUNK, min(n, (c + 1) * CHUNK)):
            s += count[i]
        total[c + 1] = s
    for c in range(chunks):
        total[c + 1] += total[c]
    for c in prange(chunks):
        s = total[c]
        for i in range(c * CHUNK, min(n, (c + 1) * CHUNK)):
            start[i] = s
            s += count[i]
    start[n] = total[chunks]


@stored(parallel=True)
def _group(key, groups, start, order):
    n = key.shape[0]
    shift = 0
    while (groups >> shift) > 1024:
        shift += 1
    buckets = (groups >> shift) + 1
    chunks = (n + CHUNK - 1) // CHUNK
    tally = np.zeros((chunks, buckets), np.int32)
    for c in prange(chunks):
        for i in range(c * CHUNK, min(n, (c + 1) * CHUNK)):
            tally[c, key[i] >> shift] += 1
    first = np.zeros(buckets + 1, np.int32)
    running = 0
    for b in range(buckets):
        first[b] = running
        for c in range(chunks):
            t = tally[c, b]
            tally[c, b] = running
            running += t
    first[buckets] = running
    # Coarse pass: every chunk writes its rows, in order, to its own place in each bucket.
    coarse = np.empty(n, np.int32)
    for c in prange(chunks):
        for i in range(c * CHUNK, min(n, (c + 1) * CHUNK)):
            b = key[i] >> shift
            coarse[tally[c, b]] = i
            tally[c, b] += 1
    # Fine pass: a bucket is a short range of keys that fits into the cache.
    width = 1 << shift
    for b in prange(buckets):
        low = b << shift
        local = np.zeros(width + 1, np.int32)
        for j in range(first[b], first[b + 1]):
            local[key[coarse[j]] - low + 1] += 1
        local[0] = first[b]
        for k in range(width):
            local[k + 1] += local[k]
            if low + k < groups:
                start[low + k] = local[k]
        for j in range(first[b], first[b + 1]):
            k = key[coarse[j]] - low
            order[local[k]] = coarse[j]
            local[k] += 1
    start[groups] = n


def scan(count):
    """Exclusive prefix sum: (n,) counts to (n+1,) starts; the last entry is the total."""
    device = backend.DEVICE[-1]
    if device is not backend.CPU:
        return device.scan(count)
    start = np.empty(len(count) + 1, np.int64)
    _scan(count, start)
    return start


def group(key, groups):
    """Stable grouping of rows by key in [0, groups): returns start (groups+1,) int32 and order (n,) int32.

    The rows with key k are order[start[k]:start[k+1]], lowest first.
    """
    device = backend.DEVICE[-1]
    if device is not backend.CPU:
        return device.group(key, groups)
    start = np.empty(groups + 1, np.int32)
    order = np.empty(len(key), np.int32)
    _group(key, groups, start, order)
    return start, order

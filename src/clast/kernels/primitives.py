"""Prefix sum and grouping by key, in a fixed order whatever the number of threads.

The loops here are handed to threads by `spread` themselves: they run over chunks, not rows, and one launch does them all.
"""

import numba
import numpy as np

from . import backend
from .reached import stored
from .spread import spread

CHUNK = 16384  # elements a task; fixed, so that the order of work does not depend on the number of threads

# In the CUDA simulator `func` compiles nothing, but the loops over these chunks are compiled there too.
chunked = numba.njit(error_model="numpy") if backend.SIMULATED else backend.func


@chunked
def add_chunk(c, count, total):
    """The sum of a chunk into total (chunks+1,), one place on."""
    s = 0
    for i in range(c * CHUNK, min(count.shape[0], (c + 1) * CHUNK)):
        s += count[i]
    total[c + 1] = s


@chunked
def start_chunk(c, count, total, start):
    """Prefix sums of a chunk; total: the sum before each chunk."""
    s = total[c]
    for i in range(c * CHUNK, min(count.shape[0], (c + 1) * CHUNK)):
        start[i] = s
        s += count[i]


@stored(_nrt=False, error_model="numpy", no_cfunc_wrapper=True)
def _scan(threads, count, total, start):
    chunks = total.shape[0] - 1
    total[0] = 0
    spread(add_chunk, 0, chunks, threads, (count, total))
    for c in range(chunks):
        total[c + 1] += total[c]
    spread(start_chunk, 0, chunks, threads, (count, total, start))
    start[count.shape[0]] = total[chunks]


@chunked
def tally_chunk(c, key, shift, tally):
    """How many keys of a chunk fall into each bucket."""
    for b in range(tally.shape[1]):
        tally[c, b] = 0
    for i in range(c * CHUNK, min(key.shape[0], (c + 1) * CHUNK)):
        tally[c, key[i] >> shift] += 1


@chunked
def sort_chunk(c, key, shift, tally, coarse):
    """Coarse pass: every chunk writes its rows, in order, to its own place in each bucket."""
    for i in range(c * CHUNK, min(key.shape[0], (c + 1) * CHUNK)):
        b = key[i] >> shift
        coarse[tally[c, b]] = i
        tally[c, b] += 1


@chunked
def sort_bucket(b, key, groups, shift, first, coarse, start, order):
    """Fine pass: a bucket is a short range of keys that fits into the cache."""
    low, high = b << shift, min(groups, (b + 1) << shift)
    # While rows are written, the place after a key holds where its next row goes; in the end that is where the key ends.
    for k in range(low, high):
        start[k + 1] = 0
    for j in range(first[b], first[b + 1]):
        start[key[coarse[j]] + 1] += 1
    at = first[b]
    for k in range(low, high):
        many = start[k + 1]
        start[k + 1] = at
        at += many
    for j in range(first[b], first[b + 1]):
        k = key[coarse[j]] + 1
        order[start[k]] = coarse[j]
        start[k] += 1


@stored(_nrt=False, error_model="numpy", no_cfunc_wrapper=True)
def _group(threads, key, groups, shift, tally, first, coarse, start, order):
    chunks, buckets = tally.shape
    spread(tally_chunk, 0, chunks, threads, (key, shift, tally))
    running = 0
    for b in range(buckets):
        first[b] = running
        for c in range(chunks):
            t = tally[c, b]
            tally[c, b] = running
            running += t
    first[buckets] = running
    start[0] = 0
    spread(sort_chunk, 0, chunks, threads, (key, shift, tally, coarse))
    spread(sort_bucket, 0, buckets, threads, (key, groups, shift, first, coarse, start, order))


def scan(count):
    """Exclusive prefix sum: (n,) counts to (n+1,) starts; the last entry is the total."""
    device = backend.DEVICE[-1]
    if device is not backend.CPU:
        return device.scan(count)
    start = np.empty(len(count) + 1, np.int64)
    chunks = (len(count) + CHUNK - 1) // CHUNK
    _scan(0 if chunks > 1 else 1, count, np.empty(chunks + 1, np.int64), start)
    return start


def group(key, groups):
    """Stable grouping of rows by key in [0, groups): returns start (groups+1,) int32 and order (n,) int32.

    The rows with key k are order[start[k]:start[k+1]], lowest first.
    """
    device = backend.DEVICE[-1]
    if device is not backend.CPU:
        return device.group(key, groups)
    n = len(key)
    shift = max(0, int(groups).bit_length() - 11)  # so that there are at most 2048 buckets
    chunks, buckets = (n + CHUNK - 1) // CHUNK, (groups >> shift) + 1
    start = np.empty(groups + 1, np.int32)
    order = np.empty(n, np.int32)
    tally, first, coarse = np.empty((chunks, buckets), np.int32), np.empty(buckets + 1, np.int32), np.empty(n, np.int32)
    _group(0 if chunks > 1 else 1, key, groups, shift, tally, first, coarse, start, order)
    return start, order

"""Prefix sums and grouping against NumPy, for lengths on both sides of a chunk and few and many groups."""

import ctypes
import os
import subprocess
import sys

import numpy as np
import pytest

from clast.kernels import primitives
from clast.kernels.primitives import CHUNK


@pytest.mark.parametrize("length", [0, 1, CHUNK - 1, CHUNK, 3 * CHUNK + 5])
@pytest.mark.parametrize("kind", [np.int8, np.int32])
def test_scan(length, kind):
    count = np.random.default_rng(length).integers(0, 9, length).astype(kind)
    start = primitives.scan(count)
    assert start.dtype == np.int64
    assert np.array_equal(start, np.concatenate([[0], np.cumsum(count, dtype=np.int64)]))


@pytest.mark.parametrize("length", [0, 1, 300, 3 * CHUNK + 5])
@pytest.mark.parametrize("groups", [1, 7, 1024, 1025, 2048, 70001])
def test_group_is_stable(length, groups):
    key = np.random.default_rng(length + groups).integers(0, groups, length).astype(np.int32)
    start, order = primitives.group(key, groups)
    assert np.array_equal(order, np.argsort(key, kind="stable"))
    assert np.array_equal(start, np.searchsorted(np.sort(key), np.arange(groups + 1)))


FREED = """
import ctypes
import numpy as np
from clast.kernels.backend import MANY, give_back

def held():
    return int(open("/proc/self/statm").read().split()[1]) * 4096

arrays = [np.ones(1 << 17) for _ in range(100)]
del arrays[:-1]  # the last one lies above them in the heap
before = held()
give_back(MANY - 1)
few = held()
give_back(MANY)
print(before - few, few - held())
"""


@pytest.mark.skipif(not hasattr(ctypes.pythonapi, "malloc_trim"), reason="this C library cannot give memory back")
def test_free_memory_is_given_back_where_there_are_many_rows():
    env = os.environ | {"MALLOC_MMAP_THRESHOLD_": "1000000000", "MALLOC_TRIM_THRESHOLD_": "1000000000"}
    told = subprocess.run([sys.executable, "-c", FREED], env=env, capture_output=True, text=True, check=True).stdout
    few, many = map(int, told.split())
    assert abs(few) < 5 << 20
    assert many > 90 << 20

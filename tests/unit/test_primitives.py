"""Prefix sums and grouping against NumPy, for lengths on both sides of a chunk and few and many groups."""

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

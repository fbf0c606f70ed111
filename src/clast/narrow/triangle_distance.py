"""The distance of many pairs of triangles (`clast.triangle_distance`), by each of the methods of `triangle_lanes`."""

import math
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from ..errors import pick
from ..kernels.backend import FUSE, kernel
from ..signatures import Floats
from .triangle_lanes import LANES, METHODS, RESULT, ROWS, brute_lanes

METHOD = brute_lanes  # bound to the kernel
LARGEST = 1e50  # [m] coordinates beyond this overflow where areas are squared


def distance_block(block, a, b, tolerance, distance, p, q):
    """Distances of LANES pairs; not a number where a coordinate is none, or beyond LARGEST."""
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
    for k in range(LANES):
        fit = True
        for i in range(18):
            fit = fit & (abs(lane[i, k]) <= LARGEST)
        result[7, k] = 0.0 if fit else np.nan
    for k in range(used):
        row = np.uintp(first + k)
        distance[row] = np.sqrt(result[0, k]) + result[7, k]
        for i in range(3):
            p[row, i] = result[1 + i, k]
            q[row, i] = result[4 + i, k]


def triangle_distance(
    a: ArrayLike,
    b: ArrayLike,
    *,
    method: Literal["brute", "penalty", "hybrid-pairs", "hybrid-batches"] = "brute",
    tolerance: float = 1e-6,
) -> tuple[Floats, Floats, Floats]:
    """Distances of pairs of triangles, and where they are nearest.

    a, b: corners (n,3,3) [m]: pair, corner, axis. Corners may coincide: a triangle may be a segment or a point.
    method: "brute" measures all pairs of features and is exact to rounding; "penalty", "hybrid-pairs" and "hybrid-batches"
    begin with Newton's method on a penalty function and prove that the error is below the tolerance, or fall back on
    brute force; see `clast.narrow.triangle_lanes`.
    tolerance: largest error of a distance, relative to the longest edge of its two triangles; brute does not need it.

    Returns distance (n,) [m], p (n,3) on the first and q (n,3) on the second triangle [m]. Triangles that cross have
    distance 0, and p = q is a point of both. Where more than one pair of points is nearest, as of parallel faces, one is
    chosen, always the same.

    >>> floor = [[[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]]
    >>> tip = [[[0.2, 0.2, 0.5], [0.2, 0.3, 1.0], [0.3, 0.2, 1.0]]]
    >>> distance, p, q = clast.triangle_distance(floor, tip)
    >>> float(distance[0]), p[0].tolist(), q[0].tolist()
    (0.5, [0.2, 0.2, 0.0], [0.2, 0.2, 0.5])
    """
    chosen = pick("method of triangle_distance", method, METHODS)
    a, b = _triangles("a", a), _triangles("b", b)
    if len(a) != len(b):
        raise ValueError(
            f"triangle_distance: a has {len(a)} triangles and b has {len(b)}; give as many to each, row by row "
            "(numpy.broadcast_to repeats one)"
        )
    try:
        tolerance = float(tolerance)
    except (TypeError, ValueError):
        raise TypeError(f"triangle_distance: tolerance must be a number, got {tolerance!r}") from None
    if not 0.0 <= tolerance < math.inf:
        raise ValueError(
            f"triangle_distance: tolerance must be a number of 0 or more, got {tolerance!r}; usual is 1e-6"
        )
    n = len(a)
    distance, p, q = np.empty(n), np.empty((n, 3)), np.empty((n, 3))
    block = kernel(distance_block, fastmath=FUSE, grain=16, allocates=True, METHOD=chosen)
    block((n + LANES - 1) // LANES, a.reshape(n, 9), b.reshape(n, 9), tolerance, distance, p, q)
    if np.isnan(distance).any():
        row = int(np.argmax(np.isnan(distance)))
        for name, corners in (("a", a[row]), ("b", b[row])):
            for place in np.argwhere(~(np.abs(corners) <= LARGEST)):
                at = f"{name}[{row}, {place[0]}, {place[1]}] is {corners[tuple(place)]}"
                raise ValueError(f"triangle_distance: {at}; every coordinate must be a number of at most {LARGEST:g} m")
    return distance, p, q


def _triangles(name: str, value: ArrayLike) -> Floats:
    """Corners as an array (n,3,3) of floats without gaps."""
    try:
        corners = np.ascontiguousarray(value, dtype=float)
    except (TypeError, ValueError):
        raise TypeError(
            f"triangle_distance: {name} must be numbers of shape (n, 3, 3): pair, corner, axis; got {type(value).__name__}"
        ) from None
    if corners.ndim != 3 or corners.shape[1:] != (3, 3):
        fix = f"; use {name}[None] for one triangle" if corners.shape == (3, 3) else ""
        raise ValueError(
            f"triangle_distance: {name} must have shape (n, 3, 3): pair, corner, axis; got {corners.shape}{fix}"
        )
    return corners

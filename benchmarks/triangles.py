"""Distances of pairs of triangles: four methods, one pair at a time beside 64 side by side, and how many Newton steps.

    python benchmarks/triangles.py            # two minutes on two cores
    python benchmarks/triangles.py --quick    # fewer pairs

Prints tables and keeps every number in results/triangles-<machine>.json.

random   corners from a normal distribution, the second triangle moved by twice another: one pair in 32 crosses
near     the same pairs, the second triangle moved along the shortest way until it is 0.5 to 10 % of the longest edge away, as
         candidates in a simulation are
rocks    neighbours in a heap: triangles of two bumpy balls of 320 faces that all but touch, all pairs nearer than 10 % of
         the longest edge

All roads answer the same pairs in turn, several rounds; the median counts, and the best of 40 times as many short ones is
the least disturbed. *stream* is clast.triangle_distance and the like on a
million pairs that come from memory; *cache* is the kernel alone on 20,000 pairs that stay in the cache. A core-second is a second
of processor time of one core, which other programs disturb less than the clock; the ratio is of these. The plain loop is the
same brute force, compiled by numba, one pair at a time on all cores; the C++ loop is triangles.cpp.
"""

import argparse
import ctypes
import json
import shutil
import subprocess
import time

import numba
import numpy as np
from common import HERE, RESULTS, Others, cache, cores, machine, median, quiet
from rich.console import Console
from rich.table import Table

import clast
from clast.kernels.backend import FUSE, kernel
from clast.narrow import triangle_distance, triangle_lanes, triangle_penalty
from clast.narrow.triangle_triangle import triangle_triangle

FEW = 20_000
STEPS = 12  # of the histogram
console = Console()


def plain_row(i, a, b, tolerance, distance, p, q):
    """One pair, by itself."""
    square, x, y, _ = triangle_triangle(
        (a[i, 0], a[i, 1], a[i, 2]),
        (a[i, 3], a[i, 4], a[i, 5]),
        (a[i, 6], a[i, 7], a[i, 8]),
        (b[i, 0], b[i, 1], b[i, 2]),
        (b[i, 3], b[i, 4], b[i, 5]),
        (b[i, 6], b[i, 7], b[i, 8]),
    )
    distance[i] = np.sqrt(square)
    p[i, 0], p[i, 1], p[i, 2] = x
    q[i, 0], q[i, 1], q[i, 2] = y


@numba.njit
def count_steps(a, b, tolerance, most, steps):
    """How many Newton steps each pair takes until it is proved; most + 1 if it is not."""
    lane = np.empty((triangle_lanes.ROWS, triangle_lanes.LANES))
    for first in range(0, len(a), triangle_lanes.LANES):
        for k in range(triangle_lanes.LANES):
            row = min(first + k, len(a) - 1)
            for i in range(9):
                lane[i, k], lane[9 + i, k] = a[row, i], b[row, i]
        triangle_penalty.start_lanes(lane)
        for k in range(first, min(first + triangle_lanes.LANES, len(a))):
            steps[k] = most + 1
        for step in range(1, most + 1):
            triangle_penalty.newton_lanes(lane)
            triangle_penalty.prove_lanes(lane, tolerance)
            for k in range(first, min(first + triangle_lanes.LANES, len(a))):
                if lane[triangle_penalty.MOVES, k - first] == 0.0:
                    steps[k] = min(steps[k], step)


def peer():
    """The loop of triangles.cpp as a function (a, b) -> distance, p, q, or None without a compiler."""
    if not shutil.which("g++"):
        return None
    source, library = HERE / "triangles.cpp", cache() / "triangles.so"
    if not library.exists() or library.stat().st_mtime < source.stat().st_mtime:
        flags = ["-O3", "-march=native", "-fopenmp", "-shared", "-fPIC", "-std=c++17"]
        subprocess.run(["g++", *flags, str(source), "-o", str(library)], check=True)
    loop = ctypes.CDLL(str(library)).distances
    loop.argtypes = [ctypes.c_int64, *[ctypes.c_void_p] * 5]

    def measure(a, b):
        n = len(a)
        distance, p, q = np.empty(n), np.empty((n, 3)), np.empty((n, 3))
        loop(n, *(column.ctypes.data for column in (a, b, distance, p, q)))
        return distance, p, q

    return measure


def longest(a, b):
    """The longest edge of each pair [m]."""
    return np.maximum(*(np.linalg.norm(np.roll(t, 1, 1) - t, axis=2).max(1) for t in (a, b)))


def random_pairs(count, rng):
    return rng.normal(size=(count, 3, 3)), rng.normal(size=(count, 3, 3)) + 2.0 * rng.normal(size=(count, 1, 3))


def near_pairs(count, rng):
    a, b = random_pairs(count + count // 16, rng)
    distance, p, q = clast.triangle_distance(a, b)
    keep = np.flatnonzero(distance > 0.0)[:count]
    a, b, distance, way = a[keep], b[keep], distance[keep], (p - q)[keep]
    gap = rng.uniform(0.005, 0.1, count) * longest(a, b)
    return a, b + (way * (1.0 - gap / distance)[:, None])[:, None]


def rock(rng):
    """A ball of 320 triangles (320,3,3) with bumps, about 1 m across."""
    points = np.array([(0, i, j * (1 + 5**0.5) / 2) for i in (-1, 1) for j in (-1, 1)], float)
    points = np.concatenate([np.roll(points, k, 1) for k in range(3)])
    sides = np.linalg.norm(points[:, None] - points, axis=2)
    close = sides < 2.1
    faces = [
        (i, j, k) for i in range(12) for j in range(i) for k in range(j) if close[i, j] and close[j, k] and close[i, k]
    ]
    t = points[np.array(faces)]
    for _ in range(2):
        m = 0.5 * (t + np.roll(t, -1, 1))
        parts = [np.stack([t[:, i], m[:, i], m[:, i - 1]], 1) for i in range(3)]
        t = np.concatenate([*parts, m])
    t /= np.linalg.norm(t, axis=2, keepdims=True)
    waves = rng.normal(size=(6, 3)) * 2.0
    return 0.5 * t * (1.0 + 0.04 * np.sin(t @ waves.T + rng.uniform(0.0, 6.0, 6)).sum(-1))[..., None]


def rock_pairs(count, rng):
    found_a, found_b, total = [], [], 0
    while total < count:
        one, other = rock(rng), rock(rng)
        turn, _ = np.linalg.qr(rng.normal(size=(3, 3)))
        way = rng.normal(size=3)
        way /= np.linalg.norm(way)
        one, other = one @ turn, other + way
        reach = 0.1 * longest(one, other).max()
        # Those in reach of each other's centre come into question; the rocks are moved until they are 1 % of it apart.
        i, j = np.nonzero(np.linalg.norm(one.mean(1)[:, None] - other.mean(1), axis=2) < 0.35)
        distance, _, _ = clast.triangle_distance(one[i], other[j])
        other = other - way * max(distance.min() - 0.1 * reach, 0.0) if len(i) else other
        distance, _, _ = clast.triangle_distance(one[i], other[j])
        keep = (distance < reach) & (distance > 0.0)
        found_a.append(one[i[keep]])
        found_b.append(other[j[keep]])
        total += int(keep.sum())
    order = rng.permutation(total)[:count]
    return np.concatenate(found_a)[order], np.concatenate(found_b)[order]


SETS = {"random": random_pairs, "near": near_pairs, "rocks": rock_pairs}


def rates(a, b, rounds):
    """Million pairs a second of every road, on all pairs and on the first FEW that stay in the cache; largest error."""
    n = len(a)
    flat_a, flat_b = a.reshape(n, 9), b.reshape(n, 9)
    out = np.empty(n), np.empty((n, 3)), np.empty((n, 3))
    few = [column[:FEW] for column in out]
    plain = kernel(plain_row, fastmath=FUSE, grain=16)
    blocks = {
        name: kernel(triangle_distance.distance_block, fastmath=FUSE, grain=16, allocates=True, METHOD=method)
        for name, method in triangle_lanes.METHODS.items()
    }
    groups = (FEW + triangle_lanes.LANES - 1) // triangle_lanes.LANES
    stream = {name: lambda name=name: clast.triangle_distance(a, b, method=name)[0] for name in blocks}
    stream["plain loop"] = lambda: plain(n, flat_a, flat_b, 1e-6, *out) or out[0]
    small = {
        name: lambda block=block: block(groups, flat_a[:FEW], flat_b[:FEW], 1e-6, *few)
        for name, block in blocks.items()
    }
    small["plain loop"] = lambda: plain(FEW, flat_a[:FEW], flat_b[:FEW], 1e-6, *few)
    loop = peer()
    if loop is not None:
        stream["C++ loop"] = lambda: loop(a, b)[0]
        small["C++ loop"] = lambda: loop(a[:FEW], b[:FEW])
    exact, size = stream["brute"](), longest(a, b)
    result = {}
    for name, road in stream.items():
        result[name] = {"largest error": float((abs(road() - exact) / size).max())}
        small[name]()
    for kind, roads, count, turns in (("stream", stream, n, rounds), ("cache", small, FEW, 40 * rounds)):
        times, used = {name: [] for name in roads}, {name: [] for name in roads}
        for _ in range(turns):
            for name, road in roads.items():
                began, before = time.perf_counter(), time.process_time()
                road()
                times[name].append(time.perf_counter() - began)
                used[name].append(time.process_time() - before)
        for name, seconds in times.items():
            result[name][f"{kind}, million pairs a second"] = count / median(seconds) / 1e6
            result[name][f"{kind}, best"] = count / min(seconds) / 1e6
            result[name][f"{kind}, million pairs a core-second"] = count / median(used[name]) / 1e6
    return result


def histogram(a, b, tolerance=1e-6):
    """Per cent of the pairs that are proved after so many steps; the last one is of those that are not."""
    steps = np.empty(len(a), np.int64)
    count_steps(a.reshape(-1, 9), b.reshape(-1, 9), tolerance, STEPS, steps)
    return (np.bincount(steps, minlength=STEPS + 2)[1:] / len(a) * 100.0).tolist()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="100,000 pairs")
    parser.add_argument("--rounds", type=int, default=7)
    arguments = parser.parse_args()
    count = 100_000 if arguments.quick else 1_000_000
    results = {"machine": machine(), "cores": cores(), "pairs": count}
    for name, make in SETS.items():
        a, b = make(count, np.random.default_rng(1))
        quiet()
        with Others() as others:
            rows = rates(a, b, arguments.rounds)
        results[name] = {"rates": rows, "newton steps, per cent": histogram(a, b), "cores used by others": others.cores}
        kinds = (
            "stream, million pairs a second",
            "cache, best",
            "cache, million pairs a core-second",
        )
        table = Table("road", *kinds, "of the plain loop", "largest error", title=f"{name} ({others.cores} cores busy)")
        for road, row in rows.items():
            ratio = row[kinds[2]] / rows["plain loop"][kinds[2]]
            table.add_row(road, *(f"{row[kind]:.1f}" for kind in kinds), f"{ratio:.2f}", f"{row['largest error']:.1e}")
        console.print(table)
        shares = results[name]["newton steps, per cent"]
        told = ", ".join(f"{step}: {share:.1f}" for step, share in enumerate(shares[:-1], 1))
        console.print(f"Newton steps, per cent of the pairs: {told}; not within {STEPS}: {shares[-1]:.2f}\n")
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"triangles-{machine()}.json"
    path.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()

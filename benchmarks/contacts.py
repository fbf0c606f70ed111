"""Contacts as a library call, against SciPy's k-d tree with NumPy and against a plain C++ grid loop.

    python benchmarks/contacts.py

Both roads get the same arrays, run in turn in one process, and must find the same set of pairs.
"""

import argparse
import ctypes
import json
import shutil
import subprocess
import time

import numpy as np
from common import HERE, Others, cache, clast_here, cores, median, quiet

SPREAD = 1.25e-7  # spheres per cubic metre in the table of Pazouki, Mazhar and Negrut
LARGEST = 101.0  # their radii are uniform in [0, 101] m
PUBLISHED = 487_246  # their count for 1,048,576 spheres


def sparse(count=1_048_576, seed=1):
    """Random spheres, most of them alone: positions (n,3), radii (n,); 0.40 contacts a body are expected."""
    random = np.random.default_rng(seed)
    return random.uniform(0.0, (count / SPREAD) ** (1.0 / 3.0), (count, 3)), random.uniform(0.0, LARGEST, count)


def dense(count=1_000_000, contacts=3.5, seed=2):
    """Random spheres of similar size with this many contacts a body, as in a packing, in no order in memory."""
    random = np.random.default_rng(seed)
    radius = random.uniform(0.8, 1.2, count)
    # Each pair touches where its centres are within the sum of radii; the mean of (a + b)^3 over uniform radii:
    cube = 8.0 + 6.0 * 2.0 * (0.4**2 / 12.0)
    volume = count * (4.0 / 3.0 * np.pi * cube) / (2.0 * contacts)
    return random.uniform(0.0, volume ** (1.0 / 3.0), (count, 3)), radius


def tree(position, radius):
    """SciPy and NumPy: pairs within the largest diameter, then the test and the geometry on whole arrays."""
    from scipy.spatial import cKDTree

    # Without balancing the tree of random points is built in half the time and searched as fast.
    close = cKDTree(position, balanced_tree=False, compact_nodes=False)
    pair = close.query_pairs(2.0 * radius.max(), output_type="ndarray")
    apart = position[pair[:, 1]] - position[pair[:, 0]]
    square = np.einsum("ij,ij->i", apart, apart)
    keep = np.flatnonzero(square < (radius[pair[:, 0]] + radius[pair[:, 1]]) ** 2)
    pair, apart, distance = pair[keep], apart[keep], np.sqrt(square[keep])
    normal = apart / distance[:, None]
    gap = distance - radius[pair[:, 0]] - radius[pair[:, 1]]
    point = position[pair[:, 0]] + normal * (radius[pair[:, 0]] + 0.5 * gap)[:, None]
    return pair, point, normal, gap


class Result(ctypes.Structure):
    """What grid.cpp hands back."""

    _fields_ = [("count", ctypes.c_int64)] + [(name, ctypes.c_void_p) for name in ("pair", "point", "normal", "gap")]


def grid():
    """Compile grid.cpp if needed and return a function (position, radius) -> contacts, or None without a compiler."""
    if not shutil.which("g++"):
        return None
    source, library = HERE / "grid.cpp", cache() / "grid.so"
    if not library.exists() or library.stat().st_mtime < source.stat().st_mtime:
        flags = ["-O3", "-march=native", "-fopenmp", "-shared", "-fPIC", "-std=c++17"]
        subprocess.run(["g++", *flags, str(source), "-o", str(library)], check=True)
    loop = ctypes.CDLL(str(library))
    loop.find.argtypes = [ctypes.c_int64, *[ctypes.c_void_p] * 2, ctypes.c_double, ctypes.POINTER(Result)]
    loop.find.restype = ctypes.c_int64

    def find(position, radius, copy=False):
        result = Result()
        if loop.find(len(radius), position.ctypes.data, radius.ctypes.data, 0.0, ctypes.byref(result)) < 0:
            raise MemoryError("grid.cpp could not allocate its contacts")
        pair = None
        if copy:
            flat = ctypes.cast(result.pair, ctypes.POINTER(ctypes.c_int64))
            pair = np.ctypeslib.as_array(flat, (result.count, 2)).copy()
        loop.release(ctypes.byref(result))
        return pair

    return find


def ours(position, radius):
    """A function that finds the contacts with clast; the scene is made before, as the arrays are for the others."""
    import clast

    scene = clast.Scene()
    scene.add(clast.Sphere(1.0), position=position, scale=radius)
    return lambda: clast.find_contacts(scene, sort=False)


def alternate(roads, repeats):
    """Time several functions in turn, A B A B, after one call of each: name -> list of seconds."""
    times = {name: [] for name in roads}
    for turn in range(repeats + 1):
        for name, road in roads.items():
            start = time.perf_counter()
            road()
            if turn:
                times[name].append(time.perf_counter() - start)
    return times


def ordered(pair):
    """Pairs with the lower number first, sorted: the form in which two sets can be compared."""
    pair = np.sort(np.asarray(pair, dtype=np.int64), axis=1)
    return pair[np.lexsort((pair[:, 1], pair[:, 0]))]


def compare(name, position, radius, peer, repeats):
    """Time the peer and clast on the same spheres and check that they find the same pairs."""
    label, road, pairs = peer
    roads = {label: road}
    reference = ordered(pairs())
    row = {"case": name, "count": len(radius), "contacts": len(reference), "a_body": len(reference) / len(radius)}
    here, reason = clast_here()
    if here:
        roads["clast"] = ours(position, radius)
        found = roads["clast"]()
        touching = found.pair[found.gap < 0.0]
        if not np.array_equal(ordered(touching), reference):
            raise SystemExit(f"{name}: clast finds {len(touching)} pairs, {label} {len(reference)}: not the same set")
        row["same"] = True
    else:
        row["skipped"] = f"clast does not import here: {reason}"
    quiet()
    with Others() as others:
        times = alternate(roads, repeats)
    row["others"] = others.cores
    row["peer"] = label
    row["peer_seconds"] = median(times[label])
    if here:
        row["seconds"] = median(times["clast"])
        row["ratio"] = median([a / b for a, b in zip(times[label], times["clast"], strict=True)])
    return row


def run(repeats=5):
    """All cases; one dict each."""
    position, radius = sparse()
    label = "SciPy cKDTree + NumPy"
    rows = [
        compare(
            "sparse",
            position,
            radius,
            (label, lambda: tree(position, radius), lambda: tree(position, radius)[0]),
            repeats,
        )
    ]
    rows[0]["expected_a_body"] = 0.5 * SPREAD * 4.0 / 3.0 * np.pi * 1.5 * LARGEST**3
    rows[0]["published_a_body"] = PUBLISHED / 1_048_576
    find = grid()
    if find is None:
        rows.append({"case": "dense", "skipped": "no g++ here; install a C++ compiler to compare with grid.cpp"})
        return rows
    many, sizes = dense()
    label = f"C++ -O3, OpenMP, {cores()} threads"
    rows.append(
        compare("dense", many, sizes, (label, lambda: find(many, sizes), lambda: find(many, sizes, True)), repeats)
    )
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=5)
    for row in run(parser.parse_args().repeats):
        print(json.dumps(row))


if __name__ == "__main__":
    main()

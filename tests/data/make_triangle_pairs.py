"""Makes triangle_pairs.json: pairs of triangles of many kinds with their distance in rational numbers."""

import json
from pathlib import Path

import numpy as np
from exact import rational, root, square_distance

EACH = 6
rng = np.random.default_rng(20)


def short(x, digits=6):
    return np.round(x, digits)


def any_pair():
    return short(rng.normal(size=(3, 3))), short(rng.normal(size=(3, 3)) + rng.normal(size=3) * 2.0)


def parallel():
    a = short(rng.normal(size=(3, 3)))
    b = a[0] + short(rng.normal(size=(3, 2)) @ (a[1:] - a[0]))
    return a, b + short(np.cross(a[1] - a[0], a[2] - a[0]))


def in_one_plane():
    a, b = (np.column_stack([rng.integers(-9, 9, (3, 2)), np.full(3, 4)]) / 8.0 for _ in range(2))
    return a, b + [2.0, 0.5, 0.0]


def crossing():
    a = short(rng.normal(size=(3, 3)))
    b = short(rng.normal(size=(3, 3)))
    return a, short(b + (a.mean(0) - b.mean(0)))


def one_corner():
    a, b = any_pair()
    return a, np.vstack([a[rng.integers(3)], b[1:]])


def one_edge():
    a, b = any_pair()
    return a, np.vstack([a[1], b[2], a[0]])


def nearly_touching():
    """A corner of b above the inside of a, by 1e-3 to 1e-12 of its size."""
    a = np.array([[-1.0, -1.0, 0.0], [2.0, -0.5, 0.0], [0.0, 1.5, 0.0]])
    b = short(rng.normal(size=(3, 3)))
    b[:, 2] = np.abs(b[:, 2]) + 0.1
    b[0] = 0.1, 0.1, 10.0 ** -rng.integers(3, 13)
    turn = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    return a @ turn, b @ turn


def needles():
    a, b = any_pair()
    a[2] = a[0] + 10.0 ** -rng.uniform(3, 12) * short(rng.normal(size=3))
    b[2] = 0.25 * b[0] + 0.75 * b[1] + 10.0 ** -rng.uniform(3, 12) * short(rng.normal(size=3))
    return a, b


def segments_and_points():
    a, b = any_pair()
    a[2] = a[1]
    if rng.random() < 0.5:
        b[:] = b[0]
    return a, b


def unlike_sizes():
    a, b = any_pair()
    return 1e-4 * a, b


def far_away():
    """Far from the origin: differences of coordinates lose digits, the stored coordinates do not."""
    a, b = any_pair()
    return a + 1000.0, b + 1000.0


pairs = []
for kind in (
    any_pair,
    parallel,
    in_one_plane,
    crossing,
    one_corner,
    one_edge,
    nearly_touching,
    needles,
    segments_and_points,
    unlike_sizes,
    far_away,
):
    for _ in range(EACH):
        a, b = kind()
        distance = root(square_distance(rational(a), rational(b)))
        pairs.append({"kind": kind.__name__, "a": a.tolist(), "b": b.tolist(), "distance": distance})
lines = ",\n".join(json.dumps(pair) for pair in pairs)
Path(__file__).with_name("triangle_pairs.json").write_text(f"[\n{lines}\n]\n", encoding="utf-8")

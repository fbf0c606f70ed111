"""Makes ellipsoid_pairs.json: pairs of ellipsoids with their signed distance.

It is the largest value, over all unit vectors n, of the distance of the two planes with normal n that touch the bodies:
n.(p2 - p1) - h1(n) - h2(n) with h(n) = |S R^T n|. Many starts, a general optimiser, and the value once more in extended
precision: it is stationary there, so that half of the digits of n are enough for all digits of the value.
"""

import json
from pathlib import Path

import numpy as np
from scipy.optimize import minimize
from scipy.spatial.transform import Rotation

rng = np.random.default_rng(21)
STARTS = rng.normal(size=(4000, 3))
STARTS /= np.linalg.norm(STARTS, axis=1)[:, None]


def signed_distance(s1, r1, p1, s2, r2, p2):
    d, a, b = p2 - p1, (r1 * s1).T, (r2 * s2).T

    def value(n):
        """For vectors n (3,) or (k,3) of any length but 0."""
        x, y = (np.sqrt(((n @ m.T) ** 2).sum(-1)) for m in (a.astype(n.dtype), b.astype(n.dtype)))
        return (n @ d.astype(n.dtype) - x - y) / np.sqrt((n * n).sum(-1))

    best = -np.inf
    for n in STARTS[np.argsort(value(STARTS))[-12:]]:
        for _ in range(3):
            n = minimize(lambda n: -value(n), n / np.linalg.norm(n), method="BFGS", options={"gtol": 1e-13}).x
        best = max(best, value(n.astype(np.longdouble)))
    return float(best)


def sizes(kind):
    return {
        "any": rng.uniform(0.3, 1.5, 3),
        "needles": [rng.uniform(1.0, 2.0), *rng.uniform(0.02, 0.1, 2)],
        "discs": [*rng.uniform(0.8, 1.5, 2), rng.uniform(0.02, 0.1)],
        "of revolution": np.repeat(rng.uniform(0.3, 1.5, 2), [1, 2]),
        "spheres": np.repeat(rng.uniform(0.3, 1.5), 3),
    }[kind]


cases = []
for kind in ("any", "needles", "discs", "of revolution", "spheres"):
    for reach in (0.02, 0.4, 0.8, 1.0, 1.5, 5.0):  # from one within the other to far apart
        for _ in range(2):
            s1, s2 = np.round(sizes(kind), 4), np.round(sizes(rng.choice([kind, "any"])), 4)
            q1, q2 = Rotation.random(2, rng=rng)
            p1 = np.round(rng.normal(size=3), 4)
            way = rng.normal(size=3)
            way *= reach / np.linalg.norm(way)
            r1, r2 = q1.as_matrix(), q2.as_matrix()
            p2 = np.round(p1 + way * (s1.mean() + s2.mean()), 4)
            case = {"kind": kind, "s1": s1.tolist(), "R1": r1.ravel().tolist(), "p1": p1.tolist()}
            case |= {"s2": s2.tolist(), "R2": r2.ravel().tolist(), "p2": p2.tolist()}
            cases.append(case | {"distance": signed_distance(s1, r1, p1, s2, r2, p2)})
lines = ",\n".join(json.dumps(case) for case in cases)
Path(__file__).with_name("ellipsoid_pairs.json").write_text(f"[\n{lines}\n]\n", encoding="utf-8")

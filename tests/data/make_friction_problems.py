"""Makes friction_problems.json: contacts with friction among rigid bodies, with the velocities that solve the cone problem.

Impulses r in the friction cones minimise r.W r/2 + q.r, with W = G M^-1 G^T; then u = W r + q is unique, r is not. Solved by
splitting (alternating direction method of multipliers: one matrix inverted once, one projection a pass), and proved: the
residual of the optimality conditions, |r - P(r - u/w)| w/|q| with w the largest diagonal entry of W, is below 5e-11.

A contact holds the numbers of its bodies (-1: the world), its frame (normal, tangent, tangent), the arms from the centres to
the contact point, and its friction; a body its mass, moment of inertia and velocity (linear, angular) before the contacts act.
"""

import itertools
import json
from pathlib import Path

import numpy as np

rng = np.random.default_rng(24)
HERE = Path(__file__).parent


def frame(n):
    n = np.array(n, float) / np.linalg.norm(n)
    t = np.cross(n, np.eye(3)[np.argmin(np.abs(n))])
    t /= np.linalg.norm(t)
    return np.round([n, t, np.cross(n, t)], 6)


def contact(a, b, n, arm_a, arm_b, mu):
    """n points from a to b."""
    arms = [np.round(arm, 6).tolist() for arm in (arm_a, arm_b)]
    return {"pair": [a, b], "frame": frame(n).tolist(), "arms": arms, "mu": round(float(mu), 3)}


def heap(side, layers, decades, friction):
    """Spheres of radius 1 in layers, each above the gaps of the one below, on a floor: it falls and flows apart."""
    place = [
        (2 * i + k % 2, 2 * j + k % 2, 1 + k * np.sqrt(2))
        for k in range(layers)
        for i in range(side - k % 2)
        for j in range(side - k % 2)
    ]
    place = np.array(place)
    bodies = []
    for _ in place:
        mass = 10.0 ** rng.uniform(-decades / 2, decades / 2)
        velocity = np.round(rng.normal(0.0, 0.7, 6), 4)
        velocity[2] -= 1.0
        bodies.append(
            {"mass": float(f"{mass:.4g}"), "inertia": float(f"{0.4 * mass:.4g}"), "velocity": velocity.tolist()}
        )
    contacts = []
    for i, j in itertools.combinations(range(len(place)), 2):
        n = place[j] - place[i]
        if np.linalg.norm(n) < 2.001:
            contacts.append(contact(i, j, n, n / 2, -n / 2, rng.uniform(*friction)))
    for i, x in enumerate(place):
        if x[2] < 1.001:
            contacts.append(contact(-1, i, (0, 0, 1), (0, 0, 0), (0, 0, -1), rng.uniform(*friction)))
    return {"bodies": bodies, "contacts": contacts}


def tower(masses, push):
    """Boxes 2 x 2 x 1 upon each other, touching at the four corners of each face; the uppermost is pushed aside."""
    bodies, contacts = [], []
    for k, mass in enumerate(masses):
        bodies.append({"mass": mass, "inertia": round(mass * 5 / 12, 6), "velocity": [0.0, 0.0, -1.0, 0.0, 0.0, 0.0]})
        for x, y in itertools.product((-1.0, 1.0), repeat=2):
            contacts.append(contact(k - 1, k, (0, 0, 1), (x, y, 0.5), (x, y, -0.5), 0.5))
    bodies[-1]["velocity"][0] = push
    return {"bodies": bodies, "contacts": contacts}


def tangle(count, bodies):
    """Few bodies and many contacts in all directions: none can move freely."""
    made = heap(3, 2, 1.0, (0.8, 0.9))
    made["bodies"] = made["bodies"][:bodies]
    made["contacts"] = []
    for _ in range(count):
        a, b = rng.choice(bodies, 2, replace=False) if rng.random() < 0.7 else (-1, rng.integers(bodies))
        contacts = contact(
            int(a), int(b), rng.normal(size=3), rng.normal(size=3), rng.normal(size=3), rng.uniform(0.8, 0.9)
        )
        made["contacts"].append(contacts)
    return made


def matrices(problem):
    """W (3c,3c), q (3c,) and mu (c,)."""
    contacts, bodies = problem["contacts"], problem["bodies"]
    G = np.zeros((3 * len(contacts), 6 * len(bodies)))
    for c, given in enumerate(contacts):
        for body, arm, sign in zip(given["pair"], given["arms"], (-1.0, 1.0), strict=True):
            if body >= 0:
                x, y, z = arm
                turn = np.array([[0.0, z, -y], [-z, 0.0, x], [y, -x, 0.0]])  # spin to velocity at the arm
                G[3 * c : 3 * c + 3, 6 * body : 6 * body + 6] = (
                    sign * np.array(given["frame"]) @ np.hstack([np.eye(3), turn])
                )
    light = np.concatenate([np.repeat([1.0 / b["mass"], 1.0 / b["inertia"]], 3) for b in bodies])
    q = G @ np.concatenate([b["velocity"] for b in bodies])
    return G * light @ G.T, q, np.array([given["mu"] for given in contacts])


def project(x, mu):
    """Nearest points of the cones, rows (normal, tangent, tangent) flattened."""
    x = x.reshape(-1, 3)
    slide = np.hypot(x[:, 1], x[:, 2])
    height = np.maximum((x[:, 0] + mu * slide) / (1.0 + mu**2), 0.0)
    out = np.column_stack([height, x[:, 1:] * (mu * height / np.maximum(slide, 1e-300))[:, None]])
    return np.where((slide <= mu * x[:, 0])[:, None], x, out).ravel()


def solution(W, q, mu):
    """Splitting r = z with z in the cones; the weight is changed now and then so that both residuals fall alike."""
    largest = W.diagonal().max()

    def residual(r):
        return np.linalg.norm(r - project(r - (W @ r + q) / largest, mu)) * largest / np.linalg.norm(q)

    weight = np.sqrt(largest * np.median(np.linalg.eigvalsh(W).clip(1e-9 * largest)))
    value, basis = np.linalg.eigh(W)
    z, dual = np.zeros_like(q), np.zeros_like(q)
    for turn in range(1_000_000):
        r = basis @ ((basis.T @ (weight * z - dual - q)) / (value + weight))
        mixed = 1.6 * r - 0.6 * z
        old, z = z, project(mixed + dual / weight, mu)
        dual += weight * (mixed - z)
        if turn % 100 == 99:
            found = residual(z)
            if found < 5e-11:
                return W @ z + q
            primal, other = np.linalg.norm(r - z), weight * np.linalg.norm(z - old)
            if turn < 100_000 and turn % 1000 == 999 and not 0.1 * other < largest * primal < 10 * other:
                weight *= 2.0 if largest * primal > other else 0.5
    raise RuntimeError(f"residual {residual(z):.2g} is all that was reached")


if __name__ == "__main__":
    problems = {
        "heap": heap(3, 4, 0.0, (0.1, 0.5)),
        "heap of three decades": heap(3, 3, 3.0, (0.1, 0.9)),
        "tower": tower([1.0, 1.0, 1.0, 1.0, 1.0], 1.5),
        "heavy above light": tower([1.0, 10.0, 100.0, 1000.0, 10000.0], 0.7),
        "tangle": tangle(12, 8),
    }
    for problem in problems.values():
        problem["u"] = [float(f"{x:.11g}") for x in solution(*matrices(problem))]
    rows = []
    for name, problem in problems.items():
        parts = [f'"{key}": [\n' + ",\n".join(map(json.dumps, problem[key])) + "\n]" for key in ("bodies", "contacts")]
        rows.append(f"{json.dumps(name)}: {{\n" + ",\n".join([*parts, f'"u": {json.dumps(problem["u"])}']) + "\n}")
    (HERE / "friction_problems.json").write_text("{\n" + ",\n".join(rows) + "\n}\n", encoding="utf-8")

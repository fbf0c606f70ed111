"""Makes impacts.json: spheres that hit a rigid plane at an angle, by Hertz's law and three ways to treat shear.

The equations of motion of one sphere, with steps so short that half as many change less than a ten-thousandth.
The damping constant is the one with which a head-on impact returns the restitution that is asked for. With overlap d, contact
radius a = sqrt(R d), slip s and sliding velocity u of the sphere at the contact point, the middle of the overlap, whose arm is R - d / 2:

    normal force  N = max(0, k d + c d')            k = 4/3 E* a,  c = alpha sqrt(m k)
    shear force   F = -(k_t s + c_t u), |F| <= mu N    k_t = 8 G* a,  c_t = 2 sqrt(G*/E*) c  ("hertz" only)
    slip          s' = u - g s d'/(2 d), and shortened so that |F| = mu N where the contact slides

with g = 0 ("direct": stiffness times slip), 1 ("gradual": the force grows by stiffness times slip increment), or 1 while the
load grows and 0 while it falls ("hertz").
"""

import json
from pathlib import Path

import numpy as np
from scipy.integrate import solve_ivp
from scipy.optimize import brentq


def rebound(alpha):
    """Restitution of a head-on impact in units in which m = k/sqrt(d) = speed = 1."""

    def motion(_, y):
        d, v = max(y[0], 0.0), y[1]
        return [v, -max(0.0, d**1.5 + alpha * d**0.25 * v)]

    # Over as soon as no force is left: from there the speed is constant.
    end = solve_ivp(motion, (0.0, 20.0), [1e-12, 1.0], method="DOP853", rtol=1e-11, atol=1e-13).y[1, -1]
    return -end


def damping(restitution):
    return 0.0 if restitution == 1.0 else brentq(lambda alpha: rebound(alpha) - restitution, 0.0, 3.0, xtol=1e-10)


def impact(case, steps):
    """Final tangential velocity, normal velocity and spin (k,) of each sphere of a case."""
    radius, law = case["radius"], case["law"]
    mass = 4.0 / 3.0 * np.pi * radius**3 * case["density"]
    young = case["young"] / (1.0 - case["poisson"] ** 2)
    shear = case["shear"] * case["young"] / (2.0 * (1.0 + case["poisson"])) / (2.0 - case["poisson"])
    alpha = damping(case["restitution"])
    normal, v, spin = (np.array(case[name], float) for name in ("normal", "tangential", "spin"))
    dt = 2.8683 * (mass**2 / (radius * young**2 * normal)) ** 0.2 / steps
    d, rate, slip = np.zeros_like(v), normal.copy(), np.zeros_like(v)

    def forces(d, rate, v, spin, slip):
        a = np.sqrt(radius * np.maximum(d, 0.0))
        k = 4.0 / 3.0 * young * a
        c = alpha * np.sqrt(mass * k)
        push = np.maximum(0.0, k * d + c * rate)
        u = v - (radius - 0.5 * d) * spin
        stiff = 8.0 * shear * a
        dash = 2.0 * np.sqrt(shear / young) * c * u if law == "hertz" else 0.0 * u
        pull, most = stiff * slip + dash, case["friction"] * push
        slides = np.abs(pull) > most
        left = np.sign(pull) * np.maximum(most - np.sign(pull) * dash, 0.0)
        slip = np.where(slides, left / np.maximum(stiff, 1e-300), slip)
        return push, -np.clip(pull, -most, most), slip, u

    push, pull, slip, u = forces(d, rate, v, spin, slip)
    for _ in range(int(1.6 * steps)):
        half = 0.5 * dt
        rate, v = rate - half * push / mass, v + half * pull / mass
        spin = spin - half * (radius - 0.5 * d) * pull / (0.4 * mass * radius**2)
        old, d = d, d + dt * rate
        middle = np.maximum(0.5 * (np.maximum(old, 0.0) + np.maximum(d, 0.0)), 1e-300)
        grow = {"direct": 0.0, "gradual": 1.0, "hertz": (rate > 0.0) * 1.0}[law] * rate / (2.0 * middle)
        now = v - (radius - 0.5 * np.maximum(d, 0.0)) * spin
        # Exact for constant u and growth over the step; no slip is left where nothing touches.
        slip = np.where(d > 0.0, (slip + half * u) * np.exp(-np.clip(dt * grow, -50.0, 50.0)) + half * now, 0.0)
        push, pull, slip, u = forces(d, rate, v, spin, slip)
        rate, v = rate - half * push / mass, v + half * pull / mass
        spin = spin - half * (radius - 0.5 * d) * pull / (0.4 * mass * radius**2)
    assert (push == 0.0).all()
    return v, -rate, spin


angle = np.radians([2, 5, 10, 15, 20, 25, 30, 40, 50, 60, 70, 80])
slow = 2.0 * np.cos(angle), 2.0 * np.sin(angle), 0.0 * angle
turning = np.linspace(-900.0, 900.0, 13)
spinning = 1.5 + 0.0 * turning, 1.0 + 0.0 * turning, turning
GLASS = {"density": 2500.0, "young": 6.0e10, "poisson": 0.24, "radius": 0.003}
RUBBER = {"density": 1100.0, "young": 5.0e7, "poisson": 0.45, "radius": 0.004}
CASES = {
    "glass": GLASS | {"friction": 0.15, "restitution": 0.97, "law": "hertz", "shear": 1.0, "speeds": slow},
    "glass that spins": GLASS
    | {"friction": 0.15, "restitution": 1.0, "law": "hertz", "shear": 1.0, "speeds": spinning},
    "rubber": RUBBER | {"friction": 0.6, "restitution": 0.7, "law": "hertz", "shear": 1.0, "speeds": slow},
    "glass by the direct law": GLASS
    | {"friction": 0.2, "restitution": 0.9, "law": "direct", "shear": 1.0, "speeds": slow},
    "glass by the gradual law": GLASS
    | {"friction": 0.3, "restitution": 1.0, "law": "gradual", "shear": 0.5, "speeds": spinning},
}
found = {}
for name, case in CASES.items():
    for key, values in zip(("normal", "tangential", "spin"), case.pop("speeds"), strict=True):
        case[key] = np.round(values, 6).tolist()
    fine, coarse = impact(case, 40000), impact(case, 20000)
    for key, one, two in zip(("v", "w", "omega"), fine, coarse, strict=True):
        size = np.abs(one).max()
        assert np.abs(one - two).max() < 1e-4 * size
        case["after " + key] = np.round(one, 7).tolist()
    found[name] = case
lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(case)}" for name, case in found.items())
Path(__file__).with_name("impacts.json").write_text(f"{{\n{lines}\n}}\n", encoding="utf-8")

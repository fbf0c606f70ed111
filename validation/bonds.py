"""A beam of bonded spheres, clamped at one end, under its weight: how far it bends and when it breaks, beside closed forms; a table for docs/validation.md.

    python validation/bonds.py             # a minute of one core
    python validation/bonds.py --quick     # the shorter beam alone; writes nothing

Euler and Bernoulli: weights P at the places x bend the end at L by sum P x^2 (3 L - x) / (6 E I), and shear, some tenths of a per cent here, adds sum P x / (G A). A bond breaks when the stress at its rim,
M r / I, is above its strength: the first one, which bears the moment of all weights about the place where it is felt, the contact point. A beam that is about to break is bent by 11 and by 21 % of its
length, and the arms of the weights are shorter by then: the load is that of the bent chain, `breaking_load`, and that of the straight one stands beside it. It is raised in steps of 0.1 %.
"""

import argparse
import math
from pathlib import Path

import numpy as np

import clast

PAGE = Path(__file__).resolve().parents[1] / "docs" / "validation.md"
BEGIN, END = "<!-- bonds -->", "<!-- /bonds -->"
RADIUS, DENSITY, YOUNG, SHEAR, STRENGTH = 0.01, 1000.0, 1e7, 4e6, 1e5
BOND = {"bond_young": YOUNG, "bond_shear": SHEAR, "bond_size": 0.5, "bond_gap": 1e-6, "bond_viscosity": 1e-4}
STEP = 0.001  # of the load
THICK = 0.5 * RADIUS  # [m], radius of a bond
AREA, INERTIA = math.pi * THICK**2, math.pi * THICK**4 / 4.0
WEIGHT = DENSITY * 4.0 / 3.0 * math.pi * RADIUS**3


def beam(span, strength):
    """Spheres bonded in a row, the first held."""
    numbers = BOND | {"bond_strength": strength, "bond_shear_strength": 1e9}
    material = clast.Material(density=DENSITY, young=1e7, friction=0.0, numbers=numbers)
    scene = clast.Scene(gravity=(0.0, 0.0, 0.0))
    scene.add(clast.Sphere(RADIUS), motion="fixed", material=material)
    places = [(2.0 * RADIUS * k, 0.0, 0.0) for k in range(1, span + 1)]
    scene.add(clast.Sphere(RADIUS), position=places, material=material)
    return clast.Simulation(scene, clast.DEM(law="linear", bonds=True), dt=4e-5)


def settle(sim, gravity):
    """Let the beam come to rest: whenever its motion begins to slow down, it is stopped. Whether all bonds hold."""
    sim.scene.gravity = (0.0, 0.0, -gravity)
    whole, last, stops = len(sim.bodies.mass) - 1, 0.0, 0
    while stops < 6:
        sim.step(100)
        if (sim.contacts().kept["bond"] > 0.0).sum() < whole:
            return False
        now = clast.measure.energy(sim)["kinetic"]
        if now < last:
            sim.state.bodies.velocity[:], sim.state.bodies.spin[:] = 0.0, 0.0
            last, stops = 0.0, stops + 1
        else:
            last = now
    return True


def straight_load(span):
    """The gravity [m/s^2] at which the first bond of a beam breaks that keeps its arms."""
    place = 2.0 * RADIUS * np.arange(1, span + 1)
    return STRENGTH * INERTIA / (WEIGHT * (place - RADIUS).sum() * THICK)


def stress_of_chain(span, gravity):
    """Stress [Pa] at the rim of the first bond of a bent beam at rest: a chain of rigid links of two radii with springs E I / L where spheres touch, without stretch and
    shear; it knows nothing of contacts."""
    angle = np.zeros(span + 1)  # of each sphere; the first is held
    while True:
        ahead, down = RADIUS * np.cos(angle), RADIUS * np.sin(angle)
        place = np.concatenate([[0.0], np.cumsum(ahead[:-1] + ahead[1:])])
        joint = place[:-1] + ahead[:-1]
        moment = WEIGHT * gravity * np.array([(place[k + 1 :] - joint[k]).sum() for k in range(span)])
        new = np.concatenate([[0.0], np.cumsum(moment * 2.0 * RADIUS / (YOUNG * INERTIA))])
        if np.abs(new - angle).max() < 1e-13:
            break
        angle = 0.5 * (angle + new)
    tilt = math.atan2(down[0] + down[1], ahead[0] + ahead[1])
    return moment[0] * THICK / INERTIA + WEIGHT * gravity * span * math.sin(tilt) / AREA


def breaking_load(span):
    """The gravity [m/s^2] at which the first bond of a bent beam breaks."""
    low, high = 0.9 * straight_load(span), 1.2 * straight_load(span)
    for _ in range(50):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if stress_of_chain(span, middle) > STRENGTH else (middle, high)
    return low


def rows(span):
    """Rows of the table for a beam of so many bonds."""
    place = 2.0 * RADIUS * np.arange(1, span + 1)
    bends = WEIGHT * (place**2 * (3.0 * place[-1] - place)).sum() / (6.0 * YOUNG * INERTIA)
    bends += WEIGHT * place.sum() / (SHEAR * AREA)
    gravity = 0.02 * place[-1] / bends  # by 2 % of its length
    sim = beam(span, 1e6)
    settle(sim, gravity)
    found, known = -float(sim.bodies.position[-1, 2]), gravity * bends
    yield f"| {span} bonds, deflection of the end | {1e3 * found:.4f} mm | {1e3 * known:.4f} mm | {100 * (found / known - 1):+.2f} % |"
    known, straight = breaking_load(span), straight_load(span)
    sim, part = beam(span, STRENGTH), 0.5
    while settle(sim, part * known):
        part += 0.2 if part < 0.65 else 0.1 if part < 0.85 else 0.05 if part < 0.92 else 0.01 if part < 0.985 else STEP
    first = [0, 1] not in sim.contacts().pair[sim.contacts().kept["bond"] > 0.0].tolist()
    where = "the first bond" if first else "another bond than the first"
    yield f"| {span} bonds, load at which {where} breaks | {part * known:.4f} m/s² | {known:.4f} m/s² | {100 * (part - 1):+.1f} % |"
    off = part * known / straight - 1
    yield f"| the same beside a beam that keeps its arms | {part * known:.4f} m/s² | {straight:.4f} m/s² | {100 * off:+.1f} % |"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="the shorter beam alone; writes nothing")
    quick = parser.parse_args().quick
    lines = ["| beam | ours | known | off by |", "|---|---:|---:|---:|"]
    for span in (10,) if quick else (10, 20):
        for line in rows(span):
            print(line, flush=True)
            lines.append(line)
    if not quick:
        head, rest = PAGE.read_text(encoding="utf-8").split(BEGIN)
        PAGE.write_text(head + BEGIN + "\n" + "\n".join(lines) + "\n" + END + rest.split(END)[1], encoding="utf-8")


if __name__ == "__main__":
    main()

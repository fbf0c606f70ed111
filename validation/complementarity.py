"""Hard contacts in scenes that take longer than tests: stacks, a silo and a drum. Prints what it measures.

python validation/complementarity.py             # all
python validation/complementarity.py tower silo  # some
"""

import math
import sys
import time

import numpy as np

import clast


def told(sim):
    """What the solver did, in short."""
    tally = sim.report().solver
    steps = tally["steps"]
    return f"{tally['iterations'] / steps:.0f} iterations a step, {tally['missed']} of {steps} missed, worst {tally['worst']:.1e} m/s"


def tower(seconds=60.0, askew=0.0, **options):
    """Ten boxes of 0.5 m; askew: part of the edge by which they are shifted, and a fifth of the angle [rad], at random."""
    rng = np.random.default_rng(0)
    stuff = clast.Material(friction=0.5, restitution=0.0)
    scene = clast.Scene()
    scene.add(clast.Plane(), material=stuff)
    for k in range(10):
        turn = 2.5 * askew * rng.normal()
        place = (*(0.5 * askew * rng.normal(size=2)), 0.25 + 0.5 * k)
        pose = (math.cos(turn), 0, 0, math.sin(turn))
        scene.add(clast.Polyhedron.box(0.5, 0.5, 0.5), position=place, orientation=pose, material=stuff)
    sim = clast.Simulation(scene, clast.Complementarity(**options), dt=5e-3)
    start = sim.bodies.position.copy()
    sim.step(round(seconds / sim.dt))
    moved = np.abs(sim.bodies.position - start).max() / 0.5
    print(
        f"tower askew by {askew:g}, {seconds:g} s, {options}: moved by {moved:.1e} of the edge; {told(sim)}", flush=True
    )


def column(seconds=60.0, **options):
    """Sixty balls on top of each other."""
    stuff = clast.Material(friction=0.5, restitution=0.0)
    scene = clast.Scene()
    scene.add(clast.Plane(), material=stuff)
    scene.add(clast.Sphere(0.05), position=[(0, 0, 0.05 + 0.1 * k) for k in range(60)], material=stuff)
    sim = clast.Simulation(scene, clast.Complementarity(**options), dt=5e-3)
    start = sim.bodies.position.copy()
    sim.step(round(seconds / sim.dt))
    moved = np.abs(sim.bodies.position - start).max() / 0.1
    spacing = np.diff(sim.bodies.position[1:, 2]).min() / 0.1
    print(f"column, {seconds:g} s, {options}: moved by {moved:.1e} d, spacing {spacing:.6f} d; {told(sim)}", flush=True)


def silo(friction):
    """Four hundred balls run out of a wedge; prints balls a second between a quarter and three quarters of them."""
    stuff = clast.Material(friction=friction, restitution=0.1)
    scene = clast.Scene()
    for side in (1, -1):
        wall = [(0.06 * side, -0.05, 0), (0.06 * side, 0.05, 0), (0.4 * side, 0.05, 0.34), (0.4 * side, -0.05, 0.34)]
        scene.add(clast.Quad(wall), material=stuff)
        scene.add(clast.Plane((0, -side, 0)), position=(0, 0.05 * side, 0), material=stuff)
    box = ((-0.2, -0.05, 0.25), (0.2, 0.05, 0.6))
    scene.fill(clast.Sphere(0.015), count=400, box=box, material=stuff, method="lattice")
    scene.outlet(box=((-1, -1, -3), (1, 1, -0.05)))
    sim = clast.Simulation(scene, clast.Complementarity(), dt=2e-3)
    times = {}
    while sim.removed < 300 and sim.time < 5.0:
        sim.step(5)
        times.setdefault(sim.removed // 100, sim.time)
    rate = 200 / (times[3] - times[1]) if {1, 3} <= set(times) else 0.0
    print(f"silo, friction {friction:g}: {rate:.0f} balls a second; {told(sim)}", flush=True)


def drum(friction=0.5, count=800, radius=0.15, ball=0.006, turns=10.0):
    """Speed of the balls at the wall of a drum against that of the wall; turns: a minute."""
    stuff = clast.Material(friction=friction, restitution=0.3)
    low, high = (-1.1 * radius, -0.03, -1.1 * radius), (1.1 * radius, 0.03, 1.1 * radius)
    scene = clast.Scene(world=(low, high), periodic=(False, True, False))
    omega, half = 2.0 * math.pi * turns / 60.0, math.sqrt(0.5)
    scene.add(clast.Cylinder(radius, 0.12), orientation=(half, half, 0, 0), spin=(0, omega, 0), material=stuff)
    within = 0.65 * radius
    box = ((-within, -0.03, -within), (within, 0.03, within))
    scene.fill(clast.Sphere(ball), count=count, scale=(0.9, 1.1), box=box, material=stuff)
    sim = clast.Simulation(scene, clast.Complementarity(), dt=1e-3)
    sim.step(1500)
    parts = []
    while sim.time < 4.0:
        sim.step(50)
        bodies = sim.bodies
        place, velocity = bodies.position[1:], bodies.velocity[1:]
        away = np.hypot(place[:, 0], place[:, 2])
        near = (radius - away < 1.3 * ball) & (place[:, 2] < -0.5 * radius)
        along = (velocity[:, 0] * place[:, 2] - velocity[:, 2] * place[:, 0]) / away
        parts.extend(along[near] / (omega * away[near]))
    print(
        f"drum, friction {friction:g}: wall layer at {np.mean(parts):.3f} of the wall's speed; {told(sim)}", flush=True
    )


SCENES = {
    "tower": lambda: (tower(), tower(10.0, 0.02), tower(10.0, 0.02, tolerance=1e-5, iterations=1000)),
    "column": lambda: column(),
    "silo": lambda: [silo(mu) for mu in (0.0, 0.2, 0.5, 0.9)],
    "drum": lambda: (drum(), drum(0.2)),
}

if __name__ == "__main__":
    for name in sys.argv[1:] or SCENES:
        began = time.perf_counter()
        SCENES[name]()
        print(f"{name}: {time.perf_counter() - began:.0f} s")

"""Hard contacts: one pass over contacts and bodies, whole steps of settled spheres, and the tank and silo of the paper.

    python benchmarks/complementarity.py                     # about half an hour on two cores
    python benchmarks/complementarity.py --only pass         # or settled, tank, silo
    python benchmarks/complementarity.py --quick             # smaller sizes

Prints tables and keeps every number in results/complementarity-<machine>.json.

pass     one iteration of the fixed point (velocities, step and projection of all contacts, then all bodies), spheres of a
         settled packing laid side by side.
settled  spheres of radius 0.05 m in an open box (density 2500, friction 0.5, dt 5e-3), settled, then whole steps: time,
         residual abs(g - P(g - u/d)) d with d the mean diagonal, root mean square in m/s, and the deepest overlap.
tank     Table 3 of Negrut et al. 2010: spheres in steady flow out of a tank; time of a step at the residual that 100
         iterations of the fixed point reach.
silo     Table 1 of the same paper: time of the cone problem.
"""

import argparse
import json
import time

import numpy as np
from common import RESULTS, cache, machine
from ellipsoids import console, show

import clast
from clast import scenes
from clast.dvi import solvers
from clast.dvi.problem import BodyCones

RADIUS, STEP = 0.05, 5e-3
# Chrono's PSOR with 50 iterations, ms a step on two cores; its residual is 0.02 to 0.05 m/s and its overlap 1.5 to 5 % of r.
CHRONO = {1_000: 19.0, 20_000: 680.0, 100_000: 4_800.0}
PAPER_TANK = {0.1: 6.1972, 0.2: 12.1190, 0.3: 18.2708, 0.4: 23.2806, 0.5: 29.2565, 0.6: 35.0433, 0.7: 40.5938}
PAPER_SILO = {16_000: (7.11, 0.57), 32_000: (16.01, 1.00), 64_000: (34.60, 1.97), 128_000: (76.82, 4.55)}


def falling(count):
    """A simulation of that many spheres about to fall into an open box."""
    material = clast.Material(density=2500, friction=0.5, restitution=0.0)
    side = round((count / 1.25) ** (1 / 3))
    length = side * 2.2 * RADIUS
    scene = clast.Scene()
    planes = {(0, 0, 1): (0, 0, 0), (1, 0, 0): (0, 0, 0), (-1, 0, 0): (length, 0, 0)}
    planes |= {(0, 1, 0): (0, 0, 0), (0, -1, 0): (0, length, 0)}
    for normal, position in planes.items():
        scene.add(clast.Plane(normal), position=position, material=material)
    box = ((0, 0, 0), (length, length, 2.3 * RADIUS * (count / side**2 + 3)))
    scene.fill(clast.Sphere(RADIUS), count=count, box=box, material=material, method="lattice", jitter=0.05, seed=1)
    return clast.Simulation(scene, clast.Complementarity(), dt=STEP)


def settled(count, seconds=3.0):
    """A simulation of that many spheres at rest in an open box; settled once and kept on disk."""
    path = cache() / f"settled-{count}.h5"
    if not path.exists():
        sim = falling(count)
        sim.run(until=seconds)
        sim.save(path)
    return clast.resume(path)


def with_solver(sim, solver, tolerance, iterations):
    """Let a simulation go on with another solver."""
    sim.method = sim.stepper.method = clast.Complementarity(solver=solver, tolerance=tolerance, iterations=iterations)
    return sim


def steps(sim, count):
    """Median time [s], mean residual [m/s], mean iterations and deepest overlap [m] of some steps."""
    taken, residual, iterations, deepest = [], [], [], 0.0
    for _ in range(count):
        began = time.perf_counter()
        sim.step()
        taken.append(time.perf_counter() - began)
        residual.append(sim.stepper.solution.residual)
        iterations.append(sim.stepper.solution.iterations)
        deepest = max(deepest, -float(sim.stepper.constraints.gap.min(initial=0.0)))
    return float(np.median(taken)), float(np.mean(residual)), float(np.mean(iterations)), deepest


def cones_of(sim):
    """The cone problem of the present state, as the next step would see it, and impulses to start from."""
    mover = sim.stepper
    mover._touch()
    sim_free = np.ascontiguousarray(np.hstack([sim.state.bodies.velocity, sim.state.bodies.spin]))
    sim_free[sim.state.bodies.mass < np.inf, :3] += np.array(sim.scene.gravity) * sim.dt
    cones = BodyCones(
        mover.constraints, sim.state.pairs, sim.state.rows, mover.inverse, sim_free, mover._inner, mover.width
    )
    impulse = np.zeros((cones.count, mover.width))
    mover.recall_impulses(impulse)
    return cones, impulse


def pass_table(quick):
    """Time of one iteration of the fixed point."""
    count = 100_000 if quick else 1_000_000
    ready = scenes.SCENES["tank"](count=count)
    sim = ready.simulation()
    sim.step(30)
    cones, impulse = cones_of(sim)
    cones.begin(impulse)
    taken = []
    for _ in range(12):
        began = time.perf_counter()
        cones.relax(impulse, 0.3, 1.0)
        taken.append(time.perf_counter() - began)
    return [{"bodies": count, "contacts": cones.count, "seconds": float(np.median(taken[2:]))}]


def settled_table(quick):
    """Whole steps of settled spheres."""
    rows = []
    for count in (1_000, 20_000) if quick else (1_000, 20_000, 100_000):
        for solver, tolerance, most in (("apgd", 2e-2, 50), ("gauss-seidel", 2e-2, 50), ("apgd", "auto", "auto")):
            sim = with_solver(settled(count), solver, tolerance, most)
            sim.step(10)
            taken, residual, iterations, deepest = steps(sim, 20)
            row = {
                "bodies": count,
                "contacts": len(sim.stepper.constraints.gap),
                "solver": solver,
                "tolerance": tolerance,
            }
            row |= {"ms": 1e3 * taken, "residual": residual, "iterations": iterations, "overlap/r": deepest / RADIUS}
            rows.append(row | {"PSOR ms": CHRONO[count], "times": CHRONO[count] / (1e3 * taken)})
    return rows


def flow_row(sim):
    """One step of a flowing scene: at the residual of 100 iterations of the fixed point."""
    cones, impulse = cones_of(sim)
    reached = solvers.solve(cones, impulse, solver="jacobi", tolerance=1e-12, iterations=100).residual
    with_solver(sim, "apgd", reached, 1000)
    before = dict(sim.seconds)
    taken, residual, iterations, _ = steps(sim, 3)
    spent = {name: (sim.seconds[name] - before[name]) / 3 for name in before}
    row = {"contacts": cones.count, "seconds": taken, "detection": spent["pairs"] + spent["contacts"]}
    row |= {"solver": spent["solver"], "iterations": iterations, "residual": residual, "jacobi 100": reached}
    return row


def tank_table(quick):
    """Table 3: the tank in steady flow."""
    rows = []
    for million in (0.1,) if quick else (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0):
        count = round(1e6 * million)
        sim = scenes.SCENES["tank"](count=count).simulation()
        sim.step(60)
        rows.append({"million": million, **flow_row(sim), "paper": PAPER_TANK.get(million)})
    return rows


def silo_table(quick):
    """Table 1: the silo."""
    rows = []
    for count in (16_000,) if quick else tuple(PAPER_SILO):
        sim = scenes.SCENES["silo"](count=count).simulation()
        sim.step(100)
        rows.append(
            {"bodies": count, **flow_row(sim), "paper CPU": PAPER_SILO[count][0], "paper GPU": PAPER_SILO[count][1]}
        )
    return rows


TABLES = {"pass": pass_table, "settled": settled_table, "tank": tank_table, "silo": silo_table}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", choices=TABLES)
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    path = RESULTS / f"complementarity-{machine()}.json"
    kept = json.loads(path.read_text()) if path.exists() else {}
    for name, table in TABLES.items():
        if options.only in (None, name):
            kept[name] = table(options.quick)
            show({name: kept[name]})
            path.parent.mkdir(exist_ok=True)
            path.write_text(json.dumps(kept, indent=1))
    console.print(f"kept in {path}")


if __name__ == "__main__":
    main()

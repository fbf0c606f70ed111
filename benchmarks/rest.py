"""A pile of spheres that falls into an open box and comes to rest by hard contacts at the defaults; goes on where it was stopped.

    python benchmarks/rest.py --count 20000
    python benchmarks/rest.py --count 1000000 --minutes 20      # again and again, until it prints the row; about 80 minutes on two cores
    python benchmarks/rest.py --count 1000000 --anew            # from the beginning

Radius 0.05 m, density 2500, friction 0.5, restitution 0, dt 5e-3 s, as in `complementarity.falling`. A checkpoint and what was seen so far are kept in the
cache of the benchmarks every five minutes and when the minutes are over. The balls have fallen when no more than one in a thousand is faster than sqrt(g r);
three seconds later the row is printed:

fallen s        when they had fallen
speed 1, 2, 3 s median speed, so long after that, over sqrt(g r); falls: whether it is lower in the last half second than in the one before
contacts        that bear a force, and by what part of them the number changes in the last 20 steps
overlap/r       the deepest in these steps, over the radius
borne/weight    vertical forces on floor and walls over the weight of all balls, mean of these steps
ms, iterations  of a step: median and mean of these steps
"""

import argparse
import json
import time

import numpy as np
from common import cache
from complementarity import RADIUS, STEP, falling
from ellipsoids import show

import clast

GRAVITY = 9.81
BLOCK = 20  # steps between two looks
REST = 3.0  # seconds after the last has fallen
SAVE = 300.0  # seconds of wall time between two checkpoints


def speeds(sim):
    """Median speed over sqrt(g r), and the part of the balls that is faster than that."""
    free = sim.bodies.mass < np.inf
    speed = np.linalg.norm(sim.bodies.velocity[free], axis=1) / np.sqrt(GRAVITY * RADIUS)
    return float(np.median(speed)), float((speed > 1.0).mean())


def borne(sim):
    """Vertical force of the last step on what does not move, over the weight of what does."""
    mass, body = sim.state.bodies.mass, sim.stepper.constraints.body
    held = np.isinf(mass)[body]
    side = held[:, 1].astype(float) - held[:, 0]  # impulses are those on the second body of a contact
    return float(-(side * sim.stepper.impulse[:, 2]).sum() / (STEP * GRAVITY * mass[np.isfinite(mass)].sum()))


def watch(sim):
    """One more block of steps; returns what is printed of it."""
    taken, iterations, contacts, weight, deepest = [], [], [], [], 0.0
    for _ in range(BLOCK):
        began = time.perf_counter()
        sim.step()
        taken.append(time.perf_counter() - began)
        iterations.append(sim.stepper.solution.iterations)
        contacts.append(sim.stepper.touching())
        deepest = max(deepest, -float(sim.stepper.constraints.gap.min(initial=0.0)))
        weight.append(borne(sim))
    median, fast = speeds(sim)
    many = max(np.mean(contacts), 1.0)
    row = {"time": sim.time, "speed": median, "fast": fast, "contacts": many, "change": np.ptp(contacts) / many}
    row |= {"overlap/r": deepest / RADIUS, "borne/weight": np.mean(weight)}
    row |= {"ms": 1e3 * np.median(taken), "iterations": np.mean(iterations)}
    return {name: float(value) for name, value in row.items()}


def fallen_at(seen):
    """When the balls had fallen [s]; None if they have not."""
    last = None
    for row in seen:
        if row["fast"] > 1e-3:
            last = None
        elif last is None and row["contacts"] > 1.0:
            last = row["time"]
    return last


def ready(seen):
    """Whether all has been seen."""
    fallen = fallen_at(seen)
    return fallen is not None and seen[-1]["time"] >= fallen + REST - 0.5 * STEP


def row_of(count, seen):
    """What is printed at the end."""
    fallen, last, each = fallen_at(seen), seen[-1], round(0.5 / (BLOCK * STEP))
    at = [min(seen, key=lambda row: abs(row["time"] - fallen - t))["speed"] for t in (1.0, 2.0, 3.0)]
    late = [row["speed"] for row in seen]
    row = {"balls": count, "fallen s": fallen} | {f"speed {t} s": x for t, x in zip((1, 2, 3), at, strict=True)}
    row |= {"falls": np.median(late[-each:]) < np.median(late[-2 * each : -each])}
    return row | {name: last[name] for name in ("contacts", "change", "overlap/r", "borne/weight", "ms", "iterations")}


def keep(sim, seen, path):
    """Write the checkpoint, and what was seen before it."""
    sim.save(path)
    path.with_suffix(".json").write_text(json.dumps(seen))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=20_000)
    parser.add_argument("--minutes", type=float, default=1e9, help="end after about so many and go on another time")
    parser.add_argument("--anew", action="store_true", help="forget what was kept")
    options = parser.parse_args()
    path, began = cache() / f"rest-{options.count}.h5", time.perf_counter()
    seen = []
    if path.exists() and not options.anew:
        sim = clast.resume(path)
        seen = [
            row for row in json.loads(path.with_suffix(".json").read_text()) if row["time"] <= sim.time + 0.5 * STEP
        ]
        print(f"goes on at {sim.time:.2f} s", flush=True)
    else:
        sim = falling(options.count)
    saved = time.perf_counter()
    while not ready(seen):
        seen.append(watch(sim))
        last, now = seen[-1], time.perf_counter()
        print(" ".join(f"{name} {value:.4g}" for name, value in last.items()), flush=True)
        over = now - began > 60.0 * options.minutes
        if over or ready(seen) or now - saved > SAVE:
            keep(sim, seen, path)
            saved = now
        if over and not ready(seen):
            print(f"stopped at {sim.time:.2f} s; the same command goes on from there")
            return
    show({"at rest": [row_of(options.count, seen)]})


if __name__ == "__main__":
    main()

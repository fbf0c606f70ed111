"""Heaps against friction, a ball that rolls to a stop, and the same silo and drum by forces and by hard contacts.

    python validation/heaps.py              # a quarter of an hour of one core; goes on where it was stopped
    python validation/heaps.py --only drum  # or repose, rolling, silo

Each simulation that has ended is kept in build/heaps.json; tables and docs/images/heaps.png are made from that file.

repose    A tube full of spheres is lifted slowly from a floor of their material. Zhou et al. (2001): the slope of the heap grows with sliding and with rolling friction.
rolling   A ball that rolls on a plane against the couple mu_r R N slows down by 5/7 mu_r g; against the couple mu_r R N w, w its spin, as exp(-5/7 mu_r g t / R).
silo      Spheres leave a cylinder through a round hole of eight diameters.
drum      A drum with spheres turns steadily: the mean slope of the bed, and the power that the drum gives.
"""

import argparse
import math

import numpy as np
from bulk import DOCS, GRAVITY, RADIUS, ROOT, column, mass_above, mean_diameter
from run import keep, kept_of

import clast
from clast.scenes.walls import lathe

STORE = ROOT / "build" / "heaps.json"
SLIDING, ROLLING = (0.1, 0.2, 0.4, 0.8), (0.0, 0.05, 0.2)
# By hard contacts what slides is lifted, and impacts are told, step by step: the bed of the drum lies 9 % more steeply at dt="auto", 1.2e-3 s, than by forces.
FINE = 3e-4  # [s]
METHODS = {
    "forces": clast.DEM,
    "hard": clast.Complementarity,
    "coulomb": lambda: clast.Complementarity(coulomb=True),
}


def grain(friction=0.5, rolling=0.0):
    """The material of spheres and walls."""
    return clast.Material(
        density=2500.0, young=2e6, poisson=0.3, friction=friction, restitution=0.5, rolling_friction=rolling
    )


def repose(friction, rolling):
    """Slope of the heap [degrees] that is left where a tube full of spheres is lifted slowly from the floor."""
    d, stone = mean_diameter(), grain(friction, rolling)
    wide, speed = 7.0 * d, 0.04
    place, sizes = column(wide, 2.0 * wide, 5)
    scene = clast.Scene(gravity=(0.0, 0.0, -GRAVITY))
    scene.add(clast.Plane(), material=stone)
    high, settle = 3.0 * wide, 0.15
    tube = {"position": (0.0, 0.0, 0.5 * high), "material": grain(0.0)}
    scene.add(clast.Cylinder(wide, high), drive=lambda t: ((0.0, 0.0, speed * (t > settle)), (0.0, 0.0, 0.0)), **tube)
    scene.add(clast.Sphere(RADIUS), position=place, scale=sizes, material=stone)
    sim = clast.Simulation(scene)
    sim.run(until=settle + 2.4 * wide / speed + 0.3, progress=False)
    bodies = sim.bodies
    place = bodies.position[np.isfinite(bodies.mass)]
    fast = np.linalg.norm(bodies.velocity[np.isfinite(bodies.mass)], axis=1) > 0.02
    try:
        angle = math.degrees(clast.measure.angle_of_repose(sim, part=(0.15, 0.85)))
    except ValueError:  # a layer of spheres that rolled away is no heap
        angle = None
    told = {"friction": friction, "rolling": rolling, "spheres": len(place), "fast": float(fast.mean())}
    return told | {"angle": angle, "high": float(np.quantile(place[:, 2], 0.999)) / mean_diameter() + 0.5}


def rolling(name, kind):
    """Speed of a rolling ball after half the time in which it would stop, or fall to 1/e, over what is known."""
    # A viscous couple grows with the spin, and must not outdo friction: then the ball slides.
    strength, speed = 5e-4 if kind == "viscous" else 0.02, 0.3
    stone = grain(0.5, strength)
    scene = clast.Scene(gravity=(0.0, 0.0, -GRAVITY))
    scene.add(clast.Plane(), material=stone)
    deep = 0.0
    if name == "forces":  # it lies in the plane as deep as its weight presses it
        modulus, weight = (
            clast.scene.materials.effective_young(2e6, 0.3, 2e6, 0.3),
            2500.0 * 4.18879 * RADIUS**3 * GRAVITY,
        )
        deep = (0.75 * weight / modulus / math.sqrt(RADIUS)) ** (2.0 / 3.0)
    spin = (0.0, speed / (RADIUS - 0.5 * deep), 0.0)
    scene.add(clast.Sphere(RADIUS), position=(0, 0, RADIUS - deep), velocity=(speed, 0, 0), spin=spin, material=stone)
    sim = clast.Simulation(scene, METHODS[name](**({"rolling": kind} if name == "forces" else {})))
    slows = 5.0 / 7.0 * strength * GRAVITY
    rate = slows / RADIUS if kind == "viscous" else slows / speed
    sim.run(until=(1.0 if kind == "viscous" else 0.5) / rate, progress=False)
    known = speed * (math.exp(-rate * sim.time) if kind == "viscous" else 1.0 - rate * sim.time)
    return {"method": name, "kind": kind, "speed": float(sim.bodies.velocity[1, 0]), "known": known}


def silo(name):
    """Discharge of a small silo [kg/s]."""
    d, hole, wide = mean_diameter(), 4.0 * mean_diameter(), 9.0 * mean_diameter()
    scene, stone = clast.Scene(gravity=(0.0, 0.0, -GRAVITY)), grain()
    scene.add(clast.Cylinder(wide), material=stone)
    scene.add(lathe([(hole, 0.0), (1.05 * wide, 0.0)], segments=48), material=stone)
    place, sizes = column(wide, 2.4 * wide, 8)
    scene.add(clast.Sphere(RADIUS), position=place, scale=sizes, material=stone)
    scene.outlet(box=((-1.0, -1.0, -1.0), (1.0, 1.0, -2.0 * d)))
    sim, times, masses = clast.Simulation(scene, METHODS[name](), dt="auto" if name == "forces" else FINE), [], []
    while sim.time < 0.9:
        sim.run(until=sim.time + 0.01, progress=False)
        if sim.time > 0.25:
            times.append(sim.time)
            masses.append(mass_above(sim, 0.0))
    return {"method": name, "spheres": len(place), "rate": -float(np.polyfit(times, masses, 1)[0]), "dt": sim.dt}


def drum(name):
    """Slope of the bed [degrees] and power of the drum [W], means over three seconds of two drums."""
    both = [turning(name, seed) for seed in (4, 5)]
    return {
        "method": name,
        **both[0],
        **{what: float(np.mean([one[what] for one in both])) for what in ("angle", "power")},
    }


def turning(name, seed):
    """One drum."""
    d, stone = mean_diameter(), grain(0.5)
    wide, long, speed = 8.0 * d, 6.0 * d, 4.0
    scene = clast.Scene(gravity=(0.0, 0.0, -GRAVITY))
    driven = {"material": stone, "spin": (0.0, speed, 0.0), "motion": "driven"}
    wall = scene.add(clast.Cylinder(wide, axis=(0, 1, 0)), **driven)[0]
    ends = [
        scene.add(clast.Plane(normal=(0, -side, 0)), position=(0, side * 0.5 * long, 0), **driven)[0]
        for side in (1.0, -1.0)
    ]
    box = ((-0.7 * wide, -0.5 * long, -0.7 * wide), (0.7 * wide, 0.5 * long, 0.4 * wide))
    scene.fill(clast.Sphere(RADIUS), fraction=0.33, box=box, scale=(0.85, 1.0), material=stone, seed=seed)
    sim, angles, powers = clast.Simulation(scene, METHODS[name](), dt="auto" if name == "forces" else FINE), [], []
    while sim.time < 4.0:
        sim.run(until=sim.time + 0.004, progress=False)
        if sim.time > 1.0:
            angles.append(math.degrees(clast.measure.angle_of_repose(sim, axis=(0, 1, 0), part=(0.2, 0.8))))
            powers.append(sum(clast.measure.wall_power(sim, number) for number in (wall, *ends)))
    free = int(np.isfinite(sim.bodies.mass).sum())
    return {
        "spheres": free,
        "angle": float(np.mean(angles)),
        "power": float(np.mean(powers)),
        "dt": sim.dt,
    }


CASES = {
    "rolling": (rolling, [("forces", "spring"), ("forces", "constant"), ("forces", "viscous"), ("hard", "constant")]),
    "silo": (silo, [(name,) for name in METHODS]),
    "drum": (drum, [(name,) for name in METHODS]),
    "repose": (repose, [(mu, roll) for mu in SLIDING for roll in ROLLING]),
}


def tables(kept):
    """The tables of docs/validation.md, {name: lines}; none of what has not been run."""

    def rows(name):
        return [kept[key] for key in (key_of(name, given) for given in CASES[name][1]) if key in kept]

    told = {}
    if heaps := rows("repose"):
        lines = told["repose"] = [
            f"| slope of a heap of {heaps[0]['spheres']:,} spheres [degrees] | {' | '.join(f'mu_r {r:g}' for r in ROLLING)} |",
            "|---" + "|---:" * len(ROLLING) + "|",
        ]
        for mu in SLIDING:
            found = {
                row["rolling"]: "none" if row["angle"] is None else f"{row['angle']:.1f}"
                for row in heaps
                if row["friction"] == mu
            }
            lines.append(f"| mu {mu:g} | " + " | ".join(found.get(r, "") for r in ROLLING) + " |")
    if balls := rows("rolling"):
        lines = told["rolling"] = ["| a rolling ball | speed [m/s] | known | off by |", "|---|---:|---:|---:|"]
        for row in balls:
            off = row["speed"] / row["known"] - 1.0
            lines.append(f"| {row['method']}, {row['kind']} | {row['speed']:.6f} | {row['known']:.6f} | {off:+.1e} |")
    both = []
    for name, what, words in (
        ("silo", "rate", "silo, discharge [kg/s]"),
        ("drum", "angle", "drum, slope of the bed [degrees]"),
        ("drum", "power", "drum, power [W]"),
    ):
        found = {row["method"]: row for row in rows(name)}
        if {"forces", "hard"} <= {*found}:
            one = found["forces"][what]
            others = [found[method][what] if method in found else None for method in ("hard", "coulomb")]
            cells = " | ".join(f"{x:.4g} ({100 * (x / one - 1):+.1f} %)" if x else "" for x in others)
            both.append(f"| {words}, {found['forces']['spheres']:,} spheres | {one:.4g} | {cells} |")
    if both:
        head = "| the same scene | forces | hard contacts | hard contacts, `coulomb=True` |"
        told["both methods"] = [head, "|---|---:|---:|---:|", *both]
    return told


def draw(kept):
    """The picture: slope of heaps against friction."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(4.6, 3.6), layout="constrained")
    for roll in ROLLING:
        heaps = [(mu, kept.get(key_of("repose", (mu, roll)), {}).get("angle")) for mu in SLIDING]
        found = [(mu, angle) for mu, angle in heaps if angle is not None]
        axes.plot(*np.array(found).reshape(-1, 2).T, "o-", label=f"rolling friction {roll:g}")
    axes.set(xlabel="sliding friction", ylabel="slope [degrees]", title="heaps", ylim=(0, None))
    axes.legend()
    figure.savefig(DOCS / "images" / "heaps.png", dpi=110)
    pyplot.close(figure)


def key_of(name, given):
    """Under which a simulation is kept."""
    return " ".join(map(str, (name, *given)))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=list(CASES), action="append", help="which cases; all unless said")
    parser.add_argument("--again", action="store_true", help="also what has been run")
    given = parser.parse_args()
    kept = kept_of(STORE, "heaps")
    for name in given.only or CASES:
        run, values = CASES[name]
        for value in values:
            key = key_of(name, value)
            if key in kept and not given.again:
                continue
            print(f"{key}: running", flush=True)
            kept[key] = run(*value)
            print(kept[key], flush=True)
            keep(STORE, "heaps", kept)
    page = DOCS / "validation.md"
    text = page.read_text(encoding="utf-8")
    for name, lines in tables(kept).items():
        print("\n".join(lines), "\n")
        begin, end = f"<!-- heaps {name} -->", f"<!-- /heaps {name} -->"
        head, rest = text.split(begin)
        text = head + begin + "\n" + "\n".join(lines) + "\n" + end + rest.split(end)[1]
    page.write_text(text, encoding="utf-8")
    if any(key.startswith("repose") for key in kept):
        draw(kept)


if __name__ == "__main__":
    main()

"""Many spheres beside laws that are known of them: discharge, a silo's walls, columns that collapse.

    python validation/bulk.py                      # half an hour of one core; goes on where it was stopped
    python validation/bulk.py --only janssen       # or beverloo, collapse
    python validation/bulk.py --quick              # small ones; writes nothing into docs

Each simulation that has ended is kept in build/bulk.json; tables and docs/images/bulk.png are made from that file.

beverloo   Spheres flow out of a flat-bottomed silo through a round hole of 6 to 20 diameters. Beverloo, Leniger and van de Velde (1961):
           W = C rho sqrt(g) (D - k d)^(5/2), rho the bulk density of what has been poured in, at rest. Mankoc et al. (2007), from glass beads and
           simulations over a far wider range of holes: W ~ (1 - exp(-0.051 (D/d - 1)) / 2) (D/d - 1)^(5/2), so that the k of a fit depends on the holes.
janssen    A column in a cylinder whose floor sinks a little, so that friction acts upwards all along the wall. Janssen (1895): with K the ratio of
           the horizontal to the vertical stress the latter is rho g l (1 - exp(-z / l)), l = R / (2 mu K), z below the surface.
collapse   A round column without its wall. Lube et al. (2004): it runs out to R (1 + 1.24 a) for heights H = a R with a below 1.7, and to
           R (1 + 1.6 sqrt(a)) above, whatever the grains are.
"""

import argparse
import math
from pathlib import Path

import numpy as np
from run import keep, kept_of

import clast
from clast.scenes.walls import lathe, round_layers

ROOT = Path(__file__).resolve().parents[1]
STORE, DOCS = ROOT / "build" / "bulk.json", ROOT / "docs"
RADIUS, GRAVITY = 0.003, 9.81
SIZES = (0.85, 1.0)  # of the spheres, as parts of the largest
GRAIN = clast.Material(density=2500.0, young=5e6, poisson=0.3, friction=0.5, restitution=0.5)
# At the pressure in these silos spheres overlap by 1 % of their size.
FLOWING = clast.Material(density=2500.0, young=2e6, poisson=0.3, friction=0.5, restitution=0.5)
# Spheres on a plane roll without end; grains of sand do not. With 0.02 and 0.1 a column as high as its radius runs out to 1.42 and 0.92 radii: 0.05 lies between,
# and the other columns tell whether the law holds.
SAND = clast.Material(density=2500.0, young=5e6, poisson=0.3, friction=0.5, restitution=0.5, rolling_friction=0.05)
ORIFICES, ASPECTS = (6, 8, 10, 13, 16, 20), (0.5, 1.0, 1.5, 2.5)
QUICK = {"beverloo": (6, 8, 10), "collapse": (0.5, 2.5)}


def mean_diameter():
    """Mean of the diameters [m]."""
    return 2.0 * RADIUS * 0.5 * (SIZES[0] + SIZES[1])


def column(wide, high, seed):
    """Places (n,3) [m] and size factors (n,) of spheres that fill a cylinder of radius `wide` up to `high` [m]."""
    pitch = 2.002 * RADIUS
    count = int(math.pi * wide**2 * high * math.sqrt(2.0) / pitch**3)
    place = round_layers(count, pitch, wide - 1.01 * RADIUS, low=1.01 * RADIUS)
    return place, np.random.default_rng(seed).uniform(*SIZES, len(place))


def mass_above(sim, height):
    """Mass [kg] of the spheres with their centre above `height` [m]."""
    bodies = sim.bodies
    return float(bodies.mass[np.isfinite(bodies.mass) & (bodies.position[:, 2] > height)].sum())


def bulk_density(sim, wide, low, high):
    """Mass of all spheres with their centres in a cylinder of radius `wide`, between two heights [m], over its volume [kg/m^3]."""
    bodies = sim.bodies
    x, y, z = bodies.position.T
    inside = np.isfinite(bodies.mass) & (np.hypot(x, y) < wide) & (z > low) & (z < high)
    return float(bodies.mass[inside].sum() / (math.pi * wide**2 * (high - low)))


def filled_silo(wide, high, seed):
    """A silo that spheres have fallen into: places, velocities, size factors, bulk density [kg/m^3] at rest, mean overlap over the mean diameter.

    They start a little apart and in motion, for what falls out of a closest packing stays half in order, and has a density of its own: 1585 to 1644 kg/m^3 where
    spheres that have lost their order lie at 1515.
    """
    rng, start = np.random.default_rng(seed), 1.08
    count = len(column(wide, high, seed)[0])
    place = round_layers(count, start * 2.002 * RADIUS, wide - 1.05 * RADIUS, low=1.05 * RADIUS)
    sizes, velocity = rng.uniform(*SIZES, count), rng.normal(scale=0.3, size=place.shape)
    scene = clast.Scene(gravity=(0.0, 0.0, -GRAVITY))
    scene.add(clast.Cylinder(wide), material=FLOWING)
    scene.add(clast.Plane(), material=FLOWING)
    scene.add(clast.Sphere(RADIUS), position=place, velocity=velocity, scale=sizes, material=FLOWING)
    sim = clast.Simulation(scene, clast.DEM(law="hertz"))
    # The top falls by about a quarter of the height.
    sim.run(until=0.12 + 1.3 * math.sqrt(0.5 * high / GRAVITY), progress=False)
    bodies, gap = sim.bodies, sim.contacts().gap
    order = np.argsort(bodies.number)
    rows = order[np.isfinite(bodies.mass[order])]
    rest = bulk_density(sim, 0.7 * wide, 0.3 * wide, 1.2 * wide)
    return bodies.position[rows], bodies.velocity[rows], sizes, rest, float(-gap[gap < 0.0].mean() / mean_diameter())


def beverloo(orifice, quick):
    """Discharge through a hole of so many mean diameters."""
    d = mean_diameter()
    # The wall stands 7 diameters from the rim of the hole, and the silo is higher than wide: farther away neither is felt.
    hole, wide = 0.5 * orifice * d, 0.5 * (orifice + 14) * d
    place, velocity, sizes, rest, overlap = filled_silo(wide, 2.4 * wide, orifice)
    scene = clast.Scene(gravity=(0.0, 0.0, -GRAVITY))
    scene.add(clast.Cylinder(wide), material=FLOWING)
    scene.add(lathe([(hole, 0.0), (1.05 * wide, 0.0)], segments=64), material=FLOWING)
    scene.add(clast.Sphere(RADIUS), position=place, velocity=velocity, scale=sizes, material=FLOWING)
    far = 10.0 * wide
    scene.outlet(box=((-far, -far, -far), (far, far, -2.0 * d)))
    sim = clast.Simulation(scene, clast.DEM(law="hertz"))
    # It takes a few times a fall through the hole until the flow is steady; the silo is never less than half full.
    begin = 2.5 * math.sqrt(2.0 * hole / GRAVITY)
    times, masses, densities = [], [], []
    whole = mass_above(sim, 0.0)
    # Long enough for some 1,500 spheres: fewer tell the flow through a small hole to no better than some per cent.
    expected = 0.55 * math.sqrt(GRAVITY / d) * (orifice - 1.4) ** 2.5
    until = begin + (0.15 if quick else max(0.3, 1500.0 / expected))
    while sim.time < until:
        sim.run(until=sim.time + 0.005, progress=False)
        times.append(sim.time)
        masses.append(mass_above(sim, 0.0))
        densities.append(bulk_density(sim, 0.6 * wide, wide, 1.4 * wide))
        if masses[-1] < 0.5 * whole:
            break
    steady = np.array(times) > begin
    slope = np.polyfit(np.array(times)[steady], np.array(masses)[steady], 1)
    return {
        "orifice": orifice,
        "spheres": len(place),
        "rate": -float(slope[0]),
        "bulk": rest,
        "moving": float(np.mean(np.array(densities)[steady])),
        "overlap": overlap,
        "seconds": times[-1] - begin,
        "left": masses[-1] / whole,
        "times": times,
        "masses": masses,
    }


def janssen(_, quick):
    """Stress in a column whose floor has sunk by two thirds of a diameter."""
    d, friction = mean_diameter(), GRAIN.friction
    wide = 8.0 * d
    high = (4.0 if quick else 7.0) * wide
    scene = clast.Scene(gravity=(0.0, 0.0, -GRAVITY))
    wall = scene.add(clast.Cylinder(wide), material=GRAIN)
    settle, speed = 0.3, 0.02  # [s], [m/s]
    floor = scene.add(
        clast.Plane(normal=(0.0, 0.0, 1.0)),
        material=GRAIN,
        drive=lambda t: ((0.0, 0.0, -speed if t > settle else 0.0), (0.0, 0.0, 0.0)),
    )
    place, sizes = column(wide, high, 1)
    scene.add(clast.Sphere(RADIUS), position=place, scale=sizes, material=GRAIN)
    sim = clast.Simulation(scene, clast.DEM(law="hertz"))
    sim.run(until=settle + 0.15, progress=False)
    # Means over the time while the floor goes on sinking: forces rattle a little.
    heights, normals, shears, looks, load = [], [], [], 10, 0.0
    for _look in range(looks):
        sim.run(until=sim.time + 0.005, progress=False)
        contacts = sim.contacts()
        at_wall, at_floor = (contacts.pair == int(wall[0])).any(1), (contacts.pair == int(floor[0])).any(1)
        # The wall has the lower number: the force is that on the sphere.
        force, point = contacts.force[at_wall], contacts.point[at_wall]
        sign = np.where(contacts.pair[at_wall, 1] == int(wall[0]), -1.0, 1.0)[:, None]
        force = sign * force
        inward = -point[:, :2] / np.linalg.norm(point[:, :2], axis=1)[:, None]
        heights.append(point[:, 2])
        normals.append((force[:, :2] * inward).sum(1) / looks)
        shears.append(force[:, 2] / looks)
        load += abs(contacts.force[at_floor, 2].sum()) / looks
    height, normal, shear = np.concatenate(heights), np.concatenate(normals), np.concatenate(shears)
    bodies = sim.bodies
    free = np.isfinite(bodies.mass)
    z, mass = bodies.position[free, 2], bodies.mass[free]
    low, top = float(z.min()) - RADIUS, float(np.quantile(z, 0.995))
    edges = np.linspace(low, top, 19)
    area, middle = math.pi * wide**2, 0.5 * (edges[1:] + edges[:-1])
    above = np.array([(GRAVITY * mass[z > m].sum() - shear[height > m].sum()) / area for m in middle])
    ring = 2.0 * math.pi * wide * np.diff(edges)
    sideways, upwards = (
        np.array([part[(height > a) & (height <= b)].sum() for a, b in zip(edges, edges[1:])]) / ring
        for part in (normal, shear)
    )
    rho = float(mass.sum() / (area * (top - low)))
    depth = top - middle
    inside = (depth > 2.0 * d) & (middle - low > 2.0 * wide / 8.0)
    ratio, mobilised = sideways[inside] / above[inside], upwards[inside] / sideways[inside]
    # The length by a fit of the profile, and from what the wall tells of friction and of the ratio of stresses.
    tries = np.geomspace(0.2 * wide, 20.0 * wide, 4000)
    misses = [np.sum((rho * GRAVITY * s * (1.0 - np.exp(-depth / s)) - above)[inside] ** 2) for s in tries]
    length = float(tries[int(np.argmin(misses))])
    fit = rho * GRAVITY * length * (1.0 - np.exp(-depth / length))
    part = np.sum((above - fit)[inside] ** 2) / np.sum((above[inside] - above[inside].mean()) ** 2)
    share = float(upwards[inside].sum() / sideways[inside].sum())
    return {
        "spheres": len(place),
        "radius": wide / d,
        "height": (top - low) / wide,
        "carried": 1.0 - load / (GRAVITY * float(mass.sum())),
        "friction": friction,
        "mobilised": share,
        "ratio": float(np.average(ratio, weights=above[inside])),
        "length": length / wide,
        "from wall": wide / (2.0 * share * float(np.average(ratio, weights=above[inside]))) / wide,
        "unexplained": float(part),
        "depth": (depth / wide).tolist(),
        "stress": (above / (rho * GRAVITY * wide)).tolist(),
        "mobilised by depth": mobilised.tolist(),
    }


def settled_column(wide, high):
    """A column at rest in a cylinder: places, size factors, height of its top [m]."""
    scene = clast.Scene(gravity=(0.0, 0.0, -GRAVITY))
    scene.add(clast.Plane(normal=(0.0, 0.0, 1.0)), material=SAND)
    scene.add(clast.Cylinder(wide), material=clast.Material(density=2500.0, young=5e6, friction=0.0, restitution=0.3))
    place, sizes = column(wide, high, 3)
    scene.add(clast.Sphere(RADIUS), position=place, scale=sizes, material=SAND)
    sim = clast.Simulation(scene, clast.DEM(law="hertz"))
    sim.run(until=0.25, progress=False)
    bodies = sim.bodies
    order = np.argsort(bodies.number)
    rows = order[np.isfinite(bodies.mass[order])]
    place = bodies.position[rows]
    return place, sizes, float(np.quantile(place[:, 2], 0.99)) + RADIUS


def collapse(aspect, quick):
    """How far a column of this height over its radius runs out."""
    d = mean_diameter()
    # None is lower than 12 diameters: one of 6.6 runs out to 0.50 radii, what is left of it ends in single spheres, where one twice as wide and high goes to 0.67.
    wide = (8.0 if quick else 12.0 * max(1.0, 1.0 / aspect)) * d
    place, sizes, high = settled_column(wide, aspect * wide)
    scene = clast.Scene(gravity=(0.0, 0.0, -GRAVITY))
    scene.add(clast.Plane(normal=(0.0, 0.0, 1.0)), material=SAND)
    scene.add(clast.Sphere(RADIUS), position=place, scale=sizes, material=SAND)
    sim = clast.Simulation(scene, clast.DEM(law="hertz"))
    sim.run(until=2.0 * math.sqrt(high / GRAVITY) + 3.0 * math.sqrt(wide / GRAVITY), progress=False)
    last, reached = 0.0, run_out(sim, d)
    while reached - last > 0.2 * d and sim.time < 3.0:
        sim.run(until=sim.time + 0.1, progress=False)
        last, reached = reached, run_out(sim, d)
    return {
        "aspect": high / wide,
        "spheres": len(place),
        "run out": reached / wide - 1.0,
        "seconds": sim.time,
        "fast": float((np.linalg.norm(sim.bodies.velocity, axis=1) > 0.05).mean()),
    }


def run_out(sim, d):
    """Radius [m] up to which rings a diameter wide are covered by spheres by half, seen from above."""
    bodies = sim.bodies
    free = np.isfinite(bodies.mass)
    far = np.hypot(*bodies.position[free, :2].T)
    shadow = math.pi * (RADIUS * bodies.scale[free]) ** 2
    edges = np.arange(0.0, far.max() + 2.0 * d, d)
    cover = np.histogram(far, edges, weights=shadow)[0] / (math.pi * np.diff(edges**2))
    return float(edges[1 + np.nonzero(cover > 0.5)[0].max()])


CASES = {"beverloo": (beverloo, ORIFICES), "janssen": (janssen, (0,)), "collapse": (collapse, ASPECTS)}


def fit_beverloo(rows):
    """C, k and the exponent: the first two with 5/2 given, the last by a fit of all three."""
    d = mean_diameter()
    hole = np.array([row["orifice"] for row in rows]) * d
    rate = np.array([row["rate"] / row["bulk"] / math.sqrt(GRAVITY) for row in rows])
    slope, offset = np.polyfit(hole, rate**0.4, 1)
    best = min(
        (float(np.std(np.log(rate) - n * np.log(hole - k * d))), n, k)
        for n in np.arange(2.0, 3.001, 0.01)
        for k in np.arange(0.0, 3.0, 0.02)
    )
    return {"C": float(slope**2.5), "k": float(-offset / slope / d), "exponent": best[1], "k of all three": best[2]}


def mankoc(hole):
    """Discharge as Mankoc et al. (2007) found it, but for a constant; hole (n,) in diameters."""
    return (1.0 - 0.5 * np.exp(-0.051 * (hole - 1.0))) * (hole - 1.0) ** 2.5


def k_of_mankoc(hole):
    """The k of Beverloo's law that is fitted to Mankoc's at these holes (n,) in diameters."""
    slope, offset = np.polyfit(hole, mankoc(hole) ** 0.4, 1)
    return float(-offset / slope)


def lube(aspect):
    """What Lube et al. (2004) found."""
    return 1.24 * aspect if aspect < 1.7 else 1.6 * math.sqrt(aspect)


def tables(kept):
    """The tables of docs/validation.md by the name of their case, of those that have been run."""
    told = {}
    if flows := [kept[f"beverloo {n}"] for n in ORIFICES if f"beverloo {n}" in kept]:
        lines = told["beverloo"] = [
            "| hole [d] | spheres | flow [kg/s] | bulk density at rest [kg/m3] | W / (rho sqrt(g d^5)) | over Mankoc's law, one constant for all |",
            "|---:|---:|---:|---:|---:|---:|",
        ]
        holes = np.array([row["orifice"] for row in flows], float)
        scaled = np.array([row["rate"] / row["bulk"] for row in flows]) / math.sqrt(GRAVITY * mean_diameter() ** 5)
        beside = scaled / mankoc(holes)
        for row, flow, over in zip(flows, scaled, beside / beside.mean(), strict=True):
            lines.append(
                f"| {row['orifice']} | {row['spheres']:,} | {row['rate']:.3f} | {row['bulk']:.0f} | {flow:.1f} | {over:.2f} |"
            )
        if len(flows) > 3:
            found = fit_beverloo(flows)
            lines += ["", "| Beverloo's law | ours | known |", "|---|---:|---|"]
            lines.append(f"| exponent, by a fit of all three | {found['exponent']:.2f} | 2.5 |")
            lines.append(f"| C, with the exponent 5/2 | {found['C']:.3f} | 0.5 to 0.6 |")
            lines.append(
                f"| k, likewise | {found['k']:.2f} | 1.2 to 1.7; {k_of_mankoc(holes):.2f} by this fit of Mankoc's law at these holes |"
            )
    if row := kept.get("janssen 0"):
        lines = told["janssen"] = ["| Janssen's silo | |", "|---|---:|"]
        lines.append(
            f"| spheres; radius of the cylinder; height over that | {row['spheres']:,}; {row['radius']:.0f} d; {row['height']:.1f} |"
        )
        lines.append(f"| part of the weight that the wall carries | {row['carried']:.3f} |")
        lines.append(f"| friction at the wall, mobilised over given | {row['mobilised'] / row['friction']:.3f} |")
        lines.append(f"| K, horizontal over vertical stress at the wall | {row['ratio']:.3f} |")
        lines.append(f"| length over radius, by a fit of the stress | {row['length']:.3f} |")
        lines.append(f"| the same, R / (2 mu K), from the two above | {row['from wall']:.3f} |")
        lines.append(f"| variance of the stress that the fit leaves | {100.0 * row['unexplained']:.2f} % |")
    if falls := [kept[f"collapse {a}"] for a in ASPECTS if f"collapse {a}" in kept]:
        lines = told["collapse"] = [
            "| height over radius | spheres | run-out over radius | Lube et al. | ratio |",
            "|---:|---:|---:|---:|---:|",
        ]
        for row in falls:
            known = lube(row["aspect"])
            lines.append(
                f"| {row['aspect']:.2f} | {row['spheres']:,} | {row['run out']:.2f} | {known:.2f} | {row['run out'] / known:.2f} |"
            )
    return told


def draw(kept):
    """The picture: flow against the hole, stress against depth, run-out against height."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot

    there = [name for name in CASES if any(key.startswith(name) for key in kept)]
    figure, drawn = pyplot.subplots(1, len(there), figsize=(4.2 * len(there), 3.8), layout="constrained", squeeze=False)
    axes = dict(zip(there, drawn[0]))
    d = mean_diameter()
    if flows := [kept[f"beverloo {n}"] for n in ORIFICES if f"beverloo {n}" in kept]:
        hole = np.array([row["orifice"] for row in flows], float)
        rate = np.array([row["rate"] / row["bulk"] / math.sqrt(GRAVITY * d**5) for row in flows])
        axes["beverloo"].plot(hole, rate**0.4, "o", label="clast")
        if len(flows) > 3:
            found, x = fit_beverloo(flows), np.linspace(0.0, hole.max(), 50)
            axes["beverloo"].plot(x, found["C"] ** 0.4 * (x - found["k"]), label="Beverloo, C and k fitted")
        axes["beverloo"].set(
            xlabel="hole [d]", ylabel="(W / rho sqrt(g d^5))^0.4", title="discharge", ylim=(0, None), xlim=(0, None)
        )
        axes["beverloo"].legend()
    if row := kept.get("janssen 0"):
        depth, stress = np.array(row["depth"]), np.array(row["stress"])
        x = np.linspace(0.0, depth.max(), 100)
        axes["janssen"].plot(depth, stress, "o", label="clast")
        axes["janssen"].plot(x, row["length"] * (1.0 - np.exp(-x / row["length"])), label="Janssen, length fitted")
        axes["janssen"].plot(x, x, ":", color="0.6", label="without wall friction")
        axes["janssen"].set(
            xlabel="depth [R]", ylabel="vertical stress [rho g R]", title="silo", ylim=(0, 1.4 * stress.max())
        )
        axes["janssen"].legend()
    if falls := [kept[f"collapse {a}"] for a in ASPECTS if f"collapse {a}" in kept]:
        a = np.linspace(0.3, 3.0, 200)
        axes["collapse"].plot([row["aspect"] for row in falls], [row["run out"] for row in falls], "o", label="clast")
        axes["collapse"].plot(a, [lube(x) for x in a], label="Lube et al. 2004")
        axes["collapse"].set(xlabel="height [R]", ylabel="run-out [R]", title="collapse of columns")
        axes["collapse"].legend()
    figure.savefig(DOCS / "images" / "bulk.png", dpi=110)
    pyplot.close(figure)


def write(kept):
    """Tables and picture into docs; tables of cases that have not been run here stay as they are."""
    page = DOCS / "validation.md"
    text = page.read_text(encoding="utf-8")
    told = tables(kept)
    for name, lines in told.items():
        begin, end = f"<!-- bulk {name} -->", f"<!-- /bulk {name} -->"
        head, rest = text.split(begin)
        text = head + begin + "\n" + "\n".join(lines) + "\n" + end + rest.split(end)[1]
    page.write_text(text, encoding="utf-8")
    if len(told) == len(CASES):
        draw(kept)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=list(CASES), action="append", help="which cases; all unless said")
    parser.add_argument("--again", action="store_true", help="also what has been run")
    parser.add_argument("--quick", action="store_true", help="few and small, nothing written into docs")
    given = parser.parse_args()
    store = STORE.with_name("bulk-quick.json") if given.quick else STORE
    kept = kept_of(store, "bulk")
    for name in given.only or CASES:
        run, values = CASES[name]
        for value in QUICK.get(name, values) if given.quick else values:
            key = f"{name} {value}"
            if key in kept and not given.again:
                continue
            print(f"{key}: running", flush=True)
            kept[key] = run(value, given.quick)
            print({k: v for k, v in kept[key].items() if not isinstance(v, list)}, flush=True)
            keep(store, "bulk", kept)
    print("\n\n".join("\n".join(lines) for lines in tables(kept).values()))
    if not given.quick:
        write(kept)


if __name__ == "__main__":
    main()

"""Hard contacts in scenes that take longer than tests: piles, stacks, an arch, a silo and a drum. Prints what it measures.

python validation/complementarity.py             # all but "million"
python validation/complementarity.py tower silo  # some
"""

import math
import sys
import time

import numpy as np

import clast
from clast import measure
from clast.dvi.solvers import SOLVERS


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


def stand(name, scene, seconds, edge, dt=5e-3, **options):
    """Let a scene stand, and print by how much anything moved, how fast it is in the end, and the deepest overlap, as parts of an edge [m]."""
    sim = clast.Simulation(scene, clast.Complementarity(**options), dt=dt)
    start, free = sim.bodies.position.copy(), np.isfinite(sim.bodies.mass)
    sim.step(round(seconds / dt))
    moved = np.abs(sim.bodies.position - start)[free].max() / edge
    speed = np.linalg.norm(sim.bodies.velocity[free], axis=1).max()
    deep = sim.report().deepest / edge
    print(
        f"{name}, {seconds:g} s, {options}: moved by {moved:.1e} of the edge, {speed:.1e} m/s, overlap {deep:.1e}; {told(sim)}",
        flush=True,
    )


def on_a_floor(**material):
    """An empty scene with a floor, and its material."""
    stuff = clast.Material(**{"friction": 0.5, "restitution": 0.0} | material)
    scene = clast.Scene()
    scene.add(clast.Plane(), material=stuff)
    return scene, stuff


def row(**options):
    """Sixty balls side by side."""
    scene, stuff = on_a_floor()
    scene.add(clast.Sphere(0.05), position=[(0.1 * k, 0, 0.05) for k in range(60)], material=stuff)
    stand("row", scene, 2.0, 0.1, **options)


def heavy(ratio=1000.0):
    """A box of `ratio` times the mass on top of ten boxes."""
    scene, light = on_a_floor(density=1000.0)
    box, heavy = clast.Polyhedron.box(0.2, 0.2, 0.2), clast.Material(1000.0 * ratio, friction=0.5, restitution=0.0)
    for k in range(11):
        scene.add(box, position=(0, 0, 0.1 + 0.2 * k), material=heavy if k == 10 else light)
    stand(f"mass ratio {ratio:g}", scene, 4.0, 0.2)


def bricks(rows=20, columns=10):
    """A scene with a wall one brick thick, in stretcher bond, and its material."""
    scene, stuff = on_a_floor(density=2000.0, friction=0.6)
    for r in range(rows):
        places = [(k + 0.5, 0.2) for k in range(columns)]
        if r % 2:
            places = [(k + 1.0, 0.2) for k in range(columns - 1)] + [(0.25, 0.1), (columns - 0.25, 0.1)]
        for x, length in places:
            brick = clast.Polyhedron.box(length, 0.1, 0.1)
            scene.add(brick, position=(0.20002 * x, 0, 0.05 + 0.1 * r), material=stuff)
    return scene, stuff


def wall():
    """The wall stands."""
    stand("wall", bricks()[0], 4.0, 0.1)


def breach(speed=4.0):
    """A ball of half the mass of a brick flies into the wall near its top: what it hits is moved, the rows below stay."""
    scene, stuff = bricks()
    scene.add(clast.Sphere(0.06), position=(1.0, -0.3, 1.85), velocity=(0, speed, 0), material=stuff)
    sim = clast.Simulation(scene, clast.Complementarity(), dt=2e-3)
    start, energy = sim.bodies.position.copy(), [measure.energy(sim)["total"]]
    while sim.time < 2.0:
        sim.step()
        energy.append(measure.energy(sim)["total"])
    moved = np.linalg.norm(sim.bodies.position - start, axis=1)[1:-1]
    row = np.floor(start[1:-1, 2] / 0.1).astype(int)
    still = [int((moved[row == r] < 1e-3).sum()) for r in range(row.max() + 1)]
    gain = np.diff(energy).max() / 0.5 / sim.bodies.mass[-1] / speed**2
    print(f"breach: bricks of each row, from below, that moved by less than 1 mm: {still}", flush=True)
    print(f"        largest gain of energy in a step {gain:.1e} of the ball's; {told(sim)}", flush=True)


def cards(friction):
    """Two cards of 0.2 m that lean on each other 0.3 rad from upright: they stand if tan(0.3) / 2 = 0.15 is below the friction."""
    scene, stuff = on_a_floor(friction=friction)
    thick, high, angle = 0.005, 0.2, 0.3
    for side in (-1, 1):
        a = -side * angle
        turn = np.array([[math.cos(a), math.sin(a)], [-math.sin(a), math.cos(a)]])
        corners = np.array([(x, z) for x in (-thick / 2, thick / 2) for z in (-high / 2, high / 2)]) @ turn.T
        place = (-(corners[:, 0] * side).min() * side, 0, -corners[:, 1].min())
        pose = (math.cos(a / 2), 0, math.sin(a / 2), 0)
        scene.add(clast.Polyhedron.box(thick, 0.12, high), position=place, orientation=pose, material=stuff)
    stand(f"cards, friction {friction:g}", scene, 2.0, high)


def arch(thick, count=11):
    """Half a circle of radius 1 m of wedges: it stands if its thickness is above 0.1075 (Heyman 1969)."""
    scene, stuff = on_a_floor(friction=0.7)
    for k in range(count):
        ends = math.pi * k / count, math.pi * (k + 1) / count
        rim = [
            (r * math.cos(a), y, r * math.sin(a))
            for r in (1 - thick / 2, 1 + thick / 2)
            for a in ends
            for y in (-0.15, 0.15)
        ]
        wedge = clast.Polyhedron(rim)
        scene.add(wedge, position=wedge.origin, material=stuff)
    stand(f"arch, thickness {thick:g} of its radius", scene, 4.0, thick)


def chain(links=200, load=1000.0):
    """A chain of 200 links with ball joints that carries 1,000 times the weight of a link, pulled 0.1 rad aside and let go."""
    steel, high = clast.Material(density=7800), 0.1
    link = clast.Polyhedron.box(0.02, 0.02, 0.08)
    along = np.array([math.sin(0.1), 0.0, -math.cos(0.1)])
    pose = (math.cos(0.05), 0.0, -math.sin(0.05), 0.0)
    scene = clast.Scene()
    bodies = scene.add(
        link, position=high * (np.arange(links) + 0.5)[:, None] * along, orientation=pose, material=steel
    )
    edge = (load * link.volume) ** (1 / 3)
    last = scene.add(
        clast.Polyhedron.box(edge, edge, edge),
        position=(high * links + edge / 2) * along,
        orientation=pose,
        material=steel,
    )
    scene.join(bodies[0], None, "ball", at=(0, 0, 0))
    for k, (one, two) in enumerate(zip([*bodies[1:], last], bodies, strict=True)):
        scene.join(one, two, "ball", at=high * (k + 1) * along)
    sim = clast.Simulation(scene, clast.Complementarity(), dt=5e-3)
    energy = measure.energy(sim)["total"]
    while sim.time < 4.0:
        sim.step(20)
    lost = energy - measure.energy(sim)["total"]
    height = sim.bodies.mass.sum() * 9.81 * high * links * (1.0 - math.cos(0.1))
    opened = sim.report().solver["open"] / high
    print(
        f"chain of {links} links with a load of {load:g}: joints open by {opened:.1e} of a link, energy lost {lost / height:.1e} of the swing",
        flush=True,
    )


ROUND, FLAT = clast.Sphere(1.0), clast.Ellipsoid(1.0, 0.8, 0.6)
ROCK, CUBE = clast.Polyhedron.random(faces=14, seed=1), clast.Polyhedron.box(1.15, 1.15, 1.15)
MIXTURE = ROUND, FLAT, ROCK, CUBE


def pile(count, seconds=4.0, shapes=(ROUND,), side=None, walls=0.5, seed=1, radius=0.05, **options):
    """Bodies that fall into an open box; prints what is left of their motion half a second after half a second.

    shapes: of size factor 1, in turn, so many of each; side: bodies in a row along the floor; walls: their friction.
    """
    stuff, smooth = (clast.Material(density=2500, friction=mu, restitution=0.0) for mu in (0.5, walls))
    side = side or round((count / 1.25) ** (1 / 3))
    length = side * 2.2 * radius
    scene = clast.Scene()
    scene.add(clast.Plane(), material=stuff)
    for x, y in ((1, 0), (-1, 0), (0, 1), (0, -1)):
        place = (length * (x < 0), length * (y < 0), 0)
        scene.add(clast.Plane((x, y, 0)), position=place, material=smooth)
    high = 2.3 * radius * (count / side**2 + 3 * len(shapes))
    for k, shape in enumerate(shapes):
        low = high * k / len(shapes)
        box = ((0, 0, low), (length, length, low + high / len(shapes)))
        how = {"scale": radius, "material": stuff, "method": "lattice", "jitter": 0.05, "seed": seed + k}
        scene.fill(shape, count=count // len(shapes), box=box, **how)
    sim = clast.Simulation(scene, clast.Complementarity(**options), dt=5e-3)
    weight = 9.81 * sim.bodies.mass[5:].sum()
    what = f"pile of {count:,} {', '.join(type(shape).__name__ for shape in shapes)}"
    while sim.time < seconds - 0.5 * sim.dt:
        taken, energies, pairs = 0.0, [], []
        for k in range(100):
            began = time.process_time()
            sim.step()
            taken += (time.process_time() - began) / 100
            energies.append(measure.energy(sim)["total"])
            if k >= 80:  # of faces points come and go while bodies rest, so bodies that press on each other are counted
                contacts = sim.contacts()
                pairs.append(len(np.unique(contacts.pair[contacts.force.any(1)], axis=0)))
        floor = contacts.force[contacts.pair[:, 0] < 5].sum(0)[2] / weight
        speed = np.median(np.linalg.norm(sim.bodies.velocity[5:], axis=1)) / math.sqrt(9.81 * radius)
        asleep = f", {sim.report().solver['asleep']:,} asleep" if options.get("sleep") else ""
        print(
            f"{what}, {sim.time:.1f} s: speed {speed:.1e} sqrt(g r), {sim.touching():,} points, {pairs[-1]:,} pairs steady to "
            f"{np.ptp(pairs) / np.mean(pairs):.1e} in 0.1 s, overlap {sim.report().deepest / radius:.1e} r, "
            f"floor and walls bear {floor:.6f} of the weight, a step gained at most {max(np.diff(energies)) / (weight * radius):.1e} of weight times "
            f"radius, {1e3 * taken:.1f} ms of processor time a step{asleep}; {told(sim)}",
            flush=True,
        )
    return sim


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


def drum(friction=0.5, count=930, radius=0.15, ball=0.006, turns=10.0):
    """Speed of the balls at the wall of a drum against that of the wall; turns: a minute."""
    stuff = clast.Material(friction=friction, restitution=0.3)
    low, high = (-1.1 * radius, -0.035, -1.1 * radius), (1.1 * radius, 0.035, 1.1 * radius)
    scene = clast.Scene(world=(low, high), periodic=(False, True, False))
    omega, half = 2.0 * math.pi * turns / 60.0, math.sqrt(0.5)
    scene.add(clast.Cylinder(radius, 0.12), orientation=(half, half, 0, 0), spin=(0, omega, 0), material=stuff)
    within = 0.65 * radius
    box = ((-within, -0.035, -within), (within, 0.035, within))
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
    "pile": lambda: [pile(count) for count in (1_000, 8_000, 20_000)],
    "shapes": lambda: [pile(5_000, shapes=shapes) for shapes in ((FLAT,), (ROCK,), (CUBE,), MIXTURE)],
    "slices": lambda: [pile(2_752, side=8, walls=0.0, seed=seed) for seed in (1, 2, 3)],
    "million": lambda: pile(1_000_000),  # more than an hour of two cores
    "sleep": lambda: [pile(count, sleep=sleep) for count in (1_000, 5_000) for sleep in (None, "auto")],
    "tower": lambda: (tower(), tower(60.0, 0.02)),
    "column": lambda: column(),
    "row": lambda: [row(solver=solver) for solver in SOLVERS],
    "heavy": lambda: heavy(),
    "wall": lambda: wall(),
    "breach": lambda: breach(),
    "chain": lambda: chain(),
    "cards": lambda: (cards(0.6), cards(0.1)),
    "arch": lambda: (arch(0.15), arch(0.08)),
    "silo": lambda: [silo(mu) for mu in (0.0, 0.2, 0.5, 0.9)],
    "drum": lambda: (drum(), drum(0.2)),
}

if __name__ == "__main__":
    for name in sys.argv[1:] or [name for name in SCENES if name != "million"]:
        began = time.perf_counter()
        SCENES[name]()
        print(f"{name}: {time.perf_counter() - began:.0f} s")

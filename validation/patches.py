"""Friction of patches: what a box feels whose contact is several points, on a plane, on a mesh, on another box, in towers and piles.

    python validation/patches.py             # all cases, a table in Markdown
    python validation/patches.py tower       # one of them

Each case has an answer in closed form, or one of rest: nothing moves. The numbers stand in docs/validation.md.
"""

import argparse
import math

import numpy as np

import clast

EDGE, FRICTION, G = 0.1, 0.5, 9.81
WOOD = clast.Material(density=700.0, young=1e7, poisson=0.25, friction=FRICTION, restitution=0.2)


def sheet(cells, width=2.0):
    """A flat floor of 2 cells^2 triangles about the origin."""
    line = np.linspace(-0.5 * width, 0.5 * width, cells + 1)
    x, y = np.meshgrid(line, line, indexing="ij")
    vertices = np.stack([x, y, np.zeros_like(x)], axis=-1).reshape(-1, 3)
    corner = (np.arange(cells)[:, None] * (cells + 1) + np.arange(cells)).ravel()
    right, up = cells + 1, 1
    one = np.stack([corner, corner + right, corner + right + up], axis=1)
    two = np.stack([corner, corner + right + up, corner + up], axis=1)
    return clast.MeshWall(vertices, np.concatenate([one, two]))


def floors():
    """What a box stands on, by name."""
    return {
        "plane": (clast.Plane(), {}),
        "mesh": (sheet(37), {}),
        "box": (clast.Polyhedron.box(2.0, 2.0, 0.2), {"position": (0, 0, -0.1), "motion": "fixed"}),
    }


def on(floor, slope=0.0, spin=0.0, speed=0.0, time=0.5, turn=0.3):
    """A box on a floor that leans by `slope` [rad]: settled for 0.2 s, then let go; position, velocity and spin at the end."""
    shape, options = floors()[floor]
    scene = clast.Scene(gravity=(G * math.sin(slope), 0.0, -G * math.cos(slope)))
    scene.add(shape, material=WOOD, **options)
    q = (math.cos(0.5 * turn), 0.0, 0.0, math.sin(0.5 * turn))
    box = clast.Polyhedron.box(EDGE, EDGE, EDGE)
    depth = 2e-6
    scene.add(
        box,
        position=(0.013, 0.027, 0.5 * EDGE - depth),
        orientation=q,
        velocity=(speed, 0, 0),
        spin=(0, 0, spin),
        material=WOOD,
    )
    sim = clast.Simulation(scene)
    sim.run(until=time, progress=False)
    bodies = sim.bodies
    return bodies.position[1], bodies.velocity[1], bodies.spin[1]


def slope():
    """Speed on a slope below the angle of friction, where it stays, and acceleration above it against g (sin - mu cos)."""
    rows = []
    for floor in floors():
        still = on(floor, slope=0.95 * math.atan(FRICTION))[1]
        angle, time = 1.2 * math.atan(FRICTION), 0.4
        moving = on(floor, slope=angle, time=time)[1]
        wanted = G * (math.sin(angle) - FRICTION * math.cos(angle)) * time
        rows.append((f"{floor}: speed at 0.95 of the angle", f"{np.linalg.norm(still):.1e} m/s", "0"))
        rows.append((f"{floor}: speed after 0.4 s at 1.2 of the angle", f"{moving[0] / wanted - 1:+.2%}", "0 %"))
        rows.append((f"{floor}: sideways", f"{abs(moving[1]):.1e} m/s", "0"))
    return rows


def spinning():
    """A box that turns on the spot: four corners carry a quarter each, so it stops after I w / (mu m g sqrt(2) a / 2)."""
    mass = WOOD.density * EDGE**3
    spin = 6.0
    stop = mass * EDGE**2 / 6.0 * spin / (FRICTION * mass * G * EDGE / math.sqrt(2.0))
    half = on("plane", spin=spin, time=0.5 * stop)[2]
    end = on("plane", spin=spin, time=3.0 * stop)
    return [
        ("spin after half of the time to stop", f"{half[2] / (0.5 * spin) - 1:+.2%}", "0 %"),
        ("spin after three times", f"{abs(end[2][2]):.1e} rad/s", "0"),
        ("way of the centre", f"{np.linalg.norm(end[0][:2] - (0.013, 0.027)):.1e} m", "0"),
    ]


def edges():
    """A box that slides over the edges of a mesh: it loses mu g t, goes straight on and does not tilt."""
    speed, time = 1.5, 0.2
    place, velocity, spin = on("mesh", speed=speed, time=time)
    return [
        ("speed lost", f"{(speed - velocity[0]) / (FRICTION * G * time) - 1:+.2%}", "0 %"),
        ("sideways", f"{abs(place[1] - 0.027):.1e} m", "0"),
        ("spin", f"{np.linalg.norm(spin):.1e} rad/s", "0"),
    ]


def tower():
    """Ten boxes, each turned and shifted a little: they sway about a place where they lean, and that place stays."""
    rng = np.random.default_rng(1)
    scene = clast.Scene()
    scene.add(clast.Plane(), material=WOOD)
    z = EDGE * (np.arange(10) + 0.5) - 1e-6 * np.arange(10)
    place = np.stack([rng.uniform(-0.03, 0.03, 10) * EDGE, rng.uniform(-0.03, 0.03, 10) * EDGE, z], axis=1)
    angle = 0.5 * rng.uniform(-0.2, 0.2, 10)
    turn = np.stack([np.cos(angle), 0 * angle, 0 * angle, np.sin(angle)], axis=1)
    scene.add(clast.Polyhedron.box(EDGE, EDGE, EDGE), position=place, orientation=turn, material=WOOD)
    sim = clast.Simulation(scene)
    ways = []
    for k in range(1, 801):
        sim.run(until=0.01 * k, progress=False)
        ways.append((sim.bodies.position[1:] - place)[:, :2] / EDGE)
    ways = np.array(ways)
    early, late = ways[200:500], ways[500:]
    feet = np.abs(early[:, 0].mean(0) - late[:, 0].mean(0)).max()
    return [
        ("farthest sideways, of an edge", f"{np.abs(ways).max():.1e}", "twice the lean at most"),
        ("lean of the top, mean from 5 to 8 s", f"{np.linalg.norm(late[:, -1].mean(0)):.1e}", ""),
        (
            "sway of the top, 2 to 5 s and 5 to 8 s",
            " ".join(f"{np.ptp(w[:, -1], axis=0).max():.1e}" for w in (early, late)),
            "less and less",
        ),
        ("lowest box, mean of 2 to 5 s against 5 to 8 s", f"{feet:.1e}", "0"),
    ]


def pile():
    """Sixty rocks in a box, settled for 3 s: how far they creep in the second after that, for three fillings."""
    creep, farthest, spins = [], [], []
    for seed in (4, 5, 6):
        scene = clast.Scene()
        scene.add(clast.Plane(), material=WOOD)
        for x, y in ((1, 0), (-1, 0), (0, 1), (0, -1)):
            scene.add(clast.Plane((x, y, 0)), position=(-0.25 * x, -0.25 * y, 0), material=WOOD)
        box = ((-0.25, -0.25, 0.02), (0.25, 0.25, 1.2))
        rock = clast.Polyhedron.random(faces=14, seed=3, radius=0.06)
        scene.fill(rock, count=60, box=box, material=WOOD, seed=seed)
        sim = clast.Simulation(scene)
        sim.run(until=3.0, progress=False)
        before, turning = sim.bodies.position.copy(), []
        for k in range(1, 101):
            sim.run(until=3.0 + 0.01 * k, progress=False)
            turning.append(np.linalg.norm(sim.bodies.spin, axis=1)[5:])
        way = np.linalg.norm(sim.bodies.position - before, axis=1)[5:]
        creep.append(f"{np.median(way):.1e}")
        farthest.append(f"{way.max():.1e}")
        spins.append(f"{np.median(np.sqrt(np.mean(np.square(turning), axis=0))):.1e}")
    return [
        ("median creep in a second", f"{', '.join(creep)} m", "0"),
        ("farthest", f"{', '.join(farthest)} m", "0"),
        ("median spin", f"{', '.join(spins)} rad/s", "0"),
    ]


CASES = {f.__name__: f for f in (slope, spinning, edges, tower, pile)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="*", choices=[[], *CASES], help="which cases; all unless said")
    chosen = parser.parse_args().cases or list(CASES)
    print("| case | what | measured | wanted |\n|---|---|---|---|")
    for name in chosen:
        for what, measured, wanted in CASES[name]():
            print(f"| {name} | {what} | {measured} | {wanted} |", flush=True)


if __name__ == "__main__":
    main()

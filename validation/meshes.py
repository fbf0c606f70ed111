"""Triangulated particles: a pile of concave bodies, a ring on a rod, refined balls against a sphere, and a bounce.

    python validation/meshes.py             # a quarter of an hour on two cores; writes docs/validation.md and its pictures
    python validation/meshes.py --quick     # short runs, nothing written
    python validation/meshes.py --only pile # or ring, ball, bounce

The pile is of mesh files beside the project (../shared/data/meshes, or --meshes FOLDER): rocks of Chrono, the low-poly rabbit
of Parry, the torus of MuJoCo. Where there are none it is left out. A file must be closed to be a particle.
"""

import argparse
import math
import sys
import time
from pathlib import Path

import numpy as np
import trimesh

import clast
from clast import Material, Mesh, Plane, Scene, Simulation, Sphere, measure
from clast.kernels.vec import rotation_matrices
from clast.shapes.closed import turns_around

ROOT = Path(__file__).resolve().parents[1]
IMAGES = ROOT / "docs" / "images"
PAGE = ROOT / "docs" / "validation.md"
FILES = ROOT.parent / "shared" / "data" / "meshes"

# The pile: which files, radius of the ball of the same volume for all of them [m], width of the box [m].
PILED = (
    "chrono_rocks/curiosity_rock*.obj",
    "chrono_rocks/offroad_rock*.obj",
    "chrono_rocks/regolith_particle_*.obj",
    "parry_tests/low_poly_bunny.obj",
    "mujoco/torus.obj",
)
SIZE, WIDTH = 0.007, 0.18
STONE = Material(density=2500.0, stiffness=1e5, friction=0.5, restitution=0.2, name="stone")
PILE_STEP, PILE_TIME = 1.5e-5, 0.6  # [s]


def pile_shapes(folder):
    """Meshes of all files that are closed, each as large as the others: {name: Mesh}."""
    shapes = {}
    for pattern in PILED:
        for path in sorted(folder.glob(pattern)):
            mesh = clast.load_mesh(path, shape="mesh")
            factor = SIZE / np.cbrt(3.0 * mesh.volume / (4.0 * math.pi))
            shapes[path.stem] = Mesh(factor * mesh.vertices, mesh.triangles)
    return shapes


WALLS = (
    ((0, 0, 1), (0, 0, 0)),
    ((1, 0, 0), (0, 0, 0)),
    ((-1, 0, 0), (WIDTH, 0, 0)),
    ((0, 1, 0), (0, 0, 0)),
    ((0, -1, 0), (0, WIDTH, 0)),
)


def boxed(**options):
    """A scene with the floor and the four walls of the pile; they are bodies 0 to 4."""
    scene = Scene(world=((-0.1, -0.1, -0.1), (WIDTH + 0.1, WIDTH + 0.1, 2.0)), **options)
    for normal, foot in WALLS:
        scene.add(Plane(normal=normal), position=foot, material=STONE)
    return scene


def pile_simulation(meshes, count):
    """Bodies of these meshes in turn on a lattice, thrown down into the box; and the mesh of each."""
    random = np.random.default_rng(1)
    chosen = [meshes[k % len(meshes)] for k in range(count)]
    random.shuffle(chosen)
    velocity = np.column_stack([random.normal(0.0, 0.1, (count, 2)), np.full(count, -0.3)])
    scene = boxed()
    box = ((0, 0, 0), (WIDTH, WIDTH, 1.0))
    scene.fill(chosen, count=count, box=box, method="lattice", velocity=velocity, material=STONE, seed=1)
    return Simulation(scene, clast.DEM(law="linear"), dt=PILE_STEP), chosen


def used_halo(contacts, halo):
    """The overlap of each contact over the halos of its two bodies (c,); halo (n,) [m] of bodies by number."""
    return -contacts.gap / halo[contacts.pair].sum(1)


def corners_inside(position, orientation, meshes, pairs):
    """How many corners of one body lie inside the other: told by the solid angle, which the simulation knows nothing of."""
    turn, count = rotation_matrices(orientation), 0
    for one, other in (pair for both in pairs for pair in (both, both[::-1])):
        corner = meshes[other].vertices[meshes[other].triangles]
        x = meshes[one].vertices @ turn[one].T + position[one] - position[other]
        x = x @ turn[other]
        near = ((x > corner.min((0, 1))) & (x < corner.max((0, 1)))).all(1)
        count += sum(turns_around(corner, point) > 0.5 for point in x[near])
    return count


def pile(folder, quick, picture=None):
    """Let the pile settle; what came out as rows (what, value) for a table, or None without files."""
    shapes = pile_shapes(folder)
    if not shapes:
        print(f"no pile: no mesh files in {folder}")
        return None
    count = 40 if quick else 208
    sim, meshes = pile_simulation(list(shapes.values()), count)
    halo = np.concatenate([np.zeros(len(WALLS)), [mesh.epsilon for mesh in meshes]])
    weight = 9.81 * float(sim.bodies.mass[np.isfinite(sim.bodies.mass)].sum())
    deepest, until = 0.0, 0.1 if quick else PILE_TIME
    began = time.process_time()
    while sim.time < until - 0.5 * PILE_STEP:
        sim.step(50)
        deepest = max(deepest, used_halo(sim.contacts(), halo).max(initial=0.0))
        if sim.steps % 2500 == 0:
            energy = measure.energy(sim)
            print(
                f"  {sim.time:.2f} s: kinetic energy {energy['kinetic'] + energy['rotational']:.2e} J, "
                f"{len(sim.contacts().gap)} contacts, at most {deepest:.2f} of the halo used; {time.process_time() - began:.0f} s",
                flush=True,
            )
    energy, contacts = measure.energy(sim), sim.contacts()
    moving = energy["kinetic"] + energy["rotational"]
    order = np.argsort(sim.bodies.number)
    position, turn = sim.bodies.position[order][len(WALLS) :], sim.bodies.orientation[order][len(WALLS) :]
    still = boxed()
    still.add(meshes, position=position, orientation=turn, material=STONE)
    found = clast.find_contacts(still)
    between = contacts.pair[:, 0] >= len(WALLS)
    pairs = np.unique(contacts.pair[between], axis=0) - len(WALLS)
    inside = corners_inside(position, turn, meshes, pairs)
    points = np.unique(contacts.pair[between], axis=0, return_counts=True)[1]
    on_floor = contacts.force[contacts.pair[:, 0] == 0][:, 2].sum()
    speed = np.sqrt(2.0 * moving / (weight / 9.81))
    if picture:
        from clast import view

        colour = np.concatenate([np.zeros(len(WALLS)), [list(shapes.values()).index(mesh) for mesh in meshes]])
        view.render(still, picture, size=(1100, 760), colour=colour, quality=2)
    triangles = sum(len(mesh.triangles) for mesh in meshes)
    return {
        "bodies, files, triangles": f"{count}, {len(shapes)}, {triangles:,}",
        "simulated time, steps": f"{sim.time:.2f} s, {sim.steps:,}",
        "pairs of bodies that touch, points of contact": f"{len(pairs)}, {between.sum()}",
        "points a pair, mean and most": f"{points.mean():.1f}, {points.max()}",
        "deepest overlap over the halo, at rest": f"{used_halo(contacts, halo).max():.3f}",
        "the same at any time (every 50th step)": f"{deepest:.3f}",
        "the same of `find_contacts` at rest": f"{used_halo(found, halo).max():.3f}",
        "corners of a body inside another (solid angle)": f"{inside}",
        "crossings, bodies inside others (`Penetrated`)": f"{sim.report().crossings}",
        "kinetic energy, and as a mean speed": f"{moving:.1e} J, {1e3 * speed:.2f} mm/s",
        "force on the floor over weight": f"{abs(on_floor) / weight:.3f}",
    }


# A ring is thrown onto a rod.

ROD, TUBE, RING = 0.01, 0.012, 0.05  # radii [m] of the rod, of the ring's tube and of its middle line
RUBBER = Material(density=2000.0, stiffness=2e4, friction=0.5, restitution=0.2, name="rubber")


def ring(quick, picture=None):
    """A ring flies onto the end of a rod and stays: rows for a table."""
    made = trimesh.creation
    rod = made.cylinder(ROD, 0.3, sections=24)
    hoop = made.torus(RING, TUBE, major_sections=32, minor_sections=12)
    quarter = (math.sqrt(0.5), math.sqrt(0.5), 0, 0)  # the axes of both along y
    scene = Scene()
    scene.add(Mesh(rod.vertices, rod.faces, epsilon=1e-3), orientation=quarter, motion="fixed", material=RUBBER)
    start = (0.004, -0.19, 0.0)
    scene.add(
        Mesh(hoop.vertices, hoop.faces, epsilon=1e-3),
        position=start,
        orientation=quarter,
        velocity=(0, 1.2, 0),
        material=RUBBER,
    )
    sim = Simulation(scene, clast.DEM(law="linear"), dt=5e-5)
    path, deepest = [], 0.0
    halo = np.full(2, 1e-3)
    until = 0.2 if quick else 6.0
    while sim.time < until - 1e-9:
        sim.step(20)
        contacts = sim.contacts()
        deepest = max(deepest, used_halo(contacts, halo).max(initial=0.0))
        path.append((sim.time, *sim.bodies.position[1], np.linalg.norm(sim.bodies.velocity[1])))
    if picture:
        draw_ring(np.array(path).T, sim, scene, picture)
    x, y, z = sim.bodies.position[1]
    weight = 9.81 * sim.bodies.mass[1]
    contacts = sim.contacts()
    free = RING - TUBE - ROD  # the middle of the ring hangs this far below that of the rod, less the two halos
    return {
        "triangles of ring and rod": f"{len(hoop.faces)}, {len(rod.faces)}",
        "start: before the end of the rod [mm], speed along it [m/s]": f"{1e3 * (-0.15 - start[1]):.0f}, 1.2",
        "after [s] it is at x, y, z [mm]": f"{sim.time:.1f}: {1e3 * x:.2f}, {1e3 * y:.2f}, {1e3 * z:.2f}",
        "z of round ring and rod with halos, without overlap [mm]": f"{-1e3 * (free - 2e-3):.2f}",
        "speed [m/s]": f"{path[-1][-1]:.1e}",
        "points of contact, vertical force over weight": f"{len(contacts.gap)}, {contacts.force[:, 2].sum() / weight:.5f}",
        "deepest overlap over the halo, at any time": f"{deepest:.3f}",
    }


# Balls of more and more triangles rebound like a sphere.


def rebound(shape, turns, impact):
    """Velocities and spins (2,3) after an oblique collision without friction and losses, at 0.5 m/s."""
    smooth = Material(density=2000.0, stiffness=2e4, friction=0.0, restitution=1.0)
    scene = Scene(gravity=(0, 0, 0))
    scene.add(shape, position=(-0.06, 0, 0), velocity=(0.5, 0, 0), orientation=turns[0], material=smooth)
    scene.add(shape, position=(0.06, *impact), orientation=turns[1], material=smooth)
    sim = Simulation(scene, clast.DEM(law="linear"), dt=2e-5)
    sim.step(5000)
    return sim.bodies.velocity.copy(), sim.bodies.spin.copy()


def ball_rows(quick):
    """(triangles, off the sphere [m], mean and largest error of velocity over 0.5 m/s, largest spin times radius over that)."""
    random = np.random.default_rng(3)
    cases = [(random.normal(size=(2, 4)), 0.07 * random.uniform(-0.5, 0.5, 2)) for _ in range(2 if quick else 12)]
    truth = [rebound(Sphere(0.05), np.array([[1.0, 0, 0, 0]] * 2), impact)[0] for _, impact in cases]
    rows = []
    for level in (1, 2) if quick else (1, 2, 3, 4):
        ball = trimesh.creation.icosphere(level, 0.048)
        mesh = Mesh(ball.vertices, ball.faces, epsilon=2e-3)
        errors, spins = [], []
        for (turns, impact), right in zip(cases, truth, strict=True):
            turns = turns / np.linalg.norm(turns, axis=1)[:, None]
            velocity, spin = rebound(mesh, turns, impact)
            errors.append(np.linalg.norm(velocity - right, axis=1).max() / 0.5)
            spins.append(np.linalg.norm(spin, axis=1).max() * 0.05 / 0.5)
        middles = ball.vertices[ball.faces].mean(1)
        off = 0.048 - np.linalg.norm(middles, axis=1).min()
        rows.append((len(ball.faces), off, np.mean(errors), max(errors), max(spins)))
    return rows


def ball_table(rows):
    """Markdown of `ball_rows`."""
    lines = [
        "| triangles | faces inside the sphere by, of its radius | error of the velocity, mean | largest | times smaller | surface speed by spin, largest |",
        "|---:|---:|---:|---:|---:|---:|",
    ]
    before = None
    for triangles, off, mean, most, spin in rows:
        ratio = f"{before / mean:.2f}" if before else ""
        lines.append(f"| {triangles:,} | {100 * off / 0.05:.2f} % | {mean:.4f} | {most:.4f} | {ratio} | {spin:.4f} |")
        before = mean
    return "\n".join(lines)


# Two lumps bounce off each other.


def bounce(dt):
    """Errors of energy, momentum and angular momentum after a bounce off centre, and the most points that touched.

    Energy over that at the start; momenta over sum m |v|, and that times the distance of the centres at the start.
    """
    elastic = Material(density=2000.0, halo_stiffness=2e4, halo_damping=0.0, name="elastic")
    one, two = (Mesh.random(points, seed=seed, radius=0.05, epsilon=2e-3) for points, seed in ((31, 1), (36, 2)))
    scene = Scene(gravity=(0, 0, 0))
    scene.add(one, position=(-0.06, 0, 0), velocity=(0.5, 0, 0), spin=(1, 2, 3), material=elastic)
    scene.add(two, position=(0.06, 0.02, 0.01), velocity=(-0.5, 0, 0), spin=(0, 1, 0), material=elastic)
    sim = Simulation(scene, clast.DEM(law="halo", integrator="symplectic"), dt=dt)
    energy, (linear, angular) = measure.energy(sim)["total"], measure.momentum(sim)
    size, worst, most, touching = 0.5 * float(sim.bodies.mass.sum()), 0.0, 0, 0
    for _ in range(round(0.15 / dt)):
        sim.step()
        points = len(sim.contacts().gap)
        most, touching = max(most, points), touching + (points > 0)
        worst = max(worst, abs(measure.energy(sim)["total"] / energy - 1.0))
    after = measure.momentum(sim)
    return (
        touching,
        most,
        abs(measure.energy(sim)["total"] / energy - 1.0),
        worst,
        np.abs(after[0] - linear).max() / size,
        np.abs(after[1] - angular).max() / (size * 0.12),
    )


def bounce_table(rows):
    """Markdown of {dt: what `bounce` gives}."""
    lines = [
        "| time step [s] | steps in contact | most points | energy after | energy, at any time | momentum | angular momentum |",
        "|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for dt, (touching, most, *errors) in rows.items():
        lines.append(f"| {dt:g} | {touching} | {most} | " + " | ".join(f"{error:.1e}" for error in errors) + " |")
    return "\n".join(lines)


def plain_table(rows):
    """Markdown of {what: value}."""
    return "\n".join(["| what | |", "|---|---:|"] + [f"| {what} | {value} |" for what, value in rows.items()])


def draw_ring(path, sim, scene, picture):
    """The way of the ring, and the ring where it hangs."""
    from clast import view

    still, bodies = Scene(), sim.bodies
    quarter = bodies.orientation[0]
    made = trimesh.creation
    rod, hoop = made.cylinder(ROD, 0.3, sections=24), made.torus(RING, TUBE, major_sections=32, minor_sections=12)
    still.add(Mesh(rod.vertices, rod.faces), orientation=quarter, motion="fixed")
    still.add(Mesh(hoop.vertices, hoop.faces), position=bodies.position[1], orientation=bodies.orientation[1])
    camera = ((0.35, -0.55, 0.22), (0.0, 0.0, -0.02), (0, 0, 1))
    view.render(still, picture, size=(640, 420), colour="number", camera=camera)


def write_page(name, text):
    """Put a table between its two marks in the page."""
    page = PAGE.read_text(encoding="utf-8")
    before, rest = page.split(f"<!-- {name} -->\n")
    after = rest.split(f"<!-- /{name} -->")[1]
    PAGE.write_text(f"{before}<!-- {name} -->\n{text}\n<!-- /{name} -->{after}", encoding="utf-8")


def main():
    """Run everything and say what came out."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="short runs; writes nothing")
    parser.add_argument("--only", choices=("pile", "ring", "ball", "bounce"), help="one part")
    parser.add_argument("--meshes", type=Path, default=FILES, help="folder with the mesh files")
    options = parser.parse_args()
    quick = options.quick
    steps = (1e-4, 2e-5) if quick else (1e-4, 5e-5, 2e-5, 1e-5, 5e-6)
    parts = {
        "bounce": lambda: bounce_table({dt: bounce(dt) for dt in steps}),
        "ball": lambda: ball_table(ball_rows(quick)),
        "ring": lambda: plain_table(ring(quick, None if quick else IMAGES / "meshes-ring.png")),
        "pile": lambda: pile(options.meshes, quick, None if quick else IMAGES / "meshes-pile.png"),
    }
    for name, make in parts.items():
        if options.only not in (None, name):
            continue
        began = time.perf_counter()
        result = make()
        if result is None:
            continue
        text = result if isinstance(result, str) else plain_table(result)
        print(f"{name}, {time.perf_counter() - began:.0f} s\n{text}", flush=True)
        if not quick:
            write_page(f"meshes {name}", text)
    return 0


if __name__ == "__main__":
    sys.exit(main())

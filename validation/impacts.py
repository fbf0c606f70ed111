"""Energy of undamped collisions: 200 random impacts for every two kinds of shapes, at dt="auto", and with accounts at finer steps too.

    python validation/impacts.py                        # all pairs; writes the table of docs/validation.md
    python validation/impacts.py --only box mesh        # one pair
    python validation/impacts.py --count 20 --quick     # fewer impacts, with accounts and dt="auto" alone; writes nothing

Two free bodies with random orientations, spins and offsets fly at each other, without friction, damping and gravity; against a wall one
body flies. What the two have in kinetic energy afterwards, less what they had, over what they had, is the error of an impact. A
force that has a potential keeps it at any orientation as the step goes to zero, and so does DEM(conserving=True), which keeps accounts.
"""

import argparse
import itertools
from pathlib import Path

import numpy as np

import clast
from clast.dem.stepper import AUTO
from clast.measure import world_inertia

PAGE = Path(__file__).resolve().parents[1] / "docs" / "validation.md"
SIZE, SPEED = 0.01, 0.5
STONE = clast.Material(density=2500.0, young=1e7, poisson=0.25, friction=0.0, restitution=1.0)
STEPS = (1.0, 0.5, 0.25)  # of dt="auto"


def sheet():
    """A MeshWall with ridges, 0.2 SIZE high."""
    line = np.linspace(-5.0, 5.0, 21)
    x, y = np.meshgrid(line, line, indexing="ij")
    z = 0.2 * (np.arange(21)[:, None] % 2) * np.ones_like(x)
    vertices = SIZE * np.stack([x, y, z], axis=-1).reshape(-1, 3)
    corner = (np.arange(20)[:, None] * 21 + np.arange(20)).ravel()
    one, two = np.stack([corner, corner + 21, corner + 22], axis=1), np.stack([corner, corner + 22, corner + 1], axis=1)
    return clast.MeshWall(vertices, np.concatenate([one, two]))


def particles():
    """One of each kind, about as large as a ball of radius SIZE."""
    box = clast.Polyhedron.box(1.5 * SIZE, 1.2 * SIZE, 1.8 * SIZE)
    half = clast.Polyhedron.box(1.5 * SIZE, 1.2 * SIZE, 0.9 * SIZE)
    return {
        "sphere": clast.Sphere(SIZE),
        "ellipsoid": clast.Ellipsoid(1.3 * SIZE, SIZE, 0.8 * SIZE),
        "superquadric": clast.Superquadric(1.2 * SIZE, SIZE, 0.8 * SIZE, 0.6, 0.6),
        "box": box,
        "plate": clast.Polyhedron.box(1.8 * SIZE, 1.6 * SIZE, 0.3 * SIZE),
        "rock": clast.Polyhedron.random(faces=14, seed=3, radius=SIZE),
        "compound": clast.Compound([(half, (0, 0, -0.45 * SIZE)), (half, (0, 0, 0.45 * SIZE))]),
        "mesh": clast.Mesh.random(60, radius=SIZE, seed=2, epsilon=0.1 * SIZE),
    }


def walls():
    """Walls that a body flies at along -z: {name: (wall, where it stands, its height)}, in SIZE. Of the last two the edge and the rim are in the middle."""
    edge = SIZE * np.array([(-6.0, -6.0, 0.0), (0.0, -6.0, 0.0), (0.0, 6.0, 0.0), (-6.0, 6.0, 0.0)])
    return {
        "plane": (clast.Plane(), (0, 0, 0), 0.0),
        "cylinder": (clast.Cylinder(2.0 * SIZE, 8.0 * SIZE, axis=(1, 0, 0), inside=False), (0, 0, 0), 2.0),
        "mesh wall": (sheet(), (0, 0, 0), 0.2),
        "quad's edge": (clast.Quad(edge), (0, 0, 0), 0.0),
        "rod's rim": (clast.Cylinder(2.0 * SIZE, 8.0 * SIZE, axis=(0, 0, 1), inside=False), (-2, 0, -4), 0.0),
    }


def collide(one, two, count, part, seed=1, conserving=None):
    """Errors (k,) of the energy of those of `count` random impacts that happened; part: of dt="auto"; conserving: see `clast.DEM`."""
    rng = np.random.default_rng(seed)
    shapes, walled, height = particles(), two in walls(), 0.0
    side = int(np.ceil(np.sqrt(count)))
    pitch = 30.0 * SIZE
    place = pitch * np.stack(np.divmod(np.arange(count), side) + (np.zeros(count),), axis=1)
    scene = clast.Scene(gravity=(0, 0, 0))
    if walled:
        wall, stands, height = walls()[two]
        for x in place[:1] if two == "plane" else place:
            scene.add(wall, position=x + SIZE * np.array(stands), material=STONE)
    aside = np.append(rng.uniform(-0.7, 0.7, (count, 2)) * SIZE, np.zeros((count, 1)), axis=1)
    far = (1.9 + height if walled else 3.6) * SIZE
    first = scene.add(
        shapes[one],
        position=place + aside + (0, 0, far),
        orientation=rng.normal(size=(count, 4)),
        velocity=(0, 0, -SPEED),
        spin=rng.normal(size=(count, 3)) * 0.3 * SPEED / SIZE,
        material=STONE,
    )
    second = None
    if not walled:
        second = scene.add(
            shapes[two],
            position=place,
            orientation=rng.normal(size=(count, 4)),
            velocity=np.zeros(3),
            spin=rng.normal(size=(count, 3)) * 0.3 * SPEED / SIZE,
            material=STONE,
        )
    method = clast.DEM(conserving=conserving)
    sim = clast.Simulation(scene, method, dt=part * AUTO * method.critical_step(scene)[0])

    def of_pairs():
        bodies = sim.bodies
        own = 0.5 * np.where(np.isfinite(bodies.mass), bodies.mass, 0.0) * (bodies.velocity**2).sum(1)
        own = own + 0.5 * np.einsum("ni,nij,nj->n", bodies.spin, world_inertia(sim, bodies), bodies.spin)
        return (own[first] + (0.0 if second is None else own[second])), bodies.velocity[first].copy()

    before, speed = of_pairs()
    sim.run(until=5.0 * SIZE / SPEED, progress=False)
    after, then = of_pairs()
    still = np.isin(first, sim.contacts().pair)
    happened = (np.abs(then - speed) > 1e-9).any(1) & ~still
    return (after / before - 1.0)[happened]


def table(count, pairs, ways):
    """Rows of the table: a pair, and of each way, (conserving, part of dt="auto"), mean of the size of errors, largest loss and largest gain."""
    for one, two in pairs:
        cells, many = [], 0
        for conserving, part in ways:
            error = collide(one, two, count, part, conserving=conserving)
            many = len(error)
            cells.append(f"{np.abs(error).mean():.1e}, {error.min():+.1e}, {error.max():+.1e}")
        yield f"| {one} | {two} | {many} | " + " | ".join(cells) + " |"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs=2, metavar=("ONE", "TWO"))
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument(
        "--quick", action="store_true", help='with accounts and dt="auto" alone, and nothing is written'
    )
    given = parser.parse_args()
    kinds = list(particles())
    pairs = [*itertools.combinations_with_replacement(kinds, 2), *itertools.product(kinds, walls())]
    ways = [(True, part) for part in (STEPS[:1] if given.quick else STEPS)]
    ways = ways if given.quick else [(None, 1.0), *ways]
    named = ("conserving, {:g} of auto" if conserving else "default, {:g} of auto" for conserving, _ in ways)
    head = (
        "| one | other | impacts | "
        + " | ".join(name.format(part) for name, (_, part) in zip(named, ways, strict=True))
        + " |"
    )
    lines = [head, "|---|---|---:|" + "---|" * len(ways)]
    print("\n".join(lines), flush=True)
    for line in table(given.count, [tuple(given.only)] if given.only else pairs, ways):
        print(line, flush=True)
        lines.append(line)
    if not given.only and not given.quick and given.count >= 200:
        text = PAGE.read_text()
        start, end = text.index("<!-- impacts -->"), text.index("<!-- /impacts -->")
        PAGE.write_text(text[:start] + "<!-- impacts -->\n" + "\n".join(lines) + "\n" + text[end:])


if __name__ == "__main__":
    main()

"""Convex polyhedra: overlapping pairs, growth with bodies and with faces, and DEM steps.

    python benchmarks/polyhedra.py                       # about ten minutes on two cores
    python benchmarks/polyhedra.py --only pairs          # or faces, or growth
    python benchmarks/polyhedra.py --quick               # smaller sizes, about two minutes
    python benchmarks/polyhedra.py --install             # MuJoCo, coal and Bullet, in the peers' environment (.bench-venv)

Prints tables, keeps every number in results/polyhedra-<machine>.json and draws docs/images/polyhedra-growth.png.

pairs    random overlapping pairs, any orientation, the second centre anywhere in the sum of both bodies: unit cubes, and
         rocks of 24 triangular faces (14 corners on ellipsoids). All contact points of each pair; clast uses all cores,
         the peers one each, one after the other, on the first of the pairs.
faces    the same for rocks of 6 to 60 faces.
growth   cubes of 2 mm at rest on a floor, periodic on the sides: settled once, then laid side by side up to a million;
         whole contact detection, and DEM steps.
"""

import argparse
import json
import subprocess
import time

import numpy as np
from common import DENSITY, FRICTION, POISSON, RESTITUTION, RESULTS, ROOT, STEP, YOUNG, cache, machine, median
from ellipsoids import PEERS, console, show, turns

import clast

EDGE = 2e-3  # of the settled cubes [m]
TILE = 1000  # cubes that are settled once
INSTALL = ("mujoco", "coal", "pybullet")
NAMES = ("mujoco", "mujoco-points", "coal", "bullet")


def rocks(faces, kinds, seed=0):
    """Polyhedra with this many triangular faces, even and at least 4: corners on ellipsoids about a sphere."""
    rng = np.random.default_rng(seed)
    shapes = []
    for _ in range(kinds):
        points = rng.normal(size=(faces // 2 + 2, 3))
        points /= np.linalg.norm(points, axis=1)[:, None]
        shapes.append(clast.Polyhedron(points * rng.uniform(0.7, 1.0, 3)))
    return shapes


class PairSet:
    """Random pairs of these shapes, as a scene and as arrays for the peers."""

    def __init__(self, shapes, kind, d, turn, orientation):
        self.shapes, self.kind, self.d, self.turn, self.orientation = shapes, kind, d, turn, orientation
        self.scene = clast.Scene()
        self.numbers = np.empty(kind.shape, np.int64)
        place = np.zeros((len(d), 2, 3))
        place[:, 1] = d
        for k, shape in enumerate(shapes):
            chosen = kind == k
            if chosen.any():
                self.numbers[chosen] = self.scene.add(shape, position=place[chosen], orientation=orientation[chosen])

    @classmethod
    def random(cls, shapes, count, seed=0):
        """Pairs whose centres are nearer than the sum of the radii around them."""
        rng = np.random.default_rng(seed)
        kind = rng.integers(len(shapes), size=(count, 2))
        turn, orientation = turns(rng, 2 * count)
        reach = np.array([np.linalg.norm(shape.vertices, axis=1).max() for shape in shapes])[kind].sum(1)
        d = rng.normal(size=(count, 3))
        d *= (reach * rng.uniform(size=count) ** (1.0 / 3.0) / np.linalg.norm(d, axis=1))[:, None]
        return cls(shapes, kind, d, turn.reshape(count, 2, 3, 3), orientation.reshape(count, 2, 4))

    def take(self, rows):
        """Some of the pairs."""
        return PairSet(self.shapes, self.kind[rows], self.d[rows], self.turn[rows], self.orientation[rows])

    def contacts(self):
        return clast.find_contacts(self.scene, pairs=self.numbers, margin=0.0, sort=False)

    def depths(self):
        """Signed distance of every pair that overlaps (n,) [m], NaN of the others."""
        found = self.contacts()
        row = np.full(self.numbers.max() + 1, -1)
        row[self.numbers] = np.arange(len(self.d))[:, None]
        depth = np.full(len(self.d), np.nan)
        np.fmin.at(depth, row[found.pair[:, 0]], found.gap)
        return depth

    def save(self, path):
        corners = {f"shape{k}": shape.vertices for k, shape in enumerate(self.shapes)}
        np.savez(path, shapes=len(self.shapes), kind=self.kind, d=self.d, turn=self.turn, **corners)


def overlapping(shapes, count):
    """Overlapping pairs, at most `count`, and their depths."""
    drawn = PairSet.random(shapes, 2 * count)
    rows = np.nonzero(drawn.depths() < 0.0)[0][:count]
    chosen = drawn.take(rows)
    return chosen, chosen.depths()


def rate(pairs, times=5):
    """Million pairs a second, median and best, and contact points a pair."""
    seconds = []
    for _ in range(times):
        began = time.perf_counter()
        found = pairs.contacts()
        seconds.append(time.perf_counter() - began)
    count = len(pairs.d)
    return count / median(seconds) / 1e6, count / min(seconds) / 1e6, len(found.gap) / count


def peer(name, pairs):
    """What another program makes of the pairs, or None where it is not installed."""
    module = "pybullet" if name == "bullet" else name.split("-")[0]
    if not PEERS.exists() or subprocess.run([PEERS, "-c", f"import {module}"], capture_output=True).returncode:
        return None
    source, target = cache() / "polyhedra.npz", cache() / "polyhedra-depths.npz"
    pairs.save(source)
    command = [PEERS, ROOT / "benchmarks" / "polyhedra_peers.py", name, source, target]
    subprocess.run(command, check=True, capture_output=True)
    return np.load(target)


def pairs(quick):
    """Rate on overlapping pairs, ours and the peers' in turn, and how far their depths are from ours."""
    count, few = (100_000, 1_000) if quick else (1_000_000, 10_000)
    rows = []
    for what, shapes in (("cubes", [clast.Polyhedron.box(1.0, 1.0, 1.0)]), ("rocks of 24 faces", rocks(24, 16))):
        chosen, depth = overlapping(shapes, count)
        head = chosen.take(np.arange(min(few, len(depth))))
        size = 2.0 * max(np.linalg.norm(shape.vertices, axis=1).max() for shape in shapes)
        for name in NAMES:
            ours, best, points = rate(chosen)
            theirs = peer(name, head)
            row = {"what": what, "pairs": len(depth), "clast [M/s]": ours, "best": best, "points": points, "peer": name}
            if theirs is not None:
                error = np.abs(theirs["depth"] - depth[: len(head.d)]) / size
                row["peer [M/s]"] = len(head.d) / float(theirs["seconds"]) / 1e6
                row["ratio"] = ours / row["peer [M/s]"]
                row["median difference"] = float(np.nanmedian(error))
                row["largest"] = float(np.nanmax(error))
                row["not found"] = int(np.isnan(error).sum())
                row["version"] = str(theirs["version"])
            rows.append(row)
            console.print(row)
    return rows


def faces(quick):
    """Rate on overlapping pairs of rocks with more and more faces."""
    rows = []
    for many in (6, 12, 24, 36, 48, 60):
        chosen, _ = overlapping(rocks(many, 16), 20_000 if quick else 200_000)
        middle, best, points = rate(chosen)
        rows.append({"faces": many, "million pairs a second": middle, "best": best, "points a pair": points})
        console.print(rows[-1])
    return rows


def settled():
    """Cubes at rest on a floor, periodic on the sides: side of the floor [m], positions, orientations; made once."""
    path = cache() / f"cubes-{TILE}.npz"
    if path.exists():
        kept = np.load(path)
        return float(kept["side"]), kept["position"], kept["orientation"]
    side = 10.0 * EDGE
    scene = floor(side, side)
    box = ((0, 0, 0), (side, side, 0.5))
    scene.fill(
        clast.Polyhedron.box(EDGE, EDGE, EDGE),
        count=TILE,
        box=box,
        material=rock(),
        method="lattice",
        jitter=0.05,
        seed=1,
    )
    sim = clast.Simulation(scene, clast.DEM(law="hertz"), dt=STEP)
    sim.run(until=0.4)
    bodies = sim.scene.bodies
    order = np.argsort(bodies.number)
    cubes = order[np.isfinite(bodies.mass[order])]
    np.savez(path, side=side, position=bodies.position[cubes], orientation=bodies.orientation[cubes])
    return settled()


def rock():
    return clast.Material(density=DENSITY, young=YOUNG, poisson=POISSON, friction=FRICTION, restitution=RESTITUTION)


def floor(x, y):
    """A scene with a floor, periodic on the sides."""
    scene = clast.Scene(world=((0.0, 0.0, -EDGE), (x, y, 1.0)), periodic=(True, True, False))
    scene.add(clast.Plane((0, 0, 1)), material=rock())
    return scene


def tiled(count):
    """At least `count` settled cubes: the tile laid side by side on a floor as square as can be."""
    side, position, orientation = settled()
    tiles = -(-count // TILE)
    across = next(k for k in range(int(tiles**0.5), 0, -1) if tiles % k == 0)
    steps = [(i * side, j * side, 0.0) for i in range(across) for j in range(tiles // across)]
    scene = floor(across * side, tiles // across * side)
    places = np.concatenate([position + np.array(step) for step in steps])
    cube = clast.Polyhedron.box(EDGE, EDGE, EDGE)
    scene.add(cube, position=places, orientation=np.tile(orientation, (tiles, 1)), material=rock())
    return scene


def growth(quick):
    """Seconds of whole detection and particle-steps a second, from a thousand to a million cubes."""
    rows = []
    for count in (1_000, 10_000) if quick else (1_000, 10_000, 100_000, 1_000_000):
        scene = tiled(count)
        clast.find_contacts(scene, sort=False)
        seconds = []
        for _ in range(5):
            began = time.perf_counter()
            contacts = clast.find_contacts(scene, sort=False)
            seconds.append(time.perf_counter() - began)
        row = {"cubes": count, "points": len(contacts.gap), "detection [s]": median(seconds)}
        del contacts
        sim = clast.Simulation(scene, clast.DEM(law="hertz"), dt=STEP)
        steps = max(10, 400_000 // count)
        sim.step(max(20, steps // 4))
        rates, rebuilds = [], sim.state.rebuilds
        for _ in range(3):
            began = time.perf_counter()
            sim.step(steps)
            rates.append(count * steps / (time.perf_counter() - began) / 1e6)
        row["million particle-steps a second"] = median(rates)
        row["best"] = max(rates)
        row["contacts a body"] = clast.measure.coordination(sim)
        row["lists"] = sim.state.rebuilds - rebuilds
        row["kinetic energy a cube [J]"] = sim.kinetic_energy() / count
        rows.append(row)
        console.print(row)
        del sim, scene
    return rows


def draw(results):
    """Particle-steps and detections a second against bodies, pairs a second against faces."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(9.0, 3.8))
    rows = results["growth"]
    cubes = [row["cubes"] for row in rows]
    left.plot(cubes, [row["million particle-steps a second"] for row in rows], "o-", label="DEM steps")
    left.plot(cubes, [row["cubes"] / row["detection [s]"] / 1e6 for row in rows], "s-", label="whole detection")
    left.set(xscale="log", ylim=(0, None), xlabel="cubes at rest", ylabel="million cubes a second")
    rows = results["faces"]
    right.plot(
        [row["faces"] for row in rows], [row["million pairs a second"] for row in rows], "o-", label="clast, all cores"
    )
    for name in NAMES:
        for row in results.get("pairs", []):
            if row["peer"] == name and "peer [M/s]" in row and row["what"].startswith("rocks"):
                right.plot(24, row["peer [M/s]"], "^", label=f"{name}, one core")
    right.set(xlim=(0, None), ylim=(0, None), xlabel="faces of a rock", ylabel="million overlapping pairs a second")
    for axis in (left, right):
        axis.grid(alpha=0.3)
        axis.legend(frameon=False, fontsize=8)
    figure.tight_layout()
    figure.savefig(ROOT / "docs" / "images" / "polyhedra-growth.png", dpi=130)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="smaller sizes; the picture is not drawn")
    parser.add_argument("--only", choices=("pairs", "faces", "growth"), help="one part; the others stay as stored")
    parser.add_argument("--install", action="store_true", help="install the peers and stop")
    options = parser.parse_args()
    if options.install:
        subprocess.run([PEERS, "-m", "pip", "install", *INSTALL], check=True)
        return
    path = RESULTS / f"polyhedra-{machine()}.json"
    results = json.loads(path.read_text()) if path.exists() else {}
    for name, function in (("pairs", pairs), ("faces", faces), ("growth", growth)):
        if options.only in (None, name):
            results[name] = function(options.quick)
            if not options.quick:
                path.parent.mkdir(exist_ok=True)
                path.write_text(json.dumps(results, indent=1) + "\n")
    show(results)
    if not options.quick and results.get("growth") and results.get("faces"):
        draw(results)


if __name__ == "__main__":
    main()

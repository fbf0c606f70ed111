"""Ellipsoids: signed distances of pairs, whole contact detection, and DEM steps.

    python benchmarks/ellipsoids.py                      # about ten minutes on two cores
    python benchmarks/ellipsoids.py --only pairs         # or detection, or dem
    python benchmarks/ellipsoids.py --install            # MuJoCo, in the peers' environment (.bench-venv)

Prints tables, keeps every number in results/ellipsoids-<machine>.json and draws docs/images/ellipsoid-detection.png.

pairs      random overlapping pairs: half-axes 0.1 to 1, any orientation, the second centre anywhere in the sum of the two
           bodies. MuJoCo answers the first of them with tolerance 1e-10 on one core; clast uses all.
detection  the workload of Pazouki, Mazhar and Negrut: 1.25e-7 bodies a cubic metre, radii uniform in [0, 101] m; as
           spheres, as ellipsoids with three equal half-axes (the paper's own timings) and with half-axes r, 0.8 r, 0.6 r,
           Method-1 (opm) and Method-2 (chm+opm) in turn, up to 2,097,152 bodies.
dem        ellipsoids of 1.25 : 1 : 0.8 mm at rest in a box with five walls, settled before the clock starts.
"""

import argparse
import json
import subprocess
import time

import numpy as np
from common import RESULTS, ROOT, cache, machine, median
from rich.console import Console
from rich.table import Table

import clast
from clast.kernels.vec import rotation_matrices
from clast.narrow.common_normal import common_normals

PEERS = ROOT / ".bench-venv" / "bin" / "python"
DENSITY = 1.25e-7  # bodies a cubic metre
LARGEST = 101.0  # [m]
SHAPES = {"equal half-axes": (1.0, 1.0, 1.0), "1 : 0.8 : 0.6": (1.0, 0.8, 0.6)}
console = Console()


def turns(rng, count):
    """Random rotation matrices (n,3,3) and the quaternions (n,4) they belong to."""
    q = rng.normal(size=(count, 4))
    q /= np.linalg.norm(q, axis=1, keepdims=True)
    return rotation_matrices(q), q


def overlapping(count, seed=0):
    """Random overlapping pairs: d (n,3), half-axes and rotation matrices of both."""
    rng = np.random.default_rng(seed)
    size_a, size_b = rng.uniform(0.1, 1.0, (2, count, 3))
    turn_a, turn_b = turns(rng, count)[0], turns(rng, count)[0]

    # A point of the surface of the sum of both bodies, moved towards its centre so that equal shells are equally full.
    n = rng.normal(size=(count, 3))
    n /= np.linalg.norm(n, axis=1, keepdims=True)
    d = np.zeros((count, 3))
    for size, turn in ((size_a, turn_a), (size_b, turn_b)):
        u = np.einsum("nij,nj,nkj,nk->ni", turn, size**2, turn, n)
        d += u / np.sqrt(np.einsum("ni,ni->n", n, u))[:, None]
    d *= rng.uniform(size=(count, 1)) ** (1.0 / 3.0)
    return d, size_a, size_b, turn_a, turn_b


def forms(size, turn):
    """M = A R^2 A^T as (n,6)."""
    m = np.einsum("nij,nj,nkj->nik", turn, size**2, turn)
    return np.stack([m[:, 0, 0], m[:, 1, 1], m[:, 2, 2], m[:, 0, 1], m[:, 0, 2], m[:, 1, 2]], 1)


def pairs(quick):
    """Rate and agreement on overlapping pairs."""
    count, few = (200_000, 5_000) if quick else (2_000_000, 50_000)
    d, size_a, size_b, turn_a, turn_b = overlapping(count)
    least = size_a.min(1) ** 2 / size_a.max(1) + size_b.min(1) ** 2 / size_b.max(1)
    given = d, forms(size_a, turn_a), forms(size_b, turn_b), least
    common_normals(*(column[:1000] for column in given))
    times = []
    for _ in range(5):
        began = time.perf_counter()
        _, gap = common_normals(*given)
        times.append(time.perf_counter() - began)
    result = {
        "count": count,
        "million pairs a second": count / median(times) / 1e6,
        "best": count / min(times) / 1e6,
        "deeper than least": float((gap < -least).mean()),
    }
    if PEERS.exists() and not subprocess.run([PEERS, "-c", "import mujoco"], capture_output=True).returncode:
        source, target = cache() / "pairs.npz", cache() / "distances.npz"
        head = {"d": d, "size_a": size_a, "size_b": size_b, "turn_a": turn_a, "turn_b": turn_b}
        np.savez(source, **{name: column[:few] for name, column in head.items()})
        subprocess.run([PEERS, ROOT / "benchmarks" / "mujoco_pairs.py", source, target], check=True)
        peer = np.load(target)
        size = size_a[:few].max(1) + size_b[:few].max(1)
        error = np.abs(peer["distance"] - gap[:few]) / size
        result["MuJoCo million pairs a second a core"] = few / float(peer["seconds"]) / 1e6
        result["MuJoCo against clast, median and worst, of the size"] = [float(np.median(error)), float(error.max())]
        result["MuJoCo deeper than clast by more than 1e-9"] = int((peer["distance"] < gap[:few] - 1e-9 * size).sum())
        result["clast deeper than MuJoCo by more than 1e-9"] = int((peer["distance"] > gap[:few] + 1e-9 * size).sum())
        result["MuJoCo"] = str(peer["version"])
    return result


def field(count, seed=0):
    """Positions (n,3) [m], radii (n,) [m] and orientations (n,4) at the density of the paper."""
    rng = np.random.default_rng(seed)
    side = (count / DENSITY) ** (1.0 / 3.0)
    return rng.uniform(0.0, side, (count, 3)), np.maximum(rng.uniform(0.0, LARGEST, count), 1e-3), turns(rng, count)[1]


def detection(quick):
    """Seconds of whole contact detection for growing numbers of bodies."""
    sizes = [131_072, 262_144] if quick else [131_072, 262_144, 524_288, 1_048_576, 1_677_696, 2_097_152]
    rows = []
    for count in sizes:
        position, radius, orientation = field(count)
        balls = clast.Scene()
        balls.add(clast.Sphere(1.0), position=position, scale=radius)
        scenes = {}
        for name, axes in SHAPES.items():
            scenes[name] = clast.Scene()
            scenes[name].add(clast.Ellipsoid(*axes), position=position, orientation=orientation, scale=radius)
        roads = [("spheres", balls, {})]
        roads += [(name, scene, {"narrow": narrow}) for name, scene in scenes.items() for narrow in ("opm", "chm+opm")]
        roads.append(("equal half-axes", scenes["equal half-axes"], {"narrow": "chm+opm", "broad": "boxes"}))
        times, found = {}, {}
        for turn in range(6):
            for name, scene, options in roads:
                key = " ".join([name, *options.values()])
                began = time.perf_counter()
                contacts = clast.find_contacts(scene, sort=False, **options)
                if turn:
                    times.setdefault(key, []).append(time.perf_counter() - began)
                found[key] = len(contacts.gap)
                del contacts
        for key, seconds in times.items():
            ratio = median([a / b for a, b in zip(seconds, times["spheres"], strict=True)])
            rows.append(
                {"bodies": count, "what": key, "contacts": found[key], "seconds": median(seconds), "ratio": ratio}
            )
            console.print(rows[-1])
    return rows


def settled(count):
    """A simulation of ellipsoids at rest in a box; made once and kept."""
    path = cache() / f"ellipsoids-{count}.h5"
    if path.exists():
        try:
            return clast.resume(path)
        except Exception as fault:  # made by another version
            console.print(f"{path} cannot be used and is made again: {fault}")
    rock = clast.Material(density=2500, young=1e7, poisson=0.25, friction=0.5, restitution=0.5)
    side = 0.05 * (count / 5000) ** 0.5
    scene = clast.Scene()
    places = {
        (0, 0, 1): (0, 0, 0),
        (1, 0, 0): (0, 0, 0),
        (-1, 0, 0): (side, 0, 0),
        (0, 1, 0): (0, 0, 0),
        (0, -1, 0): (0, side, 0),
    }
    for normal, position in places.items():
        scene.add(clast.Plane(normal), position=position, material=rock)
    seed = clast.Ellipsoid(1.25e-3, 1e-3, 0.8e-3)
    box = ((0, 0, 0), (side, side, 0.3))
    scene.fill(seed, count=count, box=box, material=rock, method="lattice", jitter=0.05, seed=1)
    sim = clast.Simulation(scene, clast.DEM(law="hertz"), dt=2e-5)
    sim.run(until=0.2)
    sim.save(path)
    return sim


def dem(quick):
    """Particle-steps a second."""
    rows = []
    for count in [5_000] if quick else [5_000, 100_000]:
        sim = settled(count)
        sim.step(50)
        steps = max(100, 4_000_000 // count)
        rates, rebuilds = [], sim.state.rebuilds
        for _ in range(5):
            began = time.perf_counter()
            sim.step(steps)
            rates.append(count * steps / (time.perf_counter() - began) / 1e6)
        rows.append(
            {
                "bodies": count,
                "million particle-steps a second": median(rates),
                "best": max(rates),
                "contacts a body": clast.measure.coordination(sim),
                "steps a list": 5 * steps / max(sim.state.rebuilds - rebuilds, 1),
                "kinetic energy [J]": sim.kinetic_energy(),
            }
        )
        console.print(rows[-1])
    return rows


def draw(rows):
    """Seconds against contacts for both methods, as in figures 5 to 8 of the paper."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axis = plt.subplots(figsize=(7.0, 4.5))
    names = {
        "equal half-axes opm": "equal half-axes, Method-1 (OpM)",
        "equal half-axes chm+opm": "equal half-axes, Method-2 (ChM + OpM)",
        "equal half-axes chm+opm boxes": "equal half-axes, Method-2, ten-stage boxes",
        "1 : 0.8 : 0.6 opm": "1 : 0.8 : 0.6, Method-1",
        "1 : 0.8 : 0.6 chm+opm": "1 : 0.8 : 0.6, Method-2",
        "spheres": "spheres",
    }
    for key, label in names.items():
        chosen = [row for row in rows if row["what"] == key]
        if chosen:
            contacts, seconds = [row["contacts"] / 1e6 for row in chosen], [row["seconds"] for row in chosen]
            axis.plot(contacts, seconds, "o-", label=label, markersize=4)
    axis.set(xlabel="contacts [million]", ylabel="whole detection [s]", xlim=(0, None), ylim=(0, None))
    axis.grid(alpha=0.3)
    axis.legend(frameon=False, fontsize=8)
    figure.tight_layout()
    figure.savefig(ROOT / "docs" / "images" / "ellipsoid-detection.png", dpi=130)


def show(results):
    """Print what is there as tables."""
    for part, rows in results.items():
        rows = rows if isinstance(rows, list) else [rows]
        table = Table(title=part)
        for name in rows[0]:
            table.add_column(name)
        for row in rows:
            table.add_row(*(f"{value:.4g}" if isinstance(value, float) else str(value) for value in row.values()))
        console.print(table)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="smaller sizes")
    parser.add_argument("--only", choices=("pairs", "detection", "dem"), help="one part; the others stay as stored")
    parser.add_argument("--install", action="store_true", help="install the peer and stop")
    options = parser.parse_args()
    if options.install:
        subprocess.run([PEERS, "-m", "pip", "install", "mujoco"], check=True)
        return
    path = RESULTS / f"ellipsoids-{machine()}.json"
    results = json.loads(path.read_text()) if path.exists() else {}
    for name, function in (("pairs", pairs), ("detection", detection), ("dem", dem)):
        if options.only in (None, name):
            results[name] = function(options.quick)
            path.parent.mkdir(exist_ok=True)
            path.write_text(json.dumps(results, indent=1) + "\n")
    show(results)
    if results.get("detection"):
        draw(results["detection"])


if __name__ == "__main__":
    main()

"""Dense random packings of frictionless ellipsoids: density and coordination against aspect ratio.

Donev et al., Science 303 (2004) 990, found that disordered packings of ellipsoids are denser than those of spheres, up to
about 0.735 for half-axes 1.25 : 1 : 0.8, with up to about 10 contacts for a spheroid and 12 for a triaxial ellipsoid. This
program makes such packings with the discrete elements of clast and writes a figure and the table of docs/validation.md.

    python validation/ellipsoid_packing.py             # all shapes
    python validation/ellipsoid_packing.py --quick     # three shapes, small packings, nothing written

Protocol, the soft counterpart of the compression of Donev et al. (Lubachevsky and Stillinger). Lengths are in radii of the
ball of the same volume, mass and contact stiffness are 1. The box is periodic in all directions, so there is no wall, no
gravity, and the core is the whole box.

1. Particles at random places and orientations at density 0.1 (less for long ones), with random velocities.
2. The box shrinks little by little; contacts are frictionless linear springs without damping, and velocities are
   scaled back to a fixed temperature, until the springs hold as much energy as the motion: the packing is stuck.
3. The motion is taken out by damped contacts and drag, the box is pressed to a mean overlap of OVERLAPS[0] diameters and
   then opened to the smaller ones in turn, and brought to rest each time.

The density is volume of the particles over volume of the box, both exact. Overlapping volume is counted twice; so the
density where contact begins is read off a straight line through the last two states, at overlap zero. The error that is
given is the difference to what the line through the two states before says. Coordination is contacts a particle among those
that are held (at least four contacts), at the smallest overlap.
"""

import argparse
import json
import math
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

import clast

ROOT = Path(__file__).resolve().parents[1]
FIGURE = ROOT / "docs" / "images" / "ellipsoid-packing.png"
PAGE = ROOT / "docs" / "validation.md"

START = 0.1  # density of the random filling
ROOM = 0.3  # the same counted with the balls around the particles, at most
HOT = 0.01  # speed of the thermal motion, radii a unit of time
DENSE = 0.45  # density from which the compression is slow
OVERLAPS = (3e-3, 1e-3, 3e-4, 1e-4)  # mean overlap, in diameters of the ball of the same volume
STILL = 1e-3  # at rest: kinetic over elastic energy


@dataclass(frozen=True)
class Packing:
    """Particles of one shape in a periodic cube of edge `length`."""

    shape: object
    length: float
    position: np.ndarray
    orientation: np.ndarray
    velocity: np.ndarray
    spin: np.ndarray

    @property
    def density(self):
        """Volume of the particles over volume of the box."""
        return len(self.position) * self.shape.volume / self.length**3

    def squeezed(self, factor):
        """The same in a box whose edge is `factor` times as long."""
        return replace(self, length=factor * self.length, position=factor * self.position)

    def slowed(self, factor):
        """The same with `factor` times the velocities, and no drift of the whole."""
        velocity = self.velocity - self.velocity.mean(0)
        return replace(self, velocity=factor * velocity, spin=factor * self.spin)


def make_shape(axes):
    """Ellipsoid with these ratios of half-axes and the volume of the unit ball."""
    axes = np.array(axes, float) / math.prod(axes) ** (1 / 3)
    return clast.Sphere(1.0) if np.ptp(axes) == 0 else clast.Ellipsoid(*axes)


def fill(shape, count, seed):
    """Random places and orientations, and velocities of the temperature HOT^2."""
    reach = max(getattr(shape, "axes", (1.0,)))
    length = (count * max(shape.volume / START, 4 / 3 * math.pi * reach**3 / ROOM)) ** (1 / 3)
    scene = clast.Scene()
    scene.fill(shape, count=count, box=((0, 0, 0), (length, length, length)), seed=seed)
    random = np.random.default_rng(seed)
    velocity, spin = HOT * random.normal(size=(2, count, 3))
    return Packing(shape, length, scene.bodies.position, scene.bodies.orientation, velocity, spin).slowed(1.0)


def advance(packing, steps, restitution):
    """The packing some steps later, and its simulation."""
    rock = clast.Material(
        density=1 / packing.shape.volume, stiffness=1.0, friction=0.0, restitution=restitution, young=1.0
    )
    scene = clast.Scene(gravity=(0, 0, 0), world=((0, 0, 0), (packing.length,) * 3), periodic=(True, True, True))
    scene.add(
        packing.shape,
        position=packing.position,
        orientation=packing.orientation,
        velocity=packing.velocity,
        spin=packing.spin,
        material=rock,
    )
    sim = clast.Simulation(scene, clast.DEM(law="linear"))
    sim.step(steps)
    bodies = sim.bodies
    moved = replace(
        packing,
        position=bodies.position,
        orientation=bodies.orientation,
        velocity=bodies.velocity,
        spin=bodies.spin,
    )
    return moved, sim


def heat_and_squeeze(packing, rate, say, steps=100):
    """Shrink the box at `rate` times the thermal speed, tenfold while there is room, until the packing is stuck."""
    while True:
        packing, sim = advance(packing, steps, 1.0)
        energy = clast.measure.energy(sim)
        motion = energy["kinetic"] + energy["rotational"]
        freedom = 3 if isinstance(packing.shape, clast.Sphere) else 6
        warm = 0.5 * freedom * len(packing.position) * HOT**2
        say(f"shrinking: density {packing.density:.4f}, springs over motion {energy['elastic'] / motion:.3f}")
        if energy["elastic"] > motion and packing.density > DENSE:
            return packing
        shrink = rate * HOT * sim.dt * steps * (10 if packing.density < DENSE else 1)
        packing = packing.slowed(math.sqrt(warm / motion)).squeezed(1 - shrink)


def rest(packing, say, steps=50, most=150):
    """Let the packing come to rest by damped contacts and drag; returns it, its simulation and the mean overlap."""
    for _ in range(most):
        packing, sim = advance(packing.slowed(0.7), steps, 0.1)
        energy = clast.measure.energy(sim)
        if energy["kinetic"] + energy["rotational"] < STILL * energy["elastic"] or energy["elastic"] < 1e-12:
            break
    overlap = -sim.contacts().gap
    mean = float(overlap.mean()) / 2 if len(overlap) else 0.0
    say(f"resting: density {packing.density:.5f}, mean overlap {mean:.2e} diameters")
    return packing, sim, mean


def open_to(packing, target, say):
    """The packing at rest with the mean overlap `target` (within a tenth); its simulation, and the overlap."""
    packing, sim, mean = rest(packing, say)
    for _ in range(12):
        if abs(mean - target) < 0.1 * target:
            break
        # Without rearrangement the overlap would change by what the box changes.
        packing, sim, mean = rest(packing.squeezed(1 + 0.8 * (mean - target)), say)
    return packing, sim, mean


def held(sim, least=4):
    """Mean number of contacts of the particles with at least `least` contacts with each other, and their share."""
    pair = sim.contacts().pair
    count = len(sim.bodies.number)
    alive = np.ones(count, bool)
    while True:
        inner = pair[alive[pair].all(1)]
        contacts = np.bincount(inner.ravel(), minlength=count)
        fewer = alive & (contacts >= least)
        if (fewer == alive).all():
            return float(contacts[alive].mean()), float(alive.mean())
        alive = fewer


def at_contact(wide, narrow):
    """Density at overlap zero on the straight line through two states (overlap, density)."""
    return narrow[1] - narrow[0] * (wide[1] - narrow[1]) / (wide[0] - narrow[0])


def pack(axes, count, seed, rate, say):
    """One packing: dict with density, its error, coordination, and the states that led there."""
    began = time.perf_counter()
    packing = heat_and_squeeze(fill(make_shape(axes), count, seed), rate, say).squeezed(1 - OVERLAPS[0])
    states = []
    for target in OVERLAPS:
        packing, sim, mean = open_to(packing, target, say)
        states.append((mean, packing.density))
    density = at_contact(*states[-2:])
    contacts, share = held(sim)
    return {
        "axes": list(axes),
        "count": count,
        "seed": seed,
        "density": density,
        "error": abs(at_contact(*states[-3:-1]) - density),
        "coordination": contacts,
        "held": share,
        "states": states,
        "seconds": time.perf_counter() - began,
    }


# Half-axes by family and aspect ratio, the longest half-axis over the shortest. The middle one of the triaxial family is
# the geometric mean of the other two, so 1.25 : 1 : 0.8 has aspect ratio 1.5625.
FAMILIES = {
    "sphere": {1.0: (1.0, 1.0, 1.0)},
    "prolate": {a: (a, 1.0, 1.0) for a in (1.25, 1.6, 2.0, 2.5)},
    "oblate": {a: (a, a, 1.0) for a in (1.25, 1.5, 1.9, 2.5)},
    "triaxial": {1.25: (1.25, 1.25**0.5, 1.0), 1.5625: (1.25, 1.0, 0.8), 2.25: (2.25, 1.5, 1.0)},
}
# Donev et al. (2004): about 0.735 for 1.25 : 1 : 0.8; Man et al. (2005) measured 0.74 +- 0.005. Spheres: about 0.64.
EXPECTED = {
    ("sphere", 1.0): (0.63, 0.645),
    ("oblate", 1.9): (0.69, 0.71),
    ("triaxial", 1.5625): (0.73, 0.745),
}
# Twice the degrees of freedom: contacts that fix every particle. Disordered packings of ellipsoids have fewer.
MOST = {"sphere": 6, "prolate": 10, "oblate": 10, "triaxial": 12}
BEGIN, END = "<!-- ellipsoid packing -->", "<!-- /ellipsoid packing -->"


def draw(results, path):
    """Density and coordination against aspect ratio."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4.2), layout="constrained")
    round_one = [r for r in results if r["family"] == "sphere"]
    styles = {"prolate": ("C0", "o"), "oblate": ("C1", "s"), "triaxial": ("C2", "^")}
    for family, (colour, mark) in styles.items():
        rows = sorted(round_one + [r for r in results if r["family"] == family], key=lambda r: r["aspect"])
        aspect = [r["aspect"] for r in rows]
        left.plot(aspect, [r["density"] for r in rows], color=colour, marker=mark, label=family)
        right.plot(aspect, [r["coordination"] for r in rows], color=colour, marker=mark, label=family)
    for (family, aspect), (low, high) in EXPECTED.items():
        colour = styles.get(family, ("black", ""))[0]
        left.errorbar(
            aspect, 0.5 * (low + high), 0.5 * (high - low), color=colour, capsize=6, lw=5, alpha=0.3, zorder=0
        )
    for contacts, words in ((6, "spheres"), (10, "spheroids"), (12, "triaxial")):
        right.axhline(contacts, color="grey", lw=0.8, ls="--")
        right.text(2.5, contacts + 0.08, f"{contacts}: twice the degrees of freedom, {words}", ha="right", fontsize=8)
    left.set(xlabel="longest over shortest axis", ylabel="density")
    right.set(xlabel="longest over shortest axis", ylabel="contacts a particle", ylim=(5.7, 12.6))
    left.legend(loc="lower right")
    left.grid(alpha=0.3)
    right.grid(alpha=0.3)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)
    plt.close(figure)


def table(results):
    """Markdown table, ours beside the expected numbers."""
    lines = [
        "| shape | half-axes | particles | density | expected | contacts a particle | at most | held |",
        "|---|---|---:|---:|---|---:|---:|---:|",
    ]
    order = list(FAMILIES)
    for r in sorted(results, key=lambda r: (order.index(r["family"]), r["aspect"])):
        known = EXPECTED.get((r["family"], r["aspect"]))
        expected = "" if known is None else f"{known[0]:g} to {known[1]:g}"
        axes = " : ".join(f"{a:.4g}" for a in r["axes"])
        lines.append(
            f"| {r['family']} | {axes} | {r['count']} | {r['density']:.4f} | {expected} | {r['coordination']:.2f} "
            f"| {MOST[r['family']]} | {100 * r['held']:.1f} % |"
        )
    return "\n".join(lines)


def write_page(text, path):
    """Put the table between its two marks in the page."""
    page = path.read_text(encoding="utf-8")
    before, rest = page.split(BEGIN)
    after = rest.split(END)[1]
    path.write_text(f"{before}{BEGIN}\n{text}\n{END}{after}", encoding="utf-8")


def progress(label):
    """A function that writes one line over itself in a terminal, and a line now and then elsewhere."""
    began, last = time.perf_counter(), [0.0]

    def say(text):
        now = time.perf_counter() - began
        terminal = sys.stderr.isatty()
        if now - last[0] > (0.2 if terminal else 20.0):
            last[0] = now
            print(f"{label}, {now:.0f} s, {text}", end="   \r" if terminal else "\n", file=sys.stderr, flush=True)

    return say


def judge(result):
    """One line about a packing, and whether it is as expected."""
    known = EXPECTED.get((result["family"], result["aspect"]))
    fits = result["coordination"] < MOST[result["family"]] + (0.1 if result["family"] == "sphere" else 0.0)
    if known is not None:
        fits = fits and known[0] <= result["density"] <= known[1]
    words = f"{result['family']} {result['aspect']:g}: density {result['density']:.4f} +- {result['error']:.5f}"
    return f"{words}, {result['coordination']:.2f} contacts, {result['seconds']:.0f} s", fits


def main():
    """Make the packings, and the figure and table of them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--quick", action="store_true", help="the three shapes with expected densities, small; writes nothing"
    )
    parser.add_argument("--count", type=int, help="particles a packing (400; 150 with --quick)")
    parser.add_argument("--rate", type=float, default=0.02, help="speed of the box over that of the particles")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--results", type=Path, help="file with a line for each packing; those in it are not made again"
    )
    options = parser.parse_args()
    count = options.count or (150 if options.quick else 400)
    results = []
    if options.results and options.results.exists():
        results = [json.loads(line) for line in options.results.read_text(encoding="utf-8").splitlines()]
    done = {(r["family"], r["aspect"]) for r in results}
    todo = [
        *EXPECTED,
        *((f, a) for f in FAMILIES for a in FAMILIES[f] if (f, a) not in EXPECTED and not options.quick),
    ]
    missed = 0
    for number, (family, aspect) in enumerate(todo):
        if (family, aspect) in done:
            continue
        say = progress(f"{number + 1} of {len(todo)}: {family} {aspect:g}")
        result = pack(FAMILIES[family][aspect], count, options.seed, options.rate, say)
        result = {"family": family, "aspect": aspect, **result}
        results.append(result)
        words, fits = judge(result)
        missed += not fits
        print(words if fits else f"{words}  <- not as expected", flush=True)
        if options.results:
            with options.results.open("a", encoding="utf-8") as file:
                file.write(json.dumps(result) + "\n")
    print(table(results))
    if not options.quick:
        draw(results, FIGURE)
        write_page(table(results), PAGE)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())

"""Convex polyhedra: the collisions, the energy and the kinds of contact that Govender, Wilke and Kok (2015) show.

N. Govender, D. N. Wilke, S. Kok, Collision detection of convex polyhedra on the NVIDIA GPU architecture for the discrete element
method, Applied Mathematics and Computation 267 (2015) 810. This program repeats their Table 1 and figures 13 to 23 and 33
with clast and writes the figures and tables of docs/validation.md.

    python validation/polyhedra.py             # all of it
    python validation/polyhedra.py --quick     # short runs, nothing written

An octahedron with a bounding radius of 0.25 cm comes down on the face of a fixed cube, corner first. Their unit of length is
the centimetre; K_r = 1e9 then is 1e7 N/m^1.5. They give no mass: quartz, 2.65 g/cm^3, is taken, with which the overlap
at 4 m/s is 4 % of the bounding radius; they allow 5 %.
"""

import argparse
import math
import sys
import time
import warnings
from pathlib import Path

import numpy as np

import clast
from clast.dem import laws
from clast.scenes import cube_drum, gravity_packing
from clast.tables import POLYHEDRON

ROOT = Path(__file__).resolve().parents[1]
IMAGES = ROOT / "docs" / "images"
PAGE = ROOT / "docs" / "validation.md"

RADIUS, DENSITY, STEP, GRAVITY = 0.0025, 2650.0, 1e-5, 9.81
SPRING = 1e7  # [N/m^1.5]
PUBLISHED = {  # Table 1: speed before and after [m/s]
    0.0625: 0.062582,
    0.125: 0.125249,
    0.25: 0.250152,
    0.5: 0.501799,
    1.0: 0.996799,
    2.0: 1.997261,
    4.0: 4.013109,
}
PHASES = (0.1, 0.3, 0.5, 0.7, 0.9)  # steps from the start to the touch


def octahedron():
    """With corners on the axes."""
    return clast.Polyhedron(RADIUS * np.concatenate([np.eye(3), -np.eye(3)]))


MASS = DENSITY * octahedron().volume


def material(damping=0.0, shear=0.0, friction=0.0):
    """Quartz with the spring of the paper; damping [N s/m^1.5], shear [N s/m]."""
    return clast.Material(
        density=DENSITY, friction=friction, blaze_stiffness=SPRING, blaze_damping=damping, blaze_shear=shear
    )


def above_cube(height, speed, rock, method, *, dt=STEP, gravity=0.0):
    """Simulation of an octahedron `height` [m] above the face of a fixed cube at z = 0, coming down at `speed`."""
    scene = clast.Scene(gravity=(0, 0, -gravity))
    edge = 4.0 * RADIUS
    scene.add(clast.Polyhedron.box(edge, edge, edge), position=(0, 0, -0.5 * edge), motion="fixed", material=rock)
    scene.add(octahedron(), position=(0, 0, RADIUS + height), velocity=(0, 0, -speed), material=rock)
    return clast.Simulation(scene, method, dt=dt)


def follow(sim, until=None):
    """Time, overlap, velocity and force, each (n,), of the octahedron: until it has rebounded, or until a time."""
    rows = []
    while True:
        sim.step()
        bodies = sim.bodies
        z, v = bodies.position[1, 2], bodies.velocity[1, 2]
        rows.append((sim.time, RADIUS - z, v, bodies.force[1, 2]))
        if sim.time >= until if until else z > RADIUS and v > 0.0:
            return np.array(rows).T


def head_on(speed, phase, *, conserving, dt=STEP, damping=0.0, attraction=False):
    """A collision head-on that begins `phase` steps after the start: what `follow` gives."""
    method = clast.DEM(law="blaze", conserving=conserving, attraction=attraction)
    return follow(above_cube(phase * speed * dt, speed, material(damping), method, dt=dt))


def closed_depth(speed):
    """Largest overlap [m] of the spring: m v^2 / 2 = 2/5 K d^2.5."""
    return (1.25 * MASS * speed**2 / SPRING) ** 0.4


def rebounds():
    """Table 1: for each speed the largest error of the speed after the collision, for two forms of the law and two steps."""
    result = {}
    for speed in PUBLISHED:
        result[speed] = [
            max(abs(head_on(speed, phase, conserving=c, dt=dt)[2][-1] / speed - 1.0) for phase in PHASES)
            for c, dt in ((False, STEP), (False, 0.1 * STEP), (True, STEP))
        ]
    return result


def rebound_table(errors):
    """Markdown: ours beside Table 1."""
    lines = [
        "| speed [m/s] | depth, share of the radius | steps a contact | paper, 1e-5 s | as written, 1e-5 s | as written, 1e-6 s | conserving, 1e-5 s |",
        "|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for speed, ours in errors.items():
        depth = closed_depth(speed)
        theirs = abs(PUBLISHED[speed] / speed - 1.0)
        numbers = " | ".join(f"{error:.1e}" for error in (theirs, *ours))
        steps = 2.9433 * depth / speed / STEP
        lines.append(f"| {speed:g} | {100 * depth / RADIUS:.2f} % | {steps:.1f} | {numbers} |")
    return "\n".join(lines)


def slide(until, dt=STEP):
    """Figure 20: 2 m/s along, 0.5 m/s down, from 0.75 cm, no rotation: time, height, velocity along, shear force.

    A body that does not turn is the law alone: it is called here from Python. K_D is that of figures 16 to 19, 5e4 in their
    units; with 2e5, which the caption has, a body of this mass does not leave the surface again.
    """
    mix = laws.Mix(SPRING, 0.0, 4.0, 500.0, 1.54, 0.0, -1e300)
    height, down, along, force, shear, rows = 0.0075, 0.5, 2.0, 0.0, 0.0, []
    for k in range(round(until / dt)):
        down += 0.5 * dt * (GRAVITY - force / MASS)
        along += 0.5 * dt * shear / MASS
        height -= dt * down
        force = shear = 0.0
        if height < 0.0:
            touch = laws.Touch(-height, down, (0.0, 0.0, 1.0), (along, 0.0, 0.0), (0.0, 0.0, 0.0), MASS, RADIUS)
            force, (shear, _, _), _ = laws.blaze(touch, mix, dt)
        down += 0.5 * dt * (GRAVITY - force / MASS)
        along += 0.5 * dt * shear / MASS
        rows.append(((k + 1) * dt, height, along, abs(shear)))
    return np.array(rows).T


def energy_error(dt, conserving, until, corner_first, count=9):
    """Figure 22: largest error of the energy, over the energy at the start, of octahedra that fall on a plane and bounce.

    corner_first: none is turned, and none ever touches with more than one corner; otherwise they are turned at random.
    """
    rock = material()
    scene = clast.Scene(gravity=(0, 0, -GRAVITY))
    scene.add(clast.Plane(), material=rock)
    k = np.arange(count)
    random = np.random.default_rng(1)
    place = 4.0 * RADIUS * np.stack([k % 3, k // 3 % 3, k // 9 + 1.0], axis=1)
    turned = [(1.0, 0.0, 0.0, 0.0)] * count if corner_first else random.normal(size=(count, 4))
    scene.add(octahedron(), position=place, orientation=turned, material=rock)
    sim = clast.Simulation(scene, clast.DEM(law="blaze", conserving=conserving), dt=dt)
    sim.start()
    first = clast.measure.energy(sim)["total"]
    worst = 0.0
    for _ in sim.frames(until=until, every=2e-3):
        worst = max(worst, abs(clast.measure.energy(sim)["total"] / first - 1.0))
    return worst


def spinning_cube(dt=STEP):
    """Figure 23: angle [degrees] after one second at one turn a second, and how far a corner is from its circle [edges]."""
    scene = clast.Scene(gravity=(0, 0, 0))
    cube = clast.Polyhedron.box(0.005, 0.005, 0.005)
    scene.add(cube, spin=(2.0 * math.pi, 0, 0))
    sim = clast.Simulation(scene, clast.DEM(), dt=dt)
    corner, turned, off = cube.vertices[0], 0.0, 0.0
    before = corner
    for _ in range(100):
        sim.step(round(0.01 / dt))
        w, x, y, z = sim.bodies.orientation[0]
        u = np.array([x, y, z])
        now = corner + 2.0 * np.cross(u, np.cross(u, corner) + w * corner)
        step = math.atan2(before[1] * now[2] - before[2] * now[1], before[1] * now[1] + before[2] * now[2])
        turned += math.degrees(step)
        off = max(off, abs(math.hypot(now[1], now[2]) / math.hypot(corner[1], corner[2]) - 1.0))
        before = now
    return turned, off


def corner_inside(hulls, bodies, hull, pair):
    """Whether a corner of the second body of each pair (n,2), rows of bodies, is inside the first: (n,) bool.

    hull (bodies,): row of Hulls of each body. What Govender et al. look for first, and call a contact of type 1.
    """
    found = np.zeros(len(pair), bool)
    for one, two in np.unique(hull[pair], axis=0):
        rows = np.flatnonzero((hull[pair] == (one, two)).all(axis=1))
        a, b = pair[rows].T
        corners = hulls.vertex[:, hulls.vertex_start[two] : hulls.vertex_start[two + 1]].T
        faces = slice(hulls.face_start[one], hulls.face_start[one + 1])
        turn_a, turn_b = matrices(bodies.orientation[a]), matrices(bodies.orientation[b])
        world = np.einsum("nij,vj->nvi", turn_b, corners) * bodies.scale[b, None, None]
        world += (bodies.position[b] - bodies.position[a])[:, None]
        own = np.einsum("nij,nvi->nvj", turn_a, world) / bodies.scale[a, None, None]
        inside = (own @ hulls.normal[:, faces] < hulls.offset[faces]).all(axis=2)
        found[rows] = inside.any(axis=1)
    return found


def matrices(orientation):
    """Rotation matrices (n,3,3) of unit quaternions (n,4), w first."""
    w, x, y, z = orientation.T
    rows = [
        [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
        [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
        [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
    ]
    return np.array(rows).transpose(2, 0, 1)


def contact_types(ready, until, every):
    """Figure 33: rows time, share of edge-edge among pairs of polyhedra counted in two ways, and number of pairs.

    First as the paper does, a pair of which no corner is inside the other body; then by the feature of the least way out.
    """
    sim = ready.simulation()
    parts, first_part = sim.scene.parts, sim.scene.molds.first
    rows = []
    for _ in sim.frames(until=until, every=every):
        contacts, bodies = sim.contacts(), sim.bodies
        part = first_part[bodies.mold]
        pair = np.searchsorted(bodies.number, contacts.pair)
        # The first point of each pair is the deepest.
        touching = np.flatnonzero((parts.kind[part[pair]] == POLYHEDRON).all(axis=1) & (contacts.gap < 0.0))
        if len(touching) == 0:
            continue
        pair, first = np.unique(pair[touching], axis=0, return_index=True)
        edges = contacts.feature[touching[first]] % 4 == 2
        hull = parts.feature[part]
        inside = corner_inside(sim.scene.hulls, bodies, hull, pair)
        inside |= corner_inside(sim.scene.hulls, bodies, hull, pair[:, ::-1])
        rows.append((sim.time, (~inside).mean(), edges.mean(), len(pair)))
    return np.array(rows).T


def draw_collisions(path, quick):
    """Figures 13 to 17."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, ((depth, velocity), (force, difference)) = plt.subplots(2, 2, figsize=(11, 8), layout="constrained")
    for speed in PUBLISHED:
        if speed < 0.25:
            continue
        t, d, v, _ = head_on(speed, 0.5, conserving=True)
        depth.plot(1e5 * t, 100 * np.maximum(d, 0) / RADIUS, marker=".", label=f"{speed:g} m/s")
        velocity.plot(1e5 * t, v, marker=".")
    depth.axhline(5, color="grey", ls="--", lw=0.8)
    depth.set(xlabel="step of 1e-5 s", ylabel="overlap [% of the radius]", title="13: elastic, head-on")
    velocity.set(xlabel="step of 1e-5 s", ylabel="velocity [m/s]", title="15: elastic, head-on")
    depth.legend()
    for damping, pulls, words in ((0.0, False, "elastic"), (500.0, True, "damped, may pull"), (500.0, False, "damped")):
        _, d, _, f = head_on(2.0, 0.5, conserving=True, dt=0.1 * STEP, damping=damping, attraction=pulls)
        force.plot(100 * np.maximum(d, 0) / RADIUS, f, label=words, ls="--" if words == "damped" else "-")
    force.axhline(0, color="grey", lw=0.8)
    force.set(xlabel="overlap [% of the radius]", ylabel="normal force [N]", title="14 and 16: 2 m/s")
    force.legend()
    for speed in (0.5, 1.0, 2.0, 4.0):
        t, d, v, _ = head_on(speed, 0.5, conserving=True, dt=0.1 * STEP, damping=500.0, attraction=True)
        d = np.maximum(d, 0.0)
        difference.plot(v, SPRING * d**1.5 - 500.0 * np.sqrt(d) * np.abs(v), label=f"{speed:g} m/s")
    difference.axhline(0, color="grey", lw=0.8)
    difference.set(xlabel="velocity [m/s]", ylabel="spring less dashpot [N]", title="17: damped")
    difference.legend()
    save(figure, path, quick)


def draw_motion(path, energies, quick):
    """Figures 18 to 22."""
    import matplotlib.pyplot as plt

    figure, ((fall, way), (drag, error)) = plt.subplots(2, 2, figsize=(11, 8), layout="constrained")
    method = clast.DEM(law="blaze", attraction=True)
    t, d, v, _ = follow(above_cube(0.005, 0.0, material(500.0), method, gravity=GRAVITY), 0.02 if quick else 0.12)
    fall.plot(t, -1e3 * d, color="C0")
    fall.set(xlabel="time [s]", ylabel="height of the corner [mm]", title="18 and 19: dropped from 5 mm")
    other = fall.twinx()
    other.plot(t, v, color="C1", lw=0.8)
    other.set_ylabel("velocity [m/s]", color="C1")
    t, height, along, shear = slide(0.02 if quick else 0.1)
    way.plot(t, 1e3 * height, color="C0")
    way.set(xlabel="time [s]", ylabel="height of the corner [mm]", title="20: oblique, no rotation")
    other = way.twinx()
    other.plot(t, along, color="C1")
    other.set_ylabel("velocity along [m/s]", color="C1")
    drag.loglog(np.maximum(along, 1e-4)[shear > 0], shear[shear > 0], ".", ms=2)
    reach = np.array([1e-4, 2.0])
    drag.loglog(reach, 4.0 * reach, color="grey", ls="--", lw=0.8, label="K_T v")
    drag.axhline(1.54 * MASS * GRAVITY, color="grey", ls=":", lw=0.8, label="mu m g")
    drag.set(xlabel="velocity along [m/s]", ylabel="shear force [N]", title="21: two regimes")
    drag.legend()
    for words, rows in energies.items():
        error.loglog(*np.array(rows).T, marker="o", label=words)
    steps = np.array([r[0] for r in next(iter(energies.values()))])
    top = next(iter(energies.values()))[0][1]
    error.loglog(steps, top * (steps / steps[0]) ** 2, color="grey", ls="--", lw=0.8, label="dt^2")
    error.set(xlabel="time step [s]", ylabel="largest error of the energy", title="22: octahedra bouncing on a plane")
    error.legend()
    save(figure, path, quick)
    return d, v


def draw_types(path, shares, quick):
    """Figure 33."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, len(shares), figsize=(12, 3.7), layout="constrained", sharey=True)
    for plot, (words, (t, share, least, pairs)) in zip(axes, shares.items(), strict=True):
        plot.plot(t, 100 * (1 - share), color="C0", label="a corner inside (type 1)")
        plot.plot(t, 100 * share, color="C1", label="no corner inside (type 2)")
        plot.plot(t, 100 * least, color="C1", ls="--", lw=0.9, label="least way out: edge-edge")
        plot.plot(t, 100 * pairs / pairs.max(), color="grey", ls=":", lw=0.9, label="pairs, of the most")
        plot.set(xlabel="time [s]", title=words, ylim=(0, 100))
    axes[0].set_ylabel("pairs [%]")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=4)
    save(figure, path, quick)


def save(figure, path, quick):
    """Write the picture, unless the run is quick."""
    import matplotlib.pyplot as plt

    if not quick:
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, dpi=90)
    plt.close(figure)


def type_table(shares):
    """Markdown: share of edge-edge contacts, counted in two ways, beside the paper's words.

    Few pairs make large shares, so the largest is taken while there are at least a fifth, or half, of the most pairs.
    """
    theirs = {
        "gravity packing": "at most 10 %",
        "the same, cubes turned": "",
        "drum, symmetric": "slightly more than 10 %",
        "drum, moving": "30 % at the impact, then as the others",
    }
    lines = [
        "| scene | paper | largest, a fifth of the pairs | largest, half | last quarter | least way out, largest | least way out, last quarter | pairs at the end |",
        "|---|---|---:|---:|---:|---:|---:|---:|",
    ]
    for words, (_, share, least, pairs) in shares.items():
        fifth, half, tail = (
            pairs >= 0.2 * pairs.max(),
            pairs >= 0.5 * pairs.max(),
            slice(-max(len(pairs) // 4, 1), None),
        )
        values = share[fifth].max(), share[half].max(), share[tail].mean(), least[fifth].max(), least[tail].mean()
        numbers = " | ".join(f"{100 * value:.1f} %" for value in values)
        lines.append(f"| {words} | {theirs[words]} | {numbers} | {int(pairs[-1])} |")
    return "\n".join(lines)


def write_page(name, text):
    """Put a table between its two marks in the page."""
    page = PAGE.read_text(encoding="utf-8")
    before, rest = page.split(f"<!-- {name} -->\n")
    after = rest.split(f"<!-- /{name} -->")[1]
    PAGE.write_text(f"{before}<!-- {name} -->\n{text}\n<!-- /{name} -->{after}", encoding="utf-8")


def energy_rows(quick):
    """Figure 22 as {form: [(dt, error)]}, and its Markdown table."""
    steps = (1e-5, 5e-6) if quick else (1e-5, 5e-6, 2.5e-6)
    until = 0.05 if quick else 0.15
    forms = {"as written": (False, True), "conserving": (True, True), "conserving, turned at random": (True, False)}
    rows = {
        words: [(dt, energy_error(dt, form, until, first)) for dt in steps] for words, (form, first) in forms.items()
    }
    lines = [f"| time step [s] | {' | '.join(rows)} |", "|---:|" + "---:|" * len(rows)]
    for k, dt in enumerate(steps):
        lines.append(f"| {dt:g} | " + " | ".join(f"{row[k][1]:.1e}" for row in rows.values()) + " |")
    return rows, "\n".join(lines)


def main():
    """Run everything and say what came out."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="short runs; writes nothing")
    quick = parser.parse_args().quick
    warnings.filterwarnings("ignore", "dt = ")  # 8 steps a contact is what the paper takes
    began = time.perf_counter()

    def say(text):
        print(f"[{time.perf_counter() - began:.0f} s] {text}", flush=True)

    errors = rebounds()
    say(rebound_table(errors))
    angle, off = spinning_cube(10 * STEP if quick else STEP)
    say(f"spinning cube: {angle:.10f} degrees after 1 s, a corner off its circle by {off:.1e}")
    energies, energy_text = energy_rows(quick)
    say(energy_text)
    draw_collisions(IMAGES / "polyhedra-collision.png", quick)
    t, height, along, _ = slide(0.1)
    touches = t[np.flatnonzero(np.diff((height < 0).astype(int)) == 1)]
    sliding = (t > 0.058) & (along > 0.05)
    slope = np.polyfit(t[sliding], along[sliding], 1)[0]
    say(
        f"oblique: touches at {np.round(touches, 4)} s, then slows down at {-slope:.3f} m/s^2 (mu g = {1.54 * GRAVITY:.3f})"
    )
    depth, velocity = draw_motion(IMAGES / "polyhedra-motion.png", energies, quick)
    say(f"dropped: last overlap {depth[-1] / RADIUS:.2e} radii, velocity {velocity[-1]:.1e} m/s")
    until, count = (0.05, 60) if quick else (0.4, 1024)
    scenes = {
        "gravity packing": gravity_packing(count - 24, start="tight"),
        "the same, cubes turned": gravity_packing(count),
        "drum, symmetric": cube_drum(count, start="symmetric"),
        "drum, moving": cube_drum(count),
    }
    shares = {words: contact_types(ready, until, 0.005) for words, ready in scenes.items()}
    say(type_table(shares))
    draw_types(IMAGES / "polyhedra-types.png", shares, quick)
    if not quick:
        for name, text in (
            ("polyhedra rebound", rebound_table(errors)),
            ("polyhedra energy", energy_text),
            ("polyhedra types", type_table(shares)),
        ):
            write_page(name, text)
    good = max(row[2] for row in errors.values()) < 1e-4 and abs(angle - 360.0) < 360.0 * 1e-9
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())

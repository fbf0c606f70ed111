"""What all benchmarks share: the packings, the machine, memory, medians, and how a child process hands back numbers.

Nothing here times anything against a wall clock limit: a benchmark reports a ratio between two roads that ran in turn.
"""

import json
import os
import platform
import re
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
PACKINGS = ROOT.parent / "shared" / "data" / "packings"
RESULTS = HERE / "results"
sys.path.insert(0, str(ROOT / "src"))  # the code beside these files is what is measured, installed or not

# The benchmark material and step, the same for every code that runs a packing.
DENSITY = 2500.0  # [kg/m^3]
YOUNG = 1e7  # [Pa]
POISSON = 0.25
FRICTION = 0.5
RESTITUTION = 0.5
STEP = 2e-5  # [s]
GRAVITY = 9.81  # [m/s^2]

BASES = {10_000: 0.102941778, 100_000: 0.221781337}  # side of the square floor [m]
TILES = (5, 2)  # a million is the second packing laid out 5 by 2


def cache():
    """A folder for what is made once and can be made again: packings, peer input, the compiled C++ loop."""
    folder = Path(tempfile.gettempdir()) / f"clast-benchmarks-{os.getuid() if hasattr(os, 'getuid') else 'user'}"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def packing(count):
    """Settled spheres: (n,4) x y z radius [m] and the sides (2,) of the walled floor [m], its corner at the origin."""
    if count == 1_000_000:
        tile, (side, _) = packing(100_000)
        copies = []
        for i in range(TILES[0]):
            for j in range(TILES[1]):
                copies.append(tile + np.array([i * side, j * side, 0.0, 0.0]))
        return np.concatenate(copies), (TILES[0] * side, TILES[1] * side)
    if count not in BASES:
        raise ValueError(f"no packing of {count} spheres (known: 10000, 100000, 1000000)")
    for folder in (PACKINGS, cache()):
        path = folder / f"spheres_{count}.npy"
        if path.exists():
            return np.load(path), (BASES[count], BASES[count])
    spheres = settle(count, BASES[count])
    np.save(cache() / f"spheres_{count}.npy", spheres)
    return spheres, (BASES[count], BASES[count])


def settle(count, side, until=0.35):
    """Let a loose lattice of 2 to 3 mm spheres fall and come to rest with clast; minutes for 100,000."""
    import clast

    print(f"no stored packing of {count} spheres: settling one with clast (once; kept in {cache()})", file=sys.stderr)
    random = np.random.default_rng(1)
    pitch = 6.05e-3
    row = int(side / pitch)
    index = np.arange(count)
    place = np.stack([index % row, index // row % row, index // row**2], axis=1)
    position = (place + 0.5) * (side / row, side / row, pitch)
    radius = random.uniform(2e-3, 3e-3, count)
    position[:, :2] += random.uniform(-1.0, 1.0, (count, 2)) * (0.5 * side / row - radius)[:, None]
    simulation = clast.Simulation(walled(position, radius, (side, side)), clast.DEM(law="hertz"), dt=STEP)
    simulation.run(until=until, every=0.05, output=None, progress=True)
    bodies = simulation.bodies
    loose = np.isfinite(bodies.mass)
    return np.column_stack([bodies.position[loose], bodies.scale[loose]])


def walled(position, radius, sides, velocity=(0.0, 0.0, 0.0)):
    """A clast scene: these spheres on a floor between four walls."""
    import clast

    stone = clast.Material(
        density=DENSITY, young=YOUNG, poisson=POISSON, friction=FRICTION, restitution=RESTITUTION, name="stone"
    )
    scene = clast.Scene(gravity=(0.0, 0.0, -GRAVITY))
    scene.add(clast.Sphere(1.0), position=position, scale=radius, velocity=velocity, material=stone)
    for normal, at in (
        ((0, 0, 1), (0, 0, 0)),
        ((1, 0, 0), (0, 0, 0)),
        ((-1, 0, 0), (sides[0], 0, 0)),
        ((0, 1, 0), (0, 0, 0)),
        ((0, -1, 0), (0, sides[1], 0)),
    ):
        scene.add(clast.Plane(normal=normal), position=at, material=stone)
    return scene


def stirred(count, speed):
    """Starting velocities (n,3) [m/s], normal with this standard deviation, the same for every code."""
    return np.random.default_rng(7).normal(0.0, 1.0, (count, 3)) * speed


def resident():
    """Memory this process holds now [bytes]."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return peak()


def peak():
    """The most memory this process has ever held [bytes].

    Linux hands the parent's getrusage peak on to a child, so a small child of a large process would look large there.
    """
    status = Path("/proc/self/status")
    found = re.search(r"VmHWM:\s*(\d+)", status.read_text()) if status.exists() else None
    if found:
        return int(found.group(1)) * 1024
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else most * 1024


def median(values):
    """Median of a list, as a float."""
    return float(statistics.median(values))


def clock():
    """Core-seconds used on the whole machine, and by this process and its finished children."""
    own = sum(sum(resource.getrusage(who)[:2]) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    try:
        used = Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]
    except OSError:
        return own, own
    ticks = sum(int(used[i]) for i in (0, 1, 2, 5, 6))  # user, nice, system, interrupts
    return ticks / os.sysconf("SC_CLK_TCK"), own


class Others:
    """How many cores other processes used while this was open: above 0.1 a timing is disturbed."""

    cores = None

    def __enter__(self):
        self.start, self.before = time.perf_counter(), clock()
        return self

    def __exit__(self, *_):
        seconds = time.perf_counter() - self.start
        whole, own = clock()
        self.cores = round(max(0.0, (whole - self.before[0]) - (own - self.before[1])) / seconds, 2)


def quiet(wait=30.0, cores=0.15):
    """Wait until other processes leave the machine alone, at most `wait` seconds; returns whether they do."""
    end = time.perf_counter() + wait
    while True:
        with Others() as others:
            time.sleep(0.5)
        if others.cores <= cores:
            return True
        if time.perf_counter() > end:
            return False


def machine():
    """A name for this kind of machine, such as amd-epyc-2-cores."""
    model = platform.processor() or platform.machine()
    try:
        found = re.search(r"model name\s*:\s*(.+)", Path("/proc/cpuinfo").read_text())
        model = found.group(1) if found else model
    except OSError:
        pass
    model = re.sub(r"\(.*?\)|@.*|\b(CPU|Processor|\d+-Core)\b", " ", model)
    name = "-".join(re.findall(r"[a-z0-9]+", model.lower()))
    return f"{name}-{cores()}-cores"


def cores():
    """Cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()


def clast_here():
    """Whether clast can be imported, and the reason if not."""
    done = subprocess.run(
        [sys.executable, "-c", "from clast import Simulation"], env=environment(), capture_output=True, text=True
    )
    return done.returncode == 0, done.stderr.strip().splitlines()[-1] if done.stderr.strip() else ""


def environment(**extra):
    """Environment for child processes: clast is found in the source tree even where it is not installed, with bytecode, as installations have."""
    paths = [str(ROOT / "src")] + ([os.environ["PYTHONPATH"]] if os.environ.get("PYTHONPATH") else [])
    around = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {**around, "PYTHONPATH": os.pathsep.join(paths), **extra}


def child(script, *arguments, **extra):
    """Run one of these scripts in a process of its own; the last line it prints is JSON."""
    command = [sys.executable, str(HERE / script), *map(str, arguments)]
    done = subprocess.run(command, env=environment(**extra), capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)} failed:\n{done.stdout[-1000:]}{done.stderr[-3000:]}")
    return json.loads(done.stdout.strip().splitlines()[-1])

"""Attacks on the program: each takes a folder, a seed and a number of tries, and returns outcomes, {what happened: how often}.

Outcomes that begin with BAD are what must never happen. The quick tests take a few tries of each, `make reliability` many.
"""

import hashlib
import itertools
import json
import math
import os
import resource
import select
import shutil
import signal
import subprocess
import sys
import time
import tomllib
import warnings
from collections import Counter
from pathlib import Path

import numba
import numpy as np
import solids
from exchanged import SCENE

import clast
from clast import errors, scenefile
from clast.files import checkpoint
from clast.files.trajectory import Trajectory
from clast.kernels.vec import rotation_matrices

BAD = "BAD: "
HERE = Path(__file__).resolve().parent
MEMORY = 6 << 30  # bytes of address space that an attack may take
SECONDS = 10  # of processor time that one try may take: other work on the machine is no hang
PATIENCE = 300  # looks, one a second, that one try may take if it waits for something


def apart(maker, tries, **given):
    """Outcomes of so many tries of an attack, MAKERS[maker](**given)(k), counted, in a process of its own, which a hang or crash ends."""
    counted, first = Counter(), 0
    source = str(Path(clast.__file__).parents[1])
    while first < tries:
        command = [sys.executable, str(HERE / "attacks.py"), maker, json.dumps(given), str(first), str(tries)]
        with subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            bufsize=0,  # a line that waits in a buffer is not seen by select
            env=os.environ | {"PYTHONPATH": source, "NUMBA_NUM_THREADS": "4"},
        ) as run:
            for line in lines_of(run):
                counted[json.loads(line)] += 1
                first += 1
        if run.returncode:
            hang = run.returncode in (-signal.SIGKILL, -signal.SIGPROF)
            what = "hang" if hang else f"ended with {run.returncode}"
            counted[f"{BAD}{what} (try {first})"] += 1
            first += 1
    return counted


def lines_of(run):
    """The lines that a process tells; it is killed if it tells none for too long. What counts is how often it was looked after, because somebody
    may hold still both processes."""
    waited, most = 0, 12 * PATIENCE  # at first kernels may have to be compiled
    while True:
        if select.select([run.stdout], [], [], 1.0)[0]:
            if not (line := run.stdout.readline()):
                return
            waited, most = 0, PATIENCE
            yield line
        else:
            waited += 1
            if waited == most:
                run.kill()


def work(maker, given, first, tries):
    """Tell the outcome of each try as a line of JSON."""
    lines = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what else is printed is no outcome
    attempt = MAKERS[maker](**given)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    for k in range(first, tries):
        # The first try may compile kernels.
        signal.setitimer(signal.ITIMER_PROF, SECONDS if k > first else 600)
        try:
            told = attempt(k)
        except BaseException as fault:
            told = f"{BAD}{type(fault).__name__}: {' '.join(str(fault).split())[:120]} (try {k})"
        lines.write(json.dumps(told) + "\n")
        lines.flush()


def one_line(fault):
    """The outcome of a refusal."""
    told = str(fault)
    return "refused" if told and "\n" not in told and len(told) < 600 else f"{BAD}not one line: {told[:100]!r}"


# Files.


def small_run(folder, frames=5, count=8):
    """Spheres that fall on a plane, with frames and a checkpoint in the folder."""
    scene = clast.Scene()
    scene.add(clast.Plane())
    scene.fill(clast.Sphere(0.01), count=count, box=((0, 0, 0), (0.1, 0.1, 0.1)), seed=1)
    sim = clast.Simulation(scene)
    sim.run(until=frames * 1e-3, every=1e-3, output=folder, progress=False)
    return sim


def content(path):
    """All that a checkpoint or trajectory holds, as text."""
    if "checkpoint" in path.name:
        groups, attributes = checkpoint.read(path)
        return repr(
            {g: {k: (c.dtype.str, c.shape, c.tobytes()) for k, c in t.items()} for g, t in groups.items()}
        ) + repr(attributes)
    with Trajectory(path) as run:
        frames = [
            (f.time, f.step, f.scalars, {name: column.tobytes() for name, column in f.columns.items()}) for f in run
        ]
        return repr(frames) + repr(run.attributes) + repr(run.groups)


def damage(folder, seed, tries, name, how):
    """Flip a bit ("flip") or cut off the end ("cut") of the checkpoint or trajectory (`name`) of a run."""
    return apart("damage", tries, folder=str(folder), seed=seed, name=name, how=how)


def every_cut(folder, name, share, shares):
    """The file `name` of a run cut to every length: share, share + shares, share + 2 shares and so on."""
    small_run(Path(folder))
    tries = len(range(share, (Path(folder) / name).stat().st_size, shares))
    return apart("damage", tries, folder=str(folder), seed=share, name=name, how="cut", shares=shares)


def damaging(folder, seed, name, how, shares=0):
    folder = Path(folder)
    if not (folder / name).exists():
        small_run(folder)
    whole, good = (folder / name).read_bytes(), content(folder / name)
    target = folder / f"broken.{name}"

    def attempt(k):
        random = np.random.default_rng([seed, k])
        at = seed + k * shares if shares else int(random.integers(len(whole)))
        changed = bytearray(whole[:at] if how == "cut" else whole)
        if how == "flip":
            changed[at] ^= 1 << int(random.integers(8))
        target.write_bytes(changed)
        try:
            return "same" if content(target) == good else f"{BAD}other numbers (byte {at})"
        except (errors.ClastError, ValueError) as fault:
            return one_line(fault)

    return attempt


WRITER = """
import sys
sys.path.insert(0, sys.argv[2])
import clast
from attacks import small_run
from pathlib import Path
folder = Path(sys.argv[1])
sim = clast.resume(folder) if (folder / "checkpoint.h5").exists() else None
print("ready", flush=True)
if sim is None:
    small_run(folder, frames=400)
else:
    sim.run(until=0.4, every=1e-3, output=folder, progress=False)
"""


def kills(folder, seed, tries):
    """SIGKILL a run that writes frames and checkpoints all the time, and let the next one go on from there."""
    folder, counted = Path(folder), Counter()
    random = np.random.default_rng(seed)
    source = str(Path(clast.__file__).parents[1])
    for _ in range(tries):
        run = subprocess.Popen(
            [sys.executable, "-c", WRITER, str(folder), str(HERE)],
            stdout=subprocess.PIPE,
            env=os.environ | {"PYTHONPATH": source},
        )
        with run:
            run.stdout.readline()
            last = _written(folder)
            while _written(folder) == last and run.poll() is None:  # kernels may have to be compiled
                time.sleep(0.005)
            time.sleep(float(random.uniform(0.0, 0.5)))
            run.kill()
        counted[_after_a_kill(folder)] += 1
        if (folder / "report.json").exists():  # it came to its end
            for file in folder.iterdir():
                file.unlink()
    return counted


def _written(folder):
    """When the last checkpoint was written, or None."""
    try:
        return (folder / "checkpoint.h5").stat().st_mtime_ns
    except FileNotFoundError:
        return None


def _after_a_kill(folder):
    if not (folder / "checkpoint.h5").exists():
        left = [file.name for file in folder.glob("*.previous.h5")]
        return f"{BAD}no checkpoint but {left}" if left else "killed before the first checkpoint"
    try:
        step = checkpoint.read(folder / "checkpoint.h5")[1]["simulation"]["steps"]
        with Trajectory(folder / "trajectory.h5") as frames:
            steps = [frame.step for frame in frames]
    except (errors.ClastError, OSError, ValueError) as fault:
        return f"{BAD}{' '.join(str(fault).split())[:150]}"
    dt = clast.resume(folder).dt
    due = [round(k * 1e-3 / dt) for k in range(len(steps))]
    if steps != due:
        return f"{BAD}frames at {steps[-3:]} in place of {due[-3:]}"
    # The frame comes first: one may be later than the checkpoint, and is written again when the run goes on.
    return "whole" if sum(one > step for one in steps) <= 1 else f"{BAD}several frames later than the checkpoint"


# Scene files.

WRONG = {
    "missing": None,
    "text": "many",
    "nan": math.nan,
    "inf": math.inf,
    "negative": -1.5,
    "zero": 0,
    "huge": 1e308,
    "tiny": 1e-308,
    "list": [1.0, 2.0, 3.0, 4.0, 5.0],
    "empty": [],
}


def toml(value):
    """A value as TOML."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{k} = {toml(v)}" for k, v in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(map(toml, value)) + "]"
    return json.dumps(value) if isinstance(value, str) else repr(value)


def as_toml(data):
    """A scene as a TOML file."""
    lines = []
    for name, section in data.items():
        if name == "materials":
            for material, keys in section.items():
                lines += [f"[materials.{material}]", *(f"{k} = {toml(v)}" for k, v in keys.items())]
        else:
            many = isinstance(section, list)
            for keys in section if many else [section]:
                lines += [f"[[{name}]]" if many else f"[{name}]", *(f"{k} = {toml(v)}" for k, v in keys.items())]
    return "\n".join(lines) + "\n"


def numbers_in(value, path=()):
    """Paths of all numbers, and of all lists of numbers, in a scene."""
    if isinstance(value, dict):
        for name, item in value.items():
            yield from numbers_in(item, (*path, name))
    elif isinstance(value, list):
        if value and not isinstance(value[0], dict | str | bool):
            yield path
        for k, item in enumerate(value):
            yield from numbers_in(item, (*path, k))
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield path


def every_field(folder, text=SCENE, steps=1, stride=1):
    """Every number of a scene file times everything in WRONG; stride: or each so many of these."""
    tries = sum(1 for _ in numbers_in(tomllib.loads(text))) * len(WRONG)
    return apart("fields", tries // stride, folder=str(folder), text=text, steps=steps, stride=stride)


def changing(folder, text, steps, stride):
    import trimesh

    (Path(folder) / "rock.stl").write_bytes(trimesh.creation.icosphere(1, radius=0.02).export(file_type="stl"))
    cases = [(path, name) for path in numbers_in(tomllib.loads(text)) for name in WRONG]

    def attempt(k):
        path, name = cases[k * stride]
        changed = tomllib.loads(text)
        inner = changed
        for step in path[:-1]:
            inner = inner[step]
        if WRONG[name] is None:
            del inner[path[-1]]
        else:
            inner[path[-1]] = WRONG[name]
        told = try_scene(folder, as_toml(changed), steps)
        return f"{told} [{'.'.join(map(str, path))} {name}]" if told.startswith(BAD) else told

    return attempt


def try_scene(folder, text, steps):
    """What becomes of a scene file: refused in one line, or run for so many steps."""
    path = Path(folder) / "scene.toml"
    path.write_text(text, encoding="utf-8", errors="surrogateescape")
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)  # numpy's words about overflow are no answer to a user
        warnings.simplefilter("ignore", UserWarning)
        try:
            ready = scenefile.load(path)
            if len(ready.scene.bodies.number) <= 1000 and steps:
                sim = ready.simulation()
                sim.step(steps)
                sim.check_times(ready.until, ready.every or ready.until)
        except (errors.ClastError, ValueError) as fault:
            return one_line(fault)
    return "taken"


TOKENS = [
    *(
        "1e308",
        "-1",
        "0",
        "nan",
        "inf",
        '"x"',
        "[]",
        "{}",
        "true",
        "[[",
        "]]",
        "=",
        "\n",
        "#",
        "1e-320",
        "99999999999999999999",
    ),
    *(
        '"../../x.stl"',
        "[0, 0, 0]",
        '"sphere"',
        '"plane"',
        "\\u0000",
        "0x7f",
        "1979-05-27",
        "'''",
        '"""',
        ",",
        ".",
        "\t",
        "é",
    ),
]


def scene_files(folder, seed, tries):
    """Scene files with words exchanged, taken away, doubled or moved."""
    return apart("scenes", tries, folder=str(folder), seed=seed)


def rewording(folder, seed):
    def attempt(k):
        random = np.random.default_rng([seed, k])
        words = SCENE.split(" ")
        for _ in range(int(random.integers(1, 4))):
            at = int(random.integers(len(words)))
            how = int(random.integers(5))
            if how == 0:
                words[at] = str(random.choice(TOKENS))
            elif how == 1:
                del words[at]
            elif how == 2:
                words.insert(at, words[int(random.integers(len(words)))])
            elif how == 3:
                other = int(random.integers(len(words)))
                words[at], words[other] = words[other], words[at]
            else:
                letters = list(words[at]) or [" "]
                letters[int(random.integers(len(letters)))] = chr(int(random.integers(1, 256)))
                words[at] = "".join(letters)
        return try_scene(folder, " ".join(words), 0)

    return attempt


def mesh_files(folder, seed, tries):
    """Mesh files of every format, cut, flipped and edited."""
    return apart("meshes", tries, folder=str(folder), seed=seed)


def editing(folder, seed):
    import trimesh

    folder = Path(folder)
    box = trimesh.creation.icosphere(1)
    files = {f"box.{kind}": box.export(file_type=kind) for kind in ("ply", "off", "stl", "obj")}
    files["ascii.stl"] = trimesh.exchange.stl.export_stl_ascii(box)
    files["ascii.ply"] = trimesh.exchange.ply.export_ply(box, encoding="ascii")
    files = {name: text.encode() if isinstance(text, str) else bytes(text) for name, text in files.items()}
    words = [
        b"1e308",
        b"nan",
        b"-1",
        b"99999999999",
        b"\n",
        b"",
        b"\0\xff\xff\xff",
        b"/",
        b"f 1 2 3\n",
        b"v 0 0\n",
        b"\xff" * 4,
    ]

    def attempt(k):
        random = np.random.default_rng([seed, k])
        name = sorted(files)[k % len(files)]
        data = bytearray(files[name])
        how = int(random.integers(3))
        for _ in range(int(random.integers(1, 4))):
            at = int(random.integers(len(data)))
            if how == 0:
                data[at] ^= 1 << int(random.integers(8))
            elif how == 1:
                data[at : at + int(random.integers(6))] = words[int(random.integers(len(words)))]
        if how == 2:
            data = data[: int(random.integers(len(data)))]
        (folder / name).write_bytes(data)
        try:
            with warnings.catch_warnings(record=True) as doubts:
                warnings.simplefilter("always", UserWarning)
                warnings.simplefilter("error", RuntimeWarning)
                clast.load_mesh(folder / name, shape=("wall", "polyhedron", "mesh")[k // len(files) % 3])
        except ValueError as fault:
            return one_line(fault)
        return "taken with a warning" if doubts else "taken"

    return attempt


# Geometry and solvers.


def shapes():
    """One of each particle."""
    return {
        "sphere": clast.Sphere(0.5),
        "ellipsoid": clast.Ellipsoid(0.5, 0.3, 0.2),
        "clump": clast.Clump([[0, 0, 0], [0.4, 0, 0]], [0.3, 0.25]),
        "polyhedron": clast.Polyhedron.box(0.5, 0.4, 0.3),
        "mesh": clast.Mesh.random(40, radius=0.4, seed=1),
        "superquadric": clast.Superquadric(0.5, 0.4, 0.3, 0.5, 0.7),
    }


def poses(seed, tries, one, two):
    """Random poses of two particles: finite, unit normals, the same seen from the other, and as far apart or deep as they are: see `solids`."""
    random = np.random.default_rng([seed, len(one), len(two)])
    a, b = shapes()[one], shapes()[two]
    position = random.normal(scale=0.4, size=(tries, 3))
    turn = random.normal(size=(2, tries, 4))
    turn /= np.linalg.norm(turn, axis=2, keepdims=True)
    here, there = (np.zeros((tries, 3)), turn[0]), (position, turn[1])
    forth, back = clast.distance(a, here, b, there), clast.distance(b, there, a, here)
    length = np.linalg.norm(forth.normal, axis=1)
    finite = np.isfinite(forth.gap) & np.isfinite(forth.normal).all(1) & np.isfinite(forth.first).all(1)
    turns = rotation_matrices(turn[0]), rotation_matrices(turn[1])
    checks = {
        "not finite": ~finite,
        "normal is no unit": ~(np.abs(length - 1.0) < 1e-12),
        "gap differs when swapped": ~(forth.gap == back.gap),
        "normal differs when swapped": ~(forth.normal == -back.normal).all(1),
        **solids.wrong_gaps((a, b), forth, position, turns, random),
    }
    counted = Counter(fine=tries)
    for name, wrong in checks.items():
        if wrong.any():
            counted[f"{BAD}{name} ({one}, {two}, row {int(np.argmax(wrong))} of seed {seed})"] += int(wrong.sum())
            counted["fine"] -= int(wrong.sum())
    return counted


def cone_problem(seed, k):
    """W (3c,3c), q (3c,) and mu (c,) of any rank and scale."""
    random = np.random.default_rng([seed, k])
    c = int(random.integers(1, 8))
    rank = int(random.integers(1, 3 * c + 1))
    scale = 10.0 ** random.uniform(-8, 8)
    factor = random.normal(size=(3 * c, rank))
    w = scale * (factor @ factor.T)
    w[np.diag_indices(3 * c)] *= 1.0 + 1e-12
    q = random.normal(size=3 * c) * 10.0 ** random.uniform(-8, 8)
    mu = np.where(random.random(c) < 0.2, 0.0, 10.0 ** random.uniform(-3, 3, size=c))
    return w, q, mu


def cones(seed, tries):
    """Random cone problems, of low rank, badly scaled, with any friction: finite, inside the cones, and the flag does not lie."""
    counted = Counter()
    for k in range(tries):
        w, q, mu = cone_problem(seed, k)
        if not (np.diag(w) > 0.0).all():
            continue
        solver = ("apgd", "barzilai-borwein", "gauss-seidel", "jacobi")[k % 4]
        with warnings.catch_warnings():
            warnings.simplefilter("error", RuntimeWarning)
            try:
                found = clast.solve_cone(w, q, mu, solver=solver, iterations=200, tolerance=1e-8)
            except (RuntimeWarning, ArithmeticError, ValueError) as fault:
                counted[f"{BAD}{solver}: {fault} (try {k} of seed {seed})"] += 1
                continue
        r = found.impulse.reshape(-1, 3)
        if not (np.isfinite(found.impulse).all() and np.isfinite(found.velocity).all()):
            counted[f"{BAD}{solver}: not finite (try {k} of seed {seed})"] += 1
        elif (np.linalg.norm(r[:, 1:], axis=1) > mu * r[:, 0] * (1.0 + 1e-9) + 1e-300).any():
            counted[f"{BAD}{solver}: outside the cone (try {k} of seed {seed})"] += 1
        elif found.converged and residual(w, q, mu, found.impulse) > 1e-6:
            counted[
                f"{BAD}{solver}: said to be solved, residual {residual(w, q, mu, found.impulse):.1e} (try {k} of seed {seed})"
            ] += 1
        else:
            counted["solved" if found.converged else "said not to be solved"] += 1
    return counted


def residual(w, q, mu, impulse):
    """How far impulses are from a solution, computed here: |r - P(r - rho u)| / (rho |q|), with rho = 1 / max diag(W)."""
    rho = 1.0 / np.diag(w).max()
    r = impulse.reshape(-1, 3)
    y = r - rho * (w @ impulse + q).reshape(-1, 3)
    n, t = y[:, 0], np.linalg.norm(y[:, 1:], axis=1)
    inside, polar = t <= mu * n, mu * t <= -n
    height = np.where(inside, n, np.where(polar, 0.0, (n + mu * t) / (1.0 + mu * mu)))
    with np.errstate(divide="ignore", invalid="ignore"):
        shrink = np.where(inside, 1.0, np.where(polar | (t == 0.0), 0.0, mu * height / t))
    projected = np.column_stack([height, shrink[:, None] * y[:, 1:]])
    return float(np.linalg.norm(r - projected) / (rho * np.linalg.norm(q)))


# What is not a number.


@clast.func
def breaking(touch, mix, dt):
    """A law that has no answer for deep contacts."""
    return math.nan if touch.overlap > 1e-6 else 2e3 * touch.overlap, (0.0, 0.0, 0.0), touch.slip


PLACES = ("position", "velocity", "spin", "orientation", "drive", "law", "joint", "spring")


def not_numbers(seed, tries, places=PLACES):
    """NaN or infinity in the state, in a law, in a drive, in a motor or in a spring, by both methods: named by the next step."""
    counted = Counter()
    for k in range(tries):
        random = np.random.default_rng([seed, k])
        value = (math.nan, math.inf, -math.inf)[k // len(places) % 3]
        counted[_poison(random, places[k % len(places)], value)] += 1
    return counted


def step_until(sim, condition):
    """Steps, one by one, until the condition holds."""
    while not condition():
        sim.step()


def _poison(random, what, value):
    begin = float(random.uniform(0.001, 0.003))
    scene = clast.Scene()
    if what == "drive":
        bad = (0.0, 0.0, value)
        scene.add(clast.Plane(), drive=lambda t: (bad if t > begin else (0.0, 0.0, 0.0), (0.0, 0.0, 0.0)))
    elif what in ("joint", "spring"):
        link = scene.add(clast.Polyhedron.box(0.1, 0.02, 0.02), position=(0.05, 0, 0))
        scene.join(None, link[0], "hinge", at=(0, 0, 0), axis=(0, 1, 0))
        if what == "joint":
            scene.motor(0, spin=lambda t: value if t > begin else 1.0)
        else:
            ends = {"from_": (0, 0, 0.2), "to": (0.1, 0, 0)}
            scene.spring(None, link[0], **ends, force=lambda length, rate, time: value if time > begin else 1.0)
    else:
        scene.add(clast.Plane())
    shape = clast.Ellipsoid(0.01, 0.008, 0.006) if what == "orientation" else clast.Sphere(0.01)
    if what not in ("joint", "spring"):
        scene.fill(shape, count=8, box=((0, 0, 0), (0.1, 0.1, 0.1)), seed=1)
    hard = what in ("joint", "spring") or (what != "law" and random.random() < 0.5)
    method = clast.Complementarity() if hard else clast.DEM(law=breaking if what == "law" else "hertz")
    sim = clast.Simulation(scene, method, dt={"joint": 1e-3, "spring": 1e-3, "law": 1e-4}.get(what, "auto"))
    try:
        if what in ("drive", "joint", "spring"):
            step_until(sim, lambda: sim.time > begin)
        elif what == "law":
            step_until(sim, lambda: sim.bodies.position[1:, 2].min() < 0.01 - 1e-6)
        else:
            sim.step(int(random.integers(1, 30)))
            row = int(np.flatnonzero(np.isfinite(sim.state.bodies.mass))[int(random.integers(8))])
            column = getattr(sim.state.bodies, what)
            column[row, int(random.integers(column.shape[1]))] = value
        sim.step()  # the first that meets it
    except (clast.ClastError, ValueError) as fault:
        return one_line(fault).replace("refused", "named")
    return f"{BAD}{value} in {what} goes on in silence"


# The same bits.

GOLDEN = HERE / "golden.json"  # hashes of states, by processor, because compilers make other code for another one


def way(method):
    """Steps of the scenes whose bits are compared."""
    return 600 if method == "dem" else 60


def tumbling(kind, method):
    """Bodies of a kind in a closed room of thin walls, one of which shakes."""
    stone = clast.Material(density=2600, young=1e7, friction=0.4, restitution=0.4)
    scene = clast.Scene(gravity=(0, 0, -9.81))
    enclose(scene, "quads", stone)
    scene.add(clast.Plane(), position=(0, 0, -0.9 * SIDE), velocity=(0, 0, 0.1), motion="driven", material=stone)
    box = ((-0.02, -0.02, -0.85 * SIDE), (0.02, 0.02, -0.85 * SIDE + 0.06))
    scene.fill(bullets()[kind], count=20, box=box, velocity=(0.1, 0.2, -1.0), material=stone, seed=4)
    return clast.Simulation(scene, clast.Complementarity() if method == "hard" else clast.DEM())


def state_hash(sim):
    """SHA-256 of all that moves, by body numbers."""
    names = "number", "position", "orientation", "velocity", "spin"
    return hashlib.sha256(b"".join(np.ascontiguousarray(getattr(sim.bodies, n)).tobytes() for n in names)).hexdigest()


def bits(folder, seed, tries, kinds=None, stored=True):
    """Stop a run at any step, resume it, with 1, 2 or 4 threads: the hash of its end is that of the run that was never stopped.

    stored: and that of golden.json, if it knows this processor."""
    return apart("bits", tries, folder=str(folder), seed=seed, kinds=list(kinds or bullets()), stored=stored)


def share_everything():
    """From now on all threads get a share even of the smallest loop, and sums are made of small parts: few bodies would else stay on one thread."""
    from clast.kernels import backend

    def launch(kernel, count, arguments):
        if (int(count[-1]) if kernel.phased else count) > 0:
            kernel.loop(count, arguments)

    backend.CPU.launch, backend.CPU.chunk = staticmethod(launch), 8


def restarting(folder, seed, kinds, stored):
    from clast.kernels import backend

    names = [(kind, method) for kind in kinds for method in ("dem", "hard")]
    known = golden() if stored else {}
    share_everything()
    half = Path(folder) / "half.h5"
    whole = {}
    for kind, method in names:  # before tries are timed, because kernels may have to be compiled
        sim = tumbling(kind, method)
        sim.step(way(method))
        whole[f"{kind}, {method}"] = state_hash(sim)
        sim.save(half)
        clast.resume(half).step()

    def attempt(k):
        kind, method = names[k % len(names)]
        random = np.random.default_rng([seed, k])
        backend.set_threads(min((1, 2, 4)[int(random.integers(3))], numba.config.NUMBA_NUM_THREADS))
        name = f"{kind}, {method}"
        if known.get(name, whole[name]) != whole[name]:
            return f"{BAD}{name}: not the stored hash"
        sim, at = tumbling(kind, method), int(random.integers(1, way(method)))
        sim.step(at)
        sim.save(half)
        sim = clast.resume(half)
        sim.step(way(method) - at)
        told = "as stored" if name in known else "same"
        return (
            told
            if state_hash(sim) == whole[name]
            else f"{BAD}{name}: other bits after a restart at step {at} (try {k})"
        )

    return attempt


def golden():
    """The stored hashes for this processor, {scene: hash}; none if there are none for it."""
    from llvmlite.binding import get_host_cpu_name

    stored = json.loads(GOLDEN.read_text()) if GOLDEN.exists() else {}
    return stored.get(get_host_cpu_name(), {})


def store_golden():
    """Write the hashes for this processor: after a change that is meant to change results. Those of others go where it did: they are of the code before."""
    from llvmlite.binding import get_host_cpu_name

    stored = json.loads(GOLDEN.read_text()) if GOLDEN.exists() else {}
    share_everything()
    mine = {}
    for kind in bullets():
        for method in ("dem", "hard"):
            sim = tumbling(kind, method)
            sim.step(way(method))
            mine[f"{kind}, {method}"] = state_hash(sim)
    if stored.get(get_host_cpu_name(), mine) != mine:
        stored = {}
    GOLDEN.write_text(json.dumps(stored | {get_host_cpu_name(): mine}, indent=1) + "\n")


# A long run.

SOAK = """
import sys, resource
sys.path.insert(0, sys.argv[2])
import attacks
attacks.soak_on(sys.argv[1], int(sys.argv[3]), int(sys.argv[4]), float(sys.argv[5]))
"""


def churn(count, rate):
    """Mixed bodies in a mesh drum that turns, with an inlet of so many bodies a second and an outlet."""
    stone = clast.Material(density=2600, young=1e7, friction=0.4, restitution=0.4)
    scene = clast.Scene(gravity=(0, 0, -9.81))
    turns = clast.Cylinder(SIDE, 4.0 * SIDE, axis=(0, 1, 0)).surface(4.0 * SIDE)
    scene.add(clast.MeshWall(*turns), motion="driven", spin=(0, 3.0, 0), material=stone)
    for side in (-1.0, 1.0):
        scene.add(clast.Plane(normal=(0, -side, 0)), position=(0, 2.0 * side * SIDE, 0), material=stone)
    room = 0.6 * SIDE
    shapes = bullets()
    for k, kind in enumerate(("sphere", "clump", "ellipsoid", "box")):
        low, high = (-room, -1.9 * SIDE, -room), (room, 1.9 * SIDE, room)
        scene.fill(shapes[kind], count=count // 4, box=(low, high), material=stone, seed=k)
    scene.inlet(shapes["sphere"], rate=rate, box=((-0.02, -0.02, 0.05), (0.02, 0.02, 0.08)), material=stone, seed=9)
    # At one end, above the bed: as many leave as are poured, so that a long run ends with about the number it began with.
    scene.outlet(box=((-SIDE, 1.8 * SIDE, -0.5 * SIDE), (SIDE, 2.0 * SIDE, SIDE)))
    return clast.Simulation(scene)


CHECKPOINTS = 200  # of a long run


def soak_on(folder, count, steps, rate):
    """Go on with a long run, or begin it; at its end tell the hash of its state, and the memory [kB] it took at each tenth."""
    folder = Path(folder)
    sim = clast.resume(folder) if (folder / "checkpoint.h5").exists() else churn(count, rate)
    every, memory = steps // CHECKPOINTS, {}
    for tenth in range(1, 11):
        end = tenth * steps // 10
        if sim.steps < end:
            sim.run(until=end * sim.dt, every=every * sim.dt, output=folder, progress=False)
            memory[sim.steps] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    told = {"hash": state_hash(sim), "memory": memory, "steps": sim.steps, "bodies": len(sim.bodies.number)}
    (folder / "end.json").write_text(json.dumps(told))


def soak(folder, seed, tries, count=40, steps=2000, rate=50.0):
    """A long run that is killed and continued so many times, and beside it one that is not: the same end, and no memory that grows.

    What is in the folder already is not done again, but for a run beside that was stopped: it would not be one that was not."""
    folder = Path(folder)
    source = str(Path(clast.__file__).parents[1])
    whole, killed = folder / "whole", folder / "killed"

    def start(name):
        name.mkdir(parents=True, exist_ok=True)
        command = [sys.executable, "-c", SOAK, str(name), str(HERE), str(count), str(steps), str(rate)]
        return subprocess.Popen(command, env=os.environ | {"PYTHONPATH": source})

    beside = None
    if not (whole / "end.json").exists():
        shutil.rmtree(whole, ignore_errors=True)
        beside = start(whole)
    try:
        wrong = kill_often(folder, lambda: start(killed), killed, np.random.default_rng(seed), tries)
        if wrong is None and beside is not None and beside.wait():
            wrong = "the run that was not stopped failed"
    finally:
        if beside is not None:
            beside.kill()
    if wrong is not None:
        return Counter({f"{BAD}{wrong}": 1})
    one, other = (json.loads((name / "end.json").read_text()) for name in (whole, killed))
    if one["hash"] != other["hash"]:
        return Counter({f"{BAD}another end after {tries} kills (seed {seed})": 1})
    used = list(one["memory"].values())
    grown = used[-1] / used[len(used) // 2]
    if grown > 1.1:
        return Counter({f"{BAD}memory grew to {grown:.2f} times in the second half": 1})
    return Counter({"the same end": tries})


def kill_often(folder, start, killed, random, tries):
    """Start the long run in the folder `killed`, kill it so many times in all, and let it come to its end; what went wrong, or None."""
    kills = folder / "kills.txt"
    for _ in range(len(kills.read_text().split()) if kills.exists() else 0, tries):
        run, seen, last, between = start(), 0, _written(killed), 0
        # Each after its share of the checkpoints, and then at any moment before the next.
        while seen < CHECKPOINTS // (tries + 1) and run.poll() is None:
            time.sleep(0.005)
            now = _written(killed)
            if now != last:
                seen, last, between = seen + 1, now, now - (last or now)
        time.sleep(float(random.uniform(0.0, 1.0)) * min(between * 1e-9, 60.0))
        if run.poll() is not None:
            return f"ended with {run.returncode} before it was killed"
        run.kill()
        run.wait()
        with kills.open("a") as file:
            file.write(f"{checkpoint.read(killed / 'checkpoint.h5')[1]['simulation']['steps']}\n")
    if not (killed / "end.json").exists() and start().wait():
        return "the run that was killed does not go on"
    return None


# Bodies shot at walls.

SIDE = 0.1  # [m], half the width of what bodies are shot in
SIZE = 0.005  # [m], about the radius of the bodies


def bullets():
    """Particles that are shot, one of each kind."""
    return {
        "sphere": clast.Sphere(SIZE),
        "clump": clast.Clump([(-0.5 * SIZE, 0, 0), (0.5 * SIZE, 0, 0)], [0.5 * SIZE, 0.5 * SIZE]),
        "ellipsoid": clast.Ellipsoid(SIZE, 0.7 * SIZE, 0.5 * SIZE),
        "box": clast.Polyhedron.box(2.0 * SIZE, 1.2 * SIZE, 0.8 * SIZE),
        "superquadric": clast.Superquadric(SIZE, 0.8 * SIZE, 0.7 * SIZE, 0.5, 0.5),
        "mesh": clast.Mesh.random(30, (0.6, 1.0), seed=2, radius=SIZE, epsilon=0.1 * SIZE),
    }


def lattice(cells):
    """A closed box of thin walls as one mesh, each side of so many times as many squares: vertices, triangles."""
    u = np.linspace(-SIDE, SIDE, cells + 1)
    a, b = (x.reshape(-1) for x in np.meshgrid(u, u, indexing="ij"))
    corner = (np.arange(cells)[:, None] * (cells + 1) + np.arange(cells)).reshape(-1)
    square = np.stack([corner, corner + cells + 1, corner + cells + 2, corner + 1], 1)
    vertices, triangles = [], []
    for axis in range(3):
        for side in (-SIDE, SIDE):
            face = np.empty((len(a), 3))
            face[:, axis], face[:, axis - 1], face[:, axis - 2] = side, a, b
            triangles += [square[:, [0, 1, 2]] + len(a) * len(vertices), square[:, [0, 2, 3]] + len(a) * len(vertices)]
            vertices.append(face)
    vertices, same = np.unique(np.vstack(vertices), axis=0, return_inverse=True)
    return vertices, same.reshape(-1)[np.vstack(triangles)]


def enclose(scene, kind, material):
    """Walls of this kind all around the origin; returns which points (n,3) are within."""
    ends = ((-SIDE, (0.0, 0.0, 1.0)), (SIDE, (0.0, 0.0, -1.0)))
    flat = np.array([(-1, -1), (1, -1), (1, 1), (-1, 1)]) * SIDE
    if kind == "planes":
        for axis in range(3):
            for side in (-SIDE, SIDE):
                place = np.zeros(3)
                place[axis] = side
                scene.add(clast.Plane(normal=tuple(-place / SIDE)), position=tuple(place), material=material)
    elif kind == "quads":
        for axis in range(3):
            for side in (-SIDE, SIDE):
                corners = np.full((4, 3), side)
                corners[:, axis - 1], corners[:, axis - 2] = flat[:, 0], flat[:, 1]
                scene.add(clast.Quad(corners), material=material)
    elif kind == "mesh":
        scene.add(clast.MeshWall(*lattice(3)), material=material)
    elif kind in ("shaken mesh", "turning drum"):
        if kind == "shaken mesh":
            shakes = clast.Oscillation(amplitude=(0.0, 0.0, 0.1 * SIZE), frequency=50.0)
            scene.add(clast.MeshWall(*lattice(3)), motion="driven", drive=shakes, material=material)
            return lambda x: (np.abs(x) < 1.01 * SIDE).all(1)
        turns = clast.Cylinder(SIDE, 2.0 * SIDE).surface(2.0 * SIDE)
        scene.add(clast.MeshWall(*turns), motion="driven", spin=(0.0, 0.0, 20.0), material=material)
        for z, _ in ends:
            scene.add(clast.Quad(np.column_stack([1.5 * flat, np.full(4, z)])), material=material)
        return lambda x: (np.hypot(x[:, 0], x[:, 1]) < SIDE) & (np.abs(x[:, 2]) < SIDE)
    elif kind == "pillar":  # a solid cylinder amid thin walls
        enclose(scene, "quads", material)
        scene.add(clast.Cylinder(0.2 * SIDE, 0.4 * SIDE, inside=False), material=material)
        return lambda x: (
            (np.abs(x) < SIDE).all(1) & ~((np.hypot(x[:, 0], x[:, 1]) < 0.2 * SIDE) & (np.abs(x[:, 2]) < 0.2 * SIDE))
        )
    else:  # a shell, endless or as long as the room
        length = 2.0 * SIDE if kind == "finite shell" else math.inf
        scene.add(clast.Cylinder(SIDE, length), material=material)
        for z, normal in ends:
            wall = (
                clast.Quad(np.column_stack([1.5 * flat, np.full(4, z)]))
                if kind == "finite shell"
                else clast.Plane(normal)
            )
            position = (0.0, 0.0, 0.0) if kind == "finite shell" else (0.0, 0.0, z)
            scene.add(wall, position=position, material=material)
        return lambda x: (np.hypot(x[:, 0], x[:, 1]) < SIDE) & (np.abs(x[:, 2]) < SIDE)
    return lambda x: (np.abs(x) < SIDE).all(1)


MOVING = ("shaken mesh", "turning drum")
ROOMS = ("planes", "quads", "mesh", "finite shell", "endless shell", "pillar", *MOVING)


def shots(seed, tries, method, kinds=None, rooms=ROOMS, fastest=1000.0, steps=60):
    """Bodies shot about in closed rooms at 1 to 1,000 m/s: inside plus reported equals all."""
    return Counter(shoot(seed, k, method, kinds, rooms, fastest, steps) for k in range(tries))


def motion_energy(sim):
    """Of velocities and spins [J]."""
    told = clast.measure.energy(sim)
    return told["kinetic"] + told["rotational"]


def shoot(seed, k, method, kinds=None, rooms=ROOMS, fastest=1000.0, steps=60):
    random = np.random.default_rng([seed, k])
    room = rooms[k % len(rooms)]
    shapes = bullets()
    name = (kinds or tuple(shapes))[k // len(rooms) % len(kinds or shapes)]
    stone = clast.Material(density=2600, young=1e8, friction=0.3, restitution=float(random.choice([0.0, 0.5, 0.95])))
    scene = clast.Scene(gravity=(0, 0, -9.81))
    within = enclose(scene, room, stone)
    count, speed = 6, fastest ** float(random.random())
    places = 0.4 * SIDE * np.array([at for at in itertools.product((-1, 0, 1), repeat=3) if any(at)])
    direction = random.normal(size=(count, 3))
    direction /= np.linalg.norm(direction, axis=1)[:, None]
    turn = random.normal(size=(count, 4))
    numbers = scene.add(
        shapes[name],
        position=random.permutation(places)[:count],
        orientation=turn / np.linalg.norm(turn, axis=1)[:, None],
        velocity=speed * direction,
        spin=random.normal(size=(count, 3)) * float(random.choice([0.0, 100.0])),
        material=stone,
    )
    sim = clast.Simulation(scene, clast.Complementarity() if method == "hard" else clast.DEM())
    before = motion_energy(sim)
    try:
        sim.step(steps if method == "hard" else max(steps, round(min(8.0 * SIDE / speed / sim.dt, 40 * steps))))
    except errors.ClastError as fault:
        return one_line(fault).replace("refused", "reported")
    bodies = sim.bodies
    mine = np.isin(bodies.number, numbers)
    inside = within(bodies.position[mine])
    if not inside.all():
        # A plane is solid behind: what is pressed into it at this moment comes back.
        try:
            sim.step(steps)
        except errors.ClastError as fault:
            return one_line(fault).replace("refused", "reported")
        bodies = sim.bodies
        inside |= within(bodies.position[mine])
    fall = 2.0 * SIDE * 9.81 * float(bodies.mass[mine].sum())
    gained = motion_energy(sim) / (before + fall)
    if room not in MOVING and not gained < 1.02:  # walls that move give bodies energy
        return f"{BAD}{name} in {room} at {speed:.3g} m/s have {gained:.3g} times their energy ({method}, try {k} of seed {seed})"
    if inside.all():
        return "inside"
    return f"{BAD}{int((~inside).sum())} of {count} {name} outside {room} at {speed:.3g} m/s ({method}, try {k} of seed {seed})"


def pretending():
    """What must not happen, to see that it is noticed."""

    def attempt(k):
        if k == 1:
            raise KeyError("x")
        if k == 2:
            signal.raise_signal(signal.SIGPROF)
        return "refused"

    return attempt


MAKERS = {
    "damage": damaging,
    "fields": changing,
    "scenes": rewording,
    "meshes": editing,
    "pretend": pretending,
    "bits": restarting,
}

if __name__ == "__main__":
    work(sys.argv[1], json.loads(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]))

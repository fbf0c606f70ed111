"""Spheres of other programs: data files and dumps of LAMMPS and LIGGGHTS, text of YADE; and dumps that OVITO, LAMMPS and clast read."""

import math
from typing import NamedTuple

import numpy as np

from ..errors import Damaged, path_of
from ..signatures import File


class Spheres(NamedTuple):
    """Spheres as a file has them; put them into a scene with `scene.add(clast.Sphere(1.0), position=s.position, scale=s.radius,
    velocity=s.velocity)`."""

    position: np.ndarray  # (n,3) in the units of the file
    radius: np.ndarray  # (n,)
    velocity: np.ndarray  # (n,3); zero where the file has none
    spin: np.ndarray  # (n,3); likewise
    density: np.ndarray  # (n,); NaN where the file has none
    kind: np.ndarray  # (n,) int, type or material number; 1 where the file has none
    number: np.ndarray  # (n,) int, as in the file; from 1 on where it has none


def load_spheres(path: File, *, frame: int = -1) -> Spheres:
    """Spheres of a file, sorted by number: LAMMPS data (atom_style sphere, or granular), LAMMPS or LIGGGHTS dump, or text with x y z r in each line as
    YADE's export writes it. Which it is, is seen from its first lines. frame: of a dump with several moments, -1 is the last.
    """
    path = path_of(path, "load_spheres: the first argument must be the path of a file")
    lines = path.read_text(encoding="utf-8").splitlines()
    try:
        if any(line.startswith("ITEM: TIMESTEP") for line in lines[:5]):
            found = _dump(lines, frame)
        elif any(line.split("#")[0].split()[1:] == ["atoms"] for line in lines[:50]):
            found = _data(lines)
        else:
            found = _text(lines)
    except (ValueError, IndexError, KeyError) as fault:
        raise Damaged(f"{path}: cannot be read as spheres: {fault}") from fault
    made = Spheres(*found)
    order = np.argsort(made.number, kind="stable")
    made = Spheres(*(column[order] for column in made))
    if not len(made.radius) or not (made.radius > 0.0).all() or not all(np.isfinite(made.position).ravel()):
        raise Damaged(f"{path}: has no spheres, or some without a radius above 0 or a finite place")
    return made


def _columns(names, rows):
    """A function that gives the columns of these names (n,k), or a default where one is missing."""
    table = np.array([row.split() for row in rows], dtype=object)
    place = {name: k for k, name in enumerate(names)}

    def take(wanted, default=None):
        if not all(name in place for name in wanted):
            if default is None:
                raise ValueError(f"there is no column {', '.join(name for name in wanted if name not in place)}")
            return np.full((len(rows), len(wanted)), default, dtype=float)
        return table[:, [place[name] for name in wanted]].astype(float).reshape(len(rows), len(wanted))

    return take, place


def _dump(lines, frame):
    starts = [k for k, line in enumerate(lines) if line.startswith("ITEM: TIMESTEP")]
    first = starts[frame]
    part = lines[first : starts[starts.index(first) + 1] if first != starts[-1] else len(lines)]
    count = int(part[next(k for k, line in enumerate(part) if line.startswith("ITEM: NUMBER OF ATOMS")) + 1])
    head = next(k for k, line in enumerate(part) if line.startswith("ITEM: ATOMS"))
    rows = part[head + 1 : head + 1 + count]
    if len(rows) < count:
        raise ValueError(f"it ends after {len(rows)} of {count} atoms")
    take, place = _columns(part[head].split()[2:], rows)
    where = next((names for names in (("x", "y", "z"), ("xu", "yu", "zu")) if names[0] in place), ("x", "y", "z"))
    if "radius" in place:
        radius = take(("radius",))[:, 0]
    elif "shapex" in place:  # diameters, as LAMMPS has them: the ball of the same volume
        radius = 0.5 * np.cbrt(take(("shapex", "shapey", "shapez")).prod(axis=1))
    else:
        radius = 0.5 * take(("diameter",))[:, 0]
    number = take(("id",))[:, 0].astype(int) if "id" in place else np.arange(1, count + 1)
    spin = take(("omegax", "omegay", "omegaz"), 0.0)
    return (
        take(where),
        radius,
        take(("vx", "vy", "vz"), 0.0),
        spin,
        take(("density",), math.nan)[:, 0],
        take(("type",), 1.0)[:, 0].astype(int),
        number,
    )


def _data(lines):
    """atom_style sphere, granular in LIGGGHTS: number, type, diameter, density, x, y, z, and three image flags or none; velocities in a section of their own."""
    heads = {
        line.split("#")[0].strip(): k
        for k, line in enumerate(lines)
        if line.split("#")[0].strip() in ("Atoms", "Velocities")
    }
    if "Atoms" not in heads:
        raise ValueError("there is no section Atoms")
    style = lines[heads["Atoms"]].partition("#")[2].strip()
    if style not in ("", "sphere", "granular"):  # granular: the name that LIGGGHTS gives to the same columns
        raise ValueError(f"its atoms have the style {style!r}; only sphere, or granular, has a diameter")

    def section(name):
        rows = []
        for line in lines[heads[name] + 1 :]:
            words = line.split("#")[0].split()
            if words and not words[0].lstrip("-").isdigit():
                break
            if words:
                rows.append([float(word) for word in words])
        return np.array(rows)

    atoms = section("Atoms")
    if atoms.ndim != 2 or atoms.shape[1] not in (7, 10):
        raise ValueError("its atoms must have number, type, diameter, density, x, y, z, and three image flags or none")
    velocity, spin = np.zeros((len(atoms), 3)), np.zeros((len(atoms), 3))
    if "Velocities" in heads:
        told = section("Velocities")
        rows = np.argsort(atoms[:, 0])[np.searchsorted(np.sort(atoms[:, 0]), told[:, 0])]
        velocity[rows] = told[:, 1:4]
        if told.shape[1] >= 7:
            spin[rows] = told[:, 4:7]
    return (
        atoms[:, 4:7],
        0.5 * atoms[:, 2],
        velocity,
        spin,
        atoms[:, 3],
        atoms[:, 1].astype(int),
        atoms[:, 0].astype(int),
    )


def _text(lines):
    """x y z r in each line, what follows is named by a line `#format x_y_z_r_matId` or left out."""
    names = next(
        (line.split()[1].split("_") for line in lines if line.lower().startswith("#format")), ["x", "y", "z", "r"]
    )
    rows = [line.split() for line in lines if line.strip() and not line.lstrip().startswith("#")]
    table = np.array([[float(word) for word in row[: max(4, len(names))]] for row in rows])
    if table.ndim != 2 or table.shape[1] < 4:
        raise ValueError("lines must have x, y, z and r")
    count = len(table)
    kind = (
        table[:, names.index("matId")].astype(int)
        if "matId" in names and table.shape[1] > names.index("matId")
        else np.ones(count, int)
    )
    return (
        table[:, :3],
        table[:, 3],
        np.zeros((count, 3)),
        np.zeros((count, 3)),
        np.full(count, math.nan),
        kind,
        np.arange(1, count + 1),
    )


def write_dump(path, columns, time=None, step=0, append=False, *, world=None, periodic=(False,) * 3, most=None):
    """Write particles, columns as `files.particle_columns` has them, as one moment of a dump, which OVITO opens with true sizes and shapes.

    mol is the body number + 1, type the material + 1. id tells every row apart, also the balls of a clump, and is the same at all moments: body number
    times `most` + place within the body + 1; most: particles of a body at the most, by default of the bodies here. shapex, shapey, shapez are
    diameters along the own axes, as LAMMPS has them, quati, quatj, quatk, quatw the quaternion. Along periodic axes the box is the world, else that around
    all particles.
    """
    position, radius, axes = (np.asarray(columns[name], dtype=float) for name in ("position", "radius", "axes"))
    reach = axes.max(axis=1)[:, None] if len(axes) else np.zeros((0, 1))
    low = (position - reach).min(0) if len(position) else np.zeros(3)
    high = (position + reach).max(0) if len(position) else np.ones(3)
    if any(periodic):
        low, high = np.where(periodic, world[0], low), np.where(periodic, world[1], high)
    turn = np.asarray(columns["orientation"], dtype=float)
    number = np.asarray(columns["number"], dtype=int)
    within = _within(number)
    most = int(within.max(initial=0)) + 1 if most is None else most
    table = np.column_stack(
        [
            number * most + within + 1,
            number + 1,
            np.asarray(columns["material"]) + 1,
            position,
            columns["velocity"],
            radius,
            columns["spin"],
            2.0 * axes,
        ]
        + [turn[:, 1:], turn[:, :1]]
    )
    names = "id mol type x y z vx vy vz radius omegax omegay omegaz shapex shapey shapez quati quatj quatk quatw"
    sides = " ".join("pp" if wraps else "ff" for wraps in periodic)
    lines = ["ITEM: TIMESTEP", str(int(step)), "ITEM: NUMBER OF ATOMS", str(len(position)), f"ITEM: BOX BOUNDS {sides}"]
    if time is not None:
        lines = ["ITEM: TIME", repr(float(time)), *lines]
    lines += [f"{a!r} {b!r}" for a, b in zip(low.tolist(), high.tolist(), strict=True)]
    lines.append(f"ITEM: ATOMS {names}")
    with open(path, "a" if append else "w", encoding="utf-8") as file:
        file.write("\n".join(lines) + "\n")
        np.savetxt(file, table, fmt=["%d", "%d", "%d", *["%.17g"] * (table.shape[1] - 3)])


def _within(number):
    """Which particle of its body each row is (n,), from 0 on; number (n,): the body's, with the rows of one body together."""
    first = np.flatnonzero(np.diff(number, prepend=-1))
    return np.arange(len(number)) - np.repeat(first, np.diff(first, append=len(number)))

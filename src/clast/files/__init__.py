"""Files: one module per format; `save` chooses by suffix."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import errors, tables
from ..mpi.team import first_does
from ..signatures import Columns, File, Series, Vector
from ..tables import Bodies, Hulls, Parts, Shapes, Surfaces
from . import checkpoint, csv, disk, spheres, text, vti, vtk
from .spheres import Spheres, load_spheres
from .trajectory import Trajectory

if TYPE_CHECKING:
    from ..scene.scene import Scene

__all__ = [
    "WRITERS",
    "Spheres",
    "Trajectory",
    "export",
    "load_spheres",
    "particle_columns",
    "save",
    "save_grid",
    "save_text",
]

WRITERS = {
    ".csv": csv.write,
    ".dump": spheres.write_dump,
    ".txt": text.write,
    ".vtp": vtk.write_points,
}  # each takes (path, columns)


def save(path: File, scene: "Scene") -> None:
    """Write the bodies of a scene to `path`; the suffix chooses the format: .vtp (ParaView), .csv, .dump (OVITO, LAMMPS), or .txt (places and radii alone).

    One row per sphere, ellipsoid, polyhedron or mesh, so that clumps show: `position`, `radius` and `axes` [m] are its own,
    `orientation` too where it is turned within a compound; `velocity`, `spin`, `force`, `torque`, `mass`, `number`, `material` and
    `motion` are those of its body. `axes` are the three half-axes along its own axes, of others three times `radius`; `power` are the exponents of superquadrics, if
    there are any; the `radius` of an ellipsoid,
    polyhedron or mesh is that of the ball with its volume. Beside a .vtp file, the faces of polyhedra go into
    `<stem>.polyhedra.vtp`, the triangles of meshes into `<stem>.meshes.vtp`, surfaces of superquadrics into `<stem>.superquadrics.vtp` and finite walls into `<stem>.walls.vtp`. Missing folders are made; a file appears whole or not
    at all.
    """
    path = errors.path_of(path, "save: the first argument must be the path of a file")
    if not all(hasattr(scene, name) for name in ("bodies", "shapes", "parts")):
        raise TypeError(f"save: the second argument must be a clast.Scene, got {scene!r}")
    writer = errors.pick("file format", path.suffix.lower(), WRITERS)
    bodies = scene.bodies
    shapes = scene.shapes()
    first_does(lambda: _save(path, writer, scene, bodies, shapes))


def _save(path, writer, scene, bodies, shapes):
    """See `save`."""
    path.parent.mkdir(parents=True, exist_ok=True)
    columns = particle_columns(bodies, shapes, scene.parts, scene.hulls, scene.surfaces)
    world = {"world": scene.world, "periodic": scene.periodic} if writer is spheres.write_dump else {}
    _whole(path, writer, columns, **world)
    if writer is vtk.write_points:
        for name, place, table in (("polyhedra", vtk.polygons, "hulls"), ("meshes", vtk.skins, "surfaces")):
            row = tables.rows_in(table, shapes.kind, scene.parts.feature[shapes.part])
            if (row >= 0).any():
                faces = _faces(bodies, shapes, row, place, getattr(scene, table))
                _whole(path.with_name(f"{path.stem}.{name}.vtp"), vtk.write_polygons, *faces)
        bent = np.flatnonzero(scene.parts.power[shapes.part, 0] > 0.0)
        if len(bent):
            told = vtk.particles(bodies, scene.molds, scene.parts, scene.hulls, scene.surfaces)
            told = vtk.Particles(*(column[told.power[:, 0] > 0.0] for column in told))
            skin = vtk.superquadrics(told.centre, told.orientation, told.axes, told.power)
            _whole(
                path.with_name(f"{path.stem}.superquadrics.vtp"),
                vtk.write_polygons,
                skin,
                {"number": bodies.number[told.body[skin.owner]]},
            )
        walls = vtk.surfaces(bodies, scene.molds, scene.parts, scene.meshes)
        if walls:
            _whole(path.with_name(f"{path.stem}.walls.vtp"), vtk.write_triangles, *_joined(walls, bodies))


def export(folder: File, path: File) -> Path:
    """Write all frames of the run in `folder` to one .dump file, which OVITO opens as a trajectory; return its path."""
    path = errors.path_of(path, "export: the second argument must be the path of a file")
    errors.pick("file format of a run", path.suffix.lower(), {".dump": None})
    folder = errors.path_of(folder, "export: the first argument must be the folder of a run")
    first_does(lambda: _export(folder / "trajectory.h5" if folder.is_dir() else folder, path))
    return path


def _export(trajectory, path):
    """See `export`."""
    with Trajectory(trajectory) as run:
        groups, about = run.groups, run.attributes
        # With this many numbers for each body a particle has the same id at all moments, whatever is poured in or goes out.
        molds, particle = groups["molds"], tables.is_particle(np.asarray(groups["parts"]["kind"]))
        ends = zip(molds["first"], molds["count"], strict=True)
        options: dict[str, Any] = {
            "most": max((int(particle[first : first + count].sum()) for first, count in ends), default=1)
        }
        options |= {"world": about.get("world"), "periodic": about.get("periodic", (False,) * 3)}
        path.parent.mkdir(parents=True, exist_ok=True)

        def write(writing):
            for k, frame in enumerate(run):
                found = vtk.particles(
                    frame.columns, groups["molds"], groups["parts"], groups.get("hulls"), groups.get("surfaces")
                )
                names = ("number", "velocity", "spin", "material")
                told = {name: np.asarray(frame.columns[name])[found.body] for name in names}
                told |= {"position": found.centre} | {n: getattr(found, n) for n in ("orientation", "axes", "radius")}
                spheres.write_dump(writing, told, time=frame.time, step=frame.step, append=k > 0, **options)

        _whole(path, write)


def save_text(path: Path, scene: "Scene", time: float | None = None) -> None:
    """Write place and radius [m] of every particle of a scene as text, one line each; time [s] goes into the first line."""
    columns = particle_columns(scene.bodies, scene.shapes(), scene.parts, scene.hulls, scene.surfaces)

    def write():
        path.parent.mkdir(parents=True, exist_ok=True)
        _whole(path, text.write, columns, time)

    first_does(write)


def save_grid(path: File, origin: Vector, spacing: Vector, columns: Columns) -> None:
    """Write fields on a regular grid to `path`, a .vti file that ParaView opens as an image.

    origin (3,) [m]: the first node; spacing (3,) [m]; columns: dict[str, (nx, ny, nz, ...) array], one value a node.
    """
    path = errors.path_of(path, "save_grid: the first argument must be the path of a file")
    writer = errors.pick("file format of a grid", path.suffix.lower(), {".vti": vti.write})

    def write():
        path.parent.mkdir(parents=True, exist_ok=True)
        _whole(path, writer, origin, spacing, columns)

    first_does(write)


def particle_columns(
    bodies: Bodies, shapes: Shapes, parts: Parts, hulls: Hulls | None = None, surfaces: Surfaces | None = None
) -> Series:
    """One row per particle of every body, (n,) or (n,k) columns by name; see `save` for which and their units."""
    rows = np.flatnonzero(tables.is_particle(shapes.kind))
    owner = shapes.body[rows]
    axes = vtk.half_axes(parts, shapes.part[rows], bodies.scale[owner], hulls, surfaces)
    radius = vtk.ball_radius(parts, shapes.part[rows], bodies.scale[owner], axes)
    power = parts.power.reshape(-1, 2)[shapes.part[rows]]
    own = {"number": bodies.number[owner], "position": shapes.centre[rows], "radius": radius, "axes": axes}
    names = ("velocity", "spin", "orientation", "force", "torque", "mass", "material", "motion")
    told = {name: getattr(bodies, name)[owner] for name in names}
    if power.any():
        told["power"] = power
    told["orientation"] = vtk.part_orientation(told["orientation"], parts, shapes.part[rows])
    return own | told


def _faces(bodies, shapes, row, place, table):
    """The faces of all shapes that have a row (s,) of the table, not -1, which the function `place` of vtk takes from there,
    and what is known of the body of each face."""
    solid = np.flatnonzero(row >= 0)
    body = shapes.body[solid]
    faces = place(shapes.centre[solid], bodies.orientation[body], bodies.scale[body], row[solid], table)
    owner = body[faces.owner]
    names = ("number", "velocity", "spin", "mass", "material", "motion")
    return faces, {name: getattr(bodies, name)[owner] for name in names}


def _joined(walls, bodies):
    """All walls as one (vertices, triangles, cells)."""
    starts = np.cumsum([0] + [len(wall.vertices) for wall in walls[:-1]])
    triangles = np.concatenate([wall.triangles + start for wall, start in zip(walls, starts, strict=True)])
    owner = np.repeat([wall.body for wall in walls], [len(wall.triangles) for wall in walls])
    cells = {"number": bodies.number[owner], "material": bodies.material[owner]}
    return np.concatenate([wall.vertices for wall in walls]), triangles, cells


def _whole(path, writer, *content, **options):
    """Write beside `path` and rename, so that a reader never meets half a file."""
    writing = path.with_name(f"{path.stem}.writing{path.suffix}")
    try:
        with disk.writing(path):
            writer(writing, *content, **options)
            checkpoint.sync(writing)
            os.replace(writing, path)
    except BaseException:
        writing.unlink(missing_ok=True)
        raise

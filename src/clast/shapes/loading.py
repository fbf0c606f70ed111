"""Shapes from mesh files: walls, convex polyhedra and triangulated particles."""

import io
import logging
import re
import warnings
from contextlib import contextmanager
from typing import Any, Literal, overload

import numpy as np

from ..errors import path_of, pick
from ..signatures import File
from .hull import turned_triangles
from .mesh import MeshWall, checked, merge_vertices, worth_keeping
from .polyhedron import Polyhedron
from .triangulated import Mesh

SUFFIXES = (".stl", ".obj", ".ply", ".off")
# How programs write the number of faces in comments: "# 12 faces", "# Faces: 12", "#Face Count 12", "# number of triangles: 12".
# Only where a line says nothing else: of prose nobody knows what it counts.
COUNTED = re.compile(
    rb"^[ \t]*#[ \t]*(?:(?:\d{1,15}[ \t]+[a-z]+[ \t]*[,-][ \t]*){0,3}(\d{1,15})[ \t]+(?:faces|triangles)"
    rb"|(?:number of )?(?:faces|triangles|face count)[ \t]*:?[ \t]*(\d{1,15}))[ \t\r]*$",
    re.I | re.MULTILINE,
)
SMALL = 0.4  # a hole that may be where triangles are missing, of the extent of its mesh
DENT = 1e-5  # a mesh whose volume is less than that of its hull by a larger share is not convex


@overload
def load_mesh(path: File, *, shape: Literal["wall"] = "wall", epsilon: None = None) -> MeshWall: ...


@overload
def load_mesh(path: File, *, shape: Literal["polyhedron"], epsilon: None = None) -> Polyhedron: ...


@overload
def load_mesh(path: File, *, shape: Literal["mesh"], epsilon: float | None = None) -> Mesh: ...


def load_mesh(
    path: File, *, shape: Literal["wall", "polyhedron", "mesh"] = "wall", epsilon: float | None = None
) -> Any:
    """A shape from an STL, OBJ, PLY or OFF file; the file's numbers are taken as metres.

    shape: "wall" for a MeshWall, of any triangles; "polyhedron" for a Polyhedron, of a closed convex mesh, whose place
    in the file is its `origin`; "mesh" for a Mesh, of a closed mesh that may be concave, likewise, with epsilon [m] as there.
    """
    make = pick("shape of a mesh", shape, MADE)
    options = {}
    if epsilon is not None:
        if make is not Mesh:
            raise ValueError(f"epsilon={epsilon!r} is the halo of a triangulated particle; load it with shape='mesh'")
        options["epsilon"] = epsilon
    path = path_of(path, "load_mesh: the first argument must be the path of a file")
    if not path.is_file():
        raise FileNotFoundError(f"no mesh file at {path}")
    if path.suffix.lower() not in SUFFIXES:
        raise ValueError(f"cannot read a mesh from {path}: its name must end in {', '.join(SUFFIXES)}")
    import trimesh

    data = path.read_bytes()
    _look(path, data)
    try:
        # Without its name the reader knows no folder in which to look for textures and materials.
        kind = path.suffix.lower().lstrip(".")
        with _quiet():
            loaded: Any = trimesh.load(io.BytesIO(data), file_type=kind, process=False, skip_materials=True)
    except Exception as error:  # it meets files of any kind and raises whatever it likes
        told = " ".join(f"{type(error).__name__}: {error}".split())[:150]
        raise ValueError(f"{path} is damaged or no {kind.upper()} file ({told}); export it again") from error
    if isinstance(loaded, trimesh.Scene):
        raise ValueError(f"{path} holds {len(loaded.geometry)} objects, not one mesh: export it as a single mesh")
    faces = getattr(loaded, "faces", None)
    if faces is None or len(faces) == 0:
        raise ValueError(f"{path} has no triangles; for the hull of points use clast.Polyhedron(points)")
    try:
        faces = np.asarray(faces)
        if kind == "obj":
            _refuse_cut(data, loaded.vertices, faces)
        made = make(loaded.vertices, faces, **options)
    except (ValueError, TypeError, MemoryError) as error:
        raise ValueError(f"{path}: {error}") from error
    if kind == "obj" and make is MeshWall and _small_hole(loaded.vertices, faces):
        warnings.warn(
            f"{path} has a small hole beside its last triangle; if it should have none, it was cut off: export it again",
            stacklevel=2,
        )
    return made


@contextmanager
def _quiet():
    """Within the block the reader does not write its own tracebacks to standard error."""
    log, silent = logging.getLogger("trimesh"), logging.NullHandler()
    before, log.propagate = log.propagate, False
    log.addHandler(silent)
    try:
        with np.errstate(all="ignore"):
            yield
    finally:
        log.propagate = before
        log.removeHandler(silent)


def _look(path, data):
    """Refuse text files that end too early; binary ones tell their length, and the reader compares it."""
    kind, cut = path.suffix.lower(), "it was cut off: export it again"
    last = data.rstrip().rsplit(b"\n", 1)[-1].split()
    if kind == ".obj":
        if len(last) < {b"v": 4, b"f": 4, b"vn": 4, b"vt": 2}.get(last[0] if last else b"", 0):
            raise ValueError(f"{path} ends within a line, {b' '.join(last).decode(errors='replace')!r}; {cut}")
    elif kind == ".stl" and data[:5] == b"solid" and b"facet" in data[:1000]:
        if b"endsolid" not in data[-1000:]:
            raise ValueError(f"{path} has no line 'endsolid' at its end; {cut}")
    elif kind == ".off" or (kind == ".ply" and b"format ascii" in data[:1000]):
        lines = [line for line in (line.split(b"#")[0].split() for line in data.splitlines()) if line]
        if kind == ".ply":
            first = next((k for k, line in enumerate(lines) if line == [b"end_header"]), len(lines)) + 1
            counts = [line[2] for line in lines[:first] if line[0] == b"element" and len(line) == 3]
        else:
            head = b" ".join(b" ".join(line) for line in lines[:2]).split()
            counts, first = head[1:3], 2 if lines and len(lines[0]) == 1 else 1
        asked = sum(int(count) for count in counts if count.isdigit())
        # The last line of a face is a number and so many rows.
        whole = last and last[0].isdigit() and len(last) > int(last[0])
        if len(lines) - first < asked or (len(lines) - first == asked and not whole):
            raise ValueError(
                f"{path} tells of {asked} vertices and faces and has {max(len(lines) - first, 0)} lines of them; {cut}"
            )


def _refuse_cut(data, vertices, faces):
    """Refuse what only an OBJ file that was cut off has; it does not tell its length, but its comments may."""
    again = "as in a file that was cut off; export it again"
    unused = len(vertices) - len(np.unique(faces))
    if unused > 0:
        raise ValueError(f"{unused} of {len(vertices)} vertices belong to no triangle, {again}, without loose points")
    told = max((int(one or other) for one, other in COUNTED.findall(data)), default=0)
    there = max(len(faces), len(re.findall(rb"^[ \t]*f[ \t]", data, re.MULTILINE)))  # a face may make several triangles
    if there < told and len(_open_edges(vertices, faces)[0]):
        raise ValueError(f"a comment tells of {told} faces and there are {there}, {again}")
    if not data.endswith((b"\n", b"\r")) and len(_open_edges(vertices, faces)[0]):
        raise ValueError(f"the last line has no end and the mesh is open, {again}")


def _open_edges(vertices, faces):
    """Edges (e,2) that belong to one triangle, as rows of all different vertices (v,3) [m]; and these."""
    different, place = np.unique(vertices, axis=0, return_inverse=True)
    sides = np.sort(place.reshape(-1)[np.stack([faces, np.roll(faces, -1, axis=1)], axis=2)], axis=2)
    edges, times = np.unique(sides.reshape(-1, 2), axis=0, return_counts=True)
    return edges[times == 1], different


def _small_hole(vertices, faces):
    """Whether a surface has one hole, which is small and at an edge of its last triangle: where those behind it may be missing.

    Where a file was cut off at the end of a line, nothing else is left to see. Vessels, hoppers and tubes are open, too, but widely or twice."""
    edges, places = _open_edges(vertices, faces)
    last = vertices[faces[-1]]
    if not (places[edges][:, :, None] == last).all(3).any(2).all(1).any():
        return False
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    corners, ends = np.unique(edges, return_inverse=True)
    ends = ends.reshape(-1, 2)
    joined = coo_array((np.ones(len(ends)), (ends[:, 0], ends[:, 1])), shape=(len(corners), len(corners)))
    count = connected_components(joined, directed=False, return_labels=False)
    wide = np.linalg.norm(np.ptp(places[corners], axis=0))
    return bool(count == 1 and wide < SMALL * np.linalg.norm(np.ptp(places, axis=0)))


def convex_solid(vertices, triangles):
    """The Polyhedron within a closed convex mesh; vertices (v,3) [m], triangles (t,3), in any winding."""
    vertices, triangles = checked(vertices, triangles)
    vertices, triangles = merge_vertices(vertices, triangles)
    triangles = triangles[worth_keeping(triangles)]
    instead = "use shape='wall', or clast.Polyhedron(points) of its vertices for its hull"
    sides = np.stack([np.roll(triangles, -1, axis=1), np.roll(triangles, -2, axis=1)], axis=2)
    _, edge, times = np.unique(np.sort(sides, axis=2).reshape(-1, 2), axis=0, return_inverse=True, return_counts=True)
    if (times != 2).any():
        raise ValueError(
            f"the mesh is not closed: of its {len(times)} edges {int((times == 1).sum())} belong to one triangle and "
            f"{int((times > 2).sum())} to more than two, where the surface of a body has two at each; {instead}"
        )
    # Two sides make an edge: in the order of edges, each stands beside its partner.
    order = np.argsort(edge.reshape(-1), kind="stable")
    neighbour = np.empty(triangles.size, dtype=np.int64)
    neighbour[order] = order.reshape(-1, 2)[:, ::-1].reshape(-1) // 3
    turned, reached = turned_triangles(triangles, neighbour.reshape(-1, 3), 0, False)
    if not reached.all():
        raise ValueError(
            f"the mesh is in pieces: {int((~reached).sum())} of its {len(triangles)} triangles hang together with none of "
            f"the others; save each piece as a file of its own, or {instead}"
        )
    solid = Polyhedron(vertices[np.unique(triangles)])
    corner = vertices[triangles] - solid.origin
    six = np.einsum("ti,ti->t", corner[:, 0], np.cross(corner[:, 1], corner[:, 2]))
    volume = abs(np.where(turned, -six, six).sum()) / 6.0
    if abs(volume / solid.volume - 1.0) > DENT:
        raise ValueError(
            f"the mesh is not convex: it has a volume of {volume:.6g} m^3 and its hull {solid.volume:.6g} m^3, "
            f"{100.0 * (solid.volume / volume - 1.0):.3g} % more; {instead}"
        )
    return solid


MADE = {"wall": MeshWall, "polyhedron": convex_solid, "mesh": Mesh}

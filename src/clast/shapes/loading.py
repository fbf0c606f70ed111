"""Shapes from mesh files: walls, convex polyhedra and triangulated particles."""

from pathlib import Path

import numpy as np

from ..errors import pick
from .hull import turned_triangles
from .mesh import MeshWall, checked, merge_vertices, worth_keeping
from .polyhedron import Polyhedron
from .triangulated import Mesh

SUFFIXES = (".stl", ".obj", ".ply", ".off")
DENT = 1e-5  # a mesh whose volume is less than that of its hull by a larger share is not convex


def load_mesh(path, *, shape="wall", epsilon=None):
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
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"no mesh file at {path}")
    if path.suffix.lower() not in SUFFIXES:
        raise ValueError(f"cannot read a mesh from {path}: its name must end in {', '.join(SUFFIXES)}")
    import trimesh

    try:
        loaded = trimesh.load(path, process=False)
    except Exception as error:
        raise ValueError(f"cannot read a mesh from {path}: {error}") from error
    if isinstance(loaded, trimesh.Scene):
        raise ValueError(f"{path} holds {len(loaded.geometry)} objects, not one mesh: export it as a single mesh")
    faces = getattr(loaded, "faces", None)
    if faces is None or len(faces) == 0:
        raise ValueError(f"{path} has no triangles; for the hull of points use clast.Polyhedron(points)")
    try:
        return make(loaded.vertices, faces, **options)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error


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

"""A rigid particle made of other shapes, overlapping or not; its mass is that of their union."""

from collections.abc import Iterable
from typing import Any

import numpy as np

from ..kernels.vec import rotation_matrices
from ..signatures import File, Shape, Skin, Whole
from ..tables import Parts
from .capsule import Capsule
from .clump import Clump
from .ellipsoid import Ellipsoid
from .fitting import closed_mesh, convex_pieces
from .polyhedron import Polyhedron
from .sphere import Sphere
from .superquadric import Superquadric
from .triangulated import Mesh
from .union import Placed, union_properties

NO_TURN = (1.0, 0.0, 0.0, 0.0)
LIKE = (
    "write for example clast.Compound([clast.Sphere(0.01), (clast.Polyhedron.box(0.03, 0.005, 0.005), (0.015, 0, 0))])"
)


class Compound:
    """The union of shapes, each at its place, as one rigid particle of uniform density.

    shapes: a list of shapes, (shape, position) or (shape, position, orientation), position (3,) [m] where the shape has its centre of
    mass, orientation a quaternion (4,). They may be Sphere, Ellipsoid, Superquadric, Polyhedron, Capsule, Clump and Compound, and may overlap:
    volume, centre of mass and inertia are those of the union, exactly unless others than balls with balls and few polyhedra with each other
    overlap, when the volume is off by at most 1e-4 of what overlaps. They do not touch each other.
    The particle's position is the centre of mass of the union; `origin` (3,) is that point in the coordinates of the positions.
    `pieces` are the shapes, none of them made of others, with their positions (3,) about it and orientations (4,).
    """

    wall = False
    mesh = None
    error: dict | None = None  # of a compound that was made of a mesh

    def __init__(self, shapes: Iterable[Shape | tuple]) -> None:
        pieces = []
        try:
            entries = list(shapes)
        except TypeError:
            raise TypeError(f"a compound needs a list of shapes, got {shapes!r}; {LIKE}") from None
        for k, entry in enumerate(entries):
            pieces += _simple(*_checked(k, entry))
        if not pieces:
            raise ValueError(f"a compound needs at least one shape; {LIKE}")
        placed = [Placed(one, x, rotation_matrices(q[None])[0]) for one, x, q in pieces]
        self.volume, self.origin, self.inertia = union_properties(placed)
        self.pieces = tuple((one, x - self.origin, q) for one, x, q in pieces)
        # Polyhedra and capsules are kept in the axes of the body.
        self.hull = [one.turned(q).hull for one, _, q in self.pieces if isinstance(one, Polyhedron)]
        self.triangulation = [one.turned(q) for one, _, q in self.pieces if isinstance(one, Capsule)]
        spread = np.abs(self.inertia - self.inertia[0, 0] * np.eye(3)).max()
        self.round = bool(spread <= 1e-14 * self.inertia[0, 0])

    def __repr__(self):
        return f"Compound({len(self.pieces)} shapes, volume {self.volume:.6g} m^3)"

    @classmethod
    def decompose(
        cls, mesh: Polyhedron | Mesh | File, *, threshold: float = 0.05, most: int | None = None, seed: Whole = 0
    ) -> "Compound":
        """Convex pieces in place of a closed mesh that may be concave: a Mesh, a Polyhedron or the path of a mesh file.

        Needs the extra `decompose`, the package CoACD. threshold: how concave a piece may stay, 0.01 to 1, a part of the size of the
        mesh; most: pieces at the most; the same seed gives the same pieces. `error` tells {"volume": that of the union over that
        of the mesh less one}.
        """
        vertices, triangles, volume = closed_mesh("Compound.decompose", mesh)
        made = cls([(one, one.origin) for one in convex_pieces(vertices, triangles, threshold, most, seed)])
        made.error = {"volume": float(made.volume / volume - 1.0)}
        return made

    def parts(self) -> Parts:
        """The parts of all pieces, relative to the centre of mass."""
        chunks, rows = [], {Polyhedron: 0, Capsule: 0}
        for shape, position, orientation in self.pieces:
            part = shape.parts()._replace(offset=position[None], turn=orientation[None])
            for kind in rows:
                if isinstance(shape, kind):
                    part = part._replace(turn=np.array([NO_TURN]), feature=np.array([rows[kind]], np.int32))
                    rows[kind] += 1
            chunks.append(part)
        return Parts(*(np.concatenate(column) for column in zip(*chunks, strict=True)))

    def surface(self, extent: float | None = None) -> Skin:
        """Vertices (v,3) [m] and triangles (t,3) of all shapes, also where they overlap."""
        vertices, triangles, before = [], [], 0
        for shape, position, orientation in self.pieces:
            corner, triangle = shape.surface(extent)
            vertices.append(corner @ rotation_matrices(orientation[None])[0].T + position)
            triangles.append(triangle + before)
            before += len(corner)
        return np.concatenate(vertices), np.concatenate(triangles).astype(np.int32)


def _checked(k, entry):
    """Shape, position (3,) and unit quaternion (4,) of entry k, or an error that names it."""
    place = f"shape {k} of the compound"
    shape, *rest = entry if isinstance(entry, tuple | list) and len(entry) else (entry,)
    if not isinstance(shape, PIECES):
        names = ", ".join(one.__name__ for one in PIECES)
        what = shape.__name__ if isinstance(shape, type) else type(shape).__name__
        hint = "Compound.decompose cuts a Mesh into convex pieces" if what == "Mesh" else LIKE
        raise TypeError(f"{place} is a {what}; known are {names}; {hint}")
    if len(rest) > 2:
        raise ValueError(f"{place} has {len(rest) + 1} entries; give the shape, its position and its orientation")
    values: list[Any] = []
    for name, width, value in zip(("position", "orientation"), (3, 4), [*rest, *[None] * (2 - len(rest))], strict=True):
        try:
            value = np.array(([0.0] * 3 if width == 3 else NO_TURN) if value is None else value, dtype=float)
        except (TypeError, ValueError):
            raise TypeError(f"{place}: its {name} must be {width} numbers, got {value!r}") from None
        if value.shape != (width,) or not np.isfinite(value).all():
            raise ValueError(f"{place}: its {name} must be {width} finite numbers, got {value.tolist()}")
        values.append(value)
    position, orientation = values
    length = np.linalg.norm(orientation)
    if length == 0.0:
        raise ValueError(f"{place}: its orientation is zero; no turn is (1, 0, 0, 0), in the order w, x, y, z")
    return shape, position, orientation / length if abs(length - 1.0) > 1e-15 else orientation


def _simple(shape, position, orientation):
    """The same as a list of shapes with one part each."""
    if isinstance(shape, Clump):
        balls = zip(shape.centres, shape.radii, strict=True)
        inner = tuple((Sphere(r), c, np.array(NO_TURN)) for c, r in balls)
    elif isinstance(shape, Compound):
        inner = shape.pieces
    else:
        return [(shape, position, orientation)]
    turn = rotation_matrices(orientation[None])[0]
    return [(one, position + turn @ x, _after(orientation, q)) for one, x, q in inner]


def _after(p, q):
    """The turn q followed by the turn p."""
    real, rest = p[0] * q[0] - p[1:] @ q[1:], p[0] * q[1:] + q[0] * p[1:] + np.cross(p[1:], q[1:])
    return np.concatenate([[real], rest])


PIECES = (Sphere, Ellipsoid, Polyhedron, Superquadric, Capsule, Clump, Compound)

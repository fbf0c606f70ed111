"""A convex polyhedron: the hull of points, a box, a regular solid or a random rock."""

import operator

import numpy as np
from numpy.typing import ArrayLike

from ..errors import pick
from ..kernels.vec import rotation_matrices
from ..signatures import Few, Floats, Skin, Turns, Vector, Whole
from ..tables import POLYHEDRON, Parts, make_parts
from .hull import build_hull, hull_of, solid_properties, triangles_of

GOLDEN = 0.5 * (1.0 + np.sqrt(5.0))
TRIES = 400  # random rocks tried for one with the right number of faces, none of them a speck


class Polyhedron:
    """The convex hull of points (n,3) [m], as one particle of uniform density.

    The particle's position is its centre of mass; `origin` (3,) is that point in the coordinates of `points`.
    `vertices` (v,3) [m] are the corners about it, `faces` their rows face by face, counterclockwise seen from outside;
    `volume` [m^3] and `inertia` (3,3) [m^2], per mass and in the axes of the points, are those of the solid.
    """

    wall = False
    mesh = None

    def __init__(self, points: ArrayLike) -> None:
        middle, corners, faces = hull_of(points)
        volume, centre, inertia = solid_properties(corners, triangles_of(faces))
        self.origin = middle + centre
        self._build(volume, corners - centre, faces, inertia)

    def _build(self, volume, vertices, faces, inertia):
        self.volume, self.vertices, self.faces, self.inertia = volume, vertices, tuple(faces), inertia
        self.hull = build_hull(self.vertices, faces, self.volume)
        # A cube turns like a ball.
        self.round = np.array_equal(self.inertia, self.inertia[0, 0] * np.eye(3))
        # Equal shapes share one mold, found by their hash.
        self._hash = hash((self.hull.vertex.tobytes(), self.hull.loop.tobytes()))

    def __repr__(self):
        return f"Polyhedron({len(self.vertices)} corners, {len(self.faces)} faces, volume {self.volume:.6g} m^3)"

    def __eq__(self, other: object) -> bool:
        """Whether both have the same corners about their centres of mass, and the same faces, to the bit."""
        if not isinstance(other, Polyhedron):
            return NotImplemented
        columns = ("vertex", "loop", "loop_start")
        return all(np.array_equal(getattr(self.hull, k), getattr(other.hull, k)) for k in columns)

    def __hash__(self):
        return self._hash

    @classmethod
    def box(cls, a: float, b: float | None = None, c: float | None = None) -> "Polyhedron":
        """A box with edges a, b, c [m] along x, y, z."""
        like = "write for example clast.Polyhedron.box(0.02, 0.01, 0.01)"
        for name, value in (("b", b), ("c", c)):
            if value is None:
                raise TypeError(f"a box needs three edges a, b, c [m], and {name} is missing; {like}")
        edges = [
            _length(f"the edge {name} of a box", value, like) for name, value in zip("abc", (a, b, c), strict=True)
        ]
        return cls(_signs(0.5, 0.5, 0.5) * edges)

    @classmethod
    def regular(cls, name: str, *, radius: float | None = None, edge: float | None = None) -> "Polyhedron":
        """A regular solid: "tetrahedron", "cube", "octahedron", "dodecahedron" or "icosahedron".

        radius: of the ball through its corners [m], 1 unless given; edge: length of its edges [m], instead of radius.
        """
        corners = pick("regular solid", name, REGULAR)
        place = f"Polyhedron.regular({name!r})"
        if radius is not None and edge is not None:
            raise ValueError(f"{place}: radius={radius!r} and edge={edge!r} both give its size; leave one of them out")
        if edge is not None:
            apart = np.linalg.norm(corners[1:] - corners[0], axis=1).min()
            return cls(corners * (_length(f"{place}: edge", edge) / apart))
        around = np.sqrt((corners[0] ** 2).sum())
        return cls(corners * (_length(f"{place}: radius", 1.0 if radius is None else radius) / around))

    @classmethod
    def random(
        cls, *, faces: Whole, seed: Whole = 0, radius: float = 1.0, aspect: Few = (1.0, 1.0, 1.0)
    ) -> "Polyhedron":
        """A rock with exactly `faces` faces; the same seed gives the same rock.

        radius: of the ball about its centre of mass that contains it [m]; aspect: how long it is along x, y and z
        against each other.
        """
        place = "Polyhedron.random"
        count, seed = _whole(f"{place}: faces", faces, 4), _whole(f"{place}: seed", seed, 0)
        if count > 500:
            raise ValueError(f"{place}: faces must be at most 500, got {count}; use clast.Sphere or clast.Ellipsoid")
        radius = _length(f"{place}: radius", radius)
        if np.shape(aspect) != (3,):
            raise ValueError(
                f"{place}: aspect must be three numbers along x, y, z such as (1, 0.8, 0.6), got {aspect!r}"
            )
        stretch = np.array([_length(f"{place}: aspect", value) for value in aspect])
        rng = np.random.default_rng(seed)
        for attempt in range(TRIES):
            corners = _rock(rng, count, attempt / TRIES)
            if corners is None:
                continue
            rough = cls(corners * (stretch / stretch.max()))
            rock = cls(rough.vertices * (radius / rough.hull.outer[0]))
            if len(rock.faces) == count:
                return rock
        raise ValueError(
            f"{place}: no rock with {count} faces was found for seed {seed}; use another seed or fewer faces"
        )

    def parts(self) -> Parts:
        """One POLYHEDRON part at the origin."""
        hull = self.hull
        return make_parts(
            1,
            kind=POLYHEDRON,
            feature=0,
            reach=hull.outer,
            ball=hull.ball,
            small=hull.inner,
            large=hull.ball,
            deep=hull.inner,
            swing=np.sqrt(hull.outer**2 - hull.inner**2),
        )

    def bounds(self, position: Vector = (0.0, 0.0, 0.0), orientation: Turns = (1.0, 0.0, 0.0, 0.0)) -> Floats:
        """The least axis-parallel box that contains it, (2,3) low and high [m], at a position and orientation."""
        placed = self.vertices @ rotation_matrices(np.array([orientation], dtype=float))[0].T + np.asarray(position)
        return np.stack([placed.min(axis=0), placed.max(axis=0)])

    def turned(self, orientation: Few) -> "Polyhedron":
        """The same polyhedron turned by a unit quaternion (4,)."""
        if tuple(orientation) == (1.0, 0.0, 0.0, 0.0):
            return self
        turn = rotation_matrices(np.array([orientation], dtype=float))[0]
        made = Polyhedron.__new__(Polyhedron)
        made._build(self.volume, self.vertices @ turn.T, self.faces, turn @ self.inertia @ turn.T)
        made.origin = self.origin
        return made

    def support(self, n: Floats) -> Floats:
        """How far it reaches along unit directions n (k,3): (k,) [m]."""
        return (n @ self.vertices.T).max(axis=1)

    def chords(self, start: Floats, way: Floats) -> tuple[Floats, Floats]:
        """Where lines are in it, see `Sphere.chords`."""
        first, last = np.full(len(start), -np.inf), np.full(len(start), np.inf)
        for normal, offset in zip(self.hull.normal.T, self.hull.offset, strict=True):
            room, slope = offset - start @ normal, float(way @ normal)
            if slope > 0.0:
                last = np.minimum(last, room / slope)
            elif slope < 0.0:
                first = np.maximum(first, room / slope)
            else:
                first = np.where(room < 0.0, np.inf, first)
        return first, last

    def surface(self, extent: float | None = None) -> Skin:
        """Vertices (v,3) [m] and triangles (t,3)."""
        return self.vertices.copy(), triangles_of(self.faces)


def _length(what, value, like="give a length above 0"):
    """The number `value` as a float, finite and above 0, or an error that names it."""
    try:
        length = float(value)
    except (TypeError, ValueError):
        raise TypeError(f"{what} must be a number [m], got {value!r}; {like}") from None
    if not (length > 0.0 and np.isfinite(length)):
        raise ValueError(f"{what} must be finite and above 0, got {value!r}; {like}")
    return length


def _whole(what, value, least):
    try:
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"{what} must be a whole number, got {value!r}") from None
    if number < least:
        raise ValueError(f"{what} must be at least {least}, got {number}")
    return number


def _signs(x, y, z):
    """The corners (k,3) with all signs of x, y and z, each once."""
    grid = np.meshgrid(*[[-value, value] if value else [0.0] for value in (x, y, z)], indexing="ij")
    return np.array(grid).reshape(3, -1).T


REGULAR = {
    "tetrahedron": np.array([[1.0, 1.0, 1.0], [1.0, -1.0, -1.0], [-1.0, 1.0, -1.0], [-1.0, -1.0, 1.0]]),
    "cube": _signs(1.0, 1.0, 1.0),
    "octahedron": np.concatenate([_signs(1.0, 0.0, 0.0), _signs(0.0, 1.0, 0.0), _signs(0.0, 0.0, 1.0)]),
    "dodecahedron": np.concatenate(
        [
            _signs(1.0, 1.0, 1.0),
            _signs(0.0, 1.0 / GOLDEN, GOLDEN),
            _signs(1.0 / GOLDEN, GOLDEN, 0.0),
            _signs(GOLDEN, 0.0, 1.0 / GOLDEN),
        ]
    ),
    "icosahedron": np.concatenate([_signs(0.0, 1.0, GOLDEN), _signs(1.0, GOLDEN, 0.0), _signs(GOLDEN, 0.0, 1.0)]),
}


def _rock(rng, count, evenness):
    """Corners (v,3) of a body between `count` planes around a ball of radius about 1, or None if one cuts nothing off.

    The planes look in directions that push each other apart a little; evenness 0 is wild, 1 is nearly regular.
    """
    from scipy.spatial import ConvexHull, QhullError

    direction = _spread(rng.normal(size=(count, 3)), 6 + round(60 * evenness))
    # A plane is hidden by its neighbours when it is farther out than they bulge, about 2 pi / count.
    distance = 1.0 + min(0.3, 3.0 / count) * (1.0 - evenness) * rng.uniform(-1.0, 1.0, count)
    # Planes and corners change places in the dual: each plane is a point, each triangle of the hull of those a corner.
    try:
        dual = ConvexHull(direction / distance[:, None])
    except QhullError:
        return None
    # Corners of regular solids are 3 times as far out as faces for 4 faces, 1.7 for 6, 1.26 for 12 and 20.
    if len(dual.vertices) < count or (-dual.equations[:, 3] * (1.1 + 10.0 / count) < 1.0).any():
        return None  # a plane cuts nothing off, or a corner is a spike
    corners = -dual.equations[:, :3] / dual.equations[:, 3:]
    size = np.zeros(count)
    for k in range(count):  # No face may be a speck: it must be some part as wide as the faces are on average.
        rows = np.flatnonzero((dual.simplices == k).any(axis=1))
        size[k] = np.linalg.norm(corners[rows] - corners[rows].mean(0), axis=1).mean()
    return corners if size.min() > 0.25 * size.mean() else None


def _spread(direction, rounds):
    """Unit vectors (n,3) along the given ones, after so many rounds in which near ones push each other apart."""
    direction = direction / np.linalg.norm(direction, axis=1)[:, None]
    room = np.sqrt(4.0 * np.pi / len(direction))  # about the angle between neighbours
    for _ in range(rounds):
        apart = direction[:, None, :] - direction[None, :, :]
        square = np.einsum("ijk,ijk->ij", apart, apart) + 1e-3 * room**2
        push = np.einsum("ijk,ij->ik", apart, square**-1.5)
        push *= 0.1 * room / np.maximum(np.linalg.norm(push, axis=1).mean(), 1e-12)
        push *= np.minimum(1.0, 0.3 * room / np.maximum(np.linalg.norm(push, axis=1), 1e-12))[:, None]
        direction = direction + push
        direction /= np.linalg.norm(direction, axis=1)[:, None]
    return direction

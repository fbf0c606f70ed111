"""A particle with a surface of triangles, which may have dents and holes through it, and a halo in which contacts act."""

import numpy as np
from numpy.typing import ArrayLike

from ..kernels.backend import func
from ..kernels.vec import rotation_matrices
from ..signatures import Floats, Skin, Turns, Vector, Whole
from ..tables import MESH, Parts, Surfaces, make_parts
from .box_tree import build_tree
from .closed import refuse_degenerate, refuse_inverted, refuse_open, turns_around
from .hull import cross_product, solid_properties
from .mesh import checked, merge_vertices
from .outline import outline
from .polyhedron import _length, _whole

HALO = 0.05  # thickness of the halo as a part of the radius of the ball of the same volume, unless given
THICKEST = 0.5  # of the halo, as a part of that radius
TRIES = 400  # random meshes tried for one around its own middle
NARROW = 1e-6  # a random mesh has no triangle with less area than this part of its longest side squared


class Mesh:
    """The solid within a closed surface of triangles, as one particle of uniform density.

    vertices (v,3) [m]; triangles (t,3) rows of vertices, counterclockwise seen from outside. The surface may be concave,
    have holes through it and consist of several closed shells, one inside the other for a hollow; it must not cut through
    itself. Equal vertices are merged, so a soup of triangles is welcome.

    epsilon [m]: thickness of the halo around the surface in which contacts act; 0.05 of the radius of the ball of the same
    volume unless given. The particle's position is its centre of mass; `origin` (3,) is that point in the coordinates of
    `vertices`. `vertices` and `triangles` are about it; `volume` [m^3], `inertia` (3,3) [m^2] per mass.
    """

    wall = False
    mesh = None
    round = False

    def __init__(self, vertices: ArrayLike, triangles: ArrayLike, *, epsilon: float | None = None) -> None:
        vertices, triangles = checked(vertices, triangles)
        merged, triangles = merge_vertices(vertices, triangles)
        refuse_degenerate(merged, triangles)
        refuse_open(merged, triangles)
        used, rows = np.unique(triangles, return_inverse=True)
        refuse_inverted(merged[used] - merged[used[0]], rows.reshape(-1, 3))
        self._build(merged[used], rows.reshape(-1, 3), epsilon)

    def _build(self, vertices, triangles, epsilon, radius=None):
        """All that follows from the triangles of closed shells on distinct vertices, each of which is used.

        radius: of the ball about the centre of mass that the mesh is scaled to fit [m]; None leaves it as it is.
        """
        low, high = vertices.min(axis=0), vertices.max(axis=0)
        middle = 0.5 * low + 0.5 * high
        vertices = vertices - middle
        self.volume, centre, self.inertia = solid_properties(vertices, triangles)
        self.origin = middle + centre
        self.vertices = vertices - centre
        if radius is not None:
            factor = radius / np.sqrt(np.einsum("vi,vi->v", self.vertices, self.vertices).max())
            self.vertices *= factor
            self.volume, self.inertia, self.origin = self.volume * factor**3, self.inertia * factor**2, np.zeros(3)
        self.triangles = triangles.astype(np.int32)
        ball = np.cbrt(3.0 * self.volume / (4.0 * np.pi))
        self.epsilon = halo(epsilon, ball)
        self.triangulation = build_surface(self.vertices, triangles, self.epsilon, ball)
        # Equal shapes share one mold, found by their hash.
        self._hash = hash((self.vertices.tobytes(), self.triangles.tobytes(), self.epsilon))

    def __repr__(self):
        return (
            f"Mesh({len(self.vertices)} vertices, {len(self.triangles)} triangles, volume {self.volume:.6g} m^3, "
            f"epsilon {self.epsilon:.3g} m)"
        )

    def __eq__(self, other: object) -> bool:
        """Whether both have the same triangles about their centres of mass and the same halo, to the bit."""
        if not isinstance(other, Mesh):
            return NotImplemented
        same = self.epsilon == other.epsilon and np.array_equal(self.triangles, other.triangles)
        return same and np.array_equal(self.vertices, other.vertices)

    def __hash__(self):
        return self._hash

    @classmethod
    def random(
        cls,
        points: Whole = 50,
        distortion: tuple[float, float] = (0.75, 1.0),
        *,
        seed: Whole = 0,
        radius: float = 1.0,
        epsilon: float | None = None,
    ) -> "Mesh":
        """A lump with 2 points - 4 triangles; the same seed gives the same lump.

        points: random on a ball; around them their convex hull, each corner of which is then moved towards the middle,
        to a random part between the two of `distortion` of its distance. radius: of the ball about the centre of mass that
        contains it [m]; epsilon as in Mesh.
        """
        place = "Mesh.random"
        count, seed = _whole(f"{place}: points", points, 4), _whole(f"{place}: seed", seed, 0)
        radius = _length(f"{place}: radius", radius)
        if np.shape(distortion) != (2,):
            raise ValueError(f"{place}: distortion must be two numbers such as (0.75, 1.0), got {distortion!r}")
        low, high = (
            _length(f"{place}: distortion", value, "give two numbers such as (0.75, 1.0)") for value in distortion
        )
        if low > high:
            raise ValueError(f"{place}: distortion must have the lower number first, got {distortion!r}")
        rng = np.random.default_rng(seed)
        for _ in range(TRIES):
            lump = _lump(rng, count, low, high)
            if lump is not None:
                made = cls.__new__(cls)  # Closed and oriented as it is made: nothing to check.
                made._build(*lump, epsilon, radius)
                return made
        raise ValueError(
            f"{place}: no lump of {count} points was found for seed {seed}; use another seed or more points"
        )

    def parts(self) -> Parts:
        """One MESH part at the origin; the halo is inside its reach."""
        own = self.triangulation
        return make_parts(
            1,
            kind=MESH,
            feature=0,
            reach=own.outer + self.epsilon,
            ball=own.ball,
            # The corner of a body gives way by turning too, as if it were lighter.
            small=0.5 * own.ball,
            large=own.ball,
            deep=self.epsilon,
            swing=own.outer,
        )

    def bounds(self, position: Vector = (0.0, 0.0, 0.0), orientation: Turns = (1.0, 0.0, 0.0, 0.0)) -> Floats:
        """The least axis-parallel box around the triangles, (2,3) low and high [m], at a position and orientation."""
        placed = self.vertices @ rotation_matrices(np.array([orientation], dtype=float))[0].T + np.asarray(position)
        return np.stack([placed.min(axis=0), placed.max(axis=0)])

    def surface(self, extent: float | None = None) -> Skin:
        """Vertices (v,3) [m] and triangles (t,3), without the halo."""
        return self.vertices.copy(), self.triangles.copy()


@func
def is_mesh(kind):
    """Whether a shape of this kind is a triangulated particle."""
    return kind == MESH


def halo(epsilon, ball):
    """The thickness of the halo [m]: as given, or the default for a solid as large as a ball of this radius [m]."""
    if epsilon is None:
        return HALO * float(ball)
    epsilon = _length("epsilon, the thickness of the halo of a mesh", epsilon)
    if epsilon > THICKEST * ball:
        raise ValueError(
            f"epsilon={epsilon:g} m is too thick a halo for a mesh as large as a ball of radius {ball:.3g} m; give at "
            f"most half of that, or leave epsilon out for {HALO * ball:.3g} m"
        )
    return epsilon


def build_surface(vertices, triangles, epsilon, ball):
    """Surfaces with one row, for vertices (v,3) [m] about the centre of mass and triangles (t,3)."""
    tree = build_tree(vertices[triangles])
    corner = vertices[triangles[tree.order]]
    sides = corner[:, (1, 2, 0)] - corner
    square = np.einsum("tki,tki->tk", sides, sides)
    # Cross the two shortest sides: they meet at the corner opposite the longest, where rounding costs least.
    longest = square.argmax(axis=1)
    row = np.arange(len(triangles))
    normal = cross_product(sides[row, (longest + 1) % 3], sides[row, (longest + 2) % 3])
    normal /= np.sqrt(np.einsum("ti,ti->t", normal, normal))[:, None]
    return Surfaces(
        triangle_start=np.array([0, len(triangles)], np.int32),
        vertex_start=np.array([0, len(vertices)], np.int32),
        node_start=np.array([0, len(tree.child)], np.int32),
        corner=np.ascontiguousarray(corner.reshape(-1, 9).T),
        normal=np.ascontiguousarray(normal.T),
        row=tree.order.astype(np.int32),
        outline=outline(vertices, triangles, sheet=False)[tree.order],
        vertex=np.ascontiguousarray(vertices.T),
        box=tree.box,
        child=tree.child,
        first=tree.first,
        last=tree.last,
        epsilon=np.array([epsilon]),
        skin=np.zeros(1),
        shortest=np.array([np.sqrt(square.min())]),
        inner=np.array([inner_ball(corner)]),
        outer=np.array([np.sqrt(np.einsum("vi,vi->v", vertices, vertices).max())]),
        ball=np.array([ball]),
    )


def inner_ball(corner):
    """Radius [m] of the largest ball about the origin within a closed surface with corners (t,3,3); 0 if that is outside."""
    sides = corner[:, (1, 2, 0)] - corner
    normal = cross_product(sides[:, 0], sides[:, 1])
    height = np.einsum("ti,ti->t", normal, corner[:, 0])
    # Where every triangle is seen from behind, the origin is inside.
    if (height <= 0.0).any() and turns_around(corner, np.zeros(3)) < 0.5:
        return 0.0
    along = np.einsum("tki,tki->tk", sides, sides)
    part = np.clip(-np.einsum("tki,tki->tk", sides, corner) / along, 0.0, 1.0)
    nearest = corner + part[:, :, None] * sides
    least = np.einsum("tki,tki->tk", nearest, nearest).min()
    # Where the foot of the perpendicular is within the triangle, its plane is nearer than its sides.
    within = (np.einsum("tki,ti->tk", cross_product(sides, -corner), normal) > 0.0).all(axis=1)
    if within.any():
        normal = normal[within]
        least = min(least, (height[within] ** 2 / np.einsum("ti,ti->t", normal, normal)).min())
    return float(np.sqrt(least))


def _lump(rng, count, low, high) -> tuple[np.ndarray, np.ndarray] | None:
    """Vertices (count,3) and triangles of a random lump around the origin, or None if that is not well inside."""
    from scipy.spatial import ConvexHull, QhullError

    point = rng.normal(size=(count, 3))
    point /= np.sqrt(np.einsum("ni,ni->n", point, point))[:, None]
    try:
        hull = ConvexHull(point)
    except QhullError:
        return None
    if hull.equations[:, 3].max() > -0.05 or len(hull.simplices) != 2 * count - 4:
        return None
    vertices = point * rng.uniform(low, high, count)[:, None]
    triangles = hull.simplices.astype(np.int64)
    corner = vertices[triangles]
    cross = cross_product(corner[:, 1] - corner[:, 0], corner[:, 2] - corner[:, 0])
    # All rays from the origin meet the surface once, so its outside is where they leave.
    turned = np.einsum("ti,ti->t", corner[:, 0], cross) < 0.0
    triangles[turned, 1:] = triangles[turned, :0:-1]
    longest = (np.ptp(corner, axis=1) ** 2).sum(axis=1)
    return (vertices, triangles) if (np.einsum("ti,ti->t", cross, cross) > (NARROW * longest) ** 2).all() else None

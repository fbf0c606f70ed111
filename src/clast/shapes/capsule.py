"""A capsule: all points within a radius of a straight line that ends."""

from dataclasses import dataclass

import numpy as np

from ..kernels.vec import rotation_matrices
from ..signatures import Floats, Skin, Turns, Vector
from ..tables import MESH, Parts, Surfaces, make_parts
from .polyhedron import _length
from .sphere import ball_chords

ROUND, RINGS = 48, 12  # sides of the drawn cylinder, rings of each drawn cap


@dataclass(frozen=True)
class Capsule:
    """A cylinder with half balls at its ends: radius [m], and length [m] from the centre of one ball to that of the other, along z of its body.

    It is a triangulated particle whose triangles have no area, its axis and the two ends of it, with a halo as thick as the radius: the gap is
    the distance from its axis less the radius, exact as long as nothing goes through the axis.
    """

    radius: float
    length: float

    wall = False
    mesh = None
    round = False

    def __post_init__(self) -> None:
        for name in ("radius", "length"):
            like = "write for example clast.Capsule(0.005, 0.02), or clast.Sphere(radius) for a ball"
            object.__setattr__(self, name, _length(f"the {name} of a capsule", getattr(self, name), like))

    @property
    def volume(self) -> float:
        """[m^3]"""
        return np.pi * self.radius**2 * (self.length + 4.0 / 3.0 * self.radius)

    @property
    def inertia(self) -> Floats:
        """Inertia tensor per mass [m^2], (3,3)."""
        r, h = self.radius, self.length
        balls = 4.0 / 3.0 * r / (h + 4.0 / 3.0 * r)  # their part of the mass
        tube = 1.0 - balls
        along = (0.5 * tube + 0.4 * balls) * r * r
        across = tube * (h * h / 12.0 + r * r / 4.0) + balls * (0.4 * r * r + h * h / 4.0 + 0.375 * h * r)
        return np.diag([across, across, along])

    @property
    def triangulation(self) -> Surfaces:
        """Surfaces with one row: the two ends and the axis between them, each as a triangle without area and without a normal."""
        return self.turned((1.0, 0.0, 0.0, 0.0))

    def turned(self, orientation: Turns) -> Surfaces:
        """The same of the capsule turned by a quaternion (4,) within the axes of its body.

        The ends stand by themselves so that a capsule that lies on a face rests on both.
        """
        half = 0.5 * self.length
        end = half * rotation_matrices(np.array([orientation], dtype=float))[0][:, 2]
        ends = np.stack([0.0 - end, end])
        corner = ends[[[0, 0, 0], [1, 1, 1], [0, 1, 1]]]
        return Surfaces(
            triangle_start=np.array([0, 3], np.int32),
            vertex_start=np.array([0, 2], np.int32),
            node_start=np.array([0, 1], np.int32),
            corner=np.ascontiguousarray(corner.reshape(-1, 9).T),
            normal=np.zeros((3, 3)),
            row=np.arange(3, dtype=np.int32),
            outline=np.zeros(3, np.int8),
            vertex=np.ascontiguousarray(ends.T),
            box=np.concatenate([0.0 - np.abs(end), np.abs(end)])[:, None],
            child=np.array([-1], np.int32),
            first=np.array([0], np.int32),
            last=np.array([3], np.int32),
            epsilon=np.array([self.radius]),
            skin=np.array([self.radius]),
            # Points nearer than this are one: of a ball that touches beside an end, the end is none.
            shortest=np.array([min(self.radius, 0.5 * self.length)]),
            inner=np.zeros(1),
            outer=np.array([half]),
            ball=np.array([np.cbrt(0.75 * self.volume / np.pi)]),
        )

    def parts(self) -> Parts:
        """One MESH part at the origin."""
        return make_parts(
            1,
            kind=MESH,
            feature=0,
            reach=0.5 * self.length + self.radius,
            ball=self.radius,
            small=self.radius,
            large=self.radius,
            deep=self.radius,
            swing=0.5 * self.length,
        )

    def bounds(self, position: Vector = (0.0, 0.0, 0.0), orientation: Turns = (1.0, 0.0, 0.0, 0.0)) -> Floats:
        """The least axis-parallel box that contains it, (2,3) low and high [m], at a position and orientation."""
        half = self.support(rotation_matrices(np.array([orientation], dtype=float))[0])
        return np.stack([np.asarray(position) - half, np.asarray(position) + half])

    def support(self, n: Floats) -> Floats:
        """How far it reaches along unit directions n (k,3): (k,) [m]."""
        return self.radius + 0.5 * self.length * np.abs(n[:, 2])

    def chords(self, start: Floats, way: Floats) -> tuple[Floats, Floats]:
        """Where lines are in it, see `Sphere.chords`: from the first to the last of where they are in the cylinder and in the balls at its ends."""
        half, low, high = 0.5 * self.length, np.full(len(start), np.inf), np.full(len(start), -np.inf)
        ends = [(start - [0.0, 0.0, z]) / self.radius for z in (-half, half)]
        pieces = [ball_chords(x, way / self.radius) for x in ends]
        # Across the axis the cylinder is a ball, and along it what is between two planes.
        flat = np.array([1.0, 1.0, 0.0]) / self.radius
        if way @ (flat * way) > 0.0:
            first, last = ball_chords(start * flat, way * flat)
        else:
            first = np.where(np.einsum("mi,mi->m", start * flat, start * flat) < 1.0, -np.inf, np.inf)
            last = -first
        if way[2] != 0.0:
            one, two = (-half - start[:, 2]) / way[2], (half - start[:, 2]) / way[2]
            first, last = np.maximum(first, np.minimum(one, two)), np.minimum(last, np.maximum(one, two))
        else:
            first = np.where(np.abs(start[:, 2]) < half, first, np.inf)
        for one, two in [*pieces, (first, last)]:
            hit = one < two
            low, high = np.where(hit, np.minimum(low, one), low), np.where(hit, np.maximum(high, two), high)
        return np.where(low < high, low, 1.0), np.where(low < high, high, -1.0)

    def surface(self, extent: float | None = None) -> Skin:
        """Vertices (v,3) [m], on the capsule, and triangles (t,3)."""
        angle = np.linspace(0.0, 2.0 * np.pi, ROUND, endpoint=False)
        rise = np.linspace(0.0, 0.5 * np.pi, RINGS + 1)[:-1]
        flat, up = self.radius * np.cos(rise), 0.5 * self.length + self.radius * np.sin(rise)
        flat, up = np.concatenate([flat[::-1], flat]), np.concatenate([-up[::-1], up])
        rings = np.stack(
            [np.outer(flat, np.cos(angle)), np.outer(flat, np.sin(angle)), np.outer(up, np.ones(ROUND))], axis=2
        )
        tip = 0.5 * self.length + self.radius
        vertices = np.vstack([rings.reshape(-1, 3), [[0.0, 0.0, -tip], [0.0, 0.0, tip]]])
        here = np.arange(ROUND)
        after = (here + 1) % ROUND
        low = ROUND * np.arange(len(flat) - 1)[:, None]
        a, b, c, d = (low + row for row in (here, after, after + ROUND, here + ROUND))
        last, south = ROUND * (len(flat) - 1), len(vertices) - 2
        triangles = [
            np.stack([a, b, c], axis=2).reshape(-1, 3),
            np.stack([a, c, d], axis=2).reshape(-1, 3),
            np.stack([after, here, np.full(ROUND, south)], axis=1),
            np.stack([last + here, last + after, np.full(ROUND, south + 1)], axis=1),
        ]
        return vertices, np.concatenate(triangles).astype(np.int32)

"""A ball."""

from dataclasses import dataclass

import numpy as np

from ..signatures import Floats, Skin
from ..tables import SPHERE, Parts, make_parts


@dataclass(frozen=True)
class Sphere:
    """A ball with the given radius [m]."""

    radius: float

    wall = False
    round = True
    mesh = None

    def __post_init__(self) -> None:
        radius = float(self.radius)
        if not 1e-30 < radius < 1e30:  # its fifth power must be a number, too
            raise ValueError(f"a sphere needs a finite (1e-30 to 1e30 m) radius > 0, got {self.radius}")
        object.__setattr__(self, "radius", radius)

    @property
    def volume(self) -> float:
        """[m^3]"""
        return 4.0 / 3.0 * np.pi * self.radius**3

    @property
    def inertia(self) -> Floats:
        """Inertia tensor per mass [m^2], (3,3)."""
        return 0.4 * self.radius**2 * np.eye(3)

    def parts(self) -> Parts:
        """One SPHERE part at the origin."""
        return sphere_parts(np.zeros((1, 3)), np.array([self.radius]))

    def support(self, n: Floats) -> Floats:
        """How far it reaches along unit directions n (k,3): (k,) [m]."""
        return np.full(len(n), self.radius)

    def chords(self, start: Floats, way: Floats) -> tuple[Floats, Floats]:
        """Where lines start + t way, start (m,3) [m] and way (3,) unit, are in it: from t (m,) to t (m,) [m], the first above
        the second where they miss it."""
        return ball_chords(start / self.radius, way / self.radius)

    def surface(self, extent: float | None = None) -> Skin:
        """Vertices (v,3) [m] and triangles (t,3)."""
        return sphere_surface(np.zeros((1, 3)), np.array([self.radius]))


def sphere_parts(centres, radii):
    """Parts for balls at centres (k,3) with radii (k,)."""
    k = len(radii)
    size = np.zeros((k, 3))
    size[:, 0] = radii
    same = dict.fromkeys(("reach", "ball", "small", "large", "deep"), radii)
    return make_parts(k, kind=np.full(k, SPHERE), offset=centres, size=size, **same)


def ball_chords(start, way):
    """`Sphere.chords` of a ball of radius 1; way of any length."""
    square, along = way @ way, start @ way
    inside = along**2 - square * (np.einsum("mi,mi->m", start, start) - 1.0)
    half = np.where(inside > 0.0, np.sqrt(np.maximum(inside, 0.0)), -1.0)
    return (-along - half) / square, (-along + half) / square


def sphere_surface(centres, radii):
    """Vertices and triangles of balls at centres (k,3) with radii (k,), 320 triangles each."""
    from trimesh.creation import icosphere

    ball = icosphere(subdivisions=2)
    vertices = np.asarray(ball.vertices)[None, :, :] * np.asarray(radii)[:, None, None] + centres[:, None, :]
    first = len(ball.vertices) * np.arange(len(radii))
    triangles = np.asarray(ball.faces)[None, :, :] + first[:, None, None]
    return vertices.reshape(-1, 3), triangles.reshape(-1, 3).astype(np.int32)

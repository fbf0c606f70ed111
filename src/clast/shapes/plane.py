"""An endless plane with matter on one side."""

from dataclasses import dataclass

import numpy as np

from ..signatures import Floats, Skin
from ..tables import PLANE, Parts, make_parts


@dataclass(frozen=True)
class Plane:
    """A plane through the position of its body. Particles are on the side of `normal`, matter on the other."""

    normal: tuple = (0.0, 0.0, 1.0)

    wall = True
    round = False
    mesh = None
    volume = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "normal", unit(self.normal, "the normal of a plane"))

    @property
    def inertia(self) -> Floats:
        """Zeros (3,3): walls do not accelerate."""
        return np.zeros((3, 3))

    def parts(self) -> Parts:
        """One PLANE part without end."""
        return wall_part(PLANE, self.normal, (0.0, 0.0, 0.0), np.inf)

    def surface(self, extent: float = 1.0) -> Skin:
        """A square with sides of length extent [m] about the origin: vertices (4,3), triangles (2,3)."""
        a, b = frame(self.normal)
        half = 0.5 * extent
        vertices = np.array([-a - b, a - b, a + b, b - a]) * half
        return vertices, np.array([[0, 1, 2], [0, 2, 3]], np.int32)


def unit(vector, what):
    """`vector` as a unit 3-tuple; ValueError naming `what` if it has no direction."""
    v = np.asarray(vector, dtype=float)
    fine = v.shape == (3,) and np.isfinite(v).all() and 1e-100 < np.abs(v).max() < 1e100
    if not fine:
        raise ValueError(f"{what} must be three finite numbers, not all zero, at most 1e100, got {vector!r}")
    length = float(np.linalg.norm(v))
    return tuple(float(x) for x in v / length)


def frame(axis):
    """Two unit vectors a, b (3,) with a x b = axis."""
    axis = np.asarray(axis)
    a = np.cross(np.eye(3)[np.argmin(np.abs(axis))], axis)
    a /= np.linalg.norm(a)
    return a, np.cross(axis, a)


def wall_part(kind, axis, size, reach):
    """Parts with one row at the origin."""
    return make_parts(1, kind=kind, axis=axis, size=size, reach=reach)

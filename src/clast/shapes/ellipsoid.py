"""An ellipsoid with three half-axes of its own."""

from dataclasses import dataclass

import numpy as np

from ..kernels.vec import rotation_matrices
from ..signatures import Floats, Skin, Turns, Vector
from ..tables import ELLIPSOID, Parts, make_parts
from .sphere import ball_chords


@dataclass(frozen=True)
class Ellipsoid:
    """An ellipsoid with half-axes a, b, c [m] along x, y, z of its body: (x/a)^2 + (y/b)^2 + (z/c)^2 = 1."""

    a: float
    # None only so that a half-axis left out is answered by a message of our own.
    b: float = None  # type: ignore[assignment]
    c: float = None  # type: ignore[assignment]

    wall = False
    mesh = None

    def __post_init__(self) -> None:
        for name in "abc":
            object.__setattr__(self, name, _half_axis(name, getattr(self, name)))

    @property
    def axes(self) -> Floats:
        """Half-axes (3,) [m]."""
        return np.array([self.a, self.b, self.c])

    @property
    def round(self) -> bool:
        """Whether it is a ball, whose orientation has no influence on its motion."""
        return self.a == self.b == self.c

    @property
    def volume(self) -> float:
        """[m^3]"""
        return 4.0 / 3.0 * np.pi * self.a * self.b * self.c

    @property
    def inertia(self) -> Floats:
        """Inertia tensor per mass [m^2], (3,3)."""
        square = self.axes**2
        return 0.2 * np.diag(square.sum() - square)

    def parts(self) -> Parts:
        """One ELLIPSOID part at the origin."""
        axes = self.axes
        return make_parts(
            1,
            kind=ELLIPSOID,
            size=axes,
            reach=axes.max(),
            ball=axes.prod() ** (1.0 / 3.0),
            small=axes.min(),
            # The radius of curvature a b / c on the flat side.
            large=axes.prod() / axes.min() ** 2,
            deep=axes.min(),
            swing=axes.max() - axes.min(),
        )

    def bounds(self, position: Vector = (0.0, 0.0, 0.0), orientation: Turns = (1.0, 0.0, 0.0, 0.0)) -> Floats:
        """The least axis-parallel box that contains it, (2,3) low and high [m], at a position and orientation."""
        half = half_widths(np.array([orientation], dtype=float), self.axes[None, :])[0]
        return np.stack([np.asarray(position) - half, np.asarray(position) + half])

    def support(self, n: Floats) -> Floats:
        """How far it reaches along unit directions n (k,3): (k,) [m]."""
        return np.linalg.norm(n * self.axes, axis=1)

    def chords(self, start: Floats, way: Floats) -> tuple[Floats, Floats]:
        """Where lines are in it, see `Sphere.chords`."""
        return ball_chords(start / self.axes, way / self.axes)

    def surface(self, extent: float | None = None) -> Skin:
        """Vertices (v,3) [m], on the ellipsoid and at the ends of its axes, and triangles (t,3)."""
        from trimesh.creation import icosphere

        # A stretched ball: its facets are as fine at the tip of a needle, against the tip's own size, as on a ball.
        ball = icosphere(subdivisions=4)
        return np.asarray(ball.vertices) * self.axes, np.asarray(ball.faces, dtype=np.int32)


def _half_axis(name, value):
    """The number `value` as a float, or an error that shows how an ellipsoid is made."""
    like = "write for example clast.Ellipsoid(0.005, 0.004, 0.003), or clast.Sphere(radius) for a ball"
    if value is None:
        raise TypeError(f"an ellipsoid needs three half-axes a, b, c [m], and {name} is missing; {like}")
    if np.ndim(value) > 0:
        raise TypeError(f"the half-axis {name} of an ellipsoid must be one number [m], got {value!r}; {like}")
    try:
        length = float(value)
    except (TypeError, ValueError):
        raise TypeError(f"the half-axis {name} of an ellipsoid must be a number [m], got {value!r}; {like}") from None
    if not 1e-30 < length < 1e30:  # its fifth power must be a number, too
        raise ValueError(
            f"the half-axis {name} of an ellipsoid must be finite (1e-30 to 1e30 m) and above 0, got {value!r}; {like}"
        )
    return length


def half_widths(orientation, axes):
    """Half widths (n,3) [m] of the boxes around ellipsoids with orientations (n,4) and half-axes (n,3).

    The root of the diagonal of M = A R^2 A^T (Pazouki et al. 2012, eq. 12).
    """
    turn = rotation_matrices(orientation)
    return np.sqrt(np.einsum("nij,nj->ni", turn**2, axes**2))

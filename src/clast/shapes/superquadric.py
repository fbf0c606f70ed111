"""A superquadric: an ellipsoid that is more like a box, a cylinder or a double cone."""

import math
from dataclasses import dataclass

import numpy as np

from ..kernels.backend import func, part
from ..kernels.vec import rotation_matrices
from ..signatures import Floats, Skin, Turns, Vector
from ..tables import SUPERQUADRIC, Parts, make_parts

LEAST, MOST = 0.1, 1.9  # exponents: beyond, edges and faces drown in rounding
# The radius of curvature that stands for a contact is within these parts of the shortest and the longest half-axis: flat places have
# none, and edges next to none.
SHARPEST, FLATTEST = 0.25, 4.0


@dataclass(frozen=True)
class Superquadric:
    """(|x/a|^(2/e2) + |y/b|^(2/e2))^(e2/e1) + |z/c|^(2/e1) = 1, half-axes a, b, c [m] along x, y, z of its body.

    e1 is the exponent towards z and e2 that about z, each from 0.1 to 1.9: near 0 boxes (both) and cylinders (e1 alone), 1 ellipsoids,
    near 2 double cones and octahedra. All of them are convex and smooth.
    """

    a: float
    b: float
    c: float
    e1: float
    e2: float

    wall = False
    mesh = None

    def __post_init__(self):
        like = "write for example clast.Superquadric(0.01, 0.01, 0.01, 0.4, 0.4)"
        for name in ("a", "b", "c", "e1", "e2"):
            try:
                value = float(getattr(self, name))
            except (TypeError, ValueError):
                raise TypeError(
                    f"{name} of a superquadric must be a number, got {getattr(self, name)!r}; {like}"
                ) from None
            if not 1e-30 < value < 1e30:  # its fifth power must be a number, too
                raise ValueError(
                    f"{name} of a superquadric must be finite (1e-30 to 1e30) and above 0, got {value!r}; {like}"
                )
            if name[0] == "e" and not LEAST <= value <= MOST:
                raise ValueError(
                    f"{name} of a superquadric must be from {LEAST} to {MOST}, got {value!r}; for sharp edges use "
                    "clast.Polyhedron"
                )
            object.__setattr__(self, name, value)

    @property
    def axes(self) -> Floats:
        """Half-axes (3,) [m]."""
        return np.array([self.a, self.b, self.c])

    @property
    def round(self) -> bool:
        """Whether it turns like a ball."""
        inertia = self.inertia
        return bool(inertia[0, 0] == inertia[1, 1] == inertia[2, 2])

    @property
    def volume(self) -> float:
        """[m^3], in closed form (Jaklic, Leonardis and Solina 2000)."""
        from scipy.special import beta

        return float(
            2.0
            * self.axes.prod()
            * self.e1
            * self.e2
            * beta(0.5 * self.e1 + 1.0, self.e1)
            * beta(0.5 * self.e2, 0.5 * self.e2)
        )

    @property
    def inertia(self) -> Floats:
        """Inertia tensor per mass [m^2], (3,3), in closed form."""
        from scipy.special import beta

        e, f = self.e1, self.e2
        bulk = self.axes.prod() * e * f / self.volume
        flat = 0.5 * bulk * beta(1.5 * f, 0.5 * f) * beta(0.5 * e, 2.0 * e + 1.0)
        tall = 2.0 * bulk * beta(0.5 * f, 0.5 * f + 1.0) * beta(1.5 * e, e + 1.0)
        second = self.axes**2 * (flat, flat, tall)
        return np.diag(second.sum() - second)

    def support(self, n: Floats) -> Floats:
        """How far it reaches along unit directions n (k,3): (k,) [m]. The dual norm of the one whose ball it is."""
        x, y, z = np.abs(n * self.axes).T
        return _norm(_norm(x, y, 2.0 / (2.0 - self.e2)), z, 2.0 / (2.0 - self.e1))

    def level(self, x: Floats) -> Floats:
        """The norm whose unit ball it is: 1 for points x (k,3) on the surface, less inside."""
        x, y, z = np.abs(x / self.axes).T
        return _norm(_norm(x, y, 2.0 / self.e2), z, 2.0 / self.e1)

    def chords(self, start: Floats, way: Floats) -> tuple[Floats, Floats]:
        """Where lines are in it, see `Sphere.chords`."""
        span = 2.0 * float(np.linalg.norm(self.axes))
        middle = -start @ way
        low, high = middle - span, middle + span
        for _ in range(50):  # the norm is convex along a line
            one, two = low + 0.382 * (high - low), high - 0.382 * (high - low)
            left = self.level(start + one[:, None] * way) < self.level(start + two[:, None] * way)
            low, high = np.where(left, low, one), np.where(left, two, high)
        best = 0.5 * (low + high)
        ends = []
        for side in (-span, span):
            inner, outer = best, middle + side
            for _ in range(50):
                half = 0.5 * (inner + outer)
                within = self.level(start + half[:, None] * way) < 1.0
                inner, outer = np.where(within, half, inner), np.where(within, outer, half)
            ends.append(inner)
        hits = self.level(start + best[:, None] * way) < 1.0
        return np.where(hits, ends[0], 1.0), np.where(hits, ends[1], -1.0)

    def parts(self) -> Parts:
        """One SUPERQUADRIC part at the origin."""
        axes, volume = self.axes, self.volume
        reach = self._reach()
        return make_parts(
            1,
            kind=SUPERQUADRIC,
            size=axes,
            power=(self.e1, self.e2),
            reach=reach,
            ball=(0.75 * volume / np.pi) ** (1.0 / 3.0),
            small=axes.min(),
            large=FLATTEST * axes.max(),
            deep=0.5 * axes.min(),
            swing=reach,
        )

    def _reach(self):
        """Radius [m] about the centre that contains it, a hair more than needed."""
        k = np.arange(4000) + 0.5
        z, angle = k / 4000.0, np.pi * (1.0 + 5.0**0.5) * k
        flat = np.sqrt(1.0 - z * z)
        n = np.vstack([np.stack([flat * np.cos(angle), flat * np.sin(angle), z], axis=1), np.eye(3)])
        # No direction is farther than 0.03 from these, and the support of a body within R changes by R times that.
        return float(min(1.03 * self.support(n).max(), np.linalg.norm(self.axes)))

    def bounds(self, position: Vector = (0.0, 0.0, 0.0), orientation: Turns = (1.0, 0.0, 0.0, 0.0)) -> Floats:
        """The least axis-parallel box that contains it, (2,3) low and high [m], at a position and orientation."""
        half = self.support(rotation_matrices(np.array([orientation], dtype=float))[0])
        return np.stack([np.asarray(position) - half, np.asarray(position) + half])

    def surface(self, extent: float | None = None, subdivisions: int = 4) -> Skin:
        """Vertices (v,3) [m] on the surface and triangles (t,3)."""
        from trimesh.creation import icosphere

        # Directions drawn towards edges, where the surface bends.
        ball = icosphere(subdivisions=subdivisions)
        x = np.asarray(ball.vertices)
        x = np.sign(x) * np.abs(x) ** (0.5 * (self.e1 + self.e2)) * self.axes
        return x / self.level(x)[:, None], np.asarray(ball.faces, dtype=np.int32)


def _norm(x, y, p):
    """(x^p + y^p)^(1/p) of numbers >= 0."""
    most = np.maximum(np.maximum(x, y), 1e-300)
    return most * ((x / most) ** p + (y / most) ** p) ** (1.0 / p)


# The same for kernels.


@func
def power(x, p):
    """x^p for x >= 0."""
    return math.exp(p * math.log(x)) if x > 0.0 else (1.0 if p == 0.0 else 0.0)


@func
def norm2(x, y, p):
    """(x^p + y^p)^(1/p) of numbers >= 0."""
    most, least = max(x, y), min(x, y)
    if p == 2.0:
        return math.sqrt(x * x + y * y)
    return most * power(1.0 + power(least / most, p), 1.0 / p) if most > 0.0 else 0.0


@func
def norm_slopes(x, y, p):
    """w = (x^p + y^p)^(1/p) of numbers >= 0, and its slopes (x/w)^(p-1) and (y/w)^(p-1); zeros for zeros.

    A power takes as long as all the rest here: slopes come from those of the norm, (x/w)^p w/x.
    """
    most, least = max(x, y), min(x, y)
    if most == 0.0:
        return 0.0, 0.0, 0.0
    if p == 2.0:
        w = math.sqrt(x * x + y * y)
        return w, x / w, y / w
    t = least / most
    up = power(t, p)
    r = power(1.0 + up, 1.0 / p)
    big = r / (1.0 + up)
    small = big * up / t if up > 0.0 else 0.0
    return most * r, (big if x >= y else small), (small if x >= y else big)


@part
def reach_of(n, size, e):
    """How far a superquadric reaches along n, and from its centre to the point of its surface that does (3,) [m].

    n (3,) in its own axes; size (3,) half-axes [m]; e: the duals 2 / (2 - e1), 2 / (2 - e2) of its exponents.
    """
    x, y, z = size[0] * abs(n[0]), size[1] * abs(n[1]), size[2] * abs(n[2])
    w, a, b = norm_slopes(x, y, e[1])
    h, u, v = norm_slopes(w, z, e[0])
    point = (
        math.copysign(size[0] * u * a, n[0]),
        math.copysign(size[1] * u * b, n[1]),
        math.copysign(size[2] * v, n[2]),
    )
    return h, point


@func
def inside_ball(size, e):
    """Radius [m] of a ball about the centre that is inside. A norm of exponent p < 2 is up to 2^(1/p - 1/2) times that of 2."""
    return min(size[0], size[1], size[2]) * 2.0 ** (min(0.0, 1.0 / e[0] - 0.5) + min(0.0, 1.0 / e[1] - 0.5))

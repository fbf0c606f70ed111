"""A cylinder as a wall: a drum or pipe seen from inside, or a solid rod."""

from dataclasses import dataclass

import numpy as np

from ..signatures import Floats, Skin
from ..tables import CYLINDER, Parts
from .plane import frame, unit, wall_part

SEGMENTS = 64  # of the circle, for pictures


@dataclass(frozen=True)
class Cylinder:
    """A cylinder about the position of its body, with radius and length [m] and the direction of its axis.

    inside=True: a thin shell with open ends. Without end (length=inf) it holds back only what is inside; a finite
    shell ends at its rims and is felt from both sides.
    inside=False: solid, with flat ends.
    """

    radius: float
    length: float = np.inf
    axis: tuple = (0.0, 0.0, 1.0)
    inside: bool = True

    wall = True
    round = False
    mesh = None
    volume = 0.0

    def __post_init__(self) -> None:
        radius, length = float(self.radius), float(self.length)
        if not (0.0 < radius < np.inf and length > 0.0):
            raise ValueError(f"a cylinder needs a finite radius > 0 and a length > 0, got {self.radius}, {self.length}")
        object.__setattr__(self, "radius", radius)
        object.__setattr__(self, "length", length)
        object.__setattr__(self, "axis", unit(self.axis, "the axis of a cylinder"))
        object.__setattr__(self, "inside", bool(self.inside))

    @property
    def inertia(self) -> Floats:
        """Zeros (3,3): walls do not accelerate."""
        return np.zeros((3, 3))

    def parts(self) -> Parts:
        """One CYLINDER part."""
        half = 0.5 * self.length
        return wall_part(
            CYLINDER, self.axis, (self.radius, half, 1.0 if self.inside else -1.0), np.hypot(self.radius, half)
        )

    def surface(self, extent: float = 1.0) -> Skin:
        """A tube, closed if solid, no longer than extent [m]: vertices (v,3), triangles (t,3)."""
        a, b = frame(self.axis)
        angle = 2.0 * np.pi * np.arange(SEGMENTS) / SEGMENTS
        circle = self.radius * (np.cos(angle)[:, None] * a + np.sin(angle)[:, None] * b)
        end = 0.5 * min(self.length, extent) * np.asarray(self.axis)
        i = np.arange(SEGMENTS)
        j = (i + 1) % SEGMENTS
        top = SEGMENTS
        vertices = np.vstack([circle - end, circle + end, [-end, end]])
        triangles = [np.stack([i, j, j + top], 1), np.stack([i, j + top, i + top], 1)]
        if self.inside:
            vertices = vertices[:-2]
        else:
            centre = np.full(SEGMENTS, 2 * SEGMENTS)
            triangles += [np.stack([centre, j, i], 1), np.stack([centre + 1, i + top, j + top], 1)]
        return vertices, np.vstack(triangles).astype(np.int32)

"""A cone as a wall: the funnel of a hopper, cut off at its outlet, of flat facets."""

import numpy as np

from ..signatures import Vector
from .mesh import MeshWall
from .plane import frame, unit

SEGMENTS = 96  # facets around it


class Cone(MeshWall):
    """The side of a cut cone about the position of its body, where its outlet is: from there it widens along its axis.

    radius, outlet [m]: of the wide and the narrow end, which are open, the latter 0 for a tip; height [m]: from one to the other. It is made of `segments`
    facets outside of the cone, felt from both sides: it is wider than the cone by up to 1 / cos(pi / segments), 5e-4 of the radius with 96.
    """

    def __init__(
        self, radius: float, outlet: float, height: float, axis: Vector = (0.0, 0.0, 1.0), segments: int = SEGMENTS
    ) -> None:
        numbers = np.array([radius, outlet, height], dtype=float)
        if not (np.isfinite(numbers).all() and numbers[0] > 0.0 <= numbers[1] and numbers[2] > 0.0):
            raise ValueError(
                f"a cone needs finite radius > 0, outlet >= 0 and height > 0, got {radius}, {outlet} and {height}"
            )
        if int(segments) != segments or segments < 3:
            raise ValueError(f"a cone needs three segments or more, a whole number, got {segments}")
        axis = np.array(unit(axis, "the axis of a cone"))
        a, b = frame(axis)
        i = np.arange(int(segments))
        angle, j = 2.0 * np.pi * i / segments, (i + 1) % len(i)
        circle = (np.cos(angle)[:, None] * a + np.sin(angle)[:, None] * b) / np.cos(np.pi / segments)
        wide = float(radius) * circle + float(height) * axis
        if outlet == 0.0:
            vertices, triangles = np.vstack([wide, np.zeros((1, 3))]), np.stack([np.full(len(i), len(i)), i, j], 1)
        else:
            vertices, top = np.vstack([float(outlet) * circle, wide]), len(i)
            triangles = np.vstack([np.stack([i, j, j + top], 1), np.stack([i, j + top, i + top], 1)])
        super().__init__(vertices, triangles)

"""A flat four-sided wall."""

import numpy as np
from numpy.typing import ArrayLike

from .mesh import FARTHEST, MeshWall

FLATNESS = 1e-6  # allowed distance of a corner from the plane, over the longer diagonal


class Quad(MeshWall):
    """A planar, convex wall with corners (4,3) [m] in order around it; felt from both sides. Two triangles."""

    def __init__(self, corners: ArrayLike) -> None:
        corners = np.array(corners, dtype=float)
        if corners.shape != (4, 3) or not (np.abs(corners) <= FARTHEST).all():
            raise ValueError(
                f"a quad needs four corners of three finite numbers, at most {FARTHEST:g} m, got {corners.tolist()}"
            )
        first, second = corners[2] - corners[0], corners[3] - corners[1]
        size = max(np.linalg.norm(first), np.linalg.norm(second))
        normal = np.cross(first, second)
        area = np.linalg.norm(normal)
        if not area > 1e-8 * size * size:
            raise ValueError(f"the corners of this quad lie on a line or are not in order: {corners.tolist()}")
        normal /= area
        # The corners lie alternately above and below the plane between the two diagonals.
        off = abs(float(np.dot(corners[1] - corners[0], normal)))
        if off > FLATNESS * size:
            raise ValueError(
                f"the corners of a quad must lie in a plane; these are {off:.3g} m off over {size:.3g} m: "
                f"{corners.tolist()}. Use MeshWall with two triangles for a folded wall"
            )
        sides = np.roll(corners, -1, axis=0) - corners
        turn = np.cross(sides, np.roll(sides, -1, axis=0)) @ normal
        if (turn <= 0.0).any():
            corner = (int(np.argmin(turn)) + 1) % 4
            raise ValueError(
                f"the corners of a quad must go around a convex outline; the outline does not turn the same way at "
                f"corner {corner} of {corners.tolist()}"
            )
        super().__init__(corners, [[0, 1, 2], [0, 2, 3]])

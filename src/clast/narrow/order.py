"""Which of two alike shapes comes first: by themselves and how they lie, so that a pair that is swapped gives the same bits.

The larger comes first; of equals the one that is lower along a slanted line. That line has no part along x, so that two
bodies and their images in a mirror across x come in the same order, unless nothing else tells them apart.
"""

import numpy as np

from ..kernels.backend import func

SLANT = (0.6, 0.8)  # along y and z


@func
def comes_second(a, b, shapes, way):
    """Whether of the shapes a and b the second comes first; way (3,) [m]: from a to b."""
    one, two = shapes.radius[a], shapes.radius[b]
    if one != two:
        return one < two
    up = SLANT[0] * way[1] + SLANT[1] * way[2]
    return up < 0.0 or (up == 0.0 and way[0] < 0.0)


def come_second(shapes, pair):
    """The same for pairs (p,2) of rows of Shapes, without a periodic world: (p,) bool."""
    one, two = shapes.radius[pair[:, 0]], shapes.radius[pair[:, 1]]
    way = shapes.centre[pair[:, 1]] - shapes.centre[pair[:, 0]]
    up = SLANT[0] * way[:, 1] + SLANT[1] * way[:, 2]
    return np.where(one != two, one < two, (up < 0.0) | ((up == 0.0) & (way[:, 0] < 0.0)))

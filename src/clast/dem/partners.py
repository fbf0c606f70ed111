"""How the two bodies of a contact lie to each other, and which rows tell how they move."""

import numpy as np

from ..broad.near import image
from ..kernels.backend import func
from ..kernels.kinds import is_wall


@func
def moving_row(s, shapes, parts):
    """The row that tells how shape s moves: that of its body; without parts the shape's own is the same, except for a wall, whose
    pieces stay behind between lists."""
    # One type on both sides, or the compiler would make a float of the row.
    return np.uintp(shapes.body[s]) if parts or is_wall(shapes.kind[s]) else np.uintp(s)


@func
def between(s, t, a, b, i, rows, edges, periodic):
    """From the centre of row a along axis i to that of row b, or to its image; s, t: the shapes that touch."""
    d = rows[b, i] - rows[a, i]
    if periodic:
        # The image for which the shapes themselves are near: a part, or the piece of a wall, may lie far from its body's centre.
        near = rows[t, i] - rows[s, i]
        d = image(d, edges[i], edges[3 + i]) if a == s and b == t else d + (image(near, edges[i], edges[3 + i]) - near)
    return d

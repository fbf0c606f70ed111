"""How the two bodies of a contact lie to each other, which rows tell how they move, and what they weigh where they touch."""

import numpy as np

from ..broad.near import image
from ..kernels.backend import func
from ..kernels.kinds import is_wall
from ..kernels.rows import PER_MASS
from ..kernels.vec import sub
from ..motion.rotation import inverse_at, per_mass_of_turning


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


@func
def away_of(s, t, a, b, rows, edges, periodic):
    """The same along all axes (3,) [m]."""
    return (
        between(s, t, a, b, 0, rows, edges, periodic),
        between(s, t, a, b, 1, rows, edges, periodic),
        between(s, t, a, b, 2, rows, edges, periodic),
    )


@func
def lightness_of(a, b, arm, away, n, rows, inverse, eccentric):
    """One over what the bodies of rows a and b weigh [1/kg] for a push along n (3,) at an arm (3,) [m] from the centre of a, away (3,) [m] from
    which that of b is; inverse: see `clast.motion.rotation`; eccentric: normals may pass by the centres."""
    lightness = rows[a, PER_MASS] + rows[b, PER_MASS]
    if eccentric:
        lightness += turning_of(arm, away, n, inverse_at(a, rows, inverse), inverse_at(b, rows, inverse))
    return lightness


@func
def turning_of(arm, away, n, of_a, of_b):
    """What turning adds to that; of_a, of_b: the inverse inertia of both bodies, six numbers each.

    A push at the end of a rod moves that end four times as easily as the whole: a dashpot for the mass of the body would be twice too strong there, and with a
    step that is right for the body reverse the motion which it should stop.
    """
    return per_mass_of_turning(arm, n, of_a) + per_mass_of_turning(sub(arm, away), n, of_b)

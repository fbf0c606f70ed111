"""What kernels ask of a shape: the questions of `clast.tables` by its kind, compiled, and how it is turned."""

from .. import tables
from .backend import func
from .vec import load4, quat_multiply

is_particle = func(tables.is_particle)
is_wall = func(tables.is_wall)


@func
def turn_of(s, bodies, shapes, parts):
    """Unit quaternion that turns the own axes of shape s, those of its row of Parts, into the axes of the world."""
    return quat_multiply(load4(bodies.orientation, shapes.body[s]), load4(parts.turn, shapes.part[s]))

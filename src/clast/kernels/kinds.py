"""What kernels ask of a shape by its kind: the questions of `clast.tables`, compiled."""

from .. import tables
from .backend import func

is_particle = func(tables.is_particle)
is_wall = func(tables.is_wall)

"""What public functions take and give, by name, for their signatures; shapes and units stand in the docstrings."""

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Literal, Protocol, TypeAlias, TypedDict, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .tables import Meshes, Parts

# What is taken. Body numbers and counts may be whole numbers of NumPy, which are no int to a type checker.
File: TypeAlias = str | os.PathLike[str]
Whole: TypeAlias = int | np.integer
Numbers: TypeAlias = ArrayLike  # one number or (n,)
Vector: TypeAlias = ArrayLike  # (3,)
Vectors: TypeAlias = ArrayLike  # (3,) or (n,3)
Turns: TypeAlias = ArrayLike  # unit quaternions (4,) or (n,4), w x y z
Corners: TypeAlias = ArrayLike  # a box, ((x, y, z), (x, y, z))
Step: TypeAlias = float | Literal["auto"]
Device: TypeAlias = Literal["cpu", "cuda"]
Motion: TypeAlias = Callable[[float], tuple[ArrayLike, ArrayLike]]  # time -> velocity (3,), spin (3,)
OfTime: TypeAlias = float | Callable[[float], float]
OfRate: TypeAlias = Callable[[float, float, float], float]  # length or angle, its rate, time -> pull or torque
Pose: TypeAlias = Vectors | tuple[Vectors, Turns]
Recorded: TypeAlias = Sequence[str | Callable[..., float]]  # names of quantities, and functions of the simulation
Columns: TypeAlias = Mapping[str, ArrayLike]
Functions: TypeAlias = Mapping[
    tuple[str, int], Callable[..., float]
]  # of joints, motors and springs, by ("motor", 0) say
Camera: TypeAlias = str | tuple[Vector, Vector, Vector]

# What is given.
Floats: TypeAlias = NDArray[np.float64]
Wholes: TypeAlias = NDArray[np.int64]
Mask: TypeAlias = NDArray[np.bool_]
Skin: TypeAlias = tuple[Floats, NDArray[np.int32]]  # vertices (v,3) [m] and triangles (t,3)
Series: TypeAlias = dict[str, NDArray]
Few: TypeAlias = Sequence[float] | Floats  # taken where they are gone through one by one

Function = TypeVar("Function", bound=Callable)


class Start(TypedDict, total=False):
    """How bodies that fill a box begin."""

    velocity: Vectors
    spin: Vectors
    orientation: Turns | Literal["random"]
    temperature: Numbers | None


class Shape(Protocol):
    """What a scene takes as a shape, its own or one of the user's."""

    @property
    def wall(self) -> bool:
        """Whether it is a wall, which may not be free."""

    @property
    def round(self) -> bool:
        """Whether it turns like a ball."""

    @property
    def mesh(self) -> Meshes | None:
        """Triangles of a wall."""

    @property
    def volume(self) -> float:
        """[m^3]; zero for walls."""

    @property
    def inertia(self) -> Floats:
        """Inertia tensor per mass [m^2], (3,3)."""

    def parts(self) -> Parts:
        """Its parts."""

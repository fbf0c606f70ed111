"""Checks of what a user passes in: each returns clean values, or raises an error with the value, the place, the fix."""

import math
import operator
from collections.abc import Mapping, Sized
from typing import Any

import numpy as np

from ..errors import pick
from ..signatures import Floats, Shape
from ..tables import DRIVEN, FIXED, FREE, MOTIONS
from .drives import Oscillation
from .materials import Material

LARGEST = 1e30  # of a number: squares and products of a few must be numbers, too


def numbers(place: str, name: str, value: object) -> Floats:
    """An array of finite floats."""
    try:
        array: Floats = np.asarray(value, dtype=float)
    except (TypeError, ValueError):
        raise TypeError(f"{place}: {name} must be numbers, got {short(value)}") from None
    if not np.isfinite(array).all():
        row = np.argwhere(~np.isfinite(array))[0]
        where = f"[{', '.join(map(str, row))}]" if array.ndim else ""
        raise ValueError(f"{place}: {name}{where} is {array[tuple(row)]}; every number must be finite")
    if array.size and np.abs(array).max() > LARGEST:
        raise ValueError(f"{place}: {name} has {np.abs(array).max():g}; numbers are at most {LARGEST:g}")
    return array


def rows(place: str, name: str, value: object, width: int) -> Floats:
    """An array (k, width) of finite floats from (width,) or (k, width)."""
    array = numbers(place, name, value)
    if array.ndim not in (1, 2) or array.shape[-1] != width:
        raise ValueError(f"{place}: {name} must have shape ({width},) or (n, {width}), got {array.shape}")
    return array.reshape(-1, width)


def column(place: str, name: str, value: object) -> Floats:
    """An array (k,) of finite floats above zero from a number or (k,)."""
    array = numbers(place, name, value)
    if array.ndim > 1:
        raise ValueError(f"{place}: {name} must be a number or have shape (n,), got {array.shape}")
    array = array.reshape(-1)
    if (array <= 1.0 / LARGEST).any():
        row = int(np.argmax(array <= 1.0 / LARGEST))
        raise ValueError(f"{place}: {name} must be above 0, got {array[row]:g} in row {row}")
    return array


def vector(place: str, name: str, value: object) -> Floats:
    """Three finite floats as an array (3,)."""
    array = numbers(place, name, value)
    if array.shape != (3,):
        raise ValueError(f"{place}: {name} must be three numbers, got an array of shape {array.shape}")
    return array


def quaternions(place: str, name: str, value: object) -> Floats:
    """Unit quaternions (k,4); others are normalised, zero is refused."""
    array = rows(place, name, value, 4)
    size = np.sqrt(np.einsum("ij,ij->i", array, array))
    if (size == 0.0).any():
        row = int(np.argmax(size == 0.0))
        raise ValueError(f"{place}: {name} in row {row} is zero; no turn is (1, 0, 0, 0), in the order w, x, y, z")
    return array / size[:, None]


def same_length(place: str, columns: Mapping[str, Sized], count: int | None = None) -> int:
    """The common number of rows of the named arrays, which must be `count` if given; one row stands for all."""
    lengths = {name: len(array) for name, array in columns.items() if len(array) != 1}
    if count == 1 and lengths:
        lengths["count"] = 1
    if len(set(lengths.values())) > 1:
        told = ", ".join(f"{name} has {length}" for name, length in lengths.items())
        raise ValueError(f"{place}: the numbers of rows do not agree: {told}; give one row or the same number to each")
    return next(iter(lengths.values()), 1)


def box(place: str, value: object, name: str = "box") -> tuple[Floats, Floats]:
    """Corners low and high, arrays (3,), of a box given as ((x, y, z), (x, y, z))."""
    corners = numbers(place, name, value)
    if corners.shape != (2, 3):
        raise ValueError(f"{place}: {name} must be ((x, y, z), (x, y, z)), got shape {corners.shape}")
    low, high = corners
    if not (low < high).all():
        axis = int(np.argmax(~(low < high)))
        raise ValueError(
            f"{place}: {name} must have its low corner first; along {'xyz'[axis]} it goes from {low[axis]:g} to "
            f"{high[axis]:g}"
        )
    return low.copy(), high.copy()


def whole(place: str, name: str, value: Any, least: int = 0) -> int:
    """A whole number of at least `least`."""
    try:
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"{place}: {name} must be a whole number, got {value!r}") from None
    if number < least:
        raise ValueError(f"{place}: {name} must be at least {least}, got {number}")
    return number


def number(
    place: str, name: str, value: Any, *, least: float = -math.inf, above: float = -math.inf, infinite: bool = False
) -> float:
    """A float within limits; infinite only if allowed."""
    try:
        result = float(value)
    except (TypeError, ValueError, OverflowError):
        raise TypeError(f"{place}: {name} must be a number, got {short(value)}") from None
    if math.isnan(result) or (math.isinf(result) and not infinite):
        raise ValueError(f"{place}: {name} must be finite, got {value!r}")
    if result < least or result <= above:
        limit = f"{least:g} or more" if result < least else f"above {above:g}"
        raise ValueError(f"{place}: {name} must be {limit}, got {value!r}")
    return result


def start(place, given):
    """Velocity, spin, orientation and temperature of bodies that fill a box, from the keywords that are given."""
    known = {"velocity": (0.0, 0.0, 0.0), "spin": (0.0, 0.0, 0.0), "orientation": "random", "temperature": None}
    for name in given:
        if name not in known:
            raise TypeError(f"{place}: there is no option {name!r}")
    return tuple((known | given).values())


def mask(place, function):
    """The user's `inside` function with its answer checked; None stays None."""
    if function is None:
        return None
    if not callable(function):
        raise TypeError(
            f"{place}: inside must be a function of points (n, 3) that returns a mask (n,), got {function!r}"
        )

    def inside(points):
        answer = np.asarray(function(points))
        if answer.shape != (len(points),) or answer.dtype != bool:
            raise ValueError(
                f"{place}: inside must return a mask of shape ({len(points)},) and type bool, "
                f"got {answer.dtype} of shape {answer.shape}"
            )
        return answer

    return inside


def switches(place: str, name: str, value: Any) -> tuple[bool, ...]:
    """Three booleans as a tuple."""
    try:
        result = tuple(value)
    except TypeError:
        result = ()
    if len(result) != 3 or not all(isinstance(one, bool | np.bool_) for one in result):
        raise TypeError(f"{place}: {name} must be three times True or False, one for each axis, got {value!r}")
    return tuple(bool(one) for one in result)


def is_shape(value):
    """Whether it can be added: an object with parts, volume and inertia."""
    return not isinstance(value, type) and all(hasattr(value, name) for name in ("parts", "volume", "inertia", "wall"))


def shape(place, value):
    """Something that can be added."""
    if not is_shape(value):
        raise TypeError(f"{place}: the first argument must be a shape such as clast.Sphere(0.01), got {value!r}")
    return value


def shapes(what: str, value: Any) -> tuple[str, list[Shape]]:
    """One shape, or a list of particles that share their options: where they come in, as in Scene.add(Sphere) for `what`
    Scene.add, and the shapes as a list."""
    many = list(value) if isinstance(value, list | tuple) else [value]
    place = f"{what}({type(many[0]).__name__ if many else '[]'})"
    if not many:
        raise ValueError(f"{place}: the list of shapes is empty")
    for one in many:
        shape(place, one)
    if len(many) > 1 and any(one.wall for one in many):
        raise ValueError(f"{place}: a list of shapes is for particles; add walls one by one")
    return place, many


def material(place: str, value: object) -> Material:
    """A Material; None is the default one."""
    if value is None:
        return Material()
    if not isinstance(value, Material):
        raise TypeError(f"{place}: material must be a clast.Material, got {value!r}")
    return value


def into_world(place, position, world, periodic):
    """Positions (n,3) of free bodies: wrapped along periodic axes, refused outside the world along the others; world: its corners [m] or None."""
    if world is None:
        return position
    low, high = np.array(world)
    position = position.copy()
    for axis in np.flatnonzero(periodic):
        wrapped = low[axis] + np.mod(position[:, axis] - low[axis], high[axis] - low[axis])
        position[:, axis] = np.where(wrapped < high[axis], wrapped, low[axis])
    outside = ((position < low) | (position > high)).any(axis=1)
    if outside.any():
        row = int(np.argmax(outside))
        raise ValueError(
            f"{place}: position {position[row].tolist()} in row {row} is outside the world {low.tolist()} to "
            f"{high.tolist()}; move the body or give the scene a larger world"
        )
    return position


def motion(place: str, wall: bool, name: str | None, moving: bool, drive: object, pivot: object) -> int:
    """FREE, FIXED or DRIVEN from what the user said.

    wall: may not be free; name: the motion or None; moving: a velocity or spin was given.
    """
    if drive is not None and not isinstance(drive, Oscillation) and not callable(drive):
        raise TypeError(f"{place}: drive must be a clast.Oscillation or a function of time, got {drive!r}")
    if name is None:
        moves = DRIVEN if drive is not None or (wall and moving) else FIXED if wall else FREE
    elif isinstance(name, str):
        moves = pick("motion", name, MOTIONS)
    else:
        raise TypeError(f"{place}: motion must be one of {', '.join(MOTIONS)}, got {name!r}")
    if wall and moves == FREE:
        raise ValueError(f"{place}: a wall has no mass and cannot be free; use motion='fixed' or motion='driven'")
    if moves != DRIVEN:
        for what, given in (("drive", drive), ("pivot", pivot)):
            if given is not None:
                raise ValueError(f"{place}: {what}={given!r} is for driven bodies; say motion='driven'")
    if moves == FIXED and moving:
        raise ValueError(f"{place}: a fixed body has no velocity or spin; say motion='driven' or leave them out")
    if callable(drive) and moving:
        raise ValueError(f"{place}: a drive function gives velocity and spin itself; leave velocity and spin out")
    if callable(drive) and pivot is not None:
        raise ValueError(f"{place}: a drive function gives the velocity of the body itself; leave pivot out")
    return moves


def short(value):
    """What a message can show of a value."""
    text = repr(value)
    return text if len(text) < 80 else text[:77] + "..."

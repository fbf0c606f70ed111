"""Checks of what a user says about joints, springs and motors: clean values, or an error with value, place and fix."""

import math
from typing import Any

import numpy as np

from . import inputs

WORLD = -1
NO_LIMITS = (-math.inf, math.inf)


MISSING = {
    "at": "say where the joint is, at=(x, y, z) in metres",
    "axis": "say axis=(x, y, z), about or along which it moves",
    "across": "axis is the pin in a, across=(x, y, z) the pin in b",
}


def check_given(place, name, sort, given):
    """ValueError if an argument that this sort of joint, a Kind, needs is None, or one that means nothing for it is not.

    name: of the kind, None for locked axes; given: {argument: value}.
    """
    for argument, value in given.items():
        if value is not None and argument not in sort.needs + sort.takes:
            raise ValueError(f"{place}: {argument}={value!r} has no meaning for {name or 'locked axes'}; leave it out")
    for argument in sort.needs:
        if given[argument] is None:
            raise ValueError(f"{place}: {argument} is missing; {MISSING[argument]}")


def body_number(place: str, name: str, value: Any, known: Any) -> int:
    """The number of a body of the scene, or WORLD for None and "world"."""
    if value is None or (isinstance(value, str) and value == "world"):
        return WORLD
    array = np.asarray(value)
    if array.size != 1 or not np.issubdtype(array.dtype, np.integer):
        raise TypeError(f"{place}: {name} must be a body number or None for the world, got {value!r}")
    number = int(array.reshape(-1)[0])
    row = int(np.searchsorted(known, number))
    if row >= len(known) or known[row] != number:
        raise ValueError(f"{place}: {name} = {number}: there is no such body; Scene.add returns the numbers")
    return number


def six_flags(place, value):
    """Six booleans as a tuple."""
    flags = tuple(value) if isinstance(value, list | tuple | np.ndarray) else ()
    if len(flags) != 6 or not all(isinstance(one, bool | np.bool_) for one in flags):
        raise TypeError(f"{place}: locked must be six times True or False (shift x, y, z, turn x, y, z), got {value!r}")
    if not any(flags):
        raise ValueError(f"{place}: locked has nothing locked; such a joint does nothing")
    return tuple(bool(one) for one in flags)


def frame_of(place, axis, across, cross_pins):
    """Quaternion of a frame whose z is `axis` and whose x is as near to `across` as it can be.

    cross_pins: x is `axis` and y is `across` instead, which must be at right angles.
    """
    axis = direction(place, "axis", axis)
    if across is None:
        # Any x will do; take it from the world's axis that is farthest from z, so that nothing depends on rounding.
        across = np.eye(3)[int(np.argmin(abs(axis)))]
    else:
        across = direction(place, "across", across)
        if cross_pins and abs(axis @ across) > 1e-6:
            raise ValueError(f"{place}: axis {axis.tolist()} and across {across.tolist()} must be at right angles")
    side = across - (across @ axis) * axis
    if np.linalg.norm(side) < 1e-6:
        raise ValueError(f"{place}: across lies along the axis {axis.tolist()}; choose another direction")
    side /= np.linalg.norm(side)
    other = np.cross(axis, side)
    columns = (axis, side, other) if cross_pins else (side, other, axis)
    return turn_of(np.column_stack(columns))


def direction(place, name, value):
    """A unit vector (3,)."""
    vector = inputs.vector(place, name, value)
    size = np.linalg.norm(vector)
    if size == 0.0:
        raise ValueError(f"{place}: {name} is zero; it needs a direction, such as {name}=(0, 0, 1)")
    return vector / size


def turn_of(m):
    """Unit quaternion of a rotation matrix (3,3)."""
    # Of the four ways to begin, take the one with the largest root.
    sizes = (m.trace(), m[0, 0], m[1, 1], m[2, 2])
    k = int(np.argmax(sizes))
    if k == 0:
        q = [1.0 + m.trace(), m[2, 1] - m[1, 2], m[0, 2] - m[2, 0], m[1, 0] - m[0, 1]]
    else:
        i, j, n = k - 1, k % 3, (k + 1) % 3
        q = [m[n, j] - m[j, n], 0.0, 0.0, 0.0]
        q[1 + i], q[1 + j], q[1 + n] = 1.0 + 2.0 * m[i, i] - m.trace(), m[j, i] + m[i, j], m[n, i] + m[i, n]
    return tuple((np.array(q) / np.linalg.norm(q)).tolist())


def check_limits(place, joint, limits):
    """Limits of the free coordinate as two floats, infinite where there is none: of the shift if it slides, else of the angle."""
    if limits is None:
        return NO_LIMITS
    if not (joint.turns or joint.slides):
        raise ValueError(f"{place}: limits are for a hinge, slider or cylinder, not for a {joint.kind}")
    try:
        low, high = limits
    except (TypeError, ValueError):
        raise TypeError(f"{place}: limits must be (low, high), got {limits!r}") from None
    low = inputs.number(place, "the lower limit", low, infinite=True)
    high = inputs.number(place, "the upper limit", high, infinite=True)
    if not low <= 0.0 <= high or low == high:
        raise ValueError(f"{place}: limits {limits} must have low <= 0 <= high, low < high; the joint stands at 0 now")
    return low, high


def number_or_function(place, name, value):
    """(number, None) or (0, function of time)."""
    if callable(value):
        inputs.number(place, f"{name} at time 0", value(0.0))
        return 0.0, value
    return inputs.number(place, name, value), None


def length_function(place, length, distance):
    """A length of a linear actuator as a function of time that begins with the present distance."""
    if not callable(length):
        raise TypeError(f"{place}: length must be a function of time [s] -> [m], got {length!r}")
    first = inputs.number(place, "length at time 0", length(0.0))
    if abs(first - distance) > 1e-6 * distance:
        raise ValueError(f"{place}: length begins at {first:g} m, but the two points are {distance:g} m apart now")
    return length


def spring_numbers(place, rest, stiffness, damping, function, name, least):
    """The numbers of a spring, checked; with a function they must be absent."""
    if function is not None:
        if not callable(function):
            raise TypeError(f"{place}: {name} must be a function of (length or angle, rate, time), got {function!r}")
        if stiffness or damping:
            raise ValueError(f"{place}: give either {name} or stiffness and damping, not both")
    elif not stiffness and not damping:
        raise ValueError(f"{place}: the spring does nothing; give stiffness, damping or {name}")
    return {
        "rest": inputs.number(place, "rest", rest, least=least),
        "stiffness": inputs.number(place, "stiffness", stiffness, least=0.0),
        "damping": inputs.number(place, "damping", damping, least=0.0),
        "function": function,
    }

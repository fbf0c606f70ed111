"""The distance of two shapes as a library call, with no scene."""

from typing import Any, NamedTuple

import numpy as np

from ..scene import inputs
from ..scene.scene import Scene
from ..signatures import Pose, Shape
from ..tables import Contacts, empty_geometry, with_forces
from .contacts import find_contacts


class Distance(NamedTuple):
    """What `distance` tells, one row for each pair of poses; rows of pairs for which no contact was found are nan."""

    gap: np.ndarray  # (n,) [m], signed distance, negative when overlapping; of triangulated particles less their halos
    normal: np.ndarray  # (n,3) unit, from the first to the second
    first: np.ndarray  # (n,3) [m], point of the first that is nearest to the second, or deepest in it
    second: np.ndarray  # (n,3) [m], the same of the second
    contacts: Contacts  # all contact points; pair[:, 0] is the row of the pair of poses
    found: np.ndarray  # (n,) bool: docs/pairs.md tells where two shapes may be too deep in each other for a contact


def distance(shape_a: Shape, pose_a: Pose, shape_b: Shape, pose_b: Pose) -> Distance:
    """Signed distance, nearest points, normal and contact points of two shapes, at one pair of poses or at n of them.

    A pose is a position, (3,) or (n,3) [m], or (position, orientation) with quaternions (4,) or (n,4), or a list of n such pairs; one pose of one
    shape goes with n of the other, and none with none. Of two shapes one may be a wall. Returns Distance; of one pair of poses it has one row.
    """
    for name, shape in (("shape_a", shape_a), ("shape_b", shape_b)):
        if not inputs.is_shape(shape):
            raise TypeError(f"distance: {name} must be one shape such as clast.Sphere(0.01), got {inputs.short(shape)}")
    if shape_a.wall and shape_b.wall:
        raise ValueError("distance: two walls have no distance; one of the shapes must be a particle")
    (x, q), (y, r) = _pose("pose_a", pose_a), _pose("pose_b", pose_b)
    columns = ("pose_a", x), ("pose_a", q), ("pose_b", y), ("pose_b", r)
    lengths = [len(column) for _, column in columns]
    n = 0 if 0 in lengths else max(lengths)
    for name, column in columns:
        if len(column) not in (1, n):
            raise ValueError(f"distance: {name} has {len(column)} rows, others have {n}; give one or as many")
    gap, normal, point, found = np.full(n, np.nan), np.full((n, 3), np.nan), np.full((n, 3), np.nan), np.zeros(n, bool)
    if n == 0:
        return Distance(gap, normal, point, point.copy(), with_forces(empty_geometry(0)), found)
    scene = Scene()
    numbers = []
    for shape, position, turn in ((shape_a, x, q), (shape_b, y, r)):
        place: dict[str, Any] = {
            "position": np.broadcast_to(position, (n, 3)),
            "orientation": np.broadcast_to(turn, (n, 4)),
        }
        numbers.append(scene.add(shape, **place, motion="fixed"))
    contacts = find_contacts(scene, pairs=np.stack(numbers, axis=1), margin=np.inf)
    row = contacts.pair[:, 0] - int(numbers[0][0])
    deepest = np.full(n, -1)
    order = np.lexsort((contacts.gap, row))[::-1]
    deepest[row[order]] = order  # the last to be written is the deepest
    found = deepest >= 0
    some = deepest[found]
    gap[found], normal[found], point[found] = contacts.gap[some], contacts.normal[some], contacts.point[some]
    half = 0.5 * gap[:, None] * normal
    contacts = contacts._replace(pair=np.stack([row, row], axis=1))
    return Distance(gap, normal, point - half, point + half, contacts, found)


def _shape_of(value):
    """The shape of what NumPy can make an array of numbers of, else None."""
    try:
        return np.asarray(value, float).shape
    except (TypeError, ValueError):
        return None


def _is_pair(value):
    """Whether a value is one position with its orientation."""
    listed = isinstance(value, list | tuple) and len(value) == 2
    return listed and _shape_of(value[0]) == (3,) and _shape_of(value[1]) == (4,)


def _is_rows(value):
    """Whether a value is two positions."""
    return (_shape_of(value) or (0,))[-1] == 3


def _pose(name, pose):
    """Positions (n,3) and orientations (m,4) of a pose, each with one row or as many as there are."""
    if not isinstance(pose, np.ndarray | list | tuple):
        raise TypeError(
            f"distance: {name} must be a position (3,), or (position, orientation), or n of either, got {inputs.short(pose)}"
        )
    position: Any = pose
    turn: Any = (1.0, 0.0, 0.0, 0.0)
    if not isinstance(pose, np.ndarray) and len(pose) > 0 and all(_is_pair(one) for one in pose):
        position, turn = [one[0] for one in pose], [one[1] for one in pose]
    elif not isinstance(pose, np.ndarray) and len(pose) == 2 and _shape_of(pose[0]) != () and not _is_rows(pose):
        position, turn = pose
    shapes = _shape_of(position), _shape_of(turn)
    if shapes[0] in ((0,), (0, 3)):
        position = np.zeros((0, 3))
    elif shapes[0] is None or len(shapes[0]) not in (1, 2) or shapes[0][-1] != 3:
        _refuse(name, *shapes)
    if shapes[1] in ((0,), (0, 4)):
        turn = np.zeros((0, 4))
    elif shapes[1] is None or len(shapes[1]) not in (1, 2) or shapes[1][-1] != 4:
        _refuse(name, *shapes)
    place = f"distance: {name}"
    return inputs.rows(place, "position", position, 3), inputs.quaternions(place, "orientation", turn)


def _refuse(name, *shapes):
    """Raise: positions and orientations have shapes that are none of a pose."""
    one, two = ("numbers of no one shape" if shape is None else f"shape {shape}" for shape in shapes)
    raise ValueError(
        f"distance: {name} must be positions (n,3), or positions and quaternions (n,4), or a list of n such pairs, got positions of {one} and "
        f"orientations of {two}"
    )

"""The distance of two shapes as a library call, with no scene."""

from typing import Any, NamedTuple

import numpy as np

from ..scene.scene import Scene
from ..signatures import Pose, Shape
from ..tables import Contacts
from .contacts import find_contacts


class Distance(NamedTuple):
    """What `distance` tells, one row for each pair of poses."""

    gap: np.ndarray  # (n,) [m], signed distance, negative when overlapping; of triangulated particles less their halos
    normal: np.ndarray  # (n,3) unit, from the first to the second
    first: np.ndarray  # (n,3) [m], point of the first that is nearest to the second, or deepest in it
    second: np.ndarray  # (n,3) [m], the same of the second
    contacts: Contacts  # all contact points; pair[:, 0] is the row of the pair of poses


def distance(shape_a: Shape, pose_a: Pose, shape_b: Shape, pose_b: Pose) -> Distance:
    """Signed distance, nearest points, normal and contact points of two shapes, at one pair of poses or at n of them.

    A pose is a position, (3,) or (n,3) [m], or (position, orientation) with unit quaternions (4,) or (n,4); one pose of one
    shape goes with n of the other. Of two shapes one may be a wall. Returns Distance; of one pair of poses it has one row.
    """
    (x, q), (y, r) = _pose("pose_a", pose_a), _pose("pose_b", pose_b)
    n = max(len(x), len(q), len(y), len(r))
    for name, column in (("pose_a", x), ("pose_a", q), ("pose_b", y), ("pose_b", r)):
        if len(column) not in (1, n):
            raise ValueError(f"distance: {name} has {len(column)} rows, others have {n}; give one or as many")
    scene = Scene()
    numbers = []
    for shape, position, turn in ((shape_a, x, q), (shape_b, y, r)):
        place: dict[str, Any] = {
            "position": np.broadcast_to(position, (n, 3)),
            "orientation": np.broadcast_to(turn, (n, 4)),
        }
        numbers.append(scene.add(shape, **place, motion="fixed"))
    found = find_contacts(scene, pairs=np.stack(numbers, axis=1), margin=np.inf)
    row = found.pair[:, 0] - int(numbers[0][0])
    deepest = np.full(n, -1)
    order = np.lexsort((found.gap, row))[::-1]
    deepest[row[order]] = order  # the last to be written is the deepest
    if (deepest < 0).any():
        if shape_a.wall and shape_b.wall:
            raise ValueError("distance: two walls have no distance; one of the shapes must be a particle")
        raise ValueError(
            f"distance: no contact was found for pose {int(np.argmax(deepest < 0))}: a superquadric may be too deep in the edge of a "
            "sheet, or out of the reach of a shell"
        )
    gap, normal, point = found.gap[deepest], found.normal[deepest], found.point[deepest]
    half = 0.5 * gap[:, None] * normal
    contacts = found._replace(pair=np.stack([row, row], axis=1))
    return Distance(gap, normal, point - half, point + half, contacts)


def _pose(name, pose):
    """Positions (n,3) and orientations (m,4) of a pose, each with one row or as many as there are."""
    if not isinstance(pose, np.ndarray | list | tuple) or np.size(pose[:1]) == 0:
        raise TypeError(f"distance: {name} must be a position (3,), or (position, orientation), got {pose!r}")
    alone = isinstance(pose, np.ndarray) or np.ndim(pose[0]) == 0 or len(pose) != 2
    if not alone and np.shape(pose[0])[-1:] == (3,) and np.shape(pose[1])[-1:] == (3,):
        alone = True  # two positions
    position, turn = (pose, (1.0, 0.0, 0.0, 0.0)) if alone else pose
    position, turn = np.atleast_2d(np.asarray(position, float)), np.atleast_2d(np.asarray(turn, float))
    if position.ndim != 2 or position.shape[1] != 3 or turn.ndim != 2 or turn.shape[1] != 4:
        raise ValueError(
            f"distance: {name} must be positions (n,3), or positions and unit quaternions (n,4), got shapes "
            f"{position.shape} and {turn.shape}"
        )
    return position, turn

"""What the parts of a step by hard contacts know of the whole: attributes of `clast.dvi.stepper.Hard`, which sets them."""

from collections.abc import Callable
from typing import Any

import numpy as np

from ..motion.stepper import Stepper


class Shared(Stepper):
    """The base of the parts of `clast.dvi.stepper.Hard`."""

    seconds: dict[str, float]  # wall time, by stage
    joints: Any  # JointSystem, or None where nothing is joined
    others: Any  # processes that share the run, see `clast.dvi.others`
    tally: dict[str, Any]  # what is counted over steps

    # What the scene has.
    clumps: bool  # bodies that are not round
    solids: bool  # surfaces that move when their body turns
    plain: bool  # none but spheres of one part each
    friction: float  # the largest
    # By mold (m,) [m], at size factor 1: how far it reaches, how far a point is from the centre about which it turns, how deep it can be pushed out.
    outer: np.ndarray
    lever: np.ndarray
    deep: np.ndarray

    held: np.ndarray  # (n,) int8, which bodies joints hold, or (0,)

    # Of the step.
    by_speed: np.ndarray  # (c,) bool, whose overlaps are parted by velocities
    slack: float  # [m], gaps that are wider are left out
    ahead: np.ndarray  # (n,) [m], how far bodies may go
    span: np.ndarray  # (n,) [m], the size of those that go far
    kick: np.ndarray  # (n,) part of the forces that acts before bodies move
    _moved: np.ndarray

    # What one part asks of another.
    _goes: Callable[[], np.ndarray]
    _held: Callable[[Any], np.ndarray]
    _joined: Callable[[Any, Any], np.ndarray]

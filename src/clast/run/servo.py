"""Walls that hold a force or a pressure: they give way or press on until contacts push back as hard as asked."""

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from ..dem.method import DEM
from ..dem.results import slots_in_use
from ..scene import inputs
from ..signatures import Vector

if TYPE_CHECKING:
    from .simulation import Simulation

ZERO = (0.0, 0.0, 0.0)


class Servo:
    """Drive of a wall, `scene.add(plate, drive=clast.Servo(...))`: it moves along `axis` (3,) against the particles and holds a force.

        v = speed * clip((F - P) / F, -1, 1) along axis

    F [N]: `force`, or `pressure` [Pa] times `area` [m^2]; P [N]: with how much the contacts of the last step push against `axis`. So it presses on
    with `speed` [m/s] while nothing resists, stands still where the force is reached, and gives way above. It is steady while
    speed * dt times the stiffness of what it presses on is below F, and speed times the damping of those contacts [N s/m] too; where it rattles,
    take less speed. The velocity follows from the contacts alone: after a restart, with drives={number: Servo(...)}, it goes on with the same bits.
    """

    def __init__(
        self,
        *,
        axis: Vector,
        speed: float,
        force: float | None = None,
        pressure: float | None = None,
        area: float | None = None,
    ) -> None:
        axis = inputs.vector("Servo", "axis", axis)
        if not axis.any():
            raise ValueError("Servo: axis must not be zero")
        if (force is None) == (pressure is None) or (pressure is None) != (area is None):
            raise ValueError("Servo: give either force [N], or pressure [Pa] and area [m^2]")
        self.axis = axis / np.linalg.norm(axis)
        self.speed = inputs.number("Servo", "speed", speed, above=0.0)
        if force is None:
            force = inputs.number("Servo", "pressure", pressure, above=0.0) * inputs.number(
                "Servo", "area", area, above=0.0
            )
        self.force = inputs.number("Servo", "force", force, above=0.0)
        self._sim: Any = None
        self._number: int | None = None
        self._known: Any = None

    def bind(self, sim: "Simulation", number: int) -> None:
        """Told by a simulation whose wall it drives."""
        if self._sim is not None and self._sim is not sim:
            raise ValueError("Servo: it drives the wall of another simulation; make one for each")
        if not isinstance(sim.method, DEM):
            raise ValueError(
                "Servo: walls that hold a force need clast.DEM(...); with hard contacts join a plate to the world "
                "by a slider and give that a motor(force=)"
            )
        self._sim, self._number = sim, number

    def __call__(self, time: float) -> tuple[tuple, tuple]:
        """Velocity (3,) [m/s] and spin (3,) [rad/s] at present; asked by the simulation."""
        if self._sim is None or self._sim.state.pairs is None:
            return ZERO, ZERO
        if self._known is None or self._known[0] != self._sim.steps:
            share = min(1.0, max(-1.0, (self.force - self.push) / self.force))
            self._known = self._sim.steps, tuple((self.speed * share * self.axis).tolist())
        return self._known[1], ZERO

    @property
    def push(self) -> float:
        """With how much [N] the contacts of the last step push against the axis; an exact sum, the same in any order of memory."""
        state = self._sim.state
        slot, pair = slots_in_use(state)
        wall = int(np.flatnonzero(state.bodies.number == self._number)[0])
        own = state.shapes.body[state.device.to_host(state.pairs.shape)[pair, 1]] == wall
        force, axis = state.device.to_host(state.points.force)[slot[own]], self.axis
        # Written out: the last bit of a matrix product may depend on how many rows there are, and processes have other rows.
        mine = force[:, 0] * axis[0] + force[:, 1] * axis[1] + force[:, 2] * axis[2]
        return -math.fsum(self._sim.stepper.everywhere(mine).tolist())

"""Heat of bodies, and what of it goes through contacts."""

import math
from typing import TYPE_CHECKING

import numpy as np

from ..signatures import Whole
from ..tables import FREE

if TYPE_CHECKING:
    from ..run.simulation import Simulation


def heat(sim: "Simulation") -> float:
    """Heat [J] of all free bodies, counted from 0 K: H = sum_i m_i c_i T_i; an exact sum, the same in any order of memory."""
    return sim.stepper.total(_heats(sim)[1])[0]


def mean_temperature(sim: "Simulation") -> float:
    """The temperature [K] that all free bodies would come to together: T = sum_i m_i c_i T_i / sum_i m_i c_i; NaN where there is none."""
    capacity, heats = sim.stepper.total(*_heats(sim))
    return heats / capacity if capacity > 0.0 else math.nan


def heat_flow(sim: "Simulation", number: Whole) -> float:
    """Heat [W] that flows into one body at present, also into one that keeps its temperature: Q = sum_c 2 k a (T_partner - T), over its contacts, see docs/laws.md; 0 for
    one that has gone."""
    _check(sim, "heat_flow")
    if not 0 <= number < sim.scene.next_number:
        raise ValueError(f"measure.heat_flow: there is no body {number}")
    sim.start()
    pair, flow = sim.stepper.heat_flows()
    return math.fsum([*flow[pair[:, 1] == number].tolist(), *(-flow[pair[:, 0] == number]).tolist()])


def _check(sim, name):
    if not sim.scene.warm:
        raise ValueError(f"measure.{name}: no body has a temperature; give one, scene.add(..., temperature=...) in K")


def _heats(sim):
    """Heat capacities (k,) [J/K] and heats (k,) [J] of free bodies that this process tells of."""
    _check(sim, "heat")
    bodies = sim.stepper.share()
    free = bodies.motion == FREE
    per_mass = np.array([material.heat_capacity or math.nan for material in sim.scene.materials])
    capacity = bodies.mass[free] * per_mass[bodies.material[free]]
    return capacity, capacity * bodies.temperature[free]

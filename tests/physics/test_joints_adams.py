"""Eighteen mechanisms against recorded runs of ADAMS, at the time step and limits of Chrono's own tests or tighter."""

import adams
import numpy as np
import pytest

import clast

LIMITS = {"Pos": 1e-3, "Vel": 1e-3, "Quat": 1e-3, "Avel": 5e-3}  # root mean square
REACTION = 2e-2
# All five seconds of these behind the slow marker, in which each part of the scheme is met; of all, validation/joints.py.
LONG = ("Revolute_Case01", "RotSpring_Case01", "LinActuator_Case01")


def run(case, data, rows, steps=20):
    sim = clast.Simulation(case.build(), clast.Complementarity(), dt=0.01 / steps)
    found, worst = adams.record(case, sim, steps, rows)
    return adams.errors(case, found, data), worst, found


def check(case, data, rows):
    found, worst, _ = run(case, data, rows)
    for name, value in found.items():
        assert value < LIMITS.get(name, REACTION), (name, value)
    assert worst < 1e-9


@pytest.mark.parametrize("name", adams.CASES)
def test_the_beginning_is_as_recorded(name, reference_data):
    check(adams.CASES[name], reference_data, 21)


@pytest.mark.slow
@pytest.mark.parametrize("name", LONG)
def test_five_seconds_are_as_recorded(name, reference_data):
    check(adams.CASES[name], reference_data, 501)


@pytest.mark.parametrize("name", ["Distance_Case02", "RevSpherical_Case01"])
def test_errors_fall_with_the_time_step(name, reference_data):
    case, rows = adams.CASES[name], 61
    exact = run(case, reference_data, rows, 12)[2]
    misses = []
    for steps in (3, 6):
        found = run(case, reference_data, rows, steps)[2]
        misses.append(float(np.sqrt(((found["Pos"] - exact["Pos"]) ** 2).mean())))
    # Fourth order would be 16.
    assert misses[0] > 8.0 * misses[1]

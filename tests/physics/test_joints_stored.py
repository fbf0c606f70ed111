"""Eleven mechanisms against their equations of motion, integrated apart from clast to ten digits."""

import json
import math

import numpy as np
import pytest
from adams import on_world, spring_on_world

import clast

NAMES = (
    *("hinge", "ball", "universal", "slider", "cylinder", "distance", "hinge and ball"),
    *("torsion", "spring", "hardening spring", "actuator"),
)
STEPS = 25  # from one stored row to the next, of 4 ms each
LIMITS = {"Pos": 1e-6, "Vel": 1e-5, "Quat": 2e-6, "Avel": 3e-5}  # [m, m/s, -, rad/s]
REACTION = 3e-3  # [N or N m]
FUNCTIONS = {
    "breathing": lambda time: 1.0 + 0.3 * math.sin(2.0 * time),
    "hardening": lambda length, rate, time: 40.0 * (length - 1.0) + 15.0 * (length - 1.0) ** 3 + 2.0 * rate,
}


@pytest.fixture(scope="module")
def stored(own_data):
    return json.loads((own_data / "mechanisms.json").read_text())


def build(given):
    """A box with a mass of 1 kg and the moments of inertia of the stored body, with its joints and springs."""
    x, y, z = 0.05, 0.08, 0.11
    edges = np.sqrt([6.0 * (y + z - x), 6.0 * (z + x - y), 6.0 * (x + y - z)])
    scene = clast.Scene(gravity=(0, 0, -9.81))
    pose = {key: given[key] for key in ("position", "orientation", "velocity", "spin")}
    scene.add(clast.Polyhedron.box(*edges), material=clast.Material(density=1.0 / edges.prod()), **pose)

    def options(made):
        return {key: FUNCTIONS.get(value, value) if isinstance(value, str) else value for key, value in made.items()}

    for joint in given["joints"]:
        scene.join(None, 0, **options(joint))
    if "torsion" in given:
        scene.torsion(0, **given["torsion"])
    if "spring" in given:
        scene.spring(None, 0, **options(given["spring"]))
    return scene


def errors(given, every, rows, steps=STEPS):
    """{what: largest error} over so many rows, with so many steps from one to the next."""
    sim = clast.Simulation(build(given), clast.Complementarity(), dt=every / steps)
    found = {name: [] for name in given["found"]}
    for row in range(rows):
        if row:
            sim.step(steps)
        body = sim.bodies
        for name, column in zip(LIMITS, (body.position, body.velocity, body.orientation, body.spin), strict=True):
            found[name].append(column[0].copy())
        for k in range(len(given["joints"])):
            found[f"Wrench{k}"].append(on_world(sim, k))
        if "torsion" in given:
            found["Wrench0"][-1][3:] -= sim.pulls.torque[0]
        if "spring" in given:
            found["Wrench0"].append(spring_on_world(sim))
        assert sim.violation.max(initial=0.0) < 1e-9
    result = {}
    for name, values in found.items():
        values, wanted = np.array(values), np.array(given["found"][name][:rows])
        if name == "Quat":  # both signs are the same orientation
            values = values * np.sign((values * wanted).sum(1))[:, None]
        result[name] = float(np.abs(values - wanted).max())
    return result


def test_all_stored_mechanisms_are_here(stored):
    assert set(NAMES) == set(stored["cases"])


@pytest.mark.parametrize("name", NAMES)
def test_two_seconds_are_as_computed(name, stored):
    for what, error in errors(stored["cases"][name], stored["every"], 21).items():
        assert error < LIMITS.get(what, REACTION), (what, error)


@pytest.mark.parametrize("name", ["hinge", "ball", "distance", "hinge and ball"])
def test_errors_fall_with_the_time_step(name, stored):
    """Against the stored motion: the scheme is of fourth order, which would be 16."""
    given = stored["cases"][name]
    coarse, fine = (errors(given, stored["every"], 11, steps)["Pos"] for steps in (5, 10))
    assert coarse > 8.0 * fine > 0.0

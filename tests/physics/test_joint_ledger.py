"""The ledger of energies with joints, motors and springs: closed forms, and balances that close."""

import math

import numpy as np
import pytest

import clast
from clast import Complementarity, Material, Oscillation, Plane, Polyhedron, Scene, Simulation, Sphere

STONE = Material(density=1000.0, friction=0.3, restitution=0.3)
G = 9.81
BEAM = Polyhedron.box(0.1, 0.02, 0.02)


def hard(scene, dt=1e-3):
    return Simulation(scene, Complementarity(ledger=True), dt=dt)


def close(told, numerical):
    """All is accounted for, to rounding; numerical: part of the turnover that steps may make."""
    assert told.turnover > 0.0
    assert abs(told.error) < 1e-11 * told.turnover
    assert abs(told.numerical) < numerical * told.turnover


def arm(floor=None):
    """Two beams, one at the end of the other, on a hinge; a motor turns the first, and where there is no floor a spring with a damper pulls at the second."""
    scene = Scene()
    if floor is not None:
        scene.add(Plane(), position=(0, 0, floor), material=STONE)
    one, two = scene.add(BEAM, position=[(0.05, 0, 0), (0.15, 0, 0)], material=STONE)
    hinge = scene.join(None, one, "hinge", at=(0, 0, 0), axis=(0, 1, 0))
    scene.join(one, two, "hinge", at=(0.1, 0, 0), axis=(0, 1, 0), collide=False)
    scene.motor(hinge, spin=5.0)
    if floor is None:
        scene.spring(None, two, from_=(0.3, 0, 0), to=(0.2, 0, 0), stiffness=20.0, damping=0.1)
    return scene


def test_a_motor_that_lifts_a_weight_does_its_work():
    scene = Scene()
    ball = scene.add(Sphere(0.05), material=STONE)[0]
    scene.motor(scene.join(None, ball, "slider", axis=(0, 0, 1)), speed=0.5)
    sim = hard(scene)
    sim.step(400)
    told, mass = sim.ledger(), sim.bodies.mass[0]
    close(told, 1e-9)
    assert told.motors == pytest.approx(mass * G * 0.5 * sim.time, rel=1e-9)
    assert told.dissipated == told.work == 0.0


def test_the_work_of_a_torque_is_torque_times_angle():
    scene = Scene(gravity=(0, 0, 0))
    beam = scene.add(BEAM, position=(0.05, 0, 0), material=STONE)[0]
    scene.motor(scene.join(None, beam, "hinge", at=(0, 0, 0), axis=(0, 1, 0)), torque=0.003)
    sim = hard(scene)
    sim.step(300)
    told = sim.ledger()
    close(told, 1e-9)
    assert told.motors == pytest.approx(0.003 * sim.reactions.coordinate[0, 0], rel=1e-7)
    assert told.motors == pytest.approx(told.kinetic, rel=1e-7)


def test_a_damper_takes_half_of_what_a_weight_loses_on_its_spring():
    scene = Scene()
    ball = scene.add(Sphere(0.05), material=STONE)[0]
    scene.join(None, ball, "slider", axis=(0, 0, 1))
    mass = float(scene.bodies.mass[0])
    scene.spring(None, ball, from_=(0, 0, 0.2), stiffness=100.0, damping=2.0 * math.sqrt(100.0 * mass))
    sim = hard(scene)
    sim.step(1400)
    told, sinks = sim.ledger(), mass * G / 100.0
    close(told, 1e-6)
    assert told.dampers == pytest.approx(0.5 * mass * G * sinks, rel=1e-6)
    assert told.elastic == pytest.approx(0.5 * mass * G * sinks, rel=1e-6)


def test_a_motor_a_spring_and_a_damper_on_two_beams_close_the_balance():
    sim = hard(arm())
    sim.step(400)
    told = sim.ledger()
    close(told, 1e-6)
    assert told.dampers > 0.0 and told.motors != 0.0
    assert "work of motors" in str(told) and "dampers of springs" in str(told)


def test_beams_that_hit_a_floor_close_it_too_and_go_on_after_a_restart(tmp_path):
    sim = hard(arm(floor=-0.12))
    sim.step(250)
    sim.save(tmp_path / "half.h5")
    sim.step(350)
    told = sim.ledger()
    close(told, 0.02)  # steps in contact are of the first order
    assert told.normal > 0.0 and told.sliding > 0.0
    again = clast.resume(tmp_path / "half.h5")
    again.step(350)
    assert again.ledger() == told


def test_a_shaken_beam_takes_its_energy_from_the_drive():
    scene = Scene()
    shaken = {"motion": "driven", "drive": Oscillation((0, 0, 0.02), 3.0)}
    one = scene.add(BEAM, position=(0.05, 0, 0), material=STONE, **shaken)[0]
    two = scene.add(BEAM, position=(0.15, 0, 0), material=STONE)[0]
    scene.join(one, two, "hinge", at=(0.1, 0, 0), axis=(0, 1, 0), collide=False)
    scene.spring(one, two, from_=(0.05, 0, 0.1), to=(0.2, 0, 0), stiffness=10.0)
    sim = hard(scene)
    sim.step(300)
    told = sim.ledger()
    close(told, 1e-8)
    assert abs(told.dampers) < 1e-8 * told.turnover  # there is none
    assert abs(told.work) > 1e-3 * told.turnover
    assert told.motors == 0.0


def test_a_beam_that_comes_to_its_limit_loses_what_it_fell():
    scene = Scene()
    beam = scene.add(BEAM, position=(0.05, 0, 0), material=STONE)[0]
    scene.join(None, beam, "hinge", at=(0, 0, 0), axis=(0, 1, 0), limits=(-0.5, 0.5))
    sim = hard(scene, dt=5e-4)
    sim.step(1200)
    told = sim.ledger()
    assert told.kinetic < 1e-12
    assert abs(told.error) < 1e-11 * told.limits
    assert told.limits == pytest.approx(sim.bodies.mass[0] * G * 0.05 * math.sin(0.5), rel=0.02)
    assert np.isclose(told.limits + told.numerical, -told.potential, rtol=1e-6)

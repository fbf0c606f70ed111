"""A row of balls, struck at one end: a solitary wave runs through it."""

import math

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from clast import DEM, Material, Scene, Simulation, Sphere

COUNT, RADIUS, BLOW = 40, 0.01, 0.1
BALL = Material(density=2500.0, young=1e8, poisson=0.3, friction=0.0, restitution=1.0)


def crest(time, speed):
    """When a ball is fastest, and how fast: the top of a parabola."""
    k = int(np.argmax(speed))
    before, most, after = speed[k - 1 : k + 2]
    off = 0.5 * (before - after) / (before - 2.0 * most + after)
    return time[k] + off * (time[1] - time[0]), most - 0.25 * (before - after) * off


def wave(time, speed):
    """Speed of the wave between two balls and the greatest speed of the second [m/s], from speeds (t, balls)."""
    (begin, _), (end, most) = crest(time, speed[:, 12]), crest(time, speed[:, 30])
    return 18.0 * 2.0 * RADIUS / (end - begin), most


def by_its_equations(until):
    """The same row by a Runge-Kutta method of order eight, with Hertz's force between neighbours."""
    mass = BALL.density * 4.0 / 3.0 * math.pi * RADIUS**3
    stiffness = BALL.young * math.sqrt(2.0 * RADIUS) / 3.0 / (1.0 - BALL.poisson**2)

    def motion(_, y):
        force = stiffness * np.maximum(y[: COUNT - 1] - y[1:COUNT], 0.0) ** 1.5
        return np.concatenate([y[COUNT:], (np.append(0.0, force) - np.append(force, 0.0)) / mass])

    time, start = np.linspace(0.0, until, 1500), np.zeros(2 * COUNT)
    start[COUNT] = BLOW
    return wave(time, solve_ivp(motion, (0.0, until), start, "DOP853", time, rtol=1e-9, atol=1e-13).y[COUNT:].T)


def test_solitary_wave():
    scene = Scene(gravity=(0.0, 0.0, 0.0))
    place, velocity = np.zeros((COUNT, 3)), np.zeros((COUNT, 3))
    place[:, 0], velocity[0, 0] = 2.0 * RADIUS * np.arange(COUNT), BLOW
    scene.add(Sphere(RADIUS), position=place, velocity=velocity, material=BALL)
    sim, speeds = Simulation(scene, DEM()), []
    while sim.time < 0.024:
        sim.step()
        speeds.append(sim.bodies.velocity[:, 0])
    speed, most = wave(sim.dt * np.arange(1, len(speeds) + 1), np.array(speeds))
    assert (speed, most) == pytest.approx(by_its_equations(sim.time), rel=1e-3)
    # Nesterenko (1984): the speed of long waves, of which one of five balls is not quite one.
    sound = math.sqrt(2.0 * BALL.young / (math.pi * BALL.density * (1.0 - BALL.poisson**2)))
    assert speed == pytest.approx(0.64**0.2 * (sound**4 * most) ** 0.2, rel=0.01)

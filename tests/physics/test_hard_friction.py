"""Hard contacts: sliding, rolling, spinning, cohesion and compliance against closed forms; boxes on planes."""

import math

import numpy as np
import pytest
from test_complementarity import RADIUS, G, one_ball, packed

import clast
from clast import measure

MASS = 2500.0 * 4.0 / 3.0 * math.pi * RADIUS**3


@pytest.mark.parametrize("coulomb", [False, True])
def test_a_sliding_ball_ends_up_rolling(coulomb):
    """At 5/7 of its speed, after the time 2 v / (7 mu g). The cone problem lifts the ball off at first."""
    sim = one_ball(velocity=(2, 0, 0), coulomb=coulomb)
    rolls, highest = None, 0.0
    for _ in range(200):
        sim.step()
        bodies = sim.bodies
        highest = max(highest, bodies.position[1, 2] - RADIUS)
        if rolls is None and abs(bodies.velocity[1, 0] - RADIUS * bodies.spin[1, 1]) < 1e-3:
            rolls = sim.time
    assert abs(bodies.velocity[1, 0] - 2 * 5 / 7) < 1e-6
    assert abs(rolls - 4 / (7 * 0.3 * G)) < 0.04 * rolls
    assert abs(highest) < 1e-9 if coulomb else 0.005 < highest < 0.02


@pytest.mark.parametrize("coulomb", [False, True])
def test_sliding_down_an_incline(coulomb):
    """Acceleration and spin are those of Coulomb's law either way; the cone problem lifts by friction times slip times dt."""
    slope, mu = math.atan(2.0), 0.2
    gravity = (G * math.sin(slope), 0, -G * math.cos(slope))
    sim = one_ball(gravity=gravity, friction=mu, coulomb=coulomb)
    sim.step(100)
    before = sim.bodies
    sim.step(100)
    after, time = sim.bodies, 0.5
    acceleration = (after.velocity[1, 0] - before.velocity[1, 0]) / time
    turning = (after.spin[1, 1] - before.spin[1, 1]) / time
    assert abs(acceleration / (G * (math.sin(slope) - mu * math.cos(slope))) - 1.0) < 1e-4
    assert abs(turning / (2.5 * mu * G * math.cos(slope) / RADIUS) - 1.0) < 1e-4
    slip = after.velocity[1, 0] - RADIUS * after.spin[1, 1]
    lift = after.position[1, 2] - RADIUS
    assert abs(lift - (0.0 if coulomb else mu * sim.dt * slip)) < 1e-5


@pytest.mark.parametrize("coulomb", [False, True])
def test_oblique_impact_without_rebound(coulomb):
    """Friction takes mu times the normal momentum; the ball that slides on keeps contact."""
    sim = one_ball(height=1e-3, velocity=(2, 0, -1), gravity=(0, 0, 0), dt=1e-3, coulomb=coulomb, tolerance=1e-7)
    sim.step(30)
    bodies = sim.bodies
    np.testing.assert_allclose(bodies.velocity[1], (1.7, 0, 0), rtol=0, atol=1e-5)
    np.testing.assert_allclose(bodies.spin[1], (0, 2.5 * 0.3 / RADIUS, 0), rtol=0, atol=1e-3)


def test_rolling_friction_stops_a_ball_where_it_should():
    """The couple rolling_friction * radius * weight brakes 7/5 of the mass."""
    mu = 0.1
    sim = one_ball(velocity=(1, 0, 0), spin=(0, 1 / RADIUS, 0), friction=0.5, rolling_friction=mu, dt=2e-3)
    sim.step(round(1.4 / (mu * G) / sim.dt) + 20)
    bodies = sim.bodies
    assert abs(bodies.position[1, 0] / (0.7 / (mu * G)) - 1.0) < 0.01
    assert np.abs(bodies.velocity[1]).max() < 1e-3


def test_spinning_friction_stops_a_top_when_it_should():
    mu, spin = 0.1, 20.0
    sim = one_ball(spin=(0, 0, spin), spinning_friction=mu, dt=2e-3)
    whole = 0.4 * RADIUS * spin / (mu * G)
    sim.step(round(0.5 * whole / sim.dt))
    assert abs(sim.bodies.spin[1, 2] / spin - 0.5) < 0.01
    sim.step(round(0.52 * whole / sim.dt))
    assert abs(sim.bodies.spin[1, 2]) < 1e-2
    np.testing.assert_allclose(sim.bodies.position[1], (0, 0, RADIUS), rtol=0, atol=1e-6)


@pytest.mark.parametrize(("part", "hangs"), [(1.02, True), (0.98, False)])
def test_cohesion_holds_a_ball_at_the_ceiling(part, hangs):
    sim = one_ball(normal=(0, 0, -1), cohesion=part * MASS * G)
    sim.step(200)
    fallen = -RADIUS - sim.bodies.position[1, 2]
    assert abs(fallen) < 1e-6 if hangs else fallen > 1.0
    if hangs:
        np.testing.assert_allclose(sim.contacts().force, [(0, 0, MASS * G)], rtol=1e-6, atol=1e-6)


def test_a_compliant_floor_is_a_spring():
    compliance, dt = 1e-4, 1e-3
    sim = one_ball(compliance=compliance, dt=dt)
    sink = compliance * MASS * G
    period = 2.0 * math.pi * math.sqrt(compliance * MASS)
    depth = []
    for _ in range(round(0.9 * period / dt)):
        sim.step()
        depth.append(RADIUS - sim.bodies.position[1, 2])
    deepest = int(np.argmax(depth))
    assert abs(depth[deepest] / (2.0 * sink) - 1.0) < 0.03
    assert abs((deepest + 1) * dt / (0.5 * period) - 1.0) < 0.02
    sim = one_ball(compliance=compliance)
    sim.step(800)  # steps of finite length damp a spring: by half the square of its frequency times dt
    assert abs((RADIUS - sim.bodies.position[1, 2]) / sink - 1.0) < 1e-2


@pytest.mark.parametrize("warm", [True, False])
def test_every_coefficient_of_friction_brakes_as_it_should(warm):
    """What was remembered of the step before must not stand in for friction."""
    for mu in (0.0, 0.05, 0.1, 0.2):
        sim = one_ball(velocity=(2, 0, 0), friction=mu, coulomb=True, warm=warm)
        sim.step(40)
        bodies = sim.bodies
        assert abs(bodies.velocity[1, 0] - (2.0 - mu * G * sim.time)) < 1e-3
        assert abs(bodies.spin[1, 1] - 2.5 * mu * G * sim.time / RADIUS) < 2e-2


def test_warm_start_saves_iterations():
    used = {}
    for warm in (True, False):
        sim = packed(40, warm=warm)
        sim.step(300)
        before = sim.stepper.tally["iterations"]
        sim.step(50)
        used[warm] = sim.stepper.tally["iterations"] - before
    assert used[True] < 0.7 * used[False]


# Boxes.


def slab(slope, mu, coulomb=False, **options):
    """A box of 0.4 x 0.4 x 0.1 m on a plane; gravity is tilted by the slope [rad]."""
    stuff = clast.Material(friction=mu, restitution=0.0)
    scene = clast.Scene(gravity=(G * math.sin(slope), 0, -G * math.cos(slope)))
    scene.add(clast.Plane(), material=stuff)
    scene.add(clast.Polyhedron.box(0.4, 0.4, 0.1), position=(0, 0, 0.05), material=stuff)
    return clast.Simulation(scene, clast.Complementarity(coulomb=coulomb, **options), dt=5e-3)


@pytest.mark.slow
def test_a_slab_holds_and_slides():
    sim = slab(math.atan(0.5), 0.9)
    sim.step(400)
    assert np.abs(sim.bodies.position[1] - (0, 0, 0.05)).max() < 1e-5
    assert np.abs(sim.bodies.velocity[1]).max() < 1e-3
    for coulomb in (False, True):
        sim = slab(math.atan(0.5), 0.2, coulomb)
        sim.step(200)
        slope, bodies = math.atan(0.5), sim.bodies
        speed = G * (math.sin(slope) - 0.2 * math.cos(slope)) * sim.time
        assert abs(bodies.velocity[1, 0] / speed - 1.0) < 1e-3
        lift = bodies.position[1, 2] - 0.05
        assert abs(lift - (0.0 if coulomb else 0.2 * sim.dt * bodies.velocity[1, 0])) < 1e-5


@pytest.mark.parametrize("coulomb", [False, True])
def test_the_friction_angle_of_a_slab(coulomb):
    low, high = math.radians(25.0), math.radians(37.0)
    while high - low > math.radians(0.05):
        middle = 0.5 * (low + high)
        sim = slab(middle, 0.6, coulomb)
        sim.step(200)
        low, high = (low, middle) if sim.bodies.velocity[1, 0] > 2e-3 else (middle, high)
    assert abs(0.5 * (low + high) - math.atan(0.6)) < math.radians(0.1)


@pytest.mark.parametrize(("direction", "coulomb"), [(1, False), (-1, True)])
def test_painleve_rod(direction, coulomb):
    """A rod that slides on one end, leaning at tan = 2 with friction above 4/3: with forces alone there would be no answer."""
    stuff = clast.Material(friction=2.0, restitution=0.0)
    scene = clast.Scene()
    scene.add(clast.Plane(), material=stuff)
    lean = math.atan(2.0)
    height = 0.5 * math.sin(lean) + 0.01 * math.cos(lean) + 1e-6
    turn = (math.cos(0.5 * lean), 0, -math.sin(0.5 * lean), 0)
    rod = clast.Polyhedron.box(1.0, 0.02, 0.02)
    scene.add(rod, position=(0, 0, height), orientation=turn, velocity=(3.0 * direction, 0, 0), material=stuff)
    sim = clast.Simulation(scene, clast.Complementarity(coulomb=coulomb), dt=1e-3)
    energy, added, deepest = [measure.energy(sim)["total"]], [0.0], 0.0
    for _ in range(700):
        sim.step()
        energy.append(measure.energy(sim)["total"])
        added.append(sim.stepper.tally["stabilisation"])
        deepest = max(deepest, -sim.stepper.constraints.gap.min(initial=0.0))
    assert np.isfinite(sim.bodies.position).all()
    assert deepest < 2e-3
    assert (np.diff(energy) <= np.diff(added) + 1e-4 * energy[0]).all()
    assert energy[-1] < 0.2 * energy[0]


@pytest.mark.slow
def test_a_tower_of_boxes_stands_for_a_minute():
    stuff = clast.Material(friction=0.5, restitution=0.0)
    scene = clast.Scene()
    scene.add(clast.Plane(), material=stuff)
    scene.add(clast.Polyhedron.box(0.5, 0.5, 0.5), position=[(0, 0, 0.25 + 0.5 * k) for k in range(10)], material=stuff)
    sim = clast.Simulation(scene, clast.Complementarity(), dt=5e-3)
    start = sim.bodies.position.copy()
    sim.step(12000)
    assert np.abs(sim.bodies.position - start).max() < 1e-3 * 0.5
    told = sim.report().solver
    assert told["missed"] == 0
    assert told["iterations"] < 30 * told["steps"]

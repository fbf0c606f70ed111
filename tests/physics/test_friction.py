"""Sliding, rolling and holding under friction, against closed forms."""

import math

import numpy as np
import pytest

import clast

G = 9.81
RADIUS = 0.01


def rock(**changes):
    """A stiff material, so that overlaps are far below the tolerances."""
    return clast.Material(**{"young": 1e8, "friction": 0.3, "restitution": 0.3, **changes})


def sunk(material, radius=RADIUS, push=1.0):
    """Depth [m] at which a sphere rests on a plane of the same material under `push` times its weight."""
    young = material.young / (2.0 * (1.0 - material.poisson**2))
    weight = push * G * material.density * 4.0 / 3.0 * math.pi * radius**3
    return (0.75 * weight / (young * math.sqrt(radius))) ** (2.0 / 3.0)


def on_slope(material, angle, shape=None, height=RADIUS, **options):
    """A body on a plane that is level, with gravity leaning by `angle` [rad] towards +x."""
    scene = clast.Scene(gravity=(G * math.sin(angle), 0.0, -G * math.cos(angle)))
    scene.add(clast.Plane(), material=material)
    scene.add(shape or clast.Sphere(RADIUS), position=(0, 0, height), material=material, **options)
    return scene


@pytest.mark.parametrize("law", ["hertz", "linear"])
def test_slide_to_roll(law):
    """A sphere set on a plane with speed u0 slides until 2 u0 / (7 mu g) and then rolls with 5/7 u0."""
    u0, mu = 0.5, 0.2
    material = rock(friction=mu, stiffness=2e5 if law == "linear" else None)
    depth = sunk(material) if law == "hertz" else G * material.density * 4 / 3 * math.pi * RADIUS**3 / 2e5
    scene = on_slope(material, 0.0, height=RADIUS - depth, velocity=(u0, 0, 0))
    sim = clast.Simulation(scene, clast.DEM(law=law))
    expected = 2.0 * u0 / (7.0 * mu * G)
    stopped = None
    for _ in range(2000):
        sim.step(math.ceil(expected / 1000 / sim.dt))
        speed, spin = sim.bodies.velocity[1, 0], sim.bodies.spin[1, 1]
        # The contact point is the middle of the overlap.
        if stopped is None and speed - (RADIUS - 0.5 * depth) * spin < 1e-3 * u0:
            stopped = sim.time
            break
        if sim.time < 0.9 * expected:
            assert speed == pytest.approx(u0 - mu * G * sim.time, rel=1e-4)
    assert stopped == pytest.approx(expected, rel=3e-3)
    sim.step(math.ceil(0.3 * expected / sim.dt))
    assert sim.bodies.velocity[1, 0] == pytest.approx(5.0 / 7.0 * u0, rel=1e-3)
    # Exactly, with the arm shorter by half of the overlap.
    arm = 2.5 * (1.0 - 0.5 * depth / RADIUS) ** 2
    assert sim.bodies.velocity[1, 0] == pytest.approx(arm / (1.0 + arm) * u0, rel=2e-5)
    assert sim.bodies.spin[1, 1] * (RADIUS - 0.5 * depth) == pytest.approx(arm / (1.0 + arm) * u0, rel=2e-5)


@pytest.mark.parametrize(("fraction", "rolls"), [(0.5, True), (0.98, True), (1.02, False), (1.5, False)])
def test_sphere_on_an_incline(fraction, rolls):
    """It rolls without slipping up to tan(angle) = 3.5 mu; above, friction is mu times the normal force."""
    mu = 0.2
    angle = math.atan(3.5 * mu * fraction)
    material = rock(friction=mu)
    depth = sunk(material, push=math.cos(angle))
    sim = clast.Simulation(on_slope(material, angle, height=RADIUS - depth), clast.DEM())
    sim.step(math.ceil(0.02 / sim.dt))  # the shear spring settles
    speed, spin, time = sim.bodies.velocity[1, 0], sim.bodies.spin[1, 1], sim.time
    sim.step(math.ceil(0.1 / sim.dt))
    time = sim.time - time
    acceleration = (sim.bodies.velocity[1, 0] - speed) / time
    turning = (sim.bodies.spin[1, 1] - spin) / time
    slipping = sim.bodies.velocity[1, 0] - (RADIUS - depth) * sim.bodies.spin[1, 1]
    if rolls:
        assert acceleration == pytest.approx(5.0 / 7.0 * G * math.sin(angle), rel=1e-3)
        assert abs(slipping) < 1e-3 * sim.bodies.velocity[1, 0]
    else:
        assert acceleration == pytest.approx(G * (math.sin(angle) - mu * math.cos(angle)), rel=1e-4)
        assert turning * RADIUS == pytest.approx(2.5 * mu * G * math.cos(angle), rel=1e-3)
        assert slipping > 5e-3 * sim.bodies.velocity[1, 0]


SLED = clast.Clump([(-0.01, -0.01, 0), (-0.01, 0.01, 0), (0.01, -0.01, 0), (0.01, 0.01, 0)], [0.0105] * 4)


@pytest.mark.parametrize("law", ["hertz", "linear"])
@pytest.mark.parametrize("fraction", [0.9, 0.98, 1.02, 1.2])
def test_a_sled_holds_below_the_friction_angle_and_slides_above(law, fraction):
    mu = 0.4
    angle = math.atan(mu * fraction)
    sim = clast.Simulation(on_slope(rock(friction=mu), angle, SLED, height=0.0105), clast.DEM(law=law))
    sim.step(math.ceil(0.05 / sim.dt))
    speed, place, time = sim.bodies.velocity[1, 0], sim.bodies.position[1, 0], sim.time
    sim.step(math.ceil(0.1 / sim.dt))
    time = sim.time - time
    if fraction < 1.0:
        assert abs(sim.bodies.position[1, 0] - place) < 1e-8
        assert abs(sim.bodies.velocity[1, 0]) < 1e-6
    else:
        expected = G * (math.sin(angle) - mu * math.cos(angle))
        assert (sim.bodies.velocity[1, 0] - speed) / time == pytest.approx(expected, rel=1e-3)


def test_rolling_resistance_stops_a_sphere_after_the_expected_distance():
    """The couple c m g r acts against the spin: deceleration 5/7 c g, distance 7 u0^2 / (10 c g)."""
    rolling, u0 = 0.05, 0.1
    material = rock(friction=0.5, rolling_friction=rolling)
    depth = sunk(material)
    scene = on_slope(material, 0.0, height=RADIUS - depth, velocity=(u0, 0, 0), spin=(0, u0 / (RADIUS - depth), 0))
    sim = clast.Simulation(scene, clast.DEM())
    time = 7.0 * u0 / (5.0 * rolling * G)
    sim.step(math.ceil(0.5 * time / sim.dt))
    assert sim.bodies.velocity[1, 0] == pytest.approx(u0 - 5.0 / 7.0 * rolling * G * sim.time, rel=5e-3)
    sim.step(math.ceil(1.0 * time / sim.dt))
    assert sim.bodies.position[1, 0] == pytest.approx(7.0 * u0**2 / (10.0 * rolling * G), rel=5e-3)
    place = sim.bodies.position[1, 0]
    sim.step(math.ceil(0.2 * time / sim.dt))
    assert abs(sim.bodies.position[1, 0] - place) < 1e-3 * RADIUS


@pytest.mark.parametrize("fraction", [0.9, 1.1])
def test_sphere_below_the_rolling_angle_stays(fraction):
    """Rolling resistance holds up to tan(angle) = rolling friction; above, 5/7 of what is left accelerates."""
    rolling = 0.1
    angle = math.atan(rolling * fraction)
    material = rock(friction=0.5, rolling_friction=rolling)
    sim = clast.Simulation(on_slope(material, angle, height=RADIUS - sunk(material, push=math.cos(angle))), clast.DEM())
    sim.step(math.ceil(0.1 / sim.dt))
    speed, place, time = sim.bodies.velocity[1, 0], sim.bodies.position[1, 0], sim.time
    sim.step(math.ceil(0.2 / sim.dt))
    time = sim.time - time
    if fraction < 1.0:
        # The rolling spring has no dashpot: the sphere swings about its place, but does not leave it.
        assert abs(sim.bodies.position[1, 0] - place) < 1e-3 * RADIUS
    else:
        expected = 5.0 / 7.0 * G * (math.sin(angle) - rolling * math.cos(angle))
        assert (sim.bodies.velocity[1, 0] - speed) / time == pytest.approx(expected, rel=2e-2)


@pytest.mark.parametrize("young", [1e7, 1e9])
def test_a_soft_spring_of_the_linear_law_has_a_rolling_spring_as_soft(young):
    """Young's modulus, which a stiffness by number makes idle, must not make the rolling spring one that steps cannot follow: its couple
    turned over in each of them, and the ball crept for ever."""
    stone = clast.Material(density=2500.0, young=young, friction=0.5, rolling_friction=0.05, stiffness=20.0)
    scene = clast.Scene()
    scene.add(clast.Plane(), material=stone)
    scene.add(clast.Sphere(0.001), position=(0, 0, 0.000999), velocity=(0.02, 0, 0), material=stone)
    sim = clast.Simulation(scene, clast.DEM(law="linear"))
    sim.run(until=0.3, progress=False)
    rolled = sim.bodies.position[1, 0]
    assert 2e-4 < rolled < 4e-4
    sim.step(10)
    limit = 0.05 * 0.001 * sim.bodies.mass[1] * 9.81
    assert abs(sim.contacts().couple[0, 1]) < 1e-3 * limit and abs(sim.bodies.spin[1, 1]) < 1e-4
    assert sim.bodies.position[1, 0] == pytest.approx(rolled, rel=1e-6)


def test_wall_force_is_the_weight_at_rest():
    from clast import measure

    random = np.random.default_rng(5)
    material = rock(restitution=0.2)
    scene = clast.Scene(gravity=(0, 0, -G))
    floor = scene.add(clast.Plane(), material=material)[0]
    place = np.array([(0.03 * k, 0.0, RADIUS + 1e-3) for k in range(5)])
    scene.add(clast.Sphere(RADIUS), position=place, scale=random.uniform(0.5, 1.0, 5), material=material)
    scene.add(SLED, position=(0, 0.1, 0.011), material=material)
    sim = clast.Simulation(scene, clast.DEM())
    sim.step(math.ceil(0.5 / sim.dt))
    bodies = sim.bodies
    weight = G * bodies.mass[bodies.motion == 0].sum()
    assert measure.wall_force(sim, floor) == pytest.approx(np.array([0, 0, -weight]), abs=1e-6 * weight)

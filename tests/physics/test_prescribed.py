"""One contact with a prescribed motion in a simulation, against closed forms; and a small ball that friction holds among large ones.

Bodies are so heavy that forces do not change how they move: what they start with goes on.
"""

import math
import threading

import numpy as np
import pytest

import clast
from clast.dem import laws
from clast.dem.sphere_pairs import touch_balls
from clast.kernels import backend

RADIUS, DEPTH, STEP = 0.01, 1e-5, 1e-6
HEAVY = clast.Material(
    density=1e24,
    young=1e7,
    poisson=0.25,
    friction=0.5,
    rolling_friction=0.1,
    spinning_friction=0.05,
)
YOUNG, SHEAR = 1e7 / (2.0 * (1.0 - 0.25**2)), 4e6 / (2.0 * (2.0 - 0.25))
METHOD = clast.DEM(law="hertz", damping="none", twisting="spring")


def contact(wall, velocity=(0.0, 0.0, 0.0), spin=(0.0, 0.0, 0.0), steps=100):
    """Normal force [N], shear force (3,) [N] and couple (3,) [N m] on a ball after `steps`, and the reduced radius [m]; against a wall or another ball."""
    scene = clast.Scene(gravity=(0, 0, 0))
    if wall:
        scene.add(clast.Plane(), material=HEAVY)
    else:
        scene.add(clast.Sphere(RADIUS), position=(0, 0, DEPTH - RADIUS), material=HEAVY)
    scene.add(
        clast.Sphere(RADIUS),
        position=(0, 0, RADIUS if not wall else RADIUS - DEPTH),
        velocity=velocity,
        spin=spin,
        material=HEAVY,
    )
    sim = clast.Simulation(scene, METHOD, dt=STEP)
    sim.step(steps)
    told = sim.contacts()
    assert len(told.gap) == 1
    force, normal = told.force[0], told.normal[0]
    return force @ normal, force - (force @ normal) * normal, told.couple[0], RADIUS if wall else 0.5 * RADIUS


def same(value, expected, rel=1e-10):
    """Whether they are the same, however small; that is, pytest's own allowance of 1e-12 left out."""
    return value == pytest.approx(expected, rel=rel, abs=0.0)


BOTH = pytest.mark.parametrize("wall", [True, False], ids=["wall", "ball"])


@BOTH
def test_sliding(wall):
    speed = 1e-6  # [m/s]; the normal of two balls turns with it by 5e-9, and the gap opens by the square of that
    normal, shear, _, radius = contact(wall, (0.6 * speed, 0.8 * speed, 0.0))
    a = math.sqrt(radius * DEPTH)
    force = 8.0 * SHEAR * a * 100 * STEP * speed
    assert same(normal, 4.0 / 3.0 * YOUNG * a * DEPTH)
    assert same(np.linalg.norm(shear), force)
    assert same(shear[0], -0.6 * force) and same(shear[1], -0.8 * force)
    normal, shear, _, _ = contact(wall, (0.6, 0.8, 0.0), steps=200)
    assert same(np.linalg.norm(shear), 0.5 * normal), "it slides"


@BOTH
def test_rolling(wall):
    """The contact point, in the middle of the overlap, is at rest, and the angle grows by the spin."""
    spin, arm = 1e-5, RADIUS - 0.5 * DEPTH
    normal, shear, couple, radius = contact(wall, (spin * arm, 0.0, 0.0), (0.0, spin, 0.0))
    stiffness = 8.0 * SHEAR * math.sqrt(radius * DEPTH)
    assert np.linalg.norm(shear) < 1e-10 * stiffness * arm * spin * 100 * STEP, "nothing slides"
    assert same(couple[1], -stiffness * radius**2 * 100 * STEP * spin)
    assert max(abs(couple[0]), abs(couple[2])) < 1e-10 * abs(couple[1])
    normal, _, couple, radius = contact(wall, spin=(0.0, 1e3, 0.0), steps=200)
    assert same(couple[1], -0.1 * radius * normal), "the limit"


@BOTH
def test_twisting(wall):
    normal, shear, couple, radius = contact(wall, spin=(0.0, 0.0, 0.02))
    assert np.abs(shear).max() < 1e-10 * normal
    assert same(couple[2], -0.5 * 8.0 * SHEAR * (radius * DEPTH) ** 1.5 * 100 * STEP * 0.02)
    assert np.abs(couple[:2]).max() < 1e-10 * abs(couple[2])
    normal, _, couple, radius = contact(wall, spin=(0.0, 0.0, 1e5), steps=200)
    assert same(couple[2], -0.05 * radius * normal), "the limit"


def turned(axis, angle, vector):
    """A vector (3,) turned about a unit axis by an angle [rad]."""
    axis, vector = np.asarray(axis), np.asarray(vector)
    return (
        math.cos(angle) * vector
        + math.sin(angle) * np.cross(axis, vector)
        + (1.0 - math.cos(angle)) * (axis @ vector) * axis
    )


@pytest.mark.parametrize("slip", [(3e-7, 0.0, 0.0), (0.0, 3e-7, 0.0), (2e-7, 2e-7, 0.0)], ids=["x", "y", "between"])
@pytest.mark.parametrize("axis", [(0.0, 1.0, 0.0), (0.0, 0.0, 1.0)], ids=["across", "along"])
@pytest.mark.parametrize("law", ["hertz", "linear"])
def test_a_pair_that_turns_as_a_whole_keeps_its_force(law, axis, slip, monkeypatch):
    """Two balls of different size turn about an axis across their normal or along it: nothing slides, and the shear force turns with them."""
    monkeypatch.setattr(backend, "PLAIN", [threading.get_ident()])
    mix = laws.Mix(YOUNG, SHEAR, 0.0, 0.3, 1e9, 0.0, math.sqrt(SHEAR / YOUNG))
    axis, spin, steps = np.array(axis), 50.0, 4000
    away = np.array([0.0, 0.0, 0.03 - DEPTH])
    of_both, answer, first = (0.03, 0.01 * 0.02, 1.0), laws.LAWS[law].answer, None
    for k in range(steps + 1):
        angle = 0.5 * math.pi * k / steps
        d = turned(axis, angle, away)
        # In a rigid rotation each point moves by spin x place; of balls, spins times radii are added up. The forces at the start are of no step.
        v, roll, dt = spin * np.cross(axis, d), spin * 0.03 * axis, 0.5 * math.pi / steps / spin if k else 0.0
        _, n, normal, force, slip, _, _ = touch_balls(
            tuple(d), tuple(v), tuple(roll), (slip, ()), of_both, mix, dt, 0.0, answer
        )
        shear = np.array(force) - normal * np.array(n)
        first = shear if first is None else first
        size = np.linalg.norm(first)
        assert same(np.linalg.norm(shear), size)
        assert np.linalg.norm(shear - turned(axis, angle, first)) <= 1e-10 * size


def test_slip_turns_with_its_pair_about_any_axis(monkeypatch):
    """From places before and after each step, as a simulation has them, and the spin about the normal."""
    monkeypatch.setattr(backend, "PLAIN", [threading.get_ident()])
    axis, away, first = np.array([0.48, 0.6, 0.64]), np.array([0.0, 0.0, 0.03]), np.array([2e-7, 3e-7, 0.0])
    slip, step = tuple(first), 2.0 / 1000
    for k in range(1000):
        before, d = turned(axis, k * step, away), turned(axis, (k + 1) * step, away)
        n = d / np.linalg.norm(d)
        slip = laws.swing(slip, tuple(n), tuple(before), 0.5 * step * axis @ n)
    assert np.linalg.norm(np.array(slip) - turned(axis, 2.0, first)) < 1e-10 * np.linalg.norm(first)


def test_slip_turns_with_a_turntable():
    """A ball slides in one direction on a plate, both of which spin about their normal: what it has slid turns with them."""
    scene, spin, rolls, steps = clast.Scene(gravity=(0, 0, 0)), 2000.0, 1e-4, 500
    scene.add(clast.Plane(), material=HEAVY, motion="driven", spin=(0.0, 0.0, spin))
    place = (0.0, 0.0, RADIUS - DEPTH)
    scene.add(clast.Sphere(RADIUS), position=place, spin=(0.0, rolls, spin), material=HEAVY)
    sim = clast.Simulation(scene, METHOD, dt=STEP)
    sim.step(steps)
    # Each step adds one to what the others have become: a geometric sum of rotations.
    step = spin * STEP
    size = 8.0 * SHEAR * math.sqrt(RADIUS * DEPTH) * rolls * (RADIUS - 0.5 * DEPTH) * STEP
    size *= math.sin(0.5 * steps * step) / math.sin(0.5 * step)
    expected = turned((0.0, 0.0, 1.0), 0.5 * (steps - 1) * step, (size, 0.0, 0.0))
    assert np.linalg.norm(sim.contacts().force[0, :2] - expected[:2]) < 1e-10 * size


def wedged(ratio, friction):
    """A small ball, of radius R / ratio, pressed in below the narrowest place between two large ones that are held."""
    stone = clast.Material(density=2500.0, young=1e10, friction=friction, restitution=0.5)
    small, slope = 0.1 / ratio, 0.2  # [m], [rad] of the normals against the horizontal
    reach = 0.1 + small * (1.0 - 1e-3)
    scene = clast.Scene(gravity=(0, 0, -9.81))
    for side in (-1.0, 1.0):
        place = (side * reach * math.cos(slope), 0.0, reach * math.sin(slope))
        scene.add(clast.Sphere(0.1), position=place, material=stone, motion="fixed")
    scene.add(clast.Sphere(small), position=(0.0, 0.0, 0.0), material=stone)
    return clast.Simulation(scene), small


@pytest.mark.parametrize("ratio", [1.0, 3.0, 10.0, 30.0])
def test_friction_holds_a_small_ball_among_large_ones(ratio):
    """Three balls of very different size: velocities that are half a step old must not let a small one creep that friction alone holds (Vyas et al. 2024)."""
    sim, small = wedged(ratio, 0.6)
    sim.step(4000)
    before = sim.bodies.position[2].copy()
    sim.step(4000)
    told, bodies = sim.contacts(), sim.bodies
    assert len(told.gap) == 2
    for force, normal in zip(told.force, told.normal, strict=True):
        shear = np.linalg.norm(force - (force @ normal) * normal)
        assert 0.1 < shear / abs(force @ normal) < 0.3, "by friction, tan(0.2) and a little weight"
    assert np.abs(bodies.position[2] - before).max() < 1e-12 * small
    assert np.abs(bodies.velocity[2]).max() < 1e-12 and small * np.abs(bodies.spin[2]).max() < 1e-12
    sim, small = wedged(ratio, 0.1)
    sim.step(4000)
    assert sim.bodies.position[2, 2] < -0.1 * small, "with less friction than that it falls out"

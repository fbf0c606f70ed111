"""Bodies that touch nothing: free fall and free rotation, and the order of the integrators."""

import math

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import clast
from clast import measure
from clast.kernels.vec import rotation_matrices


def test_free_fall_is_the_exact_parabola():
    gravity = np.array([0.3, -0.2, -9.81])
    start, speed = np.array([0.1, 0.2, 5.0]), np.array([1.0, -2.0, 3.0])
    scene = clast.Scene(gravity=gravity)
    scene.add(clast.Sphere(0.01), position=start, velocity=speed)
    sim = clast.Simulation(scene, clast.DEM(), dt=1e-4)
    sim.step(5000)
    time = 5000 * 1e-4
    exact = start + speed * time + 0.5 * gravity * time**2
    # Rounding grows like the root of the number of steps, at worst like the number itself.
    assert np.abs(sim.bodies.position[0] - exact).max() < 1e-12
    assert np.abs(sim.bodies.velocity[0] - (speed + gravity * time)).max() < 1e-12


def test_a_ball_turns_by_spin_times_time():
    scene = clast.Scene(gravity=(0, 0, 0))
    spin = np.array([30.0, -20.0, 50.0])
    scene.add(clast.Sphere(0.01), spin=spin)
    sim = clast.Simulation(scene, clast.DEM(), dt=1e-4)
    sim.step(10000)
    half = 0.5 * np.linalg.norm(spin)
    exact = np.append(math.cos(half), math.sin(half) * spin / np.linalg.norm(spin))
    found = sim.bodies.orientation[0]
    assert np.abs(found * np.sign(found @ exact) - exact).max() < 1e-11


def oscillator(integrator, steps, periods=3.25):
    """A sphere held down by gravity on a linear spring: position, velocity and energy against the exact ones."""
    mass, stiffness, g, amplitude = 1.0, 1e5, 10.0, 5e-5
    radius = 0.05
    density = mass / (4.0 / 3.0 * math.pi * radius**3)
    rock = clast.Material(density=density, stiffness=stiffness, restitution=1.0, friction=0.0)
    scene = clast.Scene(gravity=(0, 0, -g))
    scene.add(clast.Plane(), material=rock)
    rest = radius - mass * g / stiffness
    scene.add(clast.Sphere(radius), position=(0, 0, rest + amplitude), material=rock)
    omega = math.sqrt(stiffness / mass)
    dt = periods * 2 * math.pi / omega / steps
    sim = clast.Simulation(scene, clast.DEM(law="linear", integrator=integrator), dt=dt)
    sim.step(steps)
    phase = omega * steps * dt
    x = (sim.bodies.position[1, 2] - rest) / amplitude
    v = sim.bodies.velocity[1, 2] / (amplitude * omega)
    return math.hypot(x - math.cos(phase), v + math.sin(phase)), x * x + v * v, (omega * dt) ** 2


@pytest.mark.parametrize(("integrator", "order"), [("verlet", 2), ("symplectic", 1), ("explicit", 1)])
def test_order_of_integrators(integrator, order):
    counts = [2000, 4000, 8000]
    errors = [oscillator(integrator, count)[0] for count in counts]
    orders = np.log2(np.array(errors[:-1]) / errors[1:])
    assert orders == pytest.approx(order, abs=0.05)


def test_explicit_euler_gains_energy_as_it_must():
    _, energy, square = oscillator("explicit", 3000)
    assert energy == pytest.approx((1.0 + square) ** 3000, rel=1e-9)
    assert energy > 1.1
    for integrator in ("verlet", "symplectic"):
        _, energy, square = oscillator(integrator, 3000)
        assert abs(energy - 1.0) < 1.1 * math.sqrt(square)


ROCK = clast.Clump([(0, 0, 0), (0.014, 0, 0), (0.01, 0.011, 0), (0.0, 0.004, 0.012)], [0.01, 0.007, 0.006, 0.008])


def free_rotation(inertia, orientation, spin, time):
    """Orientation and spin (world axes) after a time, by an eighth-order method on Euler's equations in body axes."""
    w, x, y, z = orientation
    turn = np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
            [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
            [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
        ]
    )
    inverse = np.linalg.inv(inertia)

    def rate(_, state):
        matrix, rates = state[:9].reshape(3, 3), state[9:]
        a, b, c = rates
        skew = np.array([[0, -c, b], [c, 0, -a], [-b, a, 0]])
        return np.append((matrix @ skew).ravel(), inverse @ np.cross(inertia @ rates, rates))

    start = np.append(turn.ravel(), turn.T @ spin)
    end = solve_ivp(rate, (0, time), start, method="DOP853", rtol=1e-13, atol=1e-14).y[:, -1]
    matrix = end[:9].reshape(3, 3)
    return matrix, matrix @ end[9:]


def test_torque_free_spin_of_an_uneven_clump():
    spin = np.array([40.0, 3.0, -60.0])
    orientation = np.array([0.5, -0.1, 0.7, 0.3])
    orientation /= np.linalg.norm(orientation)
    scene = clast.Scene(gravity=(0, 0, 0))
    scene.add(ROCK, orientation=orientation, spin=spin)
    sim = clast.Simulation(scene, clast.DEM(), dt=5e-5)
    inertia = scene.molds.inertia[0]
    principal = np.linalg.eigvalsh(inertia)
    assert principal[1] / principal[0] > 1.2
    assert principal[2] / principal[1] > 1.05
    energy, momentum = measure.energy(sim)["rotational"], measure.momentum(sim)[1]
    steps = 10000  # half a second, about six turns, well into the tumbling
    sim.step(steps)
    matrix, final = free_rotation(inertia, orientation, spin, steps * sim.dt)
    assert abs(measure.energy(sim)["rotational"] / energy - 1.0) < 1e-8
    assert np.linalg.norm(measure.momentum(sim)[1] - momentum) < 1e-8 * np.linalg.norm(momentum)
    w, x, y, z = sim.bodies.orientation[0]
    axes = np.array([(1 - 2 * (y * y + z * z), 2 * (x * y + w * z), 2 * (x * z - w * y))])
    assert np.abs(axes - matrix[:, 0]).max() < 1e-8
    assert np.abs(sim.bodies.spin[0] - final).max() < 1e-8 * np.linalg.norm(spin)


@pytest.mark.parametrize("turn", [3.0, 30.0, 300.0, 3e4])
def test_what_turns_many_times_in_a_step_keeps_its_energy(turn):
    """turn [rad]: in a step. Within the 60 steps of a shot the energy grew to many times what it was, and contacts handed it on."""
    scene = clast.Scene(gravity=(0, 0, 0))
    uneven = clast.Clump([(-0.005, 0, 0), (0.005, 0, 0), (0, 0.004, 0)], [0.005, 0.005, 0.004])
    spin = turn / 1e-3 * np.array([(0.6, 0.8, 0.0), (0.0, 0.6, 0.8), (0.0, 0.1, 0.995)])
    scene.add(uneven, position=[(k, 0, 0) for k in range(3)], spin=spin)
    sim = clast.Simulation(scene, clast.Complementarity(), dt=1e-3)

    def momentum_and_energy():
        turned = rotation_matrices(sim.bodies.orientation)
        own = np.einsum("nji,nj->ni", turned, sim.bodies.spin)
        momentum = own @ uneven.inertia
        return np.einsum("nij,nj->ni", turned, momentum), 0.5 * (own * momentum).sum(1)

    momentum, energy = momentum_and_energy()
    for _ in range(60):
        sim.step()
        later, kept = momentum_and_energy()
        assert np.abs(later - momentum).max() < 1e-9 * np.abs(momentum).max()
        assert np.abs(kept / energy - 1.0).max() < 0.02


def test_a_cube_of_spheres_keeps_its_axis():
    corners = np.array([(x, y, z) for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)], float)
    scene = clast.Scene(gravity=(0, 0, 0))
    spin = np.array([20.0, 35.0, -12.0])
    scene.add(clast.Clump(0.01 * corners, np.full(8, 0.011)), spin=spin)
    sim = clast.Simulation(scene, clast.DEM(), dt=5e-5)
    sim.step(10000)
    half = 0.5 * np.linalg.norm(spin) * 0.5
    exact = np.append(math.cos(half), math.sin(half) * spin / np.linalg.norm(spin))
    found = sim.bodies.orientation[0]
    assert 2.0 * np.linalg.norm(found * np.sign(found @ exact) - exact) < 1e-8  # [rad]

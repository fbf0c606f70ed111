"""Hard contacts of spheres against closed forms: flight, impacts, weight, energy, momentum, walls that move."""

import json
import math
import re

import numpy as np
import pytest

import clast
from clast import measure, view

G = 9.81
SOLVERS = ("apgd", "barzilai-borwein", "gauss-seidel", "jacobi")
RADIUS = 0.1


def one_ball(
    *, velocity=(0, 0, 0), spin=(0, 0, 0), height=0.0, gravity=(0, 0, -G), dt=5e-3, normal=(0, 0, 1), **material
):
    """Simulation of a ball of radius 0.1 m at this height [m] over a plane; the ball is body 1."""
    options = {name: material.pop(name) for name in ("solver", "coulomb", "tolerance", "warm") if name in material}
    stuff = clast.Material(**{"friction": 0.3, "restitution": 0.0} | material)
    scene = clast.Scene(gravity=gravity)
    scene.add(clast.Plane(normal), material=stuff)
    place = (RADIUS + height) * np.array(normal, float)
    scene.add(clast.Sphere(RADIUS), position=place, velocity=velocity, spin=spin, material=stuff)
    return clast.Simulation(scene, clast.Complementarity(**options), dt=dt)


def packed(count=60, at=None, **options):
    """Balls that fall into a box without a lid, or lie where the bodies `at` do; bodies 0 to 4 are its floor and walls."""
    stuff = clast.Material(density=2500, friction=options.pop("friction", 0.5), restitution=0.0)
    scene = clast.Scene()
    scene.add(clast.Plane(), material=stuff)
    for x, y in ((1, 0), (-1, 0), (0, 1), (0, -1)):
        scene.add(clast.Plane((x, y, 0)), position=(-0.2 * x, -0.2 * y, 0), material=stuff)
    box = ((-0.2, -0.2, 0.0), (0.2, 0.2, 1.2))
    if at is None:
        scene.fill(clast.Sphere(0.05), count=count, box=box, material=stuff, seed=1)
    else:
        scene.add(clast.Sphere(0.05), position=at.position[5:], orientation=at.orientation[5:], material=stuff)
    return clast.Simulation(scene, clast.Complementarity(**options), dt=5e-3)


def test_free_flight_is_exact():
    sim = one_ball(height=3.0, velocity=(1.0, 0.0, 2.0))
    sim.step(60)
    t = sim.time
    np.testing.assert_allclose(sim.bodies.velocity[1], (1.0, 0.0, 2.0 - G * t), rtol=0, atol=1e-12)
    place = (t, 0.0, RADIUS + 3.0 + 2.0 * t - 0.5 * G * t * t)
    np.testing.assert_allclose(sim.bodies.position[1], place, rtol=0, atol=1e-12)


def bounce(restitutions, dt, height=0.5):
    """Of balls side by side: rebound speed over restitution times impact speed; time until rest over the closed form; largest rise of energy."""
    scene, e = clast.Scene(), np.array(restitutions)
    scene.add(clast.Plane(), material=clast.Material(friction=0.3, restitution=1.0))
    for k, restitution in enumerate(restitutions):
        stuff = clast.Material(friction=0.3, restitution=restitution**2)  # of two surfaces it is the geometric mean
        scene.add(clast.Sphere(RADIUS), position=(4.0 * k * RADIUS, 0.0, RADIUS + height), material=stuff)
    sim = clast.Simulation(scene, clast.Complementarity(), dt=dt)
    impact = math.sqrt(2.0 * G * height)
    whole = impact / G * (1.0 + e) / (1.0 - e)
    first, last, energy = np.zeros(len(e)), np.zeros(len(e)), []
    for _ in range(math.ceil(1.3 * whole.max() / dt)):
        sim.step()
        bodies = sim.bodies
        speed, above = bodies.velocity[1:, 2], bodies.position[1:, 2] - RADIUS
        first = np.where(first > 0.0, first, np.maximum(speed, 0.0) / (e * impact))
        last[(np.abs(speed) > 1e-3) | (above > 1e-6)] = sim.time
        energy.append(0.5 * speed**2 + G * above)
    return first, last / whole, np.diff(energy, axis=0).max(0) / energy[0]


def test_bouncing_ball_comes_to_rest_when_it_should():
    """Infinitely many bounces in a finite time; those slower than the threshold, twice g dt, are not resolved."""
    coarse, fine = bounce([0.5], 5e-3), bounce([0.5, 0.3, 0.8], 1e-3)
    for first, last, rise, most in zip(*fine, (0.01, 0.01, 0.02), strict=True):
        assert abs(first - 1.0) < 0.015
        assert abs(last - 1.0) < most
        assert rise < 1e-9
    assert abs(fine[0][0] - 1.0) < 0.01
    assert abs(fine[1][0] - 1.0) < abs(coarse[1][0] - 1.0)
    assert coarse[2] < 1e-9


def test_a_ball_that_bounces_well():
    first, last, rise = bounce([0.9], 2e-3)
    assert abs(first - 1.0) < 0.015
    assert abs(last - 1.0) < 0.04
    assert rise < 1e-9


def test_slow_impacts_do_not_rebound():
    sim = one_ball(height=1e-4, velocity=(0, 0, -0.05), restitution=0.9)  # threshold 0.098 m/s
    sim.step(3)
    assert abs(sim.bodies.velocity[1, 2]) < 1e-9


@pytest.mark.parametrize("restitution", [0.0, 0.6, 1.0])
def test_collisions_keep_momentum_and_never_add_energy(restitution):
    stuff = clast.Material(friction=0.4, restitution=restitution)
    scene = clast.Scene(gravity=(0, 0, 0))
    numbers = scene.fill(
        clast.Sphere(0.05), count=40, scale=(0.6, 1.4), box=((-0.4,) * 3, (0.4,) * 3), material=stuff, seed=3
    )
    rng = np.random.default_rng(0)
    bodies = scene.bodies
    scene = clast.Scene(gravity=(0, 0, 0))
    inward = -3.0 * bodies.position + rng.normal(size=(len(numbers), 3))
    scene.add(
        clast.Sphere(0.05), position=bodies.position, scale=bodies.scale, velocity=inward,
        spin=10.0 * rng.normal(size=(len(numbers), 3)), material=stuff,
    )  # fmt: skip
    sim = clast.Simulation(scene, clast.Complementarity(), dt=2e-3)
    linear, angular = measure.momentum(sim)
    energy, touched = [measure.energy(sim)["total"]], 0
    for _ in range(150):
        sim.step()
        energy.append(measure.energy(sim)["total"])
        touched += sim.touching()
    assert touched > 30
    after = measure.momentum(sim)
    scale = float(sim.bodies.mass @ np.linalg.norm(inward, axis=1))
    assert np.abs(after[0] - linear).max() < 1e-13 * scale
    # The two surfaces of a contact are a gap apart, so an impulse along the friction turns the pair a little.
    assert np.abs(after[1] - angular).max() < 1e-12 * scale + 2e-2 * scale * 0.05
    stabilisation = sim.report().solver["stabilisation"]
    assert np.diff(energy).max() <= 1e-9 * energy[0] + stabilisation
    assert energy[-1] < energy[0]


def test_a_chain_of_balls_struck_at_its_end():
    """All contacts are solved at once: the last ball does not leave alone as in Newton's cradle, momentum is shared."""
    stuff = clast.Material(friction=0.0, restitution=1.0)
    scene = clast.Scene(gravity=(0, 0, 0))
    place = [(0.2 * k + (0.0 if k else -0.01), 0, 0) for k in range(4)]
    scene.add(clast.Sphere(RADIUS), position=place, velocity=[(1, 0, 0)] + 3 * [(0, 0, 0)], material=stuff)
    sim = clast.Simulation(scene, clast.Complementarity(tolerance=1e-8, iterations=1000), dt=5e-3)
    sim.step(40)
    velocity = sim.bodies.velocity[:, 0]
    assert abs(velocity.sum() - 1.0) < 1e-12
    assert (velocity**2).sum() <= 1.0 + 1e-7
    assert (np.diff(velocity) > -1e-7).all()  # nobody runs into the next one
    assert velocity[0] < 0.0 < velocity[-1]


@pytest.fixture(scope="module")
def at_rest():
    """Where sixty balls have come to rest in their box."""
    sim = packed(tolerance=2e-5, iterations=500)
    sim.step(400)
    return sim.bodies


@pytest.mark.parametrize("solver", SOLVERS)
def test_walls_bear_the_weight(solver, at_rest):
    sim = packed(at=at_rest, solver=solver, tolerance=2e-5, iterations=500)
    sim.step(80)
    weight = G * sim.bodies.mass[5:].sum()
    total, floor = [], []
    for _ in range(10):
        sim.step()
        contacts = sim.contacts()
        total.append(contacts.force[contacts.pair[:, 0] < 5].sum(0) / weight)
        floor.append(contacts.force[contacts.pair[:, 0] == 0].sum(0)[2] / weight)
    np.testing.assert_allclose(np.mean(total, 0), (0, 0, 1), rtol=0, atol=1e-3)
    assert 0.4 < np.mean(floor) < 1.3  # walls take a part, or press down on what is wedged
    assert sim.report().deepest < 1e-3 * 0.05


def test_undriven_energy_falls_and_the_report_says_what_stabilisation_added():
    sim = packed(40)
    energy, added = [measure.energy(sim)["total"]], [0.0]
    for _ in range(200):
        sim.step()
        energy.append(measure.energy(sim)["total"])
        added.append(sim.stepper.tally["stabilisation"])
    rise = np.diff(energy)
    slack = 1e-3 * abs(energy[0]) / 200  # the tolerance of the solver, in every step
    assert (rise <= np.diff(added) + slack).all()
    assert energy[-1] < 0.6 * energy[0]


def test_a_column_stands():
    """Sixty balls on top of each other; the lowest bears sixty times its weight."""
    stuff = clast.Material(friction=0.5, restitution=0.0)
    scene = clast.Scene()
    scene.add(clast.Plane(), material=stuff)
    scene.add(clast.Sphere(0.05), position=[(0, 0, 0.05 + 0.1 * k) for k in range(60)], material=stuff)
    sim = clast.Simulation(scene, clast.Complementarity(), dt=5e-3)
    start = sim.bodies.position.copy()
    sim.step(200)
    moved = np.abs(sim.bodies.position - start).max()
    assert moved < 1e-3 * 0.1
    assert np.diff(sim.bodies.position[1:, 2]).min() > 0.98 * 0.1
    told = sim.report().solver
    assert told["missed"] <= 5
    assert told["iterations"] < 150 * 200


def test_a_floor_that_rises_lifts_and_one_that_turns_carries():
    stuff = clast.Material(friction=0.5, restitution=0.0)
    scene = clast.Scene()
    scene.add(clast.Plane(), velocity=(0, 0, 0.3), material=stuff)
    scene.add(clast.Sphere(RADIUS), position=(0, 0, RADIUS), material=stuff)
    sim = clast.Simulation(scene, clast.Complementarity(), dt=5e-3)
    sim.step(100)
    assert abs(sim.bodies.position[1, 2] - RADIUS - 0.3 * sim.time) < 1e-6
    scene = clast.Scene()
    scene.add(clast.Plane(), spin=(0, 0, 2.0), material=stuff)
    scene.add(clast.Sphere(RADIUS), position=(0.5, 0, RADIUS), material=stuff)
    sim = clast.Simulation(scene, clast.Complementarity(), dt=1e-3)
    sim.step(200)
    # Seen from the ground, a ball that rolls on a turning table goes round at 2/7 of its speed.
    bodies = sim.bodies
    slip = bodies.velocity[1] + np.cross(bodies.spin[1], (0, 0, -RADIUS)) - np.cross((0, 0, 2.0), bodies.position[1])
    assert np.abs(slip[:2]).max() < 5e-3
    assert abs(np.linalg.norm(bodies.velocity[1]) - 2 / 7 * 2.0 * 0.5) < 5e-3


def test_solvers_that_stop_early_say_so():
    sim = packed(40, iterations=2, tolerance=1e-6)
    sim.step(200)
    told = sim.report().solver
    assert told["missed"] > 50
    assert told["worst"] > 1e-6
    assert "missed the tolerance" in str(sim.report())


def test_the_report_plots_what_the_solver_did(tmp_path):
    packed(40).run(until=0.2, every=0.05, output=tmp_path, progress=False)
    text = view.report(tmp_path, pictures=False).read_text(encoding="utf-8")
    charts = {chart["title"]: chart for chart in json.loads(re.search(r'id="charts">(.*?)</script>', text, re.S)[1])}
    last, worst = (line["values"] for line in charts["Solver: residual"]["lines"])
    assert last[0] == 0.0 and min(last[1:]) > 0.0  # before the first step there is none
    assert all(one <= other for one, other in zip(last, worst)) and worst == sorted(worst)
    stages = {line["name"] for line in charts["Wall time of a step by stage"]["lines"]}
    assert stages == {"motion of bodies", "neighbour list", "contacts", "solver"}
    assert {"Energies", "Contacts", "Coordination number", "Solver: iterations a step"} <= set(charts)
    names = re.findall(r"<th>(.*?)</th>", text.partition("<h2>Numbers</h2>")[2])
    assert "solver residual, the worst [m/s]" in names and not [name for name in names if "_" in name or "." in name]


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"solver": "apdg"}, "apgd"),
        ({"tolerance": 0.0}, "above 0 m/s"),
        ({"tolerance": float("nan")}, "above 0 m/s"),
        ({"iterations": 0}, "1 or more"),
        ({"iterations": 10.0}, "whole number"),
        ({"recovery": -1.0}, "or None"),
        ({"threshold": float("inf")}, "or None"),
        ({"omega": 2.0}, "below 2"),
        ({"omega": 0.5}, "an option of solver='jacobi'"),
        ({"relaxation": 0.0}, "at most 1"),
        ({"broad": "bin"}, "bins"),
    ],
    ids=str,
)
def test_wrong_options(wrong, words):
    with pytest.raises((ValueError, TypeError), match=words):
        clast.Complementarity(**wrong)


def test_wrong_steps():
    ball = clast.Scene(gravity=(0, 0, 0))
    ball.add(clast.Sphere(RADIUS))
    for dt, words in ((0.0, "above 0 s"), (float("nan"), "above 0 s"), ("auto", "needs gravity"), ("fast", "auto")):
        with pytest.raises(ValueError, match=words):
            clast.Simulation(ball, clast.Complementarity(), dt=dt)


def test_bodies_leave_by_an_outlet_while_others_rest_on_the_floor():
    """The floor stands in the last row, which is another one as soon as a ball has gone."""
    stone = clast.Material(friction=0.3, restitution=0.1)
    scene = clast.Scene()
    scene.add(clast.Plane(), material=stone)
    velocity = [(1.0, 0, 0), (0, 0, 0), (1.0, 0, 0), (1.0, 0, 0)]
    scene.add(
        clast.Sphere(0.015), position=[(0.1 * k, 0.1 * k, 0.015) for k in range(4)], velocity=velocity, material=stone
    )
    scene.outlet(box=((0.35, -1, -1), (1, 1, 1)))
    sim = clast.Simulation(scene, clast.Complementarity(), dt=2e-3)
    while sim.removed < 3 and sim.time < 1.0:
        sim.step()  # and nobody asks for contacts meanwhile
    assert sim.removed == 3
    assert sim.contacts().pair.tolist() == [[0, 2]]


def test_the_report_is_the_same_after_a_restart(tmp_path):
    sim = packed()
    sim.step(30)
    told = sim.report().solver
    assert told["residual"] > 0.0
    sim.save(tmp_path / "half.h5")
    assert clast.resume(tmp_path / "half.h5").report().solver == told

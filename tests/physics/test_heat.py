"""Heat that goes through contacts, against closed forms: two balls, a row between a hot and a cold wall, balls with boxes."""

import math

import numpy as np
import pytest

import clast
from clast import DEM, Material, Plane, Polyhedron, Scene, Simulation, Sphere, measure
from clast.files import Trajectory
from clast.tables import FREE
from clast.view import colours
from clast.view.stage import Stage

RADIUS, DEEP, SPRING = 0.01, 1e-4, 1e5  # [m], overlap [m] of all contacts of a row, [N/m]
WARM = Material(density=2500.0, stiffness=SPRING, friction=0.0, conductivity=40.0, heat_capacity=0.02)
BALL = 2500.0 * 4.0 / 3.0 * math.pi * RADIUS**3 * 0.02  # [J/K], heat capacity of a ball
THROUGH, AT_WALL = 80.0 * math.sqrt(0.5 * RADIUS * DEEP), 80.0 * math.sqrt(RADIUS * DEEP)  # [W/K], 2 k sqrt(R d)


def row(count, temperature, walls=(None, None), materials=(WARM, WARM)):
    """Balls in a row between two planes, all pressed together by the same force, at rest."""
    scene = Scene(gravity=(0.0, 0.0, 0.0))
    length = 2.0 * count * RADIUS - (count + 1) * DEEP
    scene.add(Plane(normal=(1, 0, 0)), material=materials[0], temperature=walls[0])
    scene.add(Plane(normal=(-1, 0, 0)), position=(length, 0, 0), material=materials[-1], temperature=walls[1])
    for k in range(count):
        place = (RADIUS - DEEP + k * (2.0 * RADIUS - DEEP), 0.0, 0.0)
        scene.add(Sphere(RADIUS), position=place, material=materials[k % 2], temperature=temperature[k])
    return scene


def test_two_balls_pressed_together_come_to_one_temperature_at_the_rate_of_their_contact():
    sim = Simulation(row(2, (400.0, 300.0)), DEM(law="linear"), dt=1e-6)
    rate, steps = 2.0 * THROUGH / BALL, 2000
    sim.step(steps)
    one, two = sim.bodies.temperature[2:]
    assert 0.2 < math.exp(-rate * sim.time) < 0.8
    assert one - two == pytest.approx(100.0 * (1.0 - rate * sim.dt) ** steps, rel=1e-8)
    assert one - two == pytest.approx(100.0 * math.exp(-rate * sim.time), rel=1e-3)
    assert np.isnan(sim.bodies.temperature[:2]).all()  # walls let nothing out
    assert measure.heat(sim) == pytest.approx(BALL * 700.0, rel=1e-13)
    assert measure.mean_temperature(sim) == pytest.approx(350.0, rel=1e-13)


def test_two_materials_conduct_by_the_harmonic_mean_unless_the_pair_says_otherwise():
    other = Material(density=2500.0, stiffness=SPRING, friction=0.0, conductivity=10.0, heat_capacity=0.04)
    for own, known in ((None, 16.0), (3.0, 3.0)):
        scene = row(2, (400.0, 300.0), materials=(WARM, other))
        if own is not None:
            scene.combine(WARM, other, conductivity=own)
        sim = Simulation(scene, DEM(law="linear"), dt=1e-5)
        flow = 2.0 * known * math.sqrt(0.5 * RADIUS * DEEP) * 100.0
        assert measure.heat_flow(sim, 3) == pytest.approx(flow, rel=1e-9)
        assert measure.heat_flow(sim, 2) == -measure.heat_flow(sim, 3)
        sim.step(1)
        first, second = sim.bodies.temperature[2:]
        assert 400.0 - first == pytest.approx(2.0 * (second - 300.0), rel=1e-9)


def test_a_row_between_a_hot_and_a_cold_wall_has_a_straight_profile_and_the_right_flow():
    sim = Simulation(row(5, (300.0,) * 5, (400.0, 300.0)), DEM(law="linear"), dt=5e-5)
    sim.step(5000)
    flow = 100.0 / (2.0 / AT_WALL + 4.0 / THROUGH)
    assert measure.heat_flow(sim, 0) == pytest.approx(-flow, rel=1e-6)
    assert measure.heat_flow(sim, 1) == pytest.approx(flow, rel=1e-6)
    known = 400.0 - flow / AT_WALL - flow / THROUGH * np.arange(5)
    assert np.abs(sim.bodies.temperature[2:] - known).max() < 1e-4
    assert sim.bodies.temperature[:2].tolist() == [400.0, 300.0]


def mixture():
    """Balls and boxes, hot and cold, that fall onto each other and onto walls that let nothing out."""
    scene, stone = Scene(), Material(young=1e6, conductivity=40.0, heat_capacity=0.5)
    scene.add(Plane(), material=stone)
    for axis in range(2):
        for side in (1.0, -1.0):
            normal = np.zeros(3)
            normal[axis] = side
            scene.add(Plane(normal=normal), position=-0.02 * normal, material=stone)
    shapes = [(Sphere(0.004), Polyhedron.box(0.007, 0.006, 0.008))[k // 2 % 2] for k in range(45)]
    box, start = ((-0.02, -0.02, 0.0), (0.02, 0.02, 0.09)), {"velocity": (0, 0, -0.5)}
    hot = np.where(np.arange(45) % 2, 500.0, 300.0)
    scene.fill(shapes, count=45, box=box, material=stone, temperature=hot, method="lattice", seed=2, **start)
    return scene


def test_balls_and_boxes_exchange_heat_and_none_is_lost(tmp_path):
    sim = Simulation(mixture(), DEM(), dt=5e-5)
    before = measure.heat(sim)
    sim.run(until=0.06, every=0.02, output=tmp_path, progress=False, record=["heat_flow:0"])
    free = sim.bodies.motion == FREE
    warm = sim.bodies.temperature[free]
    assert measure.heat(sim) == pytest.approx(before, rel=1e-13)
    assert warm.min() > 300.0 and warm.max() < 500.0 and np.ptp(warm) < 150.0
    kinds = sim.scene.molds.first[sim.bodies.mold[free]]
    assert all(np.ptp(warm[kinds == kind]) > 0.0 for kind in np.unique(kinds))
    # Half way it goes on with the same bits, and files have what was there.
    half = Simulation(mixture(), DEM(), dt=5e-5)
    half.step(600)
    half.save(tmp_path / "half.h5")
    again = clast.resume(tmp_path / "half.h5")
    again.step(600)
    assert np.array_equal(again.bodies.temperature, sim.bodies.temperature, equal_nan=True)
    with Trajectory(tmp_path / "trajectory.h5") as run:
        assert np.array_equal(run[-1].columns["temperature"], sim.bodies.temperature.astype(np.float32), equal_nan=True)
        series, stage = run.series(), Stage.of(run[-1], run.groups)
    painted, (low, high, title) = colours.paint(stage, "temperature")
    assert (low, high, title) == (float(np.float32(warm.min())), float(np.float32(warm.max())), "temperature [K]")
    assert len(np.unique(painted, axis=0)) > 10
    assert series["heat"] == pytest.approx(before, rel=1e-13)
    assert series["temperature"][-1] == pytest.approx(measure.mean_temperature(sim))
    assert (series["heat_flow:0"] == 0.0).all()


def test_heat_costs_nothing_where_nobody_asks_for_it():
    scene = Scene()
    scene.add(Sphere(RADIUS), material=WARM)
    sim = Simulation(scene)
    assert sim.stepper.heat is None and not hasattr(sim.bodies, "temperature")
    with pytest.raises(ValueError, match="no body has a temperature"):
        measure.heat(sim)


def test_bodies_without_a_temperature_have_that_of_a_room():
    scene = Scene()
    scene.add(Sphere(RADIUS), material=WARM)
    scene.add(Sphere(RADIUS), position=(1, 0, 0), material=WARM, temperature=500.0)
    scene.add(Plane(), position=(0, 0, -1), material=WARM)
    assert scene.bodies.temperature[:2].tolist() == [293.15, 500.0]
    assert np.isnan(scene.bodies.temperature[2])


@pytest.mark.parametrize(
    ("material", "method", "dt", "told"),
    [
        (Material(conductivity=1.0), DEM(), 1e-6, "has no heat capacity; give Material"),
        (Material(heat_capacity=1.0), DEM(), 1e-6, "have no conductivity; give Material"),
        (
            Material(conductivity=1e6, heat_capacity=1e-3),
            DEM(),
            1e-6,
            r"body 0 conducts heat too well for more than 1\.75e-10 s",
        ),
        (WARM, clast.Complementarity(), 1e-6, r"heat is conducted by clast\.DEM"),
    ],
)
def test_what_cannot_be_conducted_is_refused_in_a_line(material, method, dt, told):
    scene = Scene()
    scene.add(Sphere(RADIUS), material=material, temperature=400.0)
    with pytest.raises(ValueError, match=told):
        Simulation(scene, method, dt=dt)


def test_the_step_is_chosen_short_enough_and_too_much_heat_in_a_step_is_told():
    quick = Material(density=2500.0, stiffness=SPRING, friction=0.0, conductivity=1e6, heat_capacity=1e-3)
    sim = Simulation(row(2, (400.0, 300.0), materials=(quick, quick)), DEM(law="linear"))
    assert sim.dt == sim.stepper.heat.longest == pytest.approx(BALL / 0.02 * 1e-3 / (6.0 * 1e6 * RADIUS))
    sim.step(100)
    assert np.ptp(sim.bodies.temperature[2:]) < 1.0
    sim.stepper.dt *= 1e3
    with pytest.raises(clast.errors.Diverged, match=r"body 2 \(Sphere\).*it would go past the temperatures around it"):
        sim.step(1)


def test_numbers_of_heat_are_recorded_whoever_comes_and_goes(tmp_path):
    """An inlet pours into an empty scene, an outlet takes the first body."""
    scene = Scene()
    scene.add(Plane(), material=Material(conductivity=1.0, heat_capacity=500.0), temperature=350.0)
    warm = {"material": Material(conductivity=1.0, heat_capacity=500.0), "temperature": 300.0}
    scene.add(Sphere(0.01), position=(0, 0, 0.01), **warm)
    scene.outlet(box=((-1, -1, -1), (1, 1, 0.02)))
    sim = Simulation(scene, dt=1e-5)
    sim.run(until=4e-4, every=1e-4, output=tmp_path / "out", record=["heat_flow:1", "temperature"], progress=False)
    assert len(sim.bodies.number) == 1
    assert measure.heat_flow(sim, 1) == 0.0
    assert math.isnan(measure.mean_temperature(sim))
    with pytest.raises(ValueError, match="there is no body 7"):
        measure.heat_flow(sim, 7)
    cold = Scene()
    cold.add(Sphere(0.01))
    for name in ("temperature", "heat_flow:0"):
        with pytest.raises(ValueError, match="no body has a temperature"):
            Simulation(cold, dt=1e-5).run(until=1e-4, every=1e-5, output=tmp_path / "cold", record=[name])
        cold = Scene()
        cold.add(Sphere(0.01))

"""The ledger of energies: what was put in, what was lost and by what, against closed forms and against other roads."""

import dataclasses
import math

import numpy as np
import pytest

import clast
from clast import (
    DEM,
    Clump,
    Complementarity,
    Ellipsoid,
    Material,
    MeshWall,
    Oscillation,
    Plane,
    Polyhedron,
    Scene,
    Simulation,
    Sphere,
    Superquadric,
    cli,
    measure,
)
from clast.dem import laws, ledger, powers
from clast.files import Trajectory
from clast.kernels import backend
from clast.run import words
from clast.run.report import Report

STONE = Material(density=2500.0, young=1e8, poisson=0.3, friction=0.4, restitution=0.5)
G = 9.81


def close(balance, part=1e-9, steps=0.01):
    """The energies add up, to this part of the turnover; steps: the part of it that springs may be off by."""
    have = balance.kinetic + balance.potential + balance.elastic
    given = balance.start + balance.work + balance.through + balance.stabilisation
    assert balance.turnover > 0.0
    assert have == pytest.approx(given - balance.dissipated - balance.numerical, abs=part * balance.turnover)
    assert abs(balance.error) <= part * balance.turnover
    assert abs(balance.numerical) <= steps * balance.turnover


def bouncing(law="hertz", dt="auto", **options):
    """A ball that falls on a plane without gravity, from 0.2 mm above, at 0.1 m/s."""
    scene = Scene(gravity=(0.0, 0.0, 0.0))
    scene.add(Plane(), material=STONE)
    scene.add(Sphere(0.01), position=(0.0, 0.0, 0.0102), velocity=(0.0, 0.0, -0.1), material=STONE)
    return Simulation(scene, DEM(law=law, ledger=True, **options), dt=dt)


@pytest.mark.parametrize("law", ["hertz", "linear"])
def test_a_ball_that_bounces_loses_what_its_restitution_says(law):
    dt = 0.1 * bouncing(law).dt
    sim = bouncing(law, dt=dt)
    sim.step(round(0.004 / dt))
    told, mass = sim.ledger(), sim.bodies.mass[1]
    assert sim.bodies.velocity[1, 2] > 0.0
    assert told.start == pytest.approx(0.5 * mass * 0.01, rel=1e-12)
    assert told.normal == pytest.approx((1.0 - 0.5**2) * told.start, rel=2e-3)
    assert abs(told.numerical) < 1e-4 * told.start
    assert told.sliding == told.shear == told.rolling == told.work == 0.0
    close(told)


def test_the_balance_closes_within_a_collision_too():
    sim = bouncing()
    errors = []
    for _ in range(120):
        sim.step()
        errors.append(sim.ledger().error)
    assert sim.ledger().normal > 0.7 * sim.ledger().start
    assert np.abs(errors).max() < 1e-9 * sim.ledger().start


def test_what_springs_do_not_give_back_falls_with_the_square_of_the_step():
    lost = []
    for part in (1.0, 0.25):
        dt = part * bouncing().dt
        sim = bouncing(dt=dt)
        sim.step(round(0.004 / dt))
        lost.append(abs(sim.ledger().numerical) / sim.ledger().start)
    assert lost[0] < 5e-3
    assert lost[1] < lost[0] / 8.0


def block(velocity, floor=None):
    """A flat block on a plane, at rest but for this velocity along x."""
    scene = Scene(gravity=(0.0, 0.0, -G))
    scene.add(Plane(), material=STONE, **(floor or {}))
    scene.add(
        Polyhedron.box(0.04, 0.04, 0.02), position=(0.0, 0.0, 0.00999), velocity=(velocity, 0.0, 0.0), material=STONE
    )
    return Simulation(scene, DEM(ledger=True))


def test_a_block_that_slides_loses_friction_times_weight_times_way():
    sim = block(0.5)
    sim.step(round(0.05 / sim.dt))
    told, way, weight = sim.ledger(), sim.bodies.position[1, 0], sim.bodies.mass[1] * G
    assert sim.bodies.velocity[1, 0] > 0.2
    assert told.sliding == pytest.approx(0.4 * weight * way, rel=1e-3)
    assert told.sliding > 1000.0 * (told.shear + told.normal)
    close(told)
    power = sim.contacts().kept["dissipation"].sum()
    assert power == pytest.approx(0.4 * weight * sim.bodies.velocity[1, 0], rel=2e-3)


def test_a_plate_that_drags_a_block_along_gives_half_of_its_work_to_friction():
    """The block slides back by as much as it is dragged: work m V^2, of which m V^2 / 2 is lost."""
    sim = block(0.0, floor={"motion": "driven", "velocity": (0.3, 0.0, 0.0)})
    sim.step(round(0.15 / sim.dt))
    told, mass = sim.ledger(), sim.bodies.mass[1]
    assert sim.bodies.velocity[1, 0] == pytest.approx(0.3, abs=1e-6)
    assert told.work == pytest.approx(mass * 0.09, rel=1e-3)
    assert told.sliding == pytest.approx(0.5 * mass * 0.09, rel=1e-3)
    close(told)


def grains(method, floor=None, count=60, gravity=(0.0, 0.0, -G), **options):
    scene = Scene(
        gravity=gravity, world=((-0.03, -0.03, -0.1), (0.03, 0.03, 0.5)), periodic=(True, True, False), **options
    )
    grain = Material(density=2500.0, young=1e7, friction=0.5, restitution=0.5, rolling_friction=0.1)
    scene.add(Plane(), material=grain, **(floor or {}))
    box = ((-0.03, -0.03, 0.005), (0.03, 0.03, 0.06))
    scene.fill(Sphere(0.005), count=count, box=box, velocity=(0.0, 0.0, -0.5), material=grain, seed=2)
    return Simulation(scene, method)


def test_the_work_of_a_shaken_floor_is_its_force_times_its_velocity():
    floor = {"drive": Oscillation((0.0005, 0.0, 0.001), 60.0)}
    sim = grains(DEM(ledger=True), floor)
    sim.step()
    before, work, last = sim.ledger().work, 0.0, measure.wall_power(sim, 0)
    for _ in range(400):
        sim.step()
        power = measure.wall_power(sim, 0)
        work += 0.5 * sim.dt * (last + power)
        last = power
    told = sim.ledger()
    assert abs(work) > 1e-5
    assert told.work - before == pytest.approx(work, rel=1e-7)
    assert told.rolling > 0.0
    close(told, 1e-8)


def test_a_turning_drum_loses_what_its_drive_gives():
    """What the drive gives is its torque times its spin; what is lost is that less what the bed has gained."""
    ready = clast.scenes.SCENES["drum"](count=60)
    sim = Simulation(ready.scene, DEM(ledger=True), dt=ready.dt)
    sim.step(5000)
    before, work = sim.ledger(), 0.0
    powers = [sum(measure.wall_power(sim, wall) for wall in range(3))]
    for _ in range(800):
        sim.step()
        powers.append(sum(measure.wall_power(sim, wall) for wall in range(3)))
    work = sim.dt * (sum(powers) - 0.5 * (powers[0] + powers[-1]))
    after = sim.ledger()
    assert after.work - before.work == pytest.approx(work, rel=1e-6)
    have = [told.kinetic + told.potential + told.elastic for told in (before, after)]
    lost = after.dissipated + after.numerical - before.dissipated - before.numerical
    assert lost == pytest.approx(work - (have[1] - have[0]), abs=1e-9 * after.turnover)
    assert abs(after.numerical) < 2e-3 * after.turnover
    close(after)


def test_gravity_along_a_direction_that_repeats_does_work():
    slope = (G * math.sin(0.5), 0.0, -G * math.cos(0.5))
    sim = grains(DEM(ledger=True), gravity=slope)
    sim.step(2000)
    told = sim.ledger()
    assert told.work > 0.2 * told.start
    close(told, 1e-6)


def everything():
    """One of every shape, thrown into a box with a floor of triangles that moves."""
    scene = Scene(gravity=(0.0, 0.0, -G))
    floor = MeshWall([(-0.2, -0.2, 0.0), (0.3, -0.2, 0.0), (0.3, 0.3, 0.0), (-0.2, 0.3, 0.0)], [(0, 1, 2), (0, 2, 3)])
    scene.add(floor, material=STONE, drive=Oscillation((0.002, 0.0, 0.0), 30.0))
    for place, normal in (((0.0, 0.0, 0.0), (1.0, 0.0, 0.0)), ((0.06, 0.0, 0.0), (-1.0, 0.0, 0.0))):
        scene.add(Plane(normal=normal), position=place, material=STONE)
    shapes = (
        Sphere(0.01),
        Ellipsoid(0.012, 0.009, 0.007),
        Polyhedron.box(0.016, 0.014, 0.012),
        Clump([(0.0, 0.0, 0.0), (0.01, 0.0, 0.0)], [0.008, 0.008]),
        Superquadric(0.01, 0.009, 0.008, 0.5, 0.5),
    )
    for k, shape in enumerate(shapes):
        where = [(0.015 + 0.03 * (k % 2), 0.0, 0.014 + 0.024 * k), (0.045 - 0.03 * (k % 2), 0.002, 0.016 + 0.024 * k)]
        scene.add(shape, position=where, velocity=(0.1, 0.02, -0.5), spin=(3.0, 2.0, 1.0), material=STONE)
    return scene


def test_the_balance_closes_for_every_shape():
    sim = Simulation(everything(), DEM(ledger=True))
    sim.step(round(0.12 / sim.dt))
    told = sim.ledger()
    assert told.dissipated > 0.2 * told.start
    assert told.work != 0.0
    close(told)
    assert abs(told.numerical) < 1e-2 * told.turnover


def test_bodies_that_come_and_go_bring_and_take_their_energy():
    scene = Scene(gravity=(0.0, 0.0, -G))
    scene.add(Plane(), material=STONE)
    box = ((-0.03, -0.03, 0.1), (0.03, 0.03, 0.14))
    scene.inlet(Sphere(0.005), box=box, rate=400.0, velocity=(0.5, 0.0, -1.0), material=STONE, seed=1)
    scene.outlet(box=((0.02, -1.0, -0.1), (1.0, 1.0, 0.03)))
    sim = Simulation(scene, DEM(ledger=True))
    sim.step(round(0.25 / sim.dt))
    told, each = sim.ledger(), STONE.density * 4.0 / 3.0 * math.pi * 0.005**3
    assert sim.removed > 5
    entered = sum(sim.poured) * each * (0.5 * 1.25 + 0.12 * G)
    assert 0.2 * entered < told.through < 0.9 * entered
    close(
        told, 1e-4, steps=0.1
    )  # of a few fast impacts at dt="auto"; what springs are off by is 8 % of what little was turned over


def test_a_plastic_law_loses_in_its_spring():
    """Walton and Braun: every impact has the restitution e, and no dashpot."""
    scene = Scene(gravity=(0.0, 0.0, 0.0))
    clay = Material(density=2500.0, young=1e7, stiffness=2e4, friction=0.4, restitution=0.6)
    place = [(0.0, 0.0, 0.0), (0.0, 0.0, 0.0201)]
    scene.add(Sphere(0.01), position=place, velocity=[(0.0, 0.0, 0.15), (0.0, 0.0, -0.15)], material=clay)
    sim = Simulation(scene, DEM(law="walton-braun", ledger=True))
    sim.step(round(0.006 / sim.dt))
    told = sim.ledger()
    assert told.normal == pytest.approx((1.0 - 0.6**2) * told.start, rel=5e-3)
    close(told)


def test_a_shear_that_is_no_spring_loses_by_sliding():
    """Mindlin and Deresiewicz: the slip is the force over a stiffness, which the law keeps."""
    scene = Scene(gravity=(0.0, 0.0, 0.0))
    place = [(0.0, 0.0, 0.0), (0.004, 0.0, 0.0197)]
    velocity = [(0.0, 0.0, 0.15), (0.1, 0.0, -0.15)]
    scene.add(Sphere(0.01), position=place, velocity=velocity, material=STONE)
    sim = Simulation(scene, DEM(shear="mindlin-deresiewicz", ledger=True))
    sim.step(round(0.004 / sim.dt))
    told = sim.ledger()
    assert told.sliding > 0.01 * told.start
    assert abs(told.numerical) < 0.01 * told.turnover
    close(told)


def test_what_contacts_dissipate_adds_up_to_what_was_lost():
    sim = grains(DEM(ledger=True), count=20)
    lost = 0.0
    for _ in range(800):
        sim.step()
        lost += sim.dt * sim.contacts().kept["dissipation"].sum()
    told, now = sim.ledger(), sim.dt * sim.contacts().kept["dissipation"].sum()
    assert told.dissipated > 1e-4
    assert told.dissipated == pytest.approx(lost, abs=now + 1e-9 * lost)


def test_the_ledger_has_the_same_bits_for_threads_margins_and_after_a_restart(tmp_path):
    plain = grains(DEM(ledger=True))
    plain.step(300)
    plain.save(tmp_path / "half.h5")
    plain.step(300)
    told = plain.ledger()
    assert told.dissipated > 0.0
    again = clast.resume(tmp_path / "half.h5")
    again.step(300)
    assert again.ledger() == told
    wide = grains(DEM(ledger=True, margin=0.004))
    wide.step(600)
    assert wide.ledger() == told
    before = backend.numba.get_num_threads()
    try:
        for threads in {1, backend.numba.config.NUMBA_NUM_THREADS}:
            backend.set_threads(threads)
            again = grains(DEM(ledger=True))
            again.step(600)
            assert again.ledger() == told
    finally:
        backend.set_threads(before)


def test_a_ledger_changes_no_more_than_the_rounding_of_the_motion():
    """The compiler fuses products and sums of a law otherwise where more is asked of it."""
    one, two = grains(DEM()), grains(DEM(ledger=True))
    one.step(300)
    two.step(300)
    assert two.ledger().dissipated > 0.01 * two.ledger().kinetic
    for name, size in (("position", 1e-3), ("velocity", 1.0), ("spin", 100.0)):
        assert np.abs(getattr(one.bodies, name) - getattr(two.bodies, name)).max() < 1e-9 * size, name


def test_runs_write_the_ledger_and_the_dissipation_of_contacts(tmp_path):
    sim = grains(DEM(ledger=True))
    sim.run(until=0.03, every=0.01, output=tmp_path, progress=False, record=["dissipation"])
    told = sim.ledger()
    with Trajectory(tmp_path / "trajectory.h5") as run:
        series, last = run.series(), run[len(run) - 1]
        power = last.contacts["dissipation"]
    assert series["ledger_normal"][-1] == told.normal
    assert series["ledger_error"][-1] == told.error
    found = sim.contacts().kept["dissipation"]
    assert found.any()
    assert power == pytest.approx(found, rel=1e-6, abs=1e-30)
    report = sim.report()
    assert report.ledger == told.as_dict()
    assert "turned over" in str(report)
    assert "lost: sliding" in str(told)


def test_the_command_line_keeps_a_ledger_where_it_is_to_be_recorded(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    words = ["run", "drum", "--count", "60", "--until", "0.004", "--every", "0.002", "--quiet", "--record", "ledger"]
    assert cli.answer([*words, "--output", "out"]) == 0
    with Trajectory(tmp_path / "out" / "trajectory.h5") as run:
        series = run.series()
    assert {"ledger_work", "ledger_sliding", "ledger_error"} <= set(series)


# Hard contacts.


def hard(scene, dt=1e-3, **options):
    return Simulation(scene, Complementarity(ledger=True, **options), dt=dt)


def test_a_hard_ball_loses_by_impact_what_its_restitution_says():
    """Without gravity, so that one step is one impact."""
    scene = Scene(gravity=(0.0, 0.0, 0.0))
    scene.add(Plane(), material=STONE)
    scene.add(Sphere(0.01), position=(0.0, 0.0, 0.0145), velocity=(0.0, 0.0, -1.0), material=STONE)
    sim = hard(scene, threshold=0.01)
    sim.step(20)
    told = sim.ledger()
    assert sim.bodies.velocity[1, 2] == pytest.approx(0.5, rel=1e-6)
    assert told.normal == pytest.approx((1.0 - 0.5**2) * told.start, rel=1e-6)
    assert told.sliding == pytest.approx(0.0, abs=1e-12 * told.start)
    assert told.numerical == told.work == 0.0
    close(told, 1e-12)


def test_a_hard_block_that_slides_loses_friction_times_weight_times_way():
    scene = Scene(gravity=(0.0, 0.0, -G))
    scene.add(Plane(), material=STONE)
    box = Polyhedron.box(0.04, 0.04, 0.02)
    scene.add(box, position=(0.0, 0.0, 0.01), velocity=(0.5, 0.0, 0.0), material=STONE)
    sim = hard(scene, coulomb=True, tolerance=1e-9, iterations=2000)
    sim.step(50)
    told, mass = sim.ledger(), sim.bodies.mass[1]
    # Places are those of the velocities at the ends of steps, friction acts at their means.
    slid = 0.5 * mass * (0.5**2 - (0.5 - 0.4 * G * 0.05) ** 2)
    assert told.sliding == pytest.approx(slid, rel=1e-4)
    assert told.sliding == pytest.approx(0.4 * mass * G * sim.bodies.position[1, 0], rel=1e-2)
    close(told, 1e-10)


def test_a_plate_that_drags_a_hard_block_along_gives_half_of_its_work_to_friction():
    scene = Scene(gravity=(0.0, 0.0, -G))
    scene.add(Plane(), material=STONE, motion="driven", velocity=(0.3, 0.0, 0.0))
    scene.add(Polyhedron.box(0.04, 0.04, 0.02), position=(0.0, 0.0, 0.01), material=STONE)
    sim = hard(scene, coulomb=True, tolerance=1e-9, iterations=2000)
    sim.step(120)
    told, mass = sim.ledger(), sim.bodies.mass[1]
    assert sim.bodies.velocity[1, 0] == pytest.approx(0.3, rel=1e-6)
    assert told.work == pytest.approx(mass * 0.09, rel=1e-4)
    assert told.sliding == pytest.approx(0.5 * mass * 0.09, rel=1e-4)
    close(told, 1e-10)


def hard_drum():
    ready = clast.scenes.SCENES["drum"](count=60)
    return hard(ready.scene)


def test_the_balance_of_hard_contacts_closes_in_a_drum_and_goes_on_after_a_restart(tmp_path):
    sim = hard_drum()
    sim.step(150)
    sim.save(tmp_path / "half.h5")
    before, work = sim.ledger(), 0.0
    for _ in range(100):
        sim.step()
        work += sim.dt * sum(measure.wall_power(sim, wall) for wall in range(3))
    told = sim.ledger()
    close(told, 1e-10, steps=0.02)  # steps of hard contacts are of the first order
    assert told.stabilisation >= 0.0
    assert told.sliding > 0.0
    assert told.normal > 0.0
    # The report takes forces to act where bodies are at the end of a step.
    assert told.work - before.work == pytest.approx(work, rel=0.02)
    again = clast.resume(tmp_path / "half.h5")
    assert again.ledger() == before
    again.step(100)
    assert again.ledger() == told


def test_parting_a_hard_ball_from_the_floor_lifts_it():
    scene = Scene(gravity=(0.0, 0.0, -G))
    scene.add(Plane(), material=STONE)
    scene.add(Sphere(0.01), position=(0.0, 0.0, 0.0096), material=STONE)
    sim = hard(scene)
    sim.step(60)
    told, rise = sim.ledger(), sim.bodies.position[1, 2] - 0.0096
    assert rise > 2e-4
    assert told.stabilisation == pytest.approx(sim.bodies.mass[1] * G * rise, rel=1e-6)
    assert abs(told.numerical) < 1e-6 * told.stabilisation


def test_hard_bodies_that_tumble_close_the_balance():
    scene = Scene(gravity=(0.0, 0.0, -G))
    scene.add(Plane(), material=STONE)
    where = [(0.0, 0.0, 0.05), (0.03, 0.0, 0.06), (0.0, 0.03, 0.07)]
    scene.add(Polyhedron.box(0.02, 0.015, 0.01), position=where, spin=(5.0, 3.0, 2.0), material=STONE)
    sim = hard(scene)
    sim.step(300)
    told = sim.ledger()
    assert told.dissipated > 0.1 * told.start
    close(told, 1e-4, steps=0.05)


def test_what_cannot_be_told_is_refused_in_one_line():
    with pytest.raises(ValueError, match="ledger=True follows the work of integrator='verlet'"):
        DEM(ledger=True, integrator="symplectic")
    sim = grains(DEM(ledger=False))
    with pytest.raises(ValueError, match=r"take clast.DEM\(ledger=True\)"):
        sim.ledger()
    for name, method in (("dissipation", DEM()), ("ledger", DEM(ledger=False))):
        with pytest.raises(ValueError, match=f"record '{name}' needs a ledger; take ledger=True"):
            grains(method).run(until=1.0, progress=False, record=[name])


# Without being asked for.


def both(make, steps):
    """The balance of a simulation by default, and with losses told apart."""
    told = []
    for asked in (None, True):
        sim = make(asked)
        sim.step(steps)
        told.append(sim.ledger())
    one, two = told
    assert two.dissipated > 0.0 and one.normal == one.sliding == 0.0
    have = one.kinetic + one.potential + one.elastic
    assert have == pytest.approx(one.start + one.work + one.through - one.undivided, abs=1e-12 * one.turnover)
    return one, two


def shaken(ledger):
    return grains(DEM(ledger=ledger), {"drive": Oscillation((0.0005, 0.0, 0.001), 60.0)})


def pushed(ledger):
    """Spheres that a driven sphere, and one with a part beside its middle, drive before them."""
    scene = Scene(gravity=(0.0, 0.0, 0.0))
    scene.add(Sphere(0.01), motion="driven", velocity=(0.5, 0.0, 0.0), spin=(0.0, 30.0, 0.0), material=STONE)
    turner = Clump([(0.02, 0.0, 0.0), (0.0, 0.0, 0.0), (-0.02, 0.0, 0.0)], [0.01, 0.011, 0.01])
    scene.add(turner, position=(0.2, 0.0, 0.0), motion="driven", spin=(0.0, 0.0, 20.0), material=STONE)
    place = [(0.0205, 0.001, 0.002), (0.042, 0.0, 0.0), (0.2, 0.0305, 0.0), (0.21, 0.05, 0.001)]
    scene.add(Sphere(0.01), position=place, material=STONE)
    return Simulation(scene, DEM(ledger=ledger))


DRIVEN = {
    "a floor that shakes": (shaken, 500),
    "spheres": (pushed, 3000),
    "triangles": (lambda ledger: Simulation(everything(), DEM(ledger=ledger)), 600),
}


@pytest.mark.parametrize("name", DRIVEN)
def test_by_default_the_work_of_drives_and_what_was_lost_in_all_are_told(name):
    make, steps = DRIVEN[name]
    one, two = both(make, steps)
    assert abs(two.work) > 1e-4 * two.turnover
    assert one.work == pytest.approx(two.work, rel=1e-6)
    assert one.undivided == pytest.approx(two.dissipated + two.numerical, rel=1e-6)


def test_by_default_gravity_along_a_direction_that_repeats_does_work():
    slope = (G * math.sin(0.5), 0.0, -G * math.cos(0.5))
    one, two = both(lambda ledger: grains(DEM(ledger=ledger), gravity=slope), 1500)
    assert two.work > 0.1 * two.start
    assert one.work == pytest.approx(two.work, rel=1e-6)


def passing(ledger):
    scene = Scene(gravity=(0.0, 0.0, -G))
    scene.add(Plane(), material=STONE)
    box = ((-0.03, -0.03, 0.1), (0.03, 0.03, 0.14))
    scene.inlet(Sphere(0.005), box=box, rate=400.0, velocity=(0.5, 0.0, -1.0), material=STONE, seed=1)
    scene.outlet(box=((0.02, -1.0, -0.1), (1.0, 1.0, 0.03)))
    return Simulation(scene, DEM(ledger=ledger))


def test_by_default_bodies_that_come_and_go_bring_and_take_their_energy():
    sim = passing(None)
    steps = round(0.15 / sim.dt)
    one, two = both(passing, steps)
    assert two.through > 1e-3
    assert one.through == pytest.approx(two.through, rel=1e-3), "with what contacts of those that go hold"
    assert one.undivided == pytest.approx(two.dissipated + two.numerical, rel=1e-2)


def test_the_account_by_default_has_the_same_bits_after_a_restart_and_changes_no_bit_of_the_motion(tmp_path):
    sim = shaken(None)
    sim.step(200)
    sim.save(tmp_path / "half.h5")
    sim.step(200)
    again = clast.resume(tmp_path / "half.h5")
    again.step(200)
    assert again.ledger() == sim.ledger()
    assert sim.ledger().work != 0.0
    without = shaken(False)
    for _ in range(400):
        without.step()
    assert np.array_equal(sim.bodies.position, without.bodies.position)
    assert np.array_equal(sim.bodies.spin, without.bodies.spin)


def test_reports_and_series_have_the_account_by_default_or_say_why_not(tmp_path):
    sim = shaken(None)
    sim.run(until=0.01, every=0.005, output=tmp_path, progress=False, record=["ledger"])
    with Trajectory(tmp_path / "trajectory.h5") as run:
        series = run.series()
    told = sim.ledger()
    assert series["ledger_work"][-1] == told.work and series["ledger_undivided"][-1] == told.undivided
    assert "ledger_normal" not in series and "ledger_error" not in series
    report = sim.report()
    assert report.ledger == told.as_dict() and "error" not in report.ledger
    assert "what is missing was lost; ledger=True tells by what" in str(report)
    assert "contacts, not told apart" in str(told) and "error" not in str(told)
    hopping = (
        (DEM(ledger=False), "ledger=False"),
        (DEM(integrator="symplectic"), "integrator='symplectic'"),
        (Complementarity(sleep="auto"), "bodies sleep"),
    )
    for method, why in hopping:
        none = grains(method)
        none.step()
        assert none.stepper.ledger is None and none.report().ledger == {}
        assert f"no account of energies is kept: {why}" in str(none.report())


def test_hard_contacts_tell_losses_apart_by_default():
    sim = grains(Complementarity())
    sim.step(40)
    told = sim.ledger()
    assert told.normal > 0.0 and told.divided
    close(told, 1e-9, steps=0.1)


@pytest.mark.parametrize("name", ["hertz", "linear"])
def test_springs_at_rest_are_those_of_the_law(name):
    law, mix = DEM(law=name).recipe, (2e7, 8e6, 0.0, 0.3, 0.4, 0.0, 0.7)
    slip = (1e-9, 0.0, 0.0)
    touch = laws.Touch(1e-4, 0.0, (0.0, 0.0, 1.0), (0.0, 0.0, 0.0), slip, 1e-3, 5e-3)
    normal, shear, _ = law.function(touch, laws.Mix(*mix), 1e-300)
    spring, stiffness = law.at_rest(1e-4, 5e-3, laws.Mix(*mix))
    assert spring == pytest.approx(normal, rel=1e-12)
    assert -stiffness * slip[0] == pytest.approx(shear[0], rel=1e-12)


def test_units_of_sums_follow_the_largest_and_stay_where_they_are_good():
    digits, ledge = np.zeros(powers.WIDTH, np.int64), np.full(powers.WIDTH, np.ldexp(1.5, 52 - powers.DIGITS))
    top = np.full(powers.WIDTH, 3.0)
    assert powers.choose_units(top, digits, ledge)
    assert (digits == 2 + powers.ROOM).all()
    for factor in (1.0, 15.0, 0.2):
        assert not powers.choose_units(factor * top, digits, ledge)
    assert powers.choose_units(30.0 * top, digits, ledge)
    assert powers.choose_units(1e-3 * top, digits, ledge)
    assert not powers.choose_units(0.0 * top, digits, ledge)


@clast.law(keeps=("grip",))
def held(touch, mix, dt):
    """A spring along the normal that counts steps under a name which shear laws have too."""
    pressed = max(touch.overlap, 0.0)
    return 1e5 * pressed, (0.0, 0.0, 0.0), (0.0, 0.0, 0.0), (touch.kept.grip + 1.0,)


def test_names_in_a_law_of_your_own_are_not_taken_for_those_of_built_in_ones():
    own, shear = DEM(law=held).recipe, DEM(shear="incremental").recipe
    assert own.keeps == shear.keeps == ("grip",)
    assert ledger.built_in(shear) == ("grip",) and ledger.built_in(own) == ()
    assert ledger.may_lose(own) and not ledger.may_lose(shear)


BOND = {"bond_young": 1e7, "bond_shear": 4e6, "bond_size": 0.5, "bond_gap": 1e-5, "bond_viscosity": 0.0}


def bonded(shape, places, strength, viscosity=0.0, dt="auto", **motion):
    """Bodies that are bonded, the first held, the last of them in motion."""
    numbers = BOND | {"bond_strength": strength, "bond_shear_strength": strength, "bond_viscosity": viscosity}
    glued = Material(density=1000.0, young=1e7, friction=0.3, numbers=numbers)
    scene = Scene(gravity=(0.0, 0.0, 0.0))
    scene.add(shape, position=places[0], motion="fixed", material=glued)
    for place in places[1:-1]:
        scene.add(shape, position=place, material=glued)
    scene.add(shape, position=places[-1], material=glued, **motion)
    return Simulation(scene, DEM(law="linear", bonds=True, ledger=True), dt=dt)


R, SECTION, LENGTH = 0.01, math.pi * 0.005**2, 0.02  # of a bond of two balls: A, L
TORN = {
    # What a bond holds when it breaks, s^2 / 2 E A L and in twist s^2 / 4 G A L.
    "pulled": ({"velocity": (0.1, 0.0, 0.0)}, 1e4**2 / (2.0 * 1e7) * SECTION * LENGTH),
    "twisted": ({"spin": (50.0, 0.0, 0.0)}, 1e4**2 / (4.0 * 4e6) * SECTION * LENGTH),
}


@pytest.mark.parametrize("how", TORN)
def test_bonds_lose_what_they_held_when_they_broke(how):
    motion, held = TORN[how]
    sim = bonded(Sphere(R), [(0.0, 0.0, 0.0), (2.0 * R, 0.0, 0.0)], 1e4, dt=2e-7, **motion)
    sim.step()
    whole = []
    while sim.contacts().kept["bond"].any():
        told = sim.ledger()
        whole.append(told.kinetic + told.elastic)
        assert abs(told.bonds) < 1e-3 * held
        sim.step()
    sim.step(20)
    told = sim.ledger()
    assert whole[-1] == pytest.approx(told.start, rel=1e-4), "what is bent or twisted is held"
    assert told.bonds == pytest.approx(held, rel=2e-2)
    assert told.start - told.kinetic == pytest.approx(told.bonds, rel=1e-6)
    assert max(map(abs, (told.normal, told.sliding, told.rolling, told.twisting, told.shear))) < 1e-6 * held
    close(told)


def test_a_beam_that_is_struck_has_all_its_energy_until_it_breaks():
    places = [(2.0 * R * k, 0.0, 0.0) for k in range(5)]
    whole = bonded(Sphere(R), places, 1e6, velocity=(0.0, 0.1, 0.0))
    for _ in range(20):
        whole.step(20)
        told = whole.ledger()
        assert told.kinetic + told.elastic == pytest.approx(told.start, rel=1e-3)
        assert told.elastic == measure.energy(whole)["elastic"]
        close(told)
    damped = bonded(Sphere(R), places, 1e6, viscosity=1e-4, velocity=(0.0, 0.1, 0.0))
    damped.step(400)
    told = damped.ledger()
    assert told.bonds > 0.02 * told.start, "bending is damped"
    close(told)


def test_boxes_that_are_torn_apart_lose_what_their_bond_held():
    box, spin = Polyhedron.box(0.02, 0.02, 0.02), 2.0
    motion = {"velocity": (-0.008 * spin, 0.008 * spin, 0.0), "spin": (0.0, 0.0, spin)}
    sim = bonded(box, [(0.0, 0.0, 0.0), (0.0, 0.0, 0.02 - 1e-6)], 1e3, **motion)
    sim.step(200)
    told = sim.ledger()
    assert not sim.contacts().kept["bond"].any()
    assert told.bonds > 0.0
    assert abs(told.numerical) < 1e-3 * told.turnover
    close(told)


def test_rounding_is_printed_as_nothing_but_in_the_error():
    told = measure.Balance(1.0, 0.9, *[0.0] * 6, *(0.1, 0.0, 0.0, 0.0, -1.6e-22, 0.0, 0.0, 0.0), 3e-15, 1.0)
    assert "twisting" not in str(told) and told.twisting == -1.6e-22
    assert "lost: numerically                 0 J" in str(told)
    assert f"{told.error:.5g} J" in str(told) and told.error != 0.0
    rows = dict(words.rows({"ledger": told.as_dict()}))
    assert rows["lost by twisting [J]"] == 0.0 and rows["lost by normal damping [J]"] == 0.1
    sim = bouncing()
    sim.step(120)
    report = dataclasses.replace(Report.of(sim), ledger=told.as_dict())
    assert "normal damping 0.1" in str(report) and "twisting" not in str(report)


@clast.func
def silent(touch, mix, dt):
    """A spring that does not tell what it holds."""
    return 1e4 * touch.overlap, (0.0, 0.0, 0.0), touch.slip


def test_a_law_that_tells_no_energy_holds_none_and_a_ledger_says_so():
    with pytest.warns(UserWarning, match=r"the law 'silent' tells no energy, .* give clast.law\(energy=...\)"):
        sim = bouncing(silent)
    sim.step(round(0.003 / sim.dt))
    told = sim.ledger()
    assert sim.bodies.position[1, 2] < 0.01, "they touch"
    assert told.elastic == 0.0 < told.kinetic < 0.9 * told.start
    assert told.numerical == pytest.approx(told.start - told.kinetic, rel=1e-9)


@pytest.mark.parametrize("name", ["ledger", "in_step", "bonds", "shear_damping"])
def test_yes_and_no_of_a_method_are_no_text(name):
    with pytest.raises(TypeError, match=f"{name} must be True or False, got 'no'"):
        DEM(**{name: "no"})

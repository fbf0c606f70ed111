"""Joints, springs and motors in motion: energies, closed loops, reactions, limits, and joints among contacts."""

import math

import numpy as np
import pytest

import clast
from clast import Complementarity, Material, Plane, Scene, Simulation, Sphere

WATER = Material(density=1000.0)
GRAVITY = 9.81


def simulate(scene, dt=1e-3, **options):
    return Simulation(scene, Complementarity(**options), dt=dt)


def ball(scene, position, radius=0.1, **options):
    return int(scene.add(Sphere(radius), position=position, material=WATER, **options)[0])


def energy(sim):
    body = sim.bodies
    free = body.motion == 0
    height = body.position @ np.array(sim.scene.gravity)
    turning = body.inertia * (body.spin**2).sum(1)
    return float((0.5 * (body.mass * (body.velocity**2).sum(1) + turning) - body.mass * height)[free].sum())


def pendulum(count):
    """A chain of `count` balls, stretched out sideways: hinged to the world, the rest on ball joints."""
    scene = Scene()
    before = None
    for k in range(count):
        b = ball(scene, (k + 1.0, 0.0, 0.0))
        scene.join(
            before, b, "ball" if before is not None else "hinge", at=(k, 0, 0), **({} if k else {"axis": (0, 1, 0)})
        )
        before = b
    return scene


@pytest.mark.parametrize("count", [1, 2])
def test_energy_of_pendulums_is_kept_better_the_shorter_the_step(count):
    losses = []
    for dt in (1e-2, 5e-3):
        sim = simulate(pendulum(count), dt)
        start, worst = energy(sim), 0.0
        for _ in range(round(0.8 / dt)):
            sim.step()
            worst = max(worst, abs(energy(sim) - start))
            assert sim.violation.max() < 1e-9
        losses.append(worst)
    # The scheme is of fourth order: 16.
    assert losses[0] > 10.0 * losses[1]
    assert losses[0] < 1e-3


def test_a_pendulum_swings_with_its_period():
    """The period for small angles is 2 pi sqrt((r^2 + 0.4 R^2) / (g r))."""
    scene = Scene()
    b = ball(scene, (math.sin(0.01), 0, -math.cos(0.01)))
    scene.join(None, b, "hinge", at=(0, 0, 0), axis=(0, 1, 0))
    sim = simulate(scene, 1e-2)
    period = 2.0 * math.pi * math.sqrt((1.0 + 0.4 * 0.01) / GRAVITY) * (1.0 + 0.01**2 / 16.0)
    steps = round(period / 4.0 / sim.dt)
    sim.step(steps)
    expected = 0.01 * math.cos(2.0 * math.pi * sim.time / period)
    assert sim.bodies.position[0, 0] == pytest.approx(expected, abs=1e-7)


def test_a_closed_loop_stays_closed():
    """Three bars and the world, four hinges: a planar loop demands more than it has freedoms."""
    scene = Scene()
    corners = [(0, 0, 0), (0.3, 0, 1), (1.8, 0, 1.5), (1.5, 0, 0)]
    bars = [ball(scene, np.add(a, b) / 2.0) for a, b in zip(corners, corners[1:], strict=False)]
    chain = [None, *bars, None]
    for a, b, at in zip(chain, chain[1:], corners, strict=False):
        scene.join(a, b, "hinge", at=at, axis=(0, 1, 0))
    sim = simulate(scene, 2e-3)
    start, lowest = energy(sim), 0.0
    for _ in range(300):
        sim.step()
        assert sim.violation.max() < 1e-9
        lowest = min(lowest, sim.bodies.position[1, 2] - 1.25)
    assert abs(energy(sim) - start) < 1e-5 * abs(start)
    assert lowest < -0.1


def test_a_door_shares_its_weight_between_two_hinges():
    scene = Scene()
    door = ball(scene, (0.5, 0, 0))
    for z in (1.0, -1.0):
        scene.join(None, door, "hinge", at=(0, 0, z), axis=(0, 0, 1))
    sim = simulate(scene)
    sim.step(10)
    r, weight = sim.reactions, sim.bodies.mass[0] * GRAVITY
    assert r.force[:, 2] == pytest.approx([weight / 2, weight / 2], rel=1e-5)
    # What the hinges do, together, to the centre of the door: hold it up and let it not turn.
    turning = np.cross(r.point - sim.bodies.position[0], r.force) + r.torque
    assert turning.sum(0) == pytest.approx([0, 0, 0], abs=1e-6)
    assert r.force.sum(0) == pytest.approx([0, 0, weight], abs=1e-6)


def test_a_crank_drives_a_slider_as_geometry_says():
    scene = Scene(gravity=(0, 0, 0))
    crank, rod, slide = ball(scene, (0.5, 0, 0)), ball(scene, (2.0, 0, 0)), ball(scene, (3.0, 0, 0))
    first = scene.join(None, crank, "hinge", at=(0, 0, 0), axis=(0, 1, 0))
    scene.join(crank, rod, "hinge", at=(1, 0, 0), axis=(0, 1, 0))
    scene.join(rod, slide, "ball", at=(3, 0, 0))
    scene.join(None, slide, "slider", axis=(1, 0, 0))
    scene.motor(first, spin=5.0)
    sim = simulate(scene, 2e-3)
    for _ in range(10):
        sim.step(30)
        angle = 5.0 * sim.time
        expected = math.cos(angle) + math.sqrt(4.0 - math.sin(angle) ** 2)
        assert sim.bodies.position[slide, 0] == pytest.approx(expected, abs=1e-9)
        assert sim.reactions.coordinate[first, 0] == pytest.approx(angle, abs=1e-9)
        assert sim.bodies.spin[crank] == pytest.approx([0, 5, 0], abs=1e-9)


def test_the_torque_of_a_motor_lifts_the_pendulum():
    scene = pendulum(1)
    scene.motor(0, angle=lambda t: -0.5 * t * t)
    sim = simulate(scene)
    sim.step(400)
    angle, moment = -0.5 * 0.4**2, sim.bodies.mass[0] * (1.0 + 0.4 * 0.01)
    gravity = -sim.bodies.mass[0] * GRAVITY * math.cos(angle)
    assert sim.reactions.effort[0, 0] == pytest.approx(-moment + gravity, rel=1e-5)


def test_a_given_torque_and_force_accelerate():
    scene = Scene(gravity=(0, 0, 0))
    wheel, cart = ball(scene, (0, 0, 0)), ball(scene, (1, 0, 0))
    hinge = scene.join(None, wheel, "hinge", at=(0, 0, 0), axis=(0, 0, 1))
    rail = scene.join(None, cart, "slider", axis=(0, 1, 0))
    scene.motor(hinge, torque=0.1)
    scene.motor(rail, force=lambda t: 2.0 * t)
    sim = simulate(scene, 2e-3)
    sim.step(250)
    assert sim.bodies.spin[wheel, 2] == pytest.approx(0.1 * 0.5 / sim.bodies.inertia[wheel], rel=1e-9)
    assert sim.bodies.position[cart, 1] == pytest.approx(0.5**3 / 3.0 / sim.bodies.mass[cart], rel=1e-6)


def test_a_weak_motor_gives_what_it_has_and_a_strong_one_what_is_asked():
    for most, expected in ((20.0, -20.0), (120.0, None)):
        scene = pendulum(1)
        scene.motor(0, spin=-1.0, most=most)
        sim = simulate(scene)
        sim.step(100)
        weight = sim.bodies.mass[0] * GRAVITY
        if expected is None:
            assert sim.bodies.spin[0, 1] == pytest.approx(-1.0, abs=1e-5)
            expected = -weight * math.cos(sim.reactions.coordinate[0, 0])
        else:
            assert sim.bodies.spin[0, 1] > 0.0
        assert sim.reactions.effort[0, 0] == pytest.approx(expected, rel=1e-3)


def test_a_limit_stops_a_pendulum_and_holds_it():
    scene = Scene()
    b = ball(scene, (1, 0, 0))
    scene.join(None, b, "hinge", at=(0, 0, 0), axis=(0, 1, 0), limits=(-0.2, 0.5))
    sim = simulate(scene)
    most = 0.0
    for _ in range(60):
        sim.step(10)
        most = max(most, sim.reactions.coordinate[0, 0])
    assert most == pytest.approx(0.5, abs=1e-9)
    assert sim.reactions.coordinate[0, 0] == pytest.approx(0.5, abs=1e-9)
    weight = sim.bodies.mass[0] * GRAVITY
    assert sim.reactions.torque[0] == pytest.approx([0, -weight * math.cos(0.5), 0], abs=1e-6)


def test_a_limit_of_what_turns_and_shifts_sideways_bounds_the_angle():
    scene = Scene(gravity=(0, 0, 0))
    b = ball(scene, (0, 0, 0), spin=(0, 0, 2))
    scene.join(
        None, b, locked=(True, False, False, True, True, False), at=(0, 0, 0), axis=(0, 0, 1), limits=(-0.2, 0.2)
    )
    sim = simulate(scene, 1e-2)
    sim.step(30)
    assert sim.reactions.coordinate[0, 0] == pytest.approx(0.2, abs=1e-9)


def test_a_pendulum_hangs_across_the_periodic_boundary():
    places = []
    for x, options in ((0.02, {"world": ((0, 0, 0), (1, 1, 1)), "periodic": (True, False, False)}), (1.02, {})):
        scene = Scene(**options)
        b = ball(scene, (x, 0.5, 0.5), radius=0.02)
        scene.join(None, b, "ball", at=(0.9, 0.5, 0.6))
        sim = simulate(scene, 5e-3)
        sim.step(60)
        assert sim.violation.max() < 1e-9
        places.append(sim.bodies.position[0])
    assert (places[0] - places[1] + 0.5) % 1.0 == pytest.approx([0.5] * 3, abs=1e-9)


def test_an_outlet_that_takes_all_joined_bodies_is_told_so():
    scene = Scene()
    scene.spring(ball(scene, (0, 0, 0)), ball(scene, (1, 0, 0)), stiffness=1.0)
    scene.outlet(box=((-9, -9, -9), (9, 9, 9)))
    with pytest.raises(ValueError, match="body 0 is gone, but a joint or spring holds it"):
        simulate(scene).step(2)


def test_the_tension_in_a_hanging_chain_is_the_weight_below():
    scene, count = Scene(), 100
    links = scene.add(Sphere(0.01), position=[(0, 0, -0.03 * (k + 1)) for k in range(count)], material=WATER)
    for k, (a, b) in enumerate(zip([None, *links], links, strict=False)):
        scene.join(a, b, "ball", at=(0, 0, -0.03 * k))
    sim = simulate(scene)
    sim.step(20)
    weight = sim.bodies.mass[0] * GRAVITY
    assert sim.reactions.force[:, 2] == pytest.approx(weight * np.arange(count, 0, -1), rel=1e-9)


@pytest.mark.slow
def test_light_links_carry_a_heavy_ball():
    """Ten thousand to one: the links swing like a string under tension, which the group's own steps must follow."""
    scene = Scene()
    links = scene.add(Sphere(0.01), position=[(0.03 * (k + 1), 0, 0) for k in range(20)], material=WATER)
    heavy = scene.add(Sphere(0.2), position=(0.85, 0, 0), material=Material(density=1250.0))
    for k, (a, b) in enumerate(zip([None, *links], [*links, *heavy], strict=True)):
        scene.join(a, b, "ball", at=(0.03 * k, 0, 0))
    sim = simulate(scene)
    assert sim.bodies.mass[-1] / sim.bodies.mass[0] == pytest.approx(1e4)
    start = energy(sim)
    sim.step(300)
    assert sim.violation.max() < 1e-9
    assert abs(energy(sim) - start) < 1e-4


def test_a_spring_and_a_function_of_the_same_pull_alike():
    ends = []
    for options in ({"stiffness": 50.0, "damping": 1.0, "rest": 0.8}, {"force": lambda d, r, t: 50.0 * (d - 0.8) + r}):
        scene = Scene()
        scene.spring(None, ball(scene, (0.3, 0, -1)), from_=(0, 0, 0), **options)
        sim = simulate(scene)
        sim.step(120)
        ends.append(sim.bodies.position[0])
    assert ends[0] == pytest.approx(ends[1], abs=1e-12)
    pull = sim.pulls
    assert np.cross(pull.force[0], sim.bodies.position[0]) == pytest.approx([0, 0, 0], abs=1e-9)


def test_a_spring_without_damper_swings_with_its_frequency():
    scene = Scene(gravity=(0, 0, 0))
    a, b = ball(scene, (0, 0, 0)), ball(scene, (1.1, 0, 0))
    scene.spring(a, b, rest=1.0, stiffness=300.0)
    sim = simulate(scene, 2e-3)
    mass = sim.bodies.mass[0]
    frequency = math.sqrt(2.0 * 300.0 / mass)
    sim.step(250)
    stretch = sim.bodies.position[b, 0] - sim.bodies.position[a, 0] - 1.0
    assert stretch == pytest.approx(0.1 * math.cos(frequency * sim.time), abs=1e-7)


def test_springs_have_their_part_in_the_energy():
    scene = Scene()
    a, b = ball(scene, (0, 0, 0)), ball(scene, (1, 0, 0))
    hinge = scene.join(None, a, "hinge", at=(0, 0, 0.5), axis=(0, 1, 0))
    scene.torsion(hinge, stiffness=40.0, rest=0.5)
    scene.spring(a, b, rest=0.8, stiffness=100.0)
    sim = simulate(scene, 2e-3)
    start = clast.measure.energy(sim)
    assert start["elastic"] == pytest.approx(0.5 * 100.0 * 0.2**2 + 0.5 * 40.0 * 0.5**2)
    sim.step(200)
    later = clast.measure.energy(sim)
    assert abs(later["elastic"] - start["elastic"]) > 0.1
    assert later["total"] == pytest.approx(start["total"], abs=1e-4)


def hard_held(springs, floor=False, **options):
    """A ball of 0.52 kg with springs at a step that is too long for them."""
    smooth = Material(density=1000.0, friction=0.0)
    scene = Scene(gravity=(0, 0, -GRAVITY * floor))
    b = int(scene.add(Sphere(0.05), material=smooth, **options)[0])
    if floor:
        scene.add(Plane(), position=(0, 0, -0.05), material=smooth)
    springs(scene, b)
    return simulate(scene, 5e-3)


def turning(scene, b, **numbers):
    scene.torsion(scene.join(None, b, "hinge", at=(0, 0, 0), axis=(1, 0, 0)), **numbers)


@pytest.mark.parametrize("floor", [False, True])
def test_strong_dampers_and_torsion_springs_do_not_blow_up(floor):
    """With rates of up to ten in a step; a floor makes the step the whole one."""
    sim = hard_held(lambda s, b: s.spring(None, b, from_=(1, 0, 0), damping=1000.0), floor, velocity=(1, 0, 0))
    sim.step(10)
    assert abs(sim.bodies.velocity[0, 0]) < 1e-5
    # It stops within m v / c, and a step at the most where it touches.
    assert sim.bodies.position[0, 0] == pytest.approx(sim.bodies.mass[0] / 1000.0, abs=1e-5 + 5e-3 * floor)
    sim = hard_held(lambda s, b: turning(s, b, stiffness=300.0, rest=0.3), floor)
    sim.step(40)
    limit = 0.3 * math.sqrt(300.0 / sim.bodies.inertia[0])
    assert abs(sim.bodies.spin[0, 0]) <= 1.01 * limit
    sim = hard_held(lambda s, b: turning(s, b, stiffness=25.0, damping=1.0, rest=0.3), floor, spin=(5, 0, 0))
    sim.step(60)  # it closes at 25 / s
    assert sim.reactions.coordinate[0, 0] == pytest.approx(0.3, abs=1e-3)
    assert sim.bodies.spin[0] == pytest.approx([0, 0, 0], abs=1e-2)


def test_a_spring_that_is_too_fast_for_the_step_is_refused_with_the_step_that_would_do():
    with pytest.raises(ValueError, match=r"spring 0 with stiffness 0 and damping 100000 .* take dt <= 0.00012 s"):
        hard_held(lambda s, b: s.spring(None, b, from_=(1, 0, 0), damping=1e5)).step()
    with pytest.raises(ValueError, match=r"spring 0 \(torsion, joint 0\)"):
        hard_held(lambda s, b: turning(s, b, stiffness=1e6)).step()


def test_a_function_too_stiff_for_the_step_ends_in_diverged():
    sim = hard_held(lambda s, b: s.spring(None, b, from_=(0, 0, 1), force=lambda d, r, t: 1e4 * r), velocity=(0, 0, 1))
    with pytest.raises(clast.Diverged, match="body 0 .* function"):
        sim.step(400)


def test_joints_that_cannot_be_closed_are_told():
    scene = Scene()
    b = ball(scene, (0, 0, 0))
    scene.join(None, b, "weld")
    scene.join(None, b, "distance", from_=(0, 0, 1), length=lambda t: 1.0 + 0.1 * t)
    sim = simulate(scene, 1e-3)
    sim.step(5)
    assert 1e-4 < sim.report().solver["open"] < 1e-3
    assert "joints open by at most 0.000" in str(sim.report())
    with pytest.raises(clast.Diverged, match=r"joint [01] .* is open by"):
        sim.step(100)
    sim = simulate(pendulum(2), 1e-2)
    sim.step(20)
    assert sim.report().solver["open"] < 1e-9


def test_joined_balls_lie_on_a_floor():
    """Contacts and joints at once: the floor carries the weight, and joined balls overlap without minding."""
    scene = Scene()
    scene.add(Plane())
    balls = [ball(scene, (0.15 * k, 0, 0.1 + 0.02 * k)) for k in range(4)]
    for a, b in zip(balls, balls[1:], strict=False):
        scene.join(a, b, "ball", at=(0.15 * (a - balls[0]) + 0.075, 0, 0.11 + 0.02 * (a - balls[0])))
    sim = simulate(scene, 2e-3, tolerance=1e-7)
    sim.step(500)
    assert sim.violation.max() < 1e-6
    body = sim.bodies
    assert body.position[1:, 2] == pytest.approx([0.1] * 4, abs=1e-4)
    contacts = sim.contacts()
    assert (contacts.pair[:, 0] == 0).all()
    assert contacts.force[:, 2].sum() == pytest.approx(body.mass[1:].sum() * GRAVITY, rel=1e-3)


def test_a_welded_pair_rebounds_as_one_body():
    """The impulse of the floor is the one that turns both masses round, because the solver sees the joint."""
    elastic = Material(density=1000.0, restitution=0.5)
    scene = Scene(gravity=(0, 0, 0))
    scene.add(Plane(), material=elastic)
    low, high = scene.add(Sphere(0.1), position=[(0, 0, 0.15), (0, 0, 0.35)], velocity=(0, 0, -1), material=elastic)
    scene.join(low, high, "weld")
    sim = simulate(scene, 1e-3, tolerance=1e-8)
    sim.step(100)
    assert sim.bodies.velocity[1:, 2] == pytest.approx([0.5, 0.5], abs=1e-6)
    assert sim.violation.max() < 1e-9


def test_joined_balls_collide_if_asked():
    def apart(collide):
        scene = Scene(gravity=(0, 0, 0))
        a, b = ball(scene, (0, 0, 0), velocity=(1, 0, 0)), ball(scene, (0.3, 0, 0))
        scene.join(a, b, "slider", at=(0, 0, 0), axis=(1, 0, 0), collide=collide)
        sim = simulate(scene)
        sim.step(300)
        return sim.bodies.position[b, 0] - sim.bodies.position[a, 0]

    assert apart(True) > 0.2 - 1e-6
    assert apart(False) == pytest.approx(0.0, abs=1e-9)


def test_a_driven_body_carries_what_hangs_on_it():
    scene = Scene()
    scene.add(Sphere(0.05), motion="driven", drive=clast.Oscillation(amplitude=(0.1, 0, 0), frequency=2.0))
    hanging = ball(scene, (0, 0, -1))
    scene.join(0, hanging, "distance", from_=(0, 0, 0))
    sim = simulate(scene)
    for _ in range(20):
        sim.step(25)
        body = sim.bodies
        assert np.linalg.norm(body.position[1] - body.position[0]) == pytest.approx(1.0, abs=1e-9)


def test_a_run_with_joints_continues_to_the_bit(tmp_path):
    def build():
        scene = pendulum(3)
        scene.add(Plane(), position=(0, 0, -0.6))
        scene.motor(0, spin=math.sin)
        scene.spring(0, 2, stiffness=20.0)
        return scene

    whole = simulate(build(), 2e-3)
    touched = []
    for _ in range(44):
        whole.step(5)
        touched.append(whole.touching())
    assert any(touched[22:])  # a ball comes to the floor in the second half
    half = simulate(build(), 2e-3)
    half.step(110)
    half.save(tmp_path / "half.h5")
    rest = clast.resume(tmp_path / "half.h5", functions={("motor", 0): math.sin})
    rest.step(110)
    for name in ("position", "orientation", "velocity", "spin"):
        assert np.array_equal(getattr(whole.bodies, name), getattr(rest.bodies, name)), name
    assert np.array_equal(whole.reactions.force, rest.reactions.force)

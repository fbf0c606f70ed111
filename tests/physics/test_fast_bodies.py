"""Hard contacts of bodies that go farther in a step than they are large: nothing passes through, and nothing is in the way of what misses."""

import sys
from pathlib import Path

import numba
import numpy as np
import pytest

import clast
from clast import Complementarity, Cylinder, Material, MeshWall, Penetrated, Quad, Scene, Simulation, Sphere
from clast.dvi import long_waves, sweeping
from clast.kernels import backend

sys.path.insert(0, str(Path(__file__).parents[1] / "campaign"))

import attacks

R, DT = 0.005, 1e-3
STONE = Material(density=2600.0, friction=0.3, restitution=0.5)
FLAT = [(-0.1, -0.1, 0), (0.1, -0.1, 0), (0.1, 0.1, 0), (-0.1, 0.1, 0)]


def sheet(kind):
    """A thin wall at z = 0 or a shell around it."""
    if kind == "quad":
        return Quad(FLAT)
    if kind == "mesh":
        return MeshWall(FLAT, [(0, 1, 2), (0, 2, 3)])
    return Cylinder(0.1, 0.4)


@pytest.mark.parametrize("kind", ["quad", "mesh", "shell"])
@pytest.mark.parametrize("speed", [10.0, 100.0])
def test_none_of_twenty_spheres_goes_through_a_thin_wall(kind, speed):
    random = np.random.default_rng(1)
    scene = Scene()
    scene.add(sheet(kind), material=STONE)
    place = random.uniform(-0.03, 0.03, (20, 3))
    toward = np.array([0.0, 0.0, -1.0])
    if kind == "shell":
        place[:, 2] = np.linspace(-0.1, 0.1, 20)
        angle = random.uniform(0.0, 2.0 * np.pi, 20)
        toward = np.column_stack([np.cos(angle), np.sin(angle), np.zeros(20)])
    else:
        place[:, :2] = np.stack(np.meshgrid(np.linspace(-0.08, 0.08, 5), np.linspace(-0.08, 0.08, 4)), -1).reshape(
            -1, 2
        )
        place[:, 2] += 0.05
    scene.add(Sphere(R), position=place, velocity=speed * toward, material=STONE)
    sim = Simulation(scene, Complementarity())
    assert speed * sim.dt > 3.0 * R
    sim.step(10)
    x = sim.bodies.position[1:]
    if kind == "shell":
        # Along a shell a way of several radii is a chord, which ends up to half a radius inside the wall.
        assert (np.hypot(x[:, 0], x[:, 1]) < 0.1 - 0.4 * R).all()
    else:
        assert (x[:, 2] > 0.9 * R).all()


@pytest.mark.parametrize("way", [0.6, 3.0, 10.0])
def test_what_misses_an_edge_is_not_touched(way):
    """Flight beside a finite wall, a tenth of a radius from its edge, from any distance."""
    speed = way * R / DT
    for k in range(2):
        scene = Scene(gravity=(0, 0, 0))
        scene.add(Quad(FLAT), material=STONE)
        start = 0.1 + 0.45 * k * way * R
        body = scene.add(Sphere(R), position=(0.1 + 1.1 * R, 0.0, start), velocity=(0, 0, -speed), material=STONE)
        sim = Simulation(scene, Complementarity(), dt=DT)
        sim.step(round(0.3 / (speed * DT)) + 1)
        assert sim.bodies.velocity[body[0]].tolist() == [0.0, 0.0, -speed]
        assert sim.bodies.position[body[0], 2] == pytest.approx(start - speed * sim.time, abs=1e-12)


@pytest.mark.parametrize("way", [1.0, 3.0, 10.0, 50.0])
def test_an_oblique_impact_has_the_normal_of_the_moment_of_impact(way):
    """Two equal smooth spheres: v' = v - (1 + e) / 2 (v . n) n, with n where they touch and not where the step began."""
    smooth, speed, aside = Material(density=2600.0, friction=0.0, restitution=0.8), way * R / DT, 1.2 * R
    scene = Scene(gravity=(0, 0, 0))
    scene.add(Sphere(R), position=[(0, 0, 0), (0.0503, aside, 0)], velocity=[(speed, 0, 0), (0, 0, 0)], material=smooth)
    sim = Simulation(scene, Complementarity(tolerance=1e-8 * speed, iterations=1000), dt=DT)
    sim.step(round(0.12 / (speed * DT)) + 4)
    n = np.array([np.sqrt(4.0 * R * R - aside * aside), aside, 0.0]) / (2.0 * R)
    wanted = np.array([speed, 0.0, 0.0]) - 0.9 * speed * n[0] * n
    assert sim.bodies.velocity[0] == pytest.approx(wanted, abs=0.01 * speed)
    assert sim.bodies.velocity.sum(0) == pytest.approx([speed, 0.0, 0.0], abs=1e-9 * speed)


def test_those_behind_a_body_that_stops_stop_too():
    """A row of spheres, nearly touching, flies at a thin wall: nobody runs into the one in front."""
    scene = Scene(gravity=(0, 0, 0))
    scene.add(Quad(FLAT), material=STONE)
    height = 0.04 + 2.1 * R * np.arange(8)
    scene.add(
        Sphere(R), position=np.column_stack([0 * height, 0 * height, height]), velocity=(0, 0, -50), material=STONE
    )
    sim = Simulation(scene, Complementarity(), dt=DT)
    for _ in range(8):
        sim.step()
        z = sim.bodies.position[1:, 2]
        assert z[0] > 0.9 * R and (np.diff(z) > 1.8 * R).all()
    assert sim.bodies.velocity[1, 2] > -25.0


def test_an_impact_loses_no_energy_by_being_stopped_short():
    scene = Scene()
    scene.add(Quad(FLAT), material=Material(density=2600.0, friction=0.0, restitution=1.0))
    scene.add(
        Sphere(R), position=(0, 0, 0.05), velocity=(0, 0, -30), material=Material(density=2600.0, restitution=1.0)
    )
    sim = Simulation(scene, Complementarity(tolerance=1e-9), dt=DT)
    sim.step(6)
    z, v = sim.bodies.position[1, 2], sim.bodies.velocity[1, 2]
    assert v > 0.0
    assert v * v + 2.0 * 9.81 * z == pytest.approx(900.0 + 2.0 * 9.81 * 0.05, rel=1e-3)


@pytest.mark.parametrize("speed", [10.0, 1000.0])
def test_a_wall_that_is_driven_fast_pushes_what_is_before_it(speed):
    scene = Scene(gravity=(0, 0, 0))
    scene.add(Quad(FLAT), position=(0, 0, -0.2), velocity=(0, 0, speed), motion="driven", material=STONE)
    scene.add(Sphere(R), position=[(0, 0, 0), (0.05, 0.02, 0.01)], material=STONE)
    sim = Simulation(scene, Complementarity(), dt=DT)
    sim.step(round(0.5 / (speed * DT)) + 2)
    x = sim.bodies.position
    assert (x[1:, 2] > x[0, 2] + 0.9 * R).all()


def test_a_wall_that_cannot_be_followed_is_named():
    """A blade that turns by half a radian in a step and two spheres, one of which it would have to push through the other."""
    scene = Scene(gravity=(0, 0, 0))
    blade = Quad([(0, 0, -0.1), (0.2, 0, -0.1), (0.2, 0, 0.1), (0, 0, 0.1)])
    scene.add(blade, motion="driven", spin=(0, 0, 500), material=STONE)
    angle = np.linspace(0.3, 2.0, 12)
    scene.add(Sphere(R), position=0.1 * np.column_stack([np.cos(angle), np.sin(angle), 0 * angle]), material=STONE)
    sim = Simulation(scene, Complementarity(), dt=DT)
    with pytest.raises(Penetrated, match=r"body \d+ \(Sphere\) and body 0 \(Quad\) at t = .*goes through.*smaller dt"):
        sim.step(8)


def test_a_wall_that_creeps_and_jumps_finds_what_is_before_it():
    """The list is made for a fast wall, which creeps as far as the list goes and is as fast again: a step that no list was made for."""
    jump, ahead = 31, 2e-3

    def drive(time):
        return (0.0, 0.0, 4.0 if time < DT or time > jump * DT else 0.05), (0.0, 0.0, 0.0)

    scene = Scene(gravity=(0, 0, 0))
    scene.add(Quad(FLAT), drive=drive, material=STONE)
    scene.add(Sphere(R), position=(0, 0, 5.5e-3 + ahead + R), material=STONE)
    sim = Simulation(scene, Complementarity(), dt=DT)
    sim.step(jump)
    assert np.ptp(sim.bodies.position[:, 2]) == pytest.approx(R + ahead)
    assert sim.state.since > 20  # steps with the same list
    sim.step()
    assert np.diff(sim.bodies.position[:, 2]) > 0.99 * R


def test_a_checkpoint_of_a_wall_that_has_just_stopped_goes_on(tmp_path):
    """Sliding at 100 m/s it holds a sphere open by friction times its way; now that it stands no list is wide enough for the two."""

    def drive(time):
        return (100.0 if time < DT else 0.0, 0.0, 0.0), (0.0, 0.0, 0.0)

    scene = Scene(gravity=(0, 0, 0))
    scene.add(Quad(FLAT), drive=drive, material=STONE)
    scene.add(Sphere(R), position=(0.05, 0, 0.3 * 100.0 * DT + 1e-5 + R), material=STONE)
    sim = Simulation(scene, Complementarity(), dt=DT)
    sim.step()
    assert sim.stepper.state.history.live.any()
    sim.save(tmp_path / "stopped.h5")
    rest = clast.resume(tmp_path / "stopped.h5", drives={0: drive})
    for each in (sim, rest):
        each.step(3)
    assert bits(sim) == bits(rest)


def test_how_far_a_tilting_plane_is_looked_for_does_not_depend_on_the_age_of_the_list(tmp_path):
    scene = Scene()
    scene.add(clast.Plane(), spin=(0.5, 0, 0), motion="driven", material=STONE)
    scene.add(Sphere(R), position=[(0, 0.03 * k, 0.0051) for k in range(-3, 4)], velocity=(0, 0.2, 0), material=STONE)
    whole = Simulation(scene, Complementarity(), dt=DT)
    whole.step(5)
    whole.save(tmp_path / "half.h5")
    rest = clast.resume(tmp_path / "half.h5")
    for sim in (whole, rest):
        sim.step()
    assert whole.state.since > rest.state.since
    assert whole.stepper.sweep == rest.stepper.sweep
    assert bits(whole) == bits(rest)


def storm(count=8, **options):
    """Spheres that fly about in a box of six thin walls at 80 m/s, 16 radii a step."""
    scene = Scene()
    attacks.enclose(scene, "quads", STONE)
    random = np.random.default_rng(3)
    place = random.permutation([(x, y, z) for x in (-1, 0, 1) for y in (-1, 0, 1) for z in (-1, 0, 1)])[:count] * 0.05
    way = random.normal(size=(count, 3))
    scene.add(Sphere(R), position=place, velocity=80.0 * way / np.linalg.norm(way, axis=1)[:, None], material=STONE)
    return Simulation(scene, Complementarity(**options), dt=DT)


def bits(sim):
    return sim.bodies.position.tobytes() + sim.bodies.velocity.tobytes() + sim.bodies.spin.tobytes()


def test_fast_bodies_repeat_to_the_bit(tmp_path):
    """Whatever the broad phase and where a run was stopped."""
    whole = storm()
    whole.step(18)
    assert (np.abs(whole.bodies.position[6:]) < 0.1).all()
    other = storm(broad="all-pairs")
    other.step(18)
    half = storm()
    half.step(7)
    half.save(tmp_path / "half.h5")
    rest = clast.resume(tmp_path / "half.h5")
    rest.step(11)
    assert bits(whole) == bits(other) == bits(rest)


def swarm(count, every):
    """A block of so many spheres a side on a floor, one of `every` of them fast."""
    scene = Scene()
    scene.add(clast.Plane(), material=STONE)
    grid = np.stack(np.meshgrid(range(count), range(count), range(count // 2), indexing="ij"), -1).reshape(-1, 3)
    place = grid * 2.0 * R + (0, 0, 0.999 * R)
    velocity = np.where((np.arange(len(place)) % every == 7)[:, None], np.array([[3.0, 2.0, 9.0]]), 0.0)
    scene.add(Sphere(R), position=place, velocity=velocity, material=STONE)
    return Simulation(scene, Complementarity(), dt=DT)


def test_the_order_of_memory_goes_on_after_a_restart(tmp_path, monkeypatch):
    """Bodies are sorted anew in step 64, and sums run over their contacts in that order."""
    monkeypatch.setattr(long_waves, "TALL", 0.0)
    whole = swarm(8, 128)
    whole.step(66)
    assert (np.diff(whole.state.bodies.number) < 0).any()
    whole.save(tmp_path / "half.h5")
    rest = clast.resume(tmp_path / "half.h5")
    for sim in (whole, rest):
        sim.step(4)
    assert bits(whole) == bits(rest)


def test_fast_bodies_do_not_depend_on_threads(monkeypatch):
    """Nor do the contacts of those around them, whose sums over chunks run on as many threads as there are."""
    states, shared, before = [], [], numba.get_num_threads()
    monkeypatch.setattr(backend.Pace, "choose", lambda pace: 0)  # all threads that there are
    monkeypatch.setattr(long_waves, "TALL", 0.0)
    monkeypatch.setattr(long_waves, "CELL", 8.0)
    try:
        for threads in (1, 2):
            backend.set_threads(threads)
            sim = swarm(16, 16)
            sim.step(4)
            states.append(bits(sim))
            shared.append(len(sim.stepper.constraints.gap))
    finally:
        backend.set_threads(before)
    assert shared[0] > 4 * 1024  # four chunks of 256 and more are worked off by all threads
    assert states[0] == states[1]


def test_slow_bodies_are_not_followed(monkeypatch):
    """A pile costs nothing more: no way is looked at."""
    scene = Scene()
    scene.add(clast.Plane(), material=STONE)
    scene.fill(Sphere(R), count=30, box=((-0.03, -0.03, 0), (0.03, 0.03, 0.05)), material=STONE, seed=1)
    sim = Simulation(scene, Complementarity())
    sim.step(60)
    monkeypatch.setattr(sweeping, "find_pairs", lambda *_: pytest.fail("followed"))
    sim.step(40)


@pytest.mark.parametrize("room", attacks.ROOMS)
def test_spheres_shot_about_in_a_room_stay_inside(room):
    assert attacks.shoot(7, 1, "hard", ("sphere",), (room,), fastest=200.0, steps=10) == "inside"


def test_clumps_that_turn_many_times_in_a_step_gain_no_energy():
    """At 824 m/s they leave the walls with a hundred radians a step."""
    assert attacks.shoot(1000, 8, "hard", steps=12) == "inside"

"""The same as test_bits, with polyhedra: planes and slips are remembered, and yet nothing changes a bit."""

import numpy as np
import pytest
from roads import differences, on_threads, state
from test_bits import GRAIN, STEEL, WAND, every_kernel_parallel, stir

import clast
from clast import DEM, Compound, Oscillation, Plane, Polyhedron, Scene, Simulation, Sphere
from clast.dem import results
from clast.motion import state as memory
from clast.narrow.dispatch import find_points

STEPS = 700
ROCK = Polyhedron.random(faces=12, seed=3, radius=0.005)
BRICK = Polyhedron.box(0.009, 0.006, 0.004)
ANGLE = Compound(
    [(BRICK, (0, 0, 0)), (Polyhedron.box(0.004, 0.006, 0.008), (0.003, 0, 0.004)), (Sphere(0.003), (-0.004, 0, 0.001))]
)


def busy():
    """Rocks and bricks among spheres and clumps, poured and drained, on a floor that shakes, with a rock that stirs."""
    scene = Scene(world=((-0.05, -0.05, -0.1), (0.05, 0.05, 0.3)), periodic=(True, True, False))
    scene.add(Plane(), material=STEEL, drive=Oscillation((0.0, 0.0, 0.002), 40.0))
    scene.add(ROCK, position=(0.0, 0.03, 0.03), scale=1.5, material=STEEL, motion="driven", drive=stir)
    low, high = (-0.05, -0.05, 0.006), (0.05, 0.05, 0.09)
    scene.fill(ROCK, count=70, box=(low, high), scale=(0.6, 1.2), material=GRAIN, spin=(80.0, 0.0, 20.0), seed=1)
    scene.fill(BRICK, count=70, box=(low, high), material=GRAIN, spin=(0.0, 60.0, 20.0), seed=4)
    scene.fill(ANGLE, count=15, box=(low, high), material=GRAIN, spin=(20.0, 60.0, 0.0), seed=6)
    scene.fill(Sphere(0.004), count=30, box=(low, high), material=GRAIN, seed=2)
    scene.fill(WAND, count=12, box=((-0.05, -0.05, 0.09), (0.05, 0.05, 0.14)), material=GRAIN, spin=(50.0, 0.0, 20.0))
    pour = {"rate": 300.0, "velocity": (0.0, 0.2, -2.0), "material": GRAIN}
    scene.inlet(BRICK, box=((-0.05, -0.05, 0.2), (0.05, 0.05, 0.28)), seed=3, **pour)
    scene.outlet(box=((-0.05, -0.05, -0.01), (-0.03, -0.03, 0.05)))
    return scene


def start(**options):
    return Simulation(busy(), DEM(**options), dt=8e-5)


@pytest.fixture(scope="module")
def plain():
    """The state after all steps, taken in one go."""
    sim = start()
    sim.step(STEPS)
    assert sim.removed > 0
    assert sum(sim.poured) > 10
    contacts = sim.contacts()
    assert {0, 1} <= set(contacts.feature % 4)
    assert np.abs(contacts.slip).max() > 0.0
    assert np.isfinite(sim.bodies.position).all()
    return state(sim)


@pytest.mark.parametrize("options", [{"margin": 3e-3}, {"broad": "all-pairs"}], ids=str)
def test_margin_and_broad_phase(plain, options):
    sim = start(**options)
    sim.step(STEPS)
    assert differences(plain, state(sim)) == []


def test_pairs_that_sleep(plain, monkeypatch):
    sim = start()
    sim.step(100)
    pairs, first = sim.stepper.state.pairs, sim.stepper.state.spheres_count
    asleep = pairs.far[pairs.shape[first:]].sum(1) < pairs.apart
    assert asleep.mean() > 0.1
    assert not asleep.all()
    monkeypatch.setattr(memory.State, "_fall_asleep", lambda *_: None)
    sim = start()
    sim.step(STEPS)
    assert len(sim.stepper.state.pairs.apart) == 0
    assert differences(plain, state(sim)) == []


def test_pairs_that_get_their_points_back_are_looked_at():
    """A body that comes from another process brings what its contacts remember, also of one that opened in that very step."""
    scene = Scene(gravity=(0.0, 0.0, 0.0))
    scene.add(BRICK, position=(0.0, 0.0, 0.0), velocity=(0.0, 0.0, 0.5), material=GRAIN)
    scene.add(BRICK, position=(0.0, 0.0, 0.00399), material=GRAIN)
    sim = Simulation(scene, DEM(), dt=2e-6)
    sim.step(2)
    body = sim.stepper
    kept, held = results.remember(body.state), sim.contacts()
    assert len(held.gap) == 4
    body.state.bodies.position[np.argmax(body.state.bodies.position[:, 2]), 2] += 1.2e-5
    body.state.rebuild(sort=False)
    results.recall(body.state, kept, np.arange(len(body.state.pairs.shape)))
    find_points(body.state, results.reach_of(body.state))
    assert body.state.points.count.sum() == 0


def test_looking_changes_nothing(plain):
    sim = start()
    for _ in range(STEPS // 100):
        sim.step(100)
        sim.contacts()
        sim.report()
        clast.find_contacts(sim.scene)
    assert differences(plain, state(sim)) == []


def test_order_of_memory(plain, monkeypatch):
    rng = np.random.default_rng(1)
    monkeypatch.setattr(memory, "REORDER", 3)
    monkeypatch.setattr(
        memory.State, "sort_bodies", lambda self: rng.permutation(len(self.bodies.number)).astype(np.int32)
    )
    sim = start()
    sim.step(STEPS)
    assert differences(plain, state(sim)) == []


def test_one_thread(plain, monkeypatch):
    every_kernel_parallel(monkeypatch, 3)
    with on_threads(1):
        sim = start()
        sim.step(STEPS)
    assert differences(plain, state(sim)) == []


def test_restart(plain, tmp_path):
    sim = start()
    sim.step(STEPS // 2)
    sim.save(tmp_path / "half.h5")
    number = int(sim.scene.bodies.number[1])
    again = clast.resume(tmp_path / "half.h5", drives={number: stir})
    again.step(STEPS - STEPS // 2)
    assert differences(plain, state(again)) == []


def test_cubes_go_on_to_the_bit_after_an_outlet_took_the_last_body_that_is_not_round(tmp_path):
    """What a body weighs at a contact is known from its inertia in world axes, where some body is not round, or from one number."""
    scene = Scene()
    scene.add(Plane())
    turn = np.random.default_rng(5).normal(size=(8, 4))
    place = [(0.05 * k, 0.0, 0.02) for k in range(8)]
    scene.add(Polyhedron.box(0.02, 0.02, 0.02), position=place, orientation=turn, velocity=(0, 0, -1))
    scene.add(Polyhedron.box(0.01, 0.02, 0.03), position=(-0.5, 0.0, 0.1))
    scene.outlet(box=((-0.6, -0.1, -0.1), (-0.4, 0.1, 0.2)))
    whole = Simulation(scene)
    while len(whole.bodies.mass) > 9:
        whole.step(5)
    whole.save(tmp_path / "half.h5")
    half = clast.resume(tmp_path / "half.h5")
    whole.step(300)
    half.step(300)
    np.testing.assert_array_equal(half.bodies.position, whole.bodies.position)
    np.testing.assert_array_equal(half.bodies.spin, whole.bodies.spin)

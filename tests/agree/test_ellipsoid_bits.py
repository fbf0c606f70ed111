"""The same as test_bits, with ellipsoids: the last normal of a pair is remembered, and yet nothing changes a bit."""

import numba
import numpy as np
import pytest
from roads import differences, state
from test_bits import GRAIN, STEEL, WAND, every_kernel_parallel, stir

import clast
from clast import DEM, Cylinder, Ellipsoid, Oscillation, Plane, Quad, Scene, Simulation, Sphere
from clast.kernels import backend
from clast.motion import state as memory

STEPS = 500
DOWN = (0.0, 0.0, -0.8)  # [m/s]: contacts are there soon
SEED = Ellipsoid(0.0065, 0.004, 0.003)


def busy():
    """Ellipsoids among spheres and clumps, poured and drained, on walls of every kind that shake and turn."""
    scene = Scene(world=((-0.06, -0.06, -0.1), (0.06, 0.06, 0.3)), periodic=(True, True, False))
    scene.add(Plane(), material=STEEL, drive=Oscillation((0.0, 0.0, 0.002), 40.0))
    blade = Quad([(-0.03, 0.0, -0.012), (0.03, 0.0, -0.012), (0.03, 0.0, 0.012), (-0.03, 0.0, 0.012)])
    scene.add(blade, position=(0.05, 0.0, 0.02), material=STEEL, spin=(0.0, 0.0, 40.0))
    scene.add(Cylinder(0.008, 0.05, inside=False), position=(-0.03, -0.03, 0.03), material=STEEL, spin=(30.0, 0.0, 9.0))
    scene.add(SEED, position=(0.0, 0.03, 0.03), scale=1.5, material=STEEL, motion="driven", drive=stir)
    low, high = (-0.06, -0.06, 0.006), (0.06, 0.06, 0.09)
    scene.fill(
        SEED,
        count=170,
        box=(low, high),
        scale=(0.6, 1.2),
        material=GRAIN,
        velocity=DOWN,
        spin=(80.0, 0.0, 20.0),
        seed=1,
    )
    scene.fill(Sphere(0.004), count=30, box=(low, high), material=GRAIN, velocity=DOWN, seed=2)
    scene.fill(WAND, count=12, box=((-0.06, -0.06, 0.09), (0.06, 0.06, 0.13)), material=GRAIN, spin=(50.0, 0.0, 20.0))
    pour = {"rate": 300.0, "velocity": (0.0, 0.2, -2.0), "material": GRAIN}
    scene.inlet(SEED, box=((-0.06, -0.06, 0.2), (0.06, 0.06, 0.28)), seed=3, **pour)
    scene.outlet(box=((-0.06, -0.06, -0.01), (-0.04, -0.04, 0.05)))
    return scene


def start(**options):
    return Simulation(busy(), DEM(**options), dt=1e-4)


@pytest.fixture(scope="module")
def plain():
    """The state after all steps, taken in one go."""
    sim = start()
    sim.step(STEPS)
    assert sim.removed > 0
    assert sum(sim.poured) > 10
    contacts = sim.contacts()
    assert len(contacts.gap) > 20
    assert np.abs(contacts.slip).max() > 0.0
    assert np.isfinite(sim.bodies.position).all()
    return state(sim)


@pytest.mark.parametrize(
    "options",
    [{"margin": 1e-5}, {"broad": "boxes"}, {"margin": 3e-3}, {"broad": "all-pairs"}],
    ids=str,
)
def test_margin_and_broad_phase(plain, options):
    sim = start(**options)
    sim.step(STEPS)
    assert differences(plain, state(sim)) == []


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


@pytest.mark.parametrize("threads", [1, 2])
def test_threads(plain, threads, monkeypatch):
    if threads > numba.config.NUMBA_NUM_THREADS:
        pytest.skip("one core only")
    before = numba.get_num_threads()
    every_kernel_parallel(monkeypatch, 3)
    backend.set_threads(threads)
    try:
        sim = start()
        sim.step(STEPS)
        assert differences(plain, state(sim)) == []
    finally:
        backend.set_threads(before)


@pytest.mark.parametrize("at", [1, 364])
def test_restart(plain, at, tmp_path):
    sim = start()
    sim.step(at)
    sim.save(tmp_path / "checkpoint.h5")
    saved = state(sim)
    again = clast.resume(tmp_path / "checkpoint.h5", drives={3: stir})
    assert differences(saved, state(again)) == []
    again.step(STEPS - at)
    assert differences(plain, state(again)) == []


def test_restart_after_the_last_ellipsoid_has_left(tmp_path):
    """What the memory and the actions of contacts mean depends on the molds, not on the bodies that are left."""

    def fresh():
        scene = Scene()
        scene.add(Plane(), material=GRAIN)
        scene.add(Sphere(0.005), position=[(0.0, 0.0, 0.0049), (0.0099, 0.0, 0.0049)], material=GRAIN)
        scene.add(SEED, position=(0.2, 0.0, 0.1), material=GRAIN)
        scene.outlet(box=((0.1, -0.1, 0.0), (0.3, 0.1, 0.3)))
        return Simulation(scene, dt=1e-4)

    whole = fresh()
    whole.step(90)
    sim = fresh()
    sim.step(40)
    assert sim.removed == 1
    sim.save(tmp_path / "checkpoint.h5")
    sim = clast.resume(tmp_path / "checkpoint.h5")
    sim.step(50)
    assert differences(state(whole), state(sim)) == []


def test_a_long_clump_keeps_its_torque_beside_an_ellipsoid():
    """A wand longer than half a period on a tilted plane: its lever arms are not taken to the nearest image."""

    def torque(ellipsoid):
        scene = Scene(world=((0.0, 0.0, -1.0), (0.1, 0.1, 1.0)), periodic=(True, True, False))
        scene.add(Plane((0.002, 0.0, 1.0)), material=STEEL)
        wand = clast.Clump([(x, 0.0, 0.0) for x in np.linspace(-0.06, 0.06, 33)], [0.004] * 33)
        scene.add(wand, position=(0.05, 0.05, 0.0039), material=STEEL)
        if ellipsoid:
            scene.add(SEED, position=(0.05, 0.05, 0.5), material=STEEL)
        sim = Simulation(scene, dt=1e-5)
        sim.step(1)
        return sim.bodies.torque[1]

    assert np.abs(torque(False)).max() > 0.0
    np.testing.assert_allclose(torque(True), torque(False), rtol=1e-9, atol=1e-12 * np.abs(torque(False)).max())

"""The same as test_bits, with triangulated particles: candidates and slips are remembered, and yet nothing changes a bit."""

import numba
import numpy as np
import pytest
import trimesh
from roads import differences, measure_all_triangles, on_threads, state
from test_bits import GRAIN, STEEL, WAND, every_kernel_parallel

import clast
from clast import DEM, Mesh, Oscillation, Plane, Quad, Scene, Simulation, Sphere
from clast.motion import state as memory
from clast.narrow import mesh_candidates, mesh_slots

STEPS = 300
LUMP = Mesh.random(20, seed=3, radius=0.006, epsilon=3e-4)
RING = trimesh.creation.torus(0.006, 0.002, major_sections=10, minor_sections=6)
RING = Mesh(RING.vertices, RING.faces, epsilon=3e-4)


def busy():
    """Lumps, rings and spheres, poured and drained, on a floor that shakes and a sheet of two triangles."""
    scene = Scene(world=((-0.03, -0.03, -0.1), (0.03, 0.03, 0.3)), periodic=(True, True, False))
    scene.add(Plane(), material=STEEL, drive=Oscillation((0.0, 0.0, 0.001), 40.0))
    scene.add(
        Quad([(-0.01, -0.01, 0.008), (0.01, -0.01, 0.008), (0.01, 0.01, 0.014), (-0.01, 0.01, 0.014)]), material=STEEL
    )
    scene.fill(
        WAND,
        count=3,
        box=((-0.03, -0.03, 0.018), (0.03, 0.03, 0.045)),
        material=GRAIN,
        velocity=(0.1, 0.0, -0.8),
        spin=(90.0, 60.0, 0.0),
        seed=6,
    )
    fill = {"material": GRAIN, "scale": (0.7, 1.2), "velocity": (0.1, 0.0, -0.8)}
    scene.fill(LUMP, count=18, box=((-0.03, -0.03, 0.015), (0.03, 0.03, 0.045)), seed=1, spin=(80.0, 0.0, 20.0), **fill)
    scene.fill(RING, count=8, box=((-0.03, -0.03, 0.045), (0.03, 0.03, 0.065)), seed=4, spin=(0.0, 60.0, 20.0), **fill)
    scene.fill(Sphere(0.004), count=10, box=((-0.03, -0.03, 0.015), (0.03, 0.03, 0.065)), seed=2, **fill)
    scene.inlet(
        LUMP,
        box=((-0.03, -0.03, 0.1), (0.03, 0.03, 0.14)),
        rate=300.0,
        seed=3,
        velocity=(0.0, 0.2, -1.0),
        material=GRAIN,
    )
    scene.outlet(box=((-0.03, -0.03, -0.01), (0.0, 0.0, 0.03)))
    return scene


def start(**options):
    return Simulation(busy(), DEM(penetration="push", **options), dt=1e-4)


@pytest.fixture(scope="module")
def plain():
    """The state after all steps, taken in one go."""
    sim = start()
    sim.step(STEPS)
    assert sim.removed > 0
    assert sum(sim.poured) > 5
    contacts = sim.contacts()
    assert len(contacts.gap) > 5
    assert np.abs(contacts.slip).max() > 0.0
    assert np.isfinite(sim.bodies.position).all()
    return state(sim)


def test_no_contact_is_missed():
    """What the steps remember of triangles that may touch, against a search from scratch."""
    sim, seen = start(), 0
    for _ in range(STEPS // 10):
        sim.step(10)
        known, found = sim.contacts(), clast.find_contacts(sim.scene)
        rows = np.nonzero(found.gap < 0.0)[0]
        assert np.array_equal(known.pair, found.pair[rows])
        assert np.array_equal(known.gap, found.gap[rows])
        seen += len(rows)
    assert seen > 100


@pytest.mark.parametrize("options", [{"margin": 2e-3}, {"broad": "all-pairs"}, {"broad": "spacetree"}], ids=str)
def test_margin_and_broad_phase(plain, options):
    sim = start(**options)
    sim.step(STEPS)
    assert differences(plain, state(sim)) == []


def test_triangles_that_are_not_measured_do_not_touch(plain, monkeypatch):
    """All candidates measured in every step: the same bits."""
    measure_all_triangles(monkeypatch)
    sim = start()
    sim.step(STEPS)
    assert differences(plain, state(sim)) == []


def test_looking_changes_nothing(plain):
    sim = start()
    for _ in range(STEPS // 100):
        sim.step(100)
        sim.contacts()
        sim.report()
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
    every_kernel_parallel(monkeypatch, 3)
    with on_threads(threads):
        sim = start()
        sim.step(STEPS)
    assert differences(plain, state(sim)) == []


def test_restart(plain, tmp_path):
    sim = start()
    sim.step(STEPS // 2)
    sim.save(tmp_path / "half.h5")
    contacts = sim.contacts()
    again = clast.resume(tmp_path / "half.h5")
    for one, two in zip(contacts, again.contacts(), strict=True):
        assert np.array_equal(one, two)
    again.step(STEPS - STEPS // 2)
    assert differences(plain, state(again)) == []


@pytest.mark.parametrize(("tilt", "touch"), [(0.05, True), (0.15, False)])
def test_corners_and_crossings_do_not_depend_on_when_triangles_were_looked_for(tilt, touch):
    """What was looked for last may be a turn of MARGIN ago: features touch only at angles at which they were candidates then."""
    assert np.arccos(mesh_candidates.FACING) - np.arccos(mesh_candidates.FLAT) > mesh_slots.MARGIN
    box = clast.Polyhedron.box(0.01, 0.01, 0.006)
    scene = Scene()
    scene.add(Quad([(-0.1, -0.1, 0.0), (0.1, -0.1, 0.0), (0.1, 0.1, 0.0), (-0.1, 0.1, 0.0)]), material=STEEL)
    turn = (np.cos(0.5 * tilt), 0.0, np.sin(0.5 * tilt), 0.0)
    height = 0.005 * np.sin(tilt) + 0.003 * np.cos(tilt) + 2e-4
    scene.add(Mesh(*box.surface(), epsilon=3e-4), position=(0.03, 0.0, height), orientation=turn, material=GRAIN)
    sim = Simulation(scene, DEM(), dt=2e-5)
    sim.stepper.start()
    found = sim.state.candidates
    features = found.active.second > mesh_candidates.TRIANGLE_BITS
    assert features.any()  # corners and sides are looked at
    assert (found.measured.gap[features] < 0.0).any() == touch

"""Threads, margins, broad phases, the order of memory, stopping and going on: none changes a single bit."""

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import numba
import numpy as np
import pytest
from roads import differences, state

import clast
from clast import DEM, Clump, Cylinder, Material, Oscillation, Plane, Quad, Scene, Simulation, Sphere
from clast.kernels import backend
from clast.motion import state as memory

HEAT = {"conductivity": 40.0, "heat_capacity": 0.5}  # so that it is quick
GRAIN = Material(density=2500.0, young=1e6, friction=0.5, restitution=0.5, rolling_friction=0.1, **HEAT)
STEEL = Material(density=7800.0, young=3e6, friction=0.3, restitution=0.7, **HEAT)
WAND = Clump([(0.0, 0.0, 0.0), (0.007, 0.0, 0.0), (0.01, 0.004, 0.0)], [0.005, 0.004, 0.003])


def stir(time):
    """A drive that is the user's own function."""
    return (0.3 * np.cos(20.0 * time), 0.3 * np.sin(25.0 * time), 0.0), (0.0, 5.0 * np.sin(9.0 * time), 30.0)


def busy():
    """A small scene with everything in it: periodic sides, rolling, clumps, heat, inlet, outlet, walls that shake and turn."""
    scene = Scene(world=((-0.06, -0.06, -0.1), (0.06, 0.06, 0.3)), periodic=(True, True, False))
    scene.add(Plane(), material=STEEL, drive=Oscillation((0.0, 0.0, 0.002), 40.0), temperature=400.0)
    blade = Quad([(-0.03, 0.0, -0.012), (0.03, 0.0, -0.012), (0.03, 0.0, 0.012), (-0.03, 0.0, 0.012)])
    scene.add(blade, position=(0.05, 0.0, 0.02), material=STEEL, spin=(0.0, 0.0, 40.0))
    scene.add(Cylinder(0.008, 0.05, inside=False), position=(-0.03, -0.03, 0.03), material=STEEL, spin=(30.0, 0.0, 9.0))
    scene.add(WAND, position=(0.0, 0.03, 0.03), scale=1.5, material=STEEL, motion="driven", drive=stir)
    scene.fill(
        Sphere(0.004),
        count=110,
        box=((-0.06, -0.06, 0.003), (0.06, 0.06, 0.05)),
        scale=(0.7, 1.8),
        velocity=(0.0, 0.0, -0.5),
        material=GRAIN,
    )
    spinning = {"velocity": (0.0, 0.0, -0.8), "spin": (50.0, 0.0, 20.0)}
    scene.fill(WAND, count=30, box=((-0.06, -0.06, 0.05), (0.06, 0.06, 0.1)), material=GRAIN, **spinning)
    pour = {"rate": 300.0, "velocity": (0.0, 0.2, -2.0), "material": GRAIN}
    scene.inlet(WAND, box=((-0.06, -0.06, 0.2), (0.06, 0.06, 0.28)), seed=3, temperature=250.0, **pour)
    scene.inlet(
        Sphere(0.004), box=((-0.06, -0.06, 0.2), (0.06, 0.06, 0.28)), seed=4, scale=(0.7, 1.8), count=25, **pour
    )
    scene.outlet(box=((-0.06, -0.06, -0.01), (-0.04, -0.04, 0.05)))
    return scene


def start(**options):
    return Simulation(busy(), DEM(**options), dt=1e-4)


STEPS = 500


@pytest.fixture(scope="module")
def plain():
    """The state after all steps, taken in one go."""
    sim = start()
    sim.step(STEPS)
    bodies = sim.bodies
    assert sim.removed > 0
    assert sum(sim.poured) > 20
    assert len(sim.contacts().gap) > 40
    assert np.abs(sim.contacts().slip).max() > 0.0
    assert np.isfinite(bodies.position).all()
    assert len(np.unique(bodies.temperature)) > 60
    return state(sim)


def test_steps_one_by_one(plain):
    sim = start()
    for _ in range(STEPS):
        sim.step(1)
    assert differences(plain, state(sim)) == []


def test_looking_changes_nothing(plain):
    sim = start()
    for _ in range(STEPS // 100):
        sim.step(100)
        sim.contacts()
        sim.report()
        clast.find_contacts(sim.scene)
    assert differences(plain, state(sim)) == []


@pytest.mark.parametrize("margin", [0.0, 1e-4, 3e-3])
def test_margin(plain, margin):
    sim = start(margin=margin)
    sim.step(STEPS)
    assert differences(plain, state(sim)) == []


@pytest.mark.parametrize("side", [0.0, 1e-4])
def test_pairs_that_part_and_meet_again(side):
    """Spheres bounce askew on fixed ones: whether they were asleep in one list, or all lists were new, is not to be seen."""

    # With a dashpot nothing would be left of force and slip when they part.
    elastic = Material(density=2500.0, young=1e6, friction=0.5, restitution=1.0, rolling_friction=0.1)

    def bounce(anew):
        # Across a side of the box too: the fixed ones stand on one end of it, the others on the other.
        scene = Scene(world=((-0.1, -0.1, -0.1), (5.0, 0.1, 0.1)), periodic=(False, side > 0.0, False))
        place = 0.03 * np.arange(150.0)[:, None] * (1.0, 0.0, 0.0) + (0.0, 0.1 * (side > 0.0) - side, 0.0)
        scene.add(Sphere(0.005), position=place, material=elastic, motion="fixed")
        # All at once: in a group none may wake another.
        above = place + np.array([0.001, 0.0005 + 2.0 * side - 0.2 * (side > 0.0), 0.01])
        scene.add(Sphere(0.005), position=above, spin=(30.0, 200.0, 0.0), material=elastic)
        sim, touching = Simulation(scene, DEM(margin=0.01), dt=5e-5), []
        for _ in range(600):
            if anew:
                sim.stepper.rebuild()
            sim.step(1)
            touching.append(sim.stepper.touching())
        assert max(touching) == 150
        assert np.count_nonzero(np.diff(np.sign(touching)) > 0) > 1  # none of them, some, none, and some again
        assert anew or sim.state.rebuilds < 5
        return state(sim)

    assert differences(bounce(False), bounce(True)) == []


def test_broad_phase(plain):
    sim = start(broad="all-pairs")
    sim.step(STEPS)
    assert differences(plain, state(sim)) == []


@pytest.mark.parametrize("often", [1, 10**9])
def test_how_often_memory_is_sorted(plain, often, monkeypatch):
    monkeypatch.setattr(memory, "REORDER", often)
    sim = start()
    sim.step(STEPS)
    assert differences(plain, state(sim)) == []


def test_order_of_memory(plain, monkeypatch):
    """Bodies in any order, another one every few rebuilds."""
    rng = np.random.default_rng(1)
    monkeypatch.setattr(memory, "REORDER", 3)
    monkeypatch.setattr(
        memory.State, "sort_bodies", lambda self: rng.permutation(len(self.bodies.number)).astype(np.int32)
    )
    sim = start()
    sim.step(STEPS)
    assert differences(plain, state(sim)) == []


def every_kernel_parallel(monkeypatch, chunk):
    """Give all threads a share even of the smallest loop."""
    monkeypatch.setattr(
        backend.CPU, "launch", staticmethod(lambda k, count, given: k.loop(count, given) if count else None)
    )
    monkeypatch.setattr(backend.CPU, "chunk", chunk)


@pytest.mark.parametrize("chunk", [3, 256])
@pytest.mark.parametrize("threads", [1, 2])
def test_threads(plain, threads, chunk, monkeypatch):
    if threads > numba.config.NUMBA_NUM_THREADS:
        pytest.skip("one core only")
    before = numba.get_num_threads()
    every_kernel_parallel(monkeypatch, chunk)
    backend.set_threads(threads)
    try:
        sim = start()
        sim.step(STEPS)
        assert differences(plain, state(sim)) == []
    finally:
        backend.set_threads(before)


def digest(everything):
    return hashlib.sha256(repr(sorted(everything.items())).encode()).hexdigest()


def test_another_process_with_one_thread(plain):
    """Nothing depends on hash seeds, on the time or on how many threads there could be."""
    program = "import test_bits as t; s = t.start(); s.step(t.STEPS); print(t.digest(t.state(s)))"
    here = Path(__file__).parent
    path = os.pathsep.join([str(here), str(Path(clast.__file__).parents[1])])  # the same clast, wherever it came from
    surroundings = os.environ | {"NUMBA_NUM_THREADS": "1", "PYTHONHASHSEED": "7", "PYTHONPATH": path}
    done = subprocess.run(
        [sys.executable, "-c", program], env=surroundings, cwd=here, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == digest(plain)


@pytest.mark.parametrize("at", [0, 1, 250, 264, STEPS - 1])
def test_restart(plain, at, tmp_path):
    """Before the first step, right before and between two looks at the inlets, before the last step."""
    sim = start()
    sim.step(at)
    sim.save(tmp_path / "checkpoint.h5")
    saved = state(sim)
    again = clast.resume(tmp_path / "checkpoint.h5", drives={3: stir})
    assert differences(saved, state(again)) == []
    again.step(STEPS - at)
    assert differences(plain, state(again)) == []
    sim.step(STEPS - at)
    assert differences(plain, state(sim)) == []


def test_many_restarts(plain, tmp_path):
    sim = start()
    for _ in range(25):
        sim.step(STEPS // 25)
        sim.save(tmp_path / "checkpoint.h5")
        sim = clast.resume(tmp_path / "checkpoint.h5", drives={3: stir})
    assert differences(plain, state(sim)) == []


@pytest.mark.parametrize("every", [None, 0.0074, 0.05])
def test_run(plain, every, tmp_path):
    sim = start()
    sim.run(until=STEPS * sim.dt, every=every, output=None if every is None else tmp_path, progress=False)
    assert sim.steps == STEPS
    assert differences(plain, state(sim)) == []


def test_frames_of_a_resumed_run_are_those_of_an_uninterrupted_one(tmp_path):
    from clast.files.trajectory import Trajectory

    whole = start()
    whole.run(until=0.04, every=0.008, output=tmp_path / "whole", progress=False)
    first = start()
    first.run(until=0.018, every=0.008, output=tmp_path / "parts", progress=False)
    second = clast.resume(tmp_path / "parts", drives={3: stir})
    second.run(until=0.04, every=0.008, output=tmp_path / "parts", progress=False)
    with Trajectory(tmp_path / "whole" / "trajectory.h5", "r") as one:
        with Trajectory(tmp_path / "parts" / "trajectory.h5", "r") as two:
            late = {two[k].step: two[k] for k in range(len(two))}
            for k in range(len(one)):
                for name, column in one[k].columns.items():
                    assert np.array_equal(column, late[one[k].step].columns[name], equal_nan=True), (k, name)
            # The frame at the end of the first part made room for those of the second.
            assert [two[k].step for k in range(len(two))] == [one[k].step for k in range(len(one))]
    reports = [json.loads((tmp_path / name / "report.json").read_text()) for name in ("whole", "parts")]
    assert reports[0].keys() == reports[1].keys()


@pytest.mark.parametrize("law", ["hertz", "linear"])
@pytest.mark.parametrize("integrator", ["verlet", "symplectic", "explicit"])
def test_restart_with_every_integrator_and_law(law, integrator, tmp_path):
    def fresh():
        scene = Scene()
        scene.add(Plane(), material=STEEL)
        box, velocity = ((-0.02, -0.02, 0.0), (0.02, 0.02, 0.04)), (0.1, 0.05, -0.5)
        scene.fill(Sphere(0.004), count=60, box=box, velocity=velocity, material=STEEL)
        return Simulation(scene, DEM(law=law, integrator=integrator), dt=1e-4)

    whole = fresh()
    whole.step(450)
    sim = fresh()
    sim.step(200)
    assert np.count_nonzero(sim.contacts().slip.any(1)) > 8
    sim.save(tmp_path / "checkpoint.h5")
    sim = clast.resume(tmp_path / "checkpoint.h5")
    sim.step(250)
    assert differences(state(whole), state(sim)) == []
    assert len(sim.contacts().gap) > 3

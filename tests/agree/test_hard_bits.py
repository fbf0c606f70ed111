"""Hard contacts: threads, broad phases, looking, stopping and going on change no bit, with any solver."""

import numba
import numpy as np
import pytest
from roads import differences, state
from test_bits import WAND, stir

import clast
from clast import Complementarity, Cylinder, Material, Oscillation, Plane, Polyhedron, Scene, Simulation, Sphere
from clast.dvi import neighbours
from clast.dvi import problem as cones
from clast.dvi import stepper as hard
from clast.kernels import backend

GRAIN = Material(density=2500.0, friction=0.5, restitution=0.3)
ROUGH = Material(density=2500.0, friction=0.5, restitution=0.3, rolling_friction=0.1, cohesion=1e-3, compliance=1e-6)
BRICK = Polyhedron.box(0.009, 0.006, 0.004)
DOWN = (0.0, 0.0, -1.0)  # [m/s]: contacts are there soon
STEP = 2e-3
STEPS = 24
AFTER = 9  # more of them, with one thread and with two
SORT = 8  # steps after which bodies are sorted in memory, in place of 64
ITERATIONS = 10
SOLVERS = ("apgd", "barzilai-borwein", "gauss-seidel", "jacobi")


@pytest.fixture(autouse=True)
def sorted_often(monkeypatch):
    monkeypatch.setattr(neighbours, "SORT", SORT)


def busy():
    """Spheres that are poured and drained between planes that lean outward, on a floor that shakes."""
    scene = Scene(world=((-0.2, -0.2, -0.1), (0.2, 0.2, 0.3)))
    scene.add(Plane(), material=GRAIN, drive=Oscillation((0.0, 0.0, 0.0004), 20.0))
    for x, y in ((1, 0), (-1, 0), (0, 1), (0, -1)):
        scene.add(Plane((x, y, 0.3)), position=(-0.05 * x, -0.05 * y, 0), material=GRAIN)
    box = ((-0.045, -0.045, 0.006), (0.045, 0.045, 0.08))
    scene.fill(Sphere(0.005), count=300, scale=(0.7, 1.3), box=box, material=GRAIN, velocity=DOWN, seed=2)
    room = ((-0.02, -0.02, 0.1), (0.05, 0.05, 0.15))
    scene.inlet(Sphere(0.005), box=room, rate=400.0, velocity=(0.1, 0.0, -1.0), material=GRAIN, seed=3)
    scene.outlet(box=((0.03, 0.03, -0.02), (0.2, 0.2, 0.05)))
    return scene


def rough():
    """Clumps, spheres and an inlet in a world with periodic sides; a cylinder and a clump stir."""
    scene = Scene(world=((-0.06, -0.06, -0.1), (0.06, 0.06, 0.3)), periodic=(True, True, False))
    scene.add(Plane(), material=ROUGH)
    scene.add(Cylinder(0.008, 0.05, inside=False), position=(-0.03, -0.03, 0.03), material=ROUGH, spin=(9.0, 0.0, 3.0))
    scene.add(WAND, position=(0.0, 0.03, 0.03), scale=1.5, material=ROUGH, motion="driven", drive=stir)
    box = ((-0.06, -0.06, 0.003), (0.06, 0.06, 0.08))
    scene.fill(Sphere(0.004), count=60, scale=(0.7, 1.8), box=box, material=ROUGH, velocity=DOWN, seed=1)
    scene.fill(WAND, count=30, box=box, material=ROUGH, velocity=DOWN, spin=(20.0, 0.0, 10.0), seed=5)
    room = ((-0.06, -0.06, 0.15), (0.06, 0.06, 0.2))
    scene.inlet(WAND, box=room, rate=400.0, velocity=(0.0, 0.2, -1.0), material=ROUGH, seed=3)
    scene.outlet(box=((-0.06, -0.06, -0.01), (-0.03, -0.03, 0.05)))
    return scene


def bricks():
    """Boxes and spheres in a heap on a floor that shakes."""
    scene = Scene()
    scene.add(Plane(), material=GRAIN, drive=Oscillation((0.0, 0.0, 0.001), 20.0))
    box = ((-0.02, -0.02, 0.005), (0.02, 0.02, 0.06))
    scene.fill(BRICK, count=25, box=box, material=GRAIN, velocity=DOWN, seed=4)
    scene.fill(Sphere(0.004), count=10, box=box, material=GRAIN, velocity=DOWN, seed=2)
    return scene


def start(solver, make=busy, **options):
    return Simulation(make(), Complementarity(solver=solver, iterations=ITERATIONS, **options), dt=STEP)


PLAIN = {}
DRIVES = {rough: {2: stir}}


@pytest.fixture(scope="module")
def ends(tmp_path_factory):
    """Where the simulations of `plain` are kept as they were after all steps."""
    folder = tmp_path_factory.mktemp("ends")
    yield lambda solver, make: folder / f"{solver}-{make.__name__}.h5"
    PLAIN.clear()


@pytest.fixture
def plain(ends):
    return lambda solver, make=busy: in_one_go(solver, make, ends(solver, make))


def in_one_go(solver, make, kept):
    """The state after all steps, taken in one go, and made once."""
    if (solver, make) not in PLAIN:
        sim = start(solver, make)
        sim.step(STEPS)
        assert sim.stepper.tally["iterations"] > STEPS  # there is something to solve
        assert np.isfinite(sim.bodies.position).all()
        assert len(sim.stepper.constraints.gap) > 20
        if sim.scene.inlets:
            assert sim.removed > 0
            assert sum(sim.poured) > 10
        sim.save(kept)
        PLAIN[solver, make] = state(sim)
    return PLAIN[solver, make]


def with_threads(threads, monkeypatch, kept, make):
    """The state some steps later with so many threads; tasks are small, so that each thread gets some of every loop."""
    before = numba.get_num_threads()
    backend.set_threads(threads)
    with monkeypatch.context() as patch:
        for module in (hard, cones):
            patch.setattr(module, "CHUNK", 8)
        patch.setattr(backend.CPU, "launch", staticmethod(launch_on_all))
        try:
            sim = clast.resume(kept, drives=DRIVES.get(make))
            sim.step(AFTER)
            return state(sim)
        finally:
            backend.set_threads(before)


def launch_on_all(kernel, count, arguments):
    """As backend.CPU.launch, but with all threads however few rows there are."""
    if (count[-1] if kernel.phased else count) > 0:
        kernel.loop(count, arguments)


def restarted(solver, make, moments, folder, **options):
    """The state after all steps, with a checkpoint at each of the moments, from which a new simulation goes on."""
    sim = start(solver, make, **options)
    for at in (*moments, STEPS):
        sim.step(at - sim.steps)
        if at < STEPS:
            sim.save(folder / "checkpoint.h5")
            before = state(sim)
            sim = clast.resume(folder / "checkpoint.h5", drives=DRIVES.get(make))
            # The contacts of the last step are not kept, only their impulses: those of the next step tell.
            assert [name for name in differences(before, state(sim)) if name.startswith("bodies")] == []
    return state(sim)


two_threads = pytest.mark.skipif(numba.config.NUMBA_NUM_THREADS < 2, reason="one core only")


@pytest.mark.parametrize("solver", SOLVERS)
def test_restarts(solver, plain, tmp_path):
    """Before the first step, inside of and at the end of the interval after which bodies are sorted."""
    assert differences(plain(solver), restarted(solver, busy, (0, 5, 8, 18), tmp_path)) == []


def test_steps_one_by_one_and_looking(plain):
    sim = start("apgd")
    for k in range(STEPS):
        sim.step(1)
        if k % 20 == 0:
            sim.report()
            clast.find_contacts(sim.scene)
    assert differences(plain("apgd"), state(sim)) == []


@pytest.mark.parametrize("solver", ["apgd", "gauss-seidel"])
def test_broad_phases(solver, plain):
    sim = start(solver, broad="all-pairs")
    sim.step(STEPS)
    assert differences(plain(solver), state(sim)) == []


# Every solver has kernels of its own for rolling; what bricks add is made before any solver, and two go through it in unlike order.
EVERYTHING = [(rough, solver) for solver in SOLVERS] + [(bricks, "apgd"), (bricks, "gauss-seidel")]


@pytest.mark.parametrize(("make", "solver"), EVERYTHING)
def test_everything_there_is(make, solver, plain, tmp_path):
    """Stopping and going on, half of them with the other broad phase."""
    broad = "all-pairs" if solver in ("barzilai-borwein", "gauss-seidel") else "bins"
    assert differences(plain(solver, make), restarted(solver, make, (0, 5, 18), tmp_path, broad=broad)) == []


@two_threads
@pytest.mark.parametrize(("make", "solver"), [(busy, solver) for solver in SOLVERS] + EVERYTHING)
def test_threads(make, solver, plain, ends, monkeypatch):
    plain(solver, make)
    one, two = (with_threads(threads, monkeypatch, ends(solver, make), make) for threads in (1, 2))
    assert make is not busy or one["contacts.gap"][0][0] > 256  # more than one task of the solvers
    assert differences(one, two) == []


def test_ellipsoids_that_turn_touch_alike_however_old_the_list_is():
    def turning():
        scene = Scene(gravity=(0.0, 0.0, -0.5))
        scene.add(Plane(), material=GRAIN)
        scene.fill(
            clast.Ellipsoid(0.05, 0.04, 0.03),
            count=8,
            box=((0.0, 0.0, 0.001), (0.2, 0.2, 0.2)),
            material=GRAIN,
            spin=(2.0, 1.0, 0.0),
            seed=1,
        )
        return Simulation(scene, Complementarity(iterations=ITERATIONS), dt=STEP)

    one, two = turning(), turning()
    old = 0
    for _ in range(100):
        one.step()
        two.start()
        two.stepper.rebuild()
        two.step()
        old = max(old, one.state.since)
    assert one.touching() > 0 and old > 5
    assert not differences(state(one), state(two))

"""The CUDA device against the CPU, without a GPU.

Three ways, because none shows everything: numba's simulator runs the whole step as plain Python and notes which kernels
are called with which arguments; every kernel noted is compiled to PTX where the compiler packages are installed; and
`Threads` below runs the kernels of the CUDA path on CPU threads, compiled.
"""

import functools
import importlib.util
import inspect
import os
import pickle
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numba
import numpy as np
import pytest

import clast
from clast.kernels import backend, primitives
from clast.kernels import cuda as gpu
from clast.run import simulation

STEPS = 30
MOST_PARAMETERS = 4096  # bytes of arguments that every CUDA driver accepts


def heap():
    """Spheres of many sizes and two clumps on a shaken plane in a turning cylinder, with friction of both kinds."""
    rock = clast.Material(density=2500, young=1e7, friction=0.5, restitution=0.4, rolling_friction=0.02)
    wood = clast.Material(density=900, young=5e6, friction=0.3, restitution=0.3)
    scene = clast.Scene(gravity=(0.3, 0.0, -9.81))
    shake = clast.Oscillation(amplitude=(1e-4, 0.0, 5e-5), frequency=150.0)
    scene.add(clast.Plane(), material=wood, drive=shake)
    scene.add(clast.Cylinder(0.0395), material=wood, motion="driven", spin=(0.0, 0.0, 3.0))
    random = np.random.default_rng(3)
    x = np.arange(-1, 2)
    grid = np.stack(np.meshgrid(x, x, np.arange(3), indexing="ij"), -1).reshape(-1, 3)
    position = grid * 0.021 + [0.0, 0.0, 0.0105] + random.uniform(-3e-4, 3e-4, grid.shape)
    scene.add(
        clast.Sphere(0.01),
        position=position,
        scale=random.uniform(1.0, 1.08, len(position)),
        velocity=random.normal(0.0, 0.6, position.shape),
        spin=random.normal(0.0, 5.0, position.shape),
        material=rock,
    )
    clump = clast.Clump([(0.0, 0.0, 0.0), (0.008, 0.0, 0.0)], [0.008, 0.006])
    above = [(0.0, 0.0, 0.0705), (0.02, 0.0, 0.0705)]
    scene.add(clump, position=above, velocity=(0.0, 0.0, -1.5), spin=(20.0, 10.0, 0.0), material=wood)
    return clast.Simulation(scene, clast.DEM(law="hertz", margin=3e-4), dt=2e-5, device="cuda" if ON_CUDA else "cpu")


def rain():
    """A periodic world with a floor of triangles, an inlet and an outlet; one material, linear law, all pairs."""
    rock = clast.Material(density=2500, young=1e7, friction=0.5, restitution=0.4)
    scene = clast.Scene(world=((0.0, 0.0, -0.1), (0.1, 0.1, 0.3)), periodic=(True, True, False))
    corners = [(-0.1, -0.1, 0.0), (0.2, -0.1, 0.0), (0.2, 0.2, 0.0), (-0.1, 0.2, 0.0)]
    scene.add(clast.Quad(corners), material=rock)
    grid = np.stack(np.meshgrid(*[np.arange(4) * 0.025 + 0.0125] * 2, [0.0095, 0.0283], indexing="ij"), -1).reshape(
        -1, 3
    )
    speed = np.random.default_rng(5).normal(0.0, 0.3, grid.shape)
    scene.add(clast.Sphere(0.01), position=grid, velocity=speed, material=rock)
    scene.inlet(
        clast.Sphere(0.008),
        box=((0.02, 0.02, 0.08), (0.08, 0.08, 0.12)),
        rate=4000.0,
        velocity=(0.0, 0.0, -1.0),
        material=rock,
        count=4,
        seed=7,
    )
    scene.outlet(box=((-1.0, -1.0, 0.025), (0.05, 1.0, 0.06)))
    method = clast.DEM(law="linear", margin=4e-4, broad="all-pairs")
    return clast.Simulation(scene, method, dt=4e-5, device="cuda" if ON_CUDA else "cpu")


def seeds():
    """Ellipsoids and a few spheres on a plane and a quad in a cylinder, with friction of both kinds."""
    rock = clast.Material(density=2500, young=1e7, friction=0.5, restitution=0.4, rolling_friction=0.02)
    scene = clast.Scene(gravity=(0.3, 0.0, -9.81))
    scene.add(clast.Plane(), material=rock)
    scene.add(clast.Cylinder(0.035), material=rock)
    shelf = clast.Quad([(-0.05, -0.05, 0.012), (0.0, -0.05, 0.012), (0.0, 0.05, 0.002), (-0.05, 0.05, 0.002)])
    scene.add(shelf, material=rock)
    random = np.random.default_rng(8)
    x = (np.arange(3) - 1) * 0.018
    grid = np.stack(np.meshgrid(x, x, [0.02, 0.034], indexing="ij"), -1).reshape(-1, 3)
    turn = random.normal(size=(len(grid), 4))
    turn /= np.linalg.norm(turn, axis=1, keepdims=True)
    speed, spin = random.normal(-0.3, 0.3, grid.shape), random.normal(0.0, 20.0, grid.shape)
    scene.add(
        clast.Ellipsoid(0.012, 0.009, 0.007), position=grid, orientation=turn, velocity=speed, spin=spin, material=rock
    )
    scene.add(clast.Sphere(0.006), position=[(0.0045, 0.0, 0.006), (0.0163, 0.0, 0.007)], material=rock)
    return clast.Simulation(scene, clast.DEM(law="hertz", margin=5e-4), dt=2e-5, device="cuda" if ON_CUDA else "cpu")


SCENES = {"heap": heap, "rain": rain, "seeds": seeds}
ON_CUDA = False


def result(name):
    """All numbers of a scene after some steps, half of them one by one as with frames."""
    sim = SCENES[name]()
    sim.step(STEPS // 2)
    for _ in range(STEPS - STEPS // 2):
        sim.step()
    contacts = {f"contact {key}": value for key, value in sim.contacts()._asdict().items()}
    numbers = {"rebuilds": sim.state.rebuilds, "removed": sim.removed, "energy": sim.kinetic_energy()}
    return {**{key: np.array(value) for key, value in {**sim.bodies._asdict(), **contacts, **numbers}.items()}}


def compare(there, here, tolerance):
    """Whole numbers are equal; others differ by less than the tolerance times the largest of their column."""
    assert set(there) == set(here)
    for name, expected in here.items():
        got = there[name]
        assert got.shape == expected.shape, name
        if np.issubdtype(expected.dtype, np.floating):
            finite = np.isfinite(expected)
            assert np.array_equal(np.isfinite(got), finite), name
            size = np.abs(expected[finite]).max(initial=1e-12)
            assert np.abs(got[finite] - expected[finite]).max(initial=0.0) <= tolerance * size, name
        else:
            assert np.array_equal(got, expected), name


class Threads(gpu.CUDA):
    """The CUDA device with its kernels run on CPU threads; arrays are NumPy arrays, but copied as for a device, and points lie in memory as on the CPU:
    kernels that both use need not be compiled for another layout."""

    name = "cpu"

    def __init__(self):
        super().__init__(SimpleNamespace(device_array=np.empty, to_device=np.array))

    def launch(self, kernel, count, arguments):
        backend.CPU.launch(kernel, count, arguments)

    def to_host(self, array):
        return np.array(array)

    def view(self, array, rows, first, last):
        return array[:rows, first:last]


@pytest.mark.parametrize("name", SCENES)
def test_the_cuda_path_on_cpu_threads_agrees(name, monkeypatch):
    device = Threads()
    monkeypatch.setattr(simulation, "find_device", lambda name: backend.CPU if name == "cpu" else device)
    here = result(name)
    monkeypatch.setitem(globals(), "ON_CUDA", True)
    compare(result(name), here, 1e-12)


@pytest.mark.parametrize("count", [0, 1, 63, 64, 65, 5000])
def test_the_prefix_sum_agrees(count):
    numbers = np.random.default_rng(count).integers(0, 9, count).astype(np.int32)
    start = Threads().scan(numbers)
    assert start.dtype == np.int64
    assert np.array_equal(start, primitives.scan(numbers))


@pytest.mark.parametrize(("count", "groups"), [(0, 3), (1, 1), (300, 1), (5000, 7), (5000, 257), (20000, 100000)])
def test_the_grouping_agrees_and_is_stable(count, groups):
    key = np.random.default_rng(count).integers(0, groups, count).astype(np.int32)
    start, order = Threads().group(key, groups)
    assert np.array_equal(order, np.argsort(key, kind="stable"))
    assert np.array_equal(start, np.searchsorted(np.sort(key), np.arange(groups + 1)))
    assert (start.dtype, order.dtype) == (np.int32, np.int32)


def test_the_largest_entry_is_found():
    values = np.random.default_rng(1).uniform(0.0, 1.0, 10000)
    assert Threads().peak(values) == values.max()
    assert Threads().peak(values[:0]) == 0.0


@pytest.fixture(scope="module")
def simulated(tmp_path_factory):
    """Result and calls of a scene, by its name, in the simulator, which has to be chosen before numba is imported."""
    folder = tmp_path_factory.mktemp("simulated")
    environment = {**os.environ, "NUMBA_ENABLE_CUDASIM": "1"}

    @functools.cache
    def run(name):
        names = ("heap", "rain") if name in ("heap", "rain") else (name,)  # the two quick ones in one process
        if not (folder / name).exists():
            subprocess.run([sys.executable, "-W", "ignore", __file__, str(folder), *names], env=environment, check=True)
        return pickle.loads((folder / name).read_bytes())

    return run


@pytest.mark.gpu
@pytest.mark.parametrize("name", ["heap", "rain", pytest.param("seeds", marks=pytest.mark.slow)])
def test_the_simulator_agrees(name, simulated):
    here = result(name)
    assert here["rebuilds"] > 4
    assert np.abs(here["contact slip"]).max() > 0.0
    assert len(here["contact gap"]) > (5 if name == "seeds" else 10)
    assert name != "rain" or (here["removed"] > 0 and len(here["number"]) > 33 - here["removed"])
    compare(simulated(name)[0], here, 1e-12)


HARD = """
import clast
scene = clast.Scene()
scene.add(clast.Plane())
scene.add(clast.Sphere(0.05), position=[(0, 0, 0.05), (0.01, 0, 0.145)], velocity=(0.1, 0, 0))
sim = clast.Simulation(scene, clast.Complementarity(iterations=10), dt=5e-3)
sim.step(2)
print(*sim.bodies.velocity.ravel())
"""


def test_hard_contacts_run_in_the_simulator_on_the_cpu():
    """Their iterations are compiled code that calls functions which stay plain Python there."""
    found = []
    for simulated in ("0", "1"):
        environment = {**os.environ, "NUMBA_ENABLE_CUDASIM": simulated}
        run = subprocess.run(
            [sys.executable, "-W", "ignore", "-c", HARD], env=environment, check=True, capture_output=True
        )
        found.append(np.array(run.stdout.split(), float))
    assert np.abs(found[0]).max() > 1e-2
    np.testing.assert_allclose(found[1], found[0], rtol=0, atol=1e-7)


def called(calls):
    """Kernels and the types of their arguments, from what `note` wrote."""

    def find(value):
        return getattr(importlib.import_module(value[0]), value[1]) if isinstance(value, tuple) else value

    for row, bound, types in calls:
        yield backend.kernel(find(row), **{name: find(value) for name, value in bound}), types


@pytest.mark.gpu
@pytest.mark.skipif(importlib.util.find_spec("numba_cuda") is None, reason="needs pip install 'clast[gpu]'")
def test_every_kernel_compiles_to_ptx(simulated, monkeypatch):
    from numba import cuda

    # Functions that kernels call ask the present device what it is capable of.
    monkeypatch.setattr("numba.cuda.dispatcher.get_current_device", lambda: SimpleNamespace(compute_capability=(8, 0)))
    calls = {call: None for name in SCENES for call in simulated(name)[1]}
    rows = set()
    for kernel, types in called(calls):
        function = gpu.grid_function(kernel, cuda)
        signature = numba.void(numba.int64, *types)
        text = cuda.compile(function, signature, device=False, abi="numba", cc=(8, 0), output="ptx")[0]
        assert 0 < parameter_bytes(text) <= MOST_PARAMETERS, kernel.name
        rows.add(kernel.row.__name__)
    # What steps on the CPU use is there too, but for what is worked off in blocks there, and the order of pairs that sleep.
    used = set()
    launch = backend.CPU.launch

    def noting(kernel, count, arguments):
        used.add(kernel.row.__name__)
        launch(kernel, count, arguments)

    monkeypatch.setattr(backend.CPU, "launch", staticmethod(noting))
    for name in SCENES:
        SCENES[name]().step(STEPS)
    assert used - rows == {"ball_block", "force_block", "advance_block", "apart_row"}


def parameter_bytes(text):
    """Bytes of the arguments of the kernel in a PTX text."""
    head = text[text.index(".visible .entry") :]
    return sum(int(bits) // 8 for bits in re.findall(r"\.param \.[a-z](\d+) ", head[: head.index(")")]))


def test_a_missing_package_or_device_is_named(monkeypatch):
    gpu.find.cache_clear()
    scene = clast.Scene()
    scene.add(clast.Sphere(1.0))
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(clast.errors.Unavailable, match=r"numba-cuda: pip install 'clast\[gpu\]'"):
        clast.Simulation(scene, device="cuda")


@pytest.mark.parametrize(
    ("fault", "devices", "available", "words"),
    [
        ("driver library\n cannot be found", [], False, r"does not start \(driver library cannot be found\)"),
        (None, [], False, "the driver lists none"),
        (None, [1], False, "compiler packages are missing"),
    ],
)
def test_a_machine_without_a_device_says_what_was_found(fault, devices, available, words):
    cuda = SimpleNamespace(cuda_error=lambda: fault, gpus=devices, is_available=lambda: available)
    assert re.search(words, gpu.missing(cuda))


def test_cuda_and_cpu_offer_the_same():
    for name in vars(backend.CPU):
        if not name.startswith("_"):
            there, here = getattr(gpu.CUDA, name), getattr(backend.CPU, name)
            if inspect.isfunction(here):
                assert list(inspect.signature(there).parameters)[1:] == list(inspect.signature(here).parameters), name


def note(calls, kernel, arguments):
    """Write down a call so that another process finds the kernel again: names, and types of the arguments."""

    def name(value):
        return (value.__module__, value.__name__) if callable(value) else value

    def plain(value):
        if isinstance(value, tuple):
            items = [plain(item) for item in value]
            return type(value)(*items) if hasattr(value, "_fields") else tuple(items)
        return getattr(value, "_ary", value)

    bound = tuple((key, name(value)) for key, value in kernel.bound.items())
    calls[name(kernel.row), bound, tuple(numba.typeof(plain(argument)) for argument in arguments)] = None


def simulate(folder, *scenes):
    """Run scenes in the simulator and leave the result and the calls of each in the folder."""
    launch, calls = gpu.CUDA.launch, {}

    def noting(self, kernel, count, arguments):
        note(calls, kernel, arguments)
        launch(self, kernel, count, arguments)

    gpu.CUDA.launch = noting
    for dtype in (np.float64, np.int8):  # longer than what these few bodies need
        assert gpu.find().peak(gpu.find().zeros(200, dtype)) == 0.0
    for scene in scenes:
        calls.clear()
        (Path(folder) / scene).write_bytes(pickle.dumps((result(scene), list(calls))))


if __name__ == "__main__":
    ON_CUDA = True
    simulate(*sys.argv[1:])

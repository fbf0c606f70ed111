"""What all tests share, and which of them belong together when several processes run them."""

import os
import sys
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath

import pytest

ROOT = Path(__file__).resolve().parents[1]

# There is one process of tests a core already; each compiles for itself.
os.environ.setdefault("CLAST_WORKERS", "0")
# Threads of NumPy's library of matrices would wait for each other in a busy loop: products of (210,3) and (3,1000) matrices took 0.4 s of
# processor time on one thread, 3.5 to 12 s on two while another process was busy. It reads this when NumPy is first imported, after this file.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
# So would threads of kernels: each process of tests has as many as there are cores. They go to sleep at once; tests of threads took 15 s of
# processor time so, 23 s where they looked for work 10,000 times first.
os.environ.setdefault("GOMP_SPINCOUNT", "100")
# Every process reads all tests, and many tests start clast: where the surroundings forbid to keep what Python made of the sources, each began with
# that, 10 s and 0.4 s of processor time. It lies beside them, as kernels do.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# In a fresh clone most of the time goes into compiling, so tests that need the same kernels run in the same process. One
# row is one group, with patterns of `file::test[parameters]`; the first row that fits counts, and a file that fits nowhere
# is a group of its own. Groups start in the order of the rows, but those in FIRST before: the longest first, so that no process works
# alone at the end, and those that use the kernels of others last. FIRST are two that share few kernels: what two processes need at the same time
# both compile.
FIRST = ("polyhedra", "spheres")
GROUPS = {
    "polyhedra": "*hull*::* *polyhedr*::* test_heat::* test_ready::*-drum* test_ready::*packing* test_docs::*polyhedra*",
    "complementarity": "*hard_*::* *complementarity*::* test_docs::*complementarity* test_docs::*joints*",
    "ellipsoids": "*ellipsoid*::* test_list::*ellipsoid* test_ready::*ellipsoid* test_docs::*ellipsoids*",
    "meshes": "*surface*::* *mesh*::* test_ready::*granulate* test_ready::*particles* test_docs::*meshes*",
    "spheres": "test_bits::* test_list::* test_gas::* test_f*::* test_runs::* *campaign*::* *impact*::* test_laws::* *motion*::* "
    "test_ledger::* test_ranks::* test_recording::* test_measure::* test_page*::* test_notebook::* test_getting*::*",
    "cuda": "test_cuda::*",
    "search": "test_broad::* test_boxes::* *spacetree*::* test_docs::*spacetree*",
    "joints": "*join*::*",
    "solvers": "*solver*::* *cone*::* test_docs::*solvers*",
    "triangles": "*triang*::* test_docs::*triangles*",
    "normals": "*normal*::* test_characteristic::* test_curvature::*",
    "programs": "test_ready::* test_docs::* test_cli::* test_command_line::* test_stopping::*",
}


def group_of(nodeid):
    """Number and name of the group of a test, whose id is `folder/file.py::test[parameters]`."""
    file, _, test = nodeid.partition("::")
    file = PurePosixPath(file).stem
    for number, (group, patterns) in enumerate(GROUPS.items()):
        if any(fnmatchcase(f"{file}::{test}", pattern) for pattern in patterns.split()):
            return (FIRST.index(group) - len(FIRST) if group in FIRST else number), group
    return len(GROUPS), file


def pytest_collection_modifyitems(config, items):
    """Sort the tests by group where several processes share them; a single process keeps the order of the files."""
    if hasattr(config, "workerinput"):
        items.sort(key=lambda item: group_of(item.nodeid))


@pytest.hookimpl(optionalhook=True)  # without pytest-xdist nobody asks
def pytest_xdist_make_scheduler(config, log):
    """Hand out whole groups with `--dist loadgroup`.

    The package's own way, a mark on each test, has no effect in pytest 9.2 with pytest-xdist 3.8: every test went its own way.
    """
    if config.getoption("dist") != "loadgroup":
        return None
    from xdist.scheduler import LoadScopeScheduling

    class Groups(LoadScopeScheduling):
        def _split_scope(self, nodeid):
            return group_of(nodeid)[1]

    config.option.loadscopereorder = False  # as sorted, not by the number of tests
    return Groups(config, log)


@pytest.fixture(scope="session", autouse=True)
def one_thread_each():
    """Where there is a process of tests for each core, kernels take one thread unless a test asks for more.

    Two processes with two threads each on two cores that others used as well waited for each other: 1,083 s of processor time took them 2,845 s.
    """
    if int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1")) >= max(2, os.cpu_count() or 1):
        from clast.kernels import backend

        backend.numba.set_num_threads(1)


@pytest.fixture(scope="session")
def reference_data():
    """Folder with published reference data, beside the project; tests that need it are skipped where it is not."""
    folder = ROOT.parent / "shared" / "data"
    if not folder.is_dir():
        pytest.skip("needs the reference data in ../shared/data")
    return folder


@pytest.fixture(scope="session")
def own_data():
    """Folder with cases of our own making and the programs that computed them, none of which knows clast."""
    return ROOT / "tests" / "data"


@pytest.fixture(scope="session")
def small_run(tmp_path_factory):
    """Folder of a short run of 30 spheres that fall on a plane and on each other, with its numbers; for tests that only read it."""
    import clast

    scene = clast.Scene()
    scene.add(clast.Plane())
    scene.fill(clast.Sphere(0.01), count=30, box=((0, 0, 0), (0.06, 0.06, 0.12)), scale=(0.7, 1.0), seed=1)
    folder = tmp_path_factory.mktemp("runs") / "small"
    clast.Simulation(scene).run(until=0.16, every=0.02, output=folder, progress=False, record=["speed", "force:0"])
    return folder

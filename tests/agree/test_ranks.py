"""Many processes and one: the same bits, whoever has which bodies, and after a restart with another number of processes."""

import json
import os
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent


def launcher():
    beside = Path(sys.executable).with_name("mpirun")
    return str(beside) if beside.exists() else shutil.which("mpirun")


pytestmark = [
    pytest.mark.mpi,
    pytest.mark.skipif(find_spec("mpi4py") is None, reason="mpi4py is not installed: pip install 'clast[mpi-local]'"),
    pytest.mark.skipif(launcher() is None, reason="there is no mpirun: pip install 'clast[mpi-local]'"),
]


def start(size, *command, **options):
    """Run a Python program on so many processes, one thread each; returns what it said."""
    env = os.environ | {"NUMBA_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "CLAST_WORKERS": "0"}
    return subprocess.run(
        [launcher(), "-n", str(size), sys.executable, *map(str, command)],
        capture_output=True,
        text=True,
        env=env,
        **options,
    )


def states(tmp_path_factory, *names):
    done = start(4, HERE / "ranks_program.py", tmp_path_factory.mktemp("ranks"), *names, timeout=900)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.strip().splitlines()[-1])


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    return states(tmp_path_factory, "box", "flow")


def check(told, size):
    assert told[str(size)] == told["1"]
    moved, ghosts = told[f"moved {size}"]
    assert moved > 3 and ghosts > 3


@pytest.mark.parametrize("size", [2, 3, 4])
@pytest.mark.parametrize("scene", ["box", "flow"])
def test_bodies_that_cross_from_process_to_process_have_the_bits_of_one(found, scene, size):
    check(found[scene], size)


@pytest.mark.parametrize("way", ["3 to 2", "2 to 3", "3 to 1"])
@pytest.mark.parametrize("scene", ["box", "flow"])
def test_what_some_processes_saved_goes_on_with_others_and_with_one(found, scene, way):
    late = found[scene][way]
    assert late == found[scene]["1"][-len(late) :]


def test_bodies_came_and_went_and_touched(found):
    bodies, contacts, touching, removed, poured = found["flow"]["1"][-1][1]
    assert poured > 50 and removed > 5 and touching > 20 and contacts >= touching
    assert found["box"]["1"][-1][1][1] > 20


@pytest.mark.slow  # compiles the kernels of all shapes
def test_every_shape_has_the_bits_of_one_process(tmp_path_factory):
    told = states(tmp_path_factory, "shapes")["shapes"]
    for size in (2, 3, 4):
        check(told, size)
    for way in ("3 to 2", "2 to 3", "3 to 1"):
        assert told[way] == told["1"][-len(told[way]) :]

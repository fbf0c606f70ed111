"""Many processes and one: the same bits, whoever has which bodies, and after a restart with another number of processes."""

import json
import os
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

import clast
from clast.files import Trajectory
from clast.scenes import SCENES

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


@pytest.mark.parametrize("way", ["2 to 3", "3 to 1"])
@pytest.mark.parametrize("scene", ["box", "flow"])
def test_what_some_processes_saved_goes_on_with_others_and_with_one(found, scene, way):
    late = found[scene][way]
    assert late == found[scene]["1"][-len(late) :]


def test_bodies_came_and_went_and_touched(found):
    bodies, contacts, touching, removed, poured = found["flow"]["1"][-1][1]
    assert poured > 50 and removed > 5 and touching > 20 and contacts >= touching
    assert found["box"]["1"][-1][1][1] > 10


@pytest.fixture(scope="module")
def faults():
    done = start(2, HERE / "ranks_faults.py", timeout=300)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.strip().splitlines()[-1])


def test_a_fault_of_one_process_is_that_of_all_and_has_the_words_of_one(faults):
    assert faults["alone"].startswith("Escaped: body ")
    assert faults["shared"] == [faults["alone"]] * 2


def test_a_program_may_go_on_after_a_fault_was_caught(faults):
    assert faults["after"] == [3, 3]


def test_hard_contacts_are_refused(faults):
    assert (
        faults["hard"]
        == [
            "ValueError: Simulation: 2 processes share a run by clast.DEM(...) only; start one process for clast.Complementarity(...)"
        ]
        * 2
    )


def test_more_processes_than_bodies_are_refused(faults):
    assert faults["few"] == ["ClastError: 2 processes are more than the 1 bodies that move; start 1 at the most"] * 2


def test_scenes_that_differ_are_refused(faults):
    for told in faults["differ"]:
        assert told.startswith("ClastError: the processes describe different scenes: rank 0 has ")
        assert "rank 1 has" in told


def test_versions_that_differ_are_named(faults):
    assert (
        faults["versions"]
        == ["ClastError: versions differ: rank 0 has numba 1.0, rank 1 has 1.1; install the same everywhere"] * 2
    )


def test_a_file_that_the_first_cannot_write_is_a_fault_of_all(faults):
    first, second = faults["write"]
    assert first == second and first.startswith(("NotADirectoryError", "NotWritten", "FileExistsError"))


def test_a_run_of_two_processes_has_one_folder_one_report_and_goes_on_with_one(tmp_path):
    command = ["-m", "clast", "run", "drum", "--count", "60", "--until", "0.004", "--every", "0.002"]
    done = start(2, *command, "--output", tmp_path / "two", timeout=300)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("simulated") == 1 and done.stdout.count("processes  2 with ") == 1
    assert done.stderr.count("100 %") == 1
    told = json.loads((tmp_path / "two" / "report.json").read_text())
    assert sum(told["ranks"]["bodies"]) == told["bodies"] == 60 and min(told["ranks"]["ghosts"]) > 0
    alone = SCENES["drum"](count=60).simulation()
    alone.run(until=0.004, every=0.002, output=tmp_path / "one", progress=False)
    shared = clast.resume(tmp_path / "two")
    for sim in (alone, shared):
        sim.step(20)
    for one, two in zip(alone.bodies, shared.bodies, strict=True):
        assert np.array_equal(one, two)
    with (
        Trajectory(tmp_path / "one" / "trajectory.h5") as one,
        Trajectory(tmp_path / "two" / "trajectory.h5") as two,
    ):
        assert len(one) == len(two) == 3
        for name, values in one.series().items():
            assert np.array_equal(values, two.series()[name]), name


def test_a_process_that_is_killed_ends_all_and_leaves_the_last_checkpoint(tmp_path):
    done = start(2, HERE / "ranks_faults.py", tmp_path, timeout=300)
    assert done.returncode != 0
    assert clast.resume(tmp_path / "run").steps >= 10


@pytest.mark.slow  # compiles the kernels of all shapes
def test_every_shape_has_the_bits_of_one_process(tmp_path_factory):
    told = states(tmp_path_factory, "shapes")["shapes"]
    for size in (2, 3, 4):
        check(told, size)
    for way in ("2 to 3", "3 to 1"):
        assert told[way] == told["1"][-len(told[way]) :]

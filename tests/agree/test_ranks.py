"""Many processes and one: the same bits, whoever has which bodies, and after a restart with another number of processes."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path

import numba
import numpy as np
import pytest

import clast
from clast.cli.common import LAUNCHED, first_speaks
from clast.files import Trajectory
from clast.kernels import backend
from clast.mpi import team
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


def start(size, *command, workers=0, **options):
    """Run a Python program on so many processes, one thread each; returns what it said. workers: processes that compile."""
    env = os.environ | {"NUMBA_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "CLAST_WORKERS": str(workers)}
    return subprocess.run(
        [launcher(), "-n", str(size), sys.executable, *map(str, command)],
        capture_output=True,
        text=True,
        env=env,
        **options,
    )


def states(tmp_path_factory, *names, program="ranks_program.py"):
    done = start(4, HERE / program, tmp_path_factory.mktemp("ranks"), *names, timeout=900)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.strip().splitlines()[-1])


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    return states(tmp_path_factory, "box", "table", "flow", "counted", "filled")


def check(told, size):
    assert told[str(size)] == told["1"]
    moved, ghosts = told[f"moved {size}"]
    assert moved > 0 and ghosts > 3  # how many cross depends on where measured work puts the cuts


@pytest.mark.parametrize(("scene", "size"), [("box", 2), ("box", 3), ("box", 4), ("flow", 2), ("flow", 3)])
def test_bodies_that_cross_from_process_to_process_have_the_bits_of_one(found, scene, size):
    check(found[scene], size)


def test_the_ledger_and_the_heat_of_many_processes_have_the_bits_of_one(found):
    told = found["counted"]
    assert told["2"] == told["3"] == told["1"]
    assert told["moved 3"][1] > 20 and told["lists 3"] < 20  # ghosts are there for many steps
    assert told["2 to 3"] == told["1"][-len(told["2 to 3"]) :]
    *_, dissipated, error = told["1"][-1]
    assert dissipated > 0.0 and abs(error) < 1e-9 * dissipated


def test_all_processes_make_a_new_list_when_a_tilting_wall_comes_near_bodies_of_one(found):
    assert found["table"]["3"] == found["table"]["1"]
    assert found["table"]["1"][-1][1][1] > 0 and found["table"]["lists 3"] > 3


@pytest.mark.parametrize("way", ["2 to 3", "3 to 1"])
@pytest.mark.parametrize("scene", ["box", "flow"])
def test_what_some_processes_saved_goes_on_with_others_and_with_one(found, scene, way):
    late = found[scene][way]
    assert late == found[scene]["1"][-len(late) :]


@pytest.mark.parametrize("scene", ["box", "counted", "table", "flow", "filled"])
def test_checkpoint_and_frame_of_many_that_were_written_in_pieces_are_those_of_one(found, scene):
    alone, *shared = found[scene]["saved"]
    assert all(tables == alone for tables in shared)


def test_a_filling_that_no_process_makes_whole_has_the_bodies_of_one(found):
    told = found["filled"]
    check(told, 3)
    assert told["3 to 2"] == told["1"][-len(told["3 to 2"]) :]
    assert told["1"][-1][1][1] > 20  # they touch


def test_bodies_came_and_went_and_touched(found):
    bodies, contacts, touching, removed, poured = found["flow"]["1"][-1][1]
    assert poured > 50 and removed > 5 and touching > 20 and contacts >= touching
    assert found["box"]["1"][-1][1][1] > 10


@pytest.mark.parametrize("size", [2, 3, 4])
def test_contacts_that_processes_find_together_are_those_of_one(found, size):
    told = found["contacts"]
    assert told[str(size)] == told["1"]
    total, parts = told[f"parts {size}"]
    assert sum(parts) == total > 3000 and min(parts) > 0.5 * total / size


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


def test_a_fault_in_the_first_forces_is_that_of_all_and_they_can_be_computed_again(faults):
    assert faults["first"] == [["Diverged: no forces", 3, list(range(8))]] * 2


def test_who_is_told_to_stop_while_kernels_are_compiled_stops_all_and_saves(faults):
    for (told, fresh, steps), who in zip(faults["compiling"], ("SIGTERM", "a signal to another process"), strict=True):
        assert told == f"{who} while kernels were compiled, at t = 0 s; go on with clast.resume('FOLDER')"
        assert fresh and steps == 3


def test_a_stop_ends_one_run_and_not_the_next(faults):
    told, at, steps = faults["stop"][0]
    assert told and 5 <= at < 10 and steps == 10
    assert faults["stop"][1] == faults["stop"][0]


def test_the_report_counts_what_all_have_counted(faults):
    assert faults["counts"] == [[3, 1]] * 2


def test_grids_and_frames_are_written_by_the_first_alone(faults):
    assert faults["writes"] == [2, 0]


@pytest.mark.parametrize("bed", ["still", "still hard"])
def test_a_bed_at_rest_is_divided_anew_and_keeps_the_bits_of_one_process(faults, bed):
    for (lists, cuts, uneven), shared, alone in faults[bed]:
        assert cuts == 1 and lists == 2 and uneven < 1.1
        assert shared == alone


def test_who_waits_for_others_says_so_whatever_for(faults):
    first, second = faults["waits"]
    for name, (waited, _) in first.items():
        assert name == "first_says" or waited > 0.08, name
    assert second["first_says"][0] > 0.08


def test_bytes_of_reductions_and_of_what_is_told_to_all_are_counted(faults):
    first, second = faults["waits"]
    for name in ("everywhere", "join", "sum", "hand_round"):
        assert first[name][1] > 0 and second[name][1] == first[name][1], name
    assert first["join"][1] == first["sum"][1] == 24
    assert first["gather"][1] == 0 < second["gather"][1] and second["first_says"][1] == 0 < first["first_says"][1]


def test_bytes_are_those_of_this_simulation_over_its_own_steps(faults):
    for ((steps, one), (_, two)), (late, sent, words) in faults["bytes"]:
        assert steps == [20, 20] and late == [5, 5]
        assert np.allclose(one, two, rtol=0.02) and min(one) >= 20 * 7 * 8
        assert words == f"{sum(sent) / 10:,.0f}"


def test_bodies_that_came_are_counted_where_they_came(faults):
    assert faults["came"] == [[0, 1]] * 2


def test_runs_that_differ_between_processes_are_refused(faults):
    begin = "ClastError: Simulation: the processes ask for different runs: rank 0 has "
    assert faults["until"] == [f"{begin}until 0.001, rank 1 has 0.002; ask for the same on all"] * 2
    assert faults["record"] == [f"{begin}a record of [], rank 1 has ['speed']; ask for the same on all"] * 2
    asked = "ClastError: Simulation.step: rank 0 asks for 2 more steps, rank 1 for 3; ask for as many on all processes"
    assert faults["steps"] == faults["later steps"] == [asked] * 2


def test_contacts_by_boxes_of_different_scenes_or_arguments_are_refused(faults):
    begin = "ClastError: contacts_by_boxes: the processes ask for different contacts: rank 0 has"
    assert faults["other boxes"] == [f"{begin} margin 0.0, rank 1 has 0.01; pass the same arguments on all"] * 2
    assert faults["other option"] == [f"{begin} sort none, rank 1 has False; pass the same arguments on all"] * 2
    for told in faults["other radius"]:
        assert told.startswith("ClastError: the processes describe different scenes: rank 0 has the checksum")


def test_one_process_may_ask_for_a_share_of_the_boxes_alone(faults):
    assert len(faults["own share"][0]) == 1


def test_who_waits_alone_where_all_must_call_says_so(faults):
    told = "clast: rank 0 waits in find_contacts for others; let all processes call it\n"
    assert faults["late"] == [told, ""]


@pytest.mark.parametrize(
    ("how", "code", "words"),
    [
        ("code", 3, ""),
        ("words", 1, "no such file"),
        ("zero", 1, "has come to its end, and rank 0 waits for it"),
        ("raise", 1, "has come to its end, and rank 0 waits for it"),
    ],
)
def test_who_leaves_alone_ends_all(how, code, words):
    done = start(2, HERE / "ranks_faults.py", "leave", how, timeout=60)
    assert done.returncode == code and words in done.stderr


def test_processes_that_come_to_their_end_one_after_the_other_leave_in_peace():
    done = start(2, HERE / "ranks_faults.py", "leave", "all", timeout=60)
    assert done.returncode == 0 and done.stderr == ""


def test_what_hard_contacts_need_one_process_for_is_refused(faults):
    refused = "ValueError: Simulation: 2 processes share no run with {}; start one process, or leave that out"
    refusals = {"solver": "solver='jacobi'", "coulomb": "coulomb=True"}
    for name, what in (refusals | {"ledger": "ledger=True", "sleep": "sleep="}).items():
        assert faults[name] == [refused.format(what)] * 2


def test_a_fault_of_hard_contacts_is_that_of_all_and_has_the_words_of_one(faults):
    assert faults["hard alone"][0].startswith("Escaped: body ")
    assert faults["hard"] == faults["hard alone"]


@pytest.mark.parametrize(
    ("what", "words"),
    [
        ("pulled", "the function of spring 0 gave nan"),
        ("drained", "body 7 is gone"),
        ("lowest gone", "body 0 is gone"),
        ("both gone", "body 0"),
    ],
)
def test_a_fault_of_joints_is_that_of_all_and_has_the_words_of_one(faults, what, words):
    for shared, alone in faults[what]:
        assert shared == alone and words in alone


def test_parts_with_one_centre_of_bodies_of_two_processes_are_named(faults):
    assert faults["centres alone"][0].startswith(
        "ValueError: Simulation: body 1 (Clump) and body 2 (Clump) have the same"
    )
    assert faults["centres"] == faults["centres alone"]


def test_more_processes_than_bodies_are_refused(faults):
    assert faults["few"] == ["ClastError: 2 processes are more than the 1 bodies that move; start 1 at the most"] * 2


def test_scenes_that_differ_are_refused(faults):
    for told in faults["differ"] + faults["materials"] + faults["options"]:
        assert told.startswith("ClastError: the processes describe different scenes: rank 0 has ")
        assert "rank 1 has" in told


def test_a_process_that_has_no_body_left_goes_on(faults):
    for shared, alone in faults["empty"]:
        assert shared == alone


def test_one_process_may_ask_for_the_contacts_of_a_few_bodies(faults):
    assert faults["one asks"] == [7, 7]


def test_versions_that_differ_are_named(faults):
    assert (
        faults["versions"]
        == ["ClastError: versions differ: rank 0 has numba 1.0, rank 1 has 1.1; install the same everywhere"] * 2
    )


def test_a_file_that_the_first_cannot_write_is_a_fault_of_all(faults):
    first, second = faults["write"]
    assert first == second and first.startswith(("NotADirectoryError", "NotWritten", "FileExistsError"))


def test_a_disk_that_is_full_half_way_is_a_fault_of_all_and_leaves_the_file_before(faults):
    for told, after in faults["full"]:
        assert told.startswith("NotWritten") and "no space left" in told and after == 3


@pytest.fixture(scope="module")
def two(tmp_path_factory):
    """Folder of a run of two processes, which had kernels compiled side by side first; and what they said."""
    out = tmp_path_factory.mktemp("two") / "run"
    command = ["-m", "clast", "run", "drum", "--count", "60", "--until", "0.004", "--every", "0.002", "--output", out]
    done = start(2, *command, workers=2, timeout=300)
    assert done.returncode == 0, done.stderr
    return out, done


@pytest.fixture(scope="module")
def one(tmp_path_factory):
    """The same by one process: folder and simulation."""
    out, sim = tmp_path_factory.mktemp("one") / "run", SCENES["drum"](count=60).simulation()
    sim.run(until=0.004, every=0.002, output=out, progress=False)
    return out, sim


def same(sim, other):
    return all(np.array_equal(mine, yours) for mine, yours in zip(sim.bodies, other.bodies, strict=True))


def test_a_kernel_that_one_process_misses_asks_no_other_for_its_bodies():
    program = (
        "from clast.kernels import reached; from clast.scenes import SCENES; "
        "sim = SCENES['two-particles']().simulation(); assert not reached.missing"
    )
    done = start(2, "-c", program, workers=2, timeout=120)
    assert done.returncode == 0, done.stderr


def test_a_run_of_two_processes_has_one_folder_and_one_report(one, two):
    (alone, _), (shared, done) = one, two
    assert done.stdout.count("simulated") == 1 and done.stdout.count("processes  2 with ") == 1
    assert done.stderr.count("100 %") == 1
    again = start(2, "-m", "clast", "report", shared, "--numbers", timeout=60)
    assert again.stdout.count("processes: ghosts of each") == 1 and again.returncode == 0
    told = json.loads((shared / "report.json").read_text())
    assert sum(told["ranks"]["bodies"]) == told["bodies"] == 60 and min(told["ranks"]["ghosts"]) > 0
    with Trajectory(alone / "trajectory.h5") as mine, Trajectory(shared / "trajectory.h5") as yours:
        assert len(mine) == len(yours) == 3
        for name, values in mine.series().items():
            assert np.array_equal(values, yours.series()[name]), name


def test_a_run_of_two_processes_goes_on_with_one_and_with_two_that_compile_first(one, two):
    (_, alone), (shared, _) = one, two
    sim = clast.resume(shared)
    for each in (alone, sim):
        each.step(20)
    assert same(alone, sim)
    done = start(2, "-m", "clast", "run", "--resume", shared, "--until", alone.time, workers=2, timeout=300)
    assert done.returncode == 0, done.stderr
    late = clast.resume(shared)
    assert late.steps == alone.steps and same(alone, late)


def test_a_body_that_goes_farther_than_a_tile_in_a_step_is_named_by_all(faults):
    for shared, alone in faults["fast"]:
        assert shared == alone and "in one step, farther than a typical radius" in alone


@pytest.mark.parametrize("what", ["die", "stop", "memory"])
def test_a_process_that_is_killed_or_stopped_alone_ends_all_and_leaves_the_last_checkpoint(tmp_path, what):
    done = start(2, HERE / "ranks_faults.py", what, tmp_path, timeout=300)
    assert done.returncode != 0
    assert what != "memory" or "Unable to allocate" in done.stderr
    assert clast.resume(tmp_path / "run").steps >= 10


@pytest.mark.parametrize(
    ("words", "code"), [(["new", "abc"], 0), (["new", "1abc"], 2), (["--version"], 0), (["report", "nowhere"], 2)]
)
def test_what_processes_do_not_do_together_is_done_by_the_first_alone(tmp_path, words, code):
    done = start(2, "-m", "clast", *words, timeout=60, cwd=tmp_path)
    said = done.stdout + done.stderr
    assert done.returncode == code and (words != ["--version"] or said.count("clast 0") == 1)
    assert len(done.stderr.splitlines()) == (code > 0) and len(list(tmp_path.iterdir())) == 2 * (words[1:] == ["abc"])


def test_the_command_line_knows_what_launchers_set():
    assert set(LAUNCHED) == {*team.SIZES, team.RANK}


@pytest.mark.parametrize(
    ("told", "first"),
    [
        ({}, True),
        ({"PMI_SIZE": "2", "PMI_RANK": "0"}, True),
        ({"PMI_SIZE": "2", "PMI_RANK": "1"}, False),
        ({"OMPI_COMM_WORLD_SIZE": "12", "OMPI_COMM_WORLD_RANK": "10", "PMIX_RANK": "10"}, False),
        ({"PMIX_RANK": "0"}, True),
        ({"MPI_LOCALNRANKS": "2"}, None),
        ({"SLURM_PROCID": "3"}, True),
    ],
)
def test_the_first_process_is_known_without_mpi(monkeypatch, told, first):
    for name in (*team.SIZES, *team.RANKS):
        monkeypatch.delenv(name, raising=False)
    for name, value in told.items():
        monkeypatch.setenv(name, value)
    assert team.first_launched() is first


@pytest.mark.parametrize(
    ("told", "count"),
    [
        ({}, 1),
        ({"PMI_SIZE": "4"}, 4),
        ({"SLURM_STEP_NUM_TASKS": "3"}, 3),
        ({"PMIX_RANK": "0", "SLURM_STEP_NUM_TASKS": "1"}, 1),
        ({"PMIX_RANK": "1"}, 0),
    ],
)
def test_what_a_launcher_says(monkeypatch, told, count):
    for name in (*team.SIZES, team.RANK):
        monkeypatch.delenv(name, raising=False)
    for name, value in told.items():
        monkeypatch.setenv(name, value)
    assert team.launched() == count


def test_cores_are_divided_among_those_who_may_run_on_them():
    free, left, right = set(range(8)), {0, 1, 2, 3}, {4, 5, 6, 7}
    assert team.threads_for(free, [free] * 2) == 4
    assert team.threads_for(free, [free] * 3) == 2
    assert team.threads_for(left, [left, right]) == 4
    assert team.threads_for(left, [left, left, right]) == 2
    assert team.threads_for({0}, [{0}] * 4) == 1


def test_threads_that_were_asked_for_are_kept(monkeypatch):
    taken = []
    monkeypatch.setattr(numba, "set_num_threads", taken.append)
    monkeypatch.setattr(backend, "_chosen", [False])
    backend.suggest_threads(1)
    backend.set_threads(1)
    backend.suggest_threads(1)
    assert taken == [1, 1]


def test_an_mpi_library_that_is_missing_is_told_in_one_line(monkeypatch):
    class Broken:
        def find_spec(self, name, *_):
            if name.startswith("mpi4py"):
                raise RuntimeError("cannot load MPI library")

    for name in [name for name in sys.modules if name.startswith("mpi4py")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(sys, "meta_path", [Broken(), *sys.meta_path])
    monkeypatch.setattr(team, "_team", [])
    monkeypatch.setenv("PMI_SIZE", "2")
    with pytest.raises(clast.errors.Unavailable, match=r"^2 processes were started, .*cannot load MPI library"):
        team.find()
    assert first_speaks(1) == ""


@pytest.mark.slow
def test_whenever_a_process_is_killed_all_end_and_the_last_checkpoint_loads(tmp_path):
    rng, waited = np.random.default_rng(int.from_bytes(os.urandom(4))), []
    for k in range(20):
        folder = tmp_path / str(k)
        folder.mkdir()
        said = folder / "said.txt"
        with (
            open(said, "w", encoding="utf-8") as errors,
            subprocess.Popen(
                [launcher(), "-n", "2", sys.executable, HERE / "ranks_faults.py", "last", folder],
                stdout=subprocess.DEVNULL,
                stderr=errors,
                env=os.environ | {"NUMBA_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"},
            ) as run,
        ):
            while not (folder / "run" / "checkpoint.h5").exists():
                assert run.poll() is None, said.read_text(encoding="utf-8")
                time.sleep(0.05)
            time.sleep(rng.uniform(0.0, 1.0))
            os.kill(int(rng.choice([int(path.stem) for path in folder.glob("*.pid")])), signal.SIGKILL)
            began = time.monotonic()
            assert run.wait(timeout=30) != 0
            waited.append(time.monotonic() - began)
        assert clast.resume(folder / "run").steps >= 0
    print(f"all ended after {max(waited):.2f} s at the most")


@pytest.mark.slow  # compiles the kernels of all shapes
def test_every_shape_has_the_bits_of_one_process(tmp_path_factory):
    told = states(tmp_path_factory, "shapes")["shapes"]
    for size in (2, 3, 4):
        check(told, size)
    for way in ("2 to 3", "3 to 1"):
        assert told[way] == told["1"][-len(told[way]) :]

"""The command line from end to end: run, stop, go on, look, read."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time

import h5py
import numpy as np
import pytest

from clast.cli import answer
from clast.files import checkpoint
from clast.files.trajectory import Trajectory

RUN = ["run", "box", "--count", "40", "--quiet"]


def command(*arguments):
    return [sys.executable, "-m", "clast", *map(str, arguments)]


def bodies(folder):
    return checkpoint.read(folder / "checkpoint.h5")[0]["bodies"]


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    """A short run that came to its end."""
    folder = tmp_path_factory.mktemp("run") / "out"
    assert answer([*RUN, "--until", "0.02", "--every", "0.005", "--output", str(folder)]) == 0
    return folder


def test_run_leaves_all_it_promises(done):
    files = {file.name for file in done.iterdir()}
    assert files == {
        "checkpoint.h5",
        "checkpoint.previous.h5",
        "timing.csv",
        "trajectory.h5",
        "report.json",
        "series.csv",
        "run.json",
    }
    report = json.loads((done / "report.json").read_text())
    assert report["steps"] == round(0.02 / 3e-5)


def test_a_run_of_few_steps_needs_no_time_between_frames(tmp_path):
    file = tmp_path / "ball.toml"
    file.write_text("[[bodies]]\nradius = 0.01\nposition = [0, 0, 1]\n[run]\nuntil = 4e-4\ndt = 1e-4\n")
    assert answer(["run", str(file), "--output", str(tmp_path / "out"), "--quiet"]) == 0
    with Trajectory(tmp_path / "out" / "trajectory.h5") as frames:
        assert [frame.step for frame in frames] == [0, 1, 2, 3, 4]


def test_report(done, capsys):
    assert answer(["report", str(done)]) == 0
    assert "steps" in capsys.readouterr().out


def test_render(done, tmp_path, capsys):
    pytest.importorskip("pyvista")
    picture = tmp_path / "picture.png"
    code = answer(["render", str(done), "--picture", str(picture), "--size", "400x300"])
    if "display" in (said := capsys.readouterr().err).lower():
        pytest.skip("no way to draw on this machine")
    assert code == 0, said
    assert picture.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
    assert picture.stat().st_size > 5000
    assert picture.read_bytes()[16:24] == (400).to_bytes(4, "big") + (300).to_bytes(4, "big")


def test_run_to_a_later_time(done, tmp_path):
    """Stopping at one time and going on to another gives the bits of one run."""
    folder = tmp_path / "out"
    shutil.copytree(done, folder)
    assert answer(["run", "--resume", str(folder), "--until", "0.03", "--quiet"]) == 0
    whole = tmp_path / "whole"
    assert answer([*RUN, "--until", "0.03", "--every", "0.005", "--output", str(whole)]) == 0
    for name, column in bodies(whole).items():
        assert column.tobytes() == bodies(folder)[name].tobytes(), name


@pytest.mark.parametrize("kind", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.skipif(os.name == "nt", reason="signals of this kind are not there")
def test_stop_and_go_on(kind, tmp_path):
    folder = tmp_path / "out"
    # So long that no machine comes to the end before it is stopped.
    process = subprocess.Popen(
        command(*RUN, "--until", "900", "--every", "0.003", "--output", folder), stderr=subprocess.PIPE, text=True
    )
    try:
        limit = time.monotonic() + 200.0
        while not (folder / "checkpoint.previous.h5").exists() and time.monotonic() < limit:
            assert process.poll() is None
            time.sleep(0.05)
        process.send_signal(kind)
        _, said = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 130, said
    assert len(said.strip().splitlines()) == 1
    assert f"clast run --resume {folder}" in said
    assert "Traceback" not in said
    saved = checkpoint.read(folder / "checkpoint.h5")[1]["simulation"]
    assert saved["steps"] > 0
    assert f"t = {saved['steps'] * saved['dt']:.6g} s" in said
    # Both roads to the same, later time.
    end = saved["steps"] * saved["dt"] + 0.01
    assert answer(["run", "--resume", str(folder), "--until", repr(end), "--quiet"]) == 0
    whole = tmp_path / "whole"
    assert answer([*RUN, "--until", repr(end), "--every", repr(end), "--output", str(whole)]) == 0
    assert checkpoint.read(whole / "checkpoint.h5")[1]["simulation"]["steps"] > saved["steps"]
    for name, column in bodies(whole).items():
        assert column.tobytes() == bodies(folder)[name].tobytes(), name


def test_damaged_checkpoint_goes_on_from_the_one_before(done, tmp_path, capsys):
    folder = tmp_path / "out"
    shutil.copytree(done, folder)
    with h5py.File(folder / "checkpoint.h5", "r+") as file:
        file["groups/bodies/velocity"][3, 1] = 0.125
    assert answer(["run", "--resume", str(folder), "--until", "0.03", "--quiet"]) == 0
    assert "checkpoint.previous.h5" in capsys.readouterr().err
    assert np.isfinite(bodies(folder)["position"]).all()


WRONG = {
    "no such scene": (["run", "drumm"], "did you mean 'drum'"),
    "no scene": (["run"], "which scene"),
    "no file": (["run", "nowhere.toml"], "nowhere.toml"),
    "until": (["run", "box", "--until", "-1"], "above 0"),
    "count": (["run", "box", "--count", "0"], "1 or more"),
    "step": (["run", "box", "--count", "20", "--dt", "1"], "allows"),
    "device": (["run", "box", "--count", "20", "--device", "gpu"], "cpu or cuda"),
    "no cuda": (["run", "box", "--count", "20", "--device", "cuda"], "cuda"),
    "threads": (["run", "box", "--count", "20", "--threads", "100000"], "threads"),
    "nothing to resume": (["run", "--resume", "nowhere"], "no checkpoint"),
    "resume and more": (["run", "box", "--resume", "nowhere"], "leave out SCENE"),
    "nothing to show": (["render", "nowhere"], "no such folder"),
    "nothing to tell": (["report", "nowhere"], "no such folder"),
    "unknown option": (["run", "box", "--fast"], "--fast"),
    "unknown command": (["walk"], "walk"),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_input_is_one_line(name, tmp_path, monkeypatch, capsys):
    arguments, words = WRONG[name]
    monkeypatch.chdir(tmp_path)
    assert answer(arguments) == 2
    said = capsys.readouterr().err
    assert len(said.strip().splitlines()) == 1
    assert words in said
    assert list(tmp_path.iterdir()) == []


def test_doubtful_step_is_said(tmp_path, capsys):
    arguments = ["run", "box", "--count", "20", "--until", "0.001", "--dt", "1e-4", "--output", str(tmp_path / "out")]
    assert answer([*arguments, "--quiet"]) == 0
    said = capsys.readouterr().err
    assert "warning" in said
    assert "0.0001 s" in said


def test_earlier_run_is_not_overwritten(done, capsys):
    before = (done / "checkpoint.h5").read_bytes()
    assert answer([*RUN, "--until", "0.02", "--output", str(done)]) == 2
    assert "--overwrite" in capsys.readouterr().err
    assert (done / "checkpoint.h5").read_bytes() == before


def test_run_that_fails(tmp_path, capsys):
    """A body that leaves the world ends the run with code 1, one line and a checkpoint."""
    file = tmp_path / "fall.toml"
    file.write_text(
        """
[scene]
world = [[-1, -1, -0.2], [1, 1, 1]]

[[bodies]]
kind = "sphere"
radius = 0.01
position = [0, 0, 0]

[run]
until = 1.0
every = 0.05
"""
    )
    code = answer(["run", str(file), "--output", str(tmp_path / "out"), "--quiet"])
    said = capsys.readouterr().err
    assert code == 1, said
    assert len(said.strip().splitlines()) == 1
    assert "left the world" in said
    assert (tmp_path / "out" / "checkpoint.h5").exists()

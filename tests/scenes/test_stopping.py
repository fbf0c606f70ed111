"""Signals while kernels are compiled: the process ends at once, says so, and leaves a folder that can go on."""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import clast
from clast.cli import answer
from clast.errors import ClastError
from clast.files import checkpoint
from clast.files.trajectory import Trajectory
from clast.kernels import backend, watch

pytestmark = pytest.mark.skipif(os.name == "nt", reason="signals of this kind are not there")
BALLS = """
[[walls]]
kind = "plane"
[[bodies]]
radius = 0.01
position = [0.0, 0.0, 0.0099]
[[bodies]]
radius = 0.01
position = [0.0199, 0.0, 0.0099]
[run]
until = 4e-4
every = 2e-4
"""


PROC = Path("/proc/self/stat").exists()
MOST = 0.5  # [s] of processor time that all processes of a command take at the most after the signal: they took 0.03 to 0.1, a kernel up to 13


def table():
    """{process: (its parent, processor time [s] of it and of those that it has waited for)} of all that run."""
    found = {}
    for path in Path("/proc").glob("[0-9]*/stat") if PROC else ():
        try:
            state, parent, *words = path.read_text().rsplit(")", 1)[1].split()
        except OSError:  # it has ended meanwhile
            continue
        if state not in "ZX":
            found[int(path.parent.name)] = int(parent), sum(map(int, words[9:13])) / os.sysconf("SC_CLK_TCK")
    return found


def family(process):
    """{process: processor time [s]} of a process and of all that it has begun."""
    known = table()
    own = {process} & set(known)
    while more := {one for one, (parent, _) in known.items() if parent in own} - own:
        own |= more
    return {one: known[one][1] for one in own}


def stopped(arguments, how, cache, workers, after=1.0):
    """(exit code, what was said, kernels that were finished between the signal and the end) of a command that compiles everything and is
    stopped so long [s] after the first kernel is there, by a signal and one more right after it. None of its processes is left then, and together
    they have done next to nothing: that is told by processor time, as others may be at work on the machine."""
    process = subprocess.Popen(
        [sys.executable, "-m", "clast", *map(str, arguments)],
        env=os.environ | {"NUMBA_CACHE_DIR": str(cache), "CLAST_WORKERS": str(workers)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(
            signal.SIGINT, signal.SIG_DFL
        ),  # where tests run in the background it is ignored
    )
    try:
        limit = time.monotonic() + 100.0
        while not any(cache.rglob("*.nbi")) and time.monotonic() < limit:
            assert process.poll() is None
            time.sleep(0.05)
        time.sleep(after)
        assert process.poll() is None
        before, own = len(list(cache.rglob("*.nbi"))), family(process.pid)
        process.send_signal(how)
        time.sleep(0.01)
        process.send_signal(how)
        said = process.stderr.read()
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    finally:
        process.kill()
        process.stderr.close()
    if PROC:
        assert len(own) == (1 + workers if workers else 1), "processes that compile beside the first"
        assert not own.keys() & table().keys(), "processes are left"
        assert used.ru_utime + used.ru_stime - sum(own.values()) < MOST
    return process.returncode, said, len(list(cache.rglob("*.nbi"))) - before


def one_line(said):
    return len(said.strip().splitlines()) == 1 and "Traceback" not in said


@pytest.mark.parametrize("how, workers", [(signal.SIGTERM, 2), (signal.SIGINT, 0)])
def test_a_run_that_is_stopped_while_it_compiles_can_go_on(how, workers, tmp_path):
    folder, file = tmp_path / "out", tmp_path / "balls.toml"
    file.write_text(BALLS)
    arguments = ["run", file, "--output", folder, "--quiet"]
    code, said, later = stopped(arguments, how, tmp_path / "cache", workers)
    assert code == 130, said
    assert one_line(said)
    assert "interrupted while kernels were compiled at t = 0 s" in said
    assert f"clast run --resume {folder}" in said
    assert later <= max(workers, 1)  # those at work that moment; the run needs many more
    assert not checkpoint.read(folder / "checkpoint.h5")[1]["simulation"]["begun"]
    # With the kernels that are there, it goes on as if it had never been stopped.
    assert answer(["run", "--resume", str(folder), "--quiet"]) == 0
    whole = tmp_path / "whole"
    assert answer(["run", str(file), "--output", str(whole), "--quiet"]) == 0
    columns = [checkpoint.read(place / "checkpoint.h5")[0]["bodies"] for place in (folder, whole)]
    for name, column in columns[0].items():
        assert column.tobytes() == columns[1][name].tobytes(), name
    with Trajectory(folder / "trajectory.h5") as frames:
        assert len(list(frames)) == 3


def test_a_scene_that_is_stopped_while_it_is_filled_leaves_nothing(tmp_path):
    file = tmp_path / "many.toml"
    file.write_text("[[fill]]\nradius = 0.01\ncount = 40\nbox = [[0, 0, 0], [0.1, 0.1, 0.1]]\n[run]\nuntil = 1e-3\n")
    arguments = ["run", file, "--output", tmp_path / "out"]
    # At once: a quick machine has compiled all that a filling takes in a second.
    code, said, later = stopped(arguments, signal.SIGTERM, tmp_path / "cache", 0, after=0.0)
    assert code == 130, said
    assert one_line(said)
    assert "interrupted before the scene was built; nothing was written: give the command again" in said
    assert later <= 1
    assert not (tmp_path / "out").exists()


def test_compiling_everything_can_be_stopped(tmp_path):
    code, said, later = stopped(["check", "--compile"], signal.SIGINT, tmp_path / "cache", workers=2)
    assert code == 130, said
    assert one_line(said)
    assert "interrupted; kernels that were compiled so far are kept" in said
    assert later <= 2


def falling():
    scene = clast.Scene()
    scene.add(clast.Plane())
    scene.add(clast.Sphere(0.01), position=[(0, 0, 0.0099), (0.0199, 0, 0.0099)])
    return clast.Simulation(scene)


def test_a_run_in_a_program_is_stopped_by_what_it_watches(tmp_path, monkeypatch):
    sim, done = falling(), threading.Event()

    def compile_long(kernel, count, arguments):
        threading.Timer(0.1, lambda: os.kill(os.getpid(), signal.SIGTERM)).start()
        watch.apart(done.wait, 60.0)
        pytest.fail("nobody stopped it")

    with monkeypatch.context() as patch:
        patch.setattr(backend.CPU, "launch", staticmethod(compile_long))
        with pytest.raises(watch.Stopped, match="SIGTERM while kernels were compiled, at t = 0 s; go on with"):
            sim.run(until=1e-3, every=1e-3, output=tmp_path, progress=False)
    assert watch.abandoned()
    done.set()
    again, never = clast.resume(tmp_path), falling()
    again.run(until=1e-3, every=1e-3, output=tmp_path, progress=False)
    never.run(until=1e-3, every=1e-3, output=tmp_path / "never", progress=False)
    assert np.array_equal(again.bodies.velocity, never.bodies.velocity)


def test_a_step_that_was_interrupted_half_way_is_not_gone_on_with(monkeypatch):
    sim = falling()
    sim.step(2)

    def interrupted(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(type(sim.stepper), "_collide", interrupted)
        with pytest.raises(KeyboardInterrupt):
            sim.step()
    with pytest.raises(ClastError, match="interrupted half way"):
        sim.step()


def test_what_is_compiled_apart_hands_back_what_it_gives_and_what_it_raises():
    assert watch.apart(divmod, 7, 2) == (3, 1)
    with pytest.raises(ZeroDivisionError):
        watch.apart(divmod, 7, 0)
    assert not watch.abandoned()

"""Kernels that processes compile side by side: the right ones, into the cache, and nobody is left behind."""

import contextlib
import fcntl
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numba
import numpy as np
import pytest
from llvmlite import binding
from roads import differences, state

import clast
from clast.dem.sphere_pairs import ball_block
from clast.kernels import ahead, backend, own, primitives, reached, watch
from clast.kernels.launch import free_block
from clast.narrow import dispatch
from clast.run.rehearsal import rehearse


def lined_up(*shapes, walls=(), method=None, apart=0.0198, **options):
    """Bodies in a row that overlap a little, on walls."""
    scene = clast.Scene(**options)
    for wall, place in walls:
        scene.add(wall, position=place)
    for k in range(6):
        scene.add(shapes[k % len(shapes)], position=(apart * k, 0.0, 0.0098))
    return clast.Simulation(scene, method or clast.DEM())


BLADE = clast.Quad([(-0.1, -0.1, 0.0), (0.2, -0.1, 0.0), (0.2, 0.1, 0.0), (-0.1, 0.1, 0.0)])
SCENES = {
    "spheres": lambda: lined_up(clast.Sphere(0.01), walls=[(clast.Plane(), (0, 0, 0))]),
    "clumps": lambda: lined_up(clast.Clump([(0, 0, 0), (0.005, 0, 0)], [0.01, 0.008]), clast.Sphere(0.01)),
    "cubes": lambda: lined_up(clast.Polyhedron.box(0.02, 0.02, 0.02), walls=[(BLADE, (0, 0, 0))]),
    "hard": lambda: lined_up(
        clast.Sphere(0.01), walls=[(clast.Plane(), (0, 0, 0))], method=clast.Complementarity(), apart=0.0201
    ),
}


@pytest.mark.parametrize("name", SCENES)
def test_a_rehearsal_hears_what_the_run_launches(name, monkeypatch):
    sim, launched, launch = SCENES[name](), set(), backend.CPU.launch

    def listen(kernel, count, arguments):
        if (count[-1] if kernel.phased else count) > 0:
            run = kernel.loop.run
            launched.add((kernel.name, kernel.loop.types(arguments)))
            launched.add((run._cache.name, tuple(map(run.typeof_pyval, (0, 0, count, 0)))))
            launched.add((free_block._cache.name, (numba.int64,)))
        launch(kernel, count, arguments)

    with monkeypatch.context() as patch:
        patch.setattr(backend.CPU, "launch", staticmethod(listen))
        sim.step(2)
    patch = monkeypatch.setattr
    patch(reached.Store, "holds", lambda *_: False)
    patch(ahead.Rehearsal, "note", forgetful(ahead.Rehearsal.note))
    heard = {(task.name, task.types) for task in rehearse(sim.scene, sim.method, sim.dt)}
    assert len(launched) > 10
    assert launched <= heard


def forgetful(note):
    """`Rehearsal.note` for a process that has compiled nothing."""

    def listen(self, compiled, types, place, title):
        kept, compiled.overloads = compiled.overloads, {}
        try:
            return note(self, compiled, types, place, title)
        finally:
            compiled.overloads = kept

    return listen


def test_a_rehearsal_leaves_no_trace(monkeypatch):
    monkeypatch.setattr(ahead.Rehearsal, "note", lambda *_: False)  # everything runs as plain Python
    one, other = SCENES["cubes"](), SCENES["cubes"]()
    for sim in (one, other):
        sim.step(3)
    rehearse(one.scene, one.method, one.dt)
    for sim in (one, other):
        sim.step(3)
    assert not differences(state(one), state(other))


def test_a_rehearsal_within_a_rehearsal_compiles_nothing(monkeypatch):
    """What is missing while one listens is put down; other processes beside those that it will have would compile the same."""
    monkeypatch.setenv("CLAST_WORKERS", "2")
    asked = []
    with ahead.listening():
        ahead.when_missing(lambda: asked.append("missing") or [])
        ahead.compile_now(lambda: asked.append("now") or [])
        assert reached.missing == asked == []
    ahead.compile_now(lambda: asked.append("now") or [])
    assert asked == ["now"]


def test_another_process_finds_what_it_is_sent():
    sim = SCENES["cubes"]()
    places = []
    with ahead.listening() as heard:
        heard.note = lambda compiled, types, place, title: places.append((place(), compiled)) or False
        rehearse(sim.scene, sim.method, sim.dt)
    assert len(places) > 15
    for place, compiled in places:
        assert ahead.dispatcher(place) == (compiled, compiled._cache.name)


def test_what_only_this_process_knows_is_not_sent():
    def law(touch, mix, dt):
        return touch.overlap, (0.0, 0.0, 0.0), touch.slip

    assert ahead.address(law) is None
    assert ahead.kernel_address(backend.kernel(ball_block, law=law)) is None


# Two small kernels for a cache that is empty.
SMALL = """
import numpy as np
from clast.kernels import ahead, backend, primitives, reached
with ahead.listening() as heard:
    primitives.scan(np.ones(5, np.int32))
    primitives.group(np.ones(5, np.int32), 3)
print(len(heard.tasks))
ahead.when_missing(lambda: list(heard.tasks.values()))
print(*primitives.scan(np.ones(5, np.int32)), len(backend.compiled()))
with ahead.listening() as heard:
    primitives.group(np.ones(5, np.int32), 3)
print(len(heard.tasks))
"""


def python(program, **surroundings):
    command = [sys.executable, "-c", program]
    return subprocess.Popen(command, env=os.environ | surroundings, stdout=subprocess.PIPE, text=True)


@pytest.mark.parametrize("workers", [0, 2])
def test_processes_fill_the_cache(workers, tmp_path):
    done = python(SMALL, NUMBA_CACHE_DIR=str(tmp_path), CLAST_WORKERS=str(workers))
    words = done.communicate(timeout=200)[0].split("\n")
    # Without processes one kernel was compiled when it was called; with them both were, and the second is at hand.
    assert words[:3] == (["2", "0 1 2 3 4 5 2", "0"] if workers else ["2", "0 1 2 3 4 5 1", "1"])


# Waits for the others, so that all come to the same kernel at the same moment.
TOGETHER = """
import sys, time
import numpy as np
from clast.kernels import backend, primitives
print(flush=True)
sys.stdin.readline()
print(*primitives.scan(np.ones(5, np.int32)), len(backend.compiled()))
"""


def test_one_of_many_processes_compiles_what_all_need(tmp_path):
    surroundings = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True, "env": surroundings}
    started = [subprocess.Popen([sys.executable, "-c", TOGETHER], **pipes) for _ in range(3)]
    for process in started:
        process.stdout.readline()
    for process in started:
        process.stdin.write("\n")
        process.stdin.flush()
    told = [process.communicate(timeout=200)[0].split() for process in started]
    assert all(words[:6] == ["0", "1", "2", "3", "4", "5"] for words in told)
    assert sorted(words[6] for words in told) == ["0", "0", "1"]


def test_who_waits_in_vain_for_a_lock_goes_on(tmp_path):
    """Where the other process hangs, or a folder cannot hold locks."""
    holder = python(
        f"import time\nfrom clast.kernels.reached import one_at_a_time\nwith one_at_a_time({str(tmp_path)!r}, 'it'):\n print(flush=True)\n time.sleep(60)"
    )
    holder.stdout.readline()
    (tmp_path / "file").touch()
    for folder, name, patience in (
        (tmp_path, "it", 0.3),
        (tmp_path, "other", 60.0),
        (tmp_path / "file" / "x", "it", 60.0),
    ):
        began = time.monotonic()
        with reached.one_at_a_time(str(folder), name, patience):
            waited = time.monotonic() - began
        assert (waited > 0.3) == (patience < 60.0) and waited < 30.0
    holder.kill()
    holder.communicate()


# A kernel that takes long.
LONG = """
import os, signal, threading, clast
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell that runs tests in the background has it ignored
from clast.kernels import ahead
from clast.run.rehearsal import rehearse
scene = clast.Scene()
scene.add(clast.Polyhedron.box(0.02, 0.02, 0.02), position=[(0, 0, 0), (0.0198, 0, 0)])
sim = clast.Simulation(scene)
tasks = rehearse(sim.scene, sim.method, sim.dt)
start = ahead.start_worker
def told():
    process = start()
    print(process.pid, flush=True)
    return process
ahead.start_worker = told
try:
    ahead.compile_all(tasks, lambda title, done: None)
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""


def running(process):
    """Whether a process that is no child of this one runs."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[0] not in "ZX"
    except OSError:
        return False


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks for processes in /proc")
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_nobody_goes_on_when_the_first_process_is_stopped(how, tmp_path):
    parent = python(LONG, NUMBA_CACHE_DIR=str(tmp_path), CLAST_WORKERS="2")
    children = [int(parent.stdout.readline()) for _ in range(2)]
    time.sleep(1.5)
    assert all(map(running, children))
    before, began = len(list(tmp_path.rglob("*.nbi"))), time.monotonic()
    parent.send_signal(how)
    rest = parent.communicate(timeout=60)[0]
    # Who is interrupted ends the others first. When it was killed they see that nobody is there any more, however busy the machine is.
    while how == signal.SIGKILL and any(map(running, children)) and time.monotonic() - began < 10.0:
        time.sleep(0.02)
    assert not any(map(running, children))
    assert len(list(tmp_path.rglob("*.nbi"))) - before <= 2  # those that were at work that moment, of many
    assert (rest.strip() == "interrupted") == (how == signal.SIGINT)


def test_who_waits_for_a_compiler_stops_at_the_next_look(monkeypatch):
    """Looks are counted, and processes that would work for ten minutes stand for compilers: so it does not matter how quick the machine is."""
    begun, looks = [], []

    def start():
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        begun.append(subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600.0)"], **pipes))
        return begun[-1]

    def asked():
        looks.append(all(process.poll() is None for process in begun))
        return len(looks) == 3

    monkeypatch.setattr(ahead, "start_worker", start)
    assert watch.REFRESH <= 0.1  # [s] between two looks
    with watch.watching(None, asked), pytest.raises(watch.Stopped):
        with ahead.Workshop(2, lambda title, done: None) as shop:
            shop.add([ahead.Task(("function", "clast", name), name, (), name, 1) for name in "abc"])
            shop.finish()
    assert looks == [True] * 3  # nobody was asked again
    assert len(begun) == 2 and all(process.returncode is not None for process in begun)
    for thread in shop.threads:
        thread.join(60.0)
    assert not any(thread.is_alive() for thread in shop.threads)
    for process in begun:
        process.communicate()
    looks.clear()
    done = threading.Event()
    with watch.watching(None, asked), pytest.raises(watch.Stopped):
        watch.apart(done.wait, 600.0)
    assert looks == [False] * 3 and watch.abandoned()
    done.set()


def test_primitives_in_plain_python():
    key = np.random.default_rng(1).integers(0, 9, 100).astype(np.int32)
    real = *primitives.group(key, 9), primitives.scan(key)
    with ahead.listening() as heard:
        heard.note = lambda *_: False
        plain = *primitives.group(key, 9), primitives.scan(key)
    for one, other in zip(real, plain, strict=True):
        assert np.array_equal(one, other) and one.dtype == other.dtype


def has(features):
    """Whether this processor has these features."""
    here = binding.get_host_cpu_features()
    return all(here.get(feature.removeprefix("+")) for feature in features.split(","))


# Two small kernels: what they give, how many were compiled.
USED = """
import numpy as np
from clast.kernels import backend, primitives
print(*primitives.scan(np.ones(3, np.int32)), *primitives.group(np.array([1, 0, 1], np.int32), 2)[1], len(backend.compiled()))
"""
LEVEL = {"NUMBA_CPU_NAME": "x86-64-v3", "NUMBA_CPU_FEATURES": "+avx2,+fma,+bmi2"}


# A kernel: what it gives, how many functions were compiled for it, how many came with the package, and of how many another process was told.
ONE = """
import numpy as np
from clast.kernels import backend, own, reached
from clast.narrow.dispatch import keep_row
pair, kept, apart = np.array([[3, 4], [5, 6]], np.int32), np.zeros((2, 2), np.int32), np.zeros(2)
backend.kernel(keep_row)(2, pair, np.ones(2), np.array([1, 0], np.int32), kept, apart)
print(*kept.ravel(), len(backend.compiled()), len(reached.brought))
own.compile_own()
print(*own.begun)
"""


def package(folder, program):
    """The package in a folder, with the kernels in it that a program uses; what the program prints when it is run there, with what
    surroundings."""
    shutil.copytree(Path(clast.__file__).parent, folder / "clast", ignore=shutil.ignore_patterns("__pycache__"))
    copy = {"PYTHONPATH": str(folder), "CLAST_WORKERS": "0"}
    build = copy | LEVEL | {"NUMBA_CACHE_DIR": str(folder / "build")}
    told = python(program, **build).communicate(timeout=200)[0].strip()
    command = [sys.executable, "-m", "clast.kernels.shipped", folder / "build"]
    subprocess.run(command, env=os.environ | build, check=True, stdout=subprocess.DEVNULL)
    return told, copy


@pytest.mark.skipif(not has(LEVEL["NUMBA_CPU_FEATURES"]), reason="this processor is below the level x86-64-v3")
def test_kernels_that_come_with_the_package_are_used_where_they_fit(tmp_path):
    answer = "0 1 2 3 1 0 2"
    told, copy = package(tmp_path, USED)
    assert told == f"{answer} 2"
    fresh = copy | {"NUMBA_CACHE_DIR": str(tmp_path / "fresh")}
    assert python(USED, **fresh).communicate(timeout=200)[0].strip() == f"{answer} 0"
    level = tmp_path / "clast" / "kernels" / "compiled" / "level.json"
    text = level.read_text()
    for other in (text.replace("+avx2", "+avx1024"), text.replace("(3,", "(2,")):
        assert other != text
        level.write_text(other)
        folder = {"NUMBA_CACHE_DIR": str(tmp_path / f"other{len(other)}{hash(other)}")}
        assert python(USED, **copy, **folder).communicate(timeout=200)[0].strip() == f"{answer} 2"


@pytest.mark.skipif(not has(LEVEL["NUMBA_CPU_FEATURES"]), reason="this processor is below the level x86-64-v3")
def test_kernels_that_came_with_the_package_are_compiled_for_this_processor_after_their_first_use(tmp_path):
    answer = "5 6 3 4"
    told, copy = package(tmp_path, ONE)
    assert told == f"{answer} 3 0"  # the kernel, what launches it and what tidies up
    fresh = tmp_path / "fresh"
    start = copy | {"NUMBA_CACHE_DIR": str(fresh)}

    def runs(**more):
        return python(ONE, **start | more).communicate(timeout=60)[0].strip().splitlines()

    assert runs() == [f"{answer} 0 3"]  # CLAST_WORKERS=0: nothing is compiled elsewhere
    assert runs(CLAST_WORKERS="1") == [f"{answer} 0 3", "3"]
    until = time.monotonic() + 60.0
    while len(list(fresh.rglob("*.nbc"))) < 3 and time.monotonic() < until:
        time.sleep(0.1)
    # What is on the disk is read also while another process compiles.
    with contextlib.ExitStack() as stack:
        for held in fresh.rglob("compiling.lock"):
            fcntl.lockf(stack.enter_context(held.open("r+")), fcntl.LOCK_EX)
        assert runs() == [f"{answer} 0 0"]


@pytest.fixture
def one_brought(monkeypatch):
    """As if a kernel had come with the package, and processes were wanted."""
    kernel = backend.kernel(dispatch.keep_row)
    pair, kept, apart = np.array([[3, 4]], np.int32), np.zeros((1, 2), np.int32), np.zeros(1)
    kernel(1, pair, np.ones(1), np.array([0], np.int32), kept, apart)
    monkeypatch.setenv("CLAST_WORKERS", "1")
    monkeypatch.setattr(reached, "brought", [(kernel.loop.compiled._cache, ())])
    monkeypatch.setattr(own, "begun", [])


@pytest.mark.parametrize("program", ["/nowhere/python", "", None])
def test_a_run_ends_well_where_no_other_process_can_be_begun(one_brought, monkeypatch, program):
    monkeypatch.setattr(sys, "executable", program)
    own.compile_own()
    assert not own.begun and not reached.brought


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks at processes in /proc")
def test_nothing_is_left_of_the_process_that_compiles_for_this_processor(one_brought, monkeypatch):
    reader = [sys.executable, "-c", "import sys; sys.stdin.buffer.read()"]
    begun = []
    monkeypatch.setattr(own, "start", lambda *_, **__: begun.append(subprocess.Popen(reader, stdin=-1)) or begun[-1])
    own.compile_own()
    until = time.monotonic() + 60.0
    while Path(f"/proc/{begun[0].pid}").exists() and time.monotonic() < until:
        time.sleep(0.01)
    assert own.begun == [1] and not Path(f"/proc/{begun[0].pid}").exists()

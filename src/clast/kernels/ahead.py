"""Kernels compiled side by side in processes, before they are needed.

Which kernels a run needs, and with which types, is known only when they are launched. So when the first one is missing on the disk, a
rehearsal is held: a few bodies take their steps with rows run as plain Python (`listening`), and what is launched is put down.
Processes then compile that list into the disk cache, from which this process loads as in any later run. What the rehearsal
did not see, and what only this process knows (a law from a notebook), is compiled when it is needed.

CLAST_WORKERS says how many processes; 0 switches all this off.
"""

import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from importlib import import_module
from typing import Any

import numba
import numpy as np

from . import backend, reached, watch
from .launch import free_block
from .library import Outer

PATIENCE = 6.0  # [s], at the most, for a rehearsal


def workers():
    """Processes to compile with: CLAST_WORKERS, else one a core; 0 where nothing is to be done side by side."""
    given = os.environ.get("CLAST_WORKERS", "")
    if given.isdigit():
        return int(given)
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return cores if cores > 1 else 0


class Enough(BaseException):
    """The rehearsal takes too long."""


class Task:
    """A function to compile for these types: how another process finds it, its name for people, and how long it may take."""

    def __init__(self, place, name, types, title, size):
        self.place, self.name, self.types, self.title, self.size = place, name, types, title, size

    def do(self):
        """Compile it into the disk cache; whether that was possible."""
        compiled, name = dispatcher(self.place)
        if name == self.name:
            compiled.compile(self.types)
        return name == self.name


def address(value):
    """How another process finds a function or a number: a tuple for `find`; None where it cannot."""
    if isinstance(value, bool | int | float | str | type(None)):
        return ("value", value)
    if isinstance(value, tuple):
        parts = tuple(map(address, value))
        return None if None in parts else ("tuple", parts)
    if (made := getattr(value, "made", None)) is not None:
        parts = address(made)
        return None if parts is None else ("made", parts)
    module, name = getattr(value, "__module__", None), getattr(value, "__qualname__", None)
    if (
        not module
        or not name
        or not module.startswith("clast.")
        or getattr(sys.modules.get(module), name, None) is not value
    ):
        return None
    return ("function", module, name)


def find(place):
    """What `address` was asked for."""
    form, *rest = place
    if form == "function":
        return getattr(import_module(rest[0]), rest[1])
    if form == "made":
        maker, arguments = find(rest[0])
        return maker(*arguments)
    return rest[0] if form == "value" else tuple(map(find, rest[0]))


def kernel_address(kernel):
    """How another process makes this kernel, or None."""
    row = address(kernel.row)
    bound = {name: address(value) for name, value in kernel.bound.items()}
    if row is None or None in bound.values():
        return None
    fastmath = kernel.row_flags["fastmath"]
    flags = sorted(fastmath) if fastmath else False
    return ("kernel", row, bound, flags, kernel.grain, kernel.row_flags["_nrt"], kernel.phased)


def dispatcher(place):
    """The function to compile that is found at this address, and its name."""
    if place[0] == "function":
        found = find(place)
        return found, found._cache.name
    _, row, bound, flags, grain, allocates, phased = place
    bound = {name: find(value) for name, value in bound.items()}
    kernel = backend.kernel(find(row), fastmath=flags, grain=grain, allocates=allocates, phased=phased, **bound)
    return kernel.loop.compiled, kernel.name


class Rehearsal:
    """What was launched while `listening`."""

    def __init__(self):
        self.tasks = {}  # by name and types
        self.launchers = set()  # what launches have called besides their kernels
        self.begin()

    def begin(self):
        """From now on the time is counted that it may take."""
        self.until = time.monotonic() + PATIENCE

    def go_on(self):
        """Raise if it takes too long, or if somebody wants to stop."""
        if time.monotonic() > self.until:
            raise Enough
        watch.heed()

    def note(self, compiled, types, place, title):
        """Put down a launch; whether it is there already, compiled."""
        self.go_on()
        if compiled.overloads.get(types) is not None or compiled._cache.holds(types, compiled.targetctx):
            return True
        name = compiled._cache.name
        if (name, types) not in self.tasks:
            self.tasks[name, types] = Task(place(), name, types, title, compiled._cache.size)
        return False

    def launch(self, kernel, count, arguments):
        """In place of `backend.CPU.launch`."""
        rows = int(count[-1]) if kernel.phased else int(count)
        if rows <= 0:
            return
        loop = kernel.loop
        for compiled, given in ((loop.run, (0, 0, count, 0)), (free_block, (0,))):
            if compiled not in self.launchers:
                self.launchers.add(compiled)
                self.hear(compiled, given)
        if self.note(loop.compiled, loop.types(arguments), lambda: kernel_address(kernel), kernel.title):
            loop(count, arguments, 1)
            return
        row = backend.bind(kernel.row, **kernel.bound)
        for i in range(rows):
            row(i, *arguments)
            self.go_on()

    def call(self, compiled, arguments):
        """In place of a call of a `reached.stored` function."""
        if self.hear(compiled, arguments):
            return Outer.__call__(compiled, *arguments)
        return backend.bind(compiled.py_func, spread=self.spread)(*arguments)

    def spread(self, row, first, last, threads, arguments):
        """In place of `spread`."""
        for i in range(first, last):
            row(i, *arguments)
            self.go_on()

    def hear(self, compiled, arguments):
        """Put down a call of a function that is no kernel; whether it is there already, compiled."""
        types = tuple(map(compiled.typeof_pyval, arguments))
        return self.note(compiled, types, lambda: address(compiled), compiled.py_func.__name__)


_heard: list = []  # the Rehearsal that goes on


def plain_spread(row, first, last, threads, arguments):
    """`spread` in plain Python."""
    for i in range(first, last):
        row(i, *arguments)


@contextmanager
def listening():
    """Within the block this thread runs kernels as plain Python, and a Rehearsal puts down which."""
    own, launch = threading.get_ident(), backend.CPU.launch
    if backend.PLAIN[0] == own:  # already
        yield _heard[-1]
        return
    rehearsal = Rehearsal()

    def listen(kernel, count, arguments):
        (rehearsal.launch if threading.get_ident() == own else launch)(kernel, count, arguments)

    class Heard(Outer):
        def __call__(self, *arguments):
            if threading.get_ident() == own:
                return rehearsal.call(self, arguments)
            return super().__call__(*arguments)

    cpu: Any = backend.CPU
    cpu.launch, backend.PLAIN[0] = staticmethod(listen), own
    _heard.append(rehearsal)
    for compiled in reached.STORED:
        compiled.__class__ = Heard
    try:
        with np.errstate(all="ignore"):
            yield rehearsal
    finally:
        for compiled in reached.STORED:
            compiled.__class__ = Outer
        _heard.pop()
        cpu.launch, backend.PLAIN[0] = staticmethod(launch), None


# What a worker runs: the same modules, wherever this process found them.
PROGRAM = "import sys; sys.path[:] = {path!r}; from clast.kernels.ahead import work; work()"
KEPT = ("CACHE_DIR", "CPU_NAME", "CPU_FEATURES")  # settings of numba that a program may have changed


def start_worker():
    """A process that compiles what it is sent."""
    return start(PROGRAM, stdout=subprocess.PIPE)


def start(program, surroundings=None, **options):
    """A process that runs this program, with the modules that this one has, and that compiles alone; surroundings: more of its environment."""
    settings = vars(numba.config)
    env = os.environ | {"CLAST_WORKERS": "0", "NUMBA_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"} | (surroundings or {})
    env |= {f"NUMBA_{name}": str(settings[name]) for name in KEPT if settings.get(name)}
    command = [sys.executable, "-c", program.format(path=sys.path)]
    return subprocess.Popen(command, env=env, stdin=subprocess.PIPE, stderr=subprocess.DEVNULL, **options)


def work():
    """Do what comes by standard input, one after the other, until it ends; tell what came of each, False where it failed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the process that began this ends it
    source, answers = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # nothing else may come between the answers
    waiting, arrived = [], threading.Semaphore(0)

    def read():
        try:
            while True:
                waiting.append(pickle.load(source))
                arrived.release()
        except EOFError:
            os._exit(0)  # at once: nobody waits for what is being compiled

    threading.Thread(target=read, daemon=True).start()
    while True:
        arrived.acquire()
        try:
            done = waiting.pop(0).do()
        except Exception:  # the other process meets it too, and says so
            done = False
        pickle.dump(done, answers)
        answers.flush()


class Workshop:
    """Processes that work off tasks, the longest first, while more may come; leaving the block ends them.

    tell(title, done): called before and after each, from other threads; done: what came of it, False before.
    """

    def __init__(self, count, tell):
        self.count, self.tell = count, tell
        self.tasks, self.closed, self.changed = [], False, threading.Condition()

    def __enter__(self):
        self.processes = [start_worker() for _ in range(self.count)]
        self.threads = [threading.Thread(target=self._serve, args=(p,), daemon=True) for p in self.processes]
        for thread in self.threads:
            thread.start()
        return self

    def add(self, tasks):
        """Have these compiled; those that only this process knows are left out."""
        with self.changed:
            self.tasks.extend(task for task in tasks if task.place is not None)
            self.tasks.sort(key=lambda task: task.size)
            self.changed.notify_all()

    def finish(self):
        """Wait until all is done; signals are heard at once."""
        with self.changed:
            self.closed = True
            self.changed.notify_all()
        while any(thread.is_alive() for thread in self.threads):
            watch.heed()
            time.sleep(watch.REFRESH)

    def _next(self):
        """The next task, or None when there will be none."""
        with self.changed:
            self.changed.wait_for(lambda: self.tasks or self.closed)
            return self.tasks.pop() if self.tasks else None

    def _serve(self, process):
        try:
            while (task := self._next()) is not None:
                self.tell(task.title, False)
                pickle.dump(task, process.stdin)
                process.stdin.flush()
                if done := pickle.load(process.stdout):
                    self.tell(task.title, done)
        except (OSError, EOFError, ValueError):
            return  # it was ended, or it died: what it had is compiled when it is needed

    def __exit__(self, *_):
        with self.changed:
            self.tasks, self.closed = [], True
            self.changed.notify_all()
        for process in self.processes:
            process.kill()
        for process in self.processes:
            process.wait()


def compile_all(tasks, tell):
    """Compile tasks in processes; tell: see Workshop."""
    with Workshop(min(workers(), len(tasks)), tell) as shop:
        shop.add(tasks)
        shop.finish()


def beside():
    """Whether this thread may have kernels compiled side by side. Not within a rehearsal, which puts them down: `clast check --compile` had a second
    set of processes compile all that its first set was at, because what launches call was missing too."""
    plain = backend.SIMULATED or vars(numba.config)["DISABLE_JIT"] or backend.PLAIN[0] == threading.get_ident()
    return workers() > 1 and not plain


def when_missing(rehearse):
    """Call rehearse() -> tasks when the next kernel is not found on the disk, once, and compile these tasks side by side."""
    reached.missing.clear()
    if beside():
        reached.missing.append(lambda: compile_now(rehearse))


def each_when_reached():
    """From now on kernels that are not found on the disk are compiled one by one."""
    reached.missing.clear()


def compile_now(rehearse):
    """Compile the tasks that rehearse() returns, side by side."""
    reached.missing.clear()
    if beside():
        tasks = rehearse()
        if len(tasks) > 1:
            with watch.telling(len(tasks)) as tell:
                compile_all(tasks, tell)

"""Kernels that came with the package are compiled again for this machine's own processor, after a run that used them.

Those of the package make no use of what the processor has beyond the level of the wheel: steps of spheres took 1.23 times as long with them, of cubes 1.18 times
(level x86-64-v3 on an AMD Zen 5). So a process of its own, of the lowest priority, compiles what a run has taken from the package into the user's
cache, where the next start looks first. Twelve scenes, six shapes by both methods, had the same bits with the one and the other.
"""

import os
import pickle
import subprocess
import sys
import threading
from contextlib import suppress

from . import reached
from .ahead import Task, dispatcher, kernel_address, start, workers

# What that process runs: it outlives the one that began it.
PROGRAM = "import os, sys; hasattr(os, 'nice') and os.nice(19); sys.path[:] = {path!r}; from clast.kernels.own import work; work()"

begun: list = []  # how many kernels each of those processes was given


def place_of(store):
    """How another process finds a stored function, or None."""
    if store.kernel is not None:
        return kernel_address(store.kernel)
    module, name = store.of.__module__, store.of.__qualname__
    there = getattr(sys.modules.get(module), name, None)
    return ("function", module, name) if getattr(there, "_cache", None) is store else None


def compile_own():
    """Have what this process took from the package compiled for this processor, by a process that goes on by itself.

    Not with CLAST_WORKERS=0, which says that nothing is to be compiled elsewhere.
    """
    taken, reached.brought[:] = list(reached.brought), []
    tasks = [(place_of(store), store.name, types, store.name, store.size) for store, types in taken]
    tasks = sorted((task for task in tasks if task[0] is not None), key=lambda task: -task[-1])
    if not tasks or workers() == 0 or not sys.executable:
        return
    # The run is over and its results are written: that there is no memory for another process, say, is no fault of it.
    with suppress(OSError, ValueError, pickle.PicklingError):
        process = start(PROGRAM, {"CLAST_SHIPPED": "0"}, stdout=subprocess.DEVNULL, start_new_session=True)
        process.returncode = 0  # nobody asks for it, and Python is not to warn of that
        threading.Thread(target=let_go, args=(process.pid,), daemon=True).start()
        with process.stdin as target:
            pickle.dump([Task(*task) for task in tasks], target)
        begun.append(len(tasks))


def let_go(pid):
    """Wait for the end of a process: without that the system keeps what is left of it as long as this one lives."""
    with suppress(ChildProcessError, AttributeError):
        os.waitpid(pid, 0)


def work():
    """Compile what comes by standard input, if no other process is at such a list: what is left of this one the next run asks for again."""
    tasks = pickle.load(sys.stdin.buffer)
    with reached.one_at_a_time(dispatcher(tasks[0].place)[0]._cache._cache_path, "own", patience=0.0) as alone:
        for task in tasks if alone else ():
            with suppress(Exception):  # then the kernels of the package stay in use
                task.do()

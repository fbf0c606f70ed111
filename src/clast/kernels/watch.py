"""Which kernels are compiled in place of being loaded, who is told of it, and who may end it."""

import threading
import time
from contextlib import contextmanager

TITLES: dict = {}  # of kernels, by their names
REFRESH = 0.05  # [s], between two looks at whether to go on while others compile
STACK = 1 << 26  # bytes; the compiler goes deep, and some systems give threads little


class Stopped(KeyboardInterrupt):
    """Somebody asked to stop while kernels were compiled."""


class _Watch:
    """Counts compilations and tells a listener about each."""

    def __init__(self):
        self.names = []
        self.listener = None
        self.asked = None  # a function that tells whether to stop
        self.abandoned = []  # threads that were compiling when nobody waited any more
        self.depth = 0
        self.expected = 0  # kernels that are being compiled side by side
        self.seconds, self.began = 0.0, 0.0  # wall time of all compilations; when the present one began

    def on_start(self, event):
        self.depth += 1
        if self.depth == 1:
            self.began = time.perf_counter()
            if self.listener is not None:
                self.listener(self._name(event), False)

    def on_end(self, event):
        self.depth -= 1
        if self.depth == 0:
            self.seconds += time.perf_counter() - self.began
            self.names.append(self._name(event))
            if self.listener is not None:
                self.listener(self.names[-1], True)

    @staticmethod
    def _name(event):
        dispatcher = event.data.get("dispatcher") if isinstance(event.data, dict) else None
        name = getattr(getattr(dispatcher, "py_func", None), "__name__", "kernel")
        return TITLES.get(name, name)

    def notify(self, event):
        (self.on_start if event.is_start else self.on_end)(event)


_watch = _Watch()


def _install_watch():
    from numba.core import event

    class Listener(event.Listener):
        def on_start(self, happening):
            _watch.on_start(happening)

        def on_end(self, happening):
            _watch.on_end(happening)

    event.register("numba:compile", Listener())


_install_watch()


def compiled():
    """Names of the kernels that this process compiled, or had compiled, instead of loading them from the cache."""
    return list(_watch.names)


def seconds():
    """Wall time [s] that this process compiled, or waited for others to compile."""
    return _watch.seconds


def expected():
    """How many kernels are being compiled side by side; 0 if not known."""
    return _watch.expected


@contextmanager
def telling(count):
    """Within the block so many kernels are compiled elsewhere: gives a function tell(name, done) for before and after each.

    Where nobody listens, a bar shows it on a terminal."""
    from rich.console import Console
    from rich.progress import Progress

    console, listener, lock = Console(stderr=True), _watch.listener, threading.Lock()
    alone, began = listener is None and console.is_terminal, time.perf_counter()
    _watch.expected = count
    with Progress(console=console, transient=True, disable=not alone) as bar:
        task = bar.add_task("compiling kernels, once", total=count)

        def tell(name, done):
            with lock:
                if done:
                    _watch.names.append(name)
                    bar.advance(task)
                if listener is not None:
                    listener(name, done)

        try:
            yield tell
        finally:
            _watch.expected = 0
            _watch.seconds += time.perf_counter() - began


@contextmanager
def watching(listener, asked=None):
    """Call listener(name, done) before and after each compilation within the block; asked() tells whether to stop compiling."""
    before, _watch.listener, _watch.asked = (_watch.listener, _watch.asked), listener, asked
    try:
        yield
    finally:
        _watch.listener, _watch.asked = before


def heed():
    """Raise Stopped if whoever watches wants to stop; called again and again by all that waits for a compiler."""
    if _watch.asked is not None and _watch.asked():
        raise Stopped


def apart(function, *arguments):
    """Call it in a thread of its own, while this one listens: LLVM works for many seconds without a look at signals.

    Where it is stopped the thread goes on by itself, until it or the process ends.
    """
    answer: list = []

    def call():
        try:
            answer.append((function(*arguments), None))
        except BaseException as fault:
            answer.append((None, fault))

    thread = threading.Thread(target=call, daemon=True)
    before = threading.stack_size(STACK)
    try:
        thread.start()
    finally:
        threading.stack_size(before)
    try:
        while thread.is_alive():
            heed()
            thread.join(REFRESH)
    except BaseException:
        _watch.abandoned.append(thread)
        raise
    value, fault = answer[0]
    if fault is not None:
        raise fault
    return value


def abandoned():
    """Whether a thread still compiles for which nobody waits: then the process should end without tidying up under it."""
    return any(thread.is_alive() for thread in _watch.abandoned)

"""How long this process has compiled kernels, so that the speed of a run can leave it out."""

import time as clock

from numba.core import event


class Compiling(event.Listener):
    """Adds up the wall time of all compilations; one that asks for another counts once."""

    def __init__(self):
        self.seconds = 0.0
        self._depth, self._began = 0, 0.0

    def on_start(self, happening):
        if self._depth == 0:
            self._began = clock.perf_counter()
        self._depth += 1

    def on_end(self, happening):
        self._depth -= 1
        if self._depth == 0:
            self.seconds += clock.perf_counter() - self._began


COMPILING = Compiling()
event.register("numba:compile", COMPILING)

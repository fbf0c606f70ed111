"""A run that is looked on while it goes: the page shows its present state, and can pause it, take a single step, and let it go on."""

import sys
import threading
import time as clock
from collections.abc import Callable
from typing import Any

from ..files import trajectory
from ..run.simulation import Simulation
from .browser import Browser, Moment

SHARE = 0.03  # of the run's time at the most that looking on may take
PACE = 1.0 / 30.0  # [s] of the run between two pictures, or more


class Live(Browser):
    """The page of a simulation that runs. Pass it to `sim.run(..., between=Live(sim))`.

    The state is copied between two steps; the page is brought to it by another thread. How often follows from what that took
    before, so that at most SHARE of the time goes into it; with nobody there nothing is copied. Contacts are collected only while
    they are shown, or while the run is paused.
    """

    def __init__(self, sim: Simulation, **options: Any) -> None:
        self.paused, self.steps_due = False, 0
        self._next, self._cost = 0.0, 0.0
        self._state: Any = None  # Frame that waits to be drawn, or is
        self._faults: set = set()
        self._wake = threading.Event()
        super().__init__(Moment(sim.scene, sim.time, sim.steps), **options)
        self._threads.append(threading.Thread(target=self._paint_states, daemon=True))
        self._threads[-1].start()

    def _controls(self, colour):
        gui = self.server.gui
        with gui.add_folder("Run"):
            self.pause = gui.add_button("pause")
            self.step = gui.add_button("single step")
            self.go = gui.add_button("continue")
        self.pause.on_click(lambda event: self.hold())
        self.step.on_click(lambda event: self.single())
        self.go.on_click(lambda event: self.release())
        super()._controls(colour)
        self.forces.disabled = False
        self.colour.options = (*self.colour.options, "force", "coordination")

    def hold(self) -> None:
        """Pause the run after its present step."""
        self.paused = True

    def single(self) -> None:
        """Take one step and pause again."""
        self.steps_due += 1
        self.paused = True

    def release(self) -> None:
        """Let the run go on."""
        self.paused = False

    def __call__(self, sim: Simulation, stopped: Callable[[], object] = lambda: False) -> None:
        """To be called between steps; waits while the run is paused. stopped: tells whether the run is asked to stop."""
        # Time of the run's own thread: on a busy machine the clock on the wall goes faster than the run, and the share would not hold.
        if self.closed or (not self.paused and clock.thread_time() < self._next):
            return
        if self.server.get_clients() and self._state is None:
            self._take(sim)
        self._next = clock.thread_time() + max(PACE, self._cost / SHARE)
        if not self.paused:
            return
        self._take(sim)
        while self.paused and not self.steps_due and not stopped() and not self.closed:
            # Also where the picture before was still being drawn when this state came.
            if self._state is None and (self.frame.step != sim.steps or (self._wanted() and not self.frame.contacts)):
                self._take(sim)
            clock.sleep(0.01)
        self.steps_due = max(0, self.steps_due - 1)

    def _wanted(self):
        """Whether what is shown needs contacts."""
        return self.forces.value or self.colour.value in ("force", "coordination")

    def _take(self, sim):
        """Copy the present state for the thread that draws."""
        began = clock.thread_time()
        columns = sim.bodies._asdict()
        told = {}
        if self.paused or self._wanted():
            found = sim.contacts()
            told = {name: getattr(found, name) for name in trajectory.CONTACT_COLUMNS}
        self._copied = clock.thread_time() - began
        self._state = trajectory.Frame(sim.time, sim.steps, columns, {}, told)
        self._wake.set()

    def _complain(self, state, fault):
        """Tell on the page and in the terminal, once each, that a state could not be drawn; another one may be waiting by now."""
        if self.closed:  # the server is gone in the midst of it
            return
        words = f"could not be drawn: {type(fault).__name__}: {fault}"
        self.told.content = f"step {state.step:,} {words}"
        if words not in self._faults:
            self._faults.add(words)
            sys.stderr.write(f"clast: step {state.step:,} {words}; the run goes on\n")

    def _paint_states(self):
        while not self.closed:
            if not self._wake.wait(0.2):
                continue
            self._wake.clear()
            state = self._state
            if state is None:
                continue
            began = clock.thread_time()
            self.source.frame = state
            try:
                self.draw(state)
            except Exception as fault:  # the run goes on, and so does the page with the next state
                self._complain(state, fault)
            # Both threads count, and as much again for what the server does to send it.
            self._cost = self._copied + 2.0 * (clock.thread_time() - began)
            self._state = None

"""Runs that write files: frames, checkpoints, and stopping without losing anything."""

import json
import signal
import threading
from contextlib import contextmanager
from dataclasses import asdict

import numpy as np

from ..dem.method import DEM
from ..dvi.method import Complementarity
from ..errors import ClastError, Diverged, path_of
from ..files import checkpoint, disk
from ..kernels import backend, own, watch
from ..mpi.pieces import first_writes
from ..mpi.team import first_does, leads
from ..scene import inputs
from .progress import Progress
from .recording import Record, recording, whole, write_series

METHODS = {"DEM": DEM, "Complementarity": Complementarity}
ELSEWHERE = "a signal to another process"
GLANCE = 0.2  # [s] of wall time between two looks at the progress bar


class Stop:
    """Turns Ctrl-C and SIGTERM into a flag that is looked at between steps."""

    def __init__(self):
        self.asked = None

    def __call__(self, number, frame):
        if self.asked is not None and number == signal.SIGINT:
            raise KeyboardInterrupt("stopped twice; the last checkpoint stands")
        self.asked = signal.Signals(number).name


@contextmanager
def stoppable():
    """Within the block the signals only set a flag; outside the main thread they are left alone."""
    stop = Stop()
    if threading.current_thread() is not threading.main_thread():
        yield stop
        return
    before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class Nothing:
    """A progress bar that shows nothing."""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        return False

    def update(self, **_):
        pass

    def compiling(self, *_):
        pass


def run(sim, *, until, every, output, progress, record=(), text=False, between=None):
    """See Simulation.run."""
    until = inputs.number("Simulation.run", "until", until)
    names = [getattr(name, "__name__", name) for name in record] if isinstance(record, list | tuple) else record
    told = {"until": until, "every": every, "a folder": output is not None, "a record of": names, "text": bool(text)}
    sim.stepper.same_run(**told)
    if not sim.time < until:
        raise ValueError(f"Simulation.run: until = {until} must be later than the present time, {sim.time:g} s")
    every = until - sim.time if every is None else every
    sim.check_times(until, every)
    folder, kept = folder_of(output), Record(sim, record)
    if folder is not None:
        first_does(lambda: make_folder(folder))
    bar = Progress(until=until, start=sim.time) if progress and leads() else Nothing()
    compiled = []

    def tell(name, done):
        compiled.append(name) if done else bar.compiling(name, len(compiled) + 1, watch.expected())

    before, sim.every, first = sim.every, float(every), sim.steps
    with (
        bar,
        stoppable() as stop,
        backend.watching(tell, lambda: stop.asked),
        sim.stepper.listening(lambda: stop.asked is not None, lambda: sim.clock() - sim.glanced > GLANCE),
    ):
        try:
            with recording(sim, folder, kept, before, text) as write:
                for _ in sim.frames(until=until, every=every, between=lambda: glance(sim, bar, stop, between)):
                    if write is not None:
                        # The frame first: after a crash between the two the run goes on from the checkpoint before, and
                        # the frame is made again by the same steps.
                        sim.stepper.together(lambda: refuse_nonsense(sim))
                        write(sim)
                        write_checkpoint(sim, folder / "checkpoint.h5")
                    glance(sim, bar, stop, between if sim.steps == first else None, now=True)
                    if sim.stepper.heard()[0]:
                        break
            stopped = sim.stepper.heard()[0]
        except watch.Stopped:
            # A process that waits for others in the midst of a step was not interrupted: then nothing can be written together.
            if folder is not None and sim.stepper.all_stop() and sim.stepper.fresh:
                write_checkpoint(sim, folder / "checkpoint.h5", begun=False)
            there = folder is not None and (folder / "checkpoint.h5").exists()
            go = f"; go on with clast.resume({str(folder)!r})" if there else ""
            asked = stop.asked or ELSEWHERE
            raise watch.Stopped(f"{asked} while kernels were compiled, at t = {sim.time:.6g} s{go}") from None
        except ClastError as fault:
            if folder is not None and (folder / "checkpoint.h5").exists():
                fault.args = (f"{fault}; the last good state is in {folder / 'checkpoint.h5'}",)
            raise
    if stopped:
        asked = stop.asked or ELSEWHERE
        if folder is not None:
            write_checkpoint(sim, folder / "checkpoint.h5")
            tell_numbers(sim, folder)
            raise KeyboardInterrupt(f"{asked} at t = {sim.time:.6g} s; go on with clast.resume({str(folder)!r})")
        raise KeyboardInterrupt(f"{asked} at t = {sim.time:.6g} s")
    if folder is not None:
        tell_numbers(sim, folder)
    if leads():
        own.compile_own()


def make_folder(folder):
    """Make the folder of a run, without what an earlier one told at its end."""
    with disk.writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "report.json").unlink(missing_ok=True)


def folder_of(output):
    """The folder as a Path; None stays None."""
    return None if output is None else path_of(output, "Simulation.run: output must be the path of a folder")


def tell_numbers(sim, folder):
    """Write report.json, and series.csv from all frames."""
    told = json.dumps(sim.report().as_dict(), indent=2) + "\n"

    def write():
        whole(folder / "report.json", told)
        write_series(folder)

    first_does(write)


def glance(sim, bar, stop, between=None, now=False):
    """Keep the progress bar going, and who looks on; returns whether the run is to stop."""
    if between is not None:
        between(sim, lambda: stop.asked is not None)
    stopping, look = sim.stepper.heard()
    if now or look:
        sim.glanced = sim.clock()
        bar.update(time=sim.time, steps=sim.steps, contacts=sim.touching(), energy=sim.kinetic_energy())
    return stopping


def refuse_nonsense(sim):
    """Raise Diverged if the state of a body is not a number."""
    sim.state.fetch()
    bodies = sim.state.bodies
    columns = bodies.force, bodies.torque, bodies.position, bodies.orientation, bodies.velocity, bodies.spin
    fine = np.logical_and.reduce([np.isfinite(column).all(1) for column in columns])
    if not fine.all():
        number = int(bodies.number[np.argmin(fine)])
        raise Diverged(
            f"body {number} at t = {sim.time:.6g} s: its state is not a number, and no checkpoint was written; "
            "likely a contact law that has no answer, or too large a time step"
        )


def write_checkpoint(sim, path, begun=True):
    """Write all that a run needs to go on with the same bits; begun: False writes the scene of a run that has no contacts yet,
    for which no kernel is needed."""
    if begun:
        sim.start()
    sim.stepper.together(lambda: refuse_nonsense(sim))
    groups, attributes = sim.scene.describe(bodies=False)
    groups |= {"bodies": sim.stepper.table(), "flows": sim.flows.remember()}
    groups |= sim.stepper.remember() if begun else {}
    attributes["simulation"] = {
        "begun": begun,
        "dt": sim.dt,
        "steps": sim.steps,
        "method": type(sim.method).__name__,
        "options": options_of(sim.method),
        "every": sim.every,
    }
    first_writes(lambda: checkpoint.write(path, groups, attributes), groups)


def options_of(method):
    """What the method was made with, as values that fit into JSON; a function is named."""
    values = asdict(method)
    return {name: f"function {v.__name__}" if callable(v) else v for name, v in values.items()}


def method_of(path, numbers, law):
    """The method that a checkpoint tells of; law: the function, if it was the user's own."""
    options = dict(numbers["options"])
    if str(options.get("law", "")).startswith("function "):
        if law is None:
            raise ValueError(f"{path}: the contact law was the {options['law']}, which a file cannot hold; pass law=")
        options["law"] = law
    elif law is not None:
        options["law"] = law
    return METHODS[numbers["method"]](**options)

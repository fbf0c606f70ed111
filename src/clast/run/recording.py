"""What a run keeps beside its frames: numbers over time by name, how long it took, and where particles are as text."""

import os
from contextlib import ExitStack, contextmanager
from typing import Any

import numpy as np

from .. import files, measure
from ..dem.method import DEM
from ..errors import nearest, pick
from ..files import disk, trajectory
from ..files.trajectory import Trajectory
from ..measure.network import shared_coordination
from ..mpi.pieces import first_writes
from ..mpi.team import first_does, first_says
from ..tables import FREE
from .report import made_with

# Frames with more contact points than this leave them out unless asked for: collecting and keeping them would take longer than
# all else that a frame does. 200,000 contacts take about 0.2 s and 9 MB.
KEPT = 200_000


class Moment:
    """The present state of a simulation, each part of it asked for once; since: step of the last frame, -1 before the first."""

    def __init__(self, sim, since):
        self.sim, self.since = sim, since
        self._found = {}

    def _once(self, name, function):
        if name not in self._found:
            self._found[name] = function()
        return self._found[name]

    @property
    def shared(self):
        """Contacts that this process tells of."""
        self.sim.start()
        return self._once("shared", self.sim.stepper.shared_contacts)

    @property
    def contacts(self):
        return self.shared if self.sim.team is None else self._once("contacts", self.sim.contacts)

    @property
    def bodies(self):
        """Bodies that this process tells of."""
        return self._once("bodies", self.sim.stepper.share)

    @property
    def energy(self):
        return self._once("energy", lambda: measure.energy(self.sim))

    @property
    def snapshot(self):
        found = self.contacts
        told = {name: getattr(found, name) for name in ("pair", "point", "normal", "force")}
        return self._once("snapshot", lambda: measure.snapshot(self.sim, contacts=False)._replace(**told))


def _speed(moment):
    fast = np.linalg.norm(moment.bodies.velocity[moment.bodies.motion == FREE], axis=1)
    return _largest(moment, fast)


def _overlap(moment):
    return _largest(moment, -moment.shared.gap)


def _largest(moment, column):
    """The largest number of a column (k,), of those of all processes, or 0."""
    # A zero has no sign, whichever of those that were compared it was.
    return float(moment.sim.stepper.everywhere(np.array([column.max(initial=0.0)])).max()) + 0.0


def _free(moment):
    """Number of free bodies."""
    return moment.sim.stepper.total((moment.bodies.motion == FREE).astype(float))[0]


def _pressure(moment):
    if not _free(moment):
        return 0.0
    return float(np.trace(measure.stress(moment.snapshot))) / 3.0


# Quantities by name; each takes a Moment and returns a number.
QUANTITIES = {
    "kinetic": lambda moment: moment.energy["kinetic"],
    "rotational": lambda moment: moment.energy["rotational"],
    "potential": lambda moment: moment.energy["potential"],
    "elastic": lambda moment: moment.energy["elastic"],
    "total": lambda moment: moment.energy["total"],
    "contacts": lambda moment: float(moment.sim.touching()),
    "bodies": _free,
    "coordination": lambda moment: shared_coordination(moment.sim, moment.shared),
    "speed": _speed,  # [m/s], of the fastest free body
    "overlap": _overlap,  # [m], the deepest
    "pressure": _pressure,  # [Pa], a third of the trace of the stress in the box around all free bodies
    # Where bodies have temperatures, and there always: [K], the mean of free ones by their heat capacity; [J]
    "temperature": lambda moment: measure.mean_temperature(moment.sim),
    "heat": lambda moment: measure.heat(moment.sim),
}
# Quantities of one thing, `name:which`; each takes a Moment and the words behind the colon, and returns a number or three.
OF_ONE = {
    "flow": lambda moment, which: _flow(moment, which),  # [kg/s] since the last frame: outlet, inlet, outlet:1, ...
    "force": lambda moment, which: measure.wall_force(moment.sim, which),  # [N] on a body, by its number
    "torque": lambda moment, which: measure.wall_torque(moment.sim, which),  # [N m] on a body, about its position
    "power": lambda moment, which: measure.wall_power(moment.sim, which),  # [W] that a moving wall gives
    "heat_flow": lambda moment, which: measure.heat_flow(moment.sim, which),  # [W] that flows into a body
}
# Names that need a ledger: its numbers, which runs with one keep always, and the power that each contact dissipates [W].
OF_LEDGER = ("ledger", "dissipation")
WARM = ("temperature", "heat")
ALWAYS = ("kinetic", "rotational", "potential", "elastic", "total", "contacts")


def _flow(moment, which):
    """Mass [kg/s] that went through one or all inlets or outlets since the last frame."""
    kind, number = which
    flows = getattr(moment.sim.flows, f"{kind}s")
    first, mass = max(moment.since, 0), 0.0
    for flow in flows if number is None else [flows[number]]:
        # What passes at the step of a frame passes after it was written.
        before = int(np.searchsorted(flow.times, (first - 0.5) * moment.sim.dt))
        mass += flow.mass - (flow.masses[before - 1] if before else 0.0)
    span = (moment.sim.steps - first) * moment.sim.dt
    return mass / span if span > 0.0 else 0.0


class Record:
    """Which numbers are kept at each frame; names are checked when it is made."""

    def __init__(self, sim, names):
        if isinstance(names, str) or not hasattr(names, "__iter__"):
            raise TypeError(f"Simulation.run: record must be a list of names, got {names!r}")
        self.contacts = (
            False  # keep contact points, however many there are; with a ledger frames have their dissipation
        )
        self.wanted = []
        for name in names:
            if callable(name):
                self.wanted.append((name.__name__, lambda moment, own=name: own(moment.sim)))
            elif name == "contacts":
                self.contacts = True
            elif name in OF_LEDGER:
                self.contacts |= name == "dissipation"
                whole = name == "ledger" and sim.stepper.ledger is not None
                if not (whole or sim.method.ledger):
                    raise ValueError(f"Simulation.run: record {name!r} needs a ledger; take ledger=True of the method")
                if name == "dissipation" and not isinstance(sim.method, DEM):
                    raise ValueError(
                        "Simulation.run: record 'dissipation': hard contacts do not tell it; take 'ledger'"
                    )
            else:
                self.wanted.append((str(name), self._find(sim, str(name))))

    def _find(self, sim, name):
        kind, _, which = name.partition(":")
        if kind in (*WARM, "heat_flow") and not sim.scene.warm:
            raise ValueError(
                f"Simulation.run: record {name!r}: no body has a temperature; give one, scene.add(..., temperature=...) in K"
            )
        if not which:
            if kind in OF_ONE:
                example = f"{kind}:outlet" if kind == "flow" else f"{kind}:0"
                raise ValueError(f"Simulation.run: record {name!r} of what? say {example!r}")
            return pick("quantity", name, QUANTITIES)
        if kind not in OF_ONE:
            guess = nearest(kind, OF_ONE)
            hint = f"did you mean '{guess}:{which}'? " if guess else ""
            raise ValueError(
                f"unknown quantity {name!r}; {hint}(known: {', '.join([*QUANTITIES, *(f'{k}:...' for k in OF_ONE)])})"
            )
        which = _gate(sim, name, which) if kind == "flow" else _body(sim, name, which)
        return lambda moment: OF_ONE[kind](moment, which)

    def scalars(self, sim, since):
        """Numbers of the present state by name, and of the contacts to keep those that this process tells of, or None; since: step of the last
        frame, or -1."""
        moment = Moment(sim, since)
        few = moment.sim.touching() <= KEPT
        told = {name: QUANTITIES[name](moment) for name in ALWAYS} | sim.flows.scalars()
        if few or self.contacts:
            told["coordination"] = QUANTITIES["coordination"](moment)
        told |= {name: float(value) for name, value in sim.stepper.describe().items() if isinstance(value, int | float)}
        if sim.stepper.ledger is not None:
            told |= sim.ledger().series()
        if sim.scene.warm:
            told |= {name: QUANTITIES[name](moment) for name in WARM}
        for name, function in self.wanted:
            value = function(moment)
            if np.ndim(value) == 0:
                told[name] = float(value)
            else:
                told |= {f"{name}_{axis}": float(x) for axis, x in zip("xyz", value, strict=True)}
        return told, moment.shared if few or self.contacts else None


def _gate(sim, name, which):
    """(inlet or outlet, its number or None for all) of a name such as flow:outlet:1."""
    kind, _, number = which.partition(":")
    pick("place of a flow", kind, {"inlet": None, "outlet": None})
    flows = getattr(sim.flows, f"{kind}s")
    if not flows:
        raise ValueError(f"Simulation.run: record {name!r}: the scene has no {kind}")
    if not number:
        return kind, None
    if not number.isdigit() or int(number) >= len(flows):
        raise ValueError(f"Simulation.run: record {name!r}: the scene has {len(flows)} {kind}s, counted from 0")
    return kind, int(number)


def _body(sim, name, which):
    """The number of a body."""
    there = which.isdigit() and int(which) in sim.stepper.share().number
    if not sim.stepper.everywhere(np.array([there])).any():
        raise ValueError(
            f"Simulation.run: record {name!r}: there is no body {which!r}; give the number that Scene.add returned"
        )
    return int(which)


@contextmanager
def recording(sim, folder, record, before, text):
    """A function that appends the present state to the trajectory in the folder; None without a folder. record: Record; before [s]: time
    between frames so far, or None.

    A run that goes on from an earlier checkpoint writes the later frames again. It keeps the frame of the moment it goes on from, if one was due
    then: what contacts did in the step before is not known to the last digit after a restart, and the frame has it. One that only
    told the end of a shorter run goes, which a run that was never stopped would not have.
    """
    if folder is None:
        yield None
        return
    path = folder / "trajectory.h5"
    groups, attributes = sim.scene.describe(bodies=False)
    with ExitStack() as open_files:
        # Of several processes the first one has the file; all have a part in what is written.
        file: Any = None
        spent: Any = None

        def begin():
            nonlocal file, spent
            fresh = sim.steps == 0 or not path.exists()
            file = open_files.enter_context(Trajectory(path, "w" if fresh else "a"))
            if sim.steps == 0:
                # Of an earlier run in this folder: nobody must go on from there with the frames of this one.
                for name in ("checkpoint.h5", "checkpoint.previous.h5"):
                    (folder / name).unlink(missing_ok=True)
            if fresh:
                file.header(groups, attributes | {"made": made_with(sim)})
            else:
                due = before is not None and sim.steps == round(round(sim.time / before) * before / sim.dt)
                file.truncate_after(sim.steps if due else sim.steps - 1)
            spent = Spent(folder / "timing.csv", sim, fresh)

        def append(told, contacts):
            stepper, warmth = sim.stepper, trajectory.WARMTH if sim.scene.warm else ()
            tables = {"bodies": stepper.table((*trajectory.COLUMNS, *warmth)), "contacts": None}
            if contacts is not None:
                tables["contacts"] = stepper.contact_table(contacts, trajectory.contact_columns(contacts))
            first_writes(lambda: file.append(sim.time, sim.steps, tables["bodies"], told, tables["contacts"]), tables)

        def write(sim):
            last = first_says(None if file is None else file.last_step)
            if last < sim.steps:
                told, contacts = record.scalars(sim, last)
                append(told, contacts)
                if text:
                    name = f"{first_says(None if file is None else len(file)) - 1:06d}.txt"
                    files.save_text(folder / "text" / name, sim.scene, time=sim.time)
            first_does(lambda: spent.write(sim))

        first_does(begin)
        yield write


class Spent:
    """`timing.csv`: a line for each frame with the wall time [s] spent in each stage so far, of this and earlier parts of the run."""

    def __init__(self, path, sim, fresh):
        self.path, self.before, kept = path, dict.fromkeys(sim.seconds, 0.0), []
        if not fresh and path.exists():
            head, *lines = path.read_text(encoding="utf-8").splitlines()
            rows = [line for line in lines if line.count(",") == head.count(",")]
            kept = [line for line in rows if int(line.split(",")[1]) <= sim.steps]
            if kept:
                self.before |= dict(zip(head.split(",")[2:], map(float, kept[-1].split(",")[2:])))
        whole(path, "\n".join([",".join(["time", "step", *sim.seconds]), *kept]) + "\n")
        self.last = int(kept[-1].split(",")[1]) if kept else -1

    def write(self, sim):
        if sim.steps > self.last:
            row = [sim.time, sim.steps, *(round(self.before[name] + t, 6) for name, t in sim.seconds.items())]
            with disk.writing(self.path), open(self.path, "a", encoding="utf-8") as file:
                file.write(",".join(map(repr, row)) + "\n")


def write_series(folder):
    """Write series.csv from all frames."""
    with Trajectory(folder / "trajectory.h5") as frames:
        series = frames.series()
    lines = [",".join(series), *(",".join(map(repr, row)) for row in zip(*(c.tolist() for c in series.values())))]
    whole(folder / "series.csv", "\n".join(lines) + "\n")


def whole(path, text):
    """Write a text file that appears whole or not at all."""
    writing = path.with_name(path.name + ".writing")
    with disk.writing(path):
        writing.write_text(text, encoding="utf-8")
        os.replace(writing, path)

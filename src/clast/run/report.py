"""What a run tells at its end."""

import platform
from dataclasses import asdict, dataclass
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import numba
import numpy as np

from .. import measure
from ..measure.ledger import LOSSES, without_rounding
from ..measure.network import shared_coordination, touching_among
from ..tables import FREE
from .choice import without_ledger
from .progress import pace
from .words import of_ranks

if TYPE_CHECKING:
    from .simulation import Simulation


def made_with(sim):
    """Method and its options, versions, device and threads of a simulation, as values that fit into JSON."""
    options = {name: f"function {v.__name__}" if callable(v) else v for name, v in asdict(sim.method).items()}
    versions = {name: version(name) for name in ("clast", "numba", "numpy")} | {"python": platform.python_version()}
    return {
        "method": type(sim.method).__name__,
        "options": options,
        "versions": versions,
        "device": sim.device.name,
        "threads": numba.get_num_threads(),
        "machine": f"{platform.system()} {platform.machine()}",
    }


@dataclass(frozen=True)
class Report:
    """Numbers of a run; print it, or take `as_dict()`."""

    time: float  # [s], simulated
    dt: float  # [s]
    steps: int
    seconds: dict  # [s], wall time by stage
    compiling: float  # [s], wall time of compiling kernels, no part of seconds
    steps_per_second: float
    bodies: int  # free ones
    contacts: int
    coordination: float
    rebuilds: int
    removed: int
    poured: int
    inlets: dict  # of each: count of bodies and mass [kg]
    outlets: dict
    deepest: float  # [m], largest overlap
    energy: dict  # [J]
    ledger: dict  # [J], see `clast.measure.Balance`; empty without one
    unbalanced: str  # why there is none, or empty
    momentum: list  # [kg m/s]
    angular_momentum: list  # [kg m^2/s]
    solver: dict  # of Complementarity: name, steps, iterations, steps that missed the tolerance, worst residual
    # and that of the last step [m/s], energy that parting overlaps added at the most [J], with joints how far they were open [m]; empty for DEM
    grid: dict  # of the broad phase "spacetree" in its last search: levels, cells, vertices, comparisons; empty for others
    crossings: int  # pairs of triangulated bodies whose surfaces crossed, summed over steps
    coincident: int  # pairs of spheres that had one centre and were parted along z, summed over steps of DEM
    ranks: dict  # of processes that share the run, a list each, see `clast.mpi.stepper.Ranked.ranks`; empty for one
    made: dict  # what it was made with: method and its options, versions, device, threads

    @classmethod
    def of(cls, sim: "Simulation") -> "Report":
        sim.start()
        contacts, bodies = sim.stepper.shared_contacts(), sim.stepper.share()
        touching = touching_among(sim.scene, sim.state.bodies, contacts)
        counts = np.array([[(bodies.motion == FREE).sum(), len(touching)]])
        free, touching = sim.stepper.everywhere(counts).sum(0).tolist()
        deepest = sim.stepper.everywhere(np.array([(-contacts.gap).max(initial=0.0)])).max()
        spent = sum(sim.seconds.values())
        linear, angular = measure.momentum(sim)
        counters = getattr(sim.state.search, "counters", None)
        return cls(
            time=sim.time,
            dt=sim.dt,
            steps=sim.steps,
            seconds=dict(sim.seconds),
            compiling=sim.compiling,
            steps_per_second=sim.counted / spent if spent else 0.0,
            bodies=free,
            contacts=touching,
            coordination=shared_coordination(sim, contacts),
            rebuilds=sim.state.rebuilds,
            removed=sim.removed,
            poured=sum(sim.poured),
            inlets={str(k): flow.as_dict() for k, flow in enumerate(sim.flows.inlets)},
            outlets={str(k): flow.as_dict() for k, flow in enumerate(sim.flows.outlets)},
            deepest=float(deepest),
            energy=measure.energy(sim),
            ledger={} if sim.stepper.ledger is None else sim.ledger().as_dict(),
            unbalanced=without_ledger(sim) or "",
            momentum=linear.tolist(),
            angular_momentum=angular.tolist(),
            solver=sim.stepper.describe(),
            grid=counters._asdict() if counters is not None else {},
            **{name: int(count) for name, count in sim.stepper.counted().items()},
            ranks=sim.stepper.ranks(),
            made=made_with(sim),
        )

    def as_dict(self) -> dict[str, Any]:
        """All numbers as plain Python values."""
        return asdict(self)

    def __str__(self) -> str:
        spent = sum(self.seconds.values())
        rate = self.steps_per_second * self.bodies
        worked = f"{rate / 1e6:.2f} million" if rate >= 1e5 else f"{rate / 1e3:.3g} thousand"
        shares = ", ".join(f"{name} {100.0 * t / spent:.0f} %" for name, t in self.seconds.items()) if spent else ""
        lines = [
            ("simulated", f"{self.time:.6g} s in {self.steps:,} steps of {self.dt:.3g} s"),
            ("speed", f"{pace(self.steps_per_second)} steps/s, {worked} particle-steps/s"),
            (
                "spent",
                (f"{spent:.3g} s: {shares}" if spent else "nothing yet")
                + (f"; besides {self.compiling:.3g} s for compiling" if self.compiling else ""),
            ),
            (
                "bodies",
                f"{self.bodies:,} free"
                + (f", {self.poured:,} poured" if self.poured else "")
                + (f", {self.removed:,} removed" if self.removed else ""),
            ),
            (
                "contacts",
                f"{self.contacts:,}, {self.coordination:.2f} a body, deepest overlap {self.deepest:.3g} m",
            ),
            ("neighbours", f"list made {self.rebuilds:,} times"),
            ("energy", ", ".join(f"{name} {value:.4g}" for name, value in self.energy.items()) + " J"),
            ("momentum", "({:.4g}, {:.4g}, {:.4g}) kg m/s".format(*self.momentum)),
        ]
        if self.unbalanced:
            lines.append(("balance", f"no account of energies is kept: {self.unbalanced}"))
        if self.ledger:
            told = without_rounding(self.ledger)
            lost = ", ".join(
                f"{words} {told[name]:.4g}" for name, words in LOSSES.items() if name != "undivided" and told.get(name)
            )
            lines += [
                (
                    "supplied",
                    f"{told['work']:.4g} J by drives"
                    + (f", {told['through']:.4g} J with bodies" if told["through"] else ""),
                ),
                ("lost", f"{told['dissipated']:.4g} J" + (f": {lost}" if lost else "")),
                (
                    "balance",
                    "what is missing was lost; ledger=True tells by what, and whether the balance closes"
                    if "error" not in told
                    else f"off by {told['error']:.2g} J, numerically lost {told['numerical']:.2g} J, which is what is left of the springs, of {told['turnover']:.4g} J turned over",
                ),
            ]
        if self.ranks:
            ranks = self.ranks | of_ranks(self.ranks)
            busy, sent = ranks["uneven"], sum(ranks["bytes_a_step"]) / len(ranks["bytes_a_step"])
            waited = ", ".join(f"{share:.0f} %" for share in ranks["share"])
            lines += [
                (
                    "processes",
                    f"{len(ranks['bodies'])} with {min(ranks['bodies']):,} to {max(ranks['bodies']):,} bodies and {min(ranks['ghosts']):,} to "
                    f"{max(ranks['ghosts']):,} ghosts; the busiest worked {busy:.2f} of the mean",
                ),
                ("exchange", f"{sent:,.0f} bytes a step and process; waiting took {waited} of the time"),
            ]
        for kind, gates in (("inlet", self.inlets), ("outlet", self.outlets)):
            for k, told in gates.items():
                lines.append((f"{kind} {k}", f"{told['count']:,} bodies, {told['mass']:.6g} kg"))
        if self.grid:
            lines.append(("grid", ", ".join(f"{count:,} {name}" for name, count in self.grid.items())))
        if self.crossings:
            lines.append(("crossings", f"{self.crossings:,} times two bodies had surfaces that crossed"))
        if self.coincident:
            lines.append(
                ("coincident", f"{self.coincident:,} times two spheres had one centre; they were parted along z")
            )
        if self.solver and self.solver["steps"]:
            told = self.solver
            lines.append(
                (
                    "solver",
                    f"{told['solver']}, {told['iterations'] / told['steps']:.1f} iterations a step, "
                    f"{told['missed']:,} of {told['steps']:,} steps missed the tolerance, worst residual "
                    f"{told['worst']:.2g} m/s, stabilisation added at most {told['stabilisation']:.3g} J"
                    + (f", joints open by at most {told['open']:.2g} m" if "open" in told else "")
                    + (f", {told['asleep']:,} bodies sleep" if "asleep" in told else ""),
                )
            )
        return "\n".join(f"{name:<10} {text}" for name, text in lines)

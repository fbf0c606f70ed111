"""The balance of energy of a simulation since its start: what bodies have, what was put in, and what was lost."""

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ..kernels import sums
from ..tables import FREE, Bodies, some_bodies
from .whole import body_energies, world_inertia

if TYPE_CHECKING:
    from ..run.simulation import Simulation

LOSSES = {
    "normal": "normal damping",
    "shear": "shear damping",
    "sliding": "sliding",
    "rolling": "rolling",
    "twisting": "twisting",
    "bonds": "bonds",
    "dampers": "dampers of springs",
    "limits": "limits of joints",
    "undivided": "contacts, not told apart",
}

WHOLE = (
    "start",
    "kinetic",
    "potential",
    "elastic",
    "work",
    "through",
    "undivided",
    "turnover",
    "dissipated",
)  # what is told where losses are not told apart
ROUNDING = 1e-12  # of the turnover, below which a number is what sums of doubles leave


class Stored(NamedTuple):
    """Energies [J] that bodies and contacts have at a moment."""

    kinetic: float  # translation and rotation of free bodies
    potential: float  # of gravity, along directions in which the world does not repeat
    elastic: float
    along: float  # of elastic, what contacts hold along their normals
    ahead: float  # by which the work of forces is ahead of the kinetic energy: dt^2 / 8 sum (f . f / m + t . I^-1 t), with force f and torque t of contacts on a
    # body. Velocities are those between two kicks of half a step, and the work of both is F . v dt

    @property
    def parts(self) -> tuple[float, float, float, float, float]:
        """Energy of all, of contacts along their normals and in shear, what the work is ahead, and the potential."""
        whole = self.kinetic + self.potential + self.elastic
        return whole, self.along, self.elastic - self.along, self.ahead, self.potential


def stored(sim: "Simulation") -> Stored:
    """The Stored energies [J] of a simulation that has been started: kinetic = sum (m v^2 + w . I w) / 2, potential = - sum m g . x, elastic as in
    `elastic_energy`; sums of bodies are exact."""
    bodies = sim.stepper.share()
    bodies = some_bodies(bodies, np.flatnonzero(bodies.motion == FREE))
    turning = np.linalg.solve(world_inertia(sim, bodies), bodies.torque[:, :, None])[:, :, 0]
    ahead = (bodies.force**2).sum(1) / bodies.mass + (bodies.torque * turning).sum(1)
    held = np.where(sim.box.length > 0.0, 0.0, np.array(sim.scene.gravity))
    translation, rotation, height = body_energies(sim, bodies, held)
    kinetic, potential, ahead = sim.stepper.total(np.concatenate([translation, rotation]), height, ahead)
    springs = sim.stepper.elastic_energy(), sim.stepper.normal_energy()
    return Stored(kinetic, potential, *springs, 0.125 * sim.dt**2 * ahead)


def taken_along(sim: "Simulation", bodies: Bodies, everywhere: bool = False) -> float:
    """Kinetic and potential energy [J] of these free Bodies (n,), as `stored` counts it; everywhere: and of those that other processes give."""
    held = np.where(sim.box.length > 0.0, 0.0, np.array(sim.scene.gravity))
    parts = np.concatenate(body_energies(sim, bodies, held))
    return sim.stepper.total(parts)[0] if everywhere else sums.exact(parts)


@dataclass(frozen=True)
class Balance:
    """The energies [J] of a simulation since its start; print it, or take `as_dict()`.

    kinetic + potential + elastic = start + work + motors + through + stabilisation - dissipated - numerical + error.
    """

    start: float  # kinetic, potential and elastic energy at the start
    kinetic: float  # at present, with rotation
    potential: float  # of gravity against the origin
    elastic: float  # of contacts and springs
    work: float  # that driven bodies have done, and gravity along directions in which the world repeats
    motors: float  # that motors have done, and joints whose length is a function of time
    through: float  # that came with bodies through inlets, less what went through outlets
    stabilisation: float  # that parting overlaps of hard contacts added
    normal: float  # lost by dashpots along normals; of laws that lose energy in their springs, plastic or adhesive ones, by those too; of hard contacts by impact
    shear: float  # lost by dashpots in shear
    sliding: float
    rolling: float  # work against rolling resistance, with what its springs hold
    twisting: float  # likewise about normals
    bonds: float  # that bonds held when they broke, and what they damp in bending and twist: what they took in less what they hold
    dampers: float  # lost by dampers beside springs, and by springs that are a function of the user's
    limits: float  # lost where joints come to their limits
    numerical: float  # that springs of contacts took in and neither hold nor lost: by the time step, and by points that share a stiffness; of hard contacts, by which
    # gravity gave more to velocities than the potential fell, and what joints took that should do no work
    turnover: float  # that contacts took in, each joule once, or the work if that is more
    undivided: float = 0.0  # lost in all, with what is numerical, where `divided` is False
    divided: bool = (
        True  # losses are told apart; if not, they are what is missing in the balance, which closes whatever happens
    )

    @property
    def dissipated(self) -> float:
        """All that was lost [J]."""
        return sum(getattr(self, name) for name in LOSSES)

    @property
    def error(self) -> float:
        """By how much [J] the energy is more than what came in and was not lost: whether the work of all forces is that which bodies took up. What springs
        hold and lose by sliding is judged by `numerical`, in which it stands with the other sign."""
        have = self.kinetic + self.potential + self.elastic
        put_in = self.start + self.work + self.motors + self.through + self.stabilisation
        return have - put_in + self.dissipated + self.numerical

    def as_dict(self) -> dict[str, float]:
        """All numbers by name; those that are known where losses are not told apart."""
        told = asdict(self) | {"dissipated": self.dissipated, "error": self.error}
        del told["divided"]
        return told if self.divided else {name: told[name] for name in WHOLE}

    def series(self) -> dict[str, float]:
        """Those numbers by name that `series.csv` has in each frame."""
        told = self.as_dict()
        return {f"ledger_{name}": told[name] for name in told if name not in ("kinetic", "potential", "elastic")}

    def __str__(self):
        told = without_rounding(asdict(self))
        rows = [("at the start", told["start"]), ("work of drives", told["work"])]
        rows += [("work of motors", told["motors"])] if told["motors"] else []
        rows += [("inlets, outlets", told["through"])] if told["through"] else []
        rows += [("parting of overlaps", told["stabilisation"])] if told["stabilisation"] else []
        rows += [(f"lost: {words}", -told[name]) for name, words in LOSSES.items() if told[name]]
        if self.divided:
            rows += [("lost: numerically", 0.0 - told["numerical"]), ("error", self.error)]
        rows += [(name, told[name]) for name in ("kinetic", "potential", "elastic")]
        part = f", {abs(self.error) / self.turnover:.1e} of it in error" if self.turnover > 0.0 else ""
        part = part if self.divided else "; what was lost is what is missing, ledger=True tells it apart"
        lines = [f"{name:<22} {value:>12.5g} J" for name, value in rows]
        lines.insert(-3, "-" * 37)
        return "\n".join([*lines, f"turnover {self.turnover:.5g} J{part}"])


def without_rounding(told: dict[str, float]) -> dict[str, float]:
    """The numbers of a balance by name, as people read them: 0 for what is rounding. The error itself stays as it is."""
    least = ROUNDING * told.get("turnover", 0.0)
    return {name: 0.0 if abs(value) <= least and name != "error" else value for name, value in told.items()}


def ledger(sim: "Simulation") -> Balance:
    """The Balance of a simulation: where its energy came from and went to. By forces losses are told apart with DEM(ledger=True) alone.

    error = (kinetic + potential + elastic) - (start + work + motors + through + stabilisation) + dissipated + numerical [J], all measured.
    """
    sim.start()
    book = sim.stepper.ledger
    if book is None:
        raise ValueError(f"ledger: the simulation keeps none; take clast.{type(sim.method).__name__}(ledger=True)")
    now = stored(sim)
    found, numerical = book.losses(now.parts)
    lost = dict(zip(LOSSES, found, strict=False))
    turnover = max(0.5 * (book.gross + sum(found)), abs(book.work), abs(book.motors))
    if not book.divided:
        have = now.kinetic + now.potential + now.elastic
        lost["undivided"] = book.start[0] + book.work + book.through - have
        turnover = max(turnover, abs(lost["undivided"]), abs(book.through))
    energies = {"start": book.start[0], "kinetic": now.kinetic, "potential": now.potential, "elastic": now.elastic}
    given = {"work": book.work, "motors": book.motors, "through": book.through, "stabilisation": book.stabilisation}
    return Balance(**energies, **given, **lost, numerical=numerical, turnover=turnover, divided=book.divided)

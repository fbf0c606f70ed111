"""What measures look at: the particles of one moment, and the contacts between them."""

import math
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ..signatures import Floats, Numbers
from ..tables import FREE

if TYPE_CHECKING:
    from ..files.trajectory import Frame, Trajectory
    from ..run.simulation import Simulation
    from ..scene.scene import Scene

    Subject: TypeAlias = "Simulation | Scene | Snapshot"


class Snapshot(NamedTuple):
    """Bodies of one moment, sorted by number, and their contacts."""

    time: float  # [s]
    number: np.ndarray  # (n,) body numbers
    position: np.ndarray  # (n,3) [m], centres of mass
    velocity: np.ndarray  # (n,3) [m/s]
    spin: np.ndarray  # (n,3) [rad/s]
    mass: np.ndarray  # (n,) [kg]; infinite for fixed and driven bodies
    volume: np.ndarray  # (n,) [m^3]; zero for walls
    material: np.ndarray  # (n,) row of the scene's materials
    free: np.ndarray  # (n,) bool, moved by forces, neither fixed nor driven
    low: np.ndarray  # (3,) [m], low corner of the world
    length: np.ndarray  # (3,) [m], of the world along periodic axes; zero along the others
    pair: np.ndarray | None  # (c,2) body numbers of the contact points, a < b; None if they are not known
    point: np.ndarray | None  # (c,3) [m]
    normal: np.ndarray | None  # (c,3) unit, from a to b
    force: np.ndarray | None  # (c,3) [N], on b

    @property
    def radius(self) -> Floats:
        """Radii (n,) [m] of the balls that have the volumes of the bodies."""
        return np.cbrt(self.volume * (0.75 / math.pi))

    def rows(self, numbers: Numbers) -> NDArray[np.intp]:
        """Rows of the bodies with these numbers."""
        return np.searchsorted(self.number, numbers)

    def nearest(self, arm: Floats) -> Floats:
        """Differences of places (...,3) [m] to the nearest periodic image."""
        length = np.where(self.length > 0.0, self.length, 1.0)
        return arm - np.where(self.length > 0.0, self.length * np.round(arm / length), 0.0)


def snapshot(subject: "Subject | Frame", run: "Trajectory | None" = None, *, contacts: bool = True) -> Snapshot:
    """Snapshot of a Simulation, a Scene, or a frame of a trajectory with `run`, the Trajectory that it is from.

    Volumes are V = V_1 s^3 [m^3], of a shape at size factor 1 times the cube of the body's; all else is taken as it is there.
    contacts: False leaves them out, which saves the time of collecting them.
    """
    if isinstance(subject, Snapshot):
        return subject
    if hasattr(subject, "columns"):
        return _of_frame(subject, run)
    told: Any = subject  # known by what it has
    scene = getattr(told, "scene", told)
    if not hasattr(scene, "bodies") or not hasattr(scene, "molds"):
        raise TypeError(f"snapshot: needs a Simulation, a Scene or a frame of a trajectory, got {subject!r}")
    found = told.contacts() if contacts and scene is not told else None
    low, length = _world(scene.world, scene.periodic)
    return _make(
        float(getattr(subject, "time", 0.0)),
        scene.bodies._asdict(),
        scene.molds.volume,
        low,
        length,
        None if found is None else (found.pair, found.point, found.normal, found.force),
    )


def known_contacts(subject, what):
    """Snapshot with contacts, or an error that says who asked."""
    moment = snapshot(subject)
    if moment.pair is None:
        raise ValueError(
            f"{what}: needs contacts, which a Scene does not have and this frame does not hold; pass a Simulation, or run "
            "with record=['contacts']"
        )
    return moment


def _of_frame(frame, run):
    if run is None or not hasattr(run, "groups"):
        raise TypeError(
            "snapshot: a frame alone does not tell volumes; give the trajectory as well: snapshot(frame, run)"
        )
    about = run.attributes
    low, length = _world(about.get("world"), about.get("periodic", (False,) * 3))
    told = frame.contacts
    contacts = tuple(np.asarray(told[name]) for name in ("pair", "point", "normal", "force")) if told else None
    return _make(frame.time, frame.columns, run.groups["molds"]["volume"], low, length, contacts)


def _world(world, periodic):
    low, high = np.array(world, dtype=float) if world is not None else (np.zeros(3), np.zeros(3))
    return low, np.where(periodic, high - low, 0.0)


def _make(time, bodies, volume, low, length, contacts):
    wide = {name: np.asarray(bodies[name], dtype=float) for name in ("position", "velocity", "spin", "mass", "scale")}
    contacts = (None,) * 4 if contacts is None else contacts
    if contacts[0] is not None:
        contacts = (contacts[0], *(np.asarray(column, dtype=float) for column in contacts[1:]))
    return Snapshot(
        time,
        np.asarray(bodies["number"]),
        wide["position"],
        wide["velocity"],
        wide["spin"],
        wide["mass"],
        np.asarray(volume)[bodies["mold"]] * wide["scale"] ** 3,
        np.asarray(bodies["material"]),
        np.asarray(bodies["motion"]) == FREE,
        low,
        length,
        *contacts,
    )


def images(moment):
    """Shifts (k,3) [m] to a body's periodic images, itself first; one row where nothing is periodic."""
    steps = [(0.0, -1.0, 1.0) if length > 0.0 else (0.0,) for length in moment.length]
    return np.array([(i, j, k) for i in steps[0] for j in steps[1] for k in steps[2]]) * moment.length


def corners(place, box):
    """Low and high corner (3,) of a box given as ((x, y, z), (x, y, z)) [m]."""
    low, high = (np.asarray(corner, dtype=float) for corner in box)
    if low.shape != (3,) or high.shape != (3,) or not (low < high).all():
        raise ValueError(f"{place}: box must be ((x, y, z), (x, y, z)) with its low corner first, got {box!r}")
    return low, high

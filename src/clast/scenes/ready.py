"""A scene with all that a run needs, and the look at how it starts."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import SceneError
from ..kernels import ahead
from ..mpi.team import first_does
from ..narrow.contacts import find_contacts
from ..run.rehearsal import rehearse
from ..run.simulation import Simulation
from ..scene.scene import Scene
from ..signatures import Device, Step
from ..tables import is_particle

GRAVITY = 9.81  # [m/s^2]


@dataclass(frozen=True)
class Ready:
    """A scene with all that a run needs.

    scene: Scene; method: DEM(...); dt [s] or "auto"; until [s]; every [s] or None for fifty frames; title: one line for people;
    overlap_limit: how deep two bodies may overlap at the start, as a share of the smaller radius, half-axis or ball inside;
    source: the scene file, if there is one; places: (body numbers, where they stand in it), for messages.
    """

    scene: Scene
    method: Any
    dt: Step
    until: float
    every: float | None
    title: str
    overlap_limit: float = 0.05
    source: str = ""
    places: tuple = ()

    def simulation(self, *, dt: Step | None = None, device: Device = "cpu", check: bool = True) -> Simulation:
        """A Simulation of the scene, after a look at how it starts (check); dt overrides the scene's own."""
        self.scene.title = self.scene.title or self.title
        dt = self.dt if dt is None else dt
        if check:
            # The look takes kernels too: they are compiled together with those of the run.
            ahead.when_missing(lambda: rehearse(self.scene, self.method, dt, look=True))
            try:
                first_does(lambda: check_overlap(self.scene, self.overlap_limit, self.places))
            except SceneError as fault:
                raise SceneError(f"{self.source}: {fault}" if self.source else str(fault)) from None
        return Simulation(self.scene, self.method, dt=dt, device=device)


def check_overlap(scene: Scene, limit: float, places: Sequence = ()) -> None:
    """Raise a SceneError that names the deepest pair if bodies overlap by more than `limit` times the smaller radius.

    The radius of an ellipsoid is its smallest half-axis, that of a polyhedron the ball inside, that of a mesh its halo.
    places: (body numbers, name) of groups of bodies, for the message.
    """
    if len(scene.bodies.number) == 0:
        return
    contacts = find_contacts(scene)
    if len(contacts.gap) == 0:
        return
    shapes = scene.shapes()
    rows = np.searchsorted(scene.bodies.number, contacts.pair)
    smaller = _least_radius(scene, shapes)[np.searchsorted(shapes.body, rows) + contacts.shape].min(axis=1)
    share = np.where(np.isfinite(smaller) & ~_joined(scene, contacts.pair), -contacts.gap / smaller, 0.0)
    worst = int(np.argmax(share))
    if share[worst] <= limit:
        return
    a, b = (_name(int(number), places) for number in contacts.pair[worst])
    count = int(np.count_nonzero(share > limit))
    more = f" ({count - 1} more pairs do)" if count > 1 else ""
    raise SceneError(
        f"bodies {a} and {b} overlap by {-contacts.gap[worst]:.3g} m at the start, "
        f"{100.0 * share[worst]:.3g} % of the smaller radius, above the limit of {100.0 * limit:.3g} %{more}; "
        f"move them apart, or raise run.overlap_limit"
    )


def _joined(scene, pair):
    """Mask (c,) of the pairs (c,2) of body numbers that a joint keeps from colliding."""
    apart = scene.apart
    return np.isin(pair[:, 0] * scene.next_number + pair[:, 1], apart[:, 0] * scene.next_number + apart[:, 1])


def _least_radius(scene, shapes):
    """Radius (s,) [m] of every sphere, smallest half-axis of ellipsoids, ball inside polyhedra, halo of meshes, infinity for
    walls."""
    own = scene.parts.deep[shapes.part] * scene.bodies.scale[shapes.body]
    return np.where(is_particle(shapes.kind), own, np.inf)


def _name(number, places):
    place = next((f" ({place})" for numbers, place in places if number in numbers), "")
    return f"{number}{place}"

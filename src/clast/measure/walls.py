"""What particles do to a wall: force, torque, power, wear."""

from typing import TYPE_CHECKING

import numpy as np

from ..signatures import Floats, Vector, Whole
from ..tables import rows_in

if TYPE_CHECKING:
    from ..run.simulation import Simulation


def wall_force(sim: "Simulation", number: Whole) -> Floats:
    """Contact force (3,) [N] on one body, for fixed and driven bodies too: F = sum_c f."""
    return _loads(sim, number)[1].sum(0)


def wall_torque(sim: "Simulation", number: Whole, about: Vector | None = None) -> Floats:
    """Torque (3,) [N m] of all contacts on one body, T = sum_c ((x_c - about) cross f + couple).

    about (3,) [m]: by default the position of the body. A motor that turns a drum at a steady pace gives minus this.
    """
    point, force, couple, _ = _loads(sim, number)
    body, row = sim.bodies, _row(sim, number)
    about = body.position[row] if about is None else np.asarray(about, dtype=float)
    return (np.cross(point - about, force) + couple).sum(0)


def wall_power(sim: "Simulation", number: Whole) -> float:
    """Power [W] that a moving wall gives to what touches it, P = - sum_c (f . (v + w cross (x_c - x)) + couple . w), with the force f on
    the wall and v, w, x its velocity, spin and position."""
    point, force, couple, _ = _loads(sim, number)
    body, row = sim.bodies, _row(sim, number)
    velocity = body.velocity[row] + np.cross(body.spin[row], point - body.position[row])
    return -float((force * velocity).sum() + (couple @ body.spin[row]).sum())


class Wear:
    """Wear of a wall by sliding, part by part; of a mesh wall its parts are its triangles (Archard 1953):

        dV/dt = k F_n |v_t|

    V [m^3]: volume worn off; F_n [N]: normal force of a contact; v_t [m/s]: velocity of the particle's surface along the wall's;
    k = coefficient [1/Pa], the wear constant over the hardness. Call `update` often enough, every few steps of a fast contact:
    between two calls the rate counts that is found at the second.

        wear = clast.measure.Wear(sim, chute, coefficient=1e-12)
        for _ in range(1000):
            sim.step(10)
            wear.update()
        wear.volume, wear.depth
    """

    def __init__(self, sim: "Simulation", number: Whole, *, coefficient: float) -> None:
        self.sim, self.number, self.coefficient = sim, int(number), float(coefficient)
        row = _row(sim, number)
        mold = sim.bodies.mold[row]
        first, count = int(sim.scene.molds.first[mold]), int(sim.scene.molds.count[mold])
        self.volume = np.zeros(count)  # [m^3], worn off each part so far
        self.area = (
            _areas(sim, first, count) * sim.bodies.scale[row] ** 2
        )  # (parts,) [m^2]; of parts that are no triangles zero
        self._time = sim.time

    @property
    def depth(self) -> Floats:
        """Mean depth (parts,) [m] of what is worn off each triangle, volume over area; zero for what is no triangle."""
        return self.volume / np.where(self.area > 0.0, self.area, np.inf)

    def update(self) -> None:
        """Add what the contacts of now wear off in the time since the last call."""
        sim = self.sim
        span, self._time = sim.time - self._time, sim.time
        point, force, _, found = _loads(sim, self.number)
        contacts, second = found
        part = contacts.shape[np.arange(len(second)), second]
        partner = np.searchsorted(sim.bodies.number, contacts.pair[np.arange(len(second)), 1 - second])
        bodies, row = sim.bodies, _row(sim, self.number)
        moves = [
            bodies.velocity[k] + np.cross(bodies.spin[k], point - bodies.position[k]) for k in (partner, np.array(row))
        ]
        along = moves[0] - moves[1]
        along = along - (along * contacts.normal).sum(1, keepdims=True) * contacts.normal
        pressed = np.abs((force * contacts.normal).sum(1))
        rate = self.coefficient * pressed * np.linalg.norm(along, axis=1)
        self.volume += span * np.bincount(part, rate, minlength=len(self.volume))


def _row(sim, number):
    """Row of the body with this number in `sim.bodies`."""
    numbers = sim.bodies.number
    row = int(np.searchsorted(numbers, number))
    if row >= len(numbers) or numbers[row] != number:
        raise ValueError(f"measure: there is no body {number}")
    return row


def _loads(sim, number):
    """Points (c,3), forces on this body (c,3), couples on it (c,3), and (its contacts, on which side of each it stands (c,))."""
    contacts = sim.contacts()
    second = contacts.pair[:, 1] == number
    own = second | (contacts.pair[:, 0] == number)
    chosen = type(contacts)(*(column[own] for column in contacts))
    sign = np.where(second[own], 1.0, -1.0)[:, None]
    return chosen.point, sign * chosen.force, sign * chosen.couple, (chosen, second[own].astype(int))


def _areas(sim, first, count):
    """Areas (count,) [m^2] of the triangles among these parts, at size factor 1; zero for others."""
    parts, meshes = sim.scene.parts, sim.scene.meshes
    rows = np.arange(first, first + count)
    triangle = rows_in("meshes", parts.kind[rows], parts.feature[rows])
    corner = (
        meshes.vertex[meshes.triangle[np.maximum(triangle, 0)]] if len(meshes.triangle) else np.zeros((count, 3, 3))
    )
    cross = np.cross(corner[:, 1] - corner[:, 0], corner[:, 2] - corner[:, 0])
    return np.where(triangle >= 0, 0.5 * np.linalg.norm(cross, axis=1), 0.0)

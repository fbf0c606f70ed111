"""Springs, dampers and users' force functions between bodies, as forces on the bodies they hold.

There are few of them in a scene, so they are whole-array NumPy; a user's function is called once a step.
"""

from typing import NamedTuple

import numpy as np


class Pulls(NamedTuple):
    """What springs do to their body b, one row per spring in the order of adding; body a gets the opposite."""

    force: np.ndarray  # (s,3) [N], at the spring's point on b; zero for torsion springs
    torque: np.ndarray  # (s,3) [N m], of torsion springs; zero for others
    extent: np.ndarray  # (s,) length [m] or angle [rad]


class SpringSystem:
    """All springs of a scene. system: the JointSystem, whose slots they use."""

    def __init__(self, scene, table, system):
        self.table, self.system = table, system
        count = len(table.rest)
        self.straight = np.flatnonzero(table.joint < 0)  # between two points
        self.torsion = np.flatnonzero(table.joint >= 0).tolist()
        self.points = table.point[self.straight]
        self.functions = [spring.function for spring in scene.springs]
        self.plain = np.array([function is None for function in self.functions], dtype=bool)
        self.asked = np.flatnonzero(~self.plain).tolist()
        self.tension = np.zeros(count)  # pull [N], or torque that turns b back [N m], when last asked
        self.row = np.zeros((count, 12))  # what gives the rate of its extent from the velocities of a and b
        self.extent = np.zeros(count)  # length [m] or angle [rad]
        self.mobility = np.zeros((count, count))  # see `respond`

    def __len__(self):
        return len(self.table.rest)

    def place(self, numbers, world):
        """Find the slots (s,2) of the bodies of each spring, given the numbers of the bodies in slots; world: its slot."""
        self.slots = np.where(self.table.body >= 0, np.searchsorted(numbers, self.table.body), world)
        return self.slots

    def measure(self, t, edges):
        """Extents and rows of all springs. t: Assembly with present poses."""
        straight = self.straight
        if len(straight):
            ends = self.slots[straight]
            arms = np.einsum("sexy,sey->sex", turns_of(t.orientation)[ends], self.points)
            place = t.position[ends]
            d = place[:, 1] + arms[:, 1] - place[:, 0] - arms[:, 0]
            if any(edges[3:]):
                d -= np.array(edges[:3]) * np.round(d * np.array(edges[3:]))
            length = np.sqrt((d * d).sum(1))
            # Where the two points meet there is no direction, and no force.
            axis = d / np.where(length > 0.0, length, 1.0)[:, None]
            self.extent[straight] = length
            levers = cross(arms, axis[:, None])
            self.row[straight] = np.concatenate([-axis, -levers[:, 0], axis, levers[:, 1]], axis=1)
        for s in self.torsion:
            j = int(self.system.place[self.table.joint[s]])
            self.extent[s], self.row[s] = t.coordinate[j, 0], self.system.coordinate_row(j, 0)

    def pull(self, t, velocity, time, edges, load, ahead=0.0):
        """Add the forces and torques of all springs to load (k,6). t: Assembly with present poses; velocity (k,6).

        ahead [s]: plain dampers see the velocities after a step of this length, which the forces themselves change, so
        that no damping is too large; and so do springs that swing too fast for the step. Needs `respond`.
        """
        if not len(self):
            return
        self.measure(t, edges)
        table, extent = self.table, self.extent
        rate = self.rate(velocity)
        stretch = table.stiffness * (extent - table.rest)
        damping = table.damping
        if ahead:
            hasty = ahead**2 * (abs(self.mobility) @ table.stiffness) > 1.0
            damping = damping + np.where(hasty, ahead * table.stiffness, 0.0)
        self.tension[:] = stretch + damping * rate
        if ahead and damping.any():
            self._damp(ahead * damping)
        group = self.group()
        for s in self.asked:
            if not self.system.here[group[s]]:
                continue
            self.tension[s] = self.functions[s](float(extent[s]), float(rate[s]), time)
            if not np.isfinite(self.tension[s]):
                raise ValueError(f"the function of spring {s} gave {self.tension[s]} at t = {time:g} s")
        give = -self.tension[:, None] * self.row
        np.add.at(load, self.slots[:, 0], give[:, :6])
        np.add.at(load, self.slots[:, 1], give[:, 6:])

    def _damp(self, strength):
        """Tensions at the end of a step that dampers of these strengths (s,) [kg or kg m^2] change, group by group, which know nothing of each other."""
        group = self.group()
        for g in np.unique(group[strength != 0.0]).tolist():
            if self.system.here[g]:
                mine = np.flatnonzero(group == g)
                matrix = np.eye(len(mine)) + strength[mine, None] * self.mobility[np.ix_(mine, mine)]
                self.tension[mine] = np.linalg.solve(matrix, self.tension[mine])

    def group(self):
        """The group of the bodies that each spring holds, (s,)."""
        return self.system.slot_group[self.slots].max(1)

    def rate(self, velocity):
        """Rates (s,) [m/s or rad/s] of the extents at velocities (k,6)."""
        a, b = self.slots.T
        return (self.row * np.concatenate([velocity[a], velocity[b]], axis=1)).sum(1)

    def respond(self, t, edges):
        """Find `mobility` (s,s): the rate that spring i gets from a unit of impulse of spring k, with the joints in place.

        [1/kg], [1/(kg m^2)] between torsion springs. Springs with a user's function have none.
        """
        system, plain = self.system, np.flatnonzero(self.plain)
        if not len(plain):
            return
        self.measure(t, edges)
        group = self.group()
        kept = t.velocity.copy(), t.impulse.copy(), t.rate.copy()
        t.rate[:] = 0.0
        self.mobility[:] = 0.0
        # One spring of each group at a time.
        order = plain[np.argsort(group[plain], kind="stable")]
        turn = np.arange(len(order)) - np.searchsorted(group[order], group[order])
        for k in range(int(turn.max()) + 1):
            chosen = order[turn == k]
            load = np.zeros_like(t.velocity)
            np.add.at(load, self.slots[chosen, 0], self.row[chosen, :6])
            np.add.at(load, self.slots[chosen, 1], self.row[chosen, 6:])
            t.velocity[:], t.impulse[:] = system.accelerations(load), 0.0
            system.solve_slots(system.here)
            source = np.full(system.group_count, -1)
            source[group[chosen]] = chosen
            hit = plain[source[group[plain]] >= 0]
            self.mobility[hit, source[group[hit]]] = self.rate(t.velocity)[hit]
        t.velocity[:], t.impulse[:], t.rate[:] = kept

    def haste(self):
        """How fast [1/s] each plain spring swings, or its damper acts, on the bodies that it holds, (s,)."""
        size = abs(self.mobility)
        return np.maximum(np.sqrt(size @ self.table.stiffness), size @ self.table.damping)

    def frequencies(self, t, group, count):
        """How fast [1/s] springs move the bodies of each group, (count,); needs `respond`."""
        fastest = np.zeros(count)
        if len(self):
            # Across its line a stretched spring pulls back too, never more than along it.
            across = self.table.stiffness * t.lightness[self.slots].sum(1)
            value = np.where(self.table.joint < 0, np.maximum(np.sqrt(across), self.haste()), self.haste())
            np.maximum.at(fastest, group[self.slots].max(1), value)
        return fastest

    def check(self, dt, most):
        """Refuse what no number of shorter steps within a step dt [s] can follow; most: of haste times dt."""
        haste = np.where(self.system.here[self.group()], self.haste(), 0.0) if len(self) else np.zeros(0)
        if len(self) and dt * haste.max() > most:
            s = int(np.argmax(haste))
            about = "" if self.table.joint[s] < 0 else f" (torsion, joint {self.table.joint[s]})"
            raise ValueError(
                f"Simulation: spring {s}{about} with stiffness {self.table.stiffness[s]:g} and damping "
                f"{self.table.damping[s]:g} acts at {haste[s]:.3g} 1/s on the bodies it holds, too fast for dt = {dt:.3g} s; "
                f"take dt <= {most / haste[s]:.2g} s, or a softer spring"
            )

    def energies(self, t, edges):
        """Twice the energy [J] stored in each spring with a stiffness, (s,); t: Assembly with present poses."""
        self.measure(t, edges)
        return self.table.stiffness * (self.extent - self.table.rest) ** 2

    @property
    def pulls(self):
        """Pulls as of the last `pull`."""
        vector = -self.tension[:, None] * np.where((self.table.joint < 0)[:, None], self.row[:, 6:9], self.row[:, 9:])
        straight = (self.table.joint < 0)[:, None]
        return Pulls(np.where(straight, vector, 0.0), np.where(straight, 0.0, vector), self.extent.copy())


# Entries of a matrix of rotation, row by row: of the products 2 w w, 2 w x, ... 2 z z of a quaternion those of FIRST, and those of SECOND with these signs.
FIRST = np.array([10, 6, 7, 6, 5, 11, 7, 11, 5])
SECOND = np.array([15, 3, 2, 3, 15, 1, 2, 1, 10])
SIGNS = np.array([1.0, -1.0, 1.0, 1.0, 1.0, -1.0, -1.0, 1.0, 1.0])
WHOLE = 1.0 - 2.0 * np.eye(3).ravel()  # those on the diagonal are taken from 1
NEXT, LAST = np.array([1, 2, 0]), np.array([2, 0, 1])


def turns_of(orientation):
    """Matrices (k,3,3) that turn body axes into world axes. There are few rows: what counts is how many times NumPy is called."""
    products = (orientation[:, :, None] * (2.0 * orientation)[:, None, :]).reshape(-1, 16)
    turns = products.take(FIRST, 1) + SIGNS * products.take(SECOND, 1)
    turns *= WHOLE
    turns[:, ::4] += 1.0
    return turns.reshape(-1, 3, 3)


def cross(a, b):
    """Vector products of the rows of two arrays (..., 3); NumPy's own takes many times as long for few rows."""
    return a.take(NEXT, -1) * b.take(LAST, -1) - a.take(LAST, -1) * b.take(NEXT, -1)

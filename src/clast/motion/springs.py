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
        self.straight = np.flatnonzero(table.joint < 0)  # between two points
        self.functions = [spring.function for spring in scene.springs]
        self.plain = np.array([function is None for function in self.functions], dtype=bool)
        self.tension = np.zeros(len(table.rest))  # pull [N], or torque that turns b back [N m], when last asked
        self.direction = np.zeros((len(table.rest), 3))  # of the force on b, or of the torque on b when positive
        self.extent = np.zeros(len(table.rest))  # length [m] or angle [rad]

    def __len__(self):
        return len(self.table.rest)

    def place(self, numbers, world):
        """Find the slots (s,2) of the bodies of each spring, given the numbers of the bodies in slots; world: its slot."""
        self.slots = np.where(self.table.body >= 0, np.searchsorted(numbers, self.table.body), world)
        return self.slots

    def pull(self, t, velocity, time, edges, load):
        """Add the forces and torques of all springs to load (k,6). t: Assembly with present poses; velocity (k,6)."""
        if not len(self):
            return
        table, extent, rate = self.table, self.extent, np.zeros(len(self))
        turns = turns_of(t.orientation)
        a, b = self.slots[self.straight].T
        ra = np.einsum("sxy,sy->sx", turns[a], table.point[self.straight, 0])
        rb = np.einsum("sxy,sy->sx", turns[b], table.point[self.straight, 1])
        d = t.position[b] + rb - t.position[a] - ra
        d -= np.array(edges[:3]) * np.round(d * np.array(edges[3:]))
        length = np.sqrt((d * d).sum(1))
        # Where the two points meet there is no direction, and no force.
        axis = d / np.where(length > 0.0, length, 1.0)[:, None]
        moving = velocity[b, :3] + cross(velocity[b, 3:], rb) - velocity[a, :3] - cross(velocity[a, 3:], ra)
        extent[self.straight], rate[self.straight] = length, (moving * axis).sum(1)
        self.direction[self.straight] = axis
        for s in np.flatnonzero(table.joint >= 0).tolist():
            j = int(self.system.place[table.joint[s]])
            row = self.system.coordinate_row(j, 0)
            ends = self.slots[s]
            extent[s] = t.coordinate[j, 0]
            rate[s] = row[3:6] @ velocity[ends[0], 3:] + row[9:] @ velocity[ends[1], 3:]
            self.direction[s] = row[9:]
        self.tension[:] = table.stiffness * (extent - table.rest) + table.damping * rate
        for s in np.flatnonzero(~self.plain).tolist():
            self.tension[s] = self.functions[s](float(extent[s]), float(rate[s]), time)
        self.give(ra, rb, load)

    def frequencies(self, t, group, count):
        """The largest square of a frequency [1/s^2] that a spring alone would give the bodies of each group, (count,)."""
        square = np.zeros(count)
        straight = self.straight
        if len(straight):
            ends = self.slots[straight]
            value = self.table.stiffness[straight] * t.lightness[ends].sum(1)
            owner = np.maximum(group[ends[:, 0]], group[ends[:, 1]])
            np.maximum.at(square, owner, value)
        return square

    @property
    def pulls(self):
        """Pulls as of the last `pull`."""
        vector = -self.tension[:, None] * self.direction
        straight = (self.table.joint < 0)[:, None]
        return Pulls(np.where(straight, vector, 0.0), np.where(straight, 0.0, vector), self.extent.copy())

    def give(self, ra, rb, load):
        """Add the tensions to load (k,6), spring after spring."""
        vector = -self.tension[:, None] * self.direction  # on b
        arms = dict(zip(self.straight.tolist(), zip(ra, rb, strict=True), strict=True))
        for s, (a, b) in enumerate(self.slots.tolist()):
            f = vector[s]
            if s in arms:
                near, far = arms[s]
                load[a, :3] -= f
                load[b, :3] += f
                load[a, 3:] -= cross(near, f)
                load[b, 3:] += cross(far, f)
            else:
                load[a, 3:] -= f
                load[b, 3:] += f


def turns_of(orientation):
    """Matrices (k,3,3) that turn body axes into world axes; for few rows a third of the time of `vec.rotation_matrices`."""
    w, x, y, z = orientation.T
    m = np.empty((len(orientation), 3, 3))
    m[:, 0, 0], m[:, 0, 1], m[:, 0, 2] = 1.0 - 2.0 * (y * y + z * z), 2.0 * (x * y - w * z), 2.0 * (x * z + w * y)
    m[:, 1, 0], m[:, 1, 1], m[:, 1, 2] = 2.0 * (x * y + w * z), 1.0 - 2.0 * (x * x + z * z), 2.0 * (y * z - w * x)
    m[:, 2, 0], m[:, 2, 1], m[:, 2, 2] = 2.0 * (x * z - w * y), 2.0 * (y * z + w * x), 1.0 - 2.0 * (x * x + y * y)
    return m


def cross(a, b):
    """Vector products of the rows of two arrays (..., 3); NumPy's own takes four times as long for few rows."""
    x, y, z = a[..., 0], a[..., 1], a[..., 2]
    u, v, w = b[..., 0], b[..., 1], b[..., 2]
    return np.stack([y * w - z * v, z * u - x * w, x * v - y * u], -1)

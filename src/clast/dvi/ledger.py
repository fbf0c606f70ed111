"""What hard contacts lose, and what drives, gravity and the parting of overlaps do, in every step.

An impulse p changes the kinetic energy of a body by p . (v + v') / 2, v and v' its velocities before and after all impulses of the step: exactly, and for all of them
together. So a contact with the relative velocities u and u' loses -p . (u + u') / 2: along the normal by impact, across it by sliding, and its couples
likewise by rolling and twisting. Gravity gives m g dt . (v + v') / 2; the potential falls by what bodies are moved, with the velocities at the end of the step where they touch
something: the difference is numerical, and so is the way that a body loses which is stopped short of another. So the error of the balance is that of the kinetic energy.
"""

import numpy as np

from ..kernels.rows import SPINS, VELOCITIES
from ..motion.book import Book
from ..tables import FREE
from .stepper import Hard

NORMAL, SLIDING, ROLLING, TWISTING, DRIVEN, GROSS, GRAVITY, PARTED = range(8)


class HardLedger(Book):
    """What hard contacts have lost since the start, and what drives and gravity have done."""

    def __init__(self):
        super().__init__()
        self.sums = np.zeros(8)  # [J], by the names above

    def losses(self, now):
        """What was lost [J], as `clast.dem.ledger.LOSSES` has it, and numerically; now: present energies."""
        sums, (along, _, _, potential) = self.sums, self.since(now)
        lost = sums[NORMAL] - along, 0.0, sums[SLIDING], sums[ROLLING], sums[TWISTING]
        return [float(x) for x in lost], float(sums[PARTED] - sums[GRAVITY] - potential)

    @property
    def work(self):
        """Work [J] of driven bodies, and of gravity along directions in which the world repeats."""
        return float(self.sums[DRIVEN])

    @property
    def gross(self):
        """What contacts took in and gave back [J]."""
        return float(self.sums[GROSS])

    @property
    def stabilisation(self):
        """What parting overlaps added [J]."""
        return float(self.sums[PARTED])

    def remember(self):
        """What a checkpoint holds."""
        return {"sums": self.sums, "numbers": np.array(self.numbers())}

    def recall(self, kept):
        """Go on from what `remember` gave."""
        self.sums = np.array(kept["sums"])
        self.take_up(kept["numbers"])


def motions(rows, constraints):
    """Velocity of each contact (c,2,3) [m/s] as a point of its two bodies, and their spins (c,2,3) [rad/s]."""
    both = rows[constraints.body]
    spin = both[:, :, SPINS]
    return both[:, :, VELOCITIES] + np.cross(spin, constraints.arm.reshape(-1, 2, 3)), spin


class Accounted(Hard):
    """Takes the steps of a simulation by impulses, and keeps account of energies."""

    def __init__(self, scene, method, device, box, dt):
        super().__init__(scene, method, device, box, dt)
        if self.joints is not None:
            raise ValueError(
                "Simulation: the ledger of clast.Complementarity tells nothing of joints and springs; leave ledger=True out"
            )
        self.ledger = HardLedger()
        gravity = np.array(scene.gravity, float)
        self.along = np.where(box.length > 0.0, gravity, 0.0)  # where places tell no height
        self.down = gravity - self.along

    def _begin_drives(self):
        poses, state = super()._begin_drives(), self.state
        self.began = state.rows[: len(state.bodies.number)].copy()
        return poses

    def _count(self):
        super()._count()
        constraints, impulse, sums = self.constraints, self.impulse, self.ledger.sums
        (v, w), (v1, w1) = motions(self.began, constraints), motions(self.state.rows, constraints)
        v, w = 0.5 * (v + v1), 0.5 * (w + w1)
        n, push = constraints.normal, impulse[:, :3]
        couple = impulse[:, 3:] * constraints.length[:, None] if impulse.shape[1] == 6 else np.zeros_like(push)
        opening, turning = v[:, 1] - v[:, 0], w[:, 1] - w[:, 0]
        whole, pressed = _dot(push, opening), _dot(push, n) * _dot(opening, n)
        turned, twisted = _dot(couple, turning), _dot(couple, n) * _dot(turning, n)
        sums[NORMAL] -= pressed.sum()
        sums[SLIDING] -= (whole - pressed).sum()
        sums[ROLLING] -= (turned - twisted).sum()
        sums[TWISTING] -= twisted.sum()
        sums[GROSS] += np.abs(whole + turned).sum()
        # Bodies that nobody can push take what contacts do to them from their drive.
        held = self.state.bodies.motion[constraints.body] != FREE
        for side, sign in ((0, 1.0), (1, -1.0)):
            given = sign * (_dot(push, v[:, side]) + _dot(couple, w[:, side]))
            sums[DRIVEN] += given[held[:, side]].sum()

    def _part(self):
        bodies = self.state.bodies
        before = bodies.position.copy()
        super()._part()
        free = bodies.motion == FREE
        self.ledger.sums[PARTED] -= bodies.mass[free] @ ((bodies.position - before)[free] @ self.down)

    def _move(self, poses):
        super()._move(poses)
        bodies, sums = self.state.bodies, self.ledger.sums
        free = bodies.motion == FREE
        moved = 0.5 * self.dt * (self.began[:, VELOCITIES] + bodies.velocity)[free]
        sums[GRAVITY] += bodies.mass[free] @ (moved @ self.down)
        sums[DRIVEN] += bodies.mass[free] @ (moved @ self.along)

    def normal_energy(self):
        """Energy [J] that compliant contacts hold."""
        return self.elastic_energy()

    def remember(self):
        return {**super().remember(), "ledger": self.ledger.remember()}

    def recall(self, groups, steps):
        super().recall(groups, steps)
        self.ledger.recall(groups["ledger"])


def _dot(a, b):
    return (a * b).sum(1)

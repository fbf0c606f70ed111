"""What hard contacts lose, and what drives, gravity and the parting of overlaps do, in every step.

An impulse p changes the kinetic energy of a body by p . (v + v') / 2, v and v' its velocities before and after all impulses of the step: exactly, and for all of them
together. So a contact with the relative velocities u and u' loses -p . (u + u') / 2: along the normal by impact, across it by sliding, and its couples
likewise by rolling and twisting. Gravity gives m g dt . (v + v') / 2; the potential falls by what bodies are moved, with the velocities at the end of the step where they touch
something: the difference is numerical, and so is the way that a body loses which is stopped short of another. So the error of the balance is that of the kinetic energy. Joints, motors and springs:
see `clast.joints.account`. What dampers lose is the work of springs less what these hold, a difference.
"""

import numpy as np

from ..joints import account
from ..kernels.rows import SPINS, VELOCITIES
from ..motion.book import Book
from ..tables import FREE
from .stepper import Hard

NORMAL, SLIDING, ROLLING, TWISTING, DRIVEN, GROSS, GRAVITY, PARTED = range(8)
JOINED = 8  # from here on the sums of `clast.joints.account`


class HardLedger(Book):
    """What hard contacts have lost since the start, and what drives and gravity have done."""

    def __init__(self):
        super().__init__()
        self.sums = np.zeros(JOINED + account.COUNT)  # [J], by the names above
        self.joined = self.sums[JOINED:]

    def losses(self, now):
        """What was lost [J], as `clast.dem.ledger.LOSSES` has it, and numerically; now: present energies."""
        sums, joined, (along, springs, _, potential) = self.sums, self.joined, self.since(now)
        lost: tuple[float, ...] = sums[NORMAL] - along, 0.0, sums[SLIDING], sums[ROLLING], sums[TWISTING]
        lost += 0.0, -joined[account.SPRINGS] - springs, -joined[account.LIMITS]
        gravity = sums[GRAVITY] + joined[account.PULL]
        return [float(x) for x in lost], float(sums[PARTED] - gravity - potential - joined[account.JOINTS])

    @property
    def work(self):
        """Work [J] of driven bodies, and of gravity along directions in which the world repeats."""
        return float(self.sums[DRIVEN] + self.joined[account.DRIVES])

    @property
    def motors(self):
        """Work [J] of motors, and of joints whose length is a function of time."""
        return float(self.joined[account.MOTORS])

    @property
    def gross(self):
        """What contacts, springs and motors took in and gave back [J]."""
        return float(self.sums[GROSS] + self.joined[account.GROSS])

    @property
    def stabilisation(self):
        """What parting overlaps added [J]."""
        return float(self.sums[PARTED])

    def remember(self):
        """What a checkpoint holds."""
        return {"sums": self.sums, "numbers": np.array(self.numbers())}

    def recall(self, kept):
        """Go on from what `remember` gave."""
        kept_sums = np.array(kept["sums"])
        self.sums[: len(kept_sums)] = kept_sums
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
        self.ledger = HardLedger()
        gravity = np.array(scene.gravity, float)
        self.along = np.where(box.length > 0.0, gravity, 0.0)  # where places tell no height
        self.down = gravity - self.along
        if self.joints is not None:
            self.joints.account = account.Account(self.joints, self.down, self.along)
            self.joints.account.sums = self.ledger.joined

    def start(self):
        super().start()
        if self.ledger.start is None:
            self.ledger.sums[:] = 0.0  # velocities were made to obey joints

    def _begin_drives(self):
        poses, state = super()._begin_drives(), self.state
        self.began = state.rows[: len(state.bodies.number)].copy()
        return poses

    def _count(self):
        super()._count()
        if self.joints is not None:
            self._count_joints()
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

    def _count_joints(self):
        """What joints of groups that touch something did, and springs and motors that act on them."""
        joints = self.joints
        book, both = joints.account, self.began[joints.rows]
        joints.fetch(self.state.rows)
        book.begin()
        book.velocity[:-1, :3], book.velocity[:-1, 3:] = both[:, VELOCITIES], both[:, SPINS]
        book.impulse[:] = 0.0
        book.end(joints.touching, self.time, self.dt)
        book.stops(joints.stops)

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
        if self.joints is not None:
            free &= self.joints.groups < 0
        moved = 0.5 * self.dt * (self.began[:, VELOCITIES] + bodies.velocity)[free]
        sums[GRAVITY] += bodies.mass[free] @ (moved @ self.down)
        sums[DRIVEN] += bodies.mass[free] @ (moved @ self.along)

    def normal_energy(self):
        """Energy [J] that compliant contacts hold."""
        return self._pressed_energy()

    def remember(self):
        return {**super().remember(), "ledger": self.ledger.remember()}

    def recall(self, groups, steps):
        super().recall(groups, steps)
        self.ledger.recall(groups["ledger"])


def _dot(a, b):
    return (a * b).sum(1)

"""What hard contacts lose, and what drives, gravity and the parting of overlaps do, in every step.

An impulse p changes the kinetic energy of a body by p . (v + v') / 2, v and v' its velocities before and after all impulses of the step: exactly, and for all of them
together. So a contact with the relative velocities u and u' loses -p . (u + u') / 2: along the normal by impact, across it by sliding, and its couples
likewise by rolling and twisting. Gravity gives m g dt . (v + v') / 2; the potential falls by what bodies are moved, with the velocities at the end of the step where they touch
something: the difference is numerical, and so is the way that a body loses which is stopped short of another. So the error of the balance is that of the kinetic energy. Joints, motors and springs:
see `clast.joints.account`. What dampers lose is the work of springs less what these hold, a difference.
"""

import numpy as np

from ..joints import account
from ..kernels.backend import func, kernel
from ..kernels.rows import PER_MASS, SPINS, VELOCITIES, spin_at, velocity_at
from ..kernels.vec import add, cross, dot, load, scale, sub
from ..motion.book import Book
from ..tables import FREE
from .stepper import Hard

NORMAL, SLIDING, ROLLING, TWISTING, DRIVEN, GROSS, GRAVITY, PARTED = range(8)
NONE = np.zeros(0, np.int8)
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


@func
def mean(one, two):
    """The mean of two vectors."""
    return scale(0.5, add(one, two))


def count_chunk(c, chunk, began, rows, body, arm, normal, length, impulse, told):
    """What one chunk of contacts did: told (chunks,6) [J], NORMAL to GROSS.

    began, rows: of bodies before and after the step; body (c,2): rows of the two of each contact; arm (c,6) [m]: to it from their centres; impulse (c,3 or 6) [N s], couples over length (c,) [m].
    """
    pressed, slid, rolled, twisted, driven, gross = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    for row in range(c * chunk, min(len(body), (c + 1) * chunk)):
        k = np.uintp(row)
        a, b = np.uintp(body[k, 0]), np.uintp(body[k, 1])
        wa, wb = mean(spin_at(began, a), spin_at(rows, a)), mean(spin_at(began, b), spin_at(rows, b))
        va, vb = (
            mean(velocity_at(began, a), velocity_at(rows, a)),
            mean(velocity_at(began, b), velocity_at(rows, b)),
        )
        va = add(va, cross(wa, (arm[k, 0], arm[k, 1], arm[k, 2])))
        vb = add(vb, cross(wb, (arm[k, 3], arm[k, 4], arm[k, 5])))
        n, push, couple = load(normal, k), (impulse[k, 0], impulse[k, 1], impulse[k, 2]), (0.0, 0.0, 0.0)
        if impulse.shape[1] == 6:
            couple = scale(length[k], (impulse[k, 3], impulse[k, 4], impulse[k, 5]))
        opening, turning = sub(vb, va), sub(wb, wa)
        whole, along = dot(push, opening), dot(push, n) * dot(opening, n)
        turned, about = dot(couple, turning), dot(couple, n) * dot(turning, n)
        pressed -= along
        slid -= whole - along
        rolled -= turned - about
        twisted -= about
        gross += abs(whole + turned)
        # Bodies that nobody can push take what contacts do to them from their drive.
        if rows[a, PER_MASS] == 0.0:
            driven += dot(push, va) + dot(couple, wa)
        if rows[b, PER_MASS] == 0.0:
            driven -= dot(push, vb) + dot(couple, wb)
    told[c, NORMAL], told[c, SLIDING], told[c, ROLLING] = pressed, slid, rolled
    told[c, TWISTING], told[c, DRIVEN], told[c, GROSS] = twisted, driven, gross


def fall_chunk(c, chunk, began, rows, mass, alone, down, along, told):
    """What gravity gave to one chunk of bodies at their mean velocities: told (chunks,2) [W], along the directions in which places tell of it and along the others; alone (n,): 1
    where joints do not hold a body."""
    falls, driven = 0.0, 0.0
    for row in range(c * chunk, min(len(mass), (c + 1) * chunk)):
        i = np.uintp(row)
        if rows[i, PER_MASS] > 0.0 and (len(alone) == 0 or alone[i] == 1):
            v = mean(velocity_at(began, i), velocity_at(rows, i))
            falls += mass[i] * dot(v, down)
            driven += mass[i] * dot(v, along)
    told[c, 0], told[c, 1] = falls, driven


class Accounted(Hard):
    """Takes the steps of a simulation by impulses, and keeps account of energies."""

    def __init__(self, scene, method, device, box, dt):
        super().__init__(scene, method, device, box, dt)
        self.ledger = HardLedger()
        gravity = np.array(scene.gravity, float)
        self.along = np.where(box.length > 0.0, gravity, 0.0)  # where places tell no height
        self.down = gravity - self.along
        self._counting, self._falling = kernel(count_chunk, grain=4), kernel(fall_chunk, grain=4)
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
        count, chunk = len(constraints.body), self.device.chunk
        if count == 0:
            return
        told = np.empty(((count + chunk - 1) // chunk, GROSS + 1))
        tables = constraints.body, constraints.arm, constraints.normal, constraints.length
        with self.on_device:
            self._counting(len(told), chunk, self.began, self.state.rows, *tables, impulse, told)
        sums[: GROSS + 1] += told.sum(0)

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
        mass, sums, chunk = self.state.bodies.mass, self.ledger.sums, self.device.chunk
        alone = NONE if self.joints is None else (self.joints.groups < 0).astype(np.int8)
        told = np.empty(((len(mass) + chunk - 1) // chunk, 2))
        with self.on_device:
            self._falling(
                len(told), chunk, self.began, self.state.rows, mass, alone, tuple(self.down), tuple(self.along), told
            )
        falls, driven = told.sum(0)
        sums[GRAVITY] += self.dt * falls
        sums[DRIVEN] += self.dt * driven

    def normal_energy(self):
        """Energy [J] that compliant contacts hold."""
        return self._pressed_energy()

    def remember(self):
        return {**super().remember(), "ledger": self.ledger.remember()}

    def recall(self, groups, steps):
        super().recall(groups, steps)
        if "ledger" in groups:  # many processes keep none; then it begins here
            self.ledger.recall(groups["ledger"])

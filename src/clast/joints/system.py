"""Joints in motion: the bodies they hold together keep their velocities, and where they go, within what the joints allow.

Bodies that hang together through joints and springs make a group. A group that touches nothing goes on its own (`advance`), by the
second-order scheme RATTLE (Andersen 1983), here with rotations, in steps of length h:

    v += h/2 M^-1 f
    v += M^-1 J^T lambda             so that the drift ends with closed joints, Psi = 0
    drift: x += h v, free rotation
    J, S at the new poses
    v += h/2 M^-1 f
    v += M^-1 J^T lambda             so that J v = -rate

Five such steps of different lengths make one step of the simulation, of fourth order. A group that touches something, or stands at a limit,
takes the whole kick; its joints are restored whenever impulses of contacts have changed velocities (`restore`), and before
the drift it is aimed at closed joints in the same way (`aim`).
"""

from contextlib import contextmanager
from typing import Any

import numba
import numpy as np

from ..kernels import backend
from ..kernels.backend import kernel
from ..kernels.rows import SPINS, VELOCITIES
from ..scene import drives
from ..tables import DRIVEN, some_bodies
from . import rows as joint_rows
from .account import counted
from .assembly import assemble
from .limits import Stops
from .motors import Goals, ask
from .reactions import present_forces, read
from .rows import NEWTON
from .springs import SpringSystem, turns_of

# Steps of RATTLE, as parts of a step of the simulation, one of them backward, whose errors of second order cancel
# (Suzuki 1990).
PART = 1.0 / (4.0 - 4.0 ** (1.0 / 3.0))
SWING = 0.7  # [rad], what the fastest swinging of a group may go on in a round of these
ROUNDS = 32  # at the most
PARTS = (PART, PART, 1.0 - 4.0 * PART, PART, PART)


def refuse_without(gone):
    """Refuse to go on without bodies (k,) that are held."""
    if len(gone):
        raise ValueError(
            f"body {gone[0]} is gone, but a joint or spring holds it; keep outlets away from joined bodies"
        )


class JointSystem:
    """All joints, springs and motors of a scene while it moves. box: the periodic world, tables.Box."""

    # Set up by `assemble`, which says what they are.
    slot_group: Any
    group_count: Any
    order: Any
    place: Any
    joint_group: Any
    here: Any
    touching: Any
    held: Any
    felt: Any
    known: Any
    pressed: Any
    start: Any
    scratch: Any
    arm: Any
    least: Any

    def __init__(self, scene, box):
        self.scene, self.box = scene, box
        self.joints, springs = scene.joint_tables()
        self.apart = scene.apart
        self.edges = (*box.length.tolist(), *box.inverse.tolist())
        self.goals = Goals(scene)
        self.springs = SpringSystem(scene, springs, self)
        self.stops = Stops(self)
        self.numbers = np.unique(np.concatenate([self.joints.body.reshape(-1), springs.body.reshape(-1)]))
        self.numbers = self.numbers[self.numbers >= 0]
        self._kernels = {
            name: kernel(getattr(joint_rows, f"{name}_group"), grain=2) for name in ("prepare", "solve", "aim")
        }
        self.table: Any = None
        self._single = False
        self.time, self.dt = 0.0, 0.0  # of the last `prepare`
        self._reactions: Any = None  # of the present moment, if they have been asked for
        self.account: Any = None  # keeps account of energies, see `clast.joints.account`

    def __len__(self):
        return len(self.joints.body)

    @property
    def pulling(self):
        """Whether there are springs or motors that give a force."""
        return bool(len(self.springs) or self.goals.pushing)

    # Where bodies stand in memory.

    def renew(self, bodies, own):
        """Take note of the rows in which the bodies stand now, of which the first `own` are moved here; the first time, set everything up."""
        number, last = bodies.number[:own], max(own - 1, 0)
        order = np.argsort(number, kind="stable")
        there = np.isin(self.numbers, number)
        place = np.minimum(np.searchsorted(number, self.numbers, sorter=order), last)
        self.rows, self.count = np.where(there, order[place] if own else -1, -1), len(bodies.number)
        self.present = np.flatnonzero(there)  # slots whose bodies are here,
        self.standing = self.rows[self.present]  # in these rows
        if self.table is None:
            assemble(self, self.members(bodies))
        self.groups = np.full(self.count, -1, np.int32)  # of each row of Bodies; -1 without joint or spring
        self.groups[self.standing] = self.slot_group[self.present]
        self.driven = [
            (slot, self.scene.drives[int(bodies.number[row])])
            for slot, row in zip(self.present.tolist(), self.standing.tolist(), strict=True)
            if bodies.motion[row] == DRIVEN
        ]

    def members(self, bodies):
        """Bodies that are held, sorted by number."""
        refuse_without(self.numbers[self.rows < 0])
        return some_bodies(bodies, self.rows)

    def look_for_all(self):
        """Refuse to go on without a body that is held."""
        needed = np.where(self.slot_group[:-1] >= 0, self.here[self.slot_group[:-1]], True)
        refuse_without(self.numbers[needed & (self.rows < 0)])

    # The parts of a step.

    def prepare(self, rows, bodies, time, dt):
        """Equations of joints at the present poses and time [s], and their factorisation, for steps of length dt; `settle` comes next.

        rows (s,12): see `clast.motion.state`.
        """
        t, slots, mine = self.table, self.present, self.standing
        t.position[slots], t.orientation[slots] = bodies.position[mine], bodies.orientation[mine]
        self.fetch(rows)
        self._prepare(time, dt, self.here)

    def take_up(self, rows, bodies, groups, held=False):
        """The same, as it was when the step ended, of groups (g,) that come from another process or a file, and held: of bodies that cannot be pushed; what `state` tells of
        is there."""
        t, group = self.table, self.slot_group[self.present]
        slots = self.present[np.where(group >= 0, groups[group], held)]
        mine, coordinate = self.rows[slots], t.coordinate.copy()
        t.position[slots], t.orientation[slots] = bodies.position[mine], bodies.orientation[mine]
        t.velocity[slots, :3], t.velocity[slots, 3:] = rows[mine, VELOCITIES], rows[mine, SPINS]
        self._prepare(self.time, self.dt, groups)
        t.coordinate[:] = coordinate  # angles that are found again differ by rounding
        self.held = self.stops.find(t, self.time, self.dt)

    def check(self):
        """Refuse springs that are too fast for the time step of the last `prepare`."""
        self.springs.respond(self.table, self.edges)
        self.springs.check(self.dt, SWING * ROUNDS)

    def settle(self, rows, groups):
        """Velocities of these groups, mask (g,), obey the joints as they are now; and what may come to a limit is known."""
        if groups.any():
            self.fetch(rows)
            with counted(self, groups, self.time, 0.0):
                self.solve_slots(groups)
            self._give(rows)
        self.held = self.stops.find(self.table, self.time, self.dt)

    def begin(self, rows, touched):
        """A step begins; touched (n,): which bodies touch something, of those that are moved here. Returns which of them take the whole kick, (n,)."""
        self.fetch(rows)
        self.start[:] = self.table.velocity
        groups = self.groups[: len(touched)]
        member = groups >= 0
        self.touching = self.held.copy()
        self.touching[groups[touched & member]] = True
        return np.where(member, self.touching[np.where(member, groups, 0)], touched)

    def forces(self, rows):
        """Force [N] and torque [N m] about the centre of mass, (n,3) each, of springs and motors of force."""
        force, torque = np.zeros((self.count, 3)), np.zeros((self.count, 3))
        if self.pulling:
            self.fetch(rows)
            self.springs.respond(self.table, self.edges)
            load = self._loads(self.time, self.table.velocity, self.dt)
            force[self.standing], torque[self.standing] = load[self.present, :3], load[self.present, 3:]
        return force, torque

    def restore(self, rows, fresh):
        """Change velocities in `rows` so that groups that touch obey their joints and limits.

        fresh: the velocities know of no impulse of a joint yet; otherwise those so far count.
        """
        if self.touching.any():
            self.fetch(rows)
            if fresh:
                self.table.impulse[:] = 0.0
            self.solve_slots(self.touching)
            self.stops.solve(self.table, fresh)
            self._give(rows)

    def aim(self, rows, dt):
        """Change velocities in `rows` so that a drift over dt closes the joints of groups that touch.

        The drift must be x += dt v and, for the rotation, `clast.motion.rotation.tumble`.
        """
        if self.touching.any():
            self.fetch(rows)
            self._aim(self.time, dt, self.touching)
            self._give(rows)
            extra, efforts = self.stops.wrenches(dt, len(self))
            self.pressed = self.table.impulse / dt, extra, efforts

    def advance(self, rows, bodies, dt):
        """Move the groups that touch nothing to the end of the step, from where they were at its start."""
        alone = self.here & ~self.touching
        if not alone.any():
            self.goals.move_on(self.touching[self.joint_group][self.place], self.time, dt)
            return
        with self._few_threads():
            self._advance(rows, bodies, dt, alone)

    def _advance(self, rows, bodies, dt, alone):
        t, began = self.table, self.time
        free = self.slot_group >= 0
        member = np.where(free, alone[np.where(free, self.slot_group, 0)], False)
        t.velocity[member] = self.start[member]
        before = t.velocity.copy(), t.orientation.copy()
        pinned = t.position[~free], t.orientation[~free], t.velocity[~free]
        counts = self._rounds(dt, alone)
        for count in np.unique(counts[alone]).tolist():
            mask = alone & (counts == count)
            slots = np.flatnonzero(member & mask[np.where(free, self.slot_group, 0)])
            t.position[~free], t.orientation[~free], t.velocity[~free] = pinned
            for k in range(count):
                time = began + k * dt / count
                for part in PARTS:
                    self._own_step(time, part * dt / count, mask, slots)
                    time += part * dt / count
        self.goals.move_on(self.touching[self.joint_group][self.place], began, dt)
        self._hand_back(rows, bodies, np.flatnonzero(member), before, dt)

    def _rounds(self, dt, alone):
        """How many rounds of its own steps each group takes in a step, (g,): more than one where something swings too fast; alone: mask (g,) of those that do.

        Light bodies between joints under a large force swing like strings; explicit steps must follow that.
        """
        t = self.table
        square = self.springs.frequencies(t, self.slot_group, self.group_count) ** 2
        if len(self):
            new = alone & ~self.known
            if new.any():
                self.felt = np.where(new[self.joint_group][:, None], present_forces(self), self.felt)
                self.known |= new
            self.goals.write(t, self.place, self.time, 0.0, dt)  # lengths, whatever other groups did since
            pull = np.sqrt((np.einsum("jr,jrk->jk", self.felt, t.jacobian[:, :, 6:9]) ** 2).sum(1))
            least = self.least[t.slot]
            swing = self.arm / (least + self.arm**2)
            swing = np.where(t.held[:, :1], 1.0 / np.maximum(t.goal[:, :1], 1e-300) + swing, swing)
            np.maximum.at(square, self.joint_group, pull * (t.lightness[t.slot] * swing).sum(1))
        return np.clip(np.ceil(dt * np.sqrt(square) / SWING), 1, ROUNDS).astype(int)

    def _own_step(self, time, dt, mask, slots):
        """One step of RATTLE of the groups in the mask; slots: their free bodies."""
        t = self.table
        start = t.velocity[slots]
        mine = mask[self.joint_group]
        t.impulse[mine] = 0.0
        with counted(self, mask, time, 0.5 * dt):
            self._kick(time, 0.5 * dt, slots, 0.0)
            self._aim(time, dt, mask)
        if len(self):
            self.felt[mine] = t.impulse[mine] / (0.5 * dt)
        gained = t.velocity[slots] - start
        t.position[slots], t.orientation[slots] = t.next_position[slots], t.next_orientation[slots]
        t.velocity[slots, 3:] = t.next_spin[slots]
        self.goals.move_on(mask[self.joint_group][self.place], time, dt)
        self._drive(time, dt)
        self._prepare(time + dt, dt, mask)
        # Dampers see the velocity after the kick, as far as the first kick tells.
        with counted(self, mask, time + dt, 0.5 * dt):
            self._kick(time + dt, 0.5 * dt, slots, gained)
            self.solve_slots(mask)

    def _hand_back(self, rows, bodies, slots, before, dt):
        """Write poses, velocities and forces of these slots into the tables of all bodies."""
        t, mine = self.table, self.rows[slots]
        position = t.position[slots]
        for axis in np.flatnonzero(self.box.length):
            length, low = self.box.length[axis], self.box.low[axis]
            position[:, axis] -= length * np.floor((position[:, axis] - low) / length)
        bodies.position[mine], bodies.orientation[mine] = position, t.orientation[slots]
        rows[mine, VELOCITIES], rows[mine, SPINS] = t.velocity[slots, :3], t.velocity[slots, 3:]
        mass = 1.0 / t.lightness[slots, None]
        velocity, orientation = before
        pull = (t.velocity[slots, :3] - velocity[slots, :3]) / dt - np.array(self.scene.gravity)
        bodies.force[mine] = mass * pull
        # Of all slots: how NumPy adds up depends on how many there are, and that must not depend on who has which.
        momenta = [
            np.einsum("kxy,kyz,kwz,kw->kx", turn, t.inertia, turn, spin)
            for turn, spin in (
                (turns_of(orientation), velocity[:, 3:]),
                (turns_of(t.orientation), t.velocity[:, 3:]),
            )
        ]
        bodies.torque[mine] = mass * (momenta[1] - momenta[0])[slots] / dt

    # On slots.

    @contextmanager
    def _few_threads(self):
        """One thread where there is one group, set once: to change the number of threads takes longer than a small step."""
        threads = numba.get_num_threads()
        self._single = self.group_count == 1 and not backend.SIMULATED
        if self._single:
            numba.set_num_threads(1)
        try:
            yield
        finally:
            if self._single:
                numba.set_num_threads(threads)
            self._single = False

    def _launch(self, name, *arguments):
        if self._single:
            self._kernels[name].loop(self.group_count, arguments)
        else:
            self._kernels[name](self.group_count, *arguments)

    def fetch(self, rows):
        """Take the velocities of all bodies in slots from rows (s,12)."""
        both, slots, velocity = rows[self.standing], self.present, self.table.velocity
        velocity[slots, :3], velocity[slots, 3:] = both[:, 4:7], both[:, 8:11]

    def _give(self, rows):
        both, mine = self.table.velocity[self.present], self.standing
        rows[mine, VELOCITIES], rows[mine, SPINS] = both[:, :3], both[:, 3:]

    def _prepare(self, time, dt, mask):
        self.time, self.dt, self._reactions = time, dt, None
        if len(self):
            self.goals.write(self.table, self.place, time, 0.0, dt)
            self._launch("prepare", self.table, mask, self.edges)

    def solve_slots(self, mask):
        """Velocities of the slots of these groups obey their joints."""
        if len(self):
            self._launch("solve", self.table, mask)

    def _aim(self, time, dt, mask, most=NEWTON):
        t = self.table
        self.goals.write(t, self.place, time, dt, dt if dt else self.dt)
        pinned = self.slot_group < 0
        t.next_position[pinned], t.next_orientation[pinned] = t.position[pinned], t.orientation[pinned]
        if dt:
            for slot, drive in self.driven:
                t.next_position[slot], t.next_orientation[slot] = self._pose(slot, drive, time, dt)[:2]
        self._launch("aim", t, mask, self.edges, dt, most, self.scratch)

    def glance(self, ahead):
        """Violations (j,6) that the free motion from now would have after a time `ahead`."""
        self._aim(self.time, ahead, self.here, most=0)
        return self.table.violation.copy()

    def _pose(self, slot, drive, time, dt):
        """Position, orientation, velocity and spin of a driven body at time + dt."""
        if drive.function is None:
            return drives.pose(drive, time + dt)
        here = tuple(self.table.position[slot].tolist()), tuple(self.table.orientation[slot].tolist())
        return drives.advance(drive, *here, time, dt)

    def _drive(self, time, dt):
        t = self.table
        for slot, drive in self.driven:
            pose = self._pose(slot, drive, time, dt)
            t.position[slot], t.orientation[slot], t.velocity[slot, :3], t.velocity[slot, 3:] = pose

    def _kick(self, time, part, slots, gained):
        """Give these slots their forces for a time `part`."""
        t = self.table
        if self.pulling:
            seen = t.velocity.copy()
            seen[slots] += gained
            t.velocity[slots] += part * self.accelerations(self._loads(time, seen))[slots]
        t.velocity[slots, :3] += part * np.array(self.scene.gravity)

    def _loads(self, time, velocity, ahead=0.0):
        """Forces and torques (k,6) of springs and motors on all slots; ahead: see `SpringSystem.pull`."""
        load = np.zeros((len(velocity), 6))
        self.springs.pull(self.table, velocity, time, self.edges, load, ahead)
        for j, row in self.pushes(time):
            a, b = self.table.slot[j]
            load[a] += row[:6]
            load[b] += row[6:]
        return load

    def pushes(self, time):
        """Of each motor that gives a force or torque the joint of the assembly and what it does to both bodies (12,) at `time`."""
        for motor in self.goals.pushing:
            j = int(self.place[motor.joint])
            value = motor.value if motor.function is None else ask(motor.function, time)
            yield j, value * self.coordinate_row(j, 0 if motor.turning else 1)

    def accelerations(self, load):
        """M^-1 times forces and torques (k,6) on all slots."""
        t = self.table
        turns = turns_of(t.orientation)
        local = np.einsum("kxy,kx->ky", turns, load[:, 3:])
        spin = np.einsum("kxy,kyz,kz->kx", turns, t.inverse, local)
        return t.lightness[:, None] * np.concatenate([load[:, :3], spin], axis=1)

    def coordinate_row(self, j, which):
        """The row (12,) that gives the rate of the angle (0) or shift (1) of joint j of the assembly."""
        t = self.table
        a, b = t.slot[j]
        turns = turns_of(t.orientation[[a, b]])
        z = turns[0] @ turns_of(t.frame[j, :1])[0][:, 2]
        zero = np.zeros(3)
        if which == 0:
            return np.concatenate([zero, -z, zero, z])
        ra, rb = turns[0] @ t.point[j, 0], turns[1] @ t.point[j, 1]
        return np.concatenate([-z, -np.cross(ra + t.coordinate[j, 1] * z, z), z, np.cross(rb, z)])

    # What is asked.

    @property
    def reactions(self):
        """Reactions of all joints at the end of the last step, in the order of adding; see `clast.joints.reactions`."""
        if self._reactions is None:
            self._reactions = read(self, present_forces(self))
        return self._reactions

    @property
    def pulls(self):
        """What springs do at present, in the order of adding; see `clast.joints.springs`."""
        self._loads(self.time, self.table.velocity)
        return self.springs.pulls

    @property
    def elastic_energy(self):
        """Energy [J] stored in springs at present; those with a user's function have none."""
        return 0.5 * float(self.energies().sum()) if len(self.springs) else 0.0

    def energies(self):
        """Twice the energy [J] that each spring stores at present, (s,)."""
        return self.springs.energies(self.table, self.edges)

    @property
    def violation(self):
        """Largest violation of each joint at the present poses, [m] or [rad], (j,), in the order of adding."""
        return abs(self.table.violation).max(1, initial=0.0)[self.place]

    def state(self):
        """What must survive a restart, as one array."""
        felt = np.where(self.known[self.joint_group][:, None], self.felt, np.nan)
        kept = self._kept(felt, self._pressing(), self.touching.astype(float))
        return np.concatenate([part.reshape(-1) for part in kept])

    def _pressing(self):
        """What presses on the joints of groups that touch; what stands there of others is of an earlier step."""
        touching = self.touching[self.joint_group][:, None]
        return [np.where(touching, part, 0.0) for part in self.pressed[:2]]

    def restore_state(self, state):
        """Take up what `state` returned."""
        at, touching, felt = 0, self.touching.astype(float), np.zeros_like(self.felt)
        for part in self._kept(felt, self.pressed[:2], touching) if len(state) else ():
            part.reshape(-1)[:] = state[at : at + part.size]
            at += part.size
        new = np.isnan(felt).any(1)
        self.touching, self.felt = touching > 0.0, np.where(new[:, None], 0.0, felt)
        self.known = ~np.isin(np.arange(self.group_count), self.joint_group[new])

    def _kept(self, felt, pressed, touching):
        return self.goals.travelled, self.table.coordinate, felt, *pressed, touching

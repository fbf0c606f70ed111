"""Bodies that rest sleep until something disturbs them: `Complementarity(sleep=...)`.

A body that sleeps stands like a wall: it takes no part in the problem of a step, and of its contacts with others that sleep, and with walls that stand,
nothing is computed; they keep the impulses that they had. That is exact while forces on it balance, and it is asked in every step in which something that is
awake touches it: impulses now, those that are kept, and its weight add up to nothing. Where they do not it wakes with its neighbours, and the
step is solved again with them. So a ball that hits a sleeping pile hits bodies with their mass, a support that is taken away is missed in the same step, and
a load that is put on is handed down as far as it is felt.
"""

import math

import numpy as np

from ..kernels.rows import PER_INERTIA, PER_MASS, SPINS, VELOCITIES
from ..narrow.contacts import select
from ..narrow.dispatch import find_points
from ..tables import FREE, Contacts
from .constraints import CHUNK, Near, empty_constraints, find_near
from .stepper import Hard

PART = 0.005  # sleep="auto" as a part of what gravity adds to a velocity in a step
STEPS = 50  # a body falls asleep after so many steps at rest
PUSH = 50.0  # times that speed: what forces that do not balance may add to a velocity in a step without waking a body, a quarter of its weight
LOAD = 0.01  # and this part of what presses on it from all sides, which is not known better
QUICK = 10.0  # times that speed: what is faster wakes what it touches before the step is solved
HARD = 4.0  # times that: the step is solved again with those that wake; who is pushed less has stood still for one step more
TRIES = 8  # solves of a step that wake neighbours of neighbours, the farther the more there were; then all that hang together wake


class Resting(Hard):
    """Takes the steps of a simulation by impulses; bodies that rest sleep."""

    def __init__(self, scene, method, device, box, dt):
        super().__init__(scene, method, device, box, dt)
        if self.joints is not None:
            raise ValueError("Simulation: bodies of a scene with joints or springs do not sleep; leave sleep= out")
        pull = math.hypot(*scene.gravity)
        if method.sleep == "auto" and pull == 0.0:
            raise ValueError("Simulation: sleep='auto' needs gravity; give the speed in m/s below which bodies rest")
        self.rest = PART * pull * self.dt if method.sleep == "auto" else float(method.sleep)
        # By the numbers of bodies, which never change.
        self.calm = np.zeros(0, np.int32)  # steps that each has been slow for
        self.asleep = np.zeros(0, bool)
        self.slept = self.asleep  # during the last solve
        self.doubt = False  # bodies came or went: all that sleep are looked at in the next step
        self._seen: tuple = (None,)  # Near, and the bodies of all its rows
        self.still = 0, 0.0  # contacts between bodies that sleep that carry a force, and the energy [J] that they hold
        self._know()

    def _know(self):
        """Have room for every body."""
        more = int(self.state.bodies.number.max(initial=-1)) + 1 - len(self.calm)
        if more > 0:
            self.calm = np.append(self.calm, np.zeros(more, np.int32))
            self.asleep = np.append(self.asleep, np.zeros(more, bool))
            self.slept = np.append(self.slept, np.zeros(more, bool))

    @property
    def _sleepers(self):
        """Which bodies (n,), by their rows, sleep."""
        return self.asleep[self.state.bodies.number]

    # Before the solve.

    def _touch(self):
        state = self.state
        self._know()
        sleepers = self._sleepers
        n = len(sleepers)
        moved = state.rows[:n, VELOCITIES].any(1) | state.rows[:n, SPINS].any(1)
        if (moved & sleepers).any():  # somebody has given it a velocity
            self._wake(moved & sleepers)
            sleepers = self._sleepers
        state.rows[:n, PER_MASS] = np.where(sleepers, 0.0, 1.0 / state.bodies.mass)
        state.rows[:n, PER_INERTIA] = np.where(sleepers, 0.0, 1.0 / state.bodies.inertia)
        super()._touch()

    def _notice(self):
        """Wake what a moving wall or a fast body may touch within the step; others are found by their forces."""
        if not self.asleep.any():
            return
        bodies, sleepers = self.state.bodies, self._sleepers
        driven = (bodies.motion != FREE) & (bodies.velocity.any(1) | bodies.spin.any(1))
        quick = driven | (self._speed() > QUICK * self.rest)
        if quick.any():
            one, two = self._pair_of(super()._closing(self.slack, self.scene.gravity))
            woken = np.zeros(len(quick), bool)
            woken[two[quick[one]]] = woken[one[quick[two]]] = True
            if (woken & sleepers).any():
                self._wake(woken & sleepers)

    def _closing(self, slack, gravity):
        """See Hard; without contacts between bodies that stand."""
        kept = super()._closing(slack, gravity)
        if not self.asleep.any():
            return kept
        stands, (one, two) = self._stands(), self._pair_of(kept)
        return kept[~(stands[one] & stands[two])]

    def _stands(self):
        """Which bodies (n,) nothing can move in this step."""
        return self._sleepers | (self.state.bodies.motion != FREE)

    def _pair_of(self, kept):
        """Rows of bodies, (k,) and (k,), of some rows (k,) of Near."""
        if self._seen[0] is not self.near:
            pair = self.state.pairs.shape[self.near.pair]
            self._seen = self.near, self.state.shapes.body[pair[:, 0]], self.state.shapes.body[pair[:, 1]]
        return self._seen[1][kept], self._seen[2][kept]

    def _speed(self):
        """How fast [m/s] points of each body move at the most, (n,)."""
        bodies = self.state.bodies
        turning = self.outer[bodies.mold] * bodies.scale * np.sqrt(np.einsum("ni,ni->n", bodies.spin, bodies.spin))
        speed = np.sqrt(np.einsum("ni,ni->n", bodies.velocity, bodies.velocity)) + turning
        return np.where(bodies.motion == FREE, speed, 0.0)

    def _wake(self, rows):
        """Wake these bodies (n,) bool."""
        state, number = self.state, self.state.bodies.number[rows]
        self.asleep[number], self.calm[number] = False, 0
        at = np.flatnonzero(rows)
        state.rows[at, PER_MASS], state.rows[at, PER_INERTIA] = (
            1.0 / state.bodies.mass[at],
            1.0 / state.bodies.inertia[at],
        )

    # After it.

    def _look_again(self):
        """See Hard; wake those that forces would move, and solve once more with those that they would move by much."""
        super()._look_again()
        tries, pushed = 0, self._pushed()
        while (woken := pushed > HARD).any():
            state, n = self.state, len(self.state.bodies.number)
            one, two = self._pair_of(self._pressing())
            reached: int | np.integer = 0
            rings = 2 ** (tries // 2) if tries < TRIES else n
            while rings > 0 and np.count_nonzero(woken) > reached:  # neighbours of neighbours
                rings, reached = rings - 1, np.count_nonzero(woken)
                touched = woken[one] | woken[two]
                woken[one[touched]] = woken[two[touched]] = True
            self._wake(woken & self._sleepers)
            state.rows[:n, VELOCITIES], state.rows[:n, SPINS] = self.before[:, :3], self.before[:, 3:]
            iterations, tries = self.solution.iterations, tries + 1
            self._fill(self._closing(self.slack, self.scene.gravity))
            self._solve()
            self.solution = self.solution._replace(iterations=iterations + self.solution.iterations)
            super()._look_again()
            pushed = self._pushed()
        self.doubt, self.slept = False, self.asleep.copy()
        number = self.state.bodies.number[pushed > 1.0]
        self.asleep[number], self.calm[number] = False, 0  # from the next step on

    def _pressing(self):
        """Rows of Near of contacts between bodies that stand, in whose memory there is an impulse."""
        if not self.asleep.any():
            return np.zeros(0, np.int64)
        stands, (one, two) = self._stands(), self._pair_of(slice(None))
        rows = np.flatnonzero((self.state.history.live[self.near.slot] == 1) & stands[one] & stands[two])
        return rows[self.state.history.impulse[self.near.slot[rows]].any(1)]

    def _forget(self):
        """See Hard; contacts between bodies that stand keep what they have."""
        kept = self._pressing()
        slots = self.near.slot[kept]
        super()._forget()
        self.state.history.live[slots] = 1
        self.still = len(slots), self._held_energy(kept) if self.soft else 0.0

    def _held_energy(self, kept):
        """Energy [J] that these rows (k,) of Near hold by their compliance."""
        constraints, impulse = self._constraints_of(kept), self.state.history.impulse[self.near.slot[kept], :3]
        pressed = np.einsum("ci,ci->c", impulse, constraints.normal)
        return 0.5 * math.fsum((constraints.soft * pressed**2).tolist())

    def _pressed_energy(self):
        return super()._pressed_energy() + (0.0 if self.kept is None else self.still[1])

    def _pushed(self):
        """By how much (n,) forces on bodies that sleep do not balance, over what wakes them; of those that something touches that is awake, others 0."""
        state, sleepers, bodies = self.state, self._sleepers, self.state.bodies
        asked = sleepers.copy()
        if not self.doubt:
            asked[:] = False
            asked[self.constraints.body.ravel()] = True
            asked &= sleepers
        pushed = np.zeros(len(asked))
        if not asked.any():
            return pushed
        kept = self._pressing()
        one, two = self._pair_of(kept)
        kept = kept[asked[one] | asked[two]]
        push, load = self._moments(self.constraints, self.impulse)
        more = self._moments(self._constraints_of(kept), state.history.impulse[self.near.slot[kept]])
        rows = np.flatnonzero(asked)
        mass, push, load = bodies.mass[rows], (push + more[0])[rows], (load + more[1])[rows]
        push[:, :3] += mass[:, None] * self.dt * np.array(self.scene.gravity, float)
        most = PUSH * self.rest * mass + LOAD * load
        lever = self.outer[bodies.mold[rows]] * bodies.scale[rows]
        force, turn = np.linalg.norm(push[:, :3], axis=1), np.linalg.norm(push[:, 3:], axis=1)
        pushed[rows] = np.maximum(force / most, turn / (most * lever))
        return pushed

    def _constraints_of(self, rows):
        """Constraints of some rows (k,) of Near, to know where they act."""
        state, found = self.state, empty_constraints(len(rows), self.couples, self.soft)
        step = self._step(self.slack, self.scene.gravity)
        about = state.rows, self.inverse, state.shapes.body, self.ball, self.held, state.pairs, self.mixes, state.points
        chosen = Near(self.near.slot[rows], self.near.pair[rows])
        self._kernels.build((len(rows) + CHUNK - 1) // CHUNK, CHUNK, step, *about, chosen, found)
        return found

    def _moments(self, constraints, impulse):
        """What these impulses (c,width) do to bodies, in the order of contacts: impulse and its moment about the centre (n,6) [N s, N m s], and the sum of their
        lengths (n,) [N s]."""
        n = len(self.state.bodies.number)
        total, load = np.zeros((n, 6)), np.zeros(n)
        length = np.sqrt(np.einsum("ci,ci->c", impulse[:, :3], impulse[:, :3]))
        for side, sign in ((0, -1.0), (1, 1.0)):
            turn = np.cross(constraints.arm[:, 3 * side : 3 * side + 3], impulse[:, :3])
            if self.couples:
                turn += constraints.length[:, None] * impulse[:, 3:]
            both = sign * np.hstack([impulse[:, :3], turn])
            for k in range(6):
                total[:, k] += np.bincount(constraints.body[:, side], both[:, k], n)
            load += np.bincount(constraints.body[:, side], length, n)
        return total, load

    # At the end of the step.

    def _move(self, poses):
        super()._move(poses)
        self._fall_asleep()

    def _fall_asleep(self):
        """Let bodies sleep that have been slow for long, touch something, and touch nothing that moves."""
        state, bodies = self.state, self.state.bodies
        number, free, sleepers = bodies.number, bodies.motion == FREE, self._sleepers
        slow = free & (self._speed() < self.rest)
        self.calm[number] = np.where(slow, self.calm[number] + 1, 0)
        calm = slow & (self.calm[number] >= STEPS)
        calm |= ~free & ~(bodies.velocity.any(1) | bodies.spin.any(1))
        touching = self.constraints.body[self.impulse.any(1)]
        held, shaken = np.zeros(len(number), bool), np.zeros(len(number), bool)
        held[touching.ravel()] = True
        shaken[touching[~calm[touching].all(1)].ravel()] = True
        falls = calm & free & held & ~shaken & ~sleepers
        if falls.any():
            self.asleep[number[falls]] = True
            n = len(number)
            state.rows[:n, VELOCITIES][falls] = state.rows[:n, SPINS][falls] = 0.0

    def rebuild(self):
        """See Hard; who leant on a body that has gone is not told by contacts."""
        self.doubt = True
        super().rebuild()

    # What is asked of a step.

    def remember(self):
        number = self.state.bodies.number
        kept = {"number": number, "calm": self.calm[number], "asleep": self.asleep[number]}
        return {**super().remember(), "sleep": kept | {"doubt": np.array(self.doubt)}}

    def recall(self, groups, steps):
        super().recall(groups, steps)
        kept = groups["sleep"]
        self._know()
        self.calm[kept["number"]], self.asleep[kept["number"]] = kept["calm"], kept["asleep"]
        self.doubt = bool(kept["doubt"])

    def touching(self):
        return super().touching() + (0 if self.kept is None else self.still[0])

    def contacts(self):
        """See Hard; also those between bodies that sleep, whose forces are those that they fell asleep with."""
        self._know()
        if self.kept is None or not self.slept.any():
            return super().contacts()
        found, state = super().contacts(), self.state
        before = self.near, self.kept, self.told, self.constraints, self.impulse, self.named, self.asleep
        self.asleep = self.slept  # those who fell asleep since are among the first
        find_points(state, self.reach)
        self.near = find_near(state.pairs, state.points, self.order)
        self.kept = self._pressing()
        self.told = len(self.kept)
        self.constraints, self.named = self._constraints_of(self.kept), None
        self.impulse = state.history.impulse[self.near.slot[self.kept]]
        both = Contacts(*(np.concatenate(columns) for columns in zip(found, super().contacts(), strict=True)))
        self.near, self.kept, self.told, self.constraints, self.impulse, self.named, self.asleep = before
        return select(
            both, np.lexsort((both.feature, both.shape[:, 1], both.shape[:, 0], both.pair[:, 1], both.pair[:, 0]))
        )

    def describe(self):
        return {**super().describe(), "asleep": int(np.count_nonzero(self._sleepers))}

"""Bodies that go so far in a step that they could pass through others unseen: how far each may go.

Contacts are looked for where bodies are when a step begins. What goes farther in the step than they were looked for is followed
on its way: from pose to pose, each as far ahead as the gap there allows (conservative advancement, Mirtich 1996), with the
kernels that find contact points. Where two would come to overlap they stop just before they touch, and the next step finds the
contact and answers it at the place and with the normal that it has. So a body loses a part of one step at an impact, none of its
velocity, and nothing is in the way of one that misses.

A way is straight, and turns evenly. A body that stops is in the way of those behind it, which are looked at again.
"""

from copy import copy
from types import SimpleNamespace

import numpy as np

from ..broad.search import find_pairs
from ..errors import Penetrated
from ..kernels.rows import CENTRES, COLUMNS
from ..narrow.dispatch import FAMILIES, FAMILY, Listed, all_of
from ..narrow.mesh_candidates import find_candidates
from ..narrow.mesh_points import empty_measured, measure_candidates
from ..narrow.mesh_pose import make_setting
from ..shapes.ellipsoid_form import make_forms
from ..tables import DRIVEN, FIXED, FREE, is_wall
from .constraints import SWIFT
from .shared import Shared

DEPTH = 0.1  # overlap that counts as one, as a part of how deep a body can be pushed out the right way
CLOSE = 0.25  # of that overlap: a gap at which two touch, and stop if they would overlap, unless contacts ask for less
FINE = 0.01  # of that overlap: what is left of a way need not be found
LEAP = 0.5  # of how deep a body can be pushed out the right way: no wall is passed unseen by a way of that length
GROWS = 0.05  # of that overlap: by how much one that is there already may grow
AHEAD = 1.0 / 16.0  # of the longest way: how far around it is looked at least
THROUGH = 0.9  # of how deep a body can be pushed out the right way: deeper, and it may come out on the other side
FEW, MANY = 8, 32  # looks at two bodies one by one, and then at a time
LOOKS = 64  # looks, or so many at a time, at the most
ROUNDS = 64  # of looking again at those behind a body that stopped; then all stop when the first does


def cross(a, b):
    """Vector products of vectors (k,3), in a fifth of the time that NumPy takes for a few."""
    made = np.empty_like(b)
    for i, j, k in ((0, 1, 2), (1, 2, 0), (2, 0, 1)):
        made[:, i] = a[:, j] * b[:, k] - a[:, k] * b[:, j]
    return made


def turned(q, v):
    """Vectors v (k,3) turned by quaternions q (k,4)."""
    t = 2.0 * cross(q[:, 1:], v)
    return v + q[:, :1] * t + cross(q[:, 1:], t)


def turn_on(q, way):
    """Quaternions q (k,4) turned further by rotation vectors (k,3) [rad], world axes."""
    angle = np.sqrt(np.einsum("ki,ki->k", way, way))
    half = 0.5 * angle
    sine = np.where(angle > 0.0, np.sin(half) / np.where(angle > 0.0, angle, 1.0), 0.5)
    w, v = np.cos(half), sine[:, None] * way
    real = w * q[:, 0] - np.einsum("ki,ki->k", v, q[:, 1:])
    rest = w[:, None] * q[:, 1:] + q[:, :1] * v + cross(v, q[:, 1:])
    made = np.hstack([real[:, None], rest])
    return made / np.sqrt(np.einsum("ki,ki->k", made, made))[:, None]


def rotations(before, after):
    """Rotation vectors (n,3) [rad] between orientations (n,4), of half a turn at the most."""
    conjugate = before * (1.0, -1.0, -1.0, -1.0)
    w = after[:, 0] * conjugate[:, 0] - np.einsum("ni,ni->n", after[:, 1:], conjugate[:, 1:])
    v = after[:, :1] * conjugate[:, 1:] + conjugate[:, :1] * after[:, 1:] + cross(after[:, 1:], conjugate[:, 1:])
    sign = np.where(w < 0.0, -1.0, 1.0)
    w, v = sign * w, sign[:, None] * v
    sine = np.sqrt(np.einsum("ni,ni->n", v, v))
    return v * np.where(sine > 0.0, 2.0 * np.arctan2(sine, w) / np.where(sine > 0.0, sine, 1.0), 2.0)[:, None]


class Ways:
    """How bodies go from the start of a step to its end, all arrays by rows of Bodies."""

    def __init__(self, state, before, dt):
        """before (n,7): positions and orientations at the start of the step; the state has those at its end."""
        bodies, box = state.bodies, state.box
        self.start, self.orientation = np.ascontiguousarray(before[:, :3]), np.ascontiguousarray(before[:, 3:])
        moves = (bodies.motion != FIXED)[:, None]
        guess = dt * bodies.velocity
        way = bodies.position - self.start - guess
        self.way = np.where(moves, way - box.length * np.round(way * box.inverse) + guess, 0.0)
        spin = dt * bodies.spin
        turn = rotations(self.orientation, bodies.orientation)
        # More than half a turn: orientations do not tell which way round.
        fast = np.einsum("ni,ni->n", spin, spin) > 9.0
        self.turn = np.where(moves, np.where(fast[:, None], spin, turn), 0.0)
        self.length = np.sqrt(np.einsum("ni,ni->n", self.way, self.way))
        self.angle = np.sqrt(np.einsum("ni,ni->n", self.turn, self.turn))
        # However often a body turns, none of its points comes farther than to the other side: chords in parts of the lever.
        self.swept = np.minimum(self.angle, 2.0)

    def at(self, rows, time):
        """Positions (k,3) and orientations (k,4) of these rows at parts (k,) of the step."""
        time = time[:, None]
        return self.start[rows] + time * self.way[rows], turn_on(self.orientation[rows], time * self.turn[rows])


class Sweep:
    """The pairs of shapes that may meet in a step because of bodies that go far."""

    def __init__(self, state, ways, swift, apart, slack):
        """swift (n,) bool: free bodies to be followed; slack [m]: see `Followed`; apart: function that tells which pairs of shapes (p,2) never collide."""
        self.state, self.ways, self.swift, self.slack = state, ways, swift, slack
        shapes, parts, bodies = state.shapes, state.parts, state.bodies
        offset = np.sqrt((parts.offset**2).sum(1))
        # How far a point of each shape is from the axis about which its body turns, and whether turning moves its surface at all.
        lever = np.where(
            (offset == 0.0) & (parts.swing == 0.0), 0.0, offset + np.where(np.isfinite(parts.reach), parts.reach, 0.0)
        )
        self.lever = lever[shapes.part] * bodies.scale[shapes.body]
        self.deep = np.where(is_wall(shapes.kind), np.inf, parts.deep[shapes.part] * bodies.scale[shapes.body])
        longest = float((ways.length + self._swing())[swift].max(initial=0.0))
        self.margin = max(SWIFT * state.size, AHEAD * longest)
        self._find(apart)

    def _swing(self):
        """How far [m] turning takes points of each body at the most, (n,)."""
        shapes, most = self.state.shapes, np.zeros(len(self.ways.angle))
        np.maximum.at(most, shapes.body, self.lever)
        return most * self.ways.swept

    def _find(self, apart):
        """List the pairs of shapes whose ways come near each other, and the groups they make: a shape with another body."""
        state, ways = self.state, self.ways
        shapes, bodies, body = state.shapes, state.bodies, state.shapes.body
        x, q = ways.at(body, np.full(len(body), 0.5))
        rows = np.zeros((len(body), COLUMNS))
        rows[:, CENTRES] = x + bodies.scale[body][:, None] * turned(q, state.parts.offset[shapes.part])
        free = bodies.motion[body] == FREE
        beyond = np.where(free, 0.5 * ways.length[body] + self.lever * ways.swept[body], 0.0)
        around = shapes._replace(centre=rows[:, CENTRES], radius=shapes.radius + beyond)
        # Walls are asked for where they are at the end; those that move may have been as far away as they went.
        walls = float((ways.length[body] + self._reach_of_walls() * ways.swept[body])[~free].max(initial=0.0))
        tag = np.where(free & self.swift[body], body, np.int32(-1)).astype(np.int32)
        tables = state.bodies, around, *state.tables[2:]
        lists = find_pairs(tables, tag, state.box, self.margin + walls, copy(state.search), FAMILY, tables)
        lists = [pair[~apart(pair)] if len(pair) else pair for pair in lists]
        self.family = np.repeat(np.arange(len(lists)), [len(pair) for pair in lists])
        self.pair = np.concatenate(lists)
        # What one particle does with one body is looked at together: of a wall each point is told by one of its triangles alone.
        key = self.pair[:, 0].astype(np.int64) * len(bodies.number) + body[self.pair[:, 1]]
        order = np.argsort(key, kind="stable")
        self.pair, self.family, key = self.pair[order], self.family[order], key[order]
        self.families = np.unique(self.family).tolist()
        first = np.flatnonzero(np.append(True, key[1:] != key[:-1])) if len(key) else np.zeros(0, int)
        self.first = np.append(first, len(key))  # of each group in the list of pairs
        self.group = np.repeat(np.arange(len(first)), np.diff(self.first))
        self.one, self.two = body[self.pair[first, 0]], body[self.pair[first, 1]]
        self._measure_groups(first)

    def _reach_of_walls(self):
        """How far [m] points of each shape that matter are from the middle of its body: of a wall, those that particles are near."""
        state = self.state
        shapes, here = state.shapes, state.bodies.position[state.shapes.body]
        low, high = state.bodies.position.min(0), state.bodies.position.max(0)
        far = np.sqrt((np.maximum(np.abs(low - here), np.abs(high - here)) ** 2).sum(1)) + 2.0 * state.size
        offset = np.sqrt((state.parts.offset**2).sum(1))[shapes.part] * state.bodies.scale[shapes.body]
        return np.where(np.isfinite(shapes.radius), np.minimum(far, offset + shapes.radius), far)

    def _measure_groups(self, first):
        """What is to be known of each group: how deep its bodies can be pushed out of each other, and how far turning takes their surfaces."""
        ways, shapes = self.ways, self.state.shapes
        a, b = self.pair[first, 0], self.pair[first, 1]
        depth = np.full(len(first), np.inf)
        np.minimum.at(depth, self.group, np.minimum(self.deep[self.pair[:, 0]], self.deep[self.pair[:, 1]]))
        self.depth = depth
        levers = np.zeros((2, len(first)))
        for side in (0, 1):
            np.maximum.at(levers[side], self.group, self.lever[self.pair[:, side]])
        # Only points of a wall near the particle matter, however far the wall goes on.
        near = np.sqrt(((ways.start[self.one] - ways.start[self.two]) ** 2).sum(1))
        near += shapes.radius[a] + self.lever[a] + ways.length[self.one] + ways.length[self.two]
        levers[1] = np.where(is_wall(shapes.kind[b]), near, levers[1])
        self.swing = levers[0] * ways.angle[self.one], levers[1] * ways.angle[self.two]
        both = ways.length[self.one] + ways.length[self.two]
        self.pace = both + self.swing[0] + self.swing[1]  # [m a step], how fast they come nearer at the most
        self.far = both + levers[0] * ways.swept[self.one] + levers[1] * ways.swept[self.two]  # and how much in all

    def speeds(self, groups, time, part):
        """How fast [m a step] the two of each group may come nearer at parts `time` of the step, and when one of them stops next.

        part (n,): the part of the step after which each body stands still.
        """
        ways, one, two = self.ways, self.one[groups], self.two[groups]
        goes = [(time < part[rows]).astype(float) for rows in (one, two)]
        way = goes[0][:, None] * ways.way[one] - goes[1][:, None] * ways.way[two]
        speed = np.sqrt(np.einsum("gi,gi->g", way, way))
        speed += goes[0] * self.swing[0][groups] + goes[1] * self.swing[1][groups]
        until = np.minimum(
            np.where(goes[0] > 0.0, part[one], 1.0),
            np.where(goes[1] > 0.0, part[two], 1.0),
        )
        return speed, until

    def gaps(self, groups, time, part):
        """The least gap [m] of groups (g,) at parts `time` (g,) of the step; the margin if all are wider."""
        many = self.first[groups + 1] - self.first[groups]
        owner = np.repeat(np.arange(len(groups)), many)
        rows = np.arange(len(owner)) - np.repeat(np.cumsum(many) - many - self.first[groups], many)
        least, family = np.full(len(groups), self.margin), self.family[rows]
        for k in self.families:
            some = np.flatnonzero(family == k)
            if len(some):
                mine = owner[some]
                found = self._family_gaps(FAMILIES[k], self.pair[rows[some]], time[mine], part)
                np.minimum.at(least, mine, found)
        return least

    def _family_gaps(self, family, pair, time, part):
        """The least gap [m] of each pair (p,2) of a family when the step has gone on so far (p,); infinite above the margin."""
        field = self._field(pair, time, part)
        mine = np.arange(2 * len(pair), dtype=np.int32).reshape(-1, 2)
        if family.slots:
            look = Listed(field, mine, family.slots)
            family.find(look, all_of(look), self.margin)
            gap = look.points.gap[: len(mine) * family.slots].reshape(-1, family.slots).min(1)
            return np.where(look.points.count[: len(mine)] > 0, gap, np.inf)
        surfaces = self.state.there.surfaces
        setting = make_setting(field.tables, surfaces, mine, self.state.box)
        found = find_candidates(setting, surfaces, self.margin)
        measured = empty_measured(len(found.first))
        measure_candidates(setting, surfaces, found, "brute", 0.0, measured)
        least = np.full(len(mine), np.inf)
        np.minimum.at(least, np.repeat(np.arange(len(mine)), np.diff(found.start)), measured.gap)
        return least

    def _field(self, pair, time, part):
        """Tables in which each pair has two bodies and two shapes of its own, at its own time."""
        state = self.state
        flat = pair.reshape(-1)
        body, mold = state.shapes.body[flat], state.shapes.part[flat]
        x, q = self.ways.at(body, np.minimum(np.repeat(time, 2), part[body]))
        # Wide rows, because kernels were compiled for views of such.
        rows, centres = np.zeros((len(flat), COLUMNS)), np.zeros((len(flat), COLUMNS))
        rows[:, CENTRES] = x
        centres[:, CENTRES] = x
        if state.parts.offset.any():
            centres[:, CENTRES] += state.bodies.scale[body][:, None] * turned(q, state.parts.offset[mold])
        # How bodies move is no matter of geometry, and is left as it is.
        own = {name: getattr(state.bodies, name)[body] for name in ("number", "scale", "mold", "material", "motion")}
        bodies = state.bodies._replace(position=rows[:, CENTRES], orientation=q, **own)
        kept = {name: getattr(state.shapes, name)[flat] for name in ("number", "part", "kind", "radius")}
        places = {"body": np.arange(len(flat), dtype=np.int32), "centre": centres[:, CENTRES]}
        shapes = state.shapes._replace(**places, **kept)
        tables = bodies, shapes, *state.kernel_tables[2:]
        there = SimpleNamespace(**vars(state.there) | {"bodies": bodies, "shapes": shapes, "rows": centres})
        if state.ellipsoids:
            there.forms = make_forms(tables)
        members = "once", "device", "parts", "meshes", "hulls", "ellipsoids", "box", "edges", "exact", "chm"
        return SimpleNamespace(**{name: getattr(state, name) for name in members}, there=there, tables=tables)

    def meet(self, groups, part, overlap=DEPTH):
        """When the two of each of these groups stop because they would overlap, (g,), as parts of the step; 1 if they do not.

        part (n,): the part of the step after which each body stands still; overlap: what counts as one, as a part of how deep a body
        can be pushed out the right way.
        """
        follow = Followed(self.depth[groups], overlap, self.pace[groups], self.slack)
        for look in range(LOOKS):
            going = follow.going
            if not len(going):
                break
            start = follow.time[going]
            speed, until = self.speeds(groups[going], start, part)
            leap = LEAP * follow.deep[going] / np.maximum(speed, 1e-300)
            # Most are told after a few looks; those that go along each other are then looked at many at a time.
            many = 1 if look < FEW else MANY
            times = np.minimum(start[:, None] + np.arange(many) * leap[:, None], until[:, None])
            gap = self.gaps(np.repeat(groups[going], many), times.reshape(-1), part).reshape(-1, many)
            on = np.arange(len(going))
            for k in range(many):
                on = on[follow.look(going[on], times[on, k], gap[on, k], speed[on], until[on], k + 1 < many)]
                if not len(on):
                    break
            follow.going = going[~follow.ended[going]]
        # Along each other for so long that nobody can follow it farther: no farther than it was followed.
        follow.stop[follow.going] = follow.safe[follow.going]
        return follow.stop


class Followed:
    """Pairs of bodies on their ways: all arrays by groups that are followed, times as parts of the step."""

    def __init__(self, deep, overlap, pace, slack):
        """deep (g,) [m]: how far the two can be in each other and still be pushed out the right way; overlap: see `Sweep.meet`; pace (g,)
        [m a step]: how fast they come nearer at the most; slack [m]: a gap up to which contacts always take part in a step."""
        count = len(deep)
        self.overlap, self.pace, self.close = overlap * deep, pace, np.minimum(CLOSE * DEPTH * deep, slack)
        self.deep, self.going = deep, np.arange(count)
        self.time = np.zeros(count)  # of the next look
        self.stop = np.ones(count)  # when they stop
        self.clear = np.full(count, -1.0)  # of the last look at which they did not touch; -1 if they did from the start
        self.safe = np.zeros(count)  # of the last look at which they did not overlap
        self.high = np.full(count, np.inf)  # of the first look at which they did, if there was one
        self.ended = np.zeros(count, bool)
        self.allowed = np.full(count, np.nan)  # [m], overlap that is none yet

    def look(self, g, t, gap, speed, until, more):
        """What gaps (k,) [m] of groups g (k,) at times t (k,) tell; more: the next look is a leap ahead. Returns who takes it (k,) bool."""
        deep, depth = self.deep[g], DEPTH * self.deep[g]
        here = gap <= self.close[g]
        # Two that touch are held apart by their contact; along a curved wall they come as deep as it bends away from their way.
        least = self.overlap[g]
        begun = np.where(here, np.maximum(np.maximum(LEAP * deep, least), GROWS * depth - gap), least)
        self.allowed[g] = np.where(np.isnan(self.allowed[g]), begun, self.allowed[g])
        over = gap + self.allowed[g] <= 0.0
        # Of two that meet: between a time when they did not touch and one when they overlap they stop where they touch. Those that
        # touched from the start went on until they overlapped.
        narrowing, meets = self.high[g] < np.inf, self.clear[g] >= 0.0
        wrong = np.where(narrowing & meets, here, over)
        found = narrowing & meets & here & (gap >= 0.0)
        self.high[g] = np.where(wrong, t, self.high[g])
        self.clear[g] = np.where(here, self.clear[g], t)
        self.safe[g] = np.where(over, self.safe[g], t)
        low, high = np.where(meets, self.clear[g], self.safe[g]), self.high[g]
        narrowing = high < np.inf
        narrow = narrowing & ~found & ((np.minimum(high, 1.0) - low) * self.pace[g] <= FINE * depth)
        self.stop[g] = np.where(found, t, np.where(narrow, low, self.stop[g]))
        self.ended[g] = found | narrow | (~narrowing & (t >= 1.0))
        way = np.maximum(gap - 0.5 * self.close[g], LEAP * deep)
        ahead = np.where(speed > 0.0, t + way / np.where(speed > 0.0, speed, 1.0), until)
        ahead = np.where(t < until, np.minimum(ahead, until), t)
        self.time[g] = np.where(narrowing, 0.5 * (low + np.minimum(high, 1.0)), ahead)
        return ~narrowing & ~self.ended[g] & (t < until) & (way <= LEAP * deep) & more


def allowed_parts(state, ways, swift, held, apart, slack):
    """The part of the step (n,) that each body may go, 1 or less for swift bodies that would meet others, and rows (k,2) of two bodies
    that pass through each other all the same: no contact kept them apart, and they cannot be stopped.

    swift, held (n,) bool: bodies to be followed; those of them that joints hold, which go where the joints do. apart, slack: see `Sweep`.
    """
    part, none = np.ones(len(ways.length)), np.zeros((0, 2), int)
    sweep = Sweep(state, ways, swift, apart, slack)
    one, two = sweep.one, sweep.two
    groups = np.arange(len(one))
    if not len(groups):
        return part, none
    # What is farther apart than both go, wherever they stop, never meets.
    gap = sweep.gaps(groups, np.zeros(len(groups)), part)
    groups = groups[gap <= sweep.far]
    stoppable = swift & ~held
    active = groups
    for _ in range(ROUNDS):
        stop = sweep.meet(active, part)
        before = part.copy()
        for rows in (one[active], two[active]):
            mine = stoppable[rows]
            np.minimum.at(part, rows[mine], stop[mine])
        changed = part < before
        if not changed.any():
            break
        active = groups[changed[one[groups]] | changed[two[groups]]]
    else:
        part = np.where(stoppable, part[stoppable].min(), part)
    # One of the two may be stopped while the other comes on: a driven wall, or a body that joints hold.
    comes = held | ((state.bodies.motion == DRIVEN) & (ways.length + ways.angle > 0.0))
    doubtful = groups[comes[one[groups]] | comes[two[groups]]]
    lost = doubtful[sweep.meet(doubtful, part, THROUGH) < 1.0]
    return part, np.stack([one[lost], two[lost]], 1)


class Swept(Shared):
    """The part of `clast.dvi.stepper.Hard` that looks after bodies that go far in a step."""

    def _swift(self):
        """Free bodies (n,) that go farther in this step than contacts were looked for, or so far that they were left out; None if there
        are none."""
        bodies, way = self.state.bodies, self._goes()
        deep = self.deep[bodies.mold] * bodies.scale
        unseen = way > np.maximum(self.ahead + self.slack, SWIFT * deep)
        swift = (bodies.motion == FREE) & (unseen | (self.span < np.inf)) & (way < np.inf)
        return swift if self.others.largest(swift.any())[0] else None

    def _stop_short(self, before, swift):
        """Put swift bodies (n,) that would run into others where they touch them: whether there are any.

        before (n,7): positions and orientations at the start of the step.
        """
        state = self.state
        bodies = state.bodies
        moving = bodies.position, bodies.orientation, bodies.velocity, bodies.spin
        if self.others.largest(not all(np.isfinite(column).all() for column in moving))[0]:
            return False  # and the step will say so
        field, before, swift, mine = self.involved(before, swift)
        ways = Ways(field, before, self.dt)
        held = self._held(field.bodies)
        part, lost = allowed_parts(field, ways, swift, held, lambda pairs: self._joined(pairs, field), self.slack)
        for one, two in lost:
            raise Penetrated(
                f"{self.name(one, field)} and {self.name(two, field)} at t = {self.time + self.dt:.6g} s: one goes through the other in one step, no contact "
                f"keeps them apart and a drive or a joint lets neither stop; slow them down or take a smaller dt; {self.cause()}"
            )
        chosen = np.flatnonzero((part < 1.0) & (mine >= 0))
        if self.others.largest(len(chosen))[0] == 0:
            return False
        rows, part = mine[chosen], part[chosen]
        position, orientation = ways.at(chosen, part)
        low, length = self.box.low, self.box.length
        inside = low + np.mod(position - low, np.where(length > 0.0, length, 1.0))
        bodies.position[rows] = np.where(length > 0.0, inside, position)
        # The spin of a body that is not round belongs to how it stands: with another orientation it would have another energy.
        uneven = ~state.molds.round[bodies.mold[rows]]
        own = turned(bodies.orientation[rows[uneven]] * (1.0, -1.0, -1.0, -1.0), bodies.spin[rows[uneven]])
        bodies.spin[rows[uneven]] = turned(orientation[uneven], own)
        bodies.orientation[rows] = orientation
        # What gravity adds in the rest of the step is left out with it, or impacts would be a source of energy.
        alone = np.where(self.kick[rows] < 1.0, 1.0 - part, 0.0)
        bodies.velocity[rows] -= (alone * self.dt)[:, None] * np.array(self.scene.gravity)
        return True

    def involved(self, before, swift):
        """State of all bodies that swift ones (n,) may meet, where these were before, which are swift, and their rows in this process or -1: (k,7), (k,) and (k,)."""
        return self.state, before, swift, np.arange(len(swift))

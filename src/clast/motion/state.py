"""The state of a running simulation: the tables in the order of memory, and the list of pairs that serves them.

Bodies stand in memory in the order of their bins, so that neighbours in space are neighbours in memory; their numbers
stay. Row i of Shapes is row i of Bodies: the body itself if it is one sphere or one wall about its own origin, else a
row without a shape (NONE) whose parts stand further down.

What the contact and body kernels read stands in `rows` (s,12), one row per shape, so that a row is fetched at once:
centre [m], radius [m], velocity [m/s], 1/mass [1/kg], spin [rad/s], 1/inertia [1/(kg m^2)]. `bodies.position`, `velocity`
and `spin` and `shapes.centre` are views of it.
"""

import math
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

from ..broad.bins import sort_shapes
from ..broad.neighbour_list import carry, find_manifolds, join_gaps, make_pairs, move_slots_row
from ..broad.search import find_pairs, turned
from ..kernels import backend
from ..kernels.backend import kernel
from ..kernels.rows import CENTRES, SPINS, VELOCITIES
from ..narrow.dispatch import FAMILIES, FAMILY, Asked, near_pairs
from ..narrow.mesh_slots import Candidates
from ..scene.stacking import lone_parts, make_trees
from ..shapes.ellipsoid_form import make_forms, update_forms
from ..tables import (
    DRIVEN,
    ELLIPSOID,
    FIRST_WALL,
    FREE,
    MESH,
    NONE,
    TRIANGLE,
    Shapes,
    Wrench,
    empty_points,
    impulse_points,
    some_bodies,
    still_spheres,
    without_heat,
)
from . import integrate
from .placing import place_parts, place_shapes, widened

SINGLE = "part", "kind", "radius"  # columns of Shapes of bodies that are one shape
REORDER = 32  # rebuilds of the list after which bodies are sorted again
# What a new list costs, in listed pairs that do not touch in a step, and sleep: 0.3 to 1 us a body and 1 to 3 ms beside that, over 8 to 30 ns. Drums of
# 4,000 spheres are as quick with any factor from 2 to 10 before both.
ANEW, ANEW_FOR_NONE = 40.0, 150_000.0


class Range(NamedTuple):
    """Where a family stands in the neighbour list."""

    family: object  # see `clast.narrow.dispatch`
    first: int  # its first pair
    length: int  # pairs
    manifold: int  # its first manifold
    manifolds: int  # their number


class Wall(NamedTuple):
    """A driven body as it was when the neighbour list was made."""

    row: int  # of Bodies
    position: list  # (3,) [m]
    orientation: list  # (4,)
    reach: float  # [m], how far from the origin of the body its surface may meet others
    axis: tuple | None  # (3,) about which turning brings its surface no nearer, in body axes; None if there is none
    endless: bool  # its surface has no end, and the reach is where bodies were


class State(Asked):
    """Tables, list of pairs, and when the list must be made again.

    impulse: None, or how many numbers hard contacts remember; they look at gaps above zero too (exact), and at every step afresh.
    kept: how many numbers the law of smooth contacts keeps beside slip and rolling angle; beyond [m]: the largest gap at which it acts.
    chosen: function that gives the Bodies that are to be here, of which every process has some, and says by its arguments how large bodies are, see `Stepper.chosen`.
    """

    chm = False  # see `clast.narrow.ellipsoids`

    def __init__(self, scene, box, search, rolling, margin, chosen, impulse=None, kept=0, beyond=0.0, accounts=False):
        super().__init__()
        self.device = device = backend.DEVICE[-1]
        self.molds, self.parts, self.meshes, self.hulls = scene.molds, scene.parts, scene.meshes, scene.hulls
        self.surfaces = make_trees(self.parts, self.hulls, scene.surfaces)
        self.inverses = np.zeros_like(self.molds.inertia)
        solid = self.molds.volume > 0.0
        self.inverses[solid] = np.linalg.inv(self.molds.inertia[solid])
        self.box, self.search, self.rolling, self.impulse = box, search, rolling, impulse
        self.edges = (*box.length.tolist(), *box.inverse.tolist())
        self.kept, self.beyond, self.accounts = kept, beyond, accounts
        self.coincident = np.zeros(0, np.int64)  # pairs of spheres with one centre, by block, of the last step
        self.exact = impulse is not None or beyond > 0.0
        self.keeps, self.rough = impulse is None, False
        self.materials = len(scene.materials)
        # By the molds, not by the bodies that are left: outlets may have removed the last ellipsoid before a checkpoint.
        self.ellipsoids = bool((self.parts.kind == ELLIPSOID).any())
        self.triangulated = bool((self.parts.kind == MESH).any())
        self.turning = bool(self.parts.swing.any())  # some surface moves when its body turns
        # Parts that have rows of their own are watched by themselves.
        single = lone_parts(self.molds, self.parts)
        self.swing = np.where(single, self.parts.swing[self.molds.first], 0.0)
        # The same tables where the kernels run; on the CPU they are the same arrays.
        self.there = SimpleNamespace(
            molds=device.upload(self.molds),
            parts=device.upload(self.parts),
            meshes=device.upload(self.meshes),
            hulls=device.upload(self.hulls),
            surfaces=device.upload(self.surfaces),
            box=device.upload(self.box),
            inertias=device.upload(integrate.Inertias(self.molds.round, self.molds.inertia, self.inverses, self.swing)),
            turned_from=device.zeros((0, 4), np.float64),
            forms=device.zeros((0, 8), np.float64),
        )
        # Bodies in the last rows that another process moves: they act on those of this one, not on each other, nor on walls.
        self.ghosts = 0
        self.next_label = 0
        bodies, self.label, middle, largest = chosen(self)
        # By what inlets will bring where nothing is there yet.
        poured = [inlet.reach * inlet.sizes.largest for inlet in scene.inlets]
        self.size = middle if middle is not None else float(np.median(poured)) if poured else 1.0
        self.largest = max([*poured, largest])
        self.place(bodies)
        self.tuned = margin is None and impulse is None  # hard contacts say themselves how far they look
        # Beside how far contacts reach: how much nearer two bodies may come before the list is made anew.
        self.margin = beyond + (0.1 * self.size if margin is None else float(margin))
        later: Any = None  # what the first list brings
        self.pairs, self.ranges = later, []  # the neighbour list, and the Range of each family in it
        # Pairs of spheres, the first of the list, have no slots: forces find them in one pass.
        self.spheres_count = 0
        self.spheres, self.points, self.history, self.wrench = later, later, later, later
        self.candidates = later  # triangles of triangulated particles that may touch
        self.rebuilds, self.since = 0, 0
        self.closed = 0.0  # how far two bodies may have come towards each other since the list was made [m]
        self.former = None  # row of each body in the tables that the present list was made for
        self.listed_number = None  # of the shapes of the present list
        backend.give_back(len(self.shapes.body))

    def new_labels(self, bodies):
        """Numbers for the first parts of bodies, in the order of the bodies' numbers; never given twice."""
        many = self.molds.count[bodies.mold].astype(np.int64)
        order = np.argsort(bodies.number, kind="stable")
        label = np.empty(len(many), np.int64)
        label[order] = self.next_label + np.cumsum(many[order]) - many[order]
        self.next_label += int(many.sum())
        return label

    @property
    def tables(self):
        """Bodies, Shapes, Parts, Meshes and Hulls as NumPy arrays; what moves is as of the last `fetch`."""
        return self.bodies, self.shapes, self.parts, self.meshes, self.hulls

    @property
    def kernel_tables(self):
        """Bodies, Shapes, Parts, Meshes and Hulls where the kernels run."""
        there = self.there
        return there.bodies, there.shapes, there.parts, there.meshes, there.hulls

    def place(self, bodies, room=0):
        """Take these Bodies, NumPy arrays in the order of `label`, for the present ones. room: see `exchange`."""
        self._take(*place_shapes(bodies, self.label, self.molds, self.parts, room))

    def exchange(self, rows, bodies, label, count):
        """Let these rows (k,) have other Bodies, with these labels, and the tables `count` rows, in the memory that they have: fresh memory costs more than
        all else that is done here. False, and nothing is changed, where there is no room for that, or parts have rows of their own."""
        old = self.shapes
        if len(old.body) > len(self.bodies.number):
            return False
        _, new, values = place_shapes(bodies, label, self.molds, self.parts)
        moving = dict(zip(("position", "velocity", "spin"), (CENTRES, VELOCITIES, SPINS)))
        columns = {name: column for name, column in self.bodies._asdict().items() if name not in moving}
        columns |= {name: getattr(old, name) for name in SINGLE}
        wide = {name: widened(column, count) for name, column in columns.items()}
        table = widened(self.rows, count)
        if len(new.body) > len(rows) or table is None or any(column is None for column in wide.values()):
            return False
        for name, column in wide.items():
            column[rows] = getattr(new if name in SINGLE else bodies, name)
        table[rows] = values
        number = np.empty(count, np.int64)  # the list still asks for the old ones
        kept = min(count, len(old.number))
        number[:kept] = old.number[:kept]
        number[rows] = label
        views = {name: table[:, place] for name, place in moving.items()}
        made = type(bodies)(**{name: views.get(name, wide.get(name)) for name in bodies._fields})
        body = np.arange(count, dtype=np.int32)
        shapes = Shapes(number, body, wide["part"], wide["kind"], views["position"], wide["radius"])
        self._take(made, shapes, table)
        return True

    def _take(self, bodies, shapes, rows):
        """Let these tables be the present ones."""
        self.bodies, self.shapes, self.rows = bodies, shapes, rows
        self.label = self.shapes.number[: len(self.bodies.number)]  # the same numbers, kept once
        there, n = self.there, len(bodies.number)
        device, view = self.device, self.device.view
        there.rows = rows = device.to_device(self.rows)
        places = {"position": CENTRES, "velocity": VELOCITIES, "spin": SPINS}
        moving = {name: view(rows, n, place.start, place.stop) for name, place in places.items()}
        there.bodies = device.upload(without_heat(self.bodies), **moving)
        self.note_ghosts()
        there.shapes = device.upload(self.shapes, centre=view(rows, len(rows), CENTRES.start, CENTRES.stop))
        if len(self.shapes.body) > n:
            place_parts(there.bodies, there.shapes, there.parts, self.box, rows)
            self.fetch()

    @property
    def own(self):
        """Rows of bodies that are not ghosts: the first so many."""
        return len(self.bodies.number) - self.ghosts

    def note_ghosts(self):
        """Let the kernels that move bodies stop before ghosts."""
        bodies = self.there.bodies
        self.there.moving = type(bodies)(*(column[: self.own] for column in bodies)) if self.ghosts else bodies

    def fetch(self):
        """Bring what the kernels have moved into the NumPy tables; on the CPU these are the same arrays."""
        there = self.there
        if there.rows is not self.rows:
            self.rows[:] = self.device.to_host(there.rows)
            for name in ("orientation", "force", "torque"):
                getattr(self.bodies, name)[:] = self.device.to_host(getattr(there.bodies, name))

    def told(self, rows):
        """Those of the rows of the neighbour list (k,) that this process tells of: whose first body is no ghost, of which another tells."""
        return rows[self.shapes.body[self.pairs.shape[rows, 0]] < self.own] if self.ghosts else rows

    def send_driven(self):
        """Tell the kernels where driven bodies have been put."""
        there = self.there
        if there.rows is not self.rows and len(self.driven):
            self.device.put(there.rows, self.driven, self.rows[self.driven])
            self.device.put(there.bodies.orientation, self.driven, self.bodies.orientation[self.driven])

    @property
    def has_parts(self):
        """Whether shapes in rows of their own must follow their bodies in every step."""
        n = len(self.bodies.number)
        return len(self.shapes.body) > n and (self.box.periodic or self.compound)

    @property
    def compound(self):
        """Whether particles have parts in rows of their own."""
        return bool(np.any(self.shapes.kind[len(self.bodies.number) :] < FIRST_WALL))

    def follow(self):
        """Bring what depends on where bodies are and how they are turned up to date, before contacts are looked at."""
        if self.ellipsoids:
            update_forms(self.kernel_tables, self.there.forms)

    def rebuild(self, sort=None, grow=None):
        """Make the neighbour list anew from where the bodies are now, and carry the history of contacts over.

        sort: whether to bring the bodies into the order of their bins; None for once in a while. grow: None, or a
        function that gives for each shape (s,) [m] how much larger it is to be taken, for spheres and walls alone.
        """
        if self.tuned and self.pairs is not None:
            self.tune()
        device, there = self.device, self.there
        place_parts(there.bodies, there.shapes, there.parts, self.box, there.rows)
        old = self.pairs, self.listed_number, self.spheres_count
        former = np.arange(len(self.bodies.number), dtype=np.int32) if self.former is None else self.former
        if self.rebuilds % REORDER == 0 if sort is None else sort:
            order = self.sort_bodies()
            self.fetch()
            self.permute(order)
            former = np.ascontiguousarray(former[order])
        free = self.bodies.motion[self.shapes.body] == FREE
        own = free & (self.shapes.body < self.own)
        tag = device.to_device(np.where(own, self.shapes.body, np.int32(-1)))  # two that have the same make no pair
        tables, at_hand = self.kernel_tables, self.tables
        if grow is not None:
            wide = self.shapes._replace(radius=self.shapes.radius + grow())
            at_hand = self.bodies, wide, *self.tables[2:]
            tables = there.bodies, device.upload(wide, centre=there.shapes.centre), *self.kernel_tables[2:]
        # Only what is carried over is kept meanwhile: two whole lists side by side would double the memory.
        self.pairs, self.wrench, self.reference = None, None, None
        if self.spheres is not None:
            self.spheres = self.spheres._replace(action=None, couple=None)
        lists = find_pairs(tables, tag, self.box, self.margin, self.search, FAMILY, at_hand)
        if self.turning:
            there.turned_from = device.copy(there.bodies.orientation)
        if self.ellipsoids:
            there.forms = make_forms(self.kernel_tables)
        near = [near_pairs(self, family, pairs) for family, pairs in zip(FAMILIES, lists, strict=True)]
        lists = [pairs for pairs, _ in near]
        walls = [family.walls for family in FAMILIES].index(True)
        whole = [family.shares and self.compound for family in FAMILIES]
        apart = [gap for _, gap in near]
        self.pairs, first = make_pairs(self.kernel_tables, lists[:walls], lists[walls:], self.materials, whole, apart)
        del near, lists  # they are in the pairs now, and would be in memory twice
        self._remember(first, device.to_device(free), old, device.to_device(former))
        self._fall_asleep(first, apart)
        self.closed = 0.0
        self.listed_number = there.shapes.number
        self.reference = device.copy(there.shapes.centre)
        if (self.bodies.motion == DRIVEN).any():
            self.fetch()
        self.remember_walls()
        self.former = None
        backend.give_back(len(self.shapes.body))
        self.rebuilds += 1
        self.since = 0

    def _fall_asleep(self, first, apart):
        """Pairs of a new list sleep until they may touch: first, apart, see `make_pairs`."""
        if not self.keeps or all(gap is None for gap in apart):
            return
        known = [(first[k] - self.spheres_count, gap) for k, gap in enumerate(apart) if gap is not None]
        apart = join_gaps(first[-1] - self.spheres_count, known)
        # Nobody tells how far driven bodies and those of other processes have moved.
        bodies, shapes = self.bodies, self.shapes
        told = bodies.motion != DRIVEN
        told[len(told) - self.ghosts :] = False
        far = self.device.to_device(np.where(told[shapes.body], 0.0, np.inf))
        self.pairs = self.pairs._replace(apart=apart, far=far)

    def _remember(self, first, free, old, former):
        """Give the pairs of a new list what the same two shapes had in the old one: first, see `make_pairs`."""
        device, there = self.device, self.there
        hard = self.impulse is not None
        spheres, total = 0 if hard else first[1], first[-1]
        old_pairs, old_number, old_spheres = old
        was = device.to_device(np.full(total - spheres, -1, np.int64))
        memory = device.zeros((spheres, (6 if self.rolling else 3) + self.kept), np.float64)
        if old_pairs is not None:
            before = old_pairs, old_number, former, self.spheres.memory, old_spheres
            carry(there.bodies, there.shapes, free, self.pairs, spheres, memory, before, was)
        self.spheres_count = spheres
        couples, acting = spheres if self.rolling else 0, 0 if hard else total - spheres
        self.spheres = still_spheres(memory, couples, device)
        self.wrench = Wrench(
            device.zeros((acting, 3), np.float64),
            device.zeros((acting, 2, 3), np.float64),
            device.zeros(total - spheres, np.int8),
        )
        there_are = [k for k in range(len(FAMILIES)) if first[k + 1] > max(first[k], spheres)]
        families = [(first[k], first[k + 1] - first[k], FAMILIES[k].shares) for k in there_are]
        manifold = find_manifolds(there.shapes, self.pairs.shape, spheres, families)
        self.pairs = self.pairs._replace(manifold=manifold)
        manifold = device.to_host(manifold)
        self.ranges = []
        for k in there_are:
            begin, end = np.searchsorted(manifold, [first[k] - spheres, first[k + 1] - spheres]).tolist()
            self.ranges.append(Range(FAMILIES[k], first[k], first[k + 1] - first[k], begin, end - begin))
        room = np.repeat([r.family.slots for r in self.ranges], [r.length for r in self.ranges]).astype(np.int64)
        candidates = Candidates.of(self, device.to_host(was)) if self.triangulated else None
        if candidates is not None:
            room[candidates.listed.rows] = candidates.room
        old_slot = old_pairs.slot if old_pairs is not None else device.zeros(1, np.int64)
        self.lay_out(room, was, old_slot, candidates)

    def lay_out(self, room, was, old_slot, candidates):
        """Give each pair behind those of spheres `room` (q,) slots, with what pair was[q] had in its old ones."""
        device = self.device
        slot = device.to_device(np.concatenate([[0], np.cumsum(room)]).astype(np.int64))
        points, history = self.empty_slots(len(room), int(np.sum(room)))
        if self.history is not None:
            kernel(move_slots_row)(
                len(room), was, old_slot, self.points, self.history, slot, points, history, self.wrench.live
            )
        if candidates is not None:
            candidates.move_in(self.candidates, was, old_slot, slot)
        self.pairs = self.pairs._replace(slot=slot)
        self.points, self.history, self.candidates = points, history, candidates

    def empty_slots(self, pairs, count):
        """ContactPoints and History of so many pairs with `count` slots in all, none in use."""
        if self.impulse is None:
            return empty_points(pairs, count, self.rolling, self.kept, self.device, self.accounts)
        return impulse_points(pairs, count, self.impulse)

    def reach_to(self, beyond):
        """Let contacts act at gaps up to `beyond` [m], and make the list of pairs as much wider."""
        self.margin += beyond - self.beyond
        self.beyond, self.exact = beyond, self.exact or beyond > 0.0

    def tune(self):
        """A wide list has pairs that do not touch, a tight one is soon made anew. The cost a m + b / m of a margin m is least where
        both cost the same; results do not depend on it."""
        spare = self.margin - self.beyond
        lasts = self.since * spare / max(self.closed, 1e-300)  # bodies that came or went may have ended the list early
        apart = len(self.pairs.shape) - self.touching()
        anew = (ANEW * len(self.bodies.number) + ANEW_FOR_NONE) / max(lasts, 1.0)
        change = math.sqrt(anew / max(apart, 1))
        self.margin = self.beyond + min(max(spare * min(max(change, 0.7), 1.4), 0.02 * self.size), self.size)

    def touching(self):
        """Listed pairs that touched at the last look."""
        to_host = self.device.to_host
        balls: int | np.integer = 0
        if self.spheres is not None:
            x, y, z = to_host(self.spheres.action)[:, :3].T
            balls = np.count_nonzero((x != 0.0) | (y != 0.0) | (z != 0.0))
        return int(balls) + np.count_nonzero(to_host(self.points.count))

    def sort_bodies(self):
        """Rows of bodies in the order of bins, walls last."""
        n, body = len(self.bodies.number), self.shapes.body
        tag = self.device.zeros(len(body), np.int32)
        _, order, bounded = sort_shapes(self.there.shapes, tag, self.box, self.margin)
        shape = self.device.to_host(order.shape)
        rank = np.full(n, len(shape), np.int64)
        inverse = np.empty(len(shape), np.int64)
        inverse[shape] = np.arange(len(shape))
        np.minimum.at(rank, body, inverse) if len(body) > n else rank.__setitem__(slice(None), inverse)
        rank[self.bodies.motion != FREE] += 2 * len(shape)
        return np.argsort(rank, kind="stable").astype(np.int32)

    def permute(self, order):
        """Bring the bodies into another order of memory, or drop those that order leaves out."""
        self.label = self.label[order]
        self.place(some_bodies(self.bodies, order))

    def remove(self, rows):
        """Take bodies away; the next rebuild forgets their contacts."""
        keep = np.ones(len(self.bodies.number), bool)
        keep[rows] = False
        order = np.nonzero(keep)[0].astype(np.int32)
        self.permute(order)
        self.former = order if self.former is None else np.ascontiguousarray(self.former[order])

    def insert(self, bodies, label=None):
        """Add rows of Bodies; label (n,): if they have been given already."""
        n, own = len(self.bodies.number), self.own
        former = np.arange(n, dtype=np.int32) if self.former is None else self.former
        new = np.full(len(bodies.number), -1, np.int32)

        def join(a, b):
            return np.concatenate([a[:own], b, a[own:]])

        label = self.new_labels(bodies) if label is None else label
        self.former, self.label = join(former, new), join(self.label, label)
        self.place(type(bodies)(*(join(a, b) for a, b in zip(self.bodies, bodies, strict=True))))

    # How far walls have moved since the list was made. A wall's surface may turn in itself, as a drum about its
    # axis does, without anything coming nearer. Plain numbers, because this runs in every step for a few walls.

    def remember_walls(self):
        """Where driven walls stand now, and how far their surface reaches from their origin."""
        n = len(self.bodies.number)
        self.driven = np.nonzero(self.bodies.motion == DRIVEN)[0].tolist()
        self.walls = []
        # Row by row: along columns NumPy took four times as long.
        across = np.ascontiguousarray(self.shapes.centre.T) if self.driven else np.zeros((3, 0))
        for i in self.driven:
            rows = np.append(i, n + np.nonzero(self.shapes.body[n:] == i)[0])
            rows = rows[self.shapes.kind[rows] != NONE]
            centre, radius = self.shapes.centre[rows], self.shapes.radius[rows]
            here = self.bodies.position[i]
            finite = np.isfinite(radius)
            reach = float((np.linalg.norm(centre - here, axis=1) + radius)[finite].max(initial=0.0))
            if not finite.all():
                # What has no end turns through the whole scene; bodies move by less than the margin meanwhile.
                low, high = across.min(1), across.max(1)
                far = float(np.linalg.norm(np.maximum(abs(low - here), abs(high - here))))
                reach = max(reach, far + self.margin)
            part = self.shapes.part[rows[0]]
            kind = self.parts.kind[part]
            lone = len(rows) == 1 and kind >= FIRST_WALL and kind != TRIANGLE
            axis = tuple(self.parts.axis[part].tolist()) if lone else None
            pose = here.tolist(), self.bodies.orientation[i].tolist()
            self.walls.append(Wall(i, *pose, reach, axis, not finite.all()))

    def walls_moved(self):
        """How far any point of a driven wall's surface may have moved since the list was made [m]."""
        most = 0.0
        for i, x, q, reach, axis, _ in self.walls:
            p = self.bodies.orientation[i].tolist()
            if axis is None:
                half = min(1.0, abs(p[0] * q[0] + p[1] * q[1] + p[2] * q[2] + p[3] * q[3]))
                turn = 2.0 * math.sqrt(max(0.0, 1.0 - half * half)) * reach
            else:
                turn = math.dist(turned(p, axis), turned(q, axis)) * reach
            most = max(most, math.dist(self.bodies.position[i].tolist(), x) + turn)
        return most


def ball_radii(state):
    """Radius [m] that stands for each shape in laws, (s,); zero for walls."""
    shapes = state.shapes
    return state.parts.ball[shapes.part] * state.bodies.scale[shapes.body]

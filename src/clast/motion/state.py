"""The state of a running simulation: the tables in the order of memory, and the list of pairs that serves them.

Bodies stand in memory in the order of their bins, so that neighbours in space are neighbours in memory; their numbers
stay. Row i of Shapes is row i of Bodies: the body itself if it is one sphere or one wall about its own origin, else a
row without a shape (NONE) whose parts stand further down.

What the contact and body kernels read stands in `rows` (s,12), one row per shape, so that a row is fetched at once:
centre [m], radius [m], velocity [m/s], 1/mass [1/kg], spin [rad/s], 1/inertia [1/(kg m^2)]. `bodies.position`, `velocity`
and `spin` and `shapes.centre` are views of it.
"""

import math

import numpy as np

from .. import backend
from ..backend import kernel
from ..contact.bins import sort_shapes
from ..contact.memory import make_pairs
from ..contact.pairs import find_pairs, turned
from ..tables import DRIVEN, FREE, NONE, SPHERE, TRIANGLE, Bodies, Shapes
from . import integrate

REORDER = 32  # rebuilds of the list after which bodies are sorted again


def place_shapes(bodies, label, molds, parts, box):
    """Bodies and Shapes as views of the rows, and the rows (s,12).

    label (n,): number of the first part of each body.
    """
    n = len(bodies.number)
    many, first = molds.count[bodies.mold], molds.first[bodies.mold]
    single = (many == 1) & ~parts.offset[first].any(1)
    more = np.where(single, 0, many)
    body = np.concatenate([np.arange(n), np.repeat(np.arange(n), more)]).astype(np.int32)
    within = np.arange(len(body) - n) - np.repeat(np.cumsum(more) - more, more)
    part = np.concatenate([first, first[body[n:]] + within]).astype(np.int32)
    kind = parts.kind[part]
    radius = parts.reach[part] * bodies.scale[body]
    kind[:n][~single], radius[:n][~single] = NONE, np.inf
    number = np.concatenate([label, label[body[n:]] + within]).astype(np.int64)
    rows = np.zeros((len(body), 12))
    rows[:, 3] = radius
    rows[:n, 0:3], rows[:n, 4:7], rows[:n, 8:11] = bodies.position, bodies.velocity, bodies.spin
    rows[:, 7], rows[:, 11] = 1.0 / bodies.mass[body], 1.0 / bodies.inertia[body]
    bodies = bodies._replace(position=rows[:n, 0:3], velocity=rows[:n, 4:7], spin=rows[:n, 8:11])
    shapes = Shapes(number, body, part, kind, rows[:, 0:3], radius)
    place_parts(bodies, shapes, parts, box, rows)
    return bodies, shapes, rows


def place_parts(bodies, shapes, parts, box, rows, reference=None):
    """Put the parts that have rows of their own where their bodies are; returns how far the farthest has moved [m]."""
    device = backend.DEVICE[-1]
    n = len(bodies.number)
    chunk = device.chunk
    chunks = (len(shapes.body) - n + chunk - 1) // chunk
    if chunks <= 0:
        return 0.0
    moved = device.empty(chunks, np.float64)
    place = kernel(integrate.place_row, grain=4, PERIODIC=box.periodic)
    edges = (*box.length.tolist(), *box.inverse.tolist())
    start = np.empty((0, 3)) if reference is None else reference
    place(chunks, chunk, n, bodies, shapes, parts, rows, start, moved, edges)
    return math.sqrt(float(device.to_host(moved).max()))


class State:
    """Tables, list of pairs, and when the list must be made again."""

    def __init__(self, scene, box, search, width, margin):
        self.molds, self.parts, self.meshes = scene.molds, scene.parts, scene.meshes
        self.inverses = np.zeros_like(self.molds.inertia)
        solid = self.molds.volume > 0.0
        self.inverses[solid] = np.linalg.inv(self.molds.inertia[solid])
        self.box, self.search, self.width = box, search, width
        self.materials = len(scene.materials)
        bodies = scene.bodies
        self.bodies = Bodies(*(np.array(column) for column in bodies))
        self.next_label = 0
        self.label = self.new_labels(self.bodies)
        self.bodies, self.shapes, self.rows = place_shapes(self.bodies, self.label, self.molds, self.parts, self.box)
        free = self.bodies.motion == FREE
        radius = self.shapes.radius[: len(free)][free & (self.shapes.kind[: len(free)] == SPHERE)]
        many = self.shapes.radius[len(free) :][self.shapes.kind[len(free) :] == SPHERE]
        poured = [inlet.reach * inlet.sizes.largest for inlet in scene.inlets]
        sizes = np.concatenate([radius, many]) if len(radius) + len(many) else np.array(poured)
        self.size = float(np.median(sizes)) if len(sizes) else 1.0
        self.tuned = margin is None
        self.margin = 0.1 * self.size if margin is None else float(margin)
        self.pairs, self.balls = None, 0
        self.rebuilds, self.since = 0, 0
        self.former = None  # row of each body in the tables that the present list was made for

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
        return self.bodies, self.shapes, self.parts, self.meshes

    @property
    def has_parts(self):
        """Whether shapes in rows of their own must follow their bodies in every step."""
        n = len(self.bodies.number)
        return len(self.shapes.body) > n and (self.box.periodic or bool(np.any(self.shapes.kind[n:] == SPHERE)))

    def rebuild(self):
        """Make the list of pairs anew from where the bodies are now, and carry the memory of contacts over."""
        if self.tuned and self.pairs is not None:
            self.tune()
        place_parts(self.bodies, self.shapes, self.parts, self.box, self.rows)
        old = None
        if self.pairs is not None:
            former = np.arange(len(self.bodies.number), dtype=np.int32) if self.former is None else self.former
            # Only what is carried over is kept: two whole lists side by side would double the memory.
            kept = self.pairs._replace(action=np.empty((0, 6)), couple=np.empty((0, 3)))
            old = [kept, self.listed_number, former]
            self.pairs = None
        if self.rebuilds % REORDER == 0:
            order = self.sort_bodies()
            self.permute(order)
            if old is not None:
                old[2] = np.ascontiguousarray(old[2][order])
        free = self.bodies.motion[self.shapes.body] == FREE
        tag = np.where(free, self.shapes.body, np.int32(-1))
        balls, walls = find_pairs(self.tables, tag, self.box, self.margin, self.search)
        self.pairs, self.balls = make_pairs(self.tables, free, balls, walls, self.materials, self.width, old)
        self.listed_number = self.shapes.number
        self.reference = self.shapes.centre.copy()
        self.remember_walls()
        self.former = None
        self.rebuilds += 1
        self.since = 0

    def tune(self):
        """A list that lasts a few steps only was too tight; one that lasts for ever too wide. Results do not depend on it."""
        if self.since < 15:
            self.margin = min(self.margin * 1.4, self.size)
        elif self.since > 400:
            self.margin = max(self.margin * 0.7, 0.02 * self.size)

    def sort_bodies(self):
        """Rows of bodies in the order of bins, walls last."""
        n = len(self.bodies.number)
        tag = np.zeros(len(self.shapes.body), np.int32)
        shapes = self.shapes
        _, order, bounded = sort_shapes(shapes, tag, self.box, self.margin)
        rank = np.full(n, len(order.shape), np.int64)
        inverse = np.empty(len(order.shape), np.int64)
        inverse[order.shape] = np.arange(len(order.shape))
        np.minimum.at(rank, shapes.body, inverse) if len(shapes.body) > n else rank.__setitem__(slice(None), inverse)
        rank[self.bodies.motion != FREE] += 2 * len(order.shape)
        return np.argsort(rank, kind="stable").astype(np.int32)

    def permute(self, order):
        """Bring the bodies into another order of memory, or drop those that order leaves out."""
        self.label = self.label[order]
        bodies = Bodies(*(np.ascontiguousarray(column[order]) for column in self.bodies))
        self.bodies, self.shapes, self.rows = place_shapes(bodies, self.label, self.molds, self.parts, self.box)

    def remove(self, rows):
        """Take bodies away; the next rebuild forgets their contacts."""
        keep = np.ones(len(self.bodies.number), bool)
        keep[rows] = False
        order = np.nonzero(keep)[0].astype(np.int32)
        self.permute(order)
        self.former = order if self.former is None else np.ascontiguousarray(self.former[order])

    def insert(self, bodies):
        """Add rows of Bodies."""
        n = len(self.bodies.number)
        former = np.arange(n, dtype=np.int32) if self.former is None else self.former
        self.former = np.concatenate([former, np.full(len(bodies.number), -1, np.int32)])
        self.label = np.concatenate([self.label, self.new_labels(bodies)])
        joined = Bodies(*(np.concatenate([a, b]) for a, b in zip(self.bodies, bodies, strict=True)))
        self.bodies, self.shapes, self.rows = place_shapes(joined, self.label, self.molds, self.parts, self.box)

    # How far walls have moved since the list was made. A wall's surface may turn in itself, as a drum about its
    # axis does, without anything coming nearer.

    def remember_walls(self):
        driven = np.nonzero(self.bodies.motion == DRIVEN)[0]
        self.driven = driven
        self.wall_pose = [(self.bodies.position[i].copy(), self.bodies.orientation[i].copy()) for i in driven]
        self.wall_reach = []
        for i in driven:
            n = len(self.bodies.number)
            rows = np.append(i, n + np.nonzero(self.shapes.body[n:] == i)[0])
            rows = rows[self.shapes.kind[rows] != NONE]
            finite = np.isfinite(self.shapes.radius[rows])
            centre, radius = self.shapes.centre[rows], self.shapes.radius[rows]
            here = self.bodies.position[i]
            reach = 0.0
            if finite.any():
                reach = float((np.linalg.norm(centre[finite] - here, axis=1) + radius[finite]).max())
            if not finite.all():
                # What has no end turns through the whole scene.
                low, high = self.reference.min(0), self.reference.max(0)
                far = float(np.linalg.norm(np.maximum(abs(low - here), abs(high - here))))
                reach = max(reach, far + self.margin)  # bodies move by less than the margin before the next list
            kinds = self.parts.kind[self.shapes.part[rows]]
            lone = len(rows) == 1 and kinds[0] not in (TRIANGLE, SPHERE)
            axis = self.parts.axis[self.shapes.part[rows[0]]] if lone else None
            self.wall_reach.append((reach, axis))

    def walls_moved(self):
        """How far any point of a driven wall's surface may have moved since the list was made [m]."""
        most = 0.0
        for i, (x, q), (reach, axis) in zip(self.driven, self.wall_pose, self.wall_reach, strict=True):
            shift = math.dist(self.bodies.position[i], x)
            p = self.bodies.orientation[i]
            if axis is None:
                half = min(1.0, abs(float(p @ q)))
                turn = 2.0 * math.sqrt(max(0.0, 1.0 - half * half)) * reach
            else:
                turn = float(np.linalg.norm(turned(p, axis) - turned(q, axis))) * reach
            most = max(most, shift + turn)
        return most

"""The bodies of a scene, chunk after chunk in the order of their numbers. A chunk is a table, or a lot: a recipe by which bodies are made block after block, as often as
they are asked for, so that who needs only some of them never has all."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..tables import FREE, Bodies, WarmBodies, some_bodies
from . import filling
from .packing import Spot
from .stacking import bounding_radius, join_bodies, make_bodies, mold_reach

BLOCK = 100_000  # rows, about
WHISKER = 1.0 + 1e-9  # so that rounding does not lose a body that just touches a box


class Store:
    """Chunks of bodies: Bodies, or lots, which have `count` and `blocks()`."""

    def __init__(self, *chunks):
        self.chunks: list[Any] = [make_bodies(0, {}), *chunks]

    @property
    def count(self):
        """How many bodies there are."""
        return sum(chunk.count if is_lot(chunk) else len(chunk.number) for chunk in self.chunks)

    def whole(self):
        """All as one table of Bodies, which from now on is kept."""
        if len(self.chunks) > 1:
            self.chunks = [join_bodies([block for chunk in self.chunks for block in blocks_of(chunk)])]
        return self.chunks[0]

    def blocks(self):
        """All as tables of BLOCK rows at the most, one after the other; the first may be empty."""
        for chunk in self.chunks:
            for block in blocks_of(chunk):
                for first in range(0, max(len(block.number), 1), BLOCK):
                    yield type(block)(*(column[first : first + BLOCK] for column in block))


def near_box(blocks, molds, parts, low, high, span):
    """Bodies of these blocks, one at least, that may reach into the box from low to high (3,) [m], and all walls; span (3,) [m]: length of the world along its periodic
    axes, 0 elsewhere."""
    found, far = [], mold_reach(molds, parts) * WHISKER
    for block in blocks:
        near = np.ones(len(block.number), bool)
        reach = far[block.mold] * block.scale
        for axis in range(3):
            x = block.position[:, axis]
            images = (x, x - span[axis], x + span[axis]) if span[axis] > 0.0 else (x,)
            near &= np.any([(y + reach >= low[axis]) & (y - reach <= high[axis]) for y in images], axis=0)
        found.append(some_bodies(block, np.flatnonzero(near | (molds.volume[block.mold] == 0.0))))
    return join_bodies(found)


def is_lot(chunk):
    """Whether a chunk is a recipe, and no table."""
    return not isinstance(chunk, Bodies | WarmBodies)


def blocks_of(chunk):
    """The tables of Bodies that a chunk consists of."""
    return chunk.blocks() if is_lot(chunk) else [chunk]


@dataclass(frozen=True)
class Kept:
    """Bodies that lie in a file: a table that is read in pieces, as `clast.files.checkpoint.Stored`."""

    table: Any

    @property
    def count(self):
        """How many they are."""
        return self.table.count

    def blocks(self):
        """See Store."""
        kind = kind_of(self.table.names)
        for piece in self.table.pieces(BLOCK):
            yield kind(**{name: piece[name] for name in kind._fields})


def kind_of(names):
    """Bodies, or with a temperature among the names of their columns WarmBodies."""
    return WarmBodies if "temperature" in names else Bodies


@dataclass(frozen=True)
class Lattice:
    """Balls on a lattice, see `filling.fill_lattice`."""

    make: Callable  # (columns, number of the first) -> Bodies
    first: int  # number of the first body
    count: int
    seed: int
    sizes: filling.Sizes
    radius: float  # [m], at size factor 1
    spot: Spot
    jitter: float
    start: dict  # columns with a row for all or for each: velocity, spin, perhaps orientation, which is random without, and temperature

    def places(self):
        """Centres (k,3) [m], layer after layer."""
        low, high, _, walls, known, inside = self.spot
        turned = 0 if "orientation" in self.start else 3 * self.count
        widest = max(float((self.radius * scale).max()) for scale in self._scales())
        width = np.full(3, widest + widest)
        lattice = filling.Cells.of(width, None, self.jitter, low, high, known)
        yield from lattice.layers(self._random(self.count + turned), self.count, walls, inside)

    def blocks(self):
        """See Store."""
        sizes, turns, first = self._random(0), self._random(self.count), 0
        for centre in self.places():
            last = first + len(centre)
            columns = {name: column if len(column) == 1 else column[first:last] for name, column in self.start.items()}
            columns |= {"position": centre, "scale": self.sizes.draw(sizes.random(len(centre)))}
            if "orientation" not in columns:
                columns["orientation"] = filling.random_orientation(turns.random((len(centre), 3)))
            yield self.make(columns, self.first + first)
            first = last

    def numbers(self):
        """Of the bodies, (count,)."""
        return np.arange(self.first, self.first + self.count)

    def _random(self, skipped):
        """The random numbers of the filling from a place on: first sizes, then orientations, then shifts."""
        rng = np.random.default_rng(self.seed)
        bits: Any = rng.bit_generator  # PCG64; not all can advance
        bits.advance(skipped)
        return rng

    def _scales(self):
        rng = self._random(0)
        for first in range(0, self.count, BLOCK):
            yield self.sizes.draw(rng.random(min(BLOCK, self.count - first)))


def lattice(scene, shape, material, drawn, room, start):
    """The Lattice of balls that fill a box, for which the scene has kept numbers; None where bodies are no balls, or not all find room.

    drawn: count, seed, Sizes, jitter; room: low and high corner, inside; start: see Lattice.
    """
    (count, seed, sizes, jitter), (low, high, inside) = drawn, room
    radius = bounding_radius(shape.parts())
    rows: list[int] = []  # of the mold and the material, once all bodies have room
    walls, known, near = scene._room(low, high, radius * sizes.largest)
    one = {"orientation": np.array([[1.0, 0.0, 0.0, 0.0]]), "scale": np.ones(1)}
    if filling.newcomers(scene, [shape], one, np.array([radius]), known, walls, near).keep is not None:
        return None

    def make(columns, first):
        return scene._rows(*rows, FREE, len(columns["scale"]), columns, first)

    spot = Spot(low, high, np.zeros(3), walls, known, inside)
    made = Lattice(make, scene.next_number, count, seed, sizes, radius, spot, jitter, start)
    if sum(len(centre) for centre in made.places()) < count:
        return None
    rows += [scene._mold_row(shape), scene._material_row(material)]
    scene.next_number += count
    return made

"""Where bodies are put and how large they are: random and lattice filling, and inlets that pour while time runs."""

import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from ..signatures import Floats, Mask, Shape
from . import clearance
from .solids import Keep, body_items, is_ball, join_items, make_solids, part_items, wall_solids, widths, with_box
from .stacking import join_molds, make_mold

# One round of random filling proposes at most this many points: about 100 MB of work arrays.
ROUND = 1_000_000
LOOKED = (
    100_000_000  # sites of a lattice that are looked at, and 100 more for each body: a wall or mask may block them all
)
FINEST = 1e9  # farther from the origin than so many radii a place is known to less than a millionth of the radius
DENSEST = math.pi / math.sqrt(18.0)  # part of space that equal balls can fill (Hales 2005)
SATURATED = 0.5  # part that random filling never reaches with balls of about one size; it ends at 0.38 in a wide box


@dataclass(frozen=True)
class Sizes:
    """A distribution of size factors by number: pieces, uniform from low to high, chosen by weight."""

    low: tuple[float, ...]
    high: tuple[float, ...]
    weight: tuple[float, ...]

    @classmethod
    def of(cls, place: str, scale: Any) -> "Sizes":
        """Sizes from a number, a pair (low, high), or a dict {scale: weight}; errors name `place`."""
        words = "a number, (low, high) or {scale: weight}"
        try:
            if isinstance(scale, Sizes):
                return scale
            if isinstance(scale, dict):
                low = high = tuple(float(value) for value in scale)
                weight = tuple(float(value) for value in scale.values())
            elif np.ndim(scale) == 0:
                low, high, weight = (float(scale),), (float(scale),), (1.0,)
            else:
                least, most = scale
                low, high, weight = (float(least),), (float(most),), (1.0,)
        except (TypeError, ValueError):
            raise TypeError(f"{place}: scale must be {words}, got {scale!r}") from None
        if not low:
            raise ValueError(f"{place}: scale must be {words}, got an empty dict")
        if not all(0.0 < a <= b < math.inf for a, b in zip(low, high, strict=True)):
            raise ValueError(f"{place}: scale must be finite and above 0, the lower limit first, got {scale!r}")
        if not all(0.0 <= w < math.inf for w in weight) or sum(weight) <= 0.0:
            raise ValueError(f"{place}: weights of scale must be 0 or more and not all 0, got {scale!r}")
        return cls(low, high, weight)

    @property
    def largest(self) -> float:
        """The largest size factor that can be drawn."""
        return max(high for high, weight in zip(self.high, self.weight, strict=True) if weight > 0.0)

    @property
    def smallest(self) -> float:
        """The smallest size factor that can be drawn."""
        return min(low for low, weight in zip(self.low, self.weight, strict=True) if weight > 0.0)

    @property
    def mean_cube(self) -> float:
        """Mean of the cube of the size factor, by which the mean volume grows."""
        low, high, weight = (np.array(column) for column in (self.low, self.high, self.weight))
        # Of a piece that is uniform from a to b it is (b^4 - a^4) / (4 (b - a)), written without a difference.
        return float(weight @ _mean_cube(low, high) / weight.sum())

    def draw(self, uniform: Floats) -> Floats:
        """Size factors (n,) for uniform numbers (n,) from 0 to 1."""
        share = np.cumsum(self.weight) / math.fsum(self.weight)
        share[-1] = 1.0
        piece = np.minimum(np.searchsorted(share, uniform, side="right"), len(share) - 1)
        before = np.concatenate([[0.0], share[:-1]])
        width = np.where(share > before, share - before, 1.0)
        within = (uniform - before[piece]) / width[piece]
        low, high = np.array(self.low), np.array(self.high)
        return low[piece] + (high - low)[piece] * within


def _mean_cube(low, high):
    return 0.25 * (low + high) * (low**2 + high**2)


def sieve(table: Mapping[float, float], shape: Shape) -> Sizes:
    """Sizes for `scale=` from a sieve table: {opening [m]: part of the mass that passes}, from 0 for the finest to 1 for the coarsest.

    Between two openings a < b lies the mass m = passing(b) - passing(a); diameters there are even between a and b by number, so that the
    number of bodies is m over their mean volume, w = m / ((b^4 - a^4) / (4 (b - a))) up to a common factor. A body has the size of an opening if the ball
    of its volume has that diameter. shape: the particle that is scaled.
    """
    place = "sieve"
    try:
        rows = sorted((float(opening), float(passing)) for opening, passing in dict(table).items())
        volume = float(shape.volume)
    except (TypeError, ValueError, AttributeError):
        raise TypeError(
            f"{place}: needs {{opening: passing}} in numbers and a particle shape, got {table!r} and {shape!r}"
        ) from None
    opening, passing = (np.array(column) for column in zip(*rows)) if rows else (np.zeros(0), np.zeros(0))
    if len(rows) < 2 or not (opening > 0.0).all() or not np.isfinite(opening).all():
        raise ValueError(f"{place}: needs at least two openings above 0 m, got {table!r}")
    if passing[0] != 0.0 or passing[-1] != 1.0 or (np.diff(passing) < 0.0).any():
        raise ValueError(
            f"{place}: the part that passes must grow from 0 at the finest sieve to 1 at the coarsest, got {passing.tolist()}"
        )
    if volume <= 0.0:
        raise ValueError(f"{place}: a wall has no size to sieve by")
    scale = opening / (2.0 * (0.75 * volume / math.pi) ** (1.0 / 3.0))
    weight = np.diff(passing) / _mean_cube(scale[:-1], scale[1:])
    return Sizes(tuple(scale[:-1].tolist()), tuple(scale[1:].tolist()), tuple((weight / weight.max()).tolist()))


def random_orientation(uniform):
    """Unit quaternions (n,4), evenly spread over all rotations, for uniform numbers (n,3) (Shoemake 1992)."""
    a, b = np.sqrt(1.0 - uniform[:, 0]), np.sqrt(uniform[:, 0])
    first, second = 2.0 * np.pi * uniform[:, 1], 2.0 * np.pi * uniform[:, 2]
    return np.column_stack([b * np.cos(second), a * np.sin(first), a * np.cos(first), b * np.sin(second)])


def check_fit(place, width, low, high):
    """Raise unless bodies that are as wide as width (3,) [m] fit into the box low..high."""
    span = high - low
    if (width > span * (1.0 + 1e-12)).any():
        axis = int(np.argmax(width - span))
        raise ValueError(
            f"{place}: the largest body has diameter {width[axis]:.6g} m and the box is only {span[axis]:.6g} m wide; "
            "use a larger box or a smaller scale"
        )


def check_far(place, radius, low, high):
    """Raise if the box is so far out that numbers cannot tell where in it a ball of `radius` [m] is."""
    far = float(np.abs([low, high]).max())
    if far > FINEST * radius:
        raise ValueError(
            f"{place}: the box reaches to {far:.4g} m, where numbers are too coarse for a body of radius {radius:.4g} m; "
            f"stay within {FINEST * radius:.4g} m of the origin"
        )


def check_volume(place, count, volume, alike, balls, low, high, method):
    """Raise if `count` bodies that take `volume` [m^3] in all cannot be put into the box, however it is tried.

    alike: they are of about one size; balls: they are equal balls.
    """
    room = math.prod((high - low).tolist())
    most = DENSEST if balls else 1.0
    if method == "random" and alike and count >= 1000:
        most = SATURATED
    if volume > most * room * (1.0 + 1e-9):
        raise ValueError(
            f"{place}: {count} bodies in all take at least {volume:.4g} m^3, and of the box of {room:.4g} m^3 "
            f"at most {most * room:.4g} m^3 can be filled (method {method!r}); it would need {volume / most:.4g} m^3: use a larger "
            "box, fewer bodies or a smaller scale"
        )


def check_room(place, count, reach, volume, sizes, low, high, method):
    """Raise if `count` bodies cannot be put into the box, before anything is tried; reach (k,) [m] and volume (k,) [m^3]: of their shapes,
    with these Sizes."""
    check_far(place, reach.min() * sizes.smallest, low, high)
    needed = count * volume.min() * sizes.smallest**3
    spread = reach.max() * sizes.largest / (reach.min() * sizes.smallest)
    balls = np.allclose(volume, 4.0 / 3.0 * math.pi * reach**3, rtol=1e-9)
    if count and balls:
        check_fit(place, np.full(3, 2.0 * reach.min() * sizes.smallest), low, high)
    check_volume(place, count, needed, spread <= 1.5, balls and spread <= 1.0, low, high, method)


@dataclass(frozen=True)
class Newcomers:
    """Bodies that are to be placed: radius (n,) [m] of the balls around them, how far each reaches down and up the axes, (n,3) or, of balls,
    (n,1) [m], and radius (n,) of the balls inside; keep: Keep of the known bodies and, behind them, of these, or None where all are balls."""

    radius: np.ndarray
    down: np.ndarray
    up: np.ndarray
    core: np.ndarray
    keep: Keep | None = None

    @classmethod
    def of(cls, solids, parts, orientation, factor, radius, known, bodies, shapes, walls):
        """Those with parts[0] up to parts[1] (n,) of Solids, orientation (n,4) and size factor (n,), in balls of these radii (n,).

        known: clearance.Known, of these Bodies and Shapes; walls: clearance.Walls.
        """
        low, high = parts
        balls = is_ball(solids)
        part = shapes.part[known.shape]
        plain = balls[np.unique(part)].all() and balls[np.unique(low)].all()
        if plain and (high - low == 1).all() and not solids.offset[np.unique(low)].any():
            return cls.balls(radius)
        made = body_items(solids, low, high, orientation, factor)
        body = shapes.body[known.shape]
        there = part_items(solids, part, bodies.orientation[body], bodies.scale[body])
        keep = Keep(solids, join_items(there, made), wall_solids(walls.corner))
        return cls(radius, *widths(solids, made), made.core, keep)

    @classmethod
    def balls(cls, radius):
        """Balls of these radii (n,) [m]."""
        edge = radius[:, None]
        return cls(radius, edge, edge, radius)


def newcomers(scene, shapes, columns, radius, known, walls, bodies):
    """Newcomers for bodies of these shapes, one for all or one each, which need not be in the scene yet.

    columns: orientation (n,4) or (1,4) and scale (n,); radius (n,) [m]: of the balls around them; bodies: of the scene that are known.
    """
    distinct = list({id(one): one for one in shapes}.values())
    row = {id(one): k for k, one in enumerate(distinct)}
    there = tuple(getattr(scene, name) for name in ("molds", "parts", "meshes", "hulls", "surfaces"))
    molds, parts, _, hulls, surfaces = join_molds([there, *(make_mold(one) for one in distinct)])
    mold = np.broadcast_to(len(there[0].first) + np.array([row[id(one)] for one in shapes]), len(radius))
    low = molds.first[mold].astype(np.int64)
    turn = np.broadcast_to(columns["orientation"], (len(radius), 4))
    solids = make_solids(parts, hulls, surfaces)
    given = known, bodies, scene.shapes(bodies), walls
    return Newcomers.of(solids, (low, low + molds.count[mold]), turn, columns["scale"], radius, *given)


def fill_random(rng, new, low, high, walls, known, inside):
    """Centres (n,3) and mask (n,) of the bodies that found room, tried at random points of the box low..high.

    new: Newcomers; walls: clearance.Walls; known: clearance.Known; inside: function points (n,3) -> mask, or None. Large bodies
    first, in blocks of radii within a tenth: small ones placed too early would take the room that only a large one can do without.
    """
    balls = clearance.stack_balls(low, high, known.centre, known.radius, new.radius)
    first = len(balls.radius) - len(new.radius)
    placed = np.zeros(len(new.radius), dtype=bool)
    order = np.argsort(-new.radius, kind="stable")
    step = np.floor(np.log(new.radius[order[0]] / new.radius[order]) / math.log(1.1))
    for block in np.split(order, np.flatnonzero(np.diff(step)) + 1):
        if not _place_block(rng, block, new, low, high, walls, balls, inside, first, placed):
            break
    return balls.centre[first:].copy(), placed


def _place_block(rng, block, new, low, high, walls, balls, inside, first, placed):
    """Place the bodies of one block; False if some found no room.

    When many points are refused, the box is cut into voxels and those without room are left out; the rest is cut
    again when needed. Points stay evenly spread over the room that is left (Zhang and Torquato 2013).
    """
    # Voxels are left out where not even the ball inside has room.
    extent = balls.radius if new.keep is None else new.keep.items.core
    least, size = new.core[block].min(), new.radius[block].min()
    centre, edge = None, None
    share, budget = 1.0, (20_000_000 if new.keep is None else 2_000_000) + 100 * len(block)
    pending, asked, found = block, 0, False
    while budget > 0:
        tries = int(min(max(1.0 / share, 256 / len(pending), 1.0), max(ROUND // len(pending), 1)))
        owner = np.repeat(pending, tries)
        down = new.down[owner]
        up = down if new.up is new.down else new.up[owner]
        if centre is None:
            point = low + down + rng.random((len(owner), 3)) * np.maximum(high - low - (down + up), 0.0)
            allowed = np.ones(len(owner), dtype=bool)
        else:
            point = centre[rng.integers(len(centre), size=len(owner))] + (rng.random((len(owner), 3)) - 0.5) * edge
            allowed = np.all((point >= low + down) & (point <= high - up), axis=1)
        if inside is not None:
            mask = inside(point)
            allowed &= mask
            asked, found = asked + len(mask), found or bool(mask.any())
            if not found and asked > 2 * ROUND:  # the mask and the box have nothing in common
                break
        tried = clearance.insert(point, owner, allowed, first, walls, balls, placed, new.keep)
        budget -= tried
        left = pending[~placed[pending]]
        if len(left) == 0:
            return True
        share = max(len(pending) - len(left), 0.5) / tried
        pending = left
        # A voxel costs as much as a point: cut only where that saves points.
        work = (high - low).prod() / size**3 if centre is None else 8.0 * len(centre)
        if len(pending) / share > min(work, 2.0 * ROUND):
            least, size = new.core[pending].min(), new.radius[pending].min()
            centre, edge = _voxels(low + least, high - least, size) if centre is None else _divide(centre, edge)
            budget -= len(centre)
            slack = 0.5 * math.sqrt(float(edge @ edge))
            centre = centre[clearance.clear(centre, np.full(len(centre), least), slack, walls, balls, extent)]
            if len(centre) == 0:
                break
    return False


def _voxels(low, high, size):
    """Centres (v,3) and edges (3,) of equal voxels that tile the box, about `size` wide and at most a few million."""
    span = np.maximum(high - low, 1e-9 * size)
    size = max(size, (span.prod() / 2e6) ** (1.0 / 3.0))
    count = np.maximum(np.round(span / size).astype(np.int64), 1)
    edge = span / count
    lines = [low[k] + (np.arange(count[k]) + 0.5) * edge[k] for k in range(3)]
    return np.stack(np.meshgrid(*lines, indexing="ij"), axis=-1).reshape(-1, 3), edge


def _divide(centre, edge):
    """Eight voxels for each; the same ones where that would be too many."""
    if len(centre) > ROUND:
        return centre, edge
    corner = np.array([(i, j, k) for i in (-0.25, 0.25) for j in (-0.25, 0.25) for k in (-0.25, 0.25)])
    return (centre[:, None, :] + corner * edge).reshape(-1, 3), 0.5 * edge


@dataclass(frozen=True)
class Cells:
    """A lattice from the bottom up, x first and z last, with a cell as wide as the widest body along each axis."""

    spacing: np.ndarray  # (3,) [m]
    sites: np.ndarray  # (3,) cells along each axis
    origin: np.ndarray  # (3,) [m], centre of the first
    shift: np.ndarray  # (3,) [m], by which bodies are moved out of the middle at the most
    half: np.ndarray  # (3,) [m], of the width of the widest body
    balls: Any  # clearance.Balls that are there
    keep: Any  # Keep of the bodies that are there and of a box as wide as a cell, and how many there are; None where all are balls

    @classmethod
    def of(cls, width, keep, jitter, low, high, known):
        """width (3,) [m] of the widest body; keep: Keep of the known bodies and others, or None where all are balls; jitter: part of the width up to half of which bodies are
        shifted; the spacing leaves room for it."""
        spacing = width * (1.0 + jitter)
        sites = np.floor((high - low) / spacing * (1.0 + 1e-12)).astype(np.int64)
        # A site that touches a wall exactly is welcome: rounding must not close it.
        half = 0.5 * width * (1.0 - 1e-9)
        balls = clearance.stack_balls(low, high, known.centre, known.radius, np.zeros(0))
        if keep is not None:
            solids, items, sheets = keep
            solids, many = with_box(solids, half), len(known.radius)
            box = np.array([len(solids.ball) - 1])
            items = join_items(
                type(items)(*(column[:many] for column in items)),
                body_items(solids, box, box + 1, np.array([1.0, 0.0, 0.0, 0.0]), np.ones(1)),
            )
            keep = Keep(solids, items, sheets), many
        origin = low + 0.5 * spacing
        origin[:2] += 0.5 * ((high - low)[:2] - sites[:2] * spacing[:2])
        return cls(spacing, sites, origin, jitter * (0.5 * width), half, balls, keep)

    def layers(self, rng, count, walls, inside):
        """Centres (k,3) of cells that neither walls nor other bodies block, layer after layer, `count` in all at the most."""
        total, done, first = math.prod(self.sites.tolist()), 0, 0
        wide, deep, _ = self.sites
        while done < count and first < min(total, LOOKED + 100 * count):
            # A layer, or a part of one that is too large.
            site = np.arange(first, min(first + min(wide * deep, ROUND), total))
            first += len(site)
            point = self.origin + self.spacing * np.column_stack(
                [site % wide, site // wide % deep, site // (wide * deep)]
            )
            if self.shift.any():
                point += self.shift * (2.0 * rng.random(point.shape) - 1.0)
            kept = self._clear(point, walls)
            if inside is not None:
                kept &= inside(point)
            found = point[kept][: count - done]
            done += len(found)
            yield found

    def _clear(self, point, walls):
        """Which of the points (k,3) neither walls nor other bodies block."""
        if self.keep is None:
            return clearance.clear(point, np.full(len(point), self.half[0]), 0.0, walls, self.balls, self.balls.radius)
        keep, many = self.keep
        return clearance.clear_of_all(point, many, math.sqrt(float(self.half @ self.half)), walls, self.balls, keep)


def fill_lattice(rng, count, new, jitter, low, high, walls, known, inside):
    """Centres (k,3), k <= count, on a lattice, see Cells; and its spacing (3,) [m]. new: Newcomers."""
    cells = Cells.of(np.broadcast_to((new.down + new.up).max(axis=0), 3), new.keep, jitter, low, high, known)
    centre = np.concatenate([np.zeros((0, 3)), *cells.layers(rng, count, walls, inside)])
    # The middle of what a body takes up stands in the middle of its cell.
    return centre + 0.5 * (new.down - new.up)[: len(centre)], cells.spacing


@dataclass(frozen=True)
class Inlet:
    """Pours bodies of one mold into a box. It keeps no state: all it gives follows from seed and count.

    mold, material: rows; reach [m]: radius that contains the mold; low, high (3,) [m]: the box; rate [1/s];
    velocity (3,) [m/s]; start, stop [s]; count: bodies in all, or None for no end; temperature [K], or None.
    """

    mold: int
    material: int
    reach: float
    low: tuple[float, float, float]
    high: tuple[float, float, float]
    rate: float
    velocity: tuple[float, float, float]
    sizes: Sizes
    start: float = 0.0
    stop: float = math.inf
    count: int | None = None
    seed: int = 0
    temperature: float | None = None

    def total(self, time: float) -> int:
        """How many bodies are due from the start up to and including `time` [s]."""
        span = min(time, self.stop) - self.start
        if span <= 0.0:
            return 0
        # The last bits of a sum of time steps must not delay a body.
        due = math.floor(self.rate * span * (1.0 + 1e-12))
        return due if self.count is None else min(due, self.count)

    def due(self, time0: float, time1: float) -> int:
        """How many bodies are due in (time0, time1] [s]."""
        return self.total(time1) - self.total(time0)

    def batch(self, first: int, count: int) -> tuple[Floats, Floats]:
        """Size factors (count,) and orientations (count,4) of bodies first, first + 1, ... of this inlet.

        Each body has its own counter in the generator: the numbers do not depend on how the bodies are batched.
        """
        uniform = np.random.Generator(np.random.Philox(key=self.seed, counter=first)).random((count, 4))
        return self.sizes.draw(uniform[:, 0]), random_orientation(uniform[:, 1:])

    def place(
        self, first: int, count: int, known: clearance.Known, newcomers: Callable | None = None, *, attempt: int = 0
    ) -> tuple[Floats, Floats, Floats, int]:
        """Room for bodies first, ..., first + count - 1: position (k,3), scale (k,), orientation (k,4) and k <= count.

        known: clearance.Known, what is in the way; newcomers: function (orientation (n,4), scale (n,), radius (n,)) -> Newcomers, by which
        bodies are told apart by their shapes; without it they are the balls around them. Bodies enter in their order, so that large ones are
        not passed over: where one finds no room, the rest waits with it, and the caller asks again with first + k. Another `attempt` tries
        other points.
        """
        scale, orientation = self.batch(first, count)
        low, high = np.array(self.low), np.array(self.high)
        radius = scale * self.reach
        new = Newcomers.balls(radius) if newcomers is None else newcomers(orientation, scale, radius)
        balls = clearance.stack_balls(low, high, known.centre, known.radius, radius)
        rng = np.random.default_rng([self.seed, first, attempt])
        owner = np.repeat(np.arange(count), 64)
        down, up = new.down[owner], new.up[owner]
        point = low + down + rng.random((len(owner), 3)) * np.maximum(high - low - (down + up), 0.0)
        placed = np.zeros(count, dtype=bool)
        slot = len(balls.radius) - count
        allowed = np.ones(len(owner), dtype=bool)
        clearance.insert(point, owner, allowed, slot, clearance.no_walls(low), balls, placed, new.keep)
        k = count if placed.all() else int(np.argmin(placed))
        return balls.centre[slot : slot + k].copy(), scale[:k], orientation[:k], k

    def describe(self) -> dict[str, Any]:
        """The inlet as plain numbers and lists."""
        return asdict(self) | {"stop": None if self.stop == math.inf else self.stop}

    @classmethod
    def rebuild(cls, numbers: Mapping[str, Any]) -> "Inlet":
        """The inlet from what `describe` gave, also after a way through JSON."""
        values: dict[str, Any] = {k: tuple(value) if isinstance(value, list) else value for k, value in numbers.items()}
        values["sizes"] = Sizes(**{key: tuple(value) for key, value in values["sizes"].items()})
        values["stop"] = math.inf if values["stop"] is None else values["stop"]
        return cls(**values)


@dataclass(frozen=True)
class Outlet:
    """Removes bodies whose centre enters the box low..high (3,) [m]."""

    low: tuple[float, float, float]
    high: tuple[float, float, float]

    def holds(self, position: Floats) -> Mask:
        """Mask of the positions (n,3) that lie in the box."""
        return np.all((position >= np.array(self.low)) & (position <= np.array(self.high)), axis=1)

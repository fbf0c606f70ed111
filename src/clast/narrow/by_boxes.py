"""The contacts of a scene in pieces: boxes of bodies one after the other, so that all contacts need not fit into memory.

The two levels of Negrut et al. (2010), section 4.2: the scene is cut into boxes, and the bodies of one box into bins. Here a box is what is
left when the bodies are halved, across the longest side, until few enough are together: so boxes hold equally many bodies
however unevenly these lie; one in which too many touch is halved again. A body belongs to one box and looks at those of other boxes that are within reach; of two
boxes the one that comes first tells of the contacts between them, so that each is there once. Walls, and bodies that are large against
the boxes, belong to none and are looked at in each box near them; large bodies among each other have boxes of their own.
"""

import math
from collections.abc import Iterator
from functools import cache
from numbers import Integral

import numpy as np

from ..broad.bins import Crowded, Part
from ..broad.near import image
from ..broad.search import BROAD, periodic_box
from ..errors import pick
from ..kernels import primitives
from ..kernels.backend import kernel
from ..scene import inputs
from ..scene.scene import Scene
from ..scene.stacking import mold_reach
from ..tables import Contacts, is_wall
from .contacts import NARROW, contacts_among
from .dispatch import FAMILIES, FAMILY
from .mesh_points import METHODS

# Most that a body and its shapes take while a box is looked at, its contacts included [bytes]: spheres that fill 0.64 of their
# box took 2,050 each, with a margin of a tenth of the radius. A slot is one point of contact that a pair may have.
BODY, SLOT = 1200, 200
PAIRS = 7  # pairs a body; a box that has more is halved
HELD = 4  # bodies that the memory of a box must hold: who allows less has not meant bytes
FEWEST = 5_000  # pairs for which no box is halved: its neighbours would take more
LARGE = 0.25  # of the edge of a box: bodies with a greater reach are large
CELLS = 8  # along each edge of a box
WHISKER = 1.0 + 1e-9  # so that rounding does not lose a pair


def contacts_by_boxes(
    scene: Scene,
    *,
    margin: float = 0.0,
    memory: float = 2**30,
    broad: str = "bins",
    narrow: str | None = None,
    sort: bool = True,
    share: tuple[int, int] = (0, 1),
) -> Iterator[Contacts]:
    """The contacts of a scene, box after box: an iterator of Contacts, each contact in one of them.

    memory [bytes]: how much one box may take, beside the scene itself and 40 bytes for each of its bodies; the boxes are made as small as that needs, and
    with one box this is `clast.find_contacts`. All contacts together are those of `find_contacts`, to the bit; within a
    box they are sorted as there. The other arguments are those of `find_contacts`.

    Where several processes share a run (`mpirun`, docs/scaling.md) each gets the boxes of its own part, and all must call it, for the same scene with the same
    arguments; share: (which part, of how many) says it for one process alone, which then asks no other.
    """
    if not isinstance(scene, Scene):
        raise TypeError(f"contacts_by_boxes: the first argument must be a clast.Scene, got {scene!r}")
    margin = float(margin)
    if not 0.0 <= margin < math.inf:
        raise ValueError(f"contacts_by_boxes: margin = {margin} must be 0 or more, in metres, and finite")
    if isinstance(memory, bool):
        raise TypeError(f"contacts_by_boxes: memory must be a number of bytes, got {memory}; 2**30 is a good start")
    memory = inputs.number("contacts_by_boxes", "memory", memory, infinite=True)
    if not memory > 0.0:
        raise ValueError(f"contacts_by_boxes: memory = {memory} must be above 0, in bytes; 2**30 is a good start")
    need = HELD * body_bytes(scene)
    if memory < need:
        raise ValueError(
            f"contacts_by_boxes: memory = {memory:g} bytes, and a box of {HELD} bodies of this scene takes {need:,.0f}; 2**30 is a good start"
        )
    pick("broad phase", broad, BROAD)
    narrow = "opm" if narrow is None else narrow
    pick("narrow phase", narrow, {**NARROW, **METHODS})
    whole = isinstance(share, tuple) and len(share) == 2 and all(isinstance(k, Integral) for k in share)
    if not (whole and 0 <= share[0] < share[1]):
        raise ValueError(
            f"contacts_by_boxes: share = {share!r} must be (which part, of how many), two whole numbers, the first from 0 on"
        )
    return boxes_of(scene, margin, (broad, narrow, sort, True), memory / body_bytes(scene), share)


def boxes_of(scene, margin, how, limit, share, crowded=False):
    """As `contacts_by_boxes`, with at most `limit` bodies in a box; how: broad, narrow, sort and tree of `find_contacts`; crowded: boxes may have
    any number of pairs."""
    count = len(scene.bodies.number)
    if count == 0:
        return iter(())
    limit = max(1, int(min(limit, count)))
    most = None if crowded else max(FEWEST, int(PAIRS * limit * shapes_a_body(scene)))
    rows = np.arange(count, dtype=np.int32 if count < 2**31 else np.int64)
    return _each_box(scene, rows, body_reach(scene), limit, most, margin, how, share)


def _each_box(scene, rows, sizes, limit, most, margin, how: tuple[str, str, bool, bool], share):
    """Contacts between the bodies in these rows, box after box; sizes: of all bodies, see `body_reach`; most: pairs of a box, or None."""
    bodies, (reach, wall) = scene.bodies, sizes
    large, few = wall, rows[~wall[rows]]
    great = few[reach[few] > LARGE * box_edge(bodies.position, few, limit)]
    if 0 < len(great) < len(few):  # else sizes do not divide them
        large = wall.copy()
        large[great] = True
        few = few[~large[few]]
    free = rows[large[rows]]
    if not wall[free].all():
        yield from _each_box(scene, free, sizes, limit, most, margin, how, share)
    del rows, great
    near = Near(bodies.position, reach, margin, periodic_box(scene), *halve(bodies.position, few, limit, share))
    del few
    turned = bool(scene.parts.kind.any() or scene.parts.offset.any())
    crowd = each = 0.0  # pairs a body: where there were too many, and in the box before
    todo = near.own[::-1]
    while todo:
        own = todo.pop()
        if len(own) > 1 and crowd > 0.0 and len(own) * crowd > most:
            todo += reversed(half(bodies.position, own))
            continue
        near.done[own] = True
        rows = np.sort(np.concatenate([own, *near.others(own, free)]))
        inside = near.done[rows]  # of others only those that are not
        enough = None if most is None or len(own) == 1 else most
        try:
            part = Part(2 * len(rows) < len(reach), enough, each)
            found = contacts_among(scene, rows_of(bodies, rows, turned), margin, *how, None, inside, part)
        except Crowded as many:
            crowd = many.pairs / len(own)
            near.done[own] = False
            todo.append(own)
        else:
            each = len(found.gap) / len(own)
            crowd = min(crowd, each)
            del rows, inside
            yield found
            del found  # it would be in memory beside the next one


class Near:
    """Which bodies are near a box. order, start: boxes as of `halve`; mine (b,) bool: those that are looked at.

    own: rows of each box that is looked at; done (n,) bool: bodies whose contacts have been told of, by boxes before.
    """

    def __init__(self, position, reach, margin, box, order, start, mine):
        self.position, self.reach, self.margin, self.box = position, reach, margin, box
        self.done = np.zeros(len(reach), bool)
        # What comes before the own boxes tells of contacts with them.
        first = int(np.argmax(mine)) if mine.any() else len(mine)
        self.boxes = [order[a:b] for a, b in zip(start[first:], start[first + 1 :])]
        mine = mine[first:]
        self.own = [rows for rows, looked in zip(self.boxes, mine) if looked]
        spans = [self.span(rows) for rows in self.boxes]
        self.low, self.high, self.widest = (np.array(column) for column in list(zip(*spans)) or [(), (), ()])
        if not mine.all():
            # Of the boxes of others only what is near an own one.
            span = self.low[mine].min(axis=0), self.high[mine].max(axis=0), self.widest[mine].max()
            self.boxes = [rows if k else self.close(rows, *span) for rows, k in zip(self.boxes, mine)]
        # Rows of each box by its cells, and how many bodies each cell has: most of a box beside another one is far from that.
        self.cells = [self.sort(k) for k in range(len(self.boxes))]

    def span(self, rows):
        """Lower and upper corner (3,) [m] of the centres of these bodies, and their largest reach [m]."""
        columns = [self.position[rows, axis] for axis in range(3)]
        return np.array([x.min() for x in columns]), np.array([x.max() for x in columns]), self.reach[rows].max()

    def sort(self, k):
        """Bring the rows of box k into the order of its cells; returns how many are in each."""
        rows, low = self.boxes[k], self.low[k]
        per_length = CELLS / np.maximum(self.high[k] - low, 1e-300)
        x, y, z = np.minimum(((self.position[rows] - low) * per_length).astype(np.int32), CELLS - 1).T
        start, order = primitives.group(x + CELLS * (y + CELLS * z), CELLS**3)
        self.boxes[k] = rows[order]
        return np.diff(start)

    def near(self, k, low, high, far):
        """Rows of box k in cells that are nearer than `far` [m] to the box from low to high (3,) [m]."""
        width = (self.high[k] - self.low[k]) / CELLS
        middle = self.low[k] + width * (np.arange(CELLS)[:, None] + 0.5)
        away = middle - 0.5 * (low + high)
        away -= self.box.length * np.round(away * self.box.inverse)
        # A whisker of the whole box, since a body may be put into the cell beside its own by rounding.
        gap = np.maximum(0.0, np.abs(away) - 0.5 * (high - low) - (0.5 + CELLS * (WHISKER - 1.0)) * width)
        x, y, z = (gap * gap).T
        close = (x + y[:, None] + z[:, None, None]).ravel() <= far * far
        return self.boxes[k][np.repeat(close, self.cells[k])]

    def close(self, rows, low, high, widest):
        """Those of the rows (k,) whose bodies may touch one of reach `widest` [m] whose centre is between low and high (3,) [m]."""
        close, edges = np.empty(len(rows), np.bool_), (*self.box.length.tolist(), *self.box.inverse.tolist())
        span = (*low.tolist(), *high.tolist(), float(widest + self.margin))
        kernel(close_row)(len(rows), rows, self.position, self.reach, span, edges, close)
        return rows[close]

    def others(self, own, free):
        """Rows of bodies that may touch those of a box and are in none that was looked at, in lists; own: its rows; free: those of bodies
        that are in no box."""
        low, high, widest = span = self.span(own)
        distance = apart(0.5 * (self.low + self.high), 0.5 * (self.high - self.low), (low, high), self.box)
        far = (self.widest + widest + self.margin) * WHISKER
        near = [self.near(k, low, high, far[k]) for k in np.flatnonzero(distance <= far)]
        return [rows[~self.done[rows]] for rows in (self.close(some, *span) for some in (*near, free))]


def close_row(k, rows, position, reach, span, edges, close):
    """Whether the body in row rows[k] may touch one in a box: span, its lower and upper corner and reach with margin [m]."""
    i, square = rows[k], 0.0
    for axis in range(3):
        low, high = span[axis], span[3 + axis]
        away = image(position[i, axis] - 0.5 * (low + high), edges[axis], edges[3 + axis])
        gap = max(0.0, abs(away) - 0.5 * (high - low))
        square += gap * gap
    far = (reach[i] + span[6]) * WHISKER
    close[k] = square <= far * far


def rows_of(bodies, rows, turned):
    """Some of the Bodies, with what contacts are found by; turned: whether it matters how they are turned."""
    asked = {"number", "position", "scale", "mold", "motion"} | ({"orientation"} if turned else set())
    return type(bodies)(
        *(
            column[rows] if name in asked else np.zeros((len(rows), *column.shape[1:]), column.dtype)
            for name, column in bodies._asdict().items()
        )
    )


def body_reach(scene):
    """Radius (n,) [m] about its centre of mass that contains a body and, of each, whether it is a wall (n,) bool."""
    bodies, molds, parts = scene.bodies, scene.molds, scene.parts
    reach = mold_reach(molds, parts)[bodies.mold]
    reach *= bodies.scale
    return reach, is_wall(parts.kind[molds.first])[bodies.mold]


def shapes_a_body(scene):
    """Mean number of shapes of a body of the scene."""
    return scene.molds.count[scene.bodies.mold].mean() if len(scene.bodies.mold) else 1.0


def body_bytes(scene):
    """About how much a body of the scene takes while its box is looked at [bytes]."""
    kinds = np.unique(scene.parts.kind)
    families = FAMILY[kinds[:, None], kinds]
    slots = max((FAMILIES[k].slots for k in np.unique(families[families < len(FAMILIES)])), default=1)
    return shapes_a_body(scene) * (BODY + PAIRS * SLOT * max(slots, 1))


def box_edge(position, rows, limit):
    """Edge [m] of a cube that would hold `limit` of the bodies in these rows of position (n,3) if they were spread evenly."""
    if len(rows) <= limit:
        return math.inf
    span = extent(position, rows)
    span = span[span > 0.0]
    return float(np.prod(span * (limit / len(rows)) ** (1.0 / len(span))) ** (1.0 / len(span))) if len(span) else 0.0


def extent(position, rows):
    """How far (3,) [m] the bodies in these rows of position (n,3) lie apart along each axis."""
    # One axis after the other: all places of a large scene would be in memory twice.
    return np.array([np.ptp(position[rows, axis]) for axis in range(3)])


@cache
def leaves(count, limit):
    """Boxes that so many bodies make if none may have more than limit."""
    return 1 if count <= limit else leaves(count // 2, limit) + leaves(count - count // 2, limit)


def half(position, rows):
    """The rows in two halves, the one that lies lower along the longest side first."""
    axis, middle = int(np.argmax(extent(position, rows))), len(rows) // 2
    rows = rows[np.argpartition(position[rows, axis], middle)]
    # Memory is read in its order then: a hundred million bodies take less time for this than for the next look at them.
    rows[:middle].sort()
    rows[middle:].sort()
    return rows[:middle], rows[middle:]


def halve(position, rows, limit, share=(0, 1)):
    """Rows in an order in which each box stands together, where each box begins (b+1,), and which of them are in the part (b,) bool; none of
    these has more than limit rows.

    position (n,3) [m]: of all bodies; rows (k,): which of them; share: which part of all boxes is meant, and of how many parts. How many boxes
    there are follows from the numbers of bodies alone, so what belongs to others need not be divided.
    """
    part, parts = share
    total = leaves(len(rows), limit) if len(rows) else 0
    first, last = total * part // parts, total * (part + 1) // parts
    order, cuts, mine = rows.copy(), [0], []
    todo = [(0, len(rows), 0)] if len(rows) else []
    while todo:
        low, high, before = todo.pop()
        behind = before + leaves(high - low, limit)
        if high - low <= limit or behind <= first or before >= last:
            order[low:high].sort()
            cuts.append(high)
            mine.append(first <= before < last)
            continue
        lower, upper = half(position, order[low:high])
        middle = low + len(lower)
        order[low:middle], order[middle:high] = lower, upper
        # The lower half is next: boxes come in the order in which they stand.
        todo += [(middle, high, before + leaves(len(lower), limit)), (low, middle, before)]
    return order, np.array(cuts), np.array(mine, bool)


def apart(centre, half, span, box):
    """Least distance (k,) [m] of boxes from the box `span`, lower and upper corner; centre (k,3), half (k,3) widths [m]."""
    low, high = span
    away = centre - 0.5 * (low + high)
    away -= box.length * np.round(away * box.inverse)
    gap = np.maximum(0.0, np.abs(away) - half - 0.5 * (high - low))
    return np.sqrt((gap * gap).sum(axis=1))

"""The contacts of a scene in pieces: boxes of bodies one after the other, so that all contacts need not fit into memory.

The two levels of Negrut et al. (2010), section 4.2: the scene is cut into boxes, and the bodies of one box into bins. Here a box is what is
left when the bodies are halved, across the longest side, until few enough are together: so boxes hold equally many bodies
however unevenly these lie. A body belongs to one box and looks at those of other boxes that are within reach; of two
bodies the one with the lower number tells of their contact, so that each is there once. Walls, and bodies that are large against
the boxes, belong to none and are looked at in each box near them; large bodies among each other have boxes of their own.
"""

import math

import numpy as np

from ..broad.search import BROAD, periodic_box
from ..errors import pick
from ..scene.scene import Scene
from ..tables import is_wall, some_bodies
from .contacts import NARROW, contacts_among, select
from .dispatch import FAMILIES, FAMILY
from .mesh_points import METHODS

# Most that a body and its shapes take while a box is looked at, its contacts included [bytes]: spheres that fill 0.64 of their
# box took 2,050 each, with a margin of a tenth of the radius. A slot is one point of contact that a pair may have.
BODY, SLOT = 1200, 200
PAIRS = 7  # pairs a body
LARGE = 0.25  # of the edge of a box: bodies with a greater reach are large
WHISKER = 1.0 + 1e-9  # so that rounding does not lose a pair


def contacts_by_boxes(scene, *, margin=0.0, memory=2**30, broad="bins", narrow=None, sort=True):
    """The contacts of a scene, box after box: an iterator of Contacts, each contact in one of them.

    memory [bytes]: about how much one box may take, beside the scene itself; the boxes are made as small as that needs, and
    with one box this is `clast.find_contacts`. All contacts together are those of `find_contacts`, to the bit; within a
    box they are sorted as there. The other arguments are those of `find_contacts`.
    """
    if not isinstance(scene, Scene):
        raise TypeError(f"contacts_by_boxes: the first argument must be a clast.Scene, got {scene!r}")
    margin, memory = float(margin), float(memory)
    if not 0.0 <= margin < math.inf:
        raise ValueError(f"contacts_by_boxes: margin = {margin} must be 0 or more, in metres, and finite")
    if not memory > 0.0:
        raise ValueError(f"contacts_by_boxes: memory = {memory} must be above 0, in bytes; 2**30 is a good start")
    pick("broad phase", broad, BROAD)
    narrow = "opm" if narrow is None else narrow
    pick("narrow phase", narrow, {**NARROW, **METHODS})
    if len(scene.bodies.number) == 0:
        return iter(())
    limit = max(1, int(memory / body_bytes(scene)))
    return _each_box(
        scene, np.arange(len(scene.bodies.number)), body_reach(scene), limit, margin, (broad, narrow, sort)
    )


def _each_box(scene, rows, sizes, limit, margin, how):
    """Contacts between the bodies in these rows, box after box; sizes: of all bodies, see `body_reach`."""
    bodies, box = scene.bodies, periodic_box(scene)
    reach, wall = sizes
    large = wall.copy()
    large[rows[reach[rows] > LARGE * box_edge(bodies.position[rows[~wall[rows]]], limit)]] = True
    if large[rows].all():
        large = wall  # sizes do not divide them
    order, start = halve(bodies.position, rows[~large[rows]], limit)
    low, high, widest = survey(bodies.position, reach, order, start)
    free = rows[large[rows]]
    if not wall[free].all():
        yield from _each_box(scene, free, sizes, limit, margin, how)
    # By body numbers: whether a body is large, and whether it is in the box.
    freed, mine = (np.zeros(int(bodies.number[-1]) + 1, bool) for _ in range(2))
    freed[bodies.number[free]] = True
    for k in range(len(start) - 1):
        own = order[start[k] : start[k + 1]]
        span = (low[k], high[k])
        near = apart(0.5 * (low + high), 0.5 * (high - low), span, box) <= (widest + widest[k] + margin) * WHISKER
        near[k] = False
        others = np.concatenate([order[start[j] : start[j + 1]] for j in np.nonzero(near)[0]] + [free])
        distance = apart(bodies.position[others], 0.0, span, box)
        others = others[distance <= (reach[others] + widest[k] + margin) * WHISKER]
        chosen = some_bodies(bodies, np.sort(np.concatenate([own, others])))
        found = contacts_among(scene, chosen, margin, *how)
        mine[bodies.number[own]] = True
        one, two = found.pair[:, 0], found.pair[:, 1]
        keep = np.where(freed[one], mine[two], mine[one])
        mine[bodies.number[own]] = False
        yield found if keep.all() else select(found, keep)


def body_reach(scene):
    """Radius (n,) [m] about its centre of mass that contains a body and, of each, whether it is a wall (n,) bool."""
    bodies, molds, parts = scene.bodies, scene.molds, scene.parts
    far = np.linalg.norm(parts.offset, axis=1) + parts.reach
    reach = np.maximum.reduceat(far, molds.first)[bodies.mold] * bodies.scale
    return reach, is_wall(parts.kind[molds.first])[bodies.mold]


def body_bytes(scene):
    """About how much a body of the scene takes while its box is looked at [bytes]."""
    parts, kinds = scene.molds.count[scene.bodies.mold].mean(), np.unique(scene.parts.kind)
    families = FAMILY[kinds[:, None], kinds]
    slots = max((FAMILIES[k].slots for k in np.unique(families[families < len(FAMILIES)])), default=1)
    return parts * (BODY + PAIRS * SLOT * max(slots, 1))


def box_edge(position, limit):
    """Edge [m] of a cube that would hold `limit` of the bodies at position (n,3) if they were spread evenly."""
    if len(position) <= limit:
        return math.inf
    span = position.max(axis=0) - position.min(axis=0)
    span = span[span > 0.0]
    return (
        float(np.prod(span * (limit / len(position)) ** (1.0 / len(span))) ** (1.0 / len(span))) if len(span) else 0.0
    )


def halve(position, rows, limit):
    """Rows in an order in which each box stands together, and where each box begins (b+1,); none has more than limit rows.

    position (n,3) [m]: of all bodies; rows (k,): which of them.
    """
    order, todo, cuts = rows.copy(), [(0, len(rows))] if len(rows) else [], [0]
    while todo:
        low, high = todo.pop()
        if high - low <= limit:
            cuts.append(high)
            continue
        here = position[order[low:high]]
        axis, middle = int(np.argmax(here.max(axis=0) - here.min(axis=0))), (high - low) // 2
        order[low:high] = order[low:high][np.argpartition(here[:, axis], middle)]
        # The lower half is next: boxes come in the order in which they stand.
        todo += [(low + middle, high), (low, low + middle)]
    return order, np.array(cuts)


def survey(position, reach, order, start):
    """Lower and upper corners (b,3) [m] of the centres in each box, and the largest reach (b,) [m] there."""
    boxes = [order[a:b] for a, b in zip(start, start[1:])]
    low = np.array([position[own].min(axis=0) for own in boxes]).reshape(-1, 3)
    high = np.array([position[own].max(axis=0) for own in boxes]).reshape(-1, 3)
    return low, high, np.array([reach[own].max() for own in boxes])


def apart(centre, half, span, box):
    """Least distance (k,) [m] of boxes from the box `span`, lower and upper corner; centre (k,3), half (k,3) widths [m]."""
    low, high = span
    away = centre - 0.5 * (low + high)
    away -= box.length * np.round(away * box.inverse)
    gap = np.maximum(0.0, np.abs(away) - half - 0.5 * (high - low))
    return np.sqrt((gap * gap).sum(axis=1))

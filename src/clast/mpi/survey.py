"""A look over the bodies of a scene, block after block, before they are divided: what must be known of all, and then those that one process keeps.

No process has all bodies at a time. What a simulation asks of them when it is made, the stiffest contact, which shapes and materials there are, depends on sizes at their extremes, so a few bodies
stand for all: the *outline*.
"""

import zlib
from types import SimpleNamespace

import numpy as np

from ..kernels import backend
from ..scene.stacking import join_bodies
from ..tables import FREE, some_bodies
from .cuts import Cuts
from .groups import Groups

SAMPLE = 200_000  # bodies, of all processes, by which space is cut
EACH = 2  # bodies of each mold and material in the outline, beside those that must be there
EQUAL = 1e-12  # part by which a mass may differ from that which its size gives


class Survey:
    """What is known of all bodies of a scene.

    count, free: how many bodies, and how many that move; outline: Bodies; sample (k,3) [m]: places of some free ones; checksum: of all columns; groups: of bodies that are joined.
    """

    def __init__(self, scene):
        self.scene, self.count, self.free = scene, scene.count, 0
        backend.give_back(self.count)  # what the scene was made from
        self.groups = Groups(scene)
        step, seen, sample, few = max(1, self.count // SAMPLE), 0, [np.zeros((0, 3))], []
        sums: dict[int, int] = {}
        for block in scene.blocks():
            # Column by column: where blocks end depends on whether somebody has asked for all bodies before.
            for k, column in enumerate(block):
                sums[k] = zlib.crc32(np.ascontiguousarray(column).view(np.uint8), sums.get(k, 0))
            free = block.motion == FREE
            self.free += int(free.sum())
            some = np.arange(-seen % step, len(free), step)
            some = some[free[some]]
            sample.append(self.groups.homes_at_start(block.number[some], block.position[some]))
            few.append(some_bodies(block, meant(scene, block)))
            seen += len(free)
        self.sample, self.checksum = np.concatenate(sample), zlib.crc32(np.array(list(sums.values())).tobytes())
        few = join_bodies(few)
        self.outline = some_bodies(few, meant(scene, few))

    def stand_in(self):
        """Let the scene show the outline for its bodies, until a simulation has them."""
        self.scene.source = SimpleNamespace(bodies=lambda: self.outline)

    def cuts(self, size, box):
        """Cuts that give each of `size` processes about as many free bodies."""
        return Cuts(size, box, self.sample, np.ones(len(self.sample)))

    def own(self, cuts, rank, labels):
        """Bodies in the tile of a process and all that are not free, and their labels; labels: function that gives those of all in the order of their numbers."""
        mine, named = [], [np.zeros(0, np.int64)]
        for block in self.scene.blocks():
            home = self.groups.homes_at_start(block.number, block.position)
            mine.append(np.flatnonzero((block.motion != FREE) | (cuts.owner(home) == rank)).astype(np.int32))
            named.append(labels(block)[mine[-1]])
        label = np.concatenate(named)
        # Room for all at once: parts that are joined would be there twice.
        found, first = type(self.outline)(*(np.empty((len(label), *c.shape[1:]), c.dtype) for c in self.outline)), 0
        for block, rows in zip(self.scene.blocks(), mine, strict=True):
            for whole, column in zip(found, block, strict=True):
                whole[first : first + len(rows)] = column[rows]
            first += len(rows)
        return found, label


def meant(scene, bodies):
    """Rows of Bodies, sorted by number, that stand for all of them: those that are not free, are joined or weigh what their size does not tell, and of each mold and material the
    smallest, the largest and the first ones."""
    free = np.flatnonzero(bodies.motion == FREE)
    density = np.array([material.density for material in scene.materials])
    weight = density[bodies.material[free]] * scene.molds.volume[bodies.mold[free]] * bodies.scale[free] ** 3
    odd = free[~(np.abs(bodies.mass[free] - weight) <= EQUAL * weight)]
    mold, material, scale = bodies.mold[free], bodies.material[free], bodies.scale[free]
    by_size, by_number = np.lexsort((scale, material, mold)), np.lexsort((material, mold))
    new = np.diff(mold[by_size]).astype(bool) | np.diff(material[by_size]).astype(bool)
    start, end = np.flatnonzero(np.append(True, new)[: len(free)]), np.flatnonzero(np.append(new, True)[: len(free)])
    first = np.minimum(start + np.arange(EACH)[:, None], end).ravel()
    some = free[np.concatenate([by_size[start], by_size[end], by_number[first]])]
    held = [number for one in (*scene.joints, *scene.springs) for number in (one.a, one.b)]
    joined = np.flatnonzero(np.isin(bodies.number, held))
    return np.unique(np.concatenate([np.flatnonzero(bodies.motion != FREE), odd, some, joined]))


def median(team, values):
    """The median of the values (k,), none below 0, of all processes, with the bits of `np.median`; None where there are none."""
    bits = np.sort(np.asarray(values, np.float64)).view(np.int64)  # whose order is that of the numbers

    def below(limit):
        return int(team.sum(np.array([np.searchsorted(bits, limit, side="right")]))[0])

    count = int(team.sum(np.array([len(bits)]))[0])
    middle = []
    for wanted in ((count - 1) // 2, count // 2) if count else ():
        low, high = -1, int(np.array([np.inf]).view(np.int64)[0])  # more than `wanted` are up to the high one
        while high - low > 1:
            mean = (low + high) // 2
            low, high = (low, mean) if below(mean) > wanted else (mean, high)
        middle.append(np.array([high]).view(np.float64)[0])
    return float(np.mean(middle)) if middle else None

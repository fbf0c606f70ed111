"""Broad phase by bins: every shape in the bin of its centre, on a level that fits its size.

Bins of one level are as wide as its largest shape, so partners on the same level lie in the 27 bins around. A smaller
shape also looks at the 27 bins around its centre on every coarser level; hence sizes 1:100 stay linear. Shapes are
sorted by bin, and a pair belongs to the shape that comes first: it is found exactly once. Bins that would be too many
(a stray body far away) are folded onto each other, as in a periodic box; that costs a few tests and loses nothing.
"""

import math
from typing import NamedTuple

import numpy as np

from ..kernels import backend, primitives
from ..kernels.backend import func, kernel
from ..tables import empty_contacts
from .near import image

CLASSES = 64  # powers of two of the radius that are told apart
SHARE = 8.0  # bodies per bin up to which smaller sizes are put into the bins of larger ones
GUESS = 6  # pairs per shape that a first search has room for, and twice as many where memory is no matter
SPARE = 1.4  # times the mean number of pairs of a shape that there is room for where that is known
CROWD = 32.0  # neighbours in one bin, on average over bodies, above which sizes are separated after all
PERIODIC = False  # bound to the kernels: some axis of the world repeats


class Grid(NamedTuple):
    """The bins of all levels, the coarsest first."""

    radius: np.ndarray  # (l,) [m], largest radius of the level
    origin: np.ndarray  # (3,) [m]
    inverse: np.ndarray  # (l,3) [1/m], bins per length
    bins: np.ndarray  # (l,3) int32
    wrap: np.ndarray  # (l,3) bool, the last bin neighbours the first
    first: np.ndarray  # (l+1,) int32, number of the level's first bin


class Part(NamedTuple):
    """What is known of shapes that are a part of a scene."""

    small: bool  # whether they fill a small part of a periodic world
    most: int | None  # pairs above which Crowded is raised before they take memory, or None
    each: float  # pairs that a shape has, about; 0 where that is not known


class Sorted(NamedTuple):
    """The shapes in the order of their bins."""

    shape: np.ndarray  # (s,) int32, row of Shapes
    ball: np.ndarray  # (s,4) [m], centre and radius
    level: np.ndarray  # (s,) int8
    tag: np.ndarray  # (s,) int32, shapes with equal tags make no pair
    start: np.ndarray  # (bins+1,) int32


@func
def size_class(radius):
    """Number of the power of two that is just above the radius, counted from 2**-40."""
    return min(max(math.frexp(radius)[1] + 40, 0), CLASSES - 1)


def survey_row(c, chunk, centre, radius, found):
    """Extent, largest radius and size classes of one chunk of shapes; unbounded shapes are passed over."""
    for k in range(CLASSES):
        found[c, 7 + k] = 0.0
    low_x, low_y, low_z = np.inf, np.inf, np.inf
    high_x, high_y, high_z = -np.inf, -np.inf, -np.inf
    largest = 0.0
    for i in range(c * chunk, min(len(radius), (c + 1) * chunk)):
        r = radius[i]
        if r < np.inf:
            x, y, z = centre[i, 0], centre[i, 1], centre[i, 2]
            low_x, low_y, low_z = min(low_x, x), min(low_y, y), min(low_z, z)
            high_x, high_y, high_z = max(high_x, x), max(high_y, y), max(high_z, z)
            largest = max(largest, r)
            found[c, 7 + size_class(r)] += 1.0
    found[c, 0], found[c, 1], found[c, 2] = low_x, low_y, low_z
    found[c, 3], found[c, 4], found[c, 5] = high_x, high_y, high_z
    found[c, 6] = largest


@func
def bin_of(x, level, axis, grid):
    """Bin number along one axis; wraps where the level wraps."""
    n = grid.bins[level, axis]
    b = int(math.floor((x - grid.origin[axis]) * grid.inverse[level, axis]))
    if grid.wrap[level, axis] and (b < 0 or b >= n):
        return b % n
    return min(max(b, 0), n - 1)


def place_row(i, centre, radius, grid, key, level):
    """The level and the bin of one shape; the last key is for unbounded shapes."""
    r = radius[i]
    levels = len(grid.radius)
    if not r < np.inf:
        level[i] = levels
        key[i] = grid.first[levels]
        return
    k = levels - 1
    while k > 0 and grid.radius[k] < r:
        k -= 1
    level[i] = k
    x = bin_of(centre[i, 0], k, 0, grid)
    y = bin_of(centre[i, 1], k, 1, grid)
    z = bin_of(centre[i, 2], k, 2, grid)
    key[i] = grid.first[k] + x + grid.bins[k, 0] * (y + grid.bins[k, 1] * z)


def crowd_row(c, chunk, bins, start, squares):
    """Sum over one chunk of bins of the square of the number of shapes in it."""
    total = 0.0
    for b in range(c * chunk, min(bins, (c + 1) * chunk)):
        n = float(start[b + 1] - start[b])
        total += n * n
    squares[c] = total


def gather_row(k, order, centre, radius, level, tag, ball, sorted_level, sorted_tag):
    """Copy what the search reads into the order of the bins."""
    i = order[k]
    ball[k, 0] = centre[i, 0]
    ball[k, 1] = centre[i, 1]
    ball[k, 2] = centre[i, 2]
    ball[k, 3] = radius[i]
    sorted_level[k] = level[i]
    sorted_tag[k] = tag[i]


@func
def scan_range(k, low, high, at, end, ball, tag, edges, margin, periodic, partner):
    """Test shape k against the sorted shapes low to high; writes partners while there is room, returns their count."""
    x, y, z, r = ball[k, 0], ball[k, 1], ball[k, 2], ball[k, 3] + margin
    for j in range(low, high):
        i = np.uintp(j)
        dx = ball[i, 0] - x
        dy = ball[i, 1] - y
        dz = ball[i, 2] - z
        if periodic:
            dx = image(dx, edges[0], edges[3])
            dy = image(dy, edges[1], edges[4])
            dz = image(dz, edges[2], edges[5])
        reach = r + ball[i, 3]
        if dx * dx + dy * dy + dz * dz <= reach * reach and tag[i] != tag[k]:
            if at < end:
                partner[np.uintp(at)] = j
            at += 1
    return at


def search_row(c, chunk, grid, order, edges, margin, room, partner, count, total):
    """Partners of one chunk of sorted shapes among all that come later, on their own and on coarser levels.

    The chunk writes to its own room in `partner`; what does not fit is still counted, so the caller can come again.
    """
    ball, tag, bin_start = order.ball, order.tag, order.start
    at, end = room[c], room[c + 1]
    for row in range(c * chunk, min(len(count), (c + 1) * chunk)):
        k = np.uintp(row)
        before = at
        own = order.level[k]
        for level in range(own + 1):
            nx, ny, nz = grid.bins[level, 0], grid.bins[level, 1], grid.bins[level, 2]
            wrap_x, wrap_y, wrap_z = grid.wrap[level, 0], grid.wrap[level, 1], grid.wrap[level, 2]
            ix = bin_of(ball[k, 0], level, 0, grid)
            iy = bin_of(ball[k, 1], level, 1, grid)
            iz = bin_of(ball[k, 2], level, 2, grid)
            left, right = max(ix - 1, 0), min(ix + 1, nx - 1) + 1
            # On its own level a shape meets only those that come after it; coarser levels it meets whole.
            after = row + 1 if level == own else 0
            ahead = level == own and not (wrap_y or wrap_z)
            for dz in range(0 if ahead else -1, 2):
                z = iz + dz
                if wrap_z:
                    # With one or two bins around, a bin must not be visited twice.
                    if (nz == 1 and dz != 0) or (nz == 2 and dz < 0):
                        continue
                    z = z % nz
                elif z < 0 or z >= nz:
                    continue
                for dy in range(0 if ahead and dz == 0 else -1, 2):
                    y = iy + dy
                    if wrap_y:
                        if (ny == 1 and dy != 0) or (ny == 2 and dy < 0):
                            continue
                        y = y % ny
                    elif y < 0 or y >= ny:
                        continue
                    first = grid.first[level] + nx * (y + ny * z)
                    low = max(bin_start[np.uintp(first + left)], after)
                    high = bin_start[np.uintp(first + right)]
                    at = scan_range(k, low, high, at, end, ball, tag, edges, margin, PERIODIC, partner)
                    if wrap_x and nx > 2 and (ix == 0 or ix == nx - 1):
                        other = first + (nx - 1 if ix == 0 else 0)
                        low, high = max(bin_start[other], after), bin_start[other + 1]
                        at = scan_range(k, low, high, at, end, ball, tag, edges, margin, PERIODIC, partner)
        count[k] = at - before
    total[c] = at - room[c]


def pair_row(c, chunk, room, start, partner, order, number, pairs):
    """Write the pairs of one chunk as rows of Shapes, the lower number first."""
    at = room[c]
    for k in range(c * chunk, min(len(start) - 1, (c + 1) * chunk)):
        a = order[k]
        for p in range(start[k], start[k + 1]):
            b = order[partner[at]]
            at += 1
            swap = number[a] > number[b]
            pairs[p, 0] = b if swap else a
            pairs[p, 1] = a if swap else b


def make_grid(shapes, box, margin, share, small=False):
    """Choose levels and bins from the sizes and the extent of the shapes; small: see Part."""
    device = backend.DEVICE[-1]
    n = len(shapes.radius)
    chunk = device.chunk * 16
    chunks = max(1, (n + chunk - 1) // chunk)
    found = device.empty((chunks, 7 + CLASSES), np.float64)
    kernel(survey_row, grain=2)(chunks, chunk, shapes.centre, shapes.radius, found)
    found = device.to_host(found)
    low, high = found[:, 0:3].min(0), found[:, 3:6].max(0)
    largest, sizes = found[:, 6].max(), found[:, 7:].sum(0)
    if not sizes.any():
        low, high = np.zeros(3), np.zeros(3)
    periodic = box.length > 0.0
    low, high = np.where(periodic, box.low, low), np.where(periodic, box.low + box.length, high)
    if not np.all(np.isfinite(high - low)):
        raise ValueError("a shape's position is not a number; look at scene.bodies.position")

    def width(radius):
        # A whisker wider than needed, so that rounding never puts partners two bins apart.
        return (2.0 * radius + margin) * (1.0 + 1e-9) + 1e-300

    radii, occupied = [largest], 0.0
    for k in np.nonzero(sizes)[0][::-1]:
        room = np.prod(np.maximum((high - low) / width(radii[-1]), 1.0))
        if small:  # the world may be a thousand times as large
            room = min(room, 2.0 * n + 64.0)
        if occupied and occupied + sizes[k] > share * room:
            radii.append(min(2.0 ** (float(k) - 40.0), radii[-1]))
            occupied = 0.0
        occupied += sizes[k]
    counts, wrap, scale = [], [], []
    for radius in radii:
        count = np.maximum(np.floor(np.minimum((high - low) / width(radius), 1e6)), 1).astype(np.int64)
        # A free axis gets one bin more than fits, so that its bins keep their width.
        count = np.where(periodic, count, count + 1)
        around, full = periodic.copy(), count.copy()
        while np.prod(count) > 2 * n + 64:
            # Free axes are folded, down to two bins; periodic ones get wider bins. Where shapes fill a part of the world these would be as wide as
            # the part, so periodic axes are folded there too: as many times as leaves the last of all bins beside the first.
            axis = int(np.argmax(np.where(periodic | (count > 3), count, 0)))
            fold = small and periodic[axis] and count[axis] > 3
            count[axis], around[axis] = count[axis] // 2 if fold else (count[axis] + 1) // 2, True
        counts.append(count)
        wrap.append(around)
        scale.append(count * (full // count) if small else count)
    bins = np.array(counts)
    inverse = np.array(
        [np.where(periodic, c / np.maximum(high - low, 1e-300), 1.0 / width(r)) for c, r in zip(scale, radii)]
    )
    first = np.concatenate([[0], np.cumsum(np.prod(bins, axis=1))]).astype(np.int32)
    columns = np.array(radii), low, inverse, bins.astype(np.int32), np.array(wrap), first
    return Grid(*(device.to_device(np.ascontiguousarray(c)) for c in columns)), int(first[-1])


def sort_shapes(shapes, tag, box, margin, part=None):
    """Sort the shapes into bins: returns the grid, the sorted shapes and the number of bounded shapes. part: see `search_bins`."""
    device = backend.DEVICE[-1]
    n = len(shapes.radius)
    share, chunk = SHARE, device.chunk * 16
    while True:
        grid, bins = make_grid(shapes, box, margin, share, part is not None and part.small)
        key, level = device.empty(n, np.int32), device.empty(n, np.int8)
        kernel(place_row)(n, shapes.centre, shapes.radius, grid, key, level)
        start, order = primitives.group(key, bins + 1)
        bounded = int(device.to_host(start[bins : bins + 1])[0])
        tasks = (bins + chunk - 1) // chunk
        squares = device.empty(tasks, np.float64)
        kernel(crowd_row, grain=2)(tasks, chunk, bins, start, squares)
        crowd = float(device.to_host(squares).sum()) / max(bounded, 1)
        # A crowd of equal shapes, as in a deep overlap, does not get thinner by separating sizes.
        if crowd <= CROWD or share < 1e-3:
            break
        share *= CROWD / crowd / 2.0
    ball, sorted_level = device.empty((n, 4), np.float64), device.empty(n, np.int8)
    sorted_tag = device.empty(n, np.int32)
    kernel(gather_row)(n, order, shapes.centre, shapes.radius, level, tag, ball, sorted_level, sorted_tag)
    return grid, Sorted(order, ball, sorted_level, sorted_tag, start), bounded


def contact_row(c, chunk, room, start, partner, order, ball, number, edges, contacts):
    """Write the contacts of one chunk of spheres from the sorted copies, which are near each other in memory.

    Seen from the sphere with the lower number, by the sums of `clast.narrow.spheres`: the same bits wherever a sphere stands in the order.
    """
    at = room[c]
    for k in range(c * chunk, min(len(start) - 1, (c + 1) * chunk)):
        for p in range(start[k], start[k + 1]):
            j = partner[at]
            at += 1
            lower = number[order[k]] < number[order[j]]
            a, b = (k, j) if lower else (j, k)
            dx, dy, dz = ball[b, 0] - ball[a, 0], ball[b, 1] - ball[a, 1], ball[b, 2] - ball[a, 2]
            if PERIODIC:
                dx, dy, dz = image(dx, edges[0], edges[3]), image(dy, edges[1], edges[4]), image(dz, edges[2], edges[5])
            distance = math.sqrt(dx * dx + dy * dy + dz * dz)
            # Two spheres with one centre may be parted in any direction.
            apart = distance > 0.0
            inverse = 1.0 / (distance if apart else 1.0)
            dx, dy, dz = dx * inverse, dy * inverse, dz * inverse if apart else 1.0
            r = ball[a, 3]
            gap = distance - (r + ball[b, 3])
            contacts.pair[p, 0], contacts.pair[p, 1] = number[order[a]], number[order[b]]
            contacts.gap[p] = gap
            contacts.normal[p, 0], contacts.normal[p, 1], contacts.normal[p, 2] = dx, dy, dz
            contacts.point[p, 0] = ball[a, 0] + (r * dx + 0.5 * gap * dx)
            contacts.point[p, 1] = ball[a, 1] + (r * dy + 0.5 * gap * dy)
            contacts.point[p, 2] = ball[a, 2] + (r * dz + 0.5 * gap * dz)


class Crowded(Exception):
    """There are more pairs than the caller has memory for; pairs: how many."""

    def __init__(self, pairs):
        super().__init__(f"{pairs} pairs")
        self.pairs = pairs


def look_at_room(pairs, part):
    """Raise Crowded if there are more pairs than a Part may have."""
    if part is not None and part.most is not None and pairs > part.most:
        raise Crowded(pairs)


def search_bins(shapes, tag, box, margin, part=None):
    """Sort the shapes and find all partners: returns what `pair_row` and `contact_row` start from. part: Part, of shapes that are a part of a scene."""
    device = backend.DEVICE[-1]
    grid, order, bounded = sort_shapes(shapes, tag, box, margin, part)
    chunk = device.chunk
    chunks = (bounded + chunk - 1) // chunk
    count, total = device.empty(bounded, np.int32), device.empty(chunks, np.int64)
    edges = (*box.length.tolist(), *box.inverse.tolist())
    arguments = chunk, grid, order, edges, float(margin)
    search = kernel(search_row, grain=2, PERIODIC=bool(box.periodic))
    # One search is enough when every chunk finds room; if one does not, the exact sizes are known for a second.
    guess = GUESS if bounded >= backend.MANY else 2 * GUESS
    if part is not None:
        guess = max(guess, math.ceil(SPARE * part.each))
    room = np.arange(chunks + 1) * (guess * chunk)
    while True:
        space = device.to_device(room)
        partner = device.empty(int(room[-1]), np.int32)
        search(chunks, *arguments, space, partner, count, total)
        needed = device.to_host(total)
        look_at_room(int(needed.sum()), part)
        if np.all(needed <= np.diff(room)):
            break
        room = np.concatenate([[0], np.cumsum(needed)])
    return (chunks, chunk, space, primitives.scan(count), partner), order, int(needed.sum())


def bins(shapes, tag, box, margin, part=None):
    """Pairs of bounded shapes whose bounding spheres are nearer than margin [m]: (p,2) int32 rows of Shapes.

    The shape with the lower number comes first. tag (s,) int32: shapes with equal tags make no pair. part: see `search_bins`.
    """
    found, order, total = search_bins(shapes, tag, box, margin, part)
    pairs = backend.DEVICE[-1].empty((total, 2), np.int32)
    kernel(pair_row, grain=2)(*found, order.shape, shapes.number, pairs)
    return pairs


def sphere_contacts(shapes, tag, number, box, margin, part=None):
    """Contacts of lone spheres, up to margin [m] apart. tag (s,) int32: spheres with equal tags make no contact; number (s,): body number of each; part: see `search_bins`."""
    found, order, total = search_bins(shapes, tag, box, margin, part)
    contacts = empty_contacts(total)
    edges = (*box.length.tolist(), *box.inverse.tolist())
    write = kernel(contact_row, grain=2, PERIODIC=bool(box.periodic))
    write(*found, order.shape, order.ball, number, edges, contacts)
    return contacts

"""Broad phase by boxes: every shape in all bins that its box overlaps, each bin by itself, in ten stages.

The stages are those of the paper (section 4), numbered below. Two things differ. Bins come in levels, as in `bins`: a box
is at home on the level whose bins are as wide as the level's largest box, so it overlaps at most two along an axis, and
visits the bins of all coarser levels; a bin tests its residents against each other and against its visitors. So a huge
body among small ones does not fill thousands of bins. And a pair that meets in several bins belongs to the bin that
holds the low corner of the overlap of both boxes. The paper takes the bin of the contact point, which is known only after
the narrow phase; the low corner lies in exactly one bin just as well, in both boxes by definition, and needs the boxes
alone. Its bin is the higher one of the two boxes' first bins along each axis, so the rule is one of whole numbers, and
rounding can neither lose a pair nor give it twice.
"""

import math
from typing import NamedTuple

import numpy as np

from ..kernels import backend, primitives
from ..kernels.backend import func, kernel
from .bins import sort_shapes

PERIODIC = False  # bound to the kernels: some axis of the world repeats
CLASSES = 32  # classes of load of a bin, at most
WIDE = 1.5  # width of a level's bins, in widths of its largest box
GUESS = 6  # pairs per shape that a first search has room for
FARTHEST = 1e15  # bins from the origin; what is farther out shares the last one
MOST = 2**31 - 1  # shapes in bins, counted once for each bin: what 32 bits can number


class Filled(NamedTuple):
    """What is in the bins, and those with pairs, the *active* ones, in the order of their loads."""

    start: np.ndarray  # (2 bins + 1,) int32, into member: of each bin its residents, then its visitors
    member: np.ndarray  # (e,) int32, shapes in the order of the bins of their centres
    ordered: np.ndarray  # (a,) int32, numbers of the active bins
    work_start: np.ndarray  # (a+1,) int64, work before each of them


def reach_row(i, centre, radius, extent, reach):
    """Half the width of bins that suit the box of one shape; infinite if the shape has no end."""
    longest = radius[i]
    if len(extent) > 0:
        longest = min(longest, max(extent[i, 0], extent[i, 1], extent[i, 2]))
    # Bins as narrow as the rounding of positions would be many for each shape.
    far = abs(centre[i, 0]) + abs(centre[i, 1]) + abs(centre[i, 2])
    reach[i] = max(WIDE * longest, 1e-12 * far) if radius[i] < np.inf else np.inf


def gather_row(k, order, centre, radius, extent, body):
    """Copy what the bins read of one shape into the order of the home bins: centre, half widths, radius."""
    i = order[k]
    r = radius[i]
    for axis in range(3):
        body[k, axis] = centre[i, axis]
        body[k, 3 + axis] = min(extent[i, axis], r) if len(extent) > 0 else r
    body[k, 6] = r


@func
def edge_bin(body, k, axis, side, level, grid, edges, margin):
    """Bin of the low (side -1) or high (side 1) end of box k along one axis, as if bins went on for ever.

    Boxes grow by half the margin and by more than all rounding, so boxes within the margin always share a bin.
    """
    x, origin = body[k, axis], grid.origin[axis]
    half = (body[k, 3 + axis] + 0.5 * margin) * (1.0 + 1e-9) + 1e-14 * (abs(x) + abs(origin) + edges[axis])
    b = (x + side * half - origin) * grid.inverse[level, axis]
    return int(math.floor(min(max(b, -FARTHEST), FARTHEST)))


@func
def wrapped(x, n):
    """x modulo n; the division is spared where it changes nothing."""
    return x if 0 <= x < n else x % n


@func
def first_and_count(body, k, axis, level, grid, edges, margin):
    """The first bin of box k along one axis and how many it overlaps; no bin twice where they wrap around."""
    low = edge_bin(body, k, axis, -1.0, level, grid, edges, margin)
    high = edge_bin(body, k, axis, 1.0, level, grid, edges, margin)
    return low, min(high - low + 1, int(grid.bins[level, axis]))


def count_row(k, body, home, grid, edges, margin, count):
    """Stage 1: the number of bins that box k overlaps, on its own level and on coarser ones."""
    total = 0
    for level in range(home[k] + 1):
        _, nx = first_and_count(body, k, 0, level, grid, edges, margin)
        _, ny = first_and_count(body, k, 1, level, grid, edges, margin)
        _, nz = first_and_count(body, k, 2, level, grid, edges, margin)
        total += nx * ny * nz
    count[k] = total


def fill_row(k, body, home, grid, edges, margin, start, key, member):
    """Stage 3: the bins that box k overlaps, each once. An odd key says that it is a visitor there."""
    at = start[k]
    for level in range(home[k] + 1):
        bx, by, bz = int(grid.bins[level, 0]), int(grid.bins[level, 1]), int(grid.bins[level, 2])
        x, nx = first_and_count(body, k, 0, level, grid, edges, margin)
        y, ny = first_and_count(body, k, 1, level, grid, edges, margin)
        z, nz = first_and_count(body, k, 2, level, grid, edges, margin)
        visitor = 0 if level == home[k] else 1
        for dz in range(nz):
            for dy in range(ny):
                row = grid.first[level] + bx * (wrapped(y + dy, by) + by * wrapped(z + dz, bz))
                for dx in range(nx):
                    key[at] = 2 * (row + wrapped(x + dx, bx)) + visitor
                    member[at] = k
                    at += 1


@func
def load_of(b, start):
    """How many pairs bin b has to test."""
    residents = start[2 * b + 1] - start[2 * b]
    visitors = start[2 * b + 2] - start[2 * b + 1]
    return np.int64(residents) * (residents - 1) // 2 + np.int64(residents) * visitors


def active_row(b, start, active):
    """Stage 5: whether a bin has anything to test."""
    active[b] = 1 if load_of(b, start) > 0 else 0


def load_row(b, start, place, doublings, number, load_class):
    """Stage 6: list the active bins, each with the class of its load; a class spans so many doublings."""
    if place[b + 1] > place[b]:
        number[place[b]] = b
        load_class[place[b]] = min((math.frexp(float(load_of(b, start)))[1] - 1) // doublings, CLASSES - 1)


def work_row(j, sequence, number, start, ordered, work):
    """The work of the j-th active bin in the order of loads: what it tests, and what it costs to look at it."""
    b = number[sequence[j]]
    ordered[j] = b
    work[j] = load_of(b, start) + 4


@func
def first_bin(work_start, share):
    """The first bin in the order of loads with `share` or more work before it."""
    low, high = 0, len(work_start) - 1
    while low < high:
        middle = (low + high) // 2
        if work_start[middle] < share:
            low = middle + 1
        else:
            high = middle
    return low


@func
def owns(b, i, j, turns, level, body, grid, edges, margin):
    """Whether bin b holds the low corner of the overlap of boxes i and j, where j is moved by `turns` periods."""
    bx, by, bz = int(grid.bins[level, 0]), int(grid.bins[level, 1]), int(grid.bins[level, 2])
    x = edge_bin(body, j, 0, -1.0, level, grid, edges, margin) - turns[0] * bx
    y = edge_bin(body, j, 1, -1.0, level, grid, edges, margin) - turns[1] * by
    z = edge_bin(body, j, 2, -1.0, level, grid, edges, margin) - turns[2] * bz
    x = wrapped(max(x, edge_bin(body, i, 0, -1.0, level, grid, edges, margin)), bx)
    y = wrapped(max(y, edge_bin(body, i, 1, -1.0, level, grid, edges, margin)), by)
    z = wrapped(max(z, edge_bin(body, i, 2, -1.0, level, grid, edges, margin)), bz)
    return b == grid.first[level] + x + bx * (y + by * z)


@func
def periods(d, inverse):
    """How many periods lie between d and its nearest image, the same as in `near.image`."""
    return int(d * inverse + (0.5 if d >= 0.0 else -0.5))


def search_row(task, tasks, body, tag, grid, edges, margin, filled, room, found, total):
    """Stage 8: the pairs of a run of bins of similar load; runs are of equal work.

    The run writes to its own room in `found`; what does not fit is still counted, so the caller can come again.
    """
    start, member, work_start = filled.start, filled.member, filled.work_start
    whole = work_start[len(work_start) - 1]
    at, end = room[task], room[task + 1]
    last_bin = first_bin(work_start, whole * (task + 1) // tasks)
    for number in range(first_bin(work_start, whole * task // tasks), last_bin):
        b = filled.ordered[number]
        level = 0
        while grid.first[level + 1] <= b:
            level += 1
        first, middle, last = start[2 * b], start[2 * b + 1], start[2 * b + 2]
        for p in range(first, middle):
            i = np.uintp(member[np.uintp(p)])
            x, y, z, r = body[i, 0], body[i, 1], body[i, 2], body[i, 6] + margin
            ex, ey, ez = body[i, 3] + margin, body[i, 4] + margin, body[i, 5] + margin
            for q in range(p + 1, last):
                j = np.uintp(member[np.uintp(q)])
                dx, dy, dz = body[j, 0] - x, body[j, 1] - y, body[j, 2] - z
                turns = (0, 0, 0)
                if PERIODIC:
                    turns = (periods(dx, edges[3]), periods(dy, edges[4]), periods(dz, edges[5]))
                    dx, dy, dz = dx - edges[0] * turns[0], dy - edges[1] * turns[1], dz - edges[2] * turns[2]
                reach = r + body[j, 6]
                near = dx * dx + dy * dy + dz * dz <= reach * reach
                near &= abs(dx) <= ex + body[j, 3]
                near &= abs(dy) <= ey + body[j, 4]
                near &= abs(dz) <= ez + body[j, 5]
                if near and tag[i] != tag[j] and owns(b, i, j, turns, level, body, grid, edges, margin):
                    if at < end:
                        found[at, 0] = i
                        found[at, 1] = j
                    at += 1
    total[task] = at - room[task]


def write_row(task, room, found, place, order, number, pairs):
    """Stage 10: the pairs of one run as rows of Shapes, the lower number first."""
    at = room[task]
    for p in range(place[task], place[task + 1]):
        a, b = order[found[at, 0]], order[found[at, 1]]
        at += 1
        swap = number[a] > number[b]
        pairs[p, 0] = b if swap else a
        pairs[p, 1] = a if swap else b


def sort_boxes(shapes, tag, box, margin, extent):
    """Before the stages: levels and bins from the sizes, and the shapes in the order of the bins of their centres."""
    device = backend.DEVICE[-1]
    n = len(shapes.radius)
    if extent is None:
        extent = device.empty((0, 3), np.float64)
    reach = device.empty(n, np.float64)
    kernel(reach_row)(n, shapes.centre, shapes.radius, extent, reach)
    grid, order, bounded = sort_shapes(shapes._replace(radius=reach), tag, box, margin)
    body = device.empty((n, 8), np.float64)
    kernel(gather_row)(n, order.shape, shapes.centre, shapes.radius, extent, body)
    return grid, order, body, bounded


def last_of(start):
    """The total that a prefix sum ends with."""
    return int(backend.DEVICE[-1].to_host(start[-1:])[0])


def fill_bins(grid, order, body, bounded, edges, margin):
    """Stages 1 to 4: returns where each bin starts, residents before visitors, and the shapes in all bins."""
    device = backend.DEVICE[-1]
    count = device.empty(bounded, np.int32)
    arguments = body, order.level, grid, edges, margin
    kernel(count_row)(bounded, *arguments, count)
    place = primitives.scan(count)  # stage 2
    entries = last_of(place)
    if entries > MOST:
        raise ValueError(f"{entries} bins of boxes are more than {MOST}; use another broad phase, or a smaller margin")
    key, member = device.empty(entries, np.int32), device.empty(entries, np.int32)
    kernel(fill_row)(bounded, *arguments, place, key, member)
    start, sequence = primitives.group(key, 2 * last_of(grid.first))  # stage 4
    sorted_member = device.empty(entries, np.int32)
    kernel(take_row)(entries, sequence, member, sorted_member)
    return start, sorted_member


def take_row(p, sequence, member, sorted_member):
    """One shape of one bin, in the order of the bins."""
    sorted_member[p] = member[sequence[p]]


def order_bins(bins, start):
    """Stages 5 to 7: the active bins, those of similar load together, and the work before each of them."""
    device = backend.DEVICE[-1]
    active = device.empty(bins, np.int8)
    kernel(active_row)(bins, start, active)
    place = primitives.scan(active)
    count = last_of(place)
    number, load_class = device.empty(count, np.int32), device.empty(count, np.int32)
    # Threads of a GPU wait for each other, so their loads should be alike. On a CPU the order of the bins in space is worth
    # more: a million bodies, classes of one doubling 163 ms, of four doublings 108 ms, the same as without classes.
    doublings = 4 if device is backend.CPU else 1
    kernel(load_row)(bins, start, place, doublings, number, load_class)
    _, sequence = primitives.group(load_class, CLASSES)
    ordered, work = device.empty(count, np.int32), device.empty(count, np.int64)
    kernel(work_row)(count, sequence, number, start, ordered, work)
    return ordered, primitives.scan(work)


def boxes(shapes, tag, box, margin, extent=None):
    """Pairs of bounded shapes whose boxes and whose bounding spheres are nearer than margin [m]: (p,2) rows of Shapes.

    The shape with the lower number comes first. tag (s,) int32: shapes with equal tags make no pair. extent (s,3): half
    widths of the boxes along the axes of the world [m]; without it the bounding spheres' boxes.
    """
    device = backend.DEVICE[-1]
    margin = float(margin)
    edges = (*box.length.tolist(), *box.inverse.tolist())
    grid, order, body, bounded = sort_boxes(shapes, tag, box, margin, extent)
    start, member = fill_bins(grid, order, body, bounded, edges, margin)
    filled = Filled(start, member, *order_bins(last_of(grid.first), start))
    tasks = max(1, (len(filled.ordered) + device.chunk - 1) // device.chunk)
    total = device.empty(tasks, np.int64)
    search = kernel(search_row, grain=2, PERIODIC=bool(box.periodic))
    arguments = tasks, body, order.tag, grid, edges, margin, filled
    # One search is enough when every run finds room; if one does not, the exact sizes are known for a second.
    room = np.arange(tasks + 1) * (GUESS * bounded // tasks + 1)
    while True:
        space = device.to_device(room)
        found = device.empty((int(room[-1]), 2), np.int32)
        search(tasks, *arguments, space, found, total)
        needed = device.to_host(total)
        if np.all(needed <= np.diff(room)):
            break
        room = np.concatenate([[0], np.cumsum(needed)])
    place = primitives.scan(total)  # stage 9
    pairs = device.empty((int(needed.sum()), 2), np.int32)
    kernel(write_row, grain=2)(tasks, space, found, place, order.shape, shapes.number, pairs)
    return pairs

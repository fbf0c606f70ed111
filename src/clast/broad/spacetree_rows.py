"""Broad phase by a spacetree, row by row: levels, vertices and lists of shapes, those who go down, and the search."""

import math

import numpy as np

from ..kernels.backend import func
from .near import image

DIGITS = 21  # bits of a vertex's number along one axis
LAST = (1 << DIGITS) - 1
CLASSES = 256  # sizes that are told apart, four to each power of two
PERIODIC = False  # bound to the kernels: some axis of the world repeats


@func
def size_class(radius):
    """Number of the class of a radius; `class_end` is its inverse."""
    share, power = math.frexp(radius)
    return min(max(4 * (power + 40) + int(8.0 * share) - 4, 0), CLASSES - 1) if radius > 0.0 else 0


def class_end(number):
    """The largest radius of a class [m]."""
    return (0.625 + 0.125 * (number % 4)) * 2.0 ** (number // 4 - 40)


@func
def nearest(x, level, axis, tree):
    """The vertex next to x along one axis; wraps where the axis wraps."""
    n = tree.vertices[level, axis]
    v = int(math.floor((x - tree.origin[axis]) * tree.inverse[level, axis] + 0.5))
    if tree.wrap[axis] and (v < 0 or v >= n):
        return v % n
    # Vertices never get farther from each other by this, so neighbours stay neighbours.
    return min(max(v, 0), n - 1)


@func
def list_of(x, y, z, level, tree):
    """The list of a vertex: that of its block. Where tables are folded, each is moved by a number made of its place."""
    grain = tree.grain[level]
    x, y, z = x >> grain, y >> grain, z >> grain
    if tree.folded[level]:
        bx, by, bz = tree.bits[level, 0], tree.bits[level, 1], tree.bits[level, 2]
        mixed = (x >> bx) * 40503 + (y >> by) * 2654435 + (z >> bz) * 81649657
        mixed ^= mixed >> 11
        x = x & ((1 << bx) - 1)
        y = (y + (mixed & tree.spread[level, 1])) & ((1 << by) - 1)
        z = (z + ((mixed >> 7) & tree.spread[level, 2])) & ((1 << bz) - 1)
    return tree.first[level] + x + tree.lists[level, 0] * (y + tree.lists[level, 1] * z)


def survey_row(c, chunk, centre, radius, found):
    """Extent, largest and smallest radius and size classes of one chunk of shapes; unbounded shapes are passed over."""
    for k in range(CLASSES):
        found[c, 8 + k] = 0.0
    low_x, low_y, low_z = np.inf, np.inf, np.inf
    high_x, high_y, high_z = -np.inf, -np.inf, -np.inf
    largest, smallest = 0.0, np.inf
    for i in range(c * chunk, min(len(radius), (c + 1) * chunk)):
        r = radius[i]
        if r < np.inf:
            x, y, z = centre[i, 0], centre[i, 1], centre[i, 2]
            low_x, low_y, low_z = min(low_x, x), min(low_y, y), min(low_z, z)
            high_x, high_y, high_z = max(high_x, x), max(high_y, y), max(high_z, z)
            largest, smallest = max(largest, r), min(smallest, r)
            found[c, 8 + size_class(r)] += 1.0
    found[c, 0], found[c, 1], found[c, 2] = low_x, low_y, low_z
    found[c, 3], found[c, 4], found[c, 5] = high_x, high_y, high_z
    found[c, 6], found[c, 7] = largest, smallest


def level_row(c, chunk, radius, limit, level, tally):
    """The finest level on which each shape of one chunk fits, and how many there are on each; the last for unbounded ones."""
    levels = len(limit)
    for k in range(levels + 1):
        tally[c, k] = 0
    for i in range(c * chunk, min(len(radius), (c + 1) * chunk)):
        r = radius[i]
        k = levels
        if r < np.inf:
            k = levels - 1
            while k > 0 and limit[k] < r:
                k -= 1
        level[i] = k
        tally[c, k] += 1


def key_row(k, rows, centre, level_of, tree, key, place):
    """The vertex of a shape, and its list; the last list is for unbounded shapes."""
    i = rows[k]
    level = int(level_of[i])
    levels = len(tree.limit)
    if level == levels:
        key[k], place[k] = 0, tree.first[levels]
        return
    x = nearest(centre[i, 0], level, 0, tree)
    y = nearest(centre[i, 1], level, 1, tree)
    z = nearest(centre[i, 2], level, 2, tree)
    key[k] = x | y << DIGITS | z << 2 * DIGITS
    place[k] = list_of(x, y, z, level, tree)


def crowd_row(c, chunk, first, last, start, squares):
    """Sum over one chunk of the lists from first to last of the square of the number of shapes in it."""
    total = 0.0
    for b in range(first + c * chunk, min(last, first + (c + 1) * chunk)):
        n = float(start[b + 1] - start[b])
        total += n * n
    squares[c] = total


def gather_row(k, order, centre, radius, level, key, tag, ball, sorted_level, sorted_key, sorted_tag):
    """Copy what the search reads into the order of the lists."""
    i = order[k]
    ball[k, 0] = centre[i, 0]
    ball[k, 1] = centre[i, 1]
    ball[k, 2] = centre[i, 2]
    ball[k, 3] = radius[i]
    sorted_level[k] = level[i]
    sorted_key[k] = key[i]
    sorted_tag[k] = tag[i]


def begin_row(i, levels, finest, rows, level_of):
    """Rows in their own order, all bounded shapes on the root level."""
    rows[i] = i
    level_of[i] = 0 if finest[i] < levels else levels


@func
def around(v, whole, n, wrap):
    """First and last vertex along one axis that belong to a cell touching the finer vertex at or after v."""
    low, high = v - (1 if whole else 0), v + 1
    if not wrap:
        return max(low, 0), min(high, n - 1)
    if high - low >= n:
        return 0, n - 1
    return low, high


@func
def wrapped(v, n):
    """v within 0 to n - 1, where it is at most one round off."""
    if v < 0:
        return v + n
    return v - n if v >= n else v


@func
def within(packed, x, y, z, more_x, more_y, more_z):
    """Whether a vertex lies between x, y, z and so many vertices further along the axes."""
    dx, dy, dz = (packed & LAST) - x, (packed >> DIGITS & LAST) - y, (packed >> 2 * DIGITS) - z
    return dx >= 0 and dx <= more_x and dy >= 0 and dy <= more_y and dz >= 0 and dz <= more_z


def search_row(c, chunk, tree, ball, order, edges, margin, room, partner, count, total, looked):
    """Partners of one chunk of sorted shapes: on their own level among those that come later, on coarser levels all.

    The chunk writes to its own room in `partner`; what does not fit is still counted, so the caller can come again.
    """
    key, tag, start = order.key, order.tag, order.start
    at, end = room[c], room[c + 1]
    seen = 0
    wrap_x, wrap_y, wrap_z = tree.wrap[0], tree.wrap[1], tree.wrap[2]
    for row in range(c * chunk, min(len(count), (c + 1) * chunk)):
        k = np.uintp(row)
        before = at
        px, py, pz, reach = ball[k, 0], ball[k, 1], ball[k, 2], ball[k, 3] + margin
        own = int(order.level[k])
        x, y, z = key[k] & LAST, key[k] >> DIGITS & LAST, key[k] >> 2 * DIGITS
        # Whether the shape's vertex coincides with one of the level, along each axis.
        whole_x, whole_y, whole_z = True, True, True
        for level in range(own, -1, -1):
            if tree.first[level + 1] > tree.first[level]:
                nx, ny, nz = tree.vertices[level, 0], tree.vertices[level, 1], tree.vertices[level, 2]
                low_x, high_x = around(x, whole_x, nx, wrap_x)
                low_y, high_y = around(y, whole_y, ny, wrap_y)
                low_z, high_z = around(z, whole_z, nz, wrap_z)
                grain = tree.grain[level]
                block = (1 << grain) - 1
                run = (1 << tree.bits[level, 0] + grain) - 1
                same = level == own
                # Where lists stand in the order of space, those before the own row of blocks hold nobody who comes later.
                ahead = same and not (tree.folded[level] or wrap_y or wrap_z)
                vz = max(low_z, z >> grain << grain) if ahead else low_z
                while vz <= high_z:
                    cz = wrapped(vz, nz)
                    more_z = min(high_z - vz, nz - 1 - cz, block - (cz & block))
                    vy = max(low_y, y >> grain << grain) if ahead and cz >> grain == z >> grain else low_y
                    while vy <= high_y:
                        cy = wrapped(vy, ny)
                        more_y = min(high_y - vy, ny - 1 - cy, block - (cy & block))
                        vx = low_x
                        while vx <= high_x:
                            cx = wrapped(vx, nx)
                            # Lists of neighbours along x stand side by side, up to where the table is folded.
                            more_x = min(high_x - vx, nx - 1 - cx, run - (cx & run))
                            place = list_of(cx, cy, cz, level, tree)
                            last = place + (cx + more_x >> grain) - (cx >> grain)
                            low, high = int(start[np.uintp(place)]), int(start[np.uintp(last + 1)])
                            if same:
                                low = max(low, row + 1)
                            for other in range(low, high):
                                j = np.uintp(other)
                                if not within(key[j], cx, cy, cz, more_x, more_y, more_z):
                                    continue
                                seen += 1
                                dx, dy, dz = ball[j, 0] - px, ball[j, 1] - py, ball[j, 2] - pz
                                if PERIODIC:
                                    dx = image(dx, edges[0], edges[3])
                                    dy = image(dy, edges[1], edges[4])
                                    dz = image(dz, edges[2], edges[5])
                                near = reach + ball[j, 3]
                                if dx * dx + dy * dy + dz * dz <= near * near and tag[j] != tag[k]:
                                    if at < end:
                                        partner[np.uintp(at)] = other
                                    at += 1
                            vx += more_x + 1
                        vy += more_y + 1
                    vz += more_z + 1
            whole_x, whole_y, whole_z = whole_x and x % 3 == 0, whole_y and y % 3 == 0, whole_z and z % 3 == 0
            x, y, z = x // 3, y // 3, z // 3
        count[k] = at - before
    total[c] = at - room[c]
    looked[c] = seen


@func
def has_company(k, level, key, start, tree):
    """Whether a shape other than sorted shape k hangs on its vertex or on one that shares a cell with it."""
    nx, ny, nz = tree.vertices[level, 0], tree.vertices[level, 1], tree.vertices[level, 2]
    x, y, z = key[k] & LAST, key[k] >> DIGITS & LAST, key[k] >> 2 * DIGITS
    low_x, high_x = around(x, True, nx, tree.wrap[0])
    low_y, high_y = around(y, True, ny, tree.wrap[1])
    low_z, high_z = around(z, True, nz, tree.wrap[2])
    block = (1 << tree.grain[level]) - 1
    vz = low_z
    while vz <= high_z:
        cz = wrapped(vz, nz)
        more_z = min(high_z - vz, nz - 1 - cz, block - (cz & block))
        vy = low_y
        while vy <= high_y:
            cy = wrapped(vy, ny)
            more_y = min(high_y - vy, ny - 1 - cy, block - (cy & block))
            vx = low_x
            while vx <= high_x:
                cx = wrapped(vx, nx)
                more_x = min(high_x - vx, nx - 1 - cx, block - (cx & block))
                place = list_of(cx, cy, cz, level, tree)
                for j in range(start[place], start[place + 1]):
                    if j != k and within(key[j], cx, cy, cz, more_x, more_y, more_z):
                        return True
                vx += more_x + 1
            vy += more_y + 1
        vz += more_z + 1
    return False


def drop_row(k, level, rows, order, key, start, tree, finest, level_of, goes):
    """Let one shape that hangs on this level down to the next if it fits there and is not alone here."""
    place = order[k]
    i = rows[place]
    goes[place] = 1 if finest[i] > level and has_company(k, level, key, start, tree) else 0
    level_of[i] = level + goes[place]


def take_row(k, order, source, target):
    """Copy one number into the order of the lists."""
    target[k] = source[order[k]]


def next_row(k, rows, place, chosen):
    """List the rows that go down, in the order they stood in."""
    if place[k + 1] > place[k]:
        chosen[place[k]] = rows[k]

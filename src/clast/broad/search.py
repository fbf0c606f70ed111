"""From shapes to pairs: any broad phase for what has an end, and everyone against the walls that have none."""

import math

import numpy as np

from ..kernels import backend, kinds, primitives
from ..kernels.backend import kernel
from ..shapes.ellipsoid_form import half_widths, has_ellipsoids
from ..tables import Box, is_particle, is_wall
from .all_pairs import all_pairs
from .bins import bins
from .boxes import boxes
from .near import image, wall_near
from .spacetree import SPACETREES

BROAD = {"bins": bins, "boxes": boxes, "all-pairs": all_pairs, **SPACETREES}


def periodic_box(scene):
    """The periodic box of a scene as a table."""
    length, low = np.zeros(3), np.zeros(3)
    if any(scene.periodic):
        low, high = np.array(scene.world[0]), np.array(scene.world[1])
        length = np.where(scene.periodic, high - low, 0.0)
    inverse = np.divide(1.0, length, out=np.zeros(3), where=length > 0.0)
    return Box(low, length, inverse, bool(any(scene.periodic)))


def family_row(p, bodies, shapes, parts, meshes, box, margin, pair, family, key):
    """Which family pair p belongs to, by the kinds of its shapes; the last key drops what does not touch or is far off."""
    a, b = pair[p, 0], pair[p, 1]
    one, two = shapes.kind[a], shapes.kind[b]
    key[p] = family[one, two]
    swap = kinds.is_wall(one)
    if swap != kinds.is_wall(two):
        s, w = (b, a) if swap else (a, b)
        if not wall_near(s, w, bodies, shapes, parts, meshes, box, shapes.radius[s] + margin):
            key[p] = family[shapes.kind[w], shapes.kind[w]]


def kinds_row(p, shapes, pair, family, key):
    """The same by the kinds alone."""
    key[p] = family[shapes.kind[pair[p, 0]], shapes.kind[pair[p, 1]]]


def take_row(k, first, order, shapes, pair, taken):
    """Copy a pair into the list of its family; with a wall, the particle comes first."""
    p = order[first + k]
    a, b = pair[p, 0], pair[p, 1]
    swap = kinds.is_wall(shapes.kind[a])
    taken[k, 0] = b if swap else a
    taken[k, 1] = a if swap else b


def by_family(shapes, pair, key, count):
    """The pairs (p,2) in lists by their keys (p,), 0 up to count; those with the key `count` are dropped."""
    device = backend.DEVICE[-1]
    start, order = primitives.group(key, count + 1)
    start, lists = device.to_host(start), []
    for k in range(count):
        taken = device.empty((int(start[k + 1] - start[k]), 2), np.int32)
        kernel(take_row)(len(taken), int(start[k]), order, shapes, pair, taken)
        lists.append(taken)
    return lists


# Columns of walls that have no end: a point of the wall [m] and its axis, three each; radius of a cylinder [m], 0 for a plane; +1 hollow, -1 solid.
POINT, AXIS, RADIUS, SENSE = 0, 3, 6, 7
WALL_COLUMNS = 8


def endless_row(c, chunk, shapes, tag, edges, margin, walls, wall_tag, start, pairs, count):
    """Pairs of one chunk of particles with the walls that have no end: counted, or written where start says.

    walls (w,8): columns as above.
    """
    centre, radius = shapes.centre, shapes.radius
    for s in range(c * chunk, min(len(radius), (c + 1) * chunk)):
        found = 0
        if kinds.is_particle(shapes.kind[s]):
            reach = radius[s] + margin
            for w in range(len(walls)):
                x = image(centre[s, 0] - walls[w, POINT], edges[0], edges[3])
                y = image(centre[s, 1] - walls[w, POINT + 1], edges[1], edges[4])
                z = image(centre[s, 2] - walls[w, POINT + 2], edges[2], edges[5])
                height = x * walls[w, AXIS] + y * walls[w, AXIS + 1] + z * walls[w, AXIS + 2]
                if walls[w, RADIUS] == 0.0:
                    near = height <= reach
                else:
                    across = math.sqrt(max(0.0, x * x + y * y + z * z - height * height))
                    near = walls[w, SENSE] * (walls[w, RADIUS] - across) <= reach
                if near and tag[s] != wall_tag[w]:
                    if len(start) > 0:
                        pairs[start[s] + found, 0] = s
                        pairs[start[s] + found, 1] = w
                    found += 1
        if len(start) == 0:
            count[s] = found


def endless_walls(bodies, shapes, parts, rows):
    """What `endless_row` needs to know of the walls in these rows of Shapes: (w,8), columns as above."""
    body, part = shapes.body[rows], shapes.part[rows]
    table = np.zeros((len(rows), WALL_COLUMNS))
    for k in range(len(rows)):
        q, size = bodies.orientation[body[k]], bodies.scale[body[k]]
        table[k, POINT : POINT + 3] = bodies.position[body[k]] + size * np.array(turned(q, parts.offset[part[k]]))
        table[k, AXIS : AXIS + 3] = turned(q, parts.axis[part[k]])
        table[k, RADIUS], table[k, SENSE] = parts.size[part[k], 0] * size, parts.size[part[k], 2]
    return table


def turned(q, v):
    """Vector v turned by quaternion q, for a few vectors outside kernels."""
    w, a, b, c = q
    x, y, z = v
    t, u, s = 2.0 * (b * z - c * y), 2.0 * (c * x - a * z), 2.0 * (a * y - b * x)
    return (x + w * t + b * s - c * u, y + w * u + c * t - a * s, z + w * s + a * u - b * t)


def find_pairs(tables, tag, box, margin, search, family, host=None):
    """Pairs whose surfaces may be nearer than margin [m], as rows of Shapes, in one list for each family.

    family (k,k) int32: number of the family of two kinds of shapes, spheres with spheres 0; two walls have the number of
    families. host: the tables as NumPy arrays, if `tables` are on another device; of these only walls must be up to date.
    Returns lists (p,2): of two particles, the lower number first; of particles with walls, the particle first.
    """
    device = backend.DEVICE[-1]
    shapes = tables[1]
    n, count = len(shapes.radius), int(family.max())
    at_hand = tables if host is None else host
    kind, radius = at_hand[1].kind, at_hand[1].radius
    if search is boxes and has_ellipsoids(kind):
        found = boxes(shapes, tag, box, margin, half_widths(tables))
    else:
        found = search(shapes, tag, box, margin)
    walls = is_wall(kind)
    endless = np.nonzero(walls & np.isinf(radius))[0].astype(np.int32)
    particles = np.unique(kind[is_particle(kind)])
    there = device.to_device(family)
    if len(particles) <= 1 and len(endless) == walls.sum():
        # One kind of particles among walls without an end: all pairs are of one family.
        lists = [device.empty((0, 2), np.int32) for _ in range(count)]
        if len(particles):
            lists[family[particles[0], particles[0]]] = found
    else:
        key = device.empty(len(found), np.int32)
        kernel(family_row)(len(found), *tables[:4], device.upload(box), margin, found, there, key)
        lists = by_family(shapes, found, key, count)
    if len(endless):
        table = device.to_device(endless_walls(at_hand[0], at_hand[1], at_hand[2], endless))
        wall_tag = device.to_device(device.to_host(tag)[endless])
        many = device.empty(n, np.int32)
        chunk = device.chunk
        chunks = (n + chunk - 1) // chunk
        edges = (*box.length.tolist(), *box.inverse.tolist())
        arguments = chunk, shapes, tag, edges, float(margin), table, wall_tag
        search_walls = kernel(endless_row, grain=4)
        search_walls(chunks, *arguments, device.empty(0, np.int64), device.empty((0, 2), np.int32), many)
        start = primitives.scan(many)
        more = device.empty((int(device.to_host(start[-1:])[0]), 2), np.int32)
        search_walls(chunks, *arguments, start, more, many)
        more = device.renumber(more, endless)
        key = device.empty(len(more), np.int32)
        kernel(kinds_row)(len(more), shapes, more, there, key)
        for k, extra in enumerate(by_family(shapes, more, key, count)):
            lists[k] = device.concatenate(lists[k], extra) if len(lists[k]) else extra if len(extra) else lists[k]
    return lists

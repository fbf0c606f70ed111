"""From shapes to pairs: any broad phase for what has an end, and everyone against the walls that have none."""

import math

import numpy as np

from ..kernels import backend, primitives
from ..kernels.backend import kernel
from ..shapes.ellipsoid_form import half_widths
from ..tables import CYLINDER, ELLIPSOID, FIRST_WALL, MESH, NONE, POLYHEDRON, SPHERE, Box
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


def classify_row(p, bodies, shapes, parts, meshes, hulls, box, margin, pair, ball, solid, hull, surface, wall):
    """Tell pairs of spheres, with an ellipsoid, a polyhedron, a mesh, and particles near a wall; drop everything else."""
    a, b = pair[p, 0], pair[p, 1]
    kind_a, kind_b = shapes.kind[a], shapes.kind[b]
    free_a, free_b = kind_a < FIRST_WALL, kind_b < FIRST_WALL
    balls = kind_a == SPHERE and kind_b == SPHERE
    ball[p] = 1 if balls else 0
    particles = free_a and free_b
    meshed = kind_a == MESH or kind_b == MESH
    edged = kind_a == POLYHEDRON or kind_b == POLYHEDRON
    solid[p] = 1 if particles and not (balls or edged or meshed) else 0
    hull[p] = 1 if particles and edged and not meshed else 0
    surface[p] = 1 if particles and meshed else 0
    near = 0
    if free_a != free_b:
        s, w = (a, b) if free_a else (b, a)
        near = 1 if wall_near(s, w, bodies, shapes, parts, meshes, box, shapes.radius[s] + margin) else 0
    wall[p] = near


def split_row(
    p,
    shapes,
    pair,
    ball_start,
    solid_start,
    hull_start,
    surface_start,
    wall_start,
    balls,
    solids,
    polyhedra,
    meshed,
    walls,
):
    """Copy a pair to the list it belongs to; with a wall, the particle comes first."""
    a, b = pair[p, 0], pair[p, 1]
    if ball_start[p + 1] > ball_start[p]:
        balls[ball_start[p], 0] = a
        balls[ball_start[p], 1] = b
    if solid_start[p + 1] > solid_start[p]:
        solids[solid_start[p], 0] = a
        solids[solid_start[p], 1] = b
    if hull_start[p + 1] > hull_start[p]:
        polyhedra[hull_start[p], 0] = a
        polyhedra[hull_start[p], 1] = b
    if surface_start[p + 1] > surface_start[p]:
        meshed[surface_start[p], 0] = a
        meshed[surface_start[p], 1] = b
    if wall_start[p + 1] > wall_start[p]:
        swap = shapes.kind[a] >= FIRST_WALL
        walls[wall_start[p], 0] = b if swap else a
        walls[wall_start[p], 1] = a if swap else b


def endless_row(c, chunk, centre, radius, kind, tag, edges, margin, walls, wall_tag, start, pairs, count):
    """Pairs of one chunk of particles with the walls that have no end: counted, or written where start says.

    walls (w,8): a point of the wall, its axis, the radius of a cylinder (0 for a plane), +1 hollow or -1 solid.
    """
    for s in range(c * chunk, min(len(radius), (c + 1) * chunk)):
        found = 0
        if NONE < kind[s] < FIRST_WALL:
            reach = radius[s] + margin
            for w in range(len(walls)):
                x = image(centre[s, 0] - walls[w, 0], edges[0], edges[3])
                y = image(centre[s, 1] - walls[w, 1], edges[1], edges[4])
                z = image(centre[s, 2] - walls[w, 2], edges[2], edges[5])
                height = x * walls[w, 3] + y * walls[w, 4] + z * walls[w, 5]
                if walls[w, 6] == 0.0:
                    near = height <= reach
                else:
                    across = math.sqrt(max(0.0, x * x + y * y + z * z - height * height))
                    near = walls[w, 7] * (walls[w, 6] - across) <= reach
                if near and tag[s] != wall_tag[w]:
                    if len(start) > 0:
                        pairs[start[s] + found, 0] = s
                        pairs[start[s] + found, 1] = w
                    found += 1
        if len(start) == 0:
            count[s] = found


def endless_walls(bodies, shapes, parts, rows):
    """What `endless_row` needs to know of the walls in these rows of Shapes: (w,8)."""
    body, part = shapes.body[rows], shapes.part[rows]
    table = np.zeros((len(rows), 8))
    for k in range(len(rows)):
        q, size = bodies.orientation[body[k]], bodies.scale[body[k]]
        table[k, :3] = bodies.position[body[k]] + size * np.array(turned(q, parts.offset[part[k]]))
        table[k, 3:6] = turned(q, parts.axis[part[k]])
        if parts.kind[part[k]] == CYLINDER:
            table[k, 6], table[k, 7] = parts.size[part[k], 0] * size, parts.size[part[k], 2]
    return table


def turned(q, v):
    """Vector v turned by quaternion q, for a few vectors outside kernels."""
    w, a, b, c = q
    x, y, z = v
    t, u, s = 2.0 * (b * z - c * y), 2.0 * (c * x - a * z), 2.0 * (a * y - b * x)
    return (x + w * t + b * s - c * u, y + w * u + c * t - a * s, z + w * s + a * u - b * t)


def find_pairs(tables, tag, box, margin, search, host=None):
    """Pairs whose surfaces may be nearer than margin [m], as rows of Shapes.

    host: the tables as NumPy arrays, if `tables` are on another device; of these only walls must be up to date.
    Returns spheres with spheres (p,2), pairs with an ellipsoid (q,2), pairs with a polyhedron (h,2), with a
    triangulated particle (m,2), the lower number first, and particles with walls (r,2), the particle first.
    """
    device = backend.DEVICE[-1]
    shapes = tables[1]
    n = len(shapes.radius)
    at_hand = tables if host is None else host
    kind, radius = at_hand[1].kind, at_hand[1].radius
    if search is boxes and (kind == ELLIPSOID).any():
        balls = boxes(shapes, tag, box, margin, half_widths(tables))
    else:
        balls = search(shapes, tag, box, margin)
    solids, polyhedra, meshed, walls = (device.empty((0, 2), np.int32) for _ in range(4))
    is_wall = kind >= FIRST_WALL
    endless = np.nonzero(is_wall & np.isinf(radius))[0].astype(np.int32)
    only_balls = not ((kind > SPHERE) & np.isfinite(radius)).any()
    if not (kind == SPHERE).any() and len(endless) == is_wall.sum():
        # One kind of particles alone: all pairs are of one sort.
        if (kind == MESH).any():
            balls, meshed = meshed, balls
        elif (kind == POLYHEDRON).any():
            balls, polyhedra = polyhedra, balls
        else:
            balls, solids = solids, balls
    elif not only_balls:
        p = len(balls)
        flags = [device.empty(p, np.int8) for _ in range(5)]
        kernel(classify_row)(p, *tables, device.upload(box), margin, balls, *flags)
        starts = [primitives.scan(flag) for flag in flags]
        mixed = balls
        lists = [device.empty((int(device.to_host(s[-1:])[0]), 2), np.int32) for s in starts]
        kernel(split_row)(p, shapes, mixed, *starts, *lists)
        balls, solids, polyhedra, meshed, walls = lists
    if len(endless):
        table = device.to_device(endless_walls(*at_hand[:3], endless))
        wall_tag = device.to_device(device.to_host(tag)[endless])
        count = device.empty(n, np.int32)
        chunk = device.chunk
        chunks = (n + chunk - 1) // chunk
        edges = (*box.length.tolist(), *box.inverse.tolist())
        arguments = chunk, shapes.centre, shapes.radius, shapes.kind, tag, edges, float(margin), table, wall_tag
        search_walls = kernel(endless_row, grain=4)
        search_walls(chunks, *arguments, device.empty(0, np.int64), walls, count)
        start = primitives.scan(count)
        more = device.empty((int(device.to_host(start[-1:])[0]), 2), np.int32)
        search_walls(chunks, *arguments, start, more, count)
        more = device.renumber(more, endless)
        walls = device.concatenate(walls, more)
    return balls, solids, polyhedra, meshed, walls

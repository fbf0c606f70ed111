"""From shapes to pairs: any broad phase for what has an end, and everyone against the walls that have none."""

import numpy as np

from .. import backend, primitives
from ..backend import kernel
from ..tables import SPHERE, Box
from .all_pairs import all_pairs
from .bins import bins
from .near import smooth_near, wall_near

BROAD = {"bins": bins, "all-pairs": all_pairs}


def periodic_box(scene):
    """The periodic box of a scene as a table."""
    length, low = np.zeros(3), np.zeros(3)
    if any(scene.periodic):
        low, high = np.array(scene.world[0]), np.array(scene.world[1])
        length = np.where(scene.periodic, high - low, 0.0)
    inverse = np.divide(1.0, length, out=np.zeros(3), where=length > 0.0)
    return Box(low, length, inverse, bool(any(scene.periodic)))


def classify_row(p, bodies, shapes, parts, meshes, box, margin, pair, ball, wall):
    """Tell pairs of spheres from spheres near a wall; everything else is dropped."""
    a, b = pair[p, 0], pair[p, 1]
    ball_a, ball_b = shapes.kind[a] == SPHERE, shapes.kind[b] == SPHERE
    ball[p] = 1 if ball_a and ball_b else 0
    near = 0
    if ball_a != ball_b:
        s, w = (a, b) if ball_a else (b, a)
        near = 1 if wall_near(s, w, bodies, shapes, parts, meshes, box, shapes.radius[s] + margin) else 0
    wall[p] = near


def split_row(p, shapes, pair, ball_start, wall_start, balls, walls):
    """Copy a pair to the list it belongs to; with a wall, the sphere comes first."""
    a, b = pair[p, 0], pair[p, 1]
    if ball_start[p + 1] > ball_start[p]:
        balls[ball_start[p], 0] = a
        balls[ball_start[p], 1] = b
    if wall_start[p + 1] > wall_start[p]:
        swap = shapes.kind[a] != SPHERE
        walls[wall_start[p], 0] = b if swap else a
        walls[wall_start[p], 1] = a if swap else b


def endless_row(s, bodies, shapes, parts, tag, box, margin, endless, start, walls, count):
    """Pairs of one sphere with the walls that have no end: counted, or written where start says."""
    found = 0
    if shapes.kind[s] == SPHERE:
        for k in range(len(endless)):
            w = endless[k]
            if tag[s] != tag[w] and smooth_near(s, w, bodies, shapes, parts, box, shapes.radius[s] + margin):
                if len(start) > 0:
                    walls[start[s] + found, 0] = s
                    walls[start[s] + found, 1] = w
                found += 1
    if len(start) == 0:
        count[s] = found


def find_pairs(tables, tag, box, margin, search):
    """Pairs whose surfaces may be nearer than margin [m], as rows of Shapes.

    Returns spheres with spheres (p,2), the lower number first, and spheres with walls (q,2), the sphere first.
    """
    device = backend.DEVICE[-1]
    bodies, shapes, parts, meshes = tables
    n = len(shapes.radius)
    balls = search(shapes, tag, box, margin)
    walls = device.empty((0, 2), np.int32)
    kind, radius = device.to_host(shapes.kind), device.to_host(shapes.radius)
    is_wall = kind > SPHERE
    if not is_wall.any():
        return balls, walls
    endless = np.nonzero(is_wall & np.isinf(radius))[0].astype(np.int32)
    if len(endless) < is_wall.sum():
        p = len(balls)
        ball, wall = device.empty(p, np.int8), device.empty(p, np.int8)
        kernel(classify_row)(p, *tables, box, margin, balls, ball, wall)
        ball_start, wall_start = primitives.scan(ball), primitives.scan(wall)
        mixed = balls
        balls = device.empty((int(device.to_host(ball_start[-1:])[0]), 2), np.int32)
        walls = device.empty((int(device.to_host(wall_start[-1:])[0]), 2), np.int32)
        kernel(split_row)(p, shapes, mixed, ball_start, wall_start, balls, walls)
    if len(endless):
        endless = device.to_device(endless)
        count = device.empty(n, np.int32)
        arguments = bodies, shapes, parts, tag, box, margin, endless
        kernel(endless_row)(n, *arguments, device.empty(0, np.int64), walls, count)
        start = primitives.scan(count)
        more = device.empty((int(device.to_host(start[-1:])[0]), 2), np.int32)
        kernel(endless_row)(n, *arguments, start, more, count)
        walls = device.concatenate(walls, more)
    return balls, walls

"""Is there room for a body here? The ball around it is tried against the balls around bodies that are already placed and against walls; where
balls meet and bodies are not balls, their true shapes are looked at, see `solids`.

The kernels are sequential on purpose: which ball is placed depends on all balls placed before.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from ..kernels.backend import within
from ..kernels.reached import stored
from ..kernels.vec import load
from ..tables import is_particle, is_wall, rows_in
from .solids import above_plane, clear_of_rod, clear_of_triangle, items_apart, within_shell


class Balls(NamedTuple):
    """Balls in cell lists, one list per size class, so that small ones do not crowd the cells of large ones."""

    centre: np.ndarray  # (b,3) [m]; known balls first, then a slot for each ball to be placed
    radius: np.ndarray  # (b,) [m]
    level: np.ndarray  # (b,) int64, size class: radii of a class differ by less than a factor of two
    following: np.ndarray  # (b,) int64, next ball in the same cell, -1 at the end
    largest: np.ndarray  # (l,) [m], upper limit of the radii in the class
    low: np.ndarray  # (l,3) [m], corner of the cells
    edge: np.ndarray  # (l,) [m]
    cells: np.ndarray  # (l,3) int64
    start: np.ndarray  # (l,) int64, first cell of the class in `head`
    head: np.ndarray  # (k,) int64, first ball in the cell, -1 if none


class Walls(NamedTuple):
    """The walls that matter inside a box, in world axes; triangles by the cells of the box that they reach."""

    plane_point: np.ndarray  # (p,3) [m]
    plane_normal: np.ndarray  # (p,3)
    cylinder_point: np.ndarray  # (c,3) [m]
    cylinder_axis: np.ndarray  # (c,3)
    cylinder_size: np.ndarray  # (c,3) [m], radius, half length, +1 hollow or -1 solid
    corner: np.ndarray  # (t,3,3) [m]
    low: np.ndarray  # (3,) [m], corner of the cells
    edge: np.ndarray  # (1,) [m]
    cells: np.ndarray  # (3,) int64
    start: np.ndarray  # (k+1,) int64, into member
    member: np.ndarray  # rows of corner


def rotate(orientation, vector):
    """Vectors (n,3) turned by unit quaternions (n,4); either may have one row for all."""
    w, u = orientation[:, :1], orientation[:, 1:]
    t = 2.0 * np.cross(u, vector)
    return vector + w * t + np.cross(u, t)


def stack_balls(low, high, centre, radius, new_radius):
    """Balls for the box low..high: known ones, and empty slots for new ones inside it."""
    known = len(radius)
    centre = np.concatenate([centre, np.zeros((len(new_radius), 3))])
    radius = np.concatenate([radius, new_radius])
    if len(radius) == 0:
        return Balls(centre, radius, *_empty_levels())
    classes, level = np.unique(np.floor(np.log2(radius.max() / radius)).astype(np.int64), return_inverse=True)
    largest = np.array([radius[level == k].max() for k in range(len(classes))])
    count = np.bincount(level, minlength=len(classes))
    edge, corner, cells = np.empty(len(classes)), np.empty((len(classes), 3)), np.empty((len(classes), 3), np.int64)
    for k, size in enumerate(largest):
        corner[k] = low - size
        span = high - low + 2.0 * size
        # A few balls in a wide box must not cost millions of empty cells.
        most = 4.0 * count[k] + 4096.0
        edge[k], cells[k] = _cells(span, max(2.0 * size, (span.prod() / most) ** (1.0 / 3.0)), 8.0 * most)
    total = cells.prod(axis=1)
    start = np.cumsum(total) - total
    balls = Balls(
        centre=centre,
        radius=radius,
        level=level.reshape(-1).astype(np.int64),
        following=np.full(len(radius), -1, dtype=np.int64),
        largest=largest,
        low=corner,
        edge=edge,
        cells=cells,
        start=start,
        head=np.full(int(total.sum()), -1, dtype=np.int64),
    )
    _put_first(known, balls)
    return balls


def _cells(span, edge, most):
    """Edge [m] and numbers (3,) of the cells over a box of this span (3,) [m]: those of the given edge, or larger ones where
    that would be more than `most`, as in a flat or thin box."""
    while np.prod(np.floor(span / edge) + 1.0) > most:
        edge *= 2.0
    return edge, np.floor(span / edge).astype(np.int64) + 1


def _empty_levels():
    none = np.zeros(0, dtype=np.int64)
    return none, none, np.zeros(0), np.zeros((0, 3)), np.zeros(0), np.zeros((0, 3), dtype=np.int64), none, none


class Known(NamedTuple):
    """Particles that are already there: the balls around their shapes, and what is in them, rows of Shapes."""

    centre: np.ndarray  # (k,3) [m], with periodic images
    radius: np.ndarray  # (k,) [m]
    shape: np.ndarray  # (k,) int64


def known_balls(shapes, low, high, span):
    """All particles among the shapes, with the periodic images that may reach the box low..high, as Known.

    span (3,) [m]: length of the world along its periodic axes, 0 elsewhere.
    """
    shape = np.flatnonzero(is_particle(shapes.kind))
    centre, radius = shapes.centre[shape], shapes.radius[shape]
    for axis in range(3):
        if span[axis] > 0.0:
            step = np.zeros(3)
            step[axis] = span[axis]
            centre = np.concatenate([centre, centre - step, centre + step])
            radius, shape = np.tile(radius, 3), np.tile(shape, 3)
            near = (centre[:, axis] + radius > low[axis]) & (centre[:, axis] - radius < high[axis])
            centre, radius, shape = centre[near], radius[near], shape[near]
    nearest = np.clip(centre, low, high)
    near = np.einsum("ij,ij->i", centre - nearest, centre - nearest) < radius**2
    return Known(centre[near], radius[near], shape[near])


def stack_walls(bodies, shapes, parts, meshes, low, high, reach):
    """Walls of a scene for balls of radius up to `reach` [m] inside the box low..high."""
    orientation = bodies.orientation[shapes.body]
    scale = bodies.scale[shapes.body]
    triangle = rows_in("meshes", shapes.kind, parts.feature[shapes.part])
    smooth = is_wall(shapes.kind) & (triangle < 0)
    bent = parts.size[shapes.part, 0] > 0.0  # a plane has no radius

    def chosen(mask):
        rows = np.flatnonzero(mask)
        return rows, np.ascontiguousarray(rotate(orientation[rows], parts.axis[shapes.part[rows]]))

    planes, normal = chosen(smooth & ~bent)
    cylinders, axis = chosen(smooth & bent)
    size = parts.size[shapes.part[cylinders]].copy()
    size[:, :2] *= scale[cylinders, None]
    rows = np.flatnonzero(triangle >= 0)
    corner = meshes.vertex[meshes.triangle[triangle[rows]]]
    corner = corner * scale[rows, None, None]
    for k in range(3):
        corner[:, k] = rotate(orientation[rows], corner[:, k]) + bodies.position[shapes.body[rows]]
    near = np.all((corner.min(axis=1) - reach < high) & (corner.max(axis=1) + reach > low), axis=1)
    corner = np.ascontiguousarray(corner[near])
    edge = max(2.0 * reach, float((high - low).prod() / 200_000) ** (1.0 / 3.0))
    edge, cells = _cells(high - low, edge, 1_600_000)
    if len(corner):
        start, member = _bin_triangles(corner, low, edge, cells, reach)
    else:  # nothing to compile for
        start, member = np.zeros(int(cells.prod()) + 1, np.int64), np.zeros(0, np.int64)
    return Walls(
        plane_point=np.ascontiguousarray(shapes.centre[planes]),
        plane_normal=normal,
        cylinder_point=np.ascontiguousarray(shapes.centre[cylinders]),
        cylinder_axis=axis,
        cylinder_size=size,
        corner=corner,
        low=low,
        edge=np.array([edge]),
        cells=cells,
        start=start,
        member=member,
    )


def no_walls(low):
    """Walls where there are none."""
    none = np.zeros((0, 3))
    index = np.zeros(0, dtype=np.int64)
    cells = np.ones(3, dtype=np.int64)
    return Walls(
        none, none, none, none, none, np.zeros((0, 3, 3)), low, np.ones(1), cells, np.zeros(2, np.int64), index
    )


@within
def _cell(balls, level, x, y, z):
    """Row of `head` for a centre; centres on the far rim count to the last cell."""
    edge = balls.edge[level]
    i = min(max(int((x - balls.low[level, 0]) / edge), 0), balls.cells[level, 0] - 1)
    j = min(max(int((y - balls.low[level, 1]) / edge), 0), balls.cells[level, 1] - 1)
    k = min(max(int((z - balls.low[level, 2]) / edge), 0), balls.cells[level, 2] - 1)
    return balls.start[level] + (k * balls.cells[level, 1] + j) * balls.cells[level, 0] + i


@within
def _put(slot, balls):
    cell = _cell(balls, balls.level[slot], balls.centre[slot, 0], balls.centre[slot, 1], balls.centre[slot, 2])
    balls.following[slot] = balls.head[cell]
    balls.head[cell] = slot


@stored()
def _put_first(count, balls):
    for slot in range(count):
        _put(slot, balls)


@within
def _meets_member(x, y, z, reach, cell, balls, extent, slot, keep):
    other = balls.head[cell]
    while other >= 0:
        dx, dy, dz = x - balls.centre[other, 0], y - balls.centre[other, 1], z - balls.centre[other, 2]
        least = reach + extent[other]
        if least > 0.0 and dx * dx + dy * dy + dz * dz < least * least:
            if keep is None:  # noqa: SIM114  (numba leaves out the other branch where this is known)
                return True
            elif not items_apart(keep.solids, keep.items, slot, other, (-dx, -dy, -dz)):
                return True
        other = balls.following[other]
    return False


@within
def _meets_ball(x, y, z, reach, balls, extent, slot, keep):
    """extent (b,) [m]: radius of each ball; slot: whose body it is that is tried, by its true shape unless keep is None."""
    # Most points are refused by a ball in their own cell: looking there first saves half of the time.
    for level in range(len(balls.edge)):
        if _meets_member(x, y, z, reach, _cell(balls, level, x, y, z), balls, extent, slot, keep):
            return True
    for level in range(len(balls.edge)):
        far = reach + balls.largest[level]
        if far <= 0.0:
            continue
        edge = balls.edge[level]
        nx, ny, nz = balls.cells[level, 0], balls.cells[level, 1], balls.cells[level, 2]
        dx, dy, dz = x - balls.low[level, 0], y - balls.low[level, 1], z - balls.low[level, 2]
        for k in range(max(int((dz - far) / edge), 0), min(int((dz + far) / edge), nz - 1) + 1):
            for j in range(max(int((dy - far) / edge), 0), min(int((dy + far) / edge), ny - 1) + 1):
                for i in range(max(int((dx - far) / edge), 0), min(int((dx + far) / edge), nx - 1) + 1):
                    cell = balls.start[level] + (k * ny + j) * nx + i
                    if _meets_member(x, y, z, reach, cell, balls, extent, slot, keep):
                        return True
    return False


@within
def _triangle_distance(px, py, pz, corner):
    """Distance of a point from a triangle: the height over its face if the foot lies inside, else that of an edge."""
    ux, uy, uz = corner[1, 0] - corner[0, 0], corner[1, 1] - corner[0, 1], corner[1, 2] - corner[0, 2]
    vx, vy, vz = corner[2, 0] - corner[0, 0], corner[2, 1] - corner[0, 1], corner[2, 2] - corner[0, 2]
    nx, ny, nz = uy * vz - uz * vy, uz * vx - ux * vz, ux * vy - uy * vx
    size = math.sqrt(nx * nx + ny * ny + nz * nz)
    inside = size > 0.0
    least = math.inf
    for k in range(3):
        m = (k + 1) % 3
        ex, ey, ez = corner[m, 0] - corner[k, 0], corner[m, 1] - corner[k, 1], corner[m, 2] - corner[k, 2]
        dx, dy, dz = px - corner[k, 0], py - corner[k, 1], pz - corner[k, 2]
        cx, cy, cz = ny * ez - nz * ey, nz * ex - nx * ez, nx * ey - ny * ex
        if cx * dx + cy * dy + cz * dz < 0.0:
            inside = False
        length = ex * ex + ey * ey + ez * ez
        t = min(max((ex * dx + ey * dy + ez * dz) / length, 0.0), 1.0) if length > 0.0 else 0.0
        least = min(least, (dx - t * ex) ** 2 + (dy - t * ey) ** 2 + (dz - t * ez) ** 2)
    if inside:
        return abs(nx * (px - corner[0, 0]) + ny * (py - corner[0, 1]) + nz * (pz - corner[0, 2])) / size
    return math.sqrt(least)


@within
def _meets_wall(x, y, z, radius, slack, walls, slot, keep):
    axis: Any  # a number at planes, a vector at cylinders
    reach = radius - slack
    for k in range(len(walls.plane_point)):
        height = 0.0
        for axis, value in enumerate((x, y, z)):
            height += walls.plane_normal[k, axis] * (value - walls.plane_point[k, axis])
        if height < reach:
            if keep is None:
                return True
            else:
                point = load(walls.plane_point, k)
                d = (x - point[0], y - point[1], z - point[2])
                if not above_plane(keep.solids, keep.items, slot, d, load(walls.plane_normal, k)):
                    return True
    for k in range(len(walls.cylinder_point)):
        dx, dy, dz = x - walls.cylinder_point[k, 0], y - walls.cylinder_point[k, 1], z - walls.cylinder_point[k, 2]
        ax, ay, az = walls.cylinder_axis[k, 0], walls.cylinder_axis[k, 1], walls.cylinder_axis[k, 2]
        along = dx * ax + dy * ay + dz * az
        out = math.sqrt((dx - along * ax) ** 2 + (dy - along * ay) ** 2 + (dz - along * az) ** 2)
        beyond = abs(along) - walls.cylinder_size[k, 1]
        out -= walls.cylinder_size[k, 0]
        if walls.cylinder_size[k, 2] < 0.0:
            distance = math.hypot(max(beyond, 0.0), max(out, 0.0)) + min(max(beyond, out), 0.0)
        elif beyond <= -slack:
            distance = -out  # a hollow shell is full of matter outside, as a plane is behind
        elif beyond <= 0.0:
            distance = abs(out)
        else:
            distance = math.hypot(beyond, out)
        if distance < reach:
            if keep is None:
                return True
            else:
                axis, radial, half = (ax, ay, az), walls.cylinder_size[k, 0], walls.cylinder_size[k, 1]
                if walls.cylinder_size[k, 2] > 0.0:
                    if not within_shell(keep.solids, keep.items, slot, (dx, dy, dz), axis, radial):
                        return True
                elif not clear_of_rod(keep, slot, (dx, dy, dz), axis, radial, half):
                    return True
    if len(walls.corner) > 0 and reach > 0.0:
        edge = walls.edge[0]
        i = min(max(int((x - walls.low[0]) / edge), 0), walls.cells[0] - 1)
        j = min(max(int((y - walls.low[1]) / edge), 0), walls.cells[1] - 1)
        k = min(max(int((z - walls.low[2]) / edge), 0), walls.cells[2] - 1)
        cell = (k * walls.cells[1] + j) * walls.cells[0] + i
        for m in range(walls.start[cell], walls.start[cell + 1]):
            if _triangle_distance(x, y, z, walls.corner[walls.member[m]]) < reach:
                if keep is None:  # noqa: SIM114
                    return True
                elif not clear_of_triangle(keep, slot, (x, y, z), walls.member[m]):
                    return True
    return False


@stored()
def _bin_triangles(corner, low, edge, cells, reach):
    """Rows of the triangles that come within `reach` of each cell: counted, summed up, then filled in."""
    start = np.zeros(cells[0] * cells[1] * cells[2] + 1, dtype=np.int64)
    member = np.zeros(0, dtype=np.int64)
    first = np.zeros(3, dtype=np.int64)
    last = np.zeros(3, dtype=np.int64)
    far = reach + 0.5 * math.sqrt(3.0) * edge
    for filling in range(2):
        for t in range(len(corner)):
            for axis in range(3):
                least = min(corner[t, 0, axis], corner[t, 1, axis], corner[t, 2, axis]) - reach - low[axis]
                most = max(corner[t, 0, axis], corner[t, 1, axis], corner[t, 2, axis]) + reach - low[axis]
                first[axis] = min(max(int(least / edge), 0), cells[axis] - 1)
                last[axis] = min(max(int(most / edge), 0), cells[axis] - 1)
            for k in range(first[2], last[2] + 1):
                for j in range(first[1], last[1] + 1):
                    for i in range(first[0], last[0] + 1):
                        x, y, z = low[0] + (i + 0.5) * edge, low[1] + (j + 0.5) * edge, low[2] + (k + 0.5) * edge
                        if _triangle_distance(x, y, z, corner[t]) <= far:
                            cell = (k * cells[1] + j) * cells[0] + i
                            if filling:
                                start[cell] -= 1
                                member[start[cell]] = t
                            else:
                                start[cell] += 1
        if not filling:
            start = np.cumsum(start)
            member = np.zeros(start[-1], dtype=np.int64)
    return start, member


@stored()
def clear(point, radius, slack, walls, balls, extent):
    """Mask of the points (m,3) where a ball of the given radius (m,) [m] touches nothing; extent (b,) [m]: radii of the other balls.

    With `slack` [m], a point is clear unless the ball is blocked everywhere within that distance of the point.
    """
    result = np.empty(len(point), dtype=np.bool_)
    for m in range(len(point)):
        x, y, z = point[m, 0], point[m, 1], point[m, 2]
        result[m] = not (
            _meets_wall(x, y, z, radius[m], slack, walls, -1, None)
            or _meets_ball(x, y, z, radius[m] - slack, balls, extent, -1, None)
        )
    return result


@stored()
def clear_of_all(point, slot, radius, walls, balls, keep):
    """Mask of the points (m,3) where the body of this slot, in a ball of this radius [m], touches nothing."""
    result = np.empty(len(point), dtype=np.bool_)
    for m in range(len(point)):
        x, y, z = point[m, 0], point[m, 1], point[m, 2]
        result[m] = not (
            _meets_ball(x, y, z, radius, balls, balls.radius, slot, keep)
            or _meets_wall(x, y, z, radius, 0.0, walls, slot, keep)
        )
    return result


@stored()
def insert(point, owner, allowed, first, walls, balls, placed, keep):
    """Try the points (m,3) in order, each for the new ball owner[m]; the first that is clear becomes its centre.

    first: slot of new ball 0 in `balls`; placed (n,) bool is written. keep: Keep of the bodies in these balls, or None where balls are
    what they are. Returns how many points were tried.
    """
    tried = 0
    for m in range(len(point)):
        ball = owner[m]
        if placed[ball]:
            continue
        tried += 1
        x, y, z = point[m, 0], point[m, 1], point[m, 2]
        slot = first + ball
        if not allowed[m] or _meets_ball(x, y, z, balls.radius[slot], balls, balls.radius, slot, keep):
            continue
        if _meets_wall(x, y, z, balls.radius[slot], 0.0, walls, slot, keep):
            continue
        balls.centre[slot, 0], balls.centre[slot, 1], balls.centre[slot, 2] = x, y, z
        _put(slot, balls)
        placed[ball] = True
    return tried

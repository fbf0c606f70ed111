"""Volume, centre of mass and inertia of a union of convex bodies that may overlap.

The sum over all bodies is exact. What is counted more than once comes off: of balls and of few polyhedra exactly, else
measured along parallel lines, which cut a convex body in one piece each. The lines are parallel to no face or axis that anybody
would choose, so that the length of the pieces has no jumps. With LINES a side the volume is off by at most 1e-4 of what overlaps
in the cases of `tests/unit/test_compound.py`, which are known exactly.
"""

from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from . import clump
from .hull import solid_properties
from .polyhedron import Polyhedron
from .sphere import Sphere

APART = 1e-9  # of the size of all: bodies that overlap by less touch
MOST = 2000  # intersections of polyhedra that are looked at; beyond, lines are quicker
LINES = 500  # along either side of the box around what overlaps
TILE = 200_000  # lines a time
# Columns: two directions across the lines, and theirs.
FRAME = np.linalg.qr(np.array([[0.61, 0.37, 0.70], [-0.45, 0.88, 0.13], [0.29, -0.57, 0.77]]))[0]


class Placed(NamedTuple):
    """A convex shape at its place."""

    shape: Any  # with `support`, `chords`, `volume` and `inertia`
    position: np.ndarray  # (3,) [m]
    turn: np.ndarray  # (3,3), turns its own axes

    def support(self, n):
        """How far it reaches along unit directions n (k,3): (k,) [m]."""
        return n @ self.position + self.shape.support(n @ self.turn)

    def chords(self, start, way):
        """Where lines are in it, see `Sphere.chords`."""
        return self.shape.chords((start - self.position) @ self.turn, way @ self.turn)

    def normals(self):
        """Directions (k,3) along which it may be parted from others."""
        return self.shape.hull.normal.T @ self.turn.T if isinstance(self.shape, Polyhedron) else np.zeros((0, 3))

    def moments(self):
        """Volume [m^3], first moments (3,) [m^4] and second moments (3,3) [m^5] about the origin."""
        volume, inertia = self.shape.volume, self.turn @ self.shape.inertia @ self.turn.T
        return bulk(volume, self.position, inertia)


def bulk(volume, centre, inertia):
    """Volume and moments about the origin of a body with this centre of mass (3,) and inertia per mass about it (3,3)."""
    second = 0.5 * np.trace(inertia) * np.eye(3) - inertia
    return np.concatenate([[volume], volume * centre, (volume * (second + np.outer(centre, centre))).reshape(-1)])


def union_properties(placed):
    """Volume [m^3], centre of mass (3,) [m] and inertia tensor per mass about it (3,3) [m^2] of a union of Placed."""
    total = sum(one.moments() for one in placed)
    for group in overlapping(placed):
        total = total - counted_twice([placed[k] for k in group])
    volume, mean = total[0], total[1:4] / total[0]
    second = total[4:].reshape(3, 3) / volume - np.outer(mean, mean)
    return float(volume), mean, np.trace(second) * np.eye(3) - second


def overlapping(placed):
    """Lists of the rows of two or more that hang together by overlaps."""
    from scipy.sparse.csgraph import connected_components

    grid = np.stack(np.meshgrid(*[(-1.0, 0.0, 1.0)] * 3, indexing="ij"), axis=-1).reshape(-1, 3)[14:]
    grid = grid / np.linalg.norm(grid, axis=1)[:, None]
    high = np.array([one.support(grid) for one in placed])
    low = np.array([-one.support(-grid) for one in placed])
    least = APART * float((high - low).max())
    meets = np.zeros((len(placed),) * 2, dtype=bool)
    for i, j in combinations(range(len(placed)), 2):
        if np.all((low[i] < high[j] - least) & (low[j] < high[i] - least)):
            one, two = placed[i], placed[j]
            way = two.position - one.position
            n = np.vstack([one.normals(), -two.normals(), way[None] if way.any() else grid[:1]])
            n = n / np.linalg.norm(n, axis=1)[:, None]
            meets[i, j] = np.all(one.support(n) + two.support(-n) > least)
    count, label = connected_components(meets, directed=False)
    groups = [np.flatnonzero(label == k).tolist() for k in range(count)]
    return [group for group in groups if len(group) > 1]


def counted_twice(group):
    """Volume and moments by which the sum over Placed that overlap is more than those of their union."""
    if all(isinstance(one.shape, Sphere) for one in group):
        centres, radii = np.array([one.position for one in group]), np.array([one.shape.radius for one in group])
        kept = clump.exposed_balls(centres, radii)
        return sum(one.moments() for one in group) - bulk(*clump.union_properties(centres[kept], radii[kept]))
    if all(isinstance(one.shape, Polyhedron) for one in group):
        found = intersections(group)
        if found is not None:
            return found
    return along_lines(group)


def intersections(group):
    """`counted_twice` of polyhedra by inclusion and exclusion; None if too many of them meet."""
    middle = np.mean([one.position for one in group], axis=0)
    size = max(np.linalg.norm(one.position - middle) + one.shape.hull.outer[0] for one in group)
    planes = []
    for one in group:
        normal = one.shape.hull.normal.T @ one.turn.T
        offset = one.shape.hull.offset + normal @ (one.position - middle)
        planes.append(np.column_stack([normal, -offset / size]))
    total, looked = np.zeros(13), 0
    level: list[tuple[tuple[int, ...], np.ndarray]] = [((k,), planes[k]) for k in range(len(group))]
    sign = 1.0
    while level:
        deeper = []
        for rows, faces in level:
            for k in range(rows[-1] + 1, len(group)):
                looked += 1
                if looked > MOST:
                    return None
                both = np.vstack([faces, planes[k]])
                moments = meeting_moments(both, size, middle)
                if moments is not None:
                    total += sign * moments
                    deeper.append(((*rows, k), both))
        level, sign = deeper, -sign
    return total


def meeting_moments(planes, size, middle):
    """Volume and moments of the body within planes (f,4), normal . x + offset <= 0, in units of size [m] about middle (3,); None if
    it is empty."""
    from scipy.optimize import linprog
    from scipy.spatial import ConvexHull, HalfspaceIntersection

    # The centre of the largest ball inside.
    most = linprog(
        [0, 0, 0, -1.0],
        A_ub=np.column_stack([planes[:, :3], np.ones(len(planes))]),
        b_ub=-planes[:, 3],
        bounds=[(None, None)] * 3 + [(0.0, None)],
    )
    if most.status != 0 or most.x[3] < APART:
        return None
    corners = HalfspaceIntersection(planes, most.x[:3]).intersections - most.x[:3]
    hull = ConvexHull(corners)
    triangles = hull.simplices.copy()
    corner = corners[triangles]
    inward = (
        np.einsum("ti,ti->t", np.cross(corner[:, 1] - corner[:, 0], corner[:, 2] - corner[:, 0]), hull.equations[:, :3])
        < 0.0
    )
    triangles[inward] = triangles[inward][:, ::-1]
    volume, centre, inertia = solid_properties(corners, triangles)
    return bulk(volume * size**3, middle + size * (most.x[:3] + centre), inertia * size**2)


def along_lines(group):
    """`counted_twice` of any bodies, measured along lines."""
    across, way = FRAME.T[:2], FRAME.T[2]
    high = np.array([one.support(across) for one in group])
    low = np.array([-one.support(-across) for one in group])
    lows, highs = [], []
    for i, j in combinations(range(len(group)), 2):
        a, b = np.maximum(low[i], low[j]), np.minimum(high[i], high[j])
        if (a < b).all():
            lows.append(a)
            highs.append(b)
    start, end = np.min(lows, axis=0), np.max(highs, axis=0)
    step = (end - start) / LINES
    x, y = (start[k] + step[k] * (np.arange(LINES) + 0.5) for k in range(2))
    total, rows = np.zeros(10), max(TILE // LINES // max(len(group) // 8, 1), 1)
    for first in range(0, LINES, rows):
        u, v = (side.reshape(-1) for side in np.meshgrid(x[first : first + rows], y, indexing="ij"))
        lines = u[:, None] * across[0] + v[:, None] * across[1]
        begin, stop = np.array([one.chords(lines, way) for one in group]).swapaxes(0, 1)
        meets = begin < stop
        several = np.flatnonzero(meets.sum(axis=0) > 1)
        u, v, begin, stop, meets = u[several], v[several], begin[:, several], stop[:, several], meets[:, several]
        begin, stop = np.where(meets, begin, np.inf), np.where(meets, stop, -np.inf)
        order = np.argsort(begin, axis=0, kind="stable")
        begin, stop = np.take_along_axis(begin, order, 0), np.take_along_axis(stop, order, 0)
        covered = np.maximum.accumulate(stop, axis=0)
        a, b = begin[1:], np.minimum(stop[1:], covered[:-1])
        a, b = np.where(a < b, a, 0.0), np.where(a < b, b, 0.0)
        zero, one, two = (b - a).sum(0), (0.5 * (b * b - a * a)).sum(0), ((b**3 - a**3) / 3.0).sum(0)
        total += [
            zero.sum(),
            u @ zero,
            v @ zero,
            one.sum(),
            u**2 @ zero,
            v**2 @ zero,
            two.sum(),
            (u * v) @ zero,
            u @ one,
            v @ one,
        ]
    total *= step.prod()
    second = np.array([[total[4], total[7], total[8]], [total[7], total[5], total[9]], [total[8], total[9], total[6]]])
    return np.concatenate([total[:1], FRAME @ total[1:4], (FRAME @ second @ FRAME.T).reshape(-1)])

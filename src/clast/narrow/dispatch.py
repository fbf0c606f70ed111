"""Which two kinds of shapes can touch, and in which family of pairs: what the neighbour list is sorted by.

Every particle meets every particle and every wall; adding a kind is a line in FAMILIES for each that it can meet.
"""

from typing import Any, NamedTuple

import numpy as np

from ..broad.near import ROUNDING
from ..kernels import backend, primitives
from ..kernels.backend import kernel
from ..tables import (
    CYLINDER,
    ELLIPSOID,
    KINDS,
    MESH,
    PLANE,
    POLYHEDRON,
    SPHERE,
    SUPERQUADRIC,
    TRIANGLE,
    Pairs,
    geometry_points,
)
from . import ellipsoid_polyhedron, ellipsoids, mesh_slots, polyhedra, round_walls, spheres, superquadrics

WALLS = (PLANE, CYLINDER, TRIANGLE)
OVERLAP = float(np.nextafter(0.0, -1.0))  # the margin of those that overlap: a gap of zero is none, but for two spheres
CLASSES = 16  # of listed pairs by how far apart they are
BATCH = 65536  # pairs that are looked at at a time where no list keeps them: their points stay in the cache
TRIANGLES = "brute"  # how triangles are measured unless said


class Rows(NamedTuple):
    """Pairs of a list, all of one family, of which contact points are found."""

    first: int
    length: int  # pairs


class Family(NamedTuple):
    """Pairs whose contact points are found by one kernel."""

    kinds: tuple  # pairs of kinds; of two particles in either order, walls second
    slots: int  # contact points that a pair can have, in the first of its slots; 0: as many as there are triangles near each other, anywhere
    shares: bool  # the points stand for one area of contact and share its stiffness; else each is an area of its own
    walls: bool = False  # of particles with walls
    find: Any = None  # (look, rows, margin [m]): writes the contact points of pairs; None for candidate triangles
    near: bool = False  # balls around shapes do not tell which pairs are near; their gap does


SPHERES = Family(((SPHERE, SPHERE),), 1, False, find=spheres.find_points)
ELLIPSOIDS = Family(((SPHERE, ELLIPSOID), (ELLIPSOID, ELLIPSOID)), 1, False, find=ellipsoids.find_points, near=True)
POLYHEDRA = Family(((SPHERE, POLYHEDRON), (POLYHEDRON, POLYHEDRON)), 4, True, find=polyhedra.find_points, near=True)
ELLIPSOID_POLYHEDRA = Family(((ELLIPSOID, POLYHEDRON),), 1, False, find=ellipsoid_polyhedron.find_points, near=True)
MESHES = Family(tuple((kind, MESH) for kind in (SPHERE, ELLIPSOID, POLYHEDRON, MESH, SUPERQUADRIC)), 0, True)
SUPERQUADRICS = Family(
    tuple((kind, SUPERQUADRIC) for kind in (SPHERE, ELLIPSOID, SUPERQUADRIC)),
    1,
    False,
    find=superquadrics.find_points,
    near=True,
)
SUPERQUADRIC_POLYHEDRA = Family(((POLYHEDRON, SUPERQUADRIC),), 1, False, find=superquadrics.find_hull_points, near=True)
ROUND_WALLS = Family(
    tuple((kind, wall) for kind in (SPHERE, ELLIPSOID) for wall in WALLS), 1, False, True, round_walls.find_points
)
POLYHEDRON_WALLS = Family(tuple((POLYHEDRON, wall) for wall in WALLS), 4, True, True, polyhedra.find_wall_points)
SUPERQUADRIC_WALLS = Family(
    tuple((SUPERQUADRIC, wall) for wall in WALLS), 1, False, True, superquadrics.find_wall_points
)
MESH_WALLS = Family(tuple((MESH, wall) for wall in WALLS), 0, True, True)

# In the order of the neighbour list: particles, spheres first, then walls.
FAMILIES = (
    *(SPHERES, ELLIPSOIDS, POLYHEDRA, ELLIPSOID_POLYHEDRA, SUPERQUADRICS, SUPERQUADRIC_POLYHEDRA, MESHES),
    *(ROUND_WALLS, POLYHEDRON_WALLS, SUPERQUADRIC_WALLS, MESH_WALLS),
)
PAIRS = {kinds: family for family in FAMILIES for pair in family.kinds for kinds in (pair, pair[::-1])}


def family_table():
    """Number of the family of two kinds, (k,k) int32; of kinds that do not touch the number of families.

    The last row and column are those of bodies without a shape, whose kind is -1.
    """
    table = np.full((max(KINDS) + 2,) * 2, len(FAMILIES), np.int32)
    for kinds, family in PAIRS.items():
        table[kinds] = FAMILIES.index(family)
    return table


FAMILY = family_table()


def families_of(parts):
    """The families of all pairs that shapes of these Parts can make."""
    kinds = np.unique(parts.kind).tolist()
    return {PAIRS[one, two] for one in kinds for two in kinds if (one, two) in PAIRS}


class Asked:
    """What is asked of shapes and walls, which never change, in every step, and answered once."""

    def __init__(self):
        self.made = {}

    def once(self, name, make):
        """What `make` gives, made at the first call."""
        if name not in self.made:
            self.made[name] = make()
        return self.made[name]


class Listed:
    """Pairs of one family, apart from the neighbour list of a simulation, and their contact points.

    This is how kernels see a list, and a State has the same members: there (tables where kernels run), pairs, points, spheres_count
    (pairs before the first slot); exact: gaps above zero are wanted, not only overlaps; keeps: slots know the last step; rough: only the least gap of
    each pair is asked for, in its first slot, and it may be too small.
    """

    spheres_count, keeps, rough = 0, False, False

    def __init__(self, field, pair, slots, before=None):
        """field: State, or Field, with the tables; pair (p,2): rows of Shapes; slots: of each pair, or (p,) of every one; before: Listed of
        as many pairs whose memory is used again."""
        self.once, self.there, self.device = field.once, field.there, field.device
        self.parts, self.meshes, self.hulls, self.ellipsoids = field.parts, field.meshes, field.hulls, field.ellipsoids
        self.box, self.edges, self.exact, self.chm = field.box, field.edges, field.exact, field.chm
        device, count = self.device, len(pair)
        if before is not None:
            self.pairs, self.points = before.pairs._replace(shape=pair), before.points
            return
        room = np.concatenate([[0], np.cumsum(np.broadcast_to(slots, count))]).astype(np.int64)
        none, unknown = device.zeros(0, np.int32), device.zeros(0, np.float64)
        self.pairs = Pairs(pair, none, device.to_device(room), none, none, none, unknown, unknown)
        self.points = geometry_points(count, int(room[-1]), device)


def all_of(look):
    """The Rows of a Listed."""
    return Rows(0, len(look.pairs.shape))


def near_pairs(state, family, pair):
    """Those of the pairs (p,2) of a family that are near enough to stay in the neighbour list of a State, and how far apart they are at the least
    (p,) [m]; None if that is not known. Those that touch come first, so that what is known of them stands side by side in memory.
    """
    device, known = state.device, family.near
    # Forces pass over pairs of spheres that are apart, many at a time, and see by themselves how far.
    if len(pair) == 0 or not (known or family is SPHERES and state.keeps and device is backend.CPU):
        return pair, None
    key, gap = device.empty(len(pair), np.int32), device.empty(len(pair), np.float64)
    per_class = CLASSES / state.margin if state.margin > 0.0 else 0.0
    for first in range(0, len(pair), BATCH):
        some, asked = pair[first : first + BATCH], (key[first : first + BATCH], gap[first : first + BATCH])
        if not known:
            about = state.there.rows, state.there.shapes.radius, some, state.edges
            kernel(spheres.apart_row)(len(some), *about, per_class, CLASSES, *asked)
            continue
        look = Listed(state, some, 1)
        look.rough = True
        family.find(look, all_of(look), state.margin)
        kernel(least_row)(len(some), per_class, ROUNDING * state.margin, look.pairs, look.points, *asked)
    start, order = primitives.group(key, CLASSES + 1)
    count = int(device.to_host(start)[CLASSES])
    kept, apart = device.empty((count, 2), np.int32), device.empty(count, np.float64)
    kernel(keep_row)(count, pair, gap, order, kept, apart)
    return kept, apart if known else None


def least_row(p, per_class, rounding, pairs, points, key, gap):
    """The least gap of a pair, less `rounding` [m]; key: its class, CLASSES if it has no contact points; per_class [1/m]."""
    least = points.gap[pairs.slot[p]]
    key[p] = CLASSES if points.count[p] == 0 else (min(int(least * per_class), CLASSES - 1) if least > 0.0 else 0)
    gap[p] = least - rounding


def keep_row(k, pair, gap, order, kept, apart):
    """Copy a pair that is kept."""
    kept[k, 0], kept[k, 1] = pair[order[k], 0], pair[order[k], 1]
    apart[k] = gap[order[k]]


def find_points(state, margin, narrow=TRIANGLES, tolerance=0.0):
    """Contact points with a gap up to margin [m] of all pairs of the neighbour list of a State that have slots, one kernel a family.

    narrow, tolerance: how triangles are measured. Returns which manifolds of triangulated particles have surfaces that cross (s,).
    """
    # First, because new candidates may move all slots.
    crossing = np.empty(0, int)
    if any(r.family.slots == 0 for r in state.ranges):
        crossing = mesh_slots.find_points(state, margin, narrow, tolerance)
    for r in state.ranges:
        if r.family.find is not None:
            r.family.find(state, Rows(r.first, r.length), margin)
    return crossing

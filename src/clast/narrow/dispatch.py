"""Which two kinds of shapes can touch, and in which family of pairs: what the neighbour list is sorted by.

Every particle meets every particle and every wall; adding a kind is a line in FAMILIES for each that it can meet.
"""

from typing import NamedTuple

import numpy as np

from ..kernels import primitives
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
BATCH = 65536  # pairs that are looked at at a time where no list keeps them: their points stay in the cache
TRIANGLES = "brute"  # how triangles are measured unless said


class Family(NamedTuple):
    """Pairs whose contact points are found by one kernel."""

    kinds: tuple  # pairs of kinds; of two particles in either order, walls second
    slots: int  # contact points that a pair can have; 0: as many as there are triangles near each other
    shares: bool  # the points stand for one area of contact and share its stiffness; else each is an area of its own
    walls: bool = False  # of particles with walls
    find: object = (
        None  # (look, first pair, pairs, margin [m]): writes their contact points; None for candidate triangles
    )
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
    (pairs before the first slot); exact: gaps above zero are wanted, not only overlaps; keeps: slots know the last step.
    """

    spheres_count, keeps = 0, False

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
        none = device.zeros(0, np.int32)
        self.pairs = Pairs(pair, none, device.to_device(room), none, none, none)
        self.points = geometry_points(count, int(room[-1]), device)


def near_pairs(state, family, pair):
    """Those of the pairs (p,2) of a family, in their order, that are near enough to stay in the neighbour list of a State."""
    if not family.near or len(pair) == 0:
        return pair
    device = state.device
    near = device.empty(len(pair), np.int8)
    for first in range(0, len(pair), BATCH):
        some = pair[first : first + BATCH]
        look = Listed(state, some, family.slots)
        family.find(look, 0, len(some), state.margin)
        kernel(near_row)(len(some), look.points.count, near[first : first + BATCH])
    start = primitives.scan(near)
    kept = device.empty((int(device.to_host(start[-1:])[0]), 2), np.int32)
    kernel(keep_row)(len(pair), pair, start, kept)
    return kept


def near_row(p, count, near):
    """Whether a pair has contact points."""
    near[p] = 1 if count[p] > 0 else 0


def keep_row(p, pair, start, kept):
    """Copy a pair that is kept."""
    if start[p + 1] > start[p]:
        kept[start[p], 0] = pair[p, 0]
        kept[start[p], 1] = pair[p, 1]


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
            r.family.find(state, r.first, r.length, margin)
    return crossing

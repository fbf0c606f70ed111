"""Which two kinds of shapes can touch, and in which family of pairs: what the neighbour list is sorted by.

Adding a pair of kinds is a line in FAMILIES; a scene with two kinds that have none is refused (`refuse_mixture`).
"""

from typing import NamedTuple

import numpy as np

from ..tables import CYLINDER, ELLIPSOID, KINDS, MESH, PLANE, POLYHEDRON, SPHERE, TRIANGLE
from . import ellipsoids, mesh_slots, polyhedra, round_walls

WALLS = (PLANE, CYLINDER, TRIANGLE)


class Family(NamedTuple):
    """Pairs whose contact points are found by one kernel."""

    kinds: tuple  # pairs of kinds; of two particles in either order, walls second
    slots: int  # contact points that a pair can have; 0: as many as there are triangles near each other
    shares: bool  # the points stand for one area of contact and share its stiffness; else each is an area of its own
    walls: bool = False  # of particles with walls
    find: object = None  # (state, first pair, pairs, edges): writes their contact points; None for candidate triangles
    near: object = (
        None  # (state, pairs) -> those near enough to stay in the list, where balls around shapes do not tell
    )


SPHERES = Family(((SPHERE, SPHERE),), 1, False)  # forces in one pass: `clast.dem.sphere_pairs`
ELLIPSOIDS = Family(
    ((SPHERE, ELLIPSOID), (ELLIPSOID, ELLIPSOID)), 1, False, find=ellipsoids.find_points, near=ellipsoids.near_pairs
)
POLYHEDRA = Family(
    ((SPHERE, POLYHEDRON), (POLYHEDRON, POLYHEDRON)), 4, True, find=polyhedra.find_points, near=polyhedra.near_pairs
)
MESHES = Family(((SPHERE, MESH), (MESH, MESH)), 0, True)
ROUND_WALLS = Family(
    tuple((kind, wall) for kind in (SPHERE, ELLIPSOID) for wall in WALLS), 1, False, True, round_walls.find_points
)
POLYHEDRON_WALLS = Family(tuple((POLYHEDRON, wall) for wall in WALLS), 4, True, True, polyhedra.find_wall_points)
MESH_WALLS = Family(tuple((MESH, wall) for wall in WALLS), 0, True, True)

# In the order of the neighbour list: particles, spheres first, then walls.
FAMILIES = (SPHERES, ELLIPSOIDS, POLYHEDRA, MESHES, ROUND_WALLS, POLYHEDRON_WALLS, MESH_WALLS)
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


def find_points(state, edges, narrow, tolerance):
    """Contact points of all pairs of the neighbour list of a State but spheres with spheres, one kernel a family.

    edges: lengths of the periodic box and their inverses; narrow, tolerance: how triangles are measured. Returns which
    manifolds of triangulated particles have surfaces that cross (s,).
    """
    # First, because new candidates may move all slots.
    crossing = np.empty(0, int)
    if any(r.family.slots == 0 for r in state.ranges):
        crossing = mesh_slots.find_points(state, narrow, tolerance)
    for r in state.ranges:
        if r.family.find is not None:
            r.family.find(state, r.first, r.length, edges)
    return crossing


def refuse_mixture(place, parts):
    """ValueError if the Parts of a scene have two kinds of particles whose contacts are not known."""
    kinds = [kind for kind in (SPHERE, ELLIPSOID, POLYHEDRON, MESH) if (parts.kind == kind).any()]
    for i, one in enumerate(kinds):
        for two in kinds[i + 1 :]:
            if (one, two) not in PAIRS:
                raise ValueError(f"{place}: {REFUSALS[one, two]}")


REFUSALS = {
    (ELLIPSOID, POLYHEDRON): (
        "ellipsoids and polyhedra cannot meet in one scene yet; make the ellipsoids polyhedra, "
        "for example clast.Polyhedron(ellipsoid.surface()[0]), or spheres or clumps"
    ),
    (ELLIPSOID, MESH): (
        "triangulated particles meet spheres, clumps and walls but no ellipsoids "
        "yet; make a mesh of them, for example clast.Mesh(*ellipsoid.surface())"
    ),
    (POLYHEDRON, MESH): (
        "triangulated particles meet spheres, clumps and walls but no polyhedra "
        "yet; make a mesh of them, for example clast.Mesh(*polyhedron.surface())"
    ),
}

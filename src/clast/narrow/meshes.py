"""Contacts of shapes of which one is a triangulated particle, for many pairs at once."""

import math

import numpy as np

from ..kernels.backend import kernel
from ..tables import CYLINDER, MESH, PLANE, TRIANGLE, is_wall
from .mesh_candidates import TRIANGLE_BITS, Candidates, find_candidates
from .mesh_distance import nearest_triangles
from .mesh_inside import contained
from .mesh_merge import merge_points
from .mesh_points import ALL, NEAREST, OUT, empty_measured, measure_candidates
from .mesh_pose import BALL, HALO, OVAL, least_length, make_setting, surface_rows
from .mesh_tree import BARE
from .order import come_second

TOLERANCE = 1e-8  # of distances, relative to the longest edge, where a method aims at one


def merge_row(i, manifold, near, start, measured, limit, kept):
    """Which candidates of one manifold stay."""
    merge_points(start[manifold[i]], start[manifold[i + 1]], measured, limit, near[i], kept)


def at_vertices(tables, pair):
    """Which pairs (c,2), the particle first, are with a plane or in a shell, where vertices touch: (c,) bool."""
    shapes, parts = tables[1], tables[2]
    kind, row = shapes.kind[pair[:, 1]], shapes.part[pair[:, 1]]
    return (kind == PLANE) | ((kind == CYLINDER) & (parts.size[row, 2] > 0.0))


def in_manifolds(shapes, pair, every):
    """Pairs with the particle before the wall, and which were swapped for that; an order in which those of a manifold stand side by side; first row of
    each. Two meshes stand in the order of their numbers, as in a simulation, whose bits are those of `find_contacts`; where the nearest points of all
    pairs are asked for (every), there is no simulation to agree with, and they stand in an order of their own, whoever is given first."""
    first, second = pair[:, 0], pair[:, 1]
    two = shapes.kind[first] == shapes.kind[second]
    later = come_second(shapes, pair) if every else shapes.number[first] > shapes.number[second]
    swapped = np.where(two, later, is_wall(shapes.kind[first]))
    pair = np.where(swapped[:, None], pair[:, ::-1], pair)
    first, second = pair[:, 0], pair[:, 1]
    # The triangles of a wall are one manifold with each particle; everything else is one by itself.
    sheet = shapes.kind[second] == TRIANGLE
    place = np.where(sheet, shapes.body[second], -1)
    order = np.lexsort((shapes.number[second], place, shapes.number[first]))
    pair, sheet, place = pair[order], sheet[order], place[order]
    same = sheet[1:] & (place[1:] == place[:-1]) & (pair[1:, 0] == pair[:-1, 0])
    manifold = np.append(np.nonzero(np.append(True, ~same))[0], len(pair)) if len(pair) else np.zeros(1)
    return np.ascontiguousarray(pair), swapped[order], order, manifold.astype(np.int32)


def nearest_candidates(tables, surfaces, pair, box):
    """One candidate for each pair of two meshes, the nearest triangles; for others all that there are."""
    two = (surface_rows(tables, surfaces, pair) >= 0).all(1)
    nearest = nearest_triangles(tables, surfaces, pair[two], box)
    if two.all():
        return Candidates(np.arange(len(pair) + 1), nearest.first, nearest.second)
    rest = find_candidates(make_setting(tables, surfaces, pair[~two], box), surfaces, math.inf, features=False)
    count = np.ones(len(pair), np.int64)
    count[~two] = np.diff(rest.start)
    start = np.concatenate([[0], np.cumsum(count)])
    mine = np.repeat(two, count)
    first, second = np.empty(len(mine), np.int32), np.empty(len(mine), np.int32)
    first[mine], second[mine] = nearest.first, nearest.second
    first[~mine], second[~mine] = rest.first, rest.second
    return Candidates(start, first, second)


def turn_round(tables, surfaces, pair, box, narrow):
    """The contact of pairs (p,2) of which one shape lies inside the other: the shortest way out, as far as the nearest triangles
    tell. Returns gap (p,), point (p,3), normal (p,3) and the triangles (p,) of each, of the first shape and of the second."""
    shapes = tables[1]
    candidates = nearest_candidates(tables, surfaces, pair, box)
    measured = empty_measured(len(candidates.first))
    setting = make_setting(tables, surfaces, pair, box)
    measure_candidates(setting, surfaces, candidates, narrow, TOLERANCE, measured, every=OUT)
    kept = np.empty(len(candidates.first), np.int8)
    each = np.arange(len(pair) + 1, dtype=np.int32)
    far = np.full(len(pair), np.inf)
    kernel(merge_row)(len(pair), each, far, candidates.start, measured, math.inf, kept)
    row = np.nonzero(kept)[0]
    pose = setting.pose
    ball = np.where(pose[:, OVAL] > 0.0, 0.0, pose[:, BALL])
    distance = measured.gap[row] + pose[:, HALO] + ball  # to the centre of a sphere, else to the surface
    toward = measured.normal[row]
    sign = np.where(shapes.kind[pair[:, 0]] == MESH, 1.0, -1.0)
    gap = -distance - ball - pose[:, HALO]
    point = measured.point[row] + (sign * ball)[:, None] * toward
    return gap, point, -toward, candidates.first[row], candidates.second[row] & TRIANGLE_BITS


def surface_points(field, pair, margin, narrow, tree=True):
    """Contact points of listed pairs (p,2), rows of Shapes, each with a triangulated particle, within the margin [m], the deepest of a
    pair first: how many (p,), point (c,3) [m], normal (c,3) from the first to the second, gap (c,) [m] and feature (c,), the
    triangle of the mesh as it was given, or its vertex at a plane or in a shell.

    margin=inf: one for each pair, the nearest. narrow: name of a method in `triangle_lanes.METHODS`.
    tree=False: all triangles of two meshes are measured.
    """
    tables, surfaces, box = field.tables, field.surfaces, field.box
    shapes, parts = tables[1:3]
    every = math.isinf(margin)
    pair, swapped, order, manifold = in_manifolds(shapes, pair, every)
    if every:
        manifold = np.arange(len(pair) + 1, dtype=np.int32)
    setting = make_setting(tables, surfaces, pair, box)
    if every and tree:
        candidates = nearest_candidates(tables, surfaces, pair, box)
    else:
        candidates = find_candidates(setting, surfaces, margin if tree else math.inf)
    count = len(candidates.first)
    measured, kept = empty_measured(count), np.zeros(count, np.int8)
    measure_candidates(setting, surfaces, candidates, narrow, TOLERANCE, measured, every=NEAREST if every else ALL)
    limit = math.inf if every else np.nextafter(margin, math.inf)
    near = (
        np.full(len(pair), np.inf) if every else least_length(tables, surfaces, pair[manifold[:-1]], surfaces.shortest)
    )
    kernel(merge_row)(len(manifold) - 1, manifold, near, candidates.start, measured, limit, kept)
    owner = np.repeat(np.arange(len(pair)), np.diff(candidates.start))
    row = np.nonzero(kept)[0]
    owner, gap, point, normal = owner[row], measured.gap[row], measured.point[row], measured.normal[row]
    # Of two meshes the triangle of the one that was given first.
    mesh_second = swapped & ~is_wall(shapes.kind[pair[:, 1]])
    feature = np.where(mesh_second[owner], candidates.second[row] & TRIANGLE_BITS, candidates.first[row])
    # Only of walls, before which the particle stands.
    vertices = surfaces.vertex_start[np.maximum(parts.feature[shapes.part[pair[owner, 0]]], 0)]
    on_vertex = (candidates.second[row] == BARE) & at_vertices(tables, pair[owner])
    feature = np.where(on_vertex, feature - vertices, surfaces.row[np.where(on_vertex, 0, feature)])
    held = np.nonzero(contained(tables, surfaces, pair, box))[0]
    # Where surfaces of triangles cross there is no inside; the centre of a round particle is one.
    crossed = np.unique(owner[measured.crossing[row] != 0])
    both = (surface_rows(tables, surfaces, pair[held]) >= 0).all(1)
    held = held[~(both & np.isin(held, crossed))]
    if len(held):
        out, where, way, triangle, other = turn_round(tables, surfaces, pair[held], box, narrow)
        rest = ~np.isin(owner, held)
        owner = np.concatenate([owner[rest], held])
        gap, point, normal = (
            np.concatenate([old[rest], new]) for old, new in ((gap, out), (point, where), (normal, way))
        )
        triangle = np.where(mesh_second[held], other, triangle)
        feature = np.concatenate([feature[rest], surfaces.row[triangle]])
    normal = np.where(swapped[owner][:, None], -normal, normal)
    # Back to the order of the list; the deepest first within a pair.
    owner = order[owner]
    sort = np.lexsort((gap, owner))
    return np.bincount(owner, minlength=len(pair)), point[sort], normal[sort], gap[sort], feature[sort].astype(np.int32)

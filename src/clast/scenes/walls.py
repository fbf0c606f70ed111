"""Walls that several scenes share."""

import itertools
import math

import numpy as np

from ..shapes import MeshWall, Plane, Quad


def add_funnel(scene, material, rims):
    """Four sides of quads through square rims, each (half width, height) [m], from the lowest to the highest."""
    for c, s in ((1, 0), (0, 1), (-1, 0), (0, -1)):
        for (below, z), (above, height) in itertools.pairwise(rims):
            side = [(below, -below, z), (below, below, z), (above, above, height), (above, -above, height)]
            scene.add(Quad([(c * x - s * y, s * x + c * y, z) for x, y, z in side]), material=material)


def add_box(scene, material, half):
    """A floor at z = 0 and four upright planes at a distance `half` [m] from the z axis."""
    scene.add(Plane(normal=(0.0, 0.0, 1.0)), material=material)
    for x, y in ((1.0, 0.0), (-1.0, 0.0), (0.0, 1.0), (0.0, -1.0)):
        scene.add(Plane(normal=(x, y, 0.0)), position=(-x * half, -y * half, 0.0), material=material)


def open_box(half, height):
    """A box without lid as one wall: its floor is at z = 0, its sides are at distances `half` (2,) [m] from the z axis."""
    x, y = half
    corner = [(i * x, j * y, k * height) for i in (-1, 1) for j in (-1, 1) for k in (0, 1)]
    sides = [(0, 2, 6, 4), (0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6)]
    triangles = [triple for a, b, c, d in sides for triple in ((a, b, c), (a, c, d))]
    return MeshWall(np.array(corner), triangles)


def lathe(profile, segments=64):
    """A wall round the z axis: rings of triangles through (radius, height) [m] of the profile.

    The radius is that to the middle of the flat sides: a cylinder of this radius fits in.
    """
    angle = 2.0 * math.pi * np.arange(segments) / segments
    flat = math.cos(math.pi / segments)
    circle = np.column_stack([np.cos(angle) / flat, np.sin(angle) / flat, np.ones(segments)])
    vertices = np.concatenate([circle * (radius, radius, height) for radius, height in profile])
    i = np.arange(segments)
    j = (i + 1) % segments
    triangles = []
    for k in range(len(profile) - 1):
        low, high = k * segments, (k + 1) * segments
        triangles += [np.column_stack([low + i, low + j, high + j]), np.column_stack([low + i, high + j, high + i])]
    return MeshWall(vertices, np.concatenate(triangles))


def round_layers(count, pitch, radius, low=0.0):
    """Centres (count,3) [m] in a closest packing, layer upon layer from z = low up, within `radius` (z) of the z axis.

    pitch [m]: distance of neighbours. radius: a number or a function of z [m], where centres may be; a layer is filled
    from the middle outwards, so that the last one is a disc.
    """
    within = radius if callable(radius) else lambda z: radius
    found, total, k = [], 0, 0
    while total < count:
        z = low + k * pitch * math.sqrt(2.0 / 3.0)
        reach = within(z)
        half = max(math.ceil(reach / pitch * 1.2) + 1, 1)
        row, column = np.meshgrid(np.arange(-half, half + 1), np.arange(-half, half + 1), indexing="ij")
        # Every second row is shifted by half, and every second layer lies in the hollows of the one below.
        x = pitch * (column + 0.5 * (row % 2)).ravel() + (0.5 * pitch if k % 2 else 0.0)
        y = pitch * math.sqrt(0.75) * row.ravel() + (pitch / math.sqrt(12.0) if k % 2 else 0.0)
        off = np.hypot(x, y)
        order = np.argsort(off, kind="stable")
        order = order[off[order] <= reach][: count - total]
        found.append(np.column_stack([x[order], y[order], np.full(len(order), z)]))
        total += len(order)
        k += 1
    return np.concatenate(found)

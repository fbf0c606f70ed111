"""Walls that several scenes share."""

import itertools

from ..shapes import Plane, Quad


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

"""A ready scene with a particle of every kind, by forces or by hard contacts."""

import math
from typing import Literal

import numpy as np

from ..dem.method import DEM
from ..dvi.method import Complementarity
from ..errors import pick
from ..scene.inputs import whole
from ..scene.materials import Material
from ..scene.scene import Scene
from ..shapes import Capsule, Clump, Compound, Cylinder, Ellipsoid, Mesh, Plane, Polyhedron, Sphere, Superquadric
from ..signatures import Whole
from .ready import GRAVITY, Ready

REACH = 0.006  # [m], radius of the balls around the particles


def ring():
    """A torus of 192 triangles: what other particles can thread."""
    from trimesh.creation import torus

    made = torus(0.72 * REACH, 0.28 * REACH, major_sections=12, minor_sections=8)
    return Mesh(made.vertices, made.faces, epsilon=0.1 * REACH)


def cross():
    """Two bars through each other, one body of two boxes."""
    # Not so thin that they would need a shorter step than all others.
    long, wide = 1.4 * REACH, 0.64 * REACH
    return Compound([Polyhedron.box(long, wide, wide), Polyhedron.box(wide, long, wide)])


def kinds():
    """One particle of each kind, about as large as each other."""
    return (
        Sphere(0.8 * REACH),
        Clump([(-0.4 * REACH, 0, 0), (0.4 * REACH, 0, 0)], [0.6 * REACH, 0.6 * REACH]),
        Ellipsoid(REACH, 0.75 * REACH, 0.5 * REACH),
        Polyhedron.box(1.2 * REACH, 1.2 * REACH, 1.0 * REACH),
        Polyhedron.random(faces=14, seed=3, radius=REACH),
        Mesh.random(30, (0.6, 1.0), seed=2, radius=REACH, epsilon=0.1 * REACH),
        ring(),
        Capsule(0.4 * REACH, 1.2 * REACH),
        Superquadric(0.8 * REACH, 0.8 * REACH, 0.45 * REACH, 0.4, 1.0),  # a tablet
        cross(),
    )


def all_shapes(count: Whole = 700, seed: Whole = 1, method: Literal["dem", "hard"] = "dem") -> Ready:
    """Spheres, clumps, ellipsoids, boxes, rocks, dented lumps, rings, capsules, tablets and crosses in a turning drum with a rough wall.

    method "dem": by contact forces; "hard": by complementarity.
    """
    count = whole("all_shapes", "count", count, least=1)
    solve, dt = pick(
        "method", method, {"dem": (DEM(), "auto"), "hard": (Complementarity(tolerance=1e-4, iterations=200), 1e-3)}
    )
    shapes = kinds()
    grow = max(count / 700.0, 0.05) ** (1.0 / 3.0)
    radius, length = 0.09 * grow + 2.0 * REACH, 0.11 * grow + 4.0 * REACH
    spin = (0.0, math.sqrt(0.2 * GRAVITY / radius), 0.0)  # Froude number 0.2
    stone = Material(density=2650.0, young=5e7, poisson=0.25, friction=0.5, restitution=0.3, name="stone")
    scene = Scene(gravity=(0.0, 0.0, -GRAVITY))
    scene.add(Cylinder(radius, length, axis=(0.0, 1.0, 0.0)), material=stone, spin=spin)
    for side in (-1.0, 1.0):
        scene.add(Plane(normal=(0.0, -side, 0.0)), position=(0.0, 0.5 * side * length, 0.0), material=stone, spin=spin)
    room = radius - 1.1 * REACH
    for k, shape in enumerate(shapes):
        scene.fill(
            shape,
            count=len(range(k, count, len(shapes))),
            box=((-room, -0.5 * length, -room), (room, 0.5 * length, room)),
            inside=lambda points: np.hypot(points[:, 0], points[:, 2]) < room,
            material=stone,
            seed=len(shapes) * seed + k,
        )
    title = f"drum of everything, {count:,} particles of {len(shapes)} shapes"
    return Ready(scene, solve, dt, 2.0, 0.02, title)

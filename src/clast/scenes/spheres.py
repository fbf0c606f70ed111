"""Ready scenes of spheres by DEM."""

import math

import numpy as np

from ..dem.method import DEM
from ..scene.materials import Material
from ..scene.scene import Scene
from ..shapes import Cylinder, Plane, Sphere
from ..signatures import Whole
from .ready import GRAVITY, Ready
from .walls import add_box, add_funnel


def drum(count: Whole = 4000, seed: Whole = 1) -> Ready:
    """Spheres of two sizes in a slowly turning drum: the surface flows while the bed turns with the wall.

    The drum grows with the number of spheres, so that it is always about 40 % full.
    """
    small, large = 0.004, 0.007
    grow = (count / 4000.0) ** (1.0 / 3.0)
    radius, length = 0.143 * grow + large, 0.186 * grow + 2.0 * large
    # Froude number 0.05: the rolling regime, with a flat surface at the angle of repose.
    spin = (0.0, math.sqrt(0.05 * GRAVITY / radius), 0.0)
    grain = Material(density=2500.0, young=1e7, poisson=0.25, friction=0.5, restitution=0.4, name="grain")
    scene = Scene(gravity=(0.0, 0.0, -GRAVITY))
    scene.add(Cylinder(radius, length, axis=(0.0, 1.0, 0.0)), material=grain, spin=spin)
    for side in (-1.0, 1.0):
        position = (0.0, 0.5 * side * length, 0.0)
        scene.add(Plane(normal=(0.0, -side, 0.0)), position=position, material=grain, spin=spin)
    scene.fill(
        Sphere(small),
        count=count,
        scale={1.0: 0.5, large / small: 0.5},
        box=((-radius, -0.5 * length, -radius), (radius, 0.5 * length, radius)),
        inside=lambda points: np.hypot(points[:, 0], points[:, 2]) < radius - small,
        material=grain,
        seed=seed,
    )
    # 4e-5 s is about 0.12 of the Rayleigh time of the small spheres.
    return Ready(scene, DEM(law="hertz"), 4e-5, 2.0, 0.02, f"rotating drum, {count:,} spheres of two sizes")


def hopper(count: Whole = 3000, seed: Whole = 1) -> Ready:
    """Spheres pour into a square funnel, leave through its opening and are counted out below."""
    radius = 0.005
    grow = (count / 3000.0) ** (1.0 / 3.0)
    top, mouth = max(0.1 * grow, 0.05), 0.03 * max(grow, 1.0)  # half widths; a mouth of 6 diameters does not jam
    low, high = 0.2, 0.2 + 0.2 * max(grow, 0.5)  # the funnel ends and the shaft ends
    grain = Material(density=2500.0, young=1e7, poisson=0.25, friction=0.4, restitution=0.4, name="grain")
    steel = Material(density=7800.0, young=5e7, poisson=0.3, friction=0.3, restitution=0.4, name="wall")
    floor, wide = low - top, 1.0 + top
    world = ((-wide, -wide, floor - 1.0), (wide, wide, high + 1.0))
    scene = Scene(gravity=(0.0, 0.0, -GRAVITY), world=world)
    add_funnel(scene, steel, ((mouth, floor), (top, low), (top, high)))
    reach = top - 2.0 * radius
    scene.inlet(
        Sphere(radius),
        box=((-reach, -reach, high - 0.06), (reach, reach, high)),
        rate=count / 0.5,  # four times what the mouth lets through: the funnel fills
        velocity=(0.0, 0.0, -1.0),
        scale=(0.9, 1.1),
        material=grain,
        count=count,
        seed=seed,
    )
    scene.outlet(box=((-wide, -wide, floor - 1.0), (wide, wide, floor - 0.15)))
    # The scene starts empty, so there is nothing yet to choose the margin by.
    method = DEM(law="hertz", margin=0.4 * radius)
    # The last frame is what a picture shows by default: the run ends while about a third is still there.
    return Ready(scene, method, 4e-5, 1.5, 0.02, f"hopper, {count:,} spheres pour in and flow out")


def pile(count: Whole = 2000, seed: Whole = 1) -> Ready:
    """Spheres are poured on a rough floor and come to rest at their angle of repose."""
    radius, rate = 0.005, 1500.0
    grain = Material(
        density=2500.0, young=1e7, poisson=0.25, friction=0.6, restitution=0.3, rolling_friction=0.15, name="grain"
    )
    floor = Material(
        density=2500.0, young=1e7, poisson=0.25, friction=0.9, restitution=0.3, rolling_friction=0.3, name="floor"
    )
    height = 0.15 + 0.1 * (count / 2000.0) ** (1.0 / 3.0)
    scene = Scene(gravity=(0.0, 0.0, -GRAVITY))
    scene.add(Plane(), material=floor)
    scene.inlet(
        Sphere(radius),
        box=((-0.04, -0.04, height), (0.04, 0.04, height + 0.05)),
        rate=rate,
        velocity=(0.0, 0.0, -1.0),
        scale=(0.8, 1.2),
        material=grain,
        count=count,
        seed=seed,
    )
    until = round(count / rate + 0.7, 1)
    # The scene starts empty, so there is nothing yet to choose the margin by.
    method = DEM(law="hertz", margin=0.4 * radius)
    return Ready(scene, method, 4e-5, until, 0.02, f"pile, {count:,} spheres poured on a floor")


def box(count: Whole = 2000, seed: Whole = 1) -> Ready:
    """Spheres between 3 mm and 15 mm radius fall into a box."""
    small, large = 0.003, 0.015
    grow = (count / 2000.0) ** (1.0 / 3.0)
    half, height = 0.135 * grow + large, 0.5 * grow + 2.0 * large
    grain = Material(density=2500.0, young=1e7, poisson=0.25, friction=0.5, restitution=0.4, name="grain")
    scene = Scene(gravity=(0.0, 0.0, -GRAVITY))
    add_box(scene, grain, half)
    scene.fill(
        Sphere(small),
        count=count,
        scale=(1.0, large / small),
        box=((-half, -half, 0.0), (half, half, height)),
        material=grain,
        seed=seed,
    )
    return Ready(scene, DEM(law="hertz"), 3e-5, 1.0, 0.01, f"box, {count:,} spheres of a wide range of sizes")

"""Ready scenes of ellipsoids by DEM."""

import math

import numpy as np

from ..dem.method import DEM
from ..scene.materials import Material
from ..scene.scene import Scene
from ..shapes import Ellipsoid
from ..signatures import Whole
from .ready import GRAVITY, Ready
from .walls import add_box, add_funnel


def ellipsoid_box(count: Whole = 3000, seed: Whole = 1) -> Ready:
    """Triaxial ellipsoids, 1.25 : 1 : 0.8, fall into a box in random directions and settle.

    The box grows with their number; the bed is about half as high as it is wide.
    """
    axes, largest = np.array([1.25, 1.0, 0.8]) * 0.003, 1.2
    half = 0.05 * (count / 3000.0) ** (1.0 / 3.0) + largest * axes[0]
    grain = Material(density=2500.0, young=1e7, poisson=0.25, friction=0.4, restitution=0.4, name="grain")
    scene = Scene(gravity=(0.0, 0.0, -GRAVITY))
    add_box(scene, grain, half)
    jitter = 0.1
    spacing = 2.0 * largest * axes[0] * (1.0 + jitter)
    layers = math.ceil(count / math.floor(2.0 * half / spacing) ** 2)
    scene.fill(
        Ellipsoid(*axes),
        count=count,
        scale=(0.8, largest),
        box=((-half, -half, 0.0), (half, half, (layers + 1) * spacing)),
        method="lattice",
        jitter=jitter,
        velocity=(0.0, 0.0, -0.3),
        material=grain,
        seed=seed,
    )
    return Ready(scene, DEM(law="hertz"), 2e-5, 0.5, 0.01, f"box, {count:,} ellipsoids settle")


def ellipsoid_hopper(count: Whole = 2000, seed: Whole = 1) -> Ready:
    """Ellipsoids shaped like beans, 2 : 1.4 : 1, pour into a square funnel and are counted out below its opening."""
    axes = (0.007, 0.005, 0.0035)
    grow = (count / 2000.0) ** (1.0 / 3.0)
    top, mouth = max(0.085 * grow, 0.05), 0.026 * max(grow, 1.0)  # half widths
    low, high = 0.2, 0.2 + max(0.12 * grow, 0.08)  # the funnel ends and the shaft ends
    grain = Material(density=1200.0, young=1e7, poisson=0.25, friction=0.4, restitution=0.4, name="bean")
    steel = Material(density=7800.0, young=5e7, poisson=0.3, friction=0.3, restitution=0.4, name="wall")
    floor, wide = low - top, 1.0 + top
    scene = Scene(gravity=(0.0, 0.0, -GRAVITY), world=((-wide, -wide, floor - 1.0), (wide, wide, high + 1.0)))
    add_funnel(scene, steel, ((mouth, floor), (top, low), (top, high)))
    reach = top - 2.0 * axes[0]
    scene.inlet(
        Ellipsoid(*axes),
        box=((-reach, -reach, high - 0.06), (reach, reach, high)),
        rate=count / 0.4,  # faster than the mouth lets them through: the funnel fills
        velocity=(0.0, 0.0, -1.5),
        scale=(0.9, 1.1),
        material=grain,
        count=count,
        seed=seed,
    )
    scene.outlet(box=((-wide, -wide, floor - 1.0), (wide, wide, floor - 0.15)))
    # The scene starts empty, so there is nothing yet to choose the margin by.
    method = DEM(law="hertz", margin=0.6 * axes[1])
    return Ready(scene, method, 3e-5, 1.0, 0.02, f"hopper, {count:,} ellipsoids pour in and flow out")

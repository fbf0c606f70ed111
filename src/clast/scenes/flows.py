"""Ready scenes of spheres that flow out by hard contacts: Negrut et al. 2010, section 5."""

import math

import numpy as np

from ..dvi.method import Complementarity
from ..scene.inputs import whole
from ..scene.materials import Material
from ..scene.scene import Scene
from ..shapes import Quad, Sphere
from ..signatures import Whole
from .ready import GRAVITY, Ready
from .walls import lathe, round_layers

RADIUS, SMALLEST = 0.05, 0.85  # [m] of the largest sphere, and the smallest as a part of it
STEP = 5e-3  # [s]


def hard(iterations=60):
    """Hard contacts that miss by a fiftieth of what gravity adds to a velocity in a step, where a step allows it."""
    return Complementarity(tolerance=1e-3, iterations=iterations)


def silo(count: Whole = 6000, seed: Whole = 1) -> Ready:
    """Spheres flow out of a round silo with a conical bottom and are counted out below; the mouth is open from the start.

    The silo grows with the number of spheres, and the mouth with it; it is at least 7 spheres wide, too wide for an arch.
    """
    count = whole("silo", "count", count, least=1)
    width = 2.0 * RADIUS
    bulk = count * width**3 / math.sqrt(2.0)  # [m^3], of the closest packing that the silo starts with
    wide = max((bulk / 7.0) ** (1.0 / 3.0), 7.0 * RADIUS)  # [m], radius of the shaft
    mouth = max(3.5 * width, 0.3 * wide)
    wide = max(wide, 1.5 * mouth)
    steep = math.tan(math.radians(60.0))
    top = (wide - mouth) * steep  # of the cone
    grain = Material(density=2500.0, friction=0.4, restitution=0.1, name="grain")
    steel = Material(density=7800.0, friction=0.3, restitution=0.1, name="wall")
    scene = Scene(gravity=(0.0, 0.0, -GRAVITY))
    # Centres keep away from the cone by a radius, seen along the radius of the silo.
    aside = RADIUS * math.hypot(1.0, steep) / steep + 0.01 * RADIUS
    room = round_layers(
        count, 1.001 * width, lambda z: min(wide - 1.01 * RADIUS, mouth + z / steep - aside), low=RADIUS
    )
    scene.add(lathe([(mouth, 0.0), (wide, top), (wide, max(top, room[:, 2].max()) + 4.0 * RADIUS)]), material=steel)
    sizes = np.random.default_rng(seed).uniform(SMALLEST, 1.0, count)
    scene.add(Sphere(RADIUS), position=room, scale=sizes, material=grain)
    drop, far = -1.0 - mouth, 10.0 + 2.0 * wide
    scene.outlet(box=((-far, -far, drop - 100.0), (far, far, drop)))
    return Ready(scene, hard(), STEP, 4.0, 0.05, f"silo, {count:,} spheres flow out")


DEEP = 20  # layers of the closest packing in a tank, always


def tank(count: Whole = 6000, seed: Whole = 1, opens: float = 0.4) -> Ready:
    """Spheres fill a round tank; then a gate below its floor slides away and they flow out through a hole.

    The tank is always equally deep and as wide as the number of spheres asks for (Negrut et al. 2010, Table 3). It is filled
    with a closest packing of spheres up to 15 % smaller than its sites. opens [s]: when the gate begins to free the hole.
    """
    count = whole("tank", "count", count, least=1)
    width = 2.0 * RADIUS
    site = math.sqrt(0.75) * width**2  # [m^2], of a sphere in a layer
    hole = 3.5 * width
    wide = max(math.sqrt(count / DEEP * site / math.pi) + RADIUS, 1.5 * hole)
    hole = max(hole, 0.1 * wide)
    grain = Material(density=2500.0, friction=0.5, restitution=0.1, name="grain")
    steel = Material(density=7800.0, friction=0.3, restitution=0.1, name="wall")
    smooth = Material(density=7800.0, friction=0.0, restitution=0.1, name="gate")
    scene = Scene(gravity=(0.0, 0.0, -GRAVITY))
    room = round_layers(count, 1.001 * width, wide - 1.01 * RADIUS, low=1.01 * RADIUS)
    high = DEEP * width * math.sqrt(2.0 / 3.0) + 6.0 * RADIUS
    scene.add(lathe([(hole, 0.0), (wide, 0.0), (wide, max(high, room[:, 2].max() + 2.0 * RADIUS))]), material=steel)
    speed, below = 1.5, -0.02 * RADIUS
    edge, end = -hole - speed * opens, 1.02 * hole
    gate = [(-end, edge, below), (end, edge, below), (end, end, below), (-end, end, below)]
    scene.add(Quad(gate), material=smooth, velocity=(0.0, speed, 0.0))
    sizes = np.random.default_rng(seed).uniform(SMALLEST, 1.0, count)
    scene.add(Sphere(RADIUS), position=room, scale=sizes, material=grain)
    drop, far = -1.0 - hole, 10.0 + 2.0 * wide
    scene.outlet(box=((-far, -far, drop - 100.0), (far, far, drop)))
    return Ready(scene, hard(), STEP, 3.0, 0.05, f"tank, {count:,} spheres, a hole in the floor opens")

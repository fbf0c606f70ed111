"""Ready scenes of spheres that are shaken or stirred, by hard contacts."""

import math

import numpy as np

from ..dvi.method import Complementarity
from ..scene.drives import Oscillation
from ..scene.inputs import whole
from ..scene.materials import Material
from ..scene.scene import Scene
from ..shapes import MeshWall, Sphere
from ..signatures import Whole
from .ready import GRAVITY, Ready
from .walls import lathe, open_box

STEP = 5e-3  # [s]
METHOD = Complementarity(tolerance=5e-3, iterations=60)  # a tenth of what gravity adds to a velocity in a step


def shaker(count: Whole = 1600, seed: Whole = 1) -> Ready:
    """Large spheres below a bed of small ones rise to its surface while the box is shaken up and down: size segregation.

    One sphere in 400 is large, with three times the radius and the same density. The box grows with their number;
    the bed is always about five small spheres deep.
    """
    count = whole("shaker", "count", count, least=2)
    small, large = 0.04, 0.12
    many = max(count // 400, 1)  # large ones
    half = max(math.sqrt(count / 5.0) * small, 1.5 * large)  # [m], of the width of the box
    grain = Material(density=2500.0, friction=0.5, restitution=0.2, name="small")
    stone = Material(density=2500.0, friction=0.5, restitution=0.2, name="large")
    side = Material(density=7800.0, friction=0.3, restitution=0.2, name="wall")
    scene = Scene(gravity=(0.0, 0.0, -GRAVITY))
    pitch, floor = 2.0 * small * 1.02, 2.02 * large
    high = floor + math.ceil(count / math.floor(2.0 * half / pitch) ** 2) * pitch + small
    # The box is shaken with three times the weight, by a small diameter either way: the bed flies and lands.
    push, reach = 3.0 * GRAVITY, 2.0 * small
    drive = Oscillation((0.0, 0.0, reach), math.sqrt(push / reach) / (2.0 * math.pi))
    scene.add(open_box((half, half), high), material=side, drive=drive)
    room = ((-half, -half, 0.0), (half, half, floor))
    scene.fill(Sphere(large), count=many, box=room, material=stone, seed=seed)
    scene.fill(
        Sphere(small),
        count=count - many,
        scale=(0.9, 1.0),
        box=((-half, -half, floor), (half, half, high)),
        method="lattice",
        jitter=0.02,
        material=grain,
        seed=seed,
    )
    return Ready(scene, METHOD, 4e-3, 10.0, 0.1, f"shaker, {count:,} spheres, the large ones rise")


def floating_ball(count: Whole = 1000, seed: Whole = 1) -> Ready:
    """A light ball in a bed of spheres rises through it while the tank is shaken sideways, and floats on top.

    Its density is a tenth of theirs, its radius four times as large. The tank grows with their number, and so does the time
    that the ball takes.
    """
    count = whole("floating_ball", "count", count, least=1)
    small, large = 0.05, 0.2
    half = max((count / 0.8) ** (1.0 / 3.0) * small, 1.5 * large)  # [m], of the width of the tank
    grain = Material(density=2500.0, friction=0.3, restitution=0.1, name="grain")
    cork = Material(density=250.0, friction=0.3, restitution=0.1, name="cork")
    side = Material(density=7800.0, friction=0.3, restitution=0.1, name="wall")
    scene = Scene(gravity=(0.0, 0.0, -GRAVITY))
    pitch = 2.0 * small * 1.02
    layers = math.ceil((count + 2.0 * (large / small) ** 3) / math.floor(2.0 * half / pitch) ** 2)
    high = (layers + 1) * pitch
    # At two and a half times the weight the bed gives way.
    reach = 2.0 * small
    drive = Oscillation((reach, 0.0, 0.0), math.sqrt(2.5 * GRAVITY / reach) / (2.0 * math.pi))
    scene.add(open_box((half, half), high), material=side, drive=drive)
    scene.add(Sphere(large), position=(0.0, 0.0, large + 2.0 * small), material=cork)
    scene.fill(
        Sphere(small),
        count=count,
        scale=(0.8, 1.0),
        box=((-half, -half, 0.0), (half, half, high)),
        method="lattice",
        jitter=0.02,
        material=grain,
        seed=seed,
    )
    return Ready(scene, METHOD, STEP, 6.0, 0.1, f"tank shaken sideways, a light ball rises through {count:,} spheres")


def mixer(count: Whole = 2000, seed: Whole = 1) -> Ready:
    """Two materials side by side in a round tub are mixed by a cross of four slanted blades that turns in it.

    The tub grows with the number of spheres.
    """
    count = whole("mixer", "count", count, least=2)
    radius = 0.05
    wide = max((count / 5.0) ** (1.0 / 3.0) * 2.0 * radius, 8.0 * radius)  # [m], radius of the tub
    red = Material(density=2500.0, friction=0.4, restitution=0.1, name="red")
    blue = Material(density=2500.0, friction=0.4, restitution=0.1, name="blue")
    steel = Material(density=7800.0, friction=0.3, restitution=0.1, name="wall")
    scene = Scene(gravity=(0.0, 0.0, -GRAVITY))
    scene.add(lathe([(1e-3 * wide, 0.0), (wide, 0.0), (wide, 1.5 * wide)]), material=steel)
    blades = cross(0.1 * wide, wide - 0.5 * radius, 0.6 * wide, 0.4 * wide)
    scene.add(blades, position=(0.0, 0.0, 0.1 * radius), material=steel, spin=(0.0, 0.0, 3.0))
    for colour, side, some in ((red, -1.0, count // 2), (blue, 1.0, count - count // 2)):
        scene.fill(
            Sphere(radius),
            count=some,
            scale=(0.8, 1.0),
            box=((-wide, -wide, 0.0), (wide, wide, 5.0 * wide)),
            inside=lambda points, side=side: (
                (np.hypot(points[:, 0], points[:, 1]) < wide - radius) & (side * points[:, 0] > 0.0)
            ),
            method="lattice",
            jitter=0.02,
            material=colour,
            seed=2 * seed + (side > 0.0),
        )
    return Ready(scene, METHOD, STEP, 8.0, 0.1, f"mixer, {count:,} spheres of two materials")


def cross(inner, outer, height, slope):
    """Four flat blades from `inner` to `outer` [m] from the z axis; the lower edge runs ahead of the upper by `slope` [m]."""
    blade = np.array([(inner, 0.5, 0.0), (outer, 0.5, 0.0), (outer, -0.5, 1.0), (inner, -0.5, 1.0)]) * (
        1.0,
        slope,
        height,
    )
    vertices, triangles = [], []
    for k, (c, s) in enumerate(((1, 0), (0, 1), (-1, 0), (0, -1))):
        vertices.append(
            np.column_stack([c * blade[:, 0] - s * blade[:, 1], s * blade[:, 0] + c * blade[:, 1], blade[:, 2]])
        )
        triangles += [(4 * k, 4 * k + 1, 4 * k + 2), (4 * k, 4 * k + 2, 4 * k + 3)]
    return MeshWall(np.concatenate(vertices), triangles)

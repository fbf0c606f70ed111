"""Ready scenes of cubes and rocks by DEM."""

import math
from typing import Literal

import numpy as np

from ..dem.method import DEM
from ..errors import pick
from ..scene.inputs import whole
from ..scene.materials import Material
from ..scene.scene import Scene
from ..shapes import Cylinder, Plane, Polyhedron
from ..signatures import Whole
from .ready import GRAVITY, Ready
from .walls import add_box

EDGE = 0.005  # [m], of the cubes of Govender et al. (2015)


def cube_material() -> Material:
    """The numbers of Govender et al. (2015), Table 2, in SI units; the density, which they do not give, is that of quartz."""
    return Material(
        density=2650.0, friction=0.154, blaze_stiffness=1e6, blaze_damping=50.0, blaze_shear=0.4, name="cube"
    )


def cube_drum(
    count: Whole = 1024, seed: Whole = 1, start: Literal["moving", "symmetric"] = "moving", speed: float = 0.002
) -> Ready:
    """Cubes packed tightly in a block fall on a blade like a T in a drum at rest (Govender et al. 2015, figures 24 and 25).

    start "moving": all cubes move to the right, +x, at `speed` [m/s]; "symmetric": at rest, and the two sides of the plane
    x = 0 are mirror images. The drum grows with the number of cubes.
    """
    count = whole("cube_drum", "count", count, least=1)
    velocity = pick("start", start, {"moving": (speed, 0.0, 0.0), "symmetric": (0.0, 0.0, 0.0)})
    grow = (count / 1024.0) ** (1.0 / 3.0)
    wide, deep = (
        max(round(7 * grow), 1),
        max(round(8 * grow), 1),
    )  # cubes along x on either side of the middle, and along y
    pitch = 1.01 * EDGE
    layers = math.ceil(count / ((2 * wide + 1) * deep)) + 1
    length = deep * pitch + EDGE
    low = -4.0 * EDGE * grow  # top of the blade
    bottom = low + 0.01  # [m], of the block
    radius = max(0.07 * grow, math.hypot((wide + 0.5) * pitch, bottom + layers * pitch) + 2.0 * EDGE)
    cube = cube_material()
    scene = Scene(gravity=(0.0, 0.0, -GRAVITY))
    scene.add(Cylinder(radius, length, axis=(0.0, 1.0, 0.0)), material=cube)
    for side in (-1.0, 1.0):
        scene.add(Plane(normal=(0.0, -side, 0.0)), position=(0.0, 0.5 * side * length, 0.0), material=cube)
    across = Polyhedron.box(8.0 * EDGE * grow, length, EDGE)
    foot = math.sqrt(radius**2 - 0.25 * EDGE**2)  # the lower corners lie on the drum
    upright = Polyhedron.box(EDGE, length, low - EDGE + foot)
    scene.add(across, position=(0.0, 0.0, low - 0.5 * EDGE), motion="fixed", material=cube)
    scene.add(upright, position=(0.0, 0.0, 0.5 * (low - EDGE - foot)), motion="fixed", material=cube)
    places = _mirrored(count, (wide, deep), pitch, bottom, np.random.default_rng(seed))
    scene.add(Polyhedron.box(EDGE, EDGE, EDGE), position=places, velocity=velocity, material=cube)
    return Ready(scene, DEM(law="blaze"), 1e-5, 0.5, 0.01, f"drum with a blade, {count:,} cubes, {start} start")


def _mirrored(count, wide_deep, pitch, bottom, random):
    """Centres (count,3) of a block of cubes above `bottom`: first those in the plane x = 0, then left and right in turn.

    Partners that follow each other are mirror images, and so are the numbers of their neighbours: forces are
    added in the order of numbers, and mirrored sums must round alike. Cubes in the plane keep the two sides from meeting face to
    face, where it would be left to chance whose face counts. Places are off the lattice by up to 0.4 % of the edge.
    """
    wide, deep = wide_deep
    layers, rest = divmod(count, (2 * wide + 1) * deep)
    odd = (rest - min(deep, rest)) % 2  # left and right come in pairs
    centres = layers * deep + min(deep, rest) - odd
    pairs = (count - centres) // 2
    k = np.arange(centres)
    middle = np.stack([np.zeros(centres), k % deep, k // deep], axis=1)
    k = np.arange(pairs)
    right = np.stack([k % wide + 1.0, k // wide % deep, k // (wide * deep)], axis=1)
    places = np.concatenate([middle, right]) + [0.0, 0.5 - 0.5 * deep, 0.5]
    places = pitch * places + [0.0, 0.0, bottom] + 0.004 * EDGE * random.uniform(-1.0, 1.0, places.shape)
    places[:centres, 0] = 0.0
    both = np.repeat(places[centres:], 2, axis=0)
    both[::2, 0] *= -1.0
    return np.concatenate([places[:centres], both])


def gravity_packing(
    count: Whole = 1000, seed: Whole = 1, start: Literal["turned", "tight"] = "turned", speed: float = 0.5
) -> Ready:
    """Cubes of 5 mm in a rectangular grid fall into a box and pack (Govender et al. 2015, figure 26).

    start "turned": each in a random direction, as close as their corners allow; "tight": as published, none is turned and the
    grid is packed tightly: it lands as columns, which stay on end. speed [m/s]: downwards, at the start.
    """
    count = whole("gravity_packing", "count", count, least=1)
    pitch, room = pick("start", start, {"turned": (1.75 * EDGE, 0.5), "tight": (1.01 * EDGE, 0.75)})
    wide = max(round((count / 2.0) ** (1.0 / 3.0)), 1)
    half = room * wide * pitch + 0.5 * EDGE
    cube = cube_material()
    random = np.random.default_rng(seed)
    scene = Scene(gravity=(0.0, 0.0, -GRAVITY))
    add_box(scene, cube, half)
    k = np.arange(count)
    grid = np.stack([k % wide - 0.5 * (wide - 1), k // wide % wide - 0.5 * (wide - 1), k // wide**2 + 1.5], axis=1)
    places = pitch * grid + 0.004 * EDGE * random.uniform(-1.0, 1.0, (count, 3))
    turned = random.normal(size=(count, 4)) if start == "turned" else (1.0, 0.0, 0.0, 0.0)
    scene.add(
        Polyhedron.box(EDGE, EDGE, EDGE),
        position=places,
        orientation=turned,
        velocity=(0.0, 0.0, -speed),
        material=cube,
    )
    return Ready(scene, DEM(law="blaze"), 1e-5, 0.5, 0.01, f"box, a grid of {count:,} cubes falls in, {start} start")


def rock_drum(count: Whole = 1500, seed: Whole = 1) -> Ready:
    """Rocks of eight shapes, 8 to 22 faces, in a turning drum whose four blades lift them."""
    count = whole("rock_drum", "count", count, least=1)
    reach, largest = 0.006, 1.2
    grow = (count / 1500.0) ** (1.0 / 3.0)
    radius, length = 0.12 * grow + 2.0 * reach, 0.15 * grow + 4.0 * reach
    # Froude number 0.3: the blades carry rocks up, and they fall.
    spin = (0.0, math.sqrt(0.3 * GRAVITY / radius), 0.0)
    rock = Material(density=2650.0, young=1e7, poisson=0.25, friction=0.5, restitution=0.3, name="rock")
    scene = Scene(gravity=(0.0, 0.0, -GRAVITY))
    scene.add(Cylinder(radius, length, axis=(0.0, 1.0, 0.0)), material=rock, spin=spin)
    for side in (-1.0, 1.0):
        scene.add(Plane(normal=(0.0, -side, 0.0)), position=(0.0, 0.5 * side * length, 0.0), material=rock, spin=spin)
    height = 0.25 * radius
    room = radius - height - largest * reach  # for centres: clear of the blades
    for k in range(8):
        scene.fill(
            Polyhedron.random(faces=8 + 2 * k, seed=k + 1, radius=reach, aspect=(1.2, 1.0, 0.8)),
            count=len(range(k, count, 8)),
            scale=(0.7, largest),
            box=((-room, -0.5 * length, -room), (room, 0.5 * length, room)),
            inside=lambda points: np.hypot(points[:, 0], points[:, 2]) < room,
            material=rock,
            seed=8 * seed + k,
        )
    # The blades come last, so that they do not take room from the rocks. They end a hair from the drum, which is drawn with
    # facets.
    thick = 0.5 * reach
    out = math.sqrt((0.998 * radius) ** 2 - 0.25 * thick**2) - 0.5 * height
    for k in range(4):
        turn = 0.5 * math.pi * k
        scene.add(
            Polyhedron.box(height, length, thick),
            position=(out * math.cos(turn), 0.0, out * math.sin(turn)),
            orientation=(math.cos(-0.5 * turn), 0.0, math.sin(-0.5 * turn), 0.0),
            motion="driven",
            spin=spin,
            pivot=(0.0, 0.0, 0.0),
            material=rock,
        )
    return Ready(scene, DEM(law="hertz"), "auto", 1.0, 0.02, f"drum with blades, {count:,} rocks of eight shapes")

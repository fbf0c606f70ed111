"""Ready scenes of machines on gravel: bodies with joints and motors, by hard contacts."""

import math

import numpy as np

from ..inputs import whole
from ..material import Material
from ..motion.complementarity import Complementarity
from ..scene import Scene
from ..shapes import Polyhedron, Sphere
from .ready import GRAVITY, Ready
from .walls import open_box

GRAIN = 0.05  # [m], radius of the largest pebble
STEP = 5e-3  # [s]


def gravel(scene, count, layers, long, material, wall, seed):
    """Add pebbles in a tray that is `long` times as long, along x, as it is wide; returns half its sides (2,) and the height [m].

    They lie in a closest packing of `layers` layers with sites for the largest, so that they sink by little.
    """
    pitch = 2.002 * GRAIN
    rows = max(round(math.sqrt(count / (layers * long))), 3)  # along y
    columns = max(math.ceil(count / (layers * rows)), 3)
    k = np.arange(count)
    layer, row, column = k // (rows * columns), k // columns % rows, k % columns
    x = pitch * (column + 0.5 * ((row + layer) % 2) + 0.25 - 0.5 * columns)
    y = pitch * (math.sqrt(0.75) * (row + layer % 2 / 3.0 - 0.5 * (rows - 1)) - 0.14)
    z = pitch * math.sqrt(2.0 / 3.0) * layer + 1.01 * GRAIN
    half = 0.5 * pitch * (columns + 0.5), 0.5 * pitch * math.sqrt(0.75) * (rows - 1 + 1.0 / 3.0) + 1.01 * GRAIN
    height = float(z.max()) + GRAIN
    scene.add(open_box(half, height + 2.0 * GRAIN), material=wall)
    sizes = np.random.default_rng(seed).uniform(0.8, 1.0, count)
    scene.add(Sphere(GRAIN), position=np.column_stack([x, y, z]), scale=sizes, material=material)
    return half, height


def chain_on_gravel(count=1500, seed=1):
    """A chain of links with ball joints falls on gravel and is dragged over it by a hook that moves steadily.

    The tray grows with the number of pebbles, and the chain with the tray.
    """
    count = whole("chain_on_gravel", "count", count, least=1)
    stone = Material(density=2500.0, friction=0.5, restitution=0.1, name="gravel")
    steel = Material(density=7800.0, friction=0.4, restitution=0.1, name="chain")
    tray = Material(density=7800.0, friction=0.4, restitution=0.1, name="wall")
    scene = Scene(gravity=(0.0, 0.0, -GRAVITY))
    (half, _), height = gravel(scene, count, 3, 2.5, stone, tray, seed)
    length, thick = 0.2, 0.07
    link = Polyhedron.box(length - 0.3 * thick, thick, thick)
    many = max(round(half / length), 2)
    # Links hang together at their ends, thrown in a slack curve above the left half of the tray.
    turn = 0.5 * np.sin(np.arange(many) * 0.9)
    ends = np.zeros((many + 1, 3))
    ends[1:, 0] = np.cumsum(length * np.cos(turn))
    ends[1:, 1] = np.cumsum(length * np.sin(turn))
    ends += (-0.95 * half, -0.5 * (ends[:, 1].min() + ends[:, 1].max()), height + 0.3)
    axis = np.zeros((many, 4))
    axis[:, 0], axis[:, 3] = np.cos(0.5 * turn), np.sin(0.5 * turn)
    links = scene.add(link, position=0.5 * (ends[1:] + ends[:-1]), orientation=axis, material=steel)
    hook = scene.add(
        Polyhedron.box(thick, thick, thick),
        position=ends[-1] + (0.5 * thick, 0.0, 0.0),
        motion="driven",
        velocity=(0.5, 0.0, 0.0),
        material=steel,
    )
    for a, b, at in zip(links, [*links[1:], *hook], ends[1:], strict=True):
        scene.join(a, b, "ball", at=at)
    method = Complementarity(tolerance=1e-3, iterations=60)
    return Ready(scene, method, STEP, 3.0, 0.05, f"a chain of {many} links is dragged over {count:,} pebbles")

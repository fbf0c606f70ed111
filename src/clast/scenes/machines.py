"""Ready scenes of machines on gravel: bodies with joints and motors, by hard contacts."""

import math
from typing import Literal

import numpy as np

from ..dvi.method import Complementarity
from ..errors import pick
from ..scene.inputs import whole
from ..scene.materials import Material
from ..scene.scene import Scene
from ..shapes import Ellipsoid, Polyhedron, Sphere
from ..signatures import Whole
from .ready import GRAVITY, Ready
from .walls import open_box

GRAIN = 0.05  # [m], radius of the largest pebble
STEP = 5e-3  # [s]
BALLS = (Sphere(GRAIN),)


def gravel(scene, count, layers, long, material, wall, seed, least=(3, 3), shapes=BALLS):
    """Add pebbles in a tray that is `long` times as long, along x, as it is wide; returns half its sides (2,) and the height [m].

    They lie in a closest packing of `layers` layers with sites for the largest, so that they sink by little. least: rows
    along y and columns along x that the tray has room for at least; the layers are fewer then. shapes: of the pebbles in turn, each within
    a ball of radius GRAIN.
    """
    pitch = 2.002 * GRAIN
    rows = max(round(math.sqrt(count / (layers * long))), least[0])
    columns = max(math.ceil(count / (layers * rows)), least[1])
    k = np.arange(count)
    layer, row, column = k // (rows * columns), k // columns % rows, k % columns
    x = pitch * (column + 0.5 * ((row + layer) % 2) + 0.25 - 0.5 * columns)
    y = pitch * (math.sqrt(0.75) * (row + layer % 2 / 3.0 - 0.5 * (rows - 1)) - 0.14)
    z = pitch * math.sqrt(2.0 / 3.0) * layer + 1.01 * GRAIN
    half = 0.5 * pitch * (columns + 0.5), 0.5 * pitch * math.sqrt(0.75) * (rows - 1 + 1.0 / 3.0) + 1.01 * GRAIN
    height = float(z.max()) + GRAIN
    scene.add(open_box(half, height + 2.0 * GRAIN), material=wall)
    rng = np.random.default_rng(seed)
    sizes = rng.uniform(0.8, 1.0, count)
    turn = rng.normal(size=(count, 4))
    turn /= np.linalg.norm(turn, axis=1)[:, None]
    for n, shape in enumerate(shapes):
        mine = k % len(shapes) == n
        place = np.column_stack([x, y, z])[mine]
        facing = (1.0, 0.0, 0.0, 0.0) if shape.round else turn[mine]
        scene.add(shape, position=place, orientation=facing, scale=sizes[mine], material=material)
    return half, height


def chain_on_gravel(count: Whole = 1500, seed: Whole = 1) -> Ready:
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


PITCH = 0.2  # [m], from hinge to hinge of a belt
SIDES = 8  # of a sprocket: as many shoes go round it
SPAN = 6  # shoes between the two wheels of a track, above and below
SHOE = (0.18, 0.35, 0.05)  # [m], length, width and thickness of a shoe
ROLLER = 0.09  # [m], radius
GAUGE = 0.55  # [m], from the middle of the vehicle to the middle of a track
PLAY = 0.001  # [m], between wheels and belt
# What two joints of a belt lock, shift along x, y, z and turn about x, y, z, with z across the track: a ring of hinges needs no
# more than the first to close, the rest would be demanded twice; the second keeps a shoe in the plane of its track.
CLOSING = (True, True, False, False, False, False)
GUIDED = (False, False, True, True, True, False)


BEDS = {
    "pebbles": BALLS,
    "rocks": (Ellipsoid(GRAIN, 0.8 * GRAIN, 0.6 * GRAIN), Polyhedron.random(faces=14, seed=3, radius=GRAIN)),
}


def tracked_vehicle(
    count: Whole = 2500, seed: Whole = 1, bed: Literal["pebbles", "balls", "rocks"] = "pebbles"
) -> Ready:
    """A vehicle on two tracks drives over pebbles, balls, or with bed="rocks" ellipsoids and rocks of 14 faces: wheels and rollers on hinges, belts of hinged shoes, a motor on either side.

    The wheels are octagons on whose sides the shoes lie, so that they drive the belt by their corners. In place of guide horns one
    shoe of each belt is kept in the plane of its track. The bed of pebbles grows with their number.
    """
    count = whole("tracked_vehicle", "count", count, least=1)
    shapes = pick("bed", bed, BEDS)
    stone = Material(density=2500.0, friction=0.6, restitution=0.0, name="pebble")
    rubber = Material(density=2500.0, friction=0.8, restitution=0.0, name="shoe")
    wheel = Material(density=1000.0, friction=0.4, restitution=0.0, name="wheel")
    body = Material(density=600.0, friction=0.4, restitution=0.0, name="chassis")
    tray = Material(density=7800.0, friction=0.6, restitution=0.0, name="wall")
    scene = Scene(gravity=(0.0, 0.0, -GRAVITY))
    (half, _), height = gravel(scene, count, 3, 2.2, stone, tray, seed, least=(19, 44), shapes=shapes)
    apothem = 0.5 * PITCH / math.tan(math.pi / SIDES)  # from an axle to the hinges' line
    middle = np.array([-half + 1.1, 0.0, height + apothem + 0.5 * SHOE[2] + 0.01])
    chassis = scene.add(_hood(), position=middle + _hood().origin, material=body)[0]
    for side in (-1.0, 1.0):
        _add_track(scene, chassis, middle + (0.0, side * GAUGE, 0.0), wheel, rubber)
    method = Complementarity(tolerance=1e-3, iterations=80)
    return Ready(scene, method, STEP, 4.0, 0.05, f"tracked vehicle on {count:,} {bed}")


def _hood():
    """The chassis, about the middle between the axles: a box with slanted ends."""
    low, high = (0.6, -0.1), (0.85, 0.15)
    outline = [(-low[0], low[1]), (low[0], low[1]), (high[0], high[1]), (0.5, 0.4), (-0.75, 0.4), (-high[0], high[1])]
    return Polyhedron([(x, y, z) for x, z in outline for y in (-0.32, 0.32)])


def _prism(sides, apothem, width):
    """A wheel of `sides` flat sides at a distance `apothem` [m] from its axle along y; one of them is on top."""
    angle = math.pi / sides * (1.0 + 2.0 * np.arange(sides)) + 0.5 * math.pi
    corner = apothem / math.cos(math.pi / sides) * np.column_stack([np.cos(angle), np.sin(angle)])
    return Polyhedron([(x, y, z) for x, z in corner for y in (-0.5 * width, 0.5 * width)])


def _add_track(scene, chassis, middle, steel, rubber):
    """One track about the point `middle` between its axles: a driven and a free wheel, three rollers, and the belt."""
    across = (0.0, 1.0, 0.0)
    apothem = 0.5 * PITCH / math.tan(math.pi / SIDES)
    inside = apothem - 0.5 * SHOE[2]  # from an axle to the inner side of the belt
    end = np.array([0.5 * SPAN * PITCH, 0.0, 0.0])
    wide = 0.7 * SHOE[1]
    rear, front = scene.add(_prism(SIDES, inside - PLAY, wide), position=[middle - end, middle + end], material=steel)
    hinge = scene.join(chassis, rear, "hinge", at=middle - end, axis=across)
    scene.motor(hinge, spin=2.0, most=600.0)
    scene.join(chassis, front, "hinge", at=middle + end, axis=across)
    low = middle + [(x, 0.0, ROLLER - inside + PLAY) for x in (-0.26, 0.0, 0.26)]
    for roller, at in zip(scene.add(_prism(16, ROLLER, wide), position=low, material=steel), low, strict=True):
        scene.join(chassis, roller, "hinge", at=at, axis=across)
    _add_belt(scene, chassis, middle, rubber)


def _add_belt(scene, chassis, middle, rubber):
    """Shoes all round the two wheels of a track, with hinges between them."""
    apothem, reach = 0.5 * PITCH / math.tan(math.pi / SIDES), 0.5 * SPAN * PITCH
    along = np.linspace(-reach, reach, SPAN + 1)
    bend = 0.5 * math.pi - 2.0 * math.pi / SIDES * np.arange(1, SIDES // 2)  # of the shoes round the front wheel
    x = np.concatenate([along, reach + apothem * np.cos(bend), along[::-1], -reach - apothem * np.cos(bend)])
    z = np.concatenate([np.full(SPAN + 1, apothem), apothem * np.sin(bend)])
    z = np.concatenate([z, -z])
    turn = np.concatenate([np.zeros(SPAN + 1), 0.5 * math.pi - bend])
    turn = np.concatenate([turn, turn + math.pi])  # about y, from lying on top
    centre = middle + np.column_stack([x, np.zeros_like(x), z])
    orientation = np.column_stack([np.cos(0.5 * turn), np.zeros_like(x), np.sin(0.5 * turn), np.zeros_like(x)])
    shoes = scene.add(Polyhedron.box(*SHOE), position=centre, orientation=orientation, material=rubber)
    ahead = centre + 0.5 * PITCH * np.column_stack([np.cos(turn), np.zeros_like(x), -np.sin(turn)])
    across = (0.0, 1.0, 0.0)
    for k, at in enumerate(ahead[:-1]):
        scene.join(shoes[k], shoes[k + 1], "hinge", at=at, axis=across)
    scene.join(shoes[-1], shoes[0], locked=CLOSING, at=ahead[-1], axis=across)
    scene.join(chassis, shoes[0], locked=GUIDED, at=centre[0], axis=across, collide=True)

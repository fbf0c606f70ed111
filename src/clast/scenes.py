"""Ready scenes as functions: shared by the command line, tests, benchmarks and docs."""

import itertools
import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from .contact import find_contacts
from .errors import SceneError, pick
from .inputs import whole
from .material import Material
from .motion.dem import DEM
from .scene import Scene
from .shapes import Cylinder, Ellipsoid, Plane, Polyhedron, Quad, Sphere
from .simulation import Simulation
from .tables import ELLIPSOID, FIRST_WALL, POLYHEDRON

GRAVITY = 9.81  # [m/s^2]


@dataclass(frozen=True)
class Ready:
    """A scene with all that a run needs.

    scene: Scene; method: DEM(...); dt [s] or "auto"; until, every [s]; title: one line for people;
    overlap_limit: how deep two bodies may overlap at the start, as a share of the smaller radius, half-axis or ball inside;
    source: the scene file, if there is one; places: (body numbers, where they stand in it), for messages.
    """

    scene: Scene
    method: Any
    dt: float | str
    until: float
    every: float
    title: str
    overlap_limit: float = 0.05
    source: str = ""
    places: tuple = ()

    def simulation(self, *, dt=None, device="cpu"):
        """A Simulation of the scene, after a look at how it starts; dt overrides the scene's own."""
        try:
            check_overlap(self.scene, self.overlap_limit, self.places)
        except SceneError as fault:
            raise SceneError(f"{self.source}: {fault}" if self.source else str(fault)) from None
        return Simulation(self.scene, self.method, dt=self.dt if dt is None else dt, device=device)


def check_overlap(scene, limit, places=()):
    """Raise a SceneError that names the deepest pair if bodies overlap by more than `limit` times the smaller radius.

    The radius of an ellipsoid is its smallest half-axis, that of a polyhedron the ball inside. places: (body numbers, name) of groups of bodies, for the
    message.
    """
    if len(scene.bodies.number) == 0:
        return
    contacts = find_contacts(scene)
    if len(contacts.gap) == 0:
        return
    shapes = scene.shapes()
    rows = np.searchsorted(scene.bodies.number, contacts.pair)
    smaller = _least_radius(scene, shapes)[np.searchsorted(shapes.body, rows) + contacts.shape].min(axis=1)
    share = np.where(np.isfinite(smaller), -contacts.gap / smaller, 0.0)
    worst = int(np.argmax(share))
    if share[worst] <= limit:
        return
    a, b = (_name(int(number), places) for number in contacts.pair[worst])
    count = int(np.count_nonzero(share > limit))
    more = f" ({count - 1} more pairs do)" if count > 1 else ""
    raise SceneError(
        f"bodies {a} and {b} overlap by {-contacts.gap[worst]:.3g} m at the start, "
        f"{100.0 * share[worst]:.3g} % of the smaller radius, above the limit of {100.0 * limit:.3g} %{more}; "
        f"move them apart, or raise run.overlap_limit"
    )


def _least_radius(scene, shapes):
    """Radius (s,) [m] of every sphere, smallest half-axis of ellipsoids, ball inside polyhedra, infinity for walls."""
    parts = scene.parts
    own, egg, hull = parts.reach.copy(), parts.kind == ELLIPSOID, parts.kind == POLYHEDRON
    own[egg] = parts.size[egg].min(axis=1)
    own[hull] = scene.hulls.inner[parts.feature[hull]]
    return np.where(shapes.kind < FIRST_WALL, own[shapes.part] * scene.bodies.scale[shapes.body], np.inf)


def _name(number, places):
    place = next((f" ({place})" for numbers, place in places if number in numbers), "")
    return f"{number}{place}"


def drum(count=4000, seed=1):
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


def hopper(count=3000, seed=1):
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
    _add_funnel(scene, steel, ((mouth, floor), (top, low), (top, high)))
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


def pile(count=2000, seed=1):
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


def box(count=2000, seed=1):
    """Spheres between 3 mm and 15 mm radius fall into a box."""
    small, large = 0.003, 0.015
    grow = (count / 2000.0) ** (1.0 / 3.0)
    half, height = 0.135 * grow + large, 0.5 * grow + 2.0 * large
    grain = Material(density=2500.0, young=1e7, poisson=0.25, friction=0.5, restitution=0.4, name="grain")
    scene = Scene(gravity=(0.0, 0.0, -GRAVITY))
    _add_box(scene, grain, half)
    scene.fill(
        Sphere(small),
        count=count,
        scale=(1.0, large / small),
        box=((-half, -half, 0.0), (half, half, height)),
        material=grain,
        seed=seed,
    )
    return Ready(scene, DEM(law="hertz"), 3e-5, 1.0, 0.01, f"box, {count:,} spheres of a wide range of sizes")


def ellipsoid_box(count=3000, seed=1):
    """Triaxial ellipsoids, 1.25 : 1 : 0.8, fall into a box in random directions and settle.

    The box grows with their number; the bed is about half as high as it is wide.
    """
    axes, largest = np.array([1.25, 1.0, 0.8]) * 0.003, 1.2
    half = 0.05 * (count / 3000.0) ** (1.0 / 3.0) + largest * axes[0]
    grain = Material(density=2500.0, young=1e7, poisson=0.25, friction=0.4, restitution=0.4, name="grain")
    scene = Scene(gravity=(0.0, 0.0, -GRAVITY))
    _add_box(scene, grain, half)
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


def ellipsoid_hopper(count=2000, seed=1):
    """Ellipsoids shaped like beans, 2 : 1.4 : 1, pour into a square funnel and are counted out below its opening."""
    axes = (0.007, 0.005, 0.0035)
    grow = (count / 2000.0) ** (1.0 / 3.0)
    top, mouth = max(0.085 * grow, 0.05), 0.026 * max(grow, 1.0)  # half widths
    low, high = 0.2, 0.2 + max(0.12 * grow, 0.08)  # the funnel ends and the shaft ends
    grain = Material(density=1200.0, young=1e7, poisson=0.25, friction=0.4, restitution=0.4, name="bean")
    steel = Material(density=7800.0, young=5e7, poisson=0.3, friction=0.3, restitution=0.4, name="wall")
    floor, wide = low - top, 1.0 + top
    scene = Scene(gravity=(0.0, 0.0, -GRAVITY), world=((-wide, -wide, floor - 1.0), (wide, wide, high + 1.0)))
    _add_funnel(scene, steel, ((mouth, floor), (top, low), (top, high)))
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


EDGE = 0.005  # [m], of the cubes of Govender et al. (2015)


def cube_material():
    """The numbers of Govender et al. (2015), Table 2, in SI units; the density, which they do not give, is that of quartz."""
    return Material(
        density=2650.0, friction=0.154, blaze_stiffness=1e6, blaze_damping=50.0, blaze_shear=0.4, name="cube"
    )


def cube_drum(count=1024, seed=1, start="moving", speed=0.002):
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


def gravity_packing(count=1000, seed=1, start="turned", speed=0.5):
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
    _add_box(scene, cube, half)
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


def rock_drum(count=1500, seed=1):
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
    # The blades come last, because `fill` keeps clear of the balls around bodies. They end a hair from the
    # drum, which is drawn with facets.
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


def _add_funnel(scene, material, rims):
    """Four sides of quads through square rims, each (half width, height) [m], from the lowest to the highest."""
    for c, s in ((1, 0), (0, 1), (-1, 0), (0, -1)):
        for (below, z), (above, height) in itertools.pairwise(rims):
            side = [(below, -below, z), (below, below, z), (above, above, height), (above, -above, height)]
            scene.add(Quad([(c * x - s * y, s * x + c * y, z) for x, y, z in side]), material=material)


def _add_box(scene, material, half):
    """A floor at z = 0 and four upright planes at a distance `half` [m] from the z axis."""
    scene.add(Plane(normal=(0.0, 0.0, 1.0)), material=material)
    for x, y in ((1.0, 0.0), (-1.0, 0.0), (0.0, 1.0), (0.0, -1.0)):
        scene.add(Plane(normal=(x, y, 0.0)), position=(-x * half, -y * half, 0.0), material=material)


SCENES = {
    "drum": drum,
    "hopper": hopper,
    "pile": pile,
    "box": box,
    "ellipsoid-box": ellipsoid_box,
    "ellipsoid-hopper": ellipsoid_hopper,
    "cube-drum": cube_drum,
    "gravity-packing": gravity_packing,
    "rock-drum": rock_drum,
}

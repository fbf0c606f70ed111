"""Ready scenes of triangulated particles by DEM."""

import math

import numpy as np

from ..dem.method import DEM
from ..narrow.contacts import find_contacts
from ..scene.inputs import number, whole
from ..scene.materials import Material
from ..scene.scene import Scene
from ..shapes import Mesh, Plane
from ..signatures import Whole
from .ready import GRAVITY, Ready

# Two particles: corners that give 58 and 68 triangles, diameters [m], halo [m], step [s], and when they meet.
CORNERS, DIAMETERS, HALO, STEP, MEET = (31, 36), (0.1, 0.03), 3.5e-4, 1e-4, 9541
SPEEDS = (0.05, -0.45)  # [m/s], of the large and the small one along x


def two_particles(count: Whole = 2, seed: Whole = 1) -> Ready:
    """Two lumps of 58 and 68 triangles in a unit cube bump after 9,541 steps of 0.1 ms and part (Krestenitis 2017, app. B).

    Nothing is lost and nothing pulls. The halos are 0.35 mm thick, not 0.1 mm as published, so that steps of this length can
    follow the collision, which takes 30 of them. count: bodies, an even number; more than two are more
    such pairs, each in a cube of its own.
    """
    count = whole("two_particles", "count", count, least=2)
    if count % 2:
        raise ValueError(f"two_particles: count must be even, as lumps come in pairs, got {count}")
    lumps = [
        Mesh.random(points, seed=2 * seed + k, radius=0.5 * wide, epsilon=HALO)
        for k, (points, wide) in enumerate(zip(CORNERS, DIAMETERS, strict=True))
    ]
    # The reduced mass at a rate of 900 rad/s: at 0.5 m/s the halos stop them before four fifths are used up.
    one, other = (2500.0 * lump.volume for lump in lumps)
    rock = elastic(900.0**2 * one * other / (one + other))
    apart = touching(lumps) + (SPEEDS[0] - SPEEDS[1]) * (MEET - 0.5) * STEP
    scene = Scene(gravity=(0.0, 0.0, 0.0), world=((0.0, 0.0, 0.0), (1.0, 0.5 * count, 1.0)))
    for pair in range(count // 2):
        for lump, x, speed in zip(lumps, (0.3, 0.3 + apart), SPEEDS, strict=True):
            scene.add(lump, position=(x, pair + 0.5, 0.5), velocity=(speed, 0.0, 0.0), material=rock)
    method = DEM(law="halo", integrator="symplectic")
    return Ready(scene, method, STEP, 1.5, 0.03, f"{count} lumps of 58 and 68 triangles bump and part")


def elastic(stiffness):
    """A material that loses nothing, with this stiffness [N/m] of a contact against the overlap of the halos."""
    return Material(density=2500.0, halo_stiffness=2.0 * stiffness, halo_damping=0.0, name="rock")


def touching(lumps):
    """How far apart [m] along x the centres of two meshes are when their halos meet; neither is turned."""
    apart = sum(float(lump.parts().reach[0]) for lump in lumps)
    for _ in range(1000):
        scene = Scene()
        scene.add(lumps, position=[(0.0, 0.0, 0.0), (apart, 0.0, 0.0)])
        # No nearer than this in any direction, so they can be moved by it without meeting.
        gap = float(find_contacts(scene, margin=apart).gap.min())
        apart -= gap
        if gap < 1e-3 * HALO:
            break
    return apart


def granulate(
    count: Whole = 500, seed: Whole = 1, gravity: bool = False, speed: float = 0.5, ratio: float = 3.0, points: int = 32
) -> Ready:
    """Lumps of random shapes and sizes fly about in a unit cube with random velocities; its walls and they are elastic
    (Krestenitis 2017, section 8).

    gravity: whether there is any, along -z. speed [m/s]: of the fastest. ratio: largest diameter over smallest; the
    balls around all lumps fill 15 % of the cube. points: corners of each lump, which has 2 points - 4 triangles.
    """
    place = "granulate"
    count, points = whole(place, "count", count, least=1), whole(place, "points", points, least=4)
    speed, ratio = number(place, "speed", speed, above=0.0), number(place, "ratio", ratio, least=1.0)
    random = np.random.default_rng(whole("granulate", "seed", seed, least=0))
    # Diameters are even between the two limits; the mean of their cubes gives the share of the cube.
    size = random.uniform(1.0, ratio, count)
    mean = 0.25 * (ratio**4 - 1.0) / (ratio - 1.0) if ratio > 1.0 else 1.0
    radius = 0.5 * size * (0.15 / (math.pi / 6.0 * count * mean)) ** (1.0 / 3.0)
    lumps = [
        Mesh.random(points, seed=int(own), radius=float(reach))
        for own, reach in zip(random.integers(2**62, size=count), radius, strict=True)
    ]
    fastest = math.hypot(2.0 * speed, math.sqrt(2.0 * GRAVITY) if gravity else 0.0)
    stiffness, dt = springs(lumps, fastest)
    rock = elastic(stiffness)
    scene = Scene(gravity=(0.0, 0.0, -GRAVITY if gravity else 0.0), world=((-0.1,) * 3, (1.1,) * 3))
    for axis in range(3):
        for side in (0.0, 1.0):
            normal, foot = np.zeros(3), np.full(3, 0.5)
            normal[axis], foot[axis] = 1.0 - 2.0 * side, side
            scene.add(Plane(normal=tuple(normal)), position=foot, material=rock)
    direction = random.normal(size=(count, 3))
    direction /= np.linalg.norm(direction, axis=1)[:, None]
    velocity = direction * (speed * random.uniform(0.0, 1.0, count) ** (1.0 / 3.0))[:, None]
    scene.fill(lumps, count=count, box=((0.0,) * 3, (1.0,) * 3), velocity=velocity, material=rock, seed=seed)
    title = f"cube, {count:,} lumps of {2 * points - 4} triangles fly about" + (" and fall" if gravity else "")
    return Ready(scene, DEM(law="halo", integrator="symplectic"), dt, 0.5, 0.01, title)


def springs(lumps, fastest):
    """Stiffness [N/m] that stops any two lumps at a speed [m/s] within half of their halos, and a step [s] for it."""
    mass, halo = (
        np.array(column) for column in zip(*[(2500.0 * lump.volume, lump.epsilon) for lump in lumps], strict=True)
    )
    # Against a wall, where all of the mass and one halo count: the heaviest for its halo decides.
    stiffness = float((mass * (fastest / (0.5 * halo)) ** 2).max())
    # A twenty-fifth of the time that the lightest two take to part; several contacts of a pair add their springs.
    return stiffness, 0.04 * math.pi * math.sqrt(0.5 * float(mass.min()) / stiffness)

"""Meshes as walls: a triangulated plane is a plane, a triangulated drum gives no energy away."""

import math

import numpy as np
import pytest
from scipy.spatial import Delaunay

import clast
from clast import measure

G = 9.81
RADIUS = 0.01


def random_plane(seed):
    """A flat square of 0.4 m by 0.1 m, cut into about 600 triangles at random."""
    random = np.random.default_rng(seed)
    inner = random.uniform((-0.05, -0.05), (0.35, 0.05), (300, 2))
    rim = [(x, y) for x in np.linspace(-0.05, 0.35, 5) for y in (-0.05, 0.05)]
    points = np.vstack([inner, rim])
    vertices = np.column_stack([points, np.zeros(len(points))])
    triangles = Delaunay(points).simplices
    # Facing both ways at random: a wall of triangles is felt from either side.
    flip = random.random(len(triangles)) < 0.5
    triangles[flip] = triangles[flip][:, ::-1]
    return clast.MeshWall(vertices, triangles)


def ride(wall, velocity, spin, friction, steps, rolling=0.0):
    """Positions, velocities, spins and forces of a sphere that moves over a wall at z = 0, after every step."""
    material = clast.Material(young=1e8, friction=friction, restitution=0.5, rolling_friction=rolling)
    scene = clast.Scene(gravity=(0, 0, -G))
    scene.add(wall, material=material)
    young = material.young / (2 * (1 - material.poisson**2))
    weight = G * material.density * 4 / 3 * math.pi * RADIUS**3
    depth = (0.75 * weight / (young * math.sqrt(RADIUS))) ** (2 / 3)
    scene.add(
        clast.Sphere(RADIUS), position=(0, 0.003, RADIUS - depth), velocity=velocity, spin=spin, material=material
    )
    sim = clast.Simulation(scene, clast.DEM())
    rows = []
    for _ in range(steps):
        sim.step()
        state = sim.state.bodies
        row = int(np.nonzero(state.number == 1)[0][0])
        columns = (state.position, state.velocity, state.spin, state.force)
        rows.append(np.concatenate([column[row] for column in columns]))
    assert len(sim.contacts().gap) == 1
    return np.array(rows), weight


@pytest.mark.parametrize(
    ("velocity", "spin", "friction", "rolling"),
    [
        ((0.5, 0.05, 0.0), (0.0, 0.0, 0.0), 0.2, 0.0),
        ((0.5, 0.05, 0.0), (-5.0, 50.0, 0.0), 0.2, 0.0),
        ((0.5, 0.05, 0.0), (-5.0, 50.0, 0.0), 0.5, 0.05),
        ((0.3, 0.0, 0.0), (0.0, -40.0, 0.0), 0.4, 0.0),
        ((0.5, 0.05, 0.0), (0.0, 0.0, 0.0), 0.0, 0.0),
    ],
    ids=["slide-to-roll", "rolling", "rolling-resistance", "back-spin", "frictionless"],
)
def test_triangulated_plane_is_a_plane(velocity, spin, friction, rolling):
    flat, weight = ride(clast.Plane(), velocity, spin, friction, 3000, rolling)
    mesh, _ = ride(random_plane(1), velocity, spin, friction, 3000, rolling)
    path = np.linalg.norm(np.diff(flat[:, :3], axis=0), axis=1).sum()
    assert path > RADIUS
    assert np.abs(mesh[:, :3] - flat[:, :3]).max() < 1e-4 * path
    assert np.abs(mesh[:, 3:6] - flat[:, 3:6]).max() < 1e-4 * np.linalg.norm(velocity)
    assert np.abs(mesh[:, 9:] - flat[:, 9:]).max() < 1e-4 * weight
    # Whatever jumps in the force when an edge is crossed is in the difference to the plane.
    jump = np.abs(np.diff(mesh[:, 9:] - flat[:, 9:], axis=0)).max()
    assert jump < 1e-6 * weight


def drum(radius, width, facets):
    """A lying cylinder about y, open at its ends, of flat facets."""
    angle = np.arange(facets) * 2 * math.pi / facets
    ring = np.column_stack([radius * np.cos(angle), np.zeros(facets), radius * np.sin(angle)])
    vertices = np.vstack([ring - (0, width / 2, 0), ring + (0, width / 2, 0)])
    next_one = (np.arange(facets) + 1) % facets
    first = np.column_stack([np.arange(facets), next_one, np.arange(facets) + facets])
    second = np.column_stack([next_one, next_one + facets, np.arange(facets) + facets])
    return clast.MeshWall(vertices, np.vstack([first, second]))


@pytest.mark.parametrize("friction", [0.0, 0.4])
def test_no_energy_from_a_drum_of_facets(friction):
    """An elastic sphere swings in a fixed drum of 360 facets; its energy may fall by friction but never rise."""
    material = clast.Material(young=1e8, friction=friction, restitution=1.0)
    scene = clast.Scene(gravity=(0, 0, -G))
    scene.add(drum(0.1, 0.1, 360), material=material)
    angle = 0.8
    reach = 0.1 - RADIUS - 2e-6
    place = (reach * math.sin(angle), 0.004, -reach * math.cos(angle))
    scene.add(clast.Sphere(RADIUS), position=place, velocity=(0, 0.02, 0), material=material)
    sim = clast.Simulation(scene, clast.DEM())
    lowest = -scene.bodies.mass[1] * G * reach
    start = measure.energy(sim)["total"] - lowest
    highest, least = 0.0, 1.0
    for _ in range(150):
        sim.step(100)
        now = (measure.energy(sim)["total"] - lowest) / start
        highest, least = max(highest, now), min(least, now)
    assert highest < 1.0 + 1e-4
    assert least > (1.0 - 1e-3 if friction == 0.0 else 0.5)
    assert abs(sim.bodies.position[1, 1]) < 0.06

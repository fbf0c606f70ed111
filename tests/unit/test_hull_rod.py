"""Convex polyhedra against solid cylinders: every gap with a proof, the least way out, and a rock that meets a rim."""

import math

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import clast
from clast.narrow.polyhedron_cylinder import hull_cylinder
from clast.narrow.polyhedron_plane import WIDTH
from clast.shapes.polyhedron import Polyhedron

SOLIDS = [
    Polyhedron.box(1.0, 0.7, 0.4),
    Polyhedron(np.vstack([np.eye(3), -np.eye(3)])),
    Polyhedron.random(faces=14, seed=3, radius=1.0),
    Polyhedron([(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1)]),
    Polyhedron.box(2.0, 0.03, 0.02),
]


def touch(solid, c, axis, radius, half_length, margin=np.inf):
    """Contact points (c,8), the deepest first."""
    work = np.full(WIDTH, np.nan)
    where = tuple(map(float, c)), tuple(map(float, axis))
    count = hull_cylinder(0, 1.0, solid.hull, *where, radius, half_length, -1.0, margin, work)
    return work[: 8 * count].reshape(-1, 8)


def separation(n, corners, c, axis, radius, half_length):
    """How far both are apart along unit directions n (k,3), from the polyhedron to the cylinder: bounds from below (k,)."""
    along = n @ axis
    reach = radius * np.linalg.norm(n - along[:, None] * axis, axis=1) + half_length * np.abs(along)
    return n @ c - reach - (n @ corners.T).max(1)


def unit(x):
    return x / np.linalg.norm(x, axis=-1, keepdims=True)


def random_rod(random):
    """Centre, axis, radius and half length."""
    axis, c = unit(random.normal(size=(2, 3)))
    return c * random.uniform(0.1, 2.2), axis, *random.uniform(0.05, 0.8, 2)


def test_signed_distances_have_a_proof():
    """A plane between both along the normal is a bound from below; apart, a pair of points is one from above."""
    random = np.random.default_rng(1)
    cloud = unit(random.normal(size=(2000, 3)))
    apart = 0
    for i in range(1500):
        solid, (c, axis, radius, half_length) = SOLIDS[i % 5], random_rod(random)
        found = touch(solid, c, axis, radius, half_length)
        gap, n, x = found[0, 3], found[0, 4:7], found[0, :3]
        rod = solid.vertices, c, axis, radius, half_length
        assert np.linalg.norm(n) == pytest.approx(1.0, abs=1e-12)
        assert separation(n[None], *rod)[0] == pytest.approx(gap, abs=1e-11)
        assert (solid.hull.normal.T @ x - solid.hull.offset).max() < 1e-9
        assert found[:, 3].min() == gap
        if gap > 0.0:
            apart += 1
            y = x + gap * n - c
            off = np.linalg.norm(y - y @ axis * axis) - radius
            assert max(off, abs(y @ axis) - half_length) < 2e-8
        else:
            # No direction of a cloud, and none near the one that was found, is a shorter way out.
            near = unit(n + random.normal(size=(300, 3)) * 10.0 ** random.uniform(-9, -1, (300, 1)))
            every = np.vstack([cloud, near, solid.hull.normal.T])
            assert separation(every, *rod).max() < gap + 1e-12
    assert 500 < apart < 1200


def test_axes_along_edges_and_diagonals():
    """Where slopes vanish exactly and several ways out are equally short."""
    random = np.random.default_rng(6)
    cloud, cube = unit(random.normal(size=(2000, 3))), Polyhedron.box(1.0, 1.0, 1.0)
    axes = unit(np.vstack([np.eye(3), [(1, 1, 0), (1, 0, 1), (1, 1, 1)]]))
    for i in range(1000):
        solid, axis = (cube, SOLIDS[1], SOLIDS[3])[i % 3], axes[random.integers(6)]
        c = random.integers(-5, 6, 3) / 4
        radius, half_length = random.integers(1, 4, 2) / 4
        found = touch(solid, c, axis, radius, half_length)
        gap, n = found[0, 3], found[0, 4:7]
        rod = solid.vertices, c, axis, radius, half_length
        assert separation(n[None], *rod)[0] == pytest.approx(gap, abs=1e-12)
        assert separation(cloud, *rod).max() <= gap + 1e-12


def test_an_edge_across_the_rim():
    """A box with an edge over the rim, along the tangent or turned about the normal: half a millimetre above, on it and inside.

    Inside, an edge along the tangent has a shorter way out, through the end or the mantle.
    """
    box = Polyhedron.box(0.1, 0.1, 0.1)
    n = np.array([-1.0, 0.0, -1.0]) / np.sqrt(2.0)  # from the box into the rim at +x, +z
    for tip in (0.0, 0.3, 1.3, np.pi / 2):
        for gap in (5e-4, 1e-6, -1e-6, -5e-4) if tip > 1.0 else (5e-4, 1e-6):
            pose = Rotation.from_rotvec(tip * n)
            centre = np.array([0.2, 0.0, 0.3]) - (gap + np.sqrt(0.005)) * n
            back = pose.inv()
            found = touch(box, back.apply(-centre), back.apply([0, 0, 1.0]), 0.2, 0.3, margin=1e-3)
            assert found[0, 3] == pytest.approx(gap, abs=1e-12)
            assert pose.apply(found[0, 4:7]) == pytest.approx(n, abs=1e-6)
            assert pose.apply(found[0, :3]) + centre == pytest.approx([0.2, 0, 0.3] - gap * n, abs=1e-6)


def test_an_endless_rod_is_a_long_one():
    random = np.random.default_rng(2)
    for i in range(200):
        c, axis, radius, _ = random_rod(random)
        endless, long = (touch(SOLIDS[i % 5], c, axis, radius, x)[0] for x in (np.inf, 100.0))
        assert endless[3:7] == pytest.approx(long[3:7], abs=1e-12)


def test_the_gap_has_no_jumps_on_the_way_through_a_rod():
    random = np.random.default_rng(3)
    for i in range(20):
        c, axis, radius, half_length = random_rod(random)
        path = np.linspace(1.5 * unit(c), -1.5 * unit(c), 400) + 0.1 * random.normal(size=3)
        gaps = [touch(SOLIDS[i % 5], x, axis, radius, half_length)[0, 3] for x in path]
        assert np.abs(np.diff(gaps)).max() <= np.linalg.norm(path[1] - path[0]) * (1.0 + 1e-9)


def test_a_hundred_thousand_poses_have_numbers():
    random, many = np.random.default_rng(4), 100_000
    work, hull, all_of = np.zeros(WIDTH), [solid.hull for solid in SOLIDS], np.arange(many)
    axis, c = unit(random.normal(size=(2, many, 3)))
    c *= random.uniform(0.1, 2.2, (many, 1))
    axis[::7] = np.eye(3)[all_of[::7] % 3]
    c[::5] = np.round(c[::5], 1)
    rods = zip(c.tolist(), axis.tolist(), random.uniform(0.05, 0.8, (many, 2)).tolist(), strict=True)
    for i, (place, along, (radius, half_length)) in enumerate(rods):
        where = tuple(place), tuple(along), radius, half_length
        count = hull_cylinder(0, 1.0, hull[i % 5], *where, -1.0, np.inf, work)
        assert 1 <= count <= 4
        assert math.isfinite(sum(work[: 8 * count].tolist()))


def test_a_rock_thrown_at_a_rim_keeps_its_energy():
    rock = clast.Material(density=2500, young=1e8, friction=0.0, restitution=1.0)
    scene = clast.Scene(gravity=(0, 0, 0))
    scene.add(clast.Cylinder(0.04, 0.2, axis=(3, 5, 8), inside=False), material=rock)
    turn = np.array([-0.3407986, -0.0913535, 0.8699026, 0.3446451])
    scene.add(
        Polyhedron.random(faces=14, seed=3, radius=0.06),
        position=(-0.1158916, -0.0270345, -0.0746929),
        orientation=turn / np.linalg.norm(turn),
        velocity=(0.1917566, -0.0563548, 0.0073167),
        material=rock,
    )
    sim = clast.Simulation(scene, clast.DEM(law="hertz"), dt=4e-6)
    start = clast.measure.energy(sim)["total"]
    sim.step(7500)
    energy = clast.measure.energy(sim)
    assert energy["elastic"] == 0.0
    assert energy["rotational"] > 0.1 * start
    assert energy["total"] == pytest.approx(start, rel=5e-3)

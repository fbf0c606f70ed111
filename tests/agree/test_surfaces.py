"""Contacts of triangulated particles by different roads: trees and brute force, order of bodies, place, broad phases."""

import numpy as np
import pytest

import clast
from clast.broad.search import periodic_box
from clast.kernels.vec import quat_multiply, rotation_matrices
from clast.narrow.mesh_candidates import find_candidates
from clast.narrow.mesh_points import empty_measured, measure_candidates
from clast.narrow.mesh_pose import make_setting
from clast.narrow.order import come_second
from clast.scene.stacking import make_trees

STORED = ["torus.obj", "lump.obj", "cup.obj"]
PUBLISHED = ["mujoco/torus.obj", "parry_tests/low_poly_bunny.obj", "chrono_rocks/regolith_particle_1.obj"]


def the_same(a, b):
    """Gaps equal to the bit; where surfaces cross, to the billionths by which faces that look at each other go before others."""
    return bool(((a == b) | ((a < 0.0) & (np.abs(a - b) <= 3e-9 * np.abs(a)))).all())


def unit(rng, size=3):
    """A random unit vector."""
    x = rng.normal(size=size)
    return x / np.linalg.norm(x)


def lumps(count, seed=0, width=2.2, **world):
    """Random lumps at random places; returns the scene."""
    rng = np.random.default_rng(seed)
    molds = [clast.Mesh.random(20 + 3 * k, seed=k) for k in range(3)]
    scene = clast.Scene(**world)
    for k in range(count):
        scene.add(
            molds[k % 3],
            position=rng.uniform(-width, width, 3),
            orientation=unit(rng, 4),
            scale=rng.uniform(0.5, 1.5),
        )
    return scene


def tables_of(scene):
    """The five tables, and those of surfaces and the periodic box."""
    bodies = scene.bodies
    trees = make_trees(scene.parts, scene.hulls, scene.surfaces)
    return (bodies, scene.shapes(bodies), scene.parts, scene.meshes, scene.hulls), trees, periodic_box(scene)


def points_of(scene, pair, margin):
    """Pair, triangles and MeasuredPoints of all candidates with an overlap, and how many candidates there are."""
    tables, surfaces, box = tables_of(scene)
    setting = make_setting(tables, surfaces, pair, box)
    candidates = find_candidates(setting, surfaces, margin)
    measured = empty_measured(len(candidates.first))
    measure_candidates(setting, surfaces, candidates, "brute", 0.0, measured)
    owner = np.repeat(np.arange(len(pair)), np.diff(candidates.start))
    keep = measured.gap < 0.0
    return [column[keep] for column in (owner, candidates.first, candidates.second, *measured)], len(keep)


def near_pairs(scene):
    """All pairs of a scene of single shapes (p,2)."""
    return np.array(np.triu_indices(len(scene.bodies.number), 1), np.int32).T.copy()


@pytest.mark.parametrize(
    "world", [{}, {"world": ((-2.5, -2.5, -2.5), (2.5, 2.5, 2.5)), "periodic": (True, True, False)}]
)
def test_trees_find_what_brute_force_finds(world):
    """To the bit and in the same order, with any margin."""
    scene = lumps(14, **world)
    pair = near_pairs(scene)
    every, most = points_of(scene, pair, np.inf)
    assert len(every[0]) > 100
    for margin in (0.0, 0.2):
        found, count = points_of(scene, pair, margin)
        assert count < 0.05 * most
        for a, b in zip(every, found, strict=True):
            assert np.array_equal(a, b)


@pytest.mark.parametrize("name", STORED)
def test_meshes_with_dents(own_data, name):
    check_dents(own_data / "meshes" / name)


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_meshes_with_dents(reference_data, name):
    check_dents(reference_data / "meshes" / name)


def check_dents(path):
    """The least distance and the contacts of meshes with holes, ears and dents are those of brute force."""
    shape = clast.load_mesh(path, shape="mesh")
    shape = clast.Mesh(shape.vertices / np.abs(shape.vertices).max(), shape.triangles, epsilon=0.02)
    rng = np.random.default_rng(1)
    scene = clast.Scene()
    for k in range(4):
        scene.add(shape, position=(10.0 * k, 0.0, 0.0), orientation=unit(rng, 4))
        scene.add(
            shape,
            position=(10.0 * k, 0.0, 0.0) + unit(rng) * (0.9, 1.2, 1.6, 2.5)[k],
            orientation=unit(rng, 4),
            scale=0.7,
        )
    pair = np.arange(8, dtype=np.int32).reshape(-1, 2)
    every, _ = points_of(scene, pair, np.inf)
    found, _ = points_of(scene, pair, 0.0)
    for a, b in zip(every, found, strict=True):
        assert np.array_equal(a, b)
    tables, surfaces, box = tables_of(scene)
    setting = make_setting(tables, surfaces, pair, box)
    candidates = find_candidates(setting, surfaces, np.inf)
    measured = empty_measured(len(candidates.first))
    measure_candidates(setting, surfaces, candidates, "brute", 0.0, measured)
    c = clast.find_contacts(scene, pairs=pair, margin=np.inf)
    least = np.minimum.reduceat(measured.gap, candidates.start[:-1])
    assert len(c.gap) == 4 and c.gap[3] > 0.0
    assert the_same(c.gap, least)


def test_least_distance_of_lumps():
    """Of every pair, apart or crossing, that of brute force to the bit; one row a pair, in the order of the list."""
    scene = lumps(14, seed=5, width=2.0)
    pair = near_pairs(scene)[::-1].copy()
    tables, surfaces, box = tables_of(scene)
    # Two meshes are looked at in an order of their own, whoever was given first.
    looked = np.where(come_second(tables[1], pair)[:, None], pair[:, ::-1], pair)
    setting = make_setting(tables, surfaces, looked, box)
    candidates = find_candidates(setting, surfaces, np.inf)
    measured = empty_measured(len(candidates.first))
    measure_candidates(setting, surfaces, candidates, "brute", 0.0, measured)
    c = clast.find_contacts(scene, pairs=pair, margin=np.inf)
    assert np.array_equal(np.sort(c.pair, 1), np.sort(pair, 1))
    assert the_same(c.gap, np.minimum.reduceat(measured.gap, candidates.start[:-1]))
    assert (c.gap > 0.0).sum() > 20 and (c.gap < 0.0).sum() > 5


def test_broad_phases_agree():
    """Lumps, spheres and walls in one scene."""
    scene = lumps(20, seed=2)
    rng = np.random.default_rng(3)
    for _ in range(12):
        scene.add(clast.Sphere(0.3), position=rng.uniform(-2.2, 2.2, 3))
    scene.add(clast.Plane(), position=(0.0, 0.0, -2.0))
    corners = np.array([[-3, -3, 2], [3, -3, 2], [3, 3, 2], [-3, 3, 2]], float)
    scene.add(clast.MeshWall(corners, [[0, 1, 2], [0, 2, 3]]))
    scene.add(clast.Cylinder(2.6))
    every = clast.find_contacts(scene, broad="all-pairs")
    kinds = scene.shapes(scene.bodies).kind
    assert len({tuple(sorted(k)) for k in kinds[every.pair].tolist()}) >= 6
    for broad in ("bins", "boxes", "spacetree"):
        for a, b in zip(every, clast.find_contacts(scene, broad=broad), strict=True):
            assert np.array_equal(a, b)
    for a, b in zip(every, clast.find_contacts(scene, tree=False), strict=True):
        assert np.array_equal(a, b)
    loose = clast.find_contacts(scene, sort=False)
    order = np.lexsort((loose.gap, loose.pair[:, 1], loose.pair[:, 0]))
    rank = np.lexsort((every.gap, every.pair[:, 1], every.pair[:, 0]))
    assert np.array_equal(loose.gap[order], every.gap[rank])


def test_order_and_place_do_not_matter():
    """Bodies added the other way round have the opposite normal; a scene turned and moved has the same gaps."""
    rng = np.random.default_rng(7)
    shape, other = clast.Mesh.random(30, seed=1), clast.Mesh.random(40, seed=2)
    q, turn, shift = unit(rng, 4), unit(rng, 4), rng.normal(size=3)
    x = 2.05 * unit(rng)
    matrix = rotation_matrices([turn])[0]
    scenes = [clast.Scene() for _ in range(3)]
    scenes[0].add(shape)
    scenes[0].add(other, position=x, orientation=q)
    scenes[1].add(other, position=x, orientation=q)
    scenes[1].add(shape)
    scenes[2].add(shape, position=shift, orientation=turn)
    scenes[2].add(other, position=shift + matrix @ x, orientation=quat_multiply(tuple(turn), tuple(q)))
    first, second, moved = (clast.find_contacts(scene, pairs=[(0, 1)], margin=np.inf) for scene in scenes)
    assert first.gap[0] > -0.99 * (shape.epsilon + other.epsilon)
    assert second.gap == pytest.approx(first.gap, abs=1e-14)
    assert second.normal == pytest.approx(-first.normal, abs=1e-9)
    assert second.point == pytest.approx(first.point, abs=1e-9)
    assert moved.gap == pytest.approx(first.gap, abs=1e-13)
    assert moved.normal[0] == pytest.approx(matrix @ first.normal[0], abs=1e-9)
    assert moved.point[0] == pytest.approx(shift + matrix @ first.point[0], abs=1e-9)


def test_points_keep_their_distance():
    """No two contact points of a pair are one and the same."""
    scene = lumps(14, seed=4)
    c = clast.find_contacts(scene)
    assert len(c.gap) > 20
    bodies = scene.bodies
    edges = scene.surfaces.shortest[scene.parts.feature[bodies.mold]] * bodies.scale
    for pair in np.unique(c.pair, axis=0):
        point = c.point[(c.pair == pair).all(1)]
        apart = np.linalg.norm(point[:, None] - point[None], axis=2)[np.triu_indices(len(point), 1)]
        # Corners over triangles and sides that cross are points of their own, and only those that are the same go.
        assert (apart >= 0.02 * min(edges[pair])).all()

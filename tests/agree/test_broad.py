"""Bins, all pairs and plain NumPy find the same contacts."""

from functools import partial

import numpy as np
import pytest
from roads import ball_gaps, keys, nearest_image, wall_gap

import clast
from clast import Clump, Cylinder, MeshWall, Plane, Quad, Scene, Sphere, find_contacts, load_mesh
from clast.broad.all_pairs import all_pairs
from clast.broad.bins import Crowded, Part, bins, sort_shapes
from clast.broad.search import periodic_box
from clast.narrow.contacts import contacts_among
from clast.tables import FREE, SPHERE

WAND = Clump([(0.0, 0.0, 0.0), (0.09, 0.0, 0.0), (0.15, 0.05, 0.0)], [0.06, 0.05, 0.04])


def balls(position, radius=1.0, **world):
    scene = Scene(**world)
    if len(position):
        scene.add(Sphere(1.0), position=position, scale=radius)
    return scene


def both_ways(scene, margin):
    """The contacts, after checking that both broad phases give the same bits in the documented order."""
    one, two = (find_contacts(scene, margin=margin, broad=broad) for broad in ("bins", "all-pairs"))
    for name, a, b in zip(one._fields, one, two):
        assert np.array_equal(a, b), name
    listed = np.column_stack([keys(one), one.feature])[:, [0, 1, 2, 3, 4]]
    assert np.array_equal(np.lexsort(listed.T[::-1]), np.arange(len(listed)))
    assert (one.pair[:, 0] < one.pair[:, 1]).all()
    assert np.allclose(np.linalg.norm(one.normal, axis=1), 1.0, atol=1e-12)
    return one


def check_balls(scene, margin):
    found = both_ways(scene, margin)
    expected = ball_gaps(scene, margin)
    got = dict(zip(map(tuple, keys(found).tolist()), found.gap))
    # A pair whose gap is the margin itself may fall on either side by rounding.
    doubtful = {key for key, gap in expected.items() if abs(gap - margin) < 1e-12}
    assert set(got) ^ set(expected) <= doubtful
    for key in set(got) & set(expected):
        assert got[key] == pytest.approx(expected[key], abs=1e-12 * (1.0 + abs(expected[key])))
    return found


def clouds():
    rng = np.random.default_rng(3)
    random = rng.random((400, 3)) * 12.0
    cluster = np.concatenate([rng.normal(c, 0.7, (60, 3)) for c in rng.random((5, 3)) * 80.0])
    wide = 10.0 ** rng.uniform(-3.0, 0.0, 500)
    sizes = rng.random((500, 3)) * 6.0
    stray = np.concatenate([random[:200], [[1e6, -3.0, 2.0]]])
    huge = np.concatenate([random[:300], [[6.0, 6.0, 6.0]]])
    return {
        "random": (random, 1.0),
        "sizes 1:1000": (sizes, wide),
        "clusters": (cluster, rng.uniform(0.2, 0.6, 300)),
        "coincident": (np.repeat(random[:40], 3, axis=0), 0.3),
        "all in one place": (np.zeros((30, 3)), 0.5),
        "stray": (stray, 0.8),
        "huge": (huge, np.append(np.full(300, 0.3), 9.0)),
        "flat": (random * (1.0, 1.0, 0.0), 0.4),
        "row": (random[:300] * (1.0, 0.0, 0.0), 0.02),
        "two": (np.array([[0.0, 0.0, 0.0], [1.9, 0.0, 0.0]]), 1.0),
        "one": (np.zeros((1, 3)), 1.0),
        "none": (np.zeros((0, 3)), 1.0),
    }


@pytest.mark.parametrize("margin", [0.0, 0.13, 5.0])
@pytest.mark.parametrize("name", clouds())
def test_spheres(name, margin):
    position, radius = clouds()[name]
    check_balls(balls(position, radius), margin)


@pytest.mark.parametrize("length", [1.0, 1.05, 1.6, 2.2, 3.3, 9.0])
@pytest.mark.parametrize("margin", [0.0, 0.1])
def test_periodic(length, margin):
    """Boxes of one, two, three and many bins, and one axis that is not periodic."""
    rng = np.random.default_rng(int(10 * length))
    size = np.array([length, 1.3 * length, length])
    for periodic in ((True, True, True), (True, False, True), (False, True, False)):
        position = rng.random((150, 3)) * size - 0.4 * size
        scene = balls(position, rng.uniform(0.02, 0.24, 150), world=(-0.4 * size, 0.6 * size), periodic=periodic)
        found = check_balls(scene, margin)
        assert len(found.gap) > 0 or length > 4.0


@pytest.mark.parametrize("wide", [3.0, 1e3, 1e7])
def test_few_in_a_wide_periodic_world(wide):
    """Bins must not become as many as the room has, however dilute it is."""
    rng = np.random.default_rng(1)
    position = np.concatenate([rng.random((40, 3)) * wide, [[1e-4, 1e-4, 1e-4], [wide - 1e-3, wide - 1e-3, 1e-4]]])
    scene = balls(position, 2e-3, world=((0.0,) * 3, (wide,) * 3), periodic=(True, True, True))
    grid, _, _ = sort_shapes(scene.shapes(), np.zeros(42, np.int32), periodic_box(scene), 0.0)
    assert grid.first[-1] <= len(grid.radius) * (2 * 42 + 64)
    assert keys(check_balls(scene, 0.0)).tolist() == [[40, 41, 0, 0]]


@pytest.mark.parametrize("edge", [40.3, 157.9])
@pytest.mark.parametrize("periodic", [(True, True, True), (True, False, True)])
def test_bins_of_a_part_of_a_periodic_world_are_as_narrow_as_its_bodies(edge, periodic):
    """Folded onto each other, not widened: a search in a box of a large scene would look at all that is there."""
    rng = np.random.default_rng(6)
    for corner in (0.0, 0.31 * edge):
        position = (corner + rng.random((500, 3)) * 5.0 - 2.5) % edge  # around the corner of the world, or far from it
        scene = balls(position, rng.uniform(0.15, 0.3, 500), world=((0.0,) * 3, (edge,) * 3), periodic=periodic)
        shapes, box, tag = scene.shapes(), periodic_box(scene), np.arange(500, dtype=np.int32)
        known = Part(True, None, 2.0)
        grid, order, _ = sort_shapes(shapes, tag, box, 0.02, known)
        assert grid.first[-1] <= len(grid.radius) * (2 * 500 + 64)
        width = 2.0 * grid.radius[:, None] + 0.02
        assert (width * grid.inverse <= 1.0).all() and (width * grid.inverse > 0.75).all()
        # As many bins as shapes at the least are in use, as if the world had the size of the part.
        assert np.diff(order.start)[:-1].max() < 25
        found = (np.sort(search(shapes, tag, box, 0.02), axis=1) for search in (partial(bins, part=known), all_pairs))
        one, two = (pairs[np.lexsort(pairs.T[::-1])] for pairs in found)
        assert len(one) > 300 and np.array_equal(one, two)
        with pytest.raises(Crowded):
            bins(shapes, tag, box, 0.02, Part(True, len(one) - 1, 0.0))


def test_clumps():
    rng = np.random.default_rng(5)
    for world in ({}, {"world": ((0.0,) * 3, (0.8,) * 3), "periodic": (True, True, False)}):
        scene = Scene(**world)
        turns = rng.normal(size=(60, 4))
        scene.add(WAND, position=rng.random((60, 3)) * 0.8, orientation=turns, scale=rng.uniform(0.5, 1.0, 60))
        scene.add(Sphere(0.05), position=rng.random((40, 3)) * 0.8)
        scene.add(WAND, position=rng.random((10, 3)) * 0.8, orientation=turns[:10])
        found = check_balls(scene, 0.01)
        assert len(found.gap) > 100


@pytest.fixture(params=["stored", "published"])
def wall_meshes(request):
    """Two meshes as walls, one with a hole and one with dents."""
    if request.param == "stored":
        files = [request.getfixturevalue("own_data") / "meshes" / name for name in ("torus.obj", "lump.obj")]
    else:
        folder = request.getfixturevalue("reference_data") / "meshes"
        files = [folder / "mujoco" / "torus.obj", folder / "parry_tests" / "low_poly_bunny.obj"]
    return [load_mesh(file) for file in files]


def walled(periodic, wall_meshes):
    """One scene with every kind of wall, and spheres of many sizes everywhere."""
    rng = np.random.default_rng(8)
    world = {"world": ((-1.0,) * 3, (1.0,) * 3), "periodic": (True, True, False)} if periodic else {}
    scene = Scene(**world)
    turn = (0.9, 0.1, -0.3, 0.2)
    scene.add(Plane(), position=(0.3, 0.2, -0.8))
    scene.add(Cylinder(0.4, inside=False), position=(0.9, 0.3, 0.0))
    scene.add(Cylinder(0.9, axis=(0.0, 0.0, 1.0)), position=(0.1, 0.0, 0.0))
    scene.add(Cylinder(0.3, 0.7, axis=(1.0, 0.0, 0.0)), position=(0.8, 0.1, 0.2), orientation=turn, scale=1.2)
    scene.add(Cylinder(0.2, 0.5, inside=False), position=(-0.9, -0.9, 0.1), orientation=turn, scale=0.7)
    scene.add(Quad([(-0.3, -0.3, 0.0), (0.4, -0.3, 0.0), (0.3, 0.3, 0.0), (-0.3, 0.3, 0.0)]), position=(0.9, 0.0, 0.1))
    scene.add(Sphere(0.1), position=rng.uniform(-1.0, 1.0, (150, 3)), scale=10.0 ** rng.uniform(-1.0, 0.2, 150))
    for mesh, place in zip(wall_meshes, ((0.8, 0.0, 0.3), (-0.5, -0.5, -0.2))):
        width = float(np.ptp(mesh.vertices, axis=0).max())
        scene.add(mesh, position=place, orientation=turn, scale=0.8 / width)
    scene.add(WAND, position=rng.uniform(-1.0, 1.0, (40, 3)), orientation=rng.normal(size=(40, 4)))
    return scene


@pytest.mark.parametrize("periodic", [False, True])
@pytest.mark.parametrize("margin", [0.0, 0.03])
def test_walls(periodic, margin, wall_meshes):
    scene = walled(periodic, wall_meshes)
    found = both_ways(scene, margin)
    shapes, bodies = scene.shapes(), scene.bodies
    sphere = np.nonzero(shapes.kind == SPHERE)[0]
    first = np.searchsorted(shapes.body, np.arange(len(bodies.number)))
    met = 0
    for wall in np.nonzero(bodies.motion != FREE)[0]:
        gap = wall_gap(scene, sphere, wall)
        mine = (found.pair == bodies.number[wall]).any(1)
        side = (found.pair[mine, 0] == bodies.number[wall]).astype(int)
        rows = np.arange(len(side))
        body = np.searchsorted(bodies.number, found.pair[mine][rows, side])
        row = np.searchsorted(sphere, first[body] + found.shape[mine][rows, side])
        least = np.full(len(sphere), np.inf)
        np.minimum.at(least, row, found.gap[mine])
        sure = np.abs(gap - margin) > 1e-9
        assert np.array_equal((least <= margin)[sure], (gap <= margin)[sure]), scene.names[bodies.mold[wall]]
        both = (least <= margin) & (gap <= margin)
        assert np.allclose(least[both], gap[both], atol=1e-9), scene.names[bodies.mold[wall]]
        met += int(both.sum())
    assert met > 100


def test_listed_pairs_are_batched_distances():
    rng = np.random.default_rng(4)
    position = rng.random((80, 3)) * 9.0
    radius = rng.uniform(0.1, 1.0, 80)
    for world in ({}, {"world": ((0.0,) * 3, (9.0,) * 3), "periodic": (True, False, True)}):
        scene = balls(position, radius, **world)
        pairs = rng.integers(0, 80, (300, 2))
        pairs = pairs[pairs[:, 0] != pairs[:, 1]]
        found = find_contacts(scene, pairs=pairs, margin=np.inf)
        d = nearest_image(position[pairs[:, 1]] - position[pairs[:, 0]], scene)
        gap = np.linalg.norm(d, axis=1) - radius[pairs[:, 0]] - radius[pairs[:, 1]]
        assert np.allclose(found.gap, gap, atol=1e-12)
        assert np.array_equal(found.pair, np.sort(pairs, axis=1))
        point = scene.bodies.position[found.pair[:, 0]] + found.normal * (radius[found.pair[:, 0]] + 0.5 * gap)[:, None]
        assert np.allclose(found.point, point, atol=1e-12)


def test_listed_pairs_find_what_the_search_finds(wall_meshes):
    scene = walled(True, wall_meshes)
    found = find_contacts(scene, margin=0.02)
    listed = find_contacts(scene, pairs=np.unique(found.pair, axis=0), margin=0.02)
    order = np.lexsort(np.column_stack([keys(listed), listed.feature]).T[::-1])
    assert np.array_equal(keys(listed)[order], keys(found))
    assert np.array_equal(listed.gap[order], found.gap)


def test_one_wall_with_very_many_contacts_is_sorted_too():
    rng = np.random.default_rng(6)
    position = np.column_stack([rng.random((20_000, 2)), np.full(20_000, 0.004)])
    side = np.linspace(0.0, 1.0, 9)
    x, y = np.meshgrid(side, side, indexing="ij")
    vertices = np.column_stack([x.ravel(), y.ravel(), np.zeros(81)])
    a = (np.arange(8)[:, None] * 9 + np.arange(8)).ravel()
    mesh = MeshWall(vertices, np.concatenate([np.stack([a, a + 9, a + 10], 1), np.stack([a, a + 10, a + 1], 1)]))
    scene = Scene()
    scene.add(mesh)
    scene.add(Sphere(0.005), position=position)
    found = find_contacts(scene)
    assert np.array_equal(np.lexsort(keys(found).T[::-1]), np.arange(len(found.gap)))
    assert (found.pair[:, 0] == 0).sum() >= 20_000


def candidates(scene):
    """How many pairs the bins make the search look at, per sphere."""
    shapes = scene.shapes()
    grid, order, bounded = sort_shapes(shapes, np.zeros(len(shapes.radius), np.int32), periodic_box(scene), 0.0)
    load = np.diff(order.start)
    total = 0
    for level in range(len(grid.radius)):
        place = order.ball[:bounded][order.level[:bounded] >= level, :3]
        bins, wrap = grid.bins[level].astype(np.int64), grid.wrap[level]
        b = np.floor((place - grid.origin) * grid.inverse[level]).astype(np.int64)
        b = np.where(wrap, b % bins, np.clip(b, 0, bins - 1))
        for shift in np.ndindex(3, 3, 3):
            step = np.array(shift) - 1
            if (wrap & (((bins == 1) & (step != 0)) | ((bins == 2) & (step < 0)))).any():
                continue
            c = b + step
            valid = (wrap | ((c >= 0) & (c < bins))).all(1)
            c = np.where(wrap, c % bins, np.clip(c, 0, bins - 1))
            row = grid.first[level] + c[:, 0] + bins[0] * (c[:, 1] + bins[1] * c[:, 2])
            total += int(load[row][valid].sum())
    return total / bounded


@pytest.mark.parametrize("sizes", [(1.0,), (1.0, 10.0), (1.0, 10.0, 100.0)])
def test_work_stays_linear(sizes):
    """Eight times as many spheres in eight times the room: as many tests for each. Counted, not timed."""
    rng = np.random.default_rng(2)
    work = []
    for grow in (1, 2):
        count = 4000 * grow**3
        share = np.array(sizes) ** -2.5
        radius = 0.01 * rng.permutation(np.repeat(sizes, np.ceil(count * share / share.sum()).astype(int)))
        room = (4.0 / 3.0 * np.pi * (radius**3).sum() / 0.3) ** (1.0 / 3.0)
        work.append(candidates(balls(rng.random((len(radius), 3)) * room, radius)))
    assert work[1] < 1.5 * work[0]
    assert work[1] < 300.0


def test_a_stray_body_costs_nothing():
    rng = np.random.default_rng(2)
    position = rng.random((3000, 3))
    alone = candidates(balls(position, 0.03))
    with_stray = candidates(balls(np.concatenate([position, [[1e6, 1e6, 1e6]]]), 0.03))
    assert with_stray < 4.0 * alone + 50.0


def test_results_do_not_share_memory_with_the_scene():
    scene = balls(np.array([[0.0, 0.0, 0.0], [1.5, 0.0, 0.0]]))
    found = clast.find_contacts(scene)
    found.point[:] = 7.0
    assert scene.bodies.position[0].tolist() == [0.0, 0.0, 0.0]


def test_pairs_name_bodies_by_their_numbers_not_by_their_rows():
    """Of some bodies of a scene, as they are when others have left it."""
    scene = clast.Scene()
    scene.add(clast.Sphere(1.0), position=[(0, 0, 0), (9, 0, 0), (1.5, 0, 0), (4.75, 0, 0), (3.25, 0, 0)])
    left = type(scene.bodies)(*(column[[0, 2, 3, 4]] for column in scene.bodies))
    found = contacts_among(scene, left, 0.0, "bins", "opm", True, pairs=np.array([(2, 0), (3, 2), (3, 4)]))
    assert found.pair.tolist() == [[0, 2], [3, 4]]
    np.testing.assert_allclose(found.gap, [-0.5, -0.5])
    with pytest.raises(ValueError, match="pairs\\[0\\]"):
        contacts_among(scene, left, 0.0, "bins", "opm", True, pairs=np.array([(0, 1)]))

"""The broad phase by a spacetree against all pairs and bins: every variant finds the same pairs, each once."""

import numba
import numpy as np
import pytest
from test_boxes import FREE, clouds, listed, periodic_world, shapes_of, tags
from test_cuda import Threads

from clast import MeshWall, Plane, Scene, Sphere, find_contacts
from clast.broad import spacetree as stages
from clast.broad.all_pairs import all_pairs
from clast.broad.bins import bins
from clast.broad.search import BROAD
from clast.broad.spacetree import VARIANTS, Spacetree
from clast.kernels import backend

WAYS = {variant: Spacetree(variant) for variant in VARIANTS}


def check(shapes, box=FREE, margin=0.0, tag=None, ways=WAYS):
    tag = tags(shapes) if tag is None else tag
    expected = listed(all_pairs(shapes, tag, box, margin))
    if shapes.radius.min(initial=1.0) > 0.0:
        assert np.array_equal(listed(bins(shapes, tag, box, margin)), expected)
    for variant, way in ways.items():
        found = way(shapes, tag, box, margin)
        assert found.dtype == np.int32
        assert np.all(shapes.number[found[:, 0]] < shapes.number[found[:, 1]])
        assert np.array_equal(listed(found), expected), variant
        assert way.comparisons >= len(expected)
    return expected


@pytest.mark.parametrize("name", clouds())
def test_free(name):
    shapes = shapes_of(*clouds()[name])
    for margin in (0.0, 0.25, 5.0):
        check(shapes, margin=margin)


@pytest.mark.parametrize("length", [1.0, 1.05, 1.6, 3.3, 9.0, 1e4])
@pytest.mark.parametrize("axes", [(True, True, True), (True, False, True), (False, True, False)])
def test_periodic(length, axes):
    """Worlds of few and of many cells, and bodies outside them, which are images of others inside."""
    rng = np.random.default_rng(int(10 * length))
    size = np.array([length, 1.3 * length, 7.0 * length])
    box = periodic_world(-0.4 * length, size, axes)
    position = rng.random((250, 3)) * size - 0.4 * length
    position[::3] += size * rng.integers(-2, 3, (84, 3))
    position[:5] = -0.4 * length
    position[5:9, 0] = 0.6 * length
    radius = rng.uniform(0.02, 0.24, 250)
    radius[::50] = 0.7 * length
    for margin in (0.0, 0.1):
        check(shapes_of(position, radius), box, margin)
        check(shapes_of(position, 0.3 * radius), box, margin)


def test_partners_on_the_borders_of_cells_and_levels():
    """Diameters of exactly a cell's edge, centres midway between vertices, pairs that just touch."""
    cube = ((0.0, 0.0, 0.0), 27.0)
    ways = {variant: Spacetree(variant, cube) for variant in VARIANTS}
    grid = np.stack(np.meshgrid(*[np.arange(-1.5, 29.0, 3.0)] * 3, indexing="ij"), -1).reshape(-1, 3)
    rng = np.random.default_rng(0)
    for steps in (0.0, np.nextafter(0.0, 1.0), 1e-9):
        position = np.concatenate([grid, grid + (0.0, 2.0, 0.0)])
        radius = np.concatenate([np.full(len(grid), 1.5), np.full(len(grid), 0.5)]) * (1.0 - steps)
        some = rng.permutation(len(position))[:600]
        check(shapes_of(position[some], radius[some]), ways=ways)
    assert len(check(shapes_of(grid[:200], 1.5), ways=ways)) > 100


def test_rounding_does_not_put_partners_two_vertices_apart():
    """Bodies as wide as a cell that just touch, a few last bits about the middle between two vertices."""
    edge = 0.7
    width = edge / 9.0
    bits = np.arange(-3, 4)
    middle = (np.arange(7) + 0.5) * width
    first = (middle[:, None] + bits * np.spacing(middle)[:, None]).ravel()
    second = first + width
    second = (second[:, None] + bits * np.spacing(second)[:, None]).ravel()
    x = np.concatenate([first, second])
    shapes = shapes_of(np.column_stack([x, 0.0 * x, 0.0 * x]), 0.5 * width)
    check(shapes, ways={variant: Spacetree(variant, ((0.0, 0.0, 0.0), edge)) for variant in VARIANTS})


def test_shapes_of_one_tag_make_no_pair():
    rng = np.random.default_rng(2)
    shapes = shapes_of(rng.random((300, 3)) * 5.0, rng.uniform(0.02, 0.6, 300))
    tag = rng.integers(0, 3, 300).astype(np.int32)
    found = check(shapes, tag=tag)
    assert len(found) > 50 and np.all(tag[found[:, 0]] != tag[found[:, 1]])


def test_more_pairs_than_expected_are_all_found():
    rng = np.random.default_rng(5)
    assert len(check(shapes_of(rng.random((900, 3)), 0.4))) > 2 * stages.GUESS * 900


def test_every_name_finds_the_contacts_of_spheres_with_all_kinds_of_walls():
    rng = np.random.default_rng(8)
    scene = Scene()
    scene.add(Plane(), position=(0.0, 0.0, 0.1))
    scene.add(MeshWall([(0.0, 0.0, 0.0), (1.0, 0.0, 0.1), (0.0, 1.0, 0.3), (0.9, 1.0, 0.5)], [(0, 1, 2), (1, 3, 2)]))
    scene.add(Sphere(0.1), position=rng.random((200, 3)), scale=10.0 ** rng.uniform(-2.0, 0.0, 200))
    expected = find_contacts(scene, margin=0.01, broad="all-pairs")
    names = [name for name in BROAD if name.startswith("spacetree")]
    assert sorted(names) == ["spacetree", "spacetree-adaptive", "spacetree-regular", "spacetree-reluctant"]
    for name in names:
        for field, a, b in zip(expected._fields, expected, find_contacts(scene, margin=0.01, broad=name)):
            assert np.array_equal(a, b), (name, field)


@pytest.mark.parametrize("box", [FREE, periodic_world(0.0, np.full(3, 60.0))], ids=["free", "periodic"])
def test_same_rows_in_the_same_order_for_any_number_of_threads(box):
    rng = np.random.default_rng(8)
    shapes = shapes_of(rng.random((20_000, 3)) * 60.0, 10.0 ** rng.uniform(-2.0, 0.3, 20_000))
    before = numba.get_num_threads()
    for way in (WAYS["adaptive"], WAYS["reluctant"]):
        results = []
        for threads in (1, numba.config.NUMBA_NUM_THREADS):
            numba.set_num_threads(threads)
            results.append(way(shapes, tags(shapes), box, 0.1))
        numba.set_num_threads(before)
        assert len(results[0]) > 1000
        assert np.array_equal(*results)
    assert np.array_equal(listed(results[0]), listed(bins(shapes, tags(shapes), box, 0.1)))


def test_the_path_of_a_cuda_device_finds_the_same():
    rng = np.random.default_rng(9)
    shapes = shapes_of(rng.random((800, 3)) * 9.0, 10.0 ** rng.uniform(-2.0, -0.1, 800))
    box = periodic_world(0.0, np.full(3, 9.0), (True, False, True))
    expected = listed(all_pairs(shapes, tags(shapes), box, 0.05))
    for way in WAYS.values():
        here = way(shapes, tags(shapes), box, 0.05), way.counters
        with backend.use(Threads()):
            there = way(shapes, tags(shapes), box, 0.05), way.counters
        assert np.array_equal(listed(there[0]), expected)
        assert here[1] == there[1]


def sizes(count, rng, ratio=1000.0, fill=0.2):
    """Radii of which every decade down has ten times as many, in a cube where they fill this much."""
    radius = 1.0 / (1.0 - rng.random(count) * (1.0 - 1.0 / ratio))
    room = (4.0 / 3.0 * np.pi * (radius**3).sum() / fill) ** (1.0 / 3.0)
    return shapes_of(rng.random((count, 3)) * room, radius)


def test_work_stays_linear_for_sizes_of_one_to_a_thousand():
    """Sixteen times as many bodies: about as many comparisons for each. Counted, not timed."""
    rng = np.random.default_rng(2)
    for variant, most in (("adaptive", 40.0), ("reluctant", 40.0)):
        work = []
        for count in (3000, 48_000):
            shapes = sizes(count, rng)
            WAYS[variant](shapes, tags(shapes), FREE, 0.0)
            work.append(WAYS[variant].comparisons / count)
        assert work[1] < 2.0 * work[0] + 10.0
        assert work[1] < most
    WAYS["regular"](shapes, tags(shapes), FREE, 0.0)
    assert WAYS["regular"].comparisons > 20.0 * WAYS["adaptive"].comparisons


@pytest.mark.parametrize("box", [FREE, periodic_world(0.0, np.full(3, 1.7))], ids=["free", "periodic"])
def test_cells_fit_bodies_of_similar_size_closely(box):
    """However wide the world is and although there is a large body among them: not up to 27 times the comparisons."""
    rng = np.random.default_rng(3)
    for width in np.geomspace(1.0, 2.9, 5):
        radius = rng.uniform(0.8, 1.0, 3000) * 0.012 * width
        radius[0] = 0.3
        shapes = shapes_of(rng.random((3000, 3)) * 1.7, radius)
        for variant in ("adaptive", "reluctant"):
            found = WAYS[variant](shapes, tags(shapes), box, 0.0)
            expected = 0.5 * 3000**2 * 27.0 * (0.024 * width) ** 3 / 1.7**3 + 3000.0
            assert WAYS[variant].comparisons < (1.6 if box is FREE else 5.0) * expected
            assert np.array_equal(listed(found), listed(bins(shapes, tags(shapes), box, 0.0)))


@pytest.mark.parametrize("place", [3e3, 1e7, 1e12])
@pytest.mark.parametrize("variant", VARIANTS)
def test_a_stray_body_costs_nothing(place, variant):
    rng = np.random.default_rng(7)
    centre = rng.random((3000, 3))
    together, way = shapes_of(np.concatenate([centre, [[place, place, place]]]), 0.03), WAYS[variant]
    way(shapes_of(centre, 0.03), tags(together)[:-1], FREE, 0.0)
    alone = way.comparisons
    found = way(together, tags(together), FREE, 0.0)
    assert np.array_equal(listed(found), listed(bins(together, tags(together), FREE, 0.0)))
    assert way.comparisons < 1.5 * alone
    assert way.lists <= (stages.SHARE * 3001 + 64) + 64 * (stages.DEEPEST + 1)


@pytest.mark.parametrize("tilt", [(1.0, 1.0, 1.0), (1.0, -2.0, 0.3)])
def test_bodies_on_a_tilted_plane_do_not_crowd_the_lists(tilt):
    rng = np.random.default_rng(7)
    across = np.linalg.svd(np.array([tilt]))[2][1:]
    shapes = shapes_of(rng.random((20_000, 2)) @ across * 100.0, 0.2)
    for way in WAYS.values():
        found = way(shapes, tags(shapes), FREE, 0.0)
        assert way.crowd < stages.CROWD
        assert np.array_equal(listed(found), listed(bins(shapes, tags(shapes), FREE, 0.0)))

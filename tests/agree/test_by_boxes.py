"""Contacts box by box are those of the whole scene, each once."""

import numpy as np
import pytest

import clast
from clast.narrow.by_boxes import halve
from clast.tables import Contacts


def together(scene, margin, memory, **how):
    """Contacts of all boxes in the order of `find_contacts`, and how many boxes there were."""
    pieces = list(clast.contacts_by_boxes(scene, margin=margin, memory=memory, **how))
    return in_order(Contacts(*(np.concatenate(column) for column in zip(*pieces)))), len(pieces)


def in_order(found):
    """Contacts in the order of `find_contacts`: a pair stands in one box, and its contacts there in their order."""
    order = np.lexsort((found.shape[:, 1], found.shape[:, 0], found.pair[:, 1], found.pair[:, 0]))
    return Contacts(*(column[order] for column in found))


def same(one, two):
    assert len(one.gap) == len(two.gap)
    for name, a, b in zip(Contacts._fields, one, two):
        assert np.array_equal(a, b), name


def cloud(count, seed, edge, **world):
    rng = np.random.default_rng(seed)
    scene = clast.Scene(**world)
    scene.add(clast.Sphere(1.0), position=rng.random((count, 3)) * edge, scale=rng.uniform(0.3, 1.0, count))
    return scene


@pytest.mark.parametrize("memory", [1e6, 2e5, 2e4])
def test_spheres(memory):
    scene = cloud(3000, 1, (40.0, 20.0, 10.0))
    found, boxes = together(scene, 0.1, memory)
    assert boxes > 2000 * 2000 / memory
    same(found, clast.find_contacts(scene, margin=0.1))


def test_spheres_that_are_not_sorted_have_the_same_bits():
    rng = np.random.default_rng(9)
    for periodic in (False, True):
        scene = clast.Scene(world=((0, 0, 0), (9, 9, 9)), periodic=(periodic,) * 3)
        scene.add(clast.Sphere(1.0), position=rng.random((1500, 3)) * 9.0, scale=rng.uniform(0.2, 0.6, 1500))
        whole = clast.find_contacts(scene)
        same(in_order(clast.find_contacts(scene, sort=False)), whole)
        found, boxes = together(scene, 0.0, 2e5, sort=False)
        assert boxes > 10
        same(found, whole)


def test_one_box_is_the_whole():
    scene = cloud(500, 2, 12.0)
    (found,) = clast.contacts_by_boxes(scene, margin=0.2)
    same(found, clast.find_contacts(scene, margin=0.2))


def test_periodic():
    scene = cloud(2000, 3, 20.0, world=((0, 0, 0), (20, 20, 20)), periodic=(True, False, True))
    found, boxes = together(scene, 0.05, 2e5)
    assert boxes > 10
    same(found, clast.find_contacts(scene, margin=0.05))


def test_walls_and_large_bodies_meet_every_box():
    scene = clast.Scene()
    scene.add(clast.Plane(normal=(0, 0, 1)))
    rng = np.random.default_rng(4)
    scene.add(clast.Sphere(1.0), position=rng.random((1500, 3)) * 20.0, scale=10.0 ** rng.uniform(-1.0, 0.0, 1500))
    # Large ones that hold many of the small ones, and touch the floor and each other.
    scene.add(clast.Sphere(4.0), position=[(5.0, 5.0, 3.9), (12.0, 5.0, 3.9), (12.0, 12.0, 16.0)])
    wand = clast.Clump([(0.0, 0.0, 0.0), (0.9, 0.0, 0.0)], [0.6, 0.5])
    scene.add(wand, position=rng.random((300, 3)) * 20.0)
    scene.add(clast.Quad([(0, 0, 6), (20, 0, 6), (20, 20, 7), (0, 20, 7)]))
    found, boxes = together(scene, 0.0, 2e5)
    assert boxes > 10
    whole = clast.find_contacts(scene)
    assert (whole.pair == 0).any() and (whole.shape > 0).any()
    same(found, whole)


def test_bodies_in_one_place_are_halved_too():
    scene = clast.Scene()
    scene.add(clast.Sphere(0.5), position=np.zeros((40, 3)))
    found, boxes = together(scene, 0.0, 2e4)
    assert boxes > 3
    assert len(found.gap) == 40 * 39 / 2
    same(found, clast.find_contacts(scene))


def test_a_box_with_more_pairs_than_its_memory_holds_is_halved_again():
    scene = cloud(3000, 6, 8.0)
    pieces = list(clast.contacts_by_boxes(scene, memory=2e6))
    assert len(pieces) > 8 > 3000 * 2600 / 2e6
    assert max(len(some.gap) for some in pieces) < 7 * 2e6 / 2600
    same(together(scene, 0.0, 2e6)[0], clast.find_contacts(scene))


def test_parts_of_the_boxes_are_all_of_them_each_once():
    scene = cloud(3000, 7, (30.0, 20.0, 10.0))
    scene.add(clast.Plane())
    scene.add(clast.Sphere(6.0), position=[(5.0, 5.0, 5.0), (15.0, 5.0, 5.0)])
    whole, boxes = together(scene, 0.1, 1e5)
    parts = [list(clast.contacts_by_boxes(scene, margin=0.1, memory=1e5, share=(k, 3))) for k in range(3)]
    assert sum(map(len, parts)) == boxes and min(map(len, parts)) > boxes / 4
    same(in_order(Contacts(*(np.concatenate(column) for column in zip(*sum(parts, []))))), whole)
    assert sum(len(list(clast.contacts_by_boxes(scene, share=(k, 3)))) for k in range(3)) == 1  # more parts than boxes


def test_halving():
    rng = np.random.default_rng(5)
    position, rows = rng.random((1000, 3)), np.arange(100, 1000)
    order, start, _ = halve(position, rows, 60)
    assert sorted(order.tolist()) == rows.tolist()
    assert start[0] == 0 and start[-1] == 900
    assert np.diff(start).min() >= 30 and np.diff(start).max() <= 60


@pytest.mark.parametrize("share", [(2, 2), (-1, 2), (0.5, 2), (0, 0), 3, "ab"])
def test_a_share_that_is_none_is_refused(share):
    scene = clast.Scene()
    scene.add(clast.Sphere(1.0), position=[(0, 0, 0), (1, 0, 0)])
    with pytest.raises(ValueError, match="share = .* must be"):
        clast.contacts_by_boxes(scene, share=share)


def test_wrong_input():
    scene = clast.Scene()
    assert list(clast.contacts_by_boxes(scene)) == []
    for arguments, told in (
        ({"margin": -1.0}, "margin = -1.0"),
        ({"margin": np.inf}, "finite"),
        ({"memory": 0}, "memory = 0.0 must be above 0"),
        ({"broad": "bin"}, "did you mean 'bins'"),
        ({"narrow": "opn"}, "did you mean 'opm'"),
    ):
        with pytest.raises(ValueError, match=told):
            clast.contacts_by_boxes(scene, **arguments)
    with pytest.raises(TypeError, match="must be a clast.Scene"):
        clast.contacts_by_boxes(5)


@pytest.mark.parametrize(
    ("memory", "words"),
    [
        ("abc", "memory must be a number, got 'abc'"),
        (None, "memory must be a number, got None"),
        ([1e7], r"memory must be a number, got \[1"),
        (True, "memory must be a number of bytes, got True"),
        pytest.param(10**400, r"memory must be a number, got 1000*\.\.\.$", id="very many"),
        (float("nan"), "memory must be finite, got nan"),
        (1, "memory = 1 bytes, and a box of 4 bodies of this scene takes 10,400; "),
    ],
)
def test_a_memory_that_is_none_is_refused_with_its_name(memory, words):
    with pytest.raises((ValueError, TypeError), match=f"^contacts_by_boxes: {words}"):
        clast.contacts_by_boxes(cloud(20, 1, 3.0), memory=memory)

"""The distance of two shapes without a scene."""

import numpy as np
import pytest

import clast
from clast import Clump, Ellipsoid, Plane, Polyhedron, Sphere, distance
from clast.narrow.contacts import find_contacts, select

TURN = (1.0, 0.0, 0.0, 0.0)


def test_two_spheres():
    way = np.array([[3.0, 0.0, 0.0], [0.0, 1.5, 0.0], [0.0, 0.0, -2.0]])
    found = distance(Sphere(1.0), (0, 0, 0), Sphere(0.8), way)
    np.testing.assert_allclose(found.gap, [1.2, -0.3, 0.2], atol=1e-15)
    np.testing.assert_allclose(found.normal, way / np.linalg.norm(way, axis=1)[:, None])
    np.testing.assert_allclose(found.first[0], (1.0, 0.0, 0.0))
    np.testing.assert_allclose(found.second[0], (2.2, 0.0, 0.0))
    assert found.contacts.pair.tolist() == [[0, 0], [1, 1], [2, 2]]


def test_a_turned_ellipsoid_over_a_plane():
    """Its lowest point is the semi-axis that points down."""
    half = np.sqrt(0.5)
    found = distance(Ellipsoid(3.0, 2.0, 1.0), ((0, 0, 5), (half, 0, half, 0)), Plane(), (0, 0, 0))
    assert found.gap == pytest.approx([2.0])
    np.testing.assert_allclose(found.normal, [[0, 0, -1]], atol=1e-12)
    np.testing.assert_allclose(found.first, [[0, 0, 2]], atol=1e-9)
    np.testing.assert_allclose(found.second, [[0, 0, 0]], atol=1e-9)


def test_the_nearest_ball_of_a_clump_counts():
    pair = Clump([(-0.4, 0.0, 0.0), (0.4, 0.0, 0.0)], [0.5, 0.5])
    found = distance(pair, (0, 0, 0), Sphere(0.5), (4.0, 0.0, 0.0))
    assert found.gap == pytest.approx([2.6])
    assert len(found.contacts.gap) == 2


def test_points_of_a_patch():
    box = Polyhedron.box(1.0, 1.0, 1.0)
    found = distance(box, (0, 0, 0), box, (0.2, 0.1, 0.99))
    assert found.gap == pytest.approx([-0.01])
    assert len(found.contacts.gap) == 4


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ((Sphere(1.0), (0, 0), Sphere(1.0), (0, 0, 3)), "pose_a must be positions"),
        ((Sphere(1.0), np.zeros((2, 3)), Sphere(1.0), np.ones((3, 3))), "pose_a has 2 rows, others have 3"),
        ((Plane(), (0, 0, 0), Plane(), (0, 0, 1)), "two walls have no distance"),
        ((Sphere(1.0), (0, 0, 0), Sphere(1.0), (0, 0, np.nan)), r"^distance: pose_b: position\[2\] is nan"),
        (
            (Sphere(1.0), (0, 0, 0), Sphere(1.0), ((0, 0, 3), (0, 0, 0, 0))),
            "^distance: pose_b: orientation in row 0 is zero",
        ),
        (
            (Sphere(1.0), [((0, 0, 1), TURN), (0, 0, 2)], Sphere(1.0), (0, 0, 3)),
            "^distance: pose_a must be positions .n,3",
        ),
        ((Sphere(1.0), (0, 0, 0), Sphere(1.0), ["x", 2, 3]), "^distance: pose_b must be positions .n,3"),
        ((Sphere(1.0), np.zeros((0, 3)), Sphere(1.0), np.ones((3, 3))), "pose_b has 3 rows, others have 0"),
    ],
)
def test_wrong_input(given, message):
    with pytest.raises(ValueError, match=message):
        distance(*given)


@pytest.mark.parametrize("pose", [None, "x", 1.0, {}, True])
def test_what_is_no_pose_is_told_in_one_line(pose):
    with pytest.raises(
        TypeError,
        match=r"distance: pose_a must be a position \(3,\), or \(position, orientation\), or n of either, got",
    ):
        distance(Sphere(1.0), pose, Sphere(1.0), (0, 0, 3))


@pytest.mark.parametrize("shape", [3, "x", None, Sphere, [Sphere(1.0), Sphere(2.0)]])
def test_what_is_no_shape_is_told_in_one_line(shape):
    with pytest.raises(TypeError, match=r"^distance: shape_b must be one shape such as clast.Sphere\(0.01\), got"):
        distance(Sphere(1.0), (0, 0, 0), shape, (0, 0, 3))


def test_poses_may_be_pairs_of_position_and_orientation():
    half = np.sqrt(0.5)
    egg, pairs = Ellipsoid(3.0, 2.0, 1.0), [((0, 0, 5), TURN), ((0, 0, 5), (half, 0, half, 0))]
    np.testing.assert_allclose(distance(egg, pairs, Plane(), (0, 0, 0)).gap, [4.0, 2.0])
    np.testing.assert_allclose(distance(egg, pairs[1], Plane(), (0, 0, 0)).gap, [2.0])
    np.testing.assert_allclose(distance(egg, ([(0, 0, 5)] * 2, [TURN] * 2), Plane(), (0, 0, 0)).gap, [4.0, 4.0])
    np.testing.assert_allclose(
        distance(egg, ((0, 0, 5), (half, 0, half, 0)), Plane(), [(0, 0, 0), (0, 0, 1)]).gap, [2.0, 1.0]
    )


@pytest.mark.parametrize("none", [[], np.zeros((0, 3)), (np.zeros((0, 3)), np.zeros((0, 4)))])
def test_of_no_poses_there_is_nothing_to_tell(none):
    for found in (distance(Sphere(1.0), none, Sphere(1.0), (0, 0, 3)), distance(Sphere(1.0), none, Sphere(1.0), none)):
        assert found.gap.shape == found.found.shape == found.contacts.gap.shape == (0,)
        assert found.normal.shape == found.first.shape == found.second.shape == (0, 3)


def test_a_pose_without_a_contact_has_no_numbers_and_the_others_keep_theirs(monkeypatch):
    def without_the_second(*given, **named):
        contacts = find_contacts(*given, **named)
        return select(contacts, contacts.pair[:, 0] != 1)

    monkeypatch.setattr("clast.narrow.distance.find_contacts", without_the_second)
    found = distance(Sphere(1.0), [(0, 0, 3), (0, 0, 4), (0, 0, 5)], Sphere(1.0), (0, 0, 0))
    assert found.found.tolist() == [True, False, True]
    np.testing.assert_array_equal(found.gap, [1.0, np.nan, 3.0])
    for column in (found.normal, found.first, found.second):
        assert np.isnan(column).tolist() == [[False] * 3, [True] * 3, [False] * 3]


def test_it_has_a_name_of_its_own():
    assert "distance" in clast.__all__

"""The distance of two shapes without a scene."""

import numpy as np
import pytest

import clast
from clast import Clump, Ellipsoid, Plane, Polyhedron, Sphere, distance


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
    ],
)
def test_wrong_input(given, message):
    with pytest.raises(ValueError, match=message):
        distance(*given)


@pytest.mark.parametrize("pose", [None, "x", 1.0, [], {}, True, np.zeros((0, 3))])
def test_what_is_no_pose_is_told_in_one_line(pose):
    with pytest.raises(
        TypeError, match=r"distance: pose_a must be a position \(3,\), or \(position, orientation\), got"
    ):
        distance(Sphere(1.0), pose, Sphere(1.0), (0, 0, 3))


def test_it_has_a_name_of_its_own():
    assert "distance" in clast.__all__

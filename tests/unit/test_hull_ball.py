"""A ball against convex polyhedra: closed forms on a cube, projection by brute force, continuity."""

import numpy as np
import pytest
from scipy.optimize import lsq_linear

from clast.narrow.polyhedron_sphere import hull_ball
from clast.scene.stacking import join_molds, make_mold
from clast.shapes.polyhedron import Polyhedron

INSIDE_AND_OUT = 400


def rock(seed, points=25):
    """A random rock: the hull of points on a sphere."""
    x = np.random.default_rng(seed).normal(size=(points, 3))
    return Polyhedron(x / np.linalg.norm(x, axis=1)[:, None])


SOLIDS = {
    "box": Polyhedron.box(1.0, 0.7, 0.4),
    "octahedron": Polyhedron(np.vstack([np.eye(3), -np.eye(3)])),
    "rock": rock(1),
    "needles": Polyhedron(np.random.default_rng(2).normal(size=(12, 3)) * [1.0, 0.1, 0.03]),
}


def nearest_point(corners, c):
    """The point of the hull of corners (v,3) that is nearest to c, as non-negative least squares.

    Weights w >= 0 with sum 1: the sum is asked for as one more equation of very large weight.
    """
    heavy = 1e4
    matrix = np.vstack([corners.T, np.full(len(corners), heavy)])
    # SciPy's `nnls` runs in circles here in versions 1.13 to 1.15.
    weight = lsq_linear(matrix, np.append(c, heavy), bounds=(0.0, np.inf), method="bvls", tol=1e-14).x
    return weight / weight.sum() @ corners


@pytest.mark.parametrize(
    ("c", "gap", "n", "point"),
    [
        ((1.3, 0.2, -0.1), 0.3 - 0.5, (1, 0, 0), (1.0, 0.2, -0.1)),  # face
        ((1.3, -1.4, 0.3), 0.5 - 0.5, (0.6, -0.8, 0), (1.0, -1.0, 0.3)),  # edge
        ((1.2, 1.2, -1.1), 0.3 - 0.5, (2 / 3, 2 / 3, -1 / 3), (1.0, 1.0, -1.0)),  # corner
        ((0.2, -0.9, 0.3), -0.1 - 0.5, (0, -1, 0), (0.2, -1.0, 0.3)),  # centre inside
        ((0.2, -0.9, 1.0), 0.0 - 0.5, (0, 0, 1), (0.2, -0.9, 1.0)),  # centre on a face
    ],
)
def test_cube_of_edge_two(c, gap, n, point):
    found, g, normal, p, _ = hull_ball(0, 2.0, Polyhedron.box(1, 1, 1).hull, c, 0.5, 1e-9)
    assert found == 1
    assert g == pytest.approx(gap, abs=1e-14)
    assert normal == pytest.approx(n, abs=1e-14)
    assert p == pytest.approx(point, abs=1e-14)


@pytest.mark.parametrize("name", SOLIDS)
def test_outside_the_nearest_point_is_the_projection(name):
    solid, k, random = SOLIDS[name], 1.7, np.random.default_rng(3)
    size = k * np.abs(solid.vertices).max(axis=0)
    seen = set()
    for c in random.uniform(-1.6, 1.6, size=(INSIDE_AND_OUT, 3)) * size:
        face = (solid.hull.normal.T @ c - k * solid.hull.offset).max()
        found, gap, n, point, feature = hull_ball(0, k, solid.hull, tuple(c), 0.1, np.inf)
        assert found == 1
        assert np.linalg.norm(n) == pytest.approx(1.0, abs=1e-12)
        if face <= 0.0:
            assert gap == pytest.approx(face - 0.1, abs=1e-13)
        else:
            near = nearest_point(k * solid.vertices, c)
            assert gap + 0.1 == pytest.approx(np.linalg.norm(c - near), abs=1e-6)
            assert gap + 0.1 == pytest.approx(np.linalg.norm(c - point), abs=1e-13)
            assert point == pytest.approx(near, abs=1e-5)
        assert point + (gap + 0.1) * np.array(n) == pytest.approx(c, abs=1e-12)
        seen.add(feature % 4)
    assert seen == {0, 1, 2}  # faces, corners and sides


@pytest.mark.parametrize("name", SOLIDS)
def test_left_out_exactly_beyond_the_margin(name):
    solid, random = SOLIDS[name], np.random.default_rng(4)
    for c in random.uniform(-1.5, 1.5, size=(100, 3)):
        _, gap, _, _, _ = hull_ball(0, 1.0, solid.hull, tuple(c), 0.2, np.inf)
        assert hull_ball(0, 1.0, solid.hull, tuple(c), 0.2, gap + 1e-9)[0] == 1
        assert hull_ball(0, 1.0, solid.hull, tuple(c), 0.2, gap - 1e-9)[0] == 0


def test_gap_changes_no_faster_than_the_ball_moves():
    solid = SOLIDS["rock"]
    path = np.linspace([-1.5, -0.3, 0.2], [1.5, 0.4, -0.1], 4000)
    gaps = np.array([hull_ball(0, 1.0, solid.hull, tuple(c), 0.2, np.inf)[1] for c in path])
    assert np.abs(np.diff(gaps)).max() <= np.linalg.norm(path[1] - path[0]) * (1.0 + 1e-9)
    assert gaps.min() < -0.5


def test_second_hull_of_a_joined_table():
    """Rows of corners, faces and loops are counted over all hulls."""
    two = SOLIDS["rock"].hull
    both = join_molds([make_mold(SOLIDS["box"]), make_mold(SOLIDS["rock"])])[3]
    for c in np.random.default_rng(5).uniform(-1.5, 1.5, size=(50, 3)):
        alone = hull_ball(0, 1.0, two, tuple(c), 0.2, np.inf)
        assert hull_ball(1, 1.0, both, tuple(c), 0.2, np.inf) == alone

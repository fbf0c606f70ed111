"""Ellipsoids against convex polyhedra and single triangles, and polyhedra against triangles: every answer with its proof.

The other road is plain NumPy: support functions. The separation along any direction is a bound from below, a pair of points one from
above; of bodies that overlap, no direction of a cloud, nor one climbed to from there, may be a shorter way out.
"""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation
from test_hull_distance import least_over_features

from clast.narrow import ellipsoid_polyhedron
from clast.narrow.ellipsoid_triangle import triangle_ellipsoid
from clast.narrow.polyhedron_facet import APART, CROSSING, FAR, hull_facet
from clast.narrow.polyhedron_sphere import hull_ball
from clast.shapes.polyhedron import Polyhedron

SOLIDS = [
    Polyhedron.box(1.0, 0.7, 0.4),
    Polyhedron(np.vstack([np.eye(3), -np.eye(3)])),
    Polyhedron.random(faces=14, seed=3, radius=1.0),
    Polyhedron([(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1)]),
    Polyhedron.box(2.0, 0.05, 0.03),
]


def hull_ellipsoid(h, k, hull, c, q, size, margin):
    room = np.empty(ellipsoid_polyhedron.work_width(hull))
    return ellipsoid_polyhedron.hull_ellipsoid(h, k, hull, c, q, size, margin, room)


def vector(x):
    return tuple(map(float, x))


def unit(x):
    return x / np.linalg.norm(x, axis=-1, keepdims=True)


CLOUD = unit(np.random.default_rng(0).normal(size=(3000, 3)))


class Egg:
    """A random ellipsoid: centre (3,), turn, semi-axes (3,); every other one is a flat disc or a needle."""

    def __init__(self, random, k, reach):
        self.turn = Rotation.random(random_state=random.integers(1 << 30))
        forms = random.uniform(0.1, 0.8, 3), [0.6, 0.3, 0.06], [0.5, 0.01, 0.01], [0.3, 0.3, 0.3]
        self.size = np.array(forms[k % 4]) * random.uniform(0.5, 1.0)
        self.centre = unit(random.normal(size=3)) * random.uniform(*reach)

    def args(self):
        return vector(self.centre), vector(np.roll(self.turn.as_quat(), 1)), vector(self.size)

    def separation(self, n, corners):
        """How far it is from the hull of corners (v,3) along unit n (k,3), seen from the hull."""
        h = np.linalg.norm(n @ self.turn.as_matrix() * self.size, axis=1)
        return n @ self.centre - h - (n @ corners.T).max(1)

    def level(self, x):
        """1 on the surface, less inside."""
        return np.linalg.norm(self.turn.inv().apply(x - self.centre) / self.size)

    def moved(self, turn, shift):
        other = object.__new__(Egg)
        other.turn, other.size, other.centre = turn * self.turn, self.size, turn.apply(self.centre) + shift
        return other


def least_way_out(egg, corners, extra, random):
    """The greatest separation, by climbing from the best directions of a cloud."""
    start = np.vstack([CLOUD, extra])
    value = egg.separation(start, corners)
    best = -np.inf
    for n in start[np.argsort(-value)[[0, 10, 40]]]:
        width, here = 0.03, egg.separation(n[None], corners)[0]
        while width > 1e-11:
            near = unit(n + width * random.normal(size=(40, 3)))
            there = egg.separation(near, corners)
            if there.max() > here:
                n, here = near[there.argmax()], there.max()
            else:
                width *= 0.6
        best = max(best, here)
    return best


def check_proof(egg, corners, gap, n, x):
    """The plane along n parts the two by the gap; apart, x and the point a gap away belong to them."""
    assert np.linalg.norm(n) == pytest.approx(1.0, abs=1e-12)
    assert egg.separation(n[None], corners)[0] == pytest.approx(gap, abs=1e-12)
    if gap > 0.0:
        assert egg.level(x + gap * n) <= 1.0 + 1e-8


def test_ellipsoid_and_polyhedron():
    random, count = np.random.default_rng(1), np.zeros((2, 3), int)
    for i in range(1200):
        solid, egg = SOLIDS[i % 5], Egg(random, i, (0.1, 1.6))
        found, gap, n, x, feature = hull_ellipsoid(0, 1.0, solid.hull, *egg.args(), np.inf)
        n, x = np.array(n), np.array(x)
        assert found == 1
        check_proof(egg, solid.vertices, gap, n, x)
        assert np.abs((solid.hull.normal.T @ x - solid.hull.offset).max()) < 1e-12
        if gap < 0.0:
            assert egg.separation(np.vstack([CLOUD, solid.hull.normal.T]), solid.vertices).max() <= gap + 1e-12
            if i % 5 < 2:
                assert least_way_out(egg, solid.vertices, solid.hull.normal.T, random) <= gap + 1e-12
        count[int(gap < 0.0), feature % 4] += 1
        margin = gap + 1e-9 * (1 if i % 2 else -1)
        assert hull_ellipsoid(0, 1.0, solid.hull, *egg.args(), margin)[0] == i % 2
    assert (count > 10).all()


def test_the_way_out_of_a_thin_disc_through_a_rock():
    """Corners on its far side, which lie outside the disc, are where it touches when it has been pushed out."""
    random, rock = np.random.default_rng(4), Polyhedron.random(faces=60, seed=2, radius=1.0)
    for _ in range(400):
        disc = Egg(random, 0, (0.0, 0.3))
        disc.size = np.array([1.9, 1.9, 0.1])
        _, gap, *_ = hull_ellipsoid(0, 1.0, rock.hull, *disc.args(), np.inf)
        assert disc.separation(CLOUD, rock.vertices).max() <= gap + 1e-12


def test_size_factor_and_rigid_motion():
    """Twice the size is twice the gap; a sphere is what `hull_ball` says; axes may be named in another order."""
    random = np.random.default_rng(2)
    for i in range(300):
        hull, egg = SOLIDS[i % 5].hull, Egg(random, i, (0.1, 1.6))
        c, q, size = egg.args()
        one = hull_ellipsoid(0, 1.0, hull, c, q, size, np.inf)
        two = hull_ellipsoid(0, 2.0, hull, vector(2 * egg.centre), q, vector(2 * egg.size), np.inf)
        assert two[1] == pytest.approx(2 * one[1], abs=1e-13)
        assert two[2] == pytest.approx(one[2], abs=1e-7)
        turn = egg.turn * Rotation.from_matrix([[0, 0, 1], [1, 0, 0], [0, 1, 0]])
        other = hull_ellipsoid(0, 1.0, hull, c, vector(np.roll(turn.as_quat(), 1)), vector(egg.size[[1, 2, 0]]), np.inf)
        assert other[1] == pytest.approx(one[1], abs=1e-13)
        ball = hull_ellipsoid(0, 1.0, hull, c, q, (0.3, 0.3, 0.3), np.inf)
        assert ball[1] == pytest.approx(hull_ball(0, 1.0, hull, c, 0.3, np.inf)[1], abs=1e-13)


def random_triangle(random):
    return random.normal(size=(3, 3)) * random.choice([0.3, 1.0]) + 0.3 * random.normal(size=3)


def test_ellipsoid_and_triangle():
    random, apart = np.random.default_rng(3), 0
    for i in range(3000):
        egg, corners = Egg(random, i, (0.1, 1.6)), random_triangle(random)
        gap, n, x = triangle_ellipsoid(*map(vector, corners), *egg.args())
        n, x = np.array(n), np.array(x)
        check_proof(egg, corners, gap, n, x)
        if gap > 0.0:
            apart += 1
            share = np.linalg.lstsq(np.vstack([corners.T, np.ones(3)]), np.append(x, 1.0), rcond=None)
            assert share[0].min() > -1e-9
            assert np.abs(share[0] @ corners - x).max() < 1e-9
        else:
            # They do cross: nothing parts them.
            assert egg.separation(CLOUD, corners).max() < 0.0
        turn, shift = Rotation.random(random_state=i), random.normal(size=3)
        again = triangle_ellipsoid(*map(vector, turn.apply(corners) + shift), *egg.moved(turn, shift).args())
        assert again[0] == pytest.approx(gap, abs=1e-13)
    assert 2000 < apart < 2900


def test_polyhedron_and_triangle():
    random, count = np.random.default_rng(4), [0, 0, 0]
    for i in range(1500):
        solid, corners = SOLIDS[i % 5], random_triangle(random)
        status, gap, n, x = hull_facet(0, 1.0, solid.hull, *map(vector, corners), np.inf)
        n, x = np.array(n), np.array(x)
        count[status] += 1
        along = (corners @ n).min() - (solid.vertices @ n).max()
        assert along == pytest.approx(gap, abs=1e-12)
        over = (solid.hull.normal.T @ x - solid.hull.offset).max()
        if status == APART:
            reference = least_over_features((solid.vertices, solid.faces), (corners, [np.arange(3)]))
            assert gap == pytest.approx(reference, abs=1e-13)
            assert abs(over) < 1e-12
            assert hull_facet(0, 1.0, solid.hull, *map(vector, corners), gap - 1e-9)[0] == FAR
            two = hull_facet(0, 2.0, solid.hull, *map(vector, 2 * corners), np.inf)
            assert two[1] == pytest.approx(2 * gap, abs=1e-13)
        else:
            # The point is in both, and no direction parts them.
            m = np.cross(corners[1] - corners[0], corners[2] - corners[0])
            assert status == CROSSING
            assert over < 1e-9
            assert abs(m @ (x - corners[0])) < 1e-9 * np.linalg.norm(m)
            assert (((CLOUD @ corners.T).min(1)) - (CLOUD @ solid.vertices.T).max(1)).max() < 0.0
        # The order of the corners does not matter.
        turned = hull_facet(0, 1.0, solid.hull, *map(vector, corners[[2, 0, 1]]), np.inf)
        assert turned[:2] == (status, pytest.approx(gap, abs=1e-13))
    assert min(count[1:]) > 300


@pytest.mark.parametrize("what", ["hull", "triangle", "facet"])
def test_a_hundred_thousand_poses_have_numbers(what):
    """Also with centres on corners, edges and faces, spheres, and axes along those of the polyhedron."""
    random = np.random.default_rng(5)
    places, straight = random.normal(size=(100_000, 3)), (1.0, 0.0, 0.0, 0.0)
    turns = vector_rows(unit(random.normal(size=(100_000, 4))))
    places[::3] = np.round(2 * places[::3]) / 4
    rows = vector_rows(places)
    for i in range(2, len(rows)):
        c, size = rows[i], (0.3, 0.3 if i % 5 else 0.1, 0.3 if i % 7 else 0.01)
        q = straight if i % 4 == 0 else turns[i]
        if what == "hull":
            _, *numbers = hull_ellipsoid(0, 1.0, SOLIDS[i % 5].hull, c, q, size, np.inf)
        elif what == "triangle":
            numbers = triangle_ellipsoid(rows[i - 1], rows[i - 2], (0.0, 0.1, 0.2), c, q, size)
        else:
            _, *numbers = hull_facet(0, 1.0, SOLIDS[i % 5].hull, c, rows[i - 1], (0.1, 0.2, 0.3), np.inf)
        assert np.isfinite(numbers[0] + sum(numbers[1]) + sum(numbers[2]))


def vector_rows(array):
    return [tuple(row) for row in array.tolist()]

"""Convex polyhedra apart from quads and meshes: the least gap is the distance, whichever features are nearest."""

import itertools

import numpy as np
import pytest
from scipy.spatial.transform import Rotation
from test_hull_distance import least_over_features
from test_hull_triangle import BLADE, SOLIDS, TABLE, hills, overlaps, touch

import clast
from clast.shapes import MeshWall

QUAD = MeshWall([(-0.5, -0.5, 0), (0.5, -0.5, 0), (0.5, 0.5, 0), (-0.5, 0.5, 0)], [(0, 1, 2), (0, 2, 3)])
PYRAMID = MeshWall(
    [(-1, -1, 0), (1, -1, 0), (1, 1, 0), (-1, 1, 0), (0, 0, 1.2)], [(0, 1, 4), (1, 2, 4), (2, 3, 4), (3, 0, 4)]
)
FACE = [np.arange(3)]
GAP, BOX = 5e-4, clast.Polyhedron.box(0.1, 0.1, 0.1)


def distance(solid, mesh, centre, turn):
    """The distance to the nearest triangle, by brute force over all features in long double."""
    return least((turn.apply(solid.vertices) + centre, solid.faces), mesh)


def least(body, mesh):
    """The distance of a body, corners and faces, from the nearest triangle; those whose ball is farther away than that are not asked."""
    balls = [(mesh.vertices[t].mean(0), np.ptp(mesh.vertices[t], axis=0)) for t in mesh.triangles]
    middle, reach = body[0].mean(0), np.linalg.norm(np.ptp(body[0], axis=0))
    bounds = [np.linalg.norm(c - middle) - np.linalg.norm(size) - reach for c, size in balls]
    best = np.inf
    for k in np.argsort(bounds):
        if bounds[k] < best:
            best = min(best, least_over_features(body, (mesh.vertices[mesh.triangles[k]], FACE)))
    return best


@pytest.mark.parametrize(
    "mesh", [QUAD, PYRAMID, TABLE, BLADE, hills()], ids=["quad", "pyramid", "table", "blade", "hills"]
)
def test_the_least_gap_is_the_distance(mesh):
    random, met = np.random.default_rng(len(mesh.triangles)), 0
    for i, turn in enumerate(Rotation.random(25 if len(mesh.triangles) > 10 else 120, random_state=1)):
        solid, centre = SOLIDS[i % 5], random.uniform(-1.8, 1.8, 3)
        if overlaps(solid, mesh, centre, turn):
            continue
        met += 1
        gap, ends = distance(solid, mesh, centre, turn), set()
        for margin in (np.inf, gap + 1e-3):
            found = touch(solid, mesh, centre, turn, margin=margin)
            best = found[np.argmin(found[:, 3])]
            assert best[3] == pytest.approx(gap, abs=1e-12)
            assert np.linalg.norm(best[4:7]) == pytest.approx(1.0, abs=1e-12)
            ends.add(tuple(best[:3] + gap * best[4:7]))
        for end in ends:  # the other end of the way lies on the mesh: a needle there touches it
            assert nearest(mesh, np.array(end)) < 1e-7
        assert len(touch(solid, mesh, centre, turn, margin=gap - 1e-9)) == 0
    assert met > (8 if len(mesh.triangles) > 10 else 40)


def nearest(mesh, x):
    """Distance of a point from a mesh."""
    tiny = x + 1e-9 * np.vstack([np.zeros(3), np.eye(3)])
    faces = [np.array(f) for f in itertools.combinations(range(4), 3)]
    return least((tiny, faces), mesh)


CORNER_DOWN = Rotation.align_vectors([[0, 0, -1]], [np.ones(3)])[0]
EDGE_DOWN = Rotation.from_rotvec([np.pi / 4, 0, 0])


def gap_to(wall, turn, x, n):
    """Least gap that find_contacts sees, and how many with a margin of 1e-3 m.

    The lowest point of a box, turned, is half a millimetre from x along n.
    """
    corners = turn.apply(BOX.vertices)
    height = (corners @ -n).max()
    tip = corners[np.isclose(corners @ -n, height)].mean(0)
    scene = clast.Scene()
    scene.add(wall)
    q = np.roll(turn.as_quat(), 1)
    scene.add(BOX, position=x + GAP * n - tip, orientation=q)
    far = clast.find_contacts(scene, pairs=np.array([[0, 1]]), margin=np.inf)
    near = clast.find_contacts(scene, margin=1e-3)
    assert len(near.gap)
    assert near.gap.min() == far.gap.min()
    return far.gap.min()


@pytest.mark.parametrize("turn", [CORNER_DOWN, EDGE_DOWN], ids=["corner", "edge"])
def test_over_the_free_edge_and_the_corner_of_a_quad(turn):
    wall = clast.Quad(QUAD.vertices)
    down = np.array([0.0, 0.0, 1.0])
    for x in ((0.5, 0.1, 0.0), (0.1, -0.5, 0.0), (0.5, 0.5, 0.0), (-0.5, -0.5, 0.0)):
        assert gap_to(wall, turn, np.array(x), down) == pytest.approx(GAP, abs=1e-12)
    # Beside it, seen from the edge at a slant: the box is turned along with it.
    slant = Rotation.from_rotvec([0, np.pi / 3, 0])
    gap = gap_to(wall, slant * turn, np.array([0.5, 0.1, 0.0]), slant.apply(down))
    assert gap == pytest.approx(GAP, abs=1e-12)


@pytest.mark.parametrize("turn", [CORNER_DOWN, EDGE_DOWN], ids=["corner", "edge"])
def test_over_ridges_and_the_tip_of_a_pyramid(turn):
    random, up = np.random.default_rng(3), np.array([0.0, 0.0, 1.0])
    ridge = np.array([-1.0, -1.0, -1.2]) / np.linalg.norm([1.0, 1.0, 1.2])
    across = np.cross(ridge, [1.0, -1.0, 0.0]) / np.sqrt(2.0)
    across *= np.sign(across[2])
    for k in range(40):
        # Over the tip along z, or over a place on the ridge at right angles to it.
        n = up if k % 2 else across
        lean = Rotation.align_vectors([n], [up])[0] * Rotation.from_rotvec(random.uniform(0, 6) * up)
        x = np.array([0, 0, 1.2]) + (0.0 if k % 2 else random.uniform(0.2, 1.0)) * ridge
        assert gap_to(PYRAMID, lean * turn, x, n) == pytest.approx(GAP, abs=1e-12)


def test_needles_that_are_apart():
    """Boxes of 1:1000. Of the first two pairs one is nearly parallel, the other has a face and an edge that part it equally well."""
    needle, count = clast.Polyhedron.box(1.0, 0.001, 0.001), 1500
    random, turn = np.random.default_rng(0), Rotation.random(2 * count, random_state=0)
    place = 0.4 * random.normal(size=(2 * count, 3))
    scene = clast.Scene()
    scene.add(needle, position=place, orientation=np.roll(turn.as_quat(), 1, axis=1))
    contacts = clast.find_contacts(scene, pairs=np.arange(2 * count).reshape(count, 2), margin=np.inf)
    for k in (1338, 824, *range(0, count, 15)):
        bodies = [(turn[2 * k + j].apply(needle.vertices) + place[2 * k + j], needle.faces) for j in range(2)]
        gap = contacts.gap[contacts.pair[:, 0] == 2 * k].min()
        assert gap < 0.0 or gap == pytest.approx(least_over_features(*bodies), abs=1e-12)

"""Convex polyhedra that overlap a thin flat sheet: told is the least way out, however deep, and never in jumps.

The reference asks all directions that can be the least way out of two convex sets, by support functions alone: normals of faces, of the sheet, and
what is at right angles to an edge and a side, without asking whether the two meet.
"""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation
from test_hull_triangle import quaternion, touch

import clast
from clast.shapes import MeshWall
from clast.shapes.polyhedron import Polyhedron

SOLIDS = {
    "box": Polyhedron.box(0.5, 0.7, 1.1),
    "rock": Polyhedron.random(faces=14, seed=3, radius=0.9),
    "plate": Polyhedron.box(1.0, 0.9, 0.1),
    "sheet of metal": Polyhedron.box(1.0, 1.0, 0.02),
}
OUTLINES = {
    "quad": np.array([(-0.75, -0.55, 0), (0.75, -0.55, 0), (0.75, 0.55, 0), (-0.75, 0.55, 0)]),
    "skew": np.array([(-0.9, -0.3, 0), (0.2, -0.6, 0), (0.75, 0.1, 0), (-0.2, 0.9, 0)]),
    "triangle": np.array([(-0.9, -0.4, 0), (0.8, -0.5, 0), (0.1, 0.7, 0)]),
}


def wall(outline):
    """The outline as a mesh of one or two triangles."""
    return MeshWall(outline, [(0, 1, 2), (0, 2, 3)][: len(outline) - 2])


def reach(points, n):
    """How far points (p,3) reach along directions n (d,3): (d,)."""
    return (points @ n.T).max(0)


def most_room(corners, solid, turn, sheet):
    """The greatest separation of the polyhedron with these corners from the sheet [m]."""
    sides = np.roll(sheet, -1, axis=0) - sheet
    sides /= np.linalg.norm(sides, axis=1)[:, None]
    along = corners[solid.hull.edge[:, 1]] - corners[solid.hull.edge[:, 0]]
    across = np.cross(along[:, None], sides[None]).reshape(-1, 3)
    n = np.vstack([turn.apply(solid.hull.normal.T), np.cross(sides[0], sides[1]), across])
    length = np.linalg.norm(n, axis=1)
    n = n[length > 1e-9 * length.max()] / length[length > 1e-9 * length.max(), None]
    n = np.vstack([n, -n])
    return (-reach(sheet, -n) - reach(corners, n)).max()


def poses(count, sheet, seed):
    """Random turns and places with the centre near the sheet."""
    random = np.random.default_rng(seed)
    place = random.dirichlet(np.ones(len(sheet)), count) @ sheet + 0.35 * random.normal(size=(count, 3))
    return Rotation.random(count, random_state=seed), place


@pytest.mark.parametrize("solid", SOLIDS.values(), ids=SOLIDS)
@pytest.mark.parametrize("outline", OUTLINES.values(), ids=OUTLINES)
def test_the_deepest_point_is_the_least_way_out(solid, outline):
    mesh, deep = wall(outline), 0
    for turn, centre in zip(*poses(250, outline, 5), strict=True):
        corners = turn.apply(solid.vertices) + centre
        room = most_room(corners, solid, turn, outline)
        if room > -1e-9:
            continue
        deep += 1
        for margin in (0.0, 0.05, np.inf):
            found = touch(solid, mesh, centre, turn, margin=margin)
            assert 1 <= len(found) <= 4
            assert len(np.unique(found[:, -1])) == 1  # one triangle tells
            n, gap = found[0, 4:7], found[:, 3]
            assert gap.min() == pytest.approx(room, abs=1e-12)
            assert gap.max() <= margin
            assert -reach(outline, -n[None])[0] - reach(corners, n[None])[0] == pytest.approx(room, abs=1e-12)
            np.testing.assert_array_equal(found[:, 4:7], np.tile(n, (len(found), 1)))
            # Both ends of every gap: on the surface of the polyhedron, and on the sheet.
            over = turn.inv().apply(found[:, :3] - centre) @ solid.hull.normal - solid.hull.offset
            assert over.max(1) == pytest.approx(0.0, abs=1e-9)
            end = found[:, :3] + gap[:, None] * n
            assert end[:, 2] == pytest.approx(0.0, abs=1e-9)
            sides = np.roll(outline, -1, axis=0) - outline
            assert (np.cross(sides, end[:, None] - outline)[..., 2] > -1e-9).all()
    assert deep > 150


@pytest.mark.parametrize("solid", SOLIDS.values(), ids=SOLIDS)
def test_in_a_scene_none_is_missed_whichever_triangle_is_near(solid):
    """Of all sizes, through the search for pairs."""
    outline, size, count = OUTLINES["skew"], 3.0, 400
    turn, place = poses(count, outline, 6)
    stands, leans = Rotation.random(random_state=1), 40.0 * size * np.arange(count)[:, None] * (1, 0, 0)
    scene = clast.Scene()
    scene.add(clast.Quad(outline), position=leans, orientation=quaternion(stands), scale=size)
    centre = size * stands.apply(place) + leans
    q = np.roll((stands * turn).as_quat(), 1, axis=1)
    first = scene.add(solid, position=centre, orientation=q, scale=size)[0]
    found = clast.find_contacts(scene)
    told = np.full(count, np.inf)
    np.minimum.at(told, found.pair[:, 1] - first, found.gap)
    for k in range(count):
        room = most_room(turn[k].apply(solid.vertices) + place[k], solid, turn[k], outline)
        assert told[k] == (pytest.approx(size * room, abs=1e-9) if room < -1e-9 else np.inf)


@pytest.mark.parametrize("solid", SOLIDS.values(), ids=SOLIDS)
def test_on_its_way_over_the_end_nothing_is_told_at_once(solid):
    """Corners that a face of the sheet told took turns with its end, which was told when it was deep already."""
    mesh, touched = wall(OUTLINES["quad"]), 0
    for k in range(6):
        random = np.random.default_rng(k)
        turn = Rotation.random(random_state=k)
        low = turn.apply(solid.vertices)[:, 2].min()
        line = np.linspace(
            (0.3, random.uniform(-0.6, 0.6), -low - 0.08), (1.7, random.uniform(-0.6, 0.6), -low - 0.12), 800
        )
        gap = [touch(solid, mesh, x, turn)[:, 3].min(initial=0.0) for x in line]
        assert np.abs(np.diff(gap)).max() <= np.linalg.norm(line[1] - line[0]) + 1e-12
        touched += min(gap) < -0.05
    assert touched > 0


def test_a_sheet_of_two_triangles_that_is_not_convex_or_not_flat_is_a_mesh():
    """Corners beyond the notch, or below the fold, are not touched by what is not there."""
    dart = np.array([(0.0, 0.0, 0), (0.6, -0.9, 0), (-0.4, 0.0, 0), (0.6, 0.9, 0)])
    mesh = MeshWall(dart, [(0, 1, 2), (0, 2, 3)])
    box = Polyhedron.box(0.2, 0.2, 0.2)
    assert len(touch(box, mesh, (0.45, 0.0, 0.09))) == 0
    for x in ((-0.15, 0.0), (0.3, -0.54), (0.3, 0.54)):
        assert touch(box, mesh, (*x, 0.09))[:, 3].min() == pytest.approx(-0.01, abs=1e-12)
    fold = MeshWall([(0, -1, 0), (0, 1, 0), (1, 0, -0.1), (-1, 0, -0.1)], [(0, 1, 2), (0, 1, 3)])
    assert len(touch(box, fold, (0.5, 0.0, 0.09))) == 0
    assert touch(box, fold, (0.0, 0.0, 0.09))[:, 3].min() == pytest.approx(-0.01, abs=1e-12)


def test_with_faces_and_edges_along_the_sheet_and_its_sides_the_same():
    """Where many directions are equal or nearly so, and corners lie on sides and sides on edges."""
    outline, random, deep = np.array([(-1.0, -1, 0), (1, -1, 0), (1, 1, 0), (-1, 1, 0)]), np.random.default_rng(1), 0
    solids = [
        Polyhedron.box(1, 1, 1),
        Polyhedron.box(0.5, 0.25, 1.0),
        *map(Polyhedron.regular, ("octahedron", "tetrahedron")),
    ]
    places, heights = np.arange(-1.5, 1.5, 0.25), (0.0, 0.1, 0.25, 0.4, 0.49, -0.3, -0.49)
    mesh = wall(outline)
    for k in range(1000):
        solid, askew = solids[k % 4], random.choice([0.0, 0.0, 1e-12, 1e-9, 1e-7, -1e-7, 1e-5])
        turn = Rotation.from_euler("xyz", random.choice([0, 30, 45, 90, 135, 180], 3) + askew, degrees=True)
        centre = np.append(random.choice(places, 2), random.choice(heights))
        room = most_room(turn.apply(solid.vertices) + centre, solid, turn, outline)
        told = touch(solid, mesh, centre, turn)[:, 3].min(initial=0.0)
        assert told == pytest.approx(min(room, 0.0), abs=1e-9)
        deep += room < -1e-9
    assert deep > 500

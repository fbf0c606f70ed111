"""Convex polyhedra against meshes: a flat mesh is a plane, blades push back, every contact once, no ghost collisions."""

import numpy as np
import pytest
from scipy.spatial import Delaunay
from scipy.spatial.transform import Rotation

from clast.narrow.polyhedron_plane import WIDTH, hull_plane
from clast.narrow.polyhedron_polyhedron import EDGE_EDGE
from clast.narrow.polyhedron_triangle import hull_triangle
from clast.shapes import Cylinder, MeshWall
from clast.shapes.polyhedron import Polyhedron

NO_TURN = Rotation.identity()
DOWN = (0.0, 0.0, -1.0)


def rock(seed, points=20):
    """A random rock: the hull of points on a sphere."""
    x = np.random.default_rng(seed).normal(size=(points, 3))
    return Polyhedron(x / np.linalg.norm(x, axis=1)[:, None])


CUBE = Polyhedron.box(1.0, 1.0, 1.0)
OCTAHEDRON = Polyhedron(np.vstack([np.eye(3), -np.eye(3)]))
SOLIDS = [CUBE, Polyhedron.box(1.0, 0.5, 0.3), OCTAHEDRON, rock(1), rock(2, 40)]

BLADE = MeshWall([(0, -3, -1), (0, 3, -1), (0, 3, 0), (0, -3, 0)], [(0, 1, 2), (0, 2, 3)])
TABLE = MeshWall(
    [(0, -3, -3), (0, 3, -3), (0, 3, 0), (0, -3, 0), (-3, -3, 0), (-3, 3, 0)],
    [(0, 1, 2), (0, 2, 3), (2, 3, 4), (2, 4, 5)],
)
NOOK = MeshWall(
    [(0, -3, 3), (0, 3, 3), (0, 3, 0), (0, -3, 0), (3, -3, 0), (3, 3, 0)], [(0, 1, 2), (0, 2, 3), (2, 3, 4), (2, 4, 5)]
)
PLATE = MeshWall([(-1, -0.7, 0), (1.2, -0.5, 0), (0, 1, 0)], [(0, 1, 2)])
CHIP = MeshWall([(-0.1, -0.07, 0), (0.12, -0.05, 0), (0, 0.1, 0)], [(0, 1, 2)])


def quaternion(turn):
    """w x y z."""
    return tuple(np.roll(turn.as_quat(), 1))


def touch(solid, mesh, centre, turn=NO_TURN, margin=0.0, k=1.0, size=1.0):
    """Contact points (c,9) with a mesh of this size factor, in the axes of the mesh; the last column is the triangle.

    centre (3,) and turn: where the polyhedron is, seen from the mesh.
    """
    work = np.full(WIDTH, np.nan)
    back = turn.inv()
    shift = tuple(-back.apply(centre))
    found = []
    for t in range(len(mesh.triangles)):
        count = hull_triangle(0, k, solid.hull, mesh.mesh, t, quaternion(back), shift, size, margin, work)
        for row in work[: 8 * count].reshape(-1, 8):
            found.append([*(turn.apply(row[:3]) + centre), row[3], *turn.apply(row[4:7]), row[7], t])
    return np.array(found).reshape(-1, 9)


def floor(seed, count=40, lattice=0.0):
    """A flat floor with random triangles; with a lattice its vertices are whole multiples of it."""
    random = np.random.default_rng(seed)
    inner = random.uniform(-2, 2, size=(count, 2))
    if lattice:
        inner = np.unique(np.round(inner / lattice) * lattice, axis=0)
    border = np.array([(x, y) for x in (-4, 4) for y in (-4, 4)], dtype=float)
    xy = np.vstack([border, inner])
    return MeshWall(np.c_[xy, np.zeros(len(xy))], Delaunay(xy).simplices)


def hills():
    """A rough sheet with sharp folds."""
    random = np.random.default_rng(3)
    xy = random.uniform(-4, 4, size=(60, 2))
    return MeshWall(np.c_[xy, 0.3 * random.normal(size=60)], Delaunay(xy).simplices)


def rows(array, digits=9):
    """Rows in a fixed order, to compare sets of points."""
    array = np.round(np.asarray(array, dtype=float), digits) + 0.0
    return array[np.lexsort(array.T)]


def all_corners(solid, centre, turn, margin=0.0, k=1.0):
    """Corners of the polyhedron with a height up to margin: point, gap (c,4)."""
    x = k * turn.apply(solid.vertices) + centre
    x = x[x[:, 2] <= margin]
    return np.c_[x, x[:, 2]]


def clipped(polygon, solid):
    """The part of a polygon (n,3) inside the polyhedron."""
    for n, offset in zip(solid.hull.normal.T, solid.hull.offset, strict=True):
        h = polygon @ n - offset
        out = []
        for i in range(len(polygon)):
            j = (i + 1) % len(polygon)
            if h[i] <= 0.0:
                out.append(polygon[i])
            if (h[i] < 0.0) != (h[j] < 0.0):
                out.append(polygon[i] + h[i] / (h[i] - h[j]) * (polygon[j] - polygon[i]))
        if len(out) < 3:
            return np.empty((0, 3))
        polygon = np.array(out)
    return polygon


def overlaps(solid, mesh, centre, turn):
    """Whether any triangle of the mesh has a part inside the polyhedron."""
    x = turn.inv().apply(mesh.vertices - centre)
    return any(len(clipped(x[t], solid)) for t in mesh.triangles)


class TestFlatFloor:
    @pytest.mark.parametrize("seed", range(4))
    @pytest.mark.parametrize("side", [1.0, -1.0])
    def test_the_same_points_as_on_a_plane(self, seed, side):
        """Also with the corners of the cube exactly on edges and vertices of the mesh, and from below."""
        mesh = floor(seed, lattice=0.25 if seed % 2 else 0.0)
        random = np.random.default_rng(seed)
        for i in range(25):
            solid = [CUBE, OCTAHEDRON, SOLIDS[3]][i % 3] if seed > 1 else CUBE
            centre = np.append(np.round(random.uniform(-1, 1, 2) / 0.25) * 0.25, 0.49 * side)
            turn = NO_TURN if solid is CUBE else Rotation.random(random_state=i)
            found = touch(solid, mesh, centre, turn)
            x = turn.apply(solid.vertices) + centre
            x = x[side * x[:, 2] <= 0.0]
            assert rows(found[:, :4]) == pytest.approx(rows(np.c_[x, side * x[:, 2]]), abs=1e-8)
            assert found[:, 4:7] == pytest.approx(np.tile([0, 0, -side], (len(found), 1)), abs=1e-12)

    def test_turned_and_of_another_size(self):
        mesh = floor(5)
        for i in range(20):
            turn = Rotation.random(random_state=i)
            centre = np.array([0.3, -0.2, 1.0])
            small = touch(CUBE, mesh, centre, turn, k=1.3)
            large = touch(CUBE, mesh, 3.0 * centre, turn, k=3.9, size=3.0)
            assert rows(small[:, :4]) == pytest.approx(rows(all_corners(CUBE, centre, turn, k=1.3)), abs=1e-8)
            assert rows(large[:, :4]) == pytest.approx(3.0 * rows(small[:, :4]), abs=1e-7)

    def test_with_a_margin(self):
        mesh, centre = floor(6), np.array([0.1, 0.2, 0.6])
        for i in range(10):
            turn = Rotation.from_rotvec(0.02 * np.random.default_rng(i).normal(size=3))
            expected = all_corners(CUBE, centre, turn, margin=0.15)
            assert len(expected) == 4
            assert rows(touch(CUBE, mesh, centre, turn, margin=0.15)[:, :4]) == pytest.approx(rows(expected), abs=1e-8)
            assert len(touch(CUBE, mesh, centre, turn)) == 0

    def test_sliding_meets_nothing_else(self):
        mesh = floor(7)
        for x in np.linspace(-1.0, 1.0, 101):
            found = touch(CUBE, mesh, np.array([x, 0.3 * x, 0.495]))
            assert len(found) == 4
            assert found[:, 3] == pytest.approx(-0.005)
            assert found[:, 4:7] == pytest.approx(np.tile(DOWN, (4, 1)))

    def test_agrees_with_hull_plane_bit_for_bit(self):
        """One triangle that holds the whole cube: the same numbers."""
        mesh = MeshWall([(-20, -20, 0), (20, -20, 0), (0, 30, 0)], [(0, 1, 2)])
        for i in range(20):
            turn = Rotation.random(random_state=i)
            back = turn.inv()
            shift = tuple(-back.apply([0.0, 0.0, 0.6]))
            one, two = np.zeros(WIDTH), np.zeros(WIDTH)
            count = hull_triangle(0, 1.0, CUBE.hull, mesh.mesh, 0, quaternion(back), shift, 1.0, 0.0, one)
            assert count == hull_plane(0, 1.0, CUBE.hull, tuple(back.apply(DOWN)), 0.6, 0.0, two)
            assert one[: 8 * count] == pytest.approx(two[: 8 * count], abs=1e-14)


class TestEnds:
    def test_over_the_end_of_a_plate(self):
        """Two corners of the cube on the plate, two points where its edges leave it."""
        mesh = MeshWall([(-3, -3, 0), (3, -3, 0), (3, 3, 0), (-3, 3, 0)], [(0, 1, 2), (0, 2, 3)])
        for tilt in (0.0, 1e-12, -1e-12, 1e-4, -1e-4):
            found = touch(CUBE, mesh, (3.2, 0, 0.49), Rotation.from_rotvec([0, tilt, 0]))
            expected = rows([(x, y) for x in (2.7, 3.0) for y in (-0.5, 0.5)])
            assert rows(found[:, :2]) == pytest.approx(expected, abs=1e-3)
            assert found[:, 3] == pytest.approx(-0.01, abs=1e-4)

    def test_on_the_upper_edge_of_a_blade(self):
        for x in (-0.3, 0.0, 0.1):
            found = touch(CUBE, BLADE, (x, 0.2, 0.49))
            assert rows(found[:, :3]) == pytest.approx(rows([(0, -0.3, -0.01), (0, 0.7, -0.01)]))
            assert found[:, 3] == pytest.approx(-0.01)
            assert found[:, 4:7] == pytest.approx(np.tile(DOWN, (2, 1)), abs=1e-12)

    @pytest.mark.parametrize("side", [1.0, -1.0])
    @pytest.mark.parametrize(
        "turn",
        [NO_TURN, Rotation.from_rotvec([0, np.pi / 4, 0]), Rotation.from_rotvec([0, 0, np.pi / 4]), None],
        ids=["face", "edge along", "edge up", "corner"],
    )
    def test_beside_a_blade(self, side, turn):
        """Pushed back by a face, an edge or a corner of the cube, from both sides, always away from the blade."""
        turn = turn or Rotation.align_vectors([[-1, 0, 0]], [np.ones(3)])[0]
        if side < 0:
            turn = Rotation.from_rotvec([0, 0, np.pi]) * turn
        reach = -(turn.apply(CUBE.vertices)[:, 0] * side).min()
        for z in (-0.5, -0.2):
            found = touch(CUBE, BLADE, (side * (reach - 0.01), 0.3, z), turn)
            assert len(found)
            assert found[:, 3].min() == pytest.approx(-0.01)
            assert found[:, 4:7] == pytest.approx(np.tile([-side, 0, 0], (len(found), 1)), abs=1e-9)

    def test_a_small_chip_in_a_large_face(self):
        """Its three corners, through the face of the cube, whichever way the cube's centre lies."""
        for tilt in (0.0, 0.02):
            turn = Rotation.from_rotvec([tilt, 0, 0])
            found = touch(CUBE, CHIP, turn.apply([0.05, 0.1, 0.49]), turn)
            assert len(found) == 3
            assert found[:, 4:7] == pytest.approx(np.tile(turn.apply(DOWN), (3, 1)), abs=1e-9)

    def test_nothing_without_overlap_something_with_it(self):
        """Two roads: clipping all triangles with all faces. Bodies are brought near until they just meet."""
        random, met = np.random.default_rng(8), 0
        for i, turn in enumerate(Rotation.random(60, random_state=9)):
            solid, mesh = SOLIDS[i % 5], [PLATE, CHIP, BLADE, TABLE, hills()][i // 5 % 5]
            away = random.normal(size=3)
            target = mesh.vertices[mesh.triangles[random.integers(len(mesh.triangles))]].T @ random.dirichlet(
                np.ones(3)
            )
            low, high = 0.0, 2.5
            if overlaps(solid, mesh, target + high * away, turn) or not overlaps(solid, mesh, target, turn):
                continue
            for _ in range(30):
                middle = 0.5 * (low + high)
                low, high = (middle, high) if overlaps(solid, mesh, target + middle * away, turn) else (low, middle)
            step = 1.0 / np.linalg.norm(away)
            apart = touch(solid, mesh, target + (high + 1e-6 * step) * away, turn)
            into = touch(solid, mesh, target + (low - 0.01 * step) * away, turn)
            assert len(apart) == 0
            assert len(into)
            assert -0.02 < into[:, 3].min() < 0.0
            met += 1
        assert met > 25


class TestFolds:
    def test_half_over_the_edge_of_a_table(self):
        """The same four points wherever the centre is; the side of the table is not felt."""
        for x in (-0.3, -0.1, 0.1, 0.3):
            found = touch(CUBE, TABLE, (x, 0, 0.49))
            expected = [(a, y, -0.01) for a in (x - 0.5, 0.0) for y in (-0.5, 0.5)]
            assert rows(found[:, :3]) == pytest.approx(rows(expected))
            assert found[:, 3] == pytest.approx(-0.01)
            assert found[:, 4:7] == pytest.approx(np.tile(DOWN, (4, 1)), abs=1e-12)

    def test_in_a_nook_both_walls_hold(self):
        """Eight points: the floor and the wall as two planes would have them."""
        found = touch(CUBE, NOOK, (0.49, 0, 0.48))
        on_floor = found[found[:, 6] < -0.5]
        on_wall = found[found[:, 4] < -0.5]
        assert len(on_floor) == len(on_wall) == 4
        assert len(found) == 8
        assert on_floor[:, 3] == pytest.approx(-0.02)
        assert on_wall[:, 3] == pytest.approx(-0.01)

    def test_on_the_edge_of_a_roof(self):
        """A cube on a ridge touches it along a line, with gap and normal of its own face."""
        roof = MeshWall([(0, -3, 0), (0, 3, 0), (-2, 0, -1), (2, 0, -1)], [(0, 1, 2), (0, 1, 3)])
        found = touch(CUBE, roof, (0.2, 0.1, 0.49))
        assert rows(found[:, :3]) == pytest.approx(rows([(0, -0.4, -0.01), (0, 0.6, -0.01)]))
        assert found[:, 4:7] == pytest.approx(np.tile(DOWN, (2, 1)), abs=1e-12)

    def test_inner_edges_of_a_bowl_are_not_felt(self):
        """Only corners of the cube touch a concave mesh, and each of them one triangle."""
        random = np.random.default_rng(10)
        xy = random.uniform(-3, 3, size=(150, 2))
        bowl = MeshWall(np.c_[xy, 0.02 * (xy**2).sum(1)], Delaunay(xy).simplices)
        for _ in range(20):
            turn = Rotation.from_rotvec(0.3 * random.normal(size=3))
            centre = np.append(random.uniform(-0.5, 0.5, 2), 0.5)
            found = touch(CUBE, bowl, centre, turn)
            assert (found[:, 7] % 4 == 1).all()
            assert (found[:, 7] < 32).all()
            assert len(np.unique(found[:, 7])) == len(found)

    def test_on_a_dome_something_always_holds(self):
        """The cube's face is wider than the triangles: edges and corners of the mesh carry it, gently."""
        random = np.random.default_rng(11)
        xy = random.uniform(-3, 3, size=(150, 2))
        dome = MeshWall(np.c_[xy, -0.02 * (xy**2).sum(1)], Delaunay(xy).simplices)
        for _ in range(10):
            turn = Rotation.from_rotvec(0.02 * random.normal(size=3))
            centre = np.append(random.uniform(-0.5, 0.5, 2), 0.48)
            if overlaps(CUBE, dome, centre, turn):
                found = touch(CUBE, dome, centre, turn)
                assert len(found)
                assert found[:, 3].min() > -0.05
                assert (found[:, 6] < -0.9).all()


def test_the_end_of_a_trough_is_no_deeper_than_the_trough():
    """A bar with an edge down in a trough, one end of it just over the trough's end: the corner of the mesh there is inside the bar, and among the faces
    through which it could leave was only the far one, as deep as the bar is long."""
    fold = 0.1
    trough = MeshWall(
        [(-3, 0, 3 * fold), (0, 0, 0), (3, 0, 3 * fold), (-3, 9, 3 * fold), (0, 9, 0), (3, 9, 3 * fold)],
        [(0, 1, 4), (0, 4, 3), (1, 2, 5), (1, 5, 4)],
    )
    bar = Polyhedron.box(0.6, 1.0, 0.4)
    random = np.random.default_rng(4)
    for _ in range(300):
        turn = Rotation.from_rotvec(0.03 * random.normal(size=3)) * Rotation.from_euler(
            "y", random.uniform(30.0, 60.0), degrees=True
        )
        corners = turn.apply(bar.vertices)
        lowest = corners[np.argmin(corners[:, 2])]
        # The lowest corner is a little below the fold; the end of the bar a little beyond the end of the trough.
        centre = (
            -lowest[0] + 1e-3 * random.normal(),
            -corners[:, 1].min() - random.uniform(0.0, 4e-3),
            -lowest[2] - 2e-3,
        )
        found = touch(bar, trough, centre, turn)
        assert len(found) > 0
        assert (found[:, 3] > -0.01).all()


def test_a_box_at_the_open_end_of_a_tube_is_no_deeper_than_it_is_pressed_into_the_wall():
    """The end of the tube is just within the end of the box: of the ways out of that edge the nearest would press the wall into the box, the next lay beyond
    the end of its edge of the box, and the one after that was across the whole box."""
    tube = MeshWall(*Cylinder(1.0, 4.0, axis=(0, 1, 0)).surface(4.0))
    bar = Polyhedron.box(0.06, 0.043, 0.1)
    random = np.random.default_rng(7)
    for _ in range(300):
        turn = Rotation.from_rotvec(3e-3 * random.normal(size=3)) * Rotation.from_euler("y", random.uniform(0, 6.0))
        corners = turn.apply(bar.vertices)
        end = -2.0 - corners[:, 1].min() - random.uniform(0.0, 1e-4)
        low = np.sqrt(1.0 - corners[:, 0] ** 2) + corners[:, 2]  # room that each has above a round floor
        centre = (0.0, end, -low.min() - 5e-4)
        found = touch(bar, tube, centre, turn)
        assert len(found) > 0
        assert found[:, 3].min() > -3e-3


# Where a polyhedron is, seen from a sheet, and how it is turned (x, y, z, w).
DEEP = [
    ((1.1445, 0.3184, 0.0441), (0.6500, -0.5103, -0.5595, -0.0633)),
    ((-1.0298, 1.0435, -0.2997), (0.4954, -0.0054, -0.6862, 0.5326)),
    ((-0.3655, -0.9940, -0.0094), (-0.2786, -0.7757, 0.0368, -0.5651)),
    ((-0.3345, -0.9207, 0.2410), (-0.3829, -0.2250, -0.0260, 0.8956)),
    ((0.7341, 1.1681, 0.2300), (0.7150, -0.5345, 0.4418, -0.0885)),
    ((-1.0105, -0.0420, -0.0045), (0.5483, 0.5967, 0.3673, -0.4566)),
]


# The same, with a corner of the sheet close below a face through which it cannot leave, because the sheet goes on below it.
CLOSE = [
    ("rock", (-1.0651, -0.0457, -0.1508), (-0.0319, 0.2324, 0.8389, -0.4911)),
    ("box", (-0.9589, -0.2105, 0.0369), (0.2997, -0.1608, 0.0845, 0.9366)),
    ("box", (1.1352, -0.0831, -0.0305), (0.4617, 0.6939, -0.55, -0.0534)),
    ("box", (-0.5004, -0.582, 0.0047), (0.0121, 0.9879, 0.0933, -0.1237)),
    ("box", (0.4506, -0.3347, 0.043), (-0.3864, 0.0327, 0.8579, 0.3373)),
]
SHEET = np.array([(-0.75, -0.55, 0), (0.75, -0.55, 0), (0.75, 0.55, 0), (-0.75, 0.55, 0)])
LARGE = {"rock": Polyhedron.random(faces=14, seed=3, radius=0.9), "box": Polyhedron.box(0.5, 0.7, 1.1)}


def in_the_sheet(solid, centre, turn):
    """The gap told, and the greatest room that any direction leaves between polyhedron and sheet.

    The sheet is four triangles about its middle: of two alone the least way out is told, whatever its edges and corners would say.
    """
    turn = Rotation.from_quat(turn)
    mesh = MeshWall(np.vstack([SHEET, np.zeros(3)]), [(0, 1, 4), (1, 2, 4), (2, 3, 4), (3, 0, 4)])
    found = touch(solid, mesh, centre, turn)
    corners, normals = turn.apply(solid.vertices) + centre, turn.apply(solid.hull.normal.T)
    along = corners[solid.hull.edge[:, 1]] - corners[solid.hull.edge[:, 0]]
    directions = np.vstack([normals, np.eye(3)[2:], np.cross(along[:, None], np.eye(3)[:2]).reshape(-1, 3)])
    lengths = np.linalg.norm(directions, axis=1)
    directions = directions[lengths > 1e-9] / lengths[lengths > 1e-9, None]
    directions = np.vstack([directions, -directions])
    room = (SHEET @ directions.T).min(0) - (corners @ directions.T).max(0)
    return found[:, 3].min(initial=np.inf), room.max()


@pytest.mark.parametrize(("centre", "turn"), DEEP)
def test_an_edge_of_a_sheet_with_a_corner_in_a_polyhedron_is_felt(centre, turn):
    """An edge is nearly as deep below a face as it has a way out across an edge of the polyhedron; edge and corner of the sheet each left it to the other."""
    told, room = in_the_sheet(LARGE["rock"], centre, turn)
    assert room < -0.1
    assert told == pytest.approx(room, abs=1e-12)


@pytest.mark.parametrize(("solid", "centre", "turn"), CLOSE)
def test_a_corner_of_a_sheet_close_below_a_face_that_it_cannot_leave_through_is_felt(solid, centre, turn):
    told, room = in_the_sheet(LARGE[solid], centre, turn)
    assert room < -0.08
    assert told == pytest.approx(room, abs=1e-12)


@pytest.mark.parametrize("deep", [0.01, 0.024, 0.026, 0.04, 0.08])
@pytest.mark.parametrize("turn", [(0.0, 0.0, 0.0), (0.4, 0.05, 0.07)], ids=["across", "askew"])
def test_an_edge_of_a_sheet_that_pierces_a_plate_is_felt_however_thin_the_plate_is(turn, deep):
    turn = Rotation.from_rotvec(turn)
    told, room = in_the_sheet(Polyhedron.box(0.02, 1.0, 1.0), (0.1, 0.55 + 0.5 - deep, 0.03), turn.as_quat())
    assert told == pytest.approx(room, abs=1e-12)
    assert room < -0.9 * deep


def test_of_two_edges_at_a_corner_within_a_polyhedron_the_one_that_leads_both_out_sooner_is_felt():
    """The other was told as deep as the way across the box, from one step to the next: an elastic box left the corner with 1.7 times its energy."""
    corners = 1.2 * np.array([(-1, -1, 0), (1, -1, 0), (1, 1, 0), (-1, 1, 0), (0, 0, 0)])
    sheet = MeshWall(corners, [(0, 1, 4), (1, 2, 4), (2, 3, 4), (3, 0, 4)])
    turn = Rotation.from_quat([0.27397, -0.09488, -0.70449, 0.64779])
    found = touch(Polyhedron.box(1.0, 1.3, 1.7), sheet, (1.5862, -1.4491, -0.85058), turn)
    assert len(found) == 1
    assert found[0, 3] == pytest.approx(-0.0099, abs=2e-4)
    assert found[0, 4:7] == pytest.approx((-0.49, 0.0, 0.87), abs=0.01)


def test_a_corner_of_a_sheet_inside_a_polyhedron_is_felt():
    """However deep: also past the centre, where the way out is longer than half the polyhedron."""
    random = np.random.default_rng(11)
    felt = 0
    for k in range(600):
        mesh, solid, turn = (PLATE, CHIP, BLADE)[k % 3], SOLIDS[k % 5], Rotation.random(random_state=random)
        corners = np.asarray(mesh.mesh.vertex)
        centre = corners[random.integers(len(corners))] + 0.3 * random.normal(size=3)
        over = turn.inv().apply(corners - centre) @ solid.hull.normal - solid.hull.offset
        if over.max(1).min() < 0.0:
            assert len(touch(solid, mesh, tuple(centre), turn)) > 0
            felt += 1
    assert felt > 300


def roof(cuts):
    """A roof along y with its ridge at z = 0, divided at these places."""
    y = np.array([-3.0, *cuts, 3.0])
    vertices = np.concatenate([np.c_[x + 0 * y, y, z + 0 * y] for x, z in ((-2.0, -0.8), (0.0, 0.0), (2.0, -0.8))])
    quads = [(i, i + 1, i + 1 + len(y), i + len(y)) for j in (0, len(y)) for i in range(j, j + len(y) - 1)]
    return MeshWall(vertices, [half for a, b, c, d in quads for half in ((a, b, c), (a, c, d))])


@pytest.mark.parametrize("solid", SOLIDS)
def test_into_how_many_edges_a_straight_ridge_is_divided_has_no_influence(solid):
    random = np.random.default_rng(5)
    seen = 0
    for _ in range(150):
        turn = Rotation.random(random_state=random)
        low = turn.apply(solid.vertices)[:, 2].min()
        centre = np.append(random.uniform(-0.4, 0.4, 2), -low - random.uniform(0.0, 0.15))
        found = []
        for cuts in ((), np.sort(random.uniform(-1.5, 1.5, 6))):
            points = touch(solid, roof(cuts), centre, turn)
            found.append(rows(points[points[:, 7] % 4 == EDGE_EDGE][:, :7]))
        seen += len(found[0]) > 0
        np.testing.assert_array_equal(*found)
    assert seen > 30

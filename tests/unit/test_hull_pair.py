"""Two polyhedra: the least way out against every face and pair of edges in NumPy, and the points where they touch."""

import numpy as np
import pytest

from clast import Polyhedron
from clast.kernels.vec import rotation_matrices
from clast.narrow import polyhedron_manifold as hull_patch
from clast.narrow import polyhedron_polyhedron as hull_pair
from clast.narrow.polyhedron_outline import common_outline
from clast.narrow.polyhedron_polyhedron import EDGE_EDGE, POINT, VERTEX_FACE
from clast.scene.stacking import join_hulls, join_molds, make_mold

CUBE = Polyhedron.box(1.0, 1.0, 1.0)
SLAB = Polyhedron.box(2.0, 1.2, 0.3)
# The same cube, which nothing tells is a box: its faces are not along its axes.
HALF = np.sqrt(0.5)
TURNED = Polyhedron(CUBE.vertices @ np.array([[HALF, HALF, 0.0], [-HALF, HALF, 0.0], [0.0, 0.0, 1.0]]))
ROCK = Polyhedron.random(faces=24, seed=4)
OCTAHEDRON = Polyhedron.regular("octahedron", radius=1.0)
NEEDLE = Polyhedron(ROCK.vertices * (0.1, 0.2, 2.0))
SHAPES = {"cube": CUBE, "slab": SLAB, "turned": TURNED, "rock": ROCK, "octahedron": OCTAHEDRON, "needle": NEEDLE}


def table(a, b):
    """Hulls with a in row 0 and b in row 1."""
    return join_molds([make_mold(a), make_mold(b)])[3]


def tuples(matrix):
    return tuple(tuple(row) for row in matrix)


def touch(a, b, turn, d, scale=(1.0, 1.0), limit=0.0, margin=0.0):
    """(s, n, type) and the points (k,8) of a and b; turn (3,3), d (3,)."""
    hulls = table(a, b)
    work = np.full(hull_pair.work_width(hulls), np.nan)
    pose = 0, scale[0], 1, scale[1], tuples(turn), tuple(d)
    found = hull_pair.separation(*pose, hulls, limit, work)
    count = hull_patch.contact_points(*pose, found, hulls, margin, work) if found[0] <= margin else 0
    return found[0], np.array(found[1]), found[2], work[: POINT * count].reshape(count, POINT).copy()


def corners(a, b, turn, d, scale=(1.0, 1.0)):
    return scale[0] * a.vertices, scale[1] * b.vertices @ np.asarray(turn).T + d


def slow_separation(a, b, turn, d, scale=(1.0, 1.0)):
    """The largest separation over all normals of faces and all cross products of edges, and its direction."""
    va, vb = corners(a, b, turn, d, scale)
    edges = [v[p.hull.edge[:, 1]] - v[p.hull.edge[:, 0]] for p, v in ((a, va), (b, vb))]
    across = np.cross(edges[0][:, None], edges[1][None]).reshape(-1, 3)
    length = np.linalg.norm(across, axis=1)
    across = across[length > 1e-9] / length[length > 1e-9, None]
    normals = np.concatenate([a.hull.normal.T, -(b.hull.normal.T @ np.asarray(turn).T)])
    s = apart(va, vb, normals)
    best = s.max(), normals[s.argmax()]
    for some in np.array_split(across, len(across) // 1000 + 1):  # few, so that heights fit into the cache
        for way in (some, -some):
            # Between a few of the corners they are no nearer than between all: most directions are out at once.
            way = way[apart(va[::16], vb[::16], way) > best[0]]
            s = apart(va, vb, way)
            if len(way) and s.max() > best[0]:
                best = s.max(), way[s.argmax()]
    return best


def apart(va, vb, n):
    """How far corners va are from corners vb along n (k,3): (k,)."""
    return (vb @ n.T).min(0) - (va @ n.T).max(0)


def poses(count, reach, seed):
    """Random turns (n,3,3) and ways (n,3) up to `reach`."""
    rng = np.random.default_rng(seed)
    q = rng.normal(size=(count, 4))
    way = rng.normal(size=(count, 3))
    way *= reach * rng.random((count, 1)) ** 0.5 / np.linalg.norm(way, axis=1)[:, None]
    return rotation_matrices(q / np.linalg.norm(q, axis=1)[:, None]), way


@pytest.mark.parametrize(
    "names",
    [
        ("cube", "cube"),
        ("cube", "slab"),
        ("turned", "cube"),
        ("rock", "rock"),
        ("octahedron", "rock"),
        ("needle", "slab"),
    ],
    ids="-".join,
)
def test_least_way_out(names):
    a, b = (SHAPES[name] for name in names)
    scale = (1.0, 1.3)
    turns, ways = poses(120, a.hull.outer[0] + 1.3 * b.hull.outer[0], 1)
    kinds = []
    for turn, d in zip(turns, ways, strict=True):
        s, n, kind, spots = touch(a, b, turn, d, scale)
        true, _ = slow_separation(a, b, turn, d, scale)
        assert (s > 0.0) == (true > 0.0)
        if s > 0.0:
            continue
        kinds.append(kind)
        assert s == pytest.approx(true, abs=1e-9)
        # Moved this far along n, the two just touch; n is where b is to go.
        assert slow_separation(a, b, turn, d - s * n, scale)[0] == pytest.approx(0.0, abs=1e-9)
        assert spots[0, 3] == pytest.approx(s, abs=1e-9)
        assert (spots[:, 3] <= 0.0).all()
        assert (np.diff(spots[:, 3]) >= 0.0).any() or len(spots) < 3
        assert (spots[:, 7] % 4 == kind).all()
    assert {VERTEX_FACE, EDGE_EDGE} == set(kinds)


def test_points_are_in_both_bodies():
    turns, ways = poses(300, 1.4, 2)
    seen = np.zeros(5, int)
    for turn, d in zip(turns, ways, strict=True):
        s, n, kind, spots = touch(ROCK, CUBE, turn, d)
        if s > 0.0:
            continue
        seen[len(spots)] += 1
        for i, spot in enumerate(spots):
            own, other = spot[:3], spot[:3] + spot[3] * n
            # On the surface of a, and across the overlap on that of b; beside crossed edges n is not that of the faces.
            near = 0.3 * abs(s) if i > 0 and kind == EDGE_EDGE else 1e-9
            assert np.max(ROCK.hull.normal.T @ own - ROCK.hull.offset) < near
            assert np.max(CUBE.hull.normal.T @ ((other - d) @ turn) - CUBE.hull.offset) < near
    assert (seen[1:] > 2).all()


def test_swapping_the_two_turns_the_answer_round():
    turns, ways = poses(100, 1.8, 3)
    for turn, d in zip(turns, ways, strict=True):
        s, n, kind, _ = touch(ROCK, OCTAHEDRON, turn, d)
        t, m, other, _ = touch(OCTAHEDRON, ROCK, turn.T, -turn.T @ d)
        if s < 0.0:
            assert t == pytest.approx(s, abs=1e-9)
            assert kind == other
            assert turn @ m == pytest.approx(-n, abs=1e-6)


def test_boxes_and_the_same_as_polyhedra():
    """Two roads: half-widths of boxes, and faces and edges of any polyhedron."""
    spin = np.array([[HALF, HALF, 0.0], [-HALF, HALF, 0.0], [0.0, 0.0, 1.0]])
    turns, ways = poses(400, 1.5, 4)
    edges = 0
    for turn, d in zip(turns, ways, strict=True):
        s, n, kind, spots = touch(CUBE, SLAB, turn, d)
        t, m, other, points = touch(TURNED, SLAB, spin.T @ turn, spin.T @ d)
        assert (s > 0.0) == (t > 0.0)
        if s < 0.0:
            edges += kind == EDGE_EDGE
            assert t == pytest.approx(s, abs=1e-9)
            assert kind == other
            # Of more than four points the two may choose others, but never leave out the deepest.
            assert len(spots) == len(points)
            assert spots[0, 3] == pytest.approx(points[0, 3], abs=1e-9)
    assert edges > 20


def test_boxes_that_lie_nearly_flat_have_the_points_of_polyhedra():
    """Where outlines are cut: all points, in the same places."""
    random = np.random.default_rng(5)
    spin = np.array([[HALF, HALF, 0.0], [-HALF, HALF, 0.0], [0.0, 0.0, 1.0]])
    cut = 0
    for k in range(300):
        tilt = random.normal(size=3) * (1e-4, 0.02, 0.1)[k % 3]
        turn = rotation_matrices(np.array([[1.0, *tilt]]) / np.sqrt(1.0 + tilt @ tilt))[0]
        d = (*random.uniform(-1.0, 1.0, 2), 0.65 - 10.0 ** random.uniform(-4.0, -1.5))
        spots = touch(CUBE, SLAB, turn, d)[3]
        points = touch(TURNED, SLAB, spin.T @ turn, spin.T @ d)[3]
        assert len(spots) == len(points)
        if len(spots) == 0:
            continue
        # Of more than four corners the two may choose others.
        far = np.abs(spots[:, None, :3] - (points[:, :3] @ spin.T)[None]).max(2)
        assert far[0].min() < 1e-9
        if len(spots) < 4:
            assert far.min(1).max() < 1e-9
            cut += len(spots) > 1
    assert cut > 20


def test_a_box_on_a_box_has_four_points():
    s, n, kind, spots = touch(SLAB, CUBE, np.eye(3), (0.3, 0.0, 0.15 + 0.5 - 0.01))
    assert s == pytest.approx(-0.01)
    assert n == pytest.approx((0.0, 0.0, 1.0))
    assert kind == VERTEX_FACE
    assert sorted(map(tuple, np.round(spots[:, :2], 9).tolist())) == [
        (-0.2, -0.5),
        (-0.2, 0.5),
        (0.8, -0.5),
        (0.8, 0.5),
    ]
    assert spots[:, 2] == pytest.approx(np.full(4, 0.15))
    assert spots[:, 3] == pytest.approx(np.full(4, -0.01))


def test_an_overhanging_box_is_cut_at_the_rim():
    _, _, _, spots = touch(SLAB, CUBE, np.eye(3), (0.8, 0.0, 0.64))
    assert sorted(set(np.round(spots[:, 0], 9))) == [0.3, 1.0]


def test_an_edge_on_a_face_has_two_points_and_a_corner_one():
    tilt = np.array([[HALF, 0.0, HALF], [0.0, 1.0, 0.0], [-HALF, 0.0, HALF]])
    _, _, kind, spots = touch(SLAB, CUBE, tilt, (0.0, 0.0, 0.15 + HALF - 0.01))
    assert kind == VERTEX_FACE
    assert sorted(np.round(spots[:, 1], 9)) == [-0.5, 0.5]
    s, n, _, spots = touch(SLAB, OCTAHEDRON, np.eye(3), (0.1, 0.0, 1.15 - 0.02))
    assert len(spots) == 1
    assert spots[0, :3] == pytest.approx((0.1, 0.0, 0.15))
    assert s == pytest.approx(-0.02)


def test_crossed_edges():
    """Two cubes, each on an edge and one turned by a right angle about the vertical: their edges cross."""
    low = np.array([[HALF, 0.0, HALF], [0.0, 1.0, 0.0], [-HALF, 0.0, HALF]])
    high = np.array([[1.0, 0.0, 0.0], [0.0, HALF, -HALF], [0.0, HALF, HALF]])
    gap = -0.03
    d = low.T @ np.array([0.1, 0.2, 2.0 * HALF + gap])
    s, n, kind, spots = touch(CUBE, CUBE, low.T @ high, d)
    assert kind == EDGE_EDGE
    assert s == pytest.approx(gap)
    assert low @ n == pytest.approx((0.0, 0.0, 1.0))
    assert low @ spots[0, :3] == pytest.approx((0.0, 0.2, HALF))


def test_a_box_askew_on_a_box_is_held_as_one_that_lies_flat():
    """Turned about all axes by little, the best direction may belong to two edges; the patch is still there."""
    kinds = []
    for seed in range(60):
        a, b, c = np.random.default_rng(seed).normal(size=3) * 1e-3
        q = np.array([1.0, a, b, 50.0 * c])
        turn = rotation_matrices((q / np.linalg.norm(q))[None])[0]
        s, n, kind, spots = touch(SLAB, CUBE, turn, (0.3, 0.0, 0.15 + 0.5 - 0.02))
        kinds.append(kind)
        assert len(spots) == 4
        assert spots[0, 3] == pytest.approx(s, abs=1e-12)
        assert np.ptp(spots[:, 0]) == pytest.approx(1.0, abs=0.3)
        assert np.ptp(spots[:, 1]) == pytest.approx(1.0, abs=0.3)
        assert np.abs(spots[:, 3] + 0.02).max() < 8e-3
    assert EDGE_EDGE in kinds


def test_the_gap_does_not_jump_along_a_path():
    """One rock past another, turning: the least way out is continuous however the features take turns."""
    steps = 1500
    angle = np.linspace(0.0, 3.0, steps)
    last, kinds = None, set()
    for k in range(steps):
        c, s = np.cos(angle[k]), np.sin(angle[k])
        turn = np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])
        gap, _, kind, _ = touch(ROCK, OCTAHEDRON, turn, (-1.2 + 2.4 * k / steps, 0.4, 1.0), limit=np.inf)
        kinds.add(kind)
        if last is not None:
            # No point moves farther in one step than this.
            assert abs(gap - last) < (2.4 + 3.0 * OCTAHEDRON.hull.outer[0]) / steps * 1.01
        last = gap
    assert kinds == {VERTEX_FACE, EDGE_EDGE}


def test_a_remembered_plane_parts():
    hulls = table(CUBE, CUBE)
    still = (1.0, 0.0, 0.0, 0.0)
    pose = 0, 1.0, still, 1, 1.0, still, (1.2, 0.3, 0.0)
    assert hull_pair.parted(*pose, (1.0, 0.0, 0.0), hulls)
    assert not hull_pair.parted(*pose, (0.0, 1.0, 0.0), hulls)
    assert not hull_pair.parted(*pose, (0.0, 0.0, 0.0), hulls)


def test_hundreds_of_faces():
    rng = np.random.default_rng(5)
    points = rng.normal(size=(210, 3))
    ball = Polyhedron(points / np.linalg.norm(points, axis=1)[:, None])
    assert len(ball.faces) > 400
    for d in ((1.9, 0.1, 0.0), (0.3, 1.0, -1.2), (0.05, 0.0, 0.1)):
        s, n, _, spots = touch(ball, ball, np.eye(3), d)
        true, _ = slow_separation(ball, ball, np.eye(3), d)
        assert s == pytest.approx(true, abs=1e-9)
        assert len(spots) >= 1


def test_where_the_corners_of_a_face_begin_has_no_influence():
    """The common part of two faces to the bit, whichever corner of one of them is counted first."""

    def prism(sides, radius):
        angle = 0.1 + 2.0 * np.pi * np.arange(sides) / sides
        around = radius * np.stack([np.cos(angle), np.sin(angle)], axis=1)
        return Polyhedron(np.concatenate([np.insert(around, 2, height, axis=1) for height in (-0.5, 0.5)]))

    hulls = join_hulls([prism(5, 1.0).hull, prism(7, 1.2).hull])
    top, bottom = int(np.argmax(hulls.normal[2, : hulls.face_start[1]])), hulls.face_start[1]
    bottom += int(np.argmin(hulls.normal[2, bottom:]))
    own = slice(hulls.loop_start[bottom], hulls.loop_start[bottom + 1])
    random = np.random.default_rng(5)
    for _ in range(40):
        about = np.array([[1.0, *random.normal(scale=0.02, size=2), random.normal()]])
        turn = rotation_matrices(about / np.linalg.norm(about))[0]
        away = (*random.normal(scale=0.3, size=2).tolist(), 0.99)
        found = []
        for first in range(7):
            loop = hulls.loop.copy()
            loop[own] = np.roll(loop[own], first)
            work = np.zeros(hull_pair.work_width(hulls))
            rolled = hulls._replace(loop=loop)
            at, count = common_outline(
                1.0, top, 1.0, bottom, tuple(map(tuple, turn.tolist())), away, 1.0, rolled, 9.0, work
            )
            found.append(set(map(tuple, work[at : at + 4 * count].reshape(-1, 4).tolist())))
        assert len(found[0]) > 3
        assert all(other == found[0] for other in found)

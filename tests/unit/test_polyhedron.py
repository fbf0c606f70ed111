"""Polyhedra: hulls of clean and of dirty points, their tables, mass properties, regular solids, rocks and mesh files."""

import json
import math
from pathlib import Path

import numpy as np
import pytest

import clast
from clast.kernels.vec import rotation_matrices
from clast.shapes import Polyhedron
from clast.shapes import hull as hulls

DATA = Path(__file__).resolve().parents[3] / "shared" / "data"
TURN = rotation_matrices(np.array([[0.8, 0.36, 0.48, 0.0]]))[0]
ROOT5 = math.sqrt(5.0)
GOLDEN = 0.5 * (1.0 + ROOT5)
# Faces, edges, volume / edge^3, moment of inertia / (mass edge^2) and edge / radius of the ball through the corners.
SOLIDS = {
    "tetrahedron": (4, 6, math.sqrt(2.0) / 12.0, 1.0 / 20.0, math.sqrt(8.0 / 3.0)),
    "cube": (6, 12, 1.0, 1.0 / 6.0, 2.0 / math.sqrt(3.0)),
    "octahedron": (8, 12, math.sqrt(2.0) / 3.0, 1.0 / 10.0, math.sqrt(2.0)),
    "dodecahedron": (
        12,
        30,
        (15.0 + 7.0 * ROOT5) / 4.0,
        (39.0 * GOLDEN + 28.0) / 150.0,
        4.0 / math.sqrt(3.0) / (1.0 + ROOT5),
    ),
    "icosahedron": (20, 30, 5.0 * (3.0 + ROOT5) / 12.0, GOLDEN**2 / 10.0, 1.0 / math.sin(2.0 * math.pi / 5.0)),
}
GRID = np.stack(np.meshgrid(*[np.arange(4.0)] * 3), axis=-1).reshape(-1, 3)


def cloud(name):
    path = DATA / "collision" / "parry_hull_points.json"
    if not path.exists():
        pytest.skip("no reference data")
    return np.array(json.loads(path.read_text())["cases"][name])


def check_tables(shape, points=None, within=1e-6):
    """What must hold for every polyhedron; within: how far points may lie outside, as part of the size."""
    table, corners = shape.hull, shape.vertices
    size = np.ptp(corners, axis=0).max()
    normal, vertex = table.normal.T, table.vertex.T
    assert np.array_equal(vertex, corners)
    assert len(corners) - len(table.edge) + len(shape.faces) == 2
    np.testing.assert_allclose(np.linalg.norm(normal, axis=1), 1.0, rtol=1e-14)
    height = vertex @ normal.T - table.offset
    assert height.max() <= 1e-15 * size
    for face, (one, shift) in enumerate(zip(shape.faces, np.split(table.loop, table.loop_start[1:-1]), strict=True)):
        assert np.array_equal(one, shift)
        assert height[one, face].min() >= -within * size, "corners of a face lie in its plane"
    # Each edge has two faces, which run along it in opposite directions.
    loop, after = table.loop, np.concatenate([np.roll(face, -1) for face in shape.faces])
    owner = np.repeat(np.arange(len(shape.faces)), np.diff(table.loop_start))
    sides = {(a, b): f for a, b, f in zip(loop.tolist(), after.tolist(), owner.tolist(), strict=True)}
    assert len(sides) == len(loop) == 2 * len(table.edge)
    for (a, b), faces in zip(table.edge.tolist(), table.edge_face.tolist(), strict=True):
        assert faces == [sides[a, b], sides[b, a]] and faces[0] != faces[1]
    first, second = normal[table.edge_face[:, 0]], normal[table.edge_face[:, 1]]
    along = corners[table.edge[:, 1]] - corners[table.edge[:, 0]]
    assert (np.einsum("ei,ei->e", np.cross(first, second), along) > 0.0).all()
    # Outlines: the side looks out of the face, in its plane, and holds all its corners.
    side = table.side.T
    np.testing.assert_allclose(np.linalg.norm(side, axis=1), 1.0, rtol=1e-14)
    assert np.abs(np.einsum("li,li->l", side, normal[owner])).max() < 1e-12
    for k in range(len(loop)):
        assert (corners[shape.faces[owner[k]]] @ side[k] - table.side_offset[k]).max() <= within * size
    cosine = np.einsum("ei,ei->e", normal[table.edge_face[:, 0]], normal[table.edge_face[:, 1]])
    np.testing.assert_allclose(table.edge_bend[:, 0], cosine, atol=1e-14)
    assert np.isfinite(table.edge_bend).all()
    bent = np.abs(cosine) < 0.999
    np.testing.assert_allclose(table.edge_bend[bent, 1], 1.0 / (1.0 - cosine[bent] ** 2), rtol=1e-9)
    assert table.inner[0] == table.offset.min() > 0.0
    assert table.outer[0] == np.linalg.norm(corners, axis=1).max()
    assert 4.0 / 3.0 * math.pi * table.ball[0] ** 3 == pytest.approx(shape.volume, rel=1e-14)
    if points is not None:
        assert (hulls.reach_along(points - shape.origin, normal) - table.offset).max() <= within * size


def numbers_of(shape):
    return len(shape.vertices), len(shape.hull.edge), len(shape.faces)


@pytest.mark.parametrize("name", SOLIDS)
def test_regular_solids_have_their_volume_inertia_and_size(name):
    faces, edges, volume, moment, ratio = SOLIDS[name]
    shape = Polyhedron.regular(name, edge=0.3)
    check_tables(shape, within=1e-15)
    assert numbers_of(shape) == (edges - faces + 2, edges, faces)
    assert shape.volume == pytest.approx(volume * 0.3**3, rel=1e-14)
    np.testing.assert_allclose(shape.inertia, moment * 0.3**2 * np.eye(3), rtol=1e-13, atol=0.0)
    ends = shape.vertices[shape.hull.edge]
    np.testing.assert_allclose(np.linalg.norm(ends[:, 0] - ends[:, 1], axis=1), 0.3, rtol=1e-14)
    # Exact symmetry: the centre of mass is the centre, and no axis is preferred.
    assert not shape.origin.any() and not np.signbit(shape.vertices[shape.vertices == 0.0]).any()
    assert np.array_equal(shape.inertia, shape.inertia[0, 0] * np.eye(3))
    ball = Polyhedron.regular(name, radius=2.0)
    np.testing.assert_allclose(np.linalg.norm(ball.vertices, axis=1), 2.0, rtol=1e-14)
    assert Polyhedron.regular(name).hull.outer[0] == pytest.approx(1.0)
    assert np.linalg.norm(ends[0, 0]) * ratio == pytest.approx(0.3, rel=1e-14)


@pytest.mark.parametrize(
    "edges", [(2.0, 1.0, 0.5), (0.1, 0.2, 0.3), (1.0, 1.0, 1e-4), (3e-6, 1.0, 1.0), (1e-9, 2e-9, 1e-9)]
)
def test_a_box_is_exact(edges):
    shape = Polyhedron.box(*edges)
    check_tables(shape, within=0.0)
    a, b, c = edges
    assert shape.volume == pytest.approx(a * b * c, rel=1e-14)
    np.testing.assert_allclose(shape.inertia, np.diag([b * b + c * c, c * c + a * a, a * a + b * b]) / 12.0, rtol=1e-14)
    assert sorted(map(tuple, shape.hull.normal.T)) == sorted(map(tuple, np.vstack([np.eye(3), -np.eye(3)])))
    assert np.array_equal(np.unique(np.abs(shape.vertices), axis=0), [[a / 2, b / 2, c / 2]])
    assert not np.signbit(shape.hull.normal[shape.hull.normal == 0.0]).any()
    assert np.array_equal(shape.hull.edge_bend, np.tile([0.0, 1.0], (12, 1)))


@pytest.mark.parametrize("name", SOLIDS)
def test_symmetry_does_not_depend_on_the_order_of_points(name):
    corners = Polyhedron.regular(name, radius=0.7).vertices
    for seed in range(8):
        shape = Polyhedron(corners[np.random.default_rng(seed).permutation(len(corners))])
        assert not shape.origin.any()
        assert np.array_equal(shape.inertia, shape.inertia[0, 0] * np.eye(3))


def test_a_box_somewhere_has_the_normals_and_the_hash_of_one_at_the_origin():
    corners = Polyhedron.box(0.3, 0.7, 0.4).vertices + [0.1, 0.2, -0.05]
    corners = np.nextafter(
        corners, np.random.default_rng(1).choice([-9.0, 9.0], corners.shape)
    )  # the last bit up or down
    assert sorted(np.abs(Polyhedron(corners).hull.normal).ravel().tolist()) == [0.0] * 12 + [1.0] * 6
    pyramid = np.array([[0.0, 0.0, 1.0], [1.0, 0.0, -1.0], [-1.0, 0.0, -1.0], [0.0, 1.0, -1.0], [0.0, -1.0, -1.0]])
    one, other = Polyhedron(pyramid), Polyhedron(np.where(pyramid == 0.0, -0.0, pyramid))
    assert one == other and hash(one) == hash(other)


def test_mass_properties_of_a_rock_by_counting_points_inside():
    rock = Polyhedron.random(faces=23, seed=5, radius=0.7, aspect=(1.0, 0.8, 0.5))
    low, high = rock.bounds()
    middles = (np.stack(np.meshgrid(*[np.arange(90)] * 3), axis=-1).reshape(-1, 3) + 0.5) / 90
    points = low + middles * (high - low)
    inside = points[(points @ rock.hull.normal <= rock.hull.offset).all(axis=1)]
    assert len(inside) / len(points) * np.prod(high - low) == pytest.approx(rock.volume, rel=1e-3)
    np.testing.assert_allclose(inside.mean(0), 0.0, atol=2e-4 * 0.7)
    second = inside.T @ inside / len(inside)
    np.testing.assert_allclose(np.trace(second) * np.eye(3) - second, rock.inertia, atol=1e-3 * np.trace(rock.inertia))


def test_mass_properties_agree_with_trimesh():
    trimesh = pytest.importorskip("trimesh")
    points = np.random.default_rng(3).normal(size=(60, 3)) * [1.0, 0.2, 3.0] + [5.0, 0.0, -2.0]
    shape, other = Polyhedron(points), trimesh.Trimesh(points).convex_hull
    assert shape.volume == pytest.approx(other.volume, rel=1e-12)
    np.testing.assert_allclose(shape.origin, other.center_mass, rtol=1e-12)
    np.testing.assert_allclose(shape.inertia, other.moment_inertia / other.volume, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(
        shape.vertices + shape.origin, points[np.sort(np.unique(other_rows(points)))], atol=1e-14
    )


def other_rows(points):
    from scipy.spatial import ConvexHull

    return ConvexHull(points).vertices


DIRTY = {
    "inner and repeated points": (np.repeat(GRID, 3, axis=0), 0.0),
    "turned": (GRID @ TURN.T, 1e-15),
    "far away": (GRID * 1e-3 + 1e3, 1e-9),
    "single precision": ((GRID @ TURN.T + 5.0).astype(np.float32).astype(float), 3e-7),
    "noise": (GRID @ TURN.T + 1e-8 * np.random.default_rng(1).normal(size=GRID.shape), 3e-8),
    "a bevel as fine as rounding": (np.concatenate([GRID * (1.0 - 1e-10 * row) for row in np.eye(3)]) @ TURN.T, 1e-9),
}


@pytest.mark.parametrize(("points", "within"), DIRTY.values(), ids=DIRTY)
def test_a_cube_is_found_in_dirty_points(points, within):
    shape = Polyhedron(points)
    assert numbers_of(shape) == (8, 12, 6)
    check_tables(shape, points, within=within)


@pytest.mark.parametrize("noise", [1e-12, 1e-10, 1e-8, 1e-7, 3e-7, 1e-6, 1e-5, 1e-3])
@pytest.mark.parametrize("flat", [1.0, 1e-3])
def test_nearly_coplanar_points_always_give_consistent_faces(noise, flat):
    points = (GRID + noise * np.random.default_rng(7).normal(size=GRID.shape)) * [1.0, 1.0, flat] @ TURN.T
    check_tables(Polyhedron(points), points)


@pytest.mark.parametrize(("flat", "seed"), [(1e-3, 25), (1e-4, 8), (1e-5, 19)])
def test_a_finer_tolerance_is_taken_where_faces_would_not_fit_together(flat, seed):
    points = np.random.default_rng(seed).normal(size=(200, 3))
    points *= [1.0, 1.0, flat] / np.linalg.norm(points, axis=1)[:, None]
    check_tables(Polyhedron(points), points)


@pytest.mark.parametrize("seed", [11, 12, 16, 17])
def test_every_edge_bends_outward(seed):
    noise = 3e-6 * np.random.default_rng(seed).normal(size=GRID.shape)
    points = (GRID + noise) * [1.0, 1.0, 3e-4] @ TURN.T
    check_tables(Polyhedron(points), points)


@pytest.mark.parametrize("seed", [11, 20, 27, 33, 48])
def test_a_plate_with_the_finest_noise_is_a_box(seed):
    noise = 1e-11 * np.random.default_rng(seed).normal(size=GRID.shape)
    points = (GRID - 1.5 + noise) * [1.0, 1.0, 1e-4] @ TURN.T
    assert hulls.qhull(points, "Qt")[0] is not None, "Qhull gives up on these points as they are"
    shape = Polyhedron(points)
    assert numbers_of(shape) == (8, 12, 6)
    check_tables(shape, points, within=1e-10)


def test_the_bend_of_a_nearly_flat_edge_keeps_its_digits():
    rise = 1e-5  # of a pyramid on a cube; its faces have normals (2 rise, 0, 1) and so on
    shape = Polyhedron(np.vstack([Polyhedron.box(1, 1, 1).vertices, [0.0, 0.0, 0.5 + rise]]))
    check_tables(shape)
    exact = (1.0 + 4.0 * rise**2) ** 2 / (8.0 * rise**2 + 16.0 * rise**4)
    bend = np.sort(shape.hull.edge_bend[:, 1])
    np.testing.assert_allclose(bend[-4:], exact, rtol=1e-10)
    assert bend[-5] < 1.1


def test_a_point_cloud_that_broke_a_hull_code():
    points = cloud("test_complex_convex_hull")
    shape = Polyhedron(points)
    check_tables(shape, points)
    assert shape.volume == pytest.approx(0.18355884, rel=1e-6)
    # Its points are rounded to single precision: most of the 384 triangles of the hull are pieces of flat faces.
    assert numbers_of(shape) == (72, 149, 79)


def rhombicuboctahedron():
    """Corners of one with edges of length 1: all orders and signs of (1, 1, 1 + sqrt 2) / 2."""
    corner = np.array([0.5, 0.5, 0.5 + math.sqrt(0.5)])
    signs = np.stack(np.meshgrid(*[[-1.0, 1.0]] * 3), axis=-1).reshape(-1, 3)
    return np.concatenate([signs * np.roll(corner, k) for k in range(3)])


def test_flat_faces_are_found_in_a_cloud_of_single_precision():
    """Points all over the faces of a known body, and within: most triangles of their hull are pieces of flat faces."""
    corners, rng = rhombicuboctahedron(), np.random.default_rng(5)
    ways = np.array([(x, y, z) for x in (-1, 0, 1) for y in (-1, 0, 1) for z in (-1, 0, 1) if x or y or z], float)
    cloud = [corners, rng.uniform(-0.4, 0.4, (100, 3))]
    for way in ways:  # its 26 faces look along the axes and half way between two or three of them
        height = corners @ way
        face = corners[height > height.max() - 1e-9]
        cloud.append(rng.dirichlet(np.ones(len(face)), 20) @ face)
    points = (np.concatenate(cloud) @ TURN.T + [0.3, -0.2, 0.1]).astype(np.float32).astype(float)
    shape = Polyhedron(points)
    assert numbers_of(shape) == (24, 48, 26)
    check_tables(shape, points)
    assert shape.volume == pytest.approx(4.0 + 10.0 * math.sqrt(2.0) / 3.0, rel=1e-6)
    np.testing.assert_allclose(shape.origin, [0.3, -0.2, 0.1], atol=1e-6)


def test_a_round_body_keeps_all_its_faces():
    points = np.random.default_rng(2).normal(size=(400, 3))
    points /= np.linalg.norm(points, axis=1)[:, None]
    shape = Polyhedron(points)
    check_tables(shape, points, within=1e-14)
    assert numbers_of(shape) == (400, 1194, 796)
    angle = np.arange(300) * 2.0 * np.pi / 300
    ring = np.stack([np.cos(angle), np.sin(angle), np.zeros(300)], axis=1)
    prism = Polyhedron(np.concatenate([ring, 0.5 * ring, ring + [0.0, 0.0, 0.2], ring + [0.0, 0.0, 0.1]]) @ TURN.T)
    assert numbers_of(prism) == (600, 900, 302)


@pytest.mark.parametrize("thickness", [1e-2, 1e-4, 2e-6])
def test_thin_plates_are_bodies(thickness):
    points = Polyhedron.random(faces=20, seed=3).vertices * [1.0, 1.0, thickness]
    shape = Polyhedron(points @ TURN.T)
    check_tables(shape, points @ TURN.T, within=1e-12)
    assert len(shape.faces) == 20


REFUSED = {
    "too few": (np.eye(3), ValueError, "at least 4 points.*got 3"),
    "one point": (np.ones((9, 3)), ValueError, "are all the same point"),
    "a line": (np.outer(np.arange(9.0), [1, 2, 3]), ValueError, "lie on a line"),
    "a plane": (GRID * [1, 1, 0] @ TURN.T, ValueError, "lie in a plane .*clast.Quad"),
    "a plane in single precision": ((GRID * [1, 1, 0] @ TURN.T).astype(np.float32), ValueError, "lie in a plane"),
    "almost a plane": (GRID * [1, 1, 1e-7] @ TURN.T, ValueError, "lie in a plane .*at least 1e-06"),
    "not a number": (np.where(np.arange(12).reshape(4, 3) == 7, np.nan, 1.0), ValueError, "point 2 .*nan.*1 of 4"),
    "infinite": (np.where(np.arange(12).reshape(4, 3) == 7, np.inf, 1.0), ValueError, "point 2 .*inf"),
    "two columns": (np.ones((9, 2)), ValueError, r"shape \(n,3\) \[m\], got \(9, 2\)"),
    "words": ("cube", TypeError, "must be numbers.*'cube'"),
    "ragged": ([[0, 0, 0], [1, 1]], TypeError, "must be numbers"),
    "too small": (GRID * 1e-60, ValueError, "give metres"),
}


@pytest.mark.parametrize(("points", "error", "message"), REFUSED.values(), ids=REFUSED)
def test_points_without_a_body_are_refused(points, error, message):
    with pytest.raises(error, match=message):
        Polyhedron(points)


def test_the_planar_reference_set_is_refused():
    with pytest.raises(ValueError, match="lie in a plane"):
        Polyhedron(cloud("test_planar_convex_hull"))


ARGUMENTS = {
    "box without c": (lambda: Polyhedron.box(1, 2), TypeError, "c is missing; write for example"),
    "flat box": (lambda: Polyhedron.box(1, 2, 0), ValueError, "edge c of a box must be finite and above 0, got 0"),
    "box of words": (lambda: Polyhedron.box(1, "2m", 1), TypeError, "edge b of a box must be a number"),
    "unknown solid": (
        lambda: Polyhedron.regular("cub"),
        ValueError,
        "unknown regular solid 'cub'; did you mean 'cube'",
    ),
    "two sizes": (lambda: Polyhedron.regular("cube", radius=1, edge=1), ValueError, "both give its size"),
    "edge": (lambda: Polyhedron.regular("cube", edge=-1), ValueError, "edge must be finite and above 0, got -1"),
    "three faces": (lambda: Polyhedron.random(faces=3), ValueError, "faces must be at least 4, got 3"),
    "half a face": (lambda: Polyhedron.random(faces=8.5), TypeError, "faces must be a whole number, got 8.5"),
    "many faces": (lambda: Polyhedron.random(faces=5000), ValueError, "at most 500, got 5000"),
    "seed": (lambda: Polyhedron.random(faces=8, seed=-1), ValueError, "seed must be at least 0, got -1"),
    "radius": (lambda: Polyhedron.random(faces=8, radius=math.nan), ValueError, "radius must be finite"),
    "aspect": (lambda: Polyhedron.random(faces=8, aspect=2.0), ValueError, r"aspect must be three numbers"),
}


@pytest.mark.parametrize(("call", "error", "message"), ARGUMENTS.values(), ids=ARGUMENTS)
def test_wrong_arguments_are_answered(call, error, message):
    with pytest.raises(error, match=message):
        call()


@pytest.mark.parametrize("faces", [4, 5, 6, 7, 8, 9, 11, 14, 20, 37, 64, 100])
def test_rocks_have_exactly_so_many_faces_and_none_is_a_speck(faces):
    for seed in range(3):
        rock = Polyhedron.random(faces=faces, seed=seed, radius=0.05)
        check_tables(rock, within=1e-12)
        assert len(rock.faces) == faces
        assert rock.hull.outer[0] == pytest.approx(0.05, rel=1e-12)
        assert rock.hull.inner[0] > 0.15 * 0.05
        width = [np.ptp(rock.vertices[face], axis=0).max() for face in rock.faces]
        assert min(width) > 0.1 * np.mean(width)


def test_rocks_repeat_by_their_seed_and_stretch_by_their_aspect():
    one, same, other = (Polyhedron.random(faces=14, seed=seed) for seed in (1, 1, 2))
    assert np.array_equal(one.vertices, same.vertices) and one == same and hash(one) == hash(same)
    assert one != other and one != "rock"
    sizes = [Polyhedron.random(faces=60, seed=1, aspect=aspect).bounds() for aspect in ((1, 1, 1), (4, 2, 1))]
    even, long = (np.ptp(size, axis=0) for size in sizes)
    assert even.max() / even.min() < 1.2
    np.testing.assert_allclose(long / long[2] / (even / even[2]), [4.0, 2.0, 1.0], rtol=0.1)


def test_equal_polyhedra_share_one_mold():
    scene = clast.Scene()
    for k in range(3):
        scene.add(Polyhedron.box(1, 2, 3), position=(9.0 * k, 0, 0))
    scene.add(Polyhedron.box(1, 2, 4), position=(0, 9, 0))
    assert scene.bodies.mold.tolist() == [0, 0, 0, 1] and len(scene.hulls.inner) == 2
    changed = Polyhedron.box(1, 2, 3)
    changed.vertices[0] = 0.0  # what it is made of stays
    assert changed == Polyhedron.box(1, 2, 3)


def test_bounds_are_the_least_box():
    shape = Polyhedron.box(2.0, 4.0, 6.0)
    np.testing.assert_array_equal(shape.bounds((1, 1, 1)), [[0, -1, -2], [2, 3, 4]])
    eighth = (math.cos(math.pi / 8), 0.0, 0.0, math.sin(math.pi / 8))  # 45 degrees about z
    half = 3.0 / math.sqrt(2.0)
    np.testing.assert_allclose(shape.bounds(orientation=eighth), [[-half, -half, -3], [half, half, 3]], rtol=1e-14)


def write_off(path, vertices, triangles):
    lines = ["OFF", f"{len(vertices)} {len(triangles)} 0", *(" ".join(map(repr, map(float, v))) for v in vertices)]
    path.write_text("\n".join([*lines, *(f"3 {a} {b} {c}" for a, b, c in triangles)]) + "\n")
    return path


def test_convex_mesh_files_become_polyhedra(tmp_path):
    rock = Polyhedron.random(faces=17, seed=2, radius=0.3)
    vertices, triangles = rock.surface()
    triangles[::2] = triangles[::2, ::-1]  # The winding in a file may be anything.
    found = clast.load_mesh(write_off(tmp_path / "rock.off", vertices + [1.0, 2.0, 3.0], triangles), shape="polyhedron")
    assert numbers_of(found) == numbers_of(rock)
    assert found.volume == pytest.approx(rock.volume, rel=1e-12)
    np.testing.assert_allclose(found.origin, [1.0, 2.0, 3.0], atol=1e-14)
    assert isinstance(clast.load_mesh(tmp_path / "rock.off"), clast.MeshWall)
    with pytest.raises(ValueError, match="unknown shape of a mesh 'polyhedra'; did you mean 'polyhedron'"):
        clast.load_mesh(tmp_path / "rock.off", shape="polyhedra")


def test_meshes_that_are_no_convex_body_are_refused_with_the_reason(tmp_path):
    cube = Polyhedron.box(1, 1, 1)
    vertices, triangles = cube.surface()
    # A pyramid-shaped dent of a quarter of the height over two triangles: 1/12 of the volume is missing.
    face = cube.faces[0]
    kept = [row for row in triangles.tolist() if not set(row) <= set(face.tolist())]
    dented = np.vstack([vertices, 0.5 * vertices[face].mean(0)])
    fan = [[a, b, 8] for a, b in zip(face.tolist(), np.roll(face, -1).tolist(), strict=True)]
    path = write_off(tmp_path / "dent.off", dented, kept + fan)
    with pytest.raises(
        ValueError, match=r"not convex.*0\.916667 m\^3.*its hull 1 m\^3, 9\.09 % more; use shape='wall'"
    ):
        clast.load_mesh(path, shape="polyhedron")
    path = write_off(tmp_path / "open.off", vertices, kept)
    with pytest.raises(
        ValueError, match=r"not closed: of its 17 edges 4 belong to one triangle and 0 to more than two"
    ):
        clast.load_mesh(path, shape="polyhedron")
    path = write_off(tmp_path / "two.off", np.vstack([vertices, vertices + 3]), np.vstack([triangles, triangles + 8]))
    with pytest.raises(ValueError, match="in pieces: 12 of its 24 triangles"):
        clast.load_mesh(path, shape="polyhedron")


REAL = {
    "parry_tests/center_cylinder.obj": (64, 96, 34),
    "mercury_stl/RotatingDrum.stl": (48, 72, 26),
    "parry_tests/stairs.obj": "not convex: .*37 % more",
    "mujoco/torus.obj": "not convex: .*56.9 % more",
    "mercury_stl/Screw.stl": "not closed: .*384 to more than two",
    "mujoco/stanford_bunny.obj": "not closed: of its 7473 edges 42 belong to one triangle",
}


@pytest.mark.parametrize(("name", "expected"), REAL.items(), ids=[Path(name).stem for name in REAL])
def test_real_mesh_files(name, expected):
    path = DATA / "meshes" / name
    if not path.exists():
        pytest.skip("no reference data")
    if isinstance(expected, str):
        with pytest.raises(ValueError, match=expected):
            clast.load_mesh(path, shape="polyhedron")
    else:
        shape = clast.load_mesh(path, shape="polyhedron")
        assert numbers_of(shape) == expected
        check_tables(shape)


# Of a ball's random points all faces are triangles: 2 v - 4 of them, 3 v - 6 edges. By how much the hull is more than the solid: stairs are 15 squares
# in an outline of 17; the hulls of cup, torus and flange are stacks of frusta over regular polygons, n sin(2 pi / n) / 6 h (R^2 + R r + r^2).
OWN = {
    "rock.obj": (50, 144, 96),
    "quads.obj": (8, 12, 6),
    "stairs.obj": "not convex: .*13.3 % more",
    "cup.obj": "not convex: .*105 % more",
    "torus.obj": "not convex: .*39.1 % more",
    "flange.stl": "not convex: .*157 % more",
    "lump.obj": "not convex: ",
    "open.obj": "not closed: of its 96 edges 3 belong to one triangle and 0 to more than two",
    "two_boxes_and_one_edge.stl": "not closed: of its 35 edges 0 belong to one triangle and 1 to more than two",
    "points.obj": "no triangles",
}


@pytest.mark.parametrize(("name", "expected"), OWN.items(), ids=[Path(name).stem for name in OWN])
def test_own_mesh_files(name, expected, own_data):
    path = own_data / "meshes" / name
    if isinstance(expected, str):
        with pytest.raises(ValueError, match=expected):
            clast.load_mesh(path, shape="polyhedron")
        return
    shape = clast.load_mesh(path, shape="polyhedron")
    known = json.loads((own_data / "meshes.json").read_text(encoding="utf-8"))[name]
    assert numbers_of(shape) == expected
    check_tables(shape)
    assert shape.volume == pytest.approx(known["volume"], rel=1e-12)
    np.testing.assert_allclose(shape.origin, known["centre"], atol=1e-12)
    np.testing.assert_allclose(shape.inertia, known["inertia"], atol=1e-12)


@pytest.mark.parametrize("roof_first", [False, True])
@pytest.mark.parametrize("tilt", [0.0, 1e-4, -5e-4])
def test_an_edge_over_a_face_touches_at_both_ends(tilt, roof_first):
    """A roof upside down on a box: level, its ridge and a face touch; askew, the ridge and an edge of the box, and still at both ends."""
    corners = [(x, y, z) for y in (-0.2, 0.2) for x, z in ((0.0, 0.0), (-0.1, 0.1), (0.1, 0.1))]
    roof, box = clast.Polyhedron(np.array(corners)), clast.Polyhedron.box(0.1, 0.1, 0.1)
    height = 0.05 - roof.vertices[:, 2].min() - 1e-4
    pose = {"position": (0.01, 0, height), "orientation": (math.cos(0.5 * tilt), math.sin(0.5 * tilt), 0, 0)}
    scene = clast.Scene()
    for shape, options in [(roof, pose), (box, {})] if roof_first else [(box, {}), (roof, pose)]:
        scene.add(shape, **options)
    contacts = clast.find_contacts(scene)
    assert (contacts.feature % 4 == (1 if tilt == 0.0 else 2)).all()
    order = np.argsort(contacts.point[:, 1])
    assert contacts.point[order, 1] == pytest.approx([-0.05, 0.05], abs=1e-6)
    assert contacts.gap[order] == pytest.approx([-1e-4 - 0.05 * tilt, -1e-4 + 0.05 * tilt], rel=1e-3)

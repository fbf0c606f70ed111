"""Shapes: mass properties against closed forms, topology of meshes, and refusals with messages."""

import json
from pathlib import Path

import numpy as np
import pytest
import trimesh
from scipy.spatial.transform import Rotation

from clast.shapes import Clump, Cylinder, Ellipsoid, MeshWall, Plane, Quad, Sphere, load_mesh
from clast.tables import CYLINDER, ELLIPSOID, PLANE, SPHERE, TRIANGLE

MESHES = Path(__file__).resolve().parents[2].parent / "shared" / "data" / "meshes"

SQUARE = [[0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0]]
SHAPES = {
    "sphere": Sphere(0.5),
    "ellipsoid": Ellipsoid(0.5, 0.3, 0.2),
    "clump": Clump([[0, 0, 0], [1, 0, 0], [0.5, 0.8, 0.1]], [0.8, 0.7, 0.6]),
    "plane": Plane((0, 3, 4)),
    "drum": Cylinder(2.0, 3.0, axis=(1, 1, 0)),
    "rod": Cylinder(2.0, 3.0, inside=False),
    "pipe": Cylinder(1.0),
    "quad": Quad(SQUARE),
    "mesh": MeshWall([*SQUARE, [0, 0, 1]], [[0, 1, 2], [0, 2, 3], [0, 1, 4]]),
}


@pytest.mark.parametrize("name", SHAPES)
def test_every_shape_keeps_the_protocol(name):
    shape = SHAPES[name]
    parts = shape.parts()
    count = len(parts.kind)
    assert parts.kind.dtype == np.int8 and parts.feature.dtype == np.int32
    assert parts.offset.shape == parts.axis.shape == parts.size.shape == (count, 3)
    assert parts.reach.shape == (count,) and (parts.reach > 0).all()
    assert np.shape(shape.inertia) == (3, 3)
    assert shape.wall == (shape.volume == 0.0) == (not np.any(shape.inertia))
    assert (shape.mesh is None) == (parts.kind != TRIANGLE).all() == (parts.feature == -1).all()
    assert not shape.round or name == "sphere"
    vertices, triangles = shape.surface(4.0)
    assert vertices.shape[1] == 3 and triangles.shape[1] == 3
    assert np.unique(triangles).tolist() == list(range(len(vertices)))


def test_sphere_has_the_volume_and_inertia_of_a_ball():
    ball = Sphere(0.5)
    assert ball.volume == pytest.approx(np.pi / 6)
    np.testing.assert_allclose(ball.inertia, 0.1 * np.eye(3))
    parts = ball.parts()
    assert parts.kind.tolist() == [SPHERE] and parts.size.tolist() == [[0.5, 0, 0]] and parts.reach.tolist() == [0.5]
    np.testing.assert_allclose(np.linalg.norm(ball.surface(1.0)[0], axis=1), 0.5)
    for bad in (0.0, -1.0, np.nan, np.inf):
        with pytest.raises(ValueError, match="radius > 0, got"):
            Sphere(bad)


# Ellipsoids.

AXES = {"gravel": (1.25, 1.0, 0.8), "needle": (100.0, 1.0, 1.0), "disc": (1.0, 0.01, 1.0), "small": (3e-6, 1e-6, 2e-6)}


def quaternion(turn):
    """(w, x, y, z) of a scipy Rotation."""
    return np.roll(turn.as_quat(), 1)


@pytest.mark.parametrize("axes", AXES.values(), ids=AXES)
def test_ellipsoid_has_the_mass_properties_of_its_surface(axes):
    shape = Ellipsoid(*axes)
    skin = trimesh.Trimesh(*shape.surface(), process=False)
    assert skin.is_watertight and skin.is_winding_consistent
    # The facets are inscribed: 5120 of them miss 0.2 % of the volume of any ellipsoid.
    assert 0.995 < skin.volume / shape.volume < 1.0
    np.testing.assert_allclose(skin.center_mass, 0.0, atol=1e-9 * max(axes))
    ratio = skin.moment_inertia / skin.volume - shape.inertia
    np.testing.assert_allclose(ratio, 0.0, atol=5e-3 * shape.inertia.max())
    a, b, c = axes
    assert shape.volume == pytest.approx(4.0 / 3.0 * np.pi * a * b * c, rel=1e-15)
    np.testing.assert_allclose(shape.inertia, np.diag([b * b + c * c, a * a + c * c, a * a + b * b]) / 5.0, rtol=1e-15)


@pytest.mark.parametrize("axes", AXES.values(), ids=AXES)
def test_surface_of_an_ellipsoid_lies_on_it_and_has_its_tips(axes):
    vertices, _ = Ellipsoid(*axes).surface()
    np.testing.assert_allclose(((vertices / axes) ** 2).sum(axis=1), 1.0, rtol=1e-12)
    np.testing.assert_allclose(vertices.max(axis=0), axes, rtol=1e-12)
    np.testing.assert_allclose(vertices.min(axis=0), np.negative(axes), rtol=1e-12)


def test_ellipsoid_with_equal_axes_is_a_sphere():
    ball, egg = Sphere(0.7), Ellipsoid(0.7, 0.7, 0.7)
    assert egg.volume == pytest.approx(ball.volume, rel=1e-15) and egg.round
    np.testing.assert_allclose(egg.inertia, ball.inertia, rtol=1e-15)
    assert not Ellipsoid(0.7, 0.7, 0.6).round


def test_ellipsoid_parts():
    parts = Ellipsoid(0.2, 0.5, 0.3).parts()
    assert parts.kind.tolist() == [ELLIPSOID] and parts.size.tolist() == [[0.2, 0.5, 0.3]]
    assert parts.reach.tolist() == [0.5] and parts.offset.tolist() == [[0, 0, 0]]


@pytest.mark.parametrize("axes", AXES.values(), ids=AXES)
def test_bounds_of_an_ellipsoid_are_reached_and_not_crossed(axes):
    shape, random = Ellipsoid(*axes), np.random.default_rng(5)
    for turn in Rotation.random(20, random_state=6):
        place = random.normal(size=3)
        low, high = shape.bounds(place, quaternion(turn))
        # The point with the outward normal n is M n / sqrt(n.M n), with M = A R^2 A^T.
        form = turn.as_matrix() @ np.diag(np.square(axes)) @ turn.as_matrix().T
        tips = place + form / np.sqrt(np.diag(form))[:, None]
        np.testing.assert_allclose(np.diag(tips), high, rtol=1e-12, atol=1e-12 * max(axes))
        points = random.normal(size=(2000, 3))
        points *= axes / np.linalg.norm(points, axis=1)[:, None]
        points = turn.apply(points) + place
        slack = 1e-12 * max(1.0, *axes)
        assert (points <= high + slack).all() and (points >= low - slack).all()
        np.testing.assert_allclose(0.5 * (low + high), place, atol=slack)


@pytest.mark.parametrize(
    "values, error, message",
    [
        ((1.0, 2.0), TypeError, r"three half-axes a, b, c \[m\], and c is missing; write for example clast\.Ellipsoid"),
        ((1.0,), TypeError, r"b is missing; .* clast\.Sphere\(radius\) for a ball"),
        (([1.0, 2.0, 3.0],), TypeError, r"half-axis a .* must be one number .* got \[1\.0, 2\.0, 3\.0\]; write"),
        ((1.0, -2.0, 3.0), ValueError, r"half-axis b .* above 0, got -2\.0; write for example"),
        ((1.0, 2.0, 0), ValueError, "half-axis c .* above 0, got 0;"),
        ((np.nan, 2.0, 3.0), ValueError, "half-axis a .* finite .* got nan"),
        ((1.0, np.inf, 3.0), ValueError, "half-axis b .* finite .* got inf"),
        ((1.0, "wide", 3.0), TypeError, "half-axis b .* must be a number .* got 'wide'"),
    ],
)
def test_ellipsoid_refuses(values, error, message):
    with pytest.raises(error, match=message):
        Ellipsoid(*values)


# Clumps.


def two_balls(r, d):
    """Volume and second moments about the middle of two equal balls with centres d apart along x, d < 2 r."""
    # Each side is a ball cut at x = 0: slices of radius^2 r^2 - (x - d/2)^2 for x from 0 to d/2 + r.
    p = np.polynomial.Polynomial
    x = p([0, 1])
    square = r * r - (x - d / 2) ** 2

    def integrate(q):
        return 2 * (q.integ()(d / 2 + r) - q.integ()(0))

    volume = integrate(np.pi * square)
    xx, yy = integrate(np.pi * square * x**2), integrate(np.pi / 4 * square**2)
    return volume, xx / volume, yy / volume


@pytest.mark.parametrize("d", [0.2, 1.0, 1.9, 1.9999])
@pytest.mark.parametrize("direction", [(1, 0, 0), (0, 0, 1), (1, 2, 3)])
def test_two_overlapping_balls_count_their_lens_once(d, direction):
    turn, _ = Rotation.align_vectors([np.array(direction) / np.linalg.norm(direction)], [[1.0, 0, 0]])
    shift = np.array([5.0, -3.0, 2.0])
    clump = Clump(turn.apply([[-d / 2, 0, 0], [d / 2, 0, 0]]) + shift, [1.0, 1.0])
    volume, xx, yy = two_balls(1.0, d)
    axes = turn.as_matrix()
    inertia = axes @ np.diag([2 * yy, xx + yy, xx + yy]) @ axes.T
    assert clump.volume == pytest.approx(volume, rel=1e-8)
    np.testing.assert_allclose(clump.origin, shift, atol=1e-9)
    np.testing.assert_allclose(clump.inertia, inertia, atol=1e-8)
    np.testing.assert_allclose(clump.centres, turn.apply([[-d / 2, 0, 0], [d / 2, 0, 0]]), atol=1e-9)


def test_unequal_balls_have_volume_and_centre_of_their_two_caps():
    r, s, d = 1.0, 0.6, 1.1
    clump = Clump([[0, 0, 0], [0, d, 0]], [r, s])
    lens = np.pi * (r + s - d) ** 2 * (d * d + 2 * d * (r + s) - 3 * (r - s) ** 2) / (12 * d)
    assert clump.volume == pytest.approx(4 / 3 * np.pi * (r**3 + s**3) - lens, rel=1e-9)
    p = np.polynomial.Polynomial
    y, cut = p([0, 1]), (d * d + r * r - s * s) / (2 * d)
    low, high = (np.pi * y * (r * r - y**2)).integ(), (np.pi * y * (s * s - (y - d) ** 2)).integ()
    first = low(cut) - low(-r) + high(d + s) - high(cut)
    np.testing.assert_allclose(clump.origin, [0, first / clump.volume, 0], atol=1e-9)


def test_balls_that_only_touch_add_up():
    centres = np.array([[0, 0, 0], [2, 0, 0], [2, 1.5, 0], [2, 1.5, 0.75]])
    radii = np.array([1.0, 1.0, 0.5, 0.25])
    clump = Clump(centres, radii)
    mass = 4 / 3 * np.pi * radii**3
    origin = mass @ centres / mass.sum()
    x = centres - origin
    inertia = sum(
        m * (0.4 * r * r * np.eye(3) + (v @ v) * np.eye(3) - np.outer(v, v))
        for m, r, v in zip(mass, radii, x, strict=True)
    )
    assert clump.volume == pytest.approx(mass.sum(), rel=1e-10)
    np.testing.assert_allclose(clump.origin, origin, atol=1e-10)
    np.testing.assert_allclose(clump.inertia, inertia / mass.sum(), atol=1e-10)


def test_ball_inside_another_is_ignored():
    clump = Clump([[1, 2, 3], [1.2, 2, 3], [1, 2, 3], [1, 2, 3.5]], [1.0, 0.5, 1.0, 0.5])
    assert len(clump.parts().kind) == 1 and clump.round
    assert clump.volume == pytest.approx(4 / 3 * np.pi, rel=1e-12)
    np.testing.assert_allclose(clump.origin, [1, 2, 3], atol=1e-12)
    np.testing.assert_allclose(clump.inertia, 0.4 * np.eye(3), atol=1e-12)


def test_random_clumps_agree_with_a_grid_and_turn_with_their_axes():
    rng = np.random.default_rng(4)
    centres, radii = 0.6 * rng.normal(size=(9, 3)), rng.uniform(0.5, 0.8, 9)
    clump = Clump(centres, radii)
    step = 0.03
    axes = [np.arange(lo, hi, step) for lo, hi in zip((centres - 0.9).min(0), (centres + 0.9).max(0), strict=True)]
    points = np.stack(np.meshgrid(*axes, indexing="ij"), -1).reshape(-1, 3)
    inside = np.zeros(len(points), bool)
    for c, r in zip(centres, radii, strict=True):
        inside |= ((points - c) ** 2).sum(1) < r * r
    x = points[inside]
    assert clump.volume == pytest.approx(len(x) * step**3, rel=1e-3)
    np.testing.assert_allclose(clump.origin, x.mean(0), atol=1e-3)
    second = np.cov(x.T, bias=True)
    np.testing.assert_allclose(clump.inertia, np.trace(second) * np.eye(3) - second, atol=2e-3)
    turn = Rotation.random(random_state=1)
    turned = Clump(turn.apply(centres), radii)
    assert turned.volume == pytest.approx(clump.volume, rel=1e-8)
    m = turn.as_matrix()
    np.testing.assert_allclose(turned.inertia, m @ clump.inertia @ m.T, atol=1e-8)


def test_clump_scales_with_its_size():
    centres, radii = np.array([[0, 0, 0], [1, 0.3, 0.2]]), np.array([0.9, 0.6])
    big, small = Clump(centres, radii), Clump(1e-6 * centres, 1e-6 * radii)
    assert small.volume == pytest.approx(1e-18 * big.volume, rel=1e-12)
    np.testing.assert_allclose(small.inertia, 1e-12 * big.inertia, rtol=1e-9, atol=1e-26)


@pytest.mark.parametrize(
    "centres, radii, message",
    [
        ([[0, 0, 0], [0, 0, np.nan]], [1, 1], "ball 1 .* nan"),
        ([[0, 0, 0], [0, 0, 1]], [1, 0], "ball 1 .* 0.0"),
        ([[0, 0, 0], [0, 0, 1]], [-2, 1], "ball 0 .* -2.0"),
        ([[0, 0, 0], [0, 0, 1], [9, 0, 0]], [1, 1, 1], "2 separate pieces: ball 2"),
        ([[0, 0, 0], [0, 0, 1]], [1, 1, 1], "2 balls needs as many radii"),
        ([0, 0, 0], [1], "shape"),
    ],
)
def test_clump_refuses(centres, radii, message):
    with pytest.raises(ValueError, match=message):
        Clump(centres, radii)


# Planes and cylinders.


def test_plane_and_cylinder_parts_have_unit_axes_and_reach():
    parts = Plane((0, 3, 4)).parts()
    assert parts.kind.tolist() == [PLANE] and parts.axis.tolist() == [[0, 0.6, 0.8]] and np.isinf(parts.reach).all()
    parts = Cylinder(3.0, 8.0, axis=(0, 0, 5), inside=False).parts()
    assert parts.kind.tolist() == [CYLINDER] and parts.axis.tolist() == [[0, 0, 1]]
    assert parts.size.tolist() == [[3, 4, -1]] and parts.reach.tolist() == [5]
    parts = Cylinder(3.0).parts()
    assert parts.size.tolist() == [[3, np.inf, 1]] and np.isinf(parts.reach).all()
    with pytest.raises(ValueError, match="normal of a plane"):
        Plane((0, 0, 0))
    with pytest.raises(ValueError, match="axis of a cylinder"):
        Cylinder(1.0, axis=(0, np.nan, 1))
    with pytest.raises(ValueError, match="radius > 0"):
        Cylinder(-1.0)
    with pytest.raises(ValueError, match="length > 0"):
        Cylinder(1.0, 0.0)


def test_surfaces_lie_on_the_shapes():
    vertices, _ = Plane((0, 3, 4)).surface(10.0)
    np.testing.assert_allclose(vertices @ [0, 0.6, 0.8], 0, atol=1e-14)
    np.testing.assert_allclose(np.linalg.norm(np.roll(vertices, 1, axis=0) - vertices, axis=1), 10.0)
    axis = np.array([1, 1, 0]) / np.sqrt(2)
    vertices, _ = Cylinder(2.0, axis=(1, 1, 0)).surface(6.0)
    along = vertices @ axis
    np.testing.assert_allclose(np.abs(along), 3.0)
    np.testing.assert_allclose(np.linalg.norm(vertices - along[:, None] * axis, axis=1), 2.0)
    rod = trimesh.Trimesh(*Cylinder(2.0, 3.0, inside=False).surface(99.0))
    assert rod.is_watertight and rod.volume == pytest.approx(12 * np.pi, rel=2e-3)


# Meshes.


def check_topology(mesh):
    """Every column of Meshes against its definition."""
    for t, corners in enumerate(mesh.triangle):
        for k in range(3):
            e = mesh.side[t, k]
            assert set(mesh.edge[e]) == {corners[k], corners[(k + 1) % 3]} and mesh.edge[e, 0] < mesh.edge[e, 1]
            assert [t, k] in mesh.edge_side[mesh.edge_start[e] : mesh.edge_start[e + 1]].tolist()
            a, b, c = mesh.vertex[np.roll(corners, -k)]
            inward = mesh.inward[t, k]
            assert np.linalg.norm(inward) == pytest.approx(1)
            assert inward @ (b - a) == pytest.approx(0, abs=1e-12 * np.linalg.norm(b - a))
            assert inward @ mesh.normal[t] == pytest.approx(0, abs=1e-12)
            assert inward @ (c - a) > 0
    assert len(mesh.edge_side) == mesh.edge_start[-1] == 3 * len(mesh.triangle)
    for e, owner in enumerate(mesh.edge_owner):
        assert owner in mesh.edge_side[mesh.edge_start[e] : mesh.edge_start[e + 1], 0]
    for v, owner in enumerate(mesh.vertex_owner):
        assert v in mesh.triangle[owner]
        edges = mesh.vertex_edge[mesh.vertex_start[v] : mesh.vertex_start[v + 1]]
        assert sorted(edges) == np.flatnonzero((mesh.edge == v).any(axis=1)).tolist()
    for name in ("triangle", "side", "edge", "edge_owner", "edge_start", "edge_side", "vertex_owner", "vertex_start"):
        assert getattr(mesh, name).dtype == np.int32


def test_soup_of_triangles_becomes_one_connected_mesh():
    box = trimesh.creation.box((1, 2, 3)).apply_translation((0.5, 1, 1.5))
    soup = np.asarray(box.triangles).reshape(-1, 3)
    noise = 1e-11 * np.random.default_rng(0).normal(size=soup.shape)
    for vertices in (soup, soup + noise, np.where(soup == 0.0, -0.0, soup)):
        wall = MeshWall(vertices, np.arange(36).reshape(12, 3))
        assert wall.mesh.vertex.shape == (8, 3) and wall.mesh.edge.shape == (18, 2)
        assert (np.diff(wall.mesh.edge_start) == 2).all()
        check_topology(wall.mesh)


def test_topology_of_open_and_branching_meshes():
    vertices = [[0, 0, 0], [0, 1, 0], [1, 0, 0], [-1, 0, 0.2], [0, 0, 1], [7, 7, 7]]
    wall = MeshWall(vertices, [[0, 1, 2], [1, 0, 3], [0, 1, 4]])
    check_topology(wall.mesh)
    assert sorted(np.diff(wall.mesh.edge_start)) == [1, 1, 1, 1, 1, 1, 3]
    assert len(wall.vertices) == 5


def test_balls_around_triangles_are_the_smallest():
    rng = np.random.default_rng(3)
    corners = np.vstack(
        [rng.normal(size=(50, 3, 3)), [[[0, 0, 0], [2, 0, 0], [0, 2, 0]], [[0, 0, 0], [9, 0, 0], [4, 1, 0]]]]
    )
    parts = MeshWall(corners.reshape(-1, 3), np.arange(156).reshape(52, 3)).parts()
    assert parts.feature.tolist() == list(range(52)) and (parts.kind == TRIANGLE).all()
    far = np.linalg.norm(corners - parts.offset[:, None], axis=2)
    assert (far <= parts.reach[:, None]).all()
    for i, ball in enumerate(parts.reach):
        sides = np.linalg.norm(np.roll(corners[i], 1, axis=0) - corners[i], axis=1)
        area = 0.5 * np.linalg.norm(np.cross(corners[i, 1] - corners[i, 0], corners[i, 2] - corners[i, 0]))
        obtuse = 2 * sides.max() ** 2 >= (sides**2).sum() - 1e-12
        assert ball == pytest.approx(sides.max() / 2 if obtuse else sides.prod() / (4 * area), rel=1e-9)


def test_collapsed_and_repeated_triangles_are_left_out():
    wall = MeshWall([*SQUARE, SQUARE[0]], [[0, 1, 2], [0, 1, 4], [2, 0, 1], [0, 2, 3]])
    assert wall.dropped.tolist() == [1, 2] and len(wall.triangles) == 2


@pytest.mark.parametrize(
    "vertices, triangles, error, message",
    [
        ([*SQUARE[:3], [0, np.nan, 0]], [[0, 1, 2]], ValueError, "vertex 3 .* nan"),
        ([*SQUARE, [0.5, 0.5, 0]], [[0, 1, 2], [0, 4, 2]], ValueError, "1 of 2 triangles .* on a line: rows 1"),
        (SQUARE, [[0, 1, 2], [0, 1, 4]], ValueError, "triangle 1 .* rows 0 to 3"),
        (SQUARE, [[0, 1, -1]], ValueError, "triangle 0"),
        (SQUARE, [[0.0, 1.0, 2.0]], TypeError, "whole numbers"),
        (SQUARE, np.zeros((0, 3), int), ValueError, "t > 0"),
        (SQUARE, [[0, 0, 1]], ValueError, "distinct corners"),
        ([[0, 0], [1, 0], [0, 1]], [[0, 1, 2]], ValueError, r"\(v,3\)"),
    ],
)
def test_mesh_wall_refuses(vertices, triangles, error, message):
    with pytest.raises(error, match=message):
        MeshWall(vertices, triangles)


def test_quad_refuses_folded_and_crossed_corners():
    with pytest.raises(ValueError, match=r"plane.*0\.1"):
        Quad([[0, 0, 0], [1, 0, 0], [1, 1, 0.3], [0, 1, 0]])
    with pytest.raises(ValueError, match=r"convex outline.*corner"):
        Quad([[0, 0, 0], [1, 0, 0], [0.2, 0.2, 0], [0, 1, 0]])
    with pytest.raises(ValueError, match="quad"):
        Quad([[0, 0, 0], [1, 1, 0], [1, 0, 0], [0, 1, 0]])
    with pytest.raises(ValueError, match="four corners"):
        Quad([[0, 0, 0], [1, 0, 0], [1, 1, 0]])
    with pytest.raises(ValueError, match="nan"):
        Quad([[0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, np.nan]])


@pytest.mark.parametrize("suffix", ["stl", "obj", "ply", "off"])
def test_load_mesh_reads_what_was_written(tmp_path, suffix):
    box = trimesh.creation.box((1, 2, 3))
    path = tmp_path / f"box.{suffix}"
    box.export(path)
    wall = load_mesh(path)
    assert len(wall.vertices) == 8 and len(wall.triangles) == 12
    np.testing.assert_allclose(wall.vertices.max(axis=0), [0.5, 1, 1.5], atol=1e-7)


def test_load_mesh_refuses(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"no mesh file at .*nothing\.stl"):
        load_mesh(tmp_path / "nothing.stl")
    cases = {"points.obj": "v 0 0 0\nv 1 0 0\nv 0 1 0\n", "broken.ply": "ply\nwhat\n", "empty.off": "", "mesh.txt": ""}
    for name, text in cases.items():
        (tmp_path / name).write_text(text)
        with pytest.raises(ValueError, match=name):
            load_mesh(tmp_path / name)
    line = "v 0 0 0\nv 1 0 0\nv 2 0 0\nv 0 1 0\nf 1 2 3\nf 1 2 4\n"
    (tmp_path / "line.obj").write_text(line)
    with pytest.raises(ValueError, match=r"line\.obj.*on a line"):
        load_mesh(tmp_path / "line.obj")


@pytest.mark.skipif(not MESHES.exists(), reason="no reference data")
def test_reference_meshes_load_with_sound_topology():
    files = [f for f in MESHES.rglob("*.*") if f.suffix in (".stl", ".obj")]
    points_only = {"cone.obj", "die.obj", "sphere.obj"}
    for file in files:
        if file.name in points_only:
            with pytest.raises(ValueError, match="no triangles"):
                load_mesh(file)
        else:
            wall = load_mesh(file)
            if len(wall.triangles) < 200:
                check_topology(wall.mesh)


def test_own_meshes_load_with_sound_topology(own_data):
    known = json.loads((own_data / "meshes.json").read_text(encoding="utf-8"))
    seen = set()
    for file in sorted((own_data / "meshes").iterdir()):
        if file.name == "points.obj":
            with pytest.raises(ValueError, match="no triangles"):
                load_mesh(file)
            continue
        wall, other = load_mesh(file), trimesh.load(file, process=True)
        assert len(wall.triangles) == len(other.faces) and len(wall.vertices) == len(other.vertices)
        if file.name in known:
            assert len(wall.triangles) == known[file.name]["triangles"]
            seen.add(file.name)
        if len(wall.triangles) < 200:
            check_topology(wall.mesh)
    assert seen == set(known)


def meshes_to_break(folder):
    """The same box in every format, and an open cup, as bytes by name."""
    box = trimesh.creation.box()
    for kind in ("ply", "off", "stl", "obj"):
        box.export(folder / f"box.{kind}")
    (folder / "ascii.stl").write_text(trimesh.exchange.stl.export_stl_ascii(box))
    (folder / "ascii.ply").write_bytes(trimesh.exchange.ply.export_ply(box, encoding="ascii"))
    found = {path.name: path.read_bytes() for path in sorted(folder.iterdir())}
    return found | {"cup.obj": (Path(__file__).parents[1] / "data" / "meshes" / "cup.obj").read_bytes()}


@pytest.mark.parametrize("shape", ["wall", "mesh"])
def test_a_mesh_that_was_cut_or_changed_is_one_line_or_a_mesh(tmp_path, capsys, shape):
    random = np.random.default_rng(1)
    words = [b"1e308", b"nan", b"-1", b"99999999999", b"\n", b"", b"\0\xff\xff\xff", b"/", b"mtllib /etc/passwd\n"]
    for name, whole in meshes_to_break(tmp_path).items():
        taken = 0
        for k in range(40):
            at = int(random.integers(len(whole)))
            changed = whole[:at] if k % 2 else whole[:at] + words[k % 9] + whole[at + int(random.integers(4)) :]
            (tmp_path / name).write_bytes(changed)
            told = ""
            try:
                load_mesh(tmp_path / name, shape=shape)
                taken += k % 2
            except ValueError as fault:
                told = str(fault)
            assert told == "" or ("\n" not in told and name in told and len(told) < 500)
        # An OBJ file does not tell its length: one that lacks its last triangles looks whole.
        assert taken <= (2 if name.endswith("obj") else 0), name
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    "comment",
    ["# 80 faces", "# Faces: 80", "#Face Count 80", "# number of triangles: 80", "# 0 polygons - 80 triangles"],
)
@pytest.mark.parametrize("first", [True, False], ids=["above", "below"])
def test_an_obj_file_with_fewer_faces_than_it_tells_is_refused(tmp_path, comment, first):
    lines = trimesh.creation.icosphere(1).export(file_type="obj").strip().splitlines()
    if not first:
        return check_told(tmp_path / "ball.obj", [*lines[:-40], comment, *lines[-40:]])
    check_told(tmp_path / "ball.obj", [comment, "# 42 vertices, 80 faces", *lines])


def check_told(path, lines):
    path.write_text("\n".join(lines) + "\n")
    assert len(load_mesh(path).triangles) == 80
    path.write_text("\n".join(lines[:-3]) + "\n")
    with pytest.raises(
        ValueError, match=r"ball\.obj: a comment tells of 80 faces and there are 77, as in a file that was cut"
    ):
        load_mesh(path)


@pytest.mark.parametrize(
    "comment",
    [
        "# decimated from 5000 faces to 80 faces",
        "# original had 20000 triangles",
        "# max faces 65536 here",
        "# 1,234 faces",
    ],
)
def test_prose_in_comments_counts_no_faces(tmp_path, comment):
    lines = trimesh.creation.icosphere(1).export(file_type="obj").strip().splitlines()
    path = tmp_path / "ball.obj"
    path.write_text("\n".join([comment, *lines]) + "\n")
    assert len(load_mesh(path).triangles) == 80


def test_an_obj_file_with_a_small_hole_is_doubted_and_open_vessels_are_not(tmp_path):
    path = tmp_path / "a.obj"
    lines = trimesh.creation.icosphere(3).export(file_type="obj").strip().splitlines()
    path.write_text("\n".join(lines[:-2]) + "\n")
    with pytest.warns(UserWarning, match=r"a\.obj has a small hole beside its last triangle; if it should have none"):
        load_mesh(path)
    vessel = trimesh.creation.cylinder(1.0, 2.0, sections=48)
    pipe = trimesh.creation.cylinder(1.0, 12.0, sections=48)
    for whole, keep in (
        (vessel, vessel.face_normals[:, 2] < 0.5),
        (vessel, np.abs(vessel.face_normals[:, 2]) < 0.5),
        (pipe, np.abs(pipe.face_normals[:, 2]) < 0.5),
    ):
        whole.submesh([keep], append=True).export(path)
        load_mesh(path)  # a warning would be an error


def test_vertices_too_far_out_are_refused():
    with pytest.raises(ValueError, match=r"vertex 2 of the mesh is at .*1e\+200.* too coarse"):
        MeshWall([(0, 0, 0), (1, 0, 0), (0, 1e200, 0)], [(0, 1, 2)])


def test_a_mesh_file_reads_no_other_file(tmp_path, monkeypatch):
    (tmp_path / "a.obj").write_text("mtllib secret.mtl\nv 0 0 0\nv 1 0 0\nv 0 1 0\nusemtl x\nf 1 2 3\n")
    (tmp_path / "secret.mtl").write_text("newmtl x\n")
    asked = []
    monkeypatch.setattr(trimesh.resolvers.FilePathResolver, "get", lambda self, name: asked.append(name) or b"")
    load_mesh(tmp_path / "a.obj")
    assert asked == []
    trimesh.load(tmp_path / "a.obj")
    assert asked  # else this test would see nothing

"""Triangulated particles: what is let in, mass properties, the tree of boxes, random lumps, files."""

import json
import re

import numpy as np
import pytest

import clast
from clast.shapes.box_tree import LEAF, build_tree
from clast.shapes.closed import pieces, turns_around
from clast.tables import MESH, SPHERE

BOX = clast.Polyhedron.box(2.0, 3.0, 4.0).surface()
STORED = ["torus.obj", "cup.obj", "stairs.obj", "lump.obj", "rock.obj", "quads.obj", "flange.stl"]
OUTSIDE = {  # stored meshes that no particle can be
    "open.obj": r"the mesh is open: the edge from .* belongs to triangle \d+ alone, and so for 3 of 96 edges",
    "two_boxes_and_one_edge.stl": r"belongs to more than two triangles of the mesh: rows \d+, \d+, \d+, \d+",
    "points.obj": "has no triangles",
}
LOADS = {  # published meshes that are closed, with their numbers of triangles
    **{"chrono_rocks/curiosity_rock1.obj": 80, "chrono_rocks/curiosity_rock2.obj": 108},
    **{"chrono_rocks/curiosity_rock3.obj": 80, "chrono_rocks/offroad_rock1.obj": 192},
    **{"chrono_rocks/offroad_rock2.obj": 716, "chrono_rocks/offroad_rock3.obj": 716},
    **{"chrono_rocks/offroad_rock4.obj": 1510, "chrono_rocks/offroad_rock5.obj": 614},
    **{f"chrono_rocks/regolith_particle_{k}.obj": 480 for k in (1, 2, 3)},
    **{"mercury_stl/Rattleback.stl": 310, "mercury_stl/RotatingDrum.stl": 164},
    **{"mujoco/cube_cup.obj": 28, "mujoco/torus.obj": 576},
    **{"parry_tests/bar.obj": 124, "parry_tests/center_cylinder.obj": 124, "parry_tests/low_poly_bunny.obj": 696},
    **{"parry_tests/offset_cylinder.obj": 124, "parry_tests/stairs.obj": 44},
}
REFUSED = {
    "mercury_stl/Casing.stl": "belongs to more than two triangles of the mesh: rows 40, 46, 194, 247",
    "mercury_stl/Screw.stl": "belongs to more than two triangles of the mesh: rows 48, 134, 534, 573",
    "mujoco/stanford_bunny.obj": "the mesh is open: the edge from .* belongs to triangle 1415 alone",
    "mujoco/cone.obj": "has no triangles",
    "mujoco/die.obj": "has no triangles",
    "mujoco/sphere.obj": "has no triangles",
    "parry_tests/poly_cylinder.obj": "the mesh is open",
}


def ball(subdivisions, radius=1.0):
    """Vertices and triangles of an icosahedron whose triangles are parted into four so many times."""
    vertices, triangles = clast.Polyhedron.regular("icosahedron").surface()
    for _ in range(subdivisions):
        corner = vertices[triangles]
        middle = 0.5 * (corner + corner[:, (1, 2, 0)])
        corner, middle = np.moveaxis(corner, 1, 0), np.moveaxis(middle, 1, 0)
        parts = [
            np.stack([corner[0], middle[0], middle[2]], 1),
            np.stack([corner[1], middle[1], middle[0]], 1),
            np.stack([corner[2], middle[2], middle[1]], 1),
            np.stack(list(middle), 1),
        ]
        soup = np.concatenate(parts).reshape(-1, 3)
        soup /= np.linalg.norm(soup, axis=1)[:, None]
        vertices, triangles = np.unique(soup.round(12), axis=0, return_inverse=True)
        triangles = triangles.reshape(-1, 3)
    return radius * vertices, triangles


def ring(large, small, count, facets):
    """Vertices and triangles of a torus about z with `count` rings of `facets` corners each."""
    a, b = np.meshgrid(np.arange(count), np.arange(facets), indexing="ij")
    u, v = 2.0 * np.pi * a / count, 2.0 * np.pi * b / facets
    across = large + small * np.cos(v)
    vertices = np.stack([across * np.cos(u), across * np.sin(u), small * np.sin(v)], axis=-1).reshape(-1, 3)
    p, q = a * facets + b, (a + 1) % count * facets + b
    r, s = (a + 1) % count * facets + (b + 1) % facets, a * facets + (b + 1) % facets
    return vertices, np.concatenate([np.stack([p, q, r], -1).reshape(-1, 3), np.stack([p, r, s], -1).reshape(-1, 3)])


def hollow(outer, inner, shift=0.0):
    """A box with a box-shaped hollow, as two shells, the second turned inside out."""
    vertices, triangles = BOX
    return (
        np.concatenate([outer * vertices, inner * vertices + shift]),
        np.concatenate([triangles, triangles[:, ::-1] + len(vertices)]),
    )


def test_a_box_has_the_mass_properties_of_a_box():
    shift = np.array([5.0, -7.0, 11.0])
    mesh = clast.Mesh(BOX[0] + shift, BOX[1])
    assert mesh.volume == pytest.approx(24.0, rel=1e-15)
    np.testing.assert_allclose(mesh.origin, shift, rtol=1e-15)
    np.testing.assert_allclose(mesh.inertia, np.diag([9.0 + 16.0, 4.0 + 16.0, 4.0 + 9.0]) / 12.0, atol=1e-14)
    np.testing.assert_allclose(np.abs(mesh.vertices), [[1.0, 1.5, 2.0]] * 8, atol=1e-14)
    surface = mesh.triangulation
    assert surface.inner[0] == pytest.approx(1.0) and surface.outer[0] == pytest.approx(np.sqrt(7.25))
    assert surface.shortest[0] == pytest.approx(2.0)
    assert surface.ball[0] == pytest.approx(np.cbrt(24.0 * 0.75 / np.pi))
    assert mesh.epsilon == pytest.approx(0.05 * surface.ball[0])
    assert not mesh.wall and not mesh.round


def test_the_ball_inside_touches_the_middle_of_a_face():
    mesh = clast.Mesh(*clast.Polyhedron.regular("tetrahedron", radius=3.0).surface())
    assert mesh.triangulation.inner[0] == pytest.approx(1.0) and mesh.triangulation.outer[0] == pytest.approx(3.0)


@pytest.mark.parametrize(
    "shape", [clast.Sphere(0.1), clast.Ellipsoid(3.0, 2.0, 1.0), clast.Polyhedron.random(faces=20)]
)
def test_what_stands_for_other_particles_in_pictures_is_a_mesh(shape):
    assert clast.Mesh(*shape.surface()).volume == pytest.approx(shape.volume, rel=0.04)


def test_a_hollow_box_is_one_box_less_the_other():
    mesh = clast.Mesh(*hollow(1.0, 0.5, np.array([0.2, 0.0, 0.0])))
    assert mesh.volume == pytest.approx(24.0 - 3.0)
    np.testing.assert_allclose(mesh.origin, [-0.2 * 3.0 / 21.0, 0.0, 0.0], atol=1e-15)
    assert mesh.triangulation.inner[0] == 0.0, "the centre of mass is in the hollow"


def test_triangulated_balls_approach_the_ball():
    volume, moment = [], []
    for subdivisions in (2, 3):
        mesh = clast.Mesh(*ball(subdivisions, 0.5))
        volume.append(1.0 - mesh.volume / (np.pi / 6.0))
        moment.append(1.0 - np.trace(mesh.inertia) / 3.0 / 0.1)
    assert 0.0 < volume[1] < 0.012 and 0.0 < moment[1] < 0.008
    assert volume[0] / volume[1] == pytest.approx(4.0, rel=0.03), "the error falls with the square of the size"
    assert moment[0] / moment[1] == pytest.approx(4.0, rel=0.03)


def test_triangulated_tori_approach_the_torus():
    large, small = 1.0, 0.4
    volume = 2.0 * np.pi**2 * large * small**2
    along, across = large**2 + 0.75 * small**2, 0.5 * large**2 + 0.625 * small**2
    errors = []
    for count in (32, 64):
        mesh = clast.Mesh(*ring(large, small, count, count))
        errors.append([1.0 - mesh.volume / volume, *(1.0 - np.diag(mesh.inertia) / [across, across, along])])
        np.testing.assert_allclose(mesh.inertia - np.diag(np.diag(mesh.inertia)), 0.0, atol=1e-3 / count)
    np.testing.assert_allclose(errors[1], 0.0, atol=0.006)
    np.testing.assert_allclose(np.divide(*errors), 4.0, rtol=0.02)
    assert mesh.triangulation.inner[0] == 0.0


@pytest.mark.parametrize("name", STORED)
def test_stored_meshes_load_with_their_mass_properties(own_data, name):
    """Volume, centre and inertia are known in rational numbers."""
    given = json.loads((own_data / "meshes.json").read_text())[name]
    mesh = clast.load_mesh(own_data / "meshes" / name, shape="mesh", epsilon=None)
    assert len(mesh.triangles) == given["triangles"]
    assert mesh.volume == pytest.approx(given["volume"], rel=1e-13)
    np.testing.assert_allclose(mesh.origin, given["centre"], atol=1e-13)
    np.testing.assert_allclose(mesh.inertia, given["inertia"], atol=1e-12)
    check_tree(mesh.triangulation, 0)


@pytest.mark.parametrize("name", OUTSIDE)
def test_stored_meshes_that_are_no_bodies_are_refused(own_data, name):
    refused(own_data / "meshes" / name, OUTSIDE[name])


def refused(path, message):
    """The message names the file and the fault."""
    with pytest.raises(ValueError, match=message) as caught:
        clast.load_mesh(path, shape="mesh")
    assert str(path) in str(caught.value)


def test_mass_properties_agree_with_another_program(reference_data):
    trimesh = pytest.importorskip("trimesh")
    for name in ("chrono_rocks/offroad_rock3.obj", "parry_tests/low_poly_bunny.obj", "mujoco/cube_cup.obj"):
        mesh = clast.load_mesh(reference_data / "meshes" / name, shape="mesh")
        other = trimesh.load(reference_data / "meshes" / name, process=False)
        assert mesh.volume == pytest.approx(other.volume, rel=1e-12)
        np.testing.assert_allclose(mesh.origin, other.center_mass, atol=1e-12 * mesh.triangulation.outer[0])
        np.testing.assert_allclose(mesh.inertia, other.moment_inertia / other.volume, atol=1e-10)


@pytest.mark.parametrize("name", LOADS)
def test_closed_published_meshes_load(reference_data, name):
    mesh = clast.load_mesh(reference_data / "meshes" / name, shape="mesh", epsilon=None)
    assert len(mesh.triangles) == LOADS[name] and mesh.volume > 0.0
    check_tree(mesh.triangulation, 0)


@pytest.mark.parametrize("name", REFUSED)
def test_other_published_meshes_are_refused(reference_data, name):
    refused(reference_data / "meshes" / name, REFUSED[name])


def test_the_halo_of_a_file_is_that_of_the_caller(tmp_path):
    vertices, triangles = BOX
    lines = [f"v {x} {y} {z}" for x, y, z in vertices] + [f"f {a} {b} {c}" for a, b, c in triangles + 1]
    (tmp_path / "box.obj").write_text("\n".join(lines) + "\n")
    mesh = clast.load_mesh(tmp_path / "box.obj", shape="mesh", epsilon=0.05)
    assert mesh == clast.Mesh(*BOX, epsilon=0.05) and mesh != clast.Mesh(*BOX)
    assert mesh.parts().reach[0] == mesh.triangulation.outer[0] + 0.05
    with pytest.raises(
        ValueError, match="epsilon=0.05 is the halo of a triangulated particle; load it with shape='mesh'"
    ):
        clast.load_mesh(tmp_path / "box.obj", epsilon=0.05)


def test_a_soup_of_triangles_is_merged():
    vertices, triangles = BOX
    soup = clast.Mesh(vertices[triangles].reshape(-1, 3), np.arange(36).reshape(-1, 3))
    assert soup.vertices.shape == (8, 3)
    np.testing.assert_array_equal(soup.vertices[soup.triangles], vertices[triangles])


def turned(row):
    triangles = BOX[1].copy()
    triangles[row] = triangles[row, ::-1]
    return triangles


def changed(row, column, value):
    triangles = BOX[1].copy()
    triangles[row, column] = value
    return triangles


NAN = BOX[0].copy()
NAN[5, 1] = np.nan
FAR = BOX[0].copy()
FAR[2, 0] = np.inf
ROD = np.array([[0.0, 0, 0], [1, 0, 0], [3, 0, 0], [0, 1, 0]])
SHEET = np.array([[0.0, 0, 0], [1, 0, 0], [0, 1, 0]])
TWICE = np.concatenate([BOX[0], 0.5 * BOX[0]]), np.concatenate([BOX[1], BOX[1] + 8])
OVERLAP = np.concatenate([BOX[0], BOX[0] + 0.9]), TWICE[1]
BOWTIE = ring(1.0, 0.4, 24, 12)
BOWTIE[0][:, 0] *= np.sign(BOWTIE[0][:, 1] + 1e-9)  # one half of the ring is its mirror image
APART = np.concatenate([BOX[0], BOX[0] + 9.0]), np.concatenate([BOX[1], BOX[1][:, ::-1] + 8])
WRONG = {
    "nan": ((NAN, BOX[1]), r"vertex 5 of the mesh is not finite"),
    "infinite": ((FAR, BOX[1]), r"vertex 2 of the mesh is not finite"),
    "index": ((BOX[0], changed(3, 1, 8)), r"triangle 3 of the mesh names vertices .*only rows 0 to 7"),
    "negative index": ((BOX[0], changed(3, 1, -1)), r"triangle 3 of the mesh names vertices"),
    "not whole": ((BOX[0], BOX[1] * 1.0), "triangles of a mesh must be whole numbers"),
    "shape": ((BOX[0][:, :2], BOX[1]), r"vertices of a mesh must have shape \(v,3\)"),
    "none": ((BOX[0], BOX[1][:0]), r"triangles of a mesh must have shape \(t,3\) with t > 0"),
    "equal corners": (
        (BOX[0], changed(4, 0, BOX[1][4, 1])),
        "triangle 4 of the mesh has two equal corners.*leave it out",
    ),
    "on a line": ((ROD, [[0, 1, 2], [0, 3, 1], [1, 3, 2], [2, 3, 0]]), "have their corners on a line: rows 0"),
    "open": (
        (BOX[0], BOX[1][1:]),
        "the mesh is open: the edge from .* belongs to triangle .* alone, and so for 3 of 18",
    ),
    "repeated": ((BOX[0], np.vstack([BOX[1], BOX[1][:1]])), "belongs to more than two triangles of the mesh: rows 0, "),
    "turned over": ((BOX[0], turned(7)), "triangles .* and .* of the mesh run along .* in the same direction.*swap"),
    "inside out": (
        (BOX[0], BOX[1][:, ::-1]),
        r"the mesh is inside out: .*row 0.* reverse them with triangles\[:, ::-1\]",
    ),
    "flat": ((SHEET, [[0, 1, 2], [2, 1, 0]]), "the mesh encloses no volume"),
    "shell in shell": (TWICE, "triangle 12 of the mesh looks outward and lies within the body that others close"),
    "one inside out": (APART, "triangle 12 of the mesh looks inward.*a shell of 12 triangles"),
    "hollow sticks out": (hollow(1.0, 0.5, 9.0), "triangle 12 of the mesh looks inward"),
    "inside out hollow": ((hollow(1.0, 0.5)[0], hollow(1.0, 0.5)[1][:, ::-1]), "the mesh is inside out"),
    "crossing": (BOWTIE, "triangle [0-9]+ of the mesh looks inward.*the surface cuts itself"),
    "overlapping": (OVERLAP, "triangle [0-9]+ of the mesh looks outward and lies within the body"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_no_body_is_refused(name):
    arguments, message = WRONG[name]
    with pytest.raises((ValueError, TypeError), match=message):
        clast.Mesh(*arguments)


def test_a_turned_triangle_is_named():
    with pytest.raises(ValueError) as caught:
        clast.Mesh(BOX[0], turned(7))
    assert 7 in map(int, re.findall(r"\d+", str(caught.value).split("run along")[0]))


@pytest.mark.parametrize(
    ("epsilon", "message"), [(0.0, "above 0"), (-1e-3, "above 0"), (np.nan, "finite"), (5.0, "too thick")]
)
def test_a_halo_must_make_sense(epsilon, message):
    with pytest.raises(ValueError, match=message):
        clast.Mesh(*BOX, epsilon=epsilon)
    with pytest.raises(TypeError, match="epsilon"):
        clast.Mesh(*BOX, epsilon="thin")


def check_tree(surfaces, m):
    """All that is promised of the tree of surface m."""
    begin, end = surfaces.node_start[m], surfaces.node_start[m + 1]
    first, last = surfaces.triangle_start[m], surfaces.triangle_start[m + 1]
    assert (surfaces.first[begin], surfaces.last[begin]) == (first, last)
    np.testing.assert_array_equal(np.sort(surfaces.row[first:last]), np.arange(last - first))
    leaves = []
    for node in range(begin, end):
        own = slice(surfaces.first[node], surfaces.last[node])
        corner = surfaces.corner[:, own].reshape(3, 3, -1)
        np.testing.assert_array_equal(surfaces.box[:3, node], corner.min(axis=(0, 2)))
        np.testing.assert_array_equal(surfaces.box[3:, node], corner.max(axis=(0, 2)))
        child = surfaces.child[node]
        if child < 0:
            assert 0 < own.stop - own.start <= LEAF
            leaves += range(own.start, own.stop)
        else:
            assert (
                node < child < end - 1 and own.start == surfaces.first[child] and own.stop == surfaces.last[child + 1]
            )
            assert surfaces.last[child] == surfaces.first[child + 1]
    assert sorted(leaves) == list(range(first, last))


def test_trees_of_many_meshes_stand_end_to_end():
    shapes = [clast.Mesh.random(points, seed=points) for points in (4, 5, 6, 9, 31, 50)]
    scene = clast.Scene()
    scene.add([*shapes[:3], clast.Sphere(1.0), *shapes[3:], shapes[0]])
    surfaces = scene.surfaces
    kind, feature = scene.parts.kind, scene.parts.feature
    assert kind.tolist() == 3 * [MESH] + [SPHERE] + 3 * [MESH] and feature.tolist() == [0, 1, 2, -1, 3, 4, 5]
    for m, shape in enumerate(shapes):
        check_tree(surfaces, m)
        own = slice(surfaces.triangle_start[m], surfaces.triangle_start[m + 1])
        given = shape.vertices[shape.triangles[surfaces.row[own]]]
        np.testing.assert_array_equal(surfaces.corner[:, own].T.reshape(-1, 3, 3), given)
        cross = np.cross(given[:, 1] - given[:, 0], given[:, 2] - given[:, 0])
        unit = cross / np.linalg.norm(cross, axis=1)[:, None]
        np.testing.assert_allclose(surfaces.normal[:, own].T, unit, atol=1e-12)
        corners = slice(surfaces.vertex_start[m], surfaces.vertex_start[m + 1])
        np.testing.assert_array_equal(surfaces.vertex[:, corners].T, shape.vertices)
    assert [column.dtype for column in surfaces] == [column.dtype for column in shape.triangulation]
    again = clast.Scene.rebuild(*scene.describe())
    for before, after in zip(surfaces, again.surfaces, strict=True):
        np.testing.assert_array_equal(before, after)


def test_boxes_of_the_tree_become_small():
    tree = build_tree(_corners(ball(4)))
    width = (tree.box[3:] - tree.box[:3]).max(axis=0)
    leaf = tree.child < 0
    assert np.median(width[leaf]) < 0.2 and width[0] == pytest.approx(2.0, abs=0.01)
    assert len(tree.order) == 5120 and len(leaf) == 4095, "all leaves are on one level"


def _corners(surface):
    return surface[0][surface[1]]


def test_random_lumps_are_valid_and_repeat():
    for points, seed in ((4, 1), (10, 2), (31, 3), (36, 4), (50, 5), (200, 6)):
        mesh = clast.Mesh.random(points, seed=seed, radius=0.3, epsilon=0.001)
        assert len(mesh.triangles) == 2 * points - 4 and len(mesh.vertices) == points
        assert np.linalg.norm(mesh.vertices, axis=1).max() == pytest.approx(0.3, rel=1e-14)
        checked = clast.Mesh(mesh.vertices, mesh.triangles, epsilon=0.001)
        assert checked.volume == pytest.approx(mesh.volume, rel=1e-12)
        np.testing.assert_allclose(checked.inertia, mesh.inertia, rtol=1e-10, atol=1e-12)
        np.testing.assert_allclose(checked.origin, 0.0, atol=1e-15)
        assert mesh == clast.Mesh.random(points, seed=seed, radius=0.3, epsilon=0.001)
        assert hash(mesh) == hash(clast.Mesh.random(points, seed=seed, radius=0.3, epsilon=0.001))
        assert mesh != clast.Mesh.random(points, seed=seed + 100, radius=0.3, epsilon=0.001)


def test_distortion_moves_corners_towards_the_middle():
    smooth, rough = (clast.Mesh.random(200, (low, 1.0), seed=7) for low in (1.0, 0.5))
    hull = clast.Polyhedron(rough.vertices)
    assert clast.Polyhedron(smooth.vertices).volume == pytest.approx(smooth.volume, rel=1e-9), (
        "not distorted, so convex"
    )
    assert hull.volume > 1.3 * rough.volume, "distorted, so concave"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"points": 3}, "points must be at least 4"),
        ({"points": 5.5}, "points must be a whole number"),
        ({"radius": 0.0}, "radius must be finite and above 0"),
        ({"distortion": 0.75}, "distortion must be two numbers"),
        ({"distortion": (1.0, 0.75)}, "the lower number first"),
        ({"distortion": (0.0, 1.0)}, "above 0"),
        ({"seed": -1}, "seed must be at least 0"),
    ],
)
def test_wrong_lumps_are_refused(options, message):
    with pytest.raises((ValueError, TypeError), match=message):
        clast.Mesh.random(**options)


def test_the_turns_around_a_point_tell_inside_from_outside():
    corner = _corners(ring(1.0, 0.4, 24, 12))
    for point, turns in (
        ((1.0, 0.0, 0.0), 1.0),
        ((0.0, 0.0, 0.0), 0.0),
        ((0.0, 0.9, 0.2), 1.0),
        ((1.5, 0.0, 0.0), 0.0),
    ):
        assert turns_around(corner, np.array(point)) == pytest.approx(turns, abs=1e-12)
    group, count = pieces(24 * 12 + 8, np.concatenate([BOX[1] + 288, ring(1.0, 0.4, 24, 12)[1]]))
    assert count == 2 and np.bincount(group).tolist() in ([12, 576], [576, 12])


def test_fill_keeps_meshes_apart():
    """By their halos, and nearer than the balls around them."""
    scene = clast.Scene()
    mesh = clast.Mesh.random(seed=3, radius=0.05)
    scene.fill(mesh, count=40, box=((0, 0, 0), (1, 1, 1)), scale=(0.5, 1.0))
    shapes = scene.shapes()
    apart = np.linalg.norm(shapes.centre[:, None] - shapes.centre, axis=2) - shapes.radius[:, None] - shapes.radius
    assert apart[~np.eye(40, dtype=bool)].min() < 0.0
    assert len(clast.find_contacts(scene).gap) == 0
    np.testing.assert_allclose(shapes.radius, (0.05 + mesh.epsilon) * scene.bodies.scale)
    np.testing.assert_allclose(scene.bodies.mass, 2500.0 * mesh.volume * scene.bodies.scale**3)

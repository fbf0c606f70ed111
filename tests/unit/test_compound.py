"""Bodies made of other shapes: mass and inertia of the union, contacts of the parts, files and pictures."""

import re
from pathlib import Path

import numpy as np
import pytest

import clast
from clast import Clump, Compound, Ellipsoid, Mesh, Plane, Polyhedron, Scene, Simulation, Sphere, find_contacts
from clast.files import vtk
from clast.kernels.vec import rotation_matrices
from clast.scenefile import load
from clast.shapes import union

TURN = (np.cos(0.3), 0.0, np.sin(0.3), 0.0)
QUARTER = (np.sqrt(0.5), 0.0, 0.0, np.sqrt(0.5))
# A hammer: a tilted head on a handle, and an egg at its end.
HAMMER = [
    (Polyhedron.box(0.04, 0.02, 0.02), (0.0, 0.0, 0.03), TURN),
    (Polyhedron.box(0.01, 0.01, 0.06), (0.0, 0.0, -0.01)),
    (Ellipsoid(0.02, 0.01, 0.008), (0.0, 0.005, -0.05), (0.5, 0.5, -0.5, 0.5)),
]


def moments(shape):
    """Volume, centre of mass and inertia per mass, in a row."""
    return np.concatenate([[shape.volume], shape.origin, shape.inertia.reshape(-1)])


def test_eight_cubes_are_a_cube():
    made = Compound([(Polyhedron.box(1, 1, 1), (x, y, z)) for x in (0, 1) for y in (0, 1) for z in (0, 1)])
    whole = Polyhedron.box(2, 2, 2)
    assert made.volume == pytest.approx(8.0, rel=1e-15)
    np.testing.assert_allclose(made.origin, 0.5, atol=1e-15)
    np.testing.assert_allclose(made.inertia, whole.inertia, atol=1e-14)
    assert made.round  # a cube turns like a ball


def test_parts_of_one_kind_in_one_place_count_once():
    """Equal polyhedra and equal ellipsoids on each other: the one exactly, the other as well as lines measure."""
    box, egg = Polyhedron.box(1, 2, 3), Ellipsoid(1.0, 0.6, 0.4)
    np.testing.assert_allclose(moments(Compound([box, box, box])), moments(Compound([box])), atol=1e-12)
    np.testing.assert_allclose(moments(Compound([egg, egg])), moments(Compound([egg])), atol=2e-5 * egg.volume)


def test_a_clump_within_a_compound_is_that_clump():
    clump = Clump([(0, 0, 0), (0.9, 0, 0), (0.3, 0.8, 0.2)], [1.0, 0.8, 0.7])
    made = Compound([clump])
    assert made.volume == pytest.approx(clump.volume, rel=1e-14)
    np.testing.assert_allclose(made.inertia, clump.inertia, atol=1e-14)
    np.testing.assert_allclose([x for _, x, _ in made.pieces], clump.centres, atol=1e-14)


def placed(made):
    return [union.Placed(one, x, rotation_matrices(q[None])[0]) for one, x, q in made.pieces]


@pytest.mark.parametrize(
    "made",
    [
        Compound([Sphere(1.0), (Sphere(0.8), (1.0, 0, 0)), (Sphere(0.7), (0.3, 0.8, 0.2))]),
        Compound(
            [
                Polyhedron.box(2, 1, 1),
                (Polyhedron.box(1, 2, 1), (0, 0, 0), TURN),
                (Polyhedron.box(1, 1, 3), (0.1, 0.2, 0)),
            ]
        ),
    ],
    ids=["balls", "boxes"],
)
def test_lines_measure_what_overlaps(made):
    """Against the exact values that balls and polyhedra have."""
    exact, found = union.counted_twice(placed(made)), union.along_lines(placed(made))
    np.testing.assert_allclose(found, exact, atol=2e-5 * exact[0])


def test_half_a_ball_on_a_box():
    """A ball about the middle of a face sticks out by half; what overlaps is measured along lines."""
    box, radius = Polyhedron.box(4, 4, 4), 1.0
    made = Compound([box, (Sphere(radius), (0, 0, 2))])
    half = 2.0 / 3.0 * np.pi * radius**3
    assert made.volume == pytest.approx(64.0 + half, abs=2e-5 * half)
    assert made.origin[2] == pytest.approx(half * (2.0 + 0.375) / (64.0 + half), abs=2e-5 * half / 64.0)
    np.testing.assert_allclose(Compound([box, Sphere(1.0)]).volume, 64.0, atol=2e-5 * 2.0 * half)


def test_a_turned_compound_has_the_turned_inertia():
    made, other = Compound(HAMMER), Compound([(Compound(HAMMER), (0.3, -0.2, 0.1), TURN)])
    turn = rotation_matrices(np.array([TURN]))[0]
    twice = sum(one.volume for one, *_ in HAMMER) - made.volume
    assert other.volume == pytest.approx(made.volume, abs=2e-4 * twice)
    error = 2e-4 * twice / made.volume * np.trace(made.inertia)
    np.testing.assert_allclose(other.inertia, turn @ made.inertia @ turn.T, rtol=0, atol=error)
    np.testing.assert_allclose(other.origin, (0.3, -0.2, 0.1), atol=2e-4 * twice / made.volume * 0.05)


def random_poses(count, reach, seed):
    rng = np.random.default_rng(seed)
    q = rng.normal(size=(count, 4))
    return rng.uniform(-reach, reach, (count, 3)), q / np.linalg.norm(q, axis=1)[:, None]


OTHERS = {
    "sphere": Sphere(0.015),
    "ellipsoid": Ellipsoid(0.02, 0.012, 0.008),
    "box": Polyhedron.box(0.02, 0.03, 0.015),
    "mesh": Mesh(*Polyhedron.random(faces=10, seed=2, radius=0.02).surface(), epsilon=0.0005),
    "plane": Plane(),
    "drum": clast.Cylinder(0.2, 0.5),
    "rod": clast.Cylinder(0.02, 0.1, inside=False),
    "quad": clast.Quad([(-0.03, -0.03, 0), (0.03, -0.03, 0), (0.03, 0.03, 0), (-0.03, 0.03, 0)]),
}


@pytest.mark.parametrize("name", OTHERS)
def test_the_distance_is_that_of_the_nearest_part(name):
    """Each part as a body of its own, at its place and orientation, tells the same to rounding."""
    made, other = Compound(HAMMER), OTHERS[name]
    x, q = random_poses(30, 0.05, 4)
    found = clast.distance(made, (x, q), other, (0.0, 0.0, 0.0))
    least = np.full(len(x), np.inf)
    for shape, offset, turn in made.pieces:
        place = x + np.einsum("nij,j->ni", rotation_matrices(q), offset)
        both = vtk.part_orientation(q, {"turn": turn[None]}, np.zeros(len(x), int))
        least = np.minimum(least, clast.distance(shape, (place, both), other, (0.0, 0.0, 0.0)).gap)
    np.testing.assert_allclose(found.gap, least, atol=1e-12)


def test_pieces_of_a_class_of_ones_own():
    class Brick(Polyhedron):
        pass

    corners = Polyhedron.box(0.4, 0.2, 0.1).vertices
    gaps = []
    for kind in (Polyhedron, Brick):
        made = Compound([(kind(corners), (0.0, 0.0, 0.0), TURN), (kind(0.5 * corners), (0.6, 0.0, 0.0), QUARTER)])
        gaps.append(clast.distance(made, [(0.0, 0.0, 0.0)], Sphere(0.1), [(0.1, 0.1, 0.6), (0.6, 0.7, 0.0)]).gap)
    np.testing.assert_array_equal(*gaps)


def test_parts_of_a_body_do_not_touch_each_other():
    scene = Scene()
    scene.add(Compound(HAMMER), position=[(0, 0, 0), (1, 0, 0)])
    assert len(find_contacts(scene, margin=0.01).gap) == 0


@pytest.mark.parametrize("method", [clast.DEM(), clast.Complementarity()], ids=["dem", "hard"])
def test_a_hammer_falls_on_a_floor_and_rests_with_its_weight(method):
    scene = Scene()
    scene.add(Plane())
    scene.add(Compound(HAMMER), position=(0, 0, 0.07), orientation=(0.9, 0.3, 0.2, 0.1))
    sim = Simulation(scene, method, dt="auto" if isinstance(method, clast.DEM) else 1e-3)
    sim.run(until=1.0)
    weight = 9.81 * sim.bodies.mass[1]
    assert sim.bodies.force[1, 2] == pytest.approx(weight, rel=0.01)
    assert abs(sim.bodies.velocity[1]).max() < 0.01
    assert clast.find_contacts(scene).gap.min() > -1e-3


def tumbling(margin=None):
    """Hammers and balls thrown together, spinning fast."""
    scene = Scene(gravity=(0, 0, 0), world=((-0.2, -0.2, -0.2), (0.2, 0.2, 0.2)), periodic=(True, True, True))
    hammer = Compound(HAMMER)
    scene.fill(
        hammer, count=8, box=((-0.2, -0.2, -0.2), (0.2, 0.2, 0.2)), velocity=(0.3, 0, 0), spin=(30, 20, 0), seed=3
    )
    scene.fill(Sphere(0.01), count=40, box=((-0.2, -0.2, -0.2), (0.2, 0.2, 0.2)), velocity=(-0.3, 0.1, 0), seed=4)
    return Simulation(scene, clast.DEM(**({} if margin is None else {"margin": margin})), dt=2e-5)


def test_no_bit_depends_on_the_margin_of_the_list():
    """Ends of a long body that spins go far while its centre stays: the list must notice."""
    one, two = tumbling(), tumbling(margin=0.002)
    one.step(3000)
    two.step(3000)
    assert one.bodies.force.any() or len(one.contacts().gap) or one.stepper.state.rebuilds > 1
    np.testing.assert_array_equal(one.bodies.position, two.bodies.position)
    np.testing.assert_array_equal(one.bodies.orientation, two.bodies.orientation)
    free = tumbling()
    assert not np.allclose(free.bodies.velocity, one.bodies.velocity)  # something did touch


def test_a_run_goes_on_from_its_checkpoint_to_the_bit(tmp_path):
    one = tumbling()
    one.step(500)
    one.save(tmp_path / "c.h5")
    one.step(500)
    two = clast.resume(tmp_path / "c.h5")
    two.step(500)
    np.testing.assert_array_equal(one.bodies.position, two.bodies.position)
    np.testing.assert_array_equal(one.bodies.spin, two.bodies.spin)


def test_scene_files_have_compounds(tmp_path):
    (tmp_path / "hammer.toml").write_text(
        """
        [[bodies]]
        kind = "compound"
        position = [0, 0, 1]
        [[bodies.shapes]]
        kind = "polyhedron"
        edges = [0.04, 0.02, 0.02]
        [[bodies.shapes]]
        kind = "ellipsoid"
        axes = [0.02, 0.01, 0.01]
        position = [0, 0, 0.03]
        orientation = [0.5, 0.5, 0.5, 0.5]
        """
    )
    scene = load(tmp_path / "hammer.toml").scene
    assert scene.molds.count.tolist() == [2]
    np.testing.assert_allclose(scene.parts.turn[1], 0.5)
    (tmp_path / "wrong.toml").write_text(
        '[[bodies]]\nkind = "compound"\nposition = [0, 0, 1]\nshapes = [{ radius = -1 }]'
    )
    with pytest.raises(clast.SceneError, match=r"bodies\[0\].shapes\[0\].radius = -1: must be > 0"):
        load(tmp_path / "wrong.toml")


def test_files_and_pictures_show_the_turn_of_a_part(tmp_path):
    scene = Scene()
    scene.add(Compound(HAMMER), orientation=QUARTER)
    _, centre, orientation, axes, hull, *_ = vtk.particles(scene.bodies, scene.molds, scene.parts, scene.hulls)
    egg = int(np.flatnonzero(hull < 0)[0])
    np.testing.assert_allclose(axes[egg], (0.02, 0.01, 0.008))
    both = rotation_matrices(np.array([QUARTER]))[0] @ rotation_matrices(np.array([HAMMER[2][2]]))[0]
    np.testing.assert_allclose(rotation_matrices(orientation)[egg], both, atol=1e-15)
    clast.save(tmp_path / "hammer.vtp", scene)
    assert (tmp_path / "hammer.polyhedra.vtp").exists()
    vertices, _ = scene.originals[0].surface()
    turn = rotation_matrices(np.array([QUARTER]))[0]
    drawn = vtk.polygons(centre[:2], np.array([QUARTER] * 2), np.ones(2), hull[:2], scene.hulls).vertices
    np.testing.assert_allclose(drawn, vertices[:16] @ turn.T, atol=1e-15)


@pytest.mark.parametrize(
    ("shapes", "told"),
    [
        ([], "at least one shape"),
        (Sphere(1.0), "needs a list of shapes"),
        ([Plane()], "shape 0 of the compound is a Plane"),
        ([Sphere(1.0), OTHERS["mesh"]], "shape 1 of the compound is a Mesh.*decompose"),
        ([(Sphere(1.0), (0, 0))], "its position must be 3 finite numbers"),
        ([(Sphere(1.0), (0, 0, 0), (0, 0, 0, 0))], "its orientation is zero"),
    ],
)
def test_what_makes_no_compound_is_told(shapes, told):
    with pytest.raises((TypeError, ValueError), match=told):
        Compound(shapes)


def ring():
    from trimesh.creation import torus

    made = torus(1.0, 0.35, major_sections=24, minor_sections=12)
    return Mesh(made.vertices, made.faces)


def test_balls_fitted_to_a_ring_leave_its_hole_free():
    mesh = ring()
    made = Clump.fit(mesh, spheres=20)
    few, again = (Clump.fit(mesh, spheres=4) for _ in range(2))
    np.testing.assert_array_equal(few.centres, again.centres)
    assert len(made.radii) == 20
    assert made.volume == pytest.approx(mesh.volume, rel=3e-4)
    assert made.error["surface"] < 0.1
    assert made.error["mean"] < 0.02
    # The balls stick out by what they have grown, and not more: none reaches into the hole any farther.
    middle = np.linalg.norm(made.centres + made.origin, axis=1) - made.radii
    assert middle.min() > 0.65 - made.error["grown"] - 0.02
    within = Clump.fit(mesh, spheres=20, inside=True)
    assert within.error["grown"] == 0.0
    assert within.error["volume"] < -0.02
    for other in (Sphere(1.0), Compound([Sphere(1.0), (Sphere(1.0), (0.5, 0.0, 0.0))])):
        with pytest.raises(TypeError, match="needs a clast.Mesh"):
            Clump.fit(other, spheres=3)


@pytest.mark.parametrize("balls", [8, 20])
def test_balls_fitted_to_a_ring_are_as_the_page_says(balls):
    """Eight of them leave a gap before they are moved. The row of 60 takes eleven seconds."""
    page = (Path(__file__).resolve().parents[2] / "docs" / "compounds.md").read_text(encoding="utf-8")
    row = re.search(rf"^\| {balls} \| (.*) \|$", page, re.MULTILINE)[1].split(" | ")
    made = Clump.fit(ring(), spheres=balls)
    told = [made.error[name] for name in ("surface", "mean", "grown")]
    np.testing.assert_allclose(told, np.array(row, float), atol=5.1e-4)
    assert len(made.radii) == balls
    assert abs(made.error["volume"]) < 2e-4


def test_one_ball_fitted_to_a_cube_is_the_ball_inside():
    made = Clump.fit(Polyhedron.box(2, 2, 2), spheres=1, inside=True)
    assert made.radii[0] == pytest.approx(1.0, abs=0.06)  # one step of the lattice is 0.087
    assert made.error["surface"] == pytest.approx(np.sqrt(3.0) - 1.0, abs=0.15)


def test_a_ring_is_cut_into_convex_pieces():
    pytest.importorskip("coacd")
    mesh = ring()
    made = Compound.decompose(mesh)
    assert len(made.pieces) > 4
    assert abs(made.error["volume"]) < 0.05
    np.testing.assert_allclose(made.inertia, mesh.inertia, atol=0.05 * mesh.inertia[2, 2])
    found = clast.distance(made, (0.0, 0.0, 0.0), Sphere(0.3), (0.0, 0.0, 0.0))
    assert found.gap[0] > 0.2  # the hole is open


def test_without_the_package_the_message_says_how_to_get_it(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "coacd", None)
    with pytest.raises(clast.Unavailable, match=r"pip install 'clast\[decompose\]'"):
        Compound.decompose(ring())

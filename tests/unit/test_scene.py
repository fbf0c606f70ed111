"""The scene: tables it makes, inputs it refuses, motions it prescribes, and what it writes for a restart."""

import json
import math

import numpy as np
import pytest

from clast.scene import clearance, drives
from clast.scene.drives import Drive, Oscillation
from clast.scene.materials import Material
from clast.scene.scene import Scene
from clast.shapes import Clump, Cylinder, Ellipsoid, Plane, Quad, Sphere
from clast.tables import DRIVEN, FIXED, FREE

SQUARE = [(0, 0, 0), (1, 0, 0), (1, 1, 0), (0, 1, 0)]
UNIT = ((0.0, 0.0, 0.0), (1.0, 1.0, 1.0))


def test_one_row_stands_for_all_and_numbers_are_never_given_twice():
    scene = Scene()
    first = scene.add(Sphere(0.1), position=np.arange(12.0).reshape(4, 3), velocity=(1, 2, 3), scale=[1, 2, 3, 4])
    second = scene.add(Sphere(0.2), position=(0, 0, 9))
    bodies = scene.bodies
    assert first.tolist() == [0, 1, 2, 3] and second.tolist() == [4] and first.dtype == np.int64
    assert bodies.number.tolist() == [0, 1, 2, 3, 4]
    assert (bodies.velocity[:4] == (1, 2, 3)).all() and (bodies.velocity[4] == 0).all()
    assert bodies.position[3].tolist() == [9, 10, 11] and bodies.scale.tolist() == [1, 2, 3, 4, 1]
    assert scene.add(Sphere(0.1), position=np.zeros((0, 3))).tolist() == []


def test_mass_and_inertia_grow_with_the_third_and_fifth_power_of_the_scale():
    scene = Scene()
    rock = Material(density=3000)
    scene.add(Sphere(0.1), scale=[1.0, 2.0], material=rock)
    scene.add(Sphere(0.1), material=rock, motion="fixed")
    scene.add(Sphere(0.1), material=rock, motion="driven", velocity=(1, 0, 0))
    scene.add(Plane())
    bodies = scene.bodies
    mass = 3000 * 4 / 3 * math.pi * 0.1**3
    assert bodies.mass[:2] == pytest.approx([mass, 8 * mass])
    assert bodies.inertia[:2] == pytest.approx([0.4 * mass * 0.01, 32 * 0.4 * mass * 0.01])
    assert np.isinf(bodies.mass[2:]).all() and np.isinf(bodies.inertia[2:]).all()
    assert bodies.motion.tolist() == [FREE, FREE, FIXED, DRIVEN, FIXED]


def test_equal_shapes_and_materials_share_a_row():
    scene = Scene()
    clump = Clump([(0, 0, 0), (0.1, 0, 0)], [0.1, 0.1])
    for shape in (Sphere(0.1), Sphere(0.1), Sphere(0.2), clump, clump):
        scene.add(shape, material=Material(young=1e8))
    assert scene.bodies.mold.tolist() == [0, 0, 1, 2, 2]
    assert scene.molds.count.tolist() == [1, 1, 2] and scene.molds.first.tolist() == [0, 1, 2]
    assert scene.bodies.material.tolist() == [0] * 5 and scene.materials == [Material(young=1e8)]
    assert scene.names == ["Sphere", "Sphere", "Clump"]


def test_shapes_of_spheres_share_the_positions_without_a_copy():
    scene = Scene()
    scene.add(Sphere(0.1), position=np.random.default_rng(1).random((5, 3)), scale=2.0)
    bodies = scene.bodies
    shapes = scene.shapes()
    assert shapes.centre is bodies.position
    assert shapes.body.tolist() == shapes.number.tolist() == [0, 1, 2, 3, 4]
    assert shapes.body.dtype == np.int32 and shapes.part.dtype == np.int32 and shapes.kind.dtype == np.int8
    assert shapes.radius == pytest.approx(0.2)


def test_shapes_of_clumps_are_turned_scaled_and_counted_by_body_number():
    scene = Scene()
    clump = Clump([(-0.1, 0, 0), (0.1, 0, 0)], [0.15, 0.15])
    quarter = (math.sqrt(0.5), 0, 0, math.sqrt(0.5))  # x becomes y
    scene.add(clump, position=(1, 2, 3), orientation=quarter, scale=2.0)
    scene.add(Sphere(0.5), position=(5, 5, 5))
    shapes = scene.shapes()
    assert shapes.body.tolist() == [0, 0, 1] and shapes.part.tolist() == [0, 1, 2]
    assert shapes.centre == pytest.approx(np.array([[1, 1.8, 3], [1, 2.2, 3], [5, 5, 5]]))
    assert shapes.radius == pytest.approx([0.3, 0.3, 0.5])
    turned = type(scene.bodies)(*[column[::-1] for column in scene.bodies])
    mixed = scene.shapes(turned)
    assert mixed.body.tolist() == [0, 1, 1] and mixed.number.tolist() == [2, 0, 1]
    assert mixed.centre[[1, 2, 0]] == pytest.approx(shapes.centre)


def test_meshes_are_put_end_to_end_with_their_rows_shifted():
    scene = Scene()
    scene.add(Quad(SQUARE))
    scene.add(Sphere(0.1))
    scene.add(Quad([(x, y, 5) for x, y, _ in SQUARE]))
    assert len(scene.meshes.triangle) == 4  # asked between two adds, too
    scene.add(Quad([(x, y, 9) for x, y, _ in SQUARE]))
    meshes, parts = scene.meshes, scene.parts
    single = Quad(SQUARE).mesh
    t, v, e = len(single.triangle), len(single.vertex), len(single.edge)
    assert parts.feature.tolist() == [0, 1, -1, 2, 3, 4, 5]
    assert scene.molds.first.tolist() == [0, 2, 3, 5]
    for k, height in enumerate((0, 5, 9)):
        assert (meshes.vertex[meshes.triangle[k * t : (k + 1) * t], 2] == height).all()
        assert (meshes.vertex[meshes.edge[meshes.side[k * t : (k + 1) * t]], 2] == height).all()
        assert (meshes.edge_owner[k * e : (k + 1) * e] - k * t == single.edge_owner).all()
        assert (meshes.vertex_owner[k * v : (k + 1) * v] - k * t == single.vertex_owner).all()
    assert len(meshes.edge_start) == len(meshes.edge) + 1 and meshes.edge_start[-1] == len(meshes.edge_side)
    assert len(meshes.vertex_start) == len(meshes.vertex) + 1 and meshes.vertex_start[-1] == len(meshes.vertex_edge)
    for edge in range(len(meshes.edge)):
        for triangle, side in meshes.edge_side[meshes.edge_start[edge] : meshes.edge_start[edge + 1]]:
            assert meshes.side[triangle, side] == edge
    for vertex in range(len(meshes.vertex)):
        for edge in meshes.vertex_edge[meshes.vertex_start[vertex] : meshes.vertex_start[vertex + 1]]:
            assert vertex in meshes.edge[edge]


def test_an_empty_scene_has_empty_tables():
    scene = Scene()
    assert len(scene.bodies.number) == 0 and len(scene.shapes().number) == 0 and len(scene.parts.kind) == 0


def test_bodies_come_from_the_running_simulation_and_nothing_is_added_behind_its_back():
    class Running:
        def bodies(self):
            return "state"

    scene = Scene()
    scene.add(Sphere(0.1))
    scene.source = Running()
    assert scene.bodies == "state"
    for call in (
        lambda: scene.add(Sphere(0.1)),
        lambda: scene.fill(Sphere(0.1), count=1, box=UNIT),
        lambda: scene.inlet(Sphere(0.1), box=UNIT, rate=1.0),
        lambda: scene.outlet(box=UNIT),
    ):
        with pytest.raises(RuntimeError, match="a simulation is running this scene"):
            call()


WRONG = [
    ({"position": (0, math.nan, 0)}, ValueError, r"position\[1\] is nan"),
    ({"position": [(0, 0, 0), (0, 0, math.inf)]}, ValueError, r"position\[1, 2\] is inf"),
    ({"position": (0, 0)}, ValueError, r"position must have shape \(3,\) or \(n, 3\), got \(2,\)"),
    ({"position": np.zeros((1, 2, 3))}, ValueError, r"got \(1, 2, 3\)"),
    ({"position": "here"}, TypeError, "position must be numbers, got 'here'"),
    ({"position": np.zeros((3, 3)), "velocity": np.zeros((4, 3))}, ValueError, "position has 3, velocity has 4"),
    ({"orientation": (0, 0, 0, 0)}, ValueError, r"orientation in row 0 is zero; no turn is \(1, 0, 0, 0\)"),
    ({"orientation": (1, 0, 0)}, ValueError, r"\(4,\) or \(n, 4\), got \(3,\)"),
    ({"scale": [1.0, 0.0]}, ValueError, "scale must be above 0, got 0 in row 1"),
    ({"scale": -2.0}, ValueError, "scale must be above 0, got -2"),
    ({"scale": np.ones((2, 2))}, ValueError, r"scale must be a number or have shape \(n,\)"),
    ({"motion": "fixd"}, ValueError, "unknown motion 'fixd'; did you mean 'fixed'"),
    ({"motion": 1}, TypeError, "motion must be one of free, fixed, driven, got 1"),
    ({"material": "steel"}, TypeError, r"material must be a clast.Material, got 'steel'"),
    ({"motion": "fixed", "spin": (0, 0, 1)}, ValueError, "a fixed body has no velocity or spin"),
    ({"motion": "free", "drive": Oscillation((1, 0, 0), 1.0)}, ValueError, "drive=.* is for driven bodies"),
    ({"pivot": (0, 0, 0)}, ValueError, "pivot=.* is for driven bodies"),
    ({"motion": "driven", "pivot": (0, 0)}, ValueError, "pivot must be three numbers"),
    ({"drive": 3.0}, TypeError, "drive must be a clast.Oscillation or a function"),
    ({"drive": lambda t: 1.0}, TypeError, r"must return \(velocity, spin\), got 1.0"),
    ({"drive": lambda t: ((0, 0, math.nan), (0, 0, 0))}, ValueError, "velocity must be three finite numbers"),
    ({"drive": lambda t: ((0, 0, 0), (0, 0, 0)), "velocity": (1, 0, 0)}, ValueError, "gives velocity and spin itself"),
]


@pytest.mark.parametrize(("options", "error", "message"), WRONG)
def test_wrong_input_is_refused_with_value_place_and_fix_and_changes_nothing(options, error, message):
    scene = Scene()
    with pytest.raises(error, match=message) as caught:
        scene.add(Sphere(0.1), **options)
    if "unknown" not in message and "function" not in str(caught.value):
        assert str(caught.value).startswith("Scene.add(Sphere): ")
    assert len(scene.bodies.number) == 0 and scene.next_number == 0 and scene.names == [] and scene.materials == []


def test_walls_are_fixed_or_driven_and_never_free():
    scene = Scene()
    with pytest.raises(ValueError, match=r"Scene.add\(Plane\): a wall has no mass and cannot be free"):
        scene.add(Plane(), motion="free")
    with pytest.raises(ValueError, match="a wall cannot fill a box"):
        scene.fill(Plane(), count=3, box=UNIT)
    with pytest.raises(ValueError, match="a wall cannot be poured"):
        scene.inlet(Plane(), box=UNIT, rate=1.0)
    scene.add(Plane(), spin=(0, 0, 1))
    scene.add(Plane(), drive=Oscillation((0, 0, 0.1), 5.0))
    assert scene.bodies.motion.tolist() == [DRIVEN, DRIVEN] and sorted(scene.drives) == [0, 1]


def test_a_class_or_a_number_is_not_a_shape_and_unknown_options_are_refused():
    with pytest.raises(TypeError, match=r"must be a shape such as clast.Sphere\(0.01\), got <class"):
        Scene().add(Sphere)
    with pytest.raises(TypeError, match="must be a shape"):
        Scene().add(0.1)
    with pytest.raises(TypeError, match="positon"):
        Scene().add(Sphere(0.1), positon=(0, 0, 0))


def test_other_quaternions_are_normalised():
    scene = Scene()
    scene.add(Sphere(0.1), orientation=(0, 0, 3, 4))
    assert scene.bodies.orientation[0].tolist() == [0, 0, 0.6, 0.8]


def test_world_and_periodic_are_checked_and_free_bodies_belong_inside():
    with pytest.raises(ValueError, match=r"periodic.*needs a world"):
        Scene(periodic=(True, False, False))
    with pytest.raises(ValueError, match="along y it goes from 1 to 0"):
        Scene(world=((0, 1, 0), (1, 0, 1)))
    with pytest.raises(ValueError, match="gravity must be three numbers"):
        Scene(gravity=-9.81)
    with pytest.raises(TypeError, match="three times True or False"):
        Scene(world=UNIT, periodic=True)
    scene = Scene(world=UNIT, periodic=(True, False, False))
    scene.add(Sphere(0.1), position=[(1.25, 0.5, 0.5), (-1e-20, 0.5, 0.5)])
    assert scene.bodies.position[:, 0].tolist() == [0.25, 0.0]
    with pytest.raises(ValueError, match=r"position \[0.5, 0.5, 2.0\] in row 0 is outside the world"):
        scene.add(Sphere(0.1), position=(0.5, 0.5, 2.0))
    scene.add(Plane(), position=(0, 0, -1))
    with pytest.raises(ValueError, match="is not inside the world"):
        scene.fill(Sphere(0.1), count=1, box=((0, 0, 0), (1, 1, 2)))


def test_fill_inlet_and_combine_check_their_numbers():
    scene = Scene()
    ball = Sphere(0.1)
    for call, error, message in (
        (lambda: scene.fill(ball, count=2.5, box=UNIT), TypeError, "count must be a whole number, got 2.5"),
        (lambda: scene.fill(ball, count=-1, box=UNIT), ValueError, "count must be at least 0, got -1"),
        (lambda: scene.fill(ball, count=1, box=(0, 1)), ValueError, "box must be .* got shape"),
        (lambda: scene.fill(ball, count=1, box=UNIT, method="latice"), ValueError, "did you mean 'lattice'"),
        (lambda: scene.fill(ball, count=1, box=UNIT, jitter=0.1), ValueError, "jitter=0.1 is for method='lattice'"),
        (lambda: scene.fill(ball, count=1, box=UNIT, orientation="rnd"), ValueError, "did you mean 'random'"),
        (lambda: scene.fill(ball, count=1, box=UNIT, seed=-1), ValueError, "seed must be at least 0"),
        (lambda: scene.fill(ball, count=1, box=UNIT, inside=3), TypeError, "inside must be a function"),
        (lambda: scene.inlet(ball, box=UNIT, rate=0.0), ValueError, "rate must be above 0, got 0.0"),
        (lambda: scene.inlet(ball, box=UNIT, rate=math.inf), ValueError, "rate must be finite, got inf"),
        (lambda: scene.inlet(ball, box=UNIT, rate=1, start=2, stop=1), ValueError, "stop must be above 2, got 1"),
        (lambda: scene.inlet(ball, box=UNIT, rate=1, scale=9.0), ValueError, "diameter 1.8 m"),
        (lambda: scene.outlet(box=(UNIT[1], UNIT[0])), ValueError, "Scene.outlet: box must have its low corner first"),
        (lambda: scene.combine(Material(), Material()), ValueError, "nothing to set"),
        (lambda: scene.combine(Material(), None, friction=1), TypeError, "needs two clast.Material, got None"),
        (lambda: scene.combine(Material(), Material(), restitution=2), ValueError, "restitution must be .* got 2"),
    ):
        with pytest.raises(error, match=message):
            call()
    assert len(scene.bodies.number) == 0 and scene.inlets == scene.outlets == scene.materials == []


def test_combine_keeps_one_entry_per_pair_in_either_order():
    scene = Scene()
    a, b = Material(name="a"), Material(name="b")
    scene.add(Sphere(0.1), material=b)
    scene.combine(a, b, friction=0.2)
    scene.combine(b, a, young=1e6)
    assert scene.materials == [b, a] and scene.pairs == {(0, 1): {"friction": 0.2, "young": 1e6}}


def test_fill_takes_one_orientation_for_all_and_pour_makes_numbered_rows():
    scene = Scene()
    scene.fill(Sphere(0.05), count=4, box=UNIT, orientation=(0, 2, 0, 0), velocity=(0, 0, -1))
    assert (scene.bodies.orientation == (0, 1, 0, 0)).all() and (scene.bodies.velocity == (0, 0, -1)).all()
    inlet = scene.inlet(Sphere(0.05), box=UNIT, rate=10.0, velocity=(0, 0, -2), scale=(0.5, 1.0), seed=3)
    shapes = scene.shapes()
    position, scale, orientation, placed = inlet.place(
        0, 3, clearance.Known(shapes.centre, shapes.radius, np.arange(4))
    )
    poured = scene.pour(inlet, position, scale, orientation)
    assert placed == 3 and poured.number.tolist() == [4, 5, 6] and len(scene.bodies.number) == 4
    assert poured.mass == pytest.approx(2500 * 4 / 3 * math.pi * (0.05 * scale) ** 3)
    assert (poured.velocity == (0, 0, -2)).all() and (poured.motion == FREE).all()


def test_a_turning_body_follows_its_circle_exactly_after_many_turns():
    scene = Scene()
    scene.add(Sphere(0.1), position=(2, 0, 0), pivot=(1, 0, 0), motion="driven", spin=(0, 0, 3.0), velocity=(0, 0, 0.5))
    drive = scene.drives[0]
    assert scene.bodies.velocity[0] == pytest.approx([0, 3.0, 0.5])
    for time in (0.0, 0.3, 1e4):
        position, orientation, velocity, spin = drives.pose(drive, time)
        angle = 3.0 * time
        assert position == pytest.approx((1 + math.cos(angle), math.sin(angle), 0.5 * time), abs=1e-9)
        assert velocity == pytest.approx((-3 * math.sin(angle), 3 * math.cos(angle), 0.5), abs=1e-9)
        assert orientation == pytest.approx((math.cos(angle / 2), 0, 0, math.sin(angle / 2)), abs=1e-9)
        assert spin == (0, 0, 3.0)


def test_an_oscillation_starts_where_the_body_is_and_its_velocity_is_the_derivative():
    wave = Oscillation((0.1, 0, 0.2), 3.0, phase=0.7)
    scene = Scene()
    scene.add(Cylinder(1.0), position=(1, 2, 3), orientation=(1, 1, 0, 0), drive=wave, spin=(0.1, -2, 0.4))
    drive = scene.drives[0]
    assert drives.pose(drive, 0.0)[0] == (1, 2, 3)
    assert scene.bodies.velocity[0] == pytest.approx(drives.pose(drive, 0.0)[2])
    step = 1e-6
    before, now, after = (drives.pose(drive, 0.4 + k * step) for k in (-1, 0, 1))
    assert now[2] == pytest.approx([(b - a) / (2 * step) for a, b in zip(before[0], after[0], strict=True)], rel=1e-6)
    assert now[0][0] == pytest.approx(1 + 0.1 * (math.sin(2 * math.pi * 3 * 0.4 + 0.7) - math.sin(0.7)))
    # The spin is the angular velocity in world axes: dq/dt = spin q / 2.
    rate = [(b - a) / (2 * step) for a, b in zip(before[1], after[1], strict=True)]
    w, x, y, z = now[1]
    a, b, c = (0.5 * s for s in now[3])
    half = (-a * x - b * y - c * z, a * w + b * z - c * y, b * w + c * x - a * z, c * w + a * y - b * x)
    assert rate == pytest.approx(half, abs=1e-6)
    for bad in ({"amplitude": (1, 2)}, {"frequency": 0.0}, {"frequency": "fast"}, {"phase": math.nan}):
        with pytest.raises((TypeError, ValueError), match=next(iter(bad))):
            Oscillation(**({"amplitude": (1, 0, 0), "frequency": 1.0} | bad))


def test_a_drive_function_is_followed_by_the_midpoint_rule():
    def function(time):
        return (math.cos(time), 2 * time, 0.0), (0.0, 0.0, 2 * time)

    scene = Scene()
    scene.add(Plane(), drive=function)
    assert scene.bodies.velocity[0].tolist() == [1, 0, 0] and scene.drives[0].function is function
    with pytest.raises(ValueError, match="no closed form"):
        drives.pose(scene.drives[0], 1.0)

    def error(steps):
        position, orientation = (0.0, 0.0, 0.0), (1.0, 0.0, 0.0, 0.0)
        for k in range(steps):
            position, orientation, velocity, spin = drives.advance(
                scene.drives[0], position, orientation, k / steps, 1 / steps
            )
        assert velocity == pytest.approx((math.cos(1), 2, 0)) and spin == pytest.approx((0, 0, 2))
        assert position[1] == pytest.approx(1.0) and orientation == pytest.approx((math.cos(0.5), 0, 0, math.sin(0.5)))
        return abs(position[0] - math.sin(1.0))

    assert error(10) / error(20) == pytest.approx(4.0, rel=0.02)


def full_scene(function):
    scene = Scene(gravity=(0, 1, -9), world=((-2, -2, -2), (2, 2, 2)), periodic=(True, False, False))
    grain, steel = Material(name="grain"), Material(name="steel", young=1e9, stiffness=5.0)
    scene.add(Quad(SQUARE), material=steel, drive=Oscillation((0, 0, 0.1), 2.0, 0.3), spin=(0, 0, 1), pivot=(1, 1, 0))
    scene.add(Plane(), material=steel, drive=function)
    scene.add(Clump([(0, 0, 0), (0.1, 0, 0)], [0.1, 0.1]), position=(0, 0, 1), material=grain)
    scene.fill(Sphere(0.05), count=20, box=UNIT, scale=(0.5, 1.0), material=grain, seed=2)
    scene.inlet(Sphere(0.05), box=UNIT, rate=5.0, scale={1.0: 1, 0.5: 2}, material=grain, count=7, seed=9)
    scene.inlet(Sphere(0.04), box=UNIT, rate=5.0, stop=3.0)
    scene.outlet(box=UNIT)
    scene.combine(grain, steel, friction=0.3)
    return scene


def test_a_scene_comes_back_from_its_description_bit_for_bit():
    def function(time):
        return (time, 0, 0), (0, 0, 0)

    scene = full_scene(function)
    groups, attributes = scene.describe()
    attributes = json.loads(json.dumps(attributes, allow_nan=False))
    with pytest.raises(ValueError, match=r"body 1 was driven by a Python function.*drives={1: function}"):
        Scene.rebuild(groups, attributes)
    with pytest.raises(ValueError, match=r"drives names bodies \[4\]"):
        Scene.rebuild(groups, attributes, drives={1: function, 4: function})
    again = Scene.rebuild(groups, attributes, drives={1: function})
    for name in ("bodies", "molds", "parts", "meshes"):
        old, new = getattr(scene, name), getattr(again, name)
        for column in old._fields:
            a, b = getattr(old, column), getattr(new, column)
            assert a.dtype == b.dtype and a.shape == b.shape and (a == b).all(), (name, column)
            assert a is not b
    for name in ("gravity", "world", "periodic", "materials", "pairs", "drives", "inlets", "outlets", "next_number"):
        assert getattr(scene, name) == getattr(again, name), name
    assert again.names == scene.names and isinstance(again.drives[0], Drive)
    assert drives.pose(again.drives[0], 0.37) == drives.pose(scene.drives[0], 0.37)


def test_a_scene_that_came_back_can_pour_and_grow():
    scene = full_scene(lambda time: ((0, 0, 0), (0, 0, 0)))
    again = Scene.rebuild(*scene.describe(), drives={1: lambda time: ((0, 0, 0), (0, 0, 0))})
    rows = [
        s.pour(
            s.inlets[0], *s.inlets[0].place(0, 2, clearance.Known(np.zeros((0, 3)), np.zeros(0), np.zeros(0, int)))[:3]
        )
        for s in (scene, again)
    ]
    for a, b in zip(*rows, strict=True):
        assert (a == b).all()
    again.add(Sphere(0.3), material=again.materials[0], position=(1, 1, 1))
    assert again.bodies.number[-1] == 25 and len(again.materials) == len(scene.materials)
    assert again.bodies.mold[-1] == len(scene.names) and again.shapes().radius[-1] == pytest.approx(0.3)


def test_a_list_of_shapes_is_one_body_each():
    axes = np.random.default_rng(1).uniform(0.1, 1.0, (20, 3))
    position = 5.0 * np.arange(60.0).reshape(20, 3)
    many, single = Scene(), Scene()
    numbers = many.add([Ellipsoid(*row) for row in axes], position=position, scale=2.0)
    for row, x in zip(axes, position, strict=True):
        single.add(Ellipsoid(*row), position=x, scale=2.0)
    assert numbers.tolist() == list(range(20))
    for name, column in many.bodies._asdict().items():
        assert np.array_equal(column, getattr(single.bodies, name)), name
    assert np.array_equal(many.parts.size, axes)


@pytest.mark.parametrize(
    ("shapes", "options", "words"),
    [
        ([], {}, "empty"),
        ([Sphere(1.0), Plane()], {}, "walls one by one"),
        ([Sphere(1.0), 3], {}, "must be a shape"),
        ([Sphere(1.0), Sphere(2.0)], {"position": np.zeros((3, 3))}, "shape has 2"),
    ],
)
def test_a_wrong_list_of_shapes_is_refused(shapes, options, words):
    scene = Scene()
    with pytest.raises((ValueError, TypeError), match=words):
        scene.add(shapes, **options)
    assert len(scene.bodies.number) == 0

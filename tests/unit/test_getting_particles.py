"""Getting particles: sieve tables, dense fillings, files of other programs, walls that hold a force, true shapes in ParaView."""

import math

import numpy as np
import pytest

import clast
from clast import errors, files, measure

TABLE = {0.002: 0.0, 0.004: 0.3, 0.008: 0.9, 0.016: 1.0}


def test_a_sieve_table_is_found_again_by_mass():
    sizes = clast.sieve(TABLE, clast.Sphere(0.5))
    diameter = np.sort(
        sizes.draw(np.random.default_rng(1).random(400_000))
    )  # a ball of radius 0.5 m has a diameter of 1 m
    mass = np.cumsum(diameter**3) / (diameter**3).sum()
    for opening, passing in TABLE.items():
        assert np.interp(opening, diameter, mass, left=0.0) == pytest.approx(passing, abs=0.01)
    assert sizes.mean_cube == pytest.approx((diameter**3).mean(), rel=0.01)


def test_a_sieve_knows_shapes_by_their_volume():
    ball, cube = clast.sieve(TABLE, clast.Sphere(0.01)), clast.sieve(TABLE, clast.Polyhedron.box(0.02, 0.02, 0.02))
    volume = 4.0 / 3.0 * math.pi * (0.01 * ball.largest) ** 3
    assert (0.02 * cube.largest) ** 3 == pytest.approx(volume) == pytest.approx(math.pi / 6.0 * 0.016**3)


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ({0.002: 0.0}, "at least two openings"),
        ({0.002: 0.1, 0.004: 1.0}, "from 0 at the finest sieve to 1"),
        ({0.002: 0.0, 0.003: 0.7, 0.004: 0.6, 0.005: 1.0}, "must grow"),
        ({-0.002: 0.0, 0.004: 1.0}, "above 0 m"),
        ("fine", "needs {opening: passing}"),
    ],
)
def test_tables_that_are_none_are_refused(table, words):
    with pytest.raises((ValueError, TypeError), match=words):
        clast.sieve(table, clast.Sphere(0.01))


@pytest.mark.parametrize(("fraction", "periodic"), [(0.2, False), (0.5, False), (0.55, True)])
def test_a_box_is_filled_to_the_fraction_that_was_asked_for(fraction, periodic):
    box = ((0.0, 0.0, 0.0), (0.1, 0.1, 0.1))
    scene = clast.Scene(world=box, periodic=(periodic,) * 3) if periodic else clast.Scene()
    numbers = scene.fill(clast.Sphere(0.0055), fraction=fraction, box=box, scale=(0.8, 1.2), seed=3)
    assert len(numbers) == len(scene.bodies.number) > 250
    assert measure.packing_fraction(scene, box) == pytest.approx(fraction, rel=0.03)
    contacts = clast.find_contacts(scene)
    assert -contacts.gap.min(initial=0.0) < 1.1e-3 * 0.0055
    again = clast.Scene(world=box, periodic=(periodic,) * 3) if periodic else clast.Scene()
    again.fill(clast.Sphere(0.0055), fraction=fraction, box=box, scale=(0.8, 1.2), seed=3)
    assert np.array_equal(again.bodies.position, scene.bodies.position)


def test_fillings_that_cannot_be_are_refused():
    box = ((0, 0, 0), (0.1, 0.1, 0.1))
    ball = clast.Sphere(0.01)
    with pytest.raises(ValueError, match="either count, a number of bodies, or fraction"):
        clast.Scene().fill(ball, box=box)
    with pytest.raises(ValueError, match="either count, a number of bodies, or fraction"):
        clast.Scene().fill(ball, count=5, fraction=0.1, box=box)
    with pytest.raises(ValueError, match=r"still overlap by .* end at about 0.61"):
        clast.Scene().fill(ball, fraction=0.7, box=box)
    scene = clast.Scene()
    scene.add(clast.Sphere(0.02), position=(0.05, 0.05, 0.05))
    with pytest.raises(ValueError, match="needs an empty box"):
        scene.fill(ball, fraction=0.5, box=box)
    with pytest.raises(ValueError, match="leave inside out"):
        clast.Scene().fill(ball, fraction=0.5, box=box, inside=lambda x: x[:, 0] > 0)


# Files of other programs, as small as their manuals show them.

DATA = """LAMMPS data file

3 atoms
2 atom types
0 1 xlo xhi
0 1 ylo yhi
0 1 zlo zhi

Atoms # sphere

3 1 0.02 2500 0.7 0.2 0.3 0 0 0
1 2 0.04 2600 0.1 0.2 0.3 0 0 1
2 1 0.02 2500 0.4 0.5 0.6 0 0 0

Velocities

1 1 2 3 0.1 0.2 0.3
3 -1 0 0 0 0 0
"""
DUMP = """ITEM: TIMESTEP
0
ITEM: NUMBER OF ATOMS
1
ITEM: BOX BOUNDS ff ff ff
0 1
0 1
0 1
ITEM: ATOMS id type x y z vx vy vz radius
7 1 9 9 9 0 0 0 0.5
ITEM: TIMESTEP
100
ITEM: NUMBER OF ATOMS
2
ITEM: BOX BOUNDS ff ff ff
0 1
0 1
0 1
ITEM: ATOMS id type type x y z ix iy iz vx vy vz fx fy fz omegax omegay omegaz radius
2 1 1 0.4 0.5 0.6 0 0 0 4 5 6 0 0 0 7 8 9 0.01
1 2 2 0.1 0.2 0.3 0 0 0 1 2 3 0 0 0 0 0 0 0.02
"""
TEXT = """#format x_y_z_r_matId
0.1\t0.2\t0.3\t0.02\t1
0.4\t0.5\t0.6\t0.01\t0
"""


def test_spheres_of_other_programs(tmp_path):
    def load(text, **options):
        (tmp_path / "file").write_text(text)
        return files.load_spheres(tmp_path / "file", **options)

    data, dump, text = load(DATA), load(DUMP), load(TEXT)
    liggghts = load(DATA.replace("# sphere", "# granular"))
    assert all(np.array_equal(a, b) for a, b in zip(liggghts, data, strict=True))
    assert data.number.tolist() == [1, 2, 3] and data.kind.tolist() == [2, 1, 1]
    assert data.radius.tolist() == [0.02, 0.01, 0.01] and data.density.tolist() == [2600, 2500, 2500]
    assert data.velocity.tolist() == [[1, 2, 3], [0, 0, 0], [-1, 0, 0]] and data.spin[0].tolist() == [0.1, 0.2, 0.3]
    assert dump.position.tolist() == [[0.1, 0.2, 0.3], [0.4, 0.5, 0.6]] and dump.spin[1].tolist() == [7, 8, 9]
    assert load(DUMP, frame=0).radius.tolist() == [0.5]
    assert text.radius.tolist() == [0.02, 0.01] and text.kind.tolist() == [1, 0]
    assert load("1 2 3 0.5\n").position.tolist() == [[1, 2, 3]]
    scene = clast.Scene()
    scene.add(clast.Sphere(1.0), position=dump.position, scale=dump.radius, velocity=dump.velocity)
    assert scene.shapes().radius.tolist() == [0.02, 0.01]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "1 2 3\n",
        "a b c d\n",
        DATA.replace("# sphere", "# atomic"),
        DATA.replace("# sphere", "# granular").replace(" 2500 ", " ").replace(" 2600 ", " "),
        DUMP[:-60],
        DUMP.replace("radius", "mass"),
        "1 2 3 -0.5\n",
        "nan 2 3 1\n",
    ],
)
def test_files_that_are_no_spheres_are_named(tmp_path, text):
    (tmp_path / "file.txt").write_text(text)
    with pytest.raises(errors.Damaged, match="file.txt"):
        files.load_spheres(tmp_path / "file.txt")


def test_dumps_are_read_back(tmp_path, small_run):
    scene = clast.Scene()
    scene.add(clast.Sphere(0.1), position=[(0.1, 0.2, 0.3), (1.0, 0, 0)], velocity=(1.0, 2.0, 3.0), scale=[1.0, 0.3])
    scene.add(clast.Ellipsoid(0.1, 0.2, 0.3), position=(0, 0, 5.0), orientation=(0.6, 0.8, 0, 0))
    clast.save(tmp_path / "a.dump", scene)
    told = files.load_spheres(tmp_path / "a.dump")
    assert told.number.tolist() == [1, 2, 3] and np.array_equal(told.position, scene.bodies.position)
    assert np.array_equal(told.velocity, scene.bodies.velocity) and told.radius[:2].tolist() == [0.1, 0.3 * 0.1]
    last = (tmp_path / "a.dump").read_text().splitlines()[-1].split()
    # shapex and so on are diameters: LAMMPS has them so, and OVITO halves what it reads.
    assert [float(x) for x in last[13:]] == pytest.approx([0.2, 0.4, 0.6, 0.8, 0, 0, 0.6])
    path = files.export(small_run, tmp_path / "run.dump")
    text = path.read_text()
    with files.Trajectory(small_run / "trajectory.h5") as run:
        assert text.count("ITEM: TIMESTEP") == len(run)
        found = files.load_spheres(path)
        assert found.position == pytest.approx(run[-1].columns["position"][1:], rel=1e-6)
    with pytest.raises(ValueError, match=r"unknown file format of a run '.xyz'"):
        files.export(small_run, tmp_path / "run.xyz")


def test_rows_of_a_dump_are_told_apart_and_its_box_is_the_periodic_world(tmp_path):
    scene = clast.Scene(world=((0, 0, 0), (1, 2, 3)), periodic=(True, False, True))
    scene.add(clast.Sphere(0.1), position=(0.5, 0.5, 0.5))
    scene.add(clast.Clump([(0, 0, 0), (0.1, 0, 0), (0.2, 0, 0)], 0.1), position=[(0.5, 1.0, 1.0), (0.5, 1.5, 2.0)])
    clast.save(tmp_path / "a.dump", scene)
    with files.Trajectory(tmp_path / "trajectory.h5", "w") as frames:
        frames.header(*scene.describe())
        frames.append(0.0, 0, scene.bodies)
        left = {name: column[[0, 2]] for name, column in scene.bodies._asdict().items()}
        frames.append(0.1, 1, left)
    files.export(tmp_path / "trajectory.h5", tmp_path / "run.dump")
    for path, rows in (("a.dump", 7), ("run.dump", 4)):
        lines = (tmp_path / path).read_text().splitlines()
        start = max(k for k, line in enumerate(lines) if line.startswith("ITEM: BOX"))
        assert lines[start] == "ITEM: BOX BOUNDS pp ff pp"
        box = [[float(x) for x in line.split()] for line in lines[start + 1 : start + 4]]
        assert box[0] == [0, 1] and box[2] == [0, 3] and 0 < box[1][0] < box[1][1] < 2
        table = [[int(x) for x in line.split()[:2]] for line in lines[-rows:]]
        assert [mol for _, mol in table] == ([1, 2, 2, 2, 3, 3, 3] if rows == 7 else [1, 3, 3, 3])
        # One id each, and the same for the last body after another is gone.
        assert len({own for own, _ in table}) == rows and [own for own, _ in table[-3:]] == [7, 8, 9]


def test_ellipsoids_of_a_dump_without_radius_are_balls_of_their_volume(tmp_path):
    text = (
        DUMP.partition("ITEM: TIMESTEP\n100")[0]
        .replace("radius", "shapex shapey shapez")
        .replace("0 0 0 0.5", "0 0 0 0.2 0.4 0.1")
    )
    (tmp_path / "a.dump").write_text(text)
    assert files.load_spheres(tmp_path / "a.dump").radius == pytest.approx([0.1])


def test_the_recipe_for_paraview_shows_true_shapes(tmp_path):
    """What docs/files.md says to do in ParaView, done with VTK: glyphs of a sphere by orientation and axes; faces as they are."""
    pyvista = pytest.importorskip("pyvista")
    scene = clast.Scene()
    scene.add(clast.Quad([(0, 0, 0), (1, 0, 0), (1, 1, 0), (0, 1, 0)]))
    scene.add(clast.Ellipsoid(0.1, 0.2, 0.3), position=(0, 0, 5.0), orientation=(0.6, 0.8, 0, 0))
    rock = clast.Polyhedron.random(faces=12, seed=2)
    scene.add(rock, position=(3, 0, 1), orientation=(0.6, 0, 0.8, 0), scale=0.7)
    bent = clast.Superquadric(0.1, 0.2, 0.15, 0.6, 0.8)
    scene.add(bent, position=(5, 0, 1), orientation=(0.6, 0, 0, 0.8), scale=2.0)
    clast.save(tmp_path / "a.vtp", scene)
    points = pyvista.read(tmp_path / "a.vtp")
    row = int(np.flatnonzero(points["number"] == 1)[0])
    # Glyph a sphere of diameter 1 as the recipe says: scale factor 2 times `axes`, turned by the quaternion `orientation`.
    from vtkmodules.vtkCommonTransforms import vtkTransform

    w, x, y, z = points["orientation"][row]
    glyph = vtkTransform()
    glyph.Translate(points.points[row])
    glyph.RotateWXYZ(2.0 * math.degrees(math.acos(w)), x, y, z)
    glyph.Scale(2.0 * points["axes"][row])
    drawn = pyvista.Sphere(radius=0.5, theta_resolution=90, phi_resolution=90).transform(glyph, inplace=False)
    half = 0.5 * np.diff(np.array(drawn.bounds).reshape(3, 2), axis=1)[:, 0]
    # Turned by 2 atan(0.8 / 0.6) about x, an ellipsoid reaches sqrt(sum (R_ij a_j)^2) along axis i.
    turn = 2.0 * math.atan2(0.8, 0.6)
    exact = [
        0.1,
        math.hypot(0.2 * math.cos(turn), 0.3 * math.sin(turn)),
        math.hypot(0.2 * math.sin(turn), 0.3 * math.cos(turn)),
    ]
    assert half == pytest.approx(np.array(exact), rel=2e-3)
    assert points.point_data["axes"][row] == pytest.approx((0.1, 0.2, 0.3))
    for name, shape, scale in (("polyhedra", rock, 0.7), ("superquadrics", bent, 2.0)):
        skin = pyvista.read(tmp_path / f"a.{name}.vtp").triangulate()
        assert skin.volume == pytest.approx(shape.volume * scale**3, rel=1e-6 if name == "polyhedra" else 0.02)
        assert set(skin.cell_data["number"]) == {2 if name == "polyhedra" else 3}
    assert pyvista.read(tmp_path / "a.walls.vtp").area == pytest.approx(1.0)


# Walls that hold a force.


def pressed(force):
    """A column of two balls between a floor and a plate that holds a force."""
    metal = clast.Material(density=1000.0, young=1e7, restitution=0.2)
    scene = clast.Scene(gravity=(0, 0, 0))
    scene.add(clast.Plane(), material=metal)
    scene.add(clast.Sphere(0.01), position=[(0, 0, 0.01), (0, 0, 0.03)], material=metal)
    servo = clast.Servo(axis=(0, 0, -1), speed=0.02, force=force)
    plate = scene.add(clast.Plane(normal=(0, 0, -1)), position=(0, 0, 0.0405), material=metal, drive=servo)[0]
    return clast.Simulation(scene, dt=2e-5), plate, servo


def test_a_servo_wall_presses_until_its_force_is_reached():
    sim, plate, servo = pressed(3.0)
    assert sim.bodies.velocity[plate].tolist() == [0, 0, 0]
    sim.step(10)
    assert sim.bodies.velocity[plate] == pytest.approx((0, 0, -0.02))  # nothing resists yet
    sim.step(round(0.3 / sim.dt))
    assert measure.wall_force(sim, plate)[2] == pytest.approx(3.0, rel=0.01) == servo.push
    assert measure.wall_force(sim, 0)[2] == pytest.approx(-3.0, rel=0.01)
    assert abs(sim.bodies.velocity[plate, 2]) < 1e-3
    assert clast.Servo(axis=(0, 0, -1), speed=0.02, pressure=2000.0, area=4e-4).force == pytest.approx(0.8)


def test_a_servo_goes_on_with_the_same_bits(tmp_path):
    sim, plate, _ = pressed(3.0)
    sim.step(2000)
    sim.save(tmp_path / "a.h5")
    again = clast.resume(tmp_path / "a.h5", drives={plate: clast.Servo(axis=(0, 0, -1), speed=0.02, force=3.0)})
    for one in (sim, again):
        one.step(500)
    assert np.array_equal(sim.bodies.position, again.bodies.position)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"axis": (0, 0, 0), "force": 1.0}, "axis must not be zero"),
        ({"axis": (0, 0, 1)}, "either force"),
        ({"axis": (0, 0, 1), "pressure": 5.0}, "either force"),
        ({"axis": (0, 0, 1), "force": -5.0}, "above 0"),
    ],
)
def test_servos_that_cannot_be_are_refused(options, words):
    with pytest.raises(ValueError, match=words):
        clast.Servo(speed=0.1, **options)


def test_servos_need_forces():
    scene = clast.Scene()
    scene.add(clast.Sphere(0.01))
    scene.add(
        clast.Plane(), drive=clast.Servo(axis=(0, 0, 1), speed=0.1, pressure=100.0, area=0.01), position=(0, 0, -1)
    )
    with pytest.raises(ValueError, match=r"need clast.DEM"):
        clast.Simulation(scene, clast.Complementarity())


def test_a_servo_compacts_a_bed_to_its_pressure():
    smooth = clast.Material(density=2600.0, young=1e7, friction=0.0, restitution=0.2)
    width, high, pressure = 0.02, 0.037, 2000.0
    scene = clast.Scene(gravity=(0, 0, 0))
    scene.add(clast.Plane(), material=smooth)
    for x, y in ((1, 0), (-1, 0), (0, 1), (0, -1)):
        scene.add(clast.Plane(normal=(x, y, 0)), position=(-0.5 * width * x, -0.5 * width * y, 0), material=smooth)
    corner = -0.5 * width, -0.5 * width, 0.0
    scene.fill(
        clast.Sphere(0.002), fraction=0.45, box=(corner, (0.5 * width, 0.5 * width, high)), material=smooth, seed=1
    )
    servo = clast.Servo(axis=(0, 0, -1), speed=0.05, pressure=pressure, area=width**2)
    lid = scene.add(clast.Plane(normal=(0, 0, -1)), position=(0, 0, high), material=smooth, drive=servo)[0]

    def room():
        return corner, (0.5 * width, 0.5 * width, float(scene.bodies.position[lid, 2]))

    loose = measure.packing_fraction(scene, room())
    sim = clast.Simulation(scene)
    sim.run(until=0.3, progress=False)
    # Without friction all that the lid gives comes to the floor, and the bed has that pressure within.
    for wall, sign in ((lid, 1.0), (0, -1.0)):
        assert sign * measure.wall_force(sim, wall)[2] / width**2 == pytest.approx(pressure, rel=0.05)
    assert measure.stress(sim, room())[2, 2] == pytest.approx(pressure, rel=0.05)
    assert loose < 0.46 and measure.packing_fraction(sim, room()) > 0.55
    assert abs(sim.bodies.velocity[lid, 2]) < 0.05 * servo.speed

"""Scene files: what they build, and the one line that each fault gets."""

import math
import tomllib
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest

from clast import DEM, Complementarity, Mesh, Polyhedron, scenefile
from clast.errors import SceneError
from clast.tables import ELLIPSOID, MESH, POLYHEDRON

EXAMPLES = sorted((Path(__file__).resolve().parents[2] / "examples").glob("*.toml"))
BALL = '[[bodies]]\nkind = "sphere"\nradius = 0.01\nposition = [0, 0, 0.5]\n'
ARM = BALL + 'name = "arm"\n[[joints]]\nbetween = ["world", "arm"]\n'
EGG = '[[bodies]]\nkind = "ellipsoid"\naxes = [0.03, 0.02, 0.01]\nposition = [0, 0, 0.5]\n'
LUMP = '[[bodies]]\nkind = "mesh"\npoints = 14\nradius = 0.02\nposition = [0, 0, 0.5]\n'
ROCK = '[[bodies]]\nkind = "polyhedron"\nfaces = 14\nradius = 0.02\nposition = [0, 0, 0.5]\n'
FILL = "[[fill]]\nradius = 0.01\ncount = 5\nbox = [[0, 0, 0], [1, 1, 1]]\n"


@pytest.fixture
def load(tmp_path):
    """Load a scene file with this text."""

    def load_text(text):
        path = tmp_path / "scene.toml"
        path.write_text(text, encoding="utf-8")
        return scenefile.load(path)

    return load_text


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_every_example_loads(path):
    ready = scenefile.load(path)
    assert ready.title != path.stem
    assert 0.0 < ready.every < ready.until
    assert len(ready.scene.bodies.number) > 0


def test_the_numbers_of_the_file_arrive_in_the_scene(load):
    ready = load(
        """
        [scene]
        gravity = [0, 0, -1.62]
        world = [[-1, -1, -1], [1, 1, 2]]
        periodic = [true, false, false]
        [materials.rock]
        density = 2000
        restitution = 0.25
        [materials.steel]
        friction = 0.1
        [[pairs]]
        between = ["rock", "steel"]
        friction = 0.75
        [[walls]]
        kind = "plane"
        material = "steel"
        oscillation = { amplitude = [0, 0, 0.01], frequency = 5 }
        [[walls]]
        kind = "cylinder"
        radius = 0.5
        spin = [0, 0, 2]
        material = "steel"
        [[bodies]]
        radius = 0.1
        position = [0, 0.25, 0.5]
        velocity = [1, 0, 0]
        spin = [0, 3, 0]
        scale = 0.5
        material = "rock"
        [run]
        dt = 1e-4
        until = 3
        every = 0.5
        overlap_limit = 0.2
        """
    )
    scene, bodies = ready.scene, ready.scene.bodies
    assert (ready.dt, ready.until, ready.every, ready.overlap_limit) == (1e-4, 3.0, 0.5, 0.2)
    assert list(scene.gravity) == [0.0, 0.0, -1.62]
    assert list(scene.periodic) == [True, False, False]
    names = [material.name for material in scene.materials]
    rock, steel = names.index("rock"), names.index("steel")
    assert scene.materials[rock].restitution == 0.25
    assert scene.pairs[min(rock, steel), max(rock, steel)]["friction"] == 0.75
    np.testing.assert_array_equal(bodies.position[2], [0.0, 0.25, 0.5])
    np.testing.assert_array_equal(bodies.velocity[2], [1.0, 0.0, 0.0])
    np.testing.assert_array_equal(bodies.spin[1:], [[0.0, 0.0, 2.0], [0.0, 3.0, 0.0]])
    assert bodies.mass[2] == pytest.approx(2000.0 * 4.0 / 3.0 * math.pi * 0.05**3)
    # The floor swings through its middle at t = 0, at full speed.
    assert bodies.velocity[0, 2] == pytest.approx(0.01 * 2.0 * math.pi * 5.0)


def test_fill_to_a_fraction_with_sizes_of_a_sieve(load):
    box = "box = [[0, 0, 0], [0.1, 0.1, 0.1]]\n"
    scene = load(
        f"[[fill]]\nradius = 0.01\nfraction = 0.2\nseed = 4\nsieve = [[0.01, 0], [0.014, 0.5], [0.02, 1]]\n{box}[run]\nuntil = 1\n"
    ).scene
    diameter = 2.0 * scene.shapes().radius
    assert (diameter >= 0.01).all() and (diameter <= 0.02).all()
    assert (np.pi / 6.0 * diameter**3).sum() / 1e-3 == pytest.approx(0.2, rel=0.2)
    for wrong, words in (
        ("fraction = 0.2\nmix = [[1, 1]]\nsieve = [[0.01, 0], [0.02, 1]]", "leave one of them out"),
        ("fraction = 0.2\nsieve = [[0.01, 0], [0.02, 0.5]]", "from 0 at the finest sieve to 1"),
        ("count = 5\nfraction = 0.2", "either count"),
        ("seed = 3", "either count"),
    ):
        with pytest.raises(SceneError, match=words):
            load(f"[[fill]]\nradius = 0.01\n{wrong}\n{box}[run]\nuntil = 1\n")


def test_fill_with_a_mix_has_only_these_sizes_and_stays_within_its_cylinder(load):
    ready = load(
        "[[fill]]\nradius = 0.01\ncount = 200\nseed = 4\nmix = [[1, 0.5], [2.5, 0.5]]\n"
        "box = [[0, 0, 0], [1, 1, 1]]\nwithin = { centre = [0.5, 0, 0.5], axis = [0, 2, 0], radius = 0.3 }\n"
    )
    bodies = ready.scene.bodies
    assert set(bodies.scale.tolist()) == {1.0, 2.5}
    assert np.hypot(bodies.position[:, 0] - 0.5, bodies.position[:, 2] - 0.5).max() < 0.3
    assert np.ptp(bodies.position[:, 1]) > 0.5


def test_hard_contacts_with_their_options(load):
    hard = load(
        "[materials.clay]\nspinning_friction = 0.2\ncohesion = 0.5\ncompliance = 1e-5\n"
        + '[[pairs]]\nbetween = ["clay", "clay"]\ncohesion = 0.25\n'
        + BALL
        + '[run]\nmethod = "complementarity"\nsolver = "gauss-seidel"\ntolerance = 1e-6\niterations = 70\ncoulomb = true\n'
        + "warm = false\nrecovery = 0.3\nthreshold = 0.2\n"
    )
    assert hard.method == Complementarity(
        solver="gauss-seidel", tolerance=1e-6, iterations=70, coulomb=True, warm=False, recovery=0.3, threshold=0.2
    )
    (clay,) = hard.scene.materials
    assert (clay.spinning_friction, clay.cohesion, clay.compliance) == (0.2, 0.5, 1e-5)
    assert hard.scene.pairs == {(0, 0): {"cohesion": 0.25}}
    assert load(BALL + '[run]\nmethod = "complementarity"').method == Complementarity()
    assert load(BALL + '[run]\nmethod = "dem"\nlaw = "linear"').method == DEM(law="linear")


@pytest.mark.parametrize("where", ["[materials.clay]\n", '[[pairs]]\nbetween = ["clay", "clay"]\n'])
def test_a_number_of_a_law_that_is_none_is_named(load, where):
    with pytest.raises(ValueError, match=r"numbers\.adhesion = 'x': must be a number"):
        load("[materials.clay]\n" * where.startswith("[[") + where + 'numbers = { adhesion = "x" }\n' + BALL)


def test_every_option_of_hard_contacts_is_a_key_with_its_default():
    options = {field.name: field.default for field in fields(Complementarity) if field.name not in ("broad", "ledger")}
    assert set(options) == set(scenefile.keys.METHODS["complementarity"])
    text = (Path(__file__).resolve().parents[2] / "docs" / "files.md").read_text(encoding="utf-8")
    for name, default in options.items():
        line = next(line for line in text.splitlines() if line.startswith(f"| `{name}` | complementarity"))
        told = line.split("|")[3].strip(" `")
        assert told == "none" if default is None else tomllib.loads(f"a = {told}")["a"] == default, line


def test_ellipsoids_as_bodies_in_fills_and_from_inlets(load):
    box = "box = [[0, 0, 0], [1, 1, 1]]\n"
    scene = load(
        EGG
        + 'orientation = [0, 1, 0, 0]\nscale = 2\n[[fill]]\nkind = "ellipsoid"\naxes = [0.01, 0.02, 0.03]\ncount = 7\n'
        + box
        + '[[inlet]]\nkind = "ellipsoid"\naxes = [0.03, 0.01, 0.01]\nrate = 10\n'
        + box
    ).scene
    assert len(scene.bodies.number) == 8
    kinds, sizes = scene.parts.kind, scene.parts.size
    assert (kinds == ELLIPSOID).all()
    assert sizes.tolist() == [[0.03, 0.02, 0.01], [0.01, 0.02, 0.03], [0.03, 0.01, 0.01]]
    assert scene.bodies.scale[0] == 2.0 and scene.inlets[0].reach == 0.03
    assert scene.bodies.mass[0] == pytest.approx(2500.0 * 4.0 / 3.0 * math.pi * 6e-6 * 8.0)
    assert len(np.unique(scene.bodies.orientation[1:], axis=0)) == 7


def test_polyhedra_of_all_kinds_as_bodies_in_fills_and_from_inlets(load, tmp_path):
    cube = Polyhedron.box(10.0, 10.0, 10.0)
    corners, triangles = cube.surface()
    lines = [f"v {x} {y} {z}" for x, y, z in corners] + [f"f {a} {b} {c}" for a, b, c in triangles + 1]
    (tmp_path / "cube.obj").write_text("\n".join(lines) + "\n")
    box = "box = [[0, 0, 0], [1, 1, 1]]\n"
    place = "position = [0, 0, 0]\n"
    scene = load(
        ROCK
        + f'variant = 7\naspect = [1, 0.8, 0.6]\n[[bodies]]\nkind = "polyhedron"\nsolid = "octahedron"\nradius = 0.1\n{place}'
        + f'[[bodies]]\nkind = "polyhedron"\npoints = [[0, 0, 0], [0.3, 0, 0], [0, 0.1, 0], [0, 0, 0.1]]\n{place}'
        + f'[[bodies]]\nkind = "polyhedron"\nfile = "cube.obj"\nscale = 0.001\n{place}'
        + f'[[fill]]\nkind = "polyhedron"\nedges = [0.03, 0.02, 0.01]\ncount = 5\nseed = 3\n{box}'
        + f'[[inlet]]\nkind = "polyhedron"\nfaces = 6\nradius = 0.01\nrate = 10\n{box}'
    ).scene
    assert (scene.parts.kind == POLYHEDRON).all() and len(scene.bodies.number) == 9
    assert scene.originals == [
        Polyhedron.random(faces=14, radius=0.02, seed=7, aspect=(1.0, 0.8, 0.6)),
        Polyhedron.regular("octahedron", radius=0.1),
        Polyhedron([[0, 0, 0], [0.3, 0, 0], [0, 0.1, 0], [0, 0, 0.1]]),
        cube,
        Polyhedron.box(0.03, 0.02, 0.01),
        Polyhedron.random(faces=6, radius=0.01),
    ]
    assert scene.bodies.mass[3] == pytest.approx(2500.0 * 1e-6)


def test_meshes_of_all_kinds_as_bodies_in_fills_and_from_inlets(load, tmp_path):
    lump = Mesh.random(10, seed=2)
    lines = [f"v {x} {y} {z}" for x, y, z in lump.vertices] + [f"f {a} {b} {c}" for a, b, c in lump.triangles + 1]
    (tmp_path / "lump.obj").write_text("\n".join(lines) + "\n")
    box = "box = [[0, 0, 0], [1, 1, 1]]\n"
    corners = [[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]]
    sides = [[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]]
    scene = load(
        LUMP
        + 'variant = 7\ndistortion = [0.9, 1]\n[[bodies]]\nkind = "mesh"\nfile = "lump.obj"\nepsilon = 0.01\nscale = 0.1\n'
        + f'position = [0, 0, 0]\n[[bodies]]\nkind = "mesh"\nvertices = {corners}\ntriangles = {sides}\nposition = [0, 0, 0]\n'
        + f'[[fill]]\nkind = "mesh"\npoints = 8\nradius = 0.01\nepsilon = 0.0001\ncount = 5\nseed = 3\n{box}'
        + f'[[inlet]]\nkind = "mesh"\npoints = 6\nradius = 0.01\nrate = 10\n{box}'
    ).scene
    assert (scene.parts.kind == MESH).all() and len(scene.bodies.number) == 8
    assert scene.originals == [
        Mesh.random(14, (0.9, 1.0), radius=0.02, seed=7),
        Mesh(lump.vertices, lump.triangles, epsilon=0.01),
        Mesh(corners, sides),
        Mesh.random(8, radius=0.01, epsilon=0.0001),
        Mesh.random(6, radius=0.01),
    ]


def test_a_mesh_is_looked_for_beside_the_scene_file(tmp_path, monkeypatch):
    corner = "vertex 0 0 0\nvertex 1000 0 0\nvertex 0 1000 0"
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "one.stl").write_text(
        f"solid one\nfacet normal 0 0 1\nouter loop\n{corner}\nendloop\nendfacet\nendsolid one\n"
    )
    (tmp_path / "scene.toml").write_text(BALL + '[[walls]]\nkind = "mesh"\nfile = "parts/one.stl"\nscale = 0.001\n')
    monkeypatch.chdir("/")
    scene = scenefile.load(tmp_path / "scene.toml").scene
    assert scene.bodies.scale[0] == 0.001
    assert len(scene.meshes.triangle) == 1


FAULTS = {
    # text: (what the line says after the file's name)
    "[[fill]]\nradius = -1\ncount = 5\nbox = [[0,0,0],[1,1,1]]": (
        "fill[0].radius = -1: must be > 0; radius is the radius [m], for example radius = 0.005"
    ),
    BALL
    + "[[fill]]\nradus = 0.1\ncount = 5\nbox = [[0,0,0],[1,1,1]]": "fill[0].radus: unknown key; did you mean 'radius'?",
    "[fil]\n": "fil: unknown key; did you mean 'fill'?",
    BALL + "[run]\nuntill = 3": "run.untill: unknown key; did you mean 'until'? (known: dt, until,",
    BALL + "[run]\nuntil = nan": "run.until = nan: must be a finite number",
    BALL + "[run]\nuntil = 1e999": "run.until = inf: must be a finite number",
    BALL + '[run]\nuntil = "3"': "run.until = '3': must be a number",
    BALL + "[run]\nuntil = true": "run.until = True: must be a number",
    BALL + '[run]\ndt = "fast"': "run.dt = 'fast': must be ",
    BALL + "[run]\ndt = 0": "run.dt = 0: must be > 0",
    BALL + '[run]\nlaw = "herz"': "run: unknown contact law 'herz'; did you mean 'hertz'?",
    BALL + '[run]\nmethod = "DEM"': "run.method = 'DEM': must be one of 'dem' or 'complementarity'",
    BALL + "[run]\ntolerance = 1e-3": 'run.tolerance = 0.001: goes with method = "complementarity", not with "dem"',
    BALL + '[run]\nmethod = "complementarity"\nlaw = "hertz"': "run.law = 'hertz': goes with method = \"dem\"",
    BALL + '[run]\nmethod = "complementarity"\nsolver = "apdg"': "run: unknown solver 'apdg'; did you mean 'apgd'?",
    BALL
    + '[run]\nmethod = "complementarity"\nomega = 3': "run: Complementarity: omega = 3.0 must be above 0 and below 2",
    BALL + '[[joints]]\nkind = "ball"': "joints[0].between: is missing; between is the names of two bodies",
    BALL + '[[joints]]\nbetween = ["world", "ram"]\nkind = "ball"': (
        "joints[0].between[1] = 'ram': unknown body; give a body or wall that name (known: world)"
    ),
    ARM + 'kind = "hing"': "joints[0]: unknown kind of joint 'hing'; did you mean 'hinge'?",
    ARM + 'kind = "ball"': "joints[0]: Scene.join('ball'): at is missing",
    ARM
    + 'kind = "slider"\naxis = [0, 0, 1]\nmotor = { spin = 1 }': "joints[0].motor: Scene.motor: joint 0 is a slider",
    ARM.replace('"arm"\n', '"world"\n', 1) + 'kind = "weld"': "bodies[0].name = 'world': is taken",
    BALL + "[scene]\ngravity = [0, 0]": "scene.gravity = [0, 0]: needs 3 entries, has 2",
    BALL + "[scene]\ngravity = [0, 0, inf]": "scene.gravity[2] = inf: must be a finite number",
    BALL + "[scene]\nperiodic = [true, false, false]": "scene.periodic: needs scene.world",
    BALL
    + "[scene]\nworld = [[0,0,1],[1,1,0]]": "scene.world = [[0.0, 0.0, 1.0], [1.0, 1.0, 0.0]]: the first corner must",
    BALL.replace("position = [0, 0, 0.5]", ""): "bodies[0].position: is missing; position is the place of the centre",
    BALL.replace('"sphere"', '"spere"'): "bodies[0].kind = 'spere': unknown kind; did you mean 'sphere'?",
    BALL + 'material = "rok"\n[materials.rock]': "bodies[0].material = 'rok': unknown material; did you mean 'rock'?",
    BALL + "[materials.a]\n[materials.b]": "bodies[0].material: is missing; choose one of a, b",
    "[materials.rock]\nfriction = -0.1\n" + BALL: "materials.rock.friction = -0.1: must be >= 0",
    "[materials.rock]\npoison = 0.3\n" + BALL: "materials.rock.poison: unknown key; did you mean 'poisson'?",
    BALL + "[[walls]]\nradius = 1": "walls[0].kind: is missing; choose one of plane, cylinder, cone, quad, mesh",
    BALL + '[[walls]]\nkind = "mesh"\nfile = "no.stl"': "walls[0].file = 'no.stl': no such file in ",
    BALL + '[[walls]]\nkind = "mesh"\nfile = "scene.toml"': "walls[0].file = 'scene.toml': cannot be read as a mesh",
    BALL + '[[walls]]\nkind = "plane"\nnormal = [0, 0, 0]': "walls[0].normal: ",
    BALL + '[[walls]]\nkind = "plane"\noscillation = { amplitude = [0, 0, 1], frequenzy = 1 }': (
        "walls[0].oscillation.frequenzy: unknown key; did you mean 'frequency'?"
    ),
    BALL + '[[walls]]\nkind = "plane"\noscillation = { amplitude = [0, 0, 1], frequency = 0 }': (
        "walls[0].oscillation.frequency = 0: must be > 0; frequency is the frequency [Hz]"
    ),
    BALL.replace('"sphere"\nradius = 0.01', '"clump"\ncentres = [[0, 0, 0]]\nradii = [1, 1]'): (
        "bodies[0].radii = [1.0, 1.0]: needs one radius for each of the 1 centres"
    ),
    EGG.replace("axes = [0.03, 0.02, 0.01]", ""): (
        "bodies[0].axes: is missing; axes is the three half-axes [m] along x, y, z of the body, for example axes = [0.005"
    ),
    EGG.replace("0.02, ", ""): "bodies[0].axes = [0.03, 0.01]: needs 3 entries, has 2; axes is the three half-axes",
    EGG.replace("0.02", "-0.02"): "bodies[0].axes[1] = -0.02: must be > 0; axes is the three half-axes",
    EGG.replace("0.02", "nan"): "bodies[0].axes[1] = nan: must be ",
    EGG.replace("axes", "axis"): "bodies[0].axis: unknown key; did you mean 'axes'?",
    EGG.replace("axes = [0.03, 0.02, 0.01]", "axes = 0.03"): "bodies[0].axes = 0.03: must be a list",
    EGG + "radius = 0.01": "bodies[0].radius: unknown key; ",
    EGG.replace('"ellipsoid"', '"elipsoid"'): "bodies[0].kind = 'elipsoid': unknown kind; did you mean 'ellipsoid'?",
    ROCK.replace(
        "14", "3"
    ): "bodies[0].faces = 3: must be >= 4; faces is the number of faces of a random rock, for example",
    ROCK.replace(
        "faces = 14", ""
    ): "bodies[0]: says nothing about its shape; a polyhedron needs exactly one of points, ",
    ROCK
    + "edges = [1, 1, 1]": "bodies[0]: has edges and faces; a polyhedron needs exactly one of points, edges, solid, ",
    ROCK.replace("radius = 0.02", ""): "bodies[0].radius: is missing; faces needs the radius of the ball around it",
    ROCK.replace(
        "faces = 14", "edges = [1, 1, 1]"
    ): "bodies[0].radius = 0.02: goes with solid, not with edges; leave it out",
    ROCK.replace("faces = 14", 'solid = "cub"'): "bodies[0].solid: unknown regular solid 'cub'; did you mean 'cube'?",
    ROCK.replace("faces = 14", 'solid = "cube"')
    + "variant = 2": "bodies[0].variant = 2: goes with faces, not with solid",
    ROCK.replace("faces = 14\nradius = 0.02", "points = [[0, 0, 0], [1, 0, 0], [0, 1, 0], [1, 1, 0]]"): (
        "bodies[0].points: the points of a polyhedron all lie in a plane"
    ),
    ROCK.replace("faces = 14\nradius = 0.02", 'file = "no.stl"'): "bodies[0].file = 'no.stl': no such file in ",
    ROCK.replace("faces = 14\nradius = 0.02", 'file = "scene.toml"'): (
        "bodies[0].file = 'scene.toml': cannot be read as a polyhedron: "
    ),
    LUMP.replace(
        "points = 14", ""
    ): "bodies[0]: says nothing about its shape; a mesh needs exactly one of file, points, ",
    LUMP.replace("radius = 0.02", ""): "bodies[0].radius: is missing; points needs the radius of the ball around it",
    LUMP.replace("14", "3"): "bodies[0].points = 3: must be >= 4; points is the number of corners of a random lump",
    LUMP + "triangles = [[0, 1, 2]]": "bodies[0].triangles = [[0, 1, 2]]: goes with vertices, not with points",
    LUMP + "epsilon = 1": "bodies[0].points: epsilon=1 m is too thick a halo",
    LUMP.replace("points = 14\nradius = 0.02", 'file = "scene.toml"'): (
        "bodies[0].file = 'scene.toml': cannot be read as a mesh: "
    ),
    LUMP.replace(
        "points = 14\nradius = 0.02", "vertices = [[0, 0, 0]]"
    ): "bodies[0].triangles: is missing; vertices need",
    FILL.replace("5", "0"): "fill[0].count = 0: must be >= 1",
    FILL.replace("5", "2.5"): "fill[0].count = 2.5: must be a whole number",
    FILL + "scale = [2, 1]": "fill[0].scale = [2.0, 1.0]: the first number must not be above the second",
    FILL + "scale = [1, -1]": "fill[0].scale[1] = -1: must be > 0",
    FILL.replace("0.01", "2.0"): "fill[0]: ",
    BALL
    + "[[inlet]]\nradius = 0.01\nbox = [[0,0,0],[1,1,1]]\nrate = 1\nstart = 2\nstop = 1": "inlet[0].stop = 1.0: must",
    BALL + "[[outlet]]": "outlet[0].box: is missing",
    BALL + "[outlet]\nbox = 1": "outlet = {'box': 1}: must be a list of tables; write [[outlet]] with two brackets",
    BALL + '[[pairs]]\nbetween = ["a", "b"]\nfriction = 1': "pairs[0].between[0].material = 'a': unknown material",
    BALL + "[materials]\nrock = 3": "materials.rock = 3: must be a table",
    "scene = 3\n" + BALL: "scene = 3: must be a table",
    "walls = [3]\n" + BALL: "walls[0] = 3: must be a table",
    "": "bodies: there is nothing that moves; add [[bodies]], [[fill]] or [[inlet]]",
    "[scene]\ngravity = \n": "not valid TOML: Invalid value (at line 2, column 11)",
    "a = " + "[" * 5000: "",
}


@pytest.mark.parametrize(("text", "line"), FAULTS.items(), ids=[line[:40] or "nesting" for line in FAULTS.values()])
def test_each_fault_is_one_line_with_file_key_value_and_what_to_do(load, tmp_path, text, line):
    with pytest.raises(SceneError) as caught:
        load(text)
    message = str(caught.value)
    assert message.startswith(f"{tmp_path / 'scene.toml'}: {line}")
    assert "\n" not in message
    assert len(message) < 400 + len(str(tmp_path))


def test_files_that_cannot_be_read_are_named(tmp_path):
    with pytest.raises(SceneError, match=r"none\.toml: no such file"):
        scenefile.load(tmp_path / "none.toml")
    with pytest.raises(SceneError, match="is a folder"):
        scenefile.load(tmp_path)
    (tmp_path / "latin.toml").write_bytes(b'a = "\xff"')
    with pytest.raises(SceneError, match=r"not text in UTF-8 \(byte 5\)"):
        scenefile.load(tmp_path / "latin.toml")


def test_bodies_that_start_inside_each_other_are_named_with_their_depth(load):
    near = BALL + BALL.replace("0.5]", "0.516]")  # 4 mm deep, 40 % of the radius
    ready = load(near)
    with pytest.raises(SceneError) as caught:
        ready.simulation()
    message = str(caught.value)
    assert "scene.toml: bodies 0 (bodies[0]) and 1 (bodies[1]) overlap by 0.004 m at the start, 40 %" in message
    assert "\n" not in message
    load(near + "[run]\noverlap_limit = 0.5\ndt = 1e-5").simulation()


def test_ellipsoids_that_start_inside_each_other_are_measured_by_their_smallest_half_axis(load):
    # Flat sides 1 mm deep in each other along z, where the half-axes are 10 and 20 mm: 10 %.
    near = EGG + EGG.replace("0.5]", "0.529]") + "scale = 2\n"
    with pytest.raises(
        SceneError, match=r"and 1 \(bodies\[1\]\) overlap by 0\.001 m at the start, 10 % of the smaller"
    ):
        load(near).simulation()
    with pytest.raises(SceneError, match=r"overlap by 0\.005 m at the start, 50 % of the smaller"):
        load('[[walls]]\nkind = "plane"\n' + EGG.replace("0.5]", "0.005]")).simulation()
    load(near + "[run]\noverlap_limit = 0.11\ndt = 1e-5").simulation()


def test_a_body_inside_a_wall_is_found_and_touching_is_allowed(load):
    floor = '[[walls]]\nkind = "plane"\n'
    with pytest.raises(SceneError, match=r"bodies 0 \(walls\[0\]\) and 1 \(bodies\[0\]\) overlap by 0.005 m"):
        load(floor + BALL.replace("0.5]", "0.005]")).simulation()
    load(floor + BALL.replace("0.5]", "0.0099]") + "[run]\ndt = 1e-5").simulation()


def test_a_scene_file_reads_below_its_own_folder_only(tmp_path):
    inner = tmp_path / "inner"
    inner.mkdir()
    cube = (Path(__file__).parents[1] / "data" / "meshes" / "cup.obj").read_bytes()
    (tmp_path / "cup.obj").write_bytes(cube)
    (inner / "link.obj").symlink_to(tmp_path / "cup.obj")
    for name in ("../cup.obj", str(tmp_path / "cup.obj"), "link.obj", "../../../../etc/hosts", "../nowhere.obj"):
        (inner / "scene.toml").write_text(BALL + f'[[walls]]\nkind = "mesh"\nfile = "{name}"\n')
        with pytest.raises(SceneError, match=r"walls\[0\]\.file = .*outside the folder of the scene file.*--outside"):
            scenefile.load(inner / "scene.toml")
        if name.endswith(("cup.obj", "link.obj")):
            assert len(scenefile.load(inner / "scene.toml", outside=True).scene.bodies.number) == 2
    for name in ("x\\u0000y", "a" * 5000):
        (inner / "scene.toml").write_text(BALL + f'[[walls]]\nkind = "mesh"\nfile = "{name}"\n')
        with pytest.raises(SceneError, match="no such file"):
            scenefile.load(inner / "scene.toml")

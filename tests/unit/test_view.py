"""Pictures: the right things are seen, from the right side, and missing packages are named."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import clast
from clast import errors, tables
from clast.files.trajectory import Trajectory

pytest.importorskip("pyvista")
Image = pytest.importorskip("PIL.Image")
view = pytest.importorskip("clast.view")
colours, drawing, stages = (pytest.importorskip(f"clast.view.{name}") for name in ("colours", "drawing", "stage"))

SMALL = {"size": (200, 150), "quality": 0}


def drum(count=40, axis=(0.0, 1.0, 0.0)):
    """Columns and tables of spheres in the lower half of a hollow cylinder about `axis`, radius 1 m, length 1 m."""
    random = np.random.default_rng(1)
    angle, away = random.uniform(np.pi, 2.0 * np.pi, count), random.uniform(0.2, 0.9, count)
    position = np.stack([away * np.cos(angle), random.uniform(-0.4, 0.4, count), away * np.sin(angle)], axis=1)
    rows = count + 1
    columns = {
        "number": np.arange(rows),
        "position": np.vstack([position, np.zeros(3)]),
        "orientation": np.tile([1.0, 0.0, 0.0, 0.0], (rows, 1)),
        "velocity": np.zeros((rows, 3)),
        "spin": np.zeros((rows, 3)),
        "scale": np.append(np.full(count, 0.08), 1.0),
        "mold": np.append(np.zeros(count, np.int32), np.int32(1)),
        "material": np.zeros(rows, np.int32),
        "motion": np.append(np.zeros(count, np.int8), np.int8(tables.DRIVEN)),
    }
    parts = {
        "kind": np.array([tables.SPHERE, tables.CYLINDER], np.int8),
        "offset": np.zeros((2, 3)),
        "turn": np.tile([1.0, 0.0, 0.0, 0.0], (2, 1)),
        "power": np.zeros((2, 2)),
        "axis": np.array([(0.0, 0.0, 0.0), axis]),
        "size": np.array([[1.0, 0.0, 0.0], [1.0, 0.5, 1.0]]),
        "feature": np.full(2, -1, np.int32),
    }
    molds = {"first": np.array([0, 1]), "count": np.array([1, 1])}
    meshes = {"vertex": np.zeros((0, 3)), "triangle": np.zeros((0, 3), np.int32)}
    return columns, {"molds": molds, "parts": parts, "meshes": meshes}


def projected(points, camera, size):
    """Where points (n,3) come to lie in the picture, from -1 to 1 in both directions."""
    eye, target, up = (np.asarray(row, dtype=float) for row in camera)
    out = (eye - target) / np.linalg.norm(eye - target)
    right = np.cross(up, out)
    right /= np.linalg.norm(right)
    ahead = (eye - points) @ out
    slope = np.tan(np.radians(stages.VIEW_ANGLE) / 2.0)
    x = (points - eye) @ right / ahead / slope / (size[0] / size[1])
    return np.stack([x, (points - eye) @ np.cross(out, right) / ahead / slope], axis=1)


def write_run(folder, frames=3):
    columns, groups = drum()
    with Trajectory(folder / "trajectory.h5", "w") as run:
        run.header(groups)
        for k in range(frames):
            moved = columns | {"velocity": np.full((41, 3), 0.1 * k), "position": columns["position"] * (1.0 - 0.1 * k)}
            run.append(0.1 * k, k, moved)


def test_a_picture_shows_spheres_in_their_colour(tmp_path):
    columns, groups = drum()
    path = view.render(columns, tmp_path / "new" / "a.png", tables=groups, colour=None, **SMALL)
    with Image.open(path) as shot:
        pixels = np.asarray(shot.convert("RGB"), dtype=int)
    assert pixels.shape == (150, 200, 3)
    sand = pixels[..., 0] - pixels[..., 2] > 30
    assert 0.02 < sand.mean() < 0.5
    rows = np.flatnonzero(sand.any(axis=1))
    assert rows.min() > 50, "the spheres lie in the lower half of the drum"
    assert np.all(pixels[0, 0] > 220), "the background is light"


def test_the_best_quality_works_too(tmp_path):
    columns, groups = drum()
    path = view.render(columns, tmp_path / "a.jpg", tables=groups, size=(120, 90), colour="number", label="t = 1 s")
    with Image.open(path) as shot:
        assert shot.size == (120, 90)


@pytest.mark.parametrize("axis", [(0.0, 1.0, 0.0), (1.0, 0.0, 0.0), (0.0, 0.0, 1.0)])
@pytest.mark.parametrize("size", [(800, 600), (400, 900)])
def test_the_camera_sees_everything_and_wastes_little(axis, size):
    stage = stages.Stage.of(*drum(axis=axis))
    camera = stages.camera(stage, size)
    seen = np.abs(projected(np.vstack([stage.centre, stage.walls[0].vertices]), camera, size))
    assert 0.75 < seen.max() < 1.0
    toward = np.subtract(camera[0], camera[1])
    along = abs(toward @ axis) / np.linalg.norm(toward)
    assert toward[2] > 0.0
    if axis[2] == 0.0:
        assert along > 0.9, "a drum is seen along its axis"
    else:
        assert along < 0.7


def test_one_lost_particle_does_not_shrink_the_picture():
    columns, groups = drum(count=400)
    before = stages.camera(stages.Stage.of(columns, groups), (800, 600))
    columns["position"][0] = (0.0, 0.0, -1e6)
    after = stages.camera(stages.Stage.of(columns, groups), (800, 600))
    assert np.linalg.norm(np.subtract(before[0], after[0])) < 0.2


def test_a_gate_that_slid_away_does_not_shrink_the_picture():
    def seen_from(x):
        scene = clast.Scene()
        scene.add(clast.Sphere(0.1), position=[(i % 5 * 0.2, i // 5 * 0.2, 0.1) for i in range(25)])
        scene.add(clast.Quad([(0, 0, 0), (1, 0, 0), (1, 1, 0), (0, 1, 0)]), position=(x, 0.0, 0.0))
        return stages.camera(stages.Stage.of(scene, None), (800, 600))

    def distance(camera):
        return np.linalg.norm(np.subtract(camera[0], camera[1]))

    beside, gone = distance(seen_from(1.0)), distance(seen_from(1.5))
    assert gone < 0.8 * beside
    assert gone <= distance(seen_from(0.0))


def test_a_camera_that_stays_sees_the_first_and_the_middle_frame_too():
    columns, groups = drum(count=50)
    run = [{**columns, "position": columns["position"] + (0.0, 0.0, z)} for z in (6.0, 3.0, 0.0)]
    camera = stages.camera(stages.over_time(run, groups), (800, 600))
    for moment in run:  # particles, and the drum that moves with them
        stage = stages.Stage.of(moment, groups)
        assert np.abs(projected(stage.centre, camera, (800, 600))).max() < 1.0
        assert np.abs(projected(stage.walls[0].vertices, camera, (800, 600))).max() < 1.0


def test_only_walls_between_eye_and_particles_become_glass():
    stage = stages.Stage.of(*drum(axis=(0.0, 0.0, 1.0)))
    (wall,) = stage.walls
    eye = np.array([0.0, -10.0, 1.0])
    front = drawing.hiding(stage, wall, eye)
    middle = wall.vertices[wall.triangles].mean(axis=1)
    assert front[middle[:, 1] < -0.9].all() and not front[middle[:, 1] > 0.0].any()
    lying = stages.Stage.of(*drum())
    assert not drawing.hiding(lying, lying.walls[0], eye).any(), "the open end hides nothing"


def test_planes_are_drawn_only_as_floors_and_only_as_large_as_the_scene():
    columns, groups = drum()
    groups["parts"] |= {
        "kind": np.array([tables.SPHERE, tables.PLANE], np.int8),
        "axis": np.array([[0, 0, 0], [0, 0, 1.0]]),
    }
    (floor,) = stages.Stage.of(columns, groups).walls
    assert np.ptp(floor.vertices[:, 2]) == pytest.approx(0.0, abs=1e-12) and floor.radius < 3.0
    groups["parts"]["axis"][1] = (1.0, 0.0, 0.0)
    assert stages.Stage.of(columns, groups).walls == []


def test_colours_follow_the_field_and_stay_in_range():
    stage = stages.Stage.of(*drum())
    ends = np.array([colours.rgb(colours.RAMP[0]), colours.rgb(colours.RAMP[-1])])
    paint, (low, high, title) = colours.paint(stage, "number")
    assert (low, high, title) == (0.0, 39.0, "number")
    np.testing.assert_array_equal(paint[[0, -1]], ends)
    paint, _ = colours.paint(stage, "number", (10.0, 20.0))
    np.testing.assert_array_equal(paint[[5, -5]], ends)
    assert colours.paint(stage, "size")[1][2] == "radius [mm]"
    with pytest.raises(ValueError, match="did you mean 'speed'"):
        colours.paint(stage, "sped")


def gravel(axes, orientation=(1.0, 0.0, 0.0, 0.0)):
    """A scene with one ellipsoid at the origin."""
    scene = clast.Scene()
    scene.add(clast.Ellipsoid(*axes), position=(0.0, 0.0, 0.0), orientation=orientation)
    return scene


FRONT = ((0.0, -30.0, 0.0), (0.0, 0.0, 0.0), (0.0, 0.0, 1.0))  # x to the right, z up


def outline(path, scene):
    """Half widths in pixels of what is drawn in sand, and the mask itself."""
    with Image.open(view.render(scene, path, size=(300, 300), colour=None, camera=FRONT, quality=0)) as shot:
        pixels = np.asarray(shot.convert("RGB"), dtype=int)
    sand = pixels[..., 0] - pixels[..., 2] > 12
    rows, columns = np.nonzero(sand)
    return 0.5 * (np.ptp(columns) + 1), 0.5 * (np.ptp(rows) + 1), sand


@pytest.mark.parametrize(("axes", "angle"), [((4.0, 1.0, 2.0), 0.0), ((4.0, 1.0, 2.0), 0.6), ((0.4, 1.0, 5.0), 2.0)])
def test_a_picture_shows_the_true_outline_of_an_ellipsoid(tmp_path, axes, angle):
    turn = (np.cos(angle / 2), 0.0, np.sin(angle / 2), 0.0)  # about y, along which the eye looks
    wide, high, sand = outline(tmp_path / "a.png", gravel(axes, turn))
    scale = 150.0 / np.tan(np.radians(stages.VIEW_ANGLE) / 2.0) / 30.0  # pixels per metre in the plane of the centre
    a, c = axes[0], axes[2]
    assert wide / scale == pytest.approx(np.hypot(a * np.cos(angle), c * np.sin(angle)), abs=2.0 / scale)
    assert high / scale == pytest.approx(np.hypot(a * np.sin(angle), c * np.cos(angle)), abs=2.0 / scale)
    # Inside its outline everything is filled, outside nothing.
    row, column = np.indices(sand.shape)
    x, z = (column - 149.5) / scale, (149.5 - row) / scale
    u, w = np.cos(angle) * x - np.sin(angle) * z, np.sin(angle) * x + np.cos(angle) * z
    away = (u / (a + 1.5 / scale)) ** 2 + (w / (c + 1.5 / scale)) ** 2
    assert not sand[away > 1.0].any()
    if min(a, c) > 3.0 / scale:
        assert sand[(u / (a - 2.0 / scale)) ** 2 + (w / (c - 2.0 / scale)) ** 2 < 1.0].all()


def test_ellipsoids_with_equal_axes_look_like_spheres(tmp_path):
    ball = clast.Scene()
    ball.add(clast.Sphere(3.0), position=(0.0, 0.0, 0.0))
    paths = [tmp_path / "ball.png", tmp_path / "egg.png"]
    for path, scene in zip(paths, (ball, gravel((3.0, 3.0, 3.0 * (1.0 + 1e-9)))), strict=True):
        view.render(scene, path, size=(300, 300), colour="size", limits=(0.0, 1.0), camera=FRONT, quality=0)
    one, other = (np.asarray(Image.open(path).convert("RGB"), dtype=int) for path in paths)
    assert np.mean(np.abs(one - other)) < 0.5, "light falls on both in the same way"


def test_facets_of_ellipsoids_grow_with_their_size_in_the_picture(monkeypatch):
    scene = clast.Scene()
    distance = np.array([10.0, 100.0, 1000.0])
    scene.add(clast.Ellipsoid(1.0, 0.9, 0.8), position=np.outer(distance, [0.0, 1.0, 0.0]))
    scene.add(clast.Sphere(1.0), position=(0.0, -3.0, 0.0))
    drawn = {}
    monkeypatch.setattr(drawing, "_add_ellipsoids", lambda c, s, rows, p, level: drawn.update({level: rows.tolist()}))
    monkeypatch.setattr(drawing, "_add_balls", lambda canvas, centre, radius, paint: drawn.update(ball=len(centre)))
    stage = stages.Stage.of(scene, None)
    drawing.add_particles(None, stage, np.zeros((4, 3), np.uint8), np.zeros(3), 1200)
    assert drawn == {"ball": 1, 4: [0], 2: [1], 1: [2]}


def test_size_of_an_ellipsoid_is_the_radius_of_the_ball_of_its_volume():
    stage = stages.Stage.of(gravel((0.008, 0.001, 0.001)), None)
    assert stage.size.tolist() == pytest.approx([0.002]) and stage.radius.tolist() == [0.008]
    assert not stage.ball.any() and stage.axes.tolist() == [[0.008, 0.001, 0.001]]


def test_a_picture_shows_a_box_with_flat_sides(tmp_path):
    scene = clast.Scene()
    eighth = (np.cos(np.pi / 8), 0.0, 0.0, np.sin(np.pi / 8))  # 45 degrees about z: an edge looks at the eye
    scene.add(clast.Polyhedron.box(4.0, 4.0, 3.0), position=(0.0, 0.0, 0.0), orientation=eighth)
    path = tmp_path / "a.png"
    wide, high, sand = outline(path, scene)
    scale = 150.0 / np.tan(np.radians(stages.VIEW_ANGLE) / 2.0)  # pixels at distance 1 m
    assert wide == pytest.approx(scale * 2.0 * np.sqrt(2.0) / 30.0, abs=2.0)
    assert high == pytest.approx(scale * 1.5 / (30.0 - 2.0 * np.sqrt(2.0)), abs=2.0), "the front edge is the nearest"
    pixels = np.asarray(Image.open(path).convert("RGB"), dtype=int)
    left, right = pixels[125:175, 95:140].reshape(-1, 3), pixels[125:175, 160:205].reshape(-1, 3)
    assert np.ptp(left, axis=0).max() <= 12 and np.ptp(right, axis=0).max() <= 12, "one shade a side"
    assert left.mean() - right.mean() > 20, "light comes from the left"
    assert sand[150, 92:208].all()


def test_polyhedra_and_meshes_of_a_run_are_drawn_beside_other_particles(tmp_path, monkeypatch):
    scene = clast.Scene()
    rock = clast.Polyhedron.random(faces=9, seed=1)
    scene.add(rock, position=[[0, 0, 0], [3, 0, 0]], scale=[1.0, 0.5])
    scene.add(clast.Sphere(1.0), position=(6.0, 0.0, 0.0))
    scene.add(clast.Ellipsoid(1.0, 0.5, 0.5), position=(9.0, 0.0, 0.0))
    lump = clast.Mesh.random(31, seed=1)
    scene.add(lump, position=(12.0, 0.0, 0.0), scale=0.5)
    groups, _ = scene.describe()
    with Trajectory(tmp_path / "trajectory.h5", "w") as run:
        run.append(0.0, 0, scene.bodies)
        run.header({name: groups[name] for name in ("molds", "parts", "meshes", "hulls", "surfaces")})
    with Trajectory(tmp_path / "trajectory.h5") as run:
        stage = stages.Stage.of(run[0], run.groups)
    assert stage.ball.tolist() == [False, False, True, False, False] and stage.hull.tolist() == [0, 0, -1, -1, -1]
    assert stage.surface.tolist() == [-1, -1, -1, -1, 0]
    np.testing.assert_allclose(stage.radius, [1.0, 0.5, 1.0, 1.0, 0.5], rtol=1e-12)
    np.testing.assert_allclose(stage.size[:2], rock.hull.ball * [1.0, 0.5], rtol=1e-12)
    assert stage.size[4] == pytest.approx(0.5 * lump.triangulation.ball[0])
    drawn = []
    monkeypatch.setattr(
        drawing, "_add_faces", lambda canvas, faces, paint: drawn.append(np.bincount(faces.owner).tolist())
    )
    monkeypatch.setattr(drawing, "_add_ellipsoids", lambda c, s, rows, p, level: drawn.append(rows.tolist()))
    monkeypatch.setattr(drawing, "_add_balls", lambda canvas, centre, radius, paint: drawn.append(len(centre)))
    drawing.add_particles(None, stage, np.zeros((5, 3), np.uint8), np.array([0.0, -30.0, 0.0]), 300)
    assert drawn == [1, [9, 9], [58], [3]]
    monkeypatch.undo()
    with Image.open(view.picture(tmp_path, **SMALL)) as shot:
        assert np.asarray(shot.convert("RGB")).std() > 5.0


@pytest.mark.parametrize(("low", "high"), [(0.0, 1.0), (0.0, 0.7), (1.3, 2.2), (0.0, 1e-6), (-5.0, 12345.0)])
def test_ticks_are_few_and_round(low, high):
    ticks = colours.ticks(low, high)
    assert 2 <= len(ticks) <= 7 and ticks[0] >= low - 1e-9 * high and ticks[-1] <= high * (1.0 + 1e-9)


def test_a_run_becomes_a_picture_and_a_movie(tmp_path):
    write_run(tmp_path)
    assert view.picture(tmp_path, **SMALL) == tmp_path / "picture.png"
    with Image.open(tmp_path / "picture.png") as shot:
        assert shot.size == (200, 150)
    path = view.movie(tmp_path, tmp_path / "a.gif", rate=10.0, **SMALL)
    with Image.open(path) as gif:
        assert gif.n_frames == 3 and gif.size == (200, 150) and gif.info["duration"] == 100


def test_an_empty_scene_and_an_empty_run(tmp_path):
    columns, groups = drum(count=0)
    view.render(columns, tmp_path / "a.png", tables=groups, **SMALL)
    view.render(columns, tmp_path / "a.png", tables=groups, walls=False, **SMALL)
    with pytest.raises(FileNotFoundError, match="no trajectory"):
        view.picture(tmp_path)
    write_run(tmp_path, frames=0)
    with pytest.raises(ValueError, match="no frames yet"):
        view.picture(tmp_path)


def test_what_is_missing_is_named_with_its_cure(tmp_path, monkeypatch):
    write_run(tmp_path)
    monkeypatch.setitem(sys.modules, "imageio_ffmpeg", None)
    with pytest.raises(errors.Unavailable, match="pip install imageio-ffmpeg"):
        view.movie(tmp_path, tmp_path / "a.mp4")
    with pytest.raises(ValueError, match="movie format"):
        view.movie(tmp_path, tmp_path / "a.avi")
    columns, _ = drum()
    with pytest.raises(TypeError, match="tables="):
        view.render(columns, tmp_path / "a.png")
    monkeypatch.setitem(sys.modules, "pyvista", None)
    with pytest.raises(errors.Unavailable, match=r"pip install 'clast\[view\]'"):
        view.picture(tmp_path)


def picture_elsewhere(folder, **settings):
    """Make a picture in a fresh process with other environment variables."""
    program = "import sys; from clast import view; view.picture(sys.argv[1], size=(60, 40))"
    settings = os.environ | {"PYTHONPATH": str(Path(view.__file__).parents[2])} | settings
    return subprocess.run(
        [sys.executable, "-c", program, str(folder)], env=settings, capture_output=True, text=True, check=False
    )


def test_no_chatter_about_a_missing_display(tmp_path):
    write_run(tmp_path)
    done = picture_elsewhere(tmp_path, DISPLAY="")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_without_opengl_there_is_an_error_and_not_a_crash(tmp_path):
    write_run(tmp_path)
    done = picture_elsewhere(tmp_path, DISPLAY="", __EGL_VENDOR_LIBRARY_DIRS="/nonexistent")
    # Where OSMesa or another renderer is found all the same, the picture is made.
    assert done.returncode == 0 or "Unavailable: no OpenGL" in done.stderr, done.stderr


# Cuts, arrows, views and movies.


def test_a_cut_leaves_one_side_and_walls():
    columns, groups = drum()
    stage = stages.Stage.of(columns, groups)
    left = stage.kept([((0.1, 0, 0), (1, 0, 0))])
    assert 0 < len(left.centre) < 40 and (left.centre[:, 0] <= 0.1).all() and len(left.walls) == len(stage.walls)
    assert len(stage.kept([((0.1, 0, 0), (1, 0, 0)), ((0.1, 0, 0), (-1, 0, 0))]).centre) == 0


def test_arrows_point_along_what_they_show():
    columns, groups = drum(count=3)
    columns["velocity"] = np.array([(1.0, 0, 0), (0, 2.0, 0), (0, 0, 0), (9, 9, 9.0)])
    stage = stages.Stage.of(columns, groups)
    start, vector = drawing.arrows_of(stage, "velocity")
    assert np.array_equal(start, columns["position"][:3]) and np.array_equal(vector, columns["velocity"][:3])
    with pytest.raises(ValueError, match="contacts of this moment are not known"):
        drawing.arrows_of(stage, "force")
    touching = {"pair": np.array([(0, 1), (1, 3)]), "force": np.array([(1.0, 0, 0), (0, 5.0, 0)])}
    _, force = drawing.arrows_of(stage._replace(contacts=touching), "force")
    assert force.tolist() == [[-1, 0, 0], [1, -5, 0], [0, 0, 0]]
    with pytest.raises(ValueError, match="unknown arrows 'velocty'; did you mean 'velocity'"):
        drawing.arrows_of(stage, "velocty")


def test_arrows_are_seen(tmp_path):
    columns, groups = drum(count=5)
    columns["velocity"] = np.tile([0.0, 0.0, 3.0], (6, 1))
    dark = []
    for arrows in (None, "velocity"):
        shot = view.render(columns, None, tables=groups, colour=None, arrows=arrows, walls=False, **SMALL)
        dark.append(int((np.asarray(shot.convert("RGB")).max(axis=2) < 70).sum()))
    assert dark[1] > dark[0] + 100


@pytest.mark.parametrize(("name", "out"), [("front", (0, -1, 0)), ("right", (1, 0, 0)), ("top", (0, 0, 1))])
def test_views_by_name(name, out):
    eye, target, up = stages.camera(stages.Stage.of(*drum()), (200, 150), name)
    assert (eye - target) / np.linalg.norm(eye - target) == pytest.approx(np.array(out, float)) and abs(
        np.dot(up, out)
    ) < 1e-9
    assert np.abs(projected(drum()[0]["position"][:-1], (eye, target, up), (200, 150))).max() < 1.0


def test_colours_of_columns_and_contacts():
    columns, groups = drum(count=3)
    columns["velocity"] = np.array([(3.0, 4.0, 0), (0, -2.0, 0), (0, 0, 0), (0, 0, 0)])
    touching = {
        "pair": np.array([(0, 1), (0, 1), (1, 3)]),
        "force": np.array([(3.0, 4.0, 0), (0, 1.0, 0), (0, 0, 2.0)]),
    }
    stage = stages.Stage.of(columns, groups)._replace(contacts=touching)
    expected = {
        "speed": [5, 2, 0],
        "velocity": [5, 2, 0],
        "velocity_y": [4, -2, 0],
        "force": [6, 8, 0],
        "coordination": [1, 2, 0],
    }
    for name, numbers in expected.items():
        assert colours.values(stage, name)[0].tolist() == numbers
    assert colours.title("velocity_y") == "velocity y [m/s]" and colours.title("coordination") == "coordination number"
    with pytest.raises(ValueError, match="unknown colour 'velocty'; did you mean 'velocity'"):
        colours.values(stage, "velocty")


@pytest.mark.parametrize("suffix", [".gif", ".mp4"])
def test_movies_have_every_frame_and_tell_how_far_they_are(tmp_path, suffix):
    if suffix == ".mp4":
        pytest.importorskip("imageio_ffmpeg")
    write_run(tmp_path, frames=5)
    told = []
    path = view.movie(tmp_path, tmp_path / f"a{suffix}", every=2, progress=lambda *counts: told.append(counts), **SMALL)
    assert told == [(1, 3), (2, 3), (3, 3)]
    if suffix == ".gif":
        with Image.open(path) as shot:
            assert shot.n_frames == 3 and shot.size == (200, 150)
    else:
        import imageio_ffmpeg

        count, _ = imageio_ffmpeg.count_frames_and_secs(str(path))
        assert count == 3


def test_the_command_takes_views_cuts_and_sizes(tmp_path, capsys):
    from clast import cli

    write_run(tmp_path)
    (tmp_path / "report.json").unlink(missing_ok=True)
    out = str(tmp_path / "b.png")
    asked = [
        "render",
        str(tmp_path),
        "--picture",
        out,
        "--view",
        "top",
        "--cut",
        "x<0.2",
        "--cut",
        "z>-5e-1",
        "--size",
        "120x90",
    ]
    assert cli.answer([*asked, "--arrows", "velocity", "--frame", "1"]) == 0
    with Image.open(out) as shot:
        assert shot.size == (120, 90)
    for wrong, words in (
        (["--cut", "x=2"], "must be like 'x<0.1'"),
        (["--size", "big"], "must be like 960x720"),
        (["--view", "tp"], "did you mean 'top'"),
        (["--frame", "77"], "frame 77"),
    ):
        assert cli.answer(["render", str(tmp_path), "--picture", out, *wrong]) in (1, 2), wrong
        assert words in capsys.readouterr().err

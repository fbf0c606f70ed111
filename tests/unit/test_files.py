"""Checkpoints survive crashes, trajectories survive kills, and other programs read what is written."""

import csv
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import h5py
import numpy as np
import pytest

import clast
from clast import errors, files, tables
from clast.files import checkpoint, disk, trajectory, vtk
from clast.scene.stacking import empty_hulls, empty_surfaces

GROUPS = {
    "bodies": {
        "position": np.linspace(0.0, 1.0, 30).reshape(10, 3),
        "number": np.arange(10),
        "motion": np.zeros(10, np.int8),
        "round": np.ones(10, bool),
    },
    "contacts": {"pair": np.zeros((0, 2), np.int64)},
    "empty": {},
}
ATTRIBUTES = {"time": 0.1 + 0.2, "steps": np.int64(7), "law": "hertz", "limit": float("inf"), "box": [[0, 1], None]}


def assert_same(found, expected):
    assert found.keys() == expected.keys()
    for group in expected:
        assert found[group].keys() == expected[group].keys()
        for name, column in expected[group].items():
            assert found[group][name].dtype == column.dtype
            np.testing.assert_array_equal(found[group][name], column)


def test_a_checkpoint_comes_back_bit_for_bit(tmp_path):
    path = tmp_path / "checkpoint.h5"
    checkpoint.write(path, GROUPS, ATTRIBUTES)
    groups, attributes = checkpoint.read(path)
    assert_same(groups, GROUPS)
    assert attributes == ATTRIBUTES
    assert [entry.name for entry in tmp_path.iterdir()] == ["checkpoint.h5"]


def test_named_tuples_and_slices_with_gaps_can_be_stored(tmp_path):
    table = filled(tables.Molds, 4, first=np.arange(8)[::2], inertia=np.arange(36.0).reshape(3, 3, 4).T)
    checkpoint.write(tmp_path / "c.h5", {"molds": table}, {})
    assert_same(checkpoint.read(tmp_path / "c.h5")[0], {"molds": table._asdict()})


def test_the_checkpoint_before_is_kept(tmp_path):
    path = tmp_path / "checkpoint.h5"
    for k in range(3):
        checkpoint.write(path, GROUPS, {"k": k})
    assert checkpoint.read(path)[1] == {"k": 2}
    assert checkpoint.read(tmp_path / "checkpoint.previous.h5")[1] == {"k": 1}


@pytest.mark.parametrize("links", [True, False])
@pytest.mark.parametrize("call", range(5))
def test_a_crash_between_any_two_steps_leaves_a_whole_checkpoint(tmp_path, monkeypatch, call, links):
    path = tmp_path / "checkpoint.h5"
    checkpoint.write(path, GROUPS, {"k": 0})
    checkpoint.write(path, GROUPS, {"k": 1})
    calls = []

    def breaking(step):
        def broken(*arguments, **options):
            calls.append(step)
            if len(calls) == call + 1:
                raise KeyboardInterrupt
            return step(*arguments, **options)

        return broken

    def no_links(*_):
        raise OSError("this file system has no hard links")

    for name in ("fsync", "replace", "link"):
        monkeypatch.setattr(os, name, breaking(getattr(os, name) if links or name != "link" else no_links))
    with pytest.raises(KeyboardInterrupt):
        checkpoint.write(path, GROUPS, {"k": 2})
    monkeypatch.undo()
    if not path.exists():  # only where there are no hard links
        assert not links
        with pytest.raises(FileNotFoundError, match=r"checkpoint\.previous\.h5"):
            checkpoint.read(path)
        path = checkpoint.previous(path)
    assert checkpoint.read(path)[1]["k"] >= 1
    for left in tmp_path.iterdir():
        assert left.name in ("checkpoint.h5", "checkpoint.previous.h5")
        checkpoint.read(left)


def test_a_flipped_bit_or_a_cut_is_noticed_and_the_message_says_what_to_do(tmp_path):
    path = tmp_path / "checkpoint.h5"
    checkpoint.write(path, GROUPS, ATTRIBUTES)
    checkpoint.write(path, GROUPS, ATTRIBUTES)
    whole = path.read_bytes()
    at = whole.index(GROUPS["bodies"]["position"].tobytes()) + 17
    for damaged in (whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :], whole[: len(whole) // 2], b""):
        path.write_bytes(damaged)
        with pytest.raises(errors.Damaged, match=r"clast\.resume\(.*checkpoint\.previous\.h5"):
            checkpoint.read(path)
    checkpoint.previous(path).unlink()
    with pytest.raises(errors.Damaged, match="no earlier one"):
        checkpoint.read(path)


def test_a_changed_attribute_is_noticed(tmp_path):
    path = tmp_path / "checkpoint.h5"
    checkpoint.write(path, GROUPS, {"time": 1.5})
    path.write_bytes(path.read_bytes().replace(b'"time": 1.5', b'"time": 2.5'))
    with pytest.raises(errors.Damaged, match="checksum"):
        checkpoint.read(path)


def test_other_files_and_other_versions_are_named_as_such(tmp_path):
    path = tmp_path / "checkpoint.h5"
    checkpoint.write(path, GROUPS, {})
    whole = path.read_bytes()
    path.write_bytes(whole.replace(f"clast checkpoint {checkpoint.VERSION:4d} ".encode(), b"clast checkpoint   99 "))
    with pytest.raises(errors.ClastError, match="version 99"):
        checkpoint.read(path)
    trajectory.Trajectory(tmp_path / "trajectory.h5", "w").close()
    with pytest.raises(ValueError, match="not a clast checkpoint"):
        checkpoint.read(tmp_path / "trajectory.h5")
    path.write_bytes(whole)
    with pytest.raises(ValueError, match="not a clast trajectory"):
        trajectory.Trajectory(path)
    with h5py.File(tmp_path / "trajectory.h5", "r+") as file:
        file.attrs["version"] = 99
    with pytest.raises(errors.ClastError, match="version 99"):
        trajectory.Trajectory(tmp_path / "trajectory.h5")
    with pytest.raises(FileNotFoundError):
        checkpoint.read(tmp_path / "nowhere.h5")


@pytest.mark.parametrize(
    "kind, version, read", [("checkpoint", 7, checkpoint.read), ("trajectory", 3, trajectory.Trajectory)]
)
def test_files_of_earlier_versions_are_named_without_a_look_inside(tmp_path, kind, version, read):
    with h5py.File(tmp_path / "old.h5", "w") as file:
        file.attrs["format"], file.attrs["version"] = f"clast {kind}", version
    with pytest.raises(errors.ClastError, match=f"version {version} or earlier"):
        read(tmp_path / "old.h5")


def test_what_cannot_be_stored_is_refused_before_anything_is_written(tmp_path):
    with pytest.raises(TypeError, match="bodies/name"):
        checkpoint.write(tmp_path / "c.h5", {"bodies": {"name": np.array(["a"])}}, {})
    with pytest.raises(TypeError, match="attribute value"):
        checkpoint.write(tmp_path / "c.h5", {}, {"law": print})
    with pytest.raises(ValueError, match="'a/b'"):
        checkpoint.write(tmp_path / "c.h5", {"a/b": {}}, {})
    assert not list(tmp_path.iterdir())


def columns(count):
    random = np.random.default_rng(count)
    return {"number": np.arange(count), "position": random.random((count, 3)), "motion": np.zeros(count, np.int8)}


def test_frames_come_back_with_changing_numbers_of_bodies(tmp_path):
    path = tmp_path / "trajectory.h5"
    with trajectory.Trajectory(path, "w") as run:
        run.header({"parts": {"size": np.eye(3)}}, {"title": "drum"})
        for k, count in enumerate((3, 0, 5)):
            run.append(0.1 * k, 10 * k, columns(count), {"kinetic": 1.0 / 3.0})
    with trajectory.Trajectory(path) as run:
        assert len(run) == 3 and run.attributes == {"title": "drum"}
        np.testing.assert_array_equal(run.groups["parts"]["size"], np.eye(3))
        np.testing.assert_array_equal(run.times(), [0.0, 0.1, 0.2])
        assert [len(frame.columns["number"]) for frame in run] == [3, 0, 5]
        last = run[-1]
        assert (last.time, last.step, last.scalars) == (0.2, 20, {"kinetic": 1.0 / 3.0})
        assert last.columns["position"].dtype == np.float32
        assert last.columns["number"].dtype == np.int64 and last.columns["motion"].dtype == np.int8
        np.testing.assert_array_equal(last.columns["position"], columns(5)["position"].astype(np.float32))
        assert [frame.step for frame in run[1:]] == [10, 20]
        with pytest.raises(IndexError, match="3 frames"):
            run[3]


def test_a_trajectory_that_is_open_hides_nothing_from_who_opens_it_again(tmp_path):
    path = tmp_path / "trajectory.h5"
    with trajectory.Trajectory(path, "w") as run:
        run.append(0.0, 0, columns(2))
        with trajectory.Trajectory(path) as early:
            run.append(0.1, 10, columns(2))
            with trajectory.Trajectory(path) as late:
                assert [frame.step for frame in late] == [0, 10]
            assert [frame.step for frame in early] == [0]


def test_a_trajectory_goes_on_after_an_earlier_checkpoint(tmp_path):
    path = tmp_path / "trajectory.h5"
    with trajectory.Trajectory(path, "a") as run:
        for k in range(5):
            run.append(0.1 * k, 10 * k, columns(4))
    with trajectory.Trajectory(path, "a") as run:
        assert run.truncate_after(20) == 2
        run.append(0.25, 25, columns(2))
        assert [frame.step for frame in run] == [0, 10, 20, 25]
    with trajectory.Trajectory(path, "w") as run:
        assert len(run) == 0


def test_an_unfinished_last_frame_is_ignored_and_then_dropped(tmp_path):
    path = tmp_path / "trajectory.h5"
    with trajectory.Trajectory(path, "w") as run:
        run.append(0.0, 0, columns(2))
        run.append(0.1, 1, columns(2))
    with h5py.File(path, "r+") as file:
        del file["frames/00000001"].attrs["sha256"]
    with trajectory.Trajectory(path) as run:
        assert len(run) == 1
    with trajectory.Trajectory(path, "a") as run:
        assert len(run) == 1
        run.append(0.2, 2, columns(3))
        assert [frame.step for frame in run] == [0, 2]


def test_an_append_that_raised_leaves_no_trace(tmp_path, monkeypatch):
    with trajectory.Trajectory(tmp_path / "t.h5", "w") as run:
        with monkeypatch.context() as patch:
            patch.setattr(h5py.Group, "create_dataset", lambda *_, **__: 1 / 0)
            with pytest.raises(ZeroDivisionError):
                run.append(0.0, 0, columns(2))
        assert len(run) == 0
        run.append(0.5, 5, columns(2))
        assert run[0].time == 0.5


def test_a_killed_run_leaves_its_frames_and_its_checkpoint(tmp_path):
    program = """
import sys
import numpy as np
from clast.files import checkpoint, trajectory
run, step = trajectory.Trajectory(sys.argv[1] + "/trajectory.h5", "w"), 0
while True:
    run.append(0.1 * step, step, {"number": np.arange(100), "position": np.full((100, 3), float(step))})
    checkpoint.write(sys.argv[1] + "/checkpoint.h5", {"bodies": {"x": np.full(1000, step)}}, {"step": step})
    step += 1
    print(step, flush=True)
"""
    source = str(Path(files.__file__).parents[2])
    run = subprocess.Popen(
        [sys.executable, "-c", program, str(tmp_path)], stdout=subprocess.PIPE, env=os.environ | {"PYTHONPATH": source}
    )
    with run:
        for _ in range(20):
            run.stdout.readline()
        run.kill()
    groups, attributes = checkpoint.read(tmp_path / "checkpoint.h5")
    assert np.all(groups["bodies"]["x"] == attributes["step"])
    with trajectory.Trajectory(tmp_path / "trajectory.h5", "a") as kept:
        assert len(kept) >= 20
        assert all(np.all(frame.columns["position"] == frame.step) for frame in kept)


def test_a_damaged_trajectory_says_so(tmp_path):
    (tmp_path / "trajectory.h5").write_bytes(b"nothing like HDF5")
    with pytest.raises(errors.Damaged, match="move it away"):
        trajectory.Trajectory(tmp_path / "trajectory.h5")
    with pytest.raises(FileNotFoundError):
        trajectory.Trajectory(tmp_path / "nowhere.h5")


def test_an_altered_number_in_a_frame_or_in_the_header_is_noticed(tmp_path):
    path = tmp_path / "trajectory.h5"
    with trajectory.Trajectory(path, "w") as run:
        run.header({"parts": {"size": np.array([1.5, 2.5])}}, {"title": "drum"})
        for k in range(3):
            run.append(0.1 * k, k, {"position": np.full((4, 3), 10.0 + k)}, {"kinetic": 1.0})
    whole = path.read_bytes()
    for old, new in (
        (np.full(12, 11.0, np.float32), np.full(12, 11.5, np.float32)),
        (np.array([1.5, 2.5]), np.ones(2)),
    ):
        assert whole.count(old.tobytes()) == 1
        path.write_bytes(whole.replace(old.tobytes(), new.tobytes()))
        with trajectory.Trajectory(path) as run:
            assert run[0].time == 0.0 and run[2].time == 0.2
            with pytest.raises(errors.Damaged, match="does not match its checksum"):
                (run[1], run.groups)


def forged(path, change):
    """Change a trajectory or a checkpoint as HDF5, and give the checkpoint the seal that belongs to it."""
    with h5py.File(path, "r+") as file:
        change(file)
    if "checkpoint" in path.name:  # HDF5 has cut off the old seal
        path.write_bytes(path.read_bytes() + checkpoint._seal(checkpoint._digest(path)))


@pytest.mark.parametrize("how", ["external link", "soft link", "external storage", "virtual", "bomb", "no such type"])
@pytest.mark.parametrize("kind", ["checkpoint", "trajectory"])
def test_nothing_outside_the_file_is_read(tmp_path, kind, how):
    (tmp_path / "secret").write_bytes(np.arange(30.0).tobytes())
    with h5py.File(tmp_path / "secret.h5", "w") as file:
        file["x"] = np.arange(30.0).reshape(10, 3)
    path = tmp_path / f"{kind}.h5"
    if kind == "checkpoint":
        checkpoint.write(path, GROUPS, {})
        place = "groups/bodies"
    else:
        with trajectory.Trajectory(path, "w") as run:
            run.append(0.0, 0, columns(10))
        place = "frames/00000000"

    def change(file):
        group = file[place]
        del group["position"]
        if how == "external link":
            group["position"] = h5py.ExternalLink(str(tmp_path / "secret.h5"), "/x")
        elif how == "soft link":
            group["position"] = h5py.SoftLink(f"/{place}/number")
        elif how == "external storage":
            there = [(str(tmp_path / "secret"), 0, 240)]
            group.create_dataset("position", (10, 3), float, external=there)
        elif how == "virtual":
            layout = h5py.VirtualLayout((10, 3), float)
            layout[:] = h5py.VirtualSource(str(tmp_path / "secret.h5"), "x", (10, 3))
            group.create_virtual_dataset("position", layout)
        elif how == "bomb":  # ten terabytes of zeros in a few bytes
            group.create_dataset("position", (10**12,), float, chunks=(10**6,), compression="gzip")
        else:
            group["position"] = "text"

    forged(path, change)
    with pytest.raises(errors.Damaged, match="position is a link|position is not stored as plain numbers"):
        checkpoint.read(path) if kind == "checkpoint" else trajectory.Trajectory(path)[0]


def refused_or_same(damaged, path, read, good):
    """Whether a damaged file is refused by a named error, or gives what the whole one gave."""
    path.write_bytes(damaged)
    try:
        return read(path) == good
    except (errors.ClastError, ValueError) as fault:
        return "\n" not in str(fault)


def numbers_of(path):
    """All that a checkpoint or a trajectory holds, to compare."""
    if "checkpoint" in path.name:
        groups, attributes = checkpoint.read(path)
        return {name: {k: c.tobytes() for k, c in columns.items()} for name, columns in groups.items()}, attributes
    with trajectory.Trajectory(path) as run:
        head = {name: {k: c.tobytes() for k, c in columns.items()} for name, columns in run.groups.items()}
        return head, run.attributes, [repr(frame) for frame in run]


@pytest.mark.parametrize("kind", ["checkpoint", "trajectory"])
def test_no_cut_and_no_flipped_bit_goes_unnoticed(tmp_path, kind):
    path = tmp_path / f"{kind}.h5"
    if kind == "checkpoint":
        checkpoint.write(path, GROUPS, ATTRIBUTES)
    else:
        with trajectory.Trajectory(path, "w") as run:
            run.header(GROUPS, ATTRIBUTES)
            for k in range(10):
                run.append(0.1 * k, k, columns(3), {"kinetic": 1.0, "contacts": 2.0})
    whole, good, random = path.read_bytes(), numbers_of(path), np.random.default_rng(1)
    for cut in random.integers(len(whole), size=30):
        path.write_bytes(whole[:cut])
        with pytest.raises((errors.ClastError, ValueError)):
            numbers_of(path)
    for at, bit in zip(random.integers(len(whole), size=100), random.integers(8, size=100)):
        changed = bytearray(whole)
        changed[at] ^= 1 << bit
        assert refused_or_same(bytes(changed), path, numbers_of, good), f"byte {at}, bit {bit}"


def test_a_full_disk_is_one_line_and_what_was_there_stays(tmp_path, monkeypatch):
    checkpoint.write(tmp_path / "checkpoint.h5", GROUPS, {"k": 0})
    run = trajectory.Trajectory(tmp_path / "trajectory.h5", "w")
    run.append(0.0, 0, columns(5))

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(disk, "put_all", full)
    with pytest.raises(errors.NotWritten, match=r"checkpoint\.h5' cannot be written: No space left on device$"):
        checkpoint.write(tmp_path / "checkpoint.h5", GROUPS, {"k": 1})
    with pytest.raises(errors.NotWritten, match=r"trajectory\.h5' cannot be written: No space left on device$"):
        run.append(0.1, 1, columns(5))
    run.close()
    monkeypatch.undo()
    assert checkpoint.read(tmp_path / "checkpoint.h5")[1] == {"k": 0}
    with trajectory.Trajectory(tmp_path / "trajectory.h5") as run:
        assert [frame.step for frame in run] == [0]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["checkpoint.h5", "trajectory.h5"]


def test_a_kill_between_any_two_writes_leaves_all_frames_before(tmp_path, monkeypatch):
    path = tmp_path / "trajectory.h5"
    with trajectory.Trajectory(path, "w") as run:
        for k in range(8):  # the ninth makes HDF5 arrange the group anew
            run.append(0.1 * k, k, columns(3))
    whole, put_all, counted = path.read_bytes(), disk.put_all, []
    monkeypatch.setattr(disk, "put_all", lambda *given: (counted.append(1), put_all(*given))[1])
    with trajectory.Trajectory(path, "a") as run:
        run.append(0.8, 8, columns(4))
    monkeypatch.undo()
    assert len(counted) > 10
    for last in range(len(counted)):
        path.write_bytes(whole)
        pid = os.fork()
        if pid == 0:
            left = iter(range(last, -1, -1))

            def put(file, data, left=left):
                more = next(left)
                put_all(file, bytes(data)[: len(data) if more else len(data) // 2])
                if not more:
                    os._exit(0)

            disk.put_all = put
            try:
                run = trajectory.Trajectory(path, "a")
                run.append(0.8, 8, columns(4))
                run.close()
            finally:
                os._exit(1)
        assert os.waitpid(pid, 0)[1] == 0
        for mode in ("r", "a"):
            with trajectory.Trajectory(path, mode) as run:
                assert [frame.step for frame in run][:8] == list(range(8)), f"killed in write {last}"
                assert len(run) in (8, 9)
        assert not disk.journal_of(path).exists()


def test_two_runs_do_not_write_one_trajectory(tmp_path):
    with trajectory.Trajectory(tmp_path / "t.h5", "w") as run:
        run.append(0.0, 0, columns(2))
        for mode in ("a", "w"):
            with pytest.raises(errors.NotWritten, match="being written by another run"):
                trajectory.Trajectory(tmp_path / "t.h5", mode)
        run.append(0.1, 1, columns(2))
        with trajectory.Trajectory(tmp_path / "t.h5") as seen:
            assert len(seen) == 2


def filled(table, rows, /, **columns):
    """A table with the given columns; all others are zero."""
    return table(**{name: columns.get(name, np.zeros(rows)) for name in table._fields})


def small_scene():
    """A clump of two spheres, turned by 90 degrees about z and twice as large, in a finite drum over a plane."""
    half = np.sqrt(0.5)
    kind = np.array([tables.SPHERE, tables.SPHERE, tables.CYLINDER, tables.PLANE], np.int8)
    parts = filled(
        tables.Parts,
        4,
        kind=kind,
        offset=np.array([[0.5, 0, 0], [-0.5, 0, 0], [0, 0, 0], [0, 0, 0.0]]),
        turn=np.tile([1.0, 0.0, 0.0, 0.0], (4, 1)),
        power=np.zeros((4, 2)),
        axis=np.array([[0, 0, 0], [0, 0, 0], [0, 1, 0], [0, 0, 1.0]]),
        size=np.array([[0.4, 0, 0], [0.3, 0, 0], [5.0, 2.0, 1.0], [0, 0, 0]]),
    )
    molds = filled(tables.Molds, 3, first=np.array([0, 2, 3], np.int32), count=np.array([2, 1, 1], np.int32))
    bodies = filled(
        tables.Bodies,
        3,
        number=np.array([4, 7, 9]),
        position=np.array([[1.0, 2, 3], [0, 0, 0], [0, 0, -5]]),
        orientation=np.array([[half, 0, 0, half], [1, 0, 0, 0], [1, 0, 0, 0]]),
        velocity=np.full((3, 3), 1.0 / 3.0),
        scale=np.array([2.0, 1, 1]),
        mold=np.array([0, 1, 2], np.int32),
        motion=np.array([tables.FREE, tables.DRIVEN, tables.FIXED], np.int8),
    )
    shapes = filled(
        tables.Shapes,
        4,
        body=np.array([0, 0, 1, 2], np.int32),
        part=np.arange(4, dtype=np.int32),
        kind=kind,
        centre=np.array([[1.0, 3, 3], [1, 1, 3], [0, 0, 0], [0, 0, -5]]),
        radius=np.array([0.8, 0.6, 6.0, np.inf]),
    )
    meshes = filled(tables.Meshes, 0)
    tables_of = {"molds": molds, "parts": parts, "meshes": meshes, "hulls": empty_hulls(), "surfaces": empty_surfaces()}
    world = {"world": None, "periodic": (False,) * 3}
    return SimpleNamespace(bodies=bodies, shapes=lambda: shapes, **tables_of, **world)


def test_vtp_holds_one_point_per_sphere_and_the_finite_walls_beside_it(tmp_path):
    pyvista = pytest.importorskip("pyvista")
    files.save(tmp_path / "new" / "0001.vtp", small_scene())
    assert sorted(entry.name for entry in (tmp_path / "new").iterdir()) == ["0001.vtp", "0001.walls.vtp"]
    points = pyvista.read(tmp_path / "new" / "0001.vtp")
    np.testing.assert_array_equal(points.points, [[1, 3, 3], [1, 1, 3]])
    np.testing.assert_array_equal(points["radius"], [0.8, 0.6])
    np.testing.assert_array_equal(points["number"], [4, 4])
    np.testing.assert_array_equal(points["velocity"], np.full((2, 3), 1.0 / 3.0))
    assert points["orientation"].shape == (2, 4) and points.n_verts == 2
    walls = pyvista.read(tmp_path / "new" / "0001.walls.vtp")
    np.testing.assert_allclose(walls.bounds, (-5, 5, -2, 2, -5, 5), atol=1e-12)
    np.testing.assert_allclose(walls.area, 2 * np.pi * 5 * 4, rtol=1e-3)
    assert np.all(walls["number"] == 7)


def test_vtp_of_nothing_and_of_triangles_can_be_read(tmp_path):
    pyvista = pytest.importorskip("pyvista")
    vtk.write_points(tmp_path / "none.vtp", {"position": np.zeros((0, 3)), "radius": np.zeros(0)})
    assert pyvista.read(tmp_path / "none.vtp").n_points == 0
    vtk.write_triangles(tmp_path / "one.vtp", np.eye(3), [[0, 1, 2]], {"fixed": np.array([True])})
    assert pyvista.read(tmp_path / "one.vtp").area == pytest.approx(np.sqrt(3.0) / 2.0)
    with pytest.raises(TypeError, match="'name'"):
        vtk.write_points(tmp_path / "bad.vtp", {"position": np.zeros((1, 3)), "name": np.array(["a"])})


def test_spheres_are_placed_as_the_scene_places_them():
    scene = small_scene()
    body, centre, _, axes, hull, *_ = vtk.particles(scene.bodies, scene.molds, scene.parts)
    np.testing.assert_array_equal(body, [0, 0])
    np.testing.assert_array_equal(hull, [-1, -1])
    np.testing.assert_allclose(centre, scene.shapes().centre[:2], atol=1e-15)
    np.testing.assert_allclose(axes, scene.shapes().radius[:2, None] * np.ones(3))


def mixed_scene():
    """Two ellipsoids of different size and turn, and a ball."""
    scene = clast.Scene()
    turn = [[1.0, 0.0, 0.0, 0.0], [np.sqrt(0.5), 0.0, 0.0, np.sqrt(0.5)]]  # the second by 90 degrees about z
    place = [[0, 0, 0], [5.0, 0, 0]]
    scene.add(clast.Ellipsoid(0.8, 0.1, 0.1), position=place, orientation=turn, scale=[1.0, 2.0])
    scene.add(clast.Sphere(0.5), position=(0.0, 9.0, 0.0))
    return scene


def test_files_have_the_half_axes_of_ellipsoids(tmp_path):
    pyvista = pytest.importorskip("pyvista")
    files.save(tmp_path / "a.vtp", mixed_scene())
    points = pyvista.read(tmp_path / "a.vtp")
    np.testing.assert_allclose(points["axes"], [[0.8, 0.1, 0.1], [1.6, 0.2, 0.2], [0.5, 0.5, 0.5]], rtol=1e-15)
    np.testing.assert_allclose(points["radius"], [0.2, 0.4, 0.5], rtol=1e-14)
    assert points["radius"][2] == 0.5
    files.save(tmp_path / "a.csv", mixed_scene())
    with open(tmp_path / "a.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [float(rows[1][f"axes_{axis}"]) for axis in "xyz"] == [1.6, 0.2, 0.2]
    assert [float(rows[1][f"orientation_{axis}"]) for axis in "wxyz"] == [np.sqrt(0.5), 0.0, 0.0, np.sqrt(0.5)]


def rocks():
    """Boxes of two sizes with a ball and tetrahedra between them, turned by all kinds of angles."""
    scene = clast.Scene()
    turn = np.random.default_rng(4).normal(size=(4, 4))
    scene.add(clast.Polyhedron.box(1.0, 2.0, 3.0), position=(1.0, 2.0, 3.0), orientation=turn[0], velocity=(4, 5, 6))
    scene.add(clast.Sphere(0.5), position=(9.0, 0.0, 0.0))
    solid = clast.Polyhedron.regular("tetrahedron", edge=1.0)
    scene.add(solid, position=[[5, 5, 5], [7, 7, 7]], orientation=turn[1:3], scale=[1.0, 3.0])
    scene.add(clast.Polyhedron.box(1.0, 2.0, 3.0), position=(-5.0, 0.0, 0.0), orientation=turn[3], scale=2.0)
    scene.add(clast.Plane(), position=(0.0, 0.0, -9.0))
    return scene


def test_files_have_the_faces_of_polyhedra(tmp_path):
    pyvista = pytest.importorskip("pyvista")
    scene = rocks()
    files.save(tmp_path / "a.vtp", scene)
    points, faces = pyvista.read(tmp_path / "a.vtp"), pyvista.read(tmp_path / "a.polyhedra.vtp")
    volume = np.array([6.0, np.pi / 6.0, np.sqrt(2.0) / 12.0, 27.0 * np.sqrt(2.0) / 12.0, 48.0])
    np.testing.assert_allclose(4.0 / 3.0 * np.pi * points["radius"] ** 3, volume, rtol=1e-13)
    np.testing.assert_array_equal(points["axes"], np.repeat(points["radius"][:, None], 3, axis=1))
    assert faces.n_cells == 6 + 4 + 4 + 6 and faces.n_points == 8 + 4 + 4 + 8
    np.testing.assert_array_equal(faces["number"], np.repeat([0, 2, 3, 4], [6, 4, 4, 6]))
    np.testing.assert_array_equal(faces["velocity"][:7], [[4, 5, 6]] * 6 + [[0, 0, 0]])
    for number, amount in zip((0, 2, 3, 4), volume[[0, 2, 3, 4]], strict=True):
        body = faces.extract_cells(np.flatnonzero(faces["number"] == number)).extract_surface(algorithm=None)
        # The volume is positive if faces look outward, and right if the right corners are joined.
        assert body.triangulate().volume == pytest.approx(amount, rel=1e-6)
    files.save(tmp_path / "b.vtp", mixed_scene())
    assert not (tmp_path / "b.polyhedra.vtp").exists()


def test_faces_of_many_polyhedra_are_those_of_each():
    scene = rocks()
    body, centre, _, axes, hull, *_ = vtk.particles(scene.bodies, scene.molds, scene.parts, scene.hulls)
    np.testing.assert_array_equal(hull, [0, -1, 1, 1, 0])
    solid, bodies = np.flatnonzero(hull >= 0), scene.bodies
    found = vtk.polygons(
        centre[solid], bodies.orientation[solid], bodies.scale[solid], hull[solid], scene.hulls._asdict()
    )
    corners, loops = [], []
    for row in solid:
        shape = scene.originals[bodies.mold[row]]
        loops += [(face + sum(map(len, corners))).tolist() for face in shape.faces]
        turned = vtk.rotate(bodies.orientation[row], shape.vertices * bodies.scale[row])
        corners.append(turned + bodies.position[row])
    np.testing.assert_allclose(found.vertices, np.concatenate(corners), rtol=1e-15, atol=1e-15)
    assert [part.tolist() for part in np.split(found.loop, found.start[1:-1])] == loops
    np.testing.assert_array_equal(found.owner, np.repeat([0, 1, 2, 3], [6, 4, 4, 6]))
    with pytest.raises(TypeError, match="no table of their hulls"):
        vtk.particles(scene.bodies, scene.molds, scene.parts)


def test_a_checkpoint_and_a_trajectory_hold_polyhedra_and_meshes(tmp_path):
    scene = rocks()
    scene.add([clast.Mesh.random(20), clast.Mesh.random(10)], position=(9.0, 9.0, 9.0))
    checkpoint.write(tmp_path / "a.h5", *scene.describe())
    again = clast.Scene.rebuild(*checkpoint.read(tmp_path / "a.h5"))
    groups, attributes = scene.describe()
    groups.pop("bodies")
    with trajectory.Trajectory(tmp_path / "t.h5", "w") as run:
        run.header(groups, attributes)
    with trajectory.Trajectory(tmp_path / "t.h5") as run:
        stored = run.groups
    for table in ("hulls", "surfaces"):
        for name, column in getattr(scene, table)._asdict().items():
            np.testing.assert_array_equal(getattr(getattr(again, table), name), column)
            np.testing.assert_array_equal(stored[table][name], column)


def test_files_have_the_triangles_of_meshes(tmp_path):
    pyvista = pytest.importorskip("pyvista")
    scene = rocks()
    lumps = [clast.Mesh.random(points, seed=points) for points in (10, 20)]
    scene.add(
        [lumps[1], lumps[0], lumps[1]], position=np.diag([9.0, 9.0, 9.0]), scale=[1.0, 2.0, 0.5], velocity=(1, 2, 3)
    )
    files.save(tmp_path / "a.vtp", scene)
    points, faces = pyvista.read(tmp_path / "a.vtp"), pyvista.read(tmp_path / "a.meshes.vtp")
    volume = np.array([lumps[1].volume, 8.0 * lumps[0].volume, 0.125 * lumps[1].volume])
    np.testing.assert_allclose(4.0 / 3.0 * np.pi * points["radius"][5:] ** 3, volume, rtol=1e-13)
    np.testing.assert_array_equal(faces["number"], np.repeat([6, 7, 8], [36, 16, 36]))
    assert (faces["velocity"] == [1, 2, 3]).all()
    for number, amount in zip((6, 7, 8), volume, strict=True):
        body = faces.extract_cells(np.flatnonzero(faces["number"] == number)).extract_surface(algorithm=None).clean()
        assert body.volume == pytest.approx(amount, rel=1e-6) and body.is_manifold
    assert pyvista.read(tmp_path / "a.polyhedra.vtp").n_cells == 20
    with pytest.raises(TypeError, match="no table of their surfaces"):
        vtk.particles(scene.bodies, scene.molds, scene.parts, scene.hulls)


def test_csv_has_a_header_and_exact_numbers(tmp_path):
    files.save(tmp_path / "bodies.csv", small_scene())
    with open(tmp_path / "bodies.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 2 and rows[0]["number"] == "4"
    assert [float(rows[1][f"position_{axis}"]) for axis in "xyz"] == [1.0, 1.0, 3.0]
    assert float(rows[0]["velocity_y"]) == 1.0 / 3.0
    assert [float(rows[0][f"orientation_{axis}"]) for axis in "wxyz"] == [np.sqrt(0.5), 0.0, 0.0, np.sqrt(0.5)]


def test_an_unknown_suffix_is_answered_with_the_known_ones(tmp_path):
    with pytest.raises(ValueError, match=r"did you mean '\.vtp'"):
        files.save(tmp_path / "a.vtu", small_scene())


@pytest.mark.parametrize("suffix", files.WRITERS)
def test_a_crash_while_saving_leaves_the_old_file(tmp_path, monkeypatch, suffix):
    path = tmp_path / f"a{suffix}"
    path.write_text("old")
    monkeypatch.setattr(os, "replace", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        files.save(path, small_scene())
    assert path.read_text() == "old" and list(tmp_path.iterdir()) == [path]


def test_surfaces_turn_shift_and_scale_with_their_body():
    turn = np.array([np.sqrt(0.5), 0.0, np.sqrt(0.5), 0.0])  # by 90 degrees about y: x to -z, z to x
    bodies = {
        "position": np.array([[0, 0, 1.0]]),
        "orientation": turn[None],
        "scale": np.array([2.0]),
        "mold": np.array([0]),
    }
    molds = {"first": np.array([0]), "count": np.array([1])}
    parts = {
        "kind": np.array([tables.TRIANGLE]),
        "offset": np.zeros((1, 3)),
        "axis": np.zeros((1, 3)),
        "size": np.zeros((1, 3)),
        "feature": np.array([1]),
    }
    meshes = {"vertex": np.vstack([np.zeros((3, 3)), np.eye(3)]), "triangle": np.array([[0, 1, 2], [3, 4, 5]])}
    (wall,) = vtk.surfaces(bodies, molds, parts, meshes)
    np.testing.assert_allclose(wall.vertices[wall.triangles[0]], [[0, 0, -1], [0, 2, 1], [2, 0, 1]], atol=1e-15)
    parts = parts | {
        "kind": np.array([tables.CYLINDER]),
        "axis": np.array([[0, 0, 1.0]]),
        "size": np.array([[1.0, np.inf, 1.0]]),
    }
    assert vtk.surfaces(bodies, molds, parts, meshes) == []
    (wall,) = vtk.surfaces(bodies, molds, parts, meshes, around=(np.full(3, -4.0), np.full(3, 4.0)))
    np.testing.assert_allclose([wall.vertices.min(0), wall.vertices.max(0)], [[-4, -2, -1], [4, 2, 3]], atol=1e-12)

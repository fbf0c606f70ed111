"""Runs: every frame once, what goes in and out is counted, and what cannot be done is one line. Spheres on a plane only."""

import json
import math
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import clast
from clast import cli, errors, scenefile
from clast.files import checkpoint, disk
from clast.files.trajectory import Trajectory
from clast.kernels.watch import _watch


def falling(count=5, **options):
    scene = clast.Scene()
    scene.add(clast.Plane())
    scene.fill(clast.Sphere(0.01), count=count, box=((0, 0, 0), (0.1, 0.1, 0.1)), seed=1)
    return clast.Simulation(scene, **options)


def steps_of(folder):
    with Trajectory(Path(folder) / "trajectory.h5") as frames:
        return [frame.step for frame in frames]


def test_another_time_between_frames_loses_none(tmp_path):
    falling().run(until=0.03, every=0.01, output=tmp_path, progress=False)
    clast.resume(tmp_path).run(until=0.07, every=0.02, output=tmp_path, progress=False)
    with Trajectory(tmp_path / "trajectory.h5") as frames:
        assert frames.times() == pytest.approx([0.0, 0.01, 0.02, 0.03, 0.04, 0.06, 0.07], abs=2e-4)
        assert len(set(frames.series()["step"].tolist())) == 7


def test_a_reader_sees_whole_frames_while_a_run_writes_them(tmp_path):
    """Whatever moment it comes: opened, read and closed again while frames are appended."""
    path = tmp_path / "trajectory.h5"
    program = (
        "import sys, time, numpy as np; from clast.files.trajectory import Trajectory\n"
        "with Trajectory(sys.argv[1], 'w') as file:\n"
        "    for k in range(200):\n"
        "        file.append(0.1 * k, k, {'position': np.full((50, 3), float(k))})\n"
        "        time.sleep(0.005)\n"
    )
    source = str(Path(clast.__file__).parents[1])
    seen = []
    with subprocess.Popen([sys.executable, "-c", program, str(path)], env=os.environ | {"PYTHONPATH": source}) as run:
        while run.poll() is None:
            if not path.exists() or path.stat().st_size == 0:
                continue
            with Trajectory(path) as frames:
                seen.append(len(frames))
                for frame in frames[-20:]:
                    assert (frame.columns["position"] == frame.step).all()
    assert run.returncode == 0 and len(seen) > 3 and seen == sorted(seen)


@pytest.mark.parametrize("every", [0.01, 0.004, 0.00137])
def test_a_run_that_goes_on_has_the_frames_of_one_never_stopped(tmp_path, every):
    falling().run(until=0.03, every=every, output=tmp_path / "never", progress=False)
    for until in (0.01, 0.0123, 0.02, 0.03):
        sim = clast.resume(tmp_path / "stopped") if until > 0.01 else falling()
        sim.run(until=until, every=every, output=tmp_path / "stopped", progress=False)
    assert steps_of(tmp_path / "stopped") == steps_of(tmp_path / "never")
    a, b = (Trajectory(tmp_path / name / "trajectory.h5") for name in ("never", "stopped"))
    with a, b:
        assert all(repr(x) == repr(y) for x, y in zip(a, b, strict=True))
    series = [(tmp_path / name / "series.csv").read_text() for name in ("never", "stopped")]
    assert series[0] == series[1] and series[0].startswith("time,step,kinetic,")


def test_a_full_disk_ends_the_run_in_one_line_and_the_last_checkpoint_stays(tmp_path, monkeypatch, capsys):
    (tmp_path / "scene.toml").write_text(
        "[[walls]]\nkind = 'plane'\n[[bodies]]\nradius = 0.01\nposition = [0, 0, 0.02]\n[run]\nuntil = 0.01\nevery = 0.002\n"
    )
    written, put_all = [0], disk.put_all

    def small(file, data):
        written[0] += len(data)
        if written[0] > 200_000:
            raise OSError(28, "No space left on device")
        put_all(file, data)

    monkeypatch.setattr(disk, "put_all", small)
    assert cli.answer(["run", str(tmp_path / "scene.toml"), "--output", str(tmp_path / "out"), "--quiet"]) == 1
    monkeypatch.undo()
    told = capsys.readouterr().err
    assert told.count("\n") == 1 and "No space left on device" in told and "the last good state is in" in told
    assert cli.answer(["run", "--resume", str(tmp_path / "out"), "--quiet"]) == 0
    assert len(steps_of(tmp_path / "out")) == 6


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="needs to mount a small disk")
def test_a_disk_that_is_really_full(tmp_path):
    disk_of = tmp_path / "disk"
    disk_of.mkdir()
    if subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=300k", "tmpfs", str(disk_of)], capture_output=True
    ).returncode:
        pytest.skip("mount is not allowed here")
    try:
        sim = falling()
        with pytest.raises(errors.NotWritten, match="No space left on device; the last good state is in"):
            sim.run(until=0.03, every=0.0005, output=disk_of, progress=False)
        assert not list(disk_of.glob("*writing*")) and not list(disk_of.glob("*journal*"))
        checkpoint.read(disk_of / "checkpoint.h5")
        assert len(steps_of(disk_of)) > 3
    finally:
        subprocess.run(["umount", str(disk_of)], check=True)


WRONG = {
    "two simulations": (lambda sim: clast.Simulation(sim.scene), "belongs to another simulation"),
    "steps": (lambda sim: sim.step(-1), "Simulation.step: count must be at least 0, got -1"),
    "half a step": (lambda sim: sim.step(0.5), "Simulation.step: count must be a whole number, got 0.5"),
    "no step": (lambda sim: falling(dt=1e-300), "dt = 1e-300 s is shorter than any contact"),
    "for ever": (lambda sim: sim.run(until=1e300), "steps of .* too many"),
    "every": (lambda sim: sim.run(until=1.0, every=1e-9), "every = 1e-09 s is shorter than a step"),
    "text": (lambda sim: sim.run(until="soon"), "until must be a number, got 'soon'"),
    "nan": (lambda sim: sim.run(until=math.nan), "until must be finite"),
    "output": (lambda sim: sim.run(until=1.0, output=5), "output must be the path of a folder, got 5"),
    "contacts": (lambda sim: clast.find_contacts(5), "must be a clast.Scene, got 5"),
    "save": (lambda sim: clast.save("x.csv", 5), "must be a clast.Scene, got 5"),
    "save path": (lambda sim: clast.save(5, sim.scene), "must be the path of a file, got 5"),
    "checkpoint path": (
        lambda sim: sim.save(5),
        "Simulation.save: the first argument must be the path of a file, got 5",
    ),
    "mesh path": (lambda sim: clast.load_mesh(5), "load_mesh: the first argument must be the path of a file, got 5"),
    "scene file": (lambda sim: scenefile.load(None), "must be the path of a .toml scene file, got None"),
    "trajectory": (lambda sim: clast.files.Trajectory(5), "must be the path of a trajectory.h5, got 5"),
    "spheres": (
        lambda sim: clast.files.load_spheres(5),
        "load_spheres: the first argument must be the path of a file, got 5",
    ),
    "export": (
        lambda sim: clast.files.export(5, "x.dump"),
        "export: the first argument must be the folder of a run, got 5",
    ),
    "movie": (lambda sim: clast.view.movie(5, "x.gif"), "movie: the first argument must be the folder of a run, got 5"),
    "report page": (lambda sim: clast.view.report(5), "report: the first argument must be the folder of a run, got 5"),
    "resume": (lambda sim: clast.resume(5), "must be the path of a checkpoint or of the folder of a run, got 5"),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_arguments_are_one_line(name):
    call, message = WRONG[name]
    sim = falling()
    with pytest.raises((ValueError, TypeError), match=message) as caught:
        call(sim)
    assert "\n" not in str(caught.value)


def test_times_that_cannot_be_are_refused_by_the_command_before_anything_is_written(tmp_path, capsys):
    output = tmp_path / "out"
    assert cli.answer(["run", "drum", "--count", "20", "--every", "1e-9", "--output", str(output)]) == 2
    told = capsys.readouterr().err
    assert told.count("\n") == 1 and "every = 1e-09 s is shorter than a step" in told
    assert not output.exists()


def fountain():
    """Two inlets of different sizes above two outlets; all falls freely."""
    scene = clast.Scene()
    box = ((0, 0, 0.3), (0.1, 0.1, 0.4))
    scene.inlet(clast.Sphere(0.01), box=box, rate=400, velocity=(0, 0, -3), count=20, seed=1)
    scene.inlet(
        clast.Sphere(0.005), box=((0.2, 0, 0.3), (0.3, 0.1, 0.4)), rate=300, velocity=(0, 0, -3), count=12, seed=2
    )
    scene.outlet(box=((0, 0, -1), (0.1, 0.1, 0.1)))
    scene.outlet(box=((-1, -1, -1), (1, 1, 0.1)))
    return clast.Simulation(scene, dt=1e-4)


def test_inlets_and_outlets_keep_count_and_mass_over_time(tmp_path):
    sim = fountain()
    sim.run(until=0.3, every=0.05, output=tmp_path, progress=False)
    one, other = (2500.0 * 4.0 / 3.0 * math.pi * r**3 for r in (0.01, 0.005))
    assert (sim.poured, sim.removed) == ([20, 12], 32)
    for flows in (sim.flows.inlets, sim.flows.outlets):
        assert [flow.count for flow in flows] == [20, 12]
        np.testing.assert_allclose([flow.mass for flow in flows], [20 * one, 12 * other], rtol=1e-12)
        for flow in flows:
            assert len(flow.times) == len(flow.counts) == len(flow.masses) > 3
            assert (np.diff(flow.times) > 0).all() and (np.diff(flow.counts) > 0).all()
            assert flow.counts[-1] == flow.count and flow.masses[-1] == flow.mass
    # What falls needs its time from the one to the other.
    assert sim.flows.outlets[0].times[0] > sim.flows.inlets[0].times[0] + 0.04
    with Trajectory(tmp_path / "trajectory.h5") as frames:
        series, frame = frames.series(), frames[2]
    assert series["outlet_0_count"][-1] == 20 and series["outlet_1_mass"][-1] == sim.flows.outlets[1].mass
    assert series["inlet_0_count"][1] == sim.flows.inlets[0].counts[sim.flows.inlets[0].times < series["time"][1]][-1]
    there = sum(series[f"inlet_{k}_mass"] - series[f"outlet_{k}_mass"] for k in range(2))
    assert frame.columns["mass"].sum() == pytest.approx(there[2], rel=1e-6) and there[2] > 0.0
    told = json.loads((tmp_path / "report.json").read_text())
    assert told["outlets"]["1"] == {"count": 12, "mass": sim.flows.outlets[1].mass}
    assert "outlet 1   12 bodies" in str(sim.report())


def test_flows_go_on_with_a_run(tmp_path):
    never, stopped = fountain(), fountain()
    never.step(1500)
    stopped.step(831)
    assert 0 < stopped.removed < 32
    stopped.save(tmp_path / "c.h5")
    again = clast.resume(tmp_path / "c.h5")
    again.step(1500 - 831)
    for kind in ("inlets", "outlets"):
        for a, b in zip(getattr(never.flows, kind), getattr(again.flows, kind), strict=True):
            for name in ("times", "counts", "masses"):
                assert np.array_equal(getattr(a, name), getattr(b, name))


def test_a_report_of_a_run_that_did_not_end(tmp_path, capsys):
    sim = falling()
    with pytest.raises(RuntimeError, match="killed"):
        sim_run_until(sim, 4, tmp_path)
    assert cli.answer(["report", str(tmp_path)]) == 0
    told = capsys.readouterr()
    assert "did not end" in told.err and "kinetic" in told.out and "frames" in told.out
    clast.resume(tmp_path).run(until=0.02, every=0.002, output=tmp_path, progress=False)
    assert cli.answer(["report", str(tmp_path)]) == 0
    told = capsys.readouterr()
    assert told.err == "" and "steps per second" in told.out


def sim_run_until(sim, frames, folder):
    """Let a run break after so many frames."""
    touching, left = sim.touching, iter(range(frames))

    def broken():
        if next(left, None) is None:
            raise RuntimeError("killed")
        return touching()

    sim.touching = broken
    sim.run(until=0.02, every=0.002, output=folder, progress=False)


def test_compiling_is_no_part_of_the_speed(monkeypatch):
    sim = falling()
    sim.step(3)
    counted, spent, step = sim.counted, dict(sim.seconds), sim.stepper.step

    def compiles():
        sim.seconds["contacts"] += 60.0
        _watch.seconds += 60.0
        step()

    before = sim.compiling
    monkeypatch.setattr(_watch, "seconds", _watch.seconds)
    monkeypatch.setattr(sim.stepper, "step", compiles)
    sim.step(1)
    assert sim.steps == 4 and sim.counted == counted
    assert sum(sim.seconds.values()) < sum(spent.values()) + 1.0
    assert sim.compiling == pytest.approx(before + 60.0)
    assert sim.report().compiling == pytest.approx(before + 60.0) and "besides" in str(sim.report())


def test_the_time_that_numba_compiles_is_measured():
    import numba

    before = _watch.seconds
    numba.njit(lambda x: x + 1)(1)
    assert _watch.seconds > before


def test_the_package_tells_its_version_and_has_its_rooms(capsys):
    from importlib.metadata import version

    assert clast.__version__ == version("clast")
    assert cli.answer(["--version"]) == 0
    assert capsys.readouterr().out == f"clast {clast.__version__}\n"
    for name in ("measure", "view", "files", "scenes"):
        assert getattr(clast, name).__name__ == f"clast.{name}" and name in dir(clast)
    # In a fresh process, where nothing else has imported them.
    program = "import clast; print(clast.measure.__name__, clast.files.save.__name__)"
    source = str(Path(clast.__file__).parents[1])
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, env=os.environ | {"PYTHONPATH": source}
    )
    assert done.stdout == "clast.measure save\n"


def test_a_scene_tells_what_is_in_it():
    assert repr(clast.Scene()) == "<Scene of 0 bodies, 0 free: nothing yet>"
    sim = falling()
    assert repr(sim.scene) == "<Scene of 6 bodies, 5 free: 1 Plane, 5 Sphere>"
    scene = clast.Scene()
    scene.outlet(box=((0, 0, 0), (1, 1, 1)))
    assert "1 outlet>" in repr(scene)


def test_the_readme_names_all_ready_scenes():
    text = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
    assert f"(known: {', '.join(cli.NAMES)}, or a file" in text


def test_bodies_with_one_centre_are_refused_with_both_names():
    scene = clast.Scene()
    scene.add(clast.Sphere(0.01), position=[(0, 0, 0.5), (0.1, 0, 0.5), (0, 0, 0.5)])
    with pytest.raises(
        ValueError, match=r"body 0 \(Sphere\) and body 2 \(Sphere\) have the same centre \[0.0, 0.0, 0.5\]"
    ):
        clast.Simulation(scene).step()
    scene = clast.Scene()
    scene.add(clast.Sphere(0.01), position=[(0, 0, 0.5), (0, 0, 0.5)], motion="fixed")
    scene.add(clast.Sphere(0.01), position=(0.1, 0, 0.5))
    clast.Simulation(scene).step()


def test_spheres_that_come_to_have_one_centre_part_and_are_counted(tmp_path):
    scene = clast.Scene(gravity=(0, 0, 0))
    scene.add(clast.Sphere(0.01), position=[(0, 0, 0), (0.1, 0, 0)])
    sim = clast.Simulation(scene)
    sim.step()
    sim.save(tmp_path / "c.h5")
    groups, attributes = checkpoint.read(tmp_path / "c.h5")
    groups["bodies"]["position"][:] = 0.25
    checkpoint.write(tmp_path / "c.h5", groups, attributes)
    sim = clast.resume(tmp_path / "c.h5")
    sim.step(2)
    assert sim.report().coincident >= 1 and "two spheres had one centre" in str(sim.report())
    sim.save(tmp_path / "d.h5")
    assert clast.resume(tmp_path / "d.h5").report().coincident == sim.report().coincident
    sim.step(600)
    position = sim.bodies.position
    assert np.isfinite(position).all() and np.linalg.norm(position[1] - position[0]) > 0.02
    assert (position[:, :2] == 0.25).all()
    np.testing.assert_allclose(position.mean(0), 0.25, rtol=1e-9)

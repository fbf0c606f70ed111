"""Numbers over time by name, contacts of frames, text files, and the page that shows a run."""

import base64
import html
import io
import itertools
import json
import re

import numpy as np
import pytest

import clast
from clast import cli, measure, view
from clast.files.trajectory import Trajectory
from clast.run import recording, words
from clast.view import page


def series_of(folder):
    return np.genfromtxt(folder / "series.csv", delimiter=",", names=True, deletechars="")


def falling(**outlet):
    scene = clast.Scene(world=((-1, -1, -1), (1, 1, 1)))
    scene.add(clast.Plane(), position=(0, 0, -0.9))
    scene.add(clast.Sphere(0.01), position=[(0.1 * k, 0.0, 0.0) for k in range(5)])
    if outlet:
        scene.outlet(**outlet)
    return clast.Simulation(scene, dt=1e-4)


def test_frames_hold_contacts_that_measures_can_look_at(small_run):
    sim = clast.resume(small_run)
    with Trajectory(small_run / "trajectory.h5") as run:
        last = run[-1]
        saved = measure.snapshot(last, run)
        assert run[0].contacts["pair"].shape == (0, 2)
    told = sim.contacts()
    assert np.array_equal(last.contacts["pair"], told.pair)
    assert saved.force == pytest.approx(told.force, rel=1e-6, abs=1e-9)
    assert "contact_pair" not in last.columns
    assert measure.coordination(saved) == measure.coordination(sim)
    assert measure.stress(saved) == pytest.approx(measure.stress(sim), rel=1e-5, abs=1e-3)
    assert saved.volume == pytest.approx(measure.snapshot(sim.scene).volume, rel=1e-6)


def test_series_hold_what_was_asked_for_and_what_always_is(small_run):
    told = series_of(small_run)
    names = [
        "time",
        "step",
        "kinetic",
        "rotational",
        "potential",
        "elastic",
        "total",
        "contacts",
        "coordination",
        *(f"ledger_{name}" for name in ("start", "work", "through", "undivided", "turnover", "dissipated")),
        "speed",
    ]
    assert list(told.dtype.names) == [*names, "force:0_x", "force:0_y", "force:0_z"]
    sim = clast.resume(small_run)
    assert told["coordination"][-1] == measure.coordination(sim)
    assert told["speed"][-1] == np.linalg.norm(sim.bodies.velocity[1:], axis=1).max()
    assert told["force:0_z"][-1] == measure.wall_force(sim, 0)[2] < 0.0
    assert told["speed"][1] == pytest.approx(9.81 * told["time"][1], rel=1e-2)


def test_the_rate_of_flow_is_that_since_the_last_frame(tmp_path):
    sim = falling(box=((-1, -1, -0.5), (1, 1, -0.2)))

    def twice_the_time(sim):
        return 2.0 * sim.time

    names = ["flow:outlet", "flow:outlet:0", twice_the_time]
    sim.run(until=0.3, every=0.1, output=tmp_path, progress=False, record=names)
    told = series_of(tmp_path)
    # They fall 0.2 m in 0.202 s, all at once.
    assert told["flow:outlet"][:3].tolist() == [0.0, 0.0, 0.0]
    assert told["flow:outlet"][3] == told["flow:outlet:0"][3] == pytest.approx(told["outlet_0_mass"][3] / 0.1)
    assert told["outlet_0_count"][3] == 5 and told["twice_the_time"].tolist() == [0.0, 0.2, 0.4, 0.6]


def test_a_new_run_in_the_folder_of_another_forgets_where_that_was(tmp_path):
    falling().run(until=0.02, every=0.01, output=tmp_path, progress=False)

    def stop(sim):
        raise RuntimeError("before the first frame")

    assert (tmp_path / "checkpoint.previous.h5").exists()
    with pytest.raises(RuntimeError):
        falling().run(until=0.02, every=0.01, output=tmp_path, progress=False, record=[stop])
    assert not list(tmp_path.glob("checkpoint*"))


def test_what_is_poured_at_a_frame_is_in_the_next_one(tmp_path):
    scene = clast.Scene()
    scene.inlet(clast.Sphere(0.01), box=((-0.1, -0.1, 0.0), (0.1, 0.1, 0.1)), rate=1000.0, count=20, seed=1)
    sim = clast.Simulation(scene, dt=1e-4)
    sim.run(until=0.0125, every=0.005, output=tmp_path, progress=False, record=["flow:inlet"])
    told = series_of(tmp_path)
    assert len(told["time"]) == 4  # the last one sooner than the others
    poured = np.cumsum(told["flow:inlet"][1:] * np.diff(told["time"]))
    assert told["inlet_0_mass"][-1] > 0.0
    assert poured == pytest.approx(told["inlet_0_mass"][1:])


@pytest.mark.parametrize(
    ("names", "words"),
    [
        (["kinetik"], r"unknown quantity 'kinetik'; did you mean 'kinetic'\?"),
        (["flow"], r"record 'flow' of what\? say 'flow:outlet'"),
        (["torque"], r"record 'torque' of what\? say 'torque:0'"),
        (["flow:outlet"], "the scene has no outlet"),
        (["force:77"], "there is no body '77'"),
        (["torqe:0"], r"unknown quantity 'torqe:0'; did you mean 'torque:0'\?"),
        ("kinetic", "record must be a list of names"),
    ],
)
def test_quantities_that_are_not_known_are_refused_before_anything_is_written(tmp_path, names, words):
    with pytest.raises((ValueError, TypeError), match=words):
        falling().run(until=0.1, output=tmp_path / "out", progress=False, record=names)
    assert not (tmp_path / "out").exists()


def test_large_frames_leave_contacts_out_unless_asked(tmp_path, monkeypatch, small_run):
    monkeypatch.setattr(recording, "KEPT", 0)
    for names, kept in (([], False), (["contacts"], True)):
        sim = clast.resume(small_run)
        sim.run(until=0.18, output=tmp_path / str(kept), progress=False, record=names)
        with Trajectory(tmp_path / str(kept) / "trajectory.h5") as run:
            assert bool(run[-1].contacts) == kept
            assert ("coordination" in run[-1].scalars) == kept
            with pytest.raises(ValueError, match="needs contacts") if not kept else np.errstate():
                measure.fabric(measure.snapshot(run[-1], run))


def test_text_files_have_places_and_radii(tmp_path):
    sim = falling()
    sim.run(until=0.02, every=0.01, output=tmp_path, progress=False, text=True)
    assert sorted(file.name for file in (tmp_path / "text").iterdir()) == ["000000.txt", "000001.txt", "000002.txt"]
    first = (tmp_path / "text/000001.txt").read_text().splitlines()[0]
    assert first == "# x y z radius [m] at t = 0.01 s"
    table = np.loadtxt(tmp_path / "text/000002.txt")
    assert np.array_equal(table[:, :3], sim.bodies.position[1:]) and (table[:, 3] == 0.01).all()
    clast.save(tmp_path / "now.txt", sim.scene)
    assert np.array_equal(np.loadtxt(tmp_path / "now.txt"), table)


def test_the_command_keeps_and_refuses_quantities(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "ball.toml").write_text(
        "[[bodies]]\nradius = 0.01\nposition = [0, 0, 0.5]\n[run]\ndt = 1e-4\nuntil = 0.01\n"
    )
    assert cli.answer(["run", "ball.toml", "--quiet", "--record", "sped"]) == 2
    assert "did you mean 'speed'?" in capsys.readouterr().err and not (tmp_path / "out").exists()
    assert cli.answer(["run", "ball.toml", "--quiet", "--record", "speed", "--text", "--every", "0.005"]) == 0
    assert cli.answer(["run", "--resume", "out/ball", "--until", "0.02", "--quiet"]) == 0  # goes on with what it kept
    told = series_of(tmp_path / "out/ball")
    assert told["speed"] == pytest.approx(9.81 * told["time"], rel=1e-6) and len(told) == 5
    assert len(list((tmp_path / "out/ball/text").iterdir())) == 5
    assert cli.answer(["run", "ball.toml", "--quiet", "--overwrite"]) == 0
    assert not list((tmp_path / "out/ball/text").iterdir())


# The page.


def on_page(text, title):
    """Names in the table below a title of the page."""
    part = text.partition(f"<h2>{title}</h2>")[2].partition("<h2>")[0]
    return [html.unescape(name) for name in re.findall(r"<th>(.*?)</th>", part)]


def test_the_page_stands_alone_and_tells_what_was_run(small_run, tmp_path):
    path = view.report(small_run, tmp_path / "page.html", pictures=False)
    text = path.read_text(encoding="utf-8")
    # Nothing is loaded from anywhere: no address but the name of SVG, no link, no import.
    assert re.findall(r"https?://[^\s\"'<]+", text) == ["http://www.w3.org/2000/svg"]
    assert not re.search(r"<link|<img[^>]+src=\"(?!data:)|@import|\bimport\(|fetch\(|XMLHttpRequest|<iframe", text)
    charts = json.loads(re.search(r'id="charts">(.*?)</script>', text, re.S)[1])
    assert [chart["title"] for chart in charts][:3] == ["Energies", "Energy lost so far", "Balance of energy"]
    assert {"Contacts", "Coordination number"} < {chart["title"] for chart in charts}
    told = series_of(small_run)
    assert charts[0]["lines"][0]["values"] == told["kinetic"].tolist() and charts[0]["time"] == told["time"].tolist()
    force = next(chart for chart in charts if chart["title"] == "force:0")
    assert [line["name"] for line in force["lines"]] == ["x", "y", "z"] and force["lines"][0]["unit"] == "N"
    stages = next(chart for chart in charts if chart["title"] == "Wall time of a step by stage")
    assert {line["name"] for line in stages["lines"]} == {"motion of bodies", "neighbour list", "contacts"}
    for word in ("DEM", f"numba {__import__('numba').__version__}", "Nothing to warn of"):
        assert word in text
    names = on_page(text, "Numbers")
    assert {"deepest overlap [m]", "kinetic energy [J]", "coordination number"} <= set(names)
    assert not [name for name in names if "_" in name or "." in name]  # words, with units


def test_the_page_of_a_killed_run_tells_what_it_was_made_with(small_run, tmp_path):
    (tmp_path / "trajectory.h5").write_bytes((small_run / "trajectory.h5").read_bytes())
    text = view.report(tmp_path, pictures=False).read_text(encoding="utf-8")
    for word in ("The run did not end", "DEM", f"numba {__import__('numba').__version__}", "<th>device</th><td>cpu"):
        assert word in text


def test_names_in_a_page_are_text(small_run, tmp_path):
    for name in ("trajectory.h5", "report.json"):
        (tmp_path / name).write_bytes((small_run / name).read_bytes())
    (tmp_path / "run.json").write_text(json.dumps({"scene": "</script><script>alert(1)</script>", "until": 0.16}))
    text = view.report(tmp_path, pictures=False).read_text(encoding="utf-8")
    assert "<script>alert" not in text and "&lt;script&gt;alert(1)" in text


def numbers(**changed):
    told = {"time": 1.0, "dt": 1e-4, "deepest": 0.0, "solver": {}, "crossings": 0, "coincident": 0}
    return told | changed


class Pretend:
    """Stands in for a trajectory with one sphere of radius 0.01 m."""

    def __init__(self, **attributes):
        self.attributes = attributes


@pytest.mark.parametrize(
    ("told", "plan", "words"),
    [
        ({}, {"until": 2.0}, "did not end: its last frame is at 1 s of 2 s"),
        (numbers(), {"until": 2.0}, "was stopped at 1 s, before its end at 2 s"),
        (numbers(deepest=0.002), {}, "overlap by 0.002 m, 20 % of the smallest radius"),
        (
            numbers(solver={"missed": 5, "steps": 100, "worst": 0.3}),
            {},
            r"missed its tolerance in 5 of 100 steps \(5 %\)",
        ),
        (numbers(crossings=7), {}, "7 times two triangulated bodies"),
        (numbers(coincident=2), {}, "2 times two spheres had one centre"),
    ],
)
def test_warnings_in_plain_words(monkeypatch, told, plan, words):
    monkeypatch.setattr(page, "_smallest", lambda run: 0.01)
    steady = {"time": np.linspace(0, 1, 9), "total": np.ones(9), "kinetic": np.ones(9), "potential": np.zeros(9)}
    (said,) = page.warnings(Pretend(), told, plan, steady)
    assert re.search(words, said)
    assert page.warnings(Pretend(), numbers(), {"until": 1.0}, steady) == []


def test_energy_that_comes_from_nowhere_is_told(monkeypatch):
    monkeypatch.setattr(page, "_smallest", lambda run: 0.01)
    growing = {
        "time": np.linspace(0, 1, 9),
        "total": np.linspace(1, 1.5, 9),
        "kinetic": np.ones(9),
        "potential": np.zeros(9),
    }
    (said,) = page.warnings(Pretend(), numbers(), {}, growing)
    assert "its energy grew by 0.5 J, 50.0 %" in said
    assert page.warnings(Pretend(drives={"0": {}}), numbers(), {}, growing) == []


def test_the_command_writes_the_page(small_run, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(page, "_pictures", lambda run, size: ([], "none here"))
    assert cli.answer(["report", str(small_run), "--page", str(tmp_path / "a.html")]) == 0
    told = capsys.readouterr().out
    names = [re.split(r"  +", line)[0] for line in told.splitlines() if line and not line.startswith("page:")]
    text = (tmp_path / "a.html").read_text(encoding="utf-8")
    assert names == [*on_page(text, "Numbers"), *on_page(text, "What was run")]  # the same words
    assert {"deepest overlap [m]", "wall time: neighbour list [s]", "option law"} <= set(names)
    assert not [name for name in names if "." in name]
    assert f"page: {tmp_path / 'a.html'}" in told
    assert "none here" in (tmp_path / "a.html").read_text()
    assert cli.answer(["report", str(small_run), "--numbers"]) == 0
    assert "page" not in capsys.readouterr().out and not (small_run / "report.html").exists()


def test_the_last_frame_of_a_run_that_did_not_end_has_the_same_words(small_run, tmp_path, capsys):
    (tmp_path / "trajectory.h5").write_bytes((small_run / "trajectory.h5").read_bytes())
    assert cli.answer(["report", str(tmp_path), "--numbers"]) == 0
    told = capsys.readouterr().out
    assert (
        "kinetic energy [J]" in told
        and "coordination number" in told
        and re.search(r"^seed of filling +1$", told, re.M)
    )
    series = {
        name: np.array([1.0, 2.0]) for name in ("time", "kinetic", "outlet_0_mass", "outlet_0_count", *words.SOLVER)
    }
    names = [name for name, _ in words.rows(words.of_frame(series))]
    assert {"kinetic energy [J]", "outlet 0: mass [kg]", "solver residual, the worst [m/s]"} <= set(names)
    assert not [name for name in names if "_" in name]


def test_a_recorded_function_may_be_called_as_a_column_of_the_solver():
    series = {"time": np.arange(3.0), "steps": np.array([1.0, 4.0, 9.0])}
    (chart,) = page.charts(series, {}, {})
    assert chart["title"] == "steps" and chart["lines"][0]["values"] == [1.0, 4.0, 9.0]


def test_the_page_tells_title_and_seeds_without_a_plan(tmp_path):
    """A run from Python, after a restart too, and one of a scene file."""
    scene = clast.Scene(title="two heaps")
    for k in range(2):
        scene.fill(clast.Sphere(0.01), count=3, box=((k, 0, 0), (k + 0.1, 0.1, 0.1)), seed=41 + k)
    scene.inlet(clast.Sphere(0.01), box=((0, 1, 0), (1, 2, 1)), rate=1.0, seed=7)
    sim = clast.Simulation(scene, dt=1e-4)
    sim.run(until=2e-4, every=1e-4, output=tmp_path / "a", progress=False)
    again = clast.resume(tmp_path / "a" / "checkpoint.h5")
    again.run(until=4e-4, every=1e-4, output=tmp_path / "b", progress=False)
    for folder in ("a", "b"):
        text = view.report(tmp_path / folder, pictures=False).read_text(encoding="utf-8")
        assert "<h1>two heaps</h1>" in text and "<th>seed of filling</th><td>41, 42</td>" in text
        assert "<th>seed of inlets</th><td>7</td>" in text and "<th>shapes</th><td>Sphere</td>" in text


def test_the_page_has_pictures_of_the_beginning_the_middle_and_the_end(small_run, tmp_path):
    pytest.importorskip("pyvista")
    Image = pytest.importorskip("PIL.Image")
    text = view.report(small_run, tmp_path / "page.html", size=(160, 120)).read_text(encoding="utf-8")
    found = re.findall(r'<img alt="" src="data:image/jpeg;base64,([^"]+)"><figcaption>t = (\S+) s</figcaption>', text)
    assert [float(time) for _, time in found] == pytest.approx([0.0, 0.08, 0.16], abs=1e-4)
    shots = [np.asarray(Image.open(io.BytesIO(base64.b64decode(code))), dtype=int) for code, _ in found]
    assert [shot.shape for shot in shots] == [(120, 160, 3)] * 3
    for one, other in itertools.combinations(shots, 2):
        # More than the noise of the format: bodies are elsewhere in many pixels.
        assert (np.abs(one - other).max(axis=2) > 40).mean() > 0.02

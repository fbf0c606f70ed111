"""The command line: exit codes, one-line faults, nothing half written."""

import json
import re
import subprocess
import sys
import types
import warnings
from pathlib import Path

import pytest
from llvmlite import binding

from clast import DEM, Complementarity, cli, errors
from clast.cli.running import describe
from clast.kernels import reached, shipped, watch
from clast.mpi import team
from clast.scenes.compiling import MADE, WARMED

BALL = "[[bodies]]\nradius = 0.01\nposition = [0, 0, 0.5]\n[run]\ndt = 1e-4\nuntil = 0.01\n"


class Pretend:
    """Stands in for a Simulation: remembers what it was asked, and does what the test wants in `run`."""

    time, steps, dt = 0.0, 0, 1e-5
    scene = types.SimpleNamespace(title="")
    asked: dict
    happening = None

    def run(self, **options):
        Pretend.asked = options
        if self.happening is not None:
            raise self.happening
        (options["output"] / "checkpoint.h5").write_text("state")

    def report(self):
        return "the report"

    def check_times(self, until, every):
        pass

    def check_record(self, names):
        pass


@pytest.fixture
def pretend(monkeypatch, tmp_path):
    from clast.scenes import ready

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(Pretend, "happening", None)
    monkeypatch.setattr(ready, "Simulation", lambda scene, method, **options: Pretend())
    monkeypatch.setattr(ready, "check_overlap", lambda *_: None)
    (tmp_path / "ball.toml").write_text(BALL)
    return tmp_path


RANKS = {
    **{
        "bodies": [40, 20],
        "ghosts": [3, 5],
        "moved": [1, 0],
        "cuts": [1, 1],
        "bytes": [4000, 8000],
        "messages": [9, 9],
    },
    **{"seconds": [2.0, 2.0], "worked": [1.5, 0.5], "waited": [0.2, 1.0]},
}


def test_the_report_of_a_run_on_many_processes_names_balance_ghosts_bytes_and_communication(tmp_path, capsys):
    def told(ranks):
        (tmp_path / "report.json").write_text(json.dumps({"ranks": ranks}))
        assert cli.answer(["report", str(tmp_path)]) == 0
        return dict(re.split(r"  +", line) for line in capsys.readouterr().out.splitlines())

    now = told(RANKS | {"steps": [100, 100]})
    assert now["processes: work of the busiest over the mean"] == "1.5"
    assert now["processes: ghosts of each, bodies that others move"] == "3, 5"
    assert now["processes: bytes a step sent by each"] == "40, 80"
    assert now["processes: share of time in communication of each [%]"] == "10, 50"
    before = told(RANKS)  # of a report that does not tell steps
    assert "processes: bytes a step sent by each" not in before and before["processes: bytes sent by each"]


@pytest.mark.parametrize("first", [True, False])
def test_the_first_process_alone_says_that_kernels_are_compiled(monkeypatch, capsys, first):
    monkeypatch.setattr(team, "leads", lambda: first)
    with cli.running.tell_of_compiling(quiet=False):
        watch._watch.listener("forces", False)
    assert capsys.readouterr().out.count("compil") == 2 * first


def one_line(capsys):
    """What was said on standard error, which must be one line that begins with the program's name."""
    said = capsys.readouterr().err
    assert re.fullmatch(r"clast: [^\n]+\n", said)
    return said


def test_run_writes_into_a_folder_and_says_where(pretend, capsys):
    assert cli.answer(["run", "ball.toml"]) == 0
    assert Pretend.asked == {
        "until": 0.01,
        "every": 0.01 / 50,
        "output": pretend.joinpath("out/ball").relative_to(pretend),
        "progress": True,
        "record": [],
        "text": False,
    }
    said = capsys.readouterr().out
    assert "the report" in said
    assert "clast render out/ball" in said
    assert json.loads((pretend / "out/ball/run.json").read_text())["until"] == 0.01


def test_options_of_the_command_win_over_the_scene(pretend, capsys):
    assert cli.answer(["run", "ball.toml", "--until", "0.5", "--every", "0.1", "--output", "here", "--quiet"]) == 0
    assert (Pretend.asked["until"], Pretend.asked["every"], Pretend.asked["progress"]) == (0.5, 0.1, False)
    assert (pretend / "here/run.json").exists()
    assert capsys.readouterr().out == ""


def test_count_and_seed_reach_the_ready_scene(pretend, monkeypatch):
    from clast import scenes

    asked = {}

    def box(**options):
        asked.update(options)
        return scenes.box(**options)

    monkeypatch.setitem(scenes.SCENES, "box", box)
    assert cli.answer(["run", "box", "--count", "12", "--seed", "5", "--quiet"]) == 0
    assert asked == {"count": 12, "seed": 5}


def test_an_earlier_run_is_not_replaced_unasked(pretend, capsys):
    assert cli.answer(["run", "ball.toml", "--quiet"]) == 0
    assert cli.answer(["run", "ball.toml", "--quiet"]) == 2
    assert "out/ball holds an earlier run; go on with it (clast run --resume out/ball)" in one_line(capsys)
    assert (pretend / "out/ball/checkpoint.h5").exists()
    (pretend / "out/ball/trajectory.h5").write_text("old")
    (pretend / "out/ball/notes.txt").write_text("mine")
    assert cli.answer(["run", "ball.toml", "--quiet", "--overwrite"]) == 0
    assert not (pretend / "out/ball/trajectory.h5").exists()
    assert (pretend / "out/ball/notes.txt").exists()


FAULTS = {
    ("run",): "which scene? choose one of the names above, or give a scene file",
    ("run", "drumm"): "unknown scene 'drumm'; did you mean 'drum'?",
    ("run", "none.toml"): "none.toml: no such file",
    ("run", "wrong.toml"): "wrong.toml: bodies[0].radius = -1.0: must be > 0",
    ("run", "ball.toml", "--until", "-1"): "'--until': '-1' must be a number above 0",
    ("run", "ball.toml", "--dt", "nan"): "'--dt': 'nan' must be a number above 0",
    ("run", "ball.toml", "--until", "soon"): "'--until': 'soon' must be a number above 0",
    ("run", "ball.toml", "--count", "3"): "--count is for ready scenes",
    ("run", "box", "--count", "0"): "'--count': '0' must be a whole number, 1 or more",
    ("run", "box", "--seed", "-1"): "'--seed': '-1' must be a whole number, 0 or more",
    ("run", "ball.toml", "--threads", "0"): "'--threads': '0' must be a whole number, 1 or more",
    ("run", "ball.toml", "--threads", "100000"): "--threads: threads = 100000: choose 1 to",
    ("run", "ball.toml", "--device", "tpu"): "--device tpu: choose cpu or cuda",
    ("run", "ball.toml", "--output", "ball.toml"): "--output ball.toml: is a file",
    ("run", "ball.toml", "--resume", "out"): "leave out SCENE",
    ("run", "--resume", "nowhere"): "--resume nowhere: there is no checkpoint",
    ("run", "ball.toml", "--unitl", "3"): "--unitl",
    ("walk",): "walk",
    ("report", "nowhere"): "nowhere: no such folder",
    ("report", "."): ".: there is no trajectory.h5 in it",
    ("render", "nowhere"): "nowhere: no such folder",
    ("render", ".", "--picture", "a.png", "--movie", "a.gif"): "--picture and --movie: one at a time",
    ("view", "ball.toml", "--port", "65536"): "port 65536: must be from 0 to 65535",
    ("view", "ball.toml", "--address", "no such name"): "address 'no such name': this machine cannot listen there",
}


@pytest.mark.parametrize(("arguments", "message"), FAULTS.items(), ids=[" ".join(words) for words in FAULTS])
def test_wrong_input_is_one_line_and_exit_code_2_and_writes_nothing(pretend, capsys, arguments, message):
    (pretend / "wrong.toml").write_text(BALL.replace("0.01\nposition", "-1.0\nposition"))
    before = sorted(pretend.iterdir())
    assert cli.answer(list(arguments)) == 2
    assert message in one_line(capsys)
    assert sorted(pretend.iterdir()) == before


def test_a_run_that_is_stopped_before_its_scene_is_there_says_so(pretend, capsys, monkeypatch):
    def stop(*_):
        raise KeyboardInterrupt

    before = sorted(pretend.iterdir())
    monkeypatch.setattr(cli.running, "describe", stop)
    assert cli.answer(["run", "ball.toml"]) == 130
    assert "interrupted before the scene was built; nothing was written" in one_line(capsys)
    assert sorted(pretend.iterdir()) == before


@pytest.mark.parametrize(("code", "at_once"), [(130, [130]), (2, []), (0, [])])
def test_who_interrupts_a_command_does_not_wait_while_python_tidies_up(monkeypatch, code, at_once):
    left = []
    monkeypatch.setattr(cli, "answer", lambda arguments: code)
    monkeypatch.setattr(cli.os, "_exit", left.append)
    with pytest.raises(SystemExit) as leaving:
        cli.main([])
    assert leaving.value.code == code
    assert left == at_once


@pytest.mark.parametrize("fault", [errors.Diverged("body 3 at t = 0.1 s: too fast"), errors.Escaped("body 4 left")])
def test_a_run_that_fails_says_why_and_leaves_with_1(pretend, capsys, monkeypatch, fault):
    monkeypatch.setattr(Pretend, "happening", fault)
    assert cli.answer(["run", "ball.toml", "--quiet"]) == 1
    assert str(fault) in one_line(capsys)


def test_an_interrupted_run_says_how_to_go_on_and_leaves_with_130(pretend, capsys, monkeypatch):
    monkeypatch.setattr(Pretend, "happening", KeyboardInterrupt())
    assert cli.answer(["run", "ball.toml", "--quiet"]) == 130
    assert "nothing had been saved yet" in one_line(capsys)
    (pretend / "out/ball/checkpoint.h5").write_text("state")
    assert cli.answer(["run", "ball.toml", "--quiet", "--overwrite"]) == 130
    capsys.readouterr()
    monkeypatch.setattr(
        cli.running, "start", lambda *_: (Pretend(), Path("out/ball"), {"scene": "", "until": 1, "every": 1})
    )
    (pretend / "out/ball/checkpoint.h5").write_text("state")
    assert cli.answer(["run", "ball.toml", "--quiet"]) == 130
    assert "interrupted at t = 0 s; go on with: clast run --resume out/ball" in one_line(capsys)


def test_a_warning_of_the_simulation_is_one_line(pretend, capsys, monkeypatch):
    from clast.scenes import ready

    def doubtful(scene, method, **options):
        warnings.warn("dt is large", stacklevel=2)
        return Pretend()

    monkeypatch.setattr(ready, "Simulation", doubtful)
    assert cli.answer(["run", "ball.toml", "--quiet"]) == 0
    assert one_line(capsys) == "clast: warning: dt is large\n"


def test_a_mistake_of_the_package_keeps_its_traceback(pretend, monkeypatch):
    monkeypatch.setattr(Pretend, "happening", ZeroDivisionError("ours"))
    with pytest.raises(ZeroDivisionError):
        cli.answer(["run", "ball.toml", "--quiet"])


def test_resume_takes_the_plan_of_the_folder_and_asks_for_a_later_end(pretend, capsys, monkeypatch):
    from clast.run import simulation

    assert cli.answer(["run", "ball.toml", "--quiet"]) == 0
    monkeypatch.setattr(simulation, "resume", lambda path, **_: Pretend())
    assert cli.answer(["run", "--resume", "out/ball", "--quiet"]) == 0
    assert (Pretend.asked["until"], str(Pretend.asked["output"])) == (0.01, "out/ball")
    assert cli.answer(["run", "--resume", "out/ball/checkpoint.h5", "--until", "7", "--quiet"]) == 0
    assert Pretend.asked["until"] == 7.0
    monkeypatch.setattr(Pretend, "time", 7.0)
    assert cli.answer(["run", "--resume", "out/ball"]) == 2
    assert "out/ball is at t = 7 s already; to go on say a later time, --until 14" in one_line(capsys)


def test_a_damaged_checkpoint_gives_way_to_the_one_before(pretend, capsys, monkeypatch):
    from clast.run import simulation

    assert cli.answer(["run", "ball.toml", "--quiet"]) == 0
    (pretend / "out/ball/checkpoint.previous.h5").write_text("state")

    def resume(path, **_):
        if path.name == "checkpoint.h5":
            raise errors.Damaged(f"{path} fails its checksum")
        return Pretend()

    monkeypatch.setattr(simulation, "resume", resume)
    assert cli.answer(["run", "--resume", "out/ball", "--quiet"]) == 0
    assert "fails its checksum; going on from checkpoint.previous.h5" in one_line(capsys)


def test_report_prints_every_number(tmp_path, capsys):
    (tmp_path / "report.json").write_text('{"steps": 12, "energy": {"kinetic": 0.25}}')
    assert cli.answer(["report", str(tmp_path)]) == 0
    assert capsys.readouterr().out.splitlines() == ["steps               12", "kinetic energy [J]  0.25"]
    (tmp_path / "report.json").write_text('{"steps": ')
    assert cli.answer(["report", str(tmp_path)]) == 2
    assert "report.json is damaged" in one_line(capsys)


def test_help_answers_without_the_heavy_packages():
    code = (
        "import sys, clast.cli; code = clast.cli.answer(['--help']);"
        "sys.exit(code or any(name in sys.modules for name in ('numba', 'scipy', 'pyvista', 'pydantic')))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "render" in done.stdout


def test_names_known_to_the_command_line_are_those_of_the_ready_scenes():
    from clast.scenes import SCENES

    assert tuple(SCENES) == cli.NAMES


def test_a_real_run_is_reported_and_resumed(tmp_path, capsys):
    (tmp_path / "ball.toml").write_text(BALL)
    out = str(tmp_path / "out")
    assert cli.answer(["run", str(tmp_path / "ball.toml"), "--output", out]) == 0
    assert cli.answer(["report", out]) == 0
    assert cli.answer(["run", "--resume", out, "--until", "0.02", "--quiet"]) == 0
    assert "100 %" in capsys.readouterr().err


HERE = {
    "versions": reached.VERSIONS,
    "triple": binding.get_process_triple(),
    "cpu": "x86-64-v3",
    "features": "+one,+two",
}
FITS = {  # what the package says of its kernels, and in which surroundings: what `clast check` says
    "fits": (HERE, {}, "1 kernels for x86-64-v3, used: they fit this processor, Python 3."),
    "another Python": (
        HERE | {"versions": "(3, 1, 4) " + reached.VERSIONS.split(") ")[1]},
        {},
        "1 kernels, not used: they are for Python 3.1.4, here is Python 3.",
    ),
    "another NumPy": (
        HERE | {"versions": reached.VERSIONS.rsplit(" ", 1)[0] + " 1.0.7"},
        {},
        "1 kernels, not used: they are for NumPy 1.0.7, here is NumPy ",
    ),
    "another system": (HERE | {"triple": "m68k-amiga"}, {}, "1 kernels, not used: they are for m68k-amiga, this is "),
    "an older processor": (
        HERE | {"features": "+one,+three,+four"},
        {},
        "not used: they are for x86-64-v3, this processor lacks three, four;",
    ),
    "left out": (HERE, {"CLAST_SHIPPED": "0"}, "1 kernels, not used: CLAST_SHIPPED=0 leaves them out"),
    "none": (None, {}, "none in this package; a wheel of make wheel has those of the ready scenes"),
}


@pytest.mark.parametrize("case", FITS)
def test_check_says_in_one_line_whether_kernels_of_the_package_fit(case, tmp_path, capsys, monkeypatch):
    known, surroundings, expected = FITS[case]
    monkeypatch.setattr(shipped, "FOLDER", tmp_path)
    monkeypatch.setattr(shipped.binding, "get_host_cpu_features", lambda: {"one": True, "two": True})
    monkeypatch.delenv("CLAST_SHIPPED", raising=False)
    for name, value in surroundings.items():
        monkeypatch.setenv(name, value)
    (tmp_path / "row.1.nbi").touch()
    if known is not None:
        (tmp_path / shipped.LEVEL).write_text(json.dumps(known))
    assert cli.answer(["check"]) == 0
    (line,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith("shipped")]
    assert expected in line
    # And so it is: what is said is what the store of kernels goes by.
    assert (shipped.level.__wrapped__(reached.VERSIONS) is not None) == (case == "fits")


def test_check_compiles_nothing_unless_told(capsys, monkeypatch):
    asked = []
    monkeypatch.setattr(cli.starting, "compile_kernels", lambda: asked.append(1))
    assert cli.answer(["check"]) == 0
    assert "clast check --compile" in capsys.readouterr().out
    assert asked == []
    assert cli.answer(["check", "--compile"]) == 0
    assert asked == [1]


def test_scenes_that_are_compiled_first_are_there():
    assert set(WARMED) <= set(cli.NAMES) <= set(MADE)


# What there is to start from.


@pytest.mark.parametrize(("given", "kind"), [("hard", Complementarity), ("forces", DEM), (None, DEM)])
def test_a_scene_that_goes_by_both_methods_is_solved_by_the_one_that_is_asked_for(given, kind):
    assert isinstance(describe("all-shapes", 12, 1, method=given).method, kind)
    ready = describe("drum", 10, None, method="forces")
    assert isinstance(ready.method, DEM)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (
            ["drum", "--count", "10", "--method", "hard"],
            "--method hard: drum goes by --method forces alone; all-shapes by both",
        ),
        (["silo", "--count", "10", "--method", "forces"], "--method forces: silo goes by --method hard alone"),
        (["all-shapes", "--method", "dem"], "--method dem: choose forces or hard"),
        (["ball.toml", "--method", "hard"], "--method is for ready scenes; ball.toml says its own numbers"),
        (["--resume", "out", "--method", "hard"], "--resume goes on with a run as it was; leave out --method"),
    ],
)
def test_a_method_that_a_scene_does_not_have_is_told(pretend, capsys, words, told):
    with pytest.raises(SystemExit) as left:
        cli.main(["run", *words])
    assert left.value.code == 2
    assert told in one_line(capsys)


def test_scenes_and_run_alone_list_what_can_be_run(capsys):
    assert cli.answer(["scenes"]) == 0
    listed = capsys.readouterr().out
    assert cli.answer(["run"]) == 2
    told = capsys.readouterr()
    for name in cli.NAMES:
        assert re.search(rf"^{name} +[0-9,]+  [A-Z].+[.]$", listed, re.M), name
        assert re.search(rf"^{name} ", told.out, re.M)
    assert "which scene?" in told.err


def test_new_files_run(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert cli.answer(["new", "heap"]) == 0
    told = capsys.readouterr().out
    assert "wrote heap.py" in told and "clast run heap.toml" in told
    script = (tmp_path / "heap.py").read_text()
    assert "NAME" not in script + (tmp_path / "heap.toml").read_text()
    exec(compile(script.replace("until=0.5", "until=0.02"), "heap.py", "exec"), {})
    assert (tmp_path / "out/heap/report.json").exists() and "300 free" in capsys.readouterr().out
    assert cli.answer(["run", "heap.toml", "--until", "0.02", "--output", "out/file", "--quiet"]) == 0
    first, second = (json.loads((tmp_path / f"out/{name}/report.json").read_text()) for name in ("heap", "file"))
    assert first["energy"] == second["energy"]  # both say the same
    assert cli.answer(["new", "heap"]) == 2 and "heap.py is there already" in capsys.readouterr().err
    assert cli.answer(["new", "../heap"]) == 2 and cli.answer(["new", "h", "--folder", "nowhere"]) == 2


def test_the_rate_of_a_movie_is_no_time(capsys):
    assert cli.answer(["render", "--help"]) == 0
    (line,) = [line for line in capsys.readouterr().out.splitlines() if "--rate" in line]
    assert "RATE" in line and "TIME" not in line

"""The command line: clast run | render | report | check.

Heavy packages are imported inside the commands, so that `clast --help` answers at once.
"""

import json
import math
import os
import signal
import sys
import threading
import warnings
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

# The keys of scenes.SCENES, known here without importing it.
NAMES = (
    *("drum", "all-shapes", "hopper", "pile", "box", "ellipsoid-box", "ellipsoid-hopper"),
    *("cube-drum", "gravity-packing", "rock-drum"),
    *("two-particles", "granulate"),
    *("silo", "tank", "shaker", "mixer", "floating-ball"),
    *("chain-on-gravel", "tracked-vehicle"),
)
RESULTS = (
    *("checkpoint.h5", "checkpoint.previous.h5", "trajectory.h5", "trajectory.journal.h5"),
    *("report.json", "series.csv", "picture.png", "run.json"),
)
OK, FAILED, WRONG_INPUT, INTERRUPTED = 0, 1, 2, 130

app = typer.Typer(
    name="clast",
    help="Contacts between very many bodies, and how they move.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


class Wrong(Exception):
    """What the user typed cannot be done; the message says what to type instead."""


class Stopped(Exception):
    """The user interrupted a run; the message says how to go on."""


def main(arguments=None):
    """Run a command and leave with its exit code: 0 done, 1 the run failed, 2 wrong input, 130 interrupted."""
    code = answer(arguments)
    watch = sys.modules.get("clast.kernels.watch")
    if watch is not None and watch.abandoned():
        # The compiler is at work in another thread; to wait for it takes long, to take the ground from under it ends badly.
        sys.stdout.flush()
        os._exit(code)
    sys.exit(code)


def answer(arguments=None):
    """Run a command and return its exit code; faults are one line on standard error, without a traceback."""
    from .errors import ClastError, Damaged, SceneError, Unavailable

    try:
        code = app(arguments, prog_name="clast", standalone_mode=False) or OK
        return complain("interrupted", INTERRUPTED) if code == INTERRUPTED else code
    except (KeyboardInterrupt, typer.Abort):
        return complain("interrupted", INTERRUPTED)
    except Stopped as stop:
        return complain(stop, INTERRUPTED)
    except typer.Exit as leave:
        return leave.exit_code
    except (Wrong, SceneError, Damaged, Unavailable) as fault:
        return complain(fault, WRONG_INPUT)
    except ClastError as fault:
        return complain(fault, FAILED)
    except (FileNotFoundError, IsADirectoryError, NotADirectoryError, PermissionError) as fault:
        return complain(f"{fault.filename}: {fault.strerror}" if fault.filename else fault, WRONG_INPUT)
    except OSError as fault:  # a full disk, say
        return complain(f"{fault.filename}: {fault.strerror}" if fault.filename else fault, FAILED)
    except Exception as fault:
        if not hasattr(fault, "format_message"):  # a mistake in clast: the traceback is what a report needs
            raise
        message = fault.format_message()  # empty after `clast` alone, which has printed its help
        return complain(message, WRONG_INPUT) if message.strip() else WRONG_INPUT


def complain(message, code):
    """Print one line on standard error and return the exit code."""
    print("clast: " + " ".join(str(message).split()), file=sys.stderr)
    return code


@contextmanager
def typed_by_user(place=""):
    """Within the block, what the package does not accept is what the user typed."""
    from .errors import SceneError

    try:
        yield
    except SceneError:
        raise
    except (ValueError, TypeError) as fault:
        raise Wrong(f"{place}: {fault}" if place else str(fault)) from fault


def above_zero(text: str) -> float:
    """The finite number above 0 that the user typed."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not (math.isfinite(value) and value > 0.0):
        raise typer.BadParameter(f"{text!r} must be a number above 0")
    return value


def whole(least):
    """A reader of whole numbers of at least `least`."""

    def read(text: str) -> int:
        try:
            value = int(text)
        except ValueError:
            value = least - 1
        if value < least:
            raise typer.BadParameter(f"{text!r} must be a whole number, {least} or more")
        return value

    return read


def seconds(words):
    """An option that is a time."""
    return typer.Option(parser=above_zero, metavar="TIME", help=words)


def number(least, words):
    """An option that is a whole number."""
    return typer.Option(parser=whole(least), metavar="N", help=words)


def tell_version(asked: bool):
    """Print the version and leave."""
    if asked:
        from importlib.metadata import version

        print(f"clast {version('clast')}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=tell_version, is_eager=True, help="print the version and leave")
    ] = False,
):
    """Contacts between very many bodies, and how they move."""


@app.command()
def run(
    what: Annotated[
        str | None, typer.Argument(metavar="SCENE", help=f"{', '.join(NAMES)}, or a scene file FILE.toml")
    ] = None,
    until: Annotated[float | None, seconds("end of the run, in s of simulated time")] = None,
    every: Annotated[float | None, seconds("time between frames, in s")] = None,
    output: Annotated[Path | None, typer.Option(help="folder for the results; out/NAME if left out")] = None,
    dt: Annotated[float | None, seconds("time step, in s")] = None,
    count: Annotated[int | None, number(1, "number of bodies of a ready scene")] = None,
    seed: Annotated[int | None, number(0, "seed of a ready scene")] = None,
    threads: Annotated[int | None, number(1, "CPU threads; all if left out")] = None,
    resume: Annotated[Path | None, typer.Option(help="go on with the run in this folder or checkpoint file")] = None,
    device: Annotated[str, typer.Option(help="cpu or cuda")] = "cpu",
    overwrite: Annotated[bool, typer.Option("--overwrite", help="replace an earlier run in the output folder")] = False,
    outside: Annotated[
        bool, typer.Option("--outside", help="a scene file may read files that are not below its own folder")
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="no progress, no report")] = False,
):
    """Run a scene and write its results into a folder."""
    if device not in ("cpu", "cuda"):
        raise Wrong(f"--device {device}: choose cpu or cuda")
    set_threads(threads)
    with as_interrupt():
        if resume is None:
            ready = describe(what, count, seed, outside)
            sim, output, plan = start(ready, what, until, every, output, dt, device, overwrite)
        else:
            fixed = {"SCENE": what, "--dt": dt, "--count": count, "--seed": seed, "--overwrite": overwrite or None}
            given = [name for name, value in fixed.items() if value is not None]
            if given:
                raise Wrong(f"--resume goes on with a run as it was; leave out {', '.join(given)}")
            sim, output, plan = go_on(resume, until, every, output, device)
        carry_out(sim, output, plan, quiet)


@contextmanager
def as_interrupt():
    """Within the block SIGTERM does what Ctrl-C does, except where somebody else listens."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL if before is None else before)


def set_threads(count):
    """Use this many CPU threads; must come before anything is computed."""
    if count is None:
        return
    from .kernels import backend

    with typed_by_user("--threads"):
        backend.set_threads(count)


def describe(what, count, seed, outside=False):
    """The ready scene of that name, or the one in that file; outside: which may name files of other folders."""
    from .errors import nearest

    if what is None:
        raise Wrong(f"which scene? choose one of {', '.join(NAMES)}, or give a scene file")
    options = {name: value for name, value in (("count", count), ("seed", seed)) if value is not None}
    if what in NAMES:
        from .scenes import SCENES

        with typed_by_user(what):
            return SCENES[what](**options)
    if not (what.endswith(".toml") or Path(what).is_file()):
        guess = nearest(what, NAMES)
        hint = f"did you mean {guess!r}? " if guess else ""
        raise Wrong(f"unknown scene {what!r}; {hint}(known: {', '.join(NAMES)}, or a file that ends in .toml)")
    if options:
        raise Wrong(f"--{next(iter(options))} is for ready scenes; {what} says its own numbers, change them there")
    from .scenefile import load

    return load(what, outside=outside)


def start(ready, what, until, every, output, dt, device, overwrite):
    """A new run: (simulation, folder, plan). Nothing is written before every check has passed."""
    name = what if what in NAMES else Path(what).stem
    output = Path("out") / name if output is None else output
    if output.exists() and not output.is_dir():
        raise Wrong(f"--output {output}: is a file; give a folder")
    earlier = [file for file in RESULTS if (output / file).exists()]
    if earlier and not overwrite:
        raise Wrong(
            f"{output} holds an earlier run; go on with it (clast run --resume {output}), "
            f"replace it (--overwrite), or choose another folder (--output)"
        )
    stopped = False
    with typed_by_user(ready.source), warnings.catch_warnings(record=True) as doubts:
        warnings.simplefilter("always", UserWarning)
        try:
            sim = ready.simulation(dt=dt, device=device)
        except KeyboardInterrupt:  # while kernels were compiled for a look at the scene, which will be taken later
            sim, stopped = ready.simulation(dt=dt, device=device, check=False), True
    for doubt in doubts:
        complain(f"warning: {doubt.message}", OK)
    plan = {
        "scene": ready.title,
        "until": ready.until if until is None else until,
        "every": min(ready.every, until or ready.until) if every is None else every,
    }
    check_times(sim, plan)
    for file in earlier:
        (output / file).unlink()
    if stopped:
        from .run.runner import write_checkpoint

        keep_plan(output, plan | {"overlap_limit": ready.overlap_limit})
        write_checkpoint(sim, output / "checkpoint.h5", begun=False)
        raise Stopped(f"interrupted while kernels were compiled at t = 0 s; go on with: clast run --resume {output}")
    return sim, output, plan


def check_times(sim, plan):
    """Refuse what no run can follow before anything is written."""
    with typed_by_user():
        sim.check_times(plan["until"], plan["every"])


def go_on(path, until, every, output, device):
    """The run in a folder or checkpoint file, as it was saved last: (simulation, folder, plan)."""
    from .errors import Damaged
    from .run.simulation import resume

    path = Path(path)
    file = path / "checkpoint.h5" if path.is_dir() else path
    previous = file.with_name(f"{file.stem}.previous{file.suffix}")
    if not file.exists() and not previous.exists():
        raise Wrong(f"--resume {path}: there is no checkpoint; give the folder of a run or its checkpoint.h5")
    options = {} if device == "cpu" else {"device": device}
    try:
        with typed_by_user():
            sim = resume(file if file.exists() else previous, **options)
    except Damaged as fault:
        if not previous.exists():
            raise
        complain(f"{fault}; going on from {previous.name}", OK)
        sim = resume(previous, **options)
    output = file.parent if output is None else output
    plan = {"scene": "resumed run"}
    if (file.parent / "run.json").exists():
        with typed_by_user(str(file.parent / "run.json")):
            plan.update(json.loads((file.parent / "run.json").read_text(encoding="utf-8")))
    plan.update({name: value for name, value in (("until", until), ("every", every)) if value is not None})
    if "until" not in plan:
        raise Wrong(f"--resume {path}: until when? add --until T")
    if plan["until"] <= sim.time:
        raise Wrong(f"{path} is at t = {sim.time:g} s already; to go on say a later time, --until {2.0 * sim.time:g}")
    plan.setdefault("every", max((plan["until"] - sim.time) / 50.0, sim.dt))
    check_times(sim, plan)
    limit = plan.pop("overlap_limit", None)
    if limit is not None and sim.stepper.fresh:
        from .scenes import check_overlap

        check_overlap(sim.scene, limit)
    return sim, output, plan


def keep_plan(output, plan):
    """Write what a run is to do into its folder."""
    output.mkdir(parents=True, exist_ok=True)
    note = output / "run.writing.json"
    note.write_text(json.dumps(plan, indent=2) + "\n", encoding="utf-8")
    note.replace(output / "run.json")


def carry_out(sim, output, plan, quiet):
    """Run to the end, then tell the numbers and where everything is."""
    keep_plan(output, plan)
    if not quiet:
        print(f"{plan['scene']}: to t = {plan['until']:g} s in steps of {sim.dt:.3g} s, results in {output}")
    try:
        sim.run(until=plan["until"], every=plan["every"], output=output, progress=not quiet)
    except KeyboardInterrupt as stop:
        from .kernels import watch

        go = f"go on with: clast run --resume {output}"
        saved = go if (output / "checkpoint.h5").exists() else "nothing had been saved yet"
        when = " while kernels were compiled" if isinstance(stop, watch.Stopped) else ""
        raise Stopped(f"interrupted{when} at t = {sim.time:.6g} s; {saved}") from None
    if not quiet:
        print(sim.report())
        print(f"\nlook at it: clast render {output}\nnumbers:    clast report {output}")


@app.command()
def render(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="folder of a run")],
    picture: Annotated[Path | None, typer.Option(help="picture of one frame; DIR/picture.png if left out")] = None,
    movie: Annotated[Path | None, typer.Option(help="movie of all frames, .gif or .mp4")] = None,
    colour: Annotated[str, typer.Option(help="what the colour shows: speed, size, ...")] = "speed",
    frame: Annotated[int, typer.Option(help="number of the frame of the picture; -1 is the last")] = -1,
):
    """Make a picture or a movie of a run."""
    from . import view

    if picture is not None and movie is not None:
        raise Wrong("--picture and --movie: one at a time")
    file = trajectory(folder)
    target = movie or picture or folder / "picture.png"
    if movie is not None and movie.suffix.lower() not in (".gif", ".mp4"):
        raise Wrong(f"--movie {movie}: must end in .gif or .mp4")
    if not target.parent.is_dir():
        raise Wrong(f"{target}: there is no folder {target.parent}; make it first")
    with typed_by_user():
        if movie is not None:
            view.movie(file, movie, colour=colour)
        else:
            view.picture(file, target, frame=frame, colour=colour)
    print(target)


def trajectory(folder):
    """The trajectory file of a run folder."""
    file = folder / "trajectory.h5"
    if not folder.is_dir():
        raise Wrong(f"{folder}: no such folder; give the folder of a run")
    if not file.is_file():
        raise Wrong(f"{folder}: there is no trajectory.h5 in it; give the folder of a run")
    return file


@app.command()
def report(folder: Annotated[Path, typer.Argument(metavar="DIR", help="folder of a run")]):
    """Print the numbers of a run."""
    file = folder / "report.json"
    if file.is_file():
        with typed_by_user(f"{file} is damaged"):
            numbers = json.loads(file.read_text(encoding="utf-8"))
        if not isinstance(numbers, dict):
            raise Wrong(f"{file} is not a report of a run")
    else:
        numbers = so_far(folder)
    rows = list(flat(numbers))
    width = max((len(name) for name, _ in rows), default=0)
    for name, value in rows:
        values = value if isinstance(value, list) else [value]
        print(f"{name:<{width}}  " + ", ".join(f"{v:.6g}" if isinstance(v, float) else str(v) for v in values))


def so_far(folder):
    """What is known of a run that is under way or was killed: the numbers of its last frame."""
    from .files.trajectory import Trajectory

    with Trajectory(trajectory(folder)) as frames:
        series = frames.series()
    if not len(series["time"]):
        raise Wrong(f"{folder}: the run has no frame yet; go on: clast run --resume {folder}")
    complain(f"{folder}: the run did not end; these are the numbers of its last frame", OK)
    return {"frames": len(series["time"])} | {name: column[-1].item() for name, column in series.items()}


def flat(numbers, prefix=""):
    """(name, value) of a nested dict, with names joined by dots."""
    for name, value in numbers.items():
        if isinstance(value, dict):
            yield from flat(value, f"{prefix}{name}.")
        else:
            yield prefix + name, value


OPTIONAL = {
    "pyvista": ("view", "pictures and movies"),
    "matplotlib": ("view", "plots"),
    "numba_cuda": ("gpu", "kernels on CUDA devices"),
}


@app.command()
def check(
    compile_all: Annotated[
        bool, typer.Option("--compile", help="compile the kernels of all ready scenes ahead of the first run")
    ] = False,
):
    """Show what this machine offers; with --compile, compile all kernels ahead of the first run."""
    from importlib.metadata import version
    from importlib.util import find_spec

    import numba

    from .kernels import backend

    settings = vars(numba.config)  # numba makes them when it is imported
    print(f"clast       {version('clast')}, Python {sys.version.split()[0]}, numba {numba.__version__}")
    print(f"device      cpu, {numba.get_num_threads()} threads of {settings['NUMBA_NUM_THREADS']}")
    print(f"threading   {numba.threading_layer()}, first found of {backend.layers()}")
    cache = settings["CACHE_DIR"] or Path(__file__).parent / "__pycache__"
    print(f"cache       {cache}" + ("" if writable(Path(cache)) else " (not writable: set NUMBA_CACHE_DIR)"))
    for name, (extra, purpose) in OPTIONAL.items():
        state = "present" if find_spec(name) else f"missing, for {purpose}: pip install 'clast[{extra}]'"
        print(f"{name:<11} {state}")
    if compile_all:
        compile_kernels()
    else:
        print("kernels     compiled when first needed; clast check --compile does it for all ready scenes at once")


def writable(folder):
    """Whether files can be made in the folder, or in the nearest one above that exists."""
    while not folder.exists():
        folder = folder.parent
    return os.access(folder, os.W_OK)


def compile_kernels():
    """Compile the kernels of every ready scene, one process a core, with a bar."""
    from .scenes.compiling import compile_scenes

    try:
        with as_interrupt():
            new = compile_scenes()
    except KeyboardInterrupt:
        raise Stopped("interrupted; kernels that were compiled so far are kept") from None
    print(f"kernels     {f'{new} compiled and kept' if new else 'all ready, nothing to compile'}")

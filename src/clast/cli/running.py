"""clast run: a new run, or one that goes on."""

import json
import time as clock
import warnings
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from .common import (
    NAMES,
    OK,
    RESULTS,
    Stopped,
    Wrong,
    app,
    complain,
    number,
    seconds,
    typed_by_user,
)

METHODS = {"forces": "dem", "hard": "hard"}  # what is typed, and what scenes call it


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
    method: Annotated[
        str | None,
        typer.Option(help="forces or hard: by contact forces or hard contacts, where a ready scene has both"),
    ] = None,
    threads: Annotated[int | None, number(1, "CPU threads; all if left out")] = None,
    resume: Annotated[Path | None, typer.Option(help="go on with the run in this folder or checkpoint file")] = None,
    device: Annotated[str, typer.Option(help="cpu or cuda")] = "cpu",
    record: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="keep this number over time, speed, torque:0 or ledger say; repeat it"),
    ] = None,
    text: Annotated[bool, typer.Option("--text", help="a text file with places and radii at each frame")] = False,
    live: Annotated[bool, typer.Option("--live", help="look on in the browser: pause, single step, continue")] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="replace an earlier run in the output folder")] = False,
    outside: Annotated[
        bool, typer.Option("--outside", help="a scene file may read files that are not below its own folder")
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="no progress, no report")] = False,
):
    """Run a scene and write its results into a folder."""
    if device not in ("cpu", "cuda"):
        raise Wrong(f"--device {device}: choose cpu or cuda")
    if method is not None and method not in METHODS:
        raise Wrong(f"--method {method}: choose {' or '.join(METHODS)}")
    if what is None and resume is None:
        print(listing())
        raise Wrong("which scene? choose one of the names above, or give a scene file: clast run my_scene.toml")
    set_threads(threads)
    if resume is None:
        try:
            with telling_doubts():
                ready = with_ledger(describe(what, count, seed, outside, method), record)
        except KeyboardInterrupt:  # filling takes kernels too
            raise Stopped(
                "interrupted before the scene was built; nothing was written: give the command again"
            ) from None
        sim, output, plan = start(ready, what, until, every, output, dt, device, overwrite, quiet)
        plan |= settings(what, count, seed)
        if method is not None:
            plan["method"] = method
    else:
        fixed = {
            "SCENE": what,
            "--dt": dt,
            "--count": count,
            "--seed": seed,
            "--method": method,
            "--overwrite": overwrite or None,
        }
        given = [name for name, value in fixed.items() if value is not None]
        if given:
            raise Wrong(f"--resume goes on with a run as it was; leave out {', '.join(given)}")
        sim, output, plan = go_on(resume, until, every, output, device)
    plan |= {
        "record": [*(record if record is not None else plan.get("record", []))],
        "text": text or plan.get("text", False),
    }
    carry_out(sim, output, plan, quiet, live)


def settings(what, count, seed):
    """Count and seed of a ready scene, asked for or its own; nothing of a scene file."""
    if what not in NAMES:
        return {}
    import inspect

    from ..scenes import SCENES

    own = inspect.signature(SCENES[what]).parameters
    asked = {"count": count, "seed": seed}
    return {name: own[name].default if value is None else value for name, value in asked.items() if name in own}


def listing():
    """What can be run, a line each."""
    import inspect

    from ..scenes import SCENES

    lines = []
    for name, function in SCENES.items():
        count = inspect.signature(function).parameters["count"].default
        told = (inspect.getdoc(function) or "").split("\n\n")[0].replace("\n", " ")
        lines.append(f"{name:<17} {count:>6,}  {told}")
    return "\n".join(["ready scenes, with their number of bodies (--count):", "", *lines])


def set_threads(count):
    """Use this many CPU threads; must come before anything is computed."""
    if count is None:
        return
    from ..kernels import backend

    with typed_by_user("--threads"):
        backend.set_threads(count)


def with_ledger(ready, record):
    """The ready scene, with a ledger where one of the names to record needs it."""
    from ..run.recording import OF_LEDGER

    if not {*(record or ())} & {*OF_LEDGER}:
        return ready
    return replace(ready, method=replace(ready.method, ledger=True))


def both_methods():
    """Names of the ready scenes that go by contact forces and by hard contacts."""
    import inspect

    from ..scenes import SCENES

    return [name for name, function in SCENES.items() if "method" in inspect.signature(function).parameters]


def check_method(what, method, ready):
    """Raise unless the ready scene of this name is solved as asked for, by "forces" or "hard"."""
    from ..dem.method import DEM

    own = "forces" if isinstance(ready.method, DEM) else "hard"
    if method not in (None, own):
        raise Wrong(f"--method {method}: {what} goes by --method {own} alone; {', '.join(both_methods())} by both")


def describe(what, count, seed, outside=False, method=None):
    """The ready scene of that name, or the one in that file; outside: which may name files of other folders; method: a key of METHODS, or None."""
    from ..errors import nearest

    options = {name: value for name, value in (("count", count), ("seed", seed)) if value is not None}
    if what in NAMES:
        from ..scenes import SCENES

        if method is not None and what in both_methods():
            options["method"] = METHODS[method]
        with typed_by_user(what):
            ready = SCENES[what](**options)
        check_method(what, method, ready)
        return ready
    if not (what.endswith(".toml") or Path(what).is_file()):
        guess = nearest(what, NAMES)
        hint = f"; did you mean {guess!r}?" if guess else ""
        raise Wrong(f"unknown scene {what!r}{hint} (known: {', '.join(NAMES)}, or a file that ends in .toml)")
    if method is not None:
        options["method"] = method
    if options:
        raise Wrong(f"--{next(iter(options))} is for ready scenes; {what} says its own numbers, change them there")
    from ..scenefile import load

    return load(what, outside=outside)


@contextmanager
def tell_of_compiling(quiet):
    """Within the block say that kernels are compiled, before the first of them, and how long that took."""
    from ..kernels import watch
    from ..mpi.team import leads

    began: list[float] = []
    quiet = quiet or not leads()

    def tell(name, done):
        if not began and not quiet:
            print("compiling kernels, once; the next run starts at once ...", flush=True)
        began.append(clock.monotonic())

    with watch.watching(tell):
        yield
    if began and not quiet:
        print(f"compiled in {clock.monotonic() - began[0]:.0f} s")


@contextmanager
def telling_doubts():
    """Warnings of the block are told when it is done, a line each."""
    doubts = []
    try:
        with warnings.catch_warnings(record=True) as doubts:
            warnings.simplefilter("always", UserWarning)
            yield
    finally:
        for doubt in doubts:
            complain(f"warning: {doubt.message}", OK)


def start(ready, what, until, every, output, dt, device, overwrite, quiet=False):
    """A new run: (simulation, folder, plan). Nothing is written before every check has passed."""
    from ..mpi.team import first_does, first_says

    name = what if what in NAMES else Path(what).stem
    output = Path("out") / name if output is None else output
    if output.exists() and not output.is_dir():
        raise Wrong(f"--output {output}: is a file; give a folder")
    earlier = first_says([file for file in RESULTS if (output / file).exists()])
    if earlier and not overwrite:
        raise Wrong(
            f"{output} holds an earlier run; go on with it (clast run --resume {output}), "
            f"replace it (--overwrite), or choose another folder (--output)"
        )
    with typed_by_user(ready.source), telling_doubts():
        late = {}
        try:
            with tell_of_compiling(quiet):
                sim = ready.simulation(dt=dt, device=device)
        except (
            KeyboardInterrupt
        ):  # while kernels were compiled for the look at how it starts; that is taken when it goes on
            sim, late = ready.simulation(dt=dt, device=device, check=False), {"overlap_limit": ready.overlap_limit}
    until = ready.until if until is None else until
    if every is None:
        # A time that nobody typed is none to complain about: it fits the run and is at least a step.
        every = fifty_frames(sim, until) if ready.every is None else ready.every
        every = max(until, sim.dt) if every > until else every
    plan = {"scene": ready.title, "source": ready.source or name, "until": until, "every": every, **late}
    check_times(sim, plan)

    def clear():
        for file in [*(output / name for name in earlier), *(output / "text").glob("[0-9]*.txt")]:
            file.unlink()

    first_does(clear)
    return sim, output, plan


def fifty_frames(sim, until):
    """Time between frames [s] of a run to this time [s] for which none was given."""
    return max((until - sim.time) / 50.0, sim.dt)


def check_times(sim, plan):
    """Refuse what no run can follow before anything is written."""
    with typed_by_user():
        sim.check_times(plan["until"], plan["every"])


def go_on(path, until, every, output, device):
    """The run in a folder or checkpoint file, as it was saved last: (simulation, folder, plan)."""
    from ..errors import Damaged
    from ..run.simulation import resume

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
    plan: dict[str, Any] = {"scene": sim.scene.title or "resumed run"}
    if (file.parent / "run.json").exists():
        with typed_by_user(str(file.parent / "run.json")):
            plan.update(json.loads((file.parent / "run.json").read_text(encoding="utf-8")))
    plan.update({name: value for name, value in (("until", until), ("every", every)) if value is not None})
    if "until" not in plan:
        raise Wrong(f"--resume {path}: until when? add --until T")
    if plan["until"] <= sim.time:
        raise Wrong(f"{path} is at t = {sim.time:g} s already; to go on say a later time, --until {2.0 * sim.time:g}")
    plan.setdefault("every", fifty_frames(sim, plan["until"]))
    check_times(sim, plan)
    limit = plan.pop("overlap_limit", None)
    if limit is not None and sim.stepper.fresh:
        from ..scenes import check_overlap

        check_overlap(sim.scene, limit)
    return sim, output, plan


def carry_out(sim, output, plan, quiet, live=False):
    """Run to the end, then tell the numbers and where everything is."""
    from ..kernels import own, watch
    from ..mpi.team import first_does, leads
    from ..run.runner import write_checkpoint

    options = {"record": plan["record"], "text": plan["text"]}
    with typed_by_user("--record"):
        sim.check_record(plan["record"])
    if live and sim.team is not None:
        raise Wrong(f"--live looks at one process, and {sim.team.size} share the run; leave it out, and use clast view")
    if live:
        from ..view.live import Live

        options["between"] = Live(sim)
        print(f"look on: {options['between'].address}")

    def begin():
        output.mkdir(parents=True, exist_ok=True)
        note = output / "run.writing.json"
        note.write_text(json.dumps(plan, indent=2) + "\n", encoding="utf-8")
        note.replace(output / "run.json")

    first_does(begin)
    quiet = quiet or not leads()
    if "overlap_limit" in plan:  # it was stopped before it began
        write_checkpoint(sim, output / "checkpoint.h5", begun=False)
        raise Stopped(f"interrupted while kernels were compiled at t = 0 s; go on with: clast run --resume {output}")
    if not quiet:
        print(f"{plan['scene']}: to t = {plan['until']:g} s in steps of {sim.dt:.3g} s, results in {output}")
    try:
        sim.run(until=plan["until"], every=plan["every"], output=output, progress=not quiet, **options)
    except KeyboardInterrupt as stop:
        go = f"go on with: clast run --resume {output}"
        saved = go if (output / "checkpoint.h5").exists() else "nothing had been saved yet"
        when = " while kernels were compiled" if isinstance(stop, watch.Stopped) else ""
        raise Stopped(f"interrupted{when} at t = {sim.time:.6g} s; {saved}") from None
    told = sim.report()
    if not quiet:
        print(told)
        print(
            f"\nlook at it: clast view {output}     a picture: clast render {output}     a page: clast report {output}"
        )
        if own.begun:
            print(
                "kernels came with the package; quicker ones for this processor are now compiled in the background, for the next start"
            )

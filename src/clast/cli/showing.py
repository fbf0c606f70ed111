"""clast view, render, report: look at a run."""

import json
from pathlib import Path
from typing import Annotated

import typer

from .common import OK, Wrong, app, complain, typed_by_user


@app.command()
def render(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="folder of a run")],
    picture: Annotated[Path | None, typer.Option(help="picture of one frame; DIR/picture.png if left out")] = None,
    movie: Annotated[Path | None, typer.Option(help="movie of all frames, .gif or .mp4")] = None,
    colour: Annotated[str, typer.Option(help="what the colour shows: speed, size, ...")] = "speed",
    frame: Annotated[int, typer.Option(help="number of the frame of the picture; -1 is the last")] = -1,
):
    """Make a picture or a movie of a run."""
    from .. import view

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
def report(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="folder of a run")],
    page: Annotated[Path | None, typer.Option(help="the page; DIR/report.html if left out")] = None,
    numbers_only: Annotated[bool, typer.Option("--numbers", help="print the numbers, write no page")] = False,
):
    """Print the numbers of a run, and write a page with pictures, plots and warnings."""
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
    if (folder / "trajectory.h5").is_file() and not numbers_only:
        from ..view import report as write_page

        with typed_by_user():
            print(f"\npage: {write_page(folder, page)}")


def so_far(folder):
    """What is known of a run that is under way or was killed: the numbers of its last frame."""
    from ..files.trajectory import Trajectory

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

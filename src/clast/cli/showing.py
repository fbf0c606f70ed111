"""clast view, render, report: look at a run."""

import re
import time as clock
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from .common import OK, Wrong, above_zero, app, complain, number, typed_by_user

PICTURES = (".png", ".jpg", ".jpeg")  # endings of picture files


@app.command()
def view(
    what: Annotated[
        str, typer.Argument(metavar="RUN_OR_SCENE", help="folder of a run, a ready scene, or a scene file")
    ],
    port: Annotated[int, number(0, "port of the page; the next free one if it is taken")] = 8080,
    address: Annotated[
        str, typer.Option(help="listen here for other machines too; the page then asks for the token that is printed")
    ] = "127.0.0.1",
    colour: Annotated[
        str, typer.Option(help="what the colour shows: speed, force, size, material, number, ...")
    ] = "speed",
    outside: Annotated[
        bool, typer.Option("--outside", help="a scene file may read files that are not below its own folder")
    ] = False,
):
    """Show a run or a scene in the browser."""
    from ..view import show
    from .running import describe

    if "/" in what and not Path(what).exists():
        raise Wrong(
            f"{what}: no such folder or file; give the folder of a run, a ready scene (clast scenes), or a scene file"
        )
    subject = Path(what) if Path(what).is_dir() else describe(what, None, None, outside).scene
    if isinstance(subject, Path):
        trajectory(subject)
    with typed_by_user():
        page = show(subject, address=address, port=port, colour=colour)
    print(f"open {page.address}     (Ctrl-C ends it)", flush=True)
    try:
        wait()
    finally:
        page.close()


def wait():
    """Do nothing until Ctrl-C."""
    while True:
        clock.sleep(1.0)


@app.command()
def render(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="folder of a run")],
    picture: Annotated[Path | None, typer.Option(help="picture of one frame; DIR/picture.png if left out")] = None,
    movie: Annotated[Path | None, typer.Option(help="movie of all frames, .gif or .mp4")] = None,
    colour: Annotated[
        str, typer.Option(help="what the colour shows: speed, size, force, coordination, velocity_x, ...")
    ] = "speed",
    frame: Annotated[int, typer.Option(help="number of the frame of the picture; -1 is the last")] = -1,
    camera: Annotated[str | None, typer.Option("--view", help="front, back, left, right, top or corner")] = None,
    cut: Annotated[
        list[str] | None, typer.Option(metavar="PLANE", help="keep what is at 'y<0.1' say, in m; repeat it")
    ] = None,
    arrows: Annotated[str | None, typer.Option(help="velocity or force, from each body")] = None,
    size: Annotated[str | None, typer.Option(metavar="WxH", help="pixels; 1600x1200, of a movie 960x720")] = None,
    rate: Annotated[float, typer.Option(parser=above_zero, metavar="RATE", help="pictures a second of a movie")] = 25.0,
    every: Annotated[int, number(1, "of a movie: every so many frames")] = 1,
):
    """Make a picture or a movie of a run; no display is needed."""
    from .. import view as pictures

    if picture is not None and movie is not None:
        raise Wrong("--picture and --movie: one at a time")
    file = trajectory(folder)
    target = movie or picture or folder / "picture.png"
    if movie is not None and movie.suffix.lower() not in (".gif", ".mp4"):
        raise Wrong(f"--movie {movie}: must end in .gif or .mp4")
    if movie is None and target.suffix.lower() not in PICTURES:
        raise Wrong(f"--picture {picture}: must end in {', '.join(PICTURES)}")
    if not target.parent.is_dir():
        raise Wrong(f"{target}: there is no folder {target.parent}; make it first")
    options: dict[str, Any] = {
        "colour": colour,
        "camera": camera,
        "arrows": arrows,
        "cut": [plane(words) for words in cut or ()],
    }
    if size is not None:
        options["size"] = pixels(size)
    with typed_by_user():
        if movie is not None:
            with counting("drawing") as progress:
                pictures.movie(file, movie, rate=rate, every=every, progress=progress, **options)
        else:
            pictures.picture(file, target, frame=frame, **options)
    print(target)


def plane(words):
    """(point, normal) of a cut given as x<0.1 or z>0; what fits the words is kept."""
    match = re.fullmatch(r"\s*([xyz])\s*([<>])\s*([-+0-9.eE]+)\s*", words)
    try:
        letter, sign, number = match.groups() if match else ("", "", "")
        axis, side, place = "xyz".index(letter), 1.0 if sign == "<" else -1.0, float(number)
    except ValueError:
        raise Wrong(f"--cut {words}: must be like 'x<0.1' or 'z>0', in m") from None
    point, normal = [0.0, 0.0, 0.0], [0.0, 0.0, 0.0]
    point[axis], normal[axis] = place, side
    return point, normal


def pixels(words):
    """Width and height given as 960x720."""
    match = re.fullmatch(r"([1-9][0-9]{1,4})x([1-9][0-9]{1,4})", words)
    if match is None:
        raise Wrong(f"--size {words}: must be like 960x720")
    return int(match[1]), int(match[2])


@contextmanager
def counting(title):
    """A function that is told how much is done of how much, and shows it: a bar on a terminal, else a line at each tenth."""
    from rich.console import Console
    from rich.progress import Progress

    console = Console(stderr=True)
    if console.is_terminal:
        with Progress(console=console) as bar:
            task = bar.add_task(title, total=None)
            yield lambda done, total: bar.update(task, completed=done, total=total)
        return

    def line(done, total):
        if done == total or 10 * done // total > 10 * (done - 1) // total:
            console.print(f"{title} {done} of {total}", highlight=False)

    yield line


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
    from ..run import words

    with typed_by_user():
        numbers, plan = words.stored(folder / "report.json"), words.stored(folder / "run.json")
    scene = {}
    if not numbers:
        numbers, scene = so_far(folder)
    elif (folder / "trajectory.h5").is_file():
        from ..files.trajectory import Trajectory

        with Trajectory(folder / "trajectory.h5") as frames:
            scene = frames.attributes
    made = numbers.get("made") or scene.get("made", {})
    rows = [*words.rows(numbers), *words.about(plan, made, scene)]
    width = max((len(name) for name, _ in rows), default=0)
    for name, value in rows:
        print(f"{name:<{width}}  {words.written(value)}")
    if (folder / "trajectory.h5").is_file() and not numbers_only:
        from ..view import report as write_page

        with typed_by_user():
            print(f"\npage: {write_page(folder, page)}")


def so_far(folder):
    """What is known of a run that is under way or was killed: (the numbers of its last frame, attributes of the trajectory)."""
    from ..files.trajectory import Trajectory
    from ..run import words

    with Trajectory(trajectory(folder)) as frames:
        series, scene = frames.series(), frames.attributes
    if not len(series["time"]):
        raise Wrong(f"{folder}: the run has no frame yet; go on: clast run --resume {folder}")
    complain(f"{folder}: the run did not end; these are the numbers of its last frame", OK)
    return words.of_frame(series), scene

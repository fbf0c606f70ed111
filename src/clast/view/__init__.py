"""Pictures and movies of scenes and runs; reads what files/ reads, knows nothing of motion. Needs the extra `view`."""

import itertools
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from .. import errors
from ..files import trajectory
from ..run.simulation import Simulation
from ..scene.scene import Scene
from ..signatures import Camera, File, Vector
from . import colours, drawing
from .colours import BACKGROUND
from .page import report
from .stage import VIEW_ANGLE, Stage, over_time
from .stage import camera as camera_of

if TYPE_CHECKING:
    from .browser import Browser

__all__ = ["movie", "picture", "render", "report", "show"]


# What a picture looks like, whatever it shows.
STYLE = {"size": (1600, 1200), "background": BACKGROUND, "quality": 2, "label": None}


def render(
    subject: Any,
    path: File | None,
    *,
    tables: Mapping[str, Any] | None = None,
    colour: str | ArrayLike | None = "speed",
    limits: tuple[float, float] | None = None,
    camera: Camera | None = None,
    walls: bool = True,
    cut: Sequence[tuple[Vector, Vector]] = (),
    arrows: str | ArrayLike | None = None,
    **style: Any,
) -> Any:
    """Draw one moment and save it; the suffix of `path` chooses the picture format (.png, .jpg, ...). Return the path, or the picture as a
    Pillow image if `path` is None.

    subject: a scene, or a trajectory frame, or columns by name (position, orientation, scale, mold, ...); the last two
        need `tables`, the header groups of the trajectory: {"molds": ..., "parts": ..., "meshes": ..., ...}.
    colour: "speed" [m/s], "size" (radius [mm], of what is not a sphere that of the ball with its volume), "material",
        "number", "force" [N] (sum of the sizes of a body's contact forces) and "coordination" where the frame holds contacts, any column of
        bodies (of a vector its length, or "velocity_x" say), None for sand, or an (n,) array, one value per body; limits:
        (low, high) of the colour scale, by default of what is seen.
    camera: (position, target, up), three (3,) [m] each, or a name, "front", "back", "left", "right", "top", "corner"; by default along the axis of
        a drum, else a three-quarter view.
    walls: False to draw the particles alone.
    cut: planes (point (3,) [m], normal (3,)); particles with their centre before one of them are left out.
    arrows: "velocity", "force" (of all contacts on a body) or an (n,3) array, drawn from the centres of bodies.
    style: size (width, height) in pixels; background, a colour or (bottom, top); quality, 0 fast, 1 with ambient occlusion, 2 with four
        samples per pixel as well; label, a line of text for the lower left corner.
    """
    options = {"colour": colour, "limits": limits, "camera": camera, "walls": walls, "cut": cut, "arrows": arrows}
    shot = _shoot(subject, tables, _all(options | style))
    if path is None:
        return shot
    path = errors.path_of(path, "render: path must be that of a picture to be written")
    path.parent.mkdir(parents=True, exist_ok=True)
    shot.save(path)
    return path


def picture(folder: File, path: File | None = None, *, frame: int = -1, **options: Any) -> Path:
    """Draw one frame (the last one) of the run in `folder` to `path` (picture.png in it); options as in `render`."""
    with _open(errors.path_of(folder, "picture: the first argument must be the folder of a run")) as run:
        path = path or run.path.with_name("picture.png")
        return render(run[frame], path, tables=run.groups, **options)


def movie(
    folder: File,
    path: File,
    *,
    rate: float = 25.0,
    every: int = 1,
    size: tuple[int, int] = (960, 720),
    colour: str | ArrayLike | None = "speed",
    limits: tuple[float, float] | None = None,
    quality: int = 1,
    progress: Callable[[int, int], object] | None = None,
    **options: Any,
) -> Path:
    """Draw every `every`-th frame of the run in `folder` to a .gif or .mp4 with `rate` pictures a second [1/s].

    The camera stays where it sees the first, middle and last frame, or as given, and so does the colour scale; progress: function called with the number of
    pictures done and of all; other options as in `render`.
    """
    path = errors.path_of(path, "movie: the second argument must be the path of a file")
    writer = errors.pick("movie format", path.suffix.lower(), MOVIES)
    if writer is _mp4:
        _imageio()
    with _open(errors.path_of(folder, "movie: the first argument must be the folder of a run")) as run:
        groups = run.groups
        camera = options.get("camera")
        if camera is None or isinstance(camera, str):
            options["camera"] = camera_of(over_time(run, groups), size, camera)
        if isinstance(colour, str) and colour != "material" and limits is None:
            stages = [Stage.of(run[i], groups, walls=False) for i in {len(run) // 2, len(run) - 1}]
            limits = colours.limits(stages, colour)
        options = _all(options | {"size": size, "colour": colour, "limits": limits, "quality": quality})
        wanted = range(0, len(run), every)

        def shots():
            with drawing.Studio(options["size"], options["background"]) as studio:
                for done, index in enumerate(wanted):
                    yield _shoot(run[index], groups, options, studio)
                    if progress is not None:
                        progress(done + 1, len(wanted))

        path.parent.mkdir(parents=True, exist_ok=True)
        writer(path, shots(), rate)
    return path


def show(
    subject: "Simulation | Scene | File", *, address: str = "127.0.0.1", port: int = 8080, colour: str = "speed"
) -> "Browser":
    """Show a run (its folder), a Scene or a Simulation in the browser; returns the page, whose `address` is to be opened.

    address: where to listen; any but that of this machine itself needs the token that is part of the address. port: the first free
    one from there on, 0 for any. The page lives until `close`, or as long as the program.
    """
    from .browser import Browser, Frames, Moment

    options: dict[str, Any] = {"address": address, "port": port, "colour": colour}
    shown: Any = subject  # known by what it has
    if hasattr(shown, "stepper"):
        return Browser(Moment(shown.scene, shown.time, shown.steps, shown.contacts()), **options)
    if hasattr(shown, "bodies"):
        return Browser(Moment(shown), **options)
    folder = Path(shown)
    path = folder / "trajectory.h5" if folder.is_dir() else folder
    if not path.exists():
        raise FileNotFoundError(
            f"no trajectory in {str(folder)!r}; a run writes one with sim.run(until=..., output=...)"
        )
    return Browser(Frames(path), **options)


def _shoot(subject, tables, options, studio=None):
    """The finished picture as a Pillow image; studio: drawing.Studio to draw in, else one of its own."""
    drawing.package()
    from PIL import Image

    size, colour, quality = options["size"], options["colour"], options["quality"]
    stage = Stage.of(subject, tables, options["walls"])
    camera = options["camera"]
    if camera is None or isinstance(camera, str):
        camera = camera_of(stage, size, camera)
    eye = np.asarray(camera[0], dtype=float)
    whole, stage = stage, stage.kept(options["cut"]) if len(options["cut"]) else stage
    arrows = drawing.arrows_of(stage, options["arrows"]) if options["arrows"] is not None else None
    paint, legend = colours.paint(stage, colour, options["limits"])
    with studio or drawing.Studio(size, options["background"]) as studio:
        studio.clear()
        plotter = studio.plotter
        drawing.add_particles(plotter, stage, paint, eye, size[1])
        for wall in stage.walls:
            drawing.add_wall(plotter, whole, wall, eye)
        if arrows is not None:
            drawing.add_arrows(plotter, stage, *arrows)
        plotter.camera_position = [tuple(map(float, row)) for row in camera]
        plotter.camera.view_angle = VIEW_ANGLE
        plotter.reset_camera_clipping_range()
        if quality >= 1 and len(stage.centre):
            # Much below 1/1000 of the distance the pass shows only its own rounding, as bands on smooth walls.
            grain = float(np.linalg.norm(eye - np.asarray(camera[1]))) / 2048.0
            reach = max(2.2 * float(np.median(stage.size)), 12.0 * grain)
            bias = max(0.1 * reach, 2.5 * grain)
            plotter.enable_ssao(radius=reach, bias=bias, kernel_size=48 if quality >= 2 else 32, blur=True)
        if quality >= 2:
            plotter.enable_anti_aliasing("ssaa")
        pixels = plotter.screenshot(None, return_img=True)
    shot = Image.fromarray(pixels)
    if legend or options["label"]:
        colours.write_legend(shot, legend, options["label"])
    return shot


def _open(folder):
    path = folder / "trajectory.h5" if folder.is_dir() else folder
    if not path.exists():
        name = str(folder)
        raise FileNotFoundError(f"no trajectory in {name!r}; a run writes one with sim.run(until=..., output={name!r})")
    run = trajectory.Trajectory(path, "r")
    if not len(run) or not run.groups:
        run.close()
        raise ValueError(f"{str(path)!r} has no frames yet; wait for the first one or run longer")
    return run


def _all(options):
    """Every option of `render`, with its defaults for those not given."""
    own = render.__kwdefaults__ or {}
    known = {name: value for name, value in own.items() if name != "tables"} | STYLE
    for name in options:
        errors.pick("option", name, known)
    return known | options


def _gif(path, shots, rate):
    # Pictures are taken one after the other as they are made: a long movie does not fit into memory.
    shots = (shot.convert("P", palette=1, colors=256) for shot in shots)
    first = next(shots)
    first.save(path, save_all=True, append_images=shots, duration=max(20, round(1000.0 / rate)), loop=0)


def _mp4(path, shots, rate):
    imageio = _imageio()
    first = next(shots)
    # The codec wants even sides.
    size = (first.width // 2 * 2, first.height // 2 * 2)
    stream = imageio.write_frames(str(path), size, fps=rate, quality=8, macro_block_size=2)
    stream.send(None)
    try:
        for shot in itertools.chain([first], shots):
            stream.send(np.ascontiguousarray(shot.convert("RGB").crop((0, 0, *size))))
    finally:
        stream.close()


MOVIES = {".gif": _gif, ".mp4": _mp4}


def _imageio():
    try:
        import imageio_ffmpeg
    except ImportError as cause:
        raise errors.Unavailable(
            "an .mp4 movie needs imageio-ffmpeg: pip install imageio-ffmpeg; or choose a .gif, which needs nothing more"
        ) from cause
    return imageio_ffmpeg

"""Pictures and movies of scenes and runs; reads what files/ reads, knows nothing of motion. Needs the extra `view`."""

import itertools
from pathlib import Path

import numpy as np

from .. import errors
from ..files import trajectory
from . import colours, drawing
from .colours import BACKGROUND
from .page import report
from .stage import VIEW_ANGLE, Stage
from .stage import camera as camera_of

__all__ = ["movie", "picture", "render", "report"]


def render(
    subject,
    path,
    *,
    tables=None,
    size=(1600, 1200),
    colour="speed",
    limits=None,
    camera=None,
    walls=True,
    background=BACKGROUND,
    quality=2,
    label=None,
):
    """Draw one moment and save it; the suffix of `path` chooses the picture format (.png, .jpg, ...). Return the path, or the picture as a
    Pillow image if `path` is None.

    subject: a scene, or a trajectory frame, or columns by name (position, orientation, scale, mold, ...); the last two
        need `tables`, the header groups of the trajectory: {"molds": ..., "parts": ..., "meshes": ..., ...}.
    size: width and height in pixels.
    colour: "speed" [m/s], "size" (radius [mm], of what is not a sphere that of the ball with its volume), "material",
        "number", None for sand, or an (n,) array, one value per body; limits: (low, high) of the colour scale, by default
        of what is seen.
    camera: (position, target, up), three (3,) [m] each; by default along the axis of a drum, else a three-quarter view.
    walls: False to draw the particles alone. background: a colour, or (bottom, top).
    quality: 0 fast, 1 with ambient occlusion, 2 with four samples per pixel as well.
    label: a line of text for the lower left corner.
    """
    shot = _shoot(subject, tables, size, colour, limits, camera, walls, background, quality, label)
    if path is None:
        return shot
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    shot.save(path)
    return path


def picture(folder, path=None, *, frame=-1, **options):
    """Draw one frame (the last one) of the run in `folder` to `path` (picture.png in it); options as in `render`."""
    folder = Path(folder)
    with _open(folder) as run:
        path = path or run.path.with_name("picture.png")
        return render(run[frame], path, tables=run.groups, **options)


def movie(folder, path, *, rate=25.0, every=1, size=(960, 720), colour="speed", limits=None, quality=2, **options):
    """Draw every `every`-th frame of the run in `folder` to a .gif or .mp4 with `rate` pictures a second [1/s].

    The camera and the colour scale stay as they are in the last frame, or as given; other options as in `render`.
    """
    path = Path(path)
    writer = errors.pick("movie format", path.suffix.lower(), MOVIES)
    if writer is _mp4:
        _imageio()
    with _open(Path(folder)) as run:
        groups, last = run.groups, run[-1]
        options["camera"] = options.get("camera") or camera_of(Stage.of(last, groups), size)
        if isinstance(colour, str) and colour in ("speed", "size", "number") and limits is None:
            stages = [Stage.of(run[i], groups, walls=False) for i in {len(run) // 2, len(run) - 1}]
            limits = colours.limits(stages, colour)
        options |= {"size": size, "colour": colour, "limits": limits, "quality": quality, "tables": groups}
        shots = (_shoot(run[i], **_all(options)) for i in range(0, len(run), every))
        path.parent.mkdir(parents=True, exist_ok=True)
        writer(path, shots, rate)
    return path


def _shoot(subject, tables, size, colour, limits, camera, walls, background, quality, label):
    """The finished picture as a Pillow image."""
    drawing.package()
    from PIL import Image

    stage = Stage.of(subject, tables, walls)
    camera = camera or camera_of(stage, size)
    eye = np.asarray(camera[0], dtype=float)
    paint, legend = colours.paint(stage, colour, limits)
    with drawing.quiet():
        plotter = drawing.plotter(size, background)
        try:
            drawing.add_particles(plotter, stage, paint, eye, size[1])
            for wall in stage.walls:
                drawing.add_wall(plotter, stage, wall, eye)
            plotter.camera_position = [tuple(map(float, row)) for row in camera]
            plotter.camera.view_angle = VIEW_ANGLE
            plotter.reset_camera_clipping_range()
            if quality >= 1 and len(stage.centre):
                # Much below 1/1000 of the distance the pass shows only its own rounding, as bands on smooth walls.
                grain = np.linalg.norm(eye - np.asarray(camera[1])) / 2048.0
                reach = max(2.2 * float(np.median(stage.size)), 12.0 * grain)
                bias = max(0.1 * reach, 2.5 * grain)
                plotter.enable_ssao(radius=reach, bias=bias, kernel_size=48 if quality >= 2 else 32, blur=True)
            if quality >= 2:
                plotter.enable_anti_aliasing("ssaa")
            pixels = plotter.screenshot(None, return_img=True)
        finally:
            plotter.close()
    shot = Image.fromarray(pixels)
    if legend or label:
        colours.write_legend(shot, legend, label)
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
    """Every option of `_shoot`, with the defaults of `render` for those not given."""
    known = dict(render.__kwdefaults__)
    for name in options:
        errors.pick("option", name, known)
    return known | options


def _gif(path, shots, rate):
    first, *rest = [shot.convert("P", palette=1, colors=256) for shot in shots]
    first.save(path, save_all=True, append_images=rest, duration=max(20, round(1000.0 / rate)), loop=0)


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

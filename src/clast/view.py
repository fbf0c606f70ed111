"""Pictures and movies of scenes and runs; reads what files/ reads, knows nothing of motion. Needs the extra `view`.

Spheres are ray-cast one by one on flat patches (exact at any zoom, 100,000 in seconds), with ambient occlusion for
depth. Walls that stand between the camera and the particles become glass.
"""

import contextlib
import itertools
from pathlib import Path
from typing import NamedTuple

import numpy as np

from . import errors, tables
from .files import trajectory, vtk

RAMP = ("#3a5d9c", "#3f9bbf", "#8fd0bb", "#f6e3a6", "#f3a158", "#d5432f")  # slow or small to fast or large
PALETTE = ("#d9b382", "#4f86a6", "#c8553d", "#6a994e", "#8d6a9f", "#e0a93b", "#5b6770", "#b5838d")
PLAIN = "#d9b382"  # dry sand
WALL, EDGE, FLOOR, INK = "#ccd4db", "#77838d", "#dde2e7", "#3a444d"
BACKGROUND = ("#e6ebf0", "#ffffff")  # bottom, top
VIEW_ANGLE = 26.0  # [degree], vertical
MARGIN = 1.1
GLASS = 0.14  # opacity of a wall in front of the particles
INSTALL = "pip install 'clast[view]'"
NO_GL = (
    "no OpenGL to draw with; install Mesa's software renderer (Debian, Ubuntu: apt install libegl1 libgl1-mesa-dri; "
    "Fedora: dnf install mesa-libEGL mesa-dri-drivers)"
)


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
    """Draw one moment and save it; the suffix of `path` chooses the picture format (.png, .jpg, ...). Return the path.

    subject: a scene, or a trajectory frame, or columns by name (position, orientation, scale, mold, ...); the last two
        need `tables`, the header groups of the trajectory: {"molds": ..., "parts": ..., "meshes": ...}.
    size: width and height in pixels.
    colour: "speed" [m/s], "size" (radius [mm]), "material", "number", None for sand, or an (n,) array, one value per
        body; limits: (low, high) of the colour scale, by default of what is seen.
    camera: (position, target, up), three (3,) [m] each; by default along the axis of a drum, else a three-quarter view.
    walls: False to draw the particles alone. background: a colour, or (bottom, top).
    quality: 0 fast, 1 with ambient occlusion, 2 with four samples per pixel as well.
    label: a line of text for the lower left corner.
    """
    shot = _shoot(subject, tables, size, colour, limits, camera, walls, background, quality, label)
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
        options["camera"] = options.get("camera") or _camera(_Stage.of(last, groups), size)
        if isinstance(colour, str) and colour in ("speed", "size", "number") and limits is None:
            limits = _limits(colour, [run[i] for i in {len(run) // 2, len(run) - 1}], groups)
        options |= {"size": size, "colour": colour, "limits": limits, "quality": quality, "tables": groups}
        shots = (_shoot(run[i], **_all(options)) for i in range(0, len(run), every))
        path.parent.mkdir(parents=True, exist_ok=True)
        writer(path, shots, rate)
    return path


class _Stage(NamedTuple):
    """What stands before the camera: spheres, one row each, and walls."""

    centre: np.ndarray  # (s,3) [m]
    radius: np.ndarray  # (s,) [m]
    body: np.ndarray  # (s,) row of columns
    columns: dict
    walls: list  # of vtk.Surface
    axis: np.ndarray | None  # (3,) unit, about which a drum turns

    @classmethod
    def of(cls, subject, groups, walls=True):
        columns, groups = _sort_out(subject, groups)
        molds, parts = groups["molds"], groups["parts"]
        body, centre, radius = vtk.spheres(columns, molds, parts)
        surfaces = vtk.surfaces(columns, molds, parts, groups["meshes"], around=_box(centre, radius)) if walls else []
        finite = [wall for wall in surfaces if wall.kind != tables.PLANE]
        floors = [wall for wall in surfaces if wall.kind == tables.PLANE and wall.axis[2] > 0.7]
        stage = cls(centre, radius, body, columns, finite, _drum_axis(columns, finite))
        points, _ = _outline(stage)
        return stage._replace(walls=finite + [vtk.plate(floor, points) for floor in floors])


def _sort_out(subject, groups):
    if hasattr(subject, "bodies"):
        groups = {"molds": subject.molds, "parts": subject.parts, "meshes": subject.meshes}
        subject = subject.bodies
    if isinstance(subject, trajectory.Frame):
        subject = subject.columns
    if groups is None:
        raise TypeError("columns alone do not tell the shapes of bodies; give tables=, the `groups` of a trajectory")
    plain = {name: table._asdict() if hasattr(table, "_asdict") else table for name, table in groups.items()}
    return (subject._asdict() if hasattr(subject, "_asdict") else subject), plain


def _box(centre, radius):
    """Low and high corner of the spheres, without the few that flew far away."""
    if not len(centre):
        return np.full(3, -1.0), np.full(3, 1.0)
    low, high = np.percentile(centre, (1, 99), axis=0)
    room = 0.25 * np.max(high - low) + 4.0 * np.max(radius)
    near = np.all((centre > low - room) & (centre < high + room), axis=1)
    if not near.any():
        near[:] = True
    rim = radius[near, None]
    return np.min(centre[near] - rim, axis=0), np.max(centre[near] + rim, axis=0)


def _drum_axis(columns, surfaces):
    """The axis of the largest wall that turns about a horizontal axis or is a lying hollow cylinder; None if none."""
    best, width = None, 0.0
    for wall in surfaces:
        axis = wall.axis if wall.kind == tables.CYLINDER else np.asarray(columns["spin"], dtype=float)[wall.body]
        length = np.linalg.norm(axis)
        if length == 0.0 or abs(axis[2]) > 0.3 * length:
            continue
        extent = np.max(np.ptp(wall.vertices, axis=0))
        if extent > width:
            best, width = axis / length, extent
    return best


def _camera(stage, size):
    """(position, target, up) from which everything is seen, filling the picture."""
    up = np.array([0.0, 0.0, 1.0])
    if stage.axis is not None:
        look = stage.axis if (stage.axis[1], stage.axis[0]) > (0.0, 0.0) else -stage.axis
        aside = np.cross(look, up)
        out = -look + 0.24 * aside / np.linalg.norm(aside) + 0.24 * up
    else:
        out = np.array([0.55, -0.80, 0.42])
    out = out / np.linalg.norm(out)
    right = np.cross(up, out)
    right /= np.linalg.norm(right)
    top = np.cross(out, right)
    points, pad = _outline(stage)
    a, b, c = points @ right, points @ top, points @ out
    slope_y = np.tan(np.radians(VIEW_ANGLE) / 2.0)
    slope_x = slope_y * size[0] / size[1] * 0.93  # room for the colour bar
    x, y = 0.5 * (a.min() + a.max()), 0.5 * (b.min() + b.max())
    distance = 0.0
    for _ in range(8):  # Perspective makes near things larger, so middle and distance depend on each other.
        distance = MARGIN * np.max(np.maximum((np.abs(a - x) + pad) / slope_x, (np.abs(b - y) + pad) / slope_y) + c)
        distance = max(distance, np.max(c + 2.0 * pad) + 1e-9)
        depth = distance - c
        x += 0.5 * (np.max((a - x + pad) / depth) + np.min((a - x - pad) / depth)) * np.mean(depth)
        y += 0.5 * (np.max((b - y + pad) / depth) + np.min((b - y - pad) / depth)) * np.mean(depth)
    middle = 0.5 * (c.min() + c.max())
    x += 0.07 * (distance - middle) * slope_x  # to the left of the colour bar
    target = x * right + y * top + middle * out
    return target + (distance - middle) * out, target, up


def _outline(stage):
    """Points (n,3) with a margin (n,) that must be in the picture."""
    low, high = _box(stage.centre, stage.radius)
    near = np.all((stage.centre >= low) & (stage.centre <= high), axis=1)
    points, pad = [stage.centre[near]], [stage.radius[near]]
    room = np.linalg.norm(high - low)
    for wall in stage.walls:
        inside = np.all((wall.vertices > low - 2.0 * room) & (wall.vertices < high + 2.0 * room), axis=1)
        points.append(wall.vertices[inside])
        pad.append(np.zeros(int(inside.sum())))
    points, pad = np.concatenate(points), np.concatenate(pad)
    return (points, pad) if len(points) else (np.array([low, high]), np.zeros(2))


def _shoot(subject, tables, size, colour, limits, camera, walls, background, quality, label):
    """The finished picture as a Pillow image."""
    pyvista = _pyvista()
    from PIL import Image

    stage = _Stage.of(subject, tables, walls)
    camera = camera or _camera(stage, size)
    paint, legend = _paint(stage, colour, limits)
    with _quiet():
        plotter = _plotter(pyvista, size, background)
        try:
            _add_spheres(pyvista, plotter, stage, paint)
            for wall in stage.walls:
                _add_wall(pyvista, plotter, stage, wall, np.asarray(camera[0], dtype=float))
            plotter.camera_position = [tuple(map(float, row)) for row in camera]
            plotter.camera.view_angle = VIEW_ANGLE
            plotter.reset_camera_clipping_range()
            if quality >= 1 and len(stage.centre):
                # Much below 1/1000 of the distance the pass shows only its own rounding, as bands on smooth walls.
                grain = np.linalg.norm(np.subtract(camera[0], camera[1])) / 2048.0
                reach = max(2.2 * float(np.median(stage.radius)), 12.0 * grain)
                bias = max(0.1 * reach, 2.5 * grain)
                plotter.enable_ssao(radius=reach, bias=bias, kernel_size=48 if quality >= 2 else 32, blur=True)
            if quality >= 2:
                plotter.enable_anti_aliasing("ssaa")
            pixels = plotter.screenshot(None, return_img=True)
        finally:
            plotter.close()
    shot = Image.fromarray(pixels)
    if legend or label:
        _write_legend(shot, legend, label)
    return shot


def _plotter(pyvista, size, background):
    try:
        plotter = pyvista.Plotter(off_screen=True, window_size=[int(size[0]), int(size[1])], lighting="none")
        # Drawing without a context would crash the process, and SupportsOpenGL() says yes to anything.
        plotter.render_window.Initialize()
        plotter.render_window.MakeCurrent()
        ready = plotter.render_window.IsCurrent()
    except RuntimeError as cause:
        raise errors.Unavailable(NO_GL) from cause
    if not ready:
        plotter.close()
        raise errors.Unavailable(NO_GL)
    low, high = (background, None) if isinstance(background, str) else background
    plotter.set_background(low, top=high)
    # Key from the upper left, a weak fill from the right, a little from the eye, a rim from behind.
    for place, strength in (
        ((-0.7, 1.1, 0.9), 0.68),
        ((1.2, 0.2, 0.7), 0.28),
        ((0.0, 0.0, 1.0), 0.32),
        ((0.2, 0.9, -0.8), 0.16),
    ):
        light = pyvista.Light(light_type="camera light", intensity=strength)
        light.position = place
        light.focal_point = (0.0, 0.0, 0.0)
        plotter.add_light(light)
    return plotter


def _add_spheres(pyvista, plotter, stage, paint):
    if not len(stage.centre):
        return
    from vtkmodules.vtkRenderingOpenGL2 import vtkOpenGLSphereMapper

    points = pyvista.PolyData(stage.centre.astype(np.float32))
    points["radius"] = stage.radius.astype(np.float32)  # The mapper crashes on double precision.
    points["paint"] = paint
    mapper = vtkOpenGLSphereMapper()
    mapper.SetInputData(points)
    mapper.SetScaleArray("radius")
    mapper.SetScalarModeToUsePointFieldData()
    mapper.SelectColorArray("paint")
    actor = pyvista.Actor()
    actor.SetMapper(mapper)
    _shade(actor, specular=0.18)
    plotter.add_actor(actor, reset_camera=False)


def _add_wall(pyvista, plotter, stage, wall, eye):
    faces = np.insert(wall.triangles, 0, 3, axis=1)
    mesh = pyvista.PolyData(wall.vertices, faces.ravel())
    if wall.kind == tables.PLANE:
        _shade(plotter.add_mesh(mesh, color=FLOOR, reset_camera=False), ambient=0.2)
        return
    front = _hiding(stage, wall, eye)
    for keep, opacity in ((~front, 1.0), (front, GLASS)):
        if keep.any():
            part = pyvista.PolyData(wall.vertices, faces[keep].ravel())
            part = part.compute_normals(feature_angle=40.0, split_vertices=True, auto_orient_normals=False)
            _shade(plotter.add_mesh(part, color=WALL, opacity=opacity, reset_camera=False), ambient=0.45)
    edges = mesh.clean().extract_feature_edges(feature_angle=35.0, manifold_edges=False, non_manifold_edges=False)
    if edges.n_cells:
        width = 0.003 * float(np.max(np.ptp(wall.vertices, axis=0)))
        tubes = edges.strip(join=True, max_length=10_000).tube(radius=width, n_sides=12)
        _shade(plotter.add_mesh(tubes, color=EDGE, reset_camera=False), specular=0.2)


def _hiding(stage, wall, eye):
    """Which triangles (t,) of a wall stand between the eye and most particles, if the wall hides many of them."""
    corner = wall.vertices[wall.triangles]
    none = np.zeros(len(corner), dtype=bool)
    if not len(stage.centre):
        return none
    normal = np.cross(corner[:, 1] - corner[:, 0], corner[:, 2] - corner[:, 0])
    toward = np.sign(np.einsum("ij,ij->i", normal, eye - corner[:, 0]))
    sample = stage.centre[:: max(1, len(stage.centre) // 500)]
    side = np.sign(sample @ normal.T - np.einsum("ij,ij->i", normal, corner[:, 0])) * toward
    front = np.mean(side < 0.0, axis=0) > 0.6
    if not front.any():
        return none
    # Rays from the eye to the sampled particles: how many meet a front triangle first?
    hidden = np.zeros(len(sample), dtype=bool)
    for a, b, c in corner[front]:
        hidden |= _crosses(eye, sample - eye, a, b, c)
    return front if np.mean(hidden) > 0.03 else none


def _crosses(origin, ray, a, b, c):
    """Whether the segments from `origin` along `ray` (n,3) cross the triangle (Moeller and Trumbore 1997)."""
    e, f = b - a, c - a
    p = np.cross(ray, f)
    det = p @ e
    with np.errstate(divide="ignore", invalid="ignore"):
        u = p @ (origin - a) / det
        q = np.cross(origin - a, e)
        v = ray @ q / det
        t = f @ q / det
    return (u >= 0.0) & (v >= 0.0) & (u + v <= 1.0) & (t > 0.0) & (t < 1.0)


def _shade(actor, specular=0.0, ambient=0.08):
    actor.prop.interpolation = "Phong"
    actor.prop.ambient, actor.prop.diffuse = ambient, 1.0 - 0.5 * ambient
    actor.prop.specular, actor.prop.specular_power = specular, 24.0


def _values(stage, colour):
    """One number per sphere, and what it is."""
    if not isinstance(colour, str):
        return np.asarray(colour, dtype=float)[stage.body], ""
    if colour == "speed":
        return np.linalg.norm(np.asarray(stage.columns["velocity"], dtype=float), axis=1)[stage.body], "speed [m/s]"
    if colour == "size":
        return 1000.0 * stage.radius, "radius [mm]"
    return np.asarray(stage.columns["number"], dtype=float)[stage.body], "number"


def _limits(colour, frames, groups):
    stages = [_Stage.of(frame, groups, walls=False) for frame in frames]
    radius = np.concatenate([stage.radius for stage in stages])
    return _range(np.concatenate([_values(stage, colour)[0] for stage in stages]), colour, radius)


def _range(values, colour, radius):
    if not len(values):
        return 0.0, 1.0
    low, high = np.min(values), np.max(values)
    if isinstance(colour, str) and colour == "speed":
        # What moves by less than its own diameter in a second looks at rest, and is painted so.
        low, high = 0.0, max(np.percentile(values, 99.5), 2.0 * np.median(radius))
    return (float(low), float(high)) if high > low else (float(low), float(low) + (abs(float(low)) or 1.0))


def _paint(stage, colour, limits):
    """Colours (s,3) uint8 of the spheres, and (low, high, title) for the colour bar or None."""
    if isinstance(colour, str):
        errors.pick("colour", colour, dict.fromkeys(("speed", "size", "material", "number")))
    if colour is None or not len(stage.body):
        return np.tile(_rgb(PLAIN), (len(stage.body), 1)), None
    if isinstance(colour, str) and colour == "material":
        palette = np.array([_rgb(name) for name in PALETTE])
        return palette[np.asarray(stage.columns["material"])[stage.body] % len(PALETTE)], None
    values, title = _values(stage, colour)
    low, high = limits or _range(values, colour, stage.radius)
    return _ramp((values - low) / (high - low)), (low, high, title)


def _ramp(fraction):
    knots = np.array([_rgb(name) for name in RAMP], dtype=float)
    place = np.clip(np.nan_to_num(fraction), 0.0, 1.0) * (len(knots) - 1)
    channels = [np.interp(place, np.arange(len(knots)), knots[:, k]) for k in range(3)]
    return np.stack(channels, axis=-1).round().astype(np.uint8)


def _rgb(name):
    return np.array([int(name[k : k + 2], 16) for k in (1, 3, 5)], dtype=np.uint8)


def _write_legend(shot, legend, label):
    """A slim colour bar at the right and a line of text at the lower left."""
    from PIL import Image, ImageDraw, ImageFont

    width, height = shot.size
    font = ImageFont.load_default(size=max(11, height // 48))
    draw = ImageDraw.Draw(shot)
    if label:
        draw.text((0.03 * width, 0.965 * height), label, fill=INK, font=font, anchor="ls")
    if not legend:
        return
    low, high, title = legend
    bar, left, top, tall = max(6, width // 110), round(0.925 * width), round(0.33 * height), round(0.34 * height)
    strip = _ramp(np.linspace(1.0, 0.0, tall))[:, None, :].repeat(bar, axis=1)
    mask = Image.new("L", (4 * bar, 4 * tall))
    ImageDraw.Draw(mask).rounded_rectangle((0, 0, 4 * bar - 1, 4 * tall - 1), radius=2 * bar, fill=255)
    shot.paste(Image.fromarray(strip), (left, top), mask.resize((bar, tall)))
    middle = min(left + bar / 2, 0.985 * width - draw.textlength(title, font=font) / 2)
    draw.text((middle, top - 0.022 * height), title, fill=INK, font=font, anchor="ms")
    ticks = _ticks(low, high)
    digits = max(0, -int(np.floor(np.log10(ticks[1] - ticks[0]) + 1e-9))) if len(ticks) > 1 else 2
    for tick in ticks:
        y = top + tall * (1.0 - (tick - low) / (high - low))
        draw.text((left + 1.7 * bar, y), f"{tick + 0.0:.{digits}f}", fill=INK, font=font, anchor="lm")


def _ticks(low, high):
    """Three to six round numbers between low and high."""
    power = 10.0 ** np.floor(np.log10((high - low) / 3.0))
    step = next(power * k for k in (10, 5, 2, 1) if (high - low) / (power * k) >= 2.0)
    return np.arange(round(np.ceil(low / step - 1e-9)), round(np.floor(high / step + 1e-9)) + 1) * step


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


def _pyvista():
    try:
        import pyvista
    except ImportError as cause:
        raise errors.Unavailable(f"pictures need pyvista ({cause}): {INSTALL}") from cause
    return pyvista


@contextlib.contextmanager
def _quiet():
    """Without a display VTK complains about the X server before it finds EGL by itself."""
    from vtkmodules.vtkCommonCore import vtkLogger

    before = vtkLogger.GetCurrentVerbosityCutoff()
    vtkLogger.SetStderrVerbosity(vtkLogger.VERBOSITY_ERROR)
    try:
        yield
    finally:
        vtkLogger.SetStderrVerbosity(before)

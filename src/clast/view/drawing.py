"""Things on the canvas: balls, ellipsoids, polyhedra, meshes, walls and lights, with pyvista. Needs the extra `view`.

Balls are ray-cast one by one on flat patches (exact at any zoom, 100,000 in seconds). Ellipsoids are copies of one ball
of facets, finer the larger they are in the picture. Polyhedra and triangulated particles are their
own flat faces, all in one mesh. Walls that stand between the eye and the particles become glass.
"""

import contextlib
import warnings
from typing import Any

import numpy as np

from .. import errors
from ..files import vtk
from .colours import EDGE, FLOOR, WALL
from .stage import VIEW_ANGLE

GLASS = 0.14  # opacity of a wall in front of the particles
# Radius in pixels up to which balls of 80, 320, 1280 and 5120 facets are taken; beyond, of 20480. The middle of a side
# of the outline is then less than half a pixel inside.
SMOOTH = (10.0, 40.0, 160.0, 640.0)
INSTALL = "pip install 'clast[view]'"
NO_GL = (
    "no OpenGL to draw with; install Mesa's software renderer (Debian, Ubuntu: apt install libegl1 libgl1-mesa-dri; "
    "Fedora: dnf install mesa-libEGL mesa-dri-drivers)"
)


def plotter(size, background):
    """An empty picture of size (width, height) with its lights; errors.Unavailable where nothing can be drawn."""
    pyvista = package()
    try:
        canvas = pyvista.Plotter(off_screen=True, window_size=[int(size[0]), int(size[1])], lighting="none")
        # Drawing without a context would crash the process, and SupportsOpenGL() says yes to anything.
        canvas.render_window.Initialize()
        canvas.render_window.MakeCurrent()
        ready = canvas.render_window.IsCurrent()
    except RuntimeError as cause:
        raise errors.Unavailable(NO_GL) from cause
    if not ready:
        canvas.close()
        raise errors.Unavailable(NO_GL)
    low, high = (background, None) if isinstance(background, str) else background
    canvas.set_background(low, top=high)
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
        canvas.add_light(light)
    return canvas


class Studio:
    """A plotter that draws one picture after the other: `with` it; the making of an OpenGL window takes longer than a picture."""

    def __init__(self, size, background):
        self.size, self.background, self.depth = size, background, 0
        self.plotter: Any = None  # of pyvista, within the block

    def __enter__(self):
        if not self.depth:
            self._quiet = quiet()
            self._quiet.__enter__()
            try:
                self.plotter = plotter(self.size, self.background)
            except BaseException:
                self._quiet.__exit__(None, None, None)
                raise
        self.depth += 1
        return self

    def __exit__(self, *_):
        self.depth -= 1
        if not self.depth:
            self.plotter.close()
            self._quiet.__exit__(None, None, None)

    def clear(self):
        """Take away what was drawn before; the lights stay."""
        self.plotter.clear_actors()
        self.plotter.disable_ssao()


def arrows_of(stage, what):
    """Where arrows begin (k,3) [m] and what they show (k,3), one for each body that has any."""
    columns = stage.columns
    if isinstance(what, str):
        errors.pick("arrows", what, {"velocity": None, "force": None})
    if isinstance(what, str) and what == "force":
        if not stage.contacts:
            raise ValueError(
                "arrows 'force': the contacts of this moment are not known; a run keeps them in its frames"
            )
        rows = np.searchsorted(columns["number"], stage.contacts["pair"]).reshape(-1, 2)
        force = np.asarray(stage.contacts["force"], dtype=float)
        count = len(columns["number"])
        vector = np.stack(
            [
                np.bincount(rows[:, 1], force[:, k], count) - np.bincount(rows[:, 0], force[:, k], count)
                for k in range(3)
            ],
            axis=1,
        )
    else:
        vector = np.asarray(columns["velocity"] if isinstance(what, str) else what, dtype=float)
    owner = np.unique(stage.body)
    return np.asarray(columns["position"], dtype=float)[owner], vector[owner]


def add_arrows(canvas, stage, start, vector):
    """Draw arrows; those of the 95th percentile are six median radii long, and none is longer than twice that."""
    size = np.linalg.norm(vector, axis=1)
    if not size.any():
        return
    long = 6.0 * float(np.median(stage.size)) if len(stage.size) else 1.0
    scale = np.minimum(long / np.percentile(size[size > 0.0], 95), 2.0 * long / np.where(size > 0.0, size, np.inf))
    points = package().PolyData(start.astype(np.float32))
    points["vector"] = (vector * scale[:, None]).astype(np.float32)
    points["length"] = (size * scale).astype(np.float32)
    shaft = package().Arrow(tip_length=0.3, tip_radius=0.12, shaft_radius=0.05, tip_resolution=12, shaft_resolution=8)
    arrows = points.glyph(orient="vector", scale="length", factor=1.0, geom=shaft)
    _shade(canvas.add_mesh(arrows, color="#20262b", reset_camera=False, show_scalar_bar=False))


def add_particles(canvas, stage, paint, eye, pixels):
    """Draw all particles in the colours paint (s,3); eye (3,) [m], pixels: height of the picture."""
    if stage.ball.any():
        _add_balls(canvas, stage.centre[stage.ball], stage.radius[stage.ball], paint[stage.ball])
    for row, table, place in (
        (stage.hull, stage.hulls, vtk.polygons),
        (stage.surface, stage.surfaces, vtk.skins),
    ):
        solid = np.flatnonzero(row >= 0)
        if len(solid):
            body = stage.body[solid]
            orientation, scale = (np.asarray(stage.columns[name])[body] for name in ("orientation", "scale"))
            faces = place(stage.centre[solid], orientation, scale, row[solid], table)
            _add_faces(canvas, faces, paint[solid][faces.owner])
    bent = np.flatnonzero(stage.power[:, 0] > 0.0)
    if len(bent):
        faces = vtk.superquadrics(stage.centre[bent], stage.orientation[bent], stage.axes[bent], stage.power[bent])
        _add_faces(canvas, faces, paint[bent][faces.owner], smooth=True)
    rows = np.flatnonzero(~stage.ball & (stage.hull < 0) & (stage.surface < 0) & (stage.power[:, 0] == 0.0))
    # Radius of each in the picture; how many facets it needs for a smooth outline follows from it.
    depth = np.maximum(np.linalg.norm(stage.centre[rows] - eye, axis=1) - stage.radius[rows], 1e-300)
    radius = 0.5 * pixels * stage.radius[rows] / (depth * np.tan(np.radians(VIEW_ANGLE) / 2.0))
    level = np.searchsorted(SMOOTH, radius)
    for k in np.unique(level):
        _add_ellipsoids(canvas, stage, rows[level == k], paint, int(k) + 1)


def _add_balls(canvas, centre, radius, paint):
    from vtkmodules.vtkRenderingOpenGL2 import vtkOpenGLSphereMapper

    points = package().PolyData(centre.astype(np.float32))
    points["radius"] = radius.astype(np.float32)  # The mapper crashes on double precision.
    points["paint"] = paint
    mapper = vtkOpenGLSphereMapper()
    mapper.SetInputData(points)
    mapper.SetScaleArray("radius")
    _add_mapper(canvas, mapper)


def _add_ellipsoids(canvas, stage, rows, paint, subdivisions):
    """Copies of one ball of facets, each stretched and turned; its normals are turned and stretched with it."""
    from trimesh.creation import icosphere
    from vtkmodules.vtkRenderingCore import vtkGlyph3DMapper

    pyvista = package()
    ball = icosphere(subdivisions=subdivisions)
    source = pyvista.PolyData(ball.vertices.astype(np.float32), np.insert(ball.faces, 0, 3, axis=1).ravel())
    source.point_data.active_normals = ball.vertices.astype(np.float32)
    points = pyvista.PolyData(stage.centre[rows].astype(np.float32))
    points["axes"] = stage.axes[rows].astype(np.float32)
    points["orientation"] = stage.orientation[rows].astype(np.float32)
    points["paint"] = paint[rows]
    mapper = vtkGlyph3DMapper()
    mapper.SetInputData(points)
    mapper.SetSourceData(source)
    mapper.SetScaleArray("axes")
    mapper.SetScaleModeToScaleByVectorComponents()
    mapper.SetOrientationArray("orientation")
    mapper.SetOrientationModeToQuaternion()
    _add_mapper(canvas, mapper)


def _add_faces(canvas, faces, paint, smooth=False):
    """All faces, vtk.Polygons, as one mesh in the colours paint (f,3), each in one shade: light breaks at the edges, unless smooth."""
    mesh = package().PolyData(
        faces.vertices.astype(np.float32), np.insert(faces.loop, faces.start[:-1], np.diff(faces.start))
    )
    mesh.cell_data["paint"] = paint
    actor = canvas.add_mesh(mesh, scalars="paint", rgb=True, show_scalar_bar=False, reset_camera=False)
    _shade(actor, specular=0.08)
    actor.prop.interpolation = "Phong" if smooth else "Flat"


def _add_mapper(canvas, mapper):
    mapper.SetScalarModeToUsePointFieldData()
    mapper.SelectColorArray("paint")
    actor = package().Actor()
    actor.SetMapper(mapper)
    _shade(actor, specular=0.18)
    canvas.add_actor(actor, reset_camera=False)


def add_wall(canvas, stage, wall, eye):
    """Draw a wall, vtk.Surface; what of it hides particles from the eye (3,) [m] becomes glass."""
    pyvista = package()
    faces = np.insert(wall.triangles, 0, 3, axis=1)
    mesh = pyvista.PolyData(wall.vertices, faces.ravel())
    if wall.flat:
        _shade(canvas.add_mesh(mesh, color=FLOOR, reset_camera=False), ambient=0.2)
        return
    front = hiding(stage, wall, eye)
    for keep, opacity in ((~front, 1.0), (front, GLASS)):
        if keep.any():
            part = pyvista.PolyData(wall.vertices, faces[keep].ravel())
            part = part.compute_normals(feature_angle=40.0, split_vertices=True, auto_orient_normals=False)
            _shade(canvas.add_mesh(part, color=WALL, opacity=opacity, reset_camera=False), ambient=0.45)
    edges = mesh.clean().extract_feature_edges(feature_angle=35.0, manifold_edges=False, non_manifold_edges=False)
    if edges.n_cells:
        width = 0.003 * float(np.max(np.ptp(wall.vertices, axis=0)))
        tubes = edges.strip(join=True, max_length=10_000).tube(radius=width, n_sides=12)
        _shade(canvas.add_mesh(tubes, color=EDGE, reset_camera=False), specular=0.2)


def hiding(stage, wall, eye):
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


def package():
    """pyvista, or errors.Unavailable that says how to get it."""
    try:
        with warnings.catch_warnings():
            # In a notebook without ipywidgets: about a progress bar that nobody asks for.
            warnings.filterwarnings("ignore", message="IProgress not found")
            import pyvista
            import pyvista.plotting
    except ImportError as cause:
        raise errors.Unavailable(f"pictures need pyvista ({cause}): {INSTALL}") from cause
    return pyvista


@contextlib.contextmanager
def quiet():
    """Without a display VTK complains about the X server before it finds EGL by itself."""
    from vtkmodules.vtkCommonCore import vtkLogger

    before = vtkLogger.GetCurrentVerbosityCutoff()
    vtkLogger.SetStderrVerbosity(vtkLogger.VERBOSITY_ERROR)
    try:
        yield
    finally:
        vtkLogger.SetStderrVerbosity(before)

"""What a picture shows, where it is, and from where it is seen best."""

from typing import NamedTuple

import numpy as np

from .. import errors
from ..files import trajectory, vtk

VIEW_ANGLE = 26.0  # [degree], vertical
MARGIN = 1.1


class Stage(NamedTuple):
    """What stands before the camera: balls, ellipsoids, polyhedra and meshes, one row each, and walls."""

    centre: np.ndarray  # (s,3) [m]
    radius: np.ndarray  # (s,) [m], of a ball that contains the particle; of a sphere its own
    orientation: np.ndarray  # (s,4) turns the own axes of the particle into those of the world
    axes: np.ndarray  # (s,3) [m], half-axes along its own axes; of a sphere its radius three times, of a
    # polyhedron or mesh that of the ball with its volume
    size: np.ndarray  # (s,) [m], radius of the ball with its volume
    ball: np.ndarray  # (s,) bool, a sphere, or an ellipsoid with equal half-axes
    hull: np.ndarray  # (s,) row of hulls, -1 for all but polyhedra
    surface: np.ndarray  # (s,) row of surfaces, -1 for all but triangulated particles
    power: np.ndarray  # (s,2) exponents of superquadrics, 0 for all others
    body: np.ndarray  # (s,) row of columns
    columns: dict
    hulls: dict | None  # columns of tables.Hulls
    surfaces: dict | None  # columns of tables.Surfaces
    walls: list  # of vtk.Surface
    axis: np.ndarray | None  # (3,) unit, about which a drum turns
    contacts: dict  # columns of contacts as in a trajectory frame; empty if they are not known

    @classmethod
    def of(cls, subject, groups, walls=True):
        """From what `render` takes; walls: False to leave them out."""
        contacts = subject.contacts if isinstance(subject, trajectory.Frame) else {}
        columns, groups = _sort_out(subject, groups)
        molds, parts = groups["molds"], groups["parts"]
        hulls, surfaces = groups.get("hulls"), groups.get("surfaces")
        body, centre, orientation, axes, hull, surface, power, size = vtk.particles(
            columns, molds, parts, hulls, surfaces
        )
        radius, ball = axes.max(axis=1, initial=0.0), (axes == axes[:, :1]).all(axis=1) & (hull < 0) & (surface < 0)
        ball &= power[:, 0] == 0.0
        radius = np.where(power[:, 0] > 0.0, np.linalg.norm(axes, axis=1), radius)
        for row, table in ((hull, hulls), (surface, surfaces)):
            solid = np.flatnonzero(row >= 0)
            if len(solid):
                scale = np.asarray(columns["scale"], dtype=float)[body[solid]]
                radius[solid] = np.asarray(table["outer"])[row[solid]] * scale
        skins = vtk.surfaces(columns, molds, parts, groups["meshes"], around=_box(centre, radius)) if walls else []
        finite = [wall for wall in skins if not wall.flat]
        floors = [wall for wall in skins if wall.flat and wall.axis[2] > 0.7]
        rows = (centre, radius, orientation, axes, size, ball, hull, surface, power, body)
        stage = cls(*rows, columns, hulls, surfaces, finite, _drum_axis(columns, finite), contacts)
        points, _ = _outline(stage)
        return stage._replace(walls=finite + [vtk.plate(floor, points) for floor in floors])

    def kept(self, cuts):
        """The stage with those particles alone whose centres are behind all planes (point (3,), normal (3,))."""
        keep = np.ones(len(self.centre), dtype=bool)
        for point, normal in cuts:
            keep &= (self.centre - point) @ np.asarray(normal, dtype=float) <= 0.0
        names = ("centre", "radius", "orientation", "axes", "size", "ball", "hull", "surface", "power", "body")
        return self._replace(**{name: getattr(self, name)[keep] for name in names})


def over_time(run, groups):
    """The stage of the last frame of a run, with the particles and walls of its first and middle frame as well: what a camera that stays where it is
    has to see.

    run: frames by number; groups: header groups of the trajectory. Its columns are those of the last frame alone: it is for cameras, not to be drawn.
    """
    last, *others = (Stage.of(run[k], groups) for k in sorted({0, len(run) // 2, len(run) - 1}, reverse=True))
    many = [last, *others]
    together = {name: np.concatenate([getattr(one, name) for one in many]) for name in ("centre", "radius")}
    return last._replace(walls=[wall for one in many for wall in one.walls], **together)


def _sort_out(subject, groups):
    if hasattr(subject, "bodies"):
        groups = {name: getattr(subject, name) for name in ("molds", "parts", "meshes", "hulls", "surfaces")}
        subject = subject.bodies
    if isinstance(subject, trajectory.Frame):
        subject = subject.columns
    if groups is None:
        raise TypeError("columns alone do not tell the shapes of bodies; give tables=, the `groups` of a trajectory")
    plain = {name: table._asdict() if hasattr(table, "_asdict") else table for name, table in groups.items()}
    return (subject._asdict() if hasattr(subject, "_asdict") else subject), plain


def _box(centre, radius):
    """Low and high corner of the particles, without the few that flew far away."""
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
        axis = wall.axis if wall.axis.any() else np.asarray(columns["spin"], dtype=float)[wall.body]
        length = np.linalg.norm(axis)
        if length == 0.0 or abs(axis[2]) > 0.3 * length:
            continue
        extent = np.max(np.ptp(wall.vertices, axis=0))
        if extent > width:
            best, width = axis / length, extent
    return best


# Where the eye is, seen from the middle, by name.
VIEWS = {
    "front": (0.0, -1.0, 0.0),
    "back": (0.0, 1.0, 0.0),
    "left": (-1.0, 0.0, 0.0),
    "right": (1.0, 0.0, 0.0),
    "top": (0.0, 0.0, 1.0),
    "corner": (0.55, -0.80, 0.42),
}


def camera(stage, size, view=None):
    """(position, target, up) from which everything is seen, filling the picture; view: a name of VIEWS, or None for the best."""
    up = np.array([0.0, 0.0, 1.0])
    if view is not None:
        out = np.array(errors.pick("view", view, VIEWS))
        up = np.array([0.0, 1.0, 0.0]) if view == "top" else up
    elif stage.axis is not None:
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
    places, margins = [stage.centre[near]], [stage.radius[near]]
    room = np.linalg.norm(high - low)
    for wall in stage.walls:
        if len(stage.centre) and _apart(wall, low, high) > 0.1 * room:
            continue  # a gate that slid away: nobody looks for it
        inside = np.all((wall.vertices > low - 2.0 * room) & (wall.vertices < high + 2.0 * room), axis=1)
        places.append(wall.vertices[inside])
        margins.append(np.zeros(int(inside.sum())))
    points, pad = np.concatenate(places), np.concatenate(margins)
    return (points, pad) if len(points) else (np.array([low, high]), np.zeros(2))


def _apart(wall, low, high):
    """How far a wall, vtk.Surface, is from the box low..high [m]; below 0 where they overlap."""
    return float(np.max(np.maximum(low - wall.vertices.max(axis=0), wall.vertices.min(axis=0) - high)))


def corners(stage):
    """Low and high corner [m] of all particles, or of walls where there are none."""
    if len(stage.centre):
        return (stage.centre - stage.radius[:, None]).min(0), (stage.centre + stage.radius[:, None]).max(0)
    points = (
        np.concatenate([wall.vertices for wall in stage.walls]) if stage.walls else np.array([[-1.0] * 3, [1.0] * 3])
    )
    return points.min(0), points.max(0)

"""Particles as batches of equal meshes, each instance with its own place, turn, size and colour: true shapes, drawn by the browser."""

from typing import NamedTuple

import numpy as np

from ..files import vtk
from ..shapes import Superquadric

MOST = 49_999  # instances of a batch


class Batch(NamedTuple):
    """Copies of one mesh."""

    key: str  # what the mesh is
    vertices: np.ndarray  # (v,3), at size 1
    faces: np.ndarray  # (f,3)
    rows: np.ndarray  # (k,) which particles of the stage
    smooth: bool


def batches(stage, facets=None):
    """The particles of a stage as a list of Batch; facets: of the ball that stands for round ones, by default fewer the more there are."""
    from trimesh.creation import icosphere

    made = []
    soft = (stage.hull < 0) & (stage.surface < 0) & (stage.power[:, 0] == 0.0)
    count = int(soft.sum())
    level = 3 if count <= 500 else 2 if count <= 8_000 else 1
    ball = icosphere(subdivisions=level if facets is None else facets)
    made += _split("ball", np.asarray(ball.vertices), np.asarray(ball.faces), np.flatnonzero(soft), True)
    solids = (("hull", stage.hull, stage.hulls, vtk.polygons), ("surface", stage.surface, stage.surfaces, vtk.skins))
    for name, row, table, place in solids:
        for one in np.unique(row[row >= 0]):
            faces = place(np.zeros((1, 3)), np.array([[1.0, 0.0, 0.0, 0.0]]), np.ones(1), np.array([one]), table)
            made += _split(f"{name}{one}", *_triangles(faces), np.flatnonzero(row == one), False)
    # Superquadrics of one form: equal exponents and half-axes in equal proportion.
    bent = np.flatnonzero(stage.power[:, 0] > 0.0)
    if len(bent):
        form = np.round(np.hstack([stage.axes[bent] / stage.axes[bent, :1], stage.power[bent]]), 5)
        for values in np.unique(form, axis=0):
            corner, triangle = Superquadric(*values).surface(subdivisions=3)
            made += _split("bent" + "_".join(map(str, values)), corner, triangle, bent[(form == values).all(1)], True)
    return made


def sizes(stage, columns):
    """Size factors (s,3) of the instances: half-axes of round particles, the factor of the body for others."""
    scale = np.asarray(columns["scale"], dtype=float)[stage.body]
    solid = (stage.hull >= 0) | (stage.surface >= 0)
    bent = stage.power[:, 0] > 0.0
    own = np.where(bent[:, None], stage.axes[:, :1], stage.axes)
    return np.where(solid[:, None], scale[:, None], own)


def _split(key, vertices, faces, rows, smooth):
    return [Batch(key, vertices, faces, rows[k : k + MOST], smooth) for k in range(0, len(rows), MOST)]


def _triangles(polygons) -> tuple[np.ndarray, np.ndarray]:
    """Vertices and triangles of Polygons, each face as a fan; faces have corners of their own, so that light breaks at edges."""
    triangle, start = [], polygons.start
    for first, last in zip(start[:-1], start[1:]):
        loop = polygons.loop[first:last]
        triangle += [(loop[0], loop[k], loop[k + 1]) for k in range(1, len(loop) - 1)]
    corner = polygons.vertices[np.array(triangle).reshape(-1)]
    return corner, np.arange(len(corner)).reshape(-1, 3)


def filled(column, room, dtype):
    """The rows of a column and zeros behind them up to `room`."""
    made = np.zeros((room, column.shape[1]), dtype)
    made[: len(column)] = column
    return made

"""From bodies to the tables of shapes that kernels read, and parts where their bodies are."""

import math

import numpy as np

from ..kernels import backend
from ..kernels.backend import kernel
from ..kernels.rows import CENTRES, COLUMNS, PER_INERTIA, PER_MASS, REACH, SPINS, VELOCITIES
from ..scene.stacking import lone_parts
from ..tables import NONE, Shapes
from . import integrate

BLOCK = 4096  # rows that stay in the cache while one column after the other is written


def roomy(shape, dtype, room):
    """An array with memory for so many rows more, see `widened`."""
    return np.zeros((shape[0] + room, *shape[1:]), dtype)[: shape[0]]


def widened(column, count):
    """The same array with `count` rows in the memory that it has; None where that is too little."""
    whole = column.base
    if count <= len(column):
        return column[:count]
    same = whole is not None and whole.dtype == column.dtype and whole.shape[1:] == column.shape[1:]
    return whole[:count] if same and len(whole) >= count and whole.ctypes.data == column.ctypes.data else None


def place_shapes(bodies, label, molds, parts, room=0):
    """Bodies and Shapes as views of the rows, and the rows (s,12); parts with rows of their own are not placed yet.

    label (n,): number of the first part of each body. room: rows more that there is memory for.
    """
    n, lone = len(bodies.number), lone_parts(molds, parts)
    more = np.zeros(n, np.int32) if lone.all() else np.where(lone, 0, molds.count)[bodies.mold]
    behind = np.repeat(np.arange(n, dtype=np.int32), more)
    within = np.arange(len(behind)) - np.repeat(np.cumsum(more) - more, more)
    body = np.concatenate([np.arange(n, dtype=np.int32), behind])
    count, number = (len(body),), np.empty(len(body), np.int64)
    part, kind = roomy(count, np.int32, room), roomy(count, parts.kind.dtype, room)
    radius, rows = roomy(count, np.float64, room), roomy((*count, COLUMNS), np.float64, room)
    first = molds.first.astype(np.int32)
    alone = np.where(lone, parts.kind[first], NONE), np.where(lone, parts.reach[first], np.inf)
    for begin in range(0, n, BLOCK):
        some = slice(begin, min(begin + BLOCK, n))
        mold, row = bodies.mold[some], rows[some]
        part[some], kind[some] = first[mold], alone[0][mold]
        radius[some], number[some] = alone[1][mold] * bodies.scale[some], label[some]
        row[:, CENTRES], row[:, VELOCITIES] = bodies.position[some], bodies.velocity[some]
        row[:, SPINS], row[:, REACH] = bodies.spin[some], radius[some]
        row[:, PER_MASS], row[:, PER_INERTIA] = 1.0 / bodies.mass[some], 1.0 / bodies.inertia[some]
    if len(behind):
        own = part[n:]
        own[:] = first[bodies.mold[behind]] + within
        kind[n:], radius[n:], number[n:] = (
            parts.kind[own],
            parts.reach[own] * bodies.scale[behind],
            label[behind] + within,
        )
        row = rows[n:]
        row[:, REACH] = radius[n:]
        row[:, PER_MASS], row[:, PER_INERTIA] = 1.0 / bodies.mass[behind], 1.0 / bodies.inertia[behind]
    bodies = bodies._replace(position=rows[:n, CENTRES], velocity=rows[:n, VELOCITIES], spin=rows[:n, SPINS])
    shapes = Shapes(number, body, part, kind, rows[:, CENTRES], radius)
    return bodies, shapes, rows


def place_parts(bodies, shapes, parts, box, rows, reference=None, turned_from=None, far=None):
    """Put the parts that have rows of their own where their bodies are; returns how far the surface of any has moved [m] from
    reference (s,3) and turned_from (n,4), and notes it in `far`, see Pairs."""
    device = backend.DEVICE[-1]
    n = len(bodies.number)
    chunk = device.chunk
    chunks = (len(shapes.body) - n + chunk - 1) // chunk
    if chunks <= 0:
        return 0.0
    moved = device.empty(chunks, np.float64)
    place = kernel(integrate.place_row, grain=4)
    edges = (*box.length.tolist(), *box.inverse.tolist())
    start = device.empty((0, 3), np.float64) if reference is None else reference
    turned_from = device.empty((0, 4), np.float64) if turned_from is None else turned_from
    far = device.empty(0, np.float64) if far is None else far
    place(chunks, chunk, n, bodies, shapes, parts, rows, start, turned_from, far, moved, edges)
    return math.sqrt(device.peak(moved))

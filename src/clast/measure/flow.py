"""What flows, how steep it lies, and how well it is mixed."""

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from ..signatures import Corners, Few, Floats, Vector
from .snapshot import Snapshot, corners, snapshot

if TYPE_CHECKING:
    from ..files.trajectory import Trajectory
    from .snapshot import Subject


def mass_flow(
    moments: "Trajectory | Iterable[Snapshot]", point: Vector, normal: Vector, *, box: Corners | None = None
) -> tuple[Floats, Floats]:
    """Mass that passes a plane in the direction of its normal, less what comes back: (t, rate), both (k-1,), of k moments:

        rate = (sum of m over bodies with s < 0 <= s' - sum of m over those with s' < 0 <= s) / (t' - t),  s = (x - point) . normal

    moments: a trajectory, or Snapshots in the order of time; t [s]: the later of two; rate [kg/s]: the masses of all free bodies whose
    centre is behind the plane at the one and before it at the other, over the time between. A body that is there at one of them
    only (poured, taken out) does not count. point (3,) [m], normal (3,). box: only where the way of the centre meets the plane
    inside it. Bodies must move by less than half of a periodic world between two moments.
    """
    if hasattr(moments, "groups"):
        run: Any = moments
        moments = (snapshot(frame, run, contacts=False) for frame in run)
    point, normal = np.asarray(point, dtype=float), np.asarray(normal, dtype=float)
    normal = normal / np.linalg.norm(normal)
    limits = None if box is None else corners("mass_flow", box)
    times, rates, last = [], [], None
    for now in moments:
        if last is not None:
            times.append(now.time)
            rates.append(_passed(last, now, point, normal, limits) / (now.time - last.time))
        last = now
    return np.array(times), np.array(rates)


def _passed(last, now, point, normal, limits):
    """Mass [kg] that crossed the plane between two moments."""
    common, before, after = np.intersect1d(last.number[last.free], now.number[now.free], return_indices=True)
    if not len(common):
        return 0.0
    start = last.position[last.free][before]
    way = now.nearest(now.position[now.free][after] - start)
    # Of the images of the start take that nearest to the plane's point.
    start = point + now.nearest(start - point)
    ahead, later = (start - point) @ normal, (start + way - point) @ normal
    sign = np.where((ahead < 0.0) & (later >= 0.0), 1.0, 0.0) - np.where((ahead >= 0.0) & (later < 0.0), 1.0, 0.0)
    if limits is not None:
        span = np.where(later == ahead, 1.0, later - ahead)
        meets = start + (-ahead / span)[:, None] * way
        wraps = now.length > 0.0
        meets = np.where(wraps, limits[0] + np.mod(meets - limits[0], np.where(wraps, now.length, 1.0)), meets)
        sign *= ((meets >= limits[0]) & (meets <= limits[1])).all(1)
    return float(sign @ now.mass[now.free][after])


def angle_of_repose(
    subject: "Subject",
    *,
    axis: Few | None = None,
    up: Few = (0.0, 0.0, 1.0),
    part: tuple[float, float] = (0.2, 0.8),
) -> float:
    """Angle [rad] between the surface of a heap, or of the bed in a drum, and the horizontal: a = atan(-dh/dr) of a heap, atan |dh/dx| of a bed, with the
    straight line h [m] over r or x [m] fitted to its surface.

    A heap (axis None): the tops z + r of the particles are looked at in rings about the vertical through the centre of mass, each as
    wide as a mean particle diameter, and in eight sectors; the highest of each sector is averaged over the ring. The angle is atan of the slope of
    the straight line fitted (least squares) to those heights over the radius, of rings between the parts `part` of the height of the heap.
    A drum or a slope: axis (3,) is that of the drum; the same in strips across the horizontal at right angles to it, of strips between the
    parts `part` of the width.
    """
    moment = snapshot(subject, contacts=False)
    solid = moment.free & (moment.volume > 0.0)
    place, radius, mass = moment.position[solid], moment.radius[solid], moment.mass[solid]
    if len(place) < 10:
        raise ValueError(f"angle_of_repose: {len(place)} particles are no heap")
    up = np.asarray(up, dtype=float) / np.linalg.norm(up)
    height = place @ up
    top = height + radius
    wide = 2.0 * float(radius.mean())
    if axis is None:
        flat = place - mass @ place / mass.sum()
        flat = flat - np.outer(flat @ up, up)
        away = np.linalg.norm(flat, axis=1)
        helper = np.eye(3)[np.argmin(np.abs(up))]
        one = np.cross(up, helper)
        one /= np.linalg.norm(one)
        turn = np.arctan2(flat @ np.cross(up, one), flat @ one)
        cell = np.floor(away / wide).astype(int) * 8 + np.minimum(((turn / math.pi + 1.0) * 4.0).astype(int), 7)
        where, level = _tops(cell, top, 8, wide)
        floor = float((height - radius).min())
        share = (level - floor) / (level.max() - floor)
    else:
        across = np.cross(up, np.asarray(axis, dtype=float))
        across /= np.linalg.norm(across)
        along = place @ across
        cell = np.floor((along - along.min()) / wide).astype(int)
        where, level = _tops(cell, top, 1, wide)
        share = where / where.max()
    chosen = (share >= part[0]) & (share <= part[1])
    if chosen.sum() < 2:
        raise ValueError(
            "angle_of_repose: fewer than two rings or strips lie in the part that is looked at; widen `part`"
        )
    slope = np.polyfit(where[chosen], level[chosen], 1)[0]
    return math.atan(-slope if axis is None else abs(slope))


def _tops(cell, top, sectors, wide):
    """Middles (k,) [m] of rings or strips, and the mean over their sectors of the highest top (k,) [m]."""
    highest = np.full(int(cell.max()) + 1, -np.inf)
    np.maximum.at(highest, cell, top)
    rows = np.pad(highest, (0, -len(highest) % sectors), constant_values=-np.inf).reshape(-1, sectors)
    full = np.flatnonzero(np.isfinite(rows).all(1))
    if not len(full):
        raise ValueError("angle_of_repose: no ring has particles on all sides; this is no heap")
    return (full + 0.5) * wide, rows[full].mean(1)


def lacey(subject: "Subject", kind: ArrayLike, *, box: Corners, cells: tuple[int, int, int], least: int = 8) -> float:
    """Lacey's mixing index M = (s0^2 - s^2) / (s0^2 - sr^2) (Lacey 1954): 0 for two separate kinds, 1 for a random mixture.

    kind (n,) bool: which free particles are of the first kind, in the order of their numbers. s^2 is the variance of their share p_i in the cells
    of a grid, weighted by their counts; s0^2 = p (1 - p) is that of separate kinds and sr^2 = p (1 - p) / n that of a random mixture,
    with p the share of all and n the mean count in a cell. box [m]; cells (3,): how many along each axis. Cells with
    fewer than `least` particles are left out.
    """
    share, count = _shares("lacey", subject, kind, box, cells, least)
    p = float(share @ count / count.sum())
    variance = float((share - p) ** 2 @ count / count.sum())
    apart, random = p * (1.0 - p), p * (1.0 - p) / float(count.mean())
    if apart == random:
        raise ValueError("lacey: there is one kind alone, or one particle in each cell; the index has no meaning")
    return (apart - variance) / (apart - random)


def relative_deviation(
    subject: "Subject", kind: ArrayLike, *, box: Corners, cells: tuple[int, int, int], least: int = 8
) -> float:
    """Relative standard deviation of the share of one kind over cells, RSD = s / p, a pure number; s, p and arguments as in `lacey`: 0 where
    all are alike, sqrt((1 - p) / p) where kinds are separate."""
    share, count = _shares("relative_deviation", subject, kind, box, cells, least)
    p = float(share @ count / count.sum())
    if p == 0.0:
        raise ValueError("relative_deviation: no particle of this kind lies in the cells that are looked at")
    return math.sqrt(float((share - p) ** 2 @ count / count.sum())) / p


def _shares(place, subject, kind, box, cells, least):
    """Share of the first kind and count of particles in each cell that has enough, both (k,)."""
    moment = snapshot(subject, contacts=False)
    solid = moment.free & (moment.volume > 0.0)
    centre, kind = moment.position[solid], np.asarray(kind)
    if kind.dtype != bool or kind.shape != (len(centre),):
        raise ValueError(
            f"{place}: kind must be a mask over the {len(centre)} free particles, got {kind.dtype} {kind.shape}"
        )
    low, high = corners(place, box)
    inside = ((centre >= low) & (centre < high)).all(1)
    cell = np.floor((centre[inside] - low) / (high - low) * np.asarray(cells)).astype(int)
    flat = np.ravel_multi_index(np.minimum(cell, np.asarray(cells) - 1).T, tuple(cells))
    count = np.bincount(flat, minlength=int(np.prod(cells)))
    first = np.bincount(flat, kind[inside].astype(float), minlength=len(count))
    full = count >= max(least, 1)
    if not full.any():
        raise ValueError(f"{place}: no cell has {least} particles; take fewer cells")
    return first[full] / count[full], count[full].astype(float)

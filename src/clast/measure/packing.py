"""How much of space is filled, and how far apart particles are."""

import math
from typing import TYPE_CHECKING

import numpy as np

from ..signatures import Corners, Floats
from .snapshot import corners, images, snapshot

if TYPE_CHECKING:
    from .snapshot import Subject

NODES = 24  # of Gauss-Legendre quadrature on each smooth piece


def packing_fraction(subject: "Subject", box: Corners | None = None) -> float:
    """Part of a box ((x, y, z), (x, y, z)) [m] that particles fill, phi = sum_p |P and box| / |box|.

    Spheres count with exactly the part that lies inside. Other particles that the surface of the box cuts count as balls of their
    volume there. Overlaps of soft particles count twice. Without a box: the box around all free particles, or the periodic world.
    """
    moment = snapshot(subject, contacts=False)
    solid = moment.volume > 0.0
    place, radius = moment.position[solid], moment.radius[solid]
    if box is None:
        if not len(place):
            raise ValueError("packing_fraction: there are no particles; give a box")
        low, high = (place - radius[:, None]).min(0), (place + radius[:, None]).max(0)
        wraps = moment.length > 0.0
        low, high = np.where(wraps, moment.low, low), np.where(wraps, moment.low + moment.length, high)
    else:
        low, high = corners("packing_fraction", box)
    filled = sum(float(inside_volume(place + shift, radius, low, high).sum()) for shift in images(moment))
    return filled / float(np.prod(high - low))


def packing_profile(subject: "Subject", axis: int = 2, *, box: Corners, bins: int = 50) -> tuple[Floats, Floats]:
    """Packing fraction over height: (h, phi), both (bins,), phi_k = sum_p |P and slice k| / |slice k|, in slices of a box [m] across `axis` (0, 1, 2), as
    in `packing_fraction`.

    h [m]: the middle of each slice.
    """
    moment = snapshot(subject, contacts=False)
    low, high = corners("packing_profile", box)
    solid = moment.volume > 0.0
    place, radius = moment.position[solid], moment.radius[solid]
    edge = np.linspace(low[axis], high[axis], bins + 1)
    filled = np.zeros(bins)
    for shift in images(moment):
        here = place + shift
        for k in range(bins):
            near = np.flatnonzero((here[:, axis] > edge[k] - radius) & (here[:, axis] < edge[k + 1] + radius))
            floor, top = low.copy(), high.copy()
            floor[axis], top[axis] = edge[k], edge[k + 1]
            filled[k] += inside_volume(here[near], radius[near], floor, top).sum()
    return 0.5 * (edge[1:] + edge[:-1]), filled / (np.prod(high - low) / bins)


def radial_distribution(
    subject: "Subject", reach: float, *, bins: int = 100, box: Corners | None = None
) -> tuple[Floats, Floats]:
    """Radial distribution function of the centres of all particles up to the distance `reach` [m]: (r, g), both (bins,), r [m] the middles of the
    intervals and g, a pure number:

        g(r) = <number of centres from r to r + dr about a centre> / (rho 4/3 pi ((r + dr)^3 - r^3))

    rho = N / V. In a periodic world all centres are looked from. Along other axes only those are that are farther than reach from
    the faces of `box`, by default that around all centres: their surroundings are known in full.
    """
    from scipy.spatial import cKDTree

    moment = snapshot(subject, contacts=False)
    place = moment.position[moment.volume > 0.0]
    wraps = moment.length > 0.0
    low, high = corners("radial_distribution", box) if box is not None else (place.min(0), place.max(0))
    low, high = np.where(wraps, moment.low, low), np.where(wraps, moment.low + moment.length, high)
    if (wraps & (moment.length < 2.0 * reach)).any():
        raise ValueError(f"radial_distribution: reach = {reach:g} m is more than half of the periodic world; take less")
    place = place[((place >= low) & (place <= high)).all(1)]
    core = ((place >= low + reach) & (place <= high - reach) | wraps).all(1)
    if not core.any():
        raise ValueError(
            f"radial_distribution: no centre is {reach:g} m away from the faces of the box; take a smaller reach"
        )
    # A period of zero means none; places must lie in [0, period).
    shifted = np.where(wraps, np.mod(place - low, np.where(wraps, moment.length, 1.0)), place - low)
    tree = cKDTree(shifted, boxsize=np.where(wraps, moment.length, 0.0))
    edge = np.linspace(0.0, reach, bins + 1)
    # Pairs up to each distance, without those of a centre with itself.
    within = tree.count_neighbors(cKDTree(shifted[core], boxsize=tree.boxsize), edge)
    count = np.diff(np.concatenate([[int(core.sum())], within[1:]]))
    shell = 4.0 / 3.0 * math.pi * np.diff(edge**3)
    density = len(place) / float(np.prod(high - low))
    return 0.5 * (edge[1:] + edge[:-1]), count / (int(core.sum()) * density * shell)


def inside_volume(centre, radius, low, high):
    """Volumes (n,) [m^3] of the parts of balls with centres (n,3) and radii (n,) [m] that lie in the box low..high.

    The section of a ball and the box at a height is that of a circle and a rectangle, which is known in closed form; over the height
    it is integrated between the heights where its form changes, by Gauss-Legendre quadrature in the angle of the ball.
    """
    a, b = (low - centre) / radius[:, None], (high - centre) / radius[:, None]
    unit = np.where(((a <= -1.0) & (b >= 1.0)).all(1), 4.0 / 3.0 * math.pi, 0.0)
    cut = np.flatnonzero((unit == 0.0) & ((a < 1.0) & (b > -1.0)).all(1))
    a, b = np.clip(a[cut], -1.0, 1.0), np.clip(b[cut], -1.0, 1.0)
    # Heights where the circle begins to meet a side or passes a corner.
    x, y = np.stack([a[:, 0], b[:, 0]], 1), np.stack([a[:, 1], b[:, 1]], 1)
    squares = np.concatenate([x**2, y**2, (x[:, :, None] ** 2 + y[:, None, :] ** 2).reshape(-1, 4)], axis=1)
    turn = np.sqrt(np.clip(1.0 - squares, 0.0, 1.0))
    marks = np.concatenate([a[:, 2:], b[:, 2:], turn, -turn, np.zeros((len(cut), 1))], axis=1)
    angle = np.sort(np.arcsin(np.clip(marks, a[:, 2:], b[:, 2:])), axis=1)
    node, weight = np.polynomial.legendre.leggauss(NODES)
    total = np.zeros(len(cut))
    for k in range(angle.shape[1] - 1):
        half = 0.5 * (angle[:, k + 1] - angle[:, k])
        if not half.any():
            continue
        # Nodes are dense at both ends, where the section begins like the power 3/2 of the distance.
        theta = 0.5 * (angle[:, k + 1] + angle[:, k])[:, None] + half[:, None] * np.sin(0.5 * math.pi * node)
        section = circle_in_rectangle(np.cos(theta), a[:, :1], b[:, :1], a[:, 1:2], b[:, 1:2])
        total += half * ((section * np.cos(theta)) @ (0.5 * math.pi * weight * np.cos(0.5 * math.pi * node)))
    unit[cut] = total
    return unit * radius**3


def circle_in_rectangle(r, x0, x1, y0, y1):
    """Area of the part of a circle of radius r about the origin with x0 <= x <= x1 and y0 <= y <= y1."""

    def quadrant(x, y):
        """Area of the circle with 0 <= x' <= x and 0 <= y' <= y, odd in both."""
        sign = np.sign(x) * np.sign(y)
        x, y = np.minimum(np.abs(x), r), np.minimum(np.abs(y), r)
        whole = x * x + y * y <= r * r
        safe = np.where(r > 0.0, r, 1.0)
        # Up to the height y the strip is a rectangle, then the arc cuts it.
        bend = np.sqrt(np.maximum(r * r - y * y, 0.0))
        arc = 0.5 * (x * np.sqrt(np.maximum(r * r - x * x, 0.0)) + r * r * np.arcsin(np.clip(x / safe, -1.0, 1.0)))
        arc -= 0.5 * (bend * y + r * r * np.arcsin(np.clip(bend / safe, -1.0, 1.0)))
        return sign * np.where(whole, x * y, bend * y + arc)

    return quadrant(x1, y1) - quadrant(x0, y1) - quadrant(x1, y0) + quadrant(x0, y0)

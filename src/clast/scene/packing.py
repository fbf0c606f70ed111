"""Where the bodies of a filling go, by any method; and dense random packings: balls are dropped anywhere and pushed apart until none overlaps."""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from . import clearance, filling

# Overlap, as a share of the smaller radius, up to which a packing counts as done: the repulsion of a contact that young = 1e7 Pa
# gives there is a thousandth of what a layer of grains weighs.
ALLOWED = 1e-3
# Balls are pushed as if they were larger by this factor: the last overlaps vanish slowly, and so they are those of larger balls.
GROWN = 1.005
ROUNDS = 3000  # of pushing apart
DENSEST = 0.61  # reached with equal balls in a periodic box; at random they never reach 0.64 (Scott 1960), wide mixtures come higher


class Spot(NamedTuple):
    """A box that is to be filled."""

    low: np.ndarray  # (3,) [m]
    high: np.ndarray  # (3,) [m]
    period: np.ndarray  # (3,) [m], where the box is the whole of a periodic world; zero along other axes
    walls: Any  # clearance.Walls that balls may meet there
    known: Any  # clearance.Known, bodies that are there
    inside: Callable | None  # points (n,3) -> mask (n,), where centres may be


def find_places(place, method, rng, new, volume, spot, jitter):
    """Centres (n,3) [m] of bodies, filling.Newcomers, with volumes (n,) [m^3]; an error if some find no room."""
    low, high, _, walls, known, inside = spot
    if method == "packed":
        filling.check_fit(place, np.full(3, 2.0 * new.radius.max()), low, high)
        return _packed(place, rng, new.radius, spot)
    filling.check_fit(place, np.broadcast_to((new.down + new.up).max(axis=0), 3), low, high)
    if method == "random":
        centre, placed = filling.fill_random(rng, new, low, high, walls, known, inside)
        done, hint = placed, "use a larger box, fewer bodies or method='lattice'"
    else:
        centre, spacing = filling.fill_lattice(rng, len(new.radius), new, jitter, low, high, walls, known, inside)
        done = np.arange(len(new.radius)) < len(centre)
        hint = f"the spacing is {spacing.max():.6g} m; use a larger box, fewer bodies, or a smaller scale or jitter"
    if not done.all():
        solid = float(volume[done].sum()) / (high - low).prod()
        raise ValueError(
            f"{place}: placed only {int(done.sum())} of {len(done)} bodies in the box {low.tolist()} to "
            f"{high.tolist()} (method {method!r}, solid fraction {solid:.3f}); {hint}"
        )
    return centre


def _packed(place, rng, radius, spot):
    """Centres of a dense packing; the box must be empty, and a mask is of no use."""
    if spot.inside is not None:
        raise ValueError(f"{place}: method='packed' fills the whole box; leave inside out, or take method='random'")
    centre, worst = fill_packed(rng, radius, spot.low, spot.high, spot.period)
    if worst > ALLOWED:
        solid = float(4.0 / 3.0 * math.pi * (radius**3).sum()) / float((spot.high - spot.low).prod())
        raise ValueError(
            f"{place}: {len(radius)} bodies with the balls around them fill {solid:.3f} of the box and still overlap by {100.0 * worst:.2g} % of a "
            f"radius; random packings of equal balls end at about {DENSEST}: use a larger box or fewer bodies, and let them settle"
        )
    there = clearance.stack_balls(spot.low, spot.high, spot.known.centre, spot.known.radius, np.zeros(0))
    if not clearance.clear(centre, radius * (1.0 - 2.0 * ALLOWED), 0.0, spot.walls, there, there.radius).all():
        raise ValueError(
            f"{place}: method='packed' needs an empty box, and walls or other bodies are in it; take a box between them"
        )
    return centre


def fill_packed(rng, radius, low, high, period):
    """Centres (n,3) of balls with radii (n,) [m] in the box low..high, and the largest overlap that is left, as a share of the smaller radius.

    Every two that overlap are moved apart by half of the overlap each, all at once, and put back into the box; this is a descent of the sum
    of squared overlaps (Moscinski et al. 1989). Along axes with a period (3,) [m], zero where there is none, the box repeats.
    """
    from scipy.spatial import cKDTree

    wraps = period > 0.0
    margin = np.where(wraps, 0.0, 1.0) * radius[:, None]
    floor, top = low + margin, high - margin
    place = floor + rng.random((len(radius), 3)) * (top - floor)
    reach = 2.0 * GROWN * float(radius.max())
    worst = np.inf
    for _ in range(ROUNDS):
        inside = np.where(wraps, np.mod(place - low, np.where(wraps, period, 1.0)), place - low)
        inside = np.where(wraps & (inside >= period), 0.0, inside)  # rounding may give the period itself
        tree = cKDTree(inside, boxsize=np.where(wraps, period, 0.0))
        pair = tree.query_pairs(reach, output_type="ndarray")
        a, b = pair.T
        arm = inside[b] - inside[a]
        arm -= np.where(wraps, period * np.round(arm / np.where(wraps, period, 1.0)), 0.0)
        distance = np.linalg.norm(arm, axis=1)
        worst = float(((radius[a] + radius[b] - distance) / np.minimum(radius[a], radius[b])).max(initial=0.0))
        overlap = GROWN * (radius[a] + radius[b]) - distance
        touch = overlap > 0.0
        a, b, arm, distance, overlap = a[touch], b[touch], arm[touch], distance[touch], overlap[touch]
        place = low + inside
        if worst < ALLOWED:
            break
        # The light one gives way: shares as masses of balls.
        heavy = radius[a] ** 3 / (radius[a] ** 3 + radius[b] ** 3)
        push = arm * (overlap / np.where(distance > 0.0, distance, 1.0))[:, None]
        move = np.stack(
            [
                np.bincount(b, heavy * push[:, k], len(radius))
                - np.bincount(a, (1.0 - heavy) * push[:, k], len(radius))
                for k in range(3)
            ],
            axis=1,
        )
        place = np.where(wraps, place + 0.7 * move, np.clip(place + 0.7 * move, floor, top))
    return place, worst

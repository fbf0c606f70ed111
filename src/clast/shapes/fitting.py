"""Simpler shapes in place of a closed mesh: balls fitted into it, and convex pieces of it."""

import heapq
from pathlib import Path

import numpy as np

from ..errors import Unavailable
from .polyhedron import Polyhedron, _length, _whole

SITES = 12_000  # points of the lattice inside the mesh, about
SAMPLES = 40_000  # points on its surface, about
INWARD = 8  # power of the radius inside by which a place counts in the middle of a share
SPREADS = (1, 4, 16, 64)  # times that balls are moved until they hang together
SHIFT = np.array([0.4142135, 0.7320508, 0.2360679])  # of the lattice, so that its lines meet no corner or edge
INSTALL = "pip install 'clast[decompose]'"


def closed_mesh(place, mesh):
    """Vertices (v,3) [m], triangles (t,3) and volume [m^3] of what is a Mesh, a Polyhedron or the path of a mesh file."""
    if isinstance(mesh, str | Path):
        from .loading import load_mesh

        mesh = load_mesh(mesh, shape="mesh")
        vertices, triangles = mesh.surface()
        return vertices + mesh.origin, triangles, mesh.volume
    # A compound has a list of them, and a surface that overlaps itself.
    surface = getattr(mesh, "triangulation", None)
    if (surface is None or isinstance(surface, list)) and not isinstance(mesh, Polyhedron):
        what = mesh.__name__ if isinstance(mesh, type) else type(mesh).__name__
        raise TypeError(f"{place} needs a clast.Mesh, a clast.Polyhedron or the path of a closed mesh file, got {what}")
    return *mesh.surface(), mesh.volume


def fit_balls(vertices, triangles, spheres):
    """Balls inside a closed mesh, at most so many, as centres (k,3) and radii (k,) [m], one choice after the other; and points (s,3) spread over the surface.

    The first choice is greedy: each ball is the largest about a point of a lattice and covers most of what the balls before it leave. Few balls may leave a gap that
    none of them reaches over: in the choices behind it they are moved, more and more, to the middle of what each of them is nearest to.
    """
    from scipy.spatial import cKDTree

    count = _whole("Clump.fit: spheres", spheres, 1)
    corner = vertices[triangles]
    low, high = vertices.min(axis=0), vertices.max(axis=0)
    volume = np.einsum("ti,ti->t", corner[:, 0], np.cross(corner[:, 1], corner[:, 2])).sum() / 6.0
    step = (volume / SITES) ** (1.0 / 3.0)
    site = inner_sites(corner, low, high, step)
    skin = surface_points(corner, SAMPLES)
    # Near enough to rank; the balls that are taken are measured.
    reach = cKDTree(skin).query(site)[0]
    tree = cKDTree(site)
    covered = np.zeros(len(site), dtype=bool)
    waiting = [(-int(n), k) for k, n in enumerate(tree.query_ball_point(site, reach, return_length=True))]
    heapq.heapify(waiting)
    centres: list[np.ndarray] = []
    radii: list[float] = []
    while waiting and len(centres) < count:
        most, k = heapq.heappop(waiting)
        rows = np.array(tree.query_ball_point(site[k], reach[k]), dtype=int)
        fresh = int((~covered[rows]).sum())
        if fresh == 0:
            continue
        if waiting and -fresh > waiting[0][0]:
            heapq.heappush(waiting, (-fresh, k))  # others cover more by now
            continue
        covered[rows] = True
        centres.append(site[k])
        radii.append(point_distance(site[k], corner))
    return choices(np.array(centres), np.array(radii), site, reach, corner, step), skin


def choices(centres, radii, site, reach, corner, step):
    """Balls (k,3), (k,) [m], and the same moved to the middles of their shares of the sites (s,3), about which balls of radius reach (s,) [m] are inside; step [m]: from one
    site to the next."""
    yield centres, radii
    for k in range(SPREADS[-1]):
        off = np.min([np.linalg.norm(site - c, axis=1) - r for c, r in zip(centres, radii, strict=True)], axis=0)
        moved = []
        for c, r in zip(centres, radii, strict=True):
            own = np.linalg.norm(site - c, axis=1) - r <= off
            if not own.any():
                moved.append(c)
                continue
            # Sites where a large ball is inside weigh most. Not the nearest site, which would be the same one after a small move.
            weight = (reach[own] / reach[own].max()) ** INWARD
            middle = (weight[:, None] * site[own]).sum(axis=0) / weight.sum()
            moved.append(middle if np.linalg.norm(site - middle, axis=1).min() <= step else c)
        centres = np.array(moved)
        radii = np.array([point_distance(c, corner) for c in centres])
        if k + 1 in SPREADS:
            yield centres, radii


def inner_sites(corner, low, high, step):
    """Points (k,3) of a cubic lattice of this step [m] inside the closed surface of triangles (t,3,3)."""
    start = low - step * (1.0 - SHIFT)
    cells = np.ceil((high - start) / step).astype(int) + 1
    # Heights at which the line through column (i, j) goes through the surface.
    crossed: dict[tuple[int, int], list[float]] = {}
    flat = (corner[:, :, :2] - start[:2]) / step
    first = np.ceil(flat.min(axis=1)).astype(int)
    last = np.floor(flat.max(axis=1)).astype(int)
    for t in np.flatnonzero((first <= last).all(axis=1)):
        (ax, ay), (bx, by), (cx, cy) = flat[t]
        area = (bx - ax) * (cy - ay) - (cx - ax) * (by - ay)
        if area == 0.0:
            continue
        i, j = (
            g.reshape(-1) for g in np.meshgrid(*[np.arange(a, b + 1) for a, b in zip(first[t], last[t], strict=True)])
        )
        u = ((i - ax) * (cy - ay) - (cx - ax) * (j - ay)) / area
        v = ((bx - ax) * (j - ay) - (i - ax) * (by - ay)) / area
        inside = (u >= 0.0) & (v >= 0.0) & (u + v <= 1.0)
        height = corner[t, 0, 2] + u * (corner[t, 1, 2] - corner[t, 0, 2]) + v * (corner[t, 2, 2] - corner[t, 0, 2])
        for p, q, z in zip(i[inside].tolist(), j[inside].tolist(), height[inside].tolist(), strict=True):
            crossed.setdefault((p, q), []).append(z)
    lines = start[2] + step * np.arange(cells[2])
    found = []
    for (p, q), heights in sorted(crossed.items()):
        odd = np.searchsorted(np.sort(heights), lines) % 2 == 1
        x, y = start[0] + step * p, start[1] + step * q
        found.append(np.column_stack([np.full(odd.sum(), x), np.full(odd.sum(), y), lines[odd]]))
    sites = np.concatenate(found) if found else np.zeros((0, 3))
    if len(sites) == 0:
        raise ValueError("the mesh is too thin for balls to be fitted into it; use clast.Mesh")
    return sites


def surface_points(corner, count):
    """About so many points (s,3) evenly spread over triangles (t,3,3), their corners and middles among them."""
    area = 0.5 * np.linalg.norm(np.cross(corner[:, 1] - corner[:, 0], corner[:, 2] - corner[:, 0]), axis=1)
    cuts = np.clip(np.ceil(np.sqrt(2.0 * count * area / area.sum())).astype(int), 1, 200)
    found = []
    for n in np.unique(cuts):
        i, j = (g.reshape(-1) for g in np.meshgrid(np.arange(n + 1), np.arange(n + 1)))
        weight = np.column_stack([i, j, n - i - j])[i + j <= n] / n
        found.append(np.einsum("wk,tki->twi", weight, corner[cuts == n]).reshape(-1, 3))
    return np.concatenate(found)


def point_distance(x, corner):
    """Distance [m] of the point x (3,) from the nearest of the triangles (t,3,3)."""
    a, b, c = (corner[:, k] - x for k in range(3))
    normal = np.cross(b - a, c - a)
    size = np.linalg.norm(normal, axis=1)
    inside, least = size > 0.0, np.inf
    for p, q in ((a, b), (b, c), (c, a)):
        edge = q - p
        square = np.einsum("ti,ti->t", edge, edge)
        t = np.clip(-np.einsum("ti,ti->t", p, edge) / np.where(square > 0.0, square, 1.0), 0.0, 1.0)
        least = min(least, float(np.linalg.norm(p + t[:, None] * edge, axis=1).min()))
        inside = inside & (np.einsum("ti,ti->t", np.cross(normal, edge), -p) >= 0.0)
    if inside.any():
        least = min(least, float((np.abs(np.einsum("ti,ti->t", a, normal))[inside] / size[inside]).min()))
    return least


def convex_pieces(vertices, triangles, threshold, most, seed):
    """Polyhedra whose union stands for a closed mesh, by the package CoACD (Wei et al. 2022)."""
    try:
        import coacd
    except ImportError as cause:
        raise Unavailable(
            f"Compound.decompose needs the package coacd ({cause}): {INSTALL}; or give the convex pieces to clast.Compound"
        ) from cause
    place = "Compound.decompose"
    threshold, seed = _length(f"{place}: threshold", threshold), _whole(f"{place}: seed", seed, 0)
    if not 0.01 <= threshold <= 1.0:
        raise ValueError(f"{place}: threshold must be from 0.01 to 1, got {threshold:g}; 0.05 suits most")
    limit = -1 if most is None else _whole(f"{place}: most", most, 1)
    coacd.set_log_level("error")
    found = coacd.run_coacd(coacd.Mesh(vertices, triangles), threshold=threshold, max_convex_hull=limit, seed=seed)
    return [Polyhedron(points) for points, _ in found]


def growth(centres, radii, volume):
    """The length [m] by which all radii (k,) must grow for the union of the balls to have this volume [m^3]; 0 if it has more."""
    low, high = 0.0, float(radii.max())
    if balls_volume(centres, radii) >= volume:
        return 0.0
    while balls_volume(centres, radii + high) < volume:
        low, high = high, 2.0 * high
    for _ in range(20):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if balls_volume(centres, radii + middle) < volume else (low, middle)
    return 0.5 * (low + high)


def balls_volume(centres, radii, lines=200):
    """Volume [m^3] of the union of balls, measured along so many lines a side: a function that grows with the radii, in a fraction of
    the time of the exact one, and 1e-4 off."""
    low, high = (centres - radii[:, None]).min(axis=0), (centres + radii[:, None]).max(axis=0)
    step = (high - low) / lines
    x, y = (low[k] + step[k] * (np.arange(lines) + 0.5) for k in range(2))
    square = (x[:, None, None] - centres[:, 0]) ** 2 + (y[None, :, None] - centres[:, 1]) ** 2
    half = np.sqrt(np.maximum(radii**2 - square, 0.0)).reshape(-1, len(radii))
    begin, end = centres[:, 2] - half, np.where(half > 0.0, centres[:, 2] + half, -np.inf)
    order = np.argsort(begin, axis=1, kind="stable")
    begin, end = np.take_along_axis(begin, order, 1), np.take_along_axis(end, order, 1)
    covered = np.maximum.accumulate(np.hstack([np.full((len(begin), 1), -np.inf), end[:, :-1]]), axis=1)
    return float(np.maximum(end - np.maximum(begin, covered), 0.0).sum() * step[0] * step[1])

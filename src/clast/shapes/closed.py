"""Whether triangles close a surface and all look outward: checks that name the first wrong triangle."""

import numpy as np

from .hull import cross_product
from .mesh import refuse_slivers

THINNEST = 1e-6  # a mesh with less volume than this part of its area times its size is flat


def refuse_degenerate(vertices, triangles):
    """ValueError naming the first triangle (t,3) with two equal corners, or with its corners on a line."""
    a, b, c = triangles.T
    same = np.flatnonzero((a == b) | (b == c) | (c == a))
    if len(same):
        raise ValueError(
            f"triangle {same[0]} of the mesh has two equal corners: {vertices[triangles[same[0]]].tolist()}; leave it out, "
            f"as it has no area ({len(same)} of {len(triangles)} are like that)"
        )
    refuse_slivers(vertices, triangles, np.arange(len(triangles)))


def refuse_open(vertices, triangles):
    """ValueError unless each edge belongs to two triangles (t,3) that run along it in opposite directions."""
    count = len(vertices)
    start, end = triangles.reshape(-1), triangles[:, (1, 2, 0)].reshape(-1)
    here, back = np.sort(start * count + end), np.sort(end * count + start)
    if np.array_equal(here, back) and (here[1:] != here[:-1]).all():
        return
    # Something is wrong: look for the first triangle, and the edge of it, of the worst kind.
    edge = np.minimum(start, end) * count + np.maximum(start, end)
    _, side, times = np.unique(edge, return_inverse=True, return_counts=True)
    side = side.reshape(-1)

    def told(k):
        one, two = vertices[start[k]].tolist(), vertices[end[k]].tolist()
        return f"the edge from {one} to {two}"

    alone = np.flatnonzero(times[side] == 1)
    if len(alone):
        k = alone[0]
        raise ValueError(
            f"the mesh is open: {told(k)} belongs to triangle {k // 3} alone, and so for {len(alone)} of {len(times)} edges; "
            "add the missing triangles, or use clast.MeshWall for a surface with a rim. Neighbours must share whole edges"
        )
    many = np.flatnonzero(times[side] > 2)
    if len(many):
        k = many[0]
        rows = np.flatnonzero(side == side[k]) // 3
        raise ValueError(
            f"{told(k)} belongs to more than two triangles of the mesh: rows {', '.join(map(str, rows.tolist()))}, and so for "
            f"{int((times > 2).sum())} of {len(times)} edges; remove repeated triangles and walls inside the body, or "
            "make one mesh of each body that touches another there"
        )
    directed = start * count + end
    _, same, times = np.unique(directed, return_inverse=True, return_counts=True)
    same = same.reshape(-1)
    k = np.flatnonzero(times[same] > 1)[0]
    one, two = (np.flatnonzero(same == same[k]) // 3).tolist()
    raise ValueError(
        f"triangles {one} and {two} of the mesh run along {told(k)} in the same direction, so one of them is turned over, "
        f"and so for {int((times > 1).sum())} edges; swap two corners of the wrong ones, so that all are counterclockwise "
        "seen from outside (trimesh.repair.fix_normals does it)"
    )


def refuse_inverted(vertices, triangles):
    """ValueError if the closed surface of triangles (t,3) on vertices (v,3) [m] encloses nothing, or one of its shells is
    inside out. A shell must look outward outside all others, or inward, as the wall of a hollow, within one of them."""
    corner = vertices[triangles]
    cross = cross_product(corner[:, 1] - corner[:, 0], corner[:, 2] - corner[:, 0])
    six = np.einsum("ti,ti->t", corner[:, 0], cross)
    area, size = 0.5 * np.sqrt(np.einsum("ti,ti->t", cross, cross)).sum(), np.ptp(vertices, axis=0).max()
    group, count = pieces(len(vertices), triangles)
    volume = np.bincount(group, six, count) / 6.0
    if (volume < 0.0).all() and abs(volume.sum()) > THINNEST * area * size:
        raise ValueError(
            "the mesh is inside out: its triangles, from row 0 on, are clockwise seen from outside; reverse them with "
            "triangles[:, ::-1]"
        )
    for shell in range(count) if count > 1 else ():
        own = group == shell
        # A shell lies wholly on one side of each other: any point of it tells which.
        around = round(turns_around(corner[~own], corner[own][0].mean(axis=0)))
        wanted = 0 if volume[shell] > 0.0 else 1
        if around != wanted:
            way = "outward" if wanted == 0 else "inward"
            raise ValueError(
                f"the shell of {int(own.sum())} triangles that begins with row {int(np.argmax(own))} of the mesh looks {way} "
                f"and lies within {around} others, where it should lie within {wanted}; reverse its triangles, or leave it out"
            )
    if volume.sum() <= THINNEST * area * size:
        raise ValueError(
            f"the mesh encloses no volume: {volume.sum():.3g} m^3 within its {len(triangles)} triangles of {area:.3g} m^2, from "
            "row 0 on; use clast.MeshWall for a sheet"
        )


def turns_around(corner, point):
    """How often the surface of triangles (t,3,3) goes around a point (3,): 1 inside, 0 outside, -1 inside an inverted one."""
    a, b, c = (corner[:, k] - point for k in range(3))
    x, y, z = (np.sqrt(np.einsum("ti,ti->t", one, one)) for one in (a, b, c))
    above = np.einsum("ti,ti->t", a, cross_product(b, c))
    below = x * y * z + sum(np.einsum("ti,ti->t", *two) * r for *two, r in ((a, b, z), (b, c, x), (c, a, y)))
    return np.arctan2(above, below).sum() / (2.0 * np.pi)


def pieces(vertices, triangles):
    """The piece (t,) that each triangle belongs to, and their number; pieces share no corner of so many vertices."""
    label = np.arange(vertices)
    flat = triangles.reshape(-1)
    while True:
        # Each corner takes the lowest label of its triangles, and then that corner's own, so that long bodies are quick too.
        lower = label.copy()
        np.minimum.at(lower, flat, np.repeat(label[triangles].min(axis=1), 3))
        lower = lower[lower]
        if np.array_equal(lower, label):
            break
        label = lower
    kept, group = np.unique(label[triangles[:, 0]], return_inverse=True)
    return group.reshape(-1), len(kept)

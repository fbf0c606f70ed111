"""Whether triangles close a surface and all look outward: checks that name the first wrong triangle."""

import numpy as np

from .hull import cross_product
from .mesh import refuse_slivers

LOOKS = 500_000  # triangles times triangles that are looked at in search of parts inside out
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
    """ValueError if the closed surface of triangles (t,3) on vertices (v,3) [m] encloses nothing, or a part of it is inside
    out or lies within the rest. Of a mesh with many triangles some of each shell are looked at."""
    corner = vertices[triangles]
    middle = corner.mean(axis=1)
    cross = cross_product(corner[:, 1] - corner[:, 0], corner[:, 2] - corner[:, 0])
    six = np.einsum("ti,ti->t", corner[:, 0], cross)
    area = 0.5 * np.sqrt(np.einsum("ti,ti->t", cross, cross)).sum()
    thin = THINNEST * area * np.ptp(vertices, axis=0).max()
    # A surface all of which is seen from behind from its middle, and that goes around it once, is as it should be.
    centre = vertices.mean(axis=0)
    seen = np.einsum("ti,ti->t", cross, middle - centre)
    if six.sum() > 6.0 * thin and (seen > 0.0).all() and turns_around(corner, centre) < 1.5:
        return
    group, count = pieces(len(vertices), triangles)
    if np.abs(np.bincount(group, six)).sum() <= 6.0 * thin:
        raise ValueError(
            f"the mesh encloses no volume: {six.sum() / 6.0:.3g} m^3 within its {len(triangles)} triangles of {area:.3g} m^2, "
            "from row 0 on; use clast.MeshWall for a sheet"
        )
    several = max(LOOKS // len(triangles), 1)
    rows = np.unique(
        np.concatenate([np.unique(group, return_index=True)[1], np.arange(0, len(group), -(-len(group) // several))])
    )
    # Half a turn on the surface of a body, of which half the sphere of sight is inside.
    turns = np.array([turns_around(corner, middle[row], row) for row in rows])
    wrong = rows[turns < -0.25]
    if len(wrong) == len(rows):
        raise ValueError(
            "the mesh is inside out: its triangles, from row 0 on, are clockwise seen from outside; reverse them with "
            "triangles[:, ::-1]"
        )
    if len(wrong):
        shell = (
            f"it belongs to a shell of {int((group == group[wrong[0]]).sum())} triangles"
            if count > 1
            else "the surface cuts itself"
        )
        raise ValueError(
            f"triangle {wrong[0]} of the mesh looks inward: the part of the surface around it is inside out; {shell}. Reverse "
            "the triangles of that part, or leave it out"
        )
    wrong = rows[turns > 1.25]
    if len(wrong):
        raise ValueError(
            f"triangle {wrong[0]} of the mesh looks outward and lies within the body that others close; leave out the surface "
            "inside, reverse its triangles to make it a hollow, or unite the two bodies that overlap"
        )


def turns_around(corner, point, row=None):
    """How often the surface of triangles (t,3,3) goes around a point (3,): 1 inside, 0 outside, -1 inside an inverted one.

    row: a triangle that is left out, for a point that lies on it.
    """
    a, b, c = (corner[:, k] - point for k in range(3))
    x, y, z = (np.sqrt(np.einsum("ti,ti->t", one, one)) for one in (a, b, c))
    above = np.einsum("ti,ti->t", a, cross_product(b, c))
    below = x * y * z + sum(np.einsum("ti,ti->t", *two) * r for *two, r in ((a, b, z), (b, c, x), (c, a, y)))
    half = np.arctan2(above, below)  # of the solid angle of each triangle (Van Oosterom and Strackee 1983)
    if row is not None:
        half[row] = 0.0
    return half.sum() / (2.0 * np.pi)


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

"""Which corners and sides of triangles stand out of a surface: those by which flat faces touch each other."""

import numpy as np

SMOOTH = 0.1  # [rad]: surfaces that bend by less at an edge are one face there
CORNER, SIDE = 1, 8  # bits of the first corner and the first side of a triangle; the second and third follow


def outline(vertices, triangles, *, sheet):
    """Bits (t,) int8 of the corners and sides of triangles (t,3) that stand out.

    A side does if the surface ends there or bends, for a closed surface outward; a corner does if such sides meet there that are not one
    line. Side k joins corners k and k + 1. sheet: felt from both sides, so that it may bend either way.
    """
    count = len(triangles)
    corner = vertices[triangles]
    normal = np.cross(corner[:, 1] - corner[:, 0], corner[:, 2] - corner[:, 0])
    normal /= np.linalg.norm(normal, axis=1)[:, None]
    ends = np.sort(np.stack([triangles, np.roll(triangles, -1, axis=1)], axis=2).reshape(-1, 2), axis=1).astype(
        np.int64
    )
    _, first, edge, many = np.unique(
        ends[:, 0] * len(vertices) + ends[:, 1], return_index=True, return_inverse=True, return_counts=True
    )
    edge = edge.reshape(-1)
    last = np.zeros(len(first), np.int64)
    last[edge] = np.arange(3 * count)  # the last of equals stays
    one, two = first // 3, last // 3
    opposite = corner[two, (last % 3 + 2) % 3]
    bends = np.einsum("ei,ei->e", normal[one], normal[two]) < np.cos(SMOOTH)
    below = np.einsum("ei,ei->e", normal[one], opposite - corner[one, first % 3]) < 0.0
    sharp = (many != 2) | (bends & (below | sheet))
    # Directions of the sharp edges at each vertex, as a matrix: of rank one if they are a line.
    a, b = ends[first[sharp]].T
    way = vertices[b] - vertices[a]
    way /= np.linalg.norm(way, axis=1)[:, None]
    spread = np.zeros((len(vertices), 3, 3))
    for end in (a, b):
        np.add.at(spread, end, way[:, :, None] * way[:, None, :])
    weight = np.trace(spread, axis1=1, axis2=2)
    stands = (weight > 0.5) & ((weight < 1.5) | (weight - np.linalg.eigvalsh(spread)[:, 2] > np.sin(SMOOTH) ** 2))
    shift = np.arange(3)
    bits = (stands[triangles] * (CORNER << shift)).sum(axis=1) + (sharp[edge].reshape(-1, 3) * (SIDE << shift)).sum(
        axis=1
    )
    return bits.astype(np.int8)

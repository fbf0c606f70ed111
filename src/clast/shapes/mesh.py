"""Walls made of triangles, and the topology that lets spheres roll over their edges smoothly."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..signatures import Floats, Skin, Wholes
from ..tables import TRIANGLE, Meshes, Parts, make_parts
from .outline import outline

MERGE = 1e-9  # vertices nearer than this fraction of the mesh's size are one
FARTHEST = 1e15  # [m], coordinates of vertices: nothing that moves is that large, and the sixth power is a number still
SLIVER = 1e-8  # a triangle lower than this fraction of its longest side has no usable normal


class MeshWall:
    """A wall of triangles, felt from both sides; vertices (v,3) [m], triangles (t,3) rows of vertices.

    Equal vertices are merged, so a soup of triangles is welcome. The winding of the triangles does not matter; an
    edge may belong to any number of them. Triangles with two equal corners and repeated triangles add nothing to the
    surface and are left out; `dropped` has their rows. Neighbours must share whole edges: where a corner of one
    triangle lies inside the side of another, a sphere feels that side as an open edge.
    """

    wall = True
    round = False
    volume = 0.0

    def __init__(self, vertices: ArrayLike, triangles: ArrayLike) -> None:
        vertices, triangles = checked(vertices, triangles)
        vertices, triangles = merge_vertices(vertices, triangles)
        kept = worth_keeping(triangles)
        self.dropped = np.setdiff1d(np.arange(len(triangles)), kept)
        refuse_slivers(vertices, triangles, kept)
        triangles = triangles[kept]
        used, rows = np.unique(triangles, return_inverse=True)
        self.vertices = vertices[used]
        self.triangles = rows.reshape(-1, 3).astype(np.int32)
        self.mesh = build_topology(self.vertices, self.triangles)

    def __repr__(self):
        return f"{type(self).__name__}({len(self.vertices)} vertices, {len(self.triangles)} triangles)"

    @property
    def inertia(self) -> Floats:
        """Zeros (3,3): walls do not accelerate."""
        return np.zeros((3, 3))

    def parts(self) -> Parts:
        """One TRIANGLE part per triangle; its origin is the centre of the smallest ball around it."""
        count = len(self.triangles)
        centre, reach = enclosing_balls(self.vertices[self.triangles])
        kind, feature = np.full(count, TRIANGLE), np.arange(count)
        return make_parts(count, kind=kind, offset=centre, reach=reach, feature=feature)

    def surface(self, extent: float | None = None) -> Skin:
        """Vertices (v,3) [m] and triangles (t,3)."""
        return self.vertices.copy(), self.triangles.copy()


def checked(vertices: ArrayLike, triangles: ArrayLike) -> tuple[Floats, Wholes]:
    """Both as arrays of the right shape, or a ValueError that names the first wrong row."""
    vertices = np.array(vertices, dtype=float)
    triangles = np.array(triangles)
    if vertices.ndim != 2 or vertices.shape[1] != 3:
        raise ValueError(f"vertices of a mesh must have shape (v,3), got {vertices.shape}")
    if triangles.ndim != 2 or triangles.shape[1] != 3 or len(triangles) == 0:
        raise ValueError(f"triangles of a mesh must have shape (t,3) with t > 0, got {triangles.shape}")
    if not np.issubdtype(triangles.dtype, np.integer):
        raise TypeError(f"triangles of a mesh must be whole numbers, rows of vertices, got {triangles.dtype}")
    bad = np.flatnonzero(~np.isfinite(vertices).all(axis=1))
    if len(bad):
        raise ValueError(f"vertex {bad[0]} of the mesh is not finite: {vertices[bad[0]].tolist()}")
    far = np.flatnonzero((np.abs(vertices) > FARTHEST).any(axis=1))
    if len(far):
        raise ValueError(
            f"vertex {far[0]} of the mesh is at {vertices[far[0]].tolist()} m; numbers are too coarse beyond {FARTHEST:g} m"
        )
    wrong = np.flatnonzero(((triangles < 0) | (triangles >= len(vertices))).any(axis=1))
    if len(wrong):
        raise ValueError(
            f"triangle {wrong[0]} of the mesh names vertices {triangles[wrong[0]].tolist()}, "
            f"but there are only rows 0 to {len(vertices) - 1}"
        )
    return vertices, triangles.astype(np.int64)


def merge_vertices(vertices: Floats, triangles: Wholes) -> tuple[Floats, Wholes]:
    """The same triangles on distinct vertices; vertices within MERGE of the size become the first of them."""
    from scipy.sparse import coo_matrix
    from scipy.sparse.csgraph import connected_components
    from scipy.spatial import cKDTree

    _, first, rows = np.unique(vertices, axis=0, return_index=True, return_inverse=True)
    rows = rows.reshape(-1)
    order = np.argsort(first)  # keep the user's order
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    distinct = vertices[first[order]]
    triangles = place[rows][triangles]
    size = np.ptp(distinct, axis=0).max()
    close = cKDTree(distinct).query_pairs(MERGE * size, output_type="ndarray") if size > 0.0 else np.empty((0, 2), int)
    if len(close):
        count = len(distinct)
        graph = coo_matrix((np.ones(len(close)), (close[:, 0], close[:, 1])), shape=(count, count))
        _, group = connected_components(graph, directed=False)
        _, leader = np.unique(group, return_index=True)
        triangles = leader[group][triangles]
    return distinct, triangles


def worth_keeping(triangles: Wholes) -> NDArray[np.intp]:
    """Rows of triangles with three distinct corners, the first of those with the same corners."""
    corners = np.sort(triangles, axis=1)
    whole = np.flatnonzero((corners[:, 0] != corners[:, 1]) & (corners[:, 1] != corners[:, 2]))
    if len(whole) == 0:
        raise ValueError("no triangle of the mesh has three distinct corners")
    _, first = np.unique(corners[whole], axis=0, return_index=True)
    return whole[np.sort(first)]


def refuse_slivers(vertices, triangles, rows):
    """ValueError naming the triangles whose corners lie on a line."""
    corner = vertices[triangles[rows]]
    sides = np.roll(corner, -1, axis=1) - corner
    longest = np.linalg.norm(sides, axis=2).max(axis=1)
    double_area = np.linalg.norm(np.cross(sides[:, 0], sides[:, 1]), axis=1)
    flat = np.flatnonzero(~(double_area > SLIVER * longest**2))
    if len(flat):
        named = ", ".join(str(r) for r in rows[flat[:5]]) + (" ..." if len(flat) > 5 else "")
        raise ValueError(
            f"{len(flat)} of {len(triangles)} triangles have their corners on a line: rows {named}, the first with "
            f"corners {corner[flat[0]].tolist()}. Repair the mesh; leaving them out would open a seam"
        )


def build_topology(vertices: Floats, triangles: NDArray) -> Meshes:
    """Meshes for vertices (v,3) and triangles (t,3) without duplicates or slivers."""
    count = len(triangles)
    ends = np.stack([triangles, np.roll(triangles, -1, axis=1)], axis=2).reshape(-1, 2)
    ends.sort(axis=1)
    edge, side = np.unique(ends, axis=0, return_inverse=True)
    side = side.reshape(-1)
    by_edge = np.argsort(side, kind="stable")
    edge_start = np.searchsorted(side[by_edge], np.arange(len(edge) + 1))
    edge_side = np.stack([by_edge // 3, by_edge % 3], axis=1)

    flat = triangles.reshape(-1)
    vertex_owner = np.full(len(vertices), -1)
    vertex_owner[flat[::-1]] = np.arange(3 * count)[::-1] // 3  # the last assignment, of the lowest triangle, stays
    flat = edge.reshape(-1)
    by_vertex = np.argsort(flat, kind="stable")
    vertex_start = np.searchsorted(flat[by_vertex], np.arange(len(vertices) + 1))

    normal, inward = directions(vertices, triangles, edge, side.reshape(-1, 3))
    return Meshes(
        vertex=np.array(vertices, dtype=float),
        triangle=triangles.astype(np.int32),
        side=side.reshape(-1, 3).astype(np.int32),
        normal=normal,
        inward=inward,
        outline=outline(vertices, triangles, sheet=True),
        edge=edge.astype(np.int32),
        edge_owner=edge_side[edge_start[:-1], 0].astype(np.int32),
        edge_start=edge_start.astype(np.int32),
        edge_side=edge_side.astype(np.int32),
        vertex_owner=vertex_owner.astype(np.int32),
        vertex_start=vertex_start.astype(np.int32),
        vertex_edge=(by_vertex // 2).astype(np.int32),
    )


def directions(vertices, triangles, edge, side):
    """Unit normals (t,3) and unit inward directions (t,3,3) at right angles to each side."""
    corner = vertices[triangles]
    sides = np.roll(corner, -1, axis=1) - corner
    # Cross the two shortest sides: they meet at the corner opposite the longest, where rounding costs least.
    longest = np.argmax((sides**2).sum(axis=2), axis=1)
    row = np.arange(len(triangles))
    normal = np.cross(sides[row, (longest + 1) % 3], sides[row, (longest + 2) % 3])
    normal /= np.linalg.norm(normal, axis=1)[:, None]
    along = vertices[edge[side][..., 1]] - vertices[edge[side][..., 0]]
    inward = np.cross(normal[:, None, :], along)
    inward /= np.linalg.norm(inward, axis=2)[:, :, None]
    opposite = np.roll(corner, -2, axis=1)
    inside = np.sum(inward * (opposite - corner), axis=2)
    inward *= np.where(inside > 0.0, 1.0, -1.0)[:, :, None]
    return normal, inward


def enclosing_balls(corners):
    """Centre (t,3) and radius (t,) of the smallest ball around each triangle (t,3,3)."""
    a, b, c = corners[:, 0], corners[:, 1], corners[:, 2]
    opposite = np.stack([((b - c) ** 2).sum(1), ((c - a) ** 2).sum(1), ((a - b) ** 2).sum(1)], axis=1)
    # Weights of the circumcentre; where one is negative, the centre is the middle of the side opposite to that corner.
    weight = opposite * (opposite.sum(axis=1, keepdims=True) - 2.0 * opposite)
    obtuse = weight <= 0.0
    weight = np.where(obtuse.any(axis=1, keepdims=True), ~obtuse, weight)
    centre = np.einsum("tk,tkx->tx", weight / weight.sum(axis=1, keepdims=True), corners)
    # A hair more than the farthest corner, so that rounding never leaves one outside.
    reach = np.linalg.norm(corners - centre[:, None, :], axis=2).max(axis=1) * (1.0 + 1e-14)
    return centre, reach

"""A convex polyhedron: the hull of points, its faces, edges and mass properties."""

import numpy as np

from ..tables import POLYHEDRON, Hulls, Parts

COPLANAR = 1e-7  # faces whose corners are nearer to one plane than this fraction of the size are one face


class Polyhedron:
    """The convex hull of points (n,3) [m], as one particle of uniform density.

    The particle's position is its centre of mass; `origin` (3,) is that point in the coordinates of `points`.
    """

    wall = False
    mesh = None
    round = False

    def __init__(self, points):
        corners, faces = hull_faces(np.array(points, dtype=float))
        self.volume, self.origin, self.inertia = solid_properties(corners, faces)
        self.vertices = corners - self.origin
        self.faces = faces
        self.hull = build_hull(self.vertices, faces, self.volume)

    def __repr__(self):
        return f"Polyhedron({len(self.vertices)} corners, {len(self.faces)} faces, volume {self.volume:.6g} m^3)"

    @classmethod
    def box(cls, a, b, c):
        """A box with edges a, b, c [m] along x, y, z."""
        signs = np.array(np.meshgrid([-0.5, 0.5], [-0.5, 0.5], [-0.5, 0.5], indexing="ij")).reshape(3, -1).T
        return cls(signs * [a, b, c])

    def parts(self):
        """One POLYHEDRON part at the origin."""
        return Parts(
            kind=np.array([POLYHEDRON], np.int8),
            offset=np.zeros((1, 3)),
            axis=np.zeros((1, 3)),
            size=np.zeros((1, 3)),
            reach=self.hull.outer.copy(),
            feature=np.zeros(1, np.int32),
        )

    def surface(self, extent=None):
        """Vertices (v,3) [m] and triangles (t,3)."""
        return self.vertices.copy(), triangles_of(self.faces)


def hull_faces(points):
    """Corners (v,3) and faces, a list of corner rows in order, counterclockwise seen from outside."""
    from scipy.sparse import coo_matrix
    from scipy.sparse.csgraph import connected_components
    from scipy.spatial import ConvexHull

    hull = ConvexHull(points)
    size = np.ptp(points[hull.vertices], axis=0).max()
    count = len(hull.simplices)
    normal, offset = hull.equations[:, :3], hull.equations[:, 3]
    # Two neighbours are one face if each lies in the plane of the other.
    one = np.repeat(np.arange(count), 3)
    two = hull.neighbors.reshape(-1)
    corners = points[hull.simplices]
    off = np.abs(np.einsum("pki,pi->pk", corners[two], normal[one]) + offset[one, None]).max(1)
    back = np.abs(np.einsum("pki,pi->pk", corners[one], normal[two]) + offset[two, None]).max(1)
    flat = np.maximum(off, back) <= COPLANAR * size
    graph = coo_matrix((np.ones(flat.sum()), (one[flat], two[flat])), shape=(count, count))
    _, group = connected_components(graph, directed=False)
    faces = []
    for k in range(group.max() + 1):
        rows = np.flatnonzero(group == k)
        used = np.unique(hull.simplices[rows])
        n = normal[rows[0]]
        middle = points[used].mean(0)
        first = points[used[0]] - middle
        first -= first @ n * n
        angle = np.arctan2((points[used] - middle) @ np.cross(n, first), (points[used] - middle) @ first)
        faces.append(used[np.argsort(angle)])
    # A corner that lies on the straight line between two others belongs to two faces only.
    times = np.bincount(np.concatenate(faces), minlength=len(points))
    faces = [face[times[face] > 2] for face in faces]
    kept, rows = np.unique(np.concatenate(faces), return_inverse=True)
    ends = np.cumsum([len(face) for face in faces])[:-1]
    return points[kept], [face.astype(np.int32) for face in np.split(rows.reshape(-1), ends)]


def triangles_of(faces):
    """The faces as triangles (t,3)."""
    fans = [np.stack([np.full(len(f) - 2, f[0]), f[1:-1], f[2:]], axis=1) for f in faces]
    return np.concatenate(fans).astype(np.int32)


def solid_properties(vertices, faces):
    """Volume [m^3], centre of mass (3,) and inertia per mass about it (3,3) [m^2], from tetrahedra to a point inside."""
    middle = vertices.mean(0)
    corner = vertices[triangles_of(faces)] - middle
    six = np.einsum("ti,ti->t", corner[:, 0], np.cross(corner[:, 1], corner[:, 2]))
    volume = six.sum() / 6.0
    total = corner.sum(1)
    centre = (six[:, None] * total).sum(0) / (24.0 * volume)
    # Second moments of a tetrahedron with one corner at the origin: V/20 (sum of a a^T + s s^T), s the sum of corners.
    second = np.einsum("t,tki,tkj->ij", six, corner, corner) + np.einsum("t,ti,tj->ij", six, total, total)
    second = second / (120.0 * volume) - np.outer(centre, centre)
    return volume, middle + centre, np.trace(second) * np.eye(3) - second


def build_hull(vertices, faces, volume):
    """Hulls with one row, for vertices (v,3) about the centre of mass."""
    normal = np.array([_newell(vertices[face]) for face in faces])
    offset = np.array([(vertices[face] @ n).max() for face, n in zip(faces, normal, strict=True)])
    start = np.cumsum([0, *map(len, faces)]).astype(np.int32)
    loop = np.concatenate(faces).astype(np.int32)
    after = np.concatenate([np.roll(face, -1) for face in faces])
    owner = np.repeat(np.arange(len(faces)), np.diff(start))
    side = np.cross(vertices[after] - vertices[loop], normal[owner])
    side /= np.linalg.norm(side, axis=1)[:, None]
    ends = np.sort(np.stack([loop, after], axis=1), axis=1)
    order = np.lexsort((owner, ends[:, 1], ends[:, 0]))
    edge, edge_face = ends[order[::2]], np.stack([owner[order[::2]], owner[order[1::2]]], axis=1)
    # The first face is the one from which the edge runs along normal x normal of the second.
    along = vertices[edge[:, 1]] - vertices[edge[:, 0]]
    turned = np.cross(normal[edge_face[:, 0]], normal[edge_face[:, 1]])
    edge_face = np.where(np.einsum("ei,ei->e", along, turned)[:, None] > 0.0, edge_face, edge_face[:, ::-1])
    cosine = np.einsum("ei,ei->e", normal[edge_face[:, 0]], normal[edge_face[:, 1]])
    return Hulls(
        vertex_start=np.array([0, len(vertices)], np.int32),
        face_start=np.array([0, len(faces)], np.int32),
        edge_start=np.array([0, len(edge)], np.int32),
        vertex=np.ascontiguousarray(vertices.T),
        normal=np.ascontiguousarray(normal.T),
        offset=offset,
        edge=edge.astype(np.int32),
        edge_face=edge_face.astype(np.int32),
        edge_bend=np.stack([cosine, 1.0 / (1.0 - cosine**2)], axis=1),
        loop_start=start,
        loop=loop,
        side=np.ascontiguousarray(side.T),
        side_offset=np.einsum("li,li->l", side, vertices[loop]),
        inner=np.array([offset.min()]),
        outer=np.array([np.linalg.norm(vertices, axis=1).max()]),
        ball=np.array([np.cbrt(3.0 * volume / (4.0 * np.pi))]),
    )


def _newell(corners):
    """Unit normal of a polygon with corners (k,3)."""
    normal = np.cross(corners - corners[0], np.roll(corners, -1, axis=0) - corners[0]).sum(0)
    return normal / np.linalg.norm(normal)

"""From points to a convex polyhedron: corners, flat faces and how they join, mass properties and the table of it."""

from typing import NamedTuple

import numpy as np

from ..tables import Hulls

THINNEST = 1e-6  # a polyhedron thinner than this fraction of its size is refused: its edges would drown in rounding
# Corners nearer to a plane than this fraction of the size lie in it: a little more than the rounding of numbers in single
# precision, which mesh files hold. At most THIN of the thickness.
COPLANAR = 3e-7
THIN = 1e-3
ROUNDS = 20  # in which corners that are none are left out
# Parts of the tolerance, tried in turn until the faces fit together.
FINER = (1.0, 0.5, 0.2, 0.1, 1e-2, 1e-3, 1e-4, 1e-5)
LEAST, MOST = 1e-40, 1e40  # [m], sizes beyond have no volume or inertia as a number
NOISE = 1e-15  # components of unit vectors smaller than this are rounding of zero
NEXT, AFTER = np.array([1, 2, 0]), np.array([2, 0, 1])  # the two other axes
CHUNK = 4_000_000  # corners times faces looked at together


class Skin(NamedTuple):
    """Triangles around points, all counterclockwise seen from outside."""

    triangle: np.ndarray  # (t,3) rows of points
    neighbour: np.ndarray  # (t,3) the triangle beyond the side opposite to corner k
    normal: np.ndarray  # (t,3) unit, outward
    offset: np.ndarray  # (t,) [m]; normal . x = offset in the plane of the triangle


def hull_of(points):
    """Middle (3,) of the points (n,3), and corners (v,3) about it and faces, a list of rows in turn, of their hull.

    Rows are counterclockwise seen from outside. Corners keep the order of the points.
    """
    points = checked(points)
    low, high = points.min(0), points.max(0)
    middle = 0.5 * low + 0.5 * high  # Halves first: the sum of two large numbers may have no room.
    points = points - middle
    # Powers of two scale without rounding, so that what is symmetric stays so to the last bit.
    unit = np.ldexp(1.0, int(np.frexp(np.abs(points).max())[1]))
    refuse_flat(points)
    points = points / unit
    hull, planes = qhull(points, "Qt")
    if hull is None:
        hull, planes = qhull(points, "QJ")
    if hull is None:
        raise ValueError(
            "the points of a polyhedron have no hull that can be computed; leave out points on the surface"
        )
    points = points[np.sort(hull.vertices)]
    size, thickness = np.ptp(points, axis=0).max(), _thickness(points, planes)
    if thickness < THINNEST * size:
        _refuse(f"are only {thickness * unit:.3g} m thick and {size * unit:.3g} m wide")
    coarse = min(COPLANAR * size, THIN * thickness)
    for part in FINER:
        for options in ("Qt", "QJ"):
            found = faces_within(points, part * coarse, options)
            if found is not None:
                return middle, found[0] * unit, [face.astype(np.int32) for face in found[1]]
    raise ValueError(
        f"no convex polyhedron with consistent faces goes through these {len(points)} points, some of which lie within "
        f"rounding of others; round them to about {1e-6 * size * unit:.1g} m or leave out points inside faces"
    )


def checked(points):
    """The points as an array (n,3) of finite floats, or an error that names the first wrong row."""
    like = "write for example clast.Polyhedron([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]])"
    try:
        array = np.array(points, dtype=float)
    except (TypeError, ValueError):
        text = " ".join(repr(points).split())
        text = text if len(text) < 80 else text[:77] + "..."
        raise TypeError(f"points of a polyhedron must be numbers of shape (n,3) [m], got {text}; {like}") from None
    if array.ndim != 2 or array.shape[1] != 3:
        raise ValueError(f"points of a polyhedron must have shape (n,3) [m], got {array.shape}; {like}")
    bad = np.flatnonzero(~np.isfinite(array).all(axis=1))
    if len(bad):
        raise ValueError(
            f"point {bad[0]} of the polyhedron is {array[bad[0]].tolist()} ({len(bad)} of {len(array)} are not finite); "
            "leave such rows out"
        )
    if len(array) < 4:
        raise ValueError(f"a polyhedron needs at least 4 points that do not lie in a plane, got {len(array)}; {like}")
    return array + 0.0  # no negative zeros


def refuse_flat(points):
    """ValueError if the points (n,3) about their middle coincide, lie on a line or in a plane."""
    size = np.ptp(points, axis=0).max()
    if not size > 0.0:
        _refuse("are all the same point")
    if not LEAST < size < MOST:
        raise ValueError(f"the points of a polyhedron are {size:.3g} m apart; give metres, from {LEAST:g} to {MOST:g}")
    small = points / size
    _, axes = np.linalg.eigh(small.T @ small)
    width = np.ptp(small @ axes, axis=0)  # least first
    if width[1] < THINNEST:
        _refuse("all lie on a line")
    if width[0] < THINNEST:
        _refuse(f"all lie in a plane (they are {width[0] * size:.3g} m thick and {size:.3g} m wide)")


def _refuse(how):
    raise ValueError(
        f"the points of a polyhedron {how}, which makes no body; give points around a volume at least {THINNEST:g} of "
        "its width thick. For a thin plate give its points twice, once on either side; for a wall use clast.Quad or "
        "clast.MeshWall"
    )


def qhull(points, options):
    """scipy's hull of points (n,3) about their middle and its planes (f,4), normal . x + offset = 0; None if Qhull fails.

    Qhull loses its way on plates and needles with fine noise, so these are first made as thick as they are long, which
    changes no face.
    """
    from scipy.spatial import ConvexHull, QhullError

    _, axes = np.linalg.eigh(points.T @ points)
    width = np.ptp(points @ axes, axis=0)
    stretch = axes / width * width.max() if width.min() < 0.1 * width.max() else np.eye(3)
    try:
        hull = ConvexHull(points @ stretch, qhull_options=options)
    except QhullError:
        return None, None
    planes = np.hstack([hull.equations[:, :3] @ stretch.T, hull.equations[:, 3:]])
    return hull, planes / np.linalg.norm(planes[:, :3], axis=1)[:, None]


def triangulate(points, options):
    """The Skin of the hull of points (n,3), or None if Qhull fails or its triangles do not join."""
    hull, planes = qhull(points, options)
    if hull is None:
        return None
    triangle, neighbour = hull.simplices.astype(np.int64), hull.neighbors.astype(np.int64)
    normal = planes[:, :3]
    if (neighbour < 0).any():
        return None
    corner = points[triangle]
    area = np.einsum("ti,ti->t", np.cross(corner[:, 1] - corner[:, 0], corner[:, 2] - corner[:, 0]), normal)
    largest = int(np.argmax(np.abs(area)))
    turned, _ = turned_triangles(triangle, neighbour, largest, bool(area[largest] < 0.0))
    triangle[turned, 1:], neighbour[turned, 1:] = triangle[turned, :0:-1], neighbour[turned, :0:-1]
    start, end = triangle[:, (1, 2, 0)], triangle[:, (2, 0, 1)]
    here, back = start * len(points) + end, end * len(points) + start
    if len(np.unique(here)) < here.size or not np.array_equal(np.sort(here, axis=None), np.sort(back, axis=None)):
        return None
    return Skin(triangle, neighbour, normal, -planes[:, 3])


def turned_triangles(triangle, neighbour, first, turn):
    """Which of the triangles (t,3) of a closed surface must be turned over to run alike, and which were reached: (t,) each.

    neighbour (t,3): the triangle beyond the side opposite to each corner; first: where to begin; turn: whether that one is
    to be turned. Two neighbours run along their common side in opposite directions; the sign of an area would not tell
    for slivers.
    """
    rows, beyond = triangle.tolist(), neighbour.tolist()
    turned = [None] * len(rows)
    turned[first] = turn
    todo = [first]
    while todo:
        t = todo.pop()
        for k in range(3):
            other = beyond[t][k]
            if turned[other] is None:
                a, b = rows[t][k - 2], rows[t][k - 1]
                same = (rows[other].index(b) - rows[other].index(a)) % 3 == 1
                turned[other] = turned[t] != same
                todo.append(other)
    return np.array([one is True for one in turned]), np.array([one is not None for one in turned])


def _thickness(points, planes):
    """Least width [m] of the hull of points (n,3) across its faces, planes (f,4) with normal . x + offset = 0."""
    return min(float(-((points @ part[:, :3].T).min(0) + part[:, 3]).max()) for (part,) in _chunks(len(points), planes))


def _chunks(rows, *columns):
    step = max(CHUNK // rows, 1)
    for start in range(0, len(columns[0]), step):
        yield [column[start : start + step] for column in columns]


def faces_within(points, tolerance, options):
    """Corners (v,3) and faces of the hull of points, what is flat within the tolerance [m] as one; None if they do not fit."""
    corners = points[weld(points, tolerance)]
    for _ in range(ROUNDS):
        skin = triangulate(corners, options) if len(corners) > 3 else None
        faces = None if skin is None else outlines(skin, grow(corners, skin, tolerance))
        if faces is None:
            return None
        # A corner inside a face, or of two faces, where it lies on a straight line between others, is none.
        needed = np.bincount(np.concatenate(faces), minlength=len(corners)) > 2
        if needed.all():
            return (corners, faces) if fits(corners, faces, tolerance, points) else None
        corners = corners[needed]
    return None


def weld(points, tolerance):
    """Rows of points (n,3) of which no two are nearer than the tolerance [m]; of near ones the first stays."""
    from scipy.sparse import coo_matrix
    from scipy.sparse.csgraph import connected_components
    from scipy.spatial import cKDTree

    close = cKDTree(points).query_pairs(tolerance, output_type="ndarray")
    count = len(points)
    graph = coo_matrix((np.ones(len(close)), (close[:, 0], close[:, 1])), shape=(count, count))
    _, group = connected_components(graph, directed=False)
    return np.sort(np.unique(group, return_index=True)[1])


def grow(points, skin, tolerance):
    """Which face (t,) each triangle belongs to: from the largest triangle on, with all around that lie in its plane.

    The plane stays that of the first triangle, so that a finely faceted ball is not rolled up into one face.
    """
    corner = points[skin.triangle]
    area = np.linalg.norm(np.cross(corner[:, 1] - corner[:, 0], corner[:, 2] - corner[:, 0]), axis=1)
    angle = tolerance / np.ptp(points, axis=0).max()

    def flat(one, two):
        """Which triangles `two` (n,) lie in the plane of triangle `one`, a row or (n,) rows."""
        plane = np.broadcast_to(skin.normal[one], (len(two), 3))
        off = np.abs(np.einsum("nki,ni->nk", corner[two], plane) - np.reshape(skin.offset[one], (-1, 1)))
        bend = np.linalg.norm(np.cross(skin.normal[two], plane), axis=1)
        same = np.einsum("ni,ni->n", skin.normal[two], plane) > 0.5
        return ((off.max(1, initial=0.0) <= tolerance) | (bend <= angle)) & same

    group = np.arange(len(area))
    # Most triangles of a round body see no neighbour in their plane: nothing can grow from them.
    fertile = flat(np.repeat(group, 3), skin.neighbour.reshape(-1)).reshape(-1, 3).any(1)
    free = np.ones(len(area), dtype=bool)
    for first in np.argsort(-area, kind="stable"):
        if not (free[first] and fertile[first]):
            continue
        free[first] = False
        edge = np.array([first])
        while len(edge):
            near = np.unique(skin.neighbour[edge])
            near = near[free[near]]
            edge = near[flat(first, near)]
            group[edge], free[edge] = first, False
    return np.unique(group, return_inverse=True)[1].reshape(-1)


def outlines(skin, group):
    """The outline of each group of triangles, a list of rows in turn; None if one is not a single simple loop."""
    start, end = skin.triangle[:, (1, 2, 0)], skin.triangle[:, (2, 0, 1)]
    rim = group[skin.neighbour] != group[:, None]
    owner = np.repeat(group, 3).reshape(-1, 3)[rim]
    order = np.argsort(owner, kind="stable")
    owner, start, end = owner[order], start[rim][order], end[rim][order]
    bound = np.searchsorted(owner, np.arange(group.max() + 2))
    faces = []
    for low, high in zip(bound[:-1].tolist(), bound[1:].tolist(), strict=True):
        after = dict(zip(start[low:high].tolist(), end[low:high].tolist(), strict=True))
        if len(after) < max(high - low, 3):
            return None
        face = [int(start[low])]
        while after[face[-1]] != face[0] and len(face) <= len(after):
            face.append(after[face[-1]])
        if len(face) != len(after):
            return None
        faces.append(np.array(face))
    return faces


def fits(corners, faces, tolerance, points):
    """Whether the faces close a convex body: each edge has two of them, corners - edges + faces is 2, all edges bend
    outward, and no corner of a face and none of the points (n,3) is away from where it should be by more than 3
    tolerances [m].
    """
    loop, after, owner = sides_of(faces)
    here, back = loop * len(corners) + after, after * len(corners) + loop
    if len(np.unique(here)) < len(here) or not np.array_equal(np.sort(here), np.sort(back)):
        return False
    normal = face_normals(corners, faces)
    if len(corners) - len(loop) // 2 + len(faces) != 2 or not np.isfinite(normal).all():
        return False
    edge, edge_face = edges_of(loop, after, owner)
    bend = np.cross(normal[edge_face[:, 0]], normal[edge_face[:, 1]])
    if (np.einsum("ei,ei->e", bend, corners[edge[:, 1]] - corners[edge[:, 0]]) <= 0.0).any():
        return False
    offset, start = reach_along(corners, normal), np.cumsum([0] + [len(face) for face in faces])
    height = np.minimum.reduceat(np.einsum("ki,ki->k", corners[loop], normal[owner]), start[:-1])
    away = max((offset - height).max(), (reach_along(points, normal) - offset).max())
    side = face_sides(corners, normal, loop, after, owner)
    for face, low in zip(faces, start.tolist(), strict=False):
        if len(face) > 3:  # A triangle has no corner beyond its sides.
            out = side[low : low + len(face)]
            away = max(away, (corners[face] @ out.T - (corners[face] * out).sum(1)).max())
    return away <= 3.0 * tolerance


def sides_of(faces):
    """All sides of all faces, in turn: rows of the corner where each starts and ends, and the face it belongs to."""
    after = np.concatenate([np.roll(face, -1) for face in faces])
    return np.concatenate(faces), after, np.repeat(np.arange(len(faces)), [len(face) for face in faces])


def edges_of(loop, after, owner):
    """Corners (e,2) and faces (e,2) of the edges of a closed surface, from its sides.

    Of the two faces first comes the one that runs from the first corner to the second; the cross product of their normals
    then points the same way.
    """
    ends = np.sort(np.stack([loop, after], axis=1), axis=1)
    order = np.lexsort((loop > after, ends[:, 1], ends[:, 0]))
    return ends[order[::2]], owner[order.reshape(-1, 2)]


def face_sides(corners, normal, loop, after, owner):
    """Unit vectors (l,3) in the planes of faces with normals (f,3), outward and at right angles to their sides."""
    return unit_vectors(np.cross(corners[after] - corners[loop], normal[owner]))


def face_normals(corners, faces):
    """Unit outward normals (f,3), of the mean plane of each face (Newell), without the rounding of zeros."""
    first = corners[np.repeat([face[0] for face in faces], [len(face) for face in faces])]
    here = corners[np.concatenate(faces)] - first
    after = corners[np.concatenate([np.roll(face, -1) for face in faces])] - first
    start = np.cumsum([0] + [len(face) for face in faces[:-1]])
    return unit_vectors(np.add.reduceat(np.cross(here, after), start, axis=0))


def unit_vectors(vectors):
    """Vectors (n,3) at length 1, without the rounding of zeros."""
    with np.errstate(invalid="ignore", divide="ignore"):
        vectors = vectors / np.linalg.norm(vectors, axis=1)[:, None]
    vectors = np.where(np.abs(vectors) < NOISE, 0.0, vectors)
    return vectors / np.linalg.norm(vectors, axis=1)[:, None]


def reach_along(points, directions):
    """How far points (n,3) reach along unit directions (d,3): (d,) [m]."""
    return np.concatenate([(points @ part.T).max(0) for (part,) in _chunks(len(points), directions)])


def triangles_of(faces):
    """The faces as triangles (t,3)."""
    fans = [np.stack([np.full(len(f) - 2, f[0]), f[1:-1], f[2:]], axis=1) for f in faces]
    return np.concatenate(fans).astype(np.int32)


def cross_product(a, b):
    """The cross product of vectors (...,3): the numbers of np.cross in a fifth of its time for small arrays."""
    return a[..., NEXT] * b[..., AFTER] - a[..., AFTER] * b[..., NEXT]


def solid_properties(corners, triangles):
    """Volume [m^3], centre of mass (3,) and inertia per mass about it (3,3) [m^2] of the solid within a closed surface of
    triangles (t,3), rows of corners (v,3) [m], from tetrahedra to the origin with the sign of their volume.

    The rounding of zeros is left out, so that a symmetric body has its centre and its axes where they belong.
    """
    size = np.abs(corners).max()
    corner = corners[triangles] / size
    six = np.einsum("ti,ti->t", corner[:, 0], cross_product(corner[:, 1], corner[:, 2]))
    volume = six.sum() / 6.0
    total = corner.sum(1)
    centre = (six[:, None] * total).sum(0) / (24.0 * volume)
    centre = np.where(np.abs(centre) < 4.0 * NOISE, 0.0, centre)
    # Second moments of a tetrahedron with one corner at the origin: V/20 (sum of a a^T + s s^T), s the sum of corners.
    second = np.einsum("t,tki,tkj->ij", six, corner, corner) + np.einsum("t,ti,tj->ij", six, total, total)
    second = second / (120.0 * volume) - np.outer(centre, centre)
    second = np.where(np.abs(second) < 4.0 * NOISE * np.trace(second), 0.0, 0.5 * (second + second.T))
    moment = np.diag(second).copy()
    for i, j in ((0, 1), (1, 2), (0, 2)):  # What differs by rounding only is the same.
        if abs(moment[i] - moment[j]) < 10.0 * NOISE * moment.max():
            moment[j] = moment[i]
    np.fill_diagonal(second, moment)
    return volume * size**3, centre * size, (moment.sum() * np.eye(3) - second) * size**2


def build_hull(corners, faces, volume):
    """Hulls with one row, for corners (v,3) about the centre of mass."""
    normal = face_normals(corners, faces)
    offset = reach_along(corners, normal)
    loop, after, owner = sides_of(faces)
    side = face_sides(corners, normal, loop, after, owner)
    edge, edge_face = edges_of(loop, after, owner)
    first, second = normal[edge_face[:, 0]], normal[edge_face[:, 1]]
    cosine = np.einsum("ei,ei->e", first, second)
    cosine = np.where(np.abs(cosine) < NOISE, 0.0, cosine)
    # The cross product keeps the digits of a small angle, which 1 - cosine^2 loses.
    sine = np.maximum((np.cross(first, second) ** 2).sum(1), NOISE)
    return Hulls(
        vertex_start=np.array([0, len(corners)], np.int32),
        face_start=np.array([0, len(faces)], np.int32),
        edge_start=np.array([0, len(edge)], np.int32),
        vertex=np.ascontiguousarray(corners.T),
        normal=np.ascontiguousarray(normal.T),
        offset=offset,
        edge=edge.astype(np.int32),
        edge_face=edge_face.astype(np.int32),
        edge_bend=np.stack([cosine, 1.0 / sine], axis=1),
        loop_start=np.cumsum([0, *map(len, faces)]).astype(np.int32),
        loop=loop.astype(np.int32),
        side=np.ascontiguousarray(side.T),
        side_offset=np.einsum("li,li->l", side, corners[loop]),
        inner=np.array([offset.min()]),
        outer=np.array([np.linalg.norm(corners, axis=1).max()]),
        ball=np.array([np.cbrt(3.0 * volume / (4.0 * np.pi))]),
        **box_columns(corners, normal, offset, edge),
    )


def box_columns(corners, normal, offset, edge):
    """Half-widths, faces and edges of a box along the axes of its body, as in Hulls; zeros if it is none."""
    box, face, edges = np.zeros(3), np.zeros(6, np.int32), np.zeros(12, np.int32)
    # Exact: faces along the axes and centred, so that both halves are the same number.
    axis = np.abs(normal).argmax(1)
    if len(normal) == 6 and len(corners) == 8 and (np.abs(normal).max(1) == 1.0).all():
        face[2 * axis + (normal[np.arange(6), axis] > 0.0)] = np.arange(6)
        if (offset[face[0::2]] == offset[face[1::2]]).all():
            box = offset[face[0::2]]
            middle = 0.5 * (corners[edge[:, 0]] + corners[edge[:, 1]])
            along = np.abs(corners[edge[:, 1]] - corners[edge[:, 0]]).argmax(1)
            row = np.arange(12)
            edges[4 * along + 2 * (middle[row, (along + 1) % 3] > 0.0) + (middle[row, (along + 2) % 3] > 0.0)] = row
    return {"box": box[None], "box_face": face[None], "box_edge": edges[None]}

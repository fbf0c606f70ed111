"""ParaView's .vtp files, written by hand, and the surfaces of walls, polyhedra and meshes that they and pictures show."""

from typing import NamedTuple

import numpy as np

from .. import tables
from ..shapes import Capsule, Superquadric

TYPES = {  # NumPy dtype -> VTK's name
    "int8": "Int8",
    "uint8": "UInt8",
    "int16": "Int16",
    "uint16": "UInt16",
    "int32": "Int32",
    "uint32": "UInt32",
    "int64": "Int64",
    "uint64": "UInt64",
    "float32": "Float32",
    "float64": "Float64",
    "bool": "UInt8",
}
FACETS = 180  # sides of a drawn cylinder


def write_points(path, columns):
    """Write one vertex per row of columns["position"] (n,3) [m]; the other columns become point data."""
    fields = {name: column for name, column in columns.items() if name != "position"}
    count = len(columns["position"])
    _write(path, columns["position"], fields, verts=(np.arange(count), np.arange(1, count + 1)))


def write_triangles(path, vertices, triangles, cells=None):
    """Write triangles (t,3) over vertices (v,3) [m]; cells: dict of (t,...) arrays, one row per triangle."""
    triangles = np.asarray(triangles, dtype=np.int64).reshape(-1, 3)
    offsets = 3 * np.arange(1, len(triangles) + 1)
    _write(path, vertices, {}, polys=(triangles.ravel(), offsets), cells=cells or {})


def write_polygons(path, polygons, cells=None):
    """Write Polygons; cells: dict of (f,...) arrays, one row per face."""
    _write(path, polygons.vertices, {}, polys=(polygons.loop, polygons.start[1:]), cells=cells or {})


class Surface(NamedTuple):
    """The skin of one wall, placed in the world."""

    flat: bool  # a plane, which has no end
    body: int  # row of the body
    vertices: np.ndarray  # (v,3) [m]
    triangles: np.ndarray  # (t,3)
    centre: np.ndarray  # (3,) [m], the part's origin
    axis: np.ndarray  # (3,) unit: normal of a plane, axis of a cylinder; zero for triangles
    radius: float  # [m], of a cylinder; else 0
    half: float  # [m], half length of a cylinder as drawn; else 0


def surfaces(bodies, molds, parts, meshes, *, around=None):
    """All walls as a list of Surface.

    bodies, molds, parts, meshes: columns by name, named as in tables (dicts or the named tuples themselves).
    around: ((3,) low, (3,) high) [m]: what has no end is drawn about this box; without it, it is left out.
    """
    bodies, molds, parts, meshes = (_columns(table) for table in (bodies, molds, parts, meshes))
    first, count = np.asarray(molds["first"], dtype=int), np.asarray(molds["count"], dtype=int)
    hard = np.concatenate([[0], np.cumsum(tables.is_wall(parts["kind"]))])
    wall = hard[first + count] > hard[first]
    triangle = tables.rows_in("meshes", parts["kind"], parts["feature"])
    result = []
    for row in np.flatnonzero(wall[bodies["mold"]]):
        mold = bodies["mold"][row]
        rows = np.arange(first[mold], first[mold] + count[mold])
        place = _Place(
            np.asarray(bodies["position"][row], dtype=float),
            np.asarray(bodies["orientation"][row], dtype=float),
            float(bodies["scale"][row]),
        )
        sheet = triangle[rows] >= 0
        if sheet.any():
            result.append(_mesh(row, place, triangle[rows[sheet]], meshes))
        for part in rows[~sheet]:
            centre = place.position + place.scale * rotate(place.orientation, parts["offset"][part])
            axis = rotate(place.orientation, np.asarray(parts["axis"][part], dtype=float))
            size = np.asarray(parts["size"][part], dtype=float) * (place.scale, place.scale, 1.0)
            surface = SMOOTH[parts["kind"][part]](row, centre, axis, size, around)
            if surface is not None:
                result.append(surface)
    return result


def plate(floor, points):
    """A floor, the Surface of a plane, as a round plate a little larger than the points (n,3) [m] that it carries."""
    low, high = points.min(axis=0), points.max(axis=0)
    middle = 0.5 * (low + high)
    middle = middle - floor.axis * np.dot(middle - floor.centre, floor.axis)
    away = points - middle
    away = away - np.outer(away @ floor.axis, floor.axis)
    reach = 1.12 * np.max(np.linalg.norm(away, axis=1))
    u, v = across(floor.axis)
    angle = np.linspace(0.0, 2.0 * np.pi, 180, endpoint=False)[:, None]
    rim = middle + reach * (np.cos(angle) * u + np.sin(angle) * v)
    here = np.arange(180)
    triangles = np.stack([here, np.roll(here, -1), np.full(180, 180)], axis=1)
    return floor._replace(vertices=np.vstack([rim, middle]), triangles=triangles, centre=middle, radius=float(reach))


class Polygons(NamedTuple):
    """The faces of many polyhedra or triangulated particles, placed in the world."""

    vertices: np.ndarray  # (v,3) [m]
    loop: np.ndarray  # (l,) rows of vertices, face by face, counterclockwise seen from outside
    start: np.ndarray  # (f+1,) into loop
    owner: np.ndarray  # (f,) which of the particles the face belongs to


def polygons(centre, orientation, scale, hull, hulls):
    """Polygons of polyhedra with centres (n,3) [m], orientations (n,4), size factors (n,) and rows of hulls (n,)."""
    hulls, hull = _columns(hulls), np.asarray(hull, dtype=int)
    centre, orientation, scale = (np.asarray(column, dtype=float) for column in (centre, orientation, scale))
    corner_start, face_start, loop_start = (
        np.asarray(hulls[name], dtype=int) for name in ("vertex_start", "face_start", "loop_start")
    )
    body, corner = _runs(corner_start, hull)
    arm = scale[body, None] * np.asarray(hulls["vertex"], dtype=float).T[corner]
    vertices = centre[body] + rotate(orientation[body], arm)
    owner, face = _runs(face_start, hull)
    side, place = _runs(loop_start, face)
    # Corners are counted over all hulls in the table, and over all bodies here.
    first = np.cumsum(np.bincount(body, minlength=len(hull))) - np.bincount(body, minlength=len(hull))
    shift = (first - corner_start[hull])[owner]
    start = np.concatenate([[0], np.cumsum(loop_start[face + 1] - loop_start[face])])
    return Polygons(vertices, np.asarray(hulls["loop"])[place] + shift[side], start, owner)


def skins(centre, orientation, scale, surface, surfaces):
    """Polygons of triangulated particles as in `polygons`, by rows of surfaces (n,); each triangle has corners of its own."""
    surfaces, surface = _columns(surfaces), np.asarray(surface, dtype=int)
    centre, orientation, scale = (np.asarray(column, dtype=float) for column in (centre, orientation, scale))
    start, corner = _drawn(surfaces)
    owner, triangle = _runs(start, surface)
    arm = corner[triangle].reshape(-1, 3)
    body = np.repeat(owner, 3)
    vertices = centre[body] + rotate(orientation[body], scale[body, None] * arm)
    return Polygons(vertices, np.arange(len(body)), 3 * np.arange(len(owner) + 1), owner)


def _drawn(surfaces):
    """Where the triangles of each surface begin (m+1,), and their corners (t,3,3) [m]; of capsules, whose triangles have no area, those of
    the skin around them."""
    start = np.asarray(surfaces["triangle_start"], dtype=int)
    corner = np.asarray(surfaces["corner"], dtype=float).T.reshape(-1, 3, 3)
    # By their normals, as trajectories of before the column `skin` have them too.
    thin = (np.asarray(surfaces["normal"]) == 0.0).min(axis=0)
    if not thin.any():
        return start, corner
    chunks = []
    for m, (low, high) in enumerate(zip(start[:-1], start[1:], strict=True)):
        mine = corner[low:high]
        if thin[low]:
            axis = mine[-1, 1] - mine[-1, 0]
            length = float(np.linalg.norm(axis))
            vertices, triangles = Capsule(float(surfaces["epsilon"][m]), length).surface()
            mine = (vertices @ frame_about(axis / length).T)[triangles]
        chunks.append(mine)
    return np.concatenate([[0], np.cumsum([len(chunk) for chunk in chunks])]), np.concatenate(chunks)


def frame_about(axis):
    """A matrix (3,3) that turns z into the unit vector `axis` (3,); no turn for z itself."""
    if axis[2] == 1.0:
        return np.eye(3)
    across = np.cross(np.eye(3)[np.argmin(np.abs(axis))], axis)
    across /= np.linalg.norm(across)
    return np.stack([across, np.cross(axis, across), axis], axis=1)


def superquadrics(centre, orientation, axes, power):
    """Polygons of superquadrics with centres (n,3) [m], orientations (n,4), half-axes (n,3) [m] and exponents (n,2)."""
    vertices, loops, owner, before = [], [], [], 0
    for k in range(len(centre)):
        corner, triangle = Superquadric(*axes[k], *power[k]).surface(subdivisions=4)
        vertices.append(centre[k] + rotate(orientation[k], corner))
        loops.append(triangle.ravel() + before)
        owner.append(np.full(len(triangle), k))
        before += len(corner)
    owners = np.concatenate(owner)
    return Polygons(np.concatenate(vertices), np.concatenate(loops), 3 * np.arange(len(owners) + 1), owners)


def _runs(start, rows):
    """For each of rows (n,), all entries that it owns in a list: (which of the rows, place in the list), in turn."""
    count = start[rows + 1] - start[rows]
    owner = np.repeat(np.arange(len(rows)), count)
    return owner, np.arange(len(owner)) + np.repeat(start[rows] - np.cumsum(count) + count, count)


class Particles(NamedTuple):
    """One row for each particle of every body."""

    body: np.ndarray  # (s,) row of bodies
    centre: np.ndarray  # (s,3) [m]
    orientation: np.ndarray  # (s,4) turns its own axes into those of the world
    axes: np.ndarray  # (s,3) [m], see `half_axes`
    hull: np.ndarray  # (s,) row of hulls, -1 for all but polyhedra
    surface: np.ndarray  # (s,) row of surfaces, -1 for all but triangulated particles
    power: np.ndarray  # (s,2) exponents, 0 for all but superquadrics
    radius: np.ndarray  # (s,) [m], of the ball with its volume


def particles(bodies, molds, parts, hulls=None, surfaces=None):
    """All particles of all bodies. Tables as in `surfaces`; hulls or surfaces may be left out where there are none."""
    bodies, molds, parts = (_columns(table) for table in (bodies, molds, parts))
    mold = np.asarray(bodies["mold"], dtype=int)
    # Every part of every body: repeat the bodies by their number of parts, then count up within each.
    count = np.asarray(molds["count"], dtype=int)[mold]
    body = np.repeat(np.arange(len(mold)), count)
    within = np.arange(len(body)) - np.repeat(np.cumsum(count) - count, count)
    part = np.asarray(molds["first"], dtype=int)[mold[body]] + within
    drawn = tables.is_particle(np.asarray(parts["kind"])[part])
    body, part = body[drawn], part[drawn]
    scale = np.asarray(bodies["scale"], dtype=float)[body]
    orientation = np.asarray(bodies["orientation"], dtype=float)[body]
    arm = rotate(orientation, np.asarray(parts["offset"])[part])
    centre = np.asarray(bodies["position"], dtype=float)[body] + scale[:, None] * arm
    kind, feature = np.asarray(parts["kind"])[part], np.asarray(parts["feature"])[part]
    hull, surface = (tables.rows_in(table, kind, feature) for table in ("hulls", "surfaces"))
    orientation = part_orientation(orientation, parts, part)
    power, axes = np.asarray(parts["power"])[part], half_axes(parts, part, scale, hulls, surfaces)
    return Particles(body, centre, orientation, axes, hull, surface, power, ball_radius(parts, part, scale, axes))


def part_orientation(orientation, parts, part):
    """Unit quaternions (s,4) that turn the own axes of these rows of parts (s,) into those of the world, given those of their bodies
    (s,4)."""
    q, r = np.asarray(orientation), np.asarray(_columns(parts)["turn"])[part]
    real = q[:, :1] * r[:, :1] - np.sum(q[:, 1:] * r[:, 1:], axis=1, keepdims=True)
    rest = q[:, :1] * r[:, 1:] + r[:, :1] * q[:, 1:] + np.cross(q[:, 1:], r[:, 1:])
    return np.where(r[:, :1] == 1.0, q, np.hstack([real, rest]))


def half_axes(parts, part, scale, hulls=None, surfaces=None):
    """Half-axes (s,3) [m] along their own axes of these rows of parts (s,) at size factors (s,).

    An ellipsoid has its own, a sphere three times its radius, a polyhedron or mesh three times that of the ball of its
    volume.
    """
    parts = _columns(parts)
    size = np.asarray(parts["size"], dtype=float)[part]
    size = np.where(size[:, 1:2] > 0.0, size, size[:, :1])  # a sphere has one number
    for table, name in ((hulls, "hulls"), (surfaces, "surfaces")):
        row = tables.rows_in(name, np.asarray(parts["kind"])[part], np.asarray(parts["feature"])[part])
        solid = np.flatnonzero(row >= 0)
        if len(solid):
            if table is None:
                raise TypeError(
                    f"there are particles of kind {tables.KINDS[tables.TABLED[name]]!r}, and no table of their {name}; "
                    f"give tables with a group {name!r}"
                )
            size[solid] = np.asarray(_columns(table)["ball"])[row[solid], None]
    return size * np.asarray(scale)[:, None]


def ball_radius(parts, part, scale, axes):
    """Radius (s,) [m] of the ball with the volume of these rows of parts (s,) at size factors (s,), whose half-axes are axes (s,3) [m]."""
    parts = _columns(parts)
    even = (axes == axes[:, :1]).all(axis=1)  # The root of a cube would lose the last digit.
    radius = np.where(even, axes[:, 0], np.cbrt(axes.prod(axis=1)))
    bent = np.asarray(parts["power"]).reshape(-1, 2)[part, 0] > 0.0
    if not bent.any():
        return radius  # tables without superquadrics need not have the column
    return np.where(bent, np.asarray(parts["ball"])[part] * np.asarray(scale), radius)


def rotate(orientation, vector):
    """Turn vectors (...,3) by unit quaternions (...,4)."""
    orientation, vector = np.asarray(orientation, dtype=float), np.asarray(vector, dtype=float)
    w, u = orientation[..., :1], orientation[..., 1:]
    t = 2.0 * np.cross(u, vector)
    return vector + w * t + np.cross(u, t)


def across(axis):
    """Two unit vectors at right angles to the unit vector `axis` (3,) and to each other."""
    helper = np.eye(3)[np.argmin(np.abs(axis))]
    u = np.cross(axis, helper)
    u /= np.linalg.norm(u)
    return u, np.cross(axis, u)


class _Place(NamedTuple):
    position: np.ndarray
    orientation: np.ndarray
    scale: float


def _columns(table):
    return table._asdict() if hasattr(table, "_asdict") else table


def _mesh(row, place, features, meshes):
    used, triangles = np.unique(np.asarray(meshes["triangle"])[features], return_inverse=True)
    vertices = place.position + place.scale * rotate(place.orientation, np.asarray(meshes["vertex"])[used])
    return Surface(False, int(row), vertices, triangles.reshape(-1, 3), place.position, np.zeros(3), 0.0, 0.0)


def _cylinder(row, centre, axis, size, around):
    radius, half, side = size
    if not np.isfinite(half):
        if around is None:
            return None
        middle = 0.5 * (np.asarray(around[0]) + around[1])
        centre = centre + axis * np.dot(middle - centre, axis)
        half = 0.5 * np.abs(np.subtract(around[1], around[0])) @ np.abs(axis)
    u, v = across(axis)
    angle = np.linspace(0.0, 2.0 * np.pi, FACETS, endpoint=False)[:, None]
    ring = radius * (np.cos(angle) * u + np.sin(angle) * v)
    vertices = np.concatenate([centre - half * axis + ring, centre + half * axis + ring])
    here = np.arange(FACETS)
    after = (here + 1) % FACETS
    triangles = [np.stack([here, after, after + FACETS], 1), np.stack([here, after + FACETS, here + FACETS], 1)]
    if side < 0.0:
        vertices = np.concatenate([vertices, [centre - half * axis, centre + half * axis]])
        triangles.append(np.stack([after, here, np.full(FACETS, 2 * FACETS)], 1))
        triangles.append(np.stack([here + FACETS, after + FACETS, np.full(FACETS, 2 * FACETS + 1)], 1))
    return Surface(False, int(row), vertices, np.concatenate(triangles), centre, axis, float(radius), float(half))


def _plane(row, centre, normal, size, around):
    if around is None:
        return None
    middle = 0.5 * (np.asarray(around[0]) + around[1])
    reach = 0.5 * np.linalg.norm(np.subtract(around[1], around[0]))
    foot = middle - normal * np.dot(middle - centre, normal)
    u, v = across(normal)
    vertices = np.array([foot + reach * (a * u + b * v) for a, b in ((-1, -1), (1, -1), (1, 1), (-1, 1))])
    return Surface(True, int(row), vertices, np.array([[0, 1, 2], [0, 2, 3]]), foot, normal, 0.0, 0.0)


SMOOTH = {tables.PLANE: _plane, tables.CYLINDER: _cylinder}


class Appended:
    """Arrays as raw bytes behind the XML, each after its length as UInt64; `entry` gives the XML line of one."""

    def __init__(self):
        self.blocks, self.offset = [], 0

    def entry(self, name, column):
        column = np.asarray(column)
        if column.dtype.name not in TYPES:
            raise TypeError(f"field {name!r} has dtype {column.dtype}; a VTK file holds {', '.join(TYPES)}")
        column = np.ascontiguousarray(column, dtype=column.dtype.newbyteorder("<"))
        parts = 1 if column.ndim == 1 else int(np.prod(column.shape[1:]))
        line = (
            f'<DataArray type="{TYPES[column.dtype.name]}" Name="{name}" NumberOfComponents="{parts}" '
            f'format="appended" offset="{self.offset}"/>'
        )
        self.blocks.append(column)
        self.offset += 8 + column.nbytes
        return line

    def write(self, path, lines):
        """The file: the lines of XML, then all arrays."""
        with open(path, "wb") as file:
            file.write("\n".join([*lines, '<AppendedData encoding="raw">']).encode() + b"\n_")
            for column in self.blocks:
                file.write(np.uint64(column.nbytes).astype("<u8").tobytes())
                file.write(column.reshape(-1).view(np.uint8).data)
            file.write(b"\n</AppendedData>\n</VTKFile>\n")


def head(kind):
    """The first two lines of a file of this kind."""
    return [
        '<?xml version="1.0"?>',
        f'<VTKFile type="{kind}" version="1.0" byte_order="LittleEndian" header_type="UInt64">',
    ]


def _write(path, points, fields, *, verts=None, polys=None, cells=None):
    """One PolyData piece."""
    body = Appended()
    entry = body.entry

    def cell_lists(tag, lists):
        connectivity, offsets = lists if lists else (np.zeros(0, np.int64), np.zeros(0, np.int64))
        return [
            f"<{tag}>",
            entry("connectivity", connectivity.astype(np.int64)),
            entry("offsets", offsets.astype(np.int64)),
            f"</{tag}>",
        ]

    active = "".join(
        f' {kind}="{name}"' for kind, name in (("Scalars", "radius"), ("Vectors", "velocity")) if name in fields
    )
    lines = [
        *head("PolyData"),
        "<PolyData>",
        f'<Piece NumberOfPoints="{len(points)}" NumberOfVerts="{len(verts[1]) if verts else 0}" NumberOfLines="0" '
        f'NumberOfStrips="0" NumberOfPolys="{len(polys[1]) if polys else 0}">',
        f"<PointData{active}>",
        *[entry(name, column) for name, column in fields.items()],
        "</PointData>",
        "<CellData>",
        *[entry(name, column) for name, column in (cells or {}).items()],
        "</CellData>",
        "<Points>",
        entry("Points", np.asarray(points, dtype=np.float64).reshape(-1, 3)),
        "</Points>",
        *cell_lists("Verts", verts),
        *cell_lists("Polys", polys),
        "</Piece>",
        "</PolyData>",
    ]
    body.write(path, lines)

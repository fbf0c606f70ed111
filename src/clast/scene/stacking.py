"""Tables put end to end: chunks of bodies, and the molds, parts, walls and solids of all shapes of a scene; parts in the world."""

import numpy as np

from ..shapes.triangulated import build_surface
from ..tables import (
    FREE,
    Bodies,
    Hulls,
    Meshes,
    Molds,
    Shapes,
    Surfaces,
    Trees,
    WarmBodies,
    is_particle,
    make_parts,
    rows_in,
)
from .clearance import rotate

BODY_COLUMNS = {  # type and width, 0 for a plain column
    "number": (np.int64, 0),
    "position": (float, 3),
    "orientation": (float, 4),
    "velocity": (float, 3),
    "spin": (float, 3),
    "force": (float, 3),
    "torque": (float, 3),
    "mass": (float, 0),
    "inertia": (float, 0),
    "scale": (float, 0),
    "mold": (np.int32, 0),
    "material": (np.int32, 0),
    "motion": (np.int8, 0),
}
ROOM = 293.15  # [K], of free bodies that are given no temperature where others are


def make_bodies(count, columns):
    """Bodies with `count` rows; a column of one row, or a number, stands for all rows, and all others are zero."""
    made = {}
    for name, (dtype, width) in BODY_COLUMNS.items():
        # Memory that nobody writes to costs nothing: half of a body at rest.
        made[name] = np.zeros((count, width) if width else count, dtype=dtype)
        if name in columns and np.any(columns[name]):
            made[name][...] = columns[name]
    if "temperature" in columns:
        return WarmBodies(**made, temperature=np.array(np.broadcast_to(columns["temperature"], count), float))
    return Bodies(**made)


def warmed(bodies):
    """Bodies with a temperature: free ones have that of a room, others let no heat in or out, if none was given."""
    if isinstance(bodies, WarmBodies):
        return bodies
    return WarmBodies(*bodies, np.where(bodies.motion == FREE, ROOM, np.nan))


def lone_parts(molds, parts):
    """Which molds (m,) are one part about their own origin, whose shape stands in the row of its body."""
    return (molds.count == 1) & ~parts.offset[molds.first].any(1)


def bounding_radius(parts):
    """Radius about the centre of mass that contains all parts [m], at size factor 1."""
    return float((np.linalg.norm(parts.offset, axis=1) + parts.reach).max())


def mold_reach(molds, parts):
    """Radius (m,) [m] about the centre of mass that contains all parts of each mold, at size factor 1."""
    far = np.linalg.norm(parts.offset, axis=1) + parts.reach
    return np.maximum.reduceat(far, molds.first) if len(far) else far


def particle_radii(bodies, molds, parts):
    """Radii (k,) [m] of the shapes of particles that count for the median, by which margins are measured, and the largest of all, by which periodic worlds are. Bodies
    that are one shape count for the median if they are free. bodies: with the columns mold, scale and motion."""
    single = lone_parts(molds, parts)[bodies.mold]
    rows = np.flatnonzero(~single)
    many = molds.count[bodies.mold[rows]]
    within = np.arange(many.sum()) - np.repeat(np.cumsum(many) - many, many)
    body = np.concatenate([np.flatnonzero(single), np.repeat(rows, many)])
    part = molds.first[bodies.mold[body]]
    part[len(part) - len(within) :] += within
    solid = is_particle(parts.kind[part])
    body, part = body[solid], part[solid]
    radius = parts.reach[part] * bodies.scale[body]
    return radius[(bodies.motion[body] == FREE) | ~single[body]], float(radius.max(initial=0.0))


def place_shapes(bodies, molds, parts):
    """All parts of all bodies as Shapes; where each body is one part about its centre, `centre` is `bodies.position` itself."""
    n = len(bodies.number)
    if lone_parts(molds, parts).all() and (n < 2 or (bodies.number[1:] > bodies.number[:-1]).all()):
        if len(molds.first) == 1:
            # Looking every one up in a table of one row would take most of the time.
            only = molds.first[0]
            part, kind = np.full(n, only, molds.first.dtype), np.full(n, parts.kind[only], parts.kind.dtype)
            radius = parts.reach[only] * bodies.scale
        else:
            part = molds.first[bodies.mold]
            kind, radius = parts.kind[part], parts.reach[part] * bodies.scale
        return Shapes(np.arange(n), np.arange(n, dtype=np.int32), part, kind, bodies.position, radius)
    many = molds.count[bodies.mold]
    total = int(many.sum())
    start = np.cumsum(many, dtype=np.int64) - many
    body = np.repeat(np.arange(len(many), dtype=np.int32), many)
    within = np.arange(total, dtype=np.int64) - start[body]
    part = (molds.first[bodies.mold][body] + within).astype(np.int32)
    number = np.arange(total, dtype=np.int64)
    if len(many) and (np.diff(bodies.number) < 0).any():
        order = np.argsort(bodies.number, kind="stable")
        sorted_start = np.empty_like(start)
        sorted_start[order] = np.cumsum(many[order], dtype=np.int64) - many[order]
        number = sorted_start[body] + within
    offset = parts.offset[part]
    if total == len(many) and (many == 1).all() and not offset.any():
        centre = bodies.position
    else:
        offset *= bodies.scale[body, None]
        centre = bodies.position[body] + rotate(bodies.orientation[body], offset)
    radius = parts.reach[part] * bodies.scale[body]
    return Shapes(number=number, body=body, part=part, kind=parts.kind[part], centre=centre, radius=radius)


def make_mold(shape):
    """Molds with one row, Parts, Meshes or None, Hulls or None, and Surfaces or None, of one shape."""
    parts = shape.parts()
    mold = Molds(
        first=np.zeros(1, dtype=np.int32),
        count=np.array([len(parts.kind)], dtype=np.int32),
        volume=np.array([shape.volume], dtype=float),
        inertia=np.array([shape.inertia], dtype=float),
        round=np.array([shape.round], dtype=bool),
    )
    hull, surface = getattr(shape, "hull", None), getattr(shape, "triangulation", None)
    return (
        mold,
        parts,
        shape.mesh,
        join_hulls(hull) if isinstance(hull, list) else hull,
        join_surfaces(surface) if isinstance(surface, list) else surface,
    )


def join_hulls(hulls):
    """Hulls of all polyhedra of one body, in the order of the list; None if it has none."""
    return _joined(hulls, empty_hulls(), ("vertex", "normal", "edge", "loop", "inner"), _shift_hull)


def join_surfaces(surfaces):
    """The same of Surfaces."""
    return _joined(surfaces, empty_surfaces(), ("corner", "vertex", "box", "inner"), _shift_surface)


def _joined(tables, empty, counted, shift):
    """Tables behind an empty one, with row numbers shifted by how many rows of the columns `counted` stand before; None if there are none."""
    if not tables:
        return None
    chunks, before = [empty], dict.fromkeys(counted, 0)
    for table in tables:
        chunks.append(shift(table, before))
        before = {name: count + _rows(table, name) for name, count in before.items()}
    return _join(chunks)


def join_bodies(chunks):
    """One table of all chunks, in their order."""
    chunks = [chunk for chunk in chunks if len(chunk.number)] or chunks[:1]
    if any(isinstance(chunk, WarmBodies) for chunk in chunks):
        chunks = [warmed(chunk) for chunk in chunks]
    return (
        chunks[0]
        if len(chunks) == 1
        else type(chunks[0])(*[_end_to_end(column) for column in zip(*chunks, strict=True)])
    )


def _end_to_end(columns):
    """Columns as one; where all are zero nobody writes to its memory, see `make_bodies`."""
    if any(column.any() for column in columns):
        return np.concatenate(columns)
    return np.zeros((sum(map(len, columns)), *columns[0].shape[1:]), columns[0].dtype)


def join_molds(chunks):
    """Molds, Parts, Meshes, Hulls and Surfaces of all chunks, which may have None for the last three, with row numbers
    shifted."""
    molds, parts, meshes, hulls, surfaces = ([make()] for make in EMPTY)
    part_count = 0
    before = dict.fromkeys(("triangle", "vertex", "edge", "edge_side", "vertex_edge"), 0)
    earlier = dict.fromkeys(("vertex", "normal", "edge", "loop", "inner"), 0)
    ahead = dict.fromkeys(("corner", "vertex", "box", "inner"), 0)
    for mold, part, mesh, hull, surface in chunks:
        molds.append(mold._replace(first=mold.first + part_count))
        feature = part.feature
        for table, shift in (("meshes", before["triangle"]), ("hulls", earlier["inner"]), ("surfaces", ahead["inner"])):
            row = rows_in(table, part.kind, part.feature)
            feature = np.where(row >= 0, row + shift, feature)
        parts.append(part._replace(feature=feature))
        part_count += len(part.kind)
        if mesh is not None:
            meshes.append(_shift_mesh(mesh, before))
            before = {name: count + len(getattr(mesh, name)) for name, count in before.items()}
        if hull is not None:
            hulls.append(_shift_hull(hull, earlier))
            earlier = {name: count + _rows(hull, name) for name, count in earlier.items()}
        if surface is not None:
            surfaces.append(_shift_surface(surface, ahead))
            ahead = {name: count + _rows(surface, name) for name, count in ahead.items()}
    return tuple(_join(chunks) for chunks in (molds, parts, meshes, hulls, surfaces))


def make_trees(parts, hulls, surfaces):
    """Trees of all triangulated particles and, where there are some, of the polyhedra that may meet them, which have no halo."""
    part = rows_in("surfaces", parts.kind, parts.feature).astype(np.int32)
    if len(surfaces.ball) == 0 or len(hulls.inner) == 0:
        return Trees(*_side_by_side(surfaces), part)
    chunks = [surfaces]
    ahead = {name: _rows(surfaces, name) for name in ("corner", "vertex", "box", "inner")}
    for hull in range(len(hulls.inner)):
        skin = build_surface(*hull_triangles(hulls, hull), 0.0, hulls.ball[hull])
        chunks.append(_shift_surface(skin, ahead))
        ahead = {name: count + _rows(skin, name) for name, count in ahead.items()}
    row = rows_in("hulls", parts.kind, parts.feature)
    part = np.where(row >= 0, row + len(surfaces.ball), part).astype(np.int32)
    return Trees(*_side_by_side(_join(chunks)), part)


def _side_by_side(surfaces):
    """Surfaces with the numbers of one triangle, node or vertex side by side in memory: those that are looked at lie anywhere among the
    triangles of all particles, and every number of one came from a place of its own."""
    return surfaces._replace(**{name: np.asfortranarray(getattr(surfaces, name)) for name in WIDE[Surfaces]})


def hull_triangles(hulls, h) -> tuple[np.ndarray, np.ndarray]:
    """Vertices (v,3) [m] and triangles (t,3) of one of the Hulls, faces cut into fans."""
    low, high = hulls.vertex_start[h : h + 2]
    loops = (
        hulls.loop[hulls.loop_start[f] : hulls.loop_start[f + 1]] - low
        for f in range(*hulls.face_start[h : h + 2].tolist())
    )
    triangles = [np.stack([np.full(len(k) - 2, k[0]), k[1:-1], k[2:]], axis=1) for k in loops]
    return np.ascontiguousarray(hulls.vertex[:, low:high].T), np.concatenate(triangles)


# Columns of Hulls and Surfaces whose rows stand side by side.
WIDE = {Hulls: ("vertex", "normal", "side"), Surfaces: ("corner", "normal", "vertex", "box")}


def _rows(table, name):
    """How many rows a column of Hulls or Surfaces has."""
    return getattr(table, name).shape[name in WIDE[type(table)]]


def _shift_surface(surface, before):
    """A surface with its row numbers as they are when so many rows of each column stand before it."""
    triangles = before["corner"]
    return surface._replace(
        triangle_start=surface.triangle_start[1:] + triangles,
        vertex_start=surface.vertex_start[1:] + before["vertex"],
        node_start=surface.node_start[1:] + before["box"],
        child=np.where(surface.child >= 0, surface.child + before["box"], surface.child),
        first=surface.first + triangles,
        last=surface.last + triangles,
    )


def _shift_hull(hull, before):
    """A hull with its row numbers as they are when so many rows of each column stand before it."""
    return hull._replace(
        vertex_start=hull.vertex_start[1:] + before["vertex"],
        face_start=hull.face_start[1:] + before["normal"],
        edge_start=hull.edge_start[1:] + before["edge"],
        edge=hull.edge + before["vertex"],
        edge_face=hull.edge_face + before["normal"],
        loop_start=hull.loop_start[1:] + before["loop"],
        loop=hull.loop + before["vertex"],
        box_edge=hull.box_edge + before["edge"],
    )


def _shift_mesh(mesh, before):
    """A mesh with its row numbers as they are when so many rows of each column stand before it."""
    triangles, vertices, edges = before["triangle"], before["vertex"], before["edge"]
    edge_side = mesh.edge_side.copy()
    edge_side[:, 0] += triangles
    return mesh._replace(
        triangle=mesh.triangle + vertices,
        side=mesh.side + edges,
        edge=mesh.edge + vertices,
        edge_owner=mesh.edge_owner + triangles,
        # The end of one mesh is the start of the next: the first entry is there already.
        edge_start=mesh.edge_start[1:] + before["edge_side"],
        edge_side=edge_side,
        vertex_owner=np.where(mesh.vertex_owner >= 0, mesh.vertex_owner + triangles, mesh.vertex_owner),
        vertex_start=mesh.vertex_start[1:] + before["vertex_edge"],
        vertex_edge=mesh.vertex_edge + edges,
    )


def _join(chunks):
    """The chunks as one table, each column with the type and width that the first, empty one has."""
    like, columns = chunks[0], []
    table = type(like)
    for name, column in zip(table._fields, zip(*chunks, strict=True), strict=True):
        pattern = getattr(like, name)
        if name in WIDE.get(table, ()):
            joined = np.concatenate(column, axis=1)
        else:
            joined = np.concatenate([np.asarray(piece).reshape(-1, *pattern.shape[1:]) for piece in column])
        columns.append(np.ascontiguousarray(joined, dtype=pattern.dtype))
    return table(*columns)


def _empty_molds():
    none = np.zeros(0, dtype=np.int32)
    return Molds(first=none, count=none, volume=np.zeros(0), inertia=np.zeros((0, 3, 3)), round=np.zeros(0, dtype=bool))


def _empty_parts():
    return make_parts(0, kind=[])


def _empty_meshes():
    none, two, three = (np.zeros(shape, dtype=np.int32) for shape in (0, (0, 2), (0, 3)))
    return Meshes(
        vertex=np.zeros((0, 3)),
        triangle=three,
        side=three,
        normal=np.zeros((0, 3)),
        inward=np.zeros((0, 3, 3)),
        outline=np.zeros(0, dtype=np.int8),
        edge=two,
        edge_owner=none,
        edge_start=np.zeros(1, dtype=np.int32),
        edge_side=two,
        vertex_owner=none,
        vertex_start=np.zeros(1, dtype=np.int32),
        vertex_edge=none,
    )


def empty_hulls():
    """Hulls without a row."""
    none, two, wide = np.zeros(0), np.zeros((0, 2), dtype=np.int32), np.zeros((3, 0))
    start = np.zeros(1, dtype=np.int32)
    return Hulls(
        vertex_start=start,
        face_start=start,
        edge_start=start,
        vertex=wide,
        normal=wide,
        offset=none,
        edge=two,
        edge_face=two,
        edge_bend=np.zeros((0, 2)),
        loop_start=start,
        loop=np.zeros(0, dtype=np.int32),
        side=wide,
        side_offset=none,
        inner=none,
        outer=none,
        ball=none,
        box=np.zeros((0, 3)),
        box_face=np.zeros((0, 6), dtype=np.int32),
        box_edge=np.zeros((0, 12), dtype=np.int32),
    )


def empty_surfaces():
    """Surfaces without a row."""
    none, whole, start = np.zeros(0), np.zeros(0, dtype=np.int32), np.zeros(1, dtype=np.int32)
    return Surfaces(
        triangle_start=start,
        vertex_start=start,
        node_start=start,
        corner=np.zeros((9, 0)),
        normal=np.zeros((3, 0)),
        row=whole,
        outline=np.zeros(0, dtype=np.int8),
        vertex=np.zeros((3, 0)),
        box=np.zeros((6, 0)),
        child=whole,
        first=whole,
        last=whole,
        epsilon=none,
        skin=none,
        shortest=none,
        inner=none,
        outer=none,
        ball=none,
    )


EMPTY = (_empty_molds, _empty_parts, _empty_meshes, empty_hulls, empty_surfaces)

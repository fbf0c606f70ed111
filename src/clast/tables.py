"""The tables that hold all state: named tuples of arrays, one row per thing. Units and signs stand here, once.

SI units and radians; quaternions are (w, x, y, z) and turn body axes into world axes; spin is in world axes.
A *mold* is what a user adds (a sphere, a clump, a drum); a body is one copy of a mold with its own size factor.
A mold has one or more *parts*; a *shape* is one part of one body, placed in the world.
"""

from collections import namedtuple
from typing import Any, NamedTuple

import numpy as np

# Kinds of parts. Particles first; from FIRST_WALL on, walls, which only ever belong to fixed or driven bodies.
NONE = -1  # a body whose parts stand in rows of their own
SPHERE = 0
ELLIPSOID = 1
POLYHEDRON = 2
MESH = 3
SUPERQUADRIC = 4
FIRST_WALL = 8
PLANE = 8
CYLINDER = 9
TRIANGLE = 10
KINDS = {
    SPHERE: "sphere",
    ELLIPSOID: "ellipsoid",
    POLYHEDRON: "polyhedron",
    MESH: "mesh",
    SUPERQUADRIC: "superquadric",
    PLANE: "plane",
    CYLINDER: "cylinder",
    TRIANGLE: "triangle",
}


def is_particle(kind):
    """Which of the shapes, by their kinds (s,), are particles and neither walls nor bodies without a shape: (s,) bool."""
    return (kind > NONE) & (kind < FIRST_WALL)


def is_wall(kind):
    """Which of the shapes, by their kinds (s,), are walls: (s,) bool."""
    return kind >= FIRST_WALL


# Kinds whose parts have a row in a table of their own, which Parts.feature tells, by the name of that table.
TABLED = {"meshes": TRIANGLE, "hulls": POLYHEDRON, "surfaces": MESH}


def rows_in(table, kind, feature):
    """Rows (s,) of the table of this name, a key of TABLED, for parts with these kinds (s,) and features (s,); -1 where a part
    has none there."""
    return np.where(np.asarray(kind) == TABLED[table], feature, -1)


# How a body moves.
FREE = 0
FIXED = 1
DRIVEN = 2
MOTIONS = {"free": FREE, "fixed": FIXED, "driven": DRIVEN}


class Bodies(NamedTuple):
    """One row per body."""

    number: np.ndarray  # (n,) int64, the number that `Scene.add` returned; never given twice
    position: np.ndarray  # (n,3) [m], centre of mass
    orientation: np.ndarray  # (n,4) unit quaternion
    velocity: np.ndarray  # (n,3) [m/s], of the centre of mass
    spin: np.ndarray  # (n,3) [rad/s], world axes
    force: np.ndarray  # (n,3) [N], of all contacts and joints, without gravity
    torque: np.ndarray  # (n,3) [N m], of all contacts and joints, about the centre of mass
    mass: np.ndarray  # (n,) [kg]; infinite for fixed and driven bodies
    inertia: np.ndarray  # (n,) [kg m^2], one third of the trace, exact for balls; infinite for fixed and driven bodies
    scale: np.ndarray  # (n,) size factor of the mold
    mold: np.ndarray  # (n,) int32, row of Molds
    material: np.ndarray  # (n,) int32, row of the materials
    motion: np.ndarray  # (n,) int8, FREE, FIXED or DRIVEN


def _with(column, table, title) -> Any:
    """Named tuples with the columns of a table and one more; Any, as mypy makes no sense of names that are not written out."""
    return namedtuple(title, (*table._fields, column))


_WarmBodies: Any = _with("temperature", Bodies, "WarmBodies")


class WarmBodies(_WarmBodies):
    """Bodies, and temperature (n,) [K]; of fixed and driven ones it stays as it is, and NaN lets no heat in or out."""


def some_bodies(bodies, rows):
    """These rows of Bodies, with their temperatures where they have some."""
    return type(bodies)(*(np.ascontiguousarray(column[rows]) for column in bodies))


def without_heat(bodies):
    """Bodies as kernels know them: the same for scenes with temperatures as for others."""
    return Bodies(*bodies[: len(Bodies._fields)])


class Molds(NamedTuple):
    """One row per thing that was added; lengths at size factor 1."""

    first: np.ndarray  # (m,) int32, first row in Parts
    count: np.ndarray  # (m,) int32, number of parts
    volume: np.ndarray  # (m,) [m^3]; zero for walls
    inertia: np.ndarray  # (m,3,3) [m^2], inertia tensor per mass about the centre of mass; zero for walls
    round: np.ndarray  # (m,) bool, the inertia is that of a ball: orientation has no influence on the motion


class Parts(NamedTuple):
    """One row per part of a mold, in the axes of its body, at size factor 1."""

    kind: np.ndarray  # (p,) int8, SPHERE, PLANE, ...
    offset: np.ndarray  # (p,3) [m], from the centre of mass to the part's own origin
    turn: np.ndarray  # (p,4) unit quaternion: turns the own axes of an ellipsoid or superquadric into those of the body; none for all that is kept
    # in the axes of its body
    axis: np.ndarray  # (p,3) unit: the normal of a plane, the axis of a cylinder; zero otherwise
    size: np.ndarray  # (p,3) [m]: sphere (radius, 0, 0); ellipsoid, superquadric: semi-axes along their own axes;
    # cylinder (radius, half length, +1 hollow or -1 solid); zeros for all others
    power: np.ndarray  # (p,2) the exponents e1, e2 of a superquadric; zeros for all others
    reach: np.ndarray  # (p,) [m], radius about `offset` that contains the part; infinite for what has no end
    feature: np.ndarray  # (p,) int32, row of Meshes.triangle for TRIANGLE, of Hulls for POLYHEDRON,
    # of Surfaces for MESH; -1 otherwise
    ball: np.ndarray  # (p,) [m], radius that stands for the part in contact laws; zero for walls, here and below
    small: np.ndarray  # (p,) [m], radius by which the time step of Hertz contacts is chosen
    large: np.ndarray  # (p,) [m], the same where the stiffness grows with the radius
    deep: np.ndarray  # (p,) [m], how deep another body can be in it and still be pushed out the right way
    swing: np.ndarray  # (p,) [m], how far its surface moves at the most when it turns by one radian


def is_thin(parts):
    """Which of the Parts are walls that are felt from both sides, triangles and open shells with an end: (p,) bool."""
    shell = (parts.size[:, 2] > 0.0) & np.isfinite(parts.size[:, 1])
    return is_wall(parts.kind) & ((parts.feature >= 0) | shell)


def make_parts(count, **columns):
    """Parts with so many rows; a column that is left out is zero, and `turn` and `feature` are none."""
    made = {name: np.zeros(count) for name in ("reach", "ball", "small", "large", "deep", "swing")}
    made |= {name: np.zeros((count, 3)) for name in ("offset", "axis", "size")}
    made["power"] = np.zeros((count, 2))
    made |= {"turn": np.tile([1.0, 0.0, 0.0, 0.0], (count, 1)), "feature": np.full(count, -1)}
    made |= {
        name: np.array(column, dtype=float).reshape(made.get(name, np.empty(count)).shape)
        for name, column in columns.items()
    }
    return Parts(**made | {"kind": made["kind"].astype(np.int8), "feature": made["feature"].astype(np.int32)})


class Hulls(NamedTuple):
    """All convex polyhedra, in the axes of their body at size factor 1, about the centre of mass.

    Coordinates stand in columns, x of all corners side by side, so that loops over corners become vector instructions.
    Rows of corners, faces, edges and loops are counted over all hulls; hull h owns start[h] up to start[h + 1] of each.
    """

    vertex_start: np.ndarray  # (h+1,) int32, into the columns of vertex
    face_start: np.ndarray  # (h+1,) int32, into the columns of normal
    edge_start: np.ndarray  # (h+1,) int32, into edge
    vertex: np.ndarray  # (3,v) [m]
    normal: np.ndarray  # (3,f) unit, outward
    offset: np.ndarray  # (f,) [m]; the polyhedron is where normal . x <= offset for all faces
    edge: np.ndarray  # (e,2) int32, the two corners, columns of vertex
    edge_face: (
        np.ndarray
    )  # (e,2) int32, the two faces that meet there, columns of normal; their normals m, n are in such
    # an order that m x n points from the first corner to the second
    edge_bend: np.ndarray  # (e,2) cosine c between the two normals, and 1 / (1 - c^2)
    loop_start: np.ndarray  # (f+1,) int32, into loop
    loop: np.ndarray  # (l,) int32, corners of each face in order, counterclockwise seen from outside
    side: (
        np.ndarray
    )  # (3,l) unit, in the plane of the face, at right angles to the side from corner loop[k] to the next, outward
    side_offset: np.ndarray  # (l,) [m]; within the outline of the face side . x <= side_offset
    inner: np.ndarray  # (h,) [m], radius of the largest ball about the centre of mass inside
    outer: np.ndarray  # (h,) [m], radius of the least ball about the centre of mass around
    ball: np.ndarray  # (h,) [m], radius of the ball of the same volume
    box: np.ndarray  # (h,3) [m], half-widths of a box along the axes of its body; zero if it is none
    box_face: np.ndarray  # (h,6) int32, the face of a box at -x, +x, -y, +y, -z, +z, counted within its hull
    box_edge: (
        np.ndarray
    )  # (h,12) int32, rows of edge: 4 along x, at (-y, -z), (-y, +z), (+y, -z), (+y, +z), then along y at z, x, ...


class Meshes(NamedTuple):
    """All wall triangles, in the axes of their body at size factor 1, with the topology that keeps edges smooth."""

    vertex: np.ndarray  # (v,3) [m]
    triangle: np.ndarray  # (t,3) int32, rows of vertex
    side: np.ndarray  # (t,3) int32, rows of edge; side k joins triangle vertices k and k + 1
    normal: np.ndarray  # (t,3) unit
    inward: np.ndarray  # (t,3,3) unit, in the plane of the triangle, at right angles to side k, into the triangle
    outline: np.ndarray  # (t,) int8, bits of the corners and sides that stand out, see `shapes.outline`
    edge: np.ndarray  # (e,2) int32, rows of vertex, the lower first
    edge_owner: np.ndarray  # (e,) int32, the triangle that speaks for the edge
    edge_start: np.ndarray  # (e+1,) int32, into edge_side
    edge_side: np.ndarray  # (k,2) int32, (triangle, side) of every triangle at the edge
    vertex_owner: np.ndarray  # (v,) int32, the triangle that speaks for the vertex; -1 if none
    vertex_start: np.ndarray  # (v+1,) int32, into vertex_edge
    vertex_edge: np.ndarray  # (k,) int32, every edge at the vertex


class Surfaces(NamedTuple):
    """All triangulated particles, in the axes of their body at size factor 1, about the centre of mass.

    Coordinates stand in columns, as in Hulls. The triangles of a surface stand in the order of the leaves of a tree of
    boxes, so that those below a node are a range. Columns of corners, vertices and nodes are counted over all surfaces;
    surface m owns start[m] up to start[m + 1] of each, and its root is node node_start[m].
    """

    triangle_start: np.ndarray  # (m+1,) int32, into the columns of corner
    vertex_start: np.ndarray  # (m+1,) int32, into the columns of vertex
    node_start: np.ndarray  # (m+1,) int32, into the columns of box
    corner: np.ndarray  # (9,t) [m], x y z of the first, second and third corner of each triangle
    normal: np.ndarray  # (3,t) unit, outward
    row: np.ndarray  # (t,) int32, row of the triangle in the mesh as it was given
    outline: np.ndarray  # (t,) int8, bits of the corners and sides that stand out, see `shapes.outline`
    vertex: np.ndarray  # (3,v) [m]
    box: np.ndarray  # (6,k) [m], low x y z, high x y z of the box around the triangles of a node, without halo
    child: np.ndarray  # (k,) int32, column of the first of two neighbouring children; -1 for a leaf
    first: np.ndarray  # (k,) int32, first triangle of the node
    last: np.ndarray  # (k,) int32, behind its last triangle
    epsilon: np.ndarray  # (m,) [m], thickness of the halo around the triangles in which contacts act
    skin: np.ndarray  # (m,) [m], how far outside of its triangles a body ends: a capsule at its halo, others at them
    shortest: np.ndarray  # (m,) [m], shortest edge
    inner: np.ndarray  # (m,) [m], radius of the largest ball about the centre of mass inside; 0 if that lies outside
    outer: np.ndarray  # (m,) [m], radius of the least ball about the centre of mass around, without halo
    ball: np.ndarray  # (m,) [m], radius of the ball of the same volume


_Trees: Any = _with("part", Surfaces, "Trees")


class Trees(_Trees):
    """Surfaces, those of triangulated particles and of polyhedra that may meet them, and part (p,) int32, the row of each of the
    Parts in it, -1 for what has none."""


class Shapes(NamedTuple):
    """One row per part of every body, placed in the world."""

    number: np.ndarray  # (s,) int64, counted up over all bodies in the order of their numbers; orders all sums
    body: np.ndarray  # (s,) int32, row of Bodies
    part: np.ndarray  # (s,) int32, row of Parts
    kind: np.ndarray  # (s,) int8
    centre: np.ndarray  # (s,3) [m], world
    radius: np.ndarray  # (s,) [m], radius about centre that contains the shape; for a sphere its radius


class Box(NamedTuple):
    """The world's periodic box."""

    low: np.ndarray  # (3,) [m]
    length: np.ndarray  # (3,) [m]; zero on an axis that is not periodic
    inverse: np.ndarray  # (3,) [1/m], one over length; zero on an axis that is not periodic
    periodic: bool  # whether any axis is periodic


class Pairs(NamedTuple):
    """The neighbour list: pairs of shapes near enough to touch, sorted by family. First spheres with spheres, then the other
    families of particles, the lower number first; then particles with walls, the particle first, grouped by it."""

    shape: np.ndarray  # (p,2) int32, rows of Shapes
    mix: np.ndarray  # (p,) int32, row of the table of combined materials
    slot: np.ndarray  # (p-b+1,) int64, first row of ContactPoints of each pair behind the b pairs of spheres that have no slots: all of
    # them for forces, none for hard contacts; (1,) without points
    manifold: (
        np.ndarray
    )  # (m+1,) int32, first pair, counted behind those of spheres, of each manifold: of all pairs of the same two
    # bodies in a family whose points stand for areas of contact; else of one pair of particles, of one shape with one wall body
    start: np.ndarray  # (n+1,) int32, into entry
    entry: np.ndarray  # (k,) int32, contacts of a body: 2 * pair + side, in the order of the partners' numbers
    apart: (
        np.ndarray
    )  # (p-b,) [m], gap at the least of each pair behind those b when the list was made, -inf where not known; or (0,)
    far: (
        np.ndarray
    )  # (s,) [m], how far at the most the surface of each shape has moved since, inf where not known; or (0,)


SIDE_BY_SIDE = 64  # pairs of spheres that forces are found of at once


class SpherePairs(NamedTuple):
    """What pairs of spheres remember and do: the first b rows of Pairs, which go from places to forces in one pass."""

    memory: np.ndarray  # (b,3+k) slip [m] and what the law keeps, or (b,6+k) with the rolling angle [rad] between them
    action: (
        np.ndarray
    )  # (b,6) force on the second [N]; torque on either over minus its radius [N]; zero without contact
    couple: np.ndarray  # (b,3) [N m], of rolling resistance on the second; (0,3) if there is none
    idle: (
        np.ndarray
    )  # (b/64,) int8, 1 if all that 64 pairs remember and do is zero; they stay so until one of them touches


def still_spheres(memory, couples, device):
    """SpherePairs with this memory (b,3+) that do nothing yet; couples: b where there is rolling resistance, or 0."""
    groups = (len(memory) + SIDE_BY_SIDE - 1) // SIDE_BY_SIDE
    action, couple = device.zeros((len(memory), 6), np.float64), device.zeros((couples, 3), np.float64)
    return SpherePairs(memory, action, couple, device.zeros(groups, np.int8))


class ContactPoints(NamedTuple):
    """One row per slot; a pair owns as many as its family can need. Those with a gap up to a margin are in use: that of forces is
    just below zero, hard contacts look as far as a step can close a gap."""

    count: np.ndarray  # (q,) int32, slots in use of each pair behind those of spheres
    arm: np.ndarray  # (c,3) [m], from the centre of the first shape to the contact point, the middle of the overlap
    normal: np.ndarray  # (c,3) unit, from the first to the second shape; also of the last look at a pair that was apart
    gap: np.ndarray  # (c,) [m], negative when overlapping; infinite if the slot is not in use
    feature: np.ndarray  # (c,) int32, what touches, the same in the next step
    radius: np.ndarray  # (c,) [m], reduced radius of curvature, for laws
    overlap: np.ndarray  # (c,) [m], that the law saw: the mean of those that look the same way, by what they bear
    force: np.ndarray  # (c,3) [N], on the second shape
    couple: np.ndarray  # (c,3) [N m], of rolling resistance on the second shape; (0,3) without


class History(NamedTuple):
    """What contact points remember from step to step, one row per slot."""

    live: np.ndarray  # (c,) int8, 1 if the slot was in use in the last step
    slip: np.ndarray  # (c,3) [m]
    share: np.ndarray  # (c,) part of the stiffness of its manifold's contact
    angle: np.ndarray  # (c,3) [rad]; (0,3) without rolling friction
    kept: np.ndarray  # (c,k) the numbers that the law keeps beside the slip, see `clast.dem.laws.Law.keeps`
    arm: np.ndarray  # (c,3) [m], from the centre of mass of the first body; of hard contacts as in ContactPoints; not kept where a manifold
    # has one slot
    normal: np.ndarray  # (c,3) unit
    # Of hard contacts, which keep no slip, share, angle, numbers of a law and normal, no rows each:
    impulse: np.ndarray  # (c,3) [N s] on the second shape, or (c,6) with couples over a length
    account: (
        np.ndarray
    )  # (c,12) what the contact of two bodies holds, see clast.dem.conserving; (0,12) where nobody keeps account


class Wrench(NamedTuple):
    """What contacts do to bodies, one row per pair behind those of spheres."""

    force: np.ndarray  # (q,3) [N], on the second shape
    moment: np.ndarray  # (q,2,3) [N m], on the second body: about the centre of mass of the first, about
    # its own, which is without meaning for walls
    live: np.ndarray  # (q,) int8, 1 if some slot was in use in the last step


LINE = 64  # bytes that a processor fetches at a time


def in_lines(count, width):
    """Zeros (count,width), a whole number of lines of the cache each, of which the first begins a line."""
    room = np.zeros(count * width + LINE // 8)
    first = -room.ctypes.data % LINE // 8
    return room[first : first + count * width].reshape(count, width)


def geometry_points(pairs, count, device=np):
    """ContactPoints of so many pairs with `count` slots in all, none counted: what geometry writes, and nothing that acts.

    Gaps are zero until geometry has looked at a pair for the first time.

    On the CPU columns that are written and read together are views of one array, so that a point is one line of the cache.
    """
    # Two at the least: columns of fewer rows are contiguous, another type for numba, and kernels would be compiled again.
    count = max(count, 2)
    if device is np or device.name == "cpu":
        place = np.zeros((count, 8))
        arm, normal, gap, radius = place[:, 0:3], place[:, 3:6], place[:, 6], place[:, 7]
    else:
        arm, normal = device.zeros((count, 3), np.float64), device.zeros((count, 3), np.float64)
        gap, radius = device.zeros(count, np.float64), device.zeros(count, np.float64)
    none, line = device.zeros((0, 3), np.float64), device.zeros(0, np.float64)
    many, feature = device.zeros(pairs, np.int32), device.zeros(count, np.int32)
    return ContactPoints(many, arm, normal, gap, feature, radius, line, none, none)


def empty_points(pairs, count, rolling, kept=0, device=np, accounts=False):
    """ContactPoints and History for forces, of so many pairs with `count` slots in all, none in use; kept: numbers that the law
    keeps."""
    points = geometry_points(pairs, count, device)
    count = len(points.gap)
    wide = count if rolling else 0
    if device is np or device.name == "cpu":
        told = np.empty((count, 14))  # a point that begins to act writes all of them
        slip, share, last_arm, overlap = told[:, 0:3], told[:, 3], told[:, 4:7], told[:, 7]
        last_normal, force = told[:, 8:11], told[:, 11:14]
    else:
        slip, force = device.zeros((count, 3), np.float64), device.zeros((count, 3), np.float64)
        share, overlap = device.zeros(count, np.float64), device.zeros(count, np.float64)
        last_arm, last_normal = device.zeros((count, 3), np.float64), device.zeros((count, 3), np.float64)
    couple = device.zeros((wide, 3), np.float64)
    points = points._replace(overlap=overlap, force=force, couple=couple)
    history = History(
        live=device.zeros(count, np.int8),
        slip=slip,
        share=share,
        angle=device.zeros((wide, 3), np.float64),
        kept=device.zeros((count, kept), np.float64),
        arm=last_arm,
        normal=last_normal,
        impulse=device.zeros((0, 3), np.float64),
        account=device.zeros((count if accounts else 0, 12), np.float64),
    )
    return points, history


def impulse_points(pairs, count, width):
    """ContactPoints and History for impulses of `width` numbers, of so many pairs with `count` slots in all, none in use."""
    points = geometry_points(pairs, count)
    count, none = len(points.gap), np.zeros((0, 3))
    history = History(
        live=np.zeros(count, np.int8),
        slip=none,
        share=none[:, 0],
        angle=none,
        kept=none[:, :0],
        arm=np.zeros((count, 3)),
        normal=none,
        impulse=np.zeros((count, width)),
        account=np.zeros((0, 12)),
    )
    return points, history


class Contacts(NamedTuple):
    """One row per contact, sorted by pair, then shape, then gap. Body a has the lower number."""

    pair: np.ndarray  # (c,2) body numbers, a < b
    shape: np.ndarray  # (c,2) which part of each body, counted from 0
    point: np.ndarray  # (c,3) [m], middle of the overlap or of the gap; in a simulation, where the force acts
    normal: np.ndarray  # (c,3) unit, from a to b
    gap: np.ndarray  # (c,) [m], negative when overlapping
    feature: np.ndarray  # (c,) int32, the face, edge or vertex touched, in the shape's own count; 0 for smooth shapes
    slip: np.ndarray  # (c,3) [m], tangential displacement stored in the contact; zero outside a simulation
    force: np.ndarray  # (c,3) [N], on b; zero outside a simulation
    couple: np.ndarray  # (c,3) [N m], of rolling and twisting resistance on b; zero outside a simulation
    kept: np.ndarray  # (c,) numbers that the law keeps, by their names: kept["peak"]; (c,0) without any


class Joints(NamedTuple):
    """One row per joint, in the order of adding. The frame of a joint is fixed to body a and, a second time, to body b; both
    are the same when the joint is made. `Scene.join` tells what the axes x, y, z of the frame are."""

    body: np.ndarray  # (j,2) int64, the numbers of bodies a and b; -1 is the world
    held: np.ndarray  # (j,2) bool, whether it keeps the distance of its two points, and b's point at its height along z
    locked: np.ndarray  # (j,6) bool, shift along x, y, z, turn about x, y, z; all False where it keeps a distance
    point: np.ndarray  # (j,2,3) [m], from the centre of mass of a and of b, in the axes of that body
    frame: np.ndarray  # (j,2,4) unit quaternion, turns axes of the joint into axes of a and of b
    length: np.ndarray  # (j,) [m], distance of the two points; zero where it is not kept
    rise: np.ndarray  # (j,) [m], of b's point above a's along z; zero where it is not kept
    limits: np.ndarray  # (j,2) [rad] or [m], least and largest value of the free coordinate; infinite without limits
    motor: np.ndarray  # (j,2) bool, whether a motor imposes the turn about z, the shift along z


class Springs(NamedTuple):
    """One row per spring with its damper, in the order of adding."""

    body: np.ndarray  # (s,2) int64, the numbers of bodies a and b; -1 is the world
    joint: np.ndarray  # (s,) int32, row of Joints whose turn the spring resists; -1 for a spring between two points
    point: np.ndarray  # (s,2,3) [m], as in Joints
    rest: np.ndarray  # (s,) [m] or [rad], where the spring pulls and pushes nothing
    stiffness: np.ndarray  # (s,) [N/m] or [N m/rad]
    damping: np.ndarray  # (s,) [N s/m] or [N m s/rad]


# The columns of Contacts that tell where bodies touch.
GEOMETRY = ("pair", "shape", "point", "normal", "gap", "feature")


def empty_contacts(count):
    """Contacts with room for `count` rows. What is zero for most is zero here: memory nobody writes to costs nothing."""
    return with_forces(empty_geometry(count))


def empty_geometry(count):
    """The same without rows of slip and forces."""
    return Contacts(
        pair=np.empty((count, 2), np.int64),
        shape=np.zeros((count, 2), np.int32),
        point=np.empty((count, 3)),
        normal=np.empty((count, 3)),
        gap=np.empty(count),
        feature=np.zeros(count, np.int32),
        slip=np.zeros((0, 3)),
        force=np.zeros((0, 3)),
        couple=np.zeros((0, 3)),
        kept=np.zeros((0, 0)),
    )


def with_forces(contacts):
    """Contacts with zeros for slip and forces, from those that `empty_geometry` made."""
    count = len(contacts.gap)
    # In one piece: large enough, memory that nobody writes to is not cleared either.
    slip, force, couple = np.zeros((3, count, 3))
    return contacts._replace(slip=slip, force=force, couple=couple, kept=np.zeros((count, 0)))

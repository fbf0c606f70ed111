"""How the partner of a triangulated particle lies in the axes of that particle, once for each pair of a list.

The *mesh* of a pair is its first shape if that is a triangulated particle, else its second. All lengths are in metres, in
the axes of the mesh's body about its centre; a corner of the mesh is at `SIZE` times its column of `Surfaces.corner`.
"""

from typing import NamedTuple

import numpy as np

from ..kernels import backend
from ..kernels.backend import func, kernel
from ..kernels.kinds import is_wall, turn_of
from ..kernels.vec import add, load, load4, quat_matrix, quat_multiply, rotate, scale, unrotate
from ..shapes.triangulated import is_mesh
from .ellipsoids import between
from .polyhedra import conjugate, wall_pose

# Columns of a pose. A point x of another mesh or of the mesh of a wall is at TURN x + WAY. A sphere has its centre at WAY;
# a plane or a cylinder has its origin there and its axis in the first three columns.
TURN = 0  # 9 columns, row by row, with the size factor of the partner
AXIS = 0
WAY = 9  # 3 columns
SIZE = 12  # size factor of the mesh
HALO = 13  # thickness of the halo of the mesh, and of its partner if that has one too
BALL = 14  # radius of a sphere, or of the ball around an ellipsoid; 0 otherwise
SIGN = 15  # +1 if the mesh is the first shape of the pair, -1 if it is the second
PLACE = 16  # 3 columns, centre of the mesh in the world
FACING = 19  # 4 columns, quaternion of the mesh's body
SENSE = 23  # +1 for a plane or shell, which vertices of the mesh touch, -1 for a solid cylinder; 0 otherwise
RADIUS = 24  # of a cylinder; 0 otherwise
HALF = 25  # half length of a cylinder
OVAL = 26  # 3 columns, semi-axes of an ellipsoid; 0 otherwise
TILT = 29  # 4 columns, quaternion that turns its own axes into those of the mesh
POWER = 33  # 2 columns, exponents of a superquadric, which has its semi-axes and turn where an ellipsoid has them; 0 otherwise
LEAN = 35  # from the middle of the way between the triangles to the middle between the bodies, towards the partner: those of a capsule are inside
COLUMNS = 36

# Columns of `who`.
OWN = 0  # the mesh, a row of Surfaces
TREE = 1  # its partner, a row of Surfaces; -1 if that has no triangles of its own
SHEET = 2  # its partner, a row of Meshes.triangle; -1 if that is no triangle of a wall


class Sheets(NamedTuple):
    """The triangles of walls; columns of Meshes."""

    vertex: np.ndarray
    triangle: np.ndarray
    normal: np.ndarray
    outline: np.ndarray


class Setting(NamedTuple):
    """All that is needed of listed pairs to measure them; the tables themselves would take long to compile into kernels."""

    pose: np.ndarray  # (p,36)
    who: np.ndarray  # (p,3) int32
    sheets: Sheets


@func
def mesh_first(p, pair, shapes):
    """The mesh of pair p, its partner, and whether they stand in the other order in the list."""
    a, b = pair[p, 0], pair[p, 1]
    swap = not is_mesh(shapes.kind[a])
    return (b, a, True) if swap else (a, b, False)


@func
def put_turn(pose, p, m):
    """Write a matrix into row p."""
    for i in range(3):
        pose[p, TURN + 3 * i] = m[i][0]
        pose[p, TURN + 3 * i + 1] = m[i][1]
        pose[p, TURN + 3 * i + 2] = m[i][2]


@func
def put_oval(pose, p, scale, size, turn):
    """Write the semi-axes and the turn of an ellipsoid into row p; a sphere has one length only, and nothing is written."""
    if size[1] > 0.0:
        for i in range(3):
            pose[p, OVAL + i] = scale * size[i]
        for i in range(4):
            pose[p, TILT + i] = turn[i]


@func
def scaled(s, m):
    """The number s times the matrix m."""
    return (scale(s, m[0]), scale(s, m[1]), scale(s, m[2]))


def pose_row(p, bodies, shapes, parts, surfaces, pair, box, edges, pose, who):
    """The pose of pair p."""
    s, t, swap = mesh_first(p, pair, shapes)
    row, other = shapes.part[t], shapes.body[t]
    size, own = bodies.scale[other], bodies.scale[shapes.body[s]]
    q = load4(bodies.orientation, shapes.body[s])
    mesh, tree, sheet, ball = surfaces.part[shapes.part[s]], surfaces.part[row], -1, 0.0
    halo, lean = own * surfaces.epsilon[mesh], 0.5 * own * surfaces.skin[mesh]
    sense, radius, half = 0.0, 0.0, 0.0
    pose[p, OVAL], pose[p, POWER], pose[p, POWER + 1] = 0.0, 0.0, 0.0
    if is_wall(shapes.kind[t]):
        turn, way = wall_pose(s, t, bodies, shapes, box)
        sheet = parts.feature[row]
        if sheet >= 0:
            put_turn(pose, p, scaled(size, quat_matrix(turn)))
        else:
            way = add(way, scale(size, rotate(turn, load(parts.offset, row))))
            axis = rotate(turn, load(parts.axis, row))
            pose[p, AXIS], pose[p, AXIS + 1], pose[p, AXIS + 2] = axis[0], axis[1], axis[2]
            radius, half = size * parts.size[row, 0], size * parts.size[row, 1]
            sense = parts.size[row, 2] if radius > 0.0 else 1.0
    else:
        way = unrotate(q, between(s, t, shapes.centre, edges))
        if tree >= 0:
            turn = quat_multiply(conjugate(q), load4(bodies.orientation, other))
            put_turn(pose, p, scaled(size, quat_matrix(turn)))
            halo += size * surfaces.epsilon[tree]
            lean -= 0.5 * size * surfaces.skin[tree]
        else:
            ball = shapes.radius[t]
            tilt = quat_multiply(conjugate(q), turn_of(t, bodies, shapes, parts))
            put_oval(pose, p, size, load(parts.size, row), tilt)
            pose[p, POWER], pose[p, POWER + 1] = parts.power[row, 0], parts.power[row, 1]
    who[p, OWN], who[p, TREE], who[p, SHEET] = mesh, tree, sheet
    for i in range(3):
        pose[p, WAY + i] = way[i]
        pose[p, PLACE + i] = shapes.centre[s, i]
    for i in range(4):
        pose[p, FACING + i] = q[i]
    pose[p, SIZE], pose[p, HALO], pose[p, BALL] = own, halo, ball
    pose[p, SENSE], pose[p, RADIUS], pose[p, HALF] = sense, radius, half
    pose[p, SIGN], pose[p, LEAN] = (-1.0 if swap else 1.0), lean


def surface_rows(tables, surfaces, pair):
    """Rows of Trees (c,2) of the shapes of pairs (c,2); -1 for what has no triangles of its own."""
    return surfaces.part[tables[1].part[pair]]


def least_length(tables, surfaces, pair, lengths):
    """The smaller of the lengths (m,) [m], one for each of Trees, of the shapes in each pair (c,2), at their size: (c,)."""
    bodies, shapes = tables[:2]
    row = surface_rows(tables, surfaces, pair)
    length = np.where(row >= 0, lengths[np.maximum(row, 0)] * bodies.scale[shapes.body[pair]], np.inf)
    return np.minimum(length[:, 0], length[:, 1])


def make_setting(tables, surfaces, pair, box):
    """The Setting of listed pairs (p,2), rows of Shapes, each with a triangulated particle."""
    bodies, shapes, parts, meshes = tables[:4]
    device = backend.DEVICE[-1]
    pose, who = device.empty((len(pair), COLUMNS), np.float64), device.empty((len(pair), 3), np.int32)
    edges = (*box.length.tolist(), *box.inverse.tolist())
    kernel(pose_row)(len(pair), bodies, shapes, parts, surfaces, pair, box, edges, pose, who)
    return Setting(pose, who, Sheets(meshes.vertex, meshes.triangle, meshes.normal, meshes.outline))

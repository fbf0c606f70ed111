"""A sphere's centre against one wall: plane, cylinder or triangle of a mesh.

Every function returns (status, distance, normal, feature):

    status     1 if this wall part has a contact point for the sphere, however far away; 0 if it has none
    distance   [units of c] from the centre to the wall; the gap is distance minus radius. Negative behind a plane,
               outside an endless hollow cylinder and inside a solid one
    normal     unit vector from the sphere to the wall
    feature    0 for planes, cylinders and the face of a triangle; 1 + k for side k, 4 + k for corner k of a triangle

The centre `c` is relative to the wall's own origin (for triangles: in the axes of their body, at size factor 1).
"""

import math

from ..kernels.backend import func, part
from ..kernels.vec import cross, dot, load, normalize, scale, sub

FACE = 0
SIDE = 1  # 1, 2, 3
CORNER = 4  # 4, 5, 6

# A corner speaks for all centres that it sees within this angle [rad] of its own region, and within this fraction of
# its edges. Rounding cannot then make all faces and edges of a flat corner deny a sphere that stands exactly over it,
# or several of them claim it. The normal is wrong by about this angle at most.
CORNER_ANGLE = 1e-8
CORNER_WIDTH = 1e-12

# Two neighbours whose planes differ by less than 0.09 rad count as one surface: cos(0.09). Above a fold both faces are
# local minima, and the second would begin with an overlap already there: a sphere in a drum of 360 facets gained 1 %
# of energy in one swing.
NEARLY_FLAT = 0.99595


@func
def sphere_plane(c, normal):
    """Against the plane through the origin; matter is on the side of -normal (unit)."""
    return 1, dot(c, normal), (-normal[0], -normal[1], -normal[2]), 0


@part
def sphere_cylinder(c, axis, radius, half_length, sense):
    """Against a cylinder about the origin along `axis` (unit); half_length may be infinite.

    sense +1: hollow, open at both ends. An endless shell is one-sided: the distance is negative outside, so that a
    centre pressed through is pushed back. A finite one is a thin sheet that ends at its rims and is felt from both
    sides, because spheres that left through an end may come to lie beside it.
    sense -1: solid with flat ends; the distance is negative inside.
    Only the nearest point counts, also where a sphere wider than the opening sits on the whole rim.
    """
    along = dot(c, axis)
    across = sub(c, scale(along, axis))
    from_axis = math.sqrt(dot(across, across))
    # On the axis every direction is as near as any other: take one at right angles to the axis.
    x_is_short = abs(axis[0]) < 0.6
    other = (1.0 if x_is_short else 0.0, 0.0 if x_is_short else 1.0, 0.0)
    some = normalize(cross(axis, other))
    outward = normalize(across)
    on_axis = from_axis <= 0.0
    radial = (
        some[0] if on_axis else outward[0],
        some[1] if on_axis else outward[1],
        some[2] if on_axis else outward[2],
    )
    up = 1.0 if along >= 0.0 else -1.0
    beyond_end = abs(along) - half_length  # -inf for an endless cylinder
    past_end = max(beyond_end, 0.0)
    to_shell = radius - from_axis

    # (r, a): the way to the nearest point, along radial and along the axis away from the middle.
    if sense > 0.0:
        r = to_shell
        a = -past_end
        distance = math.sqrt(r * r + a * a)
        endless = half_length == math.inf
        r = 1.0 if endless or distance <= 0.0 else r / distance
        a = 0.0 if distance <= 0.0 else a / distance
        distance = to_shell if endless else distance
    else:
        r = min(to_shell, 0.0)
        a = -past_end
        distance = math.sqrt(r * r + a * a)
        # Inside, the nearest of mantle and ends counts, and the wall pushes outward through it.
        outside = distance > 0.0
        divisor = distance if outside else 1.0
        mantle = -to_shell >= beyond_end
        r = r / divisor if outside else (-1.0 if mantle else 0.0)
        a = a / divisor if outside else (0.0 if mantle else -1.0)
        distance = distance if outside else max(-to_shell, beyond_end)
    a = a * up
    normal = (
        r * radial[0] + a * axis[0],
        r * radial[1] + a * axis[1],
        r * radial[2] + a * axis[2],
    )
    # Close to the axis, radial has lost digits and is not quite at right angles to it.
    return 1, distance, normalize(normal), 0


# Triangles. Contact points of a sphere with a mesh are the local minima of the distance over the union of its
# triangles. Each is reported by exactly one triangle: a face by itself, an edge or a corner by its owner. All
# triangles that share an edge or a corner take the same decision about it from the same numbers, bit for bit.


@func
def height_over_side(c, meshes, t, k):
    """How far c lies on the inner side of side k of triangle t [m]."""
    low = load(meshes.vertex, meshes.edge[meshes.side[t, k], 0])
    v = sub(c, low)
    return v[0] * meshes.inward[t, k, 0] + v[1] * meshes.inward[t, k, 1] + v[2] * meshes.inward[t, k, 2]


@part
def at_corner(c, meshes, v):
    """Whether vertex v is nearer to c than all points around it: no edge leads towards c."""
    corner = load(meshes.vertex, v)
    w = sub(c, corner)
    nearest = True
    for row in range(meshes.vertex_start[v], meshes.vertex_start[v + 1]):
        e = meshes.vertex_edge[row]
        low = meshes.edge[e, 0]
        far = meshes.edge[e, 1] if low == v else low
        edge = sub(load(meshes.vertex, far), corner)
        square = dot(edge, edge)
        nearest = nearest and dot(w, edge) <= CORNER_ANGLE * math.sqrt(dot(w, w) * square) + CORNER_WIDTH * square
    return nearest


@func
def near_corner(c, corner, a, b):
    """Whether neither of the edges from corner to a and to b leads towards c: a cheap test before at_corner.

    It never denies what at_corner grants, because 2 |w| |edge| <= |w|^2 + |edge|^2.
    """
    w = sub(c, corner)
    first = sub(a, corner)
    second = sub(b, corner)
    square = dot(w, w)
    return dot(w, first) <= CORNER_ANGLE * (square + dot(first, first)) and dot(w, second) <= CORNER_ANGLE * (
        square + dot(second, second)
    )


@part
def over_face(c, meshes, t):
    """Whether c stands over the inside of triangle t, and no corner of t speaks for c."""
    for k in range(3):
        if not height_over_side(c, meshes, t, k) > 0.0:
            return False
    for k in range(3):
        v = meshes.triangle[t, k]
        corner = load(meshes.vertex, v)
        a = load(meshes.vertex, meshes.triangle[t, (k + 1) % 3])
        b = load(meshes.vertex, meshes.triangle[t, (k + 2) % 3])
        if near_corner(c, corner, a, b) and at_corner(c, meshes, v):
            return False
    return True


@func
def over_plane(c, meshes, t):
    """Signed distance of c from the plane of triangle t."""
    return dot(sub(c, load(meshes.vertex, meshes.triangle[t, 0])), load(meshes.normal, t))


@part
def yields(c, meshes, t, distance):
    """Whether a neighbour of nearly the same plane is nearer to c and also under it.

    In the fold of two nearly flat neighbours both faces are local minima. One of them is enough, or a sphere that
    rolls across would be pushed twice; the nearer one stays, so that the distance is continuous.
    """
    for k in range(3):
        e = meshes.side[t, k]
        for row in range(meshes.edge_start[e], meshes.edge_start[e + 1]):
            u = meshes.edge_side[row, 0]
            j = meshes.edge_side[row, 1]
            if u != t and height_over_side(c, meshes, u, j) > 0.0:
                turn = (
                    meshes.inward[t, k, 0] * meshes.inward[u, j, 0]
                    + meshes.inward[t, k, 1] * meshes.inward[u, j, 1]
                    + meshes.inward[t, k, 2] * meshes.inward[u, j, 2]
                )
                other = abs(over_plane(c, meshes, u))
                nearer = other < distance or (other == distance and u < t)
                if turn < -NEARLY_FLAT and nearer and over_face(c, meshes, u):
                    return True
    return False


@part
def on_edge(c, meshes, e):
    """Whether the nearest point of all triangles at edge e lies on the edge, between its corners."""
    low = load(meshes.vertex, meshes.edge[e, 0])
    high = load(meshes.vertex, meshes.edge[e, 1])
    edge = sub(high, low)
    if not (dot(sub(c, low), edge) > 0.0 and dot(sub(c, high), edge) < 0.0):
        return False
    for row in range(meshes.edge_start[e], meshes.edge_start[e + 1]):
        if height_over_side(c, meshes, meshes.edge_side[row, 0], meshes.edge_side[row, 1]) > 0.0:
            return False
    for k in range(2):
        corner = load(meshes.vertex, meshes.edge[e, k])
        other = load(meshes.vertex, meshes.edge[e, 1 - k])
        if near_corner(c, corner, other, other) and at_corner(c, meshes, meshes.edge[e, k]):
            return False
    return True


@func
def towards(c, point, fallback):
    """Distance and direction from c to a point; if they coincide, 0 and the direction opposite to fallback."""
    v = sub(point, c)
    distance = math.sqrt(dot(v, v))
    apart = distance > 0.0
    inverse = 1.0 / (distance if apart else 1.0)
    normal = (
        inverse * v[0] if apart else -fallback[0],
        inverse * v[1] if apart else -fallback[1],
        inverse * v[2] if apart else -fallback[2],
    )
    return distance, normal


@part
def sphere_triangle(c, meshes, t):
    """Against triangle t of a mesh wall, from either side; c in the axes of the mesh at size factor 1.

    A triangle reports at most one contact: its face, one of the edges it owns or one of the corners it owns.
    """
    face_normal = load(meshes.normal, t)
    if over_face(c, meshes, t):
        signed = over_plane(c, meshes, t)
        distance = abs(signed)
        side = -1.0 if signed >= 0.0 else 1.0
        status = 0 if yields(c, meshes, t, distance) else 1
        return status, distance, scale(side, face_normal), FACE
    for k in range(3):
        e = meshes.side[t, k]
        if meshes.edge_owner[e] == t and height_over_side(c, meshes, t, k) <= 0.0 and on_edge(c, meshes, e):
            low = load(meshes.vertex, meshes.edge[e, 0])
            edge = sub(load(meshes.vertex, meshes.edge[e, 1]), low)
            u = dot(sub(c, low), edge) / dot(edge, edge)
            point = (low[0] + u * edge[0], low[1] + u * edge[1], low[2] + u * edge[2])
            distance, normal = towards(c, point, face_normal)
            return 1, distance, normal, SIDE + k
    for k in range(3):
        v = meshes.triangle[t, k]
        if meshes.vertex_owner[v] == t and at_corner(c, meshes, v):
            distance, normal = towards(c, load(meshes.vertex, v), face_normal)
            return 1, distance, normal, CORNER + k
    return 0, 0.0, (0.0, 0.0, 0.0), FACE

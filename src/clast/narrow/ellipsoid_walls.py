"""An ellipsoid against one wall: plane or triangle of a mesh; cylinders are in ellipsoid_cylinder.py.

Every function returns (status, gap, normal, feature):

    status     1 if this wall part has a contact point for the ellipsoid, however far away; 0 if it has none
    gap        [units of c] signed distance of the surfaces, negative when overlapping
    normal     unit vector from the ellipsoid to the wall
    feature    0 for planes, cylinders and the face of a triangle; 1 + k for side k, 4 + k for corner k of a triangle

The centre `c` is relative to the wall's own origin (for triangles: in the axes of their body), the unit quaternion `q`
turns the ellipsoid's own axes into those of the wall, `size` are its semi-axes; all at the wall's size factor 1. The
ellipsoid's own point of contact is c + M n / h(n), see `support`.

The gap is the greatest of n.(x - c) - h(n) over all n that the touched feature x allows: all unit n for a corner, those
at right angles to an edge, one for a face. For ellipsoids outside, and for overlaps up to the smallest radius of
curvature, this is the signed distance, and contacts with a mesh are the local minima of it over the union of triangles.
Deeper in, where a needle pierces a wall, it is the depth through that feature.
"""

import math

from ..kernels.backend import func
from ..kernels.vec import add, dot, load, matrix_vector, norm, scale, sub
from ..shapes.ellipsoid_form import least_curvature, own_axes
from .ellipsoid_point import foot_on_plane, greatest_radius, nearest_in_shadow, nearest_in_space, stretched, support
from .sphere_walls import (
    CORNER,
    CORNER_ANGLE,
    CORNER_WIDTH,
    FACE,
    NEARLY_FLAT,
    SIDE,
    at_corner,
    height_over_side,
    over_plane,
)

# Deep in a flat wall the normal at a corner is not that of the wall, and near the smallest radius of curvature it is lost
# to rounding. There a corner speaks for ellipsoids that stand over it within this fraction of their size.
STANDS_ON = 1e-11
ARC_SAMPLES = 8  # parts of a half turn about an edge in which a way out of a deep overlap is sought


@func
def ellipsoid_plane(c, q, size, normal):
    """Against the plane through the origin; matter is on the side of -normal (unit)."""
    u = stretched(own_axes(q), size, normal)
    return 1, dot(c, normal) - math.sqrt(dot(u, u)), (-normal[0], -normal[1], -normal[2]), 0


@func
def face_foot(c, axes, size, meshes, t):
    """Against the whole plane of triangle t, from the side of the centre: gap, foot and unit normal towards it."""
    signed = over_plane(c, meshes, t)
    n = scale(-1.0 if signed >= 0.0 else 1.0, load(meshes.normal, t))
    gap, foot = foot_on_plane(c, axes, size, n, abs(signed))
    return gap, foot, n


@func
def corner_contact(c, axes, size, meshes, v):
    """Whether vertex v has a contact, its gap and normal. All triangles around it get the same answer, bit for bit."""
    corner = load(meshes.vertex, v)
    d = sub(corner, c)
    gap, n = nearest_in_space(d, axes, size)
    # A sphere with this centre sees the corner as the ellipsoid does.
    if at_corner(sub(corner, scale(norm(d), n)), meshes, v):
        return True, gap, n
    if gap < 0.0:
        deep, foot, normal = face_foot(c, axes, size, meshes, meshes.vertex_owner[v])
        if deep < -0.5 * least_curvature(size):
            off = sub(foot, corner)
            most = STANDS_ON * max(size[0], size[1], size[2])
            if dot(off, off) <= most * most:
                return True, deep, normal
    return False, gap, n


@func
def near_corner(foot, slack, corner, a, b):
    """Whether the foot is so near to the corner that it may speak: a cheap test before corner_contact."""
    w = sub(foot, corner)
    first = sub(a, corner)
    second = sub(b, corner)
    return dot(w, first) <= (slack + CORNER_WIDTH * norm(first)) * norm(first) and dot(w, second) <= (
        slack + CORNER_WIDTH * norm(second)
    ) * norm(second)


@func
def corner_slack(size, gap):
    """How far a foot moves at most while the normal turns by the angle within which a corner speaks; generous."""
    return 4.0 * CORNER_ANGLE * (greatest_radius(size) + abs(gap))


@func
def claims_face(foot, gap, c, axes, size, meshes, t):
    """Whether the foot on the plane of triangle t lies inside it, and no corner of t speaks."""
    for k in range(3):
        if not height_over_side(foot, meshes, t, k) > 0.0:
            return False
    slack = corner_slack(size, gap)
    for k in range(3):
        v = meshes.triangle[t, k]
        corner = load(meshes.vertex, v)
        a = load(meshes.vertex, meshes.triangle[t, (k + 1) % 3])
        b = load(meshes.vertex, meshes.triangle[t, (k + 2) % 3])
        if near_corner(foot, slack, corner, a, b):
            speaks, _, _ = corner_contact(c, axes, size, meshes, v)
            if speaks:
                return False
    return True


@func
def yields_face(gap, c, axes, size, meshes, t):
    """Whether a neighbour of nearly the same plane is nearer and also under the ellipsoid; see `walls.yields`."""
    for k in range(3):
        e = meshes.side[t, k]
        for row in range(meshes.edge_start[e], meshes.edge_start[e + 1]):
            u = meshes.edge_side[row, 0]
            j = meshes.edge_side[row, 1]
            turn = dot(inward(meshes, t, k), inward(meshes, u, j))
            if u != t and turn < -NEARLY_FLAT:
                other, foot, _ = face_foot(c, axes, size, meshes, u)
                nearer = other < gap or (other == gap and u < t)
                if nearer and claims_face(foot, other, c, axes, size, meshes, u):
                    return True
    return False


@func
def inward(meshes, t, k):
    """Unit vector in the plane of triangle t, at right angles to side k, into the triangle."""
    return (meshes.inward[t, k, 0], meshes.inward[t, k, 1], meshes.inward[t, k, 2])


@func
def edge_normal(c, axes, size, meshes, e):
    """Gap and normal against the straight line of edge e, among all n at right angles to it."""
    t, k = meshes.edge_side[meshes.edge_start[e], 0], meshes.edge_side[meshes.edge_start[e], 1]
    low = load(meshes.vertex, meshes.edge[e, 0])
    return nearest_in_shadow(sub(low, c), axes, size, inward(meshes, t, k), load(meshes.normal, t))


@func
def rises_from_edge(n, meshes, e):
    """Whether no triangle at edge e leads from it against n, that is, towards the ellipsoid."""
    for row in range(meshes.edge_start[e], meshes.edge_start[e + 1]):
        if dot(n, inward(meshes, meshes.edge_side[row, 0], meshes.edge_side[row, 1])) < -CORNER_ANGLE:
            return False
    return True


@func
def along_arc(angle, d, axes, size, p, q):
    """n.d - h(n) and its slope for the unit n at this angle from p towards q, and n."""
    cosine, sine = math.cos(angle), math.sin(angle)
    n = add(scale(cosine, p), scale(sine, q))
    h, arm = support(axes, size, n)
    return dot(n, d) - h, dot(sub(d, arm), sub(scale(cosine, q), scale(sine, p))), n


@func
def outward_normal(c, axes, size, meshes, e):
    """Whether edge e can push an ellipsoid that its triangles have cut deep into, and the shortest way it does so.

    Among the normals from which all triangles at the edge lead away, those with a local maximum of the gap.
    """
    t, k = meshes.edge_side[meshes.edge_start[e], 0], meshes.edge_side[meshes.edge_start[e], 1]
    p, q = inward(meshes, t, k), load(meshes.normal, t)
    d = sub(load(meshes.vertex, meshes.edge[e, 0]), c)
    best = -math.inf
    normal = p
    before, low = 0.0, 0.0
    for step in range(ARC_SAMPLES + 1):
        high = math.pi * (step / ARC_SAMPLES - 0.5)
        gap, slope, n = along_arc(high, d, axes, size, p, q)
        if step > 0 and before > 0.0 and slope < 0.0:
            left, right = low, high
            for _ in range(30):
                middle = 0.5 * (left + right)
                gap, there, n = along_arc(middle, d, axes, size, p, q)
                if there > 0.0:
                    left = middle
                else:
                    right = middle
            if gap > best and rises_from_edge(n, meshes, e):
                best = gap
                normal = n
        before = slope
        low = high
    return best > -math.inf, best, normal


@func
def edge_parameter(gap, n, c, axes, size, meshes, e):
    """Where the contact with normal n lies on edge e: 0 at its lower, 1 at its higher vertex.

    Below the outermost point of the ellipsoid, or at the end of the chord if the line leaves the ellipsoid before.
    """
    low = load(meshes.vertex, meshes.edge[e, 0])
    edge = sub(load(meshes.vertex, meshes.edge[e, 1]), low)
    d = sub(low, c)
    _, arm = support(axes, size, n)
    place = dot(sub(arm, d), edge) / dot(edge, edge)
    if gap < 0.0:
        p, u = matrix_vector(axes, d), matrix_vector(axes, edge)
        p = (p[0] / size[0], p[1] / size[1], p[2] / size[2])
        u = (u[0] / size[0], u[1] / size[1], u[2] / size[2])
        square = dot(u, u)
        middle = -dot(p, u) / square
        foot = add(p, scale(middle, u))
        half = math.sqrt(max(1.0 - dot(foot, foot), 0.0) / square)
        place = min(max(place, middle - half), middle + half)
    return place


@func
def edge_contact(c, axes, size, meshes, e):
    """Whether edge e has a contact between its corners, its gap and normal."""
    best = -math.inf
    fallback = (0.0, 0.0, 0.0)
    for row in range(meshes.edge_start[e], meshes.edge_start[e + 1]):
        u = meshes.edge_side[row, 0]
        gap, foot, n = face_foot(c, axes, size, meshes, u)
        if height_over_side(foot, meshes, u, meshes.edge_side[row, 1]) > 0.0:
            return False, gap, n
        if gap > best and rises_from_edge(n, meshes, e):
            best = gap
            fallback = n
    gap, n = edge_normal(c, axes, size, meshes, e)
    if not rises_from_edge(n, meshes, e):
        # Deep inside, the shortest way out leads through the wall.
        found, gap, n = outward_normal(c, axes, size, meshes, e)
        if not found:
            if not best > -math.inf:
                return False, gap, n
            gap = best
            n = fallback
    place = edge_parameter(gap, n, c, axes, size, meshes, e)
    if not (place > 0.0 and place < 1.0):
        return False, gap, n
    low = load(meshes.vertex, meshes.edge[e, 0])
    edge = sub(load(meshes.vertex, meshes.edge[e, 1]), low)
    foot = add(low, scale(place, edge))
    slack = corner_slack(size, gap)
    for k in range(2):
        corner = load(meshes.vertex, meshes.edge[e, k])
        other = load(meshes.vertex, meshes.edge[e, 1 - k])
        if near_corner(foot, slack, corner, other, other):
            speaks, _, _ = corner_contact(c, axes, size, meshes, meshes.edge[e, k])
            if speaks:
                return False, gap, n
    return True, gap, n


@func
def shorter_way_out(gap, n, c, axes, size, meshes, t):
    """Of an ellipsoid deep in triangle t: the gap, normal and feature of the way out through an edge, if it is shorter."""
    feature = FACE
    for k in range(3):
        e = meshes.side[t, k]
        found, other, m = outward_normal(c, axes, size, meshes, e)
        if found and other > gap:
            place = edge_parameter(other, m, c, axes, size, meshes, e)
            if place > 0.0 and place < 1.0:
                gap = other
                n = m
                feature = SIDE + k
    return gap, n, feature


@func
def triangle_bound(c, q, size, meshes, t):
    """A number that no gap between the ellipsoid and triangle t is below: a cheap test before `ellipsoid_triangle`.

    The greatest distance along the normal and along the three directions out of the sides.
    """
    axes = own_axes(q)
    u = stretched(axes, size, load(meshes.normal, t))
    bound = abs(over_plane(c, meshes, t)) - math.sqrt(dot(u, u))
    for k in range(3):
        u = stretched(axes, size, inward(meshes, t, k))
        bound = max(bound, -height_over_side(c, meshes, t, k) - math.sqrt(dot(u, u)))
    return bound


@func
def ellipsoid_triangle(c, q, size, meshes, t):
    """Against triangle t of a mesh wall, from either side; c and q in the axes of the mesh at size factor 1.

    A triangle reports at most one contact: its face, one of the edges it owns or one of the corners it owns.
    """
    axes = own_axes(q)
    gap, foot, n = face_foot(c, axes, size, meshes, t)
    if claims_face(foot, gap, c, axes, size, meshes, t):
        status = 0 if yields_face(gap, c, axes, size, meshes, t) else 1
        feature = FACE
        if status == 1 and gap < -least_curvature(size):
            gap, n, feature = shorter_way_out(gap, n, c, axes, size, meshes, t)
        return status, gap, n, feature
    for k in range(3):
        e = meshes.side[t, k]
        if meshes.edge_owner[e] == t and height_over_side(foot, meshes, t, k) <= 0.0:
            speaks, gap, n = edge_contact(c, axes, size, meshes, e)
            if speaks:
                return 1, gap, n, SIDE + k
    for k in range(3):
        v = meshes.triangle[t, k]
        if meshes.vertex_owner[v] == t:
            speaks, gap, n = corner_contact(c, axes, size, meshes, v)
            if speaks:
                return 1, gap, n, CORNER + k
    return 0, 0.0, (0.0, 0.0, 0.0), FACE

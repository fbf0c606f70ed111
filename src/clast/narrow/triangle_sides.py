"""Which triangle of a mesh wall a corner of a polyhedron stands over, and whether it came through the mesh.

Points are in the axes of the mesh, at its size factor 1: p a corner of the polyhedron, c its centre. Every corner is over
one triangle; all triangles that share an edge or a vertex decide about it from the same numbers, bit for bit. Only in a
valley that is no longer nearly flat a corner is over both faces, as it would be over two planes.
"""

from ..kernels.backend import func, part
from ..kernels.vec import add, dot, load, norm, scale, sub
from .sphere_walls import NEARLY_FLAT, height_over_side, over_plane

WALK = 24  # triangles that are looked at in search of the place where a corner came through the sheet


@func
def inward(meshes, t, j):
    """Unit vector in the plane of triangle t, at right angles to side j, into the triangle."""
    return (meshes.inward[t, j, 0], meshes.inward[t, j, 1], meshes.inward[t, j, 2])


@func
def neighbour(meshes, e, t):
    """The row of edge_side that is not triangle t, of an edge with two triangles."""
    row = meshes.edge_start[e]
    return row if meshes.edge_side[row, 0] != t else row + 1


@func
def sharing(meshes, e):
    """How many triangles have edge e."""
    return meshes.edge_start[e + 1] - meshes.edge_start[e]


@func
def side_of(c, meshes, t):
    """+1 if c is on the side of the normal of triangle t, else -1."""
    return 1.0 if over_plane(c, meshes, t) >= 0.0 else -1.0


@func
def stands_on(p, meshes, v, tolerance):
    """Whether p is above or below vertex v, seen along the normal of its owner."""
    w = sub(p, load(meshes.vertex, v))
    n = load(meshes.normal, meshes.vertex_owner[v])
    off = sub(w, scale(dot(w, n), n))
    return dot(off, off) <= tolerance * tolerance


@func
def in_valley(p, c, meshes, t, j, u):
    """Whether p, beyond side j of t, lies behind the neighbour u that rises there, and c before it."""
    n = load(meshes.normal, u)
    facing = 1.0 if dot(inward(meshes, t, j), n) >= 0.0 else -1.0
    return facing * over_plane(c, meshes, u) > 0.0 and facing * over_plane(p, meshes, u) <= 0.0


@func
def hidden(c, meshes, t, j, u):
    """Whether c lies behind the neighbour u that falls off beyond side j of t."""
    facing = dot(inward(meshes, t, j), load(meshes.normal, u)) < 0.0
    return (over_plane(c, meshes, u) > 0.0) != facing


@func
def on_own_side(p, meshes, e, t):
    """Whether p is on the side of t of the plane that halves the angle between the two triangles at edge e."""
    row = meshes.edge_start[e]
    one, two = meshes.edge_side[row, 0], meshes.edge_side[row + 1, 0]
    a = inward(meshes, one, meshes.edge_side[row, 1])
    b = inward(meshes, two, meshes.edge_side[row + 1, 1])
    first = dot(sub(p, load(meshes.vertex, meshes.edge[e, 0])), sub(a, b)) >= 0.0
    return first == (one == t)


@part
def over_inside(p, c, behind, meshes, t, side, tolerance):
    """Whether triangle t is the one that p stands over; behind: p is on the other side of t than c."""
    for j in range(3):
        v = meshes.triangle[t, j]
        if stands_on(p, meshes, v, tolerance):
            return meshes.vertex_owner[v] == t
    n = load(meshes.normal, t)
    for j in range(3):
        e = meshes.side[t, j]
        inner = height_over_side(p, meshes, t, j) >= 0.0
        if sharing(meshes, e) == 2:
            row = neighbour(meshes, e, t)
            u, i = meshes.edge_side[row, 0], meshes.edge_side[row, 1]
            other = inward(meshes, u, i)
            sharp = dot(inward(meshes, t, j), other) > -NEARLY_FLAT
            if sharp and side * dot(other, n) > 0.0:
                inner = inner or (behind and in_valley(p, c, meshes, t, j, u))
            elif not (sharp and hidden(c, meshes, t, j, u)):
                # Behind a ridge the nearer face counts, if both can be reached.
                inner = on_own_side(p, meshes, e, t) and (inner or behind or not sharp)
        if not inner:
            return False
    return True


@func
def turned_over(meshes, t, j, side, u, i):
    """Which side of the neighbour u continues side `side` of triangle t: +1 that of its normal, else -1."""
    n = scale(side, load(meshes.normal, t))
    m = load(meshes.normal, u)
    one, two = inward(meshes, t, j), inward(meshes, u, i)
    return 1.0 if dot(n, two) * dot(m, one) - dot(one, two) * dot(n, m) >= 0.0 else -1.0


@func
def ends_beside(x, meshes, u, j, entry, tolerance):
    """Whether x lies beyond a side of triangle u, other than j and entry, where the sheet ends."""
    for s in range(3):
        alone = s != j and s != entry and sharing(meshes, meshes.side[u, s]) == 1
        if alone and height_over_side(x, meshes, u, s) < -tolerance:
            return True
    return False


@part
def came_through(p, c, depth, meshes, t, side, tolerance):
    """Whether the straight way from c to p leads through the sheet that continues triangle t, and p is not nearer to it there.

    From t the search goes across the side beyond which the way meets the plane, until it meets the inside of a triangle.
    depth: of p behind t. Nothing behind the sheet is farther from it than from the place where the way leads through.
    """
    u, facing, entry = t, side, -1
    for _ in range(WALK):
        before, after = facing * over_plane(c, meshes, u), facing * over_plane(p, meshes, u)
        if not before - after > 0.0:
            return False
        x = add(c, scale(before / (before - after), sub(p, c)))
        worst, j = -tolerance, -1
        for s in range(3):
            height = height_over_side(x, meshes, u, s)
            if s != entry and height < worst:
                worst, j = height, s
        if j < 0:
            if before < -tolerance or after > tolerance:
                return False  # beyond p, or behind c
            # Back where the search came from: the way passes both faces by.
            if entry >= 0 and height_over_side(x, meshes, u, entry) < -tolerance:
                return False
            return depth <= norm(sub(p, x)) + tolerance
        e = meshes.side[u, j]
        if sharing(meshes, e) != 2:
            return sharing(meshes, e) > 2
        row = neighbour(meshes, e, u)
        w, i = meshes.edge_side[row, 0], meshes.edge_side[row, 1]
        one, two = inward(meshes, u, j), inward(meshes, w, i)
        if dot(one, two) > -NEARLY_FLAT and facing * dot(two, load(meshes.normal, u)) > 0.0:
            if ends_beside(x, meshes, u, j, entry, tolerance) or not in_valley(p, c, meshes, u, j, w):
                return False
        facing = turned_over(meshes, u, j, facing, w, i)
        u, entry = w, i
    return False

"""What is known of the particles of the pose attack without the package's own geometry: how far they reach, and which points are inside.

A particle is a list of convex pieces, each a function of directions (k,3) in its own axes that tells how far it reaches along them (k,) [m], and a
function of points (k,3) that tells which are inside, (k,) bool. Two convex pieces have a signed distance, the greatest room along any direction.
"""

import numpy as np

MANY, FEW = 20_000, 500  # poses at a time


def ball(centre, radius):
    centre = np.asarray(centre, float)
    return lambda n: n @ centre + radius, lambda x: np.linalg.norm(x - centre, axis=1) < radius


def ellipsoid(axes):
    return lambda n: np.linalg.norm(n * axes, axis=1), lambda x: np.linalg.norm(x / axes, axis=1) < 1.0


def box(half):
    return lambda n: np.abs(n) @ half, lambda x: (np.abs(x) < half).all(1)


def norm_of(x, y, p):
    return (x**p + y**p) ** (1.0 / p)


def superquadric(axes, e):
    """The unit ball of a norm of norms, and how far it reaches: the dual norm, with the conjugate exponents."""

    def reach(n):
        x, y, z = np.abs(n * axes).T
        return norm_of(norm_of(x, y, 2.0 / (2.0 - e[1])), z, 2.0 / (2.0 - e[0]))

    def inside(p):
        x, y, z = np.abs(p / axes).T
        return norm_of(norm_of(x, y, 2.0 / e[1]), z, 2.0 / e[0]) < 1.0

    return reach, inside


def surface(vertices, triangles, halo):
    """The hull of a closed surface with a halo around it; inside is what sees it all around (Van Oosterom and Strackee 1983)."""
    corners = [vertices[triangles[:, k]] for k in range(3)]

    def inside(x):
        a, b, c = (one[None] - x[:, None] for one in corners)
        la, lb, lc = (np.linalg.norm(v, axis=2) for v in (a, b, c))
        triple = np.einsum("kti,kti->kt", a, np.cross(b, c))
        ab, bc, ca = (np.einsum("kti,kti->kt", *pair) for pair in ((a, b), (b, c), (c, a)))
        return np.abs(np.arctan2(triple, la * lb * lc + ab * lc + bc * la + ca * lb).sum(1)) > np.pi

    return lambda n: (n @ vertices.T).max(1) + halo, inside


def pieces(shape):
    """The convex pieces of a particle, or of a triangulated one its hull, and whether it is triangulated."""
    name = type(shape).__name__
    if name == "Sphere":
        return [ball((0, 0, 0), shape.radius)], False
    if name == "Clump":
        return [ball(*one) for one in zip(shape.centres, shape.radii, strict=True)], False
    if name == "Ellipsoid":
        return [ellipsoid(shape.axes)], False
    if name == "Polyhedron":
        return [box(np.abs(shape.surface()[0]).max(0))], False
    if name == "Superquadric":
        return [superquadric(shape.axes, (shape.e1, shape.e2))], False
    return [surface(shape.vertices, shape.triangles, shape.epsilon)], True


def reaches(shape, n):
    """How far the convex pieces of a particle reach along n (k,3) in its own axes, of a triangulated one its triangles: (pieces, k) [m]."""
    if not hasattr(shape, "triangles"):
        return np.array([reach(n) for reach, _ in pieces(shape)[0]])
    heights = n @ shape.vertices.T
    return heights[:, shape.triangles].max(2).T + shape.epsilon


def misses(shapes, found, way, turns):
    """By how much the gap told differs from the room along the normal told of any two pieces, at the least: (k,) [m]."""
    off = np.empty(len(way))
    for begin in range(0, len(way), FEW):
        some = slice(begin, begin + FEW)
        n = found.normal[some]
        mine, its = (
            reaches(shape, turned(turn[some], sign * n))
            for shape, turn, sign in zip(shapes, turns, (1, -1), strict=True)
        )
        wanted = np.einsum("ki,ki->k", n, way[some]) - found.gap[some]
        off[some] = np.abs(wanted - mine[:, None] - its[None]).reshape(-1, len(n)).min(0)
    return off


def turned(turns, n):
    """Vectors n (k,3) in the axes of bodies whose turns are matrices (k,3,3)."""
    return np.einsum("kij,ki->kj", turns, n)


def rooms(one, two, n, way, turns):
    """How much room along n (k,3) the two have, way (k,3) apart: of each piece of one with each of two, (pieces, k) [m]."""
    along = np.einsum("ki,ki->k", n, way)
    mine = [reach(turned(turns[0], n)) for reach, _ in one]
    its = [reach(-turned(turns[1], n)) for reach, _ in two]
    return np.array([along - a - b for a in mine for b in its])


def wrong_gaps(shapes, found, way, turns, random):
    """Which gaps (k,) are not those of the two: {what: (k,) bool}. way (k,3) from the first to the second; turns: matrices (k,3,3) of both."""
    (one, bare_one), (two, bare_two) = map(pieces, shapes)
    most = rooms(one, two, found.normal, way, turns)
    for _ in range(6):
        n = random.normal(size=way.shape) + 4.0 * random.random() * found.normal
        most = np.maximum(most, rooms(one, two, n / np.linalg.norm(n, axis=1)[:, None], way, turns))
    least = most.min(0)  # nobody is nearer than the nearest pieces
    phantom, lost = found.gap < least - 1e-9, misses(shapes, found, way, turns) > 2e-9
    if bare_one or bare_two:
        # Hulls are in each other before surfaces are, and surfaces that cross have no distance.
        phantom, lost = phantom & (least > 0.0), lost & (found.gap > 0.0)
    # Where a centre is inside the other there is no gap.
    for inside, x in ((one, turned(turns[0], way)), (two, turned(turns[1], -way))):
        held = np.zeros(len(way), bool)
        for begin in range(0, len(way), MANY):
            some = slice(begin, begin + MANY)
            held[some] = np.any([within(x[some]) for _, within in inside], axis=0)
        lost |= held & (found.gap > 0.0)
    return {"phantom depth": phantom, "another gap than there is": lost}

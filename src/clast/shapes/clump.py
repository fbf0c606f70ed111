"""A rigid particle made of overlapping balls; its mass is that of their union."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..signatures import File, Floats, Numbers, Skin, Whole
from ..tables import Parts
from .fitting import closed_mesh, fit_balls, growth
from .polyhedron import Polyhedron
from .sphere import sphere_parts, sphere_surface
from .triangulated import Mesh

CONTAINED = 1e-12  # a ball that sticks out of another by less than this fraction is inside it
TOUCHING = 1e-9  # balls whose gap is less than this fraction of their radii hang together
NODES = 16  # of the quadrature between two heights where the shape of the slices changes


class Clump:
    """The union of balls with centres (k,3) and radii (k,) [m], as one rigid particle of uniform density.

    The particle's position is the centre of mass of the union; `origin` (3,) is that point in the coordinates of
    `centres`. Balls wholly inside another are left out.
    """

    wall = False
    mesh = None
    error: dict | None = None  # of a clump that was fitted to a mesh

    def __init__(self, centres: ArrayLike, radii: Numbers) -> None:
        centres = np.array(centres, dtype=float)
        radii = np.array(radii, dtype=float)
        if centres.ndim != 2 or centres.shape[1] != 3 or len(centres) == 0:
            raise ValueError(f"centres of a clump must have shape (k,3) with k > 0, got {centres.shape}")
        if radii.ndim == 0:
            radii = np.full(len(centres), float(radii))
        if radii.shape != (len(centres),):
            raise ValueError(f"a clump of {len(centres)} balls needs as many radii, got shape {radii.shape}")
        usual = (
            (np.abs(centres) < 1e30).all(axis=1) & (radii > 1e-30) & (radii < 1e30)
        )  # their fifth powers are numbers
        bad = np.flatnonzero(~usual)
        if len(bad):
            i = bad[0]
            raise ValueError(
                f"ball {i} of the clump needs a finite (1e-30 to 1e30 m) centre and radius > 0, got {centres[i].tolist()} and {radii[i]}"
            )
        refuse_separate(centres, radii)
        kept = exposed_balls(centres, radii)
        centres, radii = centres[kept], radii[kept]
        self.volume, self.origin, self.inertia = union_properties(centres, radii)
        self.centres = centres - self.origin
        self.radii = radii
        self.round = len(radii) == 1

    def __repr__(self):
        return f"Clump({len(self.radii)} balls, volume {self.volume:.6g} m^3)"

    @classmethod
    def fit(cls, mesh: Polyhedron | Mesh | File, *, spheres: Whole, inside: bool = False) -> "Clump":
        """At most so many balls in place of a closed mesh: a Mesh, a Polyhedron or the path of a mesh file.

        Each ball is the largest inside the mesh about its centre, and covers most of what those before it leave; where they would not hang together, they are moved
        apart evenly. Unless inside=True,
        all radii then grow by one length, so that the clump has the volume of the mesh to 1e-4. The same mesh gives the same clump.
        `error` tells how good it is: "volume", that of the clump over that of the mesh less one; "surface" and "mean" [m], the
        greatest and the mean distance of the mesh's surface from the balls; "grown" [m], how far balls may stick out.
        """
        vertices, triangles, volume = closed_mesh("Clump.fit", mesh)
        found, skin = fit_balls(vertices, triangles, spheres)
        for centres, radii in found:
            grown = 0.0 if inside else growth(centres, radii, volume)
            try:
                made = cls(centres, radii + grown)
                break
            except ValueError:
                continue
        else:
            raise ValueError(
                f"Clump.fit: {len(radii)} balls do not hang together in this mesh, whose walls are too thin for so few; give more spheres"
            )
        off = np.min(
            [np.linalg.norm(skin - c, axis=1) - r - grown for c, r in zip(centres, radii, strict=True)], axis=0
        )
        made.error = {"volume": float(made.volume / volume - 1.0), "surface": float(np.abs(off).max())}
        made.error |= {"mean": float(np.abs(off).mean()), "grown": float(grown)}
        return made

    def parts(self) -> Parts:
        """One sphere per ball, relative to the centre of mass."""
        return sphere_parts(self.centres, self.radii)

    def surface(self, extent: float | None = None) -> Skin:
        """Vertices (v,3) [m] and triangles (t,3) of all balls, also where they overlap."""
        return sphere_surface(self.centres, self.radii)


def distances(centres):
    """Distance of each centre from each other, (k,k)."""
    return np.linalg.norm(centres[:, None, :] - centres[None, :, :], axis=2)


def refuse_separate(centres, radii):
    """ValueError if the balls do not hang together."""
    from scipy.sparse.csgraph import connected_components

    reach = (radii[:, None] + radii[None, :]) * (1.0 + TOUCHING)
    count, group = connected_components(distances(centres) <= reach, directed=False)
    if count > 1:
        other = int(np.flatnonzero(group != group[0])[0])
        raise ValueError(
            f"the balls of the clump form {count} separate pieces: ball {other} at {centres[other].tolist()} with "
            f"radius {radii[other]} is not connected to ball 0. Let them overlap, or make one clump per piece"
        )


def exposed_balls(centres: Floats, radii: Floats) -> NDArray[np.intp]:
    """Rows of the balls that are not inside another one; of equal balls the first."""
    sticks_out = distances(centres) + radii[:, None] - radii[None, :]
    inside = sticks_out <= CONTAINED * radii[None, :]
    row = np.arange(len(radii))
    inside &= ~(inside.T & (row[:, None] <= row[None, :]))  # two equal balls lie in each other: the later one goes
    return np.flatnonzero(~inside.any(axis=1))


def union_properties(centres, radii):
    """Volume [m^3], centre of mass (3,) [m] and inertia tensor per mass about it (3,3) [m^2] of a union of balls.

    Slices at constant z are unions of discs, whose moments are exact sums over the exposed arcs (Green's theorem).
    The heights between two changes of the slices' shape are integrated by Gauss-Legendre quadrature in an angle,
    which removes the square roots at both ends.
    """
    origin, size = centres.mean(axis=0), radii.max()
    centres, radii = (centres - origin) / size, radii / size  # of order one, so that the moments keep their digits
    level = breakpoints(centres, radii)
    node, weight = np.polynomial.legendre.leggauss(NODES)
    angle = 0.5 * np.pi * (node + 1.0)
    low, high = level[:-1, None], level[1:, None]
    z = (0.5 * (low + high) - 0.5 * (high - low) * np.cos(angle)).reshape(-1)
    dz = (0.25 * np.pi * (high - low) * np.sin(angle) * weight).reshape(-1)
    area, x, y, xx, yy, xy = slice_moments(centres, radii, z)
    volume = dz @ area
    mean = np.array([dz @ x, dz @ y, dz @ (z * area)]) / volume
    second = np.empty((3, 3))
    second[0, 0], second[1, 1], second[2, 2] = dz @ xx, dz @ yy, dz @ (z * z * area)
    second[0, 1] = second[1, 0] = dz @ xy
    second[0, 2] = second[2, 0] = dz @ (z * x)
    second[1, 2] = second[2, 1] = dz @ (z * y)
    second = second / volume - np.outer(mean, mean)
    inertia = np.trace(second) * np.eye(3) - second
    return float(volume * size**3), origin + size * mean, inertia * size**2


def breakpoints(centres, radii):
    """Heights at which the outline of the slices changes, rising: tops, touching discs, points on three balls."""
    found = [centres + radii[:, None] * [0, 0, 1], centres - radii[:, None] * [0, 0, 1]]
    gap = distances(centres)
    touching = (gap < radii[:, None] + radii[None, :]) & (gap > 0.0)
    for i, j in np.argwhere(np.triu(touching, 1)):
        middle, axis, ring = circle(centres[i], radii[i], centres[j], radii[j])
        # The circle's own x and y, level and steepest; a level circle may take any direction.
        tilt = np.hypot(axis[0], axis[1])
        level = np.array([-axis[1], axis[0], 0.0]) / tilt if tilt > 0.0 else np.array([1.0, 0.0, 0.0])
        up = np.cross(axis, level)
        found += [middle[None] + ring * up, middle[None] - ring * up]
        # Where a third ball cuts the circle: seen along its axis, two circles in a plane.
        k = np.flatnonzero(touching[i] & touching[j])
        k = k[k > j]
        to = centres[k] - middle
        off = to @ axis
        flat = to - off[:, None] * axis
        far = np.linalg.norm(flat, axis=1)
        reach = radii[k] ** 2 - off**2
        with np.errstate(invalid="ignore", divide="ignore"):
            along = (far**2 + ring**2 - reach) / (2.0 * far)
            across = np.sqrt(ring**2 - along**2)
            e = flat / far[:, None]
        f = np.cross(axis, e)
        third = [middle + along[:, None] * e + s * across[:, None] * f for s in (1.0, -1.0)]
        found += [p[np.isfinite(p).all(axis=1)] for p in third]
    points = np.vstack(found)
    # What happens inside another ball does not show.
    depth = radii[None, :] - np.linalg.norm(points[:, None, :] - centres[None, :, :], axis=2)
    height = np.sort(points[~(depth > 1e-9).any(axis=1), 2])
    return height[np.concatenate([[True], np.diff(height) > 1e-12])]


def circle(a, r, b, s):
    """Centre, axis and radius of the circle in which the balls (a, r) and (b, s) cut each other."""
    axis = b - a
    d = np.linalg.norm(axis)
    axis = axis / d
    t = (d * d + r * r - s * s) / (2.0 * d)
    return a + t * axis, axis, np.sqrt(max(r * r - t * t, 0.0))


def slice_moments(centres, radii, z):
    """Area, first moments x, y and second moments xx, yy, xy of the union's slices at heights z (m,); (6,m)."""
    total = np.zeros((6, len(z)))
    for i in range(len(radii)):
        cut = np.flatnonzero(np.abs(z - centres[i, 2]) < radii[i])
        ring = np.sqrt(radii[i] ** 2 - (z[cut] - centres[i, 2]) ** 2)
        start, stop = exposed_arcs(i, centres, radii, z[cut], ring)
        moments = arc_moments(stop, centres[i], ring[:, None]) - arc_moments(start, centres[i], ring[:, None])
        total[:, cut] += moments.sum(axis=2)
    return total


def exposed_arcs(i, centres, radii, z, ring):
    """Arcs (m,g) of disc i's rim at heights z (m,) outside all other discs: start and stop angles, equal if empty."""
    full = 2.0 * np.pi
    gap = np.linalg.norm(centres - centres[i], axis=1)
    near = np.flatnonzero((gap < radii + radii[i]) & (np.arange(len(radii)) != i))
    to = centres[near, :2] - centres[i, :2]
    d = np.linalg.norm(to, axis=1)
    square = radii[near] ** 2 - (z[:, None] - centres[near, 2]) ** 2
    other = np.sqrt(np.maximum(square, 0.0))
    cover = square > 0.0
    inside = cover & (d + ring[:, None] <= other)
    apart = ~cover | (d >= ring[:, None] + other) | (d + other <= ring[:, None])
    with np.errstate(invalid="ignore", divide="ignore"):
        cosine = (d**2 + ring[:, None] ** 2 - other**2) / (2.0 * d * ring[:, None])
    half = np.arccos(np.clip(np.where(inside | apart, 0.0, cosine), -1.0, 1.0))
    half = np.where(inside, np.pi, np.where(apart, 0.0, half))
    begin = np.mod(np.arctan2(to[:, 1], to[:, 0]) - half, full)
    end = begin + 2.0 * half
    begin = np.where(inside, 0.0, begin)
    end = np.where(inside, full, np.where(apart, begin, end))
    # What runs past the full turn comes back at zero.
    edge = np.zeros((len(z), 1))
    begin = np.hstack([begin, np.zeros_like(begin), edge + full])
    end = np.hstack([np.minimum(end, full), np.maximum(end - full, 0.0), edge + full])
    order = np.argsort(begin, axis=1)
    begin, end = np.take_along_axis(begin, order, 1), np.take_along_axis(end, order, 1)
    covered = np.maximum.accumulate(np.hstack([edge, end[:, :-1]]), axis=1)
    return np.minimum(covered, begin), begin


def arc_moments(angle, centre, ring):
    """Boundary integrals from angle 0 to `angle` for area, x, y, xx, yy, xy of a disc; (6, ...)."""
    x, y, r = centre[0], centre[1], ring
    c, s = np.cos(angle), np.sin(angle)
    s2, s4 = np.sin(2.0 * angle), np.sin(4.0 * angle)
    # Integrals of powers of the cosine (c1..c4), of the sine (s1..s4) and of cosine^n sine (k1..k3).
    c1, c2, c3, c4 = s, angle / 2 + s2 / 4, s - s**3 / 3, 3 * angle / 8 + s2 / 4 + s4 / 32
    s1, s2, s3, s4 = -c, angle / 2 - s2 / 4, -c + c**3 / 3, 3 * angle / 8 - s2 / 4 + s4 / 32
    k1, k2, k3 = -(c**2) / 2, -(c**3) / 3, -(c**4) / 4
    first = x * x * c1 + 2 * x * r * c2 + r * r * c3
    return np.array(
        [
            0.5 * r * (x * c1 + y * s1 + r * angle),
            0.5 * r * first,
            0.5 * r * (y * y * s1 + 2 * y * r * s2 + r * r * s3),
            r / 3 * (x**3 * c1 + 3 * x * x * r * c2 + 3 * x * r * r * c3 + r**3 * c4),
            r / 3 * (y**3 * s1 + 3 * y * y * r * s2 + 3 * y * r * r * s3 + r**3 * s4),
            0.5 * r * (y * first + r * (x * x * k1 + 2 * x * r * k2 + r * r * k3)),
        ]
    )

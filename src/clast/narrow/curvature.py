"""Curvature at a contact: what the law of Hertz needs to know of two surfaces that are not balls.

Near a contact the gap between two smooth bodies is x.K x / 2 over the tangent plane, where the 2x2 matrix K is the sum
of their curvatures. Unless K is a multiple of the unit matrix the contact area is an ellipse, and the force follows from
complete elliptic integrals of its eccentricity (Johnson 1985, section 4.2): F = 4/3 E* sqrt(R) (overlap / F2)^1.5 with
R = 1 / sqrt(det K). `reduced_radius` is R / F2^3, so that the law for balls gives that force unchanged.
"""

import math

from ..kernels.backend import fused
from ..shapes.ellipsoid_form import radii, tangents

# F2^3 / s as a quotient of polynomials in 1 - sqrt(s), s = 2 sqrt(det K) / trace K: within 5e-5 of the exact values from
# s = 1 (circle) to 1e-3 (ratio of the principal curvatures 4 million). Both begin with 1: exact for balls.
ABOVE = (1.0, -1.2854796, 0.0422027083, 0.0433920464, 0.203147288)
BELOW = (1.0, -2.61737955, 2.25563143, -0.638145984)
LEAST = 1e-3  # s of the longest contact area that is told from a longer one
FLAT = 1e-100  # [1/m], a curvature that stands for none
THIN = 1e-14  # least determinant of a matrix of radii, over the square of its mean


@fused
def reduced_radius(k11, k12, k22):
    """Radius [m] of the ball on a flat wall that answers an overlap with the same Hertz force as this contact.

    k11, k12, k22 [1/m]: the sum of the curvatures of both surfaces in the tangent plane, convex counted positive. The
    axes of the plane do not matter. A matrix that is singular or, by rounding, indefinite is taken as a contact area
    with s = LEAST; one without positive mean as flat.
    """
    mean = max(0.5 * (k11 + k22), FLAT)
    least = LEAST * mean
    det = max(k11 * k22 - k12 * k12, least * least)
    t = 1.0 - math.sqrt(math.sqrt(det) / mean)
    above = ABOVE[0] + t * (ABOVE[1] + t * (ABOVE[2] + t * (ABOVE[3] + t * ABOVE[4])))
    below = BELOW[0] + t * (BELOW[1] + t * (BELOW[2] + t * BELOW[3]))
    return mean * below / (det * above)


@fused
def curvature(r11, r12, r22):
    """Matrix of curvatures (k11, k12, k22) [1/m] of a surface whose matrix of radii of curvature is given [m].

    Zero radii (a corner, an edge) give zero: what is sharp adds nothing to the partner's curvature.
    """
    mean = 0.5 * (r11 + r22)
    inverse = 1.0 / max(r11 * r22 - r12 * r12, THIN * mean * mean + 1e-300)
    return r22 * inverse, -r12 * inverse, r11 * inverse


@fused
def contact_radius(m1, m2, n):
    """Radius [m] that stands for the curvatures of two ellipsoids at their common normal in the law of Hertz."""
    t, u = tangents(n)
    a11, a12, a22 = curvature(*radii(m1, n, t, u))
    b11, b12, b22 = curvature(*radii(m2, n, t, u))
    return reduced_radius(a11 + b11, a12 + b12, a22 + b22)


@fused
def wall_radius(m, n):
    """The same for an ellipsoid on a flat wall."""
    t, u = tangents(n)
    return reduced_radius(*curvature(*radii(m, n, t, u)))

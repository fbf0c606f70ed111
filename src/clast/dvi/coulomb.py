"""True Coulomb friction from cone problems: a fixed point on the De Saxce term.

The cone problem is a relaxation of Coulomb's law: where a contact slides at speed |u_t|, its solution separates at
u_n = mu |u_t| instead of 0, and likewise where it rolls or spins against friction. Added to the normal velocity, the term s = mu |u_t| takes that back; but s depends on the
solution. So: solve with s fixed, take the new s from the solution, and again, every inner solve beginning with the last
impulses and only as exact as the outer residual deserves. The outer steps are extrapolated by the secant of the last two.
"""

import math

import numpy as np

from ..kernels.backend import kernel
from ..kernels.vec import dot, load

INNER = 0.2  # an inner solve stops at this part of the outer residual


def slide_row(i, normal, limit, velocity, slide):
    """slide (c,) [m/s]: mu times the sliding speed, and likewise for rolling and spinning; 0 for cones without friction."""
    n = load(normal, i)
    u = load(velocity, i)
    a = dot(u, n)
    slide[i] = max(limit[i, 0], 0.0) * math.sqrt(max(dot(u, u) - a * a, 0.0))
    if velocity.shape[1] == 6:
        w = (velocity[i, 3], velocity[i, 4], velocity[i, 5])
        spin = dot(w, n)
        slide[i] += limit[i, 2] * math.sqrt(max(dot(w, w) - spin * spin, 0.0)) + limit[i, 3] * abs(spin)


def correct(cones, impulse, inner, measure, tolerance, iterations):
    """Solve with true Coulomb friction, in place on impulse; returns velocity, residual and iterations used.

    inner(tolerance, iterations): solves the cone problem with the shift as it is, in place on impulse, and returns a
    Solution; measure(): velocity and residual of the impulse as it is. The residual is that of the true problem.
    """
    shift = cones.shift
    best = impulse.copy()
    least = math.inf
    used = 0
    last = None
    shift[:] = 0.0
    velocity, residual = measure()
    while True:
        slide = np.empty(cones.count)
        kernel(slide_row)(cones.count, cones.normal, cones.limit, velocity, slide)
        taken = shift.copy()
        shift[:] = slide
        velocity, residual = measure()
        if residual < least:
            least = residual
            np.copyto(best, impulse)
        if residual <= tolerance or used >= iterations:
            break
        if last is not None and residual <= 2.0 * least:
            extrapolate(shift, slide - taken, slide, *last)
        last = (slide - taken, slide) if used else None
        found = inner(max(INNER * residual, 0.2 * tolerance), iterations - used)
        used += max(found.iterations, 1)
        velocity = found.velocity
    np.copyto(impulse, best)
    shift[:] = 0.0
    velocity, _ = measure()
    kernel(slide_row)(cones.count, cones.normal, cones.limit, velocity, shift)
    velocity, residual = measure()
    velocity[:, :3] -= shift[:, None] * cones.normal
    shift[:] = 0.0
    return velocity, residual, used


def extrapolate(shift, miss, slide, last_miss, last_slide):
    """Go to where the miss of the fixed point would vanish if it went on changing as in the last step."""
    change = miss - last_miss
    square = float((change * change).sum())
    if square > 0.0:
        shift -= float((change * miss).sum()) / square * (slide - last_slide)
        np.maximum(shift, 0.0, out=shift)

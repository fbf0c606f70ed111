"""Complementarity: the method with hard contacts, and the motion of bodies between two problems."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..broad.near import image, repeats
from ..broad.search import BROAD
from ..errors import is_number, is_whole, pick
from ..kernels.rows import CENTRE, PER_INERTIA, PER_MASS, SPIN, VELOCITY, centre_at, put_vector, spin_at, velocity_at
from ..kernels.vec import add, dot, load, load4, load_matrix, quat_exponential, quat_multiply, scale, sub
from ..motion.integrate import FINE, NOT_A_NUMBER, OUTSIDE, wrap
from ..motion.rotation import near_unit, spin_of, tumble, turn_of
from ..scene.materials import combine
from ..scene.scene import Scene
from . import solvers
from .constraints import Mixes

TINY = 5e-324  # the least number above 0
LIMITS = {
    "tolerance": (TINY, math.inf, "above 0 m/s, or 'auto'"),
    "stabilisation": (TINY, 1.0, "above 0 and at most 1"),
    "recovery": (0.0, math.inf, "0 m/s or more, or None"),
    "threshold": (0.0, math.inf, "0 m/s or more, or None"),
    "sleep": (TINY, math.inf, "above 0 m/s, 'auto', or None"),
    "omega": (TINY, math.nextafter(2.0, 0.0), "above 0 and below 2"),
    "relaxation": (TINY, 1.0, "above 0 and at most 1"),
}
PART = 1e-2  # tolerance="auto" as a part of what gravity adds to a velocity in a step
LAYERS = 5.0  # and it is shared among the contacts of so many layers at the least
COLD = 10  # times the iterations where nothing is remembered
MANY = 400  # points an iteration, of patches, where there are more than 80 times as many
FEW = 0.05  # part of all contacts: one box on a bed of spheres is no reason for more iterations
FALL = 0.05  # dt="auto" as a part of the time a body takes to fall by its own size


@dataclass(frozen=True)
class Complementarity:
    """Hard contacts: no overlap and Coulomb friction as conditions, not as springs; steps of 1e-3 to 1e-2 s.

    solver: "apgd", "barzilai-borwein", "gauss-seidel" or "jacobi". tolerance [m/s]: error of the velocities of bodies at which a solve may end:
    contacts may miss their conditions, root mean square, by this divided by the number of layers that lie on top of each other; "auto" is a
    hundredth of what gravity adds to a velocity in a step. iterations: the most a step may take; "auto" is 40, 80 to 160 where particles touch
    each other or walls at several points, up to 400 where contacts are few, and ten times that where no contact remembers a step before; 200 with joints.
    A step that ends there goes on with what it has, and the report says how many did and by how much they missed.
    coulomb: True for Coulomb friction itself; False for the cone problem, which lifts sliding contacts by friction
    times the way they slide in a step. warm: begin with the impulses of the last step.
    stabilisation: the part of an overlap that one step takes away, above 0, by moving bodies apart without giving them speed (with joints: by their velocities,
    as in Negrut et al. 2010, where it is 1). recovery [m/s]: the fastest that overlapping bodies are parted; None lets the
    simulation choose.
    threshold [m/s]: slower impacts do not rebound; None is twice what gravity adds in a step.
    omega, relaxation: of the solver "jacobi", omega and lambda of Negrut et al. 2010. broad: as in DEM.
    ledger: whether contacts, joints, motors and springs tell what they do and lose, for `Simulation.ledger`. None, the default: where they can, on one process and with nobody asleep.
    sleep [m/s]: bodies that were slower than this for 50 steps sleep, until forces on them balance no more; "auto" is a two-hundredth of what gravity adds to a
    velocity in a step. None: nobody sleeps. Not with joints, nor with a ledger.
    """

    solver: str = "apgd"
    tolerance: float | str = "auto"
    iterations: int | str = "auto"
    coulomb: bool = False
    warm: bool = True
    stabilisation: float = 0.2
    recovery: float | None = None
    threshold: float | None = None
    omega: float = 0.3
    relaxation: float = 1.0
    broad: str = "bins"
    ledger: bool | None = None
    sleep: float | str | None = None

    def __post_init__(self) -> None:
        pick("solver", self.solver, solvers.SOLVERS)
        pick("broad phase", self.broad, BROAD)
        most = self.iterations
        if most != "auto" and (isinstance(most, bool) or not (is_whole(most) and most >= 1)):
            raise ValueError(f"Complementarity: iterations = {most!r} must be a whole number, 1 or more, or 'auto'")
        for name in ("coulomb", "warm", "ledger"):
            if (name, self.ledger) != ("ledger", None) and not isinstance(getattr(self, name), bool | np.bool_):
                raise TypeError(f"Complementarity: {name} = {getattr(self, name)!r} must be True or False")
        for name, (least, largest, words) in LIMITS.items():
            value = getattr(self, name)
            if (value is None and name in ("recovery", "threshold", "sleep")) or (
                name in ("tolerance", "sleep") and value == "auto"
            ):
                continue
            if isinstance(value, bool) or not is_number(value):
                raise TypeError(f"Complementarity: {name} must be a number {words}, got {value!r}")
            if not least <= value <= largest or not math.isfinite(value):
                raise ValueError(f"Complementarity: {name} = {value} must be {words}")
        for name, default in (("omega", Complementarity.omega), ("relaxation", Complementarity.relaxation)):
            if self.solver != "jacobi" and getattr(self, name) != default:
                raise ValueError(f"Complementarity: {name} is an option of solver='jacobi', not of {self.solver!r}")
        if self.ledger and self.sleep is not None:
            raise ValueError("Complementarity: a ledger is kept where nobody sleeps; leave sleep= or ledger=True out")

    @property
    def options(self) -> dict[str, Any]:
        """What the solver takes beside tolerance and iterations."""
        own = {"omega": self.omega, "relaxation": self.relaxation} if self.solver == "jacobi" else {}
        return own | ({"coulomb": True} if self.coulomb else {})

    def mixes(self, scene: Scene) -> Mixes:
        """Combined materials of every pair of materials, row m1 * number + m2: Mixes."""
        mix = combine(scene.materials, scene.pairs)
        return Mixes(*(np.ascontiguousarray(getattr(mix, name).ravel()) for name in Mixes._fields))


def iterations_for(method, contacts, joined, patched=0, cold=False):
    """The most iterations of a step with so many contacts: by default 40, up to 400 where contacts are few and an iteration takes no time; 200
    with joints, which are restored in each.

    patched: contacts of pairs that touch at several points, whose impulses are not unique. Where they are more than a few of all twice as many
    iterations; 5,000 cubes came to rest with 80, and went on at 7e-4 m/s with 40. Up to twice that where there are very many: 20,000 cubes went on at
    8e-4 m/s with 80, and sank into each other.
    cold: no contact remembers anything, as in a wall that has just been built: ten times as many, because what the first solve leaves undone would
    let it sink.
    """
    if method.iterations != "auto":
        return int(method.iterations)
    if joined:
        return 200
    most = min(max(80, patched // MANY), 160) if patched > FEW * contacts else 40
    return min(max(most, 100_000 // max(contacts, 1)), 400) * (COLD if cold else 1)


def kick_chunk(c, chunk, rows, inverse, gravity, dt, kick, force, torque, free):
    """Velocity and spin of one chunk of bodies without contacts: M^-1 k of eq. (9).

    kick (n,): the part of the step's forces that acts now: 1, or 1/2 for bodies that touch nothing.
    force, torque (n,3) [N, N m]: of springs and motors; of length 0 if there are none.
    """
    for row in range(c * chunk, min(len(free), (c + 1) * chunk)):
        i = np.uintp(row)
        step = kick[i] * dt if rows[i, PER_MASS] > 0.0 else 0.0
        for j in range(3):
            free[i, j] = rows[i, VELOCITY + j] + step * gravity[j]
            free[i, 3 + j] = rows[i, SPIN + j]
        if len(force) > 0:
            w = turn_of(i, load(torque, i), rows, inverse)
            for j in range(3):
                free[i, j] += step * rows[i, PER_MASS] * force[i, j]
                free[i, 3 + j] += step * w[j]


def drift_chunk(c, chunk, bodies, rows, inertias, free, kick, dt, space, watch):
    """Move one chunk of bodies to the end of the step with the velocities that they have: eq. (8).

    Bodies that touch nothing get the second half of their kick afterwards, which makes free flight exact. `moved`,
    `status`: as `integrate.advance_row`.
    """
    gravity, world, edges = space.gravity, space.world, space.edges
    periodic, solids = repeats(edges), len(watch.turned_from) > 0
    farthest = 0.0
    state = FINE
    for row in range(c * chunk, min(len(free), (c + 1) * chunk)):
        i = np.uintp(row)
        per_mass = rows[i, PER_MASS]
        if per_mass == 0.0:
            continue
        v = velocity_at(rows, i)
        w = spin_at(rows, i)
        x = add(centre_at(rows, i), scale(dt, v))
        q = load4(bodies.orientation, i)
        tumbling = not inertias.round[bodies.mold[i]]
        change = sub(w, (free[i, 3], free[i, 4], free[i, 5]))
        per_step = 1.0 / (per_mass * dt)
        for j in range(3):
            bodies.force[i, j] = (rows[i, VELOCITY + j] - free[i, j]) * per_step
            bodies.torque[i, j] = change[j] / (rows[i, PER_INERTIA] * dt)
        if tumbling:
            inertia, inverse = (
                load_matrix(inertias.inertia, bodies.mold[i]),
                load_matrix(inertias.inverse, bodies.mold[i]),
            )
            couple = scale(per_step * bodies.scale[i] * bodies.scale[i], spin_of(q, change, inertia))
            bodies.torque[i, 0], bodies.torque[i, 1], bodies.torque[i, 2] = couple
            q, w = tumble(q, w, inertia, inverse, dt)
        else:
            q = near_unit(quat_multiply(quat_exponential(scale(dt, w)), q))
        v = add(v, scale((1.0 - kick[i]) * dt, gravity))
        d = sub(x, load(watch.reference, i))
        if periodic:
            x = (wrap(x[0], world[0], edges[0]), wrap(x[1], world[1], edges[1]), wrap(x[2], world[2], edges[2]))
            d = (image(d[0], edges[0], edges[3]), image(d[1], edges[1], edges[4]), image(d[2], edges[2], edges[5]))
        far = math.sqrt(dot(d, d))
        if solids:
            o = load4(watch.turned_from, i)
            e = (q[0] - o[0], q[1] - o[1], q[2] - o[2], q[3] - o[3])
            chord = math.sqrt(e[0] * e[0] + e[1] * e[1] + e[2] * e[2] + e[3] * e[3])
            far += bodies.scale[i] * inertias.swing[bodies.mold[i]] * min(1.0, 2.1 * chord)
        if not (far < np.inf and dot(w, w) < np.inf):
            state = NOT_A_NUMBER
        elif not (world[0] <= x[0] <= world[3] and world[1] <= x[1] <= world[4] and world[2] <= x[2] <= world[5]):
            state = max(state, OUTSIDE)
        farthest = max(farthest, far)
        put_vector(rows, i, CENTRE, x)
        put_vector(rows, i, VELOCITY, v)
        put_vector(rows, i, SPIN, w)
        bodies.orientation[i, 0], bodies.orientation[i, 1] = q[0], q[1]
        bodies.orientation[i, 2], bodies.orientation[i, 3] = q[2], q[3]
    watch.moved[c] = farthest * farthest
    watch.status[c] = state

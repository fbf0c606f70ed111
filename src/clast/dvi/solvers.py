"""Solvers of the cone complementarity problem: impulses g in cones, velocities u = W g + q, and g - P(g - u) = 0.

It is the minimum of g.W g/2 + q.g over the friction cones. The solvers see W only through an object `cones` with

    count, width   number of cones c; numbers a cone has: 3, or 6 with rolling and spinning friction
    normal (c,3)   unit normals; limit (c,2): friction mu, tension [N s]; (c,4) with rolling, spinning limits
    size (c,2)     [1/kg] what a unit impulse along the normal does to its own velocity, and the mean of that for all
                   other directions: diagonal entries of W, above 0
    shift (c,)     [m/s] added to the normal velocity; zero, or what the Coulomb correction has set
    velocity(impulse, out)   out[:] = W impulse + q + shift normal; arrays (c,width)
    begin(impulse), sweep(impulse)   what Gauss-Seidel needs: make what the object keeps agree with the impulse; one pass
    rho (c,) [kg], norm      residual = sqrt(sum_i |g_i - P_i(g_i - rho_i u_i)|^2 / rho_i^2) / norm

All gradient solvers step by 1/size, so that heavy and light bodies, and sliding and pushing, converge alike; the cones
stay exact (see `cone`). An iteration is one `velocity` and one launch of `passes.pass_block`; contacts of bodies without joints have an object that
iterates by itself, `descend` (see `accelerated`), which apgd leaves it to.
"""

import math
from functools import partial
from typing import NamedTuple

import numpy as np

from ..errors import pick
from ..kernels.sums import add_columns, next_limits, totals
from . import long_waves
from .accelerated import EXACT, FEWEST, Buffers
from .coulomb import correct
from .others import order_free
from .passes import NONE, NOTHING, RESIDUAL, STEP, SUMS, chunks, pass_kernel

# Why some are done in any case is said in `accelerated`; the others need more. A tower of ten boxes askew by 2 % moved by 2e-2 of an edge in 16 s where they stopped at
# the tolerance, by 2e-3 (gauss-seidel) with 120 of 400 iterations, by 4e-4 at the most with 200.
PATIENT = 0.5
LOOK = 4  # iterations between two looks at the residual where a look costs a projection


class Solution(NamedTuple):
    """What a solver returns."""

    impulse: np.ndarray  # (c,width) [N s], always finite and inside the cones
    velocity: np.ndarray  # (c,width) [m/s], W impulse + q, computed from the impulse after the last iteration
    residual: float  # of impulse and velocity, computed after the last iteration
    iterations: int
    converged: bool  # residual <= tolerance


class Workspace:
    """Arrays that solvers write; keep one from step to step and nothing is allocated again unless cones are added."""

    def __init__(self):
        self.capacity = 0
        self.width = 0
        self.curvature = 1.0  # largest found in the last solve: a good first guess for a problem much alike
        self.buffers = Buffers()

    def reserve(self, count, width):
        """Impulses (4 arrays), velocities (2 arrays), each (count, width), and sums (chunks, SUMS)."""
        if count > self.capacity or width != self.width:
            self.capacity = count + count // 8
            self.width = width
            self.arrays = [np.zeros((self.capacity, width)) for _ in range(6)]
            self.sums = np.zeros((chunks(self.capacity), SUMS))
        arrays = [array[:count] for array in self.arrays]
        return arrays[:4], arrays[4:], self.sums[: chunks(count)]


class Run:
    """One solve under way: the arrays, the best impulse met so far, and the calls that every solver makes.

    `old` and `now` are the last two impulses, `u_old` and `u` their velocities; `trial` is what comes after `now`.
    `energy` is that of `now` less that of the start, r.W r / 2 + q.r: what is being minimised. fewest: so many iterations are done in any case, unless the
    residual is far below the tolerance (see `accelerated`). order_free: what is summed up on the way does not depend on
    the order of cones, nor on who has which of those that processes share.
    """

    def __init__(self, cones, impulse, tolerance, iterations, workspace, fewest=0, order_free=False):
        self.cones = cones
        self.space = workspace
        self.tolerance = tolerance
        self.fewest, self.most = fewest, iterations
        self.used = 0
        self.impulses, self.velocities, self.sums = workspace.reserve(cones.count, cones.width)
        self.kernel = pass_kernel(cones.width)
        self.terms = workspace.buffers.get("terms", SUMS, cones.count) if order_free else NONE
        self.limits = np.zeros(SUMS)  # of the terms, see `clast.kernels.sums`
        self.tables = (cones.normal, cones.limit, cones.size, cones.rho)
        self.residual = self.least = math.inf
        self.energy = self.energy_old = self.energy_best = 0.0
        # What is kept from the step before may be outside of cones that have changed since.
        start = self.impulses[0]
        self._launch((impulse, impulse, impulse, impulse), 0.0, 0.0, 1.0, NOTHING, start)
        self.now = self.old = self.best = self.trial = start
        self.u = self.u_old = self.velocities[0]
        cones.velocity(self.now, self.u)

    def _launch(self, states, momentum, step, relaxation, look, trial):
        self.kernel(
            len(self.sums), self.tables, *states, momentum, step, relaxation, look, trial, self.sums, self.terms
        )

    def _unused(self):
        """One of the four impulse arrays that is neither of now, old and best."""
        taken = (self.now, self.old, self.best)
        return next(array for array in self.impulses if all(array is not other for other in taken))

    def advance(self, momentum, step, relaxation=1.0, look=True):
        """Measure the last step and make the trial of the next; returns curvature, length, slope and speed.

        step < 0: only measure. look: also at the residual; without, it is unknown and nothing ends because of it.
        """
        self.trial = self._unused()
        states = (self.now, self.old, self.u, self.u_old)
        self._launch(states, momentum, step, relaxation, RESIDUAL if look else STEP, self.trial)
        curvature, length, slope, speed, square = self._added(look)
        self.energy = self.energy_old + slope - 0.5 * curvature
        if not look:
            self.residual = math.inf
            return curvature, length, slope, speed
        self.residual = math.sqrt(square) / self.cones.norm if math.isfinite(square) else math.inf
        if self.residual < self.least:
            # No copy: the array is set aside and not written again until a better one comes.
            self.least = self.residual
            self.best, self.energy_best = self.now, self.energy
        return curvature, length, slope, speed

    def _added(self, look):
        """What the last pass summed up; the last is of no use without a look."""
        if not len(self.terms):
            return self.sums.sum(axis=0).tolist()
        asked = SUMS if look else SUMS - 1
        rows = add_columns(self.terms[:asked], self.cones.told, self.limits)
        sums = totals(self.cones.others.add(rows))
        next_limits(sums[asked:], self.limits)
        return [*sums[:asked].tolist(), 0.0][:SUMS]

    def again(self, momentum, step):
        """Another trial from `now` in place of the last one."""
        self.trial = self._unused()
        self._launch((self.now, self.old, self.u, self.u_old), momentum, step, 1.0, NOTHING, self.trial)

    def accept(self):
        """The trial becomes `now`."""
        self.old, self.now = self.now, self.trial
        self.energy_old = self.energy
        self.u_old, self.u = self.u, self._other(self.u)
        self.cones.velocity(self.now, self.u)
        self.used += 1

    def retreat(self, step):
        """Forget `now`; a shorter step from `old` takes its place."""
        self.now, self.u, self.energy = self.old, self.u_old, self.energy_old
        self.again(0.0, step)
        self.accept()

    def shorten(self, part, energy):
        """Go only this part of the way from old to now, where the energy is as given."""
        array = self._unused()
        self.energy = energy
        for target, start, end in ((array, self.old, self.now), (self.u, self.u_old, self.u)):
            np.subtract(end, start, out=target)
            target *= part
            target += start
        self.now = array

    def _other(self, velocity):
        first, second = self.velocities
        return second if velocity is first else first

    @property
    def over(self):
        enough = self.tolerance if self.used >= self.fewest else EXACT * self.tolerance
        return self.residual <= enough or self.used >= self.most

    def result(self):
        """The impulse to return: the one with the least residual, or, if that is not small enough and the last is not
        much worse by its residual but better by its energy, the last.

        The first iterations spread what a few contacts lack over many. Energy falls then, but the residual may rise; going
        back to the start because of that would mean that a pile never learns of what was put on top of it.
        """
        lower = self.energy < self.energy_best and self.residual <= 2.0 * self.least
        return self.now if self.least > self.tolerance and lower else self.best


def apgd(run):
    """Accelerated projected gradient (Nesterov 1983) with restart where the gradient asks for it (O'Donoghue & Candes 2015).

    The step is 1 over the largest curvature met. Momentum bears a curvature that is a third too small, and one that is
    too small shows up in the next step or two as the direction that grows, so steps are not tried twice; a step
    that went up because it was too long is taken back.
    """
    largest = run.space.curvature
    theta = 1.0
    while True:
        # Most steps neither restart nor change the curvature: the trial is made while the last step is being measured.
        after = 0.5 * theta * (math.sqrt(theta * theta + 4.0) - theta)
        momentum = theta * (1.0 - theta) / (theta * theta + after)
        # The residual costs a third of a pass. Short solves look every time, so that they end when they should.
        look = run.used < 2 * LOOK or run.used % LOOK == 0 or run.used == run.most
        curvature, length, slope, _ = run.advance(momentum, 1.0 / largest, look=look)
        if run.over:
            break
        met = curvature / length if length > 0.0 else 0.0
        fine = math.isfinite(met) and math.isfinite(slope)
        longer = not fine or met > largest
        if longer:
            largest *= min(1.05 * met / largest, 4.0) if fine else 4.0
        if longer and not slope - 0.5 * curvature <= 0.0:
            theta = 1.0
            run.retreat(1.0 / largest)
            continue
        if slope > 0.0:
            # Momentum points uphill. A restart is also the moment to forget curvature that is no longer met.
            largest *= 0.95
            after, momentum = 1.0, 0.0
        if longer or slope > 0.0:
            run.again(momentum, 1.0 / largest)
        theta = after
        run.accept()
    run.space.curvature = largest


def descended(cones, impulse, tolerance, iterations, space):
    """The same for contacts of bodies, which iterate without velocities of contacts (`accelerated`); in place on the impulse."""
    used, inside = 0, False
    while True:
        if not inside:
            # What is kept from the step before may be outside of cones that have changed since.
            project(cones, impulse, space)
            inside = True
        if used < iterations:
            long_waves.correct(cones, impulse, space)
            more, space.curvature, inside = cones.descend(
                impulse, tolerance, iterations - used, space.curvature, space.buffers
            )
            used += more
            if not inside:
                continue
        velocity, residual = measure(cones, impulse, space)
        if residual <= tolerance or used >= iterations:
            return Solution(impulse, velocity, residual, used, residual <= tolerance)


def project(cones, impulse, space):
    """Impulses (c,width) at the nearest points of their cones, in place."""
    _, _, sums = space.reserve(cones.count, cones.width)
    tables, states = (cones.normal, cones.limit, cones.size, cones.rho), (impulse, impulse, impulse, impulse)
    pass_kernel(cones.width)(len(sums), tables, *states, 0.0, 0.0, 1.0, NOTHING, impulse, sums, NONE)


def jacobi(run, omega=0.3, relaxation=1.0, look=8):
    """The projected fixed point of Tasora and Anitescu: every cone for itself, all at once; slow and steady.

    omega: over-relaxation, the part of a full step each cone takes; relaxation: lambda, the weight of the new impulse
    against the old one. Where omega is too large for the problem it is halved until the energy falls. Cones that can take
    a step in one pass (`relax(impulse, omega, relaxation)`) are looked at after every `look` steps only.
    """
    if hasattr(run.cones, "relax"):
        while not in_place(run, look, partial(run.cones.relax, omega=omega, relaxation=relaxation)):
            omega *= 0.5
        return
    while True:
        curvature, _, slope, _ = run.advance(0.0, omega, relaxation)
        if run.over:
            break
        if slope - 0.5 * curvature <= 0.0 or omega < 1e-9:
            run.accept()
        else:
            omega *= 0.5
            run.retreat(omega)


def barzilai_borwein(run):
    """Spectral projected gradient (Birgin, Martinez & Raydan 2000): steps from the last change of velocity.

    The two Barzilai-Borwein steps take turns. A step that goes higher than the highest of the last ten energies is
    shortened to the lowest point on its way, which is known because the energy is quadratic.
    """
    step = 1.0 / run.space.curvature
    largest = 0.0
    recent = [0.0]
    run.advance(0.0, step)
    while not run.over:
        run.accept()
        curvature, length, slope, speed = run.advance(0.0, -1.0)
        if run.over:
            break
        before = slope - curvature
        if not math.isfinite(curvature + before):
            step *= 0.1
            run.retreat(step)
            continue
        if run.energy > max(recent) + 1e-4 * before and -before < curvature:
            # Where a step changed nothing but last digits, both may be rounded to nothing.
            part = max(-before / curvature, 1e-3) if curvature != 0.0 else 1e-3
            run.shorten(part, run.energy_old + part * before + 0.5 * part * part * curvature)
        recent = [*recent[-9:], run.energy]
        if curvature > 0.0 and speed > 0.0:
            largest = max(largest, curvature / length)
            step = length / curvature if run.used % 2 else curvature / speed
            step = min(max(step, 1e-10), 1e10)
        run.again(0.0, step)
    run.space.curvature = largest or run.space.curvature


def gauss_seidel(run, look=8):
    """Sweeps through the cones, colour by colour, each solved against the newest impulses of its neighbours.

    look: sweeps between two looks at the residual, which cost a `velocity` each.
    """
    in_place(run, look, run.cones.sweep, patient=True)


def in_place(run, look, change, patient=False):
    """Let change(impulse) work on one array until the residual is small enough, looked at after every `look` calls.

    What it ends with is the last impulse, not the one with the least residual: these passes lower the energy at every
    call, while the residual of a large problem may rise for long before it falls. Returns False, with the impulse of the
    look before as the best, if the energy rose or is not a number; only in the latter case if patient.
    """
    kept, changing = [array for array in run.impulses if array is not run.best][:2]
    for array in (kept, changing):
        np.copyto(array, run.best)
    run.now = run.old = run.best = kept
    run.u = run.u_old = run.velocities[0]
    run.cones.velocity(kept, run.u)
    run.advance(0.0, -1.0)
    run.cones.begin(changing)
    while not run.over:
        for _ in range(min(look, run.most - run.used)):
            change(changing)
            run.used += 1
        run.now, run.u = changing, run._other(run.u_old)
        run.cones.velocity(changing, run.u)
        curvature, _, slope, _ = run.advance(0.0, -1.0)
        rise = slope - 0.5 * curvature
        if not math.isfinite(rise + run.residual) or (not patient and rise > 0.0):
            run.best = kept
            return run.over
        np.copyto(kept, changing)
        run.best, run.u_old = kept, run.u
    return True


SOLVERS = {"apgd": apgd, "barzilai-borwein": barzilai_borwein, "gauss-seidel": gauss_seidel, "jacobi": jacobi}


def solve(
    cones,
    impulse,
    *,
    solver="apgd",
    tolerance=1e-8,
    iterations=1000,
    coulomb=False,
    workspace=None,
    guess=None,
    **options,
):
    """Solve for the impulses (c,width) [N s], in place, starting from what is passed in.

    solver: a name in SOLVERS; tolerance: of the residual, in the unit of `cones.norm`; iterations: at most so many in
    all; coulomb: true Coulomb friction instead of the cone problem (see `coulomb`), then the residual is that of the
    true problem; guess(impulse, tolerance): may improve the impulse before the solver begins, and returns the steps it
    took, and is not asked where cones iterate by themselves; options: what the solver itself takes (omega, relaxation, look). Returns a Solution; its velocity is an array
    of the workspace, valid until the next solve.
    """
    method = pick("solver", solver, SOLVERS)
    space = Workspace() if workspace is None else workspace
    if getattr(cones, "total", cones.count) == 0:
        return Solution(impulse, np.zeros_like(impulse), 0.0, 0, True)

    def measured():
        return measure(cones, impulse, space)

    def relaxed(tolerance, iterations):
        if method is apgd and hasattr(cones, "descend") and cones.joints is None:
            return descended(cones, impulse, tolerance, iterations, space)
        guessed = guess(impulse, tolerance) if guess else 0
        joined = method is apgd and getattr(cones, "joints", None) is not None
        if joined:
            project(cones, impulse, space)
            long_waves.correct(cones, impulse, space)
        fewest = max(math.ceil(PATIENT * iterations), FEWEST) if getattr(cones, "joints", True) is None else 0
        run = Run(cones, impulse, tolerance, max(iterations - guessed, 0), space, fewest, joined)
        method(run, **options)
        np.copyto(impulse, run.result())
        velocity, residual = measured()
        return Solution(impulse, velocity, residual, guessed + run.used, residual <= tolerance)

    if not coulomb:
        return relaxed(tolerance, iterations)
    velocity, residual, used = correct(cones, impulse, relaxed, measured, tolerance, iterations)
    return Solution(impulse, velocity, residual, used, residual <= tolerance)


def measure(cones, impulse, space):
    """Velocity and residual of an impulse, from scratch."""
    _, velocities, sums = space.reserve(cones.count, cones.width)
    u, shared = velocities[0], hasattr(cones, "others")
    terms = space.buffers.get("squares", 1, cones.count) if shared else NONE
    cones.velocity(impulse, u)
    tables = (cones.normal, cones.limit, cones.size, cones.rho)
    states = impulse, impulse, u, u
    pass_kernel(cones.width)(len(sums), tables, *states, 0.0, -1.0, 1.0, RESIDUAL, impulse, sums, terms)
    if shared:
        (square,) = order_free(cones.others, terms[0, : cones.told])
    else:
        square = float(sums[:, 4].sum())
    return u, math.sqrt(square) / cones.norm if math.isfinite(square) else math.inf

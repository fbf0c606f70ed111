"""Cone problems given by a matrix: u = W g + q with W sparse and symmetric, and the public `solve_cone`."""

import math
from typing import Any, Literal, NamedTuple

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike

from ..errors import is_number, is_whole, pick
from ..kernels.backend import func, kernel
from ..kernels.vec import load, load_matrix
from ..signatures import Numbers
from .interior import interior_point
from .projections import solve3
from .solvers import SOLVERS, Workspace, measure, solve

ROUNDED = 1e-9  # a residual that rounding alone could have is not looked at below this
FINISHED = 2000  # most cones for the interior-point method, whose factors fill up
LOCAL = 40  # most steps of a cone's own small problem in a sweep


class Blocks(NamedTuple):
    """W in blocks of 3 by 3, row by row, and what else a sweep reads."""

    start: np.ndarray  # (c+1,) int32, first block of each row
    column: np.ndarray  # (b,) int32
    block: np.ndarray  # (b,3,3) [1/kg]
    own: np.ndarray  # (c,3,3) [1/kg], the blocks on the diagonal
    q: np.ndarray  # (c,3) [m/s]
    normal: np.ndarray  # (c,3), all (1, 0, 0): the order normal, tangent, tangent is a frame of each cone's own
    limit: np.ndarray  # (c,4)
    size: np.ndarray  # (c,2) [1/kg]
    shift: np.ndarray  # (c,) [m/s]


@func
def velocity_of(i, blocks, impulse):
    """Row i of W g + q + shift n."""
    x = blocks.q[i, 0] + blocks.shift[i]
    y = blocks.q[i, 1]
    z = blocks.q[i, 2]
    for k in range(blocks.start[i], blocks.start[i + 1]):
        j = blocks.column[k]
        a = impulse[j, 0]
        b = impulse[j, 1]
        c = impulse[j, 2]
        x += blocks.block[k, 0, 0] * a + blocks.block[k, 0, 1] * b + blocks.block[k, 0, 2] * c
        y += blocks.block[k, 1, 0] * a + blocks.block[k, 1, 1] * b + blocks.block[k, 1, 2] * c
        z += blocks.block[k, 2, 0] * a + blocks.block[k, 2, 1] * b + blocks.block[k, 2, 2] * c
    return (x, y, z)


def velocity_row(i, blocks, impulse, out):
    """One row of the product: out = W impulse + q + shift n."""
    out[i, 0], out[i, 1], out[i, 2] = velocity_of(i, blocks, impulse)


def sweep_row(k, order, blocks, impulse):
    """Solve one cone of a colour; cones of one colour do not meet in W, so no row reads what another writes."""
    i = order[k]
    u = velocity_of(i, blocks, impulse)
    impulse[i, 0], impulse[i, 1], impulse[i, 2] = solve3(
        load(impulse, i),
        u,
        load_matrix(blocks.own, i),
        load(blocks.normal, i),
        blocks.limit[i, 0],
        blocks.limit[i, 1],
        blocks.size[i, 0],
        blocks.size[i, 1],
        LOCAL,
    )


def colour_row(_, start, column, colour, mark):
    """Greedy colours of the graph of blocks, one row for all: each cone takes the first colour no neighbour has."""
    for i in range(len(start) - 1):
        for k in range(start[i], start[i + 1]):
            if column[k] < i:
                mark[colour[column[k]]] = i + 1
        c = 0
        while mark[c] == i + 1:
            c += 1
        colour[i] = c


class MatrixCones:
    """The cone problem of a matrix, as the solvers see it."""

    width = 3

    def __init__(self, matrix, q, mu):
        """matrix: scipy sparse (3c,3c); q: (3c,); mu: (c,); all checked."""
        self.count = c = len(mu)
        rows = scipy.sparse.bsr_array(matrix, blocksize=(3, 3))
        rows.sort_indices()
        diagonal = matrix.diagonal().reshape(c, 3)
        self.normal = np.tile([1.0, 0.0, 0.0], (c, 1))
        self.limit = np.zeros((c, 4))
        self.limit[:, 0] = mu
        self.size = np.column_stack([diagonal[:, 0], diagonal[:, 1:].mean(axis=1)])
        self.shift = np.zeros(c)
        own = np.zeros((c, 3, 3))
        of_row = np.repeat(np.arange(c), np.diff(rows.indptr))
        here = of_row == rows.indices
        own[of_row[here]] = rows.data[here]
        self.blocks = Blocks(
            rows.indptr.astype(np.int32),
            rows.indices.astype(np.int32),
            np.ascontiguousarray(rows.data),
            own,
            np.ascontiguousarray(q.reshape(c, 3)),
            self.normal,
            self.limit,
            self.size,
            self.shift,
        )
        self.rho = np.full(c, 1.0 / diagonal.max()) if c else np.zeros(0)
        self.norm = float(np.linalg.norm(q)) or 1.0
        self.colours = None

    def velocity(self, impulse, out):
        """out[:] = W impulse + q + shift n."""
        kernel(velocity_row, grain=256)(self.count, self.blocks, impulse, out)

    def begin(self, impulse):
        """Find the colours, once."""
        if self.colours is None:
            colour = np.zeros(self.count, np.int32)
            mark = np.zeros(self.count + 1, np.int32)
            kernel(colour_row)(1, self.blocks.start, self.blocks.column, colour, mark)
            self.order = np.argsort(colour, kind="stable").astype(np.int32)
            self.colours = np.cumsum([0, *np.bincount(colour)])

    def sweep(self, impulse):
        """One pass of Gauss-Seidel, colour by colour."""
        kernel(sweep_row, grain=64, phased=True)(self.colours, self.order, self.blocks, impulse)


class ConeSolution(NamedTuple):
    """What `solve_cone` returns."""

    impulse: np.ndarray  # (3c,) normal, tangent, tangent of each cone; finite and inside the cones
    velocity: np.ndarray  # (3c,) W impulse + q
    residual: (
        float  # |r - P(r - rho u)| / (rho |q|) with rho = 1 / largest diagonal entry of W, after the last iteration
    )
    iterations: int
    converged: bool  # residual <= tolerance


def solve_cone(
    W: Any,
    q: ArrayLike,
    mu: Numbers,
    *,
    solver: Literal["apgd", "barzilai-borwein", "gauss-seidel", "jacobi"] = "apgd",
    tolerance: float = 1e-8,
    iterations: int = 5000,
    coulomb: bool = False,
    start: ArrayLike | None = None,
    finish: bool = True,
) -> ConeSolution:
    """Solve a cone complementarity problem: impulses r in friction cones, velocities u = W r + q, and r . u = 0.

    W (3c,3c): symmetric positive semidefinite, scipy sparse or dense, with a diagonal above 0; q (3c,); mu: friction,
    a number or (c,), at least 0; blocks of three are ordered normal, tangent, tangent. r_i lies in |r_t| <= mu r_n, u_i
    in the dual cone mu |u_t| <= u_n; u is unique, r need not be.

    solver: "apgd", "barzilai-borwein", "gauss-seidel" or "jacobi"; tolerance: of the residual
    |r - P(r - rho u)| / (rho |q|) with rho = 1 / max diag(W) and P the projection onto the cones; iterations: at most so
    many; start (3c,): impulses to begin with, zero unless given; coulomb: true Coulomb friction, where u + mu |u_t| n
    takes the place of u and sliding contacts do not lift (see docs/solvers.md); finish: let an interior-point method
    help once half of the iterations are used, for problems of up to 2,000 cones.

    Returns impulse (3c,), velocity (3c,) = W impulse + q, residual, iterations, converged. The impulse is finite and inside
    the cones; the residual is computed from it after the last iteration.

    >>> clast.solve_cone(np.eye(3), [-1.0, 0.5, 0.0], 0.3).impulse
    """
    matrix, q, mu, impulse = _checked(W, q, mu, start)
    pick("solver", solver, SOLVERS)
    tolerance, iterations = _checked_limits(tolerance, iterations)
    cones = MatrixCones(matrix, q, mu)
    space = Workspace()
    options = {"solver": solver, "tolerance": tolerance, "coulomb": coulomb, "workspace": space}
    finish = finish and 0 < cones.count <= FINISHED
    first = (iterations + 1) // 2 if finish else iterations
    found = solve(cones, impulse, iterations=first, **options)
    used = found.iterations
    if finish and not found.converged and used < iterations:
        best, least = impulse.copy(), found.residual
        options["guess"] = _guess(cones, matrix, space)
        found = solve(cones, impulse, iterations=iterations - used, **options)
        used += found.iterations
        if found.residual > least:
            found = solve(cones, best, **{**options, "guess": None}, iterations=0)
    impulse = found.impulse.ravel()
    least = _rounding(matrix, impulse, q)
    converged = found.converged and least <= max(tolerance, ROUNDED)
    residual = max(found.residual, least) if found.converged and not converged else found.residual
    return ConeSolution(impulse, found.velocity.ravel(), residual, used, converged)


def _rounding(matrix, impulse, q):
    """What rounding alone may make of the residual: where impulses grow beyond all bounds, velocities are lost in their last digits,
    and a residual computed from them may be 0 without any meaning."""
    size = float(np.linalg.norm(q))
    return float(np.finfo(float).eps * np.linalg.norm(abs(matrix) @ np.abs(impulse))) / size if size > 0.0 else 0.0


def _guess(cones, matrix, space):
    """The interior-point method as a guess for a solver: it replaces the impulse where it comes closer."""

    def guess(impulse, tolerance):
        def check(candidate):
            _, residual = measure(cones, candidate, space)
            return residual, residual <= tolerance

        q = cones.blocks.q + cones.shift[:, None] * cones.normal
        candidate, steps = interior_point(matrix, q, cones.limit[:, 0], check)
        if check(candidate)[0] < check(impulse)[0]:
            np.copyto(impulse, candidate)
        return steps

    return guess


def _checked(W, q, mu, start):
    """Clean arguments of solve_cone: a sparse matrix and arrays (3c,), (c,), (c,3), or an error that says what to do."""
    place = "solve_cone"
    if not scipy.sparse.issparse(W) and np.ndim(W) != 2:
        raise ValueError(f"solve_cone: W must be a matrix (3c,3c), got {str(W)[:100]!r}")
    matrix = scipy.sparse.csr_array(W if scipy.sparse.issparse(W) else np.asarray(W, dtype=float), dtype=float)
    n = matrix.shape[0]
    if matrix.shape != (n, n) or n % 3:
        raise ValueError(f"{place}: W must be (3c, 3c) with three rows a cone, got {matrix.shape}")
    q = _finite(place, "q", q, (n,))
    friction = _finite(place, "mu", mu, (n // 3,))
    if not np.isfinite(matrix.data).all():
        raise ValueError(f"{place}: W holds a number that is not finite; every entry must be finite")
    if (friction < 0.0).any():
        row = int(np.argmax(friction < 0.0))
        raise ValueError(f"{place}: mu[{row}] is {friction[row]:g}; friction must be 0 or more")
    diagonal = matrix.diagonal()
    if (diagonal <= 0.0).any():
        row = int(np.argmax(diagonal <= 0.0))
        raise ValueError(
            f"{place}: W[{row}, {row}] is {diagonal[row]:g}; an impulse must move its own contact, so the diagonal must be "
            "above 0 (for mu = 0 put any positive number at the tangents)"
        )
    uneven = abs(matrix - matrix.T)
    worst = float(uneven.max()) if uneven.nnz else 0.0
    if worst > 1e-8 * float(diagonal.max(initial=0.0)):
        raise ValueError(
            f"{place}: W is not symmetric, W - W.T has entries up to {worst:g}; pass (W + W.T) / 2 if that is meant"
        )
    impulse = np.zeros(n) if start is None else _finite(place, "start", start, (n,)).copy()
    return matrix, q, friction, impulse.reshape(-1, 3)


def _finite(place, name, value, shape):
    """An array of this shape, of finite numbers, from one number for all or an array."""
    array = np.asarray(value, dtype=float)
    if array.ndim and array.shape != shape:
        raise ValueError(f"{place}: {name} must have shape {shape} to go with W, got {array.shape}")
    if not np.isfinite(array).all():
        row = int(np.argmin(np.isfinite(array)))
        raise ValueError(f"{place}: {name}[{row}] is {array.flat[row]}; every number must be finite")
    return np.ascontiguousarray(np.broadcast_to(array, shape))


def _checked_limits(tolerance, iterations):
    """Tolerance as a float above 0 and iterations as a whole number of at least 0."""
    if not is_number(tolerance) or not 0.0 < tolerance < math.inf:
        raise ValueError(f"solve_cone: tolerance must be a number above 0, got {tolerance!r}")
    if not is_whole(iterations) or iterations < 0:
        raise ValueError(f"solve_cone: iterations must be a whole number of at least 0, got {iterations!r}")
    return float(tolerance), int(iterations)

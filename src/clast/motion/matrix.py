"""Cone problems given by a matrix: u = W g + q with W sparse and symmetric, and the public `solve_cone`."""

from typing import NamedTuple

import numpy as np
import scipy.sparse

from ..backend import func, kernel
from ..vec import load, load_matrix
from .cone import solve3
from .solvers import solve

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


def sweep_row(c, first, order, blocks, impulse):
    """Solve one cone of a colour; cones of one colour do not meet in W, so no row reads what another writes."""
    i = order[first + c]
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
        launch = kernel(sweep_row, grain=64)
        for first, last in zip(self.colours, self.colours[1:], strict=False):
            launch(int(last - first), int(first), self.order, self.blocks, impulse)


class ConeSolution(NamedTuple):
    """What `solve_cone` returns."""

    impulse: np.ndarray  # (3c,) normal, tangent, tangent of each cone; finite and inside the cones
    velocity: np.ndarray  # (3c,) W impulse + q
    residual: (
        float  # |r - P(r - rho u)| / (rho |q|) with rho = 1 / largest diagonal entry of W, after the last iteration
    )
    iterations: int
    converged: bool  # residual <= tolerance


def solve_cone(W, q, mu, *, solver="apgd", tolerance=1e-8, iterations=5000, coulomb=False, start=None):
    """x"""
    cones = MatrixCones(W.tocsr(), q, mu)
    impulse = np.zeros((cones.count, 3)) if start is None else start.reshape(-1, 3).copy()
    found = solve(cones, impulse, solver=solver, tolerance=tolerance, iterations=iterations)
    return ConeSolution(found.impulse.ravel(), found.velocity.ravel(), *found[2:])

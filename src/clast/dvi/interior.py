"""An interior-point method for cone problems given by a matrix: the few that gradients cannot finish.

Where bodies are over-supported W is singular, and where they differ much in mass or reach it is badly conditioned besides;
first-order solvers then need thousands of iterations for the last digits. Twenty or so steps of Newton's method along
the central path, each a sparse factorisation, do not mind. A primal-dual method with Nesterov-Todd scaling and
Mehrotra's predictor and corrector, as in textbooks on cone programming (Andersen, Dahl & Vandenberghe 2003).

The problem is scaled to cones |t| <= a: impulse g = scale x and velocity y = scale u, so that both x and y lie in them.
Vectors here are (c,3), one row a cone; products of matrices are over all cones at once.
"""

import numpy as np
import scipy.sparse
import scipy.sparse.linalg

FLIP = np.array([1.0, -1.0, -1.0])
UNIT = np.array([1.0, 0.0, 0.0])


def margin(x):
    """a^2 - |t|^2 of each row: above zero inside the cone."""
    return np.maximum(x[:, 0] ** 2 - x[:, 1] ** 2 - x[:, 2] ** 2, 1e-300)


def jordan(x, y):
    """The product of the cones' algebra: (x.y, x_0 y_t + y_0 x_t)."""
    product = x[:, :1] * y + y[:, :1] * x
    product[:, 0] = np.einsum("ci,ci->c", x, y)
    return product


def divide(x, r):
    """y with jordan(x, y) = r."""
    y = np.empty_like(r)
    y[:, 0] = np.einsum("ci,ci->c", x * FLIP, r) / margin(x)
    y[:, 1:] = (r[:, 1:] - y[:, :1] * x[:, 1:]) / x[:, :1]
    return y


def apply(matrices, x):
    return np.einsum("cij,cj->ci", matrices, x)


def reach(x, d):
    """The largest part, at most 1, of the way from x along d that stays inside all cones."""
    a = d[:, 0] ** 2 - d[:, 1] ** 2 - d[:, 2] ** 2
    b = np.einsum("ci,ci->c", x * FLIP, d)
    c = margin(x)
    under = b * b - a * c
    q = -(b + np.copysign(np.sqrt(np.maximum(under, 0.0)), b))
    roots = np.stack([q / a, c / q, np.where(d[:, 0] < 0.0, -x[:, 0] / d[:, 0], np.inf)])
    roots[:2, under < 0.0] = np.inf
    roots[~(roots > 0.0)] = np.inf
    return min(1.0, float(roots.min()))


def scaling(x, y):
    """Nesterov-Todd scaling: symmetric matrices V (c,3,3), and their inverses, with V y = V^-1 x."""
    mx, my = margin(x), margin(y)
    ratio = (mx / my) ** 0.25
    x = x / np.sqrt(mx)[:, None]
    y = y / np.sqrt(my)[:, None]
    middle = (x + FLIP * y) / np.sqrt(2.0 + 2.0 * np.einsum("ci,ci->c", x, y))[:, None]
    v = (middle + UNIT) / np.sqrt(2.0 * (middle[:, 0] + 1.0))[:, None]
    flat = FLIP * v
    forth = ratio[:, None, None] * (2.0 * v[:, :, None] * v[:, None, :] - np.diag(FLIP))
    back = (2.0 * flat[:, :, None] * flat[:, None, :] - np.diag(FLIP)) / ratio[:, None, None]
    return forth, back


def interior_point(matrix, q, mu, check, steps=40):
    """Impulses (c,3) close to the solution, strictly inside their cones, and the number of steps taken.

    matrix: scipy sparse (3c,3c); q (c,3); mu (c,); check(impulse): the residual, and whether that is good enough.
    Numbers that run out of range end the search; the best impulse met is returned.
    """
    with np.errstate(all="ignore"):
        return _central_path(matrix, q, mu, check, steps)


def _central_path(matrix, q, mu, check, steps):
    c = len(mu)
    normal = 1.0 / np.sqrt(matrix.diagonal()[::3])
    scale = np.column_stack([normal, mu * normal, mu * normal])
    diagonal = scipy.sparse.diags_array(scale.ravel())
    a = (diagonal @ matrix @ diagonal).tocsr()
    b = scale * q
    unit = float(np.abs(b).max()) or 1.0
    b = b / unit
    x = np.tile(UNIT, (c, 1))
    y = x.copy()
    best, least = np.zeros((c, 3)), np.inf
    for step in range(steps):
        miss = (a @ x.ravel()).reshape(c, 3) + b - y
        impulse = unit * scale * x
        residual, enough = check(impulse)
        if residual < least:
            best, least = impulse, residual
        if enough or not np.isfinite(residual):
            return best, step
        move = _newton_step(a, x, y, miss)
        if move is None:
            return best, step
        x, y = x + move[0], y + move[1]
    return best, steps


def _newton_step(a, x, y, miss):
    """Changes of x and y: Mehrotra's predictor says how much to centre, its product corrects; None where it fails."""
    c = len(x)
    forth, back = scaling(x, y)
    both = back @ back
    middle = apply(forth, y)
    rows = np.arange(c + 1)
    system = (a + scipy.sparse.bsr_array((both, rows[:-1], rows), shape=a.shape)).tocsc()
    try:
        # The matrix is symmetric and positive: no pivots are needed, and the order may look at fill alone.
        factors = scipy.sparse.linalg.splu(
            system, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options={"SymmetricMode": True}
        )
    except RuntimeError:
        return None

    def direction(target):
        wish = apply(back, divide(middle, target))
        dx = factors.solve((wish - miss).ravel()).reshape(c, 3)
        return dx, wish - apply(both, dx)

    square = jordan(middle, middle)
    dx, dy = direction(-square)
    centre = (1.0 - min(reach(x, dx), reach(y, dy))) ** 3 * float((x * y).sum()) / c
    correction = jordan(apply(back, dx), apply(forth, dy))
    dx, dy = direction(centre * UNIT - square - correction)
    part = min(1.0, 0.99 * min(reach(x, dx), reach(y, dy)))
    return part * dx, part * dy

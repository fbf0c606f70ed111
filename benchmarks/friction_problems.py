"""The cone solvers on 36 friction problems recorded from simulations (Siconos' FCLib), from zero impulses.

    python benchmarks/friction_problems.py               # the tables of docs/solvers.md, a few minutes
    python benchmarks/friction_problems.py --each        # also one line a problem: residuals, iterations
    python benchmarks/friction_problems.py --only apgd

Counted are problems that reach a residual of 1e-4 within 1,000 iterations and of 1e-8 within 5,000; the residual is
|r - P(r - rho u)| / (rho |q|), rho = 1 / max diag(W), computed here anew from the impulses that come back. `agree` are the
problems whose velocity is within 1e-5 |q| of the stored solution of the cone problem; true Coulomb friction has
another solution, so there it is left out.
"""

import argparse
import time

import numpy as np
import scipy.sparse
from common import ROOT

from clast.dvi.matrix import solve_cone
from clast.dvi.solvers import SOLVERS

PROBLEMS = ROOT.parent / "shared" / "data" / "friction_problems"
GOALS = ((1e-4, 1000), (1e-8, 5000))


def problems():
    """(name, W, q, mu, stored velocity) of every recorded problem."""
    for path in sorted((PROBLEMS / "problem").glob("*.npz")):
        stored, problem = np.load(PROBLEMS / "solution" / path.name), np.load(path)
        W = scipy.sparse.csr_array((problem["data"], problem["indices"], problem["indptr"]), shape=problem["shape"])
        yield path.stem, W, problem["q"], problem["mu"], stored["u"]


def nearest(x, mu):
    """Orthogonal projection onto the cones |t| <= mu a; rows (c,3) with the normal first."""
    a, slide = x[:, 0], np.hypot(x[:, 1], x[:, 2])
    height = np.maximum((a + mu * slide) / (1.0 + mu * mu), 0.0)
    kept = mu * height / np.where(slide > 0.0, slide, 1.0)
    return np.where((slide <= mu * a)[:, None], x, np.column_stack([height, kept * x[:, 1], kept * x[:, 2]]))


def residual_of(W, q, mu, impulse, coulomb):
    """The residual of the cone problem or of Coulomb's law, from the impulse alone."""
    rho, r, u = 1.0 / W.diagonal().max(), impulse.reshape(-1, 3), (W @ impulse + q).reshape(-1, 3)
    if coulomb:
        u[:, 0] += mu * np.hypot(u[:, 1], u[:, 2])
    return np.linalg.norm(r - nearest(r - rho * u, mu)) / (rho * np.linalg.norm(q))


def run(solver, coulomb, finish, each):
    """One line of the table: how many problems reach each goal, how many agree, which miss, iterations, seconds."""
    reached, missed, agree, iterations, seconds = [0, 0], [], 0, 0, 0.0
    for name, W, q, mu, stored in problems():
        told = []
        for k, (tolerance, most) in enumerate(GOALS):
            began = time.perf_counter()
            found = solve_cone(
                W, q, mu, solver=solver, tolerance=tolerance, iterations=most, coulomb=coulomb, finish=finish
            )
            seconds += time.perf_counter() - began
            if not np.isfinite(found.impulse).all():
                raise SystemExit(f"{name}: an impulse is not finite")
            residual = residual_of(W, q, mu, found.impulse, coulomb)
            if found.converged and residual > 1.01 * tolerance:
                raise SystemExit(f"{name}: said to be converged, but the residual is {residual:.1e}")
            reached[k] += found.converged
            told.append(f"{residual:.1e} in {found.iterations}")
        iterations += found.iterations
        off = np.linalg.norm(found.velocity - stored) / np.linalg.norm(q)
        agree += off <= 1e-5
        if not found.converged:
            missed.append(f"{name} ({residual:.0e})")
        if each:
            print(f"  {name:40} {told[0]:18} {told[1]:18} |u - stored| / |q| {off:.1e}")
    return reached, agree, missed, iterations, seconds


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--each", action="store_true", help="one line a problem")
    parser.add_argument("--only", choices=SOLVERS, help="one solver")
    options = parser.parse_args()
    print(f"{sum(1 for _ in problems())} problems")
    solve_cone(np.eye(3), np.ones(3), 0.5)  # kernels are compiled or read before the clock starts
    for coulomb in (False, True):
        print(f"\n{'true Coulomb friction' if coulomb else 'cone problem'}\n")
        print("| solver | 1e-4 in 1,000 | 1e-8 in 5,000 | agree | iterations in all | s | missed at 1e-8 |")
        print("|---|---|---|---|---|---|---|")
        for solver in [options.only] if options.only else SOLVERS:
            for finish in (False, True):
                reached, agree, missed, iterations, seconds = run(solver, coulomb, finish, options.each)
                name = f"{solver}{', finish' if finish else ''}"
                agree = "" if coulomb else agree
                told = ", ".join(missed) if len(missed) <= 6 else f"{len(missed)} problems"
                print(f"| {name} | {reached[0]} | {reached[1]} | {agree} | {iterations:,} | {seconds:.1f} | {told} |")


if __name__ == "__main__":
    main()

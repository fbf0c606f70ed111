"""Ways to let a pile come to rest, on the same piles: the solvers of clast, small steps with soft contacts, ADMM, and a Newton method on compliant contacts.

    python benchmarks/rest_candidates.py                        # 1,000 balls in a box and 3,000 in a shaft, about half an hour on one core
    python benchmarks/rest_candidates.py --pile wide            # 20,000 balls, those of the candidates that take no more than some tenths of a second a step
    python benchmarks/rest_candidates.py --pile box --only clast admm

falls    balls fall from a lattice, h = 5e-3 s, gravity, friction and materials of `complementarity.settled`: median speed after so many seconds,
         deepest overlap, contacts, processor time a step (mean of the last 50).
solves   one step of a pile that settles (the state of the default one second after the start): error of the velocities of bodies against a solve to
         1e-9 m/s, root mean square as a part of g h, and the residual of contacts where it means something.

Candidates that clast does not have are prototypes: short, correct, compiled by numba or SciPy's sparse matrices, one thread. Their times tell the order of
magnitude. Every candidate finds its contacts by clast, starts with the impulses of the step before, and runs on one thread.

small steps   n steps of h / n with contacts found once and soft normals, one sweep with the push and one without in each: Macklin et al. 2019 and "soft step"
              of Catto 2024. As stiff as its rule allows, a quarter of the rate of steps; damping ratio 10; push at most 3 m/s.
admm          velocities with M + rho D D^T factorised once a step, slack velocities in the dual cones by projection; its multipliers are the impulses.
sap           contacts with a little compliance (near-rigid rule), an unconstrained convex problem for velocities, Newton with an exact line search: Castro et al. 2022.
"""

import argparse
import math
import os
import time
from functools import partial

os.environ.setdefault("NUMBA_NUM_THREADS", "1")

import numba
import numpy as np
import scipy.sparse as sparse
from complementarity import RADIUS, STEP, cones_of
from ellipsoids import show
from scipy.sparse.linalg import splu

import clast
from clast.dvi import long_waves, solvers
from clast.kernels.rows import CENTRES, PER_INERTIA, PER_MASS, SPINS, VELOCITIES

GRAVITY = 9.81
EXACT = 100_000  # iterations of the solve that others are measured against, at the most
NEAR_RIGID = 1.0  # beta of the compliance of Castro et al. 2022
PILES = {"box": (1_000, 10), "shaft": (3_000, 5), "wide": (20_000, 25)}  # balls, and how many of them side by side
SLOW = ("admm", "sap", "sap, softer")  # not with 20,000 balls: a factorisation alone takes seconds


def pile(name):
    """A simulation of balls about to fall into a box; the walls of the shaft have no friction."""
    count, side = PILES[name]
    material = clast.Material(density=2500, friction=0.5, restitution=0.0)
    wall = clast.Material(density=2500, friction=0.0, restitution=0.0) if name == "shaft" else material
    length, scene = side * 2.2 * RADIUS, clast.Scene()
    scene.add(clast.Plane(), material=material)
    for normal, position in (((1, 0, 0), 0.0), ((-1, 0, 0), length), ((0, 1, 0), 0.0), ((0, -1, 0), length)):
        scene.add(clast.Plane(normal), position=tuple(position * abs(n) for n in normal), material=wall)
    box = ((0, 0, 0), (length, length, 2.3 * RADIUS * (count / side**2 + 3)))
    scene.fill(clast.Sphere(RADIUS), count=count, box=box, material=material, method="lattice", jitter=0.05, seed=1)
    return clast.Simulation(scene, clast.Complementarity(), dt=STEP)


# Small steps with soft contacts.


@numba.njit(error_model="numpy")
def velocity_there(rows, i, arm):
    """Velocity (3,) of body i at its arm (3,)."""
    x, y, z = rows[i, 8], rows[i, 9], rows[i, 10]
    return (
        rows[i, 4] + y * arm[2] - z * arm[1],
        rows[i, 5] + z * arm[0] - x * arm[2],
        rows[i, 6] + x * arm[1] - y * arm[0],
    )


@numba.njit(error_model="numpy")
def push(rows, i, arm, x, y, z):
    """Give body i the impulse (x, y, z) at its arm (3,)."""
    mass, turn = rows[i, 7], rows[i, 11]
    rows[i, 4] += mass * x
    rows[i, 5] += mass * y
    rows[i, 6] += mass * z
    rows[i, 8] += turn * (arm[1] * z - arm[2] * y)
    rows[i, 9] += turn * (arm[2] * x - arm[0] * z)
    rows[i, 10] += turn * (arm[0] * y - arm[1] * x)


@numba.njit(error_model="numpy")
def sweep(body, normal, arm, gap, limit, size, rows, way, impulse, h, soft):
    """One sweep over the contacts, each solved against the newest velocities; soft: rate [1/s] of the push, scales of mass and impulse."""
    rate, mass_scale, impulse_scale = soft
    for c in range(len(gap)):
        a, b = body[c, 0], body[c, 1]
        n, one, two, g = normal[c], arm[c, :3], arm[c, 3:], impulse[c]
        apart = gap[c]
        for j in range(3):
            apart += n[j] * (way[b, j] - way[a, j])
        va, vb = velocity_there(rows, a, one), velocity_there(rows, b, two)
        ux, uy, uz = vb[0] - va[0], vb[1] - va[1], vb[2] - va[2]
        un, gn = ux * n[0] + uy * n[1] + uz * n[2], g[0] * n[0] + g[1] * n[1] + g[2] * n[2]
        bias, of_mass, of_impulse = 0.0, 1.0, 0.0
        if apart > 0.0:
            bias = apart / h
        elif rate > 0.0:
            bias, of_mass, of_impulse = max(rate * apart, -3.0), mass_scale, impulse_scale
        new = max(gn - of_mass * (un + bias) / size[c, 0] - of_impulse * gn, 0.0)
        # Across the normal bodies are round, so the normal impulse does not change what is seen there.
        tx = g[0] - gn * n[0] - (ux - un * n[0]) / size[c, 1]
        ty = g[1] - gn * n[1] - (uy - un * n[1]) / size[c, 1]
        tz = g[2] - gn * n[2] - (uz - un * n[2]) / size[c, 1]
        most, far = limit[c, 0] * new, math.sqrt(tx * tx + ty * ty + tz * tz)
        part = most / far if far > most else 1.0
        x, y, z = new * n[0] + part * tx, new * n[1] + part * ty, new * n[2] + part * tz
        push(rows, a, one, g[0] - x, g[1] - y, g[2] - z)
        push(rows, b, two, x - g[0], y - g[1], z - g[2])
        g[0], g[1], g[2] = x, y, z


@numba.njit(error_model="numpy")
def substeps(body, normal, arm, gap, limit, size, rows, way, impulse, gravity, dt, many):
    """Velocities, and the way (n,3) of bodies, at the end of a step of `many` small ones; impulse (c,3): of a small step, in place."""
    h = dt / many
    frequency = 2.0 * math.pi * 0.25 / h
    one = 20.0 + h * frequency
    two = h * frequency * one
    soft = (frequency / one, two / (1.0 + two), 1.0 / (1.0 + two))
    for _ in range(many):
        for i in range(len(way)):
            for j in range(3):
                rows[i, 4 + j] += h * gravity[j] if rows[i, 7] > 0.0 else 0.0
        for c in range(len(gap)):
            g = impulse[c]
            push(rows, body[c, 0], arm[c, :3], -g[0], -g[1], -g[2])
            push(rows, body[c, 1], arm[c, 3:], g[0], g[1], g[2])
        sweep(body, normal, arm, gap, limit, size, rows, way, impulse, h, soft)
        for i in range(len(way)):
            for j in range(3):
                way[i, j] += h * rows[i, 4 + j]
        sweep(body, normal, arm, gap, limit, size, rows, way, impulse, h, (0.0, 1.0, 0.0))


def small_velocities(constraints, rows, impulse, gravity, many):
    """Velocities in rows after the step, in place; returns the way (n,3) of bodies."""
    way = np.zeros((len(rows), 3))
    about = constraints.body, constraints.normal, constraints.arm, constraints.gap, constraints.limit, constraints.size
    substeps(*about, rows, way, impulse, np.array(gravity, float), STEP, many)
    return way


def small_step(sim, many):
    """A step of a simulation by small ones."""
    mover, state = sim.stepper, sim.state
    mover._touch()
    constraints = mover.constraints
    chunks = (len(constraints.gap) + 255) // 256
    impulse = np.zeros((len(constraints.gap), 3))
    mover.recall_impulses(impulse)
    way = small_velocities(constraints, state.rows, impulse, sim.scene.gravity, many)
    state.rows[:, CENTRES] += way
    mover._forget()
    mover._kernels.remember(chunks, 256, constraints, state.points, impulse, state.history)
    mover._find_pairs()
    mover.steps += 1


# Solvers with sparse factorisations: functions of a `clast.dvi.solvers.Run`, as in docs/solvers.md.


def assembled(cones):
    """D^T (3c,6n) in world axes, mass (6n,), free velocities (6n,) of the bodies that can move, and their rows."""
    table, rows = cones.constraints, cones.rows
    free = np.flatnonzero(rows[: len(cones.free), PER_MASS] > 0.0)
    column = np.full(len(rows), -1)
    column[free] = 6 * np.arange(len(free))
    at, to, values = [], [], []
    for side, sign in ((0, -1.0), (1, 1.0)):
        body, arm = table.body[:, side], table.arm[:, 3 * side : 3 * side + 3]
        c = np.flatnonzero(column[body] >= 0)
        first, r = column[body[c]], arm[c]
        for j in range(3):
            k, m = (j + 1) % 3, (j + 2) % 3
            # (w x r)_j = w_k r_m - w_m r_k
            for there, value in ((j, np.ones(len(c))), (3 + k, r[:, m]), (3 + m, -r[:, k])):
                at.append(3 * c + j)
                to.append(first + there)
                values.append(sign * value)
    shape = 3 * len(table.gap), 6 * len(free)
    ways = sparse.csr_matrix((np.concatenate(values), (np.concatenate(at), np.concatenate(to))), shape=shape)
    mass = np.repeat(np.stack([1.0 / rows[free, PER_MASS], 1.0 / rows[free, PER_INERTIA]], 1), 3, axis=1).ravel()
    return ways, mass, cones.free[free].ravel(), free


def factorised(matrix):
    """Sparse factors of a symmetric positive matrix."""
    return splu(matrix.tocsc(), permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options={"SymmetricMode": True})


def in_cones(x, n, slope):
    """Nearest points (c,3) of cones about n (c,3) whose half-angles have these tangents (c,)."""
    along = (x * n).sum(1)
    across = x - along[:, None] * n
    far = np.sqrt((across**2).sum(1))
    height = np.maximum((along + slope * far) / (1.0 + slope**2), 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        edge = height[:, None] * (n + np.where(far > 0.0, slope / far, 0.0)[:, None] * across)
    inside, outside = far <= slope * along, slope * far <= -along
    return np.where(inside[:, None], x, np.where(outside[:, None], 0.0, edge))


def admm(run, penalty=30.0, over=1.6):
    """min of the energy over velocities v and slack z = D^T v + b in the dual cones, with one factorisation a solve."""
    cones = run.cones
    ways, mass, free, _ = assembled(cones)
    n, mu = cones.normal, cones.limit[:, 0]
    bias = (cones.constraints.bias + cones.shift)[:, None] * n
    weight = penalty / cones.size.mean(1)
    per_row = np.repeat(weight, 3)
    factors = factorised(sparse.diags(mass) + ways.T @ sparse.diags(per_row) @ ways)
    y = -run.best / weight[:, None]
    z = run.u.copy()
    z += in_cones(-z, n, mu)  # what is left of z in the dual cone
    while run.used < run.most:
        v = factors.solve(mass * free + ways.T @ (per_row * (z - bias - y).ravel()))
        u = over * ((ways @ v).reshape(-1, 3) + bias) + (1.0 - over) * z
        impulse = in_cones(-(u + y), n, mu)
        z = u + y + impulse
        y = -impulse
        run.used += 1
    run.best[:] = impulse * weight[:, None]


def sap_impulse(speed, wanted, normal, mu, soft, slip):
    """Impulses (c,3) of compliant contacts at these velocities (c,3), and their derivatives (c,3,3) by -speed.

    wanted (c,): normal velocity at which a contact begins to press; soft, slip (c,): compliance along and across [1/kg].
    """
    un = (speed * normal).sum(1)
    across = -(speed - un[:, None] * normal) / slip[:, None]
    pressed, far = (wanted - un) / soft, np.sqrt((across**2).sum(1))
    ratio = mu * slip / soft
    stuck = far <= mu * pressed
    slides = ~stuck & (pressed + ratio * far > 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        t = np.where(far[:, None] > 0.0, across / far[:, None], 0.0)
        height = (pressed + ratio * far) / (1.0 + mu * ratio)
        part = np.where(slides, mu * height / far, 0.0)
    pushed = np.where(stuck, pressed, np.where(slides, height, 0.0))
    impulse = pushed[:, None] * normal + np.where(stuck, 1.0, part)[:, None] * across
    nn = normal[:, :, None] * normal[:, None, :]
    tt = t[:, :, None] * t[:, None, :]
    plane = np.eye(3) - nn
    steep = normal + mu[:, None] * t
    shrink = slides / ((1.0 + mu * ratio) * soft)
    slope = shrink[:, None, None] * steep[:, :, None] * steep[:, None, :]
    slope += (part / slip)[:, None, None] * (plane - tt)
    slope += stuck[:, None, None] * (nn / soft[:, None, None] + plane / slip[:, None, None])
    return impulse, slope


def sap(run, slide=1e-3, exact=1e-6):
    """Newton's method on min over v of |v - free|^2 M / 2 + energy of compliant contacts, slide times softer across; stops at this part of the momentum."""
    cones = run.cones
    ways, mass, free, moving = assembled(cones)
    table, n, mu = cones.constraints, cones.normal, cones.limit[:, 0]
    soft = NEAR_RIGID**2 / (4.0 * math.pi**2) * cones.size.mean(1)
    slip = slide * cones.size.mean(1)
    wanted = -table.gap / (STEP * (1.0 + NEAR_RIGID / math.pi))
    held = wanted, n, mu, soft, slip
    v = free.copy()  # as the step before left them
    v[2::6] += GRAVITY * STEP
    scale = np.sqrt(1.0 / mass)
    while True:
        impulse, slope = sap_impulse((ways @ v).reshape(-1, 3), *held)
        given = ways.T @ impulse.ravel()
        gradient = mass * (v - free) - given
        most = max(np.linalg.norm(scale * mass * v), np.linalg.norm(scale * given), 1e-300)
        if np.linalg.norm(scale * gradient) <= exact * most or run.used >= run.most:
            break
        index = np.arange(len(n))
        block = sparse.bsr_matrix((slope, index, np.arange(len(n) + 1)), shape=(3 * len(n), 3 * len(n)))
        way = -factorised(sparse.diags(mass) + ways.T @ (block @ ways)).solve(gradient)
        v = v + along_way(v, way, ways, mass, free, held) * way
        run.used += 1
    run.best[:] = impulse


def along_way(v, way, ways, mass, free, held):
    """How far to go along the way, up to 1.5: where the slope of the energy is nothing (it grows along the way)."""
    u, du = (ways @ v).reshape(-1, 3), (ways @ way).reshape(-1, 3)
    bend, start = (way * mass * way).sum(), (way * mass * (v - free)).sum()

    def slope(part):
        return start + part * bend - (sap_impulse(u + part * du, *held)[0] * du).sum()

    low, high, part = 0.0, 1.5, 1.0
    first = abs(slope(0.0))
    for _ in range(30):
        now = slope(part)
        if abs(now) <= 1e-3 * first:
            break
        low, high = (part, high) if now < 0.0 else (low, part)
        part = 0.5 * (low + high)
    return part


solvers.SOLVERS |= {"admm": admm, "sap": sap, "sap, softer": partial(sap, slide=1e-2)}


# What is compared.


def candidate(solver="apgd", tall=None, many=0, parts=True, **options):
    """What `falls` and `solves` are told: a method, from what height on there is a coarse space, small steps, whether overlaps are parted by moving bodies."""
    method = clast.Complementarity(solver=solver, **options)
    return {"method": method, "tall": long_waves.TALL if tall is None else tall, "many": many, "parts": parts}


CANDIDATES = {
    "clast": candidate(),
    "without coarse space": candidate(tall=math.inf),
    "barzilai-borwein": candidate("barzilai-borwein"),
    "gauss-seidel": candidate("gauss-seidel"),
    "jacobi": candidate("jacobi"),
    "small steps, 10": candidate(many=10),
    "small steps, 20": candidate(many=20),
    "small steps, 40": candidate(many=40),
    "admm": candidate("admm", iterations=40),
    "sap": candidate("sap", iterations=30, parts=False),
    "sap, softer": candidate("sap, softer", iterations=30, parts=False),
}


def use(sim, chosen):
    """Let a simulation go on with a candidate."""
    sim.method = sim.stepper.method = chosen["method"]
    long_waves.TALL = chosen["tall"]
    if not chosen["parts"]:
        sim.stepper._part = lambda: None
    return sim


def median_speed(sim):
    velocity = sim.bodies.velocity[sim.bodies.mass < np.inf]
    return float(np.median(np.linalg.norm(velocity, axis=1)))


def falls(name, label, seconds):
    """A pile falls and settles with one candidate."""
    chosen = CANDIDATES[label]
    sim = use(pile(name), chosen)
    sim.step(1)
    row, spent, iterations = {"pile": name, "candidate": label}, [], []
    for step in range(1, round(max(seconds) / STEP)):
        began = time.process_time()
        if chosen["many"]:
            small_step(sim, chosen["many"])
        else:
            sim.step()
            iterations.append(sim.stepper.solution.iterations)
        spent.append(time.process_time() - began)
        for t in seconds:
            if step + 1 == round(t / STEP):
                row[f"mm/s after {t} s"] = 1e3 * median_speed(sim)
    gap = sim.stepper.constraints.gap
    row |= {"overlap/r": -float(gap.min()) / RADIUS, "contacts": len(gap)}
    row |= {"iterations": float(np.mean(iterations[-50:])) if iterations else 2 * chosen["many"]}
    return row | {"ms": 1e3 * float(np.mean(spent[-50:]))}


def solves(name):
    """One step of a pile that settles, by all candidates."""
    sim = pile(name)
    sim.step(round(1.0 / STEP))
    cones, remembered = cones_of(sim)
    before, moving = sim.state.rows.copy(), sim.state.rows[:, PER_MASS] > 0.0
    columns, table, cones.typical = np.r_[VELOCITIES, SPINS], [], sim.state.size

    def note(label, iterations=0, residual=math.nan, ms=math.nan):
        error = (sim.state.rows[:, columns] - exact)[moving][:, :3]
        row = {"candidate": label, "iterations": iterations, "residual": residual, "ms": ms}
        table.append(row | {"error / g h": float(np.sqrt((error**2).sum(1).mean())) / (GRAVITY * STEP)})

    long_waves.TALL = math.inf
    found = solvers.solve(cones, remembered.copy(), tolerance=1e-9, iterations=EXACT)
    exact = sim.state.rows[:, columns].copy()
    note("exact", found.iterations, found.residual)
    cones.begin(remembered)
    note("impulses of the step before")
    for label, chosen in CANDIDATES.items():
        if name == "wide" and label in SLOW:
            continue
        use(sim, chosen)
        impulse, began, method = remembered.copy(), time.process_time(), chosen["method"]
        if chosen["many"]:
            sim.state.rows[:] = before
            impulse /= chosen["many"]
            small_velocities(cones.constraints, sim.state.rows, impulse, sim.scene.gravity, chosen["many"])
            iterations, residual = 2 * chosen["many"], math.nan
        else:
            most = 40 if method.iterations == "auto" else method.iterations
            about = {"solver": method.solver, "tolerance": 1e-12, "iterations": most}
            found = solvers.solve(cones, impulse, **about, **method.options)
            iterations, residual = found.iterations, math.nan if "sap" in label else found.residual
        note(label, iterations, residual, 1e3 * (time.process_time() - began))
    return table


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pile", choices=PILES, nargs="*", default=["box", "shaft"])
    parser.add_argument("--only", choices=CANDIDATES, nargs="*", default=list(CANDIDATES))
    parser.add_argument("--seconds", type=float, nargs="*", default=[1.0, 1.5, 2.0, 3.0])
    parser.add_argument("--table", choices=("falls", "solves"), nargs="*", default=["solves", "falls"])
    options = parser.parse_args()
    for name in options.pile:
        if "solves" in options.table:
            show({f"solves, {name}": solves(name)})
        for label in options.only if "falls" in options.table else ():
            if not (name == "wide" and label in SLOW):
                show({f"falls, {name}": [falls(name, label, options.seconds)]})


if __name__ == "__main__":
    main()

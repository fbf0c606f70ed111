"""The coarse space of a pile: the pressure in it as a whole, corrected at one stroke before the iterations begin.

An iteration carries a change from a contact to the next ones. What a tall pile lacks together, the weight of all that lies above or the blow that stops
all of it, shows in no contact, and the iterations that would find it grow with the height. So impulses g are first multiplied by a smooth
factor, g_c (1 + f(x_c)), with f between the nodes of a coarse grid linear along each axis. Cones are kept by multiplying, whatever the
factor above 0, and where g is nearly in balance so is the product, up to the slope of f: these are the long waves, and no
others. The values s of f at the nodes minimise the energy g.W g / 2 + q.g,

    sum_b C_ab s_b = - sum_c phi_a(x_c) g_c . u_c,    s >= -1,    C_ab = sum_i B_ia . M_i^-1 B_ib

with B_ia what the impulses times the hat function phi_a do to body i. B is taken with phi linear around the centre of the body, so that a body adds to the eight
nodes of its cell alone, as an element does in the method of finite elements. The way to go is exact: the energy along f is quadratic
and measured with the contacts themselves, so it never rises.
"""

from typing import NamedTuple

import numpy as np

from ..kernels import primitives
from ..kernels.backend import func, kernel
from ..kernels.reached import stored
from ..kernels.rows import CENTRE, PER_INERTIA, PER_MASS
from ..kernels.sums import CHUNK, cut, high_half, limit_above
from ..motion.rotation import turn_of
from .constraints import arms
from .others import ALONE, order_free

# Bound to the kernels: what the scene has.
COUPLES = False

TALL = 64.0  # typical radii over which contacts are spread; what is smaller is left to the iterations, which rested a pile of 27 layers sooner
CELL = 24.0  # edge of a cell in typical radii: shorter waves are left to the iterations
MOST = 4096  # cells; bodies that are scattered wider have larger ones
ELEMENT = 44  # numbers of a cell: half of an 8 by 8 matrix, and 8 loads
MOMENTS = 28  # numbers a body has in `moments_chunk`
SWEEPS = 400  # over the nodes at the most
SMALL = 1e-5  # change of the factors that ends the sweeps


class Grid(NamedTuple):
    """Cells of the same size that cover all contacts."""

    low: tuple  # (3,) [m]
    edge: float  # [m]
    cells: tuple  # (3,) along each axis


def ends_chunk(c, chunk, table, most):
    """The largest of each column of one chunk of a table (n,k) and of its negative: most (chunks,2 k); NaN if there is any in the chunk."""
    width = table.shape[1]
    for j in range(2 * width):
        most[c, j] = -np.inf
    unknown = 0.0
    for row in range(c * chunk, min(len(table), (c + 1) * chunk)):
        for j in range(width):
            x = table[np.uintp(row), j]
            unknown = x if x != x else unknown
            most[c, j], most[c, width + j] = max(most[c, j], x), max(most[c, width + j], -x)
    if unknown != unknown:
        for j in range(2 * width):
            most[c, j] = unknown


def largest_of(table):
    """The largest of each column of a table (n,k) and of its negative, (2 k,): NumPy takes ten times as long for few columns of many rows."""
    chunks = (len(table) + CHUNK - 1) // CHUNK
    most = np.full((max(chunks, 1), 2 * table.shape[1]), -np.inf)
    kernel(ends_chunk, grain=4)(chunks, CHUNK, table, most)
    return most.max(0)


def grid_of(point, size, others=ALONE):
    """The grid over contact points (c,3) between bodies of this typical radius [m], those of all processes; None if they are near each other."""
    ends = others.largest(*largest_of(point))
    low, high = -np.array(ends[3:]), np.array(ends[:3])
    if not TALL * size < (high - low).max() < np.inf:
        return None
    edge = CELL * size
    while np.prod(np.floor((high - low) / edge) + 1.0) > MOST:
        edge *= 2.0
    return Grid(tuple(low.tolist()), edge, tuple(int(k) + 1 for k in (high - low) / edge))


@func
def place_in(x, grid, axis):
    """Cell of coordinate x along an axis, and where in the cell, 0 to 1; beyond the grid the nearest cell."""
    at = (x - grid.low[axis]) / grid.edge
    cell = min(max(int(at), 0), grid.cells[axis] - 1)
    return cell, at - cell


@func
def cell_of(x, y, z, grid):
    """Number of the cell at a point."""
    i, _ = place_in(x, grid, 0)
    j, _ = place_in(y, grid, 1)
    k, _ = place_in(z, grid, 2)
    return (i * grid.cells[1] + j) * grid.cells[2] + k


def key_row(i, rows, start, grid, key):
    """Cell of body i; the number of cells where it cannot move or touches nothing."""
    key[i] = grid.cells[0] * grid.cells[1] * grid.cells[2]
    if rows[i, PER_MASS] > 0.0 and start[i] < start[i + 1]:
        key[i] = cell_of(rows[i, CENTRE], rows[i, CENTRE + 1], rows[i, CENTRE + 2], grid)


def moments_chunk(c, chunk, rows, start, entry, constraints, impulse, velocity, moments):
    """What the contacts of each body of a chunk do to it: moments (n,28).

    Force 0, torque 3, both times the arm: 6 + 3 j + k for component j and arm k, 15 + 3 j + k; power g.u 24, its share of the two bodies,
    and power times arm 25. Contacts that can pull have another apex and take no part.
    """
    for row in range(c * chunk, min(len(moments), (c + 1) * chunk)):
        i = np.uintp(row)
        for m in range(MOMENTS):
            moments[i, m] = 0.0
        if rows[i, PER_MASS] == 0.0:
            continue
        for at in range(start[i], start[i + np.uintp(1)]):
            e = entry[np.uintp(at)]
            k, side = np.uintp(e >> 1), e & 1
            if constraints.limit[k, 1] > 0.0:
                continue
            one, two = arms(k, constraints)
            x, y, z = two if side else one
            sign = 1.0 if side else -1.0
            fx, fy, fz = sign * impulse[k, 0], sign * impulse[k, 1], sign * impulse[k, 2]
            tx, ty, tz = y * fz - z * fy, z * fx - x * fz, x * fy - y * fx
            power = impulse[k, 0] * velocity[k, 0] + impulse[k, 1] * velocity[k, 1] + impulse[k, 2] * velocity[k, 2]
            if COUPLES:
                lever = sign * constraints.length[k]
                tx += lever * impulse[k, 3]
                ty += lever * impulse[k, 4]
                tz += lever * impulse[k, 5]
                for m in range(3, 6):
                    power += impulse[k, m] * velocity[k, m]
            other = np.uintp(constraints.body[k, 1 - side])
            power *= 0.5 if rows[other, PER_MASS] > 0.0 else 1.0
            moments[i, 0] += fx
            moments[i, 1] += fy
            moments[i, 2] += fz
            moments[i, 3] += tx
            moments[i, 4] += ty
            moments[i, 5] += tz
            moments[i, 24] += power
            for m in range(3):
                arm = x if m == 0 else (y if m == 1 else z)
                moments[i, 6 + m] += fx * arm
                moments[i, 9 + m] += fy * arm
                moments[i, 12 + m] += fz * arm
                moments[i, 15 + m] += tx * arm
                moments[i, 18 + m] += ty * arm
                moments[i, 21 + m] += tz * arm
                moments[i, 25 + m] += power * arm


def bound_row(i, edge, rows, inverse, moments, bound):
    """What body i adds to an element and to a load at the most, (n,2): hat functions are 1 at the most, and their slopes 1 / edge."""
    force, torque = 0.0, 0.0
    for j in range(6):
        most = abs(moments[i, j])
        for k in range(3):
            most += abs(moments[i, 6 + 3 * j + k]) / edge
        force += most * most if j < 3 else 0.0
        torque += most * most if j >= 3 else 0.0
    spin = inverse[i, 0] + inverse[i, 1] + inverse[i, 2] if len(inverse) > 0 else rows[i, PER_INERTIA]
    bound[i, 0] = rows[i, PER_MASS] * force + spin * torque
    bound[i, 1] = abs(moments[i, 24]) + (abs(moments[i, 25]) + abs(moments[i, 26]) + abs(moments[i, 27])) / edge


def element_row(cell, grid, limit, rows, inverse, first, order, moments, element):
    """element (cells,44,2) of one cell: its bodies seen from its eight nodes, the lower half of a symmetric matrix, then the load, as halves of sums that do
    not depend on the order of bodies; limit (2,): of what a body adds to matrix and load."""
    act, move, sums = np.empty((8, 6)), np.empty((8, 6)), np.zeros(ELEMENT)
    for m in range(ELEMENT):
        element[cell, m, 0] = element[cell, m, 1] = 0.0
    for at in range(first[cell], first[cell + 1]):
        i = np.uintp(order[at])
        _, x = place_in(rows[i, CENTRE], grid, 0)
        _, y = place_in(rows[i, CENTRE + 1], grid, 1)
        _, z = place_in(rows[i, CENTRE + 2], grid, 2)
        for a in range(8):
            px, dx = (x, 1.0) if a & 4 else (1.0 - x, -1.0)
            py, dy = (y, 1.0) if a & 2 else (1.0 - y, -1.0)
            pz, dz = (z, 1.0) if a & 1 else (1.0 - z, -1.0)
            phi = px * py * pz
            gx, gy, gz = dx * py * pz / grid.edge, px * dy * pz / grid.edge, px * py * dz / grid.edge
            for j in range(6):
                s = 6 + 3 * j
                act[a, j] = phi * moments[i, j] + gx * moments[i, s] + gy * moments[i, s + 1] + gz * moments[i, s + 2]
            w = turn_of(i, (act[a, 3], act[a, 4], act[a, 5]), rows, inverse)
            for j in range(3):
                move[a, j] = rows[i, PER_MASS] * act[a, j]
                move[a, 3 + j] = w[j]
            slope = gx * moments[i, 25] + gy * moments[i, 26] + gz * moments[i, 27]
            sums[ELEMENT - 8 + a] -= cut(phi * moments[i, 24] + slope, limit[1])
        for a in range(8):
            for b in range(a + 1):
                total = 0.0
                for j in range(6):
                    total += act[a, j] * move[b, j]
                sums[a * (a + 1) // 2 + b] += cut(total, limit[0])
        if at == first[cell + 1] - 1 or (at - first[cell]) % CHUNK == CHUNK - 1:
            for m in range(ELEMENT):
                high = high_half(sums[m], limit[0] if m < ELEMENT - 8 else limit[1])
                element[cell, m, 0] += high
                element[cell, m, 1] += sums[m] - high
                sums[m] = 0.0


@stored()
def assemble(cells, element):
    """The equations of all nodes from elements (cells,44): stencil (nodes,27), neighbour (i, j, k) - 1 of a node at 9 i + 3 j + k, and right side (nodes,)."""
    nx, ny, nz = cells[0] + 1, cells[1] + 1, cells[2] + 1
    stencil, right = np.zeros((nx * ny * nz, 27)), np.zeros(nx * ny * nz)
    for cell in range(len(element)):
        i, j, k = cell // (cells[1] * cells[2]), cell // cells[2] % cells[1], cell % cells[2]
        for a in range(8):
            ai, aj, ak = a >> 2, (a >> 1) & 1, a & 1
            node = ((i + ai) * ny + j + aj) * nz + k + ak
            right[node] += element[cell, ELEMENT - 8 + a]
            for b in range(8):
                other = 9 * ((b >> 2) - ai + 1) + 3 * (((b >> 1) & 1) - aj + 1) + (b & 1) - ak + 1
                one, two = max(a, b), min(a, b)
                stencil[node, other] += element[cell, one * (one + 1) // 2 + two]
    return stencil, right


@stored()
def solve_nodes(cells, stencil, right, sweeps, small):
    """Factors s >= -1 (nodes,) that solve the equations, by sweeps to and fro, each node with the newest values of the others."""
    ny, nz = cells[1] + 1, cells[2] + 1
    count = len(right)
    s = np.zeros(count)
    for sweep in range(sweeps):
        most = 0.0
        for step in range(count):
            node = step if sweep % 2 == 0 else count - 1 - step
            middle = stencil[node, 13]
            if middle <= 0.0:
                continue
            total = right[node]
            for b in range(27):
                value = stencil[node, b]
                if value != 0.0 and b != 13:
                    total -= value * s[node + ((b // 9 - 1) * ny + b // 3 % 3 - 1) * nz + b % 3 - 1]
            new = max(total / middle, -1.0)
            most = max(most, abs(new - s[node]))
            s[node] = new
        if most <= small:
            break
    return s


def stretch_chunk(c, chunk, grid, s, constraints, impulse, trial, least):
    """trial = impulse (1 + f) of one chunk of contacts, f from its values s at the nodes; least (chunks,): the lowest f."""
    ny, nz = grid.cells[1] + 1, grid.cells[2] + 1
    lowest = 0.0
    for row in range(c * chunk, min(len(impulse), (c + 1) * chunk)):
        p = np.uintp(row)
        i, x = place_in(constraints.point[p, 0], grid, 0)
        j, y = place_in(constraints.point[p, 1], grid, 1)
        k, z = place_in(constraints.point[p, 2], grid, 2)
        f = 0.0
        for a in range(8):
            weight = (x if a & 4 else 1.0 - x) * (y if a & 2 else 1.0 - y) * (z if a & 1 else 1.0 - z)
            f += weight * s[((i + (a >> 2)) * ny + j + ((a >> 1) & 1)) * nz + k + (a & 1)]
        if constraints.limit[p, 1] > 0.0:
            f = 0.0
        lowest = min(lowest, f)
        for m in range(impulse.shape[1]):
            trial[p, m] = impulse[p, m] * (1.0 + f)
    least[c] = lowest


def energy_chunk(c, chunk, impulse, velocity, trial, after, terms):
    """terms (2,c): d.u and d.W d of one chunk of contacts for the way d = trial - impulse, with the velocities at both ends."""
    for row in range(c * chunk, min(len(impulse), (c + 1) * chunk)):
        i = np.uintp(row)
        slope, curvature = 0.0, 0.0
        for m in range(impulse.shape[1]):
            d = trial[i, m] - impulse[i, m]
            slope += d * velocity[i, m]
            curvature += d * (after[i, m] - velocity[i, m])
        terms[0, i], terms[1, i] = slope, curvature


def factors(cones, impulse, velocity, grid):
    """Values of f at the nodes of the grid."""
    rows, n = cones.rows, len(cones.free)
    many, chunks = grid.cells[0] * grid.cells[1] * grid.cells[2], (n + CHUNK - 1) // CHUNK
    key, moments = np.empty(n, np.int32), np.empty((n, MOMENTS))
    kernel(key_row)(n, rows, cones.start, grid, key)
    first, order = primitives.group(key, many + 1)
    gather = kernel(moments_chunk, grain=4, COUPLES=cones.has["COUPLES"])
    gather(chunks, CHUNK, rows, cones.start, cones.entry, cones.constraints, impulse, velocity, moments)
    bound = np.empty((n, 2))
    kernel(bound_row)(n, grid.edge, rows, cones.inverse, moments, bound)
    most = cones.others.largest(*np.maximum(largest_of(bound)[:2], 0.0))
    limit = np.array([limit_above(x) for x in most])
    if (limit[np.array(most) != 0.0] == 0.0).any():
        return None  # numbers that no scene has, and whose sums would depend on their order
    element = np.empty((many, ELEMENT, 2))
    fill = kernel(element_row, grain=2, allocates=True)
    fill(many, grid, limit, rows, cones.inverse, first, order, moments, element)
    element = cones.others.add(element)
    return solve_nodes(grid.cells, *assemble(grid.cells, element[:, :, 0] + element[:, :, 1]), SWEEPS, SMALL)


def correct(cones, impulse, space):
    """Give impulses (c,width) inside their cones the long waves that they lack, in place; returns the part of the way that was gone.

    space: Workspace of the solver. Nothing is done where contacts are near each other, or `cones.typical` is 0.
    """
    others = cones.others
    grid = grid_of(cones.constraints.point, cones.typical, others) if cones.typical > 0.0 else None
    if grid is None:
        return 0.0
    (trial, *_), (velocity, after), _ = space.reserve(cones.count, cones.width)
    cones.velocity(impulse, velocity)
    s = factors(cones, impulse, velocity, grid)
    if s is None:
        return 0.0
    chunks = (cones.count + CHUNK - 1) // CHUNK
    least, terms = np.empty(chunks), np.empty((2, cones.count))
    kernel(stretch_chunk, grain=4)(chunks, CHUNK, grid, s, cones.constraints, impulse, trial, least)
    cones.velocity(trial, after)
    kernel(energy_chunk, grain=4)(chunks, CHUNK, impulse, velocity, trial, after, terms)
    slope, curvature = order_free(others, *terms[:, : cones.told])
    if not (slope < 0.0 and curvature > 0.0):
        return 0.0
    lowest = -others.largest(-float(least.min(initial=0.0)))[0]
    way = min(-slope / curvature, 1.0 / -lowest if lowest < 0.0 else np.inf)
    trial -= impulse
    trial *= way
    impulse += trial
    return way

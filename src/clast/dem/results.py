"""What a simulation's list of pairs tells: contacts with their forces, and springs with their energy."""

import numpy as np

from ..kernels.backend import kernel
from ..motion.state import ball_radii
from ..narrow.dispatch import lower_first, measure, select, sort_pairs
from ..narrow.mesh_slots import kept_contacts
from ..shapes.ellipsoid_form import make_forms
from ..tables import FIRST_WALL, MESH, POLYHEDRON, TRIANGLE, Contacts
from . import ellipsoids


def contacts_of(sim):
    """The contacts of the present state: Contacts with slip and force, sorted by pair, then shape.

    The force of a patch is divided among its points as they share its stiffness.
    """
    sim.start()
    state, pairs = sim.state, sim.state.fetch_pairs()
    listed, swap = lower_first(state.shapes, pairs.shape)
    order = sort_pairs(state.shapes, state.label, listed, state.next_label)
    if state.triangulated:
        return with_bumps(sim, pairs, listed, swap, order)
    contacts, source = measure(state.tables, state.label, sim.box, 0.0, listed[order])
    row = order[source]
    # The list has walls second; here the lower number comes first, and force and slip follow.
    sign = np.where(swap[row], -1.0, 1.0)[:, None]
    force, slip = sign * pairs.action[row, :3], sign * pairs.memory[row, :3]
    if state.polyhedra:
        overlap = np.maximum(-contacts.gap, 0.0)
        whole = np.bincount(source, overlap, minlength=len(listed))[source]
        force *= np.divide(overlap, whole, out=np.zeros_like(overlap), where=whole > 0.0)[:, None]
    return contacts._replace(force=force, slip=slip)


def with_bumps(sim, pairs, listed, swap, order):
    """`contacts_of` where there are triangulated particles, whose contacts the simulation has at hand."""
    state, bumps = sim.state, sim.state.bumps
    plain = order[~np.isin(order, bumps.rows)]
    contacts, source = measure(state.tables, state.label, sim.box, 0.0, listed[plain])
    candidate, pair = kept_contacts(state)
    row = np.concatenate([plain[source], bumps.rows[pair]])
    shape = listed[row]
    body = state.shapes.body[shape]
    sign = np.where(swap[row], -1.0, 1.0)[:, None]
    spots, grip = bumps.spots, bumps.grip
    first, second = bumps.pair[pair].T
    # Which triangle of the body that is triangulated, of the first if both are.
    mesh = np.where(state.shapes.kind[first] == MESH, first, second)
    flat = (state.shapes.kind[second] >= FIRST_WALL) & (state.shapes.kind[second] != TRIANGLE)
    own = np.where(flat, 0, bumps.active.first[candidate])
    row_of = bumps.origin[candidate]
    feature = np.where(flat, 0, state.surfaces.row[own]) if len(mesh) else own
    both = Contacts(
        pair=state.bodies.number[body],
        shape=(state.shapes.number[shape] - state.label[body]).astype(np.int32),
        point=np.concatenate([contacts.point, spots.point[candidate]]),
        normal=np.concatenate([contacts.normal, sign[len(source) :] * spots.normal[candidate]]),
        gap=np.concatenate([contacts.gap, spots.gap[candidate]]),
        feature=np.concatenate([contacts.feature, feature]).astype(np.int32),
        slip=sign * np.concatenate([pairs.memory[row[: len(source)], :3], grip.slip[row_of]]),
        force=sign * np.concatenate([pairs.action[row[: len(source)], :3], grip.force[row_of]]),
    )
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    # The points of a pair with the deepest first, as `find_contacts` has them.
    return select(both, np.lexsort((both.gap, rank[row])))


def springs_of(sim):
    """Contacts as springs: overlap (c,) [m], length of the slip (c,) [m], reduced radius (c,) [m], rows of Mix (c,7), and
    the part of the stiffness that each has (c,): 1, or its share of a patch."""
    sim.start()
    state, pairs = sim.state, sim.state.fetch_pairs()
    listed, _ = lower_first(state.shapes, pairs.shape)
    plain = np.arange(len(listed))
    if state.triangulated:
        plain = np.delete(plain, state.bumps.rows)
    contacts, source = measure(state.tables, state.label, sim.box, 0.0, listed[plain])
    rows = plain[source]
    slip = np.linalg.norm(pairs.memory[rows, :3], axis=1)
    radius = np.empty(len(rows))
    if state.ellipsoids:
        kernel(ellipsoids.radius_row)(
            len(rows),
            rows,
            state.balls,
            state.balls + state.solids,
            state.shapes,
            make_forms(state.tables),
            pairs,
            contacts.normal,
            radius,
        )
    else:
        own = ball_radii(state)[pairs.shape[rows]]
        # Against a wall the reduced radius is that of the particle.
        wall = state.shapes.kind[pairs.shape[rows, 1]] >= FIRST_WALL
        radius = np.where(wall, own[:, 0], 1.0 / (1.0 / own).sum(1))
    overlap = np.maximum(-contacts.gap, 0.0)
    share = np.ones(len(rows))
    if state.polyhedra:
        share = shares(state, pairs.shape[rows], rows, overlap, contacts.normal)
    if state.triangulated:
        candidate, pair = kept_contacts(state)
        grip, more, held = state.bumps.grip, state.bumps.rows[pair], state.bumps.origin[candidate]
        own = ball_radii(state)[state.bumps.pair[pair]]
        wall = state.shapes.kind[state.bumps.pair[pair, 1]] >= FIRST_WALL
        radius = np.append(radius, np.where(wall, own[:, 0], 1.0 / (1.0 / own).sum(1)))
        overlap = np.append(overlap, grip.overlap[held])
        slip = np.append(slip, np.linalg.norm(grip.slip[held], axis=1))
        share, rows = np.append(share, grip.share[held]), np.append(rows, more)
    return overlap, slip, radius, sim.mover.mixes[pairs.mix[rows]], share


def shares(state, shape, rows, overlap, normal):
    """The part of a patch's stiffness that each point has, as in `clast.dem.polyhedra`: (c,); 1 for spheres.

    shape (c,2), rows (c,): shapes and pair of each point. Points of one particle with one wall body belong together.
    """
    kind, body = state.shapes.kind, state.shapes.body
    edged = (kind[shape] == POLYHEDRON).any(1)
    wall = kind[shape[:, 1]] >= FIRST_WALL
    key = np.stack([np.where(wall, shape[:, 0], -1), np.where(wall, body[shape[:, 1]], rows)], axis=1)
    _, group = np.unique(key, axis=0, return_inverse=True)
    group = group.reshape(-1)
    order = np.argsort(group, kind="stable")
    size = np.bincount(group)
    start = np.cumsum(size) - size
    # Every point with every point of its group.
    many = size[group]
    one = np.repeat(np.arange(len(group)), many)
    within = np.arange(len(one)) - np.repeat(np.cumsum(many) - many, many)
    two = order[start[group[one]] + within]
    along = np.maximum(np.einsum("pi,pi->p", normal[one], normal[two]), 0.0)
    whole = np.bincount(one, overlap[two] * along**2, minlength=len(group))
    share = np.divide(overlap, whole, out=np.zeros(len(group)), where=whole > 0.0)
    return np.where(edged, share, 1.0)

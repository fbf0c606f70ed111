"""What a simulation's list of pairs tells: contacts with their forces, and springs with their energy."""

import numpy as np

from .backend import kernel
from .contact.narrow import lower_first, measure, sort_pairs
from .contact.solids import make_forms
from .motion import solids
from .tables import FIRST_WALL, POLYHEDRON, SPHERE


def contacts_of(sim):
    """The contacts of the present state: Contacts with slip and force, sorted by pair, then shape.

    The force of a patch is divided among its points as they share its stiffness.
    """
    sim.start()
    state, pairs = sim.state, sim.state.fetch_pairs()
    listed, swap = lower_first(state.shapes, pairs.shape)
    order = sort_pairs(state.shapes, state.label, listed, state.next_label)
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


def springs_of(sim):
    """Contacts as springs: overlap (c,) [m], length of the slip (c,) [m], reduced radius (c,) [m], rows of Mix (c,7), and
    the part of the stiffness that each has (c,): 1, or its share of a patch."""
    sim.start()
    state, pairs = sim.state, sim.state.fetch_pairs()
    listed, _ = lower_first(state.shapes, pairs.shape)
    contacts, rows = measure(state.tables, state.label, sim.box, 0.0, listed)
    slip = np.linalg.norm(pairs.memory[rows, :3], axis=1)
    radius = np.empty(len(rows))
    if state.ellipsoids:
        kernel(solids.radius_row)(
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
    return overlap, slip, radius, sim.mover.mixes[pairs.mix[rows]], share


def ball_radii(state):
    """Radius [m] of each shape: of a sphere its own, of a polyhedron that of the ball of the same volume, (s,)."""
    shapes = state.shapes
    radius = np.where(shapes.kind == SPHERE, shapes.radius, 1.0)
    edged = np.nonzero(shapes.kind == POLYHEDRON)[0]
    radius[edged] = state.hulls.ball[state.parts.feature[shapes.part[edged]]] * state.bodies.scale[shapes.body[edged]]
    return radius


def shares(state, shape, rows, overlap, normal):
    """The part of a patch's stiffness that each point has, as in `clast.motion.hulls`: (c,); 1 for spheres.

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

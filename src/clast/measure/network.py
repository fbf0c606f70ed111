"""What contacts tell: coordination, how forces are distributed and form chains, stress and fabric."""

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ..signatures import Corners, Floats, Wholes
from ..tables import FREE, Contacts, is_particle
from .snapshot import corners, images, known_contacts

if TYPE_CHECKING:
    from ..run.simulation import Simulation
    from .snapshot import Subject


def touching(sim: "Simulation", contacts: Contacts) -> Wholes:
    """Numbers (k,2) of the two bodies of each contact that a Simulation's contacts() tell of: k = c_round + N_faced.

    c_round: contact points between round particles, or of one with a wall, a row each; N_faced: pairs of bodies one of which is a polyhedron or mesh, a row
    each, however many points they have in common.
    """
    return touching_among(sim.scene, sim.bodies, contacts)


def touching_among(scene, bodies, contacts):
    """See `touching`; bodies: some, in any order, that have all these contacts."""
    part = scene.molds.first[bodies.mold]
    faced = bodies.number[is_particle(scene.parts.kind[part]) & (scene.parts.feature[part] >= 0)]
    patch = np.isin(contacts.pair, faced).any(1)
    return np.concatenate([contacts.pair[~patch], np.unique(contacts.pair[patch], axis=0)])


def shared_coordination(sim, contacts):
    """`coordination` of a Simulation; contacts: those that this process tells of, see `Stepper.shared_contacts`."""
    bodies = sim.state.bodies
    # Those that are not free are on every process; free ones that touched in the last step may have gone to another since, or through an outlet.
    ends = ~np.isin(np.unique(contacts.pair, axis=0), bodies.number[bodies.motion != FREE])
    ends, free = sim.stepper.total(ends.ravel().astype(float), (sim.stepper.share().motion == FREE).astype(float))
    return ends / max(free, 1.0)


def coordination(subject: "Subject", *, rattlers: bool = True) -> float:
    """Mean number of partners of a free body, Z = (2 N_bb + N_bw) / N: a contact of two free bodies counts for both, one with
    a wall or fixed body once. Two bodies that touch at several points are one contact.

    rattlers: False leaves out bodies with fewer than two partners, and their contacts, until none is left (mechanical
    coordination number; Thornton 2000 leaves out those with at most one, once).
    """
    moment = known_contacts(subject, "coordination")
    count = coordination_numbers(moment)
    if rattlers:
        return float(count.sum()) / max(int(moment.free.sum()), 1)
    pair = moment.rows(np.unique(moment.pair, axis=0))
    held = np.ones(len(moment.number), dtype=bool)
    while True:
        pair = pair[held[pair].all(1)]
        count = np.bincount(pair.ravel(), minlength=len(held))
        loose = held & moment.free & (count < 2)
        if not loose.any():
            break
        held &= ~loose
    kept = held & moment.free
    return float(count[kept].sum()) / max(int(kept.sum()), 1)


def coordination_numbers(subject: "Subject") -> Wholes:
    """Number of partners (n,) of every body, in the order of body numbers: Z_i = |{j : i and j have a contact point}|; zero for what is not free."""
    moment = known_contacts(subject, "coordination_numbers")
    pair = moment.rows(np.unique(moment.pair, axis=0))
    return np.bincount(pair.ravel(), minlength=len(moment.number)) * moment.free


def force_distribution(subject: "Subject", *, bins: int = 50, most: float | None = None) -> tuple[Floats, Floats]:
    """How often contact forces of each size occur: (f, p), with f (bins,) the middles and p (bins,) the probability density.

    f = |F| / <|F|> of all contact points that carry a force, a pure number; p(f) df is their share from f to f + df, so that the integral of p
    is 1, and that of f p is 1 too, up to the width of a bin. most: upper end of f; by default the largest force.
    """
    strength = np.linalg.norm(known_contacts(subject, "force_distribution").force, axis=1)
    strength = strength[strength > 0.0]
    if not len(strength):
        return np.zeros(0), np.zeros(0)
    share = strength / strength.mean()
    count, edge = np.histogram(share, bins=bins, range=(0.0, float(share.max()) if most is None else most))
    return 0.5 * (edge[1:] + edge[:-1]), count / (len(share) * np.diff(edge))


class Network(NamedTuple):
    """Contacts as links between bodies, one row for each two bodies that push each other."""

    pair: np.ndarray  # (k,2) body numbers
    force: np.ndarray  # (k,) [N], size of the sum of the forces of their contact points
    strong: np.ndarray  # (k,) bool, above `threshold` times the mean force
    chain: (
        np.ndarray
    )  # (k,) which connected piece of the strong network a link belongs to, the largest is 0; -1 for weak links


def force_network(subject: "Subject", *, threshold: float = 1.0) -> Network:
    """The Network of contact forces [N], and its strong part (Radjai et al. 1998):

        F_ab = |sum_c f_c|, over the contact points of bodies a and b; strong where F_ab > threshold <F>

    <F>: mean over all links. Strong links that share a free body belong to one chain; walls join nothing.
    """
    from scipy.sparse import coo_matrix
    from scipy.sparse.csgraph import connected_components

    moment = known_contacts(subject, "force_network")
    pair, owner = np.unique(moment.pair, axis=0, return_inverse=True)
    owner = owner.reshape(-1)
    force = np.stack([np.bincount(owner, moment.force[:, k], len(pair)) for k in range(3)], axis=1)
    size = np.linalg.norm(force, axis=1)
    pair, size = pair[size > 0.0], size[size > 0.0]
    strong = size > threshold * (size.mean() if len(size) else 0.0)
    row = moment.rows(pair[strong])
    # Links are joined where they have a free body in common: a graph of links and bodies.
    link = np.arange(len(row))
    many, bodies = len(row), len(moment.number)
    free = moment.free[row]
    ends = np.concatenate([link[free[:, k]] for k in range(2)])
    others = many + np.concatenate([row[free[:, k], k] for k in range(2)])
    graph = coo_matrix((np.ones(len(ends)), (ends, others)), shape=(many + bodies,) * 2)
    label = connected_components(graph, directed=False)[1][:many]
    chain = np.full(len(pair), -1)
    if many:
        _, first, inverse, count = np.unique(label, return_index=True, return_inverse=True, return_counts=True)
        rank = np.empty(len(count), dtype=int)
        rank[np.lexsort((first, -count))] = np.arange(len(count))
        chain[strong] = rank[inverse.reshape(-1)]
    return Network(pair, size, strong, chain)


def branches(moment):
    """Where the force of each contact point goes along: start (c,3) and branch (c,3) [m], from the centre of a to that of b; a wall
    or fixed body has its end at the contact point."""
    a, b = moment.rows(moment.pair).T
    near = moment.position[a] + moment.nearest(moment.point - moment.position[a])
    start = np.where(moment.free[a, None], moment.position[a], near)
    end = np.where(moment.free[b, None], moment.position[b], moment.point)
    return start, moment.nearest(end - start)


def stress(subject: "Subject", box: Corners | None = None, *, kinetic: bool = True) -> Floats:
    """Mean stress tensor (3,3) [Pa] in a box ((x, y, z), (x, y, z)) [m], compression positive:

        sigma_ij = ( sum_c w_c f_i l_j + sum_p m v'_i v'_j ) / V

    f: force of contact c on b, l: branch from the centre of a to that of b, or to the point where a wall is touched; w: the part of
    the branch inside the box (Weber 1966, Bagi 1996). v': velocity less that of the mass centre of the free bodies whose centres
    are inside; kinetic: False leaves that sum out. Without a box: the box around all free particles, or the periodic world.
    """
    moment = known_contacts(subject, "stress")
    low, high = corners("stress", box) if box is not None else _around(moment)
    start, branch = branches(moment)
    share = np.zeros(len(start))
    for shift in images(moment):
        share += inside_share(start + shift, branch, low, high)
    total = np.einsum("c,ci,cj->ij", share, moment.force, branch)
    if kinetic:
        here = (moment.position + shift for shift in images(moment))
        times = sum(
            ((place >= low) & (place < high)).all(1) for place in here
        )  # a box across a periodic face holds images
        inside = moment.free & (times > 0)
        mass, velocity = times[inside] * moment.mass[inside], moment.velocity[inside]
        if len(mass):
            shaken = velocity - mass @ velocity / mass.sum()
            total += np.einsum("p,pi,pj->ij", mass, shaken, shaken)
    return total / np.prod(high - low)


def fabric(subject: "Subject", box: Corners | None = None) -> Floats:
    """Fabric tensor (3,3), a pure number, of the contact points in a box ((x, y, z), (x, y, z)) [m], of all without one (Satake 1982):

        phi_ij = sum_c n_i n_j / N_c

    n: unit normals. Its trace is 1, and it is a third of the unit tensor where no direction is preferred. Zeros where nothing touches.
    """
    moment = known_contacts(subject, "fabric")
    normal = moment.normal
    if box is not None:
        low, high = corners("fabric", box)
        normal = normal[((moment.point >= low) & (moment.point < high)).all(1)]
    return np.einsum("ci,cj->ij", normal, normal) / max(len(normal), 1)


def _around(moment):
    """Low and high corner of the periodic world, and along other axes of the free bodies."""
    place, radius = moment.position[moment.free], moment.radius[moment.free, None]
    if not len(place):
        raise ValueError("stress: there are no free bodies; give a box")
    low, high = (place - radius).min(0), (place + radius).max(0)
    wraps = moment.length > 0.0
    return np.where(wraps, moment.low, low), np.where(wraps, moment.low + moment.length, high)


def inside_share(start, arm, low, high):
    """Which part (c,) of the segments from start (c,3) along arm (c,3) lies in the box low..high."""
    with np.errstate(divide="ignore", invalid="ignore"):
        near, far = (low - start) / arm, (high - start) / arm
    still = arm == 0.0
    within = (start >= low) & (start < high)
    near, far = np.where(still, np.where(within, 0.0, 2.0), near), np.where(still, np.where(within, 1.0, -2.0), far)
    first = np.clip(np.minimum(near, far).max(1), 0.0, 1.0) if len(start) else np.zeros(0)
    last = np.clip(np.maximum(near, far).min(1), 0.0, 1.0) if len(start) else np.zeros(0)
    outside = (still & ~within).any(1)
    return np.where(outside, 0.0, np.maximum(last - first, 0.0))

"""What the contacts of a simulation by forces tell: points with their forces, springs with their energy, files."""

import numpy as np

from ..kernels import backend
from ..motion.slots import find_named, find_slots, name_pairs, place_of
from ..motion.state import ball_radii
from ..narrow.contacts import lower_first, select, sort_pairs
from ..narrow.dispatch import OVERLAP, SPHERES, Listed, all_of
from ..narrow.mesh_slots import renew
from ..tables import ContactPoints, Contacts
from .sphere_pairs import ANGLE


def reach_of(state):
    """The largest gap [m] at which contact points act."""
    return state.beyond if state.beyond > 0.0 else OVERLAP


def slots_in_use(state, everyone=False):
    """Slots of contact points that touch (c,), and the row of the neighbour list of each; everyone: those too that another process tells
    of, see `State.told`."""
    gap, slot = state.device.to_host(state.points.gap), state.device.to_host(state.pairs.slot)
    # Slots that nobody has looked at yet have a gap of zero.
    live = state.device.to_host(state.history.live) == 1
    rows = np.nonzero((gap < state.beyond) & live if state.beyond > 0.0 else gap < 0.0)[0]
    pair = np.searchsorted(slot, rows, side="right") - 1 + state.spheres_count
    if state.ghosts and not everyone:
        kept = np.isin(pair, state.told(np.unique(pair)))
        rows, pair = rows[kept], pair[kept]
    return rows, pair


def touching(state):
    """Number of pairs that carry a force."""
    slot, row = slots_in_use(state)
    loaded = state.device.to_host(state.points.force)[slot].any(1)
    balls = np.nonzero(state.device.to_host(state.spheres.action)[:, :3].any(1))[0]
    return len(state.told(balls)) + len(np.unique(row[loaded]))


def measure_spheres(state):
    """Contact points of spheres with spheres, the row of the neighbour list of each, and from the centre of the first to where the
    force acts: they are not kept, but follow from the places of the two alone, to the bit."""
    listed = np.ascontiguousarray(state.device.to_host(state.pairs.shape)[: state.spheres_count])
    with backend.use(state.device):
        look = Listed(state, state.device.to_device(listed), SPHERES.slots)
        SPHERES.find(look, all_of(look), reach_of(state))
    points = state.device.table(look.points)
    row = state.told(np.nonzero(points.count)[0])
    points = ContactPoints(*(column[row] if len(column) >= len(points.count) else column for column in points))
    # The force acts where the radii divide the line between the centres.
    own, other = state.shapes.radius[listed[row]].T
    reach = own + other
    arm = (own * (points.gap + reach) / reach)[:, None] * points.normal
    return points._replace(arm=arm), row


def contacts_of(state, keeps=(), told=None):
    """The contact points that acted last: Contacts with slip, force and couple, and the last numbers that the law keeps by these names, sorted by
    pair, then shape. told: {name: (of pairs of spheres (b,), of slots (c,))}, further numbers."""
    state.fetch()
    table = state.device.table
    pairs, spheres, points, history = (table(t) for t in (state.pairs, state.spheres, state.points, state.history))
    first, ball = measure_spheres(state)
    slot, row = slots_in_use(state)
    row = np.concatenate([ball, row])
    listed, swap = lower_first(state.shapes, pairs.shape[row])
    body = state.shapes.body[listed]
    # The list has walls second; here the lower number comes first, and normal, force and slip follow.
    sign = np.where(swap, -1.0, 1.0)[:, None]
    centre = state.shapes.centre[pairs.shape[row, 0]]
    none = np.zeros((len(row), 3))
    couple = (
        np.concatenate([spheres.couple[ball], points.couple[slot]])
        if len(points.couple) + len(spheres.couple)
        else none
    )
    names, told = (*keeps, *(told or {})), told or {}
    kept = np.zeros(len(row), [(name, float) for name in names]) if names else np.zeros((len(row), 0))
    for i, name in enumerate(keeps, -len(keeps)):
        kept[name] = np.concatenate([spheres.memory[ball, i], history.kept[slot, i]])
    for name, (of_balls, of_slots) in told.items():
        kept[name] = np.concatenate([of_balls[ball], of_slots[slot]])
    both = Contacts(
        pair=state.bodies.number[body],
        shape=(state.shapes.number[listed] - state.label[body]).astype(np.int32),
        point=centre + np.concatenate([first.arm, points.arm[slot]]),
        normal=sign * np.concatenate([first.normal, points.normal[slot]]),
        gap=np.concatenate([first.gap, points.gap[slot]]),
        feature=np.concatenate([first.feature, points.feature[slot]]).astype(np.int32),
        slip=sign * np.concatenate([spheres.memory[ball, :3], history.slip[slot]]),
        force=sign * np.concatenate([spheres.action[ball, :3], points.force[slot]]),
        couple=sign * couple,
        kept=kept,
    )
    rank = np.empty(len(row), np.int64)
    rank[sort_pairs(state.shapes, state.label, listed, state.next_label)] = np.arange(len(row))
    # The points of a pair with the deepest first, as `find_contacts` has them.
    group = np.unique(listed, axis=0, return_inverse=True)[1].reshape(-1)
    least = np.full(len(row), len(row))
    np.minimum.at(least, group, rank)
    return select(both, np.lexsort((both.gap, least[group])))


def springs_of(state):
    """Contacts as springs: overlap (c,) [m] that the law saw, length of the slip (c,) [m], reduced radius (c,) [m], row of the
    combined material (c,), the part of the stiffness that each has (c,), and what the law keeps (c,k)."""
    state.fetch()
    table = state.device.table
    pairs, spheres, points, history = (table(t) for t in (state.pairs, state.spheres, state.points, state.history))
    first, ball = measure_spheres(state)
    slot, row = slots_in_use(state)
    own = ball_radii(state)[pairs.shape[ball]]
    slip = np.concatenate([spheres.memory[ball, :3], history.slip[slot]])
    return (
        np.concatenate([np.maximum(-first.gap, -state.beyond), points.overlap[slot]]),
        np.linalg.norm(slip, axis=1),
        np.concatenate([own.prod(1) / own.sum(1), points.radius[slot]]),
        pairs.mix[np.concatenate([ball, row])],
        np.concatenate([np.ones(len(ball)), history.share[slot]]),
        np.concatenate([spheres.memory[ball, spheres.memory.shape[1] - state.kept :], history.kept[slot]]),
    )


def angles_of(state):
    """The angles (c,) [rad] by which contacts that roll are turned, in the order of `springs_of`."""
    table = state.device.table
    spheres, history = table(state.spheres), table(state.history)
    _, ball = measure_spheres(state)
    slot, _ = slots_in_use(state)
    return np.linalg.norm(np.concatenate([spheres.memory[ball, ANGLE : ANGLE + 3], history.angle[slot]]), axis=1)


# What a checkpoint holds.


def remember(state, chosen=None):
    """Tables of what contacts remember and do, named by body number and part, in an order that has nothing to do with rows.

    chosen: None for all, or a function that tells of rows of the neighbour list (k,) which are meant, (k,) bool.
    """
    state.fetch()
    table = state.device.table
    spheres, points, history = (table(t) for t in (state.spheres, state.points, state.history))
    ball = np.nonzero(spheres.memory.any(1) | spheres.action.any(1))[0]
    slot, row = slots_in_use(state, everyone=chosen is not None)
    if chosen is None:
        ball = state.told(ball)
    else:
        meant = chosen(row)
        ball, slot, row = ball[chosen(ball)], slot[meant], row[meant]
    body, part = name_pairs(state, ball)
    order = np.lexsort((part[:, 1], body[:, 1], part[:, 0], body[:, 0]))
    kept = {"body": body[order], "part": part[order], "memory": spheres.memory[ball[order]]}
    kept["action"] = spheres.action[ball[order]]
    kept["couple"] = spheres.couple[ball[order]] if len(spheres.couple) else np.zeros((0, 3))
    body, part = name_pairs(state, row)
    place = place_of(state, slot, row)
    order = np.lexsort((place[:, 1], place[:, 0], part[:, 1], body[:, 1], part[:, 0], body[:, 0]))
    slot = slot[order]
    named = {"body": body[order], "part": part[order], "place": place[order]}
    return {
        "spheres": kept,
        "points": named | {k: v[slot] if len(v) else v for k, v in points._asdict().items() if k != "count"},
        "history": {k: v[slot] if len(v) else v for k, v in history._asdict().items()},
    }


def recall(state, groups, among=None):
    """Give the contacts of a neighbour list what `remember` kept.

    among: None for a fresh list, which must have all of them; or the rows of it (k,) that may be meant, because bodies have come with
    what their contacts remember, and have moved since: what is not near any more is forgotten, as it is by a list that is made anew.
    """
    if state.triangulated:
        renew(state, 0.0)
    kept, named, history = groups["spheres"], groups["points"], groups["history"]
    ball = find_named(state, kept["body"], kept["part"], among)
    rows = find_named(state, named["body"], named["part"], among)
    listed = rows >= 0
    slot = np.full(len(rows), -1)
    slot[listed] = find_slots(state, rows[listed], named["place"][listed])
    if among is None and (slot < 0).any():
        raise ValueError("the contacts in the checkpoint do not fit its bodies; the file was made by another version")
    state.spheres = filled(state, state.spheres, ball, kept)
    many = np.bincount(rows[slot >= 0] - state.spheres_count, minlength=len(state.device.to_host(state.points.count)))
    count = many + (0 if among is None else state.device.to_host(state.points.count))
    points = filled(state, state.points, slot, named)
    state.points = points._replace(count=state.device.to_device(count.astype(np.int32)))
    state.history = filled(state, state.history, slot, history)
    if state.triangulated:
        state.candidates.touch(slot[slot >= 0])
    # Pairs that have got points back are looked at, wherever they are now: they may have come apart in this very step.
    apart = state.device.to_host(state.pairs.apart)
    if len(apart):
        state.pairs = state.pairs._replace(apart=state.device.to_device(np.where(many > 0, -np.inf, apart)))
    live = (many > 0) | (among is not None and state.device.to_host(state.wrench.live) > 0)
    state.wrench = state.wrench._replace(live=state.device.to_device(live.astype(np.int8)))


def filled(state, table, rows, columns):
    """A table of the neighbour list with these rows put into it, except where they are -1."""
    table, found = state.device.table(table), rows >= 0
    for name, column in table._asdict().items():
        if name in columns and len(columns[name]):
            column[rows[found]] = columns[name][found]
    return state.device.upload(table)

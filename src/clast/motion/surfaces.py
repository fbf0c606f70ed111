"""Contacts of triangulated particles in a simulation: the triangles that may touch, what they remember, their forces.

All contact points of two bodies are one *site*. Under a law with a stiffness of its own (hertz, linear, a user's) the points
of a site share it: point i answers with its share d_i / sum of d_j max(0, n_i . n_j)^2, d the overlap, of the law at the
overlap max over j of d_j max(0, n_i . n_j). So the force does not depend on how finely a body is meshed, and a point that
comes or goes brings or takes no force. Under the law "halo" every point has a spring of its own, as it is published.

What slips is a point. A point that begins where another of the same site ends takes its slip along: the nearest triangles
change all the time while one face slides over another.
"""

import math
from typing import NamedTuple

import numpy as np

from .. import primitives
from ..backend import func, kernel
from ..contact.near import image
from ..contact.surface_candidates import Candidates, find_candidates
from ..contact.surface_inside import contained
from ..contact.surface_measure import empty_spots, measure_candidates
from ..contact.surface_merge import merge_site
from ..tables import FIRST_WALL, MESH, TRIANGLE
from ..vec import add, cross, dot, load, norm, scale, sub
from . import laws
from .dem import mix_of
from .laws import Touch

FINE, CROSSING = 0, 1  # what `site_row` reports

# Bound to each kernel, as in `clast.motion.dem`.
law = laws.hertz
SHARED = True
PERIODIC = False


class Grip(NamedTuple):
    """What candidates remember, one row each."""

    gap: np.ndarray  # (k,) [m], when the list was made
    live: np.ndarray  # (k,) int8, 1 if the candidate was a contact in the last step
    slip: np.ndarray  # (k,3) [m]
    force: np.ndarray  # (k,3) [N], on the second shape
    share: np.ndarray  # (k,) part of the stiffness, and
    overlap: np.ndarray  # (k,) [m], the overlap that the law saw; of contacts


def empty_grip(gap):
    """Nothing remembered; gap (k,) [m]."""
    count = len(gap)
    return Grip(
        gap, np.zeros(count, np.int8), np.zeros((count, 3)), np.zeros((count, 3)), np.zeros(count), np.zeros(count)
    )


class Bumps:
    """The pairs of a list that have a triangulated particle, their candidates and memory.

    Most candidates are too far apart to touch for most of the time that a list lasts. Those are *active* whose gap at the
    time of the list is less than the way that their two bodies have moved against each other since, and those that touched in
    the last step. Only these are measured.
    """

    def __init__(self, rows, pair, candidates, gap, site, near, apart):
        self.rows = rows  # (q,) int32, rows of Pairs
        self.pair = pair  # (q,2) int32, rows of Shapes
        self.candidates = candidates
        self.grip = empty_grip(gap)
        self.apart = apart  # (q,3) [m], from the first to the second body when the list was made
        self.site = site  # (s+1,) int32, first pair of each site
        self.near = near  # (s,) [m], points nearer than this are one
        self.status = np.zeros(len(near), np.int8)
        self.origin = np.zeros(0, np.int64)  # (a,) rows of candidates that are active
        self.active = Candidates(np.zeros(len(rows) + 1, np.int64), np.zeros(0, np.int32), np.zeros(0, np.int32))
        self.spots, self.kept = empty_spots(0), np.zeros(0, np.int8)  # of the active ones


def make_bumps(state, before):
    """The Bumps of the present list of pairs of a State; before: those of the list before, or None."""
    tables, surfaces, pairs = state.kernel_tables, state.surfaces, state.pairs
    shapes = state.shapes
    first = state.balls + state.solids + state.patches
    at_walls = first + state.meshed + np.nonzero(shapes.kind[pairs.shape[first + state.meshed :, 0]] == MESH)[0]
    rows = np.concatenate([np.arange(first, first + state.meshed), at_walls]).astype(np.int32)
    pair = np.ascontiguousarray(pairs.shape[rows])
    candidates = find_candidates(tables, surfaces, pair, state.box, state.margin, exact=True)
    spots = empty_spots(len(candidates.first))
    measure_candidates(tables, surfaces, pair, candidates, state.box, "brute", 0.0, spots)
    # The triangles of one wall body are one site with each particle; they stand side by side in the list.
    wall = shapes.kind[pair[:, 1]] >= FIRST_WALL
    same = wall[1:] & wall[:-1] & (pair[1:, 0] == pair[:-1, 0])
    same &= shapes.body[pair[1:, 1]] == shapes.body[pair[:-1, 1]]
    same &= (shapes.kind[pair[1:, 1]] == TRIANGLE) & (shapes.kind[pair[:-1, 1]] == TRIANGLE)
    begins = np.nonzero(np.append(True, ~same))[0] if len(rows) else np.zeros(0, int)
    site = np.append(begins, len(rows)).astype(np.int32)
    body = shapes.body[pair]
    apart = state.bodies.position[body[:, 1]] - state.bodies.position[body[:, 0]]
    bumps = Bumps(rows, pair, candidates, spots.gap, site, shortest_edges(state, pair[site[:-1]]), apart)
    if before is not None:
        # While lists change hands the first column of memory tells where the pair stood before.
        was = pairs.memory[rows, 0].astype(np.int64) - 1
        kernel(carry_row)(len(rows), was, before.candidates, before.grip, candidates, bumps.grip)
    pairs.memory[rows] = 0.0
    return bumps


def shortest_edges(state, pair):
    """The shorter of the shortest edges [m] of the meshes in each pair (s,2) of shapes: (s,)."""
    shapes = state.shapes
    mesh = shapes.kind[pair] == MESH
    edge = np.full(pair.shape, np.inf)
    surface = state.parts.feature[shapes.part[pair[mesh]]]
    edge[mesh] = state.surfaces.shortest[surface] * state.bodies.scale[shapes.body[pair[mesh]]]
    return edge.min(1) if len(pair) else np.zeros(0)


def carry_row(k, was, old, old_grip, new, grip):
    """Give the candidates of pair k the memory that the same triangles had in the list before."""
    if was[k] < 0:
        return
    for c in range(old.start[was[k]], old.start[was[k] + 1]):
        if old_grip.live[c] == 0:
            continue
        for d in range(new.start[k], new.start[k + 1]):
            if new.first[d] == old.first[c] and new.second[d] == old.second[c]:
                grip.live[d] = 1
                for i in range(3):
                    grip.slip[d, i] = old_grip.slip[c, i]
                break


@func
def turned_by(i, turned_from, orientation):
    """At least the angle [rad] by which body i has turned since the list was made; infinite if far."""
    square = 0.0
    for j in range(4):
        d = orientation[i, j] - turned_from[i, j]
        square += d * d
    # Twice the chord between two quaternions is the angle, up to 5 % for chords below 1/2.
    return 2.1 * math.sqrt(square) if square < 0.25 else math.inf


@func
def moved_by(k, pair, apart, margin, turned_from, bodies, shapes, edges, periodic):
    """How much nearer [m] points of the two bodies of pair k may have come since the list was made."""
    a, b = pair[k, 0], pair[k, 1]
    i, j = shapes.body[a], shapes.body[b]
    now = sub(load(bodies.position, j), load(bodies.position, i))
    d = sub(now, load(apart, k))
    if periodic:
        d = (image(d[0], edges[0], edges[3]), image(d[1], edges[1], edges[4]), image(d[2], edges[2], edges[5]))
    way = norm(d)
    one, two = turned_by(i, turned_from, bodies.orientation), turned_by(j, turned_from, bodies.orientation)
    if one > 0.0:
        way += one * shapes.radius[a]
    if two > 0.0:
        # A wall is turned about a point that may be far away.
        arm = shapes.radius[b] if shapes.kind[b] < FIRST_WALL else norm(now) + shapes.radius[a] + margin
        way += two * arm if arm < math.inf else math.inf
    return way


def active_row(
    k,
    pair,
    apart,
    margin,
    turned_from,
    bodies,
    shapes,
    edges,
    candidates,
    gap,
    live,
    fill,
    start,
    first,
    second,
    origin,
    count,
):
    """Count the active candidates of pair k or, if fill, write them from start[k] on."""
    if fill and start[k + 1] == start[k]:
        return
    way = moved_by(k, pair, apart, margin, turned_from, bodies, shapes, edges, PERIODIC)
    found = 0
    for c in range(candidates.start[k], candidates.start[k + 1]):
        if gap[c] <= way or live[c] == 1:
            if fill:
                at = start[k] + found
                first[at], second[at], origin[at] = candidates.first[c], candidates.second[c], c
            found += 1
    if not fill:
        count[k] = found


@func
def hand_over(c, begin, end, reach, point, kept, origin, grip):
    """Let contact c, which begins, take the slip of the nearest one within reach [m] that has just ended."""
    best, least = -1, reach * reach
    for d in range(begin, end):
        if grip.live[origin[d]] == 1 and kept[d] == 0:
            way = sub(load(point, d), load(point, c))
            square = dot(way, way)
            if square < least:
                best, least = d, square
    if best >= 0:
        o = origin[best]
        grip.live[o] = 0
        for i in range(3):
            grip.slip[origin[c], i] = grip.slip[o, i]
            grip.slip[o, i] = 0.0


@func
def shares(c, begin, end, gap, normal, kept):
    """The share of contact c in the stiffness of its site, and the overlap [m] that its law sees."""
    n = load(normal, c)
    whole, deepest = 0.0, 0.0
    for d in range(begin, end):
        if kept[d] == 1:
            along = max(0.0, dot(n, load(normal, d)))
            whole -= gap[d] * along * along
            deepest = max(deepest, -gap[d] * along)
    return -gap[c] / whole, deepest


@func
def round_radius(s, bodies, shapes, parts, surfaces):
    """What stands for the radius of shape s in a contact law [m]; infinite for a wall."""
    if shapes.kind[s] == MESH:
        return surfaces.ball[parts.feature[shapes.part[s]]] * bodies.scale[shapes.body[s]]
    return shapes.radius[s] if shapes.kind[s] < FIRST_WALL else np.inf


def site_row(
    i,
    site,
    near,
    rows,
    pair,
    start,
    origin,
    spots,
    kept,
    grip,
    bodies,
    shapes,
    parts,
    surfaces,
    pairs,
    mixes,
    box,
    dt,
    status,
):
    """Forces of all contact points of one site."""
    first, last = site[i], site[i + 1]
    begin, end = start[first], start[last]
    gap, point, normal = spots.gap, spots.point, spots.normal
    for k in range(first, last):
        p = rows[k]
        for j in range(6):
            pairs.action[p, j] = 0.0
        for j in range(3):
            pairs.couple[p, j] = 0.0
    a, b = pair[first, 0], pair[first, 1]
    merge_site(first, last, shapes.body[b], shapes, pair, start, spots, 0.0, near[i], kept)
    status[i] = FINE
    touching = False
    for c in range(begin, end):
        touching = touching or kept[c] == 1
        if kept[c] == 1 and grip.live[origin[c]] == 0:
            hand_over(c, begin, end, 2.0 * near[i], point, kept, origin, grip)
    if touching:
        ra = round_radius(a, bodies, shapes, parts, surfaces)
        rb = round_radius(b, bodies, shapes, parts, surfaces)
        radius = 1.0 / (1.0 / ra + 1.0 / rb)
        body_a, body_b = shapes.body[a], shapes.body[b]
        mass = 1.0 / (1.0 / bodies.mass[body_a] + 1.0 / bodies.mass[body_b])
        va, wa = load(bodies.velocity, body_a), load(bodies.spin, body_a)
        vb, wb = load(bodies.velocity, body_b), load(bodies.spin, body_b)
        mix = mix_of(mixes, pairs.mix[rows[first]])
        for k in range(first, last):
            force, couple, middle, whole = (0.0, 0.0, 0.0), (0.0, 0.0, 0.0), (0.0, 0.0, 0.0), 0.0
            for c in range(start[k], start[k + 1]):
                if kept[c] == 1:
                    middle = sub(middle, scale(gap[c], load(point, c)))
                    whole -= gap[c]
            if whole <= 0.0:
                continue
            middle = scale(1.0 / whole, middle)
            # Points are beside the triangulated particle, the first if both are; the other may be an image.
            away = sub(load(shapes.centre, pair[k, 0]), load(shapes.centre, pair[k, 1]))
            moved_a, moved_b = (0.0, 0.0, 0.0), (0.0, 0.0, 0.0)
            if PERIODIC:
                shift = (
                    image(away[0], box.length[0], box.inverse[0]) - away[0],
                    image(away[1], box.length[1], box.inverse[1]) - away[1],
                    image(away[2], box.length[2], box.inverse[2]) - away[2],
                )
                if shapes.kind[a] == MESH:
                    moved_b = shift
                else:
                    moved_a = scale(-1.0, shift)
            for c in range(start[k], start[k + 1]):
                if kept[c] == 1:
                    x, n, o = load(point, c), load(normal, c), origin[c]
                    share, overlap = 1.0, -gap[c]
                    if SHARED:
                        share, overlap = shares(c, begin, end, gap, normal, kept)
                    arm_a = add(sub(x, load(bodies.position, body_a)), moved_a)
                    arm_b = add(sub(x, load(bodies.position, body_b)), moved_b)
                    v = sub(add(vb, cross(wb, arm_b)), add(va, cross(wa, arm_a)))
                    opening = dot(v, n)
                    slide = sub(v, scale(opening, n))
                    touch = Touch(overlap, -opening, n, slide, load(grip.slip, o), mass, radius)
                    pressing, shear, slip = law(touch, mix, dt)
                    f = scale(share, add(scale(pressing, n), shear))
                    force, couple = add(force, f), add(couple, cross(sub(x, middle), f))
                    grip.share[o], grip.overlap[o] = share, overlap
                    for j in range(3):
                        grip.slip[o, j] = slip[j]
                        grip.force[o, j] = f[j]
                    if spots.crossing[c] != 0:
                        status[i] = CROSSING
            p = rows[k]
            for j in range(3):
                pairs.action[p, j] = force[j]
                pairs.action[p, 3 + j] = middle[j]
                pairs.couple[p, j] = couple[j]
    for c in range(begin, end):
        o = origin[c]
        if kept[c] == 0 and grip.live[o] == 1:
            for j in range(3):
                grip.slip[o, j] = 0.0
        grip.live[o] = kept[c]


def compose(law, shared, periodic):
    """The kernel of sites."""
    return kernel(site_row, grain=16, law=law, SHARED=shared, PERIODIC=periodic)


def look(state, method):
    """Find the candidates that are active where the bodies are now, and measure them."""
    bumps, tables, surfaces = state.bumps, state.kernel_tables, state.there.surfaces
    box, total = state.box, len(bumps.rows)
    edges = (*box.length.tolist(), *box.inverse.tolist())
    where = bumps.pair, bumps.apart, state.margin, state.there.turned_from, *tables[:2], edges
    what = bumps.candidates, bumps.grip.gap, bumps.grip.live
    choose = kernel(active_row, grain=64, PERIODIC=bool(box.periodic))
    count, none = np.empty(total, np.int32), np.empty(0, np.int32)
    choose(total, *where, *what, False, np.empty(0, np.int64), none, none, np.empty(0, np.int64), count)
    start = primitives.scan(count)
    found = int(start[-1])
    first, second, bumps.origin = np.empty(found, np.int32), np.empty(found, np.int32), np.empty(found, np.int64)
    choose(total, *where, *what, True, start, first, second, bumps.origin, count)
    bumps.active = Candidates(start, first, second)
    bumps.spots, bumps.kept = empty_spots(found), np.empty(found, np.int8)
    how = method.narrow, method.tolerance
    measure_candidates(tables, surfaces, bumps.pair, bumps.active, box, *how, bumps.spots)


def collide(site_kernel, state, method, mixes, dt):
    """Forces of all contacts with a triangulated particle; returns which sites have surfaces that cross (c,)."""
    look(state, method)
    bumps, there = state.bumps, state.there
    site_kernel(
        len(bumps.near),
        bumps.site,
        bumps.near,
        bumps.rows,
        bumps.pair,
        bumps.active.start,
        bumps.origin,
        bumps.spots,
        bumps.kept,
        bumps.grip,
        there.bodies,
        there.shapes,
        there.parts,
        there.surfaces,
        state.pairs,
        mixes,
        there.box,
        dt,
        bumps.status,
    )
    return np.nonzero(bumps.status)[0]


def kept_contacts(state):
    """Contacts at present (c,), rows of the active candidates, and the pair of the bumps that each belongs to (c,)."""
    bumps = state.bumps
    rows = np.nonzero(bumps.kept)[0]
    return rows, np.searchsorted(bumps.active.start, rows, side="right") - 1


def swallowed(state):
    """Pairs of shapes (c,2) of which one lies wholly inside the other without touching it."""
    pair = state.bumps.pair
    return pair[contained(state.kernel_tables, state.there.surfaces, pair, state.box)]


# What a checkpoint holds of a contact: body and part of both shapes, the two triangles, then slip, force, share, overlap.
CARRIED = 14


def carried(state):
    """Memory of all contacts (c,14), in an order that does not depend on rows of memory."""
    kept, pair = kept_contacts(state)
    bumps = state.bumps
    rows, grip = bumps.origin[kept], bumps.grip
    columns = names_of(state, bumps.pair[pair], bumps.candidates.first[rows], bumps.candidates.second[rows])
    table = np.column_stack([columns, grip.slip[rows], grip.force[rows], grip.share[rows], grip.overlap[rows]])
    return table[np.lexsort(table[:, 5::-1].T)]


def names_of(state, shape, first, second):
    """Body and part of both shapes (c,2), and triangles first and second (c,): (c,6)."""
    body = state.shapes.body[shape]
    number, part = state.bodies.number[body], state.shapes.number[shape] - state.label[body]
    return np.column_stack([number[:, 0], part[:, 0], number[:, 1], part[:, 1], first, second]).astype(float)


def put_back(state, table, method):
    """Give the contacts of a fresh list the memory that `carried` returned."""
    bumps = state.bumps
    table = np.asarray(table).reshape(-1, CARRIED)
    candidates, grip = bumps.candidates, bumps.grip
    shape = np.repeat(bumps.pair, np.diff(candidates.start), axis=0)
    listed = names_of(state, shape, candidates.first, candidates.second)
    _, place = np.unique(np.concatenate([table[:, :6], listed]), axis=0, return_inverse=True)
    place = place.reshape(-1)
    row = np.full(place.max(initial=-1) + 1, -1)
    row[place[len(table) :]] = np.arange(len(listed))
    rows = row[place[: len(table)]]
    if (rows < 0).any():
        raise ValueError("the contacts in the checkpoint do not fit its bodies; the file was made by another version")
    grip.live[rows] = 1
    grip.slip[rows], grip.force[rows] = table[:, 6:9], table[:, 9:12]
    grip.share[rows], grip.overlap[rows] = table[:, 12], table[:, 13]
    look(state, method)
    bumps.kept[:] = grip.live[bumps.origin]

"""Which triangles of triangulated particles may touch: kept from step to step, and found again pair by pair.

Each pair of bodies in the list has its *candidates*, the pairs of triangles whose gap was less than a margin when they were
looked for, and what these remember as contacts. They hold until the two bodies have moved against each other by
that margin; only then are they looked for again, and only for this pair: bodies that fly or rest together cost nothing.
In a step those candidates are *active* whose gap was less than the way that the two have moved since, and those that
touched in the last step. Only these are measured.
"""

import math
from typing import NamedTuple

import numpy as np

from ..broad.near import image
from ..kernels import primitives
from ..kernels.backend import func, kernel
from ..kernels.vec import load, load4, norm, sub
from ..tables import FIRST_WALL, MESH, SPHERE, TRIANGLE
from .mesh_candidates import Candidates, find_candidates
from .mesh_points import empty_spots, measure_candidates

MARGIN = (
    0.1  # of candidates, as a part of a typical radius or, if that is less, of the radius of the smaller mesh of a pair
)
EARLY = 0.5  # where some pair must be looked at again, so are all that have moved by this part of the margin
SPARE = 0.25  # room for more candidates of a pair than there are, as a part of these
TASK = 65536  # pairs whose candidates are looked for at a time
PERIODIC = False  # bound to the kernels


class Grip(NamedTuple):
    """Candidates and what they remember, one row each; every pair has a room of neighbouring rows, not all in use."""

    first: np.ndarray  # (k,) int32, as in `Candidates`
    second: np.ndarray  # (k,) int32
    gap: np.ndarray  # (k,) [m], when they were looked for
    live: np.ndarray  # (k,) int8, 1 if the candidate was a contact in the last step
    slip: np.ndarray  # (k,3) [m]
    force: np.ndarray  # (k,3) [N], on the second shape
    share: np.ndarray  # (k,) part of the stiffness, and
    overlap: np.ndarray  # (k,) [m], the overlap that the law saw; of contacts


class Rooms(NamedTuple):
    """One row per pair."""

    begin: np.ndarray  # (q+1,) int64, first row of Grip; the next pair's is behind the last
    used: np.ndarray  # (q,) int32, rows in use
    known: np.ndarray  # (q,) int8, 0 if candidates have never been looked for
    apart: np.ndarray  # (q,3) [m], from the first to the second shape when they were, see `between_origins`
    turn: np.ndarray  # (q,8) orientation of the two bodies then


class Bumps:
    """The pairs of a list that have a triangulated particle, their candidates and memory, and their sites."""

    def __init__(self, rows, pair, site, near, margin):
        self.rows = rows  # (q,) int32, rows of Pairs
        self.pair = pair  # (q,2) int32, rows of Shapes
        self.site = site  # (s+1,) int32, first pair of each site
        self.near = near  # (s,) [m], points nearer than this are one
        self.margin = margin  # (q,) [m], of candidates
        self.status = np.zeros(len(near), np.int8)
        self.busy = False  # whether there were active candidates in the last step
        self.grip, self.rooms = empty_grip(0), empty_rooms(np.zeros(len(rows), np.int64))
        self.origin = np.zeros(0, np.int64)  # (a,) rows of Grip that are active
        self.active = Candidates(np.zeros(len(rows) + 1, np.int64), np.zeros(0, np.int32), np.zeros(0, np.int32))
        self.spots, self.kept = empty_spots(0), np.zeros(0, np.int8)  # of the active ones


def empty_grip(count):
    """Nothing remembered."""
    return Grip(
        first=np.zeros(count, np.int32),
        second=np.zeros(count, np.int32),
        gap=np.zeros(count),
        live=np.zeros(count, np.int8),
        slip=np.zeros((count, 3)),
        force=np.zeros((count, 3)),
        share=np.zeros(count),
        overlap=np.zeros(count),
    )


def empty_rooms(room):
    """Nothing known of pairs with rooms for so many candidates (q,)."""
    count = len(room)
    begin = np.concatenate([[0], np.cumsum(room)]).astype(np.int64)
    return Rooms(begin, np.zeros(count, np.int32), np.zeros(count, np.int8), np.zeros((count, 3)), np.zeros((count, 8)))


def make_bumps(state, before):
    """The Bumps of the present list of pairs of a State; before: those of the list before, or None."""
    pairs, shapes = state.pairs, state.shapes
    first = state.balls + state.solids + state.patches
    at_walls = first + state.meshed + np.nonzero(shapes.kind[pairs.shape[first + state.meshed :, 0]] == MESH)[0]
    rows = np.concatenate([np.arange(first, first + state.meshed), at_walls]).astype(np.int32)
    pair = np.ascontiguousarray(pairs.shape[rows])
    # The triangles of one wall body are one site with each particle; they stand side by side in the list.
    wall = shapes.kind[pair[:, 1]] == TRIANGLE
    same = wall[1:] & wall[:-1] & (pair[1:, 0] == pair[:-1, 0])
    same &= shapes.body[pair[1:, 1]] == shapes.body[pair[:-1, 1]]
    begins = np.nonzero(np.append(True, ~same))[0] if len(rows) else np.zeros(0, int)
    site = np.append(begins, len(rows)).astype(np.int32)
    near = least(state, pair[site[:-1]], state.surfaces.shortest)
    bumps = Bumps(rows, pair, site, near, margins(state, pair))
    if before is not None:
        # While lists change hands the first column of memory tells where the pair stood before.
        was = pairs.memory[rows, 0].astype(np.int64) - 1
        found = np.where(was >= 0, before.rooms.used[np.maximum(was, 0)], 0) if len(before.rows) else was * 0
        move_in(bumps, before, was, found)
    pairs.memory[rows] = 0.0
    return bumps


def least(state, pair, lengths):
    """The smaller of the lengths (m,) [m] of the meshes in each pair (c,2) of shapes, at their size: (c,)."""
    shapes = state.shapes
    mesh = shapes.kind[pair] == MESH
    length = np.full(pair.shape, np.inf)
    surface = state.parts.feature[shapes.part[pair[mesh]]]
    length[mesh] = lengths[surface] * state.bodies.scale[shapes.body[pair[mesh]]]
    return length.min(1) if len(pair) else np.zeros(0)


def margins(state, pair):
    """Margins [m] for the candidates of pairs (c,2): (c,). Powers of two, so that there are few different ones."""
    margin = MARGIN * np.minimum(state.size, least(state, pair, state.surfaces.ball))
    return 2.0 ** np.floor(np.log2(margin))


def move_in(bumps, before, was, wanted):
    """Give each pair a room for as many candidates as wanted (q,), and what pair was[k] of `before`, if not -1, had in its."""
    rooms = empty_rooms(wanted + (SPARE * wanted).astype(np.int64) + (wanted > 0))
    grip = empty_grip(int(rooms.begin[-1]))
    if len(before.rows):
        kernel(move_row, grain=64)(len(was), was, before.rooms, before.grip, rooms, grip)
    bumps.rooms, bumps.grip = rooms, grip


def move_row(k, was, old, old_grip, rooms, grip):
    """Copy what is known of one pair."""
    o = was[k]
    if o < 0:
        return
    rooms.used[k], rooms.known[k] = old.used[o], old.known[o]
    for i in range(3):
        rooms.apart[k, i] = old.apart[o, i]
    for i in range(8):
        rooms.turn[k, i] = old.turn[o, i]
    for j in range(old.used[o]):
        copy_candidate(old.begin[o] + j, old_grip, rooms.begin[k] + j, grip)


@func
def copy_candidate(c, source, d, target):
    """Copy row c of one Grip to row d of another."""
    target.first[d], target.second[d], target.gap[d] = source.first[c], source.second[c], source.gap[c]
    target.live[d] = source.live[c]
    if source.live[c] == 1:
        copy_memory(c, source, d, target)
    else:
        # Another candidate may have stood in this row before.
        for i in range(3):
            target.slip[d, i] = 0.0


@func
def copy_memory(c, source, d, target):
    """Copy what candidate c of one Grip remembers to candidate d of another."""
    target.live[d] = 1
    target.share[d], target.overlap[d] = source.share[c], source.overlap[c]
    for i in range(3):
        target.slip[d, i] = source.slip[c, i]
        target.force[d, i] = source.force[c, i]


# How far bodies have moved.


@func
def turned_by(q, turn, k, at):
    """At least the angle [rad] between orientation q (4,) of a body and columns `at` on of turn; infinite if it is large."""
    square = 0.0
    for j in range(4):
        d = q[j] - turn[k, at + j]
        square += d * d
    # Twice the chord between two quaternions is the angle, up to 5 % for chords below 1/2.
    return 2.1 * math.sqrt(square) if square < 0.25 else math.inf


@func
def between_origins(a, b, bodies, shapes):
    """From shape a to shape b (3,) [m]: centres of particles, origins of the bodies of walls."""
    start = load(shapes.centre, a)
    end = load(shapes.centre, b) if shapes.kind[b] < FIRST_WALL else load(bodies.position, shapes.body[b])
    return sub(end, start)


def apart_row(j, chosen, pair, bodies, shapes, apart):
    """Remember how far one of the chosen pairs is apart."""
    k = chosen[j]
    apart[k, 0], apart[k, 1], apart[k, 2] = between_origins(pair[k, 0], pair[k, 1], bodies, shapes)


def moved_row(k, pair, rooms, bodies, shapes, edges, way):
    """How much nearer [m] points of the two bodies of pair k may have come since their candidates were looked for."""
    if rooms.known[k] == 0:
        way[k] = math.inf
        return
    a, b = pair[k, 0], pair[k, 1]
    i, j = shapes.body[a], shapes.body[b]
    now = between_origins(a, b, bodies, shapes)
    d = sub(now, load(rooms.apart, k))
    if PERIODIC:
        d = (image(d[0], edges[0], edges[3]), image(d[1], edges[1], edges[4]), image(d[2], edges[2], edges[5]))
    moved = norm(d)
    # A ball does not come nearer by turning about its centre.
    if shapes.kind[a] == MESH:
        one = turned_by(load4(bodies.orientation, i), rooms.turn, k, 0)
        moved += one * shapes.radius[a] if one > 0.0 else 0.0
    if shapes.kind[b] != SPHERE:
        two = turned_by(load4(bodies.orientation, j), rooms.turn, k, 4)
        # A wall is turned about a point that may be far away; what matters is where the particle is.
        arm = shapes.radius[b] if shapes.kind[b] == MESH else norm(now) + shapes.radius[a]
        moved += two * arm if two > 0.0 else 0.0
    way[k] = moved


def edges_of(box):
    """Lengths and their inverses of a periodic box, as kernels take them."""
    return (*box.length.tolist(), *box.inverse.tolist())


def renew(state):
    """Look for the candidates of all pairs again that have moved too far; returns how far each has (q,) [m]."""
    bumps = state.bumps
    way = np.empty(len(bumps.rows))
    measure = kernel(moved_row, grain=1024, PERIODIC=bool(state.box.periodic))
    where = bumps.pair, *state.kernel_tables[:2], edges_of(state.box), way
    measure(len(way), where[0], bumps.rooms, *where[1:])
    if (way > bumps.margin).any():
        look_for(state, np.nonzero(way > EARLY * bumps.margin)[0])
        measure(len(way), where[0], bumps.rooms, *where[1:])
    return way


def look_for(state, chosen):
    """Find the candidates of the chosen pairs (c,) where the bodies are now."""
    margin = state.bumps.margin[chosen]
    for one in np.unique(margin):
        alike = chosen[margin == one]
        for at in range(0, len(alike), TASK):
            look_for_some(state, alike[at : at + TASK], float(one))


def look_for_some(state, chosen, margin):
    """The same for pairs with one margin [m], so few that what is found fits into memory before most of it is left out."""
    bumps = state.bumps
    pair = np.ascontiguousarray(bumps.pair[chosen])
    start, grip = near_triangles(state, pair, margin)
    kernel(carry_row, grain=64)(len(chosen), chosen, bumps.rooms, bumps.grip, start, grip)
    count = np.diff(start)
    if (count > np.diff(bumps.rooms.begin)[chosen]).any():
        wanted = bumps.rooms.used.astype(np.int64)
        wanted[chosen] = count
        bumps.rooms.used[chosen] = 0
        move_in(bumps, bumps, np.arange(len(wanted)), wanted)
    body, rooms = state.shapes.body[pair], bumps.rooms
    rooms.used[chosen], rooms.known[chosen] = count, 1
    kernel(apart_row)(len(chosen), chosen, bumps.pair, *state.kernel_tables[:2], rooms.apart)
    rooms.turn[chosen] = state.bodies.orientation[body].reshape(-1, 8)
    kernel(settle_row, grain=64)(len(chosen), chosen, start, grip, rooms.begin, bumps.grip)


def near_triangles(state, pair, margin):
    """Candidates of pairs (c,2) with a gap up to margin [m]: where those of each begin (c+1,), and a fresh Grip of them."""
    tables, surfaces = state.kernel_tables, state.there.surfaces
    found = find_candidates(tables, surfaces, pair, state.box, margin)
    spots = empty_spots(len(found.first))
    measure_candidates(tables, surfaces, pair, found, state.box, "brute", 0.0, spots)
    near = spots.gap <= margin
    start = np.concatenate([[0], np.cumsum(near)])[found.start]
    rows = np.nonzero(near)[0]
    grip = empty_grip(len(rows))
    return start, grip._replace(first=found.first[rows], second=found.second[rows], gap=spots.gap[rows])


def carry_row(j, chosen, old, old_grip, start, grip):
    """Give the new candidates of one pair the memory that the same triangles had."""
    k = chosen[j]
    for c in range(old.begin[k], old.begin[k] + old.used[k]):
        if old_grip.live[c] == 1:
            for d in range(start[j], start[j + 1]):
                if grip.first[d] == old_grip.first[c] and grip.second[d] == old_grip.second[c]:
                    copy_memory(c, old_grip, d, grip)
                    break


def settle_row(j, chosen, start, found, begin, grip):
    """Put the candidates found for one pair into its room."""
    at = begin[chosen[j]]
    for c in range(start[j], start[j + 1]):
        copy_candidate(c, found, at + c - start[j], grip)


# Which candidates are looked at in a step.


def active_row(k, way, rooms, grip, fill, start, first, second, origin, count):
    """Count the active candidates of pair k or, if fill, write them from start[k] on."""
    found = 0
    if not fill or start[k + 1] > start[k]:
        for c in range(rooms.begin[k], rooms.begin[k] + rooms.used[k]):
            if grip.gap[c] <= way[k] or grip.live[c] == 1:
                if fill:
                    at = start[k] + found
                    first[at], second[at], origin[at] = grip.first[c], grip.second[c], c
                found += 1
    if not fill:
        count[k] = found


def look(state, narrow, tolerance):
    """Find the candidates that are active where the bodies are now, and measure them."""
    way = renew(state)
    bumps, total = state.bumps, len(state.bumps.rows)
    choose = kernel(active_row, grain=1024)
    count, none = np.empty(total, np.int32), np.empty(0, np.int32)
    about = way, bumps.rooms, bumps.grip
    choose(total, *about, False, np.empty(0, np.int64), none, none, np.empty(0, np.int64), count)
    start = primitives.scan(count)
    found = int(start[-1])
    first, second, bumps.origin = np.empty(found, np.int32), np.empty(found, np.int32), np.empty(found, np.int64)
    bumps.active = Candidates(start, first, second)
    bumps.spots, bumps.kept = empty_spots(found), np.empty(found, np.int8)
    if found == 0:
        return
    choose(total, *about, True, start, first, second, bumps.origin, count)
    tables, surfaces = state.kernel_tables, state.there.surfaces
    measure_candidates(tables, surfaces, bumps.pair, bumps.active, state.box, narrow, tolerance, bumps.spots)


def kept_contacts(state):
    """Contacts at present (c,), rows of the active candidates, and the pair of the bumps that each belongs to (c,)."""
    bumps = state.bumps
    rows = np.nonzero(bumps.kept)[0]
    return rows, np.searchsorted(bumps.active.start, rows, side="right") - 1


# What a checkpoint holds of a contact: body and part of both shapes, the two triangles, then slip, force, share, overlap.
CARRIED = 14


def carried(state):
    """Memory of all contacts (c,14), in an order that does not depend on rows of memory."""
    kept, pair = kept_contacts(state)
    bumps = state.bumps
    rows, grip = bumps.origin[kept], bumps.grip
    columns = names_of(state, bumps.pair[pair], grip.first[rows], grip.second[rows])
    table = np.column_stack([columns, grip.slip[rows], grip.force[rows], grip.share[rows], grip.overlap[rows]])
    return table[np.lexsort(table[:, 5::-1].T)]


def names_of(state, shape, first, second):
    """Body and part of both shapes (c,2), and triangles first and second (c,): (c,6)."""
    body = state.shapes.body[shape]
    number, part = state.bodies.number[body], state.shapes.number[shape] - state.label[body]
    return np.column_stack([number[:, 0], part[:, 0], number[:, 1], part[:, 1], first, second]).astype(float)


def put_back(state, table, narrow, tolerance):
    """Give the contacts of a fresh list the memory that `carried` returned."""
    table = np.asarray(table).reshape(-1, CARRIED)
    renew(state)
    bumps = state.bumps
    # Rows in use: within each room the first `count`.
    many = bumps.rooms.used
    used = np.repeat(bumps.rooms.begin[:-1] - np.cumsum(many) + many, many) + np.arange(many.sum())
    grip, shape = bumps.grip, np.repeat(bumps.pair, many, axis=0)
    listed = names_of(state, shape, grip.first[used], grip.second[used])
    _, place = np.unique(np.concatenate([table[:, :6], listed]), axis=0, return_inverse=True)
    place = place.reshape(-1)
    row = np.full(place.max(initial=-1) + 1, -1)
    row[place[len(table) :]] = used
    rows = row[place[: len(table)]]
    if (rows < 0).any():
        raise ValueError("the contacts in the checkpoint do not fit its bodies; the file was made by another version")
    grip.live[rows] = 1
    grip.slip[rows], grip.force[rows] = table[:, 6:9], table[:, 9:12]
    grip.share[rows], grip.overlap[rows] = table[:, 12], table[:, 13]
    look(state, narrow, tolerance)
    bumps.kept[:] = grip.live[bumps.origin]

"""Which triangles of triangulated particles may touch: kept from step to step, and found again pair by pair.

Each pair of the neighbour list that has a triangulated particle has its *candidates*, one slot each: the pairs of triangles
whose gap was less than a margin when they were looked for. They hold until the way of the two bodies against each other, step by
step, is as long as that margin; only then are they looked for again, and only for this pair: bodies that fly or rest together cost nothing.
In a step those candidates are *active* whose gap may have closed since it was seen last. Only these are measured, and a gap that is
measured is seen anew. Pairs that can have none sleep: nothing is done for them but to note how far their bodies have moved.
"""

import math
from typing import NamedTuple

import numpy as np

from ..broad.near import ROUNDING, image, repeats
from ..broad.neighbour_list import copy_history
from ..kernels import primitives
from ..kernels.backend import func, kernel
from ..kernels.kinds import is_wall
from ..kernels.vec import add, load, load4, norm, sub
from ..tables import MESH
from .ellipsoids import between
from .mesh_candidates import SHIFT, TRIANGLE_BITS, find_candidates, with_features
from .mesh_candidates import Candidates as NearTriangles
from .mesh_inside import contained
from .mesh_merge import merge_points
from .mesh_points import empty_measured, measure_candidates
from .mesh_pose import least_length, make_setting, surface_rows
from .polyhedra import ball_radius

MARGIN = 0.15  # of candidates, as a part of a typical radius or, if that is less, of the radius of the smaller mesh of a pair
EARLY = 0.7  # where some pair must be looked at again, so are all that have moved by this part of the margin
SPARE = 0.25  # room for more candidates of a pair than there are, as a part of these
TASK = 65536  # pairs whose candidates are looked for at a time
EXACT = "brute"  # the method whose gaps are believed to `ROUNDING`
FINE, CROSSING = 0, 1  # what `points_row` reports of a manifold


class Known(NamedTuple):
    """What is known of pairs with a triangulated particle, one row each; their candidates stand in their slots."""

    used: np.ndarray  # (k,) int32, slots that hold candidates, the first of the pair
    known: np.ndarray  # (k,) int8, 0 if candidates have never been looked for
    apart: np.ndarray  # (k,3) [m], from the first to the second shape in the last step, see `between_origins`
    turn: np.ndarray  # (k,8) orientation of the two bodies then
    margin: np.ndarray  # (k,) [m], up to which gap they were looked for
    way: np.ndarray  # (k,) [m], by how much points of the two may have come nearer since they were looked for
    least: np.ndarray  # (k,) [m], way up to which none of them is active


class MeshPairs(NamedTuple):
    """The pairs of a neighbour list that have a triangulated particle."""

    rows: np.ndarray  # (k,) int64, pairs, counted behind those of spheres
    pair: np.ndarray  # (k,2) int32, rows of Shapes
    owner: np.ndarray  # (k,) int32, its manifold
    manifold: np.ndarray  # (s+1,) int32, first row of each manifold
    near: np.ndarray  # (s,) [m], points nearer than this are one


class Active(NamedTuple):
    """Candidates that are looked at in a step, of the pairs that are awake."""

    row: np.ndarray  # (w,) int64, those pairs, rows of MeshPairs
    start: np.ndarray  # (w+1,) int64, first of each
    first: np.ndarray  # (a,) int32, as in `mesh_candidates.Candidates`
    second: np.ndarray  # (a,) int32
    slot: np.ndarray  # (a,) int64, where each stands in ContactPoints
    kept: np.ndarray  # (a,) int8, 1 if it is a contact point, 0 if not or one and the same as another


class Triangles(NamedTuple):
    """Candidates, one row per slot of ContactPoints."""

    first: np.ndarray  # (c,) int32, as in `mesh_candidates.Candidates`
    second: np.ndarray  # (c,) int32
    seen: np.ndarray  # (c,) [m], way of the pair, see Known, on which its gap may close
    touched: np.ndarray  # (c,) int8, 1 if it was a contact point at the last look


def empty_known(count):
    """Nothing known of so many pairs."""
    used, known = np.zeros(count, np.int32), np.zeros(count, np.int8)
    return Known(used, known, np.zeros((count, 3)), np.zeros((count, 8)), *(np.zeros(count) for _ in range(3)))


def empty_triangles(count):
    """Room for so many candidates."""
    first, second, touched = np.zeros(count, np.int32), np.zeros(count, np.int32), np.zeros(count, np.int8)
    return Triangles(first, second, np.zeros(count), touched)


def empty_active(row, start):
    """Room for the candidates of pairs row (w,), which begin at start (w+1,)."""
    count = int(start[-1])
    first, second, kept = np.empty(count, np.int32), np.empty(count, np.int32), np.empty(count, np.int8)
    return Active(row, start, first, second, np.empty(count, np.int64), kept)


class Candidates:
    """The pairs of a neighbour list that have a triangulated particle, and which of their triangles may touch."""

    def __init__(self, listed, margin):
        self.listed, count = listed, len(listed.rows)  # MeshPairs
        self.margin = margin  # (k,) [m], by how much candidates may come nearer before they are looked for again
        self.known, self.triangles = empty_known(count), empty_triangles(0)
        self.room = np.zeros(count, np.int64)  # slots of each pair
        none = np.zeros(0, np.int64)
        self.active, self.measured = empty_active(none, np.zeros(1, np.int64)), empty_measured(0)

    @classmethod
    def of(cls, state, was):
        """Those of the present list of a State; was (q,): row of each pair in the list before, or -1."""
        none = np.zeros(0, np.int64)
        ranges = [r for r in state.ranges if r.family.slots == 0]
        first = state.spheres_count
        rows = np.concatenate([none, *(np.arange(r.first, r.first + r.length) - first for r in ranges)])
        pair = np.ascontiguousarray(state.pairs.shape[rows + first])
        # Where each manifold begins, counted over these pairs alone.
        begins, behind = [none], 0
        for r in ranges:
            begins.append(state.pairs.manifold[r.manifold : r.manifold + r.manifolds] - (r.first - first) + behind)
            behind += r.length
        manifold = np.append(np.concatenate(begins), len(rows)).astype(np.int32)
        owner = np.repeat(np.arange(len(manifold) - 1, dtype=np.int32), np.diff(manifold))
        near = least_length(state.tables, state.surfaces, pair[manifold[:-1]], state.surfaces.shortest)
        made = cls(MeshPairs(rows, pair, owner, manifold, near), margins(state, pair))
        before = state.candidates
        if before is not None and len(before.listed.rows):
            earlier = before.listed.rows
            place = np.full(len(was) + int(earlier.max(initial=0)) + 1, -1)
            place[earlier] = np.arange(len(earlier))
            o = np.where(was[rows] >= 0, place[np.maximum(was[rows], 0)], -1)
            found = o >= 0
            for mine, theirs in zip(made.known, before.known, strict=True):
                mine[found] = theirs[o[found]]
        made.want(made.known.used)
        return made

    def want(self, count):
        """Ask for slots for so many candidates (k,) of each pair, and some to spare."""
        count = count.astype(np.int64)
        self.room = count + (SPARE * count).astype(np.int64) + (count > 0)

    def touch(self, slot):
        """What stands in these slots (c,) is a contact point: it is looked at, wherever it is now."""
        self.triangles.touched[slot] = 1
        self.known.least[:] = -np.inf

    def move_in(self, before, was, old_slot, slot):
        """Take over the candidates of the slots before, see `State.lay_out`."""
        old = None if before is None else before.triangles  # those before may be these
        self.triangles = empty_triangles(int(slot[-1]))
        rows = self.listed.rows
        self.begin = slot[rows]
        if old is not None:
            kernel(move_row, grain=64)(len(rows), rows, was, self.known.used, old_slot, old, slot, self.triangles)


def move_row(k, rows, was, used, old_slot, old, slot, triangles):
    """Copy the candidates of one pair."""
    q = rows[k]
    o = was[q]
    if o >= 0:
        for j in range(used[k]):
            copy_candidate(old_slot[o] + j, old, slot[q] + j, triangles)


@func
def copy_candidate(c, source, d, target):
    """Copy row c of one table of Triangles to row d of another."""
    target.first[d], target.second[d] = source.first[c], source.second[c]
    target.seen[d], target.touched[d] = source.seen[c], source.touched[c]


def margins(state, pair):
    """Margins [m] for the candidates of pairs (c,2): (c,)."""
    return MARGIN * np.minimum(state.size, least_length(state.tables, state.surfaces, pair, state.surfaces.ball))


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
    end = load(bodies.position, shapes.body[b]) if is_wall(shapes.kind[b]) else load(shapes.centre, b)
    return sub(end, start)


def apart_row(j, chosen, pair, bodies, shapes, apart):
    """Remember how far one of the chosen pairs is apart."""
    k = chosen[j]
    apart[k, 0], apart[k, 1], apart[k, 2] = between_origins(pair[k, 0], pair[k, 1], bodies, shapes)


@func
def swung(i, lever, bodies, known, k, side):
    """How far [m] points at a lever [m] may have moved because body i, the first (0) or second (1) of pair k, turned."""
    # A ball does not come nearer by turning about its centre.
    return turned_by(load4(bodies.orientation, i), known.turn, k, 4 * side) * lever if lever > 0.0 else 0.0


def moved_row(k, pair, known, bodies, shapes, parts, edges):
    """Add to the way of pair k how much nearer [m] points of its two bodies may have come since it was last asked for."""
    if known.known[k] == 0:
        known.way[k] = math.inf
        return
    a, b = pair[k, 0], pair[k, 1]
    i, j = shapes.body[a], shapes.body[b]
    now = between_origins(a, b, bodies, shapes)
    d = sub(now, load(known.apart, k))
    if repeats(edges):
        d = (image(d[0], edges[0], edges[3]), image(d[1], edges[1], edges[4]), image(d[2], edges[2], edges[5]))
    one = shapes.radius[a] if parts.swing[shapes.part[a]] > 0.0 else 0.0
    two = shapes.radius[b] if parts.swing[shapes.part[b]] > 0.0 else 0.0
    if is_wall(shapes.kind[b]):
        # A wall is turned about a point that may be far away; what matters is where the particle is.
        two = norm(now) + shapes.radius[a]
    known.way[k] += norm(d) + swung(i, one, bodies, known, k, 0) + swung(j, two, bodies, known, k, 1)
    known.apart[k, 0], known.apart[k, 1], known.apart[k, 2] = now
    for c in range(4):
        known.turn[k, c], known.turn[k, 4 + c] = bodies.orientation[i, c], bodies.orientation[j, c]


def renew(state, reach):
    """Look for the candidates of all pairs again that have moved too far to know all with a gap up to reach [m]."""
    found = state.candidates
    known = found.known
    kernel(moved_row, grain=1024)(len(known.way), found.listed.pair, known, *state.kernel_tables[:3], state.edges)
    # Never more than the own margin of a pair, however fast it was when it was looked at: corners and crossings were candidates for that turn.
    left = np.minimum(known.margin - reach, found.margin)
    if (known.way > left).any():
        look_for(state, np.nonzero(known.way > EARLY * left)[0], reach)


def look_for(state, chosen, reach):
    """Find the candidates of the chosen pairs (c,) where the bodies are now."""
    for at in range(0, len(chosen), TASK):
        look_for_some(state, chosen[at : at + TASK], reach)


def look_for_some(state, chosen, reach):
    """The same for so few that what is found fits into memory before most of it is left out."""
    found = state.candidates
    pair = np.ascontiguousarray(found.listed.pair[chosen])
    margin = found.margin[chosen] + reach
    start, triangles = near_triangles(state, pair, margin)
    _, history = state.empty_slots(0, len(triangles.seen))
    used = found.known.used
    kernel(carry_row, grain=64)(
        len(chosen), chosen, found.begin, used, found.triangles, state.history, start, triangles, history
    )
    count = np.diff(start)
    if (count > found.room[chosen]).any():
        used[chosen] = 0
        wanted = used.copy()
        wanted[chosen] = count
        found.want(wanted)
        room = np.diff(state.pairs.slot)
        room[found.listed.rows] = found.room
        state.lay_out(room, np.arange(len(room)), state.pairs.slot, found)
    body, known = state.shapes.body[pair], found.known
    known.used[chosen], known.known[chosen], known.margin[chosen] = count, 1, margin
    known.way[chosen], known.least[chosen] = 0.0, -np.inf
    kernel(apart_row)(len(chosen), chosen, found.listed.pair, *state.kernel_tables[:2], known.apart)
    known.turn[chosen] = state.bodies.orientation[body].reshape(-1, 8)
    kernel(settle_row, grain=64)(
        len(chosen),
        chosen,
        start,
        triangles,
        history,
        found.begin,
        found.room,
        found.triangles,
        state.history,
        state.points,
    )


def near_triangles(state, pair, margin):
    """Candidates of pairs (c,2) with a gap up to margin (c,) [m]: where those of each begin (c+1,), and Triangles."""
    surfaces = state.there.surfaces
    setting = make_setting(state.kernel_tables, surfaces, pair, state.box)
    whole, gap = nearer(setting, surfaces, find_candidates(setting, surfaces, margin, features=False), margin)
    # Corners and sides are not nearer than their triangles: of most pairs of triangles they need not be looked at.
    found = with_features(setting, surfaces, whole)
    if found is not whole:
        found, gap = nearer(setting, surfaces, found, margin)
    return found.start, Triangles(found.first, found.second, gap, np.zeros(len(gap), np.int8))


def nearer(setting, surfaces, candidates, margin):
    """Those of the candidates of a Setting whose gap is up to the margin (c,) [m] of their pair, and their gaps."""
    measured = empty_measured(len(candidates.first))
    measure_candidates(setting, surfaces, candidates, EXACT, 0.0, measured, near=True)
    near = measured.gap <= np.repeat(margin, np.diff(candidates.start))
    start = np.concatenate([[0], np.cumsum(near)])[candidates.start]
    rows = np.nonzero(near)[0]
    return NearTriangles(start, candidates.first[rows], candidates.second[rows]), measured.gap[rows]


def carry_row(j, chosen, begin, used, old, old_history, start, triangles, history):
    """Give the new candidates of one pair the history that the same triangles had."""
    k = chosen[j]
    for c in range(begin[k], begin[k] + used[k]):
        if old_history.live[c] == 1:
            for d in range(start[j], start[j + 1]):
                if triangles.first[d] == old.first[c] and triangles.second[d] == old.second[c]:
                    copy_history(c, old_history, d, history)
                    break


def settle_row(j, chosen, start, found, found_history, begin, room, triangles, history, points):
    """Put the candidates found for one pair into its slots."""
    k = chosen[j]
    at, count = begin[k], start[j + 1] - start[j]
    for i in range(room[k]):
        points.gap[at + i] = np.inf
        if i < count:
            copy_candidate(start[j] + i, found, at + i, triangles)
            copy_history(start[j] + i, found_history, at + i, history)
        else:
            history.live[at + i] = 0


# Which candidates are looked at in a step.


def active_row(w, reach, begin, known, triangles, fill, active, count):
    """Count the active candidates of pair active.row[w] or, if fill, write them; reach [m]: gaps up to it are asked for."""
    k = active.row[w]
    way = known.way[k] + reach
    found, least = 0, np.inf
    if not fill or active.start[w + 1] > active.start[w]:
        own, other, opens = -1, -1, 0.0
        for c in range(begin[k], begin[k] + known.used[k]):
            first, second = triangles.first[c], triangles.second[c]
            if second < 0 or second >> SHIFT == 0:
                own, other, opens = first, second, triangles.seen[c]
            # Corners and sides of two triangles are not nearer than these.
            follows = first == own and second & TRIANGLE_BITS == other
            seen = max(triangles.seen[c], opens) if follows else triangles.seen[c]
            if seen <= way or triangles.touched[c] == 1:
                if fill:
                    at = active.start[w] + found
                    active.first[at], active.second[at], active.slot[at] = first, second, c
                found += 1
            least = min(least, -np.inf if triangles.touched[c] == 1 else seen)
        if not fill:
            known.least[k] = least
    if not fill:
        count[w] = found


def seen_row(w, exact, known, active, gap, triangles):
    """Remember what was seen of the active candidates of pair active.row[w]: which are contact points and, if gaps are exact, those of whole triangles.

    Corners and sides are contact points in some poses only, and their gap tells nothing of the next.
    """
    k = active.row[w]
    if active.start[w + 1] > active.start[w]:
        known.least[k] = -np.inf  # contact points are looked at next time, however little is asked for then
    for c in range(active.start[w], active.start[w + 1]):
        triangles.touched[active.slot[c]] = active.kept[c]
        if exact and active.second[c] >= 0 and active.second[c] >> SHIFT == 0:
            triangles.seen[active.slot[c]] = known.way[k] + gap[c] - ROUNDING * known.margin[k]


def look(state, margin, narrow, tolerance):
    """Find the candidates that may have a gap up to margin [m] where the bodies are now, and measure them."""
    reach = max(margin, 0.0)
    renew(state, reach)
    found = state.candidates
    awake = np.nonzero(found.known.least <= found.known.way + reach)[0]  # where bodies fly, few of many pairs
    choose, count = kernel(active_row, grain=64), np.zeros(len(awake), np.int32)
    about = reach, found.begin, found.known, found.triangles
    found.active = empty_active(awake, np.zeros(1, np.int64))
    if len(awake):
        choose(len(awake), *about, False, found.active, count)
        found.active = empty_active(awake, primitives.scan(count))
    many = len(found.active.slot)
    found.measured = empty_measured(many)
    if many > 0:
        choose(len(awake), *about, True, found.active, count)
        surfaces = state.there.surfaces
        setting = make_setting(state.kernel_tables, surfaces, found.listed.pair[awake], state.box)
        candidates = NearTriangles(found.active.start, found.active.first, found.active.second)
        measure_candidates(setting, surfaces, candidates, narrow, tolerance, found.measured)


# From candidates to contact points.


@func
def write_point(c, slot, a, b, radius, measured, feature, shapes, edges, points):
    """Write what was measured of candidate c, of shapes a and b, into its slot."""
    points.gap[slot], points.radius[slot], points.feature[slot] = measured.gap[c], radius, feature
    # Points are beside the triangulated particle, the first if both are; the other may be an image.
    own = a if shapes.kind[a] == MESH else b
    arm = sub(load(measured.point, c), load(shapes.centre, own))
    if own == b:
        arm = add(arm, between(a, b, shapes.centre, edges))
    for i in range(3):
        points.arm[slot, i] = arm[i]
        points.normal[slot, i] = measured.normal[c, i]


def points_row(i, limit, first, listed, active, measured, bodies, shapes, parts, surfaces, edges, points, status):
    """Contact points of one manifold with a gap below limit [m]: of candidates that are one and the same the deepest.

    first (m+1,): its first pair that is awake, a row of Active. Pairs that sleep had no contact points when they fell asleep.
    """
    low, high = first[i], first[i + 1]
    start, kept = active.start, active.kept
    merge_points(start[low], start[high], measured, limit, listed.near[listed.owner[active.row[low]]], kept)
    status[i] = FINE
    for w in range(low, high):
        k = active.row[w]
        a, b, q = listed.pair[k, 0], listed.pair[k, 1], listed.rows[k]
        points.count[q] = 0
        if start[w] == start[w + 1]:
            continue
        ra, rb = ball_radius(a, bodies, shapes, parts), ball_radius(b, bodies, shapes, parts)
        radius = ra * rb / (ra + rb) if rb > 0.0 else ra
        flat = is_wall(shapes.kind[b]) and parts.feature[shapes.part[b]] < 0
        for c in range(start[w], start[w + 1]):
            if kept[c] == 1:
                # Which triangle of the body that is triangulated, of the first if both are.
                feature = 0 if flat else surfaces.row[active.first[c]]
                points.count[q] += 1
                write_point(c, active.slot[c], a, b, radius, measured, feature, shapes, edges, points)
                if measured.crossing[c] != 0:
                    status[i] = CROSSING
            else:
                points.gap[active.slot[c]] = np.inf


def find_points(state, margin, narrow, tolerance):
    """Contact points with a gap up to margin [m] of all pairs with a triangulated particle; returns which manifolds have surfaces
    that cross (s,)."""
    look(state, margin, narrow, tolerance)
    found, there = state.candidates, state.there
    awake = len(found.active.row)
    if awake == 0:
        return np.empty(0, int)
    owner = found.listed.owner[found.active.row]
    begins = np.nonzero(np.diff(owner, prepend=-1))[0]
    tables = there.bodies, there.shapes, there.parts, there.surfaces, state.edges, state.points
    what = float(np.nextafter(margin, math.inf)), np.append(begins, awake), found.listed, found.active, found.measured
    status = np.empty(len(begins), np.int8)
    kernel(points_row, grain=16)(len(begins), *what, *tables, status)
    seen = found.known, found.active, found.measured.gap, found.triangles
    kernel(seen_row, grain=64)(awake, narrow == EXACT, *seen)
    return owner[begins[status != FINE]]


def swallowed(state, manifolds=None):
    """Pairs of shapes (c,2) of which one lies inside the other, a sphere with its centre; `find_points` has looked at them
    before. manifolds (s,): only these, whose surfaces cross, are asked for.
    """
    found = state.candidates
    listed = found.listed
    every = np.arange(len(listed.pair))
    # The triangles of a wall hold nothing inside; parts of one body are asked one by one.
    chosen = every if manifolds is None else every[np.isin(listed.owner, manifolds)]
    pair = np.ascontiguousarray(found.listed.pair[chosen])
    inside = contained(state.kernel_tables, state.there.surfaces, pair, state.box)
    # Where two surfaces of triangles cross, a corner inside tells nothing new.
    crossing = np.nonzero(found.measured.crossing)[0]
    crossed = found.active.row[np.searchsorted(found.active.start, crossing, side="right") - 1]
    both = (surface_rows(state.tables, state.surfaces, pair) >= 0).all(1)
    return pair[inside & ~(both & np.isin(chosen, crossed))]

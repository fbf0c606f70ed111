"""Forces of contact points: the law at every point that touches, whatever the shapes, and what pairs do to their bodies.

Points that touch are gathered 64 at a time into local arrays, over which the law runs as vector instructions. The width is
fixed and lanes do not know of each other, so a point gets the same bits wherever it stands.
"""

from typing import NamedTuple

import numpy as np

from ..broad.near import repeats
from ..kernels import backend
from ..kernels.backend import func, fused, kernel
from ..kernels.launch import same
from ..kernels.rows import PER_MASS, SPIN, VELOCITY, spin_at, velocity_at
from ..kernels.tuples import reader, writer
from ..kernels.vec import add, cross, dot, lane_vector, load, put_lane_vector, scale, sub
from ..motion.rotation import inverse_at
from . import history as remembered
from . import laws, tangent
from .conserving import balance, no_account
from .history import forget, list_lone, match
from .laws import Mix, Touch
from .partners import away_of, between, moving_row, turning_of

WIDTH = 64
BLOCK = 256  # manifolds a task

# Rows of the lanes: what the law reads, and in the same array, so that the compiler makes vector instructions, what it writes.
RELATIVE, SPIN_A, SPIN_B, ARM, AWAY, NORMAL, SLIP, ANGLE = 0, 3, 6, 9, 12, 15, 18, 21
# From KEPT on: the numbers that the law keeps, then the material.
OVERLAP, LIGHTNESS, RADIUS, SHARE, CENTRE, INVERSE_A, INVERSE_B, KEPT = 24, 25, 26, 27, 28, 31, 37, 43
FORCE, COUPLE, MOMENT, BACK = RELATIVE, SPIN_A, SPIN_B, AWAY


class Acts(NamedTuple):
    """The functions that are bound to a kernel: what acts, and how its numbers are read and written."""

    law: object  # (touch, mix, dt) -> normal force, shear force, slip, kept
    resist: object  # see `clast.dem.tangent`
    mix_of: object  # (mixes, row) -> the combined material
    lane_mix: object  # (lane, k) -> the same, of a lane
    kept_of: object  # (near, row) -> what the law keeps
    lane_kept: object  # (lane, k) -> the same, of a lane
    keep: object  # (array, row, kept): writes it into History.kept
    lane_keep: object  # (lane, k, kept)
    settle: object  # keeps account of energies, see `clast.dem.conserving`


def acts(law, rolling):
    """The Acts of a `laws.Law`."""
    count, kept = len(law.needs), len(law.keeps)
    return Acts(
        law.answer,
        tangent.resistance(law, rolling),
        reader(law.mix, count),
        reader(law.mix, count, KEPT + kept, True),
        reader(law.kept, kept, remembered.COLUMNS),
        reader(law.kept, kept, KEPT, True),
        writer(kept),
        writer(kept, KEPT, True),
        balance if law.account > 0.0 else no_account,
    )


# Bound to the kernel: what acts, and what the scene has.
law, resist, mix_of, lane_mix, kept_of, lane_kept, keep, lane_keep, settle = acts(laws.LAWS["hertz"], True)
KEEPS = 0  # how many numbers the law keeps beside the slip
FLAGS = 0  # bit i: number i of these is yes or no
TOLD = 0  # bit i: number i of these is told and not asked for again
NEEDS = len(Mix._fields)  # how many it needs of the materials
LONE = (
    False  # every manifold has one slot, which takes up its own history and shares with none: on the CPU a shorter way
)
ROLLING = False
UNIFORM = False  # one material
SHARING = True  # points of one area of contact share a stiffness; else each has a spring of its own
ACCOUNT = 0.0  # see `clast.dem.laws.Law.account`


class About(NamedTuple):
    """What is bound to a kernel, see above, and what it sees of the scene."""

    lone: bool
    parts: bool  # some body has parts with centres of their own
    rolling: bool
    periodic: bool
    uniform: bool
    sharing: bool
    kept: int = 0
    needs: int = 0
    beyond: float = 0.0  # [m], the largest gap at which the law acts
    account: float = 0.0
    flags: int = 0
    eccentric: bool = False  # normals may pass by the centres of bodies
    told: int = 0


@fused
def respond(overlap, rate, n, slide, slip, kept, of_both, mix, dt, law):
    """The law at a contact point whose overlap grows at `rate`: normal force, shear force, slip, what it keeps."""
    return law(Touch(overlap, rate, n, slide, slip, 1.0 / of_both[0], of_both[1], kept), mix, dt)


@fused
def answer(v, spins, arms, centre, n, overlap, memory, of_both, mix, dt, law, lone):
    """Answer of a contact point: the pressure that limits friction [N], force on b, slip, what the law keeps.

    memory: the slip, and what the law keeps.

    v (3,): velocity of the centre of b against that of a; spins, arms (2,3): of a and of b, arms from the centre to the point;
    centre (3,): from the point to the centre of pressure of its area, not asked if lone; of_both: one over what they weigh there
    [1/kg], reduced radius [m].
    """
    v = sub(add(v, cross(spins[1], arms[1])), cross(spins[0], arms[0]))
    opening = dot(v, n)
    slide = sub(v, scale(opening, n))
    # Shear is answered under the pressure of the whole area, which knows nothing of its rocking.
    whole = opening if lone else opening + dot(cross(sub(spins[1], spins[0]), centre), n)
    slip, kept = memory
    # It has been turned along with the normal; about that it turns with the mean spin.
    slip = laws.swing(slip, n, n, 0.25 * dt * dot(add(spins[0], spins[1]), n))
    pressure, shear, slip_after, kept_after = respond(overlap, -whole, n, slide, slip, kept, of_both, mix, dt, law)
    normal = pressure
    if not lone:
        normal, _, _, _ = respond(overlap, -opening, n, slide, slip, kept, of_both, mix, dt, law)
    return pressure, add(scale(normal, n), shear), slip_after, kept_after


@func
def gather(k, h, slots, tables, spheres, mixes, edges, lane, about, family):
    """Write what the law reads of slot c of pair q, (c, q) = slots, into lane k; h: row of near; the others as in `work_off`."""
    rows, inverse, shapes, pairs, points, history, _, near, _ = tables
    walls = family[1]
    # Unsigned numbers are not tested for being negative.
    k, c, p, h = np.uintp(k), np.uintp(slots[0]), np.uintp(slots[1] + spheres), np.uintp(h)
    s, t = np.uintp(pairs.shape[p, 0]), np.uintp(pairs.shape[p, 1])
    a = np.uintp(shapes.body[s]) if about.parts else s
    b = np.uintp(shapes.body[t]) if about.parts or walls else t
    for i in range(3):
        lane[AWAY + i, k] = between(s, t, a, b, i, rows, edges, about.periodic)
        lane[RELATIVE + i, k] = rows[b, VELOCITY + i] - rows[a, VELOCITY + i]
        lane[SPIN_A + i, k] = rows[a, SPIN + i]
        lane[SPIN_B + i, k] = rows[b, SPIN + i]
    if about.lone:
        lives = history.live[c] == 1
        lane[RADIUS, k], lane[OVERLAP, k] = points.radius[c], -points.gap[c]
        slip = (0.0, 0.0, 0.0)
        if lives:
            slip = remembered.turned(load(history.slip, c), load(history.normal, c), load(points.normal, c))
        put_lane_vector(lane, SLIP, k, slip)
        for i in range(3):
            lane[NORMAL + i, k] = points.normal[c, i]
            lane[ARM + i, k] = points.arm[c, i] + (rows[s, i] - rows[a, i] if about.parts else 0.0)
            if about.rolling:
                lane[ANGLE + i, k] = history.angle[c, i] if lives else 0.0
        for i in range(about.kept):
            lane[KEPT + i, k] = history.kept[c, i] if lives else 0.0
        lane[LIGHTNESS, k] = rows[a, PER_MASS] + rows[b, PER_MASS]
        if about.eccentric:
            put_six(lane, INVERSE_A, k, inverse_at(a, rows, inverse))
            put_six(lane, INVERSE_B, k, inverse_at(b, rows, inverse))
    else:
        lane[RADIUS, k], lane[LIGHTNESS, k] = near[h, remembered.RADIUS], near[h, remembered.LIGHTNESS]
        for i in range(3):
            lane[NORMAL + i, k] = near[h, remembered.NORMAL + i]
            lane[ARM + i, k] = near[h, remembered.ARM + i]
            lane[SLIP + i, k] = near[h, remembered.SLIP + i]
            lane[CENTRE + i, k] = near[h, remembered.CENTRE + i]
            if about.rolling:
                lane[ANGLE + i, k] = near[h, remembered.ANGLE + i]
        for i in range(about.kept):
            lane[KEPT + i, k] = near[h, remembered.COLUMNS + i] if (about.told >> i) & 1 == 0 else 0.0
        lane[SHARE, k], lane[OVERLAP, k] = near[h, remembered.SHARE], near[h, remembered.OVERLAP]
    if not about.uniform:
        m = np.uintp(pairs.mix[p])
        for i in range(about.needs):
            lane[KEPT + about.kept + i, k] = mixes[m, i]


@func
def put_six(lane, row, k, v):
    """Write six numbers into rows of lane k."""
    lane[row, k], lane[row + 1, k], lane[row + 2, k] = v[0], v[1], v[2]
    lane[row + 3, k], lane[row + 4, k], lane[row + 5, k] = v[3], v[4], v[5]


@func
def six(lane, row, k):
    """Six rows of lane k."""
    return lane[row, k], lane[row + 1, k], lane[row + 2, k], lane[row + 3, k], lane[row + 4, k], lane[row + 5, k]


@func
def weigh_lanes(lane):
    """What the two bodies weigh in all lanes, of points that are areas of their own; others know it from `history.match`."""
    for k in range(WIDTH):
        arm, away, n = lane_vector(lane, ARM, k), lane_vector(lane, AWAY, k), lane_vector(lane, NORMAL, k)
        lane[LIGHTNESS, k] += turning_of(arm, away, n, six(lane, INVERSE_A, k), six(lane, INVERSE_B, k))


@func
def scatter(k, slots, begins, lane, points, history, wrench, about):
    """Write the answer in lane k to slot c, what it remembers, and what it does to the bodies of pair q; (c, q) = slots; begins: it is the
    first point of its pair."""
    k, c, q = np.uintp(k), np.uintp(slots[0]), np.uintp(slots[1])
    for i in range(3):
        points.force[c, i] = lane[FORCE + i, k]
        history.slip[c, i] = lane[SLIP + i, k]
        if about.rolling:
            points.couple[c, i] = lane[COUPLE + i, k]
            history.angle[c, i] = lane[ANGLE + i, k]
        history.arm[c, i] = 0.0 if about.lone else lane[ARM + i, k]
        history.normal[c, i] = lane[NORMAL + i, k]
        if begins:
            wrench.force[q, i] = lane[FORCE + i, k]
            wrench.moment[q, 0, i] = lane[MOMENT + i, k]
            wrench.moment[q, 1, i] = lane[BACK + i, k]
        else:
            wrench.force[q, i] += lane[FORCE + i, k]
            wrench.moment[q, 0, i] += lane[MOMENT + i, k]
            wrench.moment[q, 1, i] += lane[BACK + i, k]
    for i in range(about.kept):
        history.kept[c, i] = lane[KEPT + i, k]
    history.share[c], points.overlap[c] = 1.0 if about.lone else lane[SHARE, k], lane[OVERLAP, k]
    history.live[c] = 1


@func
def work_lanes(lane, mixes, dt, acts, about):
    """The law in all lanes."""
    mix = acts.mix_of(mixes, 0)
    for k in range(WIDTH):
        if not about.uniform:
            mix = acts.lane_mix(lane, k)
        n, wa, wb = lane_vector(lane, NORMAL, k), lane_vector(lane, SPIN_A, k), lane_vector(lane, SPIN_B, k)
        arm = lane_vector(lane, ARM, k)
        arms = (arm, sub(arm, lane_vector(lane, AWAY, k)))
        v, slip, overlap = lane_vector(lane, RELATIVE, k), lane_vector(lane, SLIP, k), lane[OVERLAP, k]
        centre, lightness, radius = lane_vector(lane, CENTRE, k), lane[LIGHTNESS, k], lane[RADIUS, k]
        memory = slip, acts.lane_kept(lane, k)
        pressure, force, slip, kept = answer(
            v, (wa, wb), arms, centre, n, overlap, memory, (lightness, radius), mix, dt, acts.law, about.lone
        )
        if not about.lone:
            force = scale(lane[SHARE, k], force)
        moment, back = cross(arms[0], force), cross(arms[1], force)
        if about.rolling:
            angle = lane_vector(lane, ANGLE, k)
            couple, angle, kept = acts.resist(angle, sub(wb, wa), pressure, n, overlap, radius, kept, mix, dt)
            if not about.lone:
                couple = scale(lane[SHARE, k], couple)
            moment, back = add(moment, couple), add(back, couple)
            put_lane_vector(lane, COUPLE, k, couple)
            put_lane_vector(lane, ANGLE, k, angle)
        put_lane_vector(lane, FORCE, k, force)
        put_lane_vector(lane, SLIP, k, slip)
        acts.lane_keep(lane, k, kept)
        put_lane_vector(lane, MOMENT, k, moment)
        put_lane_vector(lane, BACK, k, back)


@func
def work_off(first, last, family, lane, lists, spheres, tables, mixes, edges, dt, acts, about):
    """Forces of all points of the manifolds first to last, 64 at a time.

    family: whether points stand for one area of contact and share its stiffness, whether the second shapes are walls, whether points stand in the
    first slots of a pair; lists: see `list_points`, with room for one more.

    A function of its own, because the row that makes the lanes counts references to all arrays of a table at every look into
    it: forces of 3,000 points took 320 us there.
    """
    _, _, _, pairs, points, history, wrench, _, _ = tables
    now, whose = lists[0], lists[1]
    if about.lone:
        found = list_lone(first, last, now, whose, pairs, points, history, wrench)
    else:
        found = match(first, last, family, spheres, lists, tables, mixes, edges, dt, acts, about)
    for at in range(0, found, WIDTH):
        used = min(WIDTH, found - at)
        for k in range(used):
            slots = now[np.uintp(at + k)], whose[np.uintp(at + k)]
            gather(k, at + k, slots, tables, spheres, mixes, edges, lane, about, family)
        if at == 0:
            # Later on these lanes hold points that have been worked off, which does no harm either.
            for k in range(used, WIDTH):
                for i in range(KEPT + about.kept + about.needs):
                    lane[i, k] = 1.0
        if about.lone and about.eccentric:
            weigh_lanes(lane)
        work_lanes(lane, mixes, dt, acts, about)
        for k in range(used):
            slots = now[np.uintp(at + k)], whose[np.uintp(at + k)]
            begins = about.lone or at + k == 0 or whose[np.uintp(at + k - 1)] != slots[1]
            scatter(k, slots, begins, lane, points, history, wrench, about)


@func
def count_points(first, last, pairs, points):
    """Points in use of the manifolds first to last."""
    many = 0
    for q in range(pairs.manifold[first], pairs.manifold[last]):
        many += points.count[np.uintp(q)]
    return many


@func
def count_past(first, last, pairs, wrench):
    """Slots of the pairs of the manifolds first to last that touched in the step before."""
    many = 0
    for q in range(pairs.manifold[first], pairs.manifold[last]):
        if wrench.live[np.uintp(q)] == 1:
            many += pairs.slot[np.uintp(q + 1)] - pairs.slot[np.uintp(q)]
    return many


def force_block(block, where, rows, inverse, shapes, pairs, points, history, wrench, mixes, edges, dt):
    """Forces of all points of a block of manifolds; where: the first of them, how many, pairs before the first slot, their family as in
    `work_off`, and what About says of parts, eccentric and beyond; inverse: see `clast.motion.rotation`."""
    begin, count, spheres, shares, walls, packed, parts, eccentric, beyond = where
    family = (shares, walls, packed)
    first, last = begin + block * BLOCK, min(begin + count, begin + (block + 1) * BLOCK)
    room = count_points(first, last, pairs, points) + 1
    past = 0 if LONE else count_past(first, last, pairs, wrench) + 1
    now, before = np.empty((3, room), np.int64), np.empty((2, past), np.int64)
    lists = (now[0], now[1], now[2], before[0], before[1])
    near = np.empty((0 if LONE else room, remembered.COLUMNS + KEEPS))
    past_rows = np.empty((past, remembered.PAST_COLUMNS + KEEPS))
    tables = (rows, inverse, shapes, pairs, points, history, wrench, near, past_rows)
    about = About(
        LONE, parts, ROLLING, repeats(edges), UNIFORM, SHARING, KEEPS, NEEDS, beyond, ACCOUNT, FLAGS, eccentric, TOLD
    )
    acts = Acts(law, resist, mix_of, lane_mix, kept_of, lane_kept, keep, lane_keep, settle)
    lane = np.empty((KEPT + KEEPS + NEEDS, WIDTH))
    work_off(first, last, family, lane, lists, spheres, tables, mixes, edges, dt, acts, about)


def force_row(k, where, rows, inverse, shapes, pairs, points, history, wrench, scratch, mixes, edges, dt):
    """The same for one manifold, one point at a time, for a CUDA grid; scratch: lists, near and past, with a row for each slot."""
    begin, _, spheres, shares, walls, packed, parts, eccentric, beyond = where
    family = (shares, walls, packed)
    now, whose, own, before, whom, near, past = scratch
    m = begin + k
    low, high = pairs.slot[pairs.manifold[m]], pairs.slot[pairs.manifold[m + 1]]
    lists = now[low:high], whose[low:high], own[low:high], before[low:high], whom[low:high]
    near, past = near[low:high], past[low:high]
    about = About(
        False, parts, ROLLING, repeats(edges), UNIFORM, SHARING, KEEPS, NEEDS, beyond, ACCOUNT, FLAGS, eccentric, TOLD
    )
    tables = rows, inverse, shapes, pairs, points, history, wrench, near, past
    acts = Acts(law, resist, mix_of, lane_mix, kept_of, lane_kept, keep, lane_keep, settle)
    found = match(m, m + 1, family, spheres, lists, tables, mixes, edges, dt, acts, about)
    for h in range(found):
        c, q = lists[0][h], lists[1][h]
        if h == 0 or lists[1][h - 1] != q:
            forget(q, wrench)
        p = q + spheres
        s, t = pairs.shape[p, 0], pairs.shape[p, 1]
        a, b = moving_row(s, shapes, parts), moving_row(t, shapes, parts)
        mix = mix_of(mixes, pairs.mix[p])
        v = sub(velocity_at(rows, b), velocity_at(rows, a))
        wa, wb = spin_at(rows, a), spin_at(rows, b)
        away = away_of(s, t, a, b, rows, edges, about.periodic)
        arm, slip = remembered.vector(near, h, remembered.ARM), remembered.vector(near, h, remembered.SLIP)
        n, radius, centre = load(points.normal, c), points.radius[c], remembered.vector(near, h, remembered.CENTRE)
        share, overlap = near[h, remembered.SHARE], near[h, remembered.OVERLAP]
        lightness = near[h, remembered.LIGHTNESS]
        arms = (arm, sub(arm, away))
        memory = slip, kept_of(near, h)
        pressure, force, slip, kept = answer(
            v, (wa, wb), arms, centre, n, overlap, memory, (lightness, radius), mix, dt, law, False
        )
        force = scale(share, force)
        moment, back = cross(arms[0], force), cross(arms[1], force)
        if ROLLING:
            angle = remembered.vector(near, h, remembered.ANGLE)
            couple, angle, kept = resist(angle, sub(wb, wa), pressure, n, overlap, radius, kept, mix, dt)
            couple = scale(share, couple)
            moment, back = add(moment, couple), add(back, couple)
            for i in range(3):
                points.couple[c, i] = couple[i]
                history.angle[c, i] = angle[i]
        for i in range(3):
            points.force[c, i] = force[i]
            history.slip[c, i] = slip[i]
            history.arm[c, i] = arm[i]
            history.normal[c, i] = n[i]
            wrench.force[q, i] += force[i]
            wrench.moment[q, 0, i] += moment[i]
            wrench.moment[q, 1, i] += back[i]
        keep(history.kept, c, kept)
        history.share[c], points.overlap[c] = share, overlap
        history.live[c] = 1


def compose(law, rolling, uniform):
    """The kernels of contact points for a `laws.Law`: {whether every manifold has one slot: kernel}."""
    on_cpu = backend.DEVICE[-1] is backend.CPU
    return {
        lone: kernel(
            force_block if on_cpu else force_row,
            fastmath=("contract", "nsz"),
            grain=4,
            allocates=on_cpu,
            **acts(law, rolling)._asdict(),
            LONE=lone,
            ROLLING=rolling,
            UNIFORM=uniform,
            SHARING=law.shares,
            KEEPS=len(law.keeps),
            FLAGS=sum(1 << i for i, name in enumerate(law.keeps) if name in law.flags),
            TOLD=sum(1 << i for i, name in enumerate(law.keeps) if name in law.told),
            NEEDS=len(law.needs),
            ACCOUNT=law.account,
        )
        for lone in ((False, True) if on_cpu else (False,))
    }


def is_lone(state, family):
    """Whether every manifold of a family has one slot, whatever the neighbour list: on the CPU a shorter way."""
    walled = family.walls and len(state.meshes.triangle) > 0
    return state.device is backend.CPU and family.slots == 1 and not walled


def apply(force_kernels, about, state, inverse, mixes, edges, dt):
    """What contact points of a State remember and share, their forces, and the wrench of each pair; force_kernels: see `compose`;
    about: whether some body has parts with centres of their own, whether normals may pass by centres; inverse: see `clast.motion.rotation`."""
    device, slots = state.device, len(state.points.gap)
    tables = state.there.rows, inverse, state.there.shapes, state.pairs, state.points, state.history, state.wrench
    on_cpu, scratch = device is backend.CPU, ()
    if not on_cpu and state.ranges:
        lists = (device.empty(slots, np.int64) for _ in range(5))
        wide = remembered.COLUMNS + state.kept, remembered.PAST_COLUMNS + state.kept
        scratch = *lists, *(device.empty((slots, columns), np.float64) for columns in wide)
    for r in state.ranges:
        family = r.family.shares, r.family.walls, r.family.slots > 0
        where = same(r.manifold, r.manifolds, state.spheres_count, *family, *about, float(state.beyond))
        force_kernel = force_kernels[is_lone(state, r.family)]
        if on_cpu:
            force_kernel((r.manifolds + BLOCK - 1) // BLOCK, where, *tables, mixes, edges, dt)
        else:
            force_kernel(r.manifolds, where, *tables, scratch, mixes, edges, dt)

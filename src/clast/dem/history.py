"""What contact points remember from step to step, and how the points of one manifold share a stiffness.

All points of two bodies, over however many parts and triangles, form a manifold. Points of one area of contact slip together: of what they
remember the nearest rigid motion is taken, a shift and a turn about the normal, and a point has the slip that this gives where it
is. So it does not matter which points stand for an area from step to step: the shear force stays when shares of the stiffness
go from point to point, and a particle that slides from one triangle of a mesh to the next, or whose corners of contact change,
takes its slip along. Points that are areas of their own keep their slip, and one that begins takes that of the nearest
point which ended, if that was near and looked the same way. Slip is a length, and points share the stiffness, so handing
one slip to two points makes no force from nothing.

Points of one area of contact answer with their share d_i^8 / sum of d_j^8 max(0, n_i . n_j)^2, d the overlap, of the law at the mean
overlap by these shares: the force does not depend on how many points stand for the area, and a point that comes or goes brings or takes no force.
Forces that are never below zero have both, and a potential besides, only if the deepest point bears all; the eighth power is near to that. Of 400
squares that fall flat and rock, without damping, the energy is off by 0.07 % on average and by 1.6 % at the most; with the power 3/2, as of springs
side by side, by 1 % and 21 %, and a box on a slope below the angle of friction never comes to rest. Friction and rolling resistance are
limited by the pressure on the area as a whole, at its centre of pressure, where the mean overlap changes as the law is told: a corner that lifts while a
box rocks, and presses no more for a moment, does not lose the slip of the area.
"""

import math
from typing import Any

import numpy as np

from ..kernels.backend import func
from ..kernels.vec import add, cross, dot, load, scale, sub
from .partners import away_of, lightness_of, moving_row

ALIKE = 0.5  # cosine between two normals above which a point may take up the slip of the other
SAME_AREA = 0.9  # cosine between two normals above which points slip together
POINTLIKE = 1e-4  # an area narrower than this fraction of the radius does not turn
TINY = 1e-300  # an overlap or weight below that bears nothing
STAYS = 0.01  # a point that moved by less than this part of its radius is the same
FAR = 4.0  # a turn is believed up to so many times the width of the points that it is known from


# Points are brought side by side before they are compared: columns of those in use,
ARM, NORMAL, GAP, RADIUS = (
    0,
    3,
    6,
    7,
)  # of the point; arms from the centre of the first body; gaps less those at which the law begins to act
SLIP, ANGLE, SHARE, OVERLAP = 8, 11, 14, 15  # what it takes up, and what it shares
CENTRE = 16  # from the point to the centre of pressure of its area [m]
LIGHTNESS = 19  # one over what the two bodies weigh for a push there [1/kg]
COLUMNS = 20  # and behind them the numbers that the law keeps
# and of those that were in use in the step before.
PAST_ARM, PAST_NORMAL, PAST_SLIP, PAST_ANGLE, PAST_SHARE = 0, 3, 6, 9, 12
PAST_COLUMNS = 13  # likewise


@func
def vector(near, k, column):
    """Three columns of row k."""
    return (near[k, column], near[k, column + 1], near[k, column + 2])


@func
def put(near, k, column, v):
    """Write a vector into three columns of row k."""
    near[k, column], near[k, column + 1], near[k, column + 2] = v


@func
def bring_near(found, now, old, before, points, history, near, past, about):
    """Write what is known of the first slots in the lists now and before into the rows of near and past, one below the other.

    Short loops without branches: the processor then waits for many places in memory at a time.
    """
    for row in range(found):
        k = np.uintp(row)
        c = np.uintp(now[k])
        for i in range(3):
            near[k, ARM + i] = points.arm[c, i]
            near[k, NORMAL + i] = points.normal[c, i]
        near[k, GAP] = points.gap[c] - about.beyond
        near[k, RADIUS] = points.radius[c]
    for row in range(old):
        k = np.uintp(row)
        c = np.uintp(before[k])
        for i in range(3):
            past[k, PAST_ARM + i] = history.arm[c, i]
            past[k, PAST_NORMAL + i] = history.normal[c, i]
            past[k, PAST_SLIP + i] = history.slip[c, i]
            if about.rolling:
                past[k, PAST_ANGLE + i] = history.angle[c, i]
        for i in range(about.kept):
            if (about.told >> i) & 1 == 0:
                past[k, PAST_COLUMNS + i] = history.kept[c, i]
        past[k, PAST_SHARE] = history.share[c]


@func
def weigh(part):
    """How much a point bears whose overlap is this part of the deepest."""
    square = part * part
    return square * square * square * square


@func
def share(n, begin, end, near):
    """Of the points of a manifold, rows begin to end, that look along n: one over the deepest overlap [1/m], one over what they bear
    together, their mean overlap [m] and their centre of pressure (3,) [m]."""
    deepest = TINY
    for row in range(begin, end):
        deepest = max(deepest, -near[np.uintp(row), GAP])
    per_deepest = 1.0 / deepest
    whole, depth, centre = TINY, 0.0, (0.0, 0.0, 0.0)
    for row in range(begin, end):
        j = np.uintp(row)
        along = max(0.0, dot(n, vector(near, j, NORMAL)))
        # A gap may be above zero by rounding, where all points of an area just touch.
        weight = weigh(max(-near[j, GAP], 0.0) * per_deepest) * along * along
        whole += weight
        depth -= weight * near[j, GAP]
        centre = add(centre, scale(weight, vector(near, j, ARM)))
    part = 1.0 / whole
    return per_deepest, part, part * depth, scale(part, centre)


@func
def turned(v, n, m):
    """A vector at right angles to n, turned along with n into m, both unit."""
    # A normal that is turned round in a step tells no way.
    return sub(v, scale(dot(m, v) / max(1.0 + dot(n, m), 0.1), add(n, m)))


@func
def rigid_slip(n, at, radius, low, high, past, about):
    """The rigid motion across n that is nearest to the slips which points of the step before remember that looked along n: how much of the
    stiffness they had, slip (3,) [m] of their middle, the middle (3,) [m], turn about n, square of the distance from the middle up to which that is
    believed [m^2], mean rolling angle (3,).

    at (3,) [m]: a place near them, about which turns are added up; radius [m]: the width of the contact is compared with it; low, high: rows of past.
    """
    whole, width, turn = 0.0, 0.0, 0.0
    middle, slip, angle = (0.0, 0.0, 0.0), (0.0, 0.0, 0.0), (0.0, 0.0, 0.0)
    for row in range(low, high):
        d = np.uintp(row)
        m = vector(past, d, PAST_NORMAL)
        weight = past[d, PAST_SHARE] * max(0.0, dot(n, m) - SAME_AREA)
        if weight > 0.0:
            own = turned(vector(past, d, PAST_SLIP), m, n)
            arm = sub(vector(past, d, PAST_ARM), at)
            across = cross(n, arm)
            whole += weight
            middle, slip = add(middle, scale(weight, arm)), add(slip, scale(weight, own))
            turn += weight * dot(across, own)
            width += weight * dot(across, across)
            if about.rolling:
                angle = add(angle, scale(weight, vector(past, d, PAST_ANGLE)))
    if whole == 0.0 or high == low + 1:
        # Nobody, or a point alone, which does not turn.
        if whole > 0.0:
            d = np.uintp(low)
            slip, middle = (
                turned(vector(past, d, PAST_SLIP), vector(past, d, PAST_NORMAL), n),
                vector(past, d, PAST_ARM),
            )
            if about.rolling:
                angle = vector(past, d, PAST_ANGLE)
        return whole, slip, middle, 0.0, 0.0, angle
    part = 1.0 / whole
    middle, slip, angle = scale(part, middle), scale(part, slip), scale(part, angle)
    across = cross(n, middle)
    # About the middle, from what was added up about `at`.
    turn, width = turn * part - dot(across, slip), width * part - dot(across, across)
    turn = turn / width if width > (POINTLIKE * radius) ** 2 else 0.0
    return whole, slip, add(at, middle), turn, FAR * FAR * width, angle


@func
def swung(turn, n, lever, believed):
    """Slip (3,) [m] that a turn about n gives at a lever (3,) [m]; no more than at the distance whose square [m^2] is `believed`."""
    square = dot(lever, lever)
    if square > believed:
        turn *= math.sqrt(max(believed, 0.0) / square)
    return scale(turn, cross(n, lever))


@func
def source(arm, n, reach, low, high, past):
    """The nearest of the rows low to high of past that a point at `arm` with normal n can take up, or -1."""
    best, least = -1, reach * reach
    for row in range(low, high):
        d = np.uintp(row)
        if dot(n, vector(past, d, PAST_NORMAL)) > ALIKE:
            way = sub(vector(past, d, PAST_ARM), arm)
            square = dot(way, way)
            if square < least:
                best, least = row, square
    return best


@func
def inherit(k, o, near, past, about):
    """Give row k of near what row o of past remembers, nothing if that is -1."""
    slip = (0.0, 0.0, 0.0)
    if o >= 0:
        d = np.uintp(o)
        slip = turned(vector(past, d, PAST_SLIP), vector(past, d, PAST_NORMAL), vector(near, k, NORMAL))
    put(near, k, SLIP, slip)
    for i in range(3):
        if about.rolling:
            near[k, ANGLE + i] = past[np.uintp(o), PAST_ANGLE + i] if o >= 0 else 0.0
    for i in range(about.kept):
        if (about.told >> i) & 1 == 0:
            near[k, COLUMNS + i] = past[np.uintp(o), PAST_COLUMNS + i] if o >= 0 else 0.0


@func
def inherit_area(k, n, low, high, near, past, about):
    """Give row k of near the mean of the numbers that points of the step before keep which looked along n, by their shares, as `rigid_slip` has it.

    Of those that are yes or no the least: an area whose bond breaks at one of its points is broken.
    """
    for i in range(about.kept):
        if (about.told >> i) & 1:
            continue
        whole, number, least = 0.0, 0.0, np.inf
        for row in range(low, high):
            d = np.uintp(row)
            weight = past[d, PAST_SHARE] * max(0.0, dot(n, vector(past, d, PAST_NORMAL)) - SAME_AREA)
            whole += weight
            number += weight * past[d, PAST_COLUMNS + i]
            if weight > 0.0:
                least = min(least, past[d, PAST_COLUMNS + i])
        near[k, COLUMNS + i] = least if (about.flags >> i) & 1 else number / whole


@func
def take_up_area(begin, end, low, high, near, past, about):
    """Complete the rows begin to end of near, a manifold whose points stand for one area: what they share and take up.

    low, high: its rows of past.
    """
    last = (0.0, 0.0, 0.0)
    per_deepest, part, depth, centre = 1.0, 1.0, 0.0, last
    known, slip, middle, turn, believed, angle = 0.0, last, last, 0.0, 0.0, last
    for row in range(begin, end):
        k = np.uintp(row)
        n, arm = vector(near, k, NORMAL), vector(near, k, ARM)
        # Most areas are flat: their points have one normal, and one answer.
        if n[0] != last[0] or n[1] != last[1] or n[2] != last[2]:
            per_deepest, part, depth, centre = share(n, begin, end, near)
            known, slip, middle, turn, believed, angle = rigid_slip(n, arm, near[k, RADIUS], low, high, past, about)
            last = n
        near[k, SHARE], near[k, OVERLAP] = weigh(max(-near[k, GAP], 0.0) * per_deepest) * part, depth - about.beyond
        put(near, k, CENTRE, sub(centre, arm))
        if known > 0.0:
            put(near, k, SLIP, add(slip, swung(turn, n, sub(arm, middle), believed)))
            if about.rolling:
                put(near, k, ANGLE, angle)
            inherit_area(k, n, low, high, near, past, about)
        else:
            inherit(k, source(arm, n, near[k, RADIUS], low, high, past), near, past, about)


@func
def take_up(row, own, alone, low, high, near, past, about):
    """Complete a row of near whose point is an area of its own: what it takes up.

    own: the row of past that its slot had, or -1; alone: its manifold has one slot; low, high: rows of past of its manifold.
    """
    k, o = np.uintp(row), own
    arm, reach = vector(near, k, ARM), near[k, RADIUS]
    near[k, SHARE], near[k, OVERLAP] = 1.0, -near[k, GAP] - about.beyond
    put(near, k, CENTRE, (0.0, 0.0, 0.0))
    if not alone:
        stays = False
        if o >= 0:
            way = sub(vector(past, np.uintp(o), PAST_ARM), arm)
            stays = dot(way, way) < STAYS * STAYS * reach * reach
        if not stays:
            o = source(arm, vector(near, k, NORMAL), reach, low, high, past)
    inherit(k, o, near, past, about)


@func
def forget(q, wrench):
    """Take the wrench of pair q back."""
    for i in range(3):
        wrench.force[q, i] = 0.0
        wrench.moment[q, 0, i] = 0.0
        wrench.moment[q, 1, i] = 0.0


@func
def list_lone(first, last, now, whose, pairs, points, history, wrench):
    """List the points in use of the manifolds first to last, pairs with one slot each, and their pairs: how many."""
    slot, many, live = pairs.slot, points.count, wrench.live
    found = 0
    # No branches that the processor cannot foresee; the lists have room for one more.
    for row in range(pairs.manifold[first], pairs.manifold[last]):
        q = np.uintp(row)
        now[np.uintp(found)], whose[np.uintp(found)] = slot[q], row
        found += many[q]
        if live[q] != many[q]:
            live[q] = many[q]
            if many[q] == 0:
                # Geometry does not look at pairs that are far enough apart.
                history.live[np.uintp(slot[q])], points.gap[np.uintp(slot[q])] = 0, np.inf
                forget(q, wrench)
    return found


@func
def list_points(first, last, packed, lists, pairs, points, history, wrench, beyond):
    """List the slots in use of the manifolds first to last with their pairs, and those that were in use in the step before with theirs: how
    many of each. Of the former also their place in the latter list, or -1.

    Forgets what slots remember that are not in use any more, and the wrench of pairs that are not. packed: the points of a pair stand in its first
    slots, and their gaps need not be looked at, for which the processor would wait.
    """
    now, whose, own, before, whom = lists
    slot, many, live = pairs.slot, points.count, wrench.live
    found, old = 0, 0
    for row in range(pairs.manifold[np.uintp(first)], pairs.manifold[np.uintp(last)]):
        q = np.uintp(row)
        left = many[q]
        if left == 0 and live[q] == 0:
            continue
        if left == 0:
            forget(q, wrench)
        live[q] = 1 if left > 0 else 0
        for c in range(slot[q], slot[q + np.uintp(1)]):
            used, lived = False, history.live[np.uintp(c)] == 1
            if left > 0 and (packed or points.gap[np.uintp(c)] < beyond):
                k = np.uintp(found)
                now[k], whose[k], own[k] = c, row, old if lived else -1
                found, left, used = found + 1, left - 1, True
            if lived:
                before[np.uintp(old)], whom[np.uintp(old)] = c, row
                old += 1
                if not used:
                    # Geometry does not look at pairs that are far enough apart.
                    history.live[np.uintp(c)], points.gap[np.uintp(c)] = 0, np.inf
    return found, old


@func
def weigh_bodies(begin, end, p, area, tables, edges, about):
    """Complete the rows begin to end of near, all of two bodies, p one of their pairs: what these weigh at each point.

    An area of contact is one spring and dashpot, which pushes at its centre of pressure: a box that falls flat on a face is stopped with all of its mass,
    also by four corners, and one that falls on a corner with what it weighs there. area: the points stand for such areas; else each is one of its own.
    """
    rows, inverse, shapes, pairs, _, _, _, near, _ = tables
    s, t = np.uintp(pairs.shape[np.uintp(p), 0]), np.uintp(pairs.shape[np.uintp(p), 1])
    a, b = moving_row(s, shapes, about.parts), moving_row(t, shapes, about.parts)
    away = away_of(s, t, a, b, rows, edges, about.periodic)
    last, lightness = (0.0, 0.0, 0.0), 0.0
    for row in range(begin, end):
        k = np.uintp(row)
        n = vector(near, k, NORMAL)
        arm = add(vector(near, k, ARM), vector(near, k, CENTRE))
        # As in `take_up_area`: points of one area that have one normal have one centre of pressure.
        if not area or n[0] != last[0] or n[1] != last[1] or n[2] != last[2]:
            lightness = lightness_of(a, b, arm, away, n, rows, inverse, about.eccentric)
            last = n
        near[k, LIGHTNESS] = lightness


@func
def match(first, last, family, spheres, lists, tables, mixes, edges, dt, acts, about):
    """List the points in use of the manifolds first to last and their pairs: how many; near: what they share and take up.

    acts: see `clast.dem.forces.Acts`.
    """
    k: Any
    rows, _, shapes, pairs, points, history, wrench, near, past = tables
    now, whose, own, before, whom = lists
    found, old = list_points(first, last, family[2], lists, pairs, points, history, wrench, about.beyond)
    bring_near(found, now, old, before, points, history, near, past, about)
    if about.parts:
        for row in range(found):
            k = np.uintp(row)
            s = np.uintp(pairs.shape[np.uintp(whose[k] + spheres), 0])
            from_body = sub(load(rows, s), load(rows, np.uintp(shapes.body[s])))
            put(near, k, ARM, add(vector(near, k, ARM), from_body))
    area = family[0] and about.sharing
    begin, low = 0, 0
    while begin < found:
        # The next manifold that has points: of the pair of the first of them.
        q = whose[np.uintp(begin)]
        while pairs.manifold[np.uintp(first + 1)] <= q:
            first += 1
        head, tail = pairs.manifold[np.uintp(first)], pairs.manifold[np.uintp(first + 1)]
        end = begin + 1
        while end < found and whose[np.uintp(end)] < tail:
            end += 1
        while low < old and whom[np.uintp(low)] < head:
            low += 1
        high = low
        while high < old and whom[np.uintp(high)] < tail:
            high += 1
        if area:
            take_up_area(begin, end, low, high, near, past, about)
            former = before[np.uintp(low)] if high > low else -1
            # An account asks what the bodies weigh.
            weigh_bodies(begin, end, q + spheres, area, tables, edges, about)
            acts.settle(begin, end, former, q + spheres, lists, tables, mixes, edges, dt, acts, about)
        else:
            alone = pairs.slot[np.uintp(tail)] == pairs.slot[np.uintp(head)] + 1
            for k in range(begin, end):
                take_up(k, own[np.uintp(k)], alone, low, high, near, past, about)
            weigh_bodies(begin, end, q + spheres, area, tables, edges, about)
        begin, low = end, high
    return found

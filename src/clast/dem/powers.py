"""What contacts do in a moment: the powers of a ledger, and their sums, which do not depend on the order of their terms.

Contacts that act are gathered 32 at a time into local arrays, over which the powers are found and added up as vector instructions. They are asked at the end of each
step, with the places and velocities that bodies have there (`then`, see `clast.motion.integrate.Watch`): the pass over bodies that ends a step and begins the next leaves these behind.
"""

import math

import numpy as np

from ..broad.near import image, repeats
from ..kernels.backend import func
from ..kernels.reached import stored
from ..kernels.rows import PER_MASS, REACH, SPIN, VELOCITY, centre_at, spin_at, velocity_at
from ..kernels.vec import add, cross, dot, lane_vector, load, load4, norm, put_lane_vector, scale, sub
from ..tables import SIDE_BY_SIDE

# Powers [W] of a contact; SLIDING: beside springs; GROSS: of the whole force, whatever its sign; DRIVEN: that driven bodies give; LOST: by springs that slid in the step
# that ends. BENT: of bonds, in place of ROLLING and TWISTING.
DASHPOT, DRAG, SLIDING, PRESSED, SHEARED, GROSS, ROLLING, TWISTING, DRIVEN, LOST, BENT = range(11)
WIDTH = 11
BONDED = 2.0  # in place of whether a contact slides: it is a bond that acts
KEPT = 4  # numbers that a law keeps for its ledger: force of the spring, stiffness in shear, energy lost by a spring that slides, and whether it slides

# Rows of the lanes: velocity of b against a where they touch, normal, spin of b against a, force and couple on b, slip, the numbers above, power of driven bodies; then what is told, the
# largest of it so far, and sums. Of spheres what stands in place of velocity and normal at first: that of the centres, the way from one to the other; and beside them spin times radius of both, and
# the sum of the radii.
MOTION, NORMAL, TURNING, FORCE, COUPLE, SLIP, SPRING, STIFF, SLID, SLIDES, DRIVE = (
    0,
    3,
    6,
    9,
    12,
    15,
    18,
    19,
    20,
    21,
    22,
)
TOLD, TOP, SUM, ROLL, REACHES = 23, 34, 45, 56, 59
ROWS = 60
# Bound to the kernels.
TURNS = True  # contacts have couples
PARTS = True  # spheres may be parts of bodies
LANES = 32
BLOCK, POINTS_BLOCK = 512, 128  # pairs a task

# All that is added is rounded to one unit: 2^-DIGITS of a power of two that the largest of a column is below, and that is at the most 2^ROOM times as large when it is chosen, and kept until it is
# 2^ROOM times too large. Of columns far below the largest of all, SMALL digits are enough. Sums of blocks are divided into a high and a low half, as in `clast.kernels.sums`.
DIGITS, ROOM, SMALL, HALF = 38, 4, 12, 20


@func
def tell_lanes(lane, per_dt):
    """What the contacts in all lanes do."""
    for k in range(LANES):
        v, n, turning = lane_vector(lane, MOTION, k), lane_vector(lane, NORMAL, k), lane_vector(lane, TURNING, k)
        force, couple, slip = lane_vector(lane, FORCE, k), lane_vector(lane, COUPLE, k), lane_vector(lane, SLIP, k)
        spring, stiff, slides = lane[SPRING, k], lane[STIFF, k], lane[SLIDES, k]
        opening, normal, worked = dot(v, n), dot(force, n), dot(force, v)
        sheared = stiff * dot(slip, v)
        dragged = normal * opening - worked - sheared
        about, turned = dot(turning, n) * dot(couple, n), dot(couple, turning)
        bond = slides == BONDED
        lane[TOLD + DASHPOT, k] = (spring - normal) * opening
        lane[TOLD + DRAG, k] = 0.0 if slides == 1.0 else dragged
        lane[TOLD + SLIDING, k] = dragged if slides == 1.0 else 0.0
        lane[TOLD + PRESSED, k], lane[TOLD + SHEARED, k] = -spring * opening, sheared
        lane[TOLD + GROSS, k] = abs(worked + turned)
        lane[TOLD + ROLLING, k] = 0.0 if bond else about - turned
        lane[TOLD + TWISTING, k] = 0.0 if bond else -about
        lane[TOLD + DRIVEN, k] = lane[DRIVE, k]
        lane[TOLD + LOST, k] = lane[SLID, k] * per_dt
        lane[TOLD + BENT, k] = -turned if bond else 0.0


@func
def add_lanes(lane, ledge):
    """Add what is told to the sums, rounded: by a sum with `ledge`, 1.5 2^52 units."""
    for j in range(WIDTH):
        unit = ledge[j]
        for k in range(LANES):
            x = lane[TOLD + j, k]
            size, top = abs(x), lane[TOP + j, k]
            lane[TOP + j, k] = size if size > top else top
            lane[SUM + j, k] += (x + unit) - unit


@func
def clear_lanes(lane, first, count):
    """Nothing in so many rows from `first` on."""
    for row in range(first, first + count):
        for k in range(LANES):
            lane[row, k] = 0.0


@func
def clear_rest(lane, used):
    """Contacts that do nothing in the lanes behind the first `used`."""
    for k in range(used, LANES):
        for row in range(FORCE, TOLD):
            lane[row, k] = 0.0


@func
def hand_over(lane, block, largest, total):
    """Write the largest and the sums of a block."""
    for j in range(WIDTH):
        top, whole = 0.0, 0.0
        for k in range(LANES):
            top = max(top, lane[TOP + j, k])
            whole += lane[SUM + j, k]
        largest[block, j], total[block, j] = top, whole


@func
def write_each(lane, used, whose, found):
    """Write what the contacts in the first lanes do into their rows."""
    for k in range(used):
        for j in range(WIDTH):
            found[whose[k], j] = lane[TOLD + j, k]


@func
def driven_power(row, then, arm, force, couple):
    """Power [W] that the body of a row gives to what acts on it with a force at an arm (3,) and a couple, if it is driven: nobody moves it by force."""
    if then[row, PER_MASS] > 0.0:
        return 0.0
    return -dot(force, add(velocity_at(then, row), cross(spin_at(then, row), arm))) - dot(couple, spin_at(then, row))


@func
def placed(s, then, rows):
    """Centre (3,) [m] of shape s: those in rows of their own have not been moved yet."""
    return centre_at(then, s) if s < len(then) else centre_at(rows, s)


@func
def turn_balls(lane):
    """Normal of spheres, and how fast they move against each other where they touch, in all lanes."""
    for k in range(LANES):
        d, roll = lane_vector(lane, NORMAL, k), lane_vector(lane, ROLL, k)
        put_lane_vector(
            lane, MOTION, k, sub(lane_vector(lane, MOTION, k), scale(1.0 / lane[REACHES, k], cross(roll, d)))
        )
        put_lane_vector(lane, NORMAL, k, scale(1.0 / max(norm(d), 1e-300), d))


@func
def gather_ball(lane, k, p, pairs, at, then, rows, spheres, edges, turns, parts):
    """Write pair p of spheres into lane k: their centres and velocities, those of parts as their bodies carry them. pairs: shapes of all pairs, and their bodies."""
    pair, body = pairs
    s, t = np.uintp(pair[p, 0]), np.uintp(pair[p, 1])
    a, b = (np.uintp(body[s]), np.uintp(body[t])) if parts else (s, t)
    ra, rb = rows[s, REACH] if parts else then[s, REACH], rows[t, REACH] if parts else then[t, REACH]
    periodic = repeats(edges)
    if parts:
        x, y = placed(s, then, rows), placed(t, then, rows)
        one, two = sub(x, centre_at(then, a)), sub(y, centre_at(then, b))
        put_lane_vector(lane, NORMAL, k, sub(y, x))
        v = sub(velocity_at(then, b), velocity_at(then, a))
        turned = sub(cross(spin_at(then, b), two), cross(spin_at(then, a), one))
        put_lane_vector(lane, MOTION, k, add(v, turned))
    for i in range(3):
        wa, wb = then[a, SPIN + i], then[b, SPIN + i]
        if not parts:
            lane[NORMAL + i, k] = then[b, i] - then[a, i]
            lane[MOTION + i, k] = then[b, VELOCITY + i] - then[a, VELOCITY + i]
        if periodic:
            lane[NORMAL + i, k] = image(lane[NORMAL + i, k], edges[i], edges[3 + i])
        lane[ROLL + i, k] = ra * wa + rb * wb
        lane[FORCE + i, k], lane[SLIP + i, k] = spheres.action[p, i], spheres.memory[p, i]
        if turns:
            lane[TURNING + i, k], lane[COUPLE + i, k] = wb - wa, spheres.couple[p, i]
    for i in range(KEPT):
        lane[SPRING + i, k] = spheres.memory[p, at + i]
    lane[REACHES, k], lane[DRIVE, k] = ra + rb, 0.0
    if then[a, PER_MASS] == 0.0 or then[b, PER_MASS] == 0.0:
        d, part = lane_vector(lane, NORMAL, k), 1.0 / (ra + rb)
        one, two = scale(ra * part, d), scale(-rb * part, d)
        if parts:
            one, two = (
                add(one, sub(placed(s, then, rows), centre_at(then, a))),
                add(two, sub(placed(t, then, rows), centre_at(then, b))),
            )
        force, couple = lane_vector(lane, FORCE, k), (0.0, 0.0, 0.0)
        if turns:
            couple = lane_vector(lane, COUPLE, k)
        given = driven_power(a, then, one, scale(-1.0, force), scale(-1.0, couple))
        lane[DRIVE, k] = given + driven_power(b, then, two, force, couple)


def tell_balls(block, where, per_dt, then, rows, body, pair, spheres, edges, ledge, out):
    """What pairs of spheres do, a block of them.

    out: if `each` is 1 what each does, and of each block the largest and sums; where: pairs, each, bodies before the first ghost, of whose pairs another process tells where they are the first, and the column of their memory from which on the numbers of the law stand; per_dt: one over the time step
    [1/s]; body (s,): column of Shapes; ledge: see `add_lanes`.
    """
    count, each, own, at = where
    found, largest, total = out
    memory, action, idle = spheres.memory, spheres.action, spheres.idle
    lane = np.ones((ROWS, LANES))
    clear_lanes(lane, TURNING, 3)
    clear_lanes(lane, COUPLE, 3)
    clear_lanes(lane, TOP, 2 * WIDTH)
    whose = np.empty(LANES, np.int64)
    used = 0
    for first in range(block * BLOCK, min(count, (block + 1) * BLOCK), SIDE_BY_SIDE):
        last = min(first + SIDE_BY_SIDE, count)
        if idle[np.uintp(first // SIDE_BY_SIDE)] == 1:
            continue
        for row in range(first, last):
            p = np.uintp(row)
            # Where a dashpot outweighs the spring a contact has no force, but a spring that loses what it holds; a bond that is only twisted has none either.
            acts = memory[p, at] != 0.0 or action[p, 0] != 0.0 or action[p, 1] != 0.0 or action[p, 2] != 0.0
            if not (acts or memory[p, at + 3] == BONDED):
                continue
            if body[np.uintp(pair[p, 0])] >= own:
                continue
            gather_ball(lane, np.uintp(used), p, (pair, body), np.uintp(at), then, rows, spheres, edges, TURNS, PARTS)
            whose[used] = row
            used += 1
            if used == LANES:
                turn_balls(lane)
                tell_lanes(lane, per_dt)
                add_lanes(lane, ledge)
                if each == 1:
                    write_each(lane, used, whose, found)
                used = 0
    if used > 0:
        clear_rest(lane, used)
        turn_balls(lane)
        tell_lanes(lane, per_dt)
        add_lanes(lane, ledge)
        if each == 1:
            write_each(lane, used, whose, found)
    hand_over(lane, block, largest, total)


@func
def gather_point(lane, k, c, between, points, history, then, turns):
    """Write the contact point of slot c into lane k; between: see `tell_points`."""
    a, b, from_body, away = between
    one = add(from_body, load(points.arm, c))
    two = sub(one, away)
    wa, wb = spin_at(then, a), spin_at(then, b)
    v = sub(add(velocity_at(then, b), cross(wb, two)), add(velocity_at(then, a), cross(wa, one)))
    force, couple = load(points.force, c), (0.0, 0.0, 0.0)
    put_lane_vector(lane, MOTION, k, v)
    put_lane_vector(lane, NORMAL, k, load(points.normal, c))
    put_lane_vector(lane, FORCE, k, force)
    if turns:
        couple = load(points.couple, c)
        put_lane_vector(lane, TURNING, k, sub(wb, wa))
        put_lane_vector(lane, COUPLE, k, couple)
    put_lane_vector(lane, SLIP, k, load(history.slip, c))
    part, (spring, stiff, slid, slides) = history.share[c], load4(history.kept, c)
    lane[SPRING, k], lane[STIFF, k], lane[SLID, k], lane[SLIDES, k] = part * spring, part * stiff, part * slid, slides
    lane[DRIVE, k] = 0.0
    if then[a, PER_MASS] == 0.0 or then[b, PER_MASS] == 0.0:
        given = driven_power(a, then, one, scale(-1.0, force), scale(-1.0, couple))
        lane[DRIVE, k] = given + driven_power(b, then, two, force, couple)


@func
def way_between(s, t, a, b, then, rows, edges):
    """From the centre of body a to that of b (3,) [m], or to its image for which the shapes s and t themselves are near, see `clast.dem.partners.between`."""
    d = sub(centre_at(then, b), centre_at(then, a))
    if repeats(edges):
        near = sub(placed(t, then, rows), placed(s, then, rows))
        x = image(near[0], edges[0], edges[3]), image(near[1], edges[1], edges[4]), image(near[2], edges[2], edges[5])
        d = x if a == s and b == t else add(d, sub(x, near))
    return d


def tell_points(block, where, per_dt, then, rows, body, pairs, points, history, edges, ledge, out):
    """The same of contact points of a block of pairs; where: pairs, each, own, pairs of spheres before the first, and the block of sums that is the first here."""
    count, each, own, spheres, first = where
    found, largest, total = out
    lane = np.ones((ROWS, LANES))
    clear_lanes(lane, TURNING, 3)
    clear_lanes(lane, COUPLE, 3)
    clear_lanes(lane, TOP, 2 * WIDTH)
    whose = np.empty(LANES, np.int64)
    used = 0
    for row in range(block * POINTS_BLOCK, min(count, (block + 1) * POINTS_BLOCK)):
        q = np.uintp(row)
        if points.count[q] == 0:
            continue
        p = np.uintp(row + spheres)
        s, t = np.uintp(pairs.shape[p, 0]), np.uintp(pairs.shape[p, 1])
        a, b = np.uintp(body[s]), np.uintp(body[t])
        if a >= own:
            continue
        from_body = sub(placed(s, then, rows), centre_at(then, a)) if a != s else (0.0, 0.0, 0.0)
        between = a, b, from_body, way_between(s, t, a, b, then, rows, edges)
        for slot in range(pairs.slot[q], pairs.slot[q + np.uintp(1)]):
            c = np.uintp(slot)
            if history.live[c] != 1:
                continue
            gather_point(lane, np.uintp(used), c, between, points, history, then, TURNS)
            whose[used] = slot
            used += 1
            if used == LANES:
                tell_lanes(lane, per_dt)
                add_lanes(lane, ledge)
                if each == 1:
                    write_each(lane, used, whose, found)
                used = 0
    if used > 0:
        clear_rest(lane, used)
        tell_lanes(lane, per_dt)
        add_lanes(lane, ledge)
        if each == 1:
            write_each(lane, used, whose, found)
    hand_over(lane, first + block, largest, total)


def tell_falling(block, where, then, mass, along, ledge, out):
    """What gravity gives to free bodies: its power [W] along directions in which the world repeats, as if it drove them; where: own, and the
    block of sums that is the first here."""
    own, first = where
    _, largest, total = out
    top, whole, unit = 0.0, 0.0, ledge[DRIVEN]
    for row in range(block * BLOCK, min(own, (block + 1) * BLOCK)):
        i = np.uintp(row)
        if then[i, PER_MASS] > 0.0:
            x = mass[i] * dot(velocity_at(then, i), along)
            top = max(top, abs(x))
            whole += (x + unit) - unit
    for j in range(WIDTH):
        largest[first + block, j], total[first + block, j] = 0.0, 0.0
    largest[first + block, DRIVEN], total[first + block, DRIVEN] = top, whole


@stored()
def add_blocks(largest, total, ledge, told):
    """Of all blocks the largest of each column, and sums in a high and a low half: told (3,11)."""
    for j in range(WIDTH):
        high, low, top, half = 0.0, 0.0, 0.0, ledge[j] * 2.0**HALF
        for block in range(len(total)):
            x = total[block, j]
            above = (x + half) - half
            high += above
            low += x - above
            top = max(top, largest[block, j])
        told[0, j], told[1, j], told[2, j] = top, high, low


@stored()
def choose_units(top, digits, ledge):
    """Whether the units (11,) of sums, 2^-DIGITS of 2^digits, are not right where `top` is the largest of each column; then they are chosen anew."""
    most = 0.0
    for j in range(WIDTH):
        most = max(most, top[j])
    if not 0.0 < most < math.inf:
        return False
    least, wrong = math.frexp(most)[1] - SMALL, False
    for j in range(WIDTH):
        largest = math.frexp(top[j])[1] if top[j] > 0.0 else least
        wrong = wrong or largest > digits[j] or max(largest + ROOM, least) < digits[j] - ROOM
    if wrong:
        for j in range(WIDTH):
            largest = math.frexp(top[j])[1] if top[j] > 0.0 else least
            digits[j] = max(largest + ROOM, least)
            ledge[j] = math.ldexp(1.5, 52 + digits[j] - DIGITS)
    return wrong


@stored()
def add_step(told, powers, sums, dt):
    """Add what was done in a step of dt [s] that ends with these sums of powers (3,11), and began with `powers` (11,)."""
    for j in range(WIDTH):
        power = told[1, j] + told[2, j]
        sums[j] += dt * power if j == LOST else 0.5 * dt * (powers[j] + power)
        powers[j] = power


def room(rows, size):
    """Tasks of this size for so many rows."""
    return (rows + size - 1) // size

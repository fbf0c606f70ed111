"""Forces of contacts of triangulated particles.

All contact points of two bodies are one *site*. Under a law with a stiffness of its own (hertz, linear, a user's) the points
of a site share it: point i answers with its share d_i / sum of d_j max(0, n_i . n_j)^2, d the overlap, of the law at the
overlap max over j of d_j max(0, n_i . n_j). So the force does not depend on how finely a body is meshed, and a point that
comes or goes brings or takes no force. Under the law "halo" every point has a spring of its own, as it is published.

What slips is a point. A point that begins where another of the same site ends takes its slip along: the nearest triangles
change all the time while one face slides over another.
"""

import numpy as np

from ..broad.near import image
from ..kernels.backend import func, kernel
from ..kernels.vec import add, cross, dot, load, scale, sub
from ..narrow.mesh_inside import contained
from ..narrow.mesh_merge import merge_site
from ..narrow.mesh_slots import look
from ..tables import FIRST_WALL, MESH
from . import laws
from .laws import Touch
from .sphere_pairs import mix_of

FINE, CROSSING = 0, 1  # what `site_row` reports

# Bound to each kernel, as in `clast.dem.sphere_pairs`.
law = laws.hertz
SHARED = True
PERIODIC = False


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
    return kernel(site_row, grain=64, law=law, SHARED=shared, PERIODIC=periodic)


def collide(site_kernel, state, method, mixes, dt):
    """Forces of all contacts with a triangulated particle; returns which sites have surfaces that cross (c,)."""
    look(state, method.narrow, method.tolerance)
    bumps, there = state.bumps, state.there
    was_busy, bumps.busy = bumps.busy, len(bumps.origin) > 0
    if not (bumps.busy or was_busy):
        return np.empty(0, int)  # nothing touches, and all forces are zero already
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


def swallowed(state, sites=None):
    """Pairs of shapes (c,2) of which one lies inside the other, a sphere with its centre; `collide` has looked at them before.

    sites (s,): only these, whose surfaces cross, are asked for.
    """
    bumps = state.bumps
    chosen = np.arange(len(bumps.pair)) if sites is None else bumps.site[sites]
    pair = np.ascontiguousarray(bumps.pair[chosen])
    inside = contained(state.kernel_tables, state.there.surfaces, pair, state.box)
    # Where the surfaces of two meshes cross, a corner inside tells nothing new.
    crossing = np.nonzero(bumps.spots.crossing)[0]
    crossed = np.searchsorted(bumps.active.start, crossing, side="right") - 1
    meshes = (state.shapes.kind[pair] == MESH).all(1)
    return pair[inside & ~(meshes & np.isin(chosen, crossed))]

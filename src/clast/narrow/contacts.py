"""Narrow phase: the exact contact of two shapes, and contacts as a library call."""

import math

import numpy as np

from ..broad.bins import bins, sphere_contacts
from ..broad.near import image
from ..broad.search import BROAD, find_pairs, periodic_box
from ..errors import pick
from ..kernels import primitives
from ..kernels.backend import func, kernel
from ..kernels.vec import load, sub
from ..shapes.ellipsoid_form import load_form, make_forms
from ..tables import ELLIPSOID, FIRST_WALL, MESH, POLYHEDRON, SPHERE, Contacts, empty_contacts
from . import round_walls as touch
from .dispatch import FAMILIES, FAMILY, refuse_mixture
from .ellipsoids import between, contact_arm, measure_solids, surface_point
from .mesh_points import METHODS
from .meshes import surface_contacts
from .polyhedra import measure_hulls
from .polyhedron_polyhedron import POINT

NARROW = {"opm": False, "chm+opm": True}  # whether the characteristic equation is asked first
DEFAULT = "opm"
TRIANGLES = "brute"  # how triangles are measured unless said


touch_wall = touch.ball_any  # bound to the kernel, so that only what a scene has is compiled


def touch_row(p, bodies, shapes, parts, meshes, hulls, forms, box, margin, pair, label, status, contacts):
    """The contact of one pair of shapes, the lower number first; status 0 where there is none within the margin.

    Pairs of particles other than two spheres are left to `solid_contact_row`, those with a polyhedron to `measure_hulls`,
    with a triangulated particle to `surface_contacts`.
    """
    a, b = pair[p, 0], pair[p, 1]
    status[p] = 0
    many_a, many_b = shapes.kind[a] in (POLYHEDRON, MESH), shapes.kind[b] in (POLYHEDRON, MESH)
    if many_a or many_b:
        name_row(p, a, b, bodies, shapes, label, contacts)
        return
    if max(shapes.kind[a], shapes.kind[b]) == ELLIPSOID:
        return
    swap = shapes.kind[a] >= FIRST_WALL
    s, t = (b, a) if swap else (a, b)
    c = load(shapes.centre, s)
    r = shapes.radius[s]
    if shapes.kind[t] == SPHERE:
        d = sub(load(shapes.centre, t), c)
        if box.periodic:
            d = (
                image(d[0], box.length[0], box.inverse[0]),
                image(d[1], box.length[1], box.inverse[1]),
                image(d[2], box.length[2], box.inverse[2]),
            )
        square = d[0] * d[0] + d[1] * d[1] + d[2] * d[2]
        distance = math.sqrt(square)
        # Two spheres with one centre may be parted in any direction.
        apart = distance > 0.0
        inverse = 1.0 / (distance if apart else 1.0)
        n = (d[0] * inverse, d[1] * inverse, d[2] * inverse if apart else 1.0)
        reach = r + shapes.radius[t]
        gap = distance - reach
        found = square <= (reach + margin) * (reach + margin)  # the same test as in the broad phase
        feature = 0
    else:
        touches, gap, n, feature = touch_wall(s, t, bodies, shapes, parts, meshes, box, margin)
        found = touches == 1 and gap <= margin
    sign = -1.0 if swap else 1.0
    arm = (r * n[0], r * n[1], r * n[2])
    if shapes.kind[s] == ELLIPSOID and found:
        arm = surface_point(load_form(forms, s), n)
    status[p] = 1 if found else 0
    contacts.gap[p] = gap
    for k in range(3):
        contacts.normal[p, k] = sign * n[k]
        contacts.point[p, k] = c[k] + arm[k] + 0.5 * gap * n[k]
    name_row(p, a, b, bodies, shapes, label, contacts)
    if feature != 0:
        contacts.feature[p] = feature


@func
def name_row(p, a, b, bodies, shapes, label, contacts):
    """Write which bodies and which of their parts contact p belongs to."""
    body_a, body_b = shapes.body[a], shapes.body[b]
    contacts.pair[p, 0] = bodies.number[body_a]
    contacts.pair[p, 1] = bodies.number[body_b]
    # These are zero for most, and memory that nobody writes to costs nothing.
    within_a, within_b = shapes.number[a] - label[body_a], shapes.number[b] - label[body_b]
    if within_a != 0 or within_b != 0:
        contacts.shape[p, 0] = within_a
        contacts.shape[p, 1] = within_b


def solid_contact_row(k, bodies, shapes, forms, box, edges, pair, label, rows, normal, gap, contacts):
    """The contact of pair rows[k], two particles of which one is an ellipsoid, from its normal and gap."""
    p = rows[k]
    a, b = pair[p, 0], pair[p, 1]
    n = load(normal, k)
    d = between(a, b, shapes.centre, edges, box.periodic)
    arm = contact_arm(d, load_form(forms, a), load_form(forms, b), n, gap[k])
    contacts.gap[p] = gap[k]
    for i in range(3):
        contacts.normal[p, i] = n[i]
        contacts.point[p, i] = shapes.centre[a, i] + arm[i]
    name_row(p, a, b, bodies, shapes, label, contacts)


def measure_listed(tables, label, box, margin, pair, narrow=DEFAULT):
    """Contacts of listed pairs (p,2), one row for each, and which of them are within the margin [m] (p,) int8.

    Rows of pairs that are not within the margin, or have a polyhedron or triangulated particle, are not filled in.
    """
    n = len(pair)
    contacts = empty_contacts(n)
    status = np.empty(n, np.int8)
    shapes, meshes = tables[1], tables[3]
    ellipsoids = bool((shapes.kind == ELLIPSOID).any())
    forms = make_forms(tables) if ellipsoids else np.empty((0, 8))
    wall = touch.touch_for(ellipsoids, len(meshes.triangle))
    kernel(touch_row, touch_wall=wall)(n, *tables, forms, box, margin, pair, label, status, contacts)
    if ellipsoids:
        measure_ellipsoids(tables, label, box, margin, pair, forms, narrow, contacts, status)
    return contacts, status


def measure(tables, label, box, margin, pair, narrow=DEFAULT, surfaces=None, tree=True):
    """Contacts of listed pairs (p,2), rows of Shapes with the lower number first, within the margin [m], in their order.

    label (n,): number of the first part of each body. narrow: a name in NARROW or in `surface_measure.METHODS`.
    surfaces: the table of triangulated particles, if there are any; tree: as in `find_contacts`.
    Returns Contacts and the row of `pair` that each belongs to (c,): one for a pair, up to four with a polyhedron, any
    number with a triangulated particle.
    """
    n = len(pair)
    shapes, hulls = tables[1], tables[4]
    if surfaces is not None and len(surfaces.epsilon):
        return with_surfaces(tables, label, surfaces, box, margin, pair, narrow, tree)
    contacts, status = measure_listed(tables, label, box, margin, pair, narrow if narrow in NARROW else DEFAULT)
    if len(hulls.inner) == 0:
        source = np.nonzero(status)[0]
        return contacts if len(source) == n else select(contacts, source), source
    rows = np.nonzero((shapes.kind[pair] == POLYHEDRON).any(1))[0].astype(np.int32)
    found, spots = measure_hulls(tables, box, margin, pair, rows)
    status[rows] = found
    spot = np.full(n, -1, np.int32)
    spot[rows] = np.arange(len(rows))
    start = primitives.scan(status)
    every, source = empty_contacts(int(start[-1])), np.empty(int(start[-1]), np.int64)
    kernel(spread_row)(n, start, contacts, spot, spots, every, source)
    return every, source


def with_surfaces(tables, label, surfaces, box, margin, pair, narrow, tree):
    """What `measure` returns where there are triangulated particles."""
    bodies, shapes = tables[:2]
    among = (shapes.kind[pair] == MESH).any(1)
    rest = np.nonzero(~among)[0]
    others, status = empty_contacts(0), np.empty(0, np.int8)
    if len(rest):
        others, status = measure_listed(tables, label, box, margin, pair[rest])
    triangles = narrow if narrow in METHODS else TRIANGLES
    touches = surface_contacts(tables, surfaces, box, margin, pair[among], triangles, tree)
    count = np.empty(len(pair), np.int64)
    count[rest], count[among] = status, np.diff(touches.start)
    source = np.repeat(np.arange(len(pair)), count)
    every = empty_contacts(len(source))
    mine = among[source]
    for column, old in zip(every, select(others, np.nonzero(status)[0]), strict=True):
        column[~mine] = old
    every.point[mine], every.normal[mine] = touches.point, touches.normal
    every.gap[mine], every.feature[mine] = touches.gap, touches.feature
    shape = pair[source[mine]]
    every.pair[mine] = bodies.number[shapes.body[shape]]
    every.shape[mine] = shapes.number[shape] - label[shapes.body[shape]]
    return every, source


def spread_row(p, start, contacts, spot, spots, every, source):
    """Write all contacts of pair p: the one that it has, or its points, row spot[p] of `spots`."""
    for k in range(start[p], start[p + 1]):
        source[k] = p
        for i in range(2):
            every.pair[k, i] = contacts.pair[p, i]
            every.shape[k, i] = contacts.shape[p, i]
        if spot[p] >= 0:
            at = POINT * (k - start[p])
            every.gap[k] = spots[spot[p], at + 3]
            every.feature[k] = int(spots[spot[p], at + 7])
            for i in range(3):
                every.point[k, i] = spots[spot[p], at + i]
                every.normal[k, i] = spots[spot[p], at + 4 + i]
        else:
            every.gap[k], every.feature[k] = contacts.gap[p], contacts.feature[p]
            for i in range(3):
                every.point[k, i] = contacts.point[p, i]
                every.normal[k, i] = contacts.normal[p, i]


def measure_ellipsoids(tables, label, box, margin, pair, forms, narrow, contacts, status):
    """Write the contacts of the pairs whose second kind is an ellipsoid, and which of them are within the margin."""
    bodies, shapes = tables[:2]
    rows = np.nonzero(shapes.kind[pair].max(1) == ELLIPSOID)[0]
    normal, gap = measure_solids(shapes.centre, forms, pair[rows], box, margin, chm=NARROW[narrow])
    near = np.nonzero(gap <= margin)[0]
    status[rows[near]] = 1
    edges = (*box.length.tolist(), *box.inverse.tolist())
    kernel(solid_contact_row)(
        len(near), bodies, shapes, forms, box, edges, pair, label, rows[near], normal[near], gap[near], contacts
    )


def select(contacts, rows):
    """Some of the contacts."""
    return Contacts(*(column[rows] for column in contacts))


def key_row(k, column, order, pair, shapes, label, key):
    """What pair k is sorted by: its first (0) or second (1) shape number, or the body of that shape (2, 3)."""
    s = pair[order[k], column % 2]
    key[k] = shapes.number[s] if column < 2 else label[shapes.body[s]]


def sort_pairs(shapes, label, pair, limit):
    """Order (p,) that sorts pairs, the lower number first in each, by body pair and then by shape pair.

    label (n,): number of the first part of each body; it grows with the number of the body. All numbers of shapes are
    below limit. Grouping is stable, so the least important key comes first; one wall with very many contacts costs no
    more than others.
    """
    order, key = np.arange(len(pair), dtype=np.int32), np.empty(len(pair), np.int32)
    # Where every body is one shape, the shapes are in the order of the bodies.
    for column in (1, 0) if limit == len(label) else (1, 0, 3, 2):
        kernel(key_row)(len(order), column, order, pair, shapes, label, key)
        order = order[primitives.group(key, limit)[1]]
    return order


def lower_first(shapes, pair):
    """Pairs with the lower number first, and which were turned round (p,) bool."""
    swap = shapes.number[pair[:, 0]] > shapes.number[pair[:, 1]]
    return np.where(swap[:, None], pair[:, ::-1], pair), swap


def find_contacts(scene, *, margin=0.0, broad="bins", narrow=None, pairs=None, sort=True, tree=True):
    """All contacts of a scene: arrays in, arrays out.

    margin [m]: pairs up to this far apart are returned too; contacts that overlap have gap < 0.
    broad: "bins", "boxes", "all-pairs", "spacetree" and its variants; all find the same contacts. pairs (n,2): body numbers
    to look at instead; then margin=np.inf gives the distance of every one of them, in the order of the list. sort=False
    leaves the contacts in the order in which the broad phase met them, which is fixed too, and saves the time of sorting:
    of a million spheres, 1.4 times as fast with 0.4 million contacts and 2.6 times with 3.4 million.
    narrow: how pairs with an ellipsoid are measured, "opm" (unless said) or "chm+opm": the common normal of all pairs whose
    boxes meet, or only of those that the characteristic equation does not tell apart first; both find the same contacts.
    How triangles are measured: "brute" (unless said) or another method of `clast.triangle_distance`. tree=False: all triangles of
    two particles with each other, without their trees of boxes; the contacts are the same to the bit.
    Returns Contacts, sorted by pair, then shape; of a polyhedron up to four points for a pair, the deepest first; of a
    triangulated particle all points that are farther from each other than its shortest edge. Of such a particle gap is the
    distance less the halo: surfaces that cross have minus the halo, and a body wholly inside another has as much less as the
    nearest triangles are away. Bodies that are walls make no contacts with each other.
    """
    margin = float(margin)
    if math.isnan(margin) or margin < 0.0:
        raise ValueError(f"find_contacts: margin = {margin} must be 0 or more, in metres")
    search = pick("broad phase", broad, BROAD)
    narrow = DEFAULT if narrow is None else narrow
    pick("narrow phase", narrow, {**NARROW, **METHODS})
    bodies = scene.bodies
    shapes = scene.shapes(bodies)
    tables = bodies, shapes, scene.parts, scene.meshes, scene.hulls
    refuse_mixture("find_contacts", scene.parts)
    box = periodic_box(scene)
    many = scene.molds.count[bodies.mold].astype(np.int64)
    label = np.cumsum(many) - many
    if pairs is None:
        if math.isinf(margin):
            raise ValueError("find_contacts: margin = inf needs pairs=; every body would pair with every other")
        if not sort and search is bins and len(shapes.body) == len(bodies.number) and not shapes.kind.any():
            return sphere_contacts(shapes, bodies.number, box, margin)
        tag = np.where(shapes.kind < FIRST_WALL, shapes.body, np.int32(-1))
        lists = find_pairs(tables, tag, box, margin, search, FAMILY)
        lists = [lower_first(shapes, k)[0] if f.walls and len(k) else k for f, k in zip(FAMILIES, lists, strict=True)]
        listed = np.concatenate(lists) if any(len(k) for k in lists[1:]) else lists[0]
        if sort:
            listed = listed[sort_pairs(shapes, label, listed, len(shapes.number))]
    else:
        listed = expand_pairs(pairs, bodies, shapes)
    return measure(tables, label, box, margin, listed, narrow, scene.surfaces, tree)[0]


def expand_pairs(pairs, bodies, shapes):
    """Shape rows (k,2), the lower number first, for given pairs of body numbers (n,2), in their order."""
    pairs = np.asarray(pairs)
    if pairs.ndim != 2 or pairs.shape[1] != 2 or not np.issubdtype(pairs.dtype, np.integer):
        raise ValueError(f"find_contacts: pairs must be whole numbers of shape (n, 2), got {pairs.dtype} {pairs.shape}")
    if len(bodies.number) == 0 and len(pairs):
        raise ValueError("find_contacts: pairs names bodies, but the scene is empty")
    count = len(bodies.number)
    if count and bodies.number[0] == 0 and bodies.number[-1] == count - 1 and (np.diff(bodies.number) == 1).all():
        row = np.clip(pairs, 0, count - 1)  # numbers are rows
    else:
        order = np.argsort(bodies.number, kind="stable")
        row = order[np.minimum(np.searchsorted(bodies.number, pairs, sorter=order), count - 1)]
    wrong = (bodies.number[row] != pairs).any(1) | (pairs[:, 0] == pairs[:, 1])
    if wrong.any():
        first = int(np.argmax(wrong))
        raise ValueError(
            f"find_contacts: pairs[{first}] = {pairs[first].tolist()} does not name two bodies of the scene"
        )
    if len(shapes.body) == count and (shapes.body == np.arange(count)).all():
        a, b = row[:, 0], row[:, 1]  # every body is one shape
        return pick_pairs(a, b, shapes)
    many = np.bincount(shapes.body, minlength=count)
    start = np.concatenate([[0], np.cumsum(many)])
    by_body = np.argsort(shapes.body, kind="stable")
    count = many[row[:, 0]] * many[row[:, 1]]
    rank = np.repeat(np.arange(len(pairs)), count)
    within = np.arange(len(rank)) - np.repeat(np.cumsum(count) - count, count)
    width = many[row[rank, 1]]
    a = by_body[start[row[rank, 0]] + within // width]
    b = by_body[start[row[rank, 1]] + within % width]
    return pick_pairs(a, b, shapes)


def pick_pairs(a, b, shapes):
    """Pairs (k,2) of the shapes a (n,) and b (n,), the lower number first; two walls make none."""
    keep = (shapes.kind[a] < FIRST_WALL) | (shapes.kind[b] < FIRST_WALL)
    swap = shapes.number[a] > shapes.number[b]
    listed = np.empty((len(a), 2), np.int32)
    listed[:, 0], listed[:, 1] = np.where(swap, b, a), np.where(swap, a, b)
    return listed if keep.all() else np.ascontiguousarray(listed[keep])

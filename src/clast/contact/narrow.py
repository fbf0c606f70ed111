"""Narrow phase: the exact contact of two shapes, and contacts as a library call."""

import math
from typing import NamedTuple

import numpy as np

from .. import primitives
from ..backend import func, kernel
from ..errors import pick
from ..tables import PLANE, SPHERE, TRIANGLE, Contacts
from ..vec import load, load4, rotate, sub
from .near import image, local_centre
from .pairs import BROAD, find_pairs, periodic_box
from .walls import sphere_cylinder, sphere_plane, sphere_triangle


class Measured(NamedTuple):
    """Geometry of listed pairs, before those that do not touch are left out."""

    status: np.ndarray  # (p,) int8, 1 for a contact within the margin
    gap: np.ndarray  # (p,) [m]
    normal: np.ndarray  # (p,3) unit, from the first to the second shape
    point: np.ndarray  # (p,3) [m]
    feature: np.ndarray  # (p,) int32


@func
def touch_smooth(s, w, bodies, shapes, parts, meshes, box):
    """Sphere s against plane or cylinder w: (status, distance [m] from the centre, unit normal to the wall, feature)."""
    part = shapes.part[w]
    body = shapes.body[w]
    c = sub(local_centre(s, w, bodies, shapes, box), load(parts.offset, part))
    axis = load(parts.axis, part)
    if parts.kind[part] == PLANE:
        status, distance, n, feature = sphere_plane(c, axis)
    else:
        status, distance, n, feature = sphere_cylinder(
            c, axis, parts.size[part, 0], parts.size[part, 1], parts.size[part, 2]
        )
    return status, distance * bodies.scale[body], rotate(load4(bodies.orientation, body), n), feature


@func
def touch_any(s, w, bodies, shapes, parts, meshes, box):
    """Sphere s against any wall shape w; returns what `touch_smooth` returns."""
    part = shapes.part[w]
    if parts.kind[part] != TRIANGLE:
        return touch_smooth(s, w, bodies, shapes, parts, meshes, box)
    body = shapes.body[w]
    c = local_centre(s, w, bodies, shapes, box)
    status, distance, n, feature = sphere_triangle(c, meshes, parts.feature[part])
    return status, distance * bodies.scale[body], rotate(load4(bodies.orientation, body), n), feature


touch_wall = touch_any  # bound to the kernel, so that only what a scene has is compiled


def touch_row(p, bodies, shapes, parts, meshes, box, margin, pair, status, gap, normal, point, feature):
    """Gap, normal (first to second shape) and middle point of one pair; status 0 where there is no contact."""
    a, b = pair[p, 0], pair[p, 1]
    ca = load(shapes.centre, a)
    ra = shapes.radius[a]
    if shapes.kind[b] == SPHERE:
        d = sub(load(shapes.centre, b), ca)
        if box.periodic:
            d = (
                image(d[0], box.length[0], box.inverse[0]),
                image(d[1], box.length[1], box.inverse[1]),
                image(d[2], box.length[2], box.inverse[2]),
            )
        distance = math.sqrt(d[0] * d[0] + d[1] * d[1] + d[2] * d[2])
        # Two spheres with one centre may be parted in any direction.
        if distance > 0.0:
            n = (d[0] / distance, d[1] / distance, d[2] / distance)
        else:
            n = (0.0, 0.0, 1.0)
        found, g, what = 1, distance - ra - shapes.radius[b], 0
    else:
        found, distance, n, what = touch_wall(a, b, bodies, shapes, parts, meshes, box)
        g = distance - ra
    status[p] = 1 if found == 1 and g <= margin else 0
    gap[p] = g
    feature[p] = what
    for k in range(3):
        normal[p, k] = n[k]
        point[p, k] = ca[k] + (ra + 0.5 * g) * n[k]


def find_contacts(scene, *, margin=0.0, broad="bins", pairs=None):
    """All contacts of a scene: arrays in, arrays out.

    margin [m]: pairs up to this far apart are returned too; contacts that overlap have gap < 0.
    broad: "bins" or "all-pairs"; both find the same contacts. pairs (n,2): body numbers to look at instead; then
    margin=np.inf gives the distance of every one of them, in the order of the list.
    Returns Contacts, sorted by pair, then shape. Bodies that are walls make no contacts with each other.
    """
    margin = float(margin)
    if math.isnan(margin) or margin < 0.0:
        raise ValueError(f"find_contacts: margin = {margin} must be 0 or more, in metres")
    search = pick("broad phase", broad, BROAD)
    bodies = scene.bodies
    shapes = scene.shapes(bodies)
    tables = bodies, shapes, scene.parts, scene.meshes
    box = periodic_box(scene)
    if pairs is None:
        if math.isinf(margin):
            raise ValueError(
                "find_contacts: margin = inf needs pairs=; without it every body would pair with every other"
            )
        tag = shapes.body.copy()
        tag[shapes.kind != SPHERE] = -1
        balls, walls = find_pairs(tables, tag, box, margin, search)
        listed = np.concatenate([balls, walls])
        rank = None
    else:
        listed, rank = expand_pairs(pairs, bodies, shapes)
    measured = measure(tables, box, margin, listed)
    many = scene.molds.count[bodies.mold].astype(np.int64)
    label = np.cumsum(many) - many
    if rank is None:
        order = sort_contacts(shapes, label, listed, measured.status, len(shapes.number))
    else:
        order = np.nonzero(measured.status)[0].astype(np.int32)
    return export_contacts(tables, label, listed, measured, order)


def expand_pairs(pairs, bodies, shapes):
    """Shape rows (k,2) for given pairs of body numbers (n,2), and which given pair each belongs to (k,)."""
    pairs = np.asarray(pairs)
    if pairs.ndim != 2 or pairs.shape[1] != 2 or not np.issubdtype(pairs.dtype, np.integer):
        raise ValueError(f"find_contacts: pairs must be whole numbers of shape (n, 2), got {pairs.dtype} {pairs.shape}")
    order = np.argsort(bodies.number, kind="stable")
    row = order[np.minimum(np.searchsorted(bodies.number, pairs, sorter=order), len(order) - 1)]
    wrong = (bodies.number[row] != pairs).any(1) | (pairs[:, 0] == pairs[:, 1])
    if wrong.any():
        first = int(np.argmax(wrong))
        raise ValueError(
            f"find_contacts: pairs[{first}] = {pairs[first].tolist()} does not name two bodies of the scene"
        )
    many = np.bincount(shapes.body, minlength=len(bodies.number))
    start = np.concatenate([[0], np.cumsum(many)])
    by_body = np.argsort(shapes.body, kind="stable")
    count = many[row[:, 0]] * many[row[:, 1]]
    rank = np.repeat(np.arange(len(pairs)), count)
    within = np.arange(len(rank)) - np.repeat(np.cumsum(count) - count, count)
    width = many[row[rank, 1]]
    a = by_body[start[row[rank, 0]] + within // width]
    b = by_body[start[row[rank, 1]] + within % width]
    ball_a, ball_b = shapes.kind[a] == SPHERE, shapes.kind[b] == SPHERE
    keep = ball_a | ball_b
    swap = ~ball_a | (ball_b & (shapes.number[a] > shapes.number[b]))
    listed = np.where(swap[:, None], np.stack([b, a], 1), np.stack([a, b], 1))[keep].astype(np.int32)
    return np.ascontiguousarray(listed), rank[keep]


def measure(tables, box, margin, listed):
    """Measured geometry of listed shape rows (p,2); status 1 up to margin [m]."""
    n = len(listed)
    status, feature = np.empty(n, np.int8), np.empty(n, np.int32)
    gap, normal, point = np.empty(n), np.empty((n, 3)), np.empty((n, 3))
    touch_wall = touch_any if len(tables[3].triangle) else touch_smooth
    kernel(touch_row, touch_wall=touch_wall)(n, *tables, box, margin, listed, status, gap, normal, point, feature)
    return Measured(status, gap, normal, point, feature)


def key_row(k, column, order, pair, shapes, label, key):
    """What contact k is sorted by: the lower (0) or higher (1) shape number, or the body of that shape (2, 3)."""
    low, high = pair[order[k], 0], pair[order[k], 1]
    if shapes.number[low] > shapes.number[high]:
        low, high = high, low
    s = high if column % 2 == 1 else low
    key[k] = shapes.number[s] if column < 2 else label[shapes.body[s]]


def sort_contacts(shapes, label, pair, status, limit):
    """Rows of `pair` with status 1, sorted by body pair, then by shape pair. All numbers of shapes are below limit.

    label (n,): number of the first part of each body; it grows with the number of the body. Grouping is stable, so
    the least important key comes first; one wall with very many contacts costs no more than others.
    """
    order = np.nonzero(status)[0].astype(np.int32)
    key = np.empty(len(order), np.int32)
    # Where every body is one shape, the shapes are in the order of the bodies.
    for column in (1, 0) if limit == len(label) else (1, 0, 3, 2):
        kernel(key_row)(len(order), column, order, pair, shapes, label, key)
        order = order[primitives.group(key, limit)[1]]
    return order


def export_row(k, order, bodies, shapes, label, pair, measured, force, memory, contacts):
    """Copy one contact into its place in the result; body a has the lower number."""
    p = order[k]
    a, b = pair[p, 0], pair[p, 1]
    sign = 1.0
    if bodies.number[shapes.body[a]] > bodies.number[shapes.body[b]]:
        a, b = b, a
        sign = -1.0
    contacts.pair[k, 0] = bodies.number[shapes.body[a]]
    contacts.pair[k, 1] = bodies.number[shapes.body[b]]
    contacts.shape[k, 0] = shapes.number[a] - label[shapes.body[a]]
    contacts.shape[k, 1] = shapes.number[b] - label[shapes.body[b]]
    contacts.gap[k] = measured.gap[p]
    contacts.feature[k] = measured.feature[p]
    for i in range(3):
        contacts.normal[k, i] = sign * measured.normal[p, i]
        contacts.point[k, i] = measured.point[p, i]
    for i in range(3):
        contacts.force[k, i] = sign * force[p, i] if len(force) > 0 else 0.0
        contacts.slip[k, i] = sign * memory[p, i] if len(memory) > 0 else 0.0


def export_contacts(tables, label, pair, measured, order, force=None, memory=None):
    """Contacts of the rows `order` of pair. label (n,): number of the first part of each body."""
    n = len(order)
    none = np.empty((0, 3))
    contacts = Contacts(
        pair=np.empty((n, 2), np.int64),
        shape=np.empty((n, 2), np.int32),
        point=np.empty((n, 3)),
        normal=np.empty((n, 3)),
        gap=np.empty(n),
        feature=np.empty(n, np.int32),
        slip=np.empty((n, 3)),
        force=np.empty((n, 3)),
    )
    force, memory = none if force is None else force, none if memory is None else memory
    kernel(export_row)(n, order, tables[0], tables[1], label, pair, measured, force, memory, contacts)
    return contacts

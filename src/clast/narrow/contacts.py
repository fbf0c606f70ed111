"""Contacts as a library call: arrays in, arrays out, by the same kernels as in a simulation."""

import math
from functools import partial
from types import SimpleNamespace

import numpy as np
from numpy.typing import ArrayLike

from ..broad.bins import bins, look_at_room, sphere_contacts
from ..broad.search import BROAD, find_pairs, periodic_box
from ..errors import pick
from ..kernels import backend, primitives
from ..kernels.backend import kernel
from ..kernels.kinds import is_wall as is_wall_kind
from ..scene.scene import Scene
from ..scene.stacking import make_trees
from ..shapes.ellipsoid_form import make_forms
from ..tables import ELLIPSOID, GEOMETRY, Contacts, empty_geometry, is_wall, with_forces, without_heat
from .dispatch import BATCH, FAMILIES, FAMILY, TRIANGLES, Asked, Listed, all_of
from .mesh_points import METHODS
from .meshes import surface_points

NARROW = {"opm": False, "chm+opm": True}  # whether the characteristic equation is asked first
DEFAULT = "opm"
MANY = 20_000  # shapes


def padded(column):
    """The same (n,3) with room between the rows, as in a simulation: another type for numba, and kernels would be compiled again."""
    wide = np.empty((len(column), 4))
    kernel(copy_row)(len(column), column, wide)
    return wide[:, :3]


def copy_row(k, column, wide):
    """Copy a vector into a wider table."""
    for i in range(3):
        wide[k, i] = column[k, i]


class Field(Asked):
    """The shapes of a scene as kernels see them: what a State is for a simulation."""

    device = backend.CPU

    def __init__(self, scene, bodies, exact, chm=False):
        super().__init__()
        shapes = scene.shapes(bodies)
        self.parts, self.meshes, self.hulls = scene.parts, scene.meshes, scene.hulls
        self.surfaces = make_trees(self.parts, self.hulls, scene.surfaces)
        self.bodies, self.shapes = bodies, shapes
        # A copy of very many spheres would take longer than it saves.
        plain = not shapes.kind.any() and len(shapes.kind) > MANY
        alone = shapes.centre is bodies.position  # every body is one shape
        place = bodies.position if plain else padded(bodies.position)
        there_bodies = without_heat(bodies)._replace(position=place)
        there_shapes = shapes if plain else shapes._replace(centre=place if alone else padded(shapes.centre))
        self.tables = (there_bodies, there_shapes, self.parts, self.meshes, self.hulls)
        self.box = periodic_box(scene)
        self.edges = (*self.box.length.tolist(), *self.box.inverse.tolist())
        self.exact, self.chm = exact, chm
        self.label = shapes.number  # of the first part of each body
        if not alone:
            many = scene.molds.count[bodies.mold].astype(np.int64)
            self.label = np.cumsum(many) - many
        self.ellipsoids = bool((self.parts.kind == ELLIPSOID).any())
        self.there = SimpleNamespace(
            bodies=there_bodies,
            shapes=there_shapes,
            parts=self.parts,
            meshes=self.meshes,
            hulls=self.hulls,
            box=self.box,
            rows=np.ascontiguousarray(shapes.centre),
            forms=make_forms(self.tables) if self.ellipsoids else np.empty((0, 8)),
        )


def contact_row(q, at, place, start, number, shapes, label, centre, pairs, points, contacts):
    """Write the contacts of pair q of a list from row at + start[place[q]] on, the body of the lower number first."""
    if points.count[q] == 0:
        return
    a, b = pairs.shape[q, 0], pairs.shape[q, 1]
    swap = shapes.number[a] > shapes.number[b]
    s, t = (b, a) if swap else (a, b)
    one, two = shapes.body[s], shapes.body[t]
    within_one, within_two = shapes.number[s] - label[one], shapes.number[t] - label[two]
    sign = -1.0 if swap else 1.0
    k = at + start[place[q]]
    # The first of its slots are in use.
    for c in range(pairs.slot[q], pairs.slot[q] + points.count[q]):
        contacts.pair[k, 0], contacts.pair[k, 1] = number[one], number[two]
        # These are zero for most, and memory that nobody writes to costs nothing.
        if within_one != 0 or within_two != 0:
            contacts.shape[k, 0], contacts.shape[k, 1] = within_one, within_two
        if points.feature[c] != 0:
            contacts.feature[k] = points.feature[c]
        contacts.gap[k] = points.gap[c]
        for i in range(3):
            contacts.normal[k, i] = sign * points.normal[c, i]
            contacts.point[k, i] = centre[a, i] + points.arm[c, i]
        k += 1


def families_in(shapes, listed):
    """Number of the family of each of the pairs (p,2) of shapes, and which there are."""
    kind = shapes.kind
    if len(listed) and (kind == kind[0]).all():
        return np.broadcast_to(FAMILY[kind[0], kind[0]], len(listed)), [int(FAMILY[kind[0], kind[0]])]
    family = FAMILY[kind[listed[:, 0]], kind[listed[:, 1]]]
    return family, np.nonzero(np.bincount(family, minlength=len(FAMILIES)))[0].tolist()


def look_at(field, pair, family, margin, triangles, tree, before):
    """Contact points of pairs (p,2) of one family, the particle before the wall, within the margin [m]: Listed.

    before: Listed of this family whose points are no longer needed, or None; fresh memory costs as much as the points of cubes.
    """
    if family.slots > 0:
        look = Listed(field, pair, family.slots, before if before and len(before.pairs.shape) == len(pair) else None)
        family.find(look, all_of(look), margin)
        return look
    count, point, normal, gap, feature = surface_points(field, pair, margin, triangles, tree)
    look = Listed(field, pair, count)
    points, total = look.points, len(gap)
    points.count[:] = count
    points.arm[:total] = point - field.there.rows[np.repeat(pair[:, 0], count)]
    points.normal[:total], points.gap[:total], points.feature[:total] = normal, gap, feature
    return look


def measure(field, listed, margin, triangles=TRIANGLES, tree=True):
    """Contacts of listed pairs (p,2), rows of Shapes, within the margin [m], in their order; of a pair the deepest first.

    triangles: a name in `mesh_points.METHODS`; tree: as in `find_contacts`.
    """
    shapes, bodies = field.shapes, field.bodies
    families, present = families_in(shapes, listed)
    # The triangles of a wall body and a particle are one manifold: they must not come apart.
    batch = BATCH if all(FAMILIES[k].slots for k in present) else max(len(listed), 1)
    # As many as there can be: of large arrays memory that nobody writes to costs nothing.
    contacts = empty_geometry(len(listed) * max([FAMILIES[k].slots for k in present], default=1))
    at = 0
    last: dict[int, Listed] = {}  # of each family
    every = np.arange(min(batch, len(listed)))
    for first in range(0, len(listed), batch):
        pairs, of = listed[first : first + batch], families[first : first + batch]
        count, looks = np.zeros(len(pairs) if len(present) > 1 else 0, np.int32), []
        for k in present:
            place = np.nonzero(of == k)[0] if len(present) > 1 else every[: len(pairs)]
            pair = np.ascontiguousarray(pairs[place] if len(present) > 1 else pairs)
            if FAMILIES[k].walls:
                swap = is_wall(shapes.kind[pair[:, 0]])
                pair = np.where(swap[:, None], pair[:, ::-1], pair)
            look = last[k] = look_at(field, pair, FAMILIES[k], margin, triangles, tree, last.get(k))
            if len(present) > 1:
                count[place] = look.points.count
            else:
                count = look.points.count
            looks.append((look, place))
        start = primitives.scan(count)
        if at + start[-1] > len(contacts.gap):
            contacts = resize(contacts, int(at + start[-1]))
        for look, place in looks:
            where = shapes, field.label, field.there.rows, look.pairs, look.points
            kernel(contact_row)(len(place), at, place, start, bodies.number, *where, contacts)
        at += int(start[-1])
    return with_forces(resize(contacts, at))


def resize(contacts, count):
    """What geometry tells of Contacts with `count` rows, in the same memory where that can be; the old table is not to be used any more."""
    for name in GEOMETRY:
        column = getattr(contacts, name)
        column.resize((count, *column.shape[1:]), refcheck=False)  # nobody else has it
    return Contacts(*contacts)  # another table, as a launch may know the old one by heart


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


def find_contacts(
    scene: Scene,
    *,
    margin: float = 0.0,
    broad: str = "bins",
    narrow: str | None = None,
    pairs: ArrayLike | None = None,
    sort: bool = True,
    tree: bool = True,
) -> Contacts:
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
    triangulated particle all points that are farther from each other than its shortest edge, and of faces that lie on each other
    their corners and the crossings of their sides. Of such a particle gap is the
    distance less the halo: surfaces that cross have minus the halo, and a body wholly inside another has as much less as the
    nearest triangles are away. One whose centre is inside, of a sphere, ellipsoid or superquadric, has as much less as it must go to be out. Bodies that are walls make no contacts with each other.

    Where several processes share a run (`mpirun`, docs/scaling.md) they divide a scene of 20,000 bodies or more, which all describe alike, and each gets
    all contacts, with the same bits and always sorted. All must call it then: one that does so alone waits for the others, and says that after ten seconds.
    """
    asked = checked(scene, margin, broad, narrow, pairs, sort, tree)
    return contacts_among(scene, scene.bodies, *asked, pairs)


def checked(
    scene, margin=0.0, broad="bins", narrow=None, pairs=None, sort=True, tree=True
) -> tuple[float, str, str, bool, bool]:
    """Margin, broad, narrow, sort and tree as `contacts_among` takes them, or an error: the arguments of `find_contacts`."""
    if not isinstance(scene, Scene):
        raise TypeError(f"find_contacts: the first argument must be a clast.Scene, got {scene!r}")
    margin = float(margin)
    if math.isnan(margin) or margin < 0.0:
        raise ValueError(f"find_contacts: margin = {margin} must be 0 or more, in metres")
    pick("broad phase", broad, BROAD)
    narrow = DEFAULT if narrow is None else narrow
    pick("narrow phase", narrow, {**NARROW, **METHODS})
    if pairs is None and math.isinf(margin):
        raise ValueError("find_contacts: margin = inf needs pairs=; every body would pair with every other")
    return margin, broad, narrow, sort, tree


def contacts_among(scene, bodies, margin, broad, narrow, sort, tree=True, pairs=None, own=None, part=None):
    """Contacts between these bodies of a scene, in the order of their numbers; the other arguments as in `find_contacts`.

    own (n,) bool: None, or which bodies are meant: the others make no contacts with each other. part: Part, where bodies are a part of the scene, or None.
    """
    search = BROAD[broad]
    quick = not sort and search is bins
    if part is not None and search is bins:
        search = partial(bins, part=part)
    field = Field(scene, bodies, margin > 0.0, NARROW.get(narrow, False))
    shapes, box = field.shapes, field.box
    if pairs is None:
        if quick and len(shapes.body) == len(bodies.number) and not shapes.kind.any():
            tag = shapes.body if own is None else np.where(own, shapes.body, np.int32(-1))
            return sphere_contacts(shapes, tag, bodies.number, box, margin, part)
        meant = ~is_wall(shapes.kind) if own is None else ~is_wall(shapes.kind) & own[shapes.body]
        tag = np.where(meant, shapes.body, np.int32(-1))
        lists = find_pairs(field.tables, tag, box, margin, search, FAMILY)
        lists = [lower_first(shapes, k)[0] if f.walls and len(k) else k for f, k in zip(FAMILIES, lists, strict=True)]
        listed = np.concatenate(lists) if any(len(k) for k in lists[1:]) else lists[0]
        del lists
        look_at_room(len(listed), part)
        if sort:
            listed = listed[sort_pairs(shapes, field.label, listed, len(shapes.number))]
    else:
        listed = expand_pairs(pairs, bodies, shapes)
    return measure(field, listed, margin, narrow if narrow in METHODS else TRIANGLES, tree)


def expand_pairs(pairs, bodies, shapes):
    """Shape rows (k,2), the lower number first, for given pairs of body numbers (n,2), in their order."""
    pairs = np.asarray(pairs)
    if pairs.ndim != 2 or pairs.shape[1] != 2 or not np.issubdtype(pairs.dtype, np.integer):
        raise ValueError(f"find_contacts: pairs must be whole numbers of shape (n, 2), got {pairs.dtype} {pairs.shape}")
    if len(bodies.number) == 0 and len(pairs):
        raise ValueError("find_contacts: pairs names bodies, but the scene is empty")
    count = len(bodies.number)
    if shapes.centre is bodies.position:  # every body is one shape
        listed, odd = np.empty((len(pairs), 2), np.int32), np.empty(len(pairs), np.bool_)
        kernel(expand_row)(len(pairs), pairs, bodies.number, shapes.kind, listed, odd)
        if not odd.any():
            return listed
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


def expand_row(k, pairs, numbers, kinds, listed, odd):
    """Pair k of shapes with the lower number first, where numbers of bodies are rows of their one shape; odd: they are not, or are no pair."""
    a, b = min(pairs[k, 0], pairs[k, 1]), max(pairs[k, 0], pairs[k, 1])
    odd[k] = a < 0 or b >= len(numbers) or a == b
    if not odd[k]:
        odd[k] = numbers[a] != a or numbers[b] != b or (is_wall_kind(kinds[a]) and is_wall_kind(kinds[b]))
        listed[k, 0], listed[k, 1] = a, b


def pick_pairs(a, b, shapes):
    """Pairs (k,2) of the shapes a (n,) and b (n,), the lower number first; two walls make none."""
    keep = ~(is_wall(shapes.kind[a]) & is_wall(shapes.kind[b]))
    swap = shapes.number[a] > shapes.number[b]
    listed = np.empty((len(a), 2), np.int32)
    listed[:, 0], listed[:, 1] = np.where(swap, b, a), np.where(swap, a, b)
    return listed if keep.all() else np.ascontiguousarray(listed[keep])

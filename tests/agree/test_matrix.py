"""Every particle with every particle and wall: the gap is the greatest separation of the two, by find_contacts and by both methods.

The separation of two convex bodies along a direction n, what their support functions leave free, is never more than their signed distance,
and the normal is the direction where it is as much. Both are seen here without any code of the package.
"""

from itertools import combinations_with_replacement

import numpy as np
import pytest

import clast
from clast import (
    Capsule,
    Cylinder,
    Ellipsoid,
    Material,
    Mesh,
    Plane,
    Polyhedron,
    Quad,
    Scene,
    Simulation,
    Sphere,
    Superquadric,
    find_contacts,
)
from clast.kernels.vec import rotation_matrices

STONE = Material(density=2500.0, young=1e7, friction=0.4, restitution=0.5)
HALO = 0.03
AXIS = 1.1
LUMP = Mesh(*Polyhedron.random(faces=12, seed=5, radius=0.9).surface(), epsilon=HALO)
PARTICLES = {
    "sphere": Sphere(0.7),
    "ellipsoid": Ellipsoid(1.0, 0.6, 0.4),
    "polyhedron": Polyhedron.random(faces=14, seed=3, radius=0.9),
    "mesh": LUMP,
    "superquadric": Superquadric(0.9, 0.6, 0.5, 0.5, 1.4),
    "capsule": Capsule(0.35, AXIS),
}
WALLS = {
    "plane": Plane(),
    "rod": Cylinder(0.5, 1.6, inside=False),
    "quad": Quad([(-0.75, -0.55, 0), (0.75, -0.55, 0), (0.75, 0.55, 0), (-0.75, 0.55, 0)]),
}
HALOS = {"mesh": HALO, "capsule": 0.35}  # what is around triangles, or around the axis
COUNT, APART = 40, 30.0


def support(name, shape, n):
    """How far a shape about the origin in its own axes reaches along directions n (k,3): (k,) [m], halos and planes aside."""
    if name == "sphere":
        return np.full(len(n), 0.7)
    if name == "ellipsoid":
        return np.linalg.norm(n * (1.0, 0.6, 0.4), axis=1)
    if name == "superquadric":
        # The dual of the norm that is 1 on the surface: conjugate exponents, 4 and 2/1.4 there.
        flat = (np.abs(0.9 * n[:, 0]) ** (10 / 3) + np.abs(0.6 * n[:, 1]) ** (10 / 3)) ** 0.3
        return (flat ** (4 / 3) + np.abs(0.5 * n[:, 2]) ** (4 / 3)) ** 0.75
    if name in ("polyhedron", "mesh"):
        return (n @ shape.surface()[0].T).max(1)
    if name == "capsule":
        return 0.5 * AXIS * np.abs(n[:, 2])
    if name == "rod":
        return 0.8 * np.abs(n[:, 2]) + 0.5 * np.linalg.norm(n[:, :2], axis=1)
    return 0.75 * np.abs(n[:, 0]) + 0.55 * np.abs(n[:, 1])  # the quad


def sphere_of_directions(count):
    """Unit vectors (count,3), evenly spread."""
    k = np.arange(count) + 0.5
    z, angle = 1.0 - 2.0 * k / count, np.pi * (1.0 + 5.0**0.5) * k
    flat = np.sqrt(1.0 - z * z)
    return np.stack([flat * np.cos(angle), flat * np.sin(angle), z], axis=1)


WIDE = sphere_of_directions(4000)


def separation(one, two, n, way, turn_one, turn_two):
    """n . way less what both shapes reach towards each other, for directions n (k,3)."""
    if two[0] == "plane":
        up = turn_two[:, 2]
        return np.where((n @ up) < -1.0 + 1e-12, -(way @ up) - support(*one, n @ turn_one), -np.inf)
    return n @ way - support(*one, n @ turn_one) - support(*two, -n @ turn_two)


def greatest(*given):
    """The greatest separation over all directions, found by looking closer and closer around the best [m]."""
    n, spread = WIDE, 0.1
    if given[1][0] == "plane":
        return separation(given[0], given[1], -given[4][None, :, 2], *given[2:])[0]
    best, most = None, -np.inf
    for _ in range(24):
        s = separation(given[0], given[1], n, *given[2:])
        if s.max() > most:
            best, most = n[s.argmax()], s.max()
        n = best + spread * WIDE[::8]
        n /= np.linalg.norm(n, axis=1)[:, None]
        spread *= 0.5
    return most


def random_turns(rng, count):
    q = rng.normal(size=(count, 4))
    return q / np.linalg.norm(q, axis=1)[:, None]


def scene_of(one, two, seed, nudge=None):
    """COUNT pairs of the two, APART from each other; a scene, the way and both turns of each, and the numbers of the pairs.

    nudge (COUNT,3) [m]: by which the second of each pair is moved from there.
    """
    rng = np.random.default_rng(seed)
    way = rng.normal(size=(COUNT, 3))
    way *= (rng.uniform(0.9, 1.9, COUNT) / np.linalg.norm(way, axis=1))[:, None]
    first, second = random_turns(rng, COUNT), random_turns(rng, COUNT)
    if two[0] == "plane":
        way[:], first, second = np.array([0.0, 0.0, -1.0]) * rng.uniform(0.35, 1.0, COUNT)[:, None], first, second * 0
        second[:, 0] = 1.0
    if nudge is not None:
        way = way + nudge
    places = APART * np.stack([np.arange(COUNT), np.zeros(COUNT), np.zeros(COUNT)], axis=1)
    scene = Scene(gravity=(0.0, 0.0, 0.0))
    a = scene.add(one[1], position=places - (way if two[0] == "plane" else 0.0), orientation=first, material=STONE)
    if two[0] == "plane":
        b = np.repeat(scene.add(two[1], material=STONE), COUNT)
    else:
        b = scene.add(two[1], position=places + way, orientation=second, material=STONE)
    return scene, way, rotation_matrices(first), rotation_matrices(second), np.stack([a, b], axis=1)


def in_sheet(one, two):
    """Whether the second is a sheet whose overlap with the first is not told as a signed distance; polyhedra are told theirs."""
    return two[0] == "quad" and one[0] != "polyhedron"


PAIRS = [
    *combinations_with_replacement(PARTICLES.items(), 2),
    *((one, two) for one in PARTICLES.items() for two in WALLS.items()),
]


@pytest.mark.parametrize(("one", "two"), PAIRS, ids=[f"{one[0]}-{two[0]}" for one, two in PAIRS])
def test_gap_is_the_greatest_separation(one, two):
    """A direction with more room would be another answer; the normal must have exactly as much."""
    scene, way, first, second, pairs = scene_of(one, two, 7)
    found = find_contacts(scene, pairs=pairs, margin=np.inf)
    halo = HALOS.get(one[0], 0.0) + HALOS.get(two[0], 0.0)
    looked = 0
    for k in range(COUNT):
        mine = np.nonzero((found.pair == np.sort(pairs[k])).all(1))[0]
        assert len(mine) > 0  # nothing is missed
        deepest = mine[found.gap[mine].argmin()]
        gap = found.gap[deepest] + halo
        if gap <= (1e-7 if halo or in_sheet(one, two) else -0.3):
            continue
        normal = found.normal[deepest] * (1.0 if pairs[k, 0] < pairs[k, 1] else -1.0)
        given = one, two, way[k], first[k], second[k]
        assert separation(one, two, normal[None], *given[2:])[0] == pytest.approx(gap, abs=2e-9)
        assert greatest(*given) <= gap + 1e-9
        looked += 1
    assert looked > 12


def deepest(contacts):
    """The least gap of each pair that overlaps."""
    least = {}
    for pair, gap in zip(map(tuple, contacts.pair.tolist()), contacts.gap, strict=True):
        if gap < 0.0:
            least[pair] = min(gap, least.get(pair, 0.0))
    return least


@pytest.mark.parametrize(("one", "two"), PAIRS, ids=[f"{one[0]}-{two[0]}" for one, two in PAIRS])
def test_both_methods_see_the_same_points(one, two):
    """Where two overlap, forces act at the points that find_contacts tells, to the bit.

    Hard contacts look farther: of a patch the deepest point is the same, but others that are open may stand for the rest of it.
    """
    nudge, halo = None, HALOS.get(one[0], 0.0) + HALOS.get(two[0], 0.0)
    if two[0] == "quad" or halo:
        scene, way, _, _, pairs = scene_of(one, two, 8)
        found = find_contacts(scene, pairs=pairs, margin=np.inf)
        gap, normal = np.full(COUNT, np.inf), np.zeros((COUNT, 3))
        for k in np.argsort(-found.gap):
            gap[row := int(found.pair[k, 0] - pairs[0, 0])], normal[row] = found.gap[k], found.normal[k]
        # Simulations refuse what is so deep in a thin wall that it might come out on the other side, and surfaces that cross: far away. Pairs
        # with a halo are moved into it.
        deep = gap < (-0.95 * halo if halo else -0.49 * one[1].parts().deep[0])
        into = np.where(deep | (halo == 0.0), 0.0, gap + 0.4 * halo)
        nudge = np.where(deep[:, None], 4.0 * way, -into[:, None] * normal)
    wanted = find_contacts(scene_of(one, two, 8, nudge)[0])
    assert (wanted.gap < 0.0).sum() >= 3
    sim = Simulation(scene_of(one, two, 8, nudge)[0], clast.DEM())
    sim.stepper.start()
    seen = sim.contacts()
    np.testing.assert_array_equal(seen.pair, wanted.pair)
    np.testing.assert_array_equal(seen.gap, wanted.gap)
    np.testing.assert_array_equal(seen.normal, wanted.normal)
    sim = Simulation(scene_of(one, two, 8, nudge)[0], clast.Complementarity(), dt=1e-4)
    sim.stepper.start()
    assert deepest(sim.contacts()) == deepest(wanted)


def poses(one, two, count, seed):
    """Random poses of the two, apart and overlapping, as `clast.distance` takes them."""
    rng = np.random.default_rng(seed)
    way = rng.normal(size=(count, 3))
    way *= (rng.uniform(0.9, 1.9, count) / np.linalg.norm(way, axis=1))[:, None]
    first, second = random_turns(rng, count), random_turns(rng, count)
    if two[0] == "plane":
        way = np.array([0.0, 0.0, -1.0]) * rng.uniform(0.35, 1.0, count)[:, None]
        second = np.tile([1.0, 0.0, 0.0, 0.0], (count, 1))
    return (np.zeros((count, 3)), first), (way, second)


# What is deep in the edge or corner of a sheet may have no contact with it, see docs/pairs.md.
KNOWN = [(one, two) for one, two in PAIRS if two[0] != "quad" or one[0] not in ("ellipsoid", "superquadric")]


@pytest.mark.parametrize(("one", "two"), KNOWN, ids=[f"{one[0]}-{two[0]}" for one, two in KNOWN])
def test_distance_of_many_poses(one, two):
    """Numbers all of them, a unit normal along which there is as much room as told; swapped, the same to the bit; and unchanged when both
    are turned and shifted together."""
    a, b = poses(one, two, 400, 11)
    found = clast.distance(one[1], a, two[1], b)
    for column in found[:4]:
        assert np.isfinite(column).all()
    np.testing.assert_allclose(np.linalg.norm(found.normal, axis=1), 1.0, atol=1e-12)
    np.testing.assert_allclose(found.second - found.first, found.gap[:, None] * found.normal, atol=1e-12)
    swapped = clast.distance(two[1], b, one[1], a)
    np.testing.assert_array_equal(swapped.gap, found.gap)
    np.testing.assert_array_equal(swapped.normal, -found.normal)
    if two[0] == "plane":
        return
    turn, shift = random_turns(np.random.default_rng(2), 1)[0], np.array([3.0, -2.0, 5.0])
    matrix = rotation_matrices(turn[None])[0]
    moved = clast.distance(
        *(
            given
            for shape, (x, q) in ((one[1], a), (two[1], b))
            for given in (shape, (x @ matrix.T + shift, times(turn, q)))
        )
    )
    # Two ways out may be as short as each other, and surfaces that cross have none.
    halo = HALOS.get(one[0], 0.0) + HALOS.get(two[0], 0.0)
    deep = found.gap < (0.01 - halo if halo else -0.3)
    np.testing.assert_allclose(moved.gap, found.gap, atol=1e-9)
    turned = np.abs(moved.normal - found.normal @ matrix.T).max(axis=1) < 1e-6
    # Where two directions are as good to rounding, either may be told.
    assert turned[~deep].mean() > 0.97


def times(p, q):
    """The turns q (n,4) followed by the turn p (4,)."""
    w = p[0] * q[:, 0] - q[:, 1:] @ p[1:]
    v = p[0] * q[:, 1:] + q[:, :1] * p[1:] + np.cross(p[1:], q[:, 1:])
    return np.column_stack([w, v])


@pytest.mark.parametrize("name", PARTICLES)
def test_inside_a_shell_the_gap_is_the_least_over_all_sides(name):
    """An endless drum is where R - n . x is above zero for every n across its axis."""
    shape, halo = PARTICLES[name], HALOS.get(name, 0.0)
    rng = np.random.default_rng(4)
    place = rng.uniform(-1.0, 1.0, (60, 3))
    q = random_turns(rng, 60)
    found = clast.distance(shape, (place, q), Cylinder(2.0), (0.0, 0.0, 0.0))
    turn = rotation_matrices(q)
    for k in range(60):

        def room(angle, k=k):
            n = np.stack([np.cos(angle), np.sin(angle), np.zeros_like(angle)], axis=1)
            return 2.0 - n @ place[k] - support(name, shape, n @ turn[k])

        angle = np.linspace(0.0, 2.0 * np.pi, 721)
        for _ in range(8):
            best = angle[room(angle).argmin()]
            angle = best + np.linspace(-1.0, 1.0, 41) * (angle[1] - angle[0])
        assert found.gap[k] + halo == pytest.approx(room(angle).min(), abs=1e-9)


def crowd(count, seed):
    """All particles and walls in one scene, crowded so that many overlap; triangulated ones are kept apart, for they must not cross."""
    rng = np.random.default_rng(seed)
    scene = Scene(gravity=(0.0, 0.0, 0.0))
    side = 1.5 * np.cbrt(count)
    scene.add(Plane(), position=(0.0, 0.0, 0.3))
    scene.add(Cylinder(0.5, 4.0, inside=False), position=(0.5 * side, 0.5 * side, 2.0))
    scene.add(Cylinder(0.55 * side), position=(0.5 * side, 0.5 * side, 0.0))
    scene.add(WALLS["quad"], position=(0.3 * side, 0.3 * side, 1.0), scale=2.0)
    shapes = PARTICLES.values()
    for shape in shapes:
        many = count // len(shapes)
        scene.add(
            shape,
            position=rng.uniform(0.3, side, (many, 3)),
            orientation=random_turns(rng, many),
            scale=rng.uniform(0.5, 1.0, many),
        )
    return scene


def test_a_mixed_crowd_misses_nothing():
    """2,000 bodies of every kind among all walls: every broad phase finds what all pairs find, bit for bit."""
    scene = crowd(2000, 6)
    wanted = find_contacts(scene, broad="all-pairs", margin=0.02)
    assert len(wanted.gap) > 2000
    for broad in ("bins", "boxes", "spacetree"):
        found = find_contacts(scene, broad=broad, margin=0.02)
        for name in ("pair", "shape", "point", "normal", "gap", "feature"):
            np.testing.assert_array_equal(getattr(found, name), getattr(wanted, name))


def test_needles_apart_are_proven_from_both_sides():
    """Boxes 1:1000: the normal told has as much room as the gap, and both points told are in their boxes, so no answer can be nearer or farther."""
    half, needle = np.array([0.5, 0.0005, 0.0005]), Polyhedron.box(1.0, 0.001, 0.001)
    rng = np.random.default_rng(0)
    first, second = random_turns(rng, 1500), random_turns(rng, 1500)
    way = rng.uniform(-0.6, 0.6, (1500, 3))
    found = clast.distance(needle, (np.zeros((1500, 3)), first), needle, (way, second))
    apart = found.gap > 0.0
    assert apart.sum() > 1400
    one, two = rotation_matrices(first), rotation_matrices(second)
    reach = np.abs(np.einsum("nij,ni->nj", one, found.normal)) + np.abs(np.einsum("nij,ni->nj", two, found.normal))
    room = np.einsum("ni,ni->n", found.normal, way) - reach @ half
    assert np.abs(room - found.gap)[apart].max() < 1e-12
    for turn, point in ((one, found.first), (two, found.second - way)):
        assert (np.abs(np.einsum("nij,ni->nj", turn, point)) - half)[apart].max() < 1e-12


def test_a_corner_over_the_free_edge_of_a_quad_has_its_distance():
    h = 0.1 * 3.0**0.5  # from the centre of the box to its corners
    half = 0.5 * np.arccos(1.0 / 3.0**0.5)
    down = np.array([0.0, np.sin(half) * 0.5**0.5, -np.sin(half) * 0.5**0.5, 0.0]) + [np.cos(half), 0.0, 0.0, 0.0]
    box, sheet = Polyhedron.box(0.2, 0.2, 0.2), Quad([(-1, -1, 0), (1, -1, 0), (1, 1, 0), (-1, 1, 0)])
    low = (box.surface()[0] @ rotation_matrices(down[None])[0].T)[:, 2].min()
    assert low == pytest.approx(-h)
    for place in ((1.0, 0.0), (1.0, 1.0)):  # an edge, a corner
        found = clast.distance(box, ((*place, h + 5e-4), down), sheet, (0.0, 0.0, 0.0))
        assert found.gap[0] == pytest.approx(5e-4, abs=1e-12)

"""Contacts of ellipsoids as a library call: the paper's poses, all roads to the same contacts, and what a contact says."""

import json

import numpy as np
import pytest
from roads import keys

from clast import Clump, Cylinder, Ellipsoid, Plane, Quad, Scene, Sphere, find_contacts

ROADS = [(broad, narrow) for broad in ("bins", "boxes", "all-pairs") for narrow in ("opm", "chm+opm")]
QUARTER = (np.sqrt(0.5), 0.0, 0.0, np.sqrt(0.5))  # 90 degrees about z
STRAIGHT = (1.0, 0.0, 0.0, 0.0)

# Table 1 of Pazouki, Mazhar and Negrut: half-axes, turn and centre of both bodies; gap, direction, contact point.
POSES = [
    ((3, 1, 2), STRAIGHT, (1, 1, 1), (6, 2, 4), STRAIGHT, (1, 1, 1), -3.0, (0, 1, 0), (1, 1, 1)),
    ((3, 1, 2), QUARTER, (1, 1, 1), (12, 4, 8), STRAIGHT, (1, 1, 1), -7.0, (0, 1, 0), (1, 1, 1)),
    ((3, 1, 2), STRAIGHT, (0, 0, 0), (3, 1, 2), STRAIGHT, (5.8, 0, 0), -0.2, (1, 0, 0), (2.9, 0, 0)),
    ((3, 1, 2), QUARTER, (1, 1, 1), (1, 3, 2), QUARTER, (5.2, 1, 1), 0.2, (1, 0, 0), (2.1, 1, 1)),
    ((3, 1, 2), QUARTER, (1, 1, 1), (1, 3, 2), QUARTER, (4.8, 1, 1), -0.2, (1, 0, 0), (1.9, 1, 1)),
    ((3, 1, 2), STRAIGHT, (0, 0, 0), (3, 1, 2), STRAIGHT, (6, 0, 0), 0.0, (1, 0, 0), (3, 0, 0)),
]


def turns(rng, count):
    q = rng.normal(size=(count, 4))
    return q / np.linalg.norm(q, axis=1, keepdims=True)


@pytest.mark.parametrize(("broad", "narrow"), ROADS)
@pytest.mark.parametrize("pose", POSES, ids=[f"case {k + 1}" for k in range(6)])
def test_table_1_of_the_paper(pose, broad, narrow):
    scene = Scene()
    for size, turn, place in (pose[:3], pose[3:6]):
        scene.add(Ellipsoid(*size), position=place, orientation=turn)
    contacts = find_contacts(scene, margin=0.25, broad=broad, narrow=narrow)
    np.testing.assert_allclose(contacts.gap, [pose[6]], rtol=0.0, atol=1e-12)
    np.testing.assert_allclose(contacts.normal, [pose[7]], rtol=0.0, atol=1e-12)
    np.testing.assert_allclose(contacts.point, [pose[8]], rtol=0.0, atol=1e-12)


def gaps_of(cases):
    """Gaps of pairs given by half-axes s, rotation matrices R and places p."""
    scene = Scene()
    numbers = []
    for side in "12":
        turn = np.array([case["R" + side] for case in cases]).reshape(-1, 3, 3)
        shapes = [Ellipsoid(*case["s" + side]) for case in cases]
        place = [case["p" + side] for case in cases]
        numbers.append(scene.add(shapes, position=place, orientation=[quaternion(matrix) for matrix in turn]))
    return find_contacts(scene, pairs=np.stack(numbers, 1), margin=np.inf).gap


def test_stored_pairs(own_data):
    """Computed apart from clast as the maximum over all directions: needles, discs, one within the other, nearly touching."""
    cases = json.loads((own_data / "ellipsoid_pairs.json").read_text())
    assert len(cases) == 60
    np.testing.assert_allclose(gaps_of(cases), [case["distance"] for case in cases], rtol=0.0, atol=1e-13)


def test_published_pairs(reference_data):
    """Computed by another program as the maximum over all directions."""
    cases = json.loads((reference_data / "collision" / "ellipsoid_and_box_pairs.json").read_text())["ellipsoid"]
    np.testing.assert_allclose(gaps_of(cases), [case["support_max"] for case in cases], rtol=0.0, atol=1e-13)


def quaternion(matrix):
    """The eigenvector of 1 is the axis; the sign follows from the skew part (Bar-Itzhack 2000)."""
    m = matrix
    k = np.zeros((4, 4))
    k[0, 0] = np.trace(m)
    k[0, 1:] = k[1:, 0] = m[2, 1] - m[1, 2], m[0, 2] - m[2, 0], m[1, 0] - m[0, 1]
    k[1:, 1:] = m + m.T - np.trace(m) * np.eye(3)
    return np.linalg.eigh(k)[1][:, -1]


def mixed(seed=3):
    """Ellipsoids, spheres and clumps that overlap each other and walls of every kind, in a periodic world."""
    rng = np.random.default_rng(seed)
    scene = Scene(world=((-1.0, -1.0, -1.0), (1.0, 1.0, 1.0)), periodic=(True, False, False))
    scene.add(Plane((0.1, 0.0, 1.0)), position=(0.0, 0.0, -0.7))
    scene.add(Cylinder(0.9, axis=(1.0, 0.0, 0.0)))
    scene.add(Cylinder(0.1, 0.8, axis=(0.0, 1.0, 0.2), inside=False), position=(0.3, 0.0, 0.2))
    scene.add(Quad([(-0.4, -0.4, 0.3), (0.4, -0.4, 0.3), (0.4, 0.4, 0.3), (-0.4, 0.4, 0.3)]))

    def place(count):
        return {"position": rng.uniform(-0.9, 0.9, (count, 3)), "orientation": turns(rng, count)}

    scene.add(Ellipsoid(0.2, 0.1, 0.06), scale=rng.uniform(0.1, 1.0, 150), **place(150))
    scene.add(Sphere(0.1), scale=rng.uniform(0.1, 1.0, 60), **place(60))
    scene.add(Clump([(0.0, 0.0, 0.0), (0.1, 0.0, 0.0)], [0.08, 0.05]), **place(20))
    scene.add(Ellipsoid(0.1, 0.2, 0.2), motion="fixed", **place(5))
    return scene


@pytest.mark.parametrize("margin", [0.0, 0.03])
def test_every_road_finds_the_same_contacts(margin):
    scene = mixed()
    plain = find_contacts(scene, margin=margin, broad="all-pairs", narrow="opm")
    assert (plain.gap < 0.0).sum() > 200
    for broad, narrow in ROADS:
        other = find_contacts(scene, margin=margin, broad=broad, narrow=narrow)
        for name, column in plain._asdict().items():
            assert np.array_equal(column, getattr(other, name)), (broad, narrow, name)
        loose = find_contacts(scene, margin=margin, broad=broad, narrow=narrow, sort=False)
        assert sorted(map(tuple, keys(loose))) == sorted(map(tuple, keys(plain)))


def extent(turn, size, n):
    """How far an ellipsoid, rotation matrices (3,3), half-axes (3,), reaches in the unit directions n (k,3)."""
    return np.linalg.norm((n @ turn) * size, axis=1)


def matrix(q):
    w, u = q[0], np.array(q[1:])
    skew = np.array([[0, -u[2], u[1]], [u[2], 0, -u[0]], [-u[1], u[0], 0]])
    return np.eye(3) + 2.0 * w * skew + 2.0 * skew @ skew


def test_a_contact_is_where_two_surfaces_meet():
    """Gap, normal and point against the definition, by directions all around; the second body may be a sphere."""
    rng = np.random.default_rng(5)
    n = rng.normal(size=(20000, 3))
    n /= np.linalg.norm(n, axis=1, keepdims=True)
    for k in range(40):
        q, size = turns(rng, 2), rng.uniform(0.3, 1.0, (2, 3))
        size[1] = size[1] if k % 2 else size[1, 0]
        d = rng.normal(size=3)
        scene = Scene()
        scene.add(Ellipsoid(*size[0]), orientation=q[0])
        scene.add(Ellipsoid(*size[1]) if k % 2 else Sphere(size[1, 0]), position=d, orientation=q[1])
        contact = find_contacts(scene, pairs=[(0, 1)], margin=np.inf)
        first, second = matrix(q[0]), matrix(q[1])
        gap, normal = contact.gap[0], contact.normal[0]
        around = n @ d - extent(first, size[0], n) - extent(second, size[1], n)
        assert around.max() <= gap + 1e-14
        assert around.max() > gap - 0.01
        here = normal[None] @ d - extent(first, size[0], normal[None]) - extent(second, size[1], normal[None])
        assert here[0] == pytest.approx(gap, abs=1e-14)
        # Half a gap from the contact point lie the two surfaces, along the normal.
        for turn, axes, centre, side in ((first, size[0], 0.0, -0.5), (second, size[1], d, 0.5)):
            x = (contact.point[0] + side * gap * normal - centre) @ turn / axes
            inner = (np.linalg.norm(contact.point[0] - d * (side > 0)) < 1e-12) or x @ x == pytest.approx(1.0, abs=1e-9)
            assert inner


def test_the_contact_point_of_a_contained_body_is_its_centre():
    """Contained or not by points all over the surface of the inner body."""
    rng = np.random.default_rng(6)
    n = rng.normal(size=(4000, 3))
    n /= np.linalg.norm(n, axis=1, keepdims=True)
    seen = {True: 0, False: 0}
    for k in range(60):
        q, outer, inner = turns(rng, 2), rng.uniform(0.5, 1.0, 3), rng.uniform(0.1, 0.6, 3)
        d = 0.15 * rng.normal(size=3)
        surface = (n * inner) @ matrix(q[1]).T + d
        farthest = np.linalg.norm((surface @ matrix(q[0])) / outer, axis=1).max()
        if abs(farthest - 1.0) < 0.01:
            continue
        scene = Scene()
        bodies = [(Ellipsoid(*outer), np.zeros(3), q[0]), (Ellipsoid(*inner), d, q[1])]
        for shape, place, turn in bodies if k % 2 else bodies[::-1]:
            scene.add(shape, position=place, orientation=turn)
        contained = farthest < 1.0
        assert np.array_equal(find_contacts(scene).point[0], d) == contained
        seen[contained] += 1
    assert min(seen.values()) > 5


SQUARE = np.array([(-2.0, -2.0, -1.0), (2.0, -2.0, -1.0), (2.0, 2.0, -1.0), (-2.0, 2.0, -1.0)])


@pytest.mark.parametrize(
    ("shape", "half", "options"),
    [
        (Plane((0.0, 0.6, 0.8)), Plane((0.0, 0.6, 0.8)), {}),
        (Cylinder(1.3), Cylinder(0.65), {}),
        (Cylinder(0.5, 3.0, inside=False), Cylinder(0.25, 1.5, inside=False), {"position": (1.2, 0.0, 0.0)}),
        (Quad(SQUARE), Quad(SQUARE / 2.0), {}),
    ],
    ids=["plane", "hollow", "solid", "quad"],
)
def test_walls_are_told_apart_by_number_and_size_factor_only(shape, half, options):
    """Wall first or last, or half as large and doubled: the same gap and point, the normal from the lower number."""
    rng = np.random.default_rng(7)
    place = {"position": rng.uniform(-1.0, 1.0, (30, 3)), "orientation": turns(rng, 30)}
    found = []
    for build in ("wall first", "wall last", "doubled"):
        scene = Scene()
        if build != "wall last":
            scene.add(half if build == "doubled" else shape, scale=2.0 if build == "doubled" else 1.0, **options)
        scene.add(Ellipsoid(0.6, 0.3, 0.2), **place)
        if build == "wall last":
            scene.add(shape, **options)
        contacts = find_contacts(scene, margin=0.2)
        with_wall = (contacts.pair == (30 if build == "wall last" else 0)).any(1)
        found.append([column[with_wall] for column in (contacts.gap, contacts.point, contacts.normal)])
    assert len(found[0][0]) > 3
    for other, sign in ((found[1], -1.0), (found[2], 1.0)):
        np.testing.assert_allclose(other[0], found[0][0], rtol=0.0, atol=1e-13)
        np.testing.assert_allclose(other[1], found[0][1], rtol=0.0, atol=1e-12)
        np.testing.assert_allclose(sign * other[2], found[0][2], rtol=0.0, atol=1e-7)


@pytest.mark.parametrize("narrow", ["omp", "", ["opm"]])
def test_an_unknown_narrow_phase_is_named(narrow):
    scene = Scene()
    scene.add(Ellipsoid(1.0, 2.0, 3.0))
    with pytest.raises((ValueError, TypeError), match="narrow phase"):
        find_contacts(scene, narrow=narrow)

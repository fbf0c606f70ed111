"""Polyhedra against stored and published pairs: signed distances that other programs computed, each with its own proof."""

import json

import numpy as np
import pytest

from clast import Polyhedron, Scene, Sphere, find_contacts
from clast.kernels.vec import rotation_matrices


def quaternion(matrix):
    """Unit quaternion (4,) of a rotation matrix (3,3): the eigenvector that fits all of it (Bar-Itzhack 2000)."""
    m = np.asarray(matrix, float).reshape(3, 3)
    k = np.zeros((4, 4))
    k[0, 0] = np.trace(m)
    k[0, 1:] = k[1:, 0] = m[2, 1] - m[1, 2], m[0, 2] - m[2, 0], m[1, 0] - m[0, 1]
    k[1:, 1:] = m + m.T - np.trace(m) * np.eye(3)
    return np.linalg.eigh(k)[1][:, -1]


def place(scene, shape, origin, turn):
    """Add a body whose own coordinates begin at `origin` (3,) and are turned by the matrix (3,3); returns its number."""
    q = quaternion(turn)
    start = getattr(shape, "origin", np.zeros(3))
    return int(scene.add(shape, position=np.asarray(origin) + rotation_matrices([q])[0] @ start, orientation=q)[0])


def corners_of(scene, shape, number):
    """World corners (v,3) of a body."""
    row = int(np.nonzero(scene.bodies.number == number)[0][0])
    turn = rotation_matrices(scene.bodies.orientation[row : row + 1])[0]
    return scene.bodies.position[row] + shape.vertices @ turn.T


def extent(a, b, n):
    """How far apart corners a (v,3) and b (w,3) are along unit n (..., 3); negative where they overlap."""
    return (n @ b.T).min(-1) - (n @ a.T).max(-1)


def best_direction(one, two, a, b):
    """The largest extent over all normals of faces and all products of edges: the signed distance where it is negative.

    one, two: polyhedra with their corners in the world, a (v,3) and b (w,3).
    """

    def normals(corners, shape):
        loops = [corners[face] for face in shape.faces]
        n = np.array([np.cross(x - x[0], np.roll(x, -1, 0) - x[0]).sum(0) for x in loops])
        return n / np.linalg.norm(n, axis=1)[:, None]

    def edges(corners, shape):
        ends = corners[shape.hull.edge]
        e = ends[:, 1] - ends[:, 0]
        return e / np.linalg.norm(e, axis=1)[:, None]

    m = np.cross(edges(a, one)[:, None], edges(b, two)[None]).reshape(-1, 3)
    length = np.linalg.norm(m, axis=1)
    m = m[length > 1e-7] / length[length > 1e-7, None]
    return max(extent(a, b, n).max() for n in (normals(a, one), -normals(b, two), m, -m))


def inside(corners, shape, scene, number, x):
    """How far x (3,) is outside a body [m], by its faces; negative inside."""
    row = int(np.nonzero(scene.bodies.number == number)[0][0])
    turn = rotation_matrices(scene.bodies.orientation[row : row + 1])[0]
    return (shape.hull.normal.T @ (turn.T @ (x - scene.bodies.position[row])) - shape.hull.offset).max()


class Case:
    """Pairs of polyhedra, asked for in one call: the deepest contact of each."""

    def __init__(self, pairs):
        """pairs: list of two times (shape, origin, turn)."""
        self.scene = Scene()
        self.shapes = [(one[0], two[0]) for one, two in pairs]
        self.numbers = np.array([[place(self.scene, *one), place(self.scene, *two)] for one, two in pairs])
        contacts = find_contacts(self.scene, pairs=self.numbers, margin=np.inf)
        number = {tuple(pair): k for k, pair in enumerate(self.numbers.tolist())}
        self.gap = np.full(len(pairs), np.inf)
        self.normal, self.point = np.zeros((len(pairs), 3)), np.zeros((len(pairs), 3))
        for k, gap in enumerate(contacts.gap):
            pair = number[tuple(contacts.pair[k].tolist())]
            if gap < self.gap[pair]:
                self.gap[pair], self.normal[pair], self.point[pair] = gap, contacts.normal[k], contacts.point[k]

    def prove(self, tolerance=1e-12):
        """Each gap is exact: the extent along the normal, a bound from below; and met from above.

        From above, where the bodies are apart, by two points of theirs; where they overlap, by all other directions.
        """
        for k, (one, two) in enumerate(self.shapes):
            a, b = corners_of(self.scene, one, self.numbers[k, 0]), corners_of(self.scene, two, self.numbers[k, 1])
            n, gap = self.normal[k], self.gap[k]
            size = one.hull.outer[0] + two.hull.outer[0]
            assert abs(np.linalg.norm(n) - 1.0) < 1e-14
            assert abs(extent(a, b, n) - gap) <= tolerance * size, k
            if gap > 0.0:
                for corners, shape, number, side in ((a, one, 0, -0.5), (b, two, 1, 0.5)):
                    x = self.point[k] + side * gap * n
                    assert inside(corners, shape, self.scene, self.numbers[k, number], x) <= tolerance * size, k
            else:
                assert abs(best_direction(one, two, a, b) - gap) <= tolerance * size, k


def boxes(cases):
    """Pairs of boxes given by half edges s, rotation matrices R and places p."""
    return Case(
        [
            tuple(
                (Polyhedron.box(*2.0 * np.array(c["s" + k])), c["p" + k], np.reshape(c["R" + k], (3, 3))) for k in "12"
            )
            for c in cases
        ]
    )


def rocks(hulls, cases):
    """Pairs of hulls, by their names a and b, the first at the origin."""
    made = {name: Polyhedron(points) for name, points in hulls.items()}
    return Case(
        [
            (
                (made[c["a"]], (0.0, 0.0, 0.0), np.reshape(c["R1"], (3, 3))),
                (made[c["b"]], c["p2"], np.reshape(c["R2"], (3, 3))),
            )
            for c in cases
        ]
    )


@pytest.fixture(scope="module")
def stored(own_data):
    return json.loads((own_data / "convex_pairs.json").read_text())


def exact(cases, found):
    """The stored distances are rational numbers, rounded once."""
    found.prove()
    np.testing.assert_allclose(found.gap, [case["distance"] for case in cases], rtol=0.0, atol=1e-14)


def test_stored_pairs_of_boxes(stored):
    exact(stored["boxes"], boxes(stored["boxes"]))


def test_stored_pairs_of_rocks(stored):
    exact(stored["rock pairs"], rocks(stored["rocks"], stored["rock pairs"]))


def posed(case, side):
    """Shape, origin and turn of one of two bodies in a special pose."""
    kind, size = case["one" if side == "1" else "two"]
    shape = {"box": lambda half: Polyhedron.box(*2.0 * np.array(half)), "sphere": Sphere, "hull": Polyhedron}[kind](
        size
    )
    return shape, case["p" + side], np.reshape(case["R" + side], (3, 3))


@pytest.mark.parametrize("spheres", [True, False])  # apart, so that no kernel for both is compiled
def test_special_poses(stored, spheres):
    """Faces, edges and corners that lie exactly on, beside or above each other: closed forms, and how many points touch."""
    cases = [case for case in stored["posed"] if (case["one"][0] == "sphere") == spheres]
    assert len(cases) == (3 if spheres else 19)
    pairs = [[posed(case, side) for side in "12"] for case in cases]
    found = Case(pairs)
    if not spheres:
        found.prove()
    for k, case in enumerate(cases):
        size = max(1.0, np.abs(case["p2"]).max())
        assert abs(found.gap[k] - case["distance"]) < 1e-14 * size, case["name"]
        np.testing.assert_allclose(found.normal[k], case["direction"], atol=1e-13, err_msg=case["name"])
        scene = Scene()
        pair = [place(scene, *body) for body in pairs[k]]
        touching = find_contacts(scene, pairs=np.array([pair])).gap < -1e-14 * size
        assert touching.sum() == case["points"], case["name"]


def test_published_pairs_of_boxes(reference_data):
    cases = json.loads((reference_data / "collision" / "ellipsoid_and_box_pairs.json").read_text())["box"]
    found = boxes(cases)
    found.prove()
    compare(cases, found)


def test_published_pairs_of_rocks(reference_data):
    data = json.loads((reference_data / "collision" / "rock_hull_pairs.json").read_text())
    found = rocks(data["hulls"], data["pairs"])
    found.prove()
    compare(data["pairs"], found)


def compare(cases, found):
    """Within 1e-7 of both programs, and at rounding of the one that is nearer."""
    error = np.abs(np.array([[case["coal"], case["mujoco"]] for case in cases]) - found.gap[:, None])
    assert error.max() <= 1e-7
    assert error.min(1).max() <= 1e-13


def turn_of(geom):
    """Rotation matrix (3,3) of a body: given as such, as a quaternion, or by angles [degrees] about its x, y, z in turn."""
    if "xmat" in geom:
        return np.reshape(geom["xmat"], (3, 3))
    if "quat" in geom:
        q = np.array(geom["quat"])
        return rotation_matrices([q / np.linalg.norm(q)])[0]
    turn = np.eye(3)
    for axis, angle in enumerate(np.radians(geom.get("euler", (0.0, 0.0, 0.0)))):
        q = np.array([np.cos(0.5 * angle), 0.0, 0.0, 0.0])
        q[1 + axis] = np.sin(0.5 * angle)
        turn = turn @ rotation_matrices([q])[0]
    return turn


def body_of(geom, meshes):
    """Shape, origin and turn of a body of the MuJoCo cases."""
    if geom["type"] == "sphere":
        shape = Sphere(geom["size"][0])
    elif geom["type"] == "box":
        shape = Polyhedron.box(*2.0 * np.array(geom["size"]))
    else:
        shape = Polyhedron(meshes[geom["mesh"]])
    return shape, np.array(geom.get("xpos", geom.get("pos", (0.0, 0.0, 0.0)))), turn_of(geom)


# Contacts that MuJoCo finds and clast, which keeps at most four points a pair, finds too; touching without overlap is none.
COUNTS = {
    "SphereSphereNoDist": 0,
    "SphereSphereIntersect": 1,
    "BoxBoxSize05": 4,
    "BoxBoxSize05b": 4,
    "BoxBoxSize05c": 4,
    "BoxBoxTouching": 0,
    "BoxBoxMultiCCD": 4,
    "BoxBoxMultiCCD2": 4,
    "BoxBoxMultiCCD3": 4,
    "BoxBoxMultiCCD8": 4,
    "BoxBoxMultiCCD9": 4,
    "BoxBoxMultiCCD10": 4,
    "BoxBoxMultiCCD12": 4,
    "BoxBoxMultiCCD13": 4,
    "BoxBoxMultiCCD15": 4,
    "BoxMesh": 4,
    "BoxMeshPrune": 4,
    "MeshMeshPrune": 4,
    "MeshEdge2": 4,
    "BoxBoxLarge": 4,
}


@pytest.fixture(scope="module")
def mujoco_cases(reference_data):
    """Those of MuJoCo's own cases whose bodies are spheres, boxes or meshes: name, case, two bodies."""
    cases = json.loads((reference_data / "collision" / "mujoco_gjk_cases.json").read_text())["cases"]
    found = {}
    for case in cases:
        geoms = sorted(case["geoms"], key=lambda geom: str(geom["name"]))  # directions are from geom1 to geom2
        if all(geom["type"] in ("sphere", "box", "mesh") for geom in geoms):
            found[case["name"]] = case, [body_of(geom, case["meshes"]) for geom in geoms]
    return found


def test_distances_and_directions_of_mujoco_cases(mujoco_cases):
    """MuJoCo's own tests allow 1e-6; some of the expected values are printed with four digits."""
    wanted = [(name, *given) for name, given in mujoco_cases.items() if "signed_distance" in given[0]["expected"]]
    assert len(wanted) == 14
    for spheres in (True, False):  # apart, so that no kernel for both is compiled
        chosen = [row for row in wanted if isinstance(row[2][0][0], Sphere) == spheres]
        found = Case([bodies for _, _, bodies in chosen])
        for k, (name, case, _) in enumerate(chosen):
            assert abs(found.gap[k] - case["expected"]["signed_distance"]) <= 1e-6, name
            if "direction" in case["expected"]:
                np.testing.assert_allclose(found.normal[k], case["expected"]["direction"], atol=1e-3, err_msg=name)


def test_every_mujoco_case_of_polyhedra_is_exact(mujoco_cases):
    pairs = [bodies for _, bodies in mujoco_cases.values() if all(isinstance(b[0], Polyhedron) for b in bodies)]
    assert len(pairs) == 38
    Case(pairs).prove()


def test_contact_counts_of_mujoco_cases(mujoco_cases):
    counts = {}
    for name in COUNTS:
        scene = Scene()
        pair = [place(scene, *body) for body in mujoco_cases[name][1]]
        counts[name] = int((find_contacts(scene, pairs=np.array([pair])).gap < 0.0).sum())
    assert counts == COUNTS

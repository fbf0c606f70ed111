"""Makes convex_pairs.json: pairs of boxes, rocks and figures in special poses, with their signed distance.

Two convex bodies are as far apart as the origin is from the hull of all differences of their corners (Qhull), and where it
lies inside, as deep in each other as it lies below the nearest face of that hull. Qhull only says which corners make up the
faces; the numbers are rational, from the corners as they are in the file of the body, turned in double precision.
"""

import itertools
import json
from pathlib import Path

import numpy as np
from exact import cross, dot, minus, rational, root, square_distance
from scipy.spatial import ConvexHull
from scipy.spatial.transform import Rotation

rng = np.random.default_rng(22)
CUBE = np.array(list(itertools.product((-1.0, 1.0), repeat=3)))


def signed_distance(a, b):
    """Signed distance of the hulls of corners a (v,3) and b (w,3) [m], negative where they overlap."""
    difference = (b[None] - a[:, None]).reshape(-1, 3)
    hull = ConvexHull(difference)
    outside = hull.equations[:, 3].max()  # of the origin, from the plane of each face
    if outside > 0.0:
        # Only faces that could be the nearest; rational numbers decide among them.
        rough = np.array([near_triangle(difference[s]) for s in hull.simplices])
        near = hull.simplices[rough < rough.min() * 1.0001 + 1e-9]
        return root(min(square_distance(rational([(0, 0, 0)]), rational(difference[s])) for s in near))
    near = hull.simplices[hull.equations[:, 3] > outside - 1e-9]
    # Of the triangles into which a face is cut, the largest gives its plane best.
    area = [np.linalg.norm(np.cross(*(difference[s][1:] - difference[s][0]))) for s in near]
    x, y, z = rational(difference[near[int(np.argmax(area))]])
    normal = cross(minus(y, x), minus(z, x))
    return -root(dot(normal, x) ** 2 / dot(normal, normal))


def near_triangle(t):
    """Distance of the origin from a triangle (3,3), roughly: among 200 of its points."""
    w = STEPS @ t
    return np.sqrt((w * w).sum(1).min())


STEPS = np.array([(i, j, 40 - i - j) for i in range(41) for j in range(41 - i)]) / 40.0


def turned(case, corners):
    a, b = corners
    return (
        case["p1"] + a @ np.reshape(case["R1"], (3, 3)).T,
        case["p2"] + b @ np.reshape(case["R2"], (3, 3)).T,
    )


def pose(p1, r1, p2, r2):
    return {
        "p1": list(p1),
        "R1": r1.as_matrix().ravel().tolist(),
        "p2": list(p2),
        "R2": r2.as_matrix().ravel().tolist(),
    }


def random_pose(reach):
    """Two random turns, the second body at about so far from the first."""
    way = rng.normal(size=3)
    place = np.round(reach * way / np.linalg.norm(way), 4)
    return pose((0.0, 0.0, 0.0), Rotation.random(rng=rng), place.tolist(), Rotation.random(rng=rng))


boxes = []
for reach in np.linspace(0.3, 3.0, 40):
    size = np.round(rng.uniform(0.2, 1.2, (2, 3)), 3)
    case = {"s1": size[0].tolist(), "s2": size[1].tolist()} | random_pose(reach)
    boxes.append(case | {"distance": signed_distance(*turned(case, CUBE * size[:, None]))})

rocks = {}
for name, count in (("pebble", 12), ("boulder", 24), ("flint", 40)):
    points = rng.normal(size=(count, 3))
    points *= rng.uniform(0.5, 1.0, 3) / np.linalg.norm(points, axis=1)[:, None]
    points = np.round(points + 0.1 * rng.normal(size=3), 3)
    rocks[name] = points[ConvexHull(points).vertices].tolist()
rock_pairs = []
for reach in np.linspace(0.2, 2.5, 30):
    one, two = rng.choice(list(rocks), 2)
    case = {"a": str(one), "b": str(two)} | random_pose(reach)
    rock_pairs.append(case | {"distance": signed_distance(*turned(case, [np.array(rocks[one]), np.array(rocks[two])]))})

# Poses whose distance has a closed form. `points`: corners of the figure in which two faces, an edge and a face ... overlap,
# of which a contact keeps four at the most; 0 where the bodies only touch or are apart.
OCTAHEDRON = [[1, 0, 0], [-1, 0, 0], [0, 1, 0], [0, -1, 0], [0, 0, 1], [0, 0, -1]]
WEDGE = [[-1, -1, 0], [1, -1, 0], [1, 1, 0], [-1, 1, 0], [-1, 0, 1], [1, 0, 1]]  # a roof with its ridge along x
ID, S = Rotation.identity(), np.sqrt
X45, Y45, Z45 = (Rotation.from_euler(axis, 45, degrees=True) for axis in "xyz")
TIP = Rotation.align_vectors([[0, 0, -1.0]], [[1.0, 1, 1]])[0]  # a cube on its corner


def posed(name, one, two, r1, p2, r2, distance, direction, points, p1=(0.0, 0.0, 0.0)):
    """one, two: ("box", half edges), ("sphere", radius) or ("hull", corners)."""
    case = {"name": name, "one": one, "two": two} | pose(p1, r1, tuple(map(float, p2)), r2)
    if "sphere" not in (one[0], two[0]):
        corners = [CUBE * size if kind == "box" else np.array(size, float) for kind, size in (one, two)]
        size = max(np.abs(c).max() for c in corners)
        assert abs(signed_distance(*turned(case, corners)) - distance) < 1e-14 * max(1.0, size), name
    return case | {"distance": float(distance), "direction": list(map(float, direction)), "points": points}


def box(*half):
    return ["box", list(half)]


UNIT, UP = box(0.5, 0.5, 0.5), (0, 0, 1)
special = [
    posed("spheres apart", ["sphere", 0.3], ["sphere", 0.5], ID, (3, 4, 0), ID, 4.2, (0.6, 0.8, 0), 0),
    posed("spheres in each other", ["sphere", 0.3], ["sphere", 0.5], ID, (0.42, 0, 0.56), ID, -0.1, (0.6, 0, 0.8), 1),
    posed("spheres that touch", ["sphere", 0.25], ["sphere", 0.75], ID, (0, 1, 0), ID, 0.0, (0, 1, 0), 0),
    posed("cubes face on face", UNIT, UNIT, ID, (0, 0, 0.99), ID, -0.01, UP, 4),
    posed("cubes apart", UNIT, UNIT, ID, (0.1, 0.2, 1.5), ID, 0.5, UP, 0),
    posed("cubes that touch", UNIT, UNIT, ID, (0.25, 0, 1), ID, 0.0, UP, 0),
    posed("a cube that hangs over", UNIT, UNIT, ID, (0.6, 0.3, 0.98), ID, -0.02, UP, 4),
    posed("a cube turned on another", UNIT, UNIT, ID, (0, 0, 0.98), Z45, -0.02, UP, 4),
    posed("a small box inside a large face", box(5, 5, 1), box(0.2, 0.1, 0.3), ID, (1, -2, 1.29), Z45, -0.01, UP, 4),
    posed("a cube on an edge", box(2, 2, 1), UNIT, ID, (0.3, 0.1, 1 + S(0.5) - 0.01), X45, -0.01, UP, 2),
    posed("a cube on a corner", box(2, 2, 1), UNIT, ID, (0.3, 0.1, 1 + S(0.75) - 0.01), TIP, -0.01, UP, 1),
    posed("a corner above a face", box(2, 2, 1), UNIT, ID, (0.3, 0.1, 1 + S(0.75) + 0.2), TIP, 0.2, UP, 0),
    posed("crossed edges", UNIT, UNIT, X45, (0.1, 0.2, 2 * S(0.5) - 0.03), Y45, -0.03, UP, 1),
    posed("crossed edges apart", UNIT, UNIT, X45, (0.1, 0.2, 2 * S(0.5) + 0.1), Y45, 0.1, UP, 0),
    posed("edge beside edge", UNIT, UNIT, ID, (2, 2, 0.3), ID, S(2), (S(0.5), S(0.5), 0), 0),
    posed("corner beside corner", UNIT, UNIT, ID, (-2, 2, 2), ID, S(3), (-S(1 / 3), S(1 / 3), S(1 / 3)), 0),
    posed("a tip in a face", box(2, 2, 1), ["hull", OCTAHEDRON], ID, (0.4, -0.3, 1.95), ID, -0.05, UP, 1),
    posed("a tip above a face", box(2, 2, 1), ["hull", OCTAHEDRON], ID, (0.4, -0.3, 2.25), ID, 0.25, UP, 0),
    posed("two tips", ["hull", OCTAHEDRON], ["hull", OCTAHEDRON], ID, (0, 3, 0), ID, 1.0, (0, 1, 0), 0),
    posed("a box on a ridge", ["hull", WEDGE], box(0.5, 0.5, 0.5), ID, (0.2, 0.1, 1.48), ID, -0.02, UP, 2),
    posed("a roof on a floor", box(3, 3, 1), ["hull", WEDGE], ID, (0.5, 0.5, 0.97), Z45, -0.03, UP, 4),
    posed("a huge and a tiny box", box(500, 500, 500), box(0.01, 0.01, 0.01), ID, (3, 4, 500.009), ID, -0.001, UP, 4),
]


def rows(name, cases):
    return f'"{name}": [\n' + ",\n".join(json.dumps(case) for case in cases) + "\n]"


parts = [rows("boxes", boxes), f'"rocks": {json.dumps(rocks)}', rows("rock pairs", rock_pairs), rows("posed", special)]
Path(__file__).with_name("convex_pairs.json").write_text("{\n" + ",\n".join(parts) + "\n}\n", encoding="utf-8")

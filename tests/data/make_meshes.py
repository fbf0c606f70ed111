"""Makes meshes/: closed meshes with dents, holes and steps, and some that no particle can be; and meshes.json.

Volume, centre and moments of inertia are sums over the tetrahedra between the origin and each triangle, in rational numbers,
of the coordinates as they are in the file; trimesh is asked too and must agree.
"""

import json
from pathlib import Path

import numpy as np
import trimesh
from exact import cross, dot, rational
from scipy.spatial import ConvexHull

HERE = Path(__file__).parent
FOLDER = HERE / "meshes"
rng = np.random.default_rng(23)


def revolved(profile, around):
    """A closed mesh from a profile (r, z), turned about z: a closed loop away from the axis, or a line from axis to axis."""
    profile = np.array(profile, float)
    ends = profile[[0, -1], 0] == 0.0
    ring = profile[1:-1] if ends.all() else profile
    angle = 2.0 * np.pi * np.arange(around) / around
    r, z = ring[:, :1], np.repeat(ring[:, 1:], around, 1)
    vertices = np.stack([r * np.cos(angle), r * np.sin(angle), z], 2).reshape(-1, 3)
    at = np.arange(len(ring) * around).reshape(-1, around)
    triangles = []
    for one, two in zip(at, np.roll(at, -1, 0)) if not ends.all() else zip(at, at[1:]):
        a, b, c, d = one, np.roll(one, -1), np.roll(two, -1), two
        triangles += [np.stack([a, b, c], 1), np.stack([a, c, d], 1)]
    if ends.all():
        vertices = np.vstack([vertices, [0.0, 0.0, profile[0, 1]], [0.0, 0.0, profile[-1, 1]]])
        low, high = len(vertices) - 2, len(vertices) - 1
        triangles.append(np.stack([np.roll(at[0], -1), at[0], np.full(around, low)], 1))
        triangles.append(np.stack([at[-1], np.roll(at[-1], -1), np.full(around, high)], 1))
    return vertices, np.concatenate(triangles)


def stairs(steps):
    """Steps that go down along x, one wide."""
    outline = [(0, 0), (steps, 0)]
    for k in range(1, steps + 1):
        outline += [(steps - k + 1, k), (steps - k, k)]
    n = len(outline)
    vertices = np.array([(x, y, z) for y in (0, 1) for x, z in outline], float)
    side = [(0, k, k + 1) for k in range(1, n - 1)]
    triangles = side + [(n + a, n + c, n + b) for a, b, c in side]
    for k in range(n):
        j = (k + 1) % n
        triangles += [(k, n + k, n + j), (k, n + j, j)]
    return vertices * (0.25, 1.0, 0.2), np.array(triangles)


def lump():
    """A ball with dents and ears."""
    ball = trimesh.creation.icosphere(subdivisions=2)
    x = np.array(ball.vertices)
    radius = np.ones(len(x))
    for height in (0.8, 0.6, -0.6, -0.5, -0.4, 0.3):
        way = rng.normal(size=3)
        angle = np.arccos(np.clip(x @ way / np.linalg.norm(way), -1.0, 1.0))
        radius += height * np.exp(-((angle / 0.4) ** 2))
    return x * radius[:, None], np.array(ball.faces)


def rock():
    points = rng.normal(size=(50, 3))
    points = np.round(points * (1.0, 0.8, 0.6) / np.linalg.norm(points, axis=1)[:, None], 4)
    hull = ConvexHull(points)
    t = hull.simplices
    out = (np.cross(points[t[:, 1]] - points[t[:, 0]], points[t[:, 2]] - points[t[:, 0]]) * hull.equations[:, :3]).sum(
        1
    )
    return points, np.where((out > 0.0)[:, None], t, t[:, ::-1])


def box_corners(low, high):
    return [[x, y, z] for x in (low[0], high[0]) for y in (low[1], high[1]) for z in (low[2], high[2])]


QUADS = [(0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3)]  # of box_corners
HALVES = [half for a, b, c, d in QUADS for half in ((a, b, c), (a, c, d))]


def write_obj(name, vertices, faces):
    lines = ["v " + " ".join(f"{x:.4f}" for x in row) for row in vertices]
    lines += ["f " + " ".join(str(i + 1) for i in face) for face in faces]
    (FOLDER / name).write_text("\n".join(lines) + "\n", encoding="utf-8")


def write_stl(name, vertices, triangles):
    """Binary: four numbers of three components each, in single precision, and two empty bytes a triangle."""
    corner = np.asarray(vertices, "<f4")[np.asarray(triangles)]
    record = np.zeros(len(corner), [("normal", "<f4", 3), ("corner", "<f4", (3, 3)), ("empty", "<u2")])
    record["corner"] = corner
    (FOLDER / name).write_bytes(b"clast".ljust(80) + np.uint32(len(corner)).astype("<u4").tobytes() + record.tobytes())


def properties(corner):
    """Volume, centre and the inertia about it, of density 1 and divided by the volume, of triangles (t,3,3)."""
    volume, first, second = 0, [0] * 3, [[0] * 3 for _ in range(3)]
    for triangle in corner:
        a, b, c = rational(triangle)
        six = dot(a, cross(b, c))
        volume += six / 6
        total = [x + y + z for x, y, z in zip(a, b, c)]
        for i in range(3):
            first[i] += six * total[i] / 24
            for j in range(3):
                second[i][j] += six * (total[i] * total[j] + a[i] * a[j] + b[i] * b[j] + c[i] * c[j]) / 120
    centre = [x / volume for x in first]
    spread = [[second[i][j] / volume - centre[i] * centre[j] for j in range(3)] for i in range(3)]
    trace = sum(spread[i][i] for i in range(3))
    inertia = [[float((trace if i == j else 0) - spread[i][j]) for j in range(3)] for i in range(3)]
    return {"volume": float(volume), "centre": [float(x) for x in centre], "inertia": inertia}


circle = 2.0 * np.pi * np.arange(10) / 10
CUP = [(0, 0), (1, 0), (1, 1.5), (0.8, 1.5), (0.8, 0.3), (0, 0.3)]
FOLDER.mkdir(exist_ok=True)
write_obj("torus.obj", *revolved(np.column_stack([1.0 + 0.4 * np.cos(circle), 0.4 * np.sin(circle)]), 20))
write_obj("cup.obj", *revolved(CUP, 8))
write_obj("stairs.obj", *stairs(5))
write_obj("lump.obj", *lump())
write_obj("rock.obj", *rock())
write_obj("quads.obj", box_corners((0, 0, 0), (1, 2, 3)), QUADS)
write_stl("flange.stl", *revolved([(1, 0), (2, 0), (2, 0.25), (1.25, 0.25), (1.25, 1), (1, 1)], 12))

# What is refused: a hole, an edge with four triangles, no triangles at all.
vertices, triangles = revolved(CUP, 8)
write_obj("open.obj", vertices, np.delete(triangles, 20, 0))
two = box_corners((0, 0, 0), (1, 1, 1)) + box_corners((1, 1, 0), (2, 2, 1))
write_stl("two_boxes_and_one_edge.stl", two, HALVES + [tuple(8 + i for i in half) for half in HALVES])
write_obj("points.obj", box_corners((0, 0, 0), (1, 2, 3)), [])

found = {}
for name in ("torus.obj", "cup.obj", "stairs.obj", "lump.obj", "rock.obj", "quads.obj", "flange.stl"):
    mesh = trimesh.load(FOLDER / name, process=False)
    found[name] = {"triangles": len(mesh.faces)} | properties(mesh.vertices[mesh.faces])
    assert trimesh.load(FOLDER / name).is_watertight, name
    assert abs(mesh.volume / found[name]["volume"] - 1.0) < 1e-12, name
    np.testing.assert_allclose(mesh.center_mass, found[name]["centre"], atol=1e-12)
    np.testing.assert_allclose(mesh.moment_inertia / mesh.volume, found[name]["inertia"], atol=1e-12)
lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(given)}" for name, given in found.items())
(HERE / "meshes.json").write_text(f"{{\n{lines}\n}}\n", encoding="utf-8")

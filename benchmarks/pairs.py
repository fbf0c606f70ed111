"""Every pair of shapes: microseconds of one core for signed distance, normal and points, beside coal, MuJoCo and Bullet where they have the pair.

    python benchmarks/pairs.py                                   # ours; the table of docs/pairs.md
    python benchmarks/pairs.py --peers .bench-venv/bin/python    # and theirs, which have coal, mujoco, pybullet and numpy
    python benchmarks/pairs.py --count 2000

Bodies about a metre large at random poses, from overlapping by a third of their size to as far apart. CPU time, so that other work on the machine
matters less; ours by one call of `clast.distance` on one thread, theirs by a loop in Python, whose own share is about a microsecond.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

os.environ.setdefault("NUMBA_NUM_THREADS", "1")
PARTICLES = ("sphere", "ellipsoid", "polyhedron", "mesh", "superquadric", "capsule")
WALLS = ("plane", "drum", "rod", "quad")
PEERS = ("coal", "mujoco", "bullet")
ROCK = "PAIRS_ROCK"
AXES, RADIUS = (1.0, 0.6, 0.4), 0.7


def poses(count, wall):
    """Ways (n,3) [m] and unit quaternions (n,4) of both."""
    rng = np.random.default_rng(5)
    way = rng.normal(size=(count, 3))
    way *= (rng.uniform(0.9, 1.9, count) / np.linalg.norm(way, axis=1))[:, None]
    turn = rng.normal(size=(2, count, 4))
    turn /= np.linalg.norm(turn, axis=2)[:, :, None]
    if wall in ("plane", "drum"):
        turn[1] = (1.0, 0.0, 0.0, 0.0)
        way = np.array([0.0, 0.0, -1.0]) * rng.uniform(0.35, 1.0, count)[:, None] if wall == "plane" else 0.5 * way
    return way, turn[0], turn[1]


def rock():
    """Corners (v,3) [m] and triangles of a rock of 24 faces; the peers' environment has no hulls and reads ours."""
    if ROCK in os.environ:
        made = json.loads(os.environ[ROCK])
        return np.array(made[0]), np.array(made[1])
    from scipy.spatial import ConvexHull

    point = np.random.default_rng(0).normal(size=(14, 3))
    point *= np.array([0.9, 0.8, 0.7]) / np.linalg.norm(point, axis=1)[:, None]
    hull = ConvexHull(point)
    triangles = hull.simplices.copy()
    corner = point[triangles]
    turned = (
        np.einsum("ti,ti->t", np.cross(corner[:, 1] - corner[:, 0], corner[:, 2] - corner[:, 0]), hull.equations[:, :3])
        < 0
    )
    triangles[turned, 1:] = triangles[turned, :0:-1]
    return point, triangles


def ours(count):
    """Microseconds of one core for each pair."""
    import clast

    point, triangles = rock()
    shapes = {
        "sphere": clast.Sphere(RADIUS),
        "ellipsoid": clast.Ellipsoid(*AXES),
        "polyhedron": clast.Polyhedron(point),
        "mesh": clast.Mesh(point, triangles, epsilon=0.02),
        "superquadric": clast.Superquadric(0.9, 0.6, 0.5, 0.5, 0.7),
        "capsule": clast.Capsule(0.35, 1.1),
        "plane": clast.Plane(),
        "drum": clast.Cylinder(2.0),
        "rod": clast.Cylinder(0.5, 1.6, inside=False),
        "quad": clast.Quad([(-2, -2, 0), (2, -2, 0), (2, 2, 0), (-2, 2, 0)]),
    }
    found = {}
    for one, two in pairs():
        way, first, second = poses(count, two)
        scene = clast.Scene()
        a = scene.add(shapes[one], position=np.zeros((count, 3)), orientation=first, motion="fixed")
        b = scene.add(shapes[two], position=way, orientation=second, motion="fixed")
        given = {"pairs": np.stack([a, b], axis=1), "margin": np.inf}
        clast.find_contacts(scene, **given)
        spent = []
        for _ in range(3):
            began = time.process_time()
            clast.find_contacts(scene, **given)
            spent.append(time.process_time() - began)
        found[f"{one} {two}"] = min(spent) / count * 1e6
    return found


def pairs():
    """All pairs of names, walls second."""
    every = [(one, two) for k, one in enumerate(PARTICLES) for two in PARTICLES[k:]]
    return every + [(one, two) for one in PARTICLES for two in WALLS]


def matrices(q):
    """Rotation matrices (n,3,3) of unit quaternions (n,4)."""
    w, x, y, z = q.T
    rows = [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)]
    rows += [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)]
    rows += [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)]
    return np.stack(rows, axis=1).reshape(-1, 3, 3)


def coal_pair():
    """A function that makes the distance of a pair from two names; what it has no shape for raises KeyError."""
    import coal

    point, triangles = rock()
    corner, faces = coal.StdVec_Vec3s(), coal.StdVec_Triangle()
    for x in point:
        corner.append(x)
    for t in triangles:
        faces.append(coal.Triangle(*map(int, t)))
    skin = coal.BVHModelOBBRSS()
    skin.beginModel(len(triangles), len(point))
    skin.addSubModel(corner, faces)
    skin.endModel()
    shapes = {
        "sphere": coal.Sphere(RADIUS),
        "ellipsoid": coal.Ellipsoid(*AXES),
        "polyhedron": coal.Convex(corner, faces),
        "mesh": skin,
        "plane": coal.Halfspace(np.array([0.0, 0.0, 1.0]), 0.0),
        "rod": coal.Cylinder(0.5, 1.6),
    }
    request = coal.DistanceRequest()

    def run(one, two, way, first, second):
        a, b = shapes[one], shapes[two]
        result = coal.DistanceResult()
        m, n = matrices(first), matrices(second)
        began = time.process_time()
        for k in range(len(way)):
            result.clear()
            coal.distance(a, coal.Transform3s(m[k], np.zeros(3)), b, coal.Transform3s(n[k], way[k]), request, result)
        return time.process_time() - began

    return run


def mujoco_pair():
    """The same for MuJoCo."""
    import mujoco

    point, _ = rock()
    text = " ".join(f"{v:.17g}" for v in point.ravel())
    geom = {
        "sphere": f'type="sphere" size="{RADIUS}"',
        "ellipsoid": f'type="ellipsoid" size="{AXES[0]} {AXES[1]} {AXES[2]}"',
        "polyhedron": 'type="mesh" mesh="rock"',
        "plane": 'type="plane" size="9 9 1"',
        "rod": 'type="cylinder" size="0.5 0.8"',
    }

    def run(one, two, way, first, second):
        xml = f'<mujoco><asset><mesh name="rock" vertex="{text}"/></asset><worldbody>'
        xml += f"<body><geom {geom[one]}/></body><body><geom {geom[two]}/></body></worldbody></mujoco>"
        model = mujoco.MjModel.from_xml_string(xml)
        data = mujoco.MjData(model)
        mujoco.mj_forward(model, data)
        m, n = matrices(first).reshape(-1, 9), matrices(second).reshape(-1, 9)
        ends = np.zeros(6)
        began = time.process_time()
        for k in range(len(way)):
            data.geom_xmat[0], data.geom_xmat[1] = m[k], n[k]
            data.geom_xpos[0], data.geom_xpos[1] = 0.0, way[k]
            mujoco.mj_geomDistance(model, data, 0, 1, 1e9, ends)
        return time.process_time() - began

    return run


def bullet_pair():
    """The same for Bullet."""
    import pybullet

    pybullet.connect(pybullet.DIRECT)
    point, _ = rock()
    made = {
        "sphere": pybullet.createCollisionShape(pybullet.GEOM_SPHERE, radius=RADIUS),
        "polyhedron": pybullet.createCollisionShape(pybullet.GEOM_MESH, vertices=point.tolist()),
        "plane": pybullet.createCollisionShape(pybullet.GEOM_PLANE, planeNormal=[0, 0, 1]),
        "rod": pybullet.createCollisionShape(pybullet.GEOM_CYLINDER, radius=0.5, height=1.6),
    }

    def run(one, two, way, first, second):
        a, b = made[one], made[two]
        m, n = (np.roll(q, -1, axis=1).tolist() for q in (first, second))
        way = way.tolist()
        began = time.process_time()
        for k in range(len(way)):
            pybullet.getClosestPoints(
                -1, -1, 10.0, collisionShapeA=a, collisionShapeB=b, collisionShapePositionA=[0, 0, 0],
                collisionShapePositionB=way[k], collisionShapeOrientationA=m[k], collisionShapeOrientationB=n[k],
            )  # fmt: skip
        return time.process_time() - began

    return run


def theirs(name, count):
    """Microseconds of one core for each pair that a peer has."""
    run = {"coal": coal_pair, "mujoco": mujoco_pair, "bullet": bullet_pair}[name]()
    found = {}
    for one, two in pairs():
        try:
            found[f"{one} {two}"] = min(run(one, two, *poses(count, two)) for _ in range(2)) / count * 1e6
        except KeyError:
            continue  # it has no such shape
        except Exception as error:
            print(f"{name}: {one} with {two}: {error}", file=sys.stderr)
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=5000)
    parser.add_argument("--peers", type=Path, help="the Python that has the peers")
    parser.add_argument("--only-peers", action="store_true")
    parser.add_argument("--peer", choices=PEERS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.peer:
        print(json.dumps(theirs(options.peer, options.count)))
        return
    table = {"clast": ours(options.count)} if not options.only_peers else {}
    for name in PEERS if options.peers else ():
        command = [options.peers, __file__, "--peer", name, "--count", str(options.count)]
        given = os.environ | {ROCK: json.dumps([column.tolist() for column in rock()])}
        done = subprocess.run(command, capture_output=True, text=True, env=given)
        lines = done.stdout.strip().splitlines()
        table[name] = json.loads(lines[-1]) if done.returncode == 0 and lines else {}
        print(done.stderr[-2000:], file=sys.stderr)
    print("| pair | " + " | ".join(table) + " |\n|---|" + "---|" * len(table))
    for one, two in pairs():
        cells = [table[name].get(f"{one} {two}") for name in table]
        print(f"| {one}, {two} | " + " | ".join("" if c is None else f"{c:.2g}" for c in cells) + " |")


if __name__ == "__main__":
    main()

"""Depths of overlapping polyhedra by MuJoCo, coal and Bullet, the peers of `polyhedra.py`; run in their environment.

    .bench-venv/bin/python benchmarks/polyhedra_peers.py mujoco pairs.npz depths.npz

Each on one core. MuJoCo and Bullet find all contacts of a row of bodies in one call; their broad phase is in the time, on
which pairs are parted so far that it has nothing to do. coal has no such call: the loop is Python's, and what it does
without measuring anything is timed too and taken off.
"""

import sys
import time

import numpy as np

BATCH = 250  # pairs a call


def quaternions(turn):
    """Unit quaternions (n,4), w first, of rotation matrices (n,3,3)."""
    k = np.zeros((len(turn), 4, 4))
    trace = np.trace(turn, axis1=1, axis2=2)
    skew = turn - turn.transpose(0, 2, 1)
    k[:, 0, 0] = trace
    k[:, 0, 1:] = k[:, 1:, 0] = np.stack([skew[:, 2, 1], skew[:, 0, 2], skew[:, 1, 0]], 1)
    k[:, 1:, 1:] = turn + turn.transpose(0, 2, 1) - trace[:, None, None] * np.eye(3)
    return np.linalg.eigh(k)[1][:, :, -1]


def shape_of(points, make_box, make_hull):
    """A box if the points are the corners of a cube about the origin, the hull of the points otherwise."""
    half = np.abs(points).max()
    return make_box(half) if len(points) == 8 and np.allclose(np.abs(points), half) else make_hull(points)


class Pairs:
    """What all peers are given: corners of each shape, which two shapes a pair has, and where these are."""

    def __init__(self, path):
        data = np.load(path)
        self.shapes = [data[f"shape{k}"] for k in range(int(data["shapes"]))]
        self.kind, self.d, self.turn = data["kind"], data["d"], data["turn"]  # (n,2), (n,3), (n,2,3,3)
        self.count = len(self.d)
        self.far = 6.0 * max(np.linalg.norm(shape, axis=1).max() for shape in self.shapes)
        self.quaternion = np.stack([quaternions(self.turn[:, k]) for k in range(2)], 1)

    def batches(self):
        """Slices of at most BATCH pairs."""
        for first in range(0, self.count, BATCH):
            yield slice(first, min(first + BATCH, self.count))

    def places(self, batch):
        """Positions (m,2,3) of the bodies of a batch, pairs in a row along x, with nothing between them."""
        place = np.zeros((batch.stop - batch.start, 2, 3))
        place[:, 1] = self.d[batch]
        place[:, :, 0] += self.far * np.arange(len(place))[:, None]
        return place


def mujoco_depths(pairs, points="disable"):
    """points: "enable" for up to five contact points of two meshes; the deepest is then deeper than the depth."""
    import mujoco

    def mesh(points):
        return "mesh", " ".join(f"{x:.17g}" for x in points.reshape(-1))

    def box(half):
        return "box", f"{half:.17g} {half:.17g} {half:.17g}"

    forms = [shape_of(points, box, mesh) for points in pairs.shapes]
    assets = "".join(f'<mesh name="m{k}" vertex="{text}"/>' for k, (kind, text) in enumerate(forms) if kind == "mesh")

    def geom(k):
        kind, text = forms[k]
        return f'type="mesh" mesh="m{k}"' if kind == "mesh" else f'type="box" size="{text}"'

    depth, seconds = np.full(pairs.count, np.nan), 0.0
    for batch in pairs.batches():
        bodies = "".join(f"<body><freejoint/><geom {geom(k)}/></body>" for k in pairs.kind[batch].reshape(-1))
        option = '<option ccd_tolerance="1e-10" ccd_iterations="200"><flag multiccd="MANY"/></option>'.replace(
            "MANY", points
        )
        text = f"<mujoco>{option}<asset>{assets}</asset><worldbody>{bodies}</worldbody></mujoco>"
        model = mujoco.MjModel.from_xml_string(text)
        data = mujoco.MjData(model)
        data.qpos.reshape(-1, 7)[:, :3] = pairs.places(batch).reshape(-1, 3)
        data.qpos.reshape(-1, 7)[:, 3:] = pairs.quaternion[batch].reshape(-1, 4)
        mujoco.mj_kinematics(model, data)
        mujoco.mj_comPos(model, data)
        mujoco.mj_collision(model, data)
        began = time.perf_counter()
        mujoco.mj_collision(model, data)
        seconds += time.perf_counter() - began
        found = np.full(batch.stop - batch.start, np.nan)
        which = data.contact.geom
        assert (which[:, 0] // 2 == which[:, 1] // 2).all()
        np.fmin.at(found, which[:, 0] // 2, data.contact.dist)
        depth[batch] = found
    return depth, seconds, mujoco.__version__


def coal_depths(pairs):
    import coal

    def hull(points):
        corners = coal.StdVec_Vec3s()
        corners.extend([np.array(p) for p in points])
        return coal.ConvexBase.convexHull(corners, True, "Qt")

    forms = [shape_of(points, lambda half: coal.Box(2 * half, 2 * half, 2 * half), hull) for points in pairs.shapes]
    calls = []
    for k in range(pairs.count):
        first, second = coal.Transform3s(pairs.turn[k, 0], np.zeros(3)), coal.Transform3s(pairs.turn[k, 1], pairs.d[k])
        calls.append((forms[pairs.kind[k, 0]], first, forms[pairs.kind[k, 1]], second))
    request = coal.DistanceRequest()
    request.enable_signed_distance = True
    results = [coal.DistanceResult() for _ in calls]
    began = time.perf_counter()
    for call, result in zip(calls, results, strict=True):
        coal.distance(*call, request, result)
    seconds = time.perf_counter() - began
    began = time.perf_counter()
    for result in results:
        result.clear()  # a call of the same sort that does nothing
    seconds -= time.perf_counter() - began
    again = [coal.DistanceResult() for _ in calls]
    depth = [coal.distance(*call, request, result) for call, result in zip(calls, again, strict=True)]
    return np.array(depth), seconds, coal.__version__


def bullet_depths(pairs):
    import pybullet as bullet

    bullet.connect(bullet.DIRECT)
    depth, seconds = np.full(pairs.count, np.nan), 0.0
    for batch in pairs.batches():
        bullet.resetSimulation()
        forms = [
            shape_of(
                points,
                lambda half: bullet.createCollisionShape(bullet.GEOM_BOX, halfExtents=[half] * 3),
                lambda points: bullet.createCollisionShape(bullet.GEOM_MESH, vertices=points.tolist()),
            )
            for points in pairs.shapes
        ]
        place, bodies = pairs.places(batch), []
        for row in range(len(place)):
            for side in range(2):
                w, x, y, z = pairs.quaternion[batch.start + row, side]
                body = bullet.createMultiBody(
                    1.0, forms[pairs.kind[batch.start + row, side]], -1, place[row, side].tolist(), [x, y, z, w]
                )
                bullet.changeDynamics(body, -1, collisionMargin=0.0)
                bodies.append(body)
        bullet.performCollisionDetection()
        began = time.perf_counter()
        bullet.performCollisionDetection()
        seconds += time.perf_counter() - began
        number = {body: k for k, body in enumerate(bodies)}
        for point in bullet.getContactPoints():
            row = batch.start + number[point[1]] // 2
            depth[row] = np.fmin(depth[row], point[8])
    return depth, seconds, str(bullet.getAPIVersion())


def mujoco_points(pairs):
    return mujoco_depths(pairs, points="enable")


PEERS = {"mujoco": mujoco_depths, "mujoco-points": mujoco_points, "coal": coal_depths, "bullet": bullet_depths}


def main():
    depth, seconds, version = PEERS[sys.argv[1]](Pairs(sys.argv[2]))
    np.savez(sys.argv[3], depth=depth, seconds=seconds, version=version)


if __name__ == "__main__":
    main()

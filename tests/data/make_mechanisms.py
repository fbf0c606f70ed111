"""Makes mechanisms.json: one body of 1 kg, joined to the world in many ways, and its motion and reactions over two seconds.

Newton's and Euler's equations with Lagrange multipliers: each thing a joint demands is a row l.a + g.alpha = -b for the
accelerations, and the motion is integrated by an eighth-order method to eleven digits. That joints stay closed is not enforced
but checked at the end. No joint is written down as it is in clast: there are no frames here, only points and directions.
"""

import json
from pathlib import Path

import numpy as np
from scipy.integrate import solve_ivp
from scipy.spatial.transform import Rotation

rng = np.random.default_rng(25)
GRAVITY = np.array([0.0, 0.0, -9.81])
MOMENTS = np.array([0.05, 0.08, 0.11])
EVERY, ROWS = 0.1, 21


def length_of(name, t):
    """Length of an actuator, its first and its second derivative."""
    assert name == "breathing"
    return 1.0 + 0.3 * np.sin(2.0 * t), 0.6 * np.cos(2.0 * t), -1.2 * np.sin(2.0 * t)


def pull_of(spring, length, rate):
    """Pull of a spring [N]."""
    if spring.get("force") == "hardening":
        more = length - 1.0
        return 40.0 * more + 15.0 * more**3 + 2.0 * rate
    return spring["stiffness"] * (length - spring["rest"]) + spring["damping"] * rate


def across(axis):
    """Two unit vectors that stand on an axis and on each other."""
    one = np.cross(axis, np.eye(3)[np.argmin(np.abs(axis))])
    one /= np.linalg.norm(one)
    return one, np.cross(axis, one)


class Mechanism:
    def __init__(self, given):
        self.given = given
        self.start = np.array(given["position"])
        self.turn0 = Rotation.from_quat(given["orientation"], scalar_first=True).as_matrix()

    def arm(self, turn, point):
        """From the centre to a point that was at `point` in the beginning."""
        return turn @ (self.turn0.T @ (np.array(point) - self.start))

    def rows(self, t, x, turn, v, w, joint):
        """Rows (l, g, b) of one joint."""
        kind = joint["kind"]
        for name in ("at", "axis", "from_", "to", "across"):
            if name in joint:
                joint = joint | {name: np.array(joint[name])}

        def spot(point, way):  # the body's point does not move along a direction of the world
            r = self.arm(turn, point)
            return way, np.cross(r, way), np.cross(w, np.cross(w, r)) @ way

        def right_angle(mine, way):  # between a direction of the body and one of the world
            u = turn @ self.turn0.T @ mine
            return np.zeros(3), np.cross(u, way), np.cross(w, np.cross(w, u)) @ way

        if kind in ("distance", "hinge-and-ball"):
            r = self.arm(turn, joint["to"])
            d, rate = x + r - joint["from_"], v + np.cross(w, r)
            push = rate @ rate + d @ np.cross(w, np.cross(w, r))
            if "length" in joint:
                length, first, second = length_of(joint["length"], t)
                push -= first**2 + length * second
            yield d, np.cross(r, d), push
            if kind == "hinge-and-ball":
                yield spot(joint["to"], joint["axis"])
            return
        if kind == "universal":
            yield from (spot(joint["at"], way) for way in np.eye(3))
            yield right_angle(joint["across"], joint["axis"])
            return
        if kind == "ball":
            yield from (spot(joint["at"], way) for way in np.eye(3))
            return
        axis = joint["axis"]
        one, two = across(axis)
        yield from (spot(joint["at"], way) for way in ((one, two, axis) if kind == "hinge" else (one, two)))
        yield right_angle(axis, one)
        yield right_angle(axis, two)
        if kind == "slider":
            yield right_angle(one, two)

    def solve(self, t, x, q, v, w, angle):
        """Accelerations, and the wrench (6,) about its centre that each joint and the spring put on the body."""
        turn = Rotation.from_quat(q, scalar_first=True).as_matrix()
        inertia = turn * MOMENTS @ turn.T
        wrench, spring = np.zeros(6), np.zeros(6)
        if "spring" in self.given:
            made = self.given["spring"]
            r = self.arm(turn, made["to"])
            d, rate = x + r - made["from_"], v + np.cross(w, r)
            length = np.linalg.norm(d)
            force = -pull_of(made, length, rate @ d / length) * d / length
            spring = np.concatenate([force, np.cross(r, force)])
        if "torsion" in self.given:
            axis = np.array(self.given["joints"][0]["axis"])
            made = self.given["torsion"]
            spring[3:] -= (made["stiffness"] * angle + made["damping"] * (w @ axis)) * axis
        wrench = spring + np.concatenate([GRAVITY, -np.cross(w, inertia @ w)])
        parts = [list(self.rows(t, x, turn, v, w, joint)) for joint in self.given["joints"]]
        rows = [row for part in parts for row in part]
        light = np.zeros((6, 6))
        light[:3, :3], light[3:, 3:] = np.eye(3), np.linalg.inv(inertia)
        result = light @ wrench
        if rows:
            J = np.array([np.concatenate(row[:2]) for row in rows])
            pulls = np.linalg.solve(J @ light @ J.T, -(J @ result + [row[2] for row in rows]))
            result = result + light @ J.T @ pulls
            ends = np.cumsum([0, *map(len, parts)])
            joints = [J[a:b].T @ pulls[a:b] for a, b in zip(ends, ends[1:])]
        else:
            J, joints = np.zeros((0, 6)), []
        return result, joints, spring, J, light

    def motion(self, t, y):
        x, q, v, w, angle = y[:3], y[3:7], y[7:10], y[10:13], y[13]
        acceleration = self.solve(t, x, q / np.linalg.norm(q), v, w, angle)[0]
        turning = 0.5 * np.array([-w @ q[1:], *(q[0] * w + np.cross(w, q[1:]))])
        axis = self.given["joints"][0].get("axis", (0, 0, 0)) if self.given["joints"] else (0, 0, 0)
        return np.concatenate([v, turning, acceleration, [w @ np.array(axis)]])

    def run(self):
        """Motion and reactions; the first velocities are made such that they suit the joints."""
        given = self.given
        x, q = self.start, np.array(given["orientation"])
        v = np.array(given.pop("push"))
        _, _, _, J, light = self.solve(0.0, x, q, v[:3], v[3:], 0.0)
        wanted = np.zeros(len(J))
        if any("length" in joint for joint in given["joints"]):
            length, rate, _ = length_of("breathing", 0.0)
            wanted[-1] = length * rate
        if len(J):
            v = v - light @ J.T @ np.linalg.solve(J @ light @ J.T, J @ v - wanted)
        given["velocity"], given["spin"] = v[:3].tolist(), v[3:].tolist()
        times = EVERY * np.arange(ROWS)
        start = np.concatenate([x, q, v, [0.0]])
        end = solve_ivp(self.motion, (0.0, times[-1]), start, "DOP853", times, rtol=1e-11, atol=1e-12).y.T
        found = {"Pos": end[:, :3], "Quat": end[:, 3:7], "Vel": end[:, 7:10], "Avel": end[:, 10:13]}
        wrenches = []
        for t, y in zip(times, end):
            x, q = y[:3], y[3:7] / np.linalg.norm(y[3:7])
            _, joints, spring, J, _ = self.solve(t, x, q, y[7:10], y[10:13], y[13])
            rate = wanted.copy()
            if any("length" in joint for joint in given["joints"]):
                rate[-1] = np.prod(length_of("breathing", t)[:2])
            assert np.abs(J @ y[7:13] - rate).max(initial=0.0) < 1e-8, "a joint has come open"
            places = [joint.get("at", joint.get("from_")) for joint in given["joints"]]
            row = []
            for place, pull in zip(places, joints):
                # What the world gets, about the place of the joint in the world.
                row.append(np.concatenate([-pull[:3], -pull[3:] - np.cross(x - place, pull[:3])]))
            if "spring" in given:
                row.append(np.concatenate([-spring[:3], np.zeros(3)]))
            if "torsion" in given:
                row[0][3:] -= spring[3:]
            wrenches.append(row)
        for k in range(len(wrenches[0])):
            found[f"Wrench{k}"] = np.array([row[k] for row in wrenches])
        given["found"] = {name: [[float(f"{c:.10g}") for c in row] for row in rows] for name, rows in found.items()}
        return given


def unit(*x):
    return (np.array(x, float) / np.linalg.norm(x)).tolist()


def body(position, **more):
    """A body in a random turn, with velocities that joints will trim."""
    turn = np.round(rng.normal(size=4), 3)
    push = np.round(rng.normal(0.0, 1.2, 6), 3).tolist()
    return {"position": list(position), "orientation": unit(*turn), "push": push, "joints": [], **more}


PLACE, TILT = [0.2, -0.1, 0.5], unit(1.0, 2.0, 0.5)
CASES = {
    "hinge": body((1.2, 0.3, 0.9), joints=[{"kind": "hinge", "at": PLACE, "axis": TILT}]),
    "ball": body((1.0, 0.4, 0.2), joints=[{"kind": "ball", "at": PLACE}]),
    "universal": body(
        (0.7, 0.5, -0.4),
        joints=[{"kind": "universal", "at": PLACE, "axis": unit(1, 1, 0), "across": unit(1, -1, 0.0)}],
    ),
    "slider": body((0.5, 0.0, 0.0), joints=[{"kind": "slider", "at": PLACE, "axis": TILT}]),
    "cylinder": body((0.9, 0.3, 0.6), joints=[{"kind": "cylinder", "at": PLACE, "axis": TILT}]),
    "distance": body((0.8, 0.6, 0.1), joints=[{"kind": "distance", "from_": PLACE, "to": [0.7, 0.4, 0.3]}]),
    "hinge and ball": body(
        (0.8, 1.1, 0.6),
        joints=[{"kind": "hinge-and-ball", "from_": PLACE, "to": [1.1, 0.9, 0.5], "axis": unit(0, 0, 1)}],
    ),
    "torsion": body(
        (0.9, 0.2, 0.8),
        joints=[{"kind": "hinge", "at": PLACE, "axis": TILT}],
        torsion={"stiffness": 60.0, "damping": 1.5},
    ),
    "spring": body(
        (0.6, 0.5, -0.3),
        spring={"from_": PLACE, "to": [0.5, 0.4, -0.1], "stiffness": 80.0, "damping": 3.0, "rest": 0.5},
    ),
    "hardening spring": body((1.2, 0.8, 0.3), spring={"from_": PLACE, "to": [1.1, 0.5, 0.2], "force": "hardening"}),
    "actuator": body(
        (0.0, 0.0, 0.0),
        joints=[
            {"kind": "slider", "at": [0.0, 0.0, 0.0], "axis": unit(1, 0, 2)},
            {"kind": "distance", "from_": [0.0, 0.0, 0.0], "to": unit(1, 0, 2), "length": "breathing"},
        ],
    ),
}
rows = []
for name, case in CASES.items():
    found = Mechanism(case).run()
    columns = found.pop("found")
    text = ",\n".join(f"{json.dumps(key)}: {json.dumps(values)}" for key, values in columns.items())
    rows.append(f'{json.dumps(name)}: {json.dumps(found)[:-1]}, "found": {{\n{text}\n}}}}')
text = ",\n".join(rows)
Path(__file__).with_name("mechanisms.json").write_text(
    f'{{"every": {EVERY}, "cases": {{\n{text}\n}}}}\n', encoding="utf-8"
)

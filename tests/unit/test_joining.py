"""What a user says about joints is checked and kept; what is made of it is the derivative, and the solution, it should be."""

import json
import math

import numpy as np
import pytest

from clast import Complementarity, Plane, Scene, Simulation, Sphere
from clast.joints.elimination import eliminate_by_group, pattern
from clast.kernels.vec import rotation_matrices
from clast.scene.joining import KINDS

QUARTER = (math.sqrt(0.5), 0.0, math.sqrt(0.5), 0.0)


def two():
    scene = Scene()
    scene.add(Sphere(0.1), position=[(0, 0, 0), (1, 0.2, 0)], orientation=[(1, 0, 0, 0), QUARTER])
    return scene


def turned(q, v):
    return rotation_matrices(np.array([q]))[0] @ v


def test_points_and_frames_are_those_of_the_bodies():
    scene = two()
    scene.join(0, 1, "hinge", at=(0.5, 0, 0.3), axis=(0, 2, 0))
    (made,) = scene.joints
    assert made.point_a == pytest.approx((0.5, 0, 0.3))
    assert turned(QUARTER, made.point_b) + [1, 0.2, 0] == pytest.approx([0.5, 0, 0.3])
    assert turned(made.frame_a, [0, 0, 1]) == pytest.approx([0, 1, 0])
    assert turned(QUARTER, turned(made.frame_b, [0, 0, 1])) == pytest.approx([0, 1, 0])
    assert turned(QUARTER, turned(made.frame_b, [1, 0, 0])) == pytest.approx(turned(made.frame_a, [1, 0, 0]))


@pytest.mark.parametrize("axis", [(1, 0, 0), (0, 1, 0), (0, 0, 1), (-1, 0, 0), (0, 0, -1), (1, 2, -3), (-1, -1, -1)])
def test_the_frame_of_a_joint_has_its_axis(axis):
    scene = two()
    scene.join(None, 0, "slider", axis=axis)
    frame = np.array(scene.joints[0].frame_a)
    assert np.linalg.norm(frame) == pytest.approx(1.0)
    assert turned(frame, [0, 0, 1]) == pytest.approx(np.array(axis) / np.linalg.norm(axis))


def test_a_world_and_numbers_from_add_are_bodies():
    scene = Scene()
    b = scene.add(Sphere(0.1))
    assert scene.join(None, b, "ball", at=(0, 0, 1)) == 0
    assert scene.join("world", b[0], "ball", at=(0, 0, 1)) == 1
    assert [(j.a, j.b) for j in scene.joints] == [(-1, 0), (-1, 0)]


def test_joined_bodies_stay_apart_unless_asked():
    scene = two()
    scene.join(1, 0, "ball", at=(0, 0, 0))
    scene.join(None, 0, "ball", at=(0, 0, 0))
    assert scene.apart.tolist() == [[0, 1]]
    scene = two()
    scene.join(0, 1, "ball", at=(0, 0, 0), collide=True)
    assert len(scene.apart) == 0


WRONG = [
    (lambda s: s.join(0, 1, "hing", at=(0, 0, 0)), "did you mean 'hinge'"),
    (lambda s: s.join(0, 1, at=(0, 0, 0)), "either a kind"),
    (lambda s: s.join(0, 1, "ball", locked=(True,) * 6, at=(0, 0, 0)), "either a kind"),
    (lambda s: s.join(0, 0, "ball", at=(0, 0, 0)), "are the same"),
    (lambda s: s.join(None, None, "ball", at=(0, 0, 0)), "are the same"),
    (lambda s: s.join(0, 7, "ball", at=(0, 0, 0)), "b = 7: there is no such body"),
    (lambda s: s.join(0, "floor", "ball", at=(0, 0, 0)), "must be a body number"),
    (lambda s: s.join(None, 2, "ball", at=(0, 0, 0)), "neither of the world and body 2 is free"),
    (lambda s: s.join(0, 1, "ball"), "at is missing"),
    (lambda s: s.join(0, 1, "hinge", at=(0, 0, 0)), "axis is missing"),
    (lambda s: s.join(0, 1, "hinge", at=(0, 0, 0), axis=(0, 0, 0)), "axis is zero"),
    (lambda s: s.join(0, 1, "ball", at=(0, 0, 0), axis=(0, 0, 1)), "has no meaning for ball"),
    (lambda s: s.join(0, 1, "universal", at=(0, 0, 0), axis=(0, 0, 1)), "across is missing"),
    (lambda s: s.join(0, 1, "universal", at=(0, 0, 0), axis=(0, 0, 1), across=(0, 1, 1)), "at right angles"),
    (lambda s: s.join(0, 1, "distance", from_=(1, 0, 0), to=(1, 0, 0)), "the same point"),
    (lambda s: s.join(None, 1, "distance"), "the world has no centre"),
    (lambda s: s.join(0, 1, "distance", length=2.0), "length must be a function"),
    (lambda s: s.join(0, 1, "distance", length=lambda t: 2.0), "apart now"),
    (lambda s: s.join(0, 1, "distance", at=(0, 0, 0)), "has no meaning for distance"),
    (lambda s: s.join(None, 0, "hinge-and-ball", from_=(0, 0, 1), axis=(0, 0, 1)), "lies along its own axis"),
    (lambda s: s.join(0, 1, locked=(True, False), at=(0, 0, 0), axis=(0, 0, 1)), "six times"),
    (lambda s: s.join(0, 1, locked=(False,) * 6, at=(0, 0, 0), axis=(0, 0, 1)), "nothing locked"),
    (lambda s: s.join(0, 1, "ball", at=(0, 0, 0), limits=(-1, 1)), "limits are for"),
    (lambda s: s.join(0, 1, "slider", axis=(0, 0, 1), limits=(1, 2)), "low <= 0 <= high"),
    (lambda s: s.join(0, 1, "slider", axis=(0, 0, 1), limits=3), "must be (low, high)"),
    (lambda s: s.motor(0, spin=1.0), "there is no joint 0"),
    (lambda s: s.motor(s.join(0, 1, "ball", at=(0, 0, 0)), spin=1.0), "does not turn about one axis"),
    (lambda s: s.motor(s.join(0, 1, "slider", axis=(0, 0, 1)), spin=1.0), "does not turn"),
    (lambda s: s.motor(s.join(0, 1, "slider", axis=(0, 0, 1))), "exactly one of"),
    (lambda s: s.motor(s.join(0, 1, "slider", axis=(0, 0, 1)), speed=1, force=1), "got speed and force"),
    (lambda s: s.motor(s.join(0, 1, "slider", axis=(0, 0, 1)), position=1.0), "begins at 1 m"),
    (lambda s: s.motor(s.join(0, 1, "slider", axis=(0, 0, 1)), force=1.0, most=2.0), "most is for"),
    (lambda s: s.motor(s.join(0, 1, "slider", axis=(0, 0, 1), limits=(-1, 1)), speed=1.0), "give its strength"),
    (lambda s: s.motor(s.join(0, 1, "hinge", at=(0, 0, 0), axis=(0, 0, 1), limits=(-1, 1)), spin=1.0), "most="),
    (lambda s: s.spring(0, 1), "does nothing"),
    (lambda s: s.spring(0, 1, stiffness=1.0, force=lambda d, r, t: 0.0), "not both"),
    (lambda s: s.spring(0, 1, stiffness=-1.0), "0 or more"),
    (lambda s: s.torsion(s.join(0, 1, "ball", at=(0, 0, 0)), stiffness=1.0), "no axis to turn about"),
]


@pytest.mark.parametrize(("wrong", "message"), WRONG)
def test_wrong_joints_are_refused_with_a_reason(wrong, message):
    scene = two()
    scene.add(Plane(), position=(0, 0, -9))
    with pytest.raises((ValueError, TypeError)) as caught:
        wrong(scene)
    assert message in str(caught.value)


def test_joints_need_hard_contacts():
    scene = two()
    scene.spring(0, 1, stiffness=1.0)
    with pytest.raises(ValueError, match="need clast.Complementarity"):
        Simulation(scene)


def test_a_second_motor_on_one_axis_is_refused():
    scene = two()
    joint = scene.join(0, 1, "cylinder", at=(0, 0, 0), axis=(1, 0, 0))
    scene.motor(joint, spin=1.0)
    scene.motor(joint, position=lambda t: t)
    with pytest.raises(ValueError, match="already"):
        scene.motor(joint, angle=lambda t: t)


def test_limits_refuse_only_motors_that_run_into_them():
    scene = two()
    cylinder = scene.join(0, 1, "cylinder", at=(0, 0, 0), axis=(1, 0, 0), limits=(-1, 1))
    scene.motor(cylinder, spin=1.0)
    scene.motor(cylinder, speed=1.0, most=3.0)
    scene.motor(scene.join(0, 1, "hinge", at=(0, 0, 0), axis=(1, 0, 0), limits=(-1, 1)), torque=1.0)


def test_joints_and_springs_take_the_nearest_images():
    scene = Scene(world=((0, 0, 0), (1, 1, 1)), periodic=(True, False, False))
    scene.add(Sphere(0.01), position=[(0.05, 0.1, 0.5), (0.95, 0.9, 0.5)])
    scene.join(0, 1, "distance")
    scene.join(0, 1, "ball", at=(1.0, 0.5, 0.5))
    scene.spring(0, 1, stiffness=1.0)
    scene.join(None, 1, "distance", from_=(0.05, 0.9, 0.5))
    lengths = math.hypot(0.1, 0.8), 0.1
    assert (scene.joints[0].length, scene.joints[2].length) == pytest.approx(lengths)
    assert scene.springs[0].rest == pytest.approx(lengths[0])
    assert scene.joints[1].point_a == pytest.approx((-0.05, 0.4, 0.0))
    assert scene.joints[1].point_b == pytest.approx((0.05, -0.4, 0.0))
    assert scene.joints[2].point_a == pytest.approx((0.05, 0.9, 0.5))


def full():
    """A scene with everything that a file must hold."""
    scene = two()
    first = scene.join(None, 0, "hinge", at=(0, 0, 1), axis=(0, 1, 0), limits=(-1.0, math.inf))
    scene.join(0, 1, "distance", length=lambda t: math.sqrt(1.04) + t)
    scene.motor(first, spin=2.0, most=5.0)
    scene.spring(None, 1, from_=(0, 0, 2), stiffness=3.0, damping=0.1)
    scene.torsion(first, torque=lambda a, r, t: a)
    return scene


def test_a_scene_with_joints_can_be_described_and_rebuilt():
    scene = full()
    groups, attributes = scene.describe()
    functions = {("joint", 1): scene.joints[1].function, ("spring", 1): scene.springs[1].function}
    again = Scene.rebuild(groups, json.loads(json.dumps(attributes)), functions=functions)
    assert again.joints == scene.joints
    assert again.motors == scene.motors
    assert again.springs == scene.springs
    with pytest.raises(ValueError, match="joint 1 has a Python function"):
        Scene.rebuild(groups, attributes)
    with pytest.raises(ValueError, match="which had no function"):
        Scene.rebuild(groups, attributes, functions=functions | {("motor", 0): math.sin})


def test_elimination_gives_the_factor_of_a_net():
    """Cholesky by the pattern, with numbers instead of blocks, against NumPy's."""
    rng = np.random.default_rng(3)
    slots = np.array([(i, (i + 1) % 12) for i in range(12)] + [(0, 6), (2, 9), (13, 14), (12, 13)])
    free = np.arange(15) != 14
    owner = np.where(slots[:, 0] < 12, 0, 1)
    order, met = eliminate_by_group(slots, free, owner, 2)
    assert sorted(order) == list(range(16))
    start, rows, target_start, target = pattern(order, met)
    share = np.array([[bool({*a} & {*b} - {14}) for b in slots.tolist()] for a in slots.tolist()])
    matrix = np.where(share, rng.normal(size=share.shape), 0.0)
    matrix = matrix @ matrix.T * share + 9.0 * np.eye(16)
    matrix = matrix[np.ix_(order, order)]
    block = np.array([matrix[row, p] for p in range(16) for row in rows[start[p] : start[p + 1]]])
    for p in range(16):
        first, last = start[p], start[p + 1]
        block[first] = math.sqrt(block[first])
        block[first + 1 : last] /= block[first]
        pairs = [(b, d) for b in range(first + 1, last) for d in range(first + 1, b + 1)]
        for (b, d), goal in zip(pairs, target[target_start[p] : target_start[p + 1]], strict=True):
            block[goal] -= block[b] * block[d]
    exact = np.linalg.cholesky(matrix)
    found = np.zeros((16, 16))
    for p in range(16):
        found[rows[start[p] : start[p + 1]], p] = block[start[p] : start[p + 1]]
    assert found == pytest.approx(exact, abs=1e-12)


OPTIONS = {
    "weld": {},
    "ball": {"at": (0.4, 0.1, 0.2)},
    "hinge": {"at": (0.4, 0.1, 0.2), "axis": (1, 2, 0.5)},
    "slider": {"at": (0.4, 0.1, 0.2), "axis": (1, 2, 0.5)},
    "cylinder": {"at": (0.4, 0.1, 0.2), "axis": (1, 2, 0.5)},
    "universal": {"at": (0.4, 0.1, 0.2), "axis": (1, 2, 0), "across": (2, -1, 0.5)},
    "distance": {"from_": (0.1, 0.1, 0.3)},
    "hinge-and-ball": {"from_": (0.1, 0.1, 0.3), "axis": (1, 2, 0.5)},
}
ROWS = {
    "weld": 6,
    "ball": 3,
    "hinge": 5,
    "slider": 5,
    "cylinder": 4,
    "universal": 4,
    "distance": 1,
    "hinge-and-ball": 2,
}


def test_each_kind_demands_what_it_locks():
    """The Jacobian is the derivative of the violation, far from the closed pose too, and the solution obeys it."""
    assert set(OPTIONS) == set(KINDS)
    rng = np.random.default_rng(5)
    scene = Scene(gravity=(0, 0, 0))
    for k, kind in enumerate(OPTIONS):
        shift = np.array([0, 9.0 * k, 0])
        a, b = scene.add(Sphere(0.1), position=[shift, shift + [1, 0.2, 0]], orientation=[(1, 0, 0, 0), QUARTER])
        places = {n: v + shift if n in ("at", "from_") else v for n, v in OPTIONS[kind].items()}
        scene.join(a, b, kind, **places)
    scene.motor(scene.join(0, None, "cylinder", at=(3, 0, 0), axis=(0, 1, 0)), position=lambda t: 0.3 * t)
    sim = Simulation(scene, Complementarity(), dt=1e-3)
    sim.start()
    joints, state = sim.stepper.joints, sim.state
    assert joints.table.rows[joints.place].tolist() == [*(ROWS[kind] for kind in OPTIONS), 5]
    n = len(state.bodies.number)
    state.rows[:n, 0:3] += 0.05 * rng.normal(size=(n, 3))
    state.bodies.orientation[:] += 0.1 * rng.normal(size=(n, 4))
    state.bodies.orientation[:] /= np.linalg.norm(state.bodies.orientation, axis=1)[:, None]
    state.rows[:n, 4:7], state.rows[:n, 8:11] = rng.normal(size=(2, n, 3))
    joints.prepare(state.rows, state.bodies, 0.0, 1e-3)
    t, delta = joints.table, 1e-5
    expected = (joints.glance(delta) - joints.glance(-delta)) / (2.0 * delta)
    both = np.concatenate([t.velocity[t.slot[:, 0]], t.velocity[t.slot[:, 1]]], axis=1)
    found = np.einsum("jrk,jk->jr", t.jacobian, both) + t.rate
    # The angle of a motor about a crooked axis would differ in first order of the crookedness; none is here.
    assert found == pytest.approx(expected, abs=1e-8)
    assert abs(expected).max() > 0.1
    joints.solve_slots(joints.here)
    both = np.concatenate([t.velocity[t.slot[:, 0]], t.velocity[t.slot[:, 1]]], axis=1)
    assert abs(np.einsum("jrk,jk->jr", t.jacobian, both) + t.rate).max() < 1e-11

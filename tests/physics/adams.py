"""The eighteen mechanisms of ../shared/data/joints_adams as scenes: one body, joined to the world, gravity along -z.

Each case builds its scene and says which recorded columns it is compared with. The body is a box with the recorded mass of
1 kg and moments of inertia; reactions were recorded as they act on the world, at the place of the joint in the world.
"""

import math
from dataclasses import dataclass, field

import numpy as np

import clast

GRAVITY = 9.80665
QUARTER, EIGHTH = math.pi / 2, math.pi / 4
LONG = (0.04, 0.1, 0.1)  # moments of inertia about the body's own axes [kg m^2]


def turn(angle, axis):
    """Quaternion of a turn by angle [rad] about axis (3,)."""
    axis = np.array(axis, dtype=float)
    return (math.cos(angle / 2), *(math.sin(angle / 2) * axis / np.linalg.norm(axis)))


def turned(q, v):
    """v (3,) turned by the quaternion q."""
    w, u, v = q[0], np.array(q[1:]), np.array(v, dtype=float)
    return v + 2.0 * np.cross(u, np.cross(u, v) + w * v)


def start(position, orientation, moments=LONG, **options):
    """A scene with one body of 1 kg."""
    x, y, z = moments
    edges = np.sqrt([6.0 * (y + z - x), 6.0 * (z + x - y), 6.0 * (x + y - z)])
    material = clast.Material(density=1.0 / edges.prod())
    scene = clast.Scene(gravity=(0, 0, -GRAVITY))
    scene.add(clast.Polyhedron.box(*edges), position=position, orientation=orientation, material=material, **options)
    return scene


def on_world(sim, joint=0):
    """Force and torque of a joint on the world, about its place in the world; the body is b."""
    r = sim.reactions
    made = sim.scene.joints[joint]
    arm = r.point[joint] - np.array(made.point_a)
    return np.concatenate([-r.force[joint], -r.torque[joint] - np.cross(arm, r.force[joint])])


def spring_on_world(sim, spring=0):
    """Force of a spring on the world; the body is b."""
    return np.concatenate([-sim.pulls.force[spring], np.zeros(3)])


@dataclass(frozen=True)
class Case:
    """One recorded mechanism."""

    name: str  # of the files
    folder: str
    build: object  # () -> Scene
    reaction: object = on_world  # simulation -> force and torque (6,)
    files: tuple = ("Rforce", "Rtorque")  # what it is compared with
    more: tuple = field(default=())  # further (files, reaction)

    def reference(self, data, what):
        """Recorded columns (501, k) without the time."""
        path = data / "joints_adams" / self.folder / f"{self.name}_ADAMS_{what}.txt"
        return np.loadtxt(path, skiprows=3)[:, 1:]


def held(kind, at, q, arm, **options):
    """A body whose centre is at `arm` from `at`, seen in the turned frame q; hinged, sliding ... about the frame's z axis."""

    def build():
        scene = start(np.add(at, turned(q, arm)), q)
        if kind != "ball":
            options["axis"] = turned(q, (0, 0, 1))
        scene.join(None, 0, kind, at=at, **options)
        return scene

    return build


def universal(q):
    def build():
        scene = start(turned(q, (0, 0, -2)), q, (0.1, 0.1, 0.04))
        scene.join(None, 0, "universal", at=(0, 0, 0), axis=turned(q, (1, 0, 0)), across=turned(q, (0, 1, 0)))
        return scene

    return build


def distance(at, to, centre):
    def build():
        scene = start(centre, (1, 0, 0, 0))
        scene.join(None, 0, "distance", from_=at, to=to)
        return scene

    return build


def spring(at, to, centre, **options):
    def build():
        scene = start(centre, (1, 0, 0, 0))
        scene.spring(None, 0, from_=at, to=to, **options)
        return scene

    return build


def rod():
    scene = start((2, 2, 0), (1, 0, 0, 0), (0.1, 0.04, 0.1))
    scene.join(None, 0, "hinge-and-ball", from_=(0, 0, 0), to=(2, 0, 0), axis=(0, 0, 1))
    return scene


def on_body(sim):
    return np.concatenate([sim.reactions.force[0], sim.reactions.torque[0]])


def twisted():
    scene = held("hinge", (0, 0, 0), turn(-QUARTER, (1, 0, 0)), (2, 0, 0))()
    scene.torsion(0, stiffness=200.0, damping=10.0)
    return scene


def hinge_and_spring(sim):
    """The recorded torque is that of the hinge and the spring together."""
    total = on_world(sim)
    total[3:] -= sim.pulls.torque[0]
    return total


def actuator():
    scene = start((0, 0, 0), (1, 0, 0, 0), (1, 1, 1), velocity=(0, 0, 1))
    scene.join(None, 0, "slider", at=(0, 0, 0), axis=(0, 0, 1))
    scene.join(None, 0, "distance", from_=(0, 0, 0), to=(0, 0, 1), length=lambda t: 1.0 + t)
    return scene


def actuator_on_body(sim):
    return np.concatenate([sim.reactions.force[1], sim.reactions.torque[1]])


def hardening(length, rate, time):
    """The pull of a spring that gets stiffer, at rest at 2 m."""
    more = length - 2.0
    return 50.0 * more + 10.0 * abs(more) * more + 5.0 * rate


ORIGIN, FORWARD = (0, 0, 0), (2, 0, 0)
DOWN, TILTED = turn(-QUARTER, (1, 0, 0)), turn(-EIGHTH, (1, 0, 0))
SPRINGS = {"reaction": spring_on_world, "files": ("Rforce",)}
STRAIGHT = (1, 0, 0, 0)
ASKEW = (1, 2, 3)
CASES = {
    case.name: case
    for case in (
        Case("Revolute_Case01", "revolute_joint", held("hinge", ORIGIN, DOWN, FORWARD)),
        Case("Spherical_Case01", "spherical_joint", held("ball", ORIGIN, STRAIGHT, FORWARD)),
        Case("Universal_Case01", "universal_joint", universal(turn(QUARTER, (1, 0, 0)))),
        Case("Universal_Case03", "universal_joint", universal(turn(QUARTER, (1, -1, 0)))),
        Case("Prismatic_Case01", "prismatic_joint", held("slider", ORIGIN, STRAIGHT, FORWARD)),
        Case("Prismatic_Case02", "prismatic_joint", held("slider", ASKEW, TILTED, FORWARD)),
        Case("Cylindrical_Case01", "cylindrical_joint", held("cylinder", ORIGIN, STRAIGHT, FORWARD)),
        Case("Cylindrical_Case02", "cylindrical_joint", held("cylinder", ORIGIN, DOWN, FORWARD)),
        Case("Distance_Case01", "distance_constraint", distance(ORIGIN, (0, 2, 0), (0, 2, 0))),
        Case("Distance_Case02", "distance_constraint", distance(ASKEW, (1, 4, 3), (-1, 4, 3))),
        Case(
            "RevSpherical_Case01",
            "revsph_constraint",
            rod,
            files=("Rforce_Body1", "Rtorque_Body1"),
            more=((("Rforce_Body2", "Rtorque_Body2"), on_body),),
        ),
        Case("RotSpring_Case01", "rotspring_force", twisted, hinge_and_spring),
        Case(
            "TranSpring_Case01",
            "transpring_force",
            spring(ORIGIN, ORIGIN, ORIGIN, stiffness=10.0, damping=0.5),
            **SPRINGS,
        ),
        Case(
            "TranSpring_Case02",
            "transpring_force",
            spring(ORIGIN, (0, 2, 0), (0, 2, 0), stiffness=100.0, damping=5.0),
            **SPRINGS,
        ),
        Case(
            "TranSpringCB_Case01",
            "transpringcb_force",
            spring(ORIGIN, ORIGIN, ORIGIN, force=lambda length, rate, time: 10.0 * length + 0.5 * rate),
            **SPRINGS,
        ),
        Case(
            "TranSpringCB_Case02",
            "transpringcb_force",
            spring(ORIGIN, (0, 2, 0), (0, 2, 0), force=lambda length, rate, time: 100.0 * (length - 2.0) + 5.0 * rate),
            **SPRINGS,
        ),
        Case(
            "TranSpringCB_Case03",
            "transpringcb_force",
            spring(ASKEW, (1, 4, 3), (-1, 4, 3), force=hardening),
            **SPRINGS,
        ),
        Case(
            "LinActuator_Case01",
            "lin_actuator",
            actuator,
            files=("RforceP", "RtorqueP"),
            more=((("RforceA", "RtorqueA"), actuator_on_body),),
        ),
    )
}
STATES = ("Pos", "Vel", "Quat", "Avel")


def record(case, sim, steps_per_row, rows):
    """Run and return {what: (rows, k)} with the columns of the recorded files, and the largest violation of a joint."""
    found = {name: [] for name in (*STATES, *case.files, *(name for names, _ in case.more for name in names))}
    worst = 0.0
    for row in range(rows):
        if row:
            sim.step(steps_per_row)
        body = sim.bodies
        for name, column in zip(STATES, (body.position, body.velocity, body.orientation, body.spin), strict=True):
            found[name].append(column[0].copy())
        for names, reaction in ((case.files, case.reaction), *case.more):
            both = reaction(sim)
            for name, part in zip(names, (both[:3], both[3:]), strict=False):
                found[name].append(part)
        worst = max(worst, float(sim.violation.max(initial=0.0)))
    return {name: np.array(values) for name, values in found.items()}, worst


def errors(case, found, data):
    """Root of the mean square error of each quantity, the largest over its components: {what: number}."""
    result = {}
    for name, values in found.items():
        reference = case.reference(data, name)[: len(values)]
        if name == "Quat":
            # Both signs are the same orientation.
            values = values * np.where((values * reference).sum(1) < 0.0, -1.0, 1.0)[:, None]
        result[name] = float(np.sqrt(((values - reference) ** 2).mean(0)).max())
    return result

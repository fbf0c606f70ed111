"""What holds bodies together: joints by locked axes, springs with dampers, and motors, as a user says them.

A joint keeps a frame fixed to body a and the same frame fixed to body b; it locks some of the six ways in which the second
can move against the first. All inputs are checked here; `clast.joints.system` makes equations of them.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..errors import pick
from ..kernels.vec import quat_multiply, rotate, unrotate
from ..signatures import Functions, OfRate, OfTime, Vector, Whole, Wholes
from ..tables import FREE, Joints, Springs
from . import inputs
from .joint_inputs import (
    NO_LIMITS,
    WORLD,
    body_number,
    check_given,
    check_limits,
    frame_of,
    length_function,
    number_or_function,
    six_flags,
    spring_numbers,
)

NONE_LOCKED = (False,) * 6


class Kind(NamedTuple):
    """A kind of joint: what it locks or holds, and which arguments of `Scene.join` must and may be given."""

    locked: tuple  # shift along x, y, z and turn about x, y, z of the joint's frame
    needs: tuple = ()
    takes: tuple = ()
    held: tuple = (False, False)  # the distance of its two points; the height of b's above a's along z


KINDS = {
    "weld": Kind((True, True, True, True, True, True), takes=("at",)),
    "ball": Kind((True, True, True, False, False, False), needs=("at",)),
    "hinge": Kind((True, True, True, True, True, False), needs=("at", "axis")),
    "slider": Kind((True, True, False, True, True, True), needs=("axis",), takes=("at",)),
    "cylinder": Kind((True, True, False, True, True, False), needs=("at", "axis")),
    "universal": Kind((True, True, True, False, False, True), needs=("at", "axis", "across")),
    "distance": Kind(NONE_LOCKED, takes=("from_", "to", "length"), held=(True, False)),
    "hinge-and-ball": Kind(NONE_LOCKED, needs=("axis",), takes=("from_", "to"), held=(True, True)),
}
LOCKED = Kind(NONE_LOCKED, needs=("at", "axis"), takes=("across",))  # any axes, as the user says
NO_POINT, NO_TURN = (0.0, 0.0, 0.0), (1.0, 0.0, 0.0, 0.0)


@dataclass(frozen=True)
class Joint:
    """One joint; points [m] and frames are in the axes of their body, from its centre of mass."""

    kind: str  # a name of KINDS, or "locked"
    a: int  # body number; -1 is the world
    b: int
    locked: tuple = NONE_LOCKED
    point_a: tuple = NO_POINT
    point_b: tuple = NO_POINT
    frame_a: tuple = NO_TURN
    frame_b: tuple = NO_TURN
    length: float = 0.0  # [m]
    rise: float = 0.0  # [m]
    limits: tuple = NO_LIMITS
    collide: bool = False
    function: Callable | None = None  # of time: the length [m]

    @property
    def held(self) -> tuple:
        """Whether it keeps the distance of its two points, and whether the height of b's above a's: (2,) bool."""
        return KINDS.get(self.kind, LOCKED).held

    @property
    def turns(self) -> bool:
        """Whether it is free to turn about z and about no other axis."""
        return self.locked[3:] == (True, True, False)

    @property
    def slides(self) -> bool:
        """Whether it is free to slide along z and along no other axis."""
        return self.locked[:3] == (True, True, False)

    @property
    def limited(self) -> bool:
        """Whether its free coordinate has limits: the shift if it slides, else the angle."""
        return self.limits != NO_LIMITS


@dataclass(frozen=True)
class Motor:
    """What drives a joint."""

    joint: int
    what: str  # a name of MOTORS
    value: float = 0.0
    most: float = math.inf  # [N m] or [N], the strength of a motor that imposes a motion
    function: Callable | None = None  # of time, instead of the value

    @property
    def bounded(self) -> bool:
        """Whether its strength is limited."""
        return math.isfinite(self.most)

    @property
    def turning(self) -> bool:
        """Whether it turns the joint; else it shifts it."""
        return MOTORS[self.what][0]

    @property
    def imposing(self) -> bool:
        """Whether it imposes a motion; else it gives a force or torque."""
        return self.what in ("spin", "angle", "speed", "position")


MOTORS = {  # turning or shifting, unit
    "spin": (True, "rad/s"),
    "angle": (True, "rad"),
    "torque": (True, "N m"),
    "speed": (False, "m/s"),
    "position": (False, "m"),
    "force": (False, "N"),
}


@dataclass(frozen=True)
class Spring:
    """A spring with a damper, between two points or about the axis of a joint."""

    a: int
    b: int
    joint: int = -1  # whose turn it resists; -1: between the two points
    point_a: tuple = NO_POINT
    point_b: tuple = NO_POINT
    rest: float = 0.0  # [m] or [rad]
    stiffness: float = 0.0  # [N/m] or [N m/rad]
    damping: float = 0.0  # [N s/m] or [N m s/rad]
    function: Callable | None = None  # of length or angle, its rate, and time: pull [N] or torque [N m]


class Joinery:
    """The part of a scene that joins bodies."""

    periodic: tuple[bool, ...]
    world: Any  # two corners, or None
    _check_open: Callable[[str], None]

    def __init__(self) -> None:
        self.joints: list[Joint] = []
        self.motors: list[Motor] = []
        self.springs: list[Spring] = []

    if TYPE_CHECKING:

        @property
        def bodies(self) -> Any:
            """All bodies, sorted by number; `Scene` has them."""

    def join(
        self,
        a: Whole | None,
        b: Whole | None,
        kind: str | None = None,
        *,
        at: Vector | None = None,
        axis: Vector | None = None,
        across: Vector | None = None,
        locked: Sequence[bool] | None = None,
        from_: Vector | None = None,
        to: Vector | None = None,
        length: OfTime | None = None,
        limits: tuple[float, float] | None = None,
        collide: bool = False,
    ) -> int:
        """Join bodies a and b, numbers or None for the world, and return the number of the joint.

        kind: "weld"; "ball" (turns about the point `at`); "hinge" (turns about `axis` through `at`); "slider" (shifts
        along `axis`); "cylinder" (both); "universal" (turns about `axis`, fixed in a, and `across`, fixed in b, at right
        angles); "distance" (the points `from_` of a and `to` of b keep their distance); "hinge-and-ball" (the same, and
        `to` goes round `axis` through `from_`, as at the end of a rod that is hinged to a). Or instead of a kind
        locked: six times True or False, shift along x, y, z and turn about x, y, z, where z is `axis` and x `across`.
        at, from_, to (3,) [m], world axes, at the moment of joining; without `at` the centre of b (or of a, if b is the
        world), without `from_` and `to` the centres. length [m]: of "distance", a function of time, which makes it a linear
        actuator. limits (low, high): of the angle [rad] of a hinge, or the shift [m] of a slider or cylinder, both zero now.
        collide: whether a and b may touch each other.
        """
        place = f"Scene.join({kind!r})" if kind else "Scene.join"
        self._check_open(place)
        if bool(kind) == (locked is not None):
            raise ValueError(f"{place}: give either a kind ({', '.join(KINDS)}) or locked=, six times True or False")
        sort = pick("kind of joint", kind, KINDS) if kind else LOCKED._replace(locked=six_flags(place, locked))
        a, b = self._two_bodies(place, a, b)
        given = {"at": at, "axis": axis, "across": across, "from_": from_, "to": to, "length": length}
        check_given(place, kind, sort, given)
        if sort.held[0]:
            places = self._by_length(place, a, b, axis, from_, to, length)
        else:
            places = self._by_axes(place, sort, a, b, at, axis, across)
        made = Joint(kind or "locked", a, b, sort.locked, collide=bool(collide), **places)
        self.joints.append(replace(made, limits=check_limits(place, made, limits)))
        return len(self.joints) - 1

    def motor(
        self,
        joint: Whole,
        *,
        spin: OfTime | None = None,
        angle: OfTime | None = None,
        torque: OfTime | None = None,
        speed: OfTime | None = None,
        position: OfTime | None = None,
        force: OfTime | None = None,
        most: float | None = None,
    ) -> None:
        """Drive a joint: exactly one of these, a number or a function of time [s].

        Of a hinge or cylinder, on b against a about the axis: spin [rad/s], angle [rad], torque [N m]; of a slider or
        cylinder, along the axis: speed [m/s], position [m], force [N]. Angle and position are zero when the joint is made,
        and so must they be at time zero. A cylinder may have a motor of each sort. most [N m] or [N]: the strength of a
        motor that imposes a motion; without it the motor is as strong as it must be.
        """
        place = "Scene.motor"
        self._check_open(place)
        joint = self._joint_number(place, joint)
        wishes = {"spin": spin, "angle": angle, "torque": torque, "speed": speed, "position": position, "force": force}
        given = {name: value for name, value in wishes.items() if value is not None}
        if len(given) != 1:
            found = f"got {' and '.join(given)}" if given else "got none"
            raise ValueError(f"{place}: give exactly one of {', '.join(MOTORS)}; {found}")
        ((what, value),) = given.items()
        value, function = number_or_function(place, what, value)
        strength = math.inf if most is None else inputs.number(place, "most", most, above=0.0)
        motor = Motor(joint, what, value, strength, function)
        self._check_motor(place, motor)
        self.motors.append(motor)

    def spring(
        self,
        a: Whole | None,
        b: Whole | None,
        *,
        from_: Vector | None = None,
        to: Vector | None = None,
        rest: float | None = None,
        stiffness: float = 0.0,
        damping: float = 0.0,
        force: OfRate | None = None,
    ) -> int:
        """Put a spring with a damper between point `from_` of body a and point `to` of body b; returns its number.

        a, b: body numbers, or None for the world; from_, to (3,) [m], world axes, by default the centres. It pulls with
        stiffness [N/m] * (distance - rest [m]) + damping [N s/m] * (rate of distance); rest is the present distance if
        not given. force: a function (distance, rate, time) -> pull [N], positive where it draws together, instead of all these.
        """
        place = "Scene.spring"
        self._check_open(place)
        a, b = self._two_bodies(place, a, b)
        start, end = self._point(place, "from_", from_, a), self._point(place, "to", to, b)
        if rest is None:
            rest = float(np.linalg.norm(self._between(start, end)))
        numbers = spring_numbers(place, rest, stiffness, damping, force, "force", least=0.0)
        points = {"point_a": self._into(a, start), "point_b": self._into(b, end)}
        self.springs.append(Spring(a, b, **points, **numbers))
        return len(self.springs) - 1

    def torsion(
        self,
        joint: Whole,
        *,
        rest: float = 0.0,
        stiffness: float = 0.0,
        damping: float = 0.0,
        torque: OfRate | None = None,
    ) -> int:
        """Put a rotational spring with a damper on a hinge or cylinder; returns its number among the springs.

        It turns b back with stiffness [N m/rad] * (angle - rest [rad]) + damping [N m s/rad] * (rate of angle); the angle
        is zero when the joint is made. torque: a function (angle, rate, time) -> torque [N m] that turns back, instead.
        """
        place = "Scene.torsion"
        self._check_open(place)
        joint = self._joint_number(place, joint)
        made = self.joints[joint]
        if not made.turns:
            raise ValueError(f"{place}: joint {joint} is a {made.kind}, which has no axis to turn about; use a hinge")
        numbers = spring_numbers(place, rest, stiffness, damping, torque, "torque", least=-math.inf)
        self.springs.append(Spring(made.a, made.b, joint, **numbers))
        return len(self.springs) - 1

    @property
    def apart(self) -> Wholes:
        """Pairs of body numbers (k,2), the lower first, that are joined and must not collide."""
        pairs = {(min(j.a, j.b), max(j.a, j.b)) for j in self.joints if not j.collide and min(j.a, j.b) >= 0}
        return np.array(sorted(pairs), dtype=np.int64).reshape(-1, 2)

    # Bodies, points and frames.

    def _two_bodies(self, place: str, a: Whole | None, b: Whole | None) -> tuple[int, int]:
        """The numbers of two bodies of which at least one can move."""
        bodies = self.bodies
        a, b = (body_number(place, name, value, bodies.number) for name, value in (("a", a), ("b", b)))
        if a == b:
            raise ValueError(f"{place}: a and b are the same ({'the world' if a == WORLD else f'body {a}'})")
        if not any(n != WORLD and bodies.motion[np.searchsorted(bodies.number, n)] == FREE for n in (a, b)):
            told = " and ".join("the world" if n == WORLD else f"body {n}" for n in (a, b))
            raise ValueError(f"{place}: neither of {told} is free to move; join at least one free body")
        return a, b

    def _joint_number(self, place: str, joint: Whole) -> int:
        number = inputs.whole(place, "joint", joint)
        if number >= len(self.joints):
            raise ValueError(
                f"{place}: there is no joint {number}; joints are counted from 0, there are {len(self.joints)}"
            )
        return number

    def _pose(self, number):
        """Centre and orientation of a body, as tuples."""
        if number == WORLD:
            return NO_POINT, NO_TURN
        bodies = self.bodies
        row = int(np.searchsorted(bodies.number, number))
        return tuple(bodies.position[row].tolist()), tuple(bodies.orientation[row].tolist())

    def _into(self, number, point):
        """A point of the world [m] in the axes of a body, from its centre."""
        centre, turn = self._pose(number)
        # The world stands still and has no images.
        arm = point if number == WORLD else self._between(centre, point)
        return tuple(plain(unrotate)(turn, tuple(float(x) for x in arm)))

    def _between(self, start, end):
        """The way (3,) [m] from a point to the nearest image of another, which is the one that joints in motion take."""
        way = np.subtract(end, start, dtype=float)
        if any(self.periodic):
            length = np.where(self.periodic, np.subtract(self.world[1], self.world[0]), np.inf)
            way -= np.where(self.periodic, length, 0.0) * np.round(way / length)
        return way

    def _point(self, place, name, value, number):
        """A point of the world [m]; by default the centre of the body."""
        if value is not None:
            return tuple(inputs.vector(place, name, value).tolist())
        if number == WORLD:
            raise ValueError(f"{place}: {name} is missing; the world has no centre, say where as {name}=(x, y, z)")
        return self._pose(number)[0]

    def _frames(self, a, b, point, point_b, frame):
        """Points and frames of a joint in the axes of its two bodies."""
        places = {"point_a": self._into(a, point), "point_b": self._into(b, point_b)}
        for name, number in (("frame_a", a), ("frame_b", b)):
            w, x, y, z = self._pose(number)[1]
            places[name] = tuple(plain(quat_multiply)((w, -x, -y, -z), frame))
        return places

    def _by_axes(self, place, sort, a, b, at, axis, across):
        """Points and frames of a joint that locks axes."""
        point = self._point(place, "at", at, a if b == WORLD else b)
        # Where both must be given, they are the two pins of a cross.
        frame = frame_of(place, (0, 0, 1) if axis is None else axis, across, "across" in sort.needs)
        return self._frames(a, b, point, point, frame)

    def _by_length(self, place, a, b, axis, from_, to, length):
        """Points, frames and lengths of a joint that keeps a distance, with an axis also a height along it."""
        start, end = self._point(place, "from_", from_, a), self._point(place, "to", to, b)
        d = self._between(start, end)
        distance = float(np.linalg.norm(d))
        if distance == 0.0:
            raise ValueError(f"{place}: from_ and to are the same point {list(start)}; a distance needs two")
        rise, frame, function = 0.0, NO_TURN, None
        if axis is not None:
            frame = frame_of(place, axis, None, False)
            rise = float(np.dot(plain(rotate)(frame, (0.0, 0.0, 1.0)), d))
            if distance**2 - rise**2 < 1e-12 * distance**2:
                raise ValueError(f"{place}: the rod from {list(start)} to {list(end)} lies along its own axis {axis}")
        elif length is not None:
            function = length_function(place, length, distance)
        return self._frames(a, b, start, end, frame) | {"length": distance, "rise": rise, "function": function}

    def _check_motor(self, place, motor):
        made = self.joints[motor.joint]
        if not (made.turns if motor.turning else made.slides):
            way = "turn" if motor.turning else "slide"
            hint = " (a linear actuator is a distance with length=)" if made.held[0] else ""
            raise ValueError(f"{place}: joint {motor.joint} is a {made.kind} and does not {way} about one axis{hint}")
        if made.limited and motor.turning != made.slides and motor.imposing and not motor.bounded:
            raise ValueError(
                f"{place}: joint {motor.joint} has limits {made.limits}, and a motor of {motor.what} without bound would "
                "run through them; give its strength, most=, or leave out the limits"
            )
        if motor.bounded and not motor.imposing:
            raise ValueError(f"{place}: most is for motors that impose a motion; {motor.what} is a strength itself")
        for other in self.motors:
            if other.joint == motor.joint and other.turning == motor.turning and (other.imposing or motor.imposing):
                raise ValueError(f"{place}: joint {motor.joint} has a motor of {other.what} already; one is enough")
        if motor.what in ("angle", "position"):
            first = motor.value if motor.function is None else float(motor.function(0.0))
            if not abs(first) < 1e-6:
                unit = MOTORS[motor.what][1]
                raise ValueError(
                    f"{place}: {motor.what} begins at {first:g} {unit}, but the joint stands at 0 {unit}; let it begin there"
                )

    # Tables and files.

    def joint_tables(self) -> tuple[Joints, Springs]:
        """Joints and Springs of the scene as tables."""
        joints, springs = self.joints, self.springs
        imposed = {(m.joint, 0 if m.turning else 1) for m in self.motors if m.imposing and not m.bounded}
        table = Joints(
            body=np.array([(j.a, j.b) for j in joints], dtype=np.int64).reshape(-1, 2),
            held=np.array([j.held for j in joints], dtype=bool).reshape(-1, 2),
            locked=np.array([j.locked for j in joints], dtype=bool).reshape(-1, 6),
            point=np.array([(j.point_a, j.point_b) for j in joints], dtype=float).reshape(-1, 2, 3),
            frame=np.array([(j.frame_a, j.frame_b) for j in joints], dtype=float).reshape(-1, 2, 4),
            length=np.array([j.length for j in joints], dtype=float),
            rise=np.array([j.rise for j in joints], dtype=float),
            limits=np.array([j.limits for j in joints], dtype=float).reshape(-1, 2),
            motor=np.array([[(k, i) in imposed for i in (0, 1)] for k in range(len(joints))], dtype=bool).reshape(
                -1, 2
            ),
        )
        return table, Springs(
            body=np.array([(s.a, s.b) for s in springs], dtype=np.int64).reshape(-1, 2),
            joint=np.array([s.joint for s in springs], dtype=np.int32),
            point=np.array([(s.point_a, s.point_b) for s in springs], dtype=float).reshape(-1, 2, 3),
            rest=np.array([s.rest for s in springs], dtype=float),
            stiffness=np.array([s.stiffness for s in springs], dtype=float),
            damping=np.array([s.damping for s in springs], dtype=float),
        )

    def describe_joints(self) -> dict[str, list[dict[str, Any]]]:
        """Joints, motors and springs as dicts of lists that fit into JSON; functions are marked, not kept."""
        lists: dict[str, list[Any]] = {"joints": self.joints, "motors": self.motors, "springs": self.springs}
        return {name: [marked(one) for one in made] for name, made in lists.items()}

    def rebuild_joints(self, described: Mapping[str, Any], functions: Functions | None) -> None:
        """Take up what `describe_joints` described. functions: {("joint" | "motor" | "spring", number): function}."""
        functions = dict(functions or {})
        for name, kind in (("joints", Joint), ("motors", Motor), ("springs", Spring)):
            made = [rebuilt(kind, name[:-1], k, values, functions) for k, values in enumerate(described.get(name, []))]
            setattr(self, name, made)
        if functions:
            raise ValueError(f"Scene.rebuild: functions names {sorted(functions)}, which had no function")


def marked(made):
    """A joint, motor or spring as a dict; what is infinite is None, which JSON knows."""
    values = asdict(replace(made, function=None))
    values["function"] = None if made.function is None else "function"
    if "limits" in values:
        values["limits"] = [None if math.isinf(limit) else limit for limit in made.limits]
    if "most" in values:
        values["most"] = made.most if made.bounded else None
    return values


def rebuilt(kind, name, number, values, functions):
    """What `marked` made a dict of."""
    plain_values = {k: tuple(v) if isinstance(v, list | tuple) else v for k, v in values.items()}
    plain_values = {field.name: plain_values[field.name] for field in fields(kind)}
    if "limits" in plain_values:
        low, high = plain_values["limits"]
        plain_values["limits"] = (-math.inf if low is None else low, math.inf if high is None else high)
    if plain_values.get("most", 0.0) is None:
        plain_values["most"] = math.inf
    if plain_values["function"] is not None:
        if (name, number) not in functions:
            raise ValueError(
                f"Scene.rebuild: {name} {number} has a Python function, which a file cannot hold; "
                f"pass it again with functions={{({name!r}, {number}): function}}"
            )
        plain_values["function"] = functions.pop((name, number))
    return kind(**plain_values)


def plain(function):
    """The Python source of a function for kernels; compiling it for a few calls would take longer than they do."""
    return getattr(function, "py_func", function)

"""How driven bodies move: in closed form of the time, so that nothing accumulates, or by the user's own function.

These functions run once per step and driven body; tuples and `math` are an order of magnitude cheaper here
than arrays of three numbers.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

ZERO = (0.0, 0.0, 0.0)


@dataclass(frozen=True)
class Oscillation:
    """A harmonic displacement amplitude * (sin(2 pi frequency t + phase) - sin(phase)), zero at t = 0.

    amplitude (3,) [m]; frequency [Hz], above 0; phase [rad].
    """

    amplitude: tuple[float, float, float]
    frequency: float
    phase: float = 0.0

    def __post_init__(self):
        object.__setattr__(self, "amplitude", triple("Oscillation: amplitude", self.amplitude))
        for name in ("frequency", "phase"):
            value = getattr(self, name)
            try:
                number = float(value)
            except (TypeError, ValueError):
                raise TypeError(f"Oscillation: {name} must be a number, got {value!r}") from None
            if not math.isfinite(number) or (name == "frequency" and number <= 0.0):
                limit = "finite and above 0 Hz" if name == "frequency" else "finite"
                raise ValueError(f"Oscillation: {name} must be {limit}, got {value!r}")
            object.__setattr__(self, name, number)


class Drive(NamedTuple):
    """The prescribed motion of one body; the pose is that at time zero.

    The body turns with `spin` about `pivot`, which moves with `velocity`; the oscillation is added to that.
    With a function t -> (velocity, spin) nothing else counts, and the simulation calls `advance`.
    """

    position: tuple  # (3,) [m]
    orientation: tuple  # (4,) unit quaternion
    velocity: tuple = ZERO  # (3,) [m/s]
    spin: tuple = ZERO  # (3,) [rad/s], world axes
    pivot: tuple = ZERO  # (3,) [m]
    amplitude: tuple = ZERO  # (3,) [m]
    frequency: float = 0.0  # [Hz]
    phase: float = 0.0  # [rad]
    function: Callable | None = None


def triple(place, value):
    """Three finite floats as a tuple; otherwise an error that names `place`."""
    try:
        x, y, z = value
        numbers = (float(x), float(y), float(z))
    except (TypeError, ValueError):
        raise TypeError(f"{place} must be three numbers, got {value!r}") from None
    if not (math.isfinite(numbers[0]) and math.isfinite(numbers[1]) and math.isfinite(numbers[2])):
        raise ValueError(f"{place} must be three finite numbers, got {value!r}")
    return numbers


def pose(drive, time):
    """Position, orientation, velocity and spin of a driven body at `time` [s], as tuples."""
    if drive.function is not None:
        raise ValueError("a body driven by a function has no closed form; call `advance` step by step")
    px, py, pz = drive.position
    vx, vy, vz = drive.velocity
    x, y, z = px + vx * time, py + vy * time, pz + vz * time
    orientation = drive.orientation
    if drive.spin != ZERO:
        wx, wy, wz = drive.spin
        cx, cy, cz = drive.pivot
        turn = _turn(drive.spin, time)
        ax, ay, az = _rotate(turn, (px - cx, py - cy, pz - cz))
        x, y, z = cx + vx * time + ax, cy + vy * time + ay, cz + vz * time + az
        vx, vy, vz = vx + wy * az - wz * ay, vy + wz * ax - wx * az, vz + wx * ay - wy * ax
        orientation = _product(turn, orientation)
    if drive.frequency:
        ax, ay, az = drive.amplitude
        omega = 2.0 * math.pi * drive.frequency
        phase = omega * time + drive.phase
        shift, rate = math.sin(phase) - math.sin(drive.phase), omega * math.cos(phase)
        x, y, z = x + ax * shift, y + ay * shift, z + az * shift
        vx, vy, vz = vx + ax * rate, vy + ay * rate, vz + az * rate
    return (x, y, z), orientation, (vx, vy, vz), drive.spin


def advance(drive, position, orientation, time, dt):
    """One midpoint step of a body driven by a function: the pose at `time` becomes that at `time + dt`.

    Returns position, orientation, velocity and spin at `time + dt`, as tuples.
    """
    (vx, vy, vz), spin = rates(drive.function, time + 0.5 * dt)
    x, y, z = position
    w, i, j, k = _product(_turn(spin, dt), orientation)
    size = 1.0 / math.sqrt(w * w + i * i + j * j + k * k)
    velocity, spin = rates(drive.function, time + dt)
    return (x + vx * dt, y + vy * dt, z + vz * dt), (w * size, i * size, j * size, k * size), velocity, spin


def rates(function, time):
    """Velocity and spin that a user's drive function gives at `time`, checked, as tuples."""
    result = function(time)
    try:
        velocity, spin = result
    except (TypeError, ValueError):
        raise TypeError(f"drive function at t = {time:g} s must return (velocity, spin), got {result!r}") from None
    place = f"drive function at t = {time:g} s:"
    return triple(f"{place} velocity", velocity), triple(f"{place} spin", spin)


def _turn(spin, time):
    """Quaternion of the rotation by spin * time."""
    x, y, z = spin
    rate = math.sqrt(x * x + y * y + z * z)
    half = 0.5 * rate * time
    factor = math.sin(half) / rate if rate > 0.0 else 0.0
    return (math.cos(half), factor * x, factor * y, factor * z)


def _product(p, q):
    """Quaternion product: first turn by q, then by p."""
    a, b, c, d = p
    w, x, y, z = q
    return (
        a * w - b * x - c * y - d * z,
        a * x + b * w + c * z - d * y,
        a * y - b * z + c * w + d * x,
        a * z + b * y - c * x + d * w,
    )


def _rotate(q, v):
    """The vector v turned by the unit quaternion q."""
    w, a, b, c = q
    x, y, z = v
    ux, uy, uz = 2.0 * (b * z - c * y), 2.0 * (c * x - a * z), 2.0 * (a * y - b * x)
    return (x + w * ux + b * uz - c * uy, y + w * uy + c * ux - a * uz, z + w * uz + a * uy - b * ux)


def describe_drives(drives):
    """Drives by body number as plain values; of a function a file holds only that there was one."""
    marker = {True: None, False: "function"}
    return {str(k): drive._asdict() | {"function": marker[drive.function is None]} for k, drive in drives.items()}


def rebuild_drives(described, functions=None):
    """The drives by body number from what `describe_drives` gave; functions: {body number: function} of those that had one."""
    drives, left = {}, dict(functions or {})
    for key, values in described.items():
        number, function = int(key), None
        if values["function"] is not None:
            if number not in left:
                raise ValueError(
                    f"Scene.rebuild: body {number} was driven by a Python function, which a file cannot hold; "
                    f"pass it again with drives={{{number}: function}}"
                )
            function = left.pop(number)
        plain: dict[str, Any] = {k: tuple(v) if isinstance(v, list | tuple) else v for k, v in values.items()}
        drives[number] = Drive(**(plain | {"function": function}))
    if left:
        raise ValueError(f"Scene.rebuild: drives names bodies {sorted(left)}, which no function drove")
    return drives

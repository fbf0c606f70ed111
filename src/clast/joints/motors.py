"""What linear actuators and motors impose on their joints: a length, an angle or a shift, as functions of time."""

import math

import numpy as np

DELTA = 1e-3  # part of a step over which the rate of a user's function is taken


class Goals:
    """The imposed motions of a scene's joints."""

    def __init__(self, scene):
        self.lengths = [(k, joint.function) for k, joint in enumerate(scene.joints) if joint.function is not None]
        self.imposing = [(k, motor) for k, motor in enumerate(scene.motors) if motor.imposing and not motor.bounded]
        self.bounded = [(k, motor) for k, motor in enumerate(scene.motors) if motor.imposing and motor.bounded]
        self.pushing = [motor for motor in scene.motors if not motor.imposing]
        self.travelled = np.zeros(len(scene.motors))  # what motors of spin and speed have gone so far

    def write(self, t, place, time, ahead, dt):
        """Write goals and their rates at time + ahead into the Assembly t; place (j,): where each joint stands in it."""
        delta, when = DELTA * dt, time + ahead
        for k, function in self.lengths:
            t.goal[place[k], 0], t.goal_rate[place[k], 0] = value_and_rate(function, when, delta)
        for k, motor in self.imposing:
            j, column = place[motor.joint], 1 if motor.turning else 2
            t.goal[j, column], t.goal_rate[j, column] = self.target(k, motor, time, ahead, delta)

    def target(self, k, motor, time, ahead, delta):
        """Where motor k wants its joint to be at time + ahead, and the rate."""
        when = time + ahead
        if motor.what in ("spin", "speed"):
            rate = motor.value if motor.function is None else ask(motor.function, when)
            return self.gone(k, motor, time, ahead), rate
        if motor.function is None:
            return motor.value, 0.0
        return value_and_rate(motor.function, when, delta)

    def gone(self, k, motor, time, ahead):
        """What a motor of spin or speed has gone at time + ahead: closed form, or one step by the midpoint rule."""
        if motor.function is None:
            return motor.value * (time + ahead)
        return self.travelled[k] + ahead * ask(motor.function, time + 0.5 * ahead)

    def move_on(self, chosen, time, dt):
        """A step of length dt is done; chosen (j,): mask of joints, in the order of adding, that took it."""
        for k, motor in self.imposing:
            if motor.what in ("spin", "speed") and chosen[motor.joint]:
                self.travelled[k] = self.gone(k, motor, time, dt)


def ask(function, time):
    """What a user's function of time [s] gives, a number."""
    value = float(function(time))
    if not math.isfinite(value):
        raise ValueError(f"a motor's or actuator's function gave {value} at t = {time:g} s")
    return value


def value_and_rate(function, time, delta):
    """A user's function of time, and its rate by differences."""
    return ask(function, time), (ask(function, time + delta) - ask(function, time - delta)) / (2.0 * delta)

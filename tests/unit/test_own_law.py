"""A law of the user's own: a mistake in it is one line when it is handed over, with the line of the law."""

import math

import pytest

import clast


@clast.func
def fine(touch, mix, dt):
    return 1e3 * touch.overlap, (0.0, 0.0, 0.0), touch.slip


@clast.func
def typo(touch, mix, dt):
    k = 2.0 * touch.overlap
    return k * touch.overlp, touch.slip, touch.slip


@clast.func
def unknown(touch, mix, dt):
    return matth.sqrt(touch.overlap), touch.slip, touch.slip  # noqa: F821


@clast.func
def two(touch, mix):
    return 1.0, touch.slip, touch.slip


@clast.func
def number(touch, mix, dt):
    return 1.0


@clast.func
def listed(touch, mix, dt):
    return 1.0, (0.0, 0.0), touch.slip


@clast.func
def text(touch, mix, dt):
    return touch.overlap + "N", touch.slip, touch.slip


def unmarked(touch, mix, dt):
    return math.sqrt(touch.overlap), touch.slip, touch.slip


@clast.func
def calls(touch, mix, dt):
    return unmarked(touch, mix, dt)


@clast.func
def deep(x):
    return x.foo


@clast.func
def nested(touch, mix, dt):
    return deep(touch.overlap), touch.slip, touch.slip


def line_of(function, further):
    return f"test_own_law.py, line {function.py_func.__code__.co_firstlineno + further}"


WRONG = {
    "typo": (typo, ["'typo'", line_of(typo, 3), "Unknown attribute 'overlp'; Touch has overlap, rate, normal"]),
    "unknown": (unknown, [line_of(unknown, 2), "name 'matth' is not defined"]),
    "two": (two, [line_of(two, 0), "takes ['touch', 'mix']; a law takes (touch, mix, dt)"]),
    "number": (number, [line_of(number, 0), "returns number; return normal force [N], (x, y, z) shear"]),
    "listed": (listed, [line_of(listed, 0), "return normal force [N], (x, y, z) shear"]),
    "text": (text, [line_of(text, 2), "it cannot compute add("]),
    "unmarked": (unmarked, ["'unmarked'", "write @clast.func above its definition"]),
    "calls": (calls, [line_of(calls, 2), "it uses 'unmarked', which is no number and not marked with clast.func"]),
    "nested": (nested, [line_of(deep, 2), "Unknown attribute 'foo'"]),
    "object": (print, ["'print'", "write @clast.func above its definition"]),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_mistake_in_a_law_is_one_line(name):
    law, words = WRONG[name]
    with pytest.raises((ValueError, TypeError)) as caught:
        clast.DEM(law=law)
    told = str(caught.value)
    assert "\n" not in told and len(told) < 350, told
    for word in words:
        assert word in told


def test_a_law_without_mistakes_is_taken():
    assert clast.DEM(law=fine).law is fine

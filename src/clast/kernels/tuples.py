"""Rows of arrays as tuples of as many numbers as a law asks for, and back: functions made from text, because the compiler must know how many."""

import functools
from collections import namedtuple

from .backend import func, made_by


@functools.cache
def record(title, names):
    """A class of named tuples with these names."""
    return made_by(namedtuple(title, names, module=__name__), record, title, names)


@functools.cache
def reader(make, count, first=0, lanes=False):
    """A function (array, k) -> make(...) of `count` numbers of row k from column `first` on; lanes: of column k from row `first` on.

    make: a class of named tuples, or None for a plain tuple.
    """
    places = [f"array[{first + i}, k]" if lanes else f"array[k, {first + i}]" for i in range(count)]
    inside = ", ".join(places)
    told = f"make({inside})" if make is not None else f"({inside}{',' if count else ''})"
    return _made(reader, (make, count, first, lanes), f"def read(array, k):\n    return {told}\n", make=make)


@functools.cache
def writer(count, first=0, lanes=False):
    """A function (array, k, numbers) that writes `count` numbers where `reader` finds them."""
    lines = [
        f"    {f'array[{first + i}, k]' if lanes else f'array[k, {first + i}]'} = numbers[{i}]\n" for i in range(count)
    ]
    text = "def write(array, k, numbers):\n" + ("".join(lines) or "    pass\n")
    return _made(writer, (count, first, lanes), text)


@functools.cache
def filler(make, zeros):
    """A function (numbers) -> make(...) of as many zeros and then these numbers, for a class of named tuples."""
    given = ["0.0"] * zeros + [f"numbers[{i}]" for i in range(len(make._fields) - zeros)]
    text = f"def fill(numbers):\n    return make({', '.join(given)})\n"
    return _made(filler, (make, zeros), text, make=make)


def _made(maker, arguments, text, **scope):
    scope = {"__name__": __name__, **scope}
    exec(compile(text, __file__, "exec"), scope)  # a tuple of a length that is given cannot be written down otherwise
    return made_by(func(scope[text[4 : text.index("(")]]), maker, *arguments)

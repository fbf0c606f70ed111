"""A law of the user's own, looked at when it is handed over: what is wrong with it is one line, with the line of the law."""

import inspect
import re
from pathlib import Path

import numba
from numba.core import errors as compiler
from numba.core import types

from ..kernels import backend
from .laws import Mix, Touch

RETURNS = "return normal force [N], (x, y, z) shear force on b [N], (x, y, z) slip [m]"


def check(law):
    """Raise a TypeError or ValueError of one line unless the function can be compiled as a law."""
    name = getattr(law, "__name__", type(law).__name__)
    if backend.SIMULATED:  # all is plain Python there
        return
    if not isinstance(law, backend.Inner):
        raise TypeError(f"DEM: the law {name!r} must be compiled into kernels; write @clast.func above its definition")
    plain = law.py_func
    given = list(inspect.signature(plain).parameters)
    if len(given) != 3:
        raise TypeError(f"DEM: the law {_place(name, plain)} takes {given}; a law takes (touch, mix, dt)")
    three = (0.0, 0.0, 1.0)
    kinds = (numba.typeof(Touch(0.1, 0.1, three, three, three, 1.0, 1.0)), numba.typeof(Mix(*[1.0] * 7)), types.float64)
    try:
        law.compile(kinds)
    except (compiler.NumbaError, TypeError) as fault:
        raise ValueError(f"DEM: the law {_place(name, plain, fault)} cannot be compiled: {_reason(fault)}") from None
    found = law.overloads[kinds].signature.return_type
    parts = list(found) if isinstance(found, types.BaseTuple) else []
    fine = len(parts) == 3 and _number(parts[0]) and all(_triple(part) for part in parts[1:])
    if not fine:
        raise ValueError(f"DEM: the law {_place(name, plain)} returns {_short(found)}; {RETURNS}")


def _number(kind):
    return isinstance(kind, types.Float | types.Integer)


def _triple(kind):
    return isinstance(kind, types.BaseTuple) and len(kind) == 3 and all(map(_number, kind))


def _short(kind):
    return str(kind).replace("UniTuple(float64 x 3)", "(x, y, z)").replace("float64", "number")


def _place(name, plain, fault=None):
    """Name, file and line of the law, or the line in it that the compiler speaks of."""
    lines = re.findall(r", line (\d+):|\((\d+)\)\s*$", str(fault), re.MULTILINE) if fault is not None else []
    line = next((int(a or b) for a, b in lines), None)
    if line is None:
        line = getattr(getattr(fault, "loc", None), "line", None) or plain.__code__.co_firstlineno
    return f"{name!r} ({Path(plain.__code__.co_filename).name}, line {line})"


def _reason(fault):
    """What the compiler says in the end, without what it went through."""
    lines = [line.strip() for line in str(fault).splitlines()]
    lines = [line for line in lines if line and not line.startswith("Failed in nopython")]
    if not lines:
        return type(fault).__name__
    asked = next((line for line in lines if line.startswith(">>>")), "")
    told = "it cannot compute" if asked and lines[0].startswith("No implementation") else lines[0]
    if told.startswith("Untyped global name"):
        return f"{told.split(':')[0].replace('Untyped global name', 'it uses')}, which is no number and not marked with clast.func"
    told = re.sub(r" of type (Touch|Mix)\(.*", lambda found: f"; {found[1]} has {', '.join(_fields(found[1]))}", told)
    told = re.sub(r"\.? ?Raised from .*", "", told)
    return f"{told} {asked[3:].strip()}".strip()[:300]


def _fields(name):
    return {"Touch": Touch, "Mix": Mix}[name]._fields

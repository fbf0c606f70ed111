"""A law of the user's own, looked at when it is handed over: what is wrong with it is one line, with the line of the law."""

import dis
import functools
import inspect
import math
import re
import threading
import traceback
import types as types_of
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numba
import numpy as np
from numba.core import types

from ..errors import is_number
from ..kernels import backend
from .laws import Law, Mix, Touch, hertz_damping

TUPLE: Any = types.BaseTuple  # its stub does not know that one can go through its types
RETURNS = "return normal force [N], (x, y, z) shear force on b [N], (x, y, z) slip [m]"


def law(
    function: Callable | None = None,
    *,
    keeps: Sequence[str] = (),
    needs: Sequence[str] | None = None,
    reach: float = 0.0,
    stiffness: float | Callable | None = None,
    energy: Callable | None = None,
) -> Any:
    """Mark a contact law of your own: `@clast.law(keeps=("slip", "peak"))`.

    A law is a function (touch, mix, dt) of one contact that takes numbers and returns numbers: normal force [N], shear force on b (3,)
    [N], slip (3,) [m] to remember, and a tuple of all the other numbers that it keeps, if there are any.
    keeps: names of the numbers that it keeps from step to step; the slip, which every law has, may be among them. `touch.kept` has the
    others by their names, zero where a contact begins.
    needs: names of what it reads of the two materials in `mix`: young, shear (the effective moduli E*, G*), friction, restitution, rolling, stiffness,
    damping, ratio, ..., and numbers of your own, which a material has by Material(numbers={"name": value}); None for `clast.dem.laws.Mix`. Rolling
    friction of materials acts where rolling is among them.
    reach [m]: the largest gap at which it acts; touch.overlap is then as low as minus that.
    stiffness: the largest that a contact can have [N/m], by which dt="auto" is chosen: a number, or a function (mix, reduced radius [m]) of arrays;
    None: the law is asked, see `steepest`. energy: a function (overlap, length of the slip, reduced radius, mix, kept) of arrays -> elastic energy [J];
    None: it counts as holding none.
    """
    if function is None:
        given: dict[str, Any] = {
            "keeps": keeps,
            "needs": needs,
            "reach": reach,
            "stiffness": stiffness,
            "energy": energy,
        }
        return functools.partial(law, **given)
    name = getattr(function, "__name__", type(function).__name__)
    if not isinstance(function, backend.Inner | types_of.FunctionType):
        raise TypeError(f"law: {name!r} is no function; write @clast.law above the def of one")
    for what, names in (("keeps", keeps), ("needs", needs or ())):
        listed = isinstance(names, Sequence) and not isinstance(names, str)
        if not listed or not all(isinstance(n, str) and n.isidentifier() and n[0] != "_" for n in names):
            raise TypeError(f'law: {what} must be names, {what}=("peak",) say, got {names!r}')
        if len(set(names)) < len(names):
            raise ValueError(f"law: {what} = {names} has a name twice")
    if not (is_number(reach) and 0.0 <= reach < math.inf):
        raise ValueError(f"law: reach = {reach!r} must be 0 m or more")
    if not (stiffness is None or callable(stiffness) or (is_number(stiffness) and 0.0 < stiffness < math.inf)):
        raise TypeError(
            f"law: {name!r} has stiffness = {stiffness!r}, which must be a number above 0 N/m or a function (mix, radius)"
        )
    if not (energy is None or callable(energy)):
        raise TypeError(
            f"law: {name!r} has energy = {energy!r}, which must be a function (overlap, length of the slip, radius, mix, kept)"
        )
    marked: Any = function if isinstance(function, backend.Inner) else backend.func(function)
    marked.keeps = tuple(name for name in keeps if name != "slip")
    marked.needs = Mix._fields if needs is None else tuple(needs)
    if "rolling" in marked.needs and "shear" not in marked.needs:
        marked.needs += ("shear",)  # of which the spring against rolling is made
    marked.reach = float(reach)
    marked.stiffness = stiffness if stiffness is None or callable(stiffness) else lambda mix, radius: float(stiffness)
    marked.energy = energy
    return marked


def recipe(function):
    """The Law of a user's own function; its damping is that of the Hertz law."""
    told = {
        name: getattr(function, name) for name in ("keeps", "needs", "reach", "stiffness") if hasattr(function, name)
    }
    return Law(function, hertz_damping, getattr(function, "energy", None), told.get("stiffness") is None, True, **told)


# Where a law is asked how steep it is, in reduced radii, and in parts of its reach; 5 % is the depth by which the steps of other laws are chosen too.
DEPTHS = (1e-5, 1e-4, 1e-3, 1e-2, 0.05)
GAPS = (0.1, 0.5, 0.9)
AWAY = 1e-3  # by which part of an overlap it is changed
CRAWL = (
    1e-9  # [m/s], at which the overlap grows or shrinks: a law may be steeper on one way, and dashpots do nothing yet
)
SLIPPED = 1e-9  # of the reduced radius: friction limits it nowhere but next to touch


def steepest(function, mix, radius, mass):
    """The largest stiffness [N/m] of a law at some overlaps, along the normal and in shear, on loading and on unloading; NaN where no answer of it is a number.

    mix: numbers of a pair of materials; radius [m]: reduced; mass [kg]: effective. The function runs as plain Python here.
    """
    made = recipe(function)
    fresh = (0.0,) * len(made.keeps)
    none, numbers = (0.0, 0.0, 0.0), made.mix(*map(float, mix))

    def answer(overlap, rate, slip, kept):
        held = made.kept(*kept) if made.keeps else ()
        touch = Touch(overlap, rate, (0.0, 0.0, 1.0), none, slip, mass, radius, held)
        try:
            told = function(touch, numbers, 1e-9)
            return float(told[0]), float(told[1][0]), tuple(map(float, told[3])) if made.keeps else ()
        except (
            Exception
        ):  # compiled it would have been no number; and what is of the compiler alone plain Python does not know
            return math.nan, math.nan, fresh

    before, backend.PLAIN[0] = backend.PLAIN[0], threading.get_ident()
    slopes = []
    try:
        places = [(part * radius, AWAY * part * radius) for part in DEPTHS]
        places += [(-part * made.reach, AWAY * made.reach) for part in GAPS if made.reach > 0.0]
        for overlap, away in places:
            for rate in (0.0, CRAWL, -CRAWL):
                force, shear, kept = answer(overlap, rate, none, fresh)
                # What it keeps is that of the overlap which it comes from.
                slopes += [(answer(overlap + way, rate, none, kept)[0] - force) / away for way in (away, -away)]
                slipped = SLIPPED * radius
                slopes.append((answer(overlap, rate, (slipped, 0.0, 0.0), kept)[1] - shear) / slipped)
    finally:
        backend.PLAIN[0] = before
    return max((abs(slope) for slope in slopes if math.isfinite(slope)), default=math.nan)


def stiffness_of(law, name, mix, radius):
    """What the stiffness that a user gives with a law says, (n,) [N/m]; an error of one line otherwise. law: its Law."""
    given: Any = law.stiffness
    try:
        with np.errstate(all="ignore"):
            found = np.broadcast_to(np.asarray(given(mix, radius), float), radius.shape)
    except Exception as fault:
        code = getattr(given, "__code__", None)
        frames = traceback.extract_tb(fault.__traceback__)
        own = [frame for frame in frames if code is not None and frame.filename == code.co_filename]
        where = f" ({Path(own[-1].filename).name}, line {own[-1].lineno})" if own else ""
        raise ValueError(
            f"DEM: the stiffness of the law {name}{where} cannot be computed: {str(fault).splitlines()[0]}; it is a function "
            f"(mix, radius [m]) of arrays, and mix has {', '.join(law.needs)}"
        ) from None
    if not (np.isfinite(found) & (found >= 0.0)).all():
        wrong = found[~(np.isfinite(found) & (found >= 0.0))][0]
        raise ValueError(f"DEM: the stiffness of the law {name} must be finite and 0 N/m or more, got {wrong:g}")
    return found


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
    made = recipe(law)
    kept = made.kept(*[0.0] * len(made.keeps)) if made.keeps else ()
    touch, mix = Touch(0.1, 0.1, three, three, three, 1.0, 1.0, kept), made.mix(*[1.0] * len(made.needs))
    kinds = (numba.typeof(touch), numba.typeof(mix), types.float64)
    _look_inside(name, law, set())
    try:
        law.compile(kinds)
    except Exception as fault:  # of whatever class: the compiler has many, some of its own and some of Python's
        told = _reason(fault, {"Touch": Touch, "Mix": made.mix, "Kept": made.kept})
        raise ValueError(f"DEM: the law {_place(name, plain, fault)} cannot be compiled: {told}") from None
    compiled: Any = law.overloads[kinds]
    found = compiled.signature.return_type
    parts = list(found) if isinstance(found, TUPLE) else []
    fine = len(parts) == (4 if made.keeps else 3) and _number(parts[0]) and all(_triple(part) for part in parts[1:3])
    fine = fine and (not made.keeps or _numbers(parts[3], len(made.keeps)))
    if not fine:
        more = f", ({', '.join(made.keeps)}{',' if len(made.keeps) == 1 else ''})" if made.keeps else ""
        # A way through the law without a result.
        silent = isinstance(found, types.Optional | types.NoneType)
        told = "returns nothing on some way through it" if silent else f"returns {_short(found)}"
        raise ValueError(f"DEM: the law {_place(name, plain)} {told}; {RETURNS}{more}")


NUMBERS_ALONE = "; a law takes numbers and returns numbers"
# Instructions of Python that the compiler takes, or refuses without a word of help, and that have no place in a law.
NO_PLACE = {
    "RAISE_VARARGS": "it raises an error, which nobody would see; return a force of 0.0 or math.nan instead",
    "CHECK_EXC_MATCH": "it catches an error, and none is raised in kernels: a root of what is below zero is math.nan there; ask before",
    "STORE_ATTR": "it changes what it is given, which stays as it is; return what is to be remembered",
    "STORE_GLOBAL": "it changes a global name, which kernels cannot; return what is to be remembered, see clast.law(keeps=...)",
    "IMPORT_NAME": "it imports; write that above the law",
    "RETURN_GENERATOR": "it yields; write return",
    "BUILD_LIST": f"it makes a list{NUMBERS_ALONE}",
    "BUILD_SET": f"it makes a set{NUMBERS_ALONE}",
    "BUILD_MAP": f"it makes a dict{NUMBERS_ALONE}",
    **dict.fromkeys(
        ("BUILD_STRING", "FORMAT_VALUE", "FORMAT_SIMPLE", "FORMAT_WITH_SPEC"), f"it makes a text{NUMBERS_ALONE}"
    ),
}


def _look_inside(name, law, seen):
    """Raise a ValueError if the law, or a function marked with clast.func that it calls, does what has no place there."""
    plain = law.py_func
    if plain in seen:
        return
    seen.add(plain)
    for step in dis.get_instructions(plain):
        if step.opname in NO_PLACE:
            where = f"{name!r} ({Path(plain.__code__.co_filename).name}, line {_line(step)})"
            raise ValueError(f"DEM: the law {where} cannot be compiled: {NO_PLACE[step.opname]}")
        called = plain.__globals__.get(step.argval) if step.opname == "LOAD_GLOBAL" else None
        if isinstance(called, backend.Inner):
            _look_inside(name, called, seen)


def _line(step):
    """Line of the source that an instruction comes from, as `dis` gives it."""
    return step.positions.lineno


def _number(given):
    return isinstance(given, types.Float | types.Integer)


def _triple(given):
    return _numbers(given, 3)


def _numbers(given, count):
    return isinstance(given, TUPLE) and len(given) == count and all(map(_number, given))


def _short(given):
    """What the compiler calls the results of a law, in fewer words."""
    told = str(given).replace("UniTuple(float64 x 3)", "(x, y, z)").replace("float64", "number")
    told = re.sub(r"UniTuple\(number x (\d+)\)", r"(\1 numbers)", told)
    return re.sub(r"Literal\[(\w+)\]\((.*?)\)", r"\1 \2", told)


def _place(name, plain, fault=None):
    """Name, file and line of the law, or the line in it that the compiler speaks of."""
    file, line = plain.__code__.co_filename, plain.__code__.co_firstlineno
    told = (
        re.findall(r'File "([^"]+)", line (\d+):|at (\S+) \((\d+)\)\s*$', str(fault), re.MULTILINE)
        if fault is not None
        else []
    )
    # The compiler also tells of what it went through in its own files.
    own = [(a or b, int(c or d)) for a, c, b, d in told if "/numba/" not in (a or b).replace("\\", "/")]
    if own:
        file, line = own[0]
    elif isinstance(fault, AttributeError):
        line = next((_line(step) for step in dis.get_instructions(plain) if step.argval == fault.name), line)
    elif fault is not None:
        line = getattr(getattr(fault, "loc", None), "line", None) or line
    return f"{name!r} ({Path(file).name}, line {line})"


def _reason(fault, tables):
    """What the compiler says in the end, without what it went through."""
    lines = [line.strip() for line in str(fault).splitlines()]
    lines = [line for line in lines if line and not line.startswith("Failed in nopython")]
    if not lines:
        return type(fault).__name__
    asked = next((line for line in lines if line.startswith(">>>")), "")
    if any("NRT required" in line or "Only accept returning of array" in line for line in lines):
        made = f", {asked[3:].strip()}" if asked else ""
        return f"it makes an array or a list{made}; a law takes numbers and returns numbers"
    if unpacked := re.search(r"wrong tuple length .*'expected (\d+), got (\d+)'", lines[0]):
        return f"it takes a tuple of {unpacked[2]} for {unpacked[1]} names"
    if lines[0].startswith("Can't unify return type"):
        kinds = lines[0].split("following types:")[-1].strip()
        return f"it returns one thing on one way through it and another on another: {_short(kinds)}"[:300]
    told = "it cannot compute" if asked and lines[0].startswith("No implementation") else lines[0]
    if told.startswith("Untyped global name"):
        return f"{told.split(':')[0].replace('Untyped global name', 'it uses')}, which is no number and not marked with clast.func"
    told = re.sub(
        r" of type (Touch|Mix|Kept)\(.*", lambda found: f"; {found[1]} has {', '.join(tables[found[1]]._fields)}", told
    )
    told = re.sub(r"\.? ?Raised from .*", "", told)
    return f"{told} {asked[3:].strip()}".strip()[:300]

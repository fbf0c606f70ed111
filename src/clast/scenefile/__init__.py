"""Scene files: a TOML file becomes a scene ready to run, or one line that says what is wrong with it and where.

A scene file is data. It names shapes, materials and numbers; nothing in it is ever executed.
"""

import math
import tomllib
from typing import Any, NoReturn

import numpy as np
from pydantic import ValidationError

from ..dem.method import DEM
from ..dvi.method import Complementarity
from ..errors import SceneError, nearest, path_of
from ..scene.drives import Oscillation
from ..scene.filling import sieve
from ..scene.materials import Material
from ..scene.scene import Scene
from ..scenes import Ready
from .keys import (
    LISTS,
    METHODS,
    SECTIONS,
    SOME_BOX,
    WALLS,
    BodyKeys,
    FillKeys,
    InletKeys,
    JointKeys,
    MaterialKeys,
    OutletKeys,
    PairKeys,
    RunKeys,
    SceneKeys,
    Section,
    SpringKeys,
    odd_numbers,
)
from .shaping import Shaper


def load(path, *, outside=False):
    """The scene in a TOML file, as Ready; a SceneError of one line if anything is wrong with it.

    outside: whether it may name files that are not in its own folder or below.
    """
    path = path_of(path, "scenefile.load: the first argument must be the path of a .toml scene file")
    reader = _Reader(path, outside)
    return reader.ready(_parse(path))


def _parse(path):
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise SceneError(f"{path}: no such file; give the path of a .toml scene file") from None
    except IsADirectoryError:
        raise SceneError(f"{path}: is a folder; give the path of a .toml scene file") from None
    except UnicodeDecodeError as fault:
        raise SceneError(f"{path}: is not text in UTF-8 (byte {fault.start}); save it as UTF-8") from None
    except OSError as fault:
        raise SceneError(f"{path}: cannot be read: {fault.strerror}; check its permissions") from None
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as fault:
        raise SceneError(f"{path}: not valid TOML: {_line(fault)}; correct the syntax there") from None
    except RecursionError:
        raise SceneError(f"{path}: brackets are nested too deep; write plain lists of numbers") from None


def _line(text):
    return " ".join(str(text).split())


def _show(value):
    text = _line(repr(value))
    return text if len(text) <= 60 else text[:57] + "..."


def _place(path):
    text = ""
    for step in path:
        text += f"[{step}]" if isinstance(step, int) else f".{step}"
    return text.lstrip(".")


class _Reader(Shaper):
    """Turns parsed TOML into a scene; knows the file's name for its messages."""

    def __init__(self, path, outside=False):
        self.path, self.outside = path, outside
        self.materials = {}
        self.places = []  # (numbers, place in the file) of all bodies
        self.named = {}  # body numbers by the names that the file gives

    def fail(self, place, message, value=...) -> NoReturn:
        shown = "" if value is ... else f" = {_show(value)}"
        raise SceneError(f"{self.path}: {place}{shown}: {_line(message)}") from None

    def unknown(self, place, name, known) -> NoReturn:
        guess = nearest(name, known)
        hint = f"did you mean {guess!r}? " if guess else ""
        self.fail(place, f"unknown key; {hint}(known: {', '.join(known)})")

    def keys(self, place, data, model, known=None):
        """The section as a model, or the first fault as an error; unknown keys first, they are often the cause."""
        if not isinstance(data, dict):
            self.fail(place, f"must be a table; write [{place.split('[')[0]}] and its keys below", data)
        try:
            return model.model_validate(data)
        except ValidationError as faults:
            first = min(faults.errors(), key=lambda fault: fault["type"] != "extra_forbidden")
            self.explain(place, first, model, known)

    def explain(self, place, fault, model, known):
        where, section, name = fault["loc"], model, place
        field: Any = None  # of the last key that a section has
        for step in where:
            inside = section if field is None else _inner(field)
            if isinstance(step, str) and inside is not None:  # names in a table of plain numbers are no keys
                section, name, field = inside, step, inside.model_fields.get(step)
        full = _place([place, *where])
        if fault["type"] == "extra_forbidden":
            self.unknown(full, where[-1], [*section.model_fields, *(known or ())])
        hint = f"{name} is the {field.description}, for example {name} = {field.examples[0]}"
        if fault["type"] == "missing":
            self.fail(full, f"is missing; {hint}")
        self.fail(full, f"{_words(fault)}; {hint}", fault["input"])

    def guard(self, place, function, *arguments, **options):
        """Call a function of the package; what it does not accept is a fault of the file."""
        try:
            return function(*arguments, **options)
        except SceneError:
            raise
        except (ValueError, TypeError) as fault:
            self.fail(place, fault)

    def ready(self, data):
        for name in data:
            if name not in SECTIONS:
                self.unknown(name, name, SECTIONS)
        for name in LISTS:
            if not isinstance(data.get(name, []), list):
                self.fail(name, f"must be a list of tables; write [[{name}]] with two brackets", data[name])
        for path, value in odd_numbers(data):
            self.fail(_place(path), "numbers are 0, or from 1e-30 to 1e30; write another one", value)
        head = self.keys("scene", data.get("scene", {}), SceneKeys)
        timing = data.get("run", {})
        if isinstance(timing, dict):
            # What the simulation chooses is the same as what is not there.
            chosen = [name for name in ("dt", "tolerance", "iterations") if timing.get(name) == "auto"]
            timing = {name: value for name, value in timing.items() if name not in chosen}
        run = self.keys("run", timing, RunKeys)
        method = self.method(run)
        world = None if head.world is None else self.box("scene.world", head.world)
        if any(head.periodic) and world is None:
            self.fail("scene.periodic", "needs scene.world, the room that repeats; for example world = " + SOME_BOX)
        scene = self.guard("scene", Scene, tuple(head.gravity), world=world, periodic=tuple(head.periodic))
        self.read_materials(data.get("materials", {}))
        for name in LISTS:
            for i, entry in enumerate(data.get(name, [])):
                ADDERS[name](self, f"{name}[{i}]", entry, scene)
        if not any(data.get(name) for name in ("bodies", "fill", "inlet")):
            self.fail("bodies", "there is nothing that moves; add [[bodies]], [[fill]] or [[inlet]]")
        title, places = head.title or self.path.stem, tuple(self.places)
        return Ready(
            scene, method, run.dt or "auto", run.until, run.every, title, run.overlap_limit, str(self.path), places
        )

    def method(self, run):
        """DEM or Complementarity with the options that are given; those of the other method are refused."""
        other = next(name for name in METHODS if name != run.method)
        for name in METHODS[other]:
            if name in run.model_fields_set:
                hint = f'goes with method = "{other}", not with "{run.method}"; leave it out, or change the method'
                self.fail(f"run.{name}", hint, getattr(run, name))
        names = *METHODS[run.method], "ledger"
        options = {name: getattr(run, name) for name in names if getattr(run, name) is not None}
        return self.guard("run", {"dem": DEM, "complementarity": Complementarity}[run.method], **options)

    def read_materials(self, data):
        if not isinstance(data, dict):
            self.fail("materials", "must be tables; write [materials.NAME]", data)
        for name, entry in data.items():
            place = f"materials.{name}"
            given = dict(self.keys(place, entry, MaterialKeys))
            given["numbers"] = given["numbers"] or {}
            self.materials[name] = self.guard(place, Material, name=name, **given)

    def material(self, place, name):
        """The material of that name; the only one if none is named; the default if there is none at all."""
        if name is None:
            if len(self.materials) > 1:
                self.fail(f"{place}.material", f"is missing; choose one of {', '.join(self.materials)}")
            return next(iter(self.materials.values()), None)
        if name not in self.materials:
            guess = nearest(name, self.materials)
            hint = f"did you mean {guess!r}?" if guess else f"add a section [materials.{name}]"
            self.fail(f"{place}.material", f"unknown material; {hint} (known: {', '.join(self.materials)})", name)
        return self.materials[name]

    def pair(self, place, entry, scene):
        keys = self.keys(place, entry, PairKeys)
        a, b = (self.material(f"{place}.between[{i}]", name) for i, name in enumerate(keys.between))
        values = {name: value for name, value in dict(keys).items() if name != "between" and value is not None}
        if not values:
            self.fail(place, "says nothing about the pair; add for example friction = 0.3")
        self.guard(place, scene.combine, a, b, **values)

    def box(self, place, corners):
        low, high = corners
        if not all(a < b for a, b in zip(low, high)):
            self.fail(place, "the first corner must be below the second on every axis; swap the numbers", corners)
        return tuple(low), tuple(high)

    def kind(self, place, entry, kinds, default=None):
        name = entry.get("kind", default) if isinstance(entry, dict) else None
        if not isinstance(entry, dict):
            self.fail(place, "must be a table", entry)
        if name is None:
            self.fail(f"{place}.kind", f"is missing; choose one of {', '.join(kinds)}")
        if not isinstance(name, str) or name not in kinds:
            guess = nearest(name, kinds)
            hint = f"did you mean {guess!r}? " if guess else ""
            self.fail(f"{place}.kind", f"unknown kind; {hint}(known: {', '.join(kinds)})", name)
        return kinds[name]

    def wall(self, place, entry, scene):
        keys = self.keys(place, entry, self.kind(place, entry, WALLS))
        shape = self.shape(place, keys)
        drive = None
        if keys.oscillation is not None:
            drive = self.guard(f"{place}.oscillation", Oscillation, **dict(keys.oscillation))
        numbers = self.guard(
            place,
            scene.add,
            shape,
            position=keys.position,
            orientation=keys.orientation,
            velocity=keys.velocity,
            spin=keys.spin,
            scale=getattr(keys, "scale", 1.0),
            material=self.material(place, keys.material),
            pivot=keys.pivot,
            drive=drive,
            temperature=keys.temperature,
        )
        self.places.append((numbers, place))
        self.remember(place, keys.name, numbers)

    def body(self, place, entry, scene):
        shape, keys = self.particle(place, entry, BodyKeys)
        options = keys.model_dump(exclude={"kind", "material", "name"})
        numbers = self.guard(place, scene.add, shape, material=self.material(place, keys.material), **options)
        self.places.append((numbers, place))
        self.remember(place, keys.name, numbers)

    def remember(self, place, name, numbers):
        if name is not None:
            if name in self.named or name == "world":
                self.fail(f"{place}.name", "is taken; names must differ, and world is the world", name)
            self.named[name] = int(numbers[0])

    def two(self, place, names):
        """The numbers of the two bodies of a joint or spring; None is the world."""
        known = {"world": None} | self.named
        for i, name in enumerate(names):
            if name not in known:
                guess = nearest(name, known)
                hint = f"did you mean {guess!r}?" if guess else "give a body or wall that name"
                self.fail(f"{place}.between[{i}]", f"unknown body; {hint} (known: {', '.join(known)})", name)
        return [known[name] for name in names]

    def joint(self, place, entry, scene):
        keys = self.keys(place, entry, JointKeys)
        a, b = self.two(place, keys.between)
        names = ("at", "axis", "across", "locked", "limits", "collide")
        options = {name: getattr(keys, name) for name in names}
        options |= dict(zip(("from_", "to"), keys.points or (None, None), strict=True))
        number = self.guard(place, scene.join, a, b, keys.kind, **options)
        if keys.motor is not None:
            given = {name: value for name, value in dict(keys.motor).items() if value is not None}
            self.guard(f"{place}.motor", scene.motor, number, **given)
        if keys.torsion is not None:
            self.guard(f"{place}.torsion", scene.torsion, number, **dict(keys.torsion))

    def spring(self, place, entry, scene):
        keys = self.keys(place, entry, SpringKeys)
        a, b = self.two(place, keys.between)
        options = {name: getattr(keys, name) for name in ("rest", "stiffness", "damping")}
        options |= dict(zip(("from_", "to"), keys.points or (None, None), strict=True))
        self.guard(place, scene.spring, a, b, **options)

    def many(self, place, keys, shape):
        """The options that fill and inlet share."""
        low, high = keys.scale
        if low > high:
            self.fail(f"{place}.scale", "the first number must not be above the second; swap them", keys.scale)
        scale = low if low == high else (low, high)
        if keys.mix is not None:
            scale = dict(keys.mix)
        if keys.sieve is not None:
            if keys.mix is not None:
                self.fail(f"{place}.sieve", "there is mix as well; leave one of them out", keys.sieve)
            scale = self.guard(f"{place}.sieve", sieve, dict(keys.sieve), shape)
        return {
            "box": self.box(f"{place}.box", keys.box),
            "scale": scale,
            "velocity": keys.velocity,
            "temperature": keys.temperature,
            "material": self.material(place, keys.material),
            "seed": keys.seed,
        }

    def fill(self, place, entry, scene):
        shape, keys = self.particle(place, entry, FillKeys)
        options = self.many(place, keys, shape)
        inside = None if keys.within is None else self.within(f"{place}.within", keys.within)
        for name in ("count", "fraction", "method", "jitter", "spin"):
            options[name] = getattr(keys, name)
        self.places.append((self.guard(place, scene.fill, shape, inside=inside, **options), place))

    def within(self, place, keys):
        axis, centre, radius = np.array(keys.axis), np.array(keys.centre), keys.radius
        size = np.linalg.norm(axis)
        if size == 0.0:
            self.fail(f"{place}.axis", "has no direction; for example axis = [0, 1, 0]", keys.axis)
        return lambda points: np.linalg.norm(np.cross(points - centre, axis / size), axis=1) < radius

    def inlet(self, place, entry, scene):
        shape, keys = self.particle(place, entry, InletKeys)
        options = self.many(place, keys, shape)
        options["stop"] = math.inf if keys.stop is None else keys.stop
        if options["stop"] <= keys.start:
            self.fail(f"{place}.stop", f"must be after start = {keys.start:g}", keys.stop)
        for name in ("rate", "start", "count"):
            options[name] = getattr(keys, name)
        self.guard(place, scene.inlet, shape, **options)

    def outlet(self, place, entry, scene):
        self.guard(place, scene.outlet, box=self.box(f"{place}.box", self.keys(place, entry, OutletKeys).box))


ADDERS = {
    "pairs": _Reader.pair,
    "walls": _Reader.wall,
    "bodies": _Reader.body,
    "joints": _Reader.joint,
    "springs": _Reader.spring,
    "fill": _Reader.fill,
    "inlet": _Reader.inlet,
    "outlet": _Reader.outlet,
}


def _inner(field):
    """The section that a field holds, or None if it holds plain values."""
    kinds = getattr(field.annotation, "__args__", (field.annotation,))
    return next((kind for kind in kinds if isinstance(kind, type) and issubclass(kind, Section)), None)


WORDS = {
    "greater_than": "must be > {gt:g}",
    "greater_than_equal": "must be >= {ge:g}",
    "less_than_equal": "must be <= {le:g}",
    "finite_number": "must be a finite number",
    "float_type": "must be a number",
    "int_type": "must be a whole number",
    "string_type": "must be text in quotes",
    "string_too_short": "must not be empty",
    "bool_type": "must be true or false",
    "list_type": "must be a list",
    "too_short": "needs {min_length} entries, has {actual_length}",
    "too_long": "needs {max_length} entries, has {actual_length}",
    "literal_error": "must be one of {expected}",
    "model_type": "must be a table",
}


def _words(fault):
    words = WORDS.get(fault["type"])
    return _line(fault["msg"]) if words is None else words.format(**fault.get("ctx", {}))

"""What a function reaches: a hash of all code and values that compiling it takes in, and where numba keeps the result.

numba's disk cache looks at the file that holds a function. It does not see an edit in another file and would run old code;
and it forgets all functions of a file of which one is edited. Here a stored function is known by what it reaches:
itself, the functions it calls, the values of the global names it uses, the layouts of named tuples, the flags, and the sources of what all
compiling goes through (`library`, `quick`).
Too much in the hash costs a compilation, too little would run old code; in doubt it goes in. Not seen are the bodies of
functions registered by numba.extending.overload outside of numba.
"""

import enum
import errno
import functools
import hashlib
import os
import sys
import time
import types
import zlib
from contextlib import contextmanager
from opcode import opmap
from pathlib import Path

import llvmlite
import numba
import numpy as np
from numba.core import types as numba_types
from numba.core.caching import FunctionCache, IndexDataCacheFile

from . import library, quick, shipped
from .library import outer

try:
    import fcntl
except ImportError:  # not on Windows
    fcntl = None  # type: ignore[assignment]

PATIENCE = 120.0  # [s], that a process waits for another which compiles the same
VERSIONS = f"{sys.version_info[:3]} {numba.__version__} {llvmlite.__version__} {np.__version__}"
# What all kernels go through: an edit there makes other machine code of every one, though none of them calls it.
PIPELINE = hashlib.sha256(b"".join(Path(str(module.__file__)).read_bytes() for module in (library, quick))).hexdigest()
# numba brings its own versions of what is in here; their names and its version say all.
KNOWN = {"numba", "numpy", "llvmlite", *sys.stdlib_module_names}
SINGLE = (bool, int, float, complex, str, bytes, type(None), type(Ellipsis))
LOAD_GLOBAL, EXTENDED_ARG = opmap["LOAD_GLOBAL"], opmap["EXTENDED_ARG"]


def global_names(code):
    """Global names that a code object loads. A tenth of the time that `dis` takes, which made 0.3 s of a start."""
    found, text, high = set(), code.co_code, 0
    for k in range(0, len(text), 2):
        operation = text[k]
        if operation == LOAD_GLOBAL:
            found.add(code.co_names[(high | text[k + 1]) >> 1])
        high = (high | text[k + 1]) << 8 if operation == EXTENDED_ARG else 0
    return found


@functools.cache
def _read(code):
    """(text that tells the code apart, global names it loads, all names it uses), with the code objects inside it."""
    loads, names = global_names(code), set(code.co_names)
    text = [code.co_code.hex(), code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars, code.co_flags]
    text += [code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount]
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            inner, more, others = _read(constant)
            text.append(inner)
            loads, names = loads.union(more), names.union(others)
        else:
            text.append(_constant(constant))
    return repr(text), tuple(sorted(loads)), frozenset(names)


def _constant(value):
    """A constant of the code as text; a set has no order of its own."""
    if isinstance(value, tuple | frozenset):
        items = [_constant(item) for item in value]
        return type(value).__name__, items if isinstance(value, tuple) else sorted(map(str, items))
    return type(value).__name__, repr(value)


def loaded(function):
    """Global names that the code of a function loads."""
    return _read(function.__code__)[1]


def is_table(kind):
    """Whether this is a class of named tuples."""
    return isinstance(kind, type) and issubclass(kind, tuple) and hasattr(kind, "_fields")


class Reached:
    """All that is reached from some values: `digest`, and `names`, every name that code in there uses."""

    def __init__(self, *values):
        self.text = [VERSIONS, PIPELINE]
        self.names = set()
        self._number = {}  # functions in the order in which they were met, by id; calls may go in a circle
        self._waiting: list[types.FunctionType] = []
        for value in values:
            self.text.append(self.describe(value))
        while self._waiting:
            self._look_into(self._waiting.pop())
        self.digest = hashlib.sha256("\n".join(self.text).encode()).hexdigest()[:20]

    def _look_into(self, function):
        code, loads, names = _read(function.__code__)
        self.names |= names
        self.text.append(f"function {self._number[id(function)]} {code}")
        self.text.append(self.describe((function.__defaults__, function.__kwdefaults__)))
        for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
            self.text.append(f"{name} = {self._inside(cell.cell_contents, names)}")
        for name in loads:
            if name in function.__globals__:
                self.text.append(f"{name} = {self._inside(function.__globals__[name], names)}")

    def _inside(self, value, names):
        """A value as text; of a module, all that these names may mean there."""
        if not isinstance(value, types.ModuleType):
            return self.describe(value)
        if value.__name__.partition(".")[0] in KNOWN:
            return f"module {value.__name__}"
        held = vars(value)
        parts = [f"{name}: {self._inside(held[name], names)}" for name in sorted(names) if name in held]
        return f"module {value.__name__} {parts}"

    def describe(self, value):
        """A value as text that is the same in every process; functions are put down to be looked into."""
        if isinstance(value, SINGLE):
            return f"{type(value).__name__} {value!r}"
        if isinstance(value, types.FunctionType):
            return self._function(value)
        if isinstance(value, tuple | list):
            return f"{self.describe(type(value))} ({', '.join(map(self.describe, value))})"
        if isinstance(value, set | frozenset):
            return f"{type(value).__name__} {sorted(map(self.describe, value))}"
        if isinstance(value, dict):
            return f"dict {[(self.describe(k), self.describe(v)) for k, v in value.items()]}"
        if isinstance(value, np.ndarray | np.generic):
            flags = value.flags
            content = hashlib.sha256(value.tobytes()).hexdigest() if value.dtype != object else self._stranger(value)
            return f"array {value.dtype.descr} {value.shape} {flags.c_contiguous} {flags.writeable} {content}"
        if isinstance(value, np.dtype | numba_types.Type):
            return f"{type(value).__name__} {value}"
        if isinstance(value, type):
            return self._class(value)
        if hasattr(value, "py_func") and hasattr(value, "targetoptions"):
            # With signatures given, the types of its results do not follow from its code.
            fixed = "" if getattr(value, "_can_compile", True) else [str(s) for s in value.nopython_signatures]
            options = sorted((name, self.describe(option)) for name, option in value.targetoptions.items())
            return f"compiled {options} {self.describe(value.locals)} {fixed} {self.describe(value.py_func)}"
        for name in ("_defn", "_dispatcher"):  # of an intrinsic; of what numba.vectorize makes
            if callable(inner := getattr(value, name, None)):
                return f"{type(value).__name__} {self.describe(inner)}"
        if (getattr(value, "__module__", None) or "").partition(".")[0] in KNOWN and hasattr(value, "__qualname__"):
            return f"{value.__module__}.{value.__qualname__}"
        if isinstance(value, types.BuiltinFunctionType | np.ufunc):
            return f"builtin {value.__name__}"
        if isinstance(value, types.ModuleType):
            return f"module {value.__name__}"
        return self._stranger(value)

    def _function(self, function):
        if (function.__module__ or "").partition(".")[0] in KNOWN:
            return f"{function.__module__}.{function.__qualname__}"
        if id(function) not in self._number:
            self._number[id(function)] = len(self._number)
            self._waiting.append(function)
        return f"function {function.__name__} {self._number[id(function)]}"

    def _class(self, kind):
        text = f"class {kind.__module__}.{kind.__qualname__}"
        if is_table(kind):
            return f"{text} {kind._fields} {self.describe(kind._field_defaults)}"
        if issubclass(kind, enum.Enum):
            return f"{text} {[(member.name, self.describe(member.value)) for member in kind]}"
        compiled = getattr(kind, "class_type", None)  # of numba.experimental.jitclass
        return (
            f"{text} {self.describe((compiled.struct, compiled.jit_methods, compiled.jit_props))}" if compiled else text
        )

    def _stranger(self, value):
        """What cannot be told apart by its content is another one in each process: compiled anew, never out of date."""
        text = repr(value)
        if " at 0x" in text or isinstance(value, np.ndarray):
            text = f"{id(value)} {os.getpid()} {os.urandom(8).hex()}"
        return f"{type(value).__module__}.{type(value).__qualname__} {text}"


def layouts(kind):
    """The named tuples among numba types, with their columns: numba tells two of them apart by class and types alone."""
    parts = [layouts(inner) for inner in getattr(kind, "types", None) or ()]
    return (getattr(kind, "fields", None), *parts) if parts else ()


class _Index(IndexDataCacheFile):
    """numba's list of what is stored; one that names classes that are gone counts as empty."""

    def _load_index(self):
        try:
            return super()._load_index()
        except (AttributeError, ImportError, EOFError, ValueError, TypeError):
            return {}


@functools.cache
def _lock_file(folder):
    """Descriptor of the file of a folder whose bytes stand for what is compiled there; None where there is none.

    It stays open as long as the process lives: its locks would go with it."""
    try:
        Path(folder).mkdir(parents=True, exist_ok=True)
        return os.open(Path(folder) / "compiling.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    except OSError:
        return None


@contextmanager
def one_at_a_time(folder, name, patience=PATIENCE):
    """Within the block no other process is in a block of this name. Waits for that, but not longer than `patience` [s]: then, and where files
    cannot be locked, both do the same work. Four processes of a run on two cores compiled everything four times. Gives False if another is there still."""
    alone = True
    file, place = None if fcntl is None else _lock_file(folder), zlib.crc32(name.encode())
    late = time.monotonic() + patience
    while file is not None:
        try:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, place)
            break
        except OSError as fault:
            if fault.errno not in (errno.EACCES, errno.EAGAIN) or time.monotonic() > late:
                file, alone = None, fault.errno not in (errno.EACCES, errno.EAGAIN)
            else:
                time.sleep(0.02)
    try:
        yield alone
    finally:
        if file is not None:
            fcntl.lockf(file, fcntl.LOCK_UN, 1, place)


# What to do when a stored function is not on the disk, once: it may bring this and others. See `ahead`.
missing: list = []
brought: list = []  # stored functions, and for which types, that came with the package. See `own`.


class Store(FunctionCache):
    """numba's disk cache for one function, by what it reaches in place of its file.

    known: what the function reaches, if its name carries that hash already. Otherwise it is looked up when a compiled form is
    first asked for: only then everything that the function calls has been defined. of: where that begins, if not at the function; kernel: whose
    loop the function is.
    """

    def __init__(self, function, known=None, of=None, kernel=None):
        super().__init__(function)
        self.of, self.kernel = function if of is None else of, kernel
        self.known = known is not None
        if self.known:
            self.reached = known

    @functools.cached_property
    def reached(self):
        return Reached(self.of)

    @property
    def name(self):
        """The name of the function with the hash."""
        return self._py_func.__name__ + ("" if self.known else f".{self.reached.digest}")

    @property
    def size(self):
        """How much code the function reaches, in letters: a guess at how long it takes to compile."""
        return sum(map(len, self.reached.text))

    @functools.cached_property
    def _base(self):
        return self._impl.filename_base + ("" if self.known else f".{self.reached.digest}")

    @functools.cached_property
    def _file(self):
        return _Index(cache_path=self._cache_path, filename_base=self._base, source_stamp="known by name")

    def _shipped(self, sig, context):
        """(index, key) of the form that came with the package, if it has any that fit here."""
        level = shipped.level(VERSIONS)
        if level is None:
            return None
        key = self._index_key(sig, context.codegen())
        return _Index(str(shipped.FOLDER), self._base, "known by name"), (key[0], level, *key[2:])

    def holds(self, types, context):
        """Whether the form for these types is on the disk."""
        place = self._shipped(types, context)
        if place is not None and place[1] in place[0]._load_index():
            return True
        return self._index_key(types, context.codegen()) in self._file._load_index()

    def ready(self, types, context):
        """Whether the form for these types is on the disk, if need be after having it compiled there with others."""
        if not self.holds(types, context) and missing:
            missing.pop()()
        return self.holds(types, context)

    def alone(self):
        """Within the block no other process compiles this function into the same folder; who comes later waits, and finds it on the disk."""
        return one_at_a_time(self._cache_path, self._base)

    def load_overload(self, sig, target_context):
        try:
            found = super().load_overload(sig, target_context)
        except ImportError:  # it calls a function of a program that is gone, a law of a notebook say: compiled anew
            found = None
        if found is None and (place := self._shipped(sig, target_context)) is not None:
            data = place[0].load(place[1])
            found = None if data is None else self._impl.rebuild(target_context, data)
            if found is not None:
                brought.append((self, sig))
        return found

    def save_overload(self, sig, data):
        # As numba does with what it loads: functions that only kernels call have no other place for their environments.
        for environment in data._find_referenced_environments():
            data.codegen.set_env(environment.env_name, environment)
        super().save_overload(sig, data)

    # numba makes one of its own and looks for it under this name.
    _cache_file = property(lambda self: self._file, lambda self, given: None)

    def _index_key(self, sig, codegen):
        return (*super()._index_key(sig, codegen), tuple(layouts(kind) for kind in getattr(sig, "args", sig)))


STORED: list = []  # what `stored` has made


def kept(function, **flags):
    """A compiled function that Python calls, kept on disk by all that it reaches."""
    compiled = outer(function, **flags)
    compiled._cache = Store(function, of=compiled)  # with its flags: other flags make other code
    return compiled


def stored(**flags):
    """numba.njit with these flags for a function that Python calls, kept on disk by all that it reaches."""

    def compile_later(function):
        STORED.append(kept(function, **flags))
        return STORED[-1]

    return compile_later

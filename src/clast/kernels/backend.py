"""Row functions become loops on threads. A row function f(i, tables...) writes row i of its outputs and nothing else.

`func` marks the small functions that kernels call; `kernel` makes a loop of a row function. The loop is written as
text because numba's disk cache never finds a closure; its name carries a hash of the code it reaches, because the cache
does not see an edit in another file and would run old code.

Rows and their functions are compiled without numba's counting of references (_nrt=False): otherwise every look into a
table counts the references to its arrays up and down, atomically, and that took three times as long as the work itself
in the wall kernel. A row that makes arrays of its own (`allocates`) cannot do without.
"""

import contextlib
import ctypes
import functools
import inspect
import os
import threading
import types
from time import perf_counter
from typing import Any

import numba
import numpy as np
from numba.core.compiler_lock import global_compiler_lock
from numba.core.errors import NumbaError
from numba.core.registry import CPUDispatcher

from ..signatures import Function
from . import watch
from .launch import Loop, run_phases, run_rows
from .library import InnerCompiler, OnceCompiler, outer
from .reached import Reached, Store, loaded
from .spread import pack

# A thread that waits for work looks for it again and again, and then goes to sleep. The library's own 300,000 looks keep others from running
# on a busy machine: a launch of two threads took 6 ms. After 1,000 looks it slept before Python had come to the next launch, which then took 34 us,
# and ran on the core that had woken it: a step of 4,000 spheres took as long on two threads as on one. With 10,000 a launch takes 2.6 us, that step
# 412 us in place of 555, and while others used a core it took no longer than with 1,000. The library reads it when the first kernel starts.
os.environ.setdefault("GOMP_SPINCOUNT", "10000")

# Where a TBB library lies on the machine numba would take it: a step of 1,000 spheres took 1,140 us with it on two quiet
# cores, 147 us with OpenMP. On two busy ones OpenMP and TBB took 115 to 150 us for 10 spheres, numba's own queue 330 to 390; and the
# queue ends the process when two threads of Python launch kernels at the same time. So it comes last.
# What the user says, NUMBA_THREADING_LAYER or NUMBA_THREADING_LAYER_PRIORITY or the same in numba.config, comes first.
LAYERS = ["omp", "tbb", "workqueue"]
_settings = vars(numba.config)  # numba makes them when it is imported
if "NUMBA_THREADING_LAYER_PRIORITY" not in os.environ and _settings["THREADING_LAYER_PRIORITY"][0] == "tbb":
    _settings["THREADING_LAYER_PRIORITY"] = LAYERS

SIMULATED = os.environ.get("NUMBA_ENABLE_CUDASIM") == "1"
MANY = 100_000  # rows from which on free memory is given back: 3 ms for a million spheres, of a second for their list
FUSE = {"contract", "nsz"}  # the fast-math flags that do not reorder sums


# Left open, fastmath is that of the kernel which first calls a function in a process, and stays so for all that call it
# later: results would depend on the order of compilation by a last bit. So it is said for every function.
# So is `forceinline`, which numba hands down as well: with it left open all that a row calls was put into it, and polyhedra against all walls
# became one function of 25,000 instructions, 19 s to compile; as calls 13 s, and steps take no longer. Ellipsoids and superquadrics with polyhedra
# took 6 to 8 % longer with calls, so theirs are `func`.


# numba makes two more functions of each one, through which Python and C could call it and which take every array of
# its arguments apart. Without them a start with 300 spheres compiled for 27 s in place of 35.
INNER = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
PLAIN: list = [None]  # the thread that runs kernels as plain Python, see `ahead`


class Inner(CPUDispatcher):
    """A function that kernels call. Called from Python it is compiled a second time, with what that takes, and kept on disk."""

    _compiler: Any

    @functools.cached_property
    def outer(self):
        options = {name: value for name, value in self.targetoptions.items() if name not in INNER | {"nopython": True}}
        compiled = outer(self.py_func, OnceCompiler, **options)
        with contextlib.suppress(RuntimeError):  # of numba, for a function that no file holds
            compiled._cache = Store(self.py_func, of=self)
        return compiled

    def __call__(self, *arguments, **names):
        if PLAIN[0] == threading.get_ident():
            return self.py_func(*arguments, **names)
        return self.outer(*arguments, **names)

    @functools.cached_property
    def needing(self):
        """Types of arguments for which it must know whole numbers: without them it could not be typed."""
        return set()

    def get_call_template(self, args, kws):
        # numba makes a form of a function for every number that stands in a call, a row of an array say; compilers fold it in all the same.
        # One form for all numbers: the functions of cubes on a plane took 18 % less time.
        plain = tuple(map(numbered, args)), {name: numbered(kind) for name, kind in kws.items()}
        known = plain[0], tuple(plain[1].items())
        if plain != (tuple(args), kws) and known not in self.needing:
            try:
                return super().get_call_template(*plain)
            except NumbaError:
                self.needing.add(known)
        return super().get_call_template(args, kws)

    def compile(self, sig):
        # numba asks at every call in the code of others. Its own answer takes clocks, all of which hear of each call of LLVM below.
        if not isinstance(sig, tuple):
            return super().compile(sig)
        known: Any = self.overloads.get(sig)
        if known is None:
            with global_compiler_lock, self._compiling_counter:
                known = self._compiler.compile(sig, None)
                self.add_overload(known)
        return known.entry_point


def numbered(kind):
    """The type of whole numbers for that of a certain one; others as they are."""
    return numba.types.unliteral(kind) if isinstance(kind, numba.types.IntegerLiteral) else kind


def inner(function, **flags):
    """Compile a function for use inside kernels; in the CUDA simulator it stays plain Python."""
    return function if SIMULATED else always_inner(function, **flags)


def always_inner(function, **flags):
    """The same in the CUDA simulator too."""
    # numba asks for it twice: 14 of the 227 ms that the modules of a simulation took to import.
    function.__signature__ = inspect.signature(function)
    options: dict[str, Any] = {"error_model": "numpy", "pipeline_class": InnerCompiler} | flags | INNER
    compiled = numba.njit(**options)(function)
    compiled.__class__ = Inner
    return compiled


def func(function: Function) -> Function:
    """Compile a small function for use inside kernels; in the CUDA simulator it stays plain Python."""
    return inner(function, forceinline=True, _nrt=False, fastmath=False)


def fused(function):
    """Like `func`, with products and sums fused where the machine can: for laws, whose last bit has no meaning."""
    return inner(function, forceinline=True, _nrt=False, fastmath=FUSE)


def part(function):
    """Like `func`, for large functions that are called from several places: compiled once, not into each of them."""
    return inner(function, forceinline=False, _nrt=False, fastmath=False)


def within(function):
    """Like `part`, for functions that `reached.stored` ones call, and no kernels: these run on the CPU whatever the device."""
    return always_inner(function, forceinline=False, _nrt=False, fastmath=False)


def search(function):
    """Like `part`, for loops that look for the largest of many numbers: they become vector instructions only where the
    compiler need not care for what is not a number. Products and sums are fused. No sum is reordered."""
    return inner(function, forceinline=False, _nrt=False, fastmath=FUSE | {"nnan"})


def bind(function, **names):
    """The same code with other global names: how a law or a constant is put into a kernel without a closure."""
    plain = getattr(function, "py_func", function)
    bound: Any = types.FunctionType(plain.__code__, {**plain.__globals__, **names}, plain.__name__)
    bound.__module__ = plain.__module__
    bound.__qualname__ = plain.__name__
    bound.__signature__ = inspect.signature(plain)
    return bound


def made_by(value, maker, *arguments):
    """The value, a function or a class that maker(*arguments) gave, with a note of that: so other processes can make it too."""
    value.made = maker, arguments
    return value


# What a kernel is made of.
PACK = """def {name}({arguments}):
    return pack(_row, ({arguments},))
"""


class Kernel:
    """A row function with the values bound to its global names; call it as kernel(rows, *arguments)."""

    def __init__(self, row, bound, fastmath, grain, allocates, phased):
        self.row = row
        self.bound = bound
        self.grain = grain
        self.paces = {}  # by the number of binary digits of the number of rows
        self.phased = phased
        self.row_flags = {"forceinline": True, "fastmath": fastmath, "_nrt": allocates}
        self.loop_flags = {"error_model": "numpy", "_nrt": False, "no_cfunc_wrapper": True}

    def __call__(self, count, *arguments):
        DEVICE[-1].launch(self, count, arguments)

    @functools.cached_property
    def title(self):
        """The row function and what is bound to it, for people."""
        words = [self.row.__name__, *(getattr(v, "__name__", str(v)) for v in self.bound.values())]
        return "".join(c if c.isalnum() else "_" for c in "_".join(words))[:100]

    @functools.cached_property
    def inner_row(self):
        return inner(bind(self.row, **self.bound), **self.row_flags)

    @functools.cached_property
    def reached(self):
        """Everything that compiling this kernel takes in."""
        bound = sorted(self.bound.items(), key=lambda item: item[0])
        return Reached(self.inner_row, bound, self.loop_flags, self.phased, PACK, pack)

    @functools.cached_property
    def name(self):
        """The title and a hash of everything that compiling this kernel takes in."""
        name = f"{self.title}_{self.reached.digest}"
        watch.TITLES[name] = self.title
        return name

    @functools.cached_property
    def loop(self):
        """The loop on CPU threads; kernels that differ in nothing but their grain have the same."""
        if SIMULATED:
            return self.plain_loop
        if self.name not in _loops:
            _loops[self.name] = Loop(self.compile(), self.reached.names, run_phases if self.phased else run_rows)
        return _loops[self.name]

    def compile(self):
        """The loop for numba, not yet compiled for any arguments."""
        arguments = ", ".join(list(inspect.signature(self.row).parameters)[1:])
        source = PACK.format(name=self.name, arguments=arguments)
        scope = {"pack": pack, "_row": self.inner_row, "__name__": self.row.__module__}
        exec(compile(source, self.row.__code__.co_filename, "exec"), scope)
        loop = outer(scope[self.name], **self.loop_flags)
        loop._cache = Store(scope[self.name], known=self.reached, kernel=self)
        return loop

    def plain_loop(self, count, arguments, threads=1):
        """The loop in plain Python, where `func` compiles nothing."""
        row = bind(self.row, **self.bound)
        for i in range(int(count[-1]) if self.phased else count):
            row(i, *arguments)


_kernels: dict = {}
_loops: dict = {}  # by the name of the kernel


def told_apart(value):
    """A bound value as part of a key: True, 1 and 1.0 are equal, 0.0 and -0.0 too, also within tuples, but not to the compiler."""
    if isinstance(value, tuple):
        return type(value), tuple(map(told_apart, value))
    return type(value), repr(value) if isinstance(value, float | complex | np.inexact) else value


def kernel(row, fastmath=False, grain=512, allocates=False, phased=False, **bound):
    """The kernel of a row function; the same arguments give the same kernel.

    grain: rows below which a second thread costs more than it helps. allocates: the row makes arrays of its own.
    phased: it is called with first rows (k+1,) in place of the number of rows, and the rows of one phase are worked off
    before those of the next begin; one launch for all phases, because a launch costs more than a few rows do.
    fastmath: False, or a set of LLVM flags. Never one that reorders sums: results must not depend on the machine's
    mood. "contract" lets a multiply and an add become one instruction.
    bound: values of the row's global names; those that it does not use make no kernel of its own.
    """
    if bound:
        used = loaded(row)
        bound = {name: value for name, value in bound.items() if name in used}
    bound_items = tuple((name, told_apart(bound[name])) for name in sorted(bound))
    flags = frozenset(fastmath) if fastmath else False
    key = (row, flags, grain, allocates, phased, bound_items)
    if key not in _kernels:
        _kernels[key] = Kernel(row, bound, set(fastmath) if fastmath else False, grain, allocates, phased)
    return _kernels[key]


class Pace:
    """Whether a kernel with so many rows is quicker on one thread or on all: both are tried, and the quicker is taken.

    Waiting for another thread can take longer than the work; how long depends on the threading layer and on what else runs:
    1,000 spheres took 180 us a step on one thread and 390 on two of which one was busy elsewhere. The slower way is tried
    again now and then, soon at first and then the more seldom the slower it is, so that the trials cost a few hundredths.
    """

    SOON, TRIAL = 2, 40

    def __init__(self):
        self.seconds: list[Any] = [None, None]  # of the last launch on all threads and on one
        self.quick = 0  # 0: all threads are quicker; 1: one is
        self.votes = 0  # trials in succession that the other way won
        self.wait = self.SOON  # launches between two trials, at the most
        self.left = self.wait  # launches until the other way is tried
        self.first = True

    def choose(self):
        """Threads of the next launch, 0 for all or 1."""
        if self.left <= 0:
            return 1 - self.quick
        self.left -= 1
        return self.quick

    def note(self, threads, seconds):
        """A launch with this choice took so long."""
        if self.first:  # perhaps it was compiled
            self.first = False
            return
        self.seconds[threads] = seconds
        if threads == self.quick or self.seconds[self.quick] is None:  # the last launch was interrupted
            return
        # Only launches side by side are compared: with means over many, 70,000 rocks that overlap took one thread, and twice the time, because
        # as many that mostly did not had been quick before. Any one of the two may have been kept waiting, so the other way must win twice.
        before = self.seconds[self.quick]
        self.votes = self.votes + 1 if seconds < before else 0
        if self.votes == 2:
            self.quick, self.votes, self.wait = threads, 0, self.SOON
        self.wait = min(2 * self.wait, 25 * self.TRIAL)
        slower = min(max(seconds, before) / max(min(seconds, before), 1e-7), 25.0)
        self.left = 1 if self.votes else min(int(self.TRIAL * slower), self.wait)


def give_back(rows):
    """Give pages of memory that nobody uses any more back to the system, where tables have many rows.

    The C library keeps what is freed in pieces of up to 32 MB: a new neighbour list left half as much again as was in use.
    """
    if rows >= MANY and (trim := getattr(ctypes.pythonapi, "malloc_trim", None)):
        trim(ctypes.c_size_t(0))


class CPU:
    """Kernels as loops over CPU threads, arrays as NumPy arrays."""

    name = "cpu"
    chunk = 256  # rows per task where a kernel reduces over rows

    @staticmethod
    def launch(kernel, count, arguments):
        rows = int(count[-1]) if kernel.phased else count
        if rows >= kernel.grain:
            size = int(rows).bit_length()
            pace = kernel.paces.get(size)
            if pace is None:
                pace = kernel.paces[size] = Pace()
            threads, start = pace.choose(), perf_counter()
            kernel.loop(count, arguments, threads)
            pace.note(threads, perf_counter() - start)
        elif rows > 0:
            # Waiting for a second thread takes longer than a little work, above all on a busy machine.
            kernel.loop(count, arguments, 1)

    empty = staticmethod(np.empty)
    zeros = staticmethod(np.zeros)

    @staticmethod
    def concatenate(first, second):
        return np.concatenate([first, second])

    @staticmethod
    def copy(array):
        return array.copy()

    @staticmethod
    def view(array, rows, first, last):
        """The first rows of some columns of an (n,k) array, sharing its memory."""
        return array[:rows, first:last]

    @staticmethod
    def peak(array):
        """The largest entry, or 0 where there is none."""
        # NumPy's maximum takes 3 us, also of one number.
        count = len(array)
        if count == 1:
            return array.item()
        return float(array.max()) if count > 20 else float(max(array.tolist(), default=0.0))

    @staticmethod
    def put(target, rows, values):
        target[rows] = values

    @staticmethod
    def table(table):
        """The table as NumPy arrays."""
        return table

    @staticmethod
    def upload(table, **views):
        """The table where kernels run; views: columns that are there already."""
        return table

    @staticmethod
    def renumber(pairs, rows):
        pairs[:, 1] = rows[pairs[:, 1]]
        return pairs

    @staticmethod
    def column(array, k):
        return np.ascontiguousarray(array[:, k])

    @staticmethod
    def to_device(array):
        return array

    @staticmethod
    def to_host(array):
        return array


DEVICE: list = [CPU]


class use:
    """Run kernels on this device within the block."""

    def __init__(self, device):
        self.device = device

    def __enter__(self):
        DEVICE.append(self.device)
        return self.device

    def __exit__(self, *fault):
        DEVICE.pop()


_chosen = ["NUMBA_NUM_THREADS" in os.environ]  # whether somebody has said how many threads to take


def set_threads(count):
    """Use this many CPU threads from now on; results do not depend on it."""
    most = _settings["NUMBA_NUM_THREADS"]
    if not 1 <= count <= most:
        raise ValueError(f"threads = {count}: choose 1 to {most} (this machine's cores, or NUMBA_NUM_THREADS)")
    numba.set_num_threads(int(count))
    _chosen[0] = True


def suggest_threads(count):
    """Use this many CPU threads, or as many as there are, unless somebody has said how many."""
    if not _chosen[0]:
        numba.set_num_threads(min(count, _settings["NUMBA_NUM_THREADS"]))


def layers():
    """The threading layers that may be taken, as text, and who says so."""
    if _settings["THREADING_LAYER"] != "default":
        return f"{_settings['THREADING_LAYER']} (NUMBA_THREADING_LAYER)"
    return ", ".join(_settings["THREADING_LAYER_PRIORITY"])


compiled, watching = watch.compiled, watch.watching

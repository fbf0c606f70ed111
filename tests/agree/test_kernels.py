"""Kernels are compiled once and never out of date."""

import ast
import dis
import functools
import json
import math
import os
import shutil
import subprocess
import sys
import types
from importlib.util import cache_from_source
from pathlib import Path
from typing import NamedTuple

import numba
import numpy as np
import pytest

import clast
from clast.kernels import backend, launch, reached

SEARCH = """
import clast
from clast.kernels import backend
from clast.kernels.reached import stored
scene = clast.Scene()
scene.add(clast.Sphere(0.01), position=[(0.0, 0.0, 0.0), (0.0, 0.0, 0.0198)])
print(len(clast.find_contacts(scene).gap), len(backend.compiled()))
"""

STEPS = """
import clast
from clast.kernels import backend
from clast.kernels.reached import stored
scene = clast.Scene()
scene.add(clast.Plane())
scene.add(clast.Sphere(0.01), position=[(0.0, 0.0, 0.0099), (0.0, 0.0, 0.0298)])
sim = clast.Simulation(scene)
sim.step(20)
print(len(sim.contacts().gap), len(backend.compiled()))
"""


def python(program, **surroundings):
    done = subprocess.run(
        [sys.executable, "-c", program], env=os.environ | surroundings, capture_output=True, text=True, timeout=400
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


@pytest.mark.parametrize("program", [SEARCH, pytest.param(STEPS, marks=pytest.mark.slow)])
def test_warm_start_compiles_nothing(program, tmp_path):
    cold = python(program, NUMBA_CACHE_DIR=str(tmp_path))
    warm = python(program, NUMBA_CACHE_DIR=str(tmp_path))
    assert int(cold[1]) > 5
    assert warm == [cold[0], "0"]


ROW = """
law = None


def answer_row(i, out):
    out[i] = law(out[i])
"""

GONE = """
import numpy as np
import rows
from clast.kernels import backend
scope = {"__name__": "a program that is gone"}
exec(compile("import clast\\n@clast.func\\ndef law(x):\\n    return 2.0 * x\\n", rows.__file__, "exec"), scope)
out = np.arange(4.0)
backend.kernel(rows.answer_row, law=scope["law"])(4, out)
print(out.sum(), len(backend.compiled()))
"""


def test_a_law_of_a_program_that_is_gone_is_compiled_anew(tmp_path):
    """What such a kernel is made of is on the disk, and a module that nobody can import is named there."""
    (tmp_path / "rows.py").write_text(ROW, encoding="utf-8")
    around = {"NUMBA_CACHE_DIR": str(tmp_path / "cache"), "PYTHONPATH": str(tmp_path)}
    assert python(GONE, **around)[0] == "12.0"
    assert python(GONE, **around) == ["12.0", "1"]  # alone: what is not of that program is on the disk


THIRD = """
from clast.kernels.reached import stored

@stored({})
def one_over(x):
    return 1.0 / x
"""
CALLED = """
from clast.kernels import backend
import third
try:
    print(third.one_over(0.0), len(backend.compiled()))
except ZeroDivisionError:
    print("refused", len(backend.compiled()))
"""


def test_other_flags_of_a_loop_that_python_calls_are_other_code(tmp_path):
    paths = os.pathsep.join([str(tmp_path), str(Path(clast.__file__).parents[1])])
    around, told = {"NUMBA_CACHE_DIR": str(tmp_path / "cache"), "PYTHONPATH": paths}, []
    for flags in ("", 'error_model="numpy"', ""):
        (tmp_path / "third.py").write_text(THIRD.format(flags), encoding="utf-8")
        told.append(python(CALLED, **around))
    assert told == [["refused", "1"], ["inf", "1"], ["refused", "0"]]


# Names of the kernels of every row function, and of one with two laws.
NAMES = """
import importlib, inspect, json, pkgutil, sys
import clast
from clast.kernels import backend
from clast.kernels.reached import stored
rows = {}
for module in pkgutil.walk_packages(clast.__path__, "clast."):
    if not module.name.startswith(("clast.__main__", "clast.view", "clast.cli")):
        for name, held in vars(importlib.import_module(module.name)).items():
            if inspect.isfunction(held) and name.endswith(("_row", "_block", "_chunk", "_group")):
                rows[f"{held.__module__}.{name}"] = held
assert len(rows) > 80 and clast.__file__.startswith(sys.argv[1]), (len(rows), clast.__file__)
names = {row: backend.kernel(rows[row]).name for row in rows}
ball_block = next(rows[row] for row in rows if row.endswith(".ball_block"))
laws = next(module for name, module in sys.modules.items() if name.startswith("clast.") and name.endswith(".laws"))
for law in (laws.hertz, laws.linear):
    names[f"{law.__name__}.ball_block"] = backend.kernel(ball_block, law=law).name
print(json.dumps(names))
"""


class Package:
    """A copy of the package, to edit."""

    def __init__(self, folder):
        self.folder = folder
        shutil.copytree(Path(clast.__file__).parent, folder / "clast", ignore=shutil.ignore_patterns("__pycache__"))
        self.before = self.names()

    def names(self):
        command = [sys.executable, "-c", NAMES, str(self.folder)]
        surroundings = os.environ | {"PYTHONPATH": str(self.folder)}
        done = subprocess.run(command, env=surroundings, capture_output=True, text=True, timeout=100)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def write(self, file, text):
        """Put a file in the place of another, of which no bytecode stays: within a second and of the same length it would be taken for the new one's."""
        file.write_text(text)
        Path(cache_from_source(file)).unlink(missing_ok=True)

    def changed(self, name, old, new):
        """Kernels whose names change with an edit of a file, which is taken back."""
        (file,) = self.folder.rglob(name)
        text = file.read_text()
        assert text.count(old) == 1
        self.write(file, text.replace(old, new))
        after = self.names()
        self.write(file, text)
        assert after.keys() == self.before.keys()
        return {row for row, name in after.items() if name != self.before[row]}

    @functools.cached_property
    def words(self):
        """The names that stand in the body of each function of the package, by its name alone."""
        found = {}
        for file in self.folder.rglob("*.py"):
            for node in ast.walk(ast.parse(file.read_text())):
                if isinstance(node, ast.FunctionDef):
                    inner = [getattr(x, "id", getattr(x, "attr", None)) for x in ast.walk(node)]
                    found.setdefault(node.name, set()).update(inner)
        return found


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    return Package(tmp_path_factory.mktemp("edited"))


def test_names_are_the_same_in_every_process_and_differ_from_each_other(package):
    assert package.names() == package.before
    assert len(set(package.before.values())) == len(package.before)


def test_an_edit_of_a_law_changes_the_kernels_with_that_law(package):
    old = "shear, c = 4.0 * mix.ratio * mix.ratio * k"
    assert package.changed("laws.py", old, f"{old} * 1.5") == {"linear.ball_block"}
    old = "k = 4.0 / 3.0 * mix.young * math.sqrt(touch.radius * whole.overlap)\n"
    changed = package.changed("laws.py", old, f"{old}    k = 1.5 * k\n")
    words = package.words
    assert {"hertz.ball_block"} <= changed <= {row for row in package.before if "law" in words[row.rsplit(".", 1)[1]]}
    assert "linear.ball_block" not in changed


def test_an_edit_of_a_small_function_changes_what_reaches_it_and_nothing_else(package):
    """What reaches it is found a second time here, from the words in the sources."""
    changed = package.changed(
        "vec.py", "a[0] * b[0] + a[1] * b[1] + a[2] * b[2]", "a[2] * b[2] + a[1] * b[1] + a[0] * b[0]"
    )
    words = package.words
    direct = {name for name in words if "dot" in words[name]}
    reaching, more = set(), {"dot"}
    while more:
        reaching |= more
        more = {name for name in words if words[name] & reaching} - reaching
    own = {row: row.rsplit(".", 1)[1] for row in package.before}
    assert {row for row in own if own[row] in direct} <= changed <= {row for row in own if own[row] in reaching}
    assert 10 < len(changed) < len(own) - 20


@pytest.mark.parametrize(
    "file, old, new",
    [
        ("library.py", "manager.add_instruction_combine_pass()", "pass"),
        ("quick.py", "return _sizes[key][0]", "return _sizes[key][0] + 0"),
    ],
)
def test_an_edit_of_what_all_compiling_goes_through_changes_every_name(package, file, old, new):
    assert package.changed(file, old, new) == set(package.before)


def test_what_is_not_code_changes_no_name(package):
    assert (
        package.changed("vec.py", "import math\n", "import math  # a comment\n\n\ndef unused(a):\n    return a\n")
        == set()
    )


def test_an_edit_in_a_table_changes_what_makes_one(package):
    """Rows that only read a table are told apart when they are loaded; see below."""
    changed = package.changed("laws.py", "class Touch(NamedTuple):\n", "class Touch(NamedTuple):\n    extra: float\n")
    assert {"hertz.ball_block", "linear.ball_block"} <= changed
    assert not any(row.endswith(".place_row") for row in changed)


def test_global_names_are_those_that_the_interpreter_loads():
    seen = 0
    for name in clast.__all__:  # modules are imported when their names are first used
        getattr(clast, name)
    for module in [m for name, m in sys.modules.items() if name.startswith("clast.")]:
        for held in vars(module).values():
            code = getattr(getattr(held, "py_func", held), "__code__", None)
            if code is not None:
                loads = {i.argval for i in dis.get_instructions(code) if i.opname == "LOAD_GLOBAL"}
                assert reached.global_names(code) == loads
                seen += 1
    assert seen > 500
    many = "\n".join(f"    a{k} + x.b{k}" for k in range(400))
    scope = {}
    exec(f"def wide(x):\n{many}\n", scope)
    assert reached.global_names(scope["wide"].__code__) == {f"a{k}" for k in range(400)}


LAW = """
{extra}
def law(touch, mix, dt):
    return {body}, (0.0, 0.0, 0.0), touch.slip
"""


def digest(body="touch.overlap", extra="", **names):
    """The hash of what a user's law reaches."""
    scope = {"clast": clast, "np": np, "numba": numba, "NamedTuple": NamedTuple, "__name__": "users_own", **names}
    exec(LAW.format(body=body, extra=extra), scope)
    return reached.Reached(scope["law"]).digest


def module(**held):
    made = types.ModuleType("users_module")
    vars(made).update(held)
    return made


JITTED = "@clast.func\ndef help(x):\n    return {} * x\n"
TABLE = "class Row(NamedTuple):\n    {}: float\n    {}: float\n"
WAYS = {
    "code": ({"body": "touch.overlap + 1.0"}, {"body": "1.0 + touch.overlap"}),
    "constant": ({"body": "2.0 * touch.overlap"}, {"body": "3.0 * touch.overlap"}),
    "type of a constant": ({"body": "2 * touch.overlap"}, {"body": "2.0 * touch.overlap"}),
    "column": ({"body": "touch.overlap"}, {"body": "touch.radius"}),
    "global number": ({"body": "stiff", "stiff": 1.0}, {"body": "stiff", "stiff": 2.0}),
    "type of a global": ({"body": "stiff", "stiff": 1}, {"body": "stiff", "stiff": 1.0}),
    "global tuple": ({"body": "stiff[0]", "stiff": (1.0, 2.0)}, {"body": "stiff[0]", "stiff": (3.0, 2.0)}),
    "global array": ({"body": "stiff[0]", "stiff": np.arange(3)}, {"body": "stiff[0]", "stiff": np.arange(3) + 1}),
    "type of an array": (
        {"body": "stiff[0]", "stiff": np.zeros(3)},
        {"body": "stiff[0]", "stiff": np.zeros(3, np.int64)},
    ),
    "function": (
        {"body": "help(touch.overlap)", "extra": JITTED.format(3.0)},
        {"body": "help(touch.overlap)", "extra": JITTED.format(4.0)},
    ),
    "global of a function": (
        {"body": "help(touch.overlap)", "extra": JITTED.format("stiff"), "stiff": 1.0},
        {"body": "help(touch.overlap)", "extra": JITTED.format("stiff"), "stiff": 2.0},
    ),
    "flags of a function": (
        {"body": "help(1.0)", "extra": "help = numba.njit(lambda x: x)"},
        {"body": "help(1.0)", "extra": "help = numba.njit(fastmath=True)(lambda x: x)"},
    ),
    "function of a module": (
        {"body": "own.help(1.0)", "own": module(help=lambda x: x)},
        {"body": "own.help(1.0)", "own": module(help=lambda x: x + 1.0)},
    ),
    "number in a module of a module": (
        {"body": "own.inner.stiff", "own": module(inner=module(stiff=1.0))},
        {"body": "own.inner.stiff", "own": module(inner=module(stiff=2.0))},
    ),
    "functions in a tuple": (
        {"body": "own[1](1.0)", "own": (abs, lambda x: x)},
        {"body": "own[1](1.0)", "own": (abs, lambda x: -x)},
    ),
    "inner function": (
        {"body": "help(1.0)", "extra": "def help(x):\n    return sum([y + 1.0 for y in (x, x)])"},
        {"body": "help(1.0)", "extra": "def help(x):\n    return sum([y + 2.0 for y in (x, x)])"},
    ),
    "default": (
        {"body": "help()", "extra": "def help(x=1.0):\n    return x"},
        {"body": "help()", "extra": "def help(x=2.0):\n    return x"},
    ),
    "closure": (
        {"body": "help()", "extra": "help = (lambda y: lambda: y)(1.0)"},
        {"body": "help()", "extra": "help = (lambda y: lambda: y)(2.0)"},
    ),
    "table": (
        {"body": "Row(1.0, 2.0).a", "extra": TABLE.format("a", "b")},
        {"body": "Row(1.0, 2.0).a", "extra": TABLE.format("b", "a")},
    ),
}


@pytest.mark.parametrize("way", WAYS)
def test_a_users_law_is_known_by_all_that_it_uses(way):
    """The disk cache does not look into a user's function: its kernel must have another name when it changes."""
    one, other = WAYS[way]
    assert digest(**one) == digest(**one)
    assert digest(**one) != digest(**other)


def test_what_a_law_does_not_use_does_not_matter():
    assert digest(stiff=1.0) == digest(stiff=2.0, overlap=np.arange(4))
    assert digest(extra="unused = 1.0") == digest(extra="def unused(x):\n    return x")


def test_functions_that_call_each_other_are_followed_once():
    circle = "def help(x):\n    return law(x, x, x) if x > {} else x"
    assert digest("help(dt)", circle.format(1)) == digest("help(dt)", circle.format(1))
    assert digest("help(dt)", circle.format(1)) != digest("help(dt)", circle.format(2))


def test_what_cannot_be_told_apart_is_never_taken_from_the_disk():
    assert digest("own", own=object()) != digest("own", own=object())


def scale_row(i, source, target):
    target[i] = FIRST * source[i] + SECOND


FIRST, SECOND = 1.0, 2.0


def test_kernels_are_told_apart_by_bound_names_and_flags():
    ways = [
        {},
        {"FIRST": 1.0, "SECOND": 2.5},
        {"FIRST": 2.5, "SECOND": 1.0},
        {"FIRST": 2.5},
        {"SECOND": 2.5},
        {"FIRST": 1},
        {"FIRST": True},
        {"FIRST": 0.0},
        {"FIRST": -0.0},
        {"FIRST": (1, 2)},
        {"FIRST": (1.0, 2.0)},
        {"FIRST": (True, 2.0)},
        {"FIRST": ((0.0,), 2.0)},
        {"FIRST": ((-0.0,), 2.0)},
        {"fastmath": {"contract"}},
        {"fastmath": {"contract", "nsz"}},
        {"allocates": True},
        {"phased": True},
    ]
    kernels = [backend.kernel(scale_row, **way) for way in ways]
    assert kernels == [backend.kernel(scale_row, **way) for way in ways]
    assert len(set(kernels)) == len(ways)
    assert len({kernel.name for kernel in kernels}) == len(ways)


def test_kernels_that_differ_in_their_grain_share_their_code():
    one, other = backend.kernel(scale_row, grain=2), backend.kernel(scale_row, grain=1000)
    assert (one.grain, other.grain) == (2, 1000)
    assert one.name == other.name and one.loop is other.loop


# A module with kernels of its own, the second with another function, and what it compiled.
OWN = """
import sys
import numpy as np
from typing import NamedTuple
from clast.kernels import backend
from clast.kernels.reached import stored
from helping import help, stir

class {table}(NamedTuple):
    {columns}

def one_row(i, table, target):
    target[i] = help(table.a[i])

def two_row(i, table, target):
    target[i] = table.a[i] - table.b[i]

@stored()
def three(x):
    return stir(x)

if __name__ == "__main__":
    import own
    target = np.zeros(2)
    table = own.{table}(a=np.full(2, 5.0), b=np.full(2, 3.0))
    backend.kernel(own.one_row)(2, table, target[:1])
    one = target[0]
    backend.kernel(own.two_row)(2, table, target[:1])
    print(one, target[0], own.three(1.0), *sorted(set(backend.compiled()) & {{"one_row", "two_row", "three"}}))
"""
HELPING = """
from clast.kernels import backend
from clast.kernels.reached import stored

@backend.func
def help(x):
    return {} * x

@backend.func
def stir(x):
    return {} + x
"""


def test_only_what_an_edit_reaches_is_compiled_again(tmp_path):
    def run(table="Table", columns=("a", "b"), first=2.0, second=3.0):
        lines = "\n    ".join(f"{column}: np.ndarray" for column in columns)
        (tmp_path / "own.py").write_text(OWN.format(table=table, columns=lines))
        (tmp_path / "helping.py").write_text(HELPING.format(first, second))
        paths = f"{tmp_path}{os.pathsep}{Path(clast.__file__).parents[1]}"
        program = "import runpy; runpy.run_module('own', run_name='__main__')"
        return python(program, NUMBA_CACHE_DIR=str(tmp_path / "cache"), PYTHONPATH=paths, PYTHONDONTWRITEBYTECODE="1")

    everything = ["one_row", "three", "two_row"]
    assert run() == ["10.0", "2.0", "4.0", *everything]
    assert run() == ["10.0", "2.0", "4.0"]
    assert run(first=4.0) == ["20.0", "2.0", "4.0", "one_row"]
    assert run(second=5.0) == ["10.0", "2.0", "6.0", "three"]
    # The columns change places: to numba a table of the same class with the same types.
    assert run(columns=("b", "a")) == ["10.0", "2.0", "4.0", "one_row", "two_row"]
    # The index still names a class that is gone.
    assert run(table="Other") == ["10.0", "2.0", "4.0", "one_row", "two_row"]
    assert run(table="Other") == ["10.0", "2.0", "4.0"]


class Table(NamedTuple):
    a: np.ndarray
    b: np.ndarray
    c: np.ndarray


def named_row(i, table, target):
    target[i] = take(table, i)


@backend.func
def take(table, i):
    return table.b[i]


def placed_row(i, table, target):
    target[i] = table[1][i]


def unpacked_row(i, table, target):
    _, b, _ = table
    target[i] = b[i]


def starred_row(i, table, target):
    target[i] = Other(*table).middle[i]


class Other(NamedTuple):
    first: np.ndarray
    middle: np.ndarray
    last: np.ndarray


@pytest.mark.parametrize("row", [named_row, placed_row, unpacked_row, starred_row])
def test_columns_can_be_asked_for_in_any_way(row):
    target = np.zeros(3)
    for width in (np.float64, np.float32):  # compiled twice
        backend.kernel(row)(3, Table(np.zeros(3), np.arange(3.0, dtype=width), np.zeros(3)), target)
        assert target.tolist() == [0.0, 1.0, 2.0]
        target[:] = 7.0


def watched_loop(row):
    """A loop that compiles and runs nothing, and lists of what it packed and ran."""
    packed, ran = [], []

    def pack(*given):
        packed.append(given)
        return 0, 0  # no block: giving it back does nothing

    names = backend.kernel(row).reached.names
    return launch.Loop(pack, names, lambda block, part, count, threads: ran.append((count, threads))), packed, ran


def test_only_columns_that_the_code_names_are_handed_over():
    loop, packed, ran = watched_loop(named_row)
    table, target = Table(np.zeros(3), np.ones(3), np.zeros(3)), np.zeros(3)
    loop(3, (table, target))
    loop(3, (table, target.copy()), threads=1)
    assert ran == [(3, 0), (3, 1)]
    for given, _ in packed:
        assert type(given) is Table
        assert given.a is None and given.b is table.b and given.c is None
    assert packed[0][1] is target
    loop(3, (Other(*table), target))  # another class in the same place
    assert type(packed[2][0]) is Other


def test_the_same_arguments_are_packed_once():
    loop, packed, ran = watched_loop(named_row)
    table, target = Table(np.zeros(3), np.ones(3), np.zeros(3)), np.zeros(3)
    for count in (3, 2, 1):
        loop(count, (table, target))
    assert len(packed) == 1 and [count for count, _ in ran] == [3, 2, 1]
    loop(3, (table._replace(b=np.ones(3)), target))
    assert len(packed) == 2
    loop(3, (table, target))
    assert len(packed) == 3


def test_launches_in_turn_that_differ_in_numbers_are_packed_once_each():
    loop, packed, ran = watched_loop(named_row)
    table, target = Table(np.zeros(3), np.ones(3), np.zeros(3)), np.zeros(3)
    families = launch.same(0, 300), launch.same(300, 400), launch.same(700, 5)
    for _ in range(10):
        for where in families:
            loop(3, (where, table, target))
    assert len(ran) == 30 and len(packed) <= len(families) + 1
    assert {block.arguments[0] for block in loop.blocks} == set(families)
    # Of tables that are no longer handed over nothing stays in memory.
    loop(3, (families[0], table, target.copy()))
    assert all(block.arguments[2] is not target for block in loop.blocks)


def test_a_loop_keeps_few_blocks():
    loop, _, _ = watched_loop(named_row)
    table, target = Table(np.zeros(3), np.ones(3), np.zeros(3)), np.zeros(3)
    for k in range(200):
        for _ in range(2):
            loop(3, (launch.same(k, 300), table, target))
    assert 0 < len(loop.blocks) <= launch.MOST


def test_blocks_of_large_tables_are_not_kept():
    loop, packed, _ = watched_loop(named_row)
    table = Table(np.zeros(3), np.ones(launch.HELD // 8), np.zeros(3))
    for _ in range(2):
        loop(3, (table, np.zeros(3)))
    assert len(packed) == 2 and not loop.blocks


def allocating_row(i, table, target):
    """Makes an array, so numba counts references to all arrays here."""
    local = np.empty(2)
    local[0] = table.b[i]
    target[i] = local[0]


def test_a_block_that_is_run_again_reads_what_arrays_hold_now():
    kernel = backend.kernel(allocating_row, allocates=True)
    table, target = Table(np.zeros(3), np.arange(3.0), np.zeros(3)), np.zeros(3)
    for k in range(200):
        table.b[:] = k
        kernel(3, table, target)
        assert target.tolist() == [k, k, k]
    assert kernel.loop.blocks
    other = np.zeros(3)
    kernel(3, table, other)
    assert other.tolist() == [199.0] * 3


def count_row(i, target, thread):
    target[i] += 1
    thread[i] = numba.get_thread_id()


def after_row(i, target):
    """Twice the row that is eight rows ahead, which belongs to the phase before."""
    made = np.full(2, target[i - 8])
    target[i] = made[0] + made[1]


def heavy_row(i, target, thread):
    """Note which thread works a row off; the last quarter of a thousand takes long."""
    thread[i] = numba.get_thread_id()
    x = 1.0
    for _ in range(20_000 if i >= 750 else 1):
        x = math.sqrt(x + 1.0)
    target[i] += int(x)


def spread_over_threads():
    """Every row is worked off once, by as many threads as are asked for, phase after phase."""
    kernel = backend.kernel(count_row, grain=1)
    for rows in (0, 1, 2, 3, 7, 1000):
        for most in range(1, numba.config.NUMBA_NUM_THREADS + 1):
            backend.set_threads(most)
            for threads in (0, 1):
                target, thread = np.zeros(rows, np.int64), np.zeros(rows, np.int64)
                kernel.loop(rows, (target, thread), threads)
                assert target.tolist() == [1] * rows
                assert len(set(thread.tolist())) <= (1 if threads else most), (rows, most, threads)
            target = np.ones(8 * 30)
            start = np.arange(8, len(target) + 1, 8)
            backend.kernel(after_row, grain=1, phased=True, allocates=True).loop(start, (target,))
            assert target.tolist() == np.repeat(2.0 ** np.arange(30), 8).tolist()
    # All work in a launch is in the last quarter of its rows: in one of many launches, at the least, nobody was kept waiting, and all threads had some of it.
    for _ in range(200):
        target, thread = np.zeros(1000, np.int64), np.zeros(1000, np.int64)
        backend.kernel(heavy_row, grain=1).loop(1000, (target, thread), 0)
        assert target.min() > 0
        if len(set(thread[750:].tolist())) == most:
            return
    raise AssertionError(f"{most} threads were never at work together")


@pytest.mark.parametrize("layer", ["omp", "workqueue"])
def test_rows_are_spread_over_threads(layer):
    program = f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r})\n"
    program += "import numba, test_kernels; test_kernels.spread_over_threads(); print(numba.threading_layer())"
    assert python(program, NUMBA_THREADING_LAYER=layer) == [layer]


def test_a_kernel_takes_the_number_of_threads_that_is_quicker():
    pace, taken = backend.Pace(), []
    for turn in range(10_000):
        threads = pace.choose()
        # One thread is three times as quick, then three times as slow; at times something else is in the way.
        seconds = (1.0 if (threads == 1) == (turn < 5000) else 3.0) + (20.0 if turn % 97 == 0 else 0.0)
        pace.note(threads, seconds if turn else 1000.0)
        taken.append(threads)
    assert sum(taken[100:5000]) > 0.95 * 4900
    assert sum(taken[8000:]) < 0.05 * 2000
    assert sum(taken[8000:]) > 5  # and the other is tried


def test_more_work_than_before_does_not_make_a_kernel_take_one_thread():
    pace, taken = backend.Pace(), []
    for turn in range(200):
        threads, work = pace.choose(), 1.0 if turn < 100 else 5.0
        pace.note(threads, work * (2.0 if threads == 1 else 1.0) + (20.0 if turn % 13 == 0 else 0.0))
        taken.append(threads)
    assert sum(taken) < 15


def test_a_launch_that_was_interrupted_tells_nothing_of_its_pace():
    pace = backend.Pace()
    pace.note(pace.choose(), 1.0)  # perhaps it was compiled
    for _ in range(pace.SOON + 1):
        pace.choose()  # and no more: the launch raised
    pace.note(pace.choose(), 1.0)
    pace.note(pace.choose(), 1.0)
    assert pace.choose() in (0, 1)


LAYER = """
import {first}
import clast.kernels.backend, numba
numba.get_num_threads()
print(numba.threading_layer(), *numba.config.THREADING_LAYER_PRIORITY)
"""


def test_openmp_is_taken_unless_the_user_says_otherwise():
    program, layers = LAYER.format(first="clast"), ["omp", "tbb", "workqueue"]
    free = {"NUMBA_THREADING_LAYER": "default", "NUMBA_THREADING_LAYER_PRIORITY": " ".join(["tbb", "omp", "workqueue"])}
    without = "import os; del os.environ['NUMBA_THREADING_LAYER_PRIORITY']\n" + program
    assert python(without, **free) == ["omp", *layers]
    assert python(without.replace("import clast\n", "import numba\n", 1), **free) == ["omp", *layers]
    assert python(without, **free | {"NUMBA_THREADING_LAYER": "workqueue"})[0] == "workqueue"
    own = ["workqueue", "tbb", "omp"]
    assert python(program, **free | {"NUMBA_THREADING_LAYER_PRIORITY": " ".join(own)}) == ["workqueue", *own]
    assert python(program, **free)[1:] == ["tbb", "omp", "workqueue"]
    said = f"import numba; numba.config.THREADING_LAYER = 'workqueue'\n{without}"
    assert python(said, **free)[0] == "workqueue"


def test_no_function_takes_its_arithmetic_from_the_kernel_that_calls_it_first():
    """numba hands fast-math flags down to functions that leave them open; results would depend on what ran before."""
    plain, fused = backend.func(lambda a, b, c: a * b + c), backend.fused(lambda a, b, c: a * b + c)
    large = backend.part(lambda a, b, c: a * b + c)

    @numba.njit(fastmath={"contract", "nsz"})
    def quick(a, b, c):
        return plain(a, b, c) + fused(a, b, c) + large(a, b, c)

    @numba.njit
    def exact(a, b, c):
        return fused(a, b, c + 1) + plain(a, b, c)

    exact(1.0, 2.0, 3)
    quick(1.0, 2.0, 3.0)
    for function, expected in ((plain, False), (large, False), (fused, True)):
        for text in function.inspect_llvm().values():
            assert ("fmul contract" in text or "fmul nsz contract" in text) == expected


def test_only_small_functions_are_put_into_every_place_that_calls_them():
    """numba hands that down too: large ones were taken into a kernel as often as they were called, down to the last."""
    small, large, most = (mark(lambda x: 2.0 * x) for mark in (backend.func, backend.part, backend.search))

    @numba.njit(forceinline=True)
    def calling(x):
        return small(x) + large(x) + most(x)

    assert calling(1.0) == 6.0
    for function, expected in ((small, True), (large, False), (most, False)):
        (text,) = function.inspect_llvm().values()
        assert ("alwaysinline" in text) == expected


@backend.func
def entry(values, k):
    return values[k]


def sum_row(i, out):
    out[i] = entry(out, 0) + entry(out, 1) + entry((3, 0.5), 1)


def test_a_function_has_one_form_for_all_whole_numbers_that_it_can_be_typed_without():
    out = np.array([1.0, 2.0, 0.0])
    backend.kernel(sum_row)(1, out)
    assert out[0] == 3.5
    first, second = numba.types.literal(0), numba.types.literal(1)

    def seen(*given):
        return entry.get_call_template(given, {})[2]

    array = numba.types.float64[::1]
    assert seen(array, first) == seen(array, second) == (array, numba.types.int64)
    mixed = numba.types.Tuple((numba.types.int64, numba.types.float64))
    assert seen(mixed, second) == (mixed, second)


def test_names_that_a_row_does_not_use_make_no_kernel():
    assert backend.kernel(sum_row, PERIODIC=True) is backend.kernel(sum_row)
    assert backend.kernel(sum_row, entry=max) is not backend.kernel(sum_row)

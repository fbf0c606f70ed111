"""Rules that the sources keep: imports run downhill, files stay short, the public names are the visible ones."""

import ast
import functools
import importlib
import inspect
import re
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parents[1] / "src" / "clast"
FILES = sorted(SOURCE.rglob("*.py"))
MOST_LINES = 500

# A module may import from its own line and from lines above it, never from below.
ORDER = (
    ("errors", "tables"),
    ("kernels",),
    ("shapes",),
    ("scene",),
    ("materials",),
    ("broad",),
    ("narrow",),
    ("motion",),
    ("dem", "joints"),
    ("dvi",),
    ("mpi",),
    ("files", "measure"),
    ("run",),
    ("scenes",),
    ("scenefile", "view"),
    ("cli",),
    ("__init__", "__main__"),
)
LEVEL = {name: level for level, names in enumerate(ORDER) for name in names}
# Loops over threads, and text that becomes code, stand in these rooms; elsewhere a comment says why.
KERNEL_ROOMS = ("backend.py", "cuda.py", "primitives.py")


def name_of(path):
    return str(path.relative_to(SOURCE))


def room(path):
    """The first step of a file's path inside the package, without suffix."""
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


@functools.cache
def parsed(text):
    """The tree of a source; several rules look at each."""
    return ast.parse(text)


def imported_rooms(path, inside=True):
    """(line, room) of every import from the package; inside: also those that stand inside functions."""
    package = ("clast", *path.relative_to(SOURCE).parent.parts)
    tree = parsed(path.read_text(encoding="utf-8"))
    for node in ast.walk(tree) if inside else tree.body:
        if isinstance(node, ast.Import):
            targets = [tuple(name.name.split(".")) for name in node.names]
        elif isinstance(node, ast.ImportFrom):
            start = package[: len(package) - node.level + 1] if node.level else ()
            base = start + tuple((node.module or "").split(".") if node.module else ())
            targets = [(*base, name.name) for name in node.names]
        else:
            continue
        for target in targets:
            if target[0] == "clast":
                yield node.lineno, (target[1] if len(target) > 1 and target[1] in LEVEL else "__init__")


def uphill(path):
    """Imports of a file that point to a line below its own."""
    own = LEVEL[room(path)]
    return [f"{name_of(path)}:{line} imports {other}" for line, other in imported_rooms(path) if LEVEL[other] > own]


def test_every_module_has_its_place_in_the_order():
    assert sorted({room(path) for path in FILES} - set(LEVEL)) == []


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_imports_run_downhill(path):
    assert uphill(path) == []


def test_modules_do_not_import_each_other_in_a_circle():
    needs = {}
    for path in FILES:
        needs.setdefault(room(path), set()).update(other for _, other in imported_rooms(path, inside=False))
    # The package itself is exempt: __init__ imports everything, that is its purpose.
    placed = {"__init__"} | (set(LEVEL) - set(needs))
    while needs:
        free = [name for name, others in needs.items() if others - {name} <= placed]
        assert free, f"a circle among {sorted(needs)}"
        placed.update(free)
        for name in free:
            del needs[name]


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_files_stay_short(path):
    assert len(path.read_text(encoding="utf-8").splitlines()) < MOST_LINES


def undocumented_loops(path):
    """Uses of exec, eval and prange without a comment on the line or the one above it that says why."""
    text = path.read_text(encoding="utf-8")
    lines = text.splitlines()
    for node in ast.walk(parsed(text)):
        called = isinstance(node, ast.Call) and isinstance(node.func, ast.Name | ast.Attribute)
        word = (node.func.id if isinstance(node.func, ast.Name) else node.func.attr) if called else None
        if word in ("exec", "eval", "prange") and "#" not in "".join(lines[node.lineno - 2 : node.lineno]):
            yield f"{name_of(path)}:{node.lineno} {word}"


@pytest.mark.parametrize("path", [path for path in FILES if path.name not in KERNEL_ROOMS], ids=name_of)
def test_exec_and_prange_stay_in_their_rooms_or_say_why(path):
    assert list(undocumented_loops(path)) == []


def called_by(node):
    """The last name of what is called, or of a decorator."""
    return getattr(node, "id", getattr(node, "attr", None))


def read_unbound(text):
    """Names that kernels of a file bind, and that functions which they call read from the file, where these are not bound."""
    tree = parsed(text)
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and called_by(node.func) == "kernel"]
    words = [word for call in calls for word in call.keywords]
    bound = {word.arg for word in words if word.arg not in FLAGS}
    # kernel(..., **acts(law)): the names that the function gives.
    given = {called_by(word.value.func) for word in words if word.arg is None and isinstance(word.value, ast.Call)}
    makers = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name in given]
    tables = [node for maker in makers for node in ast.walk(maker) if isinstance(node, ast.Dict)]
    bound |= {key.value for table in tables for key in table.keys if isinstance(key, ast.Constant)}
    for function in tree.body:
        if isinstance(function, ast.FunctionDef) and CALLED & set(map(called_by, function.decorator_list)):
            read = {node.id for node in ast.walk(function) if isinstance(node, ast.Name)}
            for name in sorted(read & bound - {argument.arg for argument in function.args.args}):
                yield f"{function.name} reads {name}"


FLAGS = {None, "fastmath", "grain", "allocates", "phased"}
CALLED = {"func", "fused", "part", "search", "within"}


def test_what_kernels_bind_reaches_their_functions_as_arguments():
    found = {name_of(path): list(read_unbound(path.read_text(encoding="utf-8"))) for path in FILES}
    assert {name: what for name, what in found.items() if what} == {}


def test_the_rule_about_bound_names_sees_one():
    text = "@func\ndef near(d):\n    return WIDE\n\ndef row(i):\n    near(i)\n\nkernel(row, grain=4, WIDE=True)\n"
    assert list(read_unbound(text)) == ["near reads WIDE"]
    assert list(read_unbound(text.replace("near(d)", "near(d, WIDE)"))) == []
    given = text.replace("WIDE=True", "**acts()") + "\ndef acts():\n    return {'WIDE': True}\n"
    assert list(read_unbound(given)) == ["near reads WIDE"]


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_every_file_begins_by_saying_what_is_in_it(path):
    text = path.read_text(encoding="utf-8")
    assert not text.strip() or ast.get_docstring(parsed(text))


def test_the_public_names_are_the_visible_ones():
    clast = importlib.import_module("clast")
    assert list(clast.__all__) == sorted(set(clast.__all__), key=list(clast.__all__).index)
    for name in clast.__all__:
        assert hasattr(clast, name), name
    visible = {name for name, value in vars(clast).items() if name[0] != "_" and not inspect.ismodule(value)}
    assert visible <= set(clast.__all__)
    assert set(dir(clast)) >= set(clast.__all__)


@pytest.mark.parametrize("path", sorted((Path(__file__).parent / "data").glob("*.py")), ids=lambda path: path.name)
def test_programs_that_make_reference_values_do_not_know_clast(path):
    assert re.search(r"^\s*(import|from) clast\b", path.read_text(encoding="utf-8"), re.M) is None


@pytest.mark.parametrize(
    ("place", "text", "expected"),
    [
        ("tables.py", "from .scene import Scene", ["tables.py:1 imports scene"]),
        ("kernels/vec.py", "def f():\n    from clast import cli", ["kernels/vec.py:2 imports cli"]),
        ("broad/bins.py", "from ..dem import laws", ["broad/bins.py:1 imports dem"]),
        ("broad/bins.py", "from .. import tables\nfrom . import near\nimport numpy", []),
        ("scene/scene.py", "import clast.run.simulation", ["scene/scene.py:1 imports run"]),
        ("scene/scene.py", "import clast", ["scene/scene.py:1 imports __init__"]),
    ],
)
def test_the_rule_about_imports_sees_each_form(tmp_path, monkeypatch, place, text, expected):
    monkeypatch.setitem(globals(), "SOURCE", tmp_path)
    (tmp_path / place).parent.mkdir(exist_ok=True)
    (tmp_path / place).write_text(text)
    assert uphill(tmp_path / place) == expected

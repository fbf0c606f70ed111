"""Rules that the sources keep: imports run downhill, files stay short, the public names are the visible ones."""

import ast
import functools
import importlib
import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parents[1] / "src" / "clast"
FILES = sorted(SOURCE.rglob("*.py"))
MOST_LINES = 500

# A module may import from its own line and from lines above it, never from below.
ORDER = (
    ("errors", "tables", "signatures"),
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


def for_types_alone(tree):
    """What stands below `if TYPE_CHECKING:` and never runs: names of what is passed in from below."""
    blocks = [node for node in ast.walk(tree) if isinstance(node, ast.If)]
    return {
        inner
        for node in blocks
        if called_by(node.test) == "TYPE_CHECKING"
        for one in node.body
        for inner in ast.walk(one)
    }


def imported_rooms(path, inside=True):
    """(line, room) of every import from the package; inside: also those that stand inside functions."""
    package = ("clast", *path.relative_to(SOURCE).parent.parts)
    tree = parsed(path.read_text(encoding="utf-8"))
    unseen = for_types_alone(tree)
    for node in ast.walk(tree) if inside else tree.body:
        if node in unseen:
            continue
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


def package_folder():
    """Where the package is that tests import, these sources or an installed one."""
    return str(Path(importlib.import_module("clast").__file__).parent)


def unannotated(owner, name, held):
    """What lacks an annotation of a function, method or property of the package: its parameters by name, "return" for what it gives."""
    held = held.__func__ if isinstance(held, staticmethod | classmethod) else held
    held = held.fget if isinstance(held, property) else getattr(held, "func", getattr(held, "py_func", held))
    if not inspect.isfunction(held) or not held.__code__.co_filename.startswith(package_folder()):
        return
    signature = inspect.signature(held)
    given = [word for word, one in signature.parameters.items() if one.annotation is one.empty]
    given += ["return"] * (signature.return_annotation is signature.empty)
    for word in given:
        if word not in ("self", "cls"):
            yield f"{owner}{name}: {word}"


def unannotated_in(name, held):
    """The same of all that a class makes public, or of a function itself."""
    if not inspect.isclass(held):
        yield from unannotated("", name, held)
        return
    for kind in held.__mro__:
        for inner, one in vars(kind).items():
            if kind.__module__.startswith("clast.") and (inner[0] != "_" or inner in SPOKEN):
                yield from unannotated(f"{kind.__name__}.", inner, one)


SPOKEN = {"__init__", "__call__", "__len__", "__getitem__", "__iter__", "__enter__", "__exit__", "__eq__"}


def public():
    """(name, what it is) of all that users find: the names of the package and of its rooms, and what the reference tells of."""
    clast = importlib.import_module("clast")
    for name in clast.__all__:
        held = getattr(clast, name)
        for inner in getattr(held, "__all__", sorted(vars(held))) if inspect.ismodule(held) else ():
            if inner[0] != "_":
                yield f"{name}.{inner}", getattr(held, inner)
        yield name, held
    text = (SOURCE.parents[1] / "docs" / "reference.md").read_text(encoding="utf-8")
    for place, members in re.findall(r"^::: clast\.(\S+)(?:\n    options: \{members: \[(.*)\]\})?$", text, re.M):
        room, _, name = f"clast.{place}".rpartition(".")
        held = getattr(importlib.import_module(room), name)
        told = members.split(", ") if members else [word for word in vars(held) if word[0] != "_"]
        for word in told if inspect.ismodule(held) else ():
            if getattr(getattr(held, word), "__module__", "") == held.__name__:
                yield f"{place}.{word}", getattr(held, word)
        yield place, held


def test_all_that_is_public_says_what_it_takes_and_gives():
    found = list(public())
    assert len(found) > 150
    assert sorted({line for name, held in found for line in unannotated_in(name, held)}) == []


def test_the_rule_about_annotations_sees_what_lacks_one():
    clast = importlib.import_module("clast")
    text = "class Thing:\n    def go(self, a, *, b: int = 1) -> int: ...\n    @property\n    def size(self): ...\n    def _own(self, a): ...\n"
    scope = {"__name__": "clast.thing"}
    exec(compile(text, f"{package_folder()}/thing.py", "exec"), scope)
    assert list(unannotated_in("Thing", scope["Thing"])) == ["Thing.go: a", "Thing.size: return"]
    assert list(unannotated_in("json", importlib.import_module("json").dumps)) == []
    assert list(unannotated_in("find_contacts", clast.find_contacts)) == []


USES = """
import numpy as np
import clast

scene = clast.Scene(world=((0, 0, 0), (1, 1, 1)))
numbers = scene.add(clast.Sphere(0.01), position=np.zeros((2, 3)), velocity=(0, 0, 1), material=clast.Material())
scene.add(clast.Plane(), drive=clast.Oscillation((0, 0, 0.1), 3.0))
scene.fill([clast.Polyhedron.box(0.1, 0.1, 0.1)], count=1, box=((0, 0, 0), (1, 1, 1)), spin=(0, 0, 1))
sim = clast.Simulation(scene, clast.DEM())
sim.step(np.int64(3))
sim.run(until=1.0, record=["speed", lambda sim: sim.time])
clast.measure.wall_force(sim, numbers[0])
with clast.files.Trajectory("trajectory.h5") as run:
    clast.measure.snapshot(run[0], run)
clast.scenes.drum(count=100).simulation()
reveal_type(clast.find_contacts(scene, margin=0.1).gap)  # ndarray
reveal_type(clast.load_mesh("rock.stl", shape="mesh"))  # Mesh
reveal_type(clast.measure.energy(sim))  # dict[str, float]
clast.Sphere("a")  # error: incompatible type "str"
clast.Spheer(0.01)  # error: "Spheer"
clast.find_contacts(scene, margn=0.1)  # error: "margn"
scene.add("ball")  # error: incompatible type "str"
scene.fill(clast.Sphere(0.01), count=1, box=((0, 0, 0), (1, 1, 1)), spn=(0, 0, 1))  # error: "spn"
sim.step("many")  # error: incompatible type "str"
clast.Simulation(scene, clast.DEM(), device="gpu")  # error: Literal['gpu']
"""


def test_a_type_checker_knows_right_from_wrong_uses(tmp_path):
    pytest.importorskip("mypy", reason="needs mypy, which is in the extra dev")
    (tmp_path / "uses.py").write_text(USES, encoding="utf-8")
    (tmp_path / "mypy.ini").write_text("[mypy]\nignore_missing_imports = true\n", encoding="utf-8")
    options = ["--config-file", str(tmp_path / "mypy.ini"), "--follow-imports=silent", "--no-error-summary"]
    options += ["--cache-dir", str(SOURCE.parents[1] / ".mypy_cache" / "uses")]
    program = f"import os, sys; os.environ['MYPYPATH'] = {str(SOURCE.parent)!r}; from mypy.api import run; "
    program += f"print(run({[*options, str(tmp_path / 'uses.py')]!r})[0])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=300)
    assert not done.stderr
    told = {}
    for line in done.stdout.splitlines():
        if (said := re.match(r".*uses\.py:(\d+): (error|note: Revealed)(.*)", line)) is not None:
            told[int(said[1])] = said[3]
    expected = {
        k: line.split("  # ")[1].removeprefix("error: ")
        for k, line in enumerate(USES.splitlines(), 1)
        if "  # " in line
    }
    assert sorted(told) == sorted(expected), done.stdout
    for k, words in expected.items():
        assert words in told[k]


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
        (
            "scene/scene.py",
            "if TYPE_CHECKING:\n    from ..run import flows\nelse:\n    from ..mpi import team",
            ["scene/scene.py:4 imports mpi"],
        ),
    ],
)
def test_the_rule_about_imports_sees_each_form(tmp_path, monkeypatch, place, text, expected):
    monkeypatch.setitem(globals(), "SOURCE", tmp_path)
    (tmp_path / place).parent.mkdir(exist_ok=True)
    (tmp_path / place).write_text(text)
    assert uphill(tmp_path / place) == expected

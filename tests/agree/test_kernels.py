"""Kernels are compiled once and never out of date."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numba
import pytest

import clast
from clast.kernels import backend

SEARCH = """
import clast
from clast import backend
scene = clast.Scene()
scene.add(clast.Sphere(0.01), position=[(0.0, 0.0, 0.0), (0.0, 0.0, 0.0198)])
print(len(clast.find_contacts(scene).gap), len(backend.compiled()))
"""

STEPS = """
import clast
from clast import backend
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


def test_an_edit_in_any_kernel_file_gives_new_names(tmp_path):
    source = Path(clast.__file__).parent
    shutil.copytree(source, tmp_path / "clast", ignore=shutil.ignore_patterns("__pycache__"))
    ask = "from clast import backend; print(backend.__file__, backend.sources_hash())"

    def name():
        file, found = python(ask, PYTHONPATH=str(tmp_path), PYTHONDONTWRITEBYTECODE="1")
        assert file.startswith(str(tmp_path))
        return found

    before = name()
    assert before == backend.sources_hash()
    for file in ("kernels/vec.py", "broad/near.py", "dem/laws.py"):
        path = tmp_path / "clast" / file
        text = path.read_text()
        path.write_text(text + "\n# changed\n")
        assert name() != before, file
        path.write_text(text)
    assert name() == before
    path = tmp_path / "clast" / "run" / "progress.py"
    path.write_text(path.read_text() + "\n# changed\n")
    assert name() == before


LAW = """
{extra}
def law(touch, mix, dt):
    return {body}, (0.0, 0.0, 0.0), touch.slip
"""


def label(body, extra="", **names):
    scope = {"clast": clast, "__name__": "users_own", **names}
    exec(LAW.format(body=body, extra=extra), scope)
    return backend._label(scope["law"])


def test_a_users_law_is_known_by_all_that_it_uses():
    """The disk cache does not look into a user's function: its kernel must have another name when it changes."""
    base = label("stiff * touch.overlap", stiff=1e4)
    assert base == label("stiff * touch.overlap", stiff=1e4)
    assert base != label("stiff * touch.overlap", stiff=2e4)
    assert base != label("2.0 * stiff * touch.overlap", stiff=1e4)
    helper = "@clast.func\ndef help(x):\n    return {} * x\n"
    assert label("help(touch.overlap)", helper.format(3.0)) != label("help(touch.overlap)", helper.format(4.0))
    deep = "@clast.func\ndef help(x):\n    return stiff * x\n"
    assert label("help(touch.overlap)", deep, stiff=1.0) != label("help(touch.overlap)", deep, stiff=2.0)


def make_law(stiff):
    def law(touch, mix, dt):
        return stiff * touch.overlap, (0.0, 0.0, 0.0), touch.slip

    return law


def test_a_law_made_by_a_function_is_known_by_its_values():
    assert backend._label(make_law(1.0)) == backend._label(make_law(1.0))
    assert backend._label(make_law(1.0)) != backend._label(make_law(2.0))


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

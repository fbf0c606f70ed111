"""A wheel with kernels in it takes the first step of the drum with nothing compiled."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from llvmlite import binding

ROOT = Path(__file__).resolve().parents[2]
DRUM = """
import time
start = time.perf_counter()
import clast
from clast.kernels import backend
from clast.scenes import SCENES
sim = SCENES["drum"](count=200).simulation()
sim.step(60)
print(clast.__file__, len(backend.compiled()), time.perf_counter() - start)
"""
# As in the Makefile.
FEATURES = "+avx,+avx2,+bmi,+bmi2,+cmov,+cx16,+f16c,+fma,+fxsr,+lzcnt,+movbe,+popcnt,+sse4.2,+xsave"


def fits():
    here = binding.get_host_cpu_features()
    return all(here.get(feature.removeprefix("+")) for feature in FEATURES.split(","))


def call(*command, **surroundings):
    done = subprocess.run(
        [sys.executable, *map(str, command)], env=os.environ | surroundings, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
@pytest.mark.skipif(not fits(), reason="this processor is below the level x86-64-v3")
def test_the_first_step_from_a_wheel_compiles_nothing(tmp_path):
    project = tmp_path / "project"
    shutil.copytree(ROOT / "src", project / "src", ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE", ".gitignore"):
        shutil.copy(ROOT / name, project)
    build = {"NUMBA_CPU_NAME": "x86-64-v3", "NUMBA_CPU_FEATURES": FEATURES, "PYTHONPATH": str(project / "src")}
    build |= {"NUMBA_CACHE_DIR": str(tmp_path / "kernels")}
    assert int(call("-c", DRUM, **build).split()[1]) > 20
    call("-m", "clast.kernels.shipped", tmp_path / "kernels", **build)
    call("-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation", "--wheel-dir", tmp_path, project)
    (wheel,) = tmp_path.glob("clast-*.whl")
    call("-m", "pip", "install", "-q", "--no-deps", "--target", tmp_path / "empty", wheel)
    fresh = {"PYTHONPATH": str(tmp_path / "empty"), "NUMBA_CACHE_DIR": str(tmp_path / "fresh")}
    where, compiled, _ = call("-c", DRUM, **fresh).split()
    assert where.startswith(str(tmp_path / "empty"))
    assert compiled == "0"

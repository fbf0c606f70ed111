"""Kernels that come compiled with the package, for machines of a named level and for exact versions.

    python -m clast.kernels.shipped FOLDER    # put what the numba cache in FOLDER holds into the package, as `make wheel` does

They are looked for after the user's own cache, and used where the machine has all that the level asks for and Python, numba,
llvmlite and NumPy are those that compiled them; elsewhere, and with CLAST_SHIPPED=0 in the environment, kernels are compiled as from the sources.
"""

import functools
import json
import os
import shutil
import sys
from pathlib import Path

import numba
from llvmlite import binding

FOLDER = Path(__file__).parent / "compiled"
LEVEL = "level.json"


@functools.cache
def level(versions):
    """(processor, its name, its features) as numba puts them into its keys, of kernels that fit here; None if there are none."""
    settings = vars(numba.config)
    if settings["CPU_NAME"] or settings["CPU_FEATURES"] or os.environ.get("CLAST_SHIPPED") == "0":
        return None
    if not (FOLDER / LEVEL).is_file():
        return None
    known = json.loads((FOLDER / LEVEL).read_text(encoding="utf-8"))
    if known["versions"] != versions or known["triple"] != binding.get_process_triple():
        return None
    here = binding.get_host_cpu_features()
    if not all(here.get(feature.removeprefix("+")) for feature in known["features"].split(",")):
        return None
    return known["triple"], known["cpu"], known["features"]


def put(source, versions):
    """Copy the cache in a folder into the package; numba must be set to the level for which it was compiled."""
    settings = vars(numba.config)
    cpu, features = settings["CPU_NAME"], settings["CPU_FEATURES"]
    if not cpu or not features:
        raise SystemExit("say for which level: NUMBA_CPU_NAME=x86-64-v3 NUMBA_CPU_FEATURES=+avx2,+fma,...")
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir()
    files = [file for file in Path(source).rglob("*") if file.suffix in (".nbi", ".nbc")]
    for file in files:
        shutil.copy(file, FOLDER / file.name)
    known = {"versions": versions, "triple": binding.get_process_triple(), "cpu": cpu, "features": features}
    (FOLDER / LEVEL).write_text(json.dumps(known, indent=2) + "\n", encoding="utf-8")
    return len(files)


if __name__ == "__main__":
    from .reached import VERSIONS

    sys.stdout.write(f"{put(sys.argv[1], VERSIONS)} files in {FOLDER}\n")

"""Kernels that come compiled with the package, for machines of a named level and for exact versions.

    python -m clast.kernels.shipped FOLDER    # put what the numba cache in FOLDER holds into the package, as `make wheel` does

They are looked for after the user's own cache, and used where the machine has all that the level asks for and Python, numba,
llvmlite and NumPy are those that compiled them; elsewhere, and with CLAST_SHIPPED=0 in the environment, kernels are compiled as from the sources.
"""

import functools
import json
import os
import re
import shutil
import sys
from pathlib import Path

import numba
from llvmlite import binding

FOLDER = Path(__file__).parent / "compiled"
LEVEL = "level.json"


WHAT = ("Python", "numba", "llvmlite", "NumPy")  # in the text of versions, in this order


@functools.cache
def level(versions):
    """(processor, its name, its features) as numba puts them into its keys, of kernels that fit here; None if there are none."""
    known = _known()
    if known is None or misfit(versions):
        return None
    return known["triple"], known["cpu"], known["features"]


def _known():
    """What the kernels of the package were compiled for, or None where it has none."""
    file = FOLDER / LEVEL
    return json.loads(file.read_text(encoding="utf-8")) if file.is_file() else None


def misfit(versions):
    """Why the kernels of the package are not used here, for people; empty if they are."""
    settings, known = vars(numba.config), _known()
    for name in ("CPU_NAME", "CPU_FEATURES"):
        if settings[name]:
            return f"NUMBA_{name}={settings[name]} asks for another processor; leave it out to use them"
    if os.environ.get("CLAST_SHIPPED") == "0":
        return "CLAST_SHIPPED=0 leaves them out"
    both = zip(WHAT, _each(known["versions"]), _each(versions), strict=True)
    others = [(f"{what} {theirs}", f"{what} {ours}") for what, theirs, ours in both if theirs != ours]
    if others:
        theirs, ours = (", ".join(column) for column in zip(*others))
        return f"they are for {theirs}, here is {ours}; kernels are compiled when first needed, or build a wheel here (make wheel)"
    if known["triple"] != (here := binding.get_process_triple()):
        return f"they are for {known['triple']}, this is {here}; kernels are compiled when first needed"
    host = binding.get_host_cpu_features()
    lacking = [name for name in known["features"].replace("+", "").split(",") if not host.get(name)]
    if lacking:
        return f"they are for {known['cpu']}, this processor lacks {', '.join(lacking)}; kernels are compiled when first needed"
    return ""


def _each(versions):
    """The versions in `reached.VERSIONS`, one by one."""
    python, *others = versions.rsplit(" ", 3)
    return [".".join(re.findall(r"\d+", python)), *others]


def told(versions):
    """Whether the package has kernels and whether they fit here, in one line for people."""
    known = _known()
    if known is None:
        return "none in this package; a wheel of make wheel has those of the ready scenes"
    count = f"{len(list(FOLDER.glob('*.nbi')))} kernels"
    if reason := misfit(versions):
        return f"{count}, not used: {reason}"
    fits = ", ".join(f"{what} {version}" for what, version in zip(WHAT, _each(versions), strict=True))
    return f"{count} for {known['cpu']}, used: they fit this processor, {fits}"


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

"""clast new, scenes, check: what there is to start from."""

import os
import re
import sys
from pathlib import Path
from typing import Annotated

import typer

from .common import OK, Stopped, Wrong, app, first_speaks


@app.command()
def scenes():
    """List the scenes that are ready to run."""
    from .running import listing

    print(listing())
    print("\nrun one:  clast run drum     look at it first:  clast view drum     write your own:  clast new NAME")


@app.command()
def new(
    name: Annotated[str, typer.Argument(metavar="NAME", help="name of the two files")],
    folder: Annotated[Path, typer.Option(help="where they go")] = Path(),
):
    """Write a commented script and a scene file to start from."""
    from importlib.resources import files

    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_-]*", name):
        raise Wrong(f"{name!r}: a name begins with a letter, and has letters, digits, - and _ only")
    if not folder.is_dir():
        raise Wrong(f"--folder {folder}: no such folder; make it first")
    made = {folder / f"{name}{suffix}": f"start{suffix}.txt" for suffix in (".py", ".toml")}
    there = [str(path) for path in made if path.exists()]
    if there:
        raise Wrong(f"{there[0]} is there already; choose another name")
    for path, template in made.items():
        text = files("clast.cli").joinpath("templates", template).read_text(encoding="utf-8")
        path.write_text(text.replace("NAME", name), encoding="utf-8")
        print(f"wrote {path}")
    script, file = made
    print(f"\nrun it:  python {script}     or:  clast run {file}")


OPTIONAL = {
    "pyvista": ("view", "pictures and movies"),
    "viser": ("view", "the page in the browser"),
    "imageio_ffmpeg": ("view", "movies in MP4"),
    "matplotlib": ("view", "plots"),
    "numba_cuda": ("gpu", "kernels on CUDA devices"),
}


@app.command()
def check(
    compile_all: Annotated[
        bool, typer.Option("--compile", help="compile the kernels of all ready scenes ahead of the first run")
    ] = False,
):
    """Show what this machine offers; with --compile, compile all kernels ahead of the first run."""
    from importlib.metadata import version
    from importlib.util import find_spec

    import numba

    from ..kernels import backend, reached, shipped

    if first_speaks(OK) is None:
        return
    settings = vars(numba.config)  # numba makes them when it is imported
    print(f"clast       {version('clast')}, Python {sys.version.split()[0]}, numba {numba.__version__}")
    print(f"device      cpu, {numba.get_num_threads()} threads of {settings['NUMBA_NUM_THREADS']}")
    print(f"threading   {numba.threading_layer()}, first found of {backend.layers()}")
    cache = settings["CACHE_DIR"] or Path(__file__).parents[1] / "__pycache__"
    print(f"cache       {cache}" + ("" if writable(Path(cache)) else " (not writable: set NUMBA_CACHE_DIR)"))
    print(f"shipped     {shipped.told(reached.VERSIONS)}")
    for name, (extra, purpose) in OPTIONAL.items():
        state = "present" if find_spec(name) else f"missing, for {purpose}: pip install 'clast[{extra}]'"
        print(f"{name:<11} {state}")
    print(f"processes   {tell_of_mpi()}")
    if compile_all:
        compile_kernels()
    else:
        print("kernels     compiled when first needed; clast check --compile does it for all ready scenes at once")


def tell_of_mpi():
    """Which MPI there is, and how many processes it started."""
    from importlib.util import find_spec
    from shutil import which

    if find_spec("mpi4py") is None:
        return "1; mpi4py is missing, for runs on many: pip install 'clast[mpi-local]', or clast[mpi] where there is an MPI"
    try:
        from mpi4py import MPI
    except (ImportError, RuntimeError) as fault:  # the package is there, the library is not
        return f"1; mpi4py finds no MPI library ({' '.join(str(fault).split())}); pip install 'clast[mpi-local]'"
    library = " ".join(MPI.Get_library_version().replace("Version:", "").split()[:2]).rstrip(",")
    beside = Path(sys.executable).with_name("mpirun")
    launcher = which("mpirun") or (str(beside) if beside.exists() else "no mpirun found")
    return f"{MPI.COMM_WORLD.size}; {library} by mpi4py, {launcher}"


def writable(folder):
    """Whether files can be made in the folder, or in the nearest one above that exists."""
    while not folder.exists():
        folder = folder.parent
    return os.access(folder, os.W_OK)


def compile_kernels():
    """Compile the kernels of every ready scene, one process a core, with a bar."""
    from ..scenes.compiling import compile_scenes

    try:
        new = compile_scenes()
    except KeyboardInterrupt:
        raise Stopped("interrupted; kernels that were compiled so far are kept") from None
    print(f"kernels     {f'{new} compiled and kept' if new else 'all ready, nothing to compile'}")

"""The kernels of all ready scenes, and of drums with a blade, compiled ahead of the first run."""

from functools import partial

from rich.console import Console
from rich.progress import Progress

from ..dem.method import DEM
from ..errors import ClastError
from ..kernels import ahead, backend
from ..run.rehearsal import rehearse
from ..scene.scene import Scene
from ..shapes import Cylinder, Ellipsoid, Plane, Polyhedron, Quad, Sphere
from . import SCENES
from .ready import Ready

# Those first that have least in common, so that processes side by side have enough to do.
WARMED = ("drum", "cube-drum", "granulate", "chain-on-gravel", "ellipsoid-hopper", "tank")


def bladed(shape, count):
    """Bodies in a drum with flat ends and a blade: walls of all kinds, for which kernels have another form than for some of them."""
    scene, half = Scene(), 0.02
    scene.add(Cylinder(0.06, 2.0 * half, axis=(0.0, 1.0, 0.0)), spin=(0.0, 3.0, 0.0))
    for side in (-1.0, 1.0):
        scene.add(Plane((0.0, -side, 0.0)), position=(0.0, side * half, 0.0))
    corners = [(-0.01, -half, -0.02), (0.01, -half, -0.02), (0.01, half, -0.02), (-0.01, half, -0.02)]
    scene.add(Quad(corners), motion="driven", spin=(0.0, 3.0, 0.0))
    box = ((-0.025, -half, -0.018), (0.025, half, 0.035))
    scene.fill(
        shape, count=count, scale=0.005, box=box, velocity=(0.0, 0.0, -5.0), seed=1
    )  # they touch within the few steps that are taken
    return Ready(scene, DEM(), "auto", 1.0, None, "drum with a blade")


MADE = SCENES | {
    "spheres among walls": partial(bladed, Sphere(1.0)),
    "ellipsoids among walls": partial(bladed, Ellipsoid(1.0, 0.8, 0.6)),
    "boxes among walls": partial(bladed, Polyhedron.box(1.6, 1.2, 1.0)),
}


class Warmed:
    """A few steps of a ready scene, as a task for `ahead.Workshop`: nothing should be left to compile."""

    place, size = (), 0

    def __init__(self, title):
        self.title = title

    def do(self):
        """(kernels that were compiled on the way, what went wrong or None)"""
        before = len(backend.compiled())
        try:
            sim = MADE[self.title](count=30).simulation()
            # What is poured or dropped has to fall before it meets anything, and only then all kernels are needed.
            sim.step(6000 if sim.scene.inlets else 60)
            sim.report()
        except Exception as fault:
            return 0, f"{type(fault).__name__}: {fault}"
        return len(backend.compiled()) - before, None


def listen_to(name, heard):
    """Kernels that a ready scene launches, from a rehearsal with rows as plain Python; as far as it gets in a few seconds."""
    known = len(heard.tasks)
    heard.begin()
    try:
        sim = MADE[name](count=30).simulation()
        rehearse(sim.scene, sim.method, sim.dt)
    except (Exception, ahead.Enough):
        pass  # what is left is compiled, or told, when the scene is run
    return list(heard.tasks.values())[known:]


def compile_scenes():
    """Compile the kernels of every ready scene, one process a core, with a bar; then run each scene, to see that none is left.

    Returns how many were compiled.
    """
    names = (*WARMED, *(name for name in MADE if name not in WARMED))
    new, wrong = 0, []
    count = max(1, ahead.workers())
    console = Console(stderr=True, highlight=False)
    with Progress(console=console, disable=not console.is_terminal) as bar:
        task = bar.add_task("compiling kernels, once", total=len(names))

        def tell(title, done):
            nonlocal new
            if not done:
                return
            more, fault = done if isinstance(done, tuple) else (1, None)
            new += more
            wrong.extend([f"{title}: {fault}"] if fault else [])
            bar.advance(task)

        total = len(names)
        with ahead.Workshop(count, tell) as shop:
            with ahead.listening() as heard:
                for name in names:
                    found = listen_to(name, heard)
                    bar.update(task, total=(total := total + len(found)))
                    shop.add(found)
            shop.finish()
        with ahead.Workshop(count, tell) as shop:
            shop.add(map(Warmed, reversed(names)))
            shop.finish()
    if wrong:
        raise ClastError("; ".join(wrong))
    return new

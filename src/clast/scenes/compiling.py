"""The kernels of all ready scenes, compiled ahead of the first run."""

from rich.console import Console
from rich.progress import Progress

from ..errors import ClastError
from ..kernels import ahead, backend
from ..run.rehearsal import rehearse
from . import SCENES

# Those first that have least in common, so that processes side by side have enough to do.
WARMED = ("drum", "cube-drum", "granulate", "chain-on-gravel", "ellipsoid-hopper", "tank")


class Warmed:
    """A few steps of a ready scene, as a task for `ahead.Workshop`: nothing should be left to compile."""

    place, size = (), 0

    def __init__(self, title):
        self.title = title

    def do(self):
        """(kernels that were compiled on the way, what went wrong or None)"""
        before = len(backend.compiled())
        try:
            sim = SCENES[self.title](count=30).simulation()
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
        sim = SCENES[name](count=30).simulation()
        rehearse(sim.scene, sim.method, sim.dt)
    except (Exception, ahead.Enough):
        pass  # what is left is compiled, or told, when the scene is run
    return list(heard.tasks.values())[known:]


def compile_scenes():
    """Compile the kernels of every ready scene, one process a core, with a bar; then run each scene, to see that none is left.

    Returns how many were compiled.
    """
    names = (*WARMED, *(name for name in SCENES if name not in WARMED))
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

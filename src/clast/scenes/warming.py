"""Kernels of all ready scenes, compiled ahead of the first run."""

import os

from . import SCENES

# Those first that have least in common, so that processes side by side have enough to do.
WARMED = ("drum", "cube-drum", "granulate", "chain-on-gravel", "ellipsoid-hopper", "tank")


def warm(name):
    """Take a few steps of a ready scene; how many kernels were compiled on the way."""
    from ..kernels import backend

    before = len(backend.compiled())
    backend.set_threads(1)  # the other cores are compiling too
    sim = SCENES[name](count=30).simulation()
    # What is poured or dropped has to fall before it meets anything, and only then all kernels are needed.
    sim.step(6000 if sim.scene.inlets else 60)
    sim.report()
    return len(backend.compiled()) - before


def listen_to(name, heard):
    """Kernels that a ready scene launches, from a rehearsal with rows as plain Python; as far as it gets in a few seconds."""
    from ..kernels import ahead
    from ..run.rehearsal import rehearse

    known = len(heard.tasks)
    heard.begin()
    try:
        sim = SCENES[name](count=30).simulation()
        rehearse(sim.scene, sim.method, sim.dt)
    except (Exception, ahead.Enough):
        pass  # what is left is compiled, or told, when the scene is run
    return list(heard.tasks.values())[known:]


def compile_kernels():
    """Compile the kernels of every ready scene, one process a core, with a bar; then run each scene, to see that none is left.

    Returns how many were compiled.
    """
    from concurrent.futures import ProcessPoolExecutor, as_completed
    from multiprocessing import get_context

    from rich.console import Console
    from rich.progress import Progress

    from ..kernels import ahead

    names, new = (*WARMED, *(name for name in SCENES if name not in WARMED)), []
    os.environ["CLAST_WORKERS"] = str(count := max(1, ahead.workers()))
    console = Console(stderr=True, highlight=False)
    with Progress(console=console, disable=not console.is_terminal) as bar:
        task = bar.add_task("compiling kernels, once", total=len(names))

        def tell(title, done):
            if done:
                new.append(title)
                bar.advance(task)

        total = len(names)
        with ahead.Workshop(count, tell) as shop:
            with ahead.listening() as heard:
                for name in names:
                    found = listen_to(name, heard)
                    bar.update(task, total=(total := total + len(found)))
                    shop.add(found)
            shop.finish()
        os.environ["CLAST_WORKERS"] = "0"
        pool = ProcessPoolExecutor(max_workers=count, mp_context=get_context("spawn"))
        waiting = [pool.submit(warm, name) for name in names]
        try:
            for one in as_completed(waiting):
                new += [""] * one.result()
                bar.advance(task)
        finally:
            # Ctrl-C must not wait for a compiler.
            for process in list((pool._processes or {}).values()):
                if any(not one.done() for one in waiting):
                    process.terminate()
            pool.shutdown(wait=False, cancel_futures=True)
    return len(new)

"""Run by `mpirun -n 2` from test_ranks: what goes wrong on one process, told as JSON; with a folder, one process is killed in a run there."""

import json
import os
import signal
import sys
from pathlib import Path

import numpy as np

import clast
from clast.errors import ClastError
from clast.mpi import team

SAND = clast.Material(density=2600, young=1e6, poisson=0.25, friction=0.5, restitution=0.3)


def few(count=8, shift=0.0, speed=0.0):
    """Spheres in a row along x; the last has a speed [m/s] along it."""
    scene = clast.Scene(gravity=(0, 0, 0), world=((-1, -1, -1), (1, 1, 1)))
    position = np.zeros((count, 3))
    position[:, 0] = 0.1 * np.arange(count) + shift
    velocity = np.zeros((count, 3))
    velocity[-1, 0] = speed
    scene.add(clast.Sphere(0.02), position=position, velocity=velocity, material=SAND)
    return scene


def fault(function):
    """What it raises, as text."""
    try:
        function()
    except (ClastError, ValueError, OSError) as wrong:
        return f"{type(wrong).__name__}: {wrong}"
    return "nothing"


def leaves():
    clast.Simulation(few(speed=20.0)).step(2000)


def goes_on():
    sim = clast.Simulation(few())
    sim.step(3)
    return sim.steps


def main():
    everyone = team.find()
    rank = everyone.rank
    with team.alone():
        alone = fault(leaves)
    found = {
        "shared": fault(leaves),
        "after": goes_on(),
        "hard": fault(lambda: clast.Simulation(few(), clast.Complementarity(), dt=1e-3)),
        "few": fault(lambda: clast.Simulation(few(1)).step()),
        "differ": fault(lambda: clast.Simulation(few(shift=0.01 * rank)).step()),
        "versions": fault(
            lambda: everyone.compare("versions differ", {"numba": f"1.{rank}"}, "install the same everywhere")
        ),
        "write": fault(
            lambda: clast.Simulation(few()).run(until=0.01, output=Path(__file__) / "there", progress=False)
        ),
    }
    everywhere = everyone.everywhere(found)
    if rank == 0:
        print(json.dumps({"alone": alone} | {name: [told[name] for told in everywhere] for name in found}))


def die(folder):
    sim = clast.Simulation(few(), dt=1e-4)

    def strike(sim, stopping):
        if sim.team.rank == 1 and sim.steps == 25:
            os.kill(os.getpid(), signal.SIGKILL)

    sim.run(until=0.01, every=0.001, output=Path(folder) / "run", progress=False, between=strike)


if __name__ == "__main__":
    die(sys.argv[1]) if len(sys.argv) > 1 else main()

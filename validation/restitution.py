"""Coefficients of restitution that come out at dt="auto" beside those that are asked for; a table for docs/validation.md.

    python validation/restitution.py             # a minute of one core
    python validation/restitution.py --quick     # one speed; writes nothing

Balls of 1 cm, 100 MPa, 2500 kg/m^3, meet a ball of their own or a plane head-on, without friction. Each speed and restitution is tried at 40 places in the step at which they begin to
touch; told is the largest difference.
"""

import argparse
from pathlib import Path

import numpy as np

import clast

PAGE = Path(__file__).resolve().parents[1] / "docs" / "validation.md"
BEGIN, END = "<!-- restitution -->", "<!-- /restitution -->"
RADIUS, MANY = 0.01, 40
ASKED = np.array([0.1, 0.2, 0.3, 0.5, 0.7, 0.8, 0.9, 0.95, 0.99, 1.0])
# Methods by name, and whether restitution depends on the speed in steps of one length.
METHODS = {
    "hertz": (clast.DEM(law="hertz"), True),
    "linear": (clast.DEM(law="linear"), False),
    "walton-braun": (clast.DEM(law="walton-braun"), False),
    "hertz, tsuji": (clast.DEM(law="hertz", damping="tsuji"), True),
    "linear, tsuji": (clast.DEM(law="linear", damping="tsuji"), False),
    "hertz, in_step=False": (clast.DEM(law="hertz", in_step=False), True),
    "linear, in_step=False": (clast.DEM(law="linear", in_step=False), False),
}
SPEEDS = (0.01, 0.1, 1.0, 10.0)  # [m/s]


def scene_of(speed, wall, step):
    """Balls that touch within the first step [s]."""
    scene, floor = clast.Scene(gravity=(0, 0, 0)), clast.Material(young=1e8, friction=0.0, name="floor")
    if wall:
        scene.add(clast.Plane(), material=floor)
    for row, restitution in enumerate(ASKED):
        ball = clast.Material(young=1e8, restitution=restitution, friction=0.0, name=f"{restitution}")
        scene.combine(ball, floor, restitution=restitution)
        place = np.column_stack([np.arange(MANY) * 5 * RADIUS, np.full(MANY, row * 5 * RADIUS), np.full(MANY, RADIUS)])
        gap = (np.arange(MANY) + 0.5)[:, None] / MANY * step * speed * np.array([0.0, 0.0, 1.0])
        if not wall:
            scene.add(clast.Sphere(RADIUS), position=place * (1, 1, -1), material=ball)
        scene.add(clast.Sphere(RADIUS), position=place + gap, velocity=(0, 0, -speed), material=ball)
    return scene


def errors(method, speed, wall):
    """The largest difference for each of ASKED."""
    step = clast.Simulation(scene_of(speed, wall, 1e-9), method).dt
    sim = clast.Simulation(scene_of(speed, wall, step), method, dt=step)
    sim.step(60)
    while sim.touching():
        sim.step(20)
    velocity = sim.bodies.velocity[1 if wall else 0 :, 2].reshape(len(ASKED), -1, MANY)
    found = (velocity[:, 0] if wall else velocity[:, 1] - velocity[:, 0]) / speed
    return np.abs(found - ASKED[:, None]).max(1)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="one speed; writes nothing")
    quick = parser.parse_args().quick
    rows = [f"| law | speed [m/s] | against | {' | '.join(f'{e:g}' for e in ASKED)} |"]
    rows.append("|---|---:|---|" + "---:|" * len(ASKED))
    for name, (method, by_speed) in METHODS.items():
        for speed in (1.0,) if quick or not by_speed else SPEEDS:
            for wall in (False, True):
                told = " | ".join(f"{1e3 * error:.2f}" for error in errors(method, speed, wall))
                rows.append(
                    f"| {name} | {f'{speed:g}' if by_speed else 'any'} | {'plane' if wall else 'ball'} | {told} |"
                )
                print(rows[-1], flush=True)
    if not quick:
        head, rest = PAGE.read_text(encoding="utf-8").split(BEGIN)
        PAGE.write_text(head + BEGIN + "\n" + "\n".join(rows) + "\n" + END + rest.split(END)[1], encoding="utf-8")


if __name__ == "__main__":
    main()

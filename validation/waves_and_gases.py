"""A wave in a row of balls and a gas of spheres that cools, beside laws in closed form.

    python validation/waves_and_gases.py            # two minutes of one core; writes a table into docs/validation.md
    python validation/waves_and_gases.py --quick    # a smaller gas, nothing written

wave    Balls that just touch in a row, the first one struck. Nesterenko (1984): of the blow a solitary wave is left, five balls long, that runs at
        V = (16/25)^(1/5) (c^4 v)^(1/5) with c^2 = 2 E / (pi rho (1 - nu^2)) and v the greatest speed of a ball, in the limit of long waves. Beside that the
        equations of motion of the row, Hertz's force between neighbours, by a Runge-Kutta method of order eight (SciPy).
gas     Smooth spheres in a periodic box. Haff (1983): their temperature T = m <v^2> / 3 falls as (1 + t / t0)^-2, and by Enskog's theory 1 / t0 = (1 - e^2) w / 6 with
        w = 4 n d^2 g sqrt(pi T / m) collisions a second of a sphere at the start and g = (1 - f / 2) / (1 - f)^3 (Carnahan and Starling), f the part of the box that they fill.
"""

import argparse
import math
from pathlib import Path

import numpy as np
from scipy.integrate import solve_ivp

import clast

PAGE = Path(__file__).resolve().parents[1] / "docs" / "validation.md"
BEGIN, END = "<!-- waves and gases -->", "<!-- /waves and gases -->"
RADIUS, DENSITY = 0.01, 2500.0
BALL = clast.Material(density=DENSITY, young=1e8, poisson=0.3, friction=0.0, restitution=1.0)
ROW, NEAR, FAR = 80, 30, 55  # balls in a row, and two of them between which the wave is timed
BLOW = 0.1  # [m/s], speed of the first ball
FILLED = 0.1  # part of the periodic box


def crest(time, speed):
    """When [s] a ball is fastest and how fast [m/s]: the top of the parabola through the three highest of its speeds (t,)."""
    k = int(np.argmax(speed))
    before, most, after = speed[k - 1 : k + 2]
    off = 0.5 * (before - after) / (before - 2.0 * most + after)
    return time[k] + off * (time[1] - time[0]), most - 0.25 * (before - after) * off


def speed_of_wave(time, speed):
    """Speed of the wave [m/s] and greatest speed of a ball, from speeds (t, balls)."""
    (begin, _), (end, most) = crest(time, speed[:, NEAR]), crest(time, speed[:, FAR])
    return 2.0 * RADIUS * (FAR - NEAR) / (end - begin), most


def struck_row(dt):
    """Speed of the wave and greatest speed of a ball [m/s] in steps of dt, the step [s] and the time simulated [s]."""
    scene = clast.Scene(gravity=(0.0, 0.0, 0.0))
    place, velocity = np.zeros((ROW, 3)), np.zeros((ROW, 3))
    place[:, 0], velocity[0, 0] = 2.0 * RADIUS * np.arange(ROW), BLOW
    scene.add(clast.Sphere(RADIUS), position=place, velocity=velocity, material=BALL)
    sim, speeds = clast.Simulation(scene, clast.DEM(law="hertz"), dt=dt), []
    until = 2.0 * RADIUS * (FAR + 10) / long_wave(0.4 * BLOW)
    while sim.time < until:
        sim.step()
        speeds.append(sim.bodies.velocity[:, 0])
    return *speed_of_wave(sim.dt * np.arange(1, len(speeds) + 1), np.array(speeds)), sim.dt, sim.time


def long_wave(most):
    """Nesterenko's speed of the wave [m/s]; most [m/s]: greatest speed of a ball."""
    sound = math.sqrt(2.0 * BALL.young / (math.pi * BALL.density * (1.0 - BALL.poisson**2)))
    return 0.64**0.2 * (sound**4 * most) ** 0.2


def by_its_equations(until):
    """Speed of the wave and greatest speed of a ball [m/s] by a Runge-Kutta method of order eight, with Hertz's force between neighbours."""
    mass = BALL.density * 4.0 / 3.0 * math.pi * RADIUS**3
    stiffness = BALL.young * math.sqrt(2.0 * RADIUS) / 3.0 / (1.0 - BALL.poisson**2)

    def motion(_, y):
        force = stiffness * np.maximum(y[: ROW - 1] - y[1:ROW], 0.0) ** 1.5
        return np.concatenate([y[ROW:], (np.append(0.0, force) - np.append(force, 0.0)) / mass])

    start, time = np.zeros(2 * ROW), np.linspace(0.0, until, 4000)
    start[ROW] = BLOW
    return speed_of_wave(time, solve_ivp(motion, (0.0, until), start, "DOP853", time, rtol=1e-10, atol=1e-14).y[ROW:].T)


def wave():
    """Rows of the table for a wave: at dt="auto" and at a tenth of it, beside long waves and its equations."""
    speed, _, step, until = struck_row("auto")
    exact, most = by_its_equations(until)
    rows = []
    for name, own, known, whose in (
        ('dt="auto"', speed, long_wave(most), "Nesterenko"),
        ('dt="auto"', speed, exact, "its equations"),
        ("a tenth of it", struck_row(0.1 * step)[0], exact, "its equations"),
    ):
        off = 100.0 * (own / known - 1.0)
        rows.append(f"| wave in a row of balls, {name} | {own:.3f} m/s | {known:.3f} m/s, {whose} | {off:+.2f} % |")
    return rows


def gas(restitution, count, young=2e8, speed=0.3, radius=0.001):
    """The row of the table for a gas: how fast it cools, and how far it is from Haff's law on the way."""
    mass, side = (
        DENSITY * 4.0 / 3.0 * math.pi * radius**3,
        (count * 4.0 / 3.0 * math.pi * radius**3 / FILLED) ** (1 / 3),
    )
    smooth = clast.Material(density=DENSITY, young=young, friction=0.0, restitution=restitution)
    scene = clast.Scene(gravity=(0.0, 0.0, 0.0), world=((0.0,) * 3, (side,) * 3), periodic=(True,) * 3)
    along = math.ceil(count ** (1 / 3))
    place = np.stack(np.meshgrid(*[np.arange(along)] * 3, indexing="ij"), -1).reshape(-1, 3)[:count]
    velocity = speed * np.random.default_rng(1).normal(size=(count, 3))
    scene.add(clast.Sphere(radius), position=(place + 0.5) * side / along, velocity=velocity, material=smooth)
    # Restitution is as asked for to 1e-3 only where forces are means over a step: a hundredth of it would be a twentieth of what is lost.
    sim = clast.Simulation(scene, clast.DEM(law="linear", in_step=True))

    def temperature():
        moving = sim.bodies.velocity - sim.bodies.velocity.mean(0)
        return mass * float((moving**2).sum()) / (3.0 * count)

    def collisions(heat):
        dense = (1.0 - FILLED / 2.0) / (1.0 - FILLED) ** 3
        return 4.0 * count / side**3 * (2.0 * radius) ** 2 * dense * math.sqrt(math.pi * heat / mass)

    first = collisions(temperature())
    sim.step(round(3.0 / first / sim.dt))  # the lattice is forgotten
    hot, begin = temperature(), sim.time
    time, heat = [], []
    for _ in range(40):
        sim.step(round(0.5 / first / sim.dt))
        time.append(sim.time - begin)
        heat.append(temperature())
    time, cold = np.array(time), np.sqrt(hot / np.array(heat))
    rate, known = float(time @ (cold - 1.0) / (time @ time)), (1.0 - restitution**2) * collisions(hot) / 6.0
    off = float(np.abs(cold / (1.0 + rate * time) - 1.0).max())
    what = f"| {count:,} spheres cool, restitution {restitution:g}, to {heat[-1] / hot:.2f} of their temperature |"
    return f"{what} 1 / t0 = {rate:.3f} /s | {known:.3f} /s, Haff | {100.0 * (rate / known - 1.0):+.1f} %, on the way {200.0 * off:.1f} % |"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a smaller gas, nothing written")
    quick = parser.parse_args().quick
    rows = ["| what | clast | known | off by |", "|---|---:|---:|---:|", *wave()]
    for restitution in (0.9,) if quick else (0.9, 0.8):
        rows.append(gas(restitution, 300 if quick else 2000))
    print("\n".join(rows))
    if not quick:
        head, rest = PAGE.read_text(encoding="utf-8").split(BEGIN)
        PAGE.write_text(head + BEGIN + "\n" + "\n".join(rows) + "\n" + END + rest.split(END)[1], encoding="utf-8")


if __name__ == "__main__":
    main()

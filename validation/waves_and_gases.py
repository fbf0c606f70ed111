"""A wave in a row of balls and a gas of spheres that cools, beside laws in closed form.

    python validation/waves_and_gases.py            # five minutes of one core; writes a table into docs/validation.md
    python validation/waves_and_gases.py --quick    # a smaller gas, nothing written

wave    Balls that just touch in a row, the first one struck. Nesterenko (1984): of the blow a solitary wave is left, five balls long, that runs at
        V = (16/25)^(1/5) (c^4 v)^(1/5) with c^2 = 2 E / (pi rho (1 - nu^2)) and v the greatest speed of a ball, in the limit of long waves. Beside that the
        equations of motion of the row, Hertz's force between neighbours, by a Runge-Kutta method of order eight (SciPy).
gas     Smooth spheres in a periodic box. Haff (1983): their temperature T = m <v^2> / 3 falls as (1 + t / t0)^-2, and by Enskog's theory 1 / t0 = (1 - e^2) w / 6 with
        w = 4 n d^2 g sqrt(pi T / m) collisions a second of a sphere at the start and g = (1 - f / 2) / (1 - f)^3 (Carnahan and Starling), f the part of the box that they fill.
        It starts as an elastic gas that has forgotten how it began. Haff's law takes it to stay one, only cooler; hard spheres that go from one collision to the
        next, without clast, tell how far that is so, from the same starts.
"""

import argparse
import math
from pathlib import Path

import numba
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


@numba.njit(cache=True)
def meeting(i, x, v, near, count, side, d):
    """When [s] from now sphere i first touches one of those near it, and which."""
    first, who = np.inf, -1
    for j in near[i, : count[i]]:
        along, apart, fast = 0.0, -d * d, 0.0
        for k in range(3):
            r, w = x[j, k] - x[i, k], v[j, k] - v[i, k]
            r -= side * np.rint(r / side)
            along, apart, fast = along + r * w, apart + r * r, fast + w * w
        if along < 0.0 and along * along > fast * apart:
            time = max(0.0, apart / (math.sqrt(along * along - fast * apart) - along))
            if time < first:
                first, who = time, j
    return first, who


@numba.njit(cache=True)
def by_events(x, v, side, d, restitution, until, most):
    """Hard spheres, from one collision to the next: moves x and v (n,3) up to the time `until` [s] or so many collisions; how many there were, and the time."""
    n, now, done, reach = len(x), 0.0, 0, 4.0 * d
    near, count = np.empty((n, 600), np.int64), np.zeros(n, np.int64)
    when, who, listed = np.empty(n), np.empty(n, np.int64), -1.0
    while done < most:
        if (
            now >= listed
        ):  # who is near, and until when nobody else can come near: no sphere gets faster than the two fastest together
            squares = np.sort((v * v).sum(1))
            listed = now + 0.5 * reach / math.sqrt(squares[-1] + squares[-2])
            count[:] = 0
            for i in range(n):
                for j in range(i):
                    apart = 0.0
                    for k in range(3):
                        r = x[j, k] - x[i, k]
                        r -= side * np.rint(r / side)
                        apart += r * r
                    if apart < (d + reach) ** 2:
                        near[i, count[i]], near[j, count[j]] = j, i
                        count[i] += 1
                        count[j] += 1
            for i in range(n):
                when[i], who[i] = meeting(i, x, v, near, count, side, d)
                when[i] += now
        i = np.argmin(when)
        then = min(when[i], listed, until)
        x += v * (then - now)
        now = then
        if now >= until:
            break
        if now < when[i]:
            continue
        j = who[i]
        normal = x[j] - x[i]
        normal -= side * np.rint(normal / side)
        normal /= math.sqrt((normal * normal).sum())
        push = 0.5 * (1.0 + restitution) * ((v[j] - v[i]) * normal).sum() * normal
        v[i] += push
        v[j] -= push
        done += 1
        for a in range(n):
            if a in (i, j) or who[a] in (i, j):
                when[a], who[a] = meeting(a, x, v, near, count, side, d)
                when[a] += now
        for a in (i, j):  # others may meet one of these two before those that they would have met
            b = who[a]
            if b >= 0 and when[a] < when[b]:
                when[b], who[b] = when[a], a
    return done, now


def temperature(velocity):
    """Mean square of the velocity over three [m^2/s^2]; that is T / m."""
    moving = velocity - velocity.mean(0)
    return float((moving**2).sum()) / (3.0 * len(velocity))


def enskog(count, side, radius, heat):
    """Collisions a second of one of so many spheres; heat: T / m [m^2/s^2]."""
    dense = (1.0 - FILLED / 2.0) / (1.0 - FILLED) ** 3
    return 4.0 * count / side**3 * (2.0 * radius) ** 2 * dense * math.sqrt(math.pi * heat)


def elastic_gas(seed, count, radius, speed):
    """Places and velocities (n,3) of an elastic gas of hard spheres that has forgotten its start, the side of its box [m], its collisions over Enskog's."""
    side = (count * 4.0 / 3.0 * math.pi * radius**3 / FILLED) ** (1.0 / 3.0)
    along = math.ceil(count ** (1 / 3))
    place = np.stack(np.meshgrid(*[np.arange(along)] * 3, indexing="ij"), -1).reshape(-1, 3)[:count]
    place, velocity = (place + 0.5) * side / along, speed * np.random.default_rng(seed).normal(size=(count, 3))
    velocity -= velocity.mean(0)
    for _ in range(2):  # ten collisions of each sphere, and ten that are counted
        done, time = by_events(place, velocity, side, 2.0 * radius, 1.0, np.inf, 5 * count)
    return place % side, velocity, side, 2.0 * done / count / time / enskog(count, side, radius, temperature(velocity))


def cooled(place, velocity, side, radius, restitution, young, times):
    """T / m [m^2/s^2] of spheres of clast at some times [s]."""
    smooth = clast.Material(density=DENSITY, young=young, friction=0.0, restitution=restitution)
    scene = clast.Scene(gravity=(0.0, 0.0, 0.0), world=((0.0,) * 3, (side,) * 3), periodic=(True,) * 3)
    scene.add(clast.Sphere(radius), position=place, velocity=velocity, material=smooth)
    # Restitution is as asked for to 1e-3 only where forces are means over a step: a hundredth of it would be a twentieth of what is lost.
    sim, found = clast.Simulation(scene, clast.DEM(law="linear", in_step=True)), []
    for time in times:
        sim.run(until=time, progress=False)
        found.append(temperature(sim.bodies.velocity))
    return np.array(found)


def gases(seeds, own, count, restitutions=(0.9, 0.8), windows=(5.0, 20.0), young=2e9, radius=0.001, speed=0.3):
    """Rows of the table for gases that cool: clast and hard spheres by events beside Haff's law, over so many collisions of each sphere.

    seeds: how many gases; own: of how many of them clast has its turn, over the first of the windows.
    """
    starts = [elastic_gas(seed, count, radius, speed) for seed in range(1, seeds + 1)]
    counted = np.array([start[3] for start in starts])
    rows = [
        f"| {count:,} spheres, elastic, collisions a second, {seeds} starts | hard spheres by events | Enskog | {told(counted - 1.0)} |"
    ]
    for e in restitutions:
        part, theirs, ours = (1.0 - e * e) / 6.0, [], []
        for place, velocity, side, _ in starts:
            heat = temperature(velocity)
            rate = part * enskog(count, side, radius, heat)
            times = [(math.exp(part * window) - 1.0) / rate for window in windows]

            def off(cold, times, heat=heat, rate=rate):
                return (np.sqrt(heat / np.array(cold)) - 1.0) / np.array(times) / rate - 1.0

            if len(ours) < own:
                ours.append(off(cooled(place, velocity, side, radius, e, young, times[:1]), times[:1])[0])
            x, v, before, found = place.copy(), velocity.copy(), 0.0, []
            for time in times:
                by_events(x, v, side, 2.0 * radius, e, time - before, 10**9)
                before = time
                found.append(temperature(v))
            theirs.append(off(found, times))
            print(f"restitution {e}, start {len(theirs)}: off Haff {theirs[-1]}, clast {ours[-1]}", flush=True)
        a, b = np.array(ours), np.array(theirs)
        what = f"| {count:,} spheres cool, restitution {e:g}, over"
        rows.append(f"{what} {windows[0]:g} collisions of each, {own} starts | clast | Haff | {told(a)} |")
        rows.append(
            f"{what} {windows[0]:g}, the same starts | clast | hard spheres by events | {told(a - b[:own, 0])} |"
        )
        for k, window in enumerate(windows):
            rows.append(f"{what} {window:g}, {seeds} starts | hard spheres by events | Haff | {told(b[:, k])} |")
    return rows


def told(shares):
    """A mean and its error [%]."""
    error = f" ± {100.0 * shares.std(ddof=1) / math.sqrt(len(shares)):.1f}" if len(shares) > 1 else ""
    return f"{100.0 * shares.mean():+.1f}{error} %"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a smaller gas, nothing written")
    quick = parser.parse_args().quick
    rows = ["| what | clast | known | off by |", "|---|---:|---:|---:|", *wave()]
    rows += gases(2, 1, 300, (0.9,), (2.0,)) if quick else gases(8, 4, 2000)
    print("\n".join(rows))
    if not quick:
        head, rest = PAGE.read_text(encoding="utf-8").split(BEGIN)
        PAGE.write_text(head + BEGIN + "\n" + "\n".join(rows) + "\n" + END + rest.split(END)[1], encoding="utf-8")


if __name__ == "__main__":
    main()

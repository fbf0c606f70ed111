"""Contact laws as springs: no closed path of overlap and slip may give energy."""

import math

import numpy as np
import pytest

import clast
from clast.dem import laws

RADIUS, MASS = 0.01, 0.01
HEAVY = 1e9  # [kg], of bodies that forces do not move


def work_on_path(law, overlap, slide, friction):
    """Work [J] that the contact did on its bodies along a path: overlap (n,) [m] and tangential place (n,2) [m]."""
    mix = laws.Mix(1e8, 3e7, 0.0, 0.0, friction, 0.0, math.sqrt(0.3))
    slip, work = (0.0, 0.0, 0.0), 0.0
    dt = 1e-6
    normal, shear = 0.0, (0.0, 0.0, 0.0)
    for k in range(1, len(overlap)):
        step = slide[k] - slide[k - 1]
        rate = (overlap[k] - overlap[k - 1]) / dt
        touch = laws.Touch(overlap[k], rate, (0.0, 0.0, 1.0), (step[0] / dt, step[1] / dt, 0.0), slip, HEAVY, RADIUS)
        before = normal, shear
        normal, shear, slip = law(touch, mix, dt) if overlap[k] > 0.0 else (0.0, (0.0, 0.0, 0.0), slip)
        work -= 0.5 * (normal + before[0]) * rate * dt
        work += 0.5 * ((shear[0] + before[1][0]) * step[0] + (shear[1] + before[1][1]) * step[1])
    return work


def path(corners, each=1000):
    """Straight pieces through corners (n,3): overlap and two tangential places, in the middle of each step; the first and the last are outside."""
    corners = np.array(corners, float)
    parts = [a + (b - a) * np.linspace(0, 1, each, endpoint=False)[:, None] for a, b in zip(corners, corners[1:])]
    way = np.vstack([*parts, corners[-1:]])
    middle = 0.5 * (way[1:] + way[:-1])
    way = np.vstack([-middle[:1], middle, -middle[-1:]])
    return way[:, 0], way[:, 1:]


D, S = 1e-5, 1e-6


@pytest.mark.parametrize("friction", [0.5, 1e9])
@pytest.mark.parametrize("name", ["hertz", "linear"])
@pytest.mark.parametrize(
    "corners",
    [
        [(0, 0, 0), (D, 0, 0), (D, S, 0), (D, 0, 0), (0, 0, 0)],
        [(0, 0, 0), (D / 10, 0, 0), (D / 10, S, 0), (D, S, 0), (D, 0, 0), (0, 0, 0)],
        [(0, 0, 0), (D, 0, 0), (D, S, 0), (D / 10, S, 0), (D / 10, 0, 0), (0, 0, 0)],
        [(0, 0, 0), (D, S, S), (D / 2, -S, S), (D, -S, -S), (D / 5, 0, 0), (0, 0, 0)],
    ],
    ids=["shear-and-back", "shear-load-back", "shear-unload-back", "wander"],
)
def test_a_closed_path_gives_no_energy(name, corners, friction):
    law = getattr(laws.LAWS[name].function, "py_func", laws.LAWS[name].function)
    stored = 8.0 / 15.0 * 1e8 * math.sqrt(RADIUS * D) * D**2  # of the Hertz spring at the largest overlap
    assert work_on_path(law, *path(corners), friction) < 1e-5 * stored


@pytest.mark.parametrize("name", ["hertz", "linear"])
def test_a_spring_without_slip_is_elastic(name):
    law = getattr(laws.LAWS[name].function, "py_func", laws.LAWS[name].function)
    loop = path([(0, 0, 0), (D, 0, 0), (D, S, 0), (D, 0, 0), (0, 0, 0)], 2000)
    stored = 4.0 * 3e7 * math.sqrt(RADIUS * D) * S**2
    assert abs(work_on_path(law, *loop, 1e9)) < 1e-5 * stored


# The law "blaze" with the numbers of Govender et al. (2015), section 4: K_r = 1e9 in units of cm, g and s; octahedron with a
# bounding radius of 0.25 cm, for which they give no mass: that of 2.65 g/cm^3.
SPRING, LIGHT = 1e7, 2650.0 * 4.0 / 3.0 * 0.0025**3
SPEEDS = (0.0625, 0.125, 0.25, 0.5, 1.0, 2.0, 4.0)


def blaze_mix(damping=0.0, shear=0.0, friction=0.5, pulls=False):
    """Rows as `DEM.mixes` fills them."""
    return laws.Mix(SPRING, 1e6, shear, damping, friction, 0.0, -1e300 if pulls else 0.0)


def blaze_force(law, overlap, rate, mix, dt=1e-5, slide=(0.0, 0.0, 0.0)):
    touch = laws.Touch(overlap, rate, (0.0, 0.0, 1.0), slide, (0.0, 0.0, 0.0), LIGHT, RADIUS)
    return law(touch, mix, dt)


def collide(law, speed, dt, phase, mix):
    """Rebound speed, and overlap and force of every step, of a mass that comes in `phase` steps before it touches."""
    overlap, rate, force = -phase * speed * dt, speed, 0.0
    depths, forces = [], []
    while not (overlap <= 0.0 and rate < 0.0):
        rate -= 0.5 * dt * force / LIGHT
        overlap += dt * rate
        force = blaze_force(law, overlap, rate, mix, dt)[0] if overlap > 0.0 else 0.0
        rate -= 0.5 * dt * force / LIGHT
        depths.append(overlap)
        forces.append(force)
    return -rate, np.array(depths), np.array(forces)


PHASES = np.linspace(0.05, 0.95, 7)


@pytest.mark.parametrize("speed", SPEEDS)
def test_blaze_keeps_the_speed_of_a_head_on_collision(speed):
    """Table 1: the paper has up to 0.36 %, as has its force in the same scheme; the conserving form is exact."""
    plain = [collide(laws.blaze_plain, speed, 1e-5, phase, blaze_mix())[0] for phase in PHASES]
    conserving = [collide(laws.blaze, speed, 1e-5, phase, blaze_mix())[0] for phase in PHASES]
    assert np.abs(np.array(conserving) / speed - 1.0).max() < 1e-10
    assert 1e-5 < np.abs(np.array(plain) / speed - 1.0).max() < 1e-2


@pytest.mark.parametrize("law", [laws.blaze, laws.blaze_plain], ids=["conserving", "plain"])
def test_blaze_depth_force_and_duration(law):
    """Of a spring K d^1.5: m v^2 / 2 = 2/5 K d^2.5, and it takes 2.9433 d / v; second order in the step."""
    speed = 2.0
    depth = (1.25 * LIGHT * speed**2 / SPRING) ** 0.4
    lasts = 4.0 / 5.0 * math.sqrt(math.pi) * math.gamma(0.4) / math.gamma(0.9) * depth / speed
    assert lasts == pytest.approx(2.9433 * depth / speed, rel=1e-5)
    errors = []
    for parts in (100, 400):
        dt = lasts / parts
        _, depths, forces = collide(law, speed, dt, 0.5, blaze_mix())
        last = len(depths) - 2
        end = dt * (last + 1 + depths[last] / (depths[last] - depths[last + 1]) - 0.5)
        errors.append([depths.max() / depth - 1, forces.max() / (SPRING * depth**1.5) - 1, end / lasts - 1])
    assert np.abs(errors[0]).max() < 1e-3
    assert np.abs(errors[1]).max() < np.abs(errors[0]).max() / 12


@pytest.mark.parametrize("law", [laws.blaze, laws.blaze_plain], ids=["conserving", "plain"])
def test_blaze_is_the_published_force_for_short_steps(law):
    overlap, rate, slide = 2e-5, 0.3, (0.02, -0.01, 0.0)
    mix = blaze_mix(damping=500.0, shear=4.0, friction=1e3)
    normal, shear, slip = blaze_force(law, overlap, rate, mix, 1e-12, slide)
    assert normal == pytest.approx(SPRING * overlap**1.5 + 500.0 * overlap**0.5 * rate, rel=1e-5)
    assert shear == pytest.approx((-0.08, 0.04, 0.0), rel=1e-5)
    assert slip == (0.0, 0.0, 0.0)
    assert blaze_force(law, overlap, rate, mix, 0.0, slide)[0] == pytest.approx(normal, rel=1e-5)


def exact_rebound(speed, damping):
    """Speed after a collision with damping, by Runge-Kutta with very short steps; the overlap ends the contact."""

    def slope(x, v):
        return v, -(SPRING * max(x, 0.0) ** 1.5 + damping * max(x, 0.0) ** 0.5 * v) / LIGHT

    x, v, h = 0.0, speed, 2e-8
    while x >= 0.0:
        a = slope(x, v)
        b = slope(x + 0.5 * h * a[0], v + 0.5 * h * a[1])
        c = slope(x + 0.5 * h * b[0], v + 0.5 * h * b[1])
        d = slope(x + h * c[0], v + h * c[1])
        x += h / 6.0 * (a[0] + 2.0 * b[0] + 2.0 * c[0] + d[0])
        v += h / 6.0 * (a[1] + 2.0 * b[1] + 2.0 * c[1] + d[1])
    return -v


def test_blaze_damping_takes_the_right_energy():
    """K_D = 5e4 in units of cm, g and s, the damping of figure 16, on a contact that pulls as theirs does."""
    mix = blaze_mix(damping=500.0, pulls=True)
    exact = exact_rebound(2.0, 500.0)
    assert 0.2 < exact < 1.8
    error = {}
    for law, name in ((laws.blaze, "conserving"), (laws.blaze_plain, "plain")):
        error[name] = [
            abs(np.mean([collide(law, 2.0, dt, p, mix)[0] for p in PHASES]) - exact) for dt in (1e-6, 2.5e-7)
        ]
    assert error["conserving"][0] < 2e-3 and error["conserving"][1] < error["conserving"][0] / 4
    assert error["plain"][1] < error["plain"][0] / 2
    assert error["conserving"][0] < 0.5 * error["plain"][0]


@pytest.mark.parametrize("law", [laws.blaze, laws.blaze_plain], ids=["conserving", "plain"])
def test_blaze_pulls_only_if_asked(law):
    leaving = {"overlap": 1e-7, "rate": -1.0}
    assert blaze_force(law, **leaving, mix=blaze_mix(damping=500.0), dt=1e-8)[0] == 0.0
    assert blaze_force(law, **leaving, mix=blaze_mix(damping=500.0, pulls=True), dt=1e-8)[0] < -0.1
    arriving = {"overlap": 1e-7, "rate": 1.0}
    both = [blaze_force(law, **arriving, mix=blaze_mix(damping=500.0, pulls=pulls))[0] for pulls in (False, True)]
    assert both[0] == both[1] > 0.0


@pytest.mark.parametrize("law", [laws.blaze, laws.blaze_plain], ids=["conserving", "plain"])
def test_blaze_shear_has_two_regimes(law):
    """Below the cone K_T times the velocity, above it mu times the normal force; always against the sliding velocity."""
    mix = blaze_mix(shear=4.0, friction=0.154)
    for speed in (1e-6, 1e-3, 0.1, 10.0):
        normal, shear, _ = blaze_force(law, 2e-5, 0.0, mix, 1e-9, (0.6 * speed, -0.8 * speed, 0.0))
        expected = min(0.154 * normal, 4.0 * speed)
        assert shear == pytest.approx((-0.6 * expected, 0.8 * expected, 0.0), rel=1e-4)
    assert blaze_force(law, 2e-5, 0.0, mix)[1] == (0.0, 0.0, 0.0)


def test_blaze_between_spheres_and_at_walls():
    """Elastic collisions keep their speed; energy and rebound as of the scalar law; a pair given by its own value."""
    grain = clast.Material(
        density=2650.0, friction=0.0, blaze_stiffness=SPRING, blaze_damping=0.0, blaze_shear=0.0, name="grain"
    )
    floor = clast.Material(name="floor")
    scene = clast.Scene(gravity=(0, 0, 0))
    radius = 0.0025
    scene.add(clast.Plane(), material=floor)
    scene.add(clast.Sphere(radius), position=(0, 0, radius * 1.001), velocity=(0, 0, -1.0), material=grain)
    scene.add(clast.Sphere(radius), position=(0.1, 0, 1 - 1.001 * radius), velocity=(0, 0, 1.0), material=grain)
    scene.add(clast.Sphere(radius), position=(0.1, 0, 1 + 1.001 * radius), velocity=(0, 0, -1.0), material=grain)
    sim = clast.Simulation(scene, clast.DEM(law="blaze"), dt=1e-5)
    mass = sim.bodies.mass[1]
    total, deepest = [], []
    for _ in range(60):
        sim.step()
        z = sim.bodies.position[:, 2]
        deepest.append((radius - z[1], 2 * radius - (z[3] - z[2])))
        total.append(clast.measure.energy(sim)["total"])
    assert sim.bodies.velocity[1:, 2] == pytest.approx([1.0, -1.0, 1.0], rel=1e-9)
    depth = [(1.25 * m * v**2 / SPRING) ** 0.4 for m, v in ((mass, 1.0), (0.5 * mass, 2.0))]
    assert np.max(deepest, axis=0) == pytest.approx(depth, rel=1e-2)
    # Ten steps a contact: the energy of one moment is right to second order only.
    assert np.array(total) == pytest.approx(1.5 * mass, rel=3e-2)


def test_blaze_says_what_it_needs():
    scene = clast.Scene()
    scene.add(clast.Plane(), material=clast.Material(name="floor"))
    scene.add(clast.Sphere(0.01), position=(0, 0, 1), material=clast.Material(blaze_stiffness=1e6, name="clay"))
    with pytest.raises(
        ValueError, match=r"'blaze' needs blaze_damping for materials floor and clay; give .*K_D \[N s/m"
    ):
        clast.Simulation(scene, clast.DEM(law="blaze"))
    with pytest.raises(ValueError, match=r"attraction is an option of law='blaze', not of 'hertz'"):
        clast.DEM(attraction=True)
    with pytest.raises(ValueError, match=r"conserving=True needs a law whose energy is known .*, not 'halo'"):
        clast.DEM(law="halo", conserving=True)


def test_blaze_step_is_a_third_of_the_contact_time_at_five_percent():
    grain = clast.Material(blaze_stiffness=1e6, blaze_damping=0.0, blaze_shear=0.0)
    scene = clast.Scene()
    scene.add(clast.Sphere(0.01), material=grain)
    step, body = clast.DEM(law="blaze").critical_step(scene)
    mass, depth = 0.5 * float(scene.bodies.mass[0]), 0.05 * 0.01
    speed = math.sqrt(0.8 * 1e6 * depth**2.5 / mass)
    assert (step, body) == (pytest.approx(2.9433 * depth / speed / 3.0, rel=1e-4), 0)


def on_a_plate(law="hertz", speed=1.0, plate=None, **pair):
    """A ball above a plate, with numbers of their own for the pair."""
    ball, plate = clast.Material(restitution=0.8), plate or clast.Material()
    scene = clast.Scene(gravity=(0.0, 0.0, 0.0))
    scene.add(clast.Plane(), material=plate)
    scene.add(clast.Sphere(0.005), position=(0.0, 0.0, 0.0051), velocity=(0.0, 0.0, -speed), material=ball)
    if pair:
        scene.combine(ball, plate, **pair)
    return clast.Simulation(scene, clast.DEM(law=law))


def test_the_step_of_hertz_follows_the_moduli_of_a_pair():
    sim = on_a_plate(young=1e11, shear=3e10, restitution=0.8)
    sim.run(until=0.001, progress=False)
    assert sim.bodies.velocity[1, 2] == pytest.approx(0.8, abs=2e-3)
    # A material that makes these contacts with its like, whatever the one of the ball.
    like, nu = [], 0.25
    for modulus in ((1.0 - nu) * 1e11, 2.0 * (2.0 - nu) * 3e10):
        like.append(0.005 * math.pi * math.sqrt(2500.0 / modulus) / (0.1631 * nu + 0.8766))
    assert sim.stepper.critical == pytest.approx(min(like), rel=1e-12)
    assert on_a_plate(young=1e11).stepper.critical == pytest.approx(like[0], rel=1e-12)
    # A soft pair does not make those of the ball with its like longer, and numbers of other kinds change nothing.
    own = on_a_plate().stepper.critical
    assert own == on_a_plate(young=1e5, shear=1e4).stepper.critical == on_a_plate(friction=0.1).stepper.critical


SCENE = """
[materials.clay]
blaze_stiffness = 1e6
blaze_damping = 50
blaze_shear = 0.4
[[pairs]]
between = ["clay", "clay"]
blaze_damping = 20
[[bodies]]
radius = 0.01
position = [0, 0, 0]
[run]
law = "blaze"
attraction = true
conserving = false
"""


def test_blaze_from_a_scene_file_and_after_a_restart(tmp_path):
    """Every number of the file arrives, and a checkpoint keeps the options."""
    from clast.scenefile import load

    (tmp_path / "clay.toml").write_text(SCENE, encoding="utf-8")
    sim = load(tmp_path / "clay.toml").simulation()
    assert sim.method.recipe.function is laws.blaze_plain
    assert sim.stepper.mixes[0, [0, 2, 3, 6]] == pytest.approx([1e6, 0.4, 20.0, -1e300])
    sim.step()
    sim.save(tmp_path / "clay.h5")
    again = clast.resume(tmp_path / "clay.h5")
    assert again.method == sim.method
    assert np.array_equal(again.stepper.mixes, sim.stepper.mixes)

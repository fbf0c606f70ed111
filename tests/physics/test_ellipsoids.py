"""Ellipsoids in motion: impacts, rest, closed forms of Hertz, free rotation, friction, and balls as a special case."""

import math

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.optimize import brentq
from scipy.special import ellipe, ellipk

import clast
from clast import measure

G = 9.81
PEBBLE = clast.Ellipsoid(0.012, 0.009, 0.006)


def turned(axis, angle):
    """Quaternion of a turn by `angle` [rad] about an axis."""
    axis = np.asarray(axis, float) / np.linalg.norm(axis)
    return np.append(math.cos(0.5 * angle), math.sin(0.5 * angle) * axis)


def axes_of(orientation):
    """Matrix (3,3) whose columns are the axes of a body in the world."""
    w, x, y, z = orientation
    return np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
            [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
            [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
        ]
    )


def oblique_impact(seed, material, speed, law="hertz", part=1.0):
    """Simulation of two pebbles in a random pose, just before an oblique impact of this speed [m/s], and spinning.

    Their surfaces spin about as fast as they fly. dt is dt="auto" times `part`.
    """
    random = np.random.default_rng(seed)
    pose = random.normal(size=(2, 4))
    pose /= np.linalg.norm(pose, axis=1)[:, None]
    aside = random.uniform(-0.004, 0.004, 2)
    spin = random.normal(size=(2, 3)) * speed / 0.012
    apart = 0.03
    for _ in range(60):
        place = np.array([(-0.5 * apart, 0, 0), (0.5 * apart, *aside)])
        scene = clast.Scene(gravity=(0, 0, 0))
        scene.add(
            PEBBLE,
            position=place,
            orientation=pose,
            velocity=[(0.5 * speed, 0, 0), (-0.5 * speed, 0, 0)],
            spin=spin,
            material=material,
        )
        near = clast.find_contacts(scene, pairs=[(0, 1)], margin=np.inf)
        if near.gap[0] < 2e-5:
            break
        apart -= near.gap[0] - 1e-5
    method = clast.DEM(law=law)
    step = part * clast.Simulation(scene, method).dt if part != 1.0 else "auto"
    return clast.Simulation(rebuilt(scene), method, dt=step)


def rebuilt(scene):
    """A copy of a scene that no simulation runs."""
    return clast.Scene.rebuild(*scene.describe())


def collide(sim):
    """Run until the two bodies have touched and parted; returns the energies [J] and momenta before and after."""
    states = []
    for wanted in (True, False):
        states.append((measure.energy(sim)["total"], *measure.momentum(sim)))
        for _ in range(4000):
            sim.step(5)
            if (sim.touching() > 0) == wanted:
                break
    assert sim.touching() == 0
    return states[0], (measure.energy(sim)["total"], *measure.momentum(sim))


def check_momenta(sim, before, after):
    """Both momenta to 1e-12 of what the bodies carry each for themselves."""
    bodies = sim.bodies
    scale = bodies.mass[0] * np.linalg.norm(bodies.velocity, axis=1).max()
    assert np.abs(after[1] - before[1]).max() < 1e-12 * scale
    assert np.abs(after[2] - before[2]).max() < 1e-12 * max(scale * 0.012, np.linalg.norm(before[2]))


# The linear spring has a potential, so the energy error is that of the steps alone and falls with the square of dt: the
# worst of these six poses 2.5e-3, 5.3e-4, 1.4e-4, 1.3e-5 with 1, 1/2, 1/4, 1/10 of dt="auto" (9.1e-6 s). The force of
# Hertz has none while the radius of curvature changes under the moving contact: with dt="auto" (9.1e-7 s) 4.8e-5, with a
# quarter of it 4.6e-5. That error falls with the overlap over the size, hence with stiffness and speed: 9.2e-5 for
# young=1e10, 2.6e-4 for 1e9.
GLASS = {"young": 7e10, "poisson": 0.2, "restitution": 1.0, "stiffness": 1e6}


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize(("law", "part"), [("hertz", 1.0), ("linear", 0.1)])
def test_elastic_oblique_impact_keeps_energy_and_momenta(law, part, seed):
    sim = oblique_impact(seed, clast.Material(friction=0.0, **GLASS), 0.1, law, part)
    before, after = collide(sim)
    assert abs(after[0] / before[0] - 1.0) < 1e-4
    check_momenta(sim, before, after)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("law", ["hertz", "linear"])
def test_friction_keeps_momenta_and_takes_energy(law, seed):
    sim = oblique_impact(seed, clast.Material(friction=0.5, **GLASS), 0.1, law)
    before, after = collide(sim)
    assert after[0] < before[0]
    check_momenta(sim, before, after)


def flat_floors(material):
    """A plane at height 0, a meshed floor of 7 x 7 squares at 0.1 m and an open box of quads at 0.2 m, with a pebble each."""
    scene = clast.Scene(gravity=(0, 0, -G))
    walls = [scene.add(clast.Plane(), material=material)]
    x, y = (grid.ravel() for grid in np.meshgrid(np.linspace(-0.05, 0.05, 8), np.linspace(-0.05, 0.05, 8)))
    corner = np.array([row + 8 * column for column in range(7) for row in range(7)])
    first, second = np.stack([corner, corner + 1, corner + 9], 1), np.stack([corner, corner + 9, corner + 8], 1)
    floor = clast.MeshWall(np.column_stack([x, y, 0 * x]), np.vstack([first, second]))
    walls.append(scene.add(floor, position=(0.3, 0, 0.1), material=material))
    half = 0.05
    corners = np.array([(-half, -half), (half, -half), (half, half), (-half, half)])
    quads = [np.column_stack([corners, np.zeros(4)])]
    for k in range(4):
        (a, b), (c, d) = corners[k], corners[(k + 1) % 4]
        quads.append([(a, b, 0), (c, d, 0), (c, d, half), (a, b, half)])
    box = [scene.add(clast.Quad(quad), position=(-0.3, 0, 0.2), material=material)[0] for quad in quads]
    walls.append(np.array(box))
    tilt = turned((1, 2, 0.5), 0.7)
    place = [(0.001, 0.002, 0.02), (0.301, 0.002, 0.12), (-0.299, 0.002, 0.22)]
    pebbles = scene.add(PEBBLE, position=place, orientation=tilt, material=material)
    return scene, walls, pebbles


@pytest.mark.slow
def test_a_dropped_pebble_comes_to_rest_on_its_flat_side():
    """Rolling friction ends the rocking, which little else slows down; it holds a tilt below its own angle, 1.7 degrees.

    The same pebble does the same on a plane, on a mesh and in a box of quads.
    """
    material = clast.Material(young=1e7, friction=0.5, restitution=0.3, rolling_friction=0.03)
    scene, walls, pebbles = flat_floors(material)
    sim = clast.Simulation(scene, clast.DEM())
    sim.step(math.ceil(1.2 / sim.dt))
    bodies = sim.bodies
    weight = G * bodies.mass[pebbles]
    for k, body in enumerate(pebbles):
        upright = abs(axes_of(bodies.orientation[body])[2, 2])
        assert math.degrees(math.acos(min(1.0, upright))) < 2.0
        push = sum(measure.wall_force(sim, wall) for wall in walls[k])
        assert push == pytest.approx(np.array([0, 0, -weight[k]]), abs=1e-3 * weight[k])
        assert np.linalg.norm(bodies.velocity[body]) < 1e-3
        assert bodies.orientation[body] == pytest.approx(bodies.orientation[pebbles[0]], abs=1e-6)


def tumble_among_walls(shape):
    """Balls that bounce, slide and roll on a floor, in a drum, on a rod and on each other: their final bodies."""
    material = clast.Material(young=1e7, friction=0.4, restitution=0.6, rolling_friction=0.02)
    scene = clast.Scene(gravity=(0.3, 0.2, -G))
    scene.add(clast.Plane(), material=material)
    scene.add(clast.Plane(normal=(-1, 0, 0.1)), position=(0.045, 0, 0), material=material)
    scene.add(clast.Cylinder(0.08, 0.4, axis=(0, 1, 0)), position=(0.0, 0, 0.06), spin=(0, 3, 0), material=material)
    rod = clast.Cylinder(0.01, 0.4, axis=(0, 1, 0), inside=False)
    scene.add(rod, position=(0.01, 0, 0.015), material=material)
    spots = [(-0.03, 0, 0.02), (0.01, 0.005, 0.05), (0.012, 0.005, 0.075), (0.035, 0.0, 0.05), (-0.035, 0.01, 0.06)]
    random = np.random.default_rng(4)
    pose = random.normal(size=(5, 4))
    numbers = scene.add(
        shape,
        position=spots,
        orientation=pose / np.linalg.norm(pose, axis=1)[:, None],
        velocity=[(0.3, 0.1, -0.2), (0, 0.1, 0), (0, 0, -0.3), (0.6, -0.1, 0), (-0.4, 0, 0.1)],
        spin=random.normal(size=(5, 3)) * 20,
        material=material,
    )
    sim = clast.Simulation(scene, clast.DEM(), dt=2e-5)
    touched = set()
    for _ in range(100):
        sim.step(100)
        touched |= {(int(a), int(b)) for a, b in sim.contacts().pair}
    assert {a for a, _ in touched} >= {0, 1, 2, 3}
    assert any(a > 3 for a, _ in touched)
    return sim.bodies, numbers


@pytest.mark.slow
def test_an_ellipsoid_with_three_equal_axes_is_a_ball():
    """Two kernels, one motion. Radii are equal, because spheres share an overlap by their radii, ellipsoids by halves."""
    ball, numbers = tumble_among_walls(clast.Sphere(0.008))
    same, _ = tumble_among_walls(clast.Ellipsoid(0.008, 0.008, 0.008))
    for name, size in (("position", 0.008), ("velocity", 1.0), ("spin", 100.0)):
        difference = getattr(same, name)[numbers] - getattr(ball, name)[numbers]
        assert np.abs(difference).max() < 1e-9 * size, name
    # The balls have moved, and each in its own way.
    assert np.ptp(np.linalg.norm(ball.velocity[numbers], axis=1)) > 1e-3


def hertz_force(curvature, overlap, young):
    """Force [N] between surfaces with the sum of curvatures (2,2) [1/m] (Johnson 1985, eq. 4.26)."""
    low, high = 0.5 * np.linalg.eigvalsh(curvature)  # the gap is low x^2 + high y^2
    if high / low < 1.0 + 1e-9:
        return 4.0 / 3.0 * young * math.sqrt(0.5 / low) * overlap**1.5

    def excess(square):  # square: of the eccentricity of the contact area
        return (ellipe(square) / (1 - square) - ellipk(square)) / (ellipk(square) - ellipe(square)) - high / low

    square = brentq(excess, 1e-9, 1 - 1e-12, xtol=1e-15)
    long = math.sqrt(overlap * (ellipk(square) - ellipe(square)) / (ellipk(square) * square * low))
    return 2.0 * math.pi * long * young * overlap / (3.0 * ellipk(square))


@pytest.mark.parametrize("angle", [0.0, 0.4, 0.9, 1.5707963267948966])
def test_force_between_crossed_spheroids(angle):
    """Two rods of 3:1 that touch with their flanks, at an angle: the contact area goes from long ellipse to circle."""
    a, b, depth = 0.03, 0.01, 1e-6
    material = clast.Material(young=1e9, poisson=0.3)
    scene = clast.Scene(gravity=(0, 0, 0))
    rods = [turned((0, 0, 1), 0.0), turned((0, 0, 1), angle)]
    scene.add(
        clast.Ellipsoid(a, b, b), position=[(0, 0, 0), (0, 0, 2 * b - depth)], orientation=rods, material=material
    )
    sim = clast.Simulation(scene, clast.DEM())
    sim.start()
    found = sim.contacts()
    assert found.gap == pytest.approx([-depth], rel=1e-9)
    one = np.diag([b / a**2, 1 / b])
    turn = np.array([[math.cos(angle), -math.sin(angle)], [math.sin(angle), math.cos(angle)]])
    expected = hertz_force(one + turn @ one @ turn.T, depth, 1e9 / (2 * (1 - 0.3**2)))
    assert found.force[0] == pytest.approx(np.array([0, 0, expected]), rel=1e-3, abs=1e-6 * expected)


def test_impact_of_two_spheroids_tip_to_tip():
    """Force, overlap and time of Hertz with the radius b^2/a of the tips (Johnson 1985, section 11.4)."""
    a, b, speed = 0.02, 0.008, 1.0
    material = clast.Material(young=1e9, poisson=0.25, friction=0.3, restitution=1.0)
    scene = clast.Scene(gravity=(0, 0, 0))
    shape = clast.Ellipsoid(a, b, b)
    scene.add(shape, position=[(0, 0, 0), (2 * a, 0, 0)], velocity=[(speed, 0, 0), (-speed, 0, 0)], material=material)
    mass, stiff = 0.5 * float(scene.bodies.mass[0]), 1e9 / (2 * (1 - 0.25**2))
    radius, closing = 0.5 * b * b / a, 2 * speed
    overlap = (15 * mass * closing**2 / (16 * math.sqrt(radius) * stiff)) ** 0.4
    force = 4 / 3 * stiff * math.sqrt(radius) * overlap**1.5
    duration = 4 / 5 * math.sqrt(math.pi) * math.gamma(0.4) / math.gamma(0.9) * overlap / closing
    sim = clast.Simulation(scene, clast.DEM(), dt=duration / 1000)
    depths, pushes = [], []
    for _ in range(1020):
        sim.step()
        bodies = sim.bodies
        depths.append(2 * a - (bodies.position[1, 0] - bodies.position[0, 0]))
        pushes.append(bodies.force[1, 0])
    depths = np.array(depths)
    last = int(np.nonzero(depths > 0)[0][-1])
    end = sim.dt * (last + 1 + depths[last] / (depths[last] - depths[last + 1]))
    assert max(pushes) == pytest.approx(force, rel=1e-4)
    assert depths.max() == pytest.approx(overlap, rel=1e-4)
    assert end == pytest.approx(duration, rel=1e-3)
    assert sim.bodies.velocity[:, 0] == pytest.approx([-speed, speed], rel=1e-4)


def test_spin_about_the_middle_axis_tips_over_and_keeps_energy_and_momentum():
    """Against an eighth-order method on Euler's equations; the axis turns over several times on the way."""
    scene = clast.Scene(gravity=(0, 0, 0))
    spin = np.array([2.0, 60.0, 1.0])
    scene.add(PEBBLE, spin=spin)
    sim = clast.Simulation(scene, clast.DEM(), dt=5e-5)
    inertia = np.diag(PEBBLE.inertia)
    energy, momentum = measure.energy(sim)["rotational"], measure.momentum(sim)[1]
    upright = []
    for _ in range(50):
        sim.step(200)
        upright.append(axes_of(sim.bodies.orientation[0])[1, 1])
    assert min(upright) < -0.9
    assert max(upright[10:]) > 0.9
    assert abs(measure.energy(sim)["rotational"] / energy - 1.0) < 1e-9
    assert np.linalg.norm(measure.momentum(sim)[1] - momentum) < 1e-11 * np.linalg.norm(momentum)

    def rate(_, w):
        return np.cross(inertia * w, w) / inertia

    exact = solve_ivp(rate, (0, sim.time), spin, method="DOP853", rtol=1e-13, atol=1e-13).y[:, -1]
    own = axes_of(sim.bodies.orientation[0]).T @ sim.bodies.spin[0]
    assert own == pytest.approx(exact, abs=1e-8 * 60.0)


THIN = [clast.Ellipsoid(0.02, 2e-4, 2e-4), clast.Ellipsoid(0.02, 0.02, 2e-4)]


@pytest.mark.parametrize("law", ["hertz", "linear"])
@pytest.mark.parametrize("shape", THIN, ids=["needle", "disc"])
def test_needles_and_discs_fall_on_a_pile_and_stay(shape, law):
    material = clast.Material(young=1e6, friction=0.4, restitution=0.4, stiffness=1e4)
    scene = clast.Scene(gravity=(0, 0, -G), world=((-0.05, -0.05, -0.005), (0.05, 0.05, 0.3)))
    scene.add(clast.Plane(), material=material)
    for side in ((1, 0, 0), (-1, 0, 0), (0, 1, 0), (0, -1, 0)):
        scene.add(clast.Plane(normal=side), position=-0.04 * np.array(side), material=material)
    box = ((-0.04, -0.04, 0.0), (0.04, 0.04, 0.05))
    scene.fill(PEBBLE, count=8, box=box, velocity=(0, 0, -0.5), material=material, seed=3)
    box = ((-0.04, -0.04, 0.05), (0.04, 0.04, 0.13))
    scene.fill(shape, count=2, box=box, velocity=(0, 0, -1.0), spin=(3, 5, 0), material=material, seed=4)
    sim = clast.Simulation(scene, clast.DEM(law=law))
    energy = [measure.energy(sim)["total"]]
    for _ in range(10):
        sim.step(math.ceil(0.008 / sim.dt))
        energy.append(measure.energy(sim)["total"])
    energy = np.array(energy)
    assert (np.diff(energy) < 1e-3 * energy[0]).all()
    assert energy[-1] < energy[0]
    free = sim.bodies.motion == 0
    assert np.linalg.norm(sim.bodies.velocity[free], axis=1).max() < 3.0
    assert sim.touching() > 0


def test_the_automatic_step_of_the_linear_law_follows_a_flat_side():
    """A disc of 10:1 bounces flat off a plane with restitution 1; its stiffness is that of the radius a^2/c."""
    a, c = 0.02, 0.002
    material = clast.Material(young=1e7, restitution=1.0)
    scene = clast.Scene(gravity=(0, 0, 0))
    scene.add(clast.Plane(), material=material)
    scene.add(clast.Ellipsoid(a, a, c), position=(0, 0, c + 1e-4), velocity=(0, 0, -0.1), material=material)
    sim = clast.Simulation(scene, clast.DEM(law="linear"))
    sim.step(math.ceil(0.004 / sim.dt))
    assert sim.bodies.velocity[1, 2] == pytest.approx(0.1, rel=0.02)


@pytest.mark.parametrize("law", ["hertz", "linear"])
@pytest.mark.parametrize("fraction", [0.9, 1.1])
def test_a_flat_stone_holds_below_the_friction_angle_and_slides_above(law, fraction):
    """A stone of 10:1; its centre is so low over so flat a side that it leans by less than a hundredth of the slope."""
    mu, a, c = 0.4, 0.03, 0.003
    angle = math.atan(mu * fraction)
    material = clast.Material(young=1e8, friction=mu, restitution=0.3, stiffness=1e6)
    scene = clast.Scene(gravity=(G * math.sin(angle), 0.0, -G * math.cos(angle)))
    scene.add(clast.Plane(), material=material)
    # Where the friction's torque is balanced: the contact is c tan(slope) ahead of the centre.
    lean = c * min(mu, math.tan(angle)) / (a * a / c - c)
    stone = scene.add(
        clast.Ellipsoid(a, a, c), position=(0, 0, c), orientation=turned((0, 1, 0), lean), material=material
    )[0]
    sim = clast.Simulation(scene, clast.DEM(law=law))
    sim.step(math.ceil(0.02 / sim.dt))
    speed, place, time = sim.bodies.velocity[stone, 0], sim.bodies.position[stone, 0], sim.time
    sim.step(math.ceil(0.08 / sim.dt))
    time = sim.time - time
    if fraction < 1.0:
        assert abs(sim.bodies.position[stone, 0] - place) < 1e-6
        assert abs(sim.bodies.velocity[stone, 0]) < 1e-4
    else:
        expected = G * (math.sin(angle) - mu * math.cos(angle))
        assert (sim.bodies.velocity[stone, 0] - speed) / time == pytest.approx(expected, rel=5e-3)

"""Oblique impacts against stored ones, closed forms, and the curves of Chung and Ooi (2011), tests 3 to 8.

The stored impacts are the same laws, integrated apart from clast, in all regimes: sticking, sliding, and both in turn.

Once the contact slides all through the impact, the rebound follows from Coulomb's law alone; there every law must meet
the curves, and the closed form far better. Where the contact sticks, the rebound depends on how shear is treated under
changing load: the curves of different tests are of different forms, which docs/validation.md tells. The default law follows none of them there.
The last three points of the alloy in test 6 are met by no form that was tried.
"""

import json
import math

import numpy as np
import pytest

import clast
from clast.scene.materials import combine

RESCALED = clast.DEM(law="hertz", shear="rescaled", shear_damping=False)  # meets test 4
INCREMENTAL = clast.DEM(law="hertz", shear="incremental", shear_damping=False)  # meets test 5 at half stiffness
SECANT = clast.DEM(law="hertz", shear="secant", damping="tsuji")  # meets tests 6 and 8


def impacts(density, young, poisson, friction, restitution, radius, normal, tangential, spin, method=None, shear=1.0):
    """Spheres that hit a rigid plane: final tangential and normal velocity [m/s] and spin [rad/s] of each.

    normal, tangential [m/s] and spin [rad/s]: numbers or (n,); method: a DEM, None for the default; shear: factor of the shear stiffness.
    """
    normal, tangential, spin = np.broadcast_arrays(*np.atleast_1d(normal, tangential, spin))
    n = len(normal)
    options = {"poisson": poisson, "friction": friction, "restitution": restitution}
    ball = clast.Material(density=density, young=young, name="ball", **options)
    rigid = clast.Material(density=density, young=1e22, name="rigid", **options)
    scene = clast.Scene(gravity=(0, 0, 0))
    zero = np.zeros(n)
    scene.add(
        clast.Sphere(radius),
        position=np.column_stack([zero, 5 * radius * np.arange(n), zero + radius]),
        velocity=np.column_stack([tangential, zero, -normal]),
        spin=np.column_stack([zero, spin, zero]),
        material=ball,
    )
    scene.add(clast.Plane(), material=rigid)
    mix = combine(scene.materials, scene.pairs)
    if shear != 1.0:
        scene.combine(ball, rigid, shear=shear * mix.shear[0, 1])
    mass = float(scene.bodies.mass[0])
    slow, fast = (2.8683 * (mass**2 / (radius * mix.young[0, 1] ** 2 * v)) ** 0.2 for v in (normal.min(), normal.max()))
    sim = clast.Simulation(scene, method or clast.DEM(), dt=fast / 400)
    sim.step(math.ceil(1.3 * slow / sim.dt))
    while len(sim.contacts().gap):
        sim.step(100)
    bodies = sim.bodies
    return bodies.velocity[:n, 0], bodies.velocity[:n, 2], bodies.spin[:n, 1]


def curve(folder, name, title):
    """One digitised curve (n,2): the rows below the comment that begins with `title`."""
    rows, mine = [], False
    for line in (folder / "chung_ooi" / "paper_data_1_to_17" / name).read_text().splitlines():
        if line.startswith("#"):
            mine = line.lstrip("# ").startswith(title)
        elif mine and line.strip():
            rows.append([float(word) for word in line.replace(",", " ").split()])
    return np.array(rows)


OXIDE = (4000.0, 3.8e11, 0.23, 0.092, 0.98, 0.0025)
ALLOY = (2700.0, 7.0e10, 0.33, 0.092, 0.98, 0.0025)
STEEL = (7850.0, 2.08e11, 0.30, 0.3, 1.0, 0.01)
PLASTIC = (1400.0, 1.0e9, 0.40, 0.3, 1.0, 0.01)
LIGHT = (2700.0, 7.0e10, 0.33, 0.4, 0.5, 0.1)
NYLON = (1000.0, 2.5e9, 0.40, 0.4, 0.5, 0.1)


STORED = ("glass", "glass that spins", "rubber", "glass by the direct law", "glass by the gradual law")


@pytest.mark.parametrize("name", STORED)
def test_stored_impacts(own_data, name):
    given = json.loads((own_data / "impacts.json").read_text())[name]
    material = [given[key] for key in ("density", "young", "poisson", "friction", "restitution", "radius")]
    speeds = [np.array(given[key]) for key in ("normal", "tangential", "spin")]
    method = {"hertz": None, "direct": RESCALED, "gradual": INCREMENTAL}[given["law"]]
    found = impacts(*material, *speeds, method, given["shear"])
    for values, key in zip(found, ("after v", "after w", "after omega"), strict=True):
        stored = np.array(given[key])
        assert np.abs(values - stored).max() < 3e-3 * np.abs(stored).max(), key
    assert np.abs(found[1] / speeds[0] / given["restitution"] - 1.0).max() < 1e-3


def test_restitution_of_test_3(reference_data):
    given = np.loadtxt(reference_data / "chung_ooi" / "paper_data_1_to_17" / "benchmark3_graph1.dat")[1:]
    for asked, published in given:
        _, speed, _ = impacts(4000.0, 3.8e11, 0.23, 0.0, asked, 0.0025, 3.9, 0.0, 0.0)
        assert speed[0] / 3.9 == pytest.approx(published, rel=0.01)


@pytest.mark.parametrize("law", ["hertz", "linear"])
@pytest.mark.parametrize("restitution", [0.5, 0.98])
def test_sliding_all_through_an_impact(law, restitution):
    """Closed form: the tangential momentum is mu times the normal momentum, whatever the law."""
    mu, speed, radius = 0.1, 2.0, 0.01
    tangent = np.array([1.0, 2.0, 5.0])
    v, w, spin = impacts(2500.0, 1e9, 0.25, mu, restitution, radius, speed, speed * tangent, 0.0, clast.DEM(law=law))
    lost = mu * (speed + w)
    assert v == pytest.approx(speed * tangent - lost, rel=1e-5)
    # The arm of the torque is shorter than the radius by half of the overlap, here up to one per cent.
    assert radius * spin == pytest.approx(2.5 * lost, rel=0.03)


@pytest.mark.parametrize(("title", "material"), [("Oxide", OXIDE), ("Alloy", ALLOY)])
def test_tangential_restitution_of_test_4(reference_data, title, material):
    given = curve(reference_data, "benchmark4_graph1.dat", title)
    angle = np.radians(given[:, 0])
    speeds = 3.9 * np.cos(angle), 3.9 * np.sin(angle)
    found = impacts(*material, *speeds, 0.0, RESCALED)[0] / speeds[1]
    assert np.abs(found / given[:, 1] - 1.0).max() < 0.025
    # Our own law, from where the impact slides all through.
    slides = given[:, 0] > 33
    found = impacts(*material, speeds[0][slides], speeds[1][slides], 0.0)[0] / speeds[1][slides]
    assert np.abs(found / given[slides, 1] - 1.0).max() < 0.01


@pytest.mark.parametrize(("title", "material"), [("Al. oxide", OXIDE), ("Al. alloy", ALLOY)])
def test_spin_and_rebound_angle_of_test_4(reference_data, title, material):
    for name, of in (
        ("benchmark4_graph2.dat", lambda v, w, spin: -spin),
        ("benchmark4_graph3.dat", lambda v, w, spin: np.degrees(np.arctan2(v - material[5] * spin, w))),
    ):
        given = curve(reference_data, name, title)
        angle = np.radians(given[:, 0])
        found = of(*impacts(*material, 3.9 * np.cos(angle), 3.9 * np.sin(angle), 0.0, RESCALED))
        assert np.abs(found - given[:, 1]).max() < 0.025 * np.ptp(given[:, 1])


@pytest.mark.parametrize(("title", "material"), [("Steel", STEEL), ("Polyethylene", PLASTIC)])
def test_recoil_of_test_5(reference_data, title, material):
    """Recoil of the contact point and spin, both over mu times the normal speed of 5 m/s."""
    radius, unit = material[5], 0.3 * 5.0
    for name, of in (
        ("benchmark5_graph1.dat", lambda v, w, spin: (v - radius * spin) / unit),
        ("benchmark5_graph2.dat", lambda v, w, spin: -radius * spin / unit),
    ):
        given = curve(reference_data, name, title)
        found = of(*impacts(*material, 5.0, given[:, 0] * unit, 0.0, INCREMENTAL, 0.5))
        assert np.abs(found - given[:, 1]).max() < 0.025 * np.ptp(given[:, 1])
        slides = given[:, 0] > 7
        found = of(*impacts(*material, 5.0, given[slides, 0] * unit, 0.0))
        assert np.abs(found - given[slides, 1]).max() < 0.025 * np.ptp(given[:, 1])


@pytest.mark.parametrize("material", [LIGHT, NYLON])
def test_spinning_spheres_that_slide_all_through(material):
    """Closed form: friction changes the velocity of the contact point by 7/2 mu times the change of the normal one."""
    friction, restitution, radius = material[3:]
    tangent = np.array([2.2, 3.0, 5.0, 10.0])
    v, w, spin = impacts(*material, 0.2, 0.0, -0.2 * tangent / radius)
    assert w == pytest.approx(0.2 * restitution, rel=1e-3)
    assert v == pytest.approx(-friction * (1 + restitution) * 0.2, rel=1e-3)
    assert v - radius * spin == pytest.approx(0.2 * (tangent - 3.5 * friction * (1 + restitution)), abs=2e-3 * 0.2)


@pytest.mark.parametrize(("title", "material"), [("Al. alloy", LIGHT), ("Nylon", NYLON)])
def test_spinning_spheres_of_test_6(reference_data, title, material):
    """Spheres that arrive with spin only; from the tangent 2.1 on they slide all through the impact, and any law meets the curve."""
    radius, speed = material[5], 0.2
    given = curve(reference_data, "benchmark6_graph1.dat", title)
    for method, meets in ((None, given[:, 0] < 0.9), (SECANT, given[:, 0] < (2.0 if title == "Al. alloy" else 30.0))):
        tangent = 3.5 * 0.4 * 1.5 / given[meets, 0]
        v, w, spin = impacts(*material, speed, 0.0, -speed * tangent / radius, method)
        assert np.abs(-(v - radius * spin) / (speed * tangent) - given[meets, 1]).max() < 0.025 * np.ptp(given[:, 1])
    given = curve(reference_data, "benchmark6_graph2.dat", title)
    for method, meets in ((None, given[:, 0] > 2.2), (SECANT, given[:, 0] > 0.0)):
        v, w, spin = impacts(*material, speed, 0.0, -speed * given[meets, 0] / radius, method)
        missed = np.abs((v - radius * spin) / w - given[meets, 1])
        assert missed.max() < 0.025 * np.ptp(given[:, 1])
        assert missed[given[meets, 0] < 2.0].max(initial=0.0) < 0.06  # sticking: a small part of the range of the curve


def roll_off(spins):
    """Velocities and spins of pairs of equal spheres that meet with the spins (n,) and their opposites."""
    density, young, poisson, friction, _, radius = LIGHT
    material = clast.Material(density=density, young=young, poisson=poisson, friction=friction, restitution=0.5)
    scene = clast.Scene(gravity=(0, 0, 0))
    n = len(spins)
    for side in (-1.0, 1.0):
        place = np.column_stack([np.zeros(n), 5 * radius * np.arange(n), np.full(n, side * radius)])
        spin = np.column_stack([np.zeros(n), -side * spins, np.zeros(n)])
        scene.add(clast.Sphere(radius), position=place, velocity=(0, 0, -0.2 * side), spin=spin, material=material)
    sim = clast.Simulation(scene, clast.DEM(), dt=2e-6)
    sim.step(800)
    assert sim.touching() == 0
    bodies = sim.bodies
    assert bodies.velocity[:, 2] * np.repeat([-1.0, 1.0], n) == pytest.approx(0.1, abs=1e-3)
    return bodies.velocity[:, 0], bodies.spin[:, 1]


def test_spheres_that_roll_off_each_other():
    """Two equal spheres with opposite spins: no tangential motion arises and the spin stays."""
    spins = np.array([0.0, 3.0, 10.0, 24.0])
    velocity, spin = roll_off(spins)
    assert np.abs(velocity).max() < 1e-6 * 0.2
    assert np.abs(spin - np.concatenate([spins, -spins])).max() < 1e-6 * spins.max()


def test_two_spheres_of_test_7(reference_data):
    """The same, as published."""
    folder = reference_data / "chung_ooi" / "paper_data_1_to_17"
    speeds, spins = (np.loadtxt(folder / f"benchmark7_graph{k}.dat") for k in (1, 2))
    velocity, spin = roll_off(spins[:, 0])
    assert np.abs(velocity - np.tile(speeds[:, 1], 2)).max() < 1e-6 * 0.2
    assert np.abs(np.abs(spin) - np.tile(spins[:, 1], 2)).max() < 1e-6 * spins[:, 1].max()


def against_heavy(material, tangent, method=None):
    """Velocity of the contact point over its first one (n,), of spinning spheres that meet one too heavy to move.

    tangent (n,): first velocity of the contact point over the normal one.
    """
    density, young, poisson, friction, restitution, radius = material
    options = {"young": young, "poisson": poisson, "friction": friction, "restitution": restitution}
    scene = clast.Scene(gravity=(0, 0, 0))
    n = len(tangent)
    zero = np.zeros(n)
    row = 20 * radius * np.arange(n)
    scene.add(
        clast.Sphere(radius),
        position=np.column_stack([zero, row, zero + radius]),
        velocity=(0, 0, -0.2),
        spin=np.column_stack([zero, -0.2 * tangent / radius, zero]),
        material=clast.Material(density=density, **options),
    )
    heavy = clast.Material(density=1e9 * density, **options)
    scene.add(clast.Sphere(5 * radius), position=np.column_stack([zero, row, zero - 5 * radius]), material=heavy)
    time = 2.8683 * (float(scene.bodies.mass[0]) ** 2 / (radius * (young / 2) ** 2 * 0.2)) ** 0.2
    sim = clast.Simulation(scene, method or clast.DEM(), dt=time / 400)
    sim.step(800)
    assert sim.touching() == 0
    bodies = sim.bodies
    return (bodies.velocity[:n, 0] - radius * bodies.spin[:n, 1]) / (0.2 * tangent)


@pytest.mark.parametrize("material", [LIGHT, NYLON])
def test_a_heavy_sphere_is_as_good_as_a_wall(material):
    """Closed form where the contact slides all through, as against a wall."""
    tangent = np.array([2.4, 3.0, 5.0, 10.0])
    slowed = 3.5 * material[3] * (1 + material[4]) / tangent
    assert against_heavy(material, tangent) == pytest.approx(1.0 - slowed, abs=2e-3)


@pytest.mark.parametrize(("number", "material"), [(1, LIGHT), (3, NYLON)])
def test_unequal_spheres_of_test_8(reference_data, number, material):
    """A spinning sphere meets one that is too heavy to move; where it slides all through as against a wall, nylon by the law of test 6 everywhere."""
    given = curve(reference_data, f"benchmark8_graph{number}.dat", "Two spheres impact (case A)")
    slides = given[:, 0] < 0.9
    for method, meets in ((None, slides), (SECANT, slides if material is LIGHT else given[:, 0] < 30.0)):
        tangent = 3.5 * material[3] * (1 + material[4]) / given[meets, 0]
        found = -against_heavy(material, tangent, method)
        assert np.abs(found - given[meets, 1]).max() < 0.025 * np.ptp(given[:, 1])

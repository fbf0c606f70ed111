"""Edinburgh's elasto-plastic adhesive law against its equations, one contact at a time; and with micro-slip in simulations."""

import math
import threading

import numpy as np
import pytest
from one_contact import MASS, RADIUS, One, impact

import clast
from clast.kernels import backend

NUMBERS = {"plasticity_ratio": 0.6, "adhesion": 20.0, "adhesion_exponent": 1.5, "pull_off": 0.0}
K1 = 4.0 / 3.0 * 1e7 * math.sqrt(RADIUS)
K2 = K1 / 0.4
PEAK = 2e-4


@pytest.fixture(autouse=True)
def plain_functions(request, monkeypatch):
    """Functions of one contact run as plain Python, so that nothing is compiled for them."""
    if not request.node.name.startswith("test_simulated"):
        monkeypatch.setattr(backend, "PLAIN", [threading.get_ident()])


def eepa(**numbers):
    return One(NUMBERS | numbers, law="eepa")


def branches(peak, exponent=1.5):
    """d_p^1.5, overlap of the strongest pull, that pull [N], k_adh of a contact that was loaded to this peak (Morrissey 2013)."""
    plastic = 0.6 * peak**1.5
    flat = plastic ** (2.0 / 3.0)
    pull = 1.5 * math.pi * 20.0 * math.sqrt(2.0 * RADIUS * flat - flat**2)
    least = (plastic - pull / K2) ** (2.0 / 3.0)
    return plastic, least, pull, pull / least**exponent


@pytest.mark.parametrize("exponent", [1.0, 1.5, 5.0])
def test_it_goes_round_its_cycle(exponent):
    one = eepa(adhesion_exponent=exponent)
    for d in np.linspace(0.0, PEAK, 50):
        assert one.at(d)[0] == pytest.approx(K1 * d**1.5, rel=1e-12, abs=1e-15)
    plastic, least, pull, k_adh = branches(PEAK, exponent)
    assert 0.3 * PEAK < least < 0.9 * PEAK and pull < 0.5 * K2 * plastic
    way = np.linspace(PEAK, 0.0, 1001)
    force = np.array([one.at(d)[0] for d in way])
    expected = np.where(way > least, K2 * (way**1.5 - plastic), -k_adh * way**exponent)
    assert force == pytest.approx(expected, rel=1e-9, abs=1e-12)
    assert force.min() == pytest.approx(-pull, rel=1e-2)
    one = eepa(adhesion_exponent=exponent)
    one.at(PEAK)
    assert one.at(least)[0] == pytest.approx(-pull, rel=1e-9), "the strongest pull"


def test_reloaded_from_the_adhesive_branch_it_goes_on_from_there():
    one, (_, least, _, k_adh) = eepa(), branches(PEAK)
    low = 0.5 * least
    for d in (*np.linspace(0.0, PEAK, 20), *np.linspace(PEAK, low, 50)):
        one.at(d)
    turned = one.named("peak")
    assert 0.6 * turned**1.5 == pytest.approx(low**1.5 + k_adh * low**1.5 / K2, rel=1e-10)
    for d in np.linspace(low, turned, 30)[1:]:
        assert one.at(d)[0] == pytest.approx(K2 * (d**1.5 - 0.6 * turned**1.5), rel=1e-9, abs=1e-10)
    assert one.at(1.5 * turned)[0] == pytest.approx(K1 * (1.5 * turned) ** 1.5, rel=1e-12), "and loads anew"


def test_without_plasticity_and_adhesion_it_is_hertz_and_a_constant_pull_is_added():
    one = eepa(plasticity_ratio=0.0, adhesion=0.0)
    for d in (1e-4, 2e-4, 5e-5, 1e-4):
        assert one.at(d)[0] == pytest.approx(K1 * d**1.5, rel=1e-12)
    one = eepa(plasticity_ratio=0.0, adhesion=0.0, pull_off=0.3)
    assert one.at(1e-4)[0] == pytest.approx(K1 * 1e-6 - 0.3, rel=1e-12)
    _, shear = one.at(1e-4, slide=(1.0, 0.0, 0.0), dt=1.0)
    assert shear[0] == pytest.approx(-0.5 * K1 * 1e-6, rel=1e-9), "friction under the pressure, not under the load"
    assert one.at(-1e-9)[0] == 0.0


def test_strong_adhesion_pulls_by_half_of_what_unloading_could():
    one = eepa(adhesion=1e6)
    one.at(PEAK)
    plastic = 0.6 * PEAK**1.5
    assert one.at((0.5 * plastic) ** (2.0 / 3.0))[0] == pytest.approx(-0.5 * K2 * plastic, rel=1e-9)


def test_its_force_is_the_slope_of_its_energy():
    one = eepa(pull_off=0.1)
    one.at(PEAK)
    for d in np.linspace(PEAK, 0.1 * PEAK, 9):
        force = one.at(d)[0]  # on the adhesive branch the peak is unlearned
        low, high = one.energy(d - 1e-9, d + 1e-9)
        assert force == pytest.approx((high - low) / 2e-9, rel=1e-5, abs=1e-6)


def test_an_impact_loses_what_the_cycle_encloses():
    speed = 1.5
    peak = (1.25 * MASS * speed**2 / K1) ** 0.4
    plastic, least, _, k_adh = branches(peak)
    rest = plastic ** (2.0 / 3.0)
    gained = K2 * (0.4 * (peak**2.5 - rest**2.5) - plastic * (peak - rest))
    paid = -K2 * (0.4 * (rest**2.5 - least**2.5) - plastic * (rest - least)) + 0.4 * k_adh * least**2.5
    rebound = math.sqrt(2.0 * (gained - paid) / MASS)
    assert 0.2 * speed < rebound < 0.7 * speed
    assert impact(eepa(), speed, 2e-7) == pytest.approx(rebound, rel=1e-4)


def test_its_step_falls_with_the_stiffness_of_unloading():
    steps = []
    for ratio in (0.0, 0.75):
        powder = clast.Material(numbers=NUMBERS | {"plasticity_ratio": ratio})
        scene = clast.Scene()
        scene.add(clast.Sphere(0.01), position=(0, 0, 1), material=powder)
        steps.append(clast.DEM(law="eepa").critical_step(scene)[0])
    assert steps[1] == pytest.approx(0.5 * steps[0], rel=1e-12)


def test_wrong_numbers_are_refused():
    with pytest.raises(ValueError, match="plasticity_ratio.*from 0 to below 1"):
        clast.Material(numbers={"plasticity_ratio": 1.0})
    scene = clast.Scene()
    scene.add(clast.Plane())
    scene.add(clast.Sphere(0.01), position=(0, 0, 1))
    with pytest.raises(ValueError, match="plasticity_ratio"):
        clast.Simulation(scene, clast.DEM(law="eepa"))


def test_simulated_bodies_of_any_shape_stick_by_it_and_slip_at_the_rim(tmp_path):
    """Balls and boxes fall on planes, meshes and each other; the names are told, and a checkpoint goes on with the same bits."""
    powder = clast.Material(density=1000.0, young=1e6, friction=0.5, numbers=NUMBERS | {"adhesion": 3.0})
    scene = clast.Scene(gravity=(0.0, 0.0, 0.0))
    scene.add(clast.Plane(), material=powder)
    sheet = clast.MeshWall([[-1, -1, 0], [1, -1, 0], [1, 1, 0], [-1, 1, 0]], [[0, 1, 2], [0, 2, 3]])
    scene.add(sheet, position=(0.0, 0.0, 1.0), material=powder)
    ball, box = clast.Sphere(0.001), clast.Polyhedron.box(0.002, 0.002, 0.002)
    slow = (0.05, 0.02, -0.1)
    for height in (0.0, 1.0):
        scene.add(ball, position=(0.1, 0.02, height + 0.001001), velocity=slow, material=powder)
        scene.add(box, position=(0.2, 0.02, height + 0.001001), velocity=slow, material=powder)
    scene.add(ball, position=[(0, 0, 0.5), (0, 0, 0.502001)], velocity=[(0, 0, 0), slow], material=powder)
    method = clast.DEM(law="eepa", shear="mindlin-deresiewicz")
    sim = clast.Simulation(scene, method)
    sim.step(400)
    told = sim.contacts()
    assert set(map(tuple, told.pair.tolist())) == {(0, 2), (0, 3), (1, 4), (1, 5), (6, 7)}
    assert (told.kept["peak"] > 0.0).all() and (told.kept["grip"] > 0.0).all() and (told.kept["load"] > 0.0).all()
    sim.save(tmp_path / "here.h5")
    sim.step(50)
    again = clast.resume(tmp_path / "here.h5")
    again.step(50)
    assert np.array_equal(again.bodies.position, sim.bodies.position)
    # A plane and a sheet of triangles are one.
    for a, b in ((2, 4), (3, 5)):
        assert sim.bodies.position[a] + (0, 0, 1) == pytest.approx(sim.bodies.position[b], abs=1e-9)

"""Bodies that rest sleep, and nothing that would move them goes unnoticed."""

import numpy as np
import pytest

import clast
from clast.dvi import sleeping

G, RADIUS, DT = 9.81, 0.05, 5e-3
STUFF = clast.Material(density=2500, friction=0.5, restitution=0.0)


def simulation(scene, sleep="auto"):
    return clast.Simulation(scene, clast.Complementarity(sleep=sleep), dt=DT)


def heap(sleep="auto"):
    """Sixty balls that fall into an open box."""
    scene = clast.Scene()
    scene.add(clast.Plane(), material=STUFF)
    for x, y in ((1, 0), (-1, 0), (0, 1), (0, -1)):
        scene.add(clast.Plane((x, y, 0)), position=(-0.2 * x, -0.2 * y, 0), material=STUFF)
    scene.fill(clast.Sphere(RADIUS), count=60, box=((-0.2, -0.2, 0.0), (0.2, 0.2, 1.2)), material=STUFF, seed=1)
    return simulation(scene, sleep)


def asleep(sim):
    """Numbers of the bodies that sleep."""
    return np.flatnonzero(sim.stepper.asleep).tolist()


def test_a_heap_falls_asleep_and_tells_of_all_its_contacts():
    sim, awake = heap(), heap(None)
    sim.step(600)
    awake.step(600)
    free = np.isfinite(sim.bodies.mass)
    assert len(asleep(sim)) >= 0.9 * free.sum()
    assert not sim.bodies.velocity[asleep(sim)].any()
    told, other = sim.contacts(), awake.contacts()
    assert len(told.gap) == pytest.approx(len(other.gap), rel=0.03)
    weight = sim.bodies.mass[free].sum() * G
    walls = (
        told.pair[:, 0] < 5
    )  # the first body is a wall, which bears the heap from below and by friction at its sides
    assert told.force[walls, 2].sum() == pytest.approx(weight, rel=2e-3)
    assert sim.stepper.touching() == pytest.approx(awake.stepper.touching(), rel=0.03)
    assert f"{len(asleep(sim))} bodies sleep" in str(sim.report())
    # What sleeps takes no part in the problem.
    assert len(sim.stepper.constraints.gap) < 0.3 * len(told.gap)


def test_a_sleeping_row_that_is_hit_has_the_momentum_it_would_have_awake():
    """Without friction: a ball comes at 1 m/s to five that touch; all six go on together."""

    def row(sleep):
        slippery = clast.Material(density=2500, friction=0.0, restitution=0.0)
        scene = clast.Scene()
        scene.add(clast.Plane(), material=slippery)
        place = [(2.0 * RADIUS * k, 0, RADIUS) for k in range(5)]
        scene.add(clast.Sphere(RADIUS), position=place, material=slippery)
        scene.add(clast.Sphere(RADIUS), position=(-0.6, 0, RADIUS), velocity=(1.0, 0, 0), material=slippery)
        sim = simulation(scene, sleep)
        most = 0
        for _ in range(140):
            sim.step()
            most = max(most, len(asleep(sim)) if sleep else 0)
        return sim, most

    sim, most = row("auto")
    assert most == 5 and not asleep(sim)
    assert sim.bodies.velocity[1:, 0] == pytest.approx(np.full(6, 1.0 / 6.0), abs=1e-3)
    other, _ = row(None)
    assert sim.bodies.velocity[1:] == pytest.approx(other.bodies.velocity[1:], abs=1e-3)


def tower(drive=None):
    """Three balls on top of each other in a shaft, on a plate."""
    scene = clast.Scene()
    scene.add(clast.Plane(), material=STUFF, drive=drive, motion="fixed" if drive is None else "driven")
    scene.add(clast.Sphere(RADIUS), position=[(0, 0, RADIUS * (1 + 2 * k)) for k in range(3)], material=STUFF)
    return simulation(scene)


def test_a_plate_that_is_taken_away_is_missed_at_once():
    """It goes down faster than anything falls, after 0.5 s."""
    sim = tower(lambda t: ((0, 0, -20.0 * max(t - 0.5, 0.0)), (0, 0, 0)))
    sim.step(90)
    assert asleep(sim) == [1, 2, 3]
    height = sim.bodies.position[1:, 2].copy()
    sim.step(70)
    fallen = 0.5 * G * (sim.time - 0.5) ** 2
    assert height - sim.bodies.position[1:, 2] == pytest.approx(np.full(3, fallen), rel=0.03)


def test_a_body_that_is_removed_is_missed_by_those_that_sleep_on_it():
    sim = tower()
    sim.step(100)
    assert asleep(sim) == [1, 2, 3]
    row = int(np.flatnonzero(sim.state.bodies.number == 1)[0])
    sim.stepper.name_contacts()
    sim.state.remove(np.array([row]))
    sim.stepper.rebuild()
    sim.step(10)
    assert not set(asleep(sim)) & {2, 3}
    assert (sim.bodies.velocity[1:, 2] < -0.4).all()


def test_a_load_is_handed_down_and_the_pile_sleeps_again():
    """A ball of eight times the mass falls on a sleeping column of three; floor and walls bear it then."""
    scene = clast.Scene()
    scene.add(clast.Plane(), material=STUFF)
    for x, y in ((1, 0), (-1, 0), (0, 1), (0, -1)):
        scene.add(clast.Plane((x, y, 0)), position=(-0.12 * x, -0.12 * y, 0), material=STUFF)
    scene.add(clast.Sphere(RADIUS), position=[(0, 0, RADIUS * (1 + 2 * k)) for k in range(3)], material=STUFF)
    scene.add(clast.Sphere(2 * RADIUS), position=(0, 0, 1.2), material=STUFF)
    sim = simulation(scene)
    sim.step(70)
    assert asleep(sim) == [5, 6, 7]
    sim.step(30)
    assert not asleep(sim)
    sim.step(350)
    assert asleep(sim) == [5, 6, 7, 8]
    contacts = sim.contacts()
    walls = contacts.force[contacts.pair[:, 0] < 5, 2].sum()
    assert walls == pytest.approx(sim.bodies.mass[5:].sum() * G, rel=0.01)


def test_it_goes_on_with_the_same_bits_after_a_restart(tmp_path):
    whole = heap()
    while len(before := asleep(whole)) < 5 and whole.steps < 600:
        whole.step(3)
    assert 5 <= len(before) < 60
    whole.save(tmp_path / "half.h5")
    whole.step(60)
    assert asleep(whole) != before
    again = clast.resume(tmp_path / "half.h5")
    assert asleep(again) == before
    for _ in range(60):
        again.step()
        told = again.contacts().pair
        assert len(np.unique(told, axis=0)) == len(told)  # each once, also while some fall asleep
    assert asleep(again) == asleep(whole)
    for name, column in whole.bodies._asdict().items():
        assert np.array_equal(column, getattr(again.bodies, name)), name


def test_compliant_contacts_of_those_that_sleep_hold_their_energy():
    """A column of three balls: each contact bears the weight of what is above it."""
    soft = clast.Material(density=2500, friction=0.5, restitution=0.0, compliance=1e-6)
    scene = clast.Scene()
    scene.add(clast.Plane(), material=soft)
    scene.add(clast.Sphere(RADIUS), position=[(0, 0, RADIUS * (1 + 2 * k)) for k in range(3)], material=soft)
    sim = simulation(scene)
    sim.step(150)
    assert asleep(sim) == [1, 2, 3]
    force = sim.bodies.mass[1] * G * np.arange(1, 4)
    compliance = sim.stepper.mixes.compliance[0]
    assert clast.measure.elastic_energy(sim) == pytest.approx(0.5 * compliance * (force**2).sum(), rel=0.01)


def test_it_is_refused_where_nothing_can_be_said_of_rest():
    scene = clast.Scene(gravity=(0, 0, 0))
    scene.add(clast.Sphere(RADIUS))
    with pytest.raises(ValueError, match="sleep='auto' needs gravity"):
        simulation(scene)
    scene = clast.Scene()
    balls = scene.add(clast.Sphere(RADIUS), position=[(0, 0, 1), (0, 0, 2)])
    scene.join(*balls, "ball", at=(0, 0, 1.5))
    with pytest.raises(ValueError, match="do not sleep; leave sleep= out"):
        simulation(scene)
    with pytest.raises(ValueError, match="a ledger is kept where nobody sleeps"):
        clast.Complementarity(sleep="auto", ledger=True)
    for wrong in (0.0, -1.0, np.inf):
        with pytest.raises(ValueError, match="sleep = .* must be above 0 m/s"):
            clast.Complementarity(sleep=wrong)
    with pytest.raises(TypeError, match="sleep must be a number"):
        clast.Complementarity(sleep="deep")


def test_what_drifts_slowly_does_not_sleep():
    """In free space nothing holds it, so it is not at rest however slow it is."""
    scene = clast.Scene(gravity=(0, 0, 0))
    scene.add(clast.Sphere(RADIUS), velocity=(1e-4, 0, 0))
    sim = simulation(scene, 1e-3)
    sim.step(3 * sleeping.STEPS)
    assert not asleep(sim)
    assert sim.bodies.position[0, 0] == pytest.approx(1e-4 * sim.time)

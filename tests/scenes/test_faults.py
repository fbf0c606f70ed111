"""What goes wrong is named: the body, the time, the likely cause; and the last good state survives."""

import re
import warnings

import h5py
import numpy as np
import pytest

import clast
from clast import DEM, Damaged, Diverged, Escaped, Penetrated, Plane, Scene, Simulation, Sphere
from clast.files import checkpoint
from clast.tables import FREE


def drop(count=12, **options):
    scene = Scene(**options)
    scene.add(Plane())
    scene.fill(Sphere(0.01), count=count, box=((-0.05, -0.05, 0.001), (0.05, 0.05, 0.1)))
    return scene


@clast.func
def breaks(touch, mix, dt):
    """A law that has no answer for deep contacts."""
    normal = 2e3 * touch.overlap
    if touch.overlap > 2e-4:
        normal = np.nan
    return normal, (0.0, 0.0, 0.0), touch.slip


@clast.func
def divides(touch, mix, dt):
    """A law that has no answer where nothing touches."""
    return 1e6 * touch.overlap**3 / (touch.overlap * touch.overlap), (0.0, 0.0, 0.0), touch.slip


def test_not_a_number(tmp_path):
    sim = Simulation(drop(), DEM(law=breaks), dt=1e-4)
    with pytest.raises(Diverged, match=r"body \d+.* at t = .*not a number.*dt = .*checkpoint\.h5") as fault:
        sim.run(until=1.0, every=0.01, output=tmp_path, progress=False)
    number = int(re.search(r"body (\d+)", str(fault.value)).group(1))
    assert number in sim.bodies.number[sim.bodies.motion == FREE]
    again = clast.resume(tmp_path, law=breaks)
    assert 0.0 < again.time < sim.time + sim.dt
    for column in again.bodies:
        assert not np.isnan(column).any()
    with clast.files.trajectory.Trajectory(tmp_path / "trajectory.h5", "r") as file:
        for k in range(len(file)):
            assert np.isfinite(file[k].columns["velocity"]).all()


def test_not_a_number_from_the_start(tmp_path):
    scene = Scene()
    scene.add(Plane())
    scene.add(Sphere(0.01), position=(0.0, 0.0, 0.009))
    sim = Simulation(scene, DEM(law=breaks), dt=1e-4)
    with pytest.raises(Diverged, match=r"body 1 at t = 0 s.*no checkpoint was written") as fault:
        sim.run(until=1.0, every=0.01, output=tmp_path, progress=False)
    assert "last good state" not in str(fault.value)


def test_a_law_is_not_asked_where_nothing_touches():
    """Pairs in the list that do not touch keep no memory and no force, whatever the law says about them."""
    states = []
    for margin in (0.0, 0.02):
        scene = Scene(gravity=(0.0, 0.0, 0.0))
        scene.add(
            Sphere(0.01), position=[(0.0, 0.0, 0.0), (0.021, 0.0, 0.0)], velocity=[(0.1, 0.0, 0.0), (0.0, 0.0, 0.0)]
        )
        sim = Simulation(scene, DEM(law=divides, margin=margin), dt=2e-5)
        sim.step(2000)
        states.append(sim.bodies.velocity.tobytes())
        assert np.isfinite(sim.bodies.velocity).all()
        assert sim.bodies.velocity[1, 0] > 0.05
    assert states[0] == states[1]


@pytest.mark.parametrize("column", ["velocity", "spin"])
@pytest.mark.parametrize("value", [1e200, 1e170])
def test_absurdly_fast(column, value):
    scene = drop()
    scene.add(Sphere(0.01), position=(0.0, 0.0, 0.5))
    sim = Simulation(scene, dt=1e-4)
    sim.start()
    # No scene takes such a number; a law or a drive may still make it.
    row = np.nonzero(sim.state.bodies.number == 13)[0][0]
    getattr(sim.state.bodies, column)[row, 1] = value
    with pytest.raises(Diverged, match=r"body 13 \(Sphere\) at t = .*dt = "):
        sim.step(3)


@pytest.mark.parametrize("column", ["velocity", "spin"])
def test_a_scene_takes_no_number_whose_square_is_none(column):
    with pytest.raises(ValueError, match=rf"{column} has 1e\+170; numbers are at most"):
        drop().add(Sphere(0.01), position=(0.0, 0.0, 0.5), **{column: (0.0, 1e170, 0.0)})


def test_too_fast_to_be_followed():
    scene = drop()
    scene.add(Sphere(0.01), position=(0.0, 0.0, 0.5), velocity=(0.0, 500.0, 0.0))
    with pytest.raises(Diverged, match=r"body 13 \(Sphere\).*500 m/s is 0\.05 m in one step"):
        Simulation(scene, dt=1e-4).step(3)


def test_escaped(tmp_path):
    scene = Scene(world=((-0.1, -0.1, -0.1), (0.1, 0.1, 0.1)))
    scene.add(Sphere(0.01), position=(0.0, 0.0, 0.05))
    with pytest.raises(Escaped, match=r"body 0 \(Sphere\) at t = .*left the world at .*-0\.1.*checkpoint\.h5"):
        Simulation(scene, dt=1e-4).run(until=1.0, every=0.02, output=tmp_path, progress=False)
    again = clast.resume(tmp_path)
    assert again.time > 0.1
    assert again.bodies.position[0, 2] > -0.1


def test_damaged_checkpoint(tmp_path):
    path = tmp_path / "checkpoint.h5"
    sim = Simulation(drop(), dt=1e-4)
    sim.step(50)
    sim.save(path)
    sim.step(50)
    sim.save(path)
    with h5py.File(path, "r+") as file:
        file["groups/bodies/position"][0, 0] += 1e-15
    with pytest.raises(Damaged, match=r"checksum.*previous"):
        clast.resume(tmp_path)
    again = clast.resume(checkpoint.previous(path))
    assert again.steps == 50
    again.step(50)
    assert np.array_equal(again.bodies.position, sim.bodies.position)
    path.write_bytes(path.read_bytes()[:3000])
    with pytest.raises(Damaged, match=r"checksum.*previous"):
        clast.resume(path)


def test_step_that_is_too_large():
    scene = drop()
    critical, _ = DEM().critical_step(scene)
    with pytest.raises(ValueError, match=rf"dt = {2 * critical:.3g} s.*allows {critical:.3g} s"):
        Simulation(scene, dt=2.0 * critical)
    with pytest.warns(UserWarning, match=f"allows {critical:.3g} s at the most, and contacts are followed well up to"):
        Simulation(drop(), dt=0.5 * critical)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Simulation(drop(), dt=0.3 * critical)


def test_step_is_too_large_for_what_will_be_poured():
    scene = Scene()
    scene.add(Plane())
    scene.inlet(Sphere(0.01), box=((0.0, 0.0, 0.1), (0.1, 0.1, 0.2)), rate=10.0, scale=(0.1, 1.0))
    with pytest.raises(ValueError, match="what an inlet pours allows"):
        Simulation(scene, dt=1e-3)
    auto = Simulation(scene).dt
    other = Scene()
    other.add(Sphere(0.01), scale=0.1)
    assert auto == Simulation(other).dt


def test_inlet_looks_across_periodic_sides():
    """What is poured never starts inside a body that reaches through from the other side of the world."""
    scene = Scene(gravity=(0.0, 0.0, 0.0), world=((0.0,) * 3, (0.1,) * 3), periodic=(True, True, False))
    scene.add(Sphere(0.018), position=(0.099, 0.05, 0.02))
    scene.inlet(Sphere(0.008), box=((0.0, 0.02, 0.0), (0.02, 0.08, 0.04)), rate=1e5, count=30, seed=2)
    sim = Simulation(scene, dt=1e-4)
    sim.step(1)
    sim.step(sim._every + 1)
    assert sum(sim.poured) > 0
    gap = clast.find_contacts(sim.scene).gap
    assert len(gap) == 0 or gap.min() > -1e-12


def test_scene_that_starts_empty():
    scene = Scene()
    scene.inlet(Sphere(0.01), box=((0.0, 0.0, 0.1), (0.1, 0.1, 0.2)), rate=1000.0)
    sim = Simulation(scene, dt=1e-4)
    sim.step(100)
    assert len(sim.bodies.number) == sum(sim.poured) > 5


def test_wall_that_turns_across_periodic_sides():
    """The same paddle in the middle of the world and over its edge throws a sphere in the same way."""
    found = []
    for shift in (0.0, 0.1):
        scene = Scene(
            gravity=(0.0, 0.0, 0.0), world=((-0.1, -0.1, -0.1), (0.1, 0.1, 0.1)), periodic=(True, False, False)
        )
        paddle = clast.Quad([(-0.04, -0.02, 0.0), (0.04, -0.02, 0.0), (0.04, 0.02, 0.0), (-0.04, 0.02, 0.0)])
        scene.add(paddle, position=(shift, 0.0, 0.0), spin=(0.0, 20.0, 3.0))
        scene.add(Sphere(0.01), position=(shift - 0.02, 0.0, 0.012))
        sim = Simulation(scene, dt=1e-4)
        sim.step(200)
        found.append(np.concatenate([sim.bodies.velocity[1], sim.bodies.spin[1]]))
    assert np.linalg.norm(found[0][:3]) > 0.1
    assert np.allclose(found[0], found[1], rtol=1e-9, atol=1e-9)


def test_no_graphics_card():
    scene = drop()
    with pytest.raises(clast.Unavailable, match="cuda"):
        Simulation(scene, device="cuda")
    with pytest.raises(ValueError, match=r"unknown device 'gpu'.*known: cpu, cuda"):
        Simulation(scene, device="gpu")


FLAT = [(-0.1, -0.1, 0), (0.1, -0.1, 0), (0.1, 0.1, 0), (-0.1, 0.1, 0)]


@pytest.mark.parametrize("speed", [3.0, 5.0, 9.0])
def test_a_soft_body_that_would_come_out_behind_a_thin_wall_is_named(speed):
    soft = clast.Material(density=2600.0, young=5e4, friction=0.3, restitution=0.1)
    scene = Scene(gravity=(0, 0, 0))
    scene.add(clast.Quad(FLAT), material=soft)
    scene.add(Sphere(0.01), position=(0.02, 0.01, 0.03), velocity=(0, 0, -speed), material=soft)
    sim = Simulation(scene, dt=5e-4)
    with pytest.raises(Penetrated, match=r"body 1 \(Sphere\) and body 0 \(Quad\) at t = .*other side.*stiffer"):
        sim.step(round(0.2 / speed / sim.dt))


def test_a_small_body_among_large_ones_that_is_too_fast_is_named():
    """0.6 mm in a step are no way for most, but six radii of the smallest."""
    hard = clast.Material(density=2600.0, young=1e7, friction=0.3)
    scene = Scene(gravity=(0, 0, 0))
    scene.add(clast.Quad(FLAT), material=hard)
    scene.add(Sphere(0.01), position=[(0.05 * k - 0.05, 0.05, 0.05) for k in range(3)], material=hard)
    small = scene.add(Sphere(0.0001), position=(0.02, 0.01, 0.03), velocity=(0, 0, -300), material=hard)
    sim = Simulation(scene, DEM(margin=0.005), dt=2e-6)
    with pytest.raises(Diverged, match=rf"body {small[0]} \(Sphere\) at t = .*300 m/s is 0.0006 m in one step"):
        sim.step(200)

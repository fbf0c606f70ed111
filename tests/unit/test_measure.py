"""Measures against cases that are known in closed form; most look at moments made by hand, without a simulation."""

import inspect
import math
from types import SimpleNamespace

import numpy as np
import pytest

import clast
from clast import measure
from clast.measure.fields import lucy
from clast.measure.packing import circle_in_rectangle, inside_volume

RHO = 2000.0


def moment(position, radius=0.1, velocity=(0.0, 0.0, 0.0), *, free=None, time=0.0, period=(0.0, 0.0, 0.0), **contacts):
    """A Snapshot of spheres with these centres; contacts: pair, point, normal, force."""
    position = np.asarray(position, dtype=float).reshape(-1, 3)
    count = len(position)
    volume = np.broadcast_to(4.0 / 3.0 * math.pi * np.asarray(radius, dtype=float) ** 3, count).copy()
    free = np.ones(count, bool) if free is None else np.asarray(free)
    return measure.Snapshot(
        time=time,
        number=np.arange(count),
        position=position,
        velocity=np.broadcast_to(np.asarray(velocity, dtype=float), (count, 3)).copy(),
        spin=np.zeros((count, 3)),
        mass=np.where(free, RHO * volume, np.inf),
        volume=volume,
        material=np.zeros(count, int),
        free=free,
        low=np.zeros(3),
        length=np.asarray(period, dtype=float),
        **{name: np.asarray(contacts[name]) if contacts else None for name in ("pair", "point", "normal", "force")},
    )


def lattice(count, spacing=1.0):
    """Centres (count^3,3) of a simple cubic lattice."""
    line = (np.arange(count) + 0.5) * spacing
    return np.stack(np.meshgrid(line, line, line, indexing="ij"), axis=-1).reshape(-1, 3)


def touching_lattice(count, force):
    """A periodic simple cubic lattice of touching spheres, each pushed by its six neighbours with force (3,) along the axes."""
    place = lattice(count)
    number = np.arange(count**3).reshape(count, count, count)
    pair, point, normal, push = [], [], [], []
    for axis in range(3):
        one, two = number.ravel(), np.roll(number, -1, axis=axis).ravel()
        unit = np.eye(3)[axis]
        sign = np.where(one < two, 1.0, -1.0)
        pair.append(np.sort(np.stack([one, two], axis=1), axis=1))
        point.append(place[one] + 0.5 * unit)
        normal.append(sign[:, None] * unit)
        push.append(force[axis] * sign[:, None] * unit)
    told = {"pair": pair, "point": point, "normal": normal, "force": push}
    return moment(place, 0.5, period=(count,) * 3, **{name: np.concatenate(rows) for name, rows in told.items()})


@pytest.mark.parametrize("name", [name for name in measure.__all__ if inspect.isfunction(getattr(measure, name))])
def test_every_measure_tells_its_formula(name):
    told = inspect.getdoc(getattr(measure, name))
    counts = ("touching", "coordination", "coordination_numbers")
    assert " = " in told and ("[" in told or "pure number" in told or name in counts), told


# Contacts.


def test_the_stress_of_a_loaded_lattice_is_force_over_area():
    loaded = touching_lattice(4, (3.0, 5.0, 7.0))
    assert measure.stress(loaded) == pytest.approx(
        np.diag([3.0, 5.0, 7.0]), abs=1e-12
    )  # one contact on each unit of area
    # A slab from 0.4 to 1.7 m holds two layers of contacts across z, and cuts all that stand along it.
    slab = measure.stress(loaded, ((0.0, 0.0, 0.4), (4.0, 4.0, 1.7)))
    assert slab == pytest.approx(np.diag([3.0 * 2.0 / 1.3, 5.0 * 2.0 / 1.3, 7.0]), abs=1e-12)


def test_the_stress_of_a_gas_is_that_of_its_motion():
    rng = np.random.default_rng(1)
    velocity = rng.normal(size=(500, 3)) + (10.0, 0.0, 0.0)
    none = {
        "pair": np.zeros((0, 2), int),
        "point": np.zeros((0, 3)),
        "normal": np.zeros((0, 3)),
        "force": np.zeros((0, 3)),
    }
    gas = moment(rng.uniform(0, 2, (500, 3)), 0.01, velocity, period=(2.0, 2.0, 2.0), **none)
    mass = gas.mass[0]
    expected = mass * 500 * np.cov(velocity.T, bias=True) / 8.0
    assert measure.stress(gas) == pytest.approx(expected, rel=1e-12)
    assert not measure.stress(gas, kinetic=False).any()
    # A box across a face of the world holds what lies within on both sides of it: shifted by a period it holds the same.
    across = measure.stress(gas, ((1.5, 0.2, -0.3), (2.4, 1.1, 0.6)))
    assert across == pytest.approx(measure.stress(gas, ((-0.5, 0.2, 1.7), (0.4, 1.1, 2.6))), rel=1e-12)
    x, z = np.mod(gas.position[:, 0] - 1.5, 2.0), np.mod(gas.position[:, 2] + 0.3, 2.0)
    held = (x < 0.9) & (gas.position[:, 1] >= 0.2) & (gas.position[:, 1] < 1.1) & (z < 0.9)
    expected = mass * held.sum() * np.cov(velocity[held].T, bias=True) / 0.9**3
    assert across == pytest.approx(expected, rel=1e-9)


def test_a_wall_takes_up_the_branch_at_the_contact_point():
    # A sphere of radius 0.5 between two walls 1 m apart, pressed with 6 N: over an area of 2 m^2 that is 3 Pa.
    pressed = moment(
        [(0, 0, 0.5), (9, 9, 9), (9, 9, 9)],
        [0.5, 1e-9, 1e-9],
        free=[True, False, False],
        pair=[(0, 1), (0, 2)],
        point=[(0, 0, 0), (0, 0, 1)],
        normal=[(0, 0, -1), (0, 0, 1)],
        force=[(0, 0, -6.0), (0, 0, 6.0)],
    )
    sigma = measure.stress(pressed, ((-1, -0.5, 0), (1, 0.5, 1)))
    assert sigma == pytest.approx(np.diag([0.0, 0.0, 3.0]), abs=1e-12)


def test_fabric_of_lattices():
    cubic = touching_lattice(3, (1.0, 1.0, 1.0))
    assert measure.fabric(cubic) == pytest.approx(np.eye(3) / 3.0)
    chain = cubic._replace(**{n: getattr(cubic, n)[:27] for n in ("pair", "point", "normal", "force")})
    assert measure.fabric(chain) == pytest.approx(np.diag([1.0, 0.0, 0.0]))
    assert measure.fabric(chain, ((50, 50, 50), (51, 51, 51))) == pytest.approx(np.zeros((3, 3)))


def test_coordination_counts_partners_once_and_leaves_out_rattlers():
    assert measure.coordination(touching_lattice(4, (1.0, 1.0, 1.0))) == 6.0
    # A triangle of bodies, a tail of two, a loner, and a wall that body 0 touches at two points.
    links = [(0, 1), (0, 2), (1, 2), (2, 3), (3, 4), (0, 6), (0, 6)]
    none = np.zeros((len(links), 3))
    some = moment(
        np.eye(3)[np.arange(7) % 3], free=[True] * 6 + [False], pair=links, point=none, normal=none, force=none
    )
    assert measure.coordination_numbers(some).tolist() == [3, 2, 3, 2, 1, 0, 0]
    assert measure.coordination(some) == pytest.approx(11 / 6)
    assert measure.coordination(some, rattlers=False) == pytest.approx((3 + 2 + 2) / 3)


def test_faces_that_touch_at_many_points_are_one_contact():
    scene = clast.Scene()
    scene.add(clast.Plane())
    scene.add(clast.Polyhedron.box(0.1, 0.1, 0.1), position=[(0, 0, 0.05), (0.3, 0, 0.05)])
    scene.add(clast.Sphere(0.05), position=[(0.1, 0, 0.05), (0.6, 0, 0.05)])
    # Boxes 1 and 2 stand on four points each, box 1 touches ball 3 once; two points of balls are two contacts.
    pair = np.array([(0, 1)] * 4 + [(0, 2)] * 4 + [(1, 3), (0, 3), (0, 3), (0, 4)])
    found = measure.touching(clast.Simulation(scene, dt=1e-4), SimpleNamespace(pair=pair))
    assert sorted(found.tolist()) == [[0, 1], [0, 2], [0, 3], [0, 3], [0, 4], [1, 3]]


def test_an_exponential_distribution_of_forces_is_found_again():
    rng = np.random.default_rng(2)
    count = 200_000
    force = np.zeros((count, 3))
    force[:, 2] = rng.exponential(5.0, count)
    many = moment(np.zeros((2, 3)), pair=np.tile([0, 1], (count, 1)), point=force, normal=force, force=force)
    f, p = measure.force_distribution(many, bins=40, most=8.0)
    assert p == pytest.approx(np.exp(-f), abs=0.02)
    width = f[1] - f[0]
    assert (p * width).sum() == pytest.approx(1.0, abs=1e-3) and (f * p * width).sum() == pytest.approx(1.0, abs=5e-3)


def test_strong_contacts_form_chains():
    # Two chains of strong contacts, 0-1-2-3 and 5-6, a weak bridge between them; both stand on the wall 8, which joins nothing.
    links = np.array([(0, 1), (1, 2), (2, 3), (3, 5), (5, 6), (0, 8), (5, 8)])
    size = np.array([9.0, 9.0, 9.0, 1.0, 8.0, 9.0, 8.0])
    force = size[:, None] * np.array([0.0, 0.0, 1.0])
    net = measure.force_network(
        moment(np.zeros((9, 3)), free=[True] * 8 + [False], pair=links, point=force, normal=force, force=force)
    )
    told = {tuple(pair): chain for pair, chain in zip(net.pair.tolist(), net.chain.tolist())}
    assert told == {(0, 1): 0, (1, 2): 0, (2, 3): 0, (0, 8): 0, (3, 5): -1, (5, 6): 1, (5, 8): 1}
    assert net.strong.sum() == 6 and net.force.sum() == size.sum()


def test_a_scene_has_no_contacts_to_tell():
    scene = clast.Scene()
    scene.add(clast.Sphere(0.1))
    with pytest.raises(ValueError, match=r"stress: needs contacts.*record=\['contacts'\]"):
        measure.stress(scene)


# Packing.


def test_the_part_of_a_circle_in_a_rectangle():
    assert circle_in_rectangle(2.0, -5.0, 5.0, -5.0, 5.0) == pytest.approx(4.0 * math.pi)
    assert circle_in_rectangle(2.0, 0.0, 5.0, -5.0, 5.0) == pytest.approx(2.0 * math.pi)
    assert circle_in_rectangle(2.0, 1.0, 5.0, -5.0, 5.0) == pytest.approx(4.0 * (math.pi / 3.0 - math.sqrt(3.0) / 4.0))
    assert circle_in_rectangle(2.0, -1.0, 1.0, -1.0, 1.0) == pytest.approx(4.0)
    x = np.random.default_rng(3).uniform(-2, 2, (400_000, 2))
    inside = (np.hypot(*x.T) < 1.5) & (x[:, 0] > -0.3) & (x[:, 0] < 1.2) & (x[:, 1] > -1.4) & (x[:, 1] < 0.9)
    assert circle_in_rectangle(1.5, -0.3, 1.2, -1.4, 0.9) == pytest.approx(16.0 * inside.mean(), abs=0.03)


def test_caps_wedges_and_corners_of_spheres():
    ball, whole = np.array([[0.0, 0.0, 0.0]]), 4.0 / 3.0 * math.pi * 8.0

    def inside(low, high):
        return float(inside_volume(ball, np.array([2.0]), np.array(low, float), np.array(high, float))[0])

    assert inside((-3, -3, -3), (3, 3, 3)) == pytest.approx(whole, rel=1e-14)
    assert inside((0, -3, -3), (3, 3, 3)) == pytest.approx(whole / 2, rel=1e-12)
    assert inside((0, 0, 0), (3, 3, 3)) == pytest.approx(whole / 8, rel=1e-12)
    for axis in range(3):  # a cap of height h has pi h^2 (3 r - h) / 3
        low = [-3, -3, -3]
        low[axis] = 1.3
        assert inside(low, (3, 3, 3)) == pytest.approx(math.pi * 0.49 * (6.0 - 0.7) / 3.0, rel=1e-10)
    assert inside((-0.5, -0.5, -0.5), (0.5, 0.5, 0.5)) == pytest.approx(1.0, rel=1e-10)
    assert inside((2.5, -3, -3), (3, 3, 3)) == 0.0
    # A corner inside the ball, against a plain sum over many heights.
    low, high = (0.3, -0.4, 0.2), (3.0, 0.9, 3.0)
    z = 0.2 + 1.8 * (np.arange(400_000) + 0.5) / 400_000
    section = circle_in_rectangle(np.sqrt(4.0 - z**2), low[0], high[0], low[1], high[1])
    assert inside(low, high) == pytest.approx(section.mean() * 1.8, rel=1e-10)
    # Parts add up to the whole.
    cuts = [(-3, -0.7, 3), (-3, 0.2, 3), (-3, 1.1, 3)]
    parts = [
        inside((cuts[0][i], cuts[1][j], cuts[2][k]), (cuts[0][i + 1], cuts[1][j + 1], cuts[2][k + 1]))
        for i in range(2)
        for j in range(2)
        for k in range(2)
    ]
    assert sum(parts) == pytest.approx(whole, rel=1e-9)


def test_packing_of_a_lattice_whole_and_over_height():
    cubic = moment(lattice(4), 0.5, period=(4.0, 4.0, 4.0))
    assert measure.packing_fraction(cubic) == pytest.approx(math.pi / 6.0, rel=1e-12)
    # Across a periodic face, half a spacing aside, it is the same.
    assert measure.packing_fraction(cubic, ((0.5, 0.5, 0.5), (4.5, 3.5, 2.5))) == pytest.approx(math.pi / 6.0, rel=1e-9)
    height, share = measure.packing_profile(cubic, 2, box=((0, 0, 0), (4, 4, 4)), bins=8)
    assert height.tolist() == pytest.approx(np.arange(0.25, 4.0, 0.5).tolist())
    assert share == pytest.approx(np.full(8, math.pi / 6.0), rel=1e-9)
    # Thin slices: the area of the circles at that height.
    height, share = measure.packing_profile(cubic, 2, box=((0, 0, 0.4), (4, 4, 0.402)), bins=1)
    assert share[0] == pytest.approx(math.pi * (0.25 - (0.401 - 0.5) ** 2), rel=1e-5)


def test_radial_distribution_of_a_lattice_and_of_points_at_random():
    r, g = measure.radial_distribution(moment(lattice(6), 0.5, period=(6.0, 6.0, 6.0)), 2.1, bins=21)
    width = r[1] - r[0]
    found = g * 4.0 / 3.0 * math.pi * ((r + width / 2) ** 3 - (r - width / 2) ** 3)  # neighbours in each shell
    shells = {1.0: 6, math.sqrt(2.0): 12, math.sqrt(3.0): 8, 2.0: 6}
    for distance, count in shells.items():
        assert found[np.abs(r - distance) < 0.08].sum() == pytest.approx(count)
    assert found.sum() == pytest.approx(sum(shells.values()))
    points = np.random.default_rng(4).uniform(0, 10, (20_000, 3))
    for period in ((10.0, 10.0, 10.0), (0.0, 0.0, 0.0), (10.0, 0.0, 10.0)):
        r, g = measure.radial_distribution(
            moment(points, 0.01, period=period), 1.5, bins=6, box=((0, 0, 0), (10, 10, 10))
        )
        assert g[1:] == pytest.approx(np.ones(5), abs=0.02)


# Fields.


def test_fields_add_up_to_what_they_are_made_of():
    rng = np.random.default_rng(5)
    velocity = rng.normal(size=(30, 3))
    some = moment(rng.uniform(0.8, 1.2, (30, 3)), rng.uniform(0.02, 0.05, 30), velocity)
    cloud = measure.fields(some, box=((0, 0, 0), (2, 2, 2)), spacing=0.04, width=0.4)
    cell = float(np.prod(cloud.spacing))
    assert cloud.density.sum() * cell == pytest.approx(some.mass.sum(), rel=1e-3)
    assert cloud.packing.sum() * cell == pytest.approx(some.volume.sum(), rel=1e-3)
    assert cloud.momentum.sum((0, 1, 2)) * cell == pytest.approx(some.mass @ velocity, rel=1e-3, abs=1e-4)
    twice = measure.mean([cloud, cloud])
    assert np.array_equal(twice.density, cloud.density) and np.array_equal(twice.velocity, cloud.velocity)
    with pytest.raises(ValueError, match="different grids"):
        measure.mean([cloud, measure.fields(some, box=((0, 0, 0), (2, 2, 2)), spacing=0.5, width=0.4)])


def test_a_mean_over_time_is_weighted_by_mass_and_knows_fluctuations():
    # A ball of twice the radius, eight times the mass, flies at 2 m/s at the one moment, a small one at -7 m/s at the other.
    grid = {"box": ((0, 0, 0), (1, 1, 1)), "spacing": 1.0, "width": 1.0}
    heavy, light = moment([(0.5, 0.5, 0.5)], 0.02, (2.0, 0, 0)), moment([(0.5, 0.5, 0.5)], 0.01, (-7.0, 0, 0))
    both = measure.mean([measure.fields(heavy, **grid), measure.fields(light, **grid)])
    assert both.velocity.ravel() == pytest.approx(((8.0 * 2.0 - 7.0) / 9.0, 0.0, 0.0))
    assert both.density.item() == pytest.approx(0.5 * (heavy.mass[0] + light.mass[0]) * lucy(0.0, 1.0))
    # T = (<v^2> - <v>^2) / 3 with weights 8/9 and 1/9.
    assert both.temperature.item() == pytest.approx(((8.0 * 4.0 + 49.0) / 9.0 - 1.0) / 3.0)


def test_fields_of_a_uniform_flow_and_of_shear():
    place = lattice(10, 0.1)
    shear = np.stack([3.0 * place[:, 2], np.zeros(1000), np.zeros(1000)], axis=1)
    flow = measure.fields(
        moment(place, 0.05, shear, period=(1.0, 1.0, 0.0)), box=((0, 0, 0.3), (1, 1, 0.7)), spacing=0.05, width=0.25
    )
    assert flow.density == pytest.approx(np.full(flow.density.shape, RHO * math.pi / 6.0), rel=0.01)
    assert flow.velocity[..., 0] == pytest.approx(3.0 * flow.points[..., 2], rel=0.02)
    # Within the kernel the shear looks like fluctuation: T = (1/3) rate^2 <z^2>, and <z^2> = c^2 / 3 int r^4 W / int r^2 W.
    u = np.linspace(0.0, 1.0, 20_001)
    kernel = (1.0 + 3.0 * u) * (1.0 - u) ** 3
    spread = 0.25**2 / 3.0 * (u**4 * kernel).sum() / (u**2 * kernel).sum()
    assert flow.temperature == pytest.approx(np.full(flow.density.shape, 9.0 * spread / 3.0), rel=0.05)


def test_granular_temperature_is_the_mean_square_of_what_remains():
    rng = np.random.default_rng(6)
    place = rng.uniform(0, 1, (40_000, 3))
    velocity = rng.normal(0.0, 0.7, (40_000, 3)) + (5.0, 0.0, 0.0)
    gas = measure.fields(
        moment(place, 0.002, velocity, period=(1.0, 1.0, 1.0)), box=((0, 0, 0), (1, 1, 1)), spacing=0.5, width=0.4
    )
    assert gas.temperature == pytest.approx(np.full((2, 2, 2), 0.49), rel=0.1)  # about 1,000 bodies count at a node
    assert gas.temperature.mean() == pytest.approx(0.49, rel=0.02)
    assert gas.velocity[..., 0] == pytest.approx(np.full((2, 2, 2), 5.0), rel=0.01)
    assert gas.pressure == pytest.approx(gas.density * gas.temperature, rel=1e-9)


def test_the_stress_field_of_a_lattice_is_its_mean_stress():
    loaded = touching_lattice(5, (3.0, 5.0, 7.0))
    grid = measure.fields(loaded, box=((0, 0, 0), (5, 5, 5)), spacing=0.5, width=2.0)
    assert grid.stress == pytest.approx(np.broadcast_to(np.diag([3.0, 5.0, 7.0]), (10, 10, 10, 3, 3)), abs=0.03)
    assert grid.fabric == pytest.approx(np.broadcast_to(np.eye(3) / 3.0, (10, 10, 10, 3, 3)), abs=0.01)
    mean = grid.stress.mean((0, 1, 2))  # over whole periods the sum is exact, but for the quadrature
    assert mean == pytest.approx(measure.stress(loaded), abs=0.01)


def test_fields_open_in_paraview(tmp_path):
    pyvista = pytest.importorskip("pyvista")
    grid = measure.fields(touching_lattice(3, (1.0, 2.0, 3.0)), box=((0, 0, 0), (3, 2, 1)), spacing=0.5, width=1.0)
    grid.save(tmp_path / "fields.vti")
    read = pyvista.read(tmp_path / "fields.vti")
    assert read.dimensions == (6, 4, 2) and read.spacing == (0.5, 0.5, 0.5) and read.origin == (0.25, 0.25, 0.25)
    assert np.array_equal(read["density"].reshape(2, 4, 6).transpose(2, 1, 0), grid.density)
    assert np.array_equal(read["stress"].reshape(2, 4, 6, 3, 3).transpose(2, 1, 0, 3, 4), grid.stress)
    assert np.allclose(read.points.reshape(2, 4, 6, 3).transpose(2, 1, 0, 3), grid.points)
    with pytest.raises(ValueError, match=r"unknown file format of a grid '.vtx'"):
        grid.save(tmp_path / "fields.vtx")


# Flow, heaps, mixtures.


def test_mass_flow_of_a_steady_stream():
    # Bodies 0.1 m apart in a periodic duct move at 2 m/s: each plane is passed by 20 of them a second.
    line = np.stack([np.arange(10) * 0.1 + 0.031, np.full(10, 0.5), np.full(10, 0.5)], axis=1)
    moments = [
        moment(np.mod(line + (2.0 * t, 0, 0), 1.0), 0.02, (2.0, 0, 0), time=t, period=(1.0, 1.0, 1.0))
        for t in np.arange(11) * 0.05
    ]
    mass = moments[0].mass[0]
    for place in (0.04, 0.5, 0.999):
        times, rate = measure.mass_flow(moments, (place, 0, 0), (1, 0, 0))
        assert times == pytest.approx(np.arange(1, 11) * 0.05) and rate == pytest.approx(np.full(10, 20.0 * mass))
    assert measure.mass_flow(moments, (0.5, 0, 0), (-1, 0, 0))[1] == pytest.approx(np.full(10, -20.0 * mass))
    aside = ((0.0, 0.6, 0.0), (1.0, 1.0, 1.0))
    assert not measure.mass_flow(moments, (0.5, 0, 0), (1, 0, 0), box=aside)[1].any()
    # Around a stream that is nearer to the next image of the point than to the point itself.
    moved = [one._replace(position=one.position + (0.0, 0.3, 0.0)) for one in moments]
    assert measure.mass_flow(moved, (0.5, 0, 0), (1, 0, 0), box=aside)[1] == pytest.approx(np.full(10, 20.0 * mass))


@pytest.mark.parametrize("degrees", [15.0, 25.0, 40.0])
def test_the_angle_of_a_cone_and_of_a_wedge(degrees):
    slope = math.tan(math.radians(degrees))
    points = np.random.default_rng(7).uniform((-1, -1, 0), (1, 1, 1), (200_000, 3)) * (1.0, 1.0, slope)
    cone = points[points[:, 2] < slope * (1.0 - np.hypot(points[:, 0], points[:, 1]))]
    assert math.degrees(measure.angle_of_repose(moment(cone, 0.01))) == pytest.approx(degrees, abs=1.0)
    wedge = points[points[:, 2] < slope * 0.5 * (1.0 + points[:, 0])]
    found = measure.angle_of_repose(moment(wedge, 0.01), axis=(0, 1, 0))
    assert found == pytest.approx(math.atan(0.5 * slope), abs=math.radians(0.5))


def test_separate_kinds_and_random_mixtures():
    place = lattice(16, 1.0 / 16.0)
    some = moment(place, 0.01)
    grid = {"box": ((0, 0, 0), (1, 1, 1)), "cells": (4, 4, 4)}
    apart = place[:, 0] < 0.25
    assert measure.lacey(some, apart, **grid) == pytest.approx(0.0)
    assert measure.relative_deviation(some, apart, **grid) == pytest.approx(math.sqrt(0.75 / 0.25))
    chess = (np.round(place * 16 - 0.5).sum(1) % 2).astype(bool)  # as even as can be, better than at random
    assert measure.relative_deviation(some, chess, **grid) == 0.0
    assert measure.lacey(some, chess, **grid) == pytest.approx(1.0 / (1.0 - 1.0 / 64.0))
    rng = np.random.default_rng(8)
    mixed = [measure.lacey(some, rng.random(len(place)) < 0.3, **grid) for _ in range(20)]
    assert np.mean(mixed) == pytest.approx(1.0, abs=0.005)
    with pytest.raises(ValueError, match="mask over the 4096 free particles"):
        measure.lacey(some, apart[:5], **grid)


# Simulations.


def test_energies_and_momenta_of_flying_balls():
    scene = clast.Scene(gravity=(0, 0, -10.0))
    steel = clast.Material(density=1.0 / (4.0 / 3.0 * math.pi * 0.1**3))  # a ball of 0.1 m has 1 kg, one of 0.2 m has 8
    scene.add(clast.Plane(), material=steel, velocity=(3, 0, 0))
    where, fly, turn = [(0, 2, 1), (5, 0, 3)], [(1, 2, 2), (0, 0, -2)], [(0, 0, 5), (1, 0, 0)]
    scene.add(clast.Sphere(0.1), position=where, velocity=fly, spin=turn, scale=[1.0, 2.0], material=steel)
    sim = clast.Simulation(scene, dt=1e-5)
    inertia = np.array([0.4 * 1.0 * 0.01, 0.4 * 8.0 * 0.04])
    told = measure.energy(sim)
    assert told["kinetic"] == pytest.approx(0.5 * 9.0 + 0.5 * 8.0 * 4.0)
    assert told["rotational"] == pytest.approx(0.5 * inertia[0] * 25.0 + 0.5 * inertia[1])
    assert told["potential"] == pytest.approx(1.0 * 10.0 * 1.0 + 8.0 * 10.0 * 3.0)
    assert told["elastic"] == measure.elastic_energy(sim) == 0.0
    assert told["total"] == pytest.approx(sum(told[name] for name in ("kinetic", "rotational", "potential")))
    linear, angular = measure.momentum(sim)
    assert linear == pytest.approx((1.0, 2.0, 2.0 - 16.0))
    # x cross v of the balls: (2, 1, -2) and 8 (0, 10, 0).
    assert angular == pytest.approx((2.0 + inertia[1], 81.0, -2.0 + 5.0 * inertia[0]))


def test_inertia_turns_with_the_body():
    scene = clast.Scene()
    stone = clast.Material(density=1000.0)
    half = math.sqrt(0.5)  # a quarter turn about z: the own axis x lies along y
    scene.add(clast.Ellipsoid(0.1, 0.2, 0.3), orientation=(half, 0, 0, half), scale=2.0, material=stone)
    scene.add(clast.Sphere(0.1), position=(5, 0, 0), motion="fixed")
    sim = clast.Simulation(scene, dt=1e-4)
    a, b, c = 0.2, 0.4, 0.6
    mass = 1000.0 * 4.0 / 3.0 * math.pi * a * b * c
    turned, still = measure.world_inertia(sim, sim.bodies)
    assert turned == pytest.approx(mass / 5.0 * np.diag([a**2 + c**2, b**2 + c**2, a**2 + b**2]), abs=1e-9 * mass)
    assert not still.any()


def test_the_energy_of_a_pressed_contact():
    scene = clast.Scene(gravity=(0, 0, 0))
    rubber = clast.Material(density=1000.0, young=1e7, poisson=0.25)
    scene.add(clast.Plane(), material=rubber)
    scene.add(clast.Sphere(0.1), position=(0, 0, 0.099), material=rubber)
    sim = clast.Simulation(scene, dt=1e-6)
    effective = 1e7 / (2.0 * (1.0 - 0.25**2))
    expected = 8.0 / 15.0 * effective * math.sqrt(0.1) * 0.001**2.5  # Hertz
    assert measure.elastic_energy(sim) == pytest.approx(expected, rel=1e-9)
    assert measure.energy(sim)["elastic"] == measure.elastic_energy(sim)


def resting(**plane):
    """A ball of 1 kg at rest on a plane, by forces."""
    scene = clast.Scene()
    metal = clast.Material(density=1.0 / (4.0 / 3.0 * math.pi * 0.1**3), young=1e7, friction=0.5, restitution=0.1)
    floor = scene.add(clast.Plane(), material=metal, **plane)[0]
    ball = scene.add(clast.Sphere(0.1), position=(0.3, 0.0, 0.1), material=metal)[0]
    return clast.Simulation(scene), floor, ball


def test_a_ball_at_rest_presses_its_weight_on_the_wall():
    sim, floor, _ = resting()
    sim.step(round(0.5 / sim.dt))
    assert measure.wall_force(sim, floor) == pytest.approx((0, 0, -9.81), abs=1e-3)
    assert measure.wall_torque(sim, floor) == pytest.approx((0, 0.3 * 9.81, 0), abs=1e-3)
    assert measure.wall_torque(sim, floor, about=(1.3, 0, 0)) == pytest.approx((0, -9.81, 0), abs=1e-3)
    assert measure.wall_power(sim, floor) == 0.0
    assert measure.coordination(sim) == 1.0
    assert measure.energy(sim)["potential"] == pytest.approx(0.98, rel=1e-2)


def test_a_sliding_belt_gives_power_to_what_it_drags():
    sim, floor, ball = resting(velocity=(1.0, 0, 0))
    sim.step(round(0.05 / sim.dt))  # the ball has not yet the speed of the belt
    force = measure.wall_force(sim, floor)
    assert force[0] == pytest.approx(-0.5 * abs(force[2]), rel=1e-9)
    assert measure.wall_power(sim, floor) == pytest.approx(0.5 * abs(force[2]) * 1.0, rel=1e-9)
    # A turning plate: -T . w, and friction times the speed 2 * 0.3 m/s below the ball.
    sim, plate, _ = resting(spin=(0, 0, 2.0))
    sim.step(round(0.01 / sim.dt))
    power, pressed = measure.wall_power(sim, plate), abs(measure.wall_force(sim, plate)[2])
    assert power == pytest.approx(-2.0 * measure.wall_torque(sim, plate)[2], rel=1e-9)
    assert power == pytest.approx(0.5 * pressed * 0.6, rel=1e-2)
    with pytest.raises(ValueError, match="there is no body 77"):
        measure.wall_torque(sim, 77)
    assert ball == 1

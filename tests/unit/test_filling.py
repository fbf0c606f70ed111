"""Random and lattice filling, size distributions, inlets and outlets."""

import math
import time

import numpy as np
import pytest
from scipy.spatial import cKDTree

from clast import (
    Clump,
    Compound,
    Cylinder,
    Ellipsoid,
    Mesh,
    MeshWall,
    Plane,
    Polyhedron,
    Quad,
    Simulation,
    Sphere,
    Superquadric,
    find_contacts,
)
from clast.scene import clearance, lots
from clast.scene.filling import Inlet, Outlet, Sizes, random_orientation
from clast.scene.scene import Scene

UNIT = ((0.0, 0.0, 0.0), (1.0, 1.0, 1.0))


def least_gap(position, radius):
    pair = cKDTree(position).query_pairs(2.0 * radius.max(), output_type="ndarray")
    if len(pair) == 0:
        return math.inf
    return (np.linalg.norm(position[pair[:, 0]] - position[pair[:, 1]], axis=1) - radius[pair].sum(axis=1)).min()


def there(centre, radius):
    return clearance.Known(centre, radius, np.arange(len(radius)))


def inlet(**changes):
    values = {"mold": 0, "material": 0, "reach": 0.05, "low": (0.0, 0.0, 0.0), "high": (1.0, 1.0, 1.0), "rate": 100.0}
    values |= {"velocity": (0.0, 0.0, -1.0), "sizes": Sizes.of("test", (0.5, 1.0)), "seed": 3}
    return Inlet(**(values | changes))


@pytest.mark.parametrize("scale", [1.0, (0.3, 1.0), {1.0: 1, 0.25: 10}])
def test_random_bodies_are_inside_the_box_and_do_not_overlap(scale):
    scene = Scene()
    numbers = scene.fill(Sphere(0.05), count=400, box=UNIT, scale=scale, seed=5)
    bodies = scene.bodies
    radius = 0.05 * bodies.scale
    assert (numbers == np.arange(400)).all()
    assert least_gap(bodies.position, radius) >= 0.0
    assert (bodies.position - radius[:, None] >= 0.0).all() and (bodies.position + radius[:, None] <= 1.0).all()


def test_dense_filling_by_voxels_keeps_bodies_apart_and_spreads_them_evenly():
    scene = Scene()
    box = ((0.0, 0.0, 0.0), (1.0, 1.0, 1.0))
    count = int(0.33 / (4 / 3 * math.pi * 0.03**3))
    scene.fill(Sphere(0.03), count=count, box=box, seed=1)
    position = scene.bodies.position
    assert least_gap(position, np.full(count, 0.03)) >= 0.0
    # Binomial scatter of a half is 0.5 sqrt(n); filling at random without overlap scatters less.
    assert (np.abs((position < 0.5).sum(axis=0) - 0.5 * count) < 2.0 * math.sqrt(count)).all()


def test_the_same_seed_gives_the_same_bits_and_another_seed_does_not():
    def made(seed):
        scene = Scene()
        scene.fill(Sphere(0.04), count=300, box=UNIT, scale=(0.8, 1.2), seed=seed)
        return scene.bodies

    for one, same in zip(made(7), made(7), strict=True):
        assert (one == same).all()
    assert (made(7).position != made(8).position).any()


def test_filling_keeps_clear_of_bodies_that_are_there_also_across_a_periodic_side():
    scene = Scene(world=UNIT, periodic=(True, False, False))
    scene.add(Sphere(0.3), position=(0.95, 0.5, 0.5))
    scene.add(Sphere(0.2), position=(0.5, 0.5, 0.0), motion="fixed")
    scene.fill(Sphere(0.03), count=800, box=UNIT, seed=2)
    position = scene.bodies.position
    for image in (0.95, -0.05):
        distance = np.linalg.norm(position[2:] - (image, 0.5, 0.5), axis=1)
        assert distance.min() >= 0.33
    assert np.linalg.norm(position[2:] - (0.5, 0.5, 0.0), axis=1).min() >= 0.23


@pytest.mark.parametrize(("method", "count"), [("random", 600), ("lattice", 3000)])
def test_filling_keeps_clear_of_every_kind_of_wall(method, count):
    box = ((-1.0, -1.0, -1.0), (1.0, 1.0, 1.0))
    radius = 0.04

    def filled(*walls):
        scene = Scene()
        for wall, options in walls:
            scene.add(wall, **options)
        scene.fill(Sphere(radius), count=count, box=box, method=method, seed=4)
        return scene.bodies.position[len(walls) :]

    limit = radius * (1 - 1e-6)
    tilted = filled((Plane(normal=(1.0, 0.0, 1.0)), {"position": (0.1, 0.0, 0.0)}))
    assert ((tilted - (0.1, 0.0, 0.0)) @ (1.0, 0.0, 1.0) / math.sqrt(2.0)).min() >= limit
    hollow = filled((Cylinder(0.4, axis=(0.0, 1.0, 0.0), inside=True), {"scale": 1.5}))
    assert np.hypot(hollow[:, 0], hollow[:, 2]).max() <= 0.6 - limit
    post = filled((Cylinder(0.7, 1.0, inside=False), {}))
    assert (np.hypot(post[:, 0], post[:, 1]) >= 0.7 + limit)[np.abs(post[:, 2]) < 0.5].all()
    assert (np.abs(post[:, 2]) > 0.5).any()
    square = [(-1, -1, 0), (1, -1, 0), (1, 1, 0), (-1, 1, 0)]
    half_turn = (math.cos(math.pi / 8), math.sin(math.pi / 8), 0.0, 0.0)
    sheet = filled((Quad(square), {"orientation": half_turn, "position": (0.0, 0.0, 0.1), "scale": 2.0}))
    normal = np.array([0.0, -math.sin(math.pi / 4), math.cos(math.pi / 4)])
    height = (sheet - (0.0, 0.0, 0.1)) @ normal
    assert np.abs(height).min() >= limit and (height > 0).any() and (height < 0).any()
    fin = filled((MeshWall([(0, 0, -1), (0.9, 0, 0), (0, 0, 1)], [[0, 1, 2]]), {}))
    inner = (fin[:, 0] > 0) & (fin[:, 0] / 0.9 + np.abs(fin[:, 2]) < 1.0)
    assert np.abs(fin[inner, 1]).min() >= limit


def test_a_dense_fill_beside_an_open_drum_uses_the_room_outside_its_ends():
    scene = Scene()
    scene.add(Cylinder(0.3, 0.6, axis=(1.0, 0.0, 0.0)))
    scene.fill(Sphere(0.05), count=420, box=((-1.0, -0.5, -0.5), (1.0, 0.5, 0.5)), seed=6)
    position = scene.bodies.position[1:]
    within = np.abs(position[:, 0]) < 0.3
    assert np.hypot(position[within, 1], position[within, 2]).max() <= 0.25 + 1e-12
    assert np.hypot(position[~within, 1], position[~within, 2]).max() > 0.4


BALL = 4.0 / 3.0 * math.pi
TRUE = {
    # Shape, and the solid fraction asked for: as the balls around them, none of these comes above 0.38 times its part of that ball.
    "clump": (Clump([(-0.02, 0, 0), (0.02, 0, 0)], [0.03, 0.03]), 0.25),
    "ellipsoid": (Ellipsoid(0.03, 0.03, 0.09), 0.22),
    "cube": (Polyhedron.box(0.06, 0.06, 0.06), 0.25),
    "rock": (Polyhedron.random(faces=14, seed=3, radius=0.05), 0.25),
    "superquadric": (Superquadric(0.05, 0.03, 0.03, 0.4, 1.6), 0.22),
    "mesh": (Mesh(*Polyhedron.random(faces=14, seed=3, radius=0.05).surface()), 0.2),
    "compound": (Compound([Sphere(0.03), (Polyhedron.box(0.1, 0.02, 0.02), (0.03, 0.0, 0.0))]), 0.12),
}


def solid_fraction(scene, box):
    bodies = scene.bodies
    free = np.isfinite(bodies.mass)
    return (bodies.mass[free] / 2500.0).sum() / np.subtract(*box[::-1]).prod()


@pytest.mark.parametrize("name", TRUE)
def test_bodies_are_placed_by_their_true_shape(name):
    """Denser than balls around them can be, none overlaps another, the walls or the rim of the box, and a seed repeats."""
    shape, fraction = TRUE[name]
    count = int(fraction / shape.volume)

    def filled(seed):
        scene = Scene()
        scene.fill(shape, count=count, box=UNIT, seed=seed)
        return scene

    scene = filled(1)
    placed = scene.bodies.position.copy()
    reach = np.linalg.norm(shape.surface()[0], axis=1).max()
    assert solid_fraction(scene, UNIT) > 1.2 * 0.38 * shape.volume / (BALL * reach**3)
    assert len(find_contacts(scene).gap) == 0
    for normal in np.vstack([np.eye(3), -np.eye(3)]):
        scene.add(Plane(normal=tuple(normal)), position=tuple((normal < 0.0).astype(float)))
    assert len(find_contacts(scene).gap) == 0
    assert (filled(1).bodies.position == placed).all()
    assert (filled(2).bodies.position != placed).any()


@pytest.mark.parametrize("name", ["ellipsoid", "cube"])
def test_true_shapes_keep_clear_of_walls_and_of_what_is_there(name):
    shape, _ = TRUE[name]
    box = ((-0.5, -0.5, -0.5), (0.5, 0.5, 0.5))
    there = [
        (Plane(normal=(1.0, 0.0, 1.0)), (0.0, 0.0, -0.4)),
        (Cylinder(0.1, 0.3, inside=False), (0.0, 0.0, 0.0)),
        (Cylinder(0.48, axis=(0.0, 1.0, 0.0)), (0.0, 0.0, 0.0)),
        (Quad([(-0.2, -0.3, 0.2), (0.2, -0.3, 0.2), (0.2, 0.3, 0.2), (-0.2, 0.3, 0.2)]), (0.0, 0.0, 0.0)),
        (Superquadric(0.2, 0.1, 0.1, 0.3, 0.3), (0.0, 0.45, -0.1)),
    ]

    def among(some):
        scene = Scene(world=box, periodic=(False, True, False))
        for what, place in some:
            scene.add(what, position=place)
        return scene

    scene = among(there)
    scene.fill(shape, count=120, box=box, seed=3)
    placed = scene.bodies
    assert len(placed.number) == 125
    for k in range(
        len(there)
    ):  # one at a time: for walls of all kinds at once a kernel would be compiled that nobody else needs
        alone = among(there[k : k + 1])
        alone.add(shape, position=placed.position[5:], orientation=placed.orientation[5:])
        assert len(find_contacts(alone).gap) == 0


def test_a_lattice_of_bricks_is_as_wide_as_they_are():
    """Bricks that all lie the same way fill the box; a rock stands with its middle, not its centre of mass, in its cell."""
    brick = Polyhedron.box(0.2, 0.1, 0.05)
    scene = Scene()
    scene.fill(brick, count=1000, box=UNIT, method="lattice", orientation=(1, 0, 0, 0))
    assert solid_fraction(scene, UNIT) == pytest.approx(1.0)
    with pytest.raises(ValueError, match="placed only 1000 of 1001|take at least"):
        Scene().fill(brick, count=1001, box=UNIT, method="lattice", orientation=(1, 0, 0, 0))
    scene = Scene()
    scene.add(Sphere(0.2), position=(0.5, 0.5, 0.5))
    scene.fill(TRUE["rock"][0], count=300, box=UNIT, method="lattice", jitter=0.1, seed=2)
    assert len(find_contacts(scene).gap) == 0


def test_an_inlet_pours_bodies_by_their_true_shape():
    """More than balls around them have room for at once, none of them overlapping."""
    rod = Ellipsoid(0.03, 0.03, 0.12)
    scene = Scene(gravity=(0.0, 0.0, 0.0))
    scene.inlet(rod, box=((0, 0, 0), (0.5, 0.5, 0.5)), rate=1e6, count=30, seed=1)
    sim = Simulation(scene, dt=1e-5)
    sim.step(301)  # it is looked after each millisecond
    bodies = sim.bodies
    made = Scene()
    made.add(rod, position=bodies.position, orientation=bodies.orientation)
    assert len(bodies.number) == 30  # as balls, fewer than 17 have room
    assert len(find_contacts(made).gap) == 0


def test_inside_is_asked_for_whole_arrays_and_obeyed():
    def ring(points):
        return np.hypot(points[:, 0] - 0.5, points[:, 1] - 0.5) > 0.3

    for method in ("random", "lattice"):
        scene = Scene()
        scene.fill(Sphere(0.03), count=500, box=UNIT, inside=ring, method=method, seed=1)
        assert ring(scene.bodies.position).all()
    with pytest.raises(ValueError, match=r"inside must return a mask of shape.*bool"):
        Scene().fill(Sphere(0.03), count=5, box=UNIT, inside=lambda points: points[:, 0])


def test_what_does_not_fit_is_told_with_numbers_and_leaves_the_scene_as_it_was():
    scene = Scene()
    with pytest.raises(ValueError, match=r"placed only \d+ of 160 .*solid fraction 0\.[23]\d\d.*larger box.*lattice"):
        scene.fill(Sphere(0.1), count=160, box=UNIT, seed=1)
    with pytest.raises(ValueError, match=r"placed only 125 of 126 .*'lattice'.*spacing is 0\.2 m"):
        scene.fill(Sphere(0.1), count=126, box=UNIT, method="lattice")
    with pytest.raises(ValueError, match=r"diameter 1\.2 m .* only 1 m wide"):
        scene.fill(Sphere(0.6), count=1, box=UNIT)
    assert len(scene.bodies.number) == 0 and len(scene.molds.first) == 0 and scene.materials == []


@pytest.mark.parametrize("method", ["random", "lattice"])
def test_what_can_never_fit_is_refused_at_once(method):
    scene = Scene()
    scene.add(Plane())
    began = time.perf_counter()
    for count in (10**6, 10**9, 10**18):
        with pytest.raises(ValueError, match=r"bodies .* take at least .* it would need .* m\^3: use a larger box"):
            scene.fill(Sphere(0.01), count=count, box=UNIT, method=method)
    for far in (1e9, 9e18, 1e200, 1e308):
        for box in (((0, 0, 0), (far, far, far)), ((0, 0, 0), (far, 1, 1)), ((-far, 0, 0), (1, 1, 1))):
            with pytest.raises(
                ValueError, match=r"numbers are (too coarse .* stay within 1e\+07 m of the origin|at most 1e\+30)"
            ):
                scene.fill(Sphere(0.01), count=10, box=box, method=method)
            with pytest.raises(ValueError, match="numbers are (too coarse|at most)"):
                scene.inlet(Sphere(0.01), rate=1.0, box=box)
    assert time.perf_counter() - began < 5.0


@pytest.mark.parametrize("method", ["random", "lattice"])
@pytest.mark.parametrize("box", [(9e6, 1, 1), (1, 9e6, 9e6), (9e6, 9e6, 0.03), (9e6, 9e6, 9e6)])
def test_a_wide_box_for_few_bodies_costs_little(method, box):
    scene = Scene()
    scene.add(Plane())
    began = time.perf_counter()
    scene.fill(Sphere(0.01), count=10, box=((0, 0, 0), box), method=method)
    assert len(scene.bodies.number) == 11 and time.perf_counter() - began < 5.0
    balls = clearance.stack_balls(np.zeros(3), np.array(box, float), np.zeros((0, 3)), np.zeros(0), np.full(10, 0.01))
    assert len(balls.head) < 100_000


def test_a_lattice_fills_from_the_bottom_up_and_jitter_makes_no_overlap():
    scene = Scene()
    scene.fill(Sphere(0.1), count=60, box=UNIT, method="lattice", seed=1)
    height = scene.bodies.position[:, 2]
    assert (np.diff(height) >= -1e-12).all()
    assert height[:25] == pytest.approx(0.1) and height[25:50] == pytest.approx(0.3)
    assert (np.diff(scene.bodies.position[:5, 0]) > 0).all()
    shaken = Scene()
    shaken.fill(Sphere(0.1), count=64, box=UNIT, method="lattice", jitter=0.2, seed=1)
    position = shaken.bodies.position
    assert least_gap(position, np.full(64, 0.1)) >= -1e-12
    assert position.min() >= 0.1 - 1e-12 and position.max() <= 0.9 + 1e-12
    assert len(np.unique(position[:, 2])) == 64


def test_sizes_follow_the_weights_and_the_limits():
    uniform = (np.arange(1000) + 0.5) / 1000
    assert (Sizes.of("t", 2.0).draw(uniform) == 2.0).all()
    line = Sizes.of("t", (1.0, 3.0)).draw(uniform)
    assert line == pytest.approx(1.0 + 2.0 * uniform)
    table = Sizes.of("t", {1.0: 1, 2.0: 0, 4.0: 3})
    value, count = np.unique(table.draw(uniform), return_counts=True)
    assert value.tolist() == [1.0, 4.0] and count.tolist() == [250, 750]
    assert table.largest == 4.0 and Sizes.of("t", {1.0: 1, 9.0: 0}).largest == 1.0
    for wrong in (0.0, -1.0, math.nan, (2.0, 1.0), {}, {1.0: -1.0}, {1.0: 0.0}, (0.0, 1.0)):
        with pytest.raises(ValueError, match=r"there: .*scale"):
            Sizes.of("there", wrong)
    for wrong in ("big", (1.0, 2.0, 3.0), None):
        with pytest.raises(TypeError, match="there: scale must be a number"):
            Sizes.of("there", wrong)


def test_random_orientations_are_unit_and_turn_evenly():
    q = random_orientation(np.random.default_rng(1).random((20000, 3)))
    assert (q * q).sum(axis=1) == pytest.approx(1.0)
    assert np.abs(q.T @ q / len(q) - 0.25 * np.eye(4)).max() < 0.01


def test_an_inlet_counts_exactly_over_any_steps():
    pour = inlet(rate=10.0, start=0.5, stop=2.0)
    times = np.cumsum(np.full(3000, 1e-3)).tolist()
    assert sum(pour.due(a, b) for a, b in zip([0.0, *times], times, strict=False)) == pour.due(0.0, 3.0) == 15
    assert pour.due(0.0, 0.5) == 0 and pour.due(0.5, 0.6) == 1 and pour.due(2.0, 9.0) == 0
    assert inlet(rate=10.0, count=4).due(0.0, 100.0) == 4
    assert inlet(rate=1000.0).due(0.0, 0.9995) == 999 and inlet(rate=1000.0).due(0.0, sum([0.001] * 1000)) == 1000


def test_an_inlet_gives_the_same_bodies_however_they_are_batched():
    pour = inlet()
    scale, orientation = pour.batch(0, 20)
    later = pour.batch(13, 7)
    assert (later[0] == scale[13:]).all() and (later[1] == orientation[13:]).all()
    assert len(np.unique(scale)) == 20
    assert (inlet(seed=4).batch(0, 20)[0] != scale).all()


def test_an_inlet_places_bodies_apart_from_all_others_in_order_and_repeats():
    pour = inlet()
    rng = np.random.default_rng(0)
    occupied, radius = rng.random((200, 3)), np.full(200, 0.05)
    position, scale, orientation, placed = pour.place(10, 30, there(occupied, radius))
    assert placed == len(position) == len(scale) == len(orientation) == 30
    assert (scale == pour.batch(10, 30)[0]).all()
    all_gap = np.linalg.norm(position[:, None] - occupied, axis=2) - 0.05 - 0.05 * scale[:, None]
    assert all_gap.min() >= 0.0 and least_gap(position, 0.05 * scale) >= 0.0
    assert (position >= 0.05 * scale[:, None]).all() and (position <= 1.0 - 0.05 * scale[:, None]).all()
    assert (pour.place(10, 30, there(occupied, radius))[0] == position).all()
    assert (pour.place(10, 30, there(occupied, radius), attempt=1)[0] != position).all()


def test_an_inlet_without_room_places_a_prefix_and_nothing_is_passed_over():
    pour = inlet(reach=0.3, sizes=Sizes.of("t", {1.0: 1, 0.1: 1}))
    position, scale, _, placed = pour.place(0, 60, there(np.zeros((0, 3)), np.zeros(0)))
    assert 0 < placed < 60 and len(position) == placed
    assert (scale == pour.batch(0, placed)[0]).all()
    assert pour.batch(placed, 1)[0] == 1.0  # a large one waits, and the small ones behind it wait too
    full = pour.place(placed, 3, there(np.array([[0.5, 0.5, 0.5]]), np.array([2.0])))
    assert full[3] == 0 and full[0].shape == (0, 3)


def test_an_outlet_holds_what_is_in_its_box():
    mask = Outlet((0.0, 0.0, 0.0), (1.0, 1.0, 1.0)).holds(np.array([[0.5, 0.5, 0.5], [0.5, 0.5, 1.1], [0, 0, 0]]))
    assert mask.tolist() == [True, False, True]


def test_fill_takes_a_list_of_shapes_with_velocities_of_their_own():
    scene = Scene(gravity=(0.0, 0.0, 0.0))
    shapes = [Sphere(0.1), Clump([[0.0, 0.0, 0.0], [0.1, 0.0, 0.0]], 0.1), Sphere(0.05)]
    velocity = np.arange(9.0).reshape(3, 3)
    numbers = scene.fill(shapes, count=3, box=((0, 0, 0), (1, 1, 1)), velocity=velocity, spin=-velocity)
    bodies = scene.bodies
    np.testing.assert_array_equal(numbers, [0, 1, 2])
    np.testing.assert_array_equal(bodies.velocity, velocity)
    np.testing.assert_array_equal(bodies.spin, -velocity)
    np.testing.assert_allclose(bodies.mass, [2500.0 * shape.volume for shape in shapes])
    reach = np.array([0.1, 0.1, 0.05])
    assert ((bodies.position > reach[:, None]) & (bodies.position < 1.0 - reach[:, None])).all()
    with pytest.raises(ValueError, match="shape has 3, count has 4"):
        scene.fill(shapes, count=4, box=((0, 0, 0), (1, 1, 1)))
    with pytest.raises(ValueError, match="shape has 3, count has 1"):
        scene.fill(shapes, count=1, box=((0, 0, 0), (1, 1, 1)))
    with pytest.raises(ValueError, match="velocity has 2"):
        scene.fill(Sphere(0.01), count=3, box=((0, 0, 0), (1, 1, 1)), velocity=velocity[:2])


@pytest.mark.parametrize(
    "how", [{}, {"jitter": 0.2}, {"orientation": (1.0, 0.0, 0.0, 0.0)}, {"temperature": 300.0}, {"velocity": "each"}]
)
def test_a_large_lattice_is_kept_as_its_recipe_and_gives_the_same_bodies_again_and_again(monkeypatch, how):
    if "velocity" in how:
        how = {"velocity": np.random.default_rng(1).random((500, 3))}

    def made(block):
        monkeypatch.setattr(lots, "BLOCK", block)
        scene = Scene()
        scene.add(Plane(), position=(0, 0, 0.1))
        scene.add(Sphere(0.2), position=(0.5, 0.5, 0.5))
        room = {"box": UNIT, "inside": lambda points: points[:, 0] > 0.2}
        numbers = scene.fill(Sphere(0.04), count=500, method="lattice", scale=(0.5, 1.0), seed=3, **room, **how)
        scene.fill(Sphere(0.02), count=60, box=((0.3, 0.3, 0.7), (0.6, 0.6, 1.2)), seed=1)
        return scene, numbers

    (plain, numbers), (lot, again) = made(1000), made(100)
    assert [lots.is_lot(chunk) for chunk in lot._store.chunks].count(True) == 1
    assert not any(lots.is_lot(chunk) for chunk in plain._store.chunks)
    assert lot.count == plain.count == 562 and np.array_equal(numbers, again)
    blocks = list(lot.blocks())
    assert len(blocks) > 5 and max(len(block.number) for block in blocks) <= 100
    for name, column in plain.bodies._asdict().items():
        joined = np.concatenate([getattr(block, name) for block in blocks])
        assert np.array_equal(joined, column, equal_nan=True)
        assert np.array_equal(getattr(lot.bodies, name), column, equal_nan=True)


def test_a_large_lattice_that_finds_no_room_or_is_not_of_balls_is_filled_as_small_ones_are(monkeypatch):
    monkeypatch.setattr(lots, "BLOCK", 10)
    scene = Scene()
    with pytest.raises(ValueError, match="placed only 64 of 65 bodies"):
        scene.fill(Sphere(0.125), count=65, box=UNIT, method="lattice")
    assert scene.count == 0 and scene.next_number == 0 and scene.names == []
    scene.fill(Ellipsoid(0.05, 0.04, 0.03), count=20, box=UNIT, method="lattice")
    assert scene.count == len(scene.bodies.number) == 20

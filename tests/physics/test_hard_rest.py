"""Hard contacts that come to rest: overlaps are parted without speed, long waves die out however few iterations a step takes."""

import numpy as np
import pytest

import clast
from clast import measure
from clast.dvi import long_waves, overlaps, solvers, stepper
from clast.dvi.method import iterations_for
from clast.kernels.rows import CENTRES, PER_MASS, VELOCITIES

G = 9.81
RADIUS = 0.05


def column(count, seconds, **options):
    """Balls on top of each other, and how fast the top one is in each step."""
    stuff = clast.Material(friction=0.5, restitution=0.0)
    scene = clast.Scene()
    scene.add(clast.Plane(), material=stuff)
    place = [(0, 0, RADIUS + 2.0 * RADIUS * k) for k in range(count)]
    scene.add(clast.Sphere(RADIUS), position=place, material=stuff)
    sim = clast.Simulation(scene, clast.Complementarity(**options), dt=5e-3)
    top = []
    for _ in range(round(seconds / 5e-3)):
        sim.step()
        top.append(abs(float(sim.bodies.velocity[count, 2])))
    return sim, np.array(top)


def test_long_waves_die_out_however_few_iterations_a_step_takes(monkeypatch):
    """Where overlaps are parted by velocities, errors that a step does not solve grow from step to step instead. Iterations alone: no coarse space."""
    monkeypatch.setattr(long_waves, "TALL", np.inf)
    _, top = column(40, 4.0, iterations=30, tolerance=1e-9)
    assert top[:20].max() > 1e-2  # thirty iterations do not reach from the top to the floor
    assert top[-20:].max() < 1e-3 * np.sqrt(G * RADIUS)
    assert top[-20:].max() < 0.1 * top[300:320].max()


def test_overlaps_are_parted_and_leave_no_speed():
    scene = clast.Scene(gravity=(0, 0, 0))
    place = [(0.0, 0, 0), (0.098, 0, 0), (0.196, 0.0, 0)]
    scene.add(clast.Sphere(RADIUS), position=place, material=clast.Material(friction=0.5, restitution=0.0))
    sim = clast.Simulation(scene, clast.Complementarity(), dt=5e-3)
    centre = measure.momentum(sim)[0], sim.bodies.position.mean(0)
    sim.step(100)
    apart = np.diff(sim.bodies.position[:, 0])
    assert np.abs(apart - 2.0 * RADIUS).max() < 1.1 * overlaps.SLOP * RADIUS
    assert not sim.bodies.velocity.any()
    assert not sim.bodies.spin.any()
    assert np.abs(sim.bodies.position.mean(0) - centre[1]).max() < 1e-15


def heap(shape):
    """Sixty bodies that fall into an open box, a simulation."""
    stuff = clast.Material(density=2500, friction=0.5, restitution=0.0)
    scene = clast.Scene()
    scene.add(clast.Plane(), material=stuff)
    for x, y in ((1, 0), (-1, 0), (0, 1), (0, -1)):
        scene.add(clast.Plane((x, y, 0)), position=(-0.2 * x, -0.2 * y, 0), material=stuff)
    scene.fill(shape, count=60, box=((-0.2, -0.2, 0.0), (0.2, 0.2, 1.2)), material=stuff, seed=1)
    return clast.Simulation(scene, clast.Complementarity(), dt=5e-3)


def loads(pair, impulse):
    """Sum of the impulses (c,3) [N s] of each two bodies; pair (c,2): their numbers."""
    found = {}
    for two, push in zip(map(tuple, pair.tolist()), impulse, strict=True):
        found[two] = found.get(two, 0.0) + push
    return found


def test_impulses_are_handed_on_whole_however_contact_points_change(monkeypatch):
    """Two bodies that touch in two steps begin the second one with what they pressed in the first, though points of faces come, go and move."""
    sim, begun = heap(clast.Polyhedron.box(0.06, 0.06, 0.06)), []

    def hold(constraints, impulse, *_):
        begun.append((sim.state.bodies.number[constraints.body], impulse.copy()))

    monkeypatch.setattr(stepper, "hold", hold)
    monkeypatch.setattr(
        stepper.Hard, "_look_again", lambda self: None
    )  # a second solve begins with what the first found
    sim.step(120)
    changed, common = 0, 0
    for _ in range(30):
        before = loads(begun[-1][0], sim.stepper.impulse)
        points = len(begun[-1][0])
        sim.step()
        after = loads(*begun[-1])
        for two in before.keys() & after.keys():
            np.testing.assert_allclose(after[two], before[two], rtol=1e-9, atol=1e-15)
        changed += len(begun[-1][0]) != points
        common += len(before.keys() & after.keys())
    assert changed > 10  # steps in which there are other points
    assert common > 30 * 60


SQUARE = clast.Quad([(-3, -3, 0), (3, -3, 0), (3, 3, 0), (-3, 3, 0)])


@pytest.mark.parametrize("shape", [clast.Sphere(0.25), clast.Polyhedron.box(0.5, 0.5, 0.5)], ids=["ball", "boxes"])
def test_impulses_go_along_from_one_triangle_of_a_wall_to_the_other(shape, monkeypatch):
    """Boxes that touch a quad have points on both of its triangles, and on one of them as soon as they overlap it; a ball that rolls goes from one to the other."""
    stuff, scene, begun = clast.Material(friction=0.5, restitution=0.0), clast.Scene(), []
    scene.add(SQUARE, material=stuff)
    rolls = isinstance(shape, clast.Sphere)
    for k in range(1 if rolls else 5):
        turn, velocity = 0.3 * k, (0.0, 2.0, 0.0) if rolls else (0.0, 0.0, 0.0)
        about = {"orientation": (np.cos(turn), 0, 0, np.sin(turn)), "velocity": velocity}
        scene.add(shape, position=(0.01 * k, -0.5 * rolls, 0.25 + 0.5 * k), material=stuff, **about)
    sim = clast.Simulation(scene, clast.Complementarity(), dt=5e-3)

    def hold(constraints, impulse, *_):
        second = sim.state.shapes.number[sim.state.pairs.shape[constraints.pair, 1]]
        begun.append((sim.state.bodies.number[constraints.body], impulse.copy(), set(second.tolist())))

    monkeypatch.setattr(stepper, "hold", hold)
    monkeypatch.setattr(stepper.Hard, "_look_again", lambda self: None)
    sim.step()
    others = 0
    for _ in range(100):
        body, _, triangles = begun[-1]
        before = loads(body, sim.stepper.impulse)
        sim.step()
        after = loads(*begun[-1][:2])
        for two in before.keys() & after.keys():
            np.testing.assert_allclose(after[two], before[two], rtol=1e-9, atol=1e-15)
        others += begun[-1][2] != triangles
    assert others > 0  # steps in which points are on other triangles


@pytest.mark.parametrize("shape", [clast.Sphere(0.05), clast.Polyhedron.box(0.06, 0.06, 0.06)], ids=["balls", "cubes"])
def test_a_heap_comes_to_rest_and_the_floor_bears_it(shape):
    sim = heap(shape)
    sim.step(600)
    weight, sums, count = G * sim.bodies.mass[5:].sum(), [], []
    for _ in range(10):
        sim.step()
        contacts = sim.contacts()
        sums.append(contacts.force[contacts.pair[:, 0] < 5].sum(0) / weight)
        count.append(len(np.unique(contacts.pair[contacts.force.any(1)], axis=0)))
    speed = np.linalg.norm(sim.bodies.velocity[5:], axis=1)
    assert np.median(speed) < 1e-3 * np.sqrt(G * RADIUS)
    np.testing.assert_allclose(np.mean(sums, 0), (0, 0, 1), rtol=0, atol=1e-3)
    assert np.ptp(count) <= 2  # pairs of bodies that press on each other
    assert sim.report().deepest < 0.01 * RADIUS


def tower_of_balls(count):
    """The cone problem of balls on top of each other in the first step, and the impulses that bear them."""
    stuff = clast.Material(friction=0.5, restitution=0.0)
    scene = clast.Scene()
    scene.add(clast.Plane(), material=stuff)
    scene.add(clast.Sphere(RADIUS), position=[(0, 0, RADIUS * (1 + 2 * k)) for k in range(count)], material=stuff)
    sim = clast.Simulation(scene, clast.Complementarity(iterations=1), dt=5e-3)
    sim.step()
    cones = sim.stepper.cones
    free = cones.rows[: len(cones.free), PER_MASS] > 0.0
    above = np.array([(cones.rows[free, CENTRES][:, 2] > z).sum() for z in cones.constraints.point[:, 2]])
    sign = np.where(cones.constraints.normal[:, 2] > 0.0, 1.0, -1.0)
    bears = sign * above * sim.bodies.mass[1] * G * sim.dt
    return cones, np.ascontiguousarray(bears[:, None] * cones.constraints.normal * sign[:, None])


def lacking(cones, impulse):
    """The energy that impulses lack, [J]: half of the sum of mass times square of the velocity that they leave bodies."""
    cones.begin(impulse)
    rows = cones.rows[: len(cones.free)]
    rows = rows[rows[:, PER_MASS] > 0.0]
    return 0.5 * float((rows[:, VELOCITIES] ** 2 / rows[:, PER_MASS, None]).sum())


@pytest.mark.parametrize("wrong", [lambda z: 0.5, lambda z: 1.7, lambda z: 1.0 + 0.4 * np.cos(np.pi * z / z.max())])
def test_long_waves_of_the_pressure_are_found_at_one_stroke(wrong):
    """As many iterations as the others need for a column of 150 balls would be hundreds."""
    cones, exact = tower_of_balls(150)
    assert lacking(cones, exact) < 1e-20
    impulse = wrong(cones.constraints.point[:, 2:]) * exact
    before = lacking(cones, impulse)
    assert long_waves.correct(cones, impulse, solvers.Workspace()) > 0.0
    assert lacking(cones, impulse) < 1e-2 * before  # a cosine is not straight between the nodes


def test_the_pressure_never_becomes_a_pull():
    """Balls that fly up together press on nothing: the factor goes down to nothing and no further."""
    cones, impulse = tower_of_balls(150)
    cones.free[1:, 2] += 1.0
    before = np.abs(impulse).max()
    assert long_waves.correct(cones, impulse, solvers.Workspace()) > 0.0
    pressed = np.einsum("ci,ci->c", impulse, cones.constraints.normal)
    assert pressed.min() >= 0.0
    assert pressed.max() < 1e-3 * before


def test_a_tall_column_comes_to_rest_with_the_iterations_of_a_low_one():
    """A hundred and fifty balls fall on each other. Without the coarse space they breathe at 0.17 m/s then."""
    stuff = clast.Material(friction=0.5, restitution=0.0)
    scene = clast.Scene()
    scene.add(clast.Plane(), material=stuff)
    scene.add(clast.Sphere(RADIUS), position=[(0, 0, RADIUS * (1 + 2.02 * k)) for k in range(150)], material=stuff)
    sim = clast.Simulation(scene, clast.Complementarity(iterations=40), dt=5e-3)
    sim.step(200)
    assert np.abs(sim.bodies.velocity).max() < 1e-3 * np.sqrt(G * RADIUS)
    force = sim.contacts().force[0]
    assert force[2] == pytest.approx(G * sim.bodies.mass[1:].sum(), rel=1e-3)


def test_what_was_just_built_may_be_solved_for_longer(monkeypatch):
    """No contact remembers anything in the first step; what its solve leaves undone would let a wall of bricks sink by 2 % of their height."""
    allowed, solve = [], solvers.solve

    def listen(*given, iterations, **options):
        allowed.append(iterations)
        return solve(*given, iterations=iterations, **options)

    monkeypatch.setattr(solvers, "solve", listen)
    column(60, 3 * 5e-3)
    assert allowed[0] == 10 * allowed[1] == 10 * allowed[2]
    allowed.clear()
    column(60, 2 * 5e-3, iterations=30)  # what a user says counts
    assert allowed == [30, 30]


def test_one_box_on_many_spheres_asks_for_no_more_iterations():
    auto = clast.Complementarity()
    assert iterations_for(auto, 200_000, False, patched=4) == iterations_for(auto, 200_000, False) == 40
    assert iterations_for(auto, 20_000, False, patched=18_000) == 80
    assert iterations_for(auto, 70_000, False, patched=70_000) == 160
    assert iterations_for(auto, 100, False) == 400


def test_a_joint_elsewhere_does_not_let_a_column_spring():
    stuff = clast.Material(density=2500, friction=0.5, restitution=0.0)
    scene = clast.Scene()
    scene.add(clast.Plane(), material=stuff)
    scene.add(clast.Sphere(RADIUS), position=[(0, 0, RADIUS * (1 + 2.02 * k)) for k in range(100)], material=stuff)
    pendulum = scene.add(clast.Sphere(RADIUS), position=(50, 0, 3), material=stuff)
    scene.join(pendulum[0], None, "ball", at=(50, 0, 5))
    sim, energies, parted = clast.Simulation(scene, clast.Complementarity(), dt=5e-3), [], []
    for _ in range(200):
        sim.step()
        energies.append(measure.energy(sim)["total"])
        parted.append(sim.report().solver["stabilisation"])
    # Nothing is gained but what parting overlaps lifts.
    assert np.diff(np.array(energies) - parted).max() < 1e-3 * energies[0]
    assert np.abs(sim.bodies.velocity[1:101]).max() < 2e-2


def test_bodies_that_joints_hold_are_parted_by_velocities_and_keep_their_joints():
    stuff = clast.Material(density=2500, friction=0.5, restitution=0.0)
    scene = clast.Scene()
    scene.add(clast.Plane(), material=stuff)
    links = scene.add(clast.Sphere(RADIUS), position=[(0.12 * k, 0, 0.9 * RADIUS) for k in range(4)], material=stuff)
    for k in range(3):
        scene.join(links[k], links[k + 1], "ball", at=(0.12 * k + 0.06, 0, 0.9 * RADIUS))
    loose = scene.add(clast.Sphere(RADIUS), position=(0, 1.0, 0.9 * RADIUS), material=stuff)[0]
    sim = clast.Simulation(scene, clast.Complementarity(), dt=5e-3)
    sim.step(1)
    assert sim.bodies.velocity[links[0], 2] > 1e-3  # lifted by its speed
    assert abs(sim.bodies.velocity[loose, 2]) < 1e-6 and sim.bodies.position[loose, 2] > 0.905 * RADIUS
    sim.step(200)
    assert sim.report().deepest < 5e-3 * RADIUS and sim.report().solver["open"] < 1e-9


@pytest.mark.parametrize("solver", solvers.SOLVERS)
def test_an_askew_tower_of_boxes_stands_whatever_solves_it(solver):
    """Where a solver stopped as soon as contacts missed little the tower crept; Gauss-Seidel took steps that were too long for what presses beside the centre of a cube."""
    rng, stuff, scene = np.random.default_rng(0), clast.Material(friction=0.5, restitution=0.0), clast.Scene()
    scene.add(clast.Plane(), material=stuff)
    for k in range(10):
        turn, place = 0.05 * rng.normal(), (*(0.01 * rng.normal(size=2)), 0.25 + 0.5 * k)
        pose = (np.cos(turn), 0, 0, np.sin(turn))
        scene.add(clast.Polyhedron.box(0.5, 0.5, 0.5), position=place, orientation=pose, material=stuff)
    sim = clast.Simulation(scene, clast.Complementarity(solver=solver), dt=5e-3)
    start = sim.bodies.position.copy()
    sim.step(400)
    assert np.abs(sim.bodies.position - start).max() < 1e-3 * 0.5
    assert sim.report().solver["missed"] == 0


@pytest.mark.parametrize("count", [0, 1, 255, 5000])
def test_the_ends_of_contact_points_are_those_that_numpy_finds(count):
    """Whether contacts are spread far apart decides if there is a coarse space; a point that is no number must not be passed over."""
    point = np.random.default_rng(count).normal(size=(count, 3))
    ends = np.concatenate([point.max(0, initial=-np.inf), (-point).max(0, initial=-np.inf)])
    np.testing.assert_array_equal(long_waves.largest_of(point), ends)
    if count:
        point[count // 2, 1] = np.nan
        assert np.isnan(long_waves.largest_of(point)).any()

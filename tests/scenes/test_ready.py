"""Every ready scene by DEM runs and keeps its invariants; those by hard contacts have a file of their own."""

import numpy as np
import pytest

from clast import DEM, measure, shapes
from clast.cli import NAMES
from clast.scenes import SCENES
from clast.scenes.all_shapes import kinds
from clast.tables import ELLIPSOID, FREE, MESH, POLYHEDRON

COUNT = {"drum": 150, "hopper": 120, "pile": 120, "box": 120, "ellipsoid-box": 120, "ellipsoid-hopper": 120}
COUNT |= {
    "cube-drum": 61,
    "gravity-packing": 60,
    "rock-drum": 60,
    "granulate": 30,
    "two-particles": 2,
    "all-shapes": 70,
}
TIME = {"granulate": 0.3, "hopper": 0.3}  # [s]; elsewhere bodies meet within half of it


def test_command_line_knows_all():
    assert set(NAMES) == set(SCENES)
    assert set(COUNT) == {name for name in SCENES if isinstance(SCENES[name](count=30).method, DEM)}


def test_the_scene_of_all_shapes_has_every_particle_there_is():
    every = {one for one in vars(shapes).values() if isinstance(one, type) and not getattr(one, "wall", True)}
    assert {type(one) for one in kinds()} == every


def outside(name, scene, bodies):
    """How far centres are beyond the walls, as a share of their radius; below -1 where the surface is inside.

    Of an ellipsoid the radius is its smallest half-axis, of a polyhedron or mesh the ball inside.
    """
    free = bodies.motion == FREE
    x, parts, first = bodies.position[free], scene.parts, scene.molds.first[bodies.mold[free]]
    radius = np.where(parts.kind[first] == ELLIPSOID, parts.size[first].min(axis=1), parts.reach[first])
    hull = parts.kind[first] == POLYHEDRON
    radius[hull] = scene.hulls.inner[parts.feature[first[hull]]]
    mesh = parts.kind[first] == MESH
    inner = scene.surfaces.inner[parts.feature[first[mesh]]]
    radius[mesh] = np.where(inner > 0.0, inner, 0.25 * radius[mesh])  # a ring: its middle is outside, its tube is thin
    radius = radius * bodies.scale[free]
    if name.endswith("drum") or name == "all-shapes":
        size = parts.size[scene.molds.first[bodies.mold[0]]]
        beyond = np.maximum(np.hypot(x[:, 0], x[:, 2]) - size[0], np.abs(x[:, 1]) - size[1])
    elif name.endswith("box") or name == "gravity-packing":
        half = abs(bodies.position[1, 0])
        beyond = np.maximum(np.abs(x[:, :2]).max(1) - half, -x[:, 2])
    elif name == "granulate":
        beyond = np.abs(x - 0.5).max(1) - 0.5
    elif name == "pile":
        beyond = -x[:, 2]
    else:
        top = np.abs(scene.meshes.vertex[:, 0]).max()
        beyond = np.where(x[:, 2] > 0.2, np.abs(x[:, :2]).max(1) - top, -np.inf)
    return beyond / radius


# It compiles the kernels of every pair there is.
LATER = {"all-shapes": pytest.mark.slow}
# Two particles have a test of their own: they meet long after the others have ended.
EACH = [pytest.param(name, marks=LATER.get(name, ())) for name in sorted(COUNT) if name != "two-particles"]


@pytest.fixture(scope="module", params=EACH)
def ran(request):
    ready = SCENES[request.param](count=COUNT[request.param])
    sim = ready.simulation()
    energies, seen = [], 0
    for _ in sim.frames(until=TIME.get(request.param, 0.15), every=0.01):
        bodies = sim.bodies
        for column in bodies:
            assert not np.isnan(column).any()
        free = bodies.motion == FREE
        poured = sum(sim.poured) if sim.scene.inlets else COUNT[request.param]
        assert poured == free.sum() + sim.removed
        if free.any():
            assert outside(request.param, sim.scene, bodies).max() < -0.5
        seen += len(sim.contacts().gap)
        energies.append(measure.energy(sim))
    return request.param, sim, energies, seen


def test_something_happens(ran):
    name, sim, energies, seen = ran
    assert seen > 3
    assert energies[-1]["kinetic"] > 0.0


def test_what_is_due_is_there_or_waits(ran):
    _, sim, _, _ = ran
    for inlet, poured in zip(sim.scene.inlets, sim.poured):
        waiting = inlet.total(sim.time) - poured
        assert 0 <= waiting <= inlet.rate * 2e-3 + 1


@pytest.mark.parametrize(
    "ran",
    ["box", "ellipsoid-box", "gravity-packing", "cube-drum"],
    indirect=True,
)
def test_energy_does_not_grow_where_nothing_drives(ran):
    _, _, energies, _ = ran
    total = np.array([e["total"] for e in energies])
    assert (np.diff(total) < 1e-6 * np.abs(total).max()).all()
    assert total[-1] < 0.9 * total[0]


@pytest.mark.parametrize("ran", ["hopper", "ellipsoid-hopper"], indirect=True)
def test_all_bodies_that_were_poured_are_counted(ran):
    _, sim, _, _ = ran
    while not sim.removed and sim.time < 1.0:
        sim.step(500)
    free = sim.bodies.motion == FREE
    assert sim.removed > 0
    assert sim.poured == [sim.removed + int(free.sum())]


@pytest.mark.parametrize("name", sorted(SCENES))
def test_same_seed_same_scene(name):
    a, b, c = (SCENES[name](count=30, seed=seed).scene for seed in (5, 5, 6))
    x, y, z = (np.column_stack([scene.bodies.position, scene.bodies.scale]) for scene in (a, b, c))
    assert np.array_equal(x, y)
    if len(x) > 20 or not a.inlets:
        assert not np.array_equal(x, z)
    else:
        assert a.inlets != c.inlets


@pytest.mark.parametrize("ran", ["granulate"], indirect=True)
def test_lumps_lose_no_energy_in_elastic_collisions(ran):
    _, _, energies, _ = ran
    total = np.array([e["total"] for e in energies])
    assert np.abs(total / total[0] - 1.0).max() < 0.01


def test_two_particles_bump_when_they_should_and_part():
    sim = SCENES["two-particles"]().simulation()
    assert [len(shape.triangles) for shape in sim.scene.originals] == [58, 68]
    before = measure.energy(sim)["total"]
    momenta = measure.momentum(sim)
    sim.step(9540)
    assert len(sim.contacts().gap) == 0
    sim.step(1)
    assert len(sim.contacts().gap) == 1
    sim.step(40)
    assert len(sim.contacts().gap) == 0
    assert measure.energy(sim)["total"] == pytest.approx(before, rel=2e-3)
    for now, then in zip(measure.momentum(sim), momenta, strict=True):
        np.testing.assert_allclose(now, then, atol=1e-12)
    large, small = sim.bodies.velocity
    assert small[0] > 0.2 and large[0] < 0.04, "the small one turns back, the large one is slower"

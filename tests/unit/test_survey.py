"""What is known of all bodies of a scene that no process has whole."""

from types import SimpleNamespace

import numpy as np
import pytest

from clast import DEM, Clump, Material, Plane, Polyhedron, Scene, Sphere, func
from clast.mpi.survey import SAMPLE, Survey, median
from clast.scene import lots

STEEL = Material(density=7800.0, stiffness=1e5)
SAND = Material(density=2600.0, stiffness=1e5)


def crowd():
    scene, rng = Scene(), np.random.default_rng(2)
    scene.add(Plane(), material=STEEL)
    for shape in (Sphere(0.01), Clump([(0, 0, 0), (0.01, 0, 0)], [0.01, 0.008]), Polyhedron.box(0.02, 0.02, 0.03)):
        for material in (STEEL, SAND):
            place = rng.uniform(0.0, 1.0, (40, 3))
            scene.add(shape, position=place, scale=rng.uniform(0.5, 2.0, 40), material=material)
    return scene


@func
def own(touch, mix, dt):
    return mix.young * touch.radius * touch.overlap, (0.0, 0.0, 0.0), touch.slip


@pytest.mark.parametrize("law", ["hertz", "linear", own])
@pytest.mark.parametrize("weighed", [False, True])
def test_a_few_bodies_tell_the_time_step_of_all(monkeypatch, law, weighed):
    monkeypatch.setattr(lots, "BLOCK", 30)
    scene = crowd()
    if weighed:
        scene.bodies.mass[57] *= 1e-3  # by hand: no longer what its size tells
    whole = DEM(law=law).critical_step(scene), DEM(law=law).reach(scene, DEM(law=law).mixes(scene))
    survey = Survey(scene)
    assert len(survey.outline.number) < 35 and survey.count == 241 and survey.free == 240
    survey.stand_in()
    assert whole == (DEM(law=law).critical_step(scene), DEM(law=law).reach(scene, DEM(law=law).mixes(scene)))
    assert not weighed or law == "hertz" or whole[0][1] == 57


def test_a_change_of_the_last_bit_of_a_body_changes_the_checksum(monkeypatch):
    monkeypatch.setattr(lots, "BLOCK", 30)
    one, two = crowd(), crowd()
    assert len(two.bodies.number) == 241  # which puts all into one table
    assert Survey(one).checksum == Survey(two).checksum
    two.bodies.velocity[200, 1] = 5e-324
    assert Survey(one).checksum != Survey(two).checksum


def test_the_sample_by_which_space_is_cut_is_spread_over_all_bodies(monkeypatch):
    monkeypatch.setattr(lots, "BLOCK", 1000)
    scene = Scene()
    scene.add(Sphere(0.001), position=np.linspace((0, 0, 0), (1, 0, 0), 2 * SAMPLE + 1))
    sample = Survey(scene).sample
    assert len(sample) == SAMPLE + 1 and np.allclose(np.diff(sample[:, 0]), 1.0 / SAMPLE)


@pytest.mark.parametrize("count", [0, 1, 2, 7, 100])
def test_the_median_of_the_numbers_of_many_is_that_of_one(count):
    alone = SimpleNamespace(sum=lambda array: array)
    values = np.random.default_rng(count).lognormal(0.0, 5.0, count)
    values[count // 2 :] = values[: len(values[count // 2 :])][::-1]  # some are equal
    assert median(alone, values) == (float(np.median(values)) if count else None)

"""Materials and how two of them act together."""

import inspect
import math

import numpy as np
import pytest

import clast
from clast.dem import bonds, composed
from clast.dem.method import DERIVED
from clast.scene.materials import LIMITS, NUMBERS, RULES, Material, combine


def test_equal_materials_keep_their_values_and_the_moduli_follow_johnson():
    steel = Material(young=2e11, poisson=0.3, friction=0.4, restitution=0.7, rolling_friction=0.02, stiffness=1e5)
    mix = combine([steel])
    assert mix.young[0, 0] == pytest.approx(2e11 / (2 * (1 - 0.09)))
    assert mix.shear[0, 0] == pytest.approx(2e11 / 2.6 / (2 * 1.7))
    assert mix.friction[0, 0] == pytest.approx(0.4)
    assert mix.restitution[0, 0] == pytest.approx(0.7)
    assert mix.rolling_friction[0, 0] == pytest.approx(0.02)
    assert mix.stiffness[0, 0] == pytest.approx(1e5)


def test_mix_is_symmetric_and_follows_the_written_rules():
    a = Material(young=1e7, poisson=0.2, friction=0.9, restitution=0.25, stiffness=1e3)
    b = Material(young=5e8, poisson=0.4, friction=0.4, restitution=1.0, stiffness=3e3)
    mix = combine([a, b])
    for column in mix:
        assert np.array_equal(column, column.T, equal_nan=True)
    assert mix.friction[0, 1] == pytest.approx(0.6)
    assert mix.restitution[0, 1] == pytest.approx(0.5)
    assert mix.stiffness[0, 1] == pytest.approx(1.5e3)
    assert mix.young[0, 1] == pytest.approx(1 / (0.96 / 1e7 + 0.84 / 5e8))
    assert mix.shear[0, 1] == pytest.approx(1 / (1.8 / a.shear + 1.6 / b.shear))


def test_stiffness_is_nan_only_where_nobody_gives_one():
    mix = combine([Material(), Material(stiffness=7.0)])
    assert math.isnan(mix.stiffness[0, 0])
    assert mix.stiffness[0, 1] == mix.stiffness[1, 0] == mix.stiffness[1, 1] == 7.0


@pytest.mark.parametrize("name", ["blaze_stiffness", "blaze_damping", "blaze_shear"])
def test_numbers_of_the_law_blaze_combine_as_springs_in_series(name):
    mix = getattr(combine([Material(), Material(**{name: 2.0}), Material(**{name: 6.0})]), name)
    assert math.isnan(mix[0, 0])
    assert mix[0, 1] == mix[1, 0] == mix[1, 1] == 2.0
    assert mix[1, 2] == mix[2, 1] == 3.0
    own = getattr(combine([Material(), Material(**{name: 2.0})], {(0, 0): {name: 5.0}}), name)
    assert own.tolist() == [[5.0, 2.0], [2.0, 2.0]]


def test_no_damping_with_no_damping_is_no_damping():
    mix = combine([Material(blaze_damping=0.0), Material(blaze_damping=3.0)])
    assert mix.blaze_damping.tolist() == [[0.0, 0.0], [0.0, 3.0]]


def test_pair_values_win_on_both_sides_of_the_diagonal():
    mix = combine([Material(), Material(young=1e9)], {(0, 1): {"friction": 0.11, "young": 3.0, "stiffness": 4.0}})
    assert mix.friction[0, 1] == mix.friction[1, 0] == 0.11
    assert mix.young[0, 1] == mix.young[1, 0] == 3.0
    assert mix.stiffness[1, 0] == 4.0
    assert mix.friction[0, 0] == pytest.approx(0.5)
    with pytest.raises(ValueError, match=r"frictoin.*did you mean 'friction'"):
        combine([Material()], {(0, 0): {"frictoin": 1.0}})


def test_no_materials_give_empty_tables():
    assert all(column.shape == (0, 0) for column in combine([]))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("density", 0.0),
        ("young", -1e7),
        ("poisson", 0.51),
        ("poisson", -1.0),
        ("friction", -0.1),
        ("restitution", 1.2),
        ("rolling_friction", math.nan),
        ("stiffness", 0.0),
        ("density", math.inf),
        ("blaze_stiffness", 0.0),
        ("blaze_damping", -1.0),
        ("blaze_shear", math.inf),
    ],
)
def test_numbers_outside_their_limits_are_refused_with_name_and_value(name, value):
    with pytest.raises(ValueError, match=rf"Material clay: {name} .*{value}"):
        Material(name="clay", **{name: value})


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("well_width", 0.0, "above 0 m"),
        ("bond_young", 0.0, "above 0 Pa"),
        ("k_n", -1.0, "above 0 N/m"),
        ("bond_size", 0.0, "above 0"),
        ("adhesion", -0.1, "0 J/m^2 or more"),
        ("contact_angle", 1.6, "from 0 to pi/2"),
    ],
)
def test_numbers_of_laws_outside_their_limits_are_refused(name, value, words):
    with pytest.raises(ValueError) as caught:
        Material(name="clay", numbers={name: value})
    assert str(caught.value) == f"Material clay: numbers[{name!r}] must be {words}, got {value!r}"
    with pytest.raises(ValueError, match=r"Scene.combine: numbers\["):
        clast.Scene().combine(Material(), Material(), numbers={name: value})


def test_all_numbers_that_parts_of_laws_need_have_limits_and_rules_are_for_such():
    tables = (composed.SPRINGS, composed.DASHPOTS, composed.SHEARS, composed.COHESIONS)
    tables += (composed.ROLLINGS, composed.TWISTINGS)
    needed = {name for table in tables for part in table.values() for name in part.needs} | {*bonds.NEEDS}
    assert needed - {*LIMITS, *DERIVED} == set(NUMBERS) >= set(RULES)


def test_a_number_that_is_misspelt_is_asked_for_by_its_name():
    scene = clast.Scene()
    scene.add(clast.Sphere(1.0), material=Material(name="glue", numbers={"adhesoin": 1.0, "k_n": 1.0}))
    with pytest.raises(ValueError) as caught:
        clast.DEM(cohesion="dmt").mixes(scene)
    assert "needs adhesion for materials glue and glue; they have 'adhesoin', did you mean 'adhesion'?" in str(
        caught.value
    )


def test_wrong_types_are_refused_and_numpy_numbers_are_taken():
    with pytest.raises(TypeError, match=r"young must be a number.*'soft'"):
        Material(young="soft")
    with pytest.raises(TypeError, match="name must be text"):
        Material(name=3)
    with pytest.raises(TypeError):
        Material(yuong=1e7)
    assert type(Material(young=np.float32(2.0)).young) is float
    assert Material() == Material() and hash(Material()) == hash(Material())


@pytest.mark.parametrize("name", ["spinning_friction", "cohesion", "compliance"])
def test_what_only_hard_contacts_know_is_refused_by_smooth_ones(name):
    scene = clast.Scene()
    scene.add(clast.Sphere(1.0), material=clast.Material(**{name: 1.0}))
    with pytest.raises(ValueError, match=f"{name} is a property of hard contacts") as caught:
        clast.Simulation(scene, clast.DEM())
    assert ("clast.DEM(twisting='spring')" in str(caught.value)) == (name == "spinning_friction"), "one part takes it"


def test_a_number_of_a_law_is_sent_to_numbers():
    for name in ("k_n", "adhesion"):
        words = f"{name} is a number of a law; numbers of laws are given as numbers={{{name!r}: 3.0}}"
        with pytest.raises(TypeError) as caught:
            Material(**{name: 3.0})
        assert str(caught.value) == f"Material: {words}"
        with pytest.raises(TypeError) as caught:
            clast.Scene().combine(Material(), Material(), **{name: 3.0})
        assert str(caught.value) == f"Scene.combine: {words}"
    with pytest.raises(TypeError, match=r"Material: fricton is no property; numbers of.*; did you mean 'friction'\?"):
        Material(fricton=0.5)
    assert "friction" in inspect.signature(Material).parameters


def test_common_materials_have_their_names_and_sources():
    known = {name: value for name, value in vars(clast.materials).items() if isinstance(value, Material)}
    assert {"sand", "rubber", "corn", "coal"} < set(known) == set(clast.materials.SOURCES)
    for name, material in known.items():
        assert material.name == name

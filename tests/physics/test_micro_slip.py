"""Shear laws of one contact against closed forms: micro-slip of Mindlin and Deresiewicz, the secant and the incremental spring."""

import math
import threading

import numpy as np
import pytest
from one_contact import RADIUS, One

from clast.kernels import backend

DEPTH = 1e-5  # [m]
AREA = math.sqrt(RADIUS * DEPTH)
K = 8.0 * 4e6 * AREA  # [N/m], in shear
LIMIT = 0.5 * 4.0 / 3.0 * 1e7 * AREA * DEPTH  # [N], mu N
REACH = 1.5 * LIMIT / K  # [m], displacement at which the contact slides


@pytest.fixture(autouse=True)
def plain_functions(monkeypatch):
    """Functions of one contact run as plain Python, so that nothing is compiled for them."""
    monkeypatch.setattr(backend, "PLAIN", [threading.get_ident()])


def micro(overlap=DEPTH):
    """A contact with micro-slip that was pressed to this overlap [m]."""
    one = One({}, law="hertz", shear="mindlin-deresiewicz", shear_damping=False)
    one.at(overlap, dt=1.0)
    return one


def move(one, way, steps, overlap=DEPTH, direction=(1.0, 0.0)):
    """Force against a displacement by `way` [m] in steps; way below zero goes back."""
    slide = (way / steps * direction[0], way / steps * direction[1], 0.0)
    for _ in range(steps):
        _, shear = one.at(overlap, slide=slide, dt=1.0)
    return -(shear[0] * direction[0] + shear[1] * direction[1])


def backbone(x):
    """Force of the first loading by a displacement x (Mindlin 1949; Johnson 1985, eq. 7.43)."""
    return LIMIT * (1.0 - max(1.0 - x / REACH, 0.0) ** 1.5)


@pytest.mark.parametrize("steps", [1, 7, 200])
def test_first_loading_is_mindlins_curve_in_steps_of_any_length(steps):
    for part in (0.1, 0.5, 0.9, 1.0, 3.0):
        assert move(micro(), part * REACH, steps) == pytest.approx(backbone(part * REACH), rel=1e-12)


def test_a_cycle_follows_the_curves_of_unloading_and_reloading():
    """Mindlin and Deresiewicz (1953), constant load: T* - T = 2 f(x / 2) for a way x back, and the same from the other turn."""
    one, top = micro(), 0.7 * REACH
    first = move(one, top, 5)
    for k in range(1, 21):
        assert move(one, -0.1 * top, 3) == pytest.approx(first - 2.0 * backbone(0.05 * k * top), abs=1e-12 * LIMIT)
    assert move(one, 0.0, 1) == pytest.approx(-first, abs=1e-12 * LIMIT), "the loop goes as far to the other side"
    for k in range(1, 21):
        assert move(one, 0.1 * top, 3) == pytest.approx(-first + 2.0 * backbone(0.05 * k * top), abs=1e-12 * LIMIT)
    assert move(one, 0.2 * REACH, 3) == pytest.approx(backbone(0.9 * REACH), rel=1e-11), (
        "beyond it loads for the first time"
    )


def test_a_small_loop_inside_closes_and_the_contact_goes_on_as_if_it_had_not_been():
    one, top = micro(), 0.8 * REACH
    first = move(one, top, 5)
    low = move(one, -0.4 * top, 4)
    assert low == pytest.approx(first - 2.0 * backbone(0.2 * top), rel=1e-12)
    for k in range(1, 4):
        assert move(one, 0.1 * top, 2) == pytest.approx(low + 2.0 * backbone(0.05 * k * top), rel=1e-12)
    assert move(one, 0.1 * top, 2) == pytest.approx(first, rel=1e-12), "closed"
    assert move(one, 0.1 * REACH, 2) == pytest.approx(backbone(0.9 * REACH), rel=1e-11)
    one = micro()
    move(one, top, 5)
    move(one, -0.4 * top, 4)
    assert move(one, 0.4 * top + 0.1 * REACH, 1) == pytest.approx(backbone(0.9 * REACH), rel=1e-11), "within a step"


def test_a_cycle_costs_what_mindlin_and_deresiewicz_say():
    """Work of a cycle between -T* and T*: eight times the area between the curve of the first loading and its chord."""
    one, top, steps = micro(), 0.6 * REACH, 4000
    before, work = move(one, top, 1), 0.0
    for way in (-2.0 * top, 2.0 * top):
        for _ in range(steps):
            after = move(one, way / steps, 1)
            work, before = work + 0.5 * (before + after) * way / steps, after
    x, force = top / REACH, backbone(top)
    below = LIMIT * REACH * (x - 0.4 * (1.0 - (1.0 - x) ** 2.5))
    assert work == pytest.approx(8.0 * (below - 0.5 * force * top), rel=1e-5)


def test_under_a_load_that_grows_faster_than_friction_needs_the_contact_sticks():
    """With dT < mu dN nothing slips; then, at constant load, room for mu N - T is used up by Mindlin's curve (Jaeger 1993)."""
    one, stuck = micro(0.0), 0.0
    before = 0.0
    for part in np.linspace(0.0, 1.0, 101)[1:]:
        rise, before = LIMIT * part**1.5 - before, LIMIT * part**1.5
        k = K * math.sqrt(part)
        stuck += 0.3 * rise
        assert move(one, 0.3 * rise / k, 1, part * DEPTH) == pytest.approx(stuck, rel=1e-10)
    assert stuck == pytest.approx(0.3 * LIMIT, rel=1e-12)
    room = LIMIT - stuck
    for k in range(1, 11):
        force = stuck + room * (1.0 - (1.0 - 0.1 * k) ** 1.5)
        assert move(one, 0.15 * room / K, 2) == pytest.approx(force, rel=1e-10)


def test_what_slides_is_friction_and_follows_the_direction():
    one = micro()
    assert move(one, 5.0 * REACH, 10) == pytest.approx(LIMIT, rel=1e-12)
    assert move(one, 50.0 * REACH, 100, direction=(0.6, 0.8)) == pytest.approx(LIMIT, rel=1e-6), "turned along"
    overlap = 0.25 * DEPTH
    assert move(one, REACH, 10, overlap, (0.6, 0.8)) == pytest.approx(0.125 * LIMIT, rel=1e-9), "with less of a load"
    assert one.at(-1e-9)[1] == (0.0, 0.0, 0.0)


def test_asked_for_its_force_at_rest_it_learns_nothing():
    """As a ledger asks it: with a part of the slip, another load and no step."""
    one = micro()
    force = move(one, 0.6 * REACH, 4)
    move(one, -0.2 * REACH, 3)
    slip, kept = one.slip, one.kept
    _, shear = one.at(DEPTH, rate=-0.1)
    assert -shear[0] == pytest.approx(K * slip[0], rel=1e-12) and one.kept == kept
    one.slip = tuple(1e-9 * x for x in slip)
    assert -one.at(DEPTH)[1][0] == pytest.approx(1e-9 * K * slip[0], rel=1e-12, abs=0.0)
    one.slip, one.kept = slip, kept
    assert move(one, 0.2 * REACH, 2) == pytest.approx(force, rel=1e-11), "and goes on as if it had not been asked"


def test_no_direction_is_special():
    ways, forces = (0.7, -0.5, 0.3, -1.1, 0.9), []
    for direction in ((1.0, 0.0), (-0.6, 0.8)):
        one = micro()
        forces.append([move(one, way * REACH, 3, DEPTH * (1.0 + 0.3 * way), direction) for way in ways])
    assert forces[0] == pytest.approx(forces[1], rel=1e-11)


@pytest.mark.parametrize("shear", ["mindlin-deresiewicz", "secant", "incremental"])
def test_shear_turns_with_the_pair_and_neither_grows_nor_shrinks(shear):
    one = One({}, law="hertz", shear=shear, shear_damping=False)
    first = move(one, 0.5 * REACH, 5), move(one, -0.1 * REACH, 2)
    for k in range(1, 1001):
        angle = 0.5 * math.pi * k / 1000
        _, force = one.at(DEPTH, normal=(math.sin(angle), 0.0, math.cos(angle)), dt=1.0)
    assert force[2] == pytest.approx(first[1], rel=1e-10), "by a right angle"
    assert np.hypot(force[0], force[1]) < 1e-10 * LIMIT
    # And goes on as one that was not turned.
    still = One({}, law="hertz", shear=shear, shear_damping=False)
    move(still, 0.5 * REACH, 5)
    move(still, -0.1 * REACH, 2)
    _, force = one.at(DEPTH, slide=(0.0, 0.0, 0.3 * REACH), normal=(1.0, 0.0, 0.0), dt=1.0)
    assert -force[2] == pytest.approx(-move(still, -0.3 * REACH, 1), rel=1e-10)


def springs(way):
    """The same by another road: force of the method of dimensionality reduction (Popov and Hess 2015) along ways [m], with what overlap [m].

    A row of springs under the contact, each with a tangential force up to mu times its normal one; exact for Hertz contacts.
    """
    many = 4000
    x = (np.arange(many) + 0.5) * (1.2 * AREA / many)
    wide, slip, told = 1.2 * AREA / many, np.zeros(many), []
    for moved, overlap in way:
        pressed = np.maximum(overlap - x * x / RADIUS, 0.0)
        push = 0.5 * 2.0 * 1e7 * wide * pressed
        slip = np.clip(slip + moved, -push / (8.0 * 4e6 * wide), push / (8.0 * 4e6 * wide))
        told.append(8.0 * 4e6 * wide * slip.sum())
    return np.array(told)


def test_springs_in_a_row_say_the_same():
    """At constant load to what the row resolves: first loading, back to the other side, and again."""
    way = np.concatenate([np.full(20, 0.04), np.full(30, -0.04), np.full(27, 0.04)]) * REACH
    one = micro()
    ours = np.array([move(one, step, 1) for step in way])
    assert np.abs(ours - springs([(step, DEPTH) for step in way])).max() < 1e-3 * LIMIT


def test_the_incremental_spring_keeps_its_force_whatever_the_load():
    one = One({"friction": 1e9}, law="hertz", shear="incremental", shear_damping=False)
    force = move(one, 1e-7, 1)
    assert force == pytest.approx(K * 1e-7, rel=1e-12)
    for overlap in (4.0 * DEPTH, 0.25 * DEPTH, DEPTH):
        assert move(one, 0.0, 1, overlap) == pytest.approx(force, rel=1e-12)
    assert move(one, 1e-7, 1, 4.0 * DEPTH) == pytest.approx(force + 2.0 * K * 1e-7, rel=1e-12)
    assert one.named("grip") == pytest.approx(2.0 * K, rel=1e-12)


def test_the_secant_spring_slides_by_its_own_force_and_is_damped_while_it_sticks():
    one = One({"damping": 0.7}, law="hertz", damping="tsuji", shear="secant", in_step=False)
    c = 2.0 * math.sqrt(0.4) * 0.7 * math.sqrt(0.004 * 4.0 / 3.0 * 1e7 * AREA)
    _, shear = one.at(DEPTH, rate=-1e3, slide=(1e-3, 0.0, 0.0), dt=1e-6)
    assert shear[0] == pytest.approx(-(K * 1e-9 + c * 1e-3), rel=1e-12), "though the normal dashpot pulls"
    _, shear = one.at(DEPTH, rate=-1e3, slide=(1e-3, 0.0, 0.0), dt=1.0)
    assert shear[0] == pytest.approx(-LIMIT, rel=1e-12), "it slides: no dashpot"
    _, shear = one.at(4.0 * DEPTH)
    assert shear[0] == pytest.approx(-2.0 * LIMIT, rel=1e-12), "present stiffness times slip"


def test_thorntons_spring_is_drawn_to_the_limit_where_its_dashpot_goes_beyond():
    one = One({"damping": 0.7, "friction": 0.5}, law="hertz", shear="thornton", in_step=False)
    c = 2.0 * math.sqrt(0.4) * 0.7 * math.sqrt(0.004 * 4.0 / 3.0 * 1e7 * AREA)
    one.at(DEPTH, dt=1e-6)
    normal, shear = one.at(DEPTH, slide=(1e-3, 0.0, 0.0), dt=1e-6)
    assert shear[0] == pytest.approx(-(K * 1e-9 + c * 1e-3), rel=1e-12), "sticks, with its dashpot"
    normal, shear = one.at(DEPTH, slide=(10.0, 0.0, 0.0), dt=1e-12)
    assert shear[0] == pytest.approx(-0.5 * normal, rel=1e-12), "slides, by its dashpot"
    assert K * one.slip[0] == pytest.approx(0.5 * normal, rel=1e-12), "and the spring has all of it"
    less, shear = one.at(0.25 * DEPTH, dt=1e-6)
    assert shear[0] == pytest.approx(-0.5 * less, rel=1e-12), "friction falls by more than the spring"
    _, again = one.at(DEPTH, dt=1e-6)
    assert again[0] == pytest.approx(shear[0], rel=1e-12), "the force stays when the area grows"

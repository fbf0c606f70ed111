"""Hard contacts on many processes: the bits of one at every step, whoever has which bodies, and after a restart with another number of processes."""

import math

import numpy as np
import pytest
from test_ranks import check, pytestmark, states  # noqa: F401, the mark says when there is no MPI

from clast.dvi.others import ALONE, order_free
from clast.kernels import sums


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    return states(tmp_path_factory, "pile", "pouring", "repeating", program="hard_ranks_program.py")


@pytest.mark.parametrize(
    ("scene", "size"),
    [("pile", 2), ("pile", 3), ("pile", 4), ("pouring", 3), ("repeating", 3)],
)
def test_impulses_have_the_bits_of_one_process_at_every_step(found, scene, size):
    check(found[scene], size)


@pytest.mark.parametrize(
    ("scene", "way"),
    [("pile", "2 to 3"), ("pile", "3 to 1"), ("pouring", "3 to 2"), ("pouring", "3 to 1"), ("repeating", "3 to 2")],
)
def test_what_some_processes_saved_goes_on_with_others_and_with_one(found, scene, way):
    late = found[scene][way]
    assert late == found[scene]["1"][-len(late) :]


@pytest.mark.parametrize("scene", ["pile", "pouring", "repeating"])
def test_checkpoint_and_frame_of_many_that_were_written_in_pieces_are_those_of_one(found, scene):
    alone, *shared = found[scene]["saved"]
    assert alone.pop("order")  # in the memory of one process; of many there is none
    assert all(tables == alone for tables in shared)


def test_bodies_came_and_went_and_touched_and_were_moved_apart(found):
    bodies, contacts, touching, removed, poured = found["pouring"]["1"][-1][1]
    assert poured > 5 and removed > 5 and touching > 100
    assert found["pouring"]["1"][-1][-1]["stabilisation"] > 0.0
    assert found["repeating"]["1"][-1][2][0] > 0.0  # compliant contacts hold energy


@pytest.mark.slow  # compiles the kernels of all shapes
def test_every_shape_has_the_bits_of_one_process(tmp_path_factory):
    told = states(tmp_path_factory, "heap", "shapes", program="hard_ranks_program.py")
    for scene, sizes in (("heap", (2, 3)), ("shapes", (2, 3, 4))):
        for size in sizes:
            check(told[scene], size)
        for way in ("2 to 3", "3 to 1"):
            assert told[scene][way] == told[scene]["1"][-len(told[scene][way]) :]


def test_sums_have_the_same_bits_in_any_order_and_in_any_parts():
    rng = np.random.default_rng(3)
    terms = rng.normal(0.0, 1.0, 20_000) * 10.0 ** rng.uniform(-18, 3, 20_000)
    whole = order_free(ALONE, terms)[0]
    assert whole == pytest.approx(np.sum(terms), rel=1e-9)
    for _ in range(5):
        mixed = rng.permutation(terms)
        assert order_free(ALONE, mixed)[0] == whole
        limit = sums.limit_above(float(np.abs(terms).max()))
        parts = [sums.add_up(np.ascontiguousarray(part), limit) for part in np.split(mixed, [3, 300, 7_000])]
        assert sums.totals(np.sum(parts, axis=0)[None])[0] == whole
    assert len({float(np.sum(rng.permutation(terms))) for _ in range(20)}) > 1  # which is not so by itself


@pytest.mark.parametrize("limit", [0.0, 2.0**-30, 2.0**20])
def test_a_limit_that_was_guessed_wrong_costs_time_and_no_bits(limit):
    rng = np.random.default_rng(4)
    terms = rng.uniform(0.0, 1.0, 3_000) ** 8
    made = {float(sums.totals(sums.add_up(rng.permutation(terms), limit)[None])[0]) for _ in range(5)}
    assert len(made) == 1 and made.pop() == pytest.approx(terms.sum(), rel=1e-6)


@pytest.mark.parametrize("wrong", [np.nan, np.inf, 1e30])
def test_what_is_no_number_or_too_large_shows_in_the_sum(wrong):
    terms = np.ones(1_000)
    terms[500] = wrong
    assert not np.isfinite(order_free(ALONE, terms)[0])


def test_exact_sums_of_parts_make_the_exact_sum_of_all():
    rng = np.random.default_rng(5)
    terms = rng.normal(0.0, 1.0, 3_000) * 10.0 ** rng.uniform(-30, 30, 3_000)
    whole = sums.exact(terms)
    assert whole == math.fsum(terms.tolist())
    for cuts in ([10, 2_000], [0, 0, 1_500]):
        parts = [sums.exact_parts(part) for part in np.split(rng.permutation(terms), cuts)]
        assert max(map(len, parts)) < 12
        assert sums.exact(np.concatenate(parts)) == whole
    assert sums.exact(np.zeros(0)) == 0.0 and sums.exact_parts(np.zeros(3)) == []


@pytest.mark.parametrize(
    ("wrong", "told"), [([np.inf], np.inf), ([1e308, 1e308], np.inf), ([np.nan], np.nan), ([np.inf, -np.inf], np.nan)]
)
def test_an_exact_sum_of_what_is_no_number_is_none(wrong, told):
    terms = np.array([1.0, *wrong, 2.0])
    assert np.array_equal(
        [sums.exact(terms), sums.exact(np.array(sums.exact_parts(terms)))], [told] * 2, equal_nan=True
    )

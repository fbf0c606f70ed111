"""When processes that share a run divide space anew, and what a body weighs then."""

import numpy as np
import pytest

from clast.mpi.balance import POINT, Losses, point_cost, weights


def looks(losses, work, cost, most=1000):
    """Looks until a cut is due."""
    return next((k for k in range(1, most) if losses.add(work, cost)), None)


def test_even_work_is_never_divided_anew():
    assert looks(Losses(), [1.0, 1.05, 0.97, 1.0], cost=1e-9) is None


def test_space_is_cut_when_waiting_has_come_to_be_as_much_as_a_list_costs():
    # The busiest takes 0.5 s more than the mean of 1 s between two looks.
    assert looks(Losses(), [1.5, 0.5], cost=4.9) == 10
    assert looks(Losses(), [1.5, 0.5], cost=0.0) == 1


def test_where_a_cut_does_not_help_the_next_one_comes_after_twice_as_long():
    losses = Losses()
    assert [looks(losses, [1.5, 0.5], cost=2.0) for _ in range(4)] == [4, 8, 16, 32]
    assert not losses.add([1.0, 1.0], cost=2.0) and losses.even
    assert looks(losses, [1.5, 0.5], cost=2.0) == 4


def test_work_of_nobody_is_even():
    assert not Losses().add([0.0, 0.0], cost=0.0)


@pytest.mark.parametrize("cost", [0.3, 1.0, 4.0, 12.0])
def test_the_cost_of_a_contact_point_is_found_from_times_of_processes(cost):
    bodies, points = np.array([1000.0, 1000.0, 500.0]), np.array([6000.0, 10.0, 900.0])
    assert point_cost(3e-5 * (bodies + cost * points), bodies, points) == pytest.approx(cost, rel=0.2)


def test_the_measured_cost_stands_where_processes_do_not_tell_it():
    rng, bodies = np.random.default_rng(1), np.array([1000.0, 900.0, 1100.0, 1000.0])
    alike = 3.0 * bodies * rng.uniform(0.999, 1.001, 4)
    for noise in (1.0, rng.uniform(0.98, 1.02, 4)):
        assert point_cost(1e-5 * bodies * noise, bodies, alike) == pytest.approx(POINT, rel=0.3)


def test_a_body_weighs_by_its_points_and_all_of_a_process_as_long_as_it_took():
    points = np.repeat([6.0, 0.0], 50)  # half of the tile is dense
    bodies, touching = np.array([100.0, 100.0]), np.array([300.0, 0.0])
    weight = weights(points, 1e-3 * (bodies + 1.2 * touching), bodies, touching, rank=0)
    assert weight.sum() == pytest.approx(0.46)
    assert weight[0] / weight[-1] == pytest.approx(1.0 + 6.0 * 1.2, rel=0.1)


def test_processes_without_bodies_have_no_clock_to_go_by():
    weight = weights(np.array([2.0, 0.0]), np.array([1.0, 0.0]), np.array([2.0, 0.0]), np.array([2.0, 0.0]), rank=0)
    assert weight.tolist() == [1.0 + 2.0 * POINT, 1.0]

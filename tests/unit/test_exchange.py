"""Rows of tables that are given to other bodies in the memory that they have."""

import numpy as np
import pytest

from clast import Clump, Scene, Simulation, Sphere
from clast.motion.placing import place_shapes, roomy, widened
from clast.mpi.domain import seats
from clast.tables import some_bodies


@pytest.mark.parametrize(("leaving", "arriving"), [(0, 0), (0, 3), (3, 0), (5, 2), (2, 5), (4, 4), (20, 0), (20, 3)])
def test_who_comes_takes_the_rows_of_who_leaves_and_nobody_is_lost(leaving, arriving):
    for seed in range(20):
        gone = np.sort(np.random.default_rng(seed).choice(20, leaving, replace=False))
        order = seats(20, gone, arriving)
        stayed = np.setdiff1d(np.arange(20), gone)
        assert sorted(order) == [*range(-arriving, 0), *stayed]
        # Rows that need not be written are not: all but those that were left, and what comes behind.
        moved = np.flatnonzero(order != np.arange(len(order)))
        assert len(moved) <= max(leaving, arriving)


def test_an_array_is_widened_in_its_own_memory_and_in_no_other():
    column = roomy((4, 3), np.float64, 2)
    column[:] = np.arange(12.0).reshape(4, 3)
    wide = widened(column, 6)
    assert wide.base is column.base and np.array_equal(wide[:4], column)
    assert widened(widened(column, 2), 6).base is column.base
    assert widened(column, 7) is None
    assert widened(column.base[1:5], 6) is None and widened(np.zeros((4, 3)), 5) is None
    assert widened(np.zeros(12, np.int64)[:4].view(np.float64), 6) is None


def tables(state):
    return [*state.bodies, *state.shapes, state.rows, state.label]


@pytest.mark.parametrize("count", [25, 28, 30, 33])
def test_rows_that_are_exchanged_have_the_bits_of_tables_that_are_made_anew(count):
    sims, rng = [], np.random.default_rng(4)
    for size in (30, 12):
        scene = Scene()
        place, speed = rng.random((size, 3)), rng.random((size, 3))
        scene.add(Sphere(0.02), position=place, velocity=speed, scale=rng.uniform(0.5, 1.0, size))
        sims.append(Simulation(scene))
    state, others = sims[0].state, sims[1].state.bodies
    rows = np.unique(np.append(rng.choice(count, 8, replace=False), np.arange(30, count)))
    came, label = some_bodies(others, np.arange(len(rows))), 100 + np.arange(len(rows))
    room = type(state.bodies)(*(roomy(column.shape, column.dtype, 3) for column in state.bodies))
    for column, values in zip(room, state.bodies, strict=True):
        column[:] = values
    state.place(room, 3)
    wanted = type(room)(*(np.zeros((count, *c.shape[1:]), c.dtype) for c in room))
    labels, kept = np.zeros(count, np.int64), min(count, 30)
    for column, before, after in zip([*wanted, labels], [*state.bodies, state.label], [*came, label], strict=True):
        column[:kept] = before[:kept]
        column[rows] = after
    former = state.shapes.number.copy(), state.shapes.number
    bodies, shapes, table = place_shapes(wanted, labels, state.molds, state.parts)
    assert state.exchange(rows, came, label, count)
    for mine, theirs in zip(tables(state), [*bodies, *shapes, table, labels], strict=True):
        assert mine.dtype == theirs.dtype and np.array_equal(mine, theirs)
    assert np.array_equal(*former)  # the list still asks for these
    assert state.there.rows is state.rows and state.there.bodies.position.base is state.rows.base
    assert not state.exchange(rows, came, label, 34) and len(state.bodies.number) == count


def test_bodies_of_several_parts_are_not_exchanged():
    scene = Scene()
    scene.add(Sphere(0.01), position=(0, 0, 0))
    scene.add(Clump([(0, 0, 0), (0.01, 0, 0)], [0.01, 0.008]), position=(1, 0, 0))
    state = Simulation(scene).state
    assert not state.exchange(np.array([0]), some_bodies(state.bodies, [0]), np.array([7]), 2)
    ball, clump = Scene(), some_bodies(state.bodies, [1])
    ball.add(Sphere(0.01), position=(0, 0, 0))
    ball.add(Sphere(0.01), position=(1, 0, 0))
    lone = Simulation(ball).state
    lone.molds, lone.parts = state.molds, state.parts
    assert not lone.exchange(np.array([1]), clump, np.array([7]), 2)

"""Forces of a patch: the same however many points stand for it, one slip and one angle for all."""

import numpy as np
import pytest

from clast.dem import laws
from clast.dem.polyhedra import SHARE, flat_to_world, order_points, press
from clast.narrow.polyhedron_polyhedron import POINT

MIX = laws.Mix(1e7, 4e6, 0.0, 0.3, 0.5, 0.0, 0.63)
UP = (0.0, 0.0, 1.0)
STILL = (0.0, 0.0, 0.0)
ONE = (1.0, 0.0, 0.0, 0.0)


def patch(points, overlaps):
    """`work` with points (k,2) in the plane z = 0 that overlap by so much [m], in the world and shared."""
    work = np.zeros(200)
    for i, (x, y) in enumerate(points):
        work[POINT * i : POINT * i + 7] = x, y, 0.0, -overlaps[i], *UP
    flat_to_world(work, len(points), ONE, STILL)
    return work, len(points)


def answer(work, count, slip=STILL, twist=0.0, velocity=STILL, spin=STILL, dt=1e-5):
    """(where, normal, force, couple, slip, twist) of the patch with the second body moving at the origin."""
    return press(
        work, count, True, STILL, STILL, STILL, STILL, velocity, spin, slip, twist, 1.0, 0.01, MIX, dt, laws.hertz
    )


SQUARE = [(-1e-3, -1e-3), (1e-3, -1e-3), (1e-3, 1e-3), (-1e-3, 1e-3)]


@pytest.mark.parametrize("count", [1, 2, 3, 4])
def test_the_force_does_not_depend_on_the_number_of_points(count):
    work, count = patch(SQUARE[:count], [1e-5] * count)
    _, _, force, _, _, _ = answer(work, count)
    touch = laws.Touch(1e-5, 0.0, UP, STILL, STILL, 1.0, 0.01)
    assert force == pytest.approx((0.0, 0.0, laws.hertz(touch, MIX, 1e-5)[0]), rel=1e-12)


def test_a_point_that_leaves_takes_no_force_with_it():
    three = answer(*patch(SQUARE[:3], [1e-5, 1.1e-5, 0.9e-5]))
    four = answer(*patch(SQUARE, [1e-5, 1.1e-5, 0.9e-5, 1e-16]))
    assert four[2] == pytest.approx(three[2], rel=1e-9)
    assert np.add(four[3], np.cross(four[0], four[2])) == pytest.approx(
        np.add(three[3], np.cross(three[0], three[2])), rel=1e-8
    )


def test_a_tilted_patch_turns_back():
    """More overlap at x > 0: the couple about the middle of the square lifts that side of the second body."""
    where, _, force, couple, _, _ = answer(*patch(SQUARE, [1e-5, 1.2e-5, 1.2e-5, 1e-5]))
    torque = np.add(couple, np.cross(where, force))
    assert torque[1] < 0.0
    assert torque[[0, 2]] == pytest.approx([0.0, 0.0], abs=1e-12)


def test_sticking_points_slip_as_a_rigid_body():
    work, count = patch(SQUARE, [1e-5] * 4)
    *_, slip, twist = answer(work, count, velocity=(1e-4, 0.0, 0.0), spin=(0.0, 0.0, 0.02))
    assert slip == pytest.approx((1e-9, 0.0, 0.0), rel=1e-9, abs=1e-18)
    assert twist == pytest.approx(0.02 * 1e-5, rel=1e-9)


def test_a_twisted_patch_turns_back():
    work, count = patch(SQUARE, [1e-5] * 4)
    *_, couple, _, twist = answer(work, count, twist=1e-5)
    assert couple[2] < 0.0
    assert 0.0 < twist <= 1e-5


def test_one_point_has_no_angle():
    """Its share may be less than 1, of a wall of many triangles; rounding must not become an angle."""
    for share in (0.2503, 1.0 / 3.0, 1.0):
        work, count = patch([(0.123, 0.457)], [1e-5])
        work[SHARE] = share
        where, *_, twist = answer(work, count, slip=(1e-7, 2e-8, 0.0))
        assert where == (0.123, 0.457, 0.5 * -1e-5)
        assert twist == 0.0


def test_mirror_images_have_the_same_order():
    points, overlaps = [(2e-3, 1e-3), (-1e-3, 3e-3), (1e-3, -1e-3), (0.5e-3, 0.2e-3)], [1e-5, 1e-5, 3e-5, 2e-5]
    for order in ([0, 1, 2, 3], [3, 1, 0, 2], [2, 0, 3, 1]):
        work = np.zeros(100)
        for i, k in enumerate(order):
            work[POINT * i : POINT * i + 4] = *points[k], 0.0, -overlaps[k]
        order_points(work, 4)
        assert work[0:32:POINT].tolist() == [points[k][0] for k in (2, 3, 0, 1)]

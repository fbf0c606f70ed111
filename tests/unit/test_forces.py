"""Forces of a manifold of contact points: the same however many points stand for it, and a slip that is handed on."""

import math
import sys

import numpy as np
import pytest

from clast.dem import forces, history, laws
from clast.narrow.polyhedra import order_points
from clast.narrow.polyhedron_polyhedron import POINT
from clast.tables import Pairs, Shapes, Wrench, empty_points

MATERIAL = (1e7, 4e6, 0.0, 0.3, 0.5, 0.1, 0.63)
UP = (0.0, 0.0, 1.0)
RADIUS = 0.01
SQUARE = [(-1e-3, -1e-3), (1e-3, -1e-3), (1e-3, 1e-3), (-1e-3, 1e-3)]


class Manifold:
    """One pair of bodies at the origin whose contact points are given, the second one moving."""

    def __init__(self, slots=4, rolling=False, eccentric=False):
        self.points, self.history = empty_points(1, slots, rolling)
        self.points.gap[:], self.rolling = np.inf, rolling
        shape, one = np.array([[0, 1]], np.int32), np.zeros(1, np.int32)
        self.pairs = Pairs(
            shape, one, np.array([0, slots]), np.array([0, 1], np.int32), one, one, np.zeros(0), np.zeros(0)
        )
        number = np.arange(2)
        self.shapes = Shapes(
            number, number.astype(np.int32), None, np.zeros(2, np.int8), np.zeros((2, 3)), np.full(2, RADIUS)
        )
        self.rows = np.zeros((2, 12))
        self.rows[:, 7] = 0.5
        self.inverse, self.eccentric = np.zeros((0, 6)), eccentric
        self.wrench = Wrench(np.zeros((1, 3)), np.zeros((1, 2, 3)), np.zeros(1, np.int8))
        wide = history.COLUMNS, history.PAST_COLUMNS
        lists = (np.zeros(slots, np.int64) for _ in range(5))
        self.scratch = *lists, *(np.zeros((slots, width)) for width in wide)

    def put(self, points, overlaps, normals=None):
        """Contact points (k,2) in the plane z = 0 that overlap by so much [m]; the other slots are not in use."""
        self.points.gap[:], self.points.count[0] = np.inf, len(points)
        for i, (x, y) in enumerate(points):
            self.points.arm[i] = x, y, 0.0
            self.points.normal[i] = UP if normals is None else normals[i]
            self.points.gap[i], self.points.radius[i] = -overlaps[i], RADIUS
        return self

    def press(self, velocity=(0.0, 0.0, 0.0), spin=(0.0, 0.0, 0.0), dt=1e-5, shares=True):
        """Force and moment about the origin on the second body; shares: the points stand for one area."""
        self.rows[1, 4:7], self.rows[1, 8:11] = velocity, spin
        tables = self.rows, self.inverse, self.shapes, self.pairs, self.points, self.history, self.wrench
        where = (0, 1, 0, shares, False, False, False, self.eccentric, 0.0)
        forces.force_row(0, where, *tables, self.scratch, np.array([MATERIAL]), (0.0,) * 6, dt)
        return self.wrench.force[0].copy(), self.wrench.moment[0, 0].copy()

    def taken_up(self, shares=True):
        """The slips that the points start from."""
        *lists, near, past = self.scratch
        tables = self.rows, self.inverse, self.shapes, self.pairs, self.points, self.history, self.wrench, near, past
        about = forces.About(False, False, self.rolling, False, False, True)
        where, law = (
            (0, 1, (shares, False, False), 0, tuple(lists), tables),
            forces.acts(laws.LAWS["hertz"], self.rolling),
        )
        count = history.match(*where, np.array([MATERIAL]), (0.0,) * 6, 1e-5, law, about)
        return near[:count, history.SLIP : history.SLIP + 3]


def test_a_point_that_only_touches_does_nothing():
    deep = Manifold().put(SQUARE[:1], [1e-5]).press()
    both = Manifold().put(SQUARE[:2], [1e-5, 0.0]).press()
    assert both[0].tolist() == deep[0].tolist()
    assert both[1].tolist() == deep[1].tolist()


@pytest.mark.parametrize("count", [1, 2, 3, 4])
def test_the_force_does_not_depend_on_the_number_of_points(count):
    force, _ = Manifold().put(SQUARE[:count], [1e-5] * count).press()
    touch = laws.Touch(1e-5, 0.0, UP, (0.0, 0.0, 0.0), (0.0, 0.0, 0.0), 1.0, RADIUS)
    assert force == pytest.approx((0.0, 0.0, laws.hertz(touch, laws.Mix(*MATERIAL), 1e-5)[0]), rel=1e-12)


def test_points_of_areas_of_their_own_share_nothing():
    alone, _ = Manifold().put(SQUARE[:1], [1e-5]).press()
    both, _ = Manifold().put(SQUARE[:2], [1e-5] * 2).press(shares=False)
    assert both == pytest.approx(2.0 * alone, rel=1e-12)


def test_a_point_that_leaves_takes_no_force_with_it():
    three = Manifold().put(SQUARE[:3], [1e-5, 1.1e-5, 0.9e-5]).press()
    four = Manifold().put(SQUARE, [1e-5, 1.1e-5, 0.9e-5, 1e-16]).press()
    assert four[0] == pytest.approx(three[0], rel=1e-9)
    assert four[1] == pytest.approx(three[1], rel=1e-8)


def test_a_tilted_patch_turns_back():
    """More overlap at x > 0: the moment lifts that side of the second body."""
    _, moment = Manifold().put(SQUARE, [1e-5, 1.2e-5, 1.2e-5, 1e-5]).press()
    assert moment[1] < 0.0
    assert moment[[0, 2]] == pytest.approx([0.0, 0.0], abs=1e-12)


def test_points_at_right_angles_do_not_share():
    alone, _ = Manifold().put(SQUARE[:1], [1e-5]).press()
    both, _ = Manifold().put(SQUARE[:2], [1e-5] * 2, [UP, (1.0, 0.0, 0.0)]).press()
    assert both == pytest.approx((alone[2], 0.0, alone[2]), rel=1e-12)


def test_points_that_stick_slip_with_the_body():
    made = Manifold().put(SQUARE, [1e-5] * 4)
    made.press(velocity=(1e-4, 0.0, 0.0), spin=(0.0, 0.0, 0.02))
    expected = np.array([(1e-4 - 0.02 * y, 0.02 * x, 0.0) for x, y in SQUARE]) * 1e-5
    assert made.history.slip == pytest.approx(expected, rel=1e-9, abs=1e-18)
    assert made.history.live.tolist() == [1, 1, 1, 1]


def test_a_twisted_patch_turns_back():
    made = Manifold().put(SQUARE, [1e-5] * 4)
    made.press(spin=(0.0, 0.0, 1.0))
    _, moment = made.press()
    assert moment[2] < 0.0


def test_points_of_one_area_slip_together():
    """The slips that points remember are taken for one shift and one turn, by how much each bears; new points have their slip of it."""
    made = Manifold().put(SQUARE, [1e-5, 1e-5, 2e-5, 2e-5])
    made.press()
    shift, turn = np.array([1e-7, -2e-7, 0.0]), 3e-5
    made.history.slip[:] = [shift + turn * np.array([-y, x, 0.0]) for x, y in SQUARE]
    new = [(2e-3, 1e-3), (-3e-3, 0.0), (0.0, 5e-4)]
    expected = [shift + turn * np.array([-y, x, 0.0]) for x, y in new]
    assert made.put(new, [1e-5] * 3).taken_up() == pytest.approx(np.array(expected), rel=1e-12)


def test_what_bears_more_counts_more():
    made = Manifold().put(SQUARE[:2], [1e-5, 2e-5])
    made.press()
    made.history.slip[:2] = (1e-7, 0.0, 0.0), (2e-7, 0.0, 0.0)
    share = made.history.share[:2]
    assert share == pytest.approx([1 / 257, 256 / 257])
    taken = made.put([(0.0, -1e-3)], [1e-5]).taken_up()[0]
    assert taken == pytest.approx((1e-7 / 257 + 2e-7 * 256 / 257, 0.0, 0.0), rel=1e-12)


def test_points_that_look_the_other_way_do_not_slip_along():
    made = Manifold().put(SQUARE[:2], [1e-5] * 2, [UP, (0.0, 0.0, -1.0)])
    made.press()
    made.history.slip[:2] = (1e-7, 0.0, 0.0), (5e-7, 0.0, 0.0)
    made.put(SQUARE[:2], [1e-5] * 2, [UP, (0.0, 0.0, -1.0)])
    assert made.taken_up() == pytest.approx(np.array([[1e-7, 0.0, 0.0], [5e-7, 0.0, 0.0]]), rel=1e-12)


def test_a_corner_that_lifts_does_not_lose_the_slip():
    """A patch that rocks: damping leaves no pressure at two of its corners, and its friction is that of the patch at rest."""
    made = Manifold().put(SQUARE, [1e-5] * 4)
    made.press(velocity=(1e-4, 0.0, 0.0))
    before = made.history.slip.copy()
    made.put(SQUARE, [1e-5] * 4)
    made.press(spin=(0.0, 10.0, 0.0), dt=1e-12)
    assert (made.points.force[:, 2] == 0.0).sum() == 2
    assert made.history.slip == pytest.approx(before, rel=1e-6, abs=1e-20)


def test_a_point_takes_the_slip_of_the_nearest_one_before():
    """Of areas of their own, whichever slots hold them: here the two change places, and a third begins between them."""
    made = Manifold().put([(0.0, 0.0), (4e-3, 0.0)], [1e-5] * 2)
    made.press()
    made.history.slip[:2] = (1e-7, 0.0, 0.0), (0.0, 2e-7, 0.0)
    made.put([(4e-3, 1e-5), (1e-5, 0.0), (1.5e-3, 0.0)], [1e-5] * 3)
    assert made.taken_up(shares=False).tolist() == [[0.0, 2e-7, 0.0], [1e-7, 0.0, 0.0], [1e-7, 0.0, 0.0]]


@pytest.mark.parametrize(
    ("place", "normal", "found"),
    [
        ((1e-3, 0.0), UP, True),
        ((1.1 * RADIUS, 0.0), UP, False),
        ((1e-3, 0.0), (math.sin(1.1), 0, math.cos(1.1)), False),
    ],
)
def test_a_slip_is_handed_on_only_to_what_is_near_and_looks_the_same_way(place, normal, found):
    made = Manifold().put([(0.0, 0.0)], [1e-5])
    made.press()
    made.history.slip[0] = (0.0, 1e-7, 0.0)
    made.put([place], [1e-5], [normal])
    assert made.taken_up(shares=False)[0].any() == found


def test_a_point_that_ends_is_forgotten():
    made = Manifold().put(SQUARE[:2], [1e-5] * 2)
    made.press(velocity=(1e-4, 0.0, 0.0))
    made.put(SQUARE[:1], [1e-5]).press()
    assert made.history.live.tolist() == [1, 0, 0, 0]


@pytest.mark.parametrize("count", [1, 4])
def test_rolling_resistance_grows_up_to_its_limit_and_does_not_depend_on_the_number_of_points(count, monkeypatch):
    monkeypatch.setattr(forces, "ROLLING", True)
    made = Manifold(rolling=True)
    for _ in range(200):
        made.put(SQUARE[:count], [1e-5] * count)
        force, _ = made.press(spin=(0.0, 5.0, 0.0))
    couple = made.points.couple[:count].sum(0)
    # The points move up and down with the spin, which damps; the limit is that of the pressure at their middle.
    x, y = np.mean(SQUARE[:count], axis=0)
    touch = laws.Touch(1e-5, 5.0 * x, UP, (0.0, 0.0, 0.0), (0.0, 0.0, 0.0), 1.0, RADIUS)
    normal = laws.hertz(touch, laws.Mix(*MATERIAL), 1e-5)[0]
    assert couple == pytest.approx((0.0, -MATERIAL[5] * RADIUS * normal, 0.0), rel=1e-9, abs=1e-12)
    assert force[2] == pytest.approx(made.points.force[:count, 2].sum())


def test_mirror_images_have_the_same_order():
    points, overlaps = [(2e-3, 1e-3), (-1e-3, 3e-3), (1e-3, -1e-3), (0.5e-3, 0.2e-3)], [1e-5, 1e-5, 3e-5, 2e-5]
    for order in ([0, 1, 2, 3], [3, 1, 0, 2], [2, 0, 3, 1]):
        work = np.zeros(100)
        for i, k in enumerate(order):
            work[POINT * i : POINT * i + 4] = *points[k], 0.0, -overlaps[k]
            work[POINT * i + 7] = k
        order_points(work, 4)
        assert work[7:32:POINT].tolist() == [2, 3, 0, 1]  # what touches goes along
        assert work[0:32:POINT].tolist() == [points[k][0] for k in (2, 3, 0, 1)]


@pytest.mark.parametrize(("cosine", "together"), [(0.93, True), (0.87, False)])
def test_points_slip_together_whose_normals_are_within_26_degrees(cosine, together):
    tilted = (0.0, math.sqrt(1.0 - cosine * cosine), cosine)
    made = Manifold().put(SQUARE[:2], [1e-5] * 2, [UP, tilted])
    made.press()
    made.history.slip[:2] = (1e-7, 0.0, 0.0), (5e-7, 0.0, 0.0)
    slip = made.put(SQUARE[:2], [1e-5] * 2, [UP, tilted]).taken_up()[0, 0]
    assert (slip > 1.01e-7) == together


@pytest.mark.parametrize(("width", "turns"), [(0.5e-4, False), (2e-4, True)])
def test_an_area_narrower_than_a_ten_thousandth_of_the_radius_does_not_turn(width, turns):
    """Two points with slips apart: of the turn that these make a point beside them has its part, or the mean slip alone."""
    half = 0.5 * width * RADIUS * 2.0
    made = Manifold().put([(-half, 0.0), (half, 0.0)], [1e-5] * 2)
    made.press()
    made.history.slip[:2] = (0.0, -1e-9, 0.0), (0.0, 3e-9, 0.0)
    slip = made.put([(2.0 * half, 0.0)], [1e-5]).taken_up()[0]
    assert slip == pytest.approx((0.0, 5e-9 if turns else 1e-9, 0.0), rel=1e-6)


@pytest.mark.parametrize(("place", "slip"), [(3e-5, 3e-9), (4e-5, 4e-9), (1e-3, 4e-9)])
def test_a_turn_is_believed_up_to_four_times_the_width_it_is_known_from(place, slip):
    made = Manifold().put([(-1e-5, 0.0), (1e-5, 0.0)], [1e-5] * 2)
    made.press()
    made.history.slip[:2] = (0.0, -1e-9, 0.0), (0.0, 1e-9, 0.0)
    assert made.put([(place, 0.0)], [1e-5]).taken_up()[0] == pytest.approx((0.0, slip, 0.0), rel=1e-6)


@pytest.mark.parametrize("turns", [1, -1])
def test_a_cycle_of_rocking_and_shear_gains_no_energy(turns, monkeypatch):
    """An area that rocks about y and is sheared along x, a quarter of a turn behind or before, without damping and sliding: what it does
    on the body in one closed cycle is no more than a hundredth of what its shear spring holds."""
    monkeypatch.setattr(sys.modules[__name__], "MATERIAL", (*MATERIAL[:3], 0.0, 50.0, *MATERIAL[5:]))
    depth, tilt, shear, dt, steps = 1e-5, 2e-3, 2e-7, 1e-6, 400
    made, work, held = Manifold(), 0.0, 0.0
    for k in range(2 * steps):
        before, phase = (2.0 * math.pi * (k + j) / steps for j in (0, 1))
        turning = tilt * (math.sin(phase) - math.sin(before)) / dt
        sliding = -turns * shear * (math.cos(phase) - math.cos(before)) / dt
        made.put(SQUARE, [depth + tilt * math.sin(phase) * x for x, _ in SQUARE])
        force, moment = made.press((sliding, 0.0, 0.0), (0.0, turning, 0.0), dt)
        # The first turn brings the spring to where it begins and ends.
        work += dt * (force[0] * sliding + moment[1] * turning) if k >= steps else 0.0
        held = max(held, 0.5 * abs(force[0]) * shear)
    assert held > 0.0
    assert work < 0.01 * held

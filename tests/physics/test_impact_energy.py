"""Random impacts without friction and damping: what they gain or lose in energy, by the program of the validation page."""

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.append(str(Path(__file__).resolve().parents[2] / "validation"))

from impacts import collide


@pytest.mark.parametrize("wall", ["plane"])
def test_boxes_at_a_wall_keep_their_energy_but_for_what_shares_of_points_leave(wall):
    """At dt="auto" 0.13 % on average, and 2.6 % at the most of 200; with shares by the overlap itself ten times as much."""
    error = collide("box", wall, 40, 1.0)
    assert len(error) == 40
    assert np.abs(error).mean() < 3e-3
    assert np.abs(error).max() < 0.03


def test_a_contact_of_one_point_keeps_more_the_finer_the_step():
    coarse, fine = (np.abs(collide("sphere", "plane", 40, part)).max() for part in (1.0, 0.5))
    assert coarse < 1e-3
    assert fine < 0.5 * coarse

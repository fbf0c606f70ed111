"""A row of balls, struck at one end: a solitary wave runs through it."""

import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).resolve().parents[2] / "validation"))
import waves_and_gases


def test_solitary_wave():
    speed, most, _, until = waves_and_gases.struck_row("auto")
    assert (speed, most) == pytest.approx(waves_and_gases.by_its_equations(until), rel=1e-3)
    # Nesterenko (1984): the speed of long waves, of which one of five balls is not quite one.
    assert speed == pytest.approx(waves_and_gases.long_wave(most), rel=0.01)

"""Contact laws as springs: no closed path of overlap and slip may give energy."""

import math

import numpy as np
import pytest

from clast.motion import laws

RADIUS, MASS = 0.01, 0.01


def work_on_path(law, overlap, slide, friction):
    """Work [J] that the contact did on its bodies along a path: overlap (n,) [m] and tangential place (n,2) [m]."""
    mix = laws.Mix(1e8, 3e7, 0.0, 0.0, friction, 0.0, math.sqrt(0.3))
    slip, work = (0.0, 0.0, 0.0), 0.0
    dt = 1e-6
    normal, shear = 0.0, (0.0, 0.0, 0.0)
    for k in range(1, len(overlap)):
        step = slide[k] - slide[k - 1]
        rate = (overlap[k] - overlap[k - 1]) / dt
        touch = laws.Touch(overlap[k], rate, (0.0, 0.0, 1.0), (step[0] / dt, step[1] / dt, 0.0), slip, MASS, RADIUS)
        before = normal, shear
        normal, shear, slip = law(touch, mix, dt)
        work -= 0.5 * (normal + before[0]) * rate * dt
        work += 0.5 * ((shear[0] + before[1][0]) * step[0] + (shear[1] + before[1][1]) * step[1])
    return work


def path(corners, each=400):
    """Straight pieces through corners (n,3): overlap and two tangential places."""
    corners = np.array(corners, float)
    parts = [a + (b - a) * np.linspace(0, 1, each, endpoint=False)[:, None] for a, b in zip(corners, corners[1:])]
    way = np.vstack([*parts, corners[-1:]])
    return way[:, 0], way[:, 1:]


D, S = 1e-5, 1e-6


@pytest.mark.parametrize("friction", [0.5, 1e9])
@pytest.mark.parametrize("name", ["hertz", "linear"])
@pytest.mark.parametrize(
    "corners",
    [
        [(0, 0, 0), (D, 0, 0), (D, S, 0), (D, 0, 0), (0, 0, 0)],
        [(0, 0, 0), (D / 10, 0, 0), (D / 10, S, 0), (D, S, 0), (D, 0, 0), (0, 0, 0)],
        [(0, 0, 0), (D, 0, 0), (D, S, 0), (D / 10, S, 0), (D / 10, 0, 0), (0, 0, 0)],
        [(0, 0, 0), (D, S, S), (D / 2, -S, S), (D, -S, -S), (D / 5, 0, 0), (0, 0, 0)],
    ],
    ids=["shear-and-back", "shear-load-back", "shear-unload-back", "wander"],
)
def test_a_closed_path_gives_no_energy(name, corners, friction):
    law = getattr(laws.LAWS[name].function, "py_func", laws.LAWS[name].function)
    stored = 8.0 / 15.0 * 1e8 * math.sqrt(RADIUS * D) * D**2  # of the Hertz spring at the largest overlap
    assert work_on_path(law, *path(corners), friction) < 1e-5 * stored


@pytest.mark.parametrize("name", ["hertz", "linear"])
def test_a_spring_without_slip_is_elastic(name):
    law = getattr(laws.LAWS[name].function, "py_func", laws.LAWS[name].function)
    loop = path([(0, 0, 0), (D, 0, 0), (D, S, 0), (D, 0, 0), (0, 0, 0)], 2000)
    stored = 4.0 * 3e7 * math.sqrt(RADIUS * D) * S**2
    assert abs(work_on_path(law, *loop, 1e9)) < 1e-5 * stored

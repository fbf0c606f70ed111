"""A drum of everything: threads, broad phases, stopping and going on change no bit, by forces and by hard contacts."""

import pytest
from roads import differences, on_threads, state
from test_hard_bits import launch_on_all, two_threads

import clast
from clast.kernels import backend
from clast.scenes import all_shapes

pytestmark = pytest.mark.slow  # it compiles the kernels of every pair there is

STEPS = {"dem": 12000, "hard": 150}


def start(method):
    return all_shapes(count=56, method=method).simulation()


@pytest.fixture(scope="module", params=list(STEPS))
def plain(request):
    """The method, and the state after all steps, taken in one go."""
    sim = start(request.param)
    sim.step(STEPS[request.param])
    assert sim.touching() > 20
    return request.param, state(sim)


@two_threads
def test_threads(plain, monkeypatch):
    monkeypatch.setattr(backend.CPU, "launch", staticmethod(launch_on_all))
    with on_threads(2):
        sim = start(plain[0])
        sim.step(STEPS[plain[0]])
    assert differences(plain[1], state(sim)) == []


def test_restarts(plain, tmp_path):
    sim = start(plain[0])
    for part in (0.0, 0.5, 0.9):
        sim.step(int(part * STEPS[plain[0]]) - sim.steps)
        sim.save(tmp_path / "checkpoint.h5")
        sim = clast.resume(tmp_path / "checkpoint.h5")
    sim.step(STEPS[plain[0]] - sim.steps)
    assert differences(plain[1], state(sim)) == []

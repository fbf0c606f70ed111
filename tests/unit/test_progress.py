"""What a running simulation shows, on a terminal and elsewhere."""

import io

import pytest
from rich.console import Console

from clast.run import progress
from clast.run.progress import Progress, duration


@pytest.fixture
def clock(monkeypatch):
    """A clock that the test turns: clock[0] is the time [s]."""
    now = [100.0]
    monkeypatch.setattr(progress.clock, "monotonic", lambda: now[0])
    return now


def paper():
    """A console that is not a terminal."""
    return Console(file=io.StringIO(), force_terminal=False, width=60)


def test_away_from_a_terminal_a_line_comes_at_each_tenth(clock):
    console = paper()
    with Progress(until=3.0, start=1.0, console=console) as bar:
        for i in range(1, 101):
            clock[0] += 0.1
            bar.update(time=1.0 + 0.02 * i, steps=50 * i, contacts=1234, energy=0.5)
    lines = console.file.getvalue().splitlines()
    assert len(lines) == 10
    assert lines[4] == "running  50 %  t = 2 of 3 s, 500 steps/s, 1,234 contacts, 0.5 J, 5 s left"
    assert lines[-1] == "running 100 %  t = 3 of 3 s, 500 steps/s, 1,234 contacts, 0.5 J, done in 10 s"


def test_a_slow_run_speaks_before_the_first_tenth(clock):
    console = paper()
    with Progress(until=1.0, console=console) as bar:
        for i in range(1, 31):
            clock[0] += 1.0
            bar.update(time=1e-3 * i, steps=i)
        assert len(console.file.getvalue().splitlines()) == 3
    assert "16 min 10 s left" in console.file.getvalue()


def test_compilation_is_told_once_and_is_not_part_of_the_pace(clock):
    console = paper()
    with Progress(until=1.0, console=console) as bar:
        for i in range(4):
            bar.compiling(f"kernel {i}", i + 1, 0)
            clock[0] += 5.0
        bar.update(time=0.0, steps=0)
        clock[0] += 1.0
        bar.update(time=0.5, steps=100)
        bar.compiling("a late one", 5, 0)
        bar.update(time=0.51, steps=102)
    lines = console.file.getvalue().splitlines()
    assert lines[:2] == ["compiling kernels, once; the next run starts at once ...", "compiled 4 kernels in 20 s"]
    assert lines[2] == "running  50 %  t = 0.5 of 1 s, 100 steps/s, 1 s left"
    assert lines[3] == "compiled 1 kernel in 0 s"
    assert lines[4].startswith("running  51 %")
    assert len(lines) == 5


def test_on_a_terminal_a_bar_is_drawn_and_removed_cleanly_when_the_run_fails():
    console = Console(file=io.StringIO(), force_terminal=True, width=100)
    with pytest.raises(ZeroDivisionError), Progress(until=1.0, console=console) as bar:
        bar.compiling("sort", 1, 2)
        bar.compiling("sort", 2, 2)
        bar.update(time=0.25, steps=10, contacts=3)
        raise ZeroDivisionError
    shown = console.file.getvalue()
    assert "25 %" in shown
    assert "compiled 2 kernels" in shown
    assert shown.endswith("\x1b[?25h")  # the cursor is back


def test_a_run_of_no_length_is_done():
    console = paper()
    with Progress(until=1.0, start=1.0, console=console) as bar:
        bar.update(time=1.0, steps=0)
    assert "100 %" in console.file.getvalue()


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.4, "0 s"),
        (59.4, "59 s"),
        (59.6, "1 min 00 s"),
        (185, "3 min 05 s"),
        (7800, "2 h 10 min"),
        (float("inf"), "?"),
    ],
)
def test_durations_are_words(seconds, text):
    assert duration(seconds) == text

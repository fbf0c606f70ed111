"""What a running simulation shows: a bar on a terminal or in a notebook, now and then a line elsewhere."""

import html
import math
import time as clock
from typing import Any

MARK = 0.1  # share of the run between two lines where there is no terminal
PATIENCE = 10.0  # [s], a line comes after this long in any case
SMOOTHING = 2.0  # [s], over which the step rate is averaged


def duration(seconds):
    """Seconds as text: `8 s`, `3 min 05 s`, `2 h 10 min`; `?` if not known."""
    if not math.isfinite(seconds):
        return "?"
    seconds = round(seconds)
    if seconds < 60:
        return f"{seconds} s"
    if seconds < 3600:
        return f"{seconds // 60} min {seconds % 60:02d} s"
    return f"{seconds // 3600} h {seconds % 3600 // 60:02d} min"


def pace(rate):
    """Steps per second as text: whole numbers, or two digits where steps are long."""
    return f"{rate:,.0f}" if rate >= 9.95 else f"{rate:.2g}"


class Shown:
    """The bar of a notebook as it is at the moment."""

    def __init__(self, progress):
        self._share, self._words = progress._share, f"{progress.title}  {progress._text}"

    def _repr_html_(self):
        percent = round(100.0 * self._share)
        return (
            "<div style='font:90% system-ui,sans-serif'><div style='background:#dde2e7;border-radius:3px;width:24em;display:inline-block'>"
            f"<div style='background:#3a5d9c;border-radius:3px;height:.7em;width:{percent}%'></div></div> "
            f"{percent} % {html.escape(self._words)}</div>"
        )

    def __repr__(self):
        return f"{100.0 * self._share:.0f} % {self._words}"


class Progress:
    """Shows simulated time, steps per second, contacts, energy and time left, on standard error.

        with Progress(until=2.0) as bar:
            bar.update(time=sim.time, steps=sim.steps, contacts=count, energy=joules)

    until, start: simulated time [s]; title: first word of the line; console: a rich Console, for tests.
    """

    def __init__(self, *, until, start=0.0, title="running", console=None):
        from rich.console import Console

        self.until, self.start, self.title = float(until), float(start), title
        self.console = Console(stderr=True) if console is None else console
        self.rate = math.nan  # steps per second
        self.kernels = self._told = 0  # compiled so far, and how many of them have been told
        self._share = 0.0
        self._steps = self._rate_clock = None
        self._bar = self._task = self._compile_task = None
        self._compile_clock: Any = None  # when compiling began [s]
        self._text = ""
        self._mark = 0.0
        self._notebook = None  # what shows the bar there

    def __enter__(self):
        self._began = self._line_clock = clock.monotonic()
        if self.console.is_terminal:
            from rich.progress import BarColumn, TextColumn
            from rich.progress import Progress as Bar

            columns = (
                TextColumn("{task.description}"),
                BarColumn(bar_width=24),
                TextColumn("{task.percentage:>3.0f} %"),
                TextColumn("{task.fields[text]}"),
            )
            self._bar = Bar(*columns, console=self.console, refresh_per_second=5)
            self._task = self._bar.add_task(self.title, total=1.0, text="starting")
            self._bar.start()
        elif self.console.is_jupyter:
            from IPython.display import display

            self._text = "starting"
            self._notebook = display(Shown(self), display_id=True)
        return self

    def __exit__(self, fault, value, trace):
        if self._compile_clock is not None:
            self._compiled()
        if self._bar is not None:
            self._bar.stop()
        elif self._notebook is not None:
            self._notebook.update(Shown(self))
        elif fault is None and self._share > self._mark:
            self._line()

    def update(self, *, time, steps, contacts=None, energy=None):
        """Tell where the run is: time [s], steps done so far; also contacts (a count) and energy [J], if known."""
        if self._compile_clock is not None:
            self._compiled()
        now = clock.monotonic()
        self._count(now, steps)
        span = self.until - self.start
        self._share = min(1.0, max(0.0, (time - self.start) / span)) if span > 0.0 else 1.0
        self._text = self._words(now, time, contacts, energy)
        if self._bar is not None:
            self._bar.update(self._task, completed=self._share, text=self._text)
        elif self._notebook is not None:
            self._notebook.update(Shown(self))
        elif self._share >= self._mark + MARK - 1e-9 or now - self._line_clock >= PATIENCE:
            self._line()

    def compiling(self, name, done, total):
        """Tell that kernel number `done` of `total` is being compiled; total is 0 if not known. It has its own line."""
        if self._compile_clock is None:
            self._compile_clock = clock.monotonic()
            if self._bar is not None:
                self._compile_task = self._bar.add_task("compiling kernels, once", total=total or None, text=name)
            elif not self._told:
                self._say("compiling kernels, once; the next run starts at once ...")
        self.kernels = max(self.kernels, done)
        if self._bar is not None:
            self._bar.update(self._compile_task, completed=done, text=name)
        if total and done >= total:
            self._compiled()

    def _compiled(self):
        seconds = clock.monotonic() - self._compile_clock
        if self._bar is not None:
            self._bar.remove_task(self._compile_task)
        new = self.kernels - self._told
        self._say(f"compiled {new} kernel{'s' if new != 1 else ''} in {duration(seconds)}")
        self._told = self.kernels
        self._compile_clock = self._compile_task = None
        # The wait for the compiler is not part of the pace.
        self._began += seconds
        self._line_clock += seconds
        self._steps = None

    def _count(self, now, steps):
        if self._steps is None:
            self._steps, self._rate_clock = steps, now
            return
        passed = now - self._rate_clock
        if passed < 0.05:
            return
        recent = (steps - self._steps) / passed
        weight = 1.0 - math.exp(-passed / SMOOTHING)
        self.rate = recent if math.isnan(self.rate) else self.rate + weight * (recent - self.rate)
        self._steps, self._rate_clock = steps, now

    def _words(self, now, time, contacts, energy):
        words = [f"t = {time:.4g} of {self.until:.4g} s"]
        if not math.isnan(self.rate):
            words.append(f"{pace(self.rate)} steps/s")
        if contacts is not None:
            words.append(f"{contacts:,} contacts")
        if energy is not None:
            words.append(f"{energy:.3g} J")
        passed = now - self._began
        if self._share >= 1.0:
            words.append(f"done in {duration(passed)}")
        elif self._share > 0.0:
            words.append(f"{duration(passed / self._share * (1.0 - self._share))} left")
        return ", ".join(words)

    def _line(self):
        self._say(f"{self.title} {100.0 * self._share:3.0f} %  {self._text}")
        self._mark = math.floor(self._share / MARK + 1e-9) * MARK
        self._line_clock = clock.monotonic()

    def _say(self, text):
        self.console.print(text, highlight=False, markup=False, soft_wrap=True)

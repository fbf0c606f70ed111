"""What all commands share: names, exit codes, options, and how wrong input is answered."""

import math
import signal
import sys
import threading
from contextlib import contextmanager

import typer

# The keys of scenes.SCENES, known here without importing it.
NAMES = (
    *("drum", "all-shapes", "hopper", "pile", "box", "ellipsoid-box", "ellipsoid-hopper"),
    *("cube-drum", "gravity-packing", "rock-drum"),
    *("two-particles", "granulate"),
    *("silo", "tank", "shaker", "mixer", "floating-ball"),
    *("chain-on-gravel", "tracked-vehicle"),
)
RESULTS = (
    *("checkpoint.h5", "checkpoint.previous.h5", "trajectory.h5", "trajectory.journal.h5"),
    *("report.json", "report.html", "series.csv", "timing.csv", "picture.png", "run.json"),
)
OK, FAILED, WRONG_INPUT, INTERRUPTED = 0, 1, 2, 130
TOGETHER = ("run", "check")  # commands of which each process does a part where a launcher starts many
# What launchers set, see clast.mpi.team, known here without importing it.
LAUNCHED = ("PMI_SIZE", "MPI_LOCALNRANKS", "OMPI_COMM_WORLD_SIZE", "SLURM_STEP_NUM_TASKS", "PMIX_RANK")

app = typer.Typer(
    name="clast",
    help="Contacts between very many bodies, and how they move.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


class Wrong(Exception):
    """What the user typed cannot be done; the message says what to type instead."""


class Stopped(Exception):
    """The user interrupted a run; the message says how to go on."""


def complain(message, code):
    """Print one line on standard error and return the exit code. Of several processes the first one speaks; another only if that
    has nothing to say."""
    rank = first_speaks(code)
    if rank is not None:
        print(f"clast: {rank}" + " ".join(str(message).split()), file=sys.stderr, flush=True)
    return code


def first_speaks(code):
    """What a message of this process begins with; None if it is not to be printed."""
    from ..errors import ClastError
    from ..mpi.team import find, launched

    if launched() == 1:
        return ""
    try:
        team = find()
    except (ImportError, ClastError):  # there is no MPI, or other versions elsewhere: that is what the message is about
        return ""
    if team is None or team.rank == 0:
        return ""
    return None if code == OK or team.all_leave() else f"rank {team.rank}: "


@contextmanager
def typed_by_user(place=""):
    """Within the block, what the package does not accept is what the user typed."""
    from ..errors import SceneError

    try:
        yield
    except SceneError:
        raise
    except (ValueError, TypeError, IndexError) as fault:
        raise Wrong(f"{place}: {fault}" if place else str(fault)) from fault


@contextmanager
def as_interrupt():
    """Within the block SIGTERM does what Ctrl-C does, except where somebody else listens. A second signal of those who are impatient, or of a
    queue that sends both, does not come between the first and what is said and saved."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    before = {number: handler for number, handler in before.items() if handler != signal.SIG_IGN}  # nohup and shells

    def be_patient(number, frame):
        for other in before:
            signal.signal(other, signal.SIG_DFL)  # the third ends it: what was to be said and saved may hang

    def interrupt(number, frame):
        for other in before:
            signal.signal(other, be_patient)
        signal.default_int_handler(number, frame)

    for number in before:
        signal.signal(number, interrupt)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, signal.SIG_DFL if handler is None else handler)


def above_zero(text: str) -> float:
    """The finite number above 0 that the user typed."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not (math.isfinite(value) and value > 0.0):
        raise typer.BadParameter(f"{text!r} must be a number above 0")
    return value


def whole(least):
    """A reader of whole numbers of at least `least`."""

    def read(text: str) -> int:
        try:
            value = int(text)
        except ValueError:
            value = least - 1
        if value < least:
            raise typer.BadParameter(f"{text!r} must be a whole number, {least} or more")
        return value

    return read


def seconds(words):
    """An option that is a time."""
    return typer.Option(parser=above_zero, metavar="TIME", help=words)


def number(least, words):
    """An option that is a whole number."""
    return typer.Option(parser=whole(least), metavar="N", help=words)

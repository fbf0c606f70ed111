"""The command line: clast run | view | render | report | new | scenes | check.

Heavy packages are imported inside the commands, so that `clast --help` answers at once.
"""

import os
import sys
from contextlib import contextmanager
from typing import Annotated

import typer

from . import running, showing, starting
from .common import (
    FAILED,
    INTERRUPTED,
    LAUNCHED,
    NAMES,
    OK,
    TOGETHER,
    WRONG_INPUT,
    Stopped,
    Wrong,
    app,
    as_interrupt,
    complain,
)

__all__ = ["NAMES", "answer", "app", "complain", "main", "running", "showing", "starting"]


def main(arguments=None):
    """Run a command and leave with its exit code: 0 done, 1 the run failed, 2 wrong input, 130 interrupted."""
    with by_the_first(sys.argv[1:] if arguments is None else arguments) as mine:
        code = answer(arguments) if mine else OK
        team = sys.modules.get("clast.mpi.team")
        if code != OK and team is not None:
            team.leave(code)  # others may wait for this one
        watch = sys.modules.get("clast.kernels.watch")
        alone = team is None or team.find() is None
        if (code == INTERRUPTED and alone) or (watch is not None and watch.abandoned()):
            # Who stopped it does not wait while Python tidies up, which took a second on a busy machine. And where the compiler is
            # at work in another thread, to wait for it takes long, to take the ground from under it ends badly.
            sys.stdout.flush()
            os._exit(code)
        sys.exit(code)


@contextmanager
def by_the_first(words):
    """Whether this process is to do the command: where a launcher has started many the first alone does those that they do not do together, and
    within the block no process starts MPI then, which waits for all others when it starts and when it ends."""
    if not any(name in os.environ for name in LAUNCHED):
        yield True
        return
    from ..mpi import team

    command = next((word for word in words if not word.startswith("-")), None)
    first = team.first_launched()
    if first is None or (command in TOGETHER and not {"-h", "--help"} & {*words}):
        yield True
        return
    with team.alone():
        yield first


@as_interrupt()
def answer(arguments=None):
    """Run a command and return its exit code; faults are one line on standard error, without a traceback."""
    from ..errors import ClastError, Damaged, SceneError, Unavailable

    try:
        code = app(arguments, prog_name="clast", standalone_mode=False) or OK
        return complain("interrupted", INTERRUPTED) if code == INTERRUPTED else code
    except (KeyboardInterrupt, typer.Abort):
        return complain("interrupted", INTERRUPTED)
    except Stopped as stop:
        return complain(stop, INTERRUPTED)
    except typer.Exit as leave:
        return leave.exit_code
    except (Wrong, SceneError, Damaged, Unavailable) as fault:
        return complain(fault, WRONG_INPUT)
    except ClastError as fault:
        return complain(fault, FAILED)
    except (FileNotFoundError, IsADirectoryError, NotADirectoryError, PermissionError) as fault:
        return complain(f"{fault.filename}: {fault.strerror}" if fault.filename else fault, WRONG_INPUT)
    except OSError as fault:  # a full disk, say
        return complain(f"{fault.filename}: {fault.strerror}" if fault.filename else fault, FAILED)
    except Exception as fault:
        if not hasattr(fault, "format_message"):  # a mistake in clast: the traceback is what a report needs
            raise
        message = fault.format_message()  # empty after `clast` alone, which has printed its help
        return complain(message, WRONG_INPUT) if message.strip() else WRONG_INPUT


def tell_version(asked: bool):
    """Print the version and leave."""
    if asked:
        from importlib.metadata import version

        print(f"clast {version('clast')}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=tell_version, is_eager=True, help="print the version and leave")
    ] = False,
):
    """Contacts between very many bodies, and how they move."""

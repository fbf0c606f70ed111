"""What can go wrong with a correct program, and how wrong names and numbers are known.

    ClastError
    ├── Diverged       a body's state is not a number, or faster than the step can follow
    │   └── Penetrated the surfaces of two bodies cross, or one lies inside the other
    ├── Escaped        a body left the declared world
    ├── NotConverged   a solver stopped above its tolerance and the user asked to be told
    ├── Damaged        a file is incomplete or fails its checksum
    ├── NotWritten     a file cannot be written: the disk is full, or another run writes it
    └── SceneError     a scene file is wrong; the message has file, key, value and what to do
    Unavailable        (an ImportError) an optional package or a device is missing

Wrong arguments are ValueError or TypeError, raised where they enter.
"""

import difflib
import os
from collections.abc import Iterable, Mapping
from numbers import Integral, Real
from pathlib import Path
from typing import Any, TypeGuard


class ClastError(Exception):
    """Root of the package's own errors."""


class Diverged(ClastError):
    """A body's state is not a number, or too fast; the last good state has been kept."""


class Penetrated(Diverged):
    """The surfaces of two triangulated bodies cross, or one lies inside the other; the halo did not keep them apart."""


class Escaped(ClastError):
    """A body left the declared world; the last good state has been kept."""


class NotConverged(ClastError):
    """A solver stopped above its tolerance."""


class Damaged(ClastError):
    """A file is incomplete or was changed after it was written."""


class NotWritten(ClastError, OSError):
    """A file cannot be written: the disk is full, say; what was there before stays."""


class SceneError(ClastError, ValueError):
    """A scene file does not describe a scene."""


class Unavailable(ImportError):
    """An optional package or a device is not there; the message says what to install."""


# To a type checker float and int are not of the classes in `numbers`.


def is_number(value: object) -> TypeGuard[float]:
    """Whether this is a real number, of Python or of NumPy."""
    return isinstance(value, Real)


def is_whole(value: object) -> TypeGuard[int]:
    """The same of whole numbers."""
    return isinstance(value, Integral)


def path_of(given: object, whose: str) -> Path:
    """The Path that a caller gave; whose: what it was given for, for the message ("save: the first argument must be the path of a file")."""
    if not isinstance(given, str | os.PathLike):
        raise TypeError(f"{whose}, got {given!r}")
    return Path(given)


def nearest(name: object, known: Iterable) -> str | None:
    """The known name closest to `name`, or None."""
    close = difflib.get_close_matches(str(name), [str(k) for k in known], n=1, cutoff=0.5)
    return close[0] if close else None


def pick(what: str, name: object, choices: Mapping[str, Any]) -> Any:
    """Return choices[name], or raise a ValueError that names the nearest choice.

    what: what is chosen, for the message ("contact law").
    """
    if isinstance(name, str) and name in choices:
        return choices[name]
    guess = nearest(name, choices)
    hint = f"; did you mean {guess!r}?" if guess else ""
    raise ValueError(f"unknown {what} {name!r}{hint} (known: {', '.join(sorted(map(str, choices)))})")

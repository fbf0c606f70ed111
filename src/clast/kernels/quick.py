"""Things that numba's compiler does again and again, done in less time: a third of what compiling kernels took.

They give what numba's own give, for every function that is compiled in the process; `install` puts them in place of those when
the first kernel is compiled. tests/agree/test_quick.py compares both.
"""

import functools
from typing import Any

from llvmlite import ir as llvm
from numba.core import analysis, config, ir, types
from numba.core.base import BaseContext
from numba.core.postproc import PostProcessor
from numba.core.rewrites.registry import RewriteRegistry
from numba.core.targetconfig import TargetConfig
from numba.core.typing.context import BaseContext as BaseTypingContext

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
        what = type(thing)
        sort = _sorts[what] if what in _sorts else _sort(what)
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


def use_defs(blocks):
    """Variables that each block uses before it defines them, and that it defines; numba asks each instruction twice."""
    used_in: dict[Any, set] = {}
    defined_in: dict[Any, set] = {}
    extensions = analysis.ir_extension_usedefs
    for offset, block in blocks.items():
        used = used_in[offset] = set()
        defined = defined_in[offset] = set()
        for statement in block.body:
            what = type(statement)
            if what in extensions:
                extensions[what](statement, used, defined)
            elif what is ir.Assign:
                value, target = statement.value, statement.target.name
                if isinstance(value, ir.Inst):
                    names = {variable.name for variable in value.list_vars()}
                else:
                    names = {value.name} if isinstance(value, ir.Var) else set()
                if target not in names:
                    defined.add(target)
                used |= names - defined
            else:
                used.update(variable.name for variable in statement.list_vars() if variable.name not in defined)
    return analysis._use_defs_result(usemap=used_in, defmap=defined_in)


def rewrite(self, kind, state):
    """Apply all rewrites of a kind to the blocks of a function; their variables are gone through again only if one applied."""
    if vars(config)["DEBUG"] or vars(config)["DUMP_IR"]:
        return THEIRS[RewriteRegistry, "apply"](self, kind, state)
    blocks, changed = state.func_ir.blocks, False
    for rule in self.rewrites[kind]:
        rewriting, waiting = rule(state), list(blocks.items())
        while waiting:
            key, block = waiting.pop()
            if rewriting.match(state.func_ir, block, state.typemap, state.calltypes):
                changed, blocks[key] = True, rewriting.apply()
                waiting.append((key, blocks[key]))
    if changed:
        for block in blocks.values():
            block.verify()
        PostProcessor(state.func_ir).run()


# An addition is typed by trying dozens of rules, those of lists and strings too, at each place where one stands.

_answers: dict = {}  # by function, context and types of arguments; with both, so that their ids stay their own


def call_type(self: Any, context, args, kws):
    """The signature of a call of one of numba's own functions, from the second time on as it was the first time."""
    key = id(self), id(context), args, tuple(kws.items())
    known = _answers.get(key)
    if known is not None:
        return known[0]
    found = THEIRS[types.BaseFunction, "get_call_type"](self, context, args, kws)
    # What has an implementation of its own for each set of flags, or does something while it is typed, is asked again.
    if self._impl_keys[found.args] is self.typing_key and type(self) is types.Function:
        _answers[key] = found, self, context
    return found


# Where an implementation is not found at once, all of numba's lists are looked through for new ones.

_lengths: dict = {}  # of the lists of a context when they were last looked through, with the context


def _count(*contexts):
    return [
        len(getattr(registry, name))
        for context in contexts
        for registry, loader in context._registries.items()
        for name in loader.registry_items
    ]


def refresh(self):
    """Take in what has been registered since the last time."""
    if id(self) not in _lengths or _lengths[id(self)][0] != _count(self, self.typing_context):
        THEIRS[BaseContext, "refresh"](self)
        _lengths[id(self)] = _count(self, self.typing_context), self


def refresh_types(self):
    """The same for types alone."""
    if id(self) not in _lengths or _lengths[id(self)][0] != _count(self):
        THEIRS[BaseTypingContext, "refresh"](self)
        _lengths[id(self)] = _count(self), self


_sizes: dict = {}  # by the text of a type and the layout of the machine, with the latter


def size_of(self, target_data, context=None):
    """Bytes of a type of LLVM, for which a module is printed and read in."""
    if context is not None or isinstance(self, llvm.IdentifiedStructType):
        return THEIRS[llvm.Type, "get_abi_size"](self, target_data, context)
    key = str(self), id(target_data)
    if key not in _sizes:
        _sizes[key] = THEIRS[llvm.Type, "get_abi_size"](self, target_data, context), target_data
    return _sizes[key][0]


PLACES = (
    (TargetConfig, "values", values),
    (TargetConfig, "__hash__", hashed),
    (TargetConfig, "__eq__", equal),
    (ir.Inst, "_rec_list_vars", list_variables),
    (analysis, "compute_use_defs", use_defs),
    (RewriteRegistry, "apply", rewrite),
    (types.BaseFunction, "get_call_type", call_type),
    (BaseContext, "refresh", refresh),
    (BaseTypingContext, "refresh", refresh_types),
    (llvm.Type, "get_abi_size", size_of),
)
THEIRS: dict = {(owner, name): vars(owner).get(name) for owner, name, _ in PLACES}


@functools.cache
def install():
    """Put the functions of this file in the places of numba's."""
    for owner, name, function in PLACES:
        if name in vars(owner):
            setattr(owner, name, function)

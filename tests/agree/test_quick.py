"""What stands in numba's places while kernels are compiled gives what numba's own gives."""

import inspect
import operator
import textwrap

import numba
import numpy as np
import pytest
from llvmlite import ir as llvm
from numba.core import compiler, ir, types
from numba.core.registry import cpu_target
from numba.core.targetconfig import TargetConfig
from numba.extending import overload

from clast.broad import bins
from clast.dem import forces
from clast.kernels import quick
from clast.narrow import box_box, polyhedron_manifold


def own(name):
    """numba's function of that name, whatever stands in its place now."""
    module, kind = (ir, "Inst") if name == "_rec_list_vars" else (inspect.getmodule(TargetConfig), "TargetConfig")
    source = inspect.getsource(getattr(module, kind))
    lines = source.splitlines()
    first = next(k for k, line in enumerate(lines) if line.strip().startswith(f"def {name}("))
    rest = [k for k in range(first + 1, len(lines)) if lines[k].strip() and not lines[k].startswith("        ")]
    scope: dict = {}
    exec(textwrap.dedent("\n".join(lines[first : rest[0] if rest else None])), vars(module), scope)
    return scope[name]


FUNCTIONS = pytest.mark.parametrize(
    "function", [bins.search_row, forces.work_off, box_box.box_separation, polyhedron_manifold.common_outline]
)


def blocks_of(function):
    return compiler.run_frontend(getattr(function, "py_func", function)).blocks


def theirs(name):
    """numba's function of that name, as it was when clast was imported."""
    return next(function for (_, known), function in quick.THEIRS.items() if known == name)


@FUNCTIONS
def test_variables_of_instructions(function, monkeypatch):
    theirs = own("_rec_list_vars")
    statements = [statement for block in blocks_of(function).values() for statement in block.body]
    assert len(statements) > 20

    def listed(used):
        monkeypatch.setattr(ir.Inst, "_rec_list_vars", used)
        return [[id(variable) for variable in statement.list_vars()] for statement in statements]

    assert listed(quick.list_variables) == listed(theirs)


def test_flags():
    values, hashed, equal = (own(name) for name in ("values", "__hash__", "__eq__"))
    one, other = compiler.Flags(), compiler.Flags()
    for _ in range(2):
        assert list(quick.values(one).items()) == list(values(one).items())
        assert quick.hashed(one) == hashed(one)
        assert quick.equal(one, other) is equal(one, other)
        assert quick.equal(one, one) and quick.equal(one, 3) is NotImplemented
        one.forceinline, one.nrt = True, False
    same = compiler.Flags(one)
    other.nrt = False
    assert quick.equal(one, same) and equal(one, same) and not quick.equal(one, other)
    # What is said and what is left open are the same where they say the same.
    spoken = compiler.Flags()
    spoken.forceinline = False
    assert quick.equal(spoken, compiler.Flags()) and equal(spoken, compiler.Flags())


@FUNCTIONS
def test_variables_of_blocks(function):
    blocks = blocks_of(function)
    found = quick.use_defs(blocks)
    assert found == theirs("compute_use_defs")(blocks)
    assert any(found.usemap.values()) and any(found.defmap.values())


NUMBERS = [
    types.float64,
    types.int64,
    types.boolean,
    types.uint64,
    types.literal(3),
    types.float64[:],
    types.float64[:, ::1],
]


@pytest.mark.parametrize(
    "operation", [operator.add, operator.truediv, operator.lt, operator.getitem, operator.neg, np.sqrt]
)
def test_types_of_calls(operation):
    quick.install()
    context = cpu_target.typing_context
    context.refresh()
    function = context.resolve_value_type(operation)
    counts = (1,) if operation in (operator.neg, np.sqrt) else (2,)
    answers = 0
    for count in counts:
        for one in NUMBERS:
            for other in NUMBERS if count == 2 else [None]:
                given = (one,) if other is None else (one, other)
                try:
                    expected = theirs("get_call_type")(function, context, given, {})
                except numba.TypingError:
                    with pytest.raises(numba.TypingError):
                        quick.call_type(function, context, given, {})
                    continue
                answers += 1
                for _ in range(2):
                    assert quick.call_type(function, context, given, {}) == expected
    assert answers >= len(NUMBERS) - 2


def test_what_is_registered_later_is_found():
    quick.install()

    @numba.njit
    def before(x):
        return x + 1.0

    assert before(1.0) == 2.0  # all lists have been looked through

    def later(x):
        """Known to Python only."""

    @overload(later)
    def of_numbers(x):
        return lambda x: 2.0 * x

    @numba.njit
    def after(x):
        return later(x)

    assert after(3.0) == 6.0


def test_sizes_of_types():
    layout = cpu_target.target_context.target_data
    kinds = [llvm.IntType(1), llvm.IntType(32), llvm.DoubleType(), llvm.ArrayType(llvm.IntType(8), 5)]
    kinds += [llvm.LiteralStructType(kinds), llvm.LiteralStructType(kinds[::-1]), llvm.IntType(8).as_pointer()]
    for _ in range(2):
        sizes = [quick.size_of(kind, layout) for kind in kinds]
        assert sizes == [theirs("get_abi_size")(kind, layout) for kind in kinds]
    assert len(set(sizes)) > 4


def test_rewritten_code_is_right():
    """A sum of arrays and an item at a constant place are rewritten before and after types are known; a plain function is not."""
    quick.install()

    @numba.njit
    def rewritten(a, b):
        pair = (a, b)
        return pair[0] + 2.0 * pair[1] - a * b

    @numba.njit
    def plain(x):
        return x * x

    a, b = np.arange(3.0), np.array([0.5, 1.5, 2.5])
    assert rewritten(a, b).tolist() == (a + 2.0 * b - a * b).tolist()
    assert plain(3.0) == 9.0


def test_places_are_there():
    assert all(name in vars(owner) for owner, name, _ in quick.PLACES)

"""What stands in numba's places while kernels are compiled gives what numba's own gives."""

import inspect
import textwrap

import pytest
from numba.core import compiler, ir
from numba.core.targetconfig import TargetConfig

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


@pytest.mark.parametrize(
    "function", [bins.search_row, forces.work_off, box_box.box_separation, polyhedron_manifold.common_outline]
)
def test_variables_of_instructions(function, monkeypatch):
    theirs = own("_rec_list_vars")
    blocks = compiler.run_frontend(getattr(function, "py_func", function)).blocks.values()
    statements = [statement for block in blocks for statement in block.body]
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


def test_places_are_there():
    assert all(name in vars(owner) for owner, name, _ in quick.PLACES)

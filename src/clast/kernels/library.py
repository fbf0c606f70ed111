"""Machine code for kernels alone: functions that only kernels call are handed on as they come out of the front end.

numba optimises every function to the end and makes machine code of it, and then links what it has optimised into each caller,
where all of it is optimised again. Functions of kernels are never run by themselves: here they are only put into a form that is
small enough to hand on, and a kernel is optimised once, with all that it calls: 27 cubes on a plane compiled for 42 s in place of 64.
"""

import gc

import numba
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler
from numba.core.registry import CPUDispatcher


class _Unseen:
    """numba's generator of code, for a function that the machine never gets to see: there is no place for its environment."""

    def __init__(self, codegen):
        self._codegen = codegen

    def __getattr__(self, name):
        return getattr(self._codegen, name)

    def set_env(self, name, environment):
        """Nothing; the kernel sets those of all that it calls."""


class InnerLibrary(JITCodeLibrary):
    """The code of a function that only kernels call."""

    def _optimize_functions(self, ll_module):
        shorten(self, ll_module)

    def _optimize_final_module(self):
        pass

    def _finalize_final_module(self):
        self._finalize_dynamic_globals()
        self._verify_declare_only_symbols()
        self._finalized = True

    @property
    def codegen(self):
        return _Unseen(self._codegen)

    def get_pointer_to_function(self, name):
        self._ensure_finalized()
        return 0


class OuterLibrary(JITCodeLibrary):
    """The code of a kernel and of all that it calls."""

    def _optimize_functions(self, ll_module):
        shorten(self, ll_module)

    def _optimize_final_module(self):
        # A second time, because so much comes together here that the first leaves something: a step of cubes took 6 % longer.
        super()._optimize_final_module()
        super()._optimize_final_module()


def shorten(library, module):
    """Simplify each function by itself, so that there is less to hand on."""
    module.data_layout = library._codegen._data_layout
    manager, builder = library._codegen._function_pass_manager()
    for function in module.functions:
        if not function.is_declaration:
            manager.run(function, builder)


class _Compiler(Compiler):
    """numba's compiler with another library."""

    library: type

    def define_pipelines(self):
        if self.state.library is None:
            self.state.library = self.library(self.state.targetctx.codegen(), self.state.func_id.func_qualname)
            self.state.library.enable_object_caching()
        return super().define_pipelines()


class InnerCompiler(_Compiler):
    library = InnerLibrary


class OuterCompiler(_Compiler):
    library = OuterLibrary


class Outer(CPUDispatcher):
    """A function that Python calls and that is made of such functions."""

    def compile(self, sig):
        # Python's search for garbage looks through all that the compiler has made again and again: a fifth of its time.
        searching = gc.isenabled()
        gc.disable()
        try:
            return super().compile(sig)
        finally:
            if searching:
                gc.enable()


def outer(function, **flags):
    """Compile a function that Python calls, when it is first called."""
    compiled = numba.njit(pipeline_class=OuterCompiler, **flags)(function)
    compiled.__class__ = Outer
    return compiled

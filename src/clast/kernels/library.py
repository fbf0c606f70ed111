"""Machine code for kernels alone: functions that only kernels call are handed on as they come out of the front end.

numba optimises every function to the end and makes machine code of it, and then links what it has optimised into each caller,
where all of it is optimised again. Functions of kernels are never run by themselves: here they are only put into a form that is
small enough to hand on, and a kernel is optimised once, with all that it calls: 27 cubes on a plane compiled for 42 s in place of 64.
"""

import gc
import threading
from contextlib import nullcontext
from types import CodeType
from typing import Any

import numba
from llvmlite.binding import Linkage, create_new_function_pass_manager
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler
from numba.core.registry import CPUDispatcher
from numba.core.untyped_passes import InlineClosureLikes

from . import quick, watch


class _Unseen:
    """numba's generator of code, for a function that the machine never gets to see: there is no place for its environment."""

    def __init__(self, codegen):
        self._codegen = codegen

    def __getattr__(self, name):
        return getattr(self._codegen, name)

    def set_env(self, name, environment):
        """Nothing; the kernel sets those of all that it calls."""


class InnerLibrary(JITCodeLibrary):
    """The code of a function that only kernels call, without what it calls: a kernel gathers all that once.

    numba puts into each function a copy of all that it calls, down to the last: half of what compiling a kernel took.
    """

    def _optimize_functions(self, ll_module):
        shorten(self, ll_module)

    def finalize(self):
        self._raise_if_finalized()
        for library in self._linking_libraries:
            self._reload_init.update(library._reload_init)
        for function in self._final_module.functions:
            if not function.is_declaration and function.linkage == Linkage.external:
                function.linkage = "linkonce_odr"  # there may be many of it, and none is kept that is not called
        self._finalize_dynamic_globals()
        self._finalized = True

    def _get_module_for_linking(self):
        """With all that it calls, for functions that are compiled by numba's own rules."""
        if self._shared_module is None:
            self._shared_module = self._final_module.clone()
            for alone in gathered(self._linking_libraries):
                self._shared_module.link_in(alone._get_module_for_linking(), preserve=True)
        return self._shared_module

    @property
    def codegen(self):
        return _Unseen(self._codegen)

    def get_pointer_to_function(self, name):
        self._ensure_finalized()
        return 0


class _Alone:
    """An InnerLibrary as something to link: its own code."""

    def __init__(self, library):
        self._reload_init = library._reload_init
        self._get_module_for_linking = lambda: library._final_module


def gathered(libraries):
    """All libraries that are reached from these, each once, and behind all that call it: LLVM leaves out what nobody has called so far."""
    found, seen, waiting = [], set(), [(library, False) for library in libraries]
    while waiting:
        library, done = waiting.pop()
        if done:
            found.append(library)
        elif id(library) not in seen:
            seen.add(id(library))
            waiting.append((library, True))
            if isinstance(library, InnerLibrary):
                waiting.extend((inner, False) for inner in library._linking_libraries)
    return [_Alone(library) if isinstance(library, InnerLibrary) else library for library in reversed(found)]


class OuterLibrary(JITCodeLibrary):
    """The code of a kernel and of all that it calls."""

    def _optimize_functions(self, ll_module):
        shorten(self, ll_module)

    def finalize(self):
        self._linking_libraries = gathered(self._linking_libraries)
        super().finalize()

    def _optimize_final_module(self):
        # Twice, because so much comes together here that one round leaves something: a step of cubes took 4 % longer with one. The first
        # is a light one in place of numba's, which does next to nothing: in full it took as much time as the second and gained nothing.
        light = {"opt": 1, "loop_vectorize": False, "slp_vectorize": False, "cost": "cheap"}
        for options in (light, {}):
            passes, builder = self._codegen._module_pass_manager(**options)
            passes.run(self._final_module, builder)


class OnceLibrary(OuterLibrary):
    """The same, optimised once: of a function that is called from Python one by one, in tests most of all."""

    _optimize_final_module = JITCodeLibrary._optimize_final_module


def shorten(library, module):
    """Simplify each function by itself, so that there is less to hand on: the least that makes it small, as a kernel is optimised whole later."""
    module.data_layout = library._codegen._data_layout
    manager, builder = create_new_function_pass_manager(), library._codegen._pass_builder()
    manager.add_sroa_pass()
    manager.add_simplify_cfg_pass()
    manager.add_instruction_combine_pass()
    manager.add_simplify_cfg_pass()
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
        managers = super().define_pipelines()
        # A function without functions inside has none to put into it; numba would go through its variables three times to see.
        if not any(isinstance(constant, CodeType) for constant in self.state.func_id.code.co_consts):
            for manager in managers:
                manager.passes = [one for one in manager.passes if one[0] is not InlineClosureLikes]
        return managers


class InnerCompiler(_Compiler):
    library = InnerLibrary


class OuterCompiler(_Compiler):
    library = OuterLibrary


class OnceCompiler(_Compiler):
    library = OnceLibrary


class Outer(CPUDispatcher):
    """A function that Python calls and that is made of such functions."""

    _cache: Any

    def compile(self, sig):
        ready = getattr(self._cache, "ready", None)  # a function that no file holds has no place on the disk
        if threading.current_thread() is not threading.main_thread() or (ready and ready(sig, self.targetctx)):
            return self._compile(sig)
        return watch.apart(self._compile, sig)

    def _compile(self, sig):
        quick.install()
        # Python's search for garbage looks through all that the compiler has made again and again: a fifth of its time.
        searching = gc.isenabled()
        gc.disable()
        holds = getattr(self._cache, "holds", None)  # a function that no file holds has no place on the disk
        # What is on the disk is read without waiting: another process may be compiling the same for a processor of its own, at its leisure.
        at_once = holds is None or holds(sig, self.targetctx)
        # Else one compiles, and who waited finds it on the disk.
        try:
            with nullcontext() if at_once else self._cache.alone():
                return super().compile(sig)
        finally:
            if searching:
                gc.enable()


def outer(function, compiler=OuterCompiler, **flags):
    """Compile a function that Python calls, when it is first called."""
    compiled = numba.njit(pipeline_class=compiler, **flags)(function)
    compiled.__class__ = Outer
    return compiled

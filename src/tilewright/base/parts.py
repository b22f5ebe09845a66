"""Numba's compiler for what Python calls, without collecting garbage, and for what is only ever a part of that.

Numba optimises every function together with all that it calls, and makes it native, before it goes into the next one.
Where functions are small and many, as in our engines, most of that work is thrown away. Parts are only typed and
lowered: they are optimised once, inside the function that Python calls.
"""

import gc
from itertools import count
from typing import Any

from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler

_NUMBERS = count()


class _NoEnvironment:
    """What a part has for an environment: none, as it neither raises nor calls Python."""

    @staticmethod
    def set_env(env_name: str, env: object) -> None:
        """Leave the environment unset."""


class _Part(JITCodeLibrary):
    """Code to be linked into other code, and optimised there."""

    @property
    def codegen(self) -> type[_NoEnvironment]:
        return _NoEnvironment

    def _optimize_final_module(self) -> None:
        pass

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._finalized = True


class WholeCompiler(Compiler):
    """Compiles functions that Python calls, with all that they call.

    Meanwhile no garbage is collected: to look through all that Numba holds takes a fifth of the time.
    """

    def _compile_core(self) -> Any:
        collected = gc.isenabled()
        gc.disable()
        try:
            return super()._compile_core()
        finally:
            if collected:
                gc.enable()


class PartCompiler(Compiler):
    """Compiles functions that only compiled functions call."""

    def __init__(self, typingctx: Any, targetctx: Any, library: Any, *arguments: Any) -> None:
        super().__init__(typingctx, targetctx, library, *arguments)
        if library is None:
            self.state.library = _Part(self.state.targetctx.codegen(), f"part_{next(_NUMBERS)}")
            self.state.library.enable_object_caching()

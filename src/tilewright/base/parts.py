"""Numba's compiler for functions that are only ever parts of others.

Numba optimises every function together with all that it calls, and makes it native, before it goes into the next one.
Where functions are small and many, as in our engines, most of that work is thrown away; and what the native back end
does to a function's loops on the way (it works in place) makes them slower where they end up. So parts are not made
native, and where it costs no speed they are optimised only once: inside the function that Python calls.
"""

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
    """Code to be linked into other code, optimised for itself first."""

    @property
    def codegen(self) -> type[_NoEnvironment]:
        return _NoEnvironment

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._finalized = True


class _RawPart(_Part):
    """Code to be linked into other code, and optimised there only."""

    def _optimize_final_module(self) -> None:
        pass


class OptimisedPartCompiler(Compiler):
    """Compiles parts whose loops are to be vectorised before they are put together."""

    library = _Part

    def __init__(self, typingctx: Any, targetctx: Any, library: Any, *arguments: Any) -> None:
        super().__init__(typingctx, targetctx, library, *arguments)
        if library is None:
            self.state.library = self.library(self.state.targetctx.codegen(), f"part_{next(_NUMBERS)}")
            self.state.library.enable_object_caching()


class RawPartCompiler(OptimisedPartCompiler):
    """Compiles parts in a third of the time, for code without loops that need it."""

    library = _RawPart

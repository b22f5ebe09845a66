"""How Numba compiles our engines: quickly, and anew when their sources change."""

import hashlib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])


def stamped(sources: Iterable[Path]) -> Callable[[F], F]:
    """Return a decorator that puts a hash of ``sources`` into a function's name.

    Numba's cache notices only changes in a function's own file; its entries are named after the function, so the hash
    makes it notice changes in other files whose functions and constants end up inside the function.
    """
    stamp = hashlib.sha256(b"".join(source.read_bytes() for source in sorted(sources))).hexdigest()[:12]

    def rename(function: F) -> F:
        function.__qualname__ += f"_{stamp}"
        return function

    return rename


def part_options() -> dict[str, Any]:
    """Return what to give `numba.njit` for functions that only compiled functions call.

    They are neither made callable from Python nor native by themselves, which more than halves the time.
    """
    from tilewright.base.parts import PartCompiler  # noqa: PLC0415  (Numba loads late)

    return {"no_cpython_wrapper": True, "no_cfunc_wrapper": True, "pipeline_class": PartCompiler}


def kept(dispatcher: F, before: Callable[[], None] | None = None, *, alone: bool = False) -> F:
    """Keep on disk what Numba compiles of a function, as its ``cache=True`` does, but never load damaged files.

    What is to be done ``before`` it is compiled need not be done where it is on disk. One that stands ``alone``, which
    no compiled function calls, is loaded in half the time.
    """
    from tilewright.base.caching import CheckedCache  # noqa: PLC0415  (Numba loads late)
    from tilewright.base.parts import WholeCompiler  # noqa: PLC0415

    function: Any = dispatcher
    function._compiler.pipeline_class = WholeCompiler
    function._cache = CheckedCache(function.py_func, before, alone)
    return dispatcher

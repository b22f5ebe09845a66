"""Linear algebra on one thread: the same to the last bit on any machine, and quicker for small matrices.

Searches run side by side; that each used all cores for matrices of a hundred rows would slow all of them.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from threading import Lock
from typing import Any

_LOCK = Lock()
_INSIDE: list[Any] = []


@cache
def _controller() -> Any:
    import scipy.linalg  # noqa: F401, PLC0415  (an extra; its library must be loaded to be found)
    from threadpoolctl import ThreadpoolController  # noqa: PLC0415  (comes with scikit-learn)

    return ThreadpoolController()


@contextmanager
def single_thread() -> Iterator[None]:
    """Let linear algebra use one thread until the last of those inside, on whatever threads, has left."""
    with _LOCK:
        _INSIDE.append(None if _INSIDE else _controller().limit(limits=1, user_api="blas"))
    try:
        yield
    finally:
        with _LOCK:
            # What was limited first is set free last.
            if len(_INSIDE) == 1:
                _INSIDE[0].restore_original_limits()
            _INSIDE.pop()

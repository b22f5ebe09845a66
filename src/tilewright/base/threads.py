"""Share work between threads, for compiled code that lets go of the interpreter lock."""

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from threading import current_thread
from typing import TypeVar

T = TypeVar("T")
_NAME = "tilewright-helper"


def share(work: Callable[[T], None], items: Iterable[T], threads: int) -> None:
    """Call ``work`` with every item, on so many threads, of which the caller's is one; which takes which is left open.

    On a helper's own thread all is done in turn: helpers do not wait for one another.
    """
    left = iter(list(items))

    def some() -> None:
        for item in left:
            work(item)

    if threads < 2 or current_thread().name.startswith(_NAME):
        some()
        return
    others = [_helpers(threads - 1).submit(some) for _ in range(threads - 1)]
    some()
    for other in others:
        other.result()


@cache
def _helpers(count: int) -> ThreadPoolExecutor:
    """Return ``count`` threads that help the caller's; kept, as new ones first share a core with it."""
    return ThreadPoolExecutor(count, thread_name_prefix=_NAME)

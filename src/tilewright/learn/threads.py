"""PyTorch on one thread: results that do not depend on how many cores there are."""

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock

import torch

_LOCK = Lock()
_INSIDE: list[int] = []
"""For each block under way, on any thread, the number of threads that PyTorch had before the first."""


@contextmanager
def one_thread() -> Iterator[None]:
    """Let PyTorch work on the calling thread alone; the last block to end gives back what it had before."""
    with _LOCK:
        _INSIDE.append(_INSIDE[0] if _INSIDE else torch.get_num_threads())
        torch.set_num_threads(1)
    try:
        yield
    finally:
        with _LOCK:
            before = _INSIDE.pop()
            if not _INSIDE:
                torch.set_num_threads(before)

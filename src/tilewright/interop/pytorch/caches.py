"""What language models of transformers keep from token to token, as it is exported: caches without words, and scans.

Appending to a cache, and a scan over all positions, are one call each in place of what transformers does in PyTorch.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from inspect import signature
from typing import TYPE_CHECKING, Any

from tilewright.interop.pytorch.arranged import APPEND
from tilewright.interop.pytorch.torch import selective_scan, stand_in

if TYPE_CHECKING:
    from transformers import PreTrainedModel

_CACHES = ("cache", "past_key_values")
"""What models of transformers call the cache that they are given: since 5.24, and before."""
_SCAN_OF = "mamba_selective_scan"
"""What modules of transformers call the scan: position by position, where no kernel for a GPU is installed."""


def cache_argument(model: "PreTrainedModel") -> str | None:
    """Return the argument by which a model is given keys and values of earlier tokens, None where it has none."""
    return next((name for name in _CACHES if name in signature(model.forward).parameters), None)


@contextmanager
def holding(model: "PreTrainedModel", past: int) -> Iterator[None]:
    """Let a model run with a cache of ``past`` tokens of each sequence, and hand out its first result alone.

    Layers that slide keep as many tokens as their window takes.
    """
    forward, own, name = model.forward, vars(model).get("forward"), cache_argument(model)
    assert name is not None

    def passed(**inputs: Any) -> Any:
        return forward(**inputs, **{name: _cache(model.config, past)}, use_cache=True)[0]

    model.forward = passed
    try:
        yield
    finally:
        del model.forward
        if own is not None:
            model.forward = own


@contextmanager
def scanning(model: "PreTrainedModel") -> Iterator[None]:
    """Let the selective scans of a model be one call each (Gu, Dao, Mamba, arXiv:2312.00752, algorithm 2)."""
    module = sys.modules[type(model).__module__]
    scan = getattr(module, _SCAN_OF, None)
    if scan is not None:
        setattr(module, _SCAN_OF, selective_scan)
    try:
        yield
    finally:
        if scan is not None:
            setattr(module, _SCAN_OF, scan)


def _appended(new: Any, positions: int) -> Any:
    return new.new_empty((*new.shape[:-2], positions, new.shape[-1]))


def _cache(config: Any, past: int) -> Any:
    """Return a cache that holds ``past`` tokens before the pass."""
    from transformers.cache_utils import DynamicCache, DynamicLayer, DynamicSlidingWindowLayer  # noqa: PLC0415

    append = stand_in(APPEND, "(Tensor new, SymInt positions) -> Tensor", _appended)

    class Held(DynamicLayer):  # type: ignore[misc]
        """Keys and values of one layer."""

        def __init__(self, window: int = 0) -> None:
            super().__init__()
            self.is_sliding, self.kept = window > 0, min(past, window - 1) if window else past

        def update(self, key_states: Any, value_states: Any, *args: Any, **kwargs: Any) -> tuple[Any, Any]:
            positions = self.kept + key_states.shape[-2]
            return append(key_states, positions), append(value_states, positions)

        def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
            return self.kept + query_length, past - self.kept

        def get_seq_length(self) -> int:
            return past

    found = DynamicCache(config=config)
    kinds = (DynamicLayer, DynamicSlidingWindowLayer)
    found.layers = [Held(getattr(layer, "sliding_window", 0)) if type(layer) in kinds else layer
                    for layer in found.layers]
    found.layer_class_to_replicate = Held if found.layer_class_to_replicate is not None else None
    return found

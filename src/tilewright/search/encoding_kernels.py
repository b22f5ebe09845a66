"""Compiled encoding of mappings as a network is shown them (`surrogate.Family`)."""
# ruff: noqa: PLR0913, PLR0917  (arrays as arguments compile fastest)

from typing import Any

import numpy as np
from numba import njit

from tilewright.base import kept

TOGETHER = 64
"""Mappings written at a time, so that their rows stay at hand."""


@kept
@njit(nogil=True, error_model="numpy")
def encode(steps: Any, ranks: Any, sizes: Any, logs: Any, layer: Any, counts: Any, orders: Any, features: Any) -> None:
    """Fill ``features`` ``(b, f)``, which begin as ``layer`` ``(f)``, with the mappings ``steps`` and ``ranks``.

    ``logs`` are logarithms (base 2) of whole numbers from 0 on; ``counts`` ``(s)`` and ``orders`` ``(s)`` the columns
    where the counts of a slot are added, and where its loop order goes (-1: nowhere).
    """
    slots, dims = steps.shape[0], steps.shape[1]
    scale = np.float32(1.0 / max(1, dims - 1))
    for start in range(0, len(features), TOGETHER):
        end = min(start + TOGETHER, len(features))
        for b in range(start, end):
            features[b] = layer
        for s in range(slots):
            for d in range(dims):
                column = counts[s] + d
                for b in range(start, end):
                    outer = sizes[d] if s == 0 else steps[s - 1, d, b]
                    features[b, column] += logs[outer] - logs[steps[s, d, b]]
                if orders[s] >= 0:
                    column = orders[s] + d
                    for b in range(start, end):
                        features[b, column] = ranks[s, d, b] * scale

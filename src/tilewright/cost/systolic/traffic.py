"""DRAM traffic of a layer on a systolic array whose three memories each have two halves: one in use, one on its way.

What the half in use must hold, and what comes again where it does not:

- *Inputs* come once where the words of a product fit whole. Otherwise every round of columns asks for them again;
  within a round a word comes again only where the half was emptied since (`tilewright.cost.systolic.streams`), so that
  windows that overlap share what lies near.
- *Weights* come once where they fit whole, where each rests for its one fold (ws), or where the columns' tile stays
  through all row folds (os). Otherwise they come for every fold that uses them.
- *Outputs* leave once where no reduction is folded, or where its block of partial sums fits. Otherwise every fold
  writes them out, and every later one reads them back.
"""

from dataclasses import dataclass

import numpy as np

from tilewright.base import InputError
from tilewright.cost.systolic.products import SystolicProduct
from tilewright.cost.systolic.records import SYSTOLIC_RULES, SystolicArray, SystolicConventions, SystolicWords
from tilewright.workload import Operator

_SETS = 100


@dataclass(frozen=True)
class _Run:
    """A product on an array: its folds and the words of a half."""

    product: SystolicProduct
    array: SystolicArray
    conventions: SystolicConventions

    @property
    def row_folds(self) -> int:
        return -(-(self.product.m if self.array.dataflow == "os" else self.product.k) // self.array.rows)

    @property
    def column_folds(self) -> int:
        return -(-(self.product.m if self.array.dataflow == "is" else self.product.n) // self.array.columns)

    def half(self, words: int | None) -> int | None:
        """Return the words of the half in use."""
        if words is None:
            return None
        if not self.conventions.hundredth_sets:
            return words // 2
        if words < _SETS:
            raise InputError("memories", f"must hold {_SETS} words or more to be counted as SCALE-Sim does", words)
        return words // _SETS * (_SETS // 2)

    def inputs(self) -> int:
        """Return the words of inputs that come in for one product."""
        product, half = self.product, self.half(self.array.memories.inputs)
        if self.conventions.hundredth_sets:
            return self._input_stream(half, self.column_folds if self.array.dataflow != "is" else 1)
        if half is None or product.input_words <= half:
            return product.input_words
        rounds = 1 if self.array.dataflow == "is" else self.column_folds
        if product.input_words == product.m * product.k:
            return rounds * product.m * product.k
        return rounds * self._input_stream(half, 1)

    def _input_stream(self, half: int | None, rounds: int) -> int:
        from tilewright.cost.systolic.streams import (  # noqa: PLC0415  (Numba loads late)
            NEVER,
            resting_fetches,
            skewed_fetches,
        )

        by_row, by_column, count = self.product.input_addresses()
        held_since = np.zeros(count, dtype=np.int64)
        if self.conventions.reach_beyond:
            held_since[self.product.beyond()] = NEVER
        rule = (-1 if half is None else half, self.conventions.hundredth_sets, held_since)
        if self.array.dataflow == "is":
            return int(resting_fetches(by_column, by_row, self.array.rows, self.array.columns, *rule))
        lanes, times = (by_row, by_column) if self.array.dataflow == "os" else (by_column, by_row)
        return int(skewed_fetches(lanes, times, self.array.rows, rounds, 1, *rule))

    def weights(self) -> int:
        """Return the words of weights that come in for one product."""
        n, k, half = self.product.n, self.product.k, self.half(self.array.memories.weights)
        if self.array.dataflow == "ws":
            return n * k
        if self.conventions.hundredth_sets:
            return self._weight_stream(half)
        if half is None or n * k <= half:
            return n * k
        if self.array.dataflow == "is":
            return n * k * self.column_folds
        return sum(words if words <= half else words * self.row_folds
                   for words in (k * width for width in self._widths(n)))

    def _weight_stream(self, half: int | None) -> int:
        from tilewright.cost.systolic.streams import skewed_fetches  # noqa: PLC0415  (Numba loads late)

        n, k = self.product.n, self.product.k
        down, across = np.arange(k, dtype=np.int64) * n, np.arange(n, dtype=np.int64)
        rule = (-1 if half is None else half, True, np.zeros(n * k, dtype=np.int64))
        if self.array.dataflow == "os":
            return int(skewed_fetches(across, down, self.array.columns, 1, self.row_folds, *rule))
        return int(skewed_fetches(down, across, self.array.rows, self.column_folds, 1, *rule))

    def outputs(self) -> tuple[int, int]:
        """Return the words of outputs and partial sums that go out, and that come back, for one product."""
        m, n, half = self.product.m, self.product.n, self.half(self.array.memories.outputs)
        if self.array.dataflow == "os" or self.row_folds == 1:
            return m * n, 0
        if self.conventions.partial_sums_leave:
            return m * n * self.row_folds, 0 if self.conventions.unread_partial_sums else m * n * (self.row_folds - 1)
        streamed, across = (n, m) if self.array.dataflow == "is" else (m, n)
        blocks = [streamed * width for width in self._widths(across)]
        leaving = sum(block for block in blocks if half is not None and block > half)
        return m * n + leaving * (self.row_folds - 1), leaving * (self.row_folds - 1)

    def _widths(self, across: int) -> list[int]:
        """Return the columns that each column fold uses."""
        return [min(self.array.columns, across - first) for first in range(0, across, self.array.columns)]


def systolic_words(operator: Operator, array: SystolicArray,
                   conventions: SystolicConventions = SYSTOLIC_RULES) -> SystolicWords:
    """Return the words that a layer moves between DRAM and the memories of a systolic array.

    Raises an `InputError` if the operator is neither a matrix product nor a convolution, or a memory too small for the
    conventions.
    """
    product = SystolicProduct.of(operator)
    run = _Run(product, array, conventions)
    out, back = run.outputs()
    return SystolicWords(run.inputs() * product.count, run.weights() * product.count, out * product.count,
                         back * product.count)

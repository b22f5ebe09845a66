"""Operators as the matrix products that a systolic array runs: which dimensions are M, N and K, where its words lie."""

from dataclasses import dataclass
from functools import cached_property
from math import prod

import numpy as np
from numpy.typing import NDArray

from tilewright.base import InputError
from tilewright.workload import Operator, Tensor

Words = NDArray[np.int64]


@dataclass(frozen=True)
class SystolicProduct:
    """One operator as ``count`` products ``O[M, N] += I[M, K] * W[K, N]`` one after the other."""

    operator: Operator
    inputs: Tensor
    weights: Tensor
    m_names: tuple[str, ...]
    n_names: tuple[str, ...]
    k_names: tuple[str, ...]
    """``m_names``, ``n_names`` and ``k_names``: dimensions that M, N and K run through, outermost first. Of K, those of
    windows come first (rows and columns of the kernel), channels last, as SCALE-Sim has them."""
    count: int
    """Products: batches and groups of which each operand has its own part."""

    @classmethod
    def of(cls, operator: Operator) -> "SystolicProduct":
        """Return an operator of two operands as products.

        Raises an `InputError` if it has not two operands, its output slides, or a dimension belongs to one tensor
        alone.
        """
        if len(operator.operands) != 2:
            raise InputError(operator.name, "must have two operands to be a matrix product", len(operator.operands))
        if any(len(axis.terms) > 1 for axis in operator.output.axes):
            raise InputError(operator.name, "must not slide its output to be a matrix product", operator.kind)
        inputs, weights = sorted(operator.operands, key=lambda tensor: tensor.role == "weights")
        found: dict[str, list[str]] = {"m": [], "n": [], "k": [], "count": []}
        for name, _ in operator.dimensions:
            users = (name in inputs.dimensions, name in weights.dimensions, name in operator.output.dimensions)
            kind = {(True, False, True): "m", (False, True, True): "n", (True, True, False): "k",
                    (True, True, True): "count"}.get(users)
            if kind is None:
                raise InputError(f"{operator.name}.{name}", "must belong to two tensors or more in a matrix product")
            found[kind].append(name)
        windows = [name for axis in inputs.axes if len(axis.terms) > 1 for name in axis.dimensions]
        reduced = sorted(found["k"], key=lambda name: windows.index(name) if name in windows else len(windows))
        return cls(operator, inputs, weights, tuple(found["m"]), tuple(found["n"]), tuple(reduced),
                   prod(operator.sizes[name] for name in found["count"]))

    def size(self, names: tuple[str, ...]) -> int:
        """Return the product of the sizes of some dimensions."""
        return prod(self.operator.sizes[name] for name in names)

    @property
    def m(self) -> int:
        """Rows of the inputs and outputs."""
        return self.size(self.m_names)

    @property
    def n(self) -> int:
        """Columns of the weights and outputs."""
        return self.size(self.n_names)

    @property
    def k(self) -> int:
        """Columns of the inputs, rows of the weights."""
        return self.size(self.k_names)

    @cached_property
    def input_words(self) -> int:
        """Words of the inputs of one product, each once, however many windows it is in."""
        return self.inputs.words(self._extents)

    @property
    def _extents(self) -> dict[str, int]:
        """Sizes of the dimensions of one product."""
        return {name: size if name in (*self.m_names, *self.k_names) else 1 for name, size in self.operator.dimensions}

    def input_addresses(self) -> tuple[Words, Words, int]:
        """Return the parts of the inputs' addresses by row (m) and by column (k), and how many addresses there are."""
        spans = [axis.words(self._extents, box=True) for axis in self.inputs.axes]
        strides = [prod(spans[index + 1:]) for index in range(len(spans))]
        parts = []
        for names in (self.m_names, self.k_names):
            index = _indices(names, self.operator.sizes)
            parts.append(sum((stride * scale * index[name]
                              for axis, stride in zip(self.inputs.axes, strides, strict=True)
                              for name, scale in axis.terms if name in names),
                             np.zeros(self.size(names), dtype=np.int64)))
        return parts[0], parts[1], prod(spans)

    def beyond(self) -> Words:
        """Return the addresses of inputs past the edge, where the last window hangs over it."""
        spans = [axis.words(self._extents, box=True) for axis in self.inputs.axes]
        limits = self._limits()
        sliding = [index for index, axis in enumerate(self.inputs.axes) if len(axis.terms) > 1]
        over = np.zeros(spans, dtype=bool)
        for index, limit in zip(sliding, limits, strict=False):
            over[(slice(None),) * index + (slice(limit, None),)] = True
        return np.flatnonzero(over)

    def _limits(self) -> list[int]:
        """Return the padded size of the input along each sliding axis; empty where it is not known."""
        known = dict(self.operator.attributes)
        if "in_size" not in known or "padding" not in known:
            return []
        sizes = [int(part) for part in str(known["in_size"]).split("x")]
        sides = [[int(side) for side in part.split(":")] for part in str(known["padding"]).split("x")]
        return [size + sum(side * 2 if len(side) == 1 else side) for size, side in zip(sizes, sides, strict=True)]


def _indices(names: tuple[str, ...], sizes: dict[str, int]) -> dict[str, Words]:
    """Return each dimension's index at every step of a loop nest of ``names``, outermost first."""
    shape = [sizes[name] for name in names]
    if not names:
        return {}
    return dict(zip(names, np.indices(shape, dtype=np.int64).reshape(len(names), -1), strict=True))

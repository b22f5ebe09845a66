"""What chains of single extents add to numbers (see `ragged_space`): pieces and remainders counted one by one."""

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilewright.cost.reference.proof_space import Indices, Values
from tilewright.cost.reference.ragged_space import Case, RaggedSpace, SlidingAxis

Pieces = tuple[Values, Values]
"""``(n, k)``: extents of pieces of a dimension, and how many there are of each (whole numbers)."""


def ceil_div(a: Any, b: Any) -> Any:
    """Return a quotient, rounded up."""
    return -(-a // b)


def longer(size: int, extent: Any, other: int) -> Any:
    """Return the most that pieces of a dimension, none above ``extent``, are longer than ``other``, all together."""
    many = size // extent
    return many * np.maximum(0, extent - other) + np.maximum(0, size - many * extent - other)


def again(space: RaggedSpace, window: SlidingAxis, over: tuple[Any, Any]) -> Any:
    """Return how often words of a window cross where its tiles come in whole (a logarithm).

    Sums over all tiles follow from how much longer pieces of both dimensions are than what hides words (rule 1).
    """
    p, r = space.sizes[window.first], space.sizes[window.second]
    return np.log(np.maximum((p * r - over[0] * over[1]) / window.words(p, r), 1.0))


def may_part(space: RaggedSpace, extents: Indices) -> NDArray[np.bool_]:
    """Whether chains may have extents between the sides of some array that do not divide there."""
    found = np.zeros(len(extents), dtype=np.bool_)
    for v, (array, m) in enumerate(space.passages):
        if array and space.folds(m):
            outside, inside = extents[:, v], extents[:, v + 1]
            found |= ((outside > inside + 1) & (inside > 1)).any(axis=1)
    return found


@dataclass(frozen=True, eq=False)
class ChainCounts:
    """Chains (n) of a group of dimensions.

    Between the two sides of an array extents may be any. Those that divide there as their lanes do are counted here, or
    else, for ``parted`` chains, nothing of what is cut further in.
    """

    space: RaggedSpace
    case: Case
    group: tuple[int, ...]
    extents: Indices
    """``(n, v, k)``: extents at every node."""
    parted: bool
    _counts: dict[tuple[int, tuple[bool, ...]], Values] = field(default_factory=dict, init=False)
    """Logarithms of pieces, by place in the group and which passages are counted."""

    @cached_property
    def lanes(self) -> dict[int, list[Indices]]:
        """Lanes of the array inside a memory, by dimension of the group."""
        found = {}
        for v, (array, m) in enumerate(self.space.passages):
            if array:
                found[m] = [ceil_div(self.extents[:, v, k], self.extents[:, v + 1, k]) for k in range(len(self.group))]
        return found

    def _pieces(self, k: int, node: int, kept: list[bool]) -> tuple[Pieces, NDArray[np.bool_]]:
        """Return the pieces of a dimension at a node, and whether nothing is told of what is cut further in.

        Of passages that are not ``kept`` only the first turn counts.
        """
        extents, count = self.extents[:, :, k, None].astype(float), len(self.extents)
        of, many, ended = np.ones((count, node + 1)), np.zeros((count, node + 1)), np.zeros((count, 1), dtype=np.bool_)
        of[:, :1], many[:, 0], kinds = extents[:, 0], 1.0, 1
        for v, (array, m) in enumerate(self.space.passages[:node]):
            step, now, times = extents[:, v + 1], of[:, :kinds], many[:, :kinds]
            if not kept[v]:
                of[:, :kinds] = np.where(ended, now, np.minimum(now, step))
                continue
            # Quotients of whole numbers below 2**52 are rounded down to the right ones.
            whole = np.floor(now / step)
            cut, rest = (whole * times).sum(axis=1, keepdims=True), now - whole * step
            kinds += 1
            of[:, :kinds] = np.where(ended, of[:, :kinds], np.hstack([rest, step]))
            many[:, :kinds] = np.where(ended, many[:, :kinds], np.hstack([np.where(rest > 0, times, 0.0), cut]))
            if array and self.parted and self.space.folds(m):
                ended = ended | ((extents[:, v] > step) & (step > 1))
        return (of, many), ended[:, 0]

    def _count(self, k: int, node: int, kept: list[bool]) -> Values:
        key = k, tuple(kept[:node])
        if key not in self._counts:
            (_, many), _ = self._pieces(k, node, kept)
            self._counts[key] = np.log(many.sum(axis=1))
        return self._counts[key]

    def _longer(self, k: int, node: int, other: int) -> Values:
        """Return how much longer the pieces at a node are than ``other``, all together, at most."""
        (of, many), ended = self._pieces(k, node, [True] * node)
        found: Values = np.where(ended, longer(self.space.sizes[self.group[k]], self.extents[:, node, k], other),
                                 (np.maximum(0, of - other) * many).sum(axis=1))
        return found

    def _last(self, k: int, node: int) -> Values:
        """Return the values of a dimension in the last tile of the first lane, which is as large as any (rule 8)."""
        left = self.extents[:, 0, k]
        for v in range(node):
            step, (array, _) = self.extents[:, v + 1, k], self.space.passages[v]
            left = np.minimum(left, step) if array else (left - 1) % step + 1
        logs: Values = np.log(left)
        return logs

    @cached_property
    def numbers(self) -> Values:
        """``(n, y)``: what chains add to numbers, but for lanes along sides."""
        space, nodes = self.space, self.extents.shape[1]
        found = np.zeros((len(self.extents), len(space.names)))
        for place, (what, e, _) in enumerate(space.names):
            if what in {"out", "in"}:
                self._cross(found[:, place], e, out=what == "out")
        in_time = [not array for array, _ in space.passages]
        for k, d in enumerate(self.group):
            found[:, 1] += self._count(k, nodes - 1, in_time) - np.log(space.sizes[d])
        for content in space.contents(self.case)[0]:
            own = found[:, content.number]
            if content.what in {"words", "last"}:
                for window in space.slid(content.of, self.group):
                    own += np.log(window.words(*self.extents[:, content.node].T))
                for k, _ in space.plain(content.of, self.group):
                    own += np.log(self.extents[:, content.node, k]) if content.what == "words" else self._last(
                        k, content.node)
            elif content.what == "window" and space.windows[content.of] in space.slid(
                    space.windows[content.of].tensor, self.group):
                window = space.windows[content.of]
                own += again(space, window, (self._longer(0, content.node, window.dilation),
                                             self._longer(1, content.node, window.stride)))
        return found

    def _cross(self, found: Values, e: int, *, out: bool) -> None:
        """Add to how often words cross an edge: by pieces that the tensor does not use, of lanes that share one."""
        space, edge = self.space, self.space.edges[e]
        shared = [array and out and space.gathers(edge, m) for array, m in space.passages]
        if edge.child == len(space.memories):
            for k, d in enumerate(self.group):
                if space.unused[d, edge.tensor]:
                    found += self._count(k, len(shared), [not one for one in shared]) - np.log(space.sizes[d])
            for window in space.slid(edge.tensor, self.group):
                lanes = [np.prod([own[k] for (array, m), one in zip(space.passages, shared, strict=True) if one
                                  for own in [self.lanes[m]]], axis=0) for k in range(2)]
                found += np.log(window.words(*lanes) / (lanes[0] * lanes[1]))
            return
        moment = space.moment(edge.tensor, edge.child, self.case)
        kept = [not one if array else moment is not None and m < moment.memory + (not moment.stays)
                for (array, m), one in zip(space.passages, shared, strict=True)]
        for k, d in enumerate(self.group):
            if space.unused[d, edge.tensor]:
                found += self._count(k, space.node(edge.child), kept)

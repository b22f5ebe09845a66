"""What the compute units ask of the memories that feed them: the least over all ways to spread lanes.

At every step a unit asks for one word of each tensor (rule 6). Lanes that want the same word share the access where the
network can: along the dimensions that a tensor does not use, and where windows overlap along a sliding axis. The lanes
of all dimensions together are at most the instances of the machine, so what serves one tensor is lost to the others.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from tilewright.cost.bounds.groups import Floats, Tiles, ranges
from tilewright.cost.bounds.rows import MachineRows
from tilewright.workload import Operator

_EXACT, _RANGES = 64, 40


@dataclass(frozen=True)
class ComputeStage:
    """Accesses by the compute units to the innermost memory of each tensor's chain."""

    tiles: Tiles
    rows: MachineRows
    feeding: dict[str, str]

    @property
    def _operator(self) -> Operator:
        return self.tiles.operator

    def least(self, weights: Floats) -> Floats:
        """Return (s, r) the least sums of accesses over tensors, weighted with ``weights`` (s, t, r)."""
        found = np.empty((len(weights), self.rows.count))
        alike: dict[tuple[int, ...], list[int]] = {}
        for row, arrays in enumerate(self._arrays.T.tolist()):
            alike.setdefault(tuple(arrays), []).append(row)
        for (total, *each), rows in alike.items():
            own = weights[:, :, rows].transpose(0, 2, 1).reshape(-1, len(each))
            found[:, rows] = (own @ self._accesses(total, each).T).min(axis=1).reshape(len(weights), -1)
        return found

    def alone(self, name: str) -> Floats:
        """Return (r) the fewest accesses for one tensor."""
        tensor, place = self._operator.tensor(name), self._operator.tensors.index(self._operator.tensor(name))
        total, each = self._arrays[[0, 1 + place]]
        shared = [self._shared(lanes)[:, place].max() for lanes in total.tolist()]
        return self._asked(tensor.words(self._operator.sizes), np.minimum(shared, each))

    def _accesses(self, total: int, each: list[int]) -> Floats:
        """Return accesses (c, t) for each way to spread so many lanes, of all steps together; made once."""
        return self.tiles.once((total, *each), lambda: self._spread_accesses(total, each))

    def _spread_accesses(self, total: int, each: list[int]) -> Floats:
        words = [tensor.words(self._operator.sizes) for tensor in self._operator.tensors]
        return self._asked(words, np.minimum(self._shared(total), each))

    def _asked(self, words: int | list[int], shared: Floats) -> Floats:
        """Return accesses of which so many lanes share one, each word once at least."""
        asked: Floats = np.maximum(words, self._operator.macs / shared * (1 - 1e-12))
        return asked

    def _shared(self, total: int) -> Floats:
        return self.tiles.once(total, lambda: self.shared([total])[0])

    def shared(self, totals: Sequence[int]) -> list[Floats]:
        """Return (c, t) of each total: how many of its lanes may share a tensor's words, by way to spread them."""
        operator, (counts, low, high) = self._operator, self._spreads(totals)
        total, found = np.repeat(totals, counts), []
        names = [group.tensor for group in self.tiles.groups]
        for tensor in operator.tensors:
            shared = high[:, names.index(tensor.name)] if tensor.name in names else np.ones(len(high))
            for dim, size in operator.dimensions:
                if dim not in tensor.dimensions and dim not in self.tiles.group_of:
                    shared = shared * np.minimum(size, total)
            found.append(shared * self._overlap(tensor.name, low, high))
        # All of one layout: kernels that read it are compiled for that.
        return np.split(np.stack(found, axis=1), np.cumsum(counts)[:-1])

    @cached_property
    def _arrays(self) -> NDArray[np.int64]:
        """Return (1 + t, r) the instances inside the outermost feeding memory, and those that may share words."""
        total, each = np.ones(self.rows.count, dtype=np.int64), []
        for tensor in self._operator.tensors:
            arrays = self.rows.inside[self.feeding[tensor.name]]
            total = np.maximum(total, self.rows.lanes(arrays))
            each.append(self.rows.sharing(tensor, arrays))
        return np.array([total, *each])

    def _spreads(self, totals: Sequence[int]) -> tuple[list[int], Floats, Floats]:
        """Return the ways to spread each total, and the least and the most lanes (c, g) of all along each group.

        Two groups go through ranges that make up all numbers of lanes; the largest other takes what is left, and any
        further group all that it can use.
        """
        sizes = [float(np.prod([self._operator.sizes[name] for name in group.dimensions], dtype=np.float64))
                 for group in self.tiles.groups]
        order = sorted(range(len(sizes)), key=lambda place: sizes[place])
        ranged = order[:-1][-2:]
        parts = [_boxes(total, *(int(min(sizes[place], total)) for place in ranged)) for total in totals]
        firsts, lasts, lanes = (np.concatenate(columns) for columns in zip(*parts, strict=True))
        counts = [len(part[2]) for part in parts]
        low, high = np.ones((2, len(lanes), len(sizes)))
        low[:, ranged], high[:, ranged] = firsts, lasts
        for place in order[:-3]:
            high[:, place] = np.minimum(sizes[place], np.repeat(totals, counts))
        if order:
            high[:, order[-1]] = np.minimum(sizes[order[-1]], np.repeat(totals, counts) / lanes)
        return counts, low, high

    def _overlap(self, name: str, low: Floats, high: Floats) -> Floats:
        """Return (c) how many lanes, at most, want one word along sliding axes."""
        tensor = self._operator.tensor(name)
        pairs = [axis.dimensions for axis in tensor.axes if len(axis.terms) > 1]
        most = np.ones(len(low))
        for axis in (axis for axis in tensor.axes if len(axis.terms) > 1):
            most = most * np.prod([self._operator.sizes[d] for d in axis.dimensions]) / axis.words(self._operator.sizes)
        groups = {self.tiles.group_of.get(d) for pair in pairs for d in pair if self._operator.sizes[d] > 1}
        if len(groups) != 2 or None in groups:
            return most
        first, second = (group for group in groups if group is not None)
        lanes = high[:, first] * high[:, second]
        words = self.tiles.boxes(tensor, {first: low[:, first], second: low[:, second]})
        return np.minimum(most, lanes / np.minimum(words, lanes))


@lru_cache(maxsize=256)
def _boxes(total: int, *most: int) -> tuple[Floats, ...]:
    """Return the ends (c, n) of all boxes of ranges that make up 1 to each of ``most``, and products of the first.

    Those that begin within a ``total``; kept, as layers share them.
    """
    low, high = np.ones((2, 1, 0))
    for each in most:
        low, high = (np.column_stack([np.repeat(known, len(end), axis=0), np.tile(end, len(known))])
                     for known, end in zip((low, high), ranges(each, _EXACT, _RANGES), strict=True))
    lanes = low.prod(axis=1)
    within = lanes <= total
    return low[within], high[within], lanes[within]

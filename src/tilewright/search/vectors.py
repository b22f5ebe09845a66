"""Mappings as points of a unit cube, for optimisers that know numbers alone."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from tilewright.base import InputError
from tilewright.mapping import MappingBatch, MapSpace

REST = 0.5
"""Numbers up to this leave a loop out: of few loops many points are made, not only some on the cube's faces."""
LAST = 2.0


@dataclass(frozen=True)
class VectorSpace:
    """A map space as the points of ``[0, 1]^n``, all four axes of a mapping among them (``b`` points, ``n`` numbers).

    Each slot (a memory, or a side of an array) where a dimension may loop has a number for that dimension: what it is
    above `REST`, as a share of the sum over the dimension's slots, is the slot's share of the logarithm of the size.
    Each memory has a number for every dimension that may loop there: its loops stand in the order of these. Steps are
    rounded to integers, and what is then not a mapping of the space is replaced by one near it (`MapSpace.repair`).
    So every point is a mapping of the space (its tiles may not fit the memories), and every mapping is many points.
    """

    space: MapSpace

    @cached_property
    def _tiles(self) -> tuple[NDArray[np.intp], ...]:
        """Slots and dimensions of the numbers for tiles."""
        free = self.space.arrays.free != 0
        return tuple(np.nonzero(free & (free.sum(axis=0) > 1)))

    @cached_property
    def _orders(self) -> tuple[NDArray[np.intp], ...]:
        """Slots and dimensions of the numbers for loop orders."""
        free = self.space.arrays.free != 0
        temporal = np.array([slot.axis == "T" for slot in self.space.layout.slots])
        return tuple(np.nonzero(free & temporal[:, None] & (free.sum(axis=1, keepdims=True) > 1)))

    @property
    def dimension(self) -> int:
        """``n``; at least 2, as there are optimisers that refuse fewer, of which then some say nothing."""
        return max(2, len(self._tiles[0]) + len(self._orders[0]))

    def decode(self, vectors: NDArray[np.float64]) -> MappingBatch:
        """Return the mappings of ``(b, n)`` points; numbers out of ``[0, 1]`` count as the nearest in it.

        Each is a function of its own point alone.

        Raises an `InputError` if the points have another number of numbers, or one is not a number.
        """
        vectors = np.asarray(vectors, dtype=np.float64)
        if vectors.ndim != 2 or vectors.shape[1] != self.dimension:
            raise InputError("vectors", f"must have shape (b, {self.dimension})", vectors.shape)
        if np.isnan(vectors).any():
            raise InputError("vectors", "must be numbers", "NaN")
        values, arrays = np.clip(vectors, 0.0, 1.0).T, self.space.arrays
        count, tiles = len(vectors), len(self._tiles[0])
        shares = np.zeros((*self.space.layout.shape, count))
        shares[self._tiles] = np.maximum(values[:tiles] - REST, 0.0)
        whole = shares.sum(axis=0)
        anchors, every = arrays.anchor, np.arange(len(arrays.anchor))
        shares[anchors, every] += whole == 0.0
        inside = np.zeros_like(shares)
        np.cumsum(shares[:0:-1], axis=0, out=inside[-2::-1])
        inside /= np.where(whole == 0.0, 1.0, whole)
        steps = np.rint(np.exp(inside * np.log(arrays.sizes)[None, :, None])).astype(np.int32)
        keys = np.full(shares.shape, LAST)
        keys[:, arrays.sizes == 1] = LAST + 1.0
        keys[self._orders] = values[tiles:tiles + len(self._orders[0])]
        ranks = keys.argsort(axis=1, kind="stable").argsort(axis=1, kind="stable").astype(np.int8)
        return self.space.repair(MappingBatch(self.space.layout, steps, ranks))

    def encode(self, batch: MappingBatch) -> NDArray[np.float64]:
        """Return ``(b, n)``: a point for each mapping of the space, which `decode` takes back to that mapping.

        The order of loops that run once is lost.
        """
        arrays = self.space.arrays
        shares = np.log(batch.outside(arrays.sizes)) - np.log(batch.steps)
        largest = shares.max(axis=0)
        shares = shares / np.where(largest > 0.0, largest, 1.0)
        places = np.where(shares > 0.0, REST + (1.0 - REST) * shares, REST / 2.0)
        keys = (batch.ranks + 0.5) / batch.ranks.shape[1]
        points = np.full((len(batch), self.dimension), 0.5)
        found = np.concatenate([places[self._tiles], keys[self._orders]])
        points[:, :len(found)] = found.T
        return points

"""What there is to choose from for a matrix product, and what each choice takes: the exact adviser."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from tilewright.cost import (
    STALL_FREE,
    ArrayConfiguration,
    PartitionEffects,
    ReconfigurableArray,
    best_configurations,
    partitioned_cycles,
)

Whole = NDArray[np.int64]
AT_ONCE = 1 << 14
"""Products whose figures are held at one time."""
TIE_RULE = ("cycles", "partitions", "os, ws, is", "reads", "rows, down, columns")
"""What decides between configurations, in this order; less is better."""


@dataclass(frozen=True)
class Labels:
    """The best of ``p`` products: ``classes`` (places in `Choices.configurations`), ``cycles``, and ``equals``.

    ``equals`` is how many configurations take no more cycles, the best among them by `TIE_RULE`.
    """

    classes: Whole
    cycles: Whole
    equals: Whole


@dataclass(frozen=True)
class Choices:
    """Configurations of an array (of one of its spaces), and what is modelled of a run on one."""

    array: ReconfigurableArray
    space: str = "realisable"
    effects: PartitionEffects = STALL_FREE

    @cached_property
    def configurations(self) -> tuple[ArrayConfiguration, ...]:
        """All of them; a place in here is a class."""
        return self.array.configurations(self.space)

    def best(self, products: Whole, threads: int = 1) -> Labels:
        """Return the best configuration of products ``(p, 3)`` (m, n, k), found among all.

        Raises
        ------
        InputError
            If a size is not positive, or a count would need more than 61 bits.
        """
        found = best_configurations(products, self.configurations, self.array, self.effects, threads=threads)
        return Labels(found.index, found.cycles, found.equals)

    def cycles(self, products: Whole, classes: Whole) -> Whole:
        """Return ``(p, j)``: what products take on ``j`` configurations of their own, ``classes`` ``(p, j)``."""
        found = np.empty(classes.shape, dtype=np.int64)
        for each in np.unique(classes):
            rows, places = np.nonzero(classes == each)
            found[rows, places] = self.all_cycles(products[rows], (int(each),))[:, 0]
        return found

    def all_cycles(self, products: Whole, classes: Sequence[int]) -> Whole:
        """Return ``(p, c)``: what all products take on each of some configurations."""
        chosen = tuple(self.configurations[each] for each in classes)
        parts = [partitioned_cycles(products[first:first + AT_ONCE], chosen, self.array, self.effects)
                 for first in range(0, len(products), AT_ONCE)]
        return np.concatenate(parts) if parts else np.empty((0, len(chosen)), dtype=np.int64)

    def bound(self, products: Whole) -> Whole:
        """Return ``(p)``: cycles that no configuration can do with less of, as units do one multiplication a cycle."""
        work: Whole = products.prod(axis=1)
        return -(-work // self.array.macs)

    def least(self, products: Whole) -> Whole:
        """Return ``(p)``: cycles that no configuration of the space can do with less of; the least, where stall-free.

        Configurations whose sub-arrays reach as many rows and as many columns all together fold a product equally
        often. Of these, the one of the smallest sub-arrays fills and drains soonest, and has the smallest blocks;
        effects only add to that. So one of each family is counted, 33 of 858 on SAGAR, without effects.
        """
        return best_configurations(products, self._smallest, self.array).cycles

    @cached_property
    def _smallest(self) -> tuple[ArrayConfiguration, ...]:
        """Of each family (rows and columns reached, dataflow) the configuration of the smallest sub-arrays."""
        found = {(one.rows * one.down, one.columns * one.across, one.dataflow): one for one in sorted(
            self.configurations, key=lambda one: one.rows * one.columns, reverse=True)}
        return tuple(found.values())

    @cached_property
    def mark(self) -> str:
        """A hash of array, space, effects and tie rule: classes of other choices mean something else."""
        told = {"array": {name: value for name, value in self.array.record().items() if name != "name"},
                "space": self.space, "effects": asdict(self.effects), "ties": TIE_RULE}
        return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()[:16]

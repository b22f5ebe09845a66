"""What there is to choose from for a matrix product, and what each choice takes: the exact adviser."""

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from tilewright.base import InputError
from tilewright.cost import (
    STALL_FREE,
    TIE_RULE,
    ArrayConfiguration,
    PartitionEffects,
    ReconfigurableArray,
    array_energy,
    best_configurations,
    partitioned_counts,
    partitioned_cycles,
    partitioned_energy,
)

Whole = NDArray[np.int64]
Real = NDArray[np.float64]
Figures = NDArray[np.int64] | NDArray[np.float64]
Number = TypeVar("Number", bound=np.generic)
AT_ONCE = 1 << 14
"""Products whose figures are held at one time."""


@dataclass(frozen=True)
class Labels:
    """The best of ``p`` products: ``classes`` (places in `Choices.configurations`), ``cycles``, and ``equals``.

    ``equals`` is how many configurations are as good by the objective, the best among them by the tie rule.
    """

    classes: Whole
    cycles: Whole
    equals: Whole


@dataclass(frozen=True)
class Choices:
    """Configurations of an array (of one of its spaces), what is modelled of a run on one, and what is to be least."""

    array: ReconfigurableArray
    space: str = "realisable"
    effects: PartitionEffects = STALL_FREE
    objective: str = "latency"
    """One of `tilewright.cost.ARRAY_OBJECTIVES`; those of energy need the power of the array."""
    ties: tuple[str, ...] = TIE_RULE
    """What decides between equals, in this order: words of `tilewright.cost.TIE_RULE`."""

    @cached_property
    def configurations(self) -> tuple[ArrayConfiguration, ...]:
        """All of them; a place in here is a class."""
        return self.array.configurations(self.space)

    def best(self, products: Whole, threads: int = 1) -> Labels:
        """Return the best configuration of products ``(p, 3)`` (m, n, k), found among all.

        Raises an `InputError` if a size is not positive, or a count would need more than 61 bits.
        """
        found = best_configurations(products, self.configurations, self.array, self.effects, threads=threads,
                                    objective=self.objective, ties=self.ties)
        return Labels(found.index, found.cycles, found.equals)

    def cycles(self, products: Whole, classes: Whole) -> Whole:
        """Return ``(p, j)``: what products take on ``j`` configurations of their own, ``classes`` ``(p, j)``."""
        return _own(products, classes, self.all_cycles, np.empty(classes.shape, dtype=np.int64))

    def energies(self, products: Whole, classes: Whole) -> NDArray[np.float64]:
        """Return ``(p, j)``: their picojoules there; see `all_energies`."""
        return _own(products, classes, self.all_energies, np.empty(classes.shape))

    def all_cycles(self, products: Whole, classes: Sequence[int]) -> Whole:
        """Return ``(p, c)``: what all products take on each of some configurations."""
        chosen = tuple(self.configurations[each] for each in classes)
        parts = [partitioned_cycles(products[first:first + AT_ONCE], chosen, self.array, self.effects)
                 for first in range(0, len(products), AT_ONCE)]
        return np.concatenate(parts) if parts else np.empty((0, len(chosen)), dtype=np.int64)

    def figures(self, products: Whole, classes: Whole) -> Figures:
        """Return ``(p)``: what the objective makes of products on configurations of their own, ``classes`` ``(p)``."""
        cycles = self.cycles(products, classes[:, None])[:, 0]
        if self.objective == "latency":
            return cycles
        spent = self.energies(products, classes[:, None])[:, 0]
        return spent if self.objective == "energy" else spent * cycles

    def all_figures(self, products: Whole, classes: Sequence[int]) -> Figures:
        """Return ``(p, c)``: what the objective makes of all products on each of some configurations.

        Cycles; picojoules; or each product's picojoules times its cycles.
        """
        if self.objective == "latency":
            return self.all_cycles(products, classes)
        spent = self.all_energies(products, classes)
        return spent if self.objective == "energy" else spent * self.all_cycles(products, classes)

    def all_energies(self, products: Whole, classes: Sequence[int]) -> NDArray[np.float64]:
        """Return ``(p, c)``: picojoules of all products on each of some configurations.

        Raises an `InputError` if the power of the array is not known, or contradicts its units and banks.
        """
        chosen = tuple(self.configurations[each] for each in classes)
        parts = [partitioned_energy(partitioned_counts(
            products[first:first + AT_ONCE], chosen, self.array, self.effects), self.array).total_pj
            for first in range(0, len(products), AT_ONCE)]
        return np.concatenate(parts) if parts else np.empty((0, len(chosen)))

    def bound_figures(self, products: Whole) -> Figures:
        """Return ``(p)``: what no configuration can do with less of, by the objective."""
        cycles = self.bound(products)
        if self.objective == "latency":
            return cycles
        least = array_energy(self.array).bound(products, cycles)
        return least if self.objective == "energy" else least * cycles

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
        """A hash of array, space, effects and tie rule: classes of other choices mean something else.

        Raises an `InputError` if the objective is not latency: nothing is learnt by others.
        """
        if self.objective != "latency":
            raise InputError("objective", "must be latency where configurations are learnt", self.objective,
                             "Ask without a model: every configuration is looked at")
        told = {"array": {name: value for name, value in self.array.record().items() if name != "name"},
                "space": self.space, "effects": asdict(self.effects), "ties": self.ties}
        return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()[:16]


def _own(products: Whole, classes: Whole, of: Callable[[Whole, Sequence[int]], NDArray[Number]],
         found: NDArray[Number]) -> NDArray[Number]:
    """Write figures of products on configurations of their own, ``(p, j)``, into ``found``, and return it."""
    for each in np.unique(classes):
        rows, places = np.nonzero(classes == each)
        found[rows, places] = of(products[rows], (int(each),))[:, 0]
    return found

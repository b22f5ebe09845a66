"""Designs from fewer numbers: arrays and rates are chosen, and buffers are exactly what the mappings need (6.2.3)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilewright.codesign.limits import Floats
from tilewright.codesign.problem import DesignProblem, Nests
from tilewright.hardware import Fanout, Number
from tilewright.mapping import MappingBatch, MapSpace
from tilewright.search import Decoding, Genomes

Counts = NDArray[np.int64]
Columns = Mapping[Number, Floats]
CAPACITY = "capacity_bytes"


@dataclass(frozen=True)
class NeededDesigns:
    """What genes and mappings mean as designs: genes are all numbers that vary but capacities.

    Mappings are those of the widest machine, which has the largest of each number that the limits allow alone: so they
    are made legal there, and only lanes and limits of the design itself may refuse them.
    """

    problem: DesignProblem

    @cached_property
    def genes(self) -> tuple[Number, ...]:
        """The numbers that are chosen."""
        return tuple(key for key in self.problem.space.ranges if not key[1].startswith(CAPACITY))

    @cached_property
    def highest(self) -> dict[Number, float]:
        """The largest of every number that varies, where all others are the least, within the limits."""
        budget = self.problem.budget
        return {key: budget.largest(budget.smallest, key) or least for key, least in budget.smallest.items()}

    def between(self, key: Number, shares: Floats, low: float | None = None) -> Floats:
        """Return the values of a number at these shares of the way up to its highest, even in its logarithm.

        The way begins at ``low``, or at the least of all.
        """
        values, highest = self.problem.space.ranges[key], self.highest[key]
        first = values.low if low is None else low
        wanted = np.minimum(first * (highest / first) ** shares, highest)
        return np.asarray(values.value(values.first_places(wanted)), dtype=np.float64)

    @cached_property
    def elements(self) -> float:
        """The most elements that arrays of one large side have within the limits."""
        budget, least = self.problem.budget, self.problem.budget.smallest
        return max(float(budget.figures({**least, key: self.highest[key]})["elements"])
                   for key in self.problem.space.ranges)

    @cached_property
    def spaces(self) -> tuple[MapSpace, ...]:
        """The mappings of each layer on the widest machine."""
        widest = self.problem.machine(self.highest)
        return tuple(self.problem.map_space(layer, widest) for layer in range(len(self.problem.layers)))

    @cached_property
    def sides(self) -> tuple[tuple[int, Fanout, Number], ...]:
        """The sides of arrays, outermost first: slot, array, and the number that says how many lanes it has."""
        found, machine = [], self.problem.space.accelerator
        for at, slot in enumerate(self.spaces[0].layout.slots):
            level = machine.levels[slot.level]
            if isinstance(level, Fanout):
                found.append((at, level, (level.name, "instances" if level.one_piece else slot.axis.lower())))
        return tuple(found)

    @cached_property
    def sizes(self) -> Counts:
        """``(l, d)``: extents of each layer's dimensions, 1 beyond its own."""
        found = np.ones((len(self.spaces), max(len(space.operator.sizes) for space in self.spaces)), dtype=np.int64)
        for at, space in enumerate(self.spaces):
            found[at, :len(space.operator.sizes)] = list(space.operator.sizes.values())
        return found

    @cached_property
    def active(self) -> Counts:
        """``(l)``: how many dimensions of each layer are larger than 1; at least one."""
        found: Counts = np.maximum((self.sizes > 1).sum(axis=1), 1)
        return found

    @cached_property
    def order(self) -> Counts:
        """``(l, d)``: each layer's dimensions, those larger than 1 first."""
        return np.argsort(self.sizes == 1, axis=1, kind="stable")

    @property
    def depth(self) -> int:
        """Mappers of a genome, at most."""
        return max(1, len(self.sides))

    def decoded(self, chosen: Columns, genes: Sequence[Counts],
                arrays: bool = False) -> tuple[dict[Number, Floats], list[Nests]]:
        """Return machines and mappings, as `complete` does, from the parts of `Genomes`, a design's layers in a row."""
        genomes, (layers, width) = Genomes(*genes), self.sizes.shape
        count = len(genomes) // layers
        lanes = np.repeat(self.lanes(chosen, count), layers, axis=0) if self.sides else np.ones((1, 1), np.int64)
        decoding = Decoding(self.spaces[0], np.arange(width), np.tile(self.sizes, (count, 1)), lanes)
        steps, ranks = decoding.nests(genomes, width)
        batches = []
        for at, space in enumerate(self.spaces):
            own = len(space.operator.sizes)
            batches.append(space.repair(MappingBatch(space.layout, np.ascontiguousarray(steps[:, :own, at::layers]),
                                                     np.ascontiguousarray(ranks[:, :own, at::layers]))))
        return self.complete(chosen, batches, arrays)

    def lanes(self, chosen: Columns, rows: int) -> Counts:
        """Return ``(b, l)``: the most lanes along each side; those of an array of free shape are all its elements."""
        numbers: Mapping[Number, Any] = self.problem.space.numbers(chosen)
        own = self.problem.space.accelerator
        columns = [np.broadcast_to(numbers.get(key, own.numbers[key]), rows) for _, _, key in self.sides]
        return np.array(columns, dtype=np.int64).reshape(len(self.sides), rows).T

    def cut(self, layer: int, batch: MappingBatch, lanes: Counts) -> MappingBatch:
        """Return mappings that take no more lanes than there are: memories outside loop more often instead."""
        steps = batch.steps.copy()
        used = np.ones(len(batch), dtype=np.int64)
        for at in reversed(range(len(self.sides))):
            slot, array, _ = self.sides[at]
            beside = at + 1 < len(self.sides) and self.sides[at + 1][1] is array and array.one_piece
            most = np.maximum(lanes[:, at] // (used if beside else 1), 1)
            counts = -(-steps[slot - 1] // steps[slot])
            used = _reduced(counts, most)
            steps[slot - 1] = np.minimum(steps[slot - 1], counts * steps[slot])
        return self.spaces[layer].repair(MappingBatch(batch.layout, steps, batch.ranks))

    def complete(self, chosen: Columns, batches: Sequence[MappingBatch],
                 arrays: bool = False, kept: Sequence[Any] | None = None) -> tuple[dict[Number, Floats], list[Nests]]:
        """Return all numbers that vary of ``b`` machines, and mappings; of each layer memories keep all, or ``kept``.

        Genes are as chosen, capacities as the mappings need them; with ``arrays`` these are no larger than needed, too.
        """
        laid = [Nests.of(batch.relaid(layout), kept[layer] if kept else 0)
                for layer, (batch, layout) in enumerate(zip(batches, self.problem.layouts, strict=True))]
        needed = self.problem.needed(laid)
        return {key: needed[key] if key in needed and (arrays or key not in chosen) else chosen[key]
                for key in self.problem.space.ranges}, laid


def evenly(shares: Floats, most: Counts) -> Counts:
    """Return numbers from 1 to each of ``most``, at these shares of the way up, even in their logarithm."""
    found: Counts = np.minimum(np.exp(shares * np.log(most + 1.0)).astype(np.int64), most)
    return found


def _reduced(counts: Counts, most: Counts) -> Counts:
    """Lower counts ``(d, b)`` in place, the largest first, until their products are at most ``most``; return these."""
    products: Counts = counts.prod(axis=0, dtype=np.int64)
    while (over := np.flatnonzero(products > most)).size:
        first = counts[:, over].argmax(axis=0)
        others = products[over] // counts[first, over]
        counts[first, over] = np.maximum(most[over] // others, 1)
        products[over] = others * counts[first, over]
    return products

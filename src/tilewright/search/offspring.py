"""Children of mappings of one layer, on one machine of a structure after another: a mapper's core without its set-up.

What `auto` breeds by is made once for all machines of a structure. Another machine changes the limits of the packed
space alone; bounds, by which children are chosen, are those of a machine near it.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from tilewright.hardware import Accelerator
from tilewright.mapping import MappingBatch, MapSpace, random_state
from tilewright.search.mappers.auto import AutoOptions
from tilewright.search.mappers.auto.tables import BoundArrays, bound_arrays
from tilewright.search.mappers.gamma import LINE_WORDS, GammaOptions

CLIMB, CANDIDATES = 60, AutoOptions.candidates
"""Mappings looked at for each that is drawn, and children bred, at most, for each that is told."""
REMEMBERED = 1 << 12
RATES = GammaOptions().rates()
KNOWN = 64
"""Machines near others whose bounds are kept."""


@dataclass(frozen=True)
class Offspring:
    """Breeds mappings of one layer on machines of one structure."""

    space: MapSpace
    """The mappings on a machine that has a slot for every side of an array that any of them has."""

    @cached_property
    def _bounds(self) -> dict[int, tuple[Accelerator, BoundArrays, tuple[int, int]]]:
        """By the identity of machines, which these hold; to tell whether they are equal takes longer than all else."""
        return {}

    def _tables(self, near: Accelerator, worth: tuple[float, float]) -> tuple[BoundArrays, NDArray[np.float64]]:
        """Return what bounds read on a machine, where cycles and picojoules are worth so much; and room to work in."""
        if id(near) not in self._bounds:
            if len(self._bounds) >= KNOWN:
                self._bounds.pop(next(iter(self._bounds)))
            self._bounds[id(near)] = near, *bound_arrays(self.space.on(near), None)
        _, tables, shape = self._bounds[id(near)]
        terms = [[weight, *which] for weight, which in zip(worth, ((1.0, 0.0), (0.0, 1.0)), strict=True) if weight > 0]
        return tables._replace(rules=tables.rules._replace(terms=np.array(terms))), np.zeros(shape)

    def children(self, machine: Accelerator, near: Accelerator, worth: tuple[float, float],  # noqa: PLR0913, PLR0917
                 parents: MappingBatch | None, cut: float, count: int, rng: Generator) -> MappingBatch:
        """Return mappings of a machine: children of ``parents``, best first; ``count`` drawn ones where there are none.

        ``count`` times a few children are bred, of which the first is taken that no bound keeps from being worth less
        than ``cut``, if there is one.

        Parameters
        ----------
        near
            The machine that bounds are of.
        worth
            What a cycle and a picojoule are worth.
        parents
            Mappings that fit the machine.
        """
        from tilewright.search.mappers.auto import kernels  # noqa: PLC0415  (Numba loads late)

        space, room = self.space, self.space.scratch()
        batch, state = space.unwritten(count), np.zeros(LINE_WORDS, dtype=np.uint64)
        state[:1] = random_state(rng)
        tables, place = self._tables(near, worth)
        kept = np.zeros((2, *room.shape[1:]), dtype=np.int64)
        given, bred = parents or space.empty(1), 0 if parents is None else len(parents)
        table = space.table if machine is space.accelerator else space.table_on(machine)
        told = kernels.propose(
            table, state, RATES, room, kept, np.zeros(REMEMBERED, dtype=np.uint64),
            given.steps, given.ranks, np.arange(len(given)), bred, batch.steps, batch.ranks, (0, count),
            float(cut), (CANDIDATES, CLIMB, 1), tables, place)
        space.legalise(batch, state, (0, told))
        return batch if told == count else batch.take(slice(0, told))

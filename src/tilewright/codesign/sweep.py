"""Given machines of one structure, side by side: mappings are bred for each, and looked up on all.

What a mapping needs, its cycles and its words do not depend on capacities, sides and prices (see `pools`), so that
what is found for one machine is known of all that have its bandwidths. What memories keep is all that they can at
first, or what promises most on a few of the machines.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import ceil
from typing import Any

import numpy as np

from tilewright.codesign.breeding import Breeder, WantedChildren, children_of
from tilewright.codesign.limits import Floats
from tilewright.codesign.pools import MappingPool, Pooling, Worth
from tilewright.codesign.problem import DesignProblem, Figures, LayerFront
from tilewright.codesign.session import Candidate
from tilewright.cost import HardwareBatch
from tilewright.hardware import RATE, Accelerator, Number
from tilewright.jobs import Runner
from tilewright.mapping import Mapping as Nest

BEST = 4
"""Mappings of a layer and kept set that are kept of each machine and each worth."""
LOOKED_AT = 3
"""Machines on which it is looked at what promises most."""
CHILDREN, DRAWN = 100, 16
"""About how many children of a layer are bred at once; and mappings that are drawn where none are known."""
SHARED = 10
"""Of the mappings that a machine is offered, one in so many is bred for it, where there are as many machines."""
TOGETHER = 4
"""Machines that are bred for before all are looked up again."""
SPREAD = 0.5, 1.0, 2.0
"""Worths of a cycle that mappings are kept for, in those of the machine's best network."""


@dataclass(frozen=True)
class SweptMachine:
    """A machine with the best mapping found of each layer."""

    chosen: Mapping[Number, float]
    machine: Accelerator
    mappings: tuple[Nest, ...] = ()
    """Of each layer of the problem, in order; empty where one has none."""
    figures: Figures = field(default_factory=lambda: Figures(np.inf, np.inf, np.inf))
    score: float = np.inf
    """``figures`` and ``score``: what the networks take, and the objective."""
    unmapped: tuple[str, ...] = ()
    """The layers that have no mapping."""


def sweep_machines(problem: DesignProblem, chosen: Mapping[Number, Floats], samples: int, seed: int,
                   runner: Runner) -> tuple[list[SweptMachine], int]:
    """Return the best mappings of all layers on each of some machines, as far as it got, and the mappings scored.

    Parameters
    ----------
    chosen
        ``(m)`` each: values of the numbers that vary in the problem's space.
    samples
        About how many mappings of each layer each machine is offered: bred for it, or for those of its bandwidths.
    """
    count = len(next(iter(chosen.values())))
    rates = [column for (_, what), column in chosen.items() if what.startswith(RATE.format(""))]
    _, groups = np.unique(np.column_stack([np.zeros(count), *rates]), axis=0, return_inverse=True)
    leading, breeder = _leading(problem, chosen), Breeder(problem, anew=False)
    found: dict[int, SweptMachine] = {}
    known: Sequence[MappingPool] = ()
    spent = 0
    for group in range(int(groups.max()) + 1):
        rows = np.flatnonzero(groups.reshape(-1) == group)
        part = _Group(problem, breeder, leading, {key: column[rows] for key, column in chosen.items()},
                      (seed, group), known)
        for _ in part.breed(samples, runner):
            if runner.stop.is_set():
                break
        spent += part.spent
        if not part.pools:
            break
        found |= {int(row): part.machine(at) for at, row in enumerate(rows)}
        known = part.pools
    return [found[at] for at in sorted(found)], spent


def _sizes(chosen: Mapping[Number, Floats]) -> Floats:
    """Return ``(m)``: how large machines are, as the sum of the logarithms of their numbers."""
    found: Floats = np.sum([np.log(column) for column in chosen.values()], axis=0)
    return found


def _leading(problem: DesignProblem, chosen: Mapping[Number, Floats]) -> list[list[int]]:
    """Return the kept sets of each layer to begin with: all that memories can keep, and what promises most.

    The latter has the least bounds on a few machines, from the smallest to the largest.
    """
    count = len(next(iter(chosen.values())))
    order = np.argsort(_sizes(chosen), kind="stable")
    looked = [problem.machine({key: float(column[at]) for key, column in chosen.items()})
              for at in dict.fromkeys(order[np.linspace(0, count - 1, LOOKED_AT).astype(int)].tolist())]
    return [[*dict.fromkeys([0, *(number for machine in looked for number in problem.leading(layer, machine))])]
            for layer in range(len(problem.layers))]


@dataclass
class _Group:
    """Machines of the same bandwidths, and the mappings known of each layer."""

    problem: DesignProblem
    breeder: Breeder
    leading: Sequence[Sequence[int]]
    chosen: Mapping[Number, Floats]
    seed: tuple[int, int]
    known: Sequence[MappingPool]
    pools: list[MappingPool] = field(default_factory=list)
    spent: int = 0

    def __post_init__(self) -> None:
        self.prices = self.pooling.prices(self.chosen)
        self.count = self.prices.shape[1]
        self.rng = np.random.default_rng((*self.seed, 0x53EE))
        self.rates = np.ones(self.count)
        self.taken = np.zeros((2, len(self.problem.layers), self.count))
        """``(2, l, m)``: cycles and picojoules of the best mapping of each layer on each machine."""

    @property
    def pooling(self) -> Pooling:
        """How mappings are pooled."""
        return self.breeder.pooling

    @cached_property
    def factors(self) -> tuple[float, ...]:
        """Worths of a cycle that mappings are kept for, in those of the best network."""
        return SPREAD if self.problem.spreads else (1.0,)

    def numbers(self, at: int) -> dict[Number, float]:
        """Return the numbers of a machine."""
        return {key: float(column[at]) for key, column in self.chosen.items()}

    def breed(self, samples: int, runner: Runner) -> Iterator[None]:
        """Breed so many children of each layer for each machine and its neighbours, step by step."""
        left, turn = np.full(self.count, ceil(samples / min(self.count, SHARED))), 0
        children = ceil(left[0] / max(1, round(left[0] / CHILDREN)))
        self._begin(runner)
        while left.any() and self.pools:
            order = self.rng.permutation(np.flatnonzero(left))
            for first in range(0, len(order), TOGETHER):
                targets = order[first:first + TOGETHER].tolist()
                jobs = [self.breeder.job(self.breeder.wanted(
                    self.pools, [int(min(left[at], children))] * len(self.pools), self.numbers(at), self._worth(at),
                    self.rng, self.leading), self.numbers(at), self._worth(at), (*self.seed, turn, place),
                    kept=runner.keeper is not None) for place, at in enumerate(targets)]
                turn += 1
                left[targets] -= np.minimum(left[targets], children)
                self._pool(self._taken(runner.part(jobs)))
                yield

    def _begin(self, runner: Runner) -> None:
        """Score what was found with other bandwidths, or draw mappings on the largest machine."""
        at = int(np.argmax(_sizes(self.chosen)))
        if self.known:
            made, prices = HardwareBatch(base=self.problem.machine(self.numbers(at))), self.prices[:, [at]]
            self.spent += sum(len(pool) for pool in self.known)
            self.pools = [self.pooling.pool(layer, pool.nests, made, prices) for layer, pool in enumerate(self.known)]
            self._pool()
            return
        drawn = [WantedChildren(layer, None, np.inf, DRAWN, kept)
                 for layer, sets in enumerate(self.leading) for kept in sets]
        found = self._taken(runner.part([self.breeder.job(drawn, self.numbers(at), self._worth(at),
                                                          (*self.seed, 1 << 30))]))
        if found:
            self.pools = [found[0][layer].take(np.arange(0)) for layer in range(len(self.problem.layers))]
            self._pool(found)

    def _worth(self, at: int) -> Worth:
        """Return what a cycle and a picojoule are worth on a machine."""
        sums = self.problem.sums
        return (1.0, 0.0) if sums == "latency" else (0.0, 1.0) if sums == "energy" else (float(self.rates[at]), 1.0)

    def _taken(self, values: Sequence[Mapping[str, Any] | None]) -> list[dict[int, MappingPool]]:
        """Count and return what jobs have bred, as far as they were done."""
        done = [value for value in values if value is not None]
        self.spent += sum(int(value["samples"]) for value in done)
        return [children_of(value) for value in done]

    def _pool(self, found: Sequence[Mapping[int, MappingPool]] = ()) -> None:
        """Put children into the pools, of which the best of each machine are kept."""
        for layer, pool in enumerate(self.pools):
            self.pools[layer] = self._best(layer, pool.joined(*(bred[layer] for bred in found if layer in bred)))
        if self.pooling.priced and self.problem.objective.startswith("edp"):
            latency, energy = np.tensordot(self.problem.weights, self.taken, (0, 1))
            self.rates = np.where(latency > 0, energy / np.maximum(latency, 1e-9), self.rates)

    def _figures(self, pool: MappingPool, at: Sequence[int] | slice = slice(None)) -> tuple[Floats, Floats]:
        """Return ``(n, m)`` each: cycles of mappings on some machines, infinite where they do not fit, and energy."""
        chosen = {key: column[at] for key, column in self.chosen.items()}
        prices = self.prices[:, at]
        energy = pool.energy(prices) if self.pooling.priced else np.zeros((len(pool), prices.shape[1]))
        return np.where(self.pooling.fits(pool, chosen), pool.latency[:, None], np.inf), energy

    def _values(self, latency: Floats, energy: Floats, factor: float, rates: Floats) -> Floats:
        """Return ``(n, m)``: what mappings are worth, infinite where they do not fit."""
        if not self.pooling.priced:
            return latency
        if self.problem.objective.startswith("energy"):
            return np.where(np.isfinite(latency), energy, np.inf)
        return latency * (factor * rates) + energy

    def _best(self, layer: int, pool: MappingPool) -> MappingPool:
        """Return the mappings that are among the best of any machine and kept set, each once."""
        _, first = np.unique(np.column_stack([pool.needs, pool.latency, pool.rest, pool.words]), axis=0,
                             return_index=True)
        pool = pool.take(np.sort(first))
        if not len(pool):
            return pool
        latency, energy = self._figures(pool)
        kept, every = np.zeros(len(pool), dtype=np.bool_), np.arange(self.count)
        for factor in self.factors:
            value = self._values(latency, energy, factor, self.rates)
            if factor == 1.0:
                row = value.argmin(axis=0)
                self.taken[:, layer] = np.where(np.isfinite(value[row, every]), (
                    pool.latency[row], energy[row, every]), 0.0)
            for number in np.unique(pool.kept):
                rows = np.flatnonzero(pool.kept == number)
                own = value[rows]
                for _ in range(min(BEST, len(rows))):
                    best = own.argmin(axis=0)
                    kept[rows[best[np.isfinite(own[best, every])]]] = True
                    own[best, every] = np.inf
        return pool.take(kept)

    def machine(self, at: int) -> SweptMachine:
        """Return a machine with the best of the mappings known, as the model scores them."""
        numbers = self.numbers(at)
        made, fronts = self.problem.machine(numbers), list[LayerFront | None]()
        hardware = HardwareBatch(base=made)
        for layer, pool in enumerate(self.pools):
            latency, energy = self._figures(pool, [at])
            rows: set[int] = set()
            for factor in self.factors if len(pool) else ():
                value = self._values(latency, energy, factor, self.rates[[at]])[:, 0]
                rows |= {int(row) for row in np.argsort(value, kind="stable")[:BEST] if np.isfinite(value[row])}
            fronts.append(self.pooling.front(layer, pool, hardware, np.array(sorted(rows))) if rows else None)
        found = Candidate.of(self.problem, numbers, fronts)
        if found.fronts is None:
            return SweptMachine(numbers, made, unmapped=tuple(self.problem.layers[one].name for one in found.unmapped))
        nests = tuple(found.mapping(self.problem, layer).mapping(0, operator.sizes)
                      for layer, operator in enumerate(self.problem.layers))
        return SweptMachine(numbers, made, nests, found.figures, found.score)

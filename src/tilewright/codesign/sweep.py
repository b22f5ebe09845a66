"""Given machines of one structure, side by side: mappings are bred for each, and looked up on all.

What a mapping needs, its cycles and its words do not depend on capacities, sides and prices (see `pools`), so that
what is found for one machine is known of all that have its bandwidths. Mappings are pooled by layer and by what
memories keep of it: all that they can, and what promises most on a few of the machines.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import ceil

import numpy as np
from numpy.typing import NDArray

from tilewright.codesign.breeding import Breeder, WantedChildren, taken
from tilewright.codesign.limits import Floats
from tilewright.codesign.pools import MappingPool, Pooling, Worth, batch_of
from tilewright.codesign.problem import DesignProblem, Figures, LayerFront, composed
from tilewright.hardware import RATE, Accelerator, Number
from tilewright.jobs import Runner
from tilewright.mapping import KeptSets, MappingBatch
from tilewright.mapping import Mapping as Nest
from tilewright.search import KeptBounding, Objective

BEST = 4
"""Mappings of a layer and kept set that are kept of each machine and each worth."""
LEADING, LOOKED_AT = 3, 3
"""Kept sets of a layer that promise most on a machine; and machines on which that is looked at."""
CHILDREN, DRAWN = 48, 16
"""Children of a layer that are bred at once, at most; and mappings that are drawn where none are known."""
SHARED = 10
"""Of the mappings that a machine is offered, one in so many is bred for it, where there are as many machines."""
TOGETHER = 4
"""Machines that are bred for before all are looked up again."""
SPREAD = 0.5, 1.0, 2.0
"""Worths of a cycle that mappings are kept for, in those of the machine's best network."""
CHANCES = 0.6, 0.25, 0.15
"""Chances that children of a layer are bred with what memories keep in its best, second, and third best mappings."""


@dataclass(frozen=True)
class SweptMachine:
    """A machine with the best mapping found of each layer.

    Parameters
    ----------
    mappings
        Of each layer of the problem, in order; empty where one has none.
    figures, score
        What the networks take, and the objective.
    unmapped
        The layers that have no mapping.
    """

    chosen: Mapping[Number, float]
    machine: Accelerator
    mappings: tuple[Nest, ...] = ()
    figures: Figures = field(default_factory=lambda: Figures(np.inf, np.inf, np.inf))
    score: float = np.inf
    unmapped: tuple[str, ...] = ()


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
    wide, owners = _by_kept_sets(problem, chosen)
    found: dict[int, SweptMachine] = {}
    known: Sequence[MappingPool] = ()
    spent, breeder = 0, Breeder(wide)
    for group in range(int(groups.max()) + 1):
        rows = np.flatnonzero(groups.reshape(-1) == group)
        part = _Group(problem, breeder, owners, {key: column[rows] for key, column in chosen.items()},
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


def _by_kept_sets(problem: DesignProblem, chosen: Mapping[Number, Floats]) -> tuple[DesignProblem, NDArray[np.intp]]:
    """Return the problem with a layer for each thing that memories may keep of it, and whose layers these are.

    All that they can is first; then what has the least bounds on a few machines, from the smallest to the largest.
    """
    sums, count = problem.objective.split("-")[0], len(next(iter(chosen.values())))
    order = np.argsort(_sizes(chosen), kind="stable")
    looked = [problem.machine({key: float(column[at]) for key, column in chosen.items()})
              for at in dict.fromkeys(order[np.linspace(0, count - 1, LOOKED_AT).astype(int)].tolist())]
    entries: list[tuple[int, tuple[tuple[str, str], ...]]] = []
    for layer in range(len(problem.layers)):
        passed: dict[tuple[tuple[str, str], ...], None] = {(): None}
        for machine in looked:
            kept = KeptSets(problem.map_space(layer, machine))
            passed |= dict.fromkeys(kept.passed(number) for number in KeptBounding(
                kept, Objective.parse(sums)).leading(min(LEADING, len(kept))))
        entries += [(layer, pairs) for pairs in passed]
    owners = np.array([layer for layer, _ in entries])
    return replace(problem, layers=tuple(problem.layers[layer] for layer in owners), weights=problem.weights[owners],
                   passed=tuple(pairs for _, pairs in entries)), owners


@dataclass
class _Group:
    """Machines of the same bandwidths, and the mappings known of each layer and kept set: of each entry."""

    problem: DesignProblem
    breeder: Breeder
    owners: NDArray[np.intp]
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
        self.least = np.full((len(self.owners), self.count), np.inf)
        """``(e, m)``: the best that entries come to on each machine."""
        self.taken = np.zeros((2, *self.least.shape))
        """``(2, e, m)``: cycles and picojoules of that."""

    @property
    def pooling(self) -> Pooling:
        """How mappings of all entries are pooled."""
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
        self._begin(runner)
        while left.any() and self.pools:
            order = self.rng.permutation(np.flatnonzero(left))
            for first in range(0, len(order), TOGETHER):
                targets = order[first:first + TOGETHER].tolist()
                jobs = [self.breeder.job(self._wanted(at, int(min(left[at], CHILDREN))), self.numbers(at),
                                         self._worth(at), (*self.seed, turn, place))
                        for place, at in enumerate(targets)]
                turn += 1
                for at, value in zip(targets, runner.part(jobs), strict=True):
                    if value is not None:
                        self.spent += int(value["samples"])
                        self._pool(taken(value))
                    left[at] -= min(left[at], CHILDREN)
                yield

    def _begin(self, runner: Runner) -> None:
        """Score what was found with other bandwidths, or draw mappings on the largest machine."""
        at = int(np.argmax(_sizes(self.chosen)))
        if self.known:
            made, prices = self.problem.machine(self.numbers(at)), self.prices[:, [at]]
            self.spent += sum(len(pool) for pool in self.known)
            self.pools = [self.pooling.pool(
                entry, batch_of(self.breeder.problem.layouts[entry], pool.steps, pool.ranks), made, prices)
                          for entry, pool in enumerate(self.known)]
            self._pool({})
            return
        drawn = [WantedChildren(entry, None, np.inf, DRAWN) for entry in range(len(self.owners))]
        value, = runner.part([self.breeder.job(drawn, self.numbers(at), self._worth(at), (*self.seed, 1 << 30))])
        if value is not None:
            self.spent += int(value["samples"])
            found = taken(value)
            self.pools = [found[entry].take(np.arange(0)) for entry in range(len(self.owners))]
            self._pool(found)

    def _worth(self, at: int) -> Worth:
        """Return what a cycle and a picojoule are worth on a machine."""
        sums = self.problem.objective.split("-")[0]
        return (1.0, 0.0) if sums == "latency" else (0.0, 1.0) if sums == "energy" else (float(self.rates[at]), 1.0)

    def _wanted(self, at: int, count: int) -> list[WantedChildren]:
        """Return what children are bred of each layer: of the best mappings known that fit a machine."""
        found = []
        for layer in range(len(self.problem.layers)):
            entries = np.flatnonzero(self.owners == layer)
            entries = entries[np.argsort(self.least[entries, at], kind="stable")][:len(CHANCES)]
            chances = np.array(CHANCES[:len(entries)]) / sum(CHANCES[:len(entries)])
            entry = int(entries[int(self.rng.choice(len(entries), p=chances))])
            pool = self.pools[entry]
            if not len(pool):
                found.append(WantedChildren(entry, None, np.inf, min(count, DRAWN)))
                continue
            cycle, picojoule = self._worth(at)
            value = cycle * pool.latency + (picojoule * pool.energy(self.prices[:, [at]])[:, 0] if picojoule else 0.0)
            fits = self.pooling.fits(pool, {key: column[[at]] for key, column in self.chosen.items()})[:, 0]
            found.append(WantedChildren.of(entry, pool, value, fits, count))
        return found

    def _pool(self, found: Mapping[int, MappingPool]) -> None:
        """Put children into the pools, of which the best of each machine are kept."""
        for entry in list(found) or range(len(self.pools)):
            pool = self.pools[entry]
            if entry in found:
                pool = MappingPool(*(np.concatenate(pair) for pair in zip(
                    pool.parts, found[entry].parts, strict=True)))
            self.pools[entry] = self._best(entry, pool)
        if self.pooling.priced and self.problem.objective.startswith("edp"):
            latency, energy = np.zeros((2, self.count))
            every = np.arange(self.count)
            for layer, weight in enumerate(self.problem.weights.tolist()):
                entries = np.flatnonzero(self.owners == layer)
                best = entries[self.least[entries].argmin(axis=0)]
                latency += weight * self.taken[0, best, every]
                energy += weight * self.taken[1, best, every]
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

    def _best(self, entry: int, pool: MappingPool) -> MappingPool:
        """Return the mappings that are among the best of any machine, each once."""
        _, first = np.unique(np.column_stack([pool.needs, pool.latency, pool.rest, pool.words]), axis=0,
                             return_index=True)
        pool = pool.take(np.sort(first))
        if not len(pool):
            return pool
        latency, energy = self._figures(pool)
        kept = np.zeros(len(pool), dtype=np.bool_)
        for factor in self.factors:
            value = self._values(latency, energy, factor, self.rates)
            if factor == 1.0:
                row, every = value.argmin(axis=0), np.arange(self.count)
                self.least[entry] = value[row, every]
                self.taken[:, entry] = np.where(np.isfinite(value[row, every]), (
                    pool.latency[row], energy[row, every]), 0.0)
            if len(pool) <= BEST:
                kept |= np.isfinite(value).any(axis=1)
                continue
            best = np.argpartition(value, BEST - 1, axis=0)[:BEST]
            kept[best[np.isfinite(np.take_along_axis(value, best, axis=0))]] = True
        return pool.take(kept)

    def machine(self, at: int) -> SweptMachine:
        """Return a machine with the best of the mappings known, as the model scores them."""
        numbers = self.numbers(at)
        made, layers = self.problem.machine(numbers), len(self.problem.layers)
        fronts: list[list[tuple[int, LayerFront]]] = [[] for _ in range(layers)]
        for entry, pool in enumerate(self.pools):
            latency, energy = self._figures(pool, [at])
            rows: set[int] = set()
            for factor in self.factors if len(pool) else ():
                value = self._values(latency, energy, factor, self.rates[[at]])[:, 0]
                rows |= {int(row) for row in np.argsort(value, kind="stable")[:BEST] if np.isfinite(value[row])}
            front = self.pooling.front(entry, pool, made, np.array(sorted(rows))) if rows else None
            if front is not None:
                fronts[self.owners[entry]].append((entry, front))
        lost = tuple(self.problem.layers[layer].name for layer in range(layers) if not fronts[layer])
        if lost:
            return SweptMachine(numbers, made, unmapped=lost)
        joint = [LayerFront(*(np.concatenate([getattr(front, name) for _, front in own])
                              for name in ("latency", "energy", "steps", "ranks"))) for own in fronts]
        choice, figures, score = composed(self.problem, joint, made.area_um2)
        nests = tuple(self._nest(own, int(place), layer) for layer, (own, place) in enumerate(
            zip(fronts, choice, strict=True)))
        return SweptMachine(numbers, made, nests, figures, score)

    def _nest(self, own: Sequence[tuple[int, LayerFront]], place: int, layer: int) -> Nest:
        """Return the mapping at a place of the fronts of a layer's entries, one behind another."""
        for entry, front in own:
            if place < len(front.latency):
                batch = MappingBatch(self.breeder.problem.layouts[entry], front.steps[place][:, :, None],
                                     front.ranks[place][:, :, None])
                return batch.mapping(0, self.problem.layers[layer].sizes)
            place -= len(front.latency)
        raise IndexError(place)

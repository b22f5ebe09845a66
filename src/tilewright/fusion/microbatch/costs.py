"""What strategies cost, and what none can do without."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tilewright.base import late_module, share
from tilewright.fusion.microbatch.problem import OVER, Floats, Ints, MicroBatchProblem
from tilewright.fusion.microbatch.records import ENERGY, GROUP_FIGURES, LATENCY, MEMORY

kernels = late_module("tilewright.fusion.microbatch.kernels")
TOGETHER = 4096
"""Strategies that a thread scores at a time."""


def figures(problem: MicroBatchProblem, strategies: Ints, threads: int = 1) -> Floats:
    """Return `GROUP_FIGURES` ``(b, 9)`` of strategies, sums over their groups; of the memory the largest.

    Raises an `InputError` if a strategy is not one of the problem.
    """
    plans = problem.check(strategies)
    found = np.empty((len(plans), len(GROUP_FIGURES)))

    def work(rows: slice) -> None:
        kernels.score_plans(plans[rows], problem.tables, found[rows])

    share(work, [slice(at, at + TOGETHER) for at in range(0, len(plans), TOGETHER)], threads)
    return found


def scores(problem: MicroBatchProblem, strategies: Ints, threads: int = 1) -> Floats:
    """Return the objective ``(b)`` of strategies; of those that do not fit, `OVER` times how far over they are."""
    found = figures(problem, strategies, threads)
    used = found[:, MEMORY] / problem.memory_bytes
    return np.where(used <= 1.0, found[:, ENERGY if problem.objective == "energy" else LATENCY], OVER * used)


def of_groups(problem: MicroBatchProblem, strategy: Ints) -> list[tuple[int, int, Floats]]:
    """Return first and last entry of each group of a strategy, with its `GROUP_FIGURES`.

    Raises an `InputError` if it is not one of the problem.
    """
    plan = problem.check(strategy)[0]
    ends, told = np.zeros(len(plan), dtype=np.int64), np.empty((len(plan), len(GROUP_FIGURES)))
    count = kernels.group_figures(plan, problem.tables, ends, told)
    firsts = [0, *(ends[:count - 1] + 1).tolist()]
    return [(first, int(last), row) for first, last, row in zip(firsts, ends[:count], told, strict=False)]


def repaired(problem: MicroBatchProblem, strategies: Ints) -> Ints:
    """Return strategies made to fit: micro-batches shrink alike, and groups that cannot fit are split."""
    plans = np.array(strategies, dtype=np.int64)
    kernels.repair_plans(plans, problem.batch, problem.tiles, problem.memory_bytes)
    return plans


def fill_groups(problem: MicroBatchProblem, strategies: Ints, how: tuple[Any, Any, Any, Any]) -> None:
    """Let the micro-batches of one group of each strategy fill the memory, in place; see `kernels.fill_plans`."""
    kernels.fill_plans(strategies, *how, problem.tiles, problem.weights, problem.choices[::-1].copy(),
                       problem.memory_bytes)


def know(problem: MicroBatchProblem, plans: Ints, begin: int, known: tuple[Floats, Ints]) -> None:
    """Let the groups of strategies that fit, from a row on, be known, in place; see `kernels.know_groups`."""
    kernels.know_groups(plans, begin, ENERGY if problem.objective == "energy" else LATENCY, *known, problem.tables)


def joined(plans: Ints, known: tuple[Floats, Ints], most: int) -> Ints:
    """Return the best strategies of known groups, at most so many; see `kernels.join_groups`."""
    found = np.empty((most, plans.shape[1]), dtype=np.int64)
    return found[:kernels.join_groups(plans, *known, found)]


@dataclass(frozen=True)
class MicroBatchBounds:
    """What no strategy is below, in cycles of all groups together, and the least energy."""

    compute_cycles: float
    """All multiplications on all elements."""
    compulsory_cycles: float
    """Input, results and weights cross the chip's edge once."""
    capacity_cycles: float
    """The same with what the memory forces across it: see `forced_bytes`."""
    onchip_cycles: float
    """Every operand and result passes the memory on chip."""
    energy_pj: float
    """Of these."""

    @property
    def latency_cycles(self) -> float:
        """The largest of them."""
        return max(self.compute_cycles, self.compulsory_cycles, self.capacity_cycles, self.onchip_cycles)


def forced_bytes(problem: MicroBatchProblem) -> Floats:
    """Return bytes ``(N + 1)`` that the memory forces across the chip's edge at each result.

    Either a result goes off chip, once in and for each reader out. Or the largest micro-batch of it that fits is
    staged: it and the layer after it then run more often, and half of the weights that each fetches again count here,
    the other half at the result on its other side. The lesser is forced.
    """
    most = np.clip(np.floor(problem.memory_bytes / problem.tiles), 0, problem.batch)
    runs = np.ceil(problem.batch / np.maximum(most, 1))
    found = np.zeros(problem.length)
    for p in range(1, problem.length - 1):
        readers = problem.readers[p]
        away = problem.sizes[p] * (len(readers) + (not problem.entries[p].leaves))
        own, after = problem.weights[p:p + 2]
        stay = own + after <= problem.weight_bytes
        again = 0.0 if stay else (runs[p] - 1) * (own + (after if p + 1 in readers else 0.0)) / 2
        found[p] = min(away, again) if most[p] >= 1 else away
    return found


def bounds(problem: MicroBatchProblem) -> MicroBatchBounds:
    """Return what no strategy is below."""
    rates = problem.rates
    coming = float(problem.weights.sum()) + float(problem.sizes[0]) * bool(problem.readers[0])
    going = float(sum(size for size, entry in zip(problem.sizes, problem.entries, strict=True) if entry.leaves))
    forced = float(forced_bytes(problem).sum())
    passing = float(problem.weights.sum() + problem.sizes[1:].sum()
                    + sum(problem.sizes[list(entry.reads)].sum() for entry in problem.entries))
    cycles = float(problem.cycles.sum())
    least = MicroBatchBounds(cycles, (coming + going) * rates.offchip_cycles,
                             (coming + going + forced) * rates.offchip_cycles, passing * rates.onchip_cycles, 0.0)
    energy = (coming * rates.read_pj + going * rates.write_pj + forced * min(rates.read_pj, rates.write_pj)
              + passing * rates.onchip_pj + cycles * rates.compute_pj + least.latency_cycles * rates.leakage_pj)
    return replace(least, energy_pj=energy)


def bound_of(problem: MicroBatchProblem) -> float:
    """Return what no strategy's objective is below."""
    found = bounds(problem)
    return found.energy_pj if problem.objective == "energy" else found.latency_cycles

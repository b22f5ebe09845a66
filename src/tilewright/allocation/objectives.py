"""Objectives that are no sum over transfers: the product of latency and energy, and the least capacity."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from tilewright.allocation.bounds import standing_bounds
from tilewright.allocation.problem import ResidencyProblem
from tilewright.allocation.records import PlanRecord, plan_record
from tilewright.allocation.search import SOLVERS, PlanSearch
from tilewright.allocation.stays import Prices
from tilewright.base import InputError


def product_plan(problem: ResidencyProblem, solver: str, seconds: float,  # noqa: PLR0913, PLR0917
                 stopped: Callable[[], bool], told: dict[str, Any], channels: int) -> PlanRecord:
    """Return the plan of least latency, or of least energy, by their product; the bound is that of their bounds."""
    found = []
    for metrics in (("latency", "energy"), ("energy", "latency")):
        search = PlanSearch(problem, Prices(problem, metrics), seconds / 2, stopped)
        standing_bounds(search)
        SOLVERS.get(solver)(search)
        found.append(plan_record(search, told, (), channels))
    best = min(found, key=lambda one: one.tally.latency_cycles * one.tally.energy_pj)
    score, bound = best.tally.latency_cycles * best.tally.energy_pj, found[0].bound * found[1].bound
    return replace(best, score=score, bound=min(bound, score), proven=bound >= score * (1 - 1e-9), trace=(),
                   bounds={"latency x energy": min(bound, score)})


@dataclass(frozen=True)
class PeakPlan:
    """The least capacity of each scratchpad that spills nothing; what is below ``bound_bytes`` does not do."""

    problem: ResidencyProblem
    search: PlanSearch
    capacity_bytes: int
    bound_bytes: int


def least_capacity(problem: ResidencyProblem, seconds: float, stopped: Callable[[], bool]) -> PeakPlan:
    """Return the least capacity, the same of each scratchpad, with which nothing is stored and loaded again.

    Found by halving, in words of the scratchpads.

    Raises
    ------
    InputError
        If even what all tensors take together does not do.
    """
    word = max(pad.word_bytes for pad in problem.pads)

    def tried(words: int) -> PlanSearch | int:
        """Return a search that spills nothing, or 1 where that is proven not to be, or 0."""
        try:
            smaller = replace(problem, pads=tuple(replace(pad, capacity_bytes=words * word) for pad in problem.pads))
        except InputError:
            return 1
        search = PlanSearch(smaller, Prices(smaller, ("bytes",)), seconds / 20, stopped)
        SOLVERS.get("exact")(search)
        least = search.prices.named(search.prices.compulsory)
        if search.score is not None and search.prices.named(search.score) == least:
            return search
        return int(search.prices.named(search.bound) > least)

    low, high = 1, sum(-(-one.size_bytes // word) for one in problem.tensors)
    best, proven = tried(high), 0
    if isinstance(best, int):
        raise InputError("--objective", "must be another where roles of scratchpads make tensors change place", "peak",
                         "Give a way between them with --across, or let all hold any role")
    while low < high:
        middle = (low + high) // 2
        found = tried(middle)
        if isinstance(found, int):
            low = middle + 1
            proven = max(proven, middle * found)
        else:
            best, high = found, middle
    return PeakPlan(best.problem, best, high * word, (proven + 1) * word)

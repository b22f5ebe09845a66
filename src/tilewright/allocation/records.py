"""Plans as records: plain data that lasts, with all that is needed to check them."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from math import isclose
from typing import Any

from tilewright.allocation.problem import OperationStep, Pad, ResidencyProblem, ResidentTensor
from tilewright.allocation.search import PlanSearch
from tilewright.allocation.simulation import simulate
from tilewright.allocation.stays import DmaTransfer, PlanTally, Stay, tally, transfers_of
from tilewright.base import InputError, RecordFormat, read_record

FORMAT = RecordFormat("tilewright allocation 1", "a plan", "allocate", ("gap",))


@dataclass(frozen=True)
class SolverResult:
    """What one of the solvers came to: its score and bound in the first objective, and seconds."""

    solver: str
    tally: PlanTally
    score: float
    bound: float
    proven: bool
    seconds: float
    by: str


@dataclass(frozen=True)
class PlanRecord:
    """A plan for a network."""

    kind: str
    command: str
    network: str
    machine: str
    objective: tuple[str, ...]
    """What was minimised, the most important first."""
    solver: str
    pads: tuple[Pad, ...]
    tensors: tuple[ResidentTensor, ...]
    steps: tuple[OperationStep, ...]
    residency: tuple[Stay, ...]
    transfers: tuple[DmaTransfer, ...]
    tally: PlanTally
    score: float
    bound: float
    """``score`` and ``bound``: of the first objective: bytes, cycles, or picojoules; no plan is below the bound."""
    proven: bool
    """Whether no plan is better, in all objectives."""
    bounds: dict[str, float]
    """By how they were found."""
    trace: tuple[tuple[float, float, str], ...]
    """Seconds, score and solver of each plan that was better than those before."""
    cut: tuple[tuple[str, int], ...]
    """Tensors that were cut to what fits, with their whole size."""
    assumptions: tuple[str, ...]
    channels: int
    simulated_cycles: int
    stalls: tuple[int, ...]
    """``simulated_cycles`` and ``stalls``: where transfers overlap compute, on so many ``channels``; by step, cycles
    that compute waits."""
    solvers: tuple[SolverResult, ...]
    """All that were asked, the one whose plan this is among them."""
    interrupted: bool = False

    @property
    def gap(self) -> float:
        """By which share of the bound the score is above it."""
        return max(0.0, self.score / self.bound - 1) if self.bound > 0 else float(self.score > 0)

    @property
    def problem(self) -> ResidencyProblem:
        """What was solved."""
        return ResidencyProblem(self.network, self.steps, self.tensors, self.pads, self.cut)

    def plain(self) -> dict[str, Any]:
        """Return all of it as plain data, with the gap."""
        return {"kind": self.kind, "gap": self.gap} | asdict(self)


def plan_record(search: PlanSearch, told: dict[str, Any], results: Sequence[SolverResult], channels: int) -> PlanRecord:
    """Return the record of a plan that was found; ``told`` are fields that the search does not know."""
    problem, prices = search.problem, search.prices
    assert search.score is not None
    moved = transfers_of(problem, search.stays)
    simulated = simulate(problem, search.stays, channels)
    residency = tuple(sorted(search.stays, key=lambda one: (one.first, one.tensor)))
    return PlanRecord(
        kind=FORMAT.kind, network=problem.name, pads=problem.pads, tensors=problem.tensors, steps=problem.steps,
        residency=residency, transfers=moved, tally=tally(problem, moved), score=prices.first(search.score),
        bound=prices.first(search.bound), proven=search.closed, cut=problem.cut_bytes, channels=channels,
        bounds={name: prices.first(bound) for name, bound in search.bounds.items()},
        trace=tuple((at, prices.first(score), by) for at, score, by in search.trace),
        simulated_cycles=simulated.cycles, stalls=simulated.stalls, solvers=tuple(results), **told)


def read_plan(text: str, label: str) -> PlanRecord:
    """Return the plan that `PlanRecord.plain` told, from JSON.

    Raises an `InputError` if the text is none, or something in it is wrong.
    """
    found = read_record(PlanRecord, FORMAT, text, label)
    told = json.loads(text).get("gap", found.gap)
    if not isinstance(told, int | float) or not isclose(told, found.gap, rel_tol=1e-9, abs_tol=1e-12):
        raise InputError(f"{label} gap", "must be that of the score over the bound", told)
    return found

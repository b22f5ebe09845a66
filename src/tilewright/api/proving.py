"""Certificates: runs whose claims another program checks, that no mapping scores below what was proved."""

import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from math import inf
from pathlib import Path

import numpy as np

from tilewright.api.evaluation import case_cost
from tilewright.api.runs import open_run
from tilewright.base import InputError, open_binary
from tilewright.cost import cost_model
from tilewright.cost.reference import EQUAL, TOUCH_BUDGET, GivenUp, ProofSpace, check_claim
from tilewright.jobs import Stop, present_stop
from tilewright.mapping import Constraints, Mapping, MappingBatch, MapSpace, full_keeps, is_legal, load_constraints
from tilewright.search import Objective, Scorer
from tilewright.store import LayerRecord, RequestRecord, accelerator_of, mapping_of, operator_of

HEAD = 1000
"""Bytes of a file by which a run is known."""


@dataclass(frozen=True)
class CheckedClaim:
    """What came of checking what a run says of a layer."""

    layer: str
    score: float | None
    bound: float | None
    """``score`` and ``bound``: what its mapping is said to score, and what none is said to score below."""
    holds: bool | None
    """Whether both are so; None where that could not be told."""
    reason: str
    """Why, or what it took to tell."""
    better: Mapping | None = None
    """A mapping that scores below the bound, where one was found."""

    def __str__(self) -> str:
        word = {True: "holds", False: "does not hold", None: "could not be told"}[self.holds]
        claim = f"no mapping scores below {self.bound:.9g}" if self.bound is not None else "nothing is claimed"
        if self.score and self.bound and self.bound > 0:
            gap = self.score / self.bound - 1
            claim += ", the optimum" if gap <= EQUAL else f", {gap:.2%} below the {self.score:.9g} found"
        return f"{self.layer}: {claim}: {word} ({self.reason})"


def verify(place: str | os.PathLike[str], optimum: bool = False, seconds: float | None = None,
           ) -> tuple[CheckedClaim, ...]:
    """Check what a run claims of its layers: see `checked`, which tells of each as soon as it is checked."""
    return tuple(checked(place, optimum, seconds))


def checked(place: str | os.PathLike[str], optimum: bool = False, seconds: float | None = None, *,
            told: Callable[[str, int, int], None] = lambda name, done, total: None,
            stop: Stop | None = None) -> Iterator[CheckedClaim]:
    """Check what a run claims of its layers by a program that shares no code with searches, bounds and engine.

    Each mapping is scored anew, by the oracle where it is small enough for that (else by the model's formulas), and the
    space of all mappings is gone through for one that scores below the bound.

    Parameters
    ----------
    place
        A certificate (``tilewright map ... --certificate FILE``), or a run as of `open_run`.
    optimum
        Check more than is claimed: that each mapping is the optimum, whatever the bound.
    seconds
        For each layer, of which it cannot be told where they do not suffice; None: no limit.
    told
        Told every few seconds of the layer, the kept sets that are gone through, and how many there are.
    stop
        Ends it when set: then of the present layer it could not be told either, and those after it are left out.

    Raises
    ------
    InputError
        If there is no such run, or its mappings are not what the checker knows: with perfect or imperfect tiling, under
        no limits and no constraints but what memories keep, on machines that make no use of zeros and forward no words.
    """
    if seconds is not None and not seconds > 0:
        raise InputError("seconds", "must be positive", seconds)
    record, stop = open_run(place).record, stop or present_stop()
    machine = accelerator_of(record.accelerator)
    for layer in record.layers:
        operator = operator_of(layer)
        constraints = load_constraints(record.request.space, operator, machine) if record.request.space else (
            Constraints())
        space = MapSpace(operator, machine, record.request.tiling, constraints)  # type: ignore[arg-type]
        watch = _Watch(layer.name, seconds, told, stop)
        yield _checked(layer, provable(space, record.request), Scorer(
            Objective.parse(record.request.objective), operator, machine), optimum, watch)
        if stop.is_set():
            return


class _Watch:
    """Tells how far the check of a layer is, and ends it where its time is over or it is to stop."""

    def __init__(self, name: str, seconds: float | None, told: Callable[[str, int, int], None], stop: Stop) -> None:
        self.name, self.seconds, self.told, self.stop = name, seconds, told, stop
        self.began = time.monotonic()

    def look(self, done: int, total: int) -> None:
        """Take note of kept sets that are gone through, of so many."""
        self.told(self.name, done, total)
        if self.stop.is_set():
            raise GivenUp("it was stopped")
        if self.seconds is not None and time.monotonic() - self.began >= self.seconds:
            raise GivenUp(f"{self.seconds:g} s were over")


def is_run(place: str | os.PathLike[str]) -> bool:
    """Whether a file seems to hold a run, perhaps a broken one; not where it cannot be read."""
    if not Path(place).is_file():
        return False
    try:
        with open_binary(Path(place)) as file:
            return b'"software"' in file.read(HEAD)
    except OSError:
        return False


def provable(space: MapSpace, request: RequestRecord) -> ProofSpace:
    """Return a space as the checker knows it; an `InputError` where it does not."""
    unknown = {
        f"{space.tiling} tiling": space.tiling not in {"perfect", "imperfect"},
        "limits on layers": bool(request.constraints), "a dataflow": bool(request.dataflow),
        "several densities": bool(request.densities),
        "constraints but of what memories keep": replace(space.constraints, keeps={}) != Constraints()}
    told = [what for what, there in unknown.items() if there]
    objective = Objective.parse(request.objective)
    if told or objective.traffic:
        raise InputError("certificate", "must be of what the checker knows: not of " + " and ".join(
            told or ["traffic"]), space.operator.name,
            "Search with perfect or imperfect tiling alone, or without a certificate")
    scorer = Scorer(objective, space.operator, space.accelerator)
    return ProofSpace(space.operator, space.accelerator, tuple(
        (weight * space.accelerator.area_um2 ** metric.area, metric.latency, metric.energy)
        for weight, metric in scorer.weights), dict(space.constraints.keeps), space.tiling == "imperfect")


@dataclass(frozen=True)
class LayerRules:
    """What mappings of a layer score by the model's rules; infinity where they are not legal."""

    space: ProofSpace
    scorer: Scorer

    def one(self, mapping: Mapping, most: int = TOUCH_BUDGET // 100) -> float:
        """Return the score of a mapping, by the oracle unless that would touch more than so many words."""
        operator, machine = self.space.operator, self.space.accelerator
        if not is_legal(mapping, operator, machine):
            return inf
        cost = case_cost(operator, machine, mapping, reference=self._touches <= most)
        return float(self.scorer.values(float(cost.latency_cycles), cost.energy_pj, machine.area_um2))

    def some(self, mappings: list[Mapping]) -> list[float]:
        """Return the scores of mappings that keep the same."""
        operator, machine = self.space.operator, self.space.accelerator
        if self._touches <= TOUCH_BUDGET // 100:
            return [self.one(mapping) for mapping in mappings]
        batch = MappingBatch.from_mappings(mappings, operator, machine)
        costs = cost_model(operator, machine, batch.layout).score(batch)
        found: list[float] = np.where(costs.legal, self.scorer.values(
            costs.latency_cycles, costs.energy_pj, machine.area_um2), inf).tolist()
        return found

    @cached_property
    def _touches(self) -> int:
        operator = self.space.operator
        return operator.macs * len(operator.tensors) * len(self.space.accelerator.memories)


def _checked(layer: LayerRecord, space: ProofSpace, scorer: Scorer, optimum: bool, watch: _Watch) -> CheckedClaim:
    """Check what is said of one layer, or that its mapping is the optimum."""
    search, bounds, rules = layer.search, layer.bounds, LayerRules(space, scorer)
    score = None if search is None else search.score
    bound = score if optimum else None if bounds is None else bounds.score
    if layer.mapping is None or score is None or bound is None:
        return CheckedClaim(layer.name, score, bound, None, layer.reason or "no mapping or no bound is given")
    mapping = mapping_of(layer)
    again = rules.one(mapping, TOUCH_BUDGET)
    wrong = [f"its mapping scores {again:.9g}"] if not abs(again - score) <= EQUAL * score else []
    wrong += [f"the bound is not at most {score:.9g}, which was found"] if not bound <= score * (1 + EQUAL) else []
    wrong += _outside(mapping, space)
    if wrong:
        return CheckedClaim(layer.name, score, bound, False, "; ".join(wrong))
    verdict = check_claim(space, bound, rules.some, look=watch.look)
    return CheckedClaim(layer.name, score, bound, verdict.holds, verdict.reason, verdict.better)


def _outside(mapping: Mapping, space: ProofSpace) -> Iterator[str]:
    """Yield why a mapping is none of the space."""
    extents = dict(space.operator.sizes)
    for loop in (loop for level in mapping.levels for loop in level.loops):
        if extents[loop.dimension] % loop.step and not space.ragged:
            yield f"a step of {loop.step} does not divide {extents[loop.dimension]} of {loop.dimension}"
        extents[loop.dimension] = loop.step
    kept = {level: set(names) for level, names in full_keeps(mapping, space.operator, space.accelerator).items()}
    if kept not in [{level: set(names) for level, names in one.items()} for one in space.kept_sets()]:
        yield "its memories keep what is not to choose from"

"""Designs: the methods that find them, by name, and what a run of one tells."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from math import inf, isfinite
from typing import Any, Protocol

import numpy as np

from tilewright.base import InputError, Registry
from tilewright.codesign.limits import Limit
from tilewright.codesign.methods import MODULES
from tilewright.codesign.problem import DesignProblem, Figures, rated
from tilewright.codesign.screening import HardwareBoxes
from tilewright.codesign.session import Candidate, Session
from tilewright.cost import Cost, DenseModel
from tilewright.hardware import Accelerator, Number
from tilewright.jobs import Observer, Runner, RunnerProgress
from tilewright.mapping import Mapping as Nest
from tilewright.mapping import smallest_mapping, violations
from tilewright.search import METRICS, Improvement, Options, Source, first_of_front, read_front

FEWEST = 64
"""Samples of each layer that a share of a front's search has at least."""
CLOSE = 0.01
"""Part of a value within which its bound is near enough."""
PROOF_ROUNDS = 12
"""Rounds of splitting boxes for the bound of a method that bounds nothing itself."""


class Designer(Protocol):
    """A method: proposes machines and mappings to its session, step by step."""

    def steps(self) -> Iterator[None]:
        """Work until the session is over, or there is nothing more to try."""


DESIGNERS: Registry[Callable[[Session, Options], Designer]] = Registry(
    "design method", "tilewright.codesign.auto", *MODULES)
"""Every method by name. One module and one line ``@DESIGNERS.register(name)`` add one."""


@dataclass(frozen=True)
class DesignedLayer:
    """A layer of a design: its mapping, and what it costs once."""

    mapping: Nest
    cost: Cost
    weight: float


@dataclass(frozen=True)
class Designed:
    """What a design run found."""

    problem: DesignProblem
    method: str
    seed: int
    """``problem``, ``method`` and ``seed``: what was asked."""
    best: Candidate | None
    """The best machine with its mappings; None where nothing within the limits was found."""
    bound: float
    """What no machine of the space within the limits scores below, whatever the mappings."""
    samples: int
    seconds: float
    """``samples`` and ``seconds``: mappings of a layer scored, and time spent."""
    history: tuple[Improvement, ...]
    """Every improvement."""
    tried: tuple[Candidate, ...]
    """Machines with their mappings: those that were the best, or nearest to the limits, and all that were searched."""
    machines: frozenset[tuple[float, ...]]
    """The numbers of all machines tried."""
    interrupted: bool = False
    """Whether it was stopped early."""
    structures: tuple["Designed", ...] = ()
    """Of a space with optional levels: what was found with all of them, and without some."""

    @property
    def machine(self) -> Accelerator:
        """The machine; an `InputError` where none was found."""
        base = self.problem.space.accelerator
        found = self.problem.machine(self.chosen, f"{base.name.removesuffix('-designed')}-designed")
        varied = ", ".join(".".join(key) for key in self.chosen)
        return replace(found, sources=(f"Designed from {base.name}, whose sources follow; they do not tell {varied}",
                                       *found.sources))

    @property
    def chosen(self) -> Mapping[Number, float]:
        """Its numbers, of those that vary; an `InputError` where none was found."""
        if self.best is None:
            raise InputError("design", "must have been found", f"none within {self.samples} samples",
                             "Give more samples, or a larger budget")
        return self.best.chosen

    @property
    def figures(self) -> Figures:
        """What the networks take on it."""
        return Figures(inf, inf, inf) if self.best is None else self.best.figures

    @property
    def power_mw(self) -> float:
        """Average power while the networks run."""
        return float(self.problem.power(self.figures))

    @property
    def score(self) -> float:
        """The objective; infinite where nothing was found."""
        return inf if self.best is None else self.best.score

    @property
    def gap(self) -> float | None:
        """By which share the score can be above the best of any design within the limits; None where nothing is."""
        return self.score / self.bound - 1.0 if isfinite(self.score) and self.bound > 0 else None

    @cached_property
    def layers(self) -> dict[str, DesignedLayer]:
        """The layers by name, with their mappings and costs on the machine."""
        machine, found = self.machine, {}
        assert self.best is not None
        for at, (operator, weight) in enumerate(zip(self.problem.layers, self.problem.weights.tolist(), strict=True)):
            mapping = self.best.mapping(self.problem, at).mapping(0, operator.sizes)
            found[operator.name] = DesignedLayer(mapping, DenseModel(operator, machine).cost(mapping), weight)
        return found

    def front(self, metrics: str | Sequence[str]) -> tuple[Candidate, ...]:
        """Return the Pareto front over the machines tried, with their mappings, by rising first metric.

        A machine is there several times where its mappings trade cycles for picojoules; each candidate has the choice
        of mappings that gives its figures. Those over a limit are left out.

        Raises an `InputError` if there is but one metric, one is unknown or given twice, or areas are not known.
        """
        names, problem, points = read_front(metrics), self.problem, list[Candidate]()
        if not names:
            raise InputError("front", "must be two or more metrics", "none", "For example latency,energy,area")
        if any(METRICS[name].area for name in names):
            problem.budget.check(areas=True)
        machine = problem.space.accelerator
        for one in self.tried:
            if one.fronts is None or problem.budget.excess(one.chosen) > 0:
                continue
            choice, figures = rated(problem, one.fronts, one.figures.area_um2, problem.rows(one.chosen))
            values = np.stack([figures.latency_cycles, figures.energy_pj], axis=1)
            power = problem.power(figures)
            within = np.flatnonzero(power <= problem.budget.most("power"))
            for at in within[first_of_front(values[within])].tolist():
                own = Figures(float(values[at, 0]), float(values[at, 1]), one.figures.area_um2)
                points.append(replace(one, choice=tuple(choice[:, at].tolist()), figures=own,
                                      score=float(problem.value(own))))
        table = np.array([[each.figures.of(name, machine) for name in names] for each in points])
        return tuple(points[at] for at in first_of_front(table.reshape(len(points), len(names))).tolist())

    def violations(self, candidate: Candidate) -> list[str]:
        """Return why a machine is not within the limits or does not run all layers, each with its smallest cure."""
        problem, figures = self.problem, candidate.figures
        machine, found = problem.machine(candidate.chosen), list[str]()
        for layer in candidate.unmapped:
            wrong = violations(smallest_mapping(problem.layers[layer], machine), problem.layers[layer], machine)
            found.append(f"no mapping of {problem.layers[layer].name}: " + (
                "; ".join(each.message for each in wrong) or "none was found, though there are some; search longer"))
        run = None if candidate.fronts is None else (figures.latency_cycles, figures.energy_pj)
        return found + problem.budget.violations(candidate.chosen, run)

    @property
    def rejected(self) -> list[Candidate]:
        """The machines tried that are not within the limits or do not run all layers, the least violating first."""
        return sorted((one for one in self.tried if one.score == inf), key=lambda one: (len(one.unmapped), one.excess))


def budget_bound(problem: DesignProblem, rounds: int = PROOF_ROUNDS, below: float = inf) -> float:
    """Return what no machine of the space within the limits scores below, up to ``below``.

    Boxes are split for so many rounds, or until the bound is `CLOSE` to ``below``.
    """
    boxes = HardwareBoxes.whole(problem)
    for _ in range(rounds):
        if boxes.least >= below * (1 - CLOSE):
            break
        boxes.split(16, below)
    return min(boxes.least, below)


def design(problem: DesignProblem, method: str = "auto", *, samples: int | None = 40_000,  # noqa: PLR0913
           seconds: float | None = None, seed: int = 0, runner: Runner | None = None,
           options: Options | None = None, told: Observer | None = None, proof: int = PROOF_ROUNDS,
           known: Mapping[str, Sequence[Source]] | None = None) -> Designed:
    """Find a machine within a budget, and the mapping of every layer.

    The same seed and samples give the same design on any number of workers. What ``runner`` keeps is taken over by a
    later run of the same, which comes to the same end.

    Parameters
    ----------
    samples, seconds
        Mappings of a layer that may be scored, and time that may pass; None for as many as it takes, or as long.
    told
        Told how far it is, in samples (in seconds where only they are limited).
    proof
        Rounds of splitting for the bound of methods that bound nothing themselves.
    known
        Mappings that ``auto`` begins from, by the name of the layer.

    Raises
    ------
    InputError
        If the method is unknown, or not even the smallest machine is within the limits.
    """
    if samples is not None and samples < len(problem.layers):
        raise InputError("samples", f"must be at least one for each of the {len(problem.layers)} layers", samples)
    make = DESIGNERS.get(method)
    problem.budget.check(problem.objective.endswith("area"))
    session = Session(problem, samples, seconds, seed, runner or Runner(), known)
    designer = make(session, options or {})
    for _ in designer.steps():
        if told is not None:
            told(session.standing("design" if session.best is None else
                                  f"best {session.score_so_far:.4g}, bound {session.bound:.4g}:"))
        if session.over:
            break
    bound = session.bound or budget_bound(problem, proof, below=session.score_so_far)
    best = None if session.best is None else session.least(session.best)
    return Designed(problem, method, seed, best, session.bounded(bound), session.spent,
                  session.used_seconds, tuple(session.history), tuple(session.tried), frozenset(session.machines),
                  session.runner.stop.is_set())


def design_front(problem: DesignProblem, metrics: Sequence[str], method: str = "auto", *,  # noqa: PLR0913
                 samples: int | None = 40_000, seconds: float | None = None, told: Observer | None = None,
                 **more: Any) -> Designed:
    """Find machines all along a Pareto front: as `design` does, with equal shares for its objective and for others.

    The others are each metric of the front alone and, where area is one, the objective within ever smaller areas. The
    best is that of the objective, and its bound; all that was tried is there for `Designed.front`.
    """
    ways = [replace(problem, objective=goal) for goal in ("latency", "energy")
            if any(getattr(METRICS[name], goal) for name in metrics) and goal != problem.objective]
    shares = (2, 4, 8) if any(METRICS[name].area for name in metrics) else ()
    count = 1 + len(ways) + len(shares)
    if samples is not None:
        count = min(count, max(1, samples // (FEWEST * len(problem.layers))))
    terms = {"samples": samples and samples // count, "seconds": seconds and seconds / count, **more}
    found = design(problem, method, told=_share_of(told, 0, count), **terms)
    if found.best is not None:
        largest = found.figures.area_um2
        ways += [replace(problem, objective=problem.objective.removesuffix("-area"), limits=(
            *(one for one in problem.limits if one.what != "area"), Limit("area", largest / share)))
            for share in shares]
    for at, way in enumerate(ways[:count - 1], 1):
        if found.interrupted:
            break
        with suppress(InputError):  # not even the smallest machine is within so small an area
            way.budget.check()
            found = _joined(found, design(way, method, told=_share_of(told, at, count), **terms))
    return found


def design_structures(problem: DesignProblem, method: str = "auto", *, samples: int | None = 40_000,
                      seconds: float | None = None, told: Observer | None = None, **more: Any) -> Designed:
    """Find a machine as `design` does, with all levels or without some of the optional ones of the space.

    Each structure has an equal part of what is left, unless its bound is no less than the best score so far. The bound
    of all is the least of theirs, as each machine has one structure.

    Raises an `InputError` if the smallest machine of no structure is within the limits.
    """
    found, refused = list[Designed](), list[InputError]()
    structures = list(problem.space.structures())
    for at, one in enumerate(structures):
        way, score = replace(problem, space=one), min((each.score for each in found), default=inf)
        try:
            way.budget.check(problem.objective.endswith("area"))
        except InputError as error:
            refused.append(error)
            continue
        spent, ahead = sum(each.samples for each in found), len(structures) - at
        share = None if samples is None else (samples - spent) // ahead
        bound = budget_bound(way, below=score) if found else 0.0
        ended = any(each.interrupted for each in found) or (share or inf) < len(problem.layers)
        if found and (bound >= score or ended):
            found.append(Designed(way, method, more.get("seed", 0), None, bound, 0, 0.0, (), (), frozenset()))
        else:
            found.append(design(way, method, samples=share, seconds=seconds and seconds / len(structures),
                                told=_share_of(told, at, len(structures)), **more))
    if not found:
        raise refused[0]
    best = min(found, key=lambda each: (each.score, not each.tried, each.rejected[0].excess if each.rejected else inf))
    return replace(best, bound=min(each.bound for each in found), samples=sum(each.samples for each in found),
                   seconds=sum(each.seconds for each in found), interrupted=any(each.interrupted for each in found),
                   structures=tuple(found) if len(structures) > 1 else ())


def design_each(problem: DesignProblem, method: str = "auto", *, samples: int | None = 40_000,
                seconds: float | None = None, told: Observer | None = None, **more: Any) -> tuple[Designed, ...]:
    """Find a machine for every layer by itself, each within all of the budget, as DiGamma's release does.

    Samples and seconds are shared equally.

    Raises an `InputError` if the objective is no sum over layers, or a layer has no machine within the limits.
    """
    if problem.objective not in ("latency", "energy"):
        raise InputError("objective", "must be latency or energy where each layer has a machine of its own",
                         problem.objective)
    count, found = len(problem.layers), list[Designed]()
    if samples is not None and samples < count:
        raise InputError("samples", f"must be at least one for each of the {count} layers", samples)
    share, time = samples and samples // count, seconds and seconds / count
    for at, layer in enumerate(problem.layers):
        way = replace(problem, layers=(layer,), weights=problem.weights[[at]], vector=())
        if found and found[-1].interrupted:
            found.append(replace(found[-1], problem=way, best=None, bound=0.0, samples=0, seconds=0.0, tried=(),
                                 machines=frozenset()))
        else:
            found.append(design_structures(way, method, samples=share, seconds=time,
                                           told=_share_of(told, at, count), **more))
    return tuple(found)


def _share_of(told: Observer | None, at: int, count: int) -> Observer | None:
    """Return what is told how far one of several equal shares is, and tells that of the whole."""
    if told is None:
        return None

    def tell(one: RunnerProgress) -> None:
        whole, eta = count * one.total, one.eta_seconds
        left = None if eta is None else eta + (count - at - 1) * (one.seconds + eta)
        told(replace(one, done=one.done + at * one.total, total=whole, eta_seconds=left))

    return tell


def _joined(found: Designed, other: Designed) -> Designed:
    """Return a design with all that another run, of another objective or within a smaller budget, has tried besides."""
    problem, samples, seconds = found.problem, found.samples + other.samples, found.seconds + other.seconds
    tried = [one if one.fronts is None else Candidate.of(problem, one.chosen, one.fronts) for one in other.tried]
    best = min(tried, key=lambda one: one.score, default=None)
    better = best is not None and best.score < found.score
    return replace(found, samples=samples, seconds=seconds, tried=(*found.tried, *tried),
                   machines=found.machines | other.machines,
                   best=best if better else found.best, interrupted=found.interrupted or other.interrupted,
                   history=(*found.history, Improvement(samples, seconds, best.score)) if better and best else
                   found.history)

"""Mappers made of optimisers that know nothing of mappings: they propose points of a unit cube and learn numbers."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from tilewright.base import require_extra
from tilewright.mapping import MappingBatch
from tilewright.search.checkpoint import Resumable, State
from tilewright.search.mapper import MAPPERS, Options, Task, read_options
from tilewright.search.objective import BREAKS_CONSTRAINT
from tilewright.search.vectors import VectorSpace

LEAST_SCORE, MOST_SCORE = 1e-300, 1e30


@dataclass(frozen=True, eq=False)
class Known:
    """Points ``(k, n)`` that a search begins from, and their losses, as `Optimiser.tell` has them."""

    points: NDArray[np.float64]
    losses: NDArray[np.float64]

    def best(self, count: int) -> "Known":
        """Return the best ``count``, the best one first; by the sum where there are several losses."""
        order = np.argsort(self.losses.reshape(len(self.losses), -1).sum(axis=1), kind="stable")[:count]
        return Known(self.points[order], self.losses[order])


@dataclass(frozen=True)
class Problem:
    """What an optimiser is given."""

    dimension: int
    """Numbers of a point, each from 0 to 1."""
    seed: int
    """Where all its randomness comes from, below 2^32."""
    samples: int | None = None
    """Points that the budget allows in all; None where only time limits them."""
    objectives: int = 1
    """Losses of a point: 1, or for optimisers that search fronts as many as there are metrics."""
    known: Known | None = None
    """What the search begins from, if anything; it is scored already. Optimisers may make nothing of it."""


class Optimiser(Protocol):
    """Proposes points of the unit cube, batch by batch. A function of its `Problem` and of what it was told alone."""

    def ask(self) -> NDArray[np.float64]:
        """Propose ``(k, n)`` points, at least one."""

    def tell(self, losses: NDArray[np.float64]) -> None:
        """Learn the losses ``(k)`` of the points proposed last, the lower the better; all are finite.

        With several objectives they are ``(k, m)``.
        """


@dataclass(frozen=True)
class BlackBox:
    """One member of `MAPPERS` that is made of an optimiser."""

    name: str
    """What it is registered as."""
    options_type: type[Any]
    """Its record of options, each of which has a default."""
    build: Callable[[Any, Problem], Optimiser]
    """Makes the optimiser from options and problem; the only place where its library is imported."""
    extra: str = ""
    """The extra of the package that it cannot do without (`tilewright.base.EXTRAS`), if any."""
    metrics: tuple[str, ...] = ()
    """Of optimisers that search fronts: the metrics, where the search asks for no front of others."""

    def __call__(self, task: Task) -> "VectorMapper":
        """Return a mapper for a task.

        Raises an `InputError` if its extra is not installed, or an option is wrong.
        """
        options = read_options(self.options_type, task.options, self.name)
        require_extra(self.extra, "mapper", self.name)
        return VectorMapper(task, options, self.build, self.metrics and (task.front or self.metrics))


class PointSearch(Resumable):
    """Lets an optimiser search whatever points of the unit cube can stand for.

    As libraries keep their states in many ways, a search is taken up by telling a new optimiser all losses again.

    Raises an `InputError` if the optimiser's extra is not installed, or an option is wrong.
    """

    changing = ("told",)

    def __init__(self, box: BlackBox, given: Options, problem: Problem) -> None:
        options = read_options(box.options_type, given, box.name)
        require_extra(box.extra, "method", box.name)
        self.optimiser = box.build(options, problem)
        self.told = np.empty(0)

    def advance(self, score: Callable[[NDArray[np.float64]], NDArray[np.float64]]) -> None:
        """Have the points that are proposed scored, and tell their losses: logarithms, as scores may be infinite."""
        losses = losses_of(np.minimum(score(np.asarray(self.optimiser.ask(), dtype=np.float64)), MOST_SCORE))
        self.optimiser.tell(losses)
        self.told = np.concatenate([self.told, losses])

    def restore(self, state: State) -> None:
        """Tell all losses again."""
        super().restore(state)
        at = 0
        while at < len(self.told):
            count = len(self.optimiser.ask())
            self.optimiser.tell(self.told[at:at + count])
            at += count


def black_box(name: str, options: type[Any], extra: str = "", metrics: tuple[str, ...] = ()) -> Callable[
        [Callable[[Any, Problem], Optimiser]], Callable[[Any, Problem], Optimiser]]:
    """Return a decorator that registers a function, which makes an optimiser, as the mapper ``name``.

    The function's docstring is what the mapper says about itself. With ``metrics`` it searches their front.
    """

    def add(build: Callable[[Any, Problem], Optimiser]) -> Callable[[Any, Problem], Optimiser]:
        member = BlackBox(name, options, build, extra, metrics)
        object.__setattr__(member, "__doc__", build.__doc__)
        MAPPERS.register(name, options)(member)
        return build

    return add


def losses_of(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the logarithms of scores: finite also for mappings that are illegal or break a constraint.

    Those come after all others, and among themselves by how far they are over their limits: so optimisers that take
    means of losses, or fit models to them, are guided back too.
    """
    return np.log(np.maximum(scores, LEAST_SCORE))


class VectorMapper:
    """Lets an optimiser search a map space by way of `VectorSpace`.

    What the optimiser proposes at once is handed on in parts where the budget asks for fewer. As libraries keep their
    states in many ways, a search is taken up by telling a new optimiser all losses again. Mappings to begin from are
    proposed before the optimiser is made, which is given them as points with their losses.
    """

    covers_space = False
    takes_start = True

    def __init__(self, task: Task, options: Any, build: Callable[[Any, Problem], Optimiser],
                 metrics: tuple[str, ...] = ()) -> None:
        self.vectors = VectorSpace(task.space)
        self.start = task.space.empty(0) if task.start is None else task.start
        self.options = options
        self.metrics = metrics
        self.problem = Problem(self.vectors.dimension, int(task.rng.integers(0, 2**32)), task.samples,
                               max(1, len(metrics)))
        self.build = build
        self._begin()

    def _begin(self) -> None:
        self.optimiser: Optimiser | None = None
        self.points = np.empty((0, self.problem.dimension))
        self.told: list[NDArray[np.float64]] = []
        self.waiting: list[NDArray[np.float64]] = []
        self.handed = self.led = 0
        """Mappings proposed of the present points, and of those to begin from."""

    def _next_points(self) -> None:
        if self.optimiser is None:
            losses = np.concatenate(self.told) if self.told else np.empty(0)
            known = Known(self.vectors.encode(self.start), losses) if len(self.start) else None
            self.optimiser = self.build(self.options, replace(self.problem, known=known))
        self.points = np.asarray(self.optimiser.ask(), dtype=np.float64)
        self.handed = 0

    def ask(self, most: int) -> MappingBatch:
        """Propose what is left of the optimiser's present batch, or its next one, up to ``most`` mappings."""
        if self.led < len(self.start):
            lead = self.start.take(slice(self.led, self.led + most))
            self.led += len(lead)
            return lead
        if self.handed == len(self.points):
            self._next_points()
        batch = self.vectors.decode(self.points[self.handed:self.handed + most])
        self.handed += len(batch)
        return batch

    def tell(self, batch: MappingBatch, scores: NDArray[np.float64]) -> None:
        """Tell the optimiser once all it proposed at once is scored."""
        self.tell_metrics(batch, scores, np.repeat(scores[:, None], self.problem.objectives, axis=1))

    def tell_metrics(self, batch: MappingBatch, scores: NDArray[np.float64], values: NDArray[np.float64]) -> None:
        """Tell an optimiser of fronts the metrics ``(b, m)``, others the scores.

        Of mappings that are illegal or break a constraint the scores stand for all metrics.
        """
        if not self.metrics:
            self._learn(losses_of(scores))
            return
        self._learn(losses_of(np.where(scores[:, None] < BREAKS_CONSTRAINT, values, scores[:, None])))

    def _learn(self, losses: NDArray[np.float64]) -> None:
        self.told.append(losses)
        if self.optimiser is None:
            return
        self.waiting.append(losses)
        if self.handed == len(self.points):
            self.optimiser.tell(np.concatenate(self.waiting))
            self.waiting = []

    def state(self) -> State:
        """Return the seed and all losses told."""
        return {"seed": np.array([self.problem.seed], dtype=np.uint64),
                "losses": np.concatenate(self.told) if self.told else np.empty(0)}

    def restore(self, state: State) -> None:
        """Tell a new optimiser all losses again."""
        self.problem = replace(self.problem, seed=int(state["seed"][0]))
        self._begin()
        losses = state["losses"]
        while len(losses):
            taken = len(self.ask(len(losses)))
            self._learn(losses[:taken])
            losses = losses[taken:]

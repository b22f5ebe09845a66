"""Methods that search for an allocation, all counted in epochs: one epoch is one allocation of all layers, scored."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from tilewright.base import InputError, Registry, digest
from tilewright.codesign.allocation.exact import ExactAllocation, front, solve
from tilewright.codesign.allocation.problem import AllocationProblem
from tilewright.cost import Cost, DenseModel
from tilewright.hardware import Accelerator
from tilewright.jobs import Observer
from tilewright.mapping import Mapping
from tilewright.search import MAPPERS, BlackBox, Options, PlanMethod, PlanSession, PointPlans, Resumable
from tilewright.workload import Operator

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
OVER = 1e18
"""Loss of what is over the budget, times one and the shares by which it is."""


class Trial(PlanSession):
    """Scores allocations ``(b, l)`` of cells within a number of epochs, which are its samples, and keeps the best."""

    changing = (*PlanSession.changing, "closest", "loss")

    def __init__(self, problem: AllocationProblem, epochs: int, seconds: float | None = None, seed: int = 0) -> None:
        self.problem, self.epochs = problem, epochs
        super().__init__(np.zeros(len(problem.table.stages), dtype=np.int64), epochs, seconds, seed, None)

    def restart(self) -> None:
        """Forget all allocations."""
        super().restart()
        self.closest, self.loss = self.nothing.copy(), np.inf

    @property
    def curve(self) -> Floats:
        """The best so far after each epoch, infinite before the first within the budget."""
        found = np.full(self.spent, np.inf)
        for epoch, _, value in self.steps:
            found[int(epoch) - 1:] = value
        return found

    @property
    def title(self) -> str:
        """What is shown of the best."""
        return f"best {self.value:.4g}:" if self.value < np.inf else "allocation"

    def score(self, plans: Ints) -> Floats:
        """Return the losses ``(b)`` of cells ``(b, l)``; those that no epoch is left for count as infinite.

        The loss is the objective; of what is over the budget more, the more it is over, unless the problem is blind.
        """
        losses = np.full(len(plans), np.inf)
        plans = plans[:int(self.left)]
        value, over = self.problem.score(plans)
        losses[:len(plans)] = np.where(over == 0, value, OVER if self.problem.blind else OVER * (1 + over))
        if len(plans):
            within = np.where(over == 0, value, np.inf)
            self.note(within, plans[int(within.argmin())].copy())
            if losses.min() < self.loss:
                self.loss, self.closest = float(losses.min()), plans[int(losses.argmin())].copy()
        return losses


METHODS: Registry[Callable[[Trial, Options], PlanMethod]] = Registry("allocation method")
"""By name: makes a method for a trial, without options."""


@dataclass(frozen=True)
class AllocatedLayer:
    """A layer: the places of its style, elements and buffer, its mapping on its machine, and what one run costs."""

    operator: Operator
    name: str
    runs: int
    place: tuple[int, int, int]
    mapping: Mapping
    machine: Accelerator
    cost: Cost


@dataclass(frozen=True)
class AllocationResult:
    """What a method found."""

    problem: AllocationProblem
    method: str
    seed: int
    cells: Ints | None
    value: float
    """``cells`` and ``value``: the best allocation ``(l)`` within the budget and its objective; None and infinite where
    there was none."""
    curve: Floats
    """The best so far after each epoch, infinite before the first within the budget."""
    closest: Ints
    """The allocation that is best or, as long as none is within the budget, over it the least."""
    interrupted: bool = False
    """Whether it was stopped early."""

    @cached_property
    def optimum(self) -> ExactAllocation:
        """The best there is, proven; an `InputError` where it cannot be."""
        return solve(self.problem)

    @cached_property
    def layers(self) -> tuple[AllocatedLayer, ...]:
        """The layers with their mappings, machines and costs; none where nothing was found."""
        stages = self.problem.table.stages
        places = [] if self.cells is None else self.problem.places(self.cells)
        if stages.together and places:
            stages = stages.only(*places[0][1:])
        costs: dict[object, tuple[Mapping, Accelerator, Cost]] = {}
        for layer, place in enumerate(places):
            operator = stages.operators[layer]
            if (operator.signature, place) not in costs:
                nest, machine = stages.built(layer, (place[0], 0, 0) if stages.together else place)
                costs[operator.signature, place] = nest, machine, DenseModel(operator, machine).cost(nest)
        return tuple(AllocatedLayer(operator := stages.operators[layer], stages.names[layer], stages.runs[layer], place,
                                    *costs[operator.signature, place]) for layer, place in enumerate(places))

    @property
    def gap(self) -> float:
        """By what share the value is above the proven optimum."""
        return self.value / self.optimum.value - 1


def allocate(problem: AllocationProblem, method: str = "exact", *, epochs: int = 5_000, seconds: float | None = None,  # noqa: PLR0913
             seed: int = 0, told: Observer | None = None, folder: Path | None = None) -> AllocationResult:
    """Search for an allocation; same seed, same result. It ends early where `present_stop` is set.

    Parameters
    ----------
    epochs, seconds
        Allocations scored in all, and what may be spent on them.
    told
        Shown after each step where it stands.
    folder
        Where it is kept every few seconds and at its end, and from where it is taken up, to the same end.

    Raises
    ------
    InputError
        If the method is unknown, its extra is not installed, or there are no epochs.
    """
    if epochs < 1:
        raise InputError("epochs", "must be positive", epochs)
    trial = Trial(problem, epochs, seconds, seed)
    of = problem.table.stages, problem.budget, problem.objective, problem.deployment, problem.blind
    identity = {"problem": digest(of), "method": method, "plan": str(epochs), "seed": str(seed)}
    trial.run(METHODS.get(method)(trial, {}), told, None if folder is None else folder / f"{digest(identity)}.npz",
              identity)
    return AllocationResult(problem, method, seed, trial.best if np.isfinite(trial.value) else None, trial.value,
                            trial.curve, trial.closest, not trial.ended and trial.left > 0)


class _Searcher(Resumable):
    """What the methods below begin with: a trial, a generator, and random actions."""

    changing: ClassVar[tuple[str, ...]] = ("rng",)

    def __init__(self, session: Trial, options: Options) -> None:
        self.session, self.problem, self.rng = session, session.problem, np.random.default_rng(session.seed)
        self.layers = len(self.problem.table.stages)

    def random(self, count: int) -> Ints:
        """Return random actions ``(count, l, 3)``."""
        return self.rng.integers(np.array(self.problem.axes), size=(count, self.layers, 3))


@METHODS.register("exact")
class Proven(_Searcher):
    """The proven optimum, in one epoch: dynamic programming on the table."""

    changing = ()

    def step(self) -> None:
        """Solve, and end."""
        self.session.score(solve(self.problem).cells[None])
        self.session.ended = True


@METHODS.register("grid")
class Grid(_Searcher):
    """Every third level of every choice in turn, the last layer's first, from the lowest, until epochs end.

    Of layers that share a pair that comes before their styles.
    """

    changing = ("at",)
    STRIDE = 3
    at = 0

    def step(self) -> None:
        """Score the next ones."""
        numbers = np.arange(self.at, self.at + min(100, int(self.session.left)))
        values = [range(0, count, self.STRIDE if axis else 1) for axis, count in enumerate(self.problem.axes)]
        actions = np.zeros((len(numbers), self.layers, 3), dtype=np.int64)
        shared = self.problem.deployment == "sequential"
        for layer, axis in sorted(np.argwhere(self.problem.free).tolist(), key=lambda one: (
                shared and one[1] == 0, -one[0], -one[1])):
            actions[:, layer, axis] = np.array(values[axis])[numbers % len(values[axis])]
            numbers = numbers // len(values[axis])
        self.at += len(actions)
        self.session.score(self.problem.cells(actions))


@METHODS.register("random")
class RandomAllocations(_Searcher):
    """Uniform draws of all choices."""

    def step(self) -> None:
        """Score some."""
        self.session.score(self.problem.cells(self.random(min(100, int(self.session.left)))))


@METHODS.register("annealing")
class AnnealedAllocations(_Searcher):
    """Simulated annealing: one choice of one layer moves by a level; the temperature falls from 10 percent to none."""

    changing = ("rng", "here", "loss")
    TEMPERATURE = 0.1

    def __init__(self, session: Trial, options: Options) -> None:
        super().__init__(session, options)
        self.here, self.loss = self.random(1), np.inf

    def step(self) -> None:
        """Try one neighbour; a worse one is taken by chance."""
        there = self.here.copy()
        if np.isfinite(self.loss):
            axis = self.rng.choice([a for a, count in enumerate(self.problem.axes) if count > 1])
            layer = self.rng.integers(self.layers)
            moved = there[0, layer if self.problem.free[layer, axis] else 0]
            moved[axis] = np.clip(moved[axis] + self.rng.choice([-1, 1]), 0, self.problem.axes[axis] - 1)
        warmth = self.TEMPERATURE * self.session.left / self.session.epochs
        loss = float(self.session.score(self.problem.cells(there))[0])
        if loss <= self.loss or self.rng.random() < np.exp(-np.log(loss / self.loss) / warmth):
            self.here, self.loss = there, loss


class _Breeder(_Searcher):
    """What breeds generations: the best of parents and children stay."""

    changing = ("rng", "population", "losses")
    SIZE = 20

    def __init__(self, session: Trial, options: Options) -> None:
        super().__init__(session, options)
        self.population, self.losses = self.random(0), np.empty(0)

    def survive(self, born: Ints, cells: Ints) -> None:
        """Score the children, whose cells these are, and let the best live on."""
        losses = np.concatenate([self.losses, self.session.score(cells)])
        best = np.argsort(losses, kind="stable")[:self.SIZE]
        self.population, self.losses = np.concatenate([self.population, born])[best], losses[best]


@METHODS.register("ga")
class GeneticAllocations(_Breeder):
    """A plain genetic algorithm: 100 allocations, half are parents; rates of mutation and crossover 0.05 (8.2.1)."""

    SIZE, RATE = 100, 0.05

    def step(self) -> None:
        """Breed one generation."""
        if len(self.population):
            parents = self.population[:self.SIZE // 2]
            born = parents[self.rng.integers(len(parents), size=self.SIZE)]
            crossed = self.rng.random(self.SIZE) < self.RATE
            after = np.arange(self.layers) >= self.rng.integers(self.layers, size=self.SIZE)[:, None]
            others = parents[self.rng.integers(len(parents), size=self.SIZE)]
            born = np.where((crossed[:, None] & after)[..., None], others, born)
            born = np.where(self.rng.random(born.shape) < self.RATE, self.random(self.SIZE), born)
        else:
            born = self.random(self.SIZE)
        self.survive(born, self.problem.cells(born))


@METHODS.register("bayesian")
class BayesianAllocations(PointPlans):
    """Bayesian optimisation by a Gaussian process, as the mapper bayes, on the cube of all choices."""

    def __init__(self, session: Trial, options: Options) -> None:
        axes = np.tile(session.problem.axes, len(session.problem.table.stages))
        free = session.problem.free.ravel()

        def cells(_: Trial, points: Floats) -> Ints:
            chosen = np.zeros((len(points), len(axes)), dtype=np.int64)
            chosen[:, free] = np.minimum(points * axes[free], axes[free] - 1)
            return session.problem.cells(chosen.reshape(len(points), -1, 3))

        box = MAPPERS.get("bayes")
        assert isinstance(box, BlackBox)
        super().__init__(session, box, options, (int(free.sum()), cells))


class Tuning(_Breeder):
    """A genetic algorithm from the best that the trial knows on; a gene moves by at most 4."""

    STEP = 4

    def step(self) -> None:
        """Breed one generation."""
        if not len(self.population):
            self.population, self.losses = self.genes(self.session.closest)[None], np.array([self.session.loss])
        born = self.changed(self.population[self.rng.integers(len(self.population), size=self.SIZE)])
        self.survive(born, self.cells(born))

    def moved(self, genes: Ints, last: Ints) -> Ints:
        """Return genes that have moved, none beyond their ``last``."""
        found: Ints = np.clip(genes + self.rng.integers(-self.STEP, self.STEP + 1, size=genes.shape), 0, last)
        return found

    def genes(self, cells: Ints) -> Ints:
        """Return the genes of cells ``(l)``."""
        raise NotImplementedError

    def cells(self, genes: Ints) -> Ints:
        """Return the cells ``(b, l)`` of genes."""
        raise NotImplementedError

    def changed(self, born: Ints) -> Ints:
        """Return genes of children from those of their parents."""
        raise NotImplementedError


class FineTuning(Tuning):
    """The genetic algorithm of section 8.1.8, on all numbers of elements of the table, from one allocation on.

    A gene moves by at most 4; two layers of one parent exchange their cells. The best 20 of parents and children stay.
    """

    MUTATION, CROSSOVER = 0.05, 0.2

    def genes(self, cells: Ints) -> Ints:
        """Return the places ``(l, 3)``."""
        return np.stack(np.unravel_index(cells, self.problem.table.stages.shape[1:]), axis=1)

    def cells(self, genes: Ints) -> Ints:
        """Return the cells of places ``(b, l, 3)``."""
        return self.problem.cells_at(genes)

    def changed(self, born: Ints) -> Ints:
        """Let layers exchange their cells, and genes move."""
        shape, rng = np.array(self.problem.table.stages.shape[1:]), self.rng
        rows = np.flatnonzero(rng.random(self.SIZE) < self.CROSSOVER)
        one, other = rng.integers(born.shape[1], size=(2, len(rows)))
        born[rows, one], born[rows, other] = born[rows, other], born[rows, one]
        moved = self.moved(born, shape - 1)
        moved[..., 0] = rng.integers(shape[0], size=born.shape[:2])
        return np.where(rng.random(born.shape) < self.MUTATION, moved, born)


class FrontTuning(Tuning):
    """A genetic algorithm from one allocation on, whose genes are places among cells that no other of a layer beats.

    In order of what they take, a gene moves by at most 4 of them. Most of what `FineTuning` tries is beaten: with all
    numbers of elements a layer has as many cells as before 4 more elements spare it a turn.
    """

    MOVED = 3
    """Layers that move in a child, on average."""

    @cached_property
    def fronts(self) -> list[Ints]:
        """The cells of each layer that no other beats in figures and costs, in order of what they take."""
        figures, costs = self.problem.figures, self.problem.costs
        taken = np.concatenate([costs, figures[1:]])
        cells = [front(figures[0, layer], taken[:, layer]) for layer in range(figures.shape[1])]
        return [own[np.lexsort(costs[::-1, layer, own])] if len(costs) else own for layer, own in enumerate(cells)]

    def genes(self, cells: Ints) -> Ints:
        """Return the places of the best that take no more than these: their own, or of those that beat them."""
        return np.array([self._place(layer, cell) for layer, cell in enumerate(cells.tolist())])

    def cells(self, genes: Ints) -> Ints:
        """Return the cells of places ``(b, l)``."""
        return np.stack([own[places] for own, places in zip(self.fronts, genes.T, strict=True)], axis=1)

    def changed(self, born: Ints) -> Ints:
        """Let some genes move."""
        moved = self.moved(born, np.array([len(cells) - 1 for cells in self.fronts]))
        return np.where(self.rng.random(born.shape) < self.MOVED / self.layers, moved, born)

    def _place(self, layer: int, cell: int) -> int:
        """Return the place of the best that takes no more than a cell: that cell's own, or one that beats it."""
        costs, own = self.problem.costs[:, layer], self.fronts[layer]
        fits = np.all(costs[:, own] <= costs[:, cell, None], axis=0)
        return int(np.where(fits, self.problem.figures[:, layer, own].prod(axis=0), np.inf).argmin())

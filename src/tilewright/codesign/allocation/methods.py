"""Methods that search for an allocation, all counted in epochs: one epoch is one allocation of all layers, scored."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar, Protocol

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from tilewright.base import InputError, Registry
from tilewright.codesign.allocation.exact import ExactAllocation, front, solve
from tilewright.codesign.allocation.problem import AllocationProblem
from tilewright.cost import Cost, DenseModel
from tilewright.hardware import Accelerator
from tilewright.jobs import present_stop
from tilewright.mapping import Mapping
from tilewright.search import MAPPERS, BlackBox, PointSearch, Problem, Resumable, State
from tilewright.workload import Operator

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
OVER = 1e18
"""Loss of what is over the budget, times one and the shares by which it is."""


class Trial(Resumable):
    """Scores allocations within a number of epochs, and keeps the best."""

    changing = ("epochs", "spent", "best", "value", "closest", "loss", "curve")
    whole = True
    """Whether it can be taken up where it is; not within a step."""

    def __init__(self, problem: AllocationProblem, epochs: int) -> None:
        layers = len(problem.table.stages)
        self.problem, self.epochs, self.spent = problem, epochs, 0
        self.best, self.value = np.zeros(layers, dtype=np.int64), np.inf
        self.closest, self.loss = self.best.copy(), np.inf
        self.curve = np.full(epochs, np.inf)

    @property
    def left(self) -> int:
        """Epochs that may still be spent."""
        return self.epochs - self.spent

    def score(self, cells: Ints) -> Floats:
        """Return the losses ``(b)`` of cells ``(b, l)``; those that no epoch is left for count as infinite.

        The loss is the objective; of what is over the budget more, the more it is over, unless the problem is blind.
        """
        losses = np.full(len(cells), np.inf)
        cells = cells[:self.left]
        value, over = self.problem.score(cells)
        losses[:len(cells)] = np.where(over == 0, value, OVER if self.problem.blind else OVER * (1 + over))
        within = np.where(over == 0, value, np.inf)
        self.curve[self.spent:self.spent + len(cells)] = np.minimum.accumulate(np.minimum(within, self.value))
        self.spent += len(cells)
        if len(cells) and losses.min() < self.loss:
            self.loss, self.closest = float(losses.min()), cells[int(losses.argmin())].copy()
        if len(cells) and within.min() < self.value:
            self.value, self.best = float(within.min()), cells[int(within.argmin())].copy()
        return losses


class AllocationMethod(Protocol):
    """What searches: each step scores some allocations by its trial, at least one. All that changes is its state."""

    def step(self, trial: Trial) -> None:
        """Propose some allocations, score them and learn."""

    def state(self) -> State:
        """Return all that changes, as arrays."""

    def restore(self, state: State) -> None:
        """Undo `state`."""


METHODS: Registry[Callable[[AllocationProblem, int, int], AllocationMethod]] = Registry("allocation method")
"""By name: makes a method for a problem, a number of epochs and a seed."""


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
    state: State = field(repr=False)
    """What takes the search up again; nothing where it has to begin anew."""
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


def allocate(problem: AllocationProblem, method: str = "exact", *, epochs: int = 5_000, seed: int = 0,  # noqa: PLR0913
             state: State | None = None, told: Callable[[Trial, Callable[[], State]], None] | None = None,
             ) -> AllocationResult:
    """Search for an allocation; same seed, same result. It ends early where `present_stop` is set.

    Parameters
    ----------
    epochs
        Allocations scored in all.
    state
        What takes a search up where it was ended, to the same end.
    told
        Told after each step what was scored so far, and how to get the state.

    Raises
    ------
    InputError
        If the method is unknown, its extra is not installed, or there are no epochs.
    """
    if epochs < 1:
        raise InputError("epochs", "must be positive", epochs)
    search, stop = _Search(problem, method, epochs, seed), present_stop()
    trial = search.trial
    if state is not None:
        search.restore(state)
    while trial.left and not stop.is_set():
        search.method.step(trial)
        if told is not None:
            told(trial, search.state)
    found = np.isfinite(trial.value)
    return AllocationResult(problem, method, seed, trial.best if found else None, trial.value,
                            trial.curve[:trial.spent], trial.closest,
                            search.state() if trial.whole else {}, trial.left > 0)


class _Search(Resumable):
    """A method and what it has scored."""

    changing = ("trial", "method")

    def __init__(self, problem: AllocationProblem, method: str, epochs: int, seed: int) -> None:
        self.trial, self.method = Trial(problem, epochs), METHODS.get(method)(problem, epochs, seed)


@METHODS.register("exact")
class Proven(Resumable):
    """The proven optimum, in one epoch: dynamic programming on the table."""

    changing = ()

    def __init__(self, problem: AllocationProblem, epochs: int, seed: int) -> None:
        self.problem = problem

    def step(self, trial: Trial) -> None:
        """Solve, and end."""
        trial.score(solve(self.problem).cells[None])
        trial.epochs = trial.spent


class _Searcher(Resumable):
    """What the methods below begin with: a generator, and random actions."""

    changing: ClassVar[tuple[str, ...]] = ("rng",)

    def __init__(self, problem: AllocationProblem, epochs: int, seed: int) -> None:
        self.problem, self.epochs, self.rng = problem, epochs, np.random.default_rng(seed)
        self.layers = len(problem.table.stages)

    def random(self, count: int) -> Ints:
        """Return random actions ``(count, l, 3)``."""
        return self.rng.integers(np.array(self.problem.axes), size=(count, self.layers, 3))


@METHODS.register("grid")
class Grid(_Searcher):
    """Every third level of every choice in turn, the last layer's first, from the lowest, until epochs end."""

    changing = ("at",)
    STRIDE = 3

    def __init__(self, problem: AllocationProblem, epochs: int, seed: int) -> None:
        super().__init__(problem, epochs, seed)
        self.at = 0

    def step(self, trial: Trial) -> None:
        """Score the next ones."""
        numbers = np.arange(self.at, self.at + min(100, trial.left))
        values = [range(0, count, self.STRIDE if axis else 1) for axis, count in enumerate(self.problem.axes)]
        actions = np.zeros((len(numbers), self.layers, 3), dtype=np.int64)
        for layer in reversed(range(self.layers)):
            for axis in (2, 1, 0):
                actions[:, layer, axis] = np.array(values[axis])[numbers % len(values[axis])]
                numbers = numbers // len(values[axis])
        self.at += len(actions)
        trial.score(self.problem.cells(actions))


@METHODS.register("random")
class RandomAllocations(_Searcher):
    """Uniform draws of all choices."""

    def step(self, trial: Trial) -> None:
        """Score some."""
        trial.score(self.problem.cells(self.random(min(100, trial.left))))


@METHODS.register("annealing")
class AnnealedAllocations(_Searcher):
    """Simulated annealing: one choice of one layer moves by a level; the temperature falls from 10 percent to none."""

    changing = ("rng", "here", "loss")
    TEMPERATURE = 0.1

    def __init__(self, problem: AllocationProblem, epochs: int, seed: int) -> None:
        super().__init__(problem, epochs, seed)
        self.here, self.loss = self.random(1), np.inf

    def step(self, trial: Trial) -> None:
        """Try one neighbour; a worse one is taken by chance."""
        there = self.here.copy()
        if np.isfinite(self.loss):
            axis = self.rng.choice([a for a, count in enumerate(self.problem.axes) if count > 1])
            moved = there[0, self.rng.integers(self.layers)]
            moved[axis] = np.clip(moved[axis] + self.rng.choice([-1, 1]), 0, self.problem.axes[axis] - 1)
        warmth = self.TEMPERATURE * trial.left / self.epochs
        loss = float(trial.score(self.problem.cells(there))[0])
        if loss <= self.loss or self.rng.random() < np.exp(-np.log(loss / self.loss) / warmth):
            self.here, self.loss = there, loss


@METHODS.register("ga")
class GeneticAllocations(_Searcher):
    """A plain genetic algorithm: 100 allocations, half are parents; rates of mutation and crossover 0.05 (8.2.1)."""

    changing = ("rng", "population", "losses")
    SIZE, RATE = 100, 0.05

    def __init__(self, problem: AllocationProblem, epochs: int, seed: int) -> None:
        super().__init__(problem, epochs, seed)
        self.population, self.losses = self.random(0), np.empty(0)

    def step(self, trial: Trial) -> None:
        """Breed one generation."""
        if len(self.population):
            parents = self.population[np.argsort(self.losses, kind="stable")[:self.SIZE // 2]]
            born = parents[self.rng.integers(len(parents), size=self.SIZE)]
            crossed = self.rng.random(self.SIZE) < self.RATE
            after = np.arange(self.layers) >= self.rng.integers(self.layers, size=self.SIZE)[:, None]
            others = parents[self.rng.integers(len(parents), size=self.SIZE)]
            born = np.where((crossed[:, None] & after)[..., None], others, born)
            born = np.where(self.rng.random(born.shape) < self.RATE, self.random(self.SIZE), born)
        else:
            born = self.random(self.SIZE)
        losses = trial.score(self.problem.cells(born))
        born, losses = np.concatenate([self.population, born]), np.concatenate([self.losses, losses])
        best = np.argsort(losses, kind="stable")[:self.SIZE]
        self.population, self.losses = born[best], losses[best]


@METHODS.register("bayesian")
class BayesianAllocations(Resumable):
    """Bayesian optimisation by a Gaussian process, as the mapper bayes, on the cube of all choices."""

    changing = ("search",)

    def __init__(self, problem: AllocationProblem, epochs: int, seed: int) -> None:
        self.problem = problem
        self.axes = np.tile(problem.axes, len(problem.table.stages))
        self.free = self.axes > 1
        box = MAPPERS.get("bayes")
        assert isinstance(box, BlackBox)
        self.search = PointSearch(box, {}, Problem(int(self.free.sum()), seed, epochs))

    def step(self, trial: Trial) -> None:
        """Score what it proposes."""
        def score(points: Floats) -> Floats:
            chosen = np.zeros((len(points), len(self.axes)), dtype=np.int64)
            chosen[:, self.free] = np.minimum(points * self.axes[self.free], self.axes[self.free] - 1)
            return trial.score(self.problem.cells(chosen.reshape(len(points), -1, 3)))

        self.search.advance(score)


class FineTuning(Resumable):
    """The genetic algorithm of section 8.1.8, on all numbers of elements of the table, from one allocation on.

    A gene moves by at most 4; two layers of one parent exchange their cells. The best 20 of parents and children stay.
    """

    changing = ("rng", "population", "losses")
    SIZE, STEP, MUTATION, CROSSOVER = 20, 4, 0.05, 0.2

    def __init__(self, problem: AllocationProblem, rng: Generator) -> None:
        self.problem, self.rng = problem, rng
        self.population = np.empty((0, len(problem.table.stages), 3), dtype=np.int64)
        self.losses = np.empty(0)

    def step(self, trial: Trial) -> None:
        """Breed one generation; the first from the best that the trial knows."""
        shape, rng = np.array(self.problem.table.stages.shape[1:]), self.rng
        if not len(self.population):
            start = np.stack(np.unravel_index(trial.closest, tuple(shape)), axis=1)
            self.population, self.losses = start[None], np.array([trial.loss])
        born = self.population[rng.integers(len(self.population), size=self.SIZE)]
        rows = np.flatnonzero(rng.random(self.SIZE) < self.CROSSOVER)
        one, other = rng.integers(born.shape[1], size=(2, len(rows)))
        born[rows, one], born[rows, other] = born[rows, other], born[rows, one]
        moved = np.clip(born + rng.integers(-self.STEP, self.STEP + 1, size=born.shape), 0, shape - 1)
        moved[..., 0] = rng.integers(shape[0], size=born.shape[:2])
        born = np.where(rng.random(born.shape) < self.MUTATION, moved, born)
        cells = np.ravel_multi_index(tuple(np.moveaxis(born, 2, 0)), tuple(shape))
        losses = np.concatenate([self.losses, trial.score(cells)])
        best = np.argsort(losses, kind="stable")[:self.SIZE]
        self.population, self.losses = np.concatenate([self.population, born])[best], losses[best]


class FrontTuning(Resumable):
    """A genetic algorithm from one allocation on, whose genes are places among cells that no other of a layer beats.

    In order of what they take, a gene moves by at most 4 of them. Most of what `FineTuning` tries is beaten: with all
    numbers of elements a layer has as many cells as before 4 more elements spare it a turn.
    """

    changing = ("rng", "population", "losses")
    SIZE, STEP, MOVED = 20, 4, 3
    """Of the population; of a move; layers that move in a child, on average."""

    def __init__(self, problem: AllocationProblem, rng: Generator) -> None:
        self.problem, self.rng = problem, rng
        self.population = np.empty((0, len(problem.table.stages)), dtype=np.int64)
        self.losses = np.empty(0)

    @cached_property
    def fronts(self) -> list[Ints]:
        """The cells of each layer that no other beats in figures and costs, in order of what they take."""
        figures, costs = self.problem.figures, self.problem.costs
        taken = np.concatenate([costs, figures[1:]])
        cells = [front(figures[0, layer], taken[:, layer]) for layer in range(figures.shape[1])]
        return [own[np.lexsort(costs[::-1, layer, own])] if len(costs) else own for layer, own in enumerate(cells)]

    def step(self, trial: Trial) -> None:
        """Breed one generation; the first from the best that the trial knows."""
        rng, fronts = self.rng, self.fronts
        if not len(self.population):
            start: list[int] = trial.closest.tolist()
            self.population = np.array([[self._place(layer, cell) for layer, cell in enumerate(start)]])
            self.losses = np.array([trial.loss])
        born = self.population[rng.integers(len(self.population), size=self.SIZE)]
        last = np.array([len(cells) - 1 for cells in fronts])
        moved = np.clip(born + rng.integers(-self.STEP, self.STEP + 1, size=born.shape), 0, last)
        born = np.where(rng.random(born.shape) < self.MOVED / len(fronts), moved, born)
        cells = np.stack([own[places] for own, places in zip(fronts, born.T, strict=True)], axis=1)
        losses = np.concatenate([self.losses, trial.score(cells)])
        best = np.argsort(losses, kind="stable")[:self.SIZE]
        self.population, self.losses = np.concatenate([self.population, born])[best], losses[best]

    def _place(self, layer: int, cell: int) -> int:
        """Return the place of the best that takes no more than a cell: that cell's own, or one that beats it."""
        costs, own = self.problem.costs[:, layer], self.fronts[layer]
        fits = np.all(costs[:, own] <= costs[:, cell, None], axis=0)
        return int(np.where(fits, self.problem.figures[:, layer, own].prod(axis=0), np.inf).argmin())

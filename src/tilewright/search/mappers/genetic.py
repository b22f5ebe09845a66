"""Genetic algorithms on vectors, by pymoo."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from tilewright.search.boxes import Optimiser, Problem, black_box
from tilewright.search.mapper import Limits, MapperOptions, Share

EXTRA = "optimizers"


@dataclass(frozen=True)
class GeneticOptions(MapperOptions):
    """Options of the genetic algorithms."""

    population: Annotated[int, Limits(ge=2), "Points of a generation, and how many survive."] = 100
    mutation: Annotated[Share, "Chance that a number of a child changes."] = 0.1
    crossover: Annotated[Share, "Chance that two parents exchange numbers."] = 0.1


class Bred:
    """An algorithm of pymoo, generation by generation; afresh once it can breed no child that is new."""

    def __init__(self, make: Callable[..., Any], problem: Problem) -> None:
        from pymoo.core.problem import Problem as Cube  # noqa: PLC0415  (an extra)

        self.cube = Cube(n_var=problem.dimension, n_obj=problem.objectives, xl=0.0, xu=1.0)
        self.make, self.seed = make, problem.seed
        first = {} if problem.known is None else {"sampling": self._first(problem)}
        self.inner = self._start(**first)
        self.generation: Any = None

    def _first(self, problem: Problem) -> NDArray[np.float64]:
        """Return a first generation of which up to half are the best points known, which are then scored again."""
        assert problem.known is not None
        size = int(self.make().pop_size)
        known = problem.known.best(size // 2).points
        random = np.random.default_rng(problem.seed).random((size - len(known), problem.dimension))
        return np.concatenate([known, random])

    def _start(self, **first: Any) -> Any:
        from pymoo.core.termination import NoTermination  # noqa: PLC0415  (an extra)

        algorithm = self.make(**first)
        algorithm.setup(self.cube, termination=NoTermination(), seed=self.seed)
        self.seed += 1
        return algorithm

    def ask(self) -> NDArray[np.float64]:
        """Propose a generation."""
        self.generation = self.inner.ask()
        if self.generation is None or not len(self.generation):
            self.inner = self._start()
            self.generation = self.inner.ask()
        return np.asarray(self.generation.get("X"), dtype=np.float64)

    def tell(self, losses: NDArray[np.float64]) -> None:
        """Let the best of parents and children survive."""
        from pymoo.core.evaluator import Evaluator  # noqa: PLC0415
        from pymoo.problems.static import StaticProblem  # noqa: PLC0415

        Evaluator().eval(StaticProblem(self.cube, F=losses.reshape(len(losses), -1)), self.generation)
        self.inner.tell(infills=self.generation)


@black_box("ga", GeneticOptions, EXTRA)
def genetic_algorithm(options: GeneticOptions, problem: Problem) -> Optimiser:
    """Genetic algorithm on vectors, the standard one, by pymoo: tournaments, uniform crossover, mutation, elitism.

    Table 4.4: rates of 0.1 for both mutation and crossover.
    """
    from pymoo.algorithms.soo.nonconvex.ga import GA  # noqa: PLC0415  (an extra)

    return Bred(lambda **first: GA(pop_size=options.population, **_operators(options), **first), problem)


@dataclass(frozen=True)
class FrontOptions(GeneticOptions):
    """Options of ``nsga2``."""

    crossover: Share = 0.9
    mutation: Share = 0.03


@black_box("nsga2", FrontOptions, EXTRA, metrics=("latency", "energy"))
def non_dominated_sorting(options: FrontOptions, problem: Problem) -> Optimiser:
    """NSGA-II on vectors, for Pareto fronts, by pymoo (Deb et al., IEEE Transactions on Evolutionary Computation 2002).

    It searches the front of the metrics asked for, of latency and energy if there are none; the objective decides only
    which mapping of all is called the best.
    """
    from pymoo.algorithms.moo.nsga2 import NSGA2  # noqa: PLC0415  (an extra)

    return Bred(lambda **first: NSGA2(pop_size=options.population, **_operators(options), **first), problem)


def _operators(options: GeneticOptions) -> dict[str, Any]:
    from pymoo.operators.crossover.ux import UniformCrossover  # noqa: PLC0415
    from pymoo.operators.mutation.pm import PolynomialMutation  # noqa: PLC0415

    return {"crossover": UniformCrossover(prob=options.crossover),
            "mutation": PolynomialMutation(prob=1.0, prob_var=options.mutation)}

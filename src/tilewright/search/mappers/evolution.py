"""Evolution strategies, swarms and portfolios of Nevergrad and pycma.

Settings are those of table 4.4 of Kao's thesis, which names Nevergrad's implementations.
"""

import warnings
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from tilewright.base import InputError
from tilewright.search.blas import single_thread
from tilewright.search.boxes import Optimiser, Problem, black_box
from tilewright.search.mapper import Limits, MapperOptions, Natural, Positive, Share

EXTRA = "optimizers"
MOST = 10_000
"""Points at a time: the libraries take seconds to begin with more."""
EDGE = 1e-6
"""How near the faces of the cube the libraries take points that they have not proposed."""
NEAR = 0.4
"""Share of its first step with which CMA-ES begins from a known point."""
TURN = 30
"""Points that a member of the portfolio proposes at a time."""
Population = Annotated[int, Limits(ge=1, le=MOST)]


class _Nevergrad:
    """An optimiser of Nevergrad, asked for some points at a time."""

    def __init__(self, kind: Any, problem: Problem, batch: int) -> None:
        import nevergrad  # noqa: PLC0415  (an extra)

        cube = nevergrad.p.Array(shape=(problem.dimension,), lower=0.0, upper=1.0)
        # The library knows only this kind of generator.
        cube.random_state = np.random.RandomState(problem.seed)
        self.inner = kind(cube, budget=problem.samples, num_workers=batch)
        if problem.known is not None:
            known = problem.known.best(batch)
            for point, loss in zip(np.clip(known.points, EDGE, 1.0 - EDGE), known.losses.tolist(), strict=True):
                self.inner.tell(self.inner.parametrization.spawn_child(new_value=point), loss)
        self.batch = batch
        self.candidates: list[Any] = []

    def ask(self) -> NDArray[np.float64]:
        """Propose a batch."""
        self.candidates = [self.inner.ask() for _ in range(self.batch)]
        return np.array([candidate.value for candidate in self.candidates])

    def tell(self, losses: NDArray[np.float64]) -> None:
        """Learn the losses of that batch."""
        for candidate, loss in zip(self.candidates, losses.tolist(), strict=True):
            self.inner.tell(candidate, loss)


@dataclass(frozen=True)
class DifferentialOptions(MapperOptions):
    """Options of ``de``."""

    population: Annotated[Population, "Points that live."] = 30
    local_weight: Annotated[float, "Weight of the difference of two random points."] = 0.8
    global_weight: Annotated[float, "Weight of the difference to the best point."] = 0.8
    crossover: Annotated[Share, "Chance that a child takes a number from the sum of differences."] = 0.5


@black_box("de", DifferentialOptions, EXTRA)
def differential_evolution(options: DifferentialOptions, problem: Problem) -> Optimiser:
    """Differential evolution on vectors, by Nevergrad (Storn and Price, 1997).

    Table 4.4: weights of 0.8 for local and global differences.
    """
    from nevergrad import families  # noqa: PLC0415  (an extra)

    kind = families.DifferentialEvolution(F1=options.local_weight, F2=options.global_weight,
                                          crossover=options.crossover, popsize=options.population)
    return _Nevergrad(kind, problem, options.population)


@dataclass(frozen=True)
class PopulationOptions(MapperOptions):
    """Options of ``tbpsa``."""

    population: Annotated[Population, "Points of the first generation, and the fewest of any."] = 50


@black_box("tbpsa", PopulationOptions, EXTRA)
def population_size_adaptation(options: PopulationOptions, problem: Problem) -> Optimiser:
    """Test-based population-size adaptation on vectors, by Nevergrad (Hellwig and Beyer, PPSN 2016).

    Table 4.4: the first population has 50 points.
    """
    from nevergrad import families  # noqa: PLC0415  (an extra)

    return _Nevergrad(families.ParametrizedTBPSA(initial_popsize=options.population), problem, options.population)


@dataclass(frozen=True)
class SwarmOptions(MapperOptions):
    """Options of ``pso``."""

    population: Annotated[Population, "Particles."] = 40
    momentum: Annotated[float, "Share of its speed that a particle keeps."] = 1.6
    parent_weight: Annotated[float, "Weight of the way to the best point that the particle has found."] = 0.8
    global_weight: Annotated[float, "Weight of the way to the best point that any particle has found."] = 0.8


@black_box("pso", SwarmOptions, EXTRA)
def particle_swarm(options: SwarmOptions, problem: Problem) -> Optimiser:
    """Particle swarm optimisation on vectors, by Nevergrad (Kennedy and Eberhart, 1995).

    Table 4.4: weights of 0.8 for the best points, momentum 1.6. Such a momentum lets speeds grow without end, so that
    particles soon fly from one face of the cube to another; 0.72 is what the literature takes.
    """
    from nevergrad import families  # noqa: PLC0415  (an extra)

    kind = families.ConfPSO(transform="arctan", popsize=options.population, omega=options.momentum,
                            phip=options.parent_weight, phig=options.global_weight)
    return _Nevergrad(kind, problem, options.population)


@black_box("one-plus-one", MapperOptions, EXTRA)
def one_plus_one(options: MapperOptions, problem: Problem) -> Optimiser:
    """(1+1) evolution strategy on vectors with the one-fifth rule, by Nevergrad (Schumer and Steiglitz, 1968)."""
    from nevergrad import families  # noqa: PLC0415  (an extra)

    return _Nevergrad(families.ParametrizedOnePlusOne(), problem, 1)


@dataclass(frozen=True)
class CovarianceOptions(MapperOptions):
    """Options of ``cma-es``."""

    population: Annotated[Natural, "Points of a generation, of which the better half is the elite; 0 takes 4 + 3 ln(n) "
                                   "for n numbers."] = 0
    step: Annotated[Positive, "Standard deviation of the first generation."] = 0.25

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.population == 1:
            raise InputError("options.population", "must be 0 or at least 2", self.population)


@black_box("cma-es", CovarianceOptions, EXTRA)
class CovarianceMatrixAdaptation:
    """CMA-ES on vectors, by pycma (Hansen and Ostermeier, 2001).

    Table 4.4: the better half of a generation is the elite. Once it has converged it starts afresh, elsewhere.
    """

    def __init__(self, options: CovarianceOptions, problem: Problem) -> None:
        self.options, self.problem = options, problem
        self.rng = np.random.default_rng(problem.seed)
        self.points: list[NDArray[np.float64]] = []
        if problem.known is None:
            self.inner = self._start(np.full(problem.dimension, 0.5))
        else:
            self.inner = self._start(np.clip(problem.known.best(1).points[0], EDGE, 1.0 - EDGE), NEAR)

    def _start(self, centre: NDArray[np.float64], part: float = 1.0) -> Any:
        import cma  # noqa: PLC0415  (an extra)

        quiet()
        settings: dict[str, Any] = {"bounds": [0.0, 1.0], "seed": np.nan, "verbose": -9,
                                    "randn": lambda *shape: self.rng.standard_normal(shape)}
        if self.options.population:
            settings["popsize"] = self.options.population
        return cma.CMAEvolutionStrategy(centre, part * self.options.step, settings)

    def ask(self) -> NDArray[np.float64]:
        """Propose a generation."""
        with single_thread():
            if self.inner.stop():
                self.inner = self._start(self.rng.random(self.problem.dimension))
            self.points = self.inner.ask()
        return np.array(self.points)

    def tell(self, losses: NDArray[np.float64]) -> None:
        """Move and shape the distribution by the better half."""
        with single_thread():
            self.inner.tell(self.points, losses.tolist())


@black_box("portfolio", MapperOptions, EXTRA)
class PassivePortfolio:
    """CMA-ES, two-point differential evolution and a scrambled Halton sequence on vectors, in equal parts.

    After Nevergrad's passive portfolio of default settings; each member learns of its own points alone. Halton's
    sequence stands for Hammersley's, which must know its length beforehand.
    """

    def __init__(self, options: MapperOptions, problem: Problem) -> None:
        from nevergrad import families  # noqa: PLC0415  (an extra)

        pairs = families.DifferentialEvolution(crossover="twopoints")
        self.members: tuple[Optimiser, ...] = (CovarianceMatrixAdaptation(CovarianceOptions(), problem),
                                               _Nevergrad(pairs, problem, TURN), Spread(problem, TURN))
        self.taken = [0] * len(self.members)
        self.turn = 0

    def ask(self) -> NDArray[np.float64]:
        """Let the member propose that has proposed least."""
        self.turn = self.taken.index(min(self.taken))
        points = self.members[self.turn].ask()
        self.taken[self.turn] += len(points)
        return points

    def tell(self, losses: NDArray[np.float64]) -> None:
        """Tell it."""
        self.members[self.turn].tell(losses)


class Spread:
    """A sequence of points spread evenly, which learns nothing."""

    def __init__(self, problem: Problem, batch: int) -> None:
        from scipy.stats import qmc  # noqa: PLC0415  (an extra)

        self.inner = qmc.Halton(problem.dimension, rng=np.random.default_rng(problem.seed))
        self.batch = batch

    def ask(self) -> NDArray[np.float64]:
        """Propose the next points of the sequence."""
        return np.asarray(self.inner.random(self.batch), dtype=np.float64)

    def tell(self, losses: NDArray[np.float64]) -> None:
        """Learn nothing."""


def quiet() -> None:
    """Keep pycma's remarks on its own numbers from the user."""
    warnings.filterwarnings("ignore", category=UserWarning, module=r"cma\b")

"""Whatever the machine, the operator and the space: nothing is below its bound, and what is proved optimal is.

Of tiny layers every mapping is tried, of larger ones those that are drawn and those that a search finds that aims at
the bound. All are held against the bounds of their layer and against that of `auto`, which knows a mapping but not the
order of its loops; the best also by component and port. What `exact` proves is held against the best of all.
"""

from collections.abc import Iterable

import numpy as np
import pytest
from numpy.typing import NDArray
from random_layers import pick, random_space, ruled, sparse

from random_variants import random_words
from tilewright.base import InputError
from tilewright.cost import layer_bounds, least_power, space_bounds
from tilewright.mapping import MappingBatch, MapSpace, compute_cycles
from tilewright.search import MAPPERS, Objective, Task, search
from tilewright.search.mappers.auto import bounds as auto_bounds
from tilewright.search.mappers.auto.tables import bound_arrays
from tilewright.search.objective import Scorer
from tilewright.search.scoring import model_of

FEW = 2000
"""Largest space of which every mapping is tried."""
DRAWN, SEARCHED = 150, 250
ROUNDING = 1 + 1e-12


class Trial:
    """Mappings of a space, held against its bounds."""

    def __init__(self, space: MapSpace, objective: str) -> None:
        self.space, self.objective, self.goal = space, objective, Objective.parse(objective)
        self.bounds, self.model = space_bounds(space), model_of(space, self.goal)
        self.scorer = Scorer(self.goal, space.operator, space.accelerator)
        self.dense = space.accelerator.sparsity is None
        self.tables = bound_arrays(space, self.goal) if self.dense else None
        self.best: dict[str, tuple[float, MappingBatch]] = {}

    def score(self, batch: MappingBatch) -> NDArray[np.float64]:
        """Return scores, infinite for illegal mappings; each is held against the bound of `auto`, the best are kept."""
        costs = self.model.score(batch)
        cycles, energy = costs.latency_cycles, costs.energy_pj
        for metric, found in (("latency", cycles), ("energy", energy), ("edp", cycles * energy), (
                "power", energy / cycles)):
            values = np.where(costs.legal, found, np.inf)
            at = int(values.argmin())
            if values[at] < self.best.get(metric, (np.inf,))[0]:
                self.best[metric] = float(values[at]), batch.take(slice(at, at + 1))
        scores = np.asarray(self.scorer.values(costs.latency_cycles, costs.energy_pj, costs.area_um2))
        if self.tables is not None:
            found, (tables, shape) = np.empty(len(batch)), self.tables
            auto_bounds.bounds_into(self.space.table, tables, self.space.scratch(), np.zeros(shape), batch.steps,
                                    batch.ranks, found)
            assert (found <= scores)[costs.legal].all(), "auto"
        return np.where(costs.legal, scores, np.inf)

    def propose(self, mapper: str, budget: int, rng: np.random.Generator) -> None:
        """Score so many mappings that a mapper proposes."""
        made = MAPPERS.get(mapper)(Task(self.space, rng, budget, objective=self.goal))
        while budget > 0 and len(batch := made.ask(budget)):
            made.tell(batch, self.score(batch))
            budget -= len(batch)

    def check(self) -> None:
        """Hold the best against the bounds."""
        for metric, least in (("latency", self.bounds.latency_cycles), ("energy", self.bounds.energy_pj),
                              ("edp", self.bounds.edp), ("power", least_power(self.space))):
            assert least <= self.best[metric][0] * ROUNDING, metric
        if not self.dense:
            return
        for metric in ("latency", "energy"):
            cost = self.model.cost(self.best[metric][1].mapping(0, self.space.operator.sizes))
            assert self.bounds.compute_cycles <= compute_cycles(cost.steps, self.space.operator, self.space.accelerator)
            for memory, cycles in self.bounds.data_cycles.items():
                assert cycles <= cost.traffic[memory].cycles, memory
            for component, energy in self.bounds.energy_by_component_pj.items():
                assert energy <= cost.energy_by_component_pj[component] * (1 + 1e-9), component
        if self.space.constraints.keeps:
            free = layer_bounds(self.space.operator, self.space.accelerator, bypass=True)
            assert free.energy_pj <= self.best["energy"][0] * ROUNDING, "bypass"
            assert free.latency_cycles <= self.best["latency"][0], "bypass"

    def prove(self) -> None:
        """Let `exact` prove an optimum, and see that nothing better was found."""
        proved = search(self.space.operator, self.space.accelerator, space=self.space, mapper="exact",
                        objective=self.objective, budget="20000,3s", options={"start": 50})
        if proved.complete and self.best:
            assert proved.score is not None and proved.score <= self.best[self.objective][0] * (1 + 1e-9), "exact"


def check_layer(seed: int, *, words: bool = False, rules: bool = False) -> bool:
    """Hold a random layer, perhaps of words of random types or with rules, against its bounds.

    Return whether any mapping was legal.
    """
    rng = np.random.default_rng([20_26, seed])
    space, objective = random_space(rng), pick(rng, "latency", "energy", "edp")
    if words:
        space = MapSpace(*random_words(rng, space.operator, space.accelerator), space.tiling, space.constraints)
    if rules:
        space = ruled(rng, space)
        try:
            space.refuse_empty()
        except InputError:
            return False
    zeros, proof = rng.random() < 0.12, rng.random() < 0.12
    trial = Trial(sparse(rng, space) if zeros and not words else space, objective)
    size = space.size()
    every = size.exact and 0 < size.mappings <= FEW
    if every:
        trial.propose("exhaustive", FEW, rng)
    elif not size.exact or size.mappings:
        trial.score(space.sample(rng, DRAWN, filling=0.5))
        trial.propose("gamma", SEARCHED, rng)
    if trial.best:
        trial.check()
    if trial.dense and proof:
        trial.prove()
    return bool(trial.best)


def check_layers(seeds: Iterable[int], *, words: bool = False, rules: bool = False) -> None:
    seeds, found = list(seeds), 0
    for seed in seeds:
        try:
            found += check_layer(seed, words=words, rules=rules)
        except AssertionError as error:
            raise AssertionError(f"seed {seed}") from error
    assert found > len(seeds) // 2


@pytest.mark.sample(2)
@pytest.mark.parametrize("first", range(0, 500, 25))
def test_nothing_is_below_its_bound_in_500_layers(first):
    check_layers(range(first, first + 25))


def test_a_memory_that_serves_lanes_together_takes_fewer_words_through_the_arrays_outside_it():
    assert check_layer(1350)


def test_nothing_is_below_its_bound_whatever_the_words():
    check_layers(range(10), words=True)


def test_nothing_is_below_its_bound_in_spaces_with_rules():
    check_layers([*range(12), 31], rules=True)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, 4000, 400))
def test_nothing_is_below_its_bound_in_4000_spaces_with_rules(first):
    check_layers(range(first, first + 400), rules=True)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(500, 20_000, 100))
def test_nothing_is_below_its_bound_in_20000_layers(first):
    check_layers(range(first, first + 100))

"""Whatever memories keep: no mapping of any kept set is below the bounds of its set, nor below those of all sets."""

from dataclasses import replace

import numpy as np
import pytest
from random_layers import between, random_space, ruled

from tilewright.base import InputError
from tilewright.cost import CostBatch, HardwareBatch, hardware_bounds, layer_bounds, space_bounds
from tilewright.hardware import Accelerator, AccessEnergy, Bandwidth, Fanout, Memory
from tilewright.mapping import Constraints, KeptSets, MapSpace
from tilewright.search import MAPPERS, Objective, Task
from tilewright.search.scoring import model_of
from tilewright.validation.random_nests import random_operator
from tilewright.workload import ROLES

FEW, DRAWN, SEARCHED, SETS = 3000, 100, 300, 4
"""The largest space of which all mappings are tried; of larger ones those drawn and searched; kept sets looked at."""
ROUNDING = 1 + 1e-9
METRICS = ("latency_cycles", "energy_pj", "edp")


def best_of(space: MapSpace, rng: np.random.Generator) -> dict[str, float]:
    """Return the least of every metric over legal mappings of a space."""
    goal, size = Objective.parse("energy"), space.size()
    model, best = model_of(space, goal), dict.fromkeys(METRICS, np.inf)

    def noted(costs: CostBatch) -> np.ndarray:
        edp = costs.latency_cycles * costs.energy_pj
        for metric, values in zip(METRICS, (costs.latency_cycles, costs.energy_pj, edp), strict=True):
            best[metric] = min(best[metric], float(np.where(costs.legal, values, np.inf).min()))
        return np.where(costs.legal, costs.energy_pj, np.inf)

    if size.exact and not size.mappings:
        return best
    mapper, left = ("exhaustive", FEW) if size.exact and size.mappings <= FEW else ("gamma", SEARCHED)
    if mapper == "gamma":
        noted(model.score(space.sample(rng, DRAWN, filling=0.6)))
    made = MAPPERS.get(mapper)(Task(space, rng, left, objective=goal))
    while left > 0 and len(batch := made.ask(left)):
        made.tell(batch, noted(model.score(batch)))
        left -= len(batch)
    return best


def small_chip(rng: np.random.Generator) -> MapSpace:
    """Return the space of a tiny layer on a machine of two small memories where accesses to the outermost count alone.

    So no slack elsewhere hides a bound on those that is too high.
    """
    free = AccessEnergy(0.0, 0.0, 0.0, 0.0)
    outer, inner = (Memory(name, ROLES, free, capacity_bytes=between(rng, 1, most), buffering="buffet")
                    for name, most in (("outer", 40), ("inner", 8)))
    array = Fanout("array", (int(rng.integers(1, 5)), int(rng.integers(1, 4))), multicast=True, reduce=True)
    home = Memory("home", ROLES, AccessEnergy(1.0, 1.0, 1.0, 1.0), bandwidth=Bandwidth(shared=0.25))
    levels = (home, outer, array, inner) if rng.random() < 0.8 else (home, array, inner)
    operator = random_operator(rng, int(between(rng, 8, 100)))
    return MapSpace(operator, Accelerator("chip", levels, word_bits=tuple((role, 8) for role in ROLES)))


def check_sets(seed: int) -> int:
    """Hold mappings of some kept sets of a random layer against the bounds; return how many sets had any."""
    rng = np.random.default_rng([1357, seed])
    space = small_chip(rng) if seed % 2 else replace(random_space(rng), constraints=Constraints())
    kept, perfect = KeptSets(space), space.tiling == "perfect"
    if len(kept) == 1:
        return 0
    operator, machine = space.operator, space.accelerator
    fixed = 0 if rng.random() < 0.6 else int(rng.integers(len(kept)))
    apart = machine.unshared  # bounds of many machines know no memory that serves lanes together
    row = HardwareBatch({key: np.array([value]) for key, value in [*apart.numbers.items()][:1]})
    numbers = [number for number in range(len(kept)) if not number & fixed]
    bounds = hardware_bounds(operator, row, apart, bypass=kept.passed(len(kept) - 1 & ~fixed), perfect=perfect)
    found = 0
    for number in rng.choice(numbers, min(SETS, len(numbers)), replace=False).tolist():
        best = best_of(kept[number], rng)
        own = layer_bounds(operator, machine, kept.keeps(kept.passed(number)), perfect=perfect)
        for metric, value in best.items():
            assert getattr(own, metric) <= value * ROUNDING, (seed, number, metric)
            assert getattr(bounds, metric)[0] <= value * ROUNDING, (seed, number, metric, "all sets")
        found += best["energy_pj"] < np.inf
    return found


def check_rules(seed: int) -> bool:
    """Hold mappings of a small chip in a space with rules against its bounds; return whether there were any."""
    rng = np.random.default_rng([97, seed])
    try:
        space = ruled(rng, small_chip(rng))
        space.refuse_empty()
    except InputError:
        return False
    best, bounds = best_of(space, rng), space_bounds(space)
    for metric, value in best.items():
        assert getattr(bounds, metric) <= value * ROUNDING, (seed, metric)
    return best["energy_pj"] < np.inf


def test_nothing_is_below_bounds_that_know_rules():
    """Among them seeds by which high bounds show: extents that lanes cut too, and orders that leave others open."""
    assert sum(map(check_rules, (*range(40), 91, 312, 516))) > 6


@pytest.mark.slow
def test_nothing_is_below_bounds_that_know_rules_in_5000_spaces():
    assert sum(map(check_rules, range(5000))) > 700


def test_nothing_is_below_the_bounds_of_kept_sets():
    assert sum(map(check_sets, range(24))) > 18


@pytest.mark.slow
@pytest.mark.parametrize("first", range(24, 7904, 394))
def test_nothing_is_below_the_bounds_of_more_kept_sets(first):
    assert sum(map(check_sets, range(first, first + 394))) > 300

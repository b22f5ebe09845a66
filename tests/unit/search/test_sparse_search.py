"""Searches on machines that make use of zeros, and over several densities."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from tilewright.base import InputError
from tilewright.cost import DenseModel, SparseModel, layer_bounds
from tilewright.hardware import Bandwidth, Compression, Elision, Sparsity, preset
from tilewright.mapping import KeptSets, MapSpace, is_legal
from tilewright.search import Objective, Scorer, Sweep, search, search_network, search_spaces
from tilewright.search.bounding import Bounding, KeptBounding
from tilewright.search.scoring import model_of
from tilewright.search.sweep import SweptCosts
from tilewright.workload import convolution, matmul, with_densities

DENSE = preset("edge-s1")
NAMES = [memory.name for memory in DENSE.memories]
MACHINE = replace(DENSE, sparsity=Sparsity(
    (Compression(NAMES[0], "weights", "csr"), Compression(NAMES[1], "weights", "coordinates"),
     Compression(NAMES[0], "inputs", "bitmask"), Compression(NAMES[1], "inputs", "bitmask")),
    (Elision(NAMES[-1], "skip", "inputs", ("weights",)), Elision(NAMES[-1], "gate", "weights", ("inputs",)),
     Elision(NAMES[-1], "skip", "outputs", ("inputs", "weights"))), ("inputs",), ("weights",)))
OPERATOR = with_densities(matmul("m", m=48, n=36, k=40), {"weights": 0.2, "inputs": 0.5})


def test_a_search_scores_with_the_sparse_model_and_finds_better_than_a_dense_search():
    found = search(OPERATOR, MACHINE, budget=3000, seed=1)
    model = SparseModel(OPERATOR, MACHINE)
    assert found.cost == model.cost(found.mapping)
    assert found.score == pytest.approx(found.cost.edp)
    dense = search(OPERATOR, DENSE, budget=3000, seed=1)
    assert found.score <= model.cost(dense.mapping).edp * 1.02
    assert is_legal(found.mapping, OPERATOR, MACHINE)


def test_bounds_hold_where_those_of_the_dense_model_do_not():
    rng = np.random.default_rng(2)
    bounds, dense = layer_bounds(OPERATOR, MACHINE), layer_bounds(OPERATOR, DENSE)
    batch = MapSpace(OPERATOR, MACHINE).sample(rng, 4000)
    costs = SparseModel(OPERATOR, MACHINE).score(batch)
    assert costs.latency_cycles[costs.legal].min() >= bounds.latency_cycles
    assert costs.energy_pj[costs.legal].min() >= bounds.energy_pj > 0
    best = search(OPERATOR, MACHINE, budget=5000, seed=1)
    assert best.bound is not None and best.score >= best.bound
    assert best.cost.energy_pj < dense.energy_pj


@pytest.mark.parametrize("mapper", ["auto", "exact", "exhaustive", "random-pruned"])
def test_no_mapper_proves_by_dense_bounds(mapper):
    small = with_densities(matmul("s", m=4, n=4, k=4), {"weights": 0.25})
    space = MapSpace(small, MACHINE, "perfect")
    least = search(small, MACHINE, mapper="exhaustive", budget=200_000, space=space)
    found = search(small, MACHINE, mapper=mapper, budget=300 if mapper != "exhaustive" else 200_000, space=space)
    assert found.bound <= least.score <= found.score


def test_gating_saves_energy_and_skipping_time_too():
    """Where a port holds everything up, reads that are left out spare its cycles only if they are skipped."""
    narrow = Bandwidth(shared=0.25)
    slow = replace(DENSE, levels=tuple(
        replace(level, bandwidth=narrow) if level.name == NAMES[1] else level for level in DENSE.levels))
    layer = with_densities(matmul("m", m=48, n=36, k=40), {"weights": 0.1})
    mapping = search(layer, slow, budget=300, seed=1).mapping
    costs = {}
    for action in ("", "gate", "skip"):
        elisions = (Elision(NAMES[1], action, "inputs", ("weights",)),) if action else ()
        costs[action] = SparseModel(layer, replace(slow, sparsity=Sparsity((), elisions))).cost(mapping)
    dense, gated, skipped = costs.values()
    assert gated.energy_by_component_pj[NAMES[1]] == skipped.energy_by_component_pj[NAMES[1]]
    assert gated.energy_by_component_pj[NAMES[1]] < dense.energy_by_component_pj[NAMES[1]]
    assert gated.latency_cycles == dense.latency_cycles > skipped.latency_cycles


def test_what_fits_only_compressed_is_found_legal():
    roomy = replace(MACHINE, levels=tuple(
        replace(level, capacity_bytes=1500.0) if level.name == NAMES[1] else level
        for level in MACHINE.levels))
    found = search(OPERATOR, roomy, budget=2000, seed=3, objective="energy")
    assert found.mapping is not None and is_legal(found.mapping, OPERATOR, roomy)
    batch = MapSpace(OPERATOR, roomy).sample(np.random.default_rng(0), 2000)
    costs = SparseModel(OPERATOR, roomy).score(batch)
    legal = [is_legal(batch.mapping(i, OPERATOR.sizes), OPERATOR, roomy) for i in range(300)]
    assert costs.legal[:300].tolist() == legal
    dense = DenseModel(OPERATOR, replace(roomy, sparsity=None)).score(batch)
    assert np.count_nonzero(costs.legal & ~dense.legal) > 0


def test_the_result_is_the_same_on_any_number_of_threads():
    batch = MapSpace(OPERATOR, MACHINE).sample(np.random.default_rng(0), 9000)
    one, two = (SparseModel(OPERATOR, MACHINE).score(batch, threads=n) for n in (1, 3))
    assert np.array_equal(one.energy_pj, two.energy_pj) and np.array_equal(one.latency_cycles, two.latency_cycles)


def test_a_sweep_scores_the_weighted_sum_over_densities():
    sweep = Sweep.parse("inputs=1,0.5,0.1")
    found = search(OPERATOR, MACHINE, budget=2000, seed=1, densities=sweep)
    at = {d: SparseModel(sweep.at(OPERATOR, d), MACHINE).cost(found.mapping) for d in (1.0, 0.5, 0.1)}
    assert found.score == pytest.approx(sum(cost.edp / d for d, cost in at.items()))
    assert found.cost == at[1.0]
    assert found.objective == "edp over inputs=1,0.5,0.1"
    assert 0 < found.bound < found.score
    spaces = [MapSpace(OPERATOR, MACHINE)] * 2
    assert search_spaces(spaces, budget=400, densities="1,0.1").mapping is not None
    [layer] = search_network([OPERATOR], MACHINE, budget=400, densities=[1, 0.1]).layers
    assert layer.result.objective == "edp over inputs=1,0.1"


@pytest.mark.parametrize("densities", ["1,0.1", "geomean:weights=0.2,0.6", "inputs+weights=1:0.1,0.3:9"])
@pytest.mark.parametrize("objective", ["edp", "0.4*latency + 0.6*energy"])
def test_no_mapping_scores_below_the_bound_over_densities(objective, densities):
    goal = Objective.parse(objective).over(densities)
    space = goal.widest(MapSpace(OPERATOR, MACHINE))
    costs = model_of(space, goal).score(space.sample(np.random.default_rng(1), 300))
    bound = KeptBounding(KeptSets(space), goal).score
    assert bound == pytest.approx(Bounding((space,), goal).score) and bound > 0
    assert np.all(Scorer(goal, space.operator, MACHINE).scores(costs) >= bound)


def test_limits_hold_at_every_density():
    goal = Objective.parse("latency", ["energy<=1"]).over("1,0.1")
    space = goal.widest(MapSpace(OPERATOR, MACHINE))
    costs = model_of(space, goal).score(space.sample(np.random.default_rng(0), 50))
    assert np.all(Scorer(goal, space.operator, MACHINE).scores(costs) >= 1e150)


def test_a_limit_broken_or_a_tile_too_large_at_one_density_alone_counts():
    """Mapping d breaks the limit at density d alone, the last at none; and so for what does not fit."""
    def part(place, latency, excess):
        latency_cycles, over = np.full(4, 10.0), np.zeros(4)
        latency_cycles[place], over[place] = latency, excess
        return SimpleNamespace(latency_cycles=latency_cycles, energy_pj=np.ones(4), area_um2=1.0, excess=over,
                               legal=over == 0)

    goal = Objective.parse("latency", ["latency<=15"]).over("1,0.5,0.1")
    slow = SweptCosts(tuple((1.0, part(place, 20.0, 0.0)) for place in range(3)))
    assert (Scorer(goal, OPERATOR, MACHINE).scores(slow) >= 1e150).tolist() == [True, True, True, False]
    large = SweptCosts(tuple((1.0, part(place, 10.0, 0.5 + place)) for place in range(3)))
    assert large.legal.tolist() == [False, False, False, True]
    assert large.excess.tolist() == [0.5, 1.5, 2.5, 0.0]
    assert (Scorer(goal, OPERATOR, MACHINE).scores(large) >= 1e200).tolist() == [True, True, True, False]


def test_sweeps_are_read_with_the_papers_weights_or_others():
    assert Sweep.parse("1,0.5").points == ((1.0, 1.0), (0.5, 2.0))
    assert Sweep.parse("inputs+weights=0.5").points == ((0.5, 4.0),)
    even = Sweep.parse("even:1,0.5")
    assert even.points == ((1.0, 1.0), (0.5, 2.0))
    assert [t.even for t in even.at(OPERATOR, 0.5).tensors] == [True, False, False]
    assert Sweep.parse({1.0: 3.0}).points == ((1.0, 3.0),)
    assert Sweep.parse("W=1:1,0.5:1") == Sweep(("W",), ((1.0, 1.0), (0.5, 1.0)))
    assert str(Sweep.parse("W=1,0.5:1")) == "W=1,0.5:1"
    assert Sweep.parse(str(Sweep.parse("I+W=1,0.5:1"))) == Sweep.parse("I+W=1,0.5:1")


@pytest.mark.parametrize("given", ["", "inputs=", "1,2", "0", "1:0", "1:x", "=1", "even:", "even", [], 0.5, [None]])
def test_wrong_sweeps_are_refused(given):
    with pytest.raises(InputError, match="densit"):
        Sweep.parse(given)
    with pytest.raises(InputError, match="must name tensors or roles of m"):
        search(OPERATOR, MACHINE, budget=10, densities="filters=1,0.5")


def test_what_breaks_a_limit_is_told_with_its_own_score_over_densities():
    given = {"budget": 200, "seed": 1, "densities": "inputs=1,0.3"}
    broken = search(OPERATOR, MACHINE, constraints=["latency<=1"], **given)
    assert not broken.feasible and broken.history == ()
    model = model_of(MapSpace(OPERATOR, MACHINE), Objective.parse("edp").over("inputs=1,0.3"))
    parts = [weight * each.cost(broken.mapping).edp for weight, each in model.models]
    assert broken.score == pytest.approx(sum(parts))


def test_densities_are_written_as_they_were_read():
    for text in ("even:inputs+weights=1,0.5", "inputs=1,0.5", "weights=0.333333333333",
                 "inputs+weights=1:1.23456789,0.123456789"):
        assert str(Sweep.parse(text)) == text and Sweep.parse(str(Sweep.parse(text))) == Sweep.parse(text)


def test_a_geometric_mean_counts_all_densities_alike():
    sweep = Sweep.parse("geomean:even:inputs+weights=1,0.5,0.1")
    assert sweep.points == ((1.0, 1.0), (0.5, 1.0), (0.1, 1.0)) and sweep.geometric and sweep.even
    found = search(OPERATOR, MACHINE, budget=1000, seed=1, densities=sweep)
    parts = [SparseModel(sweep.at(OPERATOR, d), MACHINE).cost(found.mapping).edp for d in (1.0, 0.5, 0.1)]
    assert found.score == pytest.approx(np.prod(parts) ** (1 / 3))
    assert found.objective == "edp over geomean:even:inputs+weights=1,0.5,0.1"
    uneven = search(OPERATOR, MACHINE, budget=200, seed=1, densities="geomean:1:3,0.1:1")
    parts = [SparseModel(Sweep.parse("1").at(OPERATOR, d), MACHINE).cost(uneven.mapping).edp for d in (1.0, 0.1)]
    assert uneven.score == pytest.approx((parts[0] ** 3 * parts[1]) ** 0.25)
    assert str(Sweep.parse("geomean:1:3,0.1:1")) == "geomean:inputs=1:3,0.1"
    assert Sweep.parse("even:geomean:1") == Sweep.parse("geomean: even: inputs=1")
    with pytest.raises(InputError, match="densit"):
        Sweep.parse("geomean:geomean:1")


@pytest.mark.sample(3)
@pytest.mark.parametrize("kind", ["", "even:"])
@pytest.mark.parametrize(("inputs", "weights"), [(0.3, 1.0), (0.02, 0.02), (0.5, 0.1), (1.0, 0.01)])
def test_no_mapping_is_below_the_bound_whatever_is_left_out(kind, inputs, weights):
    machine = preset("accel-b-sparse")
    layer = convolution("c", in_channels=6, out_channels=10, kernel=3, out_size=7)
    layer = with_densities(layer, {"inputs": f"{kind}{inputs}", "weights": f"{kind}{weights}"})
    for operator in (layer, with_densities(OPERATOR, {"inputs": f"{kind}{inputs}", "weights": f"{kind}{weights}"})):
        bounds = layer_bounds(operator, machine)
        batch = MapSpace(operator, machine).sample(np.random.default_rng(5), 1500)
        costs = SparseModel(operator, machine).score(batch)
        assert costs.latency_cycles.min() >= bounds.latency_cycles
        assert costs.energy_pj.min() >= bounds.energy_pj > 0
        best = search(operator, machine, objective="energy", budget=2000).score
        assert bounds.energy_pj <= best < 25 * bounds.energy_pj


@pytest.mark.parametrize(("at", "tensor", "on", "count", "left"), [
    (0, "inputs", ("weights",), 1, {"I": 0.5}), (1, "inputs", ("weights",), 1, {}),
    (0, "weights", ("inputs",), 1, {"W": 0.5}), (1, "weights", ("inputs",), 1, {}),
    (0, "outputs", ("inputs", "weights"), 1, {"O": 5 / 6}), (1, "outputs", ("inputs", "weights"), 1, {}),
    (0, "inputs", ("weights",), 4, {})])
def test_the_bound_leaves_out_what_is_skipped_at_the_outermost_memory_alone(at, tensor, on, count, left):
    """Half of the words are zero. Two of four products meet where inputs and weights are not, but for one in six ways.

    A word of four products crosses for those of them that are not zero, and two always are.
    """
    operator = with_densities(matmul("few", m=1, n=count, k=4 // count), {"inputs": 0.5, "weights": 0.5})
    machine = replace(DENSE, sparsity=Sparsity((), (Elision(NAMES[at], "skip", tensor, on),)))
    outermost = machine.memories[0]
    once = {"I": outermost.energy.read_pj, "W": outermost.energy.read_pj, "O": outermost.energy.update_pj}
    found = layer_bounds(operator, machine).energy_by_component_pj[outermost.name]
    assert found == pytest.approx(sum(left.get(t.name, 1.0) * once[t.name] * t.words(operator.sizes)
                                      for t in operator.tensors))

"""Auto: bounds of whole mappings are sound, and what is bred, enumerated and proved by them is best."""

import statistics
from dataclasses import replace

import numpy as np
import pytest

from tilewright.base import InputError
from tilewright.cost import space_bounds
from tilewright.hardware import Accelerator, AccessEnergy, Bandwidth, Compute, Fanout, Memory, preset
from tilewright.mapping import Constraints, MapSpace
from tilewright.search import MAPPERS, Budget, Objective, Task, Watch, search
from tilewright.search.mappers import auto
from tilewright.search.mappers.auto import AutoMapper
from tilewright.search.mappers.auto.tables import bound_arrays
from tilewright.search.objective import Scorer
from tilewright.search.scoring import model_of
from tilewright.workload import ROLES, convolution, depthwise, einsum, matmul, transposed_convolution

EYERISS, EDGE = preset("eyeriss"), preset("edge-s2")
ENERGY = AccessEnergy(2.0, 1.5, 1.0, 0.5)
NARROW = Bandwidth(read=1.0, write=0.5)
LAYERED = Accelerator("layered", (
    Memory("DRAM", ROLES, AccessEnergy(100.0, 100.0, 90.0, 100.0), bandwidth=Bandwidth(shared=0.5)),
    Memory("L2", ("inputs", "outputs"), ENERGY, capacity_bytes=200, bandwidth=NARROW),
    Fanout("Rows", (2, 2), network_energy_pj_per_word=0.5),
    Memory("L1", ("weights", "outputs"), ENERGY, capacity_bytes=24, buffering="single", bandwidth=NARROW),
    Fanout("Lanes", (3, 1), reduce=False),
    Memory("L0", ROLES, AccessEnergy(0.2, 0.3, 0.2, 0.1), partitions_bytes=(("inputs", 4), ("outputs", 6)),
           capacity_bytes=16, buffering="buffet"),
), Compute("MAC", 0.3, leakage_mw=0.1))
PLAIN = Accelerator("plain", (
    Memory("DRAM", ROLES, AccessEnergy(50.0, 50.0, 50.0, 50.0), bandwidth=Bandwidth(shared=1.0)),
    Fanout("PEs", (4, 2), multicast=False, flexible=True),
    Memory("reg", ROLES, ENERGY, capacity_bytes=30, buffering="buffet", bandwidth=NARROW)))
CONV = convolution("c", in_channels=8, out_channels=12, in_size=(17, 15), kernel=3, stride=2)
OPERATORS = [
    matmul("m", m=24, n=18, k=20, batch=3), CONV, depthwise("d", 12, in_size=13, kernel=3),
    convolution("w", in_channels=3, out_channels=5, in_size=(30,), kernel=4, stride=3, dilation=2),
    einsum("ab,bc,cd->ad", {"a": 4, "b": 6, "c": 5, "d": 3}),
]


def bounds(space, objective, batch):
    from tilewright.search.mappers.auto import bounds as auto_bounds

    tables, shape = bound_arrays(space, Objective.parse(objective))
    out = np.empty(len(batch))
    auto_bounds.bounds_into(space.table, tables, space.scratch(), np.zeros(shape), batch.steps, batch.ranks, out)
    return out


def scores(space, objective, batch):
    scorer = Scorer(Objective.parse(objective), space.operator, space.accelerator)
    costs = model_of(space, Objective.parse("edp")).score(batch)
    return np.asarray(scorer.values(costs.latency_cycles, costs.energy_pj, costs.area_um2))


@pytest.mark.sample(40)
@pytest.mark.parametrize("objective", ["edp", "latency", "energy", "0.3*latency + 0.7*energy"])
@pytest.mark.parametrize("tiling", ["perfect", "imperfect"])
@pytest.mark.parametrize("accelerator", [EYERISS, EDGE, LAYERED, PLAIN], ids=lambda a: a.name)
@pytest.mark.parametrize("operator", OPERATORS, ids=lambda o: o.name)
def test_no_mapping_scores_below_its_bound(operator, accelerator, tiling, objective):
    space = MapSpace(operator, accelerator, tiling)
    batch = space.sample(np.random.default_rng(4), 3000, filling=0.5)
    assert (bounds(space, objective, batch) <= scores(space, objective, batch)).all()


def test_partial_sums_need_not_be_read_back_along_an_axis_whose_window_is_one():
    """Lanes over P that a loop inside sets apart combine at the parent, though R has one value (rule 5)."""
    operator = transposed_convolution("t", in_channels=3, out_channels=1, in_size=(4,), kernel=1)
    free = AccessEnergy(0.0, 0.0, 0.0, 0.0)
    accelerator = Accelerator("m", (Memory("DRAM", ROLES, free), Fanout("PEs", (2, 1), network_energy_pj_per_word=1.0),
                                    Memory("L1", ("weights",), free)))
    space = MapSpace(operator, accelerator, "perfect")
    batch = MAPPERS.get("exhaustive")(Task(space, np.random.default_rng(0))).ask(10**6)
    assert (bounds(space, "energy", batch) <= scores(space, "energy", batch)).all()


@pytest.mark.parametrize("tiling", ["perfect", "imperfect"])
@pytest.mark.parametrize("accelerator", [EYERISS, EDGE], ids=lambda a: a.name)
def test_bounds_are_met_by_some_order_of_the_loops_where_nothing_slides(accelerator, tiling):
    space = MapSpace(OPERATORS[0], accelerator, tiling)
    rng = np.random.default_rng(5)
    batch = space.sample(rng, 1)
    many = batch.take(np.zeros(4000, dtype=np.intp))
    for _ in range(20):
        batch = space.sample(rng, 1)
        many = batch.take(np.zeros(4000, dtype=np.intp))
        many.ranks[:] = np.argsort(rng.random(many.ranks.shape), axis=1)
        assert scores(space, "energy", many).min() == pytest.approx(bounds(space, "energy", batch)[0], rel=1e-6)


def test_a_third_to_six_tenths_of_the_children_scored_could_not_survive(monkeypatch):
    """Where bounds rule out all candidates for a sample, it is spent on one of them: the page of mappers says so."""
    layer = convolution("c", in_channels=64, out_channels=64, in_size=56, kernel=3)
    space, bear, found = MapSpace(layer, EYERISS), AutoMapper._bear, []

    def noted(self, batch, island, half, span, parents):
        bear(self, batch, island, half, span, parents)
        if parents:
            limit = float(self.gamma.scores[island, -1])
            found.extend(bounds(space, "edp", batch.take(slice(span[0], span[1]))) >= limit)

    monkeypatch.setattr(AutoMapper, "_bear", noted)
    search(layer, EYERISS, budget=3000, seed=1, space=space)
    assert 0.3 < np.mean(found) < 0.6


CASES = [
    (matmul("a", m=12, n=8, k=6), EYERISS, "perfect"),
    (matmul("c", m=6, n=5, k=4), PLAIN, "imperfect"),
    (matmul("l", m=4, n=6, k=3), LAYERED, "perfect"),
    (convolution("h", in_channels=4, out_channels=4, in_size=(6,), kernel=3), EYERISS, "perfect"),
]


@pytest.mark.sample(1)
@pytest.mark.parametrize("objective", ["edp", "latency"])
@pytest.mark.parametrize(("operator", "accelerator", "tiling"), CASES, ids=lambda v: getattr(v, "name", v))
def test_what_is_bred_comes_within_a_thousandth_of_the_optimum(operator, accelerator, tiling, objective):
    space = MapSpace(operator, accelerator, tiling)
    best = search(operator, accelerator, mapper="exhaustive", budget=10**8, space=space, objective=objective)
    assert best.complete
    found = [search(operator, accelerator, budget=10_000, seed=seed, space=space, objective=objective,
                    options={"enumerate": False, "prove": 0}) for seed in range(3)]
    assert {result.mapper for result in found} == {"auto"}
    assert not any(result.complete for result in found)
    assert min(result.score for result in found) >= best.score * (1 - 1e-12)
    assert statistics.median(result.score for result in found) <= 1.001 * best.score


def test_no_two_that_survive_score_the_same():
    """Orders of loops that move nothing cost nothing: a few of the best would soon fill the population so."""
    space = MapSpace(OPERATORS[0], EYERISS)
    made = AutoMapper(Task(space, np.random.default_rng(0), 10_000, objective=Objective.parse("edp"),
                           options={"islands": 2}))
    for _ in range(20):
        batch = made.ask(1000)
        made.tell(batch, scores(space, "edp", batch))
    for island in made.gamma.scores:
        assert len(np.unique(island)) == 100 and np.isfinite(island).all()


def test_spaces_that_the_budget_covers_are_enumerated():
    operator = matmul("cube", m=6, n=4, k=4)
    space = MapSpace(operator, EYERISS, "perfect")
    every = search(operator, EYERISS, space=space, mapper="exhaustive", budget=10**7)
    for budget in (space.size().mappings, Budget(seconds=60)):
        found = search(operator, EYERISS, space=space, budget=budget)
        assert found.complete and found.stopped == "exhausted"
        assert (found.score, found.gap, found.space_size) == (every.score, 0.0, every.space_size)
    less = search(operator, EYERISS, space=space, budget=space.size().mappings - 1)
    assert not less.complete


@pytest.mark.parametrize("budget, first, then, climb", [
    ({"seconds": 0.001}, 4, 10, 200), ({"seconds": 0.01}, 4, 10, 400), ({"seconds": 0.05}, 10, 50, 800),
    ({"seconds": 0.25}, 50, 100, 400), ({"seconds": 10.0}, 100, 100, 200),
    ({}, 100, 100, 200), ({"samples": 20}, 10, 10, 10), ({"samples": 200}, 20, 20, 100),
    ({"samples": 10_000}, 100, 100, 200)])
def test_generations_are_small_where_budgets_are(budget, first, then, climb):
    mapper = AutoMapper(Task(MapSpace(CONV, EDGE), np.random.default_rng(0), **budget,
                             options={"islands": 1, "enumerate": False}))
    assert (mapper.candidates, mapper.climb) == (600 // then, climb)
    for size in (first, then):
        batch = mapper.ask(1000)
        assert len(batch) == size
        mapper.tell(batch, np.arange(size, dtype=np.float64))


@pytest.mark.parametrize("tiling, program", [("perfect", "compile_descent"), ("perfect", "compile_once"),
                                             ("imperfect", "compile_once")])
def test_programs_of_proofs_are_loaded_before_time_counts(tiling, program, monkeypatch):
    loaded = []
    monkeypatch.setattr(auto, program, lambda: loaded.append(program))
    for more in ({"seconds": 1.0}, {"seconds": 0.05}, {"samples": 20_001}, {"samples": 20_000}):
        AutoMapper(Task(MapSpace(CONV, EDGE, tiling), np.random.default_rng(0), options={"enumerate": False}, **more))
    assert len(loaded) == 2


PROVABLE = MapSpace(convolution("p", in_channels=8, out_channels=12, in_size=(6, 5), kernel=3), EYERISS, "perfect")


def prove(budget=10**6, **changes):
    return search(PROVABLE.operator, EYERISS, space=PROVABLE, budget=budget, options={"prove": 3000}, **changes)


def test_the_best_is_proved_where_tiling_is_perfect():
    exact = search(PROVABLE.operator, EYERISS, space=PROVABLE, mapper="exact", budget=10**7)
    found = prove()
    assert exact.complete and found.complete
    assert found.score == pytest.approx(exact.score, rel=1e-12)
    assert found.proven == pytest.approx(found.score, rel=1e-9)
    assert prove(watch=Watch(threads=1)).score == found.score
    assert search(PROVABLE.operator, EYERISS, space=PROVABLE, budget=10_000, options={"prove": 0}).proven is None


@pytest.mark.parametrize("tiling", ["perfect", "imperfect"])
def test_a_search_ends_where_its_dual_bound_reaches_what_another_space_found(tiling):
    """Half of the least score closes the space: nothing is bred there, and no branch and bound begins."""
    space = MapSpace(PROVABLE.operator, EYERISS, tiling)
    rival = 0.5 * search(space.operator, EYERISS, space=space, budget=20_000, options={"prove": 0}).score
    mapper = AutoMapper(Task(space, np.random.default_rng(0), objective=Objective.parse("edp"), rival=lambda: rival,
                             options={"enumerate": False, "prove": 3000}))
    for _ in range(20):
        batch = mapper.ask(1000)
        if not len(batch):
            break
        mapper.tell(batch, scores(space, "edp", batch))
    assert len(batch) == 0 and mapper.bound >= rival
    assert not mapper.covers_space and mapper.proof is None and mapper.bred < 3000


def test_the_best_within_a_limit_is_proved():
    """A limit that one mapping in fifty meets, and one that none does."""
    space = MapSpace(matmul("g", m=6, n=8, k=4), EYERISS, "perfect")
    costs = [model_of(space, Objective.parse("edp")).score(batch) for batch in space.enumerate(1 << 16, distinct=True)]
    cycles, energy = (np.concatenate([getattr(one, name)[one.legal] for one in costs])
                      for name in ("latency_cycles", "energy_pj"))
    for most in (np.quantile(energy, 0.02), 0.9 * energy.min()):
        found = search(space.operator, EYERISS, space=space, objective="latency", constraints=[f"energy<={most}"],
                       budget=10**6, options={"prove": 500, "enumerate": False})
        assert found.complete and found.feasible == (most > energy.min()) != found.impossible
        assert not found.feasible or found.score == cycles[energy <= most].min() > cycles.min()


def test_where_tiles_need_not_divide_a_dual_bound_is_raised_that_goes_on_where_it_was(tmp_path):
    space, file = MapSpace(PROVABLE.operator, EYERISS, "imperfect"), tmp_path / "search.npz"

    def bred(budget, prove=2000, **watched):
        return search(space.operator, EYERISS, space=space, budget=budget, options={"prove": prove},
                      watch=Watch(**watched))

    found = bred(8000)
    assert space_bounds(space).edp * 1.001 < found.proven <= found.score
    assert bred(8000, prove=0).proven is None
    bred(5000, checkpoint=file)
    again = bred(8000, threads=1, checkpoint=file)
    assert (again.score, again.proven) == (found.score, found.proven)


def test_a_dual_bound_rests_where_its_parts_take_too_many_bytes(monkeypatch):
    """One part of this space takes some 2 KB."""
    space, proven = MapSpace(PROVABLE.operator, EYERISS, "imperfect"), []
    for most in (10_000, 1 << 26):
        monkeypatch.setattr(auto, "LARGEST_DUAL", most)
        proven.append(search(space.operator, EYERISS, space=space, budget=8000, options={"prove": 2000}).proven)
    assert space_bounds(space).edp < proven[0] < proven[1]


def test_a_proof_that_ended_is_still_complete_when_taken_up(tmp_path):
    file = tmp_path / "search.npz"
    assert prove(watch=Watch(checkpoint=file)).complete and prove(watch=Watch(checkpoint=file)).complete


def test_a_proof_that_is_stopped_goes_on_where_it_was(tmp_path, monkeypatch):
    monkeypatch.setattr("tilewright.search.run.PROGRESS_SECONDS", 0.0)
    whole = prove()
    file = tmp_path / "search.npz"

    class Stop:
        def __init__(self, watch):
            self.watch = watch

        def update(self, progress):
            if progress.bound is not None and progress.samples > 3000:
                self.watch.stop.set()

    watch = Watch(checkpoint=file)
    part = prove(watch=replace(watch, progress=Stop(watch)))
    resumed = prove(watch=Watch(checkpoint=file))
    assert resumed.complete
    assert (resumed.score, resumed.mapping) == (whole.score, whole.mapping)
    assert part.samples <= resumed.samples == whole.samples


def test_orders_stay_as_the_space_has_them():
    space = MapSpace(matmul("m", m=24, n=18, k=20), EYERISS, constraints=Constraints(
        orders={"DRAM": (("M", "N", "K", "B"),), "GLB": (("K", "*"),)}))
    made = MAPPERS.get("auto")(Task(space, np.random.default_rng(0), 10_000, objective=Objective.parse("edp")))
    for _ in range(5):
        batch = made.ask(10_000)
        assert space.contains(batch).all()
        assert space.fits(batch).all()
        made.tell(batch, scores(space, "edp", batch))


@pytest.mark.sample(2)
@pytest.mark.parametrize("objective", ["power", "energy", "latency"])
def test_constraints_and_objectives_without_bounds_are_met(objective):
    free = search(CONV, EYERISS, objective="latency", budget=4000)
    found = search(CONV, EYERISS, objective=objective, constraints=[f"latency<={1.1 * free.score}"], budget=4000)
    assert found.feasible
    assert found.cost.latency_cycles <= 1.1 * free.score


def test_a_start_is_taken_up():
    best = search(CONV, EYERISS, budget=8000)
    from tilewright.search import Start

    again = search(CONV, EYERISS, budget=300, start=Start.of(best.mapping, CONV))
    assert again.score <= best.score * (1 + 1e-12)


@pytest.mark.parametrize("options", [{"population": -1}, {"candidates": 0}, {"parents": 1.5}, {"prove": -1}])
def test_options_out_of_range_are_named(options):
    with pytest.raises(InputError, match=next(iter(options))):
        search(CONV, EYERISS, options=options)


@pytest.mark.parametrize("options", [{}, {"enumerate": False, "prove": 1}])
def test_a_layer_of_one_multiplication_has_nothing_to_choose(options):
    found = search(matmul("one", m=1, n=1, k=1), EDGE, budget=300,
                   space=MapSpace(matmul("one", m=1, n=1, k=1), EDGE, "perfect"), options=options)
    assert found.feasible and found.bound <= found.score

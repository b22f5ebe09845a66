"""The exact mapper: what it proves is true."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from tilewright.base import InputError
from tilewright.cost import DenseModel
from tilewright.hardware import Accelerator, AccessEnergy, Bandwidth, Compute, Fanout, Memory, preset
from tilewright.mapping import Bounds, Constraints, MapSpace
from tilewright.search import Budget, Objective, Watch, search
from tilewright.search.mappers.exact.chains import chains_of
from tilewright.search.mappers.exact.orders import Orders
from tilewright.search.mappers.exact.tables import Tables
from tilewright.search.objective import BREAKS_CONSTRAINT, Constraint, Scorer
from tilewright.search.run import Request, SearchRun
from tilewright.search.scoring import model_of
from tilewright.workload import ROLES, Operator, convolution, depthwise, einsum, matmul, transposed_convolution

EYERISS = preset("eyeriss")
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

CASES = [
    (matmul("g", m=6, n=4, k=6), EYERISS, "perfect", Constraints()),
    (matmul("g", m=4, n=6, k=3, batch=2), LAYERED, "perfect", Constraints()),
    (matmul("g", m=3, n=4, k=3), PLAIN, "imperfect", Constraints()),
    (matmul("g", m=5, n=3, k=4), PLAIN, "ruby", Constraints()),
    (matmul("g", m=6, n=8, k=4), EYERISS, "perfect", Constraints(keeps={"GLB": ("I",)})),
    (matmul("g", m=6, n=8, k=4), EYERISS, "perfect", Constraints(orders={"GLB": (("M", "*"),)})),
    (matmul("g", m=6, n=8, k=4), EYERISS, "perfect", Constraints(
        loops={"DRAM": ("M", "N")}, tiles={"GLB": {"M": Bounds(2, 3)}}, factors={"PEs.X": {"N": Bounds(2)}})),
    (convolution("c", in_channels=2, out_channels=4, in_size=6, kernel=3), EYERISS, "perfect", Constraints()),
    (convolution("s", in_channels=2, out_channels=2, in_size=(8,), kernel=3, stride=2, dilation=2), LAYERED, "perfect",
     Constraints()),
    (convolution("i", in_channels=2, out_channels=3, in_size=(5,), kernel=2), PLAIN, "imperfect", Constraints()),
    (depthwise("d", 4, in_size=6, kernel=3), EYERISS, "perfect", Constraints()),
    (transposed_convolution("t", in_channels=2, out_channels=2, in_size=(4,), kernel=3, stride=2), PLAIN, "perfect",
     Constraints()),
    (einsum("ab,bc,cd->ad", {"a": 2, "b": 4, "c": 2, "d": 3}), PLAIN, "perfect", Constraints()),
]


@cache
def every_cost(number):
    """Return cycles, energy and area of every legal mapping of a case: enumerated once for all objectives."""
    operator, accelerator, tiling, constraints = CASES[number]
    space = MapSpace(operator, accelerator, tiling, constraints)
    model = DenseModel(operator, accelerator, space.layout)
    found = [model.score(batch) for batch in space.enumerate(1 << 16, distinct=True)]
    rows = [np.concatenate([getattr(costs, name)[costs.legal] for costs in found])
            for name in ("latency_cycles", "energy_pj")]
    return *rows, found[0].area_um2


@pytest.mark.sample(6)
@pytest.mark.parametrize("objective", ["edp", "latency", "energy", "0.3*latency + 0.7*energy"])
@pytest.mark.parametrize("number", range(len(CASES)), ids=[f"{case[0].kind}-{case[1].name}-{case[2]}-{number}"
                                                           for number, case in enumerate(CASES)])
def test_the_optimum_is_that_of_the_whole_space(number, objective):
    operator, accelerator, tiling, constraints = CASES[number]
    space = MapSpace(operator, accelerator, tiling, constraints)
    least = Scorer(Objective.parse(objective), operator, accelerator).values(*every_cost(number)).min()
    proved = search(operator, accelerator, space=space, mapper="exact", objective=objective, budget=10**7,
                    options={"start": 50})
    assert proved.complete
    assert proved.score == pytest.approx(least, rel=1e-12)
    assert proved.bound == proved.score and proved.gap == 0
    assert proved.bounding.score <= proved.score


@pytest.mark.sample(8)
@pytest.mark.parametrize(("objective", "metric", "share"), [
    ("latency", "energy", 0.05), ("energy", "latency", 0.05), ("edp", "energy", 0.9)])
@pytest.mark.parametrize("number", range(len(CASES)))
def test_the_optimum_within_a_limit_is_that_of_the_whole_space(number, objective, metric, share):
    """A limit that one mapping in twenty meets, or that is below what any takes: then that is proved."""
    operator, accelerator, tiling, constraints = CASES[number]
    space, (cycles, energy, area) = MapSpace(operator, accelerator, tiling, constraints), every_cost(number)
    given = {"latency": cycles, "energy": energy}[metric]
    most = np.quantile(given, share, method="higher") if share < 0.5 else share * given.min()
    limited = Objective.parse(objective, [Constraint(metric, float(most))])
    scorer = Scorer(limited, operator, accelerator)
    over, values = scorer.over(cycles, energy, area), scorer.values(cycles, energy, area)
    assert (scorer.least(cycles, energy) <= np.where(over > 0, BREAKS_CONSTRAINT * (1 + over), values)).all()
    proved = search(operator, accelerator, space=space, mapper="exact", objective=limited, budget=10**7,
                    options={"start": 50})
    assert proved.complete
    assert (proved.feasible, proved.impossible) == (share < 0.5, share > 0.5)
    if share < 0.5:
        assert proved.score == pytest.approx(values[over == 0].min(), rel=1e-12)
        assert proved.bound == proved.score >= proved.bounding.score
    else:
        found = scorer.over(proved.cost.latency_cycles, proved.cost.energy_pj, area)
        assert found == pytest.approx(over.min()) and proved.bound is None
        assert proved.bounding.score <= BREAKS_CONSTRAINT * (1 + over.min())


@pytest.mark.parametrize("seed", range(4))
def test_the_last_of_ragged_tiles_goes_out_in_fewer_cycles_than_a_whole_one(seed):
    """Ten columns in tiles of nine: the last drains one word, so that the better order is not to be left out."""
    operator, free = matmul("g", m=12, n=10, k=1), AccessEnergy(0.0, 0.0, 0.0, 0.0)
    drained = Accelerator("drained", (
        Memory("DRAM", ROLES, AccessEnergy(1.0, 0.0, 0.0, 0.0), bandwidth=Bandwidth(write=0.125)),
        Memory("buffer", ROLES, free, capacity_bytes=4096)), Compute("MAC", 20.0))
    nine = Constraints(tiles={"buffer": {"M": Bounds(1, 1), "N": Bounds(9, 9)}})
    spaces = [MapSpace(operator, drained, "imperfect", nine) for _ in range(2)]
    every = search(operator, drained, space=spaces[0], mapper="exhaustive", budget=100)
    proved = search(operator, drained, space=spaces[1], mapper="exact", budget=100, seed=seed, options={"start": 1})
    assert every.complete and proved.complete
    assert proved.score == every.score == (12 * 10 * 20 + 10 + 2 * 12) * (12 * 10 * 8 + 8)


def test_far_fewer_mappings_are_scored_than_there_are():
    operator = convolution("c", in_channels=4, out_channels=4, in_size=8, kernel=3)
    space = MapSpace(operator, EYERISS, "perfect")
    result = search(operator, EYERISS, space=space, mapper="exact", budget=10**7)
    assert result.complete
    assert result.samples < space.size().mappings / 1000


def test_a_layer_of_resnet_is_mapped_optimally():
    operator = convolution("c", in_channels=256, out_channels=256, in_size=14, kernel=3, padding=1)
    space = MapSpace(operator, EYERISS, "perfect")
    result = search(operator, EYERISS, space=space, mapper="exact", budget=Budget(10**7, 60.0))
    assert result.complete and result.gap == 0
    assert search(operator, EYERISS, space=space, budget=5_000).score >= result.score


def test_layers_share_what_comes_and_goes_only_where_words_are_as_wide_and_memories_keep_the_same():
    def ramp(operator, **keeps):
        space = MapSpace(operator, EYERISS, "imperfect", Constraints(keeps=keeps))
        return Tables.unlisted(space, Objective.parse("edp")).ramp

    plain, larger = matmul("m", m=16, n=16, k=16), matmul("l", m=32, n=16, k=8)
    wide = replace(plain, tensors=tuple(replace(tensor, word_bits=32) for tensor in plain.tensors))
    np.testing.assert_array_equal(ramp(plain)[:, 3:] * 2, ramp(wide)[:, 3:])
    assert ramp(larger) is ramp(plain) and len(ramp(plain, GLB=("I",))) < len(ramp(plain))


def test_a_gap_that_is_allowed_ends_the_search_sooner():
    operator = convolution("c", in_channels=32, out_channels=48, in_size=14, kernel=3, padding=1)
    space = MapSpace(operator, EYERISS, "perfect")
    found = {gap: search(operator, EYERISS, space=space, mapper="exact", budget=Budget(10**7, 60.0),
                         options={"gap": gap, "start": 3000}) for gap in (0.0, 0.2)}
    assert found[0.0].complete and not found[0.2].complete
    assert found[0.2].stopped == "exhausted"
    assert 0 < found[0.2].gap <= 0.2 + 1e-9
    assert found[0.2].bound <= found[0.0].score <= found[0.2].score
    assert found[0.2].samples <= found[0.0].samples


def test_the_bound_rises_while_the_search_goes_on():
    class Seen:
        def __init__(self):
            self.bounds = []

        def update(self, progress):
            self.bounds.append(progress.bound)

    seen = Seen()
    operator = convolution("c", in_channels=32, out_channels=64, in_size=28, kernel=3, padding=1)
    space = MapSpace(operator, EYERISS, "perfect")
    result = search(operator, EYERISS, space=space, mapper="exact", budget=Budget(10**8, 60.0),
                    options={"start": 1000, "nodes": 20_000}, watch=Watch(progress=seen))
    assert result.complete
    assert seen.bounds == sorted(seen.bounds)
    assert seen.bounds[0] < seen.bounds[-1] == result.score


def test_a_descent_that_is_stopped_goes_on_where_it_was(tmp_path):
    operator = matmul("g", m=16, n=12, k=16)
    space = MapSpace(operator, EYERISS, "perfect")

    def run(budget, **more):
        return search(operator, EYERISS, space=space, mapper="exact", budget=budget, objective="power",
                      options={"start": 100}, **more)

    first = run(Budget(4000, 1e9), checkpoint=tmp_path / "search.npz")
    assert first.samples == 4000
    again = run(Budget(4000, 1e9), checkpoint=tmp_path / "search.npz")
    assert (again.score, again.samples, again.mapping) == (first.score, 4000, first.mapping)


def test_spaces_too_large_to_list_are_searched_without_a_proof():
    operator = matmul("g", m=512, n=512, k=512)
    space = MapSpace(operator, EYERISS)
    assert chains_of(space, 1) is None
    result = search(operator, EYERISS, space=space, mapper="exact", budget=3000, options={"start": 1000})
    assert (result.samples, result.complete, result.proven) == (3000, False, None)
    assert result.gap > 0


@pytest.mark.parametrize("options", [{"gap": 1.0}, {"gap": -0.1}, {"start": 0}, {"nodes": 0}])
def test_options_out_of_range_are_refused(options):
    with pytest.raises(InputError, match="must be at least"):
        search(matmul("g", m=2, n=2, k=2), EYERISS, mapper="exact", budget=10, options=options)


def test_orders_that_can_be_best_are_few_and_of_the_space():
    operator: Operator = convolution("c", in_channels=4, out_channels=4, in_size=10, kernel=3)
    space = MapSpace(operator, EYERISS, "perfect")
    tables = Tables.of(space, Objective.parse("edp"))
    rng = np.random.default_rng(0)
    found = np.array([[rng.integers(*tables.starts[d:d + 2]) for d in range(len(tables.chains))] for _ in range(50)])
    every = (1 << len(tables.kinds)) - 1
    batch = Orders(tables).batches(found, np.full(50, every))
    assert 50 <= len(batch) < 50 * 81
    assert np.array_equal(space.repair(batch).steps[:, :, space.fits(batch)], batch.steps[:, :, space.fits(batch)])
    both = np.concatenate([batch.steps, batch.ranks]).reshape(-1, len(batch))
    assert len(np.unique(both, axis=1).T) == len(batch)


def test_proofs_overrun_a_budget_of_seconds_by_little():
    """The clock tells how many partial mappings were looked at: a million a second."""
    space = MapSpace(convolution("c", in_channels=64, out_channels=64, in_size=28, kernel=3), EYERISS, "perfect")
    runs = []

    def clock():
        return runs[0].mapper.looked * 1e-6 if runs else 0.0

    goal = Objective.parse("edp")
    request = Request(space, goal, "exact", Budget(seconds=0.05), 0, {"start": 200})
    runs.append(SearchRun(request, Watch(threads=1, clock=clock), model_of(space, goal)))
    for _ in runs[0].batches():
        pass
    assert runs[0].stopped == "seconds"
    assert 0.05 <= clock() <= 0.09

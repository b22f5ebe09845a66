"""What `exact` proves in spaces with perfect tiling is the optimum: small ones are enumerated, whatever the machine."""

from collections.abc import Iterator, Sequence

import numpy as np
import pytest
from numba import njit
from numpy.typing import NDArray
from random_layers import random_space

from random_variants import forwarding
from tilewright.cost import DenseModel
from tilewright.hardware import Accelerator, AccessEnergy, Fanout, Memory, preset
from tilewright.mapping import Bounds, Constraints, MapSpace
from tilewright.search import Objective, SearchResult, search
from tilewright.search.mappers.exact import kernels
from tilewright.search.mappers.exact.chains import groups_of
from tilewright.search.mappers.exact.orders import Orders
from tilewright.search.mappers.exact.tables import Tables
from tilewright.search.objective import Scorer
from tilewright.workload import ROLES, convolution, einsum, matmul

FEW = 60_000
OBJECTIVES = "edp", "latency", "energy", "0.3*latency + 0.7*energy"


def check(space: MapSpace) -> bool:
    """Hold the proofs of a space against all its mappings; False where these are too many, or none is legal."""
    size = space.size()
    if not (size.exact and 0 < size.mappings <= FEW):
        return False
    model = DenseModel(space.operator, space.accelerator, space.layout)
    found = [model.score(batch) for batch in space.enumerate(1 << 16)]
    cycles, energy = (np.concatenate([getattr(costs, name)[costs.legal] for costs in found])
                      for name in ("latency_cycles", "energy_pj"))
    for objective in OBJECTIVES if len(cycles) else ():
        scorer = Scorer(Objective.parse(objective), space.operator, space.accelerator)
        proved = search(space.operator, space.accelerator, space=space, mapper="exact", objective=objective,
                        budget=10**6, options={"start": 1})
        assert proved.complete, objective
        assert proved.score == pytest.approx(scorer.values(cycles, energy, found[0].area_um2).min(), rel=1e-9)
    return len(cycles) > 0


def check_layers(seeds: Sequence[int], *, forwards: bool = False) -> None:
    held = 0
    for seed in seeds:
        drawn = random_space(np.random.default_rng(seed))
        machine = forwarding(drawn.accelerator) if forwards else drawn.accelerator
        try:
            held += check(MapSpace(drawn.operator, machine, "perfect", drawn.constraints))
        except AssertionError as error:
            raise AssertionError(f"seed {seed}") from error
    assert held > len(seeds) // 2


def test_no_mapping_beats_a_proof():
    """Among them seeds whose optimum is lost where bounds count loops that may leave a tensor in place.

    Of the last, those up to 297 have one dimension, with one chain of steps; in 50186 windows of the output stand
    still, and in 2217 those of an operand move on two memories out of the tile.
    """
    check_layers([*range(12), 107, 122, 266, 880, 162, 297, 50186, 2217])


def test_where_tiles_need_not_divide_chains_that_look_alike_are_all_tried():
    """6 values of one dimension in tiles of 4, then 2, or of 3, then 2: as many pieces and lanes, other words."""
    space = random_space(np.random.default_rng([2026, 10408]))
    assert space.tiling == "imperfect" and check(space)


def test_no_mapping_beats_a_proof_where_words_are_handed_on_as_they_come():
    check_layers(range(20, 26), forwards=True)


@pytest.mark.parametrize("seed", [35, 38])
def test_what_is_proved_counts_mappings_that_are_not_scored_yet(seed):
    """They come from choices whose bounds are below those that are next."""
    drawn = random_space(np.random.default_rng(seed))
    space = MapSpace(drawn.operator, drawn.accelerator, "perfect", drawn.constraints)

    def prove(budget: int) -> SearchResult:
        return search(space.operator, space.accelerator, space=space, mapper="exact", budget=budget,
                      options={"start": 1, "nodes": 50})

    whole = prove(10**6)
    assert whole.complete
    for samples in range(1, whole.samples):
        proven = prove(samples).proven
        assert proven is None or proven <= whole.score * (1 + 1e-9)


@pytest.mark.slow
def test_no_mapping_of_2000_layers_beats_a_proof():
    check_layers(range(2500))


FREE = AccessEnergy(1.0, 1.0, 1.0, 1.0)


@pytest.mark.parametrize("array", [
    Fanout("PEs", (8, 8)), Fanout("PEs", (8, 8), multicast=False), Fanout("PEs", (3, 3), reduce=False, flexible=True),
    Fanout("PEs", (4, 4), blocks=(2, 2)),
], ids=["sides", "apart", "flexible", "blocks"])
def test_lanes_fit_the_sides_of_arrays_and_dimensions_that_count_as_one_are_told_apart_again(array):
    """Eight lanes of each of two dimensions fit an 8 x 8 array, but not along one side."""
    machine = Accelerator("array", (Memory("DRAM", ROLES, AccessEnergy(20.0, 20.0, 20.0, 20.0)), array, Memory(
        "L1", ROLES, FREE, capacity_bytes=20, buffering="buffet")))
    pointwise = convolution("c", in_channels=2, out_channels=2, in_size=(4, 2), kernel=1)
    assert [len(places) for places in groups_of(MapSpace(pointwise, machine, "perfect"))] == [1, 1, 2]
    for operator in (pointwise, matmul("g", m=8, n=8, k=1), einsum("ab,bcd->acd", {"a": 2, "b": 2, "c": 4, "d": 2})):
        assert check(MapSpace(operator, machine, "perfect"))


def test_chains_that_cost_the_same_are_told_apart_where_constraints_do():
    machine = Accelerator("array", (Memory("DRAM", ROLES, AccessEnergy(20.0, 20.0, 20.0, 20.0)), Fanout("PEs", (4, 4)),
                                    Memory("L1", ROLES, FREE, capacity_bytes=20, buffering="buffet")))
    for axis in "XY":
        constraints = Constraints(factors={f"PEs.{axis}": {"M": Bounds(4)}})
        assert check(MapSpace(matmul("g", m=8, n=8, k=1), machine, "perfect", constraints))


def test_dimensions_along_which_windows_slide_do_not_count_as_one():
    machine = Accelerator("one", (Memory("DRAM", ROLES, AccessEnergy(20.0, 20.0, 20.0, 20.0)), Memory(
        "L1", ROLES, FREE, capacity_bytes=28, buffering="buffet")))
    windows = convolution("c", in_channels=1, out_channels=1, in_size=(6, 10), kernel=3)
    assert check(MapSpace(windows, machine, "perfect"))


def test_a_lane_may_share_across_two_tensors():
    """Four lanes along A, which is decided last, read W and add to O for one another: no others are as good."""
    machine = Accelerator("fed", (Memory("M", ROLES, FREE), Fanout("PEs", (4, 1))))
    space = MapSpace(einsum("ak,kc->c", {"a": 4, "k": 12, "c": 12}), machine, "perfect")
    proved = search(space.operator, machine, space=space, mapper="exact", objective="energy", budget=10**6,
                    options={"start": 1, "nodes": 1})
    assert proved.complete and proved.score == 4 * 12 * 12 * (1 + 1 / 4 + 2 / 4) - 12


@pytest.mark.parametrize("seed", [35, 86])
def test_orders_beyond_those_with_bits_of_their_own_are_tried(seed):
    """Five memories have 81 kinds of order, and the best of these layers is of a late one."""
    rng = np.random.default_rng(seed)
    capacities = sorted(rng.integers(3, 14, 4).tolist(), reverse=True)

    def energies(most: float) -> AccessEnergy:
        return AccessEnergy(*(most * rng.choice([0.25, 1.0, 4.0], size=4)).tolist())

    machine = Accelerator("deep", (Memory("M0", ROLES, energies(100.0)), *(
        Memory(f"M{at}", ROLES, energies(each), capacity_bytes=size, buffering="buffet")
        for at, (size, each) in enumerate(zip(capacities, [40.0, 15.0, 5.0, 1.0], strict=True), 1))))
    space = MapSpace(matmul("g", *(int(rng.choice([2, 3, 4, 6])) for _ in range(3))), machine, "perfect")
    tables = Tables.of(space, Objective.parse("energy"))
    assert tables is not None and len(tables.kinds) == 81 > kernels.KINDS
    assert check(space)


LARGE = (matmul("g", m=48, n=36, k=64), matmul("b", m=24, n=16, k=30, batch=6),
         convolution("w", in_channels=16, out_channels=24, in_size=12, kernel=3),
         convolution("p", in_channels=64, out_channels=96, in_size=12, kernel=1),
         convolution("s", in_channels=4, out_channels=6, in_size=(26, 22), kernel=5, stride=3, dilation=2))


def least_score(tables: Tables, chosen: NDArray[np.int64]) -> float:
    """Return the lowest score of a choice of chains under any order that is tried; infinite where none is legal."""
    space = tables.space
    batch = Orders(tables).batches(chosen[None], np.array([-1]))
    if not len(batch):
        return float("inf")
    costs = DenseModel(space.operator, space.accelerator, space.layout).score(batch)
    values = Scorer(tables.objective, space.operator, space.accelerator).values(
        costs.latency_cycles, costs.energy_pj, costs.area_um2)
    return float(np.where(costs.legal, values, np.inf).min())


@njit
def bounds(tables, chosen, work, found):
    """Write the bound of each beginning, and last that of the bundle that the last choice is of."""
    dims = len(chosen)
    for depth in range(1, dims + 2):  # each part is called at one place: two would take longer to compile
        if depth > dims:
            bundle = np.searchsorted(tables.bundles, chosen[-1], "right")
            chosen[-1] = len(tables.features) - len(tables.bundles) + bundle
        if depth == 1 or depth > dims:
            fits = kernels.fits(tables, chosen, dims, work)
            if depth == 1 and not fits:
                return False
        bound = kernels.lower(tables, chosen, min(depth, dims), np.inf, work)[0] if fits else np.inf
        found[depth % (dims + 1)] = bound
    return True


def spaces_and_tables(rng: np.random.Generator, objective: str) -> Iterator[tuple[MapSpace, Tables]]:
    """Yield spaces of large layers and of random ones, with what their bounds are made from."""
    spaces = [MapSpace(operator, preset(name), "perfect") for operator in LARGE
              for name in ("eyeriss", "simba-like", "tpu-like", "edge-s2")]
    drawn = [random_space(rng) for _ in range(40)]
    spaces += [MapSpace(one.operator, one.accelerator, tiling, one.constraints) for one, tiling in zip(
        drawn, ["perfect", "perfect", "imperfect"] * 14, strict=False)]
    for space in spaces:
        tables = Tables.of(space, Objective.parse(objective))
        if tables is not None and tables.chains:
            yield space, tables


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_no_beginning_of_a_choice_is_left_out_that_may_score_below_the_cut(seed):
    """The descent, begun from each of its first dimensions' chains, goes on, and from all but one finds the choice."""
    rng, held = np.random.default_rng(seed), 0
    for space, tables in spaces_and_tables(rng, OBJECTIVES[seed % len(OBJECTIVES)]):
        dims = len(tables.chains)
        for _ in range(8):
            chosen = rng.integers(tables.starts[:-1], tables.starts[1:])
            score = least_score(tables, chosen)
            for depth in range(1, dims) if 0.0 < score < np.inf else ():
                at, found = np.zeros(dims + 4, dtype=np.int64), np.zeros((2048, dims), dtype=np.int64)
                at[0], last = -1, depth == dims - 1
                count = kernels.descend(
                    tables.arrays, tables.starts, depth, chosen[None, :depth].copy(), np.zeros(1), score * (1 + 1e-9),
                    at, 1_000_000 if last else 1, tables.room, found, np.zeros(len(found), dtype=np.int64))
                assert (found[:count] == chosen).all(axis=1).any() if last else at[1] == depth, (
                    space.operator, space.accelerator, chosen, depth)
                held += 1
    assert held > 300


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_bounds_of_choices_are_no_higher_than_scores_and_those_of_what_they_begin_no_higher_than_theirs(seed):
    """What is left out for the bound of its first dimensions' chains would be left out for that of all."""
    rng = np.random.default_rng(seed)
    held = scored = 0
    for space, tables in spaces_and_tables(rng, OBJECTIVES[seed % len(OBJECTIVES)]):
        found, work, several = np.zeros(len(tables.chains) + 1), tables.room, 3
        for _ in range(120):
            chosen = rng.integers(tables.starts[:-1], tables.starts[1:])
            if bounds(tables.arrays, chosen.copy(), work, found):
                held += 1
                assert (found <= found[-1] * (1 + 1e-9)).all(), (space.operator, space.accelerator, found)
                if several:
                    several -= 1
                    scored += 1
                    assert found[-1] <= least_score(tables, chosen) * (1 + 1e-9), (space.operator, space.accelerator)
    assert held > 1000 and scored > 100

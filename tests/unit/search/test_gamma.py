"""Gamma: its operators, its levels of parallelism on S1 to S3, and how near the optimum it comes."""

import statistics

import numpy as np
import pytest

from tilewright.hardware import Accelerator, AccessEnergy, Bandwidth, Compute, Fanout, Memory, preset
from tilewright.mapping import MapSpace, random_state
from tilewright.search import MAPPERS, Task, search
from tilewright.search.mappers.gamma import GammaOptions, levels_in_use
from tilewright.search.objective import Objective
from tilewright.search.scoring import model_of
from tilewright.workload import ROLES, convolution, matmul


def conv(name, k, c, out, kernel, stride=1):
    return convolution(name, in_channels=c, out_channels=k, out_size=out, kernel=kernel, stride=stride)


LAYER = conv("layer", k=32, c=16, out=(14, 14), kernel=3)


def energy(each):
    return AccessEnergy(each, each, each, each)


def machine(*inner, buffer_bytes=1024.0):
    outer = Memory("DRAM", ROLES, energy(200.0), bandwidth=Bandwidth(shared=4))
    buffer = Memory("SG", ROLES, energy(6.0), capacity_bytes=buffer_bytes, bandwidth=Bandwidth(read=8, write=8))
    return Accelerator("machine", (outer, buffer, *inner), Compute(energy_pj_per_mac=1.0))


LOCAL = Memory("SL", ROLES, energy(1.0), capacity_bytes=32)
FIXED = machine(Fanout("PE", (4, 4)), LOCAL)
FLEXIBLE = machine(Fanout("PE", (4, 4), flexible=True), LOCAL)
BARE = machine(Fanout("PE", (8, 8)), buffer_bytes=2048.0)


def levels_of(space, batch):
    """Return ``(b)``: how many sides of arrays have more than one lane."""
    sizes = np.array(list(space.operator.sizes.values()))[None, :, None]
    extents = np.concatenate([np.broadcast_to(sizes, (1, *batch.steps.shape[1:])), batch.steps])
    spatial = [s for s, slot in enumerate(space.layout.slots) if slot.axis != "T"]
    return np.array([(extents[s + 1] < extents[s]).any(axis=0) for s in spatial]).sum(axis=0)


def evolve(space, generations, **options):
    made = MAPPERS.get("gamma")(Task(space, np.random.default_rng(0), 10_000, options))
    rng = np.random.default_rng(1)
    for _ in range(generations):
        batch = made.ask(10**6)
        made.tell(batch, rng.random(len(batch)))
    return made.ask(10**6)


@pytest.mark.parametrize(("name", "least", "most"), [("edge-s1", 2, 2), ("edge-s2", 1, 2), ("edge-s3", 2, 3)])
def test_levels_of_parallelism_come_and_go_as_the_systems_allow(name, least, most):
    space = MapSpace(LAYER, preset(name))
    assert levels_in_use(Task(space, np.random.default_rng(0))) == least
    found = levels_of(space, evolve(space, 6))
    assert found.max() == most
    assert found.min() < most


OPERATORS = ("tile", "parallel", "reorder", "growth", "aging", "move", "fill", "nudge", "expand", "rebuild")


@pytest.mark.parametrize("tiling", ["perfect", "imperfect"])
@pytest.mark.parametrize("operator", OPERATORS)
def test_every_operator_changes_what_it_is_named_after_and_leaves_it_sound(operator, tiling):
    from tilewright.search.mappers.gamma import kernels as kernels

    space = MapSpace(LAYER, preset("eyeriss"), tiling)
    parents = space.sample(np.random.default_rng(3), 60)
    children = space.empty(400)
    rates = GammaOptions(**dict.fromkeys(OPERATORS, 0.0) | {operator: 1.0}, crossover=0.0, single=1.0, chain=0.0,
                         newcomer=0.0, repair=False, distinct=False).rates()
    kernels.breed(space.table, random_state(np.random.default_rng(4)), rates, space.scratch(), np.zeros(64, np.uint64),
                  parents.steps, parents.ranks, np.arange(60), 60, children.steps, children.ranks, (0, 400))
    repaired = space.repair(children)
    assert np.array_equal(repaired.steps, children.steps)
    known = {parents.steps[:, :, i].tobytes() for i in range(60)}
    tiles = sum(children.steps[:, :, i].tobytes() not in known for i in range(400))
    orders = {parents.ranks[:, :, i].tobytes() for i in range(60)}
    reordered = sum(children.ranks[:, :, i].tobytes() not in orders for i in range(400))
    assert (tiles == 0) == (operator == "reorder")
    assert (reordered > 0) == (operator == "reorder")


def test_survivors_are_the_best_of_parents_and_children_and_the_older_of_equals():
    from tilewright.search.mappers.gamma import kernels as kernels

    rng = np.random.default_rng(8)
    size, generations = 20, 6
    steps, ranks = np.zeros((1, 1, size), np.int32), np.zeros((1, 1, size), np.int8)
    places, kept, have = np.zeros(size, np.int64), np.full(size, np.inf), 0
    every = np.empty(0)
    for generation in range(generations):
        count = size - 3 if generation == generations - 1 else size
        scores = rng.integers(0, 60, count).astype(float)
        names = (np.arange(count, dtype=np.int32) + len(every)).reshape(1, 1, -1)
        have = kernels.survive(steps, ranks, places, kept, have, names, names.astype(np.int8), scores, 0)
        every = np.concatenate([every, scores])
        best = np.argsort(every, kind="stable")[:size]
        assert kept.tolist() == every[best].tolist()
        assert steps[0, 0, places].tolist() == best.tolist() == ranks[0, 0, places].tolist()
    assert have == size


def test_crossover_takes_whole_dimensions_from_two_parents():
    from tilewright.search.mappers.gamma import kernels as kernels

    space = MapSpace(matmul("wide", m=64, n=64, k=64), machine(), "perfect")
    parents = space.sample(np.random.default_rng(5), 2)
    children = space.empty(200)
    rates = GammaOptions(**dict.fromkeys(OPERATORS, 0.0), crossover=1.0, single=0.0, newcomer=0.0, repair=False,
                         distinct=False).rates()
    kernels.breed(space.table, random_state(np.random.default_rng(6)), rates, space.scratch(), np.zeros(64, np.uint64),
                  parents.steps, parents.ranks, np.arange(2), 2, children.steps, children.ranks, (0, 200))
    sources = parents.steps[:, :, :, None] == children.steps[:, :, None, :]
    of_one_parent = sources.all(axis=0)
    assert of_one_parent.any(axis=1).all()
    mixed = of_one_parent[:, 0].any(axis=0) & ~of_one_parent[:, 0].all(axis=0)
    assert mixed.sum() > 20


def test_children_fit_and_do_not_repeat():
    space = MapSpace(LAYER, preset("eyeriss"))
    batch = evolve(space, 5)
    assert space.fits(batch).all()
    assert len({(batch.steps[:, :, i].tobytes(), batch.ranks[:, :, i].tobytes()) for i in range(len(batch))}) > 190


CASES = [
    ("matmul on a fixed array", matmul("a", m=24, n=16, k=12), FIXED, "perfect"),
    ("matmul on a flexible array", matmul("b", m=12, n=8, k=12), FLEXIBLE, "perfect"),
    ("matmul, ragged", matmul("c", m=6, n=5, k=4), FIXED, "imperfect"),
    ("matmul without local memory", matmul("d", m=64, n=48, k=96), BARE, "perfect"),
    ("1-D convolution", conv("e", k=8, c=4, out=(8,), kernel=3), FIXED, "perfect"),
    ("2-D convolution", conv("f", k=8, c=4, out=(4, 4), kernel=(3, 1)), BARE, "perfect"),
    ("strided convolution", conv("g", k=16, c=8, out=(14,), kernel=3, stride=2), BARE, "perfect"),
    ("on Eyeriss", conv("h", k=4, c=4, out=(4,), kernel=3), preset("eyeriss"), "perfect"),
]


@pytest.mark.sample(1)
@pytest.mark.parametrize(("operator", "accelerator", "tiling"), [case[1:] for case in CASES],
                         ids=[case[0] for case in CASES])
@pytest.mark.parametrize("objective", ["edp", "latency", "energy"])
def test_median_over_ten_seeds_is_within_two_percent_of_the_optimum(operator, accelerator, tiling, objective):
    space = MapSpace(operator, accelerator, tiling)
    model = model_of(space, Objective.parse("edp"))
    best = search(operator, accelerator, mapper="exhaustive", budget=10**8, space=space, model=model,
                  objective=objective)
    assert best.complete
    assert best.legal_samples <= 5_000_000
    found = [search(operator, accelerator, mapper="gamma", budget=10_000, seed=seed, space=space, model=model,
                    objective=objective).score for seed in range(10)]
    assert min(found) >= best.score * (1 - 1e-12)
    assert statistics.median(found) <= 1.02 * best.score

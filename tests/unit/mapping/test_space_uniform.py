"""Uniform draws from a map space: against enumeration by chi-square, and by rejection against the legal ones."""

import numpy as np
import pytest

from tilewright.base import InputError
from tilewright.hardware import Accelerator, AccessEnergy, Fanout, Memory
from tilewright.mapping import Bounds, Constraints, MapSpace
from tilewright.mapping.spaces.counting import size as counting
from tilewright.mapping.spaces.counting.chains import TooLarge
from tilewright.mapping.spaces.drawing import uniform
from tilewright.workload import matmul

ALL = ("inputs", "weights", "outputs")
UNIT = AccessEnergy(1.0, 1.0, 1.0, 1.0)
TILINGS = ("perfect", "imperfect", "ruby", "ruby-s", "ruby-t")


def machine(*inner):
    return Accelerator("machine", (Memory("DRAM", ALL, UNIT), *inner))


def memory(name, capacity):
    return Memory(name, ALL, UNIT, capacity_bytes=capacity, buffering="single")


MACHINES = {
    "fixed": machine(Fanout("PE", (4, 3)), memory("REG", 20)),
    "flexible": machine(memory("GLB", 40), Fanout("PE", (4, 3), flexible=True), memory("REG", 12)),
    "blocks": machine(Fanout("PE", (4, 2), blocks=(2, 1)), memory("REG", 20)),
    "two": machine(Fanout("CL", (3, 1)), memory("GLB", 24), Fanout("PE", (2, 2))),
    "mixed": machine(Fanout("CL", (3, 2), flexible=True), Fanout("PE", (2, 2), blocks=(1, 2)), memory("GLB", 20)),
}
ORDERS = {"DRAM": (("B", "M", "K", "N"), ("N", "M", "K", "B"), ("K", "*"))}
RESTRICTIONS = {
    "none": Constraints(),
    "orders": Constraints(orders=ORDERS, loops={"PE.X": ("M", "K")}),
    "bounds": Constraints(factors={"DRAM": {"M": Bounds(1, 3)}}, tiles={"DRAM": {"N": Bounds(1, 9)}},
                          utilization={"PE": 0.25}),
}


def keys(batch):
    return [batch.steps[:, :, i].tobytes() + batch.ranks[:, :, i].tobytes() for i in range(len(batch))]


def known(space, legal=False):
    batches = list(space.enumerate())
    return {key for batch in batches
            for key, good in zip(keys(batch), space.fits(batch) if legal else [True] * len(batch), strict=True) if good}


def assert_uniform(drawn, expected, per):
    """Chi-square against all being alike: the statistic is near normal, of mean f and variance 2 f."""
    counts = dict.fromkeys(expected, 0)
    for key in keys(drawn):
        counts[key] += 1
    freedom = len(counts) - 1
    statistic = sum((count - per) ** 2 / per for count in counts.values())
    assert abs(statistic - freedom) < 4 * np.sqrt(2 * max(freedom, 1))


@pytest.mark.sample(8)
@pytest.mark.parametrize("kind", list(RESTRICTIONS))
@pytest.mark.parametrize("tiling", TILINGS)
@pytest.mark.parametrize("name", list(MACHINES))
def test_every_mapping_is_drawn_alike(name, tiling, kind):
    m, n, k = [(4, 3, 2), (6, 2, 2), (5, 4, 1)][(TILINGS.index(tiling) + len(name)) % 3]
    space = MapSpace(matmul("small", m=m, n=n, k=k), MACHINES[name], tiling, RESTRICTIONS[kind])
    expected = known(space)
    assert len(expected) == space.size().mappings
    drawn = space.draw(np.random.default_rng(11), 8 * len(expected))
    assert space.contains(drawn).all()
    assert_uniform(drawn, expected, 8)


@pytest.mark.parametrize(("name", "tiling"), [("fixed", "ruby-s"), ("flexible", "imperfect"), ("mixed", "perfect"),
                                              ("blocks", "ruby"), ("two", "ruby-t")])
def test_every_legal_mapping_is_drawn_alike(name, tiling):
    space = MapSpace(matmul("small", m=4, n=3, k=2), MACHINES[name], tiling)
    expected = known(space, legal=True)
    assert 0 < len(expected) < space.size().mappings
    drawn = space.draw(np.random.default_rng(7), 10 * len(expected), legal=True)
    assert space.fits(drawn).all()
    assert_uniform(drawn, expected, 10)
    estimate = space.legal_size(np.random.default_rng(8), 20_000)
    assert not estimate.exact
    assert abs(estimate.mappings / len(expected) - 1) < 4 * estimate.error < 0.1


def test_large_spaces_are_drawn_from_and_their_marginals_are_as_counted():
    operator = matmul("layer", m=196, n=64, k=288)
    accelerator = machine(memory("GLB", 10**5), Fanout("PE", (14, 12)), memory("REG", 512))
    for tiling in TILINGS:
        space = MapSpace(operator, accelerator, tiling)
        drawn = space.draw(np.random.default_rng(3), 4000)
        assert space.contains(drawn).all()
        # The share of mappings without a loop over K in space is known from the count of the space that has none.
        none = (drawn.steps[1] == drawn.steps[3])[list(operator.sizes).index("K")]
        places = {side: tuple(name for name in operator.sizes if name != "K") for side in ("PE.X", "PE.Y")}
        fewer = MapSpace(operator, accelerator, tiling, Constraints(loops=places)).size().mappings
        share = fewer / space.size().mappings
        assert abs(none.mean() - share) < 4 * np.sqrt(share * (1 - share) / 4000)


@pytest.mark.parametrize("legal", [False, True])
def test_spaces_of_many_memories_are_drawn_alike(legal):
    space = MapSpace(matmul("small", m=2, n=2, k=2), machine(*(memory(f"M{i}", 10 - i) for i in range(6))), "perfect")
    expected = known(space, legal)
    drawn = space.draw(np.random.default_rng(4), 8 * len(expected), legal)
    assert_uniform(drawn, expected, 8)


def test_an_outermost_memory_that_cannot_hold_the_operator_leaves_nothing_to_draw(monkeypatch):
    monkeypatch.setattr(uniform, "PATIENCE", 20_000)
    monkeypatch.setattr(uniform, "HOPELESS", 1000)
    outermost = Memory("DRAM", ALL, UNIT, capacity_bytes=60, buffering="single")
    space = MapSpace(matmul("small", m=8, n=8, k=8), Accelerator("machine", (outermost, memory("REG", 8))))
    assert space._uniform.small.size.mappings > 0
    with pytest.raises(InputError, match="fit the memories"):
        space.draw(np.random.default_rng(0), 10, legal=True)


@pytest.mark.parametrize("count", [0, 1, 5000])
def test_any_number_of_mappings_can_be_drawn(count):
    space = MapSpace(matmul("small", m=24, n=10, k=6), MACHINES["flexible"], "ruby-s")
    drawn = space.draw(np.random.default_rng(5), count, legal=True)
    assert len(drawn) == count
    assert (space.contains(drawn) & space.fits(drawn)).all()


def test_same_seed_draws_the_same():
    space = MapSpace(matmul("small", m=24, n=10, k=6), MACHINES["flexible"], "ruby-s")
    first, second = (space.draw(np.random.default_rng(5), 300, legal=True) for _ in range(2))
    assert np.array_equal(first.steps, second.steps)
    assert np.array_equal(first.ranks, second.ranks)


@pytest.mark.parametrize("most", [2500, 250])
def test_what_cannot_be_counted_is_estimated_and_drawn_all_the_same(most, monkeypatch):
    operator = matmul("small", m=20, n=12, k=6)
    accelerator = machine(Fanout("PE", (12, 8), blocks=(4, 4)), memory("REG", 50))
    whole = MapSpace(operator, accelerator, "ruby-s", Constraints(utilization={"PE": 0.2}))
    assert whole.size().exact
    monkeypatch.setattr(counting, "MOST_PAIRS", most)
    again = MapSpace(operator, accelerator, "ruby-s", Constraints(utilization={"PE": 0.2}))
    with pytest.raises(TooLarge):
        counting.SpaceTables(again.arrays, [frozenset({((), ())})] * 2)
    size = again.size()
    assert not size.exact
    assert 0 < size.error < 0.01
    assert abs(size.mappings / whole.size().mappings - 1) < 4 * size.error
    assert str(size).startswith("about ")
    assert again.contains(again.draw(np.random.default_rng(1), 200)).all()


def test_a_space_without_legal_mappings_is_named():
    space = MapSpace(matmul("small", m=4, n=3, k=2), machine(memory("REG", 1)))
    assert space.legal_size(np.random.default_rng(0)).mappings == 0
    with pytest.raises(InputError, match="must hold mappings"):
        space.draw(np.random.default_rng(0), 10, legal=True)

"""The compiled model on batches: each mapping scored as if it were alone, on hardware of its own, legal or not."""

import itertools
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

from tilewright.base import InputError, KeptValues
from tilewright.cost import DenseModel, HardwareBatch, layer_bounds
from tilewright.cost.dense import scoring
from tilewright.cost.dense.model import narrow_enough
from tilewright.hardware import Accelerator, AccessEnergy, Bandwidth, Compute, Fanout, Memory
from tilewright.mapping import Layout, MappingBatch, is_legal, violations
from tilewright.workload import (
    ROLES,
    Axis,
    Operator,
    Tensor,
    convolution,
    depthwise,
    einsum,
    matmul,
    transposed_convolution,
)

ROWS = ("latency_cycles", "energy_pj", "excess", "steps", "steady_cycles", "ramp_cycles")
KINDS = ("reads", "fills", "updates", "drains")

STRIDED = convolution("strided", batch=2, in_channels=6, out_channels=10, in_size=(25, 18), kernel=(3, 5),
                      stride=(2, 1), dilation=(1, 2), padding=2)
SQUARE = convolution("square", batch=1, in_channels=16, out_channels=12, in_size=14, kernel=3, padding=1)
OPERATORS = {
    "square": SQUARE,
    "strided": STRIDED,
    "depthwise": depthwise("depthwise", 24, in_size=15, kernel=3, stride=2, padding=1),
    "matmul": matmul("gemm", m=37, n=24, k=50, batch=2),
    "einsum": einsum("bhqd,bhkd->bhqk", {"b": 2, "h": 3, "q": 9, "k": 10, "d": 8}),
    "transposed": transposed_convolution("transposed", batch=1, in_channels=5, out_channels=6, in_size=7, kernel=4,
                                         stride=2, padding=1),
}


def machine(**more: object) -> Accelerator:
    """Two arrays, a row and a grid, of which one cannot reduce; every port and capacity is limited."""
    levels = (
        Memory("Main", ROLES, AccessEnergy(100.0, 110.0, 120.0, 130.0), bandwidth=Bandwidth(shared=7.0), word_bits=16,
               leakage_mw=0.5),
        Memory("Buffer", ("inputs", "outputs"), AccessEnergy(6.0, 7.0, 8.0, 9.0), capacity_bytes=3000.0,
               bandwidth=Bandwidth(3.0, 4.0), buffering="single"),
        Fanout("Columns", (6, 1), reduce=False, network_energy_pj_per_word=0.75),
        Memory("Shared", ("weights",), AccessEnergy(2.0, 3.0, 4.0, 5.0), capacity_bytes=400.0,
               bandwidth=Bandwidth(write=0.5), buffering="buffet"),
        Fanout("Grid", (4, 5), network_energy_pj_per_word=0.25),
        Memory("Pads", ROLES, AccessEnergy(0.5, 0.6, 0.7, 0.8), bandwidth=Bandwidth(2.0, 1.5),
               partitions_bytes=(("inputs", 24.0), ("weights", 64.0), ("outputs", 20.0))),
    )
    return Accelerator("grid", levels, Compute("MAC", 0.2, leakage_mw=0.001), frequency_mhz=250.0,
                       word_bits=(("inputs", 8), ("weights", 8), ("outputs", 24)), **more)  # type: ignore[arg-type]


def random_batch(operator: Operator, accelerator: Accelerator, count: int, seed: int = 0, *, perfect: bool = False,
                 repeats: dict[str, int] | None = None) -> MappingBatch:
    """Random steps and orders, legal or not, the larger steps the rarer."""
    layout = Layout.of(operator, accelerator, repeats)
    slots, dimensions = layout.shape
    rng = np.random.default_rng(seed)
    steps = np.empty((slots, dimensions, count), np.int32)
    for d, name in enumerate(layout.dimensions):
        extent = np.full(count, operator.sizes[name])
        for s in range(slots - 1):
            drawn = np.maximum(1, np.floor(np.exp(rng.random(count) * np.log(extent + 1.0)))).astype(np.int64)
            if perfect:
                drawn = np.array([max(x for x in range(1, e + 1) if e % x == 0 and x <= max(1, n))
                                  for e, n in zip(extent, drawn, strict=True)])
            extent = np.where(rng.random(count) < 0.3, extent, np.minimum(drawn, extent))
            steps[s, d] = extent
        steps[slots - 1, d] = 1
    ranks = rng.random((slots, dimensions, count)).argsort(axis=1).astype(np.int8)
    return MappingBatch(layout, steps, ranks)


def same(found, expected, index=slice(None)):
    """All rows are the same, bit for bit."""
    for row in ROWS:
        np.testing.assert_array_equal(getattr(found, row)[index], getattr(expected, row), row)


@pytest.mark.sample(4)
@pytest.mark.parametrize("perfect", [True, False], ids=["perfect", "ragged"])
@pytest.mark.parametrize("name", OPERATORS)
def test_a_batch_scores_each_mapping_as_if_alone(name, perfect):
    operator, accelerator = OPERATORS[name], machine()
    batch = random_batch(operator, accelerator, 200, seed=len(name), perfect=perfect)
    model = DenseModel(operator, accelerator, even_after=0)
    together, counts = model.score(batch), model.table(batch).words
    for index in range(0, 200, 5):
        alone = batch.take(slice(index, index + 1))
        same(together, model.score(alone), slice(index, index + 1))
        cost = model.cost(batch.mapping(index, operator.sizes))
        assert {key: tuple(rows[kind][index] for kind in KINDS) for key, rows in counts.items()} == {
            key: (count.reads, count.fills, count.updates, count.drains) for key, count in cost.counts.items()}
        cycles = together.steps[index], together.steady_cycles[index], together.ramp_cycles[index]
        assert cycles == (cost.steps, cost.steady_cycles, cost.ramp_cycles)
        assert together.latency_cycles[index] == cost.latency_cycles
        assert together.energy_pj[index] == pytest.approx(cost.energy_pj, rel=1e-9)


@pytest.mark.parametrize("count", [1, 127, 128, 129, 255, 256, 257, 700])
def test_blocks_that_are_not_full(count):
    accelerator = machine()
    model = DenseModel(STRIDED, accelerator, even_after=0)
    batch = random_batch(STRIDED, accelerator, 700)
    same(model.score(batch), model.score(batch.take(slice(700 - count, 700))), slice(700 - count, 700))


@pytest.mark.parametrize("run", [1, 128, 300])
def test_even_and_ragged_mappings_may_be_mixed(run):
    """Blocks in which every loop divides may take a shorter way: it leads to the same figures."""
    accelerator = machine()
    even, ragged = (random_batch(SQUARE, accelerator, 1500, seed=3, perfect=perfect) for perfect in (True, False))
    from_even = np.arange(1500) // run % 2 == 0
    mixed = MappingBatch(even.layout, np.ascontiguousarray(np.where(from_even, even.steps, ragged.steps)),
                         np.ascontiguousarray(np.where(from_even, even.ranks, ragged.ranks)))
    model = DenseModel(SQUARE, accelerator, even_after=0)
    found, scored = model.score(mixed), (model.score(even), model.score(ragged))
    for row in ROWS:
        expected = np.where(from_even, *(getattr(batch, row) for batch in scored))
        np.testing.assert_array_equal(getattr(found, row), expected, row)


@pytest.mark.parametrize("count", [2_047, 4_096, 5_003])
def test_threads_change_nothing(count):
    accelerator = machine()
    model = DenseModel(STRIDED, accelerator, even_after=0)
    batch = random_batch(STRIDED, accelerator, count)
    one = model.score(batch)
    for threads in (2, 3):
        same(model.score(batch, threads=threads), one)


def test_order_within_the_batch_changes_nothing():
    accelerator = machine()
    model = DenseModel(SQUARE, accelerator, even_after=0)
    batch = random_batch(SQUARE, accelerator, 600)
    shuffled = np.random.default_rng(1).permutation(600)
    expected = model.score(batch)
    found = model.score(batch.take(shuffled))
    for row in ROWS:
        np.testing.assert_array_equal(getattr(found, row), getattr(expected, row)[shuffled])


def test_levels_that_loop_twice_over_a_dimension():
    accelerator = machine()
    batch = random_batch(SQUARE, accelerator, 60, repeats={"Buffer": 2, "Grid": 2})
    model = DenseModel(SQUARE, accelerator, batch.layout)
    scored = model.score(batch)
    for index in range(60):
        cost = model.cost(batch.mapping(index, SQUARE.sizes))
        assert (scored.steps[index], scored.steady_cycles[index], scored.ramp_cycles[index]) == (
            cost.steps, cost.steady_cycles, cost.ramp_cycles)
        assert scored.energy_pj[index] == pytest.approx(cost.energy_pj, rel=1e-9)


def varied(accelerator: Accelerator, index: int, values: dict[tuple[str, str], np.ndarray]) -> Accelerator:
    """The accelerator that candidate ``index`` stands for."""
    def of(level: str, what: str, default: float | None) -> float | None:
        return float(values[level, what][index]) if (level, what) in values else default

    levels: list[Memory | Fanout] = []
    for level in accelerator.levels:
        if isinstance(level, Fanout):
            x, y = of(level.name, "x", level.shape[0]), of(level.name, "y", level.shape[1])
            price = of(level.name, "network_energy_pj_per_word", level.network_energy_pj_per_word)
            levels.append(replace(level, shape=(int(x or 1), int(y or 1)), network_energy_pj_per_word=price or 0.0))
            continue
        rates = {port: of(level.name, f"bandwidth_words_per_cycle.{port}", getattr(level.bandwidth, port))
                 for port in ("read", "write", "shared")}
        energies = {f"{kind}_pj": of(level.name, f"{kind}_energy_pj_per_word", getattr(level.energy, f"{kind}_pj"))
                    for kind in ("read", "fill", "update", "drain")}
        parts = tuple((owner, of(level.name, f"capacity_bytes[{owner}]", size) or 0.0)
                      for owner, size in level.partitions_bytes)
        levels.append(replace(level, bandwidth=Bandwidth(**rates), partitions_bytes=parts,
                              energy=AccessEnergy(**energies),  # type: ignore[arg-type]
                              capacity_bytes=of(level.name, "capacity_bytes", level.capacity_bytes)))
    return replace(accelerator, levels=tuple(levels))


def test_hardware_may_differ_from_mapping_to_mapping():
    count, accelerator = 24, replace(machine(), compute=Compute("MAC", 0.2))
    accelerator = replace(accelerator, levels=tuple(
        replace(level, leakage_mw=0.0) if isinstance(level, Memory) else level for level in accelerator.levels))
    batch = random_batch(STRIDED, accelerator, count)
    rng = np.random.default_rng(3)
    values = {
        ("Buffer", "capacity_bytes"): rng.integers(100, 20_000, count).astype(float),
        ("Shared", "capacity_bytes"): rng.integers(10, 900, count).astype(float),
        ("Pads", "capacity_bytes[weights]"): rng.integers(2, 90, count).astype(float),
        ("Main", "bandwidth_words_per_cycle.shared"): rng.choice([0.5, 1.2, 3.0, 16.0], count),
        ("Buffer", "bandwidth_words_per_cycle.read"): rng.choice([0.5, 1.2, 3.0, 16.0], count),
        ("Shared", "bandwidth_words_per_cycle.write"): rng.choice([0.01, 0.1, 1.0], count),
        ("Pads", "bandwidth_words_per_cycle.write"): rng.choice([0.01, 0.1, 1.0], count),
        ("Columns", "x"): rng.integers(1, 12, count).astype(float),
        ("Grid", "x"): rng.integers(1, 8, count).astype(float),
        ("Grid", "y"): rng.integers(2, 8, count).astype(float),
        ("Grid", "network_energy_pj_per_word"): rng.random(count),
        ("Buffer", "update_energy_pj_per_word"): rng.random(count),
    }
    found = DenseModel(STRIDED, accelerator).score(batch, HardwareBatch(values))
    for index in range(count):
        own = DenseModel(STRIDED, varied(accelerator, index, values))
        same(found, own.score(batch.take(slice(index, index + 1))), slice(index, index + 1))
    assert 0 < found.legal.sum() < count


def test_instances_of_flexible_arrays_may_differ():
    def flexible(instances: int) -> Accelerator:
        main = Memory("Main", ROLES, AccessEnergy(9.0, 9.0, 9.0, 9.0))
        return Accelerator("flexible", (main, Fanout("Array", (instances, 1), flexible=True)))

    batch = random_batch(SQUARE, flexible(1), 200)
    instances = np.random.default_rng(2).integers(1, 300, 200).astype(float)
    found = DenseModel(SQUARE, flexible(1)).score(batch, HardwareBatch({("Array", "instances"): instances}))
    for index in range(0, 200, 10):
        own = DenseModel(SQUARE, flexible(int(instances[index])))
        same(found, own.score(batch.take(slice(index, index + 1))), slice(index, index + 1))
    assert 10 < found.legal.sum() < 190


def test_hardware_that_the_machine_does_not_limit_is_refused():
    accelerator = machine()
    batch = random_batch(SQUARE, accelerator, 2)
    with pytest.raises(InputError, match=r"hardware\.Main\.capacity_bytes: must be a number that the accelerator"):
        DenseModel(SQUARE, accelerator).score(batch, HardwareBatch({("Main", "capacity_bytes"): np.ones(2)}))


def test_a_batch_of_another_layout_is_refused():
    accelerator = machine()
    batch = random_batch(SQUARE, accelerator, 2, repeats={"Buffer": 2})
    with pytest.raises(InputError, match=r"batch\.layout: must be the layout of the model"):
        DenseModel(SQUARE, accelerator).score(batch)


def test_blocks_of_words_behind_an_array_are_refused():
    accelerator = machine()
    levels = list(accelerator.levels)
    levels[-1] = replace(levels[-1], block_words=4)  # type: ignore[call-arg]
    with pytest.raises(InputError, match=r"grid\.Pads\.block_words: must be 1 behind a fan-out"):
        DenseModel(SQUARE, replace(accelerator, levels=tuple(levels)))


def test_a_tensor_that_no_memory_keeps_is_refused():
    accelerator = machine()
    layout = Layout.of(SQUARE, accelerator, keeps=dict.fromkeys(
        (memory.name for memory in accelerator.memories), ("I", "O")))
    with pytest.raises(InputError, match=r"must let some memory keep W"):
        DenseModel(SQUARE, accelerator, layout)


NARROW = "what single precision just holds"
LARGE = {
    "a long dimension": matmul("long", m=5_000_011, n=3, k=40),
    "a long window": Operator("window", "conv", (("K", 3), ("P", 4_194_307), ("R", 5)), (
        Tensor("W", "weights", (Axis((("K", 1),)), Axis((("R", 1),)))),
        Tensor("I", "inputs", (Axis((("P", 1), ("R", 2))),)),
        Tensor("O", "outputs", (Axis((("K", 1),)), Axis((("P", 1),)))))),
    "many words in a window": Operator("wide", "conv", (("P", 70_001), ("R", 401)), (
        Tensor("W", "weights", (Axis((("R", 1),)),)),
        Tensor("I", "inputs", (Axis((("P", 3), ("R", 2))),)),
        Tensor("O", "outputs", (Axis((("P", 1),)),)))),
    NARROW: Operator("narrow", "conv", (("K", 2_000_003), ("P", 16_001), ("R", 1_021)), (
        Tensor("W", "weights", (Axis((("K", 1),)), Axis((("R", 1),)))),
        Tensor("I", "inputs", (Axis((("P", 2), ("R", 3))),)),
        Tensor("O", "outputs", (Axis((("K", 1),)), Axis((("P", 1),)))))),
}


def test_double_precision_counts_what_single_does_not_hold():
    assert {name for name, operator in LARGE.items() if narrow_enough(operator)} == {NARROW}


# The engine is compiled once more in double precision, for these alone.
@pytest.mark.parametrize("name", [name if name == NARROW else pytest.param(name, marks=pytest.mark.slow)
                                  for name in LARGE])
def test_large_dimensions_stay_exact(name):
    """All counts below 2**53 are exact; beyond that they are the nearest that a double holds."""
    operator, accelerator = LARGE[name], machine()
    batch = random_batch(operator, accelerator, 60, seed=4)
    model = DenseModel(operator, accelerator, even_after=0)
    scored, counts = model.score(batch), model.table(batch).words
    for index in range(60):
        cost = model.cost(batch.mapping(index, operator.sizes))
        for key, count in cost.counts.items():
            for kind in KINDS:
                exact = getattr(count, kind)
                assert counts[key][kind][index] == pytest.approx(exact, rel=0 if exact < 2**53 else 1e-12), (index, key)
        assert scored.steps[index] == cost.steps
        assert scored.energy_pj[index] == pytest.approx(cost.energy_pj, rel=1e-9)
        if cost.steady_cycles < 2**49:
            assert (scored.steady_cycles[index], scored.ramp_cycles[index]) == (cost.steady_cycles, cost.ramp_cycles)


def arrays(kind: str) -> Accelerator:
    fanout = {
        "fixed": Fanout("Array", (4, 6)),
        "row": Fanout("Array", (9, 1)),
        "flexible": Fanout("Array", (20, 1), flexible=True),
        "blocks": Fanout("Array", (8, 8), blocks=(4, 2)),
    }[kind]
    levels = (Memory("Main", ROLES, AccessEnergy(9.0, 9.0, 9.0, 9.0)),
              Memory("Buffer", ROLES, AccessEnergy(2.0, 2.0, 2.0, 2.0), capacity_bytes=4000.0), fanout,
              Memory("Pads", ROLES, AccessEnergy(1.0, 1.0, 1.0, 1.0), capacity_bytes=300.0, buffering="single",
                     partitions_bytes=(("weights", 60.0), ("O", 33.0))))
    return Accelerator(kind, levels, word_bits=(("inputs", 8), ("weights", 4), ("outputs", 24)))


@pytest.mark.sample(6)
@pytest.mark.parametrize("name", ["square", "strided", "matmul"])
@pytest.mark.parametrize("kind", ["fixed", "row", "flexible", "blocks"])
def test_legal_means_without_violations(kind, name):
    operator, accelerator = OPERATORS[name], arrays(kind)
    batch = random_batch(operator, accelerator, 400, seed=7)
    legal = DenseModel(operator, accelerator, even_after=0).score(batch).legal
    mappings = [batch.mapping(index, operator.sizes) for index in range(400)]
    assert legal.tolist() == [is_legal(mapping, operator, accelerator) for mapping in mappings]
    assert 10 < legal.sum() < 390
    for index in (*np.flatnonzero(legal)[:5], *np.flatnonzero(~legal)[:5]):
        assert (violations(mappings[index], operator, accelerator) == ()) == legal[index]


def test_a_tile_that_just_fits():
    """Two words of every tensor take 48 bits; twice, where the next tile comes while this one is used."""
    operator = matmul("gemm", m=4, n=1, k=1)

    def room(size: float, buffering: str) -> Accelerator:
        return Accelerator("m", (Memory("Main", ROLES, AccessEnergy(9.0, 9.0, 9.0, 9.0)),
                                 Memory("Pad", ("outputs",), AccessEnergy(1.0, 1.0, 1.0, 1.0), size,
                                        buffering=buffering)),  # type: ignore[arg-type]
                           word_bits=(("inputs", 8), ("weights", 8), ("outputs", 24)))

    for buffering, needed in (("single", 6.0), ("buffet", 6.0), ("double", 12.0)):
        for size, fits in ((needed, True), (needed - 0.01, False)):
            accelerator = room(size, buffering)
            layout = Layout.of(operator, accelerator)
            steps = np.ones((*layout.shape, 1), np.int32)
            steps[0, layout.dimensions.index("M")] = 2
            batch = MappingBatch(layout, steps, np.tile(np.arange(4, dtype=np.int8)[None, :, None], (2, 1, 1)))
            scored = DenseModel(operator, accelerator, even_after=0).score(batch)
            assert scored.legal.tolist() == [fits]
            assert scored.excess[0] == pytest.approx(0.0 if fits else needed / size - 1, rel=1e-9)


@pytest.mark.parametrize("name", OPERATORS)
def test_no_legal_mapping_beats_the_bounds(name):
    operator, accelerator = OPERATORS[name], machine()
    scored = DenseModel(operator, accelerator).score(random_batch(operator, accelerator, 20_000, seed=11))
    bounds = layer_bounds(operator, accelerator)
    legal = scored.legal
    assert legal.any()
    assert scored.latency_cycles[legal].min() >= bounds.latency_cycles
    assert scored.energy_pj[legal].min() >= bounds.energy_pj
    assert (scored.latency_cycles * scored.energy_pj)[legal].min() >= bounds.edp
    assert scored.steps[legal].min() >= bounds.compute_cycles


def test_even_mappings_cost_the_same_with_the_general_program_and_with_their_own():
    operator, accelerator = OPERATORS[next(iter(OPERATORS))], machine()
    batch = random_batch(operator, accelerator, 3000, seed=12)
    general, own = (DenseModel(operator, accelerator, even_after=after) for after in (10**9, 0))
    first, second = general.score(batch), own.score(batch)
    assert len(set(map(id, general.program.machines))) == 1
    assert len(set(map(id, own.program.machines))) == 2
    assert np.array_equal(first.latency_cycles, second.latency_cycles)
    assert np.array_equal(first.energy_pj, second.energy_pj)
    assert np.array_equal(first.excess, second.excess)


def test_models_that_take_turns_score_as_by_themselves():
    """On a thread all programs work in the same rows."""
    accelerator, turns = machine(), []
    for name, perfect in itertools.product(OPERATORS, (True, False)):
        operator = OPERATORS[name]
        model, batch = DenseModel(operator, accelerator, even_after=0), random_batch(
            operator, accelerator, 300, perfect=perfect)
        turns.append((model, batch, model.score(batch)))
        turns.append((DenseModel(operator, accelerator), batch, turns[-1][2]))
    for model, batch, alone in [*turns, *turns[::-1]]:
        same(model.score(batch), alone)


def test_layers_of_one_kind_share_a_program_and_differ_in_their_numbers():
    """Sizes that are 1, or equal, make another kind; all else is filled in (rule 3 at strides, whole axes, macs)."""
    accelerator = machine()
    sizes = [(8, 25), (12, 33), (25, 41)]
    layers = [convolution("c", batch=3, in_channels=c, out_channels=c + 1, in_size=size, kernel=5, stride=3)
              for c, size in sizes]
    written = scoring._written.cache_info().misses
    for layer in layers:
        for perfect in (True, False):
            batch = random_batch(layer, accelerator, 300, perfect=perfect)
            model = DenseModel(layer, accelerator, even_after=0)
            scored, counts = model.score(batch), model.table(batch).words
            for index in range(0, 300, 10):
                cost = model.cost(batch.mapping(index, layer.sizes))
                assert scored.latency_cycles[index] == cost.latency_cycles
                assert scored.energy_pj[index] == pytest.approx(cost.energy_pj, rel=1e-9)
                assert {key: tuple(rows[kind][index] for kind in KINDS) for key, rows in counts.items()} == {
                    key: (count.reads, count.fills, count.updates, count.drains) for key, count in cost.counts.items()}
    assert scoring._written.cache_info().misses - written == 4  # costs and tables, general and even


@pytest.mark.parametrize("even_after", [0, 1_000])
def test_the_next_process_reads_programs_and_writes_none(monkeypatch, tmp_path, even_after):
    """Also those of a layer with another name and other sizes; one whose size is 1 has its own."""
    monkeypatch.setattr(scoring, "_programs", lambda: KeptValues(tmp_path, "program", 9))
    first, other, single = (convolution(f"c{channels}", in_channels=channels, out_channels=channels + 1, in_size=size,
                                        kernel=3) for channels, size in ((8, 25), (12, 33), (1, 25)))
    accelerator = machine()
    batch = random_batch(first, accelerator, 50)
    scoring._written.cache_clear()
    scored = DenseModel(first, accelerator, even_after=even_after).score(batch)
    files = {*tmp_path.iterdir()}
    with monkeypatch.context() as patch:
        patch.setattr(scoring, "Model", None)
        scoring._written.cache_clear()
        again = DenseModel(first, accelerator, even_after=even_after).score(batch)
        scoring._written.cache_clear()
        DenseModel(other, accelerator, even_after=even_after).score(random_batch(other, accelerator, 50))
    assert again.latency_cycles.tolist() == scored.latency_cycles.tolist()
    assert again.energy_pj.tolist() == scored.energy_pj.tolist()
    assert {*tmp_path.iterdir()} == files and len(files) == (1 if even_after else 2)
    DenseModel(single, accelerator, even_after=even_after).score(random_batch(single, accelerator, 50))
    assert len([*tmp_path.iterdir()]) == 2 * len(files)


def other_numbers(accelerator: Accelerator, factor: float = 1.7) -> Accelerator:
    """A machine of the same structure and another name of which every number differs."""
    levels: list[Memory | Fanout] = []
    for level in accelerator.levels:
        if isinstance(level, Fanout):
            levels.append(replace(level, shape=(level.shape[0] + 1, level.shape[1] + (level.shape[1] > 1)),
                                  network_energy_pj_per_word=level.network_energy_pj_per_word * factor))
            continue
        rates = {port: rate and rate * factor for port, rate in vars(level.bandwidth).items()}
        energies = {kind: pj * factor for kind, pj in vars(level.energy).items()}
        levels.append(replace(level, energy=AccessEnergy(**energies), bandwidth=Bandwidth(**rates),
                              capacity_bytes=level.capacity_bytes and level.capacity_bytes * factor,
                              partitions_bytes=tuple((owner, size * factor) for owner, size in level.partitions_bytes),
                              leakage_mw=level.leakage_mw * factor, area_um2=level.area_um2 + 5.0))
    return replace(accelerator, name="other", levels=tuple(levels), frequency_mhz=333.0,
                   compute=replace(accelerator.compute, energy_pj_per_mac=0.7, leakage_mw=0.02))


def test_machines_of_one_structure_share_programs():
    first, second = machine(), other_numbers(machine())
    assert first.structure == second.structure
    DenseModel(SQUARE, first).score(random_batch(SQUARE, first, 2))
    batch = random_batch(SQUARE, second, 20)
    model = DenseModel(SQUARE, second)
    written = scoring._written.cache_info().misses
    scored, costs = model.score(batch), [model.cost(batch.mapping(index, SQUARE.sizes)) for index in range(20)]
    assert scoring._written.cache_info().misses - written <= 1  # rates that are no whole numbers are another program
    assert scored.latency_cycles.tolist() == [cost.latency_cycles for cost in costs]
    assert scored.energy_pj == pytest.approx([cost.energy_pj for cost in costs], rel=1e-9)
    written = scoring._written.cache_info().misses
    DenseModel(SQUARE, replace(second, name="third", technology="none")).score(batch)
    assert scoring._written.cache_info().misses == written


@pytest.mark.parametrize("change", [
    lambda machine: replace(machine, compute=Compute("MAC", 0.2), levels=(
        replace(machine.levels[0], leakage_mw=0.0), *machine.levels[1:])),
    lambda machine: replace(machine, footprint="box"),
    lambda machine: replace(machine, levels=(replace(machine.levels[0], bandwidth=Bandwidth()), *machine.levels[1:])),
    lambda machine: replace(machine, levels=(*machine.levels[:-1], replace(machine.levels[-1], buffering="buffet"))),
])
def test_what_changes_the_program_is_structure(change):
    assert change(machine()).structure != machine().structure


@pytest.mark.parametrize("other", [(3, 5, 5), (5, 5, 3), (3, 1, 5), (1, 1, 1), (2**22, 3, 5)])
def test_layers_of_another_kind_are_written_anew(other):
    accelerator = machine()
    for m, n, k in ((5, 3, 7), other):
        operator = matmul("m", m=m, n=n, k=k)
        batch = random_batch(operator, accelerator, 200)
        model = DenseModel(operator, accelerator)
        scored = model.score(batch)
        for index in range(0, 200, 20):
            assert scored.latency_cycles[index] == model.cost(batch.mapping(index, operator.sizes)).latency_cycles


def test_the_engine_is_not_written_anew_where_it_is_on_disk():
    scoring.compile_kernel()
    code = "from tilewright.cost.dense import kernel, scoring; scoring.compile_kernel(); print(kernel._interpret)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "None\n"

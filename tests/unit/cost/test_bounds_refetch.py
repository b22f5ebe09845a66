"""Bounds on what must be fetched again: right by hand, equal to the optimum where that is known, never beaten."""

import numpy as np
import pytest

from tilewright.cost import DenseModel, layer_bounds, space_bounds
from tilewright.cost.bounds.compute import ComputeStage
from tilewright.cost.bounds.groups import Tiles, groups_of
from tilewright.cost.bounds.refetch import _dual
from tilewright.cost.bounds.rows import MachineRows
from tilewright.cost.bounds.traffic import Traffic
from tilewright.cost.reference import walk
from tilewright.hardware import ACCESSES, Accelerator, AccessEnergy, Bandwidth, Compute, Fanout, Memory, preset
from tilewright.mapping import Constraints, LevelLoops, Loop, Mapping, MapSpace
from tilewright.validation.random_nests import with_networks
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

ONE = AccessEnergy(1.0, 1.0, 1.0, 1.0)


def machine(*inner: Memory | Fanout, **more: object) -> Accelerator:
    return Accelerator("m", (Memory("DRAM", ROLES, AccessEnergy(100.0, 100.0, 100.0, 100.0)), *inner),
                       **more)  # type: ignore[arg-type]


def buffer(capacity: float, keeps: tuple[str, ...] = ROLES, **more: object) -> Memory:
    return Memory("GLB", keeps, ONE, capacity_bytes=capacity, buffering="buffet", **more)  # type: ignore[arg-type]


def traffic(operator: Operator, accelerator: Accelerator) -> Traffic:
    chains = {t.name: tuple(m.name for m in accelerator.memories if m.can_keep(t.name, t.role))
              for t in operator.tensors}
    return Traffic.of(operator, accelerator, chains)


def least_words(found: Traffic, memory: str) -> float:
    return float(found.least([(memory, ACCESSES["shared"])])[0, 0])


def test_groups_are_of_the_dimensions_that_one_tensor_alone_does_not_use():
    operator = convolution("c", in_channels=4, out_channels=6, in_size=8, kernel=3, padding=1, groups=2)
    assert [(g.tensor, g.dimensions) for g in groups_of(operator, False)] == [
        ("I", ("K",)), ("W", ("P", "Q")), ("O", ("C", "R", "S"))]
    chain = einsum("ab,bc,cd->ad", {"a": 3, "b": 4, "c": 5, "d": 6})
    assert groups_of(chain, False) == ()


@pytest.mark.parametrize("perfect", [False, True])
def test_cells_hold_the_fewest_pieces_of_all_products(perfect):
    rng = np.random.default_rng(0)
    operator = convolution("c", in_channels=72, out_channels=10, in_size=58, kernel=3, batch=4)
    for group in groups_of(operator, perfect):
        sizes = [operator.sizes[name] for name in group.dimensions]
        for _ in range(200):
            extents = [int(rng.choice([e for e in range(1, s + 1) if not perfect or s % e == 0])) for s in sizes]
            pieces = np.prod([-(-s // e) for s, e in zip(sizes, extents, strict=True)])
            cell = np.searchsorted(group.least, np.prod(extents), side="right") - 1
            assert group.pieces[cell] <= pieces


@pytest.mark.parametrize("operator", [
    convolution("c", in_channels=4, out_channels=6, in_size=9, kernel=3),
    convolution("s", in_channels=4, out_channels=6, in_size=14, kernel=3, stride=2, dilation=3),
    convolution("one", in_channels=4, out_channels=6, in_size=(9,), kernel=5, dilation=2),
    convolution("wide", in_channels=1, out_channels=2, in_size=(60,), kernel=20),
    depthwise("d", 6, in_size=9, kernel=3),
    transposed_convolution("t", in_channels=3, out_channels=4, in_size=5, kernel=3, stride=2),
    matmul("g", m=9, n=7, k=6), einsum("ab,bc,cd->ad", {"a": 3, "b": 4, "c": 5, "d": 6})])
def test_no_tile_has_fewer_words_than_its_cell(operator):
    tiles, rng = Tiles(operator), np.random.default_rng(1)
    words = {t.name: np.broadcast_to(tiles.words(t), [len(g.least) for g in tiles.groups]) for t in operator.tensors}
    for _ in range(1000):
        extents = {d: int(rng.integers(1, s + 1)) for d, s in operator.sizes.items()}
        cell = tuple(int(np.searchsorted(g.least, np.prod([extents[d] for d in g.dimensions]), side="right")) - 1
                     for g in tiles.groups)
        for tensor in operator.tensors:
            assert words[tensor.name][cell] <= tensor.words(extents) * (1 + 1e-12)


@pytest.mark.parametrize("turned", [False, True])
def test_lanes_share_as_many_words_whichever_term_of_a_sliding_axis_comes_first(turned):
    """384 operations on 150 inputs: with the other order of terms, all lanes were once said to share too few."""
    rows, columns = (("P", 3), ("R", 3)), (("S", 2), ("Q", 2))
    operator = Operator("turned", "conv", (("C", 6), ("P", 4), ("Q", 4), ("R", 2), ("S", 2)), (
        Tensor("W", "weights", tuple(Axis(((name, 1),)) for name in "CRS")),
        Tensor("I", "inputs", (Axis((("C", 1),)), Axis(rows), Axis(columns if turned else columns[::-1]))),
        Tensor("O", "outputs", tuple(Axis(((name, 1),)) for name in "PQ"))))
    accelerator = machine(Fanout("F0", (4, 2), multicast=False), Fanout("F1", (5, 2), reduce=False),
                          Fanout("F2", (6, 2)))
    mapping = Mapping((LevelLoops("DRAM"), LevelLoops("F0", (Loop("C", 2, "X"), Loop("C", 1, "Y"))),
                       LevelLoops("F1", (Loop("P", 1, "X"), Loop("Q", 2, "Y"))),
                       LevelLoops("F2", (Loop("R", 1, "X"), Loop("Q", 1, "X"), Loop("S", 1, "Y")))))
    cost, bounds = walk(operator, accelerator, mapping), layer_bounds(operator, accelerator)
    assert [cost.counts["DRAM", name].reads for name in "WIO"] == [24, 150, 0]
    assert bounds.energy_pj == pytest.approx(cost.energy_pj, rel=1e-9) and bounds.energy_pj <= cost.energy_pj


def test_a_product_too_large_for_its_buffer_is_fetched_again_as_often_as_the_best_tile_needs():
    """48 x 48 x 48 with room for 3 x 144 words: squares of 12 would do with 4 x 2304 of each, O staying."""
    operator = matmul("g", m=48, n=48, k=48)
    m, n, k = np.indices((48, 48, 48)) + 1
    cuts = {"W": -(-48 // m), "I": -(-48 // n), "O": -(-48 // k)}
    for room in (24, 3 * 144, 1000, 3 * 2304):
        accelerator = machine(buffer(room))
        fits, best = m * n + m * k + n * k <= room, np.inf
        for still in cuts:
            often = {name: 1 if name == still else count for name, count in cuts.items()}
            best = min(best, 2304 * (often["I"] + often["W"] + often["O"] + (often["O"] - 1))[fits].min())
        found = least_words(traffic(operator, accelerator), "DRAM")
        assert 0.8 * best <= found <= best * (1 + 1e-9)
    assert found == 3 * 2304


def test_lanes_that_serve_one_tensor_are_lost_to_the_others():
    operator = matmul("g", m=64, n=64, k=64)
    accelerator = machine(Fanout("PEs", (8, 8)))
    stage = ComputeStage(Tiles(operator), MachineRows.one(accelerator, None), dict.fromkeys(("I", "W", "O"), "DRAM"))
    shared = min(operator.macs * (1 / a + 1 / b + 1 / (64 // (a * b)))
                 for a in range(1, 65) for b in range(1, 64 // a + 1))
    assert stage.least(np.ones((1, 3, 1)))[0, 0] == pytest.approx(shared)
    assert stage.least(np.array([[[1.0], [0.0], [0.0]]]))[0, 0] == pytest.approx(operator.macs / 64)


@pytest.mark.parametrize("operator", [
    matmul("g", m=64, n=100, k=3), einsum("ab,ab->ab", {"a": 5, "b": 3}),
    depthwise("d", channels=8, in_size=9, kernel=3),
    einsum("ab,bc,cd->ad", {"a": 3, "b": 4, "c": 5, "d": 6}),
    convolution("wide", in_channels=16, out_channels=1024, in_size=10, kernel=3)])  # of more boxes than a table has
def test_lanes_share_as_many_words_whichever_other_numbers_of_lanes_are_looked_at_together(operator):
    stage = ComputeStage(Tiles(operator), MachineRows.one(machine(), None), {})
    totals = [*range(1, 64, 5), 150, 400, 66]
    alone, asked = [stage.shared([total])[0] for total in totals], []
    assert all(map(np.array_equal, stage.shared(totals), alone))
    known = stage.tiles.each(totals[:3], stage.shared)
    found = stage.tiles.each(totals, lambda new: asked.extend(new) or stage.shared(new))
    assert asked == totals[3:]
    assert all(map(np.array_equal, found, alone))
    assert all(one is other for one, other in zip(known, found[:3], strict=True))


@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize(("channels", "kernel", "weights", "close"), [
    (1, 9, {"I": 1.0, "W": 0.0, "O": 0.0}, 0.1), (100, 5, {"I": 1.0, "W": 1.0, "O": 1.0}, 0.85)])
def test_lanes_along_windows_share_no_less_than_all_boxes_of_lanes_do(channels, kernel, weights, close, stride):
    """More lanes than are tried one by one stand for ranges of them: what the fewest touch is shared by the most."""
    operator = convolution("c", in_channels=1, out_channels=channels, in_size=(kernel - 1) * (stride + 1) + 1,
                           kernel=kernel, stride=stride)
    boxes = 1 + np.indices((kernel,) * 4).reshape(4, -1).T
    rows, columns = boxes[:, :2].prod(axis=1), boxes[:, 2:].prod(axis=1)
    ones = dict.fromkeys(operator.sizes, 1)
    windows = [operator.tensor("I").words(ones | dict(zip("PQRS", box, strict=True))) for box in boxes.tolist()]
    for total in (9, 37, 64, *range(65, 700, 9)):
        lanes = np.minimum(total // (rows * columns), channels)
        asked = {"I": windows / (rows * columns * np.maximum(lanes, 1)), "W": 1 / rows, "O": 1 / columns}
        best = sum(weights[t.name] * np.maximum(operator.macs * asked[t.name], t.words(operator.sizes))
                   for t in operator.tensors)[lanes > 0].min()
        stage = ComputeStage(Tiles(operator), MachineRows.one(machine(Fanout("PEs", (total, 1))), None),
                             dict.fromkeys("IWO", "DRAM"))
        given = np.array([[[weights[t.name]] for t in operator.tensors]])
        assert close * best <= stage.least(given)[0, 0] <= best * (1 + 1e-9)


def test_the_dual_is_below_the_sum_and_close_to_it():
    rng = np.random.default_rng(3)
    for _ in range(100):
        costs, most, room = rng.uniform(0, 10, 3), rng.uniform(1, 20, 3), rng.uniform(1, 40)
        points = np.exp(rng.dirichlet(np.ones(4), 4000)[:, :3] * np.log(room))
        best = (costs / np.minimum(points, most)).sum(axis=1).min()
        found = _dual(costs, most, np.log(room))
        assert 0.8 * best <= found <= best * (1 + 1e-9)


def test_bounds_of_a_space_know_its_keeps_and_its_tiling():
    operator = convolution("c", in_channels=13, out_channels=11, in_size=9, kernel=3)
    accelerator = preset("eyeriss")
    free = space_bounds(MapSpace(operator, accelerator))
    perfect = space_bounds(MapSpace(operator, accelerator, "perfect"))
    prime = matmul("g", m=179, n=2, k=1)
    assert space_bounds(MapSpace(prime, accelerator)).compute_cycles == 3
    assert space_bounds(MapSpace(prime, accelerator, "perfect")).compute_cycles == 179
    assert perfect.energy_pj >= free.energy_pj
    direct = space_bounds(MapSpace(operator, accelerator, constraints=Constraints(keeps={"GLB": ()})))
    assert direct.energy_pj != free.energy_pj
    assert direct.data_cycles["GLB"] == 0


OPERATORS = (
    convolution("conv", in_channels=5, out_channels=6, in_size=9, kernel=3, stride=2, padding=1),
    convolution("dilated", in_channels=4, out_channels=6, in_size=(14,), kernel=3, dilation=2),
    convolution("grouped", in_channels=6, out_channels=4, in_size=7, kernel=3, groups=2, batch=2),
    depthwise("depthwise", 8, in_size=8, kernel=3),
    transposed_convolution("transposed", in_channels=4, out_channels=3, in_size=5, kernel=3, stride=2),
    matmul("gemm", m=12, n=10, k=15), matmul("batched", m=6, n=8, k=5, batch=3),
    einsum("ab,bc,cd->ad", {"a": 5, "b": 4, "c": 6, "d": 3}),
)


def random_machine(rng: np.random.Generator) -> Accelerator:
    def rate() -> float | None:
        return float(rng.choice([0.25, 0.5, 1.0, 3.0, 8.0])) if rng.random() < 0.5 else None

    def memory(name: str, keeps: tuple[str, ...], limited: bool) -> Memory:
        energy = AccessEnergy(*(float(x) for x in rng.choice([0.5, 1.0, 2.0, 10.0], size=4)))
        size = float(np.exp(rng.uniform(np.log(6), np.log(1500))))
        apart = limited and rng.random() < 0.3
        return Memory(name, keeps, energy, word_bits=int(rng.choice([8, 16])),
                      capacity_bytes=size if limited and not apart else None,
                      partitions_bytes=tuple((role, size / 2) for role in keeps) if apart else (),
                      bandwidth=Bandwidth(rate(), rate(), rate()), leakage_mw=float(rng.choice([0.0, 0.01])),
                      buffering=str(rng.choice(["single", "double", "buffet"])))  # type: ignore[arg-type]

    levels: list[Memory | Fanout] = [memory("M0", ROLES, False)]
    for index in range(1, int(rng.integers(2, 6))):
        if rng.random() < 0.6:
            levels.append(memory(f"M{index}", tuple(r for r in ROLES if rng.random() < 0.75), True))
        else:
            levels.append(with_networks(rng, Fanout(
                f"F{index}", (int(rng.integers(1, 7)), int(rng.integers(1, 4))), multicast=bool(rng.random() < 0.7),
                reduce=bool(rng.random() < 0.7), network_energy_pj_per_word=float(rng.choice([0.0, 0.5, 3.0])))))
    return Accelerator("random", tuple(levels), Compute("MAC", 0.3), word_bits=(
        ("inputs", 8), ("weights", int(rng.choice([8, 16]))), ("outputs", int(rng.choice([8, 32])))))


def best_of(space: MapSpace, model: DenseModel, rng: np.random.Generator, count: int) -> list[int]:
    """Return the places, in a batch drawn with ``rng``, of the legal mappings that are best at something."""
    batch = space.sample(rng, count, filling=0.5)
    costs = model.score(batch)
    legal = np.flatnonzero(costs.legal)
    if not len(legal):
        return []
    figures = costs.latency_cycles[legal], costs.energy_pj[legal], (costs.latency_cycles * costs.energy_pj)[legal]
    return sorted({int(legal[figure.argmin()]) for figure in figures})


def check_case(seed: int) -> int:
    """Hold the best of many random mappings against the bounds of their space; return how many were legal."""
    rng = np.random.default_rng(seed)
    operator, accelerator = OPERATORS[rng.integers(len(OPERATORS))], random_machine(rng)
    keeps = {m.name: tuple(t.name for t in operator.tensors if m.can_keep(t.name, t.role) and rng.random() < 0.6)
             for m in accelerator.memories[1:]} if rng.random() < 0.4 else {}
    space = MapSpace(operator, accelerator, "perfect" if rng.random() < 0.5 else "imperfect", Constraints(keeps=keeps))
    model, bounds = DenseModel(operator, accelerator, space.layout), space_bounds(space)
    drawn = int(rng.integers(1 << 30))
    places = best_of(space, model, np.random.default_rng(drawn), 2000)
    batch = space.sample(np.random.default_rng(drawn), 2000, filling=0.5)
    for place in places:
        mapping = batch.mapping(place, operator.sizes)
        cost = walk(operator, accelerator, mapping) if place % 4 == 0 else model.cost(mapping)
        assert bounds.compute_cycles <= cost.steps
        assert bounds.latency_cycles <= cost.latency_cycles
        assert bounds.energy_pj <= cost.energy_pj
        assert bounds.edp <= cost.edp
        for memory, cycles in bounds.data_cycles.items():
            assert cycles <= cost.traffic[memory].cycles
    return len(places)


def test_no_legal_mapping_beats_the_bounds_of_its_space():
    assert sum(check_case(seed) for seed in range(40)) > 40


@pytest.mark.slow
def test_no_legal_mapping_beats_the_bounds_of_its_space_however_many():
    assert sum(check_case(seed) for seed in range(40, 4070)) > 4000


@pytest.mark.parametrize("name", ["eyeriss", "simba-like", "edge-s1", "tpu-like", "nvdla-like", "cloud-s3"])
def test_bounds_hold_on_machines_as_they_are_built(name):
    accelerator, rng = preset(name), np.random.default_rng(4)
    for operator in (convolution("c", in_channels=64, out_channels=48, in_size=14, kernel=3, padding=1),
                     convolution("w", in_channels=128, out_channels=512, in_size=7, kernel=1),
                     depthwise("d", 96, in_size=28, kernel=3), matmul("g", m=128, n=768, k=96)):
        space = MapSpace(operator, accelerator)
        bounds, costs = space_bounds(space), DenseModel(operator, accelerator).score(space.sample(rng, 4000, filling=1))
        energy, cycles = costs.energy_pj[costs.legal], costs.latency_cycles[costs.legal]
        assert len(energy) and bounds.energy_pj <= energy.min() and bounds.latency_cycles <= cycles.min()
        assert bounds.edp <= (energy * cycles).min()
        assert layer_bounds(operator, accelerator, bypass=True).energy_pj <= bounds.energy_pj

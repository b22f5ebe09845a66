"""Bounds: right where they can be worked out by hand, and never beaten."""

from dataclasses import replace

import numpy as np
import pytest

from tilewright.base import InputError
from tilewright.cost import layer_bounds, outermost_bytes, roofline
from tilewright.cost.bounds.rows import MachineRows
from tilewright.cost.bounds.steps import compute_steps, paced
from tilewright.cost.reference import walk
from tilewright.hardware import Accelerator, AccessEnergy, Bandwidth, Compute, Fanout, Memory
from tilewright.mapping import LevelLoops, Loop, Mapping, full_keeps, is_legal
from tilewright.validation.random_nests import with_networks
from tilewright.workload import ROLES, Operator, convolution, depthwise, linear, matmul, transposed_convolution

ENERGY = AccessEnergy(read_pj=2.0, fill_pj=3.0, update_pj=5.0, drain_pj=7.0)


UNLIMITED = Bandwidth()


def machine(*inner: Memory | Fanout, bandwidth: Bandwidth = UNLIMITED, **more: object) -> Accelerator:
    return Accelerator("m", (Memory("DRAM", ROLES, AccessEnergy(100.0, 100.0, 200.0, 100.0), bandwidth=bandwidth),
                             *inner), **more)  # type: ignore[arg-type]


def lanes(count: int, **more: object) -> Fanout:
    return Fanout("PEs", (count, 1), **more)  # type: ignore[arg-type]


def compute_bound(operator: Operator, machine: Accelerator) -> int:
    return int(paced(compute_steps(operator, MachineRows.one(machine, None)), operator, machine)[0])


def test_steps_beyond_whole_numbers_of_64_bits_are_no_fewer():
    sides = 10**9
    steps = compute_bound(matmul("huge", m=sides, n=sides, k=sides), machine(lanes(64)))
    assert (1 - 1e-11) * sides**3 <= 64 * steps <= sides**3


@pytest.mark.parametrize(("sizes", "instances", "steps"), [
    ((8, 8, 8), 1, 512),
    ((8, 8, 8), 512, 1),
    ((8, 8, 8), 100_000, 1),
    ((7, 1, 1), 4, 2),          # four lanes hold 7 in two steps, not in 7/4
    ((5, 5, 1), 24, 2),         # 25 in two: no 24 lanes do it in one
    ((13, 11, 1), 12, 13),      # 11 lanes along the 11
    ((3, 3, 3), 8, 6),          # 2 x 2 x 2 lanes leave 8 steps, 3 x 2 lanes 2 x 3 = 6, 27 / 8 would be 4
])
def test_compute_bound_counts_whole_steps(sizes, instances, steps):
    operator = matmul("gemm", m=sizes[0], n=sizes[1], k=sizes[2])
    assert compute_bound(operator, machine(lanes(instances))) == steps
    assert steps >= -(-operator.macs // instances)


def brute_force(sizes: tuple[int, ...], instances: int) -> int:
    if not sizes:
        return 1
    return min(-(-sizes[0] // n) * brute_force(sizes[1:], instances // n)
               for n in range(1, min(sizes[0], instances) + 1))


def test_compute_bound_is_the_best_of_all_spreads():
    rng = np.random.default_rng(5)
    for _ in range(60):
        m, n, k, instances = (int(x) for x in rng.integers(1, 15, size=4) * [1, 1, 1, 6])
        assert compute_bound(matmul("g", m=m, n=n, k=k), machine(lanes(instances))) == brute_force((m, n, k), instances)


def test_compute_bound_stays_sound_and_quick_on_large_arrays():
    operator = convolution("c", in_channels=1021, out_channels=2039, in_size=223, kernel=3, batch=61)
    exact = operator.macs / 65536
    assert exact <= compute_bound(operator, machine(lanes(65536))) <= 1.02 * exact


def test_movement_bound_by_hand():
    """16 x 8 x 4: 64 + 32 words in, 128 out; the port reads and writes 2 words a cycle together."""
    operator = matmul("gemm", m=16, n=8, k=4)
    shared = layer_bounds(operator, machine(lanes(512), bandwidth=Bandwidth(shared=2.0)))
    assert (shared.compute_cycles, shared.data_cycles["DRAM"]) == (1, (64 + 32 + 128) // 2)
    assert (shared.latency_cycles, shared.latency_binding, shared.data_movement_cycles) == (112, "DRAM", 112)
    apart = layer_bounds(operator, machine(lanes(512), bandwidth=Bandwidth(read=3.0, write=4.0)))
    assert apart.data_cycles["DRAM"] == 32
    free = layer_bounds(operator, machine(lanes(16)))
    assert (free.latency_cycles, free.latency_binding) == (32, "compute")


@pytest.mark.parametrize(("bandwidth", "cycles"), [
    (Bandwidth(write=0.5), 48 * 2), (Bandwidth(write=3.0, shared=2.0), 48 // 2 + 64 // 2),
    (Bandwidth(read=0.5, write=2.0, shared=3.0), 64 * 2 + 48 // 2), (Bandwidth(shared=0.7), 160)])
@pytest.mark.parametrize("between", [(), ("A", "B")])
def test_compute_waits_for_a_single_buffer_at_the_slower_of_its_ports(bandwidth, cycles, between):
    """64 + 32 words come in, 128 go out, half at each of two; what comes again is open with memories between."""
    inner = [Memory(name, ROLES, ENERGY) for name in between]
    buffer = Memory("buf", ROLES, ENERGY, bandwidth=bandwidth, buffering="single")
    found = layer_bounds(matmul("gemm", m=16, n=8, k=4), machine(lanes(2), *inner, buffer))
    assert found.blocked_cycles == cycles


def test_words_of_other_widths_scale_the_ports_and_energies():
    operator = matmul("gemm", m=16, n=8, k=4)
    wide = machine(lanes(512), bandwidth=Bandwidth(shared=2.0),
                   word_bits=(("inputs", 8), ("weights", 4), ("outputs", 32)))
    bounds = layer_bounds(operator, wide)
    assert bounds.data_cycles["DRAM"] == (64 + 16 + 512) // 2
    assert bounds.energy_by_component_pj["DRAM"] == 100.0 * (64 + 16) + 200.0 * 512
    assert bounds.roofline.compulsory_bytes == 64 + 16 + 512


def test_energy_bound_by_hand():
    """Compute asks the registers for each operand of 512 multiply-accumulates, and updates as often."""
    operator = matmul("gemm", m=16, n=8, k=4)
    bounds = layer_bounds(operator, machine(lanes(4), Memory("reg", ROLES, ENERGY), compute=Compute("MAC", 0.5)))
    dram = 100.0 * (64 + 32) + 200.0 * 128
    operands = 2 * 512 * 2.0 + (64 + 32) * 3.0
    outputs = 512 * 5.0 + min((512 - 128) * 2.0 + 128 * 7.0, 512 * 7.0)
    assert bounds.energy_by_component_pj == {"DRAM": dram, "PEs": 0.0, "reg": operands + outputs, "MAC": 256.0}
    assert bounds.energy_pj == pytest.approx(dram + operands + outputs + 256.0, rel=1e-9)
    assert bounds.energy_binding == "DRAM"
    assert bounds.edp == bounds.energy_pj * bounds.latency_cycles


@pytest.mark.parametrize(("fanout", "reads", "updates"), [
    (lanes(2), 2 * 512 // 2, 512 // 2),
    (lanes(2, multicast=False), 2 * 512, 512 // 2),
    (lanes(2, reduce=False), 2 * 512 // 2, 512),
    (lanes(64), 64 + 32, 128),      # no word is moved less than once
])
def test_lanes_share_accesses_only_where_the_network_can(fanout, reads, updates):
    operator = matmul("gemm", m=16, n=8, k=4)
    bounds = layer_bounds(operator, machine(fanout))
    assert bounds.energy_by_component_pj["DRAM"] == 100.0 * reads + 200.0 * updates + 100.0 * (updates - 128)


def test_leakage_runs_over_the_latency_bound():
    operator = matmul("gemm", m=16, n=8, k=4)
    leaky = machine(lanes(4), compute=Compute("MAC", leakage_mw=0.5), frequency_mhz=200.0)
    bounds = layer_bounds(operator, leaky)
    assert bounds.energy_by_component_pj["leakage"] == 4 * 0.5 * 128 / 200.0 * 1000.0


def test_bypass_lowers_the_bound_to_the_cheapest_way():
    operator = matmul("gemm", m=16, n=8, k=4)
    dear = Memory("reg", ROLES, AccessEnergy(1000.0, 1000.0, 1000.0, 1000.0), bandwidth=Bandwidth(shared=0.1))
    kept = layer_bounds(operator, machine(lanes(4), dear))
    free = layer_bounds(operator, machine(lanes(4), dear), bypass=True)
    direct = layer_bounds(operator, machine(lanes(4)))
    assert free.energy_pj == pytest.approx(direct.energy_pj - direct.refetch_pj, rel=1e-9)
    assert free.energy_pj < direct.energy_pj < kept.energy_pj
    assert kept.data_cycles["reg"] > 0 == free.data_cycles["reg"]
    chosen = layer_bounds(operator, machine(lanes(4), dear), {"reg": ("W",)})
    assert free.energy_pj < chosen.energy_pj < kept.energy_pj


def test_roofline_of_a_matrix_vector_product_is_bandwidth():
    operator = linear("fc", rows=1, in_features=100, out_features=50)
    roof = roofline(operator, machine(lanes(64), bandwidth=Bandwidth(shared=16.0)))
    assert roof.intensity_macs_per_byte == 5000 / (100 + 5000 + 50)
    assert (roof.peak_macs_per_cycle, roof.bandwidth_bytes_per_cycle) == (64.0, 16.0)
    assert roof.attainable_macs_per_cycle == pytest.approx(16.0 * 5000 / 5150)
    flat = roofline(operator, machine(lanes(64)))
    assert flat.attainable_macs_per_cycle == 64.0 and flat.bandwidth_bytes_per_cycle is None


def test_bandwidth_must_be_positive():
    with pytest.raises(InputError, match=r"bandwidth_words_per_cycle\.read: must be from 1e-06 to 1e\+18; Got 0\.0"):
        layer_bounds(matmul("g", m=2, n=2, k=2), machine(lanes(4), bandwidth=Bandwidth(read=0.0)))


OPERATORS = (
    convolution("conv", in_channels=2, out_channels=3, in_size=9, kernel=3, stride=2, padding=1),
    convolution("dilated", in_channels=2, out_channels=2, in_size=(14,), kernel=3, dilation=2),
    convolution("holes", in_channels=3, out_channels=2, in_size=(13,), kernel=2, stride=3),
    depthwise("depthwise", 4, in_size=6, kernel=3),
    transposed_convolution("transposed", in_channels=2, out_channels=2, in_size=5, kernel=3, stride=2),
    matmul("gemm", m=9, n=7, k=6),
)


def random_machine(rng: np.random.Generator) -> Accelerator:
    def rate() -> float | None:
        return float(rng.choice([0.25, 0.5, 1.0, 3.0, 8.0])) if rng.random() < 0.5 else None

    def memory(name: str, keeps: tuple[str, ...]) -> Memory:
        energy = AccessEnergy(*(float(x) for x in rng.choice([0.5, 1.0, 2.0, 10.0], size=4)))
        return Memory(name, keeps, energy, word_bits=int(rng.choice([8, 16])), block_words=int(rng.choice([1, 1, 4])),
                      bandwidth=Bandwidth(rate(), rate(), rate()), leakage_mw=float(rng.choice([0.0, 0.01])),
                      buffering=str(rng.choice(["single", "double", "buffet"])))  # type: ignore[arg-type]

    levels: list[Memory | Fanout] = [memory("M0", ROLES)]
    for index in range(1, int(rng.integers(1, 6))):
        if rng.random() < 0.5:
            levels.append(memory(f"M{index}", tuple(r for r in ROLES if rng.random() < 0.7)))
        else:
            levels.append(with_networks(rng, Fanout(
                f"F{index}", (int(rng.integers(1, 5)), int(rng.integers(1, 4))), multicast=bool(rng.random() < 0.6),
                reduce=bool(rng.random() < 0.6), network_energy_pj_per_word=float(rng.choice([0.0, 0.5])))))
    return Accelerator("random", tuple(levels), Compute("MAC", 0.3), word_bits=(
        ("inputs", 8), ("weights", int(rng.choice([8, 16]))), ("outputs", int(rng.choice([8, 32])))))


def random_mapping(rng: np.random.Generator, operator: Operator, machine: Accelerator) -> Mapping:
    extents, entries = dict(operator.sizes), []
    for index, level in enumerate(machine.levels):
        loops, room = [], {"X": level.shape[0], "Y": level.shape[1]} if isinstance(level, Fanout) else {}
        for name in rng.permutation(list(extents)):
            axis = str(rng.choice(["X", "Y"])) if room else None
            least = -(-extents[name] // room[axis]) if axis else 1
            step = int(rng.integers(least, extents[name] + 1)) if rng.random() < 0.7 else extents[name]
            if axis:
                room[axis] //= -(-extents[name] // step)
            if step < extents[name]:
                loops.append(Loop(str(name), step, axis))  # type: ignore[arg-type]
            extents[name] = step
        keeps = None
        if index and isinstance(level, Memory) and rng.random() < 0.3:
            keeps = tuple(t.name for t in operator.tensors if level.can_keep(t.name, t.role) and rng.random() < 0.5)
        entries.append(LevelLoops(level.name, tuple(loops), keeps))
    inner = max(i for i, level in enumerate(machine.levels) if isinstance(level, Memory))
    late = {loop.dimension: loop.step for entry in entries[inner + 1:] for loop in entry.loops}
    cover = tuple(Loop(d, 1) for d in extents if d not in late)
    entries[inner] = replace(entries[inner], loops=entries[inner].loops + cover)
    return Mapping(tuple(entries))


def check_case(seed: int) -> bool:
    """Hold one random mapping against the bounds; False where it is not legal."""
    rng = np.random.default_rng(seed)
    operator, machine = OPERATORS[rng.integers(len(OPERATORS))], random_machine(rng)
    mapping = random_mapping(rng, operator, machine)
    if not is_legal(mapping, operator, machine):
        return False
    cost = walk(operator, machine, mapping)
    keeps = full_keeps(mapping, operator, machine)
    own = layer_bounds(operator, machine, keeps)
    for bounds in (own, layer_bounds(operator, machine, bypass=True)):
        assert bounds.compute_cycles <= cost.steps
        assert bounds.latency_cycles <= cost.steady_cycles
        assert bounds.energy_pj <= cost.energy_pj
        assert bounds.edp <= cost.edp
        for memory, cycles in bounds.data_cycles.items():
            assert cycles <= cost.traffic[memory].cycles
    for component, energy in own.energy_by_component_pj.items():
        assert energy <= cost.energy_by_component_pj[component] * (1 + 1e-9)
    moved = outermost_bytes(cost, operator, machine)
    assert moved >= own.roofline.compulsory_bytes
    attainable = own.roofline.attainable(operator.macs / moved)
    assert operator.macs / cost.latency_cycles <= attainable * (1 + 1e-9)
    return True


def test_no_legal_mapping_beats_the_bounds():
    assert sum(check_case(seed) for seed in range(250)) > 120


@pytest.mark.slow
def test_no_legal_mapping_beats_the_bounds_however_many():
    assert sum(check_case(seed) for seed in range(1000, 11_000)) > 5000


def test_bounds_are_reached():
    """One lane per output, everything kept at once: nothing moves twice, and compute is all there is."""
    operator = matmul("gemm", m=4, n=4, k=6)
    tight = machine(Fanout("PEs", (4, 4)), Memory("reg", ROLES, ENERGY), compute=Compute("MAC", 1.0))
    mapping = Mapping((LevelLoops("DRAM"), LevelLoops("PEs", (Loop("M", 1, "X"), Loop("N", 1, "Y"))),
                       LevelLoops("reg", (Loop("K", 1),))))
    cost, bounds = walk(operator, tight, mapping), layer_bounds(operator, tight)
    assert cost.steps == bounds.compute_cycles == bounds.latency_cycles == 6
    for name in ("DRAM", "MAC"):
        assert cost.energy_by_component_pj[name] == bounds.energy_by_component_pj[name]
    alone = machine(Memory("reg", ROLES, ENERGY))
    single = Mapping((LevelLoops("DRAM"), LevelLoops("reg", tuple(Loop(d, 1) for d in ("M", "N", "K")))))
    assert walk(operator, alone, single).energy_pj == pytest.approx(layer_bounds(operator, alone).energy_pj, rel=1e-9)

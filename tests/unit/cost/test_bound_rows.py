"""Bounds of many machines at once are those of each, and bounds of boxes hold for every machine between two."""

from dataclasses import replace

import numpy as np
import pytest

from tilewright.base import InputError
from tilewright.cost import (
    DenseModel,
    HardwareBatch,
    SparseModel,
    best_of_box,
    box_bounds,
    cost_model,
    hardware_bounds,
    layer_bounds,
)
from tilewright.cost.bounds.again import Again
from tilewright.hardware import (
    AREA,
    LEAKAGE,
    Accelerator,
    AccessEnergy,
    Anchor,
    Bandwidth,
    Compute,
    Curve,
    Elision,
    Fanout,
    Memory,
    Sparsity,
    Storage,
    load_accelerator,
    preset,
)
from tilewright.mapping import MapSpace
from tilewright.workload import (
    ROLES,
    convolution,
    depthwise,
    einsum,
    matmul,
    transposed_convolution,
    with_densities,
)

OPERATORS = (
    convolution("conv", in_channels=5, out_channels=6, in_size=9, kernel=3, stride=2, padding=1),
    convolution("wide", in_channels=64, out_channels=96, in_size=28, kernel=3, padding=1),
    depthwise("depthwise", 24, in_size=12, kernel=3),
    transposed_convolution("transposed", in_channels=4, out_channels=3, in_size=5, kernel=3, stride=2),
    matmul("gemm", m=120, n=96, k=150), matmul("batched", m=6, n=8, k=5, batch=3),
    einsum("ab,bc,cd->ad", {"a": 5, "b": 4, "c": 6, "d": 3}),
)
FIGURES = ("latency_cycles", "energy_pj", "edp")


def random_structure(rng: np.random.Generator) -> Accelerator:
    """Return a machine of up to five levels: arrays that cannot merge, ports of all kinds, parted rooms."""
    def memory(name, keeps, limited):
        rates = [float(rng.choice([0.25, 0.7, 1.0, 3.0])) if rng.random() < 0.5 else None for _ in range(3)]
        size = float(np.exp(rng.uniform(np.log(6), np.log(1500))))
        apart = limited and rng.random() < 0.3
        return Memory(name, keeps, AccessEnergy(*rng.choice([0.5, 1.0, 2.0, 10.0], size=4).tolist()),
                      word_bits=int(rng.choice([8, 16])), capacity_bytes=size if limited and not apart else None,
                      partitions_bytes=tuple((role, size / 2) for role in keeps) if apart else (),
                      bandwidth=Bandwidth(*rates), leakage_mw=float(rng.choice([0.0, 0.01])),
                      buffering=str(rng.choice(["single", "double", "buffet"])))

    levels: list[Memory | Fanout] = [memory("M0", ROLES, False)]
    for index in range(1, int(rng.integers(3, 6))):
        if rng.random() < 0.5:
            levels.append(memory(f"M{index}", tuple(role for role in ROLES if rng.random() < 0.75), True))
        else:
            multicast, reduces, flexible = rng.random(3) < (0.7, 0.6, 0.3)
            levels.append(Fanout(f"F{index}", (4, 2), bool(multicast), bool(reduces), bool(flexible),
                                 network_energy_pj_per_word=float(rng.choice([0.0, 0.5, 3.0]))))
    return Accelerator("random", tuple(levels), Compute("MAC", 0.3), word_bits=(
        ("inputs", 8), ("weights", int(rng.choice([8, 16]))), ("outputs", int(rng.choice([8, 32])))),
        footprint="box" if rng.random() < 0.3 else "exact")


def random_box(machine: Accelerator, rng: np.random.Generator) -> tuple[HardwareBatch, HardwareBatch]:
    """Return the ends of one box: every side, and most other numbers, from one value to another."""
    low, high = {}, {}
    for key, value in machine.numbers.items():
        if key[1] in ("x", "y"):
            low[key], high[key] = np.sort(rng.integers(1, 9, (1, 2)).astype(float)).T
        elif key[1] != "instances" and rng.random() < 0.8:
            low[key], high[key] = np.sort(value * np.exp(rng.uniform(-1.5, 1.5, (1, 2)))).T
    return HardwareBatch(low, machine), HardwareBatch(high, machine)


def members(low: HardwareBatch, high: HardwareBatch, count: int, rng: np.random.Generator) -> HardwareBatch:
    """Return machines of a box, the first ones in its corners."""
    found = {}
    for key, least in low.values.items():
        drawn = rng.uniform(least, high.values[key] + (key[1] in ("x", "y")), count)
        drawn = np.minimum(np.floor(drawn), high.values[key]) if key[1] in ("x", "y") else drawn
        corner = np.arange(count) < count // 4
        found[key] = np.where(corner, np.where(rng.random(count) < 0.5, least, high.values[key]), drawn)
    return HardwareBatch(found, low.base)


@pytest.mark.sample(1)
@pytest.mark.parametrize("seed", range(10))
def test_rows_are_bounded_as_each_machine_by_itself(seed):
    """500 rows in all; each batch has arrays of one instance among others, which merge what they else cannot."""
    rng = np.random.default_rng(seed)
    operator, machine = OPERATORS[seed % len(OPERATORS)], random_structure(rng)
    rows = members(*random_box(machine, rng), 50, rng)
    for array in machine.fanouts:
        single = rng.random(50) < 0.4
        for side in ("x", "y"):
            rows.values[array.name, side][single] = 1.0
    for options in ({}, {"perfect": True}, {"bypass": True}):
        found = hardware_bounds(operator, rows, machine, **options)
        own = [layer_bounds(operator, rows.machine(index), **options) for index in range(50)]
        apart = [hardware_bounds(operator, rows.take(slice(index, index + 1)), machine, **options)
                 for index in range(50)]
        for figure in FIGURES:
            wanted, told = (np.array([getattr(each, figure) for each in own]), getattr(found, figure))
            np.testing.assert_allclose(told, [getattr(each, figure)[0] for each in apart], rtol=1e-12)
            if "bypass" in options:  # what must come again counts there only where many are bounded
                assert (told >= wanted * (1 - 1e-9)).all()
            else:
                np.testing.assert_allclose(told, wanted, rtol=1e-12)
    assert len(set(found.energy_pj)) > 20


@pytest.mark.parametrize("name", ["eyeriss", "edge-s2", "simba-like", "cloud-s3", "nvdla-like", "accel-b-sparse"])
def test_rows_of_presets_are_bounded_as_each_machine_by_itself(name):
    machine, rng = preset(name), np.random.default_rng(3)
    values = {key: np.round(value * rng.uniform(0.3, 1.0, 300)) + 1 for key, value in machine.numbers.items()
              if key[1].startswith("capacity") or (key[1] in "xy" and value > 1)}
    rows, operator = HardwareBatch(values), OPERATORS[1]
    found = hardware_bounds(operator, rows, machine)
    for index in range(0, 300, 30):
        own = layer_bounds(operator, rows.machine(index, machine))
        assert [getattr(found, figure)[index] for figure in FIGURES] == pytest.approx(
            [getattr(own, figure) for figure in FIGURES], rel=1e-12)


def test_layers_of_other_words_have_no_bounds_in_common():
    """Layers of equal tensors have chains and rooms of memories in common, those of wider words or other names not."""
    machine, first = preset("edge-s2"), matmul("first", m=64, n=96, k=128)
    given = {("SG", "capacity_bytes"): np.array([600.0, 2_000.0, 8_000.0])}
    wide = replace(first, tensors=tuple(replace(each, word_bits=24) for each in first.tensors))
    layers = first, wide, matmul("sized", m=32, n=200, k=64), einsum("ab,bc->ac", {"a": 64, "b": 128, "c": 96})
    together = HardwareBatch(given)
    found = [[getattr(hardware_bounds(layer, batch, machine, bypass=True), name).tolist() for name in FIGURES]
             for layer in layers for batch in (together, HardwareBatch(given))]
    assert found[::2] == found[1::2]
    assert found[0] != found[2] != found[4]


def test_arrays_of_a_fixed_shape_are_bounded_by_their_sides():
    """Legality knows nothing else of them; a number of instances that contradicts the sides says nothing."""
    machine, operator = preset("eyeriss"), OPERATORS[1]
    sides = HardwareBatch({("PEs", "x"): np.array([3.0]), ("PEs", "y"): np.array([4.0])})
    other = HardwareBatch(sides.values | {("PEs", "instances"): np.array([1.0])})
    assert hardware_bounds(operator, other, machine).latency_cycles == hardware_bounds(
        operator, sides, machine).latency_cycles > operator.macs // 12 - 1


def check_box(seed: int) -> bool:
    """Hold random mappings on machines of a box against its bound; False if none is legal.

    It is above a machine's own bound only where nothing is known of what that must fetch again.
    """
    rng = np.random.default_rng(100 + seed)
    operator, machine = OPERATORS[seed % len(OPERATORS)], random_structure(rng)
    low, high = random_box(machine, rng)
    bound, rows = box_bounds(operator, low, high, machine), members(low, high, 2000, rng)
    space = MapSpace(operator, best_of_box(low, high, machine).machine(0))
    costs = DenseModel(operator, machine, space.layout).score(space.sample(rng, 2000, filling=0.5), rows)
    edp = costs.latency_cycles * costs.energy_pj
    for figure, found in zip(FIGURES, (costs.latency_cycles, costs.energy_pj, edp), strict=True):
        assert getattr(bound, figure)[0] <= found[costs.legal].min(initial=np.inf)
    own = hardware_bounds(operator, rows.take(slice(0, 100)), machine)
    assert bound.latency_cycles[0] <= own.latency_cycles.min()
    for index in np.flatnonzero(bound.energy_pj > own.energy_pj * (1 + 1e-12)):
        assert layer_bounds(operator, rows.machine(int(index))).refetch_pj == 0
    return bool(costs.legal.any())


def test_no_mapping_on_a_machine_of_a_box_is_below_its_bound():
    assert sum(check_box(seed) for seed in range(5)) > 2


@pytest.mark.slow
def test_no_mapping_on_a_machine_of_a_box_is_below_its_bound_however_many():
    assert sum(check_box(seed) for seed in range(5, 500)) > 300


TEXT = """
name: follows
technology: 45nm
leakage: modelled
frequency_mhz: 500
word_bits: {inputs: 8, weights: 8, outputs: 16}
levels:
  - {memory: DRAM, kind: dram, dram_type: LPDDR4, keeps: [inputs, weights, outputs],
      bandwidth_words_per_cycle: {shared: 8}}
  - {memory: GLB, kind: sram, keeps: [inputs, weights, outputs], capacity_bytes: 65536, word_bits: 16}
  - {fanout: PEs, shape: [8, 8]}
  - {memory: RF, kind: registers, keeps: [inputs, weights, outputs], capacity_bytes: 128}
compute: {name: MAC, type: int, width_bits: 8}
"""


def test_what_follows_from_capacities_is_least_in_the_best_corner():
    """One side alone, and capacities; energies, network, area and leakage follow."""
    machine, rng = load_accelerator(TEXT), np.random.default_rng(5)
    low = HardwareBatch({("GLB", "capacity_bytes"): np.array([2e4, 1e5]), ("PEs", "x"): np.array([2.0, 16.0]),
                         ("RF", "capacity_bytes"): np.array([32.0, 64.0])})
    high = HardwareBatch({key: column * 4 for key, column in low.values.items()})
    best = best_of_box(low, high, machine)
    for box in range(2):
        rows = members(low.take(slice(box, box + 1)), high.take(slice(box, box + 1)), 300, rng)
        numbers = rows.on(machine).numbers
        for key, column in best.values.items():
            prices = not key[1].startswith(("capacity", "x", "y", "instances", "bandwidth"))
            assert (column[box] <= numbers[key]).all() if prices else (column[box] >= numbers[key]).all()
        assert best.values["GLB", "read_energy_pj_per_word"][box] < np.max(numbers["GLB", "read_energy_pj_per_word"])
        assert best.values[AREA][box] == pytest.approx(np.min(numbers[AREA]), rel=1e-12)
        bound = box_bounds(OPERATORS[1], low, high, machine)
        own = hardware_bounds(OPERATORS[1], rows, machine)
        assert (bound.energy_pj[box] <= own.energy_pj).all() and (bound.latency_cycles[box] <= own.latency_cycles).all()


def test_leakage_of_stated_flexibility_is_least_though_its_density_falls():
    """Circuits leak as the rest does for each area: with a large buffer that leaks little, less than without."""
    machine = preset("flexion")
    assert machine.flexibility is not None and machine.flexibility.costs.leakage_mw_per_um2 is None
    machine = replace(machine, flexibility=machine.flexibility.of_class("1111"), levels=tuple(
        replace(level, storage=None, area_um2=0.0, leakage_mw=0.0) if isinstance(level, Memory) else level
        for level in machine.levels), compute=replace(machine.compute, area_um2=1.0, leakage_mw=1.0))
    name = machine.memories[-1].name
    low, high = (HardwareBatch({(name, "area_um2"): np.array([area])}) for area in (0.0, 1e6))
    corner = best_of_box(low, high, machine).values[LEAKAGE][0]
    rows = HardwareBatch({(name, "area_um2"): np.linspace(0.0, 1e6, 9)}).on(machine).numbers[LEAKAGE]
    assert rows[-1] < rows[0] and corner <= rows.min()


def test_sparse_boxes_hold_too():
    rng = np.random.default_rng(6)
    skipped = Elision("GLB", "skip", "weights", ("inputs",))
    machine = replace(load_accelerator(TEXT), sparsity=Sparsity(elisions=(skipped,), skipped=("inputs",)))
    operator = with_densities(OPERATORS[0], {"inputs": 0.4})
    low = HardwareBatch({("RF", "capacity_bytes"): np.array([32.0]), ("DRAM", "bandwidth_words_per_cycle.shared"):
                         np.array([0.5]), ("PEs", "y"): np.array([1.0])})
    high = HardwareBatch({key: column * 8 for key, column in low.values.items()})
    bound, rows = box_bounds(operator, low, high, machine), members(low, high, 1000, rng)
    model = cost_model(operator, machine)
    assert isinstance(model, SparseModel)
    costs = model.score(MapSpace(operator, machine).sample(rng, 1000, filling=0.5), rows)
    assert costs.legal.any() and bound.latency_cycles[0] <= costs.latency_cycles[costs.legal].min()
    assert bound.energy_pj[0] <= costs.energy_pj[costs.legal].min()


def test_boxes_that_are_none_are_refused():
    machine = load_accelerator(TEXT)
    one = HardwareBatch({("PEs", "x"): np.array([2.0])})
    with pytest.raises(InputError, match="high: must name the numbers of low"):
        best_of_box(one, HardwareBatch({("PEs", "y"): np.array([2.0])}), machine)
    with pytest.raises(InputError, match=r"high\.PEs\.x: must not be below that of low; Got 1\.0"):
        best_of_box(one, HardwareBatch({("PEs", "x"): np.array([1.0])}), machine)
    curve = Curve("t", (Anchor(1.0, 2.0, "s"), Anchor(1e6, 1.0, "s")), 1.0, 1e6, "bytes")
    falls = replace(machine, levels=tuple(
        replace(level, storage=Storage(curve, curve, curve)) if level.name == "GLB" else level
        for level in machine.levels))
    with pytest.raises(InputError, match=r"follows\.GLB: must have figures that rise with its capacity"):
        best_of_box(one, one, falls)


def test_without_energy_cycles_are_bounded_alike():
    machine = preset("eyeriss")
    rows = HardwareBatch({("GLB", "capacity_bytes"): np.array([2048.0, 65536.0])})
    for operator in OPERATORS:
        whole, alone = (hardware_bounds(operator, rows, machine, energy=energy) for energy in (True, False))
        assert (whole.latency_cycles == alone.latency_cycles).all() and (whole.energy_pj > 0).all()
        assert not alone.energy_pj.any() and not alone.edp.any()


def test_words_that_compute_hides_anyway_change_no_bound(monkeypatch):
    machine, rng, of_account = preset("edge-s2"), np.random.default_rng(2), 0
    columns = {("PEs", "instances"): np.floor(2.0 ** rng.uniform(2, 9, 40)),
               ("SG", "capacity_bytes"): np.floor(2.0 ** rng.uniform(6, 16, 40)),
               ("SL", "capacity_bytes"): np.floor(2.0 ** rng.uniform(6, 9, 40))}
    for operator in OPERATORS[:2]:
        found = hardware_bounds(operator, HardwareBatch(columns), machine, bypass=True)
        with monkeypatch.context() as every:
            least = Again.least
            every.setattr(Again, "least", lambda self, wanted, floors, least=least: least(self, wanted, 0 * floors))
            whole = hardware_bounds(operator, HardwareBatch(columns), machine, bypass=True)
        assert all((getattr(found, name) == getattr(whole, name)).all() for name in FIGURES)
        of_account += int((found.latency_cycles > -(-operator.macs // columns["PEs", "instances"]) * 1.2).sum())
    assert 10 < of_account < 70

"""Hardware as data: each candidate's row gives what building its machine by itself gives, to the last digit."""

from dataclasses import replace

import numpy as np
import pytest

from tilewright.base import InputError
from tilewright.cost import (
    CostBatch,
    DenseModel,
    HardwareBatch,
    SparseModel,
    cost_model,
    hardware_bounds,
    layer_bounds,
)
from tilewright.hardware import Accelerator, AccessEnergy, Bandwidth, Fanout, Memory, load_accelerator, preset
from tilewright.mapping import MapSpace
from tilewright.workload import convolution, matmul, with_densities

LAYER = convolution("layer", batch=2, in_channels=24, out_channels=20, in_size=(19, 15), kernel=(3, 5), stride=(2, 1),
                    padding=2)
PRODUCT = matmul("product", m=65, n=48, k=129)
RATES = (0.25, 1 / 3, 0.7, 1.0, 2.5, 16.0)
FIELDS = ("latency_cycles", "energy_pj", "excess", "steps", "steady_cycles", "ramp_cycles")

TEXT = """
name: sized
technology: 45nm
leakage: modelled
frequency_mhz: 500
word_bits: {{inputs: 8, weights: 8, outputs: 16}}
levels:
  - {{memory: DRAM, kind: dram, dram_type: LPDDR4, keeps: [inputs, weights, outputs],
      bandwidth_words_per_cycle: {{shared: 8}}}}
  - {{memory: GLB, kind: sram, keeps: [inputs, weights, outputs], capacity_bytes: {glb}, word_bits: 16,
      bandwidth_words_per_cycle: {{read: 8, write: 8}}}}
  - {{fanout: PEs, shape: [{x}, {y}]}}
  - {{memory: RF, kind: registers, keeps: [inputs, weights, outputs], partitions_bytes: {{weights: {rf}}},
      capacity_bytes: 64, energy_pj_per_word: {{drain: 0.5}}}}
compute: {{name: MAC, type: int, width_bits: 8}}
"""


def random_machines(base: Accelerator, count: int, rng: np.random.Generator) -> list[Accelerator]:
    """Machines like ``base`` with other numbers throughout; what it leaves unlimited stays so."""
    found = []
    least = 1.0 if base.flexibility else 0.05  # what a stated flexibility names must have room
    for index in range(count):
        levels: list[Memory | Fanout] = []
        for level in base.levels:
            if isinstance(level, Fanout):
                low = level.shape if base.flexibility else (1, 1)
                shape = int(rng.integers(low[0], low[0] + 12)), int(
                    rng.integers(low[1], low[1] + 12)) if level.shape[1] > 1 else 1
                price = level.network_energy_pj_per_word * rng.uniform(0.5, 2.0)
                levels.append(replace(level, shape=shape, network_energy_pj_per_word=price))
                continue
            sized = level.capacity_bytes and level.capacity_bytes * rng.uniform(least, 2.0)
            parts = tuple((owner, size * rng.uniform(least, 2.0)) for owner, size in level.partitions_bytes)
            rates = {port: rate and float(rng.choice(RATES)) for port, rate in vars(level.bandwidth).items()}
            levels.append(replace(
                level, energy=AccessEnergy(*rng.uniform(0.1, 9.0, 4)), capacity_bytes=sized, partitions_bytes=parts,
                bandwidth=Bandwidth(**rates), area_um2=rng.uniform(1.0, 1e6),
                leakage_mw=level.leakage_mw * rng.uniform(0.5, 2.0)))
        compute = replace(base.compute, energy_pj_per_mac=rng.uniform(0.1, 2.0), area_um2=rng.uniform(1.0, 99.0))
        found.append(replace(base, name=f"candidate {index}", levels=tuple(levels), compute=compute))
    return found


def assert_row(found: CostBatch, index: int, own: CostBatch) -> None:
    """Row ``index`` is the one of ``own``, to the last digit."""
    assert [getattr(found, field)[index] for field in FIELDS] == [getattr(own, field)[0] for field in FIELDS]
    areas = np.broadcast_to(found.area_um2, len(found))
    assert areas[index] == own.area_um2


@pytest.mark.sample(3)
@pytest.mark.parametrize("name", ["edge-s2", "eyeriss", "simba-like", "flexion", "tpu-like"])
def test_rows_give_what_each_machine_gives_by_itself(name):
    """200 pairs of a machine and a mapping, whose numbers all differ, each (1,000 in all)."""
    base, rng = preset(name), np.random.default_rng(5)
    machines = random_machines(base, 200, rng)
    hardware = HardwareBatch.of(machines)
    for operator, part in ((LAYER, slice(0, 100)), (PRODUCT, slice(100, 200))):
        space = MapSpace(operator, base)
        batch = space.sample(rng, 100)
        found = DenseModel(operator, base, space.layout).score(batch, hardware.take(part))
        for index, machine in enumerate(machines[part]):
            own = DenseModel(operator, machine, space.layout).score(batch.take(slice(index, index + 1)))
            assert_row(found, index, own)
        assert len(set(found.latency_cycles)) > 50 and len(set(found.area_um2)) == 100


def test_rows_that_are_taken_have_their_numbers_whatever_was_made_of_all_before():
    base = preset("edge-s2")
    sizes = {("SG", "capacity_bytes"): np.array([2e3, 8e3, 3e4]), ("PEs", "x"): np.array([4.0, 7.0, 9.0])}
    whole, rows = HardwareBatch(sizes), np.array([2, 0])
    before = whole.take(rows).on(base).numbers
    made = whole.on(base).numbers
    after = whole.take(rows).on(base).numbers
    assert before.keys() == after.keys()
    for key, one in before.items():
        assert np.array_equal(one, after[key])
        assert np.array_equal(one, np.broadcast_to(made[key], 3)[rows] if isinstance(one, np.ndarray) else made[key])


def test_rows_of_the_sparse_model_give_what_each_machine_gives_by_itself():
    base, rng = preset("accel-b-sparse"), np.random.default_rng(6)
    operator = with_densities(LAYER, {"inputs": 0.4, "weights": 0.6})
    space = MapSpace(operator, base)
    machines, batch = random_machines(base, 60, rng), space.sample(rng, 60)
    found = SparseModel(operator, base, space.layout).score(batch, HardwareBatch.of(machines))
    for index, machine in enumerate(machines):
        own = SparseModel(operator, machine, space.layout).score(batch.take(slice(index, index + 1)))
        assert_row(found, index, own)
    assert 0 < found.legal.sum() < 60


@pytest.mark.parametrize("name", ["edge-s2", "accel-b-sparse"])
def test_bounds_of_rows_are_those_of_each_machine_and_hold(name):
    base, rng = preset(name), np.random.default_rng(8)
    machines = random_machines(base, 6, rng)
    rows = np.repeat(np.arange(6), 50)
    hardware = HardwareBatch.of(machines).take(rows)
    space = MapSpace(PRODUCT, base)
    costs = cost_model(PRODUCT, base, space.layout).score(space.sample(rng, 300), hardware)
    bounds = hardware_bounds(PRODUCT, hardware, base)
    own = [layer_bounds(PRODUCT, machine) for machine in machines]
    assert bounds.latency_cycles[::50].tolist() == [each.latency_cycles for each in own]
    assert bounds.energy_pj[::50].tolist() == [each.energy_pj for each in own]
    legal = costs.legal
    assert legal.any() and (costs.latency_cycles >= bounds.latency_cycles)[legal].all()
    assert (costs.energy_pj >= bounds.energy_pj)[legal].all()


def test_energy_area_and_leakage_follow_from_capacity_as_in_a_file():
    rng, count = np.random.default_rng(7), 1500  # enough that curves are read by compiled code
    glb, rf = rng.uniform(2e4, 1e6, count), rng.uniform(40, 4000, count)
    x, y = rng.integers(1, 20, count), rng.integers(2, 20, count)
    base = load_accelerator(TEXT.format(glb=65536.0, rf=128.0, x=8, y=8))
    space = MapSpace(LAYER, base)
    batch = space.sample(rng, count)
    values = {("GLB", "capacity_bytes"): glb, ("RF", "capacity_bytes[weights]"): rf,
              ("PEs", "x"): x.astype(float), ("PEs", "y"): y.astype(float)}
    hardware = HardwareBatch(values)
    found = DenseModel(LAYER, base, space.layout).score(batch, hardware)
    for index in range(0, count, 50):
        text = TEXT.format(glb=float(glb[index]), rf=float(rf[index]), x=x[index], y=y[index])
        machine = load_accelerator(text)
        assert_row(found, index, DenseModel(LAYER, machine, space.layout).score(batch.take(slice(index, index + 1))))
        assert hardware.machine(index, base) == machine and hardware.machine(index, base).area_um2 == machine.area_um2
        assert hardware.machine(index, base).leakage_mw == machine.leakage_mw > 0


def test_a_buffer_ten_times_as_large_has_another_area_and_energy():
    machine = preset("edge-s2")
    batch = MapSpace(LAYER, machine).sample(np.random.default_rng(0), 2)
    size = machine.memories[1].capacity_bytes
    found = DenseModel(LAYER, machine).score(batch.take(np.array([0, 0])), HardwareBatch(
        {("SG", "capacity_bytes"): np.array([size, 10 * size])}))
    assert found.area_um2[0] == machine.area_um2 < found.area_um2[1]
    assert found.energy_pj[0] < found.energy_pj[1]


def test_figures_that_a_file_states_do_not_follow():
    stated = TEXT.replace("word_bits: 16,", "word_bits: 16, area_um2: 5.0, energy_pj_per_word: {{read: 1.5}},")
    base = load_accelerator(stated.format(glb=65536.0, rf=128.0, x=8, y=8))
    numbers = HardwareBatch({("GLB", "capacity_bytes"): np.array([2e5])}).on(base).numbers
    assert numbers["GLB", "area_um2"] == 5.0 and numbers["GLB", "read_energy_pj_per_word"] == 1.5
    assert numbers["RF", "drain_energy_pj_per_word"] == 0.5
    assert numbers["GLB", "fill_energy_pj_per_word"][0] > base.numbers["GLB", "fill_energy_pj_per_word"]


def test_machines_of_another_structure_are_refused():
    machine = preset("edge-s2")
    other = replace(machine, name="box", footprint="box")
    with pytest.raises(InputError, match=r"machines\[1\]: must differ from the first one in its numbers only"):
        HardwareBatch.of([machine, other])
    batch = MapSpace(LAYER, machine).sample(np.random.default_rng(0), 1)
    with pytest.raises(InputError, match=r"hardware\.base: must have the structure of the model's machine"):
        DenseModel(LAYER, machine).score(batch, HardwareBatch.of([other]))
    with pytest.raises(InputError, match="machines: must be at least one"):
        HardwareBatch.of([])


def test_rows_must_be_as_many_as_mappings():
    machine = preset("edge-s2")
    batch = MapSpace(LAYER, machine).sample(np.random.default_rng(0), 3)
    with pytest.raises(InputError, match="hardware: must have one row for each mapping"):
        DenseModel(LAYER, machine).score(batch, HardwareBatch({("PEs", "x"): np.ones(2)}))
    with pytest.raises(InputError, match=r"hardware\.PEs\.y: must have one figure for each mapping"):
        DenseModel(LAYER, machine).score(batch, HardwareBatch({("PEs", "x"): np.ones(3), ("PEs", "y"): np.ones(2)}))


def test_capacities_that_no_row_of_the_technology_reaches_are_refused():
    machine = preset("edge-s2")
    with pytest.raises(InputError, match=r"technology\..*: knows"):
        HardwareBatch({("SG", "capacity_bytes"): np.array([1e5, 1e15])}).on(machine)

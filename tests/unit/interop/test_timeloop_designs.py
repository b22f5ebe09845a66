"""Designs in the manner of Timeloop's examples (0.3 and 0.4): they load unchanged, and what is lost is told."""

import numpy as np
import pytest

from tilewright.base import InputError
from tilewright.cost import cost_model
from tilewright.hardware import Compression, Elision, Fanout
from tilewright.interop import load_timeloop
from tilewright.mapping import Bounds, MapSpace, violations

CONV = """\
problem:
  version: 0.4
  shape:
    name: Conv2D
    dimensions: [C, M, R, S, N, P, Q]
    coefficients: [{name: Wstride, default: 1}, {name: Hstride, default: 1}]
    data-spaces:
    - {name: Weights, projection: [[[C]], [[M]], [[R]], [[S]]]}
    - {name: Inputs, projection: [[[N]], [[C]], [[R], [P, Wstride]], [[S], [Q, Hstride]]]}
    - {name: Outputs, projection: [[[N]], [[M]], [[Q]], [[P]]], read-write: True}
  instance: {C: 8, M: 16, R: 3, S: 3, N: 1, P: 12, Q: 12, H: 14, W: 14, Hpad: 0, Wpad: 0}
"""
EYERISS_3 = """\
architecture:
  version: 0.3
  subtree:
  - name: board
    local:
    - {name: DRAM, class: DRAM, attributes: {type: LPDDR4, width: 32, block-size: 2, word-bits: 16}}
    subtree:
    - name: chip
      attributes: {technology: 45nm}
      local:
      - name: glb
        class: smartbuffer_SRAM
        attributes: {memory_depth: 8192, memory_width: 64, n_banks: 16, block-size: 4, word-bits: 16,
                     read_bandwidth: 8, write_bandwidth: 8}
      - {name: "columns[0..11]", class: regfile,
         attributes: {depth: 16, width: 16, word-bits: 16, block-size: 1, meshX: 12}}
      subtree:
      - name: PE[0..119]
        local:
        - {name: rows_spad, class: smartbuffer_RF,
           attributes: {memory_depth: 12, memory_width: 16, block-size: 1, word-bits: 16, meshX: 12}}
        - {name: filter_spad, class: smartbuffer_RF,
           attributes: {memory_depth: 96, memory_width: 16, block-size: 1, word-bits: 16, meshX: 12}}
        - {name: sums_spad, class: smartbuffer_RF,
           attributes: {memory_depth: 16, memory_width: 16, update_fifo_depth: 2, word-bits: 16, meshX: 12}}
        - {name: mac, class: intmac, attributes: {datawidth: 16, meshX : 12}}
"""
EYERISS_3_CONSTRAINTS = """\
architecture_constraints:
  targets:
  - {target: sums_spad, type: bypass, bypass: [Inputs, Weights], keep: [Outputs]}
  - {target: filter_spad, type: bypass, bypass: [Inputs, Outputs], keep: [Weights]}
  - {target: rows_spad, type: bypass, bypass: [Weights, Outputs], keep: [Inputs]}
  - {target: columns, type: bypass, bypass: [Inputs, Outputs, Weights]}
  - {target: glb, type: bypass, bypass: [Weights], keep: [Inputs, Outputs]}
  - {target: columns, type: spatial, split: 4, permutation: NPQR SCM, factors: N=1 P=1 Q=1 R=1 S=0}
  - {target: glb, type: spatial, split: 7, permutation: NCPRSQM, factors: N=1 C=1 P=1 R=1 S=1}
  - {target: sums_spad, type: temporal, permutation: NCPQRS M, factors: N=1 C=1 R=1 S=1 P=1 Q=1}
  - {target: filter_spad, type: temporal, permutation: NMPQS CR, factors: N=1 M=1 P=1 Q=1 S=1 R=0}
  - {target: rows_spad, type: temporal, permutation: NMCPQRS, factors: N=1 M=1 C=1 P=1 Q=1 R=1 S=1}
  - {target: columns, type: temporal, factors: N=1 M=1 C=1 P=1 Q=1 R=1 S=1}
"""
SIMBA_3 = """\
architecture:
  version: 0.3
  subtree:
  - name: System
    attributes: {datawidth: 8, word-bits: 8, technology: 45nm}
    local:
    - {name: DRAM, class: DRAM, attributes: {type: LPDDR4, width: 64, block-size: 8, word-bits: 8}}
    subtree:
    - name: ws
      local:
      - {name: Global, class: storage, subclass: smartbuffer_SRAM,
         attributes: {memory_depth: 1024, memory_width: 256, word-bits: 8, block-size: 32, nports: 2, meshX: 1}}
      subtree:
      - name: PE<0..7>
        local:
        - {name: InBuffer, class: storage, subclass: smartbuffer_RF,
           attributes: {memory_depth: 4096, memory_width: 64, word-bits: 8, block-size: 8, meshX: 8}}
        - {name: "WeightBuffer[0..3]", class: storage, subclass: smartbuffer_RF,
           attributes: {memory_depth: 2048, word-bits: 8, meshX: 8, block-size: 8}}
        - {name: "SumBuffer[0..3]", class: storage, subclass: smartbuffer_RF,
           attributes: {memory_depth: 64, word-bits: 24, datawidth: 24, meshX: 8}}
        - {name: "WeightRegs[0..15]", class: storage, subclass: reg_storage,
           attributes: {memory_depth: 1, word-bits: 8, cluster-size: 64, num-ports: 2, meshX: 8}}
        - {name: "LMAC[0..15]", class: compute, subclass: lmac, attributes: {datawidth: 8, meshX: 8}}
"""
STATIONARY_3 = """\
architecture:
  version: 0.3
  subtree:
  - name: system
    local:
    - {name: DRAM, class: DRAM, attributes: {type: LPDDR4, width: 64, block-size: 4, word-bits: 16}}
    subtree:
    - name: chip
      attributes: {technology: 45nm}
      local:
      - {name: glb, class: smartbuffer_SRAM,
         attributes: {memory_depth: 4096, memory_width: 64, block-size: 4, word-bits: 16, read_bandwidth: 16}}
      subtree:
      - name: PE[0..63]
        local:
        - {name: spad, class: smartbuffer_SRAM,
           attributes: {memory_depth: 128, memory_width: 16, block-size: 1, word-bits: 16, meshX: 8}}
        - {name: mac, class: intmac, attributes: {datawidth: 16, meshX : 8}}
        - {name: weight_reg, class: reg_storage, attributes: {depth: 1, width: 16, meshX: 8}}
        - {name: input_reg, class: reg_storage, attributes: {depth: 1, width: 16, meshX: 8}}
        - {name: output_reg, class: reg_storage, attributes: {depth: 1, width: 16, meshX: 8}}
"""
STATIONARY_3_CONSTRAINTS = """\
architecture_constraints:
  targets:
  - {target: spad, type: bypass, bypass: [Inputs, Outputs], keep: [Weights]}
  - {target: spad, type: temporal, permutation: PQRS}
  - {target: glb, type: spatial, permutation: CM, split: 1, factors: R=1 S=1 P=1 Q=1 N=1}
  - {target: weight_reg, type: temporal, factors: R=1 S=1 M=1 C=1}
  - {target: weight_reg, type: bypass, keep: [Weights], bypass: [Inputs, Outputs]}
  - {target: input_reg, type: bypass, keep: [Inputs], bypass: [Outputs, Weights]}
  - {target: output_reg, type: bypass, keep: [Outputs], bypass: [Inputs, Weights]}
"""
SIMBA_4 = """\
variables: {version: 0.4, global_cycle_seconds: 5e-10, technology: "45nm", lanes: 8, wide: lanes * 8}
architecture:
  version: 0.4
  nodes:
  - !Container {name: System, attributes: {datawidth: 8}}
  - !Component {name: DRAM, class: DRAM, attributes: {type: "HBM9", width: 64}}
  - !Component
    name: Global
    class: smartbuffer_SRAM
    attributes: {depth: 1024, width: 256, n_banks: 4, nports: 2, multiple_buffering: 2}
    constraints:
      dataspace: {keep: [Inputs, Outputs], bypass: [Weights]}
  - !Container
    name: PE
    spatial: {meshX: lanes}
    constraints:
      spatial: {factors: R=1 S=1 P=1 Q=1 N=1, permutation: [M, C, R, S, P, Q, N]}
  - !Component
    name: InBuffer
    class: storage
    subclass: smartbuffer_RF
    attributes: {depth: 4096 if lanes > 4 else 2048, width: wide}
    constraints:
      dataspace: {keep_only: [Inputs]}
  - !Container
    name: banks
    spatial: {meshY: 4}
    constraints:
      spatial: {factors_only: [M=4]}
  - !Parallel
    nodes:
    - !Component
      name: WeightBuffer
      class: storage
      subclass: smartbuffer_RF
      attributes: {depth: 2048, width: 64}
      constraints:
        dataspace: {keep: [Weights]}
    - !Component
      name: SumBuffer
      class: storage
      subclass: smartbuffer_RF
      attributes: {depth: 64, datawidth: 24, width: 24}
      constraints:
        dataspace: {keep: [Outputs]}
    - !Nothing {constraints: {dataspace: {keep: [Inputs]}}}
  - !Container
    name: taps
    spatial: {meshY: 2}
    constraints:
      spatial: {no_iteration_over_dataspaces: [Outputs], factors: [R=1, S=1], permutation: [C]}
  - !Component
    name: WeightRegs
    class: storage
    subclass: smartbuffer_RF
    attributes: {depth: 1, width: 512, cluster_size: 64, num_ports: 2}
    constraints:
      dataspace: {keep: [Weights], bypass: [Inputs, Outputs]}
  - !Component {name: mac, class: intmac, attributes: {multiplier_width: 8, adder_width: 16}}
"""
STATIONARY_4 = """\
architecture:
  version: 0.4
  nodes:
  - !Container {name: system}
  - !Component {name: DRAM, class: DRAM, attributes: {type: "LPDDR4", width: 64, datawidth: 16}}
  - !Container {name: chip, attributes: {technology: "45nm"}}
  - !Component
    name: glb
    class: smartbuffer_SRAM
    attributes: {depth: 4096, width: 64, n_banks: 32, datawidth: 16, read_bandwidth: 16, write_bandwidth: 16}
  - !Container
    name: PE
    spatial: {meshX: 8, meshY: 8}
    constraints:
      spatial: {permutation: [C, M], split: 1, factors: [R=1, S=1, P=1, Q=1]}
  - !Component
    name: spad
    class: smartbuffer_SRAM
    attributes: {depth: 128, width: 16, datawidth: 16}
    constraints:
      dataspace: {bypass: [Inputs, Weights], keep: [Outputs]}
      temporal: {permutation: [R, S, P, Q]}
  - !Parallel
    nodes:
    - !Component
      {name: w_reg, class: storage, subclass: aladdin_register, attributes: {depth: 1, width: 16, datawidth: 16},
       constraints: {dataspace: {keep: [Weights]}, temporal: {factors: [R=1, S=1, M=1, C=1]}}}
    - !Component
      {name: i_reg, class: storage, subclass: aladdin_register, attributes: {depth: 1, width: 16, datawidth: 16},
       constraints: {dataspace: {keep: [Inputs]}, temporal: {factors: [P=1, Q=1, C=1, N=1]}}}
    - !Component
      {name: o_reg, class: storage, subclass: aladdin_register, attributes: {depth: 1, width: 16, datawidth: 16},
       constraints: {dataspace: {keep: [Outputs]}, temporal: {factors: [P=1, Q=1, M=1, N=1]}}}
  - !Component {name: mac, class: intmac, attributes: {multiplier_width: 8, adder_width: 16}}
"""
GEMM = """\
problem:
  instance:
    {K: 64, M: 32, N: 16, densities: {A: {density: 0.5, distribution: fixed-structured}, B: 0.25}}
  shape:
    name: gemm
    dimensions: [M, N, K]
    data-spaces:
    - {name: A, projection: [[[M]], [[K]]]}
    - {name: B, projection: [[[N]], [[K]]]}
    - {name: Z, projection: [[[M]], [[N]]], read-write: true}
"""
TENSOR_CORE = """\
architecture:
  version: 0.4
  nodes:
  - !Container {name: system, attributes: {technology: "45nm"}}
  - !Component {name: DRAM, class: DRAM, attributes: {width: 64, datawidth: 8, metadata_storage_width: 64},
                constraints: {temporal: {permutation: [K], factors: K=1}}}
  - !Component
    name: SMEM
    class: storage
    subclass: smartbuffer_metadata
    attributes: {depth: 8192, width: 256, datawidth: 8, metadata_storage_depth: 8192, metadata_storage_width: 64,
                 read_bandwidth: 42, write_bandwidth: 42, decompression_supported: true}
    constraints:
      temporal: {permutation: [K], factors: K=1 M<=8 N<=8}
      dataspace: {keep: [A, B], bypass: [Z]}
    sparse_optimizations:
      action_optimization:
      - {type: gating, options: [{target: A, condition_on: [B]}]}
      - {type: skipping, options: [{target: Z, condition_on: [A]}]}
  - !Container {name: PE, spatial: {meshX: 8, meshY: 4},
                constraints: {spatial: {permutation: [K, M, N], factors: K<=8 M<=4 N=1, split: 1}}}
  - !Component
    {name: LRF, class: storage, subclass: smartbuffer_metadata, attributes: {depth: 4, width: 8, datawidth: 8},
     constraints: {temporal: {factors: M=1}, dataspace: {keep: [A], bypass: [B, Z]}}}
  - !Component {name: mac, class: intmac, attributes: {multiplier_width: 8, adder_width: 16}}
"""
SPARSE = """\
sparse_optimizations:
  targets:
  - name: DRAM
    representation-format:
      data-spaces:
      - name: A
        ranks:
        - {format: UOP, payload-word-bits: 0}
        - {format: UOP, payload-word-bits: 0}
        - {format: CP, metadata-word-bits: 2}
        rank-application-order: inner-to-outer
      - {name: B, ranks: [{format: UOP}, {format: CP}]}
      - name: Z
        ranks: [{format: UOP, flattened-rankIDs: [[M, N]]}, {format: RLE, flattened-rankIDs: [[M, N]]}]
  - name: SMEM
    representation-format: {data-spaces: [{name: A, ranks: [{format: b}]}, {name: B, ranks: [{format: U}]}]}
    action-optimization:
    - {type: skipping-spatial, target: B, condition-on: [A]}
  - name: mac
    compute-optimization: [{type: gating}]
"""

GATED_3 = """\
architecture:
  version: 0.3
  subtree:
  - name: chip
    attributes: {technology: 45nm}
    local:
    - {name: DRAM, class: DRAM, attributes: {width: 64, block_size: 4, datawidth: 16, metadata_storage_width: 60,
       metadata_datawidth: 5, metadata_block_size: 12}}
    - {name: glb, class: storage, subclass: smartbuffer_metadata,
       attributes: {data_storage_depth: 4096, data_storage_width: 64, block_size: 4, datawidth: 16, n_banks: 1,
         metadata_storage_depth: 0, metadata_counter_width: 9, decompression_supported: true}}
    - {name: "Dummy[0..11]", class: storage, subclass: SRAM,
       attributes: {width: 16, depth: 0, entries: 0, num_banks: 1, datawidth: 16, meshX: 12}}
    subtree:
    - name: "PE[0..47]"
      local:
      - {name: rows_spad, class: storage, subclass: smartbuffer,
         attributes: {data_storage_depth: 12, data_storage_width: 17, datawidth: 17, meshX: 12}}
      - {name: sums_spad, class: storage, subclass: smartbuffer,
         attributes: {data_storage_depth: 24, data_storage_width: 16, datawidth: 16, meshX: 12}}
      - {name: MACs, class: compute, subclass: mac, attributes: {meshX: 12, datawidth: 16}}
"""
GATED_3_MAPPING = """\
mapping:
- {target: DRAM, type: temporal, permutation: RSP CMNQ, factors: R=1 S=1 P=1 C=8 M=2 N=1 Q=1}
- {target: DRAM, type: bypass, keep: [Weights, Inputs, Outputs]}
- {target: glb, type: spatial, split: 7, permutation: NCPRSQM, factors: N=1 C=1 P=1 R=1 S=1 Q=0 M=1}
- {target: glb, type: temporal, permutation: QRSC PNM, factors: Q=1 R=3 S=1 P=0 C=1 N=1 M=1}
- {target: glb, type: bypass, bypass: [Weights], keep: [Inputs, Outputs]}
- {target: Dummy, type: temporal, permutation: NMCPQRS, factors: N=1 M=1 C=1 P=1 Q=1 R=1 S=1}
- {target: Dummy, type: bypass, bypass: [Inputs, Outputs, Weights]}
- {target: Dummy, type: spatial, split: 4, permutation: NPQR SCM, factors: N=1 P=1 Q=1 R=1 S=0 C=1 M=1}
- {target: rows_spad, type: bypass, bypass: [Weights, Outputs], keep: [Inputs]}
- {target: rows_spad, type: temporal, permutation: NMCPQRS, factors: N=1 M=1 C=1 P=1 Q=1 R=1 S=1}
- {target: sums_spad, type: bypass, bypass: [Inputs, Weights], keep: [Outputs]}
- {target: sums_spad, type: temporal, permutation: NCPQRS M, factors: N=1 C=1 R=1 S=1 P=1 Q=1 M=8}
"""


DESIGNS = {
    "eyeriss-0.3": (EYERISS_3, EYERISS_3_CONSTRAINTS, CONV), "simba-0.3": (SIMBA_3, CONV),
    "stationary-0.3": (STATIONARY_3, STATIONARY_3_CONSTRAINTS, CONV), "simba-0.4": (SIMBA_4, CONV),
    "stationary-0.4": (STATIONARY_4, CONV), "tensor-core": (TENSOR_CORE, GEMM, SPARSE),
}


@pytest.mark.parametrize("name", DESIGNS)
def test_designs_load_unchanged_and_their_mappings_can_be_counted(name, read):
    found = read(*DESIGNS[name])
    assert not [str(note) for note in found.notes if "not known" in note.text]
    space = MapSpace(found.operator, found.accelerator, "perfect", found.constraints)
    batch = space.sample(np.random.default_rng(1), 3)
    model = cost_model(found.operator, found.accelerator)
    for index in range(3):
        mapping = batch.mapping(index, found.operator.sizes)
        assert model.cost(mapping).energy_pj > 0
        wrong = violations(mapping, found.operator, found.accelerator)
        assert {violation.kind for violation in wrong} <= {"capacity"}, "a draw may be too large, and no more"
    assert found.accelerator.assumptions == tuple(map(str, found.notes))


def test_blocks_behind_an_array_are_told_and_counted_by_the_word(read):
    wide = read(EYERISS_3.replace("memory_width: 16, block-size: 1", "memory_width: 32, block-size: 2"), CONV)
    memories = [level for level in wide.accelerator.levels if not isinstance(level, Fanout)]
    behind = [memory for memory in memories if wide.accelerator.instances(memory.name) > 1]
    assert behind
    assert {memory.block_words for memory in behind} == {1}
    assert [memory.access_grain for memory in behind].count((2, 1)) == 2
    told = [note for note in wide.notes if "blocks of 2 words behind an array" in note.text]
    assert [note.kind for note in told] == ["approximated"] * 2
    assert cost_model(wide.operator, wide.accelerator)


def test_permutations_may_have_gaps_and_a_factor_of_0_is_the_whole_dimension(read):
    found = read(*DESIGNS["eyeriss-0.3"])
    assert [level.name for level in found.accelerator.levels] == [
        "DRAM", "glb", "glb_fanout", "columns", "columns_fanout", "rows_spad", "filter_spad", "sums_spad"]
    assert found.accelerator.level("columns_fanout").shape == (1, 10)
    constraints = found.constraints
    assert constraints.factors["columns_fanout.Y"]["S"] == Bounds(3, 3)
    assert constraints.factors["filter_spad"]["R"] == Bounds(3, 3)
    assert constraints.orders["filter_spad"] == (("R", "C", "S", "Q", "P", "M", "N"),)
    assert constraints.keeps["columns"] == ()


def test_a_mapping_past_a_memory_that_holds_nothing(read):
    gating = "sparse_optimizations: {targets: [{name: rows_spad, action-optimization: [{type: gating, options: [" \
             "{target: Inputs, condition-on: [Weights]}]}]}]}\n"
    found = read(GATED_3, CONV, GATED_3_MAPPING, gating)
    machine = found.accelerator
    assert [level.name for level in machine.levels] == [
        "DRAM", "glb", "glb_fanout", "Dummy_fanout", "rows_spad", "sums_spad"]
    assert (machine.level("glb_fanout").shape, machine.level("Dummy_fanout").shape) == ((12, 1), (1, 4))
    assert violations(found.mapping, found.operator, machine) == ()
    assert [str(loop) for loop in found.mapping.at("glb_fanout").loops] == ["Q@X: 1"]
    assert [str(loop) for loop in found.mapping.at("Dummy_fanout").loops] == ["S@Y: 1"]
    assert machine.sparsity.elisions == (Elision("rows_spad", "gate", "inputs", ("weights",)),)


def test_a_compute_unit_may_stand_anywhere_among_registers(read):
    machine = read(*DESIGNS["stationary-0.3"]).accelerator
    assert machine.compute.name == "mac"
    assert [level.name for level in machine.levels[-3:]] == ["weight_reg", "input_reg", "output_reg"]
    assert machine.level("input_reg").capacity_bytes == 2
    assert machine.level("glb_fanout") == Fanout("glb_fanout", (8, 8))


def test_variables_expressions_macros_and_branches(read):
    found = read(*DESIGNS["simba-0.4"])
    machine = found.accelerator
    assert machine.frequency_mhz == 2000 and machine.level("PE").shape == (8, 1)
    assert machine.level("InBuffer").capacity_bytes == 4096 * 8
    assert machine.level("InBuffer").keeps == ("inputs",)
    assert (machine.level("WeightBuffer").keeps, machine.level("SumBuffer").keeps) == (("weights",), ("outputs",))
    assert machine.level("Global").buffering == "double"
    assert machine.level("WeightRegs").capacity_bytes == 1
    assert found.constraints.factors["banks.Y"] == {"M": Bounds(4, 4)} | dict.fromkeys("CRSNPQ", Bounds(1, 1))
    assert found.constraints.factors["taps.Y"] == dict.fromkeys("RSNMPQ", Bounds(1, 1))
    told = [str(note) for note in found.notes]
    assert any("WeightRegs moves clusters of 64 blocks" in note for note in told)
    assert any("energy of DRAM from our 45nm table of LPDDR4" in note for note in told)


def test_what_a_tensor_core_makes_of_zeros(read):
    found = read(*DESIGNS["tensor-core"])
    a, b = found.operator.tensor("A"), found.operator.tensor("B")
    assert (a.density, a.even, b.density, b.even) == (0.5, True, 0.25, False)
    sparsity = found.accelerator.sparsity
    assert sparsity.formats == (
        Compression("DRAM", "weights", "coordinates", 2), Compression("DRAM", "inputs", "csr"),
        Compression("DRAM", "outputs", "run-length"), Compression("SMEM", "weights", "bitmask"),
        Compression("SMEM", "inputs", "uncompressed"))
    assert sparsity.elisions == (Elision("SMEM", "gate", "weights", ("inputs",)),
                                 Elision("SMEM", "skip", "inputs", ("weights",)))
    assert (sparsity.gated, sparsity.skipped) == (("weights", "inputs"), ())
    told = [(note.where.split()[0], note.kind) for note in found.notes]
    assert ("sparse_optimizations.yaml:14", "approximated") in told
    assert ("sparse_optimizations.yaml:18", "approximated") in told
    assert ("problem.yaml:3", "approximated") not in told
    assert ("architecture.yaml:19", "dropped") in told, "SMEM keeps no outputs"


NOTED = [
    (SIMBA_4, "n_banks: 4", "n_bunks: 4", 10, "dropped", "an attribute that is not known here"),
    (SIMBA_4, "n_banks: 4", "min_utilization: 0.5", 10, "dropped", "a least share of the memory"),
    (SIMBA_4, "n_banks: 4", "reduction_supported: false", 10, "dropped", "a memory that cannot add"),
    (SIMBA_4, "n_banks: 4", "network_fill_latency: 7", 10, "dropped", "the latency of the network"),
    (SIMBA_4, "n_banks: 4", "has_power_gating: true", 10, "dropped", "power gating"),
    (SIMBA_4, "class: smartbuffer_SRAM", "class: mystery", 7, "dropped", "a class that Timeloop passes"),
    (SIMBA_4, "spatial: {meshX: lanes}", "spatial: {meshX: lanes, meshZ: 2}", 15, "dropped", "not known"),
    (SIMBA_4, "    class: smartbuffer_SRAM", "    color: red\n    class: smartbuffer_SRAM", 9, "dropped",
     "not known here"),
    (SIMBA_4, "    spatial: {meshX: lanes}", "    networks: [{name: n}]\n    spatial: {meshX: lanes}",
     15, "dropped", "networks"),
    (SIMBA_4, "permutation: [M, C, R", "no_link_transfer: [Inputs], permutation: [M, C, R", 17,
     "dropped", "neighbours hand no words on"),
    (SIMBA_4, "keep: [Inputs, Outputs], bypass: [Weights]", "keep: [Inputs, Outputs]", 12,
     "approximated", "Weights, which Global may keep or not"),
    (CONV, "Hpad: 0", "Hpat: 0", 11, "dropped", "not known here"),
    (CONV, "read-write: True", "read-write: True, color: red", 10, "dropped", "not known here"),
    (CONV, "version: 0.4", "versions: 0.4", 2, "dropped", "not known here"),
]


@pytest.fixture(scope="module")
def plain_notes(tmp_path_factory):
    """What is told of the two files as they are."""
    folder = tmp_path_factory.mktemp("plain")
    for text in (SIMBA_4, CONV):
        (folder / f"{text.split(':')[0]}.yaml").write_text(text)
    return {str(note) for note in load_timeloop(sorted(folder.iterdir())).notes}


@pytest.mark.parametrize(("text", "old", "new", "line", "kind", "words"), NOTED)
def test_whatever_is_not_honoured_is_told_with_its_line(read, plain_notes, text, old, new, line, kind, words):
    assert old in text
    texts = [SIMBA_4, CONV]
    texts[texts.index(text)] = text.replace(old, new, 1)
    more = {str(note) for note in read(*texts).notes} - plain_notes
    where = f"{text.split(':')[0]}.yaml:{line} "
    assert any(note.startswith(where) and f": {kind}: " in note and words in note for note in more), more
    with pytest.raises(InputError, match="must be honoured in full"):
        read(*texts, strict=True)


def test_lanes_that_share_nothing(read):
    text = STATIONARY_4.replace("split: 1, factors", "split: 1, no_reuse: [Inputs, Weights, Outputs], factors")
    assert read(text, CONV).accelerator.level("PE") == Fanout("PE", (8, 8), multicast=False, reduce=False)
    text = STATIONARY_4.replace("split: 1, factors", "split: 1, no_reuse: [Outputs], factors")
    assert read(text, CONV).accelerator.level("PE") == Fanout("PE", (8, 8), multicast=True, reduce=False)
    text = text.replace("no_reuse: [Outputs]", "no_multicast_no_reduction: [Inputs]")
    assert read(text, CONV).accelerator.level("PE") == Fanout("PE", (8, 8), multicast=(("inputs", False),))


def test_other_spellings_of_problems_and_constraints(read, tmp_path):
    short = "problem: {shape: cnn-layer, R: 3, S: 1, P: 5, Q: 4, C: 2, K: 3, N: 1, Wstride: 2, commonDensity: 0.5}\n"
    operator = read(short).operator
    assert operator.sizes == {"R": 3, "S": 1, "P": 5, "Q": 4, "C": 2, "K": 3, "N": 1}
    assert operator.tensor("Inputs").axes[2].terms == (("R", 1), ("P", 2))
    assert operator.tensor("Weights").density == 0.5
    nested = """\
mapspace_constraints:
- target: 1
  constraints:
  - {type: temporal, attributes: {factors: P<=2, permutation: PQ}}
- {target: o_reg, type: utilization, min: 0.5}
- {target: glb, type: temporal, default_max_factor: 4}
"""
    found = read(STATIONARY_4, CONV, nested).constraints
    assert found.utilization == {"PE": 0.5}
    assert found.orders["i_reg"] == (("*", "Q", "P"),)
    assert found.factors["i_reg"]["P"] == Bounds(1, 1)
    assert found.factors["glb"] == dict.fromkeys("CMRSNPQ", Bounds(1, 4)) | dict.fromkeys("RS", Bounds(1, 3)) | {
        "N": Bounds(1, 1)}


def test_without_a_problem_the_names_of_tensors_tell_what_memories_keep(read):
    found = read(STATIONARY_4)
    assert found.accelerator.level("spad").keeps == ("outputs",)
    assert any("needs the problem" in note.text for note in found.notes)


TABLES = """\
ERT:
  version: 0.4
  tables:
""" + "".join(f"""\
  - {{name: "system.{name}[1..4]", actions: [{{name: read, energy: 2.0}}, {{name: write, energy: 1.0}},
     {{name: compute, energy: 0.5}}]}}
""" for name in ("DRAM", "glb", "spad", "w_reg", "i_reg", "o_reg", "mac"))
AREAS = """\
ART:
  tables: [{name: "system.inter_PE_spatial[1..1]", area: 1.0}, {name: "system.glb[1..1]", area: 50.0}]
"""


def test_a_design_with_its_tables_is_honoured_in_full(read):
    found = read(STATIONARY_4, CONV, TABLES, AREAS, strict=True)
    assert found.notes == () and found.accelerator.assumptions == ()
    assert found.accelerator.level("glb").energy.read_pj == 0.5 and found.accelerator.level("glb").area_um2 == 50
    assert found.accelerator.level("glb").block_words == 4


def test_the_outermost_memory_keeps_all_tensors_which_is_told(read):
    passing = "mapspace:\n  targets:\n  - {target: DRAM, type: bypassing, keep: [Inputs, Outputs], bypass: [Weights]}\n"
    found = read(STATIONARY_4, CONV, passing)
    assert "DRAM" not in found.constraints.keeps
    assert any(note.where.startswith("mapspace.yaml:3") and "Weights at the outermost memory" in note.text
               for note in found.notes)


WRONG = [
    (SIMBA_4, "lanes: 8", "lanes: wide", "must be a number or an expression"),
    (SIMBA_4, "lanes: 8", "lanes: 7.5", "must be a whole number of at least 1"),
    (SIMBA_4, "global_cycle_seconds: 5e-10", "global_cycle_seconds: -1", "must have positive global_cycle_seconds"),
    (SIMBA_4, "class: intmac", "class: adder", "must be a compute unit, as nothing else follows"),
    (SIMBA_4, "keep_only: [Inputs]", "keep_only: [Input]", "must be among Weights, Inputs, Outputs"),
    (SIMBA_4, "keep_only: [Inputs]", "keep: [Inputs], bypass: [Inputs]", "must not both keep and bypass a tensor"),
    (SIMBA_4, "factors_only: [M=4]", "factors_only: [M=four]", "must be factors such as"),
    (SIMBA_4, "factors: [R=1, S=1]", "factors: [R=1, P=2]", "must not both loop and not loop over P"),
    (SIMBA_4, "no_iteration_over_dataspaces: [Outputs]", "no_iteration_over_dataspaces: [Output]", "must be among"),
    (SIMBA_4, "factors: R=1 S=1 P=1", "factors: R=1 S=1 P=x", "must be factors such as"),
    (SIMBA_4, "depth: 4096 if lanes > 4 else 2048", "depth: __import__('os')", "must be a number or an expression"),
    (SIMBA_4, "depth: 4096 if lanes > 4 else 2048", "depth: 9**9**9", "must be a number or an expression"),
    (SIMBA_4, "lanes: 8", "lanes: max()", "must be a number or an expression"),
    (SIMBA_4, "lanes: 8", "lanes: ceil(1, 2)", "must be a number or an expression"),
    (SIMBA_4, "lanes: 8", "lanes: (-8) ** 0.5 > 1", "must be a number or an expression"),
    (SIMBA_4, "lanes: 8", f"lanes: {'-' * 3000}1", "must be a number or an expression"),
    (SIMBA_4, "lanes: 8", f"lanes: 1{'0' * 400}", "must be a finite number"),
    (STATIONARY_4, "split: 1", "split: one", "must be a number or an expression"),
    (STATIONARY_4, "name: spad", "name: glb", "must have a name of its own"),
    (STATIONARY_4, "spatial: {meshX: 8, meshY: 8}", "spatial: {meshX: 8, meshY: -8}", "must be a whole number"),
    (CONV, "[R], [P, Wstride]", "[R], [P, Wstride], [C]", "sum of one or two dimensions"),
    (CONV, "{name: Wstride, default: 1}", "{name: Wstride, default: 0}", "must be a whole number of at least 1"),
    (CONV, "{name: Wstride, default: 1}", "{default: 1}", "must have a name"),
    (CONV, "shape:\n    name: Conv2D", "shape: my-shape\n  other:\n    name: Conv2D", "must be written out"),
    (CONV, "M: 16", "M: 1.5", "must be a whole number"),
]
SPARSE_WRONG = [
    ("name: SMEM", "name: SHMEM", "must be of one of DRAM, SMEM, LRF, mac"),
    ("  - name: DRAM\n", "  - title: DRAM\n", "must have a name, that of a component"),
    ("format: CP, metadata", "format: CSC, metadata", "must be one of B, RLE, CP, UOP"),
    ("metadata-word-bits: 2", "metadata-word-bits: 1.5", "must be a whole number"),
    ("ranks: [{format: b}]", "ranks: []", "must list at least one rank"),
    ("{name: B, ranks: [{format: U}]}", "{name: A, ranks: [{format: U}]}", "must give A in SMEM one format"),
    ("{name: B, ranks: [{format: U}]}", "{name: C, ranks: [{format: U}]}", "must be one of the tensors A, B, Z"),
    ("{name: B, ranks: [{format: U}]}", "{ranks: [{format: U}]}", "must have a name, that of a tensor"),
    ("type: skipping-spatial", "type: jumping", "must be one of gating, skipping"),
    ("target: B, condition-on", "aim: B, condition-on", "must have a target and condition-on"),
    ("condition-on: [A]", "condition-on: A", "must be a list"),
    ("type: gating", "type: guessing", "must be gating or skipping"),
    ("compute-optimization: [", "compute-optimization: 7 #[", "must be a list"),
    ("name: mac\n", "name: LRF\n", "must stand at the compute unit, mac"),
]


@pytest.mark.parametrize(("text", "old", "new", "message"), WRONG)
def test_what_is_wrong_is_named_with_its_line(read, text, old, new, message):
    assert old in text
    wrong = text.replace(old, new, 1)
    texts = [SIMBA_4, wrong] if text is CONV else [wrong, CONV]
    with pytest.raises(InputError) as error:
        read(*texts)
    assert message in str(error.value)
    assert ".yaml:" in str(error.value)


@pytest.mark.parametrize(("old", "new", "message"), SPARSE_WRONG)
def test_what_is_wrong_with_zeros_is_named_with_its_line(read, old, new, message):
    assert old in SPARSE
    with pytest.raises(InputError) as error:
        read(TENSOR_CORE, GEMM, SPARSE.replace(old, new, 1))
    assert message in str(error.value)
    assert "sparse_optimizations.yaml:" in str(error.value)


def test_constraints_that_contradict_one_another_are_named(read):
    twice = STATIONARY_3_CONSTRAINTS + "  - {target: spad, type: temporal, permutation: SRQP}\n"
    with pytest.raises(InputError, match="must not give spad an order once more"):
        read(STATIONARY_3, twice, CONV)
    factors = STATIONARY_3_CONSTRAINTS + "  - {target: weight_reg, type: temporal, factors: R=3}\n"
    with pytest.raises(InputError, match="must let R run as often at weight_reg as other constraints say"):
        read(STATIONARY_3, factors, CONV)
    side = STATIONARY_3_CONSTRAINTS.replace("PE", "PE") + "  - {target: spad, type: skew}\n"
    with pytest.raises(InputError, match="must not skew loops"):
        read(STATIONARY_3, side, CONV)


def test_files_that_include_themselves_are_refused(tmp_path):
    (tmp_path / "a.yaml").write_text("{{include_text('b.yaml')}}\n")
    (tmp_path / "b.yaml").write_text("{{include_text('a.yaml')}}\n")
    with pytest.raises(InputError, match="must not include a file that includes it"):
        load_timeloop([tmp_path / "a.yaml"])
    (tmp_path / "a.yaml").write_text("x: {{ 1 / 0 }}\n")
    with pytest.raises(InputError, match="must be a Jinja2 template"):
        load_timeloop([tmp_path / "a.yaml"])

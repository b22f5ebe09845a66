"""Timeloop's YAML: what its files mean, both ways, and what is wrong with them."""

import re
from dataclasses import replace

import numpy as np
import pytest
from ruamel.yaml import YAML

from tilewright.base import InputError
from tilewright.cost.reference import TIMELOOP, replay
from tilewright.hardware import Fanout, preset
from tilewright.interop import dump_program, dump_timeloop, load_timeloop
from tilewright.mapping import Bounds, LevelLoops, Loop, Mapping, MapSpace, violations
from tilewright.workload import Operator, convolution, matmul

ARCH = """\
architecture:
  version: 0.4
  nodes:
  - !Container
    name: Chip
    attributes: {technology: "45nm", global_cycle_seconds: 1e-9}
  - !Component
    name: MainMemory
    class: DRAM
    attributes: {width: 256, datawidth: 8}
  - !Component
    name: GlobalBuffer
    class: SRAM
    attributes: {depth: 32768, width: 64, datawidth: 8, read_bandwidth: 4}
    constraints:
      dataspace: {bypass: [Outputs]}
  - !Container
    name: PE
    spatial: {meshX: 4, meshY: 2}
    constraints:
      spatial: {permutation: [C, K], split: 1, factors: [R=1, P=1]}
  - !Parallel
    nodes:
    - !Component
      name: Weights_reg
      class: regfile
      attributes: {depth: 2*depth_unit, width: 8, datawidth: 8, depth_unit: 4}
      constraints:
        dataspace: {keep: [Weights]}
        temporal: {permutation: [R], factors: [K=1]}
    - !Component
      name: Others_reg
      class: regfile
      attributes: {depth: 64, width: 8, datawidth: 8}
      constraints:
        dataspace: {keep: [Inputs, Outputs]}
  - !Component
    name: MACC
    class: intmac
    attributes: {width: 8}
"""
PROBLEM = """\
problem:
  version: 0.4
  shape:
    name: Conv1D_OC
    dimensions: [C, K, R, P]
    coefficients:
    - {name: stride, default: 1}
    data_spaces:
    - name: Weights
      projection: [[[C]], [[K]], [[R]]]
    - name: Inputs
      projection: [[[C]], [[R], [P, stride]]]
    - name: Outputs
      projection: [[[K]], [[P]]]
      read_write: True
  instance: {C: 8, K: 4, R: 3, P: 12, stride: 2}
"""
MAPPING = """\
mapping:
- target: MainMemory
  type: temporal
  factors: P=3 K=2
  permutation: PKCR
- {target: GlobalBuffer, type: temporal, factors: C=2 R=1, permutation: CRKP}
- {target: PE, type: spatial, factors: C=4 K=2, permutation: CKRP, split: 1}
- {target: Weights_reg, type: temporal, factors: R=3, permutation: RCKP}
- {target: Others_reg, type: temporal, factors: P=0, permutation: PRCK}
- {target: GlobalBuffer, type: dataspace, keep: [Inputs], bypass: [Weights, Outputs]}
"""
ERT = """\
ERT:
  version: 0.4
  tables:
  - {name: "Chip.MainMemory[1..1]", actions: [{name: read, energy: 512.0}, {name: write, energy: 480.0},
     {name: update, energy: 490.0}]}
  - {name: "Chip.GlobalBuffer[1..1]", actions: [{name: read, energy: 16.0}, {name: write, energy: 8.0}]}
  - {name: "Chip.Weights_reg[1..8]", actions: [{name: read, energy: 0.5}, {name: write, energy: 0.25},
     {name: leak, energy: 0.125}]}
  - {name: "Chip.Others_reg[1..8]", actions: [{name: read, energy: 0.5}, {name: write, energy: 0.25}]}
  - {name: "Chip.MACC[1..8]", actions: [{name: compute, energy: 0.75}]}
"""
OLD_ARCH = """\
architecture:
  version: 0.3
  subtree:
  - name: System
    attributes: {technology: 45nm}
    local:
    - {name: MainMemory, class: DRAM, attributes: {width: 256, word-bits: 8, block-size: 32}}
    subtree:
    - name: Chip
      local:
      - {name: GlobalBuffer, class: SRAM, attributes: {entries: 4096, block-size: 4, word-bits: 8, meshX: 1}}
      subtree:
      - name: PE[0..7]
        local:
        - {name: RegisterFile, class: regfile, attributes: {entries: 64, width: 8, word-bits: 8, meshX: 4}}
        - {name: MACC, class: intmac, attributes: {datawidth: 8, meshX: 4}}
"""
OLD_MAPPING = """\
mapping:
- {target: MainMemory, type: temporal, factors: C=1 K=2 R=1 P=4, permutation: KPCR}
- {target: GlobalBuffer, type: temporal, factors: C=2 K=1 R=3 P=1, permutation: RCKP}
- {target: GlobalBuffer, type: spatial, factors: C=4 K=2 R=1 P=1, permutation: CKRP, split: 1}
- {target: RegisterFile, type: temporal, factors: C=1 K=1 R=1 P=3, permutation: PRCK}
- {target: RegisterFile, type: bypass, keep: [Weights, Inputs], bypass: [Outputs]}
"""
OLD_CONSTRAINTS = """\
mapspace_constraints:
  targets:
  - {target: RegisterFile, type: temporal, factors: R=1 K<=2, permutation: P}
  - {target: GlobalBuffer, type: spatial, factors: P=1, permutation: CK, split: 1}
  - {target: RegisterFile, type: bypass, bypass: [Outputs]}
"""


def test_a_problem_is_an_operator(read):
    operator = read(PROBLEM).operator
    assert operator.sizes == {"C": 8, "K": 4, "R": 3, "P": 12}
    assert [(tensor.name, tensor.role) for tensor in operator.tensors] == [
        ("Weights", "weights"), ("Inputs", "inputs"), ("Outputs", "outputs")]
    assert operator.tensor("Inputs").axes[1].terms == (("R", 1), ("P", 2))


def test_coefficients_of_a_term_multiply(read):
    operator = read(PROBLEM.replace("[P, stride]", "[P, stride, 3]")).operator
    assert operator.tensor("Inputs").axes[1].terms == (("R", 1), ("P", 6))


def test_an_architecture_is_an_accelerator(read):
    machine = read(ARCH, PROBLEM, ERT).accelerator
    assert [level.name for level in machine.levels] == ["MainMemory", "GlobalBuffer", "PE", "Weights_reg", "Others_reg"]
    assert machine.level("PE") == Fanout("PE", (4, 2))
    buffer, registers = machine.level("GlobalBuffer"), machine.level("Weights_reg")
    assert buffer.keeps == ("weights", "inputs") and registers.keeps == ("weights",)
    assert (buffer.capacity_bytes, registers.capacity_bytes) == (32768 * 8, 8)
    assert (buffer.bandwidth.read, buffer.bandwidth.write, buffer.buffering) == (4.0, None, "buffet")
    assert (buffer.energy.read_pj, buffer.energy.fill_pj, buffer.energy.update_pj) == (2.0, 1.0, 1.0)
    assert machine.level("MainMemory").energy.update_pj == pytest.approx(490 / 32)
    assert (machine.compute.energy_pj_per_mac, machine.frequency_mhz) == (0.75, 1000.0)
    assert registers.leakage_mw == 0.125


@pytest.mark.parametrize(("given", "words", "kind"), [
    ("", 32768 * 8, "buffet"), ("multiple_buffering: 1, ", 32768 * 8, "buffet"),
    ("multiple_buffering: 2, ", 32768 * 8, "double"), ("multiple_buffering: 4, ", 32768 * 2, "buffet")])
def test_a_buffer_in_several_parts_holds_a_tile_in_one_of_them(read, given, words, kind):
    """Of twice as many, each tile must fit twice; of others the tile has its share of the words."""
    found = read(ARCH.replace("{depth: 32768,", f"{{{given}depth: 32768,"), PROBLEM).accelerator.level("GlobalBuffer")
    assert (found.capacity_bytes, found.buffering) == (words, kind)


@pytest.mark.parametrize(("given", "ports"), [
    ("bandwidth: 6", (3.0, 3.0, None)),
    ("bandwidth: 6, write_bandwidth: 5", (3.0, 5.0, None)),
    ("shared_bandwidth: 6", (None, None, 6.0)),
    ("read_bandwidth: 6", (6.0, None, None)),
])
def test_a_bandwidth_of_both_ports_is_half_of_it_for_each(read, given, ports):
    """As the program reads it: `bandwidth` is that of reads and writes together, half for each."""
    machine = read(ARCH.replace("{width: 256, datawidth: 8}", f"{{width: 256, datawidth: 8, {given}}}"),
                   PROBLEM).accelerator
    found = machine.level("MainMemory").bandwidth
    assert (found.read, found.write, found.shared) == ports


def test_without_a_reference_table_energies_are_ours_and_noted(read):
    found = read(ARCH, PROBLEM)
    assert all(level.energy.read_pj > 0 for level in found.accelerator.memories)
    assert sum("energy of" in note.text and note.kind == "approximated" for note in found.notes) == 5
    with pytest.raises(InputError, match=r"architecture\.yaml:\d+ .*honoured in full"):
        read(ARCH, PROBLEM, strict=True)


def test_a_mapping_is_read_innermost_first_with_splits_and_bypass(read):
    found = read(ARCH, PROBLEM, MAPPING, ERT)
    assert str(found.mapping).splitlines() == [
        "MainMemory    [K: 2, P: 4]",
        "GlobalBuffer  [C: 4] keeps Inputs",
        "PE            [K@Y: 1, C@X: 1]",
        "Weights_reg   [R: 1]",
        "Others_reg    [P: 1]",
    ]
    assert violations(found.mapping, found.operator, found.accelerator) == ()


def test_constraints_at_nodes_bind_sides_orders_and_factors(read):
    constraints = read(ARCH, PROBLEM, ERT).constraints
    assert constraints.orders == {"Weights_reg": (("*", "R"),)}
    # R and P, which run once there, come before C and K: so the front end reads a split.
    assert constraints.factors["PE.X"] == dict.fromkeys("CKRP", Bounds(1, 1))
    assert constraints.factors["PE.Y"] == dict.fromkeys("RP", Bounds(1, 1))
    assert constraints.factors["Weights_reg"] == {"K": Bounds(1, 1)}


def test_version_0_3_with_subtrees_and_counted_names(read):
    found = read(OLD_ARCH, PROBLEM, OLD_MAPPING, OLD_CONSTRAINTS)
    machine, mapping = found.accelerator, found.mapping
    assert machine.level("GlobalBuffer_fanout").shape == (4, 2)
    assert machine.level("RegisterFile").capacity_bytes == 64
    assert machine.level("GlobalBuffer").capacity_bytes == 4096
    assert [str(loop) for loop in mapping.at("GlobalBuffer_fanout").loops] == ["K@Y: 1", "C@X: 1"]
    assert mapping.at("RegisterFile").keeps == ("Weights", "Inputs")
    assert found.constraints.keeps == {"RegisterFile": ("Inputs", "Weights")}
    assert found.constraints.factors["RegisterFile"] == {"R": Bounds(1, 1), "K": Bounds(1, 2)}
    assert found.constraints.factors["GlobalBuffer_fanout.Y"]["C"] == Bounds(1, 1)


def test_remainders_are_what_the_size_leaves(read):
    ragged = PROBLEM.replace("P: 12", "P: 11")
    mapping = MAPPING.replace("P=3 K=2", "P=3,3 K=2").replace("P=0", "'P=4,3'")
    found = read(ARCH, ragged, mapping, ERT)
    assert [str(loop) for loop in found.mapping.at("MainMemory").loops] == ["K: 2", "P: 4"]
    with pytest.raises(InputError, match="remainder of P that its size 11 leaves, 3; Got 2"):
        read(ARCH, ragged, mapping.replace("P=4,3", "P=4,2"), ERT)


def test_timeloops_own_counts_of_a_small_nest(read):
    """Exercise 02 of Timeloop's tutorial: 16 positions, 3 taps, 32 channels, two memories; its published counts."""
    arch = """\
architecture:
  version: 0.4
  nodes:
  - !Component {name: MainMemory, class: SRAM, attributes: {depth: 32768, width: 64, datawidth: 8}}
  - !Component {name: Buffer, class: regfile, attributes: {depth: 64, width: 8, datawidth: 8}}
  - !Component {name: MACC, class: intmac, attributes: {width: 8}}
"""
    problem = PROBLEM.replace("C: 8, K: 4, R: 3, P: 12, stride: 2", "C: 1, K: 32, R: 3, P: 16")
    mapping = """\
mapping:
- {target: MainMemory, type: temporal, factors: R=1 P=16 K=32, permutation: RPK}
- {target: Buffer, type: temporal, factors: R=3 P=1 K=1, permutation: RPK}
"""
    found = read(arch, problem, mapping)
    counts = replay(found.operator, found.accelerator, found.mapping, TIMELOOP).counts
    assert replay(found.operator, found.accelerator, found.mapping, TIMELOOP).cycles == 1536
    assert counts["Buffer", "Weights"].fills == 96
    assert counts["MainMemory", "Outputs"].updates == 512


@pytest.mark.sample(2)
@pytest.mark.parametrize("machine", ["eyeriss", "edge-s1", "simba-like", "tpu-like", "nvdla-like"])
def test_what_is_written_is_read_back_and_costs_the_same_words(machine, tmp_path):
    operator = convolution("conv", in_channels=12, out_channels=20, kernel=3, out_size=10, stride=2)
    space = MapSpace(operator, preset(machine), "ruby")
    batch = space.sample(np.random.default_rng(4), 5)
    for index in range(5):
        mapping = batch.mapping(index, operator.sizes)
        made = dump_timeloop(operator, preset(machine), mapping)
        paths = []
        for name, text in made.files.items():
            (tmp_path / name).write_text(text)
            paths.append(tmp_path / name)
        back = load_timeloop(paths)
        assert back.operator.tensors == operator.tensors and back.operator.sizes == operator.sizes
        again = dump_timeloop(back.operator, back.accelerator, back.mapping, back.constraints)
        for name, text in again.files.items():
            (tmp_path / name).write_text(text)
        assert load_timeloop([tmp_path / name for name in again.files]) == back


@pytest.mark.parametrize("dump", [dump_timeloop, dump_program])
def test_blocks_and_clusters_behind_an_array_come_back(dump, tmp_path):
    machine = preset("edge-s1")
    grained = replace(machine, levels=tuple(
        replace(level, access_grain=(4, 8)) if level in machine.memories[1:] and machine.instances(level.name) > 1
        else level
        for level in machine.levels))
    made = dump(matmul("product", m=4, n=4, k=4), grained)
    for name, text in made.files.items():
        (tmp_path / name).write_text(text)
    back = load_timeloop([tmp_path / name for name in made.files]).accelerator
    behind = [memory for memory in back.memories if back.instances(memory.name) > 1]
    assert behind
    for memory in behind:
        assert memory.access_grain == (4, 8)
        assert memory.energy.read_pj == pytest.approx(grained.level(memory.name).energy.read_pj)
        assert memory.capacity_bytes == grained.level(memory.name).capacity_bytes // 4 * 4


@pytest.mark.parametrize("sides", ["XY", "YX"])
def test_a_dimension_on_both_sides_is_written_in_its_order(sides):
    outer, inner = sides
    loops, array = (Loop("M", 4, outer), Loop("M", 1, inner)), preset("edge-s1").fanouts[0].name
    mapping = Mapping(tuple(LevelLoops(level.name, loops if level.name == array else ())
                            for level in preset("edge-s1").levels))
    text = dump_program(matmul("product", m=8, n=1, k=1), preset("edge-s1"), mapping).files["mapping.yaml"]
    spread = [entry for entry in YAML(typ="safe", pure=True).load(text)["mapping"] if entry["type"] == "spatial"]
    assert [(entry["target"], entry["factors"].split()[1]) for entry in spread] == [
        (f"inter_{array}_{outer}_spatial", "M=2"), (f"inter_{array}_{inner}_spatial", "M=4")]


@pytest.mark.parametrize("dump", [dump_timeloop, dump_program])
def test_what_a_machine_makes_of_zeros_is_written_and_read_back(dump, tmp_path):
    operator, machine = matmul("product", m=4, n=4, k=4), preset("accel-b-sparse")
    tensors = tuple(replace(tensor, density=0.5, structure=(2, 4) if tensor.role == "weights" else None)
                    if tensor.role != "outputs" else tensor for tensor in operator.tensors)
    operator = Operator(operator.name, operator.kind, operator.dimensions, tensors)
    made = dump(operator, machine)
    for name, text in made.files.items():
        (tmp_path / name).write_text(text)
    back = load_timeloop([tmp_path / name for name in made.files])
    assert set(back.accelerator.sparsity.formats) == set(machine.sparsity.formats)
    assert set(back.accelerator.sparsity.elisions) == set(machine.sparsity.elisions)
    zeros = {tensor.role: (tensor.density, tensor.even) for tensor in back.operator.tensors}
    assert zeros == {"inputs": (0.5, False), "weights": (0.5, True), "outputs": (1.0, False)}
    assert any("2:4 as a fixed structure" in note.text for note in made.notes)


def test_remainders_are_told_where_the_front_end_writes_and_not_where_the_program_reads():
    operator, machine = matmul("product", m=11, n=1, k=1), preset("tpu-like")
    space = MapSpace(operator, machine, "ruby")
    for index in range(200):
        mapping = space.sample(np.random.default_rng(index), 1).mapping(0, operator.sizes)
        made = dump_timeloop(operator, machine, mapping)
        if any("remainders" in note.text for note in made.notes):
            other = dump_program(operator, machine, mapping)
            assert not any("remainders" in note.text for note in other.notes)
            assert re.search(r"M=\d+,\d+", other.files["mapping.yaml"])
            return
    raise AssertionError("no mapping with remainders was drawn")


def test_steps_that_do_not_divide_cannot_be_written():
    operator, machine = matmul("product", m=12, n=1, k=1), preset("edge-s1")
    space = MapSpace(operator, machine)
    for index in range(200):
        mapping = space.sample(np.random.default_rng(index), 1).mapping(0, operator.sizes)
        steps = [loop.step for entry in mapping.levels for loop in entry.loops]
        if len(steps) == 3 and steps[0] % steps[1]:
            with pytest.raises(InputError, match="steps that divide one another"):
                dump_timeloop(operator, machine, mapping)
            return
    raise AssertionError("no ragged mapping was drawn")


EDITS = [
    (ARCH, "version: 0.4\n  nodes:", "version: 0.4\n  boxes:", "must have nodes"),
    (ARCH, "name: MainMemory", "title: MainMemory", "must have a name"),
    (ARCH, "name: GlobalBuffer", "name: MainMemory", "must have a name of its own"),
    (ARCH, "depth: 32768", "depth: -1", "depth: must be positive; Got -1"),
    (ARCH, "depth: 32768", "depth: deep", "must be a number or an expression"),
    (ARCH, "depth: 32768", "depth: 2**9999", "must be a number or an expression"),
    (ARCH, "depth: 32768", "depth: [1]", "must be a finite number"),
    (ARCH, "2*depth_unit", "2*unit", "cannot read 'unit'"),
    (ARCH, "meshX: 4", "meshX: 0", "must be a whole number of at least 1; Got 0"),
    (ARCH, "meshX: 4", "meshX: 1.5", "must be a whole number"),
    (ARCH, "1e-9", "0", "must have positive global_cycle_seconds"),
    (ARCH, "bypass: [Outputs]", "bypass: [Output]", "must be among Weights, Inputs, Outputs; Got 'Output'"),
    (ARCH, "permutation: [C, K]", "permutation: [C, C]", "at most once, innermost first"),
    (ARCH, "factors: [R=1, P=1]", "factors: [R=1, S=1]", "must be factors of C, K, R, P; Got 'S=1'"),
    (ARCH, "attributes: {width: 256, datawidth: 8}", "attributes: 8", "must be fields and values; Got 8"),
    (PROBLEM, "dimensions: [C, K, R, P]", "dimensions: [C, K, R]", "must be a dimension, and coefficients"),
    (PROBLEM, "dimensions: [C, K, R, P]", "dimensions: [C, K, R, R]", "must be distinct names"),
    (PROBLEM, "C: 8,", "", "must give the size of C"),
    (PROBLEM, "C: 8", "C: 0", "must be a whole number of at least 1; Got 0"),
    (PROBLEM, "C: 8", "C: many", "must be a number"),
    (PROBLEM, "read_write: True", "read_write: False", "exactly one data space that is read_write; Got 0"),
    (PROBLEM, "[P, stride]", "[P, step]", "must be a dimension, and coefficients"),
    (PROBLEM, "[[C]], [[R], [P, stride]]", "[[C]], [[R], [P], [K]]", "sum of one or two dimensions"),
    (PROBLEM, "shape:\n    name", "form:\n    name", "shape: must be fields and values"),
    (PROBLEM, "projection: [[[K]], [[P]]]", "projection: K P", "must be a list"),
    (PROBLEM, "stride: 2", "stride: 2, densities: {Weights: 2}", "must be above 0 and at most 1"),
    (MAPPING, "target: MainMemory", "goal: MainMemory", "must have a target"),
    (MAPPING, "target: MainMemory", "target: Main", "must be one of MainMemory, GlobalBuffer, PE"),
    (MAPPING, "type: spatial", "type: special", "must be temporal, spatial, dataspace"),
    (MAPPING, "P=3 K=2", "P=3 K=2 Z=2", "must be factors of C, K, R, P; Got 'Z=2'"),
    (MAPPING, "P=3 K=2", "P=3 P=1", "must give P once"),
    (MAPPING, "P=3 K=2", "P=three", "must be factors such as R=3 P=16"),
    (MAPPING, "P=3 K=2", "P=5 K=3", "must make up K, of size 4"),
    (MAPPING, "C=4 K=2", "C=4 K=2 P=0", "must leave the factor of P open once only"),
    (MAPPING, "permutation: PKCR", "permutation: PKCX", "at most once, innermost first; Got 'PKCX'"),
    (MAPPING, "split: 1", "split: -1", "must be a whole number of at least 0"),
    (MAPPING, "target: Weights_reg", "target: Others_reg", "must be the only temporal directive of Others_reg"),
    (MAPPING, "target: PE, type: spatial", "target: PE, type: temporal", "must not loop at PE, which is an array"),
    (MAPPING, "keep: [Inputs]", "keep: Inputs", "must be a list; Got 'Inputs'"),
    (ERT, "energy: 16.0", "energy: high", "must be a number or an expression"),
    (ERT, "{name: read, energy: 16.0}", "{name: look, energy: 16.0}", "must have the action read"),
    (ERT, "name: compute", "name: add", "must have the action compute"),
    (ERT, "tables:", "table:", "tables: must be a list"),
    (ERT, 'name: "Chip.MainMemory[1..1]"', "energies: 1", "must have a name"),
    (OLD_ARCH, "PE[0..7]", "PE[7..0]", "a range that does not run backwards"),
    (OLD_ARCH, "entries: 64", "entries: -4", "must be positive"),
    (OLD_ARCH, "word-bits: 8, meshX: 1", "word-bits: x, meshX: 1", "must be a number"),
    (OLD_ARCH, "    local:\n    - {name: MainMemory", "    local:\n    - {title: MainMemory", "must have a name"),
    (ARCH, "architecture:", "architecture: [", "must be YAML"),
    (PROBLEM, "problem:", "puzzle:", "must hold one of architecture, problem"),
]


@pytest.mark.parametrize(("text", "old", "new", "message"), EDITS)
def test_wrong_files_are_named_with_file_and_line(read, tmp_path, text, old, new, message):
    assert old in text
    old_style = text in (OLD_ARCH, OLD_MAPPING)
    texts = [OLD_ARCH, PROBLEM, OLD_MAPPING] if old_style else [ARCH, PROBLEM, MAPPING, ERT]
    texts[texts.index(text)] = text.replace(old, new, 1)
    with pytest.raises(InputError) as error:
        read(*texts)
    assert message in str(error.value)
    assert ".yaml:" in str(error.value) or "ERT." in str(error.value)


@pytest.mark.parametrize("dump", [dump_timeloop, dump_program])
def test_partitions_leak_and_cover_together_what_the_whole_memory_does(dump):
    one = preset("edge-s1")
    split = replace(one.memories[1], partitions_bytes=(("inputs", 512.0), ("weights", 256.0)), area_um2=900.0,
                    leakage_mw=3.0)
    machine = replace(one, levels=tuple(split if level.name == split.name else level for level in one.levels))
    files = dump(matmul("product", m=8, n=4, k=4), machine, None).files
    tables = [YAML().load(text) for text in files.values()]
    leaks, areas = ({entry["name"]: entry for tree in tables if key in tree for entry in tree[key]["tables"]
                     if f".{split.name}" in entry["name"]} for key in ("ERT", "ART"))
    assert len(leaks) == len(areas) == 3
    leaked = sum(action["energy"] for entry in leaks.values() for action in entry["actions"]
                 if action["name"] == "leak")
    assert leaked == pytest.approx(3.0 * 1e3 / one.frequency_mhz)
    assert sum(entry["area"] for entry in areas.values()) == pytest.approx(900.0)


def test_files_that_are_missing_or_double_are_named(read, tmp_path):
    with pytest.raises(InputError, match="must be an existing file"):
        load_timeloop([tmp_path / "none.yaml"])
    (tmp_path / "a.yaml").write_text(PROBLEM)
    (tmp_path / "b.yaml").write_text(PROBLEM)
    with pytest.raises(InputError, match=r"b\.yaml:1 problem: must be given once; the first stands at a\.yaml:1"):
        load_timeloop([tmp_path / "a.yaml", tmp_path / "b.yaml"])
    with pytest.raises(InputError, match="must come with its architecture and problem"):
        read(MAPPING)


def test_templates_include_text_of_other_files(tmp_path):
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "problem.yaml").write_text(PROBLEM)
    top = tmp_path / "top.yaml"
    top.write_text("{{add_to_path('parts')}}\n{{include_text('problem.yaml')}}\n")
    assert load_timeloop([top]).operator.name == "Conv1D_OC"
    top.write_text("{{include_text('none.yaml')}}\n")
    with pytest.raises(InputError, match="must include files that exist"):
        load_timeloop([top])

"""How Timeloop's front end parts the loops of an array, and the same design as it hands it on to the program."""

import pytest

from tilewright.base import InputError
from tilewright.interop import dump_timeloop, load_timeloop
from tilewright.mapping import Bounds, Constraints, MappingBatch, MapSpace, violations

PROBLEM = """\
problem:
  shape:
    name: conv
    dimensions: [C, M, R, N, P]
    data_spaces:
    - {name: Weights, projection: [[[C]], [[M]], [[R]]]}
    - {name: Inputs, projection: [[[N]], [[C]], [[R], [P]]]}
    - {name: Outputs, projection: [[[N]], [[M]], [[P]]], read_write: true}
  instance: {C: 4, M: 8, R: 3, N: 1, P: 6}
"""
SOURCE = """\
architecture:
  version: 0.4
  nodes:
  - !Container {name: system, attributes: {technology: 45nm}}
  - !Component {name: DRAM, class: DRAM, attributes: {width: 64, datawidth: 8}}
  - !Component {name: glb, class: SRAM, attributes: {depth: 4096, width: 8, datawidth: 8}}
  - !Container {name: PE, spatial: {meshX: 4, meshY: 16},
                constraints: {spatial: {permutation: [C, M], split: 1, factors: [R=1, P=1]}}}
  - !Component {name: spad, class: regfile, attributes: {depth: 64, width: 8, datawidth: 8},
                constraints: {dataspace: {keep: [Outputs], bypass: [Inputs, Weights]},
                              temporal: {permutation: [R, P], factors: [C=1]}}}
  - !Component {name: mac, class: intmac, attributes: {width: 8}}
"""
PROGRAM = """\
architecture:
  version: 0.3
  subtree:
  - name: system
    attributes: {technology: 45nm}
    local:
    - {name: "DRAM[1..1]", class: DRAM, attributes: {width: 64, datawidth: 8, meshX: 1, meshY: 1}}
    - {name: "glb[1..1]", class: SRAM, attributes: {depth: 4096, width: 8, datawidth: 8, meshX: 1, meshY: 1}}
    - {name: "inter_PE_spatial[1..1]", class: dummy_storage, attributes: {meshX: 1, meshY: 1}}
    - {name: "spad[1..64]", class: regfile, attributes: {depth: 64, width: 8, datawidth: 8, meshX: 4, meshY: 16}}
    - {name: "mac[1..64]", class: intmac, attributes: {width: 8, meshX: 4, meshY: 16}}
"""
HANDED_ON = """\
architecture_constraints:
  targets:
  - {target: DRAM, type: temporal, permutation: N}
  - {target: glb, type: temporal, permutation: N}
  - {target: inter_PE_spatial, type: spatial, permutation: NPRCM, split: 1, factors: "R=1,P=1"}
  - {target: inter_PE_spatial, type: temporal, permutation: CMRNP, factors: "C=1,M=1,R=1,N=1,P=1"}
  - {target: inter_PE_spatial, type: bypass, bypass: [Weights, Inputs, Outputs]}
  - {target: spad, type: bypass, keep: [Outputs], bypass: [Inputs, Weights]}
  - {target: spad, type: temporal, permutation: NCRP, factors: C=1}
"""
FOUND = """\
mapping:
- {target: DRAM, type: temporal, factors: M=1 C=1 P=2}
- {target: glb, type: temporal, factors: M=2 P=1}
- {target: glb, type: bypass, keep: [Inputs, Weights], bypass: [Outputs]}
- {target: inter_PE_spatial, type: spatial, factors: C=4 M=4, permutation: NPRCM, split: 1}
- {target: spad, type: temporal, factors: R=3 P=3, permutation: RPCMN}
- {target: spad, type: bypass, keep: [Outputs], bypass: [Inputs, Weights]}
"""


def test_a_source_and_what_the_front_end_hands_on_read_alike_and_hold_the_mapping_found(read):
    source, program = read(SOURCE, PROBLEM, FOUND), read(PROGRAM, HANDED_ON, PROBLEM, FOUND)
    assert source.constraints.factors == program.constraints.factors
    assert source.constraints.factors["PE.X"] == dict.fromkeys("CMRP", Bounds(1, 1))
    assert [entry.loops for entry in source.mapping.levels] == [entry.loops for entry in program.mapping.levels]
    sizes = []
    for found in (source, program):
        assert violations(found.mapping, found.operator, found.accelerator) == ()
        space = MapSpace(found.operator, found.accelerator, "perfect", found.constraints)
        batch = MappingBatch.from_mappings([found.mapping], found.operator, found.accelerator)
        assert space.contains(batch).all()
        assert space.fits(batch).all()
        sizes.append(space.size().mappings)
    assert sizes[0] == sizes[1]


def test_the_program_itself_takes_permutations_as_they_are(read):
    found = read(PROGRAM, HANDED_ON.replace("NPRCM", "CM"), PROBLEM).constraints
    assert found.factors["PE.X"]["M"] == Bounds(1, 1)
    assert "C" not in found.factors["PE.X"]
    assert found.factors["PE.Y"]["C"] == Bounds(1, 1)


@pytest.mark.parametrize(("split", "barred"), [(0, "PE.X"), (1, "PE.X"), (5, "PE.Y"), (999, "PE.Y")])
def test_what_no_permutation_names_lies_behind_the_rest(read, split, barred):
    text = SOURCE.replace("permutation: [C, M], split: 1, factors: [R=1, P=1]", f"permutation: [C], split: {split}")
    found = read(text, PROBLEM).constraints.factors
    assert found[barred]["M"] == found[barred]["P"] == Bounds(1, 1)
    assert "M" not in found.get("PE.Y" if barred == "PE.X" else "PE.X", {})


def test_a_split_among_what_no_permutation_names_is_told(read):
    text = SOURCE.replace("permutation: [C, M], split: 1, factors: [R=1, P=1]", "permutation: [C], split: 3")
    found = read(text, PROBLEM)
    assert any("split" in note.where and note.kind == "approximated" for note in found.notes)
    assert "M" not in found.constraints.factors.get("PE.X", {}) | found.constraints.factors.get("PE.Y", {})


def test_what_stands_at_a_node_and_apart_is_one_directive(read):
    apart = "constraints:\n  targets:\n  - {target: PE, type: spatial, factors: [M=8]}\n"
    found = read(SOURCE, PROBLEM, apart).constraints.factors
    assert found["PE.Y"]["M"] == Bounds(8, 8)
    assert found["PE.X"]["M"] == Bounds(1, 1)
    one = "constraints:\n  targets:\n  - {target: PE, type: spatial, factors: [C=1]}\n"
    assert read(SOURCE, PROBLEM, one).constraints.factors["PE.Y"]["C"] == Bounds(1, 1)
    for wrong, message in (("split: 2", "must be 1 as in architecture.yaml:8"), ("factors: [R=3]", "must give R as in"),
                           ("permutation: [M, C]", r"must be \('C', 'M'\) as in")):
        with pytest.raises(InputError, match=message):
            read(SOURCE, PROBLEM, f"constraints:\n  targets:\n  - {{target: PE, type: spatial, {wrong}}}\n")


def test_what_a_mapping_keeps_holds_in_the_space_of_its_design(read):
    found = read(SOURCE, PROBLEM, FOUND)
    assert found.constraints.keeps["glb"] == ("Inputs", "Weights")
    assert any("what glb keeps, which is open: " in note.text for note in found.notes)
    assert "glb" not in read(SOURCE, PROBLEM).constraints.keeps


def test_constraints_that_are_written_are_read_back_with_the_same_sides(read, tmp_path):
    found = read(SOURCE, PROBLEM)
    asked = {"PE.X": dict.fromkeys("MRNP", Bounds(1, 1)), "PE.Y": dict.fromkeys("CRNP", Bounds(1, 1))}
    made = dump_timeloop(found.operator, found.accelerator, constraints=Constraints(factors=asked))
    again = load_timeloop(made.write(tmp_path / "written"))
    assert {place: {name: bounds for name, bounds in given.items() if bounds.most == 1}
            for place, given in again.constraints.factors.items()} == asked

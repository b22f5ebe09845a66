"""ZigZag's files: what they say, figures of the program itself, and what is refused."""

import json
from functools import partial
from pathlib import Path

import pytest
from read_texts import read_texts

import tilewright as tw
from tilewright.base import InputError
from tilewright.cost import cost_model
from tilewright.hardware import Bandwidth
from tilewright.interop import format_of
from tilewright.mapping import Bounds, Loop, violations

FIGURES = json.loads((Path(__file__).parent / "zigzag_figures.json").read_text(encoding="utf-8"))
MACHINES, LAYERS = FIGURES["machines"], FIGURES["layers"]
"""Small files of ours, and what ZigZag (see ``source``) counts of them; ``moves`` are elements to the memory below,
from that above, from below, to above, and their energy. ``benchmarks/foreign_tools.py`` records them."""
FREE = "- name: default\n  spatial_mapping:\n    D1: ['K, 4']\n    D2: ['C, 4']\n"
STARTS, STAYS, UNEVEN = (
    "only the first accumulation of a word, over all lanes, starts from zero; here that of every lane does",
    "a word that the next operation needs again is not read from the innermost memory again; here it is",
    "a loop stands at another memory for each tensor; here one nest is for all, and neighbours in it share less")
"""Why ZigZag counts otherwise. Besides, its energy of outputs has the first partial sums and those of every lane, which
its counts lack, and it rounds what one transfer moves up to the least bits of a port (``grained``)."""
RULE_OF = {("", "oreg.O", 0): STARTS, ("", "wreg.W", 0): STAYS,
           ("rows", "buffer.I", 0): UNEVEN}
"""By machine (any where empty), memory and tensor, and place in ``moves``: the rule behind counts that differ."""
read = partial(read_texts, "zigzag")


def test_a_machine_is_a_chain_of_memories_and_arrays(tmp_path):
    machine = read(tmp_path, MACHINES["stationary"]).accelerator
    assert [level.name for level in machine.levels] == ["main", "buffer", "D1xD2", "wreg", "oreg"]
    main, buffer, array, wreg, oreg = machine.levels
    assert (array.shape, machine.compute.energy_pj_per_mac) == ((4, 4), 0.5)
    assert (main.keeps, buffer.keeps, wreg.keeps) == (
        ("inputs", "weights", "outputs"), ("inputs", "outputs"), ("weights",))
    assert (buffer.capacity_bytes, wreg.capacity_bytes, oreg.word_bits) == (2**15, 16, 16)
    assert (main.bandwidth, buffer.bandwidth) == (Bandwidth(shared=8), Bandwidth(8, 8))
    assert buffer.energy.read_pj == 8 / 64 * 8 and buffer.energy.fill_pj == 9 / 64 * 8


def test_a_memory_serves_lanes_of_an_array_outside_it_where_memories_cross(tmp_path):
    found = read(tmp_path, MACHINES["crossed"])
    names = [level.name for level in found.accelerator.levels]
    assert names == ["main", "buffer", "wbuf", "D1xD3", "oreg", "D2", "wreg"]
    assert found.accelerator.level("wreg").energy.read_pj == 0.16
    assert found.accelerator.level("wreg").shared == ("D1xD3.y",)


def test_the_form_of_2024_says_the_same(tmp_path):
    def old(name, bits, width, operands, served, ports):
        return (f"  {name}: {{size: {bits}, r_bw: {width}, w_bw: {width}, r_cost: 1, w_cost: 2, area: 0, latency: 1, "
                f"r_port: 1, w_port: 1, rw_port: 0, operands: {operands}, ports: [{ports}], "
                f"served_dimensions: {served}, min_r_granularity: 8}}\n")

    memories = (old("reg", 64, 16, "[I2]", "[]", "{fh: w_port_1, tl: r_port_1}")
                + old("main", 10**9, 64, "[I1, I2, O]", "[D1, D2]", "{fh: rw_port_1, tl: rw_port_1}, {fh: rw_port_1, "
                      "tl: rw_port_1}, {fh: rw_port_1, tl: rw_port_1, fl: rw_port_1, th: rw_port_1}"))
    machine = read(tmp_path, f"name: m\nmemories:\n{memories}operational_array: {{multiplier_energy: 0.1, "
                             "multiplier_area: 1, dimensions: [D1, D2], sizes: [2, 8]}\n").accelerator
    assert machine.level("reg").bandwidth == Bandwidth(2, 2)
    assert machine.level("main").bandwidth == Bandwidth(shared=8)
    assert (machine.level("main").energy.read_pj, machine.compute.energy_pj_per_mac) == (1 / 8, 0.1)


def test_several_ports_of_a_memory_move_their_bits_together_at_the_cost_of_the_narrowest(tmp_path):
    machine = read(tmp_path, """\
name: m
memories:
  main:
    {size: 8000000, r_cost: 1, w_cost: 2, area: 0, latency: 1, operands: [I1, I2, O], served_dimensions: [D1], ports: [
      {name: rw_port_1, type: read_write, bandwidth_min: 8, bandwidth_max: 64, allocation:
        ["I1, tl", "I1, fh", "I2, fh", "O, tl", "O, fh", "O, fl", "O, th"]},
      {name: r_port_1, type: read, bandwidth_min: 8, bandwidth_max: 32, allocation: ["I2, tl"]}]}
operational_array: {unit_energy: 0.5, unit_area: 1, dimensions: [D1], sizes: [4]}
""").accelerator
    main = machine.level("main")
    assert main.bandwidth == Bandwidth(shared=8 + 4)
    assert (main.energy.read_pj, main.energy.fill_pj) == (1 * 8 / 32, 2 * 8 / 64)


def test_energies_left_to_cacti_come_from_our_tables(tmp_path):
    left = MACHINES["stationary"].replace("r_cost: 8\n", "r_cost: null\n")
    found = read(tmp_path, left.replace("w_cost: 9\n", "auto_cost_extraction: true\n"))
    assert found.accelerator.level("buffer").energy.read_pj > 0
    assert any("45nm table" in note.text for note in found.notes)


def test_the_last_of_equal_keys_counts(tmp_path):
    text = MACHINES["stationary"].replace("name: stationary\n", "name: first\nname: second\n")
    assert read(tmp_path, text).accelerator.name == "second"


def test_a_workload_is_a_network_with_vector_work(tmp_path):
    text = LAYERS["strided"] + """\
- id: 1
  operator_type: Add
  equation: O[b][g][oy][ox]=W[b][g][oy][ox]+I[b][g][oy][ox]
  loop_dims: [B, G, OY, OX]
  loop_sizes: [1, 8, 6, 6]
  operand_precision: {W: 8, I: 8, O: 16, O_final: 8}
  operand_source: {W: 0, I: 0}
"""
    found = read(tmp_path, text)
    conv, add = found.graph.nodes
    assert conv.operator.sizes == {"N": 1, "K": 8, "C": 8, "P": 6, "Q": 6, "R": 3, "S": 3}
    assert conv.operator.tensor("I").axes[2].terms == (("P", 2), ("R", 1))
    assert (add.name, add.kind, add.operations, add.read_words, add.inputs) == ("Layer1", "add", 288, 576, ("conv",))
    assert (add.word_bits, found.notes) == (8, ())


def test_partial_sums_are_as_wide_as_o_and_outputs_as_o_final(tmp_path):
    text = LAYERS["fc"].replace("O_final: 16", "O_final: 8")
    assert text != LAYERS["fc"]
    output = read(tmp_path, text).graph.nodes[0].operator.output
    assert (output.word_bits, output.partial_bits) == (8, 16)


def test_as_many_loops_stand_at_a_memory_as_fit_to_the_last_bit(tmp_path):
    triple = FIGURES["triples"][0]
    texts = [MACHINES["stationary"], LAYERS["fc"], triple["mapping"]]
    assert read(tmp_path, *texts).mapping.at("oreg").loops == (Loop("C", 1),)
    texts[0] = texts[0].replace("size: 16\n", "size: 15\n")
    found = read(tmp_path, *texts)
    assert found.mapping.at("oreg").loops == ()
    assert [violation.level for violation in violations(found.mapping, found.operator, found.accelerator)] == ["oreg"]


def test_spatial_loops_are_constraints_where_no_order_is_given(tmp_path):
    found = read(tmp_path, MACHINES["stationary"], LAYERS["fc"], FREE)
    assert not found.mappings
    assert found.constraints.factors["D1xD2.X"] == {"K": Bounds(4, 4), "N": Bounds(1, 1), "C": Bounds(1, 1)}
    hinted = FREE.replace("spatial_mapping:\n    D1: ['K, 4']\n    D2: ['C, 4']", "spatial_mapping_hint: {D1: [K]}")
    assert read(tmp_path, MACHINES["stationary"], LAYERS["fc"], hinted).constraints.loops == {"D1xD2.X": ("K",)}


def test_a_star_takes_what_is_left_and_an_open_order_is_told(tmp_path):
    order = FREE + "  temporal_ordering: [[C, '*'], [B, '*'], [K, '*']]\n"
    found = read(tmp_path, MACHINES["stationary"], LAYERS["fc"], order)
    assert not violations(found.mapping, found.operator, found.accelerator)
    left = read(tmp_path, MACHINES["stationary"], LAYERS["fc"], order.replace("[K, '*']", "[K, 2]"))
    assert left.mapping is None and any("leaves open K 4" in note.text for note in left.notes)


@pytest.mark.parametrize("number", range(len(FIGURES["triples"])))
def test_counts_and_energies_are_those_of_zigzag_but_for_named_rules(number, tmp_path):
    triple = FIGURES["triples"][number]
    found = read(tmp_path, MACHINES[triple["machine"]], LAYERS[triple["layer"]], triple["mapping"])
    assert not violations(found.mapping, found.operator, found.accelerator)
    cost = cost_model(found.operator, found.accelerator).cost(found.mapping)
    assert cost.steps == triple["cycles"]["ideal"]
    told = set()
    for (memory, tensor), count in cost.counts.items():
        *moves, energy = triple["moves"][f"{memory}.{tensor}"]
        ours = (count.reads, count.fills, count.updates, count.drains)
        for at in (at for at in range(4) if ours[at] != moves[at]):
            counted = f"{memory}.{tensor}", at
            rule = RULE_OF.get((triple["machine"], *counted)) or RULE_OF["", *counted]
            told.add(rule)
        level, written = found.accelerator.level(memory), found.operator.tensor(tensor)
        if memory == "oreg":
            continue
        firsts = written.words(found.operator.sizes) if written.is_output else 0
        charged = [moved + firsts * (moved > 0) * (at < 2) for at, moved in enumerate(moves)]
        spent = sum(words * pj for words, pj in zip(charged, vars(level.energy).values(), strict=True))
        spent *= written.word_bits / level.word_bits
        assert spent <= energy * 1.001
        assert triple["machine"] == "grained" or spent == pytest.approx(energy, rel=1e-3)
    assert cost.energy_pj == pytest.approx(triple["energy_pj"], rel=0.12 if STAYS in told else 0.05)
    assert cost.latency_cycles == pytest.approx(triple["cycles"]["total"], rel=0.25)


def test_a_mapping_is_evaluated_with_its_files(tmp_path):
    triple = FIGURES["triples"][0]
    for name, text in (("machine", MACHINES["stationary"]), ("layer", LAYERS["fc"]), ("mapping", triple["mapping"])):
        (tmp_path / f"{name}.yaml").write_text(text)
    machine, layer, mapping = (str(tmp_path / f"{name}.yaml") for name in ("machine", "layer", "mapping"))
    assert [format_of(path).name for path in (machine, layer, mapping)] == ["zigzag"] * 3
    found = tw.evaluate(mapping, layer, machine)
    assert found.legal
    assert found.cost == tw.evaluate(mapping, None, f"{machine},{layer}").cost
    with pytest.raises(InputError, match="must come with a machine and a network in files of zigzag"):
        tw.evaluate(mapping, layer, "eyeriss")


MAPPED = FIGURES["triples"][0]["mapping"]
MALFORMED = {
    "compute in memory": (0, "unit_energy: 0.5", "unit_energy: 0.5\n  is_imc: true", "is_imc: must be false"),
    "no size": (0, "    size: 128\n", "", "memories.wreg: must have size"),
    "size of a word": (0, "size: 128", "size: many", "memories.wreg.size: must be a number"),
    "unknown operand": (0, "operands: [I2]", "operands: [I3]", "operands: must be distinct names among I1, I2, O"),
    "no operand": (0, "operands: [I2]", "operands: []", "must name at least one operand"),
    "unknown lanes": (0, "served_dimensions: [D1, D2]", "served_dimensions: [D9]", "must be distinct names among D1"),
    "a lane less": (0, "sizes: [4, 4]", "sizes: [4]", "must be one size for each of the array's dimensions"),
    "kind of port": (0, "type: read\n", "type: rd\n", "type: must be one of read, write, read_write"),
    "reads that write": (0, '"I2, tl"', '"I2, fh"', "such as I2, tl"),
    "more least than most": (0, "bandwidth_min: 8\n", "bandwidth_min: 800\n", "must not be above bandwidth_max"),
    "negative energy": (0, "r_cost: 0.1", "r_cost: -1", "r_cost: must not be negative"),
    "inner memory outermost": (0, "operands: [I1, I2, O]\n    served_dimensions: [D1, D2]",
                               "operands: [I1, I2, O]\n    served_dimensions: [D1", "must be YAML"),
    "sizes of dimensions": (1, "loop_sizes: [16, 32, 16]", "loop_sizes: [16, 32]", "must be one size for each"),
    "size of nothing": (1, "loop_sizes: [16, 32, 16]", "loop_sizes: [16, 32, 0]", "must be a whole number"),
    "no equation": (1, "O[b][k]+=I[b][c]*W[k][c]", "O = W", "equation: must be like O[b][k]+=I[b][c]*W[k][c]"),
    "unknown index": (1, "W[k][c]", "W[k][z]", "must use the dimensions of loop_dims"),
    "relation": (1, "dimension_relations: []", "dimension_relations: [ix=ox]", "must be like ix=2*ox+1*fx"),
    "source": (1, "operand_source: {I: 0, W: 0}", "operand_source: {I: 7, W: 0}", "I: must be the id of a layer"),
    "no default": (2, "name: default", "name: Conv", "must have an entry called default"),
    "links": (2, "  temporal", "  memory_operand_links: {O: O, I: I1, W: I1}\n  temporal", "each to a memory operand"),
    "unknown side": (2, "    D1:", "    D3:", "must be a dimension of the array (D1, D2)"),
    "too many lanes": (2, "K, 4", "K, 8", "must take at most 4 lanes, those of D1"),
    "no count": (2, "K, 4", "K", "such as K, 32"),
    "loops too often": (2, "[K, 8]", "[K, 80]", "must run K of fc at most 8 times"),
    "loop of three": (2, "[K, 8]", "[K, 8, 1]", "must be a dimension and how often its loop runs"),
}


@pytest.mark.parametrize("name", list(MALFORMED))
def test_what_is_wrong_is_one_error_with_its_line(name, tmp_path):
    which, old, new, expected = MALFORMED[name]
    texts = [MACHINES["stationary"], LAYERS["fc"], MAPPED]
    assert old in texts[which]
    texts[which] = texts[which].replace(old, new, 1)
    with pytest.raises(InputError) as error:
        read(tmp_path, *texts)
    assert expected in str(error.value)
    assert str(error.value).startswith(f"file{which}.yaml:")


def test_files_that_do_not_go_together(tmp_path):
    with pytest.raises(InputError, match="must be the only accelerator"):
        read(tmp_path, MACHINES["rows"], MACHINES["stationary"])
    with pytest.raises(InputError, match="must come with the accelerator"):
        read(tmp_path, LAYERS["fc"], MAPPED)
    found = read(tmp_path, MACHINES["stationary"], MAPPED)
    assert found.constraints is None and any("needs the workload" in note.text for note in found.notes)


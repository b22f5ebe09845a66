"""The flexibility of machines: what files may say of it, its class, and what it costs."""

from dataclasses import replace

import pytest

from tilewright.base import InputError
from tilewright.hardware import (
    CLASSES,
    PUBLISHED_PERCENT,
    PUBLISHED_UM2,
    T_FLEX_READ_UM2,
    FlexibilityCosts,
    OrderFlexibility,
    ParallelismFlexibility,
    ShapeFlexibility,
    TileFlexibility,
    describe,
    dump_accelerator,
    flexibility_overhead,
    load_accelerator,
)

MACHINE = """\
name: table-3.1
frequency_mhz: 1000
word_bits: {inputs: 8, weights: 8, outputs: 8}
levels:
  - memory: DRAM
    keeps: [inputs, weights, outputs]
    energy_pj_per_word: {read: 64, fill: 64, update: 64, drain: 64}
  - memory: GLB
    keeps: [inputs, weights, outputs]
    capacity_bytes: 100 kB
    energy_pj_per_word: {read: 1, fill: 1, update: 1, drain: 1}
    area_um2: 400000
    leakage_mw: 4
  - fanout: PEs
    shape: [16, 64]
compute: {energy_pj_per_mac: 0.1, area_um2: 100}
"""
INFLEX = """\
flexibility:
  tile: {fixed: {GLB: {K: 64, C: 16, P: 3, Q: 3, R: 3, S: 3}}}
  order: {choices: [[K, C, P, Q, R, S]]}
  parallelism: {choices: [[C, K]]}
  shape: {fixed: [16, 64]}
"""
FULLFLEX = """\
flexibility:
  tile: any
  order: any
  parallelism: any
  shape: any
"""
PARTFLEX = """\
flexibility:
  memory: GLB
  array: PEs
  tile: {partitions: {GLB: {weights: 1, inputs: 1, outputs: 2}}}
  order: {choices: [[P, Q, K, C, R, S], [K, C, R, S, P, Q]]}
  parallelism: {choices: [[C, K], [P, Q]]}
  shape: {blocks: [4, 4]}
  overhead: {tile_um2: 1000, leakage_mw_per_um2: 1e-5}
"""


def test_the_base_machine_of_the_paper():
    flexibility = load_accelerator(MACHINE + INFLEX).flexibility
    assert (flexibility.memory, flexibility.array) == ("GLB", "PEs")
    assert flexibility.tile.fixed == (("GLB", (("K", 64), ("C", 16), ("P", 3), ("Q", 3), ("R", 3), ("S", 3))),)
    assert flexibility.order.choices == (("K", "C", "P", "Q", "R", "S"),)
    assert flexibility.parallelism.choices == (("C", "K"),)
    assert flexibility.shape.fixed == (16, 64)
    assert flexibility.class_bits == "0000"
    assert flexibility.name == "InFlex-0000"


@pytest.mark.parametrize(("section", "name"), [
    (FULLFLEX, "FullFlex-1111"), (PARTFLEX, "PartFlex-1111"),
    (INFLEX.replace("{fixed: [16, 64]}", "any"), "FullFlex-0001"),
    (INFLEX.replace("[[C, K]]", "[[C, K], [P, Q]]"), "PartFlex-0010"),
    (INFLEX.replace("{fixed: [16, 64]}", "any").replace("[[C, K]]", "[[C, K], [P, Q]]"), "PartFlex-0011"),
])
def test_classes_and_names(section, name):
    assert load_accelerator(MACHINE + section).flexibility.name == name


@pytest.mark.parametrize("section", [
    INFLEX, INFLEX.replace("{fixed: {GLB", "{per_element: {GLB"), FULLFLEX, PARTFLEX,
    FULLFLEX.replace("parallelism: any", "parallelism: {dimensions_per_side: any}")])
def test_what_is_written_reads_back(section):
    machine = load_accelerator(MACHINE + section)
    again = load_accelerator(dump_accelerator(machine))
    assert again == machine
    assert again.flexibility.costs == machine.flexibility.costs


def test_a_machine_without_a_section_states_nothing_and_costs_nothing():
    machine = load_accelerator(MACHINE)
    assert machine.flexibility is None
    assert machine.area_um2 == 400_000 + 1024 * 100
    assert "flexibility" not in dump_accelerator(machine)
    assert "flexibility" not in describe(machine)


@pytest.mark.parametrize(("given", "instead", "line", "words"), [
    ("tile: {fixed", "tile: {fixd", 18, "flexibility.tile.fixd: is not a known field; Did you mean fixed?"),
    ("GLB: {K", "GLX: {K", 18, "flexibility.tile.fixed.GLX: must be one of DRAM, GLB"),
    (", S: 3}", "}", 18, "tile.fixed.GLB: must give K, C, P, Q, R, S"),
    ("tile: {", "tile: {per_element: {GLB: {K: 1}}, ", 18, "tile: takes one of fixed, per_element and partitions"),
    ("K: 64", "K: 0", 18, "tile.fixed.GLB.K: must be greater than or equal to 1"),
    ("[[K, C, P, Q, R, S]]", "[[K, C, P, Q, R]]", 19, "order.choices[0]: must hold each of K, C, P, Q, R, S once"),
    ("[[K, C, P, Q, R, S]]", "[[K, C, P, Q, R, S], [K, C, P, Q, R, S]]", 19, "order.choices[1]: must differ"),
    ("[[K, C, P, Q, R, S]]", "[]", 17, "must give order at least one choice"),
    ("[[C, K]]", "[[C, Z]]", 20, "parallelism.choices[0]: must name dimensions among"),
    ("[[C, K]]", "[[C, C]]", 20, "parallelism.choices[0]: must name two different dimensions"),
    ("[[C, K]]", "[[C, K, P]]", 20, "parallelism.choices[0]: must have at most 2 items"),
    ("{choices: [[C, K]]}", "{choices: [[C, K]], dimensions_per_side: any}", 20, "takes one of choices"),
    ("[16, 64]}\n", "[17, 64]}\n", 21, "shape.fixed: must have at most the 1024 instances of PEs"),
    ("{fixed: [16, 64]}\n", "some\n", 21, "flexibility.shape: must be any, or give fixed, blocks"),
    ("  shape: {fixed: [16, 64]}\n", "", 17, "flexibility.shape: is required"),
    ("flexibility:\n", "flexibility:\n  overhead: {partial_share: 5}\n", 18,
     "flexibility.overhead.partial_share: must be less than or equal to 1"),
    ("flexibility:\n", "flexibility:\n  array: PEx\n", 18, "flexibility.array: must be one of PEs"),
    ("flexibility:\n", "flexibility:\n  memory: RF\n", 18, "flexibility.memory: must be one of DRAM, GLB"),
    ("{fixed: {GLB: {K: 64, C: 16, P: 3, Q: 3, R: 3, S: 3}}}", "{partitions: {DRAM: {weights: 1}}}", 18,
     "tile.partitions.DRAM: must be a memory with a capacity_bytes to divide"),
    ("{fixed: {GLB: {K: 64, C: 16, P: 3, Q: 3, R: 3, S: 3}}}", "{partitions: {GLB: {weights: 1, inputs: 1}}}", 18,
     "tile.partitions.GLB: must give each of inputs, weights, outputs; Got 'weights, inputs'."),
    ("{fixed: {GLB: {K: 64, C: 16, P: 3, Q: 3, R: 3, S: 3}}}",
     "{partitions: {GLB: {weight: 1, inputs: 1, outputs: 1}}}", 18, "tile.partitions.GLB: must give each of inputs"),
])
def test_wrong_sections_are_told_with_their_line(given, instead, line, words):
    text = MACHINE + INFLEX
    assert given in text
    with pytest.raises(InputError) as told:
        load_accelerator(text[:len(MACHINE)] + text[len(MACHINE):].replace(given, instead))
    assert f"<text>:{line} " in str(told.value)
    assert words in str(told.value)


def test_nouns_are_held_to_the_same_rules():
    machine = load_accelerator(MACHINE + INFLEX)
    with pytest.raises(InputError, match=r"table-3\.1\.flexibility\.shape\.blocks"):
        replace(machine, flexibility=replace(machine.flexibility, shape=ShapeFlexibility(blocks=(33, 32))))


def test_the_sixteen_classes():
    flexibility = load_accelerator(MACHINE + INFLEX).flexibility
    assert len(set(CLASSES)) == 16
    assert [flexibility.of_class(bits).class_bits for bits in CLASSES] == list(CLASSES)
    assert flexibility.of_class("0110").name == "FullFlex-0110"
    with pytest.raises(InputError, match="four digits"):
        flexibility.of_class("011")
    with pytest.raises(InputError, match="must be 1 for T, P"):
        flexibility.of_class("1010").of_class("0100")


def added(machine, **axes):
    return flexibility_overhead(replace(machine, flexibility=replace(machine.flexibility, **axes)))


def test_the_published_machine_has_the_published_areas():
    machine = load_accelerator(MACHINE + INFLEX)
    axes = {"T-Flex": ("tile", TileFlexibility()), "O-Flex": ("order", OrderFlexibility()),
            "P-Flex": ("parallelism", ParallelismFlexibility()), "S-Flex": ("shape", ShapeFlexibility())}
    for name, (axis, full) in axes.items():
        base = PUBLISHED_UM2["InFlex"]
        published = (T_FLEX_READ_UM2 if name == "T-Flex" else PUBLISHED_UM2[name]) - base
        overhead = added(machine, **{axis: full})
        assert overhead.total_um2 == pytest.approx(published)
        assert 100 * published / base == pytest.approx(PUBLISHED_PERCENT[name], abs=0.01)
    everything = added(machine, **dict(axes.values()))
    assert everything.total_um2 == pytest.approx(PUBLISHED_UM2["FullFlex"] - PUBLISHED_UM2["InFlex"], abs=3)


def test_the_area_of_tile_flexibility_is_impossible_as_printed():
    base = PUBLISHED_UM2["InFlex"]
    assert 100 * (PUBLISHED_UM2["T-Flex"] - base) / base > 3.6 > PUBLISHED_PERCENT["T-Flex"]
    assert PUBLISHED_UM2["T-Flex"] > PUBLISHED_UM2["FullFlex"]


def test_overheads_grow_with_what_they_are_made_for():
    machine = load_accelerator(MACHINE + FULLFLEX)
    wide = load_accelerator((MACHINE + FULLFLEX).replace("[16, 64]", "[32, 64]"))
    small, large = flexibility_overhead(machine).area_um2, flexibility_overhead(wide).area_um2
    assert large["T"] == small["T"]
    assert large["S"] == 2 * small["S"]
    assert small["O"] < large["O"] < 2 * small["O"]
    assert small["P"] < large["P"] < 2 * small["P"]


def test_partial_flexibility_has_its_share_and_figures_can_be_overridden():
    overhead = flexibility_overhead(load_accelerator(MACHINE + PARTFLEX))
    assert overhead.area_um2["T"] == 500
    assert overhead.area_um2["O"] == pytest.approx(1615 / 2)
    assert overhead.leakage_mw == pytest.approx(1e-5 * overhead.total_um2)
    assert overhead.power_share == pytest.approx(overhead.area_share)
    hot = load_accelerator(MACHINE + PARTFLEX.replace("tile_um2: 1000", "tile_um2: 1000, power_per_area: 3"))
    assert flexibility_overhead(hot).power_share == pytest.approx(3 * overhead.area_share)
    assert load_accelerator(dump_accelerator(hot)) == hot


def test_area_and_leakage_of_a_machine_include_its_flexibility():
    rigid, loose = load_accelerator(MACHINE + INFLEX), load_accelerator(MACHINE + FULLFLEX)
    overhead = flexibility_overhead(loose)
    assert rigid.area_um2 == rigid.base_area_um2 == loose.base_area_um2
    assert loose.area_um2 == rigid.area_um2 + overhead.total_um2
    assert loose.leakage_mw == pytest.approx(4 * loose.area_um2 / rigid.area_um2)
    assert overhead.area_share == pytest.approx(2735 / 502_400)


def test_areas_scale_to_the_node_of_the_technology():
    text = (MACHINE + FULLFLEX).replace("name: table-3.1", "name: table-3.1\ntechnology: 45nm")
    at_45 = flexibility_overhead(load_accelerator(text)).total_um2
    assert at_45 == pytest.approx(9 * flexibility_overhead(load_accelerator(MACHINE + FULLFLEX)).total_um2)
    assert FlexibilityCosts().at_node(30).tile_um2 == 4 * FlexibilityCosts().tile_um2


def test_a_description_says_what_is_free():
    text = describe(load_accelerator(MACHINE + PARTFLEX))
    assert "flexibility: PartFlex-1111" in text
    assert "order: PQKCRS or KCRSPQ" in text
    assert "parallelism (X-Y): C-K or P-Q" in text
    assert "blocks of 4 x 4" in text
    assert "GLB K64 C16 P3 Q3 R3 S3 per element" in describe(
        load_accelerator(MACHINE + INFLEX.replace("{fixed: {GLB", "{per_element: {GLB")))
    rigid = describe(load_accelerator(MACHINE + INFLEX))
    assert "tile: GLB K64 C16 P3 Q3 R3 S3" in rigid
    assert "shape: 16 x 64" in rigid
    assert "any of up to 1024" in describe(load_accelerator(MACHINE + FULLFLEX))

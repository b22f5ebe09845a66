"""``tilewright flexibility``: the figures of the paper's tables, the page, and what is refused."""

import json
import re
from math import prod

import pytest

import tilewright as tw
from tilewright.codesign import assumed, measure_flexion, with_flexibility
from tilewright.hardware import flexibility_overhead, preset
from tilewright.mapping import flexion
from tilewright.report import flexibility_sheet, print_sheet
from tilewright.workload import unique_operators, zoo

LAYER = "conv:K=120,C=40,P=28,Q=28,R=1,S=1"  # layer 16 of the paper's MnasNet
STATED = """\
name: stated
technology: 16nm
frequency_mhz: 1000
word_bits: {inputs: 8, weights: 8, outputs: 8}
levels:
  - {memory: DRAM, keeps: [inputs, weights, outputs], kind: dram, dram_type: LPDDR4,
     bandwidth_words_per_cycle: {shared: 32}}
  - {memory: GLB, keeps: [inputs, weights, outputs], kind: sram, capacity_bytes: 4000}
  - {fanout: PEs, shape: [16, 64]}
  - {memory: RF, keeps: [inputs, weights, outputs], kind: registers, buffering: buffet,
     partitions_bytes: {inputs: 1, weights: 1, outputs: 1}}
compute: {type: int, width_bits: 8}
flexibility:
  tile: {partitions: {GLB: {weights: 1, inputs: 1, outputs: 1}}}
  order: {choices: [[P, Q, K, C, R, S], [K, C, R, S, P, Q], [C, K, P, Q, R, S]]}
  parallelism: {choices: [[C, K], [P, Q]]}
  shape: {fixed: [16, 64]}
"""


def test_the_published_flexions_are_told(tilewright, tmp_path):
    (tmp_path / "stated.yaml").write_text(STATED)
    found = tilewright("flexibility", LAYER, "-a", "stated.yaml", "--json", "f.json")
    assert found.code == 0, found.err
    assert "PartFlex-1110" in found.out
    rows = {line.split()[0]: line.split() for line in found.out.splitlines() if line[:2] in {"T ", "O ", "P ", "S "}
            and re.search(r"\d\.\d+$", line)}
    assert rows["O"][2:] == ["720", "3", "24", "24", "3", "0.00417", "0.125"]  # figure 3.9: 0.004 and 0.13
    assert rows["P"][2:] == ["30", "2", "12", "12", "2", "0.0667", "0.167"]  # figure 3.10: 0.07 and 0.17
    assert rows["T"][-2] == "0.222"  # figure 3.7: 0.22
    data = json.loads((tmp_path / "f.json").read_text())
    assert data["class"] == "PartFlex-1110"
    assert [axis["degree"] for axis in data["axes"].values()] == ["partial", "partial", "partial", "inflexible"]
    (layer,) = data["layers"]
    whole, operator = layer["axes"]["TOPS"], tw.pick_operator(LAYER)
    assert whole["hardware"] == flexion(operator, tw.load_accelerator("stated.yaml")).hardware
    assert whole["class_space"]["value"] == prod(layer["axes"][a]["class_space"]["value"] for a in ("T", "O", "P", "S"))
    overhead = flexibility_overhead(tw.load_accelerator("stated.yaml"))
    assert data["overhead"]["area_um2"] == overhead.total_um2 == sum(a["area_um2"] for a in data["axes"].values())
    assert f"{overhead.total_um2:,.0f} um2" in found.out


def test_a_network_is_averaged_over_its_distinct_layers():
    machine = preset("flexion")
    found = measure_flexion(zoo.load("alexnet"), machine, "OP")
    layers = unique_operators(zoo.load("alexnet"))
    each = [flexion(layer.operator, machine, "P") for layer in layers]
    assert len(found.layers) == len(layers) > 1
    assert found.average["P"].workload == pytest.approx(sum(one.workload for one in each) / len(each))
    assert found.average["P"].workload_space.value == sum(one.workload_space.value for one in each) / len(each)
    assert set(found.average) == {"O", "P", "OP"}


def test_estimates_carry_their_errors():
    machine = with_flexibility(preset("tpu-like"), assumed(preset("tpu-like")).of_class("1000"))
    graph = tw.load_network("conv:K=5040,C=5040,P=5040,Q=5040,R=5040,S=5040")
    found = measure_flexion(graph, machine, "T")
    assert not found.average["T"].class_on_workload.exact
    assert found.average["T"].class_on_workload.error == found.layers[0].axes["T"].class_on_workload.error
    table = next(table for table in flexibility_sheet(found).tables if table.name == "spaces")
    assert "±" in table.rows[0][4] and "standard error" in table.notes[1]
    assert print_sheet(flexibility_sheet(found)) is None


def test_a_class_may_be_tried_on_any_machine(tilewright):
    bare = tilewright("flexibility", LAYER, "-a", "eyeriss")
    assert (bare.code, bare.out) == (2, "")
    assert bare.err.count("\n") == 1 and "eyeriss.flexibility: must be stated" in bare.err and "--class" in bare.err
    tried = tilewright("flexibility", LAYER, "-a", "eyeriss", "--class", "FullFlex-0110", "--axes", "ops")
    assert tried.code == 0, tried.err
    assert "eyeriss on conv: FullFlex-0110" in tried.out and "14 x 12" in tried.out and "\nOPS " in tried.out
    assert tilewright("flexibility", LAYER, "-a", "flexion", "--class", "0000").out.startswith(
        "flexion on conv: InFlex-0000")


MEANS = "H-F and W-F are means of those of each layer, not ratios of the mean sizes beside them."


def test_the_page_has_its_diagrams_to_scale(tilewright, tmp_path):
    found = tilewright("flexibility", "alexnet", "-a", "flexion", "--class", "1000", "--html", "pages/f.html")
    assert found.code == 0, found.err
    text = (tmp_path / "pages/f.html").read_text()
    figures = json.loads(re.search(r'<script id="figures" type="application/json">(.*?)</script>', text, re.S)[1])
    assert set(figures) == {"average", *(f"layer-{index}" for index in range(len(figures) - 1))}
    assert "tilewright flexibility alexnet -a flexion --class 1000" in text
    assert MEANS in text
    assert MEANS in " ".join(found.out.split())
    assert MEANS not in tilewright("flexibility", "alexnet", "-a", "flexion", "--layer", "conv1").out
    machine = with_flexibility(preset("flexion"), preset("flexion").flexibility.of_class("1000"))
    shape = measure_flexion(zoo.load("alexnet"), machine, "S").average["S"]
    workload, klass, _ = figures["average"]["data"][-3:]

    def area(circle):
        return (max(circle["x"]) - min(circle["x"])) ** 2

    assert area(klass) / area(workload) == pytest.approx(shape.class_space.value / shape.workload_space.value, rel=0.01)


@pytest.mark.parametrize(("words", "message"), [
    (("--axes", "TX"), "axes: must be different letters of TOPS; Got 'TX'"),
    (("--axes", "TT"), "axes: must be different letters of TOPS; Got 'TT'"),
    (("--axes", ""), "axes: must be different letters of TOPS"),
    (("--class", "10"), "class: must be one of 0000, 0001"),
    (("--class", "InFlex-0100"), "class: must be one of 0000, 0001"),
    (("--class", "FullFlex-0000"), "class: must be one of 0000, 0001"),
    (("--class", "PartFlex-1010"), "Partial flexibility must be stated in the machine's file"),
    (("--layer", "conv9"), "layer: must be a layer of conv; Got 'conv9'"),
    (("--html", "."), "must be"),
])
def test_bad_input_is_one_message(tilewright, words, message):
    found = tilewright("flexibility", LAYER, "-a", "flexion", *words)
    assert (found.code, found.out) == (2, "")
    assert message in found.err and found.err.count("\n") == 1


def test_a_machine_of_several_arrays_must_say_which_is_meant(tilewright):
    found = tilewright("flexibility", LAYER, "-a", "edge-s3", "--class", "1000")
    assert found.code == 2 and "2 arrays" in found.err and "memory: and array:" in found.err


def test_axes_that_the_file_makes_flexible_cannot_be_taken_as_fixed(tilewright, tmp_path):
    (tmp_path / "stated.yaml").write_text(STATED)
    found = tilewright("flexibility", LAYER, "-a", "stated.yaml", "--class", "0001")
    assert found.code == 2 and "must be 1 for T, O, P" in found.err


def test_what_is_assumed_of_other_machines_is_inflexible_and_priced_at_their_node():
    assert assumed(preset("eyeriss")).name == "InFlex-0000"
    at_65nm, at_16nm = assumed(preset("eyeriss")).costs, preset("flexion").flexibility.costs
    assert at_65nm.order_um2 > at_16nm.order_um2

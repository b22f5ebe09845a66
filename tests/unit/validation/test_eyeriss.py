"""Row-stationary mappings as published: they fit the chip to its last bank, and use as many elements as it did."""

import json
from math import ceil

import pytest

from tilewright.hardware import load_accelerator, preset
from tilewright.validation import validate
from tilewright.validation.eyeriss import FOLDER, Passes, active_elements, layers, row_stationary
from tilewright.workload import convolution

PUBLISHED = json.loads((FOLDER / "alexnet.json").read_text())
CHIP = load_accelerator(FOLDER / "chip.yaml")
LAYERS = {layer.name: layer for layer in layers(CHIP, 4)}
BANK_WORDS, BANKS = 2048, 25


@pytest.mark.parametrize("name", PUBLISHED)
def test_the_published_parameters_fit_scratchpads_and_banks(name):
    """Of 25 banks of 4 KiB, each holds either sums or inputs (Chen et al., JSSC 2017, section V)."""
    at, sizes = Passes(**PUBLISHED[name]["mapping"]), LAYERS[name].operator.sizes
    assert at.p * at.q * sizes["S"] <= 224 and at.q * sizes["S"] <= 12 and at.p <= 24
    stride = 4 if name == "conv1" else 1
    rows, columns = stride * (at.e - 1) + sizes["R"], stride * (sizes["Q"] - 1) + sizes["S"]
    sums, inputs = at.m * at.n * at.e * sizes["Q"], at.n * at.q * at.r * rows * columns
    assert ceil(sums / BANK_WORDS) + ceil(inputs / BANK_WORDS) <= BANKS
    assert sums * 2 / 1024 == pytest.approx(PUBLISHED[name]["psum_kib"], abs=0.05)
    assert inputs * 2 / 1024 == pytest.approx(PUBLISHED[name]["ifmap_kib"], abs=0.05)
    assert sizes["C"] % (at.q * at.r) == 0 and at.m % (at.p * at.t) == 0


@pytest.mark.parametrize("name", PUBLISHED)
def test_tiles_are_those_of_the_parameters(name):
    at, layer = Passes(**PUBLISHED[name]["mapping"]), LAYERS[name]
    sizes, mapping = layer.operator.sizes, layer.mapping
    weights = layer.cost.counts["Filters", "W"]
    rounds = ceil(4 / at.n) * ceil(sizes["P"] / at.e)
    assert weights.fills == layer.operator.tensor("W").words(sizes) * rounds
    updates = layer.cost.counts["DRAM", "O"].updates
    assert updates == layer.operator.output.words(sizes), "partial sums never leave the chip"
    assert active_elements(layer.operator, CHIP, mapping) == PUBLISHED[name]["active"]


def test_sets_of_filters_lie_beside_one_another_only_where_there_is_room():
    operator = convolution("c", in_channels=8, out_channels=64, kernel=3, out_size=7)
    beside, above = (row_stationary(Passes(m=64, n=1, e=7, p=8, q=4, r=1, t=t), operator, preset("eyeriss"))
                     for t in (2, 4))
    assert [str(loop) for loop in beside.at("PEs").loops] == ["K@X: 8", "R@Y: 1", "P@X: 1"]
    assert [str(loop) for loop in above.at("PEs").loops] == ["K@Y: 8", "R@Y: 1", "P@X: 1"]
    assert active_elements(operator, preset("eyeriss"), beside) == 3 * 7 * 2


def test_feature_maps_are_packed_and_filters_are_not():
    (outcome,) = validate(["eyeriss"]).outcomes
    found = {(figure.case, figure.quantity): figure.ours for figure in outcome.findings.figures}
    for name, layer in LAYERS.items():
        packed, plain = (found[name, f"DRAM accesses, {how}"] for how in ("compressed", "all words"))
        filters = layer.cost.counts["DRAM", "W"].reads * 2 / 2**20
        assert filters < packed < plain
    conv1 = LAYERS["conv1"].cost.counts  # inputs without zeros stay as they are
    outputs = conv1["DRAM", "O"].updates * (1 - 0.387) * 4 / 3
    words = conv1["DRAM", "W"].reads + conv1["DRAM", "I"].reads + outputs
    assert found["conv1", "DRAM accesses, compressed"] == pytest.approx(words * 2 / 2**20)


def test_the_chip_is_never_faster_than_its_active_elements_allow():
    (outcome,) = validate(["eyeriss"]).outcomes
    for figure in outcome.findings.figures:
        if figure.quantity.startswith("processing time"):
            layer = LAYERS[figure.case]
            least = layer.operator.macs / PUBLISHED[figure.case]["active"] / 200e3
            assert least <= figure.ours
            assert least <= figure.reference

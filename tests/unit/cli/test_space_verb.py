"""``tilewright space``: counted, drawn from, exported and refused."""

import json

import pytest

from tilewright.api import map_space
from tilewright.hardware import preset
from tilewright.mapping import MapSpace, load_mapping, load_space, violations
from tilewright.workload import zoo

OPERATOR = "matmul:M=6,N=4,K=2"
TILINGS = ("perfect", "imperfect", "ruby", "ruby-s", "ruby-t")


def test_every_tiling_is_counted_as_enumeration_counts(tilewright, machine, tmp_path):
    found = tilewright("space", OPERATOR, "-a", machine, "--json", "s.json")
    assert found.code == 0, found.err
    data = json.loads((tmp_path / "s.json").read_text())
    assert [size["tiling"] for size in data["sizes"]] == list(TILINGS)
    for size in data["sizes"]:
        space = map_space(OPERATOR, str(machine), tiling=size["tiling"])
        whole = list(space.enumerate())
        fitting = sum(int(space.fits(batch).sum()) for batch in whole)
        assert size["exact"] and size["mappings"] == sum(map(len, whole))
        assert size["fitting"]["mappings"] == pytest.approx(fitting, rel=5 * size["fitting"]["error"] + 1e-9)
        assert size["fitting_share"] == size["fitting"]["mappings"] / size["mappings"]
        assert f"{size['tiling']} " in found.out and f"{size['mappings']:,}" in found.out


def test_constraints_in_force_are_told_with_their_lines(tilewright, tmp_path):
    (tmp_path / "mine.yaml").write_text("tiling: ruby-s\ndataflow: row-stationary\nloops:\n  GLB: [K, Q]\n"
                                        "utilization: {PEs: 0.25}\n")
    found = tilewright("space", "resnet18", "-l", "layer4.0.conv2", "-a", "eyeriss", "--constraints", "mine.yaml",
                       "--samples", "500")
    assert found.code == 0, found.err
    rows = {tuple(line.split()[:2]): line for line in found.out.splitlines() if "mine.yaml" in line}
    assert rows["loops", "GLB"].split()[-3:] == ["K", "Q", "mine.yaml:4"]
    assert rows["factors", "PEs.Y.R"].endswith("mine.yaml:2")
    assert "at least 25 %" in rows["utilization", "PEs"] and rows["utilization", "PEs"].endswith("mine.yaml:5")
    assert "ruby-s" in found.out and "imperfect" not in found.out


def test_what_is_drawn_fits_and_repeats(tilewright, tmp_path):
    words = ("space", "resnet18", "-l", "fc", "-a", "edge-s1", "--tiling", "ruby", "--dataflow", "nvdla", "--draw", "3",
             "--seed", "4", "--samples", "100", "--json", "s.json")
    first = tilewright(*words)
    assert first.code == 0 and "Drawn 3 of 3" in first.out
    drawn = json.loads((tmp_path / "s.json").read_text())["drawn"]
    operator = next(node.operator for node in zoo.load("resnet18").mac_nodes if node.name == "fc")
    mappings = [load_mapping(text, operator, preset("edge-s1")) for text in drawn]
    assert len(set(drawn)) == 3
    assert not any(violations(mapping, operator, preset("edge-s1")) for mapping in mappings)
    assert tilewright(*words).out == first.out
    assert tilewright(*words[:-4], "--seed", "5", *words[-4:]).out != first.out


def test_a_space_is_exported_whole(tilewright, tmp_path):
    words = ("space", "resnet18", "-l", "layer4.0.conv2", "-a", "eyeriss", "--samples", "0")
    assert tilewright(*words, "--tiling", "ruby-t", "--dataflow", "row-stationary", "--export", "whole.yaml").code == 0
    operator = next(node.operator for node in zoo.load("resnet18").mac_nodes if node.name == "layer4.0.conv2")
    whole = load_space(tmp_path / "whole.yaml", operator, preset("eyeriss"))
    assert whole == map_space("resnet18", "eyeriss", "layer4.0.conv2", tiling="ruby-t", dataflow="row-stationary")
    again = tilewright(*words, "--constraints", "whole.yaml", "--export", "-")
    assert again.out == (tmp_path / "whole.yaml").read_text()
    assert "ruby-t" in again.err
    plain = tilewright(*words, "--export", "-")
    assert load_space(plain.out, operator, preset("eyeriss")) == MapSpace(operator, preset("eyeriss"))


def test_a_tiling_without_mappings_is_told_beside_those_with(tilewright, machine, tmp_path):
    (tmp_path / "k.yaml").write_text("factors: {PEs.X: {M: 4}}\n")
    found = tilewright("space", OPERATOR, "-a", machine, "--constraints", "k.yaml", "--samples", "0")
    assert found.code == 0, found.err
    assert "perfect: must leave a mapping of matmul on small: perfect conflicts with factors.PEs.X.M = 4" in found.out
    one = tilewright("space", OPERATOR, "-a", machine, "--constraints", "k.yaml", "--tiling", "perfect")
    assert one.code == 2 and one.err.count("\n") == 1


@pytest.mark.parametrize(("words", "message"), [
    (("--layer", "conv9"), "layer: must be a layer of matmul; Got 'conv9'"),
    (("--json", "-", "--export", "-"), "--json, --export: must not both go to standard output"),
    (("--dataflow", "nvdl"), "dataflow: must be a known dataflow; Got 'nvdl'; Did you mean nvdla"),
])
def test_bad_options_are_one_message(tilewright, machine, words, message):
    found = tilewright("space", OPERATOR, "-a", machine, *words)
    assert found.code == 2 and message in found.err and found.out == ""

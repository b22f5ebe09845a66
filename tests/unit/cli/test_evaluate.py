"""``tilewright evaluate``: mappings of one's own, and files of cases."""

import json

import pytest

from tilewright.cost.reference import walk
from tilewright.hardware import load_accelerator
from tilewright.mapping import load_mapping
from tilewright.workload import matmul

OPERATOR = "matmul:M=16,N=16,K=8"


def oracle(machine, mapping):
    operator, accelerator = matmul("matmul", m=16, n=16, k=8), load_accelerator(machine)
    return walk(operator, accelerator, load_mapping(mapping, operator, accelerator))


def test_a_legal_mapping_is_costed_as_the_oracle_does(tilewright, machine, mapping, tmp_path):
    found = tilewright("evaluate", mapping, "--network", OPERATOR, "--arch", machine, "--json", tmp_path / "out.json")
    assert (found.code, found.err) == (0, "")
    expected = oracle(machine, mapping)
    cost = json.loads((tmp_path / "out.json").read_text())["layer"]["cost"]
    assert {(c["memory"], c["tensor"]): (c["reads"], c["fills"], c["updates"], c["drains"]) for c in cost["counts"]} \
        == {key: (c.reads, c.fills, c.updates, c.drains) for key, c in expected.counts.items()}
    assert (cost["latency_cycles"], cost["energy_pj"]) == (expected.latency_cycles, expected.energy_pj)
    assert f"{expected.latency_cycles:,} cycles" in found.out
    assert f"{expected.counts['Buffer', 'I'].reads:,}" in found.out


def test_the_nest_is_drawn_with_what_each_memory_holds(tilewright, machine, mapping):
    lines = tilewright("evaluate", mapping, "-n", OPERATOR, "-a", machine).out.splitlines()
    assert lines[0].startswith("matmul on small")
    assert any(line.startswith("Buffer") and "192 B of 256 B, 75%" in line for line in lines)
    assert any("par-for M in 0..4 @X" in line for line in lines)


def test_an_illegal_mapping_says_what_is_wrong_and_how_to_mend_it(tilewright, machine, mapping):
    mapping.write_text(mapping.read_text().replace("M: 8, N: 8", "M: 16, N: 16"))
    found = tilewright("evaluate", mapping, "-n", OPERATOR, "-a", machine)
    assert found.code == 1
    assert found.out.startswith("Illegal: Buffer holds 512 B of 256 B for I+W+O; lower the step of M at DRAM from 16 "
                                "to 5.")
    assert "On a machine that is large enough" in found.out
    assert "its bound" not in found.out


def test_an_incomplete_mapping_has_no_cost(tilewright, machine, mapping):
    mapping.write_text(mapping.read_text().replace(", K: 1", ""))
    found = tilewright("evaluate", mapping, "-n", OPERATOR, "-a", machine, "--json", "-")
    assert found.code == 1
    told = json.loads(found.out)
    assert (told["legal"], told["layer"]["cost"]) == (False, None)
    assert [(v["kind"], v["subject"]) for v in told["violations"]] == [("coverage", "K")]
    assert "Illegal: K: no loop brings it below 8; add a loop over K" in found.err


def test_a_repaired_mapping_is_legal_and_can_be_written(tilewright, machine, mapping, tmp_path):
    mapping.write_text(mapping.read_text().replace("M: 8, N: 8", "M: 16, N: 16"))
    found = tilewright("evaluate", mapping, "-n", OPERATOR, "-a", machine, "--repair", "--write", "cured.yaml")
    assert found.code == 0
    assert found.out.startswith("Repaired: Buffer holds 512 B of 256 B")
    assert tilewright("evaluate", tmp_path / "cured.yaml", "-n", OPERATOR, "-a", machine).code == 0


def test_a_dataflow_stands_in_for_a_file(tilewright, tmp_path):
    words = ("-n", "resnet50", "-l", "layer1.0.conv2", "-a", "eyeriss")
    found = tilewright("evaluate", "--dataflow", "row-stationary", *words, "--write", "-")
    assert found.code == 0
    assert "uses 14 x 12, 100%" in found.err
    (tmp_path / "flow.yaml").write_text(found.out)
    assert tilewright("evaluate", tmp_path / "flow.yaml", *words).out == found.err


def test_layers_of_one_shape_need_no_name(tilewright, machine, mapping):
    assert tilewright("evaluate", mapping, "-n", OPERATOR, "-a", machine, "-l", "matmul").code == 0


CASE = {
    "id": "a", "dims": {"P": 6, "R": 3},
    "tensors": [{"name": "O", "output": True, "axes": [[["P", 1]]]}, {"name": "W", "axes": [[["R", 1]]]},
                {"name": "I", "axes": [[["P", 1], ["R", 1]]]}],
    "levels": [
        {"kind": "memory", "name": "Main", "keeps": ["W", "I", "O"], "loops": [["P", 2]],
         "energy_pj_per_word": {"read": 200.0, "fill": 210.0, "update": 220.0},
         "bandwidth_words_per_cycle": {"read": None, "write": 0.25, "shared": None}},
        {"kind": "memory", "name": "Buf", "keeps": ["I"], "loops": [["R", 1]],
         "energy_pj_per_word": {"read": 1.0, "fill": 2.0, "update": 3.0}},
        {"kind": "fanout", "name": "Fan", "mesh": [1, 2], "loops": [["P", 1]], "axes": ["Y"]},
    ],
    "energy_pj_per_mac": 0.5,
}
BY_HAND = {
    "id": "a", "macs": 18, "steps": 9, "cycles": 72, "energy_pj": 9803.0,
    "counts": {
        "Main.W": {"reads": 9, "fills": 0, "updates": 0, "drains": 0},
        "Main.I": {"reads": 8, "fills": 0, "updates": 0, "drains": 0},
        "Buf.I": {"reads": 18, "fills": 8, "updates": 0, "drains": 0},
        "Main.O": {"reads": 12, "fills": 0, "updates": 18, "drains": 0},
    },
}


def cases_file(tmp_path, *lines):
    path = tmp_path / "cases.jsonl"
    path.write_text("".join((line if isinstance(line, str) else json.dumps(line)) + "\n" for line in lines))
    return path


@pytest.mark.parametrize("options", [(), ("--reference",)], ids=["fast", "reference"])
def test_cases_are_counted_in_order_and_in_whole_numbers(tilewright, tmp_path, options):
    path = cases_file(tmp_path, CASE, "", CASE | {"id": 7})
    found = tilewright("evaluate", "--cases", path, *options)
    assert (found.code, found.err) == (0, "")
    first, second = found.out.splitlines()
    assert json.loads(first) == BY_HAND
    assert json.loads(second)["id"] == "7"
    assert '"reads": 12,' in first and '"cycles": 72,' in first


def test_large_counts_stay_exact(tilewright, tmp_path):
    big = 3 * 10**9 + 7
    case = {"id": "big", "dims": {"M": big}, "levels": [{"kind": "memory", "name": "Main", "keeps": ["A", "Z"],
                                                         "loops": [["M", 1]]}],
            "tensors": [{"name": "A", "axes": [[["M", 1]]]}, {"name": "Z", "output": True, "axes": [[["M", 1]]]}]}
    found = tilewright("evaluate", "--cases", cases_file(tmp_path, case))
    assert f'"macs": {big}, "steps": {big}, "cycles": {big}' in found.out


@pytest.mark.parametrize(("line", "message"), [
    ("{", "must be JSON"),
    (json.dumps(CASE | {"dims": {"P": 0, "R": 3}}), "dims.P"),
    (json.dumps(CASE | {"levels": CASE["levels"][:1]}), "must be a complete loop nest"),
    (json.dumps([1]), "cases.jsonl:2"),
], ids=["json", "size", "incomplete", "list"])
def test_a_malformed_line_ends_the_output_after_the_lines_before(tilewright, tmp_path, line, message):
    found = tilewright("evaluate", "--cases", cases_file(tmp_path, CASE, line, CASE))
    assert found.code == 2
    assert [json.loads(one)["id"] for one in found.out.splitlines()] == ["a"]
    assert found.err.startswith("Error: ") and found.err.count("\n") == 1
    assert "cases.jsonl:2" in found.err and message in found.err


def test_bytes_that_are_no_text_are_a_malformed_line(tilewright, tmp_path):
    path = cases_file(tmp_path, CASE)
    path.write_bytes(path.read_bytes() + b"\xff\xfe\n")
    found = tilewright("evaluate", "--cases", path)
    assert (found.code, len(found.out.splitlines())) == (2, 1)
    assert "cases.jsonl:2: must be a readable text file in UTF-8" in found.err


def test_the_oracle_refuses_what_is_too_large_to_walk(tilewright, tmp_path):
    huge = CASE | {"dims": {"P": 6_000_000, "R": 3}}
    found = tilewright("evaluate", "--cases", cases_file(tmp_path, CASE, huge), "--reference")
    assert (found.code, len(found.out.splitlines())) == (2, 1)
    assert "to be walked literally" in found.err

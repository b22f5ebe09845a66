"""The JSON-lines case format, in and out."""

import json

import pytest

from tilewright.base import InputError
from tilewright.cost.reference import walk
from tilewright.hardware import AccessEnergy, Bandwidth
from tilewright.interop.cases import case_lines, case_result, parse_case
from tilewright.mapping import Loop

CASE = {
    "id": "one", "dims": {"P": 6, "R": 3},
    "tensors": [{"name": "O", "output": True, "axes": [[["P", 1]]]},
                {"name": "W", "output": False, "axes": [[["R", 1]]]},
                {"name": "I", "output": False, "axes": [[["P", 1], ["R", 1]]]}],
    "levels": [
        {"kind": "memory", "name": "Main", "keeps": ["W", "I", "O"], "loops": [["P", 2]],
         "energy_pj_per_word": {"read": 200.0, "fill": 210.0, "update": 220.0},
         "bandwidth_words_per_cycle": {"read": None, "write": 0.25, "shared": None}},
        {"kind": "memory", "name": "Buf", "keeps": ["I"], "loops": [["R", 1]], "capacity_words": 16,
         "energy_pj_per_word": {"read": 1.0, "fill": 2.0, "update": 3.0, "drain": 4.0}},
        {"kind": "fanout", "name": "Fan", "mesh": [1, 2], "loops": [["P", 1]], "axes": ["Y"], "multicast": True,
         "reduce": False},
    ],
    "energy_pj_per_mac": 0.5, "compute_instances": 2, "tags": ["ignored"],
}


def line(**changes):
    return json.dumps(CASE | changes)


def with_level(index, **changes):
    levels = [dict(level) for level in CASE["levels"]]
    levels[index] |= changes
    return line(levels=levels)


def test_a_case_becomes_our_nouns():
    case = parse_case(line())
    assert case.id == "one"
    assert [(t.name, t.role) for t in case.operator.tensors] == [("W", "weights"), ("I", "inputs"), ("O", "outputs")]
    main, buffer, fan = case.accelerator.levels
    assert main.energy == AccessEnergy(200, 210, 220, 0)
    assert main.bandwidth == Bandwidth(None, 0.25, None)
    assert (buffer.capacity_bytes, buffer.buffering, buffer.word_bits) == (16, "buffet", 8)
    assert buffer.energy.drain_pj == 4
    assert (fan.shape, fan.multicast, fan.reduce) == ((1, 2), True, False)
    assert case.mapping.at("Fan").loops == (Loop("P", 1, "Y"),)
    assert case.mapping.at("Buf").keeps == ("I",)
    assert case.accelerator.compute.energy_pj_per_mac == 0.5


def test_optional_keys_may_be_missing():
    bare = {"id": 3, "dims": {"M": 2}, "tensors": [{"name": "A", "axes": [[["M", 1]]]},
                                                   {"name": "Z", "output": True, "axes": [[["M", 1]]]}],
            "levels": [{"kind": "memory", "name": "Main", "keeps": ["A", "Z"], "loops": [["M", 1]]}]}
    case = parse_case(json.dumps(bare))
    assert case.id == "3"
    assert case.accelerator.levels[0].capacity_bytes is None
    assert case.accelerator.levels[0].bandwidth == Bandwidth()
    assert walk(*case[1:]).energy_pj == 0


def test_result_of_a_walked_case():
    # W past Buf: one word for both lanes, 3 x 3 times. I: 4 + 2 + 2 in, 4 x 3 x 3 / 2 lanes and steps = 18 out (no two
    # lanes want the same word at the same step). O: 18 updates of 6 words at Main, every first one from zero.
    case = parse_case(line())
    cost = walk(*case[1:])
    assert case_result(case.id, cost) == {
        "id": "one", "macs": 18, "steps": 9, "cycles": 72,  # 18 updates / 0.25
        "energy_pj": (9 + 8 + 12) * 200 + 18 * 220 + 18 * 1 + 8 * 2 + 18 * 0.5,
        "counts": {"Main.W": {"reads": 9, "fills": 0, "updates": 0, "drains": 0},
                   "Main.I": {"reads": 8, "fills": 0, "updates": 0, "drains": 0},
                   "Buf.I": {"reads": 18, "fills": 8, "updates": 0, "drains": 0},
                   "Main.O": {"reads": 12, "fills": 0, "updates": 18, "drains": 0}},
    }


def test_files_are_read_in_order(tmp_path):
    path = tmp_path / "cases.jsonl"
    path.write_text(line() + "\n\n" + line(id="two") + "\n", encoding="utf-8")
    assert [parse_case(line, where).id for where, line in case_lines(path)] == ["one", "two"]


def test_errors_name_file_and_line(tmp_path):
    path = tmp_path / "cases.jsonl"
    path.write_text(line() + "\n\n{broken\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"cases\.jsonl:3: must be JSON; Got .* at column 2"):
        [parse_case(line, where) for where, line in case_lines(path)]
    with pytest.raises(InputError, match=r"missing\.jsonl: must be a readable text file"):
        list(case_lines(tmp_path / "missing.jsonl"))


@pytest.mark.parametrize(("text", "message"), [
    ("[1]", r"^case: Input should be a valid dictionary"),
    (line(dims={"P": 6, "R": 0}), r"^case: dims\.R: .*greater than or equal to 1; Got 0"),
    (line(dims={"P": 6}), r"W\.axes: must use the dimensions P; Got \['R'\]"),
    (line(dims={"P": 6.5, "R": 3}), r"dims\.P: .*valid integer; Got 6\.5"),
    (line(tensors=CASE["tensors"][1:]), r"must be operands followed by exactly one output"),
    (line(levels=CASE["levels"][2:]), r"must be a memory"),
    (line(levels=[]), r"must be a memory"),
    (with_level(0, kind="cache"), r"levels\[0\].*'memory', 'fanout'"),
    (with_level(0, loops=[["P"]]), r"levels\[0\]\.loops\[0\]\[1\]: Field required"),
    (with_level(0, loops=[["P", -2]]), r"levels\[0\]\.loops\[0\]\[1\]: .*greater than or equal to 1; Got -2"),
    (with_level(1, loops=[["S", 1]]), r"case: levels\[1\]\.loops\[0\]: must loop over one of P, R; Got 'S'"),
    (with_level(1, keeps=["X"]), r"levels\[1\]\.keeps: must be among I, O, W; Got 'X'"),
    (with_level(0, bandwidth_words_per_cycle={"read": 0}), r"bandwidth_words_per_cycle\.read: .*greater than 0; Got 0"),
    (with_level(0, energy_pj_per_word={"read": "a"}), r"energy_pj_per_word\.read: .*valid number"),
    (with_level(2, mesh=[0, 2]), r"levels\[2\]\.mesh\[0\]: .*greater than or equal to 1"),
    (with_level(2, axes=["Z"]), r"levels\[2\]\.axes\[0\]: Input should be 'X' or 'Y'"),
    (with_level(2, axes=["X", "Y"]), r"levels\[2\]: .*one side for each of the 1 loops"),
])
def test_malformed_cases_are_explained(text, message):
    with pytest.raises(InputError, match=message):
        parse_case(text)

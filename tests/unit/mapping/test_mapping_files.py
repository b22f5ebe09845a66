"""Mapping files: read, written, and every mistake told with its line."""

import pytest

from tilewright.base import InputError
from tilewright.mapping import LevelLoops, Loop, Mapping, dump_mapping, load_mapping
from tilewright.workload import convolution

CONV = convolution("conv2_1", in_channels=64, out_channels=64, in_size=56, kernel=3, padding=1)

GOOD = """\
operator: conv2_1
accelerator: spads
dimensions: {N: 1, K: 64, C: 64, P: 56, Q: 56, R: 3, S: 3}
levels:
  - level: DRAM
    loops: [P: 8, K: 32]
  - level: GLB
    keeps: [I, O]
    loops: [Q: 4, C: 10]
  - level: PEs
    loops: [Q@X: 1, K@X: 11, C@Y: 1]
  - level: RF
    keeps: []
    loops: [P: 1, C: 1, K: 1, R: 1, S: 1]
"""
MAPPING = Mapping((
    LevelLoops("DRAM", (Loop("P", 8), Loop("K", 32))),
    LevelLoops("GLB", (Loop("Q", 4), Loop("C", 10)), ("I", "O")),
    LevelLoops("PEs", (Loop("Q", 1, "X"), Loop("K", 11, "X"), Loop("C", 1, "Y"))),
    LevelLoops("RF", (Loop("P", 1), Loop("C", 1), Loop("K", 1), Loop("R", 1), Loop("S", 1)), ()),
))


def test_dump_and_load_are_each_others_inverse(machines):
    assert dump_mapping(MAPPING, CONV, machines["spads"]) == GOOD
    assert load_mapping(GOOD, CONV, machines["spads"]) == MAPPING


def test_a_file_is_read_by_path(machines, tmp_path):
    path = tmp_path / "conv.yaml"
    path.write_text(GOOD)
    assert load_mapping(path, CONV, machines["spads"]) == MAPPING
    assert load_mapping(str(path), CONV, machines["spads"]) == MAPPING
    path.write_text(GOOD.replace("C: 10", "C: ten"))
    with pytest.raises(InputError, match=r":9 mapping\.levels\[1\]\.loops\[1\]\.step: must be a valid integer"):
        load_mapping(path, CONV, machines["spads"])


def test_levels_left_out_have_no_loops_and_counts_give_steps(machines):
    text = ("levels:\n- level: DRAM\n  loops: [{dimension: P, count: 5}, {dimension: K, step: 16}]\n"
            "- level: PEs\n  loops: [{dimension: K, count: 6, axis: Y}]\n")
    assert load_mapping(text, CONV, machines["spads"]) == Mapping((
        LevelLoops("DRAM", (Loop("P", 12), Loop("K", 16))), LevelLoops("GLB"),
        LevelLoops("PEs", (Loop("K", 3, "Y"),)), LevelLoops("RF")))


def test_names_that_yaml_would_misread_are_quoted(machines):
    strange = Mapping((LevelLoops("DRAM", (Loop("no", 2),)), LevelLoops("on: off", (), ("1e3",))))
    text = dump_mapping(strange, CONV)
    assert '"no": 2' in text and '"on: off"' in text and '"1e3"' in text


def at(level: str, rest: str) -> str:
    return f"levels:\n  - level: {level}\n    {rest}\n"


MALFORMED = [
    ("\n", "<text>:1 mapping: must be a mapping of fields; Got 'nothing'; Start with levels:."),
    ("levels: [\n", "<text>:2: must be YAML; The parser says: expected the node content, but found '<stream end>'."),
    ("levels: \x00\n", "<text>: must be YAML; The parser says: unacceptable character #x0000"),
    ("a: 1\n---\nb: 2\n", "<text>:2: must be YAML; The parser says: but found another document."),
    ("levels:\n " + "[" * 3000, "<text>: must nest at most 100 deep"),
    ("levels: *here\n", "<text>:1: must be YAML; The parser says: found undefined alias 'here'."),
    ("- 1\n- 2\n", "<text>:1 mapping: must be a mapping of fields; Got 'a list'; Start with levels:."),
    ("levels: 3\n", "<text>:1 mapping.levels: must be a valid list; Got 3."),
    ("operator: x\n", "<text>:1 mapping.levels: is required; Add levels."),
    ("operator: [x]\nlevels: []\n", "<text>:1 mapping.operator: must be a valid string."),
    ("levle: []\n", "<text>:1 mapping.levle: is not a known field; Did you mean levels?"),
    ("levels: []\nlevels: []\n", "<text>:2: must be YAML; The parser says: found duplicate key \"levels\""),
    ("dimensions: {K: 63}\nlevels: []\n", "<text>:1 mapping.dimensions.K: must be 64, as in conv2_1; Got 63; "
     "Take the line out to use the mapping for another operator."),
    ("dimensions: {Z: 63}\nlevels: []\n", "<text>:1 mapping.dimensions.Z: must be a dimension of conv2_1; Got 'Z'; "
     "Known: N, K, C, P, Q, R, S."),
    ("levels:\n  - loops: [P: 3]\n", "<text>:2 mapping.levels[0].level: is required; Add level."),
    ("levels:\n  - DRAM\n", "<text>:2 mapping.levels[0]: must be a mapping of fields; Got 'DRAM'."),
    (at("DRAMM", "loops: []"),
     "<text>:2 mapping.levels[0].level: must be a level of spads; Got 'DRAMM'; Did you mean DRAM?"),
    ("levels:\n  - level: GLB\n  - level: DRAM\n",
     "<text>:3 mapping.levels[1].level: must stand before GLB, outermost first; Got 'DRAM'."),
    ("levels:\n  - level: GLB\n  - level: GLB\n",
     "<text>:3 mapping.levels[1].level: must not be given twice; Got 'GLB'."),
    (at("GLB", "loops: [Z: 3]"), "<text>:3 mapping.levels[0].loops[0]: must be a dimension of conv2_1; Got 'Z'; "
     "Known: N, K, C, P, Q, R, S."),
    (at("GLB", "loops: [p: 3]"), "<text>:3 mapping.levels[0].loops[0]: must be a dimension of conv2_1; Got 'p'; "
     "Did you mean P?"),
    (at("GLB", "loops: [K: 0]"), "<text>:3 mapping.levels[0].loops[0].step: must be greater than 0; Got 0."),
    (at("GLB", "loops: [K: 2.5]"), "<text>:3 mapping.levels[0].loops[0].step: must be a valid integer; Got 2.5."),
    (at("GLB", "loops: [K: ]"), "<text>:3 mapping.levels[0].loops[0]: must have either a step or a count."),
    (at("GLB", "loops: {K: 3}"), "<text>:3 mapping.levels[0].loops: must be a valid list."),
    (at("GLB", "loops: [{K: 3, C: 2}]"), "<text>:3 mapping.levels[0].loops[0]: must be one dimension and its step, "
     "as in K: 16."),
    (at("GLB", "loops: [K@X: 2]"), "<text>:3 mapping.levels[0].loops[0]: must have no axis at GLB, a memory; Got 'X'; "
     "Take the axis out."),
    (at("PEs", "loops: [K: 2]"),
     "<text>:3 mapping.levels[0].loops[0]: must say the side of the array at PEs, a fan-out; "
     "Got 'no axis'; Write K@X: 1 or K@Y: 1."),
    (at("PEs", "loops: [K@Z: 2]"), "<text>:3 mapping.levels[0].loops[0].axis: must be 'X' or 'Y'; Got 'Z'."),
    (at("PEs", "loops: [K@: 2]"), "<text>:3 mapping.levels[0].loops[0].axis: must be 'X' or 'Y'; Got ''."),
    (at("PEs", "keeps: [O]"), "<text>:3 mapping.levels[0].keeps: must not be given at a fan-out, which keeps nothing; "
     "Take it out."),
    (at("GLB", "keeps: O"), "<text>:3 mapping.levels[0].keeps: must be a valid list; Got 'O'."),
    (at("GLB", "keeps: [o]"),
     "<text>:3 mapping.levels[0].keeps[0]: must be a tensor of conv2_1; Got 'o'; Did you mean O?"),
    (at("GLB", "loops: [{dimension: P, count: 9}]"),
     "<text>:3 mapping.levels[0].loops[0].count: must be one that some step "
     "gives: an extent of 56 runs 8 or 10 times; Got 9."),
    (at("GLB", "loops: [{dimension: P, count: 57}]"),
     "<text>:3 mapping.levels[0].loops[0].count: must be one that some step "
     "gives: an extent of 56 runs 56 times at most; Got 57."),
    (at("GLB", "loops: [{dimension: P, count: 7, step: 8}]"),
     "<text>:3 mapping.levels[0].loops[0]: must have either a step or a count."),
    (at("GLB", "loops: [{dimension: P}]"), "<text>:3 mapping.levels[0].loops[0]: must have either a step or a count."),
    (at("GLB", "loops: [{dimension: P, steps: 2}]"), "<text>:3 mapping.levels[0].loops[0].steps: is not a known field; "
     "Did you mean step?"),
]


@pytest.mark.parametrize(("text", "message"), MALFORMED, ids=range(len(MALFORMED)))
def test_malformed_files_say_what_where_and_how(machines, text, message):
    with pytest.raises(InputError) as error:
        load_mapping(text, CONV, machines["spads"])
    assert str(error.value).startswith(message)


def test_a_missing_or_binary_file_is_an_input_error(machines, tmp_path):
    with pytest.raises(InputError, match=r"nowhere\.yaml: must be an existing file"):
        load_mapping(tmp_path / "nowhere.yaml", CONV, machines["spads"])
    binary = tmp_path / "binary.yaml"
    binary.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InputError, match="must be a readable text file in UTF-8"):
        load_mapping(binary, CONV, machines["spads"])

"""``tilewright map`` in chosen map spaces: tilings, constraints and dataflows, refused and repeated."""

import json

import pytest

import tilewright as tw
from tilewright.api import open_run
from tilewright.mapping import MappingBatch, MapSpace, dataflow_constraints, load_constraints
from tilewright.store import accelerator_of, mapping_of, operator_of

OPERATOR = "matmul:M=16,N=16,K=8"
FILE = """\
tiling: ruby-s
loops:
  PEs.X: [M, K]
factors:
  PEs.X: {M: 4}
tiles:
  Buffer: {K: {least: 2}}
"""


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_text(FILE)
    return path


def follows(layer, machine, tiling, constraints):
    """Whether the mapping of a stored layer is one of a space."""
    operator = operator_of(layer)
    batch = MappingBatch.from_mappings([mapping_of(layer)], operator, machine)
    return bool(MapSpace(operator, machine, tiling, constraints(operator)).contains(batch)[0])


def test_mappings_keep_to_a_file_and_the_run_holds_it(tilewright, machine, file):
    found = tilewright("map", OPERATOR, "-a", machine, "-b", "1000", "--constraints", file)
    assert found.code == 0
    assert "ruby-s tiling · map spaces constrained by a file" in found.out
    run = open_run("last").record
    small = accelerator_of(run.accelerator)
    assert (run.request.tiling, run.request.space, run.request.dataflow) == ("ruby-s", FILE, "")
    assert follows(run.layers[0], small, "ruby-s", lambda operator: load_constraints(FILE, operator, small))
    command = tilewright("show", "last", "--command").out.split()
    assert "--constraints" in command and "ruby-s" in command
    file.rename(file.with_name("kept.yaml"))
    assert tilewright("show", "last", "--constraints", file).code == 0
    assert tilewright(*command[1:]).code == 0
    again = open_run("last").record
    assert again.request == run.request and again.layers[0].mapping == run.layers[0].mapping


@pytest.mark.parametrize("tiling", ["perfect", "ruby", "ruby-s", "ruby-t", "imperfect"])
def test_all_mappings_follow_a_dataflow(tilewright, tiling):
    words = ("map", "resnet18", "--layers", "layer4.1.*", "-a", "eyeriss", "-b", "600", "--dataflow", "row-stationary")
    assert tilewright(*words, "--tiling", tiling).code == 0
    run = open_run("last").record
    eyeriss = accelerator_of(run.accelerator)
    assert (run.request.tiling, run.request.dataflow, run.request.space) == (tiling, "row-stationary", "")
    assert f"--tiling {tiling} --dataflow row-stationary" in run.request.command
    assert all(follows(layer, eyeriss, tiling, lambda operator: dataflow_constraints(
        "row-stationary", operator, eyeriss)) for layer in run.layers)


def test_entries_for_convolutions_mean_nothing_to_other_layers(tilewright, tmp_path):
    (tmp_path / "conv.yaml").write_text("loops: {PEs.X: [P, Q], PEs.Y: [C]}\norders: {GLB: [K, C, '*', Q]}\n")
    found = tilewright("map", "resnet18", "--layers", "[fl]*[c1]", "-a", "eyeriss", "-b", "300", "--constraints",
                       "conv.yaml")
    assert found.code == 0, found.err
    assert "fc" in found.out and "layer1.0.conv1" in found.out


def test_python_takes_constraints_as_they_are(tmp_path, machine):
    small = tw.load_accelerator(str(machine))
    constraints = tw.load_constraints(FILE, tw.matmul("m", m=16, n=16, k=8), small)
    run = tw.map(OPERATOR, small, budget=500, constraints=["latency<=1e9", constraints], tiling="ruby", store=False)
    assert run.record.request.constraints == ("latency<=1e+09",) or run.record.request.constraints
    assert "--constraints constraints.yaml" in run.record.request.command
    assert load_constraints(run.record.request.space, operator_of(run.record.layers[0]), small) == constraints
    same = tw.map(OPERATOR, small, budget=500, constraints=FILE, tiling="ruby-s", store=False)
    assert same.record.request.space == FILE
    with pytest.raises(tw.InputError, match="must hold one set of constraints of map spaces at most; Got 2"):
        tw.map(OPERATOR, small, constraints=[FILE, constraints], store=False)


def test_bounds_hold_where_tensors_bypass_memories(tilewright, machine, tmp_path):
    (tmp_path / "pass.yaml").write_text("keeps: {Buffer: [W, O]}\n")
    assert tilewright("map", OPERATOR, "-a", machine, "-b", "500", "--constraints", "pass.yaml", "--json",
                      "r.json").code == 0
    layer = json.loads((tmp_path / "r.json").read_text())["layers"][0]
    assert layer["mapping"]["levels"][1]["keeps"] == ["W", "O"]
    assert layer["cost"]["energy_pj"] >= layer["bounds"]["energy_pj"]


def test_a_layer_left_without_a_mapping_says_what_to_do(tilewright, machine, tmp_path):
    """Lanes enough for the whole array need tiles that a small buffer cannot hold: no entry alone is at fault."""
    machine.write_text(machine.read_text().replace("capacity_bytes: 256", "capacity_bytes: 6"))
    (tmp_path / "full.yaml").write_text("utilization: {PEs: 1}\n")
    found = tilewright("map", OPERATOR, "-a", machine, "-b", "90", "--constraints", "full.yaml", "--no-store")
    assert found.code == 1
    assert "No legal mapping among 90 samples: the machine has legal mappings, but the constraints" in found.out


WRONG = {
    "missing": ((), None,
        "none.yaml: must be an existing file"),
    "line": ((), "loops:\n  PEs.X: [Z]\n",
        "mine.yaml:2 space.loops.PEs.X[0]: must be a dimension of matmul; Got 'Z'"),
    "tiling beside": (("--tiling", "perfect"), "tiling: ruby\n",
        "tiling: must be ruby, as in mine.yaml:1; Got 'perfect'; Leave one of them out."),
    "dataflow beside": (("--dataflow", "nvdla"), "loops: {}\ndataflow: eyeriss\n",
        "dataflow: must be eyeriss, as in mine.yaml:2; Got 'nvdla'"),
    "dataflow": (("--dataflow", "row"), "{}\n",
        "dataflow: must be a known dataflow; Got 'row'"),
    "empty": (("--tiling", "perfect"), "factors:\n  PEs.X: {M: 3}\n",
        "mine.yaml:2 space.factors.PEs.X.M: must leave a mapping of matmul on small: 3 conflicts with tiling = perfect,"
        " M is 16; Loosen one of them."),
    "too many lanes": ((), "factors:\n  PEs.X: {M: 2,\n    K: 4}\n",
        "mine.yaml:2 space.factors.PEs.X.M: must leave a mapping of matmul on small: 2 conflicts with factors.PEs.X.K ="
        " 4 (mine.yaml:3) and the 4 places of PEs.X, M is 16, K is 8; Loosen one of them."),
    "tile": ((), "tiles:\n  Buffer: {M: 16, N: 16}\n",
        "mine.yaml:2 space.tiles.Buffer.M: must leave a mapping of matmul on small: 16 conflicts with tiles.Buffer.N = "
        "16 (mine.yaml:2) and the 256 bytes of Buffer"),
    "no yaml": ((), "loops: [\n",
        "mine.yaml:2: must be YAML; The parser says: expected the node content"),
    "star": ((), "orders:\n  Buffer: [M, *]\n",
        'mine.yaml:2: must be YAML; Quote the star: "*".'),
    "twice": ((), "loops: {}\nloops: {}\n",
        'mine.yaml:2: must be YAML; The parser says: found duplicate key "loops"'),
    "field": ((), "factor: {}\n",
        "mine.yaml:1 space.factor: is not a known field; Did you mean factors?"),
    "tiling": ((), "tiling: rubys\n",
        "mine.yaml:1 space.tiling: must be a known tiling; Got 'rubys'; Did you mean ruby-s?"),
    "place": ((), "loops:\n  Bufer: [M]\n",
        "mine.yaml:2 space.loops.Bufer: must be a memory or a side of an array of small; Got 'Bufer'; Did you "
        "mean Buffer?"),
    "side": ((), "loops: {PEs: [M]}\n",
        "mine.yaml:1 space.loops.PEs: must be a memory or a side of an array of small; Got 'PEs'; Say which side: PEs.X"
        " or PEs.Y."),
    "order": ((), "orders:\n  Buffer: [M, N]\n",
        "mine.yaml:2 space.orders.Buffer[0]: must name every dimension, or * for the others; Got ['M', 'N']; Add B, K, "
        'or "*" in their place.'),
    "tensor": ((), "keeps:\n  Buffer: [Z]\n",
        "mine.yaml:2 space.keeps.Buffer[0]: must be a tensor of matmul, or a role"),
    "number": ((), "factors:\n  PEs.X: {M: four}\n",
        "mine.yaml:2 space.factors.PEs.X.M: must be a whole number of at least 1"),
    "negative": ((), "tiles:\n  Buffer: {M: {least: -3}}\n",
        "mine.yaml:2 space.tiles.Buffer.M.least: must be a whole number of at least 1; Got -3."),
    "turned round": ((), "tiles:\n  Buffer: {M: {least: 8, most: 2}}\n",
        "mine.yaml:2 space.tiles.Buffer.M: must have a least that is not above its most."),
    "too large": ((), "factors:\n  DRAM: {K: 9}\n",
        "mine.yaml:2 space.factors.DRAM.K: must be at most 8, the size of K"),
    "too wide": ((), "factors:\n  PEs.Y: {K: 3}\n",
        "mine.yaml:2 space.factors.PEs.Y.K: must be at most 2, what the array has there; Got '3'."),
    "nowhere": ((), "loops:\n  DRAM: [M]\n  Buffer: [N]\n",
        "mine.yaml:2 space.loops.DRAM: must leave a mapping of matmul on small: M conflicts with loops.Buffer = N "
        "(mine.yaml:3); Loosen one of them."),
    "idle": ((), "utilization: {PEs: 1}\nloops: {PEs.X: [B],\n  PEs.Y: [B]}\n",
        "mine.yaml:1 space.utilization.PEs: must leave a mapping of matmul on small: 1 conflicts with loops.PEs.X = B "
        "(mine.yaml:2)"),
    "preset": ((), "dataflow: output-stationary\nloops: {Buffer: [M]}\norders:\n  Buffer: [K, M, N, B]\n",
        "mine.yaml:4 space.orders.Buffer: must go with the dataflow output-stationary of matmul"),
    "utilization": ((), "utilization: {PEs: 2}\n",
        "mine.yaml:1 space.utilization.PEs: must be a share above 0 and at most 1; Got 2."),
}


@pytest.mark.parametrize("case", WRONG)
@pytest.mark.parametrize("verb", [("map", "-b", "100"), ("space",)], ids=["map", "space"])
def test_what_is_wrong_is_one_line_and_exit_code_two(tilewright, machine, tmp_path, case, verb):
    words, text, message = WRONG[case]
    if text is not None:
        (tmp_path / "mine.yaml").write_text(text)
    found = tilewright(verb[0], OPERATOR, "-a", machine, *verb[1:], *words, "--constraints",
                       "none.yaml" if text is None else "mine.yaml")
    assert found.code == 2 and found.out == ""
    assert found.err.startswith("Error: ") and message in found.err and found.err.count("\n") == 1


def test_a_conflict_names_the_layer_of_a_network(tilewright, tmp_path):
    (tmp_path / "k.yaml").write_text("factors: {PEs.X: {C: 4}}\n")
    found = tilewright("map", "resnet18", "-a", "eyeriss", "-b", "100", "--constraints", "k.yaml")
    assert found.code == 2
    assert "k.yaml:1 space.factors.PEs.X.C: must be at most 3, the size of C (conv1); Got '4'" in found.err

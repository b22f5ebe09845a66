"""Files of map spaces and constraints: read, written, and every mistake told with its file and line."""

import pytest

from tilewright.base import InputError
from tilewright.hardware import preset
from tilewright.mapping import (
    ANY,
    Bounds,
    Constraints,
    MapSpace,
    dataflow_constraints,
    dump_constraints,
    dump_space,
    load_constraints,
    load_space,
    read_space,
)
from tilewright.workload import convolution, matmul

CONV = convolution("conv2_1", in_channels=64, out_channels=64, in_size=56, kernel=3, padding=1)

GOOD = """\
operator: conv2_1
accelerator: spads
dimensions: {N: 1, K: 64, C: 64, P: 56, Q: 56, R: 3, S: 3}
tiling: ruby-s
keeps:
  GLB: [I]
loops:
  PEs.X: [K, P]
  RF: [C, K, Q, S]
orders:
  DRAM:
    - ['*', K]
    - [N, K, C, P, Q, R, S]
  GLB: [K, '*', R, S]
factors:
  PEs.X: {K: 7}
  RF: {C: {most: 4}, K: {least: 1, most: 2}}
tiles:
  RF: {S: {least: 2}}
utilization: {PEs: 0.5}
"""
CONSTRAINTS = Constraints(
    keeps={"GLB": ("I",)},
    loops={"PEs.X": ("K", "P"), "RF": ("S", "C", "K", "Q")},
    orders={"GLB": (("K", ANY, "R", "S"),), "DRAM": ((ANY, "K"), ("N", "K", "C", "P", "Q", "R", "S"))},
    factors={"PEs.X": {"K": Bounds(7, 7)}, "RF": {"C": Bounds(most=4), "K": Bounds(1, 2)}},
    tiles={"RF": {"S": Bounds(least=2)}},
    utilization={"PEs": 0.5},
)


def test_dump_and_load_are_each_others_inverse(machines):
    space = MapSpace(CONV, machines["spads"], "ruby-s", CONSTRAINTS)
    assert dump_space(space) == GOOD.replace("K: {least: 1, most: 2}", "K: {most: 2}")
    assert load_space(GOOD, CONV, machines["spads"]) == space
    assert load_space(dump_space(space), CONV, machines["spads"]) == space


def test_constraints_alone_are_read_from_the_same_files(machines):
    assert load_constraints(GOOD, CONV, machines["spads"]) == CONSTRAINTS
    text = dump_constraints(CONSTRAINTS)
    assert "tiling" not in text and load_constraints(text, CONV, machines["spads"]) == CONSTRAINTS
    assert load_space("tiling: perfect\n", CONV, machines["spads"]) == MapSpace(CONV, machines["spads"], "perfect")
    assert dump_constraints(Constraints()) == "{}\n"
    assert load_constraints("{}\n", CONV, machines["spads"]) == Constraints()


@pytest.mark.parametrize("name", ["row-stationary", "nvdla", "output-stationary", "input-stationary"])
@pytest.mark.parametrize("machine", ["eyeriss", "simba-like", "edge-s2"])
def test_every_preset_survives_a_file(name, machine, layers):
    for layer in layers.values():
        constraints = dataflow_constraints(name, layer, preset(machine))
        assert load_constraints(dump_constraints(constraints), layer, preset(machine)) == constraints
        assert load_constraints(f"dataflow: {name}\nkeeps: {{}}\n", layer, preset(machine)) == constraints


def test_a_file_is_read_by_path(machines, tmp_path):
    path = tmp_path / "space.yaml"
    path.write_text(GOOD)
    assert load_space(path, CONV, machines["spads"]) == load_space(str(path), CONV, machines["spads"])
    path.write_text(GOOD.replace("K: 7", "K: seven"))
    with pytest.raises(InputError, match=r"space\.yaml:16 space\.factors\.PEs\.X\.K: must be a whole number"):
        load_space(path, CONV, machines["spads"])
    with pytest.raises(InputError, match=r"none\.yaml: must be an existing file"):
        load_space(tmp_path / "none.yaml", CONV, machines["spads"])


def test_a_preset_holds_beside_all_else(machines):
    text = "dataflow: row-stationary\nloops: {PEs.X: [K, C]}\ntiles: {RF: {S: 3}}\nfactors: {GLB: {K: {most: 4}}}\n"
    found = load_constraints(text, CONV, machines["spads"])
    rows = dataflow_constraints("row-stationary", CONV, machines["spads"])
    assert found.loops == {**rows.loops, "PEs.X": ("K",)}
    assert found.tiles == {"RF": {"S": Bounds(3, 3)}}
    assert found.factors == {**rows.factors, "GLB": {"K": Bounds(most=4)}}
    assert found.orders == rows.orders


def test_roles_stand_for_tensors(machines):
    assert load_constraints("keeps:\n  GLB: [inputs, O]\n", CONV, machines["spads"]).keeps == {"GLB": ("I", "O")}


def test_entries_for_other_layers_mean_nothing_here(machines):
    """A file for convolutions, applied to a matrix product of the same network."""
    product = matmul("fc", m=8, n=16, k=32)
    file = read_space("dimensions: {K: 64}\nloops: {PEs.X: [P, K], PEs.Y: [R], RF: []}\norders: {GLB: [C, '*', K], "
                      "DRAM: [N, K, C, P, Q, R, S]}\nfactors: {GLB: {P: 3, K: 2}}\n")
    found = file.constraints(product, machines["spads"], frozenset(CONV.sizes))
    assert found == Constraints(loops={"PEs.X": ("K",), "RF": ()}, orders={"GLB": ((ANY, "K"),)},
                                factors={"GLB": {"K": Bounds(2, 2)}})
    with pytest.raises(InputError, match="must be a dimension of fc; Got 'Z'"):
        read_space("loops: {GLB: [Z]}\n").constraints(product, machines["spads"], frozenset(CONV.sizes))


MALFORMED = [
    ("\n", "1 space: must be a mapping of fields; Got 'nothing'; Start with tiling: ruby-s."),
    ("- 3\n", "1 space: must be a mapping of fields; Got 'a list'; Start with tiling: ruby-s."),
    ("loops: {\n", "2: must be YAML; The parser says: expected the node content, but found '<stream end>'."),
    ("orders:\n  GLB: [K, *, R]\n", '2: must be YAML; Quote the star: "*".'),
    ("tiling: perfect\ntiling: ruby\n", "2: must be YAML; The parser says: found duplicate key \"tiling\" with value "
     "\"ruby\" (original value: \"perfect\")."),
    ("loop: {}\n", "1 .loop: is not a known field; Did you mean loops?"),
    ("tiling: ruby-x\n", "1 .tiling: must be a known tiling; Got 'ruby-x'; Did you mean ruby-t?"),
    ("dataflow: row\n", "1 .dataflow: must be a known dataflow; Got 'row'; Known: nvdla, eyeriss"),
    ("\ndataflow: row-stationry\n", "2 .dataflow: must be a known dataflow; Got 'row-stationry'; Did you mean "
     "row-stationary?"),
    ("loops: [K]\n", "1 .loops: must be a valid dictionary."),
    ("loops:\n  GLB: K\n", "2 .loops.GLB: must be a valid list; Got 'K'."),
    ("loops:\n  GLB: [K, 3]\n", "2 .loops.GLB[1]: must be a valid string; Got 3."),
    ("loops:\n  GLB: [K, K]\n", "2 .loops.GLB: must not name K twice."),
    ("loops:\n  GLBB: [K]\n", "2 .loops.GLBB: must be a memory or a side of an array of spads; Got 'GLBB'; "
     "Did you mean GLB?"),
    ("loops:\n  GLB: [K]\n  PEs: [K]\n", "3 .loops.PEs: must be a memory or a side of an array of spads; Got 'PEs'; "
     "Say which side: PEs.X or PEs.Y."),
    ("loops:\n  GLB:\n    - K\n    - p\n", "4 .loops.GLB[1]: must be a dimension of conv2_1; Got 'p'; Did you mean P?"),
    ("dimensions: {K: 63}\n", "1 .dimensions.K: must be 64, as in conv2_1; Got 63; Take the line out to use the file "
     "for another operator."),
    ("orders:\n  PEs: [K, '*']\n", "2 .orders.PEs: must be a memory of spads; Got 'PEs'; Known: DRAM, GLB, RF."),
    ("orders:\n  GLB:\n    - ['*', K]\n    - [K, C, P]\n", "4 .orders.GLB[1]: must name every dimension, or * for the "
     "others; Got ['K', 'C', 'P']; Add N, Q, R, S, or \"*\" in their place."),
    ("orders:\n  GLB: ['*', K, '*']\n", "2 .orders.GLB[0]: must not name * twice."),
    ("orders:\n  GLB: K\n", "2 .orders.GLB: must be an order, or a list of orders; Got 'K'; For example "
     "[K, \"*\", R, S]."),
    ("orders:\n  GLB: ['*', Z]\n", "2 .orders.GLB[0][1]: must be a dimension of conv2_1; Got 'Z'; Known: N, K, C"),
    ("keeps:\n  GLB: [X]\n", "2 .keeps.GLB[0]: must be a tensor of conv2_1, or a role; Got 'X'; Known: I, W, O."),
    ("keeps:\n  GLB: [I, W]\n", "2 .keeps.GLB[1]: must be a tensor that GLB can keep; Got 'W'; It keeps inputs, "
     "outputs."),
    ("factors:\n  PEs.X: {K: 0}\n", "2 .factors.PEs.X.K: must be a whole number of at least 1, or least and most; "
     "Got 0; For example 4, or {least: 1, most: 4}."),
    ("factors:\n  PEs.X: {K: 2.5}\n", "2 .factors.PEs.X.K: must be a whole number of at least 1, or least and most; "
     "Got 2.5"),
    ("factors:\n  PEs.X:\n    C: 2\n    K: {leest: 2}\n", "4 .factors.PEs.X.K.leest: is not a known field; Did you "
     "mean least?"),
    ("factors:\n  PEs.X: {K: {least: 4, most: 2}}\n", "2 .factors.PEs.X.K: must have a least that is not above its "
     "most."),
    ("factors:\n  PEs.X: {K: {least: yes}}\n", "2 .factors.PEs.X.K.least: must be a whole number of at least 1; Got "
     "'yes'."),
    ("factors:\n  GLB: {K: 65}\n", "2 .factors.GLB.K: must be at most 64, the size of K; Got '65'."),
    ("factors:\n  PEs.Y: {K: 13}\n", "2 .factors.PEs.Y.K: must be at most 12, what the array has there; Got '13'."),
    ("factors:\n  PEs.Y: {K: 3}\nloops:\n  PEs.Y: [C]\n", "2 .factors.PEs.Y.K: must allow 1 where the dimension may "
     "not loop; Got '3'; Add K to space.loops.PEs.Y, or let the factor be 1."),
    ("tiles:\n  PEs.X: {K: 4}\n", "2 .tiles.PEs.X: must be a memory of spads; Got 'PEs.X'; Known: DRAM, GLB, RF."),
    ("tiles:\n  GLB: {k: 4}\n", "2 .tiles.GLB.k: must be a dimension of conv2_1; Got 'k'; Did you mean K?"),
    ("tiles:\n  DRAM: {K: 4}\n", "2 .tiles.DRAM.K: must allow 64: the outermost memory holds everything; Got '4'."),
    ("utilization: {GLB: 0.5}\n", "1 .utilization.GLB: must be a fan-out of spads; Got 'GLB'; Known: PEs."),
    ("utilization: {PEs: 50}\n", "1 .utilization.PEs: must be a share above 0 and at most 1; Got 50."),
    ("utilization: {PEs: .nan}\n", "1 .utilization.PEs: must be a share above 0 and at most 1; Got nan."),
    ("utilization: {PEs: half}\n", "1 .utilization.PEs: must be a share above 0 and at most 1; Got 'half'."),
    ("tiling: ruby\ndataflow: row-stationary\nfactors:\n  PEs.Y: {R: 1}\n", "4 .factors.PEs.Y.R: must go with the "
     "dataflow row-stationary of conv2_1; Got '3 and 1'."),
    ("dataflow: row-stationary\nfactors:\n  PEs.X: {R: 3}\n", "3 .factors.PEs.X.R: must go with the dataflow "
     "row-stationary of conv2_1; Got '3'."),
    ("dataflow: row-stationary\nloops:\n  PEs.Y: [C]\n", "1 .factors.PEs.Y.R: must go with the dataflow "
     "row-stationary of conv2_1; Got '3'."),
    ("factors:\n  <<: {PEs.X: {K: 65}}\n", "1 .factors.PEs.X.K: must be at most 64, the size of K; Got '65'."),
    (f"factors:\n  GLB: {{K: {'9' * 5000}}}\n", " must be YAML; The parser says: Exceeds the limit"),
    (f"factors: {'[' * 3000}\n", " must nest at most 100 deep"),
]

EMPTY = [
    ("tiling: perfect\nfactors:\n  PEs.X: {K: 7}\n", "1 .tiling: must leave a mapping of conv2_1 on spads: perfect "
     "conflicts with factors.PEs.X.K = 7 (file:3), K is 64; Loosen one of them."),
    ("factors:\n  PEs.X:\n    K: 4\n    P: 4\n", "3 .factors.PEs.X.K: must leave a mapping of conv2_1 on spads: 4 "
     "conflicts with factors.PEs.X.P = 4 (file:4) and the 14 places of PEs.X, K is 64, P is 56; Loosen one of them."),
    ("tiles:\n  GLB: {K: {most: 3}}\n  RF: {K: {least: 4}}\n", "2 .tiles.GLB.K: must leave a mapping of conv2_1 on "
     "spads: 1 to 3 conflicts with tiles.RF.K = at least 4 (file:3), K is 64; Loosen one of them."),
    ("tiles:\n  RF: {P: {least: 3},\n       Q: {least: 5}}\n", "2 .tiles.RF.P: must leave a mapping of conv2_1 on "
     "spads: at least 3 conflicts with tiles.RF.Q = at least 5 (file:3) and the 12 bytes of RF.inputs"),
    ("tiles:\n  RF: {S: {least: 3}, Q: {least: 11}}\n", "2 .tiles.RF.Q: must leave a mapping of conv2_1 on spads: "
     "at least 11 conflicts with"),
    ("loops:\n  DRAM: [N, C, P, Q, R, S]\n  GLB: [P]\n  RF: [C]\n", "2 .loops.DRAM: must leave a mapping of conv2_1 on "
     "spads: C N P Q R S conflicts with loops.GLB = P (file:3) and loops.RF = C (file:4); Loosen one of them."),
    ("loops:\n  PEs.X: [N]\n  PEs.Y: [N]\nutilization: {PEs: 0.1}\n", "2 .loops.PEs.X: must leave a mapping of "
     "conv2_1 on spads: N conflicts with loops.PEs.Y = N (file:3) and utilization.PEs = 0.1 (file:4); Loosen one of "
     "them."),
]


@pytest.mark.parametrize(("text", "message"), MALFORMED + EMPTY)
def test_what_is_wrong_is_told_with_file_and_line(machines, tmp_path, text, message):
    (path := tmp_path / "file").write_text(text)
    with pytest.raises(InputError) as error:
        load_space(path, CONV, machines["spads"])
    told = str(error.value).replace(str(path), "file")
    assert told.startswith(f"file:{message.replace(' .', ' space.', 1) if message[1:3] == ' .' else message}")
    assert "\n" not in told
